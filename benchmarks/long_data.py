"""
Fits of long data: what more sweeps find, and what a default fit costs.

    python benchmarks/long_data.py 1e5 1e6
    python benchmarks/long_data.py 1e5 --kinds symbols gaussian --sweeps 10 20 50 100

Three kinds of data with known states: `symbols`, the automaton of 15 states; `diagonal`,
eight states in five columns; `gaussian`, eight states in two correlated columns.  For
each number of sweeps a fit of that burn-in with five draws; then the default fit.  Every
fit is a process of its own.  CPU seconds, states, adjusted Rand index, nats per step of
20,000 further rows (labels summed out), and the peak of memory in MB.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.metrics import frozen_log_likelihood

EMISSIONS = {"symbols": "hcrp", "diagonal": "diagonal_gaussian", "gaussian": "gaussian"}
N_STATES, N_HELD_OUT = 8, 20_000
# A state lasts for so many steps on average.
DWELL = 100


def make_data(kind, n, seed):
    """Rows with their states."""
    if kind == "symbols":
        return make_automaton_sequence(n, random_state=seed)
    rng = np.random.default_rng(seed)
    changes = np.where(rng.random(n) < 1 / DWELL, rng.integers(1, N_STATES, n), 0)
    states = np.cumsum(changes) % N_STATES
    if kind == "diagonal":
        means = rng.normal(0, 1.5, (N_STATES, 5))
        return means[states] + rng.normal(size=(n, 5)), states
    means, roots = rng.normal(0, 2, (N_STATES, 2)), rng.normal(size=(N_STATES, 2, 2))
    noise = np.einsum("nij,nj->ni", roots[states] + np.eye(2), rng.normal(size=(n, 2)))
    return means[states] + 0.5 * noise, states


def measure(kind, n, n_sweeps, seed):
    """Print the row of one fit; `n_sweeps` 0 is the default fit."""
    X, states = make_data(kind, n + N_HELD_OUT, seed)
    params = {"n_burnin": n_sweeps, "n_draws": 5, "thin": 1} if n_sweeps else {}
    begun = time.process_time()
    hmm = HCRPHMM(emission=EMISSIONS[kind], random_state=seed, **params).fit(X[:n])
    seconds = time.process_time() - begun
    print(
        f"{kind:9} {n:8} {n_sweeps or 'default':>8} {hmm.n_burnin_[0]:5} {hmm.thin_:2} "
        f"{seconds:8.1f} {hmm.n_states_:4} "
        f"{adjusted_rand_score(states[:n], hmm.labels_):7.4f} "
        f"{frozen_log_likelihood(hmm, X[n:]):9.4f} "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:6}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("n", nargs="+", type=float, help="numbers of rows")
    parser.add_argument("--kinds", nargs="+", choices=EMISSIONS, default=list(EMISSIONS))
    parser.add_argument("--sweeps", nargs="*", type=int, default=[10, 20, 50, 100])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        n, sweeps = int(options.n[0]), options.sweeps[0]
        return measure(options.kinds[0], n, sweeps, options.seed)
    print("kind      n          sweeps burn thin CPU s  states  ARI  held-out    MB")
    for n in options.n:
        for kind in options.kinds:
            for sweeps in (*options.sweeps, 0):
                fit = ["--kinds", kind, "--sweeps", str(sweeps), "--seed", options.seed]
                command = [sys.executable, __file__, n, "--one", *fit]
                subprocess.run([str(word) for word in command], check=True)


if __name__ == "__main__":
    main()
