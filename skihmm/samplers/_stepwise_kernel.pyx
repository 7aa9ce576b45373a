"""Step-wise Gibbs proposal (arXiv 1106.0474, Section 4), sparse or dense.

With i = x[t-1], o = x[t+1] and y = y[t], everything at s_0, the weight of label k is

    q(k) = (n_ik + c m_k) (n_ko + b) (e_ky + d) / ((n_k + alpha) (e_k + alpha_e))

with c = alpha/(m + gamma), b = c m_o, d = the emission's smooth part; a state that nobody
uses is the slot NEW with m = gamma.  If o lost its last table (its only draw was the one
just removed) it is a candidate too, with the mass gamma of an unserved dish: leaving it
out biases the sampler.  (The paper adds that mass to o's weight always; adding it only
when o is unserved is exact as well.)
"""

from libcpp.vector cimport vector

from skihmm.core._emission cimport SymbolColumn
from skihmm.core._franchise cimport NEW, Product, Seating
from skihmm.core._random cimport bitgen_t
from skihmm.core._rcd cimport BlockProposal
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, intp_t


cdef extern from "_stepwise_weights.hpp" namespace "skihmm" nogil:
    cdef cppclass SymbolView:
        const int32_t *ids
        const int32_t *counts
        int32_t size
        float64_t smooth

    cdef enum class StepwiseMode:
        kDense
        kSparse
        kFull

    cdef cppclass StepwiseWeights:
        int32_t n_slots()
        void attach(const Seating &s, const int32_t *totals, float64_t offset,
                    StepwiseMode mode) except +
        void refresh(const Seating &s, const int32_t *totals, float64_t offset, int32_t k,
                     int32_t ghost)
        void fill(const Seating &s, const int32_t *totals, float64_t offset, int32_t i,
                  int32_t o, int32_t removed, int32_t n_in, int32_t n_out,
                  const SymbolView *view)
        void fill_row(const Seating &s, int32_t i, int32_t o, const float64_t *probs)
        float64_t weight(int32_t k)
        int32_t draw(const Seating &s, int32_t i, int32_t o, int32_t old, bitgen_t *g,
                     float64_t *weight_out)


# Up to this many slots all K weights are filled in one vectorised pass; beyond it the
# proposal walks the non-zeros of one row, one column and one symbol.
DENSE_SLOTS = 1024

# The dense pass works in float; its products stay in range for concentrations between
# these.  (Posterior draws outside them are rare; then the sparse pass in double serves.)
cdef float64_t LEAST = 1e-2
cdef float64_t MOST = 1e6


cdef class StepwiseProposal(BlockProposal):
    """Proposes the label of one step from its full conditional at s_0.

    Parameters
    ----------
    dense_slots : int
        Number of slots up to which the dense pass is used.
    """

    cdef StepwiseWeights weights
    cdef vector[float64_t] probs        # one emission row, without a sparse view
    cdef int32_t dense_slots
    cdef int32_t ghost                  # successor without a table, or -1
    cdef int32_t i, o, old

    def __init__(self, int32_t dense_slots=DENSE_SLOTS):
        self.dense_slots = dense_slots

    cdef int attach(self, ChainState state) except -1 nogil:
        cdef Seating *s = &state.transitions.seating
        cdef float64_t offset = 1.0
        cdef const int32_t *totals = state.emission.totals(&offset)
        cdef StepwiseMode mode = StepwiseMode.kFull
        if state.emission.has_columns:
            s.set_dense_limit(self.dense_slots)
            if (s.has_dense() and LEAST < s.alpha < MOST and LEAST < s.gamma < MOST
                    and state.emission.is_moderate(LEAST, MOST)):
                mode = StepwiseMode.kDense
            else:
                mode = StepwiseMode.kSparse
        self.weights.attach(s[0], totals if state.emission.has_columns else NULL, offset,
                            mode)
        self.probs.resize(state.n_slots)
        return 0

    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil:
        cdef Seating *s = &state.transitions.seating
        cdef float64_t offset = 1.0
        cdef const int32_t *totals = NULL
        cdef size_t at
        cdef SymbolColumn column
        cdef SymbolView view
        cdef int32_t i = state.previous(start), o = state.successor(start), x, n_in, n_out
        if self.weights.n_slots() < state.n_slots:
            self.attach(state)
        self.ghost = o if o >= 0 and s.dish_tables[o] == 0 else -1
        self.i = i
        self.o = o
        if state.emission.has_columns:
            totals = state.emission.totals(&offset)
        for at in range(state.touched.size()):
            self.weights.refresh(s[0], totals, offset, state.touched[at], self.ghost)
        if not state.emission.has_columns:
            state.emission.fill_probs(start, self.probs.data())
            self.weights.fill_row(s[0], i, o, self.probs.data())
            return 0
        x = state.states[start]
        n_in = s.count(i, x, state.hints[start])
        n_out = s.count(x, o, state.hints[stop]) if o >= 0 else 0
        if state.emission.fill_column(start, &column):
            view.ids = column.ids
            view.counts = column.counts
            view.size = column.size
            view.smooth = column.smooth
            self.weights.fill(s[0], totals, offset, i, o, x, n_in, n_out, &view)
        else:
            self.weights.fill(s[0], totals, offset, i, o, x, n_in, n_out, NULL)
        return 0

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        # An old label that lost its last table is the same thing as a fresh one, unless
        # it is the ghost, which still has a history.
        self.old = state.states[start]
        if state.transitions.seating.dish_tables[self.old] == 0 and self.old != self.ghost:
            self.old = NEW
        q.multiply(self.weights.weight(self.old))
        return 0

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        cdef float64_t weight = 0.0
        cdef int32_t k = self.weights.draw(
            state.transitions.seating, self.i, self.o, self.old, state.stream.bits,
            &weight)
        q.multiply(weight)
        path_out[0] = state.free_slot(0) if k == NEW else k
        if self.ghost >= 0:
            state.touched.push(self.ghost)  # its mass is no longer gamma
        return 0
