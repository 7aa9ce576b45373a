"""A sampler written in Python: exact, and at home in the estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from small_models import MODELS, assert_caught

from extension.random_scan import RandomScanGibbs, SequentialBlocks
from extension.seasonal import SeasonalGibbs
from skihmm import HCRPHMM
from skihmm.samplers import StepwiseGibbs


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


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", [Ungated(), SequentialBlocks(uses_ratio=False)])
def test_a_wrong_ratio_is_noticed(sampler):
    assert_caught(sampler.make_kernel, MODELS["two sequences"], n_sweeps=400)


# -- in the estimator -----------------------------------------------------------------

PARAMS = {"n_burnin": 4, "n_draws": 3, "thin": 2, "n_particles": 5, "random_state": 0}


def test_fit(sequence):
    model = HCRPHMM(sampler=RandomScanGibbs(), n_chains=2, **PARAMS).fit(sequence)
    assert isinstance(model.sampler_, RandomScanGibbs)
    assert ((model.draws_.acceptance_rate > 0.5) & (model.draws_.acceptance_rate <= 1)).all()
    assert np.isfinite(model.score(sequence))
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(sequence), model.predict(sequence))
    again = copy.set_params(warm_start=True, n_draws=2).fit(sequence)
    at_once = clone(model).set_params(n_draws=5).fit(sequence)
    np.testing.assert_array_equal(again.draws_.states, at_once.draws_.states)


def test_proposals_read_the_labels_of_other_steps():
    """Those one season before and after the step."""
    season = np.tile(np.repeat([[0], [1], [2]], 4, axis=0), (10, 1))
    model = HCRPHMM(sampler=SeasonalGibbs(period=12), **PARAMS).fit(season)
    assert model.draws_.acceptance_rate.mean() > 0.5
    np.testing.assert_array_equal(model.predict(season)[12:], model.predict(season)[:-12])


def test_chains_run_as_processes(sequence, monkeypatch):
    """And give what they give one after the other."""
    seen = []
    from skihmm._fitting import fit as _fit

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
