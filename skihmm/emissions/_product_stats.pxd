from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from cpython.ref cimport PyObject

from skihmm.core._emission cimport EmissionStats
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_known_states.hpp" namespace "skihmm" nogil:
    void add_logs(int32_t n, const float64_t *probs, float64_t *out)
    void fill_exp(int32_t n, const float64_t *log_p, float64_t largest, float64_t least,
                  float64_t *out)

    cdef cppclass KnownStates:
        void configure(const int32_t *labels, int64_t n_steps) except +
        cbool is_active()
        cbool is_free(int64_t t)
        void resize(int32_t n_slots) except +
        float64_t log_prob(int64_t t, int32_t k)
        void add(int64_t t, int32_t k) except +
        void remove(int64_t t, int32_t k) except +
        void commit()
        void rollback() except +
        void settle(const int32_t *slots) except +
        cbool is_kept_by(const int32_t *slots) except +
        cbool equals(const KnownStates &other)
        void draw() except +
        cbool may_be_fresh(int64_t t, const int32_t *occupancy)
        int32_t slot_of(int64_t t)
        void draw_newborn(int32_t k, int64_t t)
        size_t n_bytes()


cdef class ProductStats(EmissionStats):
    # Independent emissions of one state, each with its own columns, and known states.
    cdef readonly tuple parts               # of EmissionStats
    cdef vector[PyObject *] children        # the same, for code without the GIL
    cdef const int32_t[::1] labels          # known state of every step or -1
    cdef KnownStates known
    cdef vector[float64_t] row, logs        # scratch
