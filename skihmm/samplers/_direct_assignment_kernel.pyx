"""Direct-assignment sweeps (Teh et al. 2006); arithmetic: _direct_assignment.hpp."""

from skihmm.core._rcd cimport CompiledKernel, Kernel
from skihmm.core._state cimport Chain


cdef extern from "_direct_assignment.hpp" namespace "skihmm" nogil:
    Kernel *make_direct_assignment "skihmm::make_kernel<skihmm::DirectAssignment>" (
        Chain &chain) except +


cdef class DirectAssignmentKernel(CompiledKernel):
    """Sweeps over single steps given the base distribution, without rejections."""

    cdef Kernel *build(self, Chain &chain) except NULL:
        return make_direct_assignment(chain)
