"""Summaries of posterior draws that do not depend on the labels of the states."""

from skihmm._draws import Draw, PosteriorDraws
from skihmm._prediction import PosteriorPredictive
from skihmm.posterior._estimate import point_estimate
from skihmm.posterior._matching import align, match_states
from skihmm.posterior._summaries import (
    coassignment,
    n_states_distribution,
    occupancy_bands,
)

__all__ = [
    "Draw",
    "PosteriorDraws",
    "PosteriorPredictive",
    "align",
    "coassignment",
    "match_states",
    "n_states_distribution",
    "occupancy_bands",
    "point_estimate",
]
