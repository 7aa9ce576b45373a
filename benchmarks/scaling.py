"""
Cost per sweep against the number of steps and the number of states; long data end to end.

    SKIHMM_DATA=folder python benchmarks/scaling.py --figure scaling.png
    python benchmarks/scaling.py --end-to-end 1e4 1e5 1e6

Words of Alice, every sampler from the same states.  Steps: the text with the labels of a
chain, repeated 1, 2, 4 and 8 times, so that the number of states stays.  States: chains
that started from 100, 300, 1000 and 3000 random labels.  The slope is that of a straight
line through the logarithms: 1 is linear, 0 is constant.

End to end: sequences of the automaton of ``skihmm.datasets``, 20 sweeps of the default
estimator, then scores and paths of the same data.  CPU seconds of one thread, every
length in a process of its own; memory is the peak during a call, without data and draws.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common import SAMPLERS, load_alice, make_model, start_chain, time_sweeps

from skihmm import HCRPHMM
from skihmm._fitting.chain import begin_chain
from skihmm.datasets import make_automaton_sequence
from skihmm.metrics import frozen_log_likelihood

N_SWEEPS = 5
# End to end: all sweeps, of which the last ones make draws.
N_ALL_SWEEPS, N_DRAWS = 20, 10


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
    states = start_chain(codes, n_symbols, "particle_filter", n_sweeps, 0)[0].state.packed_labels
    for times in (1, 2, 4, 8):
        sequences, settings = make_model(
            np.tile(codes, (times, 1)), n_symbols, np.tile(states, times)
        )
        chain = begin_chain(sequences, settings, np.random.SeedSequence(0))
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
            axis.loglog(sizes, seconds, "o-", label=f"{name}, slope {slope(sizes, seconds):.2f}")
        axis.set_xlabel(title)
        axis.set_ylabel("seconds per sweep")
        # Below the axes, where the legend covers no line.
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize=8)
    figure.savefig(path, dpi=120)


def status(field):
    """Memory of this process in bytes, by Linux."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise OSError(f"no {field} in /proc/self/status")


def run(function, *args):
    """Return the result, CPU seconds, and bytes at the peak above those before."""
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    started = time.process_time()
    result = function(*args)
    return result, time.process_time() - started, status("VmHWM") - before


def end_to_end(n_steps):
    """Print the row of a table: one length."""
    X, _ = make_automaton_sequence(n_steps, random_state=0)
    seconds = [0.0]
    hmm = HCRPHMM(
        n_burnin=N_ALL_SWEEPS - N_DRAWS,
        thin=1,
        n_draws=N_DRAWS,
        callback=lambda report: seconds.append(report.seconds),
        random_state=0,
    )
    hmm.fit(X[:1000])  # imports
    seconds.clear()
    _, total, peak = run(hmm.fit, X)
    sweep = statistics.median(np.diff(seconds[-N_DRAWS:]))
    start = total - (seconds[-1] - seconds[0]) - sweep
    paths = N_DRAWS * n_steps  # one byte per step
    _, scored, scoring = run(frozen_log_likelihood, hmm, X)
    _, decoded, _ = run(hmm.predict, X)
    _, smoothed, _ = run(hmm.predict_proba, X)
    _, diagnosed, _ = run(hmm.diagnose)
    cells = (
        f"{n_steps:.0e}",
        f"{hmm.n_states_}",
        f"{start:.2f}",
        f"{sweep:.4f}",
        f"{1e9 * sweep / n_steps:.0f}",
        f"{(peak - paths) / n_steps:.0f}",
        f"{scored:.2f}",
        f"{scoring / n_steps:.0f}",
        f"{decoded:.2f}",
        f"{smoothed:.2f}",
        f"{diagnosed:.2f}",
    )
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figure", help="file for a picture (needs matplotlib)")
    parser.add_argument(
        "--end-to-end", type=float, nargs="+", metavar="STEPS", help="lengths (Linux)"
    )
    args = parser.parse_args()
    if args.end_to_end:
        if len(args.end_to_end) == 1:
            end_to_end(int(args.end_to_end[0]))
            return
        print(
            "| steps | states | start, s | sweep, s | ns per step | fit, bytes per step "
            "| frozen score, s | bytes per step | path, s | probabilities, s "
            "| diagnose, s |"
        )
        print("|---" * 11 + "|", flush=True)
        seconds = []
        for n_steps in args.end_to_end:
            command = [sys.executable, __file__, "--end-to-end", str(n_steps)]
            row = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            print(row.stdout, end="", flush=True)
            seconds.append(float(row.stdout.split("|")[4]))
        print(f"slope of seconds per sweep: {slope(args.end_to_end, seconds):.2f}")
        return
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
