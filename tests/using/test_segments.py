"""Segments: rows, index values, frames, probabilities of any labels."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal

SHORT = {"emission": "gaussian", "n_burnin": 30, "n_draws": 6, "random_state": 1}
LENGTHS = [30, 20, 10]


def make_data(lengths=LENGTHS, levels=(0.0, 9.0, 0.0)):
    X = np.repeat(np.array(levels)[:, None], lengths, axis=0)
    return X + np.random.default_rng(0).normal(size=X.shape)


@pytest.fixture(scope="module")
def fitted():
    return HCRPHMM(**SHORT).fit(make_data())


def rows_of(segments):
    return list(zip(segments.start, segments.stop, segments.n_steps, segments.state, strict=True))


def test_segments_of_the_training_steps(fitted):
    segments = fitted.segments()
    assert isinstance(segments, np.recarray)
    assert segments.dtype.names == (
        "sequence", "start", "stop", "n_steps", "state", "probability",
    )  # fmt: skip
    assert rows_of(segments) == [(0, 30, 30, 0), (30, 50, 20, 1), (50, 60, 10, 0)]
    assert (segments.sequence == 0).all()
    rebuilt = np.repeat(segments.state, segments.n_steps)
    np.testing.assert_array_equal(rebuilt, fitted.labels_)


def test_segments_of_new_data_end_with_their_sequences(fitted):
    X = make_data([10, 10], [9.0, 9.0])
    assert rows_of(fitted.segments(X)) == [(0, 20, 20, 1)]
    for given in ({"lengths": [10, 10]}, {"groups": [5] * 10 + [3] * 10}):
        segments = fitted.segments(X, **given)
        assert rows_of(segments) == [(0, 10, 10, 1), (10, 20, 10, 1)]
        expected = [5, 3] if "groups" in given else [0, 1]
        assert segments.sequence.tolist() == expected


def test_probabilities_are_means_over_the_steps_of_all_draws(fitted):
    X = make_data([5, 5], [0.0, 4.5])
    segments = fitted.segments(X)
    probs = fitted.predict_proba(X, draws="all")
    path = fitted.predict(X)
    for row in segments:
        steps = slice(row.start, row.stop)
        assert (path[steps] == row.state).all()
        assert row.probability == pytest.approx(probs[steps, row.state].mean())


def test_names_of_states_are_in_the_column_of_states(fitted):
    pd = pytest.importorskip("pandas")
    plain = fitted.segments()
    named = fitted.segments(names={1: "REM"})
    assert named.state.tolist() == ["0", "REM", "0"]
    assert named.dtype.names == plain.dtype.names
    for column in {*plain.dtype.names} - {"state"}:
        np.testing.assert_array_equal(named[column], plain[column])
    # Nothing is stored.
    assert fitted.segments().state.tolist() == [0, 1, 0]
    frame = fitted.segments(pd.DataFrame(make_data()), names={0: "wake", 1: "REM"})
    assert frame["state"].tolist() == ["wake", "REM", "wake"]
    # Labels of a user's own have more numbers than there are states.
    own = np.repeat([7, 3], 30)
    found = fitted.segments(make_data(), states=own, names={7: "day"})
    assert found.state.tolist() == ["day", "3"]
    with pytest.raises(ValueError, match=r"names has the key 9, which is no state; .* to 1"):
        fitted.segments(names={9: "REM"})
    with pytest.raises(TypeError, match="expected names of states by number"):
        fitted.segments(names=["wake", "REM"])
    with pytest.raises(ValueError, match="states that are no integers"):
        fitted.segments(make_data(), states=["a"] * 60, names={0: "wake"})


def test_labels_may_be_coarser_than_states_or_have_names(fitted):
    X = make_data([10, 10, 10], [0.0, 9.0, 0.0])
    one = fitted.segments(X, states=["rest"] * 30)
    assert (one.state[0], one.n_steps[0]) == ("rest", 30)
    # All states count to the only label.
    assert one.probability[0] == pytest.approx(1)
    # Other numbers of the same states change nothing but where the new state counts, and
    # a third state, which some draws have: as a label it counts to one of the two.
    swapped = fitted.segments(X, states=1 - fitted.predict(X))
    more = swapped.probability - fitted.segments(X).probability
    assert more.min() > -2e-3
    assert more.max() < 2e-3 + np.mean(fitted.draws_.n_states > 2) < 0.2
    # A label that contradicts the states is improbable.
    wrong = np.where(np.arange(30) == 4, 1, fitted.predict(X))
    found = fitted.segments(X, states=wrong)
    assert found.probability[found.n_steps == 1] < 0.01


def test_draws_without_paths_have_the_selected_draw_alone():
    hmm = HCRPHMM(**SHORT, store_states=False).fit(make_data())
    segments = hmm.segments()
    probs = hmm.predict_proba(make_data())[np.arange(60), hmm.labels_]
    assert segments.probability[0] == pytest.approx(probs[: segments.stop[0]].mean())


def test_segments_are_of_the_weighted_draws():
    X = make_data()
    hmm = HCRPHMM(**SHORT, n_chains=2).fit(X)
    every = hmm.predict_proba(X, draws="all")[np.arange(60), hmm.labels_]
    assert hmm.segments().probability[0] == pytest.approx(every[:30].mean())


def arrow_days(pd, kind):
    pytest.importorskip("pyarrow")
    days = pd.date_range("2020-01-01", periods=60, tz="Europe/Berlin" if "tz" in kind else None)
    return pd.Index(pd.array(days if "tz" in kind else days.date, dtype=kind))


@pytest.mark.parametrize(
    ("make_index", "after"),
    [
        (lambda pd: pd.date_range("2020-01-31", periods=60, freq="MS"), "2025-02-01"),
        (lambda pd: pd.date_range("2020-01-01", periods=60, tz="UTC"), "2020-03-01"),
        (lambda pd: pd.period_range("2020-01", periods=60, freq="M"), "2025-01"),
        (lambda pd: pd.RangeIndex(5, 305, 5), 305),
        (lambda pd: pd.Index(np.arange(60) / 4), 15.0),
        (lambda pd: pd.Index([f"row {i}" for i in range(60)]), None),
        # The times end.
        (lambda pd: pd.Timestamp.max - pd.to_timedelta(np.arange(60)[::-1], unit="s"), None),
        (lambda pd: pd.Index([date.max - timedelta(i) for i in range(60)][::-1]), None),
        (lambda pd: arrow_days(pd, "date32[pyarrow]"), "2020-03-01"),
        (lambda pd: arrow_days(pd, "timestamp[us, tz=Europe/Berlin][pyarrow]"), "2020-03-01"),
    ],
)
def test_index_values_of_frames(make_index, after):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(make_data(), columns=["a"], index=make_index(pd))
    segments = HCRPHMM(**SHORT).fit(X).segments(X)
    assert segments["start"].tolist() == [X.index[i] for i in (0, 30, 50)]
    assert segments["stop"].tolist()[:2] == [X.index[i] for i in (30, 50)]
    last = segments["stop"].iloc[-1]
    if after is None:
        assert pd.isna(last)
    elif isinstance(after, str):
        assert str(last).startswith(after)
    else:
        assert last == after
    assert segments["n_steps"].tolist() == LENGTHS


def test_sequences_of_frames_go_on_at_their_own_ends():
    pd = pytest.importorskip("pandas")
    index = [*range(0, 60, 2), *range(100, 120), 7, *range(9)]
    X = pd.DataFrame(make_data(), index=index)
    X.columns = ["a"]
    groups = ["x"] * 30 + ["y"] * 20 + ["one"] + ["z"] * 9
    segments = HCRPHMM(**SHORT).fit(X, groups=groups).segments(X, groups=groups)
    assert segments["sequence"].tolist() == ["x", "y", "one", "z"]
    assert segments["stop"].tolist()[:2] == [60, 120]
    assert pd.isna(segments["stop"].iloc[2])
    assert segments["stop"].iloc[3] == 9


def test_a_step_of_centuries_has_no_next_one():
    pd = pytest.importorskip("pandas")
    index = pd.DatetimeIndex([*pd.date_range("2020-01-01", periods=58), "1700", "2200"])
    X = pd.DataFrame(make_data(), index=index.as_unit("ns"), columns=["a"])
    segments = HCRPHMM(**SHORT).fit(X, lengths=[58, 2]).segments(X, lengths=[58, 2])
    assert pd.isna(segments["stop"].iloc[-1])


def test_frames_without_the_data_have_row_numbers():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(make_data(), columns=["a"], index=np.arange(100, 160))
    hmm = HCRPHMM(**SHORT).fit(X)
    segments = hmm.segments()
    assert isinstance(segments, pd.DataFrame)
    assert segments["stop"].tolist() == [30, 50, 60]
    hmm.set_output(transform="default")
    assert isinstance(hmm.segments(X), np.recarray)


def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"a": make_data()[:, 0]})
    segments = HCRPHMM(**SHORT).fit(X).segments(X)
    assert isinstance(segments, pl.DataFrame)
    assert segments["stop"].to_list() == [30, 50, 60]


def padded(X, lengths, n_before, n_after):
    """Sequences between missing rows, and their lengths."""
    parts = np.split(X, np.cumsum(lengths)[:-1])
    pads = [np.full((n, X.shape[1]), np.nan) for n in (n_before, n_after)]
    whole = [np.concatenate([pads[0], part, pads[1]]) for part in parts]
    return np.concatenate(whole), [len(part) for part in whole]


@pytest.mark.parametrize("emission", ["gaussian", "autoregressive", "hcrp"])
def test_missing_ends_belong_to_no_segment(emission):
    X = make_data()
    if emission == "hcrp":
        X = np.rint(np.abs(X))
    X[10] = np.nan  # inside of a sequence
    whole, sizes = padded(X, LENGTHS, 2, 5)
    params = SHORT | {"emission": emission}
    with pytest.warns(UserWarning, match=r"^21 rows of X, at the beginning or end of sequences"):
        hmm = HCRPHMM(**params).fit(whole, lengths=sizes)
    assert len(hmm.labels_) == len(whole)
    for segments in hmm.segments(), hmm.segments(whole, lengths=sizes):
        assert segments.n_steps.sum() == sum(LENGTHS)
        assert (segments.n_steps == segments.stop - segments.start).all()
        for i, (first, length) in enumerate(zip(np.cumsum(sizes) - sizes, LENGTHS, strict=True)):
            own = segments[segments.sequence == i]
            assert (own.start[0], own.stop[-1]) == (first + 2, first + 2 + length)
            assert (own.stop[:-1] == own.start[1:]).all()
    inside = np.isfinite(whole[:, 0])
    inside[12] = True
    summary = hmm.summary()
    shares = np.bincount(hmm.labels_[inside], minlength=hmm.n_states_) / sum(LENGTHS)
    np.testing.assert_allclose(summary.shares, shares)
    assert summary.n_segments.sum() == len(hmm.segments())
    assert f"in {sum(LENGTHS)} steps" in str(summary)
    named = hmm.segments(whole, lengths=sizes, states=np.where(inside, "in", "out"))
    assert named.state.tolist() == ["in"] * 3
    # A sequence without observations has no segment.
    assert not len(hmm.segments(np.full((4, 1), np.nan)))


def test_steps_that_lack_inputs_alone_are_no_missing_ends():
    X = np.c_[np.arange(40.0) % 7, make_data([20, 20], [0, 5])]
    X[-4:, 0] = np.nan
    emission = AutoregressiveNormal(order=0, input_features=[0])
    with pytest.warns(UserWarning, match="input"):
        hmm = HCRPHMM(**SHORT | {"emission": emission}).fit(X)
    assert hmm.segments().stop[-1] == 40


def test_rows_that_differences_leave_are_not_warned_of():
    X = make_data()
    X[[0, 30]] = np.nan
    hmm = HCRPHMM(**SHORT).fit(X, lengths=[30, 30])  # warnings are errors
    segments = hmm.segments()
    assert segments.start[0] == 1
    assert 30 not in segments.start
    with pytest.warns(UserWarning, match="6 rows of X, at the beginning"):
        hmm.partial_fit(np.r_[make_data(), np.full((6, 1), np.nan)], lengths=[66])


def test_what_segments_refuse(fitted):
    with pytest.raises(ValueError, match=r"lengths were given without X.*Leave them out"):
        fitted.segments(lengths=[60])
    for states in ([0, 1], np.zeros(60), [[0]] * 60):
        with pytest.raises(ValueError, match=r"states has the shape .*label per row"):
            fitted.segments(states=states)


@pytest.mark.parametrize("other", [None, 1.5, float("nan"), "a", True])
def test_labels_of_several_kinds_are_refused(fitted, other):
    states = [1, 0, other, *[1] * 57]
    with pytest.raises(ValueError, match=r"states\[2\] is .*, and states\[0\] is 1; expected"):
        fitted.segments(states=np.array(states, dtype=object))
    words = np.array(["a", None, *["b"] * 58], dtype=object)
    with pytest.raises(ValueError, match=r"states\[1\] is None, and .* Rows without a label"):
        fitted.segments(states=words)
    words[1] = "none"
    assert set(fitted.segments(states=words).state) == {"a", "none", "b"}
