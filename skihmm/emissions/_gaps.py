"""Missing entries that are drawn, of linear Gaussian emissions."""

from __future__ import annotations

import numpy as np
from sklearn.impute import KNNImputer

from skihmm._typing import Flags, Floats, Integers

# Fits fill runs of missing entries of a column up to this length.  What is filled counts
# as data, and a long run in which nothing is observed would keep the labels that it has.
LONGEST_FILLED = 10
# Rows among which a row similar to an incomplete one is sought.
_N_SIMILAR = 2000


def filled_places(
    values: Floats, starts: Integers, order: int, every: bool = False
) -> tuple[Integers, Integers]:
    """Places of the missing entries that are drawn, by step and column.

    Without earlier rows, those of rows of which something is observed; with these, those
    after which something is.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
        NaN is missing.
    starts : ndarray of shape (n_sequences,)
    order : int
        Number of earlier rows.
    every : bool, default=False
        With earlier rows, also those of long runs.

    Returns
    -------
    steps, columns : ndarray of shape (n_filled,)
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
    values: Floats, starts: Integers, order: int, steps: Integers, columns: Integers
) -> Floats:
    """Values of missing entries before any are drawn.

    With earlier rows by linear interpolation; otherwise those of the most similar one of
    2,000 rows, because an interpolated row lies between the states.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
        NaN is missing.
    starts : ndarray of shape (n_sequences,)
    order : int
    steps, columns : ndarray of shape (n_filled,)
        Result of :func:`filled_places`.

    Returns
    -------
    filled : ndarray of shape (n_filled,)
    """
    if order == 0:
        rows, inverse = np.unique(steps, return_inverse=True)
        some = np.linspace(0, len(values) - 1, _N_SIMILAR).astype(int)
        imputer = KNNImputer(n_neighbors=1, keep_empty_features=True)
        imputer.fit(values[np.unique(some)])
        return np.asarray(imputer.transform(values[rows])[inverse, columns])
    filled = np.zeros(len(steps))
    # Between sequences lies so long a time that their ends are constant.
    time = np.arange(len(values), dtype=np.float64)
    time[starts] += 1e3 * len(values)
    time = np.cumsum(np.diff(time, prepend=0.0).clip(1.0))
    for column in np.unique(columns):
        known = np.flatnonzero(~np.isnan(values[:, column]))
        own = columns == column
        if len(known):
            filled[own] = np.interp(time[steps[own]], time[known], values[known, column])
    return filled
