"""
Handwritten digits in an order: real images, states that nobody counted.

    python examples/digits.py

scikit-learn's digits (1,797 images of 8 x 8 pixels) are put into a sequence: somebody
counts upwards, now and then says a digit again or starts anew at a random one, and each
time writes it down (an image of that digit, drawn with replacement).  The model gets the
images (their first principal components), not the digits, and not their number.

How well states are digits is compared with the same model on the images in random order
and with k-means, which is told that there are ten: the rest is what the order says.

A state is taken to have half of the variance of the data.  A held-out score asks for
narrower ones: people write a digit in several ways, and it is the density that is scored.
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
    """Digits of somebody who counts: the next one 85 %, again 10 %, anywhere 5 %."""
    digits = np.zeros(n, dtype=int)
    for t in range(1, n):
        u = rng.random()
        step = digits[t - 1] + 1 if u < 0.85 else digits[t - 1]
        digits[t] = (rng.integers(10) if u >= 0.95 else step) % 10
    return digits


def write(digits, rng):
    """An image of every digit."""
    images, labels = load_digits(return_X_y=True)
    written = [rng.choice(np.flatnonzero(labels == digit)) for digit in digits]
    return images[written]


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
    # With this many degrees of freedom the expectation of a state's covariance is
    # scale / (dof - n_features - 1).
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
    print(f"KMeans, told of ten      {10:6d} {score:20.3f} {seconds:12.1f}")


if __name__ == "__main__":
    main()
