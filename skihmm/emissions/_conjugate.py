"""Emissions of numbers: Gaussian, Poisson and Bernoulli, with conjugate priors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skihmm._validation import (
    as_matrix,
    check_finite,
    check_positive,
    is_missing_entry,
    is_number,
    shown,
)
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._conjugate_stats import (
    ConjugateStats,
    beta_bernoulli,
    gamma_poisson,
    normal_inverse_gamma,
    normal_inverse_wishart,
)

# Of the variance of a column, the share that is expected inside a state.
SHARE_WITHIN = 0.1

# The log joint probability sums terms of the size of y log(y): at counts of 1e12 each is
# rounded by some thousandths.
_LARGEST_COUNT = 1e12


# Gaussian observations are squared, and added up.
_LARGEST_SIZE, _LEAST_SIZE = 1e100, 1e-100


def _as_floats(X: Any, emission: BaseEmission) -> NDArray[np.float64]:
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
    # (Sums over rows depend on the order in memory, to the last bits.)
    X = X.astype(np.float64, order="C")
    for row, c in np.argwhere(np.isinf(X)):
        raise ValueError(
            f"X contains infinity: {_entry(X, row, c, emission)}; expected finite "
            "numbers or NaN (missing)."
        )
    return X


def _entry(X: NDArray[Any], row: int, c: int, emission: BaseEmission) -> str:
    """An entry of X with its row and the name of its column, for errors."""
    label = emission._column_labels(X.shape[1])[c]
    return f"X[{row}, {label!r}] = {shown(X[row, c])}"


def _numbers(column: list[Any], label: str | int, X: NDArray[Any]) -> list[float]:
    """A column of Python objects as floats."""
    return [_number(value, f"X[{row}, {label!r}]", X) for row, value in enumerate(column)]


def _number(value: Any, place: str, X: NDArray[Any]) -> float:
    if is_missing_entry(value):
        return np.nan
    if not (isinstance(value, str) or is_number(value)):
        raise TypeError(
            "Every entry of X must be a number: the argument must be a string or a "
            f"number, got {type(value).__name__} {value!r} in {place}."
        )
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{place} is a number beyond the range of floats.") from None
    except ValueError:
        raise ValueError(
            f"{place} = {value!r}, which is no number. {_remedy_for_strings(X)}"
        ) from None


def _remedy_for_strings(X: NDArray[Any]) -> str:
    """What to do about strings: columns without any besides them are mixed data."""
    are_strings = [[isinstance(value, str) for value in column] for column in X.T]
    if not np.any(are_strings, axis=1).all():
        return (
            "Other columns hold numbers: mixed data need "
            "skihmm.emissions.ProductEmission, with an emission for every group of "
            "columns."
        )
    return 'Symbols need emission="hcrp"; NaN or None marks what is missing.'


def _check_counts(
    X: NDArray[np.float64], largest: float, what: str, emission: BaseEmission
) -> None:
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


def _column_values(name: str, value: Any, n_columns: int) -> NDArray[np.float64]:
    """One finite number per column, from a number or an array of them."""
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
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


def _positive_values(name: str, value: Any, n_columns: int) -> NDArray[np.float64]:
    values = _column_values(name, value, n_columns)
    if not (values > 0).all():
        raise ValueError(f"{name}={value!r}; expected numbers > 0.")
    return values


def _column_means(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of every column, 0 where nothing is observed."""
    observed = ~np.isnan(X)
    n = np.maximum(observed.sum(axis=0), 1)
    # (Divided first: sums of numbers near the largest float overflow.)
    return np.where(observed, X / n, 0.0).sum(axis=0)


def _column_variances(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variance of every column; something of the data's size where it is zero."""
    means = _column_means(X)
    variances = _column_means((X - means) ** 2)
    size = np.where(means != 0, np.maximum(np.abs(means), _LEAST_SIZE), 1.0)
    # What rounding makes of a constant column is no variance.
    is_constant = variances <= (1e-13 * size) ** 2
    return np.where(is_constant, (0.1 * size) ** 2, variances)


class _Conjugate(BaseEmission):
    """What emissions of numbers share."""

    is_categorical = False
    takes_integers = False
    _emits_integers = False

    def _check(self, X: NDArray[np.float64]) -> None:
        """Raise ValueError if values are outside of the emission's range."""

    def encode(self, X: Any) -> NDArray[np.float64]:
        """The data as floats.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples, n_features), float64
            NaN is missing.
        """
        check_is_fitted(self)
        X = _as_floats(X, self)
        self._check(X)
        return X

    def decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The data, rounded to integers where the emission's are.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        is_whole = self._emits_integers and not np.isnan(codes).any()
        return np.rint(codes).astype(np.int64) if is_whole else codes

    def is_missing(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Steps without any observed column.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        missing : ndarray of shape (n_samples,), bool
        """
        return np.asarray(np.isnan(codes).all(axis=1))


class _Gaussian(_Conjugate):
    """What the Gaussian emissions share: the prior of a state's mean."""

    mean: ArrayLike | None
    strength: float

    def _check(self, X: NDArray[np.float64]) -> None:
        for row, c in np.argwhere(np.abs(X) > _LARGEST_SIZE):
            raise ValueError(
                f"{_entry(X, row, c, self)} is too large; expected numbers up to "
                f"{_LARGEST_SIZE:g} in size. Scale the data (StandardScaler)."
            )

    def _fit_mean(self, X: Any) -> NDArray[np.float64]:
        X = _as_floats(X, self)
        self._check(X)
        check_positive("strength", self.strength)
        self.mean_ = (
            _column_means(X)
            if self.mean is None
            else _column_values("mean", self.mean, X.shape[1])
        )
        return X


class NormalInverseGamma(_Gaussian):
    """Gaussian observations, columns independent given the state.

    In every state and column ``variance ~ InverseGamma(shape, scale)`` and ``mean |
    variance ~ Normal(mean, variance / strength)``; both are integrated out, which leaves
    Student's t for the next observation.

    Single entries may be missing.

    Parameters
    ----------
    mean : float, array-like of shape (n_features,) or None, default=None
        Prior mean of a state's mean; None: the mean of the column.
    strength : float, default=0.1
        How many observations the prior mean is worth.
    shape : float, default=2.0
        Of the inverse gamma prior.  Above 1 the variance has an expectation.
    scale : float, array-like of shape (n_features,) or None, default=None
        Of the inverse gamma prior, in squared units of the column.  None: so that a tenth
        of the column's variance is expected inside a state if `shape` is 2; with the
        default `strength` the means of states then vary as the column does.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        The prior used.

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

    def __init__(
        self,
        mean: ArrayLike | None = None,
        strength: float = 0.1,
        shape: float = 2.0,
        scale: ArrayLike | None = None,
    ) -> None:
        self.mean = mean
        self.strength = strength
        self.shape = shape
        self.scale = scale

    def fit(self, X: Any, y: None = None) -> NormalInverseGamma:
        """Find the prior from the scale of the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers; NaN, None or masked: missing.
        y : None
            Ignored.

        Returns
        -------
        self : NormalInverseGamma
        """
        X = self._fit_mean(X)
        check_positive("shape", self.shape)
        n = X.shape[1]
        self.scale_ = (
            SHARE_WITHIN * _column_variances(X)
            if self.scale is None
            else _positive_values("scale", self.scale, n)
        )
        return self

    def make_stats(self, codes: NDArray[Any]) -> ConjugateStats:
        """Build empty statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        stats : ConjugateStats
        """
        return normal_inverse_gamma(
            codes,
            self.mean_,
            check_positive("strength", self.strength),
            check_positive("shape", self.shape),
            self.scale_,
        )


class NormalInverseWishart(_Gaussian):
    """Gaussian observations with a full covariance matrix in every state.

    ``covariance ~ InverseWishart(scale, dof)`` and ``mean | covariance ~ Normal(mean,
    covariance / strength)`` are integrated out, which leaves a multivariate Student's t.

    A step of which any entry is missing is missing as a whole: what is left of it would
    not be conjugate.

    Parameters
    ----------
    mean : float, array-like of shape (n_features,) or None, default=None
        Prior mean of a state's mean; None: the mean of the columns.
    strength : float, default=0.1
        How many observations the prior mean is worth.
    dof : float or None, default=None
        Degrees of freedom, more than ``n_features - 1``; None: ``n_features + 2``.
    scale : array-like of shape (n_features, n_features) or None, default=None
        Positive definite.  None: diagonal, so that a tenth of each column's variance is
        expected inside a state with the default `dof`.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    scale_ : ndarray of shape (n_features, n_features)
    dof_ : float
        The prior used.

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

    def __init__(
        self,
        mean: ArrayLike | None = None,
        strength: float = 0.1,
        dof: float | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        self.mean = mean
        self.strength = strength
        self.dof = dof
        self.scale = scale

    def fit(self, X: Any, y: None = None) -> NormalInverseWishart:
        """Find the prior from the scale of the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers; NaN, None or masked: missing.
        y : None
            Ignored.

        Returns
        -------
        self : NormalInverseWishart
        """
        X = self._fit_mean(X)
        n = X.shape[1]
        self.dof_ = n + 2.0 if self.dof is None else check_positive("dof", self.dof)
        if self.dof_ <= n - 1:
            raise ValueError(
                f"dof={self.dof}; expected more than n_features - 1 = {n - 1}."
            )
        self.scale_ = (
            np.diag(SHARE_WITHIN * _column_variances(X))
            if self.scale is None
            else self._given_scale(n)
        )
        return self

    def _given_scale(self, n: int) -> NDArray[np.float64]:
        try:
            scale = np.asarray(self.scale, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"scale={self.scale!r}; expected a matrix of numbers, or None."
            ) from None
        if scale.shape != (n, n):
            raise ValueError(
                f"scale has the shape {scale.shape}, but X has {n} columns; expected "
                f"({n}, {n})."
            )
        try:
            # (False for NaN too.)
            if not np.allclose(scale, scale.T, rtol=1e-10, atol=0):
                raise np.linalg.LinAlgError
            np.linalg.cholesky(scale)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"scale={self.scale!r}; expected a symmetric, positive definite matrix."
            ) from None
        return scale

    def is_missing(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Steps of which any column is missing.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        missing : ndarray of shape (n_samples,), bool
        """
        return np.asarray(np.isnan(codes).any(axis=1))

    def make_stats(self, codes: NDArray[Any]) -> ConjugateStats:
        """Build empty statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        stats : ConjugateStats
        """
        return normal_inverse_wishart(
            codes,
            self.mean_,
            check_positive("strength", self.strength),
            self.dof_,
            self.scale_,
        )


class GammaPoisson(_Conjugate):
    """Counts: Poisson observations, columns independent given the state.

    In every state and column the rate is ``Gamma(shape, rate)`` and integrated out, which
    leaves a negative binomial distribution for the next count.

    Single entries may be missing.

    Parameters
    ----------
    shape : float or array-like of shape (n_features,), default=1.0
        Of the gamma prior.
    rate : float, array-like of shape (n_features,) or None, default=None
        Of the gamma prior; None: so that the prior mean, ``shape / rate``, is that of the
        column.

    Attributes
    ----------
    shape_, rate_ : ndarray of shape (n_features,)
        The prior used.

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
    _emits_integers = True

    def __init__(self, shape: ArrayLike = 1.0, rate: ArrayLike | None = None) -> None:
        self.shape = shape
        self.rate = rate

    def _check(self, X: NDArray[np.float64]) -> None:
        _check_counts(X, _LARGEST_COUNT, "counts from 0 to 1e12", self)

    def fit(self, X: Any, y: None = None) -> GammaPoisson:
        """Find the prior from the scale of the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Non-negative integers; NaN, None or masked: missing.
        y : None
            Ignored.

        Returns
        -------
        self : GammaPoisson
        """
        X = _as_floats(X, self)
        n = X.shape[1]
        self.shape_ = _positive_values("shape", self.shape, n)
        if self.rate is None:
            means = _column_means(X)
            self.rate_ = self.shape_ / np.where(means > 0, means, 1.0)
        else:
            self.rate_ = _positive_values("rate", self.rate, n)
        self._check(X)
        return self

    def make_stats(self, codes: NDArray[Any]) -> ConjugateStats:
        """Build empty statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        stats : ConjugateStats
        """
        return gamma_poisson(codes, self.shape_, self.rate_)


class BetaBernoulli(_Conjugate):
    """Binary observations, columns independent given the state.

    In every state and column the probability of 1 is ``Beta(a, b)`` and integrated out.

    Single entries may be missing.

    Parameters
    ----------
    a, b : float, default=1.0
        Of the beta prior: pseudo-counts of 1 and of 0.
    binarize : float or None, default=None
        Numbers above this are ones, others zeros; None: X has to be binary.

    Attributes
    ----------
    a_, b_ : float
        The prior used.

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

    _emits_integers = True

    def __init__(
        self, a: float = 1.0, b: float = 1.0, binarize: float | None = None
    ) -> None:
        self.a = a
        self.b = b
        self.binarize = binarize

    @property
    def is_positive_only(self) -> bool:
        """Whether negative numbers are refused."""
        return self.binarize is None

    def _check(self, X: NDArray[np.float64]) -> None:
        if self.binarize is None:
            _check_counts(X, 1.0, "0 or 1", self)

    def encode(self, X: Any) -> NDArray[np.float64]:
        """The data as floats 0 and 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples, n_features), float64
            NaN is missing.
        """
        X = super().encode(X)
        if self.binarize is None:
            return X
        return np.where(np.isnan(X), np.nan, self.binarize < X)

    def fit(self, X: Any, y: None = None) -> BetaBernoulli:
        """Check the data; there is nothing to learn from them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            0 and 1, or booleans; NaN, None or masked: missing.
        y : None
            Ignored.

        Returns
        -------
        self : BetaBernoulli
        """
        self.a_ = check_positive("a", self.a)
        self.b_ = check_positive("b", self.b)
        if self.binarize is not None:
            check_finite("binarize", self.binarize)
        self._check(_as_floats(X, self))
        return self

    def make_stats(self, codes: NDArray[Any]) -> ConjugateStats:
        """Build empty statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        stats : ConjugateStats
        """
        return beta_bernoulli(codes, self.a_, self.b_)
