"""Autoregressive Gaussian emissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtr, stdtr

from skihmm._data.validation import LARGEST_SIZE, check_choice, check_integer, check_positive
from skihmm._data.wrong_values import wrong_values
from skihmm._typing import Array, Cdf, Floats, Integers, Labels, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.emissions._columns import as_floats, positive_values
from skihmm.emissions._encoding import with_inputs
from skihmm.emissions._family_emission import NODE_WEIGHTS, NODES
from skihmm.emissions._gaussian import Gaussian
from skihmm.emissions._inputs import WithInputs
from skihmm.emissions._joint_law import JointLaw
from skihmm.emissions._spec import StateNumber, deviations
from skihmm.emissions._subjects import WithSubjects

# Added to the residual covariance of standardised columns, which is zero where the past
# determines a column.
_LEAST_RESIDUAL = 1e-10

# Degrees of freedom of Student's t noise at the start of a chain.
_FIRST_DOF = 10.0


# Without BLAS and LAPACK, which round differently on every processor: so the prior is the
# same on all of them, and the chain of a seed too.
def _products(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.einsum("ti,tj->ij", x, y))


def _ridge_regression(x: Floats, y: Floats, start: Floats) -> Floats:
    """Coefficients of y = x A + noise; their prior precision about `start` is one."""
    n = x.shape[1]
    M = np.hstack([_products(x, x) + np.eye(n), _products(x, y) + start])
    # Elimination; the matrix is positive definite and needs no pivots.
    for j in range(n):
        M[j] /= M[j, j]
        others = np.arange(n) != j
        M[others] -= np.outer(M[others, j], M[j])
    return np.asarray(M[:, n:])


class AutoregressiveNormal(WithSubjects, WithInputs, Gaussian):
    """Linear regression on the last rows and on inputs, with coefficients of every state.

    ``y[t] = A @ x[t] + noise`` with ``x[t] = (y[t-1], ..., y[t-order], u[t], 1)`` and
    ``noise ~ Normal(0, covariance)``: a vector autoregression with intercept, and with
    inputs ``u``, given columns of X.  Without earlier rows, ``emission="regression"``, it
    is a switching regression.  In every state ``covariance ~ InverseWishart(scale, dof)``
    and, for standardised columns,
    ``A[:, j] | covariance ~ Normal(mean[:, j], covariance / strength[j])``.  With both
    integrated out, the predictive distribution is a multivariate Student's t.

    A step is missing if an entry, an input or an entry of the `order` rows before is
    missing, or if the sequence has fewer rows before the step.  The likelihood is
    therefore conditional on the first `order` rows of every sequence, and on the first
    rows after a gap.

    Parameters
    ----------
    order : int, default=3
        Number of earlier rows, fewer than the longest sequence has.  0 without inputs and
        with normal noise is :class:`NormalInverseWishart`.
    mean : float, array-like of shape (n_features, n_features * order + n_inputs + 1) or \
None, default=None
        Prior mean of A, common to all states: coefficients of the latest row first, of
        inputs after all rows, intercepts last.  A number c: c times the identity for the
        latest row, otherwise zero, about the means of the columns.  None: drawn after every
        sweep, with the prior, for standardised columns, ``Normal(1, 1)`` on the diagonal
        for the latest row and ``Normal(0, 1)`` elsewhere.
    strength : float, array-like of shape (order + n_inputs + 1,) or None, default=None
        Precision of the coefficients of every earlier row, the latest first, of every
        input and of the intercepts, for standardised columns.  None: drawn, with the
        prior ``Gamma(1, 1/10)``, and one for all inputs together.
    dof : float or None, default=None
        Degrees of freedom, more than ``n_features - 1``.  None: ``n_features + 20``,
        without earlier rows ``n_features + 2``, because such regimes may differ in
        variance.
    scale : float, array-like of shape (n_features, n_features) or None, default=None
        Positive definite.  A number c: c times the scale by which the expected covariance
        equals the covariance of the residuals of one regression on all data.  None: c is
        drawn, with the prior ``Gamma(1/2, 1/2)`` truncated below ``1e-8``.
    resolution : "auto", float, array-like of shape (n_features,) or None, default="auto"
        Step of a rounded column (see :class:`NormalInverseWishart`).
    input_features : list of str or int, mask or None, default=None
        Names or indices of the columns of X that are inputs, in their order, or a mask of
        all columns, at most 199.  Inputs do not count as `n_features`.  ``sample`` and
        ``predict_next`` need their ``inputs``.  A column may be a context of the
        transitions too.
    noise : {"auto", "normal", "student"}, default="auto"
        Distribution of the noise.  "student": a multivariate Student's t, for heavy tails
        and outliers.  Its degrees of freedom, common to all states, are drawn, with the
        prior ``Gamma(2, 1/10)`` between 1 and 1000.  "auto": "student" for inputs without
        earlier rows, otherwise "normal".
    subject_feature : str, int or None, default=None
        Name or index of the column of X that holds the subject of the row, as for
        :class:`NormalInverseWishart`.  The offset is taken off earlier rows too.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features, n_features * order + n_inputs + 1)
    strength_ : ndarray of shape (order + 1,), (order + 2,) or (order + n_inputs + 1,)
        With a common value for all inputs if drawn, a value per input if fixed.
    scale_ : ndarray of shape (n_features, n_features)
        The prior, or initial values of drawn hyperparameters.  The draws of a fit are in
        ``draws_.hyperparameters``, of the scale the factor c.
    dof_ : float
        The degrees of freedom used.
    offset_ : ndarray of shape (n_features,)
        Offset subtracted from the data: the mean of a column, if the mean is many standard
        deviations from zero, and otherwise 0.
    resolution_ : ndarray of shape (n_features,)
        Step of every rounded column after the fit of a :class:`~skihmm.HCRPHMM`, and 0 for
        columns of levels and unrounded columns.
    input_means_, input_scales_ : ndarray of shape (n_inputs,)
        Means and standard deviations of the inputs in the fit, the units of inputs of all
        data.

    See Also
    --------
    NormalInverseWishart : Without regression.

    Notes
    -----
    ``emission_`` of a fitted :class:`~skihmm.HCRPHMM` has the posterior means of the
    states' parameters under the selected draw: ``coefficients_`` of shape (n_states,
    n_features, n_features * order + n_inputs), inputs last, ``intercepts_`` of shape
    (n_states, n_features) and ``covariances_`` of shape (n_states, n_features,
    n_features).  ``spectral_radii_`` of shape (n_states,) is below one for stable
    coefficients.

    With ``subject_feature``, ``subjects_`` has the subjects of the fit in the order of
    their first rows.  Posterior means are ``subject_offsets_`` of shape (n_subjects,
    n_features) and ``offset_deviation_``, the standard deviations of offsets by column.
    States have the parameters of the mean subject.

    With ``noise="student"`` every row has a weight
    ``w ~ Gamma(noise_dof / 2, noise_dof / 2)`` and noise of covariance
    ``covariance / w``.  Given weights, which are drawn between sweeps, all is as above.
    Scores and forecasts integrate over weights.  ``covariances_`` are the scales.  The
    covariance of the noise is ``noise_dof / (noise_dof - 2)`` times the scale, and does
    not exist up to two degrees of freedom.  ``draws_.hyperparameters`` has the degrees of
    freedom of every draw.  The log joint probability of a draw, ``draws_.lp``, is without
    the weights and approximate.

    Simulation and forecasts walk in time.  Where a sequence has no earlier rows yet, they
    start from the means of the columns.  A fit draws missing entries after every sweep
    given the rows on both sides, in runs of up to ten in a column.  Imputation draws all
    missing entries.  Missing entries of the first `order` rows of a sequence have the
    means and variances of the columns.

    References
    ----------
    E. B. Fox, E. B. Sudderth, M. I. Jordan and A. S. Willsky, "Bayesian nonparametric
    inference of switching dynamic linear models", IEEE Transactions on Signal Processing
    59, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.emissions import AutoregressiveNormal
    >>> rng = np.random.default_rng(0)
    >>> turn = np.array([[0.9, 0.4], [-0.4, 0.9]])
    >>> X = np.zeros((200, 2))
    >>> for t in range(1, 200):
    ...     A = turn if t // 50 % 2 else turn.T  # a turn to the right or to the left
    ...     X[t] = A @ X[t - 1] + rng.normal(size=2)
    >>> emission = AutoregressiveNormal(order=1)
    >>> hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
    >>> hmm.fit(X).n_states_
    2
    """

    default_init = "blocks"
    has_lasting_states = True
    _are_series = True
    # Always drawn.
    noise_dof = None

    test_params = (
        {},
        {"order": 0},
        {"order": 1, "mean": 1.0, "scale": 1.0},
        {"order": 1, "noise": "student"},
    )

    def __init__(
        self,
        order: int = 3,
        mean: ArrayLike | None = None,
        strength: ArrayLike | None = None,
        dof: float | None = None,
        scale: ArrayLike | None = None,
        resolution: ArrayLike | str | None = "auto",
        *,
        input_features: ArrayLike | None = None,
        noise: str = "auto",
        subject_feature: str | int | None = None,
    ) -> None:
        self.order = order
        self.mean = mean
        self.strength = strength
        self.dof = dof
        self.scale = scale
        self.resolution = resolution
        self.input_features = input_features
        self.noise = noise
        self.subject_feature = subject_feature

    @property
    def _is_regression(self) -> bool:
        """Whether there are inputs and no earlier rows."""
        return self.order == 0 and self._n_regressors > 0

    @property
    def default_transitions(self) -> str:
        # Regimes that last for 5, 10, 20, 75 rows have the mean adjusted Rand index .53
        # .74 .84 .96, with a penalty and normal noise .08 .35 .74 .95; with noise of t4
        # .55 .76 .87 .98 and .05 .24 .65 .95.  Skewed noise and long regimes are the
        # exception: .57 to .63, with a penalty .75 to .94.
        if self._is_regression:
            return "sticky"
        # Without earlier rows only the noise differs from "gaussian".
        return "hcrp" if self.order == 0 else super().default_transitions

    @property
    def _is_student(self) -> bool:
        if self.noise == "auto":
            return self._is_regression
        return self.noise == "student"

    @property
    def _family(self) -> str:  # type: ignore[override]
        return f"autoregressive_{'student' if self._is_student else 'normal'}"

    @property
    def _hyperparameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("mean", "strength", "scale", "noise_dof")[: 3 + self._is_student]

    @property
    def n_inputs(self) -> int:  # type: ignore[override]
        """Number of inputs of a step: the entries of the earlier rows, and given columns."""
        return self._n_lagged + self.n_given

    @property
    def _n_predictors(self) -> int:
        """Coefficients of a column, with the intercept."""
        return self._n_lagged + self._n_regressors + 1

    @property
    def _n_lagged(self) -> int:
        return len(self.offset_) * self.order

    def fit(self, X: MatrixLike, y: None = None) -> AutoregressiveNormal:
        self.fit_sequences(X, np.zeros(1, dtype=np.intp))
        return self

    def _fit_prior(self, X: MatrixLike, starts: Integers) -> None:
        # The prior is set from one regression on all sequences.
        order = check_integer("order", self.order, 0)
        check_choice("noise", self.noise, ("auto", "normal", "student"))
        n = len(self._fit_units(X))
        n_samples = len(np.asarray(X))
        longest = int(np.diff(np.append(starts, n_samples)).max())
        if order >= max(longest, 1):
            raise ValueError(
                f"order={order}, but the longest sequence has {longest} rows "
                f"(n_samples={n_samples}): no row has that many before it. Set a smaller "
                "order, or pass a longer first batch to partial_fit."
            )
        self._set_units()
        strength = 1.0 if self.strength is None else self.strength
        n_strengths = order + self._n_regressors + 1
        if np.shape(strength) not in ((), (n_strengths,)):
            raise ValueError(
                f"strength has the shape {np.shape(strength)}; expected a number, or "
                f"{n_strengths} numbers: one per earlier row, one per input, and that of "
                "the intercepts."
            )
        if self.strength is None:
            n_strengths = order + min(self._n_regressors, 1) + 1
        self.strength_ = positive_values("strength", strength, n_strengths)
        usual = n + (20.0 if order else 2.0)
        self.dof_ = usual if self.dof is None else check_positive("dof", self.dof)
        self._check_dof(n)
        self._mean = self._start_of_mean(n)
        self.mean_ = self._in_units_of_data(self._mean)
        start = 1.0 if self.scale is None else self.scale
        if np.ndim(start) == 0:
            if self.dof_ <= n + 1:
                raise ValueError(
                    f"dof={self.dof_}; expected more than n_features + 1 = {n + 1}, or a "
                    "matrix for scale: otherwise covariances have no expectation."
                )
            self.scale_ = np.eye(n)
            factor = check_positive("scale", start) * (self.dof_ - n - 1)
            self.scale_ = factor * self._residual_covariance(X, starts)
        else:
            self.scale_ = self._given_scale(n)

    def _start_of_mean(self, n: int) -> Floats:
        """Prior mean, or its value at the start of a chain, for standardised columns."""
        shape = (n, n * self.order + self._n_regressors + 1)
        first = np.eye(*shape) * (self.order > 0)
        if self.mean is None:
            return first
        try:
            mean = np.asarray(self.mean, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(
                f"mean={self.mean!r}; expected a number, a matrix of numbers or None."
            ) from None
        if mean.shape not in ((), shape):
            raise ValueError(
                f"mean has the shape {mean.shape}; expected a number, or {shape}: for "
                f"each of {n} columns a coefficient per entry of {self.order} earlier "
                f"rows and of {self._n_regressors} inputs, and an intercept."
            )
        if not (np.abs(mean) <= LARGEST_SIZE).all():
            raise ValueError(
                f"mean={self.mean!r}; expected numbers up to {LARGEST_SIZE:g} in size."
            )
        return self._standardised(mean) if mean.ndim else first * mean

    def _rows_to_compare(self, X: Floats, starts: Integers) -> Floats:
        return self._residuals(X, starts)

    def _residuals(self, X: MatrixLike, starts: Integers) -> Floats:
        """Residuals of one regression on all data, of standardised columns."""
        X = self._levelled(as_floats(X, self))
        wrong = wrong_values(X, self._are_series)
        values = self.encode_values(np.where(wrong, np.nan, X) if wrong.any() else X)
        plain = self._without_subjects()
        given = None if self._given is None else self._given[:, : plain.n_given]
        rows = with_inputs(plain, values, starts, given=given)
        centre, deviation = self._units[0], np.sqrt(self._units[1])
        n = len(centre)
        stops = n * np.arange(1, self.order + 2)
        y, *lags, inputs = np.split(rows[~plain.is_unused(rows)], stops, axis=1)
        y = (y - centre) / deviation
        x = np.hstack([*((lag - centre) / deviation for lag in lags), inputs, np.ones((len(y), 1))])
        A = _ridge_regression(x, y, np.eye(x.shape[1], n) * (self.order > 0))
        return np.asarray(y - np.einsum("ti,ij->tj", x, A))

    def _residual_covariance(self, X: MatrixLike, starts: Integers) -> Floats:
        residuals, deviation = self._residuals(X, starts), np.sqrt(self._units[1])
        n = len(deviation)
        covariance = np.eye(n)
        if len(residuals):
            covariance = _products(residuals, residuals) / len(residuals)
        covariance += _LEAST_RESIDUAL * np.eye(n)
        return covariance * np.outer(deviation, deviation)

    def _in_units_of_data(self, A: Floats) -> Floats:
        """Coefficients and intercepts of the data, from coefficients of standardised columns."""
        deviation, p = np.sqrt(self._units[1]), self._n_lagged
        means = self._units[0] + self.offset_
        lags = A[..., :p] * deviation[:, None] / np.tile(deviation, self.order)
        intercepts = A[..., -1] * deviation + means - lags @ np.tile(means, self.order)
        slopes, intercepts = self._in_user_units(A[..., p:-1] * deviation[:, None], intercepts)
        return np.concatenate([lags, slopes, intercepts[..., None]], axis=-1)

    @property
    def inverse_link(self) -> Callable[[Floats], Floats]:
        return np.asarray

    def typical_predictors(self) -> Floats:
        # Earlier rows are at their means.
        means = np.tile(self._units[0] + self.offset_, self.order)
        return np.append(means, super().typical_predictors())

    def _standardised(self, A: Floats) -> Floats:
        """Inverse of `_in_units_of_data`."""
        deviation = np.sqrt(self._units[1])
        means = self._units[0] + self.offset_
        scales = np.append(np.tile(deviation, self.order), self.input_scales_)
        slopes = A[..., :-1] / deviation[:, None] * scales
        centres = np.append(np.tile(means, self.order), self.input_means_)
        intercepts = A[..., -1] - means + np.einsum("ij,j->i", A[..., :-1], centres)
        return np.concatenate([slopes, (intercepts / deviation)[..., None]], axis=-1)

    def _prior(self) -> tuple[Sequence[Floats], Sequence[Floats]]:
        deviation = np.sqrt(self._units[1])
        scale = self.scale_ / np.outer(deviation, deviation)
        triangle = scale[np.tri(len(scale), dtype=bool)]
        prior = [self._mean, self.strength_, triangle]
        if self._is_student:
            prior.append(np.array([_FIRST_DOF]))
        return prior, [self._units[0], deviation]

    def _drawn(self, p: Floats, prior: dict[str, Floats]) -> Floats:
        n, q = len(self.offset_), self._n_predictors
        # By row the factors that make the noise white: of inputs, and a triangle of values.
        white = np.zeros((len(p), n, q + n))
        rows, columns = np.nonzero(np.tri(n, q + n, q))
        white[:, rows, columns] = p[:, : len(rows)]
        root = np.linalg.inv(white[:, :, q:])
        A, covariances = -root @ white[:, :, :q], root @ root.transpose(0, 2, 1)
        return np.hstack([part.reshape(len(p), -1) for part in (A, covariances)])

    def _cdf(self, numbers: Floats, prior: dict[str, Floats], inputs: Array) -> Cdf:
        law, R, inverse = self._factors(numbers, prior, inputs)
        dof = law.dof[:, None, None]
        variances = (R**2 / inverse[:, None]).sum(axis=2)[..., None] / dof
        scale = np.sqrt(variances * (law.spreads[:, :, None, None] + law.noise))
        return lambda y: stdtr(dof, law.residuals(y)[..., None] / scale) @ law.weights

    def _joint_law(self, stats: EmissionStats, slots: Labels, inputs: Array) -> JointLaw | None:
        return self._factors(*self._numbers_of(stats, slots), inputs)[0]

    def _factors(
        self, numbers: Floats, prior: dict[str, Floats], inputs: Array
    ) -> tuple[JointLaw, Floats, Floats]:
        """Law of a row, and the factors R and 1 / D of its scales."""
        n, q = len(self.offset_), self._n_predictors
        centre, deviation = self._units[0], np.sqrt(self._units[1])
        # The factors, in panels of four rows: _autoregressive_family.hpp.
        i, j = np.tril_indices(q + n)
        panels = np.append(i, q + n + 3) // 4
        starts = 1 + 8 * panels * (panels + 1)
        G = np.zeros((len(numbers), q + n, q + n))
        G[:, i, j] = numbers[:, starts[:-1] + 4 * j + i % 4]
        inverse, power = np.split(numbers[:, starts[-1] :], [q + n], axis=1)
        x = np.hstack([inputs, np.ones((len(inputs), 1))])
        lags = x[:, : self._n_lagged].reshape(len(x), -1, n)
        x[:, : self._n_lagged] = ((lags - centre) / deviation).reshape(len(x), -1)
        x = np.nan_to_num(x)  # where no rows precede a forecast, their means do
        root = np.asarray(np.linalg.inv(G[:, q:, q:]), dtype=np.float64)
        means = -np.einsum("kdc,kcq,rq->rkd", root, G[:, q:, :q], x)
        squares = np.einsum("kpq,rq->rkp", G[:, :q, :q], x) ** 2
        leverage = (squares * inverse[:, :q]).sum(axis=2)
        w = weights = np.ones(1)
        if self._is_student:
            half = 0.5 * prior["noise_dof"]
            w, weights = gammaincinv(half, ndtr(NODES)) / half, NODE_WEIGHTS

        def locate(y: Floats) -> Floats:
            return np.asarray((y - centre) / deviation - means)

        dof = 2 * power[:, 0] - n
        roots = root / np.sqrt(inverse[:, None, q:])
        law = JointLaw(locate, roots, leverage, dof, 1 / w, weights)
        return law, root, inverse[:, q:]

    def _describe(self, expected: Floats) -> dict[str, Floats]:
        n, p, q = len(self.offset_), self._n_lagged, self._n_predictors
        deviation = np.sqrt(self._units[1])
        A, covariances = np.split(expected, [n * q], axis=1)
        A = self._in_units_of_data(A.reshape(-1, n, q))
        companions = np.tile(np.eye(p, p, -n), (len(A), 1, 1))
        companions[:, :n] = A[:, :p, :p]
        found = {
            "intercepts_": A[..., -1],
            "coefficients_": A[..., :-1],
            "covariances_": covariances.reshape(-1, n, n) * np.outer(deviation, deviation),
            "spectral_radii_": abs(np.linalg.eigvals(companions)).max(axis=1, initial=0),
        }
        if p:
            # Behind earlier rows intercepts are least telling.
            found["intercepts_"] = found.pop("intercepts_")
        return found

    def _shown_numbers(self, attribute: str, values: Floats) -> list[StateNumber]:
        if attribute == "spectral_radii_":
            return []  # they follow from coefficients
        if attribute == "covariances_":
            # Student's t noise has scales.
            return deviations(values, "scale" if self._is_student else "deviation")
        return self._numbers_of_regressions(
            attribute, values, "mean" if self._n_predictors == 1 else "intercept"
        )

    def _split(self, values: Floats) -> dict[str, Floats]:
        n = self.mean_.size
        mean, strength, rest = np.split(values, [n, n + len(self.strength_)])
        mean = self._in_units_of_data(mean.reshape(self.mean_.shape))
        names = self._hyperparameters[2:]
        return {
            "mean": mean,
            "strength": strength,
            **dict(zip(names, rest, strict=True)),
        }
