from libcpp.deque cimport deque
from libcpp.string cimport string
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._franchise cimport ContextPlace, ContextShape
from skihmm.core._record cimport SeatingRecord
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_context_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass SymbolTree:
        int32_t n_symbols()
        void fill_symbols(ContextPlace place, int32_t k, float64_t *out) except +
        const char *check() except +
        vector[SeatingRecord] record(const vector[int32_t] &labels) except +
        void load(vector[SeatingRecord] records, int32_t n_slots) except +

    cdef cppclass ContextEmission(Emission):
        deque[SymbolTree] trees
        vector[float64_t] alphas
        float64_t gamma
        ContextEmission(const int32_t *codes, int64_t n_steps,
                        const vector[int32_t] &n_symbols, float64_t prior_shape,
                        float64_t prior_rate) except +
        void set_contexts(ContextShape shape, vector[ContextPlace] places) except +
        const ContextShape &shape()
        void set_concentrations(vector[float64_t] alphas, float64_t gamma)
        int64_t count_tables(int32_t d)
        void check_customers_of(size_t c, const vector[SeatingRecord] &records,
                                const vector[int32_t] &states, int32_t n_states,
                                const string &what) except +


cdef class ContextStats(EmissionStats):
    cdef ContextEmission *native        # what `shared` owns
    cdef const int32_t[:, ::1] codes    # codes[t, c]: symbol in column c, -1 = missing
    cdef readonly object contexts       # codes of the contexts of all steps
    cdef readonly object tree           # of the restaurants
    cdef intp_t n_columns
    cdef readonly object concentration_prior    # (shape, rate) or None
    cdef int set_tree(self, tree) except -1
    # From a record that may hold anything: its tree, the concentrations, and the seatings of
    # all columns by depth over states 0 .. n_states - 1.
    cdef tree_of(self, arrays)
    cdef list levels_of(self, arrays)       # of every column by depth
    cdef int concentrations_of(self, arrays, vector[float64_t] *alphas,
                               float64_t *gamma) except -1
    cdef int read(self, arrays, tree, int32_t n_states,
                  vector[vector[SeatingRecord]] *out) except -1
    cdef list fill_predictives(self, slots, contexts)
