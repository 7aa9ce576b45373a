"""
Nanoseconds per step and state of every emission: one row of probabilities, and one sweep.

    python benchmarks/emissions.py --states 8 32 128

``--states`` is the number of states of the data; chains start from the true labels and
keep about as many.  "row" is the time of the likelihoods of one observation under every
state, measured by filtering (with transitions); "sweep" that of a step-wise Gibbs sweep.
Both are divided by steps and states; the quality beside them is the adjusted Rand index
of the last draw.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._using.decoding import frozen_model
from skihmm.emissions import ProductEmission
from skihmm.samplers import StepwiseGibbs

N_COLUMNS = 4
# "product" has nine columns in all.
PARTS = ("dirichlet", "gaussian", "poisson")


def make_emission(kind):
    """The emission of a kind, or its short name."""
    if kind != "product":
        return kind
    places = ([0], range(1, 1 + N_COLUMNS), range(1 + N_COLUMNS, 1 + 2 * N_COLUMNS))
    return ProductEmission([(p, p, c) for p, c in zip(PARTS, places, strict=True)])


def make_data(kind, states, n_states, rng):
    """Observations of a kind, in N_COLUMNS columns (symbols: one)."""
    n = len(states)
    if kind == "product":
        parts = [make_data(part, states, n_states, rng) for part in PARTS]
        return np.column_stack(parts)
    if kind in ("gaussian", "diagonal_gaussian"):
        centres = rng.normal(scale=6.0, size=(n_states, N_COLUMNS))
        return centres[states] + rng.normal(size=(n, N_COLUMNS))
    if kind == "poisson":
        return rng.poisson(rng.gamma(1.0, 20.0, size=(n_states, N_COLUMNS))[states])
    if kind == "bernoulli":
        return (
            rng.random((n, 4 * N_COLUMNS))
            < rng.beta(0.3, 0.3, size=(n_states, 4 * N_COLUMNS))[states]
        ).astype(int)
    symbols = rng.dirichlet(np.full(200, 0.05), size=n_states).cumsum(axis=1)
    codes = (rng.random(n)[:, None] > symbols[states]).sum(axis=1)
    return np.minimum(codes, 199)[:, None]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--states", type=int, nargs="*", default=[8, 32, 128])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument(
        "--emissions",
        nargs="*",
        default=[
            "hcrp",
            "dirichlet",
            "gaussian",
            "diagonal_gaussian",
            "poisson",
            "bernoulli",
            "product",
        ],
    )
    args = parser.parse_args()
    print("emission | true states | states | row, ns | sweep, ns | adjusted Rand index")
    for kind in args.emissions:
        for n_states in args.states:
            rng = np.random.default_rng(0)
            jump = rng.random(args.steps) < 0.2
            jump[0] = True
            drawn = rng.integers(n_states, size=args.steps)
            states = drawn[np.maximum.accumulate(np.where(jump, np.arange(len(jump)), 0))]
            X = make_data(kind, states, n_states, rng)
            hmm = HCRPHMM(
                StepwiseGibbs(),
                make_emission(kind),
                init=states,
                n_burnin=0,
                n_draws=1,
                thin=args.sweeps,
                random_state=0,
            ).fit(X)
            sweep = hmm.draws_.seconds[0, -1] / args.sweeps
            sequences = Sequences(hmm.emission_.encode_values(X), np.zeros(1, dtype=np.intp))
            model = frozen_model(hmm.draws_[0, -1], sequences, hmm.emission_)
            started = time.thread_time()
            model.filter()
            row = time.thread_time() - started
            cells = args.steps * hmm.n_states_
            score = adjusted_rand_score(states, hmm.labels_)
            print(
                f"{kind} | {n_states} | {hmm.n_states_} | {1e9 * row / cells:.1f} | "
                f"{1e9 * sweep / cells:.1f} | {score:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
