"""Live rows: the same as the filter over all rows at once."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from using.test_residuals import MODELS, NUMBERS, RNG, SYMBOLS, fit

from skihmm import HCRPHMM, OnlineFilter
from skihmm.emissions import (
    AutoregressiveNormal,
    HCRPCategorical,
    NormalInverseGamma,
    ProductEmission,
)
from skihmm.metrics import ParticleFilterScorer
from skihmm.transitions import HCRPTransitions

GAPS = NUMBERS.copy()
GAPS[[20, 40, 41, 42, 100, 101, 119]] = np.nan
GAPS[[60, 118], 0] = np.nan
LOST = NUMBERS.copy()
LOST[50, 0] = np.nan
CASES = {
    **MODELS,
    "gaps": ("gaussian", GAPS),
    "gaps of columns": ("diagonal_gaussian", GAPS),
    "gaps of an autoregression": (AutoregressiveNormal(2), GAPS),
    "regression with a gap": (AutoregressiveNormal(0, input_features=[1]), LOST),
    "lost symbols": ("hcrp", np.where(RNG.random((120, 1)) < 0.1, np.nan, SYMBOLS)),
}
TRANSITIONS = {
    "stays": (HCRPTransitions(expected_dwell=10), NUMBERS),
    "contexts": (HCRPTransitions(context_features=[1]), np.hstack([NUMBERS[:, :1], SYMBOLS])),
}


def live_rows(live, X, first=30):
    """Some rows together, and the others one by one."""
    parts = [live.update(X[:first]), *(live.update(row[None]) for row in X[first:])]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def compare(hmm, X, before=None, **options):
    live = OnlineFilter(hmm, **options)
    whole, skip = (X, 0) if before is None else (np.vstack([before, X]), len(before))
    found = live_rows(live, X)
    draws = options.get("draws", "selected")
    expected = hmm.predict_proba(whole, method="filter", draws=draws)[skip:]
    np.testing.assert_allclose(found["probs"], expected, rtol=0, atol=1e-12)
    if draws == "all":
        scorer = ParticleFilterScorer(adaptive=False)
        scores = scorer.score_samples(hmm, whole)[skip:]
        np.testing.assert_allclose(found["log_prob"], scores, rtol=1e-12, atol=1e-12)
    is_lost = np.isnan(found["residuals"]).all(axis=1)
    np.testing.assert_array_equal(found["surprise"] > 0, ~is_lost)
    return live, whole, found["residuals"]


@pytest.mark.parametrize("draws", ["all", pytest.param("selected", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_rows_one_by_one_are_filtered_like_all_at_once(name, draws):
    emission, X = CASES[name]
    hmm = fit(emission, X)
    live, whole, residuals = compare(hmm, X, draws=draws)
    if draws == "all" and name != "no function":
        np.testing.assert_allclose(residuals, hmm.residuals(whole), atol=1e-8)
        given = hmm._fitted.given
        columns = {"contexts": given.only_contexts, "inputs": given.inputs}
        known = {key: X[:2, given.columns[p]] for key, p in columns.items() if len(p)}
        found, expected = live.predict_next(2, **known), hmm.predict_next(X, 2, **known)
        drawn = [each.sample(50, random_state=0) for each in (found, expected)]
        np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("name", TRANSITIONS)
def test_transitions_of_all_kinds(name):
    transitions, X = TRANSITIONS[name]
    hmm = HCRPHMM("auto", "gaussian", transitions, n_burnin=30, n_draws=3, random_state=0)
    hmm.fit(X, lengths=[70, 50])
    compare(hmm, X, draws="all")
    # The first sequence goes on.
    live, whole, _ = compare(hmm, X[70:], before=X[:70], group=0)
    compare(hmm, X[70:], before=X[:70], group=-2)
    path = live.predict_next(3)._state_probs[0]
    given = {"contexts": [None] * 3} if name == "contexts" else {}
    one = hmm._fitted.selected
    expected = hmm.predict_next(whole, 3, **given)
    places = [draw.sweep for draw in expected._draws].index(one.sweep)
    np.testing.assert_allclose(path, expected._state_probs[places], rtol=0, atol=1e-12)


def test_a_filter_goes_on_after_a_copy_and_a_pickle():
    emission, X = CASES["gaps of an autoregression"]
    hmm = fit(emission, X)
    live = OnlineFilter(hmm)
    live.update(X[:42])
    others = [live.copy(), copy.copy(live), copy.deepcopy(live)]
    others.append(pickle.loads(pickle.dumps(live)))
    expected = live.update(X[42:])
    hmm.fit(X[::-1])  # which a filter does not follow
    for other in others:
        assert other.n_rows == 42
        for name, found in other.update(X[42:]).items():
            np.testing.assert_array_equal(found, expected[name])
    # The data of the fit are no part of it.  Noise has as many states in long data as in
    # short ones, repeated rows have more, and with them more parameters.
    noise = np.random.default_rng(0).normal(size=(20 * len(X), 2))
    noise[::7, 0] = np.nan
    fits = [fit(emission, noise[:n]) for n in (len(X), len(noise))]
    assert fits[0].n_states_ == fits[1].n_states_
    sizes = [len(pickle.dumps(OnlineFilter(each))) for each in fits]
    assert sizes[1] < 1.5 * sizes[0]


@pytest.mark.parametrize("lost", [False, True])
def test_memory_does_not_grow_with_rows(lost):
    live = OnlineFilter(fit(AutoregressiveNormal(1), NUMBERS))
    rows = np.where(lost, [np.nan, 1.0], NUMBERS[:50])
    for _ in range(40):
        live.update(rows)
    tracemalloc.start()
    live.update(rows)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(60):
        live.update(rows)
    assert tracemalloc.get_traced_memory()[0] - before < 200_000
    tracemalloc.stop()
    assert np.isfinite(live.predict_next().mean()).all()


def test_alarms_of_unusual_numbers_symbols_and_columns():
    live = OnlineFilter(fit("gaussian", NUMBERS), level=0.01)
    live.update(NUMBERS)
    rows = [NUMBERS[-1], NUMBERS[-1] + [0, 20], [np.nan, np.nan]]
    assert live.update(rows).is_alarm.tolist() == [False, True, False]
    # The symbol in the middle of the order is the rare one.
    X = np.where(np.arange(3000) == 1500, 1, RNG.choice([0, 2], size=3000))
    live = OnlineFilter(fit("hcrp", X[:, None]), level=0.01)
    assert live.update([[0], [1], [2]]).is_alarm.tolist() == [False, True, False]


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["gaussian", "poisson", "autoregression", "symbols"])
def test_false_alarms_are_as_many_as_the_level_says(name):
    emission, X = MODELS[name]
    if name == "symbols":
        # Others, which are not drawn, have no probability.
        emission = HCRPCategorical(handle_unknown="error")
    hmm = HCRPHMM(emission=emission, n_burnin=30, n_draws=1, random_state=0).fit(X)
    live = OnlineFilter(hmm, group=0, level=0.001, random_state=0)
    # From the parameters of the draw, from which `sample` would learn.
    found = live.update(live.predict_next(40_000).sample(1, random_state=1)[0])
    assert 20 <= found.is_alarm.sum() <= 62
    shares = [(found.surprise > -np.log(p)).mean() for p in (0.1, 0.5)]
    np.testing.assert_allclose(shares, [0.1, 0.5], atol=0.012)


LAWS = {
    "gaussian": ("gaussian", NUMBERS),
    "diagonal": ("diagonal_gaussian", NUMBERS),
    "autoregression": (AutoregressiveNormal(1), NUMBERS),
    "student": (AutoregressiveNormal(1, noise="student"), NUMBERS),
    "mixed": (
        ProductEmission(
            [("s", HCRPCategorical(handle_unknown="error"), [1]), ("x", "gaussian", [0, 2])]
        ),
        np.hstack([NUMBERS[:, :1], SYMBOLS, NUMBERS[:, 1:]]),
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
def test_joint_surprise_has_its_law_under_the_model(name):
    """Columns are correlated in states, and by states that overlap and change often."""
    emission, X = LAWS[name]
    hmm = HCRPHMM(
        emission=emission, transitions="hcrp", n_burnin=30, n_draws=1, random_state=0
    ).fit(X)
    live = OnlineFilter(hmm, group=0, random_state=0)
    rows = live.predict_next(8000).sample(1, random_state=1)[0].astype(float)
    if name in ("gaussian", "diagonal"):
        rows[RNG.random(rows.shape) < 0.2] = np.nan
    found = live.update(rows)
    seen = ~np.isnan(rows).all(axis=1)
    assert (found.joint_surprise[~seen] == 0).all()
    shares = [(found.joint_surprise[seen] > -np.log(p)).mean() for p in (0.01, 0.1, 0.5)]
    np.testing.assert_allclose(shares, [0.01, 0.1, 0.5], atol=0.015, rtol=0.1)
    # The whole rows and one after the other.
    live, other = (OnlineFilter(hmm, random_state=0) for _ in range(2))
    whole = live.update(rows[:40]).joint_surprise
    each = [other.update(row[None]).joint_surprise[0] for row in rows[:40]]
    np.testing.assert_allclose(each, whole, rtol=1e-9, atol=1e-9)


def test_many_columns_that_are_a_little_off_are_an_alarm():
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.random(1600) < 1 / 60) % 3
    X = rng.normal(scale=2, size=(3, 25))[states] + rng.normal(size=(1600, 25))
    X[1500:, :6] += 3.5
    hmm = HCRPHMM(
        emission="gaussian", transitions="persistent", n_burnin=50, n_draws=5, random_state=0
    ).fit(X[:1000])
    found = OnlineFilter(hmm).update(X[1000:])
    assert found.is_alarm[:500].mean() <= 0.004
    assert found.is_alarm[500:].mean() >= 0.9
    assert (found.surprise[500:] > -np.log(0.0005)).mean() < 0.5


def test_rows_of_another_subject_are_refused():
    who = np.repeat([7, 8], 60)
    X = np.column_stack([NUMBERS[:, 0] + who, who])
    emission = NormalInverseGamma(subject_feature=1)
    hmm = HCRPHMM(emission=emission, n_burnin=20, n_draws=2, random_state=0)
    hmm.fit(X, groups=who)
    live = OnlineFilter(hmm)
    live.update(X[:5])
    for rows in (X[60:62], X[58:62]):
        with pytest.raises(ValueError, match=r"of subject 8.* of 7.* for every"):
            live.update(rows)
    assert live.n_rows == 5
    live.update(X[5:9])
    with pytest.raises(ValueError, match=r"of subject 7.* of 8"):
        OnlineFilter(hmm, group=1).update(X[:1])


def test_frames_names_and_errors():
    frame = pd.DataFrame(NUMBERS, columns=["a", "b"])
    hmm = fit("gaussian", frame)
    live = OnlineFilter(hmm)
    assert repr(live) == "<OnlineFilter: 0 rows, 1 draw>"
    # The first row of a sequence is expected in its first states.
    probs = hmm.startprob_[:-1]
    first = (probs @ hmm.emission_.means_) / probs.sum()
    np.testing.assert_allclose(live.predict_next().mean()[0], first, atol=0.1)
    live.update(frame[:5])
    before = copy.copy(live)
    for rows, error in (
        (frame[["a"]], "feature names|missing"),
        (frame[:1] + np.inf, "infinity"),
        (np.array([[1.0, np.inf]]), "infinity"),
        (frame["a"], "X has one dimension"),
        (frame[:0], "0 sample"),
    ):
        with pytest.raises(ValueError, match=error):
            live.update(rows)
    np.testing.assert_array_equal(
        live.update(frame[5:9]).probs, before.update(frame[5:9].to_numpy()).probs
    )
    for given, error in (
        ({"group": 1}, "group=1, but the fit has 1 sequences"),
        ({"draws": "some"}, "draws='some'"),
        ({"level": 1.5}, "level=1.5"),
    ):
        with pytest.raises(ValueError, match=error):
            OnlineFilter(hmm, **given)
    with pytest.raises(TypeError, match="expected a fitted HCRPHMM"):
        OnlineFilter("hmm")
