"""What diagnose says of residuals, and when it is silent."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import signal

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm.emissions import AutoregressiveNormal, NormalInverseGamma, ProductEmission
from skihmm.metrics import _misfit
from skihmm.metrics._misfit import judge, judge_dispersion
from skihmm.metrics._structure import correlated_columns, unnamed_subjects
from skihmm.transitions import HCRPTransitions

N = 2000
SEQUENCES = Sequences(np.empty((N, 0)), np.array([0, 1000]))


def autoregression(rng, rho):
    return signal.lfilter([1.0], [1.0, -rho], rng.normal(size=N))


RESIDUALS = {
    "tails": lambda rng: rng.standard_t(5, N),
    "skew": lambda rng: rng.gamma(8, size=N),
    "memory": lambda rng: autoregression(rng, 0.3),
    "spread": lambda rng: rng.normal(size=N) * np.linspace(0.6, 1.2, N),
}


@pytest.mark.parametrize("kind", RESIDUALS)
def test_kinds_of_residuals(kind):
    for seed in range(5):
        residuals = RESIDUALS[kind](np.random.default_rng(seed))
        residuals[::50] = np.nan
        assert list(judge(residuals, SEQUENCES)) == [kind]


def test_silence_of_normal_residuals():
    found = [judge(np.random.default_rng(s).normal(size=N), SEQUENCES) for s in range(200)]
    assert not any(found)


def test_memory_does_not_reach_into_another_sequence(rng):
    residuals = rng.normal(size=N)
    residuals[1::2] = 0.6 * residuals[::2] + 0.8 * residuals[1::2]
    pairs = Sequences(SEQUENCES.codes, np.arange(1, N, 2))
    assert "memory" in judge(residuals, SEQUENCES)
    assert "memory" not in judge(residuals, pairs)


def levels(rng):
    return 2.5 * (np.cumsum(rng.random(N) < 0.02) % 2)


def effect(rng, shape):
    u = rng.normal(size=N)
    return np.c_[shape((0.6 - 0.48 * levels(rng)) * u + 0.3 * rng.normal(size=N)), u]


def clusters(rng, transmat):
    """Rows about six centres, one for each state of a chain that does not stay."""
    path = np.zeros(N, dtype=int)
    for t in range(1, N):
        path[t] = rng.choice(6, p=transmat[path[t - 1]])
    return rng.normal(0, 5, (6, 2))[path] + 0.7 * rng.normal(size=(N, 2))


def overdispersed(rng):
    return rng.poisson(np.exp(1 + levels(rng)) * rng.gamma(3, 1 / 3, N))


def linear(noise):
    return AutoregressiveNormal(0, input_features=[1], noise=noise)


FITS = {
    "right": ("gaussian", lambda rng: levels(rng) + rng.normal(size=N), None),
    "tails": ("gaussian", lambda rng: levels(rng) + rng.standard_t(3, N) / 2, "student"),
    "skew": ("gaussian", lambda rng: levels(rng) + rng.gamma(2, size=N), "are skewed"),
    "memory": (
        "gaussian",
        lambda rng: levels(rng) + autoregression(rng, 0.6),
        'correlated at lag 1, .*"autoregressive"',
    ),
    "zeros": (
        "poisson",
        lambda rng: rng.poisson(5 + 4 * levels(rng)) * (rng.random(N) > 0.2),
        r"low at zeros, of which there are \d+% and [01]% expected",
    ),
    "dispersion": (
        "poisson",
        lambda rng: rng.poisson(rng.gamma(3, (4 + 4 * levels(rng)) / 3)),
        r'vary more than the noise, standard deviation 1\.\d: try .*"negative_binomial"',
    ),
    "bend": (linear("normal"), lambda rng: effect(rng, np.exp), "bend with input x1"),
    "linear": (linear("normal"), lambda rng: effect(rng, np.asarray), None),
    # States that change at every step, or depend little on the last one, are not noise.
    "alternating": ("gaussian", lambda rng: clusters(rng, (1 - np.eye(6)) / 5), None),
    "weakly dependent": ("gaussian", lambda rng: clusters(rng, rng.dirichlet(np.ones(6), 6)), None),
}


def fit(emission, X, **parameters):
    parameters = {"n_burnin": 100, "n_draws": 20, "random_state": 0, **parameters}
    return HCRPHMM(emission=emission, **parameters).fit(X.reshape(N, -1))


@pytest.mark.parametrize("name", FITS)
def test_fits(name):
    """One line of a model that is wrong, in the text, and none of others."""
    emission, simulate, expected = FITS[name]
    X = simulate(np.random.default_rng(0)).reshape(N, -1)
    hmm = fit(emission, X)
    diagnosis = hmm.diagnose()
    title = "How the model is wrong:"
    if expected is None:
        assert diagnosis.misfits == []
        assert title not in str(diagnosis)
        return
    (line,) = diagnosis.misfits
    assert re.search(expected, line)
    if diagnosis.warnings:  # Of labels that still move the text says nothing else.
        assert title not in str(diagnosis)
        diagnosis = hmm.set_params(**diagnosis.suggested_params).fit(X).diagnose()
        (line,) = diagnosis.misfits
        assert re.search(expected, line)
    shown = " ".join(str(diagnosis).split(title)[1].split())
    assert shown.startswith(f"* {line} Number of states: ")


def test_states_that_are_noise_hide_it(monkeypatch):
    """Counts with more variance than Poisson ones: states describe it, regimes do not."""
    hmm = fit("poisson", overdispersed(np.random.default_rng(0)))
    assert hmm.n_states_ > hmm.find_regimes().n_regimes_ == 2
    assert hmm.diagnose().misfits
    joined = hmm.residuals(hmm._fitted.sequences.codes, join_states=True)
    assert joined.std() > 1.3
    monkeypatch.setattr(_misfit, "why_no_regimes", lambda draw: "as before")
    assert hmm.diagnose().misfits == []


def test_priors_of_dwell_times_that_do_not_suit():
    rng = np.random.default_rng(0)
    X = 6 * (np.arange(N) // 4 % 2) + rng.normal(size=N)
    transitions = HCRPTransitions(stay_prior=(1e5, 1e3))
    (line,) = fit("gaussian", X, transitions=transitions).diagnose().misfits[-1:]
    assert re.match(r"States change 2\d\d times, where \d\d times are expected", line)


@pytest.mark.parametrize("kind", ["half", "all", "two values"])
def test_residuals_of_constant_sequences(kind):
    residuals = np.random.default_rng(0).normal(size=N)
    if kind == "half":
        residuals[:1000] = 0.1
    elif kind == "all":
        residuals[:] = 0.1
    else:
        residuals = np.tile([-1.0, 1.0], N // 2)
    with np.errstate(all="raise"):
        judge(residuals, SEQUENCES)


def test_zeros_are_no_dispersion():
    """Zeros that are too many lower the mean, by which the others are judged."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for z in (0.0, 0.2, 0.5):
            counts = rng.poisson(10, N) * (rng.random(N) >= z)
            mean = 10 * (1 - z)
            residuals = (counts - mean) / np.sqrt(mean)
            assert judge_dispersion(counts, np.zeros(N) + np.exp(-mean), residuals) == {}
        counts = rng.poisson(rng.gamma(3, 10 / 3, N))
        residuals = (counts - 10) / np.sqrt(10)
        (words,) = judge_dispersion(counts, np.zeros(N), residuals).values()
        assert "standard deviation 2." in words[1]


def test_clusters_are_not_the_shape_of_noise():
    """Three of them in turn at random: firm states, which are one regime."""
    rng = np.random.default_rng(0)
    X = np.array([[0, 0], [6, 6], [-6, 6]])[rng.integers(3, size=N)]
    # With seed 0 clusters of k-means are 4 nats ahead of all draws.
    hmm = HCRPHMM(emission="diagonal_gaussian", n_burnin=100, n_draws=20, random_state=1)
    hmm.fit(X + rng.normal(size=(N, 2)))
    found = hmm.diagnose()
    assert (found.misfits, found.warnings) == ([], [])
    assert found.firm > 0.99


# -- subjects that are not named


def sequences_of(rng, n_sequences, n_states, dwell, n_steps=200):
    """Path of several sequences, each of which begins anywhere."""
    starts = np.arange(n_sequences) * n_steps
    changes = rng.random(n_sequences * n_steps) < 1 / dwell
    changes[starts] = True
    visits = rng.integers(n_states, size=changes.sum())
    return visits[np.cumsum(changes) - 1], starts


@pytest.mark.parametrize(("n_sequences", "n_steps"), [(8, 200), (10, 200), (40, 30)])
def test_states_of_all_sequences_are_no_subjects(n_sequences, n_steps):
    """Nor are few long visits, each of which is in one sequence."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        for dwell in (5, 40, 400):
            path, starts = sequences_of(rng, n_sequences, 6, dwell, n_steps)
            assert unnamed_subjects(path, starts) is None


def test_states_of_few_sequences_are_subjects(rng):
    path, starts = sequences_of(rng, 8, 3, 20)
    own = path + 3 * (np.arange(len(path)) // 200)
    text = unnamed_subjects(own, starts)
    assert re.match(r"2\d of 2\d states occur in less than a third of the 8 seq", text)
    assert "name them (subject_feature)" in text
    # Of fewer sequences nothing is said, and states that half of them share are no news.
    assert unnamed_subjects(own[:600], starts[:3]) is None
    assert unnamed_subjects(path + 3 * (np.arange(len(path)) // 800), starts) is None


def test_subjects_without_names():
    rng = np.random.default_rng(0)
    z, _ = sequences_of(rng, 8, 3, 20)
    which = np.arange(len(z)) // 200
    X = np.array([[0, 0], [5, 0], [0, 5]])[z] + 0.7 * rng.normal(size=(len(z), 2))
    shifted = X + 1.5 * rng.normal(size=(8, 2))[which]
    hmm = HCRPHMM(emission="gaussian", n_burnin=100, n_draws=20, random_state=0)
    found = hmm.fit(shifted, groups=which).diagnose()
    assert "name them (subject_feature)" in found.misfits[0]
    assert found.verdict.startswith("Labels are firm, but the model does not fit the data")
    assert hmm.fit(X, groups=which).diagnose().misfits == []


@pytest.mark.parametrize("scale", [False, True])
def test_subjects_with_names(scale):
    """States that differ by subject are said of the columns with offsets, not to be named."""
    rng = np.random.default_rng(0)
    z, _ = sequences_of(rng, 8, 3, 20)
    which = np.arange(len(z)) // 200
    levels = 6 * rng.normal(size=(8, 3, 1))
    frame = pd.DataFrame(
        {
            "x": levels[which, z][:, 0] + 0.5 * rng.normal(size=len(z)),
            "y": z + 0.3 * rng.normal(size=len(z)),
            "who": which,
        }
    )
    emission = ProductEmission(
        [
            ("y", NormalInverseGamma(), ["y"]),
            ("x", NormalInverseGamma(subject_feature="who", subject_scale=scale), ["x"]),
        ]
    )
    hmm = HCRPHMM(emission=emission, n_burnin=60, n_draws=10, random_state=0)
    (found,) = hmm.fit(frame, groups=which).diagnose().misfits[:1]
    effects = "an offset and a scale" if scale else "an offset"
    assert found.endswith(f"8 subjects: subjects differ by more than {effects} of column x.")
    frame["x"] = 3.0 * z + 4 * rng.normal(size=8)[which] + 0.5 * rng.normal(size=len(z))
    assert hmm.fit(frame, groups=which).diagnose().misfits == []


def test_levels_without_noise_have_no_shape():
    """A column with a value for each state is not judged, the column beside it is."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(600) < 1 / 30) % 2
    exact = np.array([1.0, 5.0])[z]
    emission = NormalInverseGamma(resolution=None)
    hmm = HCRPHMM(emission=emission, transitions="sticky", n_burnin=60, n_draws=10, random_state=0)
    assert hmm.fit(exact[:, None]).diagnose().misfits == []
    both = np.column_stack([exact, 5 * z + rng.exponential(size=600)])
    (found,) = hmm.fit(both).diagnose().misfits
    assert "of column x1 are skewed" in found


# -- correlated columns


def test_correlation_within_states(rng):
    z = rng.integers(3, size=N)
    X = 4 * z[:, None] * np.array([1, -1, 1]) + rng.normal(size=(N, 3))
    X[::7, 1] = np.nan
    # Between states all columns are.
    assert correlated_columns(X, z) is None
    X[:, 2] += 2 * X[:, 1] - 2 * np.where(z, -4.0 * z, 0)
    rho, a, b = correlated_columns(X, z)
    assert (a, b) == (1, 2)
    assert rho == pytest.approx(2 / np.sqrt(5), abs=0.05)
    # Few rows, and constant columns, say nothing.
    assert correlated_columns(X[:80], z[:80]) is None
    X[:, 1] = 1.0
    assert correlated_columns(X[:, :2], z) is None


def test_columns_that_a_model_takes_as_independent():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(N, 2)) @ [[1, 0.8], [0, 0.6]]
    X = levels(rng)[:, None] * [1.6, -1.6] + noise
    hmm = HCRPHMM(emission="diagonal_gaussian", n_burnin=100, n_draws=20, random_state=0)
    (line,) = hmm.fit(X).diagnose().misfits
    assert re.match(r"Columns x0 and x1 are correlated within states, 0\.[78]\d, ", line)
    assert 'try "gaussian"' in line
    assert hmm.set_params(emission="gaussian").fit(X).diagnose().misfits == []
