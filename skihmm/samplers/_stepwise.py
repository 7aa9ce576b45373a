"""Samplers that change one step at a time."""

from __future__ import annotations

from typing import Any

from skihmm.core._rcd import RCDKernel
from skihmm.samplers._base import BaseSampler
from skihmm.samplers._blocked_kernel import SliceProposal
from skihmm.samplers._stepwise_kernel import StepwiseProposal


class StepwiseGibbs(BaseSampler):
    """Step-wise Gibbs sampler.

    A sweep visits every step in random order.  The step's state is proposed from its full
    conditional at the seating without it, and the Metropolis-Hastings ratio of the
    restricted collapsed draw corrects for what that seating leaves out: taking the
    proposal for exact would be biased.

    Cost per step is a vectorised pass over the states while there are at most about a
    thousand, and the non-zero transitions of two states beyond.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011, Section 4.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.datasets import make_repeating_sequence
    >>> from skihmm.samplers import StepwiseGibbs
    >>> X, _ = make_repeating_sequence(120)
    >>> hmm = HCRPHMM(sampler=StepwiseGibbs(), n_burnin=50, n_draws=10, random_state=0)
    >>> hmm.fit(X).draws_.acceptance_rate.min() > 0.9
    np.True_
    """

    def make_kernel(self, state: Any) -> RCDKernel:
        """Build the compiled kernel for one chain.

        Parameters
        ----------
        state : skihmm.core._state.ChainState

        Returns
        -------
        kernel : skihmm.core._rcd.RCDKernel
        """
        return RCDKernel(StepwiseProposal())


class StepwiseSlice(BaseSampler):
    """Step-wise slice sampler.

    The beam sampler with blocks of one step: the transitions into and out of the step get
    slices, uniform below their probabilities for the old state, and a state is proposed
    among those whose two transitions are at least as probable, in proportion to its
    probability of the observation.

    A step is cheap, as few states pass both slices, but it moves less far than one of
    `StepwiseGibbs`.

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
    >>> hmm.fit(X).draws_.acceptance_rate.min() > 0.9
    np.True_
    """

    def make_kernel(self, state: Any) -> RCDKernel:
        """Build the compiled kernel for one chain.

        Parameters
        ----------
        state : skihmm.core._state.ChainState

        Returns
        -------
        kernel : skihmm.core._rcd.RCDKernel
        """
        return RCDKernel(SliceProposal())
