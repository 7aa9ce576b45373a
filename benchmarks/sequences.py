"""
What the sampler finds on the paper's two artificial sequences, seed by seed.

    python benchmarks/sequences.py

Sequence 1 repeats A B C D B C D E; eight states (3 bits of mutual information) explain it
completely, five (one per letter, 2.25 bits) are a local optimum.  Sequence 2 is the
reconstructed automaton.
"""

from __future__ import annotations

import argparse

import numpy as np

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence, make_repeating_sequence
from skihmm.metrics import mutual_information


def study(name, make, n_seeds, **settings):
    """Fit every seed and print the mutual information of its best draw."""
    found, n_states, seconds = [], [], []
    for seed in range(n_seeds):
        X, states = make(seed)
        hmm = HCRPHMM(random_state=seed, **settings).fit(X)
        found.append(mutual_information(states, hmm.labels_))
        n_states.append(hmm.n_states_)
        seconds.append(hmm.draws_.seconds.sum())
    best = mutual_information(states, states)
    error = np.std(found) / np.sqrt(n_seeds)
    print(f"{name}: {n_seeds} seeds, {settings}")
    print(f"  mutual information {np.mean(found):.3f} +- {error:.3f} of {best:.3f} bits")
    print(f"  by seed: {' '.join(f'{value:.2f}' for value in found)}")
    print(f"  states of the best draw: {np.mean(n_states):.1f} on average")
    reached = sum(value > best - 1e-6 for value in found)
    print(f"  optimum reached: {reached} of {n_seeds}")
    print(f"  CPU seconds of the stored sweeps: {np.mean(seconds):.2f} on average")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    n_seeds = parser.parse_args().seeds
    study(
        "Sequence 1",
        lambda seed: make_repeating_sequence(500),
        n_seeds,
        n_burnin=1000,
        n_draws=200,
        thin=10,
    )
    study(
        "Sequence 2",
        lambda seed: make_automaton_sequence(2500, random_state=seed),
        n_seeds,
        n_burnin=1000,
        n_draws=200,
        thin=10,
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
