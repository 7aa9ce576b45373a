from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._types cimport int32_t, int64_t


cdef extern from "_product_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass KnownStates:
        void configure(const int32_t *labels, int64_t n_steps) except +
        cbool is_active()
        void resize(int32_t n_slots) except +
        void settle(const int32_t *slots) except +
        cbool is_kept_by(const int32_t *slots) except +
        cbool equals(const KnownStates &other)

    cdef cppclass ProductEmission(Emission):
        KnownStates known
        ProductEmission(vector[shared_ptr[Emission]] parts) except +


cdef class ProductStats(EmissionStats):
    cdef ProductEmission *native            # what `shared` owns
    cdef readonly tuple parts               # of EmissionStats
    cdef const int32_t[::1] labels          # known state of every step or -1
