"""Stick-breaking in threads: draws are the same for any number of threads."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from fitting.test_reproducibility import assert_same
from samplers.test_baselines import long_chain
from sklearn.base import clone
from small_models import DirichletEmission, HCRPEmission, chain_of

from skihmm import HCRPHMM
from skihmm.samplers import StickBreakingBeam, StickBreakingGibbs
from skihmm.samplers._kernels import StickBreakingKernel


def make_model(n_threads, make_sampler=StickBreakingBeam, **params):
    settings = {"n_burnin": 8, "n_draws": 4, "thin": 2, "n_chains": 2, "random_state": 0}
    sampler = make_sampler(7, 0.7, n_jobs=n_threads)
    return HCRPHMM(sampler, transitions="hcrp", **settings).set_params(**params)


def data_for(emission):
    rng = np.random.default_rng(0)
    X = (np.arange(300) // 2 % 4)[:, None] + 0.0
    if "_" in emission or emission in ("gaussian", "autoregressive"):
        X = X + rng.normal(scale=0.3, size=(300, 2))
    X[[4, 77]] = np.nan
    return X


@pytest.mark.parametrize(
    ("sampler", "emission"),
    [
        *((StickBreakingBeam, e) for e in ("hcrp", "dirichlet", "gaussian")),
        *((StickBreakingBeam, e) for e in ("diagonal_gaussian", "autoregressive")),
        *((StickBreakingGibbs, e) for e in ("hcrp", "gaussian")),
    ],
)
def test_draws_do_not_depend_on_the_number_of_threads(sampler, emission):
    X = data_for(emission)
    alone, together = (
        make_model(n_threads, sampler, emission=emission).fit(X, lengths=[120, 1, 179])
        for n_threads in (None, 3)
    )
    assert_same(together, alone)


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("beam", [False, True])
def test_long_blocks_and_many_states(n_columns, beam):
    """Slots are added during a sweep, and counts stay right."""
    for emission in (HCRPEmission(5, 2.0, 3.0), DirichletEmission(5, 0.3)):
        states = [long_chain(emission, n_columns, n_labels=60) for _ in range(2)]
        kernels = [StickBreakingKernel(beam, 9, n) for n in (1, 4)]
        for _ in range(8):
            infos = [kernel.sweep(s) for kernel, s in zip(kernels, states, strict=True)]
            assert infos[0] == infos[1]
            assert infos[0].n_accepted == infos[0].n_proposed
            assert states[0].check() is None
            np.testing.assert_array_equal(states[0].packed_labels, states[1].packed_labels)
            assert states[0].log_joint() == states[1].log_joint()


@pytest.mark.parametrize("block_size", [1, 2, 49, 50, 51, 10**15])
@pytest.mark.parametrize("sampler", [StickBreakingGibbs, StickBreakingBeam])
def test_any_block_size(sampler, block_size):
    """No step is held for ever."""
    state = long_chain(HCRPEmission(3, 2.0, 3.0), n=50)
    kernel = sampler(block_size).make_kernel(state)
    before, changed = state.packed_labels, np.zeros(50, bool)
    for _ in range(60):
        assert kernel.sweep(state)[:2] == (50, 50)
        changed |= state.packed_labels != before
        assert state.check() is None
    assert changed.all()


def draw_alike(make_kernel, block_size):
    """The share of steps with the label of their place in the next piece of their half.

    Nothing is observed, and rows are all but equal.
    """
    n = 2000
    state = chain_of(np.full((n, 1), -1), HCRPEmission(2), bits=0, alpha=1e4, gamma=30.0)
    state.start_from(np.random.default_rng(0).permutation(n) % 30)
    make_kernel(state).sweep(state)
    distance = 2 * (block_size + 1)
    return np.mean(state.packed_labels[:-distance] == state.packed_labels[distance:])


def test_pieces_have_random_numbers_of_their_own():
    assert draw_alike(StickBreakingGibbs(9).make_kernel, block_size=9) < 0.1


def test_extreme_concentrations():
    for alpha, gamma in [(1e-3, 1e-3), (1e3, 1e-3), (1e-3, 1e3), (1e3, 30.0)]:
        for emission in (HCRPEmission(4, 1e-3, 1e3), DirichletEmission(4, 1e-3)):
            state = long_chain(emission, n=40, alpha=alpha, gamma=gamma)
            for _ in range(3):
                StickBreakingKernel(True, 6).sweep(state)
                assert np.isfinite(state.log_joint())
                assert state.check() is None


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_any_backend_of_chains(sequence, backend):
    once = make_model(1).fit(sequence)
    with joblib.parallel_config(backend=backend):
        assert_same(make_model(2, n_jobs=2).fit(sequence), once)


def test_continued_fits(sequence, tmp_path):
    """By a warm start of a copy, and from a checkpoint, with other numbers of threads."""
    once = make_model(1).fit(sequence)
    model = make_model(2, n_draws=2, warm_start=True).fit(sequence)
    copy = pickle.loads(pickle.dumps(model)).set_params(sampler__n_jobs=-1)
    assert_same(copy.fit(sequence), once)
    for n_threads, n_draws in ((1, 2), (2, 4)):
        saved = make_model(n_threads, n_draws=n_draws, checkpoint=tmp_path).fit(sequence)
    assert_same(saved, once)
    assert_same(clone(saved).set_params(checkpoint=None).fit(sequence), once)


def test_whole_sequences():
    X, lengths = data_for("hcrp"), [120, 1, 60, 119]
    alone, together = (
        make_model(n, sampler__block_size=None).fit(X, lengths=lengths) for n in (None, 3)
    )
    assert_same(together, alone)
