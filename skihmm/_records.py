"""Records of chains and posterior draws: plain arrays in dicts, for files and pickles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Required, TypeAlias, TypedDict, TypeVar, cast

import numpy as np

from skihmm._typing import Floats, Integers, Labels

# Hyperparameters of an emission, by name; arrays have one entry per column.
Hyperparameters: TypeAlias = Mapping[str, float | Floats]


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
    # With a shortest dwell: that of advances to the next stage, and the recipe.
    advances: Integers
    n_stages: int
    # With contexts: the seatings of depth 2, 3, ..., and the tree; with coins the number
    # of draws after every state and, last, of sequences.
    levels: list[SeatingRecord]
    contexts: Mapping[str, object]
    draws: Integers
    # With inputs of staying: by state mean and covariance of the coefficients of
    # standardised inputs, and of the intercept, last, as lower triangles; and the mean
    # probability of the coin to leave, over the steps after the state; and the log of the
    # probability by which all steps of the draw stay, advance or leave.
    coins: Floats
    leaves: Floats
    log_ways: float
    stay_scale: Floats
    alpha: float


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
    # With coins, by step: whether it is entered by a stay; or the stage of its state.
    stayed: Labels
    stages: Labels
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


def seatings(record: EmissionRecord) -> Iterator[SeatingRecord]:
    """Iterate over all seatings of a record, those of parts included."""
    yield from record.get("columns", ())
    for columns in record.get("levels", ()):
        yield from columns
    for part in record.get("parts", ()):
        yield from seatings(part)


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
