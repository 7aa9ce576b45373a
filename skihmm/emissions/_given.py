"""Emissions that depend on columns of X that are given, not modelled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skihmm._data.roles import HasRoles, Role
from skihmm._typing import Array, Flags, Integers
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._spec import ColumnSpec


class TakesGiven(HasRoles, BaseEmission):
    """Base class of emissions that may depend on given columns of X.

    Given columns of emission and transitions are left out of the X of other methods.  Encoded they
    are the last inputs of a step.
    """

    @property
    def n_given(self) -> int:
        """Number of given columns."""
        return sum(role.n_columns for role in self.roles())

    @property
    def n_inputs(self) -> int:  # type: ignore[override]
        """Number of inputs of a step, all given."""
        return self.n_given

    def columns(self, n_columns: int) -> ColumnSpec:
        looks_back = np.full(n_columns, self.n_inputs > self.n_given)
        return super().columns(n_columns)._replace(looks_back=looks_back)

    def typical_given(self) -> list[object]:
        """Values of the given columns that are used where the user gives none.

        Returns
        -------
        values : list
            Means of numbers in the fit; None for contexts and subjects.
        """
        pairs = [(role, self._learnt.get(role.parameter)) for role in self.roles()]
        return [value for role, learnt in pairs for value in role.typical(learnt)]

    def encode_given(self, columns: Array) -> Array:
        """Encode given columns.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_given)

        Returns
        -------
        given : ndarray of shape (n_samples, n_given)
            Categories and ids (int32 alone) are the index of what :meth:`with_given` found,
            -1 where missing; new values have further indices.  Numbers are floats; NaN is
            missing.
        """
        return _joined(self._encoded(columns), len(columns))

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

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        return [*super().data_warnings(with_notes), *self._given_warnings]


def _joined(found: list[Array], n_rows: int) -> Array:
    """Join columns; without any there are none of integers."""
    if len(found) == 1:
        return found[0]
    return np.hstack(found) if found else np.empty((n_rows, 0), dtype=np.int32)


def _takers(emission: BaseEmission) -> list[TakesGiven]:
    """Parts that may depend on given columns."""
    return [p.emission for p in emission.parts if isinstance(p.emission, TakesGiven)]


def given_roles(emission: BaseEmission) -> list[Role]:
    """Given columns of all parts, of one after the other."""
    return [role for part in _takers(emission) for role in part.roles()]


def given_kinds(emission: BaseEmission) -> Array:
    """Kind of every given column."""
    return np.array([role.kind for role in given_roles(emission) for _ in role.labels], dtype=str)


def n_given(emission: BaseEmission) -> int:
    """Number of given columns; parts may share columns."""
    return sum(part.n_given for part in _takers(emission))


def typical_given(emission: BaseEmission) -> list[object]:
    """Values of the given columns where none are said."""
    return [value for part in _takers(emission) for value in part.typical_given()]


def split_given(emissions: Sequence[BaseEmission], columns: Array) -> list[Array]:
    """Given columns of emissions, encoded or not, by emission."""
    stops = np.cumsum([n_given(emission) for emission in emissions], dtype=int)
    return np.split(columns, stops[:-1], axis=1)[: len(emissions)]


def encode_given(emission: BaseEmission, columns: Array) -> Array:
    """Encode the given columns of all parts."""
    parts = _takers(emission)
    pairs = zip(parts, split_given(parts, columns), strict=True)
    found = [part.encode_given(own) for part, own in pairs]
    return _joined(found, len(columns))


def warnings_of_lacking(emission: BaseEmission, columns: Array, are_read: Flags) -> list[str]:
    """Warnings of steps that lack an input of some part; parts may share inputs."""
    parts = _takers(emission)
    pairs = zip(parts, split_given(parts, columns), strict=True)
    found = [text for part, own in pairs for text in part._warnings_of_lacking(own, are_read)]
    return list(dict.fromkeys(found))


def given_of(emission: BaseEmission, codes: Array) -> Array:
    """Given inputs in encoded data, last of the inputs of every part."""
    found, stop = [codes[:, :0]], codes.shape[1] - emission.n_inputs
    for part in emission.parts:
        stop += part.emission.n_inputs
        if isinstance(part.emission, TakesGiven):
            found.append(codes[:, stop - part.emission.n_given : stop])
    return found[-1] if len(found) < 3 else np.hstack(found)
