"""Step-wise Gibbs proposal (arXiv 1106.0474, Section 4); arithmetic: _stepwise.hpp."""

from skihmm.core._emission cimport SeatingEmission
from skihmm.core._franchise cimport Product
from skihmm.core._rcd cimport (
    BlockProposal,
    Chain,
    HookedEmission,
    chain_of,
    emission_of,
    rcd_run,
)
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport int32_t, int64_t, intp_t


cdef extern from "_stepwise.hpp" namespace "skihmm" nogil:
    cdef cppclass Stepwise[Emission]:
        void set_exact(bint is_exact)
        void set_limits(int32_t vector_slots, int32_t lookup_slots)
        void attach(const Chain &chain, const Emission &emission) except +
        void prepare(const Chain &chain, const Emission &emission, int64_t start,
                     int64_t stop) except +
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q)
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +
        void settle(const Chain &chain, const Emission &emission, int64_t start,
                    int64_t stop, bint accepted)


# Up to this many slots all K weights are filled in one vectorised pass; beyond it the
# proposal walks the non-zeros of one row and one symbol.
DENSE_SLOTS = 128

# Up to this many slots two dense matrices of 16-bit counts answer for single pairs; beyond
# it one row and one column are spread out for every step.
LOOKUP_SLOTS = 1024


cdef class StepwiseProposal(BlockProposal):
    """Proposes the label of one step from its full conditional at s_0.

    Parameters
    ----------
    dense_slots : int
        Number of slots up to which the dense pass is used, unless `exact`.
    lookup_slots : int
        Number of slots up to which dense counts are kept at all.
    exact : bool, default=False
        Draw from the true conditional law instead, jointly with the opening of a table:
        then a sweep rejects nothing.
    """

    cdef Stepwise[SeatingEmission] inlined
    cdef Stepwise[HookedEmission] hooked
    # Outlives prepare: `hooked` keeps pointers to the column that it hands out.
    cdef HookedEmission emission

    cdef readonly bint exact

    def __init__(self, int32_t dense_slots=DENSE_SLOTS, int32_t lookup_slots=LOOKUP_SLOTS,
                 bint exact=False):
        self.is_single_step = True
        self.exact = exact
        self.inlined.set_exact(exact)
        self.hooked.set_exact(exact)
        self.inlined.set_limits(dense_slots, lookup_slots)
        self.hooked.set_limits(dense_slots, lookup_slots)

    cdef int64_t run(self, ChainState state, const intp_t *starts, const intp_t *stops,
                     int64_t n, int32_t *path) except -1 nogil:
        cdef SeatingEmission seating
        if state.emission.as_seating(&seating):
            return rcd_run(chain_of(state), seating, self.inlined, starts, stops, n, path)
        return rcd_run(chain_of(state), emission_of(state.emission), self.hooked, starts,
                       stops, n, path)

    # -- the same step by step, for whoever drives a move

    cdef int attach(self, ChainState state) except -1 nogil:
        self.emission = emission_of(state.emission)
        self.hooked.attach(chain_of(state), self.emission)
        return 0

    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil:
        self.hooked.prepare(chain_of(state), self.emission, start, stop)
        return 0

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        self.hooked.score(chain_of(state), start, stop, q)
        return 0

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        self.hooked.propose(chain_of(state), start, stop, path_out, q)
        return 0

    cdef int settle(self, ChainState state, intp_t start, intp_t stop,
                    bint accepted) except -1 nogil:
        self.hooked.settle(chain_of(state), self.emission, start, stop, accepted)
        return 0
