"""Short names of samplers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skihmm.samplers._base import BaseSampler, SeatsTransitions
from skihmm.samplers._blocked import BlockedBeam, BlockedGibbs
from skihmm.samplers._direct_assignment import DirectAssignmentGibbs
from skihmm.samplers._stepwise import StepwiseGibbs, StepwiseSlice
from skihmm.samplers._stick_breaking import StickBreakingBeam, StickBreakingGibbs

# "auto" for states with a probability of their own to stay: blocks move the borders of
# runs, and trials of whole runs create and merge states.  For states of single steps, as
# on text, such trials cost a fifth of the time and gain nothing (docs/samplers.md).
AUTO_FOR_STAYS = partial(BlockedGibbs, 10, run_split_merge_rate=4)
# Autoregressions, whose states last, evaluate eight rows at once: blocks of ten took a fifth longer
# to the same log joint probability.
AUTO_FOR_LASTING_STATES = partial(BlockedGibbs, 8, run_split_merge_rate=4)
# For numbers, whose states may last or not: trials of both kinds.  With the paper's trials alone a
# chain of Gaussian states stays in one mode for minutes.  Most sweeps of long data draw the
# parameters, which takes a third of the time.
AUTO_FOR_NUMBERS = partial(
    BlockedGibbs, 10, split_merge_rate=1, run_split_merge_rate=2, drawn_share="auto"
)

SAMPLERS: dict[str, Callable[[], BaseSampler]] = {
    # The best sampler of symbols by the measurements in docs/samplers.md.
    "auto": partial(StepwiseGibbs, split_merge_rate=1, block_share=0.25),
    "stepwise": StepwiseGibbs,
    "slice": StepwiseSlice,
    "blocked": BlockedGibbs,
    "beam": BlockedBeam,
    "direct_assignment": DirectAssignmentGibbs,
    "stick_breaking": StickBreakingGibbs,
    "stick_breaking_beam": StickBreakingBeam,
}


def auto_sampler(
    has_lasting_states: bool, has_numbers: bool, transitions: SeatsTransitions
) -> BaseSampler:
    """Sampler of ``sampler="auto"`` for such states and observations."""
    seating = transitions.make_seating()
    if has_lasting_states:
        return AUTO_FOR_LASTING_STATES()
    if seating.has_coins:
        return AUTO_FOR_STAYS()
    if has_numbers:
        return AUTO_FOR_NUMBERS()
    return SAMPLERS["auto"]()
