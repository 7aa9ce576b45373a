"""Coverage of intervals of parameters, by simulation: `python benchmarks/coverage.py`."""

import numpy as np

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
from skihmm.posterior import parameter_intervals

N_FITS, N_STEPS, LEVEL = 100, 400, 0.9
STAY = np.array([0.9, 0.8])


def simulate(rng, emission):
    """Observations of two states, and the true parameters by name."""
    states = np.zeros(N_STEPS, dtype=int)
    for t in range(1, N_STEPS):
        states[t] = states[t - 1] ^ (rng.random() > STAY[states[t - 1]])
    true = {"stayprob_": STAY}
    if emission == "poisson":
        rates = np.array([3.0, 30.0])
        return rng.poisson(rates[states])[:, None], {"rates_": rates, **true}
    if emission == "regression":
        x = rng.normal(size=N_STEPS)
        slopes, intercepts = np.array([2.0, -1.0]), np.array([0.0, 20.0])
        y = intercepts[states] + slopes[states] * x + rng.normal(size=N_STEPS)
        true |= {"intercepts_": intercepts, "coefficients_": slopes}
        return np.column_stack([y, x]), true | {"covariances_": np.ones(2)}
    if emission == "autoregressive":
        x, offsets = np.zeros(N_STEPS), np.array([0.0, 8.0])
        for t in range(1, N_STEPS):
            x[t] = offsets[states[t]] + 0.5 * x[t - 1] + rng.normal()
        true |= {"intercepts_": offsets, "coefficients_": np.full(2, 0.5)}
        return x[:, None], true | {"covariances_": np.ones(2)}
    means, deviations = np.array([0.0, 12.0]), np.array([1.0, 2.0])
    X = rng.normal(means[states], deviations[states])[:, None]
    return X, {"means_": means, "covariances_": deviations**2, **true}


def main():
    for emission in ("gaussian", "poisson", "regression", "autoregressive"):
        inside = {}
        for seed in range(N_FITS):
            X, true = simulate(np.random.default_rng(seed), emission)
            recipe = emission
            if emission == "regression":
                recipe = AutoregressiveNormal(0, input_features=[1])
            # The penalty of changes, by default of autoregressions, is in fits only.
            transitions = "sticky" if emission == "autoregressive" else "auto"
            settings = {"n_burnin": 100, "n_draws": 50, "random_state": seed}
            hmm = HCRPHMM("auto", recipe, transitions, **settings)
            table = parameter_intervals(hmm.fit(X), LEVEL, n_samples=500)
            found = {
                name: rows[["mean", "lower", "upper"]].to_numpy().T
                for name, rows in table.groupby("parameter")
            }
            # The two largest states, in the order of their levels.
            level = "rates_" if emission == "poisson" else "intercepts_"
            level = "means_" if emission == "gaussian" else level
            largest = np.argsort(-np.bincount(hmm.labels_), kind="stable")[:2]
            order = largest[np.argsort(found[level][0].reshape(-1)[largest])]
            for name, values in true.items():
                _, low, high = found[name].reshape(3, hmm.n_states_, -1)[:, order, 0]
                inside.setdefault(name, []).append((low < values) & (values < high))
        shares = {name: f"{np.mean(each):.3f}" for name, each in inside.items()}
        print(f"{emission:15s} of {LEVEL}: {shares}", flush=True)


if __name__ == "__main__":
    main()
