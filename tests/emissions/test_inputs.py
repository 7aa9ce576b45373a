"""Emissions with inputs: a walk against the same emission over its steps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skihmm import HCRPHMM
from skihmm.emissions import ConjugateEmission, ProductEmission
from skihmm.emissions._encoding import encode
from skihmm.metrics import ParticleFilterScorer
from skihmm.testing import check_emission

NOISE = 0.5


class Step(ConjugateEmission):
    """One column, Gaussian with standard normal means and a known variance."""

    def _step(self, y):
        return y[0]

    def _posterior(self, stats):
        precision = 1.0 + stats[..., 0] / NOISE
        return stats[..., 1] / NOISE / precision, 1.0 / precision

    def empty(self):
        return np.zeros(3)

    def add(self, stats, y):
        return stats + self._step(y) ** np.arange(3)

    def remove(self, stats, y):
        return stats - self._step(y) ** np.arange(3)

    def log_predictive(self, stats, y):
        mean, variance = self._posterior(stats)
        variance = variance + NOISE
        off = self._step(y) - mean
        return -0.5 * (off**2 / variance + np.log(2 * np.pi * variance))

    def log_marginal(self, stats):
        n, _, squares = stats.T
        mean, variance = self._posterior(stats)
        fit = squares / NOISE - mean**2 / variance - np.log(variance)
        return -0.5 * (fit + n * np.log(2 * np.pi * NOISE))

    def draw_parameters(self, stats, generator):
        mean, variance = self._posterior(stats)
        return [generator.normal(mean, np.sqrt(variance))]

    def log_density(self, parameters, y):
        off = self._step(y) - parameters[:, 0]
        return -0.5 * (off**2 / NOISE + np.log(2 * np.pi * NOISE))

    def emit(self, parameters, generator):
        return [generator.normal(parameters[0], np.sqrt(NOISE))]

    def mean(self, stats):
        return [self._posterior(stats)[0]]


class Walk(Step):
    """The same for the difference from the value before, at first from zero."""

    n_inputs = 1

    def _step(self, y):
        return y[0] - y[1]

    def next_inputs(self, row):
        return [0.0] if row is None else row[:1]

    def emit(self, parameters, generator, inputs):
        return inputs + super().emit(parameters, generator)

    def mean(self, stats, inputs):
        return inputs + super().mean(stats)


class Curve(Walk):
    """The same for the second difference."""

    n_inputs = 2

    def _step(self, y):
        return y[0] - 2.0 * y[1] + y[2]

    def next_inputs(self, row):
        return [0.0, 0.0] if row is None else row[:2]

    def emit(self, parameters, generator, inputs):
        return 2.0 * inputs[:1] - inputs[1:] + Step.emit(self, parameters, generator)

    def mean(self, stats, inputs):
        return 2.0 * inputs[:1] - inputs[1:] + Step.mean(self, stats)


class Turn(Walk):
    """Zeros and ones, of which one in five differs from the value before."""

    def emit(self, parameters, generator, inputs):
        return abs(inputs - (generator.random() < 0.2))

    def mean(self, stats, inputs):
        return 0.2 + 0.6 * inputs


# Whole numbers, whose sums and differences are exact.
N = 40
GROUPS = np.repeat([0, 1], [25, 15])
STARTS = np.array([0, 25])


def walk_of(steps):
    return np.concatenate([np.cumsum(part, axis=0) for part in np.split(steps, [25])])


def steps_of(X):
    before = np.vstack([[0.0], X[:-1]])
    before[STARTS] = 0.0
    return X - before


def make_steps(seed):
    rng = np.random.default_rng(seed)
    levels = np.repeat(rng.permutation([-4.0, 0.0, 5.0, -4.0, 5.0]), N // 5)
    return (levels + rng.integers(-1, 2, N))[:, None]


def fit(emission, X, **options):
    hmm = HCRPHMM(
        **{"n_burnin": 5, "n_draws": 4, "n_particles": 8, "init": "particle_filter"} | options,
        thin=1,
        store_states=True,
        emission=emission,
        random_state=3,
    )
    return hmm.fit(X, groups=GROUPS)


@pytest.fixture(scope="module")
def pair():
    """Models of a walk and of its steps."""
    steps = make_steps(0)
    return fit(Walk(), walk_of(steps)), fit(Step(), steps)


@pytest.mark.statistical
@pytest.mark.slow
def test_laws():
    X = walk_of(make_steps(1)) / 4.0
    X[[7, 30]] = np.nan
    check_emission(Walk(), X)


def test_rows(pair):
    X = walk_of(make_steps(0))
    rows = encode(pair[0].emission_, X, STARTS)
    assert_array_equal(rows[:, :1], X)
    assert_array_equal(rows[:, :1] - rows[:, 1:], make_steps(0))
    # Two sequences of one row each, of which the first goes on from another row.
    before = np.array([[3.0, 1.0]])
    rows = encode(pair[0].emission_, [[5.0], [6.0]], np.array([0, 1]), before)
    assert_array_equal(rows, [[5.0, 3.0], [6.0, 0.0]])


@pytest.mark.parametrize("sampler", ["stepwise", "beam", "blocked"])
def test_chains(sampler, global_random_seed):
    steps = make_steps(global_random_seed)
    walk = fit(Walk(), walk_of(steps), sampler=sampler)
    other = fit(Step(), steps, sampler=sampler)
    assert other.n_states_ > 1
    assert_array_equal(walk.draws_.states, other.draws_.states)


def test_partial_fit(global_random_seed):
    steps, new = make_steps(global_random_seed), GROUPS + 10
    walk = fit(Walk(), walk_of(steps)).partial_fit(walk_of(steps), groups=new)
    other = fit(Step(), steps).partial_fit(steps, groups=new)
    assert_array_equal(walk.labels_, other.labels_)


@pytest.mark.parametrize("start", ["new", "continue"])
@pytest.mark.parametrize("adaptive", [True, False])
def test_scores(pair, start, adaptive):
    walk, other = pair
    X = walk_of(make_steps(2))
    steps = steps_of(X)
    if start == "continue":
        steps[0] -= walk_of(make_steps(0))[-1]
    score = ParticleFilterScorer(adaptive=adaptive, start=start, random_state=0)
    assert_allclose(score(walk, X, groups=GROUPS), score(other, steps, groups=GROUPS), rtol=1e-12)


def test_simulation(pair):
    walk, other = pair
    X, states = walk.sample(30, random_state=1)
    steps, same_states = other.sample(30, random_state=1)
    assert_array_equal(states, same_states)
    assert_allclose(X, np.cumsum(steps, axis=0), atol=1e-9)


def test_forecasts(pair):
    walk, other = pair
    X = walk_of(make_steps(2))
    following = walk.predict_next(X, 3, groups=GROUPS)
    steps = other.predict_next(steps_of(X), 3, groups=GROUPS)
    found = following.sample(50, random_state=1)
    expected = X[-1] + np.cumsum(steps.sample(50, random_state=1), axis=1)
    assert_allclose(found, expected, atol=1e-9)

    expected = X[-1] + np.cumsum(steps.mean(), axis=0)
    error = following.sample(1000, random_state=0).std(axis=0) / np.sqrt(1000)
    assert_allclose(following.mean()[0], expected[0], rtol=1e-12)
    assert (np.abs(following.mean() - expected) < 4.5 * error).all()
    with pytest.raises(ValueError, match="looks back"):
        following.log_prob(X[:3])

    value = X[-1:] + 4.0
    assert_allclose(
        walk.predict_next(X, groups=GROUPS).log_prob(value),
        other.predict_next(steps_of(X), groups=GROUPS).log_prob([[4.0]]),
        rtol=1e-12,
    )


def test_forecasts_after_missing_rows():
    X = walk_of(make_steps(1))
    words = (np.arange(N) % 3)[:, None]
    emission = ProductEmission([("a", Walk(), [0]), ("b", "hcrp", [1])])
    X = np.hstack([X, words]).astype(float)
    hmm = fit(emission, X)
    X[-2:, 0] = np.nan
    future = hmm.predict_next(X, 2, groups=GROUPS)
    filled = hmm.impute(
        np.vstack([X, np.full((2, 2), np.nan)]),
        groups=np.append(GROUPS, GROUPS[[-1, -1]]),
        random_state=0,
    )
    assert_allclose(future.mean()[:, 0], filled[-2:, 0], atol=0.4)
    assert_array_equal(future.proba(1)[:, :-1].argmax(axis=1), filled[-2:, 1])


@pytest.mark.parametrize("method", ["expectation", "sample"])
def test_imputation_walks_in_time(pair, method):
    walk, other = pair
    X = walk_of(make_steps(2))
    # The beginnings and ends of sequences, one gap and several in a row.
    X[[0, 5, 11, 12, 13, 24, 25, 39]] = np.nan
    options = {"method": method, "groups": GROUPS, "random_state": 2}
    steps = steps_of(X)
    steps[25] = X[25]
    filled = walk.impute(X, **options)
    gaps = np.isnan(X[:, 0])
    assert_array_equal(filled[~gaps], X[~gaps])
    if method == "expectation":
        expected = other.impute(steps, **options)
        error = abs(steps_of(filled) - expected)[gaps, 0]
        # Later rows of a gap are averages of 1000 walks.
        is_exact = ~np.isin(np.flatnonzero(gaps), [12, 13])
        assert error[is_exact].max() < 1e-9
        assert error.max() < 0.6
    else:
        # Steps after a gap are missing too, but there is nothing to draw for them.
        again = walk.impute(X, **options | {"random_state": 3})
        assert (filled[gaps] != again[gaps]).all()
        assert np.abs(steps_of(filled)[gaps]).max() < 12.0


def test_equal_values_in_a_gap_are_not_known():
    X = np.ones((N, 1))
    hmm = fit(Turn(), X, n_draws=1)
    X[5:8] = np.nan
    filled = hmm.impute(X, groups=GROUPS)[5:8, 0]
    assert_allclose(filled, [0.8, 0.68, 0.608], atol=0.06)


def test_two_lags(pair):
    other = pair[1]
    curve = fit(Curve(), walk_of(walk_of(make_steps(0))))
    assert_array_equal(curve.labels_, other.labels_)
    X, _ = curve.sample(30, random_state=1)
    steps, _ = other.sample(30, random_state=1)
    assert_allclose(X, np.cumsum(np.cumsum(steps, axis=0), axis=0), atol=1e-9)
    X = walk_of(walk_of(make_steps(2)))
    X[[5, 8, 9, 27]] = np.nan
    steps, gaps = steps_of(steps_of(X)), np.isnan(X)
    filled = curve.impute(X, groups=GROUPS)
    expected = other.impute(steps, groups=GROUPS)
    error = abs(steps_of(steps_of(filled)) - expected)[gaps]
    # Row 9 is an average of 1000 walks.
    assert error[[0, 1, 3]].max() < 1e-9
    assert error[2] < 1.0


def test_product():
    steps = make_steps(4)
    words = (np.arange(N) % 3)[:, None]

    def product(emission):
        parts = [("a", "hcrp", [1]), ("b", emission, [0]), ("c", "gaussian", [2])]
        return ProductEmission(parts)

    def data(column):
        return np.hstack([column, words, words + steps])

    walk, other = (
        fit(product(emission), data(column))
        for emission, column in ((Walk(), walk_of(steps)), (Step(), steps))
    )
    assert_array_equal(walk.labels_, other.labels_)
    rows = encode(walk.emission_, data(walk_of(steps)), STARTS)
    assert_array_equal(rows[:, 1:2] - rows[:, 3:], steps)
    X, _ = walk.sample(20, random_state=0)
    expected, _ = other.sample(20, random_state=0)
    assert_allclose(X[:, 0], np.cumsum(expected[:, 0]), atol=1e-9)
    assert_array_equal(X[:, 1:], expected[:, 1:])
    assert_allclose(
        walk.score(data(walk_of(steps)), groups=GROUPS),
        other.score(data(steps), groups=GROUPS),
        rtol=1e-12,
    )
    future = walk.predict_next(data(walk_of(steps)), 3, groups=GROUPS)
    same = other.predict_next(data(steps), 3, groups=GROUPS)
    assert_allclose(future.proba(1), same.proba(1))
    assert np.isnan(future.mean()[:, 1]).all()
    # Only the walk needs samples.
    assert_allclose(future.mean()[:, 2], same.mean()[:, 2], rtol=1e-12)
    X = walk_of(steps)
    X[[5, 6]] = np.nan
    gaps = [data(X), data(steps_of(X))]
    for rows in gaps:
        rows[[5, 6], 2] = np.nan
    filled = walk.impute(gaps[0], groups=GROUPS), other.impute(gaps[1], groups=GROUPS)
    assert_allclose(filled[0][:, 2], filled[1][:, 2], rtol=1e-12)
