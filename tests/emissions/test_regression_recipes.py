"""Logistic, count and choice regressions as emissions of the estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm._using import imputation as _imputation
from skihmm.emissions import (
    BernoulliRegression,
    CategoricalRegression,
    NegativeBinomialRegression,
    ProductEmission,
)
from skihmm.emissions._option_order import _log_evidence, best_order
from skihmm.metrics import frozen_log_likelihood
from skihmm.testing import check_emission

RNG = np.random.default_rng(0)
N = 60
INPUTS = RNG.normal(size=(N, 2))
CHANCE = 1 / (1 + np.exp(-np.where(np.arange(N) // 20 == 1, -1.0, 2 * INPUTS[:, 0])))
EXPOSURE = RNG.uniform(0.5, 2.0, N)
TRIALS = RNG.integers(1, 12, N)
MISSING = np.where(np.arange(N) == 9, np.nan, 0.0)
BINARY = (RNG.random((N, 2)) < CHANCE[:, None]) + np.stack([MISSING, 0 * MISSING], 1)
COUNTS = RNG.poisson(3 * EXPOSURE * np.exp(0.5 * INPUTS[:, 0])) + MISSING
CHOICE = RNG.integers(3, size=N) + MISSING

CASES = {
    "binary": (BernoulliRegression([2, 3]), (BINARY, INPUTS + MISSING[::-1, None])),
    "trials": (
        BernoulliRegression([1], n_trials=2),
        (np.minimum(COUNTS, TRIALS), INPUTS[:, 0], TRIALS),
    ),
    "counts": (NegativeBinomialRegression([1], exposure=2), (COUNTS, INPUTS[:, 0], EXPOSURE)),
    "choices": (CategoricalRegression([1, 2]), (CHOICE, INPUTS)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:.*lack an input")
def test_what_samplers_rely_on(case):
    emission, columns = CASES[case]
    check_emission(emission, np.column_stack(columns))


def test_two_options_are_a_binary_observation():
    """The same chain, with the signs of the first option."""
    y = (INPUTS[:, 0] > -0.5).astype(int)
    options = {"n_burnin": 20, "n_draws": 5, "random_state": 0}
    binary = HCRPHMM(emission=BernoulliRegression([1]), **options)
    choice = HCRPHMM(emission=CategoricalRegression([1]), **options)
    binary.fit(np.column_stack([1 - y, INPUTS[:, 0]]))
    names = np.array(["no", "yes"], dtype=object)[y]
    choice.fit(pd.DataFrame({"y": names, "u": INPUTS[:, 0]}).set_axis([0, 1], axis=1))
    assert choice.emission_.categories_[0].tolist() == ["no", "yes"]
    assert_allclose(choice.emission_.coefficients_, binary.emission_.coefficients_)
    assert_allclose(choice.draws_.lp, binary.draws_.lp)


@pytest.mark.parametrize("kind", ["logistic", "log_linear", "choice"])
def test_recovery(kind):
    rng = np.random.default_rng(1)
    u = rng.normal(size=900)
    z = np.arange(900) // 150 % 2
    if kind == "logistic":
        emission = BernoulliRegression([1])
        y = rng.random(900) < 1 / (1 + np.exp(-np.where(z, -2.0, 4 * u)))
    elif kind == "log_linear":
        emission = NegativeBinomialRegression([1])
        y = rng.poisson(20 * np.exp(np.where(z, 0.6, -0.6) * u))
    else:
        emission = CategoricalRegression([1])
        utility = np.outer(u, [4.0, 0.0, -4.0]) * z[:, None]
        y = (utility + rng.gumbel(size=(900, 3))).argmax(axis=1)
    X = np.column_stack([y, u])
    hmm = HCRPHMM(emission=emission, n_burnin=300, n_draws=50, random_state=0).fit(X)
    assert hmm.n_states_ == 2
    assert adjusted_rand_score(z, hmm.predict(X)) > 0.85
    assert np.ptp(hmm.emission_.coefficients_[:, 0, 0]) > 0.9
    # The geometric mean of all precisions.
    precision = hmm.draws_.hyperparameters["emission_precision"]
    expected = np.exp(np.log(precision).mean(axis=(2, 3))).mean()
    assert_allclose(hmm.diagnose().table["emission_precision"]["mean"], expected)


def test_coefficients_are_in_units_of_the_data():
    u = 1e3 + 50 * INPUTS[:, 0]
    y = RNG.random(N) < 1 / (1 + np.exp(-(u - 1e3) / 25))
    fits = [
        HCRPHMM(emission=BernoulliRegression([1]), n_burnin=20, n_draws=5, random_state=0).fit(
            np.column_stack([y, values])
        )
        for values in (u, INPUTS[:, 0])
    ]
    raw, plain = (hmm.emission_ for hmm in fits)
    assert_allclose(raw.coefficients_ * 50, plain.coefficients_, rtol=1e-6)
    assert_allclose(raw.intercepts_ + 1e3 * raw.coefficients_[..., 0], plain.intercepts_, rtol=1e-6)


def test_parts_of_mixed_data():
    X = pd.DataFrame(
        {
            "choice": np.array(["tea", "milk", "beer"])[RNG.integers(3, size=N)],
            "count": np.nan_to_num(COUNTS),
            "heat": INPUTS[:, 0],
            "level": RNG.normal(size=N),
        }
    )
    emission = ProductEmission(
        [
            ("choice", CategoricalRegression(["heat"]), ["choice"]),
            ("count", NegativeBinomialRegression(["heat"]), ["count"]),
            ("level", "gaussian", ["level"]),
        ]
    )
    hmm = HCRPHMM(emission=emission, n_burnin=10, n_draws=3, random_state=0).fit(X)
    following = hmm.predict_next(X, 2, inputs=[[0.0], [1.0]])
    assert_allclose(following.proba("choice").sum(axis=1), 1.0)
    simulated, _ = hmm.sample(30, inputs=np.zeros((30, 1)), random_state=0)
    assert set(simulated["choice"]) <= {"tea", "milk", "beer"}
    assert (simulated["count"] >= 0).all()
    gaps = X.copy()
    gaps.loc[3, ["choice", "count"]] = None
    assert not hmm.impute(gaps).isna().any(axis=None)
    assert np.isfinite(hmm.score(X))


@pytest.mark.parametrize(
    ("emission", "columns", "message"),
    [
        (BernoulliRegression([1]), (2 * (CHOICE[:9] > 0) - 1,), r"\(y \+ 1\) // 2"),
        (BernoulliRegression([1]), (np.arange(9),), "too large; expected 0 or 1"),
        (BernoulliRegression([1], precision=1e-9), (CHOICE[:9] > 0,), "precision=1e-09"),
        (BernoulliRegression([1], precision=1e9), (CHOICE[:9] > 0,), "to 1e"),
        (BernoulliRegression([1], mean=2e3), (CHOICE[:9] > 0,), "up to 1000 in size"),
        (BernoulliRegression([1], n_trials=10), (CHOICE[:9] > 0,), "n_trials names a col"),
        (
            BernoulliRegression([1]),
            (np.array(["no", "yes", None] * 3, dtype=object),),
            r"\(y == 'yes'\).astype\(int\)",
        ),
        (
            BernoulliRegression([1], n_trials=2),
            (np.full(9, 5), np.arange(9), np.full(9, 4)),
            "5.* successes, but 4 trials in column 2",
        ),
        (
            ProductEmission([("won", BernoulliRegression([1], n_trials=2), [0])]),
            (np.full(9, 5), np.arange(9), np.full(9, 4)),
            "5.* successes, but 4 trials in column 2",
        ),
        (
            BernoulliRegression([1], n_trials=2),
            (np.full(9, 5), np.arange(9), np.full(9, 7.5)),
            "expected a number of trials",
        ),
        (
            NegativeBinomialRegression([1], exposure=2),
            (np.full(9, 5), np.arange(9), np.zeros(9)),
            "expected an exposure > 0",
        ),
        (NegativeBinomialRegression([1], dispersion=1e-6), (np.arange(9),), "all but"),
        (CategoricalRegression([1]), (np.zeros(9),), "expected two or more"),
        (CategoricalRegression([2]), (CHOICE[:9], CHOICE[:9]), "expected one of choices"),
    ],
)
def test_wrong_data(emission, columns, message):
    if len(columns) == 1 or isinstance(emission, CategoricalRegression):
        columns = (*columns, INPUTS[:9, 0])
    with pytest.raises(ValueError, match=message):
        HCRPHMM(emission=emission, n_burnin=2, n_draws=1).fit(np.column_stack(columns))


def softmax(utility):
    p = np.exp(utility - utility.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("names", ["abc", "bac"])
def test_order_of_options(names):
    """The option in the middle is not first, whatever its name and its frequency."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=2000)
    p = softmax(np.column_stack([-3 * u, np.full(2000, 1.5), 3 * u]))
    chosen = (rng.random((2000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    labels = np.array(list(names))[chosen]
    X = pd.DataFrame({"y": labels, "u": u})
    emission = CategoricalRegression(["u"])
    hmm = HCRPHMM(emission=emission, n_burnin=50, n_draws=20, random_state=0)
    hmm.fit(X[:1000])
    order = hmm.emission_.categories_[0].tolist()
    assert order == list(names)
    truth = np.log(p[np.arange(2000), chosen])[1000:].mean()
    assert truth - np.mean(frozen_log_likelihood(hmm, X[1000:])) < 0.015


def test_log_evidence_of_options():
    """Laplace's method against quadrature, far from the prior mean too."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=80), np.ones(80)])
    is_one = rng.random(80) < special.expit(6 * x[:, 0])
    mean, precision = np.array([-3.0, 0.5]), np.array([0.5, 1.0])
    grid = np.stack(np.meshgrid(np.arange(-6, 18, 0.1), np.arange(-5, 5, 0.1)), axis=-1)
    logs = special.log_expit(np.where(is_one, 1, -1) * (grid @ x.T)).sum(axis=-1)
    logs += stats.norm.logpdf(grid, mean, precision**-0.5).sum(axis=-1)
    exact = special.logsumexp(logs) + 2 * np.log(0.1)
    assert _log_evidence(x, is_one, mean, precision) == pytest.approx(exact, abs=0.2)


@pytest.mark.parametrize("n", [4, 9])
def test_options_on_a_line_come_from_its_ends(n):
    """The next one of the options that are left is first or last on the line."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=3000)
    utility = np.outer(x, np.linspace(-4, 4, n)) + rng.gumbel(size=(3000, n))
    places = rng.permutation(n)
    choices, prior = places[utility.argmax(axis=1)], np.ones(2)
    order = np.argsort(places)[list(best_order(choices, x[:, None], 0 * prior, prior))]
    left = list(range(n))
    for option in order:
        assert option in (left[0], left[-1])
        left.remove(option)


def test_options_in_any_order():
    X = np.column_stack([CHOICE, INPUTS[:, 0]])
    emission = CategoricalRegression([1], categories=[2, 0, 1])
    hmm = HCRPHMM(emission=emission, n_burnin=5, n_draws=2, random_state=0).fit(X)
    assert hmm.emission_.categories_[0].tolist() == [2, 0, 1]
    known = ~np.isnan(CHOICE)
    assert_array_equal(hmm.emission_.encode_values(X[known, :1])[:, 0], (CHOICE[known] + 1) % 3)
    assert_array_equal(hmm.emission_.decode(np.array([[0.0], [2.0]])), [[2], [1]])


def test_many_options_are_warned_of():
    X = np.column_stack([np.arange(104) % 52, np.arange(104) ** 2])
    with pytest.warns(UserWarning, match="52 options: every state has 51 regressions"):
        HCRPHMM(emission=CategoricalRegression([1]), n_burnin=1, n_draws=1).fit(X)


@pytest.mark.parametrize("size", [1e3, 1e5])
def test_regimes_of_large_counts(size):
    """Poisson counts; with a larger dispersion at the start all were one state."""
    rng = np.random.default_rng(3)
    u, z = rng.normal(size=400), np.arange(400) // 50 % 2
    X = np.column_stack([rng.poisson(size * np.exp(np.where(z, 0.6, -0.6) * u)), u])
    emission = NegativeBinomialRegression([1])
    hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=30, random_state=0).fit(X)
    assert hmm.n_states_ == 2
    assert adjusted_rand_score(z, hmm.labels_) > 0.95
    assert hmm.draws_.hyperparameters["emission_dispersion"].max() < 1 / size


def test_precisions_of_counts_that_vary_little():
    """In units of a tenth of the inverse squared coefficient of variation of rates."""
    exposure = np.tile([1.0, 4.0], 200)
    y = exposure * np.tile([990, 990, 1010, 1010], 100)
    fitted = NegativeBinomialRegression(exposure=1).with_given(exposure[:, None])
    prior = fitted.fit(y[:, None])
    assert_allclose(prior.precision_, 0.1 / 1e-4)
    assert prior.default_init == "blocks"
    y[::3] *= 3
    assert_allclose(fitted.fit(y[:, None]).precision_, 1.0)
    assert fitted.default_init == "single"


@pytest.mark.parametrize("size", [1e4, 1e30, 1e90])
@pytest.mark.parametrize("case", ["binary", "trials", "counts", "choices"])
@pytest.mark.filterwarnings("ignore:.*lack an input")
def test_inputs_far_from_those_of_the_fit(case, size):
    """Are scored, predicted and added to a fit."""
    emission, columns = CASES[case]
    X = np.column_stack(columns).astype(float)
    hmm = HCRPHMM(emission=emission, n_burnin=10, n_draws=3, random_state=0).fit(X)
    far = X[:20].copy()
    far[[5, 6], 2 if case == "binary" else 1] = size, -size
    assert np.isfinite(hmm.score_samples(far)).all()
    hmm.partial_fit(far)
    assert (hmm.draws_.lp > -1e4).all()


def test_a_wrong_input_is_named():
    u = INPUTS[:, 0].copy()
    u[7] = -999
    X = pd.DataFrame({"y": CHANCE > 0.5, "u": u})
    hmm = HCRPHMM(emission=BernoulliRegression(["u"]), n_burnin=20, n_draws=3)
    with pytest.warns(UserWarning, match=r"X\[7, 'u'\] = -999"):
        hmm.fit(X)
    assert_allclose(hmm.emission_.input_scales_, np.delete(u, 7).std())


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("regression", "gaussian"),
        ("logistic", "bernoulli"),
        ("choice", "hcrp"),
        ("log_linear", "negative_binomial"),
    ],
)
def test_forgotten_inputs(name, without):
    X = pd.DataFrame({"y": 1.0 * (INPUTS[:, 0] > 0), "u": INPUTS[:, 1]})
    hmm = HCRPHMM(emission=name, n_burnin=2, n_draws=1)
    call = r"emission=\w+\(input_features=\['u'\].*emission='" + without
    with pytest.raises(ValueError, match=call):
        hmm.fit(X)
    hmm.fit(X[["y"]])
    hmm.set_params(emission__input_features=["u"]).fit(X)


def test_imputation_in_parts(monkeypatch):
    emission, columns = CASES["choices"]
    X = np.column_stack(columns)[:50]
    hmm = HCRPHMM(emission=emission, n_burnin=10, n_draws=3, random_state=0).fit(X)
    X[::3, 0] = np.nan
    whole = hmm.impute(X)
    monkeypatch.setattr(_imputation, "_MOST_PREDICTIVES", 1)
    assert_array_equal(hmm.impute(X), whole)


def test_new_options_are_an_error():
    X = pd.DataFrame({"y": list("abc") * 10, "u": INPUTS[:30, 0]})
    hmm = HCRPHMM(emission=CategoricalRegression(["u"]), n_burnin=2, n_draws=1, random_state=0).fit(
        X
    )
    with pytest.raises(ValueError, match="'z', which is not among the categories"):
        hmm.predict(X.assign(y="z"))


@pytest.mark.parametrize("method", ["expectation", "sample"])
def test_imputation_without_all_inputs(method):
    """Missing inputs are at their means, exposures one; without trials nothing is."""
    for case, at in (("trials", 2), ("counts", 2), ("choices", 1)):
        emission, columns = CASES[case]
        X = np.column_stack(columns)[:50].astype(float)
        X[9, 0] = 1.0
        hmm = HCRPHMM(emission=emission, n_burnin=10, n_draws=3, random_state=0).fit(X)
        gaps = X.copy()
        gaps[[3, 4], 0] = gaps[3, at] = np.nan
        filled = hmm.impute(gaps, method=method, random_state=0)
        assert np.isnan(filled[3, 0]) == (case == "trials")
        assert 0 <= filled[4, 0] <= 60


def test_an_outlying_input_is_scored():
    u = INPUTS[:, 0].copy()
    y = u > RNG.normal(size=N)
    emission = BernoulliRegression([1])
    hmm = HCRPHMM(emission=emission, n_burnin=10, n_draws=3, random_state=0)
    hmm.fit(np.column_stack([y, u]))
    u[5] = 1e12
    log_probs = hmm.score_samples(np.column_stack([y, u]))
    assert np.isfinite(log_probs).all()
    assert -8 < log_probs[5] < -0.01
