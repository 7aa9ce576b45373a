"""Effects that a model lacks besides the shape of its noise: subjects, and correlations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import homogeneity_score
from sklearn.metrics.cluster import contingency_matrix

from skihmm._typing import Floats, Integers
from skihmm.posterior._segments import borders_of

# Number of sequences, or subjects, that tell anything, and the share of them that a state
# occurs in if it is a state of few of them.
_FEWEST_SEQUENCES, _FEW_SEQUENCES = 4, 1 / 3
# Excess of I(state; sequence) / H(state) over visits dealt anew, and its standard deviations.  It
# was .14 to .35 with subjects that are not named, and at most 0 in right fits.
_LEAST_EXCESS, _SIGNIFICANT, _N_DEALS = 0.08, 5.0, 20
# States with a smaller share of the steps are not counted.
_LARGE_STATE = 0.01
# Correlation of two columns within states, and its standard errors: of right fits below
# .08, of correlated noise .67 to .81.
_LEAST_CORRELATION, _LEAST_ROWS = 0.3, 100


def unnamed_subjects(path: Integers, starts: Integers) -> str | None:
    """Sentence about states that occur in few of the sequences, more than by chance."""
    which = np.searchsorted(starts, np.arange(len(path)), side="right") - 1
    found = _states_of_few(path, starts, which)
    if found is None:
        return None
    return (
        f"{found} sequences. If these are of different subjects or devices, name them "
        "(subject_feature)."
    )


def different_subjects(
    path: Integers, starts: Integers, subjects: Integers, labels: Sequence[object], has_scale: bool
) -> str | None:
    """Sentence about states that occur with few of the subjects that are named.

    The subjects of the rows have offsets, and perhaps scales, of the columns with these labels.
    """
    found = _states_of_few(path, starts, subjects)
    if found is None:
        return None
    effects = "an offset and a scale" if has_scale else "an offset"
    columns = f"column{'s' * (len(labels) > 1)} {', '.join(map(str, labels))}"
    return f"{found} subjects: subjects differ by more than {effects} of {columns}."


def _states_of_few(path: Integers, starts: Integers, which: Integers) -> str | None:
    """Begin of a sentence about states that occur in few groups of the rows.

    Visits of states are dealt anew with their lengths kept: a few long visits are in few
    groups by chance.
    """
    n_groups, n_steps = len(np.unique(which)), len(path)
    if n_groups < _FEWEST_SEQUENCES:
        return None
    table = contingency_matrix(which, path)
    large = table.sum(axis=0) >= _LARGE_STATE * n_steps
    few = large & ((table > 0).mean(axis=0) < _FEW_SEQUENCES)
    if 2 * few.sum() <= large.sum():
        return None
    borders = borders_of(path, starts)
    lengths, states = np.diff(borders), path[borders[:-1]]
    rng = np.random.default_rng(0)
    # Homogeneity is I(state; sequence) / H(state).
    chance = [
        homogeneity_score(np.repeat(rng.permutation(states), lengths), which)
        for _ in range(_N_DEALS)
    ]
    mean, error = float(np.mean(chance)), float(np.std(chance))
    if homogeneity_score(path, which) < mean + max(_LEAST_EXCESS, _SIGNIFICANT * error):
        return None
    return f"{few.sum()} of {large.sum()} states occur in less than a third of the {n_groups}"


def correlated_columns(values: Floats, groups: Integers) -> tuple[float, int, int] | None:
    """Largest correlation of two columns within groups of rows, and both columns.

    None if all are small or uncertain.
    """
    n_columns = values.shape[1]
    within = np.full(values.shape, np.nan)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        # Means and deviations of few rows take a part of the correlation.
        if len(rows) > n_columns + 10:
            part = values[rows]
            is_known = np.isfinite(part)
            sizes = np.maximum(is_known.sum(axis=0), 1)
            part = part - np.where(is_known, part, 0.0).sum(axis=0) / sizes
            spread = np.sqrt(np.where(is_known, part**2, 0.0).sum(axis=0) / sizes)
            within[rows] = np.divide(
                part, spread, out=np.full(part.shape, np.nan), where=spread > 0
            )
    is_known = np.isfinite(within)
    filled = np.where(is_known, within, 0.0)
    n_pairs = is_known.T.astype(float) @ is_known
    squares = (filled**2).T @ is_known
    sizes = np.sqrt(squares * squares.T)
    rho = np.divide(filled.T @ filled, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    limit = np.maximum(_LEAST_CORRELATION, _SIGNIFICANT / np.sqrt(np.maximum(n_pairs, 1)))
    is_found = (np.abs(rho) > limit) & (n_pairs >= _LEAST_ROWS)
    rho = np.triu(np.where(is_found, rho, 0.0), 1)
    if not rho.any():
        return None
    a, b = np.unravel_index(int(np.abs(rho).argmax()), rho.shape)
    return float(rho[a, b]), int(a), int(b)
