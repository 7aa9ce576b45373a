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
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.emissions._conjugate_stats import conjugate_stats
from skihmm.samplers._base import Kernel
from skihmm.testing._enumeration import (
    DirichletEmission,
    GaussianEmission,
    HCRPEmission,
    Posterior,
    as_rows,
)
from skihmm.testing._probes import record_cells
from skihmm.testing._statistics import TotalVariation, total_variation_test


def make_stats(
    codes: ArrayLike, emission: HCRPEmission | DirichletEmission, **options: Any
) -> EmissionStats:
    """Build compiled statistics of a categorical emission of the enumeration."""
    codes = np.asarray(codes, dtype=np.int32)
    n_symbols = [emission.n_symbols] * codes.shape[1]
    if isinstance(emission, HCRPEmission):
        return categorical_stats(codes, n_symbols, emission.alpha, emission.gamma, True, **options)
    return categorical_stats(codes, n_symbols, emission.concentration, 1.0, False, **options)


@dataclass(frozen=True)
class Model:
    """Small model: arguments of ``Posterior``, and the compiled chain for them.

    The emission is one of the enumeration, or any object with the methods
    ``log_likelihood_by_tables(x, y)``, ``stats(y)``, which builds the statistics, and, if
    not all steps may be in one state, ``start(n_steps)``, which returns initial labels.
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

    @cached_property
    def codes(self) -> Labels:
        """Symbols as encoded for the statistics, -1 for a missing one."""
        rows = [[-1 if w is None else w for w in row] for row in as_rows(self.y)]
        return np.array(rows, dtype=np.int32)

    def stats(self, **options: Any) -> EmissionStats:
        """Compiled statistics of the emission."""
        if hasattr(self.emission, "stats"):
            return self.emission.stats(self.y)
        if isinstance(self.emission, GaussianEmission):
            values = np.array(self.y, dtype=float)[:, None]
            mean, strength, shape, scale = astuple(self.emission)
            prior, units = [mean, strength, scale], np.ones(3)
            return conjugate_stats(
                "normal_inverse_gamma", values, prior, units, [False] * 3, shape=shape
            )
        return make_stats(self.codes, self.emission, **options)

    def state(
        self,
        seed: int | Sequence[int] | np.random.SeedSequence | RandomStream,
        labels: Integers | None = None,
        **options: Any,
    ) -> ChainState:
        """Build a chain at some labels (all equal by default)."""
        state = ChainState(
            np.array(self.starts),
            Franchise(self.alpha, self.gamma, options.get("concentration_prior")),
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
        """``(labels, m, e)`` of a number made by ``record_cells``."""
        code, e = divmod(int(code), 64)
        code, m = divmod(code, 64)
        labels = []
        for _ in range(self.n_steps):
            code, label = divmod(code, 8)
            labels.append(label)
        # Tables that the exact posterior does not have.
        e = e if getattr(self.emission, "counts_tables", True) else 0
        return tuple(reversed(labels)), m, e


class Comparison(NamedTuple):
    """Differences of the chains of `compare` from the exact posterior."""

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
    """Run independent chains; return their cells after every sweep, and acceptance."""
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
    counts: Floats, cells: Sequence[Cell], exact: Mapping[Cell, float]
) -> tuple[Floats, Floats]:
    """Frequencies of cells per chain, and their exact probabilities in the same order.

    `counts`, of shape (n_chains, n), has the visits of `cells`.  Several columns may have
    the same name, which is one of `exact`.
    """
    place = {cell: i for i, cell in enumerate(exact)}
    table = np.zeros((len(counts), len(place)))
    for cell, column in zip(cells, counts.T, strict=True):
        assert cell in place, f"the chain visits {cell}, which is impossible"
        table[:, place[cell]] += column
    probabilities = np.array([*exact.values()])
    return table / counts.sum(axis=1)[:, None], probabilities / probabilities.sum()


def compare(
    model: Model,
    make_kernel: Callable[[ChainState], Kernel],
    *,
    n_chains: int = 20,
    n_sweeps: int = 2000,
    seed: int = 0,
    n_burnin: int = 500,
) -> Comparison:
    """Compare chains with exact probabilities: of partitions, with (m, e), and (m, e)."""
    chains, acceptance = run_chains(model, make_kernel, n_chains, n_sweeps, seed, n_burnin)
    codes, places = np.unique(chains, return_inverse=True)
    places = places.reshape(chains.shape)
    counts = np.array([np.bincount(row, minlength=len(codes)) for row in places], float)
    cells = [model.cell(code) for code in codes]
    law: dict[tuple[int, int], float] = defaultdict(float)
    for (_, m, e), probability in model.posterior.joint.items():
        law[m, e] += probability
    joint = cell_frequencies(counts, cells, model.posterior.joint)
    partitions = cell_frequencies(
        counts, [labels for labels, _, _ in cells], model.posterior.probabilities
    )
    tables = cell_frequencies(counts, [(m, e) for _, m, e in cells], law)
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
    """Compare with enumeration; repeat a doubtful result with more sweeps.

    So a correct sampler fails about once in ``1 / (doubt * SUSPECT)`` seeds.  The result
    says whether the sampler passes, and has one or two comparisons.
    """
    found = [compare(model, make_kernel, n_sweeps=n_sweeps, seed=seed, n_burnin=n_burnin)]
    if found[0].pvalue <= doubt:
        found.append(
            compare(model, make_kernel, n_sweeps=4 * n_sweeps, seed=seed + 10**6, n_burnin=n_burnin)
        )
    return found[-1].pvalue > SUSPECT, found
