"""
States found by the samplers on the paper's two artificial sequences, seed by seed.

    python benchmarks/sequences.py

Sequence 1 repeats A B C D B C D E; eight states (3 bits of mutual information) explain it
completely, five (one per letter, 2.25 bits) are a local optimum.  Sequence 2 is the
reconstructed automaton.  Every chain gets the same CPU time.  Reported: the number of
chains that reach the optimum, checked every 50 sweeps, and the mean mutual information
over the second half of the time.  Rates are split-merge trials per sweep.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import SAMPLERS
from joblib import Parallel, delayed
from sklearn.base import clone

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._fitting.chain import ModelSettings, begin_chain
from skihmm.datasets import make_automaton_sequence, make_repeating_sequence
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import mutual_information
from skihmm.samplers import FranchiseSampler
from skihmm.transitions import HCRPTransitions


def make_sequence(name, seed):
    """Observations and true states."""
    if name == "Sequence 1":
        return make_repeating_sequence(500)
    return make_automaton_sequence(2500, random_state=seed)


def run(sampler, name, seed, seconds):
    """CPU seconds until the optimum (NaN if never) and mean bits over the second half."""
    X, states = make_sequence(name, seed)
    emission = HCRPCategorical().fit(X)
    sequences = Sequences(emission.encode_values(X), np.zeros(1, dtype=np.intp))
    settings = ModelSettings(sampler, emission, HCRPTransitions(), "particle_filter", 100)
    chain = begin_chain(sequences, settings, np.random.SeedSequence(seed))
    best = mutual_information(states, states)
    bits, times, used = [], [], 0.0
    while used < seconds:
        used += sum(next(chain).seconds for _ in range(50))
        bits.append(mutual_information(states, chain.state.packed_labels))
        times.append(used)
    bits, times = np.array(bits), np.array(times)
    hits = times[bits > best - 1e-3]
    return hits[0] if len(hits) else np.nan, bits[times > seconds / 2].mean()


def study(name, samplers, n_seeds, seconds, rates):
    """Print one line per sampler and rate, at equal CPU time."""
    print(f"{name}: {n_seeds} seeds, {seconds:g} CPU seconds each")
    print("sampler | rate | reached the optimum | its CPU s (median) | mean bits +- s.e.")
    for key in samplers:
        for rate in rates:
            sampler = clone(SAMPLERS[key]).set_params(split_merge_rate=rate)
            results = Parallel(n_jobs=-1)(
                delayed(run)(sampler, name, seed, seconds) for seed in range(n_seeds)
            )
            when, bits = np.array(results).T
            n_reached = int(np.isfinite(when).sum())
            first = f"{np.nanmedian(when):.2f}" if n_reached else "-"
            error = bits.std(ddof=1) / np.sqrt(n_seeds)
            print(
                f"{key} | {rate:g} | {n_reached} | {first} | {bits.mean():.3f} +- {error:.3f}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rates", type=float, nargs="*", default=[0, 2, 13])
    names = [name for name, s in SAMPLERS.items() if isinstance(s, FranchiseSampler)]
    parser.add_argument("--samplers", nargs="*", default=names, choices=names)
    parser.add_argument("--sequence", choices=["1", "2", "both"], default="both")
    args = parser.parse_args()
    for number in ("1", "2"):
        if args.sequence in (number, "both"):
            study(f"Sequence {number}", args.samplers, args.seeds, args.seconds, args.rates)
    for concentration in (1e-3, 1e3):
        X, _ = make_repeating_sequence(200)
        hmm = HCRPHMM(
            transitions=HCRPTransitions(concentration, concentration, None),
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
