"""
One chain on many processes: seconds per sweep, and what is sent.

    python benchmarks/cluster.py
    python benchmarks/cluster.py --backends loky dask --steps 1e6

Symbols of the automaton and two Gaussian columns of its states, chains that start from
the true states.  Time by the clock, the median over sweeps; the backends take turns,
sweep by sweep.  Bytes are those of the pickled labels, probabilities and statistics that
a sweep sends to all processes and gets back.  The last line has what follows for 1e9
steps on 64 workers, if a network moves 1e9 bytes a second.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time
from contextlib import ExitStack

import joblib
import numpy as np

from skihmm._chain import Chain, ModelSettings
from skihmm._sequences import Sequences
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import HCRPCategorical, NormalInverseWishart
from skihmm.samplers import StickBreakingBeam, StickBreakingGibbs, _shards
from skihmm.transitions import HCRPTransitions

SAMPLERS = {
    "StickBreakingGibbs(100)": StickBreakingGibbs(100),
    "StickBreakingBeam(1000)": StickBreakingBeam(1000),
}
BACKENDS = ("1 thread", "2 threads", "loky", "dask")


class Meter:
    """Sizes and times of the calls of other processes."""

    def __init__(self):
        self.n_bytes, self.seconds, self.weighs = 0, 0.0, False
        self._run = _shards.Shards._run

    def __call__(self, shards, jobs, with_data):
        """In the place of the method that calls them."""
        started = time.perf_counter()
        found = self._run(shards, jobs, with_data)
        self.seconds += time.perf_counter() - started
        if self.weighs:
            self.n_bytes += len(pickle.dumps(jobs)) + len(pickle.dumps(found))
        return found


def make_data(kind, n_steps):
    """Observations, emission and true states."""
    X, states = make_automaton_sequence(n_steps, random_state=0)
    if kind == "symbols":
        return X, HCRPCategorical(), states
    rng = np.random.default_rng(0)
    X = rng.normal(scale=4, size=(states.max() + 1, 2))[states]
    return X + rng.normal(size=X.shape), NormalInverseWishart(), states


def start(kind, sampler, n_steps, n_jobs):
    """A chain, inside of the block that sets its backend."""
    X, emission, states = make_data(kind, n_steps)
    emission = emission.fit(X)
    sequences = Sequences(emission.encode_values(X), np.zeros(1, dtype=np.intp))
    sampler = sampler.set_params(n_jobs=n_jobs)
    settings = ModelSettings(sampler, emission, HCRPTransitions(), states, 1)
    return Chain(sequences, settings, np.random.SeedSequence(0))


def config(backend, stack):
    """joblib's settings for two workers."""
    if backend != "dask":
        return {"backend": backend, "n_jobs": 2}
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    client = stack.enter_context(Client(stack.enter_context(cluster)))
    client.wait_for_workers(2)
    return {"backend": "dask"}


def study(kind, name, backends, n_steps, n_sweeps, settings, meter):
    """Print the rows of one sampler; returns nanoseconds and bytes of a step."""
    chains, seconds = {}, {backend: [] for backend in backends}
    for backend in backends:
        with ExitStack() as stack:
            if backend in settings:
                stack.enter_context(joblib.parallel_config(**settings[backend]))
            n_jobs = 1 if backend == "1 thread" else 2
            chains[backend] = start(kind, SAMPLERS[name], n_steps, n_jobs)
    outside = []
    meter.n_bytes = 0
    for sweep in range(n_sweeps):
        for backend, chain in chains.items():
            with ExitStack() as stack:
                if backend in settings:
                    stack.enter_context(joblib.parallel_config(**settings[backend]))
                # By the last sweep every process has the data; its time is not counted.
                meter.weighs = sweep == n_sweeps - 1 and backend == "loky"
                started, meter.seconds = time.perf_counter(), 0.0
                next(chain)
                seconds[backend].append(time.perf_counter() - started)
                if backend == "loky":
                    outside.append(seconds[backend][-1] - meter.seconds)
    labels = [chain.state.labels.tobytes() for chain in chains.values()]
    same = "the same draws" if len(set(labels)) == 1 else "OTHER DRAWS"
    scale = 1e9 / n_steps
    # The first sweep sends the data.
    median = {b: scale * statistics.median(values[1:-1]) for b, values in seconds.items()}
    row = ", ".join(f"{b} {value:.0f}" for b, value in median.items())
    print(f"{kind}, {name}: ns per step {row}; {same}", flush=True)
    if outside:
        alone = median["1 thread"]
        here = scale * statistics.median(outside[1:-1])
        each = meter.n_bytes / n_steps
        print(f"  of these {here:.0f} here; {each:.1f} bytes per step", flush=True)
        drawn = max(alone - here, 0.0)
        print(
            f"  1e9 steps on 64 workers, s per sweep: {drawn / 64:.1f} there, "
            f"{here:.0f} here on two threads, {each:.1f} to move"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=float, default=1e6)
    parser.add_argument("--sweeps", type=int, default=7)
    parser.add_argument("--backends", nargs="*", choices=BACKENDS, default=BACKENDS)
    args = parser.parse_args()
    meter = Meter()
    _shards.Shards._run = lambda *given, **named: meter(*given, **named)
    with ExitStack() as stack:
        settings = {b: config(b, stack) for b in args.backends if "thread" not in b}
        for kind in ("symbols", "two Gaussian columns"):
            for name in SAMPLERS:
                study(
                    kind,
                    name,
                    args.backends,
                    int(args.steps),
                    args.sweeps,
                    settings,
                    meter,
                )


# Processes of a cluster import this file again.
if __name__ == "__main__":
    main()
