"""
How many states does the posterior have as data grow?

    python benchmarks/how_many_states.py

All data have two true states.  casino: throws of a fair and of a loaded die.  gaussian: a
level of its own in every state, with Gaussian noise; skewed: the same levels with the
noise of a gamma distribution, which no single Gaussian describes; ramp: the Gaussian
levels, with five steps on the way from one to the other.

Printed, means over the seeds: posterior mean of the number of states, of those with at
least one per cent of the steps, and exp(entropy of the occupancies); the share of the
steps in the two largest states; adjusted Rand index of ``labels_``; held-out nats per
step behind the true model (of the casino).
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.metrics import frozen_log_likelihood

DICE = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
STAY = np.array([0.95, 0.9])
KINDS = {"casino": "hcrp", **dict.fromkeys(("gaussian", "skewed", "ramp"), "gaussian")}


def draw_states(stay, n_steps, rng):
    states = np.zeros(n_steps, dtype=int)
    for t in range(1, n_steps):
        states[t] = states[t - 1] ^ (rng.random() >= stay[states[t - 1]])
    return states


def draw(kind, n_steps, rng):
    """Data of shape (n_steps, 1) and the true states."""
    if kind == "casino":
        states = draw_states(STAY, n_steps, rng)
        throws = (rng.random(n_steps)[:, None] > DICE[states].cumsum(axis=1)).sum(axis=1)
        return np.minimum(throws, 5)[:, None], states
    states = draw_states(np.array([0.98, 0.98]), n_steps, rng)
    level = 4.0 * states
    if kind == "skewed":
        return (level + rng.gamma(1.5, 0.8, n_steps))[:, None], states
    if kind == "ramp":
        level = np.convolve(np.r_[[level[0]] * 5, level], np.full(6, 1 / 6), "valid")
    return (level + rng.normal(0, 0.7, n_steps))[:, None], states


def true_score(throws):
    """Log predictive probability per throw under the true casino."""
    transmat = np.array([[STAY[0], 1 - STAY[0]], [1 - STAY[1], STAY[1]]])
    weights, total = np.array([1.0, 0.0]), 0.0
    for t, throw in enumerate(throws[:, 0]):
        weights = (weights @ transmat if t else weights) * DICE[:, throw]
        total += np.log(weights.sum())
        weights /= weights.sum()
    return total / len(throws)


def sizes(path):
    return np.sort(np.bincount(path))[::-1] / len(path)


def summarise(kind, n_steps, seed):
    rng = np.random.default_rng([seed, n_steps, list(KINDS).index(kind)])
    X, states = draw(kind, n_steps, rng)
    # From the clusters of k-means chains on these long segments get stuck in many states,
    # far below in log joint.
    init = "auto" if kind == "casino" else "particle_filter"
    hmm = HCRPHMM(emission=KINDS[kind], init=init, n_chains=2, random_state=seed).fit(X)
    shares = [sizes(path) for path in hmm.draws_.states.reshape(-1, n_steps)]
    behind = np.nan
    if kind == "casino":
        test = draw(kind, 20_000, rng)[0]
        behind = true_score(test) - frozen_log_likelihood(hmm, test)
    return [
        np.mean([(p > 0).sum() for p in shares]),
        np.mean([(p >= 0.01).sum() for p in shares]),
        np.mean([np.exp(-(p[p > 0] * np.log(p[p > 0])).sum()) for p in shares]),
        np.mean([p[:2].sum() for p in shares]),
        adjusted_rand_score(states, hmm.labels_),
        behind,
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--steps", nargs="+", type=int, default=[300, 1000, 3000, 10_000])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    print("data, steps: states, of 1 %, exp(entropy), two largest, Rand index, behind")
    for kind in args.kinds:
        for n_steps in args.steps:
            rows = [summarise(kind, n_steps, seed) for seed in range(args.seeds)]
            numbers = "  ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
            print(f"{kind}, {n_steps}: {numbers}", flush=True)
