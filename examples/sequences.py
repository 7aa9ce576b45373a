"""Measurements on the two artificial sequences of the paper, for reproduce_*.py."""

import numpy as np

from skihmm.metrics import mutual_information

COLUMNS = [
    # title, key of a trial's results, digits
    ("bits", "bits", 3),
    ("states", "n_states", 1),
    ("log joint", "lp", 1),
    ("ACT, s", "act", 3),
    ("accepted", "acceptance", 4),
    ("SM accepted", "sm_acceptance", 4),
    ("s/sweep", "seconds_per_sweep", 5),
]


def measure(states, draw, index, last):
    """Mutual information of one sample with the true states."""
    return {"bits": mutual_information(states, draw.states)}


def summarise(times, samples, states):
    """Mean over the second half, and the time at which the true states were reached."""
    bits = np.array([sample["bits"] for sample in samples])
    hits = times[bits > mutual_information(states, states) - 1e-3]
    return {
        "bits": bits[len(bits) // 2 :].mean(),
        "reached": float(len(hits) > 0),
        "seconds_to_reach": hits[0] if len(hits) else np.nan,
    }
