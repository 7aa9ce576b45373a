"""Passes of an HMM of regimes, sets of the states of a draw: _regime_passes.hpp."""

import numpy as np

from libcpp.memory cimport unique_ptr

from skihmm.core._record cimport int32_of
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_regime_passes.hpp" namespace "skihmm" nogil:
    cdef cppclass NativePasses "skihmm::RegimePasses":
        NativePasses(int64_t n_steps, int32_t n_states, int32_t n_regimes,
                     const float64_t *likelihoods, const int32_t *groups,
                     const float64_t *weights, const uint8_t *first,
                     const float64_t *startprob, const float64_t *transmat,
                     const float64_t *stays) except +
        void filter(float64_t *log_predictive, float64_t *probs) except +
        void smooth(float64_t *probs, float64_t *moves, float64_t *steps,
                    float64_t *kept) except +
        void viterbi(int32_t *path) except +


cdef class RegimePasses:
    """HMM of regimes, with mixtures of the states' emissions.

    Parameters
    ----------
    likelihoods : ndarray of shape (n_steps, n_states)
        Probabilities of the observations in the states, positive, up to a factor of the step.
    first : ndarray of shape (n_steps,), bool
        Whether a step begins a sequence, as the first one does.
    groups : ndarray of shape (n_states,), int
        Regime of every state.
    weights : ndarray of shape (n_states,)
        Of the states in the mixtures.
    startprob : ndarray of shape (n_regimes,)
    transmat : ndarray of shape (n_regimes, n_regimes)
        Sums of rows do not matter to `viterbi`.
    stays : ndarray of shape (n_steps, n_regimes), optional
        Probability of every step to stay in the regime before it, in the place of the diagonal
        of `transmat`.

    Raises
    ------
    ValueError
        If shapes do not fit, or something that happened is impossible.
    """

    cdef const float64_t[:, ::1] likelihoods, stays
    cdef const uint8_t[::1] first
    cdef intp_t n_steps, n_states, n_regimes, n_kept
    cdef unique_ptr[NativePasses] passes

    def __init__(self, likelihoods: Floats, first: Flags, groups: Integers, weights: Floats,
                 startprob: Floats, transmat: Floats, stays: Floats | None = None):
        cdef const float64_t *by_step = NULL
        cdef const int32_t[::1] of_states = int32_of(groups, "groups")
        cdef const float64_t[::1] within = np.ascontiguousarray(weights, dtype=np.float64)
        cdef const float64_t[::1] start = np.ascontiguousarray(startprob, dtype=np.float64)
        cdef const float64_t[:, ::1] rows = np.ascontiguousarray(transmat, dtype=np.float64)
        self.likelihoods = np.ascontiguousarray(likelihoods, dtype=np.float64)
        self.first = np.ascontiguousarray(first, dtype=bool).view(np.uint8)
        self.n_steps, self.n_states = self.likelihoods.shape[0], self.likelihoods.shape[1]
        self.n_regimes = start.shape[0]
        found = (self.first.shape[0], of_states.shape[0], within.shape[0], rows.shape[0],
                 rows.shape[1])
        expected = (self.n_steps, self.n_states, self.n_states, self.n_regimes, self.n_regimes)
        if found != expected or 0 in expected or not self.first[0]:
            raise ValueError(
                f"first, groups, weights and transmat have the sizes {found}; expected "
                f"{expected}, none of them zero, and a sequence that begins at step 0.")
        if np.min(groups) < 0 or np.max(groups) >= self.n_regimes:
            raise ValueError(
                f"groups holds {np.min(groups)} to {np.max(groups)}; expected regimes from 0 "
                f"to {self.n_regimes - 1}.")
        if stays is not None:
            self.stays = np.ascontiguousarray(stays, dtype=np.float64)
            if np.shape(stays) != (self.n_steps, self.n_regimes):
                raise ValueError(
                    f"stays has the shape {np.shape(stays)}; expected "
                    f"({self.n_steps}, {self.n_regimes})")
            self.n_kept, by_step = self.n_steps, &self.stays[0, 0]
        self.passes.reset(new NativePasses(
            self.n_steps, <int32_t> self.n_states, <int32_t> self.n_regimes,
            &self.likelihoods[0, 0], &of_states[0], &within[0], &self.first[0], &start[0],
            &rows[0, 0], by_step))

    def filter(self) -> tuple[Floats, Floats]:
        """Forward pass.

        Returns
        -------
        log_predictive : ndarray of shape (n_steps,)
            log p(y[t] | y[:t]), nats, up to the factors of `likelihoods`.
        probs : ndarray of shape (n_steps, n_regimes)
            p(regime at t | y[:t + 1]).
        """
        log_predictive = np.empty(self.n_steps)
        probs = np.empty((self.n_steps, self.n_regimes))
        cdef float64_t[::1] log_view = log_predictive
        cdef float64_t[:, ::1] out = probs
        with nogil:
            self.passes.get().filter(&log_view[0], &out[0, 0])
        return log_predictive, probs

    def smooth(self, probs: Floats) -> tuple[Floats, Floats, Floats]:
        """Backward pass.

        Parameters
        ----------
        probs : ndarray of shape (n_steps, n_regimes)
            Result of `filter`; overwritten by p(regime at t | y).

        Returns
        -------
        moves : ndarray of shape (n_regimes, n_regimes)
            Expected numbers of transitions within sequences.
        steps : ndarray of shape (n_states,)
            Expected numbers of steps of the states.
        kept : ndarray of shape (n_steps, n_regimes)
            p(regime at t - 1 and at t | y), zero in first steps; no rows without `stays`.
        """
        cdef float64_t[:, ::1] out = probs
        if out.shape[0] != self.n_steps or out.shape[1] != self.n_regimes:
            raise ValueError(
                f"probs has the shape {np.shape(probs)}; expected "
                f"({self.n_steps}, {self.n_regimes})")
        moves = np.empty((self.n_regimes, self.n_regimes))
        steps = np.zeros(self.n_states)
        cdef float64_t[:, ::1] moves_view = moves
        cdef float64_t[::1] steps_view = steps
        kept = np.empty((self.n_kept, self.n_regimes))
        cdef float64_t[:, ::1] kept_view = kept
        cdef float64_t *kept_out = NULL
        if self.n_kept > 0:
            kept_out = &kept_view[0, 0]
        with nogil:
            self.passes.get().smooth(&out[0, 0], &moves_view[0, 0], &steps_view[0], kept_out)
        return moves, steps, kept

    def viterbi(self) -> Labels:
        """Most probable path.

        Returns
        -------
        path : ndarray of shape (n_steps,), int32
        """
        path = np.empty(self.n_steps, dtype=np.int32)
        cdef int32_t[::1] out = path
        with nogil:
            self.passes.get().viterbi(&out[0])
        return path
