"""Records of chains and posterior draws: plain arrays in dicts, for files and pickles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Required, TypeAlias, TypedDict, TypeVar, cast

import numpy as np

from skihmm._typing import Floats, Integers, Labels, NamedValues

# Hyperparameters of an emission, by name; arrays have one entry per column.
Hyperparameters: TypeAlias = Mapping[str, float | Floats]

# Names of hyperparameters of transitions, as in visit_hyperparameters (_transitions_record.hpp).
HYPERPARAMETERS = ("alpha", "gamma")
STAY_PRIOR = "stay_prior"
STAY_MEAN, STAY_PRECISION, STAY_SCALE = "stay_mean", "stay_precision", "stay_scale"
CONTEXT_ALPHA = "context_alpha"


class SeatingRecord(TypedDict):
    """Cells of a seating, sorted by (row, dish), and table sizes in their order."""

    rows: Integers
    dishes: Integers
    n_customers: Integers
    n_tables: Integers
    sizes: Integers


class TransitionsRecord(SeatingRecord, total=False):
    """Record of the transitions: the seating, and what else ``Franchise`` has of them."""

    # With coins: the number of stays of every state.
    stays: Integers
    # With contexts: the seatings of depth 2, 3, ..., and the tree; with coins the number
    # of draws after every state and, last, of sequences.
    levels: list[SeatingRecord]
    contexts: Mapping[str, object]
    draws: Integers
    # With inputs of staying: by state mean and covariance of the coefficients of
    # standardised inputs, and of the intercept, last, as lower triangles; and the mean
    # probability of the coin to leave, over the steps after the state; and the log of the
    # probability by which all steps of the draw stay or leave.
    coins: Floats
    leaves: Floats
    log_ways: float
    stay_scale: Floats
    alpha: float
    gamma: float


class EmissionRecord(TypedDict, total=False):
    """Statistics of an emission; which entries there are depends on its kind."""

    # Symbols.
    columns: list[SeatingRecord]
    alpha: float
    gamma: float
    # Symbols with contexts: seatings of depth 2, 3, ... of all columns, and the tree.
    levels: list[list[SeatingRecord]]
    contexts: Mapping[str, object]
    context_alpha: Floats
    # Conjugate families: sufficient statistics, shape (n_states, width), and the
    # hyperparameters that are sampled.
    numbers: Floats
    hyperparameters: Floats
    # Offsets of subjects, and what belongs to them; see ``SubjectNumbers``.
    subjects: Floats
    # Products.
    parts: list[EmissionRecord]


class FixedNumbers(TypedDict, total=False):
    """What a conjugate family never draws; see ``conjugate_stats``."""

    shape: float
    dof: float
    period: float
    n_options: int
    has_exposure: int
    n_shifts: int


class ModelRecord(TypedDict):
    """What the compiled core needs of a posterior draw."""

    n_states: int
    transitions: TransitionsRecord
    emission: EmissionRecord


class StateRecord(ModelRecord, total=False):
    """A record of ``ChainState.to_arrays``."""

    states: Required[Integers]
    # With coins, by step: whether it is entered by a stay.
    stayed: Labels
    # Drawn values of missing entries, by part of the emission, step and column.
    filled: Floats
    # Weights of all rows, by part of the emission, step and column.
    weights: Floats


class ChainRecord(TypedDict):
    """Everything needed to continue a chain."""

    arrays: StateRecord
    stream: Mapping[str, object]
    n_sweeps: int


Record = TypeVar("Record")


def records_of_parts(record: EmissionRecord) -> list[EmissionRecord]:
    """Records of all parts, also of products in products; otherwise the record itself."""
    if "parts" not in record:
        return [record]
    return [part for inner in record["parts"] for part in records_of_parts(inner)]


def levels_of(record: TransitionsRecord) -> list[SeatingRecord]:
    """Seatings of the transitions, with contexts one for every depth."""
    return [record, *record.get("levels", ())]


def rows_of_levels(record: TransitionsRecord) -> list[tuple[int, bool]]:
    """Numbers of prefixes of the rows of every level, and whether rows have states, too."""
    contexts = record.get("contexts", {})
    parents = cast("list[Labels]", contexts.get("parents", []))
    n_before = cast("int", contexts.get("n_before", 0))
    sizes = [1, *map(len, parents)]
    return [(sizes[depth], depth >= n_before) for depth in range(len(levels_of(record)))]


def prefixes_of_levels(record: EmissionRecord) -> list[int]:
    """Numbers of prefixes of the rows of the levels of symbols, from the second on."""
    return [len(above) for above in cast("list[Labels]", record["contexts"]["parents"])]


def seatings(record: EmissionRecord) -> Iterator[SeatingRecord]:
    """Iterate over all seatings of a record."""
    for part in records_of_parts(record):
        yield from part.get("columns", ())
        for columns in part.get("levels", ()):
            yield from columns


def hyperparameters_of(record: TransitionsRecord) -> NamedValues:
    """Hyperparameters in the record of transitions, by name."""
    names = (*HYPERPARAMETERS, STAY_PRIOR, STAY_MEAN, STAY_PRECISION, STAY_SCALE, CONTEXT_ALPHA)
    values = cast(NamedValues, record)
    return {name: values[name] for name in names if name in values}


def occupancies_of(record: TransitionsRecord) -> Floats:
    """Number of steps in every state, from the record of transitions."""
    # Every step is a customer of the dish that is its state, or a stay.
    steps = np.bincount(record["dishes"], weights=record["n_customers"]).astype(np.float64)
    for level in levels_of(record)[1:]:
        # Tables of a level are customers of the one above.
        direct = level["n_customers"].astype(np.int64) - level["n_tables"]
        steps += np.bincount(level["dishes"], weights=direct, minlength=len(steps))
    return steps + record.get("stays", 0)


def map_integers(record: Record, change: Callable[[Integers], Integers]) -> Record:
    """Change every array of integers in nested dicts and lists."""
    changed: object = record
    if isinstance(record, dict):
        changed = {key: map_integers(value, change) for key, value in record.items()}
    elif isinstance(record, list):
        changed = [map_integers(value, change) for value in record]
    elif isinstance(record, np.ndarray) and record.dtype.kind in "iu":
        changed = change(record)
    return cast(Record, changed)
