"""Random data and parameters work, and garbage is refused, without exception.

A plain run looks at the same few examples every time.  SKIHMM_FUZZ=1000 looks at as many
new ones per test; what fails is printed with the line that repeats it.
"""

from __future__ import annotations

import datetime
import os
import pickle
import re
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skihmm import HCRPHMM
from skihmm.emissions import (
    BetaBernoulli,
    DirichletCategorical,
    GammaPoisson,
    HCRPCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
)
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)

N_EXAMPLES = int(os.environ.get("SKIHMM_FUZZ", "0"))
# No example may take this long, in CPU seconds: most take some hundredths.
TOO_LONG = 60


def fuzz(max_examples):
    """Examples per run; a fit has no deadline, and its first one is slower."""
    return settings(
        deadline=None,
        derandomize=not N_EXAMPLES,
        database=None,
        max_examples=N_EXAMPLES or max_examples,
        print_blob=bool(N_EXAMPLES),
    )


# -- data -----------------------------------------------------------------------------

LARGEST_FLOAT = 2**53
TEXTS = ["", " ", "0", "1", "a", "A", "b", "ab", "nan", "None", "é", "日本", "x" * 40]


@dataclass
class Data:
    """Codes of symbols (-1: missing), the symbols, and the form they are given in."""

    codes: np.ndarray
    tables: list[list[Any]]
    form: str
    kinds: list[str]  # of a data frame's columns
    names: list[Any] | None
    index: Any

    def plain(self):
        """Python objects in an array: what every form says."""
        X = np.full(self.codes.shape, None, dtype=object)
        for c, table in enumerate(self.tables):
            for t, code in enumerate(self.codes[:, c]):
                if code >= 0:
                    X[t, c] = table[code]
        return X

    def given(self):
        """What the model gets."""
        X, missing = self.plain(), self.codes < 0
        if self.form == "object":
            return X
        if self.form == "nan":
            X[missing] = np.nan
            return X
        if self.form == "list":
            return X.tolist()
        if self.form == "list of nan":
            X[missing] = np.nan
            return X.tolist()
        if self.form == "tuple":
            return tuple(map(tuple, X.tolist()))
        if self.form == "frame":
            columns = [
                pd.Series(list(X[:, c]), index=self.index, dtype=kind)
                for c, kind in enumerate(self.kinds)
            ]
            frame = pd.concat(columns, axis=1)
            frame.columns = self.names
            return frame
        if self.form.startswith("masked "):
            X[missing] = self.tables[0][0]
            return np.ma.masked_array(X.astype(self.form.split()[1]), missing)
        if self.form.startswith("float"):
            X[missing] = np.nan
        return np.asfortranarray(X.astype(self.form))


def forms(tables, missing):
    """Forms that can hold these symbols."""
    found = ["object", "nan", "list", "list of nan", "tuple", "frame"]
    numbers = [value for table in tables for value in table if isinstance(value, int)]
    n_strings = sum(isinstance(table[0], str) for table in tables)
    if n_strings == len(tables):
        return [*found, "masked U40", *([] if missing else ["U40"])]
    if n_strings:
        return found
    top = max(numbers)
    if top > LARGEST_FLOAT:
        return [*found[:-1], "int64", "uint64"]
    for dtype, largest in (
        ("float16", 2**11),
        ("float32", 2**24),
        ("float64", LARGEST_FLOAT),
    ):
        if top <= largest:
            found.append(dtype)
    for dtype in (f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)):
        if top <= np.iinfo(dtype).max:
            found += [f"masked {dtype}", *([] if missing else [dtype])]
    if top <= 1:
        found += ["masked bool", *([] if missing else ["bool"])]
    return found


def column_kinds(table, missing):
    """Types of a data frame's column that can hold these symbols."""
    if isinstance(table[0], str):
        return ["object", "string", "category"]
    kinds = ["object", "Int64", "category", "float64"]
    if max(table) <= 127:
        kinds += ["Int8", "UInt8", "float32"]
    if not missing:
        kinds += ["int64"]
    return kinds


@st.composite
def symbols(draw, has_missing):
    """The symbols of a column, in order."""
    if draw(st.integers(0, 3)) == 0:
        return sorted(draw(st.lists(st.sampled_from(TEXTS), min_size=1, unique=True)))
    top = draw(st.sampled_from([1, 9, 127, 2**11, 2**24, 2**53, 2**63 - 1]))
    top = min(top, LARGEST_FLOAT) if has_missing else top
    values = st.integers(0, top)
    return sorted(draw(st.lists(values, min_size=1, max_size=12, unique=True)))


@st.composite
def indexes(draw, n):
    """Row labels of a data frame."""
    kind = draw(st.sampled_from(["range", "steps", "text", "dates", "gap"]))
    if kind == "text":
        return [f"row {t % 7}" for t in range(n)]
    if kind == "dates":
        return pd.date_range("2020-01-01", periods=n)
    first, step = draw(st.integers(-9, 9)), draw(st.sampled_from([1, 2, -1]))
    index = first + (1 if kind == "range" else step) * np.arange(n)
    if kind == "gap":
        index[draw(st.integers(0, n - 1)) :] += 5
    return index


@st.composite
def sequences(draw, n):
    """Nothing, groups or lengths for n rows, and the first row of every sequence."""
    kind = draw(st.sampled_from(["one", "groups", "lengths"]))
    if kind == "one":
        return {}, [0]
    cuts = draw(st.lists(st.integers(0, n), max_size=5))
    ends = sorted({*cuts, n} - {0})
    sizes = np.diff([0, *ends])
    starts = [0, *ends[:-1]]
    if kind == "lengths":
        dtype = draw(st.sampled_from([int, "uint16", "int32", "Int64", list]))
        if dtype is list:
            return {"lengths": sizes.tolist()}, starts
        make = pd.Series if dtype == "Int64" else np.array
        return {"lengths": make(sizes, dtype=dtype)}, starts
    ids = draw(st.permutations(range(len(sizes))))
    groups = np.repeat(ids, sizes)
    dates = np.datetime64("2020-01-01") + groups
    forms = {
        "int": groups,
        "column": groups.reshape(-1, 1),
        "list": groups.tolist(),
        "text": [f"id {i}" for i in groups],
        "mixed": [i if i % 2 else str(i) for i in groups.tolist()],
        "float": groups / 4,
        "dates": dates,
        "series": pd.Series(groups, dtype="Int64"),
        "categories": pd.Categorical([f"id {i}" for i in groups]),
        "masked": np.ma.masked_array(groups),
    }
    return {"groups": forms[draw(st.sampled_from([*forms]))]}, starts


@st.composite
def data(draw, n, tables, missing, frame=None, names=None):
    """Data of n rows; `frame` says whether they are to be a data frame."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Runs of the same symbols, as sequences have them, or pure noise.
    base = rng.integers(2**31, size=(draw(st.sampled_from([3, 10, n])), len(tables)))
    sizes = [len(table) for table in tables]
    codes = np.resize(base, (n, len(tables))) % sizes
    if missing == "some":
        codes[rng.random(codes.shape) < draw(st.sampled_from([0.1, 0.5, 0.9]))] = -1
    elif missing == "rows":
        codes[rng.random(n) < 0.3] = -1
    elif missing == "columns":
        codes[:, rng.random(len(tables)) < 0.5] = -1
    elif missing == "all":
        codes[:] = -1
    has_missing = bool((codes < 0).any())
    possible = forms(tables, has_missing)
    if frame is not None:
        possible = ["frame"] if frame else [f for f in possible if f != "frame"]
    form = draw(st.sampled_from(possible))
    kinds = []
    if form == "frame":
        kinds = [
            draw(st.sampled_from(column_kinds(table, has_missing))) for table in tables
        ]
        if names is None:
            prefix = draw(st.sampled_from(["column ", None]))
            names = [c if prefix is None else prefix + str(c) for c in range(len(tables))]
    index = draw(indexes(n)) if form == "frame" else None
    return Data(codes, tables, form, kinds, names, index)


MISSING = st.sampled_from(["nothing", "nothing", "some", "rows", "columns", "all"])
# Most are short: what is rare in long sequences is so in short ones, too.
LENGTH = st.one_of(
    st.integers(1, 8), *5 * [st.integers(1, 60)], st.sampled_from([200, 700, 2000])
)


# -- models ---------------------------------------------------------------------------

CONCENTRATION = st.floats(-6, 6).map(lambda exponent: 10.0**exponent)
PRIOR = st.one_of(st.none(), st.just((1.0, 1.0)), st.tuples(CONCENTRATION, CONCENTRATION))
RATE = st.sampled_from([0, 0.3, 1, 2.5, 7])
BLOCK = st.sampled_from([1, 2, 3, 8, 100, 10**6])
SAMPLER = st.one_of(
    st.sampled_from(
        [
            "auto",
            "stepwise",
            "slice",
            "blocked",
            "beam",
            "direct_assignment",
            "stick_breaking",
            "stick_breaking_beam",
        ]
    ),
    st.builds(StepwiseGibbs, st.sampled_from(["exact", "rcd"]), RATE),
    st.builds(StepwiseSlice, RATE),
    st.builds(BlockedGibbs, BLOCK, RATE),
    st.builds(BlockedBeam, BLOCK, RATE),
    st.builds(DirectAssignmentGibbs),
    st.builds(StickBreakingGibbs),
    st.builds(StickBreakingBeam),
)


def is_stick_breaking_beam(sampler):
    return sampler == "stick_breaking_beam" or isinstance(sampler, StickBreakingBeam)


class StopAt:
    """A callback that ends chains after a sweep."""

    def __init__(self, sweep):
        self.sweep = sweep

    def __repr__(self):
        return f"StopAt({self.sweep})"

    def __call__(self, report):
        assert np.isfinite(report.lp)
        return report.sweep >= self.sweep


@st.composite
def models(draw, n, tables, limits=True):
    """A model for data of n rows, and whether it knows all symbols of the tables."""
    categories, knows_all = "auto", False
    if draw(st.booleans()):
        knows_all = draw(st.booleans())
        # Without the largest symbol: it is unknown already in fit.
        categories = [table if knows_all else table[:-1] for table in tables]
    unknown = draw(st.sampled_from(["base", "missing", "error"]))
    if unknown == "error" and not knows_all:
        categories = "auto"
    words = {"categories": categories, "handle_unknown": unknown}
    if draw(st.booleans()):
        emission = HCRPCategorical(
            draw(CONCENTRATION), draw(CONCENTRATION), draw(PRIOR), **words
        )
    else:
        emission = DirichletCategorical(draw(CONCENTRATION), **words)
    if draw(st.integers(0, 3)) == 0:
        emission, knows_all = draw(st.sampled_from(["hcrp", "dirichlet"])), False
    init = draw(st.sampled_from(["particle_filter", "random", "single", "labels"]))
    if init == "labels":
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        top = draw(st.sampled_from([1, 5, 2**8, 2**60]))
        init = rng.integers(top, size=n).astype("uint8" if top <= 2**8 else "int64")
        init = init.tolist() if draw(st.booleans()) else init
    stops = {}
    if limits:
        stops = draw(
            st.sampled_from([{}, {}, {"max_time": 1e-9}, {"callback": StopAt(1)}])
        )
        if "callback" in stops:
            stops = {"callback": StopAt(draw(st.integers(1, 20)))}
    sampler, gamma, prior = draw(SAMPLER), draw(CONCENTRATION), draw(PRIOR)
    if is_stick_breaking_beam(sampler):
        # Its sweeps grow with gamma, until it gives up.
        gamma, prior = min(gamma, 30.0), prior if prior is None else (1.0, 1.0)
    estimate = draw(st.sampled_from(["map", "vi", "vi", "binder"]))
    model = HCRPHMM(
        sampler,
        emission,
        alpha=draw(CONCENTRATION),
        gamma=gamma,
        concentration_prior=prior,
        init=init,
        n_burnin=draw(st.integers(0, 5)),
        n_draws=draw(st.integers(1, 4)),
        thin=draw(st.integers(1, 3)),
        n_chains=draw(st.integers(1, 3)),
        n_jobs=draw(st.sampled_from([None, 1, 2])),
        n_particles=draw(st.sampled_from([1, 2, 10])),
        store_states=estimate == "binder" or draw(st.booleans()),
        point_estimate=estimate,
        warm_start=draw(st.booleans()),
        random_state=draw(st.integers(0, 2**32 - 1)),
        verbose=draw(st.sampled_from([0, 0, 0, True, 1, 2])),
        **stops,
    )
    return model, knows_all


@dataclass
class Problem:
    """A model, and data to fit and to predict."""

    model: HCRPHMM
    train: Data
    sequences: dict[str, Any]
    starts: list[int]
    test: Data
    test_sequences: dict[str, Any]
    test_starts: list[int]
    known: list[set[int]]  # codes that the model knows after fit


@st.composite
def problems(draw, limits=True):
    n = draw(LENGTH)
    has_missing = [draw(MISSING), draw(MISSING)]
    may_miss = has_missing != ["nothing", "nothing"]
    tables = draw(st.lists(symbols(may_miss), min_size=1, max_size=6))
    n_test = draw(st.integers(1, 30))
    train = draw(data(n, tables, has_missing[0]))
    # (scikit-learn wants the names of the columns again.)
    is_named = train.form == "frame" and isinstance(train.names[0], str)
    wanted = {"frame": True, "names": train.names} if is_named else {}
    if train.form != "frame":
        wanted = {"frame": False}
    test = draw(data(n_test, tables, has_missing[1], **wanted))
    if not is_named and test.form == "frame":
        test.names = [*range(len(tables))]
    given, starts = draw(sequences(n))
    test_given, test_starts = draw(sequences(n_test))
    model, knows_all = draw(models(n, tables, limits))
    categories = getattr(model.emission, "categories", "auto")
    if categories == "auto":
        known = [set(column[column >= 0].tolist()) for column in train.codes.T]
    else:
        known = [set(range(len(table))) for table in categories]
    assert not knows_all or known == [set(range(len(table))) for table in tables]
    return Problem(model, train, given, starts, test, test_given, test_starts, known)


# -- what is due ----------------------------------------------------------------------


@contextmanager
def warns(*patterns):
    """Exactly these warnings come, in any number, and no others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    messages = [str(warning.message) for warning in caught]
    for message in messages:
        assert any(re.search(pattern, message) for pattern in patterns), message
    for pattern in patterns:
        assert any(re.search(pattern, message) for message in messages), pattern


def gap_warning(data, starts):
    """The warning about a data frame's index that data ask for."""
    index = np.asarray(data.index) if data.form == "frame" else np.array("none")
    if index.dtype.kind != "i":
        return []
    parts = np.split(index, starts[1:])
    uneven = any(len(np.unique(np.diff(part))) > 1 for part in parts)
    return [r"The index of X goes from"] if uneven else []


def missing_warning(missing, empty):
    """The warning about entries that are missing, or rows that say nothing."""
    if missing.all():
        return [r"All entries of X are missing"]
    if empty.all():
        return [r"All rows of X are missing"]
    return [r"All entries of columns? .* of X are m"] if missing.all(axis=0).any() else []


def missing_symbols(problem):
    """The same of the training data of a problem."""
    codes = problem.train.codes
    seen = codes >= 0
    if getattr(problem.model.emission, "handle_unknown", "base") == "missing":
        columns = zip(codes.T, problem.known, strict=True)
        seen = np.array([np.isin(column, list(known)) for column, known in columns]).T
    return missing_warning(codes < 0, ~seen.any(axis=1))


def as_array(found):
    """Results as arrays; data frames come where data frames came in."""
    return found.to_numpy(object) if isinstance(found, pd.DataFrame) else found


def n_draws_due(model):
    """Draws per chain; 0 if chains end before the first one is due."""
    n_sweeps = model.n_burnin + model.n_draws * model.thin
    if model.max_time is not None:
        n_sweeps = 1
    if model.callback is not None:
        n_sweeps = min(n_sweeps, model.callback.sweep)
    return max(0, n_sweeps - model.n_burnin) // model.thin


def is_sorted_by_occupancy(states, n_states):
    """Labels 0 .. n_states - 1 all occur, the most frequent ones first."""
    counts = np.bincount(states, minlength=n_states)
    return len(counts) == n_states and counts.min() > 0 and (np.diff(counts) <= 0).all()


def check_draws(model, n):
    """All that a fit leaves is finite, in range, and fits together."""
    K, draws = model.n_states_, model.draws_
    due = n_draws_due(model)
    assert draws.n_draws.tolist() == [max(due, 1)] * model.n_chains
    assert draws.shape == (model.n_chains, max(due, 1))
    assert np.isfinite(draws.lp).all()
    assert not model.emission_.is_categorical or (draws.lp <= 1e-6).all()
    for values in (draws.alpha, draws.gamma):
        assert ((values >= 1e-50) & (values <= 1e50)).all()
    assert (draws.seconds >= 0).all()
    assert ((draws.acceptance_rate >= 0) & (draws.acceptance_rate <= 1)).all()
    trials = draws.split_merge_acceptance_rate
    assert (np.isnan(trials) | ((trials >= 0) & (trials <= 1))).all()
    assert ((draws.n_states >= 1) & (draws.n_states <= n)).all()
    assert (draws.n_tables >= draws.n_states).all()
    best = draws.argmax()
    summed = draws.summed_lp()
    assert (summed >= draws.lp - 1e-6).all()
    assert summed[best] == summed.max()
    if model.point_estimate != "map" and draws.has_states:
        is_best = (draws.states == model.labels_).all(axis=-1)
        best = np.unravel_index(np.argmax(is_best), draws.shape)
    assert draws.n_states[best] == K
    assert model.labels_.dtype == np.int32
    assert model.labels_.shape == (n,)
    assert is_sorted_by_occupancy(model.labels_, K)
    if model.store_states:
        assert draws.states.shape == (*draws.shape, n)
        np.testing.assert_array_equal(draws.states[best], model.labels_)
        for states, n_states in zip(
            draws.states.reshape(-1, n), draws.n_states.ravel(), strict=True
        ):
            assert is_sorted_by_occupancy(states, n_states)
    elif due:
        assert draws.states is None
    assert model.startprob_.shape == (K + 1,)
    assert model.transmat_.shape == (K + 1, K + 1)
    for probs in (model.startprob_, model.transmat_):
        assert ((probs >= 0) & (probs <= 1 + 1e-9)).all()
        np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-9)
    diagnosis = model.diagnose(verbose=False)
    assert diagnosis.n_draws == draws.shape[1]
    assert len(str(diagnosis).splitlines()) > len(diagnosis.table)
    for group in draws.to_dict().values():
        for values in group.values():
            assert values.shape[:2] == draws.shape


def check_predictions(model, X, given, empty, due):
    """All methods that take data; `empty` says which rows have no observation."""
    K, n = model.n_states_, len(X)
    with warns(*due):
        log_prob, path = model.decode(X, **given)
    assert isinstance(log_prob, float)
    assert np.isfinite(log_prob)
    is_discrete = model.emission_.takes_integers
    assert not is_discrete or log_prob <= 1e-6
    assert path.dtype == np.int32
    assert path.shape == (n,)
    assert ((path >= 0) & (path <= K)).all()
    with warns(*due):
        np.testing.assert_array_equal(model.predict(X, **given), path)
    with warns(*due):
        probs = np.asarray(model.predict_proba(X, **given))
    assert probs.shape == (n, K + 1)
    assert probs.dtype == np.float64
    assert ((probs >= 0) & (probs <= 1 + 1e-9)).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-9)
    with warns(*due):
        smooth = model.predict(X, method="smooth", **given)
    np.testing.assert_array_equal(smooth, probs.argmax(axis=1))
    with warns(*due):
        filtered = np.asarray(model.predict_proba(X, method="filter", **given))
    assert ((filtered >= 0) & (filtered <= 1 + 1e-9)).all()
    np.testing.assert_allclose(filtered.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(filtered[-1], probs[-1], rtol=1e-9, atol=1e-12)
    with warns(*due):
        log_probs = model.score_samples(X, **given)
    assert log_probs.shape == (n,)
    assert np.isfinite(log_probs).all()
    assert not is_discrete or (log_probs <= 1e-9).all()
    assert (log_probs[empty] == 0).all()
    with warns(*due):
        score = model.score(X, **given)
    assert isinstance(score, float)
    observed = log_probs[~empty]
    assert score == pytest.approx(observed.mean() if len(observed) else 0, rel=1e-12)
    with warns(*due), np.errstate(over="ignore"):
        assert model.perplexity(X, **given) == np.exp(-score)
    if model.draws_.lp.size == 1 and "lengths" not in given:
        # The most probable path is part of the sum over all paths.
        frozen = ParticleFilterScorer(adaptive=False)
        with warns(*due):
            total = frozen.score_samples(model, X, **given).sum()
        assert log_prob <= total + 1e-6 * max(1, abs(total))


def check_unobserved(model, X, plain, missing, given, due, seed):
    """What is missing in X, and what comes after it."""
    categories = getattr(model.emission_, "categories_", None)
    with warns(*due):
        following = model.predict_next(X, 2, **given)
    if categories is not None and min(map(len, categories)) == 0:
        with pytest.raises(ValueError, match="no observed symbol"):
            following.sample()
        if missing.any():
            with warns(*due), pytest.raises(ValueError, match="no observed symbol"):
                model.impute(X, **given)
        return
    for method in ("expectation", "sample"):
        with warns(*due):
            filled = as_array(model.impute(X, method=method, random_state=seed, **given))
        assert filled.shape == missing.shape
        assert filled[~missing].tolist() == plain[~missing].tolist()
        for c, column in enumerate(filled.T):
            new = column[missing[:, c]]
            if categories is None:
                assert np.isfinite(new.astype(float)).all()
            else:
                assert set(new.tolist()) <= set(categories[c].tolist())
    future = following.sample(3, random_state=seed)
    assert future.shape == (3, 2, missing.shape[1])
    np.testing.assert_array_equal(following.sample(3, random_state=seed), future)
    for c in range(missing.shape[1] if categories is not None else 0):
        probs = following.proba(c)
        assert (probs >= 0).all()
        np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-9)
    if categories is None:
        assert np.isfinite(following.mean()).all()
    else:
        with pytest.raises(ValueError, match="All columns hold symbols"):
            following.mean()
    log_probs = following.log_prob(np.resize(plain, (2, missing.shape[1])))
    assert np.isfinite(log_probs).all()
    assert not model.emission_.takes_integers or (log_probs <= 1e-9).all()


def check_samples(model, seed):
    """New data hold known symbols, and the same seed gives the same."""
    categories = model.emission_.categories_
    if min(map(len, categories)) == 0:
        with pytest.raises(ValueError, match="no observed symbol"):
            model.sample(3, random_state=seed)
        return
    X, states = model.sample(9, random_state=seed)
    X = as_array(X)
    assert X.shape == (9, len(categories))
    assert states.shape == (9,)
    assert states.dtype == np.int32
    assert states.min() >= 0
    for column, values in zip(X.T, categories, strict=True):
        assert set(column.tolist()) <= set(values.tolist())
    again = model.sample(9, random_state=seed)
    np.testing.assert_array_equal(again[0], X)
    np.testing.assert_array_equal(again[1], states)


def described(model):
    """All parameters as text."""
    return {
        name: repr(value.tolist() if isinstance(value, np.ndarray) else value)
        for name, value in model.get_params().items()
    }


def assert_same_fit(one, two):
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.transmat_, two.transmat_)


def fit(model, X, given, due):
    with warns(*due):
        model.fit(X, **given)


@fuzz(100)
@given(problems(), st.data())
def test_whatever_is_allowed_works(problem, more):
    began = time.process_time()
    model, train = problem.model, problem.train
    before = described(model)
    X, n = train.given(), len(train.codes)
    gap = gap_warning(train, problem.starts)
    early = [] if n_draws_due(model) else [r"Chains \[0.* were stopped by max_time or"]
    early += missing_symbols(problem)
    fit(model, X, problem.sequences, gap + early)
    assert described(model) == before
    check_draws(model, n)

    unknown = model.emission_.handle_unknown
    for data, split, starts in (
        (train, problem.sequences, problem.starts),
        (problem.test, problem.test_sequences, problem.test_starts),
    ):
        seen = np.array(
            [
                np.isin(column, list(known))
                for column, known in zip(data.codes.T, problem.known, strict=True)
            ]
        ).T
        if unknown == "error" and (~seen & (data.codes >= 0)).any():
            method = more.draw(st.sampled_from(["predict", "decode", "score"]))
            call = getattr(model, method)
            with pytest.raises(ValueError, match="not among the categories learned"):
                call(data.given(), **split)
            continue
        empty = ~(seen if unknown == "missing" else data.codes >= 0).any(axis=1)
        due = gap_warning(data, starts)
        check_predictions(model, data.given(), split, empty, due)
        seed = more.draw(st.integers(0, 2**32 - 1))
        missing = data.codes < 0
        check_unobserved(model, data.given(), data.plain(), missing, split, due, seed)
    check_samples(model, more.draw(st.integers(0, 2**32 - 1)))

    # The same seed gives the same, whatever the number of jobs, of a clone and of a
    # model that gets all parameters one by one.
    copy = clone(model)
    assert described(copy) == before
    copy.set_params(n_jobs=more.draw(st.sampled_from([1, 2])), verbose=0)
    fit(copy, X, problem.sequences, gap + early)
    assert_same_fit(copy, model)
    other = HCRPHMM().set_params(**clone(model).get_params())
    assert described(other) == before
    # Whatever the data look like, too.
    plain = train.plain()
    fit(other, plain, problem.sequences, early)
    assert_same_fit(other, model)
    for one, two in zip(
        other.emission_.categories_, model.emission_.categories_, strict=True
    ):
        np.testing.assert_array_equal(one, two)

    loaded = pickle.loads(pickle.dumps(other))
    assert_same_fit(loaded, model)
    np.testing.assert_array_equal(loaded.predict_proba(plain), other.predict_proba(plain))
    assert loaded.score(plain) == other.score(plain)
    assert time.process_time() - began < TOO_LONG


@fuzz(40)
@given(problems(limits=False), st.integers(1, 3), st.integers(1, 2))
def test_fitting_twice_is_fitting_once(problem, n_more, n_jobs):
    X, split = problem.train.plain(), problem.sequences
    model = problem.model.set_params(warm_start=True, verbose=0)
    once = clone(model).set_params(n_draws=model.n_draws + n_more)
    due = missing_symbols(problem)
    fit(once, X, split, due)
    fit(model, X, split, due)
    model.set_params(n_draws=n_more, n_jobs=n_jobs)
    fit(model, X, split, due)
    assert_same_fit(model, once)
    assert model.score(X, **split) == once.score(X, **split)


@fuzz(40)
@given(
    problems(),
    st.builds(
        ParticleFilterScorer,
        n_particles=st.integers(1, 9),
        adaptive=st.booleans(),
        resampling=st.sampled_from(["systematic", "stratified", "multinomial"]),
        max_draws=st.sampled_from([None, 1, 2, 99]),
        start=st.sampled_from(["new", "continue"]),
        random_state=st.sampled_from([None, 0]),
        n_jobs=st.sampled_from([None, 2]),
    ),
)
def test_scorers(problem, scorer):
    X, model = problem.train.plain(), problem.model.set_params(verbose=0)
    early = [] if n_draws_due(model) else [r"Chains \[0.* were stopped by max_time or"]
    fit(model, X, problem.sequences, early + missing_symbols(problem))
    groups = problem.sequences.get("groups")
    log_probs = scorer.score_samples(model, X, groups=groups)
    assert log_probs.shape == (len(X),)
    assert np.isfinite(log_probs).all()
    assert (log_probs <= 1e-9).all()
    assert scorer(model, X, groups=groups) == clone(scorer)(model, X, groups=groups)


# -- numbers --------------------------------------------------------------------------


def normal(rng, n, d, scale, offset):
    """A few clusters, far from one another or not, of any size."""
    X = rng.normal(size=(n, d)) + 5 * rng.integers(3, size=(n, 1))
    return (X + offset) * scale


@st.composite
def number_problems(draw):
    """A model of numbers, data for it, and which entries of them are missing."""
    n, d = draw(st.integers(1, 60)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["gaussian", "diagonal", "poisson", "bernoulli"]))
    positive = [draw(CONCENTRATION) for _ in range(3)]
    given = draw(st.booleans())
    scale = 10.0 ** draw(st.sampled_from([-150, -30, -3, 0, 0, 3, 30, 90]))
    if kind in ("gaussian", "diagonal"):
        X = normal(rng, n, d, scale, draw(st.sampled_from([0, 1, 1e6])))
        emission = NormalInverseWishart() if kind == "gaussian" else NormalInverseGamma()
        if given and kind == "gaussian":
            emission = NormalInverseWishart(0.5 * scale, positive[0], d + positive[1])
        elif given:
            # (Of smaller shapes the tails are beyond the range of floats.)
            emission = NormalInverseGamma(0.5 * scale, positive[0], 0.5 + positive[1])
    elif kind == "poisson":
        X = rng.poisson(draw(st.sampled_from([0, 0.1, 3, 1e5])), size=(n, d))
        emission = GammaPoisson(*positive[:2]) if given else GammaPoisson()
    else:
        X = rng.integers(2, size=(n, d))
        emission = BetaBernoulli(*positive[:2]) if given else BetaBernoulli()
    if draw(st.integers(0, 3)) == 0:
        X[:] = X[0]
    missing = rng.random((n, d)) < draw(st.sampled_from([0, 0, 0.1, 0.9, 1]))
    plain = np.where(missing, np.nan, X)
    form = draw(st.sampled_from(["plain", "object", "list", "masked", "frame"]))
    if form == "object":
        data = np.where(missing, None, X)
    elif form == "list":
        data = np.where(missing, None, X).tolist()
    elif form == "masked":
        data = np.ma.masked_array(X, missing)
    else:
        data = pd.DataFrame(plain) if form == "frame" else plain
    model, _ = draw(models(n, [[0]]))
    split, _ = draw(sequences(n))
    empty = missing.any(axis=1) if kind == "gaussian" else missing.all(axis=1)
    return model.set_params(emission=emission), data, plain, empty, split


@fuzz(80)
@given(number_problems(), st.integers(0, 2**32 - 1))
def test_numbers(problem, seed):
    model, X, plain, empty, split = problem
    early = [] if n_draws_due(model) else [r"Chains \[0.* were stopped by max_time or"]
    early += missing_warning(np.isnan(plain), empty)
    fit(model, X, split, early)
    check_draws(model, len(plain))
    check_predictions(model, X, split, empty, [])
    check_unobserved(model, X, plain, np.isnan(plain), split, [], seed)
    new, states = model.sample(9, random_state=seed)
    assert new.shape == (9, plain.shape[1])
    assert np.isfinite(np.asarray(new)).all()
    assert states.min() >= 0
    np.testing.assert_array_equal(model.sample(9, random_state=seed)[0], new)
    other = clone(model).set_params(verbose=0)
    fit(other, plain, split, early)
    assert_same_fit(other, model)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.score(plain) == model.score(plain)


# -- garbage --------------------------------------------------------------------------

# Words of numpy and Python about themselves, not about what was given.
INTERNAL = re.compile(
    r"NoneType|object has no attribute|broadcast|out of bounds|unhashable|subscriptable"
    r"|not iterable|iteration over|unsupported operand|truth value|ambiguous|reshape a"
    r"|float\(\)|int\(\)|must be real|not supported between|index out of|too many indices"
    r"|setting an array element|could not convert|DType|ufunc|[Bb]uffer|unpack"
    r"|positional argument|cannot convert|too large to convert|promoted|at least one a"
    r"|cast|32-bit integer|numpy\.dtypes|object is not|\b[yx] should|len\(x"
)
N = 20
SHORT = {"n_burnin": 1, "n_draws": 1, "thin": 1, "n_particles": 2, "random_state": 0}
LETTERS = np.array(list("abc"))


@cache
def fitted(kind):
    """A model, and the data that it was fitted to, with numbers, strings or both."""
    numbers = np.arange(N).reshape(-1, 1) % 3
    strings = LETTERS[numbers].astype(object)
    X = {
        "numbers": numbers,
        "strings": strings,
        "both": np.column_stack([strings, numbers.astype(object)]),
    }[kind]
    model = HCRPHMM(**SHORT).fit(X)
    return model, X, model.predict(X)


KIND = st.sampled_from(["numbers", "strings", "both"])


def check_refused(model, call):
    """An error that says something, and nothing of the model changes."""
    before = {name: id(value) for name, value in vars(model).items()}
    with warnings.catch_warnings():
        # (scikit-learn's, of a data frame that comes after an array.)
        warnings.filterwarnings("ignore", "X has feature names")
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
    message = str(caught.value)
    assert type(caught.value) in (TypeError, ValueError), repr(caught.value)
    assert message.strip()
    assert not INTERNAL.search(message), message
    assert {name: id(value) for name, value in vars(model).items()} == before


METHODS = [
    "predict",
    "predict_proba",
    "predict_next",
    "impute",
    "decode",
    "score",
    "score_samples",
    "perplexity",
]

# Nothing that could be a symbol.
BAD_ENTRIES = [
    -1,
    -(2**70),
    2**63,
    2**64,
    10**400,
    -(10**400),
    0.5,
    -0.5,
    1e300,
    np.float32(0.1),
    np.inf,
    -np.inf,
    np.float16(-np.inf),
    1j,
    np.complex64(1),
    Fraction(1, 3),
    Fraction(10**400),
    Decimal("0.5"),
    Decimal("Infinity"),
    b"a",
    np.bytes_(b"a"),
    bytearray(b"ab"),
    memoryview(b"ab"),
    datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1),
    datetime.timedelta(1),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "D"),
    pd.Timestamp("2020-01-01"),
    pd.Interval(0, 1),
    pd.Period("2020-01", "M"),
    [1],
    [],
    (1, 2),
    [[1]],
    {},
    {"a": 1},
    {1},
    frozenset([1]),
    range(2),
    object(),
    len,
    int,
    ...,
    NotImplemented,
    ValueError("a"),
    HCRPHMM(),
    np.arange(2),
    np.zeros((2, 2)),
    pd.Series([1, 2]),
]


def frame_of(X):
    """A data frame; the array itself if pandas (such as 2.1) cannot hold its integers."""
    try:
        return pd.DataFrame(X)
    except OverflowError:
        return X


@st.composite
def bad_entry(draw):
    """An array of objects, a list or a data frame with one entry that is no symbol."""
    d = draw(st.integers(1, 3))
    n = draw(st.sampled_from([1, 2, N]))
    X = np.empty((n, d), dtype=object)
    for c in range(d):
        X[:, c] = draw(st.sampled_from([1, "a", None]))
    entry = draw(st.sampled_from(BAD_ENTRIES))
    X[draw(st.integers(0, n - 1)), draw(st.integers(0, d - 1))] = entry
    form = draw(st.sampled_from(["array", "array", "list", "frame"]))
    if form == "frame":
        return frame_of(X)
    return X.tolist() if form == "list" else X


@st.composite
def bad_numbers(draw):
    """Arrays of numbers, one of which is no symbol."""
    shape = (draw(st.integers(1, 9)), draw(st.integers(1, 3)))
    dtype, value = draw(
        st.sampled_from(
            [
                *((dtype, -1) for dtype in ("i1", "i2", "i4", "i8", "f2", "f4", "f8")),
                *((dtype, 0.5) for dtype in ("f2", "f4", "f8", "g")),
                *((dtype, np.inf) for dtype in ("f2", "f4", "f8", "g")),
                *((dtype, -np.inf) for dtype in ("f2", "f4", "f8", "g")),
                ("f8", 2.0**54),
                ("f4", 1e30),
                ("u8", 2**63),
                ("c8", 1),
                ("c16", 1j),
                ("M8[D]", 3),
                ("M8[ns]", 3),
                ("m8[s]", 3),
                ("S3", b"abc"),
                ("V3", b"abc"),
                ([("a", "i4"), ("b", "f8")], (1, 2)),
            ]
        )
    )
    X = np.ones(shape, dtype="i1").astype(dtype)
    X[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] = value
    form = draw(st.sampled_from(["array", "masked", "frame"]))
    if form == "masked":
        mask = np.zeros(shape, dtype=bool)
        if shape[0] > 1 and draw(st.booleans()):
            # (Not what is wrong.)
            mask[1:] = draw(st.booleans())
            X[0] = value
        return np.ma.masked_array(X, mask)
    if form == "frame" and X.dtype.kind not in "SVg" and X.dtype != np.longdouble:
        return pd.DataFrame(X)
    return X


def whole_garbage():
    """Things that are no table of symbols at all."""
    dates = pd.date_range("2020-01-01", periods=4)
    codes = np.arange(4)
    return [
        *(None, 3, 1.5, True, "abc", b"abc", 1j, object(), len, int, ...),
        *({}, {"a": [1, 2]}, set(), {1, 2}, range(3), iter([1]), (i for i in [[1]])),
        *([], [[]], [[], []], [None], [1, 2], ["a"], [b"a"], [[[1]]], [{"a": 1}], ()),
        *(
            [[1], [2, 3]],
            [[1, 2], [3]],
            [[1], 2],
            [["a"], ["b", "c"]],
            [[1, [2]]],
            [[{}]],
        ),
        *([["a"], [1]], [[1], ["a"]], [["a"], [1.0]], [["a"], [b"b"]], [["a"], [{}]]),
        np.array(3),
        np.arange(3),
        np.array(["a", "b"]),
        np.zeros((2, 2, 2)),
        np.zeros((1, 1, 1, 1)),
        np.empty((0, 1)),
        np.empty((3, 0)),
        np.empty((0, 0), dtype=object),
        np.empty((0, 3), dtype="U1"),
        np.ma.masked_all((0, 2)),
        np.ma.masked,
        np.ma.masked_array([1, 2], [0, 1]),
        np.ma.masked_array([[1j], [1]], [[0], [1]]),
        np.ma.masked_array(np.array([["2020"], ["2021"]], dtype="M8[D]"), [[0], [1]]),
        np.ma.masked_array(
            np.zeros((3, 1), dtype=[("a", int)]), [[(0,)], [(1,)], [(0,)]]
        ),
        datetime.date(2020, 1, 1),
        pd.Series([1, 2]),
        pd.Index([1, 2]),
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame(index=range(3)),
        pd.DataFrame({"a": dates}),
        pd.DataFrame({"a": dates, "b": codes}),
        pd.DataFrame({"a": dates, "b": list("abcd")}),
        pd.DataFrame({"a": dates.tz_localize("UTC"), "b": codes}),
        pd.DataFrame({"a": dates.tz_localize("UTC")}),
        pd.DataFrame({"a": dates - dates[0], "b": codes / 1}),
        pd.DataFrame({"a": pd.period_range("2020-01-01", periods=4)}),
        pd.DataFrame({"a": pd.interval_range(0, 4)}),
        pd.DataFrame({"a": pd.Categorical(dates)}),
        pd.DataFrame({"a": pd.Categorical([0.5, 1])}),
        pd.DataFrame({"a": codes - 1.5, "b": pd.array(codes, dtype="Int64")}),
        pd.DataFrame({"a": pd.array([-1, None], dtype="Int64")}),
        pd.DataFrame({"a": [1], 2: [3]}),
        scipy.sparse.csr_array(np.eye(3)),
        scipy.sparse.coo_matrix(np.eye(3)),
        HCRPHMM(),
        HCRPHMM,
    ]


GARBAGE = st.one_of(
    bad_entry(), bad_numbers(), st.sampled_from(range(len(whole_garbage())))
)


@fuzz(400)
@given(GARBAGE, KIND, st.sampled_from(METHODS))
def test_garbage_is_refused_as_data(X, kind, method):
    # (Some of it cannot be used twice.)
    X = whole_garbage()[X] if isinstance(X, int) else X
    model, old, path = fitted(kind)
    check_refused(model, lambda: model.fit(X))
    check_refused(model, lambda: getattr(model, method)(X))
    np.testing.assert_array_equal(model.predict(old), path)
    fresh = HCRPHMM(**SHORT)
    check_refused(fresh, lambda: fresh.fit(X))


@fuzz(40)
@given(KIND, st.sampled_from(METHODS), st.data())
def test_data_of_another_kind_are_refused(kind, method, more):
    model, X, _ = fitted(kind)
    other = more.draw(st.sampled_from(["columns", "types", "unknown"]))
    if other == "columns":
        X = X[:, :0] if more.draw(st.booleans()) else np.column_stack([X, X])
    elif other == "types":
        X = X[::-1, ::-1] if kind == "both" else fitted("numbers")[1]
        X = fitted("strings")[1] if kind == "numbers" else X
    else:
        X = X.astype(object)
        X[-1, 0] = 99 if kind == "numbers" else "unknown"
        emission = HCRPCategorical(handle_unknown="error")
        model = HCRPHMM(emission=emission, **SHORT).fit(fitted(kind)[1])
    check_refused(model, lambda: getattr(model, method)(X))


def is_small_number(value):
    """What the emissions of numbers take."""
    real = int | float | Fraction | Decimal | np.integer | np.floating
    return (
        isinstance(value, real)
        and not isinstance(value, np.timedelta64)
        and -(10**100) <= (value.item() if hasattr(value, "item") else value) <= 10**100
    )


@fuzz(80)
@given(
    st.sampled_from([value for value in BAD_ENTRIES if not is_small_number(value)]),
    st.sampled_from(["M8[D]", "m8[s]", "S3", "V3", "c8", "c16", "i4,f8"]),
    st.sampled_from(["gaussian", "diagonal_gaussian", "poisson", "bernoulli"]),
    st.integers(0, 3),
)
def test_garbage_is_refused_as_numbers(entry, dtype, emission, row):
    X = np.ones((4, 2), dtype=object)
    X[row, 1] = entry
    model = HCRPHMM(emission=emission, **SHORT)
    for garbage in (
        X,
        X.tolist(),
        frame_of(X),
        np.ones((4, 2), dtype="i1").astype(dtype),
        np.ma.masked_array(np.ones((4, 2), dtype="i1").astype(dtype), np.eye(4, 2)),
        [["a"], [1]],
        [[1], [2, 3]],
    ):
        check_refused(model, lambda garbage=garbage: model.fit(garbage))


def bad_sequences():
    """Groups and lengths that say nothing about 20 rows."""
    ids = [0] * 10 + [1] * 10
    nested, lists = np.empty(N, dtype=object), np.empty(N, dtype=object)
    tuples = np.empty(N, dtype=object)
    for i in range(N):
        nested[i], lists[i], tuples[i] = np.arange(2), [1], (1, [2])
    with_missing = [
        *([*ids[1:], missing] for missing in (None, np.nan, pd.NA, pd.NaT)),
        *([*map(str, ids[1:]), missing] for missing in (None, np.nan)),
        np.array(["2020"] * 19 + ["NaT"], dtype="M8[D]"),
        np.ma.masked_array(ids, [0] * 19 + [1]),
        np.ma.masked_array(np.array(["a"] * N), [1] + [0] * 19),
        pd.Series([*ids[1:], None], dtype="Int64"),
        pd.Categorical([*map(str, ids[1:]), None]),
    ]
    groups = [
        *(3, 1.5, True, "a", "a" * N, b"a", 1j, object(), len, ..., np.array(3)),
        *({}, {"a": ids}, set(ids), iter(ids), range(N - 1), [], (), [[]]),
        *(ids[:-1], [*ids, 1], [0, 1] * 10, list("ab") * 10, ["a", 1] * 10),
        *([ids], [ids] * N, np.zeros((N, 2)), np.zeros((1, N)), np.zeros((N, 1, 1))),
        *([1j] * N, [[1]] * 19 + [[1, 2]], [[1], 2] * 10, [{}] * N, [{1}] * N),
        *(nested, lists, tuples, np.empty(0), scipy.sparse.csr_array(np.ones((N, 1)))),
        *(pd.DataFrame({"a": ids, "b": ids}), pd.DataFrame(), HCRPHMM()),
        *with_missing,
    ]
    lengths = [
        *(N, 20.0, True, "20", b"20", 1j, object(), len, ..., np.array(N)),
        *({}, {1: 20}, {20}, iter([20]), [], (), [[]], [[20]], [[10, 10]], [[10], 10]),
        *([19], [21], [10, 11], [0, 20], [20, 0], [-1, 21], [30, -10], [-20]),
        *([20.0], [10, 10.0], [np.nan], [None], [np.inf], ["20"], [b"20"], [True] * N),
        *([10**400], [20, 10**400], [2**63, 2**63, 20], [2**63 - 1, 2**63 - 1, 22]),
        *(np.array([2**63, 2**63, 20], dtype="u8"), np.array([2**31, 20]), [1j]),
        *(np.array([236, 20], dtype="u1"), np.array([20], dtype="m8[s]"), [{}], [[], 2]),
        *(np.ma.masked_array([10, 10], [0, 1]), np.empty(0, dtype=int), np.zeros((1, 2))),
        *(pd.Series([10, None], dtype="Int64"), pd.DataFrame({"a": [20]}), pd.Series([])),
    ]
    return [
        *({"groups": value} for value in groups),
        *({"lengths": value} for value in lengths),
        {"groups": ids, "lengths": [N]},
    ]


@fuzz(200)
@given(
    st.sampled_from(range(len(bad_sequences()))),
    KIND,
    st.sampled_from(METHODS),
)
def test_garbage_is_refused_as_sequences(which, kind, method):
    model, X, path = fitted(kind)
    check_refused(model, lambda: model.fit(X, **bad_sequences()[which]))
    check_refused(model, lambda: getattr(model, method)(X, **bad_sequences()[which]))
    np.testing.assert_array_equal(model.predict(X), path)


JUNK_LEAVES = st.sampled_from(
    [
        *(None, True, False, 0, -1, -7, -(2**70), 10**400, -(10**400), 0.0, -0.5, 2.5),
        *(np.nan, np.inf, -np.inf, 1e-60, 1e60, 1e308, 1j, "", "a", "1", "auto", b"a"),
        *(
            object(),
            len,
            int,
            ...,
            datetime.date(2020, 1, 1),
            Decimal(1),
            Fraction(-1, 2),
        ),
        *(np.float32(np.nan), np.int8(-3), np.datetime64("2020"), pd.NA, np.array(1)),
        *(np.array([1, 2]), np.array(["a"]), np.zeros((2, 2)), np.empty(0), HCRPHMM()),
        *(
            StepwiseGibbs,
            HCRPCategorical,
            pd.Series([1, 2]),
            range(3),
            lambda value: True,
        ),
    ]
)
JUNK = st.recursive(
    JUNK_LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(["a", 1]), inner, max_size=2),
    ),
    max_leaves=5,
)


def _is_integer(value, lowest):
    return (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool | np.timedelta64)
        and value >= lowest
    )


def _is_number(value, lowest, highest):
    return (
        isinstance(value, int | float | Fraction | np.integer | np.floating)
        and not isinstance(value, bool | np.timedelta64)
        and lowest <= value <= highest
    )


def _is_concentration(value):
    return _is_number(value, 1e-50, 1e50)


def _is_prior(value):
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return value is None or (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(_is_number(v, 5e-324, 1.7e308) for v in value)
    )


def _is_list_of(value, check):
    return isinstance(value, list | tuple) and len(value) == N and all(map(check, value))


# What every parameter takes, of the junk.
ACCEPTS = {
    "alpha": _is_concentration,
    "gamma": _is_concentration,
    "concentration_prior": _is_prior,
    "init": lambda v: isinstance(v, str) and v in ("particle_filter", "random", "single"),
    "n_burnin": lambda v: _is_integer(v, 0),
    "n_draws": lambda v: _is_integer(v, 1),
    "thin": lambda v: _is_integer(v, 1),
    "n_chains": lambda v: _is_integer(v, 1),
    "n_particles": lambda v: _is_integer(v, 1),
    "n_jobs": lambda v: v is None or (_is_integer(v, -(2**80)) and v != 0),
    "store_states": lambda v: isinstance(v, bool | np.bool_),
    "point_estimate": lambda v: isinstance(v, str) and v in ("map", "vi", "binder"),
    "warm_start": lambda v: isinstance(v, bool | np.bool_),
    "max_time": lambda v: v is None or _is_number(v, 5e-324, 1.7e308),
    "callback": lambda v: v is None or callable(v),
    "checkpoint": lambda v: v is None or isinstance(v, str),
    "checkpoint_interval": lambda v: _is_number(v, 0, 1.7e308),
    "random_state": lambda v: (
        v is None or isinstance(v, bool) or (_is_integer(v, 0) and v < 2**32)
    ),
    "verbose": lambda v: isinstance(v, bool) or _is_integer(v, 0),
    "sampler": lambda v: isinstance(v, str) and v == "auto",
    "emission": lambda v: isinstance(v, HCRPCategorical),
    "sampler__block_size": lambda v: _is_integer(v, 1),
    "sampler__split_merge_rate": lambda v: _is_number(v, 0, 1.7e308),
    "emission__alpha": _is_concentration,
    "emission__gamma": _is_concentration,
    "emission__concentration": _is_concentration,
    "emission__concentration_prior": _is_prior,
    "emission__handle_unknown": lambda v: False,
    "emission__categories": lambda v: isinstance(v, str) and v == "auto",
}


@fuzz(400)
@given(KIND, st.sampled_from([*ACCEPTS]), JUNK)
def test_garbage_is_refused_as_parameters(kind, name, junk):
    assume(not ACCEPTS[name](junk))
    _, X, path = fitted(kind)
    model = pickle.loads(pickle.dumps(fitted(kind)[0]))
    if name.startswith("sampler__"):
        model.set_params(sampler="blocked")
    if name == "emission__concentration":
        model.set_params(emission="dirichlet")
    model.set_params(**{name: junk})
    check_refused(model, lambda: model.fit(X))
    model.set_params(n_jobs=None, n_particles=2)
    np.testing.assert_array_equal(model.predict(X), path)


@fuzz(60)
@given(KIND, st.sampled_from(["n_samples", "random_state"]), JUNK)
def test_garbage_is_refused_by_sample(kind, name, junk):
    accepts = ACCEPTS["n_draws" if name == "n_samples" else name]
    assume(not accepts(junk))
    model, _, _ = fitted(kind)
    check_refused(model, lambda: model.sample(**{"n_samples": 2, name: junk}))


def test_the_list_of_parameters_is_complete():
    assert {name for name in ACCEPTS if "__" not in name} == set(HCRPHMM().get_params())
