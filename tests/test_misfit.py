"""What diagnose says of residuals, and when it is silent."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import signal

from skihmm import HCRPHMM
from skihmm._sequences import Sequences
from skihmm.emissions import AutoregressiveNormal
from skihmm.metrics import _misfit
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
    "bend": (linear("normal"), lambda rng: effect(rng, np.exp), "bend with input x1"),
    "linear": (linear("normal"), lambda rng: effect(rng, np.asarray), None),
    # States that change at every step, or depend little on the last one, are not noise.
    "alternating": ("gaussian", lambda rng: clusters(rng, (1 - np.eye(6)) / 5), None),
    "weakly dependent": (
        "gaussian",
        lambda rng: clusters(rng, rng.dirichlet(np.ones(6), 6)),
        None,
    ),
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


def test_states_that_are_noise_hide_it(monkeypatch):
    """Counts with more variance than Poisson ones: states describe it, regimes do not."""
    hmm = fit("poisson", overdispersed(np.random.default_rng(0)))
    assert hmm.n_states_ > hmm.find_regimes().n_regimes_ == 2
    assert hmm.diagnose().misfits
    joined = hmm.residuals(hmm._fit_state.sequences.codes, join_states=True)
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
