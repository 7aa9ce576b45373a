"""Searches, cross-validation, pipelines and the routing of sequence ids."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder
from sklearn.utils.fixes import parse_version

from skihmm import HCRPHMM
from skihmm.datasets import make_repeating_sequence
from skihmm.emissions import DirichletCategorical, HCRPCategorical
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import StepwiseGibbs

SHORT = {"n_burnin": 5, "n_draws": 2, "thin": 1, "n_particles": 10, "random_state": 0}


class Recording(HCRPHMM):
    """Remembers the ids that every method got, over all clones."""

    calls: ClassVar[list] = []

    def fit(self, X, y=None, *, groups=None, lengths=None):
        self.calls.append(("fit", len(X), groups))
        return super().fit(X, y, groups=groups, lengths=lengths)

    def predict(self, X, *, groups=None, lengths=None):
        self.calls.append(("predict", len(X), groups))
        return super().predict(X, groups=groups, lengths=lengths)

    def score(self, X, y=None, *, sample_weight=None, groups=None, lengths=None):
        self.calls.append(("score", len(X), groups))
        return super().score(X, y, groups=groups, lengths=lengths)


@pytest.fixture
def calls():
    Recording.calls.clear()
    return Recording.calls


@pytest.fixture(scope="module")
def sequences():
    """Six sequences of ten steps: data and ids."""
    X = np.concatenate([make_repeating_sequence(10, start=i)[0] for i in range(6)])
    return X, np.repeat([4, 2, 9, 1, 7, 3], 10)


def holdout(n):
    """Fit on the first two thirds, score on the rest."""
    return [(np.arange(2 * n // 3), np.arange(2 * n // 3, n))]


SCORINGS = {
    "score": None,
    "adaptive": ParticleFilterScorer(n_particles=5, max_draws=2),
    "frozen": ParticleFilterScorer(adaptive=False),
    "continued": ParticleFilterScorer(adaptive=False, start="continue"),
}


@pytest.mark.parametrize("scoring", SCORINGS)
def test_grid_search_over_objects(sequence, scoring):
    emissions = [
        "hcrp",
        HCRPCategorical(alpha=0.5),
        DirichletCategorical(0.1),
        DirichletCategorical(1e4),
    ]
    search = GridSearchCV(
        HCRPHMM(**SHORT),
        {"emission": emissions, "sampler": [StepwiseGibbs(), "stepwise"]},
        scoring=SCORINGS[scoring],
        cv=holdout(60),
        error_score="raise",
    ).fit(sequence)
    scores = search.cv_results_["mean_test_score"].reshape(4, 2)
    assert np.isfinite(scores).all()
    # The sampler is the same one; a nearly uniform emission predicts badly.
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])
    assert scores[3, 0] == scores.min()
    assert search.best_params_["emission"] is not emissions[3]
    assert search.best_estimator_.predict(sequence).shape == (60,)


@pytest.mark.parametrize("emission", ["hcrp", HCRPCategorical(gamma=2.0)])
def test_grid_search_over_nested_parameters(sequence, emission):
    # A short name has nested parameters too.
    search = GridSearchCV(
        HCRPHMM(emission=emission, concentration_prior=None, **SHORT),
        {
            "emission__alpha": [0.1, 10.0],
            "emission__concentration_prior": [None],
            "alpha": [0.5, 5.0],
        },
        scoring=SCORINGS["adaptive"],
        cv=holdout(60),
        error_score="raise",
    ).fit(sequence)
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 4
    best = search.best_estimator_
    assert best.emission_.alpha == search.best_params_["emission__alpha"]
    assert (best.draws_.emission_alpha == best.emission_.alpha).all()
    assert search.estimator.emission is emission


def test_grid_search_reports_bad_parameters(sequence):
    search = GridSearchCV(
        HCRPHMM(**SHORT), {"emission__alpha": [-1.0]}, cv=holdout(60), error_score="raise"
    )
    with pytest.raises(ValueError, match="alpha=-1"):
        search.fit(sequence)


def test_grid_search_in_parallel(sequence):
    results = []
    for n_jobs in (1, 2):
        search = GridSearchCV(
            HCRPHMM(**SHORT),
            {"emission": ["hcrp", "dirichlet"], "alpha": [0.5, 2.0]},
            scoring=SCORINGS["adaptive"],
            cv=TimeSeriesSplit(2),
            n_jobs=n_jobs,
            error_score="raise",
        ).fit(sequence)
        results.append(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_time_series_split(sequence, scoring):
    scores = cross_val_score(
        HCRPHMM(**SHORT),
        sequence,
        cv=TimeSeriesSplit(3),
        scoring=SCORINGS[scoring],
        error_score="raise",
    )
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    assert (scores < 0).all()


def test_cross_val_score_by_hand(sequence):
    scorer = ParticleFilterScorer(n_particles=10, random_state=1)
    splits = list(TimeSeriesSplit(3).split(sequence))
    model = HCRPHMM(**SHORT)
    expected = [
        scorer(model.fit(sequence[train]), sequence[test]) for train, test in splits
    ]
    found = cross_val_score(HCRPHMM(**SHORT), sequence, cv=splits, scoring=scorer)
    np.testing.assert_array_equal(found, expected)
    plain = [model.fit(sequence[train]).score(sequence[test]) for train, test in splits]
    found = cross_val_score(HCRPHMM(**SHORT), sequence, cv=splits)
    np.testing.assert_array_equal(found, plain)


def test_several_scorers(sequence):
    results = cross_validate(
        HCRPHMM(**SHORT),
        sequence,
        cv=TimeSeriesSplit(2),
        scoring={name: value for name, value in SCORINGS.items() if value},
        error_score="raise",
    )
    for name in ("adaptive", "frozen", "continued"):
        assert np.isfinite(results[f"test_{name}"]).all()


# -- sequence ids ---------------------------------------------------------------------


def check_calls(calls, method, n_folds, groups):
    """Every call of a method got the ids of its own rows, and all folds are covered."""
    found = [(n, got) for name, n, got in calls if name == method]
    assert len(found) == n_folds
    seen = []
    for n, got in found:
        assert got is not None
        assert len(got) == n
        # Rows of whole sequences: every id with all of its ten rows.
        ids, counts = np.unique(got, return_counts=True)
        assert set(ids) <= set(groups)
        assert (counts == 10).all()
        seen += ids.tolist()
    return seen


def test_group_k_fold_with_routing(sequences, calls):
    X, groups = sequences
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            Recording(**SHORT),
            X,
            cv=GroupKFold(3),
            params={"groups": groups},
            error_score="raise",
        )
    assert np.isfinite(scores).all()
    assert sorted(check_calls(calls, "score", 3, groups)) == sorted(set(groups))
    assert len(check_calls(calls, "fit", 3, groups)) == 12
    # The ids made a difference: without them the training set is one sequence.
    model = HCRPHMM(**SHORT)
    train, test = next(GroupKFold(3).split(X, groups=groups))
    model.fit(X[train], groups=groups[train])
    assert scores[0] == model.score(X[test], groups=groups[test])
    assert scores[0] != model.score(X[test])


def test_group_k_fold_without_routing(sequences, calls):
    # scikit-learn hands the ids to the splitter only.
    X, groups = sequences
    cross_val_score(Recording(**SHORT), X, groups=groups, cv=GroupKFold(3))
    assert all(got is None for _, _, got in calls)
    assert len(calls) == 6


def test_cross_val_predict_with_routing(sequences, calls):
    X, groups = sequences
    with sklearn.config_context(enable_metadata_routing=True):
        states = cross_val_predict(
            Recording(**SHORT), X, cv=GroupKFold(3), params={"groups": groups}
        )
    # scikit-learn routes nothing to predict here: test folds are one sequence each.
    assert states.shape == (60,)
    check_calls(calls, "fit", 3, groups)


def test_grid_search_with_routing(sequences, calls):
    X, groups = sequences
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            Recording(**SHORT),
            {"emission": ["hcrp", "dirichlet"]},
            cv=GroupKFold(2),
            error_score="raise",
        ).fit(X, groups=groups)
    check_calls(calls, "score", 4, groups)
    fits = [(n, got) for name, n, got in calls if name == "fit"]
    assert len(fits) == 5
    n, got = fits[-1]
    assert n == 60
    np.testing.assert_array_equal(got, groups)
    # The refitted model saw six first steps.
    draw = search.best_estimator_.draws_[0, 0]
    starts = draw.transitions["rows"] == draw.n_states
    assert draw.transitions["n_customers"][starts].sum() == 6


def test_scorer_with_routing(sequences, calls, monkeypatch):
    X, groups = sequences
    got = []
    score = ParticleFilterScorer.score

    def recording(self, estimator, X, y=None, *, groups=None):
        got.append(("scorer", len(X), groups))
        return score(self, estimator, X, y, groups=groups)

    monkeypatch.setattr(ParticleFilterScorer, "score", recording)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = ParticleFilterScorer(n_particles=5).set_score_request(groups=True)
        search = GridSearchCV(
            Recording(**SHORT),
            {"alpha": [1.0]},
            scoring=scorer,
            cv=GroupKFold(3),
            error_score="raise",
        ).fit(X, groups=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(check_calls(got, "scorer", 3, groups)) == 6
    assert len([name for name, _, _ in calls if name == "score"]) == 0


@pytest.mark.parametrize("scoring", [None, ParticleFilterScorer(n_particles=5)])
def test_pipeline_with_routing(sequences, calls, scoring):
    X, groups = sequences
    letters = np.array(list("abcdefgh"))[X]
    with sklearn.config_context(enable_metadata_routing=True):
        if scoring is not None:
            scoring = scoring.set_score_request(groups=True)
        pipeline = make_pipeline(encoder(), Recording(**SHORT))
        scores = cross_val_score(
            pipeline,
            letters,
            cv=GroupKFold(3),
            params={"groups": groups},
            scoring=scoring,
            error_score="raise",
        )
    assert np.isfinite(scores).all()
    check_calls(calls, "fit", 3, groups)
    # Before 1.8 the default scorer of a pipeline loses the ids.
    if scoring is None and parse_version(sklearn.__version__) >= parse_version("1.8"):
        check_calls(calls, "score", 3, groups)


# -- pipelines ------------------------------------------------------------------------


def encoder():
    """Words as codes; -1 is not a symbol, so unknown words become missing."""
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)


@pytest.fixture(scope="module")
def letters(sequence):
    return np.array(list("vwxyz"))[sequence].astype(object)


def test_pipeline_with_ordinal_encoder(sequence, letters):
    pipeline = make_pipeline(encoder(), HCRPHMM(**SHORT)).fit(letters)
    plain = HCRPHMM(**SHORT).fit(sequence)
    np.testing.assert_array_equal(pipeline.predict(letters), plain.predict(sequence))
    np.testing.assert_array_equal(
        pipeline.predict_proba(letters), plain.predict_proba(sequence)
    )
    assert pipeline.score(letters) == plain.score(sequence)
    unknown = letters.copy()
    unknown[7] = "new"
    assert pipeline[-1].score_samples(pipeline[:-1].transform(unknown))[7] == 0
    assert pipeline.fit_predict(letters).tolist() == plain.predict(sequence).tolist()


def test_pipeline_with_bins(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = np.tile([0.0, 10.0, 20.0], 20)[:, None] + rng.normal(size=(60, 2))
    pipeline = Pipeline(
        [
            (
                "bins",
                KBinsDiscretizer(3, encode="ordinal", strategy="uniform", subsample=None),
            ),
            ("hmm", HCRPHMM(**SHORT)),
        ]
    )
    pipeline.fit(X)
    assert pipeline["hmm"].emission_.n_symbols_ == [4, 4]
    assert pipeline.predict(X).shape == (60,)
    search = GridSearchCV(
        pipeline,
        {"bins__n_bins": [2, 3], "hmm__emission__alpha": [0.5, 1.0]},
        scoring=ParticleFilterScorer(n_particles=5),
        cv=TimeSeriesSplit(2),
        error_score="raise",
    ).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X) < 0


@pytest.mark.parametrize("adaptive", [True, False])
def test_scorer_on_a_pipeline(sequence, letters, adaptive):
    scorer = ParticleFilterScorer(adaptive=adaptive, n_particles=10)
    plain = HCRPHMM(**SHORT).fit(sequence)
    pipeline = make_pipeline(encoder(), HCRPHMM(**SHORT)).fit(letters)
    short = make_pipeline(HCRPHMM(**SHORT)).fit(letters)
    expected = scorer.score_samples(plain, sequence[:20])
    np.testing.assert_array_equal(scorer.score_samples(pipeline, letters[:20]), expected)
    np.testing.assert_array_equal(scorer.score_samples(short, letters[:20]), expected)
    assert scorer(pipeline, letters[:20]) == pytest.approx(expected.mean(), rel=1e-14)
