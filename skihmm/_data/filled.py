"""Gaps that were filled before the fit: by straight lines, or by the last value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skihmm._data.validation import is_missing
from skihmm._data.wrong_values import some_of
from skihmm._typing import Array, Flags, Floats, Integers

# Second differences that are zero up to this share of the usual one, or so many times the rounding
# of floats, belong to a line.  Noise has none, and rounding must be so many times smaller than the
# usual second difference.
_FLAT, _ROUNDING, _LEAST_CONTRAST = 1e-8, 8.0, 100.0
# Successive second differences of a filled gap, and rows of all of them together.
_LEAST_RUN, _LEAST_ROWS = 5, 10
# Share of rows on lines, and of short lines in them, above which lines are the process.
_MOST_FILLED, _MOST_SHORT = 0.5, 0.2
_SAME_SLOPE = 1e-6
# Ratio of the variances of differences and values below which a column is smooth, and
# usual steps that it jumps by after gaps that were filled by the last value, at least so
# many of them.
_SMOOTH, _LEAST_JUMP, _LEAST_JUMPS = 0.3, 2.0, 3


@dataclass(frozen=True)
class _Lines:
    """Stretches of a column on straight lines.

    Attributes
    ----------
    firsts, lasts : ndarray of int
        First and last rows.
    slopes : ndarray of float
        Change from row to row.
    are_flat : ndarray of bool
        Whether stretches have a single value.
    """

    firsts: Integers
    lasts: Integers
    slopes: Floats
    are_flat: Flags

    def part(self, mask: Flags) -> _Lines:
        """Select stretches."""
        return _Lines(*(each[mask] for each in vars(self).values()))


def _differences(column: Floats, starts: Integers, period: float) -> Floats:
    """Changes from row to row, NaN into first rows; of angles the shortest way."""
    change = np.diff(column, prepend=np.nan)
    change[np.asarray(starts)] = np.nan
    if np.isfinite(period):
        change -= period * np.rint(change / period)
    return change


def _find_lines(column: Floats, change: Floats, precision: float) -> tuple[_Lines, float] | None:
    """Lines in a column, and the tolerance; None where lines are of the process."""
    signed = np.diff(change)
    bend = np.abs(signed)
    known = bend[~np.isnan(bend)]
    size = np.nanmax(np.abs(column), initial=0.0)
    rounding = _ROUNDING * precision * size
    if not len(known) or np.median(known) <= _LEAST_CONTRAST * rounding:
        return None
    tolerance = max(_FLAT * float(np.median(known)), rounding)
    is_straight = np.append(bend <= tolerance, False)
    ends = np.flatnonzero(np.diff(is_straight, prepend=False))
    begins, ends = ends[::2], ends[1::2]
    is_long = ends - begins >= _LEAST_RUN
    n_long = (ends - begins)[is_long].sum()
    n_short = is_straight.sum() - n_long
    if n_long > _MOST_FILLED * len(known) or n_short > _MOST_SHORT * n_long:
        return None
    # The bend at t is between the changes into rows t and t + 1.
    firsts, lasts = begins[is_long] - 1, ends[is_long]
    slopes = np.array([change[a + 1 : b + 1].mean() for a, b in zip(firsts, lasts, strict=True)])
    are_flat = np.abs(slopes) <= tolerance
    # A line between two rows ends at them: at the end of a sequence a smoother made it.
    padded = np.append(change, np.nan)
    are_inside = ~np.isnan(padded[firsts] + padded[lasts + 1])
    # A decay to a level bends to one side, rounding to both.
    decay = [
        abs(np.sign(signed[a:b]).sum()) > 0.5 * (b - a)
        for a, b in zip(begins[is_long], ends[is_long], strict=True)
    ]
    lines = _Lines(firsts, lasts, slopes, are_flat)
    are_lines = (are_flat | are_inside) & ~np.array(decay, dtype=bool)
    return lines.part(are_lines), tolerance


def _recur(column: Floats, lines: _Lines, tolerance: float, is_angle: bool) -> Flags:
    """Mask of lines that the process has: a value or a slope that recurs.

    A value is off, empty, clipped, and a slope a constant speed.  A limit need not recur.
    Angles of zero are the turns of filled tracks.
    """
    found = np.zeros(len(lines.firsts), dtype=bool)
    limits = np.array([np.nanmin(column), np.nanmax(column)])
    slopes = np.where(lines.are_flat, np.nan, np.abs(lines.slopes))
    for i, (a, b) in enumerate(zip(lines.firsts, lines.lasts, strict=True)):
        if not lines.are_flat[i]:
            n_same = (np.abs(slopes / slopes[i] - 1) <= _SAME_SLOPE).sum()
            found[i] = n_same > 1
        elif not (is_angle and abs(column[b]) <= tolerance):
            n_same = (np.abs(column - column[b]) <= tolerance).sum()
            is_limit = (np.abs(limits - column[b]) <= tolerance).any()
            found[i] = is_limit or n_same > b - a + 1
    return found


def _have_jumps(column: Floats, change: Floats, flat: _Lines) -> bool:
    """Whether a column goes on after flat stretches as if it had moved meanwhile.

    Integrated columns, which stand still, go on by their usual steps.
    """
    inside = np.zeros(len(column), dtype=bool)
    for a, b in zip(flat.firsts, flat.lasts, strict=True):
        inside[a : b + 1] = True
    steps = change[~inside & ~np.isnan(change)]
    if not len(steps) or (steps >= 0).all() or (steps <= 0).all():
        return False
    if steps.var() > 2 * _SMOOTH * np.nanvar(column[~inside]):
        return True
    after = flat.lasts[flat.lasts + 1 < len(column)] + 1
    jumps = np.abs(change[after])
    jumps = jumps[~np.isnan(jumps)]
    usual = np.median(np.abs(steps))
    return len(jumps) >= _LEAST_JUMPS and bool(np.median(jumps) > _LEAST_JUMP * usual)


def filled_stretches(
    column: Floats,
    starts: Integers,
    period: float = np.inf,
    precision: float = float(np.finfo(float).eps),
) -> list[tuple[int, int]]:
    """First and last rows of gaps of a column that were filled.

    Noise never lies on a line.  Columns that are piecewise linear or constant throughout,
    on a grid, or return to a value or a slope, have none.

    Parameters
    ----------
    column : ndarray of float
        NaN is missing.
    starts : ndarray of int
        First rows of sequences.
    period : float, optional
        Period of angles.
    precision : float, optional
        Gap between 1 and the next number of the type that the column came in.

    Returns
    -------
    stretches : list of (int, int)
    """
    change = _differences(column, starts, period)
    found = _find_lines(column, change, precision)
    if found is None:
        return []
    lines, tolerance = found
    lines = lines.part(~_recur(column, lines, tolerance, np.isfinite(period)))
    flat = lines.part(lines.are_flat)
    if len(flat.firsts) and not _have_jumps(column, change, flat):
        lines = lines.part(~lines.are_flat)
    if (lines.lasts - lines.firsts + 1).sum() < _LEAST_ROWS:
        return []
    return list(zip(lines.firsts.tolist(), lines.lasts.tolist(), strict=True))


def describe_filled(
    X: Array, starts: Integers, labels: Sequence[str | int], periods: Floats
) -> list[str]:
    """Warning of gaps of columns of real numbers that were filled before the fit.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    starts : ndarray of int
        First rows of sequences.
    labels : sequence
        Names of the columns.
    periods : ndarray of shape (n_columns,)
        Period of angles; infinite for other columns.

    Returns
    -------
    texts : list of str
    """
    precision = float(np.finfo(X.dtype if X.dtype.kind == "f" else float).eps)
    places = []
    for label, column, period in zip(labels, X.T, periods, strict=True):
        is_known = ~is_missing(column)
        values = np.full(len(column), np.nan)
        values[is_known] = column[is_known].astype(np.float64)
        found = filled_stretches(values, starts, period, precision)
        places += [f"{label!r} in rows {first} to {last}" for first, last in found]
    if not places:
        return []
    return [
        "Columns of X lie on straight lines, as where gaps were filled by interpolation "
        f"or by the last value: {some_of(places)}. Filled rows become states of their "
        "own. Set them to NaN, missing."
    ]
