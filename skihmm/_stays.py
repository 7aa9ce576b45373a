"""Staying that depends on inputs: regression coefficients and probabilities of a draw."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from skihmm._draws import Draw
from skihmm._typing import Floats
from skihmm.core._franchise import stays_of
from skihmm.transitions import BaseTransitions


def has_inputs(draw: Draw) -> bool:
    """Whether the probabilities to stay depend on inputs."""
    return "coins" in draw.transitions


def coefficients_of(
    draw: Draw, generator: np.random.Generator | None = None
) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of standardised inputs: posterior means, or a draw."""
    coins = draw.transitions["coins"]
    width = (int(np.sqrt(9 + 8 * coins.shape[1])) - 3) // 2
    b = coins[:, :width]
    if generator is not None:
        covariance = np.zeros((len(coins), width, width))
        i, j = np.tril_indices(width)
        covariance[:, i, j] = covariance[:, j, i] = coins[:, width:]
        noise = generator.standard_normal((len(coins), width, 1))
        b = b + (np.linalg.cholesky(covariance) @ noise)[..., 0]
    return b[:, :-1], b[:, -1]


def in_user_units(
    transitions: BaseTransitions, coefficients: Floats, intercepts: Floats
) -> tuple[Floats, Floats]:
    """Coefficients (last axis) and intercepts of inputs as they are in X."""
    means, scales = transitions.input_means_, transitions.input_scales_
    assert means is not None
    assert scales is not None
    slopes = coefficients / scales
    return slopes, intercepts - (slopes * means).sum(axis=-1)


def stay_probabilities(
    draw: Draw, inputs: Floats, generator: np.random.Generator | None = None
) -> Floats:
    """Probability that the next step is in the same state, by row of inputs and state.

    Parameters
    ----------
    draw : Draw
    inputs : ndarray of shape (n_rows, n_inputs)
        Standardised.
    generator : numpy.random.Generator, optional
        Draws the coefficients; by default they are integrated out.

    Returns
    -------
    probabilities : ndarray of shape (n_rows, n_states)
    """
    stays, repeats = stays_of(draw.arrays, inputs)
    if generator is not None:
        coefficients, intercepts = coefficients_of(draw, generator)
        stays = expit(inputs @ coefficients.T + intercepts)
        repeats = _drawn_repeats(draw, repeats, generator)
    if draw.transitions.get("n_stages", 1) > 1:
        # A run lasts; only its last stage ends in a draw, which is not known here.
        return stays
    return stays + (1 - stays) * repeats


def _drawn_repeats(draw: Draw, means: Floats, generator: np.random.Generator) -> Floats:
    """Draw the probabilities that a state which is left is drawn again."""
    record = draw.transitions
    draws = np.bincount(record["rows"], record["n_customers"], draw.n_states + 1)
    total = draws[: draw.n_states] + record["alpha"]
    return generator.beta(means * total, (1 - means) * total)
