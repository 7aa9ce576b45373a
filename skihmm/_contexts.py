"""Contexts of steps: encoded columns, and the tree of their prefixes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm._typing import Array, Labels
from skihmm._validation import as_array, is_missing, unmask

ORDERS = ("state", "context")
MISSING = -1

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

    @cached_property
    def parents(self) -> list[Labels]:
        """For every number of columns the numbers of the prefixes' own prefixes."""
        above: list[dict[Prefix, int]] = [{(): 0}, *self.levels]
        return [
            np.array([above[n][prefix[:n]] for prefix in level], dtype=np.int32)
            for n, level in enumerate(self.levels)
        ]

    def extended(self, codes: Labels, *, seats_missing: bool = False) -> ContextTree:
        """Add the contexts of more steps; the earlier ones keep their numbers.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_columns)
        seats_missing : bool, default=False
            Whether a step that misses the columns above the states has a prefix of its
            own.

        Returns
        -------
        tree : ContextTree
        """
        levels = tuple(dict(level) for level in self.levels)
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
    """Contexts of steps, for the compiled core.

    Attributes
    ----------
    tree : ContextTree
    codes : ndarray of shape (n_samples, n_columns), int32
        Categories; -1 is missing.
    seats_missing : bool
        Whether the tree has a prefix for every step that misses the columns above the
        states, as the data of a fit do.
    """

    tree: ContextTree
    codes: Labels
    seats_missing: bool = False

    @classmethod
    def of_fit(cls, codes: Labels, n_before: int) -> StepContexts:
        """Contexts of the data of a fit."""
        empty = ContextTree(n_before, tuple({} for _ in range(codes.shape[1])))
        return cls(empty.extended(codes, seats_missing=True), codes, True)

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
        return StepContexts(self.tree.extended(self.codes), self.codes)

    def joined(self, other: StepContexts) -> StepContexts:
        """Append the contexts of more data to those of a fit, or to others."""
        codes = np.concatenate([self.codes, other.codes])
        tree = self.tree
        if self.seats_missing:
            tree = tree.extended(codes, seats_missing=True)
        return StepContexts(tree, codes, self.seats_missing)


def find_categories(columns: Array, known: Categories | None = None) -> Categories:
    """Values of every column: the known ones, and others by first appearance.

    Parameters
    ----------
    columns : ndarray of shape (n_samples, n_columns)
    known : tuple of tuple, optional

    Returns
    -------
    categories : tuple of tuple
    """
    known = known or ((),) * columns.shape[1]
    found = []
    for values, before in zip(columns.T, known, strict=True):
        seen = dict.fromkeys(before)
        seen.update(dict.fromkeys(_entries(values[~is_missing(values)])))
        found.append(tuple(seen))
    return tuple(found)


def _entries(values: Array) -> list[Hashable]:
    entries: list[Hashable] = values.tolist()
    for value in entries:
        try:
            hash(value)
        except TypeError:
            raise TypeError(
                f"A context is {value!r}; expected numbers or strings."
            ) from None
    return entries


def encode_contexts(columns: Array, categories: Categories) -> Labels:
    """Encode columns of contexts.

    Parameters
    ----------
    columns : ndarray of shape (n_samples, n_columns)
    categories : tuple of tuple
        Result of :func:`find_categories`.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_columns), int32
        Index of the category, -1 where it is missing; other values have the indices after
        those of the categories.
    """
    codes = np.full(columns.shape, MISSING, dtype=np.int32)
    every = find_categories(columns, categories)
    for c, (values, known) in enumerate(zip(columns.T, every, strict=True)):
        number = {value: i for i, value in enumerate(known)}
        present = np.flatnonzero(~is_missing(values))
        codes[present, c] = [number[value] for value in _entries(values[present])]
    return codes


def check_features(
    features: Any, n_features: int, names: Sequence[str] | Array | None
) -> NDArray[np.intp]:
    """Indices of the columns of contexts.

    Parameters
    ----------
    features : None or array-like
        Indices, names or a mask, as scikit-learn's ``categorical_features``.
    n_features : int
        Number of columns of X.
    names : sequence of str or None
        Names of the columns of X.

    Returns
    -------
    columns : ndarray of int
        In the order of `features`, which is that of the hierarchy.
    """
    if features is None:
        return np.empty(0, dtype=np.intp)
    expected = (
        "expected a list of names or indices of columns of X, or a mask with an entry "
        "for every column."
    )
    # A set has no order, and a string would be one letter after the other.
    if isinstance(features, str | set | dict) or np.ndim(features) != 1:
        raise TypeError(f"context_features={features!r}; {expected}")
    entries = list(as_array("context_features", features))
    if not entries:
        return np.empty(0, dtype=np.intp)
    columns: list[int]
    if all(isinstance(entry, str) for entry in entries):
        if names is None:
            raise ValueError(
                f"context_features={features!r} are names, but the columns of X have "
                "none. Pass indices, or a data frame."
            )
        absent = [entry for entry in entries if entry not in list(names)]
        if absent:
            raise ValueError(
                f"context_features: X has no column {absent[0]!r}; its columns are "
                f"{list(names)}."
            )
        columns = [list(names).index(entry) for entry in entries]
    elif all(isinstance(entry, bool | np.bool_) for entry in entries):
        if len(entries) != n_features:
            raise ValueError(
                f"context_features is a mask of {len(entries)} entries, but X has "
                f"{n_features} columns; {expected}"
            )
        columns = np.flatnonzero(entries).tolist()
    elif all(
        isinstance(entry, int | np.integer) and not isinstance(entry, bool)
        for entry in entries
    ):
        outside = [entry for entry in entries if not -n_features <= entry < n_features]
        if outside:
            raise ValueError(
                f"context_features: X has no column {outside[0]}; it has {n_features} "
                "columns, counted from 0."
            )
        columns = [int(entry) % n_features for entry in entries]
    else:
        raise TypeError(f"context_features={features!r}; {expected}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"context_features={features!r} has a column twice.")
    if len(columns) == n_features:
        raise ValueError(
            f"context_features={features!r} are all columns of X; expected at least one "
            "other column, which is observed."
        )
    return np.array(columns, dtype=np.intp)


def without_columns(X: Array, columns: NDArray[np.intp]) -> Array:
    """Return X without the columns of contexts, as numbers if the rest are numbers."""
    if not len(columns):
        return X
    rest = np.delete(X, columns, axis=1)
    if rest.dtype != object or not all(
        isinstance(entry, int | float | np.integer | np.floating)
        and not isinstance(entry, bool)
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


def as_contexts(contexts: Any, n_steps: int, n_columns: int) -> Array:
    """Check the contexts of coming steps.

    Parameters
    ----------
    contexts : array-like of shape (n_steps,) or (n_steps, n_columns), or None
        None: all are missing.
    n_steps, n_columns : int

    Returns
    -------
    columns : ndarray of shape (n_steps, n_columns)
    """
    if contexts is None:
        return np.full((n_steps, n_columns), None, dtype=object)
    if n_columns == 0:
        raise ValueError(
            "contexts was given, but the transitions have no context_features."
        )
    columns = contexts.to_numpy() if hasattr(contexts, "to_numpy") else contexts
    columns = as_array("contexts", unmask(columns))
    if columns.ndim == 1 and n_columns == 1:
        columns = columns[:, None]
    if columns.shape != (n_steps, n_columns):
        raise ValueError(
            f"contexts has the shape {columns.shape}; expected one row for each of the "
            f"{n_steps} steps and {n_columns} columns."
        )
    return columns
