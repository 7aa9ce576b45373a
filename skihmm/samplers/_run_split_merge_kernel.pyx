"""Split-merge trials of whole runs; the algorithm: _run_split_merge.hpp."""

from skihmm.core._rcd cimport CompiledKernel, Kernel
from skihmm.core._state cimport Chain
from skihmm.core._types cimport float64_t


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
        cdef Kernel *local = NULL
        if self.local is not None:
            local = self.local.build(chain)
        return new RunSplitMergeSweeps(local, self.rate)
