"""
Motion capture with autoregressive states, beside its annotation.

    python benchmarks/motion.py --orders 0 1 2 3 4 --moves all none --seeds 5

See skihmm.datasets.fetch_mocap6 for the data.  Columns are standardised; nothing of the
model is set but its order.  Moves: those of sampler="auto", or no split-merge trials at
all ("none").  Reported for every order, means and ranges over the seeds: Hamming
distance to the annotation after the best matching of states, the same if every state may
have the action of most of its steps (many-to-one), segments, states (and those over one
per cent of the steps), log joint probability, CPU seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.datasets import fetch_mocap6
from skihmm.emissions import AutoregressiveNormal
from skihmm.samplers import BlockedGibbs

SAMPLERS = {"all": "auto", "none": BlockedGibbs(10)}


def compare(labels, actions, groups):
    """Hamming, many-to-one, segments, states and states over one per cent."""
    table = np.zeros((labels.max() + 1, actions.max() + 1))
    np.add.at(table, (labels, actions), 1)
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    changes = (np.diff(labels) != 0) | (np.diff(groups) != 0)
    sizes = table.sum(axis=1)
    n = len(labels)
    return (
        1 - matched / n,
        table.max(axis=1).sum() / n,
        1 + np.count_nonzero(changes),
        np.count_nonzero(sizes),
        np.count_nonzero(sizes > n / 100),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--orders", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--moves", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--init", nargs="+", default=["auto"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--burnin", type=int, default=500)
    parser.add_argument("--draws", type=int, default=100)
    args = parser.parse_args()
    mocap6 = fetch_mocap6()
    X, groups = StandardScaler().fit_transform(mocap6.data), mocap6.groups
    print(
        "moves | start | order | Hamming | many-to-one | segments | states | over 1 % | "
        "lp | s"
    )
    for moves in args.moves:
        for init in args.init:
            for order in args.orders:
                rows = []
                for seed in range(args.seeds):
                    hmm = HCRPHMM(
                        sampler=SAMPLERS[moves],
                        emission=AutoregressiveNormal(order),
                        init=init,
                        n_burnin=args.burnin,
                        n_draws=args.draws,
                        random_state=seed,
                    )
                    started = time.process_time()
                    hmm.fit(X, groups=groups)
                    seconds = time.process_time() - started
                    found = compare(hmm.labels_, mocap6.target, groups)
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
                print(f"{moves} | {init} | {order} | {' | '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
