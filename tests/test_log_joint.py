"""The log joint probability, summed over seatings, and the draw that it selects."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from reference.enumeration import stirling
from sklearn.utils._testing import ignore_warnings

from skihmm import HCRPHMM
from skihmm._draws import PosteriorDraws
from skihmm._log_joint import log_cycles, log_seatings
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.samplers import StepwiseGibbs
from skihmm.samplers._names import SAMPLERS


def make_model(**params):
    short = {"n_burnin": 20, "n_draws": 20, "thin": 1, "n_chains": 2, "n_particles": 10}
    short["sampler"] = StepwiseGibbs(split_merge_rate=2)
    return HCRPHMM(**{**short, "random_state": 2, **params})


@pytest.fixture(scope="module")
def noise():
    """Data that say little, so that draws differ in their seatings most of all."""
    return np.random.default_rng(0).integers(4, size=(60, 1))


# -- numbers of seatings --------------------------------------------------------------


def test_numbers_of_seatings():
    pairs = [(n, m) for n in range(1, 9) for m in range(1, n + 1)] * 2
    found = log_cycles(*np.array(pairs).T)
    np.testing.assert_allclose(found, [np.log(stirling(n, m)) for n, m in pairs])


def test_numbers_of_seatings_of_many():
    """On both sides of the table's end, against exact integers."""
    row = [1]
    for n in range(400):
        row = [n * a + b for a, b in zip([*row, 0], [0, *row], strict=True)]
        if n + 1 in (255, 256, 257, 400):
            m = np.arange(1, n + 2)
            np.testing.assert_allclose(
                log_cycles(np.full(n + 1, n + 1), m),
                [math.log(value) for value in row[1:]],
                rtol=1e-12,
                atol=1e-10,
            )


def test_numbers_of_seatings_of_very_many():
    n = np.full(3, 10**6)
    # By their definition as sums of products of reciprocals.
    harmonic = [(1 / np.arange(1, 10.0**6) ** power).sum() for power in (1, 2)]
    expected = math.lgamma(10**6) + np.log(
        [1, harmonic[0], (harmonic[0] ** 2 - harmonic[1]) / 2]
    )
    np.testing.assert_allclose(log_cycles(n, np.array([1, 2, 3])), expected, rtol=1e-14)
    # (Pairs are the edges between customers who share a table.)
    np.testing.assert_allclose(
        log_cycles(np.full(2, 10**4), np.array([10**4, 10**4 - 1])),
        [0, math.log(math.comb(10**4, 2))],
        atol=1e-6,
    )


def test_who_shares_a_table_does_not_count(global_random_seed):
    X = np.random.default_rng(global_random_seed).integers(3, size=(40, 1))
    sampler = StepwiseGibbs(split_merge_rate=2)
    hmm = HCRPHMM(sampler, n_burnin=20, n_draws=4, random_state=global_random_seed).fit(X)
    draw = hmm.draws_[0, -1]
    state = ChainState(
        np.zeros(1, int),
        Franchise(draw.alpha, draw.gamma),
        hmm.emission_.make_stats(hmm.emission_.encode_values(X)),
        RandomStream(0),
    )
    # Seated anew again and again: as many tables by chance, other companies.
    by_tables = {}
    for _ in range(300):
        state.start_from(draw.states)
        arrays = state.to_arrays()
        records = [arrays["transitions"], *arrays["emission"]["columns"]]
        tables = tuple(np.concatenate([r["n_tables"] for r in records]).tolist())
        lp = state.log_joint()
        by_tables.setdefault(tables, []).append((lp + log_seatings(records), lp))
    largest = max(by_tables.values(), key=lambda pairs: np.ptp([lp for _, lp in pairs]))
    values, lps = np.array(largest).T
    assert np.ptp(lps) > 0.1
    np.testing.assert_allclose(values, values[0])


def test_small_integers_are_enough(noise):
    """Draws are kept in bytes: to the last bit the same."""
    draws = make_model().fit(noise).draws_
    found = draws.summed_lp()
    assert (found >= draws.lp).all()
    for c, d in np.ndindex(found.shape):
        assert draws[c, d].summed_lp == found[c, d]


# -- the draw that it selects ---------------------------------------------------------


def test_map_is_not_of_one_seating(noise):
    model = make_model(point_estimate="map").fit(noise)
    draws = model.draws_
    found = draws.summed_lp()
    best = np.unravel_index(found.argmax(), found.shape)
    assert model._best == draws.argmax() == best
    np.testing.assert_array_equal(model.labels_, draws.states[best])
    # One seating says that noise has six states.
    of_one = np.unravel_index(draws.lp.argmax(), draws.shape)
    assert draws.n_states[of_one] == 6
    assert model.n_states_ == 1


def test_chains_of_different_lengths():
    draws = make_model().fit([[0], [1], [1]] * 10).draws_
    ragged = PosteriorDraws([draws._chains[0][:3], [], draws._chains[1][:5]])
    found = ragged.summed_lp()
    np.testing.assert_array_equal(
        np.isnan(found), np.arange(5) >= np.array([3, 0, 5])[:, None]
    )
    assert found[ragged.argmax()] == np.nanmax(found)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_vi_without_paths_is_map(sampler, noise):
    """Whatever the sampler: all of them leave a seating."""
    wanted = make_model(sampler=sampler, point_estimate="map").fit(noise)
    lean = make_model(sampler=sampler, store_states=False).fit(noise)
    assert lean.point_estimate == "vi"
    assert lean.draws_.states is None
    assert not lean.draws_.has_states
    assert lean._best == wanted._best
    np.testing.assert_array_equal(lean.labels_, wanted.labels_)
    np.testing.assert_array_equal(lean.transmat_, wanted.transmat_)
    copy = pickle.loads(pickle.dumps(lean))
    np.testing.assert_array_equal(copy.predict(noise), wanted.predict(noise))


@ignore_warnings(category=UserWarning)
def test_best_path_is_the_same_in_pieces(noise, tmp_path):
    """Without paths the best one is all that there is, over resumes and jobs."""
    lean = {"store_states": False}
    whole = make_model(**lean).fit(noise)
    make_model(**lean, n_draws=7, checkpoint=tmp_path / "run").fit(noise)
    resumed = make_model(**lean, checkpoint=tmp_path / "run").fit(noise)
    warm = make_model(**lean, n_draws=10, warm_start=True).fit(noise).fit(noise)
    stopped = make_model(
        **lean,
        checkpoint=tmp_path / "other",
        callback=lambda report: report.n_draws == 8,
    ).fit(noise)
    stopped.set_params(callback=None).fit(noise)
    for model in (resumed, warm, stopped, make_model(**lean, n_jobs=2).fit(noise)):
        assert model._best == whole._best
        np.testing.assert_array_equal(model.labels_, whole.labels_)
        for one, other in zip(
            model._fit_state.chains, whole._fit_state.chains, strict=True
        ):
            assert one.best_lp == other.best_lp
            np.testing.assert_array_equal(one.best_states, other.best_states)
    best = whole._fit_state.chains[whole._best[0]].best_lp
    assert best == np.nanmax(whole.draws_.summed_lp())


def test_some_draws_without_paths(noise):
    """A warm start that keeps paths from now on."""
    model = make_model(store_states=False, n_draws=10, warm_start=True).fit(noise)
    model.set_params(store_states=True).fit(noise)
    wanted = make_model(point_estimate="map").fit(noise)
    assert model._best == wanted._best
    np.testing.assert_array_equal(model.labels_, wanted.labels_)
