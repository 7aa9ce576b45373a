"""SamplerComparisonDisplay: scores against time, medians, pictures."""

from __future__ import annotations

import numpy as np
import pytest
from pictures import assert_same_picture, canvas

from skihmm import HCRPHMM
from skihmm.inspection import SamplerComparisonDisplay
from skihmm.metrics import mutual_information


def test_values(fitted, ragged_model):
    models = {"short": fitted, "ragged": ragged_model}
    display = SamplerComparisonDisplay.from_estimators(models)
    for label, model in models.items():
        draws = model.draws_
        np.testing.assert_array_equal(display.scores[label], draws.lp)
        np.testing.assert_array_equal(
            display.seconds[label], np.cumsum(draws.seconds, axis=1)
        )
        for c, line in enumerate(display.lines_[label]):
            np.testing.assert_array_equal(line.get_xdata(), display.seconds[label][c])
            np.testing.assert_array_equal(line.get_ydata(), draws.lp[c])
    assert np.isnan(display.scores["ragged"][1]).sum() == 3
    assert display.ax_.get_ylabel() == "log joint probability (nats)"
    assert display.ax_.get_xlabel() == "CPU seconds per chain"
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["short", "ragged"]
    colours = [display.lines_[label][0].get_color() for label in models]
    assert colours[0] != colours[1]


def test_other_scores(ragged_model, sequence):
    draws = ragged_model.draws_
    models = {"one": ragged_model}
    display = SamplerComparisonDisplay.from_estimators(models, score="n_states")
    # -1, in place of draws that there are not, is no number of states.
    np.testing.assert_array_equal(
        display.scores["one"], np.where(draws.n_states < 0, np.nan, draws.n_states)
    )
    truth = np.arange(60) % 8
    display = SamplerComparisonDisplay.from_estimators(
        models, score=lambda path: mutual_information(truth, path), score_name="bits"
    )
    assert display.ax_.get_ylabel() == "bits"
    for c, n in enumerate(draws.n_draws):
        for d in range(n):
            found = mutual_information(truth, draws.states[c, d])
            assert display.scores["one"][c, d] == pytest.approx(found)
    assert np.isnan(display.scores["one"][1, 3:]).all()


def test_median():
    seconds = np.array([[1.0, 2.0, 4.0], [1.5, 3.0, np.nan], [0.5, 1.0, 5.0]])
    scores = np.array([[10.0, 20.0, 30.0], [0.0, 40.0, np.nan], [5.0, 6.0, 7.0]])
    display = SamplerComparisonDisplay(
        {"a": seconds}, {"a": scores}, score_name="score"
    ).plot(summary="median")
    *chains, median = display.lines_["a"]
    assert len(chains) == 3
    # From when the last one begins until the first one ends.
    np.testing.assert_array_equal(median.get_xdata(), [1.5, 2, 3])
    # (10, 0, 6), (20, 0, 6), (20, 40, 6)
    np.testing.assert_array_equal(median.get_ydata(), [6, 6, 20])
    assert median.get_linewidth() > chains[0].get_linewidth()


def test_chains_without_draws():
    seconds = np.array([[1.0, 2.0], [np.nan, np.nan]])
    display = SamplerComparisonDisplay(
        {"a": seconds}, {"a": 3 * seconds}, score_name="score"
    ).plot(summary="median")
    np.testing.assert_array_equal(display.lines_["a"][-1].get_ydata(), [3, 6])


def test_axes_are_kept(fitted, pyplot):
    figure, ax = pyplot.subplots()
    display = SamplerComparisonDisplay.from_estimators({"a": fitted}, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.get_xscale() == "linear"
    assert ax.get_xlim()[0] == 0
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a"]
    assert display.plot(log_time=True) is display
    assert display.ax_.get_xscale() == "log"


def test_the_legend_stands_beside_the_lines():
    figure = gallery().plot().figure_
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert figure.bbox.contains(*box.min)
    assert figure.bbox.contains(*box.max)
    assert not figure.axes[0].get_window_extent().overlaps(box)


def test_errors(fitted, without_states, sequence):
    make = SamplerComparisonDisplay.from_estimators
    with pytest.raises(TypeError, match="hmms is a list; expected a dict of fitted mod"):
        make([fitted])
    with pytest.raises(ValueError, match="hmms is empty"):
        make({})
    with pytest.raises(TypeError, match=r"hmms\['a'\] is a str; expected a fitted"):
        make({"a": "beam"})
    with pytest.raises(ValueError, match="score='time'; expected one of 'lp'"):
        make({"a": fitted}, score="time")
    with pytest.raises(ValueError, match=r"draws of 'b' have none.*store_states=True"):
        make({"a": fitted, "b": without_states}, score=len)
    assert make({"b": without_states}).scores["b"].shape == (1, 3)
    hmm = HCRPHMM(emission="dirichlet", n_burnin=1, n_draws=1).fit(sequence)
    with pytest.raises(ValueError, match="the emission of 'c' has no such concentration"):
        make({"a": fitted, "c": hmm}, score="emission_alpha")
    with pytest.raises(ValueError, match="score='emission_alpha'; expected one of 'lp'"):
        make({"c": hmm}, score="emission_alpha")
    with pytest.raises(ValueError, match="summary='mean'; expected one of 'chains'"):
        make({"a": fitted}, summary="mean")
    with pytest.raises(TypeError, match="log_time=2; expected True or False"):
        make({"a": fitted}, log_time=2)


def gallery():
    rng = np.random.default_rng(0)
    seconds, scores = {}, {}
    for i, label in enumerate(["stepwise", "beam", "slice", "direct assignment"]):
        seconds[label] = (0.4 + i) * np.cumsum(rng.uniform(0.5, 1.5, (3, 40)), axis=1)
        rise = 1 - np.exp(-seconds[label] / (4 + 12 * i))
        scores[label] = -900 + 300 * rise + rng.normal(scale=12, size=(3, 40))
    return SamplerComparisonDisplay(seconds, scores, score_name="log joint (nats)")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("comparison", {}),
        ("comparison_median", {"summary": "median", "log_time": True}),
    ],
)
def test_pictures(name, options, tmp_path):
    with canvas(400, 300) as figure:
        gallery().plot(figure.subplots(), **options)
        assert_same_picture(figure, name, tmp_path)
