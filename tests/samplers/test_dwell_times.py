"""Samplers of states with a stay probability, against enumeration."""

from __future__ import annotations

import native
import numpy as np
import pytest
from errors import BLOCKED, SPLIT_MERGE, STEPWISE, maker
from reference.coins import CoinModel, closed_form, walk
from reference.enumeration import (
    DirichletEmission,
    GaussianEmission,
    HCRPEmission,
    set_partitions,
)
from small_models import (
    KNOWN,
    SAMPLED,
    WithDraws,
    assert_caught,
    assert_check_notices,
    assert_exact,
    compare,
    crossed,
)
from small_models import SAMPLERS as ALL_SAMPLERS

from skihmm import HCRPHMM
from skihmm.core._rcd import RCDKernel
from skihmm.emissions import NormalInverseGamma
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice
from skihmm.samplers._kernels import InterleavedKernel, StepwiseProposal
from skihmm.transitions import HCRPTransitions

MODELS = {
    "persistent": CoinModel(
        (0, 0, 0, 1, 1, 1), HCRPEmission(2, 0.5, 1.0), (0,), 0.7, 1.2, 3.0, 0.7
    ),
    "two sequences": CoinModel(
        (0, None, 1, 0, 0), DirichletEmission(3, 0.7), (0, 3), 2.0, 2.0, 0.5, 1.5
    ),
    "densities": CoinModel(
        (0.1, 0.2, 0.1, 2.0, 2.2), GaussianEmission(), (0,), 1.5, 1.0, 15.0, 2.0
    ),
    "extreme coins": CoinModel(
        (0, 0, 0, 0, 0, 0), DirichletEmission(2, 0.5), (0,), 3.0, 0.3, 0.3, 0.3
    ),
    "penalised": CoinModel(
        (0, 1, None, 1, 0), DirichletEmission(2, 0.4), (0, 3), 2.0, 2.0, 1.0, 1.5, penalty=1.3
    ),
}
SAMPLERS = {
    "step-wise": StepwiseGibbs("rcd").make_kernel,
    "exact": StepwiseGibbs().make_kernel,
    "blocks of 1": BlockedGibbs(1).make_kernel,
    "blocks of 3": BlockedGibbs(3).make_kernel,
    "whole sequences": BlockedGibbs(6).make_kernel,
    "slice": StepwiseSlice().make_kernel,
    "beam": BlockedBeam(3).make_kernel,
    "split-merge": lambda state: InterleavedKernel(None, 5),
    "auto": StepwiseGibbs(split_merge_rate=2).make_kernel,
    "blocks and split-merge": BlockedGibbs(3, split_merge_rate=2).make_kernel,
    "whole runs": StepwiseGibbs(run_split_merge_rate=3).make_kernel,
}
# Least acceptance by model.  A proposal without the coin, or with an error in both
# q, is exact, but poor.
ACCEPTANCE = {
    "step-wise": (0.97, 0.94, 0.97, 0.96, 0.97),
    "blocks of 1": (0.97, 0.94, 0.97, 0.96, 0.97),
    "blocks of 3": (0.83, 0.88, 0.89, 0.89, 0.89),
    "whole sequences": (0.63, 0.86, 0.85, 0.77, 0.87),
    "beam": (0.90, 0.89, 0.93, 0.91, 0.91),
}


@pytest.mark.parametrize("starts", [(0,), (0, 2)])
@pytest.mark.parametrize("coin", [(1e-9, 1.0), (0.5, 0.4), (15.0, 1.3)])
def test_walk_over_seatings_against_closed_forms(coin, starts):
    law = walk(5, starts, 0.7, 1.3, *coin)
    assert sum(law.values()) == pytest.approx(1, rel=1e-13)
    others = {
        (x, *cell): p
        for x in set_partitions(5)
        for cell, p in closed_form(x, starts, 0.7, 1.3, *coin).items()
    }
    assert law == pytest.approx(others, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_passes_against_dense_matrices(name):
    rng = np.random.default_rng(0)
    model = MODELS[name]
    state = model.state(0)
    kernel = SAMPLERS["auto"](state)
    for _ in range(20):
        kernel.sweep(state)
        state.canonicalise()
        dense = dense_matrix(model, state.to_arrays())
        n = len(dense)
        n_slots = 2 + state.n_states + 8 + state.n_states // 16
        is_start = np.arange(n) == 1
        # A new sequence begins, or a state goes on.
        for possible in (is_start, ~is_start):
            weights, values = np.zeros((2, n_slots))
            weights[:n] = rng.random(n) * possible
            values[:n] = rng.random(n) * ~is_start
            rows, _, pushed, pulled, best, argmax = native.moves.passes_at(
                state.transitions, -1, weights, values
            )
            products = weights[:n, None] * dense
            np.testing.assert_allclose(pushed[:n], products.sum(axis=0), rtol=1e-12)
            np.testing.assert_allclose(pulled[:n], dense @ values[:n], rtol=1e-12)
            np.testing.assert_allclose(best[:n], products.max(axis=0), rtol=1e-12)
            found = products[argmax[:n], range(n)]
            np.testing.assert_allclose(found, products.max(axis=0), rtol=1e-12)
        np.testing.assert_allclose(rows[:n, :n], dense, rtol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), crossed(MODELS, SAMPLERS))
def test_chains_have_the_exact_posterior(name, sampler):
    # As many as the errors below need.
    found = assert_exact(MODELS[name], SAMPLERS[sampler], n_sweeps=250)
    if sampler in ACCEPTANCE:
        assert found.acceptance >= ACCEPTANCE[sampler][[*MODELS].index(name)]


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["exact", "blocks of 3", "whole runs"])
@pytest.mark.parametrize("model", [KNOWN["known, two states"], SAMPLED["sampled symbols"]])
def test_a_penalty_with_known_states_and_drawn_hyperparameters(model, sampler):
    given = model.y, model.emission, model.starts, model.alpha, model.gamma
    penalised = CoinModel(*given, kappa=2.0, omega=1.0, penalty=1.3)
    assert_exact(penalised, lambda state: WithDraws(SAMPLERS[sampler](state)), n_sweeps=500)


@pytest.mark.parametrize("context_features", [None, [10]])
def test_chains_leave_a_run_that_the_data_exclude(context_features):
    """By so much that the products of its observations' weights underflow."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 30)
    X = 6.0 * states[:, None] + rng.standard_normal((120, 10))
    if context_features:
        X = np.column_stack([X, np.arange(120) % 2])
    wrong = states.copy()
    wrong[10:20] = 1
    hmm = HCRPHMM(
        emission=NormalInverseGamma(mean=0.0, strength=0.01, shape=1.5, scale=1.0),
        transitions=HCRPTransitions(expected_dwell=20, context_features=context_features),
        sampler=BlockedGibbs(24),
        init=wrong,
        n_burnin=0,
        n_draws=20,
        random_state=0,
    )
    (path,) = hmm.fit(X).draws_.states[:, -1]
    assert (path[:20] == path[20]).all()
    assert (path[10:20] != path[40]).all()


def dense_matrix(model, arrays):
    """p(label | label before): of a new state, the start and all states."""
    record, n = arrays["transitions"], arrays["n_states"]
    counts, tables = np.zeros((n + 2, n + 2)), np.zeros(n + 2)
    place = np.r_[np.arange(2, n + 2), 1]  # of the record's rows
    for j, k, customers, m in zip(
        record["rows"], record["dishes"], record["n_customers"], record["n_tables"],
        strict=True,
    ):  # fmt: skip
        tables[2 + k] += m
        counts[place[j], 2 + k] = customers
    total = tables.sum() + model.gamma
    tables[0] = model.gamma
    left = counts.sum(axis=1)
    draws = (counts + model.alpha * tables / total) / (left + model.alpha)[:, None]
    kappa, omega = record["stay_prior"]
    stays = kappa + np.r_[0, 0, record["stays"]]
    stay = stays / (stays + omega + left)
    stay[1] = 0.0  # the start
    leave = (1 - stay) * np.exp(-model.penalty)
    leave[1] = 1.0
    return np.diag(stay) + leave[:, None] * draws


@pytest.mark.parametrize("name", ALL_SAMPLERS)
def test_samplers_that_leave_the_coin_out_refuse_it(name):
    sampler = ALL_SAMPLERS[name]
    hmm = HCRPHMM(sampler, transitions="sticky", n_burnin=1, n_draws=1)
    if sampler.supports_stays:
        hmm.fit([[0]] * 4)
        return
    with pytest.raises(TypeError, match=r"StepwiseGibbs, BlockedGibbs or BlockedBeam"):
        hmm.fit([[0]] * 4)


# -- planted errors -------------------------------------------------------------------

KERNELS = {
    "exact": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(exact=True))),
    "step-wise": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal())),
    "blocked": (BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 6)),
    "split-merge": (
        SPLIT_MERGE,
        lambda m: m.InterleavedKernel(RCDKernel(StepwiseProposal(exact=True)), 3),
    ),
}
PLANTED = [
    ("blocked", "no coin before a draw"),
    ("step-wise", "stays are the draws that join a table"),
    ("step-wise", "stays are drawn by the prior coin"),
    ("split-merge", "a table at (j, j) if there is none"),
    ("blocked", "labels without the repeated ones"),
    ("blocked", "labels of a process that is not counted"),
    ("blocked", "neither column nor label of the ghost"),
    ("exact", "no ghost candidate"),
    ("blocked", "accept always"),
    ("blocked", "seat anew on rejection"),
    ("split-merge", "no reverse"),
]
# Errors that hardly show.
SWEEPS = {"seat anew on rejection": 25_000}


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        pytest.param(kernel, error, marks=[pytest.mark.slow] * (error in SWEEPS))
        for kernel, error in PLANTED
    ],
)
def test_planted_errors_are_caught(kernel, error):
    models = [MODELS[name] for name in ("persistent", "two sequences", "extreme coins")]
    assert_caught(maker(KERNELS[kernel], error), *models, n_sweeps=SWEEPS.get(error, 1000))


@pytest.mark.parametrize("error", ["no rollback of stays", "no commit of stays"])
def test_forgotten_changes_are_caught(error):
    state = MODELS["persistent"].state(0)
    assert_check_notices(maker(KERNELS["blocked"], error)(state), state)


@pytest.mark.statistical
def test_proposals_without_the_coin_are_caught_by_their_acceptance():
    """They are exact, so nothing else shows them."""
    make_kernel = maker(KERNELS["blocked"], "proposals without the coin")
    for name, least in zip(MODELS, ACCEPTANCE["whole sequences"], strict=True):
        found = compare(MODELS[name], make_kernel, n_sweeps=1000)
        if found.acceptance < least:
            return
    pytest.fail("acceptance is as high as with the coin")
