"""Split-merge trials (arXiv 1106.0474, Section 6); the algorithm: _split_merge.hpp."""

from libc.math cimport floor

from skihmm.core._emission cimport SeatingEmission
from skihmm.core._random cimport uniform
from skihmm.core._rcd cimport Chain, HookedEmission, RCDKernel, chain_of, emission_of
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int64_t, intp_t


cdef extern from "_split_merge.hpp" namespace "skihmm" nogil:
    cdef cppclass SplitMerge[Emission]:
        void attach(const Chain &chain) except +
        void follow(const Chain &chain, int64_t start, int64_t stop) except +
        bint run(const Chain &chain, const Emission &emission) except +

from skihmm.core._sweep_info import SweepInfo


cdef class SplitMergeKernel:
    """Sweeps of split-merge trials and nothing else.

    Ergodic, but slow to mix when alone: see :class:`InterleavedKernel`.

    Parameters
    ----------
    n_trials : int, default=1
        Trials per sweep.
    """

    cdef SplitMerge[SeatingEmission] inlined
    cdef SplitMerge[HookedEmission] hooked
    cdef readonly intp_t n_trials

    def __init__(self, intp_t n_trials=1):
        self.n_trials = n_trials

    # Start of a sweep: take in the labels of all steps, O(T) but cheap.
    cdef int attach(self, ChainState state) except -1 nogil:
        cdef SeatingEmission seating
        if state.emission.as_seating(&seating):
            self.inlined.attach(chain_of(state))
        else:
            self.hooked.attach(chain_of(state))
        return 0

    # The labels of these blocks may have changed since.
    cdef int follow(self, ChainState state, const intp_t *starts, const intp_t *stops,
                    intp_t n) except -1 nogil:
        cdef SeatingEmission seating
        cdef Chain chain = chain_of(state)
        cdef intp_t b
        if state.emission.as_seating(&seating):
            for b in range(n):
                self.inlined.follow(chain, starts[b], stops[b])
        else:
            for b in range(n):
                self.hooked.follow(chain, starts[b], stops[b])
        return 0

    # Make n trials and count them in the state.
    cdef int run(self, ChainState state, intp_t n) except -1 nogil:
        cdef intp_t _
        if state.n_steps < 2:
            return 0    # there is no pair of steps
        for _ in range(n):
            state.n_trials += 1
            state.n_trials_accepted += self.run_one(state)
        return 0

    # One trial, whether it was accepted; the state has two steps or more.
    cdef bint run_one(self, ChainState state) except -1 nogil:
        cdef SeatingEmission seating
        if state.emission.as_seating(&seating):
            return self.inlined.run(chain_of(state), seating)
        return self.hooked.run(chain_of(state), emission_of(state.emission))

    def sweep(self, ChainState state):
        """Make `n_trials` trials; the GIL is released for all of them.

        Returns
        -------
        info : SweepInfo
            Here the trials are the proposals.
        """
        state.require_settled()
        state.n_trials = 0
        state.n_trials_accepted = 0
        with nogil:
            self.attach(state)
            self.run(state, self.n_trials)
        return SweepInfo(state.n_trials, state.n_trials_accepted)


cdef class InterleavedKernel:
    """Split-merge trials between the moves of a kernel that works on blocks.

    The schedule is fixed: a sweep's blocks are cut into as many stretches as there are
    trials, equal to within one block, and a trial follows each.  It never depends on the
    labels.

    Parameters
    ----------
    local : RCDKernel
    split_merge_rate : float
        Trials per sweep.  Of a non-integer number the fraction is the probability of one
        trial more.
    """

    cdef readonly RCDKernel local
    cdef readonly SplitMergeKernel split_merge
    cdef readonly float64_t split_merge_rate

    def __init__(self, RCDKernel local, float64_t split_merge_rate):
        self.local = local
        self.split_merge_rate = split_merge_rate
        self.split_merge = SplitMergeKernel()

    cdef int run(self, ChainState state) except -1 nogil:
        cdef intp_t n_trials = <intp_t> floor(self.split_merge_rate)
        cdef float64_t rest = self.split_merge_rate - n_trials
        cdef intp_t i, n, begin = 0, end
        if rest > 0.0:
            n_trials += uniform(state.stream.bits) < rest
        self.local.cut_blocks(state)
        n = <intp_t> self.local.starts.size()
        if n_trials == 0:
            return self.local.run_blocks(state, 0, n)
        self.split_merge.attach(state)
        for i in range(n_trials):
            end = <intp_t> (<int64_t> n * (i + 1) // n_trials)
            if end > begin:
                # Every stretch rebuilds the caches of the local moves, so that they need
                # not know what a trial has changed.
                self.local.run_blocks(state, begin, end)
                self.split_merge.follow(state, self.local.starts.data() + begin,
                                        self.local.stops.data() + begin, end - begin)
                begin = end
            self.split_merge.run(state, 1)
        return 0

    def sweep(self, ChainState state):
        """One sweep over all blocks with its trials; the GIL is released for all of it.

        Returns
        -------
        info : SweepInfo
        """
        state.require_settled()
        state.n_proposed = 0
        state.n_accepted = 0
        state.n_trials = 0
        state.n_trials_accepted = 0
        with nogil:
            self.run(state)
        return SweepInfo(state.n_proposed, state.n_accepted, state.n_trials,
                         state.n_trials_accepted)
