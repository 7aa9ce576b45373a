"""The step-wise sampler against exact answers."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import native
import numpy as np
import pytest
from reference.enumeration import DirichletEmission, HCRPEmission
from reference.seating import (
    NaiveHMM,
    all_outcomes,
    all_seatings,
    naive_exact_move,
    naive_stepwise_move,
    random_choices,
)
from reference.statistics import rank_test
from scipy import stats
from small_models import (
    MODELS,
    Model,
    arrays_of,
    key_of,
    random_chain,
)

from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.samplers import StepwiseGibbs
from skihmm.samplers._blocked_kernel import BeamProposal, BlockedProposal, SliceProposal
from skihmm.samplers._stepwise_kernel import StepwiseProposal
from skihmm.testing._prior_draws import PriorDraw, statistics
from skihmm.testing._probes import record_cells


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
    name: lambda limits=limits: StepwiseProposal(*limits)
    for name, limits in LIMITS.items()
}
# -- one move from a given seating ----------------------------------------------------


def naive_move_of(kernel):
    """The same move, written from the definitions."""
    return naive_exact_move if kernel.startswith("exact") else naive_stepwise_move


@cache
def seatings_of(name):
    model = ONE_MOVE[name]
    return all_seatings(model.y, model.emission, model.starts, model.alpha, model.gamma)


# These draw the label and the opening of a table at once, and reject nothing; the laws of
# the others are proved to rounding in test_transition_kernels.py.
JOINT = ("exact", "exact, no lookup")
ONE_MOVE = {
    "HCRP": Model((0, 0, 1, 0), HCRPEmission(2, 1.0, 1.0), (0,), 2.0, 1.5),
    "Dirichlet": Model((0, None, 0, 0), DirichletEmission(2, 0.5), (0, 3), 0.7, 2.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", JOINT)
@pytest.mark.parametrize("name", ONE_MOVE)
def test_law_of_one_move(name, kernel):
    """From given seatings, one move leads where the naive move leads, as often.

    The naive law is exact: all its choices are enumerated.
    """
    model, rng = ONE_MOVE[name], np.random.default_rng(4)
    hierarchical = isinstance(model.emission, HCRPEmission)
    seatings = [naive for naive, _ in seatings_of(name).values()]
    proposal = PROPOSALS[kernel]()
    state, pvalues, n = model.state(RandomStream(6)), [], 1500
    for i in rng.choice(len(seatings), size=12, replace=False):
        t = int(rng.integers(model.n_steps))
        law: Counter = Counter()

        def move(choose, start=seatings[i], t=t):
            copy = start.copy()
            naive_move_of(kernel)(copy, t, choose)
            return copy.key

        for p, key in all_outcomes(move):
            law[key] += p
        arrays = arrays_of(seatings[i])
        found: Counter = Counter()
        for _ in range(n):
            state.from_arrays(arrays)
            native.moves.single_move(state, proposal, t, t + 1)
            found[key_of(state.to_arrays(), hierarchical)] += 1
        assert found.keys() <= law.keys()
        cells = [key for key, p in law.items() if n * p >= 5]
        observed = np.array([found[key] for key in cells] + [0])
        expected = np.array([law[key] for key in cells] + [0]) * n
        observed[-1], expected[-1] = n - observed.sum(), n - expected.sum()
        keep = expected > 1e-9
        if keep.sum() > 1:
            pvalues.append(stats.chisquare(observed[keep], expected[keep]).pvalue)
    assert len(pvalues) > 5
    assert stats.combine_pvalues(pvalues).pvalue > 1e-3
    assert min(pvalues) > 1e-4 / len(pvalues)


class OneMove:
    """A kernel that moves one step, always from the same record."""

    def __init__(self, proposal, arrays, t):
        self.proposal, self.arrays, self.t = proposal, arrays, t

    def sweep(self, state):
        state.from_arrays(self.arrays)
        t, move = self.t, native.moves.single_move
        return 1, move(state, self.proposal, t, t + 1)


@pytest.mark.statistical
@pytest.mark.parametrize(
    # Others are proved by transition matrices and the balance of lifted moves.
    "kernel",
    [
        pytest.param(kernel, marks=[pytest.mark.slow] * (kernel != "exact"))
        for kernel in (*JOINT, "sparse")
    ],
)
@pytest.mark.parametrize(
    ("alpha", "labels", "t"),
    [
        (6.0, (0, 1, 0, 1, 0), 1),
        (6.0, (0, 1, 0, 1, 0), 2),
        (3.0, (0, 1, 0, 1, 0, 1), 3),
        (8.0, (0, 1, 2, 0, 1, 2, 0), 3),
    ],
)
def test_law_of_one_move_that_keeps_its_label(kernel, alpha, labels, t):
    """Between other labels and with several tables: customers may change tables.

    A factor forgotten here changes few tables by little: it takes many moves to see.
    """
    y = tuple(int(k) % 2 for k in labels)
    model = Model(y, HCRPEmission(2, 2.0, 0.5), (0,), alpha, 0.7)
    choose = random_choices(np.random.default_rng(0))
    while True:
        naive = NaiveHMM(
            y, model.emission, (0,), alpha, 0.7, labels=labels, choose=choose
        )
        sizes = naive.transitions.tables
        into, out_of = sizes[labels[t - 1], labels[t]], sizes[labels[t], labels[t + 1]]
        if len(into) > 1 and sum(out_of) > 1:
            break
    law: Counter = Counter()

    def move(choose):
        copy = naive.copy()
        naive_move_of(kernel)(copy, t, choose)
        return copy.cell

    for p, cell in all_outcomes(move):
        law[cell] += p
    n = 40_000
    one_move = OneMove(PROPOSALS[kernel](), arrays_of(naive), t)
    codes, *_ = record_cells(one_move, model.state(0), n)
    codes, counts = np.unique(codes, return_counts=True)
    found = dict(zip(map(model.cell, codes), counts.tolist(), strict=True))
    assert found.keys() <= law.keys()
    big = [cell for cell, p in law.items() if n * p >= 10]
    observed = np.array([found.get(cell, 0) for cell in big] + [0.0])
    expected = np.array([law[cell] for cell in big] + [0.0]) * n
    observed[-1], expected[-1] = n - observed.sum(), n - expected.sum()
    keep = expected > 1e-6
    assert stats.chisquare(observed[keep], expected[keep]).pvalue > 1e-4


# -- the proposal ---------------------------------------------------------------------


def long_chain(
    seed, n_columns=1, hierarchical=True, n=400, n_symbols=6, n_labels=40, alpha=4.0
):
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
    # proposal, columns, HCRP, tolerance of a logarithm
    "sparse": ("sparse", 1, True, 1e-9),
    "sparse, Dirichlet": ("sparse", 1, False, 1e-9),
    "sparse, no lookup": ("sparse, no lookup", 1, True, 1e-9),
    "exact": ("exact", 1, True, 1e-9),
    "exact, Dirichlet": ("exact", 1, False, 1e-9),
    "exact, no lookup": ("exact, no lookup", 1, True, 1e-9),
    "sparse, no lookup, Dirichlet": ("sparse, no lookup", 1, False, 1e-9),
    "rows": ("sparse", 2, True, 1e-9),
    "rows, Dirichlet": ("sparse", 2, False, 1e-9),
    "exact, rows": ("exact", 2, True, 1e-9),
}


@pytest.mark.parametrize("case", CASES)
def test_proposals_follow_their_definition(case):
    """At every s_0 of some sweeps, caches and all, the weights are the products of
    predictive probabilities and the labels are drawn with these weights.
    """
    name, n_columns, hierarchical, tolerance = CASES[case]
    ranks, n_ghosts = [], 0
    for seed in range(4):
        state = long_chain(seed, n_columns, hierarchical)
        proposal = PROPOSALS[name]()
        for _ in range(10):
            error, uniforms, ghosts, *_ = native.moves.checked_sweep(
                state, proposal, exact=proposal.exact
            )
            assert error < tolerance
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
    name, n_columns, hierarchical, tolerance = CASES[case]
    for seed in range(2):
        state = long_chain(seed, n_columns, hierarchical, n_symbols=3, alpha=alpha)
        proposal = PROPOSALS[name]()
        for _ in range(5):
            error, *_, n_wrong = native.moves.checked_sweep(
                state, proposal, edge=10 * tolerance, exact=proposal.exact
            )
            assert error < tolerance
            assert n_wrong == 0


# Blocks of one step.  Messages are in single precision.
OTHERS = {
    "blocked": (lambda: BlockedProposal(cut=0.0), 2e-6),
    "beam": (lambda: BeamProposal(cut=0.0), 2e-6),
    "slice": (SliceProposal, 1e-9),
    "slice without lookup": (lambda: SliceProposal(lookup_slots=0), 1e-9),
}


@pytest.mark.parametrize("case", OTHERS)
def test_caches_of_other_proposals_stay_up_to_date(case):
    """Of old and new label they report the product of predictive probabilities too."""
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
        error, uniforms, *_ = native.moves.checked_sweep(
            state, proposal, exact=proposal.exact
        )
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


# -- invariance of longer chains ------------------------------------------------------


def ranks(sweep, n_draws, n_ranks, seed):
    """Rank of a prior draw among sweeps before and after it (Gandy and Scott 2020).

    A sweep in random order is reversible, so both directions are the same kernel.
    Returns one array of ranks per statistic.
    """
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n_draws):
        draw = PriorDraw(rng, n_steps=30)
        middle = statistics(draw.state(0))
        place = int(rng.integers(n_ranks))
        others = []
        for direction, n in enumerate((place, n_ranks - 1 - place)):
            state = draw.state([seed, i, direction])
            for _ in range(n):
                sweep(state, rng)
                others.append(statistics(state))
        values = np.array(others)[:, :6]
        below = (values < np.array(middle[:6]) - 1e-9).sum(axis=0)
        ties = (np.abs(values - np.array(middle[:6])) <= 1e-9).sum(axis=0)
        found.append(below + rng.integers(ties + 1))
    return np.array(found).T


@pytest.mark.statistical
def test_ranks_of_sweeps_are_uniform():
    kernel = RCDKernel(StepwiseProposal())
    for column in ranks(lambda state, rng: kernel.sweep(state), 400, 6, 8):
        assert rank_test(column, 6) > 1e-4


@pytest.mark.statistical
def test_ranks_of_single_moves_are_uniform():
    """Ten moves of steps or blocks at random places between the draws."""
    step, block = StepwiseProposal(), native.moves.PriorProposal()
    single_move = native.moves.single_move

    def moves(state, rng):
        for _ in range(10):
            t = int(rng.integers(30))
            if rng.random() < 0.5:
                single_move(state, step, t, t + 1)
            else:
                stop = t + 1 + int(rng.integers(3))
                # Two sequences of 15 steps.
                single_move(state, block, t, min(stop, 15 if t < 15 else 30))

    for column in ranks(moves, 300, 5, 9):
        assert rank_test(column, 5) > 1e-4


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
        # Practically every step is a state of its own.
        assert state.n_states == 5
