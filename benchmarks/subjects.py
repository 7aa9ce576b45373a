"""
States of subjects that differ in level and scale: labels, offsets, held-out rows, time.

    python benchmarks/subjects.py --seeds 2

Simulated sets of 4 to 20 subjects.  Printed for each: the adjusted Rand index of the
labels, and the number of states, with the true offsets taken off, with the subjects
ignored, with their means taken off, and with `subject_feature`; the root of the mean
square error of the offsets; the score of new rows of the same subjects with the truth and
with `subject_feature`, nats a row; and CPU seconds of that fit.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import (
    AutoregressiveNormal,
    NormalInverseGamma,
    NormalInverseWishart,
)

# Subjects, rows of each, states, columns, dwell, distance of states, deviations of the
# noise, of offsets and of logs of scales, and states that a subject never visits.
SETS = {
    "none": (8, 300, 3, 1, 30, 3.0, 0.7, 0.0, 0.0, 0),
    "two": (8, 300, 2, 1, 30, 3.0, 0.7, 1.5, 0.0, 0),
    "three": (10, 300, 3, 1, 20, 3.0, 0.7, 2.0, 0.0, 0),
    "three, 2 columns": (12, 200, 3, 2, 20, 3.0, 0.7, 2.0, 0.0, 0),
    "four, 3 columns": (10, 300, 4, 3, 20, 2.5, 0.7, 2.0, 0.0, 1),
    "five, 5 columns": (20, 150, 5, 5, 15, 2.0, 0.8, 2.0, 0.0, 1),
    "close": (8, 400, 2, 1, 40, 2.0, 1.0, 1.5, 0.0, 0),
    "few subjects": (4, 800, 5, 2, 20, 3.0, 0.7, 2.0, 0.0, 0),
    "scales": (12, 300, 5, 4, 20, 2.0, 0.6, 1.2, 0.25, 0),
    "autoregression": (8, 300, 3, 2, 30, 0.0, 0.5, 4.0, 0.0, 0),
}
COEFFICIENTS = np.array(
    [[[0.9, 0.2], [-0.2, 0.9]], [[0.5, 0], [0, 0.5]], [[-0.4, 0.3], [0.2, -0.6]]]
)
INTERCEPTS = np.array([[0.0, 0.0], [2.0, 1.0], [0.0, -1.0]])


def path(rng, n, n_states, dwell, n_absent):
    """States of a subject, some of which it may never visit."""
    visited = rng.permutation(n_states)[: n_states - n_absent]
    states = [rng.choice(visited)]
    while len(states) < n:
        last = states[-1]
        others = visited[visited != last]
        leaves = len(others) and rng.random() < 1 / dwell
        states.append(rng.choice(others) if leaves else last)
    return np.array(states)


def simulate(name, seed):
    """Rows, states, subjects, and offsets; then new rows of the same subjects."""
    U, n, K, d, dwell, distance, noise, off, gain, absent = SETS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    means = distance * np.arange(K)[:, None] if d == 1 else None
    while means is None:
        means = rng.normal(0, max(distance, 1.0), (K, d))
        apart = np.linalg.norm(means[:, None] - means, axis=2) + 99 * np.eye(K)
        means = means if apart.min() > distance else None
    offsets, scales = rng.normal(0, off, (U, d)), np.exp(rng.normal(0, gain, (U, d)))
    who, sets = np.repeat(np.arange(U), n), []
    for _ in range(2):
        states = np.concatenate([path(rng, n, K, dwell, absent) for _ in range(U)])
        e = noise * rng.normal(size=(U * n, d))
        if name == "autoregression":
            y = e
            for t in range(len(y)):
                k = states[t]
                before = y[t - 1] if t % n else np.zeros(d)
                y[t] += COEFFICIENTS[k] @ before + INTERCEPTS[k]
        else:
            y = means[states] + e
        sets.append((y, states))
    return sets, who, offsets, scales


def emission_of(name, d, **subject):
    """The emission of a set, perhaps with subjects."""
    if name == "autoregression":
        return AutoregressiveNormal(1, **subject)
    if subject:
        subject["subject_scale"] = name == "scales"
    return (NormalInverseGamma if d > 1 else NormalInverseWishart)(**subject)


def main():
    """Print a line per set and seed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=300)
    args = parser.parse_args()
    settings = {"n_burnin": args.sweeps, "n_draws": 30, "transitions": "persistent"}
    print("set, seed: truth | ignored | centred | subjects, error, scores, seconds")
    for name in args.sets:
        for seed in range(args.seeds):
            (train, new), who, offsets, scales = simulate(name, seed)
            (clean, states), d = train, train[0].shape[1]
            seen = [offsets[who] + scales[who] * y for y, _ in (train, new)]
            means = np.array([seen[0][who == u].mean(axis=0) for u in range(len(offsets))])

            def fit(X, d=d, name=name, seed=seed, who=who, **subject):
                emission = emission_of(name, d, **subject)
                hmm = HCRPHMM(emission=emission, random_state=seed, **settings)
                return hmm.fit(X, groups=who)

            fits = [fit(clean), fit(seen[0]), fit(seen[0] - means[who])]
            started = time.process_time()
            fits.append(fit(np.column_stack([seen[0], who]), subject_feature=d))
            seconds = time.process_time() - started
            found = " | ".join(
                f"{adjusted_rand_score(states, hmm.labels_):.2f} ({hmm.n_states_})" for hmm in fits
            )
            error = fits[-1].emission_.subject_offsets_ - offsets
            error = np.sqrt(np.mean((error - error.mean(axis=0)) ** 2))
            truth = fits[0].score(new[0], groups=who) - np.log(scales).sum(axis=1).mean()
            score = fits[-1].score(np.column_stack([seen[1], who]), groups=who)
            print(
                f"{name} {seed}: {found}, {error:.2f}, {truth:.4f} {score:.4f}, {seconds:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
