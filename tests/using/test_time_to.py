"""Time until a state is entered: closed forms, simulation, what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skihmm import HCRPHMM, OnlineFilter
from skihmm._using.decoding import frozen_model
from skihmm._using.dwell_times import DwellLaw
from skihmm._using.time_to import expected_steps
from skihmm.core._random import RandomStream
from skihmm.transitions import HCRPTransitions

SHORT = {"emission": "gaussian", "n_burnin": 30, "random_state": 0}
HORIZON = 40


def make_data(n_steps=150):
    levels = np.array([0.0, 9.0, 18.0])[np.arange(n_steps) // 10 % 3]
    return levels[:, None] + np.random.default_rng(0).normal(size=(n_steps, 1))


def simulated(following, label, n_paths=4000):
    """Survival by drawn paths of every draw that has the state."""
    stream = RandomStream(np.random.SeedSequence(0))
    shares, weights = [], []
    for d, place in enumerate(following._matching(None)):
        if label not in place:
            continue
        model = frozen_model(following._draws[d], following._nothing, following._emission)
        paths = following._draw_states(model, d, n_paths, stream)
        is_there = place[paths] == label
        first = np.where(is_there.any(axis=0), is_there.argmax(axis=0), len(paths))
        shares.append([(first >= i).mean() for i in range(len(paths) + 1)])
        weights.append(following._weights[d])
    return np.average(shares, axis=0, weights=weights)


@pytest.fixture(scope="module")
def one_draw():
    return HCRPHMM(**SHORT, transitions="sticky", n_draws=1).fit(make_data())


def test_geometric_dwells_have_a_closed_form(one_draw):
    own = one_draw.labels_[-1]
    others = [k for k in range(one_draw.n_states_ + 1) if k != own]
    time = one_draw.predict_next(make_data()).time_to(others, horizon=HORIZON)
    stay = one_draw.transmat_[own, own]
    # The last state is known but for a ten-thousandth.
    first = time.survival()[1]
    assert first == pytest.approx(stay, rel=1e-3)
    np.testing.assert_allclose(time.survival()[1:], first * stay ** np.arange(HORIZON))
    assert time.mean() == pytest.approx(1 + first / (1 - stay))
    assert time.mean() == pytest.approx(one_draw.dwell_times_[own], rel=1e-3)
    expected = np.ceil(np.log1p(-np.array([0.3, 0.5, 0.7])) / np.log(stay))
    np.testing.assert_array_equal(time.quantile([0.3, 0.5, 0.7]), expected)
    assert time.interval(0.4) == (expected[0], expected[2])


def test_the_mean_has_the_steps_after_the_horizon(one_draw):
    following = one_draw.predict_next(make_data())
    own = int(one_draw.labels_[-1])
    target = (own + 1) % 3
    short, long = (following.time_to(target, horizon=h) for h in (3, 5000))
    assert short.mean() == pytest.approx(long.mean())
    assert long.survival().sum() == pytest.approx(long.mean())
    assert short.quantile(0.999) == np.inf
    assert np.isfinite(long.quantile(0.999))


def test_survival_agrees_with_simulation():
    X = make_data()
    hmm = HCRPHMM(**SHORT, transitions="sticky", n_draws=10).fit(X)
    following = hmm.predict_next(X, n_steps=HORIZON)
    for label in range(3):
        time = following.time_to(label, horizon=HORIZON)
        expected = simulated(following, label)
        assert np.abs(time.survival() - expected).max() < 0.015


def test_another_state_comes_by_the_law_of_dwell_times():
    """The last row is the first of its state."""
    X = make_data()[:141]
    prior = HCRPTransitions(expected_dwell=12)
    hmm = HCRPHMM(**SHORT, transitions=prior, n_draws=1).fit(X)
    own = hmm.labels_[-1]
    assert hmm.labels_[-2] != own
    others = [k for k in range(hmm.n_states_ + 1) if k != own]
    time = hmm.predict_next(X).time_to(others, horizon=HORIZON)
    law = DwellLaw.of_draw(hmm.draws_[0, 0]).survival(np.arange(1, HORIZON + 2))
    first = time.survival()[1] / law[own, 1]
    assert first == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(time.survival()[1:], first * law[own, 1:], rtol=1e-6)
    assert time.mean() == pytest.approx(hmm.dwell_times_[own], rel=1e-3)


def test_contexts_of_coming_steps():
    """In the second context states change at once."""
    rng = np.random.default_rng(0)
    context = np.arange(400) // 20 % 2
    state = np.zeros(400, dtype=int)
    for t in range(1, 400):
        leaves = rng.random() < (0.9 if context[t] else 0.05)
        state[t] = (state[t - 1] + leaves) % 2
    X = np.column_stack([9.0 * state + rng.normal(size=400), context])
    prior = HCRPTransitions(context_features=[1])
    hmm = HCRPHMM(**SHORT, transitions=prior, n_draws=5).fit(X)
    contexts = np.repeat([0, 1], HORIZON // 2)
    following = hmm.predict_next(X, n_steps=HORIZON, contexts=contexts)
    target = 1 - hmm.labels_[-1]
    time = following.time_to(target, horizon=HORIZON)
    expected = simulated(following, target)
    assert np.abs(time.survival() - expected).max() < 0.015
    # Steps after those that are known have no context.
    assert np.isfinite(following.time_to(target).mean())


def test_inputs_of_staying_have_to_cover_the_horizon():
    rng = np.random.default_rng(0)
    u = rng.normal(size=300)
    state = np.cumsum(rng.random(300) < np.where(u > 0, 0.3, 0.02)) % 2
    X = np.column_stack([9.0 * state + rng.normal(size=300), u])
    prior = HCRPTransitions(input_features=[1])
    hmm = HCRPHMM(**SHORT, transitions=prior, n_draws=5).fit(X)
    ahead = np.linspace(-1, 1, HORIZON)
    following = hmm.predict_next(X, n_steps=HORIZON, inputs=ahead)
    target = 1 - hmm.labels_[-1]
    time = following.time_to(target)
    assert time.horizon == HORIZON
    expected = simulated(following, target)
    assert np.abs(time.survival() - expected).max() < 0.015
    assert np.isnan(time.mean())
    with pytest.raises(ValueError, match=r"horizon=41.* known for 40 steps. Pass n_ste"):
        following.time_to(target, horizon=HORIZON + 1)


def test_labels_of_joined_states(one_draw):
    following = one_draw.predict_next(make_data())
    joined = np.where(one_draw.labels_ == 2, 0, one_draw.labels_)
    by_labels = following.time_to(0, labels=joined)
    by_states = following.time_to([0, 2])
    np.testing.assert_allclose(by_labels.survival(), by_states.survival())


def test_draws_without_the_state_are_left_out():
    X = make_data()
    hmm = HCRPHMM(**SHORT, n_draws=4).fit(X)
    following = hmm.predict_next(X)
    matching = following._matching
    found = matching(None)
    found[0] = np.where(found[0] == 1, hmm.n_states_, found[0])
    following._matching = lambda labels: found
    time = following.time_to(1)
    assert time.share == 0.75
    assert time.survival()[0] == 1
    following._matching = lambda labels: [np.minimum(each, 0) for each in found]
    with pytest.raises(ValueError, match="expected a label from 0 to 0"):
        following.time_to(1)


def test_filters_go_on_from_live_rows():
    X = make_data()
    hmm = HCRPHMM(**SHORT, transitions="sticky", n_draws=5).fit(X)
    live = OnlineFilter(hmm, draws="all")
    live.update(X)
    expected = hmm.predict_next(X).time_to(1).survival()
    np.testing.assert_allclose(live.predict_next().time_to(1).survival(), expected, atol=1e-9)
    with pytest.raises(ValueError, match="which a filter does not keep"):
        live.predict_next().time_to(1, labels=hmm.labels_)


@pytest.mark.parametrize("exit_", [0.1, 1e-9, 1e-18, 1e-200])
def test_times_have_no_cancellation(exit_):
    """Two states that alternate, one of which is left to the states of interest."""
    within = np.array([[0.5, 0.5], [0.5, 0.5 - exit_]])
    expected = [2 + 2 / exit_, 2 / exit_]
    for order in ([0, 1], [1, 0]):
        found = expected_steps(within[np.ix_(order, order)], np.array([0.0, exit_])[order])
        np.testing.assert_allclose(found, np.array(expected)[order], rtol=1e-12)


def test_times_are_those_of_a_linear_system():
    whole = np.random.default_rng(0).dirichlet(np.ones(9), size=6)
    within, exits = whole[:, :6], whole[:, 6:].sum(axis=1)
    expected = np.linalg.solve(np.eye(6) - within, np.ones(6))
    np.testing.assert_allclose(expected_steps(within, exits), expected)


def test_states_that_are_never_left():
    """States 1 and 2 are closed, 0 may end in them, 3 leaves, 4 alternates with 3."""
    within = np.array(
        [
            [0.5, 0.2, 0.0, 0.0, 0.0],
            [0.0, 0.3, 0.7, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.5],
            [0.0, 0.0, 0.0, 1.0, 0.0],
        ]
    )
    exits = np.array([0.3, 0.0, 0.0, 0.5, 0.0])
    for order in (np.arange(5), np.arange(5)[::-1], np.array([1, 3, 0, 4, 2])):
        found = expected_steps(within[np.ix_(order, order)], exits[order])
        np.testing.assert_allclose(found, np.array([np.inf, np.inf, np.inf, 3, 4])[order])


def test_the_mean_does_not_need_the_horizon(one_draw):
    following = one_draw.predict_next(make_data())
    target = int(one_draw.labels_[0])
    usual, far = following.time_to(target), following.time_to(target, horizon=10**13)
    assert far.mean() == usual.mean()
    assert far.horizon == 10**13
    # The mean is that of the distribution.
    survival = following.time_to(target, horizon=5000).survival()
    assert usual.mean() == pytest.approx(survival.sum())
    assert survival[0] == 1


def test_the_share_of_nothing_entered_begins_with_one():
    hmm = HCRPHMM(**SHORT, n_draws=7, n_chains=3).fit(make_data())
    assert hmm.predict_next(make_data()).time_to(0).survival()[0] == 1


def test_what_time_to_refuses(one_draw):
    following = one_draw.predict_next(make_data())
    for states in (-1, 4, [], [[0]], 0.5, "a", [0, 9]):
        with pytest.raises(ValueError, match="expected a label from 0 to 3, or a list"):
            following.time_to(states)
    for horizon in (0, 1.5):
        with pytest.raises((ValueError, TypeError), match="horizon="):
            following.time_to(0, horizon=horizon)
    with pytest.raises(ValueError, match="labels has 2 entries, but the fit had 150"):
        following.time_to(0, labels=[0, 1])
    with pytest.raises(ValueError, match="non-negative integers, one per training step"):
        following.time_to(0, labels=[-1] * 150)
    with pytest.raises(ValueError, match="expected probabilities between 0 and 1"):
        following.time_to(0).quantile(1.5)
    bare = HCRPHMM(**SHORT, n_draws=2, store_states=False).fit(make_data())
    with pytest.raises(ValueError, match="fit with store_states=True"):
        bare.predict_next(make_data()).time_to(0)
    copy = pickle.loads(pickle.dumps(following))
    assert copy.time_to(0).mean() == following.time_to(0).mean()
