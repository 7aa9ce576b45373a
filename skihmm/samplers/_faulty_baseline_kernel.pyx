"""Baselines with planted errors, for tests only."""

from skihmm.core._emission cimport SeatingEmission
from skihmm.core._rcd cimport Chain, chain_of
from skihmm.core._state cimport ChainState
from skihmm.samplers._stick_breaking_kernel cimport ParameterEmission, parameters_of


cdef extern from "_faulty_baselines.hpp" namespace "skihmm" nogil:
    cdef enum class BaselineBug:
        kNone
        kNoIndicators
        kBlindBirths
        kNoStart
        kKeepRest
        kTruncated

    cdef cppclass FaultyDirectAssignment[Emission]:
        void plant(BaselineBug bug)
        void sweep(const Chain &chain, const Emission &emission) except +

    cdef cppclass FaultySteps:
        void plant(BaselineBug bug)
        void sweep(const Chain &chain, const ParameterEmission &emission) except +

    cdef cppclass FaultyPaths:
        void plant(BaselineBug bug)
        void sweep(const Chain &chain, const ParameterEmission &emission) except +


_BUGS = {
    None: BaselineBug.kNone,
    "no_indicators": BaselineBug.kNoIndicators,
    "blind_births": BaselineBug.kBlindBirths,
    "no_start": BaselineBug.kNoStart,
    "keep_rest": BaselineBug.kKeepRest,
    "truncated": BaselineBug.kTruncated,
}


cdef class FaultyBaselineKernel:
    """A baseline for one column of symbols with a planted error.

    Parameters
    ----------
    sampler : {"direct_assignment", "stick_breaking", "stick_breaking_beam"}
    bug : str, optional
        "no_indicators" (direct assignment): the transition into a step does not count when
        the probability of the one out of it is taken.
        "blind_births" (step by step): parameters of a newborn state are drawn as if it had
        done nothing.
        "keep_rest" (step by step): a newborn state's share stays in the rests.
        "no_start" (both with parameters): the start restaurant's transitions are left out
        of its row.
        "truncated" (beam): no sticks are broken.
    """

    cdef FaultyDirectAssignment[SeatingEmission] direct
    cdef FaultySteps steps
    cdef FaultyPaths paths
    cdef int sampler

    def __init__(self, sampler, bug=None):
        self.sampler = ["direct_assignment", "stick_breaking",
                        "stick_breaking_beam"].index(sampler)
        self.direct.plant(_BUGS[bug])
        self.steps.plant(_BUGS[bug])
        self.paths.plant(_BUGS[bug])

    def sweep(self, ChainState state):
        """One sweep."""
        cdef SeatingEmission seating
        assert state.emission.as_seating(&seating)
        with nogil:
            if self.sampler == 0:
                self.direct.sweep(chain_of(state), seating)
            elif self.sampler == 1:
                self.steps.sweep(chain_of(state), parameters_of(state.emission))
            else:
                self.paths.sweep(chain_of(state), parameters_of(state.emission))
        return state.n_steps, state.n_steps
