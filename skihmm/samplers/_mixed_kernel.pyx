"""Sweeps of two kernels in turn, at random; _mixed_sweeps.hpp."""

from skihmm.core._rcd cimport CompiledKernel, Kernel
from skihmm.core._state cimport Chain
from skihmm.core._types cimport float64_t


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
