"""Roles of given columns: what a recipe names, what it learns of them, how it encodes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType, NoneType
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.frames import find_columns
from skihmm._data.scales import column_means, column_variances, constant_columns
from skihmm._data.validation import (
    LARGEST_SIZE,
    LEAST_SIZE,
    as_array,
    is_missing_entry,
    is_number,
    shown,
)
from skihmm._data.wrong_values import describe_wrong, wrong_values
from skihmm._typing import Array, Flags, Floats


@dataclass(frozen=True)
class Role(ABC):
    """Columns of X that a recipe names in a parameter: given, not modelled.

    What a role learns of the columns is kept by the recipe, and passed to the methods of
    the role as `learnt`; None before the first data.

    Attributes
    ----------
    kind : {"context", "input", "subject"}
        Whether columns are categories, numbers or ids; a class attribute.
    parameter : str
        Name of the parameter, for errors.
    features : array-like of int, str or bool, or None
        Indices or names, or a mask of all columns, as scikit-learn's
        ``categorical_features``; the order of contexts is that of the hierarchy.
    hint : str
        Added to errors.
    """

    kind: ClassVar[str]
    parameter: str
    features: ArrayLike | None
    hint: str = ""

    @property
    def labels(self) -> list[str | int]:
        """Columns as the user named them; a mask's columns by their indices."""
        if self.features is None or np.ndim(self.features) != 1:
            return []
        listed = list(np.asarray(self.features, dtype=object))
        if listed and all(isinstance(entry, bool | np.bool_) for entry in listed):
            listed = np.flatnonzero(listed).tolist()
        return listed

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return 0 if self.features is None else len(self.labels)

    def columns(self, n_features: int, names: Sequence[str] | Array | None) -> list[int]:
        """Indices of the columns in X; ValueError or TypeError if there are no such."""
        if self.features is None:
            return []
        given = f"{self.parameter}={self.features!r}"
        # A set has no order, and a string would be one letter after another.
        if isinstance(self.features, str | set | dict) or np.ndim(self.features) != 1:
            raise TypeError(
                f"{given}; expected a list of names or indices of columns of X, or a mask."
            )
        listed = as_array(self.parameter, self.features).tolist()
        try:
            columns = find_columns(self.parameter, listed, n_features, names)
        except ValueError as error:
            raise ValueError(f"{error}{self.hint}") from None
        if len(set(columns)) < len(columns):
            raise ValueError(f"{given} has a column twice.")
        if len(columns) == n_features:
            raise ValueError(
                f"{given} are all columns of X; expected at least one other column, which "
                f"is observed.{self.hint}"
            )
        return columns

    def read(self, columns: Array) -> Array:
        """Check the types of columns of X, and convert the columns for the other methods."""
        return columns

    @abstractmethod
    def learn(self, columns: Array, learnt: Any) -> tuple[Any, list[str]]:
        """Add what further columns tell; return it with warnings of the columns."""

    @abstractmethod
    def encode(self, columns: Array, learnt: Any) -> Array:
        """Encode columns."""

    def typical(self, learnt: Any) -> list[object]:
        """Values that are used where the user gives none."""
        return [None] * self.n_columns


class Numbers(Role):
    """Numbers in the user's units; nothing is learnt."""

    kind = "input"

    def read(self, columns: Array) -> Floats:
        types = {float} if columns.dtype.kind in "biuf" else {*map(type, columns.flat)}
        if columns.dtype.kind in "biufO" and types <= {float, int, NoneType}:
            if NoneType in types:
                columns = np.where(columns == None, np.nan, columns)  # noqa: E711
            numbers = columns.astype(np.float64)
        else:
            numbers = np.full(columns.shape, np.nan)
            for (row, c), value in np.ndenumerate(columns):
                if is_missing_entry(value):
                    continue
                if not is_number(value):
                    raise ValueError(
                        f"The input {self.labels[c]!r} of row {row} is {value!r}; expected a "
                        "number. Categories are inputs as columns of 0 and 1 (OneHotEncoder)."
                    )
                numbers[row, c] = float(cast("float", value))
        for row, c in np.argwhere(np.abs(numbers) > LARGEST_SIZE):
            raise ValueError(
                f"The input {self.labels[c]!r} of row {row} is {shown(numbers[row, c])}; "
                f"expected numbers up to {LARGEST_SIZE:g} in size."
            )
        return numbers

    def learn(self, columns: Floats, learnt: Any) -> tuple[Any, list[str]]:
        return None, []

    def encode(self, columns: Floats, learnt: Any) -> Floats:
        return columns

    def typical(self, learnt: Any) -> list[object]:
        return [1.0] * self.n_columns


class Units(NamedTuple):
    """Means and standard deviations of inputs."""

    means: Floats
    scales: Floats


@dataclass(frozen=True)
class Inputs(Numbers):
    """Numbers less the means of the first data, over their standard deviations.

    Attributes
    ----------
    most : int
        Largest number of columns.
    farthest : float, default=1e6
        Size at which standardised inputs, which are wrong beyond, are clipped.
    owner : str, default=""
        Added to "input" in errors.
    """

    most: int = 200
    farthest: float = 1e6
    owner: str = ""

    def columns(self, n_features: int, names: Sequence[str] | Array | None) -> list[int]:
        columns = super().columns(n_features, names)
        if len(columns) > self.most:
            raise ValueError(
                f"{self.parameter} has {len(columns)} columns; expected at most "
                f"{self.most}. Reduce the inputs, as by PCA."
            )
        return columns

    def learn(self, columns: Floats, learnt: Units | None) -> tuple[Units, list[str]]:
        if learnt is not None:
            return learnt, []
        n_known = (~np.isnan(columns)).sum(axis=0)
        are_constant = constant_columns(columns, LEAST_SIZE)
        for c, label in enumerate(self.labels):
            name = f"input {label!r}{self.owner}"
            if n_known[c] == 0:
                raise ValueError(
                    f"Every entry of the {name} is missing. Check how X was read, or leave it "
                    f"out of {self.parameter}."
                )
            if n_known[c] == 1:
                raise ValueError(
                    f"The {name} has one known value, {np.nanmax(columns[:, c]):g}; expected "
                    "two or more. Check how X was read."
                )
            if are_constant[c]:
                raise ValueError(
                    f"The {name} is constant, {np.nanmax(columns[:, c]):g}: the intercept is "
                    f"in the model. Leave it out of {self.parameter}, or, if it varies by less "
                    "than its rounding errors, give it in other units, less its mean."
                )
        wrong = wrong_values(columns, are_series=False)
        usual = np.where(wrong, np.nan, columns) if wrong.any() else columns
        units = Units(column_means(usual), np.sqrt(column_variances(usual)))
        return units, describe_wrong(columns, self.labels, wrong)

    def encode(self, columns: Floats, learnt: Units | None) -> Floats:
        if learnt is not None:
            columns = (columns - learnt.means) / learnt.scales
        return np.clip(columns, -self.farthest, self.farthest)

    def typical(self, learnt: Units | None) -> list[object]:
        return [0.0] * self.n_columns if learnt is None else list(learnt.means.tolist())


class HasRoles:
    """Recipe of transitions, or of an emission, with given columns of X.

    Methods take the given columns alone, in the order of the roles.
    """

    # What was learnt of the first data, and of further data, by parameter; empty before.
    _learnt: Mapping[str, Any] = MappingProxyType({})
    # Warnings of the first data.
    _given_warnings: tuple[str, ...] = ()
    # Warning of columns in braces that some steps lack.
    _lacking: ClassVar[str] = "lack an input ({}) and are missing as a whole"

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

    def _read(self, columns: Array) -> Iterator[tuple[Role, Array, Any]]:
        """Every role that has columns, with its columns and what was learnt of them."""
        stop = 0
        for role in self.roles():
            start, stop = stop, stop + role.n_columns
            if start < stop:
                own = role.read(columns[:, start:stop])
                yield role, own, self._learnt.get(role.parameter)

    def with_given(self, columns: Array) -> Self:
        """Copy the recipe with categories and units of given columns, before it is fitted.

        New categories follow known categories.  Units of numbers come from the first
        data.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_given)

        Returns
        -------
        recipe : the class of the recipe
            A copy; the recipe itself without given columns.
        """
        fitted, read = copy(self), list(self._read(columns))
        if not read:
            return self
        new = {role.parameter: role.learn(own, learnt) for role, own, learnt in read}
        fitted._learnt = {**self._learnt, **{name: learnt for name, (learnt, _) in new.items()}}
        if not self._learnt:
            lacking = self._describe_lacking(read, np.ones(len(columns), dtype=bool))
            found = [text for _, texts in new.values() for text in texts]
            fitted._given_warnings = (*found, *lacking)
        return fitted

    def _encoded(self, columns: Array) -> list[Array]:
        """Encode given columns, one array per role that has columns."""
        return [role.encode(own, learnt) for role, own, learnt in self._read(columns)]

    def _warnings_of_lacking(self, columns: Array, with_inputs: Flags) -> list[str]:
        """Warnings of steps that lack an input, among the steps of a mask."""
        return self._describe_lacking(self._read(columns), with_inputs)

    def _describe_lacking(
        self, read: Iterable[tuple[Role, Array, Any]], with_inputs: Flags
    ) -> list[str]:
        inputs = [(role, own) for role, own, _ in read if role.kind == "input"]
        if not inputs:
            return []
        lacks = np.isnan(np.hstack([own for _, own in inputs])) & with_inputs[:, None]
        labels = [label for role, _ in inputs for label in role.labels]
        lost = [repr(labels[c]) for c in np.flatnonzero(lacks.any(axis=0))]
        if not lost:
            return []
        return [
            f"{lacks.any(axis=1).sum()} of {len(lacks)} steps "
            f"{self._lacking.format(', '.join(lost))}. Impute the inputs before, if they can be."
        ]
