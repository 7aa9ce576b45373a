"""
Handwritten digits in counting order: real images with an unknown number of states.

    python examples/digits.py

scikit-learn's digits (1,797 images of 8 x 8 pixels) form a sequence that counts upwards,
sometimes repeats a digit or restarts at a random one; every step is an image of its
digit, drawn with replacement.  The model is fitted to the first principal components of
the images, without the digits or their number.

The agreement of states and digits is compared with the same model on the images in random
order, which shows the information in the order, and with k-means with ten clusters.

The prior sets the variance of a state to half of that of the data.  A held-out score
favours narrower states, because there are several ways to write a digit.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.emissions import NormalInverseWishart


def count(n, rng):
    """Draw digits in counting order: the next one 85 %, the same 10 %, any 5 %."""
    digits = np.zeros(n, dtype=int)
    for t in range(1, n):
        u = rng.random()
        step = digits[t - 1] + 1 if u < 0.85 else digits[t - 1]
        digits[t] = (rng.integers(10) if u >= 0.95 else step) % 10
    return digits


def write(digits, rng):
    """Draw an image of every digit."""
    images, labels = load_digits(return_X_y=True)
    return images[[rng.choice(np.flatnonzero(labels == digit)) for digit in digits]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--sweeps", type=int, default=200)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    digits = count(options.steps, rng)
    X = write(digits, rng)
    shuffled = rng.permutation(len(X))

    Z = PCA(options.components, random_state=options.seed).fit_transform(X)
    # The expectation of a state's covariance is scale / (dof - n_features - 1).
    dof = options.components + 20
    scale = options.share * (dof - options.components - 1) * np.diag(Z.var(axis=0))
    hmm = HCRPHMM(
        emission=NormalInverseWishart(strength=0.1, dof=dof, scale=scale),
        n_burnin=options.sweeps,
        n_draws=10,
        n_chains=2,
        n_jobs=2,
        random_state=options.seed,
    )

    print("                         states  adjusted Rand index  CPU seconds")
    for name, order in (("in order", np.arange(len(Z))), ("in random order", shuffled)):
        started = time.process_time()
        hmm.fit(Z[order])
        score = adjusted_rand_score(digits[order], hmm.labels_)
        seconds = time.process_time() - started
        print(f"HCRPHMM, {name:15s} {hmm.n_states_:6d} {score:20.3f} {seconds:12.1f}")
    started = time.process_time()
    labels = KMeans(10, n_init=10, random_state=options.seed).fit_predict(Z)
    score = adjusted_rand_score(digits, labels)
    seconds = time.process_time() - started
    print(f"KMeans, ten clusters     {10:6d} {score:20.3f} {seconds:12.1f}")


if __name__ == "__main__":
    main()
