"""The step-wise sampler against exact answers."""

from __future__ import annotations

import math

import native
import numpy as np
import pytest
from reference.enumeration import DirichletEmission, HCRPEmission
from scipy import stats
from small_models import MODELS, Model, random_chain

from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.samplers import StepwiseGibbs
from skihmm.samplers._kernels import BeamProposal, BlockedProposal, StepwiseProposal


def dense_kernel():
    return RCDKernel(StepwiseProposal())


# With dense counts to look up single pairs, and without.
LIMITS = {
    "sparse": (1024,),
    "sparse, no lookup": (0,),
    "exact": (1024, True),
    "exact, no lookup": (0, True),
}
PROPOSALS = {
    name: lambda limits=limits: StepwiseProposal(*limits) for name, limits in LIMITS.items()
}


# -- the proposal ---------------------------------------------------------------------


def long_chain(seed, n_columns=1, hierarchical=True, n=400, n_symbols=6, n_labels=40, alpha=4.0):
    """A chain of a few dozen states, some steps missing, three sequences."""
    emission = HCRPEmission(n_symbols, 3.0, 2.0)
    if not hierarchical:
        emission = DirichletEmission(n_symbols, 0.3)
    return random_chain(
        seed,
        lambda rng: rng.zipf(1.3, size=n) % n_labels,
        emission,
        n,
        n_columns,
        starts=(0, 150, 151),
        alpha=alpha,
        gamma=6.0,
    )


CASES = {
    # proposal, columns, HCRP
    "sparse": ("sparse", 1, True),
    "sparse, Dirichlet": ("sparse", 1, False),
    "sparse, no lookup": ("sparse, no lookup", 1, True),
    "exact": ("exact", 1, True),
    "exact, Dirichlet": ("exact", 1, False),
    "exact, no lookup": ("exact, no lookup", 1, True),
    "sparse, no lookup, Dirichlet": ("sparse, no lookup", 1, False),
    "rows": ("sparse", 2, True),
    "rows, Dirichlet": ("sparse", 2, False),
    "exact, rows": ("exact", 2, True),
}


@pytest.mark.parametrize("case", CASES)
def test_proposals_follow_their_definition(case):
    """At every s_0 of some sweeps, caches and all, the weights are the products of
    predictive probabilities and the labels are drawn with these weights.
    """
    name, n_columns, hierarchical = CASES[case]
    ranks, n_ghosts = [], 0
    for seed in range(4):
        state = long_chain(seed, n_columns, hierarchical)
        proposal = PROPOSALS[name]()
        for _ in range(10):
            error, uniforms, ghosts, *_ = native.moves.checked_sweep(
                state, proposal, exact=proposal.exact
            )
            assert error < 1e-9
            assert state.check() is None
            ranks.append(uniforms)
            n_ghosts += ghosts
    ranks = np.concatenate(ranks)
    assert n_ghosts > 100
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3
    # The ends, where a label that is never drawn would show.
    counts = np.bincount((ranks * 100).astype(int), minlength=100)
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("alpha", [0.3, 4.0, 30.0, 300.0])
@pytest.mark.parametrize("case", CASES)
def test_cached_sums_stay_up_to_date(case, alpha):
    """The probability of the old label is right to rounding, step after step.

    Its complement is made of sums that are kept from step to step.
    """
    name, n_columns, hierarchical = CASES[case]
    for seed in range(2):
        state = long_chain(seed, n_columns, hierarchical, n_symbols=3, alpha=alpha)
        proposal = PROPOSALS[name]()
        for _ in range(5):
            error, *_, n_wrong = native.moves.checked_sweep(
                state, proposal, edge=1e-8, exact=proposal.exact
            )
            assert error < 1e-9
            assert n_wrong == 0


# Blocks of one step.  Messages are in single precision.
OTHERS = {
    "blocked": (lambda: BlockedProposal(cut=0.0), 2e-6),
    "beam": (lambda: BeamProposal(cut=0.0), 2e-6),
}


@pytest.mark.parametrize("case", OTHERS)
def test_caches_of_other_proposals_stay_up_to_date(case):
    """They also report the product of predictive probabilities of old and new label."""
    make_proposal, tolerance = OTHERS[case]
    for seed in range(4):
        state, proposal = long_chain(seed), make_proposal()
        for _ in range(10):
            error, *_ = native.moves.checked_sweep(state, proposal, sliced=True)
            assert error < tolerance


@pytest.mark.parametrize("name", PROPOSALS)
def test_proposals_follow_their_definition_with_many_states(name):
    """Hundreds of states: all lanes, long rows, most of the weight in few labels."""
    state = long_chain(9, n=2500, n_symbols=40, n_labels=400)
    proposal = PROPOSALS[name]()
    ranks = []
    for _ in range(4):
        error, uniforms, *_ = native.moves.checked_sweep(state, proposal, exact=proposal.exact)
        assert error < 1e-8
        ranks.append(uniforms)
    assert state.check() is None
    assert state.n_states > 100
    assert stats.kstest(np.concatenate(ranks), "uniform").pvalue > 1e-3


def test_dense_counts_are_really_used():
    state = long_chain(1)
    RCDKernel(StepwiseProposal()).sweep(state)
    assert native.moves.peek(state)["has_dense"]
    RCDKernel(StepwiseProposal(0)).sweep(state)
    assert not native.moves.peek(state)["has_dense"]
    assert state.check() is None


# -- the recipe -----------------------------------------------------------------------


def test_recipe_builds_this_kernel():
    model = MODELS["one sequence"]
    kernel = StepwiseGibbs().make_kernel(model.state(0))
    assert isinstance(kernel, RCDKernel)
    assert kernel.block_size == 1
    assert isinstance(kernel.proposal, StepwiseProposal)
    assert kernel.sweep(model.state(0)).n_proposed == model.n_steps


@pytest.mark.parametrize("name", ["two sequences", "large concentrations", "missing"])
def test_exact_recipe_rejects_nothing(name):
    kernels = {
        proposal: StepwiseGibbs(proposal=proposal).make_kernel(MODELS[name].state(0))
        for proposal in ("rcd", "exact")
    }
    for proposal, kernel in kernels.items():
        state = MODELS[name].state(RandomStream(1))
        rate = np.mean([kernel.sweep(state).acceptance_rate for _ in range(300)])
        assert (rate == 1) == (proposal == "exact")
        assert state.check() is None


@pytest.mark.parametrize("concentration", [1e-6, 1e7])
def test_extreme_concentrations_leave_the_dense_pass(concentration):
    """Float products would leave their range; the double pass takes over."""
    model = Model((0, 1, 0, 1, 1), DirichletEmission(2, 1.0), (0,), 1.0, concentration)
    state = model.state(1)
    kernel = dense_kernel()
    for _ in range(2000):
        kernel.sweep(state)
    assert state.check() is None
    assert math.isfinite(state.log_joint())
    if concentration > 1:
        # Practically no two steps share a state.
        assert state.n_states == 5
