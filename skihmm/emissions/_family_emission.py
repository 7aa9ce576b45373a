"""Base classes of emissions of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skihmm._records import EmissionRecord, FixedNumbers
from skihmm._typing import Array, Cdf, Flags, Floats, Integers, Labels, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._columns import LARGEST_COUNT, as_floats, positive_values
from skihmm.emissions._conjugate_stats import conjugate_stats
from skihmm.emissions._given import TakesGiven
from skihmm.emissions._joint_law import JointLaw
from skihmm.emissions._spec import StateNumber, StateParameter, column_numbers

# Initial values of drawn hyperparameters: a tenth of a column's variance inside a state.
SHARE_WITHIN = 0.1

# Means over an uncertain number are at its quantiles of these normal deviates: errors of
# probabilities are below 1e-5 where a state has rows, up to .08 of counts in a new state.
NODES = np.linspace(-5.5, 5.5, 24)
NODE_WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()


class NumericEmission(BaseEmission):
    """Base class of the conjugate emissions of numbers."""

    is_categorical = False
    takes_integers = False
    emits_integers = False

    @property
    def _kind(self) -> str:
        return "counts" if self.emits_integers else "real"

    def _check(self, X: Floats) -> None:
        """Raise ValueError if values are outside of the emission's range."""

    def encode_values(self, X: MatrixLike) -> Floats:
        check_is_fitted(self)
        X = as_floats(X, self)
        self._check(X)
        return X

    def inputs(
        self,
        values: Array,
        starts: Integers,
        before: Array | None = None,
        given: Array | None = None,
    ) -> Array:
        n, n_columns = values.shape
        n_before = 0 if before is None else len(before)
        rows = np.full((n_before + n, n_columns + self.n_inputs), np.nan)
        if before is not None:
            rows[:n_before] = before
        rows[n_before:, :n_columns] = values
        previous = np.arange(n_before - 1, n_before - 1 + n)
        previous[starts] = -1
        previous[starts[:n_before]] = np.arange(n_before)
        self.make_stats(rows[:0]).fill_inputs(rows, previous)
        inputs = rows[n_before:, n_columns:]
        if given is not None:
            inputs[:, inputs.shape[1] - given.shape[1] :] = given
        return inputs

    def decode(self, codes: Array) -> Array:
        if self.emits_integers and self.is_positive_only:
            # A heavy tail of counts reaches beyond what fits accept, and integers hold.
            codes = np.minimum(codes, LARGEST_COUNT)
        is_whole = self.emits_integers and not np.isnan(codes).any()
        return np.rint(codes).astype(np.int64) if is_whole else codes

    def is_missing(self, codes: Array) -> Flags:
        n = codes.shape[1] - self.n_inputs
        return np.asarray(np.isnan(codes[:, :n]).all(axis=1))


class FamilyEmission(NumericEmission, TakesGiven):
    """Base class of the emissions that have a compiled family."""

    _family: ClassVar[str]
    # Hyperparameters that are drawn if their parameter is None.
    _hyperparameters: tuple[str, ...]
    _units: tuple[Floats, ...]
    # Encoded given columns of the rows that are being fitted.
    _given: Array | None = None
    # Attribute of the states that holds the family's expectations, and the word for them.
    _expected: ClassVar[tuple[str, str]]
    # Attributes of the states, of a fitted model.
    _of_states: tuple[str, ...] = ()

    def with_given(self, columns: Array) -> Self:
        fitted = super().with_given(columns)
        if fitted is not self:
            fitted._given = None if self._learnt else fitted.encode_given(columns)
        return fitted

    def _fixed(self) -> FixedNumbers:
        """Return the numbers that are never drawn, such as the period of angles."""
        return {}

    def _is_drawn(self, name: str) -> bool:
        return getattr(self, name) is None

    def _prior(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        """Hyperparameters of the family, and their typical values."""
        return [getattr(self, name + "_") for name in self._hyperparameters], self._units

    def make_stats(self, codes: Array) -> EmissionStats:
        return conjugate_stats(
            self._family,
            codes,
            *self._prior(),
            [self._is_drawn(name) for name in self._hyperparameters],
            self.n_inputs,
            self.n_given,
            **self._fixed(),
        )

    @property
    def _n_values(self) -> int:
        """Columns that are modelled."""
        return len(getattr(self, self._hyperparameters[0] + "_"))

    def _describe(self, expected: Floats) -> dict[str, Floats]:
        """Attributes of the states in the order of summaries, from the family's expectations."""
        return {self._expected[0]: expected}

    def _shown_numbers(self, attribute: str, values: Floats) -> list[StateNumber]:
        """Numbers of an attribute of the states that summaries show."""
        return column_numbers(values.shape[-1], self._expected[1])

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        """Drawn parameters of the states in the layout of the family's expectations."""
        raise NotImplementedError

    def with_states(
        self, record: EmissionRecord, n_states: int, stream: RandomStream | None = None
    ) -> BaseEmission:
        # Without data, because only the layout is needed.
        width = self._n_values + self.n_inputs
        stats = self.make_stats(np.empty((0, width)))
        described = copy(self)
        expected = stats.parameters(record, n_states, stream)
        if stream is not None:
            expected = self._drawn(expected, self._split(record["hyperparameters"]))
        found = self._describe(expected)
        vars(described).update(found, _of_states=tuple(found))
        return described

    @property
    def state_parameters(self) -> Mapping[str, StateParameter]:
        values = {name: getattr(self, name) for name in self._of_states}
        numbers = {name: self._shown_numbers(name, a) for name, a in values.items()}
        return {name: StateParameter(values[name], n) for name, n in numbers.items() if n}

    def predictive_cdf(
        self, stats: EmissionStats, slots: Labels, inputs: Array, is_conditional: bool = False
    ) -> Cdf:
        law = self._joint_law(stats, slots, inputs) if is_conditional else None
        if law is not None:
            return law.cdf
        if self._kind == "symbols":
            return super().predictive_cdf(stats, slots, inputs)
        cdf = self._cdf(*self._numbers_of(stats, slots), inputs)
        return lambda values: cdf(values[..., None, :])

    def _numbers_of(self, stats: EmissionStats, slots: Labels) -> tuple[Floats, dict[str, Floats]]:
        """Statistics of the states in slots, and the hyperparameters."""
        # The start, in slot 1, has the last label and is no state.
        labels = np.full(int(slots.max()) + 2, -1, dtype=np.int32)
        labels[1] = len(slots)
        labels[slots] = np.arange(len(slots))
        record = stats.to_arrays(labels)
        return record["numbers"], self._split(record["hyperparameters"])

    def _joint_law(self, stats: EmissionStats, slots: Labels, inputs: Array) -> JointLaw | None:
        """Law of a row in states; None, the default, if columns are independent."""
        return None

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        """Function of :meth:`predictive_cdf`, of values with an axis for the states."""
        raise NotImplementedError

    def _split(self, values: Floats) -> dict[str, Floats]:
        """Hyperparameters by name, from the family's array of them."""
        fitted = {n: np.asarray(getattr(self, n + "_")) for n in self._hyperparameters}
        parts = np.split(values, np.cumsum([value.size for value in fitted.values()]))
        return {
            name: part.reshape(value.shape)
            for (name, value), part in zip(fitted.items(), parts[:-1], strict=True)
        }

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        values = self._split(record["hyperparameters"])
        return {name: values[name] for name in self._hyperparameters if self._is_drawn(name)}


class IndependentColumns(FamilyEmission):
    """Base class of independent columns whose prior is in units of typical values."""

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        """Typical values and initial values of the hyperparameters of every column."""
        raise NotImplementedError

    def fit(self, X: MatrixLike, y: None = None) -> IndependentColumns:
        X = as_floats(X, self)
        units, initial = self._fit_scale(self._transform(X))
        self._units = tuple(units)
        for name, values in zip(self._hyperparameters, initial, strict=True):
            fixed = getattr(self, name)
            if fixed is not None:
                values = positive_values(name, fixed, X.shape[1])
            setattr(self, name + "_", values)
        self._check(X)
        self._check_prior()
        return self

    def _check_prior(self) -> None:
        """Raise ValueError if the hyperparameters are impossible."""

    def _transform(self, X: Floats) -> Floats:
        """Change values before anything is computed from them."""
        return X

    def encode_values(self, X: MatrixLike) -> Floats:
        return self._transform(super().encode_values(X))
