"""
States whose distributions differ in shape: gamma and von Mises, or bins?

    python benchmarks/tracks.py
    python benchmarks/tracks.py movement --seeds 10 11 12

The parts are shapes, still and movement; by default all.  Shapes: tracks of six animals
that rest, forage and travel, 600 steps each.  Step lengths are gamma and turning angles
von Mises distributed, with coefficients of variation and concentrations that are the
same in all three states or differ.  The emissions have one dispersion per column for all
states; bins (twelve quantiles per column, symbols) have no shape.

Still: tracks of two and of three states in which an animal often does not move: a step of
exactly zero, mostly at rest, without an angle.  The zeros are an indicator of their own
(Bernoulli) and missing lengths, or lengths that are raised to the least one (`least`).

Movement: tracks of three animals, 900 hourly fixes each, with gaps and errors of the
position; steps of animals differ.  With and without outliers (0.3 % of the fixes), and
with and without a temperature on which staying depends.  Printed: states and index of
``labels_``, the same of ``find_regimes``, and with the temperature the slopes of staying
of the regimes per 7 degrees (true: 0.9 -0.6 0.0, by rising steps), and seconds of the fit.

Printed of the others: states, those with at least one per cent of the steps, adjusted Rand index of
``labels_`` and seconds, with default parameters; of gamma and von Mises emissions also
from the true states at the start.
"""

from __future__ import annotations

import argparse
import time
from itertools import product

import numpy as np
from scipy.special import expit, logit
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import KBinsDiscretizer

from skihmm import HCRPHMM
from skihmm.emissions import GammaGamma, ProductEmission
from skihmm.transitions import HCRPTransitions

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


def draw_movement(seed, outliers, by_temperature, n_animals=3, n_steps=900):
    """Step, angle and temperature of every fix, its state (NaN if missing), and animals."""
    rng = np.random.default_rng(1000 + seed)
    hours = np.arange(n_steps)
    parts = []
    for _ in range(n_animals):
        season = 8 * np.sin(2 * np.pi * (91 + hours // 24 - 110) / 365)
        day = 6 * np.cos(2 * np.pi * (hours % 24 - 15) / 24)
        temperature = 14 + season + day + rng.normal(0, 1.5, n_steps)
        state, heading, place = 0, rng.uniform(0, 2 * np.pi), np.zeros(2)
        factor = np.exp(rng.normal(0, 0.15))
        places, states = np.empty((n_steps, 2)), np.empty(n_steps)
        for t, z in enumerate((temperature - 14) / 7 * by_temperature):
            log_odds = [2.2, 1.8, 1.6][state] + [0.9, -0.6, 0.0][state] * z
            if t and rng.random() > expit(log_odds):
                state = (state + rng.integers(1, 3)) % 3
            places[t], states[t] = place, state
            step = rng.gamma([1.0, 2.0, 5.0][state], [8.0, 60.0, 110.0][state] * factor)
            heading += rng.vonmises([np.pi, 0.0, 0.0][state], [0.4, 0.6, 4.0][state])
            place = place + step * np.array([np.cos(heading), np.sin(heading)])
        places += rng.normal(0, 2.0, places.shape)
        is_wrong = rng.random(n_steps) < 0.003
        places[is_wrong] += outliers * rng.normal(0, 4000, (is_wrong.sum(), 2))
        is_missing = rng.random(n_steps) < 0.05
        for _ in range(2):
            first = rng.integers(0, n_steps - 40)
            is_missing[first : first + rng.integers(5, 40)] = True
        places[is_missing] = states[is_missing] = np.nan
        dx, dy = np.diff(places, axis=0, append=np.nan).T
        steps = np.hypot(dx, dy)
        turns = np.diff(np.where(steps > 0, np.arctan2(dy, dx), np.nan), prepend=np.nan)
        angles = (turns + np.pi) % (2 * np.pi) - np.pi
        parts.append(np.column_stack([steps, angles, temperature, states]))
    return *np.vstack(parts).T, np.repeat(np.arange(n_animals), n_steps)


def binned(values, n_bins=12):
    """Bins of as many values each; NaN stays."""
    edges = np.nanquantile(values, np.arange(1, n_bins) / n_bins)
    return np.where(np.isnan(values), np.nan, np.digitize(values, edges))


def compare_movement(seeds):
    logs = ProductEmission(
        [("steps", "diagonal_gaussian", [0]), ("angles", "dirichlet", [1])],
    )
    for seed, by_temperature, outliers in product(seeds, (False, True), (False, True)):
        *values, states, animals = draw_movement(seed, outliers, by_temperature)
        steps, angles, temperature = values
        is_known = ~np.isnan(states) & ~np.isnan(steps)
        for name, emission, columns in (
            ("gamma, von Mises", EMISSION, [steps, angles]),
            ("log steps, bins", logs, [np.log(steps), binned(angles)]),
        ):
            transitions = "hcrp"
            if by_temperature:
                columns.append(temperature)
                transitions = HCRPTransitions(input_features=[2])
            settings = {"n_burnin": 150, "n_draws": 30, "random_state": seed}
            hmm = HCRPHMM(emission=emission, transitions=transitions, **settings)
            started = time.process_time()
            hmm.fit(np.column_stack(columns), groups=animals)
            seconds = time.process_time() - started
            regimes = hmm.find_regimes()
            of_states, of_regimes = (
                adjusted_rand_score(states[is_known], labels[is_known])
                for labels in (hmm.labels_, regimes.labels_)
            )
            slopes = ""
            if by_temperature:
                below, above = logit(regimes.stay_probabilities([[7.0], [21.0]]))
                sizes = [np.nanmedian(steps[regimes.labels_ == r]) for r in range(len(above))]
                slopes = f" slopes {((above - below) / 2)[np.argsort(sizes)].round(2)}"
            print(
                f"movement, seed {seed}{' outliers' * outliers}{' temperature' * by_temperature}"
                f" {name:16}: {hmm.n_states_:3} states, index {of_states:.2f}; "
                f"{regimes.n_regimes_:3} regimes, index {of_regimes:.2f}{slopes}, {seconds:.1f} s",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["shapes", "still", "movement"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12], help="of movement")
    args = parser.parse_args()
    if "shapes" in args.parts:
        compare_shapes()
    if "still" in args.parts:
        compare_still()
    if "movement" in args.parts:
        compare_movement(args.seeds)


def compare_still():
    for n_states in (2, 3):
        for seed in range(3):
            steps, angles, states = draw_still(n_states, np.random.default_rng(seed))
            indicator = np.column_stack([steps == 0, np.where(steps > 0, steps, np.nan), angles])
            still = [("still", "bernoulli", [0]), ("steps", "gamma", [1])]
            still.append(("angles", "von_mises", [2]))
            logs = np.column_stack([steps == 0, np.log(indicator[:, 1]), binned(angles)])
            parts = [still[0], ("steps", "diagonal_gaussian", [1]), ("angles", "dirichlet", [2])]
            models = {"log steps, bins": (logs, parts), "indicator": (indicator, still)}
            for least in (0.01, 1.0, 5.0):
                raised = [("steps", GammaGamma(least=least), [0]), EMISSION.emissions[1]]
                models[f"least={least}"] = np.column_stack([steps, angles]), raised
            for name, (data, parts) in models.items():
                hmm = HCRPHMM(emission=ProductEmission(parts), random_state=0).fit(data)
                index = adjusted_rand_score(states, hmm.labels_)
                print(
                    f"{n_states} states with zeros, seed {seed} {name:15} "
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
