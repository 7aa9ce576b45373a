"""Direct-assignment sweeps (Teh et al. 2006); arithmetic: _direct_assignment.hpp."""

from skihmm.core._emission cimport SeatingEmission
from skihmm.core._rcd cimport Chain, HookedEmission, chain_of, emission_of
from skihmm.core._state cimport ChainState

from skihmm.core._sweep_info import SweepInfo


cdef extern from "_direct_assignment.hpp" namespace "skihmm" nogil:
    cdef cppclass DirectAssignment[Emission]:
        void sweep(const Chain &chain, const Emission &emission) except +
        size_t n_bytes()


cdef class DirectAssignmentKernel:
    """Sweeps over single steps given the top-level distribution."""

    cdef DirectAssignment[SeatingEmission] inlined
    cdef DirectAssignment[HookedEmission] hooked

    def sweep(self, ChainState state):
        """One sweep over all steps; the GIL is released for the whole of it.

        Returns
        -------
        info : SweepInfo
            Every step is proposed and accepted.
        """
        cdef SeatingEmission seating
        state.require_settled()
        with nogil:
            if state.emission.as_seating(&seating):
                self.inlined.sweep(chain_of(state), seating)
            else:
                self.hooked.sweep(chain_of(state), emission_of(state.emission))
        return SweepInfo(state.n_steps, state.n_steps)

    def n_bytes(self):
        """Bytes that the kernel holds: beta, counts of transitions and scratch."""
        return self.inlined.n_bytes() + self.hooked.n_bytes()
