"""Exact laws of symbols that depend on the state and on contexts.

The tree of restaurants is that of `reference.contexts`, state first, under a root that is
uniform over the symbols.  The naive tree seats from the definitions; the closed form is a
sum over table counts with Stirling numbers.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from small_models import Model, unpacked

from reference.contexts import TOP, NaiveTree, depth_factor, laws_of_depths, tree_terms
from reference.enumeration import as_rows, log_prior, set_partitions
from reference.seating import NaiveHMM, all_outcomes
from skihmm.core._emission import EmissionStats
from skihmm.emissions._categorical_stats import categorical_stats


class NaiveSymbolTree(NaiveTree):
    """Restaurants of one column of symbols."""

    def __init__(self, alphas, gamma, n_symbols):
        super().__init__(alphas, gamma, 0)
        self.n_symbols = n_symbols

    def get_prob(self, v, dish) -> float:
        if v is TOP:
            base = self.gamma / self.n_symbols
            return (self.top[dish] + base) / (self.n_tables + self.gamma)
        return super().get_prob(v, dish)

    def log_joint(self) -> float:
        result, base = super().log_joint(), self.gamma / self.n_symbols
        for n in self.top.values():
            if n:
                result -= math.log(self.gamma) + math.lgamma(n)
                result += math.lgamma(base + n) - math.lgamma(base)
        return result


def restaurant_of(contexts, k):
    """The restaurant of state k and a context, in which -1 is missing."""
    return k, tuple(itertools.takewhile(lambda u: u >= 0, contexts))


def law_terms(x, rows, columns):
    """As `reference.contexts.tree_terms`, of symbols of one column given the states."""
    direct: Counter = Counter()
    for k, w, contexts in zip(x, rows, columns, strict=True):
        if w is not None:
            direct[restaurant_of(contexts, k), w] += 1
    yield from tree_terms(NaiveTree((), 1.0, 0), direct)


@dataclass(frozen=True)
class ContextEmission:
    """Symbols in a tree of restaurants; several columns are independent given the state.

    Parameters
    ----------
    n_symbols : int
    alphas : tuple of float
        Concentrations of the states and of every column of contexts.
    gamma : float
    columns : tuple of tuple
        Contexts of every step, -1 where they are missing.
    counts_tables : bool
        Whether e is told apart; else it is 0.
    make_stats : callable
        Function that builds the compiled statistics.
    """

    n_symbols: int
    alphas: tuple
    gamma: float
    columns: tuple
    counts_tables: bool = True
    make_stats: Callable = categorical_stats

    def log_likelihood_by_tables(self, x, y) -> dict[int, float]:
        """``{e: log p(y, e | x)}``; e has 6 more for every table of depth 2 and more."""
        total: dict = {0: 1.0}
        base = self.gamma / self.n_symbols
        for rows in zip(*as_rows(y), strict=True):
            column: dict = defaultdict(float)
            for ways, depths, m in law_terms(x, rows, self.columns):
                p = ways * depth_factor(self.gamma, [m.total()], 0)
                for n in m.values():
                    p *= math.exp(math.lgamma(base + n) - math.lgamma(base))
                for d, (sizes, n_tables) in depths.items():
                    p *= depth_factor(self.alphas[d - 1], sizes, n_tables)
                deep = sum(n for d, (_, n) in depths.items() if d > 1)
                column[(m.total() + 6 * deep) * self.counts_tables] += float(p)
            product: dict = defaultdict(float)
            for (i, a), (j, b) in itertools.product(total.items(), column.items()):
                product[i + j] += a * b
            total = product
        return {e: math.log(p) for e, p in total.items()}

    def stats(self, y, prior=None) -> EmissionStats:
        """Compiled statistics."""
        codes = [[-1 if w is None else w for w in row] for row in as_rows(y)]
        alpha, *context_alpha = self.alphas
        return self.make_stats(
            np.array(codes, dtype=np.int32),
            [self.n_symbols] * len(codes[0]),
            alpha,
            self.gamma,
            concentration_prior=prior,
            contexts=np.array(self.columns, dtype=np.int32),
            context_alpha=context_alpha,
        )

    def tree(self) -> NaiveSymbolTree:
        """Empty restaurants of one column."""
        return NaiveSymbolTree(self.alphas, self.gamma, self.n_symbols)


def tables_of(record: dict, c: int) -> dict:
    """``{(restaurant, symbol): sizes}`` of column c in a record of `categorical_stats`."""
    tables = {}
    prefixes = [[()]]
    for parents, codes in zip(*map(record["contexts"].get, ("parents", "values")), strict=True):
        pairs = zip(parents.tolist(), codes.tolist(), strict=True)
        prefixes.append([(*prefixes[-1][parent], code) for parent, code in pairs])
    for d, level in enumerate([record["columns"], *record["levels"]]):
        for (row, w), sizes in unpacked(level[c]).items():
            k, number = divmod(row, len(prefixes[d]))
            tables[(k, prefixes[d][number]), w] = sizes
    return tables


def naive_of(emission: ContextEmission, record, c=0):
    """The naive tree of column c with the seating of a record."""
    tree = emission.tree()
    tree.tables = tables_of(record, c)
    for ((_, known), w), sizes in tree.tables.items():
        if not known:
            tree.top[w] += len(sizes)
    return tree


def evidence_continued(hmm: NaiveHMM, tree: NaiveSymbolTree, y, columns) -> float:
    """p(y | seating) of steps of one more sequence that are seated as they come."""

    def continued(transitions, symbols, j, t):
        if t == len(y):
            return 1.0
        total = 0.0
        for k in [*transitions.represented(), ("fresh", t)]:
            q = transitions.get_prob(j, k)
            v = restaurant_of(columns[t], k)
            emitted = 1.0 if y[t] is None else symbols.get_prob(v, y[t])

            def seat(choose, k=k, v=v):
                seated, seen = transitions.copy(), symbols.copy()
                seated.add_customer(j, k, choose)
                if y[t] is not None:
                    seen.add_customer(v, y[t], choose)
                return seated, seen

            for p, (seated, seen) in all_outcomes(seat):
                total += q * emitted * p * continued(seated, seen, k, t + 1)
        return total

    return continued(hmm.transitions, tree, "*", 0)


def concentration_laws(model: Model, prior) -> list:
    """As `reference.contexts.laws_of_depths`, of one column of symbols.

    The concentrations of the transitions are fixed.
    """
    emission = model.emission
    (rows,) = zip(*as_rows(model.y), strict=True)

    def terms(values):
        base = values / emission.n_symbols
        for x in set_partitions(model.n_steps):
            p_x = math.exp(log_prior(x, model.starts, model.alpha, model.gamma))
            for ways, depths, m in law_terms(x, rows, emission.columns):
                factors = {d: depth_factor(values, *sizes) for d, sizes in depths.items()}
                factors[0] = depth_factor(values, [m.total()], 0)
                for n in m.values():
                    factors[0] = factors[0] * np.exp(gammaln(base + n) - gammaln(base))
                yield ways * p_x, factors

    return laws_of_depths(prior, model.n_steps, len(emission.alphas), terms)


MODELS = {
    "contexts of symbols": Model(
        (0, 1, 0, 1, 1),
        ContextEmission(2, (1.0, 0.8), 1.0, ((0,), (1,), (0,), (0,), (1,))),
        (0,),
        2.0,
        1.0,
    ),
    "contexts of symbols, missing": Model(
        (0, None, 1, 0, 0),
        ContextEmission(3, (0.7, 2.0), 1.5, ((0,), (1,), (0,), (-1,), (0,))),
        (0, 3),
        1.0,
        2.0,
    ),
    "two contexts of symbols": Model(
        (0, 1, 1, 0),
        ContextEmission(2, (1.0, 0.5, 2.0), 0.7, ((0, 0), (1, 1), (0, 0), (0, 1))),
        (0,),
        1.5,
        1.0,
    ),
    "contexts of two columns": Model(
        ((0, 1), (1, None), (0, 1), (1, 0)),
        ContextEmission(2, (1.0, 0.6), 1.0, ((0,), (1,), (0,), (0,)), counts_tables=False),
        (0, 2),
        1.0,
        2.0,
    ),
}
