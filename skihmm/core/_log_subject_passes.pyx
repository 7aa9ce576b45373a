"""Passes and sums over rows of subjects in regressions; arithmetic: _log_subjects.hpp."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._types cimport float64_t, int32_t, int64_t


cdef extern from "_log_subjects.hpp" namespace "skihmm" nogil:
    int32_t kBlock "skihmm::kBlock"
    int32_t kMost "skihmm::kMostRegressed"

    cdef cppclass RegressedRows:
        int64_t n
        int32_t n_columns, n_coefficients
        int64_t n_subjects, n_sequences
        const float64_t *y, *base, *seen, *given, *x
        const int64_t *first, *begins, *ends, *owners

    cdef cppclass RegressedStates:
        int32_t n_states
        const float64_t *coefficients, *r, *log_r, *offsets, *transitions

    void fill_likelihoods(RegressedRows rows, RegressedStates states, float64_t *probs,
                          float64_t *tops)
    void filter_rows(const RegressedRows &rows, const RegressedStates &states, float64_t *probs,
                     const float64_t *tops, float64_t *predicted, float64_t *log_likelihoods)
    void smooth_rows(const RegressedRows &rows, const RegressedStates &states,
                     const float64_t *probs, const float64_t *predicted, float64_t *smoothed,
                     float64_t *pairs)
    void sum_states(RegressedRows rows, RegressedStates states, int32_t c,
                    const float64_t *smoothed, float64_t *slopes, float64_t *curvatures)
    void sum_subjects(RegressedRows rows, RegressedStates states, int32_t c,
                      const float64_t *smoothed, float64_t *slopes, float64_t *curvatures)
    float64_t sum_likelihoods(RegressedRows rows, RegressedStates states, int32_t c,
                              const float64_t *smoothed)


BLOCK = kBlock  # type: int
MOST_STATES = kMost  # type: int


cdef class RegressedPasses:
    """Passes over the rows of a shared HMM of regressions, which a class in Python arranges."""

    cdef readonly int32_t n_columns
    cdef tuple kept
    cdef RegressedRows view

    def set_rows(self, int32_t n_columns, const float64_t[:, ::1] y, const float64_t[:, ::1] base,
                 const float64_t[:, ::1] seen, const float64_t[:, ::1] given,
                 const float64_t[:, ::1] x, const int64_t[::1] first, const int64_t[::1] begins,
                 const int64_t[::1] ends, const int64_t[::1] owners) -> None:
        # Rows side by side, (n, number of rows of all blocks); first rows of subjects; rows where
        # sequences begin and end, and their subjects.
        self.n_columns = n_columns
        self.kept = y, base, seen, given, x, first, begins, ends, owners
        self.view.n, self.view.n_columns = y.shape[1], n_columns
        self.view.n_coefficients = <int32_t> x.shape[0]
        self.view.n_subjects, self.view.n_sequences = first.shape[0] - 1, begins.shape[0]
        self.view.y, self.view.base, self.view.seen = &y[0, 0], &base[0, 0], &seen[0, 0]
        self.view.given, self.view.x, self.view.first = &given[0, 0], &x[0, 0], &first[0]
        self.view.begins, self.view.ends = &begins[0], &ends[0]
        self.view.owners = &owners[0]

    cdef RegressedStates _states(self, fit, const float64_t[:, ::1] offsets,
                                 const float64_t[::1] log_r) except *:
        # (Of arrays that the caller keeps.)
        cdef const float64_t[:, :, ::1] coefficients = fit.coefficients
        cdef const float64_t[::1] r = fit.r
        cdef const float64_t[:, ::1] transitions = fit.transitions
        cdef RegressedStates states
        states.n_states = <int32_t> coefficients.shape[1]
        states.coefficients, states.r, states.log_r = &coefficients[0, 0, 0], &r[0], &log_r[0]
        states.offsets, states.transitions = &offsets[0, 0], &transitions[0, 0]
        return states

    def run_passes(self, fit: SimpleNamespace, offsets: Floats, log_r: Floats,
                   bint with_sums) -> Any:
        # Log likelihoods of subjects; probabilities of states and numbers of transitions.
        offsets = np.ascontiguousarray(offsets)
        cdef RegressedStates states = self._states(fit, offsets, log_r)
        cdef int64_t n = self.view.n, size = n * states.n_states
        cdef vector[float64_t] probs, tops, predicted
        found = np.zeros(self.view.n_subjects)
        smoothed = np.zeros((states.n_states, n if with_sums else 1))
        pairs = np.zeros((states.n_states, states.n_states))
        cdef float64_t[::1] out = found
        cdef float64_t[:, ::1] by_state = smoothed, of_pairs = pairs
        probs.resize(size)
        tops.resize(n)
        predicted.resize(size if with_sums else 1)
        with nogil:
            fill_likelihoods(self.view, states, probs.data(), tops.data())
            filter_rows(self.view, states, probs.data(), tops.data(),
                        predicted.data() if with_sums else NULL, &out[0])
            if with_sums:
                smooth_rows(self.view, states, probs.data(), predicted.data(), &by_state[0, 0],
                            &of_pairs[0, 0])
        return (found, smoothed, pairs) if with_sums else found

    def sums_by_state(self, fit: SimpleNamespace, log_r: Floats, int32_t c,
                      const float64_t[:, ::1] probs, float64_t[:, ::1] slopes,
                      float64_t[:, ::1] products) -> None:
        # Slopes and curvatures of coefficients of column c, into `slopes` and `products`.
        cdef RegressedStates states = self._states(fit, fit.offsets, log_r)
        with nogil:
            sum_states(self.view, states, c, &probs[0, 0], &slopes[0, 0], &products[0, 0])

    def sums_by_subject(self, fit: SimpleNamespace, log_r: Floats, int32_t c,
                        const float64_t[:, ::1] probs) -> tuple[Floats, Floats]:
        # Slopes and curvatures of offsets.
        first, second = np.empty(self.view.n_subjects), np.empty(self.view.n_subjects)
        cdef float64_t[::1] slopes = first, curvatures = second
        cdef RegressedStates states = self._states(fit, fit.offsets, log_r)
        with nogil:
            sum_subjects(self.view, states, c, &probs[0, 0], &slopes[0], &curvatures[0])
        return first, second

    def sum_of_likelihoods(self, fit: SimpleNamespace, log_r: Floats, int32_t c,
                           const float64_t[:, ::1] probs) -> float:
        # Expected log likelihood of column c, without what coefficients do not change.
        cdef RegressedStates states = self._states(fit, fit.offsets, log_r)
        cdef float64_t found
        with nogil:
            found = sum_likelihoods(self.view, states, c, &probs[0, 0])
        return found
