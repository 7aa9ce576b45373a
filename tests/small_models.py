"""Models of a few steps, for comparisons of compiled chains with exact enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from reference.enumeration import HCRPEmission, Posterior, as_rows
from reference.statistics import TotalVariation, total_variation_test

from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.core._testing import record_cells
from skihmm.emissions._categorical_stats import CategoricalStats


def make_stats(codes, emission, **options) -> CategoricalStats:
    """Compiled statistics of a categorical emission given as by the reference."""
    codes = np.asarray(codes, dtype=np.int32)
    n_symbols = [emission.n_symbols] * codes.shape[1]
    if isinstance(emission, HCRPEmission):
        return CategoricalStats(
            codes, n_symbols, emission.alpha, emission.gamma, True, **options
        )
    return CategoricalStats(
        codes, n_symbols, emission.concentration, 1.0, False, **options
    )


@dataclass(frozen=True)
class Model:
    """Arguments of ``Posterior``, and how to build the compiled chain for them."""

    y: tuple
    emission: object
    starts: tuple = (0,)
    alpha: float = 1.0
    gamma: float = 1.0

    @cached_property
    def posterior(self) -> Posterior:
        return Posterior(self.y, self.emission, self.starts, self.alpha, self.gamma)

    @property
    def n_steps(self) -> int:
        return len(self.y)

    @property
    def codes(self) -> np.ndarray:
        rows = [[-1 if w is None else w for w in row] for row in as_rows(self.y)]
        return np.array(rows, dtype=np.int32)

    def state(self, seed, labels=None, **options) -> ChainState:
        """A chain at some labels (all equal by default)."""
        state = ChainState(
            np.array(self.starts),
            Franchise(self.alpha, self.gamma),
            make_stats(self.codes, self.emission, **options),
            seed if isinstance(seed, RandomStream) else RandomStream(seed),
        )
        state.start_from(np.zeros(self.n_steps, int) if labels is None else labels)
        return state

    def cell(self, code: int) -> tuple:
        """``(labels, m, e)`` of a number made by ``cell_of``."""
        code, e = divmod(int(code), 64)
        code, m = divmod(code, 64)
        labels = []
        for _ in range(self.n_steps):
            code, label = divmod(code, 8)
            labels.append(label)
        return tuple(reversed(labels)), m, e


class Comparison(NamedTuple):
    """How the chains of `compare` differ from the exact posterior."""

    partitions: TotalVariation
    joint: TotalVariation
    acceptance: float

    @property
    def pvalue(self) -> float:
        """P-value of the smaller of the two p-values, doubled."""
        return min(1.0, 2 * min(self.partitions.pvalue, self.joint.pvalue))


def run_chains(
    model: Model, make_kernel, n_chains: int, n_sweeps: int, seed: int, n_burnin=500
) -> tuple[np.ndarray, float]:
    """Cells after every sweep of independent chains, and the acceptance rate."""
    chains, proposed, accepted = [], 0, 0
    for child in np.random.SeedSequence(seed).spawn(n_chains):
        state = model.state(child)
        kernel = make_kernel()
        record_cells(kernel, state, n_burnin)
        cells, n, a = record_cells(kernel, state, n_sweeps, 97)
        assert state.check() is None
        chains.append(cells)
        proposed += n
        accepted += a
    return np.array(chains), accepted / proposed


def cell_frequencies(chains: np.ndarray, name, exact: dict):
    """`frequency_table` for cells given as numbers."""
    cells = list(exact)
    place = {cell: i for i, cell in enumerate(cells)}
    table = np.zeros((len(chains), len(cells)))
    for row, chain in zip(table, chains, strict=True):
        codes, counts = np.unique(chain, return_counts=True)
        for code, count in zip(codes, counts, strict=True):
            row[place[name(code)]] += count / len(chain)
    return table, np.array([exact[cell] for cell in cells])


def compare(
    model: Model, make_kernel, *, n_chains=20, n_sweeps=2000, seed=0, n_burnin=500
) -> Comparison:
    """Chains against the exact law of the partition, and of it with (m, e)."""
    chains, acceptance = run_chains(
        model, make_kernel, n_chains, n_sweeps, seed, n_burnin
    )
    joint = cell_frequencies(chains, model.cell, model.posterior.joint)
    partitions = cell_frequencies(
        chains, lambda code: model.cell(code)[0], model.posterior.probabilities
    )
    return Comparison(
        total_variation_test(*partitions), total_variation_test(*joint), acceptance
    )
