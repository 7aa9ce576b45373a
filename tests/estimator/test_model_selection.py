"""Searches, cross-validation, pipelines and the routing of sequence ids."""

from __future__ import annotations

from contextlib import nullcontext
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder, StandardScaler
from sklearn.utils.fixes import parse_version

from skihmm import HCRPHMM
from skihmm.datasets import make_repeating_sequence
from skihmm.emissions import DirichletCategorical, HCRPCategorical
from skihmm.metrics import ParticleFilterScorer, frozen_log_likelihood
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice

SHORT = {"n_burnin": 5, "n_draws": 2, "thin": 1, "n_particles": 10, "random_state": 0}
# The default scorer of a pipeline.
LOSES_IDS = parse_version(sklearn.__version__) < parse_version("1.8")


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


def search(estimator, grid, X, *, cv=None, groups=None, **options):
    """A search after its fit; errors of candidates are raised."""
    cv = holdout(len(X)) if cv is None else cv
    found = GridSearchCV(estimator, grid, cv=cv, error_score="raise", **options)
    return found.fit(X, groups=groups)


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
    grid = {"emission": emissions, "sampler": [StepwiseGibbs(), "stepwise"]}
    found = search(HCRPHMM(**SHORT), grid, sequence, scoring=SCORINGS[scoring])
    scores = found.cv_results_["mean_test_score"].reshape(4, 2)
    assert np.isfinite(scores).all()
    # The sampler is the same one; a nearly uniform emission predicts badly.
    np.testing.assert_array_equal(scores[:, 0], scores[:, 1])
    assert scores[3, 0] == scores.min()
    assert found.best_params_["emission"] is not emissions[3]
    assert found.best_estimator_.predict(sequence).shape == (60,)


@pytest.mark.parametrize("emission", ["hcrp", HCRPCategorical(gamma=2.0)])
def test_grid_search_over_nested_parameters(sequence, emission):
    # A short name has nested parameters too.
    grid = {
        "emission__alpha": [0.1, 10.0],
        "emission__concentration_prior": [None],
        "transitions__alpha": [0.5, 5.0],
        "transitions__concentration_prior": [None],
    }
    model = HCRPHMM(emission=emission, **SHORT)
    found = search(model, grid, sequence, scoring=SCORINGS["adaptive"])
    assert len(np.unique(found.cv_results_["mean_test_score"])) == 4
    best = found.best_estimator_
    assert best.emission_.alpha == found.best_params_["emission__alpha"]
    assert (best.draws_.emission_alpha == best.emission_.alpha).all()
    assert (best.draws_.alpha == found.best_params_["transitions__alpha"]).all()
    assert found.estimator.emission is emission
    assert found.estimator.transitions == "auto"


@pytest.mark.parametrize("part", ["emission", "transitions"])
def test_grid_search_reports_bad_parameters(sequence, part):
    with pytest.raises(ValueError, match="alpha=-1"):
        search(HCRPHMM(**SHORT), {f"{part}__alpha": [-1.0]}, sequence)


def test_grid_search_in_parallel(sequence):
    grid = {"emission": ["hcrp", "dirichlet"], "transitions__alpha": [0.5, 2.0]}
    options = {"scoring": SCORINGS["adaptive"], "cv": TimeSeriesSplit(2)}
    found = [search(HCRPHMM(**SHORT), grid, sequence, n_jobs=n, **options) for n in (1, 2)]
    np.testing.assert_array_equal(*(each.cv_results_["mean_test_score"] for each in found))


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
    expected = [scorer(model.fit(sequence[train]), sequence[test]) for train, test in splits]
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


# -- samplers -------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("sampler", ["beam", BlockedBeam(split_merge_rate=3)])
def test_grid_search_over_parameters_of_a_sampler(sequence, sampler, scoring):
    grid = {
        "sampler__block_size": [1, 4, 60],
        "sampler__split_merge_rate": [0, 1.5],
        "emission__alpha": [0.5],
    }
    model = HCRPHMM(sampler=sampler, **SHORT)
    found = search(model, grid, sequence, scoring=SCORINGS[scoring])
    # Every candidate has another chain.
    assert len(np.unique(found.cv_results_["mean_test_score"])) == 6
    best = found.best_estimator_.sampler_
    assert isinstance(best, BlockedBeam)
    assert best.block_size == found.best_params_["sampler__block_size"]
    assert best.split_merge_rate == found.best_params_["sampler__split_merge_rate"]
    tried = np.isfinite(found.best_estimator_.draws_.split_merge_acceptance_rate)
    assert tried.all() == (best.split_merge_rate > 0)
    # What was passed is as it was.
    assert found.estimator.sampler is sampler


def test_grid_search_over_samplers_and_their_parameters(sequence):
    grid = [
        {"sampler": ["stepwise", StepwiseSlice()], "sampler__split_merge_rate": [0, 2]},
        {
            "sampler": [BlockedGibbs(), BlockedBeam(split_merge_rate=9)],
            "sampler__block_size": [2, 5],
        },
    ]
    results = search(HCRPHMM(**SHORT), grid, sequence, scoring=SCORINGS["adaptive"]).cv_results_
    assert len(np.unique(results["mean_test_score"])) == 8
    shown = [repr(params["sampler"]) for params in results["params"]]
    assert shown[4:] == [*["BlockedGibbs()"] * 2, *["BlockedBeam(split_merge_rate=9)"] * 2]
    # Each candidate is what setting its parameters by hand gives.
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        model = HCRPHMM(**SHORT).set_params(**clone(params, safe=False))
        train, test = holdout(60)[0]
        expected = SCORINGS["adaptive"](model.fit(sequence[train]), sequence[test])
        assert score == expected


def test_a_wrong_parameter_of_a_sampler_is_named(sequence):
    for grid, message in (
        ({"sampler__block_size": [0]}, "block_size=0; expected an integer >= 1"),
        ({"sampler__split_merge_rate": [-1]}, "split_merge_rate=-1; expected"),
        ({"sampler__blocks": [1]}, "Invalid parameter 'blocks' for estimator Blocked"),
    ):
        with pytest.raises(ValueError, match=message):
            search(HCRPHMM(sampler="blocked", **SHORT), grid, sequence)


def test_randomized_search_with_distributions(sequence):
    stats = pytest.importorskip("scipy.stats")
    search = RandomizedSearchCV(
        HCRPHMM(sampler="beam", **SHORT),
        {
            "sampler__block_size": stats.randint(1, 30),  # gives numpy's integers
            "emission__alpha": stats.loguniform(0.1, 10),
        },
        n_iter=3,
        cv=holdout(60),
        error_score="raise",
        random_state=0,
    ).fit(sequence)
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 3


@pytest.mark.parametrize("scoring", ["score", "adaptive"])
@pytest.mark.parametrize("resource", ["n_draws", "n_burnin"])
def test_halving_search_with_sweeps_as_resource(sequence, resource, scoring):
    search = HalvingRandomSearchCV(
        HCRPHMM(sampler="blocked", **SHORT),
        {"sampler__block_size": [1, 2, 4, 8], "sampler__split_merge_rate": [0, 2]},
        resource=resource,
        min_resources=2,
        max_resources=8,
        n_candidates=8,
        factor=2,
        scoring=SCORINGS[scoring],
        cv=TimeSeriesSplit(2),
        error_score="raise",
        random_state=0,
    ).fit(sequence)
    assert search.n_candidates_ == [8, 4, 2]
    assert search.n_resources_ == [2, 4, 8]
    found = search.cv_results_["n_resources"]
    assert found.tolist() == [2] * 8 + [4] * 4 + [8] * 2
    assert getattr(search.best_estimator_, resource) == 8
    draws = search.best_estimator_.draws_
    assert draws.shape == (1, 8 if resource == "n_draws" else 2)
    # A better candidate of the last round is the best, not one of an earlier round.
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores[-2:].max()


def test_halving_search_with_rows_as_resource_destroys_sequences(sequence, calls):
    # scikit-learn draws the rows of a round at random and does not put them in order.
    # The index of a data frame shows it.
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(sequence, columns=["symbol"])
    search = HalvingRandomSearchCV(
        HCRPHMM(**SHORT),
        {"transitions__alpha": [0.5, 2.0]},
        resource="n_samples",
        min_resources=20,
        n_candidates=2,
        factor=2,
        cv=TimeSeriesSplit(2),
        error_score="raise",
        random_state=0,
    )
    with pytest.warns(UserWarning, match="The index of X is out of order"):
        search.fit(X)
    # With ids it is an error: rows of a sequence are torn apart.
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="rows of a sequence must be consecutive"),
    ):
        search.set_params(cv=GroupKFold(3)).fit(sequence, groups=np.repeat(range(6), 10))


# -- sequence ids ---------------------------------------------------------------------


def check_calls(calls, method, n_folds, groups):
    """Every call of a method got the ids of its rows, and all folds are covered."""
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
            Recording(**SHORT), X, cv=GroupKFold(3), params={"groups": groups}, error_score="raise"
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
        grid = {"emission": ["hcrp", "dirichlet"]}
        found = search(Recording(**SHORT), grid, X, cv=GroupKFold(2), groups=groups)
    check_calls(calls, "score", 4, groups)
    fits = [(n, got) for name, n, got in calls if name == "fit"]
    assert len(fits) == 5
    n, got = fits[-1]
    assert n == 60
    np.testing.assert_array_equal(got, groups)
    # The refitted model saw six first steps.
    draw = found.best_estimator_.draws_[0, 0]
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
        options = {"scoring": scorer, "cv": GroupKFold(3), "groups": groups}
        found = search(Recording(**SHORT), {"transitions__alpha": [1.0]}, X, **options)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert len(check_calls(got, "scorer", 3, groups)) == 6
    assert len([name for name, _, _ in calls if name == "score"]) == 0


def test_frozen_log_likelihood_as_scorer(sequences):
    X, groups = sequences
    grid, options = {"transitions__alpha": [0.5, 2.0]}, {"cv": GroupKFold(3), "groups": groups}
    with sklearn.config_context(enable_metadata_routing=True):
        found = [
            search(HCRPHMM(**SHORT), grid, X, scoring=scoring, **options)
            for scoring in (frozen_log_likelihood, ParticleFilterScorer(adaptive=False))
        ]
    # Equal, so the ids have reached the function too.
    np.testing.assert_array_equal(*(each.cv_results_["mean_test_score"] for each in found))
    first = HCRPHMM(**SHORT).fit(X, groups=groups)
    with_ids = frozen_log_likelihood(first, X, groups=groups)
    assert with_ids != frozen_log_likelihood(first, X)
    scores = cross_val_score(
        HCRPHMM(**SHORT), X, scoring=frozen_log_likelihood, cv=TimeSeriesSplit(2)
    )
    assert np.isfinite(scores).all()


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
    if scoring is None and not LOSES_IDS:
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
    np.testing.assert_array_equal(pipeline.predict_proba(letters), plain.predict_proba(sequence))
    assert pipeline.score(letters) == plain.score(sequence)
    unknown = letters.copy()
    unknown[7] = "new"
    assert pipeline[-1].score_samples(pipeline[:-1].transform(unknown))[7] == 0
    assert pipeline.fit_predict(letters).tolist() == plain.predict(sequence).tolist()


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_states_as_features_of_a_classifier(kind):
    groups = np.repeat([0, 1, 2, 3], 40)
    states = np.tile(np.repeat([0, 1], 20), 4)
    X = np.random.default_rng(0).normal(4 * states[:, None], size=(160, 1))
    if kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=["level"])
    gaussian = HCRPHMM(emission="gaussian", **SHORT)
    is_noticed = kind == "frame" and LOSES_IDS
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(gaussian, LogisticRegression())
        with pytest.warns(match="consecutive time steps") if is_noticed else nullcontext():
            scores = cross_val_score(
                model, X, states, cv=GroupKFold(2), params={"groups": groups}, error_score="raise"
            )
        assert scores.min() > 0.9
        # The ids reach fit and transform of the first step.
        features = model[:-1].fit_transform(X, groups=groups)
    plain = clone(gaussian).fit(X, groups=groups)
    np.testing.assert_array_equal(features, plain.transform(X, groups=groups))
    np.testing.assert_array_equal(features, plain.predict_proba(X, groups=groups))
    assert not np.array_equal(features, plain.transform(X))
    names = plain.get_feature_names_out()
    assert names.tolist() == [*(f"state{k}" for k in range(plain.n_states_)), "new_state"]
    if kind == "frame":
        assert list(features) == names.tolist()
        np.testing.assert_array_equal(plain.get_feature_names_out(["level"]), names)
        with pytest.raises(ValueError, match=r"input_features=\['x'\]; .*\['level'\]"):
            plain.get_feature_names_out(["x"])
    with pytest.raises(ValueError, match="expected the names of the 1 columns"):
        plain.get_feature_names_out(["a", "b"])


def test_known_states_of_a_pipeline():
    X = np.tile([[0], [1]], (30, 1))
    known = np.full(60, -1)
    known[:2] = 1, 0
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(HCRPHMM(**SHORT), LogisticRegression())
        model.fit(X, X[:, 0], states=known)
    assert model[0].labels_[:2].tolist() == [1, 0]
    np.testing.assert_array_equal(
        HCRPHMM(**SHORT).fit_transform(X, states=known), model[:-1].transform(X)
    )


def test_pipeline_with_bins(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = np.tile([0.0, 10.0, 20.0], 20)[:, None] + rng.normal(size=(60, 2))
    pipeline = Pipeline(
        [
            ("bins", KBinsDiscretizer(3, encode="ordinal", strategy="uniform", subsample=None)),
            ("hmm", HCRPHMM(**SHORT)),
        ]
    )
    pipeline.fit(X)
    assert pipeline["hmm"].emission_.n_symbols_ == [4, 4]
    assert pipeline.predict(X).shape == (60,)
    grid = {"bins__n_bins": [2, 3], "hmm__emission__alpha": [0.5, 1.0]}
    scorer = ParticleFilterScorer(n_particles=5)
    found = search(pipeline, grid, X, cv=TimeSeriesSplit(2), scoring=scorer)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.best_estimator_.score(X) < 0


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


def test_symbols_are_no_real_numbers(sequence):
    pipeline = make_pipeline(StandardScaler(), HCRPHMM(**SHORT))
    with pytest.raises(ValueError, match=r"Negative .* discretise .*KBinsDiscretizer"):
        pipeline.fit(sequence)
    # In a search the reason is in the error, or in the warning if errors are scores.
    grid = {"hcrphmm__transitions__alpha": [0.5, 1.0]}
    with pytest.raises(ValueError, match="KBinsDiscretizer"):
        search(pipeline, grid, sequence)
    pipeline.set_params(standardscaler=StandardScaler(with_mean=False))
    with pytest.raises(ValueError, match=r"is not an integer; .*KBinsDiscretizer"):
        pipeline.fit(sequence)
    # The remedy works.
    bins = KBinsDiscretizer(5, encode="ordinal", strategy="uniform", subsample=None)
    pipeline = make_pipeline(StandardScaler(), bins, HCRPHMM(**SHORT))
    plain = HCRPHMM(**SHORT).fit(sequence)
    assert pipeline.fit(sequence).score(sequence) == plain.score(sequence)


def test_search_in_a_pipeline_with_ids(letters, calls):
    groups = np.repeat([5, 3, 9, 1, 2, 8], 10)
    grid = {
        "recording__sampler__block_size": [2, 6],
        "recording__sampler__split_merge_rate": [0, 1],
        "recording__emission": [HCRPCategorical(), DirichletCategorical(0.2)],
    }
    options = {"scoring": ParticleFilterScorer(n_particles=5), "cv": GroupKFold(2)}
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(encoder(), Recording(sampler="beam", **SHORT))
        found = search(pipeline, grid, letters, groups=groups, **options)
    assert len(np.unique(found.cv_results_["mean_test_score"])) == 8
    # Eight candidates, two folds, and the refit on everything.
    assert len([name for name, _, _ in calls if name == "fit"]) == 17
    check_calls(calls, "fit", 17, groups)
    assert found.predict(letters).shape == (60,)
