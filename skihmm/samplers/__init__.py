"""Sampling strategies: hyper-parameter objects that build compiled kernels."""

from skihmm.samplers._base import BaseSampler
from skihmm.samplers._blocked import BlockedBeam, BlockedGibbs
from skihmm.samplers._franchise_sampler import FranchiseSampler
from skihmm.samplers._stepwise import StepwiseGibbs, StepwiseSlice

__all__ = [
    "BaseSampler",
    "BlockedBeam",
    "BlockedGibbs",
    "FranchiseSampler",
    "StepwiseGibbs",
    "StepwiseSlice",
]
