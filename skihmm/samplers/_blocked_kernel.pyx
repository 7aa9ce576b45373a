"""Blocked Gibbs and beam proposals (arXiv 1106.0474, Section 5); arithmetic: _blocked.hpp."""

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
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_blocked.hpp" namespace "skihmm" nogil:
    cdef cppclass BlockedMessages[Emission]:
        void set_cut(float64_t cut)
        void attach(const Chain &chain, const Emission &emission) except +
        void prepare(const Chain &chain, const Emission &emission, int64_t start,
                     int64_t stop) except +
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q) except +
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +

    cdef cppclass BlockedSlices[Emission]:
        void set_cut(float64_t cut)
        void attach(const Chain &chain, const Emission &emission) except +
        void prepare(const Chain &chain, const Emission &emission, int64_t start,
                     int64_t stop) except +
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q) except +
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +


cdef extern from "_slice.hpp" namespace "skihmm" nogil:
    cdef cppclass Slice[Emission]:
        void set_limit(int32_t lookup_slots)
        void attach(const Chain &chain, const Emission &emission) except +
        void prepare(const Chain &chain, const Emission &emission, int64_t start,
                     int64_t stop) except +
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q) except +
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +
        void settle(const Chain &chain, const Emission &emission, int64_t start,
                    int64_t stop, bint accepted)


# States below this multiple of a forward message's mean send on only their total (with more
# than 400 states the multiple shrinks).  On the words of Alice (320 states, blocks of 10)
# this takes a step of the blocked sampler from 2.1 to 0.30 us and its acceptance from 0.995
# to 0.981; of the beam from 2.4 to 0.46 us and from 0.998 to 0.992.  With 770 states the
# steps take 0.70 and 1.2 us, and 0.980 of the moves are accepted by either.
GIBBS_CUT = 0.5
BEAM_CUT = 0.3

# Up to this many slots the slice proposal looks up pairs in dense counts.
LOOKUP_SLOTS = 1024


cdef class BlockedProposal(BlockProposal):
    """Proposes the labels of a block by forward filtering and backward sampling at s_0.

    Parameters
    ----------
    cut : float
        Multiple of a forward message's mean below which a state sends on only its total;
        0 for exact messages.  The samples are exact for any value.
    """

    cdef BlockedMessages[SeatingEmission] inlined
    cdef BlockedMessages[HookedEmission] hooked
    cdef HookedEmission emission        # outlives prepare: `hooked` may point into it

    def __init__(self, float64_t cut=GIBBS_CUT):
        self.inlined.set_cut(cut)
        self.hooked.set_cut(cut)

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


cdef class BeamProposal(BlockProposal):
    """The same with transitions sliced on the old path.

    Parameters
    ----------
    cut : float
        As for `BlockedProposal`.
    """

    cdef BlockedSlices[SeatingEmission] inlined
    cdef BlockedSlices[HookedEmission] hooked
    cdef HookedEmission emission        # outlives prepare: `hooked` may point into it

    def __init__(self, float64_t cut=BEAM_CUT):
        self.inlined.set_cut(cut)
        self.hooked.set_cut(cut)

    cdef int64_t run(self, ChainState state, const intp_t *starts, const intp_t *stops,
                     int64_t n, int32_t *path) except -1 nogil:
        cdef SeatingEmission seating
        if state.emission.as_seating(&seating):
            return rcd_run(chain_of(state), seating, self.inlined, starts, stops, n, path)
        return rcd_run(chain_of(state), emission_of(state.emission), self.hooked, starts,
                       stops, n, path)

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


cdef class SliceProposal(BlockProposal):
    """Proposes the label of one step among those that pass the slices of the old one.

    Parameters
    ----------
    lookup_slots : int
        Number of slots up to which dense counts are kept.
    """

    cdef Slice[SeatingEmission] inlined
    cdef Slice[HookedEmission] hooked
    cdef HookedEmission emission        # outlives prepare: `hooked` may point into it

    def __init__(self, int32_t lookup_slots=LOOKUP_SLOTS):
        self.is_single_step = True
        self.inlined.set_limit(lookup_slots)
        self.hooked.set_limit(lookup_slots)

    cdef int64_t run(self, ChainState state, const intp_t *starts, const intp_t *stops,
                     int64_t n, int32_t *path) except -1 nogil:
        cdef SeatingEmission seating
        if state.emission.as_seating(&seating):
            return rcd_run(chain_of(state), seating, self.inlined, starts, stops, n, path)
        return rcd_run(chain_of(state), emission_of(state.emission), self.hooked, starts,
                       stops, n, path)

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
        self.hooked.settle(chain_of(state), self.emission, start, stop,
                           accepted)
        return 0
