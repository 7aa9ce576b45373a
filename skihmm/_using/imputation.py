"""Imputation of missing observations from the posterior predictive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from skihmm._data.sequences import Sequences
from skihmm._data.validation import is_number
from skihmm._draws import Draw
from skihmm._typing import Array, Flags, Floats, Integers
from skihmm._using.decoding import frozen_model, mean_values, symbol_limits, walk_ahead
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._gaps import first_filled, open_gaps
from skihmm.emissions._given import given_of
from skihmm.emissions._parts import (
    looks_back,
    missing_values,
)

# Samples behind expectations that depend on missing rows before them; rounds behind those
# of linear Gaussian emissions, which average conditional means.
N_WALKS = 1000
N_ROUNDS = 200
# Probabilities of symbols, or means, that are held at once.
_MOST_PREDICTIVES = 100_000

# Steps to fill together, and their inputs, if there are any.
Block: TypeAlias = tuple[Integers, Array | None]
# A column, one or several steps, and probabilities of symbols or means there, times a weight.
Prediction: TypeAlias = tuple[int, int | Integers, Any]


def choose_draws(weights: Floats, stream: RandomStream, size: int | None = None) -> Any:
    """Draw indices of draws by their weights, relative to the largest weight."""
    if (weights == 1).all():
        return stream.generator.integers(len(weights), size=size)
    return stream.generator.choice(len(weights), size, p=weights / weights.sum())


def _blocks(rows: Array, emission: BaseEmission, steps: Integers) -> list[Block]:
    """Blocks of steps to fill if none looks back.

    All steps at once, or all with the same given inputs.
    """
    n_inputs = emission.n_inputs
    if not n_inputs or not len(steps):
        return [(steps, None)] if len(steps) else []
    _, which, counts = np.unique(
        given_of(emission, rows[steps]), axis=0, return_inverse=True, return_counts=True
    )
    ordered = steps[np.argsort(which.ravel(), kind="stable")]
    blocks = np.split(ordered, np.cumsum(counts)[:-1])
    return [(block, rows[block, rows.shape[1] - n_inputs :]) for block in blocks]


def _linear_gaps(
    emission: BaseEmission, sequences: Sequences
) -> tuple[tuple[Integers, Integers], Floats]:
    """Missing entries with neighbours on both sides: steps, columns; first fillings."""
    stats = emission.make_stats(sequences.codes)
    places = open_gaps(stats, sequences.starts, every=True)
    return places, first_filled(stats, sequences.starts)


def _fill_linear(
    draw: Draw,
    sequences: Sequences,
    emission: BaseEmission,
    first: Floats,
    n_rounds: int,
    stream: RandomStream,
) -> tuple[Floats, Integers, FrozenModel]:
    """Draw the entries of :func:`_linear_gaps` and paths in turn.

    Without earlier rows a path is drawn given what is observed of every row, and entries
    given the path, so that rounds are independent.  With these, what is drawn confirms
    the states that it was drawn with: in every fourth round the path is drawn without the
    entries.

    Returns
    -------
    means : ndarray of shape (n_filled,)
        Conditional means, averaged over all rounds; with earlier rows over the latter two
        of every four.
    path : ndarray of shape (n_steps,)
        The states that the last draw was made with.
    model : FrozenModel
        Its emission is filled with this draw.
    """
    model = frozen_model(draw, sequences, emission)
    without = frozen_model(draw, sequences, emission) if len(first) else model
    open_gaps(model.emission, sequences.starts, every=True)
    model.emission.set_hidden({"filled": first})
    means = np.zeros(len(first))
    path = without.sample_path(stream)
    for i in range(n_rounds if len(first) else 0):
        goes_on = looks_back(emission) and i % 4 > 0
        path = (model if goes_on else without).sample_path(stream)
        conditional = model.draw_hidden(path, stream)
        if not looks_back(emission):
            means += conditional / n_rounds
        elif i % 4 >= 2:
            means += conditional / (n_rounds // 2)
    return means, path, model


def _walks(
    model: FrozenModel,
    sequences: Sequences,
    emission: BaseEmission,
    missing: Flags,
    paths: int | Array,
    stream: RandomStream,
) -> Iterator[tuple[int, Array, list[Array]]]:
    """Draw missing values along several paths, of an emission that looks back.

    Paths through different gaps are independent; or `paths` is a single path through everything.
    Iterate over the steps with missing values, their inputs and values: a row, or an entry, per
    path.
    """
    codes, starts, n = sequences.codes, sequences.starts, missing.shape[1]
    steps = np.flatnonzero(missing.any(axis=1) | np.isnan(codes).any(axis=1))
    if isinstance(paths, int):
        states = model.sample_runs(steps, paths, stream)
    else:
        states = paths[steps, None]
    limits = symbol_limits(emission, codes.shape[1] - emission.n_inputs)
    begins = np.flatnonzero((np.diff(steps) > 1) | np.isin(steps[1:], starts)) + 1
    for gap, through in zip(np.split(steps, begins), np.split(states, begins), strict=True):
        rows = None
        if len(gap) and gap[0] not in starts:
            rows = np.repeat(codes[gap[0] - 1 : gap[0]], states.shape[1], axis=0)
        walk = walk_ahead(model, emission, codes[gap], missing[gap], through, rows, limits, stream)
        for t, (now, values) in zip(gap.tolist(), walk, strict=True):
            if values:
                yield t, now[:, n:], values


def _are_whole(values: Array) -> bool:
    """Whether floats are integers, small enough to be exact."""
    values = values.astype(np.float64)  # half precision cannot represent the limit
    return bool(((np.floor(values) == values) & (np.abs(values) <= 2.0**53)).all())


def _predictives(model: FrozenModel, inputs: Array | None, limits: list[int]) -> list[Floats]:
    """Predictive distributions of every column, of symbols without the unknown one."""
    columns = model.predictives(inputs)
    return [
        column[..., :limit] if limit else column
        for column, limit in zip(columns, limits, strict=True)
    ]


def _predict_blocks(
    model: FrozenModel, probs: Floats, blocks: list[Block], missing: Flags, limits: list[int]
) -> Iterator[Prediction]:
    """Predict missing entries of an emission that does not look back."""
    n_blocks = max(1, _MOST_PREDICTIVES // (probs.shape[1] * max([1, *limits])))
    for at in range(0, len(blocks), n_blocks):
        some = blocks[at : at + n_blocks]
        first_rows = [inputs[0] for _, inputs in some if inputs is not None]
        columns = _predictives(model, np.array(first_rows) if first_rows else None, limits)
        for i, (block, _) in enumerate(some):
            for c, column in enumerate(columns):
                steps = block[missing[block, c]]
                yield c, steps, probs[steps] @ (column[i] if first_rows else column)


def _predict_walks(
    model: FrozenModel,
    probs: Floats,
    weight: float,
    walks: Iterator[tuple[int, Array, list[Array]]],
    missing: Flags,
    limits: list[int],
    in_time: Flags,
) -> Iterator[Prediction]:
    """Predict missing entries of an emission that looks back, by walks of its draw."""
    for t, rows, drawn in walks:
        columns = _predictives(model, rows[0], limits)
        # (Discrete values may be equal by chance.)
        is_known = ((rows == rows[0]) | np.isnan(rows)).all()
        for c in np.flatnonzero(missing[t]).tolist():
            is_expected = limits[c] or is_known or not in_time[c]
            yield c, t, probs[t] @ columns[c] if is_expected else weight * drawn[c].mean()


def impute_expected(
    draws: Sequence[Draw],
    sequences: Sequences,
    emission: BaseEmission,
    seed: np.random.SeedSequence,
    weights: Floats,
) -> Array:
    """Most probable codes or means of missing entries, over all draws by their weights.

    Observed entries are 0.
    """
    limits = symbol_limits(emission, sequences.codes.shape[1] - emission.n_inputs)
    missing = missing_values(sequences.codes, limits)
    stream = RandomStream(seed)
    (places, first), codes = _linear_gaps(emission, sequences), sequences.codes.copy()
    if len(first):
        n_rounds = 4 * max(3, -(-N_ROUNDS // (4 * len(draws))))
        codes[places] = np.average(
            [_fill_linear(draw, sequences, emission, first, n_rounds, stream)[0] for draw in draws],
            axis=0,
            weights=weights,
        )
    missing[places] = False
    completed = replace(sequences, codes=codes)
    steps = np.flatnonzero(missing.any(axis=1))
    # Probabilities of symbols, or means, of the missing entries of every column.
    periods = emission.columns(len(limits)).periods
    totals = [
        np.zeros((n, limit) if limit else n, complex if np.isfinite(period) else float)
        for n, limit, period in zip(missing.sum(axis=0), limits, periods, strict=True)
    ]
    order = np.cumsum(missing, axis=0) - 1
    # Two at least, which differ where something drawn precedes.
    n_walks = max(2, -(-N_WALKS // len(draws)))
    in_time = emission.columns(len(limits)).looks_back
    # (Once: where inputs are numbers there are as many blocks as steps.)
    blocks = [] if looks_back(emission) else _blocks(sequences.codes, emission, steps)
    for draw, weight in zip(draws, weights, strict=True) if len(steps) else ():
        model = frozen_model(draw, sequences, emission)
        probs = weight * model.smooth()
        predictions = _predict_blocks(model, probs, blocks, missing, limits)
        if looks_back(emission):
            walks = _walks(model, completed, emission, missing, n_walks, stream)
            predictions = _predict_walks(model, probs, weight, walks, missing, limits, in_time)
        for c, at, predicted in predictions:
            totals[c][order[at, c]] += predicted
    filled = np.zeros(missing.shape, sequences.codes.dtype)
    filled[places] = codes[places]
    for c, total in enumerate(totals):
        filled[missing[:, c], c] = (
            total.argmax(axis=1) if limits[c] else mean_values(total / weights.sum(), periods[c])
        )
    return filled


def impute_drawn(
    draws: Sequence[Draw],
    sequences: Sequences,
    emission: BaseEmission,
    seed: np.random.SeedSequence,
    weights: Floats,
) -> Array:
    """Draw codes or numbers of missing entries jointly, under a draw chosen by weights.

    Observed entries are 0.
    """
    limits = symbol_limits(emission, sequences.codes.shape[1] - emission.n_inputs)
    missing = missing_values(sequences.codes, limits)
    stream = RandomStream(seed)
    draw = draws[int(choose_draws(weights, stream))]
    rows, every = sequences.codes.copy(), missing.copy()
    places, first = _linear_gaps(emission, sequences)
    _, path, model = _fill_linear(draw, sequences, emission, first, 20, stream)
    rows[places] = model.emission.filled()
    missing[places] = False
    if looks_back(emission) and missing.any():
        completed = replace(sequences, codes=rows.copy())
        for t, _, values in _walks(model, completed, emission, missing, path, stream):
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

    The result has integers if all entries are whole numbers and `filled` has integers, floats if
    all are numbers, else objects.
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
