"""Cumulative probabilities and quantiles against densities and samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from extension.exponential import Exponential

from skihmm import HCRPHMM
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    CategoricalRegression,
    HCRPCategorical,
    NegativeBinomialRegression,
    ProductEmission,
    VonMises,
)

RNG = np.random.default_rng(0)
STATES = np.repeat([0, 1, 0, 1, 0, 1], 20)[:, None]
U = RNG.normal(size=(120, 1))
NUMBERS = np.hstack([4 * STATES, U - 3 * STATES]) + RNG.normal(size=(120, 2))
RATES = 3 + 20 * STATES
SYMBOLS = STATES + (U > 1)
P = 1 / (1 + np.exp(-3 * U * (1 - 2 * STATES)))
COUNTS = np.hstack([RNG.poisson(2 * np.exp(1 + U)), U, np.full_like(U, 2)])
TRIALS = np.hstack([RNG.binomial(12, P), U, np.full_like(U, 12)])
STUDENT = AutoregressiveNormal(0, input_features=[1], noise="student")
# Emission, data, and given columns of the next step.
REAL = {
    "diagonal gaussian": ("diagonal_gaussian", NUMBERS[:, :1], {}),
    "gaussian": ("gaussian", NUMBERS[:, :1], {}),
    "autoregression": (AutoregressiveNormal(2), NUMBERS[:, :1], {}),
    "regression": (STUDENT, np.hstack([NUMBERS[:, :1], U]), {"inputs": [0.7]}),
    "gamma": ("gamma", RNG.gamma(3, RATES), {}),
    "angles": (VonMises(360), np.degrees(RNG.vonmises(STATES, 4.0)), {}),
    "near": (VonMises(360, 1e-3), np.degrees(STATES + 0.03 * U), {}),
}
DISCRETE = {
    "poisson": ("poisson", RNG.poisson(RATES), {}),
    "bernoulli": ("bernoulli", RNG.binomial(1, P), {}),
    "negative binomial": ("negative_binomial", COUNTS[:, :1], {}),
    "logistic": (BernoulliRegression([1]), np.c_[TRIALS[:, 0] > 6, U], {"inputs": [0.7]}),
    "binomial": (BernoulliRegression([1], 2), TRIALS, {"inputs": [[0.7, 12]]}),
    "log-linear": (NegativeBinomialRegression([1], 2), COUNTS, {"inputs": [[0.7, 3]]}),
    "choice": (CategoricalRegression([1]), np.hstack([SYMBOLS, U]), {"inputs": [0.7]}),
    "symbols": ("hcrp", SYMBOLS, {}),
    "contexts": (
        HCRPCategorical(context_features=[1]),
        np.hstack([SYMBOLS, U > 0]).astype(int),
        {"contexts": [1]},
    ),
}
LEVELS = np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])


def fit(emission, X):
    return HCRPHMM(emission=emission, n_burnin=30, n_draws=3, random_state=0).fit(X)


@pytest.mark.parametrize("name", REAL)
def test_probabilities_between_quantiles_are_integrals_of_densities(name):
    emission, X, given = REAL[name]
    following = fit(emission, X).predict_next(X, **given)
    ends = following.quantile(LEVELS).ravel()
    at, weights = np.polynomial.legendre.leggauss(30)
    halves = np.diff(ends)[:, None] / 2
    y = ends[:-1, None] + halves * (1 + at)
    if name in ("angles", "near"):
        y = (y + 180) % 360 - 180
    log_probs = [following.log_prob([[value]]) for value in y.flat]
    found = (halves * weights * np.exp(log_probs).reshape(y.shape)).sum(axis=1)
    atol = {"near": 2e-5, "regression": 1e-6}.get(name, 1e-9)
    np.testing.assert_allclose(found, np.diff(LEVELS), atol=atol)
    found = [following.cdf([[value]])[0, 0] for value in ends]
    np.testing.assert_allclose(found, LEVELS, atol=1e-8)


@pytest.mark.parametrize("name", DISCRETE)
def test_cumulative_probabilities_are_sums(name):
    emission, X, given = DISCRETE[name]
    hmm = fit(emission, X)
    following = hmm.predict_next(X, **given)
    values = np.arange({"binomial": 13, "logistic": 2, "bernoulli": 2}.get(name, 60))
    values = getattr(hmm.emission_, "categories_", [values])[0]
    each = np.exp([following.log_prob([[value]])[0] for value in values])
    found = [following.cdf([[value]])[0, 0] for value in values]
    np.testing.assert_allclose(found, np.cumsum(each), atol=1e-5)
    # The first value that reaches the level, if it is a known symbol.
    places = np.searchsorted(found, LEVELS)
    expected = np.append(values, np.nan)[places]
    np.testing.assert_array_equal(following.quantile(LEVELS).ravel(), expected)


@pytest.mark.parametrize("emission", ["gaussian", "diagonal_gaussian", "gamma"])
def test_quantiles_have_the_unit_of_the_data(emission):
    """Real numbers from 2**53 on are whole, and no counts."""
    X = np.exp(0.3 * U) + STATES
    median = fit(emission, X).predict_next(X).quantile([0.5, 0.9])
    for unit in (2.0**64, 1e25):
        found = fit(emission, unit * X).predict_next(unit * X).quantile([0.5, 0.9])
        np.testing.assert_allclose(found / unit, median, rtol=0.02)


def test_levels_of_intervals_are_probabilities():
    following = fit("gaussian", NUMBERS).predict_next(NUMBERS)
    for level in (90, 0, 1.0):
        with pytest.raises(ValueError, match=f"level={level}; expected a probability"):
            following.interval(level)
    with pytest.raises(TypeError, match="level='90' is not a number"):
        following.interval("90")


@pytest.mark.filterwarnings("ignore:.*at the beginning or end of sequences:UserWarning")
@pytest.mark.statistical
@pytest.mark.parametrize("emission", ["gaussian", AutoregressiveNormal(1)])
@pytest.mark.parametrize("n_lost", [0, 2])
def test_quantiles_against_samples(emission, n_lost):
    """Margins of full covariances; later steps, and those after a gap, are drawn."""
    X = np.vstack([NUMBERS, np.full((n_lost, 2), np.nan)])
    following = fit(emission, X).predict_next(X, 3)
    drawn = following.sample(20_000, random_state=1)
    is_drawn = emission != "gaussian"
    atol = np.array([0.05 if n_lost else 0.015, 0.05, 0.05] if is_drawn else [0.015] * 3)
    for level, ends in zip(LEVELS, following.quantile(LEVELS), strict=True):
        assert (abs((drawn <= ends).mean(axis=0) - level) < atol[:, None]).all()
    y = drawn.mean(axis=0)
    y[1, 1] = np.nan
    error = abs(following.cdf(y) - (drawn <= y).mean(axis=0))
    assert np.argwhere(~(error < atol[:, None])).tolist() == [[1, 1]]  # it is missing
    lower, upper = following.interval(0.8)
    np.testing.assert_allclose([lower, upper], following.quantile([0.1, 0.9]))


def test_quantiles_of_mixed_data_have_their_types():
    frame = pd.DataFrame({"n": RNG.poisson(RATES)[:, 0], "x": RNG.exponential(RATES)[:, 0]})
    frame.insert(1, "word", np.where(STATES[:, 0], "very high", "low"))
    parts = [("n", "poisson", "n"), ("x", Exponential(), "x"), ("w", "hcrp", "word")]
    following = fit(ProductEmission(parts), frame).predict_next(frame, 2)
    median = following.quantile([[0.5]])[0, 0]
    assert [type(value) for value in median[1]] == [int, str, float]
    low = following.cdf(frame.head(2))[:, 1]
    np.testing.assert_allclose(low, following.proba("word")[:, 0])
    # An emission in Python that has no function, by samples.
    drawn = following.sample(20_000, random_state=1)[:, :, 2].astype(float)
    np.testing.assert_allclose((drawn <= median[:, 2]).mean(axis=0), 0.5, atol=0.05)
    for q in (0, [0.5, 1], np.nan):
        with pytest.raises(ValueError, match="expected probabilities between 0 and 1"):
            following.quantile(q)
