"""Given numbers of emissions: columns of X on which observations regress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from operator import itemgetter
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.roles import Inputs, Role, Units
from skihmm._data.validation import as_matrix
from skihmm._typing import Array, Floats, Integers, MatrixLike
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._columns import (
    column_labels,
)
from skihmm.emissions._family_emission import FamilyEmission
from skihmm.emissions._spec import StateNumber

# Coefficients of a regression, with the intercept: an update costs their square.
MOST_COEFFICIENTS = 200
# Ratio of singular values beyond which coefficients are set by the prior alone.
_MOST_COLLINEAR = 1e8


class WithInputs(FamilyEmission):
    """Base class of emissions with inputs: columns of X that are given, not modelled.

    Families get the inputs standardised by the rows of the fit, after the earlier rows; then
    come further given columns that a subclass adds.
    """

    input_features: ArrayLike | None
    # A regression by its short name is meant to have inputs: this is the short name of
    # the emission without.
    _without_inputs: str | None = None
    # Larger standardised inputs, which are wrong, are clipped: they would cost all other inputs'
    # digits in sums of squares.
    _most_deviations = 1e6

    def roles(self) -> list[Role]:
        features, most = self.input_features, MOST_COEFFICIENTS - 1
        inputs = Inputs("input_features", features, most=most, farthest=self._most_deviations)
        return [inputs, *super().roles()]

    @property
    def _n_regressors(self) -> int:
        return self.roles()[0].n_columns

    @property
    def input_means_(self) -> Floats:
        """Means by which inputs are standardised, of shape (n_inputs,)."""
        return self._units_of_inputs.means

    @property
    def input_scales_(self) -> Floats:
        """Standard deviations by which inputs are standardised, of shape (n_inputs,)."""
        return self._units_of_inputs.scales

    @property
    def _units_of_inputs(self) -> Units:
        if "input_features" not in self._learnt:
            raise AttributeError("The emission is not fitted yet; call fit before.")
        units: Units = self._learnt["input_features"]
        return units

    def _set_units(self) -> None:
        """Take inputs as they are if :meth:`with_given` has not seen any."""
        n = self._n_regressors
        self._learnt = {"input_features": Units(np.zeros(n), np.ones(n)), **self._learnt}

    def input_labels(self) -> list[str | int]:
        """List given numbers as the user named them.

        Returns
        -------
        labels : list of str or int
            Names, or indices.
        """
        return [label for role in self.roles() if role.kind == "input" for label in role.labels]

    def with_given(self, columns: Array) -> Self:
        fitted, labels = super().with_given(columns), self.input_labels()
        if fitted._given is None or not labels:
            return fitted
        is_lost = np.isnan(fitted._given[:, : len(labels)]).any(axis=1)
        if is_lost.all():
            raise ValueError(
                f"Every row of X lacks an input ({', '.join(map(repr, labels))}), and a "
                "step without all inputs says nothing. Check how X was read."
            )
        complete = fitted._given[~is_lost, : self._n_regressors]
        if self._n_regressors > 1:
            # From the factor, because products of inputs would lose half of the digits.
            sizes = np.linalg.svd(np.linalg.qr(complete, mode="r"), compute_uv=False)
            if sizes[-1] * _MOST_COLLINEAR < sizes[0]:
                fitted._given_warnings += (
                    f"The inputs {', '.join(map(repr, labels))} are collinear: the data "
                    "determine only sums of their coefficients, and the prior the rest. "
                    "Leave some of them out.",
                )
        return fitted

    def fit_sequences(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int] | None = None
    ) -> BaseEmission:
        X = as_matrix(X)
        n = X.shape[1]
        if self._without_inputs is not None and not self.input_labels() and n > 1:
            example, labels = copy(self), list(column_labels(self, n))
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

    @property
    def _outputs(self) -> Sequence[tuple[int, str]]:
        """Column of every regression, and what it is called behind the column."""
        return [(c, "") for c in range(self._n_values)]

    def _numbers_of_regressions(
        self, attribute: str, values: Floats, word: str
    ) -> list[StateNumber]:
        """Numbers that summaries show of coefficients, or of intercepts by this word."""
        if attribute == "intercepts_":
            return [
                StateNumber(c, own + word, itemgetter((..., o)))
                for o, (c, own) in enumerate(self._outputs)
            ]
        # Exposures and trials are given, too, but have no coefficient.
        labels = self.roles()[0].labels
        n_lagged = values.shape[-1] - len(labels)
        found = []
        for o, (c, own) in enumerate(self._outputs):
            if n_lagged:
                found.append(StateNumber(c, "lag 1", itemgetter((..., o, o))))
            for i, label in enumerate(labels, n_lagged):
                found.append(StateNumber(c, f"{own}by {label}", itemgetter((..., o, i))))
        return found

    @property
    def inverse_link(self) -> Callable[[Floats], Floats] | None:
        """From linear predictors to means; None, the default, if means have several."""
        return None

    def event(self, name: str, output: int) -> str | None:
        """Name the event whose probability is the mean of an output.

        Parameters
        ----------
        name : str
            Name of the column.
        output : int
            Index of the regression.

        Returns
        -------
        event : str or None
            None, the default, of numbers.
        """
        return None

    def typical_predictors(self) -> Floats:
        """Means of what the coefficients of the states multiply.

        Returns
        -------
        predictors : ndarray of shape (n_coefficients,)
        """
        return np.array(self.typical_given()[: self._n_regressors], dtype=float)

    def _in_user_units(self, coefficients: Floats, intercepts: Floats) -> tuple[Floats, Floats]:
        """Coefficients (last axis) and intercepts of inputs as they are in X."""
        slopes = coefficients / self.input_scales_
        return slopes, intercepts - (slopes * self.input_means_).sum(axis=-1)
