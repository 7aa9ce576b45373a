"""Hyperparameters of emissions are drawn from their posterior."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from reference.hyperparameters import SampledDiagonalGaussian
from reference.statistics import cdf_frequencies, total_variation_test
from small_models import SAMPLED, SAMPLERS, Model, assert_caught

pytestmark = pytest.mark.statistical

MODELS = {name.split()[1]: model for name, model in SAMPLED.items()}
# The least of the few p-values of one comparison; permutations give 0.0005 at least.
DOUBT = 0.001
N_DRAWS = 200


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
    "regression": (
        (0.9, 1.0, 0.3),
        (-1.1, -1.2, 0.0),
        (1.3, -1.5, None),
        (0.4, 0.7, 1.0),
        (-0.8, 1.1, 0.5),
        (0.2, 0.4, -0.9),
        (1.0, 1.2, -0.4),
        (0.3, 0.1, 0.8),
        (-0.6, -1.4, -0.7),
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
        for i, one in enumerate(values if values.ndim > 0 and len(values) < 4 else [values]):
            found[f"{name} {i}"] = one
    return found


@lru_cache(maxsize=4)
def laws_given_labels(kind) -> dict:
    """Law of every hyperparameter, by integration."""
    emission = MODELS[kind].emission.with_points(2**17)
    log_weights = emission.log_blocks(LABELS, OBSERVED[kind])
    return {
        name: Weighted(values, log_weights) for name, values in quantities(emission.points).items()
    }


def pvalues_given_labels(kind, chains) -> dict:
    """P-values of chains, {name: (n_chains, n_draws)}, against integration."""
    return {
        name: total_variation_test(*cdf_frequencies(chains[name], law.cdf)).pvalue
        for name, law in laws_given_labels(kind).items()
    }


def chains_given_labels(kind, n_chains=20, n_draws=N_DRAWS) -> dict:
    model = Model(OBSERVED[kind], MODELS[kind].emission)
    every = []
    for seed in range(n_chains):
        state = model.state(seed, np.array(LABELS))
        drawn = []
        for _ in range(100 + n_draws):
            state.draw_hidden()
            drawn.append(quantities(hyperparameters_of(model, state)))
        every.append(drawn[100:])
        assert state.check() is None
    return {
        name: np.array([[draw[name] for draw in chain] for chain in every]) for name in every[0][0]
    }


@pytest.mark.parametrize("kind", MODELS)
def test_given_the_labels(kind):
    pvalues = pvalues_given_labels(kind, chains_given_labels(kind))
    assert min(pvalues.values()) > DOUBT, pvalues


def log_change(kind, error, points):
    """Log of the factor by which an error of a conditional changes the joint density."""
    emission, n_states = MODELS[kind].emission, len(set(LABELS))
    if error == "a slice without its Jacobian":
        return -np.log(points["shape"])
    d = 2 if kind == "full" else emission.columns
    if error == "dof once":
        scale = points["scale"] if kind == "full" else np.tile(points["scale"], (d, 1))
        return (1 - n_states) * emission.dof / 2 * np.log(scale).sum(axis=0)
    if error == "strength without columns":
        sizes = [1] if kind == "full" else emission.sizes
        strength = points["strength"].reshape(len(sizes), -1)
        return n_states * (1 - d) / 2 * (np.array(sizes) @ np.log(strength))
    off = points["mean"] - emission.first.reshape(-1, 1)
    return (off**2 / 2).sum(axis=0)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("counts", "a slice without its Jacobian"),
        *product(("full", "regressions", "levels"), ["dof once"]),
        *product(("full", "regressions", "levels"), ["strength without columns"]),
        ("autoregressive", "mean without prior"),
        *product(("full", "regressions", "autoregressive"), [None]),
    ],
)
def test_errors_given_the_labels_are_noticed(kind, error):
    """Draws from the density that conditionals with the error belong to."""
    emission = MODELS[kind].emission.with_points(2**15)
    log_weights = emission.log_blocks(LABELS, OBSERVED[kind])
    if error is not None:
        log_weights = log_weights + log_change(kind, error, emission.points)
    weights = np.exp(log_weights - log_weights.max())
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(weights), (20, N_DRAWS), p=weights / weights.sum())
    drawn = {k: v[chosen] for k, v in quantities(emission.points).items()}
    pvalues = pvalues_given_labels(kind, drawn)
    assert (min(pvalues.values()) > DOUBT) == (error is None), pvalues


# -- together with the labels ---------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_fixed_hyperparameters_are_noticed(kind):
    """Enumeration sees whether hyperparameters are drawn at all."""
    model = MODELS[kind]
    assert_caught(SAMPLERS["stepwise"].make_kernel, model, n_sweeps=1000)
