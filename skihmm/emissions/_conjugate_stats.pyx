"""Statistics of conjugate families: Gaussian, Poisson, Bernoulli."""

import numpy as np

from numpy.random cimport bitgen_t

from skihmm.core._family cimport Family
from skihmm.core._franchise cimport Product
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport entry_of


cdef extern from "_conjugate_families.hpp" namespace "skihmm" nogil:
    cdef cppclass NormalInverseGammaFamily(Family):
        NormalInverseGammaFamily(int32_t d, const float64_t *mean, float64_t strength,
                                 float64_t shape, const float64_t *scale,
                                 int64_t n_steps) except +

    cdef cppclass NormalInverseWishartFamily(Family):
        NormalInverseWishartFamily(int32_t d, const float64_t *mean, float64_t strength,
                                   float64_t dof, const float64_t *triangle,
                                   int64_t n_steps) except +

    cdef cppclass GammaPoissonFamily(Family):
        GammaPoissonFamily(int32_t d, const float64_t *shape,
                           const float64_t *rate) except +

    cdef cppclass BetaBernoulliFamily(Family):
        BetaBernoulliFamily(int32_t d, float64_t a, float64_t b) except +


# Probabilities by a record may differ from those by a recount by this much: what
# rounding leaves after a few sweeps, with room to spare.
cdef float64_t TOLERANCE = 1e-6


cdef class ConjugateStats(EmissionStats):
    """Sufficient statistics of every state for a conjugate family.

    Build it with one of the functions of this module.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns), float64
        Observations; NaN is missing.
    """

    def __init__(self, values):
        self.values = np.ascontiguousarray(values, dtype=np.float64)
        self.n_steps = self.values.shape[0]
        self.draws_parameters = True

    cdef int set_family(self, Family *family) except -1:
        cdef const float64_t *values = NULL
        if self.n_steps > 0:
            values = &self.values[0, 0]
        self.table.configure(family, values, self.n_steps)
        return 0

    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        r.multiply_log(self.table.add(t, k))
        return 0

    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        r.multiply_log(self.table.remove(t, k))
        return 0

    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil:
        return self.table.fill(t, out)

    cdef int fill_pair(self, intp_t t, const int32_t *states,
                       float64_t *out) except -1 nogil:
        self.table.fill_pair(t, states, out)
        return 0

    cdef int resize(self, int32_t n_slots) except -1 nogil:
        self.n_slots = n_slots
        self.table.resize(n_slots)
        return 0

    cdef int commit(self) except -1 nogil:
        self.table.commit()
        return 0

    cdef int rollback(self) except -1 nogil:
        self.table.rollback()
        return 0

    cdef float64_t log_joint(self) except? -1 nogil:
        return self.table.log_joint()

    cdef int settle(self, const int32_t *states) except -1 nogil:
        self.table.settle(states)
        return 0

    cdef size_t n_bytes(self) noexcept nogil:
        return self.table.n_bytes() + 8 * self.n_steps * self.values.shape[1]

    # -- parameters

    cdef int draw_parameters(self, const int32_t *occupancy, bint lazy,
                             bitgen_t *g) except -1 nogil:
        self.table.draw_parameters(occupancy, g)
        return 0

    cdef const float64_t *likelihoods(self, intp_t t,
                                      const int32_t *occupancy) except NULL nogil:
        return self.table.likelihoods(t, occupancy)

    cdef float64_t log_likelihood(self, intp_t t, int32_t k, bitgen_t *g) except? -1 nogil:
        return self.table.log_likelihood(t, k, g)

    cdef int draw_newborn(self, int32_t k, intp_t t, bitgen_t *g) except -1 nogil:
        self.table.draw_newborn(k, t, g)
        return 0

    cdef int reseat(self, const int32_t *states, bitgen_t *g) except -1 nogil:
        self.table.settle(states)
        return 0

    cdef const Family *family(self) except NULL:
        return self.table.family()

    # -- Python side

    def columns(self, arrays=None):
        return [self]

    def records(self, arrays):
        return [arrays]

    def to_arrays(self, labels):
        cdef intp_t k
        cdef const int32_t[::1] label = np.ascontiguousarray(labels, dtype=np.int32)
        numbers = np.empty(((np.asarray(labels) >= 0).sum() - 1, self.table.family().width))
        # (The start restaurant has the last label, and no observations.)
        cdef float64_t[:, ::1] view = numbers
        for k in range(label.shape[0]):
            if 0 <= label[k] < view.shape[0]:
                self.table.read(<int32_t> k, &view[label[k], 0])
        return {"numbers": numbers}

    cdef object numbers_of(self, arrays, int32_t n_states):
        cdef int32_t k
        cdef const float64_t[:, ::1] view
        numbers = entry_of(arrays, "numbers", "emission")
        if not isinstance(numbers, np.ndarray) or numbers.dtype != np.float64 or (
                numbers.shape != (n_states, self.table.family().width)):
            raise ValueError(
                f"emission: numbers is {getattr(numbers, 'dtype', type(numbers))} of shape "
                f"{getattr(numbers, 'shape', None)}; expected float64 of shape "
                f"({n_states}, {self.table.family().width})")
        numbers = np.ascontiguousarray(numbers)
        view = numbers
        for k in range(n_states):
            if not self.table.is_sound(&view[k, 0]):
                raise ValueError(
                    f"emission: the numbers of state {k} are no statistics of observations")
        return numbers

    cdef object problem_of(self, numbers, labels):
        # What distinguishes numbers of states 0, 1, ... from those of the observations.
        cdef const float64_t[:, ::1] view = numbers
        cdef const int32_t[::1] label = np.ascontiguousarray(labels, dtype=np.int32)
        cdef float64_t error = 0.0
        if label.shape[0] > 0:
            error = self.table.error(&view[0, 0], <int32_t> view.shape[0], &label[0])
        if error <= TOLERANCE:
            return None
        return f"the numbers differ from a recount of the observations by {error:.2g}"

    def check_arrays(self, arrays, labels):
        problem = self.problem_of(self.numbers_of(arrays, np.max(labels) + 1), labels)
        if problem is not None:
            raise ValueError(f"emission: {problem}")

    def load(self, arrays, slots):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef const float64_t[:, ::1] view = self.numbers_of(arrays, <int32_t> slot.shape[0])
        for i in range(slot.shape[0]):
            self.table.write(slot[i], &view[i, 0])

    def predictives(self, slots):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        means = np.empty((slot.shape[0], self.values.shape[1]))
        cdef float64_t[:, ::1] view = means
        for i in range(slot.shape[0]):
            self.table.mean(slot[i], &view[i, 0])
        return list(np.ascontiguousarray(means.T))

    def draw_values(self, slots, n_known, RandomStream stream):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        values = np.empty((slot.shape[0], self.values.shape[1]))
        cdef float64_t[:, ::1] view = values
        for i in range(slot.shape[0]):
            self.table.draw_predictive(slot[i], &view[i, 0], stream.bits)
        return list(np.ascontiguousarray(values.T))

    def check(self, slots):
        cdef int32_t k
        numbers = np.empty((self.n_slots, self.table.family().width))
        cdef float64_t[:, ::1] view = numbers
        for k in range(self.n_slots):
            self.table.read(k, &view[k, 0])
        return self.problem_of(numbers, slots)


def normal_inverse_gamma(values, mean, strength, shape, scale):
    """Independent Gaussian columns.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
    mean, scale : ndarray of shape (n_columns,)
        Of the prior: ``sigma^2 ~ InvGamma(shape, scale)``,
        ``mu ~ Normal(mean, sigma^2 / strength)``.
    strength, shape : float

    Returns
    -------
    stats : ConjugateStats
    """
    cdef const float64_t[::1] means = np.ascontiguousarray(mean, dtype=np.float64)
    cdef const float64_t[::1] scales = np.ascontiguousarray(scale, dtype=np.float64)
    cdef ConjugateStats stats = ConjugateStats(values)
    stats.set_family(new NormalInverseGammaFamily(
        <int32_t> means.shape[0], &means[0], strength, shape, &scales[0], stats.n_steps))
    return stats


def normal_inverse_wishart(values, mean, strength, dof, scale):
    """Gaussian observations with full covariance.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
    mean : ndarray of shape (n_columns,)
        Of the prior: ``Sigma ~ InvWishart(scale, dof)``,
        ``mu ~ Normal(mean, Sigma / strength)``.
    strength, dof : float
    scale : ndarray of shape (n_columns, n_columns)
        Positive definite.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef const float64_t[::1] means = np.ascontiguousarray(mean, dtype=np.float64)
    lower = np.linalg.cholesky(scale)
    cdef const float64_t[::1] triangle = lower[np.tril_indices(len(lower))]
    cdef ConjugateStats stats = ConjugateStats(values)
    stats.set_family(new NormalInverseWishartFamily(
        <int32_t> means.shape[0], &means[0], strength, dof, &triangle[0], stats.n_steps))
    return stats


def gamma_poisson(values, shape, rate):
    """Independent Poisson columns.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
        Counts.
    shape, rate : ndarray of shape (n_columns,)
        Of the Gamma prior on the columns' rates.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef const float64_t[::1] shapes = np.ascontiguousarray(shape, dtype=np.float64)
    cdef const float64_t[::1] rates = np.ascontiguousarray(rate, dtype=np.float64)
    cdef ConjugateStats stats = ConjugateStats(values)
    stats.set_family(new GammaPoissonFamily(
        <int32_t> shapes.shape[0], &shapes[0], &rates[0]))
    return stats


def beta_bernoulli(values, a, b):
    """Independent binary columns.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns)
        0 and 1.
    a, b : float
        Of the Beta prior on the columns' probabilities of 1.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef ConjugateStats stats = ConjugateStats(values)
    stats.set_family(new BetaBernoulliFamily(<int32_t> stats.values.shape[1], a, b))
    return stats
