"""Random models, data and requests: whatever is allowed works.

``python tests/fuzz.py 1000`` looks at a thousand new examples per property; an example
that fails is printed, made as small as possible, with the line that repeats it.  It then
becomes a plain test; house/test_fuzz.py runs a few fixed examples.
"""

from __future__ import annotations

import pickle
import re
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skihmm import HCRPHMM
from skihmm._using.decoding import rank
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
from skihmm.samplers._names import SAMPLERS
from skihmm.transitions import HCRPTransitions

# No example may take this long, in CPU seconds: most take some hundredths.
TOO_LONG = 60


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
    for dtype, largest in (("float16", 2**11), ("float32", 2**24), ("float64", LARGEST_FLOAT)):
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
        kinds = [draw(st.sampled_from(column_kinds(table, has_missing))) for table in tables]
        if names is None:
            prefix = draw(st.sampled_from(["column ", None]))
            names = [c if prefix is None else prefix + str(c) for c in range(len(tables))]
    index = draw(indexes(n)) if form == "frame" else None
    return Data(codes, tables, form, kinds, names, index)


MISSING = st.sampled_from(["nothing", "nothing", "some", "rows", "columns", "all"])
# Most are short: what is rare in long sequences is so in short ones, too.
LENGTH = st.one_of(st.integers(1, 8), *5 * [st.integers(1, 60)], st.sampled_from([200, 700, 2000]))


# -- models ---------------------------------------------------------------------------

CONCENTRATION = st.floats(-6, 6).map(lambda exponent: 10.0**exponent)
PRIOR = st.one_of(st.none(), st.just((1.0, 1.0)), st.tuples(CONCENTRATION, CONCENTRATION))
RATE = st.sampled_from([0, 0.3, 1, 2.5, 7])
BLOCK = st.sampled_from([1, 2, 3, 8, 100, 10**6])
SAMPLER = st.one_of(
    st.sampled_from(sorted(SAMPLERS)),
    st.builds(StepwiseGibbs, st.sampled_from(["exact", "rcd"]), RATE, RATE),
    st.builds(StepwiseSlice, RATE, RATE),
    st.builds(BlockedGibbs, BLOCK, RATE, RATE),
    st.builds(BlockedBeam, BLOCK, RATE, RATE),
    st.builds(DirectAssignmentGibbs),
    st.builds(StickBreakingGibbs),
    st.builds(StickBreakingGibbs, BLOCK, RATE, RATE, st.sampled_from([None, 2])),
    st.builds(StickBreakingBeam),
    st.builds(StickBreakingBeam, BLOCK, RATE, RATE, st.sampled_from([None, 2])),
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
        emission = HCRPCategorical(draw(CONCENTRATION), draw(CONCENTRATION), draw(PRIOR), **words)
    else:
        emission = DirichletCategorical(draw(CONCENTRATION), **words)
    if draw(st.integers(0, 3)) == 0:
        emission, knows_all = draw(st.sampled_from(["hcrp", "dirichlet"])), False
    init = draw(st.sampled_from(["particle_filter", "blocks", "random", "single", "labels"]))
    if init == "labels":
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        top = draw(st.sampled_from([1, 5, 2**8, 2**60]))
        init = rng.integers(top, size=n).astype("uint8" if top <= 2**8 else "int64")
        init = init.tolist() if draw(st.booleans()) else init
    stops = {}
    if limits:
        stops = draw(st.sampled_from([{}, {}, {"max_time": 1e-9}, {"callback": StopAt(1)}]))
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
        HCRPTransitions(draw(CONCENTRATION), gamma, prior),
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
    # scikit-learn requires the names of the columns again.
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


# Warnings that random numbers deserve; emissions/test_resolution.py says when.
OF_VALUES = (
    "always the same value|determined by the other columns|"
    "a fifth of the rows|robust standard deviations|"
    # What the index says, and missing rows at ends: data/test_sequences.py, using/test_segments.py.
    "index of X|beginning or end of sequences, have no observed value|"
    # Symbols of TEXTS: data/test_messages.py.
    "counts as a symbol"
)


@contextmanager
def warns(*patterns, allowed=OF_VALUES):
    """Exactly these warnings come, in any number, and no others but the allowed ones."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    messages = [str(warning.message) for warning in caught]
    for message in messages:
        assert any(re.search(p, message) for p in (*patterns, allowed)), message
    for pattern in patterns:
        assert any(re.search(pattern, message) for message in messages), pattern


def gap_warning(data, starts):
    """The warning that a data frame's index must give; others may."""
    index = np.asarray(data.index) if data.form == "frame" else np.array("none")
    if index.dtype.kind != "i":
        return []
    # One step of six among steps of one: the median is one, and steps hardly spread.
    parts = [np.diff(part) for part in np.split(index, starts[1:])]
    has_hole = any(len(d) > 7 and (d == 6).any() and (d == 1).sum() == len(d) - 1 for d in parts)
    return [r"The index of X (goes|has)"] if has_hole else []


def missing_warning(missing, empty):
    """The warning about entries that are missing, or rows that say nothing."""
    if missing.all():
        return [r"All entries of X are missing"]
    present = ~missing.all(axis=1)
    if 2 * (empty & present).sum() > present.sum():
        return [r"(All|% of the) rows of X .*are missing for"]
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
    for trials in (draws.split_merge_acceptance_rate, draws.run_split_merge_acceptance_rate):
        assert (np.isnan(trials) | ((trials >= 0) & (trials <= 1))).all()
    assert ((draws.n_states >= 1) & (draws.n_states <= n)).all()
    assert (draws.n_tables >= draws.n_states).all()
    best = draws.argmax()
    summed = draws.summed_lp()
    assert (summed >= draws.lp - 1e-6).all()
    assert summed[best] == summed.max()
    if draws.has_states:
        if model.point_estimate == "map":
            data, priors = model._fitted.sequences, model.transitions_
            ranks = [
                rank(draws[c, d], data, model.emission_, priors) for c, d in np.ndindex(draws.shape)
            ]
            assert ranks[np.ravel_multi_index(model._fitted.best, draws.shape)] == max(ranks)
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
    assert model.dwell_times_.shape == (K,)
    for probs in (model.startprob_, model.transmat_):
        assert ((probs >= 0) & (probs <= 1 + 1e-9)).all()
        np.testing.assert_allclose(probs.sum(axis=-1), 1, rtol=1e-9)
    diagnosis = model.diagnose(verbose=False)
    assert diagnosis.n_draws == draws.shape[1]
    assert " ".join(str(diagnosis).split()).startswith(diagnosis.verdict)
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
    categories = getattr(model.emission_, "categories_", None)
    if categories is not None and min(map(len, categories)) == 0:
        with warns(*due), pytest.raises(ValueError, match="no observed symbol"):
            model.residuals(X, **given)
    else:
        for join_states in (False, True):
            with warns(*due):
                residuals = model.residuals(X, join_states=join_states, **given)
            assert residuals.shape == (n, len(model._fitted.observed))
            assert not (abs(residuals) > 8).any()
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
    low, high = following.interval(0.9)
    assert low.shape == future.shape[1:]
    assert categories is not None or (low <= high).all()
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


@given(problems(), st.data())
def whatever_is_allowed_works(problem, more):
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
    for one, two in zip(other.emission_.categories_, model.emission_.categories_, strict=True):
        np.testing.assert_array_equal(one, two)

    loaded = pickle.loads(pickle.dumps(other))
    assert_same_fit(loaded, model)
    np.testing.assert_array_equal(loaded.predict_proba(plain), other.predict_proba(plain))
    assert loaded.score(plain) == other.score(plain)
    assert time.process_time() - began < TOO_LONG


@given(problems(limits=False), st.integers(1, 3), st.integers(1, 2))
def fitting_twice_is_fitting_once(problem, n_more, n_jobs):
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


@given(
    problems(),
    st.builds(
        ParticleFilterScorer,
        n_particles=st.integers(1, 9),
        adaptive=st.booleans(),
        max_draws=st.sampled_from([None, 1, 2, 99]),
        start=st.sampled_from(["new", "continue"]),
        random_state=st.sampled_from([None, 0]),
        n_jobs=st.sampled_from([None, 2]),
    ),
)
def scorers(problem, scorer):
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
    scale = 10.0 ** draw(st.sampled_from([-90, -30, -3, 0, 0, 3, 30, 90]))
    if kind in ("gaussian", "diagonal"):
        X = normal(rng, n, d, scale, draw(st.sampled_from([0, 1, 1e6])))
        emission = NormalInverseWishart() if kind == "gaussian" else NormalInverseGamma()
        if given and kind == "gaussian":
            emission = NormalInverseWishart(0.5 * scale, positive[0], d + positive[1])
        elif given:
            # (The tails of smaller shapes are beyond the range of floats.)
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


@given(number_problems(), st.integers(0, 2**32 - 1))
def numbers(problem, seed):
    model, X, plain, empty, split = problem
    early = [] if n_draws_due(model) else [r"Chains \[0.* were stopped by max_time or"]
    # Missing entries of partial rows are drawn.
    missing = np.isnan(plain)
    early += missing_warning(missing, missing.all(axis=1))
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


PROPERTIES = [whatever_is_allowed_works, fitting_twice_is_fitting_once, scorers, numbers]


def check(test, n_examples, **options):
    """Look at examples; a fit has no deadline, and its first one is slower."""
    settings(deadline=None, database=None, max_examples=n_examples, **options)(test)()


if __name__ == "__main__":
    for test in PROPERTIES:
        print(test.__name__, flush=True)
        check(test, int(sys.argv[1]), print_blob=True)
