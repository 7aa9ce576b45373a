"""Message passing under a frozen seating: an HMM with K + 1 states.

With the seating of one posterior draw held fixed, the predictive probabilities are those of
an ordinary HMM whose last state lumps everything that has not been seen yet (exactly: under
a frozen seating all fresh states have the same rows).  Transitions are sparse plus rank one,
so a step costs the non-zeros plus K, not K squared.  If states have several stages, the HMM
is one over states and stages.
"""

import numpy as np

from libc.math cimport INFINITY, log
from libc.string cimport memcpy
from libcpp.vector cimport vector

from skihmm.core._emission cimport EmissionStats
from skihmm.core._franchise cimport (
    FIRST,
    NEW,
    START,
    Franchise,
    frozen_transitions,
)
from skihmm.core._random cimport RandomStream, uniform
from skihmm.core._record cimport MOST_CUSTOMERS, entry_of, integer_of, starts_of
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef class FrozenModel:
    """One posterior draw as an HMM over given observations.

    Parameters
    ----------
    arrays : dict
        ``n_states``, ``transitions`` and ``emission`` of ``ChainState.to_arrays()``.
    emission : EmissionStats
        Statistics over the observations to work on, without any counts.
    starts : ndarray of shape (n_sequences,)
        First step of every sequence.
    restaurant : int, optional
        State that precedes step 0 (if that step is not in `starts`).
    stage : int, default=0
        Stage of that state.
    contexts : object, optional
        For transitions that depend on contexts those of the steps, and of steps that follow
        them: ``depths`` and ``prefixes`` as for :class:`Franchise`.  Steps without one have
        the law of the restaurant above all contexts.

    Raises
    ------
    ValueError
        If `arrays` are not those of a draw with such an emission, or by them something
        that happened is impossible.
    """

    cdef readonly Franchise transitions
    cdef readonly EmissionStats emission
    cdef readonly intp_t n_steps
    cdef readonly int32_t n_states
    cdef int32_t n_slots
    cdef int32_t n_columns          # states and stages (_transitions.hpp): see `pack`
    cdef int32_t before             # column before step 0
    cdef vector[uint8_t] first

    def __init__(self, arrays, EmissionStats emission, starts, restaurant=None, stage=0,
                 contexts=None):
        cdef vector[int32_t] begins
        cdef int32_t t
        self.transitions = frozen_transitions(arrays, contexts)
        self.n_slots = self.transitions.seating.n_slots()
        self.n_states = self.n_slots - FIRST
        self.n_columns = self.transitions.seating.n_columns()
        self.n_steps = emission.n_steps
        self.emission = emission
        emission.shared.get().resize(self.n_slots)
        emission.load(entry_of(arrays, "emission", "the record"), self.n_states)
        emission.shared.get().look_ahead(0, self.n_steps)
        self.before = START
        if restaurant is not None:
            self.before = FIRST + <int32_t> integer_of(
                restaurant, "restaurant", 0, self.n_states - 1)
            self.before += self.n_slots * <int32_t> integer_of(
                stage, "stage", 0, self.transitions.n_stages - 1)
        starts_of(starts, self.n_steps, False, &begins)
        self.first.assign(self.n_steps, 0)
        for t in begins:
            self.first[t] = 1

    cdef int check_total(self, intp_t t, float64_t total) except -1 nogil:
        # (False for NaN too.)
        if 0.0 < total < INFINITY:
            return 0
        with gil:
            raise ValueError(
                f"Step {t} has the probability {total} under this draw: its concentrations "
                "or counts are out of all proportion.")

    cdef inline void pack(self, const float64_t *slots, float64_t *out) noexcept nogil:
        # Slot order to 0 .. n_states - 1, then the new state.
        cdef int32_t k
        for k in range(self.n_states):
            out[k] = slots[FIRST + k]
        out[self.n_states] = slots[NEW]

    cdef inline void pack_columns(self, const float64_t *columns,
                                  float64_t *out) noexcept nogil:
        # The same for sums over stages.
        cdef int32_t k, c = self.n_slots
        self.pack(columns, out)
        while c < self.n_columns:
            for k in range(self.n_states):
                out[k] += columns[c + FIRST + k]
            out[self.n_states] += columns[c + NEW]
            c += self.n_slots

    cdef int begin(self, vector[float64_t] *f, vector[float64_t] *g,
                   vector[float64_t] *likelihood) except -1:
        # What `advance` works on: f is the state before step 0, the others are scratch.
        f.assign(self.n_columns, 0.0)
        g.assign(self.n_columns, 0.0)
        likelihood.assign(self.n_slots, 0.0)
        f.data()[self.before] = 1.0
        return 0

    cdef float64_t advance(self, intp_t t, vector[float64_t] *f, vector[float64_t] *g,
                           vector[float64_t] *likelihood) except? -1 nogil:
        # f = p(x[t - 1] | y[:t]) becomes p(x[t] | y[:t + 1]); returns log p(y[t] | y[:t]).
        cdef int32_t k, n = self.n_columns
        cdef float64_t total = 0.0, log_scale
        cdef float64_t *probs = f.data()
        cdef float64_t *forward = g.data()
        cdef float64_t *values = likelihood.data()
        if self.first[t]:
            f.assign(n, 0.0)
            probs[START] = 1.0
        self.transitions.seating.push(t, probs, forward)
        log_scale = self.emission.shared.get().fill_probs(t, values)
        for k in range(n):
            probs[k] = forward[k] * values[k % self.n_slots]
            total += probs[k]
        self.check_total(t, total)
        for k in range(n):
            probs[k] /= total
        return log(total) + log_scale

    def transition_matrix(self, t=-1):
        """Start and transition probabilities over the states and, last, a new one.

        Parameters
        ----------
        t : int, default=-1
            Those into this step, if they depend on contexts; -1: of a step without one.

        Returns
        -------
        startprob : ndarray of shape (n_states + 1,)
        transmat : ndarray of shape (n_states + 1, n_states + 1)
        """
        cdef int32_t j, n = self.n_states
        cdef int64_t step = t
        startprob = np.empty(n + 1)
        transmat = np.empty((n + 1, n + 1))
        cdef float64_t[::1] start_view = startprob
        cdef float64_t[:, ::1] view = transmat
        cdef vector[float64_t] row
        row.resize(self.n_slots)
        self.transitions.seating.fill_row(step, START, row.data())
        self.pack(row.data(), &start_view[0])
        for j in range(n):
            self.transitions.seating.fill_row(step, FIRST + j, row.data())
            self.pack(row.data(), &view[j, 0])
        self.transitions.seating.fill_row(step, NEW, row.data())
        self.pack(row.data(), &view[n, 0])
        return startprob, transmat

    def filter(self, with_probs=False):
        """Forward pass.

        Returns
        -------
        log_predictive : ndarray of shape (n_steps,)
            log p(y[t] | y[:t], seating), nats; 0 for a missing step.
        probs : ndarray of shape (n_steps, n_states + 1) or None
            p(x[t] | y[:t + 1], seating).
        """
        log_predictive = np.empty(self.n_steps)
        probs = np.empty((self.n_steps, self.n_states + 1)) if with_probs else None
        cdef float64_t[::1] out = log_predictive
        cdef float64_t[:, ::1] probs_out
        cdef bint keep = with_probs
        cdef intp_t t
        cdef vector[float64_t] f, g, likelihood
        self.begin(&f, &g, &likelihood)
        if keep:
            probs_out = probs
        with nogil:
            for t in range(self.n_steps):
                out[t] = self.advance(t, &f, &g, &likelihood)
                if keep:
                    self.pack_columns(f.data(), &probs_out[t, 0])
        return log_predictive, probs

    cdef object filter_columns(self):
        # p(state and stage at t | y[:t + 1], seating), shape (n_steps, n_columns).
        columns = np.empty((self.n_steps, self.n_columns))
        cdef float64_t[:, ::1] out = columns
        cdef intp_t t
        cdef vector[float64_t] f, g, likelihood
        self.begin(&f, &g, &likelihood)
        with nogil:
            for t in range(self.n_steps):
                self.advance(t, &f, &g, &likelihood)
                memcpy(&out[t, 0], f.data(), self.n_columns * sizeof(float64_t))
        return columns

    def forecast(self, n_steps):
        """State probabilities of the steps that follow the last one.

        Parameters
        ----------
        n_steps : int
            One or more.

        Returns
        -------
        probs : ndarray of shape (n_steps, n_states + 1)
            p(x[T + i] | all y, seating), T being the number of steps observed.
        """
        cdef intp_t n_ahead = <intp_t> integer_of(n_steps, "n_steps", 1, MOST_CUSTOMERS)
        probs = np.empty((n_ahead, self.n_states + 1))
        cdef float64_t[:, ::1] probs_out = probs
        cdef intp_t t
        cdef vector[float64_t] f, g, likelihood
        self.begin(&f, &g, &likelihood)
        with nogil:
            for t in range(self.n_steps):
                self.advance(t, &f, &g, &likelihood)
            for t in range(n_ahead):
                self.transitions.seating.push(self.n_steps + t, f.data(), g.data())
                f.swap(g)
                self.pack_columns(f.data(), &probs_out[t, 0])
        return probs

    def log_mixtures(self, probs):
        """Log probability of every step's observation alone, given probabilities of its state.

        Parameters
        ----------
        probs : ndarray of shape (n_steps, n_states + 1)

        Returns
        -------
        log_probs : ndarray of shape (n_steps,)
            ``log sum_k probs[t, k] p(y[t] | k, seating)``, nats.
        """
        if np.shape(probs) != (self.n_steps, self.n_states + 1):
            raise ValueError(
                f"probs has the shape {np.shape(probs)}; expected "
                f"({self.n_steps}, {self.n_states + 1})")
        cdef const float64_t[:, ::1] view = np.ascontiguousarray(probs, dtype=np.float64)
        log_probs = np.empty(self.n_steps)
        cdef float64_t[::1] out = log_probs
        cdef intp_t t
        cdef int32_t k
        cdef float64_t total, log_scale
        cdef vector[float64_t] likelihood
        likelihood.assign(self.n_slots, 0.0)
        with nogil:
            for t in range(self.n_steps):
                log_scale = self.emission.shared.get().fill_probs(t, likelihood.data())
                total = view[t, self.n_states] * likelihood[NEW]
                for k in range(self.n_states):
                    total += view[t, k] * likelihood[FIRST + k]
                self.check_total(t, total)
                out[t] = log(total) + log_scale
        return log_probs

    def _slots(self):
        # Of the states 0 .. n_states - 1 and, last, a new one.
        return np.append(np.arange(FIRST, self.n_slots), NEW).astype(np.int32)

    def predictives(self, inputs=None):
        """Predictive distributions of every state's emissions.

        Parameters
        ----------
        inputs : ndarray of shape (n_inputs,), optional
            As for :meth:`EmissionStats.predictives`.

        Returns
        -------
        predictives : list
            One entry for every column of the data, its last row a new state: probabilities
            of symbols, shape (n_states + 1, n_symbols), or means of numbers, shape
            (n_states + 1,).
        """
        return self.emission.predictives(self._slots(), inputs)

    def draw_values(self, states, n_known, stream, inputs=None):
        """Draw one observation for every state listed.

        Parameters
        ----------
        states : ndarray of int, shape (n_draws,)
            ``n_states`` is a new state.
        n_known : list of int
            Of every column of the data, how many of its symbols (the first ones) may be
            drawn; 0 for a column of numbers.
        stream : RandomStream
        inputs : ndarray of shape (n_draws, n_inputs), optional
            As for :meth:`EmissionStats.draw_values`.

        Returns
        -------
        values : list of ndarray of shape (n_draws,)
            One entry for every column of the data.
        """
        return self.emission.draw_values(self._slots()[states], n_known, stream, inputs)

    def smooth(self):
        """Forward-backward pass.

        Returns
        -------
        probs : ndarray of shape (n_steps, n_states + 1)
            p(x[t] | all y, seating).
        """
        probs = np.empty((self.n_steps, self.n_states + 1))
        cdef float64_t[:, ::1] columns = self.filter_columns(), view = probs
        cdef intp_t t
        cdef int32_t k, n = self.n_columns
        cdef float64_t total
        cdef vector[float64_t] b, values, likelihood
        b.assign(n, 1.0)
        values.assign(n, 0.0)
        likelihood.assign(self.n_slots, 0.0)
        if self.n_steps:
            self.pack_columns(&columns[self.n_steps - 1, 0], &view[self.n_steps - 1, 0])
        with nogil:
            for t in range(self.n_steps - 2, -1, -1):
                if self.first[t + 1]:
                    b.assign(n, 1.0)
                else:
                    # values = p(y[t + 1 ...] | state and stage at t + 1), up to a factor
                    self.emission.shared.get().fill_probs(t + 1, likelihood.data())
                    total = 0.0
                    for k in range(n):
                        values[k] = likelihood[k % self.n_slots] * b[k] if k != START else 0.0
                        total += values[k]
                    self.check_total(t + 1, total)
                    for k in range(n):
                        values[k] /= total
                    self.transitions.seating.pull(t + 1, values.data(), b.data())
                for k in range(n):
                    columns[t, k] *= b[k]
                self.pack_columns(&columns[t, 0], &view[t, 0])
                total = 0.0
                for k in range(self.n_states + 1):
                    total += view[t, k]
                self.check_total(t, total)
                for k in range(self.n_states + 1):
                    view[t, k] /= total
        return probs

    def sample_path(self, RandomStream stream):
        """Draw a path given all observations: forward filtering, backward sampling.

        Parameters
        ----------
        stream : RandomStream

        Returns
        -------
        path : ndarray of shape (n_steps,), int32
            Drawn from p(x | all y, seating); label ``n_states`` is the new state.
        """
        cdef const float64_t[:, ::1] probs = self.filter_columns()
        path = np.empty(self.n_steps, dtype=np.int32)
        cdef int32_t[::1] out = path
        cdef intp_t t
        # All states and, last, a new one, in every stage.
        cdef const int32_t[::1] possible = np.add.outer(
            np.arange(0, self.n_columns, self.n_slots), self._slots()
        ).ravel().astype(np.int32)
        cdef intp_t i, n_possible = possible.shape[0]
        cdef int32_t k, c, chosen = 0
        cdef float64_t u, total
        cdef vector[float64_t] next_state, b, weights
        next_state.assign(self.n_columns, 0.0)
        b.assign(self.n_columns, 1.0)
        weights.assign(self.n_columns, 0.0)
        with nogil:
            for t in range(self.n_steps - 1, -1, -1):
                if t == self.n_steps - 1 or self.first[t + 1]:
                    b.assign(self.n_columns, 1.0)
                else:
                    # b = p(state and stage at t + 1 | those at t), by the latter
                    next_state[chosen] = 1.0
                    self.transitions.seating.pull(t + 1, next_state.data(), b.data())
                    next_state[chosen] = 0.0
                total = 0.0
                for i in range(n_possible):
                    c = possible[i]
                    weights[i] = probs[t, c] * b[c]
                    total += weights[i]
                self.check_total(t, total)
                u = uniform(stream.bits) * total
                for i in range(n_possible):
                    if weights[i] > 0.0:
                        # (The last possible one if rounding leaves something of u.)
                        chosen = possible[i]
                        u -= weights[i]
                        if u < 0.0:
                            break
                k = chosen % self.n_slots
                out[t] = self.n_states if k == NEW else k - FIRST
        return path

    def viterbi(self):
        """Most probable path.

        Returns
        -------
        log_prob : float
            log p(path, y | seating), nats; paths through "a state not seen yet" count as
            one path whichever new states they mean.
        path : ndarray of shape (n_steps,), int32
            Label ``n_states`` is the new state.
        """
        path = np.empty(self.n_steps, dtype=np.int32)
        cdef int32_t[::1] out = path
        cdef intp_t t
        cdef int32_t k, n = self.n_columns, best
        cdef float64_t largest, log_prob = 0.0, log_scale
        cdef vector[float64_t] f, g, likelihood
        cdef vector[int32_t] back
        f.assign(n, 0.0)
        g.assign(n, 0.0)
        likelihood.assign(self.n_slots, 0.0)
        back.resize(<size_t> self.n_steps * n)
        f[self.before] = 1.0
        with nogil:
            for t in range(self.n_steps):
                if self.first[t]:
                    # The best end of the sequence before; its score is in log_prob.
                    best = NEW
                    for k in range(n):
                        if f[k] > f[best]:
                            best = k
                    f.assign(n, 0.0)
                    f[START] = 1.0
                    self.transitions.seating.push_max(t, f.data(), g.data(), &back[t * n])
                    for k in range(n):
                        back[t * n + k] = best
                else:
                    self.transitions.seating.push_max(t, f.data(), g.data(), &back[t * n])
                log_scale = self.emission.shared.get().fill_probs(t, likelihood.data())
                largest = 0.0
                for k in range(n):
                    f[k] = g[k] * likelihood[k % self.n_slots]
                    if f[k] > largest:
                        largest = f[k]
                self.check_total(t, largest)
                for k in range(n):
                    f[k] /= largest
                log_prob += log(largest) + log_scale
            best = NEW
            for k in range(n):
                if f[k] > f[best]:
                    best = k
            for t in range(self.n_steps - 1, -1, -1):
                k = best % self.n_slots
                out[t] = self.n_states if k == NEW else k - FIRST
                best = back[t * n + best]
        return log_prob, path
