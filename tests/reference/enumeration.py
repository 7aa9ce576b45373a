"""More exact answers for tiny models: predictions, given seatings, concentrations.

The partitions and their posterior are those of ``skihmm.testing``, whose names are here
too.  That module, as this one, shares no code with any sampler.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from skihmm.testing._enumeration import (  # noqa: F401
    START,
    DirichletEmission,
    Emission,
    GaussianEmission,
    HCRPEmission,
    Posterior,
    as_rows,
    convolve,
    emission_counts,
    log_crp,
    log_prior_by_tables,
    prior_parts,
    row_sizes,
    set_partitions,
    stirling,
    stirling_polynomial,
    transition_counts,
)


def canonical(labels: Iterable) -> tuple[int, ...]:
    """Rename labels by first appearance: equal results mean equal partitions."""
    names: dict = {}
    return tuple(names.setdefault(label, len(names)) for label in labels)


def log_prior(x, starts=(0,), alpha=1.0, gamma=1.0) -> float:
    """Log prior probability of a partition, all seatings summed out."""
    return float(logsumexp([*log_prior_by_tables(x, starts, alpha, gamma).values()]))


def log_likelihood(x, y, emission: Emission) -> float:
    """``log p(y | x)`` with the parameters of the emissions integrated out."""
    # (Of a path that known states exclude there are no tables.)
    return float(logsumexp([-math.inf, *emission.log_likelihood_by_tables(x, y).values()]))


def tables_given_customers(dishes, n, alpha, gamma, n_dishes=None) -> dict[tuple, float]:
    """``{numbers of tables: log p}`` of a franchise's cells, given their numbers n of customers.

    Restaurants do not matter, only the dish of each cell.  None: infinitely many dishes.
    """
    logs = {}
    for m in itertools.product(*[range(1, most + 1) for most in n]):
        lp = sum(math.log(stirling(*pair)) for pair in zip(n, m, strict=True))
        lp += sum(m) * math.log(alpha)
        # Tables draw dishes one after the other, each from the dishes before or anew.
        tables = np.zeros(n_dishes or 1 + max(dishes))
        for dish, count in zip(dishes, m, strict=True):
            for _ in range(count):
                mass = tables[dish] or (0 if n_dishes else gamma)
                mass += gamma / n_dishes if n_dishes else 0
                lp += math.log(mass / (tables.sum() + gamma))
                tables[dish] += 1
        logs[m] = lp
    total = logsumexp([*logs.values()])
    return {m: lp - total for m, lp in logs.items()}


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
        probability(seating.n, seating.m, seating.c or empty, seating.e or empty, start, 0)
    )


def frozen_hmm(seating: SeatingCounts, emission, alpha=1.0, gamma=1.0, start=START, n_columns=1):
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
            p for p, _, _ in _emission_outcomes(counts, tables, emission, state, (None,) * d + (w,))
        )
    return np.array(row(start)), transitions, symbols


def frozen_log_probs(
    seating: SeatingCounts,
    y_test,
    emission,
    alpha=1.0,
    gamma=1.0,
    start_row=START,
) -> np.ndarray:
    """Log predictive of every test step given the steps before, seating fixed.

    A step that is wholly missing has log predictive 0.

    Parameters
    ----------
    start_row : a state or ``START``
        Restaurant the first test step is drawn from.
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
    result, filtered = [], initial
    for likelihood in seen:
        weighted = filtered * likelihood
        result.append(math.log(weighted.sum()))
        filtered = weighted / weighted.sum() @ transitions
    return np.array(result)


# -- concentrations -------------------------------------------------------------------


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


STANDARD_PRIOR = GammaPrior()


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


def grid_density(log_density: Callable, low: float, high: float, n_points=8001) -> GridDensity:
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
    return -45 / min(prior.shape, 1), math.log((4 * (prior.shape + n_tables) + 120) / prior.rate)


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
        crp = sum(times * log_crp(c, [n]) for n, times in sizes.items())
        return prior.log_density(c) + n_tables * np.log(c) + crp

    return grid_density(log_density, *_log_limits(prior, n_tables))


def root_concentration_posterior(
    tables_per_symbol: Iterable[int], n_symbols: int, prior: GammaPrior | None = None
) -> GridDensity:
    """Exact posterior of the root concentration of HCRP emissions.

    The base is uniform over V symbols and the root has no tables: density
    proportional to ``prior(g) Gamma(g) / Gamma(g + e) prod_w Gamma(g/V + e_w) /
    Gamma(g/V)``.
    """
    prior = GammaPrior() if prior is None else prior
    tables = Counter(e for e in tables_per_symbol if e)
    total = sum(e * times for e, times in tables.items())

    def log_density(g):
        symbols = sum(times * log_crp(g / n_symbols, [e]) for e, times in tables.items())
        return prior.log_density(g) + log_crp(g, [total]) - symbols

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
    alpha: float | GammaPrior = STANDARD_PRIOR,
    gamma: float | GammaPrior = STANDARD_PRIOR,
    n_points: int = 1501,
) -> ConcentrationPosterior:
    """Joint posterior of the partition and of concentrations with Gamma priors.

    Each of alpha, gamma and the two concentrations of `HCRPEmission` is a number or, only
    here, a `GammaPrior`.  Given the partition and the number of tables of each kind, the
    likelihood is a product of one-dimensional functions of the concentrations, so the
    integral is a sum of products of one-dimensional ones.  On a logarithmic grid the
    integrands vanish with all derivatives at both ends, and the trapezoidal rule is
    exact to rounding.
    """
    rows, starts = as_rows(y), tuple(starts)
    n_draws = len(rows) * max(1, len(rows[0]))
    axes = {"alpha": _Axis(alpha, n_draws, n_points), "gamma": _Axis(gamma, n_draws, n_points)}
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
                integrals = {name: float(axes[name].weights @ f) for name, f in functions.items()}
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
    sizes, n_dishes, by_tables = prior_parts(tuple(x), tuple(starts))
    a, g = axes["alpha"].values, axes["gamma"].values
    for m, ways in by_tables.items():
        yield (
            float(ways),
            {
                "alpha": np.exp(log_crp(a, sizes) + m * np.log(a)),
                "gamma": np.exp(log_crp(g, [m]) + n_dishes * np.log(g)),
            },
        )


def _emission_terms(x, rows, n_symbols, axes):
    """``p(y | x) = sum of f(alpha_e) * g(gamma_e)``, one term per number e."""
    a, g = axes["alpha_e"].values, axes["gamma_e"].values
    sizes: list = []
    root: dict = {0: np.ones_like(g)}
    for counts in emission_counts(x, rows):
        sizes += row_sizes(counts)
        column: dict = {0: np.ones_like(g)}
        for w in {symbol for _, symbol in counts}:
            ways = stirling_polynomial(n for (_, v), n in counts.items() if v == w)
            column = convolve(
                column, {e: s * np.exp(-log_crp(g / n_symbols, [e])) for e, s in ways.items()}
            )
        root = convolve(root, {e: f * np.exp(log_crp(g, [e])) for e, f in column.items()})
    for e, f in root.items():
        yield (1.0, {"alpha_e": np.exp(log_crp(a, sizes) + e * np.log(a)), "gamma_e": f})
