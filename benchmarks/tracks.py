"""
States whose distributions differ in shape: gamma and von Mises, or bins?

    python benchmarks/tracks.py

Tracks of six animals that rest, forage and travel, 600 steps each.  Step lengths are
gamma and turning angles von Mises distributed, with coefficients of variation and
concentrations that are the same in all three states or differ.  The emissions have one
dispersion per column for all states; bins (twelve quantiles per column, symbols) have no
shape.

Then tracks of two and of three states in which an animal often does not move: a step of
exactly zero, mostly at rest, without an angle.  The zeros are an indicator of their own
(Bernoulli) and missing lengths, or lengths that are raised to the least one (`least`).

Printed: states, those with at least one per cent of the steps, adjusted Rand index of
``labels_`` and seconds, with default parameters; of gamma and von Mises emissions also
from the true states at the start.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import KBinsDiscretizer

from skihmm import HCRPHMM
from skihmm.emissions import GammaGamma, ProductEmission

TRANSMAT = np.array([[0.92, 0.07, 0.01], [0.05, 0.90, 0.05], [0.01, 0.06, 0.93]])
MEAN_STEPS, MEAN_ANGLES = np.array([20.0, 150.0, 600.0]), np.array([np.pi, np.pi, 0.0])
SHAPES = {
    "the same": ([0.6, 0.6, 0.6], [1.5, 1.5, 1.5]),
    "steps differ": ([0.8, 0.7, 0.4], [1.5, 1.5, 1.5]),
    "angles differ": ([0.6, 0.6, 0.6], [0.3, 0.6, 4.0]),
    "both differ": ([0.8, 0.7, 0.4], [0.3, 0.6, 4.0]),
}
EMISSION = ProductEmission([("steps", "gamma", [0]), ("angles", "von_mises", [1])])


def draw_tracks(variations, concentrations, rng, n_animals=6, n_steps=600):
    states = []
    for _ in range(n_animals):
        state = rng.integers(3)
        for _ in range(n_steps):
            state = rng.choice(3, p=TRANSMAT[state])
            states.append(state)
    states = np.array(states)
    shapes = 1 / np.array(variations)[states] ** 2
    steps = rng.gamma(shapes, MEAN_STEPS[states] / shapes)
    angles = rng.vonmises(MEAN_ANGLES[states], np.array(concentrations)[states])
    return np.column_stack([steps, angles]), states, n_animals * [n_steps]


def draw_still(n_states, rng, n_steps=1500):
    states = np.zeros(n_steps, dtype=int)
    for t in range(1, n_steps):
        changes = rng.random() < 1 / 25
        states[t] = (states[t - 1] + changes * rng.integers(1, n_states)) % n_states
    steps = rng.gamma(2.0, np.array([10.0, 150.0, 45.0])[states])
    angles = rng.vonmises(np.array([np.pi, 0.0, 0.0])[states], 1.5)
    is_still = rng.random(n_steps) < np.array([0.4, 0.02, 0.1])[states]
    angles[is_still] = np.nan
    return np.where(is_still, 0.0, steps), angles, states


def main():
    compare_shapes()
    for n_states in (2, 3):
        for seed in range(3):
            steps, angles, states = draw_still(n_states, np.random.default_rng(seed))
            indicator = np.column_stack([steps == 0, np.where(steps > 0, steps, np.nan), angles])
            still = [("still", "bernoulli", [0]), ("steps", "gamma", [1])]
            still.append(("angles", "von_mises", [2]))
            models = {"indicator": (indicator, still)}
            for least in (0.01, 1.0, 5.0):
                raised = [("steps", GammaGamma(least=least), [0]), EMISSION.emissions[1]]
                models[f"least={least}"] = np.column_stack([steps, angles]), raised
            for name, (data, parts) in models.items():
                hmm = HCRPHMM(emission=ProductEmission(parts), random_state=0).fit(data)
                index = adjusted_rand_score(states, hmm.labels_)
                print(
                    f"{n_states} states with zeros, seed {seed} {name:10} "
                    f"{hmm.n_states_:3} states, index {index:.2f}",
                    flush=True,
                )


def compare_shapes():
    for shapes, (variations, concentrations) in SHAPES.items():
        for seed in range(2):
            rng = np.random.default_rng(seed)
            X, states, lengths = draw_tracks(variations, concentrations, rng)
            bins = KBinsDiscretizer(12, encode="ordinal", strategy="quantile")
            for name, data, emission, init in (
                ("gamma, von Mises", X, EMISSION, "auto"),
                ("from the truth", X, EMISSION, states),
                ("bins", bins.fit_transform(X), "hcrp", "auto"),
            ):
                start = time.perf_counter()
                hmm = HCRPHMM(emission=emission, init=init, random_state=0)
                hmm.fit(data, lengths=lengths)
                seconds = time.perf_counter() - start
                large = (np.bincount(hmm.labels_) >= 0.01 * len(data)).sum()
                index = adjusted_rand_score(states, hmm.labels_)
                print(
                    f"{shapes:14} seed {seed} {name:17} {hmm.n_states_:3} states, "
                    f"{large:3} large, index {index:.2f}, {seconds:.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
