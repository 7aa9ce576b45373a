from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from skihmm.core._emission cimport EmissionStats
from skihmm.core._family cimport Family
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t

from numpy.random cimport bitgen_t


cdef extern from "_conjugate_table.hpp" namespace "skihmm" nogil:
    cdef cppclass ConjugateTable:
        void configure(Family *family, const float64_t *values, int64_t n_steps) except +
        const Family *family()
        cbool is_missing(int64_t t) except +
        void resize(int32_t n) except +
        float64_t add(int64_t t, int32_t k) except +
        float64_t remove(int64_t t, int32_t k) except +
        void commit()
        void rollback() except +
        float64_t fill(int64_t t, float64_t *out) except +
        void fill_pair(int64_t t, const int32_t *states, float64_t *out) except +
        float64_t log_joint() except +
        void settle(const int32_t *slots) except +
        void draw_hyperparameters(bitgen_t *g) except +
        void read_hyperparameters(float64_t *out)
        cbool set_hyperparameters(const float64_t *numbers) except +
        void adapt() except +
        void clear()
        void read(int32_t k, float64_t *out)
        void write(int32_t k, const float64_t *numbers)
        void mean(int32_t k, float64_t *out) except +
        void draw_predictive(int32_t k, float64_t *y, bitgen_t *g) except +
        cbool is_sound(const float64_t *numbers) except +
        float64_t error(const float64_t *numbers, int32_t n, const int32_t *labels) except +
        void draw_parameters(const int32_t *occupancy, bitgen_t *g) except +
        const float64_t *likelihoods(int64_t t, const int32_t *occupancy) except +
        float64_t log_likelihood(int64_t t, int32_t k, bitgen_t *g) except +
        void draw_newborn(int32_t k, int64_t t, bitgen_t *g) except +
        size_t n_bytes()


cdef class ConjugateStats(EmissionStats):
    # The numbers of all states for one conjugate family (see core/_family.hpp).
    # (A family may throw: one whose functions are in Python.)
    cdef ConjugateTable table
    cdef const float64_t[:, ::1] values     # values[t, c]; NaN = missing
    cdef int set_family(self, Family *family) except -1
    cdef int set_hyperparameters(self, arrays) except -1
    cdef object problem_of(self, numbers, labels)
