"""
Student's t noise beside normal noise, on data with heavy tails and without.

    python benchmarks/heavy_tails.py --seeds 5

Simulated: six autoregressions of two columns, order one, that last 100 steps on average;
two levels of one column that last 50 steps, with noise of unit variance (normal, gamma,
t of four degrees of freedom, bimodal); daily returns of three regimes that differ in
variance (regimes.py); 600 steps of two regressions on one of two inputs.  With
``--mocap6 FOLDER`` also motion capture, of which the last recording is held out.

Printed, for every set the means over seeds: states with at least one per cent of the
rows, segments, adjusted Rand index of ``labels_``, log likelihood of as many new rows per
row with frozen parameters, CPU seconds of the fit, and degrees of freedom.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from regimes import draw_returns
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.datasets import fetch_mocap6
from skihmm.emissions import AutoregressiveNormal
from skihmm.metrics import frozen_log_likelihood

NOISES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
    "t4": lambda rng, shape: rng.standard_t(4, shape) / np.sqrt(2),
    "gamma": lambda rng, shape: rng.gamma(2.0, size=shape) / np.sqrt(2) - np.sqrt(2),
    "bimodal": lambda rng, shape: (
        (2 * rng.integers(2, size=shape) - 1) * 0.9 + rng.normal(size=shape) * 0.436
    ),
}


def draw_states(n_states, n_steps, dwell, rng):
    """States, none of which is rare in the first half."""
    while True:
        changes = rng.random(n_steps) < 1 / dwell
        states = np.cumsum(rng.integers(1, n_states, n_steps) * changes) % n_states
        counts = np.bincount(states[: n_steps // 2], minlength=n_states)
        if counts.min() > n_steps / (10 * n_states):
            return states


def autoregressions(noise, n_steps, rng):
    matrices = rng.normal(size=(6, 2, 2))
    for A in matrices:
        A *= rng.uniform(0.7, 0.97) / abs(np.linalg.eigvals(A)).max()
    intercepts = rng.normal(scale=0.5, size=(6, 2))
    states = draw_states(6, 2 * n_steps, 100, rng)
    X, e = np.zeros((2 * n_steps, 2)), 0.5 * NOISES[noise](rng, (2 * n_steps, 2))
    for t in range(1, len(X)):
        X[t] = matrices[states[t]] @ X[t - 1] + intercepts[states[t]] + e[t]
    return X, states


def levels(noise, n_steps, rng):
    states = draw_states(2, 2 * n_steps, 50, rng)
    return (2.5 * states + NOISES[noise](rng, 2 * n_steps))[:, None], states


def returns(noise, n_steps, rng):
    parts = [draw_returns(noise, rng) for _ in range(2)]
    return 100 * np.vstack([X for X, _ in parts]), np.concatenate([z for _, z in parts])


def regressions(noise, n_steps, rng):
    states = draw_states(2, 2 * n_steps, 100, rng)
    U = rng.normal(size=(2 * n_steps, 2))
    slopes, deviations = np.array([0.9, -0.45]), np.array([0.46, 0.82])
    y = slopes[states] * U[:, 0] + deviations[states] * NOISES[noise](rng, 2 * n_steps)
    return np.column_stack([y, U]), states


ORDER_1, ORDER_0 = {"order": 1}, {"order": 0}
REGRESSION = {"order": 0, "input_features": [1, 2]}
SETS = {
    "autoregressions, normal": (autoregressions, "normal", 3000, ORDER_1),
    "autoregressions, t3": (autoregressions, "t3", 3000, ORDER_1),
    "autoregressions, t3, long": (autoregressions, "t3", 20000, ORDER_1),
    "levels, normal": (levels, "normal", 10000, ORDER_0),
    "levels, gamma": (levels, "gamma", 10000, ORDER_0),
    "levels, t4": (levels, "t4", 10000, ORDER_0),
    "levels, bimodal": (levels, "bimodal", 10000, ORDER_0),
    "returns, normal": (returns, "normal", 3000, ORDER_0),
    "returns, t4": (returns, "t", 3000, ORDER_0),
    "regressions, normal": (regressions, "normal", 600, REGRESSION),
    "regressions, gamma": (regressions, "gamma", 600, REGRESSION),
    "regressions, t4": (regressions, "t4", 600, REGRESSION),
}


def measure(train, states, test, settings, noise, seed, groups=(None, None)):
    emission = AutoregressiveNormal(**settings, noise=noise)
    # The default of autoregressions, here of all sets.
    hmm = HCRPHMM(emission=emission, transitions="persistent", random_state=seed)
    start = time.process_time()
    hmm.fit(train, groups=groups[0])
    seconds = time.process_time() - start
    labels = hmm.labels_
    dof = hmm.draws_.hyperparameters.get("emission_noise_dof", np.nan)
    return (
        (np.bincount(labels[labels >= 0]) >= 0.01 * len(train)).sum(),
        1 + np.count_nonzero(np.diff(labels)),
        adjusted_rand_score(states, labels),
        frozen_log_likelihood(hmm, test, groups=groups[1]),
        seconds,
        np.mean(dof),
    )


def show(name, noise, rows):
    large, segments, index, held_out, seconds, dof = np.mean(rows, axis=0)
    print(
        f"{name:28} {noise:8} states {large:4.1f}, segments {segments:6.1f}, index "
        f"{index:.3f}, held-out {held_out:8.4f}, {seconds:6.2f} s, dof {dof:.1f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", default="", help="part of the sets' names")
    parser.add_argument("--mocap6", help="folder of the recordings")
    arguments = parser.parse_args()
    for name, (simulate, law, n, settings) in SETS.items():
        if arguments.sets not in name:
            continue
        for noise in ("normal", "student"):
            rows = []
            for seed in range(arguments.seeds):
                X, states = simulate(law, n, np.random.default_rng(seed))
                parts = X[:n], states[:n], X[n:]
                rows.append(measure(*parts, settings, noise, seed))
            show(name, noise, rows)
    if arguments.mocap6:
        data = fetch_mocap6(arguments.mocap6, download_if_missing=False)
        is_test = data.groups == data.groups[-1]
        parts = data.data[~is_test], data.target[~is_test], data.data[is_test]
        groups = data.groups[~is_test], data.groups[is_test]
        for noise in ("normal", "student"):
            rows = [measure(*parts, {}, noise, seed, groups) for seed in range(arguments.seeds)]
            show("mocap6", noise, rows)


if __name__ == "__main__":
    main()
