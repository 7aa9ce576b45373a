"""Base class of transition recipes."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod

from skihmm._recipe import Recipe
from skihmm.core._franchise import Franchise


class BaseTransitions(Recipe, metaclass=ABCMeta):
    """Base class of transitions: the prior of the transition probabilities.

    A transitions object is a recipe: it holds only its constructor parameters, among them
    the initial values of all hyperparameters of :class:`Franchise` by their names.  The
    counts are in a compiled seating that :meth:`make_seating` builds for every chain.

    Attributes
    ----------
    test_params : sequence of dict
        Of the class: parameters of the instances that tests should cover, which
        :func:`skihmm.testing.make_instances` builds.
    """

    @abstractmethod
    def make_seating(self) -> Franchise:
        """Build the empty seating of a chain.

        Called by ``fit`` before any work too.

        Returns
        -------
        transitions : skihmm.core._franchise.Franchise

        Raises
        ------
        ValueError or TypeError
            If a parameter is out of range.
        """
