"""Staying that depends on inputs: regression coefficients and probabilities of a draw."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from skihmm._draws import Draw
from skihmm._typing import Flags, Floats, Integers, Labels
from skihmm.core._franchise import stays_of
from skihmm.transitions import BaseTransitions

# Coefficients that change log odds by more between the extremes of an input are not
# reported without a note if data do not bound them: odds of 22,000.
MOST_LOG_ODDS = 10.0


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
    stays, repeats = stays_of(draw.arrays, inputs)
    return stays, repeats


def stay_probabilities(draw: Draw, inputs: Floats) -> Floats:
    """Probability that the next step is in the same state; see the function above."""
    stays, repeats = stays_and_repeats(draw, inputs)
    return stays + (1 - stays) * repeats


def _are_unbounded(path: Labels, starts: Integers, inputs: Floats, n: int) -> Flags:
    """Whether data leave coefficients without bounds, by state and input.

    The input is constant in the steps after the state, or all steps that stay are on one side of
    all steps that leave.
    """
    are_later = np.isin(np.arange(len(path)), starts, invert=True)
    before = np.where(are_later, np.roll(path, 1), -1)
    found = np.zeros((n, inputs.shape[1]), dtype=bool)
    for k in range(n):
        x, stays = inputs[before == k], path[before == k] == k
        if not len(x):
            found[k] = True
            continue
        found[k] = np.ptp(x, axis=0) == 0
        if 0 < stays.sum() < len(x):
            stay, leave = x[stays], x[~stays]
            found[k] |= stay.min(axis=0) >= leave.max(axis=0)
            found[k] |= stay.max(axis=0) <= leave.min(axis=0)
    return found


def unbounded_coefficients(hmm: BaseEstimator) -> list[str]:
    """Name coefficients of staying that data do not bound and that are large.

    The prior bounds them, whose scale has no mean: they may be thousands.
    """
    draw, sequences = hmm._selected, hmm._fit_state.sequences
    if not has_inputs(draw):
        return []
    inputs, given = sequences.contexts.inputs, hmm._fit_state.given
    # The effect of the input between its extremes, in log odds.
    sizes = np.abs(coefficients_of(draw)[0]) * np.ptp(inputs, axis=0)
    are_unbounded = _are_unbounded(hmm.labels_, sequences.starts, inputs, draw.n_states) & (
        sizes > MOST_LOG_ODDS
    )
    names = getattr(hmm, "feature_names_in_", None)
    texts = []
    for i in np.flatnonzero(are_unbounded.any(axis=0)):
        column = given.stay_columns[i]
        states = np.flatnonzero(are_unbounded[:, i])
        label = f"column {column}" if names is None else repr(names[column])
        listed = ", ".join(map(str, states))
        texts.append(f"{label} in state{'s' * (len(states) > 1)} {listed}")
    return texts


def note_of_separation(hmm: BaseEstimator) -> str:
    """The warning about the coefficients above, or nothing."""
    texts = unbounded_coefficients(hmm)
    if not texts:
        return ""
    return (
        f"Data do not bound the coefficients of staying of {'; '.join(texts)}: the input "
        "is constant in the steps after the state, or separates the steps that stay from "
        "those that leave. Report stay_probabilities, not these coefficients, or leave "
        "the input out of input_features."
    )
