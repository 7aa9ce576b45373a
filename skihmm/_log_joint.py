"""Log joint probability of a draw, summed over seatings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, loggamma, psi

# Up to so many customers, numbers of seatings come from a table.
_N_SMALL = 256
# Bisections of the interval of a radius.
_N_HALVINGS = 12


def _seatings(record: Any) -> Iterator[dict[str, Any]]:
    """Iterate over the seatings with tables in a record, with an emission's parts."""
    if not isinstance(record, dict):
        return
    if "sizes" in record and len(record["sizes"]):
        yield record
    for part in [*record.get("columns", ()), *record.get("parts", ())]:
        yield from _seatings(part)


@cache
def _small_log_cycles() -> NDArray[np.float64]:
    """Logs of ``|s(n, m)|`` for n and m up to ``_N_SMALL``."""
    table = np.full((_N_SMALL + 1, _N_SMALL + 1), -np.inf)
    table[0, 0] = 0.0  # no customers
    table[1, 1] = 0.0
    for n in range(1, _N_SMALL):
        # |s(n + 1, m)| = n |s(n, m)| + |s(n, m - 1)|
        table[n + 1, 1:] = np.logaddexp(np.log(n) + table[n, 1:], table[n, :-1])
    return table


def _large_log_cycles(
    n: NDArray[np.float64], m: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Logs of ``|s(n, m)|`` for 1 < m < n, each in a time of the order of the root of m.

    ``|s(n, m)|`` is the coefficient of ``z^m`` in ``Gamma(z + n) / Gamma(z)``, an
    integral over a circle around 0, which the mean over a few points of the circle equals
    to rounding.  Divided by their value at the real point r, the coefficients are the
    probabilities of the number of tables at concentration r; r is chosen such that m is
    the mean.
    """
    low, high = np.full(n.shape, np.log(1e-3)), 2 * np.log(n)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        r = np.exp(middle)
        is_low = r * (psi(r + n) - psi(r)) < m
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    r = np.exp((low + high) / 2)
    top = gammaln(r + n) - gammaln(r) - m * np.log(r)
    found = np.empty(n.shape)
    # The standard deviation is at most the root of the mean.  Powers of two, so that many
    # pairs share their points.
    n_points = 2 ** np.ceil(np.log2(10 + 5 * np.sqrt(m))).astype(int)
    for count in np.unique(n_points):
        which = np.flatnonzero(n_points == count)
        # Half of the circle; the other half is its mirror image.
        z = r[which, None] * np.exp(1j * np.pi * (np.arange(count) + 0.5) / count)
        logs = loggamma(z + n[which, None]) - loggamma(z) - m[which, None] * np.log(z)
        found[which] = np.log(np.exp(logs - top[which, None]).real.mean(axis=1))
    return top + found


def log_cycles(n: NDArray[Any], m: NDArray[Any]) -> NDArray[np.float64]:
    """Logs of unsigned Stirling numbers of the first kind, ``|s(n, m)|``.

    Parameters
    ----------
    n, m : ndarray of int
        Customers and tables, ``1 <= m <= n``.

    Returns
    -------
    logs : ndarray of float
    """
    # There is one seating at n tables, with logarithm 0.
    found = np.zeros(len(n))
    is_small = n <= _N_SMALL
    found[is_small] = _small_log_cycles()[n[is_small], m[is_small]]
    one = ~is_small & (m == 1)
    found[one] = gammaln(n[one].astype(float))
    large = ~is_small & (m > 1) & (m < n)
    if large.any():
        found[large] = _large_log_cycles(n[large].astype(float), m[large].astype(float))
    return found


def summed_lp(draw: Mapping[str, Any]) -> float:
    """Log joint probability of a draw, summed over seatings.

    The seating of a draw is one of many with the same table counts; they differ only in
    the assignment of customers to tables, which carries no information about the states
    and changes slowly.  Their probabilities are proportional to the product of
    ``(size - 1)!`` over tables, and their sum is a Stirling number for every cell.

    Parameters
    ----------
    draw : mapping
        Mapping with ``lp``, ``transitions`` and ``emission``.

    Returns
    -------
    lp : float
        Log probability of states, table counts and data given the hyperparameters, nats.
    """
    records = [*_seatings(draw["transitions"]), *_seatings(draw["emission"])]
    if not records:
        return float(draw["lp"])
    # Draws hold small integers, which SciPy would convert to single precision.
    n, m, sizes = (
        np.concatenate([record[key] for record in records]).astype(np.int64)
        for key in ("n_customers", "n_tables", "sizes")
    )
    return float(draw["lp"] + log_cycles(n, m).sum() - gammaln(sizes).sum())
