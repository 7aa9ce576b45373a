"""Gaussian, Poisson and Bernoulli emissions with conjugate priors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, stdtr
from sklearn.utils.validation import check_is_fitted

from skihmm._records import EmissionRecord, FixedNumbers
from skihmm._typing import Array, Cdf, Flags, Floats, Integers, Labels, MatrixLike
from skihmm._validation import (
    as_matrix,
    check_finite,
    check_positive,
    is_missing_entry,
    is_number,
    shown,
)
from skihmm.core._emission import EmissionStats
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._conjugate_stats import ConjugateStats, conjugate_stats
from skihmm.emissions._resolution import (
    NOISE_OF_DETERMINED,
    constant_columns,
    dead_stretches,
    describe_constant,
    describe_dead,
    describe_determined,
    describe_repeats,
    describe_rounding,
    describe_wrong,
    determined_columns,
    given_steps,
    grid_step,
    noise_of_rows,
    wrong_values,
)

# Initial values of drawn hyperparameters: a tenth of a column's variance inside a state,
# and means of states that vary like the column.
SHARE_WITHIN = 0.1
START_STRENGTH = 0.1

# Columns whose mean is so many standard deviations from zero are shifted before
# statistics are kept: squares and sums would lose these digits.  The shift itself loses
# none, because numbers so close to one another subtract without rounding.
_FAR_FROM_ZERO = 1e3

# The log joint probability sums terms of the size of y log(y): at counts of 1e12 each is
# rounded by some thousandths.
_LARGEST_COUNT = 1e12


# Beyond which a full covariance is hardly what is meant.
_MANY_COLUMNS = 100
# White noise in 8 columns of 60 rows has up to 27 states, in 40 columns of 200 rows 200.
_ROWS_PER_COLUMN = 15

# Gaussian observations are squared, and added up.
_LARGEST_SIZE, _LEAST_SIZE = 1e100, 1e-100

# Means over an uncertain number are at its quantiles of these normal deviates: errors of
# probabilities are below 1e-5 where a state has rows, up to .08 of counts in a new state.
NODES = np.linspace(-5.5, 5.5, 24)
NODE_WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()


def count_cdf(y: Floats, r: Floats, p: Floats) -> Floats:
    """P(at most y failures before r successes), each of probability p."""
    return np.where(y < 0, 0.0, betainc(r, np.floor(np.maximum(y, 0.0)) + 1.0, p))


def _as_floats(X: MatrixLike, emission: BaseEmission) -> Floats:
    X = as_matrix(X)
    labels = emission._column_labels(X.shape[1])
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X holds complex numbers.")
    if X.dtype.kind in "OUS":
        columns = [
            _numbers(column, c, X) for c, column in zip(labels, X.T.tolist(), strict=True)
        ]
        X = np.array(columns, dtype=float).T.reshape(X.shape)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X has the type {X.dtype}; expected numbers.")
    # Sums over rows depend on the order in memory, to the last bits.
    X = X.astype(np.float64, order="C")
    for row, c in np.argwhere(np.isinf(X)):
        raise ValueError(
            f"X contains infinity: {_entry(X, row, c, emission)}; expected finite "
            "numbers or NaN (missing)."
        )
    return X


def _entry(X: Array, row: int, c: int, emission: BaseEmission) -> str:
    """Describe an entry of X with its row and the name of its column, for errors."""
    label = emission._column_labels(X.shape[1])[c]
    return f"X[{row}, {label!r}] = {shown(X[row, c])}"


def _numbers(column: list[object], label: str | int, X: Array) -> list[float]:
    """Convert a column of Python objects to floats."""
    return [_number(value, f"X[{row}, {label!r}]", X) for row, value in enumerate(column)]


def _number(value: object, place: str, X: Array) -> float:
    if is_missing_entry(value):
        return np.nan
    if not (isinstance(value, str) or is_number(value)):
        raise TypeError(
            "Every entry of X must be a number: the argument must be a string or a "
            f"number, got {type(value).__name__} {value!r} in {place}. Leave out what is "
            "no observation; times may be the index."
        )
    try:
        return float(cast("str | float", value))
    except OverflowError:
        raise ValueError(f"{place} is a number beyond the range of floats.") from None
    except ValueError:
        raise ValueError(
            f"{place} = {value!r}, which is no number. {_remedy_for_strings(X)}"
        ) from None


def _remedy_for_strings(X: Array) -> str:
    """Remedy for strings: beside columns of numbers they are mixed data."""
    are_strings = [
        {isinstance(value, str) for value in column if not is_missing_entry(value)}
        for column in X.T
    ]
    if {True, False} in are_strings:
        return 'pandas.to_numeric(column, errors="coerce") makes it NaN: missing.'
    if {False} in are_strings:
        return (
            "Other columns hold numbers. Leave out an id of sequences and pass it as "
            "groups; name inputs or subjects in HCRPTransitions(context_features=[...]); "
            "mixed data need skihmm.emissions.ProductEmission, with an emission for "
            "every group of columns."
        )
    return 'Symbols need emission="hcrp"; NaN or None marks what is missing.'


def _check_counts(X: Floats, largest: float, what: str, emission: BaseEmission) -> None:
    for bad, words in (
        (X < 0, "Negative values in data: {}; expected " + what),
        (np.floor(X) != X, "{} is not an integer; expected " + what),
        (largest < X, "{} is too large; expected " + what),
    ):
        bad &= ~np.isnan(X)
        for row, c in np.argwhere(bad):
            raise ValueError(
                words.format(_entry(X, row, c, emission)) + ". NaN marks what is missing."
            )


def _column_values(name: str, value: ArrayLike | None, n_columns: int) -> Floats:
    """One finite number per column, from a number or an array of them."""
    try:
        # NumPy would turn strings and truth values into numbers.
        if np.asarray(value).dtype.kind in "bUS":
            raise TypeError
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(
            f"{name}={value!r}; expected a number, or one per column, or None."
        ) from None
    if values.ndim > 1 or values.size not in (1, n_columns):
        raise ValueError(
            f"{name} has the shape {values.shape}, but X has {n_columns} columns; "
            "expected a number, or one per column."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name}={value!r}; expected finite numbers.")
    return np.broadcast_to(values.reshape(-1), n_columns).copy()


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


def _positive_values(name: str, value: ArrayLike | None, n_columns: int) -> Floats:
    values = _column_values(name, value, n_columns)
    if not (values > 0).all():
        raise ValueError(f"{name}={value!r}; expected numbers > 0.")
    return values


def _column_means(X: Floats) -> Floats:
    """Mean of every column, 0 without observations."""
    observed = ~np.isnan(X)
    n = np.maximum(observed.sum(axis=0), 1)
    # Divided before summation, because sums of numbers near the largest float overflow.
    return np.where(observed, X / n, 0.0).sum(axis=0)


def _column_variances(X: Floats) -> Floats:
    """Variance of every column; where it is zero, a value of the data's magnitude."""
    means = _column_means(X)
    variances = _column_means((X - means) ** 2)
    size = np.where(means != 0, np.maximum(np.abs(means), _LEAST_SIZE), 1.0)
    # The variance of a constant column is rounding error.
    is_constant = variances <= (1e-13 * size) ** 2
    return np.where(is_constant, (0.1 * size) ** 2, variances)


class _Conjugate(BaseEmission):
    """Base class of the conjugate emissions of numbers."""

    is_categorical = False
    takes_integers = False
    emits_integers = False
    _family: ClassVar[str]
    # Hyperparameters that are drawn if their parameter is None.
    _hyperparameters: tuple[str, ...] = ()
    _units: tuple[Floats, ...]
    # Name of the attribute of states that holds the family's expectations.
    _expected: ClassVar[str]

    @property
    def _drawn(self) -> set[str]:
        return {name for name in self._hyperparameters if getattr(self, name) is None}

    def _fixed(self) -> FixedNumbers:
        """Return what is never drawn, by the names that `conjugate_stats` has for it."""
        return {}

    def _prior(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        """Hyperparameters of the family, and their typical values."""
        return [getattr(self, name + "_") for name in self._hyperparameters], self._units

    def make_stats(self, codes: Array) -> ConjugateStats:
        is_drawn = [name in self._drawn for name in self._hyperparameters]
        return conjugate_stats(
            self._family,
            codes,
            *self._prior(),
            is_drawn,
            self.n_inputs,
            self.n_given,
            **self._fixed(),
        )

    @property
    def _n_values(self) -> int:
        """Columns that are modelled."""
        return len(getattr(self, self._hyperparameters[0] + "_"))

    def _describe(self, expected: Floats) -> dict[str, Floats]:
        """Attributes of the states, from the family's array of expectations."""
        return {self._expected: expected}

    def with_states(self, record: EmissionRecord, n_states: int) -> BaseEmission:
        if not self._hyperparameters:
            return self
        # Without data, because only the layout is needed.
        width = self._n_values + self.n_inputs
        stats = cast(ConjugateStats, self.make_stats(np.empty((0, width))))
        described = copy(self)
        expected = stats.expectations(record, n_states)
        for name, values in self._describe(expected).items():
            setattr(described, name, values)
        return described

    def predictive_cdf(self, stats: EmissionStats, slots: Labels, inputs: Array) -> Cdf:
        if self.n_known() or not self._hyperparameters:
            return super().predictive_cdf(stats, slots, inputs)
        # The start, in slot 1, has the last label and is no state.
        labels = np.full(int(slots.max()) + 2, -1, dtype=np.int32)
        labels[1] = len(slots)
        labels[slots] = np.arange(len(slots))
        record = stats.to_arrays(labels)
        prior = self._split(record["hyperparameters"])
        cdf = self._cdf(record["numbers"], prior, inputs)
        return lambda values: cdf(values[..., None, :])

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        """Function of :meth:`predictive_cdf`, of values with an axis for the states."""
        raise NotImplementedError

    def _split(self, values: Floats) -> dict[str, Floats]:
        """Hyperparameters by name, from the family's array of them."""
        n = len(self._hyperparameters)
        return dict(zip(self._hyperparameters, values.reshape(n, -1), strict=True))

    def hyperparameters(self, record: EmissionRecord) -> dict[str, float | Floats]:
        if not self._drawn:
            return {}
        every = self._split(record["hyperparameters"])
        return {
            name: every[name] for name in self._hyperparameters if name in self._drawn
        }

    def _check(self, X: Floats) -> None:
        """Raise ValueError if values are outside of the emission's range."""

    def encode_values(self, X: MatrixLike) -> Floats:
        check_is_fitted(self)
        X = _as_floats(X, self)
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
        stats = cast(ConjugateStats, self.make_stats(rows[:0]))
        stats.fill_inputs(rows, previous)
        return rows[n_before:, n_columns:]

    def numeric_columns(self) -> slice:
        return slice(-self.n_inputs or None)

    def decode(self, codes: Array) -> Array:
        if self.emits_integers and self.is_positive_only:
            # Of counts a heavy tail reaches beyond what fits accept, and integers hold.
            codes = np.minimum(codes, _LARGEST_COUNT)
        is_whole = self.emits_integers and not np.isnan(codes).any()
        return np.rint(codes).astype(np.int64) if is_whole else codes

    def is_missing(self, codes: Array) -> Flags:
        return np.asarray(np.isnan(codes).all(axis=1))


class _Columns(_Conjugate):
    """Base class of independent columns whose prior is in units of typical values."""

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        """Typical values and initial values of the hyperparameters of every column."""
        raise NotImplementedError

    def fit(self, X: MatrixLike, y: None = None) -> _Columns:
        X = _as_floats(X, self)
        units, initial = self._fit_scale(self._transform(X))
        self._units = tuple(units)
        for name, values in zip(self._hyperparameters, initial, strict=True):
            fixed = getattr(self, name)
            if fixed is not None:
                values = _positive_values(name, fixed, X.shape[1])
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


class _Gaussian(_Conjugate):
    """Base class of the Gaussian emissions: prior of a state's mean, and offsets."""

    default_init = "kmeans"
    _hyperparameters = ("mean", "strength", "scale")
    mean: ArrayLike | None
    strength: ArrayLike | None
    scale: ArrayLike | str | None
    resolution: ArrayLike | str | None
    dof_: float
    _warnings: list[str]
    # Column, first row, end and noise of stretches of one value.
    _dead: list[tuple[int, int, int, float]]
    # Whether rows precede one another, and whether a column that the others determine
    # leaves a state's covariance singular.
    _are_series = False
    _has_full_covariance = True

    def _check(self, X: Floats) -> None:
        for row, c in np.argwhere(np.abs(X) > _LARGEST_SIZE):
            raise ValueError(
                f"{_entry(X, row, c, self)} is too large; expected numbers up to "
                f"{_LARGEST_SIZE:g} in size. Scale the data (StandardScaler)."
            )

    def fit_with_noise(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int]
    ) -> BaseEmission:
        dtype = np.asarray(X).dtype
        precision = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
        X = _as_floats(X, self)
        self._check(X)
        n_rows, n = X.shape
        labels = self._column_labels(n)
        steps, deviations = np.zeros(n), np.zeros(n)
        dead: list[tuple[int, int, int, float]] = []
        wrong = wrong_values(X, self._are_series)
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
        if self.resolution is not None:
            is_constant = constant_columns(X)
            if isinstance(self.resolution, str) and self.resolution == "auto":
                steps = np.array([grid_step(column, precision) for column in X.T])
            else:
                steps = given_steps(self.resolution, n)
            steps[is_constant] = 0.0
            size = np.abs(X[:, is_constant])
            deviations[is_constant] = np.maximum(1.0, 1e-6 * np.nanmax(size, axis=0))
            warnings += describe_constant(labels, is_constant)
            repeats = describe_repeats(X, starts, steps)
            scales = np.sqrt(_column_variances(np.where(wrong, np.nan, X))).tolist()
            free = np.flatnonzero((steps == 0) & ~is_constant).tolist()
            for c in [] if repeats else free:
                dead += [(c, *rows, scales[c]) for rows in dead_stretches(X[:, c])]
            warnings += repeats + describe_dead(labels, dead)

        def take_noise() -> None:
            self.resolution_, self._deviations, self._dead = steps, deviations, dead

        def fit_noisy() -> Floats:
            take_noise()
            noise = self.dither(n_rows, 0, entropy)
            noisy = X if noise is None else X + noise
            self.fit_sequences(noisy, starts)
            return noisy

        noisy = fit_noisy()
        if self.resolution is not None and self._has_full_covariance:
            determined = determined_columns(self._rows_to_compare(noisy, starts))
            if determined.any():
                spread = np.sqrt(self._units[1][determined])
                deviations[determined] = NOISE_OF_DETERMINED * spread
                warnings += describe_determined(labels, determined)
                fit_noisy()
        take_noise()
        self._warnings = warnings
        return self

    def dither(self, n_rows: int, first: int, entropy: Sequence[int]) -> Floats | None:
        steps, deviations = self.resolution_, self._deviations
        if self._dead:
            deviations = np.tile(deviations, (n_rows, 1))
        for c, start, end, deviation in self._dead:
            deviations[max(start - first, 0) : max(end - first, 0), c] = deviation
        return noise_of_rows(steps, deviations, n_rows, first, entropy)

    def data_warnings(self) -> list[str]:
        return self._warnings

    def data_notes(self) -> list[str]:
        labels = self._column_labels(len(self.resolution_))
        return describe_rounding(labels, self.resolution_) + self._warnings

    def _rows_to_compare(self, X: Floats, starts: Integers) -> Floats:
        """Complete rows in which a column may be a function of the others."""
        is_usable = ~(np.isnan(X) | wrong_values(X, self._are_series)).any(axis=1)
        return X[is_usable]

    def _fit_units(self, X: MatrixLike) -> Floats:
        """Fit offset, mean and variance of every column; return the means."""
        X = _as_floats(X, self)
        self._check(X)
        sizes = np.nanmax(np.abs(X), axis=0, initial=0.0)
        for c in np.flatnonzero((sizes > 0) & (sizes < _LEAST_SIZE)).tolist():
            raise ValueError(
                f"No number of column {self._column_labels(X.shape[1])[c]!r} of X is "
                f"above {sizes[c]:g} in size, and its squares are zero; expected "
                f"{_LEAST_SIZE:g} or more. Scale the data (StandardScaler)."
            )
        wrong = wrong_values(X, self._are_series)
        if wrong.any():
            X = np.where(wrong, np.nan, X)
        means, variances = _column_means(X), _column_variances(X)
        far = np.abs(means) > _FAR_FROM_ZERO * np.sqrt(variances)
        self.offset_ = np.where(far, means, 0.0)
        self._units = means - self.offset_, variances
        # A fit of the recipe alone adds no noise.
        self.resolution_, self._deviations = np.zeros_like(means), np.zeros_like(means)
        self._dead, self._warnings = [], []
        return means

    def _fit_columns(self, X: MatrixLike) -> Floats:
        """Fit the units and the prior mean of every column; return the variances."""
        means = self._fit_units(X)
        self.mean_ = (
            means if self.mean is None else _column_values("mean", self.mean, len(means))
        )
        if (np.abs(self.mean_) > _LARGEST_SIZE).any():
            raise ValueError(
                f"mean={self.mean!r}; expected numbers up to {_LARGEST_SIZE:g} in size, "
                "as in X."
            )
        return self._units[1]

    def _typical_values(self) -> list[Floats]:
        means, variances = self._units
        return [means, np.ones_like(means), variances]

    def encode_values(self, X: MatrixLike) -> Floats:
        return super().encode_values(X) - self.offset_

    def decode(self, codes: Array) -> Array:
        return np.asarray(codes + self.offset_)

    def _check_dof(self, n: int) -> None:
        if self.dof_ <= n - 1:
            raise ValueError(
                f"dof={self.dof_}; expected more than n_features - 1 = {n - 1}."
            )

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
                f"scale has the shape {scale.shape}, but X has {n} columns; expected "
                f"({n}, {n})."
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

    def offsets(self, n_columns: int) -> Floats:
        return self.offset_

    def _split(self, values: Floats) -> dict[str, Floats]:
        found = super()._split(values)
        return {**found, "mean": found["mean"] + self.offset_}


class NormalInverseGamma(_Gaussian):
    """Gaussian observations, columns independent given the state.

    In every state and column ``variance ~ InverseGamma(shape, scale)`` and ``mean |
    variance ~ Normal(mean, variance / strength)``; both are integrated out, and the
    predictive distribution is Student's t.

    Single entries may be missing.

    Parameters
    ----------
    mean : float, array-like of shape (n_features,) or None, default=None
        Prior mean of a state's mean.  None: drawn from its posterior after every sweep,
        with the prior ``Normal(m, v)``, m and v the mean and the variance of the column.
    strength : float, array-like of shape (n_features,) or None, default=None
        Weight of the prior mean in observations.  None: drawn, with the prior
        ``Gamma(1/2, 1/2)``.
    shape : float, default=1.5
        Shape of the inverse gamma prior.  Above 1 the variance has an expectation.
    scale : float, array-like of shape (n_features,), str or None, default=None
        Scale of the inverse gamma prior, in squared units of the column; ``"0.1*var"`` is
        a tenth of the column's variance.  None: drawn, with the prior ``Gamma(1/2, 1/v)``
        truncated below ``v / 2e8``.
    resolution : "auto", float, array-like of shape (n_features,) or None, default="auto"
        Step to which a column was rounded, as for :class:`NormalInverseWishart`.

    Attributes
    ----------
    mean_, strength_, scale_ : ndarray of shape (n_features,)
        The prior; initial values of hyperparameters that are drawn.  The draws of a fit
        are in ``draws_.hyperparameters``.
    offset_ : ndarray of shape (n_features,)
        Offset subtracted from the data: the mean of a column that is far from zero in
        units of its standard deviation, otherwise 0.
    resolution_ : ndarray of shape (n_features,)
        Width of the uniform noise of every column, 0 without; after the fit of a
        :class:`~skihmm.HCRPHMM`.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has the posterior means of the
    states' means and variances under the selected draw: ``means_`` and ``covariances_``,
    both of shape (n_states, n_features).

    The prior of the states' means and variances is inferred too.  A fixed prior largely
    determines the number of states: a prior for narrow states splits wide ones.

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
    ) -> None:
        self.mean = mean
        self.strength = strength
        self.shape = shape
        self.scale = scale
        self.resolution = resolution

    def fit(self, X: MatrixLike, y: None = None) -> NormalInverseGamma:
        variances = self._fit_columns(X)
        check_positive("shape", self.shape)
        n = len(variances)
        strength = START_STRENGTH if self.strength is None else self.strength
        self.strength_ = _positive_values("strength", strength, n)
        share = SHARE_WITHIN if self.scale is None else _relative_scale(self.scale)
        self.scale_ = (
            _positive_values("scale", self.scale, n)
            if share is None
            else share * variances
        )
        return self

    def _fixed(self) -> FixedNumbers:
        return {"shape": check_positive("shape", self.shape)}

    def _prior(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        prior = [self.mean_ - self.offset_, self.strength_, self.scale_]
        return prior, self._typical_values()

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        columns = numbers.reshape(-1, len(self.mean_), 7)
        location, power, inverse = np.moveaxis(columns[..., 3:6], -1, 0)
        dof = 2 * power - 1
        return lambda y: stdtr(dof, (y - location) * np.sqrt(inverse * dof))

    def _describe(self, expected: Floats) -> dict[str, Floats]:
        means, variances = np.split(expected, 2, axis=1)
        return {"means_": means + self.offset_, "covariances_": variances}


class NormalInverseWishart(_Gaussian):
    """Gaussian observations with a full covariance matrix in every state.

    ``covariance ~ InverseWishart(scale, dof)`` and ``mean | covariance ~ Normal(mean,
    covariance / strength)`` are integrated out, and the predictive distribution is a
    multivariate Student's t.

    A fit draws the missing entries of a partial row after every sweep, from their
    distribution given all that is observed in it.  Otherwise a step with any missing
    entry is missing as a whole, because a partial row is not conjugate.

    Parameters
    ----------
    mean : float, array-like of shape (n_features,) or None, default=None
        Prior mean of a state's mean.  None: drawn from its posterior after every sweep,
        with the prior ``Normal(m, diag(v))``, m and v the means and the variances of the
        columns.
    strength : float or None, default=None
        Weight of the prior mean in observations.  None: drawn, with the prior
        ``Gamma(1/2, 1/2)``, in more than two columns ``Gamma(1/2, n_features)``.
    dof : float or None, default=None
        Degrees of freedom, more than ``n_features - 1``; None: ``n_features + 2``, so
        that the covariance of a state has an expectation, which is `scale`.
    scale : array-like of shape (n_features, n_features), str or None, default=None
        Positive definite; ``"0.1*var"`` is diagonal, a tenth of the columns' variances.
        None: diagonal, and drawn, with the prior ``Gamma(1/2, 1/(2 v))`` on every entry,
        truncated below ``v / 1e8``.
    resolution : "auto", float, array-like of shape (n_features,) or None, default="auto"
        Step to which a column was rounded, in its units, 0 if it was not.  A fit adds
        noise, uniform and of this width, to its own copy of the values.  "auto": found in
        columns on a grid, whose gaps are multiples of the smallest one and whose values
        repeat.  None: values are taken as they are, also those of constant columns, of
        dead channels and of columns that others determine.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    strength_ : float
    scale_ : ndarray of shape (n_features, n_features)
        The prior; initial values of hyperparameters that are drawn.  The draws of a fit
        are in ``draws_.hyperparameters``.
    dof_ : float
        The degrees of freedom used.
    offset_ : ndarray of shape (n_features,)
        Offset subtracted from the data: the mean of a column that is far from zero in
        units of its standard deviation, otherwise 0.
    resolution_ : ndarray of shape (n_features,)
        Width of the uniform noise of every column, 0 without; after the fit of a
        :class:`~skihmm.HCRPHMM`.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has the posterior means of the
    states' parameters under the selected draw: ``means_`` of shape (n_states, n_features)
    and ``covariances_`` of shape (n_states, n_features, n_features).

    The prior of the states' means and variances is inferred too.  A fixed prior largely
    determines the number of states: a prior for narrow states splits wide ones.

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
    ) -> None:
        self.mean = mean
        self.strength = strength
        self.dof = dof
        self.scale = scale
        self.resolution = resolution

    def fit(self, X: MatrixLike, y: None = None) -> NormalInverseWishart:
        variances = self._fit_columns(X)
        n = len(variances)
        self.strength_ = (
            START_STRENGTH
            if self.strength is None
            else check_positive("strength", self.strength)
        )
        self.dof_ = n + 2.0 if self.dof is None else check_positive("dof", self.dof)
        self._check_dof(n)
        share = SHARE_WITHIN if self.scale is None else _relative_scale(self.scale)
        self.scale_ = (
            self._given_scale(n) if share is None else np.diag(share * variances)
        )
        return self

    def is_missing(self, codes: Array) -> Flags:
        return np.asarray(np.isnan(codes).any(axis=1))

    def _fixed(self) -> FixedNumbers:
        return {"dof": self.dof_}

    def _prior(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        triangle = self.scale_[np.tri(len(self.scale_), dtype=bool)]
        prior = [self.mean_ - self.offset_, np.array(self.strength_), triangle]
        return prior, self._typical_values()

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        n = len(self.mean_)
        location, triangle, rest = np.split(numbers[:, 1:], [n, -4], axis=1)
        # The posterior scale is U D U^T; 1 / D is in the place of the unit diagonal.
        U = np.zeros((len(numbers), n, n))
        U[:, *np.tril_indices(n)] = triangle
        diagonal = np.einsum("kii->ki", U)
        variances = ((np.tril(U, -1) + np.eye(n)) ** 2 / diagonal[:, None]).sum(axis=2)
        dof = 2 * rest[:, :1] - n
        root = np.sqrt(rest[:, 1:2] * dof / variances)
        return lambda y: stdtr(dof, (y - location) * root)

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


class GammaPoisson(_Columns):
    """Counts: Poisson observations, columns independent given the state.

    In every state and column the rate is ``Gamma(shape, rate)`` and integrated out, and
    the predictive distribution is negative binomial.

    Single entries may be missing.

    Parameters
    ----------
    shape : float, array-like of shape (n_features,) or None, default=None
        Shape of the gamma prior.  None: drawn from its posterior after every sweep, with
        the prior ``Gamma(1/2, 1/2)``.
    rate : float, array-like of shape (n_features,) or None, default=None
        Rate of the gamma prior.  None: drawn, with the prior ``Gamma(1/2, m/2)``, m the
        mean of the column.

    Attributes
    ----------
    shape_, rate_ : ndarray of shape (n_features,)
        The prior; initial values of hyperparameters that are drawn, with a prior mean
        ``shape / rate`` equal to that of the column.  The draws of a fit are in
        ``draws_.hyperparameters``.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has ``rates_`` of shape (n_states,
    n_features), the posterior means of the states' rates under the selected draw.

    References
    ----------
    A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, Section 2.6.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import GammaPoisson
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.repeat([[2.0], [30.0], [2.0], [30.0]], 25, axis=0))
    >>> hmm = HCRPHMM(emission=GammaPoisson(), n_burnin=100, n_draws=20, random_state=0)
    >>> int(hmm.fit(X).draws_.n_states.min())
    2
    """

    takes_integers = True
    is_positive_only = True
    emits_integers = True
    _family = "gamma_poisson"
    _expected = "rates_"
    _hyperparameters = ("shape", "rate")

    def __init__(
        self, shape: ArrayLike | None = None, rate: ArrayLike | None = None
    ) -> None:
        self.shape = shape
        self.rate = rate

    def _check(self, X: Floats) -> None:
        _check_counts(X, _LARGEST_COUNT, "counts from 0 to 1e12", self)

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        means = _column_means(X)
        means = np.where(means > 0, means, 1.0)
        shape = 1.0 if self.shape is None else self.shape
        shapes = _positive_values("shape", shape, len(means))
        units = np.array([np.ones_like(means), 1 / means])
        return units, np.array([shapes, shapes / means])

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        rate, after = prior["rate"] + numbers[:, ::5], numbers[:, 2::5]
        return lambda y: count_cdf(y, after, rate / (1 + rate))


class BetaBernoulli(_Columns):
    """Binary observations, columns independent given the state.

    In every state and column the probability of 1 is ``Beta(a, b)`` and integrated out.

    Single entries may be missing.

    Parameters
    ----------
    a, b : float, array-like of shape (n_features,) or None, default=None
        Pseudo-counts of 1 and of 0 in the beta prior.  None: drawn from its posterior
        after every sweep, with the prior ``Gamma(1/2, 1/2)``.
    binarize : float or None, default=None
        Threshold above which numbers are ones; None: X has to be binary.

    Attributes
    ----------
    a_, b_ : ndarray of shape (n_features,)
        The prior; 1 at the start of a chain for hyperparameters that are drawn.  The
        draws of a fit are in ``draws_.hyperparameters``.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has ``probabilities_`` of shape
    (n_states, n_features), the posterior means of the states' probabilities of 1 under
    the selected draw.

    References
    ----------
    A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, Section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import BetaBernoulli
    >>> X = np.repeat([[0, 1, 1], [1, 0, 0], [0, 1, 1]], 30, axis=0)
    >>> hmm = HCRPHMM(emission=BetaBernoulli(), n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    emits_integers = True
    _family = "beta_bernoulli"
    _expected = "probabilities_"
    _hyperparameters = ("a", "b")

    test_params = ({"binarize": 1.0},)

    def __init__(
        self,
        a: ArrayLike | None = None,
        b: ArrayLike | None = None,
        binarize: float | None = None,
    ) -> None:
        self.a = a
        self.b = b
        self.binarize = binarize

    @property
    def is_positive_only(self) -> bool:  # type: ignore[override]
        """Whether negative numbers are refused."""
        return self.binarize is None

    def _check(self, X: Floats) -> None:
        if self.binarize is None:
            _check_counts(X, 1.0, "0 or 1", self)

    def _transform(self, X: Floats) -> Floats:
        if self.binarize is None:
            return X
        threshold = check_finite("binarize", self.binarize)
        return np.where(np.isnan(X), np.nan, threshold < X)

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        units = np.ones((2, X.shape[1]))
        return units, units

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        zero = np.exp(numbers[:, 3::4])
        return lambda y: np.where(y < 0, 0.0, np.where(y < 1, zero, 1.0))
