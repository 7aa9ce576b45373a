"""A proposal and an emission for skihmm, at native speed."""

from libcpp.vector cimport vector

from skihmm.core cimport (
    NEW,
    BlockProposal,
    ChainState,
    Family,  # no-cython-lint
    Product,
    float64_t,
    int32_t,
    intp_t,
    uniform,
)
from skihmm.emissions cimport ConjugateStats


cdef extern from "_geometric.hpp" nogil:
    cdef cppclass GeometricFamily(Family):
        GeometricFamily(double a, double b) except +


def geometric_stats(values, double a, double b):
    """Statistics of geometric counts, NaN missing."""
    cdef ConjugateStats stats = ConjugateStats(values)
    stats.set_family(new GeometricFamily(a, b))
    return stats


cdef class ForwardProposal(BlockProposal):
    """One step at a time, from its predecessor and its observation.

    What follows the step is left to the acceptance.
    """

    cdef vector[float64_t] weights, emitted
    cdef float64_t total

    def __init__(self):
        self.is_single_step = True

    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil:
        cdef int32_t k, o = state.successor(start)
        self.weights.resize(state.n_slots)
        self.emitted.resize(state.n_slots)
        state.transitions.seating.fill_row(state.previous(start), self.weights.data())
        state.emission.fill_probs(start, self.emitted.data())
        # The successor's label may have lost its last table: it is as new as a new one,
        # and a candidate of its own.
        if o >= 0 and state.transitions.seating.dish_tables[o] == 0:
            self.weights[o] = self.weights[NEW]
        self.total = 0.0
        for k in range(state.n_slots):
            self.weights[k] *= self.emitted[k]
            self.total += self.weights[k]
        return 0

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        # A label that nobody uses any more is what a new one would be.
        cdef int32_t k = state.states[start]
        q.multiply(self.weights[k] if self.weights[k] > 0.0 else self.weights[NEW])
        return 0

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        cdef int32_t k, chosen = NEW
        cdef float64_t u = uniform(state.stream.bits) * self.total
        for k in range(state.n_slots):
            if self.weights[k] > 0.0:
                # (The last possible one if rounding leaves something of u.)
                chosen = k
                u -= self.weights[k]
                if u < 0.0:
                    break
        q.multiply(self.weights[chosen])
        path_out[0] = state.free_slot(0) if chosen == NEW else chosen
        return 0
