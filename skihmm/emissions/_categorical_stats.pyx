"""Statistics of categorical emissions: HCRP, with contexts or without, and Dirichlet."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, ParticleCounts
from skihmm.core._franchise cimport (
    ContextPlace,
    ContextShape,
    levels_from_arrays,
    places_of,
    shape_of,
)
from skihmm.core._random cimport RandomStream, uniform
from skihmm.core._record cimport (
    SeatingRecord,
    concentration_of,
    entry_of,
    integer_of,
    integers_of,
    record_to_arrays,
)

from skihmm._data.contexts import ContextTree, StepContexts
from skihmm.core._franchise import CONTEXT_ALPHA


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


cdef class Levels:
    pass


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

    def __init__(self, codes, n_symbols, alpha, gamma=1.0, hierarchical=True,
                 concentration_prior=None, draws_pseudo_count=False, contexts=None,
                 context_alpha=()):
        cdef vector[int32_t] sizes
        cdef vector[float64_t] alphas
        cdef float64_t shape = 0.0, rate = 0.0
        cdef const int32_t *begin = NULL
        self.codes = codes_of(codes, n_symbols, &sizes)
        self.n_columns = self.codes.shape[1]
        if self.codes.size:
            begin = &self.codes[0, 0]
        n_steps = self.codes.shape[0]
        self.contexts = np.empty((n_steps, 0), np.int32) if contexts is None else (
            np.ascontiguousarray(contexts, dtype=np.int32))
        if self.contexts.shape != (n_steps, len(context_alpha)):
            raise ValueError(
                f"contexts has the shape {self.contexts.shape}; expected "
                f"({n_steps}, {len(context_alpha)})")
        self.concentration_prior = concentration_prior
        if concentration_prior is not None:
            shape, rate = concentration_prior
        if len(context_alpha):
            self.tree_native = new ContextEmission(begin, n_steps, sizes, shape, rate)
            self.native = self.tree_native
        else:
            self.native = new CategoricalEmission(
                begin, n_steps, sizes, hierarchical, shape, rate, draws_pseudo_count)
        self.is_hierarchical = hierarchical
        self.shared.reset(<Emission *> self.native)
        self.set_tree(StepContexts.of_fit(self.contexts, 0).tree)
        for value in (alpha, *context_alpha):
            alphas.push_back(concentration_of(value, "alpha"))
        self.native.set_concentrations(alphas, concentration_of(gamma, "gamma"))

    cdef int set_tree(self, tree) except -1:
        # No customer is left, and the concentrations have to be set.
        cdef ContextShape shape
        cdef vector[ContextPlace] places
        self.tree = tree
        if self.tree_native is NULL:
            return 0
        self.find(self.tree, self.contexts, &shape, &places)
        self.tree_native.set_contexts(shape, places)
        return 0

    cdef int find(self, tree, contexts, ContextShape *shape,
                  vector[ContextPlace] *places) except -1:
        # The places of contexts; none without.
        if self.tree_native is NULL:
            places.resize(len(contexts))
            return 0
        steps = StepContexts(tree, np.ascontiguousarray(contexts, dtype=np.int32))
        shape_of(0, steps.parents, shape)
        places_of(steps.depths, steps.prefixes, shape[0], places)
        return 0

    @property
    def n_inputs(self):
        return self.contexts.shape[1]

    @property
    def table_counts(self):
        """Numbers of tables of all columns, by depth."""
        cdef int32_t d
        return [self.native.count_tables(d) for d in range(1, 1 + self.native.shape().depth())]

    def reread(self):
        return self.tree_native is NULL

    def take_hyperparameters(self, arrays):
        cdef vector[float64_t] alphas = [arrays["alpha"], *arrays.get(CONTEXT_ALPHA, ())]
        self.native.set_concentrations(alphas, arrays["gamma"])

    cdef int add_to(self, ParticleCounts *counts, int32_t n_states) except -1:
        # In a tree that has the contexts of all steps, after those of the restaurants.
        cdef ContextShape shape
        cdef vector[ContextPlace] places
        cdef vector[int32_t] labels
        cdef vector[SeatingRecord] levels
        cdef intp_t c
        cdef int32_t d
        if self.tree_native is not NULL:
            self.find(self.tree.extended(self.contexts), self.contexts, &shape, &places)
        integers_of(np.arange(self.native.n_slots, dtype=np.int32), "slots", &labels)
        for c in range(self.n_columns):
            counts.add_column(self.native.n_symbols(c), self.is_hierarchical, shape, places,
                              self.native.alphas, self.native.gamma)
            levels = self.native.record(c, labels)
            for d in range(1, shape.depth() + 1 if n_states else 0):
                counts.add_seating(d, <int32_t> self.native.shape().n_rows(d, 1), levels[d - 1])
        return 0

    def rows(self):
        cdef intp_t c
        sizes = [self.native.n_symbols(c) for c in range(self.n_columns)]
        return [(np.asarray(self.codes), self.n_columns, sizes)]

    # -- records

    def to_arrays(self, labels):
        cdef intp_t c, d
        cdef vector[int32_t] label
        cdef vector[SeatingRecord] records
        integers_of(labels, "labels", &label)
        levels = [[] for _ in range(self.native.shape().depth())]
        for c in range(self.n_columns):
            records = self.native.record(c, label)
            for d in range(len(levels)):
                levels[d].append(record_to_arrays(records[d]))
        alpha, *context_alpha = self.native.alphas
        arrays = {"columns": levels[0], "alpha": alpha, "gamma": self.native.gamma}
        if self.contexts.shape[1]:
            arrays.update({"levels": levels[1:], "contexts": self.tree.to_record(),
                           CONTEXT_ALPHA: np.array(context_alpha)})
        return arrays

    cdef int read(self, arrays, int32_t n_states, Levels out) except -1:
        # A record that may hold anything.
        cdef ContextShape shape
        cdef intp_t c
        n_contexts = self.contexts.shape[1]
        out.tree = self.tree
        out.gamma = concentration_of(entry_of(arrays, "gamma", "emission"), "emission: gamma")
        out.alphas.push_back(
            concentration_of(entry_of(arrays, "alpha", "emission"), "emission: alpha"))
        by_depth = [entry_of(arrays, "columns", "emission")]
        if n_contexts:
            record = entry_of(arrays, "contexts", "emission")
            if not self.tree.has_record(record):
                out.tree = ContextTree.of_record(record)
            values = entry_of(arrays, CONTEXT_ALPHA, "emission")
            if len(out.tree.levels) != n_contexts or not isinstance(values, np.ndarray) or (
                    values.shape != (n_contexts,)):
                raise ValueError(
                    f"emission: {len(out.tree.levels)} columns of contexts, and {CONTEXT_ALPHA} "
                    f"is {values!r:.100}; expected {n_contexts} of both")
            for value in values:
                out.alphas.push_back(concentration_of(value, f"emission: {CONTEXT_ALPHA}"))
            levels = entry_of(arrays, "levels", "emission")
            by_depth = [*by_depth, *levels] if isinstance(levels, (list, tuple)) else []
            shape_of(0, out.tree.parents, &shape)
        if len(by_depth) != 1 + n_contexts or not all(
                isinstance(level, (list, tuple)) and len(level) == self.n_columns
                for level in by_depth):
            raise ValueError(
                f"emission: columns is {by_depth!r:.100}; expected a list of {self.n_columns} "
                f"dicts, one per column, for each of {1 + n_contexts} depths")
        out.records.resize(self.n_columns)
        for c in range(self.n_columns):
            levels_from_arrays([level[c] for level in by_depth], f"emission, column {c}", shape,
                               n_states, self.native.n_symbols(c), &out.records[c],
                               self.is_hierarchical)
        return 0

    def check_arrays(self, arrays, labels):
        cdef intp_t c
        cdef Levels found = Levels()
        cdef vector[int32_t] states
        cdef int32_t n_states = int(np.max(labels)) + 1
        integers_of(labels, "labels", &states)
        self.read(arrays, n_states, found)
        if found.tree is not self.tree:
            raise ValueError("emission: the contexts are not those of the data")
        for c in range(self.n_columns):
            self.native.check_customers_of(c, found.records[c], states, n_states,
                                           f"emission, column {c}".encode())

    def load(self, arrays, int32_t n_states):
        cdef intp_t c
        cdef Levels found = Levels()
        self.read(arrays, n_states, found)
        if found.tree is not self.tree:
            self.set_tree(found.tree)
        self.native.set_concentrations(found.alphas, found.gamma)
        for c in range(self.n_columns):
            self.native.load(c, found.records[c])

    # -- predictions

    cdef list fill_predictives(self, slots, contexts):
        # The probabilities of the symbols of every row (slot, context), by column.
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef ContextShape shape
        cdef vector[ContextPlace] places
        cdef float64_t[:, ::1] view
        cdef intp_t c, i
        self.find(self.tree, contexts, &shape, &places)
        out = []
        for c in range(self.n_columns):
            probs = np.empty((slot.shape[0], self.native.n_symbols(c)))
            view = probs
            for i in range(slot.shape[0]):
                self.native.fill_symbols(c, places[i], slot[i], &view[i, 0])
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

    def check(self, slots):
        cdef intp_t c
        cdef const char *wrong
        cdef vector[int32_t] states, every_slot
        integers_of(slots, "slots", &states)
        integers_of(np.arange(self.native.n_slots, dtype=np.int32), "slots", &every_slot)
        for c in range(self.n_columns):
            wrong = self.native.check(c)
            if wrong is not NULL:
                return f"column {c}: " + wrong.decode()
            try:
                self.native.check_customers_of(
                    c, self.native.record(c, every_slot), states, self.native.n_slots,
                    f"column {c}".encode())
            except ValueError as error:
                return str(error)
        return None
