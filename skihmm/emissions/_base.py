"""Base class of emission recipes."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skihmm._recipe import Recipe
from skihmm._records import EmissionRecord
from skihmm._typing import Array, Cdf, Flags, Floats, Integers, Labels, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream
from skihmm.emissions._spec import ColumnSpec, StateParameter


class BaseEmission(Recipe, metaclass=ABCMeta):
    """Base class of emissions: encoding of the data and their sufficient statistics.

    An emission object is a recipe.  An emission has constructor parameters and fitted
    attributes, for example the categories.  Counts are in compiled statistics that
    :meth:`make_stats` builds for every chain.

    Attributes
    ----------
    test_params : sequence of dict
        Parameters of the instances that tests should cover, a class attribute, which
        :func:`skihmm.testing.make_instances` builds.
    is_categorical : bool, default=True
        Whether observations are symbols.  A fit then sets ``categories_``, the categories
        by column.
    n_inputs : int, default=0
        Number of inputs of a step in a fitted emission: earlier observations of the
        sequence, or given columns.  Inputs follow the values in a row of the encoded data.
    takes_integers : bool, default=True
        Whether numbers have to be integers.
    default_init : str, default="particle_filter"
        Initialisation by ``init="auto"``.
    has_lasting_states : bool, default=False
        Whether states usually last for many steps.  If True, ``sampler="auto"`` samples
        blocks, and splits and merges whole runs.
    is_positive_only : bool, default=False
        Whether negative numbers are refused.
    default_transitions : str
        Short name of the transitions by ``transitions="auto"``: by default "persistent" for
        lasting states, otherwise "hcrp".
    parts : sequence of Part
        Emissions of the groups of columns of a product.  Otherwise the emission itself.
    state_parameters : mapping of {str: StateParameter}
        Parameters of the states of a fitted model by attribute, for
        :func:`~skihmm.posterior.parameter_intervals` and :meth:`~skihmm.HCRPHMM.summary`.
        Empty, the default, for symbols.

    See Also
    --------
    ConjugateEmission : Base class of emissions in Python.
    CustomEmission : Base class of emissions in C++.
    skihmm.testing.check_emission : Test an emission.

    Examples
    --------
    The class attributes of an emission:

    >>> from skihmm.emissions import BaseEmission, GammaPoisson
    >>> isinstance(GammaPoisson(), BaseEmission)
    True
    >>> GammaPoisson.is_positive_only, GammaPoisson.is_categorical
    (True, False)
    """

    is_categorical: bool = True
    n_inputs: int = 0
    takes_integers: bool = True
    default_init: str = "particle_filter"
    has_lasting_states: bool = False
    is_positive_only: bool = False

    @property
    def default_transitions(self) -> str:
        """Short name of the transitions by ``transitions="auto"``.

        Without a penalty the posterior of real series alternates between states where the
        noise of one has not quite the assumed shape.  A penalty would lose states that
        alternate, which further emissions describe.
        """
        return "persistent" if self.has_lasting_states else "hcrp"

    @property
    def parts(self) -> Sequence[Part]:
        """Emissions of the groups of columns of a product.  Otherwise the emission itself."""
        return [Part(self)]

    def with_parts(self, parts: Iterator[BaseEmission]) -> BaseEmission:
        """Replace the parts in a copy of the emission.

        Parameters
        ----------
        parts : iterator of BaseEmission
            Parts in the order of `parts`.  The emission takes one part, and a product one
            part for every group.

        Returns
        -------
        emission : BaseEmission
            The next part, if the emission is no product.
        """
        return next(parts)

    @property
    def state_parameters(self) -> Mapping[str, StateParameter]:
        """Parameters of the states by attribute, of a fitted model."""
        return {}

    # Categories of symbols in the order of their codes, by column.
    categories_: Sequence[Array]
    # What name_columns sets.
    _names_of_columns: list[str | int] | None = None
    _orders: Sequence[Sequence[object] | None] = ()

    @property
    def _kind(self) -> str:
        return "symbols" if self.is_categorical else "real"

    def columns(self, n_columns: int) -> ColumnSpec:
        """Describe the encoded columns of values.

        Parameters
        ----------
        n_columns : int
            Number of columns in the fit.

        Returns
        -------
        columns : ColumnSpec
        """
        spec = ColumnSpec.of_part(n_columns, self._kind, self.n_inputs > 0)
        if self._kind == "symbols":
            spec = spec._replace(n_symbols=np.array([len(each) for each in self.categories_]))
        return spec

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        """Hyperparameters of a posterior draw, by name.

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

    def with_states(
        self, record: EmissionRecord, n_states: int, stream: RandomStream | None = None
    ) -> BaseEmission:
        """Copy the emission with attributes of a posterior draw's states.

        Parameters
        ----------
        record : dict
            The emission of a posterior draw.
        n_states : int
            States of the draw.
        stream : RandomStream, optional
            Draws the attributes given the states.  By default attributes are means.

        Returns
        -------
        emission : BaseEmission
            A copy.  By default the emission itself, without attributes of the states.
        """
        return self

    def predictive_cdf(
        self, stats: EmissionStats, slots: Labels, inputs: Array, is_conditional: bool = False
    ) -> Cdf:
        """Cumulative predictive distributions of columns in states.

        Parameters
        ----------
        stats : EmissionStats
        slots : ndarray of shape (n_states,), int32
            Slots, each once, for ``predictives`` of the statistics.
        inputs : ndarray of shape (n_rows, n_inputs)
        is_conditional : bool, default=False
            Whether probabilities of a column are given the columns before.  The default
            makes no difference if columns are independent given the state.

        Returns
        -------
        cdf : callable
            From encoded values of shape (..., n_rows, n_features) to probabilities of shape
            (..., n_rows, n_states, n_features): symbols in the order of their codes, angles
            up to a constant, by default NaN for further columns.  Conditional probabilities
            of missing values are arbitrary.
        """
        tables: list[Floats] = []
        if self._kind == "symbols":
            rows, which = np.unique(inputs, axis=0, return_inverse=True)
            columns = zip(*(stats.predictives(slots, row) for row in rows), strict=True)
            below = ((0, 0), (0, 0), (1, 0))
            tables = [np.pad(np.cumsum(column, axis=2), below) for column in columns]

        def cdf(values: Floats) -> Floats:
            out = np.full((*values.shape[:-1], len(slots), values.shape[-1]), np.nan)
            for c, table in enumerate(tables):
                places = np.clip(values[..., c, None] + 1, 0, table.shape[2] - 1)
                places = places.astype(np.intp)
                out[..., c] = table[which.reshape(-1, 1), np.arange(len(slots)), places]
            return out

        return cdf

    def with_given(self, columns: Array) -> BaseEmission:
        """Copy the emission with categories and units of given columns, before :meth:`fit`.

        New categories of contexts follow known categories.  Units of numbers come from
        the first data.

        Parameters
        ----------
        columns : ndarray of shape (n_samples, n_given)
            In the order of the roles of an emission that has given columns.

        Returns
        -------
        emission : BaseEmission
            A copy.  By default the emission itself.
        """
        return self

    @abstractmethod
    def fit(self, X: MatrixLike, y: None = None) -> BaseEmission:
        """Fit the encoding, and set the prior from the scale of the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers in the range of the distribution, or symbols.  NaN, None and
            masked entries are missing.
        y : None
            Ignored.

        Returns
        -------
        self : BaseEmission
        """

    def fit_sequences(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int] | None = None
    ) -> BaseEmission:
        """Fit to several sequences, by default as to one sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        starts : array-like of shape (n_sequences,)
            First row of every sequence.
        entropy : sequence of int, optional
            Entropy of noise, because repeated values have no density.  By default no noise.

        Returns
        -------
        self : BaseEmission
        """
        return self.fit(X)

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        """Warnings of the data that the emission was fitted to.

        Parameters
        ----------
        with_notes : bool, default=False
            Whether to say what was done to the data of the fit, too.

        Returns
        -------
        warnings : list of str
            None by default.
        """
        return []

    def inputs(
        self,
        values: Array,
        starts: Integers,
        before: Array | None = None,
        given: Array | None = None,
    ) -> Array:
        """Derive the inputs of encoded values.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_features)
        starts : array-like of shape (n_sequences,)
        before : ndarray of shape (n_continued, n_features + n_inputs), optional
            The first `n_continued` sequences continue after these encoded rows.
        given : ndarray of shape (n_samples, n_given), optional
            Encoded given columns.  By default all entries are missing.

        Returns
        -------
        inputs : ndarray of shape (n_samples, n_inputs)
        """
        return np.empty((len(values), 0), dtype=np.int32) if given is None else given

    @abstractmethod
    def encode_values(self, X: MatrixLike) -> Array:
        """Convert data to values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples, n_features)
            Floats with NaN for missing values, or codes of symbols (int32) with -1 for
            missing values.
        """

    @abstractmethod
    def decode(self, codes: Array) -> Array:
        """Convert encoded values back to data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features)

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """

    @abstractmethod
    def is_missing(self, codes: Array) -> Flags:
        """Mask of steps without any observation, which do not count in scores.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features + n_inputs)

        Returns
        -------
        missing : ndarray of shape (n_samples,), bool
        """

    def is_unused(self, codes: Array) -> Flags:
        """Mask of steps without whole rows, which fits do not use.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features + n_inputs)
            Rows with the filled entries of a fit.

        Returns
        -------
        unused : ndarray of shape (n_samples,), bool
            By default the mask of :meth:`is_missing`.
        """
        return self.is_missing(codes)

    @abstractmethod
    def make_stats(self, codes: Array) -> EmissionStats:
        """Build empty compiled statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features + n_inputs)

        Returns
        -------
        stats : skihmm.core._emission.EmissionStats
        """


@dataclass(frozen=True)
class Part:
    """An emission that is no product, with the place in a product.

    Parameters
    ----------
    emission : BaseEmission
    prefix : str, default=""
        Prefix of the names of the parameters.
    path : tuple of int, default=()
        Indices of the record among the parts of a record, from outside to inside.

    See Also
    --------
    ProductEmission : The emission that has parts.

    Examples
    --------
    >>> from skihmm.emissions import ProductEmission
    >>> emission = ProductEmission([("size", "gaussian", [0]), ("steps", "poisson", [1])])
    >>> [part.prefix for part in emission.parts]
    ['size__', 'steps__']
    """

    emission: BaseEmission
    prefix: str = ""
    path: tuple[int, ...] = ()

    def record(self, record: EmissionRecord) -> EmissionRecord:
        """Take the record of this part out of a record of the product.

        Parameters
        ----------
        record : dict
            The emission of a posterior draw.

        Returns
        -------
        record : dict
        """
        for i in self.path:
            record = record["parts"][i]
        return record
