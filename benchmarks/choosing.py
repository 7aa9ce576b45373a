"""
Symbols of a known automaton, beside EM that has to choose its number of states.

    pip install hmmlearn
    python benchmarks/choosing.py

2,500 steps of ``make_automaton_sequence``, 15 states, three of which share their symbols;
2,500 more are scored.  hmmlearn: n_components from 3 to 24 by three, five restarts each;
chosen by BIC, by the score of the last fifth of the training steps (and then fitted to
all), or told the truth, 15.  Reported: CPU seconds of all fits that it takes, number of
states, adjusted Rand index of the training states (paths of ``predict``) and held-out
perplexity with frozen parameters.
"""

from __future__ import annotations

import argparse
import logging
import time

import numpy as np
from hmmlearn.hmm import CategoricalHMM
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.metrics import frozen_log_likelihood

N_STEPS, N_SYMBOLS, N_RESTARTS = 2500, 15, 5
GRID = range(3, 25, 3)


def best_of_restarts(n_states, X):
    """Best of the restarts by training likelihood, and their CPU seconds."""
    started = time.process_time()
    fitted = []
    for seed in range(N_RESTARTS):
        model = CategoricalHMM(n_states, n_iter=100, random_state=seed)
        model.n_features = N_SYMBOLS
        fitted.append((model.fit(X).score(X), seed, model))
    return max(fitted)[2], time.process_time() - started


def bic(model, X):
    n = sum(model._get_n_fit_scalars_per_param()[p] for p in model.params)
    return n * np.log(len(X)) - 2 * model.score(X)


def report(seed, name, seconds, n_states, path, truth, perplexity):
    rand = adjusted_rand_score(truth, path)
    print(
        f"{seed} | {name} | {seconds:.1f} | {n_states} | {rand:.2f} | {perplexity:.3f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    print("seed | program | CPU s | states | adjusted Rand index | held-out perplexity")
    for seed in args.seeds:
        X, states = make_automaton_sequence(2 * N_STEPS, random_state=seed)
        train, test, truth = X[:N_STEPS], X[N_STEPS:], states[:N_STEPS]
        started = time.process_time()
        hmm = HCRPHMM(random_state=seed).fit(train)
        seconds = time.process_time() - started
        perplexity = np.exp(-frozen_log_likelihood(hmm, test))
        path = hmm.predict(train)
        report(seed, "skihmm", seconds, hmm.n_states_, path, truth, perplexity)

        early, late = train[: N_STEPS * 4 // 5], train[N_STEPS * 4 // 5 :]
        full = {n: best_of_restarts(n, train) for n in GRID}
        part = {n: best_of_restarts(n, early) for n in GRID}
        by_bic = min(GRID, key=lambda n: bic(full[n][0], train))
        by_score = max(GRID, key=lambda n: part[n][0].score(late))
        cost = sum(seconds for _, seconds in full.values())
        cost_of_score = sum(seconds for _, seconds in part.values())
        for name, n, seconds in (
            ("hmmlearn, BIC", by_bic, cost),
            ("hmmlearn, held-out", by_score, cost_of_score + full[by_score][1]),
            ("hmmlearn, told 15", 15, full[15][1]),
        ):
            model = full[n][0]
            perplexity = np.exp(-model.score(test) / len(test))
            report(seed, name, seconds, n, model.predict(train), truth, perplexity)


if __name__ == "__main__":
    main()
