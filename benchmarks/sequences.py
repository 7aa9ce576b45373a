"""
What the samplers find on the paper's two artificial sequences, seed by seed.

    python benchmarks/sequences.py

Sequence 1 repeats A B C D B C D E; eight states (3 bits of mutual information) explain it
completely, five (one per letter, 2.25 bits) are a local optimum.  Sequence 2 is the
reconstructed automaton.  Every chain gets the same CPU time; for Sequence 1 it is counted
how many ever reach three bits, looking every 50 sweeps.
"""

from __future__ import annotations

import argparse

import numpy as np

from skihmm import HCRPHMM
from skihmm._chain import Chain, ModelSettings
from skihmm._sequences import Sequences
from skihmm.datasets import make_automaton_sequence, make_repeating_sequence
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import mutual_information
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice


def run(sampler, X, states, seed, seconds):
    """Mutual information every 50 sweeps of one chain, and the CPU seconds used."""
    emission = HCRPCategorical().fit(X)
    sequences = Sequences(emission.encode(X), np.zeros(1, dtype=np.intp))
    settings = ModelSettings(
        sampler, emission, 1.0, 1.0, (1.0, 1.0), "particle_filter", 100
    )
    chain = Chain(sequences, settings, np.random.SeedSequence(seed))
    found, times, used = [], [], 0.0
    while used < seconds:
        used += sum(next(chain).seconds for _ in range(50))
        found.append(mutual_information(states, chain.state.labels))
        times.append(used)
    return np.array(found), np.array(times)


def study(name, make, n_seeds, seconds, rates):
    """One line per sampler and rate: what the chains find in equal CPU time."""
    print(f"{name}: {n_seeds} seeds, {seconds:g} CPU seconds each")
    print("sampler | reached the optimum | its CPU s (median) | mean bits, second half")
    samplers = [StepwiseGibbs(), StepwiseSlice(), BlockedGibbs(), BlockedBeam()]
    for sampler in samplers:
        for rate in rates:
            sampler.set_params(split_merge_rate=rate)
            when, means = [], []
            for seed in range(n_seeds):
                X, states = make(seed)
                found, times = run(sampler, X, states, seed, seconds)
                best = mutual_information(states, states)
                hits = np.flatnonzero(found > best - 1e-3)
                if len(hits):
                    when.append(times[hits[0]])
                means.append(found[len(found) // 2 :].mean())
            first = f"{np.median(when):.2f}" if when else "-"
            error = np.std(means) / np.sqrt(n_seeds)
            mean = f"{np.mean(means):.3f} +- {error:.3f}"
            print(f"{sampler} | {len(when)} | {first} | {mean}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rates", type=float, nargs="*", default=[0, 2, 13])
    args = parser.parse_args()
    study(
        "Sequence 1",
        lambda seed: make_repeating_sequence(500),
        args.seeds,
        args.seconds,
        args.rates,
    )
    study(
        "Sequence 2",
        lambda seed: make_automaton_sequence(2500, random_state=seed),
        args.seeds,
        args.seconds,
        args.rates,
    )
    for concentration in (1e-3, 1e3):
        X, _ = make_repeating_sequence(200)
        hmm = HCRPHMM(
            alpha=concentration,
            gamma=concentration,
            concentration_prior=None,
            n_burnin=50,
            n_draws=20,
            random_state=0,
        ).fit(X)
        finite = all(
            np.isfinite(values).all()
            for values in (hmm.draws_.lp, hmm.transmat_, hmm.score_samples(X))
        )
        print(
            f"concentrations forced to {concentration:g}: {hmm.n_states_} states, "
            f"score {hmm.score(X):.3f}, all finite: {finite}"
        )


if __name__ == "__main__":
    main()
