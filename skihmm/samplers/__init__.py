"""Sampling strategies: hyper-parameter objects that build compiled kernels."""

from skihmm.samplers._base import BaseSampler
from skihmm.samplers._franchise_sampler import FranchiseSampler
from skihmm.samplers._stepwise import StepwiseGibbs

__all__ = ["BaseSampler", "FranchiseSampler", "StepwiseGibbs"]
