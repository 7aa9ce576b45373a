"""The oracles are tested against each other before anything is tested against them."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from reference.enumeration import (
    DirichletEmission,
    GammaPrior,
    GaussianEmission,
    HCRPEmission,
    Posterior,
    canonical,
    concentration_posterior,
    evidence_continued,
    log_evidence,
    log_likelihood,
    log_prior,
    log_prior_by_tables,
    posterior_over_concentrations,
    root_concentration_posterior,
    set_partitions,
    stirling,
)
from reference.seating import NaiveHMM, all_outcomes, all_seatings
from reference.statistics import (
    cdf_frequencies,
    frequency_table,
    total_variation_test,
    two_sample_test,
    unbiased_mean_test,
    uniform_test,
)
from scipy import integrate, stats

HCRP = HCRPEmission(3, 0.8, 1.3)
DIRICHLET = DirichletEmission(3, 0.4)


# -- partitions and priors ------------------------------------------------------------


@pytest.mark.parametrize(("n_steps", "bell"), [(0, 1), (1, 1), (2, 2), (5, 52), (7, 877)])
def test_number_of_partitions(n_steps, bell):
    partitions = list(set_partitions(n_steps))
    assert len(set(partitions)) == len(partitions) == bell
    assert all(canonical(x) == x for x in partitions)


def test_stirling_numbers_are_coefficients_of_rising_factorials():
    for n, c in itertools.product(range(8), (0.3, 2.0)):
        rising = math.prod(c + i for i in range(n))
        total = sum(stirling(n, m) * c**m for m in range(n + 1))
        assert total == pytest.approx(rising, rel=1e-13)


@pytest.mark.parametrize("starts", [(0,), (0, 2), (0, 1, 4), range(6)])
@pytest.mark.parametrize(("alpha", "gamma"), [(1.0, 1.0), (0.2, 7.0), (9.0, 0.5)])
def test_prior_sums_to_one(starts, alpha, gamma):
    total = sum(math.exp(log_prior(x, starts, alpha, gamma)) for x in set_partitions(6))
    assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("starts", [(0,), (0, 3)])
def test_prior_equals_sum_over_seatings(starts):
    """Product of predictives, summed over seatings, by the number of tables."""
    alpha, gamma = 1.7, 0.6
    for x in set_partitions(5):

        def seat(choose, x=x):
            return NaiveHMM([None] * 5, HCRP, starts, alpha, gamma, labels=x, choose=choose)

        # Weighting the choices of tables by the predictives gives the joint law of
        # labels and tables.
        found = defaultdict(float)
        for probability, model in all_outcomes(seat):
            found[model.transitions.n_tables] += probability * math.exp(model.log_seated)
        expected = log_prior_by_tables(x, starts, alpha, gamma)
        assert found.keys() == expected.keys()
        for m, log_p in expected.items():
            assert math.log(found[m]) == pytest.approx(log_p, abs=1e-12)
        assert math.fsum(found.values()) == pytest.approx(
            math.exp(log_prior(x, starts, alpha, gamma)), rel=1e-12
        )


def test_prior_of_two_steps_by_hand():
    """Two steps are in one state if the second draw meets the first table or its dish.

    The first step opens a table of the start restaurant, and the second is drawn from
    the empty restaurant of the first state: same dish with probability 1/(1 + gamma).
    """
    assert math.exp(log_prior((0, 0), (0,), 5.0, 3.0)) == pytest.approx(1 / 4)
    # As two sequences both are drawn from the start restaurant.
    expected = (1 + 5 * 1 / 4) / (1 + 5)
    assert math.exp(log_prior((0, 0), (0, 1), 5.0, 3.0)) == pytest.approx(expected)


# -- likelihoods ----------------------------------------------------------------------


@pytest.mark.parametrize("emission", [HCRP, DIRICHLET])
def test_likelihood_equals_sequential_predictives(emission):
    y, x = [0, 1, 0, None, 0, 2], (0, 1, 0, 1, 0, 0)

    def seat(choose):
        model = NaiveHMM([None], emission, labels=(0,), choose=choose)
        p = 1.0
        for state, symbol in zip(x, y, strict=True):
            p *= model.emissions.get_prob(state, (symbol,))
            model.emissions.add_customer(state, (symbol,), choose)
        return p, model.emissions.n_tables

    found = defaultdict(float)
    for probability, (p, e) in all_outcomes(seat):
        found[e] += probability * p
    expected = emission.log_likelihood_by_tables(x, y)
    assert found.keys() == expected.keys()
    for e, log_p in expected.items():
        assert math.log(found[e]) == pytest.approx(log_p, abs=1e-12)
    total = math.log(math.fsum(found.values()))
    assert log_likelihood(x, y, emission) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("emission", [HCRP, DIRICHLET])
@pytest.mark.parametrize("x", [(0, 0, 0, 0), (0, 1, 0, 0), (0, 1, 2, 0)])
def test_likelihood_sums_to_one(emission, x):
    total = sum(
        math.exp(log_likelihood(x, y, emission)) for y in itertools.product(range(3), repeat=4)
    )
    assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("emission", [HCRP, DIRICHLET])
def test_columns_are_independent_given_states(emission):
    y = np.array([[0, 1], [2, -1], [0, 1], [1, 1]])
    x = (0, 1, 0, 0)
    expected = sum(log_likelihood(x, column, emission) for column in y.T)
    assert log_likelihood(x, y, emission) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("missing", [None, -1, math.nan])
def test_missing_has_factor_one(missing):
    assert log_likelihood((0, 1), [missing, 1], HCRP) == pytest.approx(
        log_likelihood((0,), [1], HCRP)
    )
    assert log_likelihood((0, 1), [missing, missing], DIRICHLET) == 0


def test_gaussian_predictives_have_the_marginal_of_the_prior():
    """The closed form, where mean and variance of a state are integrated out."""
    mean, kappa, shape, scale = 0.5, 0.3, 1.2, 0.7
    y, x = np.array([0.1, 1.4, -0.7, math.nan, 0.2]), (0, 0, 1, 0, 0)
    expected = 0.0
    for values in (y[[0, 1, 4]], y[[2]]):
        n, centre = len(values), values.mean()
        squares = ((values - centre) ** 2).sum() + kappa * n * (centre - mean) ** 2 / (kappa + n)
        expected += math.lgamma(shape + n / 2) - math.lgamma(shape)
        expected += shape * math.log(scale) - (shape + n / 2) * math.log(scale + squares / 2)
        expected += (math.log(kappa / (kappa + n)) - n * math.log(2 * math.pi)) / 2
    found = log_likelihood(x, y, GaussianEmission(mean, kappa, shape, scale))
    assert found == pytest.approx(expected, abs=1e-12)


# -- posteriors and predictives -------------------------------------------------------


def test_posterior_views_agree():
    posterior = Posterior([0, 0, 1, None, 0], HCRP, (0, 2), 1.5, 2.0)
    assert sum(posterior.joint.values()) == pytest.approx(1)
    assert sum(posterior.probabilities.values()) == pytest.approx(1)
    for x, p in posterior.probabilities.items():
        log_p = log_prior(x, (0, 2), 1.5, 2.0) + log_likelihood(x, posterior.y, HCRP)
        assert math.log(p) == pytest.approx(log_p - posterior.log_evidence)


@pytest.mark.parametrize("emission", [HCRP, DIRICHLET])
def test_seatings_have_the_law_of_the_posterior(emission):
    """Seating in order, and the closed form of a seating, give the joint law."""
    y, starts, alpha, gamma = [0, 0, None, 1], (0, 2), 2.0, 1.5
    posterior = Posterior(y, emission, starts, alpha, gamma)
    cells = defaultdict(float)
    for model, probability in all_seatings(y, emission, starts, alpha, gamma).values():
        parts = [model.transitions]
        if emission is HCRP:
            parts += model.emissions.columns
            log_p = 0.0
        else:
            log_p = log_likelihood(model.x, y, emission)
        for part in parts:
            part.check()
            log_p += part.log_joint() + part.log_n_identities()
        assert math.log(probability) == pytest.approx(log_p - posterior.log_evidence, abs=1e-11)
        cells[model.cell] += probability
    assert cells == pytest.approx(posterior.joint, rel=1e-11)


# -- test data ------------------------------------------------------------------------


@pytest.mark.parametrize("emission", [HCRP, DIRICHLET])
def test_evidence_continued_averages_to_the_evidence(emission):
    """Averaged over the posterior of seatings it is a ratio of evidences."""
    y, y_test = [0, 1], [0, 1]
    total = 0.0
    for x in set_partitions(len(y)):

        def seat(choose, x=x):
            return NaiveHMM(y, emission, (0,), 1.4, 0.9, labels=x, choose=choose)

        for probability, model in all_outcomes(seat):
            log_p = evidence_continued(model.counts(), y_test, emission, 1.4, 0.9, model.x[-1])
            total += probability * math.exp(model.log_seated + log_p)
    expected = log_evidence([*y, *y_test], emission, (0,), 1.4, 0.9)
    assert math.log(total) == pytest.approx(expected, abs=1e-12)


# -- concentrations -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "n_tables", "prior"),
    [
        ([4, 1, 0, 7], 5, GammaPrior(1, 1)),
        ([1], 1, GammaPrior(0.5, 2)),
        ([50] * 40, 300, GammaPrior(2, 0.1)),
    ],
)
def test_concentration_posterior_against_quadrature(sizes, n_tables, prior):
    found = concentration_posterior(sizes, n_tables, prior)
    centre = found.mean

    def log_density(c):
        return (
            stats.gamma.logpdf(c, prior.shape, scale=1 / prior.rate)
            + n_tables * math.log(c)
            + sum(math.lgamma(c) - math.lgamma(c + n) for n in sizes)
        )

    def area(low, high):
        # Substituting c = v^4 tames the density at zero.
        def integrand(v):
            return math.exp(log_density(v**4) - log_density(centre)) * 4 * v**3

        return integrate.quad(
            integrand, low**0.25, high**0.25, epsabs=1e-12, epsrel=1e-10, limit=500
        )[0]

    points = [1e-18, *(centre * np.array([0.25, 0.5, 0.9, 1.0, 1.1, 2, 4])), 40 * centre]
    cumulative = np.cumsum([area(*pair) for pair in itertools.pairwise(points)])
    np.testing.assert_allclose(found.cdf(points[1:]), cumulative / cumulative[-1], atol=1e-6)


def test_concentration_posterior_without_information_is_the_prior():
    for found in (
        concentration_posterior([0, 0], 0, GammaPrior(2, 3)),
        concentration_posterior([1], 1, GammaPrior(2, 3)),
        root_concentration_posterior([], 5, GammaPrior(2, 3)),
        root_concentration_posterior([0, 1], 5, GammaPrior(2, 3)),
    ):
        points = [0.01, 0.3, 1.0, 3.0]
        expected = stats.gamma.cdf(points, 2, scale=1 / 3)
        np.testing.assert_allclose(found.cdf(points), expected, atol=1e-8)
        assert found.mean == pytest.approx(2 / 3, abs=1e-8)
        assert found.std == pytest.approx(math.sqrt(2) / 3, abs=1e-8)


def test_root_concentration_posterior_by_auxiliary_tables():
    """With the tables of the root summed out by Stirling numbers."""
    tables, size = (3, 2), 4
    found = root_concentration_posterior(tables, size)
    means, weights = [], []
    for t in itertools.product(range(1, 4), range(1, 3)):
        ways = math.prod(stirling(n, m) * size**-m for n, m in zip(tables, t, strict=True))
        if not ways:
            continue
        n_root = sum(t)
        part = concentration_posterior([sum(tables)], n_root)
        evidence = integrate.quad(
            lambda g, m=n_root: math.exp(
                -g + m * math.log(g) + math.lgamma(g) - math.lgamma(g + 5)
            ),
            0,
            np.inf,
        )[0]
        means.append(part.mean)
        weights.append(ways * evidence)
    assert found.mean == pytest.approx(np.average(means, weights=weights), rel=1e-6)


def test_posterior_over_concentrations_against_two_dimensional_quadrature():
    """Gauss-Laguerre rules in two dimensions for transitions and for emissions."""
    y, starts = [0, 0, 1], (0,)
    prior = GammaPrior(3, 1)
    found = posterior_over_concentrations(y, HCRPEmission(3, prior, prior), starts, prior, prior)
    nodes, weights = np.polynomial.laguerre.laggauss(30)
    weights = weights * nodes**2 / 2
    grid = list(itertools.product(zip(nodes, weights, strict=True), repeat=2))
    total = alpha = gamma_e = 0.0
    by_partition = {}
    for x in set_partitions(3):
        transition = [(v * w * math.exp(log_prior(x, starts, a, g)), a) for (a, v), (g, w) in grid]
        emitted = [
            (v * w * math.exp(log_likelihood(x, y, HCRPEmission(3, a, g))), g)
            for (a, v), (g, w) in grid
        ]
        p_x, p_y = (sum(p for p, _ in part) for part in (transition, emitted))
        by_partition[x] = p_x * p_y
        total += p_x * p_y
        alpha += p_y * sum(p * a for p, a in transition)
        gamma_e += p_x * sum(p * g for p, g in emitted)
    assert found.log_evidence == pytest.approx(math.log(total), abs=1e-6)
    assert found.means["alpha"] == pytest.approx(alpha / total, rel=1e-5)
    assert found.means["gamma_e"] == pytest.approx(gamma_e / total, rel=1e-5)
    for x, p in by_partition.items():
        assert found.probabilities[x] == pytest.approx(p / total, rel=1e-5)


def test_posterior_over_concentrations_does_not_depend_on_the_grid():
    y = np.array([[0, 1], [0, -1], [1, 1], [0, 0]])
    emission = HCRPEmission(2, GammaPrior(), GammaPrior(0.7, 2))
    coarse, fine = (
        posterior_over_concentrations(y, emission, (0, 2), n_points=n) for n in (801, 1501)
    )
    assert coarse.means == pytest.approx(fine.means, rel=1e-8)
    assert coarse.log_evidence == pytest.approx(fine.log_evidence, abs=1e-9)
    assert set(fine.means) == {"alpha", "gamma", "alpha_e", "gamma_e"}
    for marginal in fine.marginals.values():
        assert marginal.cdf(1e9) == pytest.approx(1)


# -- choices -----------------------------------------------------------------------


def test_all_outcomes_enumerates():
    def flips(choose):
        first = choose([1, 3])
        return (first, choose([1, 0, 1])) if first else (first,)

    found = {result: p for p, result in all_outcomes(flips)}
    assert found == {(0,): 0.25, (1, 0): 0.375, (1, 2): 0.375}


# -- statistics -----------------------------------------------------------------------


def _sticky_chains(rng, law, n_chains, n_draws=400, hold=0.8):
    """Chains that keep their value with a fixed probability."""
    chains = rng.choice(len(law), p=law, size=(n_chains, n_draws))
    stay = rng.random((n_chains, n_draws)) < hold
    for t in range(1, n_draws):
        chains[stay[:, t], t] = chains[stay[:, t], t - 1]
    return chains


@pytest.mark.statistical
def test_total_variation_test_is_calibrated():
    rng = np.random.default_rng(5)
    law = np.array([0.4, 0.3, 0.15, 0.1, 0.04, 0.009, 0.001])
    exact = dict(enumerate(law))
    results = [
        total_variation_test(*frequency_table(_sticky_chains(rng, law, 20), exact))
        for _ in range(150)
    ]
    assert uniform_test([r.pvalue for r in results]) > 0.002
    ratio = np.mean([r.tv for r in results]) / np.mean([r.expected_tv for r in results])
    assert ratio == pytest.approx(1, abs=0.1)
    # A chain that holds with probability h has (1 - h) / (1 + h) of the draws' worth.
    size = np.median([r.effective_size for r in results])
    assert size == pytest.approx(20 * 400 / 9, rel=0.2)
    assert all(3 <= r.n_cells <= 6 for r in results)


@pytest.mark.statistical
def test_total_variation_test_has_power():
    rng = np.random.default_rng(6)
    chains = _sticky_chains(rng, [0.4, 0.35, 0.25], 20)
    exact = {0: 0.5, 1: 0.3, 2: 0.2}
    assert total_variation_test(*frequency_table(chains, exact)).pvalue < 0.001


def test_total_variation_test_with_rare_cells():
    rng = np.random.default_rng(7)
    for law in ([0.5, 0.5 - 2e-8, 1e-8, 1e-8], [1 - 2e-8, 1e-8, 1e-8], [1 - 1e-4, 1e-4]):
        counts = rng.multinomial(400, law, size=20)
        assert total_variation_test(counts, law).pvalue > 0.01
    stuck = np.repeat([[400, 0]], 20, axis=0)
    assert total_variation_test(stuck, [0.7, 0.3]).pvalue < 0.001
    biased = rng.multinomial(400, [0.6, 0.4 - 1e-3, 1e-3], size=20)
    assert total_variation_test(biased, [0.5, 0.5 - 1e-8, 1e-8]).pvalue < 0.001


def test_statistics_reject_nonsense():
    with pytest.raises(ValueError, match="impossible"):
        frequency_table([[0, 1]], {0: 1.0})
    with pytest.raises(ValueError, match="sum to one"):
        total_variation_test(np.ones((10, 2)), [0.5, 0.4])
    with pytest.raises(ValueError, match="8 chains"):
        total_variation_test(np.ones((3, 2)), [0.5, 0.5])


@pytest.mark.statistical
def test_cdf_frequencies():
    rng = np.random.default_rng(0)
    draws = rng.gamma(2.0, size=(20, 500))
    good, bad = (
        total_variation_test(*cdf_frequencies(draws, stats.gamma(shape).cdf))
        for shape in (2.0, 2.2)
    )
    assert good.pvalue > 0.01
    assert bad.pvalue < 0.001


@pytest.mark.statistical
def test_mean_and_two_sample_tests():
    rng = np.random.default_rng(0)
    assert unbiased_mean_test(rng.exponential(size=500), 1).pvalue > 0.01
    assert unbiased_mean_test(rng.exponential(size=500), 1.3).pvalue < 0.001
    assert unbiased_mean_test([2.0, 2.0], 2).pvalue == 1
    assert unbiased_mean_test([2.0, 2.0], 1).pvalue == 0
    a, b = rng.normal(size=(15, 4)), rng.normal(size=(12, 4))
    assert two_sample_test(a, b) > 0.01
    assert two_sample_test(a, b + 2) < 0.001
    assert two_sample_test(a[:, 0], b[:, 0] + 3) < 0.001
