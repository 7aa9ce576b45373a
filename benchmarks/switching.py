"""
Recovery of simulated switching vector autoregressions.

    python benchmarks/switching.py --dimensions 2 4 8 --steps 1000 10000 100000

Eight states, stable autoregressions of order one that last 50 steps on average.  For
every size: adjusted Rand index, number of states, root mean square error of the
coefficients (of the states that hold most of a true state's steps), CPU seconds and CPU
nanoseconds per step and state of a sweep; beside it the adjusted Rand index and the
number of states with independent Gaussian states.  --costs instead prints the cost of a
step-wise sweep by dimension and order, with the labels at the truth.  --scale prints of
one sweep of sampler="auto" from there, order one: CPU seconds, states, the largest memory
of the process, and the memory before the fit (data included).
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal

N_STATES = 8


def simulate(n_columns, n_steps, seed, dwell=50):
    """Data, true states and their coefficients."""
    rng = np.random.default_rng(seed)
    coefficients = np.empty((N_STATES, n_columns, n_columns))
    for matrix in coefficients:
        matrix[:] = rng.normal(size=(n_columns, n_columns))
        matrix *= rng.uniform(0.7, 0.97) / abs(np.linalg.eigvals(matrix)).max()
    intercepts = rng.normal(scale=0.5, size=(N_STATES, n_columns))
    changes = rng.random(n_steps) < 1 / dwell
    changes[0] = True
    states = rng.integers(N_STATES, size=changes.sum())[np.cumsum(changes) - 1]
    X = np.zeros((n_steps, n_columns))
    noise = rng.normal(scale=0.5, size=X.shape)
    for t in range(1, n_steps):
        X[t] = coefficients[states[t]] @ X[t - 1] + intercepts[states[t]] + noise[t]
    return X, states, coefficients


def recover(n_columns, n_steps, seed, n_sweeps):
    """One row of the table."""
    X, states, coefficients = simulate(n_columns, n_steps, seed)
    settings = {"n_burnin": n_sweeps, "n_draws": 10, "random_state": seed}
    started = time.process_time()
    hmm = HCRPHMM(emission=AutoregressiveNormal(1), **settings).fit(X)
    seconds = time.process_time() - started
    found = [
        hmm.emission_.coefficients_[np.bincount(hmm.labels_[states == k]).argmax()]
        for k in np.unique(states)
    ]
    error = np.sqrt(np.mean((np.array(found) - coefficients[np.unique(states)]) ** 2))
    work = hmm.draws_.seconds.mean() / 5 / n_steps / hmm.draws_.n_states.mean()
    gaussian = HCRPHMM(emission="gaussian", **settings).fit(X)
    return (
        adjusted_rand_score(states, hmm.labels_),
        hmm.n_states_,
        error,
        seconds,
        1e9 * work,
        adjusted_rand_score(states, gaussian.labels_),
        gaussian.n_states_,
    )


def cost(n_columns, order, n_steps=5000):
    """Nanoseconds per step and state of a sweep of single steps."""
    X, states, _ = simulate(n_columns, n_steps, 0)
    hmm = HCRPHMM(
        sampler="stepwise",
        emission=AutoregressiveNormal(order),
        init=states,
        n_burnin=2,
        n_draws=5,
        thin=1,
        random_state=0,
    ).fit(X)
    work = hmm.draws_.seconds[0] / n_steps / hmm.draws_.n_states[0]
    return 1e9 * float(np.min(work))


def megabytes():
    """Largest memory of the process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scale(n_columns, n_steps):
    """One sweep: CPU seconds, states, largest memory after and before."""
    X, states, _ = simulate(n_columns, n_steps, 0)
    before = megabytes()
    hmm = HCRPHMM(
        emission=AutoregressiveNormal(1),
        init=states,
        n_burnin=1,
        n_draws=1,
        thin=1,
        random_state=0,
    ).fit(X)
    return hmm.draws_.seconds[0, 0], hmm.n_states_, megabytes(), before


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--steps", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--orders", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=200)
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--scale", action="store_true")
    args = parser.parse_args()
    if args.scale:
        print("columns | steps | s per sweep | states | MB | MB before")
        for n_columns in args.dimensions:
            for n_steps in args.steps:
                seconds, n_states, after, before = scale(n_columns, n_steps)
                print(
                    f"{n_columns} | {n_steps} | {seconds:.2f} | {n_states} | "
                    f"{after:.0f} | {before:.0f}",
                    flush=True,
                )
        return
    if args.costs:
        print("columns | " + " | ".join(f"order {order}" for order in args.orders))
        for n_columns in args.dimensions:
            costs = [f"{cost(n_columns, order):.0f}" for order in args.orders]
            print(f"{n_columns} | {' | '.join(costs)}", flush=True)
        return
    print("columns | steps | ARI | states | error | s | ns | Gaussian: ARI | states")
    for n_columns in args.dimensions:
        for n_steps in args.steps:
            rows = [recover(n_columns, n_steps, seed, args.sweeps) for seed in range(args.seeds)]
            ari, n_states, error, seconds, work, other, others = np.mean(rows, axis=0)
            print(
                f"{n_columns} | {n_steps} | {ari:.3f} | {n_states:.1f} | {error:.3f} | "
                f"{seconds:.1f} | {work:.0f} | {other:.3f} | {others:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
