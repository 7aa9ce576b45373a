"""Imputation of missing observations from the posterior predictive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skihmm._decoding import frozen_model, mean_values, symbol_limits
from skihmm._draws import Draw
from skihmm._records import EmissionRecord
from skihmm._sequences import Sequences
from skihmm._typing import Array, Flags, Floats, Integers
from skihmm._validation import is_number
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions import AutoregressiveNormal, BaseEmission, ProductEmission
from skihmm.emissions._conditionals import Gaps, draw_entries, expected_entries

# Samples behind expectations that depend on missing rows before them, or on the states of
# several rows.
N_WALKS = 1000


def _missing_values(codes: Array, limits: list[int]) -> Flags:
    """Mask of the missing values: -1 for symbols, NaN for numbers."""
    return np.column_stack(
        [
            ~(codes[:, c] >= 0) if limit else np.isnan(codes[:, c])
            for c, limit in enumerate(limits)
        ]
    )


def _blocks(
    rows: Array, emission: BaseEmission, steps: Integers
) -> Iterator[tuple[Integers, Array | None]]:
    """Iterate over steps to fill together, and their inputs, if none looks back.

    All steps at once, or all of one context.
    """
    if not emission.n_inputs:
        yield steps, None
        return
    if not len(steps):
        return
    contexts, which = np.unique(
        emission.contexts_of(rows[steps]), axis=0, return_inverse=True
    )
    for i in range(len(contexts)):
        block = steps[which.ravel() == i]
        yield block, rows[block, rows.shape[1] - emission.n_inputs :]


class _Regression:
    """Missing entries of the columns of one autoregression."""

    def __init__(
        self,
        emission: AutoregressiveNormal,
        part: int | None,
        first: int,
        sequences: Sequences,
    ) -> None:
        self.columns = slice(first, first + len(emission.offset_))
        values = sequences.codes[:, self.columns]
        self.gaps: Gaps = emission.gaps(values, sequences.starts)
        self.places = np.nonzero(np.isnan(values))
        self._emission, self._part = emission, part

    def parameters(self, draw: Draw) -> tuple[Floats, Floats]:
        """Coefficients and covariances of the states of a draw, and of a new one."""
        record: EmissionRecord = draw.emission
        if self._part is not None:
            record = record["parts"][self._part]
        return self._emission.regressions(record, draw.n_states)

    def fill(self, codes: Array, values: Floats) -> None:
        """Set the missing entries of some codes, without inputs."""
        rows, columns = self.places
        filled = self._emission.in_units_of_codes(values, columns)
        codes[rows, columns + self.columns.start] = filled


def _regressions(emission: BaseEmission, sequences: Sequences) -> Iterator[_Regression]:
    """Iterate over the autoregressions with missing entries."""
    parts: list[tuple[BaseEmission, int | None]] = [(emission, None)]
    if isinstance(emission, ProductEmission):
        parts = [(part, i) for i, (_, part, _) in enumerate(emission.emissions_)]
    first = 0
    for part, i in parts:
        if isinstance(part, AutoregressiveNormal) and part.order:
            regression = _Regression(part, i, first, sequences)
            if len(regression.gaps.steps):
                yield regression
        if i is not None:
            first += len(emission.emissions_[i][2])


def _walks(
    model: FrozenModel,
    sequences: Sequences,
    emission: BaseEmission,
    missing: Flags,
    paths: int | Array,
    stream: RandomStream,
) -> Iterator[tuple[int, Array, list[Array]]]:
    """Draw missing values along several paths, of an emission that looks back.

    Those through one gap do not depend on those through another one; or `paths` is a
    single path through everything.  Iterate over the steps with missing values, their
    inputs and values: a row, or an entry, per path.
    """
    codes, n = sequences.codes, missing.shape[1]
    limits = symbol_limits(emission, codes)
    first = set(sequences.starts.tolist())
    has_missing = np.asarray(missing.any(axis=1))
    steps = np.flatnonzero(has_missing | np.isnan(codes).any(axis=1))
    if isinstance(paths, int):
        n_walks, states = paths, model.sample_runs(steps, paths, stream)
    else:
        n_walks, states = 1, paths[steps, None]
    rows, last = codes[:0], -1
    for t, path in zip(steps.tolist(), states, strict=True):
        now = np.repeat(codes[t : t + 1], n_walks, axis=0)
        if t not in first:
            if last < t - 1:
                rows = np.repeat(codes[t - 1 : t], n_walks, axis=0)
            given = emission.contexts_of(now)
            now[:, n:] = emission.inputs(now[:, :n], np.arange(n_walks), rows, given)
        if has_missing[t]:
            values = model.draw_values(path, limits, stream, now[:, n:])
            yield t, now[:, n:], values
            for c in np.flatnonzero(missing[t]).tolist():
                now[:, c] = values[c]
        rows, last = now, t


def _are_whole(values: Array) -> bool:
    """Whether floats are integers, small enough to be exact."""
    values = values.astype(np.float64)  # half precision cannot represent the limit
    return bool(((np.floor(values) == values) & (np.abs(values) <= 2.0**53)).all())


def expected_codes(
    draws: Sequence[Draw],
    sequences: Sequences,
    emission: BaseEmission,
    seed: np.random.SeedSequence | None,
) -> Array:
    """Most probable codes or means of missing entries, over all draws.

    Parameters
    ----------
    draws : sequence of Draw
    sequences : Sequences
    emission : BaseEmission
        Fitted.
    seed : numpy.random.SeedSequence or None
        Of what is drawn; None will do if the emission does not look back.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_features)
        0 where something is observed.
    """
    limits = symbol_limits(emission, sequences.codes)
    missing = _missing_values(sequences.codes, limits)
    regressions = list(_regressions(emission, sequences))
    sums = [np.zeros(len(r.places[0])) for r in regressions]
    for regression in regressions:
        missing[:, regression.columns] = False
    steps = np.flatnonzero(missing.any(axis=1))
    # Probabilities of symbols, or means, of the missing entries of every column.
    periods = emission.periods(len(limits))
    totals = [
        np.zeros((n, limit) if limit else n, complex if np.isfinite(period) else float)
        for n, limit, period in zip(missing.sum(axis=0), limits, periods, strict=True)
    ]
    places = np.cumsum(missing, axis=0) - 1
    stream = RandomStream(seed)
    # Two at least, which differ where something drawn precedes.
    n_walks = max(2, -(-N_WALKS // len(draws)))
    looks_back = emission.columns_that_look_back(len(limits))
    for draw in draws:
        model = frozen_model(draw, sequences, emission)
        for regression, total in zip(regressions, sums, strict=True):
            gaps = regression.gaps
            labels = model.sample_runs(gaps.steps, n_walks, stream)
            total += expected_entries(gaps, labels, *regression.parameters(draw))
        if not len(steps):
            continue
        probs = model.smooth()
        if emission.looks_back:
            walks = _walks(model, sequences, emission, missing, n_walks, stream)
            for t, rows, drawn in walks:
                columns = model.predictives(rows[0])
                # (Of discrete values some are equal by chance.)
                is_known = ((rows == rows[0]) | np.isnan(rows)).all()
                for c in np.flatnonzero(missing[t]).tolist():
                    emitted = columns[c]
                    if limits[c]:
                        totals[c][places[t, c]] += probs[t] @ emitted[:, : limits[c]]
                    elif is_known or not looks_back[c]:
                        totals[c][places[t, c]] += probs[t] @ emitted
                    else:
                        totals[c][places[t, c]] += drawn[c].mean()
            continue
        for block, inputs in _blocks(sequences.codes, emission, steps):
            columns = model.predictives(None if inputs is None else inputs[0])
            for c, emitted in enumerate(columns):
                rows = block[missing[block, c]]
                known = emitted[:, : limits[c]] if limits[c] else emitted
                totals[c][places[rows, c]] += probs[rows] @ known
    filled = np.zeros(missing.shape, sequences.codes.dtype)
    for regression, values in zip(regressions, sums, strict=True):
        regression.fill(filled, values / len(draws))
    for c, total in enumerate(totals):
        filled[missing[:, c], c] = (
            total.argmax(axis=1)
            if limits[c]
            else mean_values(total / len(draws), periods[c])
        )
    return filled


def drawn_codes(
    draws: Sequence[Draw],
    sequences: Sequences,
    emission: BaseEmission,
    seed: np.random.SeedSequence | None,
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
    rows = sequences.codes.copy()
    path = model.sample_path(stream)
    every = missing.copy()
    for regression in _regressions(emission, sequences):
        gaps = regression.gaps
        entries = draw_entries(
            gaps, path[gaps.steps], *regression.parameters(draw), stream.generator
        )
        regression.fill(rows, entries)
        missing[:, regression.columns] = False
    if emission.looks_back and missing.any():
        for t, _, values in _walks(model, sequences, emission, missing, path, stream):
            for c in np.flatnonzero(missing[t]).tolist():
                rows[t, c] = values[c][0]
        missing[:] = False
    steps = np.flatnonzero(missing.any(axis=1))
    for block, inputs in _blocks(rows, emission, steps):
        columns = model.draw_values(path[block], limits, stream, inputs)
        for c, column in enumerate(columns):
            is_gap = missing[block, c]
            rows[block[is_gap], c] = column[is_gap]
    return np.where(every, rows[:, : len(limits)], 0)


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
