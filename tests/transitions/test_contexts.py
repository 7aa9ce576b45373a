"""Fits whose transitions depend on contexts, and all that follows a fit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from fitting.test_reproducibility import assert_goes_on
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KBinsDiscretizer

from skihmm import HCRPHMM
from skihmm._data.contexts import Contexts, find_categories
from skihmm.emissions import HCRPCategorical, NormalInverseGamma
from skihmm.inspection import (
    EmissionDisplay,
    StateSequenceDisplay,
    TraceDisplay,
    TransitionMatrixDisplay,
)
from skihmm.metrics import ParticleFilterScorer, frozen_log_likelihood
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StickBreakingBeam,
    StickBreakingGibbs,
)
from skihmm.transitions import HCRPTransitions

pd = pytest.importorskip("pandas")

ACTIONS = ("stay", "go")


def ring(n, seed, n_states=4):
    """States in a ring that stays or goes on, as the action says; and their symbols."""
    rng = np.random.default_rng(seed)
    actions = rng.choice(ACTIONS, n)
    states = np.cumsum(actions == "go") % n_states
    symbols = np.where(rng.random(n) < 0.95, states, rng.integers(n_states, size=n))
    return pd.DataFrame({"symbol": symbols, "action": actions})


def model(sampler="auto", n_burnin=60, **options):
    options.setdefault("context_features", ["action"])
    return HCRPHMM(
        sampler,
        transitions=HCRPTransitions(**options),
        n_burnin=n_burnin,
        n_draws=6,
        thin=2,
        random_state=0,
    )


@pytest.fixture(scope="module")
def fitted():
    return model().fit(ring(300, 0))


def test_contexts_keep_their_type(fitted):
    """Or every one of them would be a new context."""
    X = ring(20, 1)
    new = X.assign(action=np.where(X.action == "go", "jump", X.action))
    assert fitted.predict(new).shape == (20,)
    message = "has 1; in fit it had strings, such as '(stay|go)'"
    with pytest.raises(TypeError, match=message):
        fitted.score(X.assign(action=1))


def test_the_context_explains_the_transitions(fitted):
    X, test = ring(300, 0), ring(150, 1)
    plain = HCRPHMM(n_burnin=60, n_draws=6, thin=2, random_state=0).fit(X[["symbol"]])
    assert fitted.score(test) > plain.score(test[["symbol"]]) + 0.3
    assert frozen_log_likelihood(fitted, test) > fitted.score(test) - 0.2
    assert fitted.draws_.context_alpha.shape == (1, 6, 1)
    assert fitted.transitions_.context_categories_ == (tuple(dict.fromkeys(X["action"])),)
    stay, go = (fitted.context_transmat(action) for action in ACTIONS)
    n = fitted.n_states_
    for matrix in (stay, go, fitted.transmat_):
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    assert np.diag(stay)[:4].min() > 0.5
    assert np.diag(go)[:4].max() < 0.5
    np.testing.assert_array_equal(fitted.context_transmat("fly"), fitted.transmat_)
    assert stay.shape == (n + 1, n + 1)


def check_all_that_follows(hmm, X, test, name, values):
    """Methods of a fit whose contexts are a column: two known values, and a new one."""
    first, second, new = values
    path, probs = hmm.predict(test), hmm.predict_proba(test).to_numpy()
    assert path.shape == (40,)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    for scorer in (ParticleFilterScorer(30), ParticleFilterScorer(adaptive=False)):
        assert np.isfinite(scorer(hmm, test))
    following = hmm.predict_next(test, 3, contexts=[first, new, None])
    proba = following.proba("symbol")
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert following.sample(5, random_state=0).shape == (5, 3, 1)
    log_probs = following.log_prob([[0], [1], [2]])
    np.testing.assert_allclose(log_probs, np.log(proba[np.arange(3), [0, 1, 2]]))
    for method in ("expectation", "sample"):
        filled = hmm.impute(X, method=method, random_state=0)
        assert not filled["symbol"].isna().any()
        assert filled[name].equals(X[name])
    simulated, _ = hmm.sample(4, contexts=[first, second, new, None], random_state=0)
    assert list(simulated.columns) == ["symbol", name]
    assert simulated[name].tolist()[:3] == [first, second, new]
    assert simulated[name].isna().tolist() == [False] * 3 + [True]
    copy = pickle.loads(pickle.dumps(hmm))
    assert copy.score(test) == hmm.score(test)
    np.testing.assert_array_equal(copy.predict(test), path)


@pytest.mark.filterwarnings("ignore:.*at the beginning or end of sequences:UserWarning")
@pytest.mark.parametrize("order", ["state", "context"])
@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        (StepwiseGibbs("rcd", split_merge_rate=1), {}),
        (BlockedGibbs(5), {}),
        (BlockedBeam(5), {}),
        ("auto", {"expected_dwell": 3}),
        (StepwiseGibbs(run_split_merge_rate=1), {"stay_prior": (2, 1)}),
    ],
)
def test_all_that_follows_a_fit(order, sampler, options):
    X = ring(120, 2)
    X.loc[::17, "symbol"] = np.nan
    X.loc[::13, "action"] = None
    hmm = model(sampler, 20, context_order=order, **options).fit(X)
    test = ring(40, 3)
    test.loc[5:9, "action"] = "jump"
    test.loc[20:22, "action"] = None
    check_all_that_follows(hmm, X, test, "action", ("go", "stay", "jump"))
    assert hmm.sample(4, random_state=0)[0]["action"].isna().all()
    assert hmm.dwell_times_.min() > 1
    assert ("stay_prior" in hmm.draws_.hyperparameters) == bool(options)


def test_missing_and_unseen_contexts_have_the_law_above(fitted):
    test = ring(60, 4)
    scores = []
    for value in ("jump", None):
        test["action"] = value
        scores.append(ParticleFilterScorer(adaptive=False).score_samples(fitted, test))
    np.testing.assert_allclose(*scores)
    adaptive = [fitted.score(test.assign(action=value)) for value in ("jump", None)]
    # Only a context has restaurants to learn in.
    assert adaptive[0] != adaptive[1]


def test_a_new_context_learns_as_it_goes(fitted):
    """A new action that goes round the other way."""
    states = -np.arange(120) % 4
    test = pd.DataFrame({"symbol": states, "action": "back"})
    log_probs = fitted.score_samples(test)
    assert log_probs[80:].mean() > log_probs[:20].mean() + 0.5
    assert log_probs[80:].mean() > frozen_log_likelihood(fitted, test) + 0.5


def test_two_columns_in_their_order():
    X = ring(150, 5).assign(subject=np.repeat([7, 3, 5], 50))
    hmm = model(n_burnin=10, context_features=["subject", "action"]).fit(X)
    assert hmm.draws_.context_alpha.shape == (1, 6, 2)
    assert hmm.transitions_.context_categories_[0] == (7, 3, 5)
    inner, leaf = hmm.context_transmat(3), hmm.context_transmat((3, "go"))
    assert not np.allclose(inner, leaf)
    np.testing.assert_array_equal(hmm.context_transmat((3, "fly")), inner)
    np.testing.assert_array_equal(hmm.context_transmat((8, "go")), hmm.transmat_)
    with pytest.raises(ValueError, match=r"has 3 values.*2 columns"):
        hmm.context_transmat((3, "go", 1))


def test_displays_of_contexts(fitted):
    for action in ACTIONS:
        display = TransitionMatrixDisplay.from_estimator(fitted, context=action)
        np.testing.assert_array_equal(display.transmat, fitted.context_transmat(action))
    (column,) = EmissionDisplay.from_estimator(fitted).columns
    assert column.name == "symbol"
    display = StateSequenceDisplay.from_estimator(fitted, ring(40, 1))
    assert display.symbols == [True, True]
    trace = TraceDisplay.from_estimator(fitted, quantities=["lp", "concentrations"])
    names = trace.axes_[1].get_legend().get_texts()
    assert [name.get_text() for name in names][2:] == ["context_alpha"]
    values = fitted.draws_.context_alpha[0, :, 0]
    np.testing.assert_allclose(trace.values["context_alpha"][0], values)


@pytest.mark.parametrize("order", ["state", "context"])
def test_columns_without_any_value(order):
    X = ring(40, 13).assign(subject=np.nan, site="a")
    X.loc[3, "site"] = None
    features = ["site", "subject", "action"]
    hmm = model(n_burnin=9, context_features=features, context_order=order).fit(X)
    assert hmm.transitions_.context_categories_[1] == ()
    assert np.isfinite(hmm.score(X))


def test_arrays_indices_and_masks_are_the_same():
    X = ring(60, 6).to_numpy()
    scores = [
        model(n_burnin=5, context_features=features).fit(X).draws_.lp
        for features in ([1], [-1], [False, True])
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_no_columns_are_the_plain_model():
    X = ring(60, 6)[["symbol"]]
    lp = [model(n_burnin=5, context_features=features).fit(X).draws_.lp for features in (None, [])]
    np.testing.assert_array_equal(*lp)


DWELLING = ({}, {"expected_dwell": 2})


@pytest.mark.parametrize("options", DWELLING)
@pytest.mark.parametrize("order", ["state", "context"])
def test_partial_fit_adds_contexts(order, options):
    first, second = ring(60, 7), ring(50, 8)
    second.loc[:20, "action"] = "jump"
    first.loc[[3, 30], "action"] = None
    second.loc[40, "action"] = None
    hmm = model(n_burnin=10, context_order=order, **options)
    hmm.partial_fit(first).partial_fit(second)
    assert set(hmm.transitions_.context_categories_[0]) == {"stay", "go", "jump"}
    assert hmm.labels_.shape == (110,)
    state = hmm._fitted.sequences
    assert state.contexts.codes.shape == (110, 1)
    hmm.set_params(warm_start=True)
    whole = pd.concat([first, second], ignore_index=True)
    hmm.fit(whole)
    assert hmm.draws_.n_draws.tolist() == [12]


@pytest.mark.parametrize("options", DWELLING)
def test_checkpoints_continue_bit_for_bit(tmp_path, options):
    X = ring(60, 9)
    file = tmp_path / "chain.npz"

    def make(**params):
        return model(n_burnin=10, **options).set_params(**params)

    assert_goes_on(make, lambda hmm: hmm.fit(X), file, 3, 8)
    with pytest.raises(ValueError, match="another run"):
        make(checkpoint=file).fit(X.assign(action=X["action"].to_numpy()[::-1]))


def test_jobs_give_the_same_draws():
    X = ring(60, 10)
    draws = [
        model(n_burnin=5).set_params(n_chains=2, n_jobs=n_jobs).fit(X).draws_ for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(draws[0].lp, draws[1].lp)


def test_searches_pipelines_and_groups():
    X = ring(90, 11)
    X["symbol"] = X["symbol"] + np.random.default_rng(0).normal(0, 0.1, len(X))
    groups = np.repeat([0, 1, 2], 30)
    binned = ColumnTransformer(
        [("bins", KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), ["symbol"])],
        remainder="passthrough",
    )
    pipeline = Pipeline([("bins", binned), ("hmm", model(n_burnin=5, context_features=[1]))])
    search = GridSearchCV(
        pipeline,
        {"hmm__transitions__context_features": [[1], [True, False]]},
        cv=GroupKFold(3),
        error_score="raise",
    )
    search.fit(X, groups=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    path = cross_val_predict(pipeline, X, groups=groups, cv=GroupKFold(3))
    assert path.shape == (90,)


def test_samplers_that_leave_contexts_out_refuse_them():
    X = ring(20, 12)
    for sampler in (DirectAssignmentGibbs(), StickBreakingGibbs(), StickBreakingBeam()):
        with pytest.raises(TypeError, match="Use StepwiseGibbs, BlockedGibbs or Bl"):
            model(sampler).fit(X)
    # No column is no context.
    symbols = [[0], [1]] * 10
    for none in ([], [False]):
        transitions = HCRPTransitions(context_features=none)
        hmm = HCRPHMM("stick_breaking", transitions=transitions, n_burnin=2, n_draws=2)
        assert hmm.fit(symbols).draws_.context_alpha is None


@pytest.mark.parametrize(
    ("features", "error", "match"),
    [
        ("action", TypeError, "expected a list"),
        (["place"], ValueError, "no column 'place'"),
        ([2], ValueError, "no column 2; it has 2 columns"),
        ([True], ValueError, "mask of 1 entries"),
        ([0, 1], ValueError, "all columns"),
        ([1, 1], ValueError, "twice"),
        ([1.5], TypeError, "expected a list"),
    ],
)
def test_errors_of_features(features, error, match):
    with pytest.raises(error, match=match):
        Contexts("context_features", features).columns(2, ["symbol", "action"])


def test_errors_of_coming_contexts(fitted):
    X = ring(10, 0)
    with pytest.raises(ValueError, match="context_alpha has 2 entries"):
        model(context_alpha=[1.0, 2.0]).fit(X)
    with pytest.raises(ValueError, match=r"shape \(1, 1\).*2 steps and 1 columns"):
        fitted.predict_next(X, 2, contexts=["go"])
    with pytest.raises(ValueError, match=r"shape \(3,\)|shape \(3, 1\)"):
        fitted.sample(2, contexts=["go"] * 3)
    with pytest.raises(ValueError, match=r"columns \['symbol'\]; expected \['action'\]"):
        fitted.predict_next(X, 2, contexts=X[["symbol"]][:2])
    expected = fitted.predict_next(X, 2, contexts=X["action"][:2].tolist()).proba()
    found = fitted.predict_next(X, 2, contexts=X[["action"]][:2]).proba()
    np.testing.assert_array_equal(found, expected)
    plain = HCRPHMM(n_burnin=1, n_draws=1, random_state=0).fit(X[["symbol"]])
    with pytest.raises(ValueError, match="neither transitions nor emission"):
        plain.sample(2, contexts=["go", "go"])


@pytest.mark.parametrize("top", [2**53, -(2**60)])
@pytest.mark.parametrize(
    "recipe",
    [
        {"transitions": HCRPTransitions(context_features=[1])},
        {"emission": HCRPCategorical(context_features=[1])},
        {"emission": NormalInverseGamma(subject_feature=1)},
    ],
)
def test_integers_that_floats_merge_are_refused(recipe, top):
    """Six ids beside a column of floats would be three."""
    who = np.repeat(np.arange(6), 25)
    rows = [[float(i % 2), top + int(u)] for i, u in enumerate(who)]
    hmm = HCRPHMM(**{"emission": "gaussian", **recipe}, n_burnin=2, n_draws=2)
    with pytest.raises(ValueError, match=r"holds the float .*; from 2\*\*53 on"):
        hmm.fit(rows, groups=who)
    small = np.array(rows)
    small[:, 1] = who
    hmm.fit(small, groups=who)
    with pytest.raises(ValueError, match=r"holds the float .*; from 2\*\*53 on"):
        hmm.predict(rows, groups=who)
    # Integers are exact.
    (found,) = find_categories(np.array(rows, dtype=object)[:, 1:])
    assert len(found) == 6
