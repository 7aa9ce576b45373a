"""Particle filter on a seating: initial paths and adaptive held-out prediction."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._random cimport RandomStream
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_particles.hpp" namespace "skihmm" nogil:
    cdef enum class Resampling:
        kSystematic
        kStratified
        kMultinomial

    cdef cppclass CppParticleFilter "skihmm::ParticleFilter":
        CppParticleFilter(int32_t n_particles, Resampling resampling, float64_t alpha,
                          float64_t gamma) except +
        void add_column(int32_t n_symbols, cbool hierarchical, float64_t alpha,
                        float64_t gamma) except +
        void add_states(int32_t n_states) except +
        void add_transition(int32_t row, int32_t dish, int32_t n_customers,
                            int32_t n_tables) except +
        void add_symbol(int32_t c, int32_t state, int32_t symbol, int32_t n_customers,
                        int32_t n_tables) except +
        void run(const int32_t *codes, int64_t n_steps, const uint8_t *first,
                 int32_t restaurant, float64_t *log_predictive, bitgen_t *g) except +
        vector[int32_t] draw_path(bitgen_t *g) except +
        void simulate(int64_t n_steps, const int32_t *n_known, int32_t *states_out,
                      int32_t *codes_out, bitgen_t *g) except +


RESAMPLING = ("systematic", "stratified", "multinomial")


cdef CppParticleFilter *_build(n_particles, resampling, alpha, gamma, columns,
                               seating) except NULL:
    # The caller deletes.
    cdef intp_t i
    cdef int32_t c, n_states
    cdef const int32_t[::1] rows, dishes, customers, tables
    if resampling not in RESAMPLING:
        choices = ", ".join(map(repr, RESAMPLING))
        raise ValueError(f"resampling={resampling!r}; expected one of {choices}.")
    cdef CppParticleFilter *particles = new CppParticleFilter(
        n_particles, <Resampling> <int> RESAMPLING.index(resampling), alpha, gamma)
    try:
        for n_symbols, hierarchical, column_alpha, column_gamma in columns:
            particles.add_column(n_symbols, hierarchical, column_alpha, column_gamma)
        if seating is None:
            return particles
        n_states = seating["n_states"]
        particles.add_states(n_states)
        record = seating["transitions"]
        rows, dishes = record["rows"], record["dishes"]
        customers, tables = record["n_customers"], record["n_tables"]
        for i in range(rows.shape[0]):
            particles.add_transition(
                0 if rows[i] == n_states else rows[i] + 1,
                dishes[i], customers[i], tables[i])
        for c, record in enumerate(seating["emission"]["columns"]):
            rows, dishes = record["rows"], record["dishes"]
            customers, tables = record["n_customers"], record["n_tables"]
            for i in range(rows.shape[0]):
                particles.add_symbol(c, rows[i], dishes[i], customers[i], tables[i])
    except BaseException:
        del particles
        raise
    return particles


def filter_particles(codes, starts, columns, RandomStream stream, *, n_particles,
                     alpha, gamma, seating=None, restaurant=0,
                     resampling="systematic"):
    """Run a particle filter with categorical emissions along a sequence of symbols.

    Every particle seats its own transitions and observations.  ``seating`` is only
    read.  Weights are updated by the predictive probability of each step, particles are
    resampled when the effective number of particles falls below half of them.

    Parameters
    ----------
    codes : ndarray of shape (n_steps, n_columns), int32
        Symbols; -1 is missing and has likelihood one.
    starts : ndarray of shape (n_sequences,)
        Steps whose predecessor is the start restaurant.
    columns : list of (n_symbols, hierarchical, alpha, gamma)
        The emission of every column.
    stream : RandomStream
    n_particles : int
    alpha, gamma : float
        Concentrations of the transitions.
    seating : dict, optional
        ``ChainState.to_arrays()`` of the state to start from; empty by default.
    restaurant : int, default=0
        Where step 0 is drawn unless it is in `starts`: 0 is the start restaurant,
        1 + k that of state k of `seating`.
    resampling : {"systematic", "stratified", "multinomial"}, default="systematic"

    Returns
    -------
    log_predictive : ndarray of shape (n_steps,)
        Log of the predictive probability of each step before it is used, nats.  The
        product of the probabilities is an unbiased estimate of p(codes | seating).
    path : ndarray of shape (n_steps,), int32
        States of one particle drawn by weight; labels continue those of `seating`.
    """
    cdef const int32_t[:, ::1] view = np.ascontiguousarray(codes, dtype=np.int32)
    cdef intp_t n_steps = view.shape[0], i
    first_array = np.zeros(n_steps, dtype=np.uint8)
    first_array[np.asarray(starts, dtype=np.intp)] = 1
    cdef const uint8_t[::1] first = first_array
    log_predictive = np.empty(n_steps)
    states = np.empty(n_steps, dtype=np.int32)
    cdef float64_t[::1] out = log_predictive
    cdef int32_t[::1] states_view = states
    cdef int32_t start = restaurant
    cdef vector[int32_t] path
    if n_steps == 0:
        return log_predictive, states
    cdef CppParticleFilter *particles = _build(
        n_particles, resampling, alpha, gamma, columns, seating)
    try:
        with nogil:
            particles.run(&view[0, 0], n_steps, &first[0], start, &out[0], stream.bits)
            path = particles.draw_path(stream.bits)
    finally:
        del particles
    for i in range(n_steps):
        states_view[i] = path[i]
    return log_predictive, states


def simulate(n_steps, columns, n_known, RandomStream stream, *, alpha, gamma, seating):
    """Draw a new sequence from the predictive distribution of a seating.

    Parameters
    ----------
    n_steps : int
    columns : list of (n_symbols, hierarchical, alpha, gamma)
        The emission of every column.
    n_known : list of int
        Of every column, how many of its symbols (the first ones) may be drawn.
    stream : RandomStream
    alpha, gamma : float
        Concentrations of the transitions.
    seating : dict
        ``ChainState.to_arrays()``; only read.

    Returns
    -------
    codes : ndarray of shape (n_steps, n_columns), int32
    states : ndarray of shape (n_steps,), int32
        Labels from ``seating["n_states"]`` on are new states.
    """
    cdef int64_t n = n_steps
    codes = np.empty((n_steps, len(columns)), dtype=np.int32)
    states = np.empty(n_steps, dtype=np.int32)
    cdef int32_t[:, ::1] codes_view = codes
    cdef int32_t[::1] states_view = states
    cdef const int32_t[::1] known = np.asarray(n_known, dtype=np.int32)
    cdef CppParticleFilter *particles = _build(
        1, "systematic", alpha, gamma, columns, seating)
    try:
        with nogil:
            particles.simulate(n, &known[0], &states_view[0], &codes_view[0, 0],
                               stream.bits)
    finally:
        del particles
    return codes, states
