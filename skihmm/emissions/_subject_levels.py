"""Rows without the levels of their subjects: what tells the scale of states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skihmm._data.validation import shown
from skihmm._typing import Floats, Labels

# Values of a subject that tell its level, and how many times the usual variance a
# subject has whose unit is another.
_LEAST_VALUES, _OTHER_UNIT = 5, 100.0
# Variance of a column, in variances within subjects, up to which it is the scale.  Below,
# states are found by either scale, and subjects may visit different states.
_HIDES_STATES = 10.0
# Robust standard deviations between a subject and the others that are no level.
_FAR = 50.0
_TO_DEVIATION = 1.4826  # of a normal distribution, in median absolute deviations


def subject_medians(X: Floats, subjects: Labels, n_subjects: int) -> Floats:
    """Median of every subject and column; NaN without a value."""
    medians = np.full((n_subjects, X.shape[1]), np.nan)
    order = np.argsort(subjects, kind="stable")
    stops = np.cumsum(np.bincount(subjects, minlength=n_subjects))[:-1]
    for u, rows in enumerate(np.split(order, stops)):
        is_seen = ~np.isnan(X[rows])
        if len(rows) and is_seen.all():
            medians[u] = np.median(X[rows], axis=0)
            continue
        for c in np.flatnonzero(is_seen.any(axis=0)).tolist():
            medians[u, c] = np.nanmedian(X[rows, c])
    return medians


def levelled(X: Floats, subjects: Labels, medians: Floats) -> Floats:
    """Move the rows of all subjects to their mean level.

    The variance of a column is then one of states and noise, whatever the levels, and one
    far subject does not change it.  Entries are NaN of subjects with few values, or
    another unit.  Columns stay as they are in which little is left, or whose levels hide
    no states.
    """
    moved = X - medians[subjects]
    for c, column in enumerate(moved.T):
        seen = ~np.isnan(column)
        counts = np.bincount(subjects[seen], minlength=len(medians))
        squares = np.bincount(subjects[seen], column[seen] ** 2, len(medians))
        variances = squares / np.maximum(counts, 1)
        is_used = counts >= _LEAST_VALUES
        varied = variances[is_used & (variances > 0)]
        if len(varied):
            is_used &= variances <= _OTHER_UNIT * np.median(varied)
        size = np.abs(X[seen, c]).max(initial=0.0)
        is_constant = variances[is_used].max(initial=0.0) <= (1e-13 * size) ** 2
        n_used = counts[is_used].sum()
        within = squares[is_used].sum() / max(n_used, 1)
        hides = np.var(X[seen, c]) > _HIDES_STATES * within if len(varied) else False
        if is_constant or 2 * n_used < seen.sum() or not hides:
            moved[:, c] = X[:, c]
        else:
            column[~is_used[subjects]] = np.nan
            column += np.nanmean(medians[:, c])
    return moved


def first_names(names: Sequence[str]) -> str:
    """The first three of some subjects, and the number of further ones, as warnings show them."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def describe_far(
    X: Floats,
    subjects: Labels,
    medians: Floats,
    names: Sequence[object],
    labels: Sequence[str | int],
    parameter: str,
) -> list[str]:
    """Warnings of subjects whose level is far from the levels of all others."""
    texts = []
    for c, levels in enumerate(medians.T):
        known = np.flatnonzero(~np.isnan(levels))
        if len(known) < 3:
            continue
        usual = np.median(levels[known])
        spreads = np.abs(levels[known] - usual), np.abs(X[:, c] - levels[subjects])
        scale = _TO_DEVIATION * max(np.median(s[~np.isnan(s)]) for s in spreads)
        is_far = np.abs(levels[known] - usual) > _FAR * scale
        far = known[is_far & (scale > 0)].tolist()
        if not far or 2 * len(far) >= len(known):
            continue
        listed = [f"{names[u]!r} (median {shown(levels[u])})" for u in far]
        texts.append(
            f"In column {labels[c]!r} of X subjects ({parameter}) are more than "
            f"{_FAR:.0f} robust standard deviations from the others (median "
            f"{shown(usual)}): {first_names(listed)}. The prior's scales were taken "
            "from rows less the level of their subject. Check the unit of these subjects."
        )
    return texts
