"""The update of concentrations, for a planted error: quick to compile."""

from skihmm.core._state cimport ChainState


def draw_hyperparameters(ChainState state):
    """Draw the hyperparameters of the transitions alone."""
    state.transitions.native.draw_hyperparameters(state.stream.bits)
