"""Samplers that update single steps."""

from __future__ import annotations

from skihmm._data.validation import check_choice, check_fraction
from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers._base import Kernel
from skihmm.samplers._franchise_sampler import FranchiseSampler
from skihmm.samplers._kernels import BeamProposal, BlockedProposal, MixedKernel, StepwiseProposal

# Length of the blocks in sweeps among those over single steps.
MIXED_BLOCK_SIZE = 30


class StepwiseGibbs(FranchiseSampler):
    """Step-wise Gibbs sampler.

    A sweep visits every step in random order.  With ``proposal="exact"`` the state of a
    step is drawn with an indicator of a new table, from the exact conditional
    distribution, without rejections.  With ``proposal="rcd"``, the step of the paper, the
    state is proposed from the full conditional at the seating without the step.  The
    second transition depends on the first, and the Metropolis-Hastings ratio of the
    restricted collapsed draw corrects the proposal.

    The cost of a step grows with the number of states that share a transition or a symbol
    with the step.  With contexts or probabilities to stay, the cost grows with the number
    of all states.

    Parameters
    ----------
    proposal : {"exact", "rcd"}, default="exact"
        The step without rejections, or the step of the paper, with an acceptance rate like
        further samplers.  The steps take about equal times.
    split_merge_rate : float, default=0
        Split-merge trials per sweep, spread evenly between the steps: each trial chooses
        two steps, and proposes to split the common state in two or to merge the two states.
        Trials reach states that single steps rarely reach.  A non-integer rate is met on
        average.  A trial costs about as much as a move of every step of the two states.
    run_split_merge_rate : float, default=0
        Number of trials per sweep on whole runs (consecutive steps of a state), after the
        steps of the sweep.  A trial allocates runs by joint probability, and chooses a
        state to merge by the probability of the observations.  For lasting states, far more
        of these trials are accepted.  With numbers, some trials revise the allocation in
        restricted scans, and divide states that overlap.
    block_share : float, default=0
        Probability of a sweep over blocks of 30 steps (`BlockedGibbs`) instead of single
        steps.  Blocks change detours of a path as a whole and move the borders of long
        runs.  Split-merge trials follow a sweep over blocks.

    See Also
    --------
    BlockedGibbs : Blocks in every sweep.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011, Sections 4 and 6 (without the exact step).

    S. Jain and R. M. Neal, "A Split-Merge Markov Chain Monte Carlo Procedure for the
    Dirichlet Process Mixture Model", Journal of Computational and Graphical Statistics
    13(1), 158-182, 2004 (the restricted scans).

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import StepwiseGibbs
    >>> X, _ = make_repeating_sequence(120)
    >>> sampler = StepwiseGibbs(proposal="rcd")
    >>> hmm = HCRPHMM(sampler=sampler, n_burnin=50, n_draws=10, random_state=0)
    >>> bool(hmm.fit(X).draws_.acceptance_rate.min() > 0.9)
    True
    >>> hmm.set_params(sampler__split_merge_rate=2.5).fit(X)
    HCRPHMM(n_burnin=50, n_draws=10, random_state=0,
            sampler=StepwiseGibbs(proposal='rcd', split_merge_rate=2.5))
    >>> hmm.draws_.split_merge_acceptance_rate.shape
    (1, 10)
    """

    test_params = (
        {},
        {"proposal": "rcd", "split_merge_rate": 1.5},
        {"run_split_merge_rate": 0.5},
        {"split_merge_rate": 0.5, "block_share": 0.5},
    )

    def __init__(
        self,
        proposal: str = "exact",
        split_merge_rate: float = 0,
        run_split_merge_rate: float = 0,
        block_share: float = 0,
    ) -> None:
        self.proposal = proposal
        self.split_merge_rate = split_merge_rate
        self.run_split_merge_rate = run_split_merge_rate
        self.block_share = block_share

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice("proposal", self.proposal, ("exact", "rcd"))
        check_fraction("block_share", self.block_share)

    def make_kernel(self, state: ChainState) -> Kernel:
        self.check_parameters()
        steps = RCDKernel(StepwiseProposal(exact=self.proposal == "exact"))
        if not self.block_share:
            return self.add_split_merge(steps)
        blocks = RCDKernel(BlockedProposal(), min(MIXED_BLOCK_SIZE, state.n_steps))
        return self.add_split_merge(MixedKernel(steps, blocks, self.block_share))


class StepwiseSlice(FranchiseSampler):
    """Step-wise slice sampler.

    The beam sampler with blocks of one step.  The transitions into and out of the step
    get slices, uniform below the probabilities of the old state.  The proposal is among
    states with both transitions above the slices, in proportion to the probability of the
    observation.

    A step changes less than a step of `StepwiseGibbs`, and takes longer.

    Parameters
    ----------
    split_merge_rate : float, default=0
        Split-merge trials per sweep; see `StepwiseGibbs`.
    run_split_merge_rate : float, default=0
        Trials of whole runs.

    See Also
    --------
    StepwiseGibbs : Full conditionals instead of slices.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011, Section 5.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import StepwiseSlice
    >>> X, _ = make_repeating_sequence(120)
    >>> hmm = HCRPHMM(sampler=StepwiseSlice(), n_burnin=50, n_draws=10, random_state=0)
    >>> bool(hmm.fit(X).draws_.acceptance_rate.min() > 0.9)
    True
    """

    test_params = ({}, {"split_merge_rate": 1, "run_split_merge_rate": 1})

    def __init__(self, split_merge_rate: float = 0, run_split_merge_rate: float = 0) -> None:
        self.split_merge_rate = split_merge_rate
        self.run_split_merge_rate = run_split_merge_rate

    def make_kernel(self, state: ChainState) -> Kernel:
        return self.add_split_merge(RCDKernel(BeamProposal(cut=0.0)))
