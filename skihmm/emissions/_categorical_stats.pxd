from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._franchise cimport SymbolRestaurants
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport SeatingRecord
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_categorical_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass CategoricalEmission(Emission):
        vector[SymbolRestaurants] seatings
        cbool is_hierarchical
        float64_t alpha, gamma
        CategoricalEmission(const int32_t *codes, int64_t n_steps,
                            const vector[int32_t] &n_symbols, cbool is_hierarchical,
                            float64_t prior_shape, float64_t prior_rate,
                            cbool draws_pseudo_count) except +
        void set_concentrations(float64_t alpha, float64_t gamma)


# Codes of symbols of so many kinds in every column, checked, as int32.
cdef object codes_of(codes, n_symbols, vector[int32_t] *sizes)
# A symbol of each of the rows, in a table of probabilities of which the first n_known count.
cdef object draw_symbols(probs, rows, n_known, RandomStream stream)


cdef class CategoricalStats(EmissionStats):
    cdef CategoricalEmission *native    # what `shared` owns
    cdef const int32_t[:, ::1] codes    # codes[t, c]: symbol in column c, -1 = missing
    cdef intp_t n_columns
    cdef readonly object concentration_prior    # (shape, rate) or None
    # The records of all columns, checked, over states 0 .. n_states - 1.
    cdef int _records(self, arrays, int32_t n_states, vector[SeatingRecord] *out,
                      float64_t *alpha_out, float64_t *gamma_out) except -1
