"""Forward and backward passes of registration; arithmetic: _registration.hpp."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._record cimport starts_of
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from "_registration.hpp" namespace "skihmm" nogil:
    int32_t kLanes "skihmm::kLanes"
    int32_t kMostShared "skihmm::kMostShared"

    cdef cppclass LaneHMM:
        int64_t n_steps
        int32_t n_states, n_columns
        const float64_t *values, *is_there, *follows, *scales, *centres, *heights, *transitions

    void run_forward(LaneHMM hmm, float64_t *kept, float64_t *log_likelihoods)
    void run_backward(LaneHMM hmm, const float64_t *kept, float64_t *counts, float64_t *sums,
                      float64_t *squares, float64_t *pairs)


LANES = kLanes  # type: int
MOST_STATES = kMostShared  # type: int


def check_starts(starts: Integers | list[int], int64_t n_rows) -> None:
    # Raise unless these are first rows of sequences.
    cdef vector[int32_t] checked
    starts_of(starts, n_rows, True, &checked)


def run_passes(lanes: list[Floats], const int64_t[::1] n_steps,
               const float64_t[:, :, :, ::1] scales, const float64_t[:, :, :, ::1] centres,
               const float64_t[:, ::1] heights, const float64_t[:, ::1] transitions,
               bint with_sums) -> list[Floats]:
    # Log likelihoods of groups of subjects; counts, sums and squares by state, and transitions.
    cdef const float64_t[:, :, :, ::1] values = lanes[0], is_there = lanes[1]
    cdef const float64_t[:, :, ::1] follows = lanes[2]
    cdef intp_t g, n_groups = values.shape[0]
    cdef LaneHMM hmm
    hmm.n_states, hmm.n_columns = <int32_t> heights.shape[0], <int32_t> heights.shape[1]
    n_states, n_columns = hmm.n_states, hmm.n_columns
    results = [np.zeros((n_groups, *shape, LANES)) for shape in (
        (), *[(n_states, n_columns)] * 3, (n_states, n_states))]
    cdef float64_t[:, ::1] found = results[0]
    cdef float64_t[:, :, :, ::1] counts = results[1], sums = results[2]
    cdef float64_t[:, :, :, ::1] squares = results[3], pairs = results[4]
    cdef vector[float64_t] kept
    kept.resize(2 * values.shape[1] * n_states * LANES if with_sums else 0)
    hmm.heights, hmm.transitions = &heights[0, 0], &transitions[0, 0]
    with nogil:
        for g in range(n_groups):
            hmm.n_steps, hmm.values = n_steps[g], &values[g, 0, 0, 0]
            hmm.is_there, hmm.follows = &is_there[g, 0, 0, 0], &follows[g, 0, 0]
            hmm.scales, hmm.centres = &scales[g, 0, 0, 0], &centres[g, 0, 0, 0]
            run_forward(hmm, kept.data() if with_sums else NULL, &found[g, 0])
            if with_sums:
                run_backward(hmm, kept.data(), &counts[g, 0, 0, 0], &sums[g, 0, 0, 0],
                             &squares[g, 0, 0, 0], &pairs[g, 0, 0, 0])
    return results
