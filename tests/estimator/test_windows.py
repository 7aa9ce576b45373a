"""States of windows: features, joins, borders on rows, and all that an estimator does."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from estimator.test_common import EXPECTED_FAILURES, STRICT
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skihmm import HCRPHMM, windows
from skihmm.windows import WindowedHMM

PERIOD, N = 40, 4000
SHORT = HCRPHMM(emission="student", transitions="persistent", n_burnin=30, n_draws=20)


def wave(state, n, rng, period=PERIOD, noise=0.2):
    phase = np.arange(n) / period % 1
    shapes = [2 * phase - 1, np.sin(2 * np.pi * phase), np.sign(phase - 0.5)]
    return shapes[state] + noise * rng.normal(size=n)


def two_shapes(seed=0, n=N, stay=1000, **options):
    rng = np.random.default_rng(seed)
    states = np.arange(n) // stay % 2
    x = np.concatenate([wave(k // stay % 2, stay, rng, **options) for k in range(0, n, stay)])
    return x[:, None], states


@pytest.fixture(scope="module")
def fitted():
    X, _ = two_shapes()
    return WindowedHMM(SHORT, random_state=0).fit(X)


@parametrize_with_checks(
    [WindowedHMM(HCRPHMM(n_burnin=2, n_draws=2), random_state=0)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
    **STRICT,
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, check):
    # Codes of symbols are no windows' components.
    check(estimator.set_params(estimator__emission="student"))


# ---- steps, and their naive twins


def naive_indicators(rows, dilations, biases):
    """Kernels one by one, on a sequence whose ends go on."""
    n, n_columns = rows.shape
    found = []
    for i, dilation in enumerate(dilations):
        for k, places in enumerate(combinations(range(9), 3)):
            weights = np.where(np.isin(np.arange(9), places), 2.0, -1.0)
            column = rows[:, (k + dilation) % n_columns].astype(np.float32)
            taps = np.arange(n)[:, None] + dilation * (np.arange(9) - 4)
            with np.errstate(invalid="ignore"):
                found.append(column[np.clip(taps, 0, n - 1)] @ weights > biases[84 * i + k])
    return np.array(found)


def test_kernels_are_their_naive_twin(rng):
    hmm = WindowedHMM()
    hmm._dilations = np.array([1, 3])
    rows = rng.integers(-4, 5, size=(300, 2)).astype(float)  # exact sums
    seen = hmm._indicators(rows, np.array([0]), is_fit=True)
    np.testing.assert_array_equal(seen.above, naive_indicators(rows, [1, 3], hmm._biases))
    assert 0.05 < seen.above.mean(axis=1).min() < seen.above.mean(axis=1).max() < 0.95
    # Sequences know nothing of each other, and missing values hide what they touch.
    rows[100, 0] = np.nan
    both = hmm._indicators(rows, np.array([0, 150]))
    for part in (slice(0, 150), slice(150, 300)):
        own = naive_indicators(rows[part], [1, 3], hmm._biases)
        np.testing.assert_array_equal(both.above[:, part], own)
    assert both.is_known.sum(axis=1).tolist() == [291, 300, 291, 300]


def test_windows_lie_in_one_sequence():
    found = windows._Windows.of_sequences(np.array([0, 25, 29]), 60, 10, 5)
    assert found.begins.tolist() == [0, 5, 10, 15, 25, 29, 34, 39, 44, 49]
    assert found.stops.tolist() == [10, 15, 20, 25, 29, 39, 44, 49, 54, 59]
    assert found.starts.tolist() == [0, 4, 5]
    assert found.changes(np.array([0, 0, 1, 1, 0, 2, 2, 0, 0, 0])).tolist() == [2, 7]


def test_shares_of_windows(rng):
    above = rng.random((3, 40)) < 0.4
    found = windows._Windows.of_sequences(np.array([0]), 40, 10, 5)
    seen = windows._Rows(above, None, np.zeros(3, dtype=int))
    shares, is_seen = windows._shares(seen, found)
    expected = [above[:, a : a + 10].mean(axis=1) for a in range(0, 31, 5)]
    np.testing.assert_allclose(shares, expected)
    assert is_seen.all()
    known = np.ones((1, 40), dtype=bool)
    known[0, 8:14] = False
    shares, is_seen = windows._shares(seen._replace(above=above & known, is_known=known), found)
    assert is_seen.tolist() == [True, False, True, True, True, True, True]
    np.testing.assert_allclose(shares[0], above[:, :8].mean(axis=1))
    assert np.isnan(shares[1]).all()


@pytest.mark.parametrize("period", [12, 40, 150])
def test_period(period, rng):
    x = wave(0, 20 * period + 50, rng, period)[:, None]
    assert windows._find_period(x, np.array([0])) == pytest.approx(period, abs=1)
    parts = np.arange(0, len(x), 5 * period)
    assert windows._find_period(x, parts) == pytest.approx(period, abs=1)
    x[::7] = np.nan
    assert windows._find_period(x, np.array([0])) == pytest.approx(period, rel=0.03)


def test_no_period(rng):
    assert windows._find_period(np.zeros((400, 1)), np.array([0])) is None
    trend = np.linspace(-1, 1, 1000)[:, None]
    assert windows._find_period(trend, np.array([0])) is None


def test_straddling_windows():
    far = np.eye(3)
    labels = np.repeat([0, 2, 1], [8, 2, 8])
    split = windows._split_straddlers
    assert split(labels, far[labels]).tolist() == [0] * 9 + [1] * 9
    # Four windows of a third state stay, four of a mixture do not.
    labels = np.repeat([0, 2, 1], [8, 4, 8])
    assert split(labels, far[labels]).tolist() == labels.tolist()
    mixed = far.copy()
    mixed[2] = 0.6 * far[0] + 0.4 * far[1] + [0, 0, 0.4]
    assert split(labels, mixed[labels]).tolist() == [0] * 10 + [1] * 10
    # A visit between visits of one state is no mixture; at the ends there is one neighbour.
    labels = np.repeat([0, 2, 0], [8, 4, 8])
    assert split(labels, mixed[labels]).tolist() == labels.tolist()
    labels = np.repeat([1, 0, 2], [2, 8, 1])
    assert split(labels, far[labels]).tolist() == [0] * 11
    assert split(np.array([0, 1]), far[[0, 1]]).tolist() == [0, 1]


def compared(rng, places, sizes):
    """Windows around points of a line, with labels."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    points = rng.normal(size=(len(labels), 3))
    points[:, 0] += np.array(places)[labels]
    found = windows._Windows.of_sequences(np.array([0]), 5 * len(labels) + 5, 10, 5)
    return windows._Labelled(points, found, labels)


def test_held_out_distances(rng):
    """Differences in standard deviations; copies of a state have none."""
    near, far = compared(rng, [0, 0], [60, 60]), compared(rng, [0, 6], [60, 60])
    assert abs(near.distance((0,), (1,))) < 0.6
    assert far.distance((0,), (1,)) == pytest.approx(6, rel=0.2)
    assert compared(rng, [0, 6], [60, 1]).distance((0,), (1,)) == np.inf


def test_tree_joins_similar_states(rng):
    tree = compared(rng, [0, 9, 0.5, 9.5], [30, 30, 30, 30]).tree()
    heights = [height for height, _ in tree[:-1]]
    assert max(heights[:2]) < 1.5 < 5 < heights[2]
    assert sorted(map(sorted, tree[2][1])) == [[0, 2], [1, 3]]
    join = windows._joined_sets
    assert sorted(map(sorted, join(tree, 120, None))) == [[0, 2], [1, 3]]
    # Few windows: states stay; none is far from another one: one state.
    assert len(join(tree, 30, None)) == 4
    assert [len(join(tree, 120, n)) for n in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert len(join([(0.3, [(0,), (1,)]), (np.inf, [(0, 1)])], 120, None)) == 1
    assert len(join([(np.inf, [(0,)])], 120, None)) == 1
    assert len(join([(np.inf, [(0,), (1,)]), (np.inf, [(0, 1)])], 120, None)) == 2


# ---- fits


def test_shapes_and_borders(fitted):
    _, states = two_shapes()
    assert (fitted.period_, fitted.length_, fitted.step_, fitted.n_states_) == (40, 80, 40, 2)
    assert fitted.labels_.dtype == np.int32
    assert (fitted.labels_ != states).mean() < 0.01
    starts = fitted.segments().start
    np.testing.assert_allclose(starts, [0, 1000, 2000, 3000], atol=PERIOD / 2)
    # Single rows, unlike halves of steps.
    coarse = clone(fitted).set_params(borders=False).fit(two_shapes()[0])
    assert (coarse.segments().start % 20 == 0).all()
    assert adjusted_rand_score(states, coarse.labels_) < adjusted_rand_score(states, fitted.labels_)
    assert fitted.join_heights_[-1] > 5


@pytest.mark.parametrize("noise", ["white", "beats"])
def test_one_state(noise):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=2000) if noise == "white" else wave(0, 2000, rng)
        hmm = WindowedHMM(SHORT, random_state=0).fit(x[:, None])
        assert hmm.n_states_ == 1
        assert not hmm.labels_.any()


def test_new_rows(fitted):
    X, states = two_shapes(seed=1, stay=500)
    assert adjusted_rand_score(states, fitted.predict(X)) > 0.8
    probs = fitted.predict_proba(X)
    assert probs.shape == (N, 3)
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    inside = np.arange(N) % 500 > 100
    inside &= np.arange(N) % 500 < 400
    assert (probs.argmax(axis=1) == states)[inside].mean() > 0.95
    # Rows as one sequence or two, and rows fewer than a window.
    groups = np.arange(N) // 2000
    np.testing.assert_array_equal(fitted.predict(X, groups=groups)[:2000], fitted.predict(X[:2000]))
    assert fitted.predict(X[:30]).shape == (30,)
    other = 3 * np.random.default_rng(0).normal(size=(N, 1))
    assert fitted.score(X) > fitted.score(other)
    segments = fitted.segments(X)
    assert segments.n_steps.sum() == N
    assert (segments.probability[segments.n_steps > 200] > 0.7).all()


def test_state_map(fitted):
    """States of windows, of which some are joined or straddle changes; the last one is new."""
    assert len(fitted.state_map_) == fitted.estimator_.n_states_ + 1
    assert fitted.state_map_[-1] == fitted.n_states_
    assert set(fitted.state_map_[:-1]) == set(range(fitted.n_states_))
    np.testing.assert_array_equal(fitted.predict(two_shapes()[0]), fitted.labels_)


def test_groups_are_sequences():
    X, states = two_shapes()
    groups = np.repeat(["a", "b", "c"], [1300, 1200, 1500])
    hmm = WindowedHMM(SHORT, random_state=0).fit(X, groups=groups)
    assert adjusted_rand_score(states, hmm.labels_) > 0.9
    assert [hmm.window_starts_[0], *hmm.window_starts_[hmm.window_starts_ >= 1300][:1]] == [0, 1300]
    segments = hmm.segments(X, groups=groups)
    assert set(segments.sequence) == {"a", "b", "c"}
    assert {1300, 2500} <= set(segments.start)
    by_length = WindowedHMM(SHORT, random_state=0).fit(X, lengths=[1300, 1200, 1500])
    np.testing.assert_array_equal(by_length.labels_, hmm.labels_)
    with pytest.raises(ValueError, match="without X"):
        hmm.segments(groups=groups)


def test_missing_values():
    X, states = two_shapes()
    X[1200:1260] = X[2500] = X[3000:3010] = np.nan
    hmm = WindowedHMM(SHORT, random_state=0).fit(X)
    assert hmm.n_states_ == 2
    assert adjusted_rand_score(states, hmm.labels_) > 0.97
    X[::3] = np.nan
    with pytest.raises(ValueError, match=r"All windows of \d+ rows have too many missing values"):
        hmm.fit(X)
    # The earlier fit stays.
    assert adjusted_rand_score(states, hmm.labels_) > 0.97


def test_columns_tell_states_that_no_single_column_tells():
    rng = np.random.default_rng(0)
    states = np.arange(6000) // 750 % 4
    runs = (
        [wave(k % 2, 750, rng) for k in states[::750]],
        [wave(k // 2, 750, rng) for k in states[::750]],
    )
    X = np.column_stack([np.concatenate(run) for run in runs])
    X = np.column_stack([X, np.full(6000, 7.0)])  # a constant column tells nothing
    hmm = WindowedHMM(SHORT, random_state=0).fit(X)
    assert hmm.n_states_ == 4
    assert adjusted_rand_score(states, hmm.labels_) > 0.9
    assert hmm.scale_[2] == 1


@pytest.mark.filterwarnings("error")
def test_signals_without_noise():
    x = np.concatenate([wave(k, 800, np.random.default_rng(0), noise=0) for k in (0, 1, 0, 1)])
    x[:100] = np.nan
    hmm = WindowedHMM(SHORT, random_state=0).fit(x[:, None])
    # Two shapes, and perhaps their change.
    assert hmm.n_states_ in (2, 3)
    assert adjusted_rand_score(np.arange(3200) // 800 % 2, hmm.labels_) > 0.9
    hmm.fit(x[100:800, None])
    assert hmm.n_states_ == 1


def test_number_of_states_is_a_parameter(fitted):
    X, _ = two_shapes()
    one = clone(fitted).set_params(n_states=1).fit(X)
    assert one.n_states_ == 1
    with pytest.raises(ValueError, match=r"n_states=9, but windows have \d states?; expected no"):
        clone(fitted).set_params(n_states=9).fit(X)


def test_errors_and_warnings_say_what_is_needed():
    X, _ = two_shapes()
    with pytest.warns(UserWarning, match="X has 90 rows; states of windows need 160 or more"):
        WindowedHMM(SHORT, random_state=0).fit(X[:90])
    with pytest.warns(UserWarning, match="X holds 13 periods of 300 rows; .* need 20 or more"):
        WindowedHMM(SHORT, period=300, random_state=0).fit(X)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.nan})
    with pytest.raises(ValueError, match="Column 'b' of X has no observed value"):
        WindowedHMM().fit(frame)
    for params, message in (
        ({"period": "day"}, "period='day'"),
        ({"period": 1}, "period=1"),
        ({"n_periods": 0}, "n_periods=0"),
        ({"n_components": 0}, "n_components=0"),
        ({"max_windows": 0}, "max_windows=0"),
        ({"n_states": 0}, "n_states=0"),
        ({"borders": 2}, "borders=2"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            WindowedHMM(**params).fit(X)


def test_given_period_and_more_windows():
    X, states = two_shapes()
    hmm = WindowedHMM(SHORT, period=20, max_windows=None, random_state=0).fit(X)
    assert (hmm.period_, hmm.length_, hmm.step_) == (20, 40, 20)
    assert len(hmm.window_labels_) == N // 20 - 1
    assert adjusted_rand_score(states, hmm.labels_) > 0.5
    few = WindowedHMM(SHORT, max_windows=50, random_state=0).fit(X)
    assert (few.length_, few.step_) == (160, 80)


def test_frames(fitted):
    X, _ = two_shapes()
    times = pd.date_range("2020", periods=N, freq="min")
    frame = pd.DataFrame({"ecg": X[:, 0]}, index=times)
    hmm = clone(fitted).fit(frame)
    np.testing.assert_array_equal(hmm.labels_, fitted.labels_)
    assert hmm.feature_names_in_.tolist() == ["ecg"]
    segments = hmm.segments(frame)
    assert segments.start[0] == times[0]
    assert segments["stop"].iloc[-1] == times[-1] + pd.Timedelta("1min")
    assert isinstance(hmm.segments(), pd.DataFrame)
    assert not hasattr(hmm.fit(X), "feature_names_in_")


def test_estimator_at_home(fitted):
    X, _ = two_shapes()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    twice = clone(fitted).fit(X)
    np.testing.assert_array_equal(twice.predict_proba(X), fitted.predict_proba(X))
    in_pipeline = make_pipeline(StandardScaler(), clone(fitted)).fit(X)
    np.testing.assert_array_equal(in_pipeline.predict(X), fitted.labels_)
    assert (clone(fitted).fit_predict(X) == fitted.labels_).all()
    # The seed is the clone's, not the given estimator's.
    assert SHORT.random_state is None
    own = WindowedHMM(clone(SHORT).set_params(random_state=0)).fit(X)
    np.testing.assert_array_equal(own.predict_proba(X), fitted.predict_proba(X))
    assert clone(fitted).set_params(estimator__n_draws=3).fit(X).estimator_.n_draws == 3
    assert WindowedHMM(random_state=0, max_windows=40).fit(X).estimator_.emission == "student"
