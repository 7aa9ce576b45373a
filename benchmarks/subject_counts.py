"""Counts and decisions of subjects with offsets: do fits find the states that all share?

``python benchmarks/subject_counts.py c1,c2 0,1`` fits some sets of simulated data with some
seeds from a cold start, by the defaults.  Adjusted Rand indices are of smoothed states, beside
those of the truth's smoother; errors of offsets are root mean squares.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, log_expit
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import BernoulliRegression, NegativeBinomialRegression

# Logarithms of rates by state and column, subjects, rows of each, deviation of offsets,
# dispersion, mean length of stays, slopes of states on one input.
COUNTS = {
    "c1": ([[0.3], [1.5]], 12, 250, 0.7, 0.0, 30, [0.3, 0.3]),
    "c2": ([[0.3], [1.5]], 12, 250, 0.7, 0.0, 30, [0.3, 0.3]),
    "c3": ([[0.0], [1.2], [2.4]], 10, 200, 0.5, 0.2, 25, None),
    "c4": ([[0.0], [1.2], [2.4]], 20, 100, 1.0, 0.0, 20, None),
    "c5": ([[0, 2], [1.2, 0.6], [2.2, 2.2], [0.2, 0.4]], 8, 400, 0.7, 0.0, 30, None),
    "c6": ([[0.5], [2.0]], 6, 500, 0.3, 0.3, 40, None),
    "c7": ([[0, 1.5], [1.5, 0], [2, 2]], 12, 250, 1.0, 0.1, 25, None),
    "c8": ([[0.0], [1.2], [2.2], [3.2]], 15, 200, 0.7, 0.0, 25, None),
    "c9": ([[0.3], [1.8]], 12, 250, 1.0, 0.1, 30, [0.3, 0.8]),
    "c10": ([[1.0], [1.8], [3.2]], 8, 300, 0.7, 0.0, 30, [0.5, -0.3, 0.2]),
    "cn1": ([[0.3], [1.5]], 12, 250, 0.0, 0.0, 30, None),
    "cn2": ([[0.0], [1.2], [2.4]], 10, 200, 0.0, 0.2, 25, None),
}
# Coefficients and intercepts of states, mice, trials of each, deviation of biases, mean length
# of stays.
DECISIONS = {
    "d1": ([[4.0], [0.4]], [0, 0], 12, 500, 1.2, 60),
    "d2": ([[4.0], [0.4]], [0, 0], 12, 500, 1.2, 60),
    "d3": ([[2.8, 0.1, 0], [0.9, 0.3, 0], [0.6, 0, 1.8]], [0, -1.7, 0], 10, 750, 0.5, 15),
    "d4": ([[3.5, 0], [0.5, 1.5]], [0, 0], 8, 400, 0.5, 50),
    "d5": ([[4, 0, 0], [0.5, 2.0, 0], [0.3, 0, 2.5]], [0, 0, 0], 15, 300, 1.0, 50),
    "d6": ([[4.0], [1.0]], [0, -2.0], 10, 500, 1.5, 60),
    "d7": ([[4, 0], [1.0, 0], [0.3, 2.5]], [0, -2.0, 0], 12, 500, 1.0, 60),
    "d8": ([[5.0], [0.5]], [0, 0], 20, 200, 1.0, 50),
    "d9": ([[4, 0.3, 0], [0.5, 0.3, 2.0], [1.5, 0, 0]], [0, 0, 1.5], 8, 500, 0.7, 80),
    "dn1": ([[4.0], [0.4]], [0, 0], 12, 300, 0.0, 60),
    "dn2": ([[4, 0], [1.0, 0], [0.3, 2.5]], [0, -2.0, 0], 10, 400, 0.0, 60),
}


@dataclass(frozen=True)
class Data:
    """Rows of subjects, and what they were simulated from."""

    y: np.ndarray
    x: np.ndarray
    who: np.ndarray
    states: np.ndarray
    offsets: np.ndarray
    # log p(row | state)
    logs: np.ndarray
    transitions: np.ndarray

    @property
    def is_counts(self) -> bool:
        return self.y.max() > 1

    def smoothed(self) -> np.ndarray:
        """Most probable states given the parameters of the simulation."""
        K, found = len(self.transitions), np.empty_like(self.logs)
        for u in range(self.who.max() + 1):
            rows = np.flatnonzero(self.who == u)
            p = np.exp(self.logs[rows] - self.logs[rows].max(axis=1, keepdims=True))
            ahead = np.full((len(rows) + 1, K), 1 / K)
            for t in range(len(rows)):
                p[t] *= ahead[t]
                p[t] /= p[t].sum()
                ahead[t + 1] = p[t] @ self.transitions
            now = found[rows[-1]] = p[-1]
            for t in range(len(rows) - 2, -1, -1):
                now = p[t] * (self.transitions @ (now / ahead[t + 1]))
                found[rows[t]] = now
        return found.argmax(axis=1)


def paths(rng, n_subjects, n, K, length):
    """States of all subjects, and their transitions."""
    P = np.full((K, K), 1 / length / (K - 1))
    np.fill_diagonal(P, 1 - 1 / length)
    states = np.empty((n_subjects, n), int)
    for path in states:
        path[0], u = rng.integers(K), rng.random(n)
        for t in range(1, n):
            path[t] = min(int((u[t] > P[path[t - 1]].cumsum()).sum()), K - 1)
    return states.ravel(), P


def simulated(name, seed=0):
    """One set of data."""
    number = int("".join(c for c in name if c.isdigit()))
    rng = np.random.default_rng([sum(map(ord, name)), number, seed])
    is_counts = name in COUNTS
    if is_counts:
        levels, U, n, deviation, dispersion, length, slopes = COUNTS[name]
        levels = np.array(levels, float)
        K, d = levels.shape
    else:
        slopes, intercepts, U, n, deviation, length = DECISIONS[name]
        slopes, intercepts = np.array(slopes, float), np.array(intercepts, float)
        K, d = len(slopes), 1
    b = rng.normal(0, 1, (U, d))
    b = deviation * (b - b.mean(axis=0))
    states, P = paths(rng, U, n, K, length)
    who = np.repeat(np.arange(U), n)
    if is_counts:
        x, eta = np.zeros((len(who), 0)), levels[None] + b[who][:, None]
        if slopes is not None:
            x = rng.normal(size=(len(who), 1))
            eta = eta + (x * np.array(slopes))[:, :, None]
        mean = np.exp(eta[np.arange(len(who)), states])
        if dispersion:
            mean = mean * rng.gamma(1 / dispersion, dispersion, mean.shape)
        y = rng.poisson(mean).astype(float)
        v, r = y[:, None], 1 / max(dispersion, 1e-9)
        logs = gammaln(v + r) - gammaln(r) - gammaln(v + 1)
        logs = logs + v * eta + r * np.log(r) - (v + r) * np.logaddexp(np.log(r), eta)
        return Data(y, x, who, states, b, logs.sum(axis=2), P)
    q = slopes.shape[1]
    x, y, eta = np.zeros((len(who), q)), np.zeros(len(who)), np.zeros((len(who), K))
    for t in range(len(who)):
        if t % n == 0:
            before = rewarded = 0.0
        stimulus = rng.choice([-1, -0.5, -0.25, 0.25, 0.5, 1.0])
        x[t] = np.array([stimulus, before, rewarded])[[[0], [0, 2], [0, 1, 2]][q - 1]]
        eta[t] = slopes @ x[t] + intercepts + b[who[t], 0]
        y[t] = rng.random() < 1 / (1 + np.exp(-eta[t, states[t]]))
        before = 2 * y[t] - 1
        rewarded = before * ((y[t] == 1) == (stimulus > 0))
    logs = log_expit((2 * y[:, None] - 1) * eta)
    return Data(y[:, None], x, who, states, b, logs, P)


def fitted(data, seed, subject=True, **settings):
    """A fit from a cold start, its rows, and its CPU seconds."""
    d, q = data.y.shape[1], data.x.shape[1]
    X = np.hstack([data.y, data.x, *([data.who[:, None]] if subject else [])])
    kind = NegativeBinomialRegression if data.is_counts else BernoulliRegression
    emission = kind(
        input_features=list(range(d, d + q)) or None, subject_feature=d + q if subject else None
    )
    hmm = HCRPHMM(emission=emission, random_state=seed, **settings)
    began = time.process_time()
    return hmm.fit(X, groups=data.who), X, time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="?", default=",".join([*COUNTS, *DECISIONS]))
    parser.add_argument("seeds", nargs="?", default="0,1")
    parser.add_argument("--burnin", type=int, help="sweeps before the draws; else the default")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--ignored", action="store_true", help="fits without subjects too")
    options = parser.parse_args()
    settings = {"n_burnin": options.burnin, "n_draws": options.draws}
    settings = {name: value for name, value in settings.items() if value is not None}
    print("set seed subjects | truth (states) | smoothed (states) path | rms of offsets | CPU s")
    for name in options.names.split(","):
        data = simulated(name)
        truth = adjusted_rand_score(data.states, data.smoothed())
        for seed in map(int, options.seeds.split(",")):
            for subject in (True, False)[: 1 + options.ignored]:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    hmm, X, seconds = fitted(data, seed, subject, **settings)
                states = hmm.predict_proba(X, groups=data.who).argmax(axis=1)
                score = adjusted_rand_score(data.states, states)
                path = adjusted_rand_score(data.states, hmm.predict(X, groups=data.who))
                error = np.nan
                if subject:
                    off = hmm.emission_.subject_offsets_ - data.offsets
                    error = np.sqrt((off**2).mean())
                print(
                    f"{name:4s} {seed} {subject!s:5s} | {truth:.3f} ({len(data.transitions)}) | "
                    f"{score:.3f} ({hmm.n_states_}) {path:.3f} | {error:.3f} | {seconds:.1f}",
                    [str(each.message)[:50] for each in caught] or "",
                    flush=True,
                )


if __name__ == "__main__":
    main()
