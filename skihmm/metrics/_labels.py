"""Labels of draws as partitions of the steps: where they agree, and whether they move."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from skihmm._draws import PosteriorDraws
from skihmm._typing import Flags, Floats, Integers, Labels
from skihmm._using.partitions import overlaps

# A step is firm if so many of the draws have the same state there, and labels are if so
# many of the steps are.
FIRM = 0.9
# Numbers of evenly spaced steps on which paths are compared; of draws compared with the selected
# draw; and of draws of a chain, or of a part of it, compared with other draws.
_MOST_STEPS, _MOST_DRAWS, PER_PART = 10_000, 100, 10
# Sums of weights have rounding errors.
_ROUNDING = 1e-9


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """At most `most` evenly spaced numbers of 0, ..., n - 1, the first and the last."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def agreement(reference: Integers, path: Integers) -> Flags:
    """Steps on which two paths agree, with their states paired to agree most often."""
    overlap = overlaps(reference, path)
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    label = np.full(overlap.shape[1], -1)
    label[columns] = rows
    return np.asarray(label[path] == reference)


def _spread_within(paths: Labels) -> float:
    """Mean share of the steps on which two of the paths disagree."""
    if len(paths) < 2:
        return 0.0
    shares = [agreement(a, b).mean() for i, a in enumerate(paths) for b in paths[:i]]
    return 1 - float(np.mean(shares))


def _spread_between(one: Labels, other: Labels) -> float:
    """Mean share of the steps on which paths of two sets disagree."""
    return 1 - float(np.mean([agreement(a, b).mean() for a in one for b in other]))


class DrawLabels:
    """Labels of the first `n_draws` draws of some chains, compared with each other.

    Label switching does not matter: states of two paths are paired one to one.
    """

    def __init__(self, draws: PosteriorDraws, chains: list[int], n_draws: int) -> None:
        self._paths = draws._paths(_MOST_STEPS)
        self._firsts = draws.n_draws.cumsum() - draws.n_draws
        self._weights = draws.weights()
        self._chains, self._n_draws = chains, n_draws

    def firm_share(self, reference: tuple[int, int]) -> float:
        """Share of the steps on which nine of ten draws agree with a reference draw."""
        path = self._paths[self._firsts[reference[0]] + reference[1]]
        heavy = np.flatnonzero(self._weights)
        chosen = heavy[evenly(len(heavy), _MOST_DRAWS)]
        agreed = sum(self._weights[d] * agreement(path, self._paths[d]) for d in chosen)
        least = FIRM * self._weights[chosen].sum() - _ROUNDING
        return float((agreed >= least).mean())

    def moved(self) -> Floats:
        """By chain, how much more its first and last third differ than draws of one do.

        Shares of the steps.
        """
        third = max(self._n_draws // 3, 1)
        part = evenly(third, PER_PART)
        found = []
        for c in self._chains:
            first = self._paths[self._firsts[c] + part]
            last = self._paths[self._firsts[c] + part + self._n_draws - third]
            within = (_spread_within(first) + _spread_within(last)) / 2
            found.append(_spread_between(first, last) - within)
        return np.array(found)

    def apart_from(self, home: int) -> Floats:
        """By chain, how much more its draws differ from those of one chain than they do.

        Shares of the steps; `home` is the chain's place in the list of chains.
        """
        chosen = evenly(self._n_draws, PER_PART)
        sets = [self._paths[self._firsts[c] + chosen] for c in self._chains]
        if len(sets) == 1:
            return np.zeros(1)
        within = [_spread_within(paths) for paths in sets]
        apart = [
            _spread_between(paths, sets[home]) - (own + within[home]) / 2
            for paths, own in zip(sets, within, strict=True)
        ]
        apart[home] = 0.0
        return np.array(apart)


def firm_share(draws: PosteriorDraws, reference: tuple[int, int]) -> float:
    """Share of the steps on which nine of ten draws agree with one; NaN without paths."""
    if not draws.has_states:
        return math.nan
    return DrawLabels(draws, [], 0).firm_share(reference)
