from libcpp.vector cimport vector

from skihmm.core._emission cimport EmissionStats
from skihmm.core._franchise cimport SymbolSeating
from skihmm.core._record cimport SeatingRecord
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t

from numpy.random cimport bitgen_t


cdef extern from "_categorical_parameters.hpp" namespace "skihmm" nogil:
    cdef cppclass SymbolParameters:
        void draw(const SymbolSeating &s, const int32_t *occupancy, int32_t n_slots, bint lazy,
                  bitgen_t *g) except +
        void resize(int32_t n_slots) except +
        const float64_t *probs(int32_t symbol)
        float64_t prob(int32_t k, int32_t symbol, bitgen_t *g) except +
        void draw_newborn(int32_t k, int32_t symbol, bitgen_t *g) except +
        const float64_t *base()
        size_t n_bytes()


cdef class CategoricalStats(EmissionStats):
    # One franchise per column of X: rows are slots, dishes are symbols.
    cdef vector[SymbolSeating] seatings
    cdef const int32_t[:, ::1] codes    # codes[t, c]: symbol in column c, -1 = missing
    cdef intp_t n_columns
    cdef vector[int32_t] hints          # cell of step t in column c (Seating.add)
    cdef bint hierarchical              # HCRP (tables, concentrations) or Dirichlet
    cdef float64_t pseudo_count         # of a Dirichlet, to the last bit as it was given
    cdef bint draws_pseudo_count
    cdef readonly object concentration_prior    # (shape, rate) or None
    cdef float64_t prior_shape, prior_rate      # rate 0: keep the concentrations
    cdef vector[float64_t] logs         # scratch of fill_probs
    cdef vector[SymbolParameters] parameters    # by column; only while has_parameters
    cdef bint has_parameters
    cdef vector[float64_t] row                  # scratch of likelihoods
    cdef int _draw_pseudo_count(self, bitgen_t *g) except -1 nogil
    # The records of all columns, checked, over states 0 .. n_states - 1.
    cdef int _records(self, arrays, int32_t n_states, vector[SeatingRecord] *out,
                      float64_t *alpha_out, float64_t *gamma_out) except -1
    cdef void multiply_columns(self, intp_t t, intp_t start, intp_t stop,
                               float64_t *out) noexcept nogil
