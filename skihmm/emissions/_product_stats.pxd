from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._types cimport int32_t, int64_t


cdef extern from "_known_states.hpp" namespace "skihmm" nogil:
    cdef cppclass KnownStates(Emission):
        KnownStates(const int32_t *labels, int64_t n_steps, cbool is_closed) except +
        cbool is_kept_by(const int32_t *slots) except +
        cbool equals(const KnownStates &other)


cdef extern from "_product_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass ProductEmission(Emission):
        ProductEmission(vector[shared_ptr[Emission]] parts) except +


cdef class ProductStats(EmissionStats):
    cdef readonly tuple parts               # of EmissionStats


cdef class KnownStatesStats(EmissionStats):
    cdef KnownStates *native                # owned by `shared`
    cdef const int32_t[::1] labels
    cdef cbool is_closed
