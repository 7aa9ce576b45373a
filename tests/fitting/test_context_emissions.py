"""Fits whose emissions depend on contexts, and all that follows a fit."""

from __future__ import annotations

import numpy as np
import pytest
from fitting.test_reproducibility import assert_goes_on
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict
from transitions.test_contexts import check_all_that_follows

from skihmm import HCRPHMM
from skihmm.emissions import HCRPCategorical, ProductEmission
from skihmm.inspection import EmissionDisplay, ForecastDisplay, StateSequenceDisplay
from skihmm.metrics import ParticleFilterScorer, frozen_log_likelihood
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice
from skihmm.transitions import HCRPTransitions

pd = pytest.importorskip("pandas")

SITES = ["north", "south"]


SHIFTS = {"north": 0, "south": 2, "west": 1}


def rounds(n, seed, sites=("north", "south")):
    """Four states in a ring, each with one symbol and one that sites differ in."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(n) < 0.9) % 4
    site = rng.choice(sites, n)
    other = 4 + (states + np.vectorize(SHIFTS.get)(site)) % 4
    symbols = np.where(rng.random(n) < 0.5, states, other)
    return pd.DataFrame({"symbol": symbols, "site": site})


def emission(**options):
    return HCRPCategorical(context_features=["site"], **options)


def model(sampler="auto", n_burnin=60, **options):
    options.setdefault("emission", emission())
    return HCRPHMM(sampler, n_burnin=n_burnin, n_draws=6, thin=2, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    return model().fit(rounds(400, 0))


def test_the_context_explains_the_symbols(fitted):
    X, test = rounds(400, 0), rounds(150, 1)
    plain = model(emission="hcrp").fit(X[["symbol"]])
    assert fitted.score(test) > plain.score(test[["symbol"]]) + 0.2
    assert frozen_log_likelihood(fitted, test) > fitted.score(test) - 0.2
    draws = fitted.draws_
    assert draws.emission_context_alpha.shape == (1, 6, 1)
    assert draws.hyperparameters["emission_alpha"].shape == (1, 6)
    assert fitted.emission_.context_categories_ == (tuple(dict.fromkeys(X["site"])),)
    assert (draws.summed_lp() >= draws.lp - 1e-9).all()


@pytest.mark.filterwarnings("ignore:.*at the beginning or end of sequences:UserWarning")
@pytest.mark.parametrize(
    "sampler",
    [
        StepwiseGibbs("rcd", split_merge_rate=1),
        StepwiseSlice(run_split_merge_rate=1),
        BlockedGibbs(5),
        BlockedBeam(5, split_merge_rate=1),
    ],
)
def test_all_that_follows_a_fit(sampler):
    X = rounds(120, 2)
    X.loc[::17, "symbol"] = np.nan
    X.loc[::13, "site"] = None
    hmm = model(sampler, 20).fit(X)
    test = rounds(40, 3)
    test.loc[5:9, "site"] = "west"
    test.loc[20:22, "site"] = None
    check_all_that_follows(hmm, X, test, "site", ("north", "south", "west"))


def test_predictions_depend_on_the_context(fitted):
    X = rounds(401, 0)[:-1]
    proba = {
        site: fitted.predict_next(X, 1, contexts=[site]).proba("symbol")[0]
        for site in (*SITES, "west", None)
    }
    np.testing.assert_array_equal(proba["west"], proba[None])
    north, south = (proba[site][4:8].argmax() for site in SITES)
    assert north == (south + 2) % 4
    drawn = fitted.predict_next(X, 1, contexts=["south"]).sample(500, random_state=0)
    share = np.bincount(drawn[:, 0, 0].astype(int), minlength=8) / 500
    np.testing.assert_allclose(share, proba["south"][:8], atol=0.1)
    X = X.copy()
    X.loc[[50, 51, 200, 201], "symbol"] = None
    first, other = (fitted.impute(X.assign(site=site))["symbol"] for site in SITES)
    assert (first[[50, 51, 200, 201]] != other[[50, 51, 200, 201]]).any()


def test_simulated_symbols_depend_on_the_context(fitted):
    n = 400
    (first, states), (second, others) = (
        fitted.sample(n, random_state=1, contexts=[site] * n) for site in SITES
    )

    def usual(X, states):
        symbols = X["symbol"].to_numpy().astype(int)
        counts = [np.bincount(symbols[states == k], minlength=8) for k in range(4)]
        return np.array(counts)[:, 4:].argmax(axis=1)

    north, south = usual(first, states), usual(second, others)
    np.testing.assert_array_equal((north + 2) % 4, south)


def test_missing_and_unseen_contexts_have_the_law_above(fitted):
    test = rounds(60, 4)
    scores, adaptive = [], []
    for value in ("west", None):
        test["site"] = value
        scores.append(ParticleFilterScorer(adaptive=False).score_samples(fitted, test))
        adaptive.append(fitted.score(test))
    np.testing.assert_allclose(*scores)
    # Only a context has restaurants to learn in.
    assert adaptive[0] != adaptive[1]


def test_a_new_context_learns_as_it_goes(fitted):
    test = rounds(300, 13, ["west"])
    log_probs = fitted.score_samples(test)[100:]
    frozen = ParticleFilterScorer(adaptive=False).score_samples(fitted, test)[100:]
    assert log_probs.mean() > frozen.mean() + 0.3


def test_the_same_column_for_transitions_and_emission():
    X = rounds(120, 5).assign(day=np.arange(120) % 3)
    both = model(n_burnin=10, transitions=HCRPTransitions(context_features=["day", "site"])).fit(X)
    assert both.draws_.context_alpha.shape == (1, 6, 2)
    assert both.context_transmat((1, "north")).shape == (both.n_states_ + 1,) * 2
    assert np.isfinite(both.score(X))
    # Those of the transitions, and then the others.
    given = both._fitted.given
    assert (given.columns.tolist(), given.of_emission.tolist()) == ([2, 1], [1])
    simulated, _ = both.sample(3, contexts=[[1, "north"], [2, None], [None, "south"]])
    assert simulated["day"].tolist()[:2] == [1, 2]
    only = model(n_burnin=10, transitions=HCRPTransitions(context_features=["day"])).fit(X)
    following = only.predict_next(X, 2, contexts=[[0, "north"], [1, "south"]])
    assert following.proba("symbol").shape == (2, 9)
    with pytest.raises(ValueError, match="depend on 1 columns"):
        only.context_transmat((1, "north"))


def test_two_columns_in_their_order():
    X = rounds(120, 6).assign(device=np.repeat([7, 3], 60))
    X["other"] = X["symbol"]
    hmm = model(n_burnin=10, emission=HCRPCategorical(context_features=["device", "site"])).fit(X)
    assert hmm.emission_.context_categories_[0] == (7, 3)
    names = hmm.draws_.hyperparameters["emission_context_alpha"]
    assert names.shape == (1, 6, 2)
    assert np.isfinite(hmm.score(X))
    shares = hmm.predict_next(X, 1, contexts=[[3, "north"]]).proba("other")
    np.testing.assert_allclose(shares.sum(), 1.0)


def test_products_have_parts_with_contexts():
    X = rounds(150, 7).assign(level=lambda frame: frame["symbol"] * 1.5, count=3)
    parts = [
        ("shown", emission(), ["symbol"]),
        ("level", "autoregressive", ["level"]),
        ("count", "poisson", ["count"]),
    ]
    hmm = model(n_burnin=10, emission=ProductEmission(parts)).fit(X)
    assert hmm.draws_.hyperparameters["emission_shown__context_alpha"].shape[2] == 1
    assert np.isfinite(hmm.score(X[:40]))
    assert np.isfinite(frozen_log_likelihood(hmm, X[:40]))
    X.loc[[20, 70], "symbol"] = None
    X.loc[[30, 71], "level"] = None
    for method in ("expectation", "sample"):
        filled = hmm.impute(X, method=method, random_state=0)
        assert not filled.isna().any(axis=None)
    simulated, _ = hmm.sample(5, contexts=["north", "south", "north", None, "west"])
    assert list(simulated.columns) == list(X.columns)
    following = hmm.predict_next(X, 2, contexts=["north", "south"])
    assert following.proba("symbol").shape == (2, 9)
    assert following.mean().shape == (2, 3)
    assert following.sample(3, random_state=0).shape == (3, 2, 3)
    extended = hmm.partial_fit(X.assign(site="west"))
    part = extended.emission_.emissions_[0][1]
    assert part.context_categories_[0][-1] == "west"


def test_known_states():
    X = rounds(60, 8)
    states = np.full(60, -1)
    states[[3, 9]] = 0, 1
    hmm = model(n_burnin=10).fit(X, states=states)
    assert (hmm.labels_[3], hmm.labels_[9]) == (0, 1)
    assert np.isfinite(hmm.score(X))


def test_no_columns_are_the_plain_emission():
    X = rounds(60, 6)[["symbol"]]
    lp = [
        model(n_burnin=5, emission=HCRPCategorical(context_features=features)).fit(X).draws_.lp
        for features in (None, [])
    ]
    np.testing.assert_array_equal(*lp)


def test_arrays_indices_and_masks_are_the_same():
    X = rounds(60, 6).to_numpy()
    scores = [
        model(n_burnin=5, emission=HCRPCategorical(context_features=features)).fit(X).draws_.lp
        for features in ([1], [-1], [False, True])
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_partial_fit_adds_contexts():
    first, second = rounds(60, 7), rounds(50, 8)
    second.loc[:20, "site"] = "west"
    first.loc[[3, 30], "site"] = None
    hmm = model(n_burnin=10)
    before = hmm.partial_fit(first).emission_
    hmm.partial_fit(second)
    assert set(hmm.emission_.context_categories_[0]) == {*SITES, "west"}
    assert "west" not in before.context_categories_[0]
    assert hmm.labels_.shape == (110,)
    adapted = hmm.predict_next(first, 1, contexts=["west"]).proba()
    columns = hmm._fitted.sequences.codes[:, 1]
    assert set(columns) == {-1, 0, 1, 2}
    assert (adapted != hmm.predict_next(first, 1, contexts=["east"]).proba()).any()
    hmm.set_params(warm_start=True)
    whole = pd.concat([first, second], ignore_index=True)
    hmm.fit(whole)
    assert hmm.draws_.n_draws.tolist() == [12]


def test_checkpoints_continue_bit_for_bit(tmp_path):
    X = rounds(60, 9)
    file = tmp_path / "chain.npz"

    def make(**params):
        return model(n_burnin=10).set_params(**params)

    assert_goes_on(make, lambda hmm: hmm.fit(X), file, 3, 8)
    with pytest.raises(ValueError, match="another run"):
        make(checkpoint=file).fit(X.assign(site=X["site"].to_numpy()[::-1]))


def test_searches_and_groups():
    X = rounds(90, 11)
    groups = np.repeat([0, 1, 2], 30)
    X.index = pd.Index(groups.astype(str))
    hmm = model(n_burnin=5)
    search = GridSearchCV(
        hmm,
        {"emission__context_features": [["site"], [1], [False, True]]},
        cv=GroupKFold(3),
        error_score="raise",
    )
    search.fit(X, groups=groups)
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores, scores[0])
    assert cross_val_predict(hmm, X, groups=groups, cv=GroupKFold(3)).shape == (90,)
    assert clone(hmm.emission).get_params()["context_features"] == ["site"]


def test_concentrations_that_are_fixed():
    fixed = emission(alpha=2.0, context_alpha=[0.5], concentration_prior=None)
    draws = model(n_burnin=5, emission=fixed).fit(rounds(40, 12)).draws_
    assert (draws.hyperparameters["emission_context_alpha"] == 0.5).all()
    assert (draws.emission_alpha == 2.0).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"context_features": ["place"]}, "no column 'place'"),
        ({"context_features": [0, 1]}, "all columns"),
        ({"context_features": [1], "context_alpha": [1, 2]}, "2 entries"),
    ],
)
def test_errors_of_parameters(options, match):
    with pytest.raises(ValueError, match=match):
        model(emission=HCRPCategorical(**options)).fit(rounds(10, 0))


def test_errors_of_columns_and_samplers():
    X = rounds(20, 0)
    transitions = HCRPTransitions(context_features=["symbol"])
    with pytest.raises(ValueError, match="together all 2 columns"):
        model(transitions=transitions).fit(X)
    with pytest.raises(TypeError, match="HCRPCategorical"):
        model("stick_breaking").fit(X)


def test_displays_of_contexts(fitted):
    """Panels of what is observed; the emissions of a context or of a step without one."""
    X = rounds(60, 14)
    shown = {
        site: EmissionDisplay.from_estimator(fitted, context=site).columns
        for site in (*SITES, "west", None)
    }
    assert [len(columns) for columns in shown.values()] == [1] * 4
    probs = {site: columns[0].probabilities for site, columns in shown.items()}
    np.testing.assert_array_equal(probs["west"], probs[None])
    north, south = (probs[site][:4, 4:8].argmax(axis=1) for site in SITES)
    np.testing.assert_array_equal(north, (south + 2) % 4)
    assert shown["north"][0].name == "symbol"
    display = StateSequenceDisplay.from_estimator(fitted, X)
    assert display.symbols == [True, True]
    with pytest.raises(ValueError, match="has 2 values; the emission depends on 1"):
        EmissionDisplay.from_estimator(fitted, context=("north", 1))


def test_displays_of_a_context_of_several_parts():
    """A column that two parts depend on is one column of the context."""
    X = rounds(200, 16).assign(day=np.arange(200) % 2)
    X["other"] = (X["site"] == "north") + 2 * X["day"]
    both = HCRPCategorical(context_features=["site", "day"])
    parts = [("shown", emission(), ["symbol"]), ("other", both, ["other"])]
    hmm = model(emission=ProductEmission(parts)).fit(X)
    for place, site in enumerate(("south", "north")):
        for day in range(2):
            display = EmissionDisplay.from_estimator(hmm, context=(site, day))
            likely = display.columns[1].probabilities[:-1].argmax(axis=1)
            assert (likely == place + 2 * day).all()
    with pytest.raises(ValueError, match="has 3 values; the emission depends on 2"):
        EmissionDisplay.from_estimator(hmm, context=("north", 1, 1))


def test_forecasts_in_contexts():
    X = rounds(80, 15).assign(level=lambda frame: frame["symbol"] * 1.5)
    X = X[["site", "symbol", "level"]]
    parts = [("shown", emission(), ["symbol"]), ("level", "poisson", ["level"])]
    X["level"] = X["level"].round()
    hmm = model(n_burnin=10, emission=ProductEmission(parts)).fit(X)
    display = ForecastDisplay.from_estimator(hmm, X, 3, contexts=["north", "west", None])
    assert (display.names, display.median.shape) == (["level"], (3, 1))
    for column, match in (("site", "holds contexts"), ("symbol", "holds symbols")):
        with pytest.raises(ValueError, match=match):
            ForecastDisplay.from_estimator(hmm, X, 3, columns=[column])
