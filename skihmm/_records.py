"""Records of chains and posterior draws: plain arrays in dicts, for files and pickles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, TypedDict, TypeVar, cast

import numpy as np

from skihmm._typing import Floats, Integers, Labels

# Hyperparameters of an emission, by name; arrays have one entry per column.
Hyperparameters: TypeAlias = Mapping[str, float | Floats]


class SeatingRecord(TypedDict):
    """Cells of a seating, sorted by (row, dish).

    Attributes
    ----------
    rows, dishes : ndarray of int
        Restaurant and dish of every cell.
    n_customers, n_tables : ndarray of int
        Customers and tables of every cell.
    sizes : ndarray of int
        Customers of every table, in the order of the cells.
    """

    rows: Integers
    dishes: Integers
    n_customers: Integers
    n_tables: Integers
    sizes: Integers


class TransitionsRecord(SeatingRecord):
    """Seating of the transitions.

    Attributes
    ----------
    alpha, gamma : float
        Concentrations.
    """

    alpha: float
    gamma: float


class EmissionRecord(TypedDict, total=False):
    """Statistics of an emission; the entries depend on its kind.

    Attributes
    ----------
    columns : list of SeatingRecord
        Symbols: counts, and tables where states share a base measure.
    alpha, gamma : float
        Symbols: concentrations.
    numbers : ndarray of shape (n_states, width)
        Conjugate families: sufficient statistics of every state.
    hyperparameters : ndarray
        Conjugate families: hyperparameters that are sampled.
    parts : list of EmissionRecord
        Products: records of the parts.
    """

    columns: list[SeatingRecord]
    alpha: float
    gamma: float
    numbers: Floats
    hyperparameters: Floats
    parts: list[EmissionRecord]


class ModelRecord(TypedDict):
    """Part of a posterior draw for the compiled core.

    Attributes
    ----------
    n_states : int
    transitions : TransitionsRecord
    emission : EmissionRecord
    """

    n_states: int
    transitions: TransitionsRecord
    emission: EmissionRecord


class ParticleEmissionRecord(TypedDict):
    """Statistics of the columns of an emission for particle filters.

    Attributes
    ----------
    columns : list of SeatingRecord or EmissionRecord
        Result of ``EmissionStats.records``.
    """

    columns: list[SeatingRecord | EmissionRecord]


class ParticleRecord(TypedDict):
    """Part of a posterior draw for particle filters.

    Attributes
    ----------
    n_states : int
    transitions : TransitionsRecord
    emission : ParticleEmissionRecord
    """

    n_states: int
    transitions: TransitionsRecord
    emission: ParticleEmissionRecord


class StateRecord(ModelRecord):
    """Result of ``ChainState.to_arrays()``.

    Attributes
    ----------
    states : ndarray of shape (n_samples,), int32
    """

    states: Labels


class ChainRecord(TypedDict):
    """State from which a chain continues bit for bit.

    Attributes
    ----------
    arrays : StateRecord
    stream : dict
        State of NumPy's bit generator.
    n_sweeps : int
    """

    arrays: StateRecord
    stream: Mapping[str, object]
    n_sweeps: int


Record = TypeVar("Record")


def _same(numbers: Floats) -> Floats:
    return numbers


def map_emission(
    record: EmissionRecord,
    seating: Callable[[SeatingRecord], SeatingRecord],
    numbers: Callable[[Floats], Floats] = _same,
) -> EmissionRecord:
    """Change the seatings and the sufficient statistics in an emission's record.

    Parameters
    ----------
    record : EmissionRecord
    seating, numbers : callable
        The changes.

    Returns
    -------
    record : EmissionRecord
    """
    changed = record.copy()
    if "columns" in record:
        changed["columns"] = [seating(column) for column in record["columns"]]
    if "numbers" in record:
        changed["numbers"] = numbers(record["numbers"])
    if "parts" in record:
        changed["parts"] = [
            map_emission(part, seating, numbers) for part in record["parts"]
        ]
    return changed


def seatings(record: EmissionRecord) -> Iterator[SeatingRecord]:
    """Iterate over all seatings in an emission's record and its parts.

    Parameters
    ----------
    record : EmissionRecord

    Yields
    ------
    seating : SeatingRecord
    """
    yield from record.get("columns", ())
    for part in record.get("parts", ()):
        yield from seatings(part)


def map_integers(record: Record, change: Callable[[Integers], Integers]) -> Record:
    """Change every array of integers in nested dicts and lists.

    Parameters
    ----------
    record : dict, list, ndarray or object
    change : callable

    Returns
    -------
    record : dict, list, ndarray or object
    """
    changed: object = record
    if isinstance(record, dict):
        changed = {key: map_integers(value, change) for key, value in record.items()}
    elif isinstance(record, list):
        changed = [map_integers(value, change) for value in record]
    elif isinstance(record, np.ndarray) and record.dtype.kind in "iu":
        changed = change(record)
    return cast(Record, changed)


def sorted_seating(
    record: SeatingRecord, rows: Integers, dishes: Integers
) -> SeatingRecord:
    """Renumber the rows and dishes of a seating and sort it by (row, dish).

    Parameters
    ----------
    record : SeatingRecord
    rows, dishes : ndarray of int
        The new numbers of every cell.

    Returns
    -------
    record : SeatingRecord
    """
    order = np.lexsort((dishes, rows))
    n_tables = record["n_tables"]
    ends = np.cumsum(n_tables)
    sizes = [
        record["sizes"][end - n : end]
        for end, n in zip(ends[order], n_tables[order], strict=True)
    ]
    return {
        "rows": rows[order].astype(np.int32),
        "dishes": dishes[order].astype(np.int32),
        "n_customers": record["n_customers"][order],
        "n_tables": n_tables[order],
        "sizes": np.concatenate(sizes) if sizes else record["sizes"],
    }
