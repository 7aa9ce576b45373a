"""X as users pass it, in front of a fit and of the methods of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skihmm._data.sequences import row_index, sequence_starts
from skihmm._data.validation import (
    as_array,
    refuse_one_dimension,
    refuse_sequences,
    unify_frame,
    unmask,
)
from skihmm._typing import Array, MatrixLike, VectorLike


def read_rows(estimator: BaseEstimator, X: Any, is_fit: bool = False) -> Array:
    """Check X, and convert it to an array; a fit sets numbers and names of features."""
    refuse_sequences(X)
    if issparse(X):
        raise TypeError(
            f"X is sparse, a {type(X).__name__}; expected a dense array. Symbols are "
            'not one-hot but one column of codes: KBinsDiscretizer(encode="ordinal") '
            "or OrdinalEncoder in the place of OneHotEncoder makes them. Other data: "
            "X.toarray()."
        )
    X = unify_frame(unmask(X))
    if isinstance(X, list | tuple | np.ndarray):
        X = as_array("X", X)
    refuse_one_dimension(X)
    # The next lines locate the infinity, which scikit-learn does not.
    X = validate_data(estimator, X, reset=is_fit, dtype=None, ensure_all_finite=False)
    if X.dtype.kind == "f" and np.isinf(X).any():
        row, c = np.argwhere(np.isinf(X))[0]
        label = getattr(estimator, "feature_names_in_", range(X.shape[1]))[c]
        raise ValueError(
            f"X contains infinity: X[{row}, {label!r}] = {X[row, c]}; expected "
            "finite values, or NaN where they are missing."
        )
    return X


def read_sequences(
    estimator: BaseEstimator,
    X: MatrixLike,
    groups: VectorLike | None,
    lengths: VectorLike | None,
    is_fit: bool = False,
) -> tuple[Array, NDArray[np.intp]]:
    """Read rows, and the first row of every sequence."""
    index = row_index(X)
    rows = read_rows(estimator, X, is_fit)
    return rows, sequence_starts(len(rows), groups, lengths, index)
