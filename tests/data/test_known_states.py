"""Known states of some steps: `fit(X, states=...)`."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from fitting.test_reproducibility import assert_goes_on
from sklearn.model_selection import GroupKFold, cross_validate

from skihmm import HCRPHMM
from skihmm._fitting.starts import with_known_states
from skihmm.datasets import make_repeating_sequence
from skihmm.samplers._names import SAMPLERS

SHORT = {"n_burnin": 20, "n_draws": 5, "thin": 1, "n_particles": 20, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore:.* in states that no label has")


@pytest.fixture
def data(global_random_seed):
    """Two states that overlap, and a third one."""
    rng = np.random.default_rng(global_random_seed)
    truth = np.repeat(rng.integers(3, size=30), 10)
    X = rng.normal(np.array([0.0, 2.5, 9.0])[truth])[:, None]
    return X, truth


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_known_steps_keep_their_states(sampler, data):
    X, truth = data
    states = np.where(np.arange(300) % 4 == 0, truth, -1)
    params = {**SHORT, "n_burnin": 200, "n_chains": 2}
    hmm = HCRPHMM(sampler, "diagonal_gaussian", **params).fit(X, states=states)
    np.testing.assert_array_equal(hmm.known_states_, [0, 1, 2])
    known = states >= 0
    assert (hmm.draws_.states[:, :, known] == states[known]).all()
    np.testing.assert_array_equal(hmm.labels_[known], states[known])
    assert hmm.transmat_.shape == (hmm.n_states_ + 1,) * 2
    assert (hmm.labels_ == truth).mean() > 0.75
    assert hmm.predict_proba(X)[known, states[known]].mean() > 0.6


def test_unknown_steps_may_have_other_states(data):
    X, truth = data
    states = np.full(300, -1)
    states[np.flatnonzero(truth == 0)[:3]] = 7
    hmm = HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(X, states=states)
    np.testing.assert_array_equal(hmm.known_states_, [7])
    assert (hmm.labels_[states == 7] == 0).all()
    assert hmm.labels_[truth == 2].min() > 0
    assert hmm.n_states_ >= 2


def test_other_states_follow_by_occupancy(data):
    X, truth = data
    rare = np.flatnonzero(truth == 1)[:1]
    states = np.full(300, -1)
    states[rare] = 0
    draws = HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(X, states=states).draws_
    for path in draws.states[0]:
        counts = np.bincount(path)
        assert path[rare] == 0
        assert (np.diff(counts[1:]) <= 0).all()


def test_nothing_known_changes_nothing(data):
    X, _ = data
    plain = HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(X)
    same = HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(X, states=[-1] * 300)
    np.testing.assert_array_equal(plain.draws_.lp, same.draws_.lp)
    assert len(plain.known_states_) == len(same.known_states_) == 0


@pytest.mark.parametrize("init", ["particle_filter", "blocks", "random", "single", "array"])
def test_every_start_is_made_to_fit(init, data):
    X, _ = data
    states = np.where(np.arange(300) % 50 == 0, np.arange(300) // 50, -1)
    if init == "array":
        init = np.maximum(states, 0)
    hmm = HCRPHMM(emission="diagonal_gaussian", init=init, **SHORT).fit(X, states=states)
    known = states >= 0
    assert (hmm.draws_.states[:, :, known] == states[known]).all()


def test_an_init_that_contradicts_is_refused(data):
    X, _ = data
    states = np.where(np.arange(300) % 50 == 0, np.arange(300) // 50, -1)
    for init in (np.zeros(300, int), np.arange(300) % 60):
        hmm = HCRPHMM(emission="diagonal_gaussian", init=init, **SHORT)
        with pytest.raises(ValueError, match="init and states contradict"):
            hmm.fit(X, states=np.where(states == 5, 0, states))


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([0, 1], r"the shape \(2,\); expected 300 integers"),
        (np.zeros((300, 2), int), r"the shape \(300, 2\)"),
        (np.full(300, -2), r"states\[0\] = -2"),
        (np.full(300, 0.5), "of type float64"),
        (["a"] * 300, "of type object.*pandas.factorize"),
        ([object()] * 300, "of type object"),
        (np.full(300, 2**63, dtype=np.uint64), r"states\[0\] = 9223372036854775808"),
        (3, r"the shape \(\)"),
    ],
)
def test_what_are_no_states(states, message, data):
    with pytest.raises(ValueError, match=message):
        HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(data[0], states=states)


def test_containers(data):
    X, truth = data
    states = np.where(np.arange(300) % 4 == 0, truth, -1)
    expected = HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(X, states=states)
    for given in (
        states.tolist(),
        states[:, None],
        pd.Series(states),
        pd.Series(states, dtype="Int64"),
        states.astype(np.int8),
        np.where(states < 0, np.nan, states),
        pd.Series(states).where(states >= 0),
        pd.Series(states, dtype="Int64").where(states >= 0),
        [None if k < 0 else int(k) for k in states],
    ):
        hmm = HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(X, states=given)
        np.testing.assert_array_equal(hmm.draws_.lp, expected.draws_.lp)


def test_the_states_are_part_of_the_data(data):
    X, truth = data
    states = np.where(np.arange(300) % 4 == 0, truth, -1)
    hmm = HCRPHMM(emission="diagonal_gaussian", warm_start=True, **SHORT)
    hmm.fit(X, states=states)
    for other in (None, np.where(states == 0, 1, states), np.where(states == 2, 3, states)):
        with pytest.raises(ValueError, match="or states"):
            hmm.fit(X, states=other)
    before = hmm.draws_.lp
    hmm.fit(X, states=states)
    np.testing.assert_array_equal(hmm.draws_.lp[:, :5], before)


def test_states_are_sliced_by_cross_validation():
    X, truth = make_repeating_sequence(120)
    groups = np.arange(120) // 20
    states = np.where(np.arange(120) % 5 == 0, truth, -1)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            HCRPHMM(**SHORT),
            X,
            cv=GroupKFold(3),
            params={"groups": groups, "states": states},
            return_estimator=True,
        )
    for hmm in found["estimator"]:
        assert len(hmm.known_states_) > 1


def test_a_path_is_changed_as_little_as_can_be():
    path = np.array([0, 0, 1, 1, 1, 2], dtype=np.int32)
    known = np.array([0, -1, 0, 1, 1, -1], dtype=np.int32)
    # State 1 has two steps of label 1, and label 0 is at home in 0.
    np.testing.assert_array_equal(with_known_states(path, known), [0, 0, 0, 1, 1, 2])
    known = np.array([0, 1, 2, 2, 2, -1], dtype=np.int32)
    found = with_known_states(path, known)
    assert len(set(found[:3])) == 3
    np.testing.assert_array_equal(found[2:5], found[2])
    assert set(found) == set(range(found.max() + 1))


@pytest.mark.parametrize("transitions", ["hcrp", "sticky"])
def test_known_states_may_be_all_there_are(transitions, data):
    X, truth = data
    X = np.column_stack([X, X]) + np.random.default_rng(0).normal(size=(300, 2))
    states = np.where(np.arange(300) < 90, truth, -1)
    params = {**SHORT, "n_burnin": 100, "transitions": transitions}
    hmm = HCRPHMM(emission="diagonal_gaussian", new_states=False, **params)
    hmm.fit(X, states=states)
    n_known = len(np.unique(truth[:90]))
    assert (hmm.draws_.n_states == n_known).all()
    assert (hmm.labels_ == truth)[90:].mean() > 0.75
    hmm.partial_fit(X)
    assert (hmm.draws_.n_states == n_known).all()
    with pytest.raises(ValueError, match=r"new_states=False .* none is known"):
        hmm.fit(X)


def test_closed_states_are_another_model_and_resume(tmp_path, data):
    X, truth = data
    states = np.where(np.arange(300) < 90, truth, -1)
    make = partial(HCRPHMM, emission="diagonal_gaussian", new_states=False, **SHORT)
    path = tmp_path / "chain.npz"
    _, saved = assert_goes_on(make, lambda hmm: hmm.fit(X, states=states), path, 2, 5)
    with pytest.raises(ValueError, match="another run"):
        saved.set_params(new_states=True).fit(X, states=states)


def test_warns_of_many_rows_in_new_states(data):
    X, truth = data
    states = np.where((np.arange(300) < 90) & (truth == 2), 0, -1)
    hmm = HCRPHMM(emission="diagonal_gaussian", **SHORT)
    with pytest.warns(UserWarning, match=r"rows whose state is not known are in states"):
        hmm.fit(X, states=states)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hmm.set_params(new_states=False).fit(X, states=states)


def test_labels_in_the_place_of_y_are_noticed(data):
    X, truth = data
    hmm = HCRPHMM(emission="diagonal_gaussian", **SHORT)
    for y in truth, truth.astype(str), pd.Series(truth):
        with pytest.warns(UserWarning, match="pass states=y"):
            hmm.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in X[:, 0], np.arange(300), np.zeros(300, int), None:
            hmm.fit(X, y)
        hmm.fit(X, truth, states=truth)
        # The y of a pipeline is that of its last step.
        hmm.fit_transform(X, truth)
