"""Samplers of states with a probability of their own to stay, against enumeration."""

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
    SUSPECT,
    WithHyperparameters,
    assert_exact,
    compare,
    crossed,
)
from small_models import SAMPLERS as ALL_SAMPLERS

from skihmm import HCRPHMM
from skihmm.core._rcd import RCDKernel
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice
from skihmm.samplers._split_merge_kernel import InterleavedKernel
from skihmm.samplers._stepwise_kernel import StepwiseProposal

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
    "tied": CoinModel(
        (0, 0, 1, 1, 0), HCRPEmission(2, 0.5, 1.0), (0,), 1.5, 2.0, 2.0, "alpha"
    ),
    "tied, two sequences": CoinModel(
        (0, 0, None, 1, 1), DirichletEmission(2, 0.4), (0, 2), 0.8, 1.0, 4.0, "alpha"
    ),
    "far from tied": CoinModel(
        (0, 0, 0, 0, 0, 0), DirichletEmission(2, 0.5), (0,), 3.0, 0.3, 0.3, 0.3
    ),
    "penalised": CoinModel(
        (0, 1, None, 1, 0),
        DirichletEmission(2, 0.4),
        (0, 3),
        2.0,
        2.0,
        1.0,
        1.5,
        penalty=1.3,
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
# Least acceptance by model.  A proposal that leaves out the coin is exact, but poor.
ACCEPTANCE = {
    "step-wise": (0.97, 0.94, 0.97, 0.96, 0.97, 0.96, 0.97),
    "blocks of 1": (0.97, 0.94, 0.97, 0.96, 0.97, 0.96, 0.97),
    "blocks of 3": (0.83, 0.88, 0.89, 0.72, 0.91, 0.89, 0.89),
    "whole sequences": (0.63, 0.86, 0.85, 0.66, 0.89, 0.77, 0.87),
    "beam": (0.90, 0.89, 0.93, 0.80, 0.94, 0.91, 0.91),
}


@pytest.mark.parametrize("starts", [(0,), (0, 2)])
@pytest.mark.parametrize(("kappa", "omega"), [(1e-9, 1.0), (0.5, 0.4), (15.0, 1.3)])
def test_walk_over_seatings_against_closed_forms(kappa, omega, starts):
    law = walk(5, starts, 0.7, 1.3, kappa, omega)
    assert sum(law.values()) == pytest.approx(1, rel=1e-13)
    others = {
        (x, *cell): p
        for x in set_partitions(5)
        for cell, p in closed_form(x, starts, 0.7, 1.3, kappa, omega).items()
    }
    assert law == pytest.approx(others, rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_passes_against_dense_matrices(name):
    rng = np.random.default_rng(0)
    state = MODELS[name].state(0)
    kernel = SAMPLERS["auto"](state)
    for _ in range(20):
        kernel.sweep(state)
        state.canonicalise()
        labels = [0, *range(2, 2 + state.n_states)]  # a new state first
        arrays = state.to_arrays()
        n_slots = 2 + state.n_states + 8 + state.n_states // 16
        weights, values = np.zeros((2, n_slots))
        weights[labels], values[labels] = rng.random((2, len(labels)))
        rows, *passes = native.moves.steps(state.transitions, weights, values)
        dense = dense_matrix(MODELS[name], arrays)
        pushed, pulled, best, argmax = (vector[labels] for vector in passes)
        products = weights[labels, None] * dense
        np.testing.assert_allclose(rows[np.ix_(labels, labels)], dense, rtol=1e-12)
        np.testing.assert_allclose(pushed, products.sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(pulled, dense @ values[labels], rtol=1e-12)
        np.testing.assert_allclose(best, products.max(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(argmax, np.array(labels)[products.argmax(axis=0)])


def dense_matrix(model, arrays):
    """p(k | j) of a new state and the others, from a record."""
    record, n = arrays["transitions"], arrays["n_states"]
    alpha, gamma = model.alpha, model.gamma
    kappa, omega = record["stay_prior"]
    counts, tables = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    for j, k, customers, m in zip(
        record["rows"], record["dishes"], record["n_customers"], record["n_tables"],
        strict=True,
    ):  # fmt: skip
        tables[1 + k] += m
        if j < n:
            counts[1 + j, 1 + k] = customers
    total = tables.sum() + gamma
    tables[0] = gamma
    left = counts.sum(axis=1)
    stays = kappa + np.r_[0, record["stays"]]
    stay = stays / (stays + omega + left)
    draws = (counts + alpha * tables / total) / (left + alpha)[:, None]
    return np.diag(stay) + np.exp(-model.penalty) * (1 - stay)[:, None] * draws


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), crossed(MODELS, SAMPLERS))
def test_chains_have_the_exact_posterior(name, sampler):
    # As many as the errors below need, of which one of the exact kernel hardly shows.
    n_sweeps = 4000 if sampler == "exact" else 1000
    found = assert_exact(MODELS[name], SAMPLERS[sampler], n_sweeps=n_sweeps)
    if sampler in ACCEPTANCE:
        assert found.acceptance >= ACCEPTANCE[sampler][[*MODELS].index(name)]


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["exact", "blocks of 3", "whole runs"])
@pytest.mark.parametrize(
    "model", [KNOWN["known, two states"], SAMPLED["sampled symbols"]]
)
def test_a_penalty_with_known_states_and_drawn_hyperparameters(model, sampler):
    given = model.y, model.emission, model.starts, model.alpha, model.gamma
    penalised = CoinModel(*given, kappa=2.0, omega=1.0, penalty=1.3)
    assert_exact(
        penalised,
        lambda state: WithHyperparameters(SAMPLERS[sampler](state)),
        n_sweeps=2000,
    )


# -- planted errors -------------------------------------------------------------------

PLANTED_KERNELS = {
    "exact": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(exact=True))),
    "step-wise": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal())),
    "blocked": (BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 6)),
    "split-merge": (
        SPLIT_MERGE,
        lambda m: m.InterleavedKernel(RCDKernel(StepwiseProposal(exact=True)), 3),
    ),
}
PLANTED = {
    "no coin before a draw": "blocked",
    "stays are the draws that join a table": "step-wise",
    "stays are drawn by the prior coin": "step-wise",
    "two cases instead of three": "exact",
    "conditional without the coin": "exact",
    "a table at (j, j) if there is none": "split-merge",
    "labels without the repeated ones": "blocked",
    "labels of a process that is not counted": "blocked",
    "neither column nor label of the ghost": "blocked",
    "no ghost candidate": "exact",
    "accept always": "blocked",
    "seat anew on rejection": "blocked",
    "no reverse": "split-merge",
}


# Errors that hardly show.
SWEEPS = {
    "two cases instead of three": 20_000,
    "conditional without the coin": 4000,
    "seat anew on rejection": 25_000,
}


@pytest.mark.statistical
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(e, marks=[pytest.mark.slow] * (SWEEPS.get(e, 0) > 4000))
        for e in PLANTED
    ],
)
def test_planted_errors_are_caught(error):
    make_kernel = maker(PLANTED_KERNELS[PLANTED[error]], error)
    n_sweeps, found = SWEEPS.get(error, 1000), []
    for name in ("persistent", "two sequences", "far from tied"):
        found.append(compare(MODELS[name], make_kernel, n_sweeps=n_sweeps))
        if min(test.pvalue for test in found[-1][:3]) <= SUSPECT:
            return
    pytest.fail(str(found))


@pytest.mark.parametrize("error", ["no rollback of stays", "no commit of stays"])
def test_forgotten_changes_of_stays_are_caught(error):
    make_kernel = maker(PLANTED_KERNELS["blocked"], error)
    state = MODELS["persistent"].state(0)
    kernel, problems = make_kernel(state), []
    try:
        while not any(problems) and len(problems) < 500:
            kernel.sweep(state)
            problems.append(state.check())
    except RuntimeError as error:  # a customer to remove is missing
        problems.append(str(error))
    assert any(problems)


@pytest.mark.statistical
def test_proposals_without_the_coin_are_caught_by_their_acceptance():
    """They are exact, so nothing else shows them."""
    make_kernel = maker(PLANTED_KERNELS["blocked"], "proposals without the coin")
    for name, least in zip(MODELS, ACCEPTANCE["whole sequences"], strict=True):
        found = compare(MODELS[name], make_kernel, n_sweeps=1000)
        if found.acceptance < least:
            return
    pytest.fail("acceptance is as high as with the coin")


@pytest.mark.parametrize("name", ALL_SAMPLERS)
def test_samplers_that_leave_the_coin_out_refuse_it(name):
    sampler = ALL_SAMPLERS[name]
    hmm = HCRPHMM(sampler, transitions="sticky", n_burnin=1, n_draws=1)
    if sampler.supports_stays:
        hmm.fit([[0]] * 4)
        return
    with pytest.raises(TypeError, match=r"StepwiseGibbs, BlockedGibbs or BlockedBeam"):
        hmm.fit([[0]] * 4)
