"""Categorical emissions: symbols, one independent distribution per column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from skihmm._validation import (
    check_choice,
    check_concentration_prior,
    check_positive,
    unmask,
)
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._categorical_stats import CategoricalStats


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind == "O":
        # None, NaN and pandas.NA are the values that differ from themselves or are None.
        return np.array(
            [v is None or type(v).__name__ == "NAType" or v != v for v in column],
            dtype=bool,
        )
    return np.zeros(len(column), dtype=bool)


def _as_symbols(X: Any) -> NDArray[Any]:
    """Two-dimensional array of numbers (float, NaN missing) or of strings (object)."""
    X = np.asarray(unmask(X))
    if X.dtype.kind in "US":
        return X.astype(object)
    if X.dtype.kind == "O":
        numbers = True
        for value in X.ravel():
            if isinstance(value, str | bytes):
                numbers = False
            elif isinstance(value, dict | list | tuple | set):
                raise TypeError(
                    "Every entry of X must be a symbol: the argument must be a string or "
                    f"a number, got {type(value).__name__} {value!r}."
                )
        if not numbers:
            return X
        missing = np.stack([_missing(column) for column in X.T], axis=1)
        X = np.where(missing, np.nan, X)
    X = X.astype(float)
    if np.isinf(X).any():
        raise ValueError(
            "X contains infinity; expected integer symbols or NaN (missing)."
        )
    if (X < 0).any():
        row, column = np.argwhere(X < 0)[0]
        raise ValueError(
            f"Negative values in data: X[{row}, {column}] = {X[row, column]:.0f}; "
            "expected symbols >= 0. Mark missing symbols by NaN or a masked array."
        )
    fractional = np.isfinite(X) & (np.floor(X) != X)
    if fractional.any():
        row, column = np.argwhere(fractional)[0]
        raise ValueError(
            f"X[{row}, {column}] = {X[row, column]:g} is not an integer; categorical "
            "emissions expect integer symbols. Discretise first (KBinsDiscretizer), or "
            "encode categories (OrdinalEncoder)."
        )
    return X


class _Categorical(BaseEmission):
    """What the two categorical emissions share: symbols and their codes."""

    categories: Any
    handle_unknown: str

    def fit(self, X: Any, y: None = None) -> _Categorical:
        """Learn the symbols of every column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Non-negative integers or strings; NaN, None or masked: missing.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted emission.
        """
        check_choice("handle_unknown", self.handle_unknown, ("base", "missing", "error"))
        X = _as_symbols(X)
        if isinstance(self.categories, str):
            if self.categories != "auto":
                raise ValueError(
                    f"categories={self.categories!r}; expected 'auto' or a list with one "
                    "array of symbols per column."
                )
            found = [np.unique(column[~_missing(column)]) for column in X.T]
        else:
            found = [np.asarray(values) for values in self.categories]
            if len(found) != X.shape[1]:
                raise ValueError(
                    f"categories lists the symbols of {len(found)} columns, but X has "
                    f"{X.shape[1]}."
                )
        self.categories_ = [
            values.astype(np.int64)
            if X.dtype.kind == "f" and values.dtype.kind in "fiub"
            else values
            for values in found
        ]
        extra = 1 if self.handle_unknown == "base" else 0
        # With nothing observed there still has to be one cell.
        self.n_symbols_ = [max(len(values) + extra, 1) for values in self.categories_]
        return self

    def encode(self, X: Any) -> NDArray[np.int32]:
        """Symbols as codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_features), int32
            Places in ``categories_``; -1 is missing, and an unseen symbol gets the cell
            after the last category with ``handle_unknown="base"``.
        """
        check_is_fitted(self)
        X = _as_symbols(X)
        codes = np.full(X.shape, -1, dtype=np.int32)
        for c, (column, values) in enumerate(zip(X.T, self.categories_, strict=True)):
            present = ~_missing(column)
            if not present.any():
                continue
            if len(values):
                encoder = OrdinalEncoder(
                    categories=[values.astype(column.dtype)],
                    handle_unknown="use_encoded_value",
                    unknown_value=-1,
                )
                encoder.fit(values.astype(column.dtype)[:1].reshape(-1, 1))
                found = encoder.transform(column[present].reshape(-1, 1))[:, 0]
                found = found.astype(np.int32)
            else:
                found = np.full(present.sum(), -1, dtype=np.int32)
            unknown = found < 0
            if unknown.any() and self.handle_unknown == "error":
                symbol = column[present][unknown][0]
                symbol = int(symbol) if isinstance(symbol, float) else symbol
                raise ValueError(
                    f"Column {c} holds the symbol {symbol!r}, which is not among the "
                    "categories learned in fit; set handle_unknown='base' or 'missing', "
                    "or pass categories."
                )
            if self.handle_unknown == "base":
                found[unknown] = len(values)
            codes[present, c] = found
        return codes

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Codes as symbols; the inverse of :meth:`encode` for known symbols.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features)
            Places in ``categories_``.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        columns = [
            values[column]
            for values, column in zip(self.categories_, codes.T, strict=True)
        ]
        return np.stack(columns, axis=1)

    def is_missing(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Steps without any observed column.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features)

        Returns
        -------
        missing : ndarray of shape (n_samples,), bool
        """
        return np.asarray((codes < 0).all(axis=1))


class HCRPCategorical(_Categorical):
    """Symbols from a hierarchical Chinese restaurant process.

    Every state has its own distribution over symbols, drawn around a shared distribution
    that is itself learned: a state is a restaurant, a symbol a dish.  The base of all is
    uniform over the vocabulary, so that symbols not seen in training have mass.

    Several columns are independent given the state; they share the two concentrations.

    Parameters
    ----------
    alpha, gamma : float, default=1.0
        Concentrations at the start of the chain: of every state's distribution around the
        shared one, and of the shared one around the uniform.
    concentration_prior : (float, float) or None, default=(1.0, 1.0)
        Shape and rate of the Gamma prior on both, which are resampled after every sweep.
        None keeps them fixed.
    categories : "auto" or list of array-like, default="auto"
        The symbols of every column, in the order of their codes (numbers must be sorted).
        "auto" takes what is in the training data.
    handle_unknown : {"base", "missing", "error"}, default="base"
        What a symbol outside the categories is: one more cell of the vocabulary, with the
        mass that the base gives it; a missing observation; or an error.

    Attributes
    ----------
    categories_ : list of ndarray
        The symbols of every column.
    n_symbols_ : list of int
        Size of the vocabulary of every column, the cell for unknown symbols included.

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
    >>> emission.encode([["b"], ["c"], [None]]).ravel()
    array([ 1,  2, -1], dtype=int32)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        gamma: float = 1.0,
        concentration_prior: tuple[float, float] | None = (1.0, 1.0),
        categories: Any = "auto",
        handle_unknown: str = "base",
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.concentration_prior = concentration_prior
        self.categories = categories
        self.handle_unknown = handle_unknown

    def make_stats(self, codes: NDArray[Any]) -> CategoricalStats:
        """Build empty statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), int32

        Returns
        -------
        stats : CategoricalStats
        """
        return CategoricalStats(
            codes,
            self.n_symbols_,
            check_positive("alpha", self.alpha),
            check_positive("gamma", self.gamma),
            True,
            check_concentration_prior("concentration_prior", self.concentration_prior),
        )


class DirichletCategorical(_Categorical):
    """Symbols from independent symmetric Dirichlet distributions.

    Parameters
    ----------
    concentration : float, default=1.0
        Pseudo-count of every symbol.
    categories : "auto" or list of array-like, default="auto"
        The symbols of every column, in the order of their codes (numbers must be sorted).
        "auto" takes what is in the training data.
    handle_unknown : {"base", "missing", "error"}, default="base"
        What a symbol outside the categories is: one more cell of the vocabulary; a
        missing observation; or an error.

    Attributes
    ----------
    categories_ : list of ndarray
        The symbols of every column.
    n_symbols_ : list of int
        Size of the vocabulary of every column, the cell for unknown symbols included.

    Examples
    --------
    >>> from skihmm.emissions import DirichletCategorical
    >>> DirichletCategorical(0.5).fit([[0], [3], [3]]).categories_
    [array([0, 3])]
    """

    def __init__(
        self,
        concentration: float = 1.0,
        categories: Any = "auto",
        handle_unknown: str = "base",
    ) -> None:
        self.concentration = concentration
        self.categories = categories
        self.handle_unknown = handle_unknown

    def make_stats(self, codes: NDArray[Any]) -> CategoricalStats:
        """Build empty statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), int32

        Returns
        -------
        stats : CategoricalStats
        """
        return CategoricalStats(
            codes,
            self.n_symbols_,
            check_positive("concentration", self.concentration),
            1.0,
            False,
            None,
        )
