"""R-hat and effective sample sizes: by hand, on known processes, and as in ArviZ."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import signal, stats

from skihmm.metrics import (
    autocorrelation_time,
    effective_sample_size,
    integrated_autocorr_time,
    rhat,
)
from skihmm.metrics._autocorrelation import autocovariances
from skihmm.metrics._convergence import rank_normalised

METHODS = ("bulk", "tail", "mean")
FUNCTIONS = [rhat, integrated_autocorr_time] + [
    lambda values, method=method: effective_sample_size(values, method) for method in METHODS
]


def autoregressions(rng, rho, shape):
    """Chains whose autocorrelation at lag t is rho^t."""
    noise = rng.normal(size=(shape[0], shape[1] + 2000))
    return signal.lfilter([1.0], [1.0, -rho], noise)[:, 2000:]


# -- by hand --------------------------------------------------------------------------


def by_definition_rhat(chains):
    """Gelman and Rubin's ratio of the halves, in plain loops."""
    half = len(chains[0]) // 2
    parts = [part for chain in chains for part in (chain[:half], chain[-half:])]
    means = [sum(part) / half for part in parts]
    variances = [
        sum((x - mean) ** 2 for x in part) / (half - 1)
        for part, mean in zip(parts, means, strict=True)
    ]
    within = sum(variances) / len(parts)
    grand = sum(means) / len(parts)
    between = half * sum((mean - grand) ** 2 for mean in means) / (len(parts) - 1)
    return math.sqrt(((half - 1) / half * within + between / half) / within)


def by_definition_ess(chains):
    """Geyer's initial monotone sequence over the halves, lag by lag."""
    half = len(chains[0]) // 2
    parts = [part for chain in chains for part in (chain[:half], chain[-half:])]
    means = [sum(part) / half for part in parts]

    def covariance(lag):
        sums = [
            sum((part[i] - m) * (part[i + lag] - m) for i in range(half - lag)) / half
            for part, m in zip(parts, means, strict=True)
        ]
        return sum(sums) / len(parts)

    grand = sum(means) / len(parts)
    within = covariance(0) * half / (half - 1)
    total = covariance(0) + sum((m - grand) ** 2 for m in means) / (len(parts) - 1)

    def rho(lag):
        return 1 if lag == 0 else 1 - (within - covariance(lag)) / total

    time, last = -1.0, math.inf
    for lag in itertools.count(step=2):
        pair = rho(lag) + rho(lag + 1)
        if pair <= 0 or lag + 3 > half - 2:
            time += max(rho(lag), 0)
            break
        last = min(last, pair)
        time += 2 * last
    n = half * len(parts)
    return n / max(time, 1 / math.log10(n))


def scores(chains):
    """Normal scores by scipy's ranks; the draw in the middle has none."""
    half = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :half], chains[:, -half:]], axis=1)
    ranks = stats.rankdata(halves).reshape(halves.shape)
    return stats.norm.ppf((ranks - 3 / 8) / (halves.size + 1 / 4))


@pytest.mark.parametrize("shape", [(1, 40), (2, 31), (4, 100)])
@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.6])
def test_definitions(rng, shape, rho):
    for shift in (0.0, 1.5):
        chains = autoregressions(rng, rho, shape)
        chains[0] += shift
        half = shape[1] // 2
        halves = np.concatenate([chains[:, :half], chains[:, -half:]])
        folded = np.abs(chains - np.median(halves))
        expected = max(by_definition_rhat(scores(x).tolist()) for x in (chains, folded))
        assert rhat(chains) == pytest.approx(expected, rel=1e-10)

        expected = by_definition_ess(scores(chains).tolist())
        assert effective_sample_size(chains) == pytest.approx(expected, rel=1e-9)
        expected = by_definition_ess(chains.tolist())
        assert effective_sample_size(chains, "mean") == pytest.approx(expected, rel=1e-9)
        expected = min(
            by_definition_ess((chains <= q).astype(float).tolist())
            for q in np.quantile(chains, [0.05, 0.95])
        )
        assert effective_sample_size(chains, "tail") == pytest.approx(expected, rel=1e-9)


def test_hand_calculation():
    """Four draws 0 1 2 3: halves with variance 1/2, means 1/2 and 5/2."""
    assert by_definition_rhat([[0, 1, 2, 3]]) == pytest.approx(math.sqrt(1 / 2 + 2 / 0.5))
    # The ranks of four numbers are at these normal scores.
    low, high = stats.norm.ppf([0.625 / 4.25, 1.625 / 4.25])
    np.testing.assert_allclose(
        rank_normalised(np.array([[5.0, 6.0, 9.0, 70.0]])), [[low, high, -high, -low]]
    )
    within = (low - high) ** 2 / 2
    between = (low + high) ** 2 / 2
    expected = math.sqrt(1 / 2 + between / within)
    assert rhat([[5, 6, 9, 70]]) == pytest.approx(expected)
    # Too short for any correlation: worth n log10 n.
    assert effective_sample_size([[5, 6, 9, 70]]) == pytest.approx(4 * math.log10(4))


def test_ties_share_their_ranks():
    values = np.array([[3.0, 3.0, 1.0, 2.0, 3.0]])
    found = rank_normalised(values)
    assert len({found[0, 0], found[0, 1], found[0, 4]}) == 1
    np.testing.assert_allclose(found[0, 0], stats.norm.ppf((4 - 3 / 8) / 5.25))


def test_autocovariances(rng):
    values = rng.normal(size=(3, 17)).cumsum(axis=1)
    centred = values - values.mean(axis=1, keepdims=True)
    expected = [[(row[: 17 - lag] * row[lag:]).sum() / 17 for lag in range(17)] for row in centred]
    np.testing.assert_allclose(autocovariances(values), expected, rtol=0, atol=1e-12)


# -- processes of which the answer is known -------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
def test_autoregressions(rng, rho):
    chains = autoregressions(rng, rho, (4, 50_000))
    time = (1 + rho) / (1 - rho)
    assert integrated_autocorr_time(chains) == pytest.approx(time, rel=0.12)
    for method in ("bulk", "mean"):
        found = effective_sample_size(chains, method)
        assert found == pytest.approx(200_000 / time, rel=0.12), method
    assert rhat(chains) < 1.005
    # The paper's definition counts half of that.
    assert autocorrelation_time(chains[0], "auto") == pytest.approx(time / 2, rel=0.2, abs=0.03)


def test_standard_error_of_the_mean(rng):
    """What the effective sample size is for."""
    rho, n = 0.8, 500
    chains = autoregressions(rng, rho, (400, n))
    errors = [chain.std() / np.sqrt(effective_sample_size(chain[None], "mean")) for chain in chains]
    assert np.mean(errors) == pytest.approx(chains.mean(axis=1).std(), rel=0.12)


def test_heavy_tails(rng):
    """Cauchy draws have no variance: ranks do."""
    chains = rng.standard_cauchy(size=(4, 1000))
    assert rhat(chains) < 1.02
    assert 3000 < effective_sample_size(chains) < 5000


@pytest.mark.parametrize("change", ["place", "spread", "trend", "order"])
def test_trouble_shows(rng, change):
    chains = rng.normal(size=(4, 500))
    assert rhat(chains) < 1.02
    if change == "place":
        chains[2] += 1
    elif change == "spread":
        chains[2] *= 3  # only the folded ranks tell
    elif change == "trend":
        chains += np.linspace(0, 3, 500)
    else:
        chains.sort(axis=1)
    assert rhat(chains) > 1.05
    if change == "spread":
        assert effective_sample_size(chains, "tail") < 600
    else:
        assert effective_sample_size(chains) < 150


def test_order_of_chains_unit_and_shift_do_not_matter(rng):
    chains = autoregressions(rng, 0.5, (3, 200))
    for function in FUNCTIONS:
        expected = function(chains)
        # (Rounding decides which one of two values beside the median is nearer to it.)
        for other in (chains[::-1], 1e-3 * chains + 7):
            assert function(other) == pytest.approx(expected, rel=1e-3)
    # Ranks stay what they are under any increasing function.
    assert effective_sample_size(np.exp(chains)) == effective_sample_size(chains)


# -- shapes ---------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
def test_further_dimensions(function, rng):
    values = rng.normal(size=(2, 30, 3, 2))
    found = function(values)
    assert found.shape == (3, 2)
    for i, j in itertools.product(range(3), range(2)):
        assert found[i, j] == function(values[:, :, i, j])
    assert type(function(values[:, :, 0, 0])) is float
    assert function(values[:, :, 0, 0].tolist()) == found[0, 0]
    assert function(values[:, :, :0]).shape == (0, 2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_chains_of_different_lengths(function, rng):
    values = rng.normal(size=(4, 30, 2))
    ragged = values.copy()
    ragged[1, 20:] = np.nan
    ragged[2, 25:] = np.nan
    ragged[3] = np.nan
    np.testing.assert_array_equal(function(ragged), function(values[:3, :20]))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "values",
    [
        np.zeros((3, 20)),
        [[1.0, 2.0, 3.0]] * 4,
        np.zeros((0, 10)),
        np.zeros((2, 0)),
        np.full((2, 5), np.nan),
        [[1.0, 2.0, 3.0, 4.0, 5.0], [2.0, np.nan, np.nan, np.nan, np.nan]],
    ],
)
def test_nothing_to_tell(function, values):
    assert np.isnan(function(values))


def test_chains_that_do_not_move():
    assert rhat([[1.0] * 10, [2.0] * 10]) == np.inf
    assert rhat(np.repeat([[0.1, 0.3]], 10, axis=0).T) == np.inf
    # One draw is enough for each of them.
    assert effective_sample_size([[1.0] * 50, [2.0] * 50]) < 5


def test_quantities_with_few_values(rng):
    # At equal distances from the median nothing is left to rank.
    chains = np.tile([0.0, 1.0, 1.0, 0.0], (2, 25))
    assert 0.9 < rhat(chains) < 1.1
    # Both quantiles are the largest value.
    rare = (np.arange(200) % 50 > 0).astype(float).reshape(2, 100)
    assert np.isnan(effective_sample_size(rare, "tail"))
    assert effective_sample_size(rare) > 0
    # One of them is.
    often = (rng.random((2, 500)) < 0.2).astype(float)
    assert effective_sample_size(often, "tail") > 300


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0, 3.0, 4.0], r"shape \(4,\).*\(n_chains, n_draws, \.\.\.\)"),
        ([["a", "b"]], "type object"),
        ([[1.0, np.nan, 2.0, 3.0, 4.0]], "NaN or infinity among the draws"),
        ([[1.0, np.inf, 2.0, 3.0, 4.0]], "NaN or infinity"),
        ([[[1.0, np.nan]] * 5], "NaN or infinity"),
        ([[1.0, 2.0], [1.0]], "ragged"),
    ],
)
def test_bad_input_is_named(function, values, message):
    with pytest.raises(ValueError, match=message):
        function(values)


def test_unknown_method():
    with pytest.raises(ValueError, match="method='median'; expected one of 'bulk', 'ta"):
        effective_sample_size(np.zeros((2, 10)), "median")


# -- ArviZ ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arviz():
    """ArviZ's R-hat and ESS of an array (n_chains, n_draws)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stats_base = pytest.importorskip("arviz_stats.base")
    array_stats = stats_base.array_stats

    def function(name, values, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (of divisions by zero)
            found = getattr(array_stats, name)(values, chain_axis=0, draw_axis=1, **options)
        return float(found)

    return function


@pytest.mark.parametrize("shape", [(1, 4), (1, 50), (2, 7), (2, 101), (4, 1000)])
@pytest.mark.parametrize("kind", ["noise", "slow", "fast", "whole", "stuck", "cauchy"])
def test_same_as_arviz(kind, shape, rng, arviz):
    chains = {
        "noise": lambda: rng.normal(size=shape),
        "slow": lambda: autoregressions(rng, 0.95, shape),
        "fast": lambda: autoregressions(rng, -0.8, shape),
        "whole": lambda: np.round(autoregressions(rng, 0.8, shape)),
        "stuck": lambda: rng.normal(size=shape) + 5 * np.arange(shape[0])[:, None],
        "cauchy": lambda: rng.standard_cauchy(size=shape),
    }[kind]()
    for method in ("bulk", "mean"):
        expected = arviz("ess", chains, method=method)
        found = effective_sample_size(chains, method)
        assert found == pytest.approx(expected, rel=1e-9), method
    # (Where all draws are on one side of a quantile ArviZ counts every one.)
    half = shape[1] // 2
    halves = np.concatenate([chains[:, :half], chains[:, -half:]])
    if all(0 < np.mean(halves <= np.quantile(chains, p)) < 1 for p in (0.05, 0.95)):
        expected = arviz("ess", chains, method="tail", prob=(0.05, 0.95))
        found = effective_sample_size(chains, "tail")
        assert found == pytest.approx(expected, rel=1e-9)
    # (For one chain ArviZ has none.)
    if shape[0] > 1:
        assert rhat(chains) == pytest.approx(arviz("rhat", chains), rel=1e-10)
