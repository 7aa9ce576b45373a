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
# Values of a row among which a value without a cumulative probability is ranked.
N_RANKED = 100


def centres_of(model: FrozenModel, probs: Floats, emission: BaseEmission) -> Floats:
    """Predicted mean directions of the columns of angles, zero in other columns.

    Parameters
    ----------
    model : FrozenModel
    probs : ndarray of shape (n_rows, n_states + 1)
        Probabilities of the states given the rows before.
    emission : BaseEmission

    Returns
    -------
    centres : ndarray of shape (n_rows, n_features)
        They do not depend on inputs, as directions have no regressions.
    """
    columns = model.predictives(
        np.zeros(emission.n_inputs) if emission.n_inputs else None
    )
    periods = emission.periods(len(columns))
    centres = np.zeros((len(probs), len(columns)))
    for c in np.flatnonzero(np.isfinite(periods)):
        centres[:, c] = mean_values(probs @ columns[c], periods[c])
    return centres


def ends_of(
    values: Floats, is_discrete: Flags, periods: Floats, centres: Floats
) -> Floats:
    """Values at whose cumulative probabilities a residual is read.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_features)
        Encoded; any numbers where they are missing.
    is_discrete : ndarray of shape (n_features,)
    periods : ndarray of shape (n_features,)
        Infinite in columns that are not angles.
    centres : ndarray of shape (n_rows, n_features)
        Angles that depend on earlier rows only, opposite to which a turn begins.

    Returns
    -------
    ends : ndarray of shape (2, n_rows, n_features)
        Of symbols and counts the value before and the value, of angles the begin of the
        turn and the angle in it, of other numbers the value twice.
    """
    angles = np.flatnonzero(periods < np.inf)
    ends = np.array([values - is_discrete, values], dtype=np.float64)
    if not len(angles):
        return ends
    lower, upper = ends
    for c in angles:
        upper[:, c] = around(upper[:, c], centres[:, c], periods[c])
    lower[:, angles] = centres[:, angles] - 0.5 * periods[angles]
    return ends


def mixture_of(probs: Floats, cdf: Cdf, ends: Floats) -> Floats:
    """Cumulative probabilities of `ends` under one draw.

    Parameters
    ----------
    probs : ndarray of shape (n_rows, n_states + 1)
        Probabilities of the states given the rows before, perhaps times a weight.
    cdf : callable
        Of ``emission.predictive_cdf``.
    ends : ndarray of shape (2, n_rows, n_features)

    Returns
    -------
    cumulative : ndarray of shape (2, n_rows, n_features)
    """
    return (probs[:, None] @ cdf(ends))[..., 0, :]


def residuals_of(cumulative: Floats, periods: Floats, uniform: Floats) -> Floats:
    """Normal pseudo-residuals from the sum of :func:`mixture_of` over draws.

    Parameters
    ----------
    cumulative : ndarray of shape (2, n_rows, n_features)
        Of draws whose weights sum to one.
    periods : ndarray of shape (n_features,)
    uniform : ndarray of shape (n_rows, n_features)
        Random numbers, by which discrete values are spread (Dunn and Smyth 1996).

    Returns
    -------
    residuals : ndarray of shape (n_rows, n_features)
    """
    lower, upper = cumulative
    is_angle = periods < np.inf
    if is_angle.any():
        upper = np.where(is_angle, upper - lower, upper)
        lower = np.where(is_angle, upper, lower)
    share = lower + uniform * (upper - lower)
    found = ndtri(np.minimum(np.maximum(share, 0.0), 1.0))
    return np.asarray(np.minimum(np.maximum(found, -_LARGEST), _LARGEST))


def ranks_of(
    model: FrozenModel,
    probs: Floats,
    codes: Array,
    n: int,
    limits: list[int],
    stream: RandomStream,
) -> Floats:
    """Numbers of `n` values drawn for each row that are below its own, and not above."""
    n_features = len(limits)
    repeated = np.repeat(np.arange(len(codes)), n)
    states = choose(probs[repeated], stream.generator.random(len(repeated)))
    inputs = codes[repeated, n_features:] if codes.shape[1] > n_features else None
    drawn = np.column_stack(model.draw_values(states, limits, stream, inputs))
    drawn = drawn.reshape(len(codes), n, n_features)
    values = codes[:, None, :n_features]
    return np.stack([(drawn < values).sum(axis=1), (drawn <= values).sum(axis=1)])


def normal_residuals(
    draws: Sequence[Draw],
    weights: Floats,
    sequences: Sequences,
    emission: BaseEmission,
    stream: RandomStream,
) -> Floats:
    """Normal pseudo-residuals of encoded data under draws.

    Parameters
    ----------
    draws : sequence of Draw
    weights : ndarray of shape (n_draws,)
    sequences : Sequences
    emission : BaseEmission
        Fitted.
    stream : RandomStream

    Returns
    -------
    residuals : ndarray of shape (n_samples, n_features)
        In the order of the encoded columns.
    """
    codes = sequences.codes
    limits = symbol_limits(emission, codes)
    n = len(limits)
    is_missing = missing_values(codes[:, :n], limits)
    uniform = stream.generator.random(is_missing.shape)
    periods, is_discrete = emission.periods(n), emission.discrete_columns(n)
    weights = weights / weights.sum()
    n_ranked = stream.generator.multinomial(N_RANKED, weights)
    shares, counts = np.zeros((2, 2, *is_missing.shape))
    for d, draw in enumerate(draws):
        model = frozen_model(draw, sequences, emission)
        probs = model.look_ahead()
        if d == 0:
            values = np.where(is_missing, 0.0, codes[:, :n])
            ends = ends_of(
                values, is_discrete, periods, centres_of(model, probs, emission)
            )
        size = max(1, _MOST_PROBS // (n * probs.shape[1]))
        for start in range(0, len(codes), size):
            part = slice(start, start + size)
            cdf = emission.predictive_cdf(model.emission, model._slots(), codes[part, n:])
            shares[:, part] += mixture_of(weights[d] * probs[part], cdf, ends[:, part])
        # The same for all draws.
        is_ranked = np.isnan(shares[0]) & ~is_missing
        is_ranked &= ~np.isnan(codes[:, n:]).any(axis=1, keepdims=True)
        rows = np.flatnonzero(is_ranked.any(axis=1))
        if len(rows) and n_ranked[d]:
            counts[:, rows] += ranks_of(
                model, probs[rows], codes[rows], n_ranked[d], limits, stream
            )
    counts[1] += 1
    shares = np.where(is_ranked, counts / (N_RANKED + 1), shares)
    residuals = residuals_of(shares, np.where(is_ranked, np.inf, periods), uniform)
    return np.where(is_missing, np.nan, residuals)
