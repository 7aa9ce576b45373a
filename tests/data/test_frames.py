"""Data frames as results: where frames came in, and where set_output asks for them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.emissions import DirichletCategorical, ProductEmission
from skihmm.transitions import HCRPTransitions

pd = pytest.importorskip("pandas")

SHORT = {"n_burnin": 2, "n_draws": 2, "thin": 1, "n_particles": 5, "random_state": 0}
INDEX = pd.date_range("2020-01-01", periods=30)
REALS = np.random.default_rng(0).normal(size=(30, 2))


def mixed_frame():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "word": pd.Categorical(rng.choice(list("abc"), 30)),
            "size": rng.normal(size=30),
            "n": pd.array(rng.poisson(3, 30), dtype="Int64"),
            "plain": rng.poisson(3, 30),
        }
    )
    return frame.set_index(INDEX)


def mixed_model():
    parts = [
        ("word", "hcrp", ["word"]),
        ("size", "gaussian", ["size"]),
        ("n", "poisson", ["n", "plain"]),
    ]
    return HCRPHMM(emission=ProductEmission(parts), **SHORT)


@pytest.fixture(scope="module")
def model():
    return HCRPHMM(emission="gaussian", **SHORT).fit(REALS)


@pytest.mark.parametrize("method", ["smooth", "filter"])
def test_probabilities(model, method):
    expected = model.predict_proba(REALS, method=method)
    assert isinstance(expected, np.ndarray)
    X = pd.DataFrame(REALS, index=INDEX)
    found = model.predict_proba(X, method=method)
    pd.testing.assert_index_equal(found.index, INDEX)
    assert list(found) == [f"state{k}" for k in range(model.n_states_)] + ["new_state"]
    np.testing.assert_array_equal(found, expected)
    labels = model.predict(X, method=method)
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(labels, expected.argmax(axis=1))


@pytest.mark.parametrize("method", ["expectation", "sample"])
def test_imputed_frames_keep_their_types(method):
    X = mixed_frame()
    model = mixed_model().fit(X)
    holes = X.copy()
    holes.iloc[3, 0] = holes.iloc[4, 1] = None
    holes.iloc[5:8, 2] = None
    found = model.impute(holes, method=method)
    pd.testing.assert_series_equal(found.dtypes, X.dtypes)
    assert not found.isna().any(axis=None)
    there = holes.notna()
    for name in X:
        shown = there[name]
        pd.testing.assert_series_equal(found[name][shown], holes[name][shown])
    arrays = model.set_output(transform="default").impute(holes, method=method)
    assert isinstance(arrays, np.ndarray)
    np.testing.assert_array_equal(found.to_numpy(object), arrays)
    assert holes.isna().sum().sum() == 5


def test_frames_without_holes_are_copied(model):
    X = pd.DataFrame(REALS, index=INDEX)
    found = model.impute(X)
    pd.testing.assert_frame_equal(found, X)
    found.iloc[0, 0] = 7.0
    assert X.iloc[0, 0] == REALS[0, 0]


def test_types_that_the_values_do_not_fit():
    # Means are no integers, and the category was not among those of the new data.
    X = pd.DataFrame({"n": pd.array([1, None, 4, 2], dtype="Int64")})
    found = HCRPHMM(emission="gaussian", **SHORT).fit(X).impute(X)
    assert found["n"].dtype == float
    words = pd.DataFrame({"word": pd.Categorical(["a"] * 20)})
    model = HCRPHMM(**SHORT).fit(words)
    new = pd.DataFrame({"word": pd.Categorical([None, "b"], categories=["b"])})
    assert model.impute(new)["word"].tolist() == ["a", "b"]


def test_samples_are_like_the_data_of_the_fit():
    frame = mixed_frame().astype({"plain": "float32"})
    model = mixed_model().fit(frame)
    X, states = model.sample(7, random_state=0)
    pd.testing.assert_series_equal(X.dtypes, frame.dtypes)
    assert len(X) == len(states) == 7
    assert set(X["word"]) <= set("abc")
    numbers = HCRPHMM(emission="gaussian", **SHORT).fit(frame[["plain"]].astype(int))
    assert numbers.sample(7)[0].dtypes.tolist() == [float]
    model.set_output(transform="default")
    arrays, again = model.sample(7, random_state=0)
    np.testing.assert_array_equal(arrays, X.to_numpy(object))
    np.testing.assert_array_equal(again, states)


def ordered_frame(order):
    sizes = np.random.default_rng(2).permutation(["mid", "low", "high"] * 10)
    # One category does not occur.
    sizes = pd.Categorical(sizes, ["low", "none", "mid", "high"], ordered=order)
    return pd.DataFrame({"n": [1, 2, 3] * 10, "size": sizes})


@pytest.mark.parametrize("order", [True, False])
def test_ordered_categories_keep_their_order(order):
    expected = ["low", "mid", "high"] if order else ["high", "low", "mid"]
    X = ordered_frame(order)
    product = ProductEmission([("a", "dirichlet", ["size"]), ("b", "poisson", ["n"])])
    model = HCRPHMM(emission=product, **SHORT).fit(X)
    contexts = HCRPTransitions(context_features=["n"])
    for emission in (
        model.emission_.emissions_[0][1],
        clone(product).fit(X).emissions_[0][1],
        HCRPHMM(transitions=contexts, **SHORT).fit(X).emission_,
        DirichletCategorical().fit(X[["size"]]),
    ):
        assert emission.categories_[0].tolist() == expected
    # Codes of other data are by name.
    plain = X.assign(size=X["size"].astype(str))
    np.testing.assert_array_equal(model.predict(plain), model.predict(X))


def test_a_failed_fit_does_not_change_what_samples_are(model):
    model = clone(model).fit(REALS)
    with pytest.raises(ValueError, match="which is no number"):
        model.fit(pd.DataFrame({"a": ["x", "y"]}))
    assert isinstance(model.sample()[0], np.ndarray)


def test_set_output(model):
    model = clone(model).fit(REALS)
    holes = REALS.copy()
    holes[3] = np.nan
    assert model.set_output(transform="pandas") is model
    assert clone(model).fit(REALS).sample()[0].columns.tolist() == ["x0", "x1"]
    assert isinstance(model.predict_proba(REALS), pd.DataFrame)
    assert model.impute(holes).columns.tolist() == ["x0", "x1"]
    assert isinstance(model.set_output().sample()[0], pd.DataFrame)
    model.set_output(transform="default")
    for found in (
        model.predict_proba(pd.DataFrame(REALS)),
        model.impute(pd.DataFrame(holes)),
        model.sample()[0],
    ):
        assert isinstance(found, np.ndarray)
    with pytest.raises(ValueError, match="transform='arrow'; expected one of 'default'"):
        model.set_output(transform="arrow")


def test_global_configuration(model):
    with config_context(transform_output="pandas"):
        assert isinstance(model.predict_proba(REALS), pd.DataFrame)
        assert isinstance(model.sample()[0], pd.DataFrame)
        scaled = make_pipeline(StandardScaler(), clone(model)).fit(REALS)
        assert isinstance(scaled.predict_proba(REALS), pd.DataFrame)
    assert isinstance(model.predict_proba(REALS), np.ndarray)


def test_fits_do_not_depend_on_the_global_configuration(monkeypatch):
    monkeypatch.setattr("skihmm._fitting.starts.MOST_CLUSTERED", len(REALS) // 2)
    words = HCRPHMM(**SHORT), np.array([["a"], ["b"], ["b"]] * 10)
    numbers = HCRPHMM(emission="gaussian", **SHORT | {"init": "kmeans"}), REALS
    for model, X in (words, numbers):
        lp = model.fit(X).draws_.lp
        with config_context(transform_output="pandas"):
            np.testing.assert_array_equal(clone(model).fit(X).draws_.lp, lp)
            assert np.isfinite(model.score(X))


def test_cross_validated_probabilities_of_frames():
    # (Folds must have equal numbers of states, as in scikit-learn: here there is one.)
    X = pd.DataFrame({"letter": ["a"] * 30}, index=INDEX)
    fixed = HCRPTransitions(1e-6, 1e-6, concentration_prior=None)
    hmm = HCRPHMM("stepwise", transitions=fixed, init="single", **SHORT)
    found = cross_val_predict(hmm, X, cv=2, method="predict_proba")
    assert found.shape == (30, 2)


def test_polars(model):
    pl = pytest.importorskip("polars")
    X = pl.DataFrame(REALS, schema=["a", "b"])
    probs = model.predict_proba(REALS)
    fitted = clone(model).fit(X)
    np.testing.assert_array_equal(fitted.predict_proba(X).to_numpy(), probs)
    sampled = fitted.sample(5)[0]
    assert isinstance(sampled, pl.DataFrame)
    assert sampled.columns == ["a", "b"]
    assert fitted.transform(X).columns == fitted.get_feature_names_out().tolist()
    with pytest.raises(TypeError, match=r"a LazyFrame; expected a DataFrame: X\.collect"):
        fitted.predict(X.lazy())
    other = clone(model).set_output(transform="polars").fit(REALS)
    assert isinstance(other.sample()[0], pl.DataFrame)
    mixed = pl.DataFrame({"word": ["a", None, "b"] * 10, "n": [1, 2, None] * 10})
    parts = [("word", "hcrp", ["word"]), ("n", "poisson", ["n"])]
    hmm = HCRPHMM(emission=ProductEmission(parts), **SHORT).fit(mixed)
    filled = hmm.impute(mixed)
    assert filled.schema == mixed.schema
    assert filled.null_count().row(0) == (0, 0)
    assert filled["word"].gather_every(3).to_list() == ["a"] * 10
    assert hmm.sample(3)[0].schema == mixed.schema
    sizes = pl.Series(["mid", "low", "high"] * 10).cast(pl.Enum(["low", "mid", "high"]))
    X = pl.DataFrame({"size": sizes, "word": sizes.cast(pl.Categorical)})
    hmm = HCRPHMM(**SHORT).fit(X.with_columns(n=pl.Series([1, 2, 3] * 10, dtype=pl.Int8)))
    assert hmm.emission_.categories_[0].tolist() == ["low", "mid", "high"]
    assert hmm.sample(3)[0].dtypes == [*X.dtypes, pl.Int8]


@pytest.mark.parametrize("dtype", ["String", "Categorical", "Enum"])
def test_words_and_ids_of_polars(dtype):
    pl = pytest.importorskip("polars")
    kind = pl.Enum(["a", "b"]) if dtype == "Enum" else getattr(pl, dtype)
    X = pl.DataFrame({"word": pl.Series(["a", "b"] * 15).cast(kind)})
    groups = np.repeat([0, 1], 15)
    found = HCRPHMM(**SHORT).fit(X, groups=pl.Series(groups))
    plain = HCRPHMM(**SHORT).fit(np.array([["a"], ["b"]] * 15), groups=groups)
    assert found.labels_.tolist() == plain.labels_.tolist()
    assert found.emission_.categories_[0].tolist() == ["a", "b"]
    assert found.predict(X).tolist() == plain.predict([["a"], ["b"]] * 15).tolist()
