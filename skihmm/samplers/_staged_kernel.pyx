"""Blocked Gibbs proposals of states with several stages; arithmetic: _staged_blocked.hpp."""

from skihmm.core._rcd cimport BlockProposal, Proposal
from skihmm.core._state cimport Chain


cdef extern from "_staged_blocked.hpp" namespace "skihmm" nogil:
    Proposal *make_staged_blocked(Chain &chain) except +


cdef class StagedBlockedProposal(BlockProposal):
    """Proposal of the states and stages of a block together, at s_0."""

    cdef Proposal *build(self, Chain &chain) except NULL:
        return make_staged_blocked(chain)
