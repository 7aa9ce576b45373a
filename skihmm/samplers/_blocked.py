"""Samplers that update blocks of consecutive steps."""

from __future__ import annotations

from skihmm._validation import check_integer
from skihmm.core._rcd import BlockProposal, RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers._base import Kernel, SeatsTransitions
from skihmm.samplers._blocked_kernel import BeamProposal, BlockedProposal
from skihmm.samplers._franchise_sampler import FranchiseSampler


def default_block_size(n_stages: int) -> int:
    """Steps per block, where a state lasts for `n_stages` steps or more."""
    return max(8, 2 * n_stages)


class _BlockSampler(FranchiseSampler):
    """Base class of the samplers of blocks."""

    test_params = (
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

    def check_transitions(self, transitions: SeatsTransitions) -> None:
        super().check_transitions(transitions)
        n_stages = transitions.make_seating().n_stages
        # Shorter blocks cannot create a run between others, and hardly move its borders.
        if n_stages > 1 and self.block_size is not None and self.block_size <= n_stages:
            raise ValueError(
                f"block_size={self.block_size} with min_dwell={n_stages} of the "
                f"transitions; expected {n_stages + 1} or more, better {2 * n_stages}, "
                "or None."
            )

    def _blocks(self, proposal: BlockProposal, state: ChainState) -> Kernel:
        size = self.block_size
        if size is None:
            size = default_block_size(state.transitions.n_stages)
        size = min(size, state.n_steps)
        return self.add_split_merge(RCDKernel(proposal, size))


class BlockedGibbs(_BlockSampler):
    """Blocked Gibbs sampler.

    A sweep divides every sequence into blocks of consecutive steps, the first of random
    length, and visits them in random order.  All states of a block are proposed together,
    by forward filtering and backward sampling at the seating without the block, and the
    Metropolis-Hastings ratio of the restricted collapsed draw corrects for the seating
    that changes within the block.

    A block crosses barriers that single steps do not, because dependent states change
    together.  It costs more per step, and proposals of long blocks are rejected more
    often.

    Parameters
    ----------
    block_size : int or None, default=None
        Steps per block.  None: 8, or twice the shortest dwell of the transitions if that
        is more.
    split_merge_rate : float, default=0
        Split-merge trials per sweep; see `StepwiseGibbs`.
    run_split_merge_rate : float, default=0
        Those of whole runs.

    See Also
    --------
    BlockedBeam : Blocks with slices for the transitions.

    Notes
    -----
    It is the only sampler of states with a shortest dwell
    (``HCRPTransitions(min_dwell=...)``).  A block then has to be longer than that dwell,
    and all trials move whole runs.

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

    supports_stages = True

    def make_kernel(self, state: ChainState) -> Kernel:
        return self._blocks(BlockedProposal(), state)


class BlockedBeam(_BlockSampler):
    """Blocked beam sampler.

    As `BlockedGibbs`, but every transition of a block first gets a slice: a uniform
    number below its probability on the old path.  Only transitions at least as probable
    enter the filter, a sparse set, which pays with many states; the ratio of the
    restricted collapsed draw is that of the blocked sampler, with un-sliced
    probabilities.

    Parameters
    ----------
    block_size : int or None, default=None
        Steps per block; None: 8.
    split_merge_rate : float, default=0
        Split-merge trials per sweep; see `StepwiseGibbs`.
    run_split_merge_rate : float, default=0
        Those of whole runs.

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
