"""
Residuals of held-out rows, false alarms of ``diagnose``, and wrong models that it names.

    python benchmarks/calibration.py --seeds 20 --first 900 --held-out 500

Two regimes of 50 rows on average (symbols: three of ten), 2,000 rows to fit and 200 or
more held out, with default transitions and 130 sweeps.  Printed by family: p of
Kolmogorov-Smirnov and of the lag-1 correlation of all held-out residuals, as if they were
independent; p of ten cells and of that correlation by their variation between fits, as
all rows after a fit share the errors of its parameters; and the number of fits of the
right model in which ``diagnose`` finds anything.  Then of wrong models how often the
finding that the data were made for is named, and the numbers of lines.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
from scipy.stats import kstest, norm, ttest_1samp

from skihmm import HCRPHMM
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    CategoricalRegression,
    NegativeBinomialRegression,
    ProductEmission,
)
from skihmm.testing._statistics import total_variation_test

N = 2000


def follow(values, A):
    """An autoregression of order one with coefficients A of every row."""
    for t in range(1, len(values)):
        values[t] += A[t] * values[t - 1]
    return values


def numbers(rng, z):
    return rng.normal(size=len(z))


def logistic(x):
    return 1 / (1 + np.exp(-x))


def columns(*each):
    return np.column_stack(each)


REGRESSION = AutoregressiveNormal(order=0, input_features=[1])
NORMAL = AutoregressiveNormal(order=0, input_features=[1], noise="normal")
LETTERS = np.array([[0.6, 0.3, 0.1, 0], [0.1, 0.1, 0.4, 0.4], [0, 0.2, 0.2, 0.6]])
CHOICES = np.array([[0, 0.7, 1.0], [0, 1.5, -1.0]])
MIXED = ProductEmission([("count", "poisson", [0]), ("number", "gaussian", [1])])


def choose(rng, logits):
    return (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


# Emission, and data from random numbers, regimes, and an input.
RIGHT = {
    "gaussian": ("gaussian", lambda r, z, u: 2.5 * z + numbers(r, z)),
    "two columns": (
        "gaussian",
        lambda r, z, u: columns(3 * z + u, 0.7 * u + numbers(r, z) - 3 * z),
    ),
    "diagonal": (
        "diagonal_gaussian",
        lambda r, z, u: columns(3 * z + u, numbers(r, z) - 3 * z),
    ),
    "student": (
        "student",
        lambda r, z, u: 3 * z + r.standard_t(4, len(z)),
    ),
    "autoregression": (
        "autoregressive",
        lambda r, z, u: follow(numbers(r, z), np.array([0.9, -0.5])[z]),
    ),
    "regression": (
        NORMAL,
        lambda r, z, u: columns((0.9 - 1.8 * z) * u + 0.5 * numbers(r, z), u),
    ),
    "poisson": ("poisson", lambda r, z, u: r.poisson(3 + 7 * z)),
    "negative binomial": (
        "negative_binomial",
        lambda r, z, u: r.poisson((3 + 12 * z) * r.gamma(3, 1 / 3, len(z))),
    ),
    "gamma": ("gamma", lambda r, z, u: r.gamma(3, 1 + 3 * z)),
    "angles": ("von_mises", lambda r, z, u: r.vonmises(2.0 * z, 4.0)),
    "bernoulli": (
        "bernoulli",
        lambda r, z, u: (
            r.random((len(z), 3)) < np.array([[0.2, 0.8, 0.5], [0.8, 0.3, 0.1]])[z]
        ).astype(int),
    ),
    "logistic": (
        BernoulliRegression([1]),
        lambda r, z, u: columns(r.random(len(z)) < logistic(1 - 2 * z + 3 * u - 4 * z * u), u),
    ),
    "log-linear": (
        NegativeBinomialRegression([1]),
        lambda r, z, u: columns(r.poisson(np.exp(1 + (0.6 - 1.2 * z) * u)), u),
    ),
    "choice": (
        CategoricalRegression([1], categories=[0, 1, 2]),
        lambda r, z, u: columns(choose(r, 2 * u[:, None] * CHOICES[z] * [0, 0, 1]), u),
    ),
    "symbols": ("hcrp", lambda r, z, u: choose(r, np.log(LETTERS[z] + 1e-9))),
    "mixed": (MIXED, lambda r, z, u: columns(r.poisson(3 + 7 * z), 3 * z + u)),
}
WRONG = {
    "Student's t (4)": (
        "tails outliers",
        "gaussian",
        lambda r, z, u: 2.5 * z + r.standard_t(4, len(z)) / np.sqrt(2),
    ),
    "gamma (2)": (
        "skew",
        "gaussian",
        lambda r, z, u: 2.5 * z + r.gamma(2, np.sqrt(0.5), len(z)),
    ),
    "autocorrelated, .6": (
        "memory moving",
        "gaussian",
        lambda r, z, u: 2.5 * z + follow(numbers(r, z), np.full(len(z), 0.6)),
    ),
    "exponential effect": (
        "bend",
        REGRESSION,
        lambda r, z, u: columns(np.exp((0.6 - 1.2 * z) * u + 0.3 * numbers(r, z)), u),
    ),
    "zeros, a quarter": (
        "zeros values",
        NegativeBinomialRegression([1]),
        lambda r, z, u: columns(
            r.poisson(np.exp(1.5 + (0.6 - 1.2 * z) * u)) * (r.random(len(z)) > 0.25), u
        ),
    ),
}


def fit(name, emission, simulate, seed, n_new):
    """A fit, its held-out residuals, and the kinds of what is found."""
    rng = np.random.default_rng(seed)
    n_regimes, dwell = (3, 10) if name == "symbols" else (2, 50)
    moves = rng.integers(1, n_regimes, N + n_new) * (rng.random(N + n_new) < 1 / dwell)
    z = np.cumsum(moves) % n_regimes
    X = simulate(rng, z, rng.normal(size=len(z))).reshape(len(z), -1)
    hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=30, random_state=seed)
    hmm.fit(X[:N])
    return hmm.residuals(X)[N:], [finding.kind for finding in hmm.diagnose().findings]


def pvalues_of_fits(residuals):
    """P-values of uniform ranks, by column, and of none of the correlations of lag 1.

    The residuals have shape (n_fits, n_rows, n_columns).
    """
    cells = (10 * norm.cdf(residuals)).astype(int)
    shares = (cells[..., None] == np.arange(10)).mean(axis=1)
    uniform = [
        total_variation_test(column, np.full(10, 0.1)).pvalue for column in shares.swapaxes(0, 1)
    ]
    lagged = (residuals[:, 1:] * residuals[:, :-1]).mean(axis=1)
    return np.array(uniform), ttest_1samp(lagged, 0).pvalue


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--held-out", type=int, default=200, help="rows held out")
    parser.add_argument("--names", default="", help="part of the names")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    n_new = arguments.held_out
    for name, (emission, simulate) in RIGHT.items():
        if arguments.names not in name:
            continue
        start = time.process_time()
        found = [fit(name, emission, simulate, seed, n_new) for seed in seeds]
        residuals = np.array([each for each, _ in found])
        lagged = (residuals[:, 1:] * residuals[:, :-1]).mean(axis=(0, 1))
        p = kstest(residuals.reshape(-1, residuals.shape[2]), "norm", axis=0).pvalue
        p_lagged = 2 * norm.sf(abs(lagged) * np.sqrt(residuals[:, 1:, 0].size))
        by_fits = " and ".join(str(np.round(p, 3)) for p in pvalues_of_fits(residuals))
        alarms = sum(bool(kinds) for _, kinds in found)
        print(
            f"{name:20} p {np.round(p, 3)}, of lag 1 {np.round(p_lagged, 3)}, by fits "
            f"{by_fits}, alarms {alarms} of {len(seeds)}, "
            f"{time.process_time() - start:.0f} s",
            flush=True,
        )
    for name, (kind, emission, simulate) in WRONG.items():
        if arguments.names not in name:
            continue
        found = [fit(name, emission, simulate, seed, n_new)[1] for seed in seeds]
        named = sum(bool({*kinds} & {*kind.split()}) for kinds in found)
        others = Counter(map(len, found))
        print(f"{name:20} {kind} {named} of {len(seeds)}, lines {dict(others)}", flush=True)


if __name__ == "__main__":
    main()
