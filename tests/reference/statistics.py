"""Tests of samples against exact laws, honest about autocorrelation.

Draws of one chain depend on each other in an unknown way, but whole chains are
independent: every test here uses only the variation between chains.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from skihmm.testing._statistics import total_variation_test, two_sample_test  # noqa: F401


class MeanTest(NamedTuple):
    """Result of `unbiased_mean_test`."""

    mean: float
    z: float
    pvalue: float


def frequency_table(chains: Iterable[Iterable], exact: Mapping) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of cells per chain, and the exact law in the same order.

    Parameters
    ----------
    chains : iterable of iterables of hashable
        The cell visited at each draw of each chain.
    exact : mapping from cell to probability

    Returns
    -------
    frequencies : ndarray of shape (n_chains, n_cells)
    probabilities : ndarray of shape (n_cells,)
    """
    cells = list(exact)
    rows = []
    for chain in chains:
        visits = Counter(chain)
        impossible = set(visits) - set(cells)
        if impossible:
            raise ValueError(f"visits of impossible cells, e.g. {impossible.pop()}")
        n = sum(visits.values())
        rows.append([visits[cell] / n for cell in cells])
    return np.array(rows), np.array([exact[cell] for cell in cells], dtype=float)


def frequencies_pvalue(counts: Mapping, probabilities: Mapping, least: float = 5.0) -> float:
    """P-value of the chi-square test of the counts of cells against their probabilities.

    Cells that are expected less often than `least` times are one.
    """
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert counts.keys() <= probabilities.keys()
    observed = np.array([counts.get(cell, 0) for cell in probabilities])
    expected = sum(counts.values()) * np.array([*probabilities.values()])
    rare = expected < least
    if rare.any():
        observed, expected = (
            np.append(values[~rare], values[rare].sum()) for values in (observed, expected)
        )
    return float(stats.chisquare(observed, expected).pvalue)


def cdf_frequencies(draws, cdf: Callable, n_bins: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies of bins of equal probability under a continuous law.

    Feed both results to `total_variation_test`.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
    cdf : callable
    """
    u = np.asarray(cdf(np.asarray(draws, dtype=float)))
    bins = np.minimum((u * n_bins).astype(int), n_bins - 1)
    frequencies = np.array([np.bincount(row, minlength=n_bins) for row in bins])
    return frequencies / u.shape[1], np.full(n_bins, 1 / n_bins)


def unbiased_mean_test(samples, exact: float) -> MeanTest:
    """Two-sided z-test that independent samples have a given mean."""
    samples = np.asarray(samples, dtype=float)
    error = samples.std(ddof=1) / math.sqrt(len(samples))
    difference = samples.mean() - exact
    if error == 0:
        same = math.isclose(samples.mean(), exact, rel_tol=1e-9)
        z = 0.0 if same else math.inf
    else:
        z = difference / error
    return MeanTest(float(samples.mean()), float(z), float(2 * stats.norm.sf(abs(z))))


def uniform_test(values) -> float:
    """Kolmogorov-Smirnov p-value that independent values are uniform on (0, 1)."""
    return float(stats.kstest(np.asarray(values, dtype=float), "uniform").pvalue)
