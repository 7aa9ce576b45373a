"""
Regimes of noise of another shape than the emission's, and of states that are real.

    python benchmarks/shape_of_noise.py --seeds 2 --first 0

Three regimes (or six states, for the real ones) and 3,000 rows, fitted by default
parameters.  Printed by kind: the adjusted Rand index of ``labels_``, of ``regimes_``, and
of noise of the most probable path under the true model; how often the number of regimes
is the true one (of noise) or no row is lost (of real states: within .01 of ``labels_``);
and the share of CPU time of the fit that finding regimes takes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM

N = 3000
CENTRES = 3.6 * np.array([[-1, 0], [0, 1], [1, 0]])
RATES = np.array([3.0, 12.0, 40.0])


def staying(n_states, dwell):
    """Transition matrix of states that last so long, and then change to any other."""
    other = (1 - np.eye(n_states)) / dwell / (n_states - 1)
    return np.eye(n_states) * (1 - 1 / dwell) + other


def path_of(rng, transmat):
    cumulative, path = transmat.cumsum(axis=1), np.zeros(N, dtype=int)
    for t in range(1, N):
        path[t] = min((cumulative[path[t - 1]] < rng.random()).sum(), len(transmat) - 1)
    return path


def true_path(log_density, transmat):
    """Most probable path of the model that the data are from."""
    with np.errstate(divide="ignore"):
        log_transmat = np.log(transmat)
    v, back = log_density[0].copy(), np.zeros(log_density.shape, dtype=int)
    for t in range(1, N):
        scores = v[:, None] + log_transmat
        back[t], v = scores.argmax(axis=0), scores.max(axis=0) + log_density[t]
    path = [int(v.argmax())]
    for t in range(N - 1, 0, -1):
        path.append(back[t, path[-1]])
    return np.array(path[::-1])


def about_centres(law):
    return (
        "gaussian",
        lambda rng, z: CENTRES[z] + law.rvs((N, 2), random_state=rng),
        lambda X: np.stack([law.logpdf(X - c).sum(axis=1) for c in CENTRES], axis=1),
    )


NOISE = {
    "gamma": about_centres(stats.gamma(1, scale=1.2)),
    "log-normal": about_centres(stats.lognorm(0.8)),
    "Student's t (3)": about_centres(stats.t(3, scale=0.8)),
    "uniform": about_centres(stats.uniform(-2.5, 5)),
    "negative binomial (3)": (
        "poisson",
        lambda rng, z: rng.poisson(RATES[z] * rng.gamma(3, 1 / 3, N))[:, None],
        lambda X: stats.nbinom(3, 3 / (3 + RATES)).logpmf(X),
    ),
}
REAL = {
    **{f"dwell {d:g}": lambda rng, d=d: staying(6, d) for d in (1, 1.5, 2, 4)},
    **{f"Dirichlet {a:g}": lambda rng, a=a: rng.dirichlet(np.full(6, a), 6) for a in (0.1, 0.3, 1)},
}


def found(hmm):
    """Regimes, and their CPU seconds."""
    start = time.process_time()
    regimes = hmm.find_regimes()
    return regimes, time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    rows = {"noise": [], "real": []}

    def note(kind, name, z, emission, X, seed, truth):
        start = time.process_time()
        hmm = HCRPHMM(emission=emission, random_state=seed).fit(X)
        seconds = time.process_time() - start
        regimes, more = found(hmm)
        labels, path = (adjusted_rand_score(z, p) for p in (hmm.labels_, regimes.labels_))
        is_right = regimes.n_regimes_ == 3 if kind == "noise" else path > labels - 0.01
        row = labels, path, truth, is_right, more / seconds
        rows[kind].append(row)
        shown = " ".join(f"{value:7.3f}" for value in row)
        print(f"{name:32} {hmm.n_states_:3} {regimes.n_regimes_:3} {shown}", flush=True)

    for seed in seeds:
        for name, (emission, draw, log_density) in NOISE.items():
            for dwell in (40, 5):
                rng, transmat = np.random.default_rng(seed), staying(3, dwell)
                z = path_of(rng, transmat)
                X = draw(rng, z)
                truth = adjusted_rand_score(z, true_path(log_density(X), transmat))
                note("noise", f"{name}, dwell {dwell}", z, emission, X, seed, truth)
        for name, make in REAL.items():
            rng = np.random.default_rng(seed)
            z = path_of(rng, make(rng))
            X = rng.normal(0, 3, (6, 2))[z] + 0.7 * rng.normal(size=(N, 2))
            note("real", name, z, "gaussian", X, seed, np.nan)
    for kind, each in rows.items():
        print(kind, len(each), "means", np.round(np.mean(each, axis=0), 3))


if __name__ == "__main__":
    main()
