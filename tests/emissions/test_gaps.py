"""Missing entries of linear Gaussian emissions, drawn between sweeps."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference.conjugate import Autoregression, FullGaussian, StudentAutoregression
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score
from small_models import Model, WithDraws, assert_caught, assert_exact, crossed
from threadpoolctl import threadpool_info, threadpool_limits

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._fitting.chain import ModelSettings, begin_chain, resume_chain
from skihmm._fitting.fit import _lost_rows
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import AutoregressiveNormal, NormalInverseWishart, ProductEmission, _gaps
from skihmm.emissions._encoding import encode
from skihmm.emissions._gaps import filled_places, first_fillings, one_thread, open_gaps
from skihmm.samplers import BlockedGibbs, StepwiseGibbs, StickBreakingGibbs
from skihmm.testing._probes import EmissionProbe
from skihmm.transitions import HCRPTransitions

STARTS = np.array([0, 9])
ONE = np.zeros(1, dtype=np.intp)


# -- the conditional distribution ------------------------------------------------------


def dense(X, regression, covariance, order=2, given=None, weights=None):
    """Mean and covariance of the missing entries, from the Gaussian of all entries.

    The first rows are standard normal, and those of which a given input is missing;
    weights divide the covariances of the others.
    """
    n, d = X.shape
    # L (all entries) = intercepts + noise.
    L, shift, noise = np.eye(n * d), np.zeros(n * d), np.eye(n * d)
    for t in range(n):
        if t - STARTS[t >= STARTS][-1] < order:
            continue
        if given is not None and np.isnan(given[t]).any():
            continue
        here = slice(t * d, (t + 1) * d)
        for lag in range(1, order + 1):
            block = regression[:, (lag - 1) * d : lag * d]
            L[here, (t - lag) * d : (t - lag + 1) * d] = -block
        shift[here] = regression[:, -1]
        if given is not None:
            shift[here] += regression[:, order * d : -1] @ given[t]
        noise[here, here] = covariance / (1.0 if weights is None else weights[t])
    mean = np.linalg.solve(L, shift)
    whole = np.linalg.solve(L, np.linalg.solve(L, noise).T)
    y = X.ravel()
    gap = np.isnan(y)
    gain = np.linalg.solve(whole[np.ix_(~gap, ~gap)], whole[np.ix_(~gap, gap)])
    return (
        mean[gap] + gain.T @ (y - mean)[~gap],
        whole[np.ix_(gap, gap)] - gain.T @ whole[np.ix_(~gap, gap)],
    )


@pytest.mark.parametrize(("n_given", "is_weighted"), [(0, False), (1, False), (1, True)])
def test_entries_have_the_exact_conditional(n_given, is_weighted):
    """Partial rows, gaps that touch, first rows; a prior that leaves nothing to learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 2))
    for t, c in [(1, 0), (4, 0), (4, 1), (5, 1), (7, 0), (8, 1), (9, 0), (12, 1)]:
        X[t, c] = np.nan
    regression = 0.6 * rng.normal(size=(2, 5 + n_given))
    given = np.linspace(-3, 3, 16 * n_given).reshape(16, n_given)
    given[5] = np.nan
    covariance = np.array([[1.1, 0.4], [0.4, 0.7]])
    law = (StudentAutoregression if is_weighted else Autoregression)(
        2,
        (0.0, 0.0),
        (1.0, 1.0),
        regression,
        (1e14,) * (3 + n_given),
        1e14,
        1e14 * covariance,
        given=n_given,
    )
    lags = [np.vstack([X[:lag] * np.nan, X[:-lag]]) for lag in (1, 2)]
    for lag, values in enumerate(lags, start=1):
        values[9 : 9 + lag] = np.nan
    rows = np.hstack([X, *lags, given])
    stats, stream = law.stats([*map(tuple, rows)]), RandomStream(1)
    EmissionProbe(stats, stream, 2)
    weights = rng.gamma(2.0, size=16) if is_weighted else None
    stats.set_hidden({"weights": weights} if is_weighted else {})
    assert_array_equal(open_gaps(stats, STARTS), np.nonzero(np.isnan(X)))
    slots = np.ones(16, dtype=np.int32)
    draws, means = [], []
    for _ in range(20_000):
        means.append(stats.draw_hidden(slots, stream))
        draws.append(stats.hidden()["filled"])
    mean, exact = dense(X, regression, covariance, given=given, weights=weights)
    assert_allclose(means, np.broadcast_to(mean, (20_000, 8)), atol=1e-5)
    deviation = np.sqrt(np.diag(exact))
    assert (abs(np.mean(draws, axis=0) - mean) < 5 * deviation / np.sqrt(20_000)).all()
    scale = np.outer(deviation, deviation)
    assert_allclose(np.cov(np.transpose(draws)) / scale, exact / scale, atol=0.05)


# -- the posterior of the labels -------------------------------------------------------


@dataclass(frozen=True)
class WithGap:
    """An emission of which one entry is missing, by quadrature over it."""

    emission: Any
    starts: tuple
    counts_tables = False

    def log_likelihood_by_tables(self, x, y):
        """``{0: log p(y | x)}``."""
        rows = np.array(y, dtype=float)
        d = len(self.emission.mean)
        ((t, c),) = np.argwhere(np.isnan(rows[:, :d]))
        at, weights = np.polynomial.legendre.leggauss(50)
        angles = at * np.pi / 2
        total = []
        for value, weight in zip(np.tan(angles), weights / np.cos(angles) ** 2, strict=True):
            rows[t, c] = value
            if rows.shape[1] > d and t + 1 < len(rows) and t + 1 not in self.starts:
                rows[t + 1, d + c] = value
            lp = self.emission.log_likelihood_by_tables(x, [*map(tuple, rows)])[0]
            lp += np.log(weight)
            # Without its earlier row the entry has the mean and deviation of the column.
            if np.isnan(rows[t]).any():
                lp += norm.logpdf(value, self.emission.centre, self.emission.deviation)[0]
            total.append(lp)
        return {0: logsumexp(total)}

    def stats(self, y):
        """Compiled statistics, with the gap filled."""
        stats = self.emission.stats(y)
        assert len(open_gaps(stats, np.array(self.starts))[0]) == 1
        return stats


AR = Autoregression(1, (0.2,), (1.5,), ((0.8, 0.1),), (1.0, 0.5), 3.0, ((0.7,),))
GAUSSIAN = FullGaussian((0.5, -0.5), 0.5, 4.0, ((1.0, 0.3), (0.3, 0.8)))
# Values, and the earlier row.
AROUND = ((0.3, None), (1.2, 0.3), (None, 1.2), (2.0, None), (-2.4, 2.0))
FIRST = ((0.3, None), (-1.2, 0.3), (None, None), (2.0, None), (1.4, 2.0))
PARTIAL = ((0.1, -1.0), (2.0, 0.5), (1.7, None), (0.2, -0.8), (1.9, 0.7))
MODELS = {
    "between rows": Model(AROUND, WithGap(AR, (0,))),
    "first row": Model(FIRST, WithGap(AR, (0, 2)), (0, 2)),
    "partial row": Model(PARTIAL, WithGap(GAUSSIAN, (0,))),
}
SAMPLERS = [StepwiseGibbs(), BlockedGibbs(3, split_merge_rate=1.0), StickBreakingGibbs()]


@pytest.mark.parametrize(("name", "sampler"), crossed(MODELS, SAMPLERS))
def test_labels_against_enumeration(name, sampler):
    def make_kernel(state):
        return WithDraws(sampler.make_kernel(state), ChainState.draw_hidden)

    assert_exact(MODELS[name], make_kernel, n_sweeps=1000)


@pytest.mark.parametrize("name", MODELS)
def test_entries_that_are_not_drawn_are_noticed(name):
    assert_caught(StepwiseGibbs().make_kernel, MODELS[name], n_sweeps=1000)


# -- chains ----------------------------------------------------------------------------


def ar1(n=1400, phi=0.95):
    rng = np.random.default_rng(0)
    x = np.zeros(n)
    for t in range(1, n):
        x[t] = phi * x[t - 1] + 0.3 * rng.normal()
    return x


def chain_on(emission, X, record=None):
    emission.fit(X)
    settings = ModelSettings(
        emission=emission,
        transitions=HCRPTransitions(),
        sampler=StepwiseGibbs(),
        init="single",
        n_particles=10,
    )
    sequences = Sequences(encode(emission, X, ONE), ONE)
    if record is not None:
        return resume_chain(sequences, settings, record)
    return begin_chain(sequences, settings, np.random.SeedSequence(0))


@pytest.mark.parametrize(
    "emission",
    [
        AutoregressiveNormal(order=2),
        AutoregressiveNormal(order=2, noise="student"),
        NormalInverseWishart(),
    ],
)
def test_chain_resumes_with_its_fillings(emission):
    X = ar1(200).reshape(100, 2)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    chain = chain_on(emission, X)
    for _ in range(5):
        next(chain)
    record = chain.record()
    other = chain_on(emission, X, record)
    for _ in range(5):
        next(chain), next(other)
    assert chain.state.check() is None
    assert_array_equal(chain.state.packed_labels, other.state.packed_labels)
    found, expected = (each.state.emission.hidden() for each in (chain, other))
    assert_array_equal(found["filled"], expected["filled"])
    assert chain.state.log_joint() == other.state.log_joint()
    record["arrays"]["filled"] = record["arrays"]["filled"][1:]
    with pytest.raises(ValueError, match="filled"):
        chain_on(emission, X, record)


def test_entries_that_remain_missing():
    """After the last row, and where nothing is observed for long."""
    X = np.ones((40, 2))
    X[[1, 38, 39]] = np.nan
    X[5:8, 0] = X[12:30, 1] = np.nan
    steps, columns = filled_places(X, ONE, 2)
    assert_array_equal(steps, [1, 1, 5, 6, 7])
    assert_array_equal(columns, [0, 1, 0, 0, 0])
    assert len(filled_places(X, ONE, 2, every=True)[0]) == 5 + 18
    # Two sequences have two shorter runs.
    assert len(filled_places(X, np.array([0, 21]), 2)[0]) == 5 + 18
    assert_array_equal(filled_places(X, ONE, 0)[0], [5, 6, 7, *range(12, 30)])


def test_incomplete_rows_tell_regimes_apart():
    """Two rotations, a tenth of the entries missing."""
    rng = np.random.default_rng(0)
    truth, X = np.arange(1200) // 100 % 2, np.zeros((1200, 2))
    for t in range(1, 1200):
        c, s = 0.98 * np.cos(0.3), 0.98 * np.sin(0.3) * (-1) ** truth[t]
        X[t] = [[c, -s], [s, c]] @ X[t - 1] + 0.3 * rng.normal(size=2)
    X[rng.random(X.shape) < 0.1] = np.nan
    hmm = HCRPHMM(emission="autoregressive", n_burnin=50, n_draws=5, random_state=0).fit(X)
    assert adjusted_rand_score(truth, hmm.labels_) > 0.9


# -- imputation ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_regression():
    """AR(1) of which every seventh value is missing, closed form and fit."""
    rng, phi, n = np.random.default_rng(3), 0.95, 7000
    x = np.zeros(n)
    noise = rng.normal(size=n)
    for t in range(1, n):
        x[t] = phi * x[t - 1] + noise[t]
    at = np.arange(3, n - 1, 7)
    X = x[:, None].copy()
    X[at] = np.nan
    exact = phi / (1 + phi**2) * (x[at - 1] + x[at + 1])
    settings = {"n_burnin": 20, "n_draws": 10, "random_state": 0, "init": "single"}
    hmm = HCRPHMM(emission=AutoregressiveNormal(1), **settings).fit(X)
    return hmm, X, at, x[at], exact, 1 / np.sqrt(1 + phi**2)


def test_gaps_are_filled_from_both_sides(one_regression):
    hmm, X, at, truth, exact, deviation = one_regression
    filled = hmm.impute(X)[at, 0]
    least = np.sqrt(np.mean((exact - truth) ** 2))
    assert np.sqrt(np.mean((filled - truth) ** 2)) < 1.02 * least
    for seed in range(2):
        drawn = hmm.impute(X, method="sample", random_state=seed)[at, 0]
        assert_allclose(np.std(drawn - exact), deviation, rtol=0.07)
        assert_allclose(np.mean(drawn - exact), 0.0, atol=0.1)


def test_partial_rows_are_filled_by_what_they_show():
    """States are told apart by the observed column alone."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=600)
    X = np.array([[-5.0, 3.0], [5.0, -3.0]])[truth] + rng.normal(size=(600, 2))
    X[::10, 1] = np.nan
    hmm = HCRPHMM(emission="gaussian", n_burnin=20, n_draws=5, random_state=0).fit(X)
    assert adjusted_rand_score(truth, hmm.labels_) > 0.99
    assert_allclose(hmm.impute(X)[::10, 1], np.array([3, -3])[truth[::10]], atol=0.7)


def test_parts_of_mixed_data_are_filled_alike(one_regression):
    _, X, *_ = one_regression
    X = X[:700]
    words = np.where(np.arange(700) % 2, "a", "b").astype(object)
    words[[10, 50]] = None
    settings = {"n_burnin": 10, "n_draws": 3, "random_state": 0, "init": "single"}
    alone = HCRPHMM(emission=AutoregressiveNormal(1), **settings).fit(X)
    parts = [("word", "hcrp", [0]), ("x", AutoregressiveNormal(1), [1])]
    mixed = HCRPHMM(emission=ProductEmission(parts), **settings)
    data = np.column_stack([words, X.astype(object)])
    mixed.fit(data)
    for method in "expectation", "sample":
        filled = mixed.impute(data, method=method)
        assert set(filled[[10, 50], 0]) <= {"a", "b"}
        assert np.isfinite(filled[:, 1].astype(float)).all()
    gaps = np.isnan(X[:, 0])
    filled = mixed.impute(data)[gaps, 1].astype(float)
    assert_allclose(filled, alone.impute(X)[gaps, 0], atol=0.5)


# -- what is counted and paid for ------------------------------------------------------


def test_rows_after_a_filled_entry_count_unless_they_see_a_long_run():
    X = np.random.default_rng(0).normal(size=(60, 1))
    X[20:32] = X[33] = X[40] = np.nan
    starts = np.array([0, 41])
    emission = AutoregressiveNormal(order=2).fit_sequences(X, starts)
    sequences = Sequences(encode(emission, X, starts), starts)
    # The first rows of a sequence, the last row of one, what is in the run or after it.
    # Row 33 is filled, but row 31 is not, which it looks back at.
    expected = [0, 1, *range(20, 34), 40, 41, 42]
    assert_array_equal(np.flatnonzero(_lost_rows(emission, sequences)), expected)


def test_similar_rows_are_sought_once_for_all_draws(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[[3, 20], [0, 1]] = np.nan
    hmm = HCRPHMM(emission="gaussian", n_burnin=2, n_draws=4, random_state=0).fit(X)
    calls = []

    def counted(*args):
        calls.append(len(args[0]))
        return first_fillings(*args)

    monkeypatch.setattr(_gaps, "first_fillings", counted)
    hmm.impute(X)
    assert calls == [50]


def test_first_fillings_are_those_of_the_most_similar_row():
    """Two levels; columns have other units, and of one nothing is observed."""
    rng = np.random.default_rng(0)
    units = np.array([1, 1e3, 1e-3, 1])
    X = units * (rng.integers(2, size=(700, 1)) + 0.01 * rng.normal(size=(700, 4)))
    truth = X.copy()
    X[rng.random(X.shape) < 0.2] = X[:, 3] = np.nan
    alone = np.isnan(X).all(axis=1)
    X[alone, 0] = truth[alone, 0]
    places = filled_places(X, ONE, 0)
    filled = first_fillings(X, ONE, 0, *places)
    is_seen = places[1] < 3
    error = abs(filled - truth[places]) / units[places[1]]
    assert (error[is_seen] < 0.1).mean() > 0.99
    assert not filled[~is_seen].any()
    for column in range(3):
        assert set(filled[places[1] == column]) <= set(X[:, column])
    with pytest.raises(KeyboardInterrupt):
        first_fillings(X, ONE, 0, *places, lambda: True)


def test_rows_without_common_columns_are_filled_by_different_ones():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[::2, 0] = X[1::2, 1] = np.nan
    places = filled_places(X, ONE, 0)
    assert len(np.unique(first_fillings(X, ONE, 0, *places))) > 55


def test_first_fillings_need_little_memory():
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    X[::2, 3] = np.nan
    places = filled_places(X, ONE, 0)
    tracemalloc.start()
    first_fillings(X, ONE, 0, *places)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_one_thread_is_for_a_while():
    """Of all libraries, also those that scikit-learn's k-means uses."""
    from sklearn.cluster import KMeans

    KMeans(2, n_init=1).fit(np.arange(10.0)[:, None])
    with threadpool_limits(2):
        before = [each["num_threads"] for each in threadpool_info()]
        assert max(before) == 2
        with one_thread():
            assert {each["num_threads"] for each in threadpool_info()} == {1}
        assert [each["num_threads"] for each in threadpool_info()] == before
