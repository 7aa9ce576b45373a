"""Message passing under a frozen seating, against dense matrices and all paths."""

from __future__ import annotations

import itertools

import native
import numpy as np
import pytest
from reference.enumeration import (
    START,
    DirichletEmission,
    HCRPEmission,
    frozen_hmm,
    frozen_log_probs,
)
from reference.lasting_paths import N_STEPS, all_paths, check_paths
from scipy import stats
from small_models import counts_of, make_stats

from skihmm import HCRPHMM
from skihmm.core._franchise import Franchise
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers._kernels import StepwiseProposal
from skihmm.transitions import HCRPTransitions

EMISSIONS = {
    "hcrp": HCRPEmission(3, 1.2, 2.0),
    "dirichlet": DirichletEmission(3, 0.4),
}
ALPHA, GAMMA = 1.7, 1.3


def trained(emission, seed, n=25, n_columns=1, n_labels=3):
    """A seating as a chain leaves it: ``to_arrays`` after some sweeps."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=(n, n_columns))
    codes[rng.random(codes.shape) < 0.1] = -1
    state = ChainState(
        np.array([0, n // 2]),
        Franchise(ALPHA, GAMMA),
        make_stats(codes, EMISSIONS[emission]),
        RandomStream(seed),
    )
    state.start_from(np.unique(rng.integers(n_labels, size=n), return_inverse=True)[1])
    kernel = RCDKernel(StepwiseProposal())
    while True:
        kernel.sweep(state)
        # Few enough for sums over all paths, and single digits sort like numbers.
        if 2 <= state.n_states <= 4:
            return state.canonicalise()


def held_out(seed, n, n_columns=1):
    rng = np.random.default_rng(1000 + seed)
    codes = rng.integers(3, size=(n, n_columns))
    codes[rng.random(codes.shape) < 0.2] = -1
    return codes


class Dense:
    """The same model as plain arrays; brute force over all paths."""

    def __init__(self, arrays, emission, codes, starts, restaurant):
        counts = counts_of(arrays)
        start = START if restaurant is None else restaurant
        n_columns = codes.shape[1]
        first, self.transmat, symbols = frozen_hmm(
            counts, EMISSIONS[emission], ALPHA, GAMMA, start, n_columns
        )
        from_start = frozen_hmm(counts, EMISSIONS[emission], ALPHA, GAMMA, START, n_columns)[0]
        self.startprob = from_start
        self.initial = dict.fromkeys(starts, from_start)
        self.initial.setdefault(0, first)
        self.likelihood = np.ones((len(codes), len(first)))
        for t, row in enumerate(codes):
            for c, w in enumerate(row):
                if w >= 0:
                    self.likelihood[t] *= symbols[c, :, w]

    def path_probs(self):
        n_steps, n_states = self.likelihood.shape
        for path in itertools.product(range(n_states), repeat=n_steps):
            p = 1.0
            for t, k in enumerate(path):
                p *= self.initial[t][k] if t in self.initial else self.transmat[path[t - 1], k]
                p *= self.likelihood[t, k]
            yield path, p


SETTINGS = [
    (emission, n_columns, starts, restaurant, seed)
    for seed, (emission, n_columns, (starts, restaurant)) in enumerate(
        itertools.product(
            EMISSIONS,
            (1, 2),
            [((0,), None), ((0, 2), None), ((), 1), ((3,), 0), ((0, 1, 2, 3), None)],
        )
    )
]


def frozen(setting, n):
    emission, n_columns, starts, restaurant, seed = setting
    arrays = trained(emission, seed, n_columns=n_columns)
    codes = held_out(seed, n, n_columns)
    model = FrozenModel(arrays, make_stats(codes, EMISSIONS[emission]), starts, restaurant)
    return model, Dense(arrays, emission, codes, starts, restaurant)


# -- one step -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_steps_against_dense_matrices(seed):
    arrays = trained("hcrp", seed, n=80, n_labels=4)
    model = FrozenModel(arrays, make_stats(held_out(seed, 1), EMISSIONS["hcrp"]), [0])
    transitions, n = model.transitions, arrays["n_states"]
    rng = np.random.default_rng(seed)
    # Slot order: new, start, states; the start restaurant is never a dish.
    dense = np.zeros((n + 2, n + 2))
    keep = [*range(2, n + 2), 0]
    first, transmat, _ = frozen_hmm(counts_of(arrays), EMISSIONS["hcrp"], ALPHA, GAMMA)
    dense[np.ix_(keep, keep)] = transmat
    dense[1, keep] = first
    for _ in range(20):
        weights = rng.random(n + 2) * (rng.random(n + 2) < 0.7)
        values = rng.random(n + 2)
        values[1] = 0.0
        rows, _, pushed, pulled, best, argmax = native.moves.passes_at(
            transitions, -1, weights, values
        )
        np.testing.assert_allclose(rows, dense, rtol=1e-12)
        np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-13)
        np.testing.assert_allclose(pushed, weights @ dense, rtol=1e-12)
        np.testing.assert_allclose(pulled, dense @ values, rtol=1e-12)
        products = weights[:, None] * dense
        np.testing.assert_allclose(best, products.max(axis=0), rtol=1e-12)
        np.testing.assert_allclose(products[argmax[keep], keep], best[keep], rtol=1e-12)
    startprob, matrix = model.transition_matrix()
    np.testing.assert_allclose(startprob, first, rtol=1e-12)
    np.testing.assert_allclose(matrix, transmat, rtol=1e-12)


def test_push_and_pull_are_adjoint_on_a_large_seating():
    rng = np.random.default_rng(0)
    state = ChainState(
        np.array([0]),
        Franchise(3.0, 20.0),
        make_stats(rng.integers(3, size=(3000, 1)), EMISSIONS["hcrp"]),
        RandomStream(0),
    )
    state.start_from(np.unique(rng.zipf(1.5, 3000) % 200, return_inverse=True)[1])
    state.canonicalise()
    n = len(native.moves.peek(state)["tables"])
    assert n > 100
    for _ in range(5):
        weights, values = rng.random((2, n))
        values[1] = 0.0
        rows, _, pushed, pulled, *_ = native.moves.passes_at(state.transitions, -1, weights, values)
        np.testing.assert_allclose(pushed, weights @ rows, rtol=1e-10)
        np.testing.assert_allclose(pulled, rows @ values, rtol=1e-10)


# -- whole sequences ------------------------------------------------------------------


@pytest.mark.parametrize("setting", SETTINGS)
def test_passes_against_all_paths(setting):
    model, dense = frozen(setting, 4)
    whole, probs = dense.likelihood, dict(dense.path_probs())
    log_predictive, filtered = model.filter(with_probs=True)
    for t in range(4):
        prefix = np.zeros(whole.shape[1])
        dense.likelihood = whole[: t + 1]
        for path, p in dense.path_probs():
            prefix[path[-1]] += p
        assert log_predictive[: t + 1].sum() == pytest.approx(
            np.log(prefix.sum()), rel=1e-10, abs=1e-12
        )
        np.testing.assert_allclose(filtered[t], prefix / prefix.sum(), rtol=1e-10)
    expected = np.zeros(whole.shape)
    for path, p in probs.items():
        expected[range(4), path] += p
    np.testing.assert_allclose(model.smooth(), expected / expected[0].sum(), rtol=1e-10)
    log_prob, path = model.viterbi()
    best = max(probs.values())
    assert log_prob == pytest.approx(np.log(best), rel=1e-12)
    assert probs[tuple(path.tolist())] == pytest.approx(best, rel=1e-12)


def test_lasting_paths_against_all_paths():
    n_others = 0
    for setting in SETTINGS:
        model, dense = frozen(setting, N_STEPS)
        if dense.likelihood.shape[1] > 4:
            continue
        paths = all_paths(dense.likelihood.shape[1])
        with np.errstate(divide="ignore"):
            logs = np.log(dense.likelihood)[np.arange(N_STEPS), paths].sum(axis=1)
        starts = sorted(dense.initial)
        for t in range(N_STEPS):
            if t in starts:
                logs += np.log(dense.initial[t])[paths[:, t]]
            else:
                logs += np.log(dense.transmat)[paths[:, t - 1], paths[:, t]]
        n_others += check_paths(model, paths, logs, starts)
    assert n_others > 20


@pytest.mark.statistical
@pytest.mark.parametrize("setting", SETTINGS)
def test_sampled_paths_against_all_paths(setting):
    model, dense = frozen(setting, 4)
    probs = np.zeros((dense.likelihood.shape[1],) * 4)
    for path, p in dense.path_probs():
        probs[path] = p
    probs = probs.ravel() / probs.sum()
    stream, n = RandomStream(0), 5000
    m = dense.likelihood.shape[1]

    def check(paths, probs):
        assert paths.dtype == np.int32
        at = np.ravel_multi_index(paths, probs.shape)
        expected = n * probs.ravel()
        # Rare paths together, with the rarest of the others.
        place = np.argsort(np.argsort(-expected))
        place = np.minimum(place, (expected >= 5).sum() - 1)
        expected = np.bincount(place, expected)
        assert len(expected) >= 2
        counts = np.bincount(place[at], minlength=len(expected))
        assert stats.chisquare(counts, expected).pvalue > 1e-4

    probs = probs.reshape((m,) * 4)
    check(model.sample_runs(np.arange(4), n, stream), probs)
    # Gaps divide steps into runs.
    paths = model.sample_runs(np.array([0, 2, 3]), n, stream)
    check(paths[:1], probs.sum(axis=(1, 2, 3)))
    check(paths[1:], probs.sum(axis=(0, 1)))
    check(model.sample_runs(np.array([1, 2]), n, stream), probs.sum(axis=(0, 3)))
    np.testing.assert_array_equal(
        model.sample_path(RandomStream(1)),
        model.sample_runs(np.arange(4), 1, RandomStream(1))[:, 0],
    )


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("restaurant", [None, 0, 1])
@pytest.mark.parametrize("emission", EMISSIONS)
def test_filter_against_the_dense_forward_algorithm(emission, restaurant, n_columns):
    """Long sequences: nothing underflows."""
    arrays = trained(emission, 3, n_columns=n_columns)
    codes = held_out(3, 3000, n_columns)
    starts = [0] if restaurant is None else []
    model = FrozenModel(arrays, make_stats(codes, EMISSIONS[emission]), starts, restaurant)
    expected = frozen_log_probs(
        counts_of(arrays),
        codes,
        EMISSIONS[emission],
        ALPHA,
        GAMMA,
        START if restaurant is None else restaurant,
    )
    found, _ = model.filter()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    missing = (codes < 0).all(axis=1)
    np.testing.assert_allclose(found[missing], 0, atol=1e-12)
    smooth = model.smooth()
    np.testing.assert_allclose(smooth.sum(axis=1), 1, rtol=1e-12)
    log_prob, path = model.viterbi()
    assert path.shape == (3000,)
    assert log_prob <= found.sum() + 1e-9


@pytest.mark.parametrize("transitions", [{}, {"expected_dwell": 4}])
def test_whole_matrices_give_the_same_as_non_zeros(transitions):
    """Data of fewer steps than columns pass through the non-zeros."""
    rng = np.random.default_rng(0)
    X = rng.integers(20, size=(600, 1))
    model = HCRPHMM(
        transitions=HCRPTransitions(**transitions),
        sampler="blocked",
        init=rng.integers(10, size=200).repeat(3),
        n_burnin=0,
        n_draws=1,
        random_state=0,
    ).fit(X)
    draw, emission = model.draws_[0, 0], model.emission_
    # For a matrix there have to be as many steps as columns, and many non-zeros.
    n_columns = draw.n_states + 2
    n_cells = len(draw.transitions["rows"])
    assert n_columns > 8
    assert n_columns**2 <= 10 * (n_cells + 2 * n_columns)
    codes = emission.encode_values(X[:240])
    starts = np.arange(0, 240, 8)

    def passes(codes, starts):
        frozen = FrozenModel(draw.arrays, emission.make_stats(codes), starts)
        log_probs, filtered = frozen.filter(with_probs=True)
        return log_probs, filtered, frozen.smooth(), frozen.viterbi()

    whole = passes(codes, starts)
    pieces = [passes(codes[start : start + 8], [0]) for start in starts]
    for found, *expected in zip(whole[:3], *(piece[:3] for piece in pieces), strict=True):
        np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(whole[3][0], sum(piece[3][0] for piece in pieces), rtol=1e-12)
    paths = np.concatenate([piece[3][1] for piece in pieces])
    np.testing.assert_array_equal(whole[3][1], paths)
