"""Short names of samplers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skihmm.samplers._base import BaseSampler
from skihmm.samplers._blocked import BlockedBeam, BlockedGibbs
from skihmm.samplers._direct_assignment import DirectAssignmentGibbs
from skihmm.samplers._stepwise import StepwiseGibbs, StepwiseSlice
from skihmm.samplers._stick_breaking import StickBreakingBeam, StickBreakingGibbs

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    # The best all-round sampler by the measurements in docs/samplers.md.
    "auto": partial(StepwiseGibbs, split_merge_rate=2),
    "stepwise": StepwiseGibbs,
    "slice": StepwiseSlice,
    "blocked": BlockedGibbs,
    "beam": BlockedBeam,
    "direct_assignment": DirectAssignmentGibbs,
    "stick_breaking": StickBreakingGibbs,
    "stick_breaking_beam": StickBreakingBeam,
}
