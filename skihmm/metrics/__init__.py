"""Scores of fitted models, comparisons of state sequences, and autocorrelation."""

from skihmm.metrics._autocorrelation import autocorrelation_time
from skihmm.metrics._information import mutual_information
from skihmm.metrics._scorer import ParticleFilterScorer

__all__ = ["ParticleFilterScorer", "autocorrelation_time", "mutual_information"]
