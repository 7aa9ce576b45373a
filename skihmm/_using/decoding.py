"""Paths, state probabilities and simulation under one posterior draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from skihmm._data.sequences import Sequences
from skihmm._draws import Draw
from skihmm._records import ModelRecord
from skihmm._typing import Array, Flags, Floats, Labels
from skihmm._using.given_steps import GivenSteps
from skihmm._using.log_joint import log_franchises
from skihmm.core._messages import FrozenModel
from skihmm.core._particle_filter import simulate
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._encoding import with_inputs
from skihmm.emissions._given import given_of
from skihmm.emissions._subjects import (
    has_subjects,
    log_prior_of_subjects,
    numbers_of_subjects,
    without_subjects,
)
from skihmm.transitions import BaseTransitions

# Draws of a chain by which chains are compared, and the difference of their means, nats, below
# which chains are equally good in any case.
MOST_RANKED, LEAST_NOISE = 10, 3.0


def frozen_model(
    draw: Draw,
    sequences: Sequences,
    emission: BaseEmission,
    switch_penalty: float = 0.0,
    message: Floats | None = None,
) -> FrozenModel:
    """Build the HMM of K + 1 states of a draw over encoded sequences.

    With the `message` of a model the first sequence goes on from its last step.
    """
    return model_over(draw.arrays, sequences, emission, switch_penalty, message)


def model_over(
    arrays: ModelRecord,
    sequences: Sequences,
    emission: BaseEmission,
    switch_penalty: float = 0.0,
    message: Floats | None = None,
) -> FrozenModel:
    """Build the HMM of a record, as :func:`frozen_model`."""
    return FrozenModel(
        arrays,
        emission.make_stats(sequences.codes),
        sequences.starts if message is None else sequences.starts[1:],
        contexts=sequences.contexts,
        switch_penalty=switch_penalty,
        message=message,
    )


def target_model(
    arrays: ModelRecord,
    sequences: Sequences,
    emission: BaseEmission,
    transitions: BaseTransitions,
    message: Floats | None = None,
) -> FrozenModel:
    """Build the HMM of a record as :func:`model_over`, with the penalty of a chain's target."""
    return model_over(arrays, sequences, emission, transitions.switch_penalty, message)


def rank(
    draw: Draw,
    sequences: Sequences,
    emission: BaseEmission,
    transitions: BaseTransitions,
) -> float:
    """Number by which starts, chains and draws of one model are compared, nats.

    The log joint probability of a draw is a single path's.  Where states overlap, a model has very
    many paths that explain the data as well, and their number matters more: two letters of .35
    against .15 in two states, 5,000 steps: the joint of the path in one state is higher by a
    thousand nats, the rank of two by a hundred.  The rank is p(x, y) / p(x | y) at the path x of
    the draw: their number is counted by p(x, y), in which parameters are integrated out, and
    p(x | y) is under the parameters of the draw.  These fit this very path, so the rank is no
    log p(y): it falls by 2 to 5 nats with every further state, by up to 12 with contexts.  Chain
    weights from a bridge sampler, which is right within .5 nats a state, were further from the
    truth (distance of the numbers of states: .355, by ranks .322, equal weights .318).

    With a penalty of changes of state both terms have its factor: the sum over paths is the sum in
    the target of the chain.  With stays and contexts, a path in both terms has the stays of the
    draw; otherwise both terms are sums over the stays.  Missing entries that the fit draws are a
    part of p(x, y) alone, which is the same for all draws but for the noise of these entries.
    Without a path the rank is the log joint probability.
    """
    if draw.states is None:
        return draw.summed_lp
    model = target_model(draw.arrays, sequences, emission, transitions)
    log_path = model.log_joint(draw.states) - model.filter()[0].sum()
    log_prior = log_prior_of_subjects(emission, draw.emission)
    n_symbols = [sizes for _, _, sizes in model.emission.rows()]
    log_tables = log_franchises(draw.transitions, draw.emission, n_symbols)
    return float(draw.summed_lp - log_tables - log_path + log_prior)


def chain_ranks(
    chains: Sequence[Sequence[Draw]],
    sequences: Sequences,
    emission: BaseEmission,
    transitions: BaseTransitions,
) -> Floats:
    """Ranks of some draws of every chain, (n_chains, MOST_RANKED); NaN without draws."""
    ranks = np.full((len(chains), MOST_RANKED), np.nan)
    for row, chain in zip(ranks, chains, strict=True):
        chosen = np.linspace(0, len(chain) - 1, MOST_RANKED).astype(int)
        for i, d in enumerate(chosen if len(chain) else ()):
            row[i] = rank(chain[d].widened(), sequences, emission, transitions)
    return ranks


def stay_below(ranks: Floats) -> Flags:
    """Mask of chains all of whose ranks are below the best chain's ranks.

    Ranks fall where a draw has a state too many, by ten nats or more where states overlap: a die
    of two kinds, 1,500 throws, in one chain that has visited 2 to 5 states, -2,625 to -2,668.
    With nine tenths of the ranks in place of all, chains that take turns in the same modes lost
    their weight: of 18 fits in four chains, weights changed the held-out scores of as many rows in
    eight, by -5.8 nats in the mean, in place of six and -5.2.
    """
    best = int(ranks.mean(axis=1).argmax())
    return np.asarray(ranks.max(axis=1) < ranks[best].min())


def log_weights(ranks: Floats) -> Floats:
    """Log weights of the draws of chains: 0 for chains as good as the best chain.

    Chains that do not leave their modes do not visit modes in proportion to their probabilities.
    The rank of each mode weighs its chains in averages (Yao, Vehtari and Gelman 2022, whose
    stacking has held-out data instead).
    """
    weights = np.zeros(len(ranks))
    known = np.isfinite(ranks).all(axis=1)
    if known.any():
        means = ranks[known].mean(axis=1)
        behind = means.max() - means
        is_behind = stay_below(ranks[known]) & (behind > LEAST_NOISE)
        weights[known] = np.where(is_behind, -behind, 0.0)
    return weights


def mean_values(totals: Array, period: float) -> Floats:
    """Means of numbers, or mean directions of angles, from sums of their predictives.

    `totals` are complex for angles; the period of numbers is infinite.
    """
    if np.isfinite(period):
        return np.asarray(np.angle(totals) * (period / (2 * np.pi)))
    return totals


def around(values: Floats, centre: Floats, period: float) -> Floats:
    """Angles that are at most half a period from a centre; other numbers unchanged."""
    if not np.isfinite(period):
        return values
    return np.asarray(centre + np.remainder(values - centre + period / 2, period) - period / 2)


def choose(weights: Floats, u: Floats) -> NDArray[np.intp]:
    """Draw an index per row by inversion at u, with probabilities as the weights."""
    cumulative = np.cumsum(weights, axis=1)
    reached = cumulative <= (u * cumulative[:, -1])[:, None]
    return reached.sum(axis=1)


def symbol_limits(emission: BaseEmission, n_columns: int) -> list[int]:
    """Number of symbols that may be drawn, for every column of values; 0 for numbers.

    It raises ValueError if some column has no symbol to draw.
    """
    columns = emission.columns(n_columns)
    if columns.lacks_symbols:
        raise ValueError(
            "A column had no observed symbol in fit, so the model has no symbol to draw. Pass "
            "categories to the emission."
        )
    return columns.n_symbols.tolist()


def inputs_after(emission: BaseEmission, rows: Array, given: Array) -> Array:
    """Inputs of a step with encoded given columns, one or several rows of them, after rows."""
    # The emission of the step does not matter.
    values = rows[:, : rows.shape[1] - emission.n_inputs]
    given = np.broadcast_to(given, (len(rows), given.shape[1]))
    return emission.inputs(values, np.arange(len(rows)), rows, given)


def walk_ahead(
    model: FrozenModel,
    emission: BaseEmission,
    codes: Array,
    missing: Flags,
    states: Labels,
    rows: Array | None,
    limits: list[int],
    stream: RandomStream,
) -> Iterator[tuple[Array, list[Array]]]:
    """Draw missing values of consecutive steps along several paths, after `rows` of each.

    Iterate over the rows of all paths in a step, and the values drawn for its columns.
    """
    n = missing.shape[1]
    for row, is_missing, path in zip(codes, missing, states, strict=True):
        now = np.repeat(row[None], len(path), axis=0)
        if rows is not None:
            now[:, n:] = inputs_after(emission, rows, given_of(emission, row[None]))
        values = model.draw_values(path, limits, stream, now[:, n:]) if is_missing.any() else []
        for c in np.flatnonzero(is_missing).tolist():
            now[:, c] = values[c]
        yield now, values
        rows = now


def simulate_sequence(
    draw: Draw,
    n_samples: int,
    n_features: int,
    emission: BaseEmission,
    seed: np.random.SeedSequence,
    coming: GivenSteps,
) -> tuple[Array, Labels]:
    """Simulate a new sequence from the draw's predictive distribution."""
    given, contexts = coming.of_emission, coming.contexts
    limits = [n for n in symbol_limits(emission, n_features) if n]
    dtype = np.int32 if emission.is_categorical else np.float64
    rows, plain = np.empty((0, n_features + emission.n_inputs), dtype=dtype), emission
    if has_subjects(emission):
        nothing, start = np.zeros((n_samples, n_features)), np.zeros(1, dtype=np.intp)
        every = with_inputs(emission, nothing, start, None, given)
        offsets, scales = numbers_of_subjects(emission, every, draw.emission)
        plain, rows = without_subjects(emission, every, draw.emission)
        given = given_of(plain, rows)
    values = np.zeros((n_samples, n_features), dtype=dtype)
    rows = with_inputs(plain, values, np.zeros(1, dtype=np.intp), None, given)
    codes, states = simulate(
        plain.make_stats(rows),
        limits,
        RandomStream(seed),
        draw.arrays,
        None if contexts is None else contexts.adaptive(),
    )
    if has_subjects(emission):
        codes = offsets + scales * codes
    return emission.decode(codes), states
