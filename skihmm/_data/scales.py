"""Means, variances and constancy of columns of numbers; NaN is missing."""

from __future__ import annotations

import numpy as np

from skihmm._data.validation import LEAST_SIZE
from skihmm._typing import Flags, Floats


def column_means(X: Floats) -> Floats:
    """Mean of every column, 0 without observations."""
    observed = ~np.isnan(X)
    n = np.maximum(observed.sum(axis=0), 1)
    # Divided before summation, because sums of numbers near the largest float overflow.
    return np.where(observed, X / n, 0.0).sum(axis=0)


def column_variances(X: Floats) -> Floats:
    """Variance of every column; where it is zero, a value of the data's magnitude."""
    means = column_means(X)
    variances = column_means((X - means) ** 2)
    size = np.where(means != 0, np.maximum(np.abs(means), LEAST_SIZE), 1.0)
    # The variance of a constant column is rounding error.
    is_constant = variances <= (1e-13 * size) ** 2
    return np.where(is_constant, (0.1 * size) ** 2, variances)


def constant_columns(X: Floats, least: float = 0.0) -> Flags:
    """Mask of columns whose values, two or more, differ by rounding errors, or `least`, at most."""
    observed = ~np.isnan(X)
    low = np.where(observed, X, np.inf).min(axis=0, initial=np.inf)
    high = np.where(observed, X, -np.inf).max(axis=0, initial=-np.inf)
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(invalid="ignore"):
        is_flat = high - low <= np.maximum(1e-13 * size, least)
    return np.asarray((observed.sum(axis=0) > 1) & is_flat)
