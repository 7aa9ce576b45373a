"""Statistics of several emissions at once, and of known states."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats, stats_of
from skihmm.core._types cimport int32_t, int64_t


cdef extern from "_known_states.hpp" namespace "skihmm" nogil:
    cdef cppclass KnownStates(Emission):
        KnownStates(const int32_t *labels, int64_t n_steps, cbool is_closed) except +

cdef extern from "_product_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass ProductEmission(Emission):
        ProductEmission(vector[shared_ptr[Emission]] parts) except +


def product_stats(parts: Sequence[EmissionStats]) -> EmissionStats:
    """Build statistics of several emissions, independent given the state.

    Parameters
    ----------
    parts : sequence of EmissionStats
        Statistics over the same steps.

    Returns
    -------
    stats : EmissionStats
    """
    cdef EmissionStats part, stats
    cdef vector[shared_ptr[Emission]] children
    for part in parts:
        children.push_back(part.shared)
    stats = stats_of(<Emission *> new ProductEmission(children), None)
    stats.parts = tuple(parts)
    return stats


def known_states(labels: Labels, cbool is_closed=False) -> EmissionStats:
    """Build statistics of known states of some steps, a part beside the emission of the data.

    Parameters
    ----------
    labels : ndarray of shape (n_steps,), int32
        The label 0, 1, ... of every step whose state is known, otherwise -1.  Steps of
        one label share a state, steps of different labels do not.
    is_closed : bool, default=False
        Whether every state has a label.

    Returns
    -------
    stats : EmissionStats
        Without columns.
    """
    cdef const int32_t[::1] view = np.ascontiguousarray(labels, dtype=np.int32)
    return stats_of(<Emission *> new KnownStates(&view[0], view.shape[0], is_closed), view)
