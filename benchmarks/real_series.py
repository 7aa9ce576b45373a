"""
Short real series with default parameters, beside EM with states chosen by BIC.

    pip install hmmlearn statsmodels vega_datasets
    python benchmarks/real_series.py --faithful faithful.csv

Throws of a dishonest casino (simulated), Old Faithful (a file with columns eruptions and
waiting), the flow of the Nile, large earthquakes by year, the weather of Seattle, growth
rates of the economy of the United States.  The last fifth of every series is held out
and scored as a new sequence, by the frozen model of each program.  Reported: number of
states by seed, held-out nats per row and CPU seconds, means over the seeds.  hmmlearn:
one to eight states, ten restarts each.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings

import numpy as np
import pandas as pd
from hmmlearn.hmm import CategoricalHMM, GaussianHMM, PoissonHMM

from skihmm import HCRPHMM
from skihmm.metrics import frozen_log_likelihood

# Earthquakes of magnitude 7 and more, 1900 to 2006 (W. Zucchini, I. L. MacDonald and R.
# Langrock, "Hidden Markov Models for Time Series", 2nd edition, 2016, table 1.1).
EARTHQUAKES = """
13 14 8 10 16 26 32 27 18 32 36 24 22 23 22 18 25 21 21 14 8 11 14 23 18 17
19 20 22 19 13 26 13 14 22 24 21 22 26 21 23 24 27 41 31 27 35 26 28 36 39
21 17 22 17 19 15 34 10 15 22 18 15 20 15 22 19 16 30 27 29 23 20 16 21 21
25 16 18 15 18 14 10 15 8 15 6 11 8 7 18 16 13 12 13 20 15 16 12 18 15 16 13
15 16 11 11
"""


def casino():
    rng = np.random.default_rng(0)
    states, throws = np.zeros(2000, dtype=int), np.empty((2000, 1), dtype=int)
    for t in range(2000):
        if t:
            stay = (0.95, 0.9)[states[t - 1]]
            states[t] = states[t - 1] if rng.random() < stay else 1 - states[t - 1]
        throws[t] = rng.choice(6, p=([1 / 6] * 6, [0.1] * 5 + [0.5])[states[t]])
    return throws


def nile():
    from statsmodels.datasets import nile

    return nile.load_pandas().data[["volume"]].to_numpy(float)


def weather():
    from vega_datasets import local_data

    table = local_data.seattle_weather()
    return table[["temp_max", "temp_min", "wind"]].to_numpy(float)


def growth():
    from statsmodels.datasets import macrodata

    names = ["realgdp", "realcons", "realinv", "realgovt", "realdpi", "cpi", "m1"]
    levels = macrodata.load_pandas().data[names].to_numpy(float)
    return 100 * np.diff(np.log(levels), axis=0)


def bic(model, X):
    """Score a fitted model, with the parameters that hmmlearn counts."""
    n = sum(model._get_n_fit_scalars_per_param()[p] for p in model.params)
    return n * np.log(len(X)) - 2 * model.score(X)


def by_bic(make, X, n_symbols):
    fitted = []
    for n_states in range(1, 9):
        models = []
        for seed in range(10):
            model = make(n_states, seed)
            if n_symbols:
                model.n_features = n_symbols
            try:
                models.append((model.fit(X).score(X), seed, model))
            except ValueError:  # a covariance that is not positive definite
                continue
        if models:
            model = max(models)[2]
            fitted.append((bic(model, X), n_states, model))
    return min(fitted)[2]


def gaussian(n_states, seed):
    return GaussianHMM(n_states, "full", n_iter=100, random_state=seed)


def counts(n_states, seed):
    return PoissonHMM(n_states, n_iter=100, random_state=seed)


def symbols(n_states, seed):
    return CategoricalHMM(n_states, n_iter=100, random_state=seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--faithful")
    args = parser.parse_args()
    series = {
        "casino": (casino, "hcrp", symbols),
        "casino, dirichlet": (casino, "dirichlet", symbols),
        "nile": (nile, "gaussian", gaussian),
        "earthquakes": (
            lambda: np.array(EARTHQUAKES.split(), dtype=int)[:, None],
            "poisson",
            counts,
        ),
        "weather": (weather, "gaussian", gaussian),
        "growth": (growth, "gaussian", gaussian),
    }
    if args.faithful:
        table = pd.read_csv(args.faithful)[["eruptions", "waiting"]]
        series["old faithful"] = (lambda: table.to_numpy(float), "gaussian", gaussian)
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    print("series, rows, columns: states, held-out nats per row, CPU seconds")
    for name, (load, emission, make) in series.items():
        X = load()
        cut = len(X) * 4 // 5
        n_symbols = int(X.max()) + 1 if make is symbols else None
        started = time.process_time()
        model = by_bic(make, X[:cut], n_symbols)
        spent = time.process_time() - started
        score = model.score(X[cut:]) / len(X[cut:])
        print(f"{name}, {len(X)}, {X.shape[1]}")
        print(f"  hmmlearn, BIC: {model.n_components}, {score:.3f}, {spent:.1f}")
        fits = []
        for seed in range(args.seeds):
            started = time.process_time()
            hmm = HCRPHMM(emission=emission, random_state=seed).fit(X[:cut])
            spent = time.process_time() - started
            fits.append((hmm.n_states_, frozen_log_likelihood(hmm, X[cut:]), spent))
        states = [n for n, _, _ in fits]
        means = np.mean(fits, axis=0)
        print(f"  skihmm: {states}, {means[1]:.3f}, {means[2]:.1f}")


if __name__ == "__main__":
    main()
