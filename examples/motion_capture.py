"""
Motion capture
==============

Segments six exercise routines into states with autoregressive dynamics and compares the
states with the annotated actions.

The data are read from the folder in the environment variable SKIHMM_DATA
(``mocap6/mocap6.npz``), or downloaded once.  Options: ``python examples/motion_capture.py
--help``.
"""

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from skihmm import HCRPHMM
from skihmm.datasets import fetch_mocap6
from skihmm.emissions import AutoregressiveNormal

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
parser.add_argument("--order", type=int, default=3, help="earlier rows of the regression")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--sweeps", type=int, default=500, help="sweeps of burn-in")
args = parser.parse_args()

mocap6 = fetch_mocap6()
X = StandardScaler().fit_transform(mocap6.data)
actions, groups = mocap6.target, mocap6.groups

hmm = HCRPHMM(
    emission=AutoregressiveNormal(args.order),
    n_burnin=args.sweeps,
    random_state=args.seed,
)
start = time.process_time()
hmm.fit(X, groups=groups)
seconds = time.process_time() - start

states = hmm.labels_
# Steps by state and action, and the best matching of states to actions.
table = np.zeros((hmm.n_states_, actions.max() + 1), dtype=int)
np.add.at(table, (states, actions), 1)
matched = table[linear_sum_assignment(table, maximize=True)].sum()


def count_segments(labels):
    """Maximal runs of one label within the sequences."""
    changes = (np.diff(labels) != 0) | (np.diff(groups) != 0)
    return 1 + np.count_nonzero(changes)


print(f"{len(X)} steps, {X.shape[1]} angles, {groups.max() + 1} sequences: {seconds:.0f} s")
print(f"actions: {actions.max() + 1} in {count_segments(actions)} segments")
print(f"states: {hmm.n_states_} in {count_segments(states)} segments")
print(f"Hamming distance after matching: {1 - matched / len(X):.2f}")
print(f"steps in a state's main action: {table.max(axis=1).sum() / len(X):.2f}")
print(f"adjusted Rand index: {adjusted_rand_score(actions, states):.2f}")
print("state  steps  main action (share)  spectral radius")
radii = hmm.emission_.spectral_radii_
for state in range(min(hmm.n_states_, 15)):
    row = table[state]
    print(
        f"{state:5d} {row.sum():6d} {row.argmax():12d} ({row.max() / row.sum():.2f})"
        f" {radii[state]:15.3f}"
    )
