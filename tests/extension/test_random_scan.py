"""A sampler written in Python: exact, and at home in the estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from reference.enumeration import GaussianEmission
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from small_models import COLUMNS, MODELS, Model, assert_caught, assert_exact

from extension.random_scan import RandomScanGibbs
from skihmm import HCRPHMM
from skihmm.samplers import BaseSampler, StepwiseGibbs

GAUSSIAN = {
    "Gaussian": Model(
        (0.1, 0.2, None, 1.5, 0.15),
        GaussianEmission(0.3, 0.5, 2.0, 0.02),
        (0, 3),
        2.0,
        2.0,
    )
}


class SequentialBlocks(BaseSampler):
    """Proposes two or three steps at once, one after the other."""

    releases_gil = False

    def __init__(self, uses_ratio=True):
        self.uses_ratio = uses_ratio

    def make_kernel(self, state):
        return self

    @staticmethod
    def log_q(move, start, path):
        """Log probability of proposing a path."""
        total = 0.0
        for i, label in enumerate(path):
            log_w = move.log_weights(start + i, path[:i])
            total += log_w[label] - np.logaddexp.reduce(log_w)
        return total

    def sweep(self, state):
        n_accepted = 0
        for _ in range(2):
            length = int(state.stream.generator.integers(2, 4))
            start = int(state.stream.generator.integers(state.n_steps))
            stop = min(start + length, state.n_steps)
            try:
                block = state.move(start, stop)
            except ValueError:  # two sequences
                stop = start + 1
                block = state.move(start, stop)
            with block as move:
                move.remove()
                path = []
                for t in range(start, stop):
                    path.append(state.stream.categorical(move.log_weights(t, path)))
                ratio = self.log_q(move, start, move.old) - self.log_q(move, start, path)
                move.add(path)
                n_accepted += move.accept(ratio if self.uses_ratio else 0.0)
        return 2, n_accepted


class Ungated(RandomScanGibbs):
    """Takes the proposal for the conditional law itself."""

    def sweep(self, state):
        n_accepted = 0
        for t in state.stream.generator.permutation(state.n_steps):
            with state.move(t, t + 1) as move:
                move.remove()
                move.add([state.stream.categorical(move.log_weights(t))])
                n_accepted += move.accept(1e6)
        return state.n_steps, n_accepted


MODELS_HERE = {
    name: (MODELS | COLUMNS | GAUSSIAN)[name]
    for name in (
        "one sequence",
        "two sequences",
        "missing",
        "small concentrations",
        "large concentrations",
        "self-transitions",
        "sequences of one step",
        "one step",
        "two columns",
        "Gaussian",
    )
}


@pytest.mark.parametrize("name", MODELS_HERE)
def test_enumeration(name):
    found = assert_exact(MODELS_HERE[name], RandomScanGibbs, n_sweeps=4000)
    assert name == "one step" or found.acceptance < 1.0


@pytest.mark.parametrize("name", ["one sequence", "two sequences", "missing", "Gaussian"])
def test_blocks_in_python(name):
    found = assert_exact(MODELS_HERE[name], SequentialBlocks, n_sweeps=2000)
    assert found.acceptance < 0.98


@pytest.mark.parametrize(
    "make_kernel", [Ungated, lambda: SequentialBlocks(uses_ratio=False)]
)
def test_a_wrong_ratio_is_noticed(make_kernel):
    assert_caught(MODELS["two sequences"], make_kernel)


# -- in the estimator -----------------------------------------------------------------

PARAMS = {"n_burnin": 4, "n_draws": 3, "thin": 2, "n_particles": 5, "random_state": 0}


def test_fit(sequence):
    model = HCRPHMM(sampler=RandomScanGibbs(), n_chains=2, **PARAMS).fit(sequence)
    assert isinstance(model.sampler_, RandomScanGibbs)
    assert (
        (model.draws_.acceptance_rate > 0.5) & (model.draws_.acceptance_rate <= 1)
    ).all()
    assert np.isfinite(model.score(sequence))
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(sequence), model.predict(sequence))
    again = copy.set_params(warm_start=True, n_draws=2).fit(sequence)
    at_once = clone(model).set_params(n_draws=5).fit(sequence)
    np.testing.assert_array_equal(again.draws_.states, at_once.draws_.states)


def test_chains_run_as_processes(sequence, monkeypatch):
    """And give what they give one after the other."""
    seen = []
    from skihmm import _fit

    class Parallel(_fit.Parallel):
        def __init__(self, *args, prefer, **kwargs):
            seen.append(prefer)
            super().__init__(*args, prefer=prefer, **kwargs)

    monkeypatch.setattr(_fit, "Parallel", Parallel)
    alone = HCRPHMM(sampler=RandomScanGibbs(), n_chains=2, **PARAMS).fit(sequence)
    both = clone(alone).set_params(n_jobs=2).fit(sequence)
    np.testing.assert_array_equal(alone.draws_.states, both.draws_.states)
    np.testing.assert_array_equal(alone.draws_.lp, both.draws_.lp)
    HCRPHMM(sampler=StepwiseGibbs(), **PARAMS).fit(sequence)
    assert seen == ["processes", "processes", "threads"]


def test_known_states(sequence):
    states = np.where(np.arange(len(sequence)) < 6, np.arange(len(sequence)) % 3, -1)
    model = HCRPHMM(sampler=RandomScanGibbs(), **PARAMS).fit(sequence, states=states)
    assert (model.draws_.states[..., :6] == states[:6]).all()


def test_grid_search(sequence):
    search = GridSearchCV(
        HCRPHMM(sampler=RandomScanGibbs(), **PARAMS),
        {"sampler__fraction": [0.2, 1.0]},
        cv=GroupKFold(2),
    )
    search.fit(sequence, groups=np.arange(len(sequence)) // 20)
    assert search.best_params_["sampler__fraction"] in (0.2, 1.0)
    with pytest.raises(ValueError, match="fraction=2; expected 0 < fraction <= 1"):
        HCRPHMM(sampler=RandomScanGibbs(2), **PARAMS).fit(sequence)
