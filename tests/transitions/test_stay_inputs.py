"""Staying that depends on inputs: the estimator, its predictions and its errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fitting.test_reproducibility import assert_goes_on
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM, OnlineFilter
from skihmm.core._franchise import stays_of
from skihmm.emissions import BernoulliRegression, NormalInverseGamma
from skihmm.inspection import RegressionDisplay
from skihmm.metrics import ParticleFilterScorer
from skihmm.posterior import draw_parameters, parameter_intervals
from skihmm.posterior._parameters import parameter_arrays, sampled_parameters
from skihmm.samplers import BlockedGibbs, DirectAssignmentGibbs, StepwiseGibbs
from skihmm.transitions import HCRPTransitions

SLOPES = np.array([[1.5, 0.0], [0.0, -1.5]])


def simulated(n_steps=1500, seed=0):
    """Two states that other inputs keep; the last two columns are the inputs."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((n_steps, 2))
    states = np.zeros(n_steps, dtype=int)
    u = rng.random(n_steps)
    for t in range(1, n_steps):
        k = states[t - 1]
        stays = u[t] < expit(SLOPES[k] @ inputs[t] + 2.0)
        states[t] = k if stays else 1 - k
    y = 4.0 * states + rng.standard_normal(n_steps)
    # In other units.
    return np.column_stack([y, inputs * [10.0, 0.1] + [100.0, -3.0]]), states


def estimator(**options):
    options = {"input_features": [1, 2], **options}
    return HCRPHMM(
        emission="diagonal_gaussian",
        transitions=HCRPTransitions(**options),
        n_burnin=60,
        n_draws=20,
        thin=2,
        random_state=0,
    )


@pytest.fixture(scope="module", name="X")
def data():
    return simulated()[0]


@pytest.fixture(scope="module", name="hmm")
def fitted(X):
    return estimator().fit(X)


def test_a_fit_finds_states_and_coefficients(hmm, X):
    assert hmm.n_states_ == 2
    assert adjusted_rand_score(simulated()[1], hmm.labels_) > 0.9
    order = np.argsort(hmm.emission_.means_[:, 0])
    slopes = hmm.stay_coefficients_[order] * [10.0, 0.1]
    np.testing.assert_allclose(slopes, SLOPES, atol=0.5)
    # At inputs of which all standardised ones are zero.
    centre = hmm.stay_coefficients_ @ [100.0, -3.0] + hmm.stay_intercepts_
    np.testing.assert_allclose(centre, 2.0, atol=0.6)
    probabilities = hmm.stay_probabilities([[100.0, -3.0], [85.0, -3.0]])[:, order]
    np.testing.assert_allclose(probabilities[0], expit(2.0), atol=0.06)
    assert probabilities[1, 0] < 0.7
    frame = parameter_intervals(hmm, 0.99, n_samples=200)
    mine = frame[(frame.parameter == "stay_coefficients_") & (frame.state == order[0])]
    assert (mine.lower < [0.15, 0.0]).all()
    assert (mine.upper > [0.15, 0.0]).all()


def test_dwell_times_are_those_of_the_segments(hmm):
    changes = np.flatnonzero(np.diff(hmm.labels_)) + 1
    segments = np.split(hmm.labels_, changes)[:-1]
    for k in range(2):
        mean = np.mean([len(s) for s in segments if s[0] == k])
        assert hmm.dwell_times_[k] == pytest.approx(mean, rel=0.15)


def test_units_and_shifts_of_inputs_change_nothing(hmm, X):
    other = X.copy()
    other[:, 1] = (X[:, 1] - 100.0) * 0.25
    again = estimator().fit(other)
    np.testing.assert_array_equal(again.labels_, hmm.labels_)
    np.testing.assert_allclose(again.score(other), hmm.score(X), rtol=1e-9)
    np.testing.assert_allclose(
        again.stay_coefficients_[:, 0] * 0.25, hmm.stay_coefficients_[:, 0], rtol=1e-6
    )


def test_the_frozen_probability_is_the_integral(hmm):
    draw = hmm._fitted.selected
    coins = draw.transitions["coins"]
    rows = np.array([[0.0, 0.0], [3.0, -1.0], [-40.0, 30.0]])
    stays, repeats = stays_of(draw.arrays, rows)
    x = np.column_stack([rows, np.ones(3)])
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    for k, numbers in enumerate(coins):
        C = np.zeros((3, 3))
        C[np.tril_indices(3)] = numbers[3:]
        C = C + np.tril(C, -1).T
        mu, sd = x @ numbers[:3], np.sqrt(np.einsum("ri,ij,rj->r", x, C, x))
        expected = expit(mu[:, None] + sd[:, None] * nodes) @ weights / weights.sum()
        np.testing.assert_allclose(stays[:, k], expected, rtol=2e-4)
    assert ((repeats > 0) & (repeats < 1)).all()


def test_predictions_use_the_inputs_of_the_steps(hmm, X):
    coming = np.array([[85.0, -3.0]] * 3)
    usual = np.array([[115.0, -3.2]] * 3)
    # The state goes on where its input is high: the mean of the next rows says so.
    low, high = (hmm.predict_next(X, 3, inputs=x).mean()[0, 0] for x in (coming, usual))
    centre = hmm.emission_.means_[hmm.predict(X)[-1], 0]
    assert abs(high - centre) < abs(low - centre)
    Y, states = hmm.sample(3, inputs=coming, random_state=0)
    np.testing.assert_array_equal(Y[:, 1:], coming)
    assert states.shape == (3,)
    np.testing.assert_allclose(hmm.score_samples(X).sum() / len(X), hmm.score(X), rtol=1e-12)


def test_scores_of_adapted_and_frozen_draws_agree(hmm):
    held_out = simulated(300, 1)[0]
    frozen = hmm.score(held_out)
    adapted = ParticleFilterScorer(n_particles=200, adaptive=True)(hmm, held_out)
    assert adapted == pytest.approx(frozen, abs=0.03)
    sticky = HCRPHMM(
        emission="diagonal_gaussian", transitions="sticky", n_burnin=60, n_draws=20,
        random_state=0,
    ).fit(simulated()[0][:, :1])  # fmt: skip
    assert frozen > sticky.score(held_out[:, :1]) + 0.05


def test_missing_inputs_have_their_mean(X):
    holes = X.copy()
    holes[::20, 1] = np.nan
    with pytest.warns(UserWarning, match="75 of 1500 steps lack an input of transitions"):
        hmm = estimator().fit(holes)
    filled = holes.copy()
    filled[::20, 1] = hmm.transitions_.input_means_[0]
    with pytest.warns(UserWarning, match="74 of 1500 steps lack an input"):
        score = hmm.score(holes)
    np.testing.assert_allclose(score, hmm.score(filled), rtol=1e-9)
    with pytest.raises(ValueError, match="inputs: the column 1 is missing in step 0"):
        hmm.predict_next(X, 1, inputs=[[np.nan, 1.0]])
    with pytest.raises(ValueError, match="Pass inputs="):
        hmm.predict_next(X, 1)


def test_missing_inputs_of_other_data_are_warned_of(hmm, X):
    holes = X[:100].copy()
    holes[[0, 40, 41, 60], 2] = np.nan
    # The inputs of the first row of a sequence are not read.
    text = r"2 of 100 steps lack an input of transitions \(2\), which has the mean"
    for method in ("predict", "predict_proba", "score", "score_samples", "impute"):
        with pytest.warns(UserWarning, match=text):
            getattr(hmm, method)(holes, lengths=[60, 40])
    with pytest.warns(UserWarning, match="3 of 100 steps"):
        hmm.predict_next(holes, 1, inputs=[[100.0, -3.0]])
    online = OnlineFilter(hmm)
    online.update(X[:2])
    with pytest.warns(UserWarning, match="1 of 1 steps lack an input"):
        online.update(holes[40:41])


def test_coefficients_without_bounds_are_named():
    """The input is one in a single row, in which the state changes."""
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(1)
    pulse = np.arange(128) == 88
    X = np.column_stack([4.0 * (np.arange(128) >= 88) + rng.normal(size=128), pulse])
    text = "Data do not bound the coefficients of staying of column 1 in state"
    with pytest.warns(UserWarning, match=text):
        model = estimator(input_features=[1]).fit(X)
    with pytest.warns(UserWarning, match=text):
        parameter_intervals(model, n_samples=20)
    display = RegressionDisplay.from_estimator(model, output="staying")
    assert display.ax_.get_title().startswith("data do not bound coefficients: column 1")
    assert any(text in note for note in model.diagnose(verbose=False)._setting.data_notes)


@pytest.mark.parametrize("as_context", [False, True])
def test_with_contexts_and_inputs_of_the_emission(X, as_context):
    rng = np.random.default_rng(0)
    y = (rng.random(len(X)) < expit(X[:, 0] - 2)).astype(float)
    table = np.column_stack([y, X[:, 1:], np.arange(len(X)) % 2])[:400]
    hmm = HCRPHMM(
        emission=BernoulliRegression(input_features=[1]),
        transitions=HCRPTransitions(
            input_features=[2, 1],
            context_features=[3] if as_context else None,
            switch_penalty=1.0,
        ),
        sampler=BlockedGibbs(8),
        init="random",  # one state has no leaves
        n_burnin=10,
        n_draws=5,
        random_state=0,
    )
    if not as_context:
        table = table[:, :3]
    hmm.fit(table)
    given = {"inputs": [[100.0, -3.0]]}
    if as_context:
        given["contexts"] = [0]
    assert 0 < hmm.predict_next(table, 1, **given).mean()[0, 0] < 1
    assert hmm.stay_coefficients_.shape == (hmm.n_states_, 2)
    samples = sampled_parameters(hmm._fitted, 20, hmm.random_state, np.zeros((3, 2)))[
        "stay_probabilities"
    ]
    assert samples.shape == (20, hmm.n_states_, 3)
    assert 0 < np.nanmin(samples) < np.nanmax(samples) < 1
    assert np.isfinite(hmm.score(table))
    assert np.isfinite(hmm.dwell_times_).all()


def test_codes_of_missing_values_are_no_part_of_the_units(hmm, X):
    codes = X.copy()
    codes[[3, 40, 41], 1] = -999
    with pytest.warns(UserWarning, match="Set wrong values, and codes of missing ones"):
        other = estimator().fit(codes)
    np.testing.assert_allclose(
        other.transitions_.input_scales_, hmm.transitions_.input_scales_, rtol=0.02
    )
    with pytest.raises(ValueError, match="one row of inputs per step"):
        hmm.stay_probabilities(1.0)


def test_known_states_and_partial_fit(X):
    states = np.where(np.arange(600) % 3, -1, simulated()[1][:600])
    hmm = estimator().fit(X[:600], states=states)
    assert hmm.n_states_ >= 2
    hmm = estimator().fit(X[:600])
    hmm.partial_fit(X[600:1200])
    means = estimator().fit(X[:1200]).transitions_.input_means_
    np.testing.assert_array_equal(hmm.transitions_.input_means_, means)
    assert len(hmm.labels_) == 1200


def test_a_checkpoint_and_a_warm_start_go_on_bit_for_bit(X, tmp_path):
    def make(**params):
        return estimator().set_params(**params)

    whole, _ = assert_goes_on(make, lambda hmm: hmm.fit(X[:400]), tmp_path / "chain", 10, 20)
    assert {"stay_mean", "stay_precision", "stay_scale"} <= {*whole.draws_.hyperparameters}
    assert whole.draws_.hyperparameters["stay_scale"].shape == (1, 20, 2)


def test_drawn_parameters_vary(hmm):
    means = draw_parameters(hmm)
    np.testing.assert_array_equal(means.stay_coefficients_, hmm.stay_coefficients_)
    drawn = draw_parameters(hmm, method="sample", random_state=0)
    assert not np.allclose(drawn.stay_intercepts_, means.stay_intercepts_, atol=1e-3)
    np.testing.assert_allclose(drawn.transmat_.sum(axis=1), 1)


def test_a_column_of_noise_or_twice_is_harmless(X, hmm):
    rng = np.random.default_rng(0)
    wide = np.column_stack([X, X[:, 1], rng.standard_cauchy(len(X))])
    held_out = simulated(1500, 2)[0]
    more = np.column_stack([held_out, held_out[:, 1], rng.standard_cauchy(1500)])
    with pytest.warns(UserWarning, match="values more than 50 robust standard deviat"):
        other = estimator(input_features=[1, 2, 3, 4]).fit(wide)
    assert other.score(more) > hmm.score(held_out) - 0.01


def test_probabilities_to_stay_have_intervals(hmm):
    inputs = np.array([[100.0, -3.0], [85.0, -3.0], [100.0, -3.2]])
    found = parameter_intervals(hmm, 0.9, n_samples=400, inputs=inputs)
    rows = found[found.parameter == "stay_probabilities"]
    assert rows.place.tolist() == [(0,), (1,), (2,)] * 2
    order = np.argsort(hmm.emission_.means_[:, 0])
    mean, lower, upper = (
        rows[name].to_numpy().reshape(2, 3)[order] for name in ("mean", "lower", "upper")
    )
    truth = expit(2.0 + (inputs - [100.0, -3.0]) / [10.0, 0.1] @ SLOPES.T).T
    np.testing.assert_allclose(mean, hmm.stay_probabilities(inputs).T[order], atol=0.03)
    assert ((lower < truth) & (truth < upper)).sum() >= 5
    # Of drawn coefficients and transition probabilities, so wider than those of one draw.
    assert (upper - lower).min() > 0.005
    with pytest.raises(ValueError, match="missing in step 0"):
        parameter_intervals(hmm, inputs=[[np.nan, 0.0]])


def test_the_display_of_staying(hmm):
    pytest.importorskip("matplotlib")
    display = RegressionDisplay.from_estimator(hmm, output="staying", feature=0)
    name, x, curve = display.curve
    assert (name, len(x), curve.shape) == ("column 1", 101, (2, 101))
    # The numbers of the table, over all draws.
    table = parameter_arrays(hmm, 0.95, inputs=[hmm.transitions_.input_means_])
    shown = np.array([curve, *display.band])[..., 50]
    np.testing.assert_allclose(shown, table["stay_probabilities"][..., 0])
    assert ((display.band[0] < curve) & (curve < display.band[1])).mean() > 0.9
    assert display.band.shape == (2, *curve.shape)
    bars = RegressionDisplay.from_estimator(hmm, output="staying")
    shown = [bars.coefficients, *bars.intervals]
    np.testing.assert_allclose(shown, table["stay_coefficients_"])


ONE = np.column_stack([np.arange(20.0), np.arange(20.0) % 3])


@pytest.mark.parametrize(
    ("options", "change", "error"),
    [
        ({"stay_prior": (2.0, 1.0)}, None, "stay_prior=.* with input_features"),
        ({}, lambda column: 0 * column, "is constant"),
        ({}, lambda column: 1e-180 * column, "give it in other units"),
        ({}, lambda column: np.where(column == 2, np.nan, 1), "is constant"),
        ({}, lambda column: np.append(1, 19 * [np.nan]), "has one known value, 1"),
        ({}, lambda column: np.nan * column, "is missing"),
        ({}, lambda column: column * 1e101, "expected numbers up to"),
        ({}, lambda column: np.array(["a"] * 20), "expected a number"),
        ({"input_features": [0, 1]}, None, "are all columns of X"),
        ({"input_features": [1, 1]}, None, "has a column twice"),
    ],
)
def test_errors_say_what_is_wrong(options, change, error):
    X = ONE
    if change is not None:
        X = np.column_stack([ONE[:, :1].astype(object), change(ONE[:, 1])])
    with pytest.raises(ValueError, match=error):
        estimator(**{"input_features": [1], **options}).fit(X)


def test_samplers_without_coins_refuse_inputs():
    hmm = estimator(input_features=[1]).set_params(sampler=DirectAssignmentGibbs())
    with pytest.raises(TypeError, match="does not support states with a probability"):
        hmm.fit(ONE)


def test_without_inputs_there_are_no_coefficients(X):
    hmm = HCRPHMM(
        emission=NormalInverseGamma(), sampler=StepwiseGibbs(), n_burnin=5, n_draws=2,
        random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hmm.fit(X[:100])
    with pytest.raises(ValueError, match="no input_features"):
        hmm.stay_probabilities([[1.0]])
    with pytest.raises(AttributeError, match="transitions with input_features have it"):
        _ = hmm.stay_coefficients_
