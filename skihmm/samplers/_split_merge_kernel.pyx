"""Split-merge trials (arXiv 1106.0474, Section 6); the algorithm: _split_merge.hpp."""

from skihmm.core._rcd cimport BlockKernel, CompiledKernel, Kernel, RCDKernel
from skihmm.core._state cimport Chain
from skihmm.core._types cimport float64_t


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
        cdef Kernel *local = NULL
        if self.local is not None:
            local = self.local.build(chain)
        if isinstance(self.local, RCDKernel):
            return make_interleaved(chain, <BlockKernel *> local, self.split_merge_rate)
        return make_followed(chain, local, self.split_merge_rate)
