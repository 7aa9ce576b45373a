"""Given numbers of emissions: columns of X on which observations regress."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.given import Role, as_numbers
from skihmm._data.validation import as_matrix
from skihmm._data.wrong_values import describe_wrong, wrong_values
from skihmm._typing import Array, Floats, Integers, MatrixLike
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._columns import column_means, column_variances
from skihmm.emissions._family_emission import FamilyEmission
from skihmm.emissions._resolution import constant_columns

# Coefficients of a regression, with the intercept: an update costs their square.
MOST_COEFFICIENTS = 200
# Ratio of singular values beyond which coefficients are set by the prior alone.
_MOST_COLLINEAR = 1e8


class WithInputs(FamilyEmission):
    """Base class of emissions with inputs: columns of X that are given, not modelled.

    Families get them standardised by the rows of the fit, after the earlier rows; then come
    `n_extra` given columns that a subclass adds, which are not standardised.
    """

    input_features: ArrayLike | None
    # A regression by its short name is meant to have inputs: this is the short name of
    # the emission without.
    _without_inputs: str | None = None
    # Larger standardised inputs, which are wrong, are clipped: they would cost all other inputs'
    # digits in sums of squares.
    _most_deviations = 1e6
    # Encoded given columns of the data that are being fitted.
    _given: Floats | None = None

    @property
    def _n_regressors(self) -> int:
        return self.roles()[0].n_columns

    @property
    def n_extra(self) -> int:
        """Number of given columns that are numbers, but no inputs of the regression."""
        return len(self._input_labels()) - self._n_regressors

    def roles(self) -> list[Role]:
        return [
            Role("input", "input_features", self.input_features, MOST_COEFFICIENTS - 1),
            *super().roles(),
        ]

    def _input_labels(self) -> list[str | int]:
        """Given numbers as the user named them, by name or index."""
        return [label for role in self.roles() if role.kind == "input" for label in role.labels]

    def with_given(self, columns: Array) -> BaseEmission:
        # The first fit sets the units.
        if hasattr(self, "input_means_"):
            return self
        fitted, labels = copy(self), self._input_labels()
        numbers = self._numbers(columns)
        is_lost = np.asarray(np.isnan(numbers).any(axis=1))
        if is_lost.all():
            raise ValueError(
                f"Every row of X lacks an input ({', '.join(map(repr, labels))}), and a "
                "step without all inputs says nothing. Check how X was read."
            )
        inputs = numbers[:, : self._n_regressors]
        for c in np.flatnonzero(constant_columns(inputs)).tolist():
            raise ValueError(
                f"The input {labels[c]!r} is constant, {np.nanmax(inputs[:, c]):g}: the "
                "intercept is in the model. Leave it out of input_features."
            )
        wrong = wrong_values(inputs, are_series=False)
        usual = np.where(wrong, np.nan, inputs) if wrong.any() else inputs
        fitted.input_means_ = column_means(usual)
        fitted.input_scales_ = np.sqrt(column_variances(usual))
        fitted._given = fitted._encode_numbers(numbers)
        fitted._input_warnings = describe_wrong(inputs, labels, wrong)
        if is_lost.any():
            empty = [labels[c] for c in np.flatnonzero(np.isnan(numbers).any(axis=0))]
            fitted._input_warnings.append(
                f"{is_lost.sum()} of {len(is_lost)} steps lack an input "
                f"({', '.join(map(repr, empty))}) and are missing as a whole. Impute the "
                "inputs before the fit, if they can be."
            )
        complete = fitted._given[~is_lost, : self._n_regressors]
        if self._n_regressors > 1 and np.isfinite(complete).all():
            # From the factor, because products of inputs would lose half of the digits.
            sizes = np.linalg.svd(np.linalg.qr(complete, mode="r"), compute_uv=False)
            if sizes[-1] * _MOST_COLLINEAR < sizes[0]:
                fitted._input_warnings.append(
                    f"The inputs {', '.join(map(repr, labels))} are collinear: the data "
                    "determine only sums of their coefficients, and the prior the rest. "
                    "Leave some of them out."
                )
        return fitted

    def _set_units(self) -> None:
        """Take inputs as they are if :meth:`with_given` has not seen any."""
        if not hasattr(self, "input_means_"):
            self.input_means_ = np.zeros(self._n_regressors)
            self.input_scales_ = np.ones(self._n_regressors)

    def _numbers(self, columns: Array) -> Floats:
        """Convert given columns to floats; NaN is missing."""
        return as_numbers(columns, self._input_labels())

    def encode_given(self, columns: Array) -> Floats:  # type: ignore[override]
        return self._encode_numbers(self._numbers(columns))

    def _encode_numbers(self, numbers: Floats) -> Floats:
        inputs = numbers[:, : self._n_regressors]
        inputs = (inputs - self.input_means_) / self.input_scales_
        inputs = np.clip(inputs, -self._most_deviations, self._most_deviations)
        return np.hstack([inputs, self._encode_extra(numbers[:, self._n_regressors :])])

    def _encode_extra(self, columns: Floats) -> Floats:
        """Encode the given columns that are no inputs of the regression."""
        return columns

    def typical_given(self) -> list[object]:
        # One trial, and the exposure one.
        known = [*self.input_means_.tolist(), *[1.0] * self.n_extra]
        return [*known, *[None] * (self.n_given - len(known))]

    def fit_sequences(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int] | None = None
    ) -> BaseEmission:
        X = as_matrix(X)
        n = X.shape[1]
        if self._without_inputs is not None and not self._input_labels() and n > 1:
            example, labels = copy(self), list(self._column_labels(n))
            output = next((c for c in range(n) if self._may_be_output(X[:, c])), 0)
            example.input_features = [*labels[:output], *labels[output + 1 :]][:3]
            raise ValueError(
                f"The {n} columns of X would all be outputs of {type(self).__name__}, "
                "which has no inputs; expected a regression on some of them. Name those: "
                f"emission={example!r}. Without inputs it is "
                f"emission={self._without_inputs!r}."
            )
        fitted = super().fit_sequences(X, starts, entropy)
        self._given = None
        return fitted

    def _may_be_output(self, column: Array) -> bool:
        """Whether a column has values that the emission has."""
        return True

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        return [*super().data_warnings(with_notes), *getattr(self, "_input_warnings", [])]

    def _in_user_units(self, coefficients: Floats, intercepts: Floats) -> tuple[Floats, Floats]:
        """Coefficients (last axis) and intercepts of inputs as they are in X."""
        slopes = coefficients / self.input_scales_
        return slopes, intercepts - (slopes * self.input_means_).sum(axis=-1)
