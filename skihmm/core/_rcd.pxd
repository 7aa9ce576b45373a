# The restricted collapsed draw: the only code that knows the Metropolis-Hastings ratio.
#
# MH-RCD, arXiv 1106.0474.  A move takes a block's draws (transitions into its steps, the
# transition into the step after it, its observations) out of the restaurants, newest
# first, collecting r_old; lets a BlockProposal propose new labels at the remaining seating
# s_0; seats them in the order of time, collecting r_new; and accepts with probability
#     min(1, (r_new / r_old) * (q(old) / q(new))),
# or else restores every table.  (The paper's pseudo-code prints r_old * r_new in the
# blocked sampler; the derivation gives r_new / r_old.)
from libcpp.vector cimport vector

from skihmm.core._franchise cimport Product
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef class BlockProposal:
    # How to propose the labels of steps [start, stop).  Everything is evaluated at s_0:
    # the seating without the block.  states[start:stop) still hold the old labels.
    #
    # The order of calls in a move is prepare, score, propose.  A proposal may be poor but
    # not wrong: q(old) and q(new) must be the same function of the path.

    # Start of a sweep: (re)build caches.
    cdef int attach(self, ChainState state) except -1 nogil
    # Look at s_0.  Must absorb state.touched if the proposal caches per-state values.
    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil
    # q *= probability of proposing the old path (up to a constant of s_0).
    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil
    # Draw a path; q *= its probability (up to the same constant).  A state that nobody
    # uses gets one of state.free_slot(0), state.free_slot(1), ...
    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil


cdef class RCDMove:
    # One move: open, then seat the proposed path, then decide.
    cdef intp_t start, stop
    cdef Product r_old, r_new
    # s_L -> s_0, collecting r_old.
    cdef int open(self, ChainState s, intp_t start, intp_t stop) except -1 nogil
    # s_0 -> s*_L, collecting r_new.
    cdef int seat(self, ChainState s, const int32_t *path) except -1 nogil
    # Accept (keep) or reject (restore); says which.
    cdef bint decide(self, ChainState s, const int32_t *path, const Product *q_old,
                     const Product *q_new) except -1 nogil
    cdef bint is_accepted(self, ChainState s, const Product *q_old,
                          const Product *q_new) noexcept nogil
    cdef int keep(self, ChainState s, const int32_t *path) except -1 nogil
    cdef int restore(self, ChainState s) except -1 nogil


cdef class RCDKernel:
    cdef readonly BlockProposal proposal
    cdef readonly intp_t block_size
    cdef RCDMove move
    cdef vector[intp_t] starts          # first step of every block, in the sweep's order
    cdef vector[intp_t] stops
    cdef vector[int32_t] path
    cdef int cut_blocks(self, ChainState state) except -1 nogil
    cdef int run(self, ChainState state) except -1 nogil
