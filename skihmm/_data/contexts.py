"""Contexts of steps: encoded columns, and the tree of their prefixes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skihmm._data.validation import (
    EXACT_FLOAT,
    LARGEST_SIZE,
    as_array,
    check_column_names,
    check_concentration,
    is_missing,
    is_missing_entry,
    is_number,
    shown,
    unmask,
    warn_caller,
)
from skihmm._typing import Array, Flags, Floats, Integers, Labels, NamedValues

ORDERS = ("state", "context")
MISSING = -1
# Half of a few rows may well differ.
LEAST_VALUES = 20

Prefix = tuple[int, ...]
Categories = tuple[tuple[Hashable, ...], ...]


@dataclass(frozen=True)
class ContextTree:
    """Prefixes of the contexts of some data.

    Attributes
    ----------
    n_before : int
        Number of columns above the states in the tree of restaurants.
    levels : tuple of dict
        For 1, 2, ... columns the number of every prefix.
    """

    n_before: int
    levels: tuple[dict[Prefix, int], ...]

    def __getstate__(self) -> dict[str, object]:
        """State for files, whose formats may have no keys that are tuples."""
        return {
            "n_before": self.n_before,
            # In the order of their numbers.
            "prefixes": [
                np.array(list(level), dtype=np.int32).reshape(len(level), n)
                for n, level in enumerate(self.levels, 1)
            ],
        }

    def __setstate__(self, state: NamedValues) -> None:
        """Restore from a file."""
        levels = (
            {tuple(prefix): i for i, prefix in enumerate(prefixes.tolist())}
            for prefixes in state["prefixes"]
        )
        self.__dict__.update(n_before=state["n_before"], levels=tuple(levels))

    @cached_property
    def parents(self) -> list[Labels]:
        """For every number of columns the numbers of the prefixes of the prefixes."""
        above: list[dict[Prefix, int]] = [{(): 0}, *self.levels]
        return [
            np.array([above[n][prefix[:n]] for prefix in level], dtype=np.int32)
            for n, level in enumerate(self.levels)
        ]

    def extended(self, codes: Labels, *, seats_missing: bool = False) -> ContextTree:
        """Add the contexts of more steps; the earlier ones keep their numbers.

        With `seats_missing` every step that misses the columns above the states has a
        different prefix.
        """
        levels = tuple(dict(level) for level in self.levels)
        if not levels:
            return self
        rows, first = np.unique(codes, axis=0, return_index=True)
        for row in rows[np.argsort(first)].tolist():
            for n, level in enumerate(levels, 1):
                if MISSING in row[:n]:
                    break
                level.setdefault(tuple(row[:n]), len(level))
        if seats_missing and self.n_before:
            n_missing = int((codes[:, 0] == MISSING).sum())
            for i in range(n_missing):
                levels[0].setdefault((MISSING - 1 - i,), len(levels[0]))
        return ContextTree(self.n_before, levels)

    def place(self, context: Sequence[int]) -> tuple[int, int]:
        """Depth and prefix of the leaf of a context, as far as it is known."""
        depth, number = 0, 0
        for n, level in enumerate(self.levels, 1):
            if tuple(context[:n]) not in level:
                break
            depth, number = n, level[tuple(context[:n])]
        return (depth + 1 if depth >= self.n_before else depth), number


@dataclass(frozen=True)
class StepContexts:
    """Contexts of steps, for the compiled core: codes of categories, and their tree.

    With `seats_missing` the tree has a prefix for every step that misses the columns
    above the states, as the data of a fit do.  `inputs` are numbers of the steps on which
    staying depends, standardised; then there may be no column of contexts.
    """

    tree: ContextTree
    codes: Labels
    seats_missing: bool = False
    inputs: Floats | None = None

    @classmethod
    def of_fit(cls, codes: Labels, n_before: int, inputs: Floats | None = None) -> StepContexts:
        """Contexts of the data of a fit."""
        empty = ContextTree(n_before, tuple({} for _ in range(codes.shape[1])))
        return cls(empty.extended(codes, seats_missing=True), codes, True, inputs)

    @property
    def n_columns(self) -> int:
        """Number of columns of contexts."""
        return len(self.tree.levels)

    @property
    def n_before(self) -> int:
        """Number of columns above the states in the tree."""
        return self.tree.n_before

    @property
    def parents(self) -> list[Labels]:
        """Parents of the tree's prefixes."""
        return self.tree.parents

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        rows, which = np.unique(self.codes, axis=0, return_inverse=True)
        places = np.array([self.tree.place(row) for row in rows.tolist()], dtype=np.int32)
        places = places.reshape(-1, 2)[which.ravel()]
        if self.seats_missing and self.n_before:
            missing = np.flatnonzero(self.codes[:, 0] == MISSING)
            level = self.tree.levels[0]
            for i, t in enumerate(missing):
                places[t] = 1, level[(MISSING - 1 - i,)]
        return places

    @property
    def depths(self) -> Labels:
        """Depth of every step's leaf in the tree of restaurants."""
        return np.ascontiguousarray(self._places[:, 0])

    @property
    def prefixes(self) -> Labels:
        """Number of the prefix to which every step's leaf belongs."""
        return np.ascontiguousarray(self._places[:, 1])

    def adaptive(self) -> StepContexts:
        """The same steps in a tree that has all their contexts."""
        return replace(self, tree=self.tree.extended(self.codes), seats_missing=False)

    def part(self, steps: slice | Integers) -> StepContexts:
        """Contexts of some of the steps."""
        inputs = None if self.inputs is None else self.inputs[steps]
        return replace(self, codes=self.codes[steps], inputs=inputs)

    def joined(self, other: StepContexts) -> StepContexts:
        """Append the contexts of more data to those of a fit, or to others."""
        codes = np.concatenate([self.codes, other.codes])
        tree, inputs = self.tree, self.inputs
        if inputs is not None and other.inputs is not None:
            inputs = np.concatenate([inputs, other.inputs])
        if self.seats_missing:
            tree = tree.extended(codes, seats_missing=True)
        return StepContexts(tree, codes, self.seats_missing, inputs)


@dataclass(frozen=True)
class GivenColumns:
    """Columns of X that are given, not modelled: contexts and inputs.

    Attributes
    ----------
    columns : ndarray of int
        The contexts of the transitions, in the order of the hierarchy, those of the
        emission, and then the others.
    n_transitions : int
        Number of the first ones.
    of_emission : ndarray of int
        Places in `columns` of those that the emission depends on.
    are_inputs : ndarray of bool
        Which of these are numbers, which have to be known.
    are_subjects : ndarray of bool
        Which of them are subjects.
    of_stays : list of int
        Places in `columns` of the inputs of the transitions.
    """

    columns: NDArray[np.intp]
    n_transitions: int
    of_emission: NDArray[np.intp]
    are_inputs: Flags
    are_subjects: Flags
    of_stays: list[int]

    @classmethod
    def join(
        cls,
        transitions: NDArray[np.intp],
        emission: NDArray[np.intp],
        n_features: int,
        are_inputs: Flags,
        are_subjects: Flags,
        stays: NDArray[np.intp],
    ) -> GivenColumns:
        """Join the columns of the transitions and those of the emission."""
        listed = [*transitions.tolist(), *emission.tolist(), *stays.tolist()]
        columns = list(dict.fromkeys(listed))
        if len(columns) == n_features:
            raise ValueError(
                "The context_features and input_features of transitions and emission are "
                f"together all {n_features} columns of X; expected at least one other "
                "column, which is observed."
            )
        places = [columns.index(c) for c in emission.tolist()]
        return cls(
            np.array(columns, dtype=np.intp),
            len(transitions),
            np.array(places, dtype=np.intp),
            are_inputs,
            are_subjects,
            [columns.index(c) for c in stays.tolist()],
        )

    @property
    def inputs(self) -> list[int]:
        """Places of the inputs, each once: parts of a product may share them."""
        of_emission = self.of_emission[self.are_inputs].tolist()
        return list(dict.fromkeys([*of_emission, *self.of_stays]))

    @property
    def emission_contexts(self) -> list[int]:
        """Places of the contexts of the emission, each once."""
        are_contexts = ~(self.are_inputs | self.are_subjects)
        return list(dict.fromkeys(self.of_emission[are_contexts].tolist()))

    @property
    def only_contexts(self) -> list[int]:
        """Places of the contexts that are not inputs too."""
        contexts = {*range(self.n_transitions), *self.emission_contexts}
        return sorted(contexts.difference(self.inputs))

    @property
    def subjects(self) -> list[int]:
        """Places of the subjects, each once."""
        return list(dict.fromkeys(self.of_emission[self.are_subjects].tolist()))

    def __len__(self) -> int:
        return len(self.columns)

    def transitions(self, contexts: Array) -> Array:
        """Select the contexts of the transitions."""
        return contexts[:, : self.n_transitions]

    def stays(self, contexts: Array) -> Array:
        """Select the inputs of the transitions; as :meth:`transitions`."""
        return contexts[:, self.of_stays]

    def emission(self, contexts: Array) -> Array:
        """Select the contexts of the emission; as :meth:`transitions`."""
        return contexts[:, self.of_emission]


def check_context_alpha(value: ArrayLike, n_columns: int) -> list[float]:
    """Concentrations of the columns of contexts."""
    if np.ndim(value) == 0:
        return [check_concentration("context_alpha", value)] * n_columns
    values = list(np.asarray(value, dtype=object))
    if len(values) != n_columns:
        raise ValueError(
            f"context_alpha has {len(values)} entries, but context_features "
            f"{n_columns} columns; expected one number, or one per column."
        )
    return [check_concentration(f"context_alpha[{c}]", v) for c, v in enumerate(values)]


def find_categories(
    columns: Array,
    known: Categories | None = None,
    names: Sequence[object] | None = None,
) -> Categories:
    """Values of every column: the known ones, and others by first appearance.

    `names` are those of the columns, for errors.
    """
    known = known or ((),) * columns.shape[1]
    names = names or [f"Column {c} of the contexts" for c in range(len(known))]
    found = []
    for values, before, name in zip(columns.T, known, names, strict=True):
        seen = dict.fromkeys(before)
        entries = _entries(values[~is_missing(values)])
        _check_exact(entries, name)
        seen.update(dict.fromkeys(entries))
        found.append(tuple(seen))
    return tuple(found)


def _check_exact(entries: Sequence[Hashable], name: object) -> None:
    """Refuse floats that several integers share, as ids beside a column of floats."""
    for value in entries:
        # 2**53 is the float of 2**53 + 1 too.
        if isinstance(value, float) and EXACT_FLOAT <= abs(value) < math.inf:
            raise ValueError(
                f"{name} holds the float {shown(value)}; from 2**53 on different "
                "integers, as of ids, are the same float, and integers beside a column "
                "of floats are floats too. Pass strings, or small numbers "
                "(pandas.factorize(ids)[0])."
            )


def _entries(values: Array) -> list[Hashable]:
    entries: list[Hashable] = values.tolist()
    if values.dtype == object:
        # Other objects are equal to themselves only, or are several columns.
        for value in entries:
            is_value = isinstance(value, str | bytes | date | timedelta)
            # Those of pandas, as its cut makes them.
            is_value |= type(value).__name__ in ("Interval", "Period")
            if not (is_value or is_number(value)):
                raise TypeError(f"A context is {value!r}; expected numbers or strings.")
    return entries


def warn_of_many_values(columns: Array, categories: Categories, names: Sequence[object]) -> None:
    """Warn of a column in which most rows have a value of their own."""
    for name, values, found in zip(names, columns.T, categories, strict=False):
        n_present = int((~is_missing(values)).sum())
        if len(found) >= LEAST_VALUES and 2 * len(found) > n_present:
            warn_caller(
                f"The column {name!r} of contexts has {len(found)} values in {n_present} "
                "rows, and every value is a context of its own, which learns from its "
                "rows alone. Bin it before fit: pandas.qcut(column, 4, labels=False)."
            )


def encode_contexts(columns: Array, categories: Categories, what: str | None = None) -> Labels:
    """Encode columns of contexts.

    Codes are the index of the category, -1 where it is missing; other values have the
    indices after those of the categories.
    """
    codes = np.full(columns.shape, MISSING, dtype=np.int32)
    names = None if what is None else [what] * len(categories)
    every = find_categories(columns, categories, names)
    for c, (values, known) in enumerate(zip(columns.T, every, strict=True)):
        # Or "1" would be a new context beside 1.
        types = {isinstance(value, str) for value in categories[c]}
        other = next((v for v in known if isinstance(v, str) not in types), None)
        if types and other is not None:
            seen = categories[c][0]
            raise TypeError(
                f"{what or f'Column {c} of the contexts'} has {other!r}; in fit it had "
                f"{'strings' if isinstance(seen, str) else 'numbers'}, such as {seen!r}. "
                "Pass the same type."
            )
        number = {value: i for i, value in enumerate(known)}
        present = np.flatnonzero(~is_missing(values))
        codes[present, c] = [number[value] for value in _entries(values[present])]
    return codes


def find_columns(
    what: str,
    columns: Sequence[object],
    n_features: int,
    names: Sequence[str] | Array | None,
    where: str = "counted from 0",
    others: str = "",
) -> list[int]:
    """Indices of columns of X, given by indices, names or a mask.

    `what` names them in errors, `where` says what indices count, and `others` what
    columns there are besides.
    """
    if columns and all(isinstance(column, bool | np.bool_) for column in columns):
        if len(columns) != n_features:
            raise ValueError(
                f"{what}: a mask of {len(columns)} entries, but X has {n_features} "
                "columns; expected an entry for every column."
            )
        return np.flatnonzero(np.array(columns)).tolist()
    found = []
    for column in columns:
        if isinstance(column, str):
            if names is None:
                raise ValueError(
                    f"{what}: {column!r} is a name, but the columns of X have none. Pass "
                    "indices, or a data frame."
                )
            if column not in names:
                raise ValueError(
                    f"{what}: X has no column {column!r}; its columns are {list(names)}{others}."
                )
            found.append(list(names).index(column))
        elif isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not -n_features <= column < n_features:
                raise ValueError(
                    f"{what}: X has no column {column}; it has {n_features} columns, "
                    f"{where}{others}."
                )
            found.append(int(column) % n_features)
        else:
            raise TypeError(
                f"{what}={columns!r}; expected a list of names or indices of columns of "
                "X, or a mask with an entry for every column."
            )
    return found


def check_features(
    features: ArrayLike | None,
    n_features: int,
    names: Sequence[str] | Array | None,
    parameter: str = "context_features",
) -> NDArray[np.intp]:
    """Indices of the columns of contexts, or of those that another parameter names.

    `features` are indices, names or a mask, as scikit-learn's ``categorical_features``;
    the order of contexts is that of the hierarchy.
    """
    if features is None:
        return np.empty(0, dtype=np.intp)
    # A set has no order, and a string would be one letter after the other.
    if isinstance(features, str | set | dict) or np.ndim(features) != 1:
        raise TypeError(
            f"{parameter}={features!r}; expected a list of names or indices of columns "
            "of X, or a mask."
        )
    listed = as_array(parameter, features).tolist()
    columns = find_columns(parameter, listed, n_features, names)
    if len(set(columns)) < len(columns):
        raise ValueError(f"{parameter}={features!r} has a column twice.")
    if len(columns) == n_features:
        raise ValueError(
            f"{parameter}={features!r} are all columns of X; expected at least one "
            "other column, which is observed."
        )
    return np.array(columns, dtype=np.intp)


def count_features(features: ArrayLike | None) -> int:
    """Number of columns that a list of indices or names, or a mask, selects."""
    if features is None or np.ndim(features) != 1:
        return 0
    entries = list(np.asarray(features, dtype=object))
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        return sum(map(bool, entries))
    return len(entries)


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


def as_contexts(
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
    inputs: object, n_steps: int, labels: Sequence[object], names: Sequence[str] | None
) -> Array:
    """Check the inputs of coming steps, of columns with these labels; all are needed."""
    if inputs is None and not len(labels):
        return np.empty((n_steps, 0))
    listed = ", ".join(map(repr, labels))
    if inputs is None:
        raise ValueError(
            f"The model regresses on the columns {listed} of X (input_features), "
            "which are not modelled. Pass inputs=, their values in every step."
        )
    if not len(labels):
        raise ValueError("inputs was given, but emission and transitions have no input_features.")
    columns = _as_rows("inputs", inputs, n_steps, len(labels), names)
    for label, column in zip(labels, columns.T, strict=True):
        if (missing := is_missing(column)).any():
            raise ValueError(
                f"inputs: the column {label!r} is missing in step "
                f"{int(np.flatnonzero(missing)[0])}; expected a number in every step."
            )
    return columns


def as_numbers(columns: Array, labels: Sequence[object]) -> Floats:
    """Convert columns of inputs with these labels to floats; NaN is missing."""
    if columns.dtype.kind in "biuf":
        numbers = columns.astype(np.float64)
    else:
        numbers = np.full(columns.shape, np.nan)
        for (row, c), value in np.ndenumerate(columns):
            if is_missing_entry(value):
                continue
            if not is_number(value):
                raise ValueError(
                    f"The input {labels[c]!r} of row {row} is {value!r}; expected a "
                    "number. Categories are inputs as columns of 0 and 1 "
                    "(OneHotEncoder), or context_features of the transitions."
                )
            numbers[row, c] = float(cast("float", value))
    for row, c in np.argwhere(np.abs(numbers) > LARGEST_SIZE):
        raise ValueError(
            f"The input {labels[c]!r} of row {row} is {shown(numbers[row, c])}; "
            f"expected numbers up to {LARGEST_SIZE:g} in size."
        )
    return numbers


def feature_labels(features: ArrayLike | None) -> list[str | int]:
    """Columns of a list of indices or names, or of a mask, as the user named them."""
    if features is None:
        return []
    listed = list(np.asarray(features, dtype=object))
    if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
        listed = np.flatnonzero(listed).tolist()
    return listed


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
