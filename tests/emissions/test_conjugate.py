"""Emissions of numbers: formulas, numerics, and exactness in every sampler."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import native
import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference.conjugate import (
    Angles,
    Autoregression,
    Bernoulli,
    DiagonalGaussian,
    FullGaussian,
    Gamma,
    NegativeBinomial,
    Poisson,
)
from scipy import special
from small_models import NUMBERS, SAMPLERS, Model, assert_caught, log_pair, log_row, move_value

from skihmm import HCRPHMM, emissions
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import NormalInverseWishart
from skihmm.samplers import StepwiseGibbs
from skihmm.testing._probes import EmissionProbe


def random_model(name, n, rng, scale=1.0, offset=0.0):
    """n observations of the kind, some of them missing."""
    if name == "diagonal":
        y = offset + scale * rng.normal(size=(n, 3))
        y[rng.random(y.shape) < 0.1] = np.nan
        emission = DiagonalGaussian(
            (offset,) * 3, 0.3, 1.2, tuple(scale**2 * np.array([0.5, 0.8, 2.0]))
        )
    elif name == "full":
        y = offset + scale * rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3))
        y[rng.random(n) < 0.05, 1] = np.nan
        spread = scale**2 * (np.eye(3) + 0.3)
        emission = FullGaussian((offset,) * 3, 0.4, 4.5, tuple(map(tuple, spread)))
    elif name == "autoregressive":
        X = np.cumsum(rng.normal(size=(n + 2, 3)) @ rng.normal(size=(3, 3)), axis=0)
        X[rng.random(n + 2) < 0.02, 1] = np.nan
        y = offset + scale * np.hstack([X[2:], X[1:-1], X[:-2]])
        mean = np.eye(3, 7) + 0.1 * rng.normal(size=(3, 7))
        emission = Autoregression(
            2,
            (offset,) * 3,
            (scale, 2 * scale, scale / 2),
            tuple(map(tuple, mean)),
            (0.4, 3.0, 0.2),
            4.5,
            tuple(map(tuple, np.eye(3) + 0.3)),
        )
    elif name == "regression":
        X = offset + scale * rng.normal(size=(n + 1, 3)) @ rng.normal(size=(3, 3))
        inputs = rng.normal(size=(n, 2))
        inputs[rng.random(n) < 0.05, 1] = np.nan
        y = np.hstack([X[1:], X[:-1], inputs])
        emission = Autoregression(
            1,
            (offset,) * 3,
            (scale, 2 * scale, scale / 2),
            tuple(map(tuple, np.eye(3, 6) + 0.1 * rng.normal(size=(3, 6)))),
            (0.4, 3.0, 0.7, 0.2),
            4.5,
            tuple(map(tuple, np.eye(3) + 0.3)),
            given=2,
        )
    elif name == "counts":
        y = rng.poisson(scale * rng.gamma(2.0, size=(n, 3))).astype(float)
        y[rng.random(y.shape) < 0.1] = np.nan
        emission = Poisson((1.0, 0.2, 3.0), (1.0, 0.3, 0.01))
    elif name == "overdispersed":
        # The logarithms of SciPy's gamma functions have no more digits.
        y = rng.poisson(min(scale, 1e4) * rng.gamma(0.5, size=(n, 3))).astype(float)
        y[rng.random(y.shape) < 0.1] = np.nan
        emission = NegativeBinomial((1.0, 0.2, 3.0), (1.0, 0.3, 0.01), (2.0, 0.3, 0.01))
    elif name == "positive":
        y = scale * rng.gamma(0.7, size=(n, 3))
        y[rng.random(y.shape) < 0.1] = np.nan
        emission = Gamma((1.0, 0.2, 3.0), (scale, 0.3 * scale, scale), (2.0, 0.3, 0.01))
    elif name == "angles":
        y = rng.uniform(-6, 6, size=(n, 3))
        y[rng.random(y.shape) < 0.1] = np.nan
        emission = Angles((2.0, 0.1, 0.01))
    else:
        y = (rng.random((n, 3)) < 0.4).astype(float)
        y[rng.random(y.shape) < 0.1] = np.nan
        emission = Bernoulli(0.3, 1.5)
    return Model(tuple(map(tuple, y)), emission)


# The first slot of a state.
FIRST = 2

KINDS = (
    *("diagonal", "full", "autoregressive", "regression", "counts", "binary"),
    *("overdispersed", "positive", "angles"),
)


# -- formulas -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 30.0, 1e6])
def test_product_of_predictives(kind, scale, global_random_seed):
    """Row, pair, additions and the log joint, all against SciPy's distributions."""
    rng = np.random.default_rng(global_random_seed)
    model = random_model(kind, 12, rng, scale)
    labels = np.array([0, 1, 0, 0, 2, 1, 0, 1, 1, 0, 0, 2])
    state = model.state(0, labels)
    values, emission = np.array(model.y, float), model.emission
    expected = emission.log_likelihood_by_tables(labels.tolist(), model.y)[0]
    empty = Model(((np.nan,) * values.shape[1],) * 12, emission).state(0, labels)
    found = state.log_joint() - empty.log_joint()
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)
    place = FIRST + labels
    for t in range(12):
        row = log_row(state, t)[[FIRST, FIRST + 1, FIRST + 2, 0]]
        want = np.array(
            [emission.log_predictive(values[labels == k], values[t]) for k in range(3)]
            + [emission.log_predictive(values[:0], values[t])]
        )
        # (What is out of the range of a double, or negligible beside the largest, is kept
        # at a tiny number.)
        shown = want > max(-600, want.max() - 450)
        np.testing.assert_allclose(row[shown], want[shown], rtol=1e-9, atol=1e-9)
        pair = log_pair(state, t, FIRST, FIRST + 1)
        ratio = np.clip(want[0] - want[1], -460, 460)
        assert pair == pytest.approx(ratio, rel=1e-9, abs=1e-9)
        others = (labels == labels[t]) & (np.arange(12) != t)
        left, joined = move_value(state, t, place[t], place[t])
        without = emission.log_predictive(values[others], values[t])
        assert left == pytest.approx(without, rel=1e-9, abs=1e-9)
        assert joined == pytest.approx(without, rel=1e-9, abs=1e-9)
    assert state.check() is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gaps", ["some", "none", "one per column"])
@pytest.mark.parametrize("outlier", [0.0, 1e9])
def test_rows_that_leave_together(kind, gaps, outlier, global_random_seed):
    """The same probability and statistics as if they had left one after the other."""
    rng = np.random.default_rng(global_random_seed)
    model = random_model(kind, 24, rng)
    y = np.array(model.y)
    if gaps != "some":
        y[np.isnan(y)] = 1.0
    if gaps == "one per column":
        y[[0, 1, 2], [0, 1, 2]] = np.nan
    if kind in ("diagonal", "full"):
        y[10] += outlier
    labels = np.repeat([0, 1, 0, 2, 1], [5, 4, 6, 1, 8]).astype(np.int32)
    state = Model(tuple(map(tuple, y)), model.emission).state(0, labels)
    probe = EmissionProbe(state.emission, state.stream)
    for start, stop in (0, 4), (2, 7), (7, 12), (15, 16), (14, 24), (0, 24):
        slots = FIRST + labels[start:stop]
        steps = range(start, stop)
        expected = sum(probe.remove(t, FIRST + labels[t]) for t in reversed(steps))
        rows = [probe.logs(t) for t in steps]
        probe.rollback()
        found = native.moves.remove_block(state.emission, start, slots)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert_allclose([probe.logs(t) for t in steps], rows, rtol=1e-9, atol=1e-9)
        probe.rollback()


@pytest.mark.parametrize("offset", [0, 10**3, 10**6, 10**9])
def test_covariance_far_from_the_prior_mean(offset):
    """Deviations between columns are not lost beside those from the prior mean."""
    n, strength, scale = 12, Fraction(1, 64), Fraction(1, 2**20)
    y = offset + np.random.default_rng(0).normal(size=(n, 2)) / 1024
    prior = ((float(scale), 0.0), (0.0, float(scale)))
    emission = FullGaussian((0.0, 0.0), float(strength), 4.0, prior)
    labels = np.zeros(n, dtype=int)
    state = Model(tuple(map(tuple, y)), emission).state(0, labels)
    empty = Model(((np.nan,) * 2,) * n, emission).state(0, labels)
    state.emission.take_hyperparameters(state.to_arrays()["emission"])  # a recount

    a, b = ([Fraction(v) for v in column] for column in y.T)
    means = sum(a) / n, sum(b) / n

    def product(x, i, z, j):
        own = sum(v * w for v, w in zip(x, z, strict=True)) - n * means[i] * means[j]
        return own + means[i] * means[j] * n * strength / (n + strength)

    determinant = (scale + product(a, 0, a, 0)) * (scale + product(b, 1, b, 1))
    determinant -= product(a, 0, b, 1) ** 2
    log_ratio = math.log(determinant.numerator) - math.log(determinant.denominator)
    expected = (
        special.multigammaln((4 + n) / 2, 2)
        - special.multigammaln(2, 2)
        - n * math.log(math.pi)
        + 4 * math.log(scale)
        - (4 + n) / 2 * log_ratio
        + math.log(strength / (n + strength))
    )
    found = state.log_joint() - empty.log_joint()
    assert found == pytest.approx(expected, abs=1e-3 if offset > 1e6 else 1e-6)
    assert state.check() is None


@pytest.mark.parametrize("offset", [0, 10**6])
def test_recounts_of_any_number_of_rows(offset):
    """They take rows in parts: the same as one row after the other, and as a sum."""
    sizes = [1, 2, 15, 16, 17, 511, 512, 513, 1100]
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(9), sizes))
    y = np.random.default_rng(1).normal(size=(len(labels), 3)) @ np.tri(3) + labels[:, None]
    emission = FullGaussian((offset,) * 3, 0.5, 4.0, tuple(map(tuple, np.eye(3))))
    state = Model(tuple(map(tuple, y + offset)), emission).state(0, labels)
    one_by_one = state.log_joint()
    state.emission.take_hyperparameters(state.to_arrays()["emission"])  # a recount
    assert state.log_joint() == pytest.approx(one_by_one, rel=1e-9)
    numbers = state.to_arrays()["emission"]["numbers"]
    assert_allclose(numbers[:, 0], sizes)
    for k, size in enumerate(sizes):
        mean = offset + (y[labels == k].sum(axis=0)) / (size + 0.5)
        assert_allclose(numbers[k, 1:4], mean, rtol=1e-12, atol=1e-9)


def test_a_small_scale_and_columns_of_large_numbers():
    """Precisions of the states are nearly singular beside that of the prior mean."""
    X = np.random.default_rng(0).normal(size=(60, 1)) * [1e6, 1e6, 3e6]
    emission = NormalInverseWishart(scale=1e-9 * np.eye(3), resolution=None)
    hmm = HCRPHMM("stepwise", emission, n_burnin=30, n_draws=5, random_state=0).fit(X)
    for values in hmm.draws_.hyperparameters.values():
        assert np.isfinite(values).all()


@pytest.mark.parametrize("y", [0, 1, 5, 16, 17, 40, 1000, 10**6, 10**9])
@pytest.mark.parametrize("others", [0, 3, 500, 10**6, 10**9])
def test_large_counts(y, others):
    emission = Poisson((0.7,), (0.2,))
    model = Model((others, others + 1, y), emission)
    state = model.state(0, np.array([0, 0, 1]))
    found = move_value(state, 2, FIRST + 1, FIRST)[1]
    shape, rate = 0.7 + 2 * others + 1, 2.2
    # With y small beside the shape the rising factorial is a product, else SciPy's terms.
    if y <= 40:
        rising = np.log(shape + np.arange(y)).sum()
    else:
        rising = special.loggamma(shape + y) - special.loggamma(shape)
    want = rising - special.gammaln(y + 1) - shape * np.log1p(1 / rate)
    want -= y * np.log1p(rate)
    lost = 4e-16 * (special.gammaln(shape + y) if y > 40 else shape + y * 50)
    # What remains is the rounding of terms as large as the counts.
    assert found == pytest.approx(want, rel=1e-9, abs=1e-9 + abs(lost))


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
LARGE = [10.0, 1e3, 1e8, 1e12, 1e14, 1e16, 1e20, 1e100, 1e290]


def assert_four_ways(model, want, given, rel):
    """log p(y[0]) and log p(y[0] | y[1]) by row, pair and move, and their log joint."""
    labels = np.array([0, 1])
    state = model.state(0, labels)
    row = log_row(state, 0)
    # (No state's share is less than exp(-460) of the largest.)
    least = row.max() - 460
    assert row[0] == pytest.approx(max(want, least), rel=rel, abs=rel)
    assert row[FIRST + 1] == pytest.approx(max(given, least), rel=rel, abs=rel)
    pair = log_pair(state, 0, FIRST + 1, 0)
    ratio = np.clip(given - want, -460, 460)
    assert pair == pytest.approx(ratio, rel=rel, abs=10 * rel)
    apart = state.log_joint()
    left, joined = move_value(state, 0, FIRST, FIRST + 1)
    assert left == pytest.approx(want, rel=rel, abs=rel)
    assert joined == pytest.approx(given, rel=rel, abs=rel)
    # (Only the observation has moved.)
    assert state.log_joint() - apart == pytest.approx(given - want, rel=rel, abs=10 * rel)


def student(y, mean, spread, a, power):
    """Log density; `spread` per column, a and power without cancellation."""
    total = Decimal(1)
    for value, centre, width in zip(y, mean, spread, strict=True):
        total += (value - centre) ** 2 / width
    logs = sum((PI * width).ln() for width in spread) / 2
    if power - a == 1:
        ratio = a.ln()
    else:  # log Gamma(a + 1/2) / Gamma(a) by Stirling's series, from a + 10 down
        b = a + 10
        ratio = b.ln() / 2 - 1 / (8 * b) + 1 / (192 * b**3) - 1 / (640 * b**5)
        ratio += 17 / (14336 * b**7) - 31 / (18432 * b**9)
        ratio += sum(((a + i) / (a + i + Decimal("0.5"))).ln() for i in range(10))
    return ratio - logs - power * total.ln()


@pytest.mark.parametrize("b", [1e-10, 1e-20, 1e-100])
@pytest.mark.parametrize("value", [0, 1])
def test_tiny_pseudo_counts(value, b):
    """One observation of a column that was the other value before."""
    prior = {"a": 1.0, "b": b} if value == 0 else {"a": b, "b": 1.0}
    model = Model((value, 1 - value), Bernoulli(**prior))
    assert_four_ways(model, np.log(b / (1 + b)), np.log(b / (2 + b)), 1e-12)


@pytest.mark.parametrize("shape", LARGE)
@pytest.mark.parametrize("y", [1e-9, 0.3, 4.0, 30.0])
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_almost_known_variances(kind, y, shape):
    """Student's t of very many degrees of freedom, with more digits than a double has."""
    other = 2.5
    if kind == "diagonal":
        model = Model((y, other), DiagonalGaussian((0.0,), 2.0, shape, (shape,)))
    else:
        emission = FullGaussian((0.0, 0.0), 2.0, shape, ((shape, 0), (0, shape)))
        model = Model(((y, 0.0), (other, 0.0)), emission)
    with localcontext() as context:
        context.prec = 350
        a, y, v, half = Decimal(shape), Decimal(y), Decimal(other), Decimal("0.5")
        if kind == "diagonal":
            want = student([y], [0], [3 * a], a, a + half)
            spread = 2 * (a + v**2 / 3) * 4 / 3
            given = student([y], [v / 3], [spread], a + half, a + 1)
        else:
            scale, a = a, (a - 1) / 2
            want = student([y, 0], [0, 0], [scale * 3 / 2] * 2, a, a + 1)
            spread = [(scale + 2 * v**2 / 3) * 4 / 3, scale * 4 / 3]
            given = student([y, 0], [v / 3, 0], spread, a + half, a + 3 * half)
    assert_four_ways(model, float(want), float(given), 1e-12)


@pytest.mark.parametrize(("y", "mean"), [(0, 200.0), (1, 1e-3), (5, 3.0), (17, 3.0), (40, 200.0)])
@pytest.mark.parametrize("shape", [1e-300, 1e-20, 0.5, *LARGE])
def test_almost_known_rates(shape, mean, y):
    """Counts with very few or very many pseudo-counts, with more digits likewise."""
    rate, other = shape / mean, 7
    with localcontext() as context:
        context.prec = 350
        logs = []
        for a, b in ((Decimal(shape), Decimal(rate)), (Decimal(shape) + other, Decimal(rate) + 1)):
            lp = sum(((a + i) / (i + 1)).ln() for i in range(y))
            logs.append(float(lp - a * (1 + 1 / b).ln() - y * (1 + b).ln()))
    model = Model((y, other), Poisson((shape,), (rate,)))
    assert_four_ways(model, *logs, 1e-12 * (1 + y))


# -- numerics -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-12, 0.0), (1e12, -1e12)])
def test_ten_thousand_moves_do_not_drift(kind, scale, offset, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    if kind == "positive":
        offset = 0.0
    elif kind not in ("diagonal", "full"):
        scale, offset = min(max(scale, 1.0), 1e6), 0.0
    model = random_model(kind, 40, rng, scale, offset)
    labels = rng.integers(3, size=40)
    labels[:3] = [0, 1, 2]
    state = model.state(1, labels)
    before = state.to_arrays()["emission"]["numbers"]
    where = FIRST + labels
    for step in range(10_000):
        t, k = rng.integers(40), FIRST + rng.integers(3)
        move_value(state, t, where[t], k, keep=step % 3 > 0)
        if step % 3 > 0:
            where[t] = k
    for t in range(40):
        move_value(state, t, where[t], FIRST + labels[t])
    after = state.to_arrays()["emission"]["numbers"]
    np.testing.assert_allclose(after, before, rtol=1e-8, atol=1e-8 * abs(before).min())
    assert state.check() is None


@pytest.mark.parametrize("kind", KINDS)
def test_rollback_restores_every_bit(kind, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    model = random_model(kind, 30, rng)
    labels = np.arange(30) % 3
    state = model.state(1, labels)
    before = state.to_arrays()["emission"]["numbers"].tobytes()
    for t in range(30):
        move_value(state, t, FIRST + labels[t], FIRST + (labels[t] + 1) % 3, keep=False)
        assert state.to_arrays()["emission"]["numbers"].tobytes() == before


@pytest.mark.parametrize("kind", ["diagonal", "full", "autoregressive"])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9, 1e12])
def test_an_outlier_leaves_no_trace(kind, far, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    model = random_model(kind, 20, rng)
    y = np.array(model.y)
    y[7] = far
    model = Model(tuple(map(tuple, y)), model.emission)
    labels = np.zeros(20, int)
    labels[7] = 1
    state = model.state(1, labels)
    before = state.to_arrays()["emission"]["numbers"]
    # The statistics are computed anew from the steps of the state, also from those that
    # were moved and brought back before.
    for t in range(0, 20, 3):
        move_value(state, t, FIRST, FIRST + 1, keep=False)
    for _ in range(3):
        move_value(state, 7, FIRST + 1, FIRST)
        move_value(state, 7, FIRST, FIRST + 1)
    after = state.to_arrays()["emission"]["numbers"]
    np.testing.assert_allclose(after, before, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "emission", ["gaussian", "diagonal_gaussian", "autoregressive", "poisson", "bernoulli"]
)
@pytest.mark.parametrize("data", ["constant", "one row", "all missing", "one column each"])
@pytest.mark.filterwarnings("ignore:All (entries|rows) of X are missing")
@pytest.mark.filterwarnings("ignore:Columns 0, 1 of X have always the same value")
def test_poor_data(emission, data):
    X = {
        "constant": np.ones((30, 2)),
        "one row": np.ones((1, 2)),
        "all missing": np.full((10, 2), np.nan),
        "one column each": np.where(np.arange(20)[:, None] % 2 == [0, 1], 1.0, np.nan),
    }[data]
    model = HCRPHMM(emission=emission, n_burnin=5, n_draws=3, random_state=0)
    if emission not in ("poisson", "bernoulli"):
        X = X * 1e-12
    if (emission, data) == ("autoregressive", "one row"):
        with pytest.raises(ValueError, match="order=3, but the longest sequence has 1 r"):
            model.fit(X)
        return
    model.fit(X)
    if data == "one column each" and emission == "autoregressive":
        with pytest.warns(UserWarning, match="the score is NaN"):
            assert np.isnan(model.score(X))
    else:
        assert np.isfinite(model.score(X))
    assert np.isfinite(model.draws_.lp).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    X_new, _ = model.sample(5)
    assert X_new.shape == (5, 2)
    assert np.isfinite(X_new).all()


# -- exactness ------------------------------------------------------------------------


WRONG = {
    "diagonal": DiagonalGaussian((1.0, 0.0), 0.3, 1.7, (0.5, 0.8)),
    "full": FullGaussian((1.0, 0.0), 0.4, 4.0, ((1.0, -0.3), (-0.3, 0.6))),
    "autoregressive": Autoregression(
        2, (0.1,), (2.0,), ((0.8, -0.1, 0.3),), (0.7, 2.0, 0.5), 2.5, ((0.3,),)
    ),
    "regression": replace(NUMBERS["regression"].emission, scale=((0.3,),)),
    "autoregressive with an input": replace(
        NUMBERS["autoregressive with an input"].emission, dof=5.5
    ),
    "counts": Poisson((1.0, 2.0), (0.5, 0.15)),
    "binary": Bernoulli(0.4, 0.9),
    "overdispersed": NegativeBinomial((1.0, 2.0), (0.5, 0.1), (0.6, 0.25)),
    "positive": Gamma((2.0, 1.5), (1.0, 2.0), (0.4, 0.25)),
    "angles": Angles((0.3, 0.6)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "sampler", ["stepwise", pytest.param("stick-breaking", marks=pytest.mark.slow)]
)
def test_a_slightly_different_prior_is_noticed(sampler, name):
    model = NUMBERS[name]
    wrong = Model(model.y, WRONG[name], model.starts, model.alpha, model.gamma)
    wrong.__dict__["posterior"] = model.posterior
    assert_caught(SAMPLERS[sampler].make_kernel, wrong, n_sweeps=4000)


# -- data -----------------------------------------------------------------------------

SHORT = {"n_burnin": 1, "n_draws": 1, "thin": 1, "n_particles": 2, "random_state": 0}
NAMES = ["gaussian", "diagonal_gaussian", "autoregressive", "poisson", "bernoulli"]


@pytest.mark.parametrize("emission", NAMES)
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        *(
            (np.array([[1], [value]], dtype=object), TypeError, "a string or a number, got")
            for value in (
                datetime.date(2020, 1, 1),
                np.timedelta64(3, "D"),
                1j,
                np.complex64(1),
                frozenset(),
                bytearray(b"1"),
                object(),
            )
        ),
        (np.array([[1], [10**400]], dtype=object), ValueError, "beyond the range of float"),
        (np.array([["1"], ["a"]]), ValueError, r"X\[1, 0\] = 'a', which is no"),
        (np.array([["2020"], ["2021"]], "M8[D]"), TypeError, "X has the type datetime64"),
        (np.zeros((3, 1), [("a", int)]), TypeError, "X has the type .*'a'"),
        (np.zeros((3, 1), "V3"), TypeError, "X has the type .*V3"),
    ],
)
def test_what_is_no_number(emission, X, error, message):
    with pytest.raises(error, match=message):
        HCRPHMM(emission=emission, **SHORT).fit(X)


@pytest.mark.parametrize("emission", NAMES[:3])
def test_very_large_and_very_small_numbers(emission):
    X = np.array([[1.0, -2.0], [3.0, 0.0], [-1.0, 4.0], [1.0, 1.0], [5.0, 2.0], [0.0, 2.0]])
    for scale in (1e99, 1e-90):
        model = HCRPHMM(emission=emission, **SHORT).fit(X * scale)
        assert np.isfinite(model.score(X * scale))
        assert np.isfinite(model.sample(5)[0]).all()
    for wrong in (1e-120, 1e-200):
        with pytest.raises(ValueError, match=r"No number of column 0 .*5[.0-9]*e-"):
            HCRPHMM(emission=emission, **SHORT).fit(X * wrong)
        assert np.isfinite(model.score(X * wrong))
    for wrong in (1e100, 1e200):
        with pytest.raises(ValueError, match=r"X\[0, [01]\] = .* too large"):
            model.fit(X * wrong)
        with pytest.raises(ValueError, match=r"X\[0, [01]\] = .* too large"):
            model.predict(X * wrong)


@pytest.mark.parametrize("emission", NAMES[:4])
def test_the_order_in_memory_does_not_matter(emission, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.poisson(3, size=(57, 3)) * (0.1 if emission != "poisson" else 1.0)
    one = HCRPHMM(emission=emission, **SHORT).fit(np.ascontiguousarray(X))
    two = HCRPHMM(emission=emission, **SHORT).fit(np.asfortranarray(X))
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)


def test_counts_that_would_lose_their_digits_are_refused():
    X = np.array([[1.0], [1e12], [5.0], [np.nan]])
    model = HCRPHMM(emission="poisson", n_burnin=5, n_draws=2, random_state=0)
    assert (model.fit(X).draws_.lp < 0).all()
    with pytest.raises(
        ValueError, match="X\\[1, 0\\] = 2000000000000 is too large; expected counts"
    ):
        model.fit(2 * X)


def test_a_sweep_over_many_columns_can_be_ended():
    asked = []

    def is_stopped():
        asked.append(len(asked))
        return len(asked) > 3

    X = np.random.default_rng(0).normal(size=(800, 200))
    state = ChainState(
        np.zeros(1, dtype=int),
        Franchise(1.0, 1.0),
        NormalInverseWishart().fit(X).make_stats(X),
        RandomStream(0),
    )
    state.emission.watch(is_stopped)
    state.start_from(np.zeros(800, dtype=int))
    kernel = StepwiseGibbs().make_kernel(state)
    with pytest.raises(KeyboardInterrupt):
        kernel.sweep(state)
    assert len(asked) == 4


@pytest.mark.parametrize("name", ["GammaPoisson", "BetaNegativeBinomial"])
def test_samples_of_counts_are_counts_that_fits_accept(name):
    X = np.random.default_rng(0).poisson(3, size=(8, 1))
    emission = getattr(emissions, name)(shape=0.5, rate=1e-13)
    hmm = HCRPHMM(emission=emission, n_burnin=1, n_draws=1, random_state=0).fit(X)
    alone, coming = hmm.sample(5000, 0)[0], hmm.predict_next(X).sample(5000, 0)
    assert alone.dtype == coming.dtype == np.int64
    assert min(alone.min(), coming.min()) >= 0
    assert alone.max() <= 1e12
    assert coming.max() == 1e12
