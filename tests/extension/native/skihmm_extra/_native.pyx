"""A proposal and an emission for skihmm, at native speed."""

from skihmm.core cimport BlockProposal, Chain, Family, Proposal  # no-cython-lint
from skihmm.emissions cimport ConjugateStats


cdef extern from "_geometric.hpp" nogil:
    cdef cppclass GeometricFamily(Family):
        GeometricFamily(double a, double b) except +


cdef extern from "_forward.hpp" nogil:
    cdef cppclass CppForwardProposal "ForwardProposal"(Proposal):
        CppForwardProposal() except +


def geometric_stats(values, double a, double b):
    """Statistics of geometric counts, NaN missing."""
    return ConjugateStats(values).set_family(new GeometricFamily(a, b))


cdef class ForwardProposal(BlockProposal):
    """One step at a time, from its predecessor and its observation."""

    def __init__(self):
        self.is_single_step = True

    cdef Proposal *build(self, Chain &chain) except NULL:
        return new CppForwardProposal()
