"""Records of chains and posterior draws: plain arrays in dicts, for files and pickles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, TypedDict

import numpy as np

from skihmm._typing import Floats, Integers, Labels

# Of an emission, by name; arrays hold one per column.
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
    """The seating of the transitions.

    Attributes
    ----------
    alpha, gamma : float
        Concentrations.
    """

    alpha: float
    gamma: float


class EmissionRecord(TypedDict, total=False):
    """Statistics of an emission; which of the entries there are depends on its kind.

    Attributes
    ----------
    columns : list of SeatingRecord
        Of symbols: counts, and tables where states share a base measure.
    alpha, gamma : float
        Of symbols: concentrations.
    numbers : ndarray of shape (n_states, width)
        Of conjugate families: sufficient statistics of every state.
    hyperparameters : ndarray
        Of conjugate families: those that are sampled.
    parts : list of EmissionRecord
        Of products.
    """

    columns: list[SeatingRecord]
    alpha: float
    gamma: float
    numbers: Floats
    hyperparameters: Floats
    parts: list[EmissionRecord]


class ModelRecord(TypedDict):
    """What the compiled core needs of a posterior draw.

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
    """Statistics of the columns of an emission, as particle filters take them.

    Attributes
    ----------
    columns : list of SeatingRecord or EmissionRecord
        What ``EmissionStats.records`` returns.
    """

    columns: list[SeatingRecord | EmissionRecord]


class ParticleRecord(TypedDict):
    """What particle filters need of a posterior draw.

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
    """``ChainState.to_arrays()``.

    Attributes
    ----------
    states : ndarray of shape (n_samples,), int32
    """

    states: Labels


class ChainRecord(TypedDict):
    """Everything that a chain goes on from.

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
    """All seatings in an emission's record, those of its parts included.

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


def map_seating(
    record: SeatingRecord, change: Callable[[Integers], Integers]
) -> SeatingRecord:
    """Change every array of a seating.

    Parameters
    ----------
    record : SeatingRecord
    change : callable

    Returns
    -------
    record : SeatingRecord
    """
    return {
        "rows": change(record["rows"]),
        "dishes": change(record["dishes"]),
        "n_customers": change(record["n_customers"]),
        "n_tables": change(record["n_tables"]),
        "sizes": change(record["sizes"]),
    }


def sorted_seating(
    record: SeatingRecord, rows: Integers, dishes: Integers
) -> SeatingRecord:
    """A seating under new row and dish numbers, sorted by (row, dish).

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
