"""Step-wise Gibbs proposal (arXiv 1106.0474, Section 4); arithmetic: _stepwise.hpp."""

from skihmm.core._rcd cimport BlockProposal, Proposal
from skihmm.core._state cimport Chain
from skihmm.core._types cimport int32_t


cdef extern from "_stepwise.hpp" namespace "skihmm" nogil:
    Proposal *make_stepwise(
        Chain &chain, bint is_exact, int32_t lookup_slots) except +


# Up to this many slots counts of single pairs are in two dense matrices of 16 bits; beyond it every
# step expands one row and one column.
LOOKUP_SLOTS = 1024  # type: int


cdef class StepwiseProposal(BlockProposal):
    """Proposal of the label of one step from its full conditional at s_0.

    Parameters
    ----------
    lookup_slots : int
        Number of slots up to which dense counts are kept.
    exact : bool, default=False
        Whether to draw from the exact conditional distribution, jointly with the opening
        of a table, without rejections.
    """

    cdef int32_t lookup_slots
    cdef readonly bint exact

    def __init__(self, int32_t lookup_slots=LOOKUP_SLOTS, bint exact=False):
        self.is_single_step = True
        self.lookup_slots = lookup_slots
        self.exact = exact

    cdef Proposal *build(self, Chain &chain) except NULL:
        return make_stepwise(chain, self.exact, self.lookup_slots)
