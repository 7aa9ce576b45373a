# The restricted collapsed draw.  The algorithm, and the only place that knows the
# Metropolis-Hastings ratio, is the template in _rcd.hpp.
from libcpp.vector cimport vector

from skihmm.core._emission cimport EmissionStats, SeatingEmission, SymbolColumn
from skihmm.core._franchise cimport Product, Seating, Stack
from skihmm.core._random cimport bitgen_t
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_rcd.hpp" namespace "skihmm" nogil:
    cdef cppclass Chain:
        int64_t n_steps
        int32_t *states
        const uint8_t *first
        const uint8_t *last
        int32_t *hints
        Seating *transitions
        bitgen_t *bits
        vector[int32_t] *occupancy
        vector[int32_t] *free_slots
        vector[int32_t] *free_place
        Stack[int32_t] *touched
        const int32_t *n_slots
        void *owner
        int (*grow)(void *owner, intp_t n_free) except -1 nogil
        bint reserve(int64_t n_free) except +

    cdef cppclass HookedEmission:
        void *self
        int (*add_hook)(void *, intp_t, int32_t, bitgen_t *, Product *) except -1 nogil
        int (*remove_hook)(void *, intp_t, int32_t, bitgen_t *, Product *) except -1 nogil
        int (*commit_hook)(void *) except -1 nogil
        int (*rollback_hook)(void *) except -1 nogil
        int (*probs_hook)(void *, intp_t, float64_t *) except -1 nogil
        int (*column_hook)(void *, intp_t, SymbolColumn *) noexcept nogil
        const int32_t *(*totals_hook)(void *, float64_t *) noexcept nogil
        int (*moderate_hook)(void *, float64_t, float64_t) noexcept nogil
        int (*pair_hook)(void *, intp_t, const int32_t *, float64_t *) except -1 nogil
        bint columns

    cdef cppclass HookedProposal:
        void *self
        void *state
        int (*attach_hook)(void *, void *) except -1 nogil
        int (*prepare_hook)(void *, void *, intp_t, intp_t) except -1 nogil
        int (*score_hook)(void *, void *, intp_t, intp_t, Product *) except -1 nogil
        int (*propose_hook)(void *, void *, intp_t, intp_t, int32_t *,
                            Product *) except -1 nogil
        int (*settle_hook)(void *, void *, intp_t, intp_t, int) except -1 nogil

    cdef cppclass Move[Emission]:
        int64_t start
        int64_t stop
        Product r_old
        Product r_new
        void open(const Chain &chain, const Emission &emission, int64_t start,
                  int64_t stop) except +
        void seat(const Chain &chain, const Emission &emission,
                  const int32_t *path) except +
        bint decide(const Chain &chain, const Emission &emission, const int32_t *path,
                    const Product &q_old, const Product &q_new) except +
        void restore(const Chain &chain, const Emission &emission) except +
        void touch(const Chain &chain, const int32_t *path) except +

    void cut_blocks(const Chain &chain, intp_t block_size, vector[intp_t] *starts,
                    vector[intp_t] *stops) except +
    int64_t rcd_run[Emission, Proposal](
        const Chain &chain, const Emission &emission, Proposal &proposal,
        const intp_t *starts, const intp_t *stops, int64_t n, int32_t *path) except +


# Views for the template; valid while the objects live.
cdef Chain chain_of(ChainState state) noexcept nogil
cdef HookedEmission emission_of(EmissionStats emission) noexcept nogil


cdef class BlockProposal:
    # How to propose the labels of steps [start, stop).  Everything is evaluated at s_0:
    # the seating without the block.  states[start:stop) still hold the old labels.
    #
    # The order of calls in a move is prepare, score, propose, settle.  A proposal may be
    # poor but not wrong: q(old) and q(new) must be the same function of the path.

    # True if it takes blocks of one step only; set by __init__.
    cdef readonly bint is_single_step

    # Start of a sweep, or storage for more slots: (re)build caches.
    cdef int attach(self, ChainState state) except -1 nogil
    # Look at s_0.  Must absorb state.touched if the proposal caches per-state values.
    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil
    # q *= probability of proposing the old path (up to a constant of s_0).
    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil
    # Draw a path; q *= its probability (up to the same constant).  A state that nobody
    # uses gets one of state.free_slot(0), state.free_slot(1), ...  (q = infinity: none was
    # found, reject.)
    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil
    # The move has been decided; the seating and state.states are final.
    cdef int settle(self, ChainState state, intp_t start, intp_t stop,
                    bint accepted) except -1 nogil
    # All moves of a sweep, over the blocks [starts[b], stops[b]); the number of accepted
    # ones.  The default calls the hooks above.  A proposal that is a C++ class may pass it
    # to rcd_run itself and so have everything inlined.
    cdef int64_t run(self, ChainState state, const intp_t *starts, const intp_t *stops,
                     int64_t n, int32_t *path) except -1 nogil


cdef class RCDMove:
    # One move: open, then seat the proposed path, then decide.
    cdef Move[HookedEmission] move
    # s_L -> s_0, collecting r_old.
    cdef int open(self, ChainState s, intp_t start, intp_t stop) except -1 nogil
    # s_0 -> s*_L, collecting r_new.
    cdef int seat(self, ChainState s, const int32_t *path) except -1 nogil
    # Accept (keep) or reject (restore); says which.
    cdef bint decide(self, ChainState s, const int32_t *path, const Product *q_old,
                     const Product *q_new) except -1 nogil
    # Instead of a decision, any time after open: everything as before it.
    cdef int undo(self, ChainState s) except -1 nogil


cdef class RCDKernel:
    cdef readonly BlockProposal proposal
    cdef readonly intp_t block_size
    cdef vector[intp_t] starts          # first step of every block, in the sweep's order
    cdef vector[intp_t] stops
    cdef vector[int32_t] path
    cdef int cut_blocks(self, ChainState state) except -1 nogil
    # Moves over the blocks begin .. end - 1 of those cut; counts them in the state.
    cdef int run_blocks(self, ChainState state, intp_t begin, intp_t end) except -1 nogil
    # cut_blocks, then run_blocks over all of them.
    cdef int run(self, ChainState state) except -1 nogil
