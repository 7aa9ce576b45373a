"""Tests of the frequencies of independent chains.

Draws of one chain are correlated, but chains are independent: only the variation between
chains is used.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class TotalVariation(NamedTuple):
    """Result of `total_variation_test`."""

    tv: float
    """Total variation distance between pooled frequencies and exact probabilities."""
    expected_tv: float
    """Its expectation under Monte Carlo error alone."""
    pvalue: float
    """By sign flips of the chains' deviations, small cells lumped."""
    n_cells: int
    """Cells after lumping."""
    effective_size: float
    """Number of independent draws that would have the same error."""


def total_variation_test(
    frequencies, exact, *, min_visits: float = 50, n_flips: int = 2000, seed: int = 0
) -> TotalVariation:
    """Compare the frequencies of independent chains with exact probabilities.

    If the chains are unbiased the deviation of each is about as likely as its negative,
    so the statistic can be compared with its values after random changes of sign.
    Visits of rare cells are too skewed for that; they are lumped into one cell.  If all
    chains stay in one cell, the p-value is the probability that one draw of each does.

    Parameters
    ----------
    frequencies : array-like of shape (n_chains, n_cells)
        Relative frequencies, or counts (each row is divided by its sum).
    exact : array-like of shape (n_cells,)
    min_visits : float
        Cells with fewer expected *effective* visits, over all chains, are lumped, with
        the next rarest if the lump has less than a fifth of that; if they are all, into
        two lumps of about equal probability.  The effective number comes from the
        variance between chains.
    """
    frequencies = np.asarray(frequencies, dtype=float)
    frequencies = frequencies / frequencies.sum(axis=1, keepdims=True)
    exact = np.asarray(exact, dtype=float)
    if not math.isclose(exact.sum(), 1, abs_tol=1e-6):
        raise ValueError("the exact probabilities do not sum to one")
    n_chains = len(frequencies)
    if n_chains < 8:
        raise ValueError("at least 8 chains are needed")

    deviations = frequencies - exact
    variance = frequencies.var(axis=0, ddof=1) / n_chains
    tv = np.abs(deviations.mean(axis=0)).sum() / 2
    expected = math.sqrt(2 / math.pi) * np.sqrt(variance).sum() / 2
    binomial = exact * (1 - exact)
    with np.errstate(divide="ignore", invalid="ignore"):
        own_size = np.where(variance > 0, binomial / variance, np.inf)
        effective_size = binomial.sum() / variance.sum()
    # Cells can mix more slowly than the average; a cell without visits has no variance.
    visits = exact * np.minimum(own_size, effective_size)
    n_small, least = np.count_nonzero(visits < min_visits), min_visits / 5
    if n_small:
        order = np.argsort(visits)
        n_lumped = max(n_small, 1 + int(np.searchsorted(visits[order].cumsum(), least)))
        kept = deviations[:, order[n_lumped:]]
        if n_small == len(order):
            n_lumped = 1 + int(abs(exact[order].cumsum() - 0.5).argmin())
            if visits[order[:n_lumped]].sum() >= least <= visits[order[n_lumped:]].sum():
                kept = deviations[:, order[n_lumped:]].sum(axis=1, keepdims=True)
        # (Minus the others: a lump of all cells has no deviation, not even by rounding.)
        deviations = np.column_stack([kept, -kept.sum(axis=1)])

    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(n_flips, n_chains))
    observed = np.abs(deviations.mean(axis=0)).sum() / 2
    flipped = np.abs(signs @ deviations / n_chains).sum(axis=1) / 2
    # The tolerance counts flips that only differ by rounding as ties.
    pvalue = (1 + np.sum(flipped >= observed * (1 - 1e-12))) / (1 + n_flips)
    only = np.flatnonzero(frequencies.min(axis=0) == 1)
    if only.size:
        pvalue = exact[only[0]] ** n_chains
    return TotalVariation(
        tv=float(tv),
        expected_tv=float(expected),
        pvalue=float(pvalue),
        n_cells=deviations.shape[1],
        effective_size=float(effective_size),
    )


def two_sample_test(first, second, *, n_permutations: int = 2000, seed: int = 0) -> float:
    """P-value that two groups of independent chains have the same distribution.

    Chains are permuted between the groups.  The statistic is the sum over columns of
    the absolute difference of the means, each in units of its standard deviation.

    Parameters
    ----------
    first, second : array-like of shape (n_chains, n_statistics) or (n_chains,)
        One row per chain, e.g. frequencies of cells or means of statistics.
    """
    first, second = (np.asarray(a, dtype=float) for a in (first, second))
    first, second = (a[:, None] if a.ndim == 1 else a for a in (first, second))
    pooled = np.concatenate([first, second])
    scale = pooled.std(axis=0)
    pooled = pooled[:, scale > 0] / scale[scale > 0]
    n = len(first)

    def statistic(rows):
        return np.abs(rows[:n].mean(axis=0) - rows[n:].mean(axis=0)).sum()

    rng = np.random.default_rng(seed)
    observed = statistic(pooled) * (1 - 1e-12)
    larger = sum(statistic(rng.permutation(pooled)) >= observed for _ in range(n_permutations))
    return float((1 + larger) / (1 + n_permutations))
