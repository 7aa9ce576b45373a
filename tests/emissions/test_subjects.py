"""Levels and scales of subjects: their draws, exact posteriors, fits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from errors import CONJUGATE, SUBJECTS, assert_noticed
from numpy.testing import assert_allclose, assert_array_equal
from reference import conjugate
from reference.conjugate import (
    Autoregression,
    DiagonalGaussian,
    FullGaussian,
    StudentAutoregression,
)
from scipy.special import gammaln, logsumexp
from scipy.stats import kstest, multivariate_normal, norm
from sklearn.metrics import adjusted_rand_score
from small_models import WITH_DRAWS, Model, assert_exact, chain_means, crossed, with_draws

from skihmm import HCRPHMM, OnlineFilter
from skihmm.core._random import RandomStream
from skihmm.emissions import (
    AutoregressiveNormal,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
    _conjugate_stats,
)
from skihmm.emissions._gaps import open_gaps
from skihmm.emissions._subject_effects import SubjectEffects
from skihmm.emissions._subject_levels import describe_far, levelled, subject_medians
from skihmm.emissions._subject_numbers import SubjectNumbers
from skihmm.inspection import EmissionDisplay
from skihmm.posterior import draw_parameters
from skihmm.testing._probes import EmissionProbe

DOUBT, SURE = 1e-4, 1e12
ONE = np.zeros(1, dtype=np.intp)

# -- draws given the labels, of states whose parameters are known ----------------------

COVARIANCE = np.array([[1.1, 0.4], [0.4, 0.7]])
# Filled entries tell more of the other column.
LOST_COVARIANCE = np.array([[1.1, 0.75], [0.75, 0.7]])
CODES = np.repeat([0, 1, 2], [3, 5, 22])


def known(kind):
    """A law that leaves nothing to learn; A, covariance and order."""
    A = np.array([[0.5, 0.2, 1.0], [-0.1, 0.3, 2.0]])
    if kind == "diagonal":
        law = DiagonalGaussian((1.0, 2.0), SURE, SURE, (1.1 * SURE, 0.7 * SURE))
        return law, A[:, 2:], np.diag([1.1, 0.7]), 0
    if kind == "full":
        law = FullGaussian((1.0, 2.0), SURE, SURE, SURE * COVARIANCE)
        return law, A[:, 2:], COVARIANCE, 0
    prior = ((0.0, 0.0), (1.0, 1.0), A, (SURE,) * 2, SURE, SURE * COVARIANCE)
    law = StudentAutoregression if kind == "student" else Autoregression
    return law(1, *prior), A, COVARIANCE, 1


def rows_of(kind, n=30):
    """Rows of three subjects, with earlier rows, and weights; some entries missing."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2)) + np.array([[2.0, -1.0], [0.0, 3.0], [-1.0, 0.5]])[CODES]
    X[6] = np.nan
    X[[4, 12], [0, 1]] = np.nan
    rows = X
    if kind in ("autoregression", "student"):
        before = np.vstack([[np.nan, np.nan], X[:-1]])
        before[[0, 3, 8]] = np.nan
        rows = np.hstack([X, before])
    return rows, rng.gamma(2.0, size=n) if kind == "student" else np.ones(n)


def dense(kind, D):
    """Mean and covariance of all offsets given that they sum to zero."""
    _, A, covariance, order = known(kind)
    rows, weights = rows_of(kind)
    precision, linear = np.diag(np.tile(1 / D, 3)), np.zeros(6)
    for row, u, w in zip(rows, CODES, weights, strict=True):
        seen = ~np.isnan(row[:2])
        if not seen.any() or (order and np.isnan(row).any()):
            continue
        x = np.append(row[2:], 1.0)
        slope = np.zeros((2, 6))
        slope[:, 2 * u : 2 * u + 2] = np.eye(2) - (A[:, :2] if order else 0)
        W = w * np.linalg.inv(covariance[np.ix_(seen, seen)])
        slope, rest = slope[seen], (row[:2] - A @ x)[seen]
        precision += slope.T @ W @ slope
        linear += slope.T @ W @ rest
    whole = np.linalg.inv(precision)
    constraint = np.tile(np.eye(2), 3)
    gain = whole @ constraint.T @ np.linalg.inv(constraint @ whole @ constraint.T)
    mean = whole @ linear
    return mean - gain @ constraint @ mean, whole - gain @ constraint @ whole


def check_offsets(kind, n=8000):
    """Draws given the variances, one after the other, against the Gaussian of all."""
    rows, weights = rows_of(kind)
    stats = known(kind)[0].stats(tuple(map(tuple, rows)))
    D = np.array([4.0, 0.5])
    _conjugate_stats.open_effects(stats, SubjectEffects(CODES, 3, D))
    EmissionProbe(stats, RandomStream(0), 3)
    if kind == "student":
        stats.set_hidden({"weights": weights})
    # Partial rows of a full covariance are filled in turn.
    if kind == "full":
        open_gaps(stats, ONE, every=True)
    record = stats.to_arrays(np.array([-1, 1, 0], np.int32))
    stream, slots, drawn = RandomStream(1), np.full(len(rows), 2, np.int32), []
    numbers = SubjectNumbers(np.stack([D, D]), np.zeros((3, 2)))
    for _ in range(n):
        numbers = SubjectNumbers(np.stack([D, D]), numbers.offsets)
        stats.take_hyperparameters({**record, "subjects": numbers.to_record()})
        stats.draw_hidden(slots, stream, True)
        drawn_record = stats.to_arrays(np.array([-1, 1, 0], np.int32))["subjects"]
        numbers = SubjectNumbers.of_record(drawn_record, 2, has_scales=False)
        drawn.append(numbers.offsets.ravel())
    mean, covariance = dense(kind, D)
    drawn, deviation = np.array(drawn), np.sqrt(np.diag(covariance))
    assert_allclose(drawn.reshape(-1, 3, 2).sum(axis=1), 0, atol=1e-9)
    assert (abs(drawn.mean(axis=0) - mean) < 6 * deviation / np.sqrt(n)).all()
    scale = np.outer(deviation, deviation)
    assert_allclose(np.cov(drawn.T) / scale, covariance / scale, atol=0.08)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["diagonal", "full", "autoregression", "student"])
def test_offsets_have_their_conditional(kind):
    check_offsets(kind)


def check_scales(n=20_000, *, lost=False):
    """Two columns that depend on each other, two subjects: logs of scales, by quadrature.

    Offsets are held at zero by their variances.  Some entries may be missing, and filled.
    """
    rng = np.random.default_rng(4)
    covariance = LOST_COVARIANCE if lost else COVARIANCE
    rows = (
        rng.multivariate_normal((1.0, 2.0), covariance, 24)
        * np.repeat([1.6, 0.7], [8, 16])[:, None]
    )
    if lost:
        rows[::2, 0] = rows[1::4, 1] = np.nan
    codes, D, H = np.repeat([0, 1], [8, 16]), np.full(2, 1e-12), np.array([0.3, 0.1])
    law = FullGaussian((1.0, 2.0), SURE, SURE, SURE * covariance)
    stats = law.stats(tuple(map(tuple, rows)))
    _conjugate_stats.open_effects(stats, SubjectEffects(codes, 2, D, True))
    EmissionProbe(stats, RandomStream(0), 3)
    if lost:
        open_gaps(stats, ONE, every=True)
    labels = np.array([-1, 1, 0], np.int32)
    record, stream = stats.to_arrays(labels), RandomStream(2)
    slots, logs, drawn = np.full(24, 2, np.int32), np.zeros((2, 2)), []
    for _ in range(n):
        numbers = SubjectNumbers(np.stack([D, D]), np.zeros((2, 2)), np.stack([H, H]), logs)
        stats.take_hyperparameters({**record, "subjects": numbers.to_record()})
        stats.draw_hidden(slots, stream, True)
        found = stats.to_arrays(labels)["subjects"]
        logs = SubjectNumbers.of_record(found, 2, has_scales=True).log_scales
        drawn.append(logs[0])
    u = np.linspace(-1.2, 1.2, 161)
    s = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1)
    log_p = -(s**2 / H).sum(axis=-1)
    for row, sign in zip(rows, 1 - 2 * codes, strict=True):
        seen = ~np.isnan(row)
        off = (row * np.exp(-sign * s) - [1.0, 2.0])[..., seen]
        precision = np.linalg.inv(covariance[np.ix_(seen, seen)])
        log_p -= 0.5 * np.einsum("abi,ij,abj->ab", off, precision, off)
        log_p -= sign * s[..., seen].sum(axis=-1)
    p = np.exp(log_p - logsumexp(log_p))
    for c in range(2):
        mass = p.sum(axis=1 - c)
        below = np.cumsum(mass) - mass / 2
        values = np.array(drawn)[200::20, c]
        assert kstest(values, lambda at, b=below: np.interp(at, u, b)).pvalue > DOUBT


@pytest.mark.statistical
@pytest.mark.parametrize("lost", [False, True])
def test_scales_of_two_columns_against_quadrature(lost):
    check_scales(lost=lost)


# -- exact posteriors of the labels ----------------------------------------------------


@dataclass(frozen=True)
class OfTwo:
    """Rows of two subjects with opposite offsets, or scales, by quadrature over these.

    The law gives log marginals of many sets of rows at once, (n_points, n_rows, width).
    """

    law: object
    codes: tuple
    order: int = 0
    has_scales: bool = False
    counts_tables = False
    variance: float = 1.5

    @cached_property
    def points(self):
        """Offsets of the first subject, logs of its scale, and log weights."""

        def grid(variance, n, reach):
            u = np.linspace(-reach, reach, n)
            at, log_width = 0.3 * np.sinh(u), np.log(np.cosh(u))
            D = np.exp(np.linspace(-14, 14, 500))
            # The root of D is half-Cauchy; of two numbers of sum zero one is N(0, D / 2).
            log_p = 0.5 * np.log(D) - np.log1p(D / variance)
            log_p = log_p - 0.5 * np.log(D) - at[:, None] ** 2 / D
            return at, logsumexp(log_p, axis=1) + log_width

        b, log_b = grid(self.variance, 301, 4.2)
        if not self.has_scales:
            return b, np.zeros_like(b), log_b
        s, log_s = grid(1 / 16, 81, 3.0)
        b, s = (part.ravel() for part in np.meshgrid(b[::3], s, indexing="ij"))
        return b, s, (log_b[::3, None] + log_s).ravel()

    @cached_property
    def _found(self) -> dict:
        return {}

    def log_points(self, x, y):
        """log p(y, offsets and scales | x)."""
        b, s, log_w = self.points
        rows, signs = np.array(y, float), 1 - 2.0 * np.array(self.codes)
        rows = rows.reshape(len(rows), -1)
        total = log_w.copy()
        for state in set(x):
            here = np.equal(x, state)
            key = here.tobytes()
            if key not in self._found:
                shifted = rows[here] - b[:, None, None] * signs[here][:, None]
                shifted = shifted * np.exp(-s[:, None, None] * signs[here][:, None])
                log_p = self.law.log_marginals(shifted)
                self._found[key] = log_p - s * (signs[here] * ~np.isnan(rows[here, 0])).sum()
            total = total + self._found[key]
        return total

    def log_likelihood_by_tables(self, x, y):
        """``{0: log p(y | x)}``."""
        return {0: float(logsumexp(self.log_points(x, y)))}

    def stats(self, y):
        """Compiled statistics."""
        effects = SubjectEffects(self.codes, 2, [self.variance], self.has_scales)
        return _conjugate_stats.open_effects(self.law.stats(tuple(y)), effects)


@dataclass(frozen=True)
class Levels(DiagonalGaussian):
    """One column."""

    def log_marginals(self, rows):
        """log p(rows of one state), by point."""
        y = rows[:, ~np.isnan(rows[0, :, 0]), 0]
        n, kappa = y.shape[1], self.strength
        if n == 0:
            return np.zeros(len(rows))
        mean = y.mean(axis=1)
        squares = ((y - mean[:, None]) ** 2).sum(axis=1)
        squares = squares + kappa * n / (kappa + n) * (mean - self.mean[0]) ** 2
        lp = gammaln(self.shape + n / 2) - gammaln(self.shape) - n / 2 * np.log(2 * np.pi)
        lp = lp + 0.5 * np.log(kappa / (kappa + n)) + self.shape * np.log(self.scale[0])
        return lp - (self.shape + n / 2) * np.log(self.scale[0] + squares / 2)


@dataclass(frozen=True)
class Series(Autoregression):
    """One column on its last value."""

    def log_marginals(self, rows):
        """log p(rows of one state), by point."""
        rows = rows[:, ~np.isnan(rows[0]).any(axis=1)]
        y, x = rows[:, :, 0], np.stack([rows[:, :, 1], np.ones_like(rows[:, :, 0])], axis=2)
        n, M, prior = y.shape[1], np.array(self.mean[0]), np.diag(self.strength)
        P = np.einsum("pti,ptj->pij", x, x) + prior
        h = np.einsum("pti,pt->pi", x, y) + prior @ M
        A = np.linalg.solve(P, h[..., None])[..., 0]
        scale = self.scale[0][0] + M @ prior @ M + (y**2).sum(axis=1) - (A * h).sum(axis=1)
        lp = 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(P)[1])
        lp = lp + gammaln((self.dof + n) / 2) - gammaln(self.dof / 2) - n / 2 * np.log(np.pi)
        lp = lp + self.dof / 2 * np.log(self.scale[0][0])
        return lp - (self.dof + n) / 2 * np.log(scale)


NUMBERS = Levels((0.0,), 0.25, 2.0, (0.6,))
AR = Series(1, (0.0,), (1.0,), ((0.3, 0.5),), (1.5, 0.4), 4.0, ((1.0,),))
VALUES = (0.0, 0.4, 2.6, 2.2, 1.2, 3.1, 3.8)
PAIRS = tuple(zip(VALUES, (np.nan, 0.0, 0.4, np.nan, 2.2, 1.2, 3.1), strict=True))
MODELS = {
    "levels": Model((0.0, 0.3, 2.4, 1.1, 3.3, 3.9), OfTwo(NUMBERS, (0, 0, 1, 1, 1, 1)), (0, 2)),
    "scales": Model(
        (0.0, 0.3, 2.4, 1.1, np.nan, 6.9),
        OfTwo(NUMBERS, (0, 0, 0, 1, 1, 1), has_scales=True),
        (0, 3),
    ),
    "series": Model(PAIRS, OfTwo(AR, (0, 0, 0, 1, 1, 1, 1), order=1), (0, 3)),
}


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), crossed(MODELS, WITH_DRAWS))
def test_labels_against_enumeration(name, sampler):
    assert_exact(MODELS[name], with_draws(sampler), n_sweeps=1500)


def check_numbers(name):
    """Posterior means of offsets, of their variance and of scales, against quadrature."""
    model = MODELS[name]
    b, s, _ = model.emission.points
    law = np.zeros(2)
    for x, p in model.posterior.probabilities.items():
        log_p = model.emission.log_points(x, model.y)
        weights = np.exp(log_p - logsumexp(log_p))
        law += p * np.array([weights @ np.tanh(b), weights @ s])

    def values_of(state):
        record = state.to_arrays()["emission"]["subjects"]
        numbers = SubjectNumbers.of_record(record, 1, has_scales=s.any())
        return [np.tanh(numbers.offsets[0, 0]), np.log(numbers.scales[0, 0])]

    found = chain_means(model, values_of)
    off, error = np.mean(found, axis=0) - law, np.std(found, axis=0) / np.sqrt(11)
    assert (abs(off) <= 5 * error).all(), (off, error)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["levels", "scales", "series"])
def test_numbers_of_subjects_against_quadrature(name):
    check_numbers(name)


# -- fits ------------------------------------------------------------------------------


def simulated(seed=0, n_subjects=8, n=150, gain=0.0):
    """Two states of every subject, 3 apart, and the subjects' levels and scales."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.integers(2, size=(n_subjects, n // 25)), 25, axis=1)
    states[:, 0], states[:, -1] = 0, 1
    levels = rng.normal([0.0, 100.0], 3, (n_subjects, 2))
    scales = np.exp(rng.normal(0, gain, (n_subjects, 2)))
    means = np.array([[0.0, 1.0], [3.0, -2.0]])
    values = means[states] + 0.7 * rng.normal(size=(n_subjects, n, 2))
    X = levels[:, None] + scales[:, None] * values
    subjects = np.repeat(np.arange(n_subjects), n)
    return (X.reshape(-1, 2), subjects, states.ravel(), levels - levels.mean(axis=0), scales)


def fit(emission, X, subjects, **settings):
    settings = {"n_burnin": 60, "n_draws": 10, "random_state": 0} | settings
    return HCRPHMM(emission=emission, **settings).fit(
        np.column_stack([X, subjects]), groups=subjects
    )


@pytest.mark.parametrize("kind", [NormalInverseGamma, NormalInverseWishart])
@pytest.mark.parametrize("gain", [0.0, 0.25])
def test_states_are_those_of_all_subjects(kind, gain):
    X, subjects, states, levels, scales = simulated(gain=gain)
    hmm = fit(kind(subject_feature=2, subject_scale=gain > 0), X, subjects)
    assert adjusted_rand_score(states, hmm.labels_) > 0.97
    assert hmm.emission_.subjects_ == tuple(range(8))
    assert_allclose(hmm.emission_.subject_offsets_.sum(axis=0), 0, atol=1e-9)
    if gain == 0:
        off = hmm.emission_.subject_offsets_ - levels
        assert np.sqrt((off**2).mean()) < 0.15
    else:
        found = np.log(hmm.emission_.subject_scales_) - np.log(scales)
        assert (abs(found - found.mean(axis=0)) < 0.2).all()
    # Without the subjects every one has states of its own.
    other = HCRPHMM(emission="diagonal_gaussian", n_burnin=60, n_draws=10, random_state=0)
    assert adjusted_rand_score(states, other.fit(X, groups=subjects).labels_) < 0.6


def test_levels_of_an_autoregression():
    rng = np.random.default_rng(1)
    states = np.repeat(np.arange(24) % 2, 50)
    X, subjects = np.zeros((1200, 1)), np.repeat(np.arange(6), 200)
    for t in range(1, 1200):
        X[t] = [2.0, -2.0][states[t]] * 0.5 + 0.5 * X[t - 1] + 0.5 * rng.normal()
    levels = rng.normal(0, 4, 6)
    emission = AutoregressiveNormal(1, subject_feature="who")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"y": X[:, 0] + levels[subjects], "who": subjects.astype(str)})
    hmm = HCRPHMM(emission=emission, n_burnin=60, n_draws=10, random_state=0)
    hmm.fit(frame, groups=subjects)
    assert adjusted_rand_score(states, hmm.labels_) > 0.85
    off = hmm.emission_.subject_offsets_[:, 0] - levels + levels.mean()
    assert np.sqrt((off**2).mean()) < 0.4
    # The subject is where the user said, in all methods.
    assert_array_equal(hmm.predict(frame, groups=subjects).shape, (1200,))
    with pytest.raises(ValueError, match="but belong to two subjects, '0' and '1'"):
        HCRPHMM(emission=emission).fit(frame)


def test_shifted_subjects_have_the_same_states():
    """Known subjects: scores and paths do not depend on their levels."""
    X, subjects, *_ = simulated()
    emission = NormalInverseGamma(mean=0.0, strength=0.1, scale=1.0, subject_feature=2)
    moved = X + np.where(subjects == 3, 2.0, -0.4)[:, None]
    one, other = (fit(emission, Y, subjects) for Y in (X, moved))
    assert_array_equal(one.labels_, other.labels_)
    off = other.emission_.subject_offsets_ - one.emission_.subject_offsets_
    assert_allclose(off[3], 2.0, atol=0.3)
    assert_allclose(np.delete(off, 3, axis=0), -0.4, atol=0.3)


def test_one_subject_is_as_without():
    X, subjects, *_ = simulated(n_subjects=1)
    # From one state: the best try of a start goes on as the chain only without subjects.
    with pytest.warns(UserWarning, match="X has one subject, 0.0, whose level"):
        hmm = fit(NormalInverseGamma(subject_feature=2), X, subjects, init="single")
    plain = HCRPHMM(
        emission="diagonal_gaussian", init="single", n_burnin=60, n_draws=10, random_state=0
    )
    assert_array_equal(hmm.labels_, plain.fit(X, groups=subjects).labels_)
    assert_array_equal(hmm.emission_.means_, plain.emission_.means_)


def test_a_subject_that_shows_one_state_is_warned_of():
    rng = np.random.default_rng(0)
    states = np.arange(800) // 10 % 2
    states[700:] = 0
    subjects = np.array(list("abcdefgh")).repeat(100)
    levels = rng.normal(0, 3, 8).repeat(100)
    y = 3.0 * states + levels + rng.standard_normal(800)
    X = pytest.importorskip("pandas").DataFrame({"y": y, "who": subjects})
    emission = NormalInverseGamma(subject_feature="who")
    hmm = HCRPHMM(emission=emission, n_burnin=60, n_draws=10, random_state=0)
    with pytest.warns(UserWarning, match="All rows of 'h' .* are in one state"):
        hmm.fit(X, groups=subjects)
    assert hmm.n_states_ == 2
    # A column that states differ in by more than subjects tells.
    X["z"] = 30.0 * states + rng.standard_normal(800)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hmm.fit(X, groups=subjects)


def test_missing_entries_are_those_of_their_subject():
    X, subjects, states, *_ = simulated()
    lost = X.copy()
    rng = np.random.default_rng(3)
    lost[rng.random(len(X)) < 0.1, 0] = np.nan
    rows = np.isnan(lost[:, 0])
    for kind in (NormalInverseGamma, NormalInverseWishart):
        hmm = fit(kind(subject_feature=2), lost, subjects)
        assert adjusted_rand_score(states, hmm.labels_) > 0.95
        whole = hmm.impute(np.column_stack([lost, subjects]), groups=subjects)
        assert np.sqrt(np.mean((whole[rows, 0] - X[rows, 0]) ** 2)) < 0.9
        drawn = hmm.impute(np.column_stack([lost, subjects]), groups=subjects, method="sample")
        assert np.sqrt(np.mean((drawn[rows, 0] - X[rows, 0]) ** 2)) < 1.3


def test_parts_of_a_product_have_subjects():
    X, subjects, states, *_ = simulated()
    counts = np.random.default_rng(0).poisson(2 + 8 * states)
    emission = ProductEmission(
        [("a", NormalInverseGamma(subject_feature=3), [0, 1]), ("b", "poisson", [2])]
    )
    hmm = fit(emission, np.column_stack([X, counts]), subjects)
    assert adjusted_rand_score(states, hmm.labels_) > 0.97
    assert hmm.emission_.named_emissions_.a.subject_offsets_.shape == (8, 2)
    table = np.column_stack([X, counts, subjects])
    assert np.isfinite(hmm.score(table, groups=subjects))
    # Predictions know which column of the inputs is the part's subject.
    coming = hmm.predict_next(table, 1, groups=subjects).mean()[0]
    near = X[subjects == 7].mean(axis=0)
    assert_allclose(coming[:2], near, atol=4.0)
    lost = table.copy()
    lost[9, 0] = np.nan
    assert_allclose(hmm.impute(lost, groups=subjects)[9, 0], table[9, 0], atol=3.0)
    live = OnlineFilter(hmm)
    live.update(table[-3:])
    assert_allclose(live.predict_next(1).mean()[0, :2], near, atol=4.0)


@pytest.mark.parametrize(
    "emission",
    [
        NormalInverseWishart(subject_feature=2),
        AutoregressiveNormal(0, input_features=[1], subject_feature=2),
        ProductEmission(
            [("a", NormalInverseGamma(subject_feature=2), [0]), ("b", "gaussian", [1])]
        ),
    ],
)
def test_parameters_and_panels_without_a_subject(emission):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    X, subjects, *_ = simulated(n=50)
    hmm = fit(emission, X, subjects)
    EmissionDisplay.from_estimator(hmm)
    assert draw_parameters(hmm).transmat_.shape == (hmm.n_states_ + 1,) * 2


def test_residuals_and_scores_of_known_subjects():
    X, subjects, states, levels, scales = simulated(gain=0.3)
    hmm = fit(NormalInverseGamma(subject_feature=2, subject_scale=True), X, subjects)
    residuals = hmm.residuals(np.column_stack([X, subjects]), groups=subjects)
    assert kstest(residuals.ravel(), "norm").pvalue > 0.01
    # The density is that of the data, not of what the states emit.
    true = np.array([[0.0, 1.0], [3.0, -2.0]])[states]
    centred = (X - (levels + 0)[subjects]) / scales[subjects]
    off = centred - true
    off = off - np.array([off[subjects == u].mean(axis=0) for u in range(8)])[subjects]
    log_p = norm.logpdf(off, scale=0.7) - np.log(scales[subjects])
    log_p = log_p.sum(axis=1).mean()
    score = hmm.score(np.column_stack([X, subjects]), groups=subjects)
    assert abs(score - log_p) < 0.15


def test_bad_subjects():
    X, subjects, *_ = simulated()
    frame = np.column_stack([X, subjects])
    frame[5, 2] = np.nan
    hmm = HCRPHMM(emission=NormalInverseGamma(subject_feature=2))
    with pytest.raises(ValueError, match="The subject of row 5 of X is missing"):
        hmm.fit(frame, groups=subjects)
    with pytest.raises(TypeError, match="the name or the index of one column"):
        HCRPHMM(emission=NormalInverseGamma(subject_feature=[2])).fit(frame, groups=subjects)
    with pytest.raises(ValueError, match="there are no subjects; name their column"):
        HCRPHMM(emission=NormalInverseGamma(subject_scale=True)).fit(X)
    hmm = fit(NormalInverseGamma(subject_feature=2), X, subjects, n_burnin=2, n_draws=2)
    table = np.column_stack([X, subjects])
    with pytest.raises(ValueError, match="X has a sequence of several subjects"):
        hmm.predict(table)
    named = table.astype(object)
    named[:, 2] = "anna"
    with pytest.raises(TypeError, match="subject_feature=2 has 'anna'; in fit it had num"):
        hmm.predict(named)
    plain = HCRPHMM(emission="gaussian", n_burnin=2, n_draws=2).fit(X)
    with pytest.raises(ValueError, match="the emission has no subjects"):
        plain.sample(subject="anna")


# -- planted errors --------------------------------------------------------------------

CAUGHT = {
    "offsets less their mean": (check_offsets, "full"),
    "a degree of freedom too many": (check_numbers, "levels"),
    "offsets without a prior": (check_offsets, "diagonal"),
    "slopes of the values alone": (check_offsets, "autoregression"),
    "earlier rows of no subject": (check_offsets, "autoregression"),
    "a scale without its jacobian": (check_numbers, "scales"),
    "scales without other columns": (check_scales,),
    "too many values of a scale": (check_scales,),
    "scales without filled entries": (lambda: check_scales(lost=True),),
}


@pytest.mark.statistical
@pytest.mark.parametrize("error", CAUGHT)
def test_planted_errors_are_noticed(monkeypatch, error):
    places = [(conjugate, "conjugate_stats"), (_conjugate_stats, "open_effects")]
    assert_noticed(monkeypatch, CONJUGATE, error, places, *CAUGHT[error])


# -- the numbers alone -----------------------------------------------------------------


def test_prior_densities_are_of_numbers_that_sum_to_zero():
    """All but the last are normal with the covariance D (I - 1 / n)."""
    rng = np.random.default_rng(0)
    offsets, logs = rng.normal(size=(2, 4, 1))
    offsets, logs = offsets - offsets.mean(axis=0), logs - logs.mean(axis=0)
    ones, share = np.ones((2, 1)), np.eye(3) - 1 / 4

    def log_p(values, D):
        return multivariate_normal.logpdf(values[:3, 0], cov=D * share)

    def log_prior(D, H):
        return SubjectNumbers(D * ones, offsets, H * ones, logs).log_prior()

    found = log_prior(3.0, 0.2) - log_prior(0.5, 0.7)
    expected = log_p(offsets, 3.0) - log_p(offsets, 0.5)
    expected += log_p(logs, 0.2) - log_p(logs, 0.7)
    assert_allclose(found, expected, rtol=1e-10)


def test_sampled_subjects_deviate_from_the_mean_of_the_others():
    """That of two subjects has half of the variance of one."""
    zeros, ones = np.zeros((2, 20_000)), np.ones((2, 20_000))
    numbers = SubjectNumbers(3.0 * ones, zeros, 0.1 * ones, zeros)
    drawn = numbers.with_drawn(np.random.default_rng(0))
    assert_allclose(drawn.offsets[2].var(), 1.5 * 3.0, rtol=0.05)
    assert_allclose(drawn.log_scales[2].var(), 1.5 * 0.1, rtol=0.05)


# -- every error -----------------------------------------------------------------------


def test_every_planted_error_has_a_check():
    assert CAUGHT.keys() == SUBJECTS.keys()


@pytest.mark.parametrize(
    ("emission", "far"),
    [
        # Every emission and both distances; the other pairs are slow.
        pytest.param(emission, far, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, emission in enumerate(
            [
                NormalInverseGamma(subject_feature=2),
                NormalInverseWishart(subject_feature=2),
                AutoregressiveNormal(1, subject_feature=2),
                NormalInverseGamma(subject_feature=2, subject_scale=True),
            ]
        )
        for j, far in enumerate([300.0, 1e6])
    ],
)
def test_a_far_subject_leaves_the_others_their_states(emission, far):
    X, subjects, states, *_ = simulated()
    others = subjects != 3
    X[:, 0] += far * ~others
    text = r"In column 0 of X subjects \(subject_feature=2\) .*: 3.0 \(median "
    with pytest.warns(UserWarning, match=text):
        hmm = fit(emission, X, subjects)
    least = 0.9 if isinstance(emission, AutoregressiveNormal) else 0.97
    assert adjusted_rand_score(states[others], hmm.labels_[others]) > least


def test_rows_without_the_levels_of_subjects():
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(8), [100, 100, 100, 100, 100, 100, 4, 100])
    x = rng.normal(size=(len(subjects), 2))
    X = x + 10.0 * rng.normal(size=(8, 2))[subjects]
    X[subjects == 6] += 1e9  # few rows
    X[subjects == 2, 0] *= 1e3  # another unit
    X[::7, 1] = np.nan
    medians = subject_medians(X, subjects, 8)
    assert_allclose(medians[3], np.nanmedian(X[subjects == 3], axis=0))
    rows = levelled(X, subjects, medians)
    lost = np.isin(subjects[:, None], [2, 6]) & [True, False] | np.isnan(X)
    lost[subjects == 6] = True
    assert_array_equal(np.isnan(rows), lost)
    assert_allclose(np.nanstd(rows, axis=0), 1, atol=0.1)
    assert_allclose(np.nanmedian(rows, axis=0), np.nanmean(medians, axis=0), atol=0.1)
    # Columns in which little is left: levels alone, and a row of every subject.
    assert_array_equal(levelled(medians[subjects], subjects, medians), medians[subjects])
    each = np.arange(len(X))
    assert_array_equal(levelled(X, each, X), X)
    # Wide levels are far from no other level.
    args = subjects, medians, list("abcdefgh"), ["u", "v"], "who"
    (one, other) = describe_far(X, *args)
    assert "'g'" in one
    assert "'a'" not in one
    assert "'g'" in other
    wide = rng.normal(size=(8, 2)) * 1e4
    medians = subject_medians(x + wide[subjects], subjects, 8)
    assert not describe_far(x + wide[subjects], subjects, medians, *args[2:])
