"""Negative binomial, gamma and von Mises emissions."""

from __future__ import annotations

import numpy as np
import pytest
from reference.conjugate import Angles, Gamma, NegativeBinomial, Poisson
from scipy import special, stats
from sklearn.metrics import adjusted_rand_score
from small_models import Model, log_row

from skihmm import HCRPHMM
from skihmm.emissions import BetaNegativeBinomial, GammaGamma, ProductEmission, VonMises

# The first slot of a state.
FIRST = 2
SHORT = {"n_burnin": 20, "n_draws": 5, "random_state": 0}
SEGMENTS = np.repeat([0, 1, 2, 1, 0, 2], 60)


def data(kind, rng):
    """Three states with a dispersion of 0.1, and their means."""
    if kind == "von_mises":
        means = np.array([3.0, 1.0, -1.5])
        return rng.vonmises(means[SEGMENTS], 10.0)[:, None], means
    means = np.array([8.0, 60.0, 500.0])
    X = means[SEGMENTS] * rng.gamma(10.0, 0.1, size=len(SEGMENTS))
    return (rng.poisson(X) if kind == "negative_binomial" else X)[:, None], means


@pytest.mark.parametrize("kind", ["negative_binomial", "gamma", "von_mises"])
def test_recovery(kind, global_random_seed):
    X, means = data(kind, np.random.default_rng(global_random_seed))
    hmm = HCRPHMM(emission=kind, n_burnin=200, n_draws=40, random_state=0).fit(X)
    assert adjusted_rand_score(SEGMENTS, hmm.labels_) > 0.95
    found = hmm.emission_.directions_ if kind == "von_mises" else hmm.emission_.means_
    expected = means[[np.bincount(SEGMENTS[hmm.labels_ == k]).argmax() for k in range(3)]]
    np.testing.assert_allclose(found[:3, 0], expected, rtol=0.2)
    dispersion = hmm.draws_.hyperparameters["emission_dispersion"]
    assert np.median(dispersion) == pytest.approx(0.1, rel=0.3)


def test_overdispersed_counts_are_no_further_states(global_random_seed):
    X, _ = data("negative_binomial", np.random.default_rng(global_random_seed))
    n_states = [
        np.median(HCRPHMM(emission=emission, n_burnin=200, random_state=0).fit(X).draws_.n_states)
        for emission in ("negative_binomial", "poisson")
    ]
    assert n_states[0] <= 4 < 8 <= n_states[1]


@pytest.mark.parametrize("y", [0.0, 3.0, 40.0])
def test_without_dispersion_counts_are_poisson(y):
    """Compiled probabilities at the smallest dispersions that are drawn."""
    poisson = Poisson((2.0,), (0.5,))
    state = Model((4.0, 7.0, y), NegativeBinomial((2.0,), (0.5,), (1e-8,))).state(
        0, np.array([0, 0, 1])
    )
    row = log_row(state, 2)
    for slot, seen in ((FIRST, np.array([[4.0], [7.0]])), (0, np.zeros((0, 1)))):
        expected = poisson.log_predictive(seen, np.array([y]))
        assert row[slot] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", [BetaNegativeBinomial, GammaGamma])
def test_units_of_the_data_do_not_matter(kind):
    """A column of large numbers has the same states in another unit."""
    X, _ = data("gamma", np.random.default_rng(0))
    X = np.rint(1e5 * X)
    fits = [
        HCRPHMM(emission=kind(), init=SEGMENTS, **SHORT).fit(X * unit) for unit in (1.0, 1024.0)
    ]
    if kind is GammaGamma:
        np.testing.assert_array_equal(fits[0].draws_.states, fits[1].draws_.states)
    assert adjusted_rand_score(*(fit.labels_ for fit in fits)) > 0.95


def test_marginals_against_integration():
    """Mixtures over the mean of a state, by quadrature."""
    u = (np.arange(200_000) + 0.5) / 200_000
    y = np.array([[3.0], [11.0]])
    q = stats.beta.ppf(u, 0.5 / 0.3, 2.0)
    counts = np.mean(stats.nbinom.pmf(y, 1 / 0.3, q).prod(axis=0))
    found = NegativeBinomial((2.0,), (0.5,), (0.3,)).log_likelihood_by_tables([0, 0], y)
    assert found[0] == pytest.approx(np.log(counts), rel=1e-5)
    mean = 1 / stats.gamma.ppf(u, 2.0, scale=1 / 1.5)
    numbers = np.mean(stats.gamma.pdf(y, 1 / 0.3, scale=0.3 * mean).prod(axis=0))
    found = Gamma((2.0,), (1.5,), (0.3,)).log_likelihood_by_tables([0, 0], y)
    assert found[0] == pytest.approx(np.log(numbers), rel=1e-5)


@pytest.mark.parametrize("dispersion", [1e-6, 0.01, 0.12, 0.125, 0.5, 30.0])
def test_concentrated_angles(dispersion):
    """The compiled Bessel function against SciPy's, on both sides of its argument 8."""
    emission, y = Angles((dispersion,)), (0.3, 0.4, -2.0, 0.35, 6.2, 0.3001)
    labels = np.array([0, 0, 1, 0, 1, 0])
    state = Model(y, emission).state(0, labels)
    prior = Model((None,) * 6, emission).state(0, labels).log_joint()
    expected = emission.log_likelihood_by_tables(labels.tolist(), y)[0]
    assert state.log_joint() - prior == pytest.approx(expected, rel=1e-11, abs=1e-9)


@pytest.mark.parametrize("dispersion", [1e3, 2.0, 0.12, 0.01, 1.001e-3, 0.999e-3, 1e-8])
def test_means_of_angles(dispersion):
    """Of exp(i angle), of two rows in one state."""
    state = Model((0.3, 0.4), Angles((dispersion,))).state(0)
    ((found,),) = state.emission.predictives(np.array([2], np.int32))
    total = np.exp(0.3j) + np.exp(0.4j)
    expected = total / abs(total)
    for kappa in (1 / dispersion, abs(total) / dispersion):
        expected *= special.i1e(kappa) / special.i0e(kappa)
    assert found == pytest.approx(expected, rel=1e-14)


def test_angles_do_not_break_at_the_border():
    rng = np.random.default_rng(0)
    X = rng.vonmises(np.repeat([np.pi, 0.0], 100), 10.0)[:, None]
    hmm = HCRPHMM(emission="von_mises", n_burnin=100, n_draws=20, random_state=0).fit(X)
    assert hmm.n_states_ == 2
    shifted = np.mod(X, 2 * np.pi)
    np.testing.assert_allclose(hmm.score(shifted), hmm.score(X), rtol=1e-9)
    assert abs(hmm.sample(500, random_state=0)[0]).max() <= np.pi


def test_degrees_and_hours():
    """The same states in any unit; densities are those of the data's unit."""
    X, _ = data("von_mises", np.random.default_rng(0))
    fits = [
        HCRPHMM(emission=VonMises(period), **SHORT).fit(X * period / (2 * np.pi))
        for period in (2 * np.pi, 360.0, 24.0)
    ]
    assert np.ptp([fit.labels_ for fit in fits], axis=0).max() == 0
    for fit, period in zip(fits, (2 * np.pi, 360.0, 24.0), strict=True):
        unit = period / (2 * np.pi)
        score = fit.score(X * unit) + np.log(unit)
        assert score == pytest.approx(fits[0].score(X), rel=1e-9)
        found = fit.emission_.directions_ / unit
        np.testing.assert_allclose(found, fits[0].emission_.directions_, rtol=1e-9)
        assert abs(fit.sample(500, random_state=0)[0]).max() <= period / 2


def test_means_are_directions():
    """Those of hours around midnight are those around noon, half a day later."""
    rng = np.random.default_rng(0)
    noon = np.column_stack([rng.vonmises(0.0, 2.0, 120), rng.normal(size=120)])
    noon[::10] = np.nan
    noon[:, 0] *= 12 / np.pi
    midnight = noon + np.where(noon > 0, -12, 12) * [1, 0]
    parts = [("time", VonMises(24.0), [0]), ("size", "diagonal_gaussian", [1])]
    found = []
    for X in noon, midnight:
        hmm = HCRPHMM(emission=ProductEmission(parts), init="single", **SHORT).fit(X)
        following = hmm.predict_next(X, 2)
        found.append(np.vstack([following.mean(), hmm.impute(X)[::10]]))
    assert (abs(found[0][:, 0]) < 2).all()
    np.testing.assert_allclose(abs(found[0] - found[1])[:, 0], 12.0, rtol=1e-6)
    np.testing.assert_allclose(found[0][:, 1], found[1][:, 1], rtol=1e-6)
    turns = following.sample(20_000, random_state=1)[:, 0, 0] / 24.0
    drawn = 24.0 * np.angle(np.exp(2j * np.pi * turns).mean()) / (2 * np.pi)
    assert abs(np.remainder(drawn - found[1][0, 0] + 12.0, 24.0) - 12.0) < 0.2


def test_limit_of_detection():
    X, _ = data("gamma", np.random.default_rng(0))
    low = X < 5
    assert low.sum() > 5
    fits = [
        HCRPHMM(emission=GammaGamma(least=5.0), **SHORT).fit(np.where(low, value, X))
        for value in (0.0, 4.9, 5.0)
    ]
    for fit in fits:
        np.testing.assert_array_equal(fit.draws_.lp, fits[2].draws_.lp)


@pytest.mark.parametrize(
    ("emission", "X", "message"),
    [
        ("negative_binomial", [[1.0], [-1.0]], r"Negative values .* X\[1, 0\] = -1"),
        ("negative_binomial", [[1.0], [1.5]], r"X\[1, 0\] = 1.5 is not an integer"),
        ("gamma", [[1.0], [0.0]], r"X\[1, 0\] = 0 is zero; expected numbers > 0"),
        ("gamma", [[1.0], [-2.0]], r"Negative values .* X\[1, 0\] = -2"),
        ("gamma", [[1.0], [1e200]], r"X\[1, 0\] = 1e\+200 is more than"),
        (
            "gamma",
            [[1e6], [1e6 + 1]],
            r"deviation of column 0 of X is 5e-07 times its mean .* 3.2e-05 or more",
        ),
        (GammaGamma(dispersion=1e-12), [[1.0]], "dispersion=1e-12; expected .* 1e-10"),
        ("von_mises", [[1.0], [90.0]], r"X\[1, 0\] = 90, but period=6.283.* 360 for degrees"),
    ],
)
def test_values_out_of_range(emission, X, message):
    with pytest.raises(ValueError, match=message):
        HCRPHMM(emission=emission, **SHORT).fit(X)


def test_numbers_that_repeat_keep_their_digits():
    """Their dispersion is drawn as small as it may be."""
    X = np.tile([[1.0], [1.02]], (40, 1))
    hmm = HCRPHMM(emission="gamma", n_burnin=200, n_draws=10, random_state=0).fit(X)
    dispersions = hmm.draws_.hyperparameters["emission_dispersion"]
    assert 1e-10 <= dispersions.min() < 1e-9


def test_chains_of_concentrated_angles_go_on():
    """Large concentrations show rounding errors, which are no damage of a record."""
    rng = np.random.default_rng(0)
    still = 1 + 1e-5 * rng.normal(size=1000)
    X = np.c_[still, rng.vonmises(np.resize(np.repeat([0.0, 1.5], 10), 1000), 3.0)]
    short = {"n_burnin": 300, "n_draws": 1, "random_state": 0}
    hmm = HCRPHMM("stepwise", "von_mises", warm_start=True, **short).fit(X)
    arrays = hmm._fit_state.chains[0].record["arrays"]
    stats = hmm.emission_.make_stats(hmm._fitted.sequences.codes)
    numbers = arrays["emission"]["numbers"].copy()
    numbers[0, 1] *= 1 + 1e-8  # a sum of cosines
    with pytest.raises(ValueError, match="differ from a recount"):
        stats.check_arrays({**arrays["emission"], "numbers": numbers}, arrays["states"])
    assert hmm.fit(X).draws_.shape == (1, 2)
