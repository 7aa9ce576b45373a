"""Student's t noise of autoregressions: given weights, integrals, exact posteriors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from errors import CONJUGATE, STUDENT, assert_noticed
from numpy.testing import assert_allclose
from reference import conjugate
from reference.conjugate import StudentAutoregression
from reference.statistics import unbiased_mean_test
from scipy import special, stats
from small_models import (
    WITH_DRAWS,
    Model,
    assert_caught,
    assert_exact,
    chain_means,
    crossed,
    evidence,
    hyperparameters_of,
    move_value,
    with_draws,
)

from skihmm import HCRPHMM
from skihmm.core._random import RandomStream
from skihmm.emissions import AutoregressiveNormal
from skihmm.emissions._gaps import open_gaps
from skihmm.samplers import StepwiseGibbs
from skihmm.testing._probes import EmissionProbe

FIRST, DOUBT, SURE = 2, 1e-4, 1e14
PAIRS = StudentAutoregression(
    1,
    (0.2, -1.0),
    (1.5, 0.7),
    ((0.8, 0.1, 0.3, -0.2), (0.0, 0.6, -0.4, 0.5)),
    (2.0, 0.7, 0.5),
    3.5,
    ((0.7, 0.2), (0.2, 0.9)),
    given=1,
)
LEVELS = StudentAutoregression(0, (0.0,), (1.0,), ((0.5,),), (0.4,), 3.0, ((0.6,),))
# One row far from all others, and a missing one.
MODELS = {
    "outlier": Model((0.3, 0.8, 9.0, -0.2, -2.5, 0.4), LEVELS, (0, 3), 1.0, 2.0),
    "incomplete": Model((1.9, None, -1.7, 2.2, -25.0, -1.4), LEVELS, (0, 4), 2.0, 1.0),
}


def with_states(n=24):
    """A chain of pairs with random weights, in three states; rows that end in these."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(n, 5))
    rows[5, 0] = rows[9, 4] = np.nan
    state = Model(tuple(map(tuple, rows)), PAIRS).state(0)
    weights = rng.gamma(2.0, size=n)
    state.emission.set_hidden({"weights": weights})
    labels = np.arange(n) % 3
    state.start_from(labels)
    return state, labels, np.column_stack([rows, weights])


# -- given the weights, and without ----------------------------------------------------


def check_weighted_rows():
    state, labels, rows = with_states()
    probe = EmissionProbe(state.emission, state.stream)
    expected = PAIRS.log_likelihood_by_tables(labels, [*map(tuple, rows)])[0]
    assert probe.log_joint() == pytest.approx(expected, rel=1e-10)
    for t, row in enumerate(rows):
        blocks = [rows[(labels == k) & (np.arange(len(rows)) != t)] for k in range(3)]
        want = [PAIRS.log_predictive(block, row) for block in blocks]
        left, joined = move_value(state, t, FIRST + labels[t], FIRST + labels[t])
        assert_allclose([left, joined], want[labels[t]], atol=1e-9)
        others = np.flatnonzero(np.arange(3) != labels[t])
        assert_allclose(probe.logs(t)[FIRST + others], np.take(want, others), atol=1e-9)
    assert probe.log_joint() == pytest.approx(expected, rel=1e-10)
    assert state.check() is None


def test_a_weighted_row_is_one_of_normal_noise():
    check_weighted_rows()


def check_integral(dof):
    state, labels, rows = with_states()
    record = state.to_arrays()["emission"]
    record["hyperparameters"][-1] = dof
    u = np.linspace(-90, 12, 200_001)
    # The prior of w, as a density of log w, with what a row has besides: w^(d / 2).
    base = stats.gamma.logpdf(np.exp(u), dof / 2, scale=2 / dof) + 2 * u
    for size in (0.3, 5.0, 1e3, 1e8):
        row = (size, -0.4, 0.2 * size, 0.6, -0.8)
        emission = PAIRS.new_stats((row,))
        probe = EmissionProbe(emission, RandomStream(0), FIRST + 3)
        emission.load(record, 3)
        # A state of all rows, one of a single row, and a new one.
        for k in range(3):
            A, root, scale, free = PAIRS.posterior(rows[labels == k])
            x, y = PAIRS.standardised((*row, 1.0))
            a = (np.linalg.solve(root.T, x[0]) ** 2).sum()
            b = (y[0] - A @ x[0]) @ np.linalg.solve(scale, y[0] - A @ x[0])
            leverage, power = 1 + a * np.exp(u), (free + 1) / 2
            log_p = base - np.log(leverage) - power * np.log1p(b * np.exp(u) / leverage)
            norm = PAIRS.log_predictive(rows[labels == k], (*row, 1.0))
            norm += np.log(1 + a) + power * np.log1p(b / (1 + a))
            expected = norm + special.logsumexp(log_p) + np.log(u[1] - u[0])
            assert probe.logs(0)[FIRST + k] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("dof", [1.0, 2.3, 8.0, 60.0, 900.0])
def test_predictives_are_integrals(dof):
    check_integral(dof)


def test_new_rows_of_known_parameters_are_students():
    """Densities and draws, means and weights too."""
    scale = np.array([[1.1, 0.4], [0.4, 0.7]])
    known = StudentAutoregression(
        *(0, (0.0, 1.0), (1.0, 2.0), ((0.5,), (-0.2,)), (SURE,), SURE, SURE * scale), noise_dof=3.0
    )
    units = np.diag(known.deviation)
    law = stats.multivariate_t([0.5, 0.6], units @ scale @ units, 3.0)
    rows = law.rvs(8, random_state=0)
    emission = known.new_stats(tuple(map(tuple, rows)))
    probe = EmissionProbe(emission, RandomStream(0), 3)
    for t, row in enumerate(rows):
        assert probe.logs(t)[FIRST] == pytest.approx(law.logpdf(row), abs=1e-5)
    slots = np.full(20_000, FIRST, np.int32)
    drawn = np.transpose(emission.draw_values(slots, [0, 0], RandomStream(1)))
    off = drawn - [0.5, 0.6]
    squares = np.einsum("ti,ij,tj->t", off, np.linalg.inv(units @ scale @ units), off)
    assert stats.kstest(squares / 2, stats.f(2, 3).cdf).pvalue > DOUBT
    assert_allclose(np.ravel(emission.predictives(slots[:1])), [0.5, 0.6], atol=1e-6)


@pytest.mark.statistical
def test_entries_of_new_rows_are_drawn_in_turn_with_their_weights():
    """A value between two others, against quadrature."""
    known = StudentAutoregression(
        *(1, (0.0,), (1.0,), ((0.8, 0.0),), (SURE,) * 2, SURE, ((SURE,),)), noise_dof=2.5
    )
    emission = known.new_stats(((1.0, None), (None, 1.0), (4.0, None)))
    EmissionProbe(emission, RandomStream(0), 3)
    open_gaps(emission, np.zeros(1, np.intp))
    stream, slots = RandomStream(1), np.full(3, FIRST, np.int32)
    drawn = []
    for _ in range(40_000):
        mean = emission.draw_hidden(slots, stream)
        drawn.append((mean, emission.hidden()["filled"]))
    at = np.linspace(-60, 60, 120_001)
    density = stats.t.pdf(at - 0.8, 2.5) * stats.t.pdf(4.0 - 0.8 * at, 2.5)
    below = np.cumsum(density) / density.sum()
    values = np.array([value[0] for _, value in drawn])[::10]
    assert stats.kstest(values, lambda y: np.interp(y, at, below)).pvalue > DOUBT
    means = np.mean([mean for mean, _ in drawn[::10]])
    assert means == pytest.approx(at @ density / density.sum(), abs=0.1)


@pytest.mark.parametrize("name", MODELS)
def test_log_joint_of_a_chain_has_no_weights(name):
    """Nearly: given the labels all but the posterior's width is exact."""
    model = MODELS[name]
    law = replace(model.emission, is_fixed=True)
    nothing = replace(model, y=(None,) * 6)
    for labels in [(0,) * 6, (0, 0, 1, 1, 0, 1)]:
        state, other = (chosen.state(0, np.array(labels)) for chosen in (model, nothing))
        exact = law.log_likelihood_by_tables(labels, model.y)[0]
        assert state.log_joint() - other.log_joint() == pytest.approx(exact, abs=1.5)


# -- exact posteriors ------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), crossed(MODELS, WITH_DRAWS))
def test_labels_against_enumeration(name, sampler):
    assert_exact(MODELS[name], with_draws(sampler), n_sweeps=500)


def check_dof(name):
    """Posterior mean of the logarithm of the degrees of freedom."""
    model, law = MODELS[name], 0.0
    for x, p in model.posterior.probabilities.items():
        logs = model.emission.log_points(x, model.y)
        law += p * np.exp(logs - special.logsumexp(logs))
    found = chain_means(model, lambda state: np.log(hyperparameters_of(state)[-1]), 20, 1500)
    exact = law @ np.log(model.emission.points[0])
    assert abs(unbiased_mean_test(found, exact).z) < 4.5


def check_dof_of_few_rows():
    """Draws given known parameters, of six columns: of two n has no effect on them."""
    rows = np.random.default_rng(0).standard_t(4.0, (5, 6))
    rows[2, 1] = np.nan
    known = (0, (0.0,) * 6, (1.0,) * 6, ((0.0,),) * 6, (SURE,), SURE, SURE * np.eye(6))
    state = Model(tuple(map(tuple, rows)), StudentAutoregression(*known)).state(0)
    u, seen, drawn = np.linspace(0, np.log(1000), 2001), np.delete(rows, 2, axis=0), []
    for _ in range(20_000):
        state.draw_hidden()
        drawn.append(np.log(hyperparameters_of(state)[-1]))
    laws = [stats.multivariate_t(np.zeros(6), df=dof) for dof in np.exp(u)]
    log_p = 2 * u - 0.1 * np.exp(u) + [law.logpdf(seen).sum() for law in laws]
    below = np.cumsum(np.exp(log_p - special.logsumexp(log_p)))
    assert stats.kstest(drawn[::10], lambda at: np.interp(at, u, below)).pvalue > DOUBT


@pytest.mark.statistical
def test_degrees_of_freedom_against_quadrature():
    check_dof_of_few_rows()
    check_dof("outlier")


def check_evidence(n_particles, n_runs=4000, noise_dof=10.0):
    """The mean of a filter's estimates is p(y), with known degrees of freedom."""
    law = replace(LEVELS, is_fixed=True, noise_dof=noise_dof)
    model = replace(MODELS["outlier"], emission=law)
    assert evidence(model, n_particles, n_runs).pvalue > DOUBT


@pytest.mark.statistical
@pytest.mark.parametrize(("n_particles", "dof"), [(1, 10.0), (4, 1.5), (4, 400.0)])
def test_evidence_of_particles_is_unbiased(n_particles, dof):
    check_evidence(n_particles, noise_dof=dof)


# -- estimators ------------------------------------------------------------------------


def test_tails_do_not_become_states():
    rng, n = np.random.default_rng(0), 1500
    truth, X = np.arange(n) // 100 % 2, np.zeros((n, 1))
    for t in range(1, n):
        X[t] = [0.9, -0.6][truth[t]] * X[t - 1] + rng.standard_t(2)
    settings = {"n_burnin": 100, "n_draws": 10, "random_state": 0}
    emission = AutoregressiveNormal(1, noise="student")
    hmm = HCRPHMM(emission=emission, **settings).fit(X)
    assert hmm.n_states_ == 2
    dof = hmm.draws_.hyperparameters["emission_noise_dof"]
    assert 1.5 < dof.mean() < 2.6
    assert_allclose(np.sort(hmm.emission_.coefficients_.ravel()), [-0.6, 0.9], atol=0.07)
    assert np.isfinite(hmm.score(X[:50]))
    with pytest.raises(ValueError, match="noise='t'; expected one of 'auto'"):
        HCRPHMM(emission=AutoregressiveNormal(noise="t")).fit(X)


def test_more_rows_leave_outliers_in_their_states():
    rng, n = np.random.default_rng(0), 1500
    x, e = np.zeros((n, 1)), rng.normal(size=n)
    e[rng.random(n) < 0.02] *= 15
    for t in range(1, n):
        x[t] = [0.9, -0.6][t // 100 % 2] * x[t - 1] + e[t]
    settings = {"n_burnin": 100, "n_draws": 10, "random_state": 0}
    emission = AutoregressiveNormal(1, noise="student")
    hmm = HCRPHMM(emission=emission, **settings).fit(x[:1400]).partial_fit(x[1400:])
    assert hmm.draws_.n_states.mean() < 2.5
    assert hmm.draws_.hyperparameters["emission_noise_dof"].mean() < 8


# -- planted errors --------------------------------------------------------------------


@pytest.mark.statistical
def test_weights_that_are_never_drawn_are_noticed():
    assert_caught(StepwiseGibbs().make_kernel, MODELS["outlier"])


CAUGHT = {
    "a row times its weight": (check_weighted_rows,),
    "a new row of weight one": (check_integral, 2.3),
    "weights of one column fewer": (check_dof, "outlier"),
    "degrees of freedom of normal noise": (check_dof, "incomplete"),
    "degrees of freedom of one row fewer": (check_dof_of_few_rows,),
    "particles: weights of the prior": (check_evidence, 4),
}


@pytest.mark.statistical
@pytest.mark.parametrize("error", CAUGHT)
def test_planted_errors_are_noticed(monkeypatch, error):
    places = [(conjugate, "conjugate_stats")]
    assert_noticed(monkeypatch, CONJUGATE, error, places, *CAUGHT[error])


def test_every_planted_error_has_a_check():
    assert CAUGHT.keys() == STUDENT.keys()
