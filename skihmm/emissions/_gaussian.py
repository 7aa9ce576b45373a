"""Gaussian emissions with conjugate priors."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from skihmm._data.scales import column_means, column_variances
from skihmm._data.validation import LARGEST_SIZE, LEAST_SIZE, check_positive
from skihmm._data.wrong_values import describe_wrong, wrong_values
from skihmm._records import FixedNumbers
from skihmm._typing import Array, Cdf, Flags, Floats, Integers, Labels, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._column_noise import ColumnNoise
from skihmm.emissions._columns import (
    as_floats,
    column_labels,
    column_values,
    entry,
    positive_values,
)
from skihmm.emissions._family_emission import SHARE_WITHIN, FamilyEmission
from skihmm.emissions._joint_law import JointLaw
from skihmm.emissions._spec import ColumnSpec, StateNumber, column_numbers, deviations
from skihmm.emissions._subjects import WithSubjects

# Initial strength: the means of states vary like the column.
START_STRENGTH = 0.1

# Columns whose mean is so many standard deviations from zero are shifted before
# statistics are kept: squares and sums would lose these digits.  The shift itself loses
# none, because numbers so close to one another subtract without rounding.
_FAR_FROM_ZERO = 1e3

# A full covariance of more columns is hardly meant.
_MANY_COLUMNS = 100
# White noise in 8 columns of 60 rows has up to 27 states, in 40 columns of 200 rows 200.
_ROWS_PER_COLUMN = 15


def _relative_scale(scale: object) -> float | None:
    """Return the factor in "<factor>*var"; None if the scale is not a string."""
    if not isinstance(scale, str):
        return None
    try:
        match = re.fullmatch(r"\s*(.+?)\s*\*\s*var\s*", scale)
        factor = float(match[1]) if match else np.nan
    except ValueError:
        factor = np.nan
    if not 0 < factor < np.inf:
        raise ValueError(
            f"scale={scale!r}; expected numbers, None, or a multiple of the columns' "
            'variances such as "0.1*var".'
        )
    return factor


class Gaussian(FamilyEmission):
    """Base class of the Gaussian emissions: prior of a state's mean, and offsets."""

    default_init = "kmeans"
    # Earlier rows in a row.
    order = 0
    subject_scale = False
    _hyperparameters = ("mean", "strength", "scale")
    mean: ArrayLike | None
    strength: ArrayLike | None
    scale: ArrayLike | str | None
    resolution: ArrayLike | str | None
    dof_: float
    _noise: ColumnNoise
    _warnings: list[str]
    # Whether rows precede one another, and whether a column that the other columns determine leaves
    # a state's covariance singular.
    _are_series = False
    _has_full_covariance = True

    def _check(self, X: Floats) -> None:
        for row, c in np.argwhere(np.abs(X) > LARGEST_SIZE):
            raise ValueError(
                f"{entry(X, row, c, self)} is too large; expected numbers up to "
                f"{LARGEST_SIZE:g} in size. Scale the data (StandardScaler)."
            )

    def _fit_prior(self, X: MatrixLike, starts: Integers) -> None:
        """Fit encoding and prior to sequences without noise."""
        self.fit(X)

    def fit_sequences(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int] | None = None
    ) -> BaseEmission:
        if entropy is None:
            self._fit_prior(X, starts)
            return self
        dtype = np.asarray(X).dtype
        precision = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
        X = as_floats(X, self)
        self._check(X)
        n_rows, n = X.shape
        labels = column_labels(self, n)
        comparable = self._levelled(X)
        wrong = wrong_values(comparable, self._are_series)
        warnings = describe_wrong(X, labels, wrong)
        is_full = self._has_full_covariance and not self._are_series
        if is_full and n > 4 and n_rows < _ROWS_PER_COLUMN * n:
            warnings.append(
                f"X has {n_rows} rows of {n} columns: {type(self).__name__} has a full "
                f"covariance matrix in every state, and below some {_ROWS_PER_COLUMN} "
                "rows per column the number of states says little. Use "
                'emission="diagonal_gaussian", or reduce the columns first, as by PCA.'
            )
        elif is_full and n > _MANY_COLUMNS:
            warnings.append(
                f"X has {n} columns: {type(self).__name__} has a full covariance matrix "
                "in every state, which needs many rows and takes time that grows with "
                'the square of the columns. emission="diagonal_gaussian" has variances '
                "only; or reduce the columns, as by PCA."
            )
        noise = ColumnNoise.none(n)
        if self.resolution is not None:
            noise = ColumnNoise.of_data(
                X,
                starts,
                self.resolution,
                labels,
                np.where(wrong, np.nan, comparable),
                precision,
                looks_back=self.order != 0,
            )
        noisy = self._fit_noisy(X, starts, noise, entropy)
        if self.resolution is not None and self._has_full_covariance:
            rows, spread = self._rows_to_compare(noisy, starts), np.sqrt(self._units[1])
            more = noise.with_determined(rows, spread, labels)
            if more is not noise:
                self._fit_noisy(X, starts, more, entropy)
        self._warnings = warnings
        return self

    def _fit_noisy(
        self, X: Floats, starts: Integers, noise: ColumnNoise, entropy: Sequence[int]
    ) -> Floats:
        """Fit encoding and prior to rows with noise; return these rows."""
        added = noise.of_rows(len(X), 0, entropy)
        noisy = X if added is None else X + added
        self._fit_prior(noisy, starts)
        self._noise = noise
        return noisy

    @property
    def resolution_(self) -> Floats:
        return self._noise.steps

    def dither(self, n_rows: int, first: int, entropy: Sequence[int]) -> Floats | None:
        """Noise that a fit adds to values, because repeated ones have no density.

        Parameters
        ----------
        n_rows : int
        first : int
            Number of the first row in the data of the fit.
        entropy : sequence of int
            See :meth:`fit_sequences`.

        Returns
        -------
        noise : ndarray of shape (n_rows, n_features) or None
            None: no noise.
        """
        return self._noise.of_rows(n_rows, first, entropy)

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        notes = self._noise.notes if with_notes else ()
        warnings = *self._warnings, *self._noise.warnings
        return [*notes, *warnings, *super().data_warnings(with_notes)]

    def _levelled(self, X: Floats) -> Floats:
        """Rows by which columns have their scale: less the levels of subjects."""
        return X

    def _rows_to_compare(self, X: Floats, starts: Integers) -> Floats:
        """Complete rows in which a column may be a function of the other columns."""
        X = self._levelled(X)
        is_usable = ~(np.isnan(X) | wrong_values(X, self._are_series)).any(axis=1)
        return X[is_usable]

    def _fit_units(self, X: MatrixLike) -> Floats:
        """Fit offset, mean and variance of every column; return the means."""
        X = as_floats(X, self)
        self._check(X)
        sizes = np.nanmax(np.abs(X), axis=0, initial=0.0)
        for c in np.flatnonzero((sizes > 0) & (sizes < LEAST_SIZE)).tolist():
            raise ValueError(
                f"No number of column {column_labels(self, X.shape[1])[c]!r} of X is "
                f"above {sizes[c]:g} in size, and its squares are zero; expected "
                f"{LEAST_SIZE:g} or more. Scale the data (StandardScaler)."
            )
        rows = self._levelled(X)
        wrong = wrong_values(rows, self._are_series)
        if wrong.any():
            rows, X = np.where(wrong, np.nan, rows), np.where(wrong, np.nan, X)
        means, variances = column_means(rows), column_variances(rows)
        # Offsets of subjects vary as the levels do.
        self._offset_units = column_variances(X)
        far = np.abs(means) > _FAR_FROM_ZERO * np.sqrt(variances)
        # Scales of subjects are about the means, wherever zero is.
        far |= self.subject_scale
        self.offset_ = np.where(far, means, 0.0)
        self._units = means - self.offset_, variances
        # A fit of the recipe alone adds no noise.
        self._noise, self._warnings = ColumnNoise.none(len(means)), []
        return means

    def _fit_columns(self, X: MatrixLike) -> Floats | None:
        """Fit the units and the prior means; return the scales if they are relative."""
        means = self._fit_units(X)
        self.mean_ = means if self.mean is None else column_values("mean", self.mean, len(means))
        if (np.abs(self.mean_) > LARGEST_SIZE).any():
            raise ValueError(
                f"mean={self.mean!r}; expected numbers up to {LARGEST_SIZE:g} in size, as in X."
            )
        share = SHARE_WITHIN if self.scale is None else _relative_scale(self.scale)
        return None if share is None else share * self._units[1]

    def _typical_values(self) -> list[Floats]:
        means, variances = self._units
        return [means, np.ones_like(means), variances]

    def encode_values(self, X: MatrixLike) -> Floats:
        return super().encode_values(X) - self.offset_

    def decode(self, codes: Array) -> Array:
        return np.asarray(codes + self.offset_)

    def _check_dof(self, n: int) -> None:
        if self.dof_ <= n - 1:
            raise ValueError(f"dof={self.dof_}; expected more than n_features - 1 = {n - 1}.")

    def _given_scale(self, n: int) -> Floats:
        try:
            scale = np.asarray(self.scale, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"scale={self.scale!r}; expected a matrix of numbers, a multiple of the "
                'columns\' variances such as "0.1*var", or None.'
            ) from None
        if scale.shape != (n, n):
            raise ValueError(
                f"scale has the shape {scale.shape}, but X has {n} columns; expected ({n}, {n})."
            )
        try:
            # False for NaN too.
            if not np.allclose(scale, scale.T, rtol=1e-10, atol=0):
                raise np.linalg.LinAlgError
            np.linalg.cholesky(scale)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"scale={self.scale!r}; expected a symmetric, positive definite matrix."
            ) from None
        return scale

    def _fixed(self) -> FixedNumbers:
        return {"dof": self.dof_}

    def is_missing(self, codes: Array) -> Flags:
        lacks = np.isnan(codes)
        n = codes.shape[1] - self.n_inputs
        return np.asarray(lacks[:, :n].all(axis=1) | lacks[:, n:].any(axis=1))

    def is_unused(self, codes: Array) -> Flags:
        # A partial row is conjugate for variances only.
        if not self._has_full_covariance:
            return self.is_missing(codes)
        return np.asarray(np.isnan(codes).any(axis=1))

    def columns(self, n_columns: int) -> ColumnSpec:
        noise = self._noise
        return (
            super()
            .columns(n_columns)
            ._replace(
                offsets=self.offset_,
                correlates=np.full(n_columns, self._has_full_covariance),
                has_noise=(noise.widths > 0) | (noise.deviations > 0),
            )
        )

    def _shown_numbers(self, attribute: str, values: Floats) -> list[StateNumber]:
        return (
            deviations(values)
            if attribute == "covariances_"
            else column_numbers(values.shape[-1], "mean")
        )

    def _split(self, values: Floats) -> dict[str, Floats]:
        found = super()._split(values)
        return {**found, "mean": found["mean"] + self.offset_}


class NormalInverseGamma(WithSubjects, Gaussian):
    """Gaussian observations, columns independent given the state.

    In every state and column ``variance ~ InverseGamma(shape, scale)`` and
    ``mean | variance ~ Normal(mean, variance / strength)``.  With both integrated out,
    the predictive distribution is Student's t.

    Single entries may be missing.

    Parameters
    ----------
    mean : float, array-like of shape (n_features,) or None, default=None
        Prior mean of the mean of a state.  None: drawn after every sweep, with the prior
        ``Normal(m, v)``, m and v the mean and the variance of the column.
    strength : float, array-like of shape (n_features,) or None, default=None
        Weight of the prior mean in observations.  None: drawn, with the prior
        ``Gamma(1/2, 1/2)``.
    shape : float, default=1.5
        Shape of the inverse gamma prior.  Above 1 the variance has an expectation.
    scale : float, array-like of shape (n_features,), str or None, default=None
        Scale of the inverse gamma prior, in squared units of the column.  ``"0.1*var"``
        is a tenth of the column's variance.  None: drawn, with the prior
        ``Gamma(1/2, 1/v)`` truncated below ``v / 2e8``.
    resolution : "auto", float, array-like of shape (n_features,) or None, default="auto"
        Step of a rounded column (see :class:`NormalInverseWishart`).
    subject_feature, subject_scale : optional
        See :class:`NormalInverseWishart`.

    Attributes
    ----------
    mean_, strength_, scale_ : ndarray of shape (n_features,)
        The prior, with initial values of drawn hyperparameters.  The draws of a fit are in
        ``draws_.hyperparameters``.
    offset_ : ndarray of shape (n_features,)
        Offset subtracted from the data: the mean of a column, if the mean is many standard
        deviations from zero or subjects have scales, and otherwise 0.
    resolution_ : ndarray of shape (n_features,)
        Step of every rounded column after the fit of a :class:`~skihmm.HCRPHMM`, and 0 for
        columns of levels and unrounded columns.

    See Also
    --------
    NormalInverseWishart : Columns that correlate within a state.
    AutoregressiveNormal : Numbers that follow earlier rows or inputs, and heavy tails.
    skihmm.inspection.SubjectDisplay : Draw the levels of subjects.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has the posterior means of the
    states' means and variances under the selected draw: ``means_`` and ``covariances_``,
    both of shape (n_states, n_features).

    A fit infers the prior of means and variances too.  A fixed prior largely determines the
    number of states: a prior for narrow states splits wide states.

    References
    ----------
    K. P. Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import NormalInverseGamma
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0], [5.0], [0.0], [5.0]], 25, axis=0)
    >>> X += rng.normal(size=X.shape)
    >>> emission = NormalInverseGamma()
    >>> hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    _family = "normal_inverse_gamma"
    _has_full_covariance = False

    def __init__(
        self,
        mean: ArrayLike | None = None,
        strength: ArrayLike | None = None,
        shape: float = 1.5,
        scale: ArrayLike | str | None = None,
        resolution: ArrayLike | str | None = "auto",
        *,
        subject_feature: str | int | None = None,
        subject_scale: bool = False,
    ) -> None:
        self.mean = mean
        self.strength = strength
        self.shape = shape
        self.scale = scale
        self.resolution = resolution
        self.subject_feature = subject_feature
        self.subject_scale = subject_scale

    def fit(self, X: MatrixLike, y: None = None) -> NormalInverseGamma:
        scales = self._fit_columns(X)
        check_positive("shape", self.shape)
        n = len(self.mean_)
        strength = START_STRENGTH if self.strength is None else self.strength
        self.strength_ = positive_values("strength", strength, n)
        self.scale_ = positive_values("scale", self.scale, n) if scales is None else scales
        return self

    def _fixed(self) -> FixedNumbers:
        return {"shape": check_positive("shape", self.shape)}

    def _prior(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        prior = [self.mean_ - self.offset_, self.strength_, self.scale_]
        return prior, self._typical_values()

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        return np.hstack([p[:, ::3], 0.5 / p[:, 1::3]])

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        columns = numbers.reshape(-1, len(self.mean_), 7)
        location, power, inverse = np.moveaxis(columns[..., 3:6], -1, 0)
        dof = 2 * power - 1
        return lambda y: stdtr(dof, (y - location) * np.sqrt(inverse * dof))

    def _describe(self, expected: Floats) -> dict[str, Floats]:
        means, variances = np.split(expected, 2, axis=1)
        return {"means_": means + self.offset_, "covariances_": variances}


class NormalInverseWishart(WithSubjects, Gaussian):
    """Gaussian observations with a full covariance matrix in every state.

    ``covariance ~ InverseWishart(scale, dof)`` and ``mean | covariance ~ Normal(mean,
    covariance / strength)`` are integrated out, and the predictive distribution is a
    multivariate Student's t.

    A fit draws the missing entries of a partial row after every sweep, from their
    distribution given the observed entries of the row.  Predictions and scores weigh states
    by the marginal density of the observed entries.

    Parameters
    ----------
    mean : float, array-like of shape (n_features,) or None, default=None
        Prior mean of the mean of a state.  None: drawn after every sweep, with the prior
        ``Normal(m, diag(v))``, m and v the means and the variances of the columns.
    strength : float or None, default=None
        Weight of the prior mean in observations.  None: drawn, with the prior
        ``Gamma(1/2, 1/2)``, in more than two columns ``Gamma(1/2, n_features)``.
    dof : float or None, default=None
        Degrees of freedom, more than ``n_features - 1``; None: ``n_features + 2``: the
        covariance of a state has the expectation `scale`.
    scale : array-like of shape (n_features, n_features), str or None, default=None
        Positive definite.  ``"0.1*var"`` is diagonal, a tenth of the columns' variances.
        None: diagonal, and drawn, with the prior ``Gamma(1/2, 1/(2 v))`` on every entry,
        truncated below ``v / 1e8``.
    resolution : "auto", float, array-like of shape (n_features,) or None, default="auto"
        Step of a rounded column, in its units.  0: not rounded.  A fit adds normal noise,
        of standard deviation 0.4 steps, to a copy of the values.  The noise of
        autoregressions is uniform in a step, because later rows look back.  "auto": the fit
        finds columns on a grid, with repeated values and gaps in multiples of the smallest
        gap.  Columns of levels, with 2 to 12 values for several rows each, get normal noise
        of 0.1 of the least gap between values.  None: no noise, not even for constant
        columns, dead channels and columns determined by further columns.
    subject_feature : str, int or None, default=None
        Name or index of the column of X that holds the subject of the row: a person, an
        animal, a night, a device.  The column is given and is no feature.  A subject has
        its own offset in every column, common to all states.  Offsets of the subjects of
        the fit sum to zero.  All rows of a sequence have the same subject.  A new name is a
        new subject, and a missing name a new subject per sequence.  Predictions draw the
        offset of a new subject given all its rows.  Scores and residuals integrate the
        offset out, row by row, with a scale of one.
    subject_scale : bool, default=False
        Whether a subject, for example a sensor, also has its own scale in every column.
        The product over the subjects of the fit is one.  A row is then
        ``offset_ + offset + scale * (x - offset_)``, where x is a row of the mean
        subject.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    strength_ : float
    scale_ : ndarray of shape (n_features, n_features)
        The prior, with initial values of drawn hyperparameters.  The draws of a fit are in
        ``draws_.hyperparameters``.
    dof_ : float
        The degrees of freedom used.
    offset_ : ndarray of shape (n_features,)
        Offset subtracted from the data: the mean of a column, if the mean is many standard
        deviations from zero or subjects have scales, and otherwise 0.
    resolution_ : ndarray of shape (n_features,)
        Step of every rounded column after the fit of a :class:`~skihmm.HCRPHMM`, and 0 for
        columns of levels and unrounded columns.

    See Also
    --------
    NormalInverseGamma : Columns that are independent within a state.
    AutoregressiveNormal : Numbers that follow earlier rows or inputs, and heavy tails.
    skihmm.inspection.SubjectDisplay : Draw the levels of subjects.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has the posterior means of the
    states' parameters under the selected draw: ``means_`` of shape (n_states, n_features)
    and ``covariances_`` of shape (n_states, n_features, n_features).

    With ``subject_feature``, ``subjects_`` has the subjects of the fit in the order of
    their first rows.  Posterior means are ``subject_offsets_`` of shape (n_subjects,
    n_features), ``offset_deviation_``, the standard deviations of offsets by column, and
    with ``subject_scale`` ``subject_scales_``.  States have the parameters of the mean
    subject.

    A fit infers the prior of means and variances too.  A fixed prior largely determines the
    number of states: a prior for narrow states splits wide states.

    References
    ----------
    K. P. Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import NormalInverseWishart
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0, 0.0], [5.0, -5.0]] * 2, 25, axis=0)
    >>> X += rng.normal(size=X.shape)
    >>> emission = NormalInverseWishart()
    >>> hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    _family = "normal_inverse_wishart"

    def __init__(
        self,
        mean: ArrayLike | None = None,
        strength: float | None = None,
        dof: float | None = None,
        scale: ArrayLike | str | None = None,
        resolution: ArrayLike | str | None = "auto",
        *,
        subject_feature: str | int | None = None,
        subject_scale: bool = False,
    ) -> None:
        self.mean = mean
        self.strength = strength
        self.dof = dof
        self.scale = scale
        self.resolution = resolution
        self.subject_feature = subject_feature
        self.subject_scale = subject_scale

    def fit(self, X: MatrixLike, y: None = None) -> NormalInverseWishart:
        scales = self._fit_columns(X)
        n = len(self.mean_)
        self.strength_ = (
            START_STRENGTH if self.strength is None else check_positive("strength", self.strength)
        )
        self.dof_ = n + 2.0 if self.dof is None else check_positive("dof", self.dof)
        self._check_dof(n)
        self.scale_ = self._given_scale(n) if scales is None else np.diag(scales)
        return self

    def _prior(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        triangle = self.scale_[np.tri(len(self.scale_), dtype=bool)]
        prior = [self.mean_ - self.offset_, np.array(self.strength_), triangle]
        return prior, self._typical_values()

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        n = len(self.mean_)
        whitening = np.zeros((len(p), n, n))
        whitening[:, *np.tril_indices(n)] = p[:, n : n + n * (n + 1) // 2]
        root = np.linalg.inv(whitening)
        covariances = root @ root.transpose(0, 2, 1)
        return np.hstack([p[:, :n], covariances.reshape(len(p), -1)])

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        location, U, diagonal, dof, factor = self._factors(numbers)
        variances = (U**2 / diagonal[:, None]).sum(axis=2)
        root = np.sqrt(factor * dof / variances)
        return lambda y: stdtr(dof, (y - location) * root)

    def _joint_law(self, stats: EmissionStats, slots: Labels, inputs: Array) -> JointLaw | None:
        numbers, _ = self._numbers_of(stats, slots)
        location, U, diagonal, dof, factor = self._factors(numbers)
        roots = U / np.sqrt(diagonal)[:, None]
        spreads = 1 / factor[None, :, 0] - 1
        return JointLaw(lambda y: y - location, roots, spreads, dof[:, 0])

    def _factors(self, numbers: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Location, U and 1 / D, degrees of freedom and factor of the states.

        The posterior scale is U D U^T; 1 / D is in the place of the unit diagonal.
        """
        n = len(self.mean_)
        location, triangle, rest = np.split(numbers[:, 1:], [n, -4], axis=1)
        U = np.zeros((len(numbers), n, n))
        U[:, *np.tril_indices(n)] = triangle
        diagonal = np.einsum("kii->ki", U)
        dof = 2 * rest[:, :1] - n
        return location, np.tril(U, -1) + np.eye(n), diagonal, dof, rest[:, 1:2]

    def _describe(self, expected: Floats) -> dict[str, Floats]:
        n = len(self.mean_)
        return {
            "means_": expected[:, :n] + self.offset_,
            "covariances_": expected[:, n:].reshape(-1, n, n),
        }

    def _split(self, values: Floats) -> dict[str, Floats]:
        n = len(self.mean_)
        triangle = np.zeros((n, n))
        triangle[np.tril_indices(n)] = values[n + 1 :]
        # Drawn scales are diagonal.
        return {
            "mean": values[:n] + self.offset_,
            "strength": values[n],
            "scale": np.diag(triangle) ** 2,
        }
