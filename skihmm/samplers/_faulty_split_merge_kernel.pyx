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
        kPrintedStop
        kNoStop

    cdef cppclass FaultySplitMerge[Emission]:
        SplitMergeBug bug
        int64_t n_merges
        int64_t n_stopped
        int64_t n_draws
        int64_t n_spared
        void attach(const Chain &chain) except +
        void follow(const Chain &chain, int64_t start, int64_t stop) except +
        bint run(const Chain &chain, const Emission &emission) except +


_BUGS = {
    None: SplitMergeBug.kNone,
    "no_reverse": SplitMergeBug.kNoReverse,
    "no_value": SplitMergeBug.kNoValue,
    "early_score": SplitMergeBug.kEarlyScore,
    "reseat": SplitMergeBug.kReseat,
    "printed_stop": SplitMergeBug.kPrintedStop,
    "no_stop": SplitMergeBug.kNoStop,
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
        "printed_stop": merges stop with observations still to come, which is wrong for
        densities.  "no_stop": merges never stop early, which is no error.

    Attributes
    ----------
    counts : dict
        "merges", "stopped" (early), "draws" (customers of the transitions that merges
        would bring back) and "spared" (those that the early stop has not).
    """

    cdef FaultySplitMerge[SeatingEmission] faulty
    cdef FaultySplitMerge[HookedEmission] faulty_hooked

    def __init__(self, intp_t n_trials=1, bug=None):
        SplitMergeKernel.__init__(self, n_trials)
        self.faulty.bug = _BUGS[bug]
        self.faulty_hooked.bug = _BUGS[bug]

    @property
    def counts(self):
        return {
            "merges": self.faulty.n_merges + self.faulty_hooked.n_merges,
            "stopped": self.faulty.n_stopped + self.faulty_hooked.n_stopped,
            "draws": self.faulty.n_draws + self.faulty_hooked.n_draws,
            "spared": self.faulty.n_spared + self.faulty_hooked.n_spared,
        }

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
