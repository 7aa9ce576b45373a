from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._franchise cimport ContextPlace, ContextShape
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport SeatingRecord
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_symbol_columns.hpp" namespace "skihmm" nogil:
    cdef cppclass SymbolColumns(Emission):
        vector[float64_t] alphas
        float64_t gamma
        const ContextShape &shape()
        int32_t n_symbols(size_t c)
        void set_concentrations(vector[float64_t] alphas, float64_t gamma) except +
        vector[SeatingRecord] record(size_t c, const vector[int32_t] &labels) except +
        void load(size_t c, vector[SeatingRecord] records) except +
        void fill_symbols(size_t c, ContextPlace place, int32_t k, float64_t *out) except +
        const char *check(size_t c) except +
        int64_t count_tables(int32_t d)
        void check_customers_of(size_t c, const vector[SeatingRecord] &records,
                                const vector[int32_t] &states, int32_t n_states,
                                const string &what) except +

cdef extern from "_categorical_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass CategoricalEmission(SymbolColumns):
        CategoricalEmission(const int32_t *codes, int64_t n_steps,
                            const vector[int32_t] &n_symbols, cbool is_hierarchical,
                            float64_t prior_shape, float64_t prior_rate,
                            cbool draws_pseudo_count) except +

cdef extern from "_context_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass ContextEmission(SymbolColumns):
        ContextEmission(const int32_t *codes, int64_t n_steps,
                        const vector[int32_t] &n_symbols, float64_t prior_shape,
                        float64_t prior_rate) except +
        void set_contexts(ContextShape shape, vector[ContextPlace] places) except +


cdef class Levels:
    # What a record has: a tree, concentrations, and seatings of all columns by depth.
    cdef object tree
    cdef vector[float64_t] alphas
    cdef float64_t gamma
    cdef vector[vector[SeatingRecord]] records


cdef class CategoricalStats(EmissionStats):
    cdef SymbolColumns *native          # what `shared` owns
    cdef ContextEmission *tree_native   # the same if symbols depend on contexts
    cdef const int32_t[:, ::1] codes    # codes[t, c]: symbol in column c, -1 = missing
    cdef readonly object contexts       # codes of the contexts of all steps
    cdef readonly object tree           # of the restaurants
    cdef intp_t n_columns
    cdef cbool is_hierarchical
    cdef readonly object concentration_prior    # (shape, rate) or None
    cdef int set_tree(self, tree) except -1
    cdef int find(self, tree, contexts, ContextShape *shape, vector[ContextPlace] *places) except -1
    cdef int read(self, arrays, int32_t n_states, Levels out) except -1
    cdef list fill_predictives(self, slots, contexts)
    cdef object contexts_of(self, slots, inputs)
