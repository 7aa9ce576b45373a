"""Statistics of families with a common dispersion: negative binomial, gamma, von Mises."""

import numpy as np
from scipy.special import i0e, i1e

from skihmm.core._family cimport Family  # no-cython-lint
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t
from skihmm.emissions._conjugate_stats cimport ConjugateStats


cdef extern from "_dispersed_families.hpp" namespace "skihmm" nogil:
    cdef cppclass NegativeBinomialLaw:
        pass

    cdef cppclass GammaLaw:
        pass

    cdef cppclass VonMisesLaw:
        pass

    cdef cppclass DispersedFamily[Law](Family):
        DispersedFamily(int32_t d, const float64_t *hyperparameters, const float64_t *units,
                        const int32_t *is_drawn, const float64_t *values,
                        int64_t n_steps, float64_t period) except +


cdef class AngleStats(ConjugateStats):
    """Statistics of angles, which have no means but mean directions.

    The predictives are the means of exp(i angle): complex, as mixtures of angles are means of
    these numbers.
    """

    def predictives(self, slots, inputs=None):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        numbers = np.empty((slot.shape[0], self.table.family().width))
        cdef float64_t[:, ::1] view = numbers
        for i in range(slot.shape[0]):
            self.table.read(slot[i], &view[i, 0])
        # Of every column: number, sums of cosines and sines, norm.
        _, x, y, _ = numbers.reshape(len(numbers), self.table.family().n_columns, 4).T
        kappa = 1 / self.hyperparameters()[:, None]
        # The direction of an angle around its mean, and that of the mean in its posterior.
        length = np.ones_like(x)
        for concentration in (kappa, kappa * np.hypot(x, y)):
            length = length * i1e(concentration) / i0e(concentration)
        return list(length * np.exp(1j * np.arctan2(y, x)))


def dispersed(law, values, hyperparameters, units, is_drawn, period=1.0):
    """Independent columns with a mean per state and one dispersion each.

    Parameters
    ----------
    law : {"negative_binomial", "gamma", "von_mises"}
    values : ndarray of shape (n_steps, n_columns)
    hyperparameters : ndarray of shape (n_hyperparameters, n_columns)
        Of the prior at the start of a chain; the last one is the dispersion.
    units : ndarray of shape (n_hyperparameters, n_columns)
        Typical values: the units of the hyperpriors.
    is_drawn : array-like of bool, shape (n_hyperparameters,)
        Which hyperparameters chains draw from their posterior.
    period : float
        Of angles.

    Returns
    -------
    stats : ConjugateStats
    """
    kind = AngleStats if law == "von_mises" else ConjugateStats
    cdef ConjugateStats stats = kind(values)
    cdef int32_t d = <int32_t> stats.values.shape[1]
    cdef int64_t n = stats.values.shape[0]
    cdef const float64_t[::1] numbers = np.ascontiguousarray(hyperparameters, float).ravel()
    cdef const float64_t[::1] typical = np.ascontiguousarray(units, float).ravel()
    cdef const int32_t[::1] drawn = np.ascontiguousarray(is_drawn, np.int32)
    cdef const float64_t *observed = &stats.values[0, 0] if n > 0 else NULL
    if law == "negative_binomial":
        return stats.set_family(new DispersedFamily[NegativeBinomialLaw](
            d, &numbers[0], &typical[0], &drawn[0], observed, n, period))
    if law == "gamma":
        return stats.set_family(new DispersedFamily[GammaLaw](
            d, &numbers[0], &typical[0], &drawn[0], observed, n, period))
    return stats.set_family(new DispersedFamily[VonMisesLaw](
        d, &numbers[0], &typical[0], &drawn[0], observed, n, period))
