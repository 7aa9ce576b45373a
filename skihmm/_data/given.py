"""Columns of X that are given, not modelled: contexts, inputs and subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skihmm._data.roles import Role
from skihmm._data.validation import as_array, check_column_names, is_missing, unmask
from skihmm._typing import Array


@dataclass(frozen=True)
class GivenColumns:
    """Columns of X that are given, not modelled, each once.

    Attributes
    ----------
    columns : ndarray of int
        The contexts of the transitions, in the order of the hierarchy, the emission's contexts, and
        then the other columns.
    of_transitions, of_emission : ndarray of int
        Places in `columns` of the columns that transitions and emission depend on; parts of a
        product may share columns.
    kinds_of_transitions, kinds_of_emission : ndarray of str
        Kinds of their roles.
    """

    columns: NDArray[np.intp]
    of_transitions: NDArray[np.intp]
    of_emission: NDArray[np.intp]
    kinds_of_transitions: NDArray[np.str_]
    kinds_of_emission: NDArray[np.str_]

    @classmethod
    def find(
        cls,
        of_transitions: Sequence[Role],
        of_emission: Sequence[Role],
        n_features: int,
        names: Sequence[str] | Array | None,
    ) -> GivenColumns:
        """Find the columns of all roles in X."""
        found, kinds = [], []
        for roles in (of_transitions, of_emission):
            listed = [role.columns(n_features, names) for role in roles]
            found.append([c for columns in listed for c in columns])
            kinds.append(np.repeat([r.kind for r in roles] or [""], [*map(len, listed)] or [0]))
        n_contexts = int((kinds[0] == "context").sum())
        columns = list(dict.fromkeys([*found[0][:n_contexts], *found[1], *found[0]]))
        if len(columns) == n_features:
            raise ValueError(
                "The context_features and input_features of transitions and emission are "
                f"together all {n_features} columns of X; expected at least one other "
                "column, which is observed."
            )
        places = [np.array([*map(columns.index, each)], dtype=np.intp) for each in found]
        return cls(np.array(columns, dtype=np.intp), places[0], places[1], kinds[0], kinds[1])

    def __len__(self) -> int:
        return len(self.columns)

    def _places(self, kind: str) -> list[int]:
        """Places of the columns of a kind, each once, the emission's columns first."""
        of_emission = self.of_emission[self.kinds_of_emission == kind]
        of_transitions = self.of_transitions[self.kinds_of_transitions == kind]
        return list(dict.fromkeys([*of_emission.tolist(), *of_transitions.tolist()]))

    @cached_property
    def inputs(self) -> list[int]:
        """Places of the inputs."""
        return self._places("input")

    @cached_property
    def subjects(self) -> list[int]:
        """Places of the subjects."""
        return self._places("subject")

    @cached_property
    def only_contexts(self) -> list[int]:
        """Places of the contexts that are not inputs too."""
        return sorted({*self._places("context")}.difference(self.inputs))

    @property
    def emission_contexts(self) -> list[int]:
        """Places of the contexts of the emission."""
        return list(dict.fromkeys(self.of_emission[self.kinds_of_emission == "context"].tolist()))

    @property
    def n_transitions(self) -> int:
        """Number of the contexts of the transitions, the first columns."""
        return int((self.kinds_of_transitions == "context").sum())

    @property
    def places_of_stays(self) -> NDArray[np.intp]:
        """Places of the inputs of the transitions."""
        return self.of_transitions[self.kinds_of_transitions == "input"]

    @property
    def stay_columns(self) -> NDArray[np.intp]:
        """Indices in X of the inputs of the transitions."""
        return self.columns[self.places_of_stays]

    def split(self, X: Array) -> tuple[Array, Array]:
        """Separate the observed columns of X from the given columns."""
        return without_columns(X, self.columns), X[:, self.columns]

    def transitions(self, columns: Array) -> Array:
        """Select the columns of the transitions among the given columns."""
        return columns[:, self.of_transitions]

    def emission(self, columns: Array) -> Array:
        """Select the columns of the emission."""
        return columns[:, self.of_emission]

    def coming(
        self,
        contexts: object,
        inputs: object,
        n_steps: int,
        names: Array | None,
        subject: object = None,
    ) -> Array:
        """Check the user's columns of coming steps; return the given columns.

        `names` are the names of the columns of X.
        """
        places, subjects = self.only_contexts, self.subjects
        of_contexts = None if names is None else names[self.columns[places]].tolist()
        columns = _as_contexts(contexts, n_steps, len(places), of_contexts)
        numbers = as_inputs(inputs, n_steps, self.columns[self.inputs], names)
        if not self.inputs and not subjects:
            return columns
        whole = np.empty((n_steps, len(self)), object if places or subjects else numbers.dtype)
        whole[:, places], whole[:, self.inputs] = columns, numbers
        if subject is not None and subjects:
            if contexts is not None and {*subjects} & {*places}:
                raise ValueError(
                    f"subject={subject!r}, and contexts= has the same column; pass one of them."
                )
            whole[:, subjects] = subject
        return whole


def without_columns(X: Array, columns: NDArray[np.intp]) -> Array:
    """Return X without the columns of contexts, as numbers if the rest are numbers."""
    if not len(columns):
        return X
    rest = np.delete(X, columns, axis=1)
    if rest.dtype != object or not all(
        isinstance(entry, int | float | np.integer | np.floating) and not isinstance(entry, bool)
        for entry in rest.flat
    ):
        return rest
    numbers = np.array(rest.tolist())
    return numbers if numbers.dtype.kind in "if" else rest


def with_columns(X: Array, columns: NDArray[np.intp], contexts: Array) -> Array:
    """Inverse of :func:`without_columns`: insert the columns of contexts."""
    if not len(columns):
        return X
    n_features = X.shape[1] + len(columns)
    kinds = {X.dtype.kind, contexts.dtype.kind}
    dtype = np.result_type(X, contexts) if kinds <= set("if") else object
    whole = np.empty((len(X), n_features), dtype=dtype)
    whole[:, columns] = contexts
    whole[:, np.setdiff1d(np.arange(n_features), columns)] = X
    return whole


def _as_contexts(
    contexts: object, n_steps: int, n_columns: int, names: Sequence[str] | None = None
) -> Array:
    """Check the contexts of coming steps.

    With None all are missing.
    """
    if contexts is None:
        return np.full((n_steps, n_columns), None, dtype=object)
    if n_columns == 0:
        raise ValueError(
            "contexts was given, but neither transitions nor emission have "
            "context_features (that are not input_features too)."
        )
    return _as_rows("contexts", contexts, n_steps, n_columns, names)


def as_inputs(
    inputs: object, n_steps: int, columns: NDArray[np.intp], names: Array | None
) -> Array:
    """Check the inputs of coming steps, which are these columns of X; all are needed."""
    if inputs is None and not len(columns):
        return np.empty((n_steps, 0))
    of_inputs = None if names is None else names[columns].tolist()
    labels = of_inputs or columns.tolist()
    if inputs is None:
        raise ValueError(
            f"The model is given the columns {', '.join(map(repr, labels))} of X (such as "
            "input_features and exposure), which are not modelled. Pass inputs=, their values in "
            "every step."
        )
    if not len(columns):
        raise ValueError("inputs was given, but emission and transitions have no input_features.")
    rows = _as_rows("inputs", inputs, n_steps, len(columns), of_inputs)
    for label, column in zip(labels, rows.T, strict=True):
        if (missing := is_missing(column)).any():
            raise ValueError(
                f"inputs: the column {label!r} is missing in step "
                f"{int(np.flatnonzero(missing)[0])}; expected a number in every step."
            )
    return rows


def _as_rows(
    name: str,
    values: object,
    n_steps: int,
    n_columns: int,
    names: Sequence[str] | None,
) -> Array:
    check_column_names(name, values, names)
    columns = values.to_numpy() if hasattr(values, "to_numpy") else values
    columns = as_array(name, unmask(columns))
    if columns.ndim == 1 and n_columns == 1:
        columns = columns[:, None]
    if columns.shape != (n_steps, n_columns):
        raise ValueError(
            f"{name} has the shape {columns.shape}; expected one row for each of the "
            f"{n_steps} steps and {n_columns} columns."
        )
    return columns
