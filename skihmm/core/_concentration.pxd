from numpy.random cimport bitgen_t

from skihmm.core._franchise cimport Root, Seating, SymbolSeating
from skihmm.core._types cimport float64_t


cdef extern from "_concentration.hpp" namespace "skihmm" nogil:
    # Posterior of one concentration given the seatings counted, prior Gamma(shape, rate).
    cdef cppclass ConcentrationPosterior:
        void set_prior(float64_t shape, float64_t rate)
        void count_rows(const Seating &s, bitgen_t *g)
        void count_rows(const SymbolSeating &s, bitgen_t *g)
        void count_root(const Root &root, bitgen_t *g)
        float64_t draw(bitgen_t *g)
