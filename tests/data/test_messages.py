"""What new users get wrong: errors and warnings that name the place and the remedy."""

from __future__ import annotations

import io
import re
import warnings
from collections import OrderedDict
from datetime import datetime
from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from skihmm import HCRPHMM, emissions
from skihmm._draws import PosteriorDraws
from skihmm.datasets import fetch_alice, fetch_mocap6, make_automaton_sequence, make_hcrp_hmm
from skihmm.emissions import (
    AutoregressiveNormal,
    GammaPoisson,
    HCRPCategorical,
    NormalInverseGamma,
    ProductEmission,
)
from skihmm.metrics import Diagnosis
from skihmm.posterior import coassignment, n_states_distribution, occupancy_bands
from skihmm.samplers import StickBreakingBeam
from skihmm.transitions import HCRPTransitions
from skihmm.windows import WindowedHMM

REALS = np.random.default_rng(0).normal(size=(20, 2))


def make_model(emission="hcrp", **params):
    settings = {"n_burnin": 1, "n_draws": 2, "thin": 1, "n_particles": 5}
    return HCRPHMM(emission=emission, random_state=0, **settings, **params)


def frame(**columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def message_of(X, emission="hcrp", kind=ValueError, **given):
    with pytest.raises(kind) as caught:
        make_model(emission).fit(X, **given)
    return str(caught.value)


# ---- the emission


@pytest.mark.parametrize("emission", ["hcrp", "dirichlet"])
@pytest.mark.parametrize("X", [REALS, abs(REALS), REALS.astype(object)])
def test_real_values_name_the_gaussian_emission(emission, X):
    text = message_of(X, emission)
    assert 'emission="gaussian"' in text
    assert 'KBinsDiscretizer(encode="ordinal")' in text


def test_entries_are_named_by_their_columns():
    ok = [1, 2, 3]
    for emission, column, seen in (
        ("gaussian", [1, 2, "x"], "X[2, 'b'] = 'x'"),
        ("gaussian", [1, np.inf, 2], "X[1, 'b'] = inf"),
        ("hcrp", [1, np.inf, 2], "X[1, 'b'] = inf"),
        ("hcrp", [1, 0.5, 2], "X[1, 'b'] = 0.5"),
        ("hcrp", [1, -1, 2], "X[1, 'b'] = -1"),
        ("poisson", [1, -1, 2], "X[1, 'b'] = -1"),
        ("poisson", [1, 0.5, 2], "X[1, 'b'] = 0.5"),
        ("bernoulli", [1, 0, 2], "X[2, 'b'] = 2"),
    ):
        a = [0, 0, 0] if emission == "bernoulli" else ok
        assert seen in message_of(frame(a=a, b=column), emission)
        without = seen.replace("'b'", "1")
        assert without in message_of(frame(a=a, b=column).to_numpy(), emission)
    text = message_of(frame(a=ok, b=[1, "x", 2]), kind=TypeError)
    assert text.startswith("Column 'b' of X holds strings and numbers")
    for emission in ("hcrp", "gaussian"):
        text = message_of(frame(a=ok, b=[1, 2, {}]), emission, TypeError)
        assert "got dict {} in X[2, 'b']. Leave out" in text
    model = make_model("gaussian").fit(frame(a=[1.0, 2, 3], b=[1.0, 2, 3]))
    with pytest.raises(ValueError, match=r"X\[0, 'b'\] = 'x', which is no number"):
        model.predict(frame(a=[1.0], b=["x"]))


def test_columns_of_mixed_data_have_the_names_of_the_whole():
    emission = ProductEmission([("n", "poisson", [0]), ("x", NormalInverseGamma(), [1])])
    X = frame(count=[1, 2, 3], size=["1", "2", "big"])
    assert "X[2, 'size'] = 'big'" in message_of(X, emission)
    assert "X[2, 1] = 'big'" in message_of(X.to_numpy(), emission)
    nested = ProductEmission([("rest", emission, [1, 2]), ("word", "hcrp", [0])])
    X.insert(0, "word", list("abc"))
    assert "X[2, 'size'] = 'big'" in message_of(X, nested)
    assert "X[2, 2] = 'big'" in message_of(X.to_numpy(), nested)


@pytest.mark.parametrize("emission", ["poisson", ProductEmission([("one", "poisson", [0, 1])])])
def test_columns_beside_contexts_keep_their_numbers(emission):
    X = np.array([[0, 1.0, 2.0], [1, 2.0, 1.0], [0, 1.0, 3.0]])
    model = make_model(emission, transitions=HCRPTransitions(context_features=[0]))
    model.fit(X)
    X[1, 2] = -1
    for method in (model.fit, model.predict):
        with pytest.raises(ValueError, match=r"X\[1, 2\] = -1"):
            method(X)
    X[:, 2] = np.nan
    with pytest.warns(UserWarning, match="column 2 of X are missing"):
        model.fit(X)


def test_mixed_frames_name_the_product_emission():
    X = frame(size=[0.5, None, 2.5], city=["x", "y", "z"])
    for emission in ("hcrp", "gaussian", "poisson"):
        assert "ProductEmission" in message_of(X, emission)
    assert "groups=X['city'], and leave it out of X" in message_of(X, "poisson")
    assert "ProductEmission" not in message_of(X[["city"]], "gaussian")
    assert 'emission="hcrp"' in message_of(X[["city"]], "gaussian")
    assert "ProductEmission" not in message_of(X[["size"]])
    X["size"] = [0.5, None, "off"]
    assert message_of(X[["size"]], "gaussian").endswith("NaN: missing.")
    X["size"] = ["0.5", None, "off"]
    assert message_of(X[["size"]], "gaussian").endswith("marks what is missing.")


def test_large_counts_are_shown_in_full():
    text = message_of([[1], [10**12 + 1]], "poisson")
    assert "X[1, 0] = 1000000000001 is too large" in text


# ---- the shape of X


@pytest.mark.parametrize(
    "X",
    [
        [REALS, REALS[:5]],
        (REALS, REALS),
        [REALS.tolist(), REALS[:5].tolist()],
        [[[1], [2]], [[3], [4]]],
        [np.arange(3), np.arange(4)],
        [[1, 2, 3], [1, 2]],
        np.array([REALS, REALS[:5]], dtype=object),
        np.stack([REALS, REALS]),
        np.ma.masked_invalid(np.stack([REALS, REALS])),
    ],
)
def test_lists_of_sequences_name_groups(X):
    model = make_model("gaussian").fit(REALS)
    for method in (make_model("gaussian").fit, model.predict, NormalInverseGamma().fit):
        with pytest.raises(ValueError, match="concatenate them and pass groups") as caught:
            method(X)
        assert "(n_samples, n_features)" in str(caught.value)


def test_lists_of_frames_name_groups():
    X = frame(a=[1.0, 2.0])
    assert "pass groups" in message_of([X, X], "gaussian")
    assert "pass groups" in message_of([X, X[:1]], "gaussian")


@pytest.mark.parametrize("X", [list(REALS), REALS.tolist(), [tuple(x) for x in REALS]])
def test_lists_of_rows_are_fitted(X):
    labels = make_model("gaussian").fit(X).labels_
    np.testing.assert_array_equal(labels, make_model("gaussian").fit(REALS).labels_)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_sparse_data_name_ordinal_codes(kind):
    text = message_of(kind(np.eye(4)), kind=TypeError)
    for words in ('KBinsDiscretizer(encode="ordinal")', "OrdinalEncoder", "X.toarray()"):
        assert words in text


# ---- nothing observed


@pytest.mark.parametrize("emission", ["hcrp", "gaussian", "poisson"])
def test_data_without_observations_are_warned_of(emission):
    with pytest.warns(UserWarning, match="All entries of X are missing"):
        make_model(emission).fit(np.full((5, 2), np.nan))


def test_columns_without_observations_are_warned_of():
    X = frame(a=[1.0, 2.0], b=[np.nan, np.nan], c=[None, None])
    with pytest.warns(UserWarning, match="All entries of columns 'b', 'c' of X are miss"):
        make_model("diagonal_gaussian").fit(X)
    with pytest.warns(UserWarning, match="All entries of column 1 of X are missing"):
        make_model().fit([["a", None], ["b", None]])


def test_rows_without_likelihood_are_warned_of():
    """What is drawn is none of these: partial rows, short gaps and rows after them."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[::3, 0] = X[50:55] = np.nan
    make_model("gaussian").fit(X)  # warnings are errors
    make_model("autoregressive").fit(X)
    X[12:, 1] = np.nan
    with pytest.warns(UserWarning, match=r"78 % of the rows .* AutoregressiveN.*long ga"):
        make_model("autoregressive").fit(X)


def test_symbols_that_are_all_unknown_are_warned_of():
    emission = HCRPCategorical(categories=[["yes", "no"]], handle_unknown="missing")
    with pytest.warns(UserWarning, match=r"All rows of X are missing for HCRPCat.*unknow"):
        make_model(emission).fit([["Yes"], ["No"]])


# ---- order of time


@pytest.mark.parametrize("as_periods", [False, True])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_out_of_order_are_warned_of(as_periods, zone):
    pd = pytest.importorskip("pandas")
    if as_periods and zone:
        pytest.skip("periods have no time zone")
    index = pd.date_range("2020-01-01", periods=20, tz=zone)
    X = pd.DataFrame(REALS, columns=["a", "b"], index=index)
    if as_periods:
        X = X.to_period("D")
    # (Gaps are no disorder.)
    model = make_model("gaussian").fit(X.iloc[[0, 1, 5, 6, 19]])
    seen = r"from 2020-01-20 \(row 0\) to 2020-01-19 \(row 1\) \(and at 18 more places\)"
    for method in (make_model("gaussian").fit, model.predict):
        with pytest.warns(UserWarning, match=seen) as caught:
            method(X[::-1])
        assert "X.sort_index()" in str(caught[0].message)
    with pytest.warns(UserWarning, match=r"has 2020-01-01 twice, in rows 0 and 2"):
        model.fit(X.iloc[[0, 1, 0, 1]])
    model.fit(X.iloc[[0, 1, 0, 1]], groups=[0, 0, 1, 1])


def test_the_hour_that_comes_twice_is_in_order():
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2024-10-27", periods=48, freq="30min", tz="Europe/Berlin")
    X = pd.DataFrame({"a": np.sin(np.arange(48.0))}, index=index)
    make_model("gaussian").fit(X)  # warnings are errors
    with pytest.warns(UserWarning, match="out of order"):
        make_model("gaussian").fit(X[::-1])


# ---- junk


@pytest.mark.parametrize("groups", [3, "abc", True, {"a": 1}, {1, 2}, object(), iter([1, 2])])
def test_groups_that_are_no_array(groups):
    text = message_of(REALS, "gaussian", TypeError, groups=groups)
    assert type(groups).__name__ in text
    assert "one sequence id per row" in text


def test_junk_in_the_place_of_draws(fitted):
    for junk in (1, None, fitted, [1], [[1]], [[{}]], fitted.draws_):
        with pytest.raises(TypeError, match="expected the draws of every chain"):
            PosteriorDraws(junk)
    for empty in ([], [[]]):
        with pytest.raises(ValueError, match="chains holds no draw"):
            PosteriorDraws(empty)
    for index in (0, (0,), ("a", 0), (0, 1, 2), (0.5, 1)):
        with pytest.raises(TypeError, match=r"expected two integers, draws\[chain, draw"):
            fitted.draws_[index]
    with pytest.raises(IndexError, match=r"draws\[2, 0\]; there are 2 chains of 4, 4"):
        fitted.draws_[2, 0]
    assert fitted.draws_[-1, -1].lp == fitted.draws_.lp[1, 3]


def test_junk_in_the_place_of_a_diagnosis(fitted):
    for junk in (fitted, 1, None):
        with pytest.raises(TypeError, match=r"draws is of type .*; expected a Posterior"):
            Diagnosis(junk, (0, 0), None)
    with pytest.raises(TypeError, match="setting is of type NoneType; expected a Sett"):
        Diagnosis(fitted.draws_, (0, 0), None)
    setting = fitted.diagnose()._setting
    with pytest.raises(TypeError, match="expected two integers"):
        Diagnosis(fitted.draws_, 7, setting)
    with pytest.raises(IndexError, match="there are 2 chains"):
        Diagnosis(fitted.draws_, (7, 7), setting)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (fetch_alice, "return_X_y"),
        (fetch_alice, "download_if_missing"),
        (fetch_mocap6, "return_X_y"),
        (fetch_mocap6, "download_if_missing"),
        (lambda **given: make_automaton_sequence(10, **given), "return_model"),
        (lambda **given: make_hcrp_hmm(10, **given), "return_seating"),
    ],
)
@pytest.mark.parametrize("junk", ["no", 1, None])
def test_flags_of_data_sets(function, name, junk):
    with pytest.raises(TypeError, match=f"{name}={junk!r}; expected True or False"):
        function(**{name: junk})


# ---- fits that say nothing


@pytest.mark.parametrize("lengths", [None, [4, 8, 8]])
@pytest.mark.parametrize("order", [20, 10**6, 2**70])
def test_orders_that_leave_no_row(order, lengths):
    model = make_model(AutoregressiveNormal(order))
    with pytest.raises(ValueError, match=f"order={order}.* Set a smaller order"):
        model.fit(REALS, lengths=lengths)


def test_fits_leave_the_filters_of_warnings():
    filters, found = warnings.filters, list(warnings.filters)
    for _ in range(5):
        make_model(n_chains=4, n_jobs=4).fit([[0]] * 20).score([[0]] * 20)
        assert warnings.filters is filters
        assert warnings.filters == found


# ---- names


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ({"n_components": 3}, "'n_components': HCRPHMM has none.* is inferred"),
        ({"n_states": 3}, "n_states_"),
        ({"n_iter": 100}, "n_burnin"),
        ({"covariance_type": "diag"}, "diagonal_gaussian"),
        ({"expected_dwell": 3}, r"transitions=HCRPTransitions\(expected_dwell=...\)"),
        ({"emission__order": 3}, r"HCRPCategorical .*=AutoregressiveNormal\(order"),
        ({"nonsense": 3}, "Invalid parameter 'nonsense'"),
        ({"emission__nonsense": 3}, "Invalid parameter 'nonsense'"),
        ({"emissions": 3}, "Invalid parameter 'emissions' for estimator HCRPHMM"),
        ({"emission": "gaussian", "emission__n_iter": 3}, "Wishart has none.* n_burnin"),
    ],
)
def test_parameters_of_others(params, seen):
    with pytest.raises(ValueError, match=seen):
        HCRPHMM().set_params(**params)
    # Other parameters are those of a constructor too.
    if not any(name.startswith("emission") for name in params):
        expected = seen.replace("Invalid parameter", "HCRPHMM has no parameter")
        with pytest.raises(TypeError, match=expected):
            HCRPHMM(n_draws=5, **params)


@pytest.mark.parametrize(
    ("emission", "parameter", "remedy"),
    [
        (emissions.GammaPoisson, "subject_feature", "NegativeBinomialRegression(subj"),
        (emissions.BetaNegativeBinomial, "subject_scale", "the log rate is the scale"),
        (emissions.NegativeBinomialRegression, "subject_scale", "the log rate is the scale"),
        (emissions.GammaGamma, "subject_feature", "pass logarithms"),
        (emissions.BetaBernoulli, "subject_feature", "BernoulliRegression(subject_feature="),
        (emissions.HCRPCategorical, "subject_feature", "options have no order"),
        (emissions.CategoricalRegression, "subject_feature", "options have no order"),
    ],
)
def test_emissions_without_subjects_say_what_has_them(emission, parameter, remedy):
    with pytest.raises(TypeError, match=re.escape(remedy)) as caught:
        emission(**{parameter: 1})
    seen = f"Invalid parameter '{parameter}': {emission.__name__} has none of it; "
    assert str(caught.value).startswith(seen)


def test_constructors_that_explain_parameters_of_others_keep_their_signature():
    class Doubled(GammaPoisson):
        def __init__(self, shape=2.0, **others):
            super().__init__(shape=shape, **others)

    for make in (AutoregressiveNormal, partial(Doubled, rate=1.0)):
        with pytest.raises(TypeError, match=r"'exog': \w+ has none.*input_features"):
            make(exog=[1])
    with pytest.raises(TypeError, match="multiple values for argument 'order'"):
        AutoregressiveNormal(3, order=3)
    assert next(iter(signature(AutoregressiveNormal).parameters)) == "order"


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("means_", "emission_.means_"),
        ("covars_", "emission_.covariances_"),
        ("bic", "no number of states to choose"),
        ("n_states", "after fit it is n_states_"),
        ("labels", "after fit it is labels_"),
        ("nonsense", "no attribute 'nonsense'$"),
    ],
)
def test_attributes_of_others(name, seen):
    with pytest.raises(AttributeError, match=seen):
        getattr(HCRPHMM(), name)
    assert not hasattr(HCRPHMM(), name)


def test_misspelt_short_names():
    for name, given, meant in (
        ("emission", "gausian", "'gaussian'"),
        ("transitions", "stiky", "'sticky'"),
        ("sampler", "bloked", "'blocked'"),
        ("emission", "normal", "emission='gaussian'"),
        ("sampler", "gaussian", "emission='gaussian'"),
        ("emission", "AR-HMM", "emission='autoregressive'"),
        ("emission", "logistic_regression", "emission='logistic'"),
        ("emission", "t", "emission='student'"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"Did you mean {meant}")):
            HCRPHMM(**{name: given}).fit([[0], [1]])


# ---- contexts and many columns


@pytest.mark.parametrize("junk", [(1, 2), frozenset("a"), object(), 1j, [1]])
def test_contexts_that_are_objects(junk):
    X = np.array([[0, "a"]] * 6, dtype=object)
    X[2, 1] = junk
    model = make_model(transitions=HCRPTransitions(context_features=[1]))
    with pytest.raises(TypeError, match=r"A context is .*; expected numbers or strings"):
        model.fit(X)


@pytest.mark.parametrize("n_values", [19, 20, 21, 40])
def test_contexts_of_many_values(n_values):
    X = np.column_stack([np.arange(40) % 2, np.arange(40) % n_values])
    model = make_model(transitions=HCRPTransitions(context_features=[1]))
    if n_values <= 20:
        model.fit(X)
        return
    with pytest.warns(UserWarning, match=rf"column 1 .* {n_values} values.*pandas\.qcut"):
        model.fit(X)


def test_full_covariances_of_many_columns():
    X = np.random.default_rng(0).normal(size=(1520, 101))
    model = make_model("gaussian", init="single").set_params(n_draws=1)
    model.fit(X[:, :100])
    with pytest.warns(UserWarning, match='101 columns.*"diagonal_gaussian"'):
        model.fit(X)
    with pytest.warns(UserWarning, match="1499 rows of 100 columns"):
        model.fit(X[:1499, :100])
    model.set_params(emission="diagonal_gaussian").fit(X[:20])


# ---- times, jobs and groups


@pytest.mark.parametrize(
    ("freq", "rows", "warns"),
    [
        ("D", [*range(10), *range(12, 20)], True),
        ("h", [*range(10), *range(15, 20)], True),
        ("MS", [*range(10), *range(11, 20)], True),
        ("MS", range(20), False),
        ("B", range(20), False),
        ("YS", range(20), False),
        ("D", [0, 1, 5, 6, 19], False),
    ],
)
def test_holes_of_times_are_warned_of(freq, rows, warns):
    pd = pytest.importorskip("pandas")
    index = pd.date_range("2020-01-01", periods=20, freq=freq)
    X = pd.DataFrame(REALS, columns=["a", "b"], index=index).iloc[list(rows)]
    if warns:
        with pytest.warns(UserWarning, match=r"to .* \(row 10\), a(s where rows are lost| longer)"):
            make_model("gaussian").fit(X)
        groups = np.arange(len(X)) >= 10
        make_model("gaussian").fit(X, groups=groups)
    else:
        make_model("gaussian").fit(X)


def test_jobs_and_groups_that_are_mistakes():
    with pytest.raises(ValueError, match="n_jobs=9223372036854775808 is more jobs"):
        make_model(sampler=StickBreakingBeam(n_jobs=2**63)).fit([[0], [1]])
    for estimator in (make_model(), make_pipeline(make_model())):
        with pytest.raises(TypeError, match=r"(?s)groups=.* of type .*; expected"):
            make_model().fit([[0], [1]], groups=estimator)


def test_constructors_and_methods_list_what_they_take():
    with pytest.raises(
        TypeError,
        match=r"GammaPoisson has no parameter 'shap'; it has "
        r"shape, rate. Did you mean 'shape'\?",
    ):
        GammaPoisson(shap=2.0)
    with pytest.raises(
        TypeError, match=r"Call set_params\(emission__resolution=\.\.\.\), or pass an"
    ):
        HCRPHMM(emission="gaussian", emission__resolution=0.1)
    HCRPHMM(emission="gaussian").set_params(emission__resolution=0.1)
    with pytest.raises(TypeError, match="HCRPTransitions has no parameter 'tau'; it has"):
        HCRPTransitions(tau=1)
    X, _ = make_automaton_sequence(60, random_state=0)
    model = make_model("hcrp").fit(X)
    for method in (model.predict, model.score_samples, model.decode, model.predict_proba):
        with pytest.raises(TypeError, match=r"takes X by position, and 2 .*lengths=\.\.\."):
            method(X, [30, 30])
    with pytest.raises(TypeError, match=r"predict has no parameter 'group'; .*'groups'"):
        model.predict(X, group=[0] * 60)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'X'"):
        model.predict()


def test_draws_of_an_estimator_are_asked_for():
    X, _ = make_automaton_sequence(60, random_state=0)
    model = make_model("hcrp").fit(X)
    for summary in (occupancy_bands, n_states_distribution, coassignment):
        with pytest.raises(TypeError, match="a fitted HCRPHMM; expected its draws"):
            summary(model)


@pytest.mark.parametrize("emission", ["logistic", "log_linear", "choice"])
def test_regressions_without_inputs_name_other_columns_than_the_output(emission):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(30, 2)), rng.integers(2, size=30)]
    with pytest.raises(ValueError, match=r"input_features=\[0, 1\]\)"):
        make_model(emission).fit(X)


def test_columns_of_subjects_are_in_no_group():
    part = NormalInverseGamma(subject_feature="who")
    X = frame(x=[0.5, 1.5, 2.5], who=["a", "a", "a"])
    model = make_model(ProductEmission([("x", part, ["x", "who"])]))
    with pytest.raises(ValueError, match=r"no column 'who'; .*subjects, .* in no group"):
        model.fit(X)


TIMES = pd.date_range("2024-01-01", periods=20, freq="h")
FRAME = pd.DataFrame({"a": [1.5, 2.5] * 10, "b": [0.5, 3.5] * 10})


@pytest.mark.parametrize(
    ("X", "emission", "error", "words"),
    [
        ("data.csv", "gaussian", TypeError, r"the text 'data.csv'; .*pandas.read_csv"),
        ({"a": [1, 2]}, "gaussian", TypeError, r"X is a dict; .*pandas.DataFrame\(X\)"),
        (np.ones((9, 2)) * 1j, "gaussian", ValueError, "Complex data not supported.*X.real"),
        (pd.DataFrame({"a": ["1,5", "2,5"]}), "gaussian", ValueError, 'decimal=","'),
        (FRAME.assign(id="m"), "gaussian", ValueError, r"groups=X\['id'\], and leave it out"),
        (FRAME, "poisson", ValueError, 'is not an integer; .*such as "gaussian"'),
        (None, "gaussian", TypeError, "X is None; expected an array, a data frame"),
        (iter([[1.0]]), "gaussian", TypeError, r"list_iterator; expected .*: X = list\(X\)"),
        (io.StringIO("a"), "gaussian", TypeError, r"StringIO; .*X = pandas.read_csv\(X\)"),
        (FRAME.assign(c=1j), "gaussian", ValueError, "Complex data not supported.*X.real"),
        (pd.DataFrame({"a": ["1,500.2"]}), "gaussian", ValueError, 'thousands=","'),
        (pd.DataFrame({"a": ["15%", "25%"]}), "gaussian", ValueError, r"'15%'.*\.str\.extract"),
        (pd.DataFrame({"a": ["1.5 kg"]}), "gaussian", ValueError, r"1.5 kg'.*\.str\.extract"),
        (pd.DataFrame({"a": ["1", "-", "2"]}), "gaussian", ValueError, r"'-'.*to_numeric\("),
        ([{"a": 1.5}], "gaussian", TypeError, r"list of dicts; .*pandas.DataFrame\(X\)"),
        ({1.5}, "gaussian", TypeError, r"X is a set; .*X = list\(X\)"),
        ([[1j], [2j]], "gaussian", ValueError, "Complex data not supported.*X.real"),
        (pd.DataFrame({"a": ["1.234,5"]}), "gaussian", ValueError, 'decimal=",", thousands="."'),
        (pd.DataFrame({"a": ["$1.50", "$2"]}), "gaussian", ValueError, r"\$1.50'.*\.extract"),
        (pd.DataFrame({"a": ["\u22121", "2"]}), "gaussian", ValueError, "Minus signs of print"),
        (pd.DataFrame({"a": ["yes", "no"]}), "bernoulli", ValueError, r"\(X == 'yes'\).astype"),
        (pd.DataFrame({"a": ["1'500", "2'500"]}), "gaussian", ValueError, "Marks of thousands"),
        (pd.DataFrame({"a": ["1 500", "2 500"]}), "gaussian", ValueError, "Marks of thousands"),
        (pd.DataFrame({"a": ["1,5e3", "2,5e3"]}), "gaussian", ValueError, 'decimal=","'),
        (FRAME.assign(id="m12"), "gaussian", ValueError, r"groups=X\['id'\], and leave it out"),
        (
            FRAME.assign(id=["1a", "2b"] * 10),
            "gaussian",
            ValueError,
            r"groups=X\['id'\], and leave it out",
        ),
        (np.array([[1j, 2]], dtype=object), "gaussian", TypeError, "X.real and X.imag"),
        (b"data.csv", "gaussian", TypeError, "pandas.read_csv"),
        (OrderedDict(a=[1]), "gaussian", TypeError, r"pandas.DataFrame\(X\)"),
        (FRAME.groupby("a"), "gaussian", TypeError, "DataFrameGroupBy; expected the data frame"),
        (pd.DataFrame({"t": TIMES - TIMES[0]}), "hcrp", TypeError, r"dt\.total_seconds\(\)"),
        (FRAME.assign(t="2024-01"), "gaussian", ValueError, r"X.set_index\('t'\)"),
        (FRAME.assign(t="14:30"), "gaussian", ValueError, r"X.set_index\('t'\)"),
        (FRAME.assign(t="31.12.2024"), "gaussian", ValueError, r"X.set_index\('t'\)"),
        (FRAME.assign(t=TIMES), "gaussian", TypeError, r"'t'\]\. .*X.set_index\('t'\)"),
        (pd.DataFrame({"t": TIMES}), "hcrp", TypeError, r"X.set_index\('t'\)"),
        (TIMES.to_numpy()[:, None], "gaussian", TypeError, "expected numbers. Times are no"),
        (FRAME.assign(t=TIMES.astype(str)), "gaussian", ValueError, r"X.set_index\('t'\)"),
        (FRAME.assign(t=[datetime(2024, 1, 1)] * 20), "hcrp", TypeError, r"X.set_index\('t'\)"),
        (FRAME.assign(t=TIMES - TIMES[0]), "gaussian", TypeError, r"dt\.total_seconds\(\)"),
        (pd.DataFrame({"a": pd.qcut(FRAME.a, 2)}), "hcrp", TypeError, r"column.astype\(str\)"),
        ({"a": 1.0, "b": 2.0}, "gaussian", TypeError, r"pandas.DataFrame\(\[X\]\)"),
        (pd.DataFrame({"a": ["1,204", "980"]}), "poisson", ValueError, 'decimal.*thousands=","'),
        (pd.DataFrame({"a": ["0.5+2j", "1e3-1e-2j"]}), "gaussian", ValueError, r"z\.real and z\."),
        (pd.DataFrame({"a": ["(1-2i)"]}), "gaussian", ValueError, r"z\.real and z\.imag"),
        (pd.DataFrame({"a": ["120/80", "1/2"]}), "gaussian", ValueError, r'split\("/"'),
        (pd.DataFrame({"t": TIMES - TIMES[0]}), "gamma", TypeError, r"dt\.total_seconds\(\)"),
        (FRAME - 2, "poisson", ValueError, 'Negative values.*such as "gaussian"; posit'),
        (FRAME - 2, "gamma", ValueError, 'Negative values.*such as "gaussian"'),
        (FRAME, ProductEmission([("poisson", ["a"])]), ValueError, r"triples, .*\(\"n\", "),
        (
            FRAME,
            ProductEmission({"a": "poisson"}),
            ValueError,
            "expected a list of one or more triples",
        ),
        (FRAME, ProductEmission([("x", ["a"], "poisson")]), ValueError, "one or more triples"),
    ],
)
def test_mistakes_have_remedies(X, emission, error, words):
    with pytest.raises(error, match=words) as caught:
        HCRPHMM(emission=emission).fit(X)
    assert len(str(caught.value).splitlines()) == 1


def test_texts_of_missing_entries_are_warned_of():
    X = pd.DataFrame({"a": ["x", "nan", "y"] * 5, "b": ["nan"] * 15})
    model = make_model()
    with pytest.warns(UserWarning, match="the text 'nan', which counts") as caught:
        model.fit(X)
    texts = [str(warning.message) for warning in caught]
    assert [text[:10] for text in texts] == ["Column 'a'", "Column 'b'"]
    assert all("X = X.replace('nan', None)" in text for text in texts)
    with pytest.warns(UserWarning, match=r"X = numpy\.where\(X == 'nan', None, X\)"):
        model.fit(np.array([["x"], [np.nan], ["y"]]))
    model.fit(X[["a"]].replace("nan", "z"))
    with pytest.warns(UserWarning, match="'nan', which counts as a new symbol"):
        model.predict(X[["a"]])
    model.predict(X[["a"]].replace("nan", None))
    emission = HCRPCategorical(handle_unknown="missing")
    make_model(emission).fit(X[["a"]].replace("nan", "z")).predict(X[["a"]])
    model.fit(X.replace("nan", None)[["a"]])  # warnings are errors
    make_model(HCRPCategorical(categories=[["nan", "x", "y"]])).fit(X[["a"]])
    make_model("gaussian").fit(pd.DataFrame({"a": ["1.5", "nan", "2.5"]}))
    with pytest.warns(UserWarning, match="holds the text '', which counts"):
        model.fit(pd.DataFrame({"a": ["x", "", "y"]}))


def test_time_steps_in_columns_are_warned_of():
    with pytest.warns(UserWarning, match=r"2 rows and 30 columns, .* pass X\.T"):
        make_model("diagonal_gaussian").fit(np.random.default_rng(0).normal(size=(2, 30)))
    make_model("diagonal_gaussian").fit(np.random.default_rng(0).normal(size=(20, 30)))


@pytest.mark.parametrize("emission", ["hcrp", "bernoulli"])
def test_one_hot_columns_are_warned_of(emission):
    X = pd.get_dummies(pd.Series(list("abcab") * 5))
    with pytest.warns(UserWarning, match=r"single 1 in its 3 columns.*X\.idxmax\(axis=1\)"):
        make_model(emission).fit(X)
    X.iloc[3, :] = True
    make_model(emission).fit(X)  # warnings are errors
    make_model().fit(pd.get_dummies(pd.Series(list("abcab") * 5)).idxmax(axis=1).to_frame())


def test_few_rows_are_no_labels():
    for n, text in ((1, "There is only 1 row of data."), (2, "There are only 2 rows of data.")):
        found = make_model("gaussian", n_chains=2).set_params(n_draws=25).fit(FRAME[:n]).diagnose()
        assert found.verdict == "Do not use these labels yet."
        assert found.warnings[0] == text
    found = make_model("gaussian").set_params(n_draws=25).fit(FRAME[:10]).diagnose()
    assert not any("rows of data" in text for text in found.warnings)


def test_warnings_point_at_the_line_of_the_call():
    model = make_model("gaussian").fit(FRAME)
    bare = make_model("gaussian").fit(FRAME.to_numpy())
    out_of_order = FRAME.set_index(TIMES[::-1])
    for call in (
        lambda: model.predict(FRAME.to_numpy()),
        lambda: bare.score(FRAME),
        lambda: model.predict_proba(out_of_order),
        lambda: make_model("gaussian").fit(out_of_order),
        lambda: make_pipeline(make_model("hcrp")).fit(pd.DataFrame({"a": ["nan", "x"]})),
    ):
        with pytest.warns(UserWarning, match="X") as caught:
            call()
        assert caught[0].filename == __file__


def test_mistakes_after_and_before_a_fit():
    hmm = HCRPHMM(emission="gaussian", n_burnin=2, n_draws=2, random_state=0)
    with pytest.raises(AttributeError, match="no attribute 'labels_'; call fit first"):
        _ = hmm.labels_
    hmm.fit(FRAME)
    for name in ("map", "MAP", "posterior", "argmax", "forward-backward", "Smooth"):
        with pytest.raises(ValueError, match="Did you mean 'smooth'"):
            hmm.predict(FRAME, method=name)
    assert not hasattr(hmm, "nothing_")
    assert re.fullmatch(
        r"<Draw: \d+ states, log joint probability -\d+\.\d>", repr(hmm.draws_[0, 0])
    )


@pytest.mark.parametrize("make", [make_model, lambda emission: WindowedHMM()])
def test_other_columns_than_those_of_the_fit(make):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("abc"))
    hmm = make("gaussian")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # periods are few
        hmm.fit(X)
    order = r"fit\.\nFeature names must be in the same order as they were in fit\.\nX = X\[hmm\.f"
    for other, words in (
        (X[["b", "a", "c"]], order),
        (X.assign(date=1), r"unseen at fit time:\n- date\nX = X\[hmm\.feature_names_in_\] takes"),
        (X[["a", "c"]], r"now missing:\n- b\nRename columns, or X = X\.reindex\("),
        (X.rename(columns=str.upper), r"- A\n- B\n- C\nFeature .*\n- a\n- b\n- c\nRename"),
    ):
        with pytest.raises(ValueError, match=words):
            hmm.predict(other)
    with pytest.raises(ValueError, match=r"2 features, but .* is expecting 3 features .*: a, b, c"):
        hmm.predict(X.to_numpy()[:, :2])  # without a warning, which would be an error
    expected = hmm.predict(X)
    for other in (X.to_numpy(), X.set_axis(range(3), axis=1)):
        with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
            np.testing.assert_array_equal(hmm.predict(other), expected)
        assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        ("ecg.txt", TypeError, "the text 'ecg.txt'"),
        ({"a": [1.0, 2.0]}, TypeError, r"pandas\.DataFrame\(X\)"),
        (np.ones((200, 1)) * 1j, ValueError, r"X\.real"),
        (pd.DataFrame({"a": ["1,5"] * 200}), ValueError, r"X\[0, 'a'\] = '1,5'.*decimal"),
        (pd.DataFrame({"t": pd.date_range("2024", periods=200)}), TypeError, "Times are no obs"),
    ],
)
def test_mistakes_of_windows(X, error, words):
    with pytest.raises(error, match=words):
        WindowedHMM().fit(X)


def test_times_of_polars():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"time": TIMES.to_list(), "a": FRAME["a"].to_list()})
    for emission in ("gaussian", "hcrp"):
        with pytest.raises(TypeError, match=r"X\[0, 'time'\]\. Times are no observations"):
            make_model(emission).fit(X)
    waits = X.select(pl.col("time") - pl.col("time").min(), "a")
    with pytest.raises(TypeError, match="Turn durations into numbers"):
        make_model("gaussian").fit(waits)


def test_what_is_given_by_position():
    hmm = make_model("gaussian").fit(FRAME)
    with pytest.raises(TypeError, match=r"summary takes nothing .* 1 argument .*names=\.\.\. by"):
        hmm.summary({0: "A"})
    with pytest.raises(TypeError, match="diagnose takes nothing by position, and 1 argument was"):
        hmm.diagnose(FRAME)
    with pytest.raises(TypeError, match=r"Pass method=\.\.\., .* by name\."):
        hmm.predict(FRAME, "smooth")
    with pytest.raises(ValueError, match=r"expected one of 'smooth', 'filter'\.$"):
        hmm.predict_proba(FRAME, method="viterbi")
    with pytest.raises(AttributeError, match=r"'WindowedHMM' .* 'labels_'; call fit first"):
        _ = WindowedHMM().labels_
    with pytest.raises(ValueError, match="Did you mean 'filter'"):
        hmm.predict_proba(FRAME, method="forward")
    with pytest.raises(ValueError, match="Did you mean 'expectation'"):
        hmm.impute(FRAME, method="mean")
    with pytest.raises(ValueError, match=r"'sample'\.$"):
        hmm.impute(FRAME, method="map")
