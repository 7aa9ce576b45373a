# Auxiliary-variable updates of concentrations (Teh et al. 2006; Escobar and West 1995),
# prior Gamma(shape, rate).
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._franchise cimport Seating
from skihmm.core._types cimport float64_t

# Concentration shared by the rows of all given seatings: `alpha` of a franchise.
cdef float64_t resample_shared(const vector[const Seating *] &seatings, float64_t shape,
                               float64_t rate, bitgen_t *g) noexcept nogil
# `gamma` of a franchise with infinitely many dishes.
cdef float64_t resample_gamma_infinite(const Seating *seating, float64_t shape,
                                       float64_t rate, bitgen_t *g) noexcept nogil
# `gamma` shared by franchises over V symbols with the collapsed uniform root.
cdef float64_t resample_gamma_uniform(const vector[const Seating *] &seatings,
                                      float64_t shape, float64_t rate,
                                      bitgen_t *g) noexcept nogil
