"""
CPU seconds of `fit`, `score` and `diagnose` with all defaults, by kind and number of rows.

    python benchmarks/how_long.py --rows 1e3 1e4 1e5 1e6

Three states that last for twenty rows on average generate all data but symbols, which an
automaton of fifteen states generates.  Every cell is a process of its own, with one thread.
`score` has as many new rows as the fit.  The adjusted Rand index of the path with the states
that generated the data says whether the fit was good for anything.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import BernoulliRegression, NormalInverseGamma

STAY = 0.95


def path_of(n_rows, rng):
    """Three states, each for twenty rows on average."""
    moves = np.where(rng.random(n_rows) < STAY, 0, rng.integers(1, 3, n_rows))
    return np.cumsum(moves) % 3


def gaussian(n_columns):
    """Maker of columns whose levels are a few deviations apart together."""

    def make(n_rows, rng):
        states = path_of(n_rows, rng)
        # Distances of levels that are the same for any number of columns.
        levels = np.arange(3)[:, None] * np.ones(n_columns) * 4 / np.sqrt(n_columns)
        return levels[states] + rng.normal(size=(n_rows, n_columns)), states

    return make


def decisions(n_rows, rng):
    """Choices of three strategies, by a stimulus and a constant."""
    states = path_of(n_rows, rng)
    stimulus = rng.normal(size=n_rows)
    weight, bias = np.array([4.0, 0.5, 0.5])[states], np.array([0.0, 2.0, -2.0])[states]
    choice = rng.random(n_rows) < 1 / (1 + np.exp(-bias - weight * stimulus))
    return np.column_stack([choice, stimulus]), states


def subjects(n_rows, rng):
    """Two columns of ten subjects, each with levels of its own."""
    X, states = gaussian(2)(n_rows, rng)
    subject = np.arange(n_rows) * 10 // n_rows
    levels = np.linspace(-3, 3, 10)[subject]
    return np.column_stack([X + levels[:, None], subject]), states


def symbols(n_rows, rng):
    """Letters of an automaton."""
    return make_automaton_sequence(n_rows, random_state=int(rng.integers(2**31)))


LASTING = {"emission": "gaussian", "transitions": "persistent"}
KINDS = {
    "symbols": (symbols, {}),
    "1 column": (gaussian(1), LASTING),
    "5 columns": (gaussian(5), LASTING),
    "20 columns": (gaussian(20), LASTING),
    "decisions": (decisions, {"emission": BernoulliRegression(input_features=[1])}),
    "10 subjects, 2 columns": (
        subjects,
        {**LASTING, "emission": NormalInverseGamma(subject_feature=2)},
    ),
}


def measure(kind, n_rows):
    """CPU seconds of the three calls, and the adjusted Rand index."""
    make, parameters = KINDS[kind]
    # One series, of which the second half is new: the same automaton, the same subjects.
    if kind == "symbols":
        X, states = make(2 * n_rows, np.random.default_rng(0))
        X, new, states = X[:n_rows], X[n_rows:], states[:n_rows]
    else:
        X, states = make(n_rows, np.random.default_rng(0))
        new, _ = make(n_rows, np.random.default_rng(1))
    # Subjects are sequences.
    groups = {"groups": X[:, 2]} if "subjects" in kind else {}
    hmm = HCRPHMM(**parameters, random_state=0)
    seconds = []
    for call in (
        lambda: hmm.fit(X, **groups),
        lambda: hmm.score(new, **groups),
        lambda: hmm.diagnose(),
    ):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    index = adjusted_rand_score(states, hmm.predict(X, **groups))
    return {"seconds": seconds, "states": hmm.n_states_, "index": index}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=float, default=[1e3, 1e4])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--cell", action="store_true", help="one kind, printed as JSON")
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(options.kinds[0], int(options.rows[0]))))
        return
    for rows in options.rows:
        for kind in options.kinds:
            command = [sys.executable, __file__, "--cell", "--kinds", kind, "--rows", str(rows)]
            found = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            )
            fit, score, diagnose = (f"{seconds:.2g}" for seconds in found["seconds"])
            print(
                f"| {kind} | {rows:.0e} | {fit} | {score} | {diagnose} "
                f"| {found['states']} | {found['index']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
