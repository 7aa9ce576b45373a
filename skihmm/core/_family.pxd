# Conjugate families: a state's numbers and their meaning (see _family.hpp).
from libcpp cimport bool as cbool
from numpy.random cimport bitgen_t

from skihmm.core._types cimport float64_t, int32_t, int64_t


cdef extern from "_family.hpp" namespace "skihmm" nogil:
    cdef cppclass Family:
        int32_t n_columns, n_inputs, width, parameter_width, n_hyperparameters, n_expected
        int32_t n_given, n_weights, gap_order
        int32_t data_width()
        int32_t row_width()
        void next_inputs(const float64_t *row, float64_t *inputs) except +
        void fill(const float64_t *table, int64_t stride, int32_t n, const float64_t *y,
                  float64_t *out) except +
        float64_t log_predictive(const float64_t *s, int64_t stride, const float64_t *y) except +
        void draw(const float64_t *s, int64_t stride, float64_t *p, int64_t p_stride,
                  bitgen_t *g) except +
        void expect(const float64_t *s, int64_t stride, float64_t *out) except +
        cbool is_sound(const float64_t *s, int64_t stride) except +
