"""Sequences to try hidden Markov models on: synthetic ones and a book."""

from skihmm.datasets._alice import fetch_alice
from skihmm.datasets._synthetic import (
    make_automaton_sequence,
    make_hcrp_hmm,
    make_repeating_sequence,
)

__all__ = [
    "fetch_alice",
    "make_automaton_sequence",
    "make_hcrp_hmm",
    "make_repeating_sequence",
]
