"""Normal pseudo-residuals: observations seen from the rows before them."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from skihmm._decoding import around, mean_values
from skihmm._typing import Cdf, Flags, Floats
from skihmm.core._messages import FrozenModel
from skihmm.emissions import BaseEmission

# Residuals beyond are cut, where probabilities differ from one by rounding.
_LARGEST = 8.0


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
    is_angle = np.isfinite(periods)
    upper = values.astype(np.float64)
    for c in np.flatnonzero(is_angle):
        upper[:, c] = around(upper[:, c], centres[:, c], periods[c])
    lower = upper - is_discrete
    lower[:, is_angle] = (centres - 0.5 * periods)[:, is_angle]
    return np.stack([lower, upper])


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
    return np.einsum("tk,etkc->etc", probs, cdf(ends))


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
    is_angle = np.isfinite(periods)
    upper = np.where(is_angle, upper - lower, upper)
    lower = np.where(is_angle, upper, lower)
    share = np.clip(lower + uniform * (upper - lower), 0.0, 1.0)
    return np.clip(ndtri(share), -_LARGEST, _LARGEST)
