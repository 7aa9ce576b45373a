"""A proposal, a kernel and an emission for skihmm, at native speed."""

from skihmm.core cimport BlockProposal, Chain, CompiledKernel, Family, Kernel, Proposal
from skihmm.emissions cimport family_stats


cdef extern from "_geometric.hpp" nogil:
    Family *geometric_family "new GeometricFamily"(double a, double b) except +


cdef extern from "_forward.hpp" nogil:
    Proposal *forward_proposal "new ForwardProposal"() except +


cdef extern from "_windows.hpp" nogil:
    Kernel *window_sweeps "new WindowSweeps"(long longest) except +


def geometric_stats(rows, double a, double b):
    """Statistics of geometric counts, NaN missing."""
    return family_stats(geometric_family(a, b), rows)


cdef class ForwardProposal(BlockProposal):
    """One step at a time, from its predecessor and its observation."""

    def __init__(self):
        self.is_single_step = True

    cdef Proposal *build(self, Chain &chain) except NULL:
        return forward_proposal()


cdef class WindowKernel(CompiledKernel):
    """Windows of one state, moved as a whole."""

    cdef Kernel *build(self, Chain &chain) except NULL:
        return window_sweeps(4)
