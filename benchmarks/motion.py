"""
Motion capture with autoregressive states, beside its annotation.

    SKIHMM_DATA=folder python benchmarks/motion.py --orders 0 1 3 --seeds 5

The folder has mocap6/mocap6.npz with X (joint angles, one row per time step), labels (the
annotated actions) and ends (where every sequence ends): six sequences of the Carnegie
Mellon motion capture database (NSF EIA-0196217).  Columns are standardised; nothing of
the model is set but its order.  Reported for every sampler and order, means and ranges
over the seeds: Hamming distance to the annotation after the best matching of states, the
same if every state may have the action of most of its steps (many-to-one), segments,
states (and those over one per cent of the steps), log joint probability, CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.samplers import BlockedGibbs

SAMPLERS = {"auto": "auto", "blocked": BlockedGibbs(10)}


def load():
    """Standardised columns, annotated actions and the lengths of the sequences."""
    with np.load(Path(os.environ["SKIHMM_DATA"]) / "mocap6" / "mocap6.npz") as file:
        X, actions, ends = file["X"], file["labels"], file["ends"]
    return StandardScaler().fit_transform(X), actions, np.diff(ends, prepend=0)


def compare(labels, actions, lengths):
    """Hamming, many-to-one, segments, states and states over one per cent."""
    table = np.zeros((labels.max() + 1, actions.max() + 1))
    np.add.at(table, (labels, actions), 1)
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    parts = np.split(labels, np.cumsum(lengths)[:-1])
    segments = sum(1 + np.count_nonzero(np.diff(part)) for part in parts)
    sizes = table.sum(axis=1)
    n = len(labels)
    return (
        1 - matched / n,
        table.max(axis=1).sum() / n,
        segments,
        np.count_nonzero(sizes),
        np.count_nonzero(sizes > n / 100),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--orders", type=int, nargs="+", default=[0, 1, 3])
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--burnin", type=int, default=200)
    args = parser.parse_args()
    X, actions, lengths = load()
    print(
        "sampler | order | Hamming | many-to-one | segments | states | over 1 % | lp | s"
    )
    for sampler in args.samplers:
        for order in args.orders:
            rows = []
            for seed in range(args.seeds):
                hmm = HCRPHMM(
                    sampler=SAMPLERS[sampler],
                    emission=AutoregressiveNormal(order),
                    n_burnin=args.burnin,
                    n_draws=20,
                    random_state=seed,
                )
                started = time.process_time()
                hmm.fit(X, lengths=lengths)
                seconds = time.process_time() - started
                found = compare(hmm.labels_, actions, lengths)
                rows.append([*found, hmm.draws_.lp.mean(), seconds])
            texts = [
                f"{mean:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"
                for mean, low, high, digits in zip(
                    np.mean(rows, axis=0),
                    np.min(rows, axis=0),
                    np.max(rows, axis=0),
                    (2, 2, 0, 0, 0, 0, 0),
                    strict=True,
                )
            ]
            print(f"{sampler} | {order} | {' | '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
