"""Draws of the hyperparameters of transitions and emissions."""

from numpy.random cimport bitgen_t

from skihmm.core._emission cimport EmissionStats
from skihmm.core._franchise cimport Franchise, Seating
from skihmm.core._random cimport RandomStream
from skihmm.core._types cimport float64_t


cdef extern from "_concentration.hpp" namespace "skihmm" nogil:
    void draw_concentrations(Seating *seatings, size_t n, float64_t shape, float64_t rate,
                             bitgen_t *g)


def resample_concentrations(Franchise transitions, EmissionStats emission,
                            RandomStream stream, prior):
    """Draw the hyperparameters of transitions and emission given labels and seating.

    Parameters
    ----------
    transitions : Franchise
    emission : EmissionStats
    stream : RandomStream
    prior : (float, float) or None
        Shape and rate of the Gamma prior on alpha and on gamma; None keeps both.  The
        prior of the emission is its own.
    """
    with nogil:
        emission.shared.get().draw_hyperparameters(stream.bits)
    if prior is None:
        return
    cdef float64_t shape = prior[0], rate = prior[1]
    draw_concentrations(transitions.seating, 1, shape, rate, stream.bits)
