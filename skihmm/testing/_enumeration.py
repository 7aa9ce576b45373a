"""Exact posteriors of small models, by enumeration of all partitions of the steps.

The model is the hidden Markov model with a hierarchical Chinese restaurant process
prior of Makino, Takei, Sato and Mochihashi (2011), arXiv 1106.0474.  With unsigned
Stirling numbers of the first kind ``S(n, m)`` (the number of ways to seat n customers
at m tables, weighted by the orders within the tables) the seating sums out::

    p(x) = sum over 1 <= m_jk <= n_jk of
           prod_j [Gamma(alpha) / Gamma(alpha + n_j) prod_k S(n_jk, m_jk) alpha^m_jk]
           * Gamma(gamma) / Gamma(gamma + m) prod_k gamma Gamma(m_k)

where restaurant j is a state or the start restaurant shared by all sequences.

States are numbered by first appearance, so that a tuple of labels *is* a partition.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache, cached_property

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

START = "*"
"""Name of the restaurant from which the first step of every sequence is drawn."""


# -- partitions and counts ------------------------------------------------------------


def set_partitions(n_steps: int) -> Iterator[tuple[int, ...]]:
    """Iterate over all restricted growth strings, i.e. all partitions of the steps."""
    if n_steps == 0:
        yield ()
        return
    for head in set_partitions(n_steps - 1):
        for label in range(max(head, default=-1) + 2):
            yield (*head, label)


@cache
def stirling(n: int, m: int) -> int:
    """Unsigned Stirling number of the first kind."""
    if n == 0 or m == 0:
        return int(n == m)
    return stirling(n - 1, m - 1) + (n - 1) * stirling(n - 1, m)


def transition_counts(x: Sequence, starts: Iterable[int] = (0,)) -> Counter:
    """Transition counts ``{(restaurant, dish): n_jk}`` of a label sequence."""
    first = set(starts)
    if len(x) and 0 not in first:
        raise ValueError("the first step must start a sequence")
    return Counter((START if t in first else x[t - 1], x[t]) for t in range(len(x)))


def as_rows(y) -> list[tuple]:
    """Observations as one tuple per step, ``None`` for a missing symbol."""

    def symbol(value):
        if value is None or value != value or value < 0:
            return None
        return int(value)

    return [tuple(symbol(v) for v in np.atleast_1d(np.asarray(row, dtype=object))) for row in y]


def convolve(left: dict, right: dict) -> dict:
    """Product of two polynomials, each ``{power: coefficient}``."""
    product: dict = defaultdict(float)
    for (i, a), (j, b) in itertools.product(left.items(), right.items()):
        product[i + j] = product[i + j] + a * b
    return dict(product)


def stirling_polynomial(counts: Iterable[int]) -> dict[int, int]:
    """Numbers of seatings of several groups of customers, by total number of tables."""
    result: dict = {0: 1}
    for n in counts:
        result = convolve(result, {m: stirling(n, m) for m in range(1, n + 1)})
    return result


def log_crp(concentration, sizes: Iterable[int]):
    """``sum_j log Gamma(c) / Gamma(c + n_j)``; the concentration may be an array."""
    return sum(
        (gammaln(concentration) - gammaln(concentration + n) for n in sizes),
        np.zeros_like(concentration, dtype=float),
    )


def row_sizes(counts: dict) -> list[int]:
    """Customers per restaurant of ``{(restaurant, dish): n}``."""
    sizes: Counter = Counter()
    for (row, _), n in counts.items():
        sizes[row] += n
    return list(sizes.values())


# -- prior of a partition -------------------------------------------------------------


@cache
def prior_parts(x: tuple, starts: tuple):
    """Restaurant sizes, number of states and seating weights by total tables.

    ``p(x, m)`` depends on the concentrations only through the first two and ``m``;
    the weight is the sum over table counts of ``prod S(n_jk, m_jk) prod Gamma(m_k)``.
    """
    counts = transition_counts(x, starts)
    weights: dict = {0: 1}
    dishes = {dish for _, dish in counts}
    for k in dishes:
        dish = stirling_polynomial(n for (_, d), n in counts.items() if d == k)
        # The m_k tables are the customers of one table of the top restaurant.
        weights = convolve(weights, {m: w * math.factorial(m - 1) for m, w in dish.items()})
    return tuple(row_sizes(counts)), len(dishes), weights


def log_prior_by_tables(
    x: Sequence[int], starts: Iterable[int] = (0,), alpha=1.0, gamma=1.0
) -> dict[int, float]:
    """``{m: log p(x, m)}`` with m the total number of tables of all restaurants."""
    sizes, n_dishes, weights = prior_parts(tuple(x), tuple(starts))
    return {
        m: float(
            log_crp(alpha, sizes)
            + m * math.log(alpha)
            + log_crp(gamma, [m])
            + n_dishes * math.log(gamma)
            + math.log(weight)
        )
        for m, weight in weights.items()
    }


# -- emissions ------------------------------------------------------------------------


@dataclass(frozen=True)
class HCRPEmission:
    """Symbols from a hierarchical CRP whose root base is uniform over the symbols.

    Several columns are independent given the state: each has its own franchise.
    """

    n_symbols: int
    alpha: float = 1.0
    gamma: float = 1.0

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{e: log p(y, e | x)}``, e the tables of all columns; {0: 0} if no data."""
        total: dict = {0: 1.0}
        base = self.gamma / self.n_symbols
        for counts in emission_counts(x, as_rows(y)):
            column: dict = {0: 1.0}
            for w in {symbol for _, symbol in counts}:
                symbol_ = stirling_polynomial(n for (_, v), n in counts.items() if v == w)
                column = convolve(
                    column,
                    {
                        e: ways * math.exp(math.lgamma(base + e) - math.lgamma(base))
                        for e, ways in symbol_.items()
                    },
                )
            rows = float(log_crp(self.alpha, row_sizes(counts)))
            column = {
                e: value * self.alpha**e * math.exp(rows + float(log_crp(self.gamma, [e])))
                for e, value in column.items()
            }
            total = convolve(total, column)
        return {e: math.log(value) for e, value in total.items()}


@dataclass(frozen=True)
class DirichletEmission:
    """Symbols from a categorical distribution with a symmetric Dirichlet prior."""

    n_symbols: int
    concentration: float = 1.0

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``: there are no tables."""
        a, total = self.concentration, 0.0
        for counts in emission_counts(x, as_rows(y)):
            total += float(log_crp(self.n_symbols * a, row_sizes(counts)))
            total -= float(log_crp(a, counts.values()))
        return {0: total}


@dataclass(frozen=True)
class GaussianEmission:
    """Real values with a normal-inverse-gamma prior, dimensions independent.

    A row with any NaN is missing as a whole.
    """

    mean: float = 0.0
    kappa: float = 1.0
    shape: float = 1.0
    scale: float = 1.0

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``, a product of predictive densities."""
        values = np.asarray(y, dtype=float).reshape(len(x), -1)
        seen = ~np.isnan(values).any(axis=1)
        total = 0.0
        for state in set(x):
            mean, kappa, shape, scale = astuple(self)
            for row in values[seen & np.equal(x, state)]:
                width = np.sqrt(scale * (kappa + 1) / (shape * kappa))
                total += stats.t.logpdf(row, 2 * shape, mean, width).sum()
                scale = scale + kappa * (row - mean) ** 2 / (2 * (kappa + 1))
                mean = (kappa * mean + row) / (kappa + 1)
                kappa, shape = kappa + 1, shape + 0.5
        return {0: float(total)}


Emission = HCRPEmission | DirichletEmission | GaussianEmission


def emission_counts(x: Sequence, rows: list[tuple]) -> list[Counter]:
    """Per column ``{(state, symbol): c_kw}`` of the symbols that were observed."""
    n_columns = len(rows[0]) if rows else 0
    return [
        Counter((x[t], row[d]) for t, row in enumerate(rows) if row[d] is not None)
        for d in range(n_columns)
    ]


# -- posterior ------------------------------------------------------------------------


@dataclass
class Posterior:
    """Exact posterior over the partitions of a few time steps.

    Parameters
    ----------
    y : sequence of symbols, or of rows of symbols
        ``None``, ``-1`` or NaN is a missing symbol.
    emission : HCRPEmission, DirichletEmission or GaussianEmission
    starts : iterable of int
        First step of every sequence.
    alpha, gamma : float
        Lower and top concentration of the transitions.
    """

    y: Sequence
    emission: Emission
    starts: Iterable[int] = (0,)
    alpha: float = 1.0
    gamma: float = 1.0

    def __post_init__(self):
        self.starts = tuple(self.starts)

    @cached_property
    def _log_joint(self) -> dict:
        """``{(labels, m, e): log p(x, m, e, y)}``."""
        table = {}
        for x in set_partitions(len(self.y)):
            emitted = self.emission.log_likelihood_by_tables(x, self.y)
            prior = log_prior_by_tables(x, self.starts, self.alpha, self.gamma)
            for (m, log_p), (e, log_q) in itertools.product(prior.items(), emitted.items()):
                table[x, m, e] = log_p + log_q
        return table

    @cached_property
    def log_evidence(self) -> float:
        """``log p(y)``."""
        return float(logsumexp([*self._log_joint.values()]))

    @cached_property
    def joint(self) -> dict[tuple, float]:
        """``{(labels, m, e): probability}``, m and e total numbers of tables."""
        return {
            cell: math.exp(value - self.log_evidence) for cell, value in self._log_joint.items()
        }

    @cached_property
    def probabilities(self) -> dict[tuple, float]:
        """``{labels: probability}`` over all partitions."""
        result: dict = defaultdict(float)
        for (labels, _, _), probability in self.joint.items():
            result[labels] += probability
        return dict(result)
