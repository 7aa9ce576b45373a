"""Missing entries that are drawn, of linear Gaussian emissions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import numpy as np
from threadpoolctl import ThreadpoolController

from skihmm._typing import Flags, Floats, Integers
from skihmm.core._emission import EmissionStats

# Fits fill runs of missing entries of a column up to this length.  Filled entries count as data,
# and a long run without observations would keep its labels.
LONGEST_FILLED = 10
# Rows among which a row similar to an incomplete one is sought, of so many rows at a
# time: the distances take a quarter of a MB.  (Errors of the entries are not smaller with
# 1,000 or 2,000 on four states of six columns: 2.42, 2.55, 2.60.)
_N_SIMILAR, _CHUNK = 500, 64
# Squared distance of rows without a common column, times the number of rows between.
_NONE_COMMON = 1e9
_LIMITING = threading.Lock()


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads of NumPy, SciPy and scikit-learn; to find them takes 3 ms."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy and scikit-learn compute in one thread.

    The order of sums of several threads varies, and on busy processors threads wait for each other
    (the nearest rows of 20,000: .45 s of CPU, otherwise up to 9 s).  The limits hold for the
    process: chains that run as threads take turns, or they would restore another chain's limits.
    """
    with _LIMITING, _libraries().limit(limits=1):
        yield


def open_gaps(
    stats: EmissionStats, starts: Integers, every: bool = False
) -> tuple[Integers, Integers]:
    """Fill the missing entries of :func:`filled_places`, with zeros before others are set.

    Returns
    -------
    steps, columns : ndarray of shape (n_filled,)
    """
    nowhere: Integers = np.empty(0, dtype=np.intp)
    found, first = [(nowhere, nowhere)], 0
    for part in stats.leaves:
        n, order = part.n_columns, part.gap_order
        if order >= 0:
            steps, columns = filled_places(part.data[:, :n], starts, order, every)
            found.append((steps, columns + first))
            if len(steps):
                ends = np.append(starts[1:], len(part.data))
                part.fill(steps, columns, ends[np.searchsorted(ends, steps, side="right")])
        first += n
    steps, columns = map(np.concatenate, zip(*found, strict=True))
    return steps, columns


def first_filled(stats: EmissionStats, starts: Integers) -> Floats:
    """Values of these entries before any are drawn: what the states emit."""
    found = [np.empty(0)]
    for part in stats.leaves:
        if part.places is not None:
            values = part.data[:, : part.n_columns]
            if part.effects is not None:
                values = part.effects.without(values, part.of_draws)
            found.append(
                first_fillings(values, starts, part.gap_order, *part.places, part.is_stopped)
            )
    return np.concatenate(found)


def filled_places(
    values: Floats, starts: Integers, order: int, every: bool = False
) -> tuple[Integers, Integers]:
    """Places of the missing entries that are drawn, by step and column.

    Without earlier rows (`order`), the missing entries of partly observed rows; with earlier rows,
    the missing entries before an observation, in long runs only with `every`.
    """
    missing = np.isnan(values)
    is_empty: Flags = np.asarray(missing.all(axis=1))
    if order == 0:
        missing[is_empty] = False
    elif missing.any():
        for start, stop in zip(starts, [*starts[1:], len(values)], strict=True):
            while stop > start and is_empty[stop - 1]:
                stop -= 1
                missing[stop] = False
        for column in [] if every else missing.T:
            is_new = np.diff(column, prepend=False)
            is_new[starts] = True
            lengths = np.diff(np.flatnonzero(is_new), append=len(column))
            column &= np.repeat(lengths, lengths) <= LONGEST_FILLED
    steps, columns = np.nonzero(missing)
    return steps, columns


def first_fillings(
    values: Floats,
    starts: Integers,
    order: int,
    steps: Integers,
    columns: Integers,
    is_stopped: Callable[[], bool] | None = None,
) -> Floats:
    """Values of missing entries before any are drawn.

    With earlier rows by linear interpolation; otherwise from the most similar one of 500 rows that
    have the entry, because an interpolated row lies between the states.  They are at the `steps`
    and `columns` of :func:`filled_places`, 0 in columns without observations.  True of `is_stopped`
    raises KeyboardInterrupt.
    """
    if order == 0:
        with one_thread():
            return _similar_fillings(values, steps, columns, is_stopped)
    filled = np.zeros(len(steps))
    # Between sequences lies so long a time that their ends are constant.
    time = np.arange(len(values), dtype=np.float64)
    time[starts] += 1e3 * len(values)
    time = np.cumsum(np.diff(time, prepend=0.0).clip(1.0))
    for column in np.unique(columns):
        known = np.flatnonzero(~np.isnan(values[:, column]))
        at = columns == column
        if len(known):
            filled[at] = np.interp(time[steps[at]], time[known], values[known, column])
    return filled


def _similar_fillings(
    values: Floats,
    steps: Integers,
    columns: Integers,
    is_stopped: Callable[[], bool] | None,
) -> Floats:
    """Entries of the nearest of 500 rows, by the mean square over common columns."""
    filled = np.zeros(len(steps))
    some = np.unique(np.linspace(0, len(values) - 1, _N_SIMILAR).astype(int))
    donors = values[some]
    is_seen = ~np.isnan(donors)
    n_seen = np.maximum(is_seen.sum(axis=0), 1)
    means = np.where(is_seen, donors / n_seen, 0.0).sum(axis=0)
    scales = np.sqrt(np.where(is_seen, (donors - means) ** 2 / n_seen, 0.0).sum(axis=0))
    scales[scales == 0] = 1.0
    z = np.where(is_seen, (donors - means) / scales, 0.0)
    is_absent = np.where(is_seen.T, 0.0, np.inf)
    n_values = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    nearest = np.where(is_seen, donors, np.nansum(values, axis=0) / n_values)
    # Transposed, squares of differences are three products of matrices.
    is_common, parts = is_seen.T.astype(float), np.hstack([is_seen, z**2, -2 * z]).T
    # Every row once, with its entries; steps increase.
    edges = np.flatnonzero(np.diff(steps, prepend=-1))[::_CHUNK].tolist()
    for begin, end in pairwise([*edges, len(steps)]):
        if is_stopped is not None and is_stopped():
            raise KeyboardInterrupt
        rows, index = np.unique(steps[begin:end], return_inverse=True)
        is_known = ~np.isnan(values[rows])
        z = np.where(is_known, (values[rows] - means) / scales, 0.0)
        n_common = is_known.astype(float) @ is_common
        distances = np.hstack([z**2, is_known, z]) @ parts
        alone, others = np.nonzero(n_common == 0)
        distances[alone, others] = _NONE_COMMON * (1.0 + abs(rows[alone] - some[others]))
        n_common[alone, others] = 1.0
        distances /= n_common
        of = columns[begin:end]
        near = (distances[index] + is_absent[of]).argmin(axis=1)
        filled[begin:end] = nearest[near, of]
    return filled
