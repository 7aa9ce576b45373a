"""Statistics of categorical emissions that depend on contexts."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission
from skihmm.core._franchise cimport levels_from_arrays, places_of, shape_of
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport (
    SeatingRecord,
    concentration_of,
    entry_of,
    integers_of,
    record_to_arrays,
)
from skihmm.emissions._categorical_stats cimport codes_of, draw_symbols

from skihmm._contexts import ContextColumns, ContextTree, StepContexts
from skihmm.core._franchise import CONTEXT_ALPHA


cdef class ContextStats(EmissionStats):
    """Symbol counts of every state and context, one tree of restaurants per column.

    Parameters
    ----------
    codes : ndarray of shape (n_steps, n_columns), int32
        Symbols ``0 .. V_c - 1`` of every column; -1 is missing.
    contexts : ndarray of shape (n_steps, n_contexts), int32
        Categories of every column of contexts; -1 is missing.
    n_symbols : sequence of int
        V_c of every column.
    alpha, gamma : float
        Concentrations of the states and of the root, shared by all columns of symbols.
    context_alpha : sequence of float
        Concentration of every column of contexts.
    concentration_prior : (float, float) or None
        Shape and rate of the Gamma prior on all concentrations; None keeps them.
    """

    def __init__(self, codes, contexts, n_symbols, alpha, gamma, context_alpha,
                 concentration_prior=None):
        cdef vector[int32_t] sizes
        cdef vector[float64_t] alphas
        cdef float64_t shape = 0.0, rate = 0.0
        self.codes = codes_of(codes, n_symbols, &sizes)
        self.n_columns = self.codes.shape[1]
        self.contexts = np.ascontiguousarray(contexts, dtype=np.int32)
        if self.contexts.ndim != 2 or self.contexts.shape != (
                self.codes.shape[0], len(context_alpha)) or not len(context_alpha):
            raise ValueError(
                f"contexts has the shape {self.contexts.shape}; expected "
                f"({self.codes.shape[0]}, {len(context_alpha)}), one column or more")
        self.concentration_prior = concentration_prior
        if concentration_prior is not None:
            shape, rate = concentration_prior
        self.native = new ContextEmission(
            &self.codes[0, 0] if self.codes.size else NULL, self.codes.shape[0], sizes,
            shape, rate)
        self.shared.reset(<Emission *> self.native)
        self.set_tree(StepContexts.of_fit(self.contexts, 0).tree)
        for value in (alpha, *context_alpha):
            alphas.push_back(concentration_of(value, "alpha"))
        self.native.set_concentrations(alphas, concentration_of(gamma, "gamma"))

    cdef int set_tree(self, tree) except -1:
        # No customer is left, and the concentrations have to be set.
        cdef ContextShape shape
        cdef vector[ContextPlace] places
        steps = StepContexts(tree, self.contexts)
        shape_of(0, steps.parents, &shape)
        places_of(steps.depths, steps.prefixes, shape, &places)
        self.native.set_contexts(shape, places)
        self.tree = tree
        return 0

    @property
    def n_inputs(self):
        return self.contexts.shape[1]

    @property
    def table_counts(self):
        """Numbers of tables of all columns, by depth."""
        cdef int32_t d
        return [self.native.count_tables(d) for d in range(1, 2 + self.contexts.shape[1])]

    def take_hyperparameters(self, arrays):
        cdef vector[float64_t] alphas = [arrays["alpha"], *arrays[CONTEXT_ALPHA]]
        self.native.set_concentrations(alphas, arrays["gamma"])

    def columns(self, arrays=None):
        cdef vector[float64_t] alphas = self.native.alphas
        cdef float64_t gamma = self.native.gamma
        cdef intp_t c
        tree = self.tree
        if arrays is not None:
            tree = self.tree_of(arrays)
            self.concentrations_of(arrays, &alphas, &gamma)
        n_symbols = [self.native.trees[c].n_symbols() for c in range(self.n_columns)]
        return [ContextColumns(n_symbols, list(alphas), gamma, tree)]

    def records(self, arrays):
        return [self.levels_of(arrays)]

    def to_arrays(self, labels):
        cdef intp_t c, d, n_depths = 1 + self.contexts.shape[1]
        cdef vector[int32_t] label
        cdef vector[SeatingRecord] records
        integers_of(labels, "labels", &label)
        levels = [[] for _ in range(n_depths)]
        for c in range(self.n_columns):
            records = self.native.trees[c].record(label)
            for d in range(n_depths):
                levels[d].append(record_to_arrays(records[d]))
        alpha, *context_alpha = self.native.alphas
        return {
            "columns": levels[0],
            "levels": levels[1:],
            "contexts": self.tree.to_record(),
            "alpha": alpha,
            "gamma": self.native.gamma,
            CONTEXT_ALPHA: np.array(context_alpha),
        }

    cdef tree_of(self, arrays):
        record = entry_of(arrays, "contexts", "emission")
        if self.tree.has_record(record):
            return self.tree
        tree = ContextTree.of_record(record)
        if len(tree.levels) != self.contexts.shape[1]:
            raise ValueError(
                f"emission: {len(tree.levels)} columns of contexts; expected "
                f"{self.contexts.shape[1]}")
        return tree

    cdef int concentrations_of(self, arrays, vector[float64_t] *alphas,
                               float64_t *gamma) except -1:
        gamma[0] = concentration_of(entry_of(arrays, "gamma", "emission"), "emission: gamma")
        alphas.clear()
        alphas.push_back(
            concentration_of(entry_of(arrays, "alpha", "emission"), "emission: alpha"))
        values = entry_of(arrays, CONTEXT_ALPHA, "emission")
        if not isinstance(values, np.ndarray) or values.shape != self.contexts.shape[1:]:
            raise ValueError(
                f"emission: {CONTEXT_ALPHA} is {values!r:.100}; expected "
                f"{self.contexts.shape[1]} numbers")
        for value in values:
            alphas.push_back(concentration_of(value, f"emission: {CONTEXT_ALPHA}"))
        return 0

    cdef list levels_of(self, arrays):
        columns = entry_of(arrays, "columns", "emission")
        levels = entry_of(arrays, "levels", "emission")
        by_depth = [columns, *levels] if isinstance(levels, (list, tuple)) else []
        if len(by_depth) != 1 + self.contexts.shape[1] or not all(
                isinstance(level, (list, tuple)) and len(level) == self.n_columns
                for level in by_depth):
            raise ValueError(
                f"emission: columns and levels are {by_depth!r:.100}; expected "
                f"{self.n_columns} dicts, one per column, for each of "
                f"{1 + self.contexts.shape[1]} depths")
        return [list(column) for column in zip(*by_depth)]

    cdef int read(self, arrays, tree, int32_t n_states,
                  vector[vector[SeatingRecord]] *out) except -1:
        cdef ContextShape shape
        cdef intp_t c
        shape_of(0, tree.parents, &shape)
        levels = self.levels_of(arrays)
        out.resize(self.n_columns)
        for c in range(self.n_columns):
            levels_from_arrays(levels[c], f"emission, column {c}", shape, n_states,
                               self.native.trees[c].n_symbols(), &out[0][c])
        return 0

    def check_arrays(self, arrays, labels):
        cdef intp_t c
        cdef vector[int32_t] states
        cdef vector[vector[SeatingRecord]] records
        cdef vector[float64_t] alphas
        cdef float64_t gamma
        cdef int32_t n_states = int(np.max(labels)) + 1
        integers_of(labels, "labels", &states)
        self.concentrations_of(arrays, &alphas, &gamma)
        if self.tree_of(arrays) is not self.tree:
            raise ValueError("emission: the contexts are not those of the data")
        self.read(arrays, self.tree, n_states, &records)
        for c in range(self.n_columns):
            self.native.check_customers_of(c, records[c], states, n_states,
                                           f"emission, column {c}".encode())

    def load(self, arrays, int32_t n_states):
        cdef intp_t c
        cdef vector[vector[SeatingRecord]] records
        cdef vector[float64_t] alphas
        cdef float64_t gamma
        tree = self.tree_of(arrays)
        self.concentrations_of(arrays, &alphas, &gamma)
        self.read(arrays, tree, n_states, &records)
        if tree is not self.tree:
            self.set_tree(tree)
        self.native.set_concentrations(alphas, gamma)
        for c in range(self.n_columns):
            self.native.trees[c].load(records[c], self.native.n_slots)

    cdef list fill_predictives(self, slots, contexts):
        # The probabilities of the symbols of every row (slot, context), by column.
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef ContextShape shape = self.native.shape()
        cdef vector[ContextPlace] places
        cdef float64_t[:, ::1] view
        cdef intp_t c, i
        steps = StepContexts(self.tree, np.ascontiguousarray(contexts, dtype=np.int32))
        places_of(steps.depths, steps.prefixes, shape, &places)
        out = []
        for c in range(self.n_columns):
            probs = np.empty((slot.shape[0], self.native.trees[c].n_symbols()))
            view = probs
            for i in range(slot.shape[0]):
                self.native.trees[c].fill_symbols(places[i], slot[i], &view[i, 0])
            out.append(probs)
        return out

    def predictives(self, slots, inputs=None):
        contexts = np.full((len(slots), self.contexts.shape[1]), -1)
        if inputs is not None:
            contexts[:] = inputs
        return self.fill_predictives(slots, contexts)

    def draw_values(self, slots, n_known, RandomStream stream, inputs=None):
        contexts = np.full((len(slots), self.contexts.shape[1]), -1)
        if inputs is not None:
            contexts[:] = inputs
        distinct, rows = np.unique(
            np.column_stack([slots, contexts]), axis=0, return_inverse=True)
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
            wrong = self.native.trees[c].check()
            if wrong is not NULL:
                return f"column {c}: " + wrong.decode()
            try:
                self.native.check_customers_of(
                    c, self.native.trees[c].record(every_slot), states, self.native.n_slots,
                    f"column {c}".encode())
            except ValueError as error:
                return str(error)
        return None
