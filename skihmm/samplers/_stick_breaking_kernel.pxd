from numpy.random cimport bitgen_t

from skihmm.core._emission cimport EmissionStats
from skihmm.core._rcd cimport Chain
from skihmm.core._types cimport float64_t, int32_t, intp_t


cdef extern from "_stick_breaking.hpp" namespace "skihmm" nogil:
    cdef cppclass ParameterEmission:
        void *self
        int (*draw_hook)(void *, const int32_t *, int, bitgen_t *) except -1 nogil
        const float64_t *(*likelihoods_hook)(void *, intp_t,
                                             const int32_t *) except NULL nogil
        int (*log_likelihood_hook)(void *, intp_t, int32_t, bitgen_t *,
                                   float64_t *) except -1 nogil
        int (*newborn_hook)(void *, int32_t, intp_t, bitgen_t *) except -1 nogil
        int (*reseat_hook)(void *, const int32_t *, bitgen_t *) except -1 nogil
        bint columns

    cdef cppclass StickBreakingSteps:
        void sweep(const Chain &chain, const ParameterEmission &emission) except +
        size_t n_bytes()

    cdef cppclass StickBreakingPaths:
        void sweep(const Chain &chain, const ParameterEmission &emission) except +
        size_t n_bytes()


# A view for the sweeps; valid while the object lives.
cdef ParameterEmission parameters_of(EmissionStats emission) noexcept nogil
