"""Models of a few steps, and comparisons of their chains with exact enumeration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skihmm._typing import Floats, Integers, Labels
from skihmm.core._emission import EmissionStats
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.core._testing import NormalStats, record_cells
from skihmm.emissions._categorical_stats import CategoricalStats
from skihmm.samplers._base import Kernel
from skihmm.testing._enumeration import (
    DirichletEmission,
    GaussianEmission,
    HCRPEmission,
    Posterior,
    as_rows,
)
from skihmm.testing._statistics import TotalVariation, total_variation_test


def make_stats(
    codes: ArrayLike, emission: HCRPEmission | DirichletEmission, **options: Any
) -> CategoricalStats:
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
    """Arguments of ``Posterior``, and how to build the compiled chain for them.

    Besides the emissions of the enumeration any object will do that has its method
    ``log_likelihood_by_tables(x, y)``, a method ``stats(y)`` that builds the statistics
    and, if not all steps may be in one state, ``start(n_steps)`` with labels to begin
    with.
    """

    y: tuple
    emission: Any
    starts: tuple = (0,)
    alpha: float = 1.0
    gamma: float = 1.0

    @cached_property
    def posterior(self) -> Posterior:
        """The exact posterior."""
        return Posterior(self.y, self.emission, self.starts, self.alpha, self.gamma)

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.y)

    @property
    def codes(self) -> Labels:
        """Symbols as the statistics take them, -1 for a missing one."""
        rows = [[-1 if w is None else w for w in row] for row in as_rows(self.y)]
        return np.array(rows, dtype=np.int32)

    def stats(self, **options: Any) -> EmissionStats:
        """Compiled statistics of the emission."""
        if hasattr(self.emission, "stats"):
            return self.emission.stats(self.y)
        if isinstance(self.emission, GaussianEmission):
            return NormalStats(np.array(self.y, dtype=float), *astuple(self.emission))
        return make_stats(self.codes, self.emission, **options)

    def state(
        self,
        seed: int | Sequence[int] | np.random.SeedSequence | RandomStream,
        labels: Integers | None = None,
        **options: Any,
    ) -> ChainState:
        """A chain at some labels (all equal by default)."""
        state = ChainState(
            np.array(self.starts),
            Franchise(self.alpha, self.gamma),
            self.stats(**options),
            seed if isinstance(seed, RandomStream) else RandomStream(seed),
        )
        if labels is None:
            labels = np.zeros(self.n_steps, int)
            if hasattr(self.emission, "start"):
                labels = self.emission.start(self.n_steps)
        state.start_from(labels)
        return state

    def cell(self, code: int) -> tuple[tuple[int, ...], int, int]:
        """``(labels, m, e)`` of a number made by ``cell_of``."""
        code, e = divmod(int(code), 64)
        code, m = divmod(code, 64)
        labels = []
        for _ in range(self.n_steps):
            code, label = divmod(code, 8)
            labels.append(label)
        # (Tables that the exact posterior knows nothing of.)
        e = e if getattr(self.emission, "counts_tables", True) else 0
        return tuple(reversed(labels)), m, e


class Comparison(NamedTuple):
    """How the chains of `compare` differ from the exact posterior."""

    partitions: TotalVariation
    joint: TotalVariation
    tables: TotalVariation
    acceptance: float

    @property
    def pvalue(self) -> float:
        """The smallest p-value, times their number."""
        tests = (self.partitions, self.joint, self.tables)
        return min(1.0, len(tests) * min(test.pvalue for test in tests))


Cell = TypeVar("Cell")

SUSPECT = 0.002
"""Planted errors must be caught at this level, and exactness is doubted at it."""


def run_chains(
    model: Model,
    make_kernel: Callable[[ChainState], Kernel],
    n_chains: int,
    n_sweeps: int,
    seed: int,
    n_burnin: int = 500,
) -> tuple[NDArray[np.int64], float]:
    """Cells after every sweep of independent chains, and the acceptance rate."""
    chains, proposed, accepted = [], 0, 0
    for child in np.random.SeedSequence(seed).spawn(n_chains):
        state = model.state(child)
        kernel = make_kernel(state)
        record_cells(kernel, state, n_burnin)
        cells, n, a = record_cells(kernel, state, n_sweeps, 97)
        problem = state.check()
        assert problem is None, f"the chain's counts are wrong: {problem}"
        chains.append(cells)
        proposed += n
        accepted += a
    return np.array(chains), accepted / proposed


def cell_frequencies(
    chains: NDArray[np.int64],
    name: Callable[[int], Cell],
    exact: Mapping[Cell, float],
) -> tuple[Floats, Floats]:
    """Frequencies of cells per chain, and the exact law in the same order.

    Parameters
    ----------
    chains : ndarray of shape (n_chains, n_sweeps)
        Cells as numbers.
    name : callable
        What `exact` calls them.
    exact : dict
        ``{cell: probability}``.

    Returns
    -------
    frequencies : ndarray of shape (n_chains, n_cells)
    probabilities : ndarray of shape (n_cells,)
    """
    place = {cell: i for i, cell in enumerate(exact)}
    table = np.zeros((len(chains), len(place)))
    for row, chain in zip(table, chains, strict=True):
        codes, counts = np.unique(chain, return_counts=True)
        for code, count in zip(codes, counts, strict=True):
            cell = name(code)
            assert cell in place, f"the chain visits {cell}, which is impossible"
            row[place[cell]] += count / len(chain)
    probabilities = np.array([*exact.values()])
    return table, probabilities / probabilities.sum()


def compare(
    model: Model,
    make_kernel: Callable[[ChainState], Kernel],
    *,
    n_chains: int = 20,
    n_sweeps: int = 2000,
    seed: int = 0,
    n_burnin: int = 500,
) -> Comparison:
    """Chains against the exact law of the partition, of it with (m, e), of (m, e)."""
    chains, acceptance = run_chains(
        model, make_kernel, n_chains, n_sweeps, seed, n_burnin
    )
    joint = cell_frequencies(chains, model.cell, model.posterior.joint)
    partitions = cell_frequencies(
        chains, lambda code: model.cell(code)[0], model.posterior.probabilities
    )
    law: dict[tuple[int, int], float] = defaultdict(float)
    for (_, m, e), probability in model.posterior.joint.items():
        law[m, e] += probability
    tables = cell_frequencies(chains, lambda code: model.cell(code)[1:], law)
    return Comparison(
        total_variation_test(*partitions),
        total_variation_test(*joint),
        total_variation_test(*tables),
        acceptance,
    )


def is_exact(
    model: Model,
    make_kernel: Callable[[ChainState], Kernel],
    *,
    n_sweeps: int,
    seed: int = 0,
    n_burnin: int = 500,
    doubt: float = SUSPECT,
) -> tuple[bool, list[Comparison]]:
    """Compare with enumeration; a doubtful result is repeated with more sweeps.

    So a correct sampler fails about once in ``1 / (doubt * SUSPECT)`` seeds.

    Returns
    -------
    passes : bool
    comparisons : list of Comparison
        One or two.
    """
    found = [compare(model, make_kernel, n_sweeps=n_sweeps, seed=seed, n_burnin=n_burnin)]
    if found[0].pvalue <= doubt:
        found.append(
            compare(
                model,
                make_kernel,
                n_sweeps=4 * n_sweeps,
                seed=seed + 10**6,
                n_burnin=n_burnin,
            )
        )
    return found[-1].pvalue > SUSPECT, found
