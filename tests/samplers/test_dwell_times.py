"""Samplers of states with a stay probability or a shortest dwell, against enumeration."""

from __future__ import annotations

from types import SimpleNamespace

import native
import numpy as np
import pytest
from errors import BLOCKED, RUN_SPLIT_MERGE, SPLIT_MERGE, STAGES, STEPWISE, maker
from reference.coins import CoinModel, closed_form, staged_closed_form, staged_law, walk
from reference.enumeration import (
    DirichletEmission,
    GaussianEmission,
    HCRPEmission,
    set_partitions,
)
from scipy.special import logsumexp
from scipy.stats import t as student_t
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
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.emissions import NormalInverseGamma
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice
from skihmm.samplers._blocked_kernel import BlockedProposal
from skihmm.samplers._split_merge_kernel import InterleavedKernel
from skihmm.samplers._stepwise_kernel import StepwiseProposal
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
# Seven steps: in fewer ones runs are too rare to show an error.
STAGED = {
    "two stages": CoinModel(
        (0, 0, 1, 1, 0, 0, 0), HCRPEmission(2, 0.5, 1.0), (0,), 0.8, 1.7, 0.7, 2.0, 2
    ),
    "stages, two sequences": CoinModel(
        (0, 0, None, 1, 1, 0, 0), DirichletEmission(2, 0.5), (0, 4), 2.0, 2.0, 0.5, 1.5, 2
    ),
    "three stages": CoinModel(
        (0, 0, 0, 0, 1, 1, 1), DirichletEmission(2, 0.3), (0,), 1.5, 2.0, 0.3, 2.5, 3
    ),
    "long stays": CoinModel(
        (0.1, 0.2, 0.1, 2.0, 2.2, 2.1), GaussianEmission(), (0,), 1.5, 1.0, 6.0, 3.0, 2
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
STAGED_SAMPLERS = {
    "stages, blocks of 3": BlockedGibbs(3).make_kernel,
    "stages, whole sequences": BlockedGibbs(7).make_kernel,
    "stages, split-merge": BlockedGibbs(4, split_merge_rate=4).make_kernel,
    "stages, whole runs": BlockedGibbs(4, run_split_merge_rate=4).make_kernel,
}
# Least acceptance by model.  A proposal without the coin, or with an error in both
# q, is exact, but poor.
ACCEPTANCE = {
    "step-wise": (0.97, 0.94, 0.97, 0.96, 0.97),
    "blocks of 1": (0.97, 0.94, 0.97, 0.96, 0.97),
    "blocks of 3": (0.83, 0.88, 0.89, 0.89, 0.89),
    "whole sequences": (0.63, 0.86, 0.85, 0.77, 0.87),
    "beam": (0.90, 0.89, 0.93, 0.91, 0.91),
    "stages, blocks of 3": (0.85, 0.91, 0.94, 0.90),
    "stages, whole sequences": (0.63, 0.85, 0.80, 0.80),
}


@pytest.mark.parametrize("starts", [(0,), (0, 2)])
@pytest.mark.parametrize(
    ("form", "coin", "stages"),
    [
        (closed_form, (1e-9, 1.0), ()),
        (closed_form, (0.5, 0.4), ()),
        (closed_form, (15.0, 1.3), ()),
        (staged_closed_form, (0.8, 1.9), (2,)),
        (staged_closed_form, (0.8, 1.9), (3,)),
    ],
)
def test_walk_over_seatings_against_closed_forms(form, coin, stages, starts):
    law = walk(5, starts, 0.7, 1.3, *coin, *stages)
    assert sum(law.values()) == pytest.approx(1, rel=1e-13)
    others = {
        (x, *cell): p
        for x in set_partitions(5)
        for cell, p in form(x, starts, 0.7, 1.3, *coin, *stages).items()
    }
    assert law == pytest.approx(others, rel=1e-12)


@pytest.mark.parametrize("name", MODELS | STAGED)
def test_passes_against_dense_matrices(name):
    rng = np.random.default_rng(0)
    model = (MODELS | STAGED)[name]
    state, r = model.state(0), model.n_stages
    kernel = (SAMPLERS | STAGED_SAMPLERS)["auto" if r == 1 else "stages, whole runs"](state)
    for _ in range(20):
        kernel.sweep(state)
        state.canonicalise()
        arrays = state.to_arrays()
        dense, labels = dense_matrix(model, arrays)
        n_slots = 2 + state.n_states + 8 + state.n_states // 16
        columns = np.add.outer(n_slots * np.arange(r), labels).ravel()
        # A new sequence begins, or a state goes on.
        for possible in (columns == 1, columns % n_slots != 1):
            weights, values = np.zeros((2, r * n_slots))
            weights[columns] = rng.random(len(columns)) * possible
            values[columns] = rng.random(len(columns)) * (columns % n_slots != 1)
            rows, _, _, pushed, pulled, best, argmax = native.moves.passes_at(
                state.transitions, -1, weights, values
            )
            products = weights[columns, None] * dense
            np.testing.assert_allclose(pushed[columns], products.sum(axis=0), rtol=1e-12)
            is_used = columns % n_slots != 1
            is_used[0] = True  # the start restaurant has one stage
            np.testing.assert_allclose(
                pulled[columns][is_used], (dense @ values[columns])[is_used], rtol=1e-12
            )
            np.testing.assert_allclose(best[columns], products.max(axis=0), rtol=1e-12)
            found = products[np.searchsorted(columns, argmax[columns]), range(len(columns))]
            np.testing.assert_allclose(found, products.max(axis=0), rtol=1e-12)
        # In the long run a state's stages last equally long.
        blocks = dense.reshape(r, len(labels), r, len(labels)).sum(axis=2).mean(axis=0)
        np.testing.assert_allclose(
            rows[np.ix_(labels, labels)][labels != 1], blocks[labels != 1], rtol=1e-12
        )


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "sampler"),
    [*crossed(MODELS, SAMPLERS), *crossed(STAGED, STAGED_SAMPLERS)],
)
def test_chains_have_the_exact_posterior(name, sampler):
    # As many as the errors below need.
    n_sweeps = 500 if name in STAGED else 250
    model = (MODELS | STAGED)[name]
    found = assert_exact(model, (SAMPLERS | STAGED_SAMPLERS)[sampler], n_sweeps=n_sweeps)
    if sampler in ACCEPTANCE:
        place = [*(STAGED if name in STAGED else MODELS)].index(name)
        assert found.acceptance >= ACCEPTANCE[sampler][place]


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
        transitions=HCRPTransitions(min_dwell=10, context_features=context_features),
        sampler=BlockedGibbs(24),
        init=wrong,
        n_burnin=0,
        n_draws=20,
        random_state=0,
    )
    (path,) = hmm.fit(X).draws_.states[:, -1]
    assert (path[:20] == path[20]).all()
    assert (path[10:20] != path[40]).all()


def test_frozen_passes_against_logarithms():
    """Far outlying rows, after which a state has to last, do not stop a message."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 30)
    X = 8.0 * states[:, None] + rng.standard_normal((120, 40))
    hmm = HCRPHMM(
        emission=NormalInverseGamma(mean=0.0, strength=0.01, shape=1.5, scale=100.0),
        transitions=HCRPTransitions(stay_prior=(0.7, 2.0), min_dwell=20),
        init=states,
        n_burnin=0,
        n_draws=1,
        random_state=0,
    ).fit(X)
    draw = hmm.draws_[0, 0]
    labels, values = draw.states, X.copy()
    # Rows by which the states differ by 10,000 nats.
    X[5:8] = 400.0
    X[40:46] -= 80.0
    X[70:76] += 8.0
    starts = np.array([0, 60])
    codes = hmm.emission_.encode_values(X)
    frozen = FrozenModel(draw.arrays, hmm.emission_.make_stats(codes), starts)
    # Columns: by stage a new state, the start, and the states.
    law = SimpleNamespace(alpha=draw.alpha, gamma=draw.gamma, n_stages=20, penalty=0.0)
    n = draw.n_states
    slots = np.r_[2 : n + 2, 0]
    with np.errstate(divide="ignore"):
        matrix = np.log(dense_matrix(law, draw.arrays)[0])
    log_probs = np.full((120, n + 2), -np.inf)
    for k, slot in enumerate(slots):
        log_probs[:, slot] = log_students(values[labels == k], X, 100.0)
        mixed = frozen.log_mixtures(np.tile(np.eye(n + 1)[k], (120, 1)))
        np.testing.assert_allclose(mixed, log_probs[:, slot], rtol=1e-9)

    def pass_on(log_probs, add):
        sums = np.empty((120, len(matrix)))
        for t in range(120):
            before = sums[t - 1]
            if t in starts:
                before = np.full(len(matrix), -np.inf)
                before[1] = add(sums[t - 1]) if t else 0.0
            sums[t] = add(before[:, None] + matrix, axis=0) + np.tile(log_probs[t], 20)
        return sums

    def probs_of(logs):
        probs = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        return probs.reshape(120, 20, -1).sum(axis=1)[:, slots]

    forward, backward = pass_on(log_probs, logsumexp), np.zeros((120, len(matrix)))
    for t in range(118, -1, -1):
        if t + 1 not in starts:
            after = np.tile(log_probs[t + 1], 20) + backward[t + 1]
            backward[t] = logsumexp(matrix + after, axis=1)
    found, filtered = frozen.filter(with_probs=True)
    expected = logsumexp(forward, axis=1)
    np.testing.assert_allclose(np.cumsum(found), expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(filtered, probs_of(forward), rtol=1e-7, atol=1e-12)
    smooth = probs_of(forward + backward)
    np.testing.assert_allclose(frozen.smooth(), smooth, rtol=1e-7, atol=1e-12)
    log_prob, path = frozen.viterbi()
    assert log_prob == pytest.approx(pass_on(log_probs, np.max)[-1].max(), rel=1e-12)
    is_on = np.arange(n + 2) == slots[path][:, None]
    on_path = pass_on(np.where(is_on, log_probs, -np.inf), np.max)
    assert log_prob == pytest.approx(on_path[-1].max(), rel=1e-12)
    for labels in (path, frozen.sample_path(RandomStream(0))):
        for part in np.split(labels, starts[1:]):
            sizes = np.diff(np.flatnonzero(np.r_[True, np.diff(part) != 0, True]))
            assert (sizes[:-1] >= 20).all()
    np.testing.assert_allclose(hmm.predict_proba(X).sum(axis=1), 1)


def test_all_scores_of_a_row_that_the_state_excludes():
    """The last state has to last, however far the row is."""
    states = np.repeat([0, 1, 0, 1], [30, 30, 30, 10])
    X = 8.0 * states[:, None] + np.random.default_rng(0).standard_normal((100, 40))
    hmm = HCRPHMM(
        emission=NormalInverseGamma(mean=0.0, strength=0.01, shape=1.5, scale=1.0),
        transitions=HCRPTransitions(min_dwell=20),
        init=states,
        n_burnin=0,
        n_draws=1,
        random_state=0,
    ).fit(X)
    path, row = hmm.draws_[0, 0].states, X[:1] - 20.0
    expected = log_students(X[path == path[-1]], row, 1.0)
    assert (path[-10:] == path[-1]).all()
    assert (path[-30:-10] != path[-1]).any()
    for adaptive in (True, False):
        scorer = ParticleFilterScorer(adaptive=adaptive, start="continue", n_particles=5)
        assert scorer(hmm, row) == pytest.approx(expected[0], rel=1e-9)
    # Other states are possible, but their probabilities too small for a float.
    frozen = ParticleFilterScorer(adaptive=False)
    log_prob = frozen.score_samples(hmm, np.vstack([X, row]))[-1]
    assert hmm.predict_next(X).log_prob(row)[0] == pytest.approx(log_prob, rel=1e-9)
    assert log_prob > expected[0] + 1000
    # Particles are in either state; the second row leaves those of one without weight,
    # though the third row suits them.
    rows = np.repeat([[np.nan], [0.0], [8.0]], 40, axis=1)
    for seed in range(12):
        scorer = ParticleFilterScorer(n_particles=4, random_state=seed)
        assert np.isfinite(scorer(hmm, rows))


def log_students(rows, X, scale):
    """log p(row of X | rows) of the emission of the tests above."""
    n, mean = len(rows), rows.sum(axis=0) / max(len(rows), 1)
    strength, shape = 0.01 + n, 1.5 + n / 2
    scale = scale + 0.5 * ((rows - mean) ** 2).sum(axis=0)
    scale += 0.005 * n * mean**2 / strength
    width = np.sqrt(scale * (strength + 1) / (shape * strength))
    return student_t.logpdf(X, 2 * shape, n * mean / strength, width).sum(axis=1)


def dense_matrix(model, arrays):
    """p(stage and label | stage and label before), and the labels: start, new, others."""
    record, n, r = arrays["transitions"], arrays["n_states"], model.n_stages
    labels = np.array([1, 0, *range(2, 2 + n)])
    counts, tables = np.zeros((n + 2, n + 2)), np.zeros(n + 2)
    place = np.r_[np.arange(2, n + 2), 0]  # of the record's rows
    for j, k, customers, m in zip(
        record["rows"], record["dishes"], record["n_customers"], record["n_tables"],
        strict=True,
    ):  # fmt: skip
        tables[2 + k] += m
        counts[place[j], 2 + k] = customers
    total = tables.sum() + model.gamma
    tables[1] = model.gamma
    left = counts.sum(axis=1)
    draws = (counts + model.alpha * tables / total) / (left + model.alpha)[:, None]
    draws[1:] *= np.exp(-model.penalty)  # after a state
    kappa, omega = record["stay_prior"]
    stays = kappa + np.r_[0, 0, record["stays"]]
    leaves = omega + left + np.r_[0, 0, record.get("advances", 0 * record["stays"])]
    dense = staged_law(stays / (stays + leaves), draws, 0, r)
    size = r * (n + 2)
    order = np.argsort(labels)
    dense = dense[:, order][:, :, :, order].reshape(size, size)
    return dense, np.sort(labels)


@pytest.mark.parametrize("name", ALL_SAMPLERS)
def test_samplers_that_leave_the_coin_out_refuse_it(name):
    sampler = ALL_SAMPLERS[name]
    hmm = HCRPHMM(sampler, transitions="sticky", n_burnin=1, n_draws=1)
    if sampler.supports_stays:
        hmm.fit([[0]] * 4)
        return
    with pytest.raises(TypeError, match=r"StepwiseGibbs, BlockedGibbs or BlockedBeam"):
        hmm.fit([[0]] * 4)


def test_samplers_without_stages_refuse_them():
    for sampler in ALL_SAMPLERS.values():
        hmm = HCRPHMM(sampler, transitions=HCRPTransitions(min_dwell=2), n_draws=1)
        if not sampler.supports_stages:
            with pytest.raises(TypeError, match=r"min_dwell=2 .* Use BlockedGibbs"):
                hmm.fit([[0]] * 4)
    hmm = HCRPHMM(BlockedGibbs(4), transitions=HCRPTransitions(min_dwell=4))
    with pytest.raises(ValueError, match=r"block_size=4 .* expected 5 or more, better 8"):
        hmm.fit([[0]] * 9)
    with pytest.raises(ValueError, match=r"min_dwell above 1.*Use BlockedGibbs"):
        STAGED["two stages"].state(0).move(0, 1)


# -- planted errors -------------------------------------------------------------------

KERNELS = {
    "exact": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(exact=True))),
    "step-wise": (STEPWISE, lambda m: RCDKernel(m.StepwiseProposal())),
    "blocked": (BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 6)),
    "split-merge": (
        SPLIT_MERGE,
        lambda m: m.InterleavedKernel(RCDKernel(StepwiseProposal(exact=True)), 3),
    ),
    "stages, blocks": (BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 7)),
    "stages, split-merge": (
        SPLIT_MERGE,
        lambda m: m.InterleavedKernel(RCDKernel(BlockedProposal(), 4), 4),
    ),
    "stages, whole runs": (
        RUN_SPLIT_MERGE,
        lambda m: m.RunSplitMergeKernel(RCDKernel(BlockedProposal(), 4), 4),
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
    *(("stages, blocks", name) for name in STAGES if "rollback" not in name),
    ("stages, blocks", "accept always"),
    ("stages, split-merge", "no reverse"),
    ("stages, split-merge", "the second run's coins left out"),
    ("stages, whole runs", "allocation of runs left out"),
]
# Errors that hardly show.
SWEEPS = {"seat anew on rejection": 25_000}


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        pytest.param(
            kernel,
            error,
            marks=[pytest.mark.slow] * (error in SWEEPS and not kernel.startswith("stages")),
        )
        for kernel, error in PLANTED
    ],
)
def test_planted_errors_are_caught(kernel, error):
    names, n_sweeps = ("persistent", "two sequences", "extreme coins"), 1000
    if kernel.startswith("stages"):
        names, n_sweeps = ("two stages", "three stages", "stages, two sequences"), 2000
    else:
        n_sweeps = SWEEPS.get(error, n_sweeps)
    models = [(MODELS | STAGED)[name] for name in names]
    assert_caught(maker(KERNELS[kernel], error), *models, n_sweeps=n_sweeps)


@pytest.mark.parametrize(
    ("kernel", "model", "error"),
    [
        ("blocked", "persistent", "no rollback of stays"),
        ("blocked", "persistent", "no commit of stays"),
        ("stages, blocks", "two stages", "no rollback of stays in stages"),
        ("stages, blocks", "two stages", "no rollback of advances"),
        ("stages, blocks", "two stages", "no rollback of stages"),
    ],
)
def test_forgotten_changes_are_caught(kernel, model, error):
    state = (MODELS | STAGED)[model].state(0)
    assert_check_notices(maker(KERNELS[kernel], error)(state), state)


@pytest.mark.statistical
def test_proposals_without_the_coin_are_caught_by_their_acceptance():
    """They are exact, so nothing else shows them."""
    make_kernel = maker(KERNELS["blocked"], "proposals without the coin")
    for name, least in zip(MODELS, ACCEPTANCE["whole sequences"], strict=True):
        found = compare(MODELS[name], make_kernel, n_sweeps=1000)
        if found.acceptance < least:
            return
    pytest.fail("acceptance is as high as with the coin")
