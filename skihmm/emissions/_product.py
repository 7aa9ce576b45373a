"""Product emission for mixed data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from itertools import chain
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted

from skihmm._data.frames import category_orders, column_types, find_columns
from skihmm._data.validation import as_matrix, nested_short_names, resolve
from skihmm._records import EmissionRecord
from skihmm._typing import Array, Cdf, Flags, Floats, Integers, Labels, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._columns import name_columns
from skihmm.emissions._given import n_given
from skihmm.emissions._names import EMISSIONS
from skihmm.emissions._product_stats import product_stats

T = TypeVar("T")
# A place or a name in X, several of them, a mask, or a slice.
Columns: TypeAlias = str | int | slice | Sequence[str | int | bool] | Array


def _column_places(
    part: str, columns: Columns, names: Sequence[str] | None, n_features: int
) -> NDArray[np.intp]:
    """Indices of the columns of one part."""

    def find(listed: Sequence[object]) -> list[int]:
        # A group does not list the columns that are given.
        where = "counted from 0 without those that are given"
        others = ". Columns of subjects, inputs and contexts are given, and in no group"
        what = f"columns of {part!r}"
        return find_columns(what, listed, n_features, names, where, others)

    if isinstance(columns, slice):
        first, last = columns.start, columns.stop
        if isinstance(first, str):
            (first,) = find([first])
        if isinstance(last, str):
            # A slice of a data frame includes its last column, and so does this slice.
            last = find([last])[0] + 1
        places = list(range(n_features)[first : last : columns.step])
    else:
        is_one = isinstance(columns, str) or np.ndim(columns) == 0
        places = find([columns] if is_one else list(cast("Sequence[object]", columns)))
    if not places:
        raise ValueError(f"{part!r} gets no column; expected one or more.")
    return np.array(places, dtype=np.intp)


def _first_special(inits: list[str]) -> str:
    """Initialisation of the first part with another than the default, or that."""
    others = [init for init in inits if init != BaseEmission.default_init]
    return (others or [BaseEmission.default_init])[0]


def _most_lasting(names: list[str]) -> str:
    """Transitions of the part whose states last longest."""
    by_dwell = ("hcrp", "sticky", "persistent")
    return max(names, key=by_dwell.index, default="hcrp")


def _merged(merge: Callable[..., object], name: str) -> Any:
    """Property of a product from its parts' property, fitted parts if there are any."""
    return property(lambda product: merge(product._of_parts(name)))


class ProductEmission(_BaseComposition, BaseEmission):
    """Emission for mixed data: every group of columns has an emission.

    Given the state, the groups are independent.  The emission of a group determines
    missing entries of the group.  A step is missing if all groups of the step are
    missing.

    Parameters
    ----------
    emissions : list of (str, str or BaseEmission, columns)
        Name, emission and columns of every group.  Emissions are objects or short names,
        as for :class:`~skihmm.HCRPHMM`.  Columns are a name, an index, a list of either,
        a slice (by names with its last column) or a mask of booleans.  Every column of X
        has to be in exactly one group, except given columns: contexts
        (``context_features``) and inputs (``input_features``) of transitions and
        emissions, and subjects (``subject_feature``).  Indices count the columns without
        given columns.  Several groups may have the same inputs, contexts and subjects.

    Attributes
    ----------
    emissions_ : list of (str, BaseEmission, ndarray)
        The groups with fitted emissions and the indices of their columns.
    named_emissions_ : sklearn.utils.Bunch
        The fitted emissions by the names of their groups.

    Notes
    -----
    Parameters of a group's emission are prefixed by the name of the group, as in
    scikit-learn's ColumnTransformer: ``emission__sizes__shape`` in a grid search over a
    :class:`~skihmm.HCRPHMM`.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import NormalInverseGamma, ProductEmission
    >>> rng = np.random.default_rng(0)
    >>> state = np.repeat([0, 1, 0, 1], 25)
    >>> X = np.column_stack([rng.normal(4.0 * state), rng.poisson(1 + 9 * state)])
    >>> emission = ProductEmission(
    ...     [("height", NormalInverseGamma(shape=2.0), [0]), ("count", "poisson", [1])]
    ... )
    >>> hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    >>> hmm.get_params()["emission__height__shape"]
    2.0
    >>> hmm.emission_.named_emissions_.height.means_.shape
    (2, 1)
    """

    test_params = ({"emissions": [("all", "diagonal_gaussian", slice(None))]},)
    # Given columns of the data that are fitted next.
    _given: Array | None = None

    def __init__(self, emissions: list[tuple[str, str | BaseEmission, Columns]]) -> None:
        self.emissions = emissions

    # ---- parameters of the parts

    @property
    def _named(self) -> list[tuple[str, str | BaseEmission]]:
        """Names and emissions, in the form of scikit-learn's compositions."""
        try:
            return [(name, emission) for name, emission, _ in self.emissions]
        except (TypeError, ValueError):
            return []  # not a list of triples: fit raises the error

    @_named.setter
    def _named(self, value: list[tuple[str, str | BaseEmission]]) -> None:
        self.emissions = [
            (name, emission, columns)
            for (name, emission), (_, _, columns) in zip(value, self.emissions, strict=True)
        ]

    @property
    def named_emissions_(self) -> Bunch:
        """The fitted emissions by the names of their groups."""
        return Bunch(**{name: part for name, part, _ in self.emissions_})

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return dict(self._get_params("_named", deep=deep))

    def set_params(self, **params: Any) -> ProductEmission:
        if "emissions" in params:
            self.emissions = params.pop("emissions")
        params.update(nested_short_names(params, dict(self._named), EMISSIONS))
        self._set_params("_named", **params)
        return self

    def _parts(self) -> list[tuple[str, BaseEmission, Columns]]:
        """Groups with objects for short names."""
        expected = "expected a list of (name, emission, columns), one or more"
        if not isinstance(self.emissions, list | tuple) or not self.emissions:
            raise ValueError(f"emissions={self.emissions!r}; {expected}.")
        parts = []
        for entry in self.emissions:
            if not isinstance(entry, list | tuple) or len(entry) != 3:
                raise ValueError(f"emissions holds {entry!r}; {expected}.")
            name, emission, columns = entry
            if not isinstance(name, str):
                raise ValueError(f"emissions holds the name {name!r}; {expected}.")
            emission = resolve(f"the emission of {name!r}", emission, EMISSIONS, BaseEmission)
            parts.append((name, emission, columns))
        self._validate_names([name for name, _, _ in parts])
        return parts

    def _listed_parts(self) -> list[tuple[BaseEmission, Any]]:
        listed = getattr(self, "emissions_", None) or self._parts()
        return [(part, columns) for _, part, columns in listed]

    def _of_parts(self, attribute: str) -> list[Any]:
        try:
            parts = getattr(self, "emissions_", None) or self._parts()
        except (TypeError, ValueError):
            return []  # fit raises the error
        return [getattr(part, attribute) for _, part, _ in parts]

    is_categorical = _merged(all, "is_categorical")
    n_inputs = _merged(sum, "n_inputs")
    takes_integers = _merged(any, "takes_integers")
    default_init = _merged(_first_special, "default_init")
    has_lasting_states = _merged(any, "has_lasting_states")
    default_transitions = _merged(_most_lasting, "default_transitions")
    is_positive_only = _merged(any, "is_positive_only")

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        return {
            f"{name}__{key}": value
            for (name, part, _), rec in zip(self.emissions_, record["parts"], strict=True)
            for key, value in part.hyperparameters(rec).items()
        }

    def _described(
        self,
        describe: Callable[[BaseEmission, T], BaseEmission],
        of_parts: Sequence[T],
    ) -> ProductEmission:
        """Copy with parts that are described, each from an entry of `of_parts`."""
        described = copy(self)
        described.emissions_ = [
            (name, describe(part, given), places)
            for (name, part, places), given in zip(self.emissions_, of_parts, strict=True)
        ]
        return described

    def with_states(
        self, record: EmissionRecord, n_states: int, stream: RandomStream | None = None
    ) -> BaseEmission:
        return self._described(
            lambda part, rec: part.with_states(rec, n_states, stream), record["parts"]
        )

    def predictive_cdf(
        self, stats: EmissionStats, slots: Labels, inputs: Array, is_conditional: bool = False
    ) -> Cdf:
        stops = np.cumsum([len(places) for _, _, places in self.emissions_])[:-1]
        rows = np.split(inputs, np.cumsum(self._of_parts("n_inputs"))[:-1], axis=1)
        parts = zip(self.emissions_, stats.parts, rows, strict=True)
        cdfs = [
            part.predictive_cdf(s, slots, row, is_conditional) for (_, part, _), s, row in parts
        ]

        def cdf(values: Floats) -> Floats:
            pairs = zip(cdfs, np.split(values, stops, axis=-1), strict=True)
            return np.concatenate([cdf(columns) for cdf, columns in pairs], axis=-1)

        return cdf

    # ---- data

    def fit(self, X: MatrixLike, y: None = None) -> ProductEmission:
        return self.fit_sequences(X, np.zeros(1, dtype=np.intp))

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        # Parts may share inputs.
        texts = (part.data_warnings(with_notes) for _, part, _ in self.emissions_)
        return list(dict.fromkeys(chain.from_iterable(texts)))

    def fit_sequences(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int] | None = None
    ) -> ProductEmission:
        if hasattr(X, "columns"):
            name_columns(self, X.columns, category_orders(column_types(X)))
        X = as_matrix(X)
        n_features = X.shape[1]
        labels = self._column_labels(n_features)
        orders = self._column_orders(n_features)
        names = [label for label in labels if isinstance(label, str)] or None
        fitted: list[tuple[str, BaseEmission, NDArray[np.intp]]] = []
        taken: dict[int, str] = {}
        parts = self._parts()
        given: Sequence[Array | None] = [None] * len(parts)
        if self._given is not None:
            given, self._given = self._split_given(self._given), None
        for (name, part, columns), own in zip(parts, given, strict=True):
            places = _column_places(name, columns, names, n_features)
            for c in places.tolist():
                if c in taken:
                    raise ValueError(
                        f"Column {c} of X is in two groups, {taken[c]!r} and {name!r}; "
                        "expected every column in one."
                    )
                taken[c] = name
            name_columns(part, [labels[c] for c in places], [orders[c] for c in places])
            # Noise of every part is another stream.
            noise = None if entropy is None else [*entropy, len(fitted)]
            if own is not None:
                part = part.with_given(own)
            fitted.append((name, part.fit_sequences(X[:, places], starts, noise), places))
        left = [c for c in range(n_features) if c not in taken]
        if left:
            raise ValueError(
                f"Columns {left} of X have no emission; expected every column in one "
                "group. Leave them out of X, or add a group."
            )
        self.emissions_ = fitted
        return self

    def with_given(self, columns: Array) -> ProductEmission:
        if hasattr(self, "emissions_"):
            return self._described(
                lambda part, given: part.with_given(given), self._split_given(columns)
            )
        # Parts are there in the fit only, and learn then.
        prepared = copy(self)
        prepared._given = columns
        return prepared

    def _split_given(self, columns: Array) -> list[Array]:
        """Given columns, encoded or not, by part."""
        stops = np.cumsum([n_given(part) for part, _ in self._listed_parts()])
        return np.split(columns, stops[:-1], axis=1)

    def encode_values(self, X: MatrixLike) -> Array:
        # Integers if all columns are symbols, otherwise floats.
        check_is_fitted(self)
        X = as_matrix(X)
        return np.column_stack(
            [part.encode_values(X[:, places]) for _, part, places in self.emissions_]
        )

    def inputs(
        self,
        values: Array,
        starts: Integers,
        before: Array | None = None,
        given: Array | None = None,
    ) -> Array:
        parts = self._split(values)
        earlier: list[Array | None] = [None] * len(parts)
        if before is not None:
            earlier = [rows for _, rows in self._split(before)]
        by_part: list[Array | None] = [None] * len(parts)
        if given is not None:
            by_part = list(self._split_given(given))
        return np.hstack(
            [
                part.inputs(values, starts, rows, now)
                for (part, values), rows, now in zip(parts, earlier, by_part, strict=True)
                if part.n_inputs
            ]
        )

    def _split(self, codes: Array) -> list[tuple[BaseEmission, Array]]:
        """Pair the parts with their columns of the codes, or of their values only."""
        pairs, at = [], 0
        inputs_at = sum(len(places) for _, _, places in self.emissions_)
        for _, part, places in self.emissions_:
            stop, inputs_stop = at + len(places), inputs_at + part.n_inputs
            columns = np.hstack([codes[:, at:stop], codes[:, inputs_at:inputs_stop]])
            dtype = np.int32 if part.is_categorical else np.float64
            pairs.append((part, np.ascontiguousarray(columns, dtype=dtype)))
            at, inputs_at = stop, inputs_stop
        return pairs

    def decode(self, codes: Array) -> Array:
        # Python objects if any group has strings; the columns are in the order of X.
        decoded = [part.decode(values) for part, values in self._split(codes)]
        dtypes = [values.dtype for values in decoded]
        dtype = object if object in dtypes else np.result_type(*dtypes)
        X = np.empty(codes.shape, dtype=dtype)
        for values, (_, _, places) in zip(decoded, self.emissions_, strict=True):
            X[:, places] = values
        return X

    def is_missing(self, codes: Array) -> Flags:
        return np.logical_and.reduce(
            [part.is_missing(values) for part, values in self._split(codes)]
        )

    def _unseen_values(self, codes: Array) -> Flags:
        return np.hstack([part._unseen_values(values) for part, values in self._split(codes)])

    def is_unused(self, codes: Array) -> Flags:
        return np.logical_and.reduce(
            [part.is_unused(values) for part, values in self._split(codes)]
        )

    def _by_part(
        self, codes: Array, record: EmissionRecord
    ) -> list[tuple[BaseEmission, Array, EmissionRecord]]:
        """Parts with their columns of encoded data, and their records."""
        pairs = zip(self._split(codes), record["parts"], strict=True)
        return [(part, rows, rec) for (part, rows), rec in pairs]

    def _with_parts(self, parts: Sequence[BaseEmission]) -> ProductEmission:
        """Copy with other emissions of the same columns."""
        return self._described(lambda _, part: part, parts)

    def make_stats(self, codes: Array) -> EmissionStats:
        return product_stats([part.make_stats(values) for part, values in self._split(codes)])
