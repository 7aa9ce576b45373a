"""Pseudo-residuals: independent and normal under the model, and what they leave out."""

from __future__ import annotations

import numpy as np
import pytest
from emissions.test_quantiles import DISCRETE, NUMBERS, REAL, RNG, SYMBOLS, fit
from extension.exponential import Exponential
from scipy.stats import kstest

from skihmm import HCRPHMM
from skihmm._using import residuals as _residuals
from skihmm._using.decoding import frozen_model
from skihmm.emissions import AutoregressiveNormal, ProductEmission
from skihmm.transitions import HCRPTransitions

MODELS = {
    **{name: (emission, X) for name, (emission, X, _) in {**REAL, **DISCRETE}.items()},
    "two columns": ("gaussian", NUMBERS),
    "autoregression of two": (AutoregressiveNormal(1), NUMBERS),
    "no function": (Exponential(), np.exp(NUMBERS)),
    "mixed": (
        ProductEmission([("s", "hcrp", [1]), ("x", AutoregressiveNormal(1), [0, 2])]),
        np.hstack([NUMBERS[:, :1], SYMBOLS, NUMBERS[:, 1:]]),
    ),
}
N_NEW = 1500


def following(hmm, X, n_steps):
    """Data with a path that a fit of one draw predicts, and given columns as they are."""
    given = hmm._fitted.given
    columns = X[np.arange(n_steps) % len(X)][:, given.columns]
    names = ("contexts", "inputs")
    parts = (columns[:, given.only_contexts], columns[:, given.inputs])
    known = {name: part for name, part in zip(names, parts, strict=True) if part.size}
    drawn = hmm.predict_next(X, n_steps, **known).sample(1, random_state=0)[0]
    new = np.empty((n_steps, X.shape[1]), dtype=np.result_type(X, drawn))
    new[:, given.columns], new[:, hmm._fitted.observed] = columns, drawn
    return np.vstack([X, new])


def misfits(hmm, X):
    """Columns whose residuals after the data of the fit are not as under the model."""
    residuals = hmm.residuals(following(hmm, X, N_NEW))[len(X) :]
    assert np.isfinite(residuals).all()
    p = np.array([kstest(column, "norm").pvalue for column in residuals.T])
    lagged = (residuals[1:] * residuals[:-1]).mean(axis=0) * np.sqrt(N_NEW)
    return (p < 1e-3) | (abs(lagged) > 3.5)


def one_draw(name):
    emission, X = MODELS[name]
    hmm = HCRPHMM(emission=emission, n_burnin=30, n_draws=1, random_state=0)
    return hmm.fit(X), X


@pytest.mark.parametrize("name", MODELS)
def test_residuals_are_independent_and_normal_under_the_model(name):
    assert not misfits(*one_draw(name)).any()


class _Replaced:
    """A frozen model whose probabilities of states are filtered, not predicted."""

    def __init__(self, *arguments):
        self._model = frozen_model(*arguments)

    def look_ahead(self):
        return self._model.filter(with_probs=True)[1]

    def __getattr__(self, name):
        return getattr(self._model, name)


@pytest.mark.parametrize("emission", ["gaussian", "poisson", "hcrp"])
def test_probabilities_after_the_row_are_noticed(emission, monkeypatch):
    """Of states that overlap and change often; of others they are nearly the same."""
    states = np.cumsum(RNG.random((600, 1)) < 0.25, axis=0) % 2
    numbers = 2.5 * states + RNG.normal(size=(600, 1))
    counts = RNG.poisson(2 + 6 * states)
    symbols = RNG.binomial(3, 0.25 + 0.5 * states)
    X = {"gaussian": numbers, "poisson": counts, "hcrp": symbols}[emission]
    hmm = HCRPHMM(emission=emission, n_burnin=30, n_draws=1, random_state=0).fit(X)
    assert not misfits(hmm, X).any()
    monkeypatch.setattr(_residuals, "frozen_model", _Replaced)
    assert misfits(hmm, X).all()


@pytest.mark.parametrize("name", ["poisson", "binomial", "symbols"])
def test_discrete_values_that_are_not_spread_are_noticed(name, monkeypatch):
    hmm, X = one_draw(name)

    ends_of = _residuals.ends_of
    monkeypatch.setattr(_residuals, "ends_of", lambda *given: ends_of(*given)[[1, 1]])
    assert misfits(hmm, X).all()


@pytest.mark.parametrize("transitions", ["hcrp", HCRPTransitions(expected_dwell=8)])
def test_states_before_a_row_are_those_of_the_rows_before_without_it(transitions):
    hmm = HCRPHMM(emission="gaussian", transitions=transitions, n_burnin=20, n_draws=2).fit(NUMBERS)
    sequences = hmm._fitted.encode(NUMBERS[:90], lengths=[50, 40])
    ahead = frozen_model(hmm.draws_[0, 0], sequences, hmm.emission_).look_ahead()
    for t, start in ((0, 0), (7, 0), (50, 50), (80, 50)):
        X = NUMBERS[start : t + 1].copy()
        X[-1] = np.nan
        model = frozen_model(hmm.draws_[0, 0], hmm._fitted.encode(X), hmm.emission_)
        np.testing.assert_allclose(ahead[t], model.filter(True)[1][-1], atol=1e-12)


def test_missing_values_and_repeats():
    X = np.vstack([NUMBERS, NUMBERS])
    X[5, 0] = X[9, 1] = X[20] = np.nan
    hmm = fit("gaussian", X)
    residuals = hmm.residuals(X, lengths=[120, 120])
    np.testing.assert_array_equal(np.isnan(residuals), np.isnan(X))
    np.testing.assert_array_equal(residuals[120:], hmm.residuals(X[120:]))
    assert np.nanstd(residuals) < 1.2
    X[30] = 1e9, -1e9
    np.testing.assert_array_equal(hmm.residuals(X)[30], [8, -8])
    hmm = fit("hcrp", SYMBOLS)
    first, again = hmm.residuals(SYMBOLS), hmm.residuals(SYMBOLS)
    np.testing.assert_array_equal(first, again)
    assert (first != hmm.residuals(SYMBOLS, random_state=1)).all()


def test_rounded_values_are_spread_over_their_step():
    X = np.rint(NUMBERS)
    residuals = fit("gaussian", X).residuals(X)
    assert min(kstest(column, "norm").pvalue for column in residuals.T) > 0.01
    assert len(np.unique(residuals)) == residuals.size


@pytest.mark.parametrize("emission", ["poisson", "negative_binomial"])
def test_counts_are_evaluated_once_a_value(emission):
    """What repeats has the function's values, in the columns' own distributions."""
    X = np.c_[RNG.poisson(4, 200), RNG.poisson(30, 200)]
    hmm = fit(emission, X)
    model = frozen_model(hmm.draws_[0, 0], hmm._fitted.encode(X), hmm.emission_)
    cdf = hmm.emission_.predictive_cdf(model.emission, model._slots(), X[:1, 2:])
    sizes = []

    def counted(values):
        sizes.append(len(values))
        return cdf(values)

    ends = np.array([X - 1.0, X])
    np.testing.assert_allclose(_residuals.of_distinct(counted)(ends), cdf(ends), 1e-12)
    assert sizes == [len(np.unique(ends[..., 1]))]
