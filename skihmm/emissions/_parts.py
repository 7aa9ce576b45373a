"""Functions of the parts of an emission; only a product has several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skihmm._records import EmissionRecord
from skihmm._typing import Array, Flags
from skihmm.emissions._base import BaseEmission, Part
from skihmm.emissions._conjugate_emission import ConjugateEmission
from skihmm.emissions._given import n_given


def split(
    emission: BaseEmission, codes: Array, *, has_inputs: bool = True
) -> list[tuple[Part, Array]]:
    """Pair the parts with their columns of the codes, or of values alone, without inputs."""
    parts = emission.parts
    if len(parts) == 1:
        return [(parts[0], codes)]
    n_values = codes.shape[1] - has_inputs * emission.n_inputs
    n_columns = np.bincount(emission.columns(n_values).part)
    pairs, at, inputs_at = [], 0, n_values
    for part, n in zip(parts, n_columns.tolist(), strict=True):
        inputs_stop = inputs_at + part.emission.n_inputs
        columns = np.hstack([codes[:, at : at + n], codes[:, inputs_at:inputs_stop]])
        dtype = np.int32 if part.emission.is_categorical else np.float64
        pairs.append((part, np.ascontiguousarray(columns, dtype=dtype)))
        at, inputs_at = at + n, inputs_stop
    return pairs


def joined(parts: Sequence[tuple[BaseEmission, Array]]) -> Array:
    """Encoded data of emissions as of a product: values of all, and then inputs."""
    if len(parts) == 1:
        return parts[0][1]
    stops = [rows.shape[1] - part.n_inputs for part, rows in parts]
    values = [rows[:, :stop] for (_, rows), stop in zip(parts, stops, strict=True)]
    inputs = [rows[:, stop:] for (_, rows), stop in zip(parts, stops, strict=True)]
    return np.hstack([*values, *inputs])


def with_records(record: EmissionRecord, records: Iterator[EmissionRecord]) -> EmissionRecord:
    """The record with other records of its parts."""
    if "parts" not in record:
        return next(records)
    return {"parts": [with_records(part, records) for part in record["parts"]]}


def looks_back(emission: BaseEmission) -> bool:
    """Whether there are inputs that precede an observation in its sequence."""
    return emission.n_inputs > n_given(emission)


def missing_values(codes: Array, limits: Sequence[int] | Flags) -> Flags:
    """Mask of the missing values: -1 for symbols, NaN for numbers."""
    return np.column_stack(
        [~(codes[:, c] >= 0) if limit else np.isnan(codes[:, c]) for c, limit in enumerate(limits)]
    )


def missing_entries(emission: BaseEmission, codes: Array) -> Flags:
    """Mask of the missing values of encoded data, without their inputs."""
    n_columns = codes.shape[1] - emission.n_inputs
    return missing_values(codes, emission.columns(n_columns).are_symbols)


def unseen_values(emission: BaseEmission, codes: Array) -> Flags:
    """Mask of the values in missing steps of their part, (n_samples, n_features)."""
    missing = [part.emission.is_missing(rows) for part, rows in split(emission, codes)]
    columns = emission.columns(codes.shape[1] - emission.n_inputs)
    return np.column_stack(missing)[:, columns.part]


def numeric_values(emission: BaseEmission, codes: Array) -> Array:
    """Columns of numbers of encoded data, for initialisation by k-means."""
    n_columns = codes.shape[1] - emission.n_inputs
    are_numbers = ~emission.columns(n_columns).are_symbols
    if len(emission.parts) == 1:
        # Another layout in memory would change the last digits of sums.
        return codes[:, : are_numbers.sum()]
    return codes[:, np.flatnonzero(are_numbers)]


def preferred_jobs(emission: BaseEmission, is_free: bool = True) -> str:
    """Kind of joblib's workers: threads, unless a part, or a sampler, holds the GIL."""
    of_python = [p.emission for p in emission.parts if isinstance(p.emission, ConjugateEmission)]
    is_free &= all(part.releases_gil for part in of_python)
    return "threads" if is_free else "processes"
