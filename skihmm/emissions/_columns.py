"""Columns of numbers: how they are read, their checks, means and variances."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.scales import column_means, column_variances
from skihmm._data.validation import (
    as_matrix,
    is_missing_entry,
    is_number,
    remedy_for_objects,
    remedy_for_times,
    shown,
)
from skihmm._typing import Array, Floats, MatrixLike
from skihmm.emissions._base import BaseEmission

# The log joint probability sums terms of the size of y log(y): at counts of 1e12 each is
# rounded by some thousandths.
LARGEST_COUNT = 1e12
_OF_REALS = 'Real numbers need another emission, such as "gaussian"; positive ones "gamma". '
# Signs that print as minus.
_MINUSES = ("\u2212", "\u2013")
# Name of symbols that are no category.
_OTHER_SYMBOL = "(unseen)"


def name_columns(
    emission: BaseEmission,
    names: Sequence[str | int] | None,
    orders: Sequence[Sequence[object] | None] = (),
) -> None:
    """Set the names of the columns of X, for error messages; precedes the fit.

    Columns of a part of a product without names have integers, their indices in X. `orders` has the
    categories of columns in their order, for symbols, otherwise None.
    """
    emission._names_of_columns = None if names is None else list(names)
    emission._orders = list(orders)


def column_labels(emission: BaseEmission, n_columns: int) -> Sequence[str | int]:
    """Names of the columns of X, or their indices if they have no names."""
    names = emission._names_of_columns
    return names if names and len(names) == n_columns else range(n_columns)


def column_orders(emission: BaseEmission, n_columns: int) -> Sequence[Sequence[object] | None]:
    """Categories of the columns of X in their order, None for columns without categories."""
    orders = emission._orders
    return orders if len(orders) == n_columns else [None] * n_columns


def as_floats(X: MatrixLike, emission: BaseEmission) -> Floats:
    X = as_matrix(X)
    labels = column_labels(emission, X.shape[1])
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X holds complex numbers.")
    if X.dtype.kind in "OUS":
        columns = [
            [_number(value, f"X[{row}, {c!r}]", X) for row, value in enumerate(column)]
            for c, column in zip(labels, X.T.tolist(), strict=True)
        ]
        X = np.array(columns, dtype=float).T.reshape(X.shape)
    if X.dtype.kind not in "biuf":
        remedy = f" {remedy_for_objects(X[0, 0], 'column')}" if X.dtype.kind in "mM" else ""
        raise TypeError(f"X has the type {X.dtype}; expected numbers.{remedy}")
    # Sums over rows depend on the order in memory, to the last bits.
    X = X.astype(np.float64, order="C")
    for row, c in np.argwhere(np.isinf(X)):
        raise ValueError(
            f"X contains infinity: {entry(X, row, c, emission)}; expected finite "
            "numbers or NaN (missing)."
        )
    return X


def entry(X: Array, row: int, c: int, emission: BaseEmission) -> str:
    """Describe an entry of X with its row and the name of its column, for errors."""
    label = column_labels(emission, X.shape[1])[c]
    return f"X[{row}, {label!r}] = {shown(X[row, c])}"


def _number(value: object, place: str, X: Array) -> float:
    if is_missing_entry(value):
        return np.nan
    if not (isinstance(value, str) or is_number(value)):
        raise TypeError(
            "Every entry of X must be a number: the argument must be a string or a "
            f"number, got {type(value).__name__} {value!r} in {place}. "
            f"{remedy_for_objects(value, _label_in(place))}"
        )
    try:
        return float(cast("str | float", value))
    except OverflowError:
        raise ValueError(f"{place} is a number beyond the range of floats.") from None
    except ValueError:
        raise ValueError(
            f"{place} = {value!r}, which is no number. {_remedy_for_strings(X, value, place)}"
        ) from None


def _remedy_for_strings(X: Array, value: object, place: str) -> str:
    """Remedy for strings: beside columns of numbers they are mixed data."""
    if is_decimal_comma(value):
        # "1,204" can be either.
        is_either = re.fullmatch(r"\s*-?[1-9]\d{0,2},\d{3}\s*", str(value))
        return (
            'Decimal commas: pandas.read_csv(..., decimal=","), or column.str.replace(",", ".").'
            + ' Commas of thousands: pandas.read_csv(..., thousands=",").' * bool(is_either)
        )
    text, column = str(value).strip(), _label_in(place)
    if re.fullmatch(r"-?\d{1,3}([' ]\d{3})+([.,]\d*)?", text):
        return """Marks of thousands: column.str.replace("[' ]", "", regex=True).astype(float)."""
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?", text):
        return 'Commas of thousands: pandas.read_csv(..., thousands=","), or remove them.'
    if re.fullmatch(r"-?\d{1,3}(\.\d{3})+,\d*", text):
        return 'Decimal commas: pandas.read_csv(..., decimal=",", thousands=".").'
    if text[:1] in _MINUSES and _is_number_text(text[1:]):
        return f'Minus signs of print: column.str.replace("{text[0]}", "-").'
    if re.fullmatch(r"\(?[-+]?[\d.]+(e[-+]?\d+)?[-+][\d.]+(e[-+]?\d+)?[ij]\)?", text):
        return (
            "Complex numbers: z = numpy.array(column, dtype=complex) has parts, z.real and z.imag, "
            "which are columns of numbers, as is numpy.abs(z)."
        )
    if re.fullmatch(r"-?\d+/\d+", text):
        return (
            'Pairs of numbers: column.str.split("/", expand=True).astype(float) has a column for '
            "each; a fraction is their quotient."
        )
    are_strings = [
        {isinstance(value, str) for value in column if not is_missing_entry(value)}
        for column in X.T
    ]
    if {True, False} in are_strings or _are_mostly_numbers(X, value):
        return 'pandas.to_numeric(column, errors="coerce") makes it NaN: missing.'
    if _is_time(text):
        return remedy_for_times(column)
    if _has_unit(X, text):
        return r'Remove units: column.str.extract(r"(-?[\d.]+)")[0].astype(float).'
    if {False} in are_strings:
        return (
            "Other columns hold numbers. An id of the sequence of every row is no column: "
            f"groups=X[{column}], and leave it out of X. Subjects with levels of their own: "
            f"subject_feature={column}. Circumstances: "
            f"HCRPTransitions(context_features=[{column}]). A category that states show: "
            "skihmm.emissions.ProductEmission, mixed data with an emission for every group of "
            "columns."
        )
    if len({text for text in X.ravel().tolist() if not is_missing_entry(text)}) == 2:
        return (
            f'Symbols need emission="hcrp". Two values as 0 and 1: (X == {value!r}).astype(int). '
            "NaN or None marks what is missing."
        )
    return 'Symbols need emission="hcrp"; NaN or None marks what is missing.'


def _label_in(place: str) -> str:
    """Column in ``X[0, 'a']``, as code."""
    return place.partition(", ")[2].removesuffix("]")


def _are_mostly_numbers(X: Array, value: object) -> bool:
    """Whether most strings of a column with this entry are numbers."""
    for column in X.T:
        texts = [text for text in column.tolist() if isinstance(text, str)]
        if value in texts:
            return 2 * sum(map(_is_number_text, texts)) > len(texts)
    return False


def _has_unit(X: Array, text: str) -> bool:
    """Whether a text is a number with a unit, which all texts of its column have."""
    if not re.fullmatch(r"-?\d+(\.\d+)?\s*[^\d\s.,:/-]{1,5}|[$€£¥]\s*-?\d+(\.\d+)?", text):
        return False
    columns = [[entry for entry in column if isinstance(entry, str)] for column in X.T]
    own = next(column for column in columns if text in map(str.strip, column))
    return len({re.sub(r"[-\d.\s]", "", entry) for entry in own}) == 1


def _is_number_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    """Whether a text is a date or a time: of ISO 8601, 14:30, 31.12.2024 or 12/31/24."""
    if re.match(r"\d{1,2}:\d{2}\b|\d{1,2}([./-])\d{1,2}\1\d{2,4}\b|\d{4}-\d\d$", text):
        return True
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_decimal_comma(value: object) -> bool:
    return (
        isinstance(value, str)
        and re.fullmatch(r"\s*-?\d+,\d+(e[+-]?\d+)?\s*", value, re.IGNORECASE) is not None
    )


def check_counts(X: Floats, largest: float, what: str, emission: BaseEmission) -> None:
    are_real = (np.floor(X) != X) & ~np.isnan(X)
    of_reals = _OF_REALS * bool(are_real.any())
    for bad, words, remedy in (
        (X < 0, "Negative values in data: {}; expected " + what, of_reals),
        (are_real, "{} is not an integer; expected " + what, of_reals),
        (largest < X, "{} is too large; expected " + what, ""),
    ):
        bad &= ~np.isnan(X)
        for row, c in np.argwhere(bad):
            raise ValueError(
                f"{words.format(entry(X, row, c, emission))}. {remedy}NaN marks what is missing."
            )


def column_values(
    name: str,
    value: ArrayLike | None,
    n_columns: int,
    expected: str = "a number, or one per column, or None",
) -> Floats:
    """One finite number per column, from a number or an array."""
    try:
        # NumPy would turn strings and truth values into numbers.
        if np.asarray(value).dtype.kind in "bUS":
            raise TypeError
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name}={value!r}; expected {expected}.") from None
    if values.ndim > 1 or values.size not in (1, n_columns):
        raise ValueError(
            f"{name} has the shape {values.shape}, but X has {n_columns} columns; "
            "expected a number, or one per column."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name}={value!r}; expected finite numbers.")
    return np.broadcast_to(values.reshape(-1), n_columns).copy()


def positive_values(name: str, value: ArrayLike | None, n_columns: int) -> Floats:
    values = column_values(name, value, n_columns)
    if not (values > 0).all():
        raise ValueError(f"{name}={value!r}; expected numbers > 0.")
    return values


def means_and_dispersions(X: Floats) -> tuple[Floats, Floats]:
    """Mean of every column, 1 if it is zero, and the squared coefficient of variation."""
    means = column_means(X)
    means = np.where(means > 0, means, 1.0)
    # Squares of data in units of their means stay within the range of floats.
    return means, column_variances(X / means)


def symbol_names(emission: BaseEmission, column: int, n_symbols: int) -> list[str]:
    """Names of the symbols of one column, the names of symbols without a category last."""
    known = [str(value) for value in emission.categories_[column]]
    return known + [_OTHER_SYMBOL] * (n_symbols - len(known))
