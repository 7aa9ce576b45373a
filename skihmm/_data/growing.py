"""Rows of a fit, and the rows that are added to them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from skihmm._data.row_index import IndexEnd as End
from skihmm._data.row_index import index_ends, warn_of_joins
from skihmm._data.validation import as_array, unmask
from skihmm._typing import Array, Flags, VectorLike

# Id of the single sequence of data without groups and lengths.
SINGLE: Hashable = ("all rows without groups",)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they were passed, in whole sequences.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        A copy, which no change of the data between calls reaches.
    starts : ndarray of shape (n_sequences,)
    ids : tuple
        Id of every sequence; None of a sequence that only has a length.
    states : ndarray of shape (n_samples,), int64, or None
        Known states, -1 where there is none.
    ends : tuple of (IndexEnd or None)
        What the index of a data frame says of every sequence.
    """

    X: Array
    starts: NDArray[np.intp]
    ids: tuple[Hashable, ...]
    states: NDArray[np.int64] | None
    ends: tuple[End | None, ...]

    @classmethod
    def of_call(
        cls,
        X: object,
        values: Array,
        starts: NDArray[np.intp],
        groups: VectorLike | None,
        lengths: VectorLike | None,
        states: NDArray[np.int64] | None,
    ) -> Rows:
        """Rows of a call with checked arguments; `values` are the entries of X."""
        ids = _ids_of(groups, lengths, starts)
        return cls(values.copy(), starts, ids, states, index_ends(X, starts))

    @property
    def lengths(self) -> NDArray[np.intp]:
        """Number of rows of every sequence."""
        return np.diff([*self.starts, len(self.X)])

    def grown(self, added: Rows) -> Grown:
        """Append rows to the sequences that they continue, and new sequences.

        It raises ValueError if it is unknown which sequence goes on, and TypeError if ids have
        another type than before.
        """
        follows, ids = _continued_by(self.ids, added.ids)
        of_row = np.concatenate(
            [np.repeat(np.arange(len(self.ids)), self.lengths), np.repeat(follows, added.lengths)]
        )
        order = np.argsort(of_row, kind="stable")
        states = None
        if self.states is not None or added.states is not None:
            states = np.concatenate([_labels(self), _labels(added)])[order]
        ends = [*self.ends, *[None] * (len(ids) - len(self.ids))]
        for place, end in zip(follows.tolist(), added.ends, strict=True):
            before = self.ends[place] if place < len(self.ends) else None
            ends[place] = end if place >= len(self.ends) or end is None else end.after(before)
        whole = Rows(
            _concatenated(self.X, added.X)[order],
            np.flatnonzero(np.diff(of_row[order], prepend=-1)),
            ids,
            states,
            tuple(ends),
        )
        return Grown(whole, order >= len(self.X), follows < len(self.ids))

    def warn_of_joins(self, added: Rows) -> None:
        """Warn of added rows whose index does not follow the index of the earlier rows."""
        places = {value: i for i, value in enumerate(self.ids) if value is not None}
        ends = [self.ends[places[i]] if i in places else None for i in added.ids]
        warn_of_joins(ends, added.ends, added.starts)


@dataclass(frozen=True, eq=False)
class Grown:
    """Rows with others that were added.

    Attributes
    ----------
    rows : Rows
        All rows, in whole sequences, which are in the order of their first rows.
    are_added : ndarray of shape (n_samples,), bool
    go_on : ndarray of bool
        Whether each of the added sequences continues an earlier sequence.
    """

    rows: Rows
    are_added: Flags
    go_on: Flags


def _labels(rows: Rows) -> NDArray[np.int64]:
    if rows.states is None:
        return np.full(len(rows.X), -1, dtype=np.int64)
    return rows.states


def _concatenated(one: Array, other: Array) -> Array:
    """Rows of both; NumPy would make strings of numbers beside strings."""
    if (one.dtype.kind in "US") != (other.dtype.kind in "US"):
        one, other = one.astype(object), other.astype(object)
    return np.concatenate([one, other])


def _ids_of(
    groups: VectorLike | None, lengths: VectorLike | None, starts: NDArray[np.intp]
) -> tuple[Hashable, ...]:
    if lengths is not None:
        return (None,) * len(starts)
    if groups is None:
        return (SINGLE,)
    groups = unmask(groups)
    if isinstance(groups, list | tuple | np.ndarray):
        groups = as_array("groups", groups)
    ids: list[Hashable] = column_or_1d(groups, dtype=None)[starts].tolist()
    return tuple(ids)


def _continued_by(
    before: tuple[Hashable, ...], ids: tuple[Hashable, ...]
) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    """For every sequence the earlier one that it continues, or its own number; and all ids."""
    if ids == (SINGLE,) and before != (SINGLE,):
        raise ValueError(
            "X has neither groups nor lengths, but the earlier rows have, so that it is unknown "
            f"which of their sequences ({len(before)}) the rows of X continue. "
            "Pass groups=, with an earlier id for a sequence that goes on and another id for a "
            "new sequence, or lengths=[len(X)] for a new sequence."
        )
    _check_types(before, ids)
    places = {value: i for i, value in enumerate(before) if value is not None}
    follows, every = [], list(before)
    for value in ids:
        follows.append(places.get(value, len(every)) if value is not None else len(every))
        if follows[-1] == len(every):
            every.append(value)
    return np.array(follows, dtype=np.intp), tuple(every)


def _check_types(before: tuple[Hashable, ...], ids: tuple[Hashable, ...]) -> None:
    """Refuse strings for numbers: "1" would begin a new sequence beside 1."""
    named = [[i for i in some if i is not None and i != SINGLE] for some in (before, ids)]
    kinds = [{isinstance(i, str) for i in some} for some in named]
    other = next((i for i in named[1] if isinstance(i, str) not in kinds[0]), None)
    if len(kinds[0]) == 1 and other is not None:
        words = ("strings", "numbers") if isinstance(named[0][0], str) else ("numbers", "strings")
        raise TypeError(
            f"groups has the id {other!r}; ids of earlier calls are {words[0]}, such as "
            f"{named[0][0]!r}, not {words[1]}. Pass ids of the same type."
        )
