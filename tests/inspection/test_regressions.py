"""RegressionDisplay: coefficients of inputs, and means as functions of one."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from skihmm import HCRPHMM
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    CategoricalRegression,
    NegativeBinomialRegression,
)
from skihmm.inspection import EmissionDisplay, RegressionDisplay
from skihmm.inspection._style import state_colour
from skihmm.posterior._parameters import parameter_arrays

RNG = np.random.default_rng(0)
INPUTS = RNG.normal([3.0, 0.0], [2.0, 1.0], size=(150, 2))


def fit(emission, *columns):
    X = pd.DataFrame(np.column_stack(columns), columns=["y", "a", "b", "c"][: len(columns)])
    return HCRPHMM(emission=emission, n_burnin=10, n_draws=3, random_state=0).fit(X)


def test_psychometric_curve():
    choice = RNG.random(150) < 1 / (1 + np.exp(3 - INPUTS[:, 0]))
    hmm = fit(BernoulliRegression(["a", "b"]), choice, *INPUTS.T)
    display = RegressionDisplay.from_estimator(hmm, feature="a")
    name, values, means = display.curve
    assert name == display.ax_.get_xlabel() == "a"
    assert display.ax_.get_ylabel() == "P(y)"
    at = [0, 50, 100]
    expected = display.intercepts[0] + (
        display.coefficients[0] @ [values, np.full(101, INPUTS[:, 1].mean())]
    )
    np.testing.assert_allclose(means[0, at], 1 / (1 + np.exp(-expected[at])), atol=0.03)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), means[0])
    assert display.ax_.get_title() == f"at b = {INPUTS[:, 1].mean():.3g}"
    emissions = EmissionDisplay.from_estimator(hmm)
    a, b = INPUTS.mean(axis=0)
    assert emissions.axes_[0].get_title() == f"at a = {a:.3g}, b = {b:.3g}"


@pytest.mark.parametrize(
    ("emission", "extra"),
    [
        (AutoregressiveNormal(1, input_features=["a", "b"]), ()),
        (NegativeBinomialRegression(["a", "b"], exposure="c"), (np.ones(150),)),
        (CategoricalRegression(["a", "b"]), ()),
    ],
)
def test_coefficients_and_curves(emission, extra):
    y = RNG.integers(3, size=150)
    hmm = fit(emission, y, *INPUTS.T, *extra)
    display = RegressionDisplay.from_estimator(hmm)
    assert display.inputs == ["a", "b"]
    # The numbers of the table, over all draws and their paths.
    table = parameter_arrays(hmm, 0.95)
    shown = [display.coefficients, *display.intervals]
    np.testing.assert_allclose(shown, table["coefficients_"][:, :, 0, -2:], 1e-12)
    shown = [display.intercepts, *display.intercept_intervals]
    np.testing.assert_allclose(shown, table["intercepts_"][:, :, 0], 1e-12)
    bars = display.lines_[0].lines[2][0].get_segments()
    np.testing.assert_allclose([b[:, 1] for b in bars], display.intervals[:, 0].T)
    curve = RegressionDisplay.from_estimator(hmm, feature=1).curve[2]
    assert curve.shape == (len(display.coefficients), 101)
    assert np.isfinite(curve).all()
    display = RegressionDisplay.from_estimator(hmm, feature=1)
    text = display.ax_.get_legend().get_texts()[0].get_text()
    low, high = display.intercept_intervals[:, 0]
    assert re.fullmatch(r"0: -?[\d.]+ \[-?[\d.]+, -?[\d.]+\]", text)
    shown = [float(number) for number in re.findall(r"-?\d+\.?\d*", text)[1:]]
    np.testing.assert_allclose(shown, [display.intercepts[0], low, high], atol=(high - low) / 10)
    if isinstance(emission, CategoricalRegression):
        assert display.ax_.get_ylabel() == f"P(y = {hmm.emission_.categories_[0][0]})"
        assert display.band is None
        return
    assert display.ax_.get_ylabel() == "mean of y"
    # The slope of the band is uncertain far from the mean.
    low, high = display.band
    assert (low <= high).all()
    assert ((low <= curve) & (curve <= high)).mean() > 0.9


@pytest.mark.parametrize("noise", ["normal", "student"])
def test_bars_are_standard_errors(noise):
    """They are those of least squares, in one state."""
    rng = np.random.default_rng(0)
    x, e = rng.normal(3.0, 2.0, size=(400, 2)), 0.5 * rng.normal(size=400)
    emission = AutoregressiveNormal(0, input_features=["a", "b"], noise=noise)
    display = RegressionDisplay.from_estimator(fit(emission, x @ [2, -1] + e, *x.T))
    widths = np.diff(display.intervals, axis=0)[0]
    np.testing.assert_allclose(widths, [[2 * 1.96 * 0.0125] * 2], rtol=0.25)


def test_what_has_no_regressions(fitted):
    with pytest.raises(ValueError, match="expected an emission with input_features"):
        RegressionDisplay.from_estimator(fitted)
    hmm = fit(BernoulliRegression(["a"]), INPUTS[:, 1] > 0, INPUTS[:, 0])
    with pytest.raises(ValueError, match="output=1; expected 0 to 0"):
        RegressionDisplay.from_estimator(hmm, output=1)
    with pytest.raises(ValueError, match="feature='z'; expected one of"):
        RegressionDisplay.from_estimator(hmm, feature="z")


def test_states_are_chosen_and_ordered_by_occupancy():
    rng = np.random.default_rng(0)
    occupancy = rng.permutation(12) / 66
    display = RegressionDisplay(
        ["a", "b"], rng.normal(size=(12, 2)), None, output="y", occupancy=occupancy
    ).plot()
    assert display.states_.tolist() == np.argsort(-occupancy)[:8].tolist()
    assert display.ax_.get_legend().get_title().get_text() == "8 of 12 states"
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == [str(k) for k in display.states_]
    display.plot(states=[11, 3])
    assert display.states_.tolist() == [11, 3]
    # Colours are the colours of the states in all displays.
    colours = [line.lines[0].get_color() for line in display.lines_]
    assert colours == [state_colour(11), state_colour(3)]
    np.testing.assert_array_equal(display.lines_[1].lines[0].get_ydata(), display.coefficients[3])
    with pytest.raises(ValueError, match=r"states=\[12\]; expected a list of states, from 0 to 11"):
        display.plot(states=[12])


@pytest.mark.parametrize("width", [4, 14])
def test_long_names_do_not_overlap(width, pyplot):
    names = ["stimulus", "previous choice", "previous reward"]
    display = RegressionDisplay(names, np.ones((2, 3)), None, output="y")
    figure, ax = pyplot.subplots(figsize=(width, 4), layout="constrained")
    display.plot(ax)
    figure.canvas.draw()
    labels = ax.get_xticklabels()
    assert [label.get_text() for label in labels] == names
    assert {label.get_rotation() for label in labels} == {25.0 if width == 4 else 0.0}
    if width == 14:
        boxes = [label.get_window_extent() for label in labels]
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_ends_of_intercepts_have_digits_that_differ():
    ends = np.array([[20.973, -0.00012, 110.0, 3.0], [21.027, 0.00034, 152.0, 3.0]])
    display = RegressionDisplay(
        ["x"],
        np.ones((4, 1)),
        None,
        output="y",
        intercepts=ends.mean(axis=0),
        intercept_intervals=ends,
    ).plot()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "0: 21.000 [20.973, 21.027]",
        "1: 0.00011 [-0.00012, 0.00034]",
        "2: 131 [110, 152]",
        "3: 3.00 [3.00, 3.00]",
    ]


def test_states_of_an_estimator():
    hmm = fit(BernoulliRegression(["a"]), INPUTS[:, 1] > 0, INPUTS[:, 0])
    display = RegressionDisplay.from_estimator(hmm, states=[0])
    assert display.states_.tolist() == [0]
    np.testing.assert_allclose(
        display.occupancy, np.bincount(hmm.labels_, minlength=len(display.occupancy)) / 150
    )
