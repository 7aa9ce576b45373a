"""Chains in different modes: weights by rank, and what reads them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from skihmm import HCRPHMM
from skihmm._draws import PosteriorDraws
from skihmm._fitting import fit as _fit
from skihmm._using.decoding import log_weights
from skihmm._using.residuals import normal_residuals
from skihmm.core._random import RandomStream
from skihmm.inspection import DwellTimeDisplay, StateSequenceDisplay
from skihmm.metrics import ParticleFilterScorer
from skihmm.posterior import (
    coassignment,
    dwell_time_bands,
    match_states,
    n_states_distribution,
    occupancy_bands,
    point_estimate,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return (2.0 * np.repeat([0, 1, 0, 2], 40) + rng.normal(size=160))[:, None]


def fitted(data, behind, monkeypatch):
    """Two chains, of which the first one has so many nats less."""

    def ranks(chains, *_):
        return np.array([-behind, 0.0])[:, None] + np.linspace(-1, 1, 10)

    with monkeypatch.context() as patch:
        patch.setattr(_fit, "chain_ranks", ranks)
        hmm = HCRPHMM("blocked", "gaussian", n_chains=2, n_burnin=20, n_draws=12)
        return hmm.set_params(random_state=3).fit(data)


def chains_of(hmm):
    return [[hmm.draws_[c, d] for d in range(12)] for c in range(2)]


def test_weights_of_ranks():
    rng = np.random.default_rng(0)
    ranks = rng.normal(size=(4, 10))
    ranks[2] -= 40
    ranks[3] = np.nan
    found = log_weights(ranks)
    # Chains that agree, also one without draws, have the weight of the best one.
    assert found[[0, 1, 3]].tolist() == [0, 0, 0]
    best = ranks[:2].mean(axis=1).max()
    assert found[2] == pytest.approx(ranks[2].mean() - best)
    # Not those that differ by little, or by less than their draws do.
    assert not log_weights(np.array([[0.0] * 10, [-2.9] * 10])).any()
    ranks = 30 * rng.normal(size=(2, 10))
    assert not log_weights(ranks - ranks.mean(axis=1, keepdims=True) * [[0], [1]]).any()


def test_a_chain_of_half_the_weight(data, monkeypatch):
    """As if every draw of the other chain were there twice."""
    hmm = fitted(data, np.inf, monkeypatch)
    chains = chains_of(hmm)
    draws = PosteriorDraws(chains, log_weights=np.log([0.5, 1.0]))
    np.testing.assert_allclose(draws.chain_weights, [1 / 3, 2 / 3])
    twice = PosteriorDraws([*chains, chains[1]])
    np.testing.assert_allclose(coassignment(draws), coassignment(twice), rtol=1e-12)
    for one, other in zip(n_states_distribution(draws), n_states_distribution(twice), strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_array_equal(occupancy_bands(draws), occupancy_bands(twice))
    for search in ("draws", "greedy"):
        labels, loss = point_estimate(draws, search=search, return_loss=True)
        expected, same = point_estimate(twice, search=search, return_loss=True)
        np.testing.assert_array_equal(labels, expected)
        assert loss == pytest.approx(same)
    displays = [
        (
            DwellTimeDisplay.from_draws(each, lengths=[40] * 4).observed,
            StateSequenceDisplay.from_draws(each).probability,
        )
        for each in (draws, twice)
    ]
    for found, expected in zip(*displays, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_chain_without_weight(data, monkeypatch):
    """Estimates, scores and predictions are those of the other chain."""
    hmm = fitted(data, 50.0, monkeypatch)
    assert hmm.draws_.chain_weights.round(6).tolist() == [0, 1]
    assert hmm._fitted.best[0] == 1
    alone = fitted(data, 0.0, monkeypatch)
    assert alone.draws_.chain_weights.tolist() == [0.5, 0.5]
    assert "no weight" not in str(alone.diagnose())
    alone.draws_ = PosteriorDraws(chains_of(alone)[1:])
    alone._fitted = replace(alone._fitted, draws=alone.draws_)
    assert hmm._fitted.best[1] == _fit.best_draw(alone.draws_, "vi")[1]
    assert hmm.score(data) == alone.score(data)
    adaptive = ParticleFilterScorer(n_particles=3, adaptive=True)
    assert adaptive(hmm, data) == adaptive(alone, data)
    ahead = hmm.predict_next(data, 3), alone.predict_next(data, 3)
    np.testing.assert_array_equal(ahead[0].mean(), ahead[1].mean())
    gaps = np.where(np.arange(160)[:, None] % 9, data, np.nan)
    np.testing.assert_array_equal(hmm.impute(gaps), alone.impute(gaps))
    for summary in (coassignment, n_states_distribution, occupancy_bands):
        np.testing.assert_array_equal(summary(hmm.draws_), summary(alone.draws_))
    bands = [dwell_time_bands(each.draws_, hmm.labels_, random_state=0) for each in (hmm, alone)]
    np.testing.assert_array_equal(*bands)
    text = "Chain 0 has no weight in estimates, scores and predictions, by rank"
    assert any(text in note for note in hmm.diagnose().notes)


def test_probabilities_under_all_draws(data, monkeypatch):
    hmm = fitted(data, 0.0, monkeypatch)
    with pytest.raises(ValueError, match="draws='none'; expected one of"):
        hmm.predict_proba(data, draws="none")
    found = hmm.predict_proba(data, draws="all", method="filter")
    expected, n = np.zeros((160, hmm.n_states_ + 1)), hmm.n_states_
    for c, d in np.ndindex(2, 12):
        draw = hmm.draws_[c, d]
        hmm._fitted = replace(hmm._fitted, best=(c, d))
        matched = match_states(hmm.labels_, draw.states)
        for k, probs in enumerate(hmm.predict_proba(data, method="filter").T):
            steps = np.flatnonzero(draw.states == k)
            label = matched[steps[0]] if len(steps) else n
            expected[:, min(label, n)] += probs / 24
    np.testing.assert_allclose(found, expected, atol=1e-12)
    hmm.set_params(store_states=False, n_chains=1).fit(data)
    with pytest.raises(ValueError, match="store_states=True"):
        hmm.predict_proba(data, draws="all")


def test_segments_and_times_have_the_weights_of_chains(data, monkeypatch):
    hmm = fitted(data, 4.0, monkeypatch)
    whole, weights = hmm._fitted, hmm.draws_.chain_weights
    assert 0 < weights[0] < 0.1

    def of_both():
        segments = hmm.segments(states=whole.labels % 2)
        time = hmm.predict_next(data).time_to(whole.labels[0], horizon=20)
        assert time.share == pytest.approx(1)
        return segments.probability, time.survival()

    found, alone = of_both(), []
    for chain in chains_of(hmm):
        hmm._fitted = replace(whole, draws=PosteriorDraws([chain]))
        alone.append(of_both())
    for values, of_chains in zip(found, zip(*alone, strict=True), strict=True):
        assert abs(of_chains[0] - of_chains[1]).max() > 1e-3
        np.testing.assert_allclose(values, np.average(of_chains, axis=0, weights=weights))


def test_residuals_have_the_weights_of_chains(data, monkeypatch):
    hmm = fitted(data, 4.0, monkeypatch)
    draws, weights = hmm.draws_.weighted(None)
    assert weights[0] < 0.1 * weights[12]
    shares = []
    for first in (0, 12):
        stream = RandomStream(np.random.SeedSequence(0))
        chain = draws[first : first + 12]
        sequences = hmm._fitted.sequences
        alone = normal_residuals(chain, np.ones(12), sequences, hmm.emission_, stream)
        shares.append(ndtr(alone))
    assert abs(shares[0] - shares[1]).max() > 0.02
    expected = np.average(shares, axis=0, weights=weights[[0, 12]])
    np.testing.assert_allclose(ndtr(hmm.residuals(data)), expected, atol=1e-9)
