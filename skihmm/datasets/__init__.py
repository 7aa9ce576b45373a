"""Data sets for hidden Markov models: synthetic sequences, a novel, motion capture."""

from skihmm.datasets._alice import fetch_alice
from skihmm.datasets._mocap6 import fetch_mocap6
from skihmm.datasets._synthetic import (
    make_automaton_sequence,
    make_hcrp_hmm,
    make_repeating_sequence,
)

__all__ = [
    "fetch_alice",
    "fetch_mocap6",
    "make_automaton_sequence",
    "make_hcrp_hmm",
    "make_repeating_sequence",
]
