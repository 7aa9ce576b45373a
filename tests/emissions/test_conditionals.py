"""Missing entries of autoregressions given the rows on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal, ProductEmission, _conditionals
from skihmm.emissions._conditionals import draw_entries, expected_entries, find_gaps

STARTS = np.array([0, 9])


@pytest.fixture
def tiny():
    """Rows with partial ones, gaps that touch, and two sequences; states' parameters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 2))
    for t, c in [(1, 0), (4, 0), (4, 1), (5, 1), (7, 0), (8, 1), (9, 0), (12, 1)]:
        X[t, c] = np.nan
    coefficients = 0.6 * rng.normal(size=(3, 2, 5))
    factor = rng.normal(size=(3, 2, 2))
    covariances = factor @ factor.transpose(0, 2, 1) + 0.3 * np.eye(2)
    return X, coefficients, covariances


def dense(X, path, coefficients, covariances, order=2):
    """Mean and covariance of the missing entries, from the Gaussian of all entries."""
    n, d = X.shape
    # L (all entries) = intercepts + noise.
    L, shift, noise = np.eye(n * d), np.zeros(n * d), np.eye(n * d)
    for t in range(n):
        if t - STARTS[t >= STARTS][-1] < order:
            continue
        here = slice(t * d, (t + 1) * d)
        for lag in range(1, order + 1):
            block = coefficients[path[t]][:, (lag - 1) * d : lag * d]
            L[here, (t - lag) * d : (t - lag + 1) * d] = -block
        shift[here] = coefficients[path[t]][:, -1]
        noise[here, here] = covariances[path[t]]
    mean = np.linalg.solve(L, shift)
    covariance = np.linalg.solve(L, np.linalg.solve(L, noise).T)
    y = X.ravel()
    gap = np.isnan(y)
    gain = np.linalg.solve(covariance[np.ix_(~gap, ~gap)], covariance[np.ix_(~gap, gap)])
    return (
        mean[gap] + gain.T @ (y - mean)[~gap],
        covariance[np.ix_(gap, gap)] - gain.T @ covariance[np.ix_(~gap, gap)],
    )


def test_entries_have_the_exact_conditional(tiny):
    X, *parameters = tiny
    gaps = find_gaps(X, STARTS, 2)
    assert_array_equal(gaps.steps, [*range(1, 14), 14])
    path = np.random.default_rng(1).integers(3, size=16)
    mean, covariance = dense(X, path, *parameters)
    labels = path[gaps.steps]
    assert_allclose(expected_entries(gaps, labels[:, None], *parameters), mean, rtol=1e-6)
    rng = np.random.default_rng(2)
    draws = np.array(
        [draw_entries(gaps, labels, *parameters, rng) for _ in range(20_000)]
    )
    deviation = np.sqrt(np.diag(covariance))
    assert (abs(draws.mean(axis=0) - mean) < 5 * deviation / np.sqrt(20_000)).all()
    assert_allclose(
        np.cov(draws.T) / np.outer(deviation, deviation),
        covariance / np.outer(deviation, deviation),
        atol=0.05,
    )


@pytest.mark.parametrize("most_rows", [1, 200_000])
def test_expectations_average_over_paths(tiny, most_rows, monkeypatch):
    monkeypatch.setattr(_conditionals, "_MOST_ROWS", most_rows)
    monkeypatch.setattr(_conditionals, "_MOST_PAIRS", 50 * most_rows)
    X, *parameters = tiny
    gaps = find_gaps(X, STARTS, 2)
    paths = np.random.default_rng(1).integers(3, size=(16, 7))
    paths[9:] = paths[9:, :1]  # of one gap all paths are equal
    expected = np.mean([dense(X, path, *parameters)[0] for path in paths.T], axis=0)
    found = expected_entries(gaps, paths[gaps.steps], *parameters)
    assert_allclose(found, expected, rtol=1e-6)


def test_singular_noise(tiny):
    X, coefficients, covariances = tiny
    covariances[:] = 1e-18
    gaps = find_gaps(X, STARTS, 2)
    labels = np.zeros(len(gaps.steps), dtype=int)
    values = draw_entries(
        gaps, labels, coefficients, covariances, np.random.default_rng(0)
    )
    assert np.isfinite(values).all()


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
