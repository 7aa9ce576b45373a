"""Statistics of conjugate families: Gaussian, autoregressive, Poisson, Bernoulli."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission
from skihmm.core._family cimport Family
from skihmm.core._franchise cimport FIRST
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport entry_of
from skihmm.emissions._gaps import filled_places, first_fillings


cdef extern from "_gaussian_families.hpp" namespace "skihmm" nogil:
    cdef cppclass GaussianHyperprior:
        GaussianHyperprior(int32_t d, const float64_t *means, const float64_t *variances,
                           cbool draws_mean, cbool draws_strength,
                           cbool draws_scale) except +

    cdef cppclass NormalInverseGammaFamily(Family):
        NormalInverseGammaFamily(int32_t d, const float64_t *mean,
                                 const float64_t *strength, float64_t shape,
                                 const float64_t *scale,
                                 const GaussianHyperprior &hyperprior,
                                 int64_t n_steps) except +

    cdef cppclass NormalInverseWishartFamily(Family):
        NormalInverseWishartFamily(int32_t d, const float64_t *mean, float64_t strength,
                                   float64_t dof, const float64_t *scale,
                                   const GaussianHyperprior &hyperprior,
                                   int64_t n_steps) except +

cdef extern from "_count_families.hpp" namespace "skihmm" nogil:
    cdef cppclass GammaPoissonFamily(Family):
        GammaPoissonFamily(int32_t d, const float64_t *shape, const float64_t *rate,
                           const float64_t *means, cbool draws_shape,
                           cbool draws_rate) except +

    cdef cppclass BetaBernoulliFamily(Family):
        BetaBernoulliFamily(int32_t d, const float64_t *a, const float64_t *b,
                            cbool draws_a, cbool draws_b) except +

cdef extern from "_autoregressive_family.hpp" namespace "skihmm" nogil:
    cdef cppclass AutoregressiveFamily(Family):
        AutoregressiveFamily(int32_t d, int32_t order, const float64_t *centre,
                             const float64_t *deviation, const float64_t *mean,
                             const float64_t *strength, float64_t dof,
                             const float64_t *scale, cbool draws_mean,
                             cbool draws_strength, cbool draws_scale,
                             int64_t n_steps) except +


# Tolerance of the probabilities of a record against a recount: well above the rounding errors
# of a few sweeps.
cdef float64_t TOLERANCE = 1e-6


cdef object _floats_of(arrays, str name, tuple shape):
    # Read an array from an unchecked record.
    numbers = entry_of(arrays, name, "emission")
    if not isinstance(numbers, np.ndarray) or numbers.dtype != np.float64 or (
            numbers.shape != shape):
        raise ValueError(
            f"emission: {name} is {getattr(numbers, 'dtype', type(numbers))} of shape "
            f"{getattr(numbers, 'shape', None)}; expected float64 of shape {shape}")
    return np.ascontiguousarray(numbers)


cdef const float64_t[::1] _floats(values, n):
    # One number per column.
    return np.ascontiguousarray(np.broadcast_to(values, n), dtype=np.float64)


cdef int _stop(void *is_stopped) except -1 with gil:
    # In the main thread the call runs the handlers of signals.
    if (<object> is_stopped)():
        raise KeyboardInterrupt
    return 0


cdef class ConjugateStats(EmissionStats):
    """Sufficient statistics of every state for a conjugate family.

    Build it with one of the functions of this module.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns + n_inputs), float64
        Observations, of which NaN is missing, and their inputs.
    """

    def __init__(self, values):
        self.values = np.ascontiguousarray(values, dtype=np.float64)

    cdef ConjugateStats set_family(self, Family *family):
        cdef const float64_t *values = NULL
        if self.values.shape[0] > 0:
            values = &self.values[0, 0]
        self.table = new ConjugateTable(family, values, self.values.shape[0])
        self.shared.reset(<Emission *> self.table)
        return self

    def watch(self, is_stopped):
        self.is_stopped = is_stopped
        self.table.watch(_stop, <void *> is_stopped)

    def open_gaps(self, starts, every=False):
        cdef vector[Gap] gaps
        cdef Gap gap
        cdef float64_t[:, ::1] view
        cdef int32_t order = self.table.family().gap_order, d = self.table.family().n_columns
        if order < 0:
            return super().open_gaps(starts)
        values = np.array(self.values)
        steps, columns = places = filled_places(values[:, :d], starts, order, every)
        if len(steps):
            values[places] = first_fillings(values[:, :d], starts, order, steps, columns)
            ends = np.append(starts[1:], len(values))
            ends = ends[np.searchsorted(ends, steps, side="right")]
            for gap.t, gap.column, gap.end in zip(steps, columns, ends, strict=True):
                gaps.push_back(gap)
            self.completed, self.places = values, places
            view = values
            self.values = view
            self.table.take_gaps(&view[0, 0], gaps)
        return places

    def filled(self):
        return super().filled() if self.places is None else self.completed[self.places]

    def set_filled(self, filled):
        if self.places is not None:
            self.completed[self.places] = filled
            self.table.spread()

    def augment(self, slots, RandomStream stream):
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        means = np.empty(len(self.filled()))
        cdef float64_t[::1] view = means
        if self.places is not None:
            self.table.draw_gaps(&slot[0], stream.bits, &view[0])
        return means

    def columns(self, arrays=None):
        if arrays is not None:
            self.set_hyperparameters(arrays)
        return [self]

    def records(self, arrays):
        return [arrays]

    def hyperparameters(self):
        """Hyperparameters of the common prior of all states, as an array of the family.

        Returns
        -------
        hyperparameters : ndarray of float64
        """
        cdef float64_t[::1] view
        numbers = np.empty(self.table.family().n_hyperparameters)
        if len(numbers):
            view = numbers
            self.table.read_hyperparameters(&view[0])
        return numbers

    def expectations(self, arrays, n_states):
        """Posterior means of the parameters of the states of a record.

        Parameters
        ----------
        arrays : dict
            Result of :meth:`to_arrays`; its hyperparameters replace those of these
            statistics.
        n_states : int

        Returns
        -------
        expectations : ndarray of shape (n_states, n_expected)
            Layout of the family.
        """
        cdef int32_t k
        cdef const float64_t[:, ::1] numbers
        out = np.empty((n_states, self.table.family().n_expected))
        cdef float64_t[:, ::1] view = out
        self.set_hyperparameters(arrays)
        numbers = self.numbers_of(arrays, n_states)
        for k in range(numbers.shape[0]):
            self.table.family().expect(&numbers[k, 0], 1, &view[k, 0])
        return out

    cdef int set_hyperparameters(self, arrays) except -1:
        # Those of a record; the numbers of the slots stay those of the former.
        cdef const float64_t[::1] view
        cdef int32_t n = self.table.family().n_hyperparameters
        if n == 0:
            return 0
        numbers = _floats_of(arrays, "hyperparameters", (n,))
        view = numbers
        if not self.table.set_hyperparameters(&view[0]):
            raise ValueError(
                f"emission: hyperparameters is {numbers!r:.200}; expected those of a prior")
        return 0

    def take_hyperparameters(self, arrays):
        self.set_hyperparameters(arrays)
        self.table.adapt()

    def to_arrays(self, labels):
        cdef intp_t k
        cdef const int32_t[::1] label = np.ascontiguousarray(labels, dtype=np.int32)
        numbers = np.empty(((np.asarray(labels) >= 0).sum() - 1, self.table.family().width))
        # The start restaurant has the last label, and no observations.
        cdef float64_t[:, ::1] view = numbers
        for k in range(label.shape[0]):
            if 0 <= label[k] < view.shape[0]:
                self.table.read(<int32_t> k, &view[label[k], 0])
        if self.table.family().n_hyperparameters == 0:
            return {"numbers": numbers}
        return {"numbers": numbers, "hyperparameters": self.hyperparameters()}

    cdef object numbers_of(self, arrays, int32_t n_states):
        cdef int32_t k
        cdef const float64_t[:, ::1] view
        numbers = _floats_of(arrays, "numbers", (n_states, self.table.family().width))
        view = numbers
        for k in range(n_states):
            if not self.table.is_sound(&view[k, 0]):
                raise ValueError(
                    f"emission: the numbers of state {k} are no statistics of observations")
        return numbers

    cdef object problem_of(self, numbers, labels):
        # Difference of the statistics of states 0, 1, ... from a recount.
        cdef const float64_t[:, ::1] view = numbers
        cdef const int32_t[::1] label = np.ascontiguousarray(labels, dtype=np.int32)
        cdef float64_t error = 0.0
        if label.shape[0] > 0:
            error = self.table.error(&view[0, 0], <int32_t> view.shape[0], &label[0])
        if error <= TOLERANCE:
            return None
        return f"the numbers differ from a recount of the observations by {error:.2g}"

    def check_arrays(self, arrays, labels):
        before = {"hyperparameters": self.hyperparameters()}
        self.set_hyperparameters(arrays)
        try:
            problem = self.problem_of(self.numbers_of(arrays, np.max(labels) + 1), labels)
        finally:
            self.set_hyperparameters(before)
        if problem is not None:
            raise ValueError(f"emission: {problem}")

    def load(self, arrays, int32_t n_states):
        cdef int32_t k
        cdef const float64_t[:, ::1] view
        self.set_hyperparameters(arrays)
        view = self.numbers_of(arrays, n_states)
        self.table.clear()
        for k in range(n_states):
            self.table.write(FIRST + k, &view[k, 0])

    def fill_inputs(self, float64_t[:, ::1] rows, const int64_t[::1] previous):
        """Set the inputs of rows that follow others.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_columns + n_inputs)
            Changed in place.
        previous : ndarray of int64, shape (n_filled,)
            For the last `n_filled` rows, one after the other, the index of the row that
            each follows; -1 at the beginning of a sequence.
        """
        cdef const Family *family = self.table.family()
        cdef intp_t i, first = rows.shape[0] - previous.shape[0]
        for i in range(previous.shape[0]):
            family.next_inputs(
                &rows[previous[i], 0] if previous[i] >= 0 else NULL,
                &rows[first + i, 0] + family.n_columns)

    cdef object rows_with(self, int64_t n, inputs):
        rows = np.empty((n, self.values.shape[1]))
        if inputs is None:
            self.fill_inputs(rows, np.full(n, -1))
        else:
            rows[:, self.table.family().n_columns:] = inputs
        return rows

    def predictives(self, slots, inputs=None):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        rows = self.rows_with(slot.shape[0], inputs)
        cdef float64_t[:, ::1] view = rows
        for i in range(slot.shape[0]):
            self.table.mean(slot[i], &view[i, 0])
        return list(np.ascontiguousarray(rows[:, :self.table.family().n_columns].T))

    def draw_values(self, slots, n_known, RandomStream stream, inputs=None):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        rows = self.rows_with(slot.shape[0], inputs)
        cdef float64_t[:, ::1] view = rows
        for i in range(slot.shape[0]):
            self.table.draw_predictive(slot[i], &view[i, 0], stream.bits)
        return list(np.ascontiguousarray(rows[:, :self.table.family().n_columns].T))

    def check(self, slots):
        cdef int32_t k
        numbers = np.empty((self.table.n_slots, self.table.family().width))
        cdef float64_t[:, ::1] view = numbers
        for k in range(self.table.n_slots):
            self.table.read(k, &view[k, 0])
        return self.problem_of(numbers, slots)


def normal_inverse_gamma(values, mean, strength, shape, scale, units=(0.0, 1.0),
                         drawn=()):
    """Independent Gaussian columns.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
    mean, strength, scale : ndarray of shape (n_columns,)
        Of the prior at the start of a chain: ``sigma^2 ~ InvGamma(shape, scale)``,
        ``mu ~ Normal(mean, sigma^2 / strength)``.
    shape : float
    units : (ndarray of shape (n_columns,), ndarray of shape (n_columns,))
        Means and variances of the data: the units of the hyperpriors.
    drawn : collection of {"mean", "strength", "scale"}
        Hyperparameters that chains draw from their posterior.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef ConjugateStats stats = ConjugateStats(values)
    cdef int32_t d = <int32_t> stats.values.shape[1]
    cdef const float64_t[::1] at = _floats(mean, d), strengths = _floats(strength, d)
    cdef const float64_t[::1] scales = _floats(scale, d)
    cdef const float64_t[::1] centre = _floats(units[0], d), variance = _floats(units[1], d)
    return stats.set_family(new NormalInverseGammaFamily(
        d, &at[0], &strengths[0], shape, &scales[0],
        GaussianHyperprior(d, &centre[0], &variance[0], "mean" in drawn,
                           "strength" in drawn, "scale" in drawn), stats.values.shape[0]))


def normal_inverse_wishart(values, mean, strength, dof, scale, units=(0.0, 1.0),
                           drawn=()):
    """Gaussian observations with full covariance.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
    mean : ndarray of shape (n_columns,)
        Of the prior at the start of a chain: ``Sigma ~ InvWishart(scale, dof)``,
        ``mu ~ Normal(mean, Sigma / strength)``.
    strength, dof : float
    scale : ndarray of shape (n_columns, n_columns)
        Positive definite; diagonal if it is drawn.
    units : (ndarray of shape (n_columns,), ndarray of shape (n_columns,))
        Means and variances of the data: the units of the hyperpriors.
    drawn : collection of {"mean", "strength", "scale"}
        Hyperparameters that chains draw from their posterior.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef ConjugateStats stats = ConjugateStats(values)
    cdef int32_t d = <int32_t> stats.values.shape[1]
    cdef const float64_t[::1] triangle = scale[np.tri(d, dtype=bool)]
    cdef const float64_t[::1] at = _floats(mean, d)
    cdef const float64_t[::1] centre = _floats(units[0], d), variance = _floats(units[1], d)
    return stats.set_family(new NormalInverseWishartFamily(
        d, &at[0], strength, dof, &triangle[0],
        GaussianHyperprior(d, &centre[0], &variance[0], "mean" in drawn,
                           "strength" in drawn, "scale" in drawn), stats.values.shape[0]))


def autoregressive_normal(values, int32_t order, units, mean, strength, dof, scale,
                          drawn=()):
    """Vector autoregression with intercept.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns * (order + 1))
    order : int
    units : (ndarray of shape (n_columns,), ndarray of shape (n_columns,))
        Means and standard deviations of the columns, by which they are standardised; all
        other parameters are those of standardised columns.
    mean : ndarray of shape (n_columns, n_columns * order + 1)
        Of the prior at the start of a chain: ``Sigma ~ InvWishart(scale, dof)``,
        ``A[:, j] | Sigma ~ Normal(mean[:, j], Sigma / strength)``.
    strength : ndarray of shape (order + 1,)
        Of the coefficients of every lag, and of the intercepts.
    dof : float
    scale : ndarray of shape (n_columns, n_columns)
        Positive definite; its factor is drawn.
    drawn : collection of {"mean", "strength", "scale"}
        Hyperparameters that chains draw from their posterior.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef ConjugateStats stats = ConjugateStats(values)
    cdef int32_t d = <int32_t> scale.shape[0]
    cdef const float64_t[::1] triangle = scale[np.tri(d, dtype=bool)]
    cdef const float64_t[::1] centre = _floats(units[0], d), deviation = _floats(units[1], d)
    cdef const float64_t[::1] at = _floats(np.ravel(mean), d * (d * order + 1))
    cdef const float64_t[::1] strengths = _floats(strength, order + 1)
    return stats.set_family(new AutoregressiveFamily(
        d, order, &centre[0], &deviation[0], &at[0], &strengths[0], dof, &triangle[0],
        "mean" in drawn, "strength" in drawn, "scale" in drawn, stats.values.shape[0]))


def gamma_poisson(values, shape, rate, means=1.0, drawn=()):
    """Independent Poisson columns.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
        Counts.
    shape, rate : ndarray of shape (n_columns,)
        Of the Gamma prior on the columns' rates at the start of a chain.
    means : ndarray of shape (n_columns,)
        Of the data, > 0: the units of the hyperpriors.
    drawn : collection of {"shape", "rate"}
        Hyperparameters that chains draw from their posterior.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef ConjugateStats stats = ConjugateStats(values)
    cdef int32_t d = <int32_t> stats.values.shape[1]
    cdef const float64_t[::1] shapes = _floats(shape, d), rates = _floats(rate, d)
    cdef const float64_t[::1] centre = _floats(means, d)
    return stats.set_family(new GammaPoissonFamily(
        d, &shapes[0], &rates[0], &centre[0], "shape" in drawn,
        "rate" in drawn))


def beta_bernoulli(values, a, b, drawn=()):
    """Independent binary columns.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
        0 and 1.
    a, b : ndarray of shape (n_columns,)
        Of the Beta prior on the columns' probabilities of 1 at the start of a chain.
    drawn : collection of {"a", "b"}
        Hyperparameters that chains draw from their posterior.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef ConjugateStats stats = ConjugateStats(values)
    cdef int32_t d = <int32_t> stats.values.shape[1]
    cdef const float64_t[::1] ones = _floats(a, d), zeros = _floats(b, d)
    return stats.set_family(new BetaBernoulliFamily(
        d, &ones[0], &zeros[0], "a" in drawn, "b" in drawn))
