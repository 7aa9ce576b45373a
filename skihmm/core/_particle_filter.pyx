"""Particle filter on a seating: initial paths and adaptive held-out prediction."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport EmissionStats, ParticleCounts
from skihmm.core._franchise cimport (
    ContextPlace,
    ContextShape,
    Franchise,
    Transitions,
    frozen_transitions,
    places_of,
    set_input_rows,
    shape_of,
)
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport MOST_CUSTOMERS, entry_of, integer_of, starts_of
from skihmm.core._slots cimport FIRST
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_particle_counts.hpp" namespace "skihmm" nogil:
    ParticleCounts *counts_of "new skihmm::ParticleCounts"(
        const Transitions &transitions, const ContextShape &shape,
        vector[ContextPlace] places) except +


cdef extern from "_particles.hpp" namespace "skihmm" nogil:
    ParticleCounts move "std::move"(ParticleCounts &) noexcept

    cdef cppclass CppParticleFilter "skihmm::ParticleFilter":
        CppParticleFilter(int32_t n_particles, ParticleCounts counts) except +
        void set_filtered(int64_t)
        void start_slice()
        void begin(int32_t restaurant) except +
        int64_t run(const int32_t *codes, const float64_t *values, int64_t t,
                    int64_t n_steps, const uint8_t *first, cbool finish,
                    float64_t *log_predictive, bitgen_t *g) except +
        vector[int32_t] draw_path(bitgen_t *g) except +
        int64_t simulate(int64_t t, int64_t n_steps, const int32_t *n_known,
                         int32_t *states_out, int32_t *codes_out, float64_t *values_out,
                         bitgen_t *g) except +


cdef class _Particles:
    # Particles of a model, over the rows of its emission: symbols, and numbers.
    cdef unique_ptr[CppParticleFilter] native
    cdef object codes, values, parts
    cdef int32_t n_states

    def __init__(self, n_particles, EmissionStats emission, Franchise transitions=None,
                 seating=None, contexts=None):
        cdef ContextShape shape
        cdef vector[ContextPlace] places
        cdef unique_ptr[ParticleCounts] counts
        if seating is not None:
            transitions = frozen_transitions(seating)
            self.n_states = transitions.native.n_slots() - FIRST
            emission.shared.get().resize(transitions.native.n_slots())
            emission.load(entry_of(seating, "emission", "the record"), self.n_states)
        elif transitions is None:
            transitions = Franchise()
        if contexts is None and transitions.has_contexts:
            raise ValueError(
                "the transitions depend on contexts, but contexts is None; expected those of "
                "the steps")
        n_particles = integer_of(n_particles, "n_particles", 1, 2**31 - 1)
        if transitions.has_inputs and contexts is not None:
            set_input_rows(transitions.native, contexts.inputs)
        if transitions.has_contexts:
            shape_of(contexts.n_before, contexts.parents, &shape)
            places_of(contexts.depths, contexts.prefixes, shape, &places)
        counts.reset(counts_of(transitions.native[0], shape, places))
        emission.shared.get().add_to(counts.get(), self.n_states)
        self.native.reset(new CppParticleFilter(n_particles, move(counts.get()[0])))
        self.parts = emission.rows()
        # At least one column, so that there is an address.
        nothing = [np.zeros((emission.n_steps, 1), dtype=np.int32), np.zeros((emission.n_steps, 1))]
        self.codes, self.values = (
            np.ascontiguousarray(np.hstack(
                [rows for rows, _, _ in self.parts if rows.dtype == empty.dtype] or [empty]))
            for empty in nothing)

    def observed(self):
        # The observed columns, part after part.
        columns, at = [], {np.dtype(np.int32): 0, np.dtype(np.float64): 0}
        for rows, n, _ in self.parts:
            every = self.codes if rows.dtype == np.int32 else self.values
            begin = at[rows.dtype]
            columns.append(every[:, begin:begin + n])
            at[rows.dtype] += rows.shape[1]
        return np.hstack(columns)


def filter_particles(EmissionStats emission, starts: Integers | list[int], RandomStream stream, *,
                     n_particles: int, transitions: Franchise | None = None,
                     seating: ModelRecord | None = None, restaurant: int = 0,
                     is_stopped: Callable[[], bool] | None = None, independent: bool = False,
                     contexts: StepContexts | None = None, n_filtered: int | None = None,
                     path_only: bool = False) -> tuple[Floats, Labels]:
    """Run a particle filter along sequences of observations.

    Every particle seats its own transitions and observations.  ``seating`` is not
    changed.  Weights are updated by the predictive probability of each step, particles are
    resampled (systematically) when the effective number of particles falls below half of them.

    Parameters
    ----------
    emission : EmissionStats
        Statistics over the observations, with the counts of `seating` or without counts.
    starts : ndarray of shape (n_sequences,)
        Steps whose predecessor is the start restaurant.
    stream : RandomStream
    n_particles : int
    transitions : Franchise, optional
        Empty transitions to start from, those of ``Franchise()`` by default; `seating` has
        its own.
    seating : dict, optional
        ``ChainState.to_arrays()`` of the state to start from; empty by default.
    restaurant : int, default=0
        Restaurant of step 0 unless it is in `starts`: 0 is the start restaurant, 1 + k
        the restaurant of state k of `seating`.
    is_stopped : callable, optional
        Called several times a second; True raises KeyboardInterrupt, like Ctrl-C in the
        main thread.
    independent : bool, default=False
        Whether every sequence starts from `seating` again, independently of the others,
        without drawing a path.  By default they are seated one after the other.
    contexts : object, optional
        For a `seating` with contexts those of the steps: ``n_before``, ``parents``,
        ``depths`` and ``prefixes`` as for :class:`Franchise`; all contexts of `seating` come
        first, in its numbering.  Steps without one are drawn above all contexts.
    n_filtered : int, optional
        After so many steps one particle, drawn by weight, goes on alone.  By default all
        go on to the end.  Not for `independent` sequences.
    path_only : bool, default=False
        Return no `log_predictive`, which takes twice the memory of the path.

    Returns
    -------
    log_predictive : ndarray of shape (n_steps,), or None
        Log of the predictive probability of each step before it is used, nats.  The
        product of the probabilities is an unbiased estimate of p(codes | seating).
    path : ndarray of shape (n_steps,), int32, or None
        States of one particle drawn by weight; labels continue the labels of `seating`.

    Raises
    ------
    ValueError
        If `seating` is not from a draw with such an emission, or the data are impossible under it.
    """
    cdef _Particles particles = _Particles(n_particles, emission, transitions, seating, contexts)
    cdef intp_t n_steps = emission.n_steps
    cdef int64_t n_done = 0
    cdef size_t n_ended = 0
    cdef int32_t t, start
    cdef vector[int32_t] begins, path
    cdef vector[uint8_t] first
    cdef vector[int64_t] ends
    cdef float64_t *log_begin = NULL
    cdef float64_t[::1] out
    cdef cbool finish = not independent
    starts_of(starts, n_steps, False, &begins)
    start = <int32_t> integer_of(restaurant, "restaurant", 0, particles.n_states)
    log_predictive = None if path_only else np.empty(n_steps)
    if n_steps == 0:
        return log_predictive, None if independent else np.empty(0, dtype=np.int32)
    first.assign(n_steps, 0)
    for t in begins:
        first[t] = 1
    if log_predictive is not None:
        out = log_predictive
        log_begin = &out[0]
    if independent:
        ends.assign(begins.begin() + (first[0] != 0), begins.end())
    ends.push_back(n_steps)
    cdef const int32_t[:, ::1] codes = particles.codes
    cdef const float64_t[:, ::1] values = particles.values
    cdef CppParticleFilter *native = particles.native.get()
    native.begin(start)
    if n_filtered is not None:
        native.set_filtered(n_filtered)
    while n_ended < ends.size():
        with nogil:
            native.start_slice()
            while n_ended < ends.size():
                n_done = native.run(&codes[0, 0], &values[0, 0], n_done, ends[n_ended],
                                    first.data(), finish, log_begin, stream.bits)
                if n_done < ends[n_ended]:
                    break
                n_ended += 1
                if n_ended < ends.size():
                    native.begin(start)
        PyErr_CheckSignals()
        if is_stopped is not None and is_stopped():
            raise KeyboardInterrupt
    if independent:
        return log_predictive, None
    path = native.draw_path(stream.bits)
    return log_predictive, np.array(<int32_t[:n_steps]> path.data())


def simulate(EmissionStats emission, n_known: list[int], RandomStream stream, seating: ModelRecord,
             contexts: StepContexts | None = None) -> tuple[Array, Labels]:
    """Draw a new sequence from the predictive distribution of a seating.

    Parameters
    ----------
    emission : EmissionStats
        Statistics over as many rows as are drawn, one or more, with their given inputs; observed
        values do not matter.
    n_known : list of int
        Number of symbols (the first ones) that may be drawn, for every column of symbols.
    stream : RandomStream
    seating, contexts
        As for :func:`filter_particles`.

    Returns
    -------
    codes : ndarray of shape (n_steps, n_columns), int32 or float64
    states : ndarray of shape (n_steps,), int32
        Labels from ``seating["n_states"]`` on are new states.
    """
    cdef int64_t n = integer_of(emission.n_steps, "n_steps", 1, MOST_CUSTOMERS), n_done = 0
    cdef _Particles particles = _Particles(1, emission, None, seating, contexts)
    # Symbols of columns of codes; families draw their symbols themselves.
    limits, rest = [], list(n_known)
    sizes = [size for _, _, sizes in particles.parts for size in sizes]
    if len(n_known) != len(sizes):
        raise ValueError(f"n_known has {len(n_known)} entries for {len(sizes)} columns")
    for c, (limit, size) in enumerate(zip(n_known, sizes, strict=True)):
        integer_of(limit, f"n_known[{c}]", 1, size)
    for rows, _, sizes in particles.parts:
        limits += rest[:len(sizes)] if rows.dtype == np.int32 else []
        del rest[:len(sizes)]
    cdef const int32_t[::1] known = np.array([*limits, 0], dtype=np.int32)
    states = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] states_view = states
    cdef int32_t[:, ::1] codes = particles.codes
    cdef float64_t[:, ::1] values = particles.values
    particles.native.get().begin(0)
    while n_done < n:
        with nogil:
            particles.native.get().start_slice()
            n_done = particles.native.get().simulate(
                n_done, n, &known[0], &states_view[0], &codes[0, 0], &values[0, 0], stream.bits)
        PyErr_CheckSignals()
    return particles.observed(), states
