"""Other numbers for the states of a fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from skihmm._data.validation import check_choice
from skihmm._draws import Draw, occupancy_order
from skihmm._records import (
    EmissionRecord,
    SeatingRecord,
    TransitionsRecord,
    levels_of,
    prefixes_of_levels,
    rows_of_levels,
)
from skihmm._typing import Integers, Labels, VectorLike
from skihmm._using.fitted import FittedModel, described_emission

Record = TypeVar("Record", TransitionsRecord, EmissionRecord)


def order_for(
    labels: Labels,
    n_states: int,
    n_known: int,
    by: VectorLike | str | None,
    like: VectorLike | None,
    what: str = "state",
) -> NDArray[np.intp]:
    """States, or regimes, in a new order, by the user's arguments; see ``HCRPHMM.renumber``."""
    if (by is None) == (like is None):
        raise ValueError(
            f"by={by!r:.100} and like={like!r:.100}; expected one of them: by, a number for every "
            f'{what} or "size", or like, earlier labels.'
        )
    if like is not None:
        order = _pair(_checked_labels(like, len(labels)), labels, n_states)
    elif isinstance(by, str):
        check_choice("by", by, ("size",))
        order = occupancy_order(labels, n_states)
    else:
        order = np.argsort(_checked_keys(cast("ArrayLike", by), n_states, what), kind="stable")
    return _known_first(order, n_known)


def order_like(fitted: FittedModel, like: Labels) -> NDArray[np.intp]:
    """Order of the states that keeps the numbers of labels, -1 of steps without one."""
    order = _pair(like, fitted.labels, fitted.n_states)
    return _known_first(order, len(fitted.sequences.known_labels))


def _known_first(order: Integers, n_known: int) -> NDArray[np.intp]:
    """Known states are the first, in the order of their labels."""
    return np.concatenate([np.arange(n_known), order[order >= n_known]]).astype(np.intp)


def _checked_labels(like: VectorLike, n_steps: int) -> Labels:
    labels = np.asarray(like)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) > n_steps:
        raise ValueError(
            f"like has the shape {labels.shape} and the type {labels.dtype}; expected integers, "
            f"one for each of the first of the {n_steps} training steps, -1 where there is no "
            "label. labels_ of an earlier fit of these rows is such an array."
        )
    return labels.astype(np.int64)


def _checked_keys(by: ArrayLike, n: int, what: str) -> NDArray[np.float64]:
    try:
        keys = np.asarray(by, dtype=np.float64)
    except (TypeError, ValueError):
        keys = np.full(n, np.nan)
    if keys.shape != (n,) or np.isnan(keys).any():
        raise ValueError(
            f"by={by!r:.200}; expected {n} numbers, one for every {what}, none of them missing. "
            'by="size" needs no number.'
        )
    return keys


def _pair(like: Labels, labels: Labels, n_states: int) -> NDArray[np.intp]:
    """Order of states that keep their number for as many steps as possible.

    Numbers have no holes: a number that no state has any more goes to the state whose own number
    is too large, or to the largest new state.
    """
    steps = np.flatnonzero(like >= 0)
    number = np.full(n_states, -1)
    if len(steps):
        names, rows = np.unique(like[steps], return_inverse=True)
        overlap = np.zeros((len(names), n_states))
        np.add.at(overlap, (rows, labels[steps]), 1)
        row, column = linear_sum_assignment(overlap, maximize=True)
        is_pair = overlap[row, column] > 0
        number[column[is_pair]] = names[row[is_pair]]
    sizes = np.bincount(labels, minlength=n_states)
    rest = np.flatnonzero((number < 0) | (number >= n_states))
    is_new = number[rest] < 0
    rest = rest[np.lexsort((-sizes[rest], np.where(is_new, 0, number[rest]), is_new))]
    number[rest] = np.setdiff1d(np.arange(n_states), number)
    return np.argsort(number)


def renumbered(fitted: FittedModel, order: Integers) -> FittedModel:
    """Fitted model whose state k is the state that was `order[k]`.

    Other draws than the selected one keep their numbers: their states are matched by paths.
    """
    if (order == np.arange(len(order))).all():
        return fitted
    number, places = np.argsort(order), np.append(order, len(order))
    selected = _renumbered_draw(fitted.selected, number)
    draws = fitted.draws.with_draw(fitted.best, selected)
    return replace(
        fitted,
        draws=draws,
        labels=number[fitted.labels].astype(np.int32),
        startprob=fitted.startprob[places],
        transmat=fitted.transmat[np.ix_(places, places)],
        emission=described_emission(fitted.emission, draws, selected),
    )


def _renumbered_draw(draw: Draw, number: Integers) -> Draw:
    """Draw in which state k has the number `number[k]`."""
    states = draw.states
    return replace(
        draw,
        states=None if states is None else number[states].astype(states.dtype),
        last_state=int(number[draw.last_state]),
        transitions=_renumbered_transitions(draw.transitions, number),
        emission=_renumbered_emission(draw.emission, number),
    )


def _renumbered_transitions(record: TransitionsRecord, number: Integers) -> TransitionsRecord:
    order = np.argsort(number)
    kinds = rows_of_levels(record)
    levels = [
        _renumbered_cells(level, number if has_states else None, number, n_prefixes)
        for level, (n_prefixes, has_states) in zip(levels_of(record), kinds, strict=True)
    ]
    changed: TransitionsRecord = {**record, **levels[0]}
    if "levels" in record:
        changed["levels"] = levels[1:]
    _permute(changed, ("stays", "advances", "coins", "leaves"), order)
    # Sequences are the last entry.
    _permute(changed, ("draws",), np.append(order, len(order)))
    return changed


def _renumbered_emission(record: EmissionRecord, number: Integers) -> EmissionRecord:
    changed = record.copy()
    if "columns" in record:
        changed["columns"] = [_renumbered_cells(c, number, None, 1) for c in record["columns"]]
    if "levels" in record:
        changed["levels"] = [
            [_renumbered_cells(c, number, None, n_prefixes) for c in columns]
            for columns, n_prefixes in zip(
                record["levels"], prefixes_of_levels(record), strict=True
            )
        ]
    _permute(changed, ("numbers",), np.argsort(number))
    if "parts" in record:
        changed["parts"] = [_renumbered_emission(part, number) for part in record["parts"]]
    return changed


def _permute(record: Record, names: tuple[str, ...], order: Integers) -> None:
    """Bring entries with a row for every state into another order."""
    values = cast("dict[str, NDArray[np.float64]]", record)
    for name in names:
        if name in values:
            values[name] = np.ascontiguousarray(values[name][order])


def _renumbered_cells(
    seating: SeatingRecord, of_rows: Integers | None, of_dishes: Integers | None, n_prefixes: int
) -> SeatingRecord:
    """Seating with other numbers of the states in rows, and of dishes.

    A row is the number of a state, or of the start, times the number of prefixes, and a prefix.
    """
    rows, dishes = seating["rows"], seating["dishes"]
    if of_rows is not None:
        state, prefix = np.divmod(rows.astype(np.int64), n_prefixes)
        rows = np.append(of_rows, len(of_rows))[state] * n_prefixes + prefix
    if of_dishes is not None:
        dishes = of_dishes[dishes]
    order = np.lexsort((dishes, rows))
    n_tables = seating["n_tables"].astype(np.int64)
    first = (np.cumsum(n_tables) - n_tables)[order]
    n_tables = n_tables[order]
    # Sizes are in the order of the cells.
    begins = np.repeat(first - (np.cumsum(n_tables) - n_tables), n_tables)
    return {
        "rows": rows[order].astype(seating["rows"].dtype),
        "dishes": dishes[order].astype(seating["dishes"].dtype),
        "n_customers": seating["n_customers"][order],
        "n_tables": seating["n_tables"][order],
        "sizes": seating["sizes"][begins + np.arange(len(begins))],
    }
