"""
Cost per sweep against the number of steps and the number of states.

    SKIHMM_DATA=folder python benchmarks/scaling.py --figure scaling.png

Words of Alice, every sampler from the same states.  Steps: the text with the labels of a
chain, repeated 1, 2, 4 and 8 times, so that the number of states stays.  States: chains
that started from 100, 300, 1000 and 3000 random labels.  The slope is that of a straight
line through the logarithms: 1 is linear, 0 is constant.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from common import SAMPLERS, load_alice, make_model, start_chain, time_sweeps

from skihmm._chain import Chain

N_SWEEPS = 5


def slope(x, y):
    """Slope of the regression of log y on log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def measure(title, cases, rounds):
    """Time every case and return ``{sampler: (sizes, seconds)}``."""
    results = {name: ([], []) for name in SAMPLERS}
    for size, record, sequences, settings in cases:
        times = {name: [] for name in SAMPLERS}
        rates = {}
        for _ in range(rounds):
            for name, sampler in SAMPLERS.items():
                seconds, rates[name], _ = time_sweeps(
                    sampler, record, sequences, settings, N_SWEEPS
                )
                times[name].append(seconds)
        for name in SAMPLERS:
            results[name][0].append(size)
            results[name][1].append(statistics.median(times[name]))
        last = {name: results[name][1][-1] for name in SAMPLERS}
        line = ", ".join(f"{n} {last[n]:.4f} s ({rates[n]:.3f})" for n in SAMPLERS)
        print(f"{title} {size}: {line}", flush=True)
    for name, (sizes, seconds) in results.items():
        print(f"slope of {name} in {title}: {slope(sizes, seconds):.2f}")
    return results


def longer_texts(codes, n_symbols, n_sweeps):
    """Repeat the text and its states."""
    states = start_chain(codes, n_symbols, "particle_filter", n_sweeps, 0)[0].state.labels
    for times in (1, 2, 4, 8):
        sequences, settings = make_model(
            np.tile(codes, (times, 1)), n_symbols, np.tile(states, times)
        )
        chain = Chain(sequences, settings, np.random.SeedSequence(0))
        yield len(states) * times, chain.record(), sequences, settings


def more_states(codes, n_symbols):
    """Sweep from several numbers of random states."""
    for n_states in (100, 300, 1000, 3000):
        chain, sequences, settings = start_chain(codes, n_symbols, n_states, 5, 0)
        yield chain.state.n_states, chain.record(), sequences, settings


def draw(path, results):
    """One panel per result, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(10, 5.5), layout="constrained")
    for axis, (title, curves) in zip(axes, results.items(), strict=True):
        for name, (sizes, seconds) in curves.items():
            axis.loglog(
                sizes, seconds, "o-", label=f"{name}, slope {slope(sizes, seconds):.2f}"
            )
        axis.set_xlabel(title)
        axis.set_ylabel("seconds per sweep")
        # Below the axes, where the legend covers no line.
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize=8)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figure", help="file for a picture (needs matplotlib)")
    args = parser.parse_args()
    alice = load_alice()
    if alice is None:
        raise SystemExit("set SKIHMM_DATA to the folder that has alice.txt")
    codes, _, n_symbols = alice
    results = {
        "steps": measure("steps", longer_texts(codes, n_symbols, 500), args.rounds),
        "states": measure("states", more_states(codes, n_symbols), args.rounds),
    }
    if args.figure:
        draw(args.figure, results)


if __name__ == "__main__":
    main()
