"""Samplers of states with a shortest dwell, against enumeration."""

from __future__ import annotations

from types import SimpleNamespace

import native
import numpy as np
import pytest
from errors import BLOCKED, RUN_SPLIT_MERGE, SPLIT_MERGE, STAGES, maker
from reference.coins import CoinModel, staged_closed_form, staged_law, walk
from reference.enumeration import (
    DirichletEmission,
    GaussianEmission,
    HCRPEmission,
    set_partitions,
)
from scipy.special import logsumexp
from scipy.stats import t as student_t
from small_models import SAMPLERS as ALL_SAMPLERS
from small_models import SUSPECT, assert_exact, compare, crossed

from skihmm import HCRPHMM
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.emissions import NormalInverseGamma
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import BlockedGibbs
from skihmm.samplers._blocked_kernel import BlockedProposal
from skihmm.transitions import HCRPTransitions

# Seven steps: in fewer ones runs are too rare to show an error.
MODELS = {
    "two stages": CoinModel(
        (0, 0, 1, 1, 0, 0, 0), HCRPEmission(2, 0.5, 1.0), (0,), 0.8, 1.7, 0.7, 2.0, 2
    ),
    "two sequences": CoinModel(
        (0, 0, None, 1, 1, 0, 0), DirichletEmission(2, 0.5), (0, 4), 2.0, 2.0, 0.5, 1.5, 2
    ),
    "three stages": CoinModel(
        (0, 0, 0, 0, 1, 1, 1), DirichletEmission(2, 0.3), (0,), 1.5, 2.0, 0.3, 2.5, 3
    ),
    "cut from longer ones": CoinModel(
        (0, 1, 1, 0, 0, 1), HCRPEmission(2, 0.5, 1.0), (0, 3), 1.5, 2.0, 0.6, 2.0, 3, True
    ),
    "long stays": CoinModel(
        (0.1, 0.2, 0.1, 2.0, 2.2, 2.1), GaussianEmission(), (0,), 1.5, 1.0, 6.0, 3.0, 2
    ),
}
SAMPLERS = {
    "blocks of 3": BlockedGibbs(3).make_kernel,
    "whole sequences": BlockedGibbs(7).make_kernel,
    "split-merge": BlockedGibbs(4, split_merge_rate=4).make_kernel,
    "whole runs": BlockedGibbs(4, run_split_merge_rate=4).make_kernel,
}
# Least acceptance by model.  A proposal with an error in both q is exact, but poor.
ACCEPTANCE = {
    "blocks of 3": (0.85, 0.91, 0.94, 0.87, 0.90),
    "whole sequences": (0.63, 0.85, 0.80, 0.79, 0.80),
}


@pytest.mark.parametrize("starts", [(0,), (0, 2)])
@pytest.mark.parametrize(("n_stages", "inside"), [(2, False), (3, False), (3, True)])
def test_walk_over_seatings_against_closed_forms(n_stages, inside, starts):
    law = walk(5, starts, 0.7, 1.3, 0.8, 1.9, n_stages, inside)
    assert sum(law.values()) == pytest.approx(1, rel=1e-13)
    others = {
        (x, *cell): p
        for x in set_partitions(5)
        for cell, p in staged_closed_form(
            x, starts, 0.7, 1.3, 0.8, 1.9, n_stages, inside
        ).items()
    }
    assert law == pytest.approx(others, rel=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), crossed(MODELS, SAMPLERS))
def test_chains_have_the_exact_posterior(name, sampler):
    found = assert_exact(MODELS[name], SAMPLERS[sampler], n_sweeps=2000)
    if sampler in ACCEPTANCE:
        assert found.acceptance >= ACCEPTANCE[sampler][[*MODELS].index(name)]


@pytest.mark.parametrize("name", MODELS)
def test_passes_against_dense_matrices(name):
    rng = np.random.default_rng(0)
    model = MODELS[name]
    state, r = model.state(0), model.n_stages
    kernel = SAMPLERS["whole runs"](state)
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
            rows, pushed, pulled, best, argmax = native.moves.steps(
                state.transitions, weights, values
            )
            products = weights[columns, None] * dense
            np.testing.assert_allclose(pushed[columns], products.sum(axis=0), rtol=1e-12)
            is_used = columns % n_slots != 1
            is_used[0] = True  # the start restaurant has one stage
            np.testing.assert_allclose(
                pulled[columns][is_used], (dense @ values[columns])[is_used], rtol=1e-12
            )
            np.testing.assert_allclose(best[columns], products.max(axis=0), rtol=1e-12)
            found = products[
                np.searchsorted(columns, argmax[columns]), range(len(columns))
            ]
            np.testing.assert_allclose(found, products.max(axis=0), rtol=1e-12)
        # In the long run a state's stages last equally long.
        blocks = dense.reshape(r, len(labels), r, len(labels)).sum(axis=2).mean(axis=0)
        np.testing.assert_allclose(
            rows[np.ix_(labels, labels)][labels != 1], blocks[labels != 1], rtol=1e-12
        )


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


@pytest.mark.parametrize("inside", [False, True])
def test_frozen_passes_against_logarithms(inside):
    """Far outlying rows, after which a state has to last, do not stop a message."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 30)
    X = 8.0 * states[:, None] + rng.standard_normal((120, 40))
    hmm = HCRPHMM(
        emission=NormalInverseGamma(mean=0.0, strength=0.01, shape=1.5, scale=100.0),
        transitions=HCRPTransitions(
            stay_prior=(0.7, 2.0), min_dwell=20, starts_inside=inside
        ),
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
    law = SimpleNamespace(
        alpha=draw.alpha, gamma=draw.gamma, kappa=0.7, omega=2.0, n_stages=20,
        starts_inside=inside,
    )  # fmt: skip
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
            assert (sizes[inside:-1] >= 20).all()
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
    stays = model.kappa + np.r_[0, 0, record["stays"]]
    leaves = model.omega + left + np.r_[0, 0, record["advances"]]
    dense = staged_law(stays / (stays + leaves), draws, 0, r, model.starts_inside)
    size = r * (n + 2)
    order = np.argsort(labels)
    dense = dense[:, order][:, :, :, order].reshape(size, size)
    return dense, np.sort(labels)


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
        MODELS["two stages"].state(0).move(0, 1)


# -- planted errors -------------------------------------------------------------------

KERNELS = {
    "blocks": (BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 7)),
    "split-merge": (
        SPLIT_MERGE,
        lambda m: m.InterleavedKernel(RCDKernel(BlockedProposal(), 4), 4),
    ),
    "whole runs": (
        RUN_SPLIT_MERGE,
        lambda m: m.RunSplitMergeKernel(RCDKernel(BlockedProposal(), 4), 4),
    ),
}
PLANTED = {
    **dict.fromkeys((name for name in STAGES if "rollback" not in name), "blocks"),
    "accept always": "blocks",
    "no reverse": "split-merge",
    "the second run's coins left out": "split-merge",
    "allocation of runs left out": "whole runs",
}


@pytest.mark.statistical
@pytest.mark.parametrize("error", PLANTED)
def test_planted_errors_are_caught(error):
    make_kernel = maker(KERNELS[PLANTED[error]], error)
    found = []
    for name in ("two stages", "three stages", "cut from longer ones"):
        try:
            found.append(compare(MODELS[name], make_kernel, n_sweeps=2000))
        except AssertionError:  # the chain is in an impossible stage
            return
        if min(test.pvalue for test in found[-1][:3]) <= SUSPECT:
            return
    pytest.fail(str(found))


@pytest.mark.parametrize("what", ["stays in stages", "advances", "stages"])
def test_forgotten_changes_are_caught(what):
    make_kernel = maker(KERNELS["blocks"], f"no rollback of {what}")
    state = MODELS["two stages"].state(0)
    kernel, problems = make_kernel(state), []
    try:
        while not any(problems) and len(problems) < 500:
            kernel.sweep(state)
            problems.append(state.check())
    except RuntimeError as error:  # a customer to remove is missing
        problems.append(str(error))
    assert any(problems)
