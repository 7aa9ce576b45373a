"""Imputation of missing observations from the posterior predictive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skihmm._decoding import frozen_model, symbol_limits
from skihmm._draws import Draw
from skihmm._sequences import Sequences
from skihmm._typing import Array, Flags
from skihmm._validation import is_number
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission


def _missing_rows(codes: Array, limits: list[int]) -> list[NDArray[np.intp]]:
    """Rows where each column is missing: -1 for symbols, NaN for numbers."""
    return [
        np.flatnonzero(~(column >= 0) if limit else np.isnan(column))
        for column, limit in zip(codes.T, limits, strict=True)
    ]


def _are_whole(values: Array) -> bool:
    """Whether floats are integers, small enough to be exact."""
    values = values.astype(np.float64)  # half precision cannot represent the limit
    return bool(((np.floor(values) == values) & (np.abs(values) <= 2.0**53)).all())


def expected_codes(
    draws: Sequence[Draw], sequences: Sequences, emission: BaseEmission
) -> Array:
    """Most probable codes or means of missing entries, over all draws.

    Parameters
    ----------
    draws : sequence of Draw
    sequences : Sequences
    emission : BaseEmission
        Fitted.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_features)
        0 where something is observed.
    """
    codes = sequences.codes
    limits = symbol_limits(emission, codes)
    rows = _missing_rows(codes, limits)
    totals = [np.zeros(1)] * len(limits)
    for draw in draws:
        model = frozen_model(draw, sequences, emission)
        probs = model.smooth()
        for c, emitted in enumerate(model.predictives()):
            known = emitted[:, : limits[c]] if limits[c] else emitted
            totals[c] = totals[c] + probs[rows[c]] @ known
    filled = np.zeros_like(codes)
    for c, total in enumerate(totals):
        filled[rows[c], c] = total.argmax(axis=1) if limits[c] else total / len(draws)
    return filled


def drawn_codes(
    draws: Sequence[Draw],
    sequences: Sequences,
    emission: BaseEmission,
    seed: np.random.SeedSequence,
) -> Array:
    """Draw codes or numbers of missing entries jointly, under one of the draws.

    Parameters
    ----------
    draws : sequence of Draw
    sequences : Sequences
    emission : BaseEmission
        Fitted.
    seed : numpy.random.SeedSequence

    Returns
    -------
    codes : ndarray of shape (n_samples, n_features)
        0 where something is observed.
    """
    codes = sequences.codes
    limits = symbol_limits(emission, codes)
    rows = _missing_rows(codes, limits)
    stream = RandomStream(seed)
    draw = draws[int(stream.generator.integers(len(draws)))]
    model = frozen_model(draw, sequences, emission)
    path = model.sample_path(stream)
    steps = np.unique(np.concatenate(rows))
    filled = np.zeros_like(codes)
    for c, values in enumerate(model.draw_values(path[steps], limits, stream)):
        filled[rows[c], c] = values[np.searchsorted(steps, rows[c])]
    return filled


def fill(X: Array, missing: Flags, filled: Array) -> Array:
    """Fill the missing entries of one array from another.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    missing : ndarray of shape (n_samples, n_features), bool
    filled : ndarray of shape (n_samples, n_features)

    Returns
    -------
    X_filled : ndarray of shape (n_samples, n_features)
        Integers if all entries are whole numbers and those of `filled` are integers,
        floats if all are numbers, else objects.
    """
    if X.dtype.kind == "f" and filled.dtype.kind in "if":
        is_whole = filled.dtype.kind == "i" and _are_whole(X[~missing])
        values = np.zeros(X.shape, dtype=np.int64 if is_whole else np.float64)
        values[~missing] = X[~missing]
        values[missing] = filled[missing]
        return values
    entries = X.astype(object)
    entries[missing] = filled[missing]
    if not all(is_number(entry) for entry in entries.flat):
        return entries
    numbers = np.array(entries.tolist())
    if numbers.dtype.kind == "f" and filled.dtype.kind == "i" and _are_whole(numbers):
        return numbers.astype(np.int64)
    # Decimal and the like keep their types.
    return numbers if numbers.dtype.kind in "iuf" else entries
