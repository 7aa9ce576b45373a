"""The update of concentrations, for a planted error: quick to compile."""

from libcpp.vector cimport vector

from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, uint8_t


cdef extern from "_transitions.hpp" namespace "skihmm" nogil:
    cdef cppclass Transitions "skihmm::HCRPTransitions":
        float64_t log_joint(const vector[int32_t] &labels, const vector[uint8_t] &first)


def draw_hyperparameters(ChainState state):
    """Draw the hyperparameters of the transitions alone."""
    state.transitions.native.draw_hyperparameters(state.stream.bits)


def log_joint(ChainState state):
    """The log joint probability of the transitions alone."""
    cdef Transitions *native = <Transitions *> state.transitions.native
    return native.log_joint(state.chain.get().states, state.chain.get().first)
