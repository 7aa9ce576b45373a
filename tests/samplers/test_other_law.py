"""Kernels under a law of transitions of the tests: a coin for every state."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from functools import cache

import native
import numpy as np
import pytest
from reference.enumeration import (
    DirichletEmission,
    GaussianEmission,
    HCRPEmission,
    canonical,
    convolve,
    log_crp,
    log_likelihood,
    row_sizes,
    set_partitions,
    stirling_polynomial,
    transition_counts,
)
from scipy.special import betaln
from small_models import SUSPECT, Model

from skihmm.core._random import RandomStream
from skihmm.testing._statistics import total_variation_test

MODELS = {
    "persistent": (
        Model((0, 0, 0, 1, 1, 1), HCRPEmission(2, 0.5, 1.0), (0,), 0.7, 1.2),
        3.0,
        0.7,
    ),
    "two sequences": (
        Model((0, None, 1, 0, 0), DirichletEmission(3, 0.7), (0, 3), 2.0, 2.0),
        0.5,
        1.5,
    ),
    "densities": (
        Model((0.1, 0.2, 0.1, 2.0, 2.2), GaussianEmission(), (0,), 1.5, 1.0),
        15.0,
        2.0,
    ),
}
SAMPLERS = {
    "step-wise": ("stepwise", 1, 0.0),
    "exact": ("exact", 1, 0.0),
    "blocks of 1": ("blocked", 1, 0.0),
    "blocks of 3": ("blocked", 3, 0.0),
    "whole sequences": ("blocked", 6, 0.0),
    "beam": ("beam", 3, 0.0),
    "split-merge": ("stepwise", 1, 2.0),
}
# Least acceptance by model.  A proposal that leaves out the coin is exact, but poor.
ACCEPTANCE = {
    "step-wise": (0.95, 0.93, 0.96),
    "exact": (1.0, 1.0, 1.0),
    "blocks of 1": (0.80, 0.90, 0.85),
    "blocks of 3": (0.65, 0.86, 0.75),
    "whole sequences": (0.53, 0.85, 0.73),
    "beam": (0.70, 0.88, 0.77),
    "split-merge": (0.95, 0.93, 0.96),
}


def log_prior_by_tables(x, starts, alpha, gamma, kappa, omega):
    """``{m: log p(x, m)}``, summed over which of the self-transitions are stays."""
    counts = transition_counts(x, starts)
    loops = {k: n for (j, k), n in counts.items() if j == k}
    out = defaultdict(list)
    for stays in itertools.product(*(range(n + 1) for n in loops.values())):
        draws = Counter(counts)
        draws.subtract({(k, k): q for k, q in zip(loops, stays, strict=True)})
        draws = +draws
        log_p = 0.0
        for k in set(x):
            q = counts[k, k] - draws[k, k]
            left = sum(n for (j, _), n in draws.items() if j == k)
            log_p += math.log(math.comb(counts[k, k], q))
            log_p += betaln(kappa + q, omega + left) - betaln(kappa, omega)
        weights = {0: 1}
        dishes = {k for _, k in draws}
        for k in dishes:
            dish = stirling_polynomial(n for (_, d), n in draws.items() if d == k)
            weights = convolve(
                weights, {m: w * math.factorial(m - 1) for m, w in dish.items()}
            )
        for m, weight in weights.items():
            out[m].append(
                log_p
                + float(log_crp(alpha, row_sizes(draws)) + log_crp(gamma, [m]))
                + m * math.log(alpha)
                + len(dishes) * math.log(gamma)
                + math.log(weight)
            )
    return {m: float(np.logaddexp.reduce(values)) for m, values in out.items()}


@cache
def posterior(name):
    """The probability of every partition with every number of tables."""
    model, kappa, omega = MODELS[name]
    log_p = {}
    for x in set_partitions(model.n_steps):
        seen = log_likelihood(x, model.y, model.emission)
        prior = log_prior_by_tables(
            x, model.starts, model.alpha, model.gamma, kappa, omega
        )
        log_p |= {(x, m): value + seen for m, value in prior.items()}
    total = np.logaddexp.reduce([*log_p.values()])
    return {cell: math.exp(value - total) for cell, value in log_p.items()}


def chain_of(name, sampler, seed):
    model, kappa, omega = MODELS[name]
    return native.coin.CoinChain(
        model.stats(),
        model.starts,
        (model.alpha, model.gamma, kappa, omega),
        RandomStream(seed),
        *SAMPLERS[sampler],
    )


@pytest.mark.parametrize("kappa", [1e-9, 0.5, 15.0])
def test_the_prior_sums_to_one(kappa):
    logs = [
        log_prior_by_tables(x, (0, 3), 0.7, 1.3, kappa, 0.4).values()
        for x in set_partitions(5)
    ]
    assert sum(map(math.exp, itertools.chain(*logs))) == pytest.approx(1)


@pytest.mark.parametrize("name", MODELS)
def test_passes_against_dense_matrices(name):
    rng = np.random.default_rng(0)
    chain = chain_of(name, "step-wise", 0)
    for _ in range(20):
        labels = [0, *np.unique(chain.sweep(3)[0][-1, :-1])]  # NEW first
        weights, values = np.zeros((2, chain.n_slots))
        weights[labels], values[labels] = rng.random((2, len(labels)))
        dense, *passes = chain.passes(weights, values)
        dense, rows = (matrix[np.ix_(labels, labels)] for matrix in (dense, passes[0]))
        pushed, pulled, best, argmax = (vector[labels] for vector in passes[1:])
        products = weights[labels, None] * dense
        np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=1e-13)
        np.testing.assert_allclose(rows, dense, rtol=1e-13)
        np.testing.assert_allclose(pushed, products.sum(axis=0), rtol=1e-13)
        np.testing.assert_allclose(pulled, dense @ values[labels], rtol=1e-13)
        np.testing.assert_allclose(best, products.max(axis=0), rtol=1e-13)
        np.testing.assert_array_equal(argmax, np.array(labels)[products.argmax(axis=0)])


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", MODELS)
def test_chains_have_the_exact_posterior(name, sampler):
    exact, frequencies, acceptance = posterior(name), [], []
    for seed in range(20):
        chain = chain_of(name, sampler, seed)
        chain.sweep(200)
        draws, accepted = chain.sweep(5000)
        cells = Counter((canonical(row[:-1]), int(row[-1])) for row in draws.tolist())
        frequencies.append([cells.pop(cell, 0) for cell in exact])
        assert not cells, "impossible labels or tables"
        acceptance.append(accepted)
    found = total_variation_test(frequencies, [*exact.values()])
    assert found.pvalue > SUSPECT, found
    assert np.mean(acceptance) >= ACCEPTANCE[sampler][[*MODELS].index(name)]
