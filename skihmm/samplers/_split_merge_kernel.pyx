"""Split-merge trials (arXiv 1106.0474, Section 6); the algorithm: _split_merge.hpp."""

from skihmm.core._rcd cimport BlockKernel, CompiledKernel, Kernel, RCDKernel
from skihmm.core._state cimport Chain
from skihmm.core._types cimport float64_t, int64_t


cdef extern from "_split_merge.hpp" namespace "skihmm" nogil:
    Kernel *make_split_merge "skihmm::make_kernel<skihmm::SplitMergeSweeps>" (
        Chain &chain, int64_t n_trials) except +
    Kernel *make_interleaved "skihmm::make_kernel<skihmm::InterleavedSweeps>" (
        Chain &chain, BlockKernel *local, float64_t rate) except +
    Kernel *make_followed "skihmm::make_kernel<skihmm::FollowedSweeps>" (
        Chain &chain, Kernel *local, float64_t rate) except +


cdef class SplitMergeKernel(CompiledKernel):
    """Sweeps of split-merge trials only.

    They are ergodic but mix slowly: see :class:`InterleavedKernel`.

    Parameters
    ----------
    n_trials : int, default=1
        Trials per sweep.
    """

    cdef readonly int64_t n_trials

    def __init__(self, int64_t n_trials=1):
        self.n_trials = n_trials

    cdef Kernel *build(self, Chain &chain) except NULL:
        return make_split_merge(chain, self.n_trials)


cdef class InterleavedKernel(CompiledKernel):
    """Split-merge trials between the moves of a kernel of blocks, or after other sweeps.

    Parameters
    ----------
    local : CompiledKernel
        An :class:`RCDKernel` has the trials between its moves.
    split_merge_rate : float
        Trials per sweep.  The fraction of a non-integer rate is the probability of one
        more trial.
    """

    cdef readonly CompiledKernel local
    cdef readonly float64_t split_merge_rate

    def __init__(self, CompiledKernel local, float64_t split_merge_rate):
        self.local = local
        self.split_merge_rate = split_merge_rate

    cdef Kernel *build(self, Chain &chain) except NULL:
        cdef Kernel *local = self.local.build(chain)
        if isinstance(self.local, RCDKernel):
            return make_interleaved(chain, <BlockKernel *> local, self.split_merge_rate)
        return make_followed(chain, local, self.split_merge_rate)
