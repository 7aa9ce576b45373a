"""Held-out scores against exact predictive probabilities of a given seating."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference.enumeration import START, DirichletEmission, HCRPEmission, frozen_log_probs
from scipy.special import logsumexp
from sklearn.base import clone

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal, DirichletCategorical, HCRPCategorical
from skihmm.metrics import ParticleFilterScorer, _scorer, frozen_log_likelihood

EMISSIONS = {"hcrp": HCRPCategorical(alpha=0.7, gamma=1.6), "dirichlet": DirichletCategorical(0.4)}


def make_model(emission, seed, **params):
    short = {"n_burnin": 3, "n_draws": 2, "thin": 2, "n_chains": 2, "n_particles": 10}
    return HCRPHMM(emission=emission, random_state=seed, **{**short, **params})


def make_data(n_columns, n_steps, n_symbols, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(n_symbols, size=(n_steps, n_columns)).astype(float)


def oracle_emission(model, draw):
    n_symbols = model.emission_.n_symbols_
    assert len(set(n_symbols)) == 1, "the oracle has one vocabulary for all columns"
    if isinstance(model.emission_, DirichletCategorical):
        return DirichletEmission(n_symbols[0], model.emission_.concentration)
    return HCRPEmission(n_symbols[0], draw.emission["alpha"], draw.emission["gamma"])


def all_draws(model):
    n_chains, n_draws = model.draws_.shape
    return [model.draws_[c, d] for c in range(n_chains) for d in range(n_draws)]


def rows(X):
    return [tuple(None if math.isnan(v) else int(v) for v in row) for row in X]


@pytest.fixture(scope="module", params=["hcrp", "dirichlet"])
def emission(request):
    return EMISSIONS[request.param]


def averaged(log_probs, model):
    """Log of the mean over all draws, with the weights of their chains."""
    weights = model.draws_.weights()
    logs = logsumexp(log_probs, axis=0, b=weights[:, None])
    return logs - math.log(weights.sum())


@pytest.fixture
def exact(seating_counts):
    """Function that gives exact log probabilities of the steps of X after a draw."""

    def log_probs(model, draw, X, continues=False):
        start = int(draw.states[-1]) if continues else START
        emission = oracle_emission(model, draw)
        counts = seating_counts(draw)
        return frozen_log_probs(counts, rows(X), emission, draw.alpha, draw.gamma, start)

    return log_probs


# -- frozen seating: exact ------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("start", ["new", "continue"])
def test_frozen_scores_are_exact(emission, n_columns, start, exact, global_random_seed):
    # All four symbols in every column; 4 is the cell for unknown ones.
    X = make_data(n_columns, 24, 4, global_random_seed)
    X[:4] = np.arange(4)[:, None]
    X[10:13, 0] = np.nan
    test = make_data(n_columns, 9, 5, global_random_seed + 1)
    test[[2, 6]] = np.nan
    test[4, -1] = np.nan
    model = make_model(emission, global_random_seed).fit(X, lengths=[9, 15])
    single = [exact(model, draw, test, start == "continue") for draw in all_draws(model)]
    expected = averaged(single, model)
    scorer = ParticleFilterScorer(adaptive=False, start=start)
    found = scorer.score_samples(model, test)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    seen = ~np.isnan(test).all(axis=1)
    assert (found[~seen] == 0).all()
    assert scorer(model, test) == pytest.approx(expected[seen].mean(), abs=1e-10)


def test_frozen_log_likelihood(emission, exact, global_random_seed):
    X = make_data(1, 24, 4, global_random_seed)
    X[:4] = np.arange(4)[:, None]
    test = make_data(1, 9, 5, global_random_seed + 1)
    test[2] = np.nan
    model = make_model(emission, global_random_seed).fit(X)
    single = [
        np.concatenate([exact(model, draw, part) for part in (test[:4], test[4:])])
        for draw in all_draws(model)
    ]
    # Eight of the nine steps are observed.
    expected = (averaged(single, model)).sum() / 8
    ids = np.repeat(["a", "b"], [4, 5])
    for sequences in ({"groups": ids}, {"lengths": [4, 5]}):
        found = frozen_log_likelihood(model, test, **sequences)
        assert isinstance(found, float)
        assert found == pytest.approx(expected, abs=1e-10)
    together = frozen_log_likelihood(model, test, np.arange(9))
    assert together == ParticleFilterScorer(adaptive=False)(model, test)
    assert together != pytest.approx(expected, abs=1e-6)
    # hmmlearn's second argument is `lengths`.
    with pytest.raises(ValueError, match="lengths="):
        frozen_log_likelihood(model, test, [4, 5])


@pytest.mark.parametrize("start", ["new", "continue"])
def test_frozen_scores_of_several_sequences(emission, start, exact, global_random_seed):
    X = make_data(1, 20, 4, global_random_seed)
    X[:4] = np.arange(4)[:, None]
    test = make_data(1, 9, 4, global_random_seed + 1)
    groups = np.repeat(["b", "a", "c"], [4, 2, 3])
    model = make_model(emission, global_random_seed, n_chains=1, n_draws=1).fit(X)
    draw = model.draws_[0, 0]
    parts = []
    for i, group in enumerate(["b", "a", "c"]):
        follows = start == "continue" and i == 0
        parts.append(exact(model, draw, test[groups == group], follows))
    found = ParticleFilterScorer(adaptive=False, start=start).score_samples(
        model, test, groups=groups
    )
    np.testing.assert_allclose(found, np.concatenate(parts), rtol=0, atol=1e-10)


# -- averaging over draws -------------------------------------------------------------


@pytest.mark.parametrize("adaptive", [True, False])
def test_probabilities_are_averaged_inside_the_logarithm(fitted, sequence, adaptive, monkeypatch):
    name = "_adaptive_log_probs" if adaptive else "_frozen_log_probs"
    function = getattr(_scorer, name)
    single = []

    def recording(*args):
        single.append(function(*args))
        return single[-1]

    monkeypatch.setattr(_scorer, name, recording)
    scorer = ParticleFilterScorer(adaptive=adaptive, n_particles=7, random_state=5)
    test = sequence[:15]
    together = scorer.score_samples(fitted, test)
    weights = fitted.draws_.weights()
    assert len({log_probs.tobytes() for log_probs in single}) == (weights > 0).sum()
    expected = logsumexp(single, axis=0, b=weights[weights > 0, None])
    expected -= math.log(weights.sum())
    np.testing.assert_allclose(together, expected, rtol=0, atol=1e-12)
    # A mean of logarithms would be another number.
    assert np.abs(together - np.mean(single, axis=0)).max() > 1e-6


# -- adaptive: unbiased ---------------------------------------------------------------


def test_adaptive_scores_of_the_first_step_are_exact(emission, exact, global_random_seed):
    # Nothing is seated yet, so there is nothing random.
    X = make_data(1, 20, 4, global_random_seed)
    X[:4] = np.arange(4)[:, None]
    model = make_model(emission, global_random_seed, n_chains=1, n_draws=1).fit(X)
    draw = model.draws_[0, 0]
    for symbol in range(5):
        for start in ("new", "continue"):
            expected = exact(model, draw, [[symbol]], start == "continue")
            found = ParticleFilterScorer(start=start).score_samples(model, [[symbol]])
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_adaptive_model_learns_along_the_sequence(fitted):
    # A symbol that training did not have becomes likely once it was seen many times.
    test = np.full((30, 1), 77)
    adaptive = ParticleFilterScorer(n_particles=20, random_state=0)
    frozen = ParticleFilterScorer(adaptive=False)
    log_probs = adaptive.score_samples(fitted, test)
    assert log_probs[-5:].mean() > log_probs[0] + 1
    assert adaptive(fitted, test) > frozen(fitted, test) + 1


def test_sequences_start_again(fitted, sequence):
    # The first step of every sequence is scored as if it were alone.
    test = np.concatenate([sequence[:6], sequence[:6], sequence[3:9]])
    groups = np.repeat([2, 0, 1], 6)
    scorer = ParticleFilterScorer(n_particles=10, random_state=0)
    log_probs = scorer.score_samples(fitted, test, groups=groups)
    for first in (0, 6, 12):
        alone = scorer.score_samples(fitted, test[first : first + 1])
        assert log_probs[first] == pytest.approx(alone[0], abs=1e-10)
    # The first sequence does not know of the others.
    np.testing.assert_array_equal(
        log_probs[:6], scorer.score_samples(fitted, test[:6], groups=groups[:6])
    )


# -- missing steps, draws, parameters -------------------------------------------------


@pytest.mark.parametrize("adaptive", [True, False])
def test_missing_steps_are_left_out(fitted, sequence, adaptive):
    test = sequence[:12].astype(float)
    test[[1, 5, 11]] = np.nan
    scorer = ParticleFilterScorer(adaptive=adaptive, n_particles=5)
    log_probs = scorer.score_samples(fitted, test)
    seen = ~np.isnan(test[:, 0])
    assert (log_probs[~seen] == 0).all()
    assert (log_probs[seen] < 0).all()
    assert scorer(fitted, test) == pytest.approx(log_probs[seen].sum() / 9, rel=1e-14)
    assert scorer.perplexity(fitted, test) == np.exp(-scorer(fitted, test))
    nothing = np.full((4, 1), np.nan)
    assert scorer(fitted, nothing) == 0
    assert scorer.perplexity(fitted, nothing) == 1


def test_ways_to_call(fitted, sequence):
    scorer = ParticleFilterScorer(n_particles=5)
    score = scorer(fitted, sequence)
    assert isinstance(score, float)
    assert score == scorer.score(fitted, sequence)
    assert score == scorer(fitted, sequence, np.arange(60))
    assert score == scorer(fitted, sequence, groups=np.zeros(60))
    # The estimator's score is that of a scorer without parameters.
    assert ParticleFilterScorer()(fitted, sequence) == fitted.score(sequence)
    assert fitted.score(sequence) != score


def test_numbers_are_scored_with_fixed_parameters(fitted, sequence):
    X = np.random.default_rng(0).normal(size=(60, 2))
    gaussian = HCRPHMM(emission="gaussian", n_burnin=5, n_draws=3, random_state=0).fit(X)
    assert gaussian.score(X) == frozen_log_likelihood(gaussian, X)
    assert gaussian.score(X) != ParticleFilterScorer(adaptive=True)(gaussian, X)
    # Two thousand particles for symbols, forty or more per draw.
    n_draws = int((fitted.draws_.weights() > 0).sum())
    same = ParticleFilterScorer(n_particles=2000 // n_draws, adaptive=True)
    assert fitted.score(sequence) == same(fitted, sequence)
    assert fitted.score(sequence) != frozen_log_likelihood(fitted, sequence)
    with pytest.raises(TypeError, match="adaptive='never'; expected True or False"):
        ParticleFilterScorer(adaptive="never")(fitted, sequence)
    # Every row lacks an entry of a full covariance: the other one counts.
    X[np.arange(60), np.arange(60) % 2] = np.nan
    assert -3 < gaussian.score(X) < 0
    assert gaussian.score(np.full((3, 2), np.nan)) == 0


def test_observed_rows_without_their_inputs_have_no_score():
    # Negative numbers: those of the first column are known, whatever follows it.
    X = np.random.default_rng(0).normal(-9.0, 1.0, size=(60, 2))
    hmm = HCRPHMM(
        emission=AutoregressiveNormal(order=0, input_features=[1]),
        n_burnin=5,
        n_draws=3,
        random_state=0,
    ).fit(X)
    X[:, 1] = np.nan
    with (
        pytest.warns(UserWarning, match=r"60 of 60 steps lack an input \(1\)"),
        pytest.warns(UserWarning, match="no likelihood: the score is NaN"),
    ):
        assert np.isnan(hmm.score(X))


def test_random_state(fitted, sequence):
    scores = [
        ParticleFilterScorer(n_particles=5, random_state=seed)(fitted, sequence)
        for seed in (0, 0, 1, None, None)
    ]
    assert scores[0] == scores[1]
    assert scores[3] == scores[4]
    assert len(set(scores)) == 3
    # An exact pass has no randomness.
    frozen = {
        ParticleFilterScorer(adaptive=False, random_state=seed)(fitted, sequence)
        for seed in (0, 1, None)
    }
    assert len(frozen) == 1


def test_max_draws(fitted, sequence, monkeypatch):
    frozen = {
        n: ParticleFilterScorer(adaptive=False, max_draws=n)(fitted, sequence)
        for n in (1, 3, 8, 100, None)
    }
    assert frozen[8] == frozen[100] == frozen[None]
    assert len(set(frozen.values())) == 3
    # With one draw it is the last one of the last chain with a weight.
    draws = fitted.draws_
    last = draws[int(np.flatnonzero(draws.chain_weights > 1e-3)[-1]), -1]
    monkeypatch.setattr(type(draws), "weighted", lambda self, n=None: ([last], np.ones(1)))
    assert ParticleFilterScorer(adaptive=False)(fitted, sequence) == frozen[1]


def test_bad_data(fitted, sequence):
    scorer = ParticleFilterScorer()
    with pytest.raises(ValueError, match="groups has 3 entries"):
        scorer(fitted, sequence, groups=[0, 0, 0])
    with pytest.raises(ValueError, match="2 features"):
        scorer(fitted, np.zeros((4, 2)))
    with pytest.raises(ValueError, match="not fitted"):
        scorer(HCRPHMM(), sequence)
    with pytest.raises(ValueError, match="Negative values"):
        scorer(fitted, [[-1]])


def test_floating_point_errors_that_are_raised():
    X = np.random.default_rng(0).poisson(np.repeat([[2.0], [20.0]], 30, axis=0))
    hmm = make_model("poisson", 0).fit(X)
    far = [[1e6], [3.0]]
    scores = hmm.score_samples(far)
    log_prob = hmm.predict_next(X).log_prob(far[:1])
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(hmm.score_samples(far), scores)
        np.testing.assert_array_equal(hmm.predict_next(X).log_prob(far[:1]), log_prob)


def test_clone_and_repr():
    scorer = ParticleFilterScorer(max_draws=3, start="continue")
    assert repr(clone(scorer)) == "ParticleFilterScorer(max_draws=3, start='continue')"
