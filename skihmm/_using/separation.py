"""Coefficients of staying that data do not bound."""

from __future__ import annotations

import numpy as np

from skihmm._typing import Flags, Floats, Integers, Labels
from skihmm._using.fitted import FittedModel
from skihmm._using.stays import coefficients_of, has_inputs

# Coefficients that change log odds by more between the extremes of an input are not
# reported without a note if data do not bound them: odds of 22,000.
MOST_LOG_ODDS = 10.0


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


def unbounded_coefficients(fitted: FittedModel) -> list[str]:
    """Name coefficients of staying that data do not bound and that are large.

    The prior bounds them, whose scale has no mean: they may be thousands.
    """
    draw, sequences = fitted.selected, fitted.sequences
    if not has_inputs(draw):
        return []
    assert sequences.contexts is not None
    assert sequences.contexts.inputs is not None
    inputs, given = sequences.contexts.inputs, fitted.given
    # The effect of the input between its extremes, in log odds.
    sizes = np.abs(coefficients_of(draw)[0]) * np.ptp(inputs, axis=0)
    are_unbounded = _are_unbounded(fitted.labels, sequences.starts, inputs, draw.n_states) & (
        sizes > MOST_LOG_ODDS
    )
    names = fitted.columns.names
    texts = []
    for i in np.flatnonzero(are_unbounded.any(axis=0)):
        column = given.stay_columns[i]
        states = np.flatnonzero(are_unbounded[:, i])
        label = f"column {column}" if names is None else repr(names[column])
        listed = ", ".join(map(str, states))
        texts.append(f"{label} in state{'s' * (len(states) > 1)} {listed}")
    return texts


def note_of_separation(fitted: FittedModel) -> str:
    """The warning about the coefficients above, or nothing."""
    texts = unbounded_coefficients(fitted)
    if not texts:
        return ""
    return (
        f"Data do not bound the coefficients of staying of {'; '.join(texts)}: the input "
        "is constant in the steps after the state, or separates the steps that stay from "
        "those that leave. Report stay_probabilities, not these coefficients, or leave "
        "the input out of input_features."
    )
