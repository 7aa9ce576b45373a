"""Staying that depends on inputs: regression coefficients and probabilities of a draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from skihmm._draws import Draw
from skihmm._typing import Floats
from skihmm.core._franchise import stays_of
from skihmm.transitions import BaseTransitions

# Prior standard deviations of the slopes of standardised inputs, and of the intercept, in
# regressions of what lasts longer than a state.
_SLOPE, _INTERCEPT = 2.0, 3.0


def has_inputs(draw: Draw) -> bool:
    """Whether the probabilities to stay depend on inputs."""
    return "coins" in draw.transitions


def coefficients_of(
    draw: Draw, generator: np.random.Generator | None = None
) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of standardised inputs: posterior means, or a draw."""
    coins = draw.transitions["coins"]
    width = len(draw.transitions["stay_scale"]) + 1
    b = coins[:, :width]
    if generator is not None:
        covariance = np.zeros((len(coins), width, width))
        i, j = np.tril_indices(width)
        covariance[:, i, j] = covariance[:, j, i] = coins[:, width:]
        noise = generator.standard_normal((len(coins), width, 1))
        b = b + (np.linalg.cholesky(covariance) @ noise)[..., 0]
    return b[:, :-1], b[:, -1]


def drawn_slopes(samples: Mapping[str, Floats]) -> Iterable[Floats]:
    """Drawn coefficients of every input, (n_samples, n_states); none without inputs."""
    drawn = samples.get("stay_coefficients_")
    return [] if drawn is None else drawn.transpose(2, 0, 1)


def in_user_units(
    transitions: BaseTransitions, coefficients: Floats, intercepts: Floats
) -> tuple[Floats, Floats]:
    """Coefficients (last axis) and intercepts of inputs as they are in X."""
    means, scales = transitions.input_means_, transitions.input_scales_
    assert means is not None
    assert scales is not None
    slopes = coefficients / scales
    return slopes, intercepts - (slopes * means).sum(axis=-1)


def stays_and_repeats(draw: Draw, inputs: Floats) -> tuple[Floats, Floats]:
    """Probabilities to stay, by row of inputs and state, and to be drawn again when left.

    Coefficients are integrated out; inputs of shape (n_rows, n_inputs) are standardised.
    """
    return stays_of(draw.arrays, inputs)


def stay_probabilities(draw: Draw, inputs: Floats) -> Floats:
    """Probability that the next step is in the same state; see the function above."""
    stays, repeats = stays_and_repeats(draw, inputs)
    return stays + (1 - stays) * repeats


def fitted_regressions(inputs: Floats, kept: Floats, before: Floats) -> Floats:
    """Coefficients of logistic regressions of staying, modes; the intercepts are the last column.

    Expected numbers of steps, (n_rows, n_regimes): `kept` stay, of those that come from `before`.
    """
    X = np.column_stack([inputs, np.ones(len(inputs))])
    scales = np.append(np.full(inputs.shape[1], _SLOPE), _INTERCEPT)

    def fit(stays: Floats, steps: Floats) -> Floats:
        def loss(b: Floats) -> tuple[float, Floats]:
            e, z = X @ b, b / scales
            value = steps @ np.logaddexp(0.0, e) - stays @ e + 0.5 * (z @ z)
            return value, X.T @ (steps * expit(e) - stays) + z / scales

        return np.asarray(minimize(loss, np.zeros(len(scales)), jac=True).x)

    return np.array([fit(*of_one) for of_one in zip(kept.T, before.T, strict=True)])


def regression_probabilities(coefficients: Floats, inputs: Floats) -> Floats:
    """Probabilities to stay by the regressions above, (n_rows, n_regimes)."""
    return np.asarray(expit(inputs @ coefficients[:, :-1].T + coefficients[:, -1]))
