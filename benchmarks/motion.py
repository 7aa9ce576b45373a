"""
Motion capture with autoregressive states, beside its annotation.

    python benchmarks/motion.py --orders 0 1 2 3 4 --moves all none --seeds 5
    python benchmarks/motion.py --orders 1 --starts 500

See skihmm.datasets.fetch_mocap6 for the data.  Columns are standardised; nothing of the
model is set but its order.  Moves: those of sampler="auto", or no split-merge trials at
all ("none").  --gaussian adds independent Gaussian states with the defaults of that
emission; --transitions has the short names to compare.  Reported for every order, means
and ranges over the seeds: Hamming distance to the annotation after the best matching of
states, the same if every state may have the action of most of its steps (many-to-one),
adjusted mutual information, covering of the annotated segments by those found (mean
overlap over union, weighted by length), segments, their mean length over the expected
dwell time (weighted by occupancy), states (and those over one per cent of the steps),
log joint probability, CPU seconds.

--starts N instead compares chains of N sweeps from four starts.  The second half of each
gives mean and standard deviation of the log joint probability and the effective number
of sweeps, mean and standard deviation of the number of states; and the R-hat of both
over the starts, for every seed and of the chains of all seeds.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import product

import numpy as np
from common import means_and_ranges
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.datasets import fetch_mocap6
from skihmm.emissions import AutoregressiveNormal
from skihmm.metrics import effective_sample_size, rhat
from skihmm.samplers import BlockedGibbs

MOVES = ("all", "none")
STARTS = ("single", "blocks", "kmeans", "random")


def segments(path, groups):
    """Number of the segment of every step."""
    changes = (np.diff(path) != 0) | (np.diff(groups) != 0)
    return np.r_[0, np.cumsum(changes)]


def compare(labels, actions, groups):
    """What `main` prints of a path, but for the dwell times."""
    table = np.zeros((labels.max() + 1, actions.max() + 1))
    np.add.at(table, (labels, actions), 1)
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    sizes = table.sum(axis=1)
    n = len(labels)
    found, true = (segments(path, groups) for path in (labels, actions))
    overlap = np.zeros((found[-1] + 1, true[-1] + 1))
    np.add.at(overlap, (found, true), 1)
    union = overlap.sum(axis=1)[:, None] + overlap.sum(axis=0) - overlap
    return (
        1 - matched / n,
        table.max(axis=1).sum() / n,
        adjusted_mutual_info_score(actions, labels),
        (overlap / union).max(axis=0) @ overlap.sum(axis=0) / n,
        1 + found[-1],
        np.count_nonzero(sizes),
        np.count_nonzero(sizes > n / 100),
    )


def compare_starts(n_sweeps, n_seeds, fit):
    """Print where chains of n_sweeps from different starts are in their second half."""
    half, every = n_sweeps // 2, []
    print("start | seed | lp | sd | ESS | states | sd | s")
    for seed in range(n_seeds):
        traces = []
        for init in STARTS:
            settings = {"n_burnin": n_sweeps - half, "n_draws": half, "thin": 1}
            hmm, seconds = fit(init=init, random_state=seed, **settings)
            lp, n_states = hmm.draws_.lp[0], hmm.draws_.n_states[0]
            traces.append(np.stack([lp, n_states], axis=-1))
            size = effective_sample_size(lp[None], "mean")
            print(
                f"{init} | {seed} | {lp.mean():.0f} | {lp.std():.0f} | {size:.0f} | "
                f"{n_states.mean():.1f} | {n_states.std():.1f} | {seconds:.0f}",
                flush=True,
            )
        every += traces
        print(f"R-hat of lp and of states, seed {seed}:", rhat(traces).round(2))
    print("R-hat of lp and of states, all chains:", rhat(every).round(2), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--orders", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    parser.add_argument("--moves", nargs="+", choices=MOVES, default=MOVES)
    parser.add_argument("--init", nargs="+", default=["auto"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--burnin", type=int, default=500)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--gaussian", action="store_true")
    parser.add_argument("--transitions", nargs="+", default=["auto"])
    parser.add_argument("--starts", type=int, metavar="N", help="sweeps per start")
    args = parser.parse_args()
    mocap6 = fetch_mocap6()
    X, groups = StandardScaler().fit_transform(mocap6.data), mocap6.groups
    emissions = {order: AutoregressiveNormal(order) for order in args.orders}
    if args.gaussian:
        emissions["gaussian"] = "gaussian"
    samplers = {"all": "auto", "none": BlockedGibbs(10)}

    def fit(transitions="auto", **settings):
        hmm = HCRPHMM(transitions=transitions, **settings)
        started = time.process_time()
        hmm.fit(X, groups=groups)
        return hmm, time.process_time() - started

    if args.starts:
        for order, emission in emissions.items():
            print(f"order {order}")
            compare_starts(args.starts, args.seeds, partial(fit, emission=emission))
        return
    print(
        "moves | start | transitions | order | Hamming | many-to-one | AMI | covering | "
        "segments | length over dwell | states | over 1 % | lp | s"
    )
    for moves, init, name, order in product(args.moves, args.init, args.transitions, emissions):
        rows = []
        for seed in range(args.seeds):
            hmm, seconds = fit(
                sampler=samplers[moves],
                emission=emissions[order],
                transitions=name,
                init=init,
                n_burnin=args.burnin,
                n_draws=args.draws,
                random_state=seed,
            )
            *found, n_segments, n_states, n_large = compare(hmm.labels_, mocap6.target, groups)
            dwell = np.bincount(hmm.labels_, minlength=hmm.n_states_) @ hmm.dwell_times_
            lengths = len(X) ** 2 / n_segments / dwell
            found += [n_segments, lengths, n_states, n_large]
            rows.append([*found, hmm.draws_.lp.mean(), seconds])
        texts = means_and_ranges(rows, (2, 2, 2, 2, 0, 2, 0, 0, 0, 0))
        print(f"{moves} | {init} | {name} | {order} | {' | '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
