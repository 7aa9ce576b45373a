"""Encoded steps of a fitted model: given columns taken out of X, encoded and put beside rows."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from skihmm._data.contexts import ContextTree, StepContexts
from skihmm._data.given import GivenColumns, as_inputs
from skihmm._data.reading import Columns
from skihmm._data.sequences import Sequences
from skihmm._data.validation import is_missing, warn_caller
from skihmm._typing import Array, Floats, MatrixLike
from skihmm.emissions import BaseEmission
from skihmm.emissions._encoding import encode
from skihmm.emissions._given import encode_given, given_kinds, given_of, warnings_of_lacking
from skihmm.transitions import BaseTransitions


@dataclass(frozen=True)
class GivenSteps:
    """Given columns of steps.

    Attributes
    ----------
    columns : ndarray of shape (n_steps, n_columns)
        As in X.
    contexts : StepContexts or None
        What transitions depend on; None if they do not depend on given columns.
    of_emission : ndarray of shape (n_steps, n_given)
        Encoded columns of the emission.
    """

    columns: Array
    contexts: StepContexts | None
    of_emission: Array

    def after(self, emission: BaseEmission, row: Array) -> GivenSteps:
        """These steps after an encoded row, of which the subject goes on."""
        goes_on = given_kinds(emission) == "subject"
        if not goes_on.any():
            return self
        of_emission = np.where(goes_on, given_of(emission, row), self.of_emission)
        return replace(self, of_emission=of_emission)


@dataclass(frozen=True)
class StepEncoder:
    """Encoding of steps by a fitted model.

    Attributes
    ----------
    given : GivenColumns
    transitions : BaseTransitions
    emission : BaseEmission
    tree : ContextTree or None
        Contexts of the fit.
    columns : Columns
    """

    given: GivenColumns
    transitions: BaseTransitions
    emission: BaseEmission
    tree: ContextTree | None
    columns: Columns

    @property
    def observed(self) -> NDArray[np.intp]:
        """Indices of the columns of X that are modelled, not given."""
        every = np.arange(self.columns.number, dtype=np.intp)
        return np.delete(every, self.given.columns)

    @property
    def observed_names(self) -> Array | None:
        """Names of these columns; None if the data of the fit had none."""
        names = self.columns.names
        return None if names is None else names[self.observed]

    def rows(
        self,
        X: Array,
        starts: NDArray[np.intp],
        before: Array | None = None,
        noise: Floats | None = None,
    ) -> Sequences:
        """Encode rows of X, of which the first sequence may follow the encoded row `before`."""
        self.warn_of_lacking(X, starts[int(before is not None) :])
        return self.encoded(X, starts, before, noise)

    def encoded(
        self,
        X: Array,
        starts: NDArray[np.intp],
        before: Array | None = None,
        noise: Floats | None = None,
    ) -> Sequences:
        """Encode rows without a warning."""
        if not len(self.given):
            return Sequences(encode(self.emission, X, starts, before, None, noise), starts)
        observed, columns = self.given.split(X)
        of_emission = self.given.emission(columns)
        codes = encode(self.emission, observed, starts, before, of_emission, noise)
        return Sequences(codes, starts, contexts=self._contexts(columns))

    def warn_of_lacking(self, X: Array, begins: NDArray[np.intp]) -> None:
        """Warn of steps that lack an input; the first steps of sequences do not stay."""
        if not (len(self.given) and self.given.inputs):
            return
        observed, columns = self.given.split(X)
        of_emission = self.given.emission(columns)
        follow = np.isin(np.arange(len(columns)), begins, invert=True)
        of_transitions = self.given.transitions(columns)
        texts = self.transitions._warnings_of_lacking(of_transitions, follow)
        are_seen = ~np.all([is_missing(column) for column in observed.T], axis=0)
        for text in [*texts, *warnings_of_lacking(self.emission, of_emission, are_seen)]:
            warn_caller(text)

    def _contexts(self, columns: Array) -> StepContexts | None:
        return self.transitions.step_contexts(self.given.transitions(columns), self.tree)

    def steps(self, columns: Array) -> GivenSteps:
        """Encode given columns."""
        encoded = encode_given(self.emission, self.given.emission(columns))
        return GivenSteps(columns, self._contexts(columns), encoded)

    def coming(
        self,
        contexts: MatrixLike | None,
        inputs: MatrixLike | None,
        n_steps: int,
        subject: object = None,
    ) -> GivenSteps:
        """Check and encode the user's columns of coming steps."""
        return self.steps(self.given.coming(contexts, inputs, n_steps, self.columns.names, subject))

    def in_context(self, values: tuple[object, ...]) -> StepContexts | None:
        """Encode one step in a context of the transitions, at the mean inputs."""
        row = np.full((1, len(self.given)), None, dtype=object)
        row[0, : len(values)] = values
        return self._contexts(row)

    def inputs_of_staying(self, inputs: MatrixLike) -> Floats:
        """Standardise the user's rows of inputs of staying."""
        columns = self.given.stay_columns
        if not len(columns):
            raise ValueError(
                "Staying does not depend on inputs: the transitions have no input_features."
            )
        if not hasattr(inputs, "__len__"):
            raise ValueError(f"inputs={inputs!r}; expected one row of inputs per step.")
        numbers = as_inputs(inputs, len(cast("Sized", inputs)), columns, self.columns.names)
        rows = np.full((len(numbers), len(self.given)), None, dtype=object)
        rows[:, self.given.places_of_stays] = numbers
        contexts = self._contexts(rows)
        assert contexts is not None
        assert contexts.inputs is not None
        return contexts.inputs
