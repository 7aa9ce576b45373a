"""RegressionDisplay: coefficients of inputs, and means as functions of one."""

from __future__ import annotations

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
    assert display.ax_.get_ylabel() == "mean of y"
    at = [0, 50, 100]
    expected = hmm.emission_.intercepts_[0, 0] + (
        hmm.emission_.coefficients_[0, 0] @ [values, np.full(101, INPUTS[:, 1].mean())]
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
    assert display.names == ["a", "b"]
    np.testing.assert_array_equal(display.coefficients, hmm.emission_.coefficients_[:, 0, -2:])
    assert display.deviations.shape == display.coefficients.shape
    curve = RegressionDisplay.from_estimator(hmm, feature=1).curve[2]
    assert curve.shape == (len(display.coefficients), 101)
    assert np.isfinite(curve).all()
    display = RegressionDisplay.from_estimator(hmm, feature=1)
    text = display.ax_.get_legend().get_texts()[0].get_text()
    assert text.startswith(f"state 0, intercept {display.intercepts[0]:.3g} \u00b1 ")
    if isinstance(emission, CategoricalRegression):
        assert display.band is None
        return
    # The slope of the band is uncertain far from the mean.
    low, high = display.band
    assert (low <= high).all()
    assert ((low <= curve) & (curve <= high)).mean() > 0.9


@pytest.mark.parametrize("noise", ["normal", "student"])
def test_bars_are_standard_errors(noise):
    """They are those of least squares, in one state."""
    x, e = RNG.normal(3.0, 2.0, size=(400, 2)), 0.5 * RNG.normal(size=400)
    emission = AutoregressiveNormal(0, input_features=["a", "b"], noise=noise)
    display = RegressionDisplay.from_estimator(fit(emission, x @ [2, -1] + e, *x.T))
    np.testing.assert_allclose(display.deviations, [[0.0125] * 2], rtol=0.25)


def test_what_has_no_regressions(fitted):
    with pytest.raises(ValueError, match="expected an emission with input_features"):
        RegressionDisplay.from_estimator(fitted)
    hmm = fit(BernoulliRegression(["a"]), INPUTS[:, 1] > 0, INPUTS[:, 0])
    with pytest.raises(ValueError, match="output=1; expected 0 to 0"):
        RegressionDisplay.from_estimator(hmm, output=1)
    with pytest.raises(ValueError, match="feature='z'; expected one of"):
        RegressionDisplay.from_estimator(hmm, feature="z")
