"""Split-merge trials with planted errors, for tests only."""

from skihmm.core._emission cimport SeatingEmission
from skihmm.core._rcd cimport Chain, HookedEmission, chain_of, emission_of
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport int64_t, intp_t
from skihmm.samplers._split_merge_kernel cimport SplitMergeKernel


cdef extern from "_faulty_split_merge.hpp" namespace "skihmm" nogil:
    cdef enum class SplitMergeBug:
        kNone
        kNoReverse
        kNoValue
        kEarlyScore
        kReseat

    cdef cppclass FaultySplitMerge[Emission]:
        SplitMergeBug bug
        void attach(const Chain &chain) except +
        void follow(const Chain &chain, int64_t start, int64_t stop) except +
        bint run(const Chain &chain, const Emission &emission) except +


_BUGS = {
    None: SplitMergeBug.kNone,
    "no_reverse": SplitMergeBug.kNoReverse,
    "no_value": SplitMergeBug.kNoValue,
    "early_score": SplitMergeBug.kEarlyScore,
    "reseat": SplitMergeBug.kReseat,
}


cdef class FaultySplitMergeKernel(SplitMergeKernel):
    """``SplitMergeKernel`` with a planted error.

    Parameters
    ----------
    n_trials : int, default=1
    bug : str, optional
        "no_reverse": the reverse probability of a merge is left out.
        "no_value": the observation of the second step is left out of the ratio.
        "early_score": the reverse probability is computed before the fragment's removal.
        "reseat": on rejection the old customers are seated anew instead of restored.
    """

    cdef FaultySplitMerge[SeatingEmission] faulty
    cdef FaultySplitMerge[HookedEmission] faulty_hooked

    def __init__(self, intp_t n_trials=1, bug=None):
        SplitMergeKernel.__init__(self, n_trials)
        self.faulty.bug = _BUGS[bug]
        self.faulty_hooked.bug = _BUGS[bug]

    cdef int attach(self, ChainState state) except -1 nogil:
        self.faulty.attach(chain_of(state))
        self.faulty_hooked.attach(chain_of(state))
        return 0

    cdef int follow(self, ChainState state, const intp_t *starts, const intp_t *stops,
                    intp_t n) except -1 nogil:
        return self.attach(state)

    cdef bint run_one(self, ChainState state) except -1 nogil:
        cdef SeatingEmission seating
        if state.emission.as_seating(&seating):
            return self.faulty.run(chain_of(state), seating)
        return self.faulty_hooked.run(chain_of(state), emission_of(state.emission))
