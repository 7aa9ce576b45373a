# Products of many probabilities; apart from what seats customers, which emissions need not read.
from skihmm.core._types cimport float64_t


cdef extern from "_product.hpp" namespace "skihmm" nogil:
    cdef cppclass Product:
        float64_t value         # the product is value * exp(log_scale)
        float64_t log_scale
        void reset()
        void multiply(float64_t factor)
        void multiply_log(float64_t log_factor)
        float64_t log()
