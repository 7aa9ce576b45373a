"""Chains that go on from a path: all but the labels is drawn before the first sweep."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._fitting import chain as _chain
from skihmm._fitting import starts as _starts
from skihmm._fitting.chain import begin_chain
from skihmm._fitting.onward import Onward
from skihmm._fitting.starts import ModelSettings, effort_of
from skihmm.emissions import AutoregressiveNormal, NormalInverseGamma, NormalInverseWishart
from skihmm.emissions._encoding import encode
from skihmm.samplers import StepwiseGibbs
from skihmm.transitions import HCRPTransitions

STARTS = np.array([0])


def levels(n=300):
    states = np.arange(n) // 30 % 2
    noise = np.random.default_rng(0).normal(size=n)
    return (4.0 * states + noise)[:, None], states.astype(np.int32)


def begun(init, emission=None, transitions=None, X=None, effort=1.0):
    """Record of a chain before its first sweep."""
    X = levels()[0] if X is None else X
    emission = (emission or NormalInverseGamma()).fit(X)
    transitions = transitions or HCRPTransitions()
    codes = encode(emission, X, STARTS)
    settings = ModelSettings(StepwiseGibbs(), emission, transitions, init, 10, effort)
    chain = begin_chain(Sequences(codes, STARTS), settings, np.random.SeedSequence(0))
    return chain.record()["arrays"]


def test_hyperparameters_are_drawn_before_the_first_sweep():
    bare = begun("single")
    for init in ("random", "particle_filter", "kmeans", "blocks"):
        other = begun(init)
        assert other["transitions"]["alpha"] == bare["transitions"]["alpha"] == 1.0
        np.testing.assert_array_equal(drawn_of(other), drawn_of(bare))
    drawn = begun(levels()[1])
    assert drawn["transitions"]["alpha"] != 1.0
    assert (drawn_of(drawn) != drawn_of(bare)).all()
    # The labels are the path of the start.
    np.testing.assert_array_equal(drawn["states"], levels()[1])


def test_the_best_try_goes_on_with_all_its_state(monkeypatch):
    records = []

    def run_try(*arguments):
        draw, record = run(*arguments)
        records.append(record)
        return draw, record

    run = _chain._run_try
    monkeypatch.setattr(_chain, "_run_try", run_try)
    first = begun("auto")
    assert len(records) > 1
    same = [joblib.hash(record) == joblib.hash(first) for record in records]
    assert sum(same) == 1


def test_tries_make_fewer_sweeps_before_a_short_burn_in(monkeypatch):
    assert [effort_of(n) for n in (None, 2000, 500, 125, 0)] == [1.0, 1.0, 1.0, 0.5, 0.0]
    monkeypatch.setattr(_starts, "LEAST_SWEEPS", 10)
    made = []
    run = _chain._run_try
    monkeypatch.setattr(_chain, "_run_try", lambda *args: made.append(args[-1]) or run(*args))
    for effort in (1.0, 0.5, 0.0):
        begun("auto", effort=effort)
    n = len(made) // 3
    assert made == [50] * n + [25] * n + [10] * n


def drawn_of(arrays):
    return arrays["emission"]["hyperparameters"]


@pytest.mark.parametrize(("n", "n_blocks"), [(60, 2), (999, 39), (2001, 40)])
def test_blocks(n, n_blocks):
    """Contiguous pieces of equal length: 25 steps at least, 40 pieces at most."""
    labels = np.arange(n) * n_blocks // n
    assert set(np.diff(labels)) == {0, 1}
    sizes = np.bincount(labels)
    assert len(sizes) == n_blocks
    assert sizes.max() - sizes.min() <= 1
    states = begun("blocks", X=levels(n)[0])["states"]
    np.testing.assert_array_equal(states, labels)


def test_they_suit_the_labels():
    """States of 200 coefficients, which are near zero: the prior comes near to them."""
    X = np.random.default_rng(0).normal(size=(600, 8))
    emission = AutoregressiveNormal(order=3).fit(X)
    first, last = (
        emission.hyperparameters(begun(init, emission, X=X)["emission"])["strength"]
        for init in ("single", np.arange(600) // 300)
    )
    assert (last[:3] > 5 * first[:3]).all()


def test_fixed_hyperparameters_stay():
    states = levels()[1]
    emission = NormalInverseWishart(mean=1, strength=2, dof=3, scale=[[2]])
    transitions = HCRPTransitions(2, 3, concentration_prior=None)
    drawn = begun(states, emission, transitions)
    bare = begun("single", emission, transitions)
    assert drawn["transitions"]["alpha"] == 2.0
    assert drawn["transitions"]["gamma"] == 3.0
    np.testing.assert_array_equal(drawn_of(drawn), drawn_of(bare))


def test_further_sequences_start_with_drawn_hyperparameters(monkeypatch):
    X = levels()[0]
    hmm = HCRPHMM(emission="diagonal_gaussian", n_burnin=5, n_draws=2, random_state=0)
    hmm.fit(X)
    record = hmm._fit_state.chains[0].record
    emission = hmm.emission_
    settings = ModelSettings(StepwiseGibbs(), emission, hmm.transitions_, "particle_filter", 10)
    before, starts = record["arrays"], np.array([0, 300])
    whole = Sequences(encode(emission, np.vstack([X, X[:60]]), starts), starts)
    onward = Onward(whole, np.arange(360) >= 300, emission)
    model = {name: before[name] for name in ("n_states", "transitions", "emission")}
    arguments = (record, model, before["states"], whole, settings)
    drawn = onward.begin(*arguments)["arrays"]
    monkeypatch.setattr(_chain, "N_SETTLING", 0)
    kept = onward.begin(*arguments)["arrays"]
    np.testing.assert_array_equal(kept["states"][:300], before["states"])
    np.testing.assert_array_equal(drawn["states"], kept["states"])
    alphas = [each["transitions"]["alpha"] for each in (before, kept, drawn)]
    assert alphas[0] == alphas[1] != alphas[2]
    # The emission, which is fitted to all rows again, begins with its own hyperparameters.
    assert (drawn_of(drawn) != drawn_of(kept)).all()


@pytest.mark.parametrize("init", ["auto", "path"])
def test_a_chain_keeps_states_that_change_weakly(init):
    """Under the initial hyperparameters a state of 200 coefficients is not worth them."""
    rng = np.random.default_rng(0)
    n, d = 1150, 8
    states = np.repeat([0, 1, 0, 2], [483, 345, 264, 58])
    base = rng.uniform(0.3, 0.8, d)
    root = rng.normal(size=(d, d)) * 0.3 + np.eye(d)
    lags = [np.diag(base) + 0.1 * rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(3)]
    lags = [a / max(1, np.abs(np.linalg.eigvals(a)).max() / 0.95) for a in lags]
    means, X = [rng.normal(scale=0.5, size=d) for _ in range(3)], np.zeros((n, d))
    for t in range(1, n):
        X[t] = means[states[t]] + lags[states[t]] @ X[t - 1] + root @ rng.normal(size=d)
    hmm = HCRPHMM(
        emission=AutoregressiveNormal(order=3),
        init=states if init == "path" else "auto",
        n_burnin=30,
        n_draws=5,
        random_state=0,
    ).fit((X - X.mean(axis=0)) / X.std(axis=0))
    assert adjusted_rand_score(states, hmm.labels_) > 0.95


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_autoregressions_with_inputs_of_staying_find_both_regimes(seed):
    """A room is heated until it is warm; filters of few particles ended in one state."""
    rng = np.random.default_rng(2)
    n = 3001
    temperature, heats = np.zeros(n), np.zeros(n, dtype=int)
    for t in range(1, n):
        before = temperature[t - 1] if heats[t - 1] else -temperature[t - 1]
        heats[t] = heats[t - 1] if rng.random() < expit(4 - 3 * before) else 1 - heats[t - 1]
        drift = 0.12 if heats[t] else -0.12
        temperature[t] = 0.95 * temperature[t - 1] + drift + 0.25 * rng.normal()
    hmm = HCRPHMM(
        emission=AutoregressiveNormal(1),
        transitions=HCRPTransitions(input_features=[1]),
        n_burnin=300,
        n_draws=10,
        random_state=seed,
    ).fit(np.column_stack([temperature[1:], temperature[:-1]]))
    assert adjusted_rand_score(heats[1:], hmm.labels_) > 0.3
