"""Regressions with Polya-Gamma weights: draws, closed forms, scores, exact posteriors."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from errors import CONJUGATE, REGRESSIONS, edited
from numpy.testing import assert_allclose, assert_array_equal
from reference import regressions
from reference.conjugate import as_matrix
from reference.regressions import Regression, SampledRegression
from reference.statistics import unbiased_mean_test, uniform_test
from scipy import integrate, optimize, special, stats
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

from skihmm.core._random import RandomStream
from skihmm.emissions import _conjugate_stats
from skihmm.samplers import StepwiseGibbs
from skihmm.testing._probes import EmissionProbe

# The first slot of a state.
FIRST = 2
# A precision that leaves nothing to learn.
SURE = 1e14
DOUBT = 1e-4


# -- draws of weights ------------------------------------------------------------------


def weights_of(kind, row, psi, n, dispersion=(), seed=1):
    """Draws of the weight of one row, whose regression is known."""
    emission = Regression(kind, ((psi,),), ((1.0, SURE),), dispersion)
    state = Model((row,) * n, emission).state(seed)
    state.draw_hidden()
    return state.emission.hidden()["weights"]


def check_weights(b, z):
    """Moments and Laplace transform of PG(b, z)."""
    n = 100_000 if b < 8 and b == int(b) else 40_000
    if b == 1:
        omega = weights_of("logistic", (1,), z, n)
    elif b == int(b):
        omega = weights_of("binomial", (2, b), -z, n)
    else:
        # psi = log mean - log r
        r = b - int(b)
        omega = weights_of("log_linear", (int(b),), z + np.log(r), n, (1 / r,))
    half = z / 2
    mean, variance = b / 4, b / 24
    if z > 0:
        mean = b * np.tanh(half) / (2 * z)
    if z > 0.1:
        variance = b * (np.sinh(z) - z) / (4 * z**3 * np.cosh(half) ** 2)
    found = [(omega, mean), ((omega - mean) ** 2, variance)]
    for t in (0.5 / mean, 3 / mean, 1 / np.sqrt(variance)):
        root = np.sqrt(t / 2 + half**2)
        log_exact = b * (np.logaddexp(half, -half) - np.logaddexp(root, -root))
        found.append((np.exp(-t * omega - log_exact), 1.0))
    assert max(abs(unbiased_mean_test(*pair).z) for pair in found) < 4.5


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("b", "z"), crossed([1, 7, 14, 500, 6.3, 0.25, 203.4], [0.0, 0.03, 0.7, 3.0, 8.0, 20.0])
)
def test_weights_have_their_moments_and_laplace_transform(b, z):
    check_weights(b, z)


# -- closed forms given the weights ----------------------------------------------------


KINDS = {
    "logistic": Regression(
        "logistic", ((0.3, -0.2, 0.5), (0.0, 0.4, -1.0)), ((0.5, 1.5), (2.0, 0.3))
    ),
    "intercepts": Regression("logistic", ((0.3,), (-0.5,)), ((1.0, 0.7), (1.0, 2.0))),
    "binomial": Regression("binomial", ((0.3, -0.2),), ((0.5, 1.5),)),
    "log_linear": Regression(
        "log_linear",
        ((0.3, 1.0), (0.1, -0.5)),
        ((0.5, 1.5), (1.0, 1.0)),
        (0.25, 1.7),
        has_exposure=True,
    ),
    "no exposure": Regression("log_linear", ((0.3, 1.0),), ((0.5, 1.5),), (0.4,)),
    "choice": Regression(
        "choice", ((0.3, 0.5), (0.1, -0.5), (-0.2, 0.0)), ((0.5, 1.5), (1.0, 1.0), (0.4, 2.0))
    ),
}


def random_rows(emission, n, rng, share=0.1):
    """Rows of any values that are possible, some values and inputs missing."""
    shape, q = (n, emission.n_columns), len(emission.mean[0])
    inputs = rng.normal(size=(n, emission.n_inputs))
    if emission.kind == "logistic":
        values = (rng.random(shape) < 0.4).astype(float)
    elif emission.kind == "choice":
        values = rng.integers(emission.n_terms + 1, size=shape).astype(float)
    elif emission.kind == "binomial":
        inputs[:, -1] = rng.integers(1, 20, size=n)
        values = rng.binomial(inputs[:, -1:].astype(int), 0.3).astype(float)
    else:
        values = rng.poisson(rng.gamma(1.0, 4.0, size=shape)).astype(float)
    values[rng.random(shape) < share] = np.nan
    inputs[:, : q - 1][rng.random((n, q - 1)) < share / q] = np.nan
    return tuple(map(tuple, np.hstack([values, inputs])))


def chain_of(emission, rows, labels, rng):
    """A chain with random weights."""
    state = Model(rows, emission).state(0)
    omega = state.emission.hidden()["weights"]
    # (Weights of zero are those of missing values.)
    state.emission.set_hidden({"weights": omega * rng.gamma(3.0, size=len(omega))})
    state.start_from(labels)
    return state


def row_terms(emission, row, omega):
    """Number, x, omega, kappa' and the constant of terms that are not missing."""
    values, x, given = emission.split(row)
    for i, value in enumerate(values):
        if np.isnan(value):
            continue
        b, offset, factor = 1.0, 0.0, 0.0
        if emission.kind == "binomial":
            b = given
            factor = np.log(special.binom(b, value))
        elif emission.kind == "log_linear":
            r = 1 / emission.dispersion[i]
            b, offset = value + r, given - np.log(r)
            factor = special.gammaln([value + r, r, value + 1]) @ [1, -1, -1]
        kappa = value - b / 2
        constant = factor - b * np.log(2) + kappa * offset - omega[i] * offset**2 / 2
        yield i, x, omega[i], kappa - omega[i] * offset, constant


def log_marginal(emission, rows, weights):
    """Logs of the Gaussian integrals of one state, by matrices, and of the constants."""
    sums = [
        [np.diag([*[inputs] * (len(m) - 1), intercept]), np.array(m), 0.0]
        for m, (inputs, intercept) in zip(emission.mean, emission.precision, strict=True)
    ]
    prior = [np.linalg.slogdet(V)[1] - m @ V @ m for V, m, _ in sums]
    for own in sums:
        own[1] = own[0] @ own[1]
    constants = 0.0
    for row, omega in zip(rows, weights, strict=True):
        for i, x, w, kappa, constant in row_terms(emission, row, omega):
            sums[i][0] = sums[i][0] + w * np.outer(x, x)
            sums[i][1] = sums[i][1] + kappa * x
            constants += constant
    total = sum(
        before - np.linalg.slogdet(A)[1] + h @ np.linalg.solve(A, h)
        for before, (A, h, _) in zip(prior, sums, strict=True)
    )
    return total / 2, constants


def check_closed_form(kind):
    """Log joint, rows, moves and a recount, all against matrices."""
    rng = np.random.default_rng(len(kind))
    emission, n = KINDS[kind], 18
    rows = random_rows(emission, n, rng)
    labels = np.array([0, 1, 2] * 6)
    state = chain_of(emission, rows, labels, rng)
    omega = state.emission.hidden()["weights"].reshape(n, -1)
    probe = EmissionProbe(state.emission, state.stream)

    def of(steps):
        return sum(log_marginal(emission, [rows[t] for t in steps], omega[steps]))

    blocks = [np.flatnonzero(labels == k) for k in range(3)]
    expected = sum(map(of, blocks))
    assert probe.log_joint() == pytest.approx(expected, rel=1e-11)
    for t in range(n):
        want = [of([*block, t]) - of(block) for block in blocks]
        slots = [FIRST, FIRST + 1, FIRST + 2, 0]
        assert_allclose(probe.logs(t)[slots], [*want, of([t])], atol=1e-10)
        rest = blocks[labels[t]][blocks[labels[t]] != t]
        left, joined = move_value(state, t, FIRST + labels[t], FIRST + labels[t])
        without = of([*rest, t]) - of(rest)
        assert_allclose([left, joined], without, atol=1e-10)
    # After additions, one after the other, and after a count of all rows.
    assert probe.log_joint() == pytest.approx(expected, rel=1e-11)
    state.emission.take_hyperparameters(state.to_arrays()["emission"])
    assert probe.log_joint() == pytest.approx(expected, rel=1e-11)
    assert state.check() is None


@pytest.mark.parametrize("kind", KINDS)
def test_closed_form(kind):
    check_closed_form(kind)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["logistic", "binomial", "no exposure", "choice"])
def test_joint_with_weights_is_the_joint_on_average(kind):
    """Over weights PG(b, 0): the constants are right, too."""
    emission, n = KINDS[kind], 20_000
    rows = random_rows(emission, 2, np.random.default_rng(3), share=0.0)
    means = np.zeros_like(emission.mean)
    means[:, -1] = -np.log(emission.dispersion or 1.0)
    known = replace(emission, mean=means, precision=((SURE, SURE),) * len(means))
    state = Model(rows * n, known).state(1)
    state.draw_hidden()
    stats = emission.stats(rows)
    probe = EmissionProbe(stats, RandomStream(0), 3)
    logs = []
    for omega in state.emission.hidden()["weights"].reshape(n, -1):
        stats.set_hidden({"weights": omega})
        first = probe.add(0, FIRST), probe.add(1, FIRST)
        logs.append(probe.log_joint())
        assert sum(first) == pytest.approx(logs[-1], abs=1e-9)
        probe.rollback()
    exact = emission.log_likelihood_by_tables((0, 0), rows)[0]
    assert abs(unbiased_mean_test(np.exp(np.array(logs) - exact), 1.0).z) < 4.5


@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_moves_do_not_drift(kind, global_random_seed):
    """Every third one is undone; weights stay as they are, bit for bit."""
    rng = np.random.default_rng(global_random_seed)
    labels = np.arange(40) % 3
    state = chain_of(KINDS[kind], random_rows(KINDS[kind], 40, rng), labels, rng)
    before = state.to_arrays()["emission"]["numbers"]
    weights = state.emission.hidden()["weights"].tobytes()
    where = FIRST + labels
    for step in range(10_000):
        t, k, keep = rng.integers(40), FIRST + rng.integers(3), step % 3 > 0
        kept = state.to_arrays()["emission"]["numbers"].tobytes()
        move_value(state, t, where[t], k, keep)
        if keep:
            where[t] = k
        else:
            assert state.to_arrays()["emission"]["numbers"].tobytes() == kept
    for t in range(40):
        move_value(state, t, where[t], FIRST + labels[t])
    after = state.to_arrays()["emission"]["numbers"]
    assert_allclose(after, before, rtol=1e-8, atol=1e-9)
    assert state.check() is None
    assert state.emission.hidden()["weights"].tobytes() == weights


# -- new observations ------------------------------------------------------------------


def log_integral(log_likelihood, mean, deviation):
    """log of E p(y | psi), psi normal, by SciPy, in parts on both sides of the mode."""

    def log_product(psi):
        return log_likelihood(psi) + stats.norm.logpdf(psi, mean, deviation)

    far = 13 * deviation + 200 * deviation**2
    mode = optimize.minimize_scalar(
        lambda psi: -log_product(psi), bounds=(mean - far, mean + far), method="bounded"
    ).x
    top, total = log_product(mode), 0.0
    for side in (-1, 1):
        reach = 1e-3 * deviation
        while log_product(mode + side * reach) > top - 40:
            reach *= 1.5
        for start, stop in itertools.pairwise(np.linspace(0, reach, 12)):
            total += integrate.quad(
                lambda v, side=side: np.exp(log_product(mode + side * v) - top),
                *(start, stop),
                epsrel=1e-10,
            )[0]
    return top + np.log(total)


def new_log(emission, row, load=None):
    """log p(row), a new state's, or, of a record, that of every state."""
    stats = emission.new_stats((row,))
    n_states = 0 if load is None else len(load["numbers"])
    probe = EmissionProbe(stats, RandomStream(0), FIRST + n_states)
    if load is not None:
        stats.load(load, n_states)
        return probe.logs(0)[FIRST:]
    return probe.logs(0)[0]


CASES = [
    ("logistic", (1,), ()),
    ("logistic", (0,), ()),
    ("binomial", (0, 14), ()),
    ("binomial", (5, 14), ()),
    ("binomial", (200, 200), ()),
    ("binomial", (3, 200), ()),
    ("log_linear", (0,), (1.0,)),
    ("log_linear", (3,), (0.25,)),
    ("log_linear", (190,), (0.1,)),
    ("log_linear", (2,), (1e-3,)),
    ("choice", (1,), ()),
]


def check_integral(kind, row, dispersion):
    """Distributions of psi are wide and narrow, surprises among them."""
    for variance in (1e-4, 0.7224, 0.7226, 9.0, 1e3):
        for mean in (-7.0, 0.0, 2.5):
            n = 2 if kind == "choice" else 1
            prior = ((mean,),) * n, ((1.0, 1 / variance),) * n
            emission = Regression(kind, *prior, dispersion)
            values, _, given = emission.split(row)
            expected = 0.0
            for value in values[~np.isnan(values)]:
                law = partial(
                    emission.log_probability,
                    value,
                    given=given,
                    dispersion=(*dispersion, None)[0],
                )
                expected += log_integral(law, mean, np.sqrt(variance))
            assert new_log(emission, row) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("kind", "row", "dispersion"), CASES)
def test_predictives_are_integrals(kind, row, dispersion):
    check_integral(kind, row, dispersion)


def predicted(kind):
    """Statistics of two states, inputs, and p(values of column 0) by state."""
    emission, rng = KINDS[kind], np.random.default_rng(5)
    state = chain_of(emission, random_rows(emission, 30, rng), np.arange(30) % 2, rng)
    record = state.to_arrays()["emission"]
    numbers, n = 0.5 * rng.normal(size=emission.n_inputs), 2
    if emission.kind == "binomial":
        numbers[-1], n = 9, 10
    elif emission.kind == "choice":
        n = emission.n_terms + 1
    elif emission.kind == "log_linear":
        n = 3000
    rest = (*(np.nan,) * (emission.n_columns - 1), *numbers)
    p = [np.exp(new_log(emission, (float(v), *rest), record)) for v in range(n)]
    return state.emission, numbers, np.transpose(p)


def check_sums_to_one(kind):
    total = predicted(kind)[2].sum(axis=1)
    assert_allclose(total, 1.0, atol=1e-3 if KINDS[kind].kind == "log_linear" else 1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_predictives_sum_to_one(kind):
    check_sums_to_one(kind)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_drawn_from_predictives_and_have_their_means(kind):
    found, numbers, p = predicted(kind)
    n, at = 20_000, np.arange(p.shape[1])
    for k in range(2):
        slots, inputs = np.full(n, FIRST + k, np.int32), np.tile(numbers, (n, 1))
        n_known = [len(at)] * KINDS[kind].n_columns
        drawn = found.draw_values(slots, n_known, RandomStream(k), inputs)[0]
        cells = np.flatnonzero(p[k] > 20 / n)
        counts, expected = (drawn[:, None] == cells).sum(axis=0), n * p[k, cells]
        z = (counts - expected) / np.sqrt(expected * (1 - p[k, cells]))
        assert abs(z).max() < 5
        mean = np.ravel(found.predictives(slots[:1], inputs[:1])[0])
        if kind == "choice":
            assert_allclose(mean, p[k], atol=1e-12)
        else:
            rtol = 0.05 if KINDS[kind].kind == "log_linear" else 1e-10
            assert_allclose(mean, [at @ p[k]], rtol=rtol)


def test_a_chain_resumes_with_its_weights():
    state = MODELS["incomplete"].state(3)
    kernel, ends = with_draws("blocks")(state), []
    for _ in range(5):
        kernel.sweep(state)
    arrays, position = copy.deepcopy(state.canonicalise()), state.stream.state
    other = MODELS["incomplete"].state(9)
    other.from_arrays(arrays)
    other.stream.state = position
    for chain in (state, other):
        kernel = with_draws("blocks")(chain)
        for _ in range(5):
            kernel.sweep(chain)
        ends.append((chain.packed_labels, chain.emission.hidden()["weights"], chain.log_joint()))
    for first, second in zip(*ends, strict=True):
        assert_array_equal(first, second)


def test_missing_rows_say_nothing():
    rows = {
        "logistic": [(np.nan, np.nan, 1.0, 2.0), (1.0, 0.0, np.nan, 2.0)],
        "binomial": [(np.nan, 1.0, 3.0), (1.0, np.nan, 3.0), (1.0, 0.5, np.nan)],
        "log_linear": [(1.0, 2.0, 0.5, np.nan), (np.nan, np.nan, 0.5, 0.1)],
        "choice": [(np.nan, 0.3), (2.0, np.nan)],
    }
    for kind, missing in rows.items():
        emission = KINDS[kind]
        for row in missing:
            assert new_log(emission, row) == 0.0
            state = Model((row,), emission).state(0)
            before = state.to_arrays()["emission"]["numbers"].tobytes()
            for _ in range(3):
                state.draw_hidden()
            assert_array_equal(state.emission.hidden()["weights"], 0.0)
            assert state.to_arrays()["emission"]["numbers"].tobytes() == before
            assert EmissionProbe(state.emission, state.stream).log_joint() == 0.0
    # One value of two columns: that of a model of the other column.
    both = KINDS["logistic"]
    one = Regression("logistic", both.mean[1:], both.precision[1:])
    row = (1.0, 0.7, -0.3)
    assert new_log(both, (np.nan, *row)) == pytest.approx(new_log(one, row), abs=1e-12)


def test_the_first_option_of_two_is_a_binary_value():
    """And so are all later ones, among those that are not before."""
    mean, precision = ((0.4, -0.3),), ((0.5, 1.5),)
    choice = Regression("choice", mean, precision)
    binary = Regression("logistic", mean, precision)
    for code in (0, 1):
        assert new_log(choice, (code, 0.8)) == new_log(binary, (1 - code, 0.8))


def test_weights_that_are_read_are_no_view():
    """Not of one row either: records of a chain keep their weights."""
    for n in (1, 3):
        state = Model(((1.0, 0.5, 3.0),) * n, KINDS["binomial"]).state(0)
        kept = state.emission.hidden()["weights"]
        copy = kept.copy()
        state.draw_hidden()
        assert_array_equal(kept, copy)
        assert (state.emission.hidden()["weights"] != copy).all()


# -- exact posteriors ------------------------------------------------------------------


BINARY = ((1, 0.5), (0, -1.2), (1, 1.4), (1, -0.6), (0, -0.8), (0, 1.5))
TRIALS = ((3, 4), (0, 3), (5, 5), (1, 6), (0, 6), (4, 5))
COUNTS = ((0, 0.5, 0.3), (6, -1.0, 0.3), (1, 1.0, -0.5), (9, 1.2, 0.0), (3, 0, 1.0),
          (0, -0.7, 0.0))  # fmt: skip
CHOICES = ((0, 0.5), (2, -1.0), (1, 0.8), (0, -0.3), (None, 0.2), (2, -0.6))
# One value of two, a whole row, and an input are missing.
INCOMPLETE = ((1, None, 0.5), (0, 1, -1.2), (None, None, 1.4), (1, 0, None), (0, 0, -0.8),
              (None, 1, 1.5))  # fmt: skip


def small_model(y, law, start=3, alpha=1.0, gamma=2.0):
    return Model(y, law, (0, start), alpha, gamma)


MODELS = {
    "binary": small_model(
        BINARY, Regression("logistic", ((0.8, -0.2),), ((0.3, 1.0),)), 3, 2.0, 1.0
    ),
    "binomial": small_model(TRIALS, Regression("binomial", ((0.2,),), ((1.0, 0.4),))),
    "counts": small_model(
        COUNTS, Regression("log_linear", ((0.3, 0.8),), ((1.0, 0.5),), (0.25,), True)
    ),
    "choice": small_model(
        CHOICES, Regression("choice", ((0.5, 0.2), (-0.5, 0.4)), ((0.3, 0.5), (0.5, 0.4)))
    ),
    "incomplete": small_model(
        INCOMPLETE, Regression("logistic", ((0.8, -0.2), (0.3, 0.5)), ((0.3, 1.0), (0.5, 0.6))), 4
    ),
}
ONES = tuple((v,) for v in (1, 0, 1, 1, None, 0))
EXPOSED = tuple(row[::2] for row in COUNTS)
OF_COUNTS = SampledRegression("log_linear", ((0.8,),), ((1.0, 0.7),), (0.3,), True)
OF_TRIALS = SampledRegression("binomial", ((0.2,),), ((1.0, 1.0),))
SAMPLED = {
    "precision": small_model(
        ONES, SampledRegression("logistic", ((0.3,),), ((1.0, 1.0),)), 3, 2.0, 1.0
    ),
    "mean and precision": small_model(TRIALS, replace(OF_TRIALS, draws=(True, True, False))),
    "dispersion": small_model(EXPOSED, replace(OF_COUNTS, draws=(False, False, True))),
    "all": small_model(EXPOSED, replace(OF_COUNTS, draws=(True, True, True))),
    "unit": small_model(EXPOSED, replace(OF_COUNTS, draws=(True, True, False), unit=9.0)),
}
# A chain's reports are of y without weights, by Laplace's method.
LABELS = [(0,) * 6, (0, 0, 1, 1, 0, 1), (0, 1, 2, 3, 4, 5)]


@pytest.mark.parametrize("name", MODELS)
def test_log_joint_of_a_chain_has_no_weights(name):
    model = MODELS[name]
    nothing = (None,) * model.emission.n_columns + (0.0,) * model.emission.n_inputs
    empty = replace(model, y=(nothing,) * 6)
    for labels in LABELS:
        # (From the same seed both have the same seating.)
        state, other = (chosen.state(0, np.array(labels)) for chosen in (model, empty))
        exact = model.emission.log_likelihood_by_tables(labels, model.y)[0]
        found = state.log_joint()
        assert found - other.log_joint() == pytest.approx(exact, abs=0.3)
        state.draw_hidden()
        assert state.log_joint() == pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize("kind", ["intercepts", "binomial", "no exposure", "choice"])
def test_log_joint_of_many_rows(kind):
    emission = KINDS[kind]
    rows = random_rows(emission, 25, np.random.default_rng(0))
    nothing = ((np.nan,) * len(rows[0]),) * 25
    found = [Model(y, emission).state(0).log_joint() for y in (rows, nothing)]
    exact = emission.log_likelihood_by_tables((0,) * 25, rows)[0]
    assert found[0] - found[1] == pytest.approx(exact, abs=0.05 * emission.n_terms)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), crossed(MODELS | SAMPLED, WITH_DRAWS))
def test_labels_against_enumeration(name, sampler):
    assert_exact((MODELS | SAMPLED)[name], with_draws(sampler), n_sweeps=500)


@pytest.mark.statistical
@pytest.mark.parametrize("name", SAMPLED)
def test_hyperparameters_against_quadrature(name):
    """Posterior means of the mean, and of the logarithms of precision and dispersion."""
    model, laws = SAMPLED[name], []
    points = [at for at, _ in model.emission.points]
    for x in model.posterior.probabilities:
        logs = model.emission.log_points(x, model.y)
        laws.append(np.exp(logs - special.logsumexp(logs)).reshape(*map(len, points)))
    law = np.tensordot([*model.posterior.probabilities.values()], laws, 1)
    axes = np.flatnonzero(model.emission.draws)

    def values_of(state):
        numbers = hyperparameters_of(state)[[0, 2, -1]]
        return np.where(axes > 0, np.log(np.abs(numbers[axes])), numbers[axes])

    for axis, means in zip(axes, chain_means(model, values_of, 20, 1500).T, strict=True):
        values = np.log(points[axis]) if axis else points[axis]
        own = law.sum(axis=tuple({0, 1, 2} - {axis}))
        assert abs(unbiased_mean_test(means, values @ own).z) < 4.5, (axis, means)


@pytest.mark.statistical
@pytest.mark.parametrize("draws", [(True, False, False), (False, True, False)])
def test_hyperparameters_of_known_coefficients(draws):
    """Two terms, two states, two inputs: the counts and groups of the conditionals."""
    rng = np.random.default_rng(1)
    beta, n = rng.normal(size=(2, 2, 3)), 1e8
    x = np.hstack([rng.normal(size=(20, 2)), np.ones((20, 1))])
    p = special.expit(np.einsum("tj,tcj->tc", x, beta[np.arange(20) % 2]))
    rows = np.column_stack([np.round(n * p), x[:, :2], np.full(20, n)])
    mean, precision = rng.normal(size=(2, 3)), np.array([[0.5, 2.0], [1.0, 3.0]])
    emission = Regression("binomial", mean, precision, draws=draws)
    state = Model(tuple(map(tuple, rows)), emission).state(0, np.arange(20) % 2)
    found = []
    for _ in range(3000):
        state.draw_hidden()
        found.append(hyperparameters_of(state)[np.repeat(draws[:2], [6, 4])])
    if draws[0]:
        v = precision[:, [0, 0, 1]]
        law = stats.norm((mean + v * beta.sum(axis=0)) / (1 + 2 * v), (1 + 2 * v) ** -0.5)
    else:
        squares = ((beta - mean) ** 2).sum(axis=0)
        rate = 0.1 + 0.5 * np.stack([squares[:, :2].sum(axis=1), squares[:, 2]], axis=1)
        law = stats.gamma([[3.0, 2.0]] * 2, scale=1 / rate)
    u = law.cdf(np.reshape(found, (-1, 2, 3 if draws[0] else 2)))
    assert min(map(uniform_test, u.reshape(len(u), -1).T)) > DOUBT


def test_points_of_hyperparameters():
    """One point of each is the other quadrature; priors have the mass one."""
    point = replace(OF_COUNTS, draws=(False,) * 3)
    fixed = Regression("log_linear", point.mean, point.precision, (0.3,), True)
    for block in (EXPOSED, EXPOSED[:2], EXPOSED[4:5]):
        assert_allclose(point.log_block(as_matrix(block)), fixed.log_block(block))
    for model in SAMPLED.values():
        total = np.exp(model.emission.log_prior).sum()
        # (A hundredth of the mass of dispersions is below the bound.)
        has_bound = model.emission.draws[2]
        assert total == pytest.approx(1.0, abs=1e-2 if has_bound else 1e-4)


@pytest.mark.parametrize("size", [1e2, 1e5, 1e8])
def test_large_counts_are_precise(size):
    """Their dispersion is all but that of Poisson counts."""
    rng, x = np.random.default_rng(0), np.linspace(-1, 1, 30)
    rows = tuple(zip(rng.poisson(size * np.exp(x / size**0.5)), x, strict=True))
    prior = ((0.0, np.log(size)),), ((size, size),)
    emission = Regression("log_linear", *prior, (1e-2 / size,))
    nothing = ((np.nan, np.nan),) * 30
    found = [Model(y, emission).state(0).log_joint() for y in (rows, nothing)]
    exact = emission.log_likelihood_by_tables((0,) * 30, rows)[0]
    assert found[0] - found[1] == pytest.approx(exact, abs=1e-2)


def test_log_joint_far_from_the_prior():
    """Rows contradict each other: whole steps of Newton's method diverge."""
    emission = Regression("logistic", ((0.0, 0.0),), ((1.0, 1.0),))
    rows = ((1, 300.0), (0, 200.0), (1, -250.0), (1, 0.4), (0, -0.3)) * 3
    labels, nothing = np.zeros(15, int), ((np.nan, np.nan),) * 15
    state, empty = (Model(y, emission).state(0, labels) for y in (rows, nothing))
    state.emission.set_hidden({"weights": np.full(15, 1e-6)})
    for chain in (state, empty):
        chain.start_from(labels)
    a, b = np.meshgrid(np.arange(-0.3, 0.3, 1e-4), np.arange(-5, 5, 0.1))
    logs = sum(special.log_expit((2 * y - 1) * (a * x + b)) for y, x in rows)
    logs = logs + stats.norm.logpdf(a) + stats.norm.logpdf(b)
    exact = special.logsumexp(logs) + np.log(1e-4 * 0.1)
    assert state.log_joint() - empty.log_joint() == pytest.approx(exact, abs=0.3)


# -- particles -------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("n_particles", [1, 4])
@pytest.mark.parametrize("name", MODELS)
def test_evidence_of_particles_is_unbiased(name, n_particles):
    found = evidence(MODELS[name], n_particles)
    assert found.pvalue > DOUBT, found


# -- planted errors --------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_weights_that_are_never_drawn_are_noticed(name):
    assert_caught(StepwiseGibbs().make_kernel, MODELS[name])


def enumeration(name, sampler="steps"):
    assert_caught(with_draws(sampler), (MODELS | SAMPLED)[name])


def biased(name):
    assert evidence(MODELS[name], 4, n_runs=10_000).pvalue < DOUBT


CAUGHT = {
    "kappa is the value": [
        (enumeration, "binary"),
        (enumeration, "choice", "runs"),
        (check_closed_form, "binomial"),
    ],
    "weights of a known zero": [
        (enumeration, "binomial"),
        (enumeration, "counts", "blocks"),
        (check_weights, 1, 3.0),
    ],
    "particles: weights of a known zero": [(biased, "counts"), (biased, "binomial")],
    "no rest of a weight": [(check_weights, 203.4, 0.7)],
    "dispersion given the weights": [(enumeration, "dispersion"), (enumeration, "all")],
    "scores with a weight": [
        (check_integral, "logistic", (1,), ()),
        (check_sums_to_one, "choice"),
        (biased, "binary"),
    ],
    "kappa without the offset": [(enumeration, "counts"), (check_closed_form, "log_linear")],
    "precision of one state": [(enumeration, "precision"), (enumeration, "mean and precision")],
    "a power of two in additions only": [
        (check_closed_form, "logistic"),
        (enumeration, "binomial", "runs"),
    ],
    "missing values have weights": [
        (check_closed_form, "choice"),
        (enumeration, "choice"),
        (enumeration, "incomplete"),
    ],
}


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("error", "check"),
    [
        pytest.param(
            *(error, check),
            marks=[pytest.mark.slow] * (i > 0),
            id="-".join([error, check[0].__name__, *map(str, check[1:])]),
        )
        for error, checks in CAUGHT.items()
        for i, check in enumerate(checks)
    ],
)
def test_planted_errors_are_noticed(monkeypatch, error, check):
    monkeypatch.setattr(regressions, "_conjugate_stats", edited(CONJUGATE, error))
    test, *args = check
    if test in (enumeration, biased):
        test(*args)
        return
    with pytest.raises(AssertionError):
        test(*args)


def test_every_planted_error_has_a_check():
    assert CAUGHT.keys() == REGRESSIONS.keys()


def test_without_an_error_the_package_is_compiled(monkeypatch):
    """The same weights, bit for bit."""
    for model in (MODELS["counts"], SAMPLED["all"]):
        found = []
        for library in (_conjugate_stats, edited(CONJUGATE, None)):
            monkeypatch.setattr(regressions, "_conjugate_stats", library)
            state = model.state(5)
            kernel = with_draws("runs")(state)
            for _ in range(50):
                kernel.sweep(state)
            found.append(state.emission.hidden()["weights"])
        assert_array_equal(*found)
