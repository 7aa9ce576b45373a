"""Missing entries of regressions on earlier rows, given all other entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded, solve_banded

from skihmm._typing import Array, Flags, Floats, Integers

# Added to the residual covariance of standardised columns, which may be singular.
_LEAST_RESIDUAL = 1e-10
# Numbers that are held at a time: by row, and by pair of entries of rows.
_MOST_ROWS, _MOST_PAIRS = 200_000, 2**21


@dataclass(frozen=True)
class Gaps:
    """Rows with missing entries, or whose earlier rows have some.

    Attributes
    ----------
    steps : ndarray of shape (n_steps,)
        Their indices, ascending.
    windows : ndarray of shape (n_steps, n_columns * (order + 1))
        Every row and the rows before it, the latest first; 0 where an entry is missing.
    entries : ndarray of shape (n_steps, n_columns * (order + 1))
        Numbers of the missing entries, by row and column; -1 for others.
    is_first : ndarray of shape (n_steps,), bool
        Rows without `order` rows before them in their sequence.
    bounds : ndarray of shape (n_gaps + 1,)
        Where gaps begin in `steps`, and its length.  Entries of two of them are
        independent given the states.
    """

    steps: Integers
    windows: Floats
    entries: Integers
    is_first: Flags
    bounds: Integers


def find_gaps(values: Floats, starts: Integers, order: int) -> Gaps:
    """List the rows whose likelihood depends on missing entries.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        Standardised; NaN is missing.
    starts : ndarray of shape (n_sequences,)
    order : int

    Returns
    -------
    gaps : Gaps
    """
    missing = np.isnan(values)
    t = np.arange(len(values))
    lengths = np.diff(starts, append=len(values))
    n_before = t - np.repeat(starts, lengths)
    is_touched = missing.any(axis=1)
    for lag in range(1, order + 1):
        is_touched |= np.roll(missing.any(axis=1), lag) & (n_before >= lag)
    numbers = np.full(values.shape, -1)
    numbers[missing] = np.arange(missing.sum())
    steps = np.flatnonzero(is_touched)
    windows, entries = [], []
    for lag in range(order + 1):
        is_inside = (n_before[steps] >= lag)[:, None]
        windows.append(np.where(is_inside, np.nan_to_num(values[steps - lag]), 0.0))
        entries.append(np.where(is_inside, numbers[steps - lag], -1))
    begins = (np.diff(steps, prepend=-2) > 1) | (n_before[steps] == 0)
    return Gaps(
        steps,
        np.hstack(windows),
        np.hstack(entries),
        n_before[steps] < order,
        np.append(np.flatnonzero(begins), len(steps)),
    )


def _solve(
    gaps: Gaps,
    rows: Integers,
    entries: Integers,
    labels: Integers,
    coefficients: Floats,
    covariances: Floats,
    generator: np.random.Generator | None,
) -> Floats:
    """Conditional mean, or a draw, of the entries of some of the rows."""
    n = covariances.shape[-1]
    # Noise is C (row, earlier rows) - intercept.
    C = np.concatenate(
        [np.tile(np.eye(n), (len(coefficients), 1, 1)), -coefficients[..., :-1]], axis=2
    )
    weighted = np.linalg.solve(covariances + _LEAST_RESIDUAL * np.eye(n), C)
    precisions = np.einsum("kia,kib->kab", C, weighted)
    shifts = np.einsum("kia,ki->ka", weighted, coefficients[..., -1])
    n_entries = int(entries.max()) + 1
    is_entry = entries >= 0
    lowest = np.where(is_entry, entries, n_entries).min(axis=1)
    band = int((entries.max(axis=1) - lowest).max(initial=0)) + 1
    # The upper triangle by diagonals: entries further apart than `order` rows are
    # independent given those between.
    matrix, target = np.zeros((band, n_entries)), np.zeros(n_entries)
    is_first = gaps.is_first[rows]
    # The first rows are at the columns' means, with their variances.
    first = entries[is_first][:, :n]
    matrix[-1, first[first >= 0]] = 1.0
    later = np.flatnonzero(~is_first)
    at_once = max(1, _MOST_PAIRS // entries.shape[1] ** 2)
    for begin in range(0, len(later), at_once):
        some = later[begin : begin + at_once]
        own, which = entries[some], labels[some]
        pull = shifts[which] - np.einsum(
            "rab,rb->ra", precisions[which], gaps.windows[rows[some]]
        )
        np.add.at(target, own[own >= 0], pull[own >= 0])
        upper = (own[:, :, None] >= 0) & (own[:, None, :] >= own[:, :, None])
        r, a, b = np.nonzero(upper)
        i, j = own[r, a], own[r, b]
        np.add.at(matrix, (band - 1 + i - j, j), precisions[which[r], a, b])
    growth = 1.0
    while True:
        try:
            factor = cholesky_banded(matrix, check_finite=False)
            break
        except LinAlgError:
            # Rounding errors, where long gaps are nearly undetermined.
            matrix[-1] *= 1.0 + 1e-12 * growth
            growth *= 10.0
    values: Floats = cho_solve_banded((factor, False), target, check_finite=False)
    if generator is not None:
        noise = generator.standard_normal(n_entries)
        values += solve_banded((0, band - 1), factor, noise, check_finite=False)
    return values


def draw_entries(
    gaps: Gaps,
    labels: Integers,
    coefficients: Floats,
    covariances: Floats,
    generator: np.random.Generator,
) -> Floats:
    """Draw all missing entries jointly, given the states and all other entries.

    Parameters
    ----------
    gaps : Gaps
    labels : ndarray of shape (n_steps,)
        States of ``gaps.steps``.
    coefficients : ndarray of shape (n_states, n_columns, n_columns * order + 1)
        Of the entries of the latest row first, and intercepts.
    covariances : ndarray of shape (n_states, n_columns, n_columns)
        Of the noise.
    generator : numpy.random.Generator

    Returns
    -------
    values : ndarray of shape (n_missing,)
        By row and column.
    """
    rows = np.arange(len(labels))
    return _solve(gaps, rows, gaps.entries, labels, coefficients, covariances, generator)


def expected_entries(
    gaps: Gaps, labels: Integers, coefficients: Floats, covariances: Floats
) -> Floats:
    """Average the conditional means of the missing entries over several paths.

    Parameters
    ----------
    gaps : Gaps
    labels : ndarray of shape (n_steps, n_paths)
        States of ``gaps.steps``.
    coefficients, covariances : ndarray
        As for :func:`draw_entries`.

    Returns
    -------
    values : ndarray of shape (n_missing,)
        By row and column.
    """
    totals = np.zeros(int(gaps.entries.max(initial=-1)) + 1)
    rows: list[NDArray[np.intp]] = []
    paths: list[Array] = []
    shares: list[float] = []

    def add() -> None:
        sizes = [int(gaps.entries[part].max()) + 1 for part in rows]
        lows = [int(own[own >= 0].min()) for own in (gaps.entries[r] for r in rows)]
        # Every gap has its own copies of the entries, one per path.
        shifts = np.cumsum([0, *np.subtract(sizes, lows)])
        entries = np.vstack(
            [
                np.where(gaps.entries[part] >= 0, gaps.entries[part] - low + shift, -1)
                for part, low, shift in zip(rows, lows, shifts[:-1], strict=True)
            ]
        )
        values = _solve(
            gaps,
            np.concatenate(rows),
            entries,
            np.concatenate(paths),
            coefficients,
            covariances,
            None,
        )
        for low, size, share, begin, end in zip(
            lows, sizes, shares, shifts[:-1], shifts[1:], strict=True
        ):
            totals[low:size] += share * values[begin:end]
        for pending in rows, paths, shares:
            pending.clear()

    n_rows = 0
    for begin, end in zip(gaps.bounds[:-1], gaps.bounds[1:], strict=True):
        own = labels[begin:end]
        counts = np.array([own.shape[1]])
        if (own == own[:, :1]).all():
            own = own[:, :1]
        else:
            own, counts = np.unique(own, axis=1, return_counts=True)
        for path, count in zip(own.T, counts, strict=True):
            rows.append(np.arange(begin, end))
            paths.append(path)
            shares.append(count / labels.shape[1])
            n_rows += end - begin
            if n_rows >= _MOST_ROWS:
                add()
                n_rows = 0
    if rows:
        add()
    return totals
