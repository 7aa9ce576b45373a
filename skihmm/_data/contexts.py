"""Contexts of steps: encoded columns, and the tree of their prefixes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skihmm._data.roles import Role
from skihmm._data.validation import (
    EXACT_FLOAT,
    check_concentration,
    is_missing,
    is_number,
    shown,
)
from skihmm._typing import Array, Floats, Integers, Labels, NamedValues

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
        """These steps in a tree that has all their contexts."""
        return replace(self, tree=self.tree.extended(self.codes), seats_missing=False)

    def part(self, steps: slice | Integers) -> StepContexts:
        """Contexts of some of the steps."""
        inputs = None if self.inputs is None else self.inputs[steps]
        return StepContexts(self.tree, self.codes[steps], inputs=inputs)

    def joined(self, other: StepContexts) -> StepContexts:
        """Append contexts of more steps, in the same tree."""
        inputs = self.inputs
        if inputs is not None and other.inputs is not None:
            inputs = np.concatenate([inputs, other.inputs])
        return StepContexts(self.tree, np.concatenate([self.codes, other.codes]), inputs=inputs)


class Contexts(Role):
    """Categories, which may be missing and may be new.

    The categories are learnt, by first appearance.
    """

    kind = "context"

    def learn(self, columns: Array, learnt: Categories | None) -> tuple[Categories, list[str]]:
        names = [f"The column {label!r} of contexts" for label in self.labels]
        categories, texts = find_categories(columns, learnt, names), []
        for label, values, found in zip(self.labels, columns.T, categories, strict=True):
            n_present = int((~is_missing(values)).sum())
            if len(found) >= LEAST_VALUES and 2 * len(found) > n_present:
                texts.append(
                    f"The column {label!r} of contexts has {len(found)} values in {n_present} "
                    "rows, and every value is a context of its own, which learns from its "
                    "rows alone. Bin it before fit: pandas.qcut(column, 4, labels=False)."
                )
        return categories, texts

    def encode(self, columns: Array, learnt: Categories | None) -> Labels:
        return encode_contexts(columns, learnt or ((),) * self.n_columns)


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
    """Values of every column: known values, then further values by first appearance.

    `names` are the names of the columns, for errors.
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
            # Intervals of pandas, as its cut makes them.
            is_value |= type(value).__name__ in ("Interval", "Period")
            if not (is_value or is_number(value)):
                raise TypeError(f"A context is {value!r}; expected numbers or strings.")
    return entries


def encode_contexts(columns: Array, categories: Categories, what: str | None = None) -> Labels:
    """Encode columns of contexts.

    Codes are the index of the category, -1 where it is missing; further values have the indices
    after the categories.
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
