"""StateSequenceDisplay: paths, probabilities, data, pictures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pictures import assert_same_picture, canvas

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import BernoulliRegression, ProductEmission
from skihmm.inspection import StateSequenceDisplay
from skihmm.posterior import align, match_states, point_estimate
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 30, "n_draws": 6, "thin": 1, "n_particles": 20, "random_state": 0}


def data_of(global_random_seed, n=80):
    rng = np.random.default_rng(global_random_seed)
    s = np.repeat(rng.integers(3, size=n // 10), 10)
    X = np.empty((n, 2), dtype=object)
    X[:, 0] = rng.normal(4.0 * s)
    X[:, 1] = np.array(["red", "green", "blue"])[s]
    X[5, 0], X[7, 1] = np.nan, None
    return X


@pytest.fixture(scope="module")
def mixed(global_random_seed):
    X = data_of(global_random_seed)
    emission = ProductEmission([("w", "hcrp", [1]), ("x", "diagonal_gaussian", [0])])
    return HCRPHMM(emission=emission, **SHORT).fit(X), X


def look_of(display):
    """Numbers and colours of all segments, and the legend."""
    top, *others = display.axes_
    texts = [(one.get_position(), one.get_text(), one.get_color()) for one in top.texts]
    faces = [one.get_facecolor().tolist() for one in top.collections]
    shapes = [[path.vertices.tolist() for path in one.get_paths()] for one in top.collections]
    backgrounds = [colours_of(ax).tolist() for ax in others]
    (legend,) = display.figure_.legends
    keys = [one.get_text() for one in legend.get_texts()]
    patches = [one.get_facecolor() for one in legend.get_patches()]
    return texts, faces, shapes, backgrounds, keys, patches


def colours_of(ax):
    """Colours of a panel's background, step by step."""
    return ax.images[0].get_array()[0, :, :3]


@pytest.mark.parametrize("method", ["viterbi", "smooth", "filter"])
def test_values_of_an_estimator(mixed, method):
    hmm, X = mixed
    display = StateSequenceDisplay.from_estimator(hmm, X, method=method)
    states = hmm.predict(X, method=method)
    np.testing.assert_array_equal(display.states, states)
    probs = hmm.predict_proba(X, method="filter" if method == "filter" else "smooth")
    np.testing.assert_array_equal(display.probability, probs[np.arange(80), states])
    assert display.symbols == [False, True]
    assert display.n_states == hmm.n_states_
    top, numbers, words = display.axes_
    assert [ax.get_ylabel() for ax in display.axes_[1:]] == ["column 0", "column 1"]
    y = numbers.lines[0].get_ydata()
    assert np.isnan(y[5])
    np.testing.assert_array_equal(np.delete(y, 5), np.delete(X[:, 0], 5).astype(float))
    # Ticks at the places of the symbols, none where the symbol is missing.
    assert [t.get_text() for t in words.get_yticklabels()] == ["blue", "green", "red"]
    ticks = np.array([segment.mean(axis=0) for segment in words.collections[0].get_segments()])
    shown = np.delete(np.arange(80), 7)
    np.testing.assert_allclose(ticks[:, 0], shown)
    rows = np.array(["blue", "green", "red"])[np.rint(ticks[:, 1]).astype(int)]
    np.testing.assert_array_equal(rows, X[shown, 1])
    assert top.get_ylim() == (0, 1)
    for ax in display.axes_:
        assert ax.get_xlim() == (-0.5, 79.5)


def test_segments(pyplot):
    states = np.array([0, 0, 2, 2, 2, 0])
    probability = np.array([1.0, 0.5, 0.25, 1.0, 1.0, 0.75])
    display = StateSequenceDisplay(states, probability=probability).plot()
    (ax,) = display.axes_
    for k, polygons in zip((0, 2), ax.collections, strict=True):
        area = 0.0
        for path in polygons.get_paths():
            x, y = path.vertices.T
            area += abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2
        assert area == pytest.approx(probability[states == k].sum())
    # Numbers stand in the middle of each stay.
    texts = [(one.get_position()[0], one.get_text()) for one in ax.texts]
    assert texts == [(0.5, "0"), (3, "2"), (5, "0")]
    (legend,) = display.figure_.legends
    assert [one.get_text() for one in legend.get_texts()] == ["0", "2"]


def test_background_has_the_colours_of_the_states(mixed):
    hmm, X = mixed
    display = StateSequenceDisplay.from_estimator(hmm, X)
    for ax in display.axes_[1:]:
        colours = colours_of(ax)
        assert len(np.unique(colours, axis=0)) == len(np.unique(display.states))
        for k in np.unique(display.states):
            assert len(np.unique(colours[display.states == k], axis=0)) == 1


def test_panels_have_borders_and_numbers_of_segments_with_room(mixed):
    hmm, X = mixed
    display = StateSequenceDisplay.from_estimator(hmm, X)
    states = display.states
    borders = np.flatnonzero(np.diff(states)) + 0.5
    assert len(borders) == 2
    for ax in display.axes_[1:]:
        lines = ax.collections[-1].get_segments()
        np.testing.assert_allclose([line[0, 0] for line in lines], borders)
        assert [one.get_text() for one in ax.texts] == [
            one.get_text() for one in display.axes_[0].texts
        ]
        # Above the data.
        top = max(one.get_window_extent().y0 for one in ax.texts)
        drawn = [*ax.lines, *ax.collections[:-1]]
        assert all(one.get_window_extent().y1 < top for one in drawn)
    # Borders of narrow segments would hide the colours.
    quick = StateSequenceDisplay(np.arange(600) % 2, X=np.zeros((600, 1))).plot(first=0)
    assert not quick.axes_[1].collections[-1].get_segments()
    assert not quick.axes_[1].texts


def test_numbers_near_a_value_have_no_offset():
    X = 1234.56 + 0.01 * np.random.default_rng(0).random((60, 1))
    display = StateSequenceDisplay(np.zeros(60, dtype=int), X=X).plot()
    display.figure_.canvas.draw()
    axis = display.axes_[1].yaxis
    assert not axis.get_offset_text().get_text()
    assert all(label.get_text().startswith("1234.5") for label in axis.get_ticklabels())


def test_the_last_steps_are_shown_where_states_are_quick():
    for stay, n, first in (
        (1, 300, 100),
        (2, 300, 100),
        (3, 300, 0),
        (1, 150, 0),
        (40, 9000, 8200),
    ):
        display = StateSequenceDisplay(np.arange(n) // stay % 3).plot()
        (ax,) = display.axes_
        assert ax.get_xlim() == (first - 0.5, n - 0.5), (stay, n)
        note = f"step (the last {n - first} of {n:,} steps)" if first else "step"
        assert ax.get_xlabel() == note
        for window in ({"first": 0}, {"last": n}):
            (ax,) = display.plot(**window).axes_
            assert ax.get_xlim() == (-0.5, n - 0.5)
            assert ax.get_xlabel() == "step"
    # Each sequence has a segment of its own.
    starts = np.arange(0, 300, 2)
    display = StateSequenceDisplay(np.zeros(300, dtype=int), starts=starts).plot()
    assert display.axes_[0].get_xlim()[0] == 99.5


def test_values_of_draws(ragged_model, sequence):
    draws = ragged_model.draws_
    display = StateSequenceDisplay.from_draws(draws, sequence)
    path = point_estimate(draws)
    np.testing.assert_array_equal(display.states, path)
    # Nine draws of two chains, those that are not there left out.
    share = (align(draws, reference=path) == path).sum(axis=0) / 9
    np.testing.assert_allclose(display.probability, share)
    assert display.symbols is None
    # Integers are numbers unless an emission says otherwise.
    assert len(display.axes_[1].lines) == 1
    labels = ragged_model.labels_
    display = StateSequenceDisplay.from_draws(draws, states=labels)
    np.testing.assert_array_equal(display.states, labels)
    assert display.X is None
    assert len(display.axes_) == 1
    paths = np.array([[0, 0, 1, 1], [5, 5, 5, 2]])
    display = StateSequenceDisplay.from_draws(paths, states=[0, 0, 1, 1])
    np.testing.assert_array_equal(display.probability, [1, 1, 0.5, 1])


@pytest.fixture(scope="module")
def clear():
    """A model of three well separated levels, and its data."""
    s = np.repeat([2, 0, 1, 0, 2, 1, 0], [11, 12, 9, 8, 10, 7, 13])
    X = np.random.default_rng(0).normal(20.0 * s)[:, None]
    return HCRPHMM(emission="diagonal_gaussian", init=s, **SHORT).fit(X), X


def test_states_are_named_as_in_the_picture_of_the_estimator(clear):
    hmm, X = clear
    display = StateSequenceDisplay.from_estimator(hmm, X)
    # (So that pictures can be the same, segment by segment.)
    np.testing.assert_array_equal(display.states, hmm.labels_)
    assert sorted(set(display.states)) == [0, 1, 2]
    display.probability = np.ones(70)
    expected = look_of(display.plot())
    other_names = np.array([5, 0, 1])
    for states in (None, hmm.labels_, other_names[hmm.labels_]):
        display = StateSequenceDisplay.from_draws(
            hmm.draws_, X, states=states, reference=hmm.labels_
        )
        np.testing.assert_array_equal(display.probability, 1)
        assert look_of(display) == expected
    display = StateSequenceDisplay.from_draws(
        hmm.draws_, X, reference=other_names[hmm.labels_].tolist()
    )
    np.testing.assert_array_equal(display.states, other_names[hmm.labels_])
    assert look_of(display) != expected


def test_states_of_draws_that_differ():
    # Some states are about as frequent as others, and are numbered the other way round.
    X = make_automaton_sequence(300, random_state=0)[0]
    hmm = HCRPHMM(**{**SHORT, "n_draws": 20, "random_state": 2}).fit(X)
    alone = StateSequenceDisplay.from_draws(hmm.draws_)
    display = StateSequenceDisplay.from_draws(hmm.draws_, reference=hmm.labels_)
    np.testing.assert_array_equal(
        display.states, match_states(hmm.labels_, point_estimate(hmm.draws_))
    )
    # The same partition, and as sure.
    back = match_states(alone.states, display.states)
    np.testing.assert_array_equal(back, alone.states)
    np.testing.assert_array_equal(display.probability, alone.probability)
    agree, before = ((one.states == hmm.labels_).mean() for one in (display, alone))
    assert agree > 0.9 > before, "choose another seed"


def test_states_that_are_not_stored(without_states, sequence):
    with pytest.raises(ValueError, match="Fit with store_states=True"):
        StateSequenceDisplay.from_draws(without_states.draws_, sequence)
    # What predict says needs no paths.
    display = StateSequenceDisplay.from_estimator(without_states, sequence)
    assert display.states.shape == (60,)


def test_strings_without_an_emission():
    X = [["a", 1.0], [None, 2.0], ["b", None]]
    display = StateSequenceDisplay.from_draws([[0, 0, 1]], X)
    words, numbers = display.axes_[1:]
    assert [t.get_text() for t in words.get_yticklabels()] == ["a", "b"]
    np.testing.assert_array_equal(numbers.lines[0].get_ydata(), [1, 2, np.nan])


def test_columns_of_data_frames(fitted, sequence):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"symbol": sequence[:, 0], "twice": 2 * sequence[:, 0]})
    hmm = HCRPHMM(**SHORT).fit(frame)
    display = StateSequenceDisplay.from_estimator(hmm, frame, columns="twice")
    assert [ax.get_ylabel() for ax in display.axes_[1:]] == ["twice"]
    display = StateSequenceDisplay.from_draws(hmm.draws_, frame)
    assert [ax.get_ylabel() for ax in display.axes_[1:]] == ["symbol", "twice"]
    # Ordered categories are in their order, from bottom to top.
    words = pd.Categorical(["mid", "high"] * 30, ["low", "mid", "high"], ordered=True)
    X = pd.DataFrame({"size": words})
    display = StateSequenceDisplay.from_estimator(HCRPHMM(**SHORT).fit(X), X)
    for shown in (display, StateSequenceDisplay.from_draws(hmm.draws_, X)):
        labels = shown.axes_[1].get_yticklabels()
        assert [label.get_text() for label in labels] == ["mid", "high"]
        np.testing.assert_array_equal(shown._panel(0, 0, 4)[0], [0, 1, 0, 1])


def tick_labels(ax):
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    return {
        tick.get_loc(): tick.label1.get_text()
        for tick in ax.xaxis.get_major_ticks()
        if low <= tick.get_loc() <= high
    }


@pytest.mark.parametrize(
    ("freq", "zone", "expected", "common"),
    [
        ("YS", None, {19: "2020", 49: "2050"}, ""),
        ("MS", "Europe/Berlin", {12: "2002", 36: "2004"}, ""),
        ("D", None, {14: "Jan-15", 31: "Feb", 52: "22"}, "2001-Mar"),
        ("7min", "Europe/Berlin", {120 / 7: "02:00", 360 / 7: "06:00"}, "2001-Jan-01"),
        ("3s", None, {10: "30", 20: "00:01"}, "2001-Jan-01 00:02"),
    ],
)
def test_dates_are_on_the_axis(fitted, sequence, freq, zone, expected, common):
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2001-01-01", periods=60, freq=freq, tz=zone)
    X = pd.DataFrame(sequence, index=index)
    for display in (
        StateSequenceDisplay.from_estimator(fitted, X, first=10),
        StateSequenceDisplay.from_draws(fitted.draws_, X, first=10),
    ):
        ax = display.axes_[-1]
        assert ax.get_xlabel() == "time"
        labels = {round(step, 6): label for step, label in tick_labels(ax).items()}
        assert len(labels) > 2
        for step, label in expected.items():
            assert labels[round(step, 6)] == label
        assert ax.xaxis.get_offset_text().get_text() == common
        # The text of the cursor has the whole date.
        whole = str(index[12].tz_localize(None))
        assert whole.startswith(ax.xaxis.get_major_formatter()(12))
        # They do not run into one another.
        boxes = [tick.label1.get_window_extent() for tick in ax.xaxis.get_major_ticks()]
        boxes = [box for box in boxes if box.width > 1]
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize("width", [3, 6, 9])
@pytest.mark.parametrize("start", ["2024-01-03", "2024-01-28", "2023-12-20"])
def test_the_month_of_the_first_tick_has_a_name(start, width, pyplot):
    pd = pytest.importorskip("pandas")
    for n in (9, 14, 20, 31, 60, 365):
        index = pd.date_range(start, periods=n)
        states = np.zeros(n, dtype=int)
        display = StateSequenceDisplay(states, times=index.to_numpy())
        _, ax = pyplot.subplots(figsize=(width, 2))
        display.plot(ax)
        labels = tick_labels(ax)
        first = min(labels)
        words = f"{labels[first]} {ax.xaxis.get_offset_text().get_text()}"
        # (A tick at the first of January has the year.)
        assert f"{index[round(first)]:%b}" in words or labels[first] == "2024"
        # A first day of a month keeps its name beside the days before.
        days = [index[round(place)] for place in labels]
        assert (
            len({day.month for day in days[1:]} - {day.month for day in days if day.day == 1}) <= 1
        )
        pyplot.close()


@pytest.mark.parametrize("kind", ["first days", "last days", "periods"])
def test_quarters_are_quarters(fitted, sequence, kind):
    pd = pytest.importorskip("pandas")
    index = pd.period_range("1990Q2", periods=60, freq="Q")
    if kind != "periods":
        index = index.to_timestamp(how="start" if kind == "first days" else "end").normalize()
    display = StateSequenceDisplay.from_estimator(fitted, pd.DataFrame(sequence, index=index))
    labels = tick_labels(display.axes_[-1])
    assert labels == {
        7: "1992", 15: "1994", 23: "1996", 31: "1998", 39: "2000", 47: "2002", 55: "2004"
    }  # fmt: skip
    display.plot(first=10, last=16)
    labels = tick_labels(display.axes_[-1])
    assert labels == {
        10: "1992Q4", 11: "1993Q1", 12: "1993Q2", 13: "1993Q3", 14: "1993Q4", 15: "1994Q1"
    }  # fmt: skip


def test_dates_with_a_hole_do_not_run_into_one_another(fitted, sequence):
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2001-01-01", periods=90).delete(np.arange(20, 50))
    with pytest.warns(UserWarning, match="a longer step than elsewhere"):
        display = StateSequenceDisplay.from_estimator(fitted, pd.DataFrame(sequence, index=index))
    labels = tick_labels(display.axes_[-1])
    assert labels[0] == "Jan"
    assert np.diff(sorted(labels)).min() > 4
    # The first of February is in the hole, between the steps beside it.
    (place,) = (step for step, label in labels.items() if label == "Feb")
    assert 19 < place < 20
    assert labels[29] == "Mar"


def test_times_of_several_sequences_are_at_round_steps(fitted, sequence):
    pd = pytest.importorskip("pandas")
    index = [*pd.date_range("2001-01-01", periods=30)] * 2
    X = pd.DataFrame(sequence, index=pd.DatetimeIndex(index))
    display = StateSequenceDisplay.from_estimator(fitted, X, lengths=[30, 30])
    labels = tick_labels(display.axes_[-1])
    assert labels[0] == "2001-01-01"
    assert labels[32] == "2001-01-03"


def test_periods_and_other_indices_on_the_axis(fitted, sequence):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(sequence, index=pd.period_range("2001", periods=60, freq="M"))
    display = StateSequenceDisplay.from_estimator(fitted, X)
    assert tick_labels(display.axes_[-1])[12] == "2002"
    for index in (np.arange(60), [f"row {i}" for i in range(60)]):
        display = StateSequenceDisplay.from_estimator(fitted, X.set_index(pd.Index(index)))
        assert display.times is None
        assert display.axes_[-1].get_xlabel() == "step"
    assert StateSequenceDisplay.from_draws(fitted.draws_).times is None


def test_sequences_and_windows(fitted, sequence, pyplot):
    display = StateSequenceDisplay.from_estimator(fitted, sequence, lengths=[20, 40])
    np.testing.assert_array_equal(display.states, fitted.predict(sequence, lengths=[20, 40]))
    dashed = [one for one in display.axes_[0].lines if one.get_linestyle() == "--"]
    assert [one.get_xdata()[0] for one in dashed] == [19.5]
    assert display.plot(first=25, last=45, columns=[]) is display
    (ax,) = display.axes_
    assert ax.get_xlim() == (24.5, 44.5)
    assert not [one for one in ax.lines if one.get_linestyle() == "--"]
    figure, axes = pyplot.subplots(2)
    display.plot(axes)
    assert list(display.axes_) == list(axes)
    assert display.figure_ is figure
    # Rows of symbols are the same in every window.
    labels = [t.get_text() for t in display.axes_[1].get_yticklabels()]
    display.plot(last=2)
    assert [t.get_text() for t in display.axes_[1].get_yticklabels()] == labels
    groups = np.repeat([3, 1], 30)
    display = StateSequenceDisplay.from_draws(fitted.draws_, groups=groups)
    np.testing.assert_array_equal(display.starts, [0, 30])


def test_a_state_not_seen_yet():
    display = StateSequenceDisplay(np.array([0, 1, 1]), n_states=1).plot()
    (legend,) = display.figure_.legends
    assert [one.get_text() for one in legend.get_texts()] == ["0", "new"]


def test_contexts_that_are_no_integers():
    X = np.column_stack([np.arange(40) // 3 % 2, np.tile([0.25, 0.75], 20)])
    transitions = HCRPTransitions(context_features=[1])
    hmm = HCRPHMM(transitions=transitions, n_burnin=2, n_draws=2, random_state=0).fit(X)
    display = StateSequenceDisplay.from_estimator(hmm, X, columns=[0, 1])
    named = [[tick.get_text() for tick in one.get_yticklabels()] for one in display.axes_[1:]]
    assert named == [["0", "1"], ["0.25", "0.75"]]


def test_inputs_are_lines_and_contexts_are_symbols():
    rng = np.random.default_rng(0)
    data = [rng.integers(2, size=40), rng.normal(size=40), np.arange(40) // 20]
    hmm = HCRPHMM(
        emission=BernoulliRegression(input_features=[1]),
        transitions=HCRPTransitions(context_features=[2]),
        **SHORT,
    ).fit(np.column_stack(data))
    display = StateSequenceDisplay.from_estimator(hmm, np.column_stack(data))
    assert display.symbols == [False, False, True]
    # Given columns are shown on demand.
    assert [ax.get_ylabel() for ax in display.axes_[1:]] == ["column 0"]
    display.plot(columns=[0, 1, 2])
    assert [ax.get_ylabel() for ax in display.axes_[1:]] == ["column 0", "column 1", "column 2"]
    np.testing.assert_array_equal(display.axes_[2].lines[0].get_ydata(), data[1])
    display.plot(first=10, last=20, columns=1)
    assert len(display.axes_[1].get_yticks()) < 10


def test_ones_and_zeros_are_steps():
    X = np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, 0.0]])
    display = StateSequenceDisplay(np.array([0, 0, 1]), X=X).plot()
    styles = [ax.lines[0].get_drawstyle() for ax in display.axes_[1:]]
    assert styles == ["steps-mid", "default"]


def test_errors(fitted, sequence):
    display = StateSequenceDisplay.from_estimator(fitted, sequence)
    for window, message in (
        ({"first": 60}, "first=60 and last=60 leave nothing of 60 steps"),
        ({"first": 8, "last": 8}, "first=8 and last=8 leave nothing"),
        ({"first": -1}, "first=-1; expected an integer >= 0"),
        ({"columns": 1}, "columns holds 1, but there are 1 columns"),
        ({"columns": "size"}, "columns holds 'size'; expected places, or names from"),
    ):
        with pytest.raises(ValueError, match=message):
            display.plot(**window)
    with pytest.raises(ValueError, match="method='map'; expected one of 'viterbi'"):
        StateSequenceDisplay.from_estimator(fitted, sequence, method="map")
    with pytest.raises(ValueError, match="X has 59 rows, but the draws have 60 steps"):
        StateSequenceDisplay.from_draws(fitted.draws_, sequence[1:])
    for name in ("states", "reference"):
        with pytest.raises(ValueError, match=rf"{name} has shape \(60, 1\)"):
            StateSequenceDisplay.from_draws(fitted.draws_, **{name: sequence})
        message = f"{name} has 59 steps, but the draws have 60; expected a path"
        with pytest.raises(ValueError, match=message):
            StateSequenceDisplay.from_draws(fitted.draws_, **{name: fitted.labels_[1:]})


def gallery(n_states, n_samples=150):
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(n_states, size=n_samples), 7)[:n_samples]
    probability = 1 - 0.6 * rng.random(n_samples) ** 3
    X = np.empty((n_samples, 2), dtype=object)
    X[:, 0] = rng.normal(states)
    X[:, 1] = np.array(["sun", "rain", "fog"])[rng.integers(3, size=n_samples)]
    X[40:50] = np.nan
    return StateSequenceDisplay(
        states,
        probability=probability,
        X=X,
        column_names=["height", "weather"],
        starts=[0, 70],
        n_states=n_states - 1,
    )


@pytest.mark.parametrize(("name", "n"), [("states_4", 4), ("states_30", 30)])
def test_pictures(name, n, tmp_path):
    with canvas(400, 300) as figure:
        gallery(n).plot(figure.subplots())
        assert_same_picture(figure, name, tmp_path)


@pytest.mark.parametrize("n", [4, 30])
@pytest.mark.parametrize("columns", [None, []])
def test_the_legend_stands_beside_the_panels(n, columns):
    display = gallery(n, 600)
    display.states = np.arange(600) % n
    figure = display.plot(columns=columns).figure_
    figure.canvas.draw()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == n
    box = legend.get_window_extent()
    assert figure.bbox.contains(*box.min)
    assert figure.bbox.contains(*box.max)
    assert not any(ax.get_window_extent().overlaps(box) for ax in display.axes_)


def test_times_that_are_no_dates_are_an_error():
    display = StateSequenceDisplay([0, 0, 1, 1], times=np.arange(4) / 10)
    with pytest.raises(TypeError, match=r"dtype float64; expected datetime64.*to_datetime"):
        display.plot()


def test_the_last_stays_are_shown_of_long_data():
    """Twenty stays of median length; 200 steps would be part of one."""
    states = np.repeat(np.arange(200) % 2, 600)
    display = StateSequenceDisplay(states)
    display.plot()
    low, high = display.axes_[0].get_xlim()
    assert (low, high) == (120_000 - 12_000 - 0.5, 120_000 - 0.5)
