"""
What a preference to stay changes, mostly on simulated states that last.

    python benchmarks/dwell_times.py
    python benchmarks/dwell_times.py --kinds gaussian symbols autoregressive \\
        --transitions default sticky --steps 1000 100000 --seeds 3 1

Six states that last for 20 to 100 steps on average overlap.  Kinds of data: Gaussian
states in two columns, states with ten symbols and autoregressions of order one in two
columns, which their emissions fit, and steps that take one of two values in every state,
which a Gaussian emission does not.  Beside them an automaton whose state changes at
every step.  For every kind, size and transitions: states, segments of the path and
adjusted Rand index, means over draws, the true numbers of states and segments, log joint
probability and CPU seconds, means and ranges over the seeds.  --init is the start of the
chains, "truth" or as in HCRPHMM.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import means_and_ranges
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import AutoregressiveNormal
from skihmm.transitions import HCRPTransitions

N_STATES, N_COLUMNS, N_SYMBOLS = 6, 2, 10
DWELL_TIMES = np.geomspace(20, 100, N_STATES)
EMISSIONS = {
    "gaussian": "gaussian",
    "symbols": "hcrp",
    "autoregressive": AutoregressiveNormal(1),
    "two values": "gaussian",
    "automaton": "hcrp",
}
TRANSITIONS = {
    "default": HCRPTransitions(),
    "sticky": HCRPTransitions(expected_dwell=10),
    "expected_dwell=50": HCRPTransitions(expected_dwell=50),
    "persistent": HCRPTransitions(expected_dwell=10, switch_penalty=4.0),
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
    if kind == "automaton":
        return make_automaton_sequence(n_steps, random_state=seed)
    rng = np.random.default_rng(seed)
    states = draw_states(n_steps, rng)
    if kind == "symbols":
        below = rng.dirichlet(np.full(N_SYMBOLS, 0.5), size=N_STATES).cumsum(axis=1)
        codes = (rng.random(n_steps)[:, None] > below[states]).sum(axis=1)
        return np.minimum(codes, N_SYMBOLS - 1)[:, None], states
    if kind == "two values":
        values = rng.normal(scale=4, size=(N_STATES, 2))
        means = values[states, rng.integers(2, size=n_steps)]
        return means[:, None] + 0.5 * rng.normal(size=(n_steps, 1)), states
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


def n_segments(paths):
    """Mean number of segments of paths."""
    return np.mean(1 + np.count_nonzero(np.diff(paths), axis=-1))


def measure(kind, n_steps, seed, transitions, n_sweeps, init):
    """One fit: states, segments, adjusted Rand index; the true two; lp, CPU seconds."""
    X, states = simulate(kind, n_steps, seed)
    hmm = HCRPHMM(
        emission=EMISSIONS[kind],
        transitions=TRANSITIONS[transitions],
        init=states if init == "truth" else init,
        n_burnin=n_sweeps,
        n_draws=20,
        random_state=seed,
    )
    started = time.process_time()
    hmm.fit(X)
    paths = hmm.draws_.states[0]
    return (
        hmm.draws_.n_states.mean(),
        n_segments(paths),
        np.mean([adjusted_rand_score(states, path) for path in paths]),
        len(np.unique(states)),
        n_segments(states),
        hmm.draws_.lp.mean(),
        time.process_time() - started,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=EMISSIONS, choices=EMISSIONS)
    parser.add_argument("--transitions", nargs="+", default=TRANSITIONS, choices=TRANSITIONS)
    parser.add_argument("--steps", type=int, nargs="+", default=[1000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[5], help="per size")
    parser.add_argument("--sweeps", type=int, default=300)
    parser.add_argument("--init", default="auto")
    args = parser.parse_args()
    print("data | steps | transitions | states | segments | ARI | true states | segments | lp | s")
    for kind in args.kinds:
        for n_steps, n_seeds in zip(args.steps, args.seeds, strict=True):
            for name in args.transitions:
                rows = [
                    measure(kind, n_steps, seed, name, args.sweeps, args.init)
                    for seed in range(n_seeds)
                ]
                texts = means_and_ranges(rows, (1, 0, 2, 1, 0, 0, 1))
                print(f"{kind} | {n_steps} | {name} | {' | '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
