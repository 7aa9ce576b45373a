"""Log joint probability of a draw, summed over seatings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, loggamma, polygamma, psi

from skihmm._records import EmissionRecord, SeatingRecord, TransitionsRecord, records_of_parts
from skihmm._typing import Floats, Integers

# Up to so many customers, numbers of seatings come from a table.
_N_SMALL = 256
# Bisections of the interval of a radius.
_N_HALVINGS = 12
# Steps in the search for the mode of a base distribution, and the change of a share at its end.
_MOST_STEPS, _LEAST_CHANGE = 200, 1e-7
# A mass that is as many times the number of customers has a table for every customer.
_LARGE = 1e6


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


def _log_rise(x: ArrayLike, n: ArrayLike) -> Floats:
    """Logs of ``Gamma(x + n) / Gamma(x)``, and of ``Gamma(n)`` where x is 0."""
    x, n = np.asarray(x, dtype=float), np.asarray(n, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        usual = gammaln(x + n) - np.where(x > 0, gammaln(x), 0.0)
        return np.where(x > _LARGE * n, n * np.log(x), usual)


def _expected_tables(n: Floats, mass: Floats) -> Floats:
    """Expected numbers of tables of n customers at dishes of these masses.

    They are sums of ``mass / (mass + i)`` over customers ``i < n``.
    """
    # Digamma functions cancel where the mass is large; then every customer has a table.
    is_large = mass > _LARGE * n
    x = np.where(is_large, 1.0, mass)
    return np.where(is_large, n, x * (psi(x + n) - psi(x)))


def _without_variances(n: Floats, mass: Floats) -> Floats:
    """These numbers less their variances: sums of the squares of ``mass / (mass + i)``."""
    is_large = mass > _LARGE * n
    x = np.where(is_large, 1.0, mass)
    return np.where(is_large, n, x**2 * (polygamma(1, x) - polygamma(1, x + n)))


def log_table_counts(
    record: SeatingRecord, alpha: float, gamma: float, n_dishes: int | None = None
) -> float:
    """Log probability of the table counts of a franchise, given its customers.

    Table counts of a draw are one of many possibilities for the same path, with an entropy of
    about 1 nat a cell.  The weights of all of them sum to an integral over the base distribution
    ``b``: the numbers of tables of cells are independent given ``b``, with weights
    ``|s(n, m)| (alpha b)^m`` that sum to ``Gamma(alpha b + n) / Gamma(alpha b)``.  The integral is
    Laplace's, relative to the Dirichlet distribution with the expected numbers of tables, for
    which it is exact.  Errors in small franchises, by enumeration: below 0.1 nats of two dishes,
    0.2 of four and 0.4 of six.

    Parameters
    ----------
    record : SeatingRecord
    alpha, gamma : float
        Concentrations of the restaurants and of their base distribution.
    n_dishes : int, optional
        Number of dishes, equally probable a priori; by default infinitely many.
    """
    dishes = record["dishes"].astype(np.intp)
    n, m = record["n_customers"].astype(float), record["n_tables"].astype(float)
    if n_dishes is None:
        # The last share is the share of all new dishes.
        prior = np.append(np.zeros(int(dishes.max()) + 1), gamma)
    else:
        prior = np.full(n_dishes, gamma / n_dishes)
    size, gamma = len(prior), prior.sum()
    of_dishes = np.bincount(dishes, m, size)
    log_these = log_cycles(n.astype(np.int64), m.astype(np.int64)).sum() + m.sum() * np.log(alpha)
    log_these += _log_rise(prior, of_dishes).sum() - _log_rise(gamma, m.sum())
    for _ in range(_MOST_STEPS):
        share = (prior + of_dishes) / (gamma + of_dishes.sum())
        tables = _expected_tables(n, alpha * share[dishes])
        of_dishes = np.bincount(dishes, tables, size)
        counts = prior + of_dishes
        if abs(counts / counts.sum() - share).max() < _LEAST_CHANGE:
            break
    log_all = _log_rise(alpha * share[dishes], n).sum() - (of_dishes * np.log(share)).sum()
    log_all += _log_rise(prior, of_dishes).sum() - _log_rise(gamma, of_dishes.sum())
    # Curvature in the logs of all shares but the largest, relative to the Dirichlet distribution:
    # a diagonal and a matrix of rank two.
    kept = np.arange(size) != share.argmax()
    spread = np.bincount(dishes, tables - _without_variances(n, alpha * share[dishes]), size)
    diagonal = counts[kept] - spread[kept]
    sides = np.column_stack([spread[kept], share[kept]])
    middle = np.array([[0.0, 1.0], [1.0, -counts.sum() - spread.sum()]])
    inner = np.linalg.det(np.eye(2) + middle @ (sides.T / diagonal) @ sides) / share.max()
    log_all -= 0.5 * (np.log(diagonal / counts[kept]).sum() + np.log(inner))
    return float(log_these - log_all)


def log_franchises(
    transitions: TransitionsRecord, emission: EmissionRecord, n_symbols: Sequence[Sequence[int]]
) -> float:
    """Log probability of the table counts of a draw, given all customers.

    It is 0 where contexts make a tree of restaurants: their table counts stay part of the draw.

    Parameters
    ----------
    transitions, emission : TransitionsRecord, EmissionRecord
    n_symbols : sequence of sequence of int
        By part of the emission, numbers of symbols of its columns.
    """
    return sum(log_table_counts(*one) for one in _franchises(transitions, emission, n_symbols))


def _franchises(
    transitions: TransitionsRecord, emission: EmissionRecord, n_symbols: Sequence[Sequence[int]]
) -> Iterator[tuple[SeatingRecord, float, float, int | None]]:
    if "levels" not in transitions:
        yield transitions, transitions["alpha"], transitions["gamma"], None
    for part, sizes in zip(records_of_parts(emission), n_symbols, strict=True):
        if "columns" not in part or part.get("levels"):
            continue
        for column, size in zip(part["columns"], sizes, strict=True):
            if len(column["sizes"]):
                yield column, part["alpha"], part["gamma"], size


def log_stays(record: TransitionsRecord) -> float:
    """Log of the number of ways to choose the stays among the self-transitions.

    All ways with the same number of stays of every state are equally probable, unless
    transitions depend on contexts.  The log is 0 with contexts, where the stays are those
    of the draw, and with inputs, where the joint probability is a sum over them already.
    """
    if "stays" not in record or {"contexts", "coins"} & record.keys():
        return 0.0
    stays = record["stays"].astype(float)
    draws = np.zeros(len(stays))
    loops = record["rows"] == record["dishes"]
    draws[record["dishes"][loops]] = record["n_customers"][loops]
    return float((gammaln(stays + draws + 1) - gammaln(stays + 1) - gammaln(draws + 1)).sum())
