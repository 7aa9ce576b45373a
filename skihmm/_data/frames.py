"""Data frames as results, for data frames as input or by ``set_output``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from sklearn import get_config

from skihmm._data.validation import warn_caller
from skihmm._texts import unique_texts
from skihmm._typing import Array, Flags

LIBRARIES = ("pandas", "polars")

# Type of a column in plain values, which all formats of saved models hold: its name, and
# of pandas' Categorical and polars' Enum the categories and whether they have an order.
ColumnType: TypeAlias = tuple[str, list[object] | None, bool]


def library_of(X: object) -> str | None:
    """Name of the library of a data frame, one of `LIBRARIES`; None for other data."""
    library = type(X).__module__.partition(".")[0]
    return library if library in LIBRARIES and hasattr(X, "columns") else None


def output_library(estimator: object, came_in: str | None) -> str | None:
    """Library of the frames that an estimator returns; None for arrays.

    The library of its ``set_output``, else of scikit-learn's global ``transform_output``, else
    `came_in`, the input's library.
    """
    asked = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    if asked is None:
        asked = get_config()["transform_output"]
        return came_in if asked == "default" else str(asked)
    return None if asked == "default" else str(asked)


def column_texts(X: Any, n_features: int) -> list[str] | None:
    """Names of the columns of a data frame as texts, also of numbers, dates and pairs.

    None of other data, and of a frame whose names are the positions.
    """
    names = list(X.columns) if library_of(X) else None
    if names is None or names == list(range(n_features)):
        return None
    return [str(name) for name in names]


def column_types(X: object) -> list[ColumnType]:
    """Types of the columns of a data frame; none of other data."""
    types: list[ColumnType] = []
    for dtype in getattr(X, "dtypes", ()) if library_of(X) else ():
        name = str(dtype).partition("(")[0]
        categories = list(dtype.categories) if name in ("category", "Enum") else None
        types.append((name, categories, bool(getattr(dtype, "ordered", categories))))
    return types


def category_orders(types: Sequence[ColumnType]) -> list[list[object] | None]:
    """Categories of every column in their order, None for columns without categories."""
    return [categories if is_ordered else None for _, categories, is_ordered in types]


def make_frame(
    library: str,
    values: Array,
    names: Sequence[str],
    X: object,
    types: Sequence[ColumnType] = (),
) -> Any:
    """Convert an array to a data frame.

    The index of a pandas frame `X` is kept.  Columns get `types`, of the same library,
    unless a value does not fit.
    """
    module = import_module(library)
    rows = values.tolist() if values.dtype == object else values
    if library == "polars":
        frame = module.DataFrame(rows, schema=unique_texts(names), orient="row")
        for c, (name, categories, _) in enumerate(types):
            enum = categories and module.Enum(categories)
            dtype = enum or getattr(module, name, None)
            frame = _with_column(frame, c, frame.to_series(c), dtype)
        return frame
    index = getattr(X, "index", None) if library_of(X) == "pandas" else None
    frame = module.DataFrame(rows, index=index, columns=list(names))
    for c, (name, categories, is_ordered) in enumerate(types):
        dtype = categories and module.CategoricalDtype(categories, is_ordered)
        frame = _with_column(frame, c, frame.iloc[:, c], dtype or name)
    return frame


def frame_of_columns(library: str, columns: Iterable[tuple[str, Any]]) -> Any:
    """Make a data frame of named columns of several types; names twice get a number."""
    names, values = zip(*columns, strict=True)
    return import_module(library).DataFrame(dict(zip(unique_texts(names), values, strict=True)))


def fill_frame(X: Any, missing: Flags, values: Array) -> Any:
    """Copy a data frame with its missing entries filled in.

    Columns have the types that they have in X, unless a value does not fit.
    """
    is_pandas = library_of(X) == "pandas"
    module = import_module(type(X).__module__.partition(".")[0])
    frame = X.copy() if is_pandas else X.clone()
    for c in np.flatnonzero(missing.any(axis=0)).tolist():
        entries = values[:, c].tolist()
        if is_pandas:
            column = module.Series(entries, index=X.index)
        else:
            column = module.Series(X.columns[c], entries)
        frame = _with_column(frame, c, column, list(X.dtypes)[c])
    return frame


def _with_column(frame: Any, c: int, column: object, dtype: object) -> Any:
    """Set a column of a frame, converted to a type unless values would change."""
    if library_of(frame) == "polars":
        return frame.with_columns(_as_type(column, dtype, "cast"))
    frame.isetitem(c, _as_type(column, dtype, "astype"))
    return frame


def _as_type(column: object, dtype: object, method: str) -> object:
    """Convert a column to another type, or return it where values would change."""
    with warnings.catch_warnings():
        # pandas warns of categories that the type does not have.
        warnings.simplefilter("error")
        try:
            cast = getattr(column, method)(dtype)
            return cast if (cast == column).all() else column
        except Exception:
            return column


def find_columns(
    what: str,
    columns: Sequence[object],
    n_features: int,
    names: Sequence[str] | Array | None,
    where: str = "counted from 0",
    others: str = "",
) -> list[int]:
    """Indices of columns of X, given by indices, names or a mask.

    `what` names them in errors, `where` the objects that indices count, and `others` further
    columns.
    """
    if columns and all(isinstance(column, bool | np.bool_) for column in columns):
        if len(columns) != n_features:
            raise ValueError(
                f"{what}: a mask of {len(columns)} entries, but X has {n_features} "
                "columns; expected an entry for every column."
            )
        return np.flatnonzero(np.array(columns)).tolist()
    found = []
    for column in columns:
        if isinstance(column, str):
            if names is None:
                raise ValueError(
                    f"{what}: {column!r} is a name, but the columns of X have none. Pass "
                    "indices, or a data frame."
                )
            if column not in names:
                raise ValueError(
                    f"{what}: X has no column {column!r}; its columns are {list(names)}{others}."
                )
            found.append(list(names).index(column))
        elif isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not -n_features <= column < n_features:
                raise ValueError(
                    f"{what}: X has no column {column}; it has {n_features} columns, "
                    f"{where}{others}."
                )
            place = int(column) % n_features
            if names is not None and (text := str(column)) in names and text != names[place]:
                warn_caller(
                    f"{what}: {column} is the position of the column {names[place]!r}, as in "
                    f"scikit-learn, not the column named {text}, whose position is "
                    f"{list(names).index(text)}."
                )
            found.append(place)
        else:
            raise TypeError(
                f"{what}={columns!r}; expected a list of names or indices of columns of "
                "X, or a mask with an entry for every column."
            )
    return found
