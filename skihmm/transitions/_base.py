"""Base class of transition recipes."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod

import numpy as np

from skihmm._data.contexts import Categories, ContextTree, StepContexts
from skihmm._data.roles import HasRoles, Units
from skihmm._recipe import Recipe
from skihmm._typing import Array, Floats
from skihmm.core._franchise import Franchise


class BaseTransitions(HasRoles, Recipe, metaclass=ABCMeta):
    """Base class of transitions: the prior of the transition probabilities.

    A transitions object is a recipe of constructor parameters alone, with initial values
    of all hyperparameters of :class:`Franchise` by name.  The counts are in a compiled
    seating that :meth:`make_seating` builds for every chain.  Columns of X that are given
    to transitions are contexts, at most one role, and inputs of staying, at most one role.

    Attributes
    ----------
    test_params : sequence of dict
        Parameters of the instances that tests should cover, a class attribute, which
        :func:`skihmm.testing.make_instances` builds.

    See Also
    --------
    HCRPTransitions : The transitions of this package.

    Examples
    --------
    Transitions that depend on the second column of X:

    >>> from skihmm.transitions import BaseTransitions, HCRPTransitions
    >>> transitions = HCRPTransitions(context_features=[1])
    >>> isinstance(transitions, BaseTransitions), transitions.has_contexts
    (True, True)
    """

    # Number of columns of contexts above the states.
    n_before = 0
    # Nats by which a change of state is penalised.
    switch_penalty = 0.0
    _lacking = "lack an input of transitions ({}), which has the mean of the fit there"

    @property
    def has_contexts(self) -> bool:
        """Whether transitions depend on contexts."""
        return any(role.kind == "context" and role.n_columns for role in self.roles())

    @property
    def has_inputs(self) -> bool:
        """Whether staying depends on inputs."""
        return any(role.kind == "input" and role.n_columns for role in self.roles())

    @property
    def context_categories_(self) -> Categories:
        """Values of every column of contexts, by first appearance."""
        categories: Categories = self._learnt.get("context_features", ())
        return categories

    @property
    def input_means_(self) -> Floats | None:
        """Means by which inputs are standardised, of shape (n_inputs,); None without inputs."""
        return self._units_of_inputs and self._units_of_inputs.means

    @property
    def input_scales_(self) -> Floats | None:
        """Standard deviations by which inputs are standardised; None without inputs."""
        return self._units_of_inputs and self._units_of_inputs.scales

    @property
    def _units_of_inputs(self) -> Units | None:
        return self._learnt.get("input_features")

    def step_contexts(self, columns: Array, tree: ContextTree | None = None) -> StepContexts | None:
        """Encode the given columns of steps.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_given)
        tree : ContextTree, optional
            Contexts of the fit.  By default the steps are the steps of the fit.

        Returns
        -------
        contexts : StepContexts or None
            None without given columns.
        """
        if not columns.shape[1]:
            return None
        codes, inputs = np.empty((len(columns), 0), dtype=np.int32), None
        for role, own, learnt in self._read(columns):
            if role.kind == "context":
                codes = role.encode(own, learnt)
            else:
                # The mean is zero.
                inputs = np.nan_to_num(role.encode(own, learnt))
        if tree is None:
            return StepContexts.of_fit(codes, self.n_before, inputs)
        return StepContexts(tree, codes, inputs=inputs)

    @abstractmethod
    def make_seating(self, contexts: StepContexts | None = None) -> Franchise:
        """Build the empty seating of a chain.

        Called by ``fit`` before any work too.

        Parameters
        ----------
        contexts : StepContexts, optional
            Contexts of all steps.  None for transitions without contexts, or for the law
            without contexts.

        Returns
        -------
        transitions : skihmm.core._franchise.Franchise

        Raises
        ------
        ValueError or TypeError
            If a parameter is out of range.
        """
