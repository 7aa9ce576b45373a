"""
Regimes in economic series: daily returns with heavy tails, and short quarterly series.

    python benchmarks/regimes.py

Returns: 3,000 days of three regimes (standard deviations 0.6, 1.2 and 3 per cent, which
last for 100, 50 and 25 days on average), with normal or Student-t noise of four degrees
of freedom; models are fitted to the first 2,500.  Quarters: 200 rows of four correlated
columns, two regimes with means of their own that last for 25 and 7 quarters.

Printed, for five seeds: states, those with at least one per cent of the rows, segments,
adjusted Rand index of ``labels_`` and seconds; of models of the returns themselves also
the share of the last 500 days that fall below the quantiles of the day-ahead prediction
(expected: 0.01 and 0.05), which reads the 250 days before.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import KBinsDiscretizer

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.transitions import HCRPTransitions

SEEDS = range(5)
N_FITTED, N_DAYS, WINDOW = 2500, 3000, 250
MEANS, DEVIATIONS = np.array([0.0007, 0.0, -0.002]), np.array([0.006, 0.012, 0.03])
LARGE_PRIOR = HCRPTransitions(stay_prior=(1000, 1))
OF_RETURNS = {
    "gaussian": ("gaussian", "hcrp"),
    "gaussian, sticky": ("gaussian", "sticky"),
    "gaussian, large prior": ("gaussian", LARGE_PRIOR),
    "gaussian, persistent": ("gaussian", "persistent"),
    "student": ("student", "hcrp"),
    "student, sticky": ("student", "sticky"),
    "student, large prior": ("student", LARGE_PRIOR),
    "student, persistent": ("student", "persistent"),
    "bins": ("hcrp", "hcrp"),
    "bins, sticky": ("hcrp", "sticky"),
    "bins, expected_dwell=50": ("hcrp", HCRPTransitions(expected_dwell=50)),
}
OF_QUARTERS = {
    "gaussian": "gaussian",
    "diagonal_gaussian": "diagonal_gaussian",
    "autoregressive, order=1": AutoregressiveNormal(order=1),
    "autoregressive": "autoregressive",
}


def draw_path(transmat, n_steps, rng):
    states = [0]
    for _ in range(n_steps - 1):
        states.append(rng.choice(len(transmat), p=transmat[states[-1]]))
    return np.array(states)


def draw_returns(noise, rng):
    transmat = np.array([[0.99, 0.01, 0.0], [0.01, 0.98, 0.01], [0.0, 0.04, 0.96]])
    states = draw_path(transmat, N_DAYS, rng)
    e = rng.normal(size=N_DAYS)
    if noise == "t":
        e = rng.standard_t(4, N_DAYS) / np.sqrt(2)
    return (MEANS[states] + DEVIATIONS[states] * e)[:, None], states


def draw_quarters(rng):
    states = draw_path(np.array([[0.96, 0.04], [0.15, 0.85]]), 200, rng)
    means = np.array([[0.8, 0.6, 3.0, 5.0], [-0.6, -0.8, 2.0, 7.0]])
    covariance = [
        [0.3, 0.15, 0.05, -0.1],
        [0.15, 0.4, 0.05, -0.1],
        [0.05, 0.05, 0.6, 0.0],
        [-0.1, -0.1, 0.0, 0.5],
    ]
    return means[states] + rng.multivariate_normal(np.zeros(4), covariance, 200), states


def shares_below(hmm, X, probs=(0.01, 0.05)):
    below = []
    for day in range(N_FITTED, N_DAYS):
        ahead = hmm.predict_next(X[day - WINDOW : day]).sample(2000, random_state=day)
        below.append(X[day] < np.quantile(ahead, probs))
    return np.mean(below, axis=0)


def fit_and_print(name, model, X, states):
    start = time.process_time()
    labels = model.fit(X).labels_
    seconds = time.process_time() - start
    large = (np.bincount(labels) >= 0.01 * len(X)).sum()
    index = adjusted_rand_score(states, labels)
    segments, true = (1 + np.count_nonzero(np.diff(path)) for path in (labels, states))
    print(
        f"{name:40} {model.n_states_:3} states, {large:2} large, {segments:4} segments "
        f"(true: {true}), index {index:.2f}, {seconds:.1f} s",
        flush=True,
    )


def main():
    for noise in ("normal", "t"):
        for name, (emission, transitions) in OF_RETURNS.items():
            for seed in SEEDS:
                X, states = draw_returns(noise, np.random.default_rng(seed))
                data, path = X[:N_FITTED], states[:N_FITTED]
                if emission == "hcrp":
                    bins = KBinsDiscretizer(12, encode="ordinal", strategy="quantile")
                    data = bins.fit_transform(data)
                hmm = HCRPHMM(emission=emission, transitions=transitions, random_state=0)
                fit_and_print(f"{noise}: {name}, seed {seed}", hmm, data, path)
                if emission != "hcrp":
                    print("    below: {:.3f}, {:.3f}".format(*shares_below(hmm, X)))
    for name, emission in OF_QUARTERS.items():
        for seed in SEEDS:
            X, states = draw_quarters(np.random.default_rng(seed))
            hmm = HCRPHMM(emission=emission, transitions="hcrp", random_state=0)
            fit_and_print(f"quarters: {name}, seed {seed}", hmm, X, states)


if __name__ == "__main__":
    main()
