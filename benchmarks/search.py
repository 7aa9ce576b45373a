"""
A search of block size and split-merge rate: its price, and what it chooses.

    python benchmarks/search.py 2000 24000
    python benchmarks/search.py 24000 --burnin 500 --draws 100 --thin 5 --rates 2

Simulated words: 12 classes, 1,500 words in Zipf's order, most of which belong to one
class.  GridSearchCV of all block sizes times rates by five folds of sequences, which
refits the best.  By default 30 sweeps of burn-in and three draws.  CPU seconds of the
whole search, scores of the candidates (nats per word, labels summed out) with their mean
standard error, and the chosen one.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import sklearn
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, GroupKFold

from skihmm import HCRPHMM
from skihmm.metrics import frozen_log_likelihood

N_CLASSES, N_WORDS, N_SEQUENCES, N_FOLDS = 12, 1500, 10, 5


def make_words(n, seed):
    """Words with their classes."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(N_CLASSES, 0.3), N_CLASSES)
    shares = rng.dirichlet(np.full(N_CLASSES, 2.0))
    home = rng.choice(N_CLASSES, N_WORDS, p=shares)
    words = np.zeros((N_CLASSES, N_WORDS))
    for k in range(N_CLASSES):
        is_own = (home == k) | (rng.random(N_WORDS) < 0.15 / N_CLASSES)
        own = rng.permutation(np.flatnonzero(is_own))
        words[k, own] = 1 / np.arange(1, len(own) + 1)
    words /= words.sum(axis=1, keepdims=True)
    classes = np.zeros(n, dtype=int)
    for t in range(1, n):
        classes[t] = rng.choice(N_CLASSES, p=moves[classes[t - 1]])
    drawn = [rng.choice(N_WORDS, p=words[k]) for k in classes]
    return np.array(drawn)[:, None], classes


def search(n, options):
    """Print the rows of one search."""
    X, classes = make_words(n, options.seed)
    model = HCRPHMM(
        "blocked",
        n_burnin=options.burnin,
        n_draws=options.draws,
        thin=options.thin,
        random_state=options.seed,
    )
    grid = {
        "sampler__block_size": options.sizes,
        "sampler__split_merge_rate": options.rates,
    }
    cv = GroupKFold(N_FOLDS)
    found = GridSearchCV(model, grid, cv=cv, scoring=frozen_log_likelihood)
    begun = time.process_time()
    found.fit(X, groups=np.arange(n) * N_SEQUENCES // n)
    seconds = time.process_time() - begun
    results, best = found.cv_results_, found.best_estimator_
    error = results["std_test_score"].mean() / np.sqrt(N_FOLDS)
    print(f"{n} words: {seconds:.1f} CPU s, standard error of a score {error:.3f}")
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        mark = "  chosen" if params == found.best_params_ else ""
        size, rate = params.values()
        print(f"  block size {size}, rate {rate}: {score:.4f}{mark}")
    index = adjusted_rand_score(classes, best.labels_)
    print(f"  refitted: {best.n_states_} states, adjusted Rand index {index:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("n", nargs="+", type=int, help="numbers of words")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--rates", nargs="+", type=float, default=[0, 2, 13])
    parser.add_argument("--burnin", type=int, default=30)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--thin", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sklearn.set_config(enable_metadata_routing=True)
    for n in options.n:
        search(n, options)


if __name__ == "__main__":
    main()
