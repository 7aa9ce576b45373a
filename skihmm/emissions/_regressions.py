"""Logistic and log-linear regressions, whose coefficients differ by state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, expit

from skihmm._data.roles import Numbers, Role
from skihmm._data.scales import column_means
from skihmm._data.validation import (
    as_array,
    as_matrix,
    check_finite,
    check_positive,
    is_missing,
    is_number,
    shown,
)
from skihmm._records import FixedNumbers
from skihmm._typing import Array, Cdf, Flags, Floats, Integers, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._categorical import DirichletCategorical
from skihmm.emissions._columns import (
    LARGEST_COUNT,
    as_floats,
    check_counts,
    column_labels,
    entry,
    means_and_dispersions,
    name_columns,
    positive_values,
)
from skihmm.emissions._counts import count_cdf
from skihmm.emissions._family_emission import NODE_WEIGHTS, NODES, SHARE_WITHIN
from skihmm.emissions._inputs import WithInputs
from skihmm.emissions._log_subjects import WithLogSubjects
from skihmm.emissions._option_order import best_order
from skihmm.emissions._spec import StateNumber

# The same as in _logistic_family.hpp.
_LARGEST_FOR_LEAST = 1e2, 1e10
# Beyond, digits are lost: of the coefficients' covariance in moves, and of log evidences.
_LEAST_PRECISION, _MOST_PRECISION, _MOST_MEAN = 1e-6, 1e8, 1e3
_MOST_TRIALS = 1e9
# More options make slow fits.
_MANY_OPTIONS = 50
# The commonest mistake.
_HINT = " (inputs are named in input_features)"


class _Trials(Numbers):
    """Numbers of trials."""

    def encode(self, columns: Floats, learnt: Any) -> Floats:
        for row, _ in np.argwhere(
            (columns < 0) | (np.floor(columns) < columns) | (columns > _MOST_TRIALS)
        ):
            raise ValueError(
                f"Row {row} of the column {self.labels[0]!r} is {shown(columns[row, 0])}; "
                "expected a number of trials from 0 to 1e9."
            )
        return columns


class _Exposure(Numbers):
    """Exposures, encoded by their logarithms."""

    def encode(self, columns: Floats, learnt: Any) -> Floats:
        for row, _ in np.argwhere(columns <= 0):
            raise ValueError(
                f"Row {row} of the column {self.labels[0]!r} is {shown(columns[row, 0])}; "
                "expected an exposure > 0."
            )
        return np.log(columns)


class _Regression(WithInputs):
    """Base class of regressions that are conjugate given Polya-Gamma weights.

    A subclass may name one more given column: trials, or exposure.
    """

    # Contiguous blocks of one regression hardly merge (11 to 13 states where three are
    # true); one state splits within a few sweeps.
    default_init = "single"
    has_lasting_states = True
    # Held-out trials of simulated decisions are .0010 nats more probable than with
    # "persistent" transitions: there is no shape of noise to be mistaken for states.
    default_transitions = "sticky"
    emits_integers = True
    is_positive_only = True
    takes_integers = True
    _hyperparameters: tuple[str, ...] = ("mean", "precision")
    # Parameter that names the column, and the role.
    _extra = ""
    _extra_role: type[Numbers] = Numbers
    # Given columns after all others that are added to linear predictors.
    _n_shifts = 0
    _most_deviations = 1e3
    mean: float | None
    precision: float | None

    @property
    def _extra_feature(self) -> int | str | None:
        feature: int | str | None = getattr(self, self._extra) if self._extra else None
        return feature

    def roles(self) -> list[Role]:
        feature = self._extra_feature
        if feature is None:
            return super().roles()
        hint = (
            f" {self._extra} names a column of X; a number that is the same for all rows has "
            "to be a column too."
        )
        return [*super().roles(), self._extra_role(self._extra, [feature], hint=hint)]

    def _may_be_output(self, column: Array) -> bool:
        try:
            self._check(as_floats(column[:, None], self))
        except (TypeError, ValueError):
            return False
        return True

    def fit(self, X: MatrixLike, y: None = None) -> BaseEmission:
        X = as_floats(X, self)
        self._check(X)
        self._set_prior(X.shape[1], *self._scale(X))
        return self

    def _set_prior(self, n_terms: int, intercepts: Floats | float, units: Floats | float) -> None:
        """Set the prior of regressions, with intercepts about these.

        `units` are those of the precisions.
        """
        self._set_units()
        centre = np.zeros((n_terms, self._n_regressors + 1))
        centre[:, -1] = intercepts
        mean = 0.0 if self.mean is None else check_finite("mean", self.mean)
        if abs(mean) > _MOST_MEAN:
            raise ValueError(
                f"mean={mean!r}; expected up to {_MOST_MEAN:g} in size, for coefficients "
                "of standardised inputs. None draws it."
            )
        self.mean_ = centre + mean
        unit = np.full(n_terms, units)
        self._units = centre, unit
        given = 1.0 if self.precision is None else self.precision
        if not _LEAST_PRECISION <= check_positive("precision", given) <= _MOST_PRECISION:
            raise ValueError(
                f"precision={given!r}; expected {_LEAST_PRECISION:g} to "
                f"{_MOST_PRECISION:g}: beyond, digits are lost. None draws it."
            )
        start = unit if self.precision is None else np.full(n_terms, given)
        self.precision_ = np.stack([start, start], axis=1)

    def _scale(self, X: Floats) -> tuple[Floats | float, Floats | float]:
        """Centre of the intercepts, and unit of the precisions."""
        return 0.0, 1.0

    def is_missing(self, codes: Array) -> Flags:
        lacks = np.isnan(codes)
        n = codes.shape[1] - self.n_inputs
        return np.asarray(lacks[:, :n].all(axis=1) | lacks[:, n:].any(axis=1))

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        return p

    def _describe(self, expected: Floats) -> dict[str, Floats]:
        means = expected.reshape(-1, *self.mean_.shape)
        coefficients, intercepts = self._in_user_units(means[..., :-1], means[..., -1])
        return {
            "intercepts_": intercepts,
            "coefficients_": coefficients,
        }

    def _shown_numbers(self, attribute: str, values: Floats) -> list[StateNumber]:
        return self._numbers_of_regressions(attribute, values, "intercept")

    def _predictors(self, numbers: Floats, inputs: Array) -> Floats:
        """Linear predictors, of shape (n_rows, n_states, n_features, n_nodes)."""
        n, q = self.mean_.shape
        x = np.hstack([inputs[:, : q - 1], np.ones((len(inputs), 1))])
        columns = numbers.reshape(len(numbers), n, -1)
        C = np.zeros((len(numbers), n, q, q))
        i, j = np.tril_indices(q)
        C[..., i, j] = C[..., j, i] = columns[..., 2 + q :]
        deviations = np.sqrt(np.einsum("ri,ktij,rj->rkt", x, C, x))[..., None]
        means = np.einsum("ri,kti->rkt", x, columns[..., 2 : 2 + q])
        if self._n_shifts:
            means += inputs[:, None, -self._n_shifts :]
        return means[..., None] + deviations * NODES


class BernoulliRegression(WithLogSubjects, _Regression):
    """Binary observations, or successes of trials: logistic regressions on inputs.

    In every state and column the logarithm of the odds of 1 is
    ``coefficients @ inputs + intercept``.  For standardised inputs the coefficients, and
    the intercept, are normal about `mean`, each with a precision.  The coefficients are
    integrated out given a Polya-Gamma weight per observation, redrawn after every sweep.
    Columns are independent given the state.

    With the stimulus and past choices as inputs: the GLM-HMM of decisions, with an
    inferred number of states.

    Single values may be missing.  A step with a missing input is missing as a whole.

    Parameters
    ----------
    input_features : array-like of int, str or bool, or None, default=None
        Columns of X that are inputs: given, not modelled, and standardised by the rows of
        the fit.  Past observations are inputs if they are columns of X.  None: there is
        only an intercept.
    n_trials : int, str or None, default=None
        Column of X with the number of trials of a row.  Values are successes.  None:
        values are 0 or 1.
    mean : float or None, default=0.0
        Prior mean of the coefficients and intercepts.  None: drawn after every sweep, one
        per coefficient, with the prior ``Normal(0, 1)``.
    precision : float or None, default=None
        Prior precision of the coefficients and intercepts.  None: drawn, a value for all
        coefficients of a column and a value for its intercepts, with the prior
        ``Gamma(1, 1/10)``.
    subject_feature : str, int or None, default=None
        Name or index of the column of X that holds the subject of the row: a person, an
        animal, a clinic.  The column is given and is no feature.  A subject has its own
        offset on the log odds of every column, common to all states.  Offsets of the
        subjects of the fit sum to zero.  All rows of a sequence have the same subject.  A
        new name is a new subject, and a missing name a new subject per sequence.
        Predictions draw the offset of a new subject given all its rows.  Scores integrate
        the offset out.

    Attributes
    ----------
    input_means_, input_scales_ : ndarray of shape (n_inputs,)
        Means and standard deviations by which inputs are standardised, in the
        ``emission_`` of a fitted model.
    mean_ : ndarray of shape (n_features, n_inputs + 1)
    precision_ : ndarray of shape (n_features, 2)
        The prior, of standardised inputs, or initial values of drawn hyperparameters.
        The draws of a fit are in ``draws_.hyperparameters``.

    See Also
    --------
    BetaBernoulli : Without inputs, in closed form.
    NegativeBinomialRegression : Counts.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has, for inputs as they are in X,
    ``coefficients_`` of shape (n_states, n_features, n_inputs) and ``intercepts_`` of
    shape (n_states, n_features): posterior means under the selected draw, given its path
    and weights.  Means and intervals over all draws have
    :func:`~skihmm.posterior.parameter_intervals` and
    :class:`~skihmm.inspection.RegressionDisplay`.

    With ``subject_feature``, ``subjects_`` has the subjects of the fit in the order of
    their first rows.  Posterior means are ``subject_offsets_`` of shape (n_subjects,
    n_features), with ratios of odds as exponentials, and ``offset_deviation_``, the
    standard deviations of offsets by column.  Intercepts are of the mean subject.

    The log joint probability of a draw, ``draws_.lp``, is without the weights, by
    Laplace's method.  Scores integrate over the weights.

    References
    ----------
    N. G. Polson, J. G. Scott and J. Windle, "Bayesian inference for logistic models using
    Polya-Gamma latent variables", Journal of the American Statistical Association 108,
    2013.

    Z. C. Ashwood et al., "Mice alternate between discrete strategies during perceptual
    decision-making", Nature Neuroscience 25, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import BernoulliRegression
    >>> rng = np.random.default_rng(0)
    >>> stimulus = rng.normal(size=600)
    >>> is_engaged = np.arange(600) // 200 != 1
    >>> log_odds = np.where(is_engaged, 4 * stimulus, -2.0)
    >>> choice = rng.random(600) < 1 / (1 + np.exp(-log_odds))
    >>> X = np.column_stack([choice, stimulus])
    >>> emission = BernoulliRegression(input_features=[1])
    >>> hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    _extra, _extra_role = "n_trials", _Trials
    _observed = ("decisions", "trials")
    test_params = ({}, {"precision": 0.5, "mean": None})

    def __init__(
        self,
        input_features: ArrayLike | None = None,
        n_trials: int | str | None = None,
        mean: float | None = 0.0,
        precision: float | None = None,
        subject_feature: int | str | None = None,
    ) -> None:
        self.input_features = input_features
        self.n_trials = n_trials
        self.mean = mean
        self.precision = precision
        self.subject_feature = subject_feature

    @property
    def _family(self) -> str:  # type: ignore[override]
        return "logistic" if self.n_trials is None else "binomial"

    @property
    def inverse_link(self) -> Callable[[Floats], Floats]:
        return expit

    def event(self, name: str, output: int) -> str:
        return name

    def _check(self, X: Floats) -> None:
        if self.n_trials is not None:
            check_counts(X, _MOST_TRIALS, "successes from 0 to the trials" + _HINT, self)
            return
        for label, column in zip(column_labels(self, X.shape[1]), X.T, strict=True):
            if (np.isin(column, (-1, 1)) | np.isnan(column)).all() and -1 in column:
                raise ValueError(
                    f"Column {label!r} of X holds -1 and 1; expected 0 or 1. Pass "
                    "(y + 1) // 2 for such a column y. NaN marks what is missing."
                )
        check_counts(X, 1.0, "0 or 1" + _HINT, self)

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        zero = expit(-self._predictors(numbers, inputs))
        n = np.ones((1, 1, 1, 1))
        if self.n_trials is not None:
            n = inputs[:, self._n_regressors].reshape(-1, 1, 1, 1)

        def cdf(y: Floats) -> Floats:
            y = np.floor(y)[..., None]
            below = betainc(np.maximum(n - y, 1.0), np.maximum(y, 0.0) + 1.0, zero)
            return np.where(y < 0, 0.0, np.where(y < n, below, 1.0)) @ NODE_WEIGHTS

        return cdf

    def fit(self, X: MatrixLike, y: None = None) -> BaseEmission:
        X = as_matrix(X)
        for label, column in zip(column_labels(self, X.shape[1]), X.T, strict=True):
            strings = {v for v in column.tolist() if isinstance(v, str)}
            if len(strings) == 2:
                zero, one = sorted(strings)
                raise ValueError(
                    f"Column {label!r} of X holds {zero!r} and {one!r}; expected 0 or 1. "
                    f"Pass (y == {one!r}).astype(int) for such a column y, or use "
                    "CategoricalRegression."
                )
        return super().fit(X)

    def make_stats(self, codes: Array) -> EmissionStats:
        if self.n_trials is not None:
            n = codes.shape[1] - self.n_inputs
            trials = n + self._n_regressors
            for row, c in np.argwhere(codes[:, :n] > codes[:, trials : trials + 1]):
                raise ValueError(
                    f"{entry(codes[:, :n], row, c, self)} successes, but {codes[row, trials]:g} "
                    f"trials in column {self.n_trials!r}; expected at most as many."
                )
        return super().make_stats(codes)


class NegativeBinomialRegression(WithLogSubjects, _Regression):
    """Counts: negative binomial regressions on inputs, with a logarithmic link.

    In every state and column a count has the mean
    ``mu = exposure * exp(coefficients @ inputs + intercept)`` and the variance
    ``mu + dispersion * mu**2``, with one dispersion of a column for all states.  A small
    dispersion means Poisson counts.  The coefficients have the priors of
    :class:`BernoulliRegression`, with the log mean rate of the column for the intercepts.
    The coefficients are integrated out given a Polya-Gamma weight per observation,
    redrawn after every sweep.  Columns are independent given the state.

    Single values may be missing.  A step with a missing input is missing as a whole.

    Parameters
    ----------
    input_features : array-like of int, str or bool, or None, default=None
        Columns of X that are inputs, as for :class:`BernoulliRegression`.
    exposure : int, str or None, default=None
        Column of X with the exposure of a row, to which its mean is proportional: a
        duration, a population.  None: 1.
    mean, precision : float or None, default=0.0 and None
        See :class:`BernoulliRegression`.  Counts with a squared coefficient of
        variation c below 0.1 have small coefficients, and a precision in units of
        ``0.1 / c``.
    dispersion : float, array-like of shape (n_features,) or None, default=None
        Dispersion of the counts of a column, at least 1e-4, or .01 divided by the largest
        count if that is less: counts are all but Poisson then.  None: drawn after every
        sweep, with the prior ``Gamma(1/2, 1/2)`` above this bound.
    subject_feature : str, int or None, default=None
        Name or index of the column of X that holds the subject of the row: a person, an
        animal, a clinic.  The column is given and is no feature.  A subject has its own
        offset on the log rate of every column, common to all states.  Offsets of the
        subjects of the fit sum to zero.  All rows of a sequence have the same subject.  A
        new name is a new subject, and a missing name a new subject per sequence.
        Predictions draw the offset of a new subject given all its rows.  Scores integrate
        the offset out.

    Attributes
    ----------
    input_means_, input_scales_ : ndarray of shape (n_inputs,)
    mean_ : ndarray of shape (n_features, n_inputs + 1)
    precision_ : ndarray of shape (n_features, 2)
        See :class:`BernoulliRegression`.
    dispersion_ : ndarray of shape (n_features,)
        The dispersion, or its initial value if drawn.

    See Also
    --------
    BetaNegativeBinomial, GammaPoisson : Without inputs, in closed form.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has the attributes of
    :class:`BernoulliRegression`.

    With ``subject_feature`` the exponentials of ``subject_offsets_`` are ratios of rates.
    All subjects share the dispersion.

    References
    ----------
    N. G. Polson, J. G. Scott and J. Windle, "Bayesian inference for logistic models using
    Polya-Gamma latent variables", Journal of the American Statistical Association 108,
    2013.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import NegativeBinomialRegression
    >>> rng = np.random.default_rng(0)
    >>> heat = rng.normal(size=600)
    >>> slope = np.where(np.arange(600) // 200 == 1, -0.6, 0.6)
    >>> X = np.column_stack([rng.poisson(20 * np.exp(slope * heat)), heat])
    >>> emission = NegativeBinomialRegression(input_features=[1])
    >>> hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    _extra, _extra_role = "exposure", _Exposure
    _observed = ("counts", "exposed counts")
    _family = "log_linear"
    _hyperparameters = ("mean", "precision", "dispersion")
    test_params = ({}, {"dispersion": 0.1, "mean": None})

    def __init__(
        self,
        input_features: ArrayLike | None = None,
        exposure: int | str | None = None,
        mean: float | None = 0.0,
        precision: float | None = None,
        dispersion: ArrayLike | None = None,
        subject_feature: int | str | None = None,
    ) -> None:
        self.input_features = input_features
        self.exposure = exposure
        self.mean = mean
        self.precision = precision
        self.dispersion = dispersion
        self.subject_feature = subject_feature

    def _fixed(self) -> FixedNumbers:
        return {**super()._fixed(), "has_exposure": self.exposure is not None}

    @property
    def inverse_link(self) -> Callable[[Floats], Floats]:
        return np.exp

    @property
    def default_init(self) -> str:  # type: ignore[override]
        # One state of counts that vary little hardly splits.  (10,000 in two regimes
        # .3 standard deviations apart, twelve data sets: mean ARI .50 from blocks, .37
        # from one state.)
        _, unit = getattr(self, "_units", (None, np.ones(1)))
        return "blocks" if (unit > 1).any() else "single"

    def _check(self, X: Floats) -> None:
        check_counts(X, LARGEST_COUNT, "counts from 0 to 1e12" + _HINT, self)

    def fit(self, X: MatrixLike, y: None = None) -> BaseEmission:
        super().fit(X)
        values = as_floats(X, self)
        n = values.shape[1]
        largest = np.fmax.reduce(values, axis=0, initial=0.0)
        least = 1e-2 / np.clip(largest, *_LARGEST_FOR_LEAST)
        if self.dispersion is None:
            means, dispersions = means_and_dispersions(values)
            # With more, weights hold every row where it is: two regimes of Poisson counts
            # of 1,000 or 100,000 stayed one state.
            self.dispersion_ = np.clip(SHARE_WITHIN * dispersions, 10 * least, 1 / means)
            return self
        self.dispersion_ = positive_values("dispersion", self.dispersion, n)
        for c in np.flatnonzero(self.dispersion_ < least).tolist():
            raise ValueError(
                f"dispersion={self.dispersion!r}; expected numbers of at least "
                f"{least[c]:g} (column {column_labels(self, n)[c]!r}), for which counts "
                "are all but Poisson."
            )
        return self

    def _scale(self, X: Floats) -> tuple[Floats, Floats]:
        given, exposures = self._given, np.ones((len(X), 1))
        if self.exposure is not None and given is not None:
            exposures = np.exp(given[:, self._n_regressors, None])
        total = column_means(np.where(np.isnan(X), np.nan, exposures))
        # (Columns without a count have a rate nevertheless.)
        rates = np.maximum(column_means(X), 0.5 / len(X)) / total
        # The prior mean of the precision, of ten units, is 1 / c at least.
        _, dispersions = means_and_dispersions(X / exposures)
        return np.log(rates), np.maximum(1.0, SHARE_WITHIN / dispersions)

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        log_rate = self._predictors(numbers, inputs)
        if self.exposure is not None:
            log_rate += inputs[:, self._n_regressors].reshape(-1, 1, 1, 1)
        r = 1 / prior["dispersion"][:, None]
        p = expit(np.log(r) - np.minimum(log_rate, 27.6))  # means up to 1e12, as drawn
        return lambda y: count_cdf(y[..., None], r, p) @ NODE_WEIGHTS


class CategoricalRegression(_Regression):
    """Choices among options: logistic regressions on inputs by stick breaking.

    A :class:`BernoulliRegression` gives the probability of the first option.  A second
    regression gives the probability of the second option, if the choice is not the first
    option, and so on.  An observation has a Polya-Gamma weight for every option up to the
    choice.  With two options it is :class:`BernoulliRegression` of whether the first one
    is chosen.

    With more options, the order is a part of the model.  The probability of the first
    option is a monotone function of a sum of the inputs.  An option between two options
    ("none" between "left" and "right") should therefore come after one of the two.
    Choices by the largest of several utilities (softmax) are described well in a good
    order, and not exactly in any.

    A step of which the observation or an input is missing is missing.

    Parameters
    ----------
    input_features : array-like of int, str or bool, or None, default=None
        Columns of X that are inputs, as for :class:`BernoulliRegression`.
    categories : "auto" or array-like of shape (n_options,), default="auto"
        The options, two or more, in their order, strings or numbers.  "auto": options of
        the training data, sorted (ordered categories of a data frame in their order),
        unless another order has more evidence under a single state, by more than 0.01
        nats a row.  Six options are compared in all orders, further options are inserted,
        and more than fifty stay sorted.  The comparison uses at most 2,000 evenly spaced
        rows.
    mean, precision : float or None, default=0.0 and None
        See :class:`BernoulliRegression`.

    Attributes
    ----------
    categories_ : list of ndarray
        The options in their order, in a list of one array.
    input_means_, input_scales_ : ndarray of shape (n_inputs,)
    mean_ : ndarray of shape (n_options - 1, n_inputs + 1)
    precision_ : ndarray of shape (n_options - 1, 2)
        See :class:`BernoulliRegression`, of every option but the last.

    See Also
    --------
    HCRPCategorical : Symbols without inputs.

    Notes
    -----
    X has one column besides the inputs.  Several columns need a :class:`ProductEmission`.
    Options that the fit has not seen are an error.

    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has the attributes of
    :class:`BernoulliRegression`, of shape (n_states, n_options - 1, n_inputs).

    References
    ----------
    S. W. Linderman, M. J. Johnson and R. P. Adams, "Dependent multinomial models made
    easy: stick-breaking with the Polya-Gamma augmentation", NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import CategoricalRegression
    >>> rng = np.random.default_rng(0)
    >>> price = rng.normal(size=900)
    >>> is_thrifty = np.arange(900) // 300 != 1
    >>> utility = np.outer(price, [3.0, 0.0, -3.0]) * is_thrifty[:, None]
    >>> choice = (utility + rng.gumbel(size=(900, 3))).argmax(axis=1)
    >>> X = np.column_stack([choice, price])
    >>> emission = CategoricalRegression(input_features=[1])
    >>> hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    _family = "choice"
    _kind = "symbols"
    is_positive_only = False
    test_params = ({}, {"precision": 0.5, "mean": None})

    def __init__(
        self,
        input_features: ArrayLike | None = None,
        categories: ArrayLike | str = "auto",
        mean: float | None = 0.0,
        precision: float | None = None,
    ) -> None:
        self.input_features = input_features
        self.categories = categories
        self.mean = mean
        self.precision = precision

    def _may_be_output(self, column: Array) -> bool:
        kinds = set(column[~is_missing(column)].tolist())
        return len(kinds) <= _MANY_OPTIONS and all(
            isinstance(kind, str) or (is_number(kind) and not float(kind) % 1) for kind in kinds
        )

    def _fixed(self) -> FixedNumbers:
        return {"n_options": len(self.categories_[0])}

    @property
    def _n_values(self) -> int:
        return 1

    def fit(self, X: MatrixLike, y: None = None) -> CategoricalRegression:
        n_columns = as_matrix(X).shape[1]
        if n_columns != 1:
            raise ValueError(
                f"X has {n_columns} columns besides the inputs; expected one of choices"
                f"{_HINT}. Several need ProductEmission, with an emission for each."
            )
        order: Integers | None = None
        symbols = DirichletCategorical(handle_unknown="error")
        # There is no other handling of unknown ones.
        symbols._remedy = "pass categories"
        if isinstance(self.categories, str):
            symbols.categories = self.categories
        else:
            options = as_array("categories", self.categories)
            if options.ndim == 1 and options.dtype.kind in "biuf":
                # Numbers have to be sorted there.
                order, options = np.argsort(np.argsort(options)), np.sort(options)
            symbols.categories = [options]
        name_columns(symbols, self._names_of_columns, self._orders)
        self._symbols = symbols.fit(X)
        (values,) = symbols.categories_
        if len(values) < 2:
            raise ValueError(
                f"The options are {values.tolist()}; expected two or more. Pass "
                "categories if the data have only some of them."
            )
        self._set_prior(len(values) - 1, 0.0, 1.0)
        if order is None:
            order = np.arange(len(values))
        n_inputs, n_options = self._n_regressors, len(values)
        if (
            isinstance(self.categories, str)
            and n_inputs
            and self._given is not None
            and n_options <= _MANY_OPTIONS
        ):
            choices, prior = symbols.encode_values(X)[:, 0], self.precision_[0]
            precision = np.append(np.full(n_inputs, prior[0]), prior[1])
            order = np.array(best_order(choices, self._given, self.mean_[0], precision))
        if n_options > _MANY_OPTIONS:
            self._given_warnings += (
                f"Column {column_labels(self, 1)[0]!r} of X has {n_options} options: "
                f"every state has {n_options - 1} regressions, and their order, which "
                "is in the model, is not searched. Merge rare options, or pass "
                'categories in a good order; symbols without inputs are emission="hcrp".',
            )
        self.categories_ = [values[order]]
        # Place of every symbol in that order; NaN of what is missing.
        self._places = np.append(np.argsort(order).astype(float), np.nan)
        return self

    def encode_values(self, X: MatrixLike) -> Floats:
        return np.asarray(self._places[self._symbols.encode_values(X)])

    def decode(self, codes: Array) -> Array:
        places = np.append(np.argsort(self._places[:-1]), -1)
        known = np.where(np.isnan(codes), -1, codes).astype(np.intp)
        return self._symbols.decode(places[known])

    @property
    def _outputs(self) -> Sequence[tuple[int, str]]:
        # Every option but the last one has a regression.
        return [(0, f"{option} ") for option in self.categories_[0][:-1]]

    def event(self, name: str, output: int) -> str:
        return f"{name} = {self.categories_[0][output]}"
