"""Sampler recipes, which build the kernels of the chains."""

from skihmm.core._sweep_info import SweepInfo
from skihmm.samplers._base import BaseSampler
from skihmm.samplers._blocked import BlockedBeam, BlockedGibbs
from skihmm.samplers._direct_assignment import DirectAssignmentGibbs
from skihmm.samplers._franchise_sampler import FranchiseSampler
from skihmm.samplers._stepwise import StepwiseGibbs, StepwiseSlice
from skihmm.samplers._stick_breaking import StickBreakingBeam, StickBreakingGibbs

__all__ = [
    "BaseSampler",
    "BlockedBeam",
    "BlockedGibbs",
    "DirectAssignmentGibbs",
    "FranchiseSampler",
    "StepwiseGibbs",
    "StepwiseSlice",
    "StickBreakingBeam",
    "StickBreakingGibbs",
    "SweepInfo",
]
