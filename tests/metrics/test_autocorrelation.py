"""Autocorrelation time against its definition and against processes where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from skihmm.metrics import autocorrelation_time


def by_definition(x, max_lag):
    """Lag by lag."""
    n, mean = len(x), np.mean(x)
    variance = sum((value - mean) ** 2 for value in x) / n
    total = 0.5
    for lag in range(1, min(max_lag, n - 1) + 1):
        products = sum((x[i] - mean) * (x[i + lag] - mean) for i in range(n - lag))
        total += products / ((n - lag) * variance)
    return total


def autoregression(rng, rho, n):
    return signal.lfilter([1.0], [1.0, -rho], rng.normal(size=n + 5000))[5000:]


@pytest.mark.parametrize("max_lag", [1, 7, 200])
def test_definition(global_random_seed, max_lag):
    x = np.random.default_rng(global_random_seed).normal(size=60).cumsum()
    expected = by_definition(x.tolist(), max_lag)
    found = autocorrelation_time(x, max_lag=max_lag)
    assert type(found) is float
    assert found == pytest.approx(expected, rel=1e-10)
    assert autocorrelation_time(x.tolist(), max_lag) == found


@pytest.mark.statistical
@pytest.mark.parametrize("rho", [-0.7, -0.5, 0.0, 0.5, 0.9, 0.98])
def test_autoregressions(rho):
    """The autocorrelation at lag t is rho^t."""
    x = autoregression(np.random.default_rng(0), rho, 400_000)
    expected = 0.5 + rho / (1 - rho)
    # (What five lags leave out of an alternating sum is half the next term.)
    found = autocorrelation_time(x, max_lag="auto")
    assert found == pytest.approx(expected, rel=0.08, abs=max(0, -rho) ** 6 / 1.5)
    assert autocorrelation_time(x) == pytest.approx(expected, rel=0.15, abs=0.15)


def test_unit_and_shift_do_not_matter(global_random_seed):
    x = autoregression(np.random.default_rng(global_random_seed), 0.7, 3000)
    for max_lag in (50, "auto"):
        expected = autocorrelation_time(x, max_lag)
        assert autocorrelation_time(1e-6 * x - 40, max_lag) == pytest.approx(expected)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [3.0] * 10])
@pytest.mark.parametrize("max_lag", [1000, "auto"])
def test_nothing_to_tell(values, max_lag):
    assert np.isnan(autocorrelation_time(values, max_lag))


@pytest.mark.parametrize(
    ("values", "max_lag", "message"),
    [
        ([[1.0, 2.0]], 10, r"values has shape \(1, 2\)"),
        ([1.0, np.nan, 2.0], 10, "values contains NaN"),
        ([1.0, 2.0, 1.0], 0, "max_lag=0"),
        ([1.0, 2.0, 1.0], "all", "max_lag='all'.*'auto'"),
    ],
)
def test_bad_input_is_named(values, max_lag, message):
    with pytest.raises(ValueError, match=message):
        autocorrelation_time(values, max_lag)
