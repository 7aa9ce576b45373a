"""Drawn parameters and their intervals: means, coverage, formats."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from emissions.test_quantiles import DISCRETE, NUMBERS, REAL, SYMBOLS, fit

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal, ProductEmission
from skihmm.posterior import draw_parameters, parameter_intervals
from skihmm.posterior._parameters import sampled_parameters
from skihmm.transitions import HCRPTransitions

MODELS = {
    **{name: model[:2] for name, model in {**REAL, **DISCRETE}.items()},
    "two columns": ("gaussian", NUMBERS),
    "independent columns": ("diagonal_gaussian", NUMBERS),
    "autoregression of two": (AutoregressiveNormal(2), NUMBERS),
}


@pytest.mark.parametrize("name", MODELS)
def test_drawn_parameters_are_around_their_means(name):
    hmm = fit(*MODELS[name])
    n, means = 150, draw_parameters(hmm)
    # Tails are heavy where a state has few rows.
    large = np.flatnonzero(np.bincount(hmm.labels_) >= 20)
    drawn = [draw_parameters(hmm, method="sample", random_state=i) for i in range(n)]
    pairs = [([p.transmat_[large] for p in drawn], means.transmat_[large])]
    pairs.append(([p.startprob_ for p in drawn], means.startprob_))
    assert means.emission_.state_parameters or means.emission_.is_categorical
    for key, parameter in means.emission_.state_parameters.items():
        each = [p.emission_.state_parameters[key].values[large] for p in drawn]
        pairs.append((each, parameter.values[large]))
    for each, expected in pairs:
        deviation = np.std(each, axis=0)
        assert (deviation > 0).any()
        off = np.abs(np.mean(each, axis=0) - expected)
        # Small probabilities are nearly always zero.
        assert (off <= 5 * deviation / np.sqrt(n) + 0.003).all()


def simulated(seed):
    """Two states that are far apart, and their parameters."""
    rng = np.random.default_rng(seed)
    stay, n = np.array([0.9, 0.8]), 250
    states = np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = states[t - 1] ^ (rng.random() > stay[states[t - 1]])
    means, deviations = np.array([0.0, 12.0]), np.array([1.0, 2.0])
    X = rng.normal(means[states], deviations[states])[:, None]
    return X, states, means, deviations**2, stay


def covered(seed, transitions):
    """Whether true values are inside of intervals of 90 per cent."""
    X, states, means, variances, stay = simulated(seed)
    hmm = HCRPHMM("auto", "gaussian", transitions, n_burnin=30, n_draws=30, thin=1)
    hmm.set_params(init=states, random_state=seed).fit(X)
    order = np.argsort(hmm.emission_.means_[:, 0])[[0, -1]]
    found = sampled_parameters(hmm._fitted, 200, hmm.random_state)
    pairs = (("means_", means), ("covariances_", variances), ("stayprob_", stay))
    inside = []
    for name, true in pairs:
        low, high = np.nanquantile(found[name], [0.05, 0.95], axis=0).reshape(2, -1)
        inside += [(low[order] < true) & (true < high[order])]
    return inside


@pytest.mark.statistical
@pytest.mark.parametrize("transitions", [pytest.param("hcrp", marks=pytest.mark.slow), "sticky"])
def test_intervals_cover_the_truth(transitions):
    inside = np.array([covered(seed, transitions) for seed in range(40)])
    # 240 values: a standard error of two per cent.
    assert 0.84 < inside.mean() < 0.96


def test_intervals_are_a_frame_or_arrays(monkeypatch):
    parts = [("s", "hcrp", [2]), ("x", "gaussian", [0, 1])]
    hmm = fit(ProductEmission(parts), np.hstack([NUMBERS, SYMBOLS]))
    frame = parameter_intervals(hmm, 0.8, n_samples=50)
    assert list(frame.columns[:3]) == ["parameter", "state", "name"]
    assert (frame["lower"] <= frame["upper"]).all()
    names = ["transmat_", "stayprob_", "x__means_", "x__covariances_"]
    assert list(frame["parameter"].unique()) == names
    sums = frame[frame["parameter"] == "transmat_"].groupby("state")["mean"].sum()
    np.testing.assert_allclose(sums, 1.0)
    real = importlib.import_module

    def without(name):
        if name == "pandas":
            raise ImportError
        return real(name)

    monkeypatch.setattr("skihmm.posterior._parameters.import_module", without)
    arrays = parameter_intervals(hmm, 0.8, n_samples=50)
    assert list(arrays) == names
    n = hmm.n_states_
    assert arrays["x__covariances_"].shape == (3, n, 2, 2)
    stays = frame[frame["parameter"] == "stayprob_"]
    np.testing.assert_array_equal(arrays["stayprob_"], stays[["mean", "lower", "upper"]].T)


@pytest.mark.parametrize(
    ("emission", "columns", "parameter", "names"),
    [
        ("gaussian", "yz", "means_", ["y mean", "z mean"]),
        ("gaussian", "yz", "covariances_", ["y", "y, z", "z, y", "z"]),
        (
            AutoregressiveNormal(2, input_features=["u"]),
            "yzu",
            "coefficients_",
            [
                *("y lag 1", "y by z lag 1", "y by y lag 2", "y by z lag 2", "y by u"),
                *("z by y lag 1", "z lag 1", "z by y lag 2", "z by z lag 2", "z by u"),
            ],
        ),
        (
            ProductEmission([("a", "gaussian", ["u"]), ("b", "gaussian", ["z", "y"])]),
            "yzu",
            "b__covariances_",
            ["z", "z, y", "y, z", "y"],
        ),
    ],
)
def test_numbers_have_names(emission, columns, parameter, names):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("yzu"))
    transitions = HCRPTransitions(input_features=["u"]) if names[0] == "y lag 1" else "hcrp"
    settings = {"n_burnin": 2, "n_draws": 3, "random_state": 0}
    model = HCRPHMM(emission=emission, transitions=transitions, **settings)
    found = parameter_intervals(model.fit(X[list(columns)]), n_samples=10)
    own = found[(found["parameter"] == parameter) & (found["state"] == 0)]
    assert own["name"].tolist() == names
    n = model.n_states_
    to = found[(found["parameter"] == "transmat_") & (found["state"] == 0)]["name"].tolist()
    assert to == [*(f"to state {k}" for k in range(n)), "to a new state"]
    if transitions != "hcrp":
        stays = found[found["parameter"] == "stay_coefficients_"]
        assert stays["name"].tolist() == ["by u"] * n


def test_errors_of_drawn_parameters():
    X = np.hstack([NUMBERS[:, :1], SYMBOLS])
    transitions = HCRPTransitions(context_features=[1])
    hmm = HCRPHMM("auto", "gaussian", transitions, n_burnin=2, n_draws=2).fit(X)
    with pytest.raises(ValueError, match='expected method="mean"'):
        draw_parameters(hmm, method="sample")
    hmm = fit("gaussian", NUMBERS)
    with pytest.raises(ValueError, match="method='mode'"):
        draw_parameters(hmm, method="mode")
    with pytest.raises(ValueError, match=r"probability=1.5"):
        parameter_intervals(hmm, 1.5)


def test_there_may_be_no_coefficients():
    emission = AutoregressiveNormal(0)
    hmm = HCRPHMM(emission=emission, n_burnin=5, n_draws=5, random_state=0).fit(NUMBERS)
    found = parameter_intervals(hmm, n_samples=10)
    names = set(found["parameter"]) if hasattr(found, "columns") else set(found)
    assert "intercepts_" in names
    assert "coefficients_" not in names
