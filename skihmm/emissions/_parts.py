"""An emission as a list of parts; only a product has several.

Functions of the parts alone are here, not methods of emissions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skihmm._typing import Array, Flags, Floats
from skihmm.emissions._base import BaseEmission


@dataclass(frozen=True)
class Part:
    """An emission that is no product, and its columns in X in the encoded order."""

    emission: BaseEmission
    columns: NDArray[np.intp]


def leaves(emission: BaseEmission) -> list[BaseEmission]:
    """Emissions of the parts, including the parts of nested products."""
    parts = emission._listed_parts()
    return [leaf for part, _ in parts for leaf in leaves(part)] if parts else [emission]


def parts_of(emission: BaseEmission, n_columns: int) -> list[Part]:
    """Parts of a fitted emission of so many columns, in the order of encoded columns."""

    def walk(emission: BaseEmission, columns: NDArray[np.intp]) -> list[Part]:
        parts = emission._listed_parts()
        if not parts:
            return [Part(emission, columns)]
        return [leaf for part, places in parts for leaf in walk(part, columns[places])]

    return walk(emission, np.arange(n_columns, dtype=np.intp))


def column_order(emission: BaseEmission, n_columns: int) -> NDArray[np.intp]:
    """Index in X of every column of values in the encoded data."""
    return np.concatenate([part.columns for part in parts_of(emission, n_columns)])


def _by_column(emission: BaseEmission, n_columns: int, name: str) -> Array:
    """Attribute of the parts, a number or one per column, for every encoded column."""
    if not emission._listed_parts():
        return np.full(n_columns, getattr(emission, name))
    return np.concatenate(
        [
            np.broadcast_to(getattr(part.emission, name), len(part.columns))
            for part in parts_of(emission, n_columns)
        ]
    )


def column_offsets(emission: BaseEmission, n_columns: int) -> Floats:
    """Offsets that encoding subtracts from the columns of values; 0 of symbols."""
    return _by_column(emission, n_columns, "_column_offsets")


def column_periods(emission: BaseEmission, n_columns: int) -> Floats:
    """Periods of the columns of values that are angles; infinite for other columns.

    The statistics' ``predictives`` of angles are means of exp(2 pi i value / period).
    """
    return _by_column(emission, n_columns, "_column_period")


def discrete_columns(emission: BaseEmission, n_columns: int) -> Flags:
    """Mask of the columns of values that are symbols or integers."""
    return _by_column(emission, n_columns, "_is_discrete")


def columns_that_look_back(emission: BaseEmission, n_columns: int) -> Flags:
    """Mask of the columns of values that depend on earlier rows."""
    return _by_column(emission, n_columns, "_looks_back")


def looks_back(emission: BaseEmission) -> bool:
    """Whether there are inputs that precede an observation in its sequence."""
    return any(leaf._looks_back for leaf in leaves(emission))


def n_known(emission: BaseEmission) -> list[int]:
    """Number of symbols that may be drawn, for every column of symbols."""
    return [
        len(values) for leaf in leaves(emission) if leaf._has_symbols for values in leaf.categories_
    ]


def symbol_columns(emission: BaseEmission, n_columns: int) -> Flags:
    """Mask of the columns of values that are symbols, without an order."""
    return _by_column(emission, n_columns, "_has_symbols")


def missing_values(codes: Array, limits: Sequence[int] | Flags) -> Flags:
    """Mask of the missing values: -1 for symbols, NaN for numbers."""
    return np.column_stack(
        [~(codes[:, c] >= 0) if limit else np.isnan(codes[:, c]) for c, limit in enumerate(limits)]
    )


def missing_entries(emission: BaseEmission, codes: Array) -> Flags:
    """Mask of the missing values of encoded data, without their inputs."""
    n_columns = codes.shape[1] - emission.n_inputs
    return missing_values(codes, symbol_columns(emission, n_columns))


def numeric_values(emission: BaseEmission, codes: Array) -> Array:
    """Columns of numbers of encoded data, for initialisation by k-means."""
    n_columns = codes.shape[1] - emission.n_inputs
    if not emission._listed_parts():
        # Another layout in memory would change the last digits of sums.
        return codes[:, : 0 if emission._has_symbols else n_columns]
    return codes[:, np.flatnonzero(~symbol_columns(emission, n_columns))]


def preferred_jobs(emission: BaseEmission, is_free: bool = True) -> str:
    """Kind of joblib's workers: threads, unless a part, or a sampler, holds the GIL."""
    is_free &= all(getattr(leaf, "releases_gil", True) for leaf in leaves(emission))
    return "threads" if is_free else "processes"
