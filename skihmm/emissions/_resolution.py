"""Rounded, constant and determined columns of numbers, and columns of few lasting values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.wrong_values import some_of
from skihmm._typing import Flags, Floats, Integers
from skihmm.emissions._columns import column_values

# Gaps between the distinct values of a column on a grid are multiples of the smallest one
# up to this share of it: numbers of single precision and scaled columns are rounded.
_GRID_TOLERANCE = 0.02
# Smaller gaps, in ranges of their column, are gaps of unrounded numbers.  Gaps smaller than
# _COARSE_GAP are no grid if they are the rounding of the column's type: a step of a sixth of the
# standard deviation of a state, or less, adds no states.
_LEAST_GAP, _COARSE_GAP = 1e-6, 0.01
# Variance of a column given the other columns, relative to its own, below which they determine it,
# and the standard deviation of its noise relative to its own (1e-4 to 3e-2 gave the same states).
_DETERMINED, NOISE_OF_DETERMINED = 1e-8, 1e-3
# Columns of levels have at most so many values, in so many rows or more.  Values that are kept with
# this probability or more have this share of the rows: rounded noise of a fifth of the step or more
# has more rows at its margins.  Values are kept this share of the way from chance to certainty (a
# coin is not), and rows that are alone are at most so many times as many as stays of geometric
# length have.
_MOST_LEVELS, _LEAST_ROWS = 12, 20
_LASTING, _SHARE_LASTING, _LEAST_RECURRENCE, _MOST_SINGLE = 0.4, 0.998, 0.2, 1.3
# Standard deviation of normal noise, in least gaps between levels and in steps of a grid.  Noise of
# .29 steps, as uniform noise has, leaves a ripple by which rounded noise splits (states with noise
# of .3 to .5 steps: adjusted Rand index .63 to .81, here 1.00), .5 steps join close states.
NOISE_OF_LEVELS, NOISE_OF_STEPS = 0.1, 0.4
# Share of rows that repeat the row before above which data were probably upsampled.
_REPEATED = 0.2
# Least length of a constant stretch of a dead channel; a column that is not piecewise constant has
# at most so many stretches, with at most this share of its rows.
_LEAST_STRETCH, _MOST_STRETCHES, _MOST_DEAD = 20, 5, 0.5


def grid_step(column: Floats, precision: float = 0.0) -> float:
    """Smallest gap between the values of a column on a grid; 0 for other columns.

    On a grid all gaps between distinct values are multiples of the smallest gap, up to rounding,
    and values repeat.  `precision` is the gap between 1 and the next number of the column's
    original type.
    """
    column = column[~np.isnan(column)]
    values = np.unique(column)
    if not 1 < len(values) < len(column):
        return 0.0
    gaps = np.diff(values)
    least, spread = gaps.min(), values[-1] - values[0]
    is_of_type = least <= precision * np.abs(values).max()
    if least < (_COARSE_GAP if is_of_type else _LEAST_GAP) * spread:
        return 0.0
    multiples = np.rint(gaps / least)
    step = spread / multiples.sum()
    is_grid = np.abs(gaps / step - multiples).max() < _GRID_TOLERANCE
    return float(step) if is_grid else 0.0


def level_gap(column: Floats, starts: Integers) -> float:
    """Least gap between the values of a column of levels; 0 for other columns.

    Levels, as of setpoints, valves or gears, are a few values that are kept for some rows.  Rounded
    noise leaves a value soon, if only at its margins.
    """
    values, places = np.unique(column, return_inverse=True)
    # NaN comes last.
    n = int(np.count_nonzero(~np.isnan(values)))
    counts = np.bincount(places, minlength=n)[:n]
    if not 1 < n <= _MOST_LEVELS or counts.sum() < _LEAST_ROWS:
        return 0.0
    is_change, goes_on = np.diff(places) != 0, np.maximum(places[1:], places[:-1]) < n
    is_change[starts[1:] - 1], goes_on[starts[1:] - 1] = True, False
    n_next = np.bincount(places[:-1][goes_on], minlength=n)
    n_kept = np.bincount(places[:-1][goes_on & ~is_change], minlength=n)
    stays, shares = n_kept / np.maximum(n_next, 1), counts / counts.sum()
    by_chance = (shares**2).sum()
    begins = np.flatnonzero(np.append(True, is_change))
    lengths, of_run = np.diff(begins, append=len(places)), places[begins]
    leaving = 1 - stays[of_run[of_run < n]]
    n_single = np.count_nonzero(lengths[of_run < n] == 1)
    error = np.sqrt((leaving * (1 - leaving)).sum())
    are_levels = (
        counts[stays >= _LASTING].sum() >= _SHARE_LASTING * counts.sum()
        and (shares * stays).sum() - by_chance >= _LEAST_RECURRENCE * (1 - by_chance)
        and n_single <= _MOST_SINGLE * leaving.sum() + 3 * error + 2
    )
    return float(np.diff(values[:n]).min()) if are_levels else 0.0


def determined_columns(rows: Floats) -> Flags:
    """Mask of the columns of complete rows that are linear functions of earlier columns."""
    n = rows.shape[1]
    mask = np.zeros(n, dtype=bool)
    if len(rows) <= n + 1:
        return mask
    rows = rows - rows.mean(axis=0)
    size = np.abs(rows).max(axis=0)
    # Squares of very large or small numbers are beyond the range of floats.
    left = rows / np.where(size > 0, size, 1.0)
    variances = np.einsum("ti,ti->i", left, left)
    left /= np.sqrt(np.where(variances > 0, variances, 1.0))
    for j in range(n):
        # Orthogonal to the columns before; without LAPACK, as everywhere in fits.
        remaining = np.einsum("t,t", left[:, j], left[:, j])
        mask[j] = variances[j] > 0 and remaining < _DETERMINED
        if remaining >= _DETERMINED:
            unit = left[:, j] / np.sqrt(remaining)
            left[:, j + 1 :] -= np.outer(unit, np.einsum("t,ti->i", unit, left[:, j + 1 :]))
    return mask


def dead_stretches(column: Floats) -> list[tuple[int, int]]:
    """First rows, and ends, of long stretches of one value that occurs nowhere else.

    A value that recurs belongs to the process: off, empty, clipped.  Columns that repeat values
    otherwise, have many such stretches, or most of their values in them, are piecewise constant,
    and have no dead stretch.  NaN interrupts no stretch.
    """
    rows = np.flatnonzero(~np.isnan(column))
    values = column[rows]
    begins = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    lengths = np.diff(begins, append=len(values))
    is_long = lengths >= _LEAST_STRETCH
    n_others, n_repeats = lengths[~is_long].sum(), (lengths - 1)[~is_long].sum()
    if (
        is_long.sum() > _MOST_STRETCHES
        or n_others < (1 - _MOST_DEAD) * len(values)
        or n_repeats > _REPEATED * n_others
    ):
        return []
    return [
        (int(rows[begin]), int(rows[begin + length - 1]) + 1)
        for begin, length in zip(begins[is_long], lengths[is_long], strict=True)
        if (values == values[begin]).sum() == length
    ]


def given_steps(value: ArrayLike, n_columns: int) -> Floats:
    """Steps of rounded columns from the parameter `resolution`, one per column."""
    expected = (
        '"auto", None, a number >= 0, or one per column: the step to which a column was '
        "rounded, 0 if it was not"
    )
    steps = column_values("resolution", value, n_columns, expected)
    if (steps < 0).any():
        raise ValueError(f"resolution={value!r}; expected {expected}.")
    return steps


def _named(labels: Sequence[str | int], mask: Flags, one: str, several: str) -> str:
    names = [repr(labels[c]) for c in np.flatnonzero(mask).tolist()]
    words = ("Columns", several) if len(names) > 1 else ("Column", one)
    return f"{words[0]} {', '.join(names)} of X {words[1]}"


def describe_rounding(labels: Sequence[str | int], steps: Floats, is_uniform: bool) -> list[str]:
    """Sentences about columns that were rounded."""
    found = [f"{labels[c]!r} {steps[c]:.4g}" for c in np.flatnonzero(steps).tolist()]
    if not found:
        return []
    normal = f"Normal noise of {NOISE_OF_STEPS} steps"
    noise = "Uniform noise of one step" if is_uniform else normal
    return [
        f"{noise} was added to the fit's copy of the rounded columns ({', '.join(found)}): "
        "repeated values would be states of their own. resolution=None leaves them as they are."
    ]


def describe_levels(labels: Sequence[str | int], deviations: Floats) -> list[str]:
    """Sentences about columns of levels."""
    found = [f"{labels[c]!r} {deviations[c]:.4g}" for c in np.flatnonzero(deviations).tolist()]
    if not found:
        return []
    return [
        f"Normal noise of {NOISE_OF_LEVELS} of the least gap was added to the fit's copy of the "
        f"columns of a few lasting values (standard deviations: {', '.join(found)}): exact values "
        "have no density. resolution=None leaves them as they are."
    ]


def describe_constant(labels: Sequence[str | int], mask: Flags) -> list[str]:
    """Warnings of constant columns."""
    if not mask.any():
        return []
    return [
        f"{_named(labels, mask, 'has', 'have')} always the same value; standard normal "
        "noise was added to the fit's copy. A constant says nothing about states: leave "
        "it out, or check how X was read."
    ]


def describe_determined(labels: Sequence[str | int], mask: Flags) -> list[str]:
    """Warnings of columns that other columns determine."""
    if not mask.any():
        return []
    return [
        f"{_named(labels, mask, 'is', 'are')} determined by the other columns (a double, "
        "a sum, shares); noise of a thousandth of the standard deviation was added to "
        "the fit's copy. Leave such columns out."
    ]


def describe_dead(
    labels: Sequence[str | int], dead: Sequence[tuple[int, int, int, float]]
) -> list[str]:
    """Warnings of constant stretches."""
    if not dead:
        return []
    places = [f"{labels[c]!r} in rows {start} to {end - 1}" for c, start, end, _ in dead]
    return [
        f"Columns of X have one value for {_LEAST_STRETCH} rows or more, as of a dead "
        f"channel: {some_of(places)}. Normal noise of the column's standard deviation "
        "was added to the fit's copy of these values, which would be states of their "
        "own. Set them to NaN, missing; resolution=None leaves them as they are."
    ]


def describe_repeats(X: Floats, starts: Integers, is_free: Flags) -> list[str]:
    """Warnings of rows that repeat the row before though some columns are free to vary."""
    is_repeated = (X[1:] == X[:-1]).all(axis=1)
    first = np.asarray(starts)
    is_repeated[first[first > 0] - 1] = False
    if not is_free.any() or is_repeated.sum() <= _REPEATED * len(X):
        return []
    return [
        "More than a fifth of the rows of X equal the row before in every column, though "
        "values lie on no grid: were they upsampled, or filled forward? Repeated rows "
        "become states of their own. Take every n-th row, or set filled ones to NaN."
    ]
