"""Product emission for mixed data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from skihmm.emissions._base import BaseEmission, Part
from skihmm.emissions._columns import (
    column_labels,
    column_orders,
    name_columns,
)
from skihmm.emissions._given import split_given
from skihmm.emissions._names import EMISSIONS
from skihmm.emissions._parts import split
from skihmm.emissions._product_stats import product_stats
from skihmm.emissions._spec import ColumnSpec, StateParameter

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
    """Property of a product from its groups' property, fitted groups if there are any."""

    def of_groups(product: ProductEmission) -> object:
        try:
            groups = product._groups()
        except (TypeError, ValueError):
            groups = []  # fit raises the error
        return merge([getattr(emission, name) for _, emission, _ in groups])

    return property(of_groups)


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

    See Also
    --------
    NormalInverseWishart : Numbers that correlate within a state.
    HCRPCategorical : Symbols.
    Part : One emission of the product.

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
        expected = (
            "expected a list of one or more triples, name, emission and columns, such as "
            '[("x", "gaussian", ["a", "b"]), ("n", "poisson", ["c"])]'
        )
        if not isinstance(self.emissions, list | tuple) or not self.emissions:
            raise ValueError(f"emissions={self.emissions!r}; {expected}.")
        parts = []
        for entry in self.emissions:
            if not isinstance(entry, list | tuple) or len(entry) != 3:
                raise ValueError(f"emissions holds {entry!r}; {expected}.")
            name, emission, columns = entry
            if not isinstance(name, str):
                raise ValueError(f"emissions holds the name {name!r}; {expected}.")
            if isinstance(emission, list | tuple):
                raise ValueError(f"emissions holds {entry!r}; {expected}.")
            emission = resolve(f"the emission of {name!r}", emission, EMISSIONS, BaseEmission)
            parts.append((name, emission, columns))
        self._validate_names([name for name, _, _ in parts])
        return parts

    def _groups(self) -> list[tuple[str, BaseEmission, Any]]:
        return getattr(self, "emissions_", None) or self._parts()

    @property
    def parts(self) -> list[Part]:
        return [
            Part(part.emission, f"{name}__{part.prefix}", (i, *part.path))
            for i, (name, emission, _) in enumerate(self._groups())
            for part in emission.parts
        ]

    def columns(self, n_columns: int) -> ColumnSpec:
        specs, first = [], 0
        for _, emission, places in self.emissions_:
            spec = emission.columns(len(places))
            specs.append(spec._replace(order=places[spec.order], part=spec.part + first))
            first += len(emission.parts)
        return ColumnSpec.joined(specs)

    def with_parts(self, parts: Iterator[BaseEmission]) -> ProductEmission:
        copied = copy(self)
        copied.emissions_ = [
            (name, emission.with_parts(parts), places) for name, emission, places in self.emissions_
        ]
        return copied

    is_categorical = _merged(all, "is_categorical")
    n_inputs = _merged(sum, "n_inputs")
    takes_integers = _merged(any, "takes_integers")
    default_init = _merged(_first_special, "default_init")
    has_lasting_states = _merged(any, "has_lasting_states")
    default_transitions = _merged(_most_lasting, "default_transitions")
    is_positive_only = _merged(any, "is_positive_only")

    def _by_name(self, found: Callable[[Part], Mapping[str, T]]) -> dict[str, T]:
        """What the parts have, by names with the prefixes of the parts."""
        return {part.prefix + key: x for part in self.parts for key, x in found(part).items()}

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        return self._by_name(lambda part: part.emission.hyperparameters(part.record(record)))

    @property
    def state_parameters(self) -> dict[str, StateParameter]:
        return self._by_name(lambda part: part.emission.state_parameters)

    def with_states(
        self, record: EmissionRecord, n_states: int, stream: RandomStream | None = None
    ) -> ProductEmission:
        return self.with_parts(
            part.emission.with_states(part.record(record), n_states, stream) for part in self.parts
        )

    def predictive_cdf(
        self, stats: EmissionStats, slots: Labels, inputs: Array, is_conditional: bool = False
    ) -> Cdf:
        emissions = [part.emission for part in self.parts]
        ends = np.cumsum([emission.n_inputs for emission in emissions])
        pairs = zip(emissions, stats.leaves, np.split(inputs, ends[:-1], axis=1), strict=True)
        cdfs = [part.predictive_cdf(s, slots, rows, is_conditional) for part, s, rows in pairs]
        stops = np.cumsum([leaf.n_columns for leaf in stats.leaves])[:-1]

        def cdf(values: Floats) -> Floats:
            pairs = zip(cdfs, np.split(values, stops, axis=-1), strict=True)
            return np.concatenate([cdf(columns) for cdf, columns in pairs], axis=-1)

        return cdf

    # ---- data

    def fit(self, X: MatrixLike, y: None = None) -> ProductEmission:
        return self.fit_sequences(X, np.zeros(1, dtype=np.intp))

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        # Parts may share inputs.
        texts = (part.emission.data_warnings(with_notes) for part in self.parts)
        return list(dict.fromkeys(chain.from_iterable(texts)))

    def fit_sequences(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int] | None = None
    ) -> ProductEmission:
        if hasattr(X, "columns"):
            name_columns(self, X.columns, category_orders(column_types(X)))
        X = as_matrix(X)
        n_features = X.shape[1]
        labels = column_labels(self, n_features)
        orders = column_orders(self, n_features)
        names = [label for label in labels if isinstance(label, str)] or None
        fitted: list[tuple[str, BaseEmission, NDArray[np.intp]]] = []
        taken: dict[int, str] = {}
        parts = self._parts()
        given: Sequence[Array | None] = [None] * len(parts)
        if self._given is not None:
            given = split_given([part for _, part, _ in parts], self._given)
            self._given = None
        for (name, part, columns), own in zip(parts, given, strict=True):
            places = _column_places(name, columns, names, n_features)
            for c in places.tolist():
                if c in taken:
                    where = f"in two groups, {taken[c]!r} and {name!r}"
                    if name == taken[c]:
                        where = f"twice in group {name!r}"
                    raise ValueError(
                        f"Column {labels[c]!r} of X is {where}; expected every column once."
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
                f"Columns {[labels[c] for c in left]} of X have no emission; expected every "
                "column in one group. Leave them out of X, or add a group."
            )
        self.emissions_ = fitted
        return self

    def with_given(self, columns: Array) -> ProductEmission:
        if hasattr(self, "emissions_"):
            emissions = [part.emission for part in self.parts]
            given = split_given(emissions, columns)
            return self.with_parts(
                part.with_given(own) for part, own in zip(emissions, given, strict=True)
            )
        # Parts are there in the fit only, and learn then.
        prepared = copy(self)
        prepared._given = columns
        return prepared

    def encode_values(self, X: MatrixLike) -> Array:
        # Integers if all columns are symbols, otherwise floats.
        check_is_fitted(self)
        X = as_matrix(X)
        return np.column_stack(
            [emission.encode_values(X[:, places]) for _, emission, places in self.emissions_]
        )

    def inputs(
        self,
        values: Array,
        starts: Integers,
        before: Array | None = None,
        given: Array | None = None,
    ) -> Array:
        parts = split(self, values, has_inputs=False)
        earlier: list[Array | None] = [None] * len(parts)
        if before is not None:
            earlier = [rows for _, rows in split(self, before)]
        by_part: list[Array | None] = [None] * len(parts)
        if given is not None:
            by_part = list(split_given([part.emission for part, _ in parts], given))
        return np.hstack(
            [
                part.emission.inputs(values, starts, rows, now)
                for (part, values), rows, now in zip(parts, earlier, by_part, strict=True)
                if part.emission.n_inputs
            ]
        )

    def decode(self, codes: Array) -> Array:
        # Python objects if any group has strings; the columns are in the order of X.
        parts = split(self, codes, has_inputs=False)
        decoded = [part.emission.decode(values) for part, values in parts]
        dtypes = [values.dtype for values in decoded]
        dtype = object if object in dtypes else np.result_type(*dtypes)
        X = np.empty(codes.shape, dtype=dtype)
        order = self.columns(codes.shape[1]).order
        X[:, order] = np.hstack([values.astype(dtype) for values in decoded])
        return X

    def _in_all_parts(self, mask: Callable[[BaseEmission, Array], Flags], codes: Array) -> Flags:
        pairs = split(self, codes)
        return np.logical_and.reduce([mask(part.emission, rows) for part, rows in pairs])

    def is_missing(self, codes: Array) -> Flags:
        return self._in_all_parts(lambda part, rows: part.is_missing(rows), codes)

    def is_unused(self, codes: Array) -> Flags:
        return self._in_all_parts(lambda part, rows: part.is_unused(rows), codes)

    def make_stats(self, codes: Array) -> EmissionStats:
        of_parts = (part.emission.make_stats(rows) for part, rows in split(self, codes))
        return self._joined_stats(of_parts)

    def _joined_stats(self, of_parts: Iterator[EmissionStats]) -> EmissionStats:
        """Statistics of the groups, from those of the next parts."""
        return product_stats(
            [
                emission._joined_stats(of_parts)
                if isinstance(emission, ProductEmission)
                else next(of_parts)
                for _, emission, _ in self.emissions_
            ]
        )
