"""
What a preference to stay changes, mostly on simulated states that last.

    python benchmarks/dwell_times.py

Six states that last for 20 to 100 steps on average, each state with a mean dwell time of
its own.  Kinds of data: Gaussian columns and symbols, which the emission fits, and steps
that take one of two values in every state, which a Gaussian emission does not.  Beside
them an automaton whose state changes at every step.  For every kind and transitions,
means over seeds and posterior draws: number of states, segments of the path, adjusted
Rand index; beside them the truth.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.samplers import BlockedGibbs
from skihmm.transitions import HCRPTransitions

KINDS = ("gaussian", "symbols", "two values", "automaton")
N_STATES = 6
TRANSITIONS = {
    "plain": HCRPTransitions(),
    "sticky": HCRPTransitions(expected_dwell=10),
    "expected_dwell=50": HCRPTransitions(expected_dwell=50),
    "stay_prior=(1000, 1)": HCRPTransitions(stay_prior=(1000, 1)),
}


def simulate(kind, n_steps, seed):
    """Data, name of an emission, and the true states."""
    if kind == "automaton":
        X, states = make_automaton_sequence(n_steps, random_state=seed)
        return X, "hcrp", states
    rng = np.random.default_rng(seed)
    dwell = rng.uniform(20, 100, size=N_STATES)
    path = [int(rng.integers(N_STATES))]
    while len(path) < n_steps:
        length = rng.geometric(1 / dwell[path[-1]]) - 1
        path += [path[-1]] * length
        path.append(int(path[-1] + rng.integers(1, N_STATES)) % N_STATES)
    states = np.array(path[:n_steps])
    if kind == "gaussian":
        return 2.0 * states[:, None] + rng.normal(size=(n_steps, 1)), kind, states
    if kind == "symbols":
        table = np.cumsum(rng.dirichlet(np.full(12, 0.5), size=N_STATES), axis=1)
        symbols = (rng.random(n_steps)[:, None] > table[states]).sum(axis=1)
        return np.minimum(symbols, 11)[:, None], "hcrp", states
    values = rng.normal(scale=4, size=(N_STATES, 2))
    means = values[states, rng.integers(2, size=n_steps)]
    return means[:, None] + 0.5 * rng.normal(size=(n_steps, 1)), "gaussian", states


def n_segments(paths):
    """Mean number of segments of paths."""
    return np.mean(np.count_nonzero(np.diff(paths), axis=-1) + 1)


def measure(kind, transitions, n_steps, n_sweeps, seed):
    """States, segments and adjusted Rand index of a fit, and the true first two."""
    X, emission, states = simulate(kind, n_steps, seed)
    hmm = HCRPHMM(
        BlockedGibbs(25, split_merge_rate=3),
        emission,
        transitions,
        n_burnin=n_sweeps,
        n_draws=50,
        thin=max(1, n_sweeps // 50),
        random_state=seed,
    ).fit(X)
    paths = hmm.draws_.states[0]
    return (
        hmm.draws_.n_states.mean(),
        n_segments(paths),
        np.mean([adjusted_rand_score(states, path) for path in paths]),
        len(np.unique(states)),
        n_segments(states),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--sweeps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    print("data | transitions | states | segments | ARI | true states | segments")
    for kind in args.kinds:
        for name, transitions in TRANSITIONS.items():
            rows = [
                measure(kind, transitions, args.steps, args.sweeps, seed)
                for seed in range(args.seeds)
            ]
            k, segments, ari, true_k, true_segments = np.mean(rows, axis=0)
            print(
                f"{kind} | {name} | {k:.1f} | {segments:.0f} | {ari:.2f} | "
                f"{true_k:.1f} | {true_segments:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
