"""Base class of transition recipes."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod

from skihmm._data.contexts import Categories, StepContexts, encode_contexts, find_categories
from skihmm._data.given import Role
from skihmm._recipe import Recipe
from skihmm._typing import Array, Flags, Floats, Labels
from skihmm.core._franchise import Franchise


class BaseTransitions(Recipe, metaclass=ABCMeta):
    """Base class of transitions: the prior of the transition probabilities.

    A transitions object is a recipe of constructor parameters alone, with initial values
    of all hyperparameters of :class:`Franchise` by name.  The counts are in a compiled
    seating that :meth:`make_seating` builds for every chain.

    Attributes
    ----------
    test_params : sequence of dict
        Parameters of the instances that tests should cover, a class attribute, which
        :func:`skihmm.testing.make_instances` builds.
    """

    # Recipes whose transitions do not depend on contexts have these.
    has_contexts = False
    n_before = 0
    # Nats by which a change of state is penalised.
    switch_penalty = 0.0
    context_categories_: Categories = ()
    # Recipes with inputs have their means and standard deviations.
    input_means_: Floats | None = None
    input_scales_: Floats | None = None

    def roles(self) -> list[Role]:
        """List the columns of X that are given to transitions, not modelled.

        Returns
        -------
        roles : list of Role
            Contexts, then inputs of staying.  By default none.

        Raises
        ------
        ValueError or TypeError
            If a parameter that belongs to them is out of range.
        """
        return []

    def take_encoding(self, fitted: BaseTransitions) -> None:
        """Encode contexts and inputs as fitted transitions do.

        Parameters
        ----------
        fitted : BaseTransitions
        """
        self.context_categories_ = fitted.context_categories_
        self.input_means_, self.input_scales_ = fitted.input_means_, fitted.input_scales_

    def fit_contexts(self, columns: Array, inputs: Array | None = None) -> StepContexts | None:
        """Find the categories of contexts, after those that are known, and encode.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_columns)
        inputs : ndarray of shape (n_samples, n_inputs), optional
            Units come from the first data.

        Returns
        -------
        contexts : StepContexts or None
            None without columns and inputs.
        """
        if inputs is None:
            inputs = columns[:, :0]
        if not columns.shape[1] and not inputs.shape[1]:
            return None
        self.context_categories_ = find_categories(columns, self.context_categories_ or None)
        if inputs.shape[1]:
            self._fit_inputs(inputs)
        codes = self.encode_contexts(columns)
        return StepContexts.of_fit(codes, self.n_before, self.encode_inputs(inputs))

    def _fit_inputs(self, columns: Array) -> None:
        """Find the units of inputs, if they are not known."""

    def warn_of_missing_inputs(self, columns: Array, are_read: Flags) -> None:
        """Warn of steps that lack an input, whose mean is taken.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_inputs)
        are_read : ndarray of shape (n_samples,)
            Mask of the steps whose inputs matter: they begin no sequence.
        """

    def encode_inputs(self, columns: Array) -> Floats | None:
        """Standardise inputs.  Missing inputs get the mean.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_inputs)

        Returns
        -------
        inputs : ndarray of shape (n_samples, n_inputs) or None
            None without inputs.
        """
        return None

    def encode_contexts(self, columns: Array) -> Labels:
        """Encode columns of contexts.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_columns)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_columns), int32
            Index of the category, -1 where missing.  New values have indices after the
            categories.
        """
        return encode_contexts(columns, self.context_categories_)

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
