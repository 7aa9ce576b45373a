"""Samplers that change one step at a time."""

from __future__ import annotations

from typing import Any

from skihmm.core._rcd import RCDKernel
from skihmm.samplers._base import BaseSampler
from skihmm.samplers._stepwise_kernel import StepwiseProposal


class StepwiseGibbs(BaseSampler):
    """Step-wise Gibbs sampler.

    A sweep visits every step in random order.  The step's state is proposed from its full
    conditional at the seating without it, and the Metropolis-Hastings ratio of the
    restricted collapsed draw corrects for what that seating leaves out: taking the
    proposal for exact would be biased.

    The cost of a step is one vectorised pass over the states while there are at most
    about a hundred; beyond that it follows the states that share a transition or a symbol
    with the step, not the number of states.

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
    >>> bool(hmm.fit(X).draws_.acceptance_rate.min() > 0.9)
    True
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
