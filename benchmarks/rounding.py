"""
Rounded columns, columns that others determine, constant ones, and one wrong value.

    python benchmarks/rounding.py

Levels: 800 rows, three states six noise deviations apart, rounded to multiples of the step (0:
not).  One column in short fits: three states six steps apart, with noise of a share of the step, 0
for exact levels; and ratings from 1 to 5.  Regressions: 1,500 rows of two columns and of further
ones, or 241 rows.
Printed: mean and least adjusted Rand index of ``labels_``, and mean number of states.
"""

import warnings
from itertools import product

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM

SEEDS = range(5)
STEPS = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0]
DEVIATIONS = [0.0, 0.15, 0.3, 0.5, 1.0]
LEVELS = 6.0 * np.array([[0, 0, 0], [1, -1, 1], [-1, 2, 2]])
TURN = 0.99 * np.array([[0.9, 0.4], [-0.4, 0.9]])
COEFFICIENTS = [TURN, TURN.T, -0.8 * np.eye(2)]


def draw_path(n_steps, dwell, rng):
    n = n_steps - 1
    moves = [rng.integers(1, 3) if rng.random() < 1 / dwell else 0 for _ in range(n)]
    return np.cumsum([0, *moves]) % 3


def draw_walk(n_steps, rng):
    states, X = draw_path(n_steps, 50, rng), np.zeros((n_steps, 2))
    for t in range(1, n_steps):
        X[t] = COEFFICIENTS[states[t]] @ X[t - 1] + rng.normal(size=2)
    return X, states


def draw_levels(d, step, rng):
    states = draw_path(800, 20, rng)
    X = LEVELS[states, :d] + rng.normal(size=(800, d))
    return step * np.rint(X / step) if step else X, states


def draw_rounded(n_steps, deviation, rng):
    states = draw_path(n_steps, 20, rng)
    return np.rint(6.0 * states + rng.normal(0, deviation, n_steps))[:, None], states


def draw_ratings(rng):
    states = draw_path(600, 40, rng) // 2
    X = 2 + 2 * states + 1.2 * rng.normal(size=600)
    return np.clip(np.rint(X), 1, 5)[:, None], states


def report(name, emission, data, **params):
    found = []
    for seed, (X, states) in zip(SEEDS, data, strict=True):
        hmm = HCRPHMM(emission=emission, random_state=seed, **params).fit(X)
        found.append((adjusted_rand_score(states, hmm.labels_), hmm.n_states_))
    scores, n_states = np.transpose(found)
    print(f"{name:<36}{scores.mean():6.2f}{scores.min():6.2f}{n_states.mean():6.1f}")


def report_columns():
    lengths = [(600, v) for v in DEVIATIONS] + [(5000, 0.3), (5000, 1.0)]
    data = {
        f"{n} rows, noise of {v} steps": [
            draw_rounded(n, v, np.random.default_rng(seed)) for seed in SEEDS
        ]
        for n, v in lengths
    }
    data["ratings"] = [draw_ratings(np.random.default_rng(seed)) for seed in SEEDS]
    for name, columns in data.items():
        report(name, "gaussian", columns, n_burnin=80, n_draws=20)


def main():
    warnings.simplefilter("ignore")
    report_columns()
    walks = [draw_walk(1500, np.random.default_rng(seed)) for seed in SEEDS]
    coin = (np.random.default_rng(0).random((1500, 1)) < 0.5).astype(float)
    further = {
        "none": lambda X: X[:, :0],
        "double": lambda X: 2 * X[:, :1],
        "sum": lambda X: X.sum(axis=1, keepdims=True),
        "remaining share": lambda X: 1 - 0.02 * X.sum(axis=1, keepdims=True),
        "one-hot pair": lambda X: np.hstack([coin, 1 - coin]),
        "constant": lambda X: np.full((len(X), 1), 7.0),
    }
    for name, make in further.items():
        data = [(np.hstack([X, make(X)]), path) for X, path in walks]
        report(name, "autoregressive", data)
    for wrong in (False, True):
        data = [draw_walk(241, np.random.default_rng(seed)) for seed in SEEDS]
        for X, _ in data:
            X[120, 0] = 1e5 if wrong else X[120, 0]
        report(f"241 rows, 1e5 among them: {wrong}", "autoregressive", data)
    for emission, d, step in product(("gaussian", "diagonal_gaussian"), (1, 2, 3), STEPS):
        data = [draw_levels(d, step, np.random.default_rng(seed)) for seed in SEEDS]
        report(f"{emission}, d={d}, step {step}", emission, data)


if __name__ == "__main__":
    main()
