"""R-hat, effective sample size and autocorrelation time of several chains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata

from skihmm._data.validation import as_array, check_choice
from skihmm._typing import Floats
from skihmm.metrics._autocorrelation import autocovariances

# Chains with fewer draws cannot be split in halves that have a variance.
MIN_DRAWS = 4
# The two quantiles of method="tail".
_TAILS = (0.05, 0.95)


def _halves(chains: Floats) -> Floats:
    """Split chains into halves, without the middle draw of an odd number."""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def rank_normalised(chains: Floats) -> Floats:
    """Normal scores of the ranks among all draws, ties with their average rank."""
    # Blom's offset, as in Vehtari et al.
    shares = (rankdata(chains) - 0.375) / (chains.size + 0.25)
    return ndtri(shares).reshape(chains.shape)


def _variance_ratio(chains: Floats) -> float:
    """R-hat of the chains as they are: the root of total over within-chain variance."""
    n = chains.shape[1]
    if not np.ptp(chains, axis=1).any():
        # All chains are constant, at one value or at several values.
        return float("inf") if np.ptp(chains) else float("nan")
    within = np.var(chains, axis=1, ddof=1).mean()
    between = np.var(chains.mean(axis=1), ddof=1)
    return float(np.sqrt((n - 1) / n + between / within))


def _rank_rhat(chains: Floats) -> float:
    halves = _halves(chains)
    folded = np.abs(halves - np.median(halves))
    ratios = [_variance_ratio(rank_normalised(part)) for part in (halves, folded)]
    # Two values at the same distance from the median are constant when folded.
    known = [ratio for ratio in ratios if not np.isnan(ratio)]
    return max(known, default=float("nan"))


def _independent_draws(chains: Floats) -> float:
    """Draws divided by Geyer's estimate of their integrated autocorrelation time."""
    n_chains, n = chains.shape
    if not np.ptp(chains):
        return float("nan")
    covariances = autocovariances(chains).mean(axis=0)
    variance = covariances[0]
    within = variance * n / (n - 1)
    if n_chains > 1:
        # The variance between chains counts as correlation at every lag.
        variance = variance + np.var(chains.mean(axis=1), ddof=1)
    rho = 1 - (within - covariances) / variance
    rho[0] = 1
    # Sums of two neighbouring lags are positive and decrease in a reversible chain; they
    # are truncated where they are no longer positive, at the latest before the last lag.
    n_pairs = max((n - 1) // 2, 1)
    even, odd = rho[0::2][:n_pairs], rho[1::2][:n_pairs]
    sums = even + odd
    end = int(np.argmax(np.append(sums[:-1] <= 0, True)))
    decreasing = np.minimum.accumulate(sums[:end])
    # The first lag that is left out counts once if it is positive, which is more precise
    # where correlations alternate.
    time = -1 + 2 * decreasing.sum() + max(even[end], 0.0)
    # Upper limit for alternating chains, as in Vehtari et al.
    n_all = n_chains * n
    return float(n_all / max(time, 1 / np.log10(n_all)))


def _bulk(chains: Floats) -> float:
    return _independent_draws(rank_normalised(_halves(chains)))


def _tail(chains: Floats) -> float:
    """Smaller value of both quantiles, without quantiles equal to an extreme value."""
    below = [(chains <= q).astype(float) for q in np.quantile(chains, _TAILS)]
    worths = [_independent_draws(_halves(part)) for part in below]
    known = [worth for worth in worths if not np.isnan(worth)]
    return min(known, default=float("nan"))


def _mean(chains: Floats) -> float:
    return _independent_draws(_halves(chains))


_ESS = {"bulk": _bulk, "tail": _tail, "mean": _mean}


def _complete_chains(values: ArrayLike) -> Floats:
    """Cut chains to the shortest chain, without chains that have no draw."""
    values = as_array("values", values)
    if values.ndim < 2 or values.dtype.kind not in "biuf":
        raise ValueError(
            f"values has shape {values.shape} and type {values.dtype}; expected numbers "
            "of shape (n_chains, n_draws, ...). (One chain alone: values[None].)"
        )
    values = values.astype(np.float64)
    present = ~np.isnan(values).all(axis=tuple(range(2, values.ndim)))
    n_draws = np.zeros(len(values), dtype=int)
    if present.size:
        last = values.shape[1] - np.argmax(present[:, ::-1], axis=1)
        n_draws = np.where(present.any(axis=1), last, 0)
    chains = np.flatnonzero(n_draws)
    shortest = int(n_draws[chains].min()) if len(chains) else 0
    values = values[chains, :shortest]
    if not np.isfinite(values).all():
        raise ValueError(
            "values has NaN or infinity among the draws of a chain; expected finite "
            "numbers. (NaN may only stand at the end of chains that have fewer draws.)"
        )
    return values


def _of_every_quantity(function: Callable[[Floats], float], values: ArrayLike) -> float | Floats:
    """Apply a function of (n_chains, n_draws) along all further dimensions."""
    values = _complete_chains(values)
    shape = values.shape[2:]
    found = np.full(shape, np.nan)
    if values.shape[1] >= MIN_DRAWS:
        for index in np.ndindex(shape):
            found[index] = function(values[:, :, *index])
    return found if shape else float(found)


def rhat(values: ArrayLike) -> float | Floats:
    """Rank-normalised split R-hat: agreement of chains with one another and in time.

    Every chain is split into two halves.  R-hat is the root of the variance of all draws
    over the variance within halves.  It is 1 if all halves have the same distribution,
    and larger if chains are in different modes or not yet stationary.  The result is the
    larger of two values: from the ranks of the draws, and from the ranks of their
    distances to the median, for different spreads.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, ...)
        Values without dependence on labels of states, such as ``draws_.lp``.  Shorter
        chains end with NaN, and all chains are cut to the shortest chain.  Chains without
        any draw are left out.  ``draws_.n_states`` is filled with -1 instead: use
        ``draws_.to_dict()["posterior"]["n_states"]``.

    Returns
    -------
    rhat : float or ndarray of shape (...)
        NaN if all draws are equal, or if a chain has fewer than four draws.  Infinity if
        halves are constant and differ.

    Raises
    ------
    ValueError
        If values are not numbers of this shape, or not finite.

    See Also
    --------
    effective_sample_size : Number of independent draws with the same precision.

    References
    ----------
    A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner,
    "Rank-Normalization, Folding, and Localization: An Improved R-hat for Assessing
    Convergence of MCMC", Bayesian Analysis 16(2), 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.metrics import rhat
    >>> noise = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(rhat(noise), 2)
    1.0
    >>> round(rhat(noise + [[0], [0], [0], [2]]), 2)  # the last chain is elsewhere
    1.34
    """
    return _of_every_quantity(_rank_rhat, values)


def effective_sample_size(values: ArrayLike, method: str = "bulk") -> float | Floats:
    """Number of independent draws with the precision of the draws of all chains.

    It accounts for autocorrelation within chains and differences between them.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, ...)
        See :func:`rhat`, with NaN at the end of shorter chains.
    method : {"bulk", "tail", "mean"}, default="bulk"
        "bulk": of the ranks, for the centre of the distribution, also without finite
        variance.  "tail": the smaller one of the 5 % and 95 % quantiles.  "mean": of the
        values, for the standard error of their mean,
        ``values.std() / sqrt(effective_sample_size(values, "mean"))``.

    Returns
    -------
    size : float or ndarray of shape (...)
        At most ``n * log10(n)`` for n draws in all: alternating draws can be more precise
        than independent ones.  NaN if all draws are equal (with "tail", also if both
        quantiles are the largest value), or if a chain has fewer than four.

    Raises
    ------
    ValueError
        If values are not numbers of this shape, or not finite, or the method is unknown.

    See Also
    --------
    integrated_autocorr_time : Draws per independent draw.

    References
    ----------
    A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner,
    "Rank-Normalization, Folding, and Localization: An Improved R-hat for Assessing
    Convergence of MCMC", Bayesian Analysis 16(2), 2021.

    C. J. Geyer, "Practical Markov Chain Monte Carlo", Statistical Science 7(4), 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.metrics import effective_sample_size
    >>> steps = np.random.default_rng(0).normal(size=(4, 25_000, 2))
    >>> steps[:, 1:, 1] += steps[:, :-1, 1]  # neighbours are correlated
    >>> effective_sample_size(steps).round(-4)
    array([100000.,  50000.])
    """
    check_choice("method", method, tuple(_ESS))
    return _of_every_quantity(_ESS[method], values)


def integrated_autocorr_time(values: ArrayLike) -> float | Floats:
    """Integrated autocorrelation time: draws per independent draw.

    One plus twice the sum of the autocorrelations, by Geyer's estimate over all chains:
    the number of draws divided by :func:`effective_sample_size` with ``method="mean"``.
    Independent draws have 1.  :func:`autocorrelation_time`, the paper's definition for
    one chain, is half of it.

    Parameters
    ----------
    values : array-like of shape (n_chains, n_draws, ...)
        See :func:`rhat`.

    Returns
    -------
    time : float or ndarray of shape (...)
        In draws.  NaN if all draws are equal, or if a chain has fewer than four draws.

    Raises
    ------
    ValueError
        If values are not numbers of this shape, or not finite.

    See Also
    --------
    effective_sample_size : Number of independent draws.
    autocorrelation_time : Time of one chain.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.metrics import integrated_autocorr_time
    >>> chain = np.repeat(np.random.default_rng(0).normal(size=20_000), 2)
    >>> round(integrated_autocorr_time(chain[None]), 1)
    2.0
    """
    return _of_every_quantity(lambda chains: chains.size / _mean(chains), values)
