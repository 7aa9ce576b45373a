"""Exact laws of transitions that depend on contexts: a tree of restaurants.

A restaurant is a pair (label, columns): label None for restaurants above the states.  The
naive tree seats from the definitions, so that `reference.seating.all_seatings` is a walk
over all seatings; the closed form is a sum over table counts with Stirling numbers.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from small_models import packed, unpacked

from reference.coins import DRAW, STAY, Coins, LawModel, ways_to_enter
from reference.enumeration import (
    START,
    GammaPrior,
    GridDensity,
    log_likelihood,
    set_partitions,
    stirling,
)
from reference.seating import NaiveFranchise, NaiveHMM, all_outcomes, all_seatings
from skihmm._data.contexts import StepContexts
from skihmm.testing._enumeration import log_crp

TOP = None


class NaiveTree:
    """Restaurants with lists of table sizes, each a customer of its parent.

    Parameters
    ----------
    alphas : sequence of float
        Concentration of every depth.
    gamma : float
    n_before : int
        Number of columns above the states.
    """

    def __init__(self, alphas, gamma, n_before):
        self.alphas, self.gamma, self.n_before = alphas, gamma, n_before
        self.tables: dict[tuple, list[int]] = {}
        self.top: Counter = Counter()

    def copy(self) -> NaiveTree:
        other = copy.copy(self)
        other.tables = {pair: list(sizes) for pair, sizes in self.tables.items()}
        other.top = self.top.copy()
        return other

    def parent(self, v):
        """The restaurant above."""
        label, columns = v
        if label is not None and len(columns) > self.n_before:
            return label, columns[:-1]
        if label is not None and self.n_before:
            return None, columns
        return TOP

    def path(self, v) -> list:
        """From the leaf up to depth 1."""
        return [] if v is TOP else [v, *self.path(self.parent(v))]

    def alpha(self, v) -> float:
        return self.alphas[len(self.path(v)) - 1]

    def represented(self) -> list:
        return [dish for dish, n in self.top.items() if n]

    @property
    def n_tables(self) -> int:
        """Tables of depth 1."""
        return sum(self.top.values())

    @property
    def n_deep_tables(self) -> int:
        return sum(len(sizes) for (v, _), sizes in self.tables.items() if self.parent(v) is not TOP)

    def base(self, v, dish) -> float:
        """Weight of a new table."""
        return self.alpha(v) * self.get_prob(self.parent(v), dish)

    def get_prob(self, v, dish) -> float:
        if v is TOP:
            return (self.top[dish] or self.gamma) / (self.n_tables + self.gamma)
        n = sum(sum(s) for (w, _), s in self.tables.items() if w == v)
        draws = sum(self.tables.get((v, dish), ()))
        return (draws + self.base(v, dish)) / (n + self.alpha(v))

    def add_customer(self, v, dish, choose) -> None:
        if v is TOP:
            self.top[dish] += 1
            return
        sizes = self.tables.setdefault((v, dish), [])
        table = choose([*sizes, self.base(v, dish)])
        if table == len(sizes):
            sizes.append(0)
            self.add_customer(self.parent(v), dish, choose)
        sizes[table] += 1

    def log_joint(self) -> float:
        """Log probability of the seating of identified customers and of its dishes."""
        by_row: Counter = Counter()
        result = 0.0
        for (v, _), sizes in self.tables.items():
            by_row[v] += sum(sizes)
            result += sum(math.log(self.alpha(v)) + math.lgamma(size) for size in sizes)
        for v, n in by_row.items():
            result += math.lgamma(self.alpha(v)) - math.lgamma(self.alpha(v) + n)
        result += math.lgamma(self.gamma) - math.lgamma(self.gamma + self.n_tables)
        for n in self.top.values():
            if n:
                result += math.log(self.gamma) + math.lgamma(n)
        return result

    # At all depths: tables are customers of cells too.
    log_n_identities = NaiveFranchise.log_n_identities

    def check(self) -> None:
        """Every table is a customer of the parent."""
        seats: Counter = Counter()
        for (v, dish), sizes in self.tables.items():
            assert sizes
            assert min(sizes) > 0
            above = self.parent(v)
            if above is TOP:
                seats[dish] += len(sizes)
            else:
                seats[above, dish] += len(sizes)
        for (v, dish), sizes in self.tables.items():
            assert sum(sizes) >= seats[v, dish]
        assert all(seats[dish] == n for dish, n in self.top.items())


def leaf_of(columns, n_before, t, j):
    """The restaurant in which step t is drawn after label j.

    Parameters
    ----------
    columns : sequence of tuple
        Contexts of all steps; -1 is missing, and then the columns before it count.
    """
    known = tuple(itertools.takewhile(lambda u: u >= 0, columns[t]))
    if len(known) >= n_before:
        return j, known
    # A context that occurs once.
    return None, (-2 - sum(u[0] < 0 for u in columns[:t]),)


def tree_terms(tree, direct):
    """Terms of the law of draws: ``(ways, depths, m)``.

    A term is for numbers of tables of all cells that come about in so many ways.  It has
    ``{depth: (sizes of restaurants, number of tables)}``, and the Counter of the dishes'
    tables at the top.

    Parameters
    ----------
    tree : NaiveTree
    direct : Counter
        Draws ``{(restaurant, dish): n}``.
    """

    def descend(d, counts, ways, depths):
        # The customers of restaurants of depth d are complete.
        if d == 0:
            yield ways, depths, Counter({k: n for (_, k), n in counts.items()})
            return
        cells = [cell for cell in counts if len(tree.path(cell[0])) == d]
        rows: Counter = Counter()
        for v, k in cells:
            rows[v] += counts[v, k]
        for tables in itertools.product(*(range(1, counts[cell] + 1) for cell in cells)):
            above = Counter({cell: n for cell, n in counts.items() if cell not in cells})
            product = ways
            for (v, k), m in zip(cells, tables, strict=True):
                product *= stirling(counts[v, k], m)
                above[tree.parent(v), k] += m
            sizes = {d: (tuple(rows.values()), sum(tables))}
            yield from descend(d - 1, above, product, depths | sizes)

    deepest = max((len(tree.path(v)) for v, _ in direct), default=0)
    yield from descend(deepest, direct, 1, {})


def law_terms(x, starts, columns, n_before, drawn=None):
    """Terms of p(x), as of `tree_terms`, with the number of all tables at the top.

    Steps for which `drawn` is true (by default all) are drawn.
    """
    direct: Counter = Counter()
    for t, k in enumerate(x):
        if drawn is None or drawn[t]:
            direct[leaf_of(columns, n_before, t, START if t in starts else x[t - 1]), k] += 1
    for ways, depths, m in tree_terms(NaiveTree((), 1.0, n_before), direct):
        ways *= math.prod(math.factorial(n - 1) for n in m.values())
        yield ways, depths, m.total()


def depth_factor(alpha, sizes, n_tables):
    """Factor of all restaurants of one depth; the concentration may be an array."""
    return np.exp(log_crp(alpha, sizes) + n_tables * np.log(alpha))


def closed_form(x, starts, columns, n_before, alphas, gamma, drawn=None) -> dict:
    """``{(m, deep): p(x, m tables of depth 1, deep tables below)}``."""
    out: dict = defaultdict(float)
    for ways, depths, m in law_terms(x, starts, columns, n_before, drawn):
        p = ways * depth_factor(gamma, [m], len(set(x)))
        for depth, (sizes, n_tables) in depths.items():
            p *= depth_factor(alphas[depth - 1], sizes, n_tables)
        out[m, sum(n for depth, (_, n) in depths.items() if depth > 1)] += float(p)
    return dict(out)


def laws_of_depths(prior: GammaPrior, n_steps, n_depths, terms, n_points: int = 401) -> list:
    """Exact marginal posteriors of the concentrations by depth; 0 is the top.

    ``terms(values)`` yields terms of the likelihood: a constant, and a factor ``{depth:
    array}`` of every concentration at these values.
    """
    grid = np.linspace(-45.0, math.log(4 * (prior.shape + n_steps) + 120), n_points)
    values = np.exp(grid)
    weights = np.exp(prior.log_density(values) + grid)
    density = np.zeros((n_depths + 1, n_points))
    for constant, factors in terms(values):
        # A depth without customers has its prior.
        factors = [factors.get(d, np.ones(n_points)) for d in range(n_depths + 1)]
        integrals = [float(weights @ f) for f in factors]
        total = constant * math.prod(integrals)
        for d, f in enumerate(factors):
            density[d] += total / integrals[d] * f * weights
    return [GridDensity(grid, row) for row in density]


def concentration_laws(model, prior: GammaPrior) -> list:
    """As `laws_of_depths`, of the transitions."""

    def terms(values):
        for x in set_partitions(model.n_steps):
            emitted = math.exp(log_likelihood(x, model.y, model.emission))
            for ways, depths, m in law_terms(x, model.starts, model.columns, model.n_before):
                depths = depths | {0: ([m], len(set(x)))}
                yield ways * emitted, {d: depth_factor(values, *s) for d, s in depths.items()}

    return laws_of_depths(prior, model.n_steps, len(model.alphas), terms)


def evidence_continued(hmm: NaiveHMM, y, rows, coins=None) -> float:
    """p(y | seating) of steps that are seated as they come.

    Parameters
    ----------
    hmm : NaiveHMM
        The seating; the steps are a new sequence.
    y : sequence of int
    rows : callable
        ``rows(t, j)``, the restaurant of step t after label j.
    coins : (CoinContextModel, array of int, array of int), optional
        The law of the coins, and the numbers of stays and of leaves of every label.
    """
    model, stays, leaves = coins or (None, (), ())

    def stay_prob(j, stays, leaves):
        if model is None or j == START:
            return 0.0
        q, left = model.kappa + stays[j], model.omega + leaves[j]
        return q / (q + left)

    def continued(tree, emissions, j, t, stays, leaves):
        if t == len(y):
            return 1.0
        total = 0.0

        def see(k):
            seen = emissions.copy()
            seen.add_customer(k, (y[t],), None)
            return emissions.get_prob(k, (y[t],)), seen

        stay = stay_prob(j, stays, leaves)
        if stay > 0.0:
            q, seen = see(j)
            total += stay * q * continued(tree, seen, j, t + 1, stays + Counter([j]), leaves)
        v = rows(t, j)
        for k in [*tree.represented(), ("fresh", t)]:
            q, seen = see(k)
            q *= (1 - stay) * tree.get_prob(v, k)

            def seat(choose, k=k):
                seated = tree.copy()
                seated.add_customer(v, k, choose)
                return seated

            for p, seated in all_outcomes(seat):
                left = leaves + Counter([j])
                total += q * p * continued(seated, seen, k, t + 1, stays, left)
        return total

    counts = [Counter(dict(enumerate(n))) for n in (stays, leaves)]
    return continued(hmm.transitions, hmm.emissions, START, 0, *counts)


@dataclass(frozen=True)
class ContextModel(LawModel):
    """A small model with contexts.

    Parameters
    ----------
    columns : tuple of tuple
        Contexts of every step, -1 where they are missing.
    order : {"state", "context"}
    context_alpha : tuple of float
    """

    columns: tuple = ()
    order: str = "state"
    context_alpha: tuple = (1.0,)

    @cached_property
    def contexts(self) -> StepContexts:
        codes = np.array(self.columns, dtype=np.int32).reshape(self.n_steps, -1)
        return StepContexts.of_fit(codes, self.n_before)

    @property
    def n_before(self) -> int:
        return int(self.order == "context")

    @property
    def alphas(self) -> tuple:
        """Concentrations by depth."""
        n = self.n_before
        return (*self.context_alpha[:n], self.alpha, *self.context_alpha[n:])

    def tree(self) -> NaiveTree:
        return NaiveTree(self.alphas, self.gamma, self.n_before)

    def row_of(self, t, j):
        return leaf_of(self.columns, self.n_before, t, j)

    @property
    def law_options(self) -> dict:
        contexts = {"contexts": self.contexts, "context_alpha": self.context_alpha}
        return super().law_options | contexts

    def law_of(self, x, drawn=None) -> dict:
        tree = self.columns, self.n_before, self.alphas, self.gamma
        law = closed_form(x, self.starts, *tree, drawn)
        return {m + 8 * deep: p for (m, deep), p in law.items()}

    @property
    def _seated(self) -> dict:
        return {"transitions": self.tree(), "row_of": self.row_of}

    def naive(self, labels, choose) -> NaiveHMM:
        given = self.y, self.emission, self.starts
        return NaiveHMM(*given, labels=labels, choose=choose, **self._seated)

    @cached_property
    def seatings(self) -> dict:
        return all_seatings(self.y, self.emission, self.starts, **self._seated)

    # -- records

    def _depth(self, v) -> int:
        return len(self.tree().path(v))

    def _stride(self, depth) -> int:
        n = depth if depth <= self.n_before else depth - 1
        return len(self.contexts.tree.levels[n - 1]) if n else 1

    def row(self, v, slots, n_states) -> int:
        """Row of a restaurant in the record of its depth."""
        label, columns = v
        number = 0
        if columns:
            number = self.contexts.tree.levels[len(columns) - 1][columns]
        if label is None:
            return number
        j = n_states if label == START else slots[label]
        return j * self._stride(self._depth(v)) + number

    def restaurant(self, depth, row, n_states):
        """The restaurant of a row, by the labels of the record."""
        stride = self._stride(depth)
        n = depth if depth <= self.n_before else depth - 1
        columns = ()
        if n:
            level = self.contexts.tree.levels[n - 1]
            columns = next(k for k, number in level.items() if number == row % stride)
        j = row // stride
        label = START if j == n_states else j
        return (label if depth > self.n_before else None), columns

    def record_of(self, tree: NaiveTree, slots: dict, n_states: int) -> dict:
        """Record of all depths, label k as the state slots[k]."""
        records = []
        for depth in range(1, len(self.alphas) + 1):
            tables = {
                (self.row(v, slots, n_states), slots[k]): sizes
                for (v, k), sizes in tree.tables.items()
                if self._depth(v) == depth
            }
            records.append(packed(tables, int))
        return {**records[0], "levels": records[1:]}

    def tables_of(self, arrays: dict) -> dict:
        """``{(restaurant, dish): sizes}`` of ``ChainState.to_arrays``."""
        record = arrays["transitions"]
        return {
            (self.restaurant(depth, row, arrays["n_states"]), k): sizes
            for depth, level in enumerate([record, *record["levels"]], 1)
            for (row, k), sizes in unpacked(level).items()
        }


@dataclass(frozen=True)
class CoinContextModel(Coins, ContextModel):
    """A small model with contexts and coins in front of its restaurants."""

    def law_of(self, x) -> dict:
        law: dict = defaultdict(float)
        for kinds in ways_to_enter(x, self.starts):
            coins = math.exp(self.log_coins(x, kinds))
            for m, p in super().law_of(x, [kind == DRAW for kind in kinds]).items():
                law[m + 8 * kinds.count(STAY)] += p * coins
        return law
