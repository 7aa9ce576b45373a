"""Checks of parameters and data."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set, Sized
from decimal import Decimal
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral, Number, Real
from os import PathLike
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from skihmm._data.other_names import CHOICES, SHORT_NAMES, remedy_of
from skihmm._typing import Array, Flags

Recipe = TypeVar("Recipe")


# Limit of numbers that are squared and summed.
LARGEST_SIZE, LEAST_SIZE = 1e100, 1e-100
# From which on floats are no longer exact integers.
EXACT_FLOAT = 2.0**53
# Rows that are converted at a time: temporary arrays of long data stay small.
CHUNK_ROWS = 1 << 16

# Steps from row to row after which an increase, or none, is no chance.
_LEAST_STEPS = 20
# Share of rows that follow another row below which sequences are probably rows.
_FEW_FOLLOW = 0.05


def row_chunks(n_rows: int) -> Iterator[slice]:
    """Divide rows into slices of at most `CHUNK_ROWS`."""
    for start in range(0, n_rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, n_rows))


def warn_caller(message: str) -> None:
    """Issue a UserWarning that points to the caller's line outside of the package."""
    level, frame = 1, sys._getframe()
    # fit is wrapped by scikit-learn's callbacks, and called by pipelines and searches.
    inside = ("skihmm.", "sklearn.", "joblib.")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def check_integer(name: str, value: object, minimum: int) -> int:
    """Return an integer parameter, or raise an error with the expected range."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is not an integer; expected an integer >= {minimum}.")
    if value < minimum:
        raise ValueError(f"{name}={value}; expected an integer >= {minimum}.")
    return int(value)


def check_integer_or_auto(name: str, value: object, minimum: int) -> int | None:
    """Return an integer parameter, None for "auto", or raise an error."""
    if not isinstance(value, str):
        return check_integer(name, value, minimum)
    if value != "auto":
        raise ValueError(f'{name}={value!r}; expected "auto" or an integer >= {minimum}.')
    return None


def _check_real(
    name: str, value: object, expected: str, is_valid: Callable[[float], bool]
) -> float:
    """Return a finite number for which a test is true, or raise an error."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is not a number; expected {expected}.")
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = np.inf
    if not (np.isfinite(number) and is_valid(number)):
        raise ValueError(f"{name}={value!r}; expected {expected}.")
    return number


def check_positive(name: str, value: object) -> float:
    """Return a finite number > 0, or raise an error."""
    return _check_real(name, value, "a finite number > 0", lambda number: number > 0)


def check_concentration(name: str, value: object) -> float:
    """Return a number > 0 in the range of concentrations, or raise an error."""
    number = check_positive(name, value)
    if not 1e-50 <= number <= 1e50:
        raise ValueError(f"{name}={value}; expected a number from 1e-50 to 1e+50.")
    return number


def check_finite(name: str, value: object) -> float:
    """Return a finite number, or raise an error."""
    return _check_real(name, value, "a finite number", np.isfinite)


def check_nonnegative(name: str, value: object) -> float:
    """Return a finite number >= 0, or raise an error."""
    return _check_real(name, value, "a number >= 0", lambda number: number >= 0)


def check_fraction(name: str, value: object) -> float:
    """Return a number from 0 to 1, or raise an error."""
    expected = "a number from 0 to 1"
    return _check_real(name, value, expected, lambda number: 0 <= number <= 1)


def check_probability(name: str, value: object) -> float:
    """Return a number between 0 and 1, neither of them, or raise an error."""
    expected = "a number between 0 and 1"
    return _check_real(name, value, expected, lambda number: 0 < number < 1)


def check_n_jobs(name: str, value: object) -> int | None:
    """Return a number of jobs for joblib."""
    expected = "expected an integer other than 0 (-1: all cores), or None"
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is not an integer; {expected}.")
    if value == 0:
        raise ValueError(f"{name}=0; {expected}.")
    if abs(int(value)) > np.iinfo(np.int32).max:
        raise ValueError(f"{name}={value} is more jobs than any machine has; {expected}.")
    return int(value)


def _pair(name: str, value: object, expected: str) -> Sequence[object]:
    """Return two entries, or raise TypeError with the expected ones."""
    # A set has no first entry, and an iterator could be read only once.
    pair = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"{name}={value!r}; expected {expected}.")
    return pair


def check_concentration_prior(name: str, value: object) -> tuple[float, float] | None:
    """Return a Gamma prior as (shape, rate), or None if concentrations are fixed."""
    if value is None:
        return None
    shape, rate = _pair(
        name,
        value,
        "(shape, rate) of a Gamma distribution, two numbers > 0, or None to keep the "
        "concentrations fixed",
    )
    return check_positive(f"{name}[0]", shape), check_positive(f"{name}[1]", rate)


def check_dwell(name: str, value: object) -> float | None:
    """Check an expected number of steps, more than one, or None."""
    if value is None:
        return None
    dwell = check_positive(name, value)
    if dwell > 1e15:
        raise ValueError(f"{name}={value}; expected at most 1e+15 steps.")
    if dwell <= 1:
        raise ValueError(
            f"{name}={value!r}; expected a number of steps above 1, or None: no preference to stay."
        )
    return dwell


def check_stay_prior(name: str, value: object) -> tuple[float, float] | None:
    """Check two parameters of a Beta prior, or None."""
    if value is None:
        return None
    expected = "(a, b), pseudo-counts of staying and of leaving, or None"
    a, b = _pair(name, value, expected)
    return check_concentration(f"{name}[0]", a), check_concentration(f"{name}[1]", b)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return one of a few words, or raise an error that lists them."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        word = value.lower().replace("-", "_") if isinstance(value, str) else ""
        meant = [remedy_of(CHOICES, word), *get_close_matches(word, choices, 1, 0.7)]
        hints = [f" Did you mean {choice!r}?" for choice in meant if choice in choices]
        raise ValueError(f"{name}={value!r}; expected one of {listed}.{''.join(hints[:1])}")
    return value


def check_flag(name: str, value: object) -> bool:
    """Return a boolean parameter."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r}; expected True or False.")
    return bool(value)


def draw_entropy(random_state: object) -> list[int]:
    """Convert scikit-learn's random_state to the entropy of a SeedSequence."""
    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state={random_state!r}; expected an integer from 0 to 2**32 - 1, a "
            "numpy.random.RandomState or None."
        ) from None
    return [int(v) for v in generator.randint(0, 2**32, size=4, dtype=np.uint32)]


def unmask(X: object) -> Any:
    """Convert a masked array to a plain one with NaN (or None) where it is masked.

    Other objects are returned unchanged.
    """
    if not isinstance(X, np.ma.MaskedArray):
        return X
    mask = np.ma.getmaskarray(X)
    # Dates and other refused types are kept, so that the error can name them.
    if X.dtype.kind not in "OUSTbiuf" or not mask.any():
        return X.data
    filled = X.data.astype(float if X.dtype.kind in "biuf" else object)
    filled[mask] = None if filled.dtype == object else np.nan
    return filled


def as_array(name: str, values: object) -> Array:
    """Convert an array-like without coercing its entries.

    NumPy would turn NaN among strings into "nan".  `name` is the argument's, for errors.
    """
    values = unmask(values)
    if not isinstance(values, np.ndarray):
        original = values
        try:
            values = np.asarray(original)
        except ValueError:
            raise ValueError(
                f"{name} is ragged: it holds sequences of different lengths; expected an array."
            ) from None
        if values.dtype.kind in "US" and not hasattr(original, "dtype"):
            values = np.array(original, dtype=object)
    # scikit-learn does not support NumPy's strings of any length.
    return values.astype(object) if values.dtype.kind == "T" else values


def _has_rows(value: ArrayLike) -> bool:
    """Whether an entry of a list has two dimensions and is therefore not a row."""
    if isinstance(value, list | tuple):
        return any(isinstance(entry, list | tuple) or np.ndim(entry) for entry in value)
    return np.ndim(value) > 1


def refuse_one_dimension(X: object) -> None:
    """Refuse a single column or row that is not marked as such."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 1:
        n = shape[0]
        raise ValueError(
            f"X has one dimension, with {n} entries; expected the shape (n_samples, "
            "n_features), one row per time step. Reshape your data: "
            f"np.reshape(X, (-1, 1)) is one column of {n} steps, np.reshape(X, (1, -1)) "
            f"one step of {n} columns, and a Series has X.to_frame()."
        )


def refuse_complex(X: Any) -> None:
    """Refuse an array of complex numbers, or a frame with a column of them."""
    dtypes = [getattr(X, "dtype", None)]
    if hasattr(X, "columns"):
        dtypes = list(getattr(X, "dtypes", ()))
    if any(getattr(dtype, "kind", "") == "c" for dtype in dtypes):
        raise ValueError(
            "Complex data not supported: X holds complex numbers. Pass columns of numbers, such "
            "as X.real and X.imag, or np.abs(X)."
        )


def refuse_sequences(X: Any) -> None:
    """Refuse several sequences in a list or in three dimensions, and what holds no rows.

    The entries of a list have two dimensions or different lengths, and an array has three
    dimensions.
    """
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame; expected a DataFrame: X.collect().")
    if isinstance(X, str | bytes | PathLike):
        raise TypeError(
            f"X is the text {str(X)!r}; expected rows of numbers or symbols. Read a file first: "
            "X = pandas.read_csv(...)."
        )
    if isinstance(X, dict) or (isinstance(X, list) and X and isinstance(X[0], dict)):
        seen = "a dict" if isinstance(X, dict) else "a list of dicts"
        # pandas takes a dict of numbers for columns without an index.
        is_row = isinstance(X, dict) and all(np.ndim(value) == 0 for value in X.values())
        how = f"X = pandas.DataFrame({'[X]' if is_row else 'X'})"
        raise TypeError(f"X is {seen}; expected one row per time step: {how}.")
    if type(X).__name__.endswith("GroupBy"):
        raise TypeError(
            f"X is a {type(X).__name__}; expected the data frame itself without the column of ids, "
            'and one sequence id per row in groups: groups=df["id"].'
        )
    if X is None or isinstance(X, Iterator | Set):
        how = "X = pandas.read_csv(X)" if hasattr(X, "read") else "X = list(X)"
        raise TypeError(
            f"X is {'None' if X is None else f'a {type(X).__name__}'}; expected an array, a data "
            f"frame or a list with one row per time step{'' if X is None else f': {how}'}."
        )
    refuse_complex(X)
    is_nested = isinstance(X, list | tuple) or (
        isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    )
    if is_nested:
        sizes = {len(row) for row in X if isinstance(row, list | tuple) or np.ndim(row)}
        has_rows = any(map(_has_rows, X[:1]))
        if len(sizes) < 2 and not has_rows:
            return
        seen = f"X holds {len(X)} arrays or lists" + (
            " of different lengths" if len(sizes) > 1 else ""
        )
    elif getattr(X, "ndim", None) == 3:
        has_rows = True
        seen = f"X has the shape {tuple(X.shape)}"
    else:
        return
    column = "" if has_rows else "[:, None]"
    raise ValueError(
        f"{seen}; expected one array of shape (n_samples, n_features), one row per time "
        "step. If these are sequences, concatenate them and pass groups, one sequence id "
        f"per row: X = np.concatenate(sequences){column}, groups = "
        "np.repeat(np.arange(len(sequences)), [len(s) for s in sequences])."
    )


def remedy_for_objects(value: object, column: str) -> str:
    """What to do about an entry that is neither a number nor a symbol, of a named column."""
    name = type(value).__name__
    if isinstance(value, complex):
        return "Pass columns of numbers, such as X.real and X.imag, or np.abs(X)."
    if name in ("Timedelta", "timedelta", "timedelta64"):
        return (
            "Turn durations into numbers: column.dt.total_seconds(), or "
            'values / numpy.timedelta64(1, "s").'
        )
    if name in ("Timestamp", "Period", "datetime", "date", "time", "datetime64"):
        return remedy_for_times(column)
    if name == "Interval":
        return "Turn intervals into symbols: column.astype(str)."
    return "Leave out what is no observation; times may be the index."


def remedy_for_times(column: str) -> str:
    return (
        f"Times are no observations: X = X.set_index({column}) makes them the index of a pandas "
        "frame; other data go without the column."
    )


def shown(value: object) -> str:
    """Format a number with all digits, for errors."""
    return str(value).removesuffix(".0")


def as_matrix(X: object) -> Array:
    """Convert X by :func:`as_array` and check that it has two dimensions."""
    refuse_sequences(X)
    X = as_array("X", X)
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions; expected an array of shape (n_samples, n_features)."
        )
    return X


def unify_frame(X: Any) -> Any:
    """Convert a data frame without a common type to Python objects.

    scikit-learn before 1.9 treats a frame with other types than NumPy's as numbers and
    fails on strings.  polars turns times beside numbers into numbers.  Other objects are returned
    unchanged.
    """
    if type(X).__module__.startswith("polars"):
        polars = import_module("polars")
        times = [c for c, dtype in X.schema.items() if dtype.is_temporal()]
        return X.with_columns(polars.Series(c, X[c].to_list(), dtype=polars.Object) for c in times)
    if not (hasattr(X, "iloc") and hasattr(X, "columns")):
        return X
    dtypes = set(X.dtypes)
    if not dtypes:
        return X.to_numpy()  # scikit-learn fails on the type of no columns
    if len(dtypes) < 2 or all(
        isinstance(dtype, np.dtype) and dtype.kind in "biufO" for dtype in dtypes
    ):
        return X
    return X.astype(object)


def is_number(value: object) -> bool:
    """Whether a Python object is a real number."""
    # NumPy's times are Integral; Decimal and NumPy's bool are not Real.
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def is_missing_entry(value: object) -> bool:
    """Whether a Python object is NaN, NaT, None or pandas.NA."""
    if value is None or isinstance(value, str):
        return value is None
    name = type(value).__name__
    # NaN differs from itself; for pandas.NA and arrays the comparison has no truth value.
    is_scalar = isinstance(value, Number | np.generic) or name == "NaTType"
    return name == "NAType" or bool(is_scalar and value != value)


def is_missing(values: Array) -> Flags:
    """Mask of entries of a one-dimensional array that are NaN, NaT, None or pandas.NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing_entry, values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def distinct(values: Array) -> Array:
    """Sorted entries of a one-dimensional array, each once, without missing ones."""
    parts = [values[:0]]
    for rows in row_chunks(len(values)):
        part = values[rows]
        parts.append(np.unique(part[~is_missing(part)]))
    return np.unique(np.concatenate(parts))


def resolve(
    name: str, value: object, known: Mapping[str, Callable[[], Recipe]], base: type
) -> Recipe:
    """Make the object of a short name, or clone an object.

    `name` is the argument's, for errors; `known` has factories of objects by short name.
    """
    if isinstance(value, str) and value in known:
        return known[value]()
    if isinstance(value, base):
        try:
            copy: Recipe = clone(value)
        except TypeError as error:
            what = f"{name}={type(value).__name__}(...)"
            raise TypeError(f"{what} cannot be copied: {error}.") from error
        return copy
    listed = ", ".join(repr(key) for key in known)
    word = value.lower().replace("-", "_") if isinstance(value, str) else ""
    close = [repr(key) for key in get_close_matches(word, known, 1)]
    meant = remedy_of(SHORT_NAMES, word) or "".join(close)
    hint = f" Did you mean {meant}?" if meant else ""
    raise ValueError(
        f"{name}={value!r}; expected one of {listed}, or an instance of "
        f"{base.__name__} (not the class).{hint}"
    )


def nested_short_names(
    params: Mapping[str, object],
    given: Mapping[str, object],
    known: Mapping[str, Callable[[], object]],
) -> dict[str, object]:
    """Make objects of the short names whose parameters are to be set.

    `params` are the parameters of ``set_params``, `given` has the current value of every nested
    parameter, and `known` factories of objects by short name.
    """
    recipes = {}
    for name, value in given.items():
        value = params.get(name, value)
        is_nested = any(key.startswith(name + "__") for key in params)
        if is_nested and isinstance(value, str) and value in known:
            recipes[name] = known[value]()
    return recipes


def check_column_names(name: str, X: object, names: Sequence[str] | None) -> None:
    """Raise ValueError if a frame has other columns, or in another order, than expected.

    Other data are not checked, nor is a frame if names are not known.
    """
    given = list(getattr(X, "columns", ()))
    if not names or given == list(names):
        return
    if given and all(isinstance(column, str) for column in given):
        raise ValueError(f"{name} has the columns {given}; expected {list(names)}, in this order.")


def _n_entries(value: object) -> int | None:
    """Length of a list, an array or a frame; None for objects without length."""
    try:
        # Sparse data have another error.
        return None if issparse(value) else len(cast("Sized", value))
    except TypeError:
        return None


def check_ignored(y: object, X: object) -> None:
    """Refuse a `y` that cannot have been meant to be ignored.

    A `y` without an entry for every row is probably the `lengths` of sequences, which are the
    second argument in some packages.
    """
    n_entries, n_rows = _n_entries(y), _n_entries(X)
    if None not in (n_entries, n_rows) and n_entries != n_rows:
        raise ValueError(
            f"y has {n_entries} entries, but X has {n_rows} rows; y is ignored and is "
            "expected to be None. If these are lengths of sequences, pass them as "
            "lengths=..., or groups, one sequence id per row."
        )


def warn_of_labels(y: object) -> None:
    """Warn of a `y` that looks like known states: few symbols, each of many rows."""
    if y is None or _n_entries(y) is None:
        return
    values = as_array("y", y)
    if values.ndim != 1 or values.dtype.kind not in "biuOUS":
        return
    n_distinct = len(set(values.tolist()))
    if 1 < n_distinct <= len(values) // 5:
        warn_caller(
            f"y has {n_distinct} different labels, but fit does not use y. If they are "
            "known states, pass states=y: integers >= 0, and -1 where the state is not "
            "known (pandas.factorize(y)[0]). Otherwise leave y out."
        )


def warn_of_identifiers(X: Array, starts: Array, labels: Sequence[str | int] | range) -> None:
    """Warn of columns of distinct integers that increase from row to row."""
    inside = np.delete(np.arange(1, len(X)), starts[1:] - 1)
    for label, column in zip(labels, X.T, strict=True):
        try:
            values = column.astype(float)
        except (TypeError, ValueError, OverflowError):
            continue  # symbols
        steps = values[inside] - values[inside - 1]
        if len(steps) >= _LEAST_STEPS and (steps > 0).all() and not (values % 1).any():
            warn_caller(
                f"Column {label!r} of X has integers that increase from row to row, as a "
                "time stamp or row number does, and is modelled as an observation. Leave "
                "it out; times may be the index of X."
            )


def warn_of_one_hot(X: Array) -> None:
    """Warn of columns of which every row has a one in exactly one."""
    n_rows, n_columns = X.shape
    if n_columns < 3 or n_rows <= n_columns:
        return
    try:
        values = X.astype(float)
    except (TypeError, ValueError, OverflowError):
        return  # symbols
    are_ones = values == 1
    if (are_ones | (values == 0)).all() and (are_ones.sum(axis=1) == 1).all():
        warn_caller(
            f"Every row of X has a single 1 in its {n_columns} columns, as one-hot codes have. One "
            "column of symbols says the same: X = X.idxmax(axis=1).to_frame() of a data frame, "
            'with emission="hcrp".'
        )


def warn_of_single_rows(n_rows: int, n_sequences: int, is_fit: bool = True) -> None:
    """Warn where hardly any row follows another; a fit may have few rows."""
    if n_rows - n_sequences > _FEW_FOLLOW * n_rows or (is_fit and n_rows <= _LEAST_STEPS):
        return
    remedy = (
        "groups has one value per sequence, the same in all of its rows, not one per row."
        if is_fit
        else "Rows of a new sequence follow no earlier row. partial_fit goes on with a sequence by "
        "its id in groups; OnlineFilter takes rows one by one."
    )
    warn_caller(
        f"X has {n_sequences} sequence{'s' * (n_sequences > 1)} in {n_rows} "
        f"row{'s' * (n_rows > 1)}, so that hardly any row follows another and states have no "
        f"dynamics. {remedy}"
    )


def warn_of_sequences(X: Array, starts: Array, labels: Sequence[str | int]) -> None:
    """Warn of sequences of one row, and of columns with one value in every sequence."""
    n_rows, n_sequences = len(X), len(starts)
    n_inside = n_rows - n_sequences
    warn_of_single_rows(n_rows, n_sequences)
    if n_inside < _LEAST_STEPS or n_sequences < 2 or X.shape[1] < 2:
        return
    inside = np.delete(np.arange(n_rows), starts)
    for label, column in zip(labels, X.T, strict=True):
        if is_missing(column).any() or (column == column[0]).all():
            continue
        if (column[inside] == column[inside - 1]).all():
            warn_caller(
                f"Column {label!r} of X has one value in every sequence, as an id has, "
                "and is modelled as an observation: states would tell sequences apart. "
                "Leave it out; context_features of the transitions and subject_feature "
                "are for what is known of sequences."
            )
