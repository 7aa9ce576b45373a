"""Exact answers for tiny models, by listing every partition of the time steps.

The model is the hidden Markov model with a hierarchical Chinese restaurant process
prior of Makino, Takei, Sato and Mochihashi (2011), arXiv 1106.0474.  With unsigned
Stirling numbers of the first kind ``S(n, m)`` (the number of ways to seat n customers
at m tables, weighted by the orders within the tables) the seating sums out::

    p(x) = sum over 1 <= m_jk <= n_jk of
           prod_j [Gamma(alpha) / Gamma(alpha + n_j) prod_k S(n_jk, m_jk) alpha^m_jk]
           * Gamma(gamma) / Gamma(gamma + m) prod_k gamma Gamma(m_k)

where restaurant j is a state or the one start restaurant shared by all sequences.

States are numbered by first appearance, so that a tuple of labels *is* a partition.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, logsumexp

START = "*"
"""Name of the restaurant from which the first step of every sequence is drawn."""


# -- partitions and counts ------------------------------------------------------------


def set_partitions(n_steps: int) -> Iterator[tuple[int, ...]]:
    """All restricted growth strings of a length, i.e. all partitions of the steps."""
    if n_steps == 0:
        yield ()
        return
    for head in set_partitions(n_steps - 1):
        for label in range(max(head, default=-1) + 2):
            yield (*head, label)


def canonical(labels: Iterable) -> tuple[int, ...]:
    """Rename labels by first appearance: equal results mean equal partitions."""
    names: dict = {}
    return tuple(names.setdefault(label, len(names)) for label in labels)


@cache
def stirling(n: int, m: int) -> int:
    """Unsigned Stirling number of the first kind."""
    if n == 0 or m == 0:
        return int(n == m)
    return stirling(n - 1, m - 1) + (n - 1) * stirling(n - 1, m)


def transition_counts(x: Sequence, starts: Iterable[int] = (0,)) -> Counter:
    """Draws ``{(restaurant, dish): n_jk}`` made by a label sequence."""
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

    return [
        tuple(symbol(v) for v in np.atleast_1d(np.asarray(row, dtype=object)))
        for row in y
    ]


def _convolve(left: dict, right: dict) -> dict:
    """Product of two polynomials kept as ``{power: coefficient}``."""
    product: dict = defaultdict(float)
    for (i, a), (j, b) in itertools.product(left.items(), right.items()):
        product[i + j] = product[i + j] + a * b
    return dict(product)


def _stirling_polynomial(counts: Iterable[int]) -> dict[int, int]:
    """Ways to seat several groups of customers, by the total number of tables."""
    result: dict = {0: 1}
    for n in counts:
        result = _convolve(result, {m: stirling(n, m) for m in range(1, n + 1)})
    return result


def _log_crp(concentration, sizes: Iterable[int]):
    """``sum_j log Gamma(c) / Gamma(c + n_j)``; the concentration may be an array."""
    return sum(
        (gammaln(concentration) - gammaln(concentration + n) for n in sizes),
        np.zeros_like(concentration, dtype=float),
    )


def _row_sizes(counts: dict) -> list[int]:
    """Customers per restaurant of ``{(restaurant, dish): n}``."""
    sizes: Counter = Counter()
    for (row, _), n in counts.items():
        sizes[row] += n
    return list(sizes.values())


# -- prior of a partition -------------------------------------------------------------


@cache
def _prior_parts(x: tuple, starts: tuple):
    """Restaurant sizes, number of states and seating weights by total tables.

    ``p(x, m)`` depends on the concentrations only through the first two and ``m``;
    the weight is the sum over table counts of ``prod S(n_jk, m_jk) prod Gamma(m_k)``.
    """
    counts = transition_counts(x, starts)
    weights: dict = {0: 1}
    dishes = {dish for _, dish in counts}
    for k in dishes:
        dish = _stirling_polynomial(n for (_, d), n in counts.items() if d == k)
        # The m_k tables are the customers of one table of the top restaurant.
        weights = _convolve(
            weights, {m: w * math.factorial(m - 1) for m, w in dish.items()}
        )
    return tuple(_row_sizes(counts)), len(dishes), weights


def log_prior_by_tables(
    x: Sequence[int], starts: Iterable[int] = (0,), alpha=1.0, gamma=1.0
) -> dict[int, float]:
    """``{m: log p(x, m)}`` with m the total number of tables of all restaurants."""
    sizes, n_dishes, weights = _prior_parts(tuple(x), tuple(starts))
    return {
        m: float(
            _log_crp(alpha, sizes)
            + m * math.log(alpha)
            + _log_crp(gamma, [m])
            + n_dishes * math.log(gamma)
            + math.log(weight)
        )
        for m, weight in weights.items()
    }


def log_prior(
    x: Sequence[int], starts: Iterable[int] = (0,), alpha=1.0, gamma=1.0
) -> float:
    """Log prior probability of a partition, all seatings summed out."""
    return float(logsumexp([*log_prior_by_tables(x, starts, alpha, gamma).values()]))


# -- emissions ------------------------------------------------------------------------


@dataclass(frozen=True)
class GammaPrior:
    """Gamma prior of a concentration, with shape and *rate*."""

    shape: float = 1.0
    rate: float = 1.0

    def log_density(self, value):
        """Log density."""
        return (
            self.shape * math.log(self.rate)
            - math.lgamma(self.shape)
            + (self.shape - 1) * np.log(value)
            - self.rate * value
        )


@dataclass(frozen=True)
class HCRPEmission:
    """Symbols from a hierarchical CRP whose root base is uniform over the symbols.

    Several columns are independent given the state: each has its own franchise.  The
    concentrations are numbers (priors only in `posterior_over_concentrations`).
    """

    n_symbols: int
    alpha: float | GammaPrior = 1.0
    gamma: float | GammaPrior = 1.0

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{e: log p(y, e | x)}``, e the tables of all columns; {0: 0} if no data."""
        total: dict = {0: 1.0}
        base = self.gamma / self.n_symbols
        for counts in _emission_counts(x, as_rows(y)):
            column: dict = {0: 1.0}
            for w in {symbol for _, symbol in counts}:
                symbol_ = _stirling_polynomial(
                    n for (_, v), n in counts.items() if v == w
                )
                column = _convolve(
                    column,
                    {
                        e: ways * math.exp(math.lgamma(base + e) - math.lgamma(base))
                        for e, ways in symbol_.items()
                    },
                )
            rows = float(_log_crp(self.alpha, _row_sizes(counts)))
            column = {
                e: value
                * self.alpha**e
                * math.exp(rows + float(_log_crp(self.gamma, [e])))
                for e, value in column.items()
            }
            total = _convolve(total, column)
        return {e: math.log(value) for e, value in total.items()}


@dataclass(frozen=True)
class DirichletEmission:
    """Symbols from a categorical distribution with a symmetric Dirichlet prior."""

    n_symbols: int
    concentration: float = 1.0

    def log_likelihood_by_tables(self, x: Sequence, y) -> dict[int, float]:
        """``{0: log p(y | x)}``: there are no tables."""
        a, total = self.concentration, 0.0
        for counts in _emission_counts(x, as_rows(y)):
            total += float(_log_crp(self.n_symbols * a, _row_sizes(counts)))
            total -= float(_log_crp(a, counts.values()))
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
        """``{0: log p(y | x)}``, a log density."""
        values = np.asarray(y, dtype=float).reshape(len(x), -1)
        seen = ~np.isnan(values).any(axis=1)
        total = 0.0
        for state in set(x):
            rows = values[[t for t in range(len(x)) if x[t] == state and seen[t]]]
            n = len(rows)
            if n == 0:
                continue
            centre = rows.mean(axis=0)
            kappa, shape = self.kappa + n, self.shape + n / 2
            scale = (
                self.scale
                + ((rows - centre) ** 2).sum(axis=0) / 2
                + self.kappa * n * (centre - self.mean) ** 2 / (2 * kappa)
            )
            total += float(
                np.sum(
                    gammaln(shape)
                    - gammaln(self.shape)
                    + self.shape * np.log(self.scale)
                    - shape * np.log(scale)
                    + (math.log(self.kappa) - math.log(kappa)) / 2
                    - n / 2 * math.log(2 * math.pi)
                )
            )
        return {0: total}


Emission = HCRPEmission | DirichletEmission | GaussianEmission


def _emission_counts(x: Sequence, rows: list[tuple]) -> list[Counter]:
    """Per column ``{(state, symbol): c_kw}`` of the symbols that were observed."""
    n_columns = len(rows[0]) if rows else 0
    return [
        Counter((x[t], row[d]) for t, row in enumerate(rows) if row[d] is not None)
        for d in range(n_columns)
    ]


def log_likelihood_by_tables(x: Sequence, y, emission: Emission) -> dict[int, float]:
    """``{e: log p(y, e | x)}``; e is always 0 for emissions without tables."""
    return emission.log_likelihood_by_tables(x, y)


def log_likelihood(x: Sequence, y, emission: Emission) -> float:
    """``log p(y | x)`` with the parameters of the emissions integrated out."""
    return float(logsumexp([*log_likelihood_by_tables(x, y, emission).values()]))


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
            emitted = log_likelihood_by_tables(x, self.y, self.emission)
            prior = log_prior_by_tables(x, self.starts, self.alpha, self.gamma)
            for (m, log_p), (e, log_q) in itertools.product(
                prior.items(), emitted.items()
            ):
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
            cell: math.exp(value - self.log_evidence)
            for cell, value in self._log_joint.items()
        }

    @cached_property
    def probabilities(self) -> dict[tuple, float]:
        """``{labels: probability}`` over all partitions."""
        return _marginal(self.joint, lambda cell: cell[0])

    @cached_property
    def n_states_distribution(self) -> dict[int, float]:
        """``{number of states: probability}``."""
        return _marginal(self.probabilities, lambda labels: len(set(labels)))


def _marginal(table: dict, function: Callable) -> dict:
    result: dict = defaultdict(float)
    for cell, probability in table.items():
        result[function(cell)] += probability
    return dict(result)


def log_evidence(y, emission, starts=(0,), alpha=1.0, gamma=1.0) -> float:
    """Exact ``log p(y)``."""
    return Posterior(y, emission, starts, alpha, gamma).log_evidence


def predictive_next(
    y, emission, starts=(0,), alpha=1.0, gamma=1.0, *, continue_sequence=True
) -> np.ndarray:
    """Exact distribution of the observation that follows, as a ratio of evidences.

    Returns
    -------
    ndarray of shape (n_symbols,) or, for rows of symbols, (n_columns, n_symbols)
        The next observation continues the last sequence or starts a new one.
    """
    rows, starts = as_rows(y), tuple(starts)
    if not rows:
        raise ValueError("give at least one step (it may be missing)")
    if not continue_sequence:
        starts = (*starts, len(rows))
    n_columns = len(rows[0])
    before = log_evidence([*rows, (None,) * n_columns], emission, starts, alpha, gamma)
    result = np.empty((n_columns, emission.n_symbols))
    for d in range(n_columns):
        seen = {row[d] for row in rows}
        unseen = None  # all symbols never seen have the same probability
        for w in range(emission.n_symbols):
            if w not in seen and unseen is not None:
                result[d, w] = unseen
                continue
            row = tuple(w if c == d else None for c in range(n_columns))
            after = log_evidence([*rows, row], emission, starts, alpha, gamma)
            result[d, w] = math.exp(after - before)
            if w not in seen:
                unseen = result[d, w]
    return result if np.ndim(y) == 2 else result[0]


# -- test data after a given seating --------------------------------------------------


@dataclass
class SeatingCounts:
    """The counts of a seating that its predictive distributions depend on.

    Parameters
    ----------
    n, m : dict
        ``{(restaurant, dish): draws}`` and ``{(restaurant, dish): tables}``; the start
        restaurant is ``START``.
    c, e : list of dict, one per column (or one dict for one column)
        ``{(state, symbol): observations}`` and, for HCRP emissions, tables.
    """

    n: dict = field(default_factory=dict)
    m: dict = field(default_factory=dict)
    c: list = field(default_factory=list)
    e: list = field(default_factory=list)

    def __post_init__(self):
        self.c = [self.c] if isinstance(self.c, dict) else list(self.c)
        self.e = [self.e] if isinstance(self.e, dict) else list(self.e)

    @property
    def states(self) -> list:
        """States that are served at some table."""
        return sorted({k for (_, k), tables in self.m.items() if tables}, key=repr)


def _row_total(counts: dict, row) -> int:
    return sum(n for (j, _), n in counts.items() if j == row)


def _column_total(counts: dict, column) -> int:
    return sum(n for (_, k), n in counts.items() if k == column)


def _top_probability(m: dict, gamma: float, dish) -> float:
    """Predictive of the top restaurant; a dish without tables is the fresh one."""
    tables = _column_total(m, dish)
    return (tables or gamma) / (sum(m.values()) + gamma)


def _plus_one(counts: dict, key) -> dict:
    return {**counts, key: counts.get(key, 0) + 1}


def _emission_outcomes(c, e, emission, state, row):
    """All ways to seat one row of symbols: ``(probability, c, e)`` of each."""
    outcomes = [(1.0, list(c), list(e))]
    for d, w in enumerate(row):
        if w is None:
            continue
        grown = []
        for p, c_now, e_now in outcomes:
            total, n = _row_total(c_now[d], state), c_now[d].get((state, w), 0)
            c_next = list(c_now)
            c_next[d] = _plus_one(c_now[d], (state, w))
            if isinstance(emission, DirichletEmission):
                a, size = emission.concentration, emission.n_symbols
                grown.append((p * (n + a) / (total + size * a), c_next, e_now))
                continue
            weight = _column_total(e_now[d], w) + emission.gamma / emission.n_symbols
            root = weight / (sum(e_now[d].values()) + emission.gamma)
            e_next = list(e_now)
            e_next[d] = _plus_one(e_now[d], (state, w))
            grown += [
                (p * n / (total + emission.alpha), c_next, e_now),
                (p * emission.alpha * root / (total + emission.alpha), c_next, e_next),
            ]
        outcomes = [outcome for outcome in grown if outcome[0] > 0]
    return outcomes


def evidence_continued(
    seating: SeatingCounts, y_test, emission, alpha=1.0, gamma=1.0, start=START
) -> float:
    """Exact ``log p(y_test | seating)`` when the test steps are seated as they come.

    Recursion over every label, fresh ones included, and over every choice between an
    occupied and a new table; for at most about four steps.  The first test step is
    drawn from restaurant `start`.  Ratios over prefixes are the step predictives.
    """
    rows = as_rows(y_test)
    n_columns = len(rows[0]) if rows else 0
    empty: list = [{} for _ in range(n_columns)]

    def probability(n, m, c, e, j, t):
        if t == len(rows):
            return 1.0
        total = 0.0
        room = _row_total(n, j) + alpha
        fresh = ("fresh", t)
        for k in [*SeatingCounts(n, m).states, fresh]:
            n_next = _plus_one(n, (j, k))
            # Either one of the n_jk / n_j + alpha occupied places, or a new table.
            ways = [
                (n.get((j, k), 0) / room, m),
                (alpha * _top_probability(m, gamma, k) / room, _plus_one(m, (j, k))),
            ]
            for p, m_next in ways:
                if p == 0:
                    continue
                for q, *emitted in _emission_outcomes(c, e, emission, k, rows[t]):
                    total += p * q * probability(n_next, m_next, *emitted, k, t + 1)
        return total

    return math.log(
        probability(
            seating.n, seating.m, seating.c or empty, seating.e or empty, start, 0
        )
    )


def frozen_hmm(
    seating: SeatingCounts, emission, alpha=1.0, gamma=1.0, start=START, n_columns=1
):
    """Ordinary hidden Markov model with the predictives of a fixed seating.

    All fresh states are one last state with an empty restaurant: as nothing is seated,
    they cannot be told apart.

    Returns
    -------
    initial : (K + 1,), transitions : (K + 1, K + 1), symbols : (columns, K + 1, V)
    """
    states = seating.states
    top = [_top_probability(seating.m, gamma, k) for k in [*states, ("fresh",)]]

    def row(j):
        size = _row_total(seating.n, j)
        draws = [seating.n.get((j, k), 0) for k in states] + [0]
        return [(n + alpha * b) / (size + alpha) for n, b in zip(draws, top, strict=True)]

    transitions = np.array([row(j) for j in [*states, ("fresh",)]])
    counts = seating.c or [{} for _ in range(n_columns)]
    tables = seating.e or [{} for _ in range(len(counts))]
    symbols = np.empty((len(counts), len(states) + 1, emission.n_symbols))
    for d, i, w in np.ndindex(symbols.shape):
        state = [*states, ("fresh",)][i]
        symbols[d, i, w] = sum(
            p
            for p, _, _ in _emission_outcomes(
                counts, tables, emission, state, (None,) * d + (w,)
            )
        )
    return np.array(row(start)), transitions, symbols


def frozen_log_probs(
    seating: SeatingCounts,
    y_test,
    emission,
    alpha=1.0,
    gamma=1.0,
    start_row=START,
    *,
    method="forward",
) -> np.ndarray:
    """Log predictive of every test step given the steps before, seating fixed.

    A step that is wholly missing has log predictive 0.

    Parameters
    ----------
    start_row : a state or ``START``
        Restaurant the first test step is drawn from.
    method : {"forward", "brute"}
        Dense forward algorithm, or the sum over all paths of every prefix.
    """
    rows = as_rows(y_test)
    initial, transitions, symbols = frozen_hmm(
        seating, emission, alpha, gamma, start_row, len(rows[0]) if rows else 0
    )
    seen = np.ones((len(rows), len(initial)))
    for t, row in enumerate(rows):
        for d, w in enumerate(row):
            if w is not None:
                seen[t] *= symbols[d, :, w]
    if method == "forward":
        result, filtered = [], initial
        for likelihood in seen:
            weighted = filtered * likelihood
            result.append(math.log(weighted.sum()))
            filtered = weighted / weighted.sum() @ transitions
        return np.array(result)
    if method != "brute":
        raise ValueError(f"unknown method {method!r}")
    logs = [0.0]
    for length in range(1, len(rows) + 1):
        total = 0.0
        for path in itertools.product(range(len(initial)), repeat=length):
            p = initial[path[0]]
            for j, k in itertools.pairwise(path):
                p *= transitions[j, k]
            for t, k in enumerate(path):
                p *= seen[t, k]
            total += p
        logs.append(math.log(total))
    return np.diff(logs)


# -- concentrations -------------------------------------------------------------------


class GridDensity:
    """Density of a positive quantity on a grid of its logarithm.

    Parameters
    ----------
    log_grid : ndarray, equally spaced
    density : ndarray
        Proportional to the density of the *logarithm* of the quantity.
    """

    def __init__(self, log_grid: np.ndarray, density: np.ndarray):
        self.log_grid = log_grid
        spline = CubicSpline(log_grid, density)
        self._integral = spline.antiderivative()
        self._total = float(self._integral(log_grid[-1]))
        self.weights = density / density.sum()

    def cdf(self, value):
        """Distribution function."""
        at = np.clip(np.log(value), self.log_grid[0], self.log_grid[-1])
        return self._integral(at) / self._total

    def expectation(self, function: Callable) -> float:
        """Expectation of a function of the quantity."""
        return float(self.weights @ function(np.exp(self.log_grid)))

    @property
    def mean(self) -> float:
        """Mean."""
        return self.expectation(lambda value: value)

    @property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.expectation(lambda value: (value - self.mean) ** 2))


def grid_density(
    log_density: Callable, low: float, high: float, n_points=8001
) -> GridDensity:
    """Density of a positive quantity given up to a constant.

    The limits are for the logarithm; the grid is then narrowed to where there is mass.
    """
    for _ in range(3):
        grid = np.linspace(low, high, n_points)
        values = log_density(np.exp(grid)) + grid  # grid: the change of variable
        mass = np.flatnonzero(values > values.max() - 45)
        low, high = grid[max(mass[0] - 1, 0)], grid[min(mass[-1] + 1, n_points - 1)]
    return GridDensity(grid, np.exp(values - values.max()))


def _log_limits(prior: GammaPrior, n_tables: int) -> tuple[float, float]:
    """Limits of the logarithm outside which there is no mass worth counting.

    The likelihood of M tables grows at most as the M-th power, and near zero not
    slower than a constant.
    """
    return -45 / min(prior.shape, 1), math.log(
        (4 * (prior.shape + n_tables) + 120) / prior.rate
    )


def concentration_posterior(
    sizes: Iterable[int], n_tables: int, prior: GammaPrior | None = None
) -> GridDensity:
    """Exact posterior of a concentration shared by restaurants.

    The density is proportional to ``prior(c) c^M prod_j Gamma(c) / Gamma(c + n_j)``.
    For the top concentration give one restaurant of size m, with K tables.
    """
    prior = GammaPrior() if prior is None else prior
    sizes = Counter(n for n in sizes if n)

    def log_density(c):
        crp = sum(times * _log_crp(c, [n]) for n, times in sizes.items())
        return prior.log_density(c) + n_tables * np.log(c) + crp

    return grid_density(log_density, *_log_limits(prior, n_tables))


def root_concentration_posterior(
    tables_per_symbol: Iterable[int], n_symbols: int, prior: GammaPrior | None = None
) -> GridDensity:
    """Exact posterior of the root concentration of HCRP emissions.

    The base is uniform over V symbols and the root has no tables of its own: density
    proportional to ``prior(g) Gamma(g) / Gamma(g + e) prod_w Gamma(g/V + e_w) /
    Gamma(g/V)``.
    """
    prior = GammaPrior() if prior is None else prior
    tables = Counter(e for e in tables_per_symbol if e)
    total = sum(e * times for e, times in tables.items())

    def log_density(g):
        symbols = sum(times * _log_crp(g / n_symbols, [e]) for e, times in tables.items())
        return prior.log_density(g) + _log_crp(g, [total]) - symbols

    return grid_density(log_density, *_log_limits(prior, total))


@dataclass
class ConcentrationPosterior:
    """Joint posterior of partition and concentrations.

    Attributes
    ----------
    probabilities : dict
        ``{labels: probability}``.
    log_evidence : float
    means : dict
        Posterior means of "alpha", "gamma", "alpha_e", "gamma_e" (those with a prior).
    marginals : dict of GridDensity
        Marginal posteriors of the same.
    """

    probabilities: dict
    log_evidence: float
    means: dict
    marginals: dict


class _Axis:
    """Quadrature of one concentration: a fixed value, or a grid under a prior."""

    def __init__(self, setting, n_draws: int, n_points: int):
        self.has_prior = isinstance(setting, GammaPrior)
        if self.has_prior:
            self.log_grid = np.linspace(*_log_limits(setting, n_draws), n_points)
            self.values = np.exp(self.log_grid)
            step = self.log_grid[1] - self.log_grid[0]
            log_weights = setting.log_density(self.values) + self.log_grid
            self.weights = np.exp(log_weights) * step
        else:
            self.values = np.array([float(setting)])
            self.weights = np.ones(1)
        self.density = np.zeros(len(self.values))


def posterior_over_concentrations(
    y,
    emission,
    starts=(0,),
    alpha: float | GammaPrior = GammaPrior(),
    gamma: float | GammaPrior = GammaPrior(),
    n_points: int = 1501,
) -> ConcentrationPosterior:
    """Joint posterior of the partition and of concentrations with Gamma priors.

    Each of alpha, gamma and the two concentrations of `HCRPEmission` is a number or a
    `GammaPrior`.  Given the partition and the number of tables of each kind, the
    likelihood is a product of one-dimensional functions of the concentrations, so the
    integral is a sum of products of one-dimensional ones.  On a logarithmic grid the
    integrands vanish with all derivatives at both ends, and the trapezoidal rule is
    exact to rounding.
    """
    rows, starts = as_rows(y), tuple(starts)
    n_draws = len(rows) * max(1, len(rows[0]))
    axes = {
        "alpha": _Axis(alpha, n_draws, n_points),
        "gamma": _Axis(gamma, n_draws, n_points),
    }
    seated = isinstance(emission, HCRPEmission)
    if seated:
        axes["alpha_e"] = _Axis(emission.alpha, n_draws, n_points)
        axes["gamma_e"] = _Axis(emission.gamma, n_draws, n_points)

    weights = {}
    contributions = []
    for x in set_partitions(len(rows)):
        transition = _transition_terms(x, starts, axes)
        if seated:
            emitted = _emission_terms(x, rows, emission.n_symbols, axes)
        else:
            emitted = [(math.exp(log_likelihood(x, y, emission)), {})]
        sums = []
        for terms in (transition, emitted):
            total, densities = 0.0, defaultdict(float)
            for constant, functions in terms:
                integrals = {
                    name: float(axes[name].weights @ f) for name, f in functions.items()
                }
                product = constant * math.prod(integrals.values())
                total += product
                for name, f in functions.items():
                    others = product / integrals[name]
                    densities[name] = densities[name] + others * f
            sums.append((total, densities))
        (p_x, of_transitions), (p_y, of_emissions) = sums
        weights[x] = p_x * p_y
        contributions += [(name, p_y * f) for name, f in of_transitions.items()]
        contributions += [(name, p_x * f) for name, f in of_emissions.items()]
    evidence = math.fsum(weights.values())
    for name, f in contributions:
        axes[name].density += axes[name].weights * f
    marginals = {
        name: GridDensity(axis.log_grid, axis.density)
        for name, axis in axes.items()
        if axis.has_prior
    }
    return ConcentrationPosterior(
        probabilities={x: value / evidence for x, value in weights.items()},
        log_evidence=math.log(evidence),
        means={name: marginal.mean for name, marginal in marginals.items()},
        marginals=marginals,
    )


def _transition_terms(x, starts, axes):
    """``p(x) = sum of constant * f(alpha) * g(gamma)``, one term per number m."""
    sizes, n_dishes, by_tables = _prior_parts(tuple(x), tuple(starts))
    a, g = axes["alpha"].values, axes["gamma"].values
    for m, ways in by_tables.items():
        yield (
            float(ways),
            {
                "alpha": np.exp(_log_crp(a, sizes) + m * np.log(a)),
                "gamma": np.exp(_log_crp(g, [m]) + n_dishes * np.log(g)),
            },
        )


def _emission_terms(x, rows, n_symbols, axes):
    """``p(y | x) = sum of f(alpha_e) * g(gamma_e)``, one term per number e."""
    a, g = axes["alpha_e"].values, axes["gamma_e"].values
    sizes: list = []
    root: dict = {0: np.ones_like(g)}
    for counts in _emission_counts(x, rows):
        sizes += _row_sizes(counts)
        column: dict = {0: np.ones_like(g)}
        for w in {symbol for _, symbol in counts}:
            ways = _stirling_polynomial(n for (_, v), n in counts.items() if v == w)
            column = _convolve(
                column,
                {e: s * np.exp(-_log_crp(g / n_symbols, [e])) for e, s in ways.items()},
            )
        root = _convolve(
            root, {e: f * np.exp(_log_crp(g, [e])) for e, f in column.items()}
        )
    for e, f in root.items():
        yield (
            1.0,
            {
                "alpha_e": np.exp(_log_crp(a, sizes) + e * np.log(a)),
                "gamma_e": f,
            },
        )
