"""Segments of a path: stretches of steps with one label, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from skihmm._data.frames import frame_of_columns, library_of
from skihmm._data.sequences import Sequences
from skihmm._data.validation import as_array, check_integer
from skihmm._texts import state_names
from skihmm._typing import Array, Flags, Floats, Integers, MatrixLike, VectorLike
from skihmm._using.decoding import frozen_model
from skihmm._using.fitted import FittedModel

# Evenly spaced draws of which probabilities are averages.  Probabilities of 100 draws differ by .02
# on average where states overlap, and take longer than a fit with Student's t noise.
_MOST_DRAWS = 25


def borders_of(path: Array, starts: Integers, ends: Flags | None = None) -> NDArray[np.intp]:
    """First steps of the segments, and the number of steps at the end.

    A segment begins where the label changes or a sequence begins, and where the mask `ends` of
    steps that belong to no segment changes.
    """
    is_border = np.zeros(len(path) + 1, dtype=bool)
    is_border[starts] = is_border[-1] = True
    is_border[1:-1] |= path[1:] != path[:-1]
    if ends is not None:
        is_border[1:-1] |= ends[1:] != ends[:-1]
    return np.flatnonzero(is_border)


def are_left(
    path: Array, starts: Integers, n_states: int, ends: Flags | None = None
) -> NDArray[np.bool_]:
    """Whether another state follows a state within a sequence of the path."""
    begins = np.setdiff1d(borders_of(path, starts, ends)[:-1], starts)
    if ends is not None:
        begins = begins[~ends[begins]]
    return np.isin(np.arange(n_states), path[begins - 1])


def table_of_segments(
    fitted: FittedModel,
    X: MatrixLike | None,
    min_dwell: int,
    groups: VectorLike | None,
    lengths: VectorLike | None,
    states: VectorLike | None,
    names: Mapping[int, str] | None,
    library: str | None,
) -> Any:
    """Segments as a frame of a library, or a record array; see ``HCRPHMM.segments``."""
    if check_integer("min_dwell", min_dwell, 1) > 1 and states is not None:
        raise ValueError(
            f"min_dwell={min_dwell} with states: the path is the given one. Leave states out, or "
            f"pass states=hmm.predict(X, min_dwell={min_dwell})."
        )
    if X is None:
        if groups is not None or lengths is not None:
            raise ValueError(
                "groups or lengths were given without X: the training steps have those "
                "of the fit. Leave them out, or pass X too."
            )
        sequences = fitted.sequences
        path: Array | None = fitted.labels if min_dwell == 1 else None
    else:
        sequences = fitted.encode(X, groups, lengths)
        path = None
    if states is not None:
        path = _checked_labels(states, sequences.n_steps)
        probs = _label_probabilities(fitted, sequences, path)
    else:
        if path is None:
            path = fitted.model(sequences).viterbi(min_dwell)[1]
        of_all = fitted.draws.has_states
        every = fitted.state_probs(sequences, "smooth", of_all_draws=of_all, max_draws=_MOST_DRAWS)
        probs = every[np.arange(len(path)), path]
    ends = fitted.missing_ends(sequences)
    labels = None if names is None else _named(names, path, fitted.n_states, states is not None)
    return segment_table(path, probs, sequences.starts, ends, groups, X, library, labels)


def _named(names: Mapping[int, str], path: Array, n_states: int, is_given: bool) -> Array:
    """Names of all labels of a path; of labels of a user's own there may be more."""
    if path.dtype.kind not in "iu":
        raise ValueError(
            f"names={names!r} with states that are no integers, so they have names already; "
            "expected names=None."
        )
    if is_given:
        n_states = int(path.max(initial=0)) + 1
    found = dict(enumerate(state_names(names, n_states)))
    return np.array([found.get(k, str(k)) for k in path.tolist()])


def segment_table(
    path: Array,
    probs: Floats,
    starts: NDArray[np.intp],
    ends: Flags | None = None,
    groups: VectorLike | None = None,
    X: MatrixLike | None = None,
    library: str | None = None,
    labels: Array | None = None,
) -> Any:
    """Table of the segments of a path, and of the probabilities of its states in every step.

    `ends` masks the steps that belong to no segment, and `labels` are names of the path.
    """
    borders = borders_of(path, starts, ends)
    means = np.add.reduceat(probs, borders[:-1]) / np.diff(borders)
    is_segment = np.ones(len(means), dtype=bool) if ends is None else ~ends[borders[:-1]]
    begins, stops = borders[:-1][is_segment], borders[1:][is_segment]
    number = np.searchsorted(starts, begins, side="right") - 1
    ids = np.arange(len(starts))
    if groups is not None:
        ids = column_or_1d(groups, dtype=None)[starts]
    columns: dict[str, Any] = {
        "sequence": ids[number],
        "start": begins,
        "stop": stops,
        "n_steps": stops - begins,
        "state": (path if labels is None else labels)[begins],
        "probability": means[is_segment],
    }
    if library is None:
        dtype = [(name, values.dtype) for name, values in columns.items()]
        return np.rec.fromarrays(list(columns.values()), dtype=dtype)
    index = getattr(X, "index", None) if library_of(X) == "pandas" else None
    if index is not None:
        columns["start"] = index[begins]
        columns["stop"] = _rows_after(index, starts, stops)
    return frame_of_columns(library, columns.items())


def _checked_labels(states: VectorLike, n_steps: int) -> Array:
    labels = as_array("states", states)
    if labels.shape != (n_steps,) or labels.dtype.kind not in "iubUSO":
        raise ValueError(
            f"states has the shape {labels.shape} and type {labels.dtype}; expected "
            f"{n_steps} integers or strings, one label per row."
        )
    if labels.dtype == object:
        kind = str if isinstance(labels[0], str) else int | np.integer
        wrong = [not isinstance(each, kind) or isinstance(each, bool) for each in labels]
        if any(wrong):
            row = int(np.argmax(wrong))
            raise ValueError(
                f"states[{row}] is {labels[row]!r}, and states[0] is {labels[0]!r}; expected "
                "integers, or strings, in all rows. Rows without a label need a label of their own."
            )
    return labels


def _label_probabilities(fitted: FittedModel, sequences: Sequences, labels: Array) -> Floats:
    """Probability of every step's label, averaged over the draws.

    Labels may be coarser than states, or have other numbers: each state of a draw counts
    to the label with which it shares most steps.
    """
    chosen, weights = fitted.draws.weighted(_MOST_DRAWS)
    draws, sequences = fitted.with_subjects(chosen, sequences)
    names, codes = np.unique(labels, return_inverse=True)
    total = np.zeros(len(codes))
    for draw, weight in zip(draws, weights / weights.sum(), strict=True):
        probs = frozen_model(draw, sequences, fitted.emission).smooth()
        shared = [np.bincount(codes, column, len(names)) for column in probs.T]
        owner = np.argmax(shared, axis=1)
        total += weight * (probs * (owner == codes[:, None])).sum(axis=1)
    return total


def _rows_after(index: Any, starts: NDArray[np.intp], stops: NDArray[np.intp]) -> list[object]:
    """Index value of the row after every segment.

    After the last segment of a sequence it is that at which the index would go on, and
    None where it has no steps.
    """
    ends = np.append(starts[1:], len(index))
    values = list(index[np.minimum(stops, len(index) - 1)])
    for i in np.flatnonzero(np.isin(stops, ends)).tolist():
        first = starts[np.searchsorted(starts, stops[i]) - 1]
        values[i] = _next_value(index[first : stops[i]])
    return values


def _next_value(index: Any) -> object:
    last, freq = index[-1], getattr(index, "freq", None)
    try:
        if freq is None:
            freq = last - index[-2]
        following = last + freq
        return following if following > last else None
    except (TypeError, IndexError, ValueError, OverflowError):
        # Names do not go on, one row does not show how, and times end (OutOfBoundsDatetime is a
        # ValueError).
        return None
