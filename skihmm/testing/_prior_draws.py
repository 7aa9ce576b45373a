"""Chains that are exact draws of the prior, with concentrations and data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from skihmm._records import SeatingRecord, StateRecord, hyperparameters_of
from skihmm._typing import Floats
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.datasets import make_hcrp_hmm
from skihmm.samplers._base import Kernel
from skihmm.testing._enumeration import DirichletEmission, HCRPEmission
from skihmm.testing._small_models import SUSPECT, make_stats
from skihmm.testing._statistics import two_sample_test

PRIOR = (4.0, 3.0)
"""Gamma prior of all concentrations below."""

# Steps of both sequences together, and symbols.
N_STEPS, N_SYMBOLS = 50, 5


def packed(
    tables: Mapping[tuple[int, int], Sequence[int]],
    place: Callable[[int], int] = lambda row: row,
) -> SeatingRecord:
    """Convert ``{(row, dish): table sizes}`` to the arrays of a record.

    `place` maps rows to numbers.
    """
    cells = sorted((place(j), k, sorted(n)[::-1]) for (j, k), n in tables.items() if n)
    return {
        "rows": np.array([j for j, _, _ in cells], dtype=np.int32),
        "dishes": np.array([k for _, k, _ in cells], dtype=np.int32),
        "n_customers": np.array([sum(sizes) for _, _, sizes in cells], dtype=np.int32),
        "n_tables": np.array([len(sizes) for _, _, sizes in cells], dtype=np.int32),
        "sizes": np.array([n for _, _, sizes in cells for n in sizes], dtype=np.int32),
    }


def packed_counts(counts: Mapping[tuple[int, int], int]) -> SeatingRecord:
    """Convert ``{(row, dish): n}`` without tables to the arrays of a record."""
    arrays = packed({pair: [n] for pair, n in counts.items() if n})
    arrays["n_tables"] = np.zeros_like(arrays["n_tables"])
    arrays["sizes"] = arrays["sizes"][:0]
    return arrays


class PriorDraw:
    """Concentrations, labels, tables and symbols from the prior.

    If it is `hierarchical`, emissions have tables.
    """

    def __init__(self, rng: np.random.Generator, hierarchical: bool) -> None:
        self.alpha, self.gamma, self.alpha_e, self.gamma_e = (
            rng.gamma(PRIOR[0], 1 / PRIOR[1], size=4) + 1e-3
        )
        self.hierarchical = hierarchical
        drawn: Any = make_hcrp_hmm(
            N_STEPS,
            alpha=self.alpha,
            gamma=self.gamma,
            emission="hcrp" if hierarchical else "dirichlet",
            n_symbols=N_SYMBOLS,
            emission_alpha=self.alpha_e,
            emission_gamma=self.gamma_e,
            n_sequences=2,
            random_state=int(rng.integers(2**31)),
            return_seating=True,
        )
        self.X, self.labels, self.seating = drawn

    def state(self, seed: int | Sequence[int]) -> ChainState:
        """Build the chain at exactly this draw."""
        n_states = int(self.labels.max()) + 1
        transitions: Any = packed(self.seating.transitions, lambda j: n_states if j == -1 else j)
        emission: HCRPEmission | DirichletEmission
        if self.hierarchical:
            emission = HCRPEmission(N_SYMBOLS, self.alpha_e, self.gamma_e)
            column = packed(self.seating.emissions)
        else:
            emission = DirichletEmission(N_SYMBOLS, self.alpha_e)
            column = packed_counts(
                Counter(zip(self.labels.tolist(), self.X[:, 0].tolist(), strict=True))
            )
        state = ChainState(
            np.flatnonzero(np.diff(self.seating.groups, prepend=-1)),
            Franchise(self.alpha, self.gamma, PRIOR),
            make_stats(self.X, emission, concentration_prior=PRIOR),
            RandomStream(seed),
        )
        arrays: StateRecord = {
            "n_states": n_states,
            "states": self.labels,
            "transitions": transitions | state.transitions.hyperparameters,
            "emission": {"columns": [column], "alpha": self.alpha_e, "gamma": self.gamma_e},
        }
        state.from_arrays(arrays)
        return state


def statistics(state: ChainState) -> list[float]:
    """Statistics by which two groups of chains are compared."""
    arrays = state.canonicalise()
    labels = arrays["states"]
    return [
        arrays["n_states"],
        state.log_joint(),
        float(labels[10] == labels[11]),
        float(np.mean(labels[:, None] == labels)),
        arrays["transitions"]["n_tables"].sum(),
        sum(column["n_tables"].sum() for column in arrays["emission"]["columns"]),
        *map(math.log, hyperparameters_of(arrays["transitions"]).values()),
        math.log(arrays["emission"]["alpha"]),
        math.log(arrays["emission"]["gamma"]),
    ]


# They take most of the time, and are the same for every kernel.
@lru_cache(maxsize=4)
def _two_groups(n_draws: int, seed: int, hierarchical: bool) -> tuple[Floats, list[PriorDraw]]:
    """Statistics of prior draws, and as many others."""
    rng = np.random.default_rng(seed)
    fresh, others = [], []
    for _ in range(n_draws):
        fresh.append(statistics(PriorDraw(rng, hierarchical).state(0)))
        others.append(PriorDraw(rng, hierarchical))
    return np.array(fresh), others


def swept(
    make_kernel: Callable[[ChainState], Kernel],
    n_draws: int,
    seed: int,
    hierarchical: bool,
    n_sweeps: int,
) -> tuple[Floats, Floats]:
    """Statistics of prior draws, and of others after some sweeps."""
    fresh, draws = _two_groups(n_draws, seed, hierarchical)
    moved = []
    for i, draw in enumerate(draws):
        state = draw.state([seed, i])
        kernel = make_kernel(state)
        for _ in range(n_sweeps):
            kernel.sweep(state)
            state.draw_hidden()
        moved.append(statistics(state))
        problem = None if i % 50 else state.check()
        assert problem is None, f"the chain's counts are wrong: {problem}"
    return fresh, np.array(moved)


def invariance_pvalue(
    make_kernel: Callable[[ChainState], Kernel],
    n_draws: int,
    seed: int,
    hierarchical: bool,
    n_sweeps: int,
) -> float:
    """Compare the joint distribution of parameters and data, with and without sweeps.

    Each way has `n_draws` chains.  The result is the smallest p-value of a permutation test
    of all statistics and of Kolmogorov-Smirnov tests of each, corrected for their number.
    """
    fresh, moved = swept(make_kernel, n_draws, seed, hierarchical, n_sweeps)
    together = two_sample_test(fresh, moved)
    # (Exact p-values are not defined with ties, and fail in some large samples.)
    each = [
        stats.ks_2samp(a, b, method="asymp").pvalue for a, b in zip(fresh.T, moved.T, strict=True)
    ]
    return min(1.0, 2 * min(together, len(each) * min(each)))


def keeps_prior_draws(
    make_kernel: Callable[[ChainState], Kernel],
    *,
    n_draws: int,
    seed: int,
    doubt: float,
    hierarchical: bool,
    n_sweeps: int = 15,
) -> tuple[bool, list[float]]:
    """Compare with prior draws; repeat a doubtful result with four times as many.

    The result says whether the chains pass, and has one or two p-values.
    """
    pvalues = [invariance_pvalue(make_kernel, n_draws, seed, hierarchical, n_sweeps)]
    if pvalues[0] <= doubt:
        n_draws, seed = 4 * n_draws, seed + 10**6
        pvalues.append(invariance_pvalue(make_kernel, n_draws, seed, hierarchical, n_sweeps))
    return pvalues[-1] > SUSPECT, pvalues
