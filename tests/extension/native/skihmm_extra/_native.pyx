"""A proposal, a kernel and an emission for skihmm, at native speed."""

from skihmm.core cimport BlockProposal, Chain, CompiledKernel  # no-cython-lint
from skihmm.core cimport Family, Kernel, Proposal  # no-cython-lint
from skihmm.emissions cimport ConjugateStats


cdef extern from "_geometric.hpp" nogil:
    cdef cppclass GeometricFamily(Family):
        GeometricFamily(double a, double b) except +


cdef extern from "_forward.hpp" nogil:
    cdef cppclass CppForwardProposal "ForwardProposal"(Proposal):
        CppForwardProposal() except +


cdef extern from "_windows.hpp" nogil:
    cdef cppclass WindowSweeps(Kernel):
        WindowSweeps(long longest) except +


def geometric_stats(values, double a, double b):
    """Statistics of geometric counts, NaN missing."""
    return ConjugateStats(values).set_family(new GeometricFamily(a, b))


cdef class ForwardProposal(BlockProposal):
    """One step at a time, from its predecessor and its observation."""

    def __init__(self):
        self.is_single_step = True

    cdef Proposal *build(self, Chain &chain) except NULL:
        return new CppForwardProposal()


cdef class WindowKernel(CompiledKernel):
    """Windows of one state, moved as a whole."""

    cdef Kernel *build(self, Chain &chain) except NULL:
        return new WindowSweeps(4)
