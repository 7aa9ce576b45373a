"""Imputation of missing observations from the posterior predictive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skihmm._decoding import frozen_model, symbol_limits
from skihmm._draws import Draw
from skihmm._sequences import Sequences
from skihmm._typing import Array, Flags, Integers
from skihmm._validation import is_number
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission


def _missing_values(codes: Array, limits: list[int]) -> Flags:
    """Mask of the missing values: -1 for symbols, NaN for numbers."""
    return np.column_stack(
        [
            ~(codes[:, c] >= 0) if limit else np.isnan(codes[:, c])
            for c, limit in enumerate(limits)
        ]
    )


def _walk(
    rows: Array, starts: Integers, emission: BaseEmission, steps: Integers
) -> Iterator[tuple[Integers, Array | None]]:
    """Iterate over steps to fill together, and their inputs.

    All steps at once without inputs, and all of one context if there are only contexts.
    Otherwise one after the other in time, each to be filled in `rows` before the next,
    because later inputs depend on it.
    """
    if not emission.n_inputs:
        yield steps, None
        return
    n = rows.shape[1] - emission.n_inputs
    if not emission.looks_back:
        contexts, which = np.unique(rows[steps, n:], axis=0, return_inverse=True)
        for i in range(len(contexts)):
            block = steps[which.ravel() == i]
            yield block, rows[block, n:]
        return
    first = set(starts.tolist())
    for t in steps.tolist():
        yield np.array([t]), rows[t : t + 1, n:]
        for later in range(t + 1, len(rows)):
            now = slice(later, later + 1)
            before = rows[later - 1 : later]
            given = emission.contexts_of(rows[now])
            inputs = emission.inputs(rows[now, :n], np.zeros(1, np.intp), before, given)
            if later in first or np.array_equal(inputs, rows[now, n:], equal_nan=True):
                break
            rows[now, n:] = inputs


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
    limits = symbol_limits(emission, sequences.codes)
    missing = _missing_values(sequences.codes, limits)
    steps = np.flatnonzero(missing.any(axis=1))
    # Probabilities of symbols, or means, of the missing entries of every column.
    totals = [
        np.zeros((n, limit) if limit else n)
        for n, limit in zip(missing.sum(axis=0), limits, strict=True)
    ]
    places = np.cumsum(missing, axis=0) - 1
    for draw in draws:
        model, rows = frozen_model(draw, sequences, emission), sequences.codes.copy()
        probs = model.smooth()
        for block, inputs in _walk(rows, sequences.starts, emission, steps):
            columns = model.predictives(None if inputs is None else inputs[0])
            for c, emitted in enumerate(columns):
                gaps = block[missing[block, c]]
                known = emitted[:, : limits[c]] if limits[c] else emitted
                expected = probs[gaps] @ known
                totals[c][places[gaps, c]] += expected
                if not limits[c]:
                    rows[gaps, c] = expected
    filled = np.zeros(missing.shape, sequences.codes.dtype)
    for c, total in enumerate(totals):
        filled[missing[:, c], c] = (
            total.argmax(axis=1) if limits[c] else total / len(draws)
        )
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
    limits = symbol_limits(emission, sequences.codes)
    missing = _missing_values(sequences.codes, limits)
    stream = RandomStream(seed)
    draw = draws[int(stream.generator.integers(len(draws)))]
    model = frozen_model(draw, sequences, emission)
    path = model.sample_path(stream)
    steps = np.flatnonzero(missing.any(axis=1))
    rows = sequences.codes.copy()
    for block, inputs in _walk(rows, sequences.starts, emission, steps):
        columns = model.draw_values(path[block], limits, stream, inputs)
        for c, values in enumerate(columns):
            gaps = missing[block, c]
            rows[block[gaps], c] = values[gaps]
    return np.where(missing, rows[:, : len(limits)], 0)


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
