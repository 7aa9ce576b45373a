"""Rounded, constant, determined and wrong values of columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from skihmm._data.scales import constant_columns
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


def noise_of_rows(
    steps: Floats, deviations: Floats, n_rows: int, first_row: int, entropy: Sequence[int]
) -> Floats | None:
    """Noise of rows, a function of the entropy and of every row's number.

    `steps` are widths of uniform noise by column, `deviations` standard deviations of
    normal noise by column, or by row and column.  None if all are zero.
    """
    if not (steps.any() or deviations.any()):
        return None
    stream = np.random.PCG64(np.random.SeedSequence(list(entropy)))
    n = len(steps)
    stream.advance(2 * n * first_row)
    uniform = np.random.Generator(stream).random((n_rows, 2 * n))
    # A draw may be zero, whose normal quantile is infinite.
    normal = ndtri(np.maximum(uniform[:, n:], 2.0**-54))
    return np.asarray(steps * (uniform[:, :n] - 0.5) + deviations * normal)


def given_steps(value: ArrayLike, n_columns: int) -> Floats:
    """Widths of uniform noise from the parameter `resolution`, one per column."""
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


def describe_rounding(labels: Sequence[str | int], steps: Floats) -> list[str]:
    """Sentences about columns that were rounded."""
    found = [f"{labels[c]!r} {steps[c]:.4g}" for c in np.flatnonzero(steps).tolist()]
    if not found:
        return []
    return [
        "Uniform noise of the width of their resolution was added to the fit's copy of "
        f"the rounded columns ({', '.join(found)}): repeated values would be states of "
        "their own. resolution=None leaves them as they are."
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


def describe_repeats(X: Floats, starts: Integers, steps: Floats) -> list[str]:
    """Warnings of rows that repeat the row before though columns were not rounded."""
    is_free = (steps == 0) & ~constant_columns(X)
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
