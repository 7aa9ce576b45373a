"""Gamma and von Mises emissions: one dispersion for all states."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ive
from scipy.stats import vonmises

from skihmm._data.validation import LARGEST_SIZE, LEAST_SIZE, check_positive
from skihmm._records import FixedNumbers
from skihmm._typing import Array, Cdf, Floats
from skihmm.emissions._columns import (
    column_labels,
    entry,
    means_and_dispersions,
)
from skihmm.emissions._family_emission import SHARE_WITHIN, IndependentColumns
from skihmm.emissions._spec import ColumnSpec

# Log probabilities of gamma distributions have terms of the size of 1 / dispersion that
# nearly cancel.  The same as in _dispersed_laws.hpp.
_LEAST_DISPERSION = 1e-10


class GammaGamma(IndependentColumns):
    """Positive numbers: gamma distributions, columns independent given the state.

    In every state the numbers of a column have a mean ``mu`` and the variance
    ``dispersion * mu**2``, with one dispersion for all states.  ``1 / mu`` is
    ``Gamma(shape, scale)`` and integrated out, and the predictive distribution is a beta
    prime distribution.

    Single entries may be missing.

    Parameters
    ----------
    shape : float, array-like of shape (n_features,) or None, default=None
        Shape of the prior of ``1 / mu``.  None: drawn after every sweep, with the prior
        ``Gamma(1/2, 1/2)``.
    scale : float, array-like of shape (n_features,) or None, default=None
        Rate of the prior of ``1 / mu``, in units of the column.  None: drawn, with the
        prior ``Gamma(1/2, 1/(2 m))``, m the mean of the column.
    dispersion : float, array-like of shape (n_features,) or None, default=None
        Dispersion of a column, the same in all states: the inverse of the shape of its
        gamma distributions, at least 1e-10.  None: drawn, with the prior
        ``Gamma(1/2, 1/(2 c))`` between ``c / 1e8`` (1e-10 at least) and ``1e8 c``.  Here
        c is the variance of the column divided by its squared mean, at least 1e-9, or
        zero for a constant column.
    least : float or None, default=None
        Smaller numbers, zeros too, are replaced by it: the limit of detection.  None: all
        numbers have to be positive.

    Attributes
    ----------
    shape_, scale_, dispersion_ : ndarray of shape (n_features,)
        The prior, with initial values of drawn hyperparameters.  The draws of a fit are in
        ``draws_.hyperparameters``.

    See Also
    --------
    NormalInverseGamma : Numbers of both signs.
    GammaPoisson : Counts.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has ``means_`` of shape (n_states,
    n_features), the posterior means of the states' means under the selected draw.

    References
    ----------
    A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, Section 2.6.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> rng = np.random.default_rng(0)
    >>> means = np.repeat([[1.0], [20.0], [1.0], [20.0]], 50, axis=0)
    >>> X = means * rng.gamma(4.0, 0.25, size=means.shape)
    >>> hmm = HCRPHMM(emission="gamma", n_burnin=200, random_state=0).fit(X)
    >>> hmm.n_states_
    2
    """

    is_positive_only = True
    _hyperparameters = ("shape", "scale", "dispersion")
    _family = "gamma"
    _expected = "means_", "mean"

    dispersion_: Floats

    test_params = ({"least": 0.1},)

    def __init__(
        self,
        shape: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        dispersion: ArrayLike | None = None,
        least: float | None = None,
    ) -> None:
        self.shape = shape
        self.scale = scale
        self.dispersion = dispersion
        self.least = least

    def _transform(self, X: Floats) -> Floats:
        return X if self.least is None else np.maximum(X, check_positive("least", self.least))

    def _check(self, X: Floats) -> None:
        if self.least is not None and self.least > LARGEST_SIZE:
            raise ValueError(f"least={self.least!r}; expected a number up to 1e100.")
        too_small = (X == 0, "{} is zero"), (X < LEAST_SIZE, "{} is less than 1e-100")
        for bad, words in (
            (X < 0, "Negative values in data: {}"),
            *(too_small if self.least is None else ()),
            (LARGEST_SIZE < X, "{} is more than 1e100"),
        ):
            for row, c in np.argwhere(bad):
                raise ValueError(
                    words.format(entry(X, row, c, self)) + "; expected numbers > 0. NaN "
                    "marks what is missing; `least` is a limit of detection. Numbers of both signs "
                    'need another emission, such as "gaussian".'
                )

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        means, dispersions = means_and_dispersions(X)
        units = np.array([np.ones_like(means), means, dispersions])
        # With the shape 2 the prior mean of the states' means is the column's mean.
        return units, units * [[2.0], [1.0], [SHARE_WITHIN]]

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        return np.exp(-p[:, ::2]) / prior["dispersion"]

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        c, rate = 1 / prior["dispersion"], numbers[:, 4::6]
        a = prior["shape"] + c * numbers[:, ::6]
        return lambda y: betainc(c, a, 1 / (1 + rate / np.maximum(y, 1e-200)))

    def _check_prior(self) -> None:
        if self.dispersion is not None:
            if (self.dispersion_ < _LEAST_DISPERSION).any():
                raise ValueError(
                    f"dispersion={self.dispersion!r}; expected numbers of at least "
                    f"{_LEAST_DISPERSION:g}: for less, digits are lost. "
                    "NormalInverseGamma has no such limit."
                )
            return
        _, means, dispersions = self._units
        least = _LEAST_DISPERSION / SHARE_WITHIN
        for c in np.flatnonzero(dispersions < least).tolist():
            label = column_labels(self, len(means))[c]
            raise ValueError(
                f"The standard deviation of column {label!r} of X is "
                f"{np.sqrt(dispersions[c]):.2g} times its mean {means[c]:.6g}; expected "
                f"{np.sqrt(least):.2g} or more: for less, digits are lost. Subtract "
                "what all rows have in common, or use NormalInverseGamma."
            )


class VonMises(IndependentColumns):
    """Angles, times of the day: von Mises columns, independent given the state.

    In every state a column has a mean direction, uniform on the circle and integrated
    out.  The concentration ``1 / dispersion`` is common to all states.

    Single entries may be missing.

    Parameters
    ----------
    period : float, default=2*pi
        Period of the data: 360 for degrees, 24 for hours of the day.
    dispersion : float, array-like of shape (n_features,) or None, default=None
        Dispersion of the angles of a column around the mean direction of their state, in
        squared radians.  A small dispersion is a variance.  None: drawn after every sweep,
        with the prior ``Gamma(1/2, 1/2)`` between 1e-8 and 1e8.

    Attributes
    ----------
    dispersion_ : ndarray of shape (n_features,)
        The dispersion; its initial value if it is drawn.  The draws of a fit are in
        ``draws_.hyperparameters``.

    See Also
    --------
    NormalInverseGamma : Numbers without a period.
    ProductEmission : Angles with columns of other kinds.

    Notes
    -----
    Data are between ``-period`` and `period`, predictions between ``-period / 2`` and
    ``period / 2``.  Expectations of angles are mean directions: the directions of the
    means of their points on the circle.

    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has ``directions_`` of shape
    (n_states, n_features), the posterior mean directions of the states under the selected
    draw, in units of the data.

    References
    ----------
    K. V. Mardia and P. E. Jupp, "Directional Statistics", 2000, Section 10.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.vonmises(np.repeat([[3.0], [0.5], [3.0]], 50, axis=0), 8.0)
    >>> hmm = HCRPHMM(emission="von_mises", n_burnin=200, random_state=0).fit(X)
    >>> hmm.n_states_
    2
    """

    _hyperparameters = ("dispersion",)
    _family = "von_mises"
    _expected = "directions_", "direction"

    test_params = ({"period": 1000.0},)

    def __init__(self, period: float = 2 * np.pi, dispersion: ArrayLike | None = None) -> None:
        self.period = period
        self.dispersion = dispersion

    def _fixed(self) -> FixedNumbers:
        return {"period": check_positive("period", self.period)}

    def columns(self, n_columns: int) -> ColumnSpec:
        periods = np.full(n_columns, check_positive("period", self.period))
        return super().columns(n_columns)._replace(periods=periods)

    def _check(self, X: Floats) -> None:
        period = check_positive("period", self.period)
        for row, c in np.argwhere(np.abs(X) > period):
            raise ValueError(
                f"{entry(X, row, c, self)}, but period={period:.4g}; expected "
                "numbers between -period and period. Set the period of the data, 360 for "
                "degrees, 24 for hours, or wrap them by numpy.remainder(X, period)."
            )

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        units = np.ones((1, X.shape[1]))
        return units, SHARE_WITHIN * units

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        return np.arctan2(p[:, 1::2], p[:, ::2]) * (self.period / (2 * np.pi))

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        x, y = numbers[:, 1::4], numbers[:, 2::4]
        kappa = 1 / prior["dispersion"]
        known = kappa * np.hypot(x, y)
        # Fourier coefficients of an angle around its mean, times the mean's coefficients; if both
        # are concentrated, the sum is von Mises too, to 1e-5.
        least = np.minimum(kappa, known)
        p = np.arange(1.0, 20 + 9 * np.sqrt(np.minimum(least.max(), 400)))
        lengths = 1 / (np.pi * p)
        for k in (kappa[:, None], np.minimum(known, 1e8)[..., None]):
            lengths = lengths * ive(p, k) / ive(0, k)

        def cdf(values: Floats) -> Floats:
            angles = 2 * np.pi / self.period * values - np.arctan2(y, x)
            waves = (lengths * np.sin(p * angles[..., None])).sum(axis=-1)
            sharp = vonmises.cdf(angles, kappa * known / (kappa + known)) - 0.5
            return np.where(least > 400, sharp, angles / (2 * np.pi) + waves)

        return cdf
