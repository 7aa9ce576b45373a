"""
Five jobs with an unknown number of states: one default call of skihmm, beside its peers.

    python benchmarks/peers.py --environments FOLDER

hmmlearn, dynamax and statsmodels run in virtual environments, FOLDER/hmmlearn and so on;
missing ones are made with pip.  A peer that cannot be installed is left out with a line.
All data are simulated, and as many new rows are held out.

levels: 10,000 rows of five columns, six states of 50 rows, Gaussian noise.
motion: as many rows, states and columns; every state is a vector autoregression of order
    one, with Student's t innovations of six degrees of freedom.
decisions: 20 sessions of 500 choices by a stimulus and the last choice, three strategies.
returns: 1,500 days, calm or turbulent, normal noise.
counts: 3,000 Poisson counts of three rates, times a known exposure.

hmmlearn: EM with 2, 4, ... 10 states (levels, motion; counts: 1 to 6), three starts each,
the number by BIC; it has no exposure.  dynamax: EM with 2 to 5 states, three starts of 50
iterations, the number by the score of sessions left out in four folds.  statsmodels: two
to four regimes that differ in mean and variance, 20 random starts, the number by BIC.

Reported: CPU seconds of all fits that it takes, number of states (of skihmm: with at
least 1 % of the rows), adjusted Rand index of the training rows, and held-out nats per
row with frozen parameters, less the nats of the true model.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import venv
from importlib.metadata import version
from pathlib import Path

import numpy as np

# Data of a job: rows of the fit and new rows, with the ids of sequences.


def draw_path(rng, n_rows, n_states, dwell):
    """States that last for `dwell` rows on average, and their transition matrix."""
    transmat = np.full((n_states, n_states), 1 / (dwell * (n_states - 1)))
    np.fill_diagonal(transmat, 1 - 1 / dwell)
    path = np.zeros(n_rows, dtype=int)
    for t in range(1, n_rows):
        path[t] = rng.choice(n_states, p=transmat[path[t - 1]])
    return path, transmat


def score_of(log_probs, transmat, starts):
    """Mean log probability of rows by the forward pass; `starts` marks first rows."""
    even = np.full(len(transmat), 1 / len(transmat))
    alpha, total = even, 0.0
    for row, is_first in zip(log_probs, starts, strict=True):
        top = row.max()
        alpha = (even if is_first else alpha @ transmat) * np.exp(row - top)
        total += np.log(alpha.sum()) + top
        alpha = alpha / alpha.sum()
    return total / len(log_probs)


def first_of(groups):
    return np.r_[True, groups[1:] != groups[:-1]]


def make_levels(rng, n=10_000):
    from scipy.stats import multivariate_normal

    path, transmat = draw_path(rng, 2 * n, 6, 50)
    means = rng.normal(scale=1.5, size=(6, 5))
    factors = np.eye(5) + 0.3 * rng.normal(size=(6, 5, 5))
    X = means[path] + np.einsum("tij,tj->ti", factors[path], rng.normal(size=(2 * n, 5)))
    laws = [multivariate_normal(means[k], factors[k] @ factors[k].T) for k in range(6)]
    log_probs = np.stack([law.logpdf(X[n:]) for law in laws], axis=1)
    groups = np.zeros(2 * n, dtype=int)
    truth = score_of(log_probs, transmat, np.arange(n) == 0)
    return {"X": X, "groups": groups, "path": path, "truth": truth, "n": n}


def make_motion(rng, n=10_000):
    from scipy.stats import multivariate_t

    path, transmat = draw_path(rng, 2 * n, 6, 50)
    means = rng.normal(scale=1.5, size=(6, 5))
    turns = np.linalg.qr(rng.normal(size=(6, 5, 5)))[0]
    moves = turns * rng.uniform(0.3, 0.9, size=(6, 1, 1))  # their eigenvalues have this modulus
    law = multivariate_t(shape=0.5 * np.eye(5), df=6)
    X, innovations = np.zeros((2 * n, 5)), law.rvs(2 * n, random_state=rng)
    for t in range(1, 2 * n):
        k = path[t]
        X[t] = means[k] + moves[k] @ (X[t - 1] - means[k]) + innovations[t]
    expected = means + np.einsum("kij,tkj->tki", moves, X[n - 1 : -1, None] - means)
    truth = score_of(law.logpdf(X[n:, None] - expected), transmat, np.arange(n) == 0)
    return {"X": X, "groups": np.zeros(2 * n, dtype=int), "path": path, "truth": truth, "n": n}


def make_decisions(rng, n_sessions=20, n_trials=500):
    n = n_sessions * n_trials
    path, transmat = draw_path(rng, 2 * n, 3, 90)
    groups = np.arange(2 * n) // n_trials
    weights = np.array([[4.0, 0.0, 0.0], [0.5, 2.0, 0.0], [0.5, 0.0, -2.0]])
    stimulus, before = rng.normal(size=2 * n), np.zeros(2 * n)
    choice, log_odds = np.zeros(2 * n), np.empty((2 * n, 3))
    for t in range(2 * n):
        before[t] = 2 * choice[t - 1] - 1 if t % n_trials else 0
        log_odds[t] = weights @ [stimulus[t], before[t], 1.0]
        choice[t] = rng.random() < 1 / (1 + np.exp(-log_odds[t, path[t]]))
    log_probs = -np.logaddexp(0, np.where(choice[:, None] == 1, -1, 1) * log_odds)
    truth = score_of(log_probs[n:], transmat, first_of(groups[n:]))
    X = np.column_stack([choice, stimulus, before])
    return {"X": X, "groups": groups, "path": path, "truth": truth, "n": n}


def make_returns(rng, n=1500):
    from scipy.stats import norm

    path, transmat = draw_path(rng, 2 * n, 2, 75)
    means, scales = np.array([0.05, -0.1]), np.array([0.7, 1.8])
    X = rng.normal(means[path], scales[path])[:, None]
    log_probs = norm(means, scales).logpdf(X[n:])
    truth = score_of(log_probs, transmat, np.arange(n) == 0)
    return {"X": X, "groups": np.zeros(2 * n, dtype=int), "path": path, "truth": truth, "n": n}


def make_counts(rng, n=3000):
    from scipy.stats import poisson

    path, transmat = draw_path(rng, 2 * n, 3, 40)
    rates, exposure = np.array([1.0, 3.0, 8.0]), rng.lognormal(0, 0.5, 2 * n)
    y = rng.poisson(rates[path] * exposure)
    log_probs = poisson(rates * exposure[n:, None]).logpmf(y[n:, None])
    truth = score_of(log_probs, transmat, np.arange(n) == 0)
    X = np.column_stack([y, exposure])
    return {"X": X, "groups": np.zeros(2 * n, dtype=int), "path": path, "truth": truth, "n": n}


# A program gets rows and ids of the fit, and new rows and their ids.  It returns the path
# of the rows of the fit, the number of states and the mean log probability of new rows.


def run_skihmm(job, seed, X, groups, new, new_groups):
    from skihmm import HCRPHMM
    from skihmm.emissions import (
        AutoregressiveNormal,
        BernoulliRegression,
        NegativeBinomialRegression,
    )
    from skihmm.metrics import frozen_log_likelihood

    options = {
        "levels": {"emission": "gaussian", "transitions": "persistent"},
        "motion": {"emission": AutoregressiveNormal(noise="student")},
        "decisions": {"emission": BernoulliRegression(input_features=[1, 2])},
        "returns": {"emission": "student"},
        "counts": {"emission": NegativeBinomialRegression(exposure=1)},
    }[job]
    hmm = HCRPHMM(random_state=seed, **options).fit(X, groups=groups)
    n_states = (np.bincount(hmm.labels_) >= 0.01 * len(X)).sum()
    return hmm.labels_, n_states, frozen_log_likelihood(hmm, new, groups=new_groups)


def run_hmmlearn(job, seed, X, groups, new, new_groups):
    import logging

    from hmmlearn.hmm import GaussianHMM, PoissonHMM

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    if job == "counts":
        X, new = X[:, :1].astype(int), new[:, :1].astype(int)
        grid, make = range(1, 7), PoissonHMM
    else:
        grid = range(2, 11, 2)

        def make(n_states, **options):
            return GaussianHMM(n_states, "full", **options)

    fits = [
        make(n_states, n_iter=100, random_state=seed * 3 + start).fit(X)
        for n_states in grid
        for start in range(3)
    ]
    model = min(fits, key=lambda model: model.bic(X))
    return model.predict(X), model.n_components, model.score(new) / len(new)


def run_dynamax(job, seed, X, groups, new, new_groups):
    import jax
    from dynamax.hidden_markov_model import LogisticRegressionHMM

    def sessions(X, groups):
        n_rows = np.bincount(groups - groups[0])[0]
        X = X.reshape(-1, n_rows, 3)
        return X[:, :, 0], X[:, :, 1:]

    def fit(n_states, y, inputs):
        hmm = LogisticRegressionHMM(n_states, 2)
        best = None
        for start in range(3):
            keys = jax.random.split(jax.random.PRNGKey(seed * 3 + start), 3)
            params, props = hmm.initialize(
                keys[0],
                emission_weights=jax.random.normal(keys[1], (n_states, 2)),
                emission_biases=jax.random.normal(keys[2], (n_states,)),
            )
            params, scores = hmm.fit_em(params, props, y, inputs, num_iters=50, verbose=False)
            if best is None or float(scores[-1]) > best[0]:
                best = float(scores[-1]), params
        return hmm, best[1]

    def score(hmm, params, y, inputs):
        score_one = jax.jit(lambda y, u: hmm.marginal_log_prob(params, y, u))
        return float(sum(score_one(*one) for one in zip(y, inputs, strict=True))) / y.size

    y, inputs = sessions(X, groups)
    folds = np.arange(len(y)) % 4
    by_number = {
        n: np.mean(
            [
                score(*fit(n, y[folds != f], inputs[folds != f]), y[folds == f], inputs[folds == f])
                for f in range(4)
            ]
        )
        for n in range(2, 6)
    }
    n_states = max(by_number, key=by_number.get)
    hmm, params = fit(n_states, y, inputs)
    path = [hmm.most_likely_states(params, *one) for one in zip(y, inputs, strict=True)]
    return np.concatenate(path), n_states, score(hmm, params, *sessions(new, new_groups))


def run_statsmodels(job, seed, X, groups, new, new_groups):
    import warnings

    import statsmodels.api as sm

    warnings.filterwarnings("ignore")
    np.random.seed(seed)  # noqa: NPY002 (statsmodels has no other)

    def make(X, n_states):
        return sm.tsa.MarkovRegression(X[:, 0], n_states, switching_variance=True)

    fits = {n: make(X, n).fit(search_reps=20) for n in (2, 3, 4)}
    n_states = min(fits, key=lambda n: fits[n].bic)
    path = np.asarray(fits[n_states].smoothed_marginal_probabilities).argmax(axis=1)
    score = make(new, n_states).loglike(fits[n_states].params) / len(new)
    return path, n_states, score


JOBS = {
    "levels": (make_levels, ("hmmlearn",)),
    "motion": (make_motion, ("hmmlearn",)),
    "decisions": (make_decisions, ("dynamax",)),
    "returns": (make_returns, ("statsmodels", "hmmlearn")),
    "counts": (make_counts, ("hmmlearn",)),
}
RUN = {
    "skihmm": run_skihmm,
    "hmmlearn": run_hmmlearn,
    "dynamax": run_dynamax,
    "statsmodels": run_statsmodels,
}


def run(program, job, seed, data):
    """CPU seconds, path, number of states and score of a program on a job."""
    X, groups, n = data["X"], data["groups"], int(data["n"])
    started = time.process_time()
    path, n_states, score = RUN[program](job, seed, X[:n], groups[:n], X[n:], groups[n:])
    return {
        "seconds": time.process_time() - started,
        "path": np.asarray(path),
        "n_states": n_states,
        "score": score,
        "version": version(program),
    }


def run_elsewhere(python, program, job, seed, data):
    """The same by another interpreter; its error, in a line, if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "data.npz", Path(folder) / "found.npz"
        np.savez(given, **data)
        command = [python, __file__, "--worker", program, job, str(seed), given, found]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = re.findall(r"^\w+Error: .+", done.stderr, re.M)
            raise ImportError(errors[-1] if errors else f"exit status {done.returncode}")
        with np.load(found) as file:
            return dict(file)


def find_python(folder, program):
    """The interpreter of a program's environment, which is made if it is missing."""
    home = folder / program
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", program]
        if subprocess.run(command, check=False).returncode:
            raise ImportError(f"pip cannot install it into {home}")
    return str(python)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--environments", type=Path, metavar="FOLDER")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        program, job, seed, given, found = args.worker
        with np.load(given) as file:
            np.savez(found, **run(program, job, int(seed), dict(file)))
        return
    from sklearn.metrics import adjusted_rand_score

    print("job | seed | program | CPU s | states | adjusted Rand index | nats below the truth")
    for job in args.jobs:
        make, peers = JOBS[job]
        for seed in args.seeds:
            data = make(np.random.default_rng(seed))
            for program in ("skihmm", *peers):
                try:
                    if program == "skihmm":
                        got = run(program, job, seed, data)
                    elif args.environments is None:
                        raise ImportError("no --environments")
                    else:
                        python = find_python(args.environments, program)
                        got = run_elsewhere(python, program, job, seed, data)
                except ImportError as error:
                    print(f"{job} | {seed} | {program} is left out: {error}", flush=True)
                    continue
                rand = adjusted_rand_score(data["path"][: data["n"]], got["path"])
                print(
                    f"{job} | {seed} | {program} {got['version']} | {got['seconds']:.1f} | "
                    f"{got['n_states']} | {rand:.3f} | {data['truth'] - got['score']:.4f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
