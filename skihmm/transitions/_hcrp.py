"""Transitions of the hierarchical Chinese restaurant process."""

from __future__ import annotations

from skihmm._recipe import Recipe
from skihmm._validation import check_concentration_prior, check_positive


class HCRPTransitions(Recipe):
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

    def concentrations(self) -> tuple[float, float]:
        """Check the initial concentrations.

        Returns
        -------
        alpha, gamma : float
        """
        return check_positive("alpha", self.alpha), check_positive("gamma", self.gamma)

    def prior(self) -> tuple[float, float] | None:
        """Check the prior on the concentrations.

        Returns
        -------
        prior : (float, float) or None
            Shape and rate; None if the concentrations are fixed.
        """
        return check_concentration_prior("concentration_prior", self.concentration_prior)

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError if a parameter is out of range."""
        self.concentrations()
        self.prior()
