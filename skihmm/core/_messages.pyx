"""Message passing under a frozen seating: an HMM with K + 1 states.

With the seating of one posterior draw held fixed, the predictive probabilities belong to an
ordinary HMM whose last state lumps all unseen states (exactly: under a frozen seating all fresh
states have the same rows).  The
passes: _messages.hpp.
"""

import numpy as np

from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._franchise cimport Franchise, Transitions, frozen_transitions
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport MOST_CUSTOMERS, entry_of, int32_of, integer_of, starts_of
from skihmm.core._slots cimport FIRST, NEW, START
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_messages.hpp" namespace "skihmm" nogil:
    cdef cppclass FrozenMessages:
        FrozenMessages(const Transitions &transitions, Emission &emission, int64_t n_cells,
                       vector[uint8_t] first, int32_t before) except +
        int32_t n_slots()
        void set_message(const float64_t *message) except +
        void take_message(float64_t *out)
        int32_t n_packed()
        void filter(float64_t *log_predictive, float64_t *probs, float64_t *ahead) except +
        void filter_columns(float64_t *out) except +
        void forecast(int64_t n_ahead, float64_t *probs) except +
        void smooth(float64_t *probs) except +
        void sample_runs(const float64_t *filtered, const int64_t *bounds, int64_t n_runs,
                         int64_t n_paths, bitgen_t *g, int32_t *states) except +
        float64_t viterbi(int64_t least, int32_t *path) except +
        float64_t log_joint(const int32_t *path) except +
        void log_mixtures(const float64_t *probs, float64_t *out) except +
        void emission_terms(float64_t *out) except +


cdef inline float64_t *begin_of(float64_t[:, ::1] values) noexcept:
    return &values[0, 0] if values.size else NULL


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
    contexts : object, optional
        For transitions that depend on contexts those of the steps, and of steps that follow
        them: ``depths`` and ``prefixes`` as for :class:`Franchise`.  Steps without one have
        the law of the restaurant above all contexts.
    switch_penalty : float, default=0.0
        Nats per draw after a state, by which paths are weighed: `filter`, `log_joint` and the
        other passes are those of probabilities times ``exp(-switch_penalty)`` for every draw.
    message : ndarray, optional
        Of `follow` of a model of the same draw, whose last step precedes step 0, in the place
        of `restaurant`.

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
    cdef unique_ptr[FrozenMessages] messages

    def __init__(self, arrays: ModelRecord, EmissionStats emission, starts: Integers,
                 restaurant: int | None = None,
                 contexts: StepContexts | None = None, switch_penalty: float = 0.0,
                 message: Floats | None = None):
        cdef vector[int32_t] begins
        cdef vector[uint8_t] first
        cdef int32_t t, before = START
        self.transitions = frozen_transitions(arrays, contexts)
        self.transitions.native.set_switch_penalty(switch_penalty)
        self.n_slots = self.transitions.native.n_slots()
        self.n_states = self.n_slots - FIRST
        self.n_steps = emission.n_steps
        self.emission = emission
        emission.shared.get().resize(self.n_slots)
        emission.load(entry_of(arrays, "emission", "the record"), self.n_states)
        emission.shared.get().only_evaluate()
        emission.shared.get().look_ahead(0, self.n_steps)
        if restaurant is not None:
            before = FIRST + <int32_t> integer_of(
                restaurant, "restaurant", 0, self.n_states - 1)
        starts_of(starts, self.n_steps, False, &begins)
        first.assign(self.n_steps, 0)
        for t in begins:
            first[t] = 1
        self.messages.reset(new FrozenMessages(
            self.transitions.native[0], emission.shared.get()[0],
            len(arrays["transitions"]["rows"]), first, before))
        self.begin_with(message)

    cdef int begin_with(self, message) except -1:
        cdef const float64_t[::1] view
        if message is None:
            self.messages.get().set_message(NULL)
            return 0
        view = np.ascontiguousarray(message, dtype=np.float64)
        if view.shape[0] != self.messages.get().n_slots():
            raise ValueError(
                f"message has {view.shape[0]} entries; expected "
                f"{self.messages.get().n_slots()}")
        self.messages.get().set_message(&view[0])
        return 0

    cdef inline void pack(self, const float64_t *slots, float64_t *out) noexcept nogil:
        # Slot order to 0 .. n_states - 1, then the new state.
        cdef int32_t k
        for k in range(self.n_states):
            out[k] = slots[FIRST + k]
        out[self.n_states] = slots[NEW]

    def transition_matrix(self, t: int = -1) -> tuple[Floats, Floats]:
        """Start and transition probabilities over the states and, last, a new state.

        Parameters
        ----------
        t : int, default=-1
            Transitions into this step, if they depend on contexts; -1: into a step without context.

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
        self.transitions.native.fill_row(step, START, row.data())
        self.pack(row.data(), &start_view[0])
        for j in range(n):
            self.transitions.native.fill_row(step, FIRST + j, row.data())
            self.pack(row.data(), &view[j, 0])
        self.transitions.native.fill_row(step, NEW, row.data())
        self.pack(row.data(), &view[n, 0])
        return startprob, transmat

    def filter(self, with_probs: bool = False) -> tuple[Floats, Floats | None]:
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
        cdef float64_t[::1] log_view = log_predictive
        cdef float64_t *log_begin = &log_view[0] if self.n_steps else NULL
        cdef float64_t *probs_begin = begin_of(probs) if with_probs else NULL
        with nogil:
            self.messages.get().filter(log_begin, probs_begin, NULL)
        return log_predictive, probs

    def look_ahead(self) -> Floats:
        """State probabilities of every step before its observation.

        Returns
        -------
        probs : ndarray of shape (n_steps, n_states + 1)
            p(x[t] | y[:t], seating).
        """
        log_predictive = np.empty(self.n_steps)
        probs = np.empty((self.n_steps, self.n_states + 1))
        cdef float64_t[::1] log_view = log_predictive
        cdef float64_t *ahead = begin_of(probs)
        if self.n_steps:
            with nogil:
                self.messages.get().filter(&log_view[0], NULL, ahead)
        return probs

    def follow(self, message: Floats | None = None) -> tuple[Floats, Floats, Floats, Floats]:
        """Forward pass that goes on from, and to, other steps.

        Parameters
        ----------
        message : ndarray, optional
            Message of the steps before; by default there are no steps before.

        Returns
        -------
        log_predictive : ndarray of shape (n_steps,)
        ahead, probs : ndarray of shape (n_steps, n_states + 1)
            Results of `look_ahead` and `filter`.
        message : ndarray
            Message of all steps on the state of the last step.
        """
        self.begin_with(message)
        log_predictive = np.empty(self.n_steps)
        ahead = np.empty((self.n_steps, self.n_states + 1))
        probs = np.empty_like(ahead)
        after = np.empty(self.messages.get().n_slots())
        cdef float64_t[::1] log_view = log_predictive, after_view = after
        cdef float64_t *ahead_begin = begin_of(ahead)
        cdef float64_t *probs_begin = begin_of(probs)
        if self.n_steps:
            with nogil:
                self.messages.get().filter(&log_view[0], probs_begin, ahead_begin)
                self.messages.get().take_message(&after_view[0])
        return log_predictive, ahead, probs, after

    cdef object filter_columns(self):
        # p(state at t | y[:t + 1], seating).
        columns = np.empty((self.n_steps, self.messages.get().n_packed()))
        cdef float64_t *out = begin_of(columns)
        with nogil:
            self.messages.get().filter_columns(out)
        return columns

    def forecast(self, n_steps: int) -> Floats:
        """State probabilities of the steps after the last observed step.

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
        cdef float64_t *out = begin_of(probs)
        with nogil:
            self.messages.get().forecast(n_ahead, out)
        return probs

    def log_densities(self) -> Floats:
        """Log probability of every step's observation alone in every state.

        Returns
        -------
        log_densities : ndarray of shape (n_steps, n_states + 1)
            log p(y[t] | k, seating), nats; 0 for a missing step.
        """
        cdef intp_t t
        cdef vector[float64_t] row
        # Families may write whole vectors of sixteen.
        row.resize(self.n_slots + 16)
        found = np.empty((self.n_steps, self.n_states + 1))
        cdef float64_t[:, ::1] out = found
        for t in range(self.n_steps):
            self.emission.shared.get().fill_logs(t, row.data())
            self.pack(row.data(), &out[t, 0])
        return found

    def log_mixtures(self, probs: Floats) -> Floats:
        """Log probability of every step's observation alone, given probabilities of its state.

        Parameters
        ----------
        probs : ndarray of shape (n_steps, n_states + 1)

        Returns
        -------
        log_mixtures : ndarray of shape (n_steps,)
            ``log sum_k probs[t, k] p(y[t] | k, seating)``, nats.
        """
        if np.shape(probs) != (self.n_steps, self.n_states + 1):
            raise ValueError(
                f"probs has the shape {np.shape(probs)}; expected "
                f"({self.n_steps}, {self.n_states + 1})")
        cdef const float64_t[:, ::1] view = np.ascontiguousarray(probs, dtype=np.float64)
        found = np.empty(self.n_steps)
        cdef float64_t[::1] out = found
        if self.n_steps:
            with nogil:
                self.messages.get().log_mixtures(&view[0, 0], &out[0])
        return found

    def emission_terms(self) -> Floats:
        """Log probability (density) of every step's observation in every state.

        Returns
        -------
        terms : ndarray of shape (n_steps, n_states + 1)
            ``log p(y[t] | k, seating)``, nats; 0 for a missing step.
        """
        terms = np.empty((self.n_steps, self.n_states + 1))
        cdef float64_t *out = begin_of(terms)
        with nogil:
            self.messages.get().emission_terms(out)
        return terms

    def _slots(self) -> Labels:
        # Slots of the states 0 .. n_states - 1 and, last, of a new state.
        return np.append(np.arange(FIRST, self.n_slots), NEW).astype(np.int32)

    def predictives(self, inputs: Floats | None = None) -> list[Floats]:
        """Predictive distributions of every state's emissions.

        Parameters
        ----------
        inputs : ndarray of shape (n_inputs,) or (n_rows, n_inputs), optional
            As for :meth:`EmissionStats.predictives`; those of several rows at once take
            little longer than those of one.

        Returns
        -------
        predictives : list
            One entry for every column of the data, its last row a new state: probabilities
            of symbols, shape (n_states + 1, n_symbols), or means of numbers, shape
            (n_states + 1,), of angles those of exp(i angle).  With inputs of several rows
            the rows are a first dimension.
        """
        slots = self._slots()
        if np.ndim(inputs) < 2:
            return self.emission.predictives(slots, inputs)
        columns = self.emission.predictives(
            np.tile(slots, len(inputs)), np.repeat(inputs, len(slots), axis=0))
        return [column.reshape(len(inputs), len(slots), *column.shape[1:])
                for column in columns]

    def draw_values(self, states: Integers, n_known: list[int], stream: RandomStream,
                    inputs: Floats | None = None) -> list[Array]:
        """Draw one observation for every state listed.

        Parameters
        ----------
        states : ndarray of int, shape (n_draws,)
            ``n_states`` is a new state.
        n_known : list of int
            How many of the symbols of every column of the data (the first ones) may be
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

    def draw_hidden(self, states: Integers, stream: RandomStream, is_chain: bool = False) -> Floats:
        """Draw the missing entries that are filled, given the states of all steps.

        Parameters
        ----------
        states : ndarray of shape (n_steps,), int
            ``n_states`` is a new state.
        stream : RandomStream
        is_chain : bool, default=False
            See :meth:`EmissionStats.draw_hidden`; with subjects that are not of the fit theirs
            alone are drawn.

        Returns
        -------
        means : ndarray of shape (n_filled,)
        """
        means = self.emission.draw_hidden(self._slots()[states], stream, is_chain)
        if means is None:
            return np.empty(0)
        self.emission.shared.get().look_ahead(0, self.n_steps)
        return means

    def smooth(self) -> Floats:
        """Forward-backward pass.

        Returns
        -------
        probs : ndarray of shape (n_steps, n_states + 1)
            p(x[t] | all y, seating).
        """
        probs = self.filter_columns()
        cdef float64_t *out = begin_of(probs)
        with nogil:
            self.messages.get().smooth(out)
        return probs

    def sample_path(self, RandomStream stream) -> Labels:
        """Draw a path given all observations: forward filtering, backward sampling.

        Parameters
        ----------
        stream : RandomStream

        Returns
        -------
        path : ndarray of shape (n_steps,), int32
            Drawn from p(x | all y, seating); label ``n_states`` is the new state.
        """
        return self.sample_runs(np.arange(self.n_steps), 1, stream)[:, 0]

    def sample_runs(self, steps: Integers, n_paths: int, RandomStream stream) -> Labels:
        """Draw the states of some steps on several paths given all observations.

        Parameters
        ----------
        steps : ndarray of int
            Ascending.
        n_paths : int
        stream : RandomStream

        Returns
        -------
        states : ndarray of shape (len(steps), n_paths), int32
            For every run of consecutive steps `n_paths` draws from p(x | all y, seating).
            Draws of two runs are independent of each other: side by side they are not
            draws from the joint distribution.
        """
        columns = self.filter_columns()
        bounds = np.column_stack([
            steps[np.diff(steps, prepend=-2) > 1],
            steps[np.diff(steps, append=self.n_steps + 1) > 1] + 1,
        ])
        states = np.empty((len(steps), n_paths), dtype=np.int32)
        cdef const float64_t *filtered = begin_of(columns)
        cdef const int64_t[:, ::1] bounds_view = bounds.astype(np.int64, order="C")
        cdef int32_t[:, ::1] out = states
        cdef int64_t n = n_paths
        if states.size:
            with nogil:
                self.messages.get().sample_runs(filtered, &bounds_view[0, 0],
                                                bounds_view.shape[0], n, stream.bits,
                                                &out[0, 0])
        return states

    def log_joint(self, path: Integers) -> float:
        """Log joint probability of a path and the observations.

        Parameters
        ----------
        path : ndarray of shape (n_steps,)
            Labels from 0 to ``n_states - 1``.

        Returns
        -------
        log_prob : float
            log p(path, y | seating), nats.  With stays and contexts only of the path of the draw,
            with its stays.
        """
        cdef const int32_t[::1] labels = int32_of(path, "path")
        cdef float64_t log_prob = 0.0
        if self.n_steps:
            with nogil:
                log_prob = self.messages.get().log_joint(&labels[0])
        return log_prob

    def viterbi(self, min_dwell: int = 1) -> tuple[float, Labels]:
        """Most probable path, or the most probable path without short stays.

        Parameters
        ----------
        min_dwell : int, default=1
            Least number of steps of every stay but the first and the last of a sequence.

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
        cdef int64_t least = integer_of(min_dwell, "min_dwell", 1, MOST_CUSTOMERS)
        cdef float64_t log_prob = 0.0
        if self.n_steps:
            with nogil:
                log_prob = self.messages.get().viterbi(least, &out[0])
        return log_prob, path
