"""Stick-breaking sweeps; arithmetic: _stick_breaking.hpp."""

from numpy.random cimport bitgen_t

from skihmm.core._emission cimport EmissionStats
from skihmm.core._rcd cimport Chain, chain_of
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, intp_t


cdef extern from "_stick_breaking.hpp" namespace "skihmm" nogil:
    cdef cppclass ParameterEmission:
        void *self
        int (*draw_hook)(void *, const int32_t *, int, bitgen_t *) except -1 nogil
        const float64_t *(*likelihoods_hook)(void *, intp_t,
                                             const int32_t *) except NULL nogil
        int (*log_likelihood_hook)(void *, intp_t, int32_t, bitgen_t *,
                                   float64_t *) except -1 nogil
        int (*newborn_hook)(void *, int32_t, intp_t, bitgen_t *) except -1 nogil
        int (*reseat_hook)(void *, const int32_t *, bitgen_t *) except -1 nogil
        bint columns

    cdef cppclass StickBreakingSteps:
        void sweep(const Chain &chain, const ParameterEmission &emission) except +
        size_t n_bytes()

    cdef cppclass StickBreakingPaths:
        void sweep(const Chain &chain, const ParameterEmission &emission) except +
        size_t n_bytes()

from skihmm.core._sweep_info import SweepInfo


# -- hooks, as those of _rcd.pyx

cdef int _draw(void *emission, const int32_t *occupancy, int lazy,
               bitgen_t *g) except -1 nogil:
    return (<EmissionStats> emission).draw_parameters(occupancy, lazy, g)


cdef const float64_t *_likelihoods(void *emission, intp_t t,
                                   const int32_t *occupancy) except NULL nogil:
    return (<EmissionStats> emission).likelihoods(t, occupancy)


cdef int _log_likelihood(void *emission, intp_t t, int32_t k, bitgen_t *g,
                         float64_t *out) except -1 nogil:
    out[0] = (<EmissionStats> emission).log_likelihood(t, k, g)
    return 0


cdef int _draw_newborn(void *emission, int32_t k, intp_t t, bitgen_t *g) except -1 nogil:
    return (<EmissionStats> emission).draw_newborn(k, t, g)


cdef int _reseat(void *emission, const int32_t *states, bitgen_t *g) except -1 nogil:
    return (<EmissionStats> emission).reseat(states, g)


# A view for the sweeps; valid while the object lives.
cdef ParameterEmission parameters_of(EmissionStats emission) noexcept nogil:
    cdef ParameterEmission hooked
    hooked.self = <void *> emission
    hooked.draw_hook = _draw
    hooked.likelihoods_hook = _likelihoods
    hooked.log_likelihood_hook = _log_likelihood
    hooked.newborn_hook = _draw_newborn
    hooked.reseat_hook = _reseat
    hooked.columns = emission.has_columns
    return hooked


cdef class StickBreakingKernel:
    """Sweeps that draw all parameters first.

    Parameters
    ----------
    beam : bool, default=False
        Whole sequences with slices instead of single steps.
    """

    cdef StickBreakingSteps steps
    cdef StickBreakingPaths paths
    cdef readonly bint beam

    def __init__(self, bint beam=False):
        self.beam = beam

    def sweep(self, ChainState state):
        """One sweep over all steps; the GIL is released for the whole of it.

        Returns
        -------
        info : SweepInfo
            Every step is proposed and accepted.
        """
        if not state.emission.draws_parameters:
            raise TypeError(f"{type(state.emission).__name__} does not draw parameters")
        state.require_settled()
        with nogil:
            if self.beam:
                self.paths.sweep(chain_of(state), parameters_of(state.emission))
            else:
                self.steps.sweep(chain_of(state), parameters_of(state.emission))
        return SweepInfo(state.n_steps, state.n_steps)

    def n_bytes(self):
        """Bytes that the kernel holds: beta, the rows of transitions and scratch.

        The parameters of the emission are held, and counted, by its statistics.
        """
        return self.steps.n_bytes() + self.paths.n_bytes()
