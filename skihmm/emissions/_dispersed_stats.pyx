"""Statistics of families with a common dispersion: negative binomial, gamma, von Mises."""

import numpy as np

from skihmm.core._family cimport Family  # no-cython-lint
from skihmm.core._types cimport float64_t, int32_t, int64_t
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
    cdef ConjugateStats stats = ConjugateStats(values)
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
