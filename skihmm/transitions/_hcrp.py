"""Transitions of the hierarchical Chinese restaurant process."""

from __future__ import annotations

from skihmm._validation import check_concentration_prior, check_positive
from skihmm.core._franchise import Franchise
from skihmm.transitions._base import BaseTransitions


class HCRPTransitions(BaseTransitions):
    """Transitions of the hierarchical Chinese restaurant process.

    Every state's transition distribution is a draw from a Dirichlet process with a common
    base distribution over states, which is itself a draw from a Dirichlet process.

    Parameters
    ----------
    alpha, gamma : float, default=1.0
        Initial concentrations of a chain: `alpha` of every state's transitions around the
        base distribution, `gamma` of the base distribution.
    concentration_prior : (float, float) or None, default=(1.0, 1.0)
        Shape and rate of the Gamma prior on `alpha` and `gamma`, which are resampled
        after every sweep.  None keeps them fixed.

    Examples
    --------
    >>> from skihmm import HCRPHMM
    >>> from skihmm.transitions import HCRPTransitions
    >>> transitions = HCRPTransitions(alpha=2.0, concentration_prior=None)
    >>> hmm = HCRPHMM(transitions=transitions, n_burnin=20, n_draws=5, random_state=0)
    >>> hmm.fit([[0], [1]] * 20).draws_.alpha
    array([[2., 2., 2., 2., 2.]])
    """

    test_params = ({}, {"alpha": 0.5, "gamma": 2.0, "concentration_prior": None})

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        concentration_prior: tuple[float, float] | None = (1.0, 1.0),
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.concentration_prior = concentration_prior

    def make_seating(self) -> Franchise:
        """Build the empty seating of a chain.

        Returns
        -------
        transitions : skihmm.core._franchise.Franchise
        """
        return Franchise(
            check_positive("alpha", self.alpha),
            check_positive("gamma", self.gamma),
            check_concentration_prior("concentration_prior", self.concentration_prior),
        )
