"""Rows of which a part is missing: what is observed of them weighs states."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal, multivariate_t

from skihmm import HCRPHMM
from skihmm._using.decoding import frozen_model
from skihmm.emissions import (
    AutoregressiveNormal,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.emissions._encoding import encode
from skihmm.metrics import ParticleFilterScorer

RNG = np.random.default_rng(0)
STATES = np.repeat([0, 1, 0, 1, 0], 24)
ROOT = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.3, 0.5, 0.7]])
X = np.array([[0.0, 0, 0], [3, -2, 1]])[STATES] + RNG.normal(size=(120, 3)) @ ROOT.T
EMISSIONS = {
    "gaussian": NormalInverseWishart(),
    "autoregression": AutoregressiveNormal(2),
    "student": AutoregressiveNormal(1, noise="student"),
    "no lags": AutoregressiveNormal(0, noise="normal"),
    "regression": AutoregressiveNormal(0, noise="student", input_features=[3]),
}


def data_of(name, values):
    """Values, and where it takes one an input."""
    return np.column_stack([values, np.sin(np.arange(len(values)))])[
        :, : 3 + (name == "regression")
    ]


def fitted(name, **options):
    settings = {"n_burnin": 20, "n_draws": 2, "random_state": 0, **options}
    hmm = HCRPHMM(emission=EMISSIONS[name], transitions="hcrp", **settings)
    return hmm.fit(data_of(name, X))


def log_densities(hmm, rows, lengths=None):
    sequences = hmm._fitted.encode(rows, lengths=lengths)
    return frozen_model(hmm._fitted.selected, sequences, hmm.emission_).log_densities()


def over_missing(evaluate, rows, t, columns, n=160):
    """log of the integral over entries of row t; evaluate takes rows for each of their values."""
    at, weights = np.polynomial.legendre.leggauss(n)
    values = 4 * np.tan(at * np.pi / 2)
    logs = np.log(weights * 2 * np.pi / np.cos(at * np.pi / 2) ** 2)
    chosen = np.array([*product(range(n), repeat=len(columns))])
    filled = np.repeat(rows[None], len(chosen), axis=0)
    filled[:, t, columns] += values[chosen]
    return logsumexp((np.array([*evaluate(filled)]).T + logs[chosen].sum(axis=1)).T, axis=0)


@pytest.mark.parametrize("name", EMISSIONS)
def test_density_of_the_observed_part_is_the_integral_over_the_rest(name):
    hmm = fitted(name)
    for columns, n in (([0], 160), ([1], 160), ([2], 160), ([0, 1], 60)):
        rows = data_of(name, X[20:28])
        complete = log_densities(hmm, rows)
        observed = rows.copy()
        observed[5, columns] = np.nan
        found = log_densities(hmm, observed)

        def densities(filled):
            # Each a sequence of its own.
            return log_densities(hmm, np.concatenate(filled), [8] * len(filled))[5::8]

        expected = over_missing(densities, rows, 5, columns, n)
        assert_allclose(found[5], expected, atol=1e-5)
        # Others are as before, bit for bit; those that look back at the row say nothing.
        order = getattr(EMISSIONS[name], "order", 0)
        others = [t for t in range(8) if not 5 <= t <= 5 + order]
        assert_array_equal(found[others], complete[others])
        assert_array_equal(found[6 : 6 + order], 0.0)


def test_density_of_a_gaussian_is_the_marginal_of_a_multivariate_t():
    emission = NormalInverseWishart(0.3, 0.5, 6.0, np.diag([1.0, 2.0, 0.5]))
    hmm = HCRPHMM(emission=emission, n_burnin=20, n_draws=1, random_state=0).fit(X)
    rows = np.where(RNG.random((40, 3)) < 0.4, np.nan, 2 * X[:40])
    found = log_densities(hmm, rows)
    encoded = encode(hmm.emission_, X, np.zeros(1, dtype=int), noise=None)
    assert_array_equal(encoded, X)
    for k in range(hmm.n_states_ + 1):
        mine = X[hmm.labels_ == k]
        n, centre = len(mine), mine.mean(axis=0) if len(mine) else np.zeros(3)
        off, spread = centre - 0.3, mine - centre
        scale = np.diag([1.0, 2.0, 0.5]) + spread.T @ spread
        scale += 0.5 * n / (0.5 + n) * np.outer(off, off)
        dof = 6.0 + n - 3 + 1
        mean = (0.5 * 0.3 + n * centre) / (0.5 + n)
        shape = scale * (1.5 + n) / (0.5 + n) / dof
        for row, logs in zip(rows, found, strict=True):
            o = np.flatnonzero(~np.isnan(row))
            law = multivariate_t(mean[o], shape[np.ix_(o, o)], dof) if len(o) else None
            expected = law.logpdf(row[o]) if law else 0.0
            assert_allclose(logs[k], expected, atol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "autoregression"])
def test_probabilities_of_states_against_enumeration(name):
    hmm = fitted(name, n_draws=1)
    rows = X[22:28].copy()
    rows[1, 0] = rows[3, 1:] = rows[4] = np.nan
    model = frozen_model(hmm._fitted.selected, hmm._fitted.encode(rows), hmm.emission_)
    start, step = (np.log(p) for p in model.transition_matrix())
    logs = model.log_densities()
    assert (logs[3] != 0).all() == (name == "gaussian")
    paths = np.array(list(product(range(logs.shape[1]), repeat=len(rows))))
    lp = start[paths[:, 0]] + step[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    lp += logs[np.arange(len(rows)), paths].sum(axis=1)
    weights = np.exp(lp - logsumexp(lp))
    expected = [
        [weights[paths[:, t] == k].sum() for k in range(logs.shape[1])] for t in range(len(rows))
    ]
    assert_allclose(hmm.predict_proba(rows), expected, atol=1e-9)
    score = ParticleFilterScorer(adaptive=False).score_samples(hmm, rows)
    assert_allclose(score.sum(), logsumexp(lp), atol=1e-9)
    order = getattr(EMISSIONS[name], "order", 0)
    counts = ~np.isnan(rows).all(axis=1) & (np.arange(len(rows)) >= order)
    if name == "gaussian":
        assert_allclose(hmm.score(rows), logsumexp(lp) / counts.sum(), atol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "no lags", "regression"])
def test_particles_take_what_fills_a_partial_row(name):
    """p(observed part, next rows) = the integral over the missing part."""
    hmm = fitted(name, n_draws=1)
    rows = data_of(name, np.array([[12.0, -1, 10], [13, -2, 9], [11, 0, 11]]))

    def log_p(values, seed=0):
        scorer = ParticleFilterScorer(50, adaptive=True, random_state=seed)
        return scorer.score_samples(hmm, values).sum()

    observed = rows.copy()
    observed[0, 1] = np.nan
    # (Particles of one history have one draw in common.)
    found = [log_p(observed, seed) for seed in range(600)]
    # The particles of complete rows draw their states, too.
    expected = [
        over_missing(partial(map, partial(log_p, seed=seed)), rows, 0, [1], 80) for seed in range(8)
    ]
    shares, others = np.exp(found - logsumexp(found)), np.exp(expected - logsumexp(found))
    error = np.hypot(shares.std() / np.sqrt(600), others.std(ddof=1) / np.sqrt(8))
    assert abs(shares.mean() - others.mean()) < 4 * error


@pytest.mark.parametrize(
    "emission",
    [
        NormalInverseWishart(resolution=None, subject_feature=3),
        AutoregressiveNormal(0, noise="student", subject_feature=3),
    ],
)
def test_new_subjects_are_scored_by_what_is_observed(emission):
    """p(observed entries of two rows) = the integral over the missing ones."""
    who = np.repeat([0, 1], 60)
    hmm = HCRPHMM(emission=emission, transitions="hcrp", n_burnin=20, n_draws=1)
    data = np.column_stack([X + who[:, None], who])
    hmm.set_params(random_state=0).fit(data, groups=who)
    rows = np.column_stack([X[22:24], [9, 9]])

    seeds = iter(range(10**6))

    def log_p(values):
        scorer = ParticleFilterScorer(300, random_state=next(seeds))
        return scorer.score_samples(hmm, values).sum()

    for columns, n in (([1], 60), ([0, 2], 16)):
        observed = rows.copy()
        observed[0, columns] = np.nan
        found = logsumexp([log_p(observed) for _ in range(150)]) - np.log(150)
        log_ps = partial(map, log_p)
        each = [over_missing(log_ps, rows, 0, columns, n) for _ in range(4)]
        assert_allclose(found, logsumexp(each) - np.log(4), atol=0.25)


def test_scores_count_partial_rows():
    hmm = fitted("gaussian")
    rows = X[:30].copy()
    rows[::3, 1] = np.nan
    for adaptive in (True, False):
        scorer = ParticleFilterScorer(adaptive=adaptive)
        scores = scorer.score_samples(hmm, rows)
        assert (scores != 0).all()


# -- imputation ------------------------------------------------------------------------


def chain(rng, n, dwell):
    states = np.zeros(n, int)
    for t in range(1, n):
        states[t] = (states[t - 1] + (rng.random() < 1 / dwell)) % 2
    return states


def conditional_means(values, lost, means, covariance, dwell):
    """Of lost entries given all others, under the true parameters of two states."""
    logs, filled = np.zeros((len(values), 2)), np.zeros((2, *values.shape))
    for pattern in np.unique(lost, axis=0):
        m, o = np.flatnonzero(pattern), np.flatnonzero(~pattern)
        at = np.flatnonzero((lost == pattern).all(axis=1))
        seen = values[np.ix_(at, o)]
        within = covariance[np.ix_(o, o)]
        gain = np.linalg.solve(within, covariance[np.ix_(o, m)])
        for k in range(2):
            logs[at, k] = multivariate_normal(means[k, o], within).logpdf(seen)
            filled[np.ix_([k], at, m)] = means[k, m] + (seen - means[k, o]) @ gain
    step = np.log([[1 - 1 / dwell, 1 / dwell], [1 / dwell, 1 - 1 / dwell]])
    forward, backward = logs.copy(), np.zeros_like(logs)
    for t in range(1, len(logs)):
        forward[t] += logsumexp(forward[t - 1][:, None] + step, axis=0)
    for t in range(len(logs) - 2, -1, -1):
        backward[t] = logsumexp(step + logs[t + 1] + backward[t + 1], axis=1)
    probs = softmax(forward + backward, axis=1)
    return np.einsum("tk,ktc->tc", probs, filled)


def rmse(filled, values, lost):
    return np.sqrt(np.mean((filled - values)[lost] ** 2))


@pytest.mark.parametrize(
    ("n_columns", "share", "dwell"), [(2, 0.06, 60), (2, 0.3, 5), (3, 0.3, 60), (3, 0.06, 5)]
)
def test_gaussian_gaps_are_filled_as_by_the_true_law(n_columns, share, dwell):
    rng = np.random.default_rng(n_columns)
    states, root = chain(rng, 1200, dwell), ROOT[:n_columns, :n_columns]
    means = np.array([[0.0, 0, 0], [3, -2, 2]])[:, :n_columns]
    values = means[states] + rng.normal(size=(1200, n_columns)) @ root.T
    lost = rng.random(values.shape) < share
    lost[lost.all(axis=1)] = False
    data = np.where(lost, np.nan, values)
    hmm = HCRPHMM(emission="gaussian", n_burnin=100, n_draws=20, random_state=0)
    filled = hmm.fit(data).impute(data)
    best = conditional_means(values, lost, means, root @ root.T, dwell)
    assert rmse(filled, values, lost) < 1.15 * rmse(best, values, lost)
    drawn = hmm.impute(data, method="sample", random_state=0)
    assert 1.2 < rmse(drawn, values, lost) / rmse(best, values, lost) < 1.6


@pytest.mark.parametrize("share", [0.06, 0.3])
def test_gaps_of_an_autoregression_are_filled_as_by_the_true_law(share):
    """Two rotations, and the conditional mean by the Gaussian of all entries."""
    rng = np.random.default_rng(0)
    states, X = chain(rng, 800, 60), np.zeros((800, 2))
    c, s = 0.95 * np.cos(0.3), 0.95 * np.sin(0.3)
    steps = np.array([[[c, -s], [s, c]], [[c, s], [-s, c]]])
    root = ROOT[:2, :2]
    precision = np.zeros((1600, 1600))
    inverse = np.linalg.inv(root @ root.T)
    for t in range(1, 800):
        X[t] = steps[states[t]] @ X[t - 1] + root @ rng.normal(size=2)
        both = np.hstack([-steps[states[t]], np.eye(2)])
        here = slice(2 * t - 2, 2 * t + 2)
        precision[here, here] += both.T @ inverse @ both
    lost = rng.random(X.shape) < share
    lost[0] = lost[lost.all(axis=1)] = False
    gap, best = lost.ravel(), X.ravel().copy()
    known = precision[np.ix_(gap, ~gap)] @ best[~gap]
    best[gap] = -np.linalg.solve(precision[np.ix_(gap, gap)], known)
    data = np.where(lost, np.nan, X)
    emission = AutoregressiveNormal(1)
    hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    filled = hmm.fit(data).impute(data)
    assert rmse(filled, X, lost) < 1.15 * rmse(best.reshape(X.shape), X, lost)


# -- products --------------------------------------------------------------------------


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("emission", ["gaussian", AutoregressiveNormal(1)])
def test_gaps_of_a_part_of_a_product_in_any_order(order, emission):
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(400, 3)) * 0.1 + np.array([100.0, 200.0, 300.0])
    z = rng.normal(size=400)
    values = np.c_[plain, 1000 + z, 2000 + z + 0.05 * rng.normal(size=400)]
    data = values.copy()
    data[::10, 4] = data[5::20, 3] = data[3::20, 1] = np.nan
    parts = [("a", NormalInverseGamma(), [0, 1, 2]), ("b", emission, [3, 4])]
    parts = ProductEmission([parts[i] for i in order])
    hmm = HCRPHMM(emission=parts, n_burnin=30, n_draws=10, random_state=0).fit(data)
    for method in ("expectation", "sample"):
        # (The first row has no earlier one.)
        error = np.abs(hmm.impute(data, method=method) - values)[1:]
        assert error[:, 3:].max() < 0.4
        assert error[:, 1].max() < 0.8
