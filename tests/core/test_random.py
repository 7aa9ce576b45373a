"""The random stream: uniform integers, one state shared with numpy."""

from __future__ import annotations

import math

import native
import numpy as np
import pytest
from scipy import stats

from skihmm.core._random import RandomStream


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 1000])
def test_below_is_uniform(n):
    draws = native.parts.draw_below(RandomStream(n), n, 200 * max(n, 100))
    assert draws.min() >= 0
    assert draws.max() < n
    assert n == 1 or stats.chisquare(np.bincount(draws, minlength=n)).pvalue > 1e-3


@pytest.mark.parametrize("n", [3 * 2**30, 2**31 + 1, 2**32 - 1, 2**33, 2**62 + 1])
def test_below_is_uniform_on_wide_ranges(n):
    """Where multiply-and-reject has to reject often, or needs 64 bits."""
    draws = native.parts.draw_below(RandomStream(1), n, 30_000)
    assert draws.min() >= 0
    assert draws.max() < n
    # Both the high and the low digits.
    for digit, n_digits in (((draws.astype(float) / n) * 20, 20), (draws % 3, 3)):
        counts = np.bincount(digit.astype(int), minlength=n_digits)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_uniform_is_numpys():
    a, b = RandomStream(3), np.random.Generator(np.random.PCG64(3))
    np.testing.assert_array_equal(native.parts.draw_uniform(a, 1000), b.random(1000))


def test_native_and_numpy_draws_share_one_stream():
    stream = RandomStream(np.random.SeedSequence(5))
    other = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5)))
    for _ in range(5):
        np.testing.assert_array_equal(native.parts.draw_uniform(stream, 3), other.random(3))
        assert stream.generator.gamma(2.5) == other.gamma(2.5)
        assert stream.generator.integers(1000) == other.integers(1000)
    assert stream.state == other.bit_generator.state


def test_below_uses_half_words_like_numpy():
    """32-bit draws are buffered in the bit generator's state, which a copy carries."""
    stream = RandomStream(9)
    native.parts.draw_below(stream, 10, 1)
    saved = stream.state
    first = native.parts.draw_below(stream, 10, 51)
    stream.state = saved
    np.testing.assert_array_equal(native.parts.draw_below(stream, 10, 51), first)
    # Powers of two never reject: the high bits of one 32-bit half after the other.
    stream, words = RandomStream(2), np.random.PCG64(2)
    raw = words.random_raw(50)
    halves = np.column_stack([raw & 0xFFFFFFFF, raw >> 32]).ravel().astype(np.uint64)
    np.testing.assert_array_equal(
        native.parts.draw_below(stream, 2**20, 100), (halves * 2**20) >> np.uint64(32)
    )


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.Philox, np.random.MT19937])
def test_any_bit_generator(bits):
    stream = RandomStream(bits(7))
    expected = np.random.Generator(bits(7)).random(10)
    np.testing.assert_array_equal(native.parts.draw_uniform(stream, 10), expected)


def test_product_neither_underflows_nor_overflows():
    rng = np.random.default_rng(0)
    factors = np.exp(rng.normal(-8, 20, size=3000))
    assert native.parts.log_product(factors) == pytest.approx(np.log(factors).sum(), rel=1e-12)
    assert native.parts.log_product([1e-300] * 50) == pytest.approx(50 * math.log(1e-300))
    assert native.parts.log_product([1e300] * 50) == pytest.approx(50 * math.log(1e300))
    assert native.parts.log_product([2.0, 3.0], [-900.0, 4.0]) == pytest.approx(math.log(6) - 896)
    assert native.parts.log_product([]) == 0.0
    assert native.parts.log_product([0.5, 0.0, 2.0]) == -math.inf


# -- Gamma ratios ---------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(3.0, 0.5), (0.2, 0.3), (40.0, 1e3), (1.0, 1.0)])
def test_beta(a, b):
    share, rest = native.parts.draw_beta(RandomStream(3), a, b, 20_000).T
    np.testing.assert_allclose(share + rest, 1, rtol=1e-12)
    assert stats.kstest(share, stats.beta(a, b).cdf).pvalue > 1e-3


def test_what_a_beta_variate_lacks_to_one_is_not_lost():
    # Beta(1, b) has U^(1/b): far below the rounding of one.
    rest = native.parts.draw_beta(RandomStream(4), 1.0, 0.02, 20_000)[:, 1]
    assert (rest < 1e-100).mean() > 0.005
    assert stats.kstest(rest**0.02, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("tiny", [1e-5, 1e-200, 1e-300])
def test_beta_of_tiny_parameters_takes_one_side(tiny):
    share, rest = native.parts.draw_beta(RandomStream(5), 3 * tiny, tiny, 4000).T
    assert ((share > 0.99) | (rest > 0.99)).mean() > 0.99
    assert stats.binomtest(int((share > 0.5).sum()), 4000, 0.75).pvalue > 1e-3


def test_beta_of_nothing_leaves_all():
    np.testing.assert_array_equal(native.parts.draw_beta(RandomStream(5), 0, 0, 3), [[0, 1]] * 3)


def test_dirichlet():
    shapes = np.array([0.3, 0.0, 5.0, 0.01, 1.0])
    draws = native.parts.draw_dirichlet(RandomStream(6), shapes, 20_000)
    np.testing.assert_allclose(draws.sum(axis=1), 1, rtol=1e-12)
    assert (draws[:, 1] == 0).all()
    for column, shape in zip(draws.T, shapes, strict=True):
        if shape > 0:
            law = stats.beta(shape, shapes.sum() - shape)
            assert stats.kstest(column, law.cdf).pvalue > 1e-3


def test_dirichlet_of_tiny_shapes_is_one_of_the_corners():
    draws = native.parts.draw_dirichlet(RandomStream(7), [1e-9, 2e-9, 1e-9], 4000)
    assert (draws.max(axis=1) > 0.999).mean() > 0.999
    counts = np.bincount(draws.argmax(axis=1), minlength=3)
    assert stats.chisquare(counts, [1000, 2000, 1000]).pvalue > 1e-3


@pytest.mark.parametrize(
    "weights", [[1], [3, 1], [0, 2, 0, 1, 0], [1e-300, 2e-300], [1e300, 1e300, 0, 2e300]]
)
def test_categorical(weights):
    with np.errstate(divide="ignore"):
        log_w = np.log(weights)
    stream = RandomStream(4)
    draws = np.bincount([stream.categorical(log_w) for _ in range(4000)], minlength=len(weights))
    expected = 4000 * np.exp(log_w - np.logaddexp.reduce(log_w))
    assert (draws[expected == 0] == 0).all()
    seen = expected > 0
    assert seen.sum() == 1 or stats.chisquare(draws[seen], expected[seen]).pvalue > 1e-3
    # One uniform number each, from the one stream.
    other = RandomStream(4)
    native.parts.draw_uniform(other, 4000)
    assert stream.state == other.state


def test_categorical_of_a_list():
    assert RandomStream(0).categorical([-np.inf, 5, -np.inf]) == 1
    assert RandomStream(0).categorical((-1e4,)) == 0


@pytest.mark.parametrize(
    ("log_weights", "message"),
    [
        ([0.0, np.nan], r"log_weights\[1\] is nan; expected numbers below infinity"),
        ([np.inf], r"log_weights\[0\] is inf; expected numbers below infinity"),
        ([-np.inf] * 3, "3 log_weights, none of them above -inf; expected at least one"),
        ([], "0 log_weights, none of them above -inf"),
        ([[0.0]], "Buffer has wrong number of dimensions"),
    ],
)
def test_no_weights(log_weights, message):
    stream = RandomStream(0)
    before = stream.state
    with pytest.raises(ValueError, match=message):
        stream.categorical(log_weights)
    assert stream.state == before
