"""Values too far from all other values of their column to inform its scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skihmm._data.validation import shown
from skihmm._typing import Flags, Floats

# Robust standard deviations from the median beyond which few values, or many values of two codes
# such as -999 and 1e8, are no part of the scale of their column.  Codes that are not made of
# nines, such as 1e8 or 32767, are so many times farther: the level of a state is not.
_WRONG, _FEW_WRONG, _CODE, _MOST_CODES = 50.0, 0.01, 20.0, 2
# Fewer values have no robust scale.
_LEAST_ROWS = 20
_MOST_WRONG_SHOWN = 3
_TO_DEVIATION = 1.4826  # of a normal distribution, in median absolute deviations


def some_of(places: Sequence[str]) -> str:
    """The first of many places."""
    more = len(places) - _MOST_WRONG_SHOWN
    return ", ".join([*places[:_MOST_WRONG_SHOWN], *[f"and {more} more"] * (more > 0)])


def wrong_values(X: Floats, are_series: bool) -> Flags:
    """Mask of values too far from all other values to be part of a column's scale.

    In series single values far from both neighbours count too, in units of the
    differences of successive rows.
    """
    mask = np.zeros(X.shape, dtype=bool)
    for c, column in enumerate(X.T):
        seen = np.flatnonzero(~np.isnan(column))
        if len(seen) < _LEAST_ROWS:
            continue
        values = column[seen]
        distances = [np.abs(values - np.median(values))]
        scales = distances.copy()
        if are_series:
            neighbours = np.stack([values[:-2], values[1:-1], values[2:]])
            middle = np.median(neighbours, axis=0)
            distances.append(np.r_[0, np.abs(values[1:-1] - middle), 0])
            scales.append(np.abs(np.diff(values)))
        for distance, scale in zip(distances, scales, strict=True):
            limit = _WRONG * _TO_DEVIATION * np.median(scale)
            # Where most values are equal there is no robust scale.
            is_far = (distance > limit) & (limit > 0)
            is_beyond = distance[is_far] > _CODE * limit
            is_few = is_far.sum() <= (few := max(1, _FEW_WRONG * len(seen)))
            if is_few or (~_are_codes(values[is_far], is_beyond, limit)).sum() <= few:
                mask[seen, c] |= is_far
    return mask


def _are_codes(values: Floats, are_beyond: Flags, limit: float) -> Flags:
    """Mask of codes of missing values among far values.

    Codes repeat, and are numbers of nines, such as -999 or 99.99, or numbers but zero far beyond
    the limit.  A code is most of the values around it, which values of a far state are not.  More
    than two numbers are none, but prices, for example.
    """
    numbers, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    totals = np.r_[0, np.cumsum(counts)]
    n_around = totals[np.searchsorted(numbers, numbers + limit, side="right")]
    n_around -= totals[np.searchsorted(numbers, numbers - limit)]
    is_nines = [set(f"{abs(number):g}".replace(".", "")) == {"9"} for number in numbers]
    is_beyond = (numbers != 0) & (np.bincount(places, ~are_beyond) == 0)
    is_code = (counts > 1) & (2 * counts > n_around) & (is_nines | is_beyond)
    codes = np.argsort(-counts * is_code, kind="stable")[:_MOST_CODES]
    return np.asarray(np.isin(places, codes) & is_code[places])


def describe_wrong(X: Floats, labels: Sequence[str | int], mask: Flags) -> list[str]:
    """Warnings of values that are far from all other values of their columns."""
    entries = [
        f"X[{row}, {labels[c]!r}] = {shown(X[row, c])}" for row, c in np.argwhere(mask).tolist()
    ]
    if not entries:
        return []
    return [
        f"X has values more than {_WRONG:.0f} robust standard deviations from the "
        f"others of their columns: {some_of(entries)}. The prior's scales were taken "
        "from the other rows. Set wrong values, and codes of missing ones, to NaN."
    ]
