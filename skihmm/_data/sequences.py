"""Encoded sequences: their boundaries and known states."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from skihmm._data.contexts import StepContexts
from skihmm._data.row_index import warn_of_index
from skihmm._data.validation import as_array, is_missing, unmask, warn_caller
from skihmm._typing import Array, Labels, VectorLike

# Share of the rows of unknown states, and fewest rows.
_MANY_NEW, _LEAST_NEW = 0.25, 20


@dataclass(frozen=True)
class Sequences:
    """Encoded observations and starts of sequences; shared by all chains.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_features + n_inputs)
        Values, and after them the inputs.
    starts : ndarray of shape (n_sequences,)
    known_states : ndarray of shape (n_samples,), int32, or None
        Index in `known_labels` of the state of every step, -1 where it is unknown.
    known_labels : ndarray of int64
        The user's labels of the known states, increasing.
    contexts : StepContexts or None
        Contexts, and inputs of staying, of all steps; None if transitions have neither.
    is_closed : bool
        Whether all steps are in known states.
    """

    codes: Array
    starts: NDArray[np.intp]
    known_states: Labels | None = None
    known_labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    contexts: StepContexts | None = None
    is_closed: bool = False

    @property
    def n_steps(self) -> int:
        """Number of time steps over all sequences."""
        return len(self.codes)

    @property
    def fingerprint(self) -> str:
        """Hash of all data that a chain uses."""
        content = [self.codes, self.starts.astype(np.int64)]
        if self.known_states is not None:
            content += [self.known_states, self.known_labels]
            content += [np.ones(1)] * self.is_closed
        if self.contexts is not None:
            content.append(self.contexts.codes)
            if self.contexts.inputs is not None:
                content.append(self.contexts.inputs)
        digest = hashlib.sha256()
        for values in content:
            digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()

    def labelled(self, labels: NDArray[np.int64] | None, is_closed: bool = False) -> Sequences:
        """Set the states that the user knows."""
        if labels is None or (labels < 0).all():
            if is_closed:
                raise ValueError(
                    "new_states=False keeps all rows in known states, but none is known; "
                    "pass states=..., a label >= 0 for some rows of every state (in a "
                    "search or pipeline by metadata routing)."
                )
            return self
        known = np.unique(labels[labels >= 0])
        places = np.where(labels < 0, -1, np.searchsorted(known, labels)).astype(np.int32)
        return replace(self, known_states=places, known_labels=known, is_closed=is_closed)

    def part(
        self, rows: slice | NDArray[np.intp], starts: NDArray[np.intp] | None = None
    ) -> Sequences:
        """Some of the steps without known states, by default as one sequence."""
        contexts = None if self.contexts is None else self.contexts.part(rows)
        starts = np.zeros(1, dtype=np.intp) if starts is None else starts
        return Sequences(self.codes[rows], starts, contexts=contexts)

    def joined(self, other: Sequences) -> Sequences:
        """Concatenate with other sequences, without known states."""
        contexts = self.contexts
        if contexts is not None and other.contexts is not None:
            contexts = contexts.joined(other.contexts)
        return Sequences(
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.starts, self.n_steps + other.starts]),
            contexts=contexts,
        )


def warn_of_new_states(labels: Labels, sequences: Sequences) -> None:
    """Warn if many rows whose state is not known are in states without a label."""
    known = sequences.known_states
    if known is None:
        return
    n_unknown = int((known < 0).sum())
    n_new = int((labels >= len(sequences.known_labels)).sum())
    if n_new > max(_MANY_NEW * n_unknown, _LEAST_NEW - 1):
        warn_caller(
            f"{n_new} of the {n_unknown} rows whose state is not known are in states "
            "that no label has: the emission describes a known state worse than several "
            "states do, or there are more. Try an emission with correlated columns "
            '("gaussian") or heavier tails, or new_states=False, which leaves the known '
            "states only."
        )


def check_states(states: VectorLike | None, n_samples: int) -> NDArray[np.int64] | None:
    """Check the user's known states.

    It raises ValueError if they are not one integer >= -1 per step.
    """
    if states is None:
        return None
    labels = as_array("states", states)
    expected = (
        f"expected {n_samples} integers, one per row of X: a label >= 0 where the state "
        "is known, -1 (or NaN) where it is not."
    )
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != n_samples:
        raise ValueError(f"states has the shape {labels.shape}; {expected}")
    if labels.dtype == object:
        # pandas' own integers, and None
        missing = is_missing(labels)
        if all(isinstance(value, Integral) for value in labels[~missing]):
            labels = np.where(missing, -1, labels).astype(np.int64)
    elif labels.dtype.kind == "f":
        # A column of a data frame with missing entries.
        filled = np.where(np.isnan(labels), -1.0, labels)
        if (np.floor(filled) == filled).all() and (abs(filled) <= 2.0**53).all():
            labels = filled.astype(np.int64)
    if labels.dtype.kind not in "iu":
        raise ValueError(
            f"states is of type {labels.dtype}; {expected} pandas.factorize(names)[0] "
            "gives such labels for names."
        )
    if (labels < -1).any() or (labels > np.iinfo(np.int64).max).any():
        row = np.flatnonzero((labels < -1) | (labels > np.iinfo(np.int64).max))[0]
        raise ValueError(f"states[{row}] = {labels[row]}; {expected}")
    return labels.astype(np.int64)


def sequence_starts(
    n_samples: int,
    groups: VectorLike | None = None,
    lengths: VectorLike | None = None,
) -> NDArray[np.intp]:
    """First step of every sequence, which begins where `groups` change."""
    if groups is not None and lengths is not None:
        raise ValueError(
            "Both groups and lengths were given; they say the same thing in two ways. "
            "Pass one of them."
        )
    if groups is not None:
        return _starts_of_groups(n_samples, groups)
    if lengths is not None:
        return _starts_of_lengths(n_samples, lengths)
    return np.zeros(1, dtype=np.intp)


def starts_of_rows(
    X: object, n_samples: int, groups: VectorLike | None, lengths: VectorLike | None
) -> NDArray[np.intp]:
    """First step of every sequence of X, with a warning if the index of X contradicts them."""
    starts = sequence_starts(n_samples, groups, lengths)
    warn_of_index(X, starts, are_named=groups is not None or lengths is not None)
    return starts


def _starts_of_groups(n_samples: int, groups: Any) -> NDArray[np.intp]:
    masked = [*np.flatnonzero(np.ma.getmask(groups))]
    groups = unmask(groups)
    if isinstance(groups, list | tuple | np.ndarray):
        groups = as_array("groups", groups)
    # NumPy takes a pipeline for a sequence of its steps.
    shape = () if hasattr(groups, "get_params") else np.shape(groups)
    if shape == ():
        raise TypeError(
            f"groups={groups!r} is of type {type(groups).__name__}; expected an array or "
            "list with one sequence id per row of X."
        )
    if len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(
            f"groups has the shape {shape}; expected a 1d array, one sequence id per row."
        )
    ids = column_or_1d(groups, dtype=None)
    if len(ids) != n_samples:
        raise ValueError(
            f"groups has {len(ids)} entries, but X has {n_samples} rows; expected one "
            "sequence id per row."
        )
    missing = [*masked, *np.flatnonzero(is_missing(ids))]
    if missing:
        raise ValueError(
            f"groups: the id of row {missing[0]} is missing; expected a sequence id for every row."
        )
    if ids.dtype == object:
        for row, value in enumerate(ids):
            try:
                hash(value)
            except TypeError:
                raise TypeError(
                    f"groups: the id of row {row} is {value!r}; expected numbers or strings."
                ) from None
    changed = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    starts = np.concatenate([np.zeros(1, dtype=np.intp), changed])
    seen: set[Hashable] = set()
    for start in starts:
        value = ids[start].item() if hasattr(ids[start], "item") else ids[start]
        if value in seen:
            raise ValueError(
                f"groups: the id {value!r} appears again at row {start} after another "
                "sequence; the rows of a sequence must be consecutive. Sort the rows "
                "by sequence, keeping the order of time inside each. If ids repeat in every "
                "animal, join the two: df.mouse + '/' + df.session.astype(str)."
            )
        seen.add(value)
    return starts


def _starts_of_lengths(n_samples: int, lengths: VectorLike | None) -> NDArray[np.intp]:
    sizes = as_array("lengths", lengths)
    if sizes.dtype == object and all(isinstance(size, Integral) for size in sizes.flat):
        sizes = np.array(sizes.tolist())  # pandas' own integers
    if sizes.ndim != 1 or len(sizes) == 0 or sizes.dtype.kind not in "iu":
        raise ValueError(
            f"lengths={lengths!r}; expected a one-dimensional array of integers, the "
            "number of rows of every sequence."
        )
    if (sizes < 1).any():
        raise ValueError(f"lengths holds {sizes.min()}; every sequence needs at least one row.")
    # NumPy's sum of integers overflows silently.
    total = sum(sizes.tolist())
    if total != n_samples:
        raise ValueError(
            f"lengths sum to {total}, but X has {n_samples} rows. (Under "
            "cross-validation a lengths array is not sliced together with X: pass "
            "groups, one sequence id per row, instead.)"
        )
    return np.cumsum([0, *sizes.tolist()[:-1]]).astype(np.intp)
