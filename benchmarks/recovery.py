"""
Recovery of a known Gaussian model, beside EM with the true number of states.

    pip install hmmlearn
    python benchmarks/recovery.py

Eight states in four dimensions, overlapping, with full covariance matrices; 20,000 steps
to train on and 5,000 to score.  Both programs get the same data; EM has eight states and
keeps the best of its restarts by training likelihood.  Reported: CPU
seconds, number of states, adjusted Rand index of the training states, and the held-out
log density per step (nats), beside that of the true model.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy import stats
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.metrics import ParticleFilterScorer

N_STATES, N_COLUMNS = 8, 4


def draw_model(rng, distance):
    transmat = rng.dirichlet(np.full(N_STATES, 0.5), size=N_STATES)
    transmat = 0.7 * np.eye(N_STATES) + 0.3 * transmat
    means = distance * rng.normal(size=(N_STATES, N_COLUMNS))
    factors = rng.normal(size=(N_STATES, N_COLUMNS, N_COLUMNS)) / 2
    covariances = factors @ factors.transpose(0, 2, 1) + 0.3 * np.eye(N_COLUMNS)
    return transmat, means, covariances


def draw_data(model, n, rng):
    transmat, means, covariances = model
    states = np.zeros(n, dtype=int)
    for t in range(1, n):
        states[t] = rng.choice(N_STATES, p=transmat[states[t - 1]])
    noise = rng.normal(size=(n, N_COLUMNS))
    lower = np.linalg.cholesky(covariances)
    return means[states] + np.einsum("tij,tj->ti", lower[states], noise), states


def log_density(model, X):
    """Mean log density per step by the forward pass."""
    transmat, means, covariances = model
    emitted = np.stack(
        [
            stats.multivariate_normal.logpdf(X, mean, covariance)
            for mean, covariance in zip(means, covariances, strict=True)
        ],
        axis=1,
    )
    belief, total = np.full(N_STATES, -np.log(N_STATES)), 0.0
    for row in emitted:
        joint = logsumexp(belief[:, None] + np.log(transmat), axis=0) + row
        norm = logsumexp(joint)
        belief, total = joint - norm, total + norm
    return total / len(X)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--distance", type=float, default=2.0)
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    print("seed | program | CPU s | states | adjusted Rand index | held-out nats per step")
    for seed in range(args.seeds):
        rng = np.random.default_rng(seed)
        model = draw_model(rng, args.distance)
        X, states = draw_data(model, args.steps + 5000, rng)
        train, test = X[: args.steps], X[args.steps :]
        known = states[: args.steps]
        print(f"{seed} | true model | | {N_STATES} | | {log_density(model, test):.4f}")

        started = time.process_time()
        hmm = HCRPHMM(
            emission="gaussian",
            n_burnin=200,
            n_draws=20,
            thin=10,
            random_state=seed,
        ).fit(train)
        seconds = time.process_time() - started
        score = ParticleFilterScorer(adaptive=False, start="continue")(hmm, test)
        rand = adjusted_rand_score(known, hmm.predict(train))
        print(
            f"{seed} | skihmm | {seconds:.1f} | {hmm.n_states_} | {rand:.4f} | {score:.4f}",
            flush=True,
        )

        try:
            from hmmlearn.hmm import GaussianHMM
        except ImportError:
            print(f"{seed} | EM | not installed | | |")
            continue
        started = time.process_time()
        best = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for restart in range(args.restarts):
                em = GaussianHMM(N_STATES, "full", n_iter=200, tol=1e-2, random_state=restart).fit(
                    train
                )
                if best is None or em.score(train) > best.score(train):
                    best = em
        seconds = time.process_time() - started
        params = (best.transmat_, best.means_, best.covars_)
        rand = adjusted_rand_score(known, best.predict(train))
        print(
            f"{seed} | EM, {N_STATES} states, best of {args.restarts} | "
            f"{seconds:.1f} | {N_STATES} | {rand:.4f} | {log_density(params, test):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
