"""Further sequences for a fitted model: `partial_fit`."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from reference.enumeration import DirichletEmission, Posterior, canonical
from sklearn.base import clone

from skihmm import HCRPHMM
from skihmm.datasets import make_repeating_sequence
from skihmm.emissions import (
    DirichletCategorical,
    HCRPCategorical,
    NormalInverseGamma,
    ProductEmission,
)
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 10, "n_draws": 4, "thin": 2, "n_particles": 20, "random_state": 0}


def as_codes(*parts):
    return [np.array(part)[:, None] for part in parts]


@pytest.mark.statistical
@pytest.mark.parametrize(
    "sampler",
    ["auto", *(pytest.param(s, marks=pytest.mark.slow) for s in ("beam", "stick_breaking"))],
)
def test_the_posterior_is_that_of_all_data(sampler):
    one, two, three = as_codes((0, 1, 0), (1, 1), (0,))
    emission = DirichletCategorical(0.5, categories=[[0, 1]], handle_unknown="missing")
    hmm = HCRPHMM(
        sampler,
        emission,
        HCRPTransitions(alpha=2.0, concentration_prior=None),
        n_burnin=20,
        n_draws=10,
        thin=2,
        n_particles=5,
        random_state=0,
    )
    # Sequences with lengths are never continued.
    hmm.partial_fit(one, lengths=[3])
    hmm.partial_fit(two, lengths=[2])
    with pytest.warns(UserWarning, match="X has 1 sequence in 1 row"):
        hmm.set_params(n_draws=10_000).partial_fit(three, lengths=[1])
    exact = Posterior(
        (0, 1, 0, 1, 1, 0), DirichletEmission(2, 0.5), (0, 3, 5), 2.0, 1.0
    ).probabilities
    found = Counter(canonical(path) for path in hmm.draws_.states[0].tolist())
    distance = 0.5 * sum(abs(found[x] / 10_000 - p) for x, p in exact.items())
    # 10,000 independent draws over 203 partitions have 0.035 on average.
    assert distance < 0.06
    # The posterior of one sequence of six steps is further away.
    glued = Posterior((0, 1, 0, 1, 1, 0), DirichletEmission(2, 0.5), (0,), 2.0, 1.0)
    other = 0.5 * sum(abs(glued.probabilities[x] - p) for x, p in exact.items())
    assert other > 0.08


@pytest.fixture
def halves(global_random_seed):
    X = make_repeating_sequence(160)[0]
    return X[:100], X[100:]


def test_the_first_call_is_a_fit(halves):
    first, _ = halves
    fitted, begun = HCRPHMM(**SHORT).fit(first), HCRPHMM(**SHORT).partial_fit(first)
    np.testing.assert_array_equal(fitted.draws_.lp, begun.draws_.lp)


def test_attributes_speak_of_all_data(halves):
    first, second = halves
    hmm = HCRPHMM(n_chains=2, **SHORT).fit(first)
    entropy, before = hmm._fit_state.entropy, hmm.draws_
    hmm.partial_fit(second, lengths=[40, 20])
    assert hmm._fit_state.entropy == entropy
    assert hmm.draws_.states.shape == (2, 4, 160)
    assert before.states.shape == (2, 4, 100)
    assert hmm.labels_.shape == (160,)
    assert hmm.draws_.n_draws.tolist() == [4, 4]
    assert hmm.score(second) > -1.0
    assert hmm.predict(second).shape == (60,)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_chains_do_not_depend_on_jobs_or_pickling(backend, halves):
    import joblib

    first, second = halves
    one = HCRPHMM(n_chains=2, **SHORT).fit(first).partial_fit(second)
    two = HCRPHMM(n_chains=2, **SHORT).fit(first)
    two = pickle.loads(pickle.dumps(two)).set_params(n_jobs=2)
    with joblib.parallel_config(backend):
        two.partial_fit(second)
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)
    np.testing.assert_array_equal(one.draws_.states, two.draws_.states)


def test_it_goes_on_where_it_was(halves):
    # Without a burn-in the first draws still have the states found before.
    first, second = halves
    hmm = HCRPHMM(**{**SHORT, "n_burnin": 300}).fit(first)
    n_states, alpha = hmm.n_states_, hmm.draws_.emission_alpha[0, -1]
    hmm.set_params(n_burnin=0, thin=1, n_draws=1).partial_fit(second)
    assert abs(hmm.n_states_ - n_states) <= 2
    # (One update away from that of the last draw, not from the initial 1.)
    assert hmm.draws_.emission_alpha[0, 0] != 1.0
    assert alpha != 1.0


def test_concentrations_are_taken_over(halves):
    first, second = halves
    model = HCRPHMM(
        emission=HCRPCategorical(alpha=3.0, concentration_prior=None),
        transitions=HCRPTransitions(5.0, 4.0, concentration_prior=None),
        **SHORT,
    ).fit(first)
    record = model._fit_state.chains[0].record["arrays"]
    draw = model.draws_[0, 3]
    # The chain of the selected draw goes on from that draw.
    for transitions in (record["transitions"], draw.transitions):
        transitions["alpha"] = 7.0
    model._fitted = replace(model._fitted, draws=model.draws_.with_draw(model._fitted.best, draw))
    model.partial_fit(second)
    assert (model.draws_.alpha == 7.0).all()
    assert (model.draws_.gamma == 4.0).all()
    assert (model.draws_.emission_alpha == 3.0).all()


def test_new_symbols_are_those_of_one_fit(halves):
    first, _ = halves
    new = np.full((20, 1), 99)
    hmm = HCRPHMM(**SHORT).fit(first)
    assert 99 not in hmm.emission_.categories_[0]
    hmm.partial_fit(new)
    assert np.isfinite(hmm.score(new))
    whole = HCRPHMM(**SHORT).fit(np.concatenate([first, new]))
    np.testing.assert_array_equal(hmm.emission_.categories_[0], whole.emission_.categories_[0])
    assert hmm.emission_.categories_[0][-1] == 99
    strict = HCRPHMM(emission=HCRPCategorical(handle_unknown="error"), **SHORT).fit(first)
    lp = strict.draws_.lp
    with pytest.raises(ValueError, match="99"):
        strict.partial_fit(new)
    np.testing.assert_array_equal(strict.draws_.lp, lp)
    assert strict.labels_.shape == (100,)


def test_known_states_mean_the_same_in_all_calls(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    truth = np.repeat(rng.integers(2, size=20), 5)
    X = rng.normal(6.0 * truth)[:, None]
    states = np.where(np.arange(100) % 7 == 0, truth + 4, -1)
    hmm = HCRPHMM(emission=NormalInverseGamma(), **SHORT)
    hmm.fit(X[:60], states=states[:60])
    hmm.partial_fit(X[60:80]).partial_fit(X[80:], states=states[80:])
    known = np.concatenate([states[:60], [-1] * 20, states[80:]])
    np.testing.assert_array_equal(hmm.known_states_, [4, 5])
    for path in hmm.draws_.states[0]:
        np.testing.assert_array_equal(path[known >= 0] + 4, known[known >= 0])
    # A label that was not there before.
    hmm.partial_fit(X[:3], states=[-1, 2, -1])
    np.testing.assert_array_equal(hmm.known_states_, [2, 4, 5])
    assert (hmm.draws_.states[0][:, 101] == 0).all()


def test_mixed_data(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = np.column_stack([rng.integers(3, size=80), rng.normal(size=80)])
    emission = ProductEmission([("a", "hcrp", [0]), ("b", "diagonal_gaussian", [1])])
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X[:50]).partial_fit(X[50:])
    assert hmm.labels_.shape == (80,)
    assert np.isfinite(hmm.score(X))


def test_warm_start_goes_on_with_all_data(halves):
    first, second = halves
    hmm = HCRPHMM(warm_start=True, **SHORT).fit(first).partial_fit(second)
    other = copy.deepcopy(hmm).partial_fit(second, lengths=[60])
    hmm.fit(np.concatenate([first, second]))
    assert hmm.draws_.n_draws.tolist() == [8]
    hmm = other.fit(np.concatenate([first, second, second]), lengths=[160, 60])
    assert hmm.draws_.n_draws.tolist() == [8]
    # fit forgets what partial_fit has added.
    afresh = hmm.fit(first)
    np.testing.assert_array_equal(afresh.draws_.lp, HCRPHMM(**SHORT).fit(first).draws_.lp)
    with pytest.raises(ValueError, match="not that of the earlier fit"):
        hmm.fit(second)


def test_what_does_not_go_together(halves, tmp_path):
    first, second = halves
    hmm = HCRPHMM(**SHORT).fit(first)
    draws = hmm.draws_
    for params, message in (
        ({"transitions__alpha": 2.0}, "emission or transitions"),
        ({"emission": "dirichlet"}, "emission or transitions"),
        ({"n_chains": 2}, "n_chains=2"),
        ({"checkpoint": tmp_path / "run.npz"}, "checkpoint=None"),
        ({"n_burnin": -1}, "n_burnin=-1"),
    ):
        other = pickle.loads(pickle.dumps(hmm)).set_params(**params)
        with pytest.raises(ValueError, match=message):
            other.partial_fit(second)
        np.testing.assert_array_equal(other.draws_.lp, draws.lp)
    for X, message in (
        (np.zeros((5, 2), int), "2 features"),
        (np.zeros((0, 1), int), "minimum of 1"),
        (-np.ones((5, 1), int), "Negative values"),
    ):
        with pytest.raises(ValueError, match=message):
            hmm.partial_fit(X)
    assert hmm.draws_ is draws


def test_another_sampler_may_go_on(halves):
    first, second = halves
    hmm = HCRPHMM("stepwise", **SHORT).fit(first)
    hmm.set_params(sampler="beam", sampler__block_size=4).partial_fit(second)
    assert hmm.sampler_.block_size == 4


def test_an_interrupted_chain_without_a_record_begins_anew(halves):
    first, second = halves
    hmm = HCRPHMM(n_chains=2, **SHORT).fit(first)
    chains = hmm._fit_state.chains
    chains[1] = replace(chains[1], record=None)
    hmm.partial_fit(second)
    assert hmm.draws_.n_draws.tolist() == [4, 4]


def test_a_clone_knows_nothing(halves):
    first, second = halves
    hmm = clone(HCRPHMM(**SHORT).fit(first)).partial_fit(second)
    assert hmm.labels_.shape == (60,)


def test_groups_are_routed(halves):
    first, _ = halves
    with sklearn.config_context(enable_metadata_routing=True):
        requests = HCRPHMM().get_metadata_routing()
    assert requests.partial_fit.requests["groups"] is True
    assert HCRPHMM(**SHORT).partial_fit(first, groups=np.arange(100) // 50)
