"""X as users pass it, in front of a fit and of the methods of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags, TargetTags
from sklearn.utils.validation import validate_data

from skihmm._data.frames import ColumnType, column_texts, column_types, library_of
from skihmm._data.sequences import starts_of_rows
from skihmm._data.validation import (
    as_array,
    refuse_complex,
    refuse_one_dimension,
    refuse_sequences,
    unify_frame,
    unmask,
    warn_caller,
)
from skihmm._typing import Array, MatrixLike, VectorLike


class _Owner:
    """An object whose numbers and names of features scikit-learn sets and checks."""

    n_features_in_: int
    feature_names_in_: Array

    def __sklearn_tags__(self) -> Tags:
        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


@cache
def _owner_class(name: str) -> type[_Owner]:
    """Class of owners of this name, which scikit-learn's messages show."""
    return type(name, (_Owner,), {})


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of X in a fit, which all later rows have to have.

    Attributes
    ----------
    owner : str
        Name of the estimator's class, for errors.
    number : int
    names : ndarray of str, or None
        As in scikit-learn, if all names are strings.
    texts : list of str, or None
        Names of any type, as texts.
    library : str or None
        Library of the data frame of the fit.
    types : list of ColumnType
        Types of its columns.
    """

    owner: str
    number: int
    names: Array | None
    texts: list[str] | None
    library: str | None
    types: list[ColumnType]

    @classmethod
    def of_fit(cls, owner: str, X: Any) -> tuple[Columns, Array]:
        """Read the rows of a fit; return their columns, too."""
        seen = _owner_class(owner)()
        rows = _checked_rows(seen, X, is_fit=True)
        names = getattr(seen, "feature_names_in_", None)
        number, library, types = seen.n_features_in_, library_of(X), column_types(X)
        texts = column_texts(X, number) if names is None else list(names)
        return cls(owner, number, names, texts, library, types), rows

    @property
    def labels(self) -> list[str]:
        """Names; x0, x1, ... as in scikit-learn if there are none."""
        if self.texts is None:
            return [f"x{c}" for c in range(self.number)]
        return self.texts

    def read(self, X: Any) -> Array:
        """Check rows with these columns, and convert them to an array."""
        seen = _owner_class(self.owner)()
        seen.n_features_in_ = self.number
        if self.names is not None:
            seen.feature_names_in_ = self.names
        return _checked_rows(seen, X)

    def read_sequences(
        self, X: MatrixLike, groups: VectorLike | None, lengths: VectorLike | None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Read rows, and the first row of every sequence."""
        rows = self.read(X)
        return rows, starts_of_rows(X, len(rows), groups, lengths)


def _check_names(came: list[object], fitted: list[object]) -> None:
    """Refuse other columns than those of the fit, in scikit-learn's words with a remedy."""
    if came == fitted:
        return
    new = sorted({str(name) for name in came if name not in fitted})
    lost = sorted({str(name) for name in fitted if name not in came})
    lines = [
        *(["Feature names unseen at fit time:", *(f"- {name}" for name in new)] if new else []),
        *(["Feature names seen at fit time, yet now missing:"] if lost else []),
        *(f"- {name}" for name in lost),
    ]
    remedy = "X = X[hmm.feature_names_in_] takes the columns of the fit."
    if lost:
        remedy = (
            "Rename columns, or X = X.reindex(columns=hmm.feature_names_in_) of a pandas frame: "
            "lost columns are missing values."
        )
    order = "Feature names must be in the same order as they were in fit."
    text = "\n".join([*(lines or [order]), remedy])
    raise ValueError(f"The feature names should match those that were passed during fit.\n{text}")


def _checked_rows(owner: _Owner, X: Any, is_fit: bool = False) -> Array:
    """Check X, and convert it to an array; a fit sets number and names of features."""
    # Some sparse arrays are dicts.
    if issparse(X):
        raise TypeError(
            f"X is sparse, a {type(X).__name__}; expected a dense array. Symbols are "
            'not one-hot but one column of codes: KBinsDiscretizer(encode="ordinal") '
            "or OrdinalEncoder in the place of OneHotEncoder makes them. Other data: "
            "X.toarray()."
        )
    refuse_sequences(X)
    X = unify_frame(unmask(X))
    if isinstance(X, list | tuple | np.ndarray):
        X = as_array("X", X)
        refuse_complex(X)
    refuse_one_dimension(X)
    names = None if is_fit else getattr(owner, "feature_names_in_", None)
    has_names = hasattr(X, "columns") or hasattr(X, "__dataframe__")
    if names is not None and library_of(X):
        # Columns without names are numbered.
        has_names = any(isinstance(column, str) for column in X.columns)
        if has_names:
            _check_names([*X.columns], [*names])
    if names is not None and np.ndim(X) == 2 and X.shape[1] != len(names):
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(owner).__name__} is expecting {len(names)} "
            f"features as input: {', '.join(map(str, names))}."
        )
    if names is not None and not has_names:
        # Warnings of scikit-learn would point into the package.
        warn_caller(
            f"X does not have valid feature names, but {type(owner).__name__} was "
            "fitted with feature names: columns are taken in the order of the fit. Pass a data "
            "frame with these names."
        )
        del owner.feature_names_in_
    elif (
        not is_fit
        and names is None
        and library_of(X)
        and all(isinstance(column, str) for column in X.columns)
    ):
        warn_caller(
            f"X has feature names, but {type(owner).__name__} was fitted without feature names: "
            "columns are taken in their order. Fit to a data frame, too."
        )
        # (An array of a frame with extension types would be one of objects.)
        is_pandas = library_of(X) == "pandas"
        X = X.set_axis(range(X.shape[1]), axis=1) if is_pandas else X.to_numpy()
    # The next lines locate the infinity, which scikit-learn does not.
    X = validate_data(owner, X, reset=is_fit, dtype=None, ensure_all_finite=False)
    if X.dtype.kind == "f" and np.isinf(X).any():
        row, c = np.argwhere(np.isinf(X))[0]
        labels = getattr(owner, "feature_names_in_", range(X.shape[1])) if names is None else names
        label = labels[c]
        raise ValueError(
            f"X contains infinity: X[{row}, {label!r}] = {X[row, c]}; expected "
            "finite values, or NaN where they are missing."
        )
    return X
