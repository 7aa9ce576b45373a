"""Draws of the hyperparameters of transitions and emissions."""

from skihmm.core._emission cimport EmissionStats
from skihmm.core._franchise cimport Franchise
from skihmm.core._random cimport RandomStream
from skihmm.core._types cimport float64_t


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
        emission.draw_hyperparameters(stream.bits)
    if prior is None:
        return
    cdef ConcentrationPosterior lower, top
    cdef float64_t alpha
    lower.set_prior(prior[0], prior[1])
    top.set_prior(prior[0], prior[1])
    lower.count_rows(transitions.seating, stream.bits)
    alpha = lower.draw(stream.bits)
    top.count_root(transitions.seating.base, stream.bits)
    transitions.seating.set_concentrations(alpha, top.draw(stream.bits))
