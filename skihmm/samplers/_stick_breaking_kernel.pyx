"""Stick-breaking sweeps; arithmetic: _stick_breaking_steps.hpp, _stick_breaking_paths.hpp."""

from skihmm.core._rcd cimport CompiledKernel, Kernel
from skihmm.core._state cimport Chain
from skihmm.core._types cimport int32_t, int64_t


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
