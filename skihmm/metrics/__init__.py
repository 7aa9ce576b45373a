"""Scores of fitted models, comparisons of state sequences, and convergence of chains."""

from skihmm.metrics._autocorrelation import autocorrelation_time
from skihmm.metrics._convergence import effective_sample_size, integrated_autocorr_time, rhat
from skihmm.metrics._diagnosis import Diagnosis
from skihmm.metrics._finding import Finding
from skihmm.metrics._information import mutual_information
from skihmm.metrics._scorer import ParticleFilterScorer, frozen_log_likelihood

__all__ = [
    "Diagnosis",
    "Finding",
    "ParticleFilterScorer",
    "autocorrelation_time",
    "effective_sample_size",
    "frozen_log_likelihood",
    "integrated_autocorr_time",
    "mutual_information",
    "rhat",
]
