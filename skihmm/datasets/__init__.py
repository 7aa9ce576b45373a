"""Data sets for hidden Markov models: synthetic sequences and the words of a novel."""

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
