# Conjugate families: a state's numbers and their meaning (see _family.hpp).
from numpy.random cimport bitgen_t

from skihmm.core._types cimport float64_t, int32_t, int64_t


cdef extern from "_family.hpp" namespace "skihmm" nogil:
    cdef cppclass LearntFamily:
        int32_t n_expected
        void expect(const float64_t *s, int64_t stride, float64_t *out) except +

    cdef cppclass LinearFamily:
        int32_t gap_order

    cdef cppclass Family:
        int32_t n_columns, parameter_width
        const LearntFamily *learnt
        const LinearFamily *linear
        void next_inputs(const float64_t *row, float64_t *inputs) except +
        void draw(const float64_t *s, int64_t stride, float64_t *p, int64_t p_stride,
                  bitgen_t *g) except +
