"""
Simulated data whose states last: sticky transitions beside plain ones.

    python benchmarks/lasting_states.py --steps 1000 100000 --seeds 3 1

Six states that last 20 to 100 steps on average, each with a mean of its own, overlap:
Gaussian states in two columns, categorical ones with ten symbols, autoregressions of
order one in two columns.  For every emission, size and transitions: number of segments
(and of true ones), number of states, adjusted Rand index, log joint probability and CPU
seconds, means and ranges over the seeds.  Sticky transitions are
HCRPTransitions(expected_dwell=10), with `min_dwell` if it is given.  --init is the start
of the chains, "truth" or as in HCRPHMM.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.transitions import HCRPTransitions

N_STATES, N_COLUMNS, N_SYMBOLS = 6, 2, 10
DWELL_TIMES = np.geomspace(20, 100, N_STATES)
EMISSIONS = {
    "gaussian": "gaussian",
    "categorical": "hcrp",
    "autoregressive": AutoregressiveNormal(1),
}


def draw_states(n_steps, rng):
    """Geometric dwell times; every next state is another one."""
    parts, k, n = [], 0, 0
    while n < n_steps:
        k = (k + rng.integers(1, N_STATES)) % N_STATES
        parts.append(np.full(rng.geometric(1 / DWELL_TIMES[k]), k))
        n += len(parts[-1])
    return np.concatenate(parts)[:n_steps]


def simulate(kind, n_steps, seed):
    """Data and true states."""
    rng = np.random.default_rng(seed)
    states = draw_states(n_steps, rng)
    if kind == "categorical":
        below = rng.dirichlet(np.full(N_SYMBOLS, 0.5), size=N_STATES).cumsum(axis=1)
        codes = (rng.random(n_steps)[:, None] > below[states]).sum(axis=1)
        return np.minimum(codes, N_SYMBOLS - 1)[:, None], states
    noise = rng.normal(size=(n_steps, N_COLUMNS))
    if kind == "gaussian":
        return rng.normal(scale=1.5, size=(N_STATES, N_COLUMNS))[states] + noise, states
    coefficients = rng.normal(size=(N_STATES, N_COLUMNS, N_COLUMNS))
    for matrix in coefficients:
        matrix *= rng.uniform(0.7, 0.97) / abs(np.linalg.eigvals(matrix)).max()
    intercepts = rng.normal(size=(N_STATES, N_COLUMNS))
    X = np.zeros_like(noise)
    for t in range(1, n_steps):
        X[t] = coefficients[states[t]] @ X[t - 1] + intercepts[states[t]] + noise[t]
    return X, states


def n_segments(labels):
    return 1 + np.count_nonzero(np.diff(labels), axis=-1)


def recover(kind, n_steps, seed, transitions, n_sweeps, init):
    """One fit: segments, true ones, states, adjusted Rand index, lp, CPU seconds."""
    X, states = simulate(kind, n_steps, seed)
    hmm = HCRPHMM(
        emission=EMISSIONS[kind],
        transitions=transitions,
        init=states if init == "truth" else init,
        n_burnin=n_sweeps,
        n_draws=20,
        random_state=seed,
    )
    started = time.process_time()
    hmm.fit(X)
    return (
        n_segments(hmm.labels_),
        n_segments(states),
        hmm.n_states_,
        adjusted_rand_score(states, hmm.labels_),
        hmm.draws_.lp.mean(),
        time.process_time() - started,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument(
        "--emissions", nargs="+", choices=EMISSIONS, default=list(EMISSIONS)
    )
    parser.add_argument("--steps", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 1], help="per size")
    parser.add_argument("--sweeps", type=int, default=300)
    parser.add_argument("--min-dwell", type=int, help="of the sticky transitions")
    parser.add_argument("--init", default="auto")
    args = parser.parse_args()
    options = {} if args.min_dwell is None else {"min_dwell": args.min_dwell}
    sticky = HCRPTransitions(expected_dwell=10, **options)
    print("emission | steps | transitions | segments | true | states | ARI | lp | s")
    for kind in args.emissions:
        for n_steps, n_seeds in zip(args.steps, args.seeds, strict=True):
            for name, transitions in (("hcrp", "hcrp"), ("sticky", sticky)):
                rows = [
                    recover(kind, n_steps, seed, transitions, args.sweeps, args.init)
                    for seed in range(n_seeds)
                ]
                texts = [
                    f"{mean:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"
                    for mean, low, high, digits in zip(
                        np.mean(rows, axis=0),
                        np.min(rows, axis=0),
                        np.max(rows, axis=0),
                        (0, 0, 1, 3, 0, 1),
                        strict=True,
                    )
                ]
                print(f"{kind} | {n_steps} | {name} | {' | '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
