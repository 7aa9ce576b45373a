"""Encoded data: values of all columns, and after them the inputs of every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skihmm._typing import Array, Flags, Floats, Integers, MatrixLike
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._gaussian import Gaussian
from skihmm.emissions._given import encode_given
from skihmm.emissions._parts import missing_entries


def encode(
    emission: BaseEmission,
    X: MatrixLike,
    starts: Integers,
    before: Array | None = None,
    given: Array | None = None,
    noise: Floats | None = None,
) -> Array:
    """Convert data to the rows that the statistics of a fitted emission take.

    Parameters
    ----------
    emission : BaseEmission
    X : array-like of shape (n_samples, n_features)
    starts : array-like of shape (n_sequences,)
        First row of every sequence.
    before : ndarray of shape (n_continued, n_features + n_inputs), optional
        The first `n_continued` sequences continue after these encoded rows.
    given : ndarray of shape (n_samples, n_given), optional
        Given columns in the order of the roles; by default all are missing.
    noise : ndarray of shape (n_samples, n_features), optional
        Added to the values.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_features + n_inputs)
    """
    encoded = None if given is None else encode_given(emission, given)
    values = emission.encode_values(X)
    if noise is not None:
        values = values + noise
    return with_inputs(emission, values, starts, before, encoded)


def with_inputs(
    emission: BaseEmission,
    values: Array,
    starts: Integers,
    before: Array | None = None,
    given: Array | None = None,
) -> Array:
    """Append their inputs to encoded values; `given` is encoded."""
    if not emission.n_inputs:
        return values
    return np.hstack([values, emission.inputs(values, starts, before, given)])


def noise_of(
    emission: BaseEmission, shape: tuple[int, ...], first: int, entropy: Sequence[int]
) -> Floats | None:
    """Noise that a fit adds to values of this shape, as :meth:`Gaussian.dither`; None without."""
    columns, found = emission.columns(shape[1]).part, None
    for i, part in enumerate(emission.parts):
        if isinstance(part.emission, Gaussian):
            noise = part.emission.dither(shape[0], first, [*entropy, *part.path])
            if noise is not None:
                found = np.zeros(shape) if found is None else found
                found[:, columns == i] = noise
    return found


def missing_ends(emission: BaseEmission, codes: Array, starts: Integers) -> Flags:
    """Mask of the steps without any observed value at the beginning and end of sequences."""
    # (`is_missing` is true of steps without a likelihood, which may lack a part of their values,
    # or inputs.)
    missing = missing_entries(emission, codes).all(axis=1)
    sizes = np.diff(starts, append=len(codes))
    # Observed steps up to every step, and in its sequence.
    observed = (~missing).astype(int)
    of_sequence = np.add.reduceat(observed, starts)
    so_far = np.cumsum(observed)
    so_far -= np.repeat(so_far[starts] - observed[starts], sizes)
    return np.asarray(missing & ((so_far == 0) | (so_far == np.repeat(of_sequence, sizes))))
