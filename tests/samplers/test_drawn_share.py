"""Sweeps of blocks that draw the parameters, in turn with sweeps that do not."""

from __future__ import annotations

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm.emissions import BernoulliRegression, NormalInverseGamma
from skihmm.samplers import BlockedGibbs, _blocked
from skihmm.samplers._kernels import MixedKernel
from skihmm.transitions import HCRPTransitions


@pytest.fixture
def rows():
    noise = np.random.default_rng(0).normal(size=(120, 2))
    return noise + 4 * np.repeat(np.arange(6) % 2, 20)[:, None]


@pytest.fixture
def is_mixed(monkeypatch):
    """The answers of all kernels that are made: whether they draw parameters."""
    answers = []
    make_kernel = BlockedGibbs.make_kernel

    def recorded(self, state):
        kernel = make_kernel(self, state)
        answers.append(isinstance(kernel, MixedKernel))
        return kernel

    monkeypatch.setattr(BlockedGibbs, "make_kernel", recorded)
    return answers


def fitted(X, **params):
    short = {"n_burnin": 4, "n_draws": 2, "init": "single", "random_state": 0}
    return HCRPHMM(**{**short, "emission": "gaussian", **params}).fit(X)


def test_long_data_draw_parameters(rows, is_mixed, monkeypatch):
    fitted(rows)
    monkeypatch.setattr(_blocked, "LONG", 120)
    fitted(rows)
    assert is_mixed == [False, True]


@pytest.mark.parametrize(
    "params",
    [
        {"transitions": "sticky"},
        {"transitions": HCRPTransitions(context_features=[1])},
        {"emission": BernoulliRegression(input_features=[1])},
    ],
    ids=["stays", "contexts", "no densities"],
)
def test_models_without_parameters_to_draw(rows, is_mixed, monkeypatch, params):
    rows = np.round(rows > 2).astype(float) if "emission" in params else rows.round()
    monkeypatch.setattr(_blocked, "LONG", 120)
    fitted(rows, sampler=BlockedGibbs(10, drawn_share="auto"), **params)
    assert is_mixed == [False]
    what = r"drawn_share=0\.5"
    with pytest.raises(TypeError, match=what):
        fitted(rows, sampler=BlockedGibbs(10, drawn_share=0.5), **params)


def test_both_kinds_of_sweeps(rows):
    sampler = BlockedGibbs(10, drawn_share=0.5)
    hmm = fitted(rows, sampler=sampler, n_draws=40, thin=1, emission=NormalInverseGamma())
    # Sweeps with drawn parameters reject nothing and propose every step.
    rates = hmm.draws_.acceptance_rate[0]
    assert (rates == 1).any()
    assert (rates < 1).any()
