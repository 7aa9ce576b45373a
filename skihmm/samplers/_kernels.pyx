"""Kernels and proposals of all samplers (arXiv 1106.0474, Sections 4 to 6; Teh et al. 2006).

The arithmetic is in the headers that they name.  They are one module, as the compiler takes most
of its time for what they share: the chain, its transitions and its emissions.
"""

from skihmm.core._rcd cimport (
    BlockKernel,
    BlockProposal,
    CompiledKernel,
    Kernel,
    Proposal,
    RCDKernel,
)
from skihmm.core._state cimport Chain
from skihmm.core._types cimport float64_t, int32_t, int64_t


cdef inline Kernel *built(CompiledKernel kernel, Chain &chain) except? NULL:
    if kernel is None:
        return NULL
    return kernel.build(chain)


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


cdef extern from "_split_merge.hpp" namespace "skihmm" nogil:
    Kernel *make_interleaved "skihmm::make_kernel<skihmm::InterleavedSweeps>" (
        Chain &chain, BlockKernel *local, float64_t rate) except +
    Kernel *make_followed "skihmm::make_kernel<skihmm::FollowedSweeps>" (
        Chain &chain, Kernel *local, float64_t rate) except +


cdef class InterleavedKernel(CompiledKernel):
    """Split-merge trials between the moves of a kernel of blocks, or after other sweeps.

    Parameters
    ----------
    local : CompiledKernel or None
        An :class:`RCDKernel` has the trials between its moves.  None for trials only.
    split_merge_rate : float
        Trials per sweep.  The fraction of a non-integer rate is the probability of one
        more trial.
    """

    cdef readonly CompiledKernel local  # type: CompiledKernel | None
    cdef readonly float64_t split_merge_rate

    def __init__(self, local: CompiledKernel | None, float64_t split_merge_rate):
        self.local = local
        self.split_merge_rate = split_merge_rate

    cdef Kernel *build(self, Chain &chain) except NULL:
        cdef Kernel *local = built(self.local, chain)
        if isinstance(self.local, RCDKernel):
            return make_interleaved(chain, <BlockKernel *> local, self.split_merge_rate)
        return make_followed(chain, local, self.split_merge_rate)


cdef extern from "_run_split_merge.hpp" namespace "skihmm" nogil:
    cdef cppclass RunSplitMergeSweeps(Kernel):
        RunSplitMergeSweeps(Kernel *local, float64_t rate) except +


cdef class RunSplitMergeKernel(CompiledKernel):
    """Sweeps of a kernel, each followed by split-merge trials of whole runs.

    Parameters
    ----------
    local : CompiledKernel or None
        None for trials only.
    rate : float
        Trials per sweep.  The fraction of a non-integer rate is the probability of one
        more trial.
    """

    cdef readonly CompiledKernel local  # type: CompiledKernel | None
    cdef readonly float64_t rate

    def __init__(self, local: CompiledKernel | None, float64_t rate):
        self.local = local
        self.rate = rate

    cdef Kernel *build(self, Chain &chain) except NULL:
        return new RunSplitMergeSweeps(built(self.local, chain), self.rate)


cdef extern from "_mixed_sweeps.hpp" namespace "skihmm" nogil:
    cdef cppclass MixedSweeps(Kernel):
        MixedSweeps(Kernel *usual, Kernel *other, float64_t share) except +


cdef class MixedKernel(CompiledKernel):
    """Every sweep comes from one of two kernels, chosen at random.

    Parameters
    ----------
    usual, other : CompiledKernel
    share : float
        Probability of a sweep of `other`.
    """

    cdef readonly CompiledKernel usual, other
    cdef readonly float64_t share

    def __init__(self, CompiledKernel usual, CompiledKernel other, float64_t share):
        self.usual = usual
        self.other = other
        self.share = share

    cdef Kernel *build(self, Chain &chain) except NULL:
        cdef Kernel *usual = self.usual.build(chain)
        return new MixedSweeps(usual, self.other.build(chain), self.share)


cdef extern from "_direct_assignment.hpp" namespace "skihmm" nogil:
    Kernel *make_direct_assignment "skihmm::make_kernel<skihmm::DirectAssignment>" (
        Chain &chain) except +


cdef class DirectAssignmentKernel(CompiledKernel):
    """Sweeps over single steps given the base distribution, without rejections."""

    cdef Kernel *build(self, Chain &chain) except NULL:
        return make_direct_assignment(chain)


cdef extern from "_stick_breaking_steps.hpp" namespace "skihmm" nogil:
    cdef cppclass StickBreakingSteps(Kernel):
        StickBreakingSteps(int64_t block_size, int32_t n_workers) except +

cdef extern from "_stick_breaking_paths.hpp" namespace "skihmm" nogil:
    cdef cppclass StickBreakingPaths(Kernel):
        StickBreakingPaths(int64_t block_size, int32_t n_workers) except +


cdef class StickBreakingKernel(CompiledKernel):
    """Sweeps that draw all parameters first, without rejections.

    The parameters of the emission are part of its statistics.

    Parameters
    ----------
    beam : bool, default=False
        Whether to draw paths with slices instead of single steps.
    block_size : int, default=0
        Steps per block that threads draw; 0: whole sequences of the beam, no blocks of
        single steps.
    n_threads : int, default=1
    """

    cdef readonly bint beam
    cdef readonly int64_t block_size
    cdef readonly int32_t n_threads

    def __init__(self, bint beam=False, int64_t block_size=0, int32_t n_threads=1):
        self.beam = beam
        self.block_size = block_size
        self.n_threads = n_threads

    cdef Kernel *build(self, Chain &chain) except NULL:
        if chain.emission.get().parameters() is NULL:
            raise TypeError("the emission does not draw parameters")
        cdef int64_t size = min(self.block_size, chain.n_steps)
        if self.beam:
            return new StickBreakingPaths(size, self.n_threads)
        return new StickBreakingSteps(size, self.n_threads)
