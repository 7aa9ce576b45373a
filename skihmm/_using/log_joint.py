"""Log joint probability of a draw, summed over seatings."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
from scipy.special import gammaln, loggamma, psi

from skihmm._records import SeatingRecord, TransitionsRecord
from skihmm._typing import Floats, Integers

# Up to so many customers, numbers of seatings come from a table.
_N_SMALL = 256
# Bisections of the interval of a radius.
_N_HALVINGS = 12


@cache
def _small_log_cycles() -> Floats:
    """Logs of ``|s(n, m)|`` for n and m up to ``_N_SMALL``."""
    table = np.full((_N_SMALL + 1, _N_SMALL + 1), -np.inf)
    table[0, 0] = 0.0  # no customers
    table[1, 1] = 0.0
    for n in range(1, _N_SMALL):
        # |s(n + 1, m)| = n |s(n, m)| + |s(n, m - 1)|
        table[n + 1, 1:] = np.logaddexp(np.log(n) + table[n, 1:], table[n, :-1])
    return table


def _large_log_cycles(n: Floats, m: Floats) -> Floats:
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
    values = np.empty(n.shape)
    # The standard deviation is at most the root of the mean.  Powers of two, so that many
    # pairs share their points.
    n_points = 2 ** np.ceil(np.log2(10 + 5 * np.sqrt(m))).astype(int)
    for count in np.unique(n_points):
        which = np.flatnonzero(n_points == count)
        # Half of the circle; the other half is its mirror image.
        z = r[which, None] * np.exp(1j * np.pi * (np.arange(count) + 0.5) / count)
        logs = loggamma(z + n[which, None]) - loggamma(z) - m[which, None] * np.log(z)
        values[which] = np.log(np.exp(logs - top[which, None]).real.mean(axis=1))
    return top + values


def log_cycles(n: Integers, m: Integers) -> Floats:
    """Logs of unsigned Stirling numbers of the first kind, ``|s(n, m)|``.

    There are n customers at m tables, ``1 <= m <= n``.
    """
    # n customers at n tables have one seating, with logarithm 0.
    logs = np.zeros(len(n))
    is_small = n <= _N_SMALL
    logs[is_small] = _small_log_cycles()[n[is_small], m[is_small]]
    one = ~is_small & (m == 1)
    logs[one] = gammaln(n[one].astype(float))
    large = ~is_small & (m > 1) & (m < n)
    if large.any():
        logs[large] = _large_log_cycles(n[large].astype(float), m[large].astype(float))
    return logs


def log_seatings(records: Iterable[SeatingRecord]) -> float:
    """Log probability of all seatings with the same table counts, relative to this one.

    The seating of a draw is one of many with the same table counts; they differ only in
    the assignment of customers to tables, which carries no information about the states
    and changes slowly.  Their probabilities are proportional to the product of
    ``(size - 1)!`` over tables, and their sum is a Stirling number for every cell.  The
    ratio, in nats, added to the log joint probability of the draw gives the sum.
    """
    seated = [record for record in records if len(record["sizes"])]
    if not seated:
        return 0.0
    # Draws hold small integers, which SciPy would convert to single precision.
    n = np.concatenate([record["n_customers"] for record in seated]).astype(np.int64)
    m = np.concatenate([record["n_tables"] for record in seated]).astype(np.int64)
    sizes = np.concatenate([record["sizes"] for record in seated]).astype(np.int64)
    return float(log_cycles(n, m).sum() - gammaln(sizes).sum())


def log_stays(record: TransitionsRecord) -> float:
    """Log of the number of ways to choose the stays among the self-transitions.

    All ways with the same number of stays of every state are equally probable, unless
    transitions depend on contexts.  The log is 0 with contexts, where the stays are those
    of the draw, with several stages, which determine them, and with inputs, where the
    joint probability is a sum over them already.
    """
    if "stays" not in record or {"contexts", "n_stages", "coins"} & record.keys():
        return 0.0
    stays = record["stays"].astype(float)
    draws = np.zeros(len(stays))
    loops = record["rows"] == record["dishes"]
    draws[record["dishes"][loops]] = record["n_customers"][loops]
    return float((gammaln(stays + draws + 1) - gammaln(stays + 1) - gammaln(draws + 1)).sum())
