"""Scores of fitted models and comparisons of state sequences."""

from skihmm.metrics._information import mutual_information
from skihmm.metrics._scorer import ParticleFilterScorer

__all__ = ["ParticleFilterScorer", "mutual_information"]
