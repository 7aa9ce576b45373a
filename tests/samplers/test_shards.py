"""Stick-breaking in other processes: the draws are those of threads, bit for bit."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from emissions.test_inputs import Walk
from samplers.test_threads import data_for, make_model
from small_models import HCRPEmission, chain_of
from test_reproducibility import assert_same

from skihmm import HCRPHMM
from skihmm.emissions import ProductEmission
from skihmm.samplers import StickBreakingBeam, StickBreakingGibbs, _shards
from skihmm.samplers._stick_breaking_kernel import StickBreakingKernel

LENGTHS = [120, 1, 179]


def one_chain(n_jobs, *args, **params):
    return make_model(n_jobs, *args, n_chains=1, n_jobs=1, **params)


@pytest.fixture
def processes(monkeypatch):
    """Let samplers use two processes, for short data too; returns the shards sent."""
    sent = []
    run = _shards.Shards._run

    def spy(self, jobs, with_data):
        found = run(self, jobs, with_data)
        sent.extend((s, found[s] is not None) for s in jobs)
        return found

    monkeypatch.setattr(_shards, "LEAST_STEPS", 0)
    monkeypatch.setattr(_shards.Shards, "_run", spy)
    with joblib.parallel_config("loky"):
        yield sent


@pytest.mark.parametrize("sampler", [StickBreakingBeam, StickBreakingGibbs])
@pytest.mark.parametrize(
    "emission", ["hcrp", "dirichlet", "gaussian", "autoregressive", "gamma", "product"]
)
def test_draws_are_those_of_threads(processes, sampler, emission):
    X = data_for("gaussian" if emission in ("gamma", "product") else emission)
    if emission == "gamma":
        X = np.exp(X)
    if emission == "autoregressive":
        X = np.nan_to_num(X)  # entries that are drawn keep a chain in one process
    if emission == "product":
        X[:, 0] = np.abs(np.round(X[:, 0]))
        emission = ProductEmission([("a", "dirichlet", [0]), ("b", "gaussian", [1])])
    alone, together = (
        one_chain(n, sampler, emission=emission, init=np.arange(300) // 2 % 4)
        for n in (None, 2)
    )
    assert_same(together.fit(X, lengths=LENGTHS), alone.fit(X, lengths=LENGTHS))
    assert {s for s, _ in processes} == {0, 1}


def test_whole_sequences(processes):
    """Pieces are sequences, of which one is longer than a shard."""
    X, lengths = data_for("hcrp"), [20, 1, 30, 249]
    alone, together = (one_chain(n, sampler__block_size=None) for n in (None, 2))
    assert_same(together.fit(X, lengths=lengths), alone.fit(X, lengths=lengths))
    assert {s for s, _ in processes} == {0}


def test_emissions_in_python(processes):
    X = data_for("gaussian")[:, :1]
    alone, together = (one_chain(n, emission=Walk(), n_burnin=1) for n in (None, 2))
    assert_same(together.fit(X), alone.fit(X))
    assert processes


def test_known_states_stay_here(processes):
    X, states = data_for("hcrp"), np.full(300, -1)
    states[[3, 100]] = 0, 1
    alone, together = (one_chain(n) for n in (None, 2))
    assert_same(together.fit(X, states=states), alone.fit(X, states=states))
    assert not processes


def test_short_data_stay_here(processes, monkeypatch):
    monkeypatch.setattr(_shards, "LEAST_STEPS", 301)
    one_chain(2).fit(data_for("hcrp"))
    assert not processes


def test_a_process_without_the_data_asks_for_them(processes, monkeypatch):
    """Under a new name in every sweep a shard is unknown everywhere."""
    X, run = data_for("hcrp"), _shards.Shards._run

    def run_renamed(self, jobs, with_data):
        if not with_data:
            self._name += "x"
        return run(self, jobs, with_data)

    monkeypatch.setattr(_shards.Shards, "_run", run_renamed)
    assert_same(one_chain(2).fit(X), one_chain(None).fit(X))
    asked, drawn = processes.count((1, False)), processes.count((1, True))
    # Every sweep but the first, which sends the data at once.
    assert drawn == asked + 1 == 16


class Broken:
    """Shards that fail in the n-th call."""

    def __init__(self, n):
        self.n = n

    def draw(self, sweep, pieces, labels):
        self.n -= 1
        if self.n == 0:
            raise RuntimeError("a worker has died")


@pytest.mark.parametrize(("beam", "n"), [(True, 1), (False, 1), (False, 2)])
def test_errors_leave_the_chain_as_it_was(beam, n):
    codes = np.random.default_rng(0).integers(4, size=(200, 1))
    state = chain_of(codes, HCRPEmission(4), bits=0)
    state.start_from(np.arange(200) % 7)
    before = state.canonicalise()
    kernel = StickBreakingKernel(beam, 9, 1, state.emission, Broken(n))
    with pytest.raises(RuntimeError, match="a worker has died"):
        kernel.sweep(state)
    assert state.check() is None
    np.testing.assert_array_equal(state.to_arrays()["states"], before["states"])
    kernel.sweep(state)
    assert state.check() is None


def test_a_fit_that_fails_keeps_the_earlier_one(processes, monkeypatch):
    X = data_for("hcrp")
    model = one_chain(2).fit(X)
    before = model.draws_.lp.copy()

    def fail(*args, **kwargs):
        raise RuntimeError("a worker has died")

    monkeypatch.setattr(_shards.Shards, "_run", fail)
    with pytest.raises(RuntimeError, match="a worker has died"):
        model.set_params(random_state=1).fit(X)
    assert model.draws_.lp.tobytes() == before.tobytes()


def test_processes_forget_old_chains(monkeypatch):
    monkeypatch.setattr(_shards, "_shards", type(_shards._shards)())
    codes = np.zeros((10, 1), dtype=np.int32)
    emission = HCRPHMM(n_burnin=0, n_draws=1).fit([[0], [1]] * 5).emission_
    first = np.zeros(11, dtype=np.uint8)

    class Shard:
        def __init__(self, stats, first, start):
            self.start = start

        def draw(self, value):
            return self.start + value

    monkeypatch.setattr(_shards, "StickBreakingShard", Shard)
    for name in "abcdef":
        assert _shards._draw_pieces(name, 0, (1,), emission, codes, first, 5) == 6
    assert list(_shards._shards) == list("cdef")
    assert _shards._draw_pieces("c", 0, (2,)) == 7
    assert _shards._draw_pieces("c", 1, (2,)) is None
    assert _shards._draw_pieces("b", 0, (2,)) is None
