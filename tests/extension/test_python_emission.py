"""Emissions in pure Python: exact in every sampler, and what goes wrong is said."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from reference.conjugate import Waiting
from scipy.special import gammaln
from small_models import SAMPLERS, WAITING, Model, assert_caught

from skihmm import HCRPHMM
from skihmm.emissions import (
    ConjugateEmission,
    NormalInverseGamma,
    ProductEmission,
)
from skihmm.emissions._parts import preferred_jobs
from skihmm.posterior import draw_parameters
from skihmm.posterior._parameters import parameter_arrays

# As a third party's module: workers import it by its name.
HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("exponential", HERE / "exponential.py")
_module = importlib.util.module_from_spec(_spec)
sys.modules["exponential"] = _module
_spec.loader.exec_module(_module)
Exponential = _module.Exponential


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Workers find the module too."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))


SHORT = {"n_burnin": 5, "n_draws": 3, "thin": 1, "n_particles": 5, "random_state": 0}


@pytest.fixture
def data(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    states = np.repeat([0, 1, 0, 1], 15)
    X = rng.exponential(np.array([0.1, 30.0])[states])[:, None]
    X[7] = np.nan
    return X, states


@pytest.mark.statistical
def test_a_wrong_predictive_is_noticed():
    class Wrong(Exponential):
        def log_predictive(self, stats, y):
            return super().log_predictive(stats * [0.5, 1.0, 1.0], y)

    wrong = Model(WAITING.y, Waiting(1.5, 0.7, Wrong), WAITING.starts, 1.0, 2.0)
    wrong.__dict__["posterior"] = WAITING.posterior
    assert_caught(SAMPLERS["stepwise"].make_kernel, wrong, n_sweeps=200)


@pytest.mark.parametrize("sampler", ["auto", "beam", "stick_breaking_beam"])
def test_everything_that_models_can_do(sampler, data, tmp_path):
    X, states = data
    params = {**SHORT, "n_burnin": 20, "emission": Exponential()}
    hmm = HCRPHMM(sampler, **params).fit(X)
    assert ((hmm.labels_ == hmm.labels_[0]) == (states == 0)).mean() > 0.9
    assert np.isfinite(hmm.score(X))
    np.testing.assert_allclose(hmm.predict_proba(X).sum(axis=1), 1.0)
    new, _ = hmm.sample(50, random_state=0)
    assert (new > 0).all()
    assert np.isfinite(hmm.impute(X)).all()
    assert np.isfinite(hmm.impute(X, method="sample")).all()
    assert hmm.predict_next(X, 2).mean().shape == (2, 1)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(hmm)).score_samples(X), hmm.score_samples(X)
    )
    # Resumed bit for bit.
    path = tmp_path / "run.npz"
    HCRPHMM(sampler, **{**params, "n_draws": 1, "checkpoint": path}).fit(X)
    again = HCRPHMM(sampler, **{**params, "checkpoint": path}).fit(X)
    np.testing.assert_array_equal(again.draws_.lp, hmm.draws_.lp)


def test_as_a_part_of_mixed_data(data):
    X, _ = data
    emission = ProductEmission([("wait", Exponential(), [0]), ("size", NormalInverseGamma(), [1])])
    X = np.column_stack([X, X[::-1]])
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X)
    assert np.isfinite(hmm.score(X))
    assert hmm.get_params()["emission__wait__shape"] == 1.0
    assert preferred_jobs(hmm.emission_) == "processes"


def test_drawn_parameters_have_means_and_intervals(data):
    X, states = data
    hmm = HCRPHMM(emission=Exponential(), **{**SHORT, "n_burnin": 20}).fit(X)
    rows = [X[states == k] for k in (states[hmm.labels_ == label][0] for label in (0, 1))]
    n = np.array([np.isfinite(x).sum() for x in rows])
    # The posterior is Gamma(1 + n, mean of the column + sum).
    rates = (1 + n) / (np.nanmean(X) + [np.nansum(x) for x in rows])
    means = draw_parameters(hmm).emission_.parameters_
    np.testing.assert_allclose(means[:2, 0], rates, rtol=5 / np.sqrt(400 * n.min()))
    np.testing.assert_array_equal(hmm.emission_.parameters_, means)
    drawn = draw_parameters(hmm, method="sample", random_state=0).emission_.parameters_
    assert (drawn != means).all()
    table = parameter_arrays(hmm, 0.9)["parameters_"]
    assert table.shape == (3, hmm.n_states_, 1)
    assert (table[1, :2, 0] < rates).all()
    assert (rates < table[2, :2, 0]).all()
    np.testing.assert_allclose(hmm.summary().parameters["x0 rate"][:2, 0], rates, rtol=0.15)
    assert not hasattr(Exponential(), "parameters_")
    mixed = ProductEmission([("size", "gaussian", [0]), ("wait", Exponential(), [1])])
    hmm = HCRPHMM(emission=mixed, **SHORT).fit(np.hstack([X, X]))
    assert "x1 rate" in hmm.summary().parameters
    assert Exponential().state_parameters == {}

    # Numbers may have no names.
    mixed = ProductEmission([("size", "gaussian", [0]), ("wait", Unnamed(), [1])])
    hmm = HCRPHMM(emission=mixed, **SHORT).fit(np.hstack([X, X]))
    assert "wait parameter 0" in hmm.summary().parameters
    # Without it there is nothing to show.
    plain = type("Plain", (Exponential,), {"draw_parameters": ConjugateEmission.draw_parameters})
    hmm = HCRPHMM(emission=plain(), **SHORT).fit(X)
    assert not hasattr(hmm.emission_, "parameters_")
    assert "parameters_" not in parameter_arrays(hmm, 0.9)


class Unnamed(Exponential):
    """Without names of its parameters."""

    state_parameters = ConjugateEmission.state_parameters


class WithCdf(Exponential):
    """Its predictive distributions are Lomax distributions."""

    def predictive_cdf(self, stats, slots, inputs, is_conditional=False):
        labels = np.full(int(slots.max()) + 2, -1, dtype=np.int32)
        labels[1], labels[slots] = len(slots), np.arange(len(slots))
        numbers = stats.to_arrays(labels)["numbers"]
        shape, rate = self.shape + numbers[:, :1], self.rate_ + numbers[:, 1:]
        return lambda values: 1 - (1 + values[..., None, :] / rate) ** -shape


def test_diagnoses_say_whose_noise_was_not_checked(rng):
    X = np.column_stack([rng.exponential(size=(200, 2)), rng.normal(size=200)])
    for waits, expected in (
        (Exponential(), ["The noise of columns x0, x1 was not checked: Exponential has no "]),
        (WithCdf(), []),
    ):
        emission = ProductEmission([("waits", waits, [0, 1]), ("size", "gaussian", [2])])
        found = HCRPHMM(emission=emission, **SHORT).fit(X).diagnose()
        notes = [note for note in found.notes if "noise" in note]
        assert [note.removesuffix("predictive_cdf.") for note in notes] == expected
        assert all(note in str(found).replace("\n  ", " ") for note in notes)


def test_chains_are_processes_and_the_draws_the_same(data):
    X, _ = data
    assert preferred_jobs(Exponential()) == "processes"
    assert preferred_jobs(NormalInverseGamma()) == "threads"
    one, two, threads = (
        HCRPHMM(emission=Exponential(), n_chains=2, n_jobs=n_jobs, **SHORT) for n_jobs in (1, 2, 2)
    )
    one.fit(X)
    # Processes of earlier tests do not have the path of the module.
    get_reusable_executor().shutdown(wait=True)
    two.fit(X)
    with joblib.parallel_config("threading"):
        threads.fit(X)
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)
    np.testing.assert_array_equal(one.draws_.lp, threads.draws_.lp)


FUNCTIONS = ["empty", "add", "remove", "log_predictive", "log_marginal"]


@pytest.mark.parametrize("name", [*FUNCTIONS, "draw_parameters", "log_density", "emit"])
@pytest.mark.parametrize("calls", [0, 7])
def test_an_exception_is_that_of_fit(name, calls, data):
    X, _ = data
    sampler = "stick_breaking" if name in ("draw_parameters", "log_density") else "auto"
    emission = Exponential()
    hmm = HCRPHMM(sampler, emission, **SHORT).fit(X)
    left = [calls]

    def fail(self, *args):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError(f"in {name}")
        return getattr(Exponential, name)(self, *args)

    hmm.emission = type("Failing", (Exponential,), {name: fail})()
    fitted = []

    def use():
        for _ in range(9):
            fitted.append(hmm.draws_)
            hmm.fit(X)
            if name == "emit":
                hmm.sample(9)

    with pytest.raises(RuntimeError, match=f"in {name}"):
        use()
    if name != "emit":
        assert hmm.draws_ is fitted[-1]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("a", TypeError, "expected an array of"),
        (np.full(2, np.nan), ValueError, "expected finite numbers"),
        (np.full(99, 1.0), ValueError, r"shape \(99,\); expected"),
        (np.ones((2, 2)), ValueError, r"shape \(2, 2\)"),
        (None, TypeError, "returned None"),
    ],
)
def test_what_is_no_result(name, value, error, message, data):
    if name == "remove" and value is None:
        pytest.skip("None is an answer there")
    if name == "empty" and np.shape(value) == (99,):
        pytest.skip("any number of numbers will do, but not for add")
    wrong = type("Wrong", (Exponential,), {name: lambda self, *args: value})
    X = data[0][:1] if name == "log_marginal" else data[0]
    with pytest.raises((error, TypeError, ValueError), match=f"Wrong.{name} returned"):
        HCRPHMM(emission=wrong(), **SHORT).fit(X)
    assert message


class Least(ConjugateEmission):
    """Only what has to be written."""

    def empty(self):
        return [1.0, 1.0]

    def add(self, stats, y):
        stats += [1.0, y[0]]
        return stats

    def log_predictive(self, stats, y):
        return Exponential(1.0, 1.0).fit([[1.0]]).log_predictive(stats - [1, 1], y)

    def log_marginal(self, stats):
        return Exponential(1.0, 1.0).fit([[1.0]]).log_marginal(stats - [1, 1])


def test_the_least_that_has_to_be_written(data):
    X, _ = data
    hmm = HCRPHMM(emission=Least(), **SHORT).fit(X)
    same = HCRPHMM(emission=Exponential(1.0, 1.0), **SHORT).fit(X)
    np.testing.assert_allclose(hmm.draws_.lp, same.draws_.lp)
    np.testing.assert_allclose(hmm.score(X), same.score(X))
    for call, name in (
        (lambda: hmm.sample(2), "draw_parameters"),
        (lambda: hmm.impute(X), "mean"),
        (lambda: hmm.impute(X, method="sample"), "draw_parameters"),
    ):
        with pytest.raises(NotImplementedError, match=f"Least has no {name}"):
            call()
    with pytest.raises(TypeError, match="Least does not support"):
        HCRPHMM("stick_breaking", Least(), **SHORT).fit(X)


def test_functions_have_to_be_written():
    with pytest.raises(TypeError, match="abstract"):
        ConjugateEmission()


class PartialRows(ConjugateEmission):
    """Rows of which something is missing are observations."""

    takes_partial_rows = True

    def learn(self, X):
        self.n_ = X.shape[1]

    def empty(self):
        return np.ones(2 * self.n_)

    def add(self, stats, y):
        seen = ~np.isnan(y)
        return stats + np.append(seen, np.where(seen, y, 0.0))

    def log_predictive(self, stats, y):
        shape, rate = stats[:, : self.n_], stats[:, self.n_ :]
        return np.nansum(np.log(shape / rate) - (shape + 1) * np.log1p(y / rate), axis=1)

    def log_marginal(self, stats):
        shape, rate = stats[:, : self.n_], stats[:, self.n_ :]
        return (gammaln(shape) - shape * np.log(rate)).sum(axis=1)


def test_rows_of_which_something_is_missing(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.exponential(size=(30, 2))
    X[rng.random(X.shape) < 0.3] = np.nan
    hmm = HCRPHMM(emission=PartialRows(), **SHORT).fit(X)
    scores = hmm.score_samples(X)
    gone = np.isnan(X).all(axis=1)
    np.testing.assert_array_equal(scores == 0.0, gone)
    whole = HCRPHMM(emission=Exponential(1.0, 1.0), **SHORT).fit(X)
    np.testing.assert_array_equal(whole.score_samples(X) == 0.0, np.isnan(X).any(axis=1))


def test_integers():
    class Counts(Exponential):
        emits_integers = True

        def emit(self, parameters, generator):
            return generator.poisson(parameters)

    hmm = HCRPHMM(emission=Counts(), **SHORT).fit([[1.0], [3.0], [9.0]])
    assert hmm.sample(4)[0].dtype == np.int64


def test_data_are_checked_as_always():
    for X, message in (
        ([[1.0], [-1.0]], r"Negative values in data: X\[1, 0\] = -1"),
        ([[1.0], [np.inf]], "infinity"),
        ([["a"], ["b"]], "no number"),
    ):
        with pytest.raises(ValueError, match=message):
            HCRPHMM(emission=Exponential(), **SHORT).fit(X)
