"""
Chains on a cluster
===================

Fits chains through joblib's backends, here with two workers on one machine, and checks
that the draws equal those of a single thread bit for bit.

``python examples/cluster.py --backend dask --chains 8``.  Dask needs the package
``distributed``, Ray the package ``ray``; "loky" (processes) and "threading" come with
joblib.
"""

import argparse
import time
from contextlib import contextmanager

import joblib

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence

N_WORKERS = 2


@contextmanager
def workers(backend):
    """Start workers that run joblib's jobs inside the block."""
    if backend == "dask":
        from distributed import Client, LocalCluster

        # For a running cluster: Client("tcp://address:8786").
        with (
            LocalCluster(
                n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            yield
    elif backend == "ray":
        import ray
        from ray.util.joblib import register_ray

        ray.init(num_cpus=N_WORKERS, include_dashboard=False)
        register_ray()
        try:
            # Ray's backend runs all jobs in this process without n_jobs; Dask's does not.
            with joblib.parallel_config(backend="ray", n_jobs=N_WORKERS):
                yield
        finally:
            ray.shutdown()
    else:
        with joblib.parallel_config(backend=backend, n_jobs=N_WORKERS):
            yield


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--backend", choices=["dask", "ray", "loky", "threading"], default="dask")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--burnin", type=int, default=500, help="sweeps per chain")
    parser.add_argument("--draws", type=int, default=100, help="per chain")
    args = parser.parse_args()

    X, _ = make_automaton_sequence(args.steps, random_state=0)
    # n_jobs stays None: the backend sets the number of jobs.
    model = HCRPHMM(n_burnin=args.burnin, n_draws=args.draws, n_chains=args.chains, random_state=0)

    started = time.perf_counter()
    alone = model.fit(X).draws_
    print(f"one thread: {time.perf_counter() - started:.1f} s")

    with workers(args.backend):
        started = time.perf_counter()
        draws = model.fit(X).draws_
        print(f"{args.backend}, {N_WORKERS} workers: {time.perf_counter() - started:.1f} s")

    print("states, mean of each chain:", draws.n_states.mean(axis=1).round(1).tolist())
    if draws.lp.tobytes() != alone.lp.tobytes():
        raise SystemExit("The draws differ.")
    print("The draws are the same, bit for bit.")


# Dask starts its workers by importing this file again.
if __name__ == "__main__":
    main()
