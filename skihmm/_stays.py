"""Staying that depends on inputs: regression coefficients and probabilities of a draw."""

from __future__ import annotations

import numpy as np

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


def mean_repeats(draw: Draw) -> Floats:
    """Probabilities, by state, that it is drawn again when it is left.

    Only the last one of several stages ends in a draw, and it is not known here which
    one a step is in: zero.
    """
    if draw.transitions.get("n_stages", 1) > 1:
        return np.zeros(draw.n_states)
    n_inputs = coefficients_of(draw)[0].shape[1]
    repeats: Floats = stays_of(draw.arrays, np.empty((0, n_inputs)))[1]
    return repeats


def stay_probabilities(draw: Draw, inputs: Floats) -> Floats:
    """Probability that the next step is in the same state, by row of inputs and state.

    Coefficients are integrated out; inputs of shape (n_rows, n_inputs) are standardised.
    """
    stays = stays_of(draw.arrays, inputs)[0]
    return stays + (1 - stays) * mean_repeats(draw)
