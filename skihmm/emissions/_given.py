"""Emissions that depend on columns of X that are given, not modelled."""

from __future__ import annotations

import numpy as np

from skihmm._data.given import Role
from skihmm._data.validation import is_missing, warn_caller
from skihmm._typing import Array, Flags, Integers, Labels
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._parts import leaves


class TakesGiven(BaseEmission):
    """Base class of emissions that may depend on given columns of X.

    Given columns of emission and transitions are left out of the X of other methods.  Encoded they
    are the last inputs of a step.
    """

    def roles(self) -> list[Role]:
        """List the given columns.

        Returns
        -------
        roles : list of Role
            None by default.

        Raises
        ------
        ValueError or TypeError
            If a parameter that belongs to them is out of range.
        """
        return []

    @property
    def n_given(self) -> int:
        """Number of given columns."""
        return sum(role.n_columns for role in self.roles())

    @property
    def n_inputs(self) -> int:  # type: ignore[override]
        """Number of inputs of a step, all given."""
        return self.n_given

    @property
    def _looks_back(self) -> bool:
        return self.n_inputs > self.n_given

    def typical_given(self) -> list[object]:
        """Values of the given columns that are used where the user gives none.

        Returns
        -------
        values : list
            Means of numbers in the fit; None for contexts and subjects.
        """
        return [None] * self.n_given

    def encode_given(self, columns: Array) -> Labels:
        """Encode given columns: contexts by their categories.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_given)

        Returns
        -------
        given : ndarray of shape (n_samples, n_given)
            Contexts (int32) are the index of the category, -1 where it is missing; new values have
            the indices after the categories.  Numbers are floats; NaN is missing.
        """
        return np.empty((len(columns), 0), dtype=np.int32)

    def inputs(
        self,
        values: Array,
        starts: Integers,
        before: Array | None = None,
        given: Array | None = None,
    ) -> Array:
        if given is None:
            return np.full((len(values), self.n_given), -1, dtype=np.int32)
        return given


def _takers(emission: BaseEmission) -> list[TakesGiven]:
    """Parts that may depend on given columns."""
    return [leaf for leaf in leaves(emission) if isinstance(leaf, TakesGiven)]


def given_roles(emission: BaseEmission) -> list[Role]:
    """Given columns of all parts, of one after the other."""
    return [role for part in _takers(emission) for role in part.roles()]


def given_kinds(emission: BaseEmission) -> Array:
    """Kind of every given column."""
    return np.array([role.kind for role in given_roles(emission) for _ in role.labels], dtype=str)


def warn_of_missing_inputs(
    emission: BaseEmission, columns: Array, are_inputs: Flags, observed: Array
) -> None:
    """Warn of rows with an observed value that lack an input, an exposure or trials.

    Parameters
    ----------
    emission : BaseEmission
    columns : ndarray of shape (n_samples, n_given)
        Given columns of all parts.
    are_inputs : ndarray of shape (n_given,)
        Mask of the columns that hold numbers, with exposures and trials.
    observed : ndarray of shape (n_samples, n_columns)
    """
    of_inputs = np.flatnonzero(are_inputs)
    are_lost = np.array([is_missing(column) for column in columns[:, of_inputs].T])
    if not are_lost.any():
        return
    are_lost &= ~np.all([is_missing(column) for column in observed.T], axis=0)
    labels = [label for role in given_roles(emission) for label in role.labels]
    lost = [repr(labels[c]) for c in of_inputs[are_lost.any(axis=1)]]
    if lost:
        warn_caller(
            f"{are_lost.any(axis=0).sum()} of {len(columns)} steps lack an input "
            f"({', '.join(lost)}) and are missing as a whole. Impute the inputs before, if "
            "they can be."
        )


def n_given(emission: BaseEmission) -> int:
    """Number of given columns; parts may share columns."""
    return sum(part.n_given for part in _takers(emission))


def typical_given(emission: BaseEmission) -> list[object]:
    """Values of the given columns where none are said."""
    return [value for part in _takers(emission) for value in part.typical_given()]


def split_given(emission: BaseEmission, columns: Array) -> list[Array]:
    """Given columns, encoded or not, of the parts that may depend on some."""
    stops = np.cumsum([part.n_given for part in _takers(emission)], dtype=int)
    return np.split(columns, stops[:-1], axis=1)


def encode_given(emission: BaseEmission, columns: Array) -> Array:
    """Encode the given columns of all parts."""
    pairs = zip(_takers(emission), split_given(emission, columns), strict=False)
    found = [part.encode_given(own) for part, own in pairs]
    return np.hstack(found) if found else np.empty((len(columns), 0), dtype=np.int32)


def given_of(emission: BaseEmission, codes: Array) -> Array:
    """Given inputs in encoded data, last of the inputs of every part."""
    found, stop = [codes[:, :0]], codes.shape[1] - emission.n_inputs
    for part in leaves(emission):
        stop += part.n_inputs
        if isinstance(part, TakesGiven):
            found.append(codes[:, stop - part.n_given : stop])
    return found[-1] if len(found) < 3 else np.hstack(found)
