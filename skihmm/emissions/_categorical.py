"""Categorical emissions: symbols, one independent distribution per column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skihmm._data.contexts import Categories, Contexts, check_context_alpha
from skihmm._data.frames import category_orders, column_types
from skihmm._data.roles import Role
from skihmm._data.validation import (
    EXACT_FLOAT,
    as_array,
    as_matrix,
    check_choice,
    check_concentration,
    check_concentration_prior,
    distinct,
    is_missing,
    is_number,
    remedy_for_objects,
    row_chunks,
    shown,
    warn_caller,
)
from skihmm._records import CONTEXT_ALPHA, EmissionRecord
from skihmm._typing import Array, Flags, Floats, Labels, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.emissions._columns import (
    column_labels,
    column_orders,
)
from skihmm.emissions._given import TakesGiven

# Remedy for real values.
_FOR_NUMBERS = (
    'Real-valued data need emission="gaussian" (or "diagonal_gaussian"); or discretise '
    'them (KBinsDiscretizer(encode="ordinal")).'
)
# Texts that conversions to text make of missing entries.
_TEXTS_OF_MISSING = {"", "nan", "NaN", "NaT", "<NA>", "None"}
_FOR_MIXED_DATA = (
    "Other columns hold strings: mixed data need skihmm.emissions.ProductEmission, with "
    "an emission for every group of columns."
)


def _text_of_missing(label: str | int, text: str, seen: str) -> str:
    """Warning of a text that probably marks missing entries."""
    # Columns of arrays have numbers.
    how = f"by X = numpy.where(X == {text!r}, None, X)"
    if isinstance(label, str):
        how = f"in pandas by X = X.replace({text!r}, None)"
    return (
        f"Column {label!r} of X holds the text {text!r}, which {seen}. If it marks missing "
        f"entries, set it to None, {how}."
    )


def _too_large(c: str | int) -> ValueError:
    return ValueError(
        f"Column {c!r} of X holds a number outside the range of 64-bit integers; "
        "expected symbols below 2**63. Encode categories (OrdinalEncoder)."
    )


def _unpack(column: Array, c: str | int) -> Array:
    """Convert a column of Python objects to numbers if it has no strings."""
    missing = is_missing(column)
    n_strings = 0
    for row, (value, is_hole) in enumerate(zip(column, missing, strict=True)):
        if is_hole:
            continue
        if isinstance(value, str):
            n_strings += 1
        elif not is_number(value):
            raise TypeError(
                "Every entry of X must be a symbol: the argument must be a string or "
                f"a number, got {type(value).__name__} {value!r} in X[{row}, {c!r}]. "
                f"{remedy_for_objects(value, repr(c))}"
            )
    if n_strings == 0:
        present = column[~missing]
        numbers = np.full(len(column), np.nan)
        try:
            numbers[~missing] = present
        except OverflowError:
            raise _too_large(c) from None
        whole = np.array(present.tolist())
        return whole if whole.dtype.kind in "iub" and not missing.any() else numbers
    if n_strings + missing.sum() < len(column):
        raise TypeError(
            f"Column {c!r} of X holds strings and numbers; expected one of the two. "
            "Turn the numbers into strings, or encode the column (OrdinalEncoder)."
        )
    return column


def _as_symbols(column: Array, c: str | int) -> Array:
    """Convert a column to integers, floats with NaN, or objects (strings with None)."""
    if column.dtype.kind in "UT":
        return column.astype(object)
    if column.dtype.kind == "O":
        column = _unpack(column, c)
        if column.dtype.kind == "O":
            return column
    if column.dtype.kind not in "biuf":
        raise TypeError(
            f"Column {c!r} of X has the type {column.dtype}; expected strings or integers."
            + (f" {remedy_for_objects(column[0], repr(c))}" if column.dtype.kind in "mM" else "")
        )
    if column.dtype.kind == "u" and (column > np.iinfo(np.int64).max).any():
        raise _too_large(c)
    return column.astype(float if column.dtype.kind == "f" else np.int64, copy=False)


def _first_row(column: Array, is_wrong: Callable[[Array], Flags]) -> int | None:
    """First row for which a test is true, or None."""
    for rows in row_chunks(len(column)):
        wrong = is_wrong(column[rows])
        if wrong.any():
            return rows.start + int(wrong.argmax())
    return None


def _is_fractional(column: Array) -> Flags:
    return np.isfinite(column) & (np.floor(column) != column)


def _check_numbers(columns: list[Array], labels: Sequence[str | int]) -> None:
    """Refuse numbers that are not symbols, negative ones first."""
    numeric = [
        (c, column) for c, column in zip(labels, columns, strict=True) if column.dtype != object
    ]
    for_reals = _FOR_NUMBERS if len(numeric) == len(columns) else _FOR_MIXED_DATA
    for c, column in numeric:
        row = _first_row(column, lambda part: part < 0)
        if row is not None:
            remedy = "Mark missing symbols by NaN or a masked array."
            if _first_row(column, _is_fractional) is not None:
                # Probably scaled measurements rather than codes.
                remedy = for_reals
            raise ValueError(
                f"Negative values in data: X[{row}, {c!r}] = {shown(column[row])}; "
                f"expected symbols >= 0. {remedy}"
            )
    for c, column in numeric:
        if column.dtype.kind == "i":
            continue
        if _first_row(column, np.isinf) is not None:
            raise ValueError(
                f"X contains infinity (column {c!r}); expected integer symbols or NaN (missing)."
            )
        row = _first_row(column, _is_fractional)
        if row is not None:
            raise ValueError(
                f"X[{row}, {c!r}] = {shown(column[row])} is not an integer; categorical "
                f"emissions expect integer symbols. {for_reals}"
            )
        if _first_row(column, lambda part: part > EXACT_FLOAT) is not None:
            raise ValueError(
                f"Column {c!r} of X holds floats above 2**53, where different integers "
                "are the same float (integers beside missing entries are floats too). "
                "Pass integers, strings, or encode categories (OrdinalEncoder)."
            )


def _symbol_columns(X: MatrixLike, emission: BaseEmission) -> list[Array]:
    X = as_matrix(X)
    labels = column_labels(emission, X.shape[1])
    columns = [_as_symbols(column, c) for c, column in zip(labels, X.T, strict=True)]
    _check_numbers(columns, labels)
    return columns


def _given_categories(values: ArrayLike, c: int) -> Array:
    values = as_array(f"categories[{c}]", values)
    if values.ndim != 1:
        raise ValueError(
            f"categories[{c}] has {values.ndim} dimensions; expected one array of "
            "symbols per column."
        )
    try:
        values = _as_symbols(values, c)
        _check_numbers([values], [0])
    except (TypeError, ValueError) as error:
        raise type(error)(f"categories[{c}]: {error}") from None
    if is_missing(values).any():
        raise ValueError(
            f"categories[{c}] holds a missing value; leave it out, missing is no symbol."
        )
    if len(set(values.tolist())) < len(values):
        raise ValueError(f"categories[{c}] holds a symbol twice; expected each once.")
    if values.dtype != object and (values[1:] < values[:-1]).any():
        raise ValueError(f"categories[{c}] is unsorted; expected numbers in order.")
    return values


def _in_order(symbols: Array, order: Sequence[object] | None) -> Array:
    """Strings in the order of a type of data frames; numbers remain sorted."""
    if order is None or symbols.dtype != object:
        return symbols
    rank = {symbol: i for i, symbol in enumerate(order)}
    return np.array(sorted(symbols, key=lambda s: rank.get(s, len(rank))), dtype=object)


class _Categorical(BaseEmission):
    """Base class of the categorical emissions: symbols and their codes."""

    is_positive_only = True

    categories: str | Sequence[ArrayLike]
    handle_unknown: str
    # What to do about an unknown symbol.
    _remedy = "set handle_unknown='base' or 'missing', or pass categories"

    def fit(self, X: MatrixLike, y: None = None) -> _Categorical:
        check_choice("handle_unknown", self.handle_unknown, ("base", "missing", "error"))
        columns = _symbol_columns(X, self)
        expected = "expected 'auto' or a list with one array of symbols per column"
        if not isinstance(self.categories, str | list | tuple | np.ndarray) or (
            isinstance(self.categories, np.ndarray) and self.categories.ndim == 0
        ):
            raise TypeError(f"categories={self.categories!r}; {expected}.")
        if isinstance(self.categories, str):
            if self.categories != "auto":
                raise ValueError(f"categories={self.categories!r}; {expected}.")
            orders = category_orders(column_types(X)) or column_orders(self, len(columns))
            symbols = [
                _in_order(distinct(column), order)
                for column, order in zip(columns, orders, strict=True)
            ]
        else:
            symbols = [_given_categories(values, c) for c, values in enumerate(self.categories)]
            if len(symbols) != len(columns):
                raise ValueError(
                    f"categories lists the symbols of {len(symbols)} columns, but X has "
                    f"{len(columns)}."
                )
        self.categories_ = [
            values if values.dtype.kind == "O" else values.astype(np.int64) for values in symbols
        ]
        extra = 1 if self.handle_unknown == "base" else 0
        # The vocabulary needs at least one cell, even without observations.
        self.n_symbols_ = [max(len(values) + extra, 1) for values in self.categories_]
        return self

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        # Categories that were given are meant.
        learnt = self.categories_ if isinstance(self.categories, str) else []
        labels = column_labels(self, len(learnt))
        texts = [
            _text_of_missing(label, text, "counts as a symbol")
            for label, values in zip(labels, learnt, strict=True)
            for text in values.tolist()
            if text in _TEXTS_OF_MISSING
        ]
        return [*texts, *super().data_warnings(with_notes)]

    def encode_values(self, X: MatrixLike) -> Labels:
        """Convert symbols to codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_features), int32
            Indices in ``categories_``; -1 is missing, and an unseen symbol gets the cell
            after the last category with ``handle_unknown="base"``.
        """
        check_is_fitted(self)
        columns = _symbol_columns(X, self)
        labels = column_labels(self, len(columns))
        codes = np.empty((len(columns[0]), len(columns)), dtype=np.int32)
        for rows in row_chunks(len(codes)):
            for c, (column, values) in enumerate(zip(columns, self.categories_, strict=True)):
                codes[rows, c] = self._encode_column(column[rows], values, labels[c])
        return codes

    def _encode_column(self, column: Array, values: Array, label: str | int) -> Labels:
        """Codes of symbols in a column with these categories."""
        codes = np.full(len(column), -1, dtype=np.int32)
        present = ~is_missing(column)
        if not present.any():
            return codes
        if len(values) and (values.dtype == object) != (column.dtype == object):
            seen, known = ("numbers", "strings")
            if column.dtype == object:
                seen, known = known, seen
            raise TypeError(
                f"Column {label!r} of X holds {seen}, but its categories "
                f"are {known}. Pass symbols of the type that was fitted."
            )
        number = {value: i for i, value in enumerate(values.tolist())}
        # These floats are integers; as floats the largest categories would coincide.
        symbols = column[present].astype(values.dtype if len(values) else object)
        places = np.array([number.get(s, -1) for s in symbols.tolist()], dtype=np.int32)
        unknown = places < 0
        if unknown.any() and self.handle_unknown == "error":
            symbol = column[present][unknown][0]
            symbol = symbol if isinstance(symbol, str) else int(symbol)
            raise ValueError(
                f"Column {label!r} holds the symbol {symbol!r}, which is not "
                f"among the categories learned in fit; {self._remedy}."
            )
        if self.handle_unknown == "base":
            places[unknown] = len(values)
            for text in _TEXTS_OF_MISSING.intersection(column[present][unknown].tolist()):
                warn_caller(_text_of_missing(label, text, "counts as a new symbol"))
        codes[present] = places
        return codes

    def decode(self, codes: Array) -> Array:
        """Convert codes to symbols; inverse of :meth:`encode_values` for known ones.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features)
            Indices in ``categories_``; other codes are unknown or missing.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Unknown and missing symbols are None among strings and NaN among numbers.
        """
        check_is_fitted(self)
        columns = []
        for values, column in zip(self.categories_, codes.T, strict=True):
            known = (column >= 0) & (column < len(values))
            if known.all():
                columns.append(values[column])
                continue
            hole = None if values.dtype == object else np.nan
            symbols = np.full(len(column), hole, dtype=object if hole is None else float)
            symbols[known] = values[column[known]]
            columns.append(symbols)
        return np.stack(columns, axis=1)

    def is_missing(self, codes: Array) -> Flags:
        return np.asarray((codes[:, : len(self.categories_)] < 0).all(axis=1))


class HCRPCategorical(_Categorical, TakesGiven):
    """Symbols from a hierarchical Chinese restaurant process.

    The distribution over symbols of a state is a draw of a Dirichlet process.  All states
    share the base distribution, which is inferred.  A state is a restaurant, a symbol a
    dish.  The top base is uniform over the vocabulary, so that unseen symbols have
    positive probability.

    Several columns are independent given the state, and share the concentrations.

    Parameters
    ----------
    alpha, gamma : float, default=1.0
        Initial concentrations of a chain: `alpha` of every state's distribution around
        the shared one, `gamma` of the shared one around the uniform.
    concentration_prior : (float, float) or None, default=(1.0, 1.0)
        Shape and rate of the Gamma prior on both, and on `context_alpha`, which are
        resampled after every sweep.  None keeps them fixed.
    categories : "auto" or list of array-like, default="auto"
        The symbols of every column, in the order of their codes (numbers must be sorted).
        "auto": categories of the training data, sorted, or in the order of an ordered
        Categorical (pandas) or an Enum (polars).
    handle_unknown : {"base", "missing", "error"}, default="base"
        Treatment of symbols outside of the categories: a further cell of the vocabulary
        with its probability under the base, a missing observation, or an error.
    context_features : array-like of int, str or bool, or None, default=None
        Columns of X with contexts: symbols depend on the state and on an instrument, a
        subject or a condition, as numbers or strings.  Contexts are given, not modelled:
        they are taken out of what the emission sees.  Distributions of contexts lie
        around the distribution of the state.  With several columns, later columns refine
        earlier columns.  A missing context (NaN, None), or a new context, has the
        distribution of the columns before.  The transitions may depend on the same or on
        further columns.
    context_alpha : float or array-like of shape (n_columns,), default=1.0
        Initial concentrations of the columns of `context_features`: of a context's
        distribution around the distribution above.  Where it is large, the column makes
        no difference.

    Attributes
    ----------
    categories_ : list of ndarray
        The symbols of every column.
    n_symbols_ : list of int
        Size of the vocabulary of every column, the cell for unknown symbols included.
    context_categories_ : tuple of tuple
        Values of every column of `context_features`, by first appearance, in the
        ``emission_`` of a fitted model.

    See Also
    --------
    DirichletCategorical : Symbols with a fixed symmetric prior.
    CategoricalRegression : Symbols that depend on inputs.

    References
    ----------
    T. Makino, S. Takei, I. Sato and D. Mochihashi, "Restricted Collapsed Draw: Accurate
    Sampling for Hierarchical Chinese Restaurant Process Hidden Markov Models",
    arXiv 1106.0474, 2011.

    Examples
    --------
    >>> from skihmm.emissions import HCRPCategorical
    >>> emission = HCRPCategorical().fit([["a"], ["b"], [None], ["a"]])
    >>> emission.n_symbols_
    [3]
    >>> emission.encode_values([["b"], ["c"], [None]]).ravel()
    array([ 1,  2, -1], dtype=int32)

    Symbols that depend on the instrument, the second column:

    >>> from skihmm import HCRPHMM
    >>> emission = HCRPCategorical(context_features=[1])
    >>> hmm = HCRPHMM(emission=emission, n_burnin=20, n_draws=5, random_state=0)
    >>> hmm.fit([[0, "old"], [1, "old"], [0, "new"], [2, "new"]] * 10)
    HCRPHMM(emission=HCRPCategorical(context_features=[1]), n_burnin=20, n_draws=5,
            random_state=0)
    >>> hmm.draws_.emission_context_alpha.shape
    (1, 5, 1)
    """

    test_params = (
        {"handle_unknown": "missing"},
        {"alpha": 0.5, "gamma": 3.0, "concentration_prior": None},
    )

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        concentration_prior: tuple[float, float] | None = (1.0, 1.0),
        categories: str | Sequence[ArrayLike] = "auto",
        handle_unknown: str = "base",
        *,
        context_features: ArrayLike | None = None,
        context_alpha: ArrayLike = 1.0,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.concentration_prior = concentration_prior
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.context_features = context_features
        self.context_alpha = context_alpha

    def roles(self) -> list[Role]:
        return [Contexts("context_features", self.context_features)]

    @property
    def context_categories_(self) -> Categories:
        """Values of every column of `context_features`, by first appearance."""
        categories: Categories = self._learnt.get("context_features", ((),) * self.n_given)
        return categories

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        names = ("alpha", "gamma", CONTEXT_ALPHA)
        return {name: record[name] for name in names if name in record}  # type: ignore

    def make_stats(self, codes: Array) -> EmissionStats:
        alpha = check_concentration("alpha", self.alpha)
        gamma = check_concentration("gamma", self.gamma)
        prior = check_concentration_prior("concentration_prior", self.concentration_prior)
        n = len(self.n_symbols_)
        return categorical_stats(
            codes[:, :n],
            self.n_symbols_,
            alpha,
            gamma,
            True,
            prior,
            contexts=codes[:, n:],
            context_alpha=check_context_alpha(self.context_alpha, self.n_given),
        )


class DirichletCategorical(_Categorical):
    """Symbols from independent symmetric Dirichlet distributions.

    Parameters
    ----------
    concentration : float or None, default=None
        Pseudo-count of every symbol.  None: drawn after every sweep, with the prior
        ``Gamma(1/2, 1/2)``.  Chains start from a total pseudo-count of one.
    categories : "auto" or list of array-like, default="auto"
        The symbols of every column, in the order of their codes (numbers must be sorted).
        "auto": categories of the training data, sorted, or in the order of an ordered
        Categorical (pandas) or an Enum (polars).
    handle_unknown : {"base", "missing", "error"}, default="base"
        Treatment of symbols outside of the categories: a further cell of the vocabulary,
        a missing observation, or an error.

    Attributes
    ----------
    categories_ : list of ndarray
        The symbols of every column.
    n_symbols_ : list of int
        Size of the vocabulary of every column, the cell for unknown symbols included.

    See Also
    --------
    HCRPCategorical : Symbols with a base distribution that chains draw.
    CategoricalRegression : Symbols that depend on inputs.

    Examples
    --------
    >>> from skihmm.emissions import DirichletCategorical
    >>> DirichletCategorical(0.5).fit([[0], [3], [3]]).categories_
    [array([0, 3])]
    """

    test_params = ({}, {"concentration": 0.3, "handle_unknown": "error"})

    def __init__(
        self,
        concentration: float | None = None,
        categories: str | Sequence[ArrayLike] = "auto",
        handle_unknown: str = "base",
    ) -> None:
        self.concentration = concentration
        self.categories = categories
        self.handle_unknown = handle_unknown

    def make_stats(self, codes: Array) -> EmissionStats:
        return categorical_stats(
            codes,
            self.n_symbols_,
            # With larger pseudo-counts of many symbols states are alike at the start,
            # and chains stay there: on the words of a novel at 4 states instead of 400.
            1.0 / max(self.n_symbols_)
            if self.concentration is None
            else check_concentration("concentration", self.concentration),
            1.0,
            False,
            None,
            draws_pseudo_count=self.concentration is None,
        )

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        return {"concentration": record["alpha"]} if self.concentration is None else {}
