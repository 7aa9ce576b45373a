"""Hyperparameters of emissions are drawn from their posterior."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from reference.conjugate import as_matrix
from reference.hyperparameters import (
    SampledAutoregression,
    SampledDiagonalGaussian,
    SampledFullGaussian,
)
from reference.statistics import cdf_frequencies, total_variation_test
from small_models import (
    SAMPLED,
    SAMPLERS,
    Model,
    WithHyperparameters,
    assert_caught,
    assert_exact,
)

pytestmark = pytest.mark.statistical

MODELS = {name.split()[1]: model for name, model in SAMPLED.items()}
# Of the few p-values of one comparison the least; permutations give 0.0005 at least.
DOUBT = 0.001


def hyperparameters_of(model: Model, state) -> dict:
    record = state.to_arrays()["emission"]
    found = record.get("hyperparameters", record.get("alpha"))
    if isinstance(model.emission, SampledDiagonalGaussian):
        found = found[[0, 1, 2]]
    return model.emission.read(found)


# -- given the labels -----------------------------------------------------------------


class Weighted:
    """Law of one hyperparameter given labels, from the points of its prior."""

    def __init__(self, values, log_weights):
        order = np.argsort(values)
        weights = np.exp(log_weights - log_weights.max())[order]
        self.values = values[order]
        self.cumulative = np.cumsum(weights) / weights.sum()

    def cdf(self, x):
        return np.interp(x, self.values, self.cumulative, left=0.0, right=1.0)


LABELS = [0, 1, 0, 0, 1, 2, 0, 1, 2]
OBSERVED = {
    "diagonal": (0.3, 2.5, 0.1, None, 2.9, -1.0, 0.2, 2.4, -1.4),
    "full": (
        (0.1, -1.0),
        (2.0, 0.5),
        (0.3, None),
        (0.2, -0.8),
        (1.9, 0.7),
        (-1.0, -1.0),
        (0.0, -1.2),
        (2.3, 0.2),
        (-1.2, -0.8),
    ),
    "autoregressive": (
        (-0.3, -0.1),
        (-1.7, 0.6),
        (-0.5, None),
        (0.0, -0.5),
        (0.7, -1.6),
        (1.4, 0.4),
        (-1.0, -1.2),
        (1.2, -2.3),
        (1.1, -0.2),
    ),
    "levels": (
        (0.1, -1.0),
        (0.5, 0.7),
        (0.3, None),
        (0.8, -0.2),
        (-1.2, 0.4),
        (-0.3, -0.6),
        (-0.9, 1.1),
        (1.2, 0.2),
        (0.4, -0.9),
    ),
    "regressions": (
        (0.1, -1.0, 0.8, 0.5),
        (2.0, 0.5, -1.5, 1.2),
        (0.3, None, 0.2, 0.1),
        (0.2, -0.8, 0.1, -1.9),
        (1.9, 0.7, -1.0, 0.4),
        (-1.0, -1.0, 1.0, 0.3),
        (0.0, -1.2, -0.6, -0.7),
        (2.3, 0.2, -1.7, -0.2),
        (-1.2, -0.8, 0.4, 1.4),
    ),
    "counts": (1, 9, 0, None, 8, 30, 1, 12, 25),
    "overdispersed": (1, 9, 0, None, 5, 60, 4, 12, 15),
    "positive": (0.4, 3.0, 0.2, None, 3.5, 8.0, 0.9, 2.0, 11.0),
    "angles": (0.4, 3.0, 0.2, None, -3.0, 1.5, -0.3, 2.6, 1.2),
    "binary": (1, 0, 1, None, 0, 1, 1, 0, 1),
    "symbols": (1, 0, 1, None, 0, 2, 1, 3, 2),
}


def quantities(drawn: dict) -> dict:
    """The hyperparameters one by one."""
    found = {}
    for name, values in drawn.items():
        values = np.asarray(values, float)
        for i, one in enumerate(
            values if values.ndim > 0 and len(values) < 3 else [values]
        ):
            found[f"{name} {i}"] = one
    return found


@lru_cache(maxsize=4)
def laws_given_labels(kind) -> dict:
    """Law of every hyperparameter, by integration."""
    emission = MODELS[kind].emission.with_points(2**17)
    log_weights = emission.log_weights(LABELS, OBSERVED[kind])
    return {
        name: Weighted(values, log_weights)
        for name, values in quantities(emission.points).items()
    }


def pvalues_given_labels(kind, chains) -> dict:
    """P-values of chains, {name: (n_chains, n_draws)}, against integration."""
    return {
        name: total_variation_test(*cdf_frequencies(chains[name], law.cdf)).pvalue
        for name, law in laws_given_labels(kind).items()
    }


def chains_given_labels(kind, n_chains=20, n_draws=200) -> dict:
    model = Model(OBSERVED[kind], MODELS[kind].emission)
    every = []
    for seed in range(n_chains):
        state = model.state(seed, np.array(LABELS))
        drawn = []
        for _ in range(100 + n_draws):
            state.draw_hyperparameters()
            drawn.append(quantities(hyperparameters_of(model, state)))
        every.append(drawn[100:])
        assert state.check() is None
    return {
        name: np.array([[draw[name] for draw in chain] for chain in every])
        for name in every[0][0]
    }


@pytest.mark.parametrize("kind", MODELS)
def test_given_the_labels(kind):
    pvalues = pvalues_given_labels(kind, chains_given_labels(kind))
    assert min(pvalues.values()) > DOUBT, pvalues


def normal(rng, mean, precision):
    """A normal variate."""
    root = np.linalg.cholesky(precision)
    return mean + np.linalg.solve(root.T, rng.normal(size=len(mean)))


class NaiveGaussian:
    """The draws of a Gaussian's hyperparameters from their definition, by NumPy.

    `error`: what is done wrongly.
    """

    def __init__(self, emission: SampledFullGaussian, error=None):
        self.emission = emission
        self.error = error
        self.mean = np.zeros(2)
        self.strength = 1.0
        self.scale = np.ones(2)

    def draw(self, values, labels, rng):
        emission, d = self.emission, 2
        centre, variance = np.array(emission.centre), np.array(emission.variance)
        values, labels = np.asarray(values, float), np.asarray(labels)
        is_seen = ~np.isnan(values).any(axis=1)
        precisions, means = [], []
        for k in np.unique(labels[is_seen]):
            y = values[(labels == k) & is_seen]
            n = len(y)
            off = y.mean(axis=0) - self.mean
            psi = np.diag(self.scale) + (y - y.mean(axis=0)).T @ (y - y.mean(axis=0))
            psi += self.strength * n / (self.strength + n) * np.outer(off, off)
            # A Wishart variate is a sum of squares of as many normal ones.
            root = np.linalg.cholesky(np.linalg.inv(psi))
            rows = rng.normal(size=(int(emission.dof) + n, d)) @ root.T
            precisions.append(rows.T @ rows)
            mean = (self.strength * self.mean + y.sum(axis=0)) / (self.strength + n)
            means.append(normal(rng, mean, (self.strength + n) * precisions[-1]))
        n_states = len(means)
        total = np.sum(precisions, axis=0)
        counted = 1 if self.error == "dof once" else n_states
        scale = rng.gamma(
            0.5 + counted * emission.dof / 2, 1 / (0.5 / variance + np.diag(total) / 2)
        )
        # (Counted once it falls and falls.)
        self.scale = np.maximum(scale, 1e-6)
        squares = sum(
            (m - self.mean) @ p @ (m - self.mean)
            for m, p in zip(means, precisions, strict=True)
        )
        columns = 1 if self.error == "strength without columns" else d
        self.strength = rng.gamma(0.5 + n_states * columns / 2, 1 / (0.5 + squares / 2))
        prior = (
            np.zeros((d, d))
            if self.error == "mean without prior"
            else np.diag(1 / variance)
        )
        precision = prior + self.strength * total
        weighted = prior @ centre + self.strength * sum(
            p @ m for m, p in zip(means, precisions, strict=True)
        )
        self.mean = normal(rng, np.linalg.solve(precision, weighted), precision)


class NaiveAutoregression:
    """The same for an autoregression."""

    def __init__(self, emission: SampledAutoregression, error=None):
        self.emission = emission
        self.error = error
        self.mean = emission.first
        self.strength = np.ones(emission.order + 1)
        self.scale = 1.0

    def draw(self, values, labels, rng):
        emission, (d, q) = self.emission, self.mean.shape
        values, labels = np.asarray(values, float), np.asarray(labels)
        is_seen = ~np.isnan(values).any(axis=1)
        group = np.repeat(range(emission.order + 1), [d] * emission.order + [1])
        prior = np.diag(self.strength[group])
        precisions, coefficients = [], []
        for k in np.unique(labels[is_seen]):
            y, inputs = np.split(values[(labels == k) & is_seen], [d], axis=1)
            x = np.hstack([inputs, np.ones((len(y), 1))])
            S_xx = prior + x.T @ x
            A = (self.mean @ prior + y.T @ x) @ np.linalg.inv(S_xx)
            psi = self.scale * emission.scale + (y - x @ A.T).T @ (y - x @ A.T)
            psi += (A - self.mean) @ prior @ (A - self.mean).T
            root = np.linalg.cholesky(np.linalg.inv(psi))
            rows = rng.normal(size=(int(emission.dof) + len(y), d)) @ root.T
            precisions.append(rows.T @ rows)
            left = np.linalg.cholesky(np.linalg.inv(precisions[-1]))
            right = np.linalg.cholesky(np.linalg.inv(S_xx))
            coefficients.append(A + left @ rng.normal(size=(d, q)) @ right.T)
        n_states, total = len(precisions), np.sum(precisions, axis=0)
        counted = 1 if self.error == "dof once" else n_states
        trace = (emission.scale * total).sum()
        shape = 0.5 + counted * emission.dof * d / 2
        # (Counted once it falls and falls.)
        self.scale = max(rng.gamma(shape, 1 / (0.5 + trace / 2)), 1e-6)
        squares = sum(
            np.einsum("ij,ik,kj->j", A - self.mean, p, A - self.mean)
            for A, p in zip(coefficients, precisions, strict=True)
        )
        n = n_states if self.error == "strength without columns" else n_states * d
        self.strength = rng.gamma(
            1 + n * np.bincount(group) / 2, 1 / (0.1 + np.bincount(group, squares) / 2)
        )
        if not emission.draws_mean:
            return
        here = 0.0 if self.error == "mean without prior" else 1.0
        for j, strength in enumerate(self.strength[group]):
            weighted = here * emission.first[:, j] + strength * sum(
                p @ A[:, j] for A, p in zip(coefficients, precisions, strict=True)
            )
            precision = here * np.eye(d) + strength * total
            self.mean[:, j] = normal(rng, np.linalg.solve(precision, weighted), precision)


ERRORS = ["dof once", "strength without columns", "mean without prior"]


NAIVE = {
    "full": NaiveGaussian,
    "autoregressive": NaiveAutoregression,
    "regressions": NaiveAutoregression,
    "levels": NaiveAutoregression,
}


def naive_chains(kind, error, n_chains=20, n_draws=200) -> dict:
    model = Model(OBSERVED[kind], MODELS[kind].emission)
    values = as_matrix(model.y)
    every = []
    for seed in range(n_chains):
        naive, rng = NAIVE[kind](model.emission, error), np.random.default_rng(seed)
        drawn = []
        for _ in range(50 + n_draws):
            naive.draw(values, LABELS, rng)
            found = {name: getattr(naive, name) for name in model.emission.points}
            drawn.append(quantities({k: np.ravel(v) for k, v in found.items()}))
        every.append(drawn[50:])
    return {
        name: np.array([[draw[name] for draw in chain] for chain in every])
        for name in every[0][0]
    }


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        *(("full", error) for error in [None, *ERRORS]),
        *(("regressions", error) for error in [None, *ERRORS[:2]]),
        *(("autoregressive", error) for error in [None, ERRORS[2]]),
        *(
            pytest.param("levels", error, marks=pytest.mark.slow)
            for error in [None, *ERRORS[:2]]
        ),
    ],
)
def test_planted_errors_given_the_labels(kind, error):
    # Errors of the two shapes are large, and the only ones of regressions.
    n_draws = 50 if kind == "regressions" or error in ERRORS[:2] else 100
    pvalues = pvalues_given_labels(kind, naive_chains(kind, error, n_draws=n_draws))
    assert (min(pvalues.values()) > DOUBT) == (error is None), pvalues


def test_a_slice_without_its_jacobian_is_noticed():
    """The density of log a has a factor a; without it the prior is another one."""
    emission = MODELS["counts"].emission.with_points(2**15)
    log_weights = emission.log_weights(LABELS, OBSERVED["counts"])
    points = quantities(emission.points)
    rng = np.random.default_rng(0)
    wrong = log_weights - np.log(points["shape 0"])
    weights = np.exp(wrong - wrong.max())
    chosen = rng.choice(len(weights), (20, 1500), p=weights / weights.sum())
    pvalues = pvalues_given_labels("counts", {k: v[chosen] for k, v in points.items()})
    assert min(pvalues.values()) < DOUBT


# -- together with the labels ---------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_fixed_hyperparameters_are_noticed(kind):
    """Enumeration sees whether hyperparameters are drawn at all."""
    model = MODELS[kind]
    assert_caught(model, SAMPLERS["stepwise"].make_kernel, n_sweeps=2000)


class NaiveUpdates(WithHyperparameters):
    """The same with the naive draws; they enter the chain as a record would."""

    def __init__(self, kernel, model, error):
        super().__init__(kernel)
        self.naive = NaiveGaussian(model.emission, error)
        self.values = as_matrix(model.y)
        self.rng = np.random.default_rng(0)

    def sweep(self, state):
        counts = self.kernel.sweep(state)
        arrays = state.to_arrays()
        self.naive.draw(self.values, arrays["states"], self.rng)
        root = np.sqrt(self.naive.scale)
        numbers = [*self.naive.mean, self.naive.strength, root[0], 0.0, root[1]]
        state.emission.take_hyperparameters({"hyperparameters": np.array(numbers)})
        state.canonicalise()
        return counts


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, *ERRORS])
def test_planted_errors_by_enumeration(error):
    model = MODELS["full"]

    def make_kernel(state):
        return NaiveUpdates(SAMPLERS["stepwise"].make_kernel(state), model, error)

    if error is None:
        assert_exact(model, make_kernel, n_sweeps=2000)
    else:
        assert_caught(model, make_kernel, n_sweeps=4000)
