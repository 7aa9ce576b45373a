"""
Mixing: effective samples per CPU second of every sampler, on four kinds of data.

    SKIHMM_DATA=folder python benchmarks/mixing.py --seconds 60
    python benchmarks/mixing.py --data automaton --samplers "BlockedGibbs(10)"

The data: the first 5,000 words of Alice, an automaton with 20 states (2,500 symbols), and
1,000 steps of six lasting states, Gaussian in two columns or autoregressive of order one.
All chains of a data set begin with the labels that ``--burnin`` sweeps of sampler="auto"
reach, and the first fifth of their draws is left out.

What is effective: draws of the log joint probability, summed over seatings, of the number
of states, and of co-assignments.  For these the median over 200 pairs of steps that share
their state in 10 to 90 per cent of all chains' draws is given.  CPU seconds are those of
the sweeps.  The standard error of an effective sample size of n from autocorrelations is
some 10 per cent at n = 1,000, and below 100 it is a guess: the table gives those numbers
after the slash.  --figure FILE draws the table.

A chain that stays in one mode seems to mix well.  With --chains N the effective sizes are
those of N chains from the same start, and fall if they end in different modes.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import load_alice
from dwell_times import simulate

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import AutoregressiveNormal, HCRPCategorical
from skihmm.metrics import effective_sample_size
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)

DATA = ("text", "automaton", "gaussian", "autoregressive")
QUANTITIES = ("log joint", "states", "pairs")
N_PAIRS = 200
SAMPLERS = [
    StepwiseGibbs(),
    StepwiseGibbs(split_merge_rate=2),
    StepwiseGibbs(split_merge_rate=1, block_share=0.25),
    StepwiseGibbs(run_split_merge_rate=4),
    StepwiseSlice(),
    BlockedGibbs(10),
    BlockedGibbs(10, split_merge_rate=2),
    BlockedGibbs(10, split_merge_rate=1, run_split_merge_rate=2),
    BlockedGibbs(10, run_split_merge_rate=4),
    BlockedBeam(10),
    DirectAssignmentGibbs(),
    StickBreakingGibbs(),
    StickBreakingBeam(),
]


def load(name):
    """Data and emission, or None without the text."""
    if name == "text":
        alice = load_alice()
        if alice is None:
            return None
        X, _, n_symbols = alice
        return X[:5000], HCRPCategorical(categories=[np.arange(n_symbols)])
    if name == "automaton":
        return make_automaton_sequence(2500, random_state=0)[0], "hcrp"
    emission = "gaussian" if name == "gaussian" else AutoregressiveNormal(1)
    return simulate(name, 1000, 0)[0], emission


def run(X, emission, transitions, sampler, labels, seconds, n_chains):
    """Draws of one sampler that sweeps for so many CPU seconds per chain."""
    settings = {
        "transitions": transitions,
        "sampler": sampler,
        "emission": emission,
        "init": labels,
        "n_burnin": 0,
        "thin": 1,
        "point_estimate": "map",  # the others compare all pairs of draws
        "random_state": 0,
    }
    pilot = HCRPHMM(n_draws=10, **settings).fit(X).draws_
    n_draws = int(np.clip(seconds / np.median(pilot.seconds), 50, 50_000))
    return HCRPHMM(n_draws=n_draws, n_chains=n_chains, **settings).fit(X).draws_


def choose_pairs(chains, rng):
    """Pairs of steps that are together in some draws and not in others."""
    n_steps = chains[0].states.shape[-1]
    pairs = rng.integers(n_steps, size=(100_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    share = np.zeros(len(pairs))
    for draws in chains:
        states = draws.states[:, draws.shape[1] // 5 :: 10].reshape(-1, n_steps)
        share += np.mean([row[pairs[:, 0]] == row[pairs[:, 1]] for row in states], axis=0) / len(
            chains
        )
    return pairs[(share > 0.1) & (share < 0.9)][:N_PAIRS]


def effective(draws, pairs):
    """Effective sample sizes of the three quantities."""
    late = slice(draws.shape[1] // 5, None)
    states = draws.states[:, late]
    together = states[..., pairs[:, 0]] == states[..., pairs[:, 1]]
    scalars = np.stack([draws.summed_lp()[:, late], draws.n_states[:, late]], axis=-1)
    sizes = effective_sample_size(scalars.astype(float), "mean")
    # A pair that never changes has no autocorrelations: one sample.
    changes = together.any(axis=(0, 1)) & ~together.all(axis=(0, 1))
    of_pairs = np.ones(len(pairs))
    if changes.any():
        of_pairs[changes] = effective_sample_size(together[..., changes].astype(float), "mean")
    return np.array([*sizes, np.median(of_pairs)])


def draw_figure(table, path):
    """Bars of the effective samples per second, one panel for every kind of data."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(table), figsize=(3.2 * len(table), 4.2), sharey=True, layout="constrained"
    )
    for (name, rows), ax in zip(table.items(), np.atleast_1d(axes), strict=True):
        position = np.arange(len(rows))[::-1]
        for i, quantity in enumerate(QUANTITIES):
            rates = [rate[i] for _, rate in rows]
            ax.barh(position + 0.27 * (1 - i), rates, height=0.25, label=quantity)
        ax.set_xscale("log")
        ax.set_title(name)
        ax.set_yticks(position, [label for label, _ in rows])
    figure.supxlabel("effective samples per CPU second")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--samplers", nargs="+", help="by their text; default: all")
    parser.add_argument("--seconds", type=float, default=60.0, help="per chain")
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--burnin", type=int, default=500)
    parser.add_argument("--transitions", default="hcrp", help="or sticky")
    parser.add_argument("--figure", help="file of the picture")
    args = parser.parse_args()
    samplers = SAMPLERS
    if args.samplers:
        samplers = [eval(text) for text in args.samplers]
    if args.transitions != "hcrp":
        samplers = [sampler for sampler in samplers if sampler.supports_stays]
    table = {}
    print("effective samples per CPU second / effective samples: " + ", ".join(QUANTITIES))
    for name in args.data:
        loaded = load(name)
        if loaded is None:
            continue
        X, emission = loaded
        start = HCRPHMM(
            emission=emission,
            transitions=args.transitions,
            n_burnin=args.burnin,
            n_draws=1,
            point_estimate="map",
            random_state=0,
        ).fit(X)
        labels = start.draws_.states[0, -1]
        chains = [
            run(
                X,
                emission,
                args.transitions,
                sampler,
                labels,
                args.seconds,
                args.chains,
            )
            for sampler in samplers
        ]
        pairs = choose_pairs(chains, np.random.default_rng(0))
        table[name] = []
        for sampler, draws in zip(samplers, chains, strict=True):
            sizes = effective(draws, pairs)
            # The seconds of the draws that were kept.
            rates = sizes / (0.8 * draws.seconds.sum())
            table[name].append((str(sampler), rates))
            print(
                f"{name} | {sampler} | "
                + " | ".join(f"{r:.2f} / {n:.0f}" for r, n in zip(rates, sizes, strict=True))
                + f" | {1e9 * draws.seconds.mean() / len(X):.0f} ns a step, "
                f"lp {draws.summed_lp()[:, draws.shape[1] // 5 :].mean():.1f}, "
                f"{draws.n_states.mean():.1f} states",
                flush=True,
            )
    if args.figure:
        draw_figure(table, args.figure)


if __name__ == "__main__":
    main()
