"""Chains that are exact draws of the prior, concentrations and data included."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from reference.enumeration import DirichletEmission, HCRPEmission
from reference.statistics import two_sample_test
from scipy import stats
from small_models import make_stats, packed, packed_counts

from skihmm.core._concentration import resample_concentrations
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.datasets import make_hcrp_hmm

PRIOR = (4.0, 3.0)
"""Gamma prior of all concentrations below."""


class PriorDraw:
    """Concentrations, labels, tables and symbols from the prior."""

    def __init__(self, rng, n_steps=50, n_symbols=5, hierarchical=True):
        self.alpha, self.gamma, self.alpha_e, self.gamma_e = (
            rng.gamma(PRIOR[0], 1 / PRIOR[1], size=4) + 1e-3
        )
        self.hierarchical, self.n_symbols = hierarchical, n_symbols
        self.X, self.labels, self.seating = make_hcrp_hmm(
            n_steps,
            alpha=self.alpha,
            gamma=self.gamma,
            emission="hcrp" if hierarchical else "dirichlet",
            n_symbols=n_symbols,
            emission_alpha=self.alpha_e,
            emission_gamma=self.gamma_e,
            n_sequences=2,
            random_state=int(rng.integers(2**31)),
            return_seating=True,
        )

    def state(self, seed) -> ChainState:
        """The chain at exactly this draw."""
        n_states = int(self.labels.max()) + 1
        transitions = packed(
            self.seating.transitions, lambda j: n_states if j == -1 else j
        )
        if self.hierarchical:
            emission = HCRPEmission(self.n_symbols, self.alpha_e, self.gamma_e)
            column = packed(self.seating.emissions)
        else:
            emission = DirichletEmission(self.n_symbols, self.alpha_e)
            column = packed_counts(
                Counter(zip(self.labels.tolist(), self.X[:, 0].tolist(), strict=True))
            )
        state = ChainState(
            np.flatnonzero(np.diff(self.seating.groups, prepend=-1)),
            Franchise(self.alpha, self.gamma),
            make_stats(self.X, emission, concentration_prior=PRIOR),
            RandomStream(seed),
        )
        arrays = {
            "n_states": n_states,
            "states": self.labels,
            "transitions": transitions,
            "emission": {
                "columns": [column],
                "alpha": self.alpha_e,
                "gamma": self.gamma_e,
            },
        }
        arrays["transitions"] |= {"alpha": self.alpha, "gamma": self.gamma}
        state.from_arrays(arrays)
        return state


def statistics(state) -> list[float]:
    arrays = state.canonicalise()
    labels = arrays["states"]
    return [
        arrays["n_states"],
        state.log_joint(),
        float(labels[10] == labels[11]),
        float(np.mean(labels[:, None] == labels)),
        arrays["transitions"]["n_tables"].sum(),
        sum(column["n_tables"].sum() for column in arrays["emission"]["columns"]),
        math.log(arrays["transitions"]["alpha"]),
        math.log(arrays["transitions"]["gamma"]),
        math.log(arrays["emission"]["alpha"]),
        math.log(arrays["emission"]["gamma"]),
    ]


def swept(make_kernel, n_draws, seed, n_sweeps=15, **options):
    """Statistics of prior draws, and of others after some sweeps."""
    rng = np.random.default_rng(seed)
    fresh, moved = [], []
    for i in range(n_draws):
        fresh.append(statistics(PriorDraw(rng, **options).state(0)))
        state = PriorDraw(rng, **options).state([seed, i])
        kernel = make_kernel()
        for _ in range(n_sweeps):
            kernel.sweep(state)
            resample_concentrations(
                state.transitions, state.emission, state.stream, PRIOR
            )
        moved.append(statistics(state))
        assert i % 50 or state.check() is None
    return np.array(fresh), np.array(moved)


def invariance_pvalue(make_kernel, n_draws, seed, **options):
    """The joint law of parameters and data, sampled in two ways."""
    fresh, moved = swept(make_kernel, n_draws, seed, **options)
    together = two_sample_test(fresh, moved)
    each = [stats.ks_2samp(a, b).pvalue for a, b in zip(fresh.T, moved.T, strict=True)]
    return min(1.0, 2 * min(together, len(each) * min(each)))
