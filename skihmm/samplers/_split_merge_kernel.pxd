# Split-merge trials, alone or between the moves of another kernel.
from libcpp.vector cimport vector

from skihmm.core._emission cimport SeatingEmission
from skihmm.core._rcd cimport Chain, HookedEmission, RCDKernel
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int64_t, intp_t


cdef extern from "_split_merge.hpp" namespace "skihmm" nogil:
    cdef cppclass SplitMerge[Emission]:
        void attach(const Chain &chain) except +
        void follow(const Chain &chain, int64_t start, int64_t stop) except +
        bint run(const Chain &chain, const Emission &emission) except +


cdef class SplitMergeKernel:
    cdef SplitMerge[SeatingEmission] inlined
    cdef SplitMerge[HookedEmission] hooked
    cdef readonly intp_t n_trials
    # Start of a sweep: take in the labels of all steps, O(T) but cheap.
    cdef int attach(self, ChainState state) except -1 nogil
    # The labels of these blocks may have changed since.
    cdef int follow(self, ChainState state, const intp_t *starts, const intp_t *stops,
                    intp_t n) except -1 nogil
    # Make n trials and count them in the state.
    cdef int run(self, ChainState state, intp_t n) except -1 nogil
    # One trial, whether it was accepted; the state has two steps or more.
    cdef bint run_one(self, ChainState state) except -1 nogil


cdef class InterleavedKernel:
    cdef readonly RCDKernel local
    cdef readonly SplitMergeKernel split_merge
    cdef readonly float64_t split_merge_rate
    cdef int run(self, ChainState state) except -1 nogil
