"""Broken split-merge trials and a recorder of small chains, for tests only."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._emission cimport SeatingEmission
from skihmm.core._franchise cimport FIRST
from skihmm.core._rcd cimport Chain, HookedEmission, chain_of, emission_of
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport int32_t, int64_t, intp_t
from skihmm.emissions._categorical_stats cimport CategoricalStats
from skihmm.samplers._split_merge_kernel cimport SplitMergeKernel


cdef extern from "_split_merge_testing.hpp" namespace "skihmm" nogil:
    cdef enum class SplitMergeBug:
        kNone
        kNoReverse
        kNoValue
        kEarlyScore
        kReseat

    cdef cppclass FaultySplitMerge[Emission]:
        SplitMergeBug bug
        void attach(const Chain &chain) except +
        void follow(const Chain &chain, int64_t start, int64_t stop) except +
        bint run(const Chain &chain, const Emission &emission) except +


_BUGS = {
    None: SplitMergeBug.kNone,
    "no_reverse": SplitMergeBug.kNoReverse,
    "no_value": SplitMergeBug.kNoValue,
    "early_score": SplitMergeBug.kEarlyScore,
    "reseat": SplitMergeBug.kReseat,
}


cdef class FaultySplitMergeKernel(SplitMergeKernel):
    """``SplitMergeKernel`` with a planted error.

    Parameters
    ----------
    n_trials : int, default=1
    bug : str, optional
        "no_reverse": the reverse probability of a merge is left out.
        "no_value": the observation of the second step is left out of the ratio.
        "early_score": the reverse probability is computed before the fragment's removal.
        "reseat": on rejection the old customers are seated anew instead of restored.
    """

    cdef FaultySplitMerge[SeatingEmission] faulty
    cdef FaultySplitMerge[HookedEmission] faulty_hooked

    def __init__(self, intp_t n_trials=1, bug=None):
        SplitMergeKernel.__init__(self, n_trials)
        self.faulty.bug = _BUGS[bug]
        self.faulty_hooked.bug = _BUGS[bug]

    cdef int attach(self, ChainState state) except -1 nogil:
        self.faulty.attach(chain_of(state))
        self.faulty_hooked.attach(chain_of(state))
        return 0

    cdef int follow(self, ChainState state, const intp_t *starts, const intp_t *stops,
                    intp_t n) except -1 nogil:
        return self.attach(state)

    cdef bint run_one(self, ChainState state) except -1 nogil:
        cdef SeatingEmission seating
        if state.emission.as_seating(&seating):
            return self.faulty.run(chain_of(state), seating)
        return self.faulty_hooked.run(chain_of(state), emission_of(state.emission))


cdef int64_t _cell(ChainState state, vector[int32_t] *name) noexcept:
    # (labels by first appearance, tables of transitions, tables of emissions) as one
    # number, for up to eight steps.
    cdef CategoricalStats emission = state.emission
    cdef int64_t code = 0, m, e = 0
    cdef int32_t n_names = 0
    cdef intp_t t
    cdef size_t c
    name.assign(state.n_slots, -1)
    for t in range(state.n_steps):
        if name[0][state.states[t]] < 0:
            name[0][state.states[t]] = n_names
            n_names += 1
        code = 8 * code + name[0][state.states[t]]
    m = state.transitions.seating.n_tables
    for c in range(emission.seatings.size()):
        e += emission.seatings[c].n_tables
    return (code * 64 + m) * 64 + e


def record_sweeps(kernel, ChainState state, intp_t n_sweeps, intp_t canonicalise_every=97):
    """Sweep and note the cell after every sweep.

    A cell is ``(labels * 64 + m) * 64 + e``: the labels by first appearance as octal
    digits, the numbers of tables of the transitions and of the emissions.

    Returns
    -------
    cells : ndarray of shape (n_sweeps,), int64
    n_trials, n_accepted : int
        Split-merge trials.
    """
    out = np.empty(n_sweeps, dtype=np.int64)
    cdef int64_t[::1] view = out
    cdef intp_t i
    cdef int64_t n_trials = 0, n_accepted = 0
    cdef vector[int32_t] name
    sweep = kernel.sweep
    for i in range(n_sweeps):
        if i % canonicalise_every == 0:
            state.canonicalise()
        sweep(state)
        n_trials += state.n_trials
        n_accepted += state.n_trials_accepted
        view[i] = _cell(state, &name)
    return out, n_trials, n_accepted


def slots(ChainState state):
    """The slot of every step: labels that stay as they are from trial to trial."""
    return np.array([k - FIRST for k in state.states])
