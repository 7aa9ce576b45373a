"""Regressions on given columns: what they are, and their way from X to the families."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from fitting.test_reproducibility import assert_goes_on, assert_same
from numpy.testing import assert_allclose, assert_array_equal
from reference.conjugate import Autoregression
from scipy.integrate import trapezoid
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from small_models import Model, log_row

from skihmm import HCRPHMM
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import AutoregressiveNormal, ProductEmission
from skihmm.emissions._encoding import encode
from skihmm.emissions._inputs import WithInputs
from skihmm.metrics import ParticleFilterScorer
from skihmm.posterior import draw_parameters
from skihmm.samplers import StepwiseGibbs
from skihmm.testing import check_emission
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 30, "n_draws": 5, "random_state": 0, "transitions": "hcrp"}
# Equal up to rounding, chains of single steps have the same states; in blocks they part.
SINGLE = {"sampler": StepwiseGibbs(split_merge_rate=2), "init": "single"}
FIXED = {"mean": 0.0, "strength": 0.5, "scale": 1.0}
SLOPES, LEVELS, NOISE = np.array([[2.0, 0.0], [-2.0, 0.1]]), np.array([1.0, -1.0]), 0.3
# The first slot of a state.
FIRST = 2


def regimes(n=240, seed=0):
    """Columns input, value, input, in regimes of 30 steps, and their states."""
    rng = np.random.default_rng(seed)
    states = np.arange(n) // 30 % 2
    inputs = rng.normal(size=(n, 2)) * [1.0, 10.0] + [5.0, 100.0]
    means = LEVELS[states] + (SLOPES[states] * inputs).sum(axis=1)
    return np.column_stack([inputs[:, 0], means + NOISE * rng.normal(size=n), inputs[:, 1]]), states


def fit(X, order=0, emission=None, **options):
    if emission is None:
        emission = AutoregressiveNormal(order, input_features=[0, 2])
    return HCRPHMM(emission=emission, **SHORT | options).fit(X)


@pytest.fixture(scope="module")
def data():
    return regimes()[0]


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data)


# -- the model ------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2])
def test_the_row_before_as_a_given_input(d):
    """Order one, and order zero with the row before as given inputs."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(30, d)).cumsum(axis=0)
    centre, deviation = X.mean(axis=0), X.std(axis=0)
    mean = tuple(map(tuple, rng.normal(size=(d, d + 1))))
    rest = (5.0, tuple(map(tuple, np.eye(d) + 0.2)))
    units = tuple(centre), tuple(deviation)
    one = Model(
        tuple(map(tuple, np.hstack([X[1:], X[:-1]]))),
        Autoregression(1, *units, mean, (0.7, 0.4), *rest),
    )
    other = Model(
        tuple(map(tuple, np.hstack([X[1:], (X[:-1] - centre) / deviation]))),
        Autoregression(0, *units, mean, (0.7,) * d + (0.4,), *rest, given=d),
    )
    labels = np.arange(29) // 4 % 3
    states = [model.state(0, labels) for model in (one, other)]
    numbers = [state.to_arrays()["emission"]["numbers"] for state in states]
    assert_allclose(numbers[0], numbers[1], rtol=1e-12, atol=1e-12)
    assert_allclose(states[0].log_joint(), states[1].log_joint(), rtol=1e-12)
    for t in range(29):
        assert_allclose(log_row(states[0], t), log_row(states[1], t), rtol=1e-11)


@pytest.mark.parametrize("order", [0, 1])
def test_recovery(order, data):
    hmm = fit(data, order, n_burnin=100)
    emission = hmm.emission_
    k = np.flatnonzero(np.bincount(hmm.labels_) > 12)
    k = k[np.argsort(emission.coefficients_[k, 0, order])[::-1]]
    assert_allclose(emission.coefficients_[k, 0, order:], SLOPES, atol=0.1)
    assert abs(emission.coefficients_[k, 0, :order]).max(initial=0.0) < 0.05
    at_means = emission.intercepts_[k, 0] + SLOPES @ [5.0, 100.0]
    assert_allclose(at_means, LEVELS + SLOPES @ [5.0, 100.0], atol=1.5)
    assert_allclose(np.sqrt(emission.covariances_[k, 0, 0]), NOISE, atol=0.1)
    # One strength of all inputs.
    assert emission.strength_.shape == (order + 2,)
    drawn = hmm.draws_.hyperparameters
    assert drawn["emission_strength"].shape == (1, 5, order + 2)
    assert drawn["emission_mean"].shape == (1, 5, 1, order + 3)
    assert emission.dof_ == (3.0 if order == 0 else 21.0)
    assert emission.input_means_ == pytest.approx(data[:, [0, 2]].mean(axis=0))


def test_a_switching_regression(global_random_seed):
    """Two regimes, with the slopes that knowing them would give; an idle input."""
    rng = np.random.default_rng(global_random_seed)
    states = np.arange(600) // 50 % 2
    inputs = rng.normal(size=(600, 2))
    noise = np.array([0.46, 0.82])[states] * rng.normal(size=600)
    y = np.array([0.9, -0.45])[states] * inputs[:, 0] + noise
    emission = AutoregressiveNormal(0, input_features=[0, 1])
    hmm = HCRPHMM(emission=emission, n_burnin=300, n_draws=100, random_state=0)
    hmm.fit(np.column_stack([inputs, y]))
    sizes = [np.bincount(path, minlength=9) for path in hmm.draws_.states[0]]
    assert 1.9 < np.mean([(size > 6).sum() for size in sizes]) < 3.1
    assert adjusted_rand_score(states, hmm.labels_) > 0.85
    for k in range(2):
        own = states == k
        x = np.column_stack([inputs[own], np.ones(own.sum())])
        slopes = np.linalg.lstsq(x, y[own], rcond=None)[0][:2]
        found = hmm.emission_.coefficients_[np.bincount(hmm.labels_[own]).argmax(), 0]
        assert_allclose(found, slopes, atol=0.05)


def test_the_scale_is_that_of_residuals(data):
    """The scale is that after one regression on the inputs, which explain the column."""
    y = data[:, [0]] * 3.0 + 0.01 * data[:, [1]]
    emission = AutoregressiveNormal(0, input_features=[0])
    with_inputs = fit(np.hstack([data[:, [0]], y]), emission=emission).emission_
    without = fit(y, emission=AutoregressiveNormal(0)).emission_
    assert with_inputs.scale_[0, 0] < 0.01 * without.scale_[0, 0] / 20


def test_units_of_inputs_do_not_matter(data):
    other = data.copy()
    other[:, 0] = 3e5 * data[:, 0] - 7e6
    other[:, 2] = 1e-4 * data[:, 2] + 0.3
    one, two = (fit(X, 1, **SINGLE) for X in (data, other))
    assert_array_equal(one.draws_.states, two.draws_.states)
    assert_allclose(one.score_samples(data), two.score_samples(other), atol=1e-9)
    ratio = one.emission_.coefficients_[..., 1:] / two.emission_.coefficients_[..., 1:]
    assert_allclose(ratio, np.broadcast_to([3e5, 1e-4], ratio.shape), rtol=1e-6)
    following = [
        hmm.predict_next(X, 2, inputs=X[:2, [0, 2]]).mean()
        for hmm, X in ((one, data), (two, other))
    ]
    assert_allclose(following[0], following[1], rtol=1e-6)


def test_fixed_priors(data):
    mean = [[0.5, 2.0, -0.01, 1.0]]
    params = {"mean": mean, "strength": [1.0, 2.0, 3.0, 4.0], "scale": 1.0}
    emission = AutoregressiveNormal(1, input_features=[0, 2], **params)
    hmm = fit(data, emission=emission)
    assert_allclose(hmm.emission_.mean_, mean, rtol=1e-10)
    assert_array_equal(hmm.emission_.strength_, params["strength"])
    assert "emission_strength" not in hmm.draws_.hyperparameters
    for wrong in ({"strength": [1.0, 1.0]}, {"mean": [[0.0, 0.0]]}):
        emission = AutoregressiveNormal(1, input_features=[0, 2], **wrong)
        with pytest.raises(ValueError, match=r"has the shape .* input"):
            fit(data, emission=emission)


def test_without_inputs_it_is_the_autoregression(data):
    one = fit(data, emission=AutoregressiveNormal(0))
    other = fit(data, emission=AutoregressiveNormal(0, input_features=[]))
    assert_same(one, other)
    column = data[:, [1]]
    assert_same(fit(column, emission=AutoregressiveNormal(0)), fit(column, emission="regression"))


@pytest.mark.parametrize("order", [0, 2])
def test_it_keeps_the_laws_of_emissions(order, data):
    check_emission(AutoregressiveNormal(order, input_features=[0, 2]), data[:40])
    shared = AutoregressiveNormal(order, input_features=[2])
    parts = [("x", shared, [0]), ("y", shared, [1])]
    check_emission(ProductEmission(parts), data[:40])


# -- scores against the definition, and errors that it notices -------------------------


def assert_rows_by_definition(train, test):
    """Rows of a test set after those of a fit, all of one state, one after the other."""
    mean, strength, dof, scale = [0.5, 0.0, 0.0, 0.0], 2.0, 6.0, 1.5
    emission = AutoregressiveNormal(1, 0.5, strength, dof, [[scale]], input_features=[0, 2])
    emission = emission.with_given(train[:, [0, 2]]).fit(train[:, [1]])
    deviation = train[:, 1].std()
    law = Autoregression(
        1,
        (train[:, 1].mean(),),
        (deviation,),
        (tuple(mean),),
        (strength,) * 4,
        dof,
        ((scale / deviation**2,),),
        given=2,
    )

    def rows(X):
        inputs = (X - train.mean(axis=0)) / train.std(axis=0)
        return np.column_stack([X[:, 1], np.append(np.nan, X[:-1, 1]), inputs[:, [0, 2]]])

    one = np.zeros(1, dtype=np.intp)
    codes = [encode(emission, X[:, [1]], one, given=X[:, [0, 2]]) for X in (train, test)]
    stats = emission.make_stats(np.vstack(codes))
    state = ChainState(np.array([0, len(train)]), Franchise(), stats, RandomStream(0))
    state.start_from(np.repeat([0, 1], [len(train), len(test)]))
    for t, row in enumerate(rows(test)):
        found = log_row(state, len(train) + t)[FIRST]
        assert found == pytest.approx(law.log_predictive(rows(train), row), abs=1e-9)


def assert_steps_are_scored_alone(hmm, X):
    """Sequences of one step: their scores do not depend on what else is scored."""
    whole = hmm.score_samples(X, lengths=[1] * len(X))
    for part in (slice(0, 3), slice(3, 10)):
        n = part.stop - part.start
        found = hmm.score_samples(X[part], lengths=[1] * n)
        assert_allclose(found, whole[part], rtol=1e-9)


def test_scores_by_the_definition(data, fitted):
    assert_rows_by_definition(data[:60], data[60:80])
    assert_steps_are_scored_alone(fitted, data[100:110])


def of_the_row_before(self, columns):
    encoded = (columns - self.input_means_) / self.input_scales_
    return np.vstack([encoded[:1], encoded[:-1]])


def by_their_own_units(self, columns):
    scales = np.maximum(columns.std(axis=0), 1e-3)
    return (columns - columns.mean(axis=0)) / scales


@pytest.mark.parametrize("error", [of_the_row_before, by_their_own_units])
def test_planted_errors_are_caught(error, data, fitted, monkeypatch):
    monkeypatch.setattr(WithInputs, "encode_given", error)
    with pytest.raises(AssertionError):
        assert_rows_by_definition(data[:60], data[60:80])
    with pytest.raises(AssertionError):
        assert_steps_are_scored_alone(fitted, data[100:110])


@pytest.mark.filterwarnings("ignore:.*lack an input")
def test_steps_that_lack_something_have_no_factor(data):
    X = data.copy()
    X[20, 0] = X[50, 2] = X[70, 1] = np.nan
    with pytest.warns(UserWarning, match="2 of 240 steps lack an input"):
        hmm = fit(X, 1)
    # The value after a missing one lacks its earlier row.
    expected = [0, 20, 50, 70, 71]
    with pytest.warns(UserWarning, match=r"2 of 240 steps lack an input \(0, 2\)"):
        scores = hmm.score_samples(X)
    assert_array_equal(np.flatnonzero(scores == 0.0), expected)
    # A row without any observation is a gap of the user's.
    gaps = X.copy()
    gaps[[20, 50], 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hmm.score_samples(gaps)
    found = hmm._fitted.model(hmm._fitted.encode(X)).filter()[0]
    assert_array_equal(np.flatnonzero(abs(found) < 1e-12), expected)
    for method in ("expectation", "sample"):
        filled = hmm.impute(X, method=method, random_state=0)
        assert_array_equal(np.argwhere(np.isnan(filled)), [[20, 0], [50, 2]])
        assert abs(filled[70, 1] - data[70, 1]) < 5 * NOISE


def test_particle_filters_score_as_frozen_models_do(data):
    """After many rows one state, which test data hardly change."""
    X = np.column_stack([data[:, 0], data[:, 0] + data[:, 2] / 10, data[:, 2]])
    hmm = fit(X, n_burnin=100, init="single")
    scores = [
        ParticleFilterScorer(n_particles=20, adaptive=adaptive)(hmm, X[:50])
        for adaptive in (True, False)
    ]
    assert_allclose(scores[0], scores[1], atol=0.1)


# -- forecasts and simulation ---------------------------------------------------------


def test_forecasts_are_at_the_given_inputs(data, fitted):
    inputs = data[:4, [0, 2]] + [[1.0, 0.0]]
    following = fitted.predict_next(data, 4, inputs=inputs)
    means = []
    for draw in fitted.draws_.thinned():
        states = fitted.emission_.with_states(draw.emission, draw.n_states)
        prior = fitted.emission_.hyperparameters(draw.emission)["mean"]
        coefficients = np.vstack([states.coefficients_[:, 0], prior[:, :-1]])
        levels = np.append(states.intercepts_[:, 0], prior[0, -1])
        means.append(inputs @ coefficients.T + levels)
    probs = following._state_probs
    expected = np.mean([(p * m).sum(axis=1) for p, m in zip(probs, means, strict=True)], 0)
    assert_allclose(following.mean()[:, 0], expected, rtol=1e-9)
    samples = following.sample(4000, random_state=0)[:, :, 0]
    error = samples.std(axis=0) / np.sqrt(4000)
    assert (abs(samples.mean(axis=0) - expected) < 5 * error).all()
    assert following.log_prob(expected[:, None]).shape == (4,)


@pytest.mark.parametrize("order", [0, 1])
def test_simulation_follows_the_given_inputs(order, data):
    hmm = fit(data, order)
    inputs = np.random.default_rng(1).normal(size=(800, 2)) * [1.0, 10.0] + [5, 100]
    X, states = hmm.sample(800, random_state=3, inputs=inputs)
    assert_array_equal(X[:, [0, 2]], inputs)
    for k in range(2):
        own = states == k
        A = np.column_stack([inputs[own], np.ones(own.sum())])
        slopes = np.linalg.lstsq(A, X[own, 1], rcond=None)[0][:2]
        expected = hmm.emission_.coefficients_[k, 0, order:]
        assert_allclose(slopes, expected, atol=0.15)


@pytest.mark.parametrize("method", ["sample", "predict_next"])
def test_coming_inputs_have_to_be_known(method, data, fitted):
    def ask(inputs, hmm=fitted, X=data):
        if method == "sample":
            return hmm.sample(2, inputs=inputs)
        return hmm.predict_next(X, 2, inputs=inputs)

    for wrong, message in (
        (None, r"columns 0, 2 of X .*inputs="),
        ([[1.0, np.nan], [2.0, 3.0]], "column 2 is missing in step 0"),
        ([[1.0, "a"], [2.0, "b"]], "expected a number"),
        ([[1.0, np.inf], [2.0, 3.0]], "expected numbers up to"),
        ([1.0, 2.0], r"inputs has the shape \(2,\); .* 2 columns"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(wrong)
    plain = fit(data, emission=AutoregressiveNormal(0))
    with pytest.raises(ValueError, match="no input_features"):
        ask(data[:2, [0, 2]], plain)
    named = pd.DataFrame(data, columns=["rate", "y", "gap"])
    hmm = fit(named, emission=AutoregressiveNormal(0, input_features=["gap", "rate"]))
    with pytest.raises(ValueError, match="columns 'gap', 'rate' of X"):
        ask(None, hmm, named)
    with pytest.raises(ValueError, match="inputs"):
        ask(named[["rate", "gap"]][:2], hmm, named)
    ask(named[["gap", "rate"]][:2], hmm, named)


def test_displays_and_parameters_are_at_the_mean_inputs(data, fitted):
    pytest.importorskip("matplotlib").use("Agg")
    from skihmm.inspection import EmissionDisplay, ForecastDisplay

    display = EmissionDisplay.from_estimator(fitted)
    emission = fitted.emission_
    at_means = emission.intercepts_[:, 0] + (emission.coefficients_[:, 0] @ emission.input_means_)
    assert_allclose(display.columns[0].mean[: fitted.n_states_], at_means, rtol=1e-9)
    points, density = (getattr(display.columns[0], k) for k in ("points", "density"))
    assert abs(trapezoid(density[0], points[0]) - 1) < 0.05
    assert draw_parameters(fitted).emission_.coefficients_.shape == (2, 1, 2)
    inputs = data[:5, [0, 2]]
    forecast = ForecastDisplay.from_estimator(fitted, data, 5, inputs=inputs)
    assert len(forecast.median) == 5


# -- columns --------------------------------------------------------------------------


def test_names_indices_and_masks(data, fitted):
    frame = pd.DataFrame(data, columns=["rate", "y", "gap"])
    for X, features in (
        (frame, ["rate", "gap"]),
        (frame, [0, -1]),
        (data, np.array([True, False, True])),
    ):
        hmm = fit(X, emission=AutoregressiveNormal(0, input_features=features))
        assert_same(hmm, fitted)
        assert_array_equal(hmm.emission_.coefficients_, fitted.emission_.coefficients_)
    simulated, _ = fit(frame).sample(3, inputs=frame[["rate", "gap"]][:3])
    assert list(simulated.columns) == ["rate", "y", "gap"]
    # Another order of inputs is another order of coefficients.
    same, turned = (
        fit(
            data,
            emission=AutoregressiveNormal(0, **FIXED, input_features=c, noise="normal"),
            **SINGLE,
        )
        for c in ([0, 2], [2, 0])
    )
    assert_allclose(
        turned.emission_.coefficients_[..., ::-1], same.emission_.coefficients_, rtol=1e-5
    )


def as_objects(X, value):
    X = X.astype(object)
    X[3, 2] = value
    return X


def in_turns(X):
    X = X.copy()
    X[::2, 0] = X[1::2, 2] = np.nan
    return X


@pytest.mark.parametrize(
    ("features", "change", "error", "message"),
    [
        (["a"], None, ValueError, "input_features: 'a' is a name"),
        ([3], None, ValueError, "input_features: X has no column 3"),
        ([0, 0], None, ValueError, "has a column twice"),
        ([0, 1, 2], None, ValueError, "input_features=.* are all columns"),
        ("a", None, TypeError, "input_features='a'"),
        ([0, 2], lambda X: X * [1, 1, 0], ValueError, "input 2 is constant, 0: the int"),
        ([0, 2], lambda X: X * [1, 1, np.nan], ValueError, "of the input 2 is missing"),
        ([0, 2], in_turns, ValueError, r"Every row of X lacks an input \(0, 2\)"),
        ([0, 2], lambda X: as_objects(X, "high"), ValueError, "input 2 of row 3 is 'high'"),
        ([0, 2], lambda X: as_objects(X, np.inf), ValueError, "input 2 of row 3 is inf"),
        ([2, 0], lambda X: X * [np.inf, 1, 1], ValueError, "infinity"),
    ],
)
def test_wrong_inputs(features, change, error, message, data):
    X = data if change is None else change(data)
    with pytest.raises(error, match=message):
        fit(X, emission=AutoregressiveNormal(0, input_features=features))


def test_too_many_inputs():
    X = np.random.default_rng(0).normal(size=(20, 201))
    with pytest.raises(ValueError, match="input_features has 200 columns"):
        fit(X, emission=AutoregressiveNormal(0, input_features=range(200)))


def test_collinear_inputs_are_told(data):
    X = np.column_stack([data, data[:, 0] - 3 * data[:, 2]])
    with pytest.warns(UserWarning, match="inputs 0, 2, 3 are collinear"):
        hmm = fit(X, emission=AutoregressiveNormal(0, input_features=[0, 2, 3]))
    assert np.isfinite(hmm.draws_.lp).all()


def test_a_column_may_be_context_and_input(data):
    X = np.column_stack([data, np.arange(240) // 60 % 2])
    emission = AutoregressiveNormal(0, input_features=[0, 3])
    transitions = HCRPTransitions(context_features=[3, 2])
    X[:, 2] = X[:, 2] > 100
    hmm = fit(X, emission=emission, transitions=transitions)
    assert_array_equal(hmm._fitted.observed, [1])
    inputs, contexts = X[:5, [0, 3]], X[:5, 2]
    simulated, _ = hmm.sample(5, inputs=inputs, contexts=contexts)
    assert_array_equal(simulated[:, [0, 3, 2]], X[:5, [0, 3, 2]])
    following = hmm.predict_next(X, 5, inputs=inputs, contexts=contexts)
    assert following.mean().shape == (5, 1)
    # The context is that of the inputs: the first column of the hierarchy.
    assert following._nothing.contexts.codes[:, 0].tolist() == [0] * 5


def test_parts_of_mixed_data_share_inputs(data):
    rng = np.random.default_rng(1)
    other = 0.5 * data[:, 2] + rng.normal(size=240)
    words = np.where(data[:, 1] > 0, "up", "down")
    frame = pd.DataFrame(data, columns=["rate", "y", "gap"]).assign(z=other, word=words)
    parts = [
        ("z", AutoregressiveNormal(1, input_features=["gap"]), ["z"]),
        ("word", "hcrp", ["word"]),
        ("y", AutoregressiveNormal(0, input_features=["rate", "gap"]), ["y"]),
    ]
    hmm = fit(frame, emission=ProductEmission(parts))
    parts = hmm.emission_.named_emissions_
    assert_allclose(parts.z.coefficients_[:, 0, 1], 0.5, atol=0.2)
    assert parts.y.coefficients_.shape[1:] == (1, 2)
    inputs = frame[["gap", "rate"]][:6]
    simulated, _ = hmm.sample(6, inputs=inputs)
    assert_array_equal(simulated[["gap", "rate"]], inputs)
    assert set(simulated["word"]) <= {"up", "down"}
    assert hmm.predict_next(frame, 6, inputs=inputs).proba("word").shape[0] == 6
    gaps = frame.copy()
    gaps.loc[[30, 31], "z"] = np.nan
    filled = hmm.impute(gaps)
    assert abs(filled["z"] - other)[[30, 31]].max() < 5
    assert np.isfinite(hmm.score(frame))
    # One regression on both, if the columns are of one group.
    twice = [("a", "gaussian", ["y"]), ("b", "gaussian", ["y", "rate", "gap", "z"])]
    with pytest.raises(ValueError, match="two groups"):
        fit(frame.drop(columns="word"), emission=ProductEmission(twice))


def test_the_units_are_those_of_all_rows(data):
    other = regimes(seed=1)[0]
    other[:, 0] += 40.0
    hmm = fit(data[:200])
    hmm.partial_fit(other)
    whole = fit(np.concatenate([data[:200], other])).emission_
    assert_array_equal(hmm.emission_.input_means_, whole.input_means_)
    lacking = other.copy()
    lacking[7, 2] = np.nan
    with pytest.warns(UserWarning, match=r"1 of 240 steps lack an input \(2\) and are missing"):
        copy.deepcopy(hmm).partial_fit(lacking)
    assert_array_equal(
        hmm._fitted.sequences.codes[-240:],
        encode(hmm.emission_, other[:, [1]], np.zeros(1, int), given=other[:, [0, 2]]),
    )
    again = pickle.loads(pickle.dumps(hmm))
    assert_array_equal(again.predict(other), hmm.predict(other))


@pytest.mark.parametrize("order", [0, 1])
def test_chains_are_resumed_bit_for_bit(order, data, tmp_path):
    X = data.copy()
    X[[20, 60], 1] = np.nan
    emission = AutoregressiveNormal(order, input_features=[0, 2])
    make = partial(HCRPHMM, emission=emission, checkpoint_interval=0, **SHORT)
    assert_goes_on(make, lambda hmm: hmm.fit(X), tmp_path / "chain", 3, 8)


def test_pipelines_and_searches(data):
    frame = pd.DataFrame(data, columns=["rate", "y", "gap"])
    hmm = HCRPHMM(emission="regression", **SHORT)
    pipeline = make_pipeline(FunctionTransformer(), hmm)
    pipeline.set_params(hcrphmm__emission__input_features=["rate", "gap"])
    assert pipeline.fit(frame).score(frame) > -1.0
    search = GridSearchCV(
        HCRPHMM(emission=AutoregressiveNormal(0, input_features=["rate", "gap"]), **SHORT),
        {"emission__strength": [None, 1e6]},
        cv=KFold(2),
    ).fit(frame)
    # A strong prior of all slopes near zero explains nothing.
    assert search.best_params_ == {"emission__strength": None}


def test_the_rows_of_a_fit_are_forgotten(data):
    """A recipe may be fitted again, to other rows; without given columns units are one."""
    emission = AutoregressiveNormal(0, input_features=[0, 2])
    assert not hasattr(emission, "input_means_")
    start = np.zeros(1, dtype=int)
    fitted = emission.with_given(data[:, [0, 2]]).fit_sequences(data[:, [1]], start)
    assert fitted._given is None
    assert_allclose(fitted.typical_given(), data[:, [0, 2]].mean(axis=0))
    fitted.fit_sequences(data[:100, [1]], start)
    assert_array_equal(emission.fit(data[:, [1]]).input_scales_, 1.0)
