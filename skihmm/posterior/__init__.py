"""Parameters of posterior draws, and summaries that do not depend on labels."""

from skihmm._draws import Draw, PosteriorDraws
from skihmm._using.matching import match_states
from skihmm._using.prediction import PosteriorPredictive
from skihmm._using.time_to import TimeTo
from skihmm.posterior._estimate import point_estimate
from skihmm.posterior._matching import align
from skihmm.posterior._parameters import draw_parameters, parameter_intervals
from skihmm.posterior._regimes import Regimes
from skihmm.posterior._summaries import (
    coassignment,
    dwell_time_bands,
    n_states_distribution,
    occupancy_bands,
)
from skihmm.posterior._summary import Summary

__all__ = [
    "Draw",
    "PosteriorDraws",
    "PosteriorPredictive",
    "Regimes",
    "Summary",
    "TimeTo",
    "align",
    "coassignment",
    "draw_parameters",
    "dwell_time_bands",
    "match_states",
    "n_states_distribution",
    "occupancy_bands",
    "parameter_intervals",
    "point_estimate",
]
