"""Counts and binary observations, columns independent given the state."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, ndtr

from skihmm._data.scales import column_means
from skihmm._data.validation import check_finite
from skihmm._typing import Array, Cdf, Floats
from skihmm.emissions._columns import (
    LARGEST_COUNT,
    check_counts,
    means_and_dispersions,
    positive_values,
)
from skihmm.emissions._family_emission import (
    NODE_WEIGHTS,
    NODES,
    SHARE_WITHIN,
    IndependentColumns,
)


def count_cdf(y: Floats, r: Floats, p: Floats) -> Floats:
    """P(at most y failures before r successes), each of probability p."""
    return np.where(y < 0, 0.0, betainc(r, np.floor(np.maximum(y, 0.0)) + 1.0, p))


class _Counts(IndependentColumns):
    """Base class of counts without an upper limit."""

    takes_integers = True
    is_positive_only = True
    emits_integers = True

    def _check(self, X: Floats) -> None:
        check_counts(X, LARGEST_COUNT, "counts from 0 to 1e12", self)


class GammaPoisson(_Counts):
    """Counts: Poisson observations, columns independent given the state.

    In every state and column the rate is ``Gamma(shape, rate)`` and integrated out, and
    the predictive distribution is negative binomial.

    Single entries may be missing.

    Parameters
    ----------
    shape : float, array-like of shape (n_features,) or None, default=None
        Shape of the gamma prior.  None: drawn after every sweep, with the prior
        ``Gamma(1/2, 1/2)``.
    rate : float, array-like of shape (n_features,) or None, default=None
        Rate of the gamma prior.  None: drawn, with the prior ``Gamma(1/2, m/2)``, m the
        mean of the column.

    Attributes
    ----------
    shape_, rate_ : ndarray of shape (n_features,)
        The prior, or initial values of drawn hyperparameters, whose prior mean
        ``shape / rate`` equals the mean of the column.  The draws of a fit are in
        ``draws_.hyperparameters``.

    See Also
    --------
    BetaNegativeBinomial : Counts with a variance above the mean.
    NegativeBinomialRegression : Counts that depend on inputs.

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

    _family = "gamma_poisson"
    _expected = "rates_", "rate"
    _hyperparameters = ("shape", "rate")

    def __init__(self, shape: ArrayLike | None = None, rate: ArrayLike | None = None) -> None:
        self.shape = shape
        self.rate = rate

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        means = column_means(X)
        means = np.where(means > 0, means, 1.0)
        shape = 1.0 if self.shape is None else self.shape
        shapes = positive_values("shape", shape, len(means))
        units = np.array([np.ones_like(means), 1 / means])
        return units, np.array([shapes, shapes / means])

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        return np.exp(p[:, ::2])

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        rate, after = prior["rate"] + numbers[:, ::5], numbers[:, 2::5]
        return lambda y: count_cdf(y, after, rate / (1 + rate))


class BetaNegativeBinomial(_Counts):
    """Overdispersed counts: negative binomial, columns independent given the state.

    In every state the counts of a column have a mean ``mu`` and the variance ``mu +
    dispersion * mu**2``.  With ``r = 1 / dispersion`` the probability ``r / (r + mu)`` is
    ``Beta(r * rate, shape)`` and integrated out, and the predictive distribution is beta
    negative binomial.  For small dispersions it is :class:`GammaPoisson` with the same
    `shape` and `rate`.

    Single entries may be missing.

    Parameters
    ----------
    shape : float, array-like of shape (n_features,) or None, default=None
        Shape of the prior of the means.  None: drawn after every sweep, with the prior
        ``Gamma(1/2, 1/2)``.
    rate : float, array-like of shape (n_features,) or None, default=None
        Rate of the prior of the means.  None: drawn, with the prior ``Gamma(1/2, m/2)``,
        m the mean of the column.
    dispersion : float, array-like of shape (n_features,) or None, default=None
        Dispersion of the counts of a column, the same in all states.  None: drawn, with
        the prior ``Gamma(1/2, 1/(2 c))`` between ``c / 1e8`` and ``1e8 c``, c the
        variance of the column divided by its squared mean.

    Attributes
    ----------
    shape_, rate_, dispersion_ : ndarray of shape (n_features,)
        The prior, with initial values of drawn hyperparameters.  The draws of a fit are in
        ``draws_.hyperparameters``.

    See Also
    --------
    GammaPoisson : Counts with a variance equal to the mean.
    NegativeBinomialRegression : Counts that depend on inputs.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has ``means_`` of shape (n_states,
    n_features), the posterior means of the states' means under the selected draw.

    Where the counts of a state vary more than Poisson counts do, :class:`GammaPoisson`
    splits the state into several.

    References
    ----------
    A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, Section 2.6.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> rng = np.random.default_rng(0)
    >>> means = np.repeat([[5.0], [60.0], [5.0], [60.0]], 50, axis=0)
    >>> X = rng.poisson(means * rng.gamma(4.0, 0.25, size=means.shape))
    >>> hmm = HCRPHMM(emission="negative_binomial", n_burnin=200, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    _hyperparameters = ("shape", "rate", "dispersion")
    _family = "negative_binomial"
    _expected = "means_", "mean"

    def __init__(
        self,
        shape: ArrayLike | None = None,
        rate: ArrayLike | None = None,
        dispersion: ArrayLike | None = None,
    ) -> None:
        self.shape = shape
        self.rate = rate
        self.dispersion = dispersion

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        means, dispersions = means_and_dispersions(X)
        ones = np.ones_like(means)
        units = np.array([ones, 1 / means, dispersions])
        return units, units * [[1.0], [1.0], [SHARE_WITHIN]]

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        return np.exp(p[:, 1::2] - p[:, ::2]) / prior["dispersion"]

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        r = 1 / prior["dispersion"]
        a, b = r * (prior["rate"] + numbers[:, ::6]), numbers[:, 3::6]
        q = betaincinv(a[..., None], b[..., None], ndtr(NODES))
        return lambda y: count_cdf(y[..., None], r[:, None], q) @ NODE_WEIGHTS


class BetaBernoulli(IndependentColumns):
    """Binary observations, columns independent given the state.

    In every state and column the probability of 1 is ``Beta(a, b)`` and integrated out.

    Single entries may be missing.

    Parameters
    ----------
    a, b : float, array-like of shape (n_features,) or None, default=None
        Pseudo-counts of 1 and of 0 in the beta prior.  None: drawn after every sweep, with
        the prior ``Gamma(1/2, 1/2)``.
    binarize : float or None, default=None
        Numbers above the threshold are ones.  None: X has to be binary.

    Attributes
    ----------
    a_, b_ : ndarray of shape (n_features,)
        The prior.  Drawn hyperparameters are 1 at the start of a chain.  The draws of a
        fit are in ``draws_.hyperparameters``.

    See Also
    --------
    BernoulliRegression : Zeros and ones that depend on inputs.
    HCRPCategorical : Symbols, of two or more kinds.

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
    _kind = "binary"
    _family = "beta_bernoulli"
    _expected = "probabilities_", "probability"
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
            check_counts(X, 1.0, "0 or 1", self)

    def _transform(self, X: Floats) -> Floats:
        if self.binarize is None:
            return X
        threshold = check_finite("binarize", self.binarize)
        return np.where(np.isnan(X), np.nan, threshold < X)

    def _fit_scale(self, X: Floats) -> tuple[Floats, Floats]:
        units = np.ones((2, X.shape[1]))
        return units, units

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        return np.exp(p[:, ::2])

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        zero = np.exp(numbers[:, 3::4])
        return lambda y: np.where(y < 0, 0.0, np.where(y < 1, zero, 1.0))
