"""Stick-breaking sweeps; arithmetic: _stick_breaking.hpp."""

from skihmm.core._rcd cimport CompiledKernel, Kernel
from skihmm.core._state cimport Chain


cdef extern from "_stick_breaking.hpp" namespace "skihmm" nogil:
    cdef cppclass StickBreakingSteps "skihmm::StickBreakingSteps<skihmm::Chain>"(Kernel):
        StickBreakingSteps() except +

    cdef cppclass StickBreakingPaths "skihmm::StickBreakingPaths<skihmm::Chain>"(Kernel):
        StickBreakingPaths() except +


cdef class StickBreakingKernel(CompiledKernel):
    """Sweeps that draw all parameters first, without rejections.

    The parameters of the emission are part of its statistics.

    Parameters
    ----------
    beam : bool, default=False
        Whether to draw whole sequences with slices instead of single steps.
    """

    cdef readonly bint beam

    def __init__(self, bint beam=False):
        self.beam = beam

    cdef Kernel *build(self, Chain &chain) except NULL:
        if chain.emission.get().parameters() is NULL:
            raise TypeError("the emission does not draw parameters")
        if self.beam:
            return new StickBreakingPaths()
        return new StickBreakingSteps()
