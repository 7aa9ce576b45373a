"""Exact laws of transitions with a coin per state: a walk, and closed forms.

A step stays in its state k with probability W_k ~ Beta(kappa, omega), or else its state
is a draw in the restaurant of k.  The walk goes through all labels, stays and tables in
the order of time, from predictive probabilities; the closed form has Beta functions and
Stirling numbers.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.special import betaln
from small_models import Model

from reference.enumeration import (
    START,
    Posterior,
    convolve,
    log_crp,
    row_sizes,
    set_partitions,
    stirling_polynomial,
    transition_counts,
)
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState

STAY, DRAW = range(2)


def ways_to_enter(labels, starts) -> list:
    """How every step may be entered: ``[kinds, ...]``."""
    possible = [
        (STAY, DRAW) if t not in starts and labels[t - 1] == k else (DRAW,)
        for t, k in enumerate(labels)
    ]
    return [*itertools.product(*possible)]


@cache
def walk(n_steps, starts, alpha, gamma, kappa, omega, penalty=0.0) -> dict:
    """``{(labels, m, Q): probability}``, m tables and Q stays in all.

    With a switch penalty, times exp(-penalty) for every draw after a state.
    """
    # A state of the walk: labels, numbers of stays by label, {(row, dish): table sizes}.
    states = {((), (), ()): 1.0}
    for t in range(n_steps):
        following: dict = defaultdict(float)
        for (labels, stays, cells), probability in states.items():
            tables = dict(cells)
            j = START if t in starts else labels[-1]
            draws = sum(sum(sizes) for (row, _), sizes in tables.items() if row == j)
            leaves = 1.0
            if j != START:
                q, left = kappa + stays[j], omega + draws
                leaves = left / (q + left)
                key = (*labels, j), _one_more(stays, j), cells
                following[key] += probability * (1 - leaves)
                leaves *= math.exp(-penalty)
            served = Counter()
            for (_, dish), sizes in tables.items():
                served[dish] += len(sizes)
            m, n_labels = sum(served.values()), len(stays)
            for k in range(n_labels + 1):
                sizes = tables.get((j, k), ())
                grown = [(size, _one_more(sizes, i)) for i, size in enumerate(sizes)]
                base = (served[k] or gamma) / (m + gamma)
                grown.append((alpha * base, (*sizes, 1)))
                fresh = (0,) * (k == n_labels)
                for weight, after in grown:
                    cell = {**tables, (j, k): tuple(sorted(after))}
                    key = (
                        (*labels, k),
                        (*stays, *fresh),
                        tuple(sorted(cell.items(), key=repr)),
                    )
                    following[key] += probability * leaves * weight / (draws + alpha)
        states = following
    out: dict = defaultdict(float)
    for (labels, stays, cells), probability in states.items():
        out[labels, sum(len(sizes) for _, sizes in cells), sum(stays)] += probability
    return dict(out)


def _one_more(counts, i) -> tuple:
    return (*counts[:i], counts[i] + 1, *counts[i + 1 :])


def closed_form(x, starts, alpha, gamma, kappa, omega) -> dict:
    """``{(m, Q): p(x, m, Q)}``."""
    counts = transition_counts(x, starts)
    loops = {k: n for (j, k), n in counts.items() if j == k}
    out: dict = defaultdict(float)
    for stays in itertools.product(*(range(n + 1) for n in loops.values())):
        draws = Counter(counts)
        draws.subtract({(k, k): q for k, q in zip(loops, stays, strict=True)})
        draws = +draws
        log_p = 0.0
        for k in set(x):
            q = counts[k, k] - draws[k, k]
            left = sum(n for (j, _), n in draws.items() if j == k)
            log_p += math.log(math.comb(counts[k, k], q))
            log_p += betaln(kappa + q, omega + left) - betaln(kappa, omega)
        for m, weight in tables_of_draws(draws, alpha, gamma, log_p).items():
            out[m, sum(stays)] += weight
    return dict(out)


def tables_of_draws(draws, alpha, gamma, log_p) -> dict:
    """``{m: probability}`` of draws with m tables in all, times exp(log_p)."""
    weights = {0: 1}
    dishes = {k for _, k in draws}
    for k in dishes:
        dish = stirling_polynomial(n for (_, d), n in draws.items() if d == k)
        weights = convolve(weights, {m: w * math.factorial(m - 1) for m, w in dish.items()})
    return {
        m: weight
        * math.exp(
            log_p
            + float(log_crp(alpha, row_sizes(draws)) + log_crp(gamma, [m]))
            + m * math.log(alpha)
            + len(dishes) * math.log(gamma)
        )
        for m, weight in weights.items()
    }


@dataclass
class LawPosterior(Posterior):
    """Exact posterior of a `LawModel`."""

    model: object = None

    @cached_property
    def _log_joint(self) -> dict:
        table = {}
        for x in set_partitions(len(self.y)):
            emitted = self.emission.log_likelihood_by_tables(x, self.y)
            law = self.model.law_of(x)
            for (m, p), (e, log_q) in itertools.product(law.items(), emitted.items()):
                table[x, m, e] = math.log(p) + log_q
        return table


@dataclass(frozen=True)
class LawModel(Model):
    """Base of small models whose transitions have a law of their own.

    Subclasses have ``law_of(x)``, ``{m: p(x, m)}`` with the m of ``record_cells``, which has
    8 more for every stay and for every table of depth 2 and more, and `law_options` of the
    compiled transitions.
    """

    @property
    def law_options(self) -> dict:
        return {}

    @cached_property
    def posterior(self) -> LawPosterior:
        given = self.y, self.emission, self.starts, self.alpha, self.gamma
        return LawPosterior(*given, model=self)

    def franchise(self, prior=None) -> Franchise:
        return Franchise(self.alpha, self.gamma, prior, **self.law_options)

    def state(self, seed, labels=None, **options) -> ChainState:
        state = ChainState(
            np.array(self.starts),
            self.franchise(options.pop("concentration_prior", None)),
            self.stats(**options),
            seed if isinstance(seed, RandomStream) else RandomStream(seed),
        )
        if labels is None:
            labels = np.zeros(self.n_steps, int)
            if hasattr(self.emission, "start"):
                labels = self.emission.start(self.n_steps)
        state.start_from(labels)
        return state


@dataclass(frozen=True)
class Coins:
    """Coins in front of a small model's restaurants; the first of two bases."""

    kappa: float = 1.0
    omega: float = 1.0
    penalty: float = 0.0

    @property
    def law_options(self) -> dict:
        return super().law_options | {
            "stays": {"stay_prior": (self.kappa, self.omega)},
            "switch_penalty": self.penalty,
        }

    def log_coins(self, labels, kinds) -> float:
        """Log probability of all stays and leaves."""
        n_states = max(labels) + 1
        before = [labels[t - 1] for t in range(len(labels)) if t not in self.starts]
        steps = np.bincount(before, minlength=n_states)
        stays = np.bincount(labels, np.equal(kinds, STAY), n_states)
        log_p = betaln(self.kappa + stays, self.omega + steps - stays)
        log_p = float(np.sum(log_p - betaln(self.kappa, self.omega)))
        leaves = [t for t, kind in enumerate(kinds) if kind == DRAW and t not in self.starts]
        return log_p - self.penalty * len(leaves)


@dataclass(frozen=True)
class CoinModel(Coins, LawModel):
    """A small model with coins."""

    @cached_property
    def _laws(self) -> dict:
        coins = self.kappa, self.omega, self.penalty
        laws: dict = defaultdict(dict)
        for (x, m, q), p in walk(self.n_steps, self.starts, self.alpha, self.gamma, *coins).items():
            laws[x][m + 8 * q] = p
        return laws

    def law_of(self, x) -> dict:
        return self._laws[x]
