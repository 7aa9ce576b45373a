"""Base classes of emissions of numbers in other packages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike

from skihmm._records import EmissionRecord
from skihmm._typing import Array, Flags, Floats, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._columns import as_floats
from skihmm.emissions._family_emission import NumericEmission
from skihmm.emissions._python_stats import python_stats
from skihmm.emissions._spec import StateNumber, StateParameter

# Draws behind the mean of a parameter: its error is a twentieth of a standard deviation.
_N_DRAWN = 400


class CustomEmission(NumericEmission):
    """Base class of emissions of numbers in other packages.

    A subclass implements :meth:`make_stats`, of a family in C++ by ``family_stats`` of the
    native interface.  Emissions with a range of values implement :meth:`check_values`, and
    emissions with a prior from the data implement :meth:`learn`.  Families in Python derive
    from :class:`ConjugateEmission`.

    Attributes
    ----------
    emits_integers : bool, default=False
        Whether ``sample`` returns integers.

    See Also
    --------
    ConjugateEmission : Base class of emissions in Python.
    skihmm.get_include : List the folders of the C++ headers.
    skihmm.testing.check_emission : Test an emission.

    Examples
    --------
    Counts, whose statistics are in a compiled module (the page "Extending" has it):

    >>> from skihmm.emissions import CustomEmission
    >>> class Geometric(CustomEmission):
    ...     emits_integers = True
    ...
    ...     def check_values(self, X):
    ...         if (X < 0).any():
    ...             raise ValueError("X has values below 0; expected counts.")
    ...
    ...     def make_stats(self, codes):
    ...         from skihmm_extra import geometric_stats
    ...
    ...         return geometric_stats(codes, 1.0, 1.0)
    >>> Geometric().fit([[3], [-1]])
    Traceback (most recent call last):
    ValueError: X has values below 0; expected counts.
    """

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

    def fit(self, X: MatrixLike, y: None = None) -> CustomEmission:
        """Check the data, and call :meth:`learn` with them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.  NaN, None and masked entries are missing.
        y : None
            Ignored.

        Returns
        -------
        self : CustomEmission
        """
        X = as_floats(X, self)
        self._check(X)
        self.learn(X)
        return self

    def learn(self, X: Floats) -> None:
        """Fit a prior, for example, to the scale of the data.  By default nothing.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            NaN is missing.
        """

    def __sklearn_is_fitted__(self) -> bool:
        # Subclasses need not have fitted attributes.
        return True


class ConjugateEmission(CustomEmission):
    """Base class of conjugate emissions written in Python.

    A subclass defines the sufficient statistics of a state, an array of a few floats, and
    the predictive distribution given the statistics.  Parameters of states are integrated
    out.  The emission then works with every sampler and scorer, with missing data, in
    pipelines and in searches, like all emissions of this package.

    Implement :meth:`empty`, :meth:`add`, :meth:`log_predictive` and :meth:`log_marginal`
    for fits, paths and scores, :meth:`mean` for imputed values and means of predictions,
    :meth:`draw_parameters` with :meth:`emit` for ``sample`` and quantiles of predictions,
    and with :meth:`log_density` for the samplers that draw parameters.  :meth:`remove` is
    needed for speed, :meth:`is_sound` for untrusted files.  A subclass that fits a prior
    to the data implements :meth:`learn`.

    Sufficient statistics have to be finite.  Methods may change and keep their arguments.
    Only return values are used.  A row with a missing entry is missing as a whole, and not
    passed to the methods, unless `takes_partial_rows` is True.

    An emission that looks back sets `n_inputs` and implements :meth:`next_inputs`.  Every
    `y` is then a row of `n_features` values and `n_inputs` inputs. :meth:`emit` and
    :meth:`mean` take the inputs as a further argument, and return numbers for inputs of NaN
    too, because a sequence may start without inputs.

    Attributes
    ----------
    takes_partial_rows : bool, default=False
        Whether rows with some NaN are observations.  The methods then leave out the missing
        entries.
    n_inputs : int, default=0
        Number of inputs of a step: earlier values of the sequence that the emission depends
        on.
    emits_integers : bool, default=False
        Whether ``sample`` returns integers.
    releases_gil : bool
        False: chains run as processes, because Python code holds the GIL.
    parameters_ : ndarray of shape (n_states, n_parameters)
        In ``emission_`` of a fitted :class:`~skihmm.HCRPHMM`, with :meth:`draw_parameters`:
        posterior means under the selected draw, by 400 draws.  All draws are in
        :func:`~skihmm.posterior.parameter_intervals` and :meth:`~skihmm.HCRPHMM.summary`.

    See Also
    --------
    CustomEmission : Base class of emissions in C++.
    StateNumber : Name of a parameter in summaries.
    skihmm.testing.check_emission : Test an emission.

    Notes
    -----
    A call costs about 5 to 10 microseconds, mostly in NumPy.  A time step of a sweep
    needs three to five calls, and more calls with split-merge trials.  The exponential emission of
    the user guide takes 20 to 25 microseconds per step and sweep with ``sampler="stepwise"``, and
    55 to 95 with ``sampler="auto"``.  :func:`skihmm.testing.check_emission` tests all required
    properties, also of `mean`, `draw_parameters` and `emit`, which the test needs.

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
    ...     def add(self, stats, y):
    ...         return stats + [1.0, y[0]]
    ...
    ...     def remove(self, stats, y):
    ...         return stats - [1.0, y[0]]
    ...
    ...     def log_predictive(self, stats, y):
    ...         shape, rate = stats.T
    ...         return np.log(shape / rate) - (shape + 1) * np.log1p(y[0] / rate)
    ...
    ...     def log_marginal(self, stats):
    ...         shape, rate = stats.T
    ...         return gammaln(shape) - shape * np.log(rate)
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(np.repeat([[0.1], [10.0], [0.1], [10.0]], 25, axis=0))
    >>> hmm = HCRPHMM(emission=Exponential(), n_burnin=30, n_draws=10, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    takes_partial_rows = False
    releases_gil = False
    # Sufficient statistics of the states of a fit.
    _numbers: Floats | None = None

    def is_missing(self, codes: Array) -> Flags:
        """Mask of steps that are not passed to the methods of the emission.

        Parameters
        ----------
        codes : ndarray of shape (n_samples, n_features + n_inputs), float64

        Returns
        -------
        missing : ndarray of shape (n_samples,), bool
        """
        missing = np.isnan(codes)
        if self.takes_partial_rows:
            return np.asarray(missing[:, : -self.n_inputs or None].all(axis=1))
        return np.asarray(missing.any(axis=1))

    def make_stats(self, codes: Array) -> EmissionStats:
        return python_stats(codes, self)

    def capabilities(self) -> tuple[bool, bool]:
        """Return which optional methods the subclass has.

        Returns
        -------
        draws : bool
            Whether it has `draw_parameters`.
        weighs : bool
            Whether the emission also has `log_density`, for samplers that draw
            parameters.
        """
        base = ConjugateEmission
        draws = type(self).draw_parameters is not base.draw_parameters
        return draws, draws and type(self).log_density is not base.log_density

    def with_states(
        self, record: EmissionRecord, n_states: int, stream: RandomStream | None = None
    ) -> BaseEmission:
        if not self.capabilities()[0]:
            return self
        described = copy(self)
        described._numbers = record["numbers"][:n_states]
        described.__dict__.pop("parameters_", None)
        if stream is not None:
            described.parameters_ = described._drawn(stream.generator)
        return described

    @property
    def state_parameters(self) -> Mapping[str, StateParameter]:
        if self._numbers is None:
            return {}
        numbers = [
            StateNumber(None, f"parameter {i}", itemgetter((..., i)))
            for i in range(self.parameters_.shape[1])
        ]
        return {"parameters_": StateParameter(self.parameters_, numbers)}

    def _drawn(self, generator: np.random.Generator) -> Floats:
        if self._numbers is None:
            raise AttributeError("There are parameters of states in emission_ of a fit only.")
        return np.array([self.draw_parameters(stats.copy(), generator) for stats in self._numbers])

    @cached_property
    def parameters_(self) -> Floats:
        """Parameters of the states of a fit: means of draws, of shape (n_states, n_parameters)."""
        generator = np.random.default_rng(0)
        return np.mean([self._drawn(generator) for _ in range(_N_DRAWN)], axis=0)

    # -- methods of subclasses

    @abstractmethod
    def empty(self) -> ArrayLike:
        """Sufficient statistics of a state without observations.

        Returns
        -------
        stats : ndarray of shape (width,)
        """

    @abstractmethod
    def add(self, stats: Floats, y: Floats) -> ArrayLike:
        """Add an observation to the sufficient statistics of a state.

        Parameters
        ----------
        stats : ndarray of shape (width,)
        y : ndarray of shape (n_features,)

        Returns
        -------
        stats : ndarray of shape (width,)
        """

    def remove(self, stats: Floats, y: Floats) -> ArrayLike | None:
        """Remove an observation from the sufficient statistics of a state.

        Sums lose digits when a large term is subtracted.  Return None where rounding
        matters.  The statistics are then recomputed from the remaining observations, by a
        call of `add` for each observation.  The default always returns None.

        Parameters
        ----------
        stats : ndarray of shape (width,)
        y : ndarray of shape (n_features,)

        Returns
        -------
        stats : ndarray of shape (width,), or None
        """
        return None

    @abstractmethod
    def log_predictive(self, stats: Floats, y: Floats) -> ArrayLike:
        """Log predictive probability (density) of an observation in several states.

        Parameters
        ----------
        stats : ndarray of shape (n_states, width)
        y : ndarray of shape (n_features,)

        Returns
        -------
        log_p : ndarray of shape (n_states,)
            Finite, in nats.
        """

    @abstractmethod
    def log_marginal(self, stats: Floats) -> ArrayLike:
        """Log probability (density) of all observations of a state together.

        The sum of the log predictive probabilities, observation after observation, in any
        order, with all constants.

        Parameters
        ----------
        stats : ndarray of shape (n_states, width)

        Returns
        -------
        log_p : ndarray of shape (n_states,)
            0 for a state without observations.
        """

    def is_sound(self, stats: Floats) -> bool:
        """Whether statistics are possible for some observations.

        Called with finite statistics from a file before they are used.  The default is
        True.

        Parameters
        ----------
        stats : ndarray of shape (width,)

        Returns
        -------
        sound : bool
        """
        return True

    def mean(self, stats: Floats) -> ArrayLike:
        """Mean of the next observation.

        Parameters
        ----------
        stats : ndarray of shape (width,)

        Returns
        -------
        mean : ndarray of shape (n_features,)
        """
        raise self._lacks("mean", "means of predictions need")

    def next_inputs(self, row: Floats | None) -> ArrayLike:
        """Inputs of the step that follows a row, with `n_inputs` only.

        Parameters
        ----------
        row : ndarray of shape (n_features + n_inputs,) or None
            Values (NaN is missing) and inputs.  None before the first step of a sequence.

        Returns
        -------
        inputs : ndarray of shape (n_inputs,)
            NaN where they are missing: a step without all inputs is missing, unless
            `takes_partial_rows`.
        """
        raise self._lacks("next_inputs", "an emission with `n_inputs` needs")

    def _lacks(self, name: str, purpose: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has no {name}, which {purpose}: write it, as "
            "described in ConjugateEmission"
        )

    def draw_parameters(self, stats: Floats, generator: np.random.Generator) -> ArrayLike:
        """Draw the parameters of a state from their posterior.

        Parameters
        ----------
        stats : ndarray of shape (width,)
        generator : numpy.random.Generator
            Generator of the chain, the only source of random numbers.

        Returns
        -------
        parameters : ndarray of shape (n_parameters,)
            A fixed number of parameters, at least one.
        """
        raise self._lacks("draw_parameters", "`sample` needs to draw observations")

    def log_density(self, parameters: Floats, y: Floats) -> ArrayLike:
        """Log probability (density) of an observation given parameters of several states.

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
            Generator of the chain, the only source of random numbers.

        Returns
        -------
        y : ndarray of shape (n_features,)
        """
        raise self._lacks("emit", "`sample` needs to draw observations")
