"""Conjugate emissions whose functions are written in Python."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from skihmm._typing import Array, Flags, Floats, MatrixLike
from skihmm.emissions._conjugate import _as_floats, _Conjugate
from skihmm.emissions._python_stats import PythonStats


class ConjugateEmission(_Conjugate):
    """Base class of conjugate emissions written in Python.

    A subclass says what a state remembers of its observations, as a few numbers, and what
    these numbers predict; the parameters of a state are integrated out.  It then works
    with every sampler and scorer, with missing data, in pipelines and in searches, as the
    emissions of this package do.

    Write :meth:`empty`, :meth:`add`, :meth:`log_predictive` and :meth:`log_marginal`.
    :meth:`remove` is needed for speed, :meth:`is_sound` for files that cannot be trusted,
    :meth:`draw_parameters` with :meth:`emit` for ``sample``, and with :meth:`log_density`
    for the samplers that draw parameters, :meth:`mean` for imputed values and means of
    predictions.  A subclass that learns from data, a prior say, writes :meth:`learn`.

    The numbers are a NumPy array of floats, and none of them may be infinite or NaN.
    Arrays that the functions are given are theirs to change and to keep; what counts is
    what they return.  A row of which any entry is missing is missing as a whole and
    reaches none of them, unless `takes_partial_rows` is True.

    Attributes
    ----------
    takes_partial_rows : bool, default=False
        Rows with some NaN, but not all, are observations, and the functions leave out
        what is missing.
    emits_integers : bool, default=False
        ``sample`` returns integers.
    releases_gil : bool
        False: chains of such an emission run as processes, since only one thread at a
        time can be in Python.

    Notes
    -----
    A call costs about 5 to 10 microseconds, most of it in NumPy; a time step of a sweep
    needs three to five.  `docs/extending.md` has figures.  :func:`skihmm.testing.\
check_emission` tests everything that is promised here.

    Examples
    --------
    Waiting times, exponential in every state, with a gamma prior on the rates:

    >>> import numpy as np
    >>> from scipy.special import gammaln
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import ConjugateEmission
    >>> class Exponential(ConjugateEmission):
    ...     def empty(self):
    ...         return np.array([1.0, 1.0])  # shape and rate of the posterior
    ...
    ...     def add(self, numbers, y):
    ...         return numbers + [1.0, y[0]]
    ...
    ...     def remove(self, numbers, y):
    ...         return numbers - [1.0, y[0]]
    ...
    ...     def log_predictive(self, numbers, y):
    ...         shape, rate = numbers.T
    ...         return np.log(shape / rate) - (shape + 1) * np.log1p(y[0] / rate)
    ...
    ...     def log_marginal(self, numbers):
    ...         shape, rate = numbers.T
    ...         return gammaln(shape) - shape * np.log(rate)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(np.repeat([[0.1], [10.0], [0.1], [10.0]], 25, axis=0))
    >>> hmm = HCRPHMM(emission=Exponential(), n_burnin=30, n_draws=10, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    takes_partial_rows = False
    emits_integers = False
    releases_gil = False

    @property
    def _emits_integers(self) -> bool:  # type: ignore[override]
        return self.emits_integers

    def check_values(self, X: Floats) -> None:
        """Raise ValueError if values are outside of the emission's range.

        Called by `fit` and for all data afterwards.  The default accepts everything.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            NaN is missing.
        """

    def _check(self, X: Floats) -> None:
        self.check_values(X)

    def fit(self, X: MatrixLike, y: None = None) -> ConjugateEmission:
        """Check the data, and let the subclass learn from them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers; NaN, None or masked: missing.
        y : None
            Ignored.

        Returns
        -------
        self : ConjugateEmission
        """
        X = _as_floats(X, self)
        self._check(X)
        self.learn(X)
        return self

    def learn(self, X: Floats) -> None:
        """Learn from the data, such as a prior from their scale.  Nothing by default.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            NaN is missing.
        """

    def __sklearn_is_fitted__(self) -> bool:
        # What a subclass learns is its own affair.
        return True

    def is_missing(self, codes: Array) -> Flags:
        """Steps that no function of the emission sees.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        missing : ndarray of shape (n_samples,), bool
        """
        missing = np.isnan(codes)
        of_row = missing.all(axis=1) if self.takes_partial_rows else missing.any(axis=1)
        return np.asarray(of_row)

    def make_stats(self, codes: Array) -> PythonStats:
        """Build empty statistics over encoded data.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features), float64

        Returns
        -------
        stats : PythonStats
        """
        return PythonStats(codes, self)

    def capabilities(self) -> tuple[bool, bool]:
        """Say which optional functions the subclass has.

        Returns
        -------
        draws : bool
            It has `draw_parameters`.
        weighs : bool
            It has `log_density` besides, so that samplers may draw parameters.
        """
        base = ConjugateEmission
        draws = type(self).draw_parameters is not base.draw_parameters
        return draws, draws and type(self).log_density is not base.log_density

    # -- what a subclass writes

    @abstractmethod
    def empty(self) -> ArrayLike:
        """Give the numbers of a state without observations.

        Returns
        -------
        numbers : ndarray of shape (width,)
        """

    @abstractmethod
    def add(self, numbers: Floats, y: Floats) -> ArrayLike:
        """Let an observation join a state.

        Parameters
        ----------
        numbers : ndarray of shape (width,)
        y : ndarray of shape (n_features,)

        Returns
        -------
        numbers : ndarray of shape (width,)
        """

    def remove(self, numbers: Floats, y: Floats) -> ArrayLike | None:
        """Let an observation leave a state that it is in.

        Sums lose digits when a large term leaves them.  Return None where that matters:
        the numbers are then worked out again from the observations that stay, at the cost
        of as many calls of `add`.  The default does so always.

        Parameters
        ----------
        numbers : ndarray of shape (width,)
        y : ndarray of shape (n_features,)

        Returns
        -------
        numbers : ndarray of shape (width,), or None
        """
        return None

    @abstractmethod
    def log_predictive(self, numbers: Floats, y: Floats) -> ArrayLike:
        """Log predictive probability (density) of an observation in many states at once.

        Parameters
        ----------
        numbers : ndarray of shape (n_states, width)
        y : ndarray of shape (n_features,)

        Returns
        -------
        log_p : ndarray of shape (n_states,)
            Finite, in nats.
        """

    @abstractmethod
    def log_marginal(self, numbers: Floats) -> ArrayLike:
        """Log probability (density) of all observations of a state together.

        The sum of their predictive ones, one after the other, in whatever order.  What
        depends on the data alone and not on which of them share a state, such as a
        factorial, may be left out, here but not from `log_predictive`.

        Parameters
        ----------
        numbers : ndarray of shape (n_states, width)

        Returns
        -------
        log_p : ndarray of shape (n_states,)
            0 for a state without observations.
        """

    def is_sound(self, numbers: Floats) -> bool:
        """Say whether numbers can be what some observations have made of `empty`.

        Asked before numbers out of a file are used; that they are finite is known then.
        The default says yes.

        Parameters
        ----------
        numbers : ndarray of shape (width,)

        Returns
        -------
        sound : bool
        """
        return True

    def mean(self, numbers: Floats) -> ArrayLike:
        """Mean of the next observation.

        Parameters
        ----------
        numbers : ndarray of shape (width,)

        Returns
        -------
        mean : ndarray of shape (n_features,)
        """
        raise self._lacks("mean", "expectations need")

    def _lacks(self, name: str, purpose: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has no {name}, which {purpose}. Write it in the "
            "class; ConjugateEmission says what it returns."
        )

    def draw_parameters(
        self, numbers: Floats, generator: np.random.Generator
    ) -> ArrayLike:
        """Draw the parameters of a state from their posterior.

        Parameters
        ----------
        numbers : ndarray of shape (width,)
        generator : numpy.random.Generator
            Of the chain; use no other.

        Returns
        -------
        parameters : ndarray of shape (n_parameters,)
            Any fixed number of them, at least one.
        """
        raise self._lacks("draw_parameters", "`sample` needs to draw observations")

    def log_density(self, parameters: Floats, y: Floats) -> ArrayLike:
        """Log probability (density) of an observation given parameters of many states.

        Parameters
        ----------
        parameters : ndarray of shape (n_states, n_parameters)
        y : ndarray of shape (n_features,)

        Returns
        -------
        log_p : ndarray of shape (n_states,)
        """
        raise self._lacks("log_density", "samplers that draw parameters need")

    def emit(self, parameters: Floats, generator: np.random.Generator) -> ArrayLike:
        """Draw an observation given a state's parameters.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
        generator : numpy.random.Generator
            Of the chain; use no other.

        Returns
        -------
        y : ndarray of shape (n_features,)
        """
        raise self._lacks("emit", "`sample` needs to draw observations")
