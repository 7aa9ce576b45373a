"""Blocked Gibbs and beam proposals (arXiv 1106.0474, Section 5); arithmetic: _blocked.hpp."""

from skihmm.core._rcd cimport BlockProposal, Proposal
from skihmm.core._state cimport Chain
from skihmm.core._types cimport float64_t


cdef extern from "_tree_blocks.hpp" namespace "skihmm" nogil:
    Proposal *make_blocked(Chain &chain, float64_t cut) except +
    Proposal *make_beam(Chain &chain, float64_t cut) except +


# Only the total of states below this multiple of a forward message's mean is propagated (with
# more than 400 states the multiple shrinks).  On the words of Alice (320 states, blocks of 10)
# this takes a step of the blocked sampler from 2.1 to 0.30 us and its acceptance from 0.995
# to 0.981; of the beam from 2.4 to 0.46 us and from 0.998 to 0.992.  With 770 states the
# steps take 0.70 and 1.2 us, and 0.980 of the moves are accepted by either.
GIBBS_CUT = 0.5  # type: float
BEAM_CUT = 0.3  # type: float


cdef class BlockedProposal(BlockProposal):
    """Proposal of the labels of a block by forward filtering, backward sampling at s_0.

    Parameters
    ----------
    cut : float
        Multiple of a forward message's mean below which only the total of states is
        propagated; 0 for exact messages.  The samples are exact for any value.
    """

    cdef float64_t cut

    def __init__(self, float64_t cut=GIBBS_CUT):
        self.cut = cut

    cdef Proposal *build(self, Chain &chain) except NULL:
        return make_blocked(chain, self.cut)


cdef class BeamProposal(BlockProposal):
    """Proposal as `BlockedProposal` with slices for the transitions of the old path.

    Parameters
    ----------
    cut : float
        As for `BlockedProposal`.
    """

    cdef float64_t cut

    def __init__(self, float64_t cut=BEAM_CUT):
        self.cut = cut

    cdef Proposal *build(self, Chain &chain) except NULL:
        return make_beam(chain, self.cut)
