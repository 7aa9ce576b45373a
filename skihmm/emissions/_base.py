"""Base class of emission recipes."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skihmm._records import EmissionRecord
from skihmm._typing import Array, Flags, Floats, MatrixLike
from skihmm.core._emission import EmissionStats


class BaseEmission(BaseEstimator, metaclass=ABCMeta):
    """An emission: what it accepts, and how to count it.

    An emission object is a recipe.  It holds constructor parameters and what it learned
    about the data (such as the categories); the counts themselves live in compiled
    statistics that :meth:`make_stats` builds for every chain.
    """

    @property
    def is_categorical(self) -> bool:
        """Whether observations are symbols: yes, unless a subclass says no."""
        return True

    @property
    def takes_integers(self) -> bool:
        """Whether numbers have to be integers: yes, unless a subclass says no."""
        return True

    @property
    def releases_gil(self) -> bool:
        """Whether the statistics work without Python's lock: not if they are in Python.

        If so, chains run as threads, otherwise as processes.
        """
        return True

    @property
    def default_init(self) -> str:
        """Where ``init="auto"`` starts chains; "particle_filter" unless overridden."""
        return "particle_filter"

    @property
    def is_positive_only(self) -> bool:
        """Whether negative numbers are refused: no, unless a subclass says so."""
        return False

    def name_columns(self, names: Sequence[str | int] | None) -> None:
        """Learn the names of the columns of X; called before :meth:`fit`.

        Errors about entries of X contain them.

        Parameters
        ----------
        names : sequence of str or None
            None: the columns have no names.  Those of a part of a
            :class:`~skihmm.emissions.ProductEmission` without names are integers, their
            places in X.
        """
        self._names_of_columns = None if names is None else list(names)

    def _column_labels(self, n_columns: int) -> Sequence[str | int]:
        """Names of the columns of X, or their places if they have no names."""
        names = getattr(self, "_names_of_columns", None)
        return names if names and len(names) == n_columns else range(n_columns)

    def column_order(self, n_columns: int) -> NDArray[np.intp]:
        """Which column of X every column of the encoded data is.

        Parameters
        ----------
        n_columns : int

        Returns
        -------
        places : ndarray of shape (n_columns,)
            0, 1, ... unless a subclass says otherwise.
        """
        return np.arange(n_columns, dtype=np.intp)

    def n_known(self) -> list[int]:
        """Of every column of symbols, how many of its symbols may be drawn.

        Returns
        -------
        n_known : list of int
            Empty, the default, without such columns.
        """
        return []

    def numeric_columns(self) -> slice | NDArray[np.intp]:
        """Which columns of the encoded data are numbers that k-means can start from.

        Returns
        -------
        columns : slice or ndarray of int
            All of them, or none, by `is_categorical`.
        """
        return slice(0) if self.is_categorical else slice(None)

    def offsets(self, n_columns: int) -> Floats:
        """What :meth:`encode` subtracts from every column of numbers.

        Parameters
        ----------
        n_columns : int

        Returns
        -------
        offsets : ndarray of shape (n_columns,)
            0 unless a subclass says otherwise.
        """
        return np.zeros(n_columns)

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        """Hyperparameters that a posterior draw holds, by name.

        Parameters
        ----------
        record : dict
            The emission of a posterior draw.

        Returns
        -------
        hyperparameters : dict of {str: float or ndarray of shape (n_features,)}
            Empty, the default, if all are fixed.
        """
        return {}

    def with_states(self, record: EmissionRecord, n_states: int) -> BaseEmission:
        """The emission with what a posterior draw says of its states as attributes.

        Parameters
        ----------
        record : dict
            The emission of a posterior draw.
        n_states : int
            States of the draw.

        Returns
        -------
        emission : BaseEmission
            A copy; the emission itself, the default, if there is nothing to say.
        """
        return self

    @abstractmethod
    def fit(self, X: MatrixLike, y: None = None) -> BaseEmission:
        """Learn what values there are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self : BaseEmission
        """

    @abstractmethod
    def encode(self, X: MatrixLike) -> Array:
        """Turn data into the values that the statistics count.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_features)
        """

    @abstractmethod
    def decode(self, codes: Array) -> Array:
        """Turn counted values back into data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features)

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """

    @abstractmethod
    def is_missing(self, codes: Array) -> Flags:
        """Say which steps have no observation at all; they do not count in scores.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features)

        Returns
        -------
        missing : ndarray of shape (n_samples,), bool
        """

    @abstractmethod
    def make_stats(self, codes: Array) -> EmissionStats:
        """Build empty compiled statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features)

        Returns
        -------
        stats : skihmm.core._emission.EmissionStats
        """
