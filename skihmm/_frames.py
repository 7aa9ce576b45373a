"""Data frames as results, for data frames as input or by ``set_output``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator

from skihmm._typing import Array, Flags

LIBRARIES = ("pandas", "polars")


def library_of(X: object) -> str | None:
    """Name of the library of a data frame; None for other data.

    Parameters
    ----------
    X : object

    Returns
    -------
    library : {"pandas", "polars"} or None
    """
    library = type(X).__module__.partition(".")[0]
    return library if library in LIBRARIES and hasattr(X, "columns") else None


def output_library(estimator: BaseEstimator, came_in: str | None) -> str | None:
    """Library of the frames that an estimator returns; None for arrays.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``set_output``, or else scikit-learn's global ``transform_output``, applies.
    came_in : {"pandas", "polars"} or None
        Library of the input, which applies if neither of them was set.

    Returns
    -------
    library : {"pandas", "polars"} or None
    """
    asked = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    if asked is None:
        asked = get_config()["transform_output"]
        return came_in if asked == "default" else str(asked)
    return None if asked == "default" else str(asked)


def make_frame(library: str, values: Array, names: Sequence[str], X: Any) -> Any:
    """Convert an array to a data frame.

    Parameters
    ----------
    library : {"pandas", "polars"}
    values : ndarray of shape (n_samples, n_columns)
        The library infers the types of columns of objects.
    names : sequence of str
    X : object
        Data of the rows; the index of a pandas frame is kept.

    Returns
    -------
    frame : pandas.DataFrame or polars.DataFrame
    """
    module = import_module(library)
    rows = values.tolist() if values.dtype == object else values
    if library == "polars":
        return module.DataFrame(rows, schema=list(names), orient="row")
    index = X.index if library_of(X) == "pandas" else None
    return module.DataFrame(rows, index=index, columns=list(names))


def fill_frame(X: Any, missing: Flags, values: Array) -> Any:
    """Copy a data frame with its missing entries filled in.

    Parameters
    ----------
    X : pandas.DataFrame or polars.DataFrame
    missing : ndarray of shape (n_samples, n_features), bool
    values : ndarray of shape (n_samples, n_features)
        All entries.

    Returns
    -------
    frame : pandas.DataFrame or polars.DataFrame
        Columns have the types that they have in X, unless a value does not fit.
    """
    is_pandas = library_of(X) == "pandas"
    module = import_module(type(X).__module__.partition(".")[0])
    frame = X.copy() if is_pandas else X.clone()
    for c in np.flatnonzero(missing.any(axis=0)):
        entries = values[:, c].tolist()
        if is_pandas:
            column = module.Series(entries, index=X.index)
            frame.isetitem(c, _as_type(column, X.dtypes.iloc[c], "astype"))
        else:
            column = module.Series(X.columns[c], entries)
            frame = frame.with_columns(_as_type(column, X.dtypes[c], "cast"))
    return frame


def _as_type(column: object, dtype: object, method: str) -> Any:
    """Convert a column to another type, or return it where values would change."""
    with warnings.catch_warnings():
        # pandas warns of categories that the type does not have.
        warnings.simplefilter("error")
        try:
            cast = getattr(column, method)(dtype)
            return cast if (cast == column).all() else column
        except Exception:
            return column
