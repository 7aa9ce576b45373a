"""Samplers that update blocks of consecutive steps."""

from __future__ import annotations

from typing import ClassVar

from skihmm._data.validation import check_choice, check_fraction, check_integer
from skihmm.core._emission import EmissionStats
from skihmm.core._rcd import BlockProposal, CompiledKernel, RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers._base import Kernel, SeatsTransitions
from skihmm.samplers._franchise_sampler import FranchiseSampler
from skihmm.samplers._kernels import BeamProposal, BlockedProposal, MixedKernel, StickBreakingKernel
from skihmm.samplers._stick_breaking import check_draws_parameters

# drawn_share="auto": so many of the sweeps over so many steps or more draw parameters,
# and then states in blocks of so many steps.  A sweep of 100,000 rows of two or three
# Gaussian columns then takes half the time, and for the same time the evidence is .0003
# to .006 nats a row higher.  Sweeps with drawn parameters alone hardly create or merge
# states.
LONG_SHARE, LONG, DRAWN_BLOCK = 0.75, 50_000, 100
# Steps per block with block_size=None.
DEFAULT_BLOCK = 8


class _BlockSampler(FranchiseSampler):
    """Base class of the samplers of blocks."""

    test_params: ClassVar[tuple[dict[str, object], ...]] = (
        {"block_size": 3, "split_merge_rate": 2},
        {"block_size": 100, "run_split_merge_rate": 2},
    )

    def __init__(
        self,
        block_size: int | None = None,
        split_merge_rate: float = 0,
        run_split_merge_rate: float = 0,
    ) -> None:
        self.block_size = block_size
        self.split_merge_rate = split_merge_rate
        self.run_split_merge_rate = run_split_merge_rate

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.block_size is not None:
            check_integer("block_size", self.block_size, 1)

    def _blocks(self, proposal: BlockProposal, state: ChainState) -> CompiledKernel:
        size = min(self.block_size or DEFAULT_BLOCK, state.n_steps)
        return self.add_split_merge(RCDKernel(proposal, size))


class BlockedGibbs(_BlockSampler):
    """Blocked Gibbs sampler.

    A sweep divides every sequence into blocks of consecutive steps, the first of random
    length, and visits them in random order.  All states of a block are proposed together,
    by forward filtering and backward sampling at the seating without the block.  The
    Metropolis-Hastings ratio of the restricted collapsed draw corrects for changes of the
    seating within the block.

    A block crosses barriers that single steps do not, because dependent states change
    together.  It costs more per step, and proposals of long blocks are rejected more
    often.

    Parameters
    ----------
    block_size : int or None, default=None
        Steps per block.  None: 8.
    split_merge_rate : float, default=0
        Split-merge trials per sweep (see `StepwiseGibbs`).
    run_split_merge_rate : float, default=0
        Split-merge trials of whole runs per sweep.
    drawn_share : float or "auto", default=0
        Probability of a sweep like ``StickBreakingGibbs(block_size=100)``, in a third of
        the time and without split-merge trials: it draws transition probabilities and
        parameters of the emission, then the state of every step.  All sweeps have the
        same target, so a mixture is exact too.  "auto": 0.75 over 50,000 steps or more,
        where the emission has parameters that can be drawn and transitions are plain (no
        probabilities to stay, no contexts), otherwise 0.

    See Also
    --------
    BlockedBeam : Blocks with slices for the transitions.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011, Section 5.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import BlockedGibbs
    >>> X, _ = make_repeating_sequence(120)
    >>> sampler = BlockedGibbs(block_size=4)
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> bool(hmm.fit(X).draws_.acceptance_rate.mean() > 0.7)
    True
    """

    test_params = (*_BlockSampler.test_params, {"block_size": 3, "drawn_share": 0.5})

    def __init__(
        self,
        block_size: int | None = None,
        split_merge_rate: float = 0,
        run_split_merge_rate: float = 0,
        drawn_share: float | str = 0,
    ) -> None:
        super().__init__(block_size, split_merge_rate, run_split_merge_rate)
        self.drawn_share = drawn_share

    def check_parameters(self) -> None:
        super().check_parameters()
        if isinstance(self.drawn_share, str):
            check_choice("drawn_share", self.drawn_share, ("auto",))
        else:
            check_fraction("drawn_share", self.drawn_share)

    def check_emission(self, emission: object, stats: EmissionStats) -> None:
        super().check_emission(emission, stats)
        if self._always_draws:
            what = f"BlockedGibbs(drawn_share={self.drawn_share})"
            check_draws_parameters(what, emission, stats)

    def check_transitions(self, transitions: SeatsTransitions) -> None:
        super().check_transitions(transitions)
        has_coins = transitions.make_seating().has_coins
        if self._always_draws and (has_coins or transitions.has_contexts):
            raise TypeError(
                f"drawn_share={self.drawn_share} with transitions that have a shortest "
                "dwell, probabilities to stay or contexts; expected plain transitions "
                '(transitions="hcrp"), or drawn_share="auto" or 0.'
            )

    @property
    def _always_draws(self) -> bool:
        return not isinstance(self.drawn_share, str) and self.drawn_share > 0

    def make_kernel(self, state: ChainState) -> Kernel:
        collapsed = self._blocks(BlockedProposal(), state)
        share = self.drawn_share
        if isinstance(share, str):
            is_plain = not (state.transitions.has_coins or state.transitions.has_contexts)
            may_draw = is_plain and state.emission.draws_parameters
            share = LONG_SHARE if may_draw and state.n_steps >= LONG else 0.0
        if not share:
            return collapsed
        size = min(DRAWN_BLOCK, state.n_steps)
        return MixedKernel(collapsed, StickBreakingKernel(False, size, 1), share)


class BlockedBeam(_BlockSampler):
    """Blocked beam sampler.

    As `BlockedGibbs`, but every transition of a block first gets a slice: a uniform
    number below its probability on the old path.  Only transitions above their slices
    enter the filter, a sparse set, which pays with many states.  The ratio of the
    restricted collapsed draw equals the ratio of the blocked sampler, with un-sliced
    probabilities.

    Parameters
    ----------
    block_size : int or None, default=None
        Steps per block.  None: 8.
    split_merge_rate : float, default=0
        Split-merge trials per sweep (see `StepwiseGibbs`).
    run_split_merge_rate : float, default=0
        Split-merge trials of whole runs per sweep.

    See Also
    --------
    BlockedGibbs : Blocks without slices.
    StepwiseSlice : Blocks of one step.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011, Section 5.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import BlockedBeam
    >>> X, _ = make_repeating_sequence(120)
    >>> sampler = BlockedBeam(block_size=4)
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> bool(hmm.fit(X).draws_.acceptance_rate.mean() > 0.7)
    True
    """

    def make_kernel(self, state: ChainState) -> Kernel:
        return self._blocks(BeamProposal(), state)
