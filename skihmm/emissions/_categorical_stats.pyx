"""Statistics of categorical emissions: HCRP, with contexts or without, and Dirichlet."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._random cimport RandomStream, uniform
from skihmm.core._record cimport concentration_of, integer_of
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_symbol_columns.hpp" namespace "skihmm" nogil:
    cdef cppclass SymbolColumns(Emission):
        int32_t n_symbols(size_t c)
        int32_t depth()
        void set_concentrations(vector[float64_t] alphas, float64_t gamma) except +
        void fill_symbols(size_t c, const int32_t *context, int32_t k, float64_t *out) except +
        int64_t count_tables(int32_t d)

cdef extern from "_categorical_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass CategoricalEmission(SymbolColumns):
        CategoricalEmission(const int32_t *codes, int64_t n_steps,
                            const vector[int32_t] &n_symbols, cbool is_hierarchical,
                            float64_t prior_shape, float64_t prior_rate,
                            cbool draws_pseudo_count) except +

cdef extern from "_context_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass ContextEmission(SymbolColumns):
        ContextEmission(const int32_t *codes, const int32_t *contexts, int32_t n_contexts,
                        int64_t n_steps, const vector[int32_t] &n_symbols,
                        float64_t prior_shape, float64_t prior_rate) except +


cdef object codes_of(codes, n_symbols, vector[int32_t] *sizes):
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes is an array of type {codes.dtype} and shape {codes.shape}; expected "
            "integers, one row per step and one column per symbol")
    if codes.shape[1] != len(n_symbols):
        raise ValueError(
            f"codes has {codes.shape[1]} columns, but n_symbols says {len(n_symbols)}")
    for c, n in enumerate(n_symbols):
        sizes.push_back(<int32_t> integer_of(n, f"n_symbols[{c}]", 1, 2**31 - 1))
        if len(codes) and not -1 <= codes[:, c].min() <= codes[:, c].max() < n:
            raise ValueError(
                f"column {c} of codes goes from {codes[:, c].min()} to "
                f"{codes[:, c].max()}; expected -1 to {n - 1}")
    return np.ascontiguousarray(codes, dtype=np.int32)


cdef object draw_symbols(probs, rows, n_known, RandomStream stream):
    cdef const float64_t[:, ::1] view = np.ascontiguousarray(
        np.cumsum(probs[:, :n_known], axis=1))
    cdef const intp_t[::1] row = np.ascontiguousarray(rows, dtype=np.intp)
    cdef intp_t i
    cdef int32_t low, high, middle
    cdef float64_t u
    codes = np.empty(len(rows), dtype=np.int32)
    cdef int32_t[::1] code = codes
    for i in range(row.shape[0]):
        # The first symbol whose cumulative probability exceeds u.
        low, high = 0, <int32_t> view.shape[1] - 1
        u = uniform(stream.bits) * view[row[i], high]
        while low < high:
            middle = (low + high) // 2
            if view[row[i], middle] > u:
                high = middle
            else:
                low = middle + 1
        code[i] = low
    return codes


cdef class CategoricalStats(EmissionStats):
    """Symbol counts of every state: per column a franchise, or a tree of restaurants.

    Parameters
    ----------
    codes : ndarray of shape (n_steps, n_columns), int32
        Symbols ``0 .. V_c - 1`` of every column; -1 is missing.
    n_symbols : sequence of int
        V_c of every column.
    alpha, gamma : float
        Concentrations of the hierarchical process, shared by all columns, from 1e-50 to
        1e50.  With ``hierarchical=False``, `alpha` is the pseudo-count of every symbol.
    hierarchical : bool
        HCRP over a shared, learned distribution of symbols (arXiv 1106.0474), or
        independent symmetric Dirichlet distributions.
    concentration_prior : (float, float) or None
        Shape and rate of the Gamma prior on all concentrations of the hierarchical process;
        None keeps them.
    draws_pseudo_count : bool
        With ``hierarchical=False``: draw the pseudo-count from its posterior, prior
        Gamma(1/2, 1/2).
    contexts : ndarray of shape (n_steps, n_contexts), int32, optional
        Categories of columns of contexts on which symbols depend; -1 is missing.
    context_alpha : sequence of float
        Concentration of every column of contexts.
    """

    cdef SymbolColumns *native          # what `shared` owns
    cdef const int32_t[:, ::1] codes    # codes[t, c]: symbol in column c, -1 = missing
    cdef const int32_t[:, ::1] contexts     # categories of the contexts of all steps
    cdef intp_t n_columns
    cdef readonly object concentration_prior    # (shape, rate) or None

    def __init__(self, codes, n_symbols, alpha, gamma=1.0, hierarchical=True,
                 concentration_prior=None, draws_pseudo_count=False, contexts=None,
                 context_alpha=()):
        cdef vector[int32_t] sizes
        cdef vector[float64_t] alphas
        cdef float64_t shape = 0.0, rate = 0.0
        cdef const int32_t *begin = NULL
        cdef const int32_t *context = NULL
        self.codes = codes_of(codes, n_symbols, &sizes)
        self.n_columns = self.codes.shape[1]
        if self.codes.size:
            begin = &self.codes[0, 0]
        n_steps = self.codes.shape[0]
        self.contexts = np.empty((n_steps, 0), np.int32) if contexts is None else (
            np.ascontiguousarray(contexts, dtype=np.int32))
        if np.shape(self.contexts) != (n_steps, len(context_alpha)):
            raise ValueError(
                f"contexts has the shape {np.shape(self.contexts)}; expected "
                f"({n_steps}, {len(context_alpha)})")
        self.concentration_prior = concentration_prior
        if concentration_prior is not None:
            shape, rate = concentration_prior
        if len(context_alpha):
            if n_steps:
                context = &self.contexts[0, 0]
            self.native = new ContextEmission(
                begin, context, len(context_alpha), n_steps, sizes, shape, rate)
        else:
            self.native = new CategoricalEmission(
                begin, n_steps, sizes, hierarchical, shape, rate, draws_pseudo_count)
        self.shared.reset(<Emission *> self.native)
        for value in (alpha, *context_alpha):
            alphas.push_back(concentration_of(value, "alpha"))
        self.native.set_concentrations(alphas, concentration_of(gamma, "gamma"))

    @property
    def table_counts(self):
        """Numbers of tables of all columns, by depth."""
        cdef int32_t d
        return [self.native.count_tables(d) for d in range(1, 1 + self.native.depth())]

    def rows(self):
        cdef intp_t c
        sizes = [self.native.n_symbols(c) for c in range(self.n_columns)]
        return [(np.asarray(self.codes), self.n_columns, sizes)]

    cdef list fill_predictives(self, slots, contexts):
        # The probabilities of the symbols of every row (slot, context), by column.
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef const int32_t[:, ::1] given = np.ascontiguousarray(contexts, dtype=np.int32)
        cdef float64_t[:, ::1] view
        cdef intp_t c, i
        out = []
        for c in range(self.n_columns):
            probs = np.empty((slot.shape[0], self.native.n_symbols(c)))
            view = probs
            for i in range(slot.shape[0]):
                self.native.fill_symbols(
                    c, &given[i, 0] if given.shape[1] else NULL, slot[i], &view[i, 0])
            out.append(probs)
        return out

    cdef object contexts_of(self, slots, inputs):
        contexts = np.full((len(slots), self.contexts.shape[1]), -1)
        if inputs is not None:
            contexts[:] = inputs
        return contexts

    def predictives(self, slots, inputs=None):
        return self.fill_predictives(slots, self.contexts_of(slots, inputs))

    def draw_values(self, slots, n_known, RandomStream stream, inputs=None):
        pairs = np.column_stack([slots, self.contexts_of(slots, inputs)])
        # (One column takes a tenth of the time.)
        distinct, rows = np.unique(pairs.ravel() if pairs.shape[1] == 1 else pairs, axis=0,
                                   return_inverse=True)
        distinct = distinct.reshape(-1, pairs.shape[1])
        probs = self.fill_predictives(distinct[:, 0], distinct[:, 1:])
        return [draw_symbols(column, rows.ravel(), known, stream)
                for column, known in zip(probs, n_known, strict=True)]
