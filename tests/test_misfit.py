"""What diagnose says of residuals, and when it is silent."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import signal

from skihmm import HCRPHMM
from skihmm._sequences import Sequences
from skihmm.emissions import AutoregressiveNormal
from skihmm.metrics._misfit import judge
from skihmm.transitions import HCRPTransitions

N = 2000
SEQUENCES = Sequences(np.empty((N, 0)), np.array([0, 1000]))


@pytest.fixture
def rng(global_random_seed):
    return np.random.default_rng(global_random_seed)


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
    found = [
        judge(np.random.default_rng(s).normal(size=N), SEQUENCES) for s in range(200)
    ]
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
    "bend": (linear("normal"), lambda rng: effect(rng, np.exp), "bend with input x1"),
    "linear": (linear("normal"), lambda rng: effect(rng, np.asarray), None),
}


def fit(emission, X, **parameters):
    parameters = {"n_burnin": 100, "n_draws": 20, "random_state": 0, **parameters}
    return HCRPHMM(emission=emission, **parameters).fit(X.reshape(N, -1))


@pytest.mark.parametrize("name", FITS)
def test_fits(name):
    """One line of a model that is wrong, at the end of the text, and none of others."""
    emission, simulate, expected = FITS[name]
    hmm = fit(emission, simulate(np.random.default_rng(0)))
    diagnosis = hmm.diagnose()
    title = "How the model is wrong:"
    if expected is None:
        assert diagnosis.misfits == []
        assert title not in str(diagnosis)
        return
    (line,) = diagnosis.misfits
    assert re.search(expected, line)
    assert " ".join(str(diagnosis).split(title)[1].split()) == "* " + line


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
