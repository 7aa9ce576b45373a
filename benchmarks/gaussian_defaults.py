"""
Gaussian emissions with default parameters, on data with known states.

    python benchmarks/gaussian_defaults.py --seeds 5

White noise in 5, 6, 8 and 12 columns (200 rows: one state); three states in ten columns
whose means are 0.7 standard deviations apart (1,500 rows); forty states on a line, six
standard deviations apart (6,000 rows, sparse transitions).  ``--mocap FILE``: motion
capture in 12 columns, an ``.npz`` with X, labels and the ends of the sequences.  Reported
for every seed: number of states, adjusted Rand index, CPU seconds, and whether most
states of the selected draw have a single row.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM


def white_noise(n_columns):
    def make(rng):
        return rng.normal(size=(200, n_columns)), np.zeros(200, dtype=int)

    return make


def walk(transmat, n, rng):
    states = np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = rng.choice(len(transmat), p=transmat[states[t - 1]])
    return states


def three_states(rng):
    states = walk(0.85 * np.eye(3) + 0.05, 1500, rng)
    return 0.7 * states[:, None] + rng.normal(size=(1500, 10)), states


def forty_states(rng):
    states = walk(rng.dirichlet(np.full(40, 0.1), size=40), 6000, rng)
    return 6.0 * states[:, None] + rng.normal(size=(6000, 1)), states


DATA = {
    **{f"white noise, {d} columns": white_noise(d) for d in (5, 6, 8, 12)},
    "three states, ten columns": three_states,
    "forty states, one column": forty_states,
}


def report(name, emission, fits):
    for label, values, form in zip(
        ("states", "adjusted Rand index", "CPU seconds", "states of one row"),
        zip(*fits, strict=True),
        ("d", ".3f", ".1f", "d"),
        strict=True,
    ):
        print(f"{name}, {emission}: {label}", *(format(v, form) for v in values))


def fit(X, states, emission, seed, **given):
    started = time.process_time()
    hmm = HCRPHMM(emission=emission, random_state=seed).fit(X, **given)
    sizes = np.bincount(hmm.labels_)
    return (
        hmm.n_states_,
        adjusted_rand_score(states, hmm.labels_),
        time.process_time() - started,
        int((sizes == 1).sum()),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--emissions", nargs="+", default=["gaussian"])
    parser.add_argument("--mocap", help="an .npz file")
    args = parser.parse_args()
    for name, make in DATA.items():
        for emission in args.emissions:
            fits = []
            for seed in range(args.seeds):
                X, states = make(np.random.default_rng(seed))
                fits.append(fit(X, states, emission, seed))
            report(name, emission, fits)
    if args.mocap:
        mocap = np.load(args.mocap)
        X, lengths = mocap["X"], np.diff(mocap["ends"], prepend=0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        for emission in args.emissions:
            fits = [
                fit(X, mocap["labels"], emission, seed, lengths=lengths)
                for seed in range(args.seeds)
            ]
            report("motion capture", emission, fits)


if __name__ == "__main__":
    main()
