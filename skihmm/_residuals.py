"""Normal pseudo-residuals: observations seen from the rows before them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from skihmm._decoding import around, choose, frozen_model, mean_values, symbol_limits
from skihmm._draws import Draw
from skihmm._imputation import missing_values
from skihmm._sequences import Sequences
from skihmm._typing import Array, Cdf, Flags, Floats
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission

# Residuals beyond are cut, where probabilities differ from one by rounding.
_LARGEST = 8.0
# Cumulative probabilities of columns in states that are held at once.
_MOST_PROBS = 200_000


def centres_of(model: FrozenModel, probs: Floats, emission: BaseEmission) -> Floats:
    """Predicted mean directions of the columns of angles, zero in other columns.

    `probs` are those of the states given the rows before.
    """
    # Directions have no regressions, so that any inputs will do.
    inputs = np.zeros(emission.n_inputs) if emission.n_inputs else None
    columns = model.predictives(inputs)
    periods = emission.periods(len(columns))
    centres = np.zeros((len(probs), len(columns)))
    for c in np.flatnonzero(np.isfinite(periods)):
        centres[:, c] = mean_values(probs @ columns[c], periods[c])
    return centres


def ends_of(
    values: Floats, is_discrete: Flags, periods: Floats, centres: Floats
) -> Floats:
    """Values at whose cumulative probabilities a residual is read, (2, rows, columns).

    Of symbols and counts the value before and the value, of angles the begin of the turn,
    opposite to the centre, and the angle in it, of other numbers the value twice.
    Centres may depend on earlier rows only.
    """
    is_angle = np.isfinite(periods)
    upper = values.astype(np.float64)
    for c in np.flatnonzero(is_angle):
        upper[:, c] = around(upper[:, c], centres[:, c], periods[c])
    lower = upper - is_discrete
    lower[:, is_angle] = (centres - 0.5 * periods)[:, is_angle]
    return np.stack([lower, upper])


def mixture_of(probs: Floats, cdf: Cdf, ends: Floats) -> Floats:
    """Cumulative probabilities of `ends` under one draw, (2, n_rows, n_features).

    `probs` are those of the states given the rows before, perhaps times a weight.
    """
    return np.einsum("tk,etkc->etc", probs, cdf(ends))


def residuals_of(shares: Floats, periods: Floats, uniform: Floats) -> Floats:
    """Normal pseudo-residuals from the sum of :func:`mixture_of` over draws.

    `uniform` are random numbers, (n_rows, n_features), by which discrete values are
    spread (Dunn and Smyth 1996).
    """
    lower, upper = shares
    is_angle = np.isfinite(periods)
    upper = np.where(is_angle, upper - lower, upper)
    lower = np.where(is_angle, upper, lower)
    share = np.clip(lower + uniform * (upper - lower), 0.0, 1.0)
    return np.clip(ndtri(share), -_LARGEST, _LARGEST)


def cumulative_shares(
    draws: Sequence[Draw],
    weights: Floats,
    sequences: Sequences,
    emission: BaseEmission,
    values: Floats,
) -> Floats:
    """Sum of :func:`mixture_of` over draws, at values in the place of the observed ones.

    NaN in columns of emissions that do not implement ``predictive_cdf``.
    """
    n, inputs = values.shape[1], sequences.codes[:, values.shape[1] :]
    periods, is_discrete = emission.periods(n), emission.discrete_columns(n)
    shares = np.zeros((2, *values.shape))
    for d, (draw, weight) in enumerate(zip(draws, weights / weights.sum(), strict=True)):
        model = frozen_model(draw, sequences, emission)
        probs = model.look_ahead()
        if d == 0:
            centres = centres_of(model, probs, emission)
            ends = ends_of(values, is_discrete, periods, centres)
        size = max(1, _MOST_PROBS // (n * probs.shape[1]))
        for start in range(0, len(values), size):
            part = slice(start, start + size)
            cdf = emission.predictive_cdf(model.emission, model._slots(), inputs[part])
            shares[:, part] += mixture_of(weight * probs[part], cdf, ends[:, part])
    return shares


def _ranked_shares(
    draws: Sequence[Draw],
    weights: Floats,
    sequences: Sequences,
    emission: BaseEmission,
    stream: RandomStream,
    n_ranked: int,
) -> Floats:
    """Shares of values drawn for each row that are below its own, and not above."""
    codes, limits = sequences.codes, symbol_limits(emission, sequences.codes)
    n = len(limits)
    counts = np.zeros((2, len(codes), n))
    counts[1] = 1.0
    sizes = stream.generator.multinomial(n_ranked, weights / weights.sum())
    for draw, size in zip(draws, sizes, strict=True):
        model = frozen_model(draw, sequences, emission)
        probs = model.look_ahead()
        for _ in range(size):
            states = choose(probs, stream.generator.random(len(codes)))
            inputs = codes[:, n:] if emission.n_inputs else None
            drawn = model.draw_values(states, limits, stream, inputs)
            for c, column in enumerate(drawn):
                counts[:, :, c] += column < codes[:, c], column <= codes[:, c]
    return counts / (n_ranked + 1)


def symbol_columns(emission: BaseEmission, codes: Array) -> Flags:
    """Mask of the encoded columns of values that hold symbols."""
    is_symbol = np.ones(codes.shape[1], dtype=bool)
    is_symbol[emission.numeric_columns()] = False
    return is_symbol[: codes.shape[1] - emission.n_inputs]


def normal_residuals(
    draws: Sequence[Draw],
    weights: Floats,
    sequences: Sequences,
    emission: BaseEmission,
    stream: RandomStream,
    n_ranked: int = 100,
) -> Floats:
    """Normal pseudo-residuals of encoded data, in the order of the encoded columns.

    Values without a cumulative probability are ranked among `n_ranked` drawn ones; with
    none they are NaN.
    """
    codes = sequences.codes
    n = codes.shape[1] - emission.n_inputs
    is_missing = missing_values(codes[:, :n], symbol_columns(emission, codes))
    uniform = stream.generator.random(is_missing.shape)
    values = np.where(is_missing, 0.0, codes[:, :n])
    shares = cumulative_shares(draws, weights, sequences, emission, values)
    # Without inputs there is no distribution, and without a function values are drawn.
    is_ranked = np.isnan(shares[0]) & ~np.isnan(codes[:, n:]).any(axis=1, keepdims=True)
    periods = emission.periods(n)
    if n_ranked and is_ranked.any():
        ranked = _ranked_shares(draws, weights, sequences, emission, stream, n_ranked)
        shares = np.where(is_ranked, ranked, shares)
        periods = np.where(is_ranked, np.inf, periods)
    return np.where(is_missing, np.nan, residuals_of(shares, periods, uniform))
