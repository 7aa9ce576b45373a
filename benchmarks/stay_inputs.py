"""
Staying that depends on inputs: held-out scores below those of the true model.

    python benchmarks/stay_inputs.py [one] [three] [noise] [coverage] [last] [odd]

Three Gaussian states whose log odds of staying are linear in slow inputs; "last": two
autoregressive states that end by the last observation.  Scores are nats per step below
the true model on 8,000 new steps.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.metrics import frozen_log_likelihood
from skihmm.posterior import parameter_intervals
from skihmm.transitions import HCRPTransitions

MEANS = np.array([0.0, 2.0, 4.0])
NEXT = np.array([[0.0, 0.8, 0.2], [0.5, 0.0, 0.5], [0.3, 0.7, 0.0]])
INTERCEPTS = np.array([2.0, 2.5, 2.0])
SLOPES = {
    "one": np.array([[2.0], [-1.5], [0.0]]),
    "three": np.array([[1.5, -1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, 1.0, -1.5]]),
}


def slow(n_steps, n_columns, rng):
    """Autoregressive columns of variance one."""
    x = np.zeros((n_steps, n_columns))
    for t in range(1, n_steps):
        x[t] = 0.95 * x[t - 1] + np.sqrt(1 - 0.95**2) * rng.standard_normal(n_columns)
    return x


def simulate(n_steps, slopes, rng, means=MEANS):
    """Observations, inputs and states."""
    x = slow(n_steps, slopes.shape[1], rng)
    s = np.zeros(n_steps, dtype=int)
    for t in range(1, n_steps):
        k = s[t - 1]
        stays = rng.random() < expit(INTERCEPTS[k] + slopes[k] @ x[t])
        s[t] = k if stays else rng.choice(3, p=NEXT[k])
    return means[s] + rng.standard_normal(n_steps), x, s


def score_of_truth(y, x, slopes, means=MEANS):
    """Nats per step under the law that simulated the data."""
    stays = expit(INTERCEPTS + x @ slopes.T)
    seen = np.exp(-0.5 * (y[:, None] - means) ** 2) / np.sqrt(2 * np.pi)
    f, total = np.full(3, 1 / 3), 0.0
    for t in range(len(y)):
        if t:
            f = f * stays[t] + (f * (1 - stays[t])) @ NEXT
        f = f * seen[t]
        total += np.log(f.sum())
        f /= f.sum()
    return total / len(y)


def fit(X, n_inputs, transitions=None, emission="gaussian", seed=0):
    if transitions is None:
        transitions = HCRPTransitions(input_features=list(range(1, 1 + n_inputs)))
    return HCRPHMM(
        emission=emission,
        transitions=transitions,
        n_burnin=300,
        n_draws=40,
        random_state=seed,
    ).fit(X)


def by_state(values, hmm, labels, states):
    """Values of the fit's states in the order of the true ones, NaN without a match."""
    counts = np.array([np.bincount(labels[states == k], minlength=99) for k in range(3)])
    matched = counts.argmax(axis=1)
    if len(set(matched)) < 3 or matched.max() >= hmm.n_states_:
        return np.full(3, np.nan)
    return np.asarray(values)[matched]


def report(name, hmm, X, states, gap):
    labels = hmm.predict_proba(X).argmax(axis=1)
    large = (np.bincount(labels) > len(X) / 100).sum()
    ends = np.flatnonzero(np.diff(states))
    lengths = np.diff(np.append(-1, ends))
    segments = [lengths[states[ends] == k].mean() for k in range(3)]
    dwells = by_state(hmm.dwell_times_, hmm, labels, states)
    print(
        f"{name} | below the truth {gap:.4f} | states above 1 % {large} | "
        f"ARI {adjusted_rand_score(states, labels):.3f} | dwell times "
        f"{dwells.round(1)} | mean segments {np.round(segments, 1)}",
        flush=True,
    )


def compare(name, slopes, seeds=3, n_steps=4000, n_noise=0, others=("sticky",)):
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        y, x, s = simulate(n_steps, slopes, rng)
        new_y, new_x, _ = simulate(8000, slopes, rng)
        x = np.hstack([x, slow(n_steps, n_noise, rng)])
        more = np.hstack([new_x, slow(8000, n_noise, rng)])
        truth = score_of_truth(new_y, new_x, slopes)
        X = np.column_stack([y, x])
        hmm = fit(X, x.shape[1])
        gap = truth - frozen_log_likelihood(hmm, np.column_stack([new_y, more]))
        report(f"{name}, {n_noise} of noise, seed {seed}", hmm, X, s, gap)
        for other in others:
            hmm = fit(y[:, None], 0, other)
            gap = truth - frozen_log_likelihood(hmm, new_y[:, None])
            report(f"  {other}", hmm, y[:, None], s, gap)


def noise():
    for n_steps in (4000, 1000):
        none, three = np.zeros((3, 1)), SLOPES["three"]
        compare(f"no input says anything, T {n_steps}", none, 2, n_steps, 19, ())
        compare(f"three inputs, T {n_steps}", three, 2, n_steps, 17, ())


def coverage(n_sets=20, n_steps=3000):
    slopes, inside, errors = [], [], []
    grid = np.vstack([np.zeros(3), np.eye(3), [-1.0, 0.0, 0.0]])
    truth = expit(INTERCEPTS + grid @ SLOPES["three"].T)
    for seed in range(n_sets):
        rng = np.random.default_rng(500 + seed)
        y, x, s = simulate(n_steps, SLOPES["three"], rng, 1.5 * MEANS)
        hmm = fit(np.column_stack([y, x]), 3)
        order = by_state(range(hmm.n_states_), hmm, hmm.labels_, s)
        if np.isnan(order).any():
            continue
        found = parameter_intervals(hmm, 0.9, n_samples=400, inputs=grid)
        for k, state in enumerate(order):
            own = found[found.state == state]
            rows = own[own.parameter == "stay_coefficients_"]
            slopes += list((rows.lower < SLOPES["three"][k]) & (SLOPES["three"][k] < rows.upper))
            rows = own[own.parameter == "stay_probabilities"]
            inside += list((rows.lower < truth[:, k]) & (truth[:, k] < rows.upper))
            errors += list(rows["mean"] - truth[:, k])
    print(
        f"90 % intervals of slopes cover {np.mean(slopes):.3f} of {len(slopes)}, of "
        f"probabilities to stay {np.mean(inside):.3f} of {len(inside)}; their bias "
        f"{np.mean(errors):.3f}, rmse {np.sqrt(np.mean(np.square(errors))):.3f}",
        flush=True,
    )


def score_of_levels(y):
    """Nats per step of the law of :func:`last`."""
    f, total = np.array([1.0, 0.0]), 0.0
    for t in range(1, len(y)):
        p = expit(4 - 3 * y[t - 1] * np.array([1, -1]))
        means = 0.95 * y[t - 1] + np.array([0.12, -0.12])
        f = f * p + (f * (1 - p))[::-1]
        f = f * np.exp(-0.5 * ((y[t] - means) / 0.25) ** 2) / (0.25 * np.sqrt(2 * np.pi))
        total += np.log(f.sum())
        f /= f.sum()
    return total / (len(y) - 1)


def last(seeds=3, restarts=3):
    """The state that drifts up is left when the last observation is high."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n = 11_000
        y, s = np.zeros(n), np.zeros(n, dtype=int)
        for t in range(1, n):
            k = s[t - 1]
            stays = rng.random() < expit(4 - 3 * y[t - 1] * (1 - 2 * k))
            s[t] = k if stays else 1 - k
            y[t] = 0.95 * y[t - 1] + 0.12 * (1 - 2 * s[t]) + 0.25 * rng.standard_normal()
        X = np.column_stack([y[1:], y[:-1]])
        truth = score_of_levels(y[3000:])
        for own in range(restarts):
            for transitions in (HCRPTransitions(input_features=[1]), "sticky"):
                rows = X if transitions != "sticky" else X[:, :1]
                hmm = fit(rows[:3000], 1, transitions, AutoregressiveNormal(1), own)
                gap = truth - frozen_log_likelihood(hmm, rows[3000:])
                ari = adjusted_rand_score(s[1:3001], hmm.labels_)
                print(
                    f"last, data {seed}, fit {own}, {transitions} | below the truth "
                    f"{gap:.4f} | states {hmm.n_states_} | ARI {ari:.3f}",
                    flush=True,
                )


def odd(seeds=3):
    """Columns that users have: one twice, one with wild values, one of change marks."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        y, x, s = simulate(4000, SLOPES["three"], rng)
        new_y, new_x, _ = simulate(8000, SLOPES["three"], rng)
        truth = score_of_truth(new_y, new_x, SLOPES["three"])
        wild = [rng.standard_cauchy((len(rows), 1)) for rows in (x, new_x)]
        columns = {
            "three": (x, new_x),
            "one twice": (x[:, [0, 1, 2, 0]], new_x[:, [0, 1, 2, 0]]),
            "and one of a Cauchy distribution": (
                np.hstack([x, wild[0]]),
                np.hstack([new_x, wild[1]]),
            ),
        }
        for name, (rows, new_rows) in columns.items():
            X = np.column_stack([y, rows])
            hmm = fit(X, rows.shape[1])
            score = frozen_log_likelihood(hmm, np.column_stack([new_y, new_rows]))
            report(f"{name}, seed {seed}", hmm, X, s, truth - score)
        X = np.column_stack([y, np.append(0.0, np.diff(s) != 0)])
        report(f"marks of changes, seed {seed}", fit(X, 1), X, s, np.nan)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    RUNS = {
        "one": lambda: compare("one", SLOPES["one"]),
        "three": lambda: compare("three", SLOPES["three"]),
        "noise": noise, "coverage": coverage, "last": last, "odd": odd,
    }  # fmt: skip
    for name in sys.argv[1:] or RUNS:
        RUNS[name]()
