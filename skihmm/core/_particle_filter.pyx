"""Particle filter on a seating: initial paths and adaptive held-out prediction."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport (
    MOST_CUSTOMERS,
    SeatingRecord,
    concentration_of,
    entry_of,
    integer_of,
    record_from_arrays,
    starts_of,
    transitions_from_arrays,
)
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
                               seating, int32_t *n_states_out) except NULL:
    # The caller deletes.
    cdef size_t i
    cdef int32_t c, n_states
    cdef SeatingRecord record
    cdef float64_t ignored
    n_states_out[0] = 0
    if resampling not in RESAMPLING:
        choices = ", ".join(map(repr, RESAMPLING))
        raise ValueError(f"resampling={resampling!r}; expected one of {choices}.")
    cdef CppParticleFilter *particles = new CppParticleFilter(
        integer_of(n_particles, "n_particles", 1, 2**31 - 1),
        <Resampling> <int> RESAMPLING.index(resampling),
        concentration_of(alpha, "alpha"), concentration_of(gamma, "gamma"))
    try:
        for c, (n_symbols, hierarchical, column_alpha, column_gamma) in enumerate(columns):
            particles.add_column(
                integer_of(n_symbols, f"the number of symbols of column {c}", 1, 2**31 - 1),
                hierarchical,
                concentration_of(column_alpha, f"alpha of column {c}"),
                concentration_of(column_gamma, f"gamma of column {c}"))
        if seating is None:
            return particles
        n_states = transitions_from_arrays(seating, &record, &ignored, &ignored)
        n_states_out[0] = n_states
        particles.add_states(n_states)
        for i in range(record.rows.size()):
            particles.add_transition(
                0 if record.rows[i] == n_states else record.rows[i] + 1,
                record.dishes[i], record.n_customers[i], record.n_tables[i])
        emission = entry_of(seating, "emission", "the record")
        seated = entry_of(emission, "columns", "emission")
        if not isinstance(seated, (list, tuple)) or len(seated) != len(columns):
            raise ValueError(
                f"emission: columns is {seated!r:.100}; expected a list of {len(columns)} "
                "dicts, one per column")
        for c, (n_symbols, hierarchical, _, _) in enumerate(columns):
            record_from_arrays(seated[c], f"emission, column {c}", n_states, n_symbols,
                               hierarchical, &record)
            for i in range(record.rows.size()):
                particles.add_symbol(c, record.rows[i], record.dishes[i],
                                     record.n_customers[i], record.n_tables[i])
    except BaseException:
        del particles
        raise
    return particles


cdef int _check_codes(codes, columns) except -1:
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.dtype.kind not in "iu" or (
            codes.shape[1] != len(columns) or not columns):
        raise ValueError(
            f"codes is an array of type {codes.dtype} and shape {codes.shape}; expected "
            f"integers in {len(columns)} columns, one or more")
    for c in range(len(columns) if len(codes) else 0):
        integer_of(codes[:, c].min(), f"the least code of column {c}", -1, 2**31 - 2)
        integer_of(codes[:, c].max(), f"the largest code of column {c}", -1,
                   columns[c][0] - 1)
    return 0


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

    Raises
    ------
    ValueError
        If `seating` is not that of a draw with such columns, or by it something that
        happened is impossible.
    """
    _check_codes(codes, columns)
    cdef const int32_t[:, ::1] view = np.ascontiguousarray(codes, dtype=np.int32)
    cdef intp_t n_steps = view.shape[0], i
    cdef int32_t t, n_states
    cdef vector[int32_t] begins
    integer_of(n_steps, "the number of steps", 0, MOST_CUSTOMERS)
    starts_of(starts, n_steps, False, &begins)
    cdef vector[uint8_t] first
    first.assign(n_steps, 0)
    for t in begins:
        first[t] = 1
    log_predictive = np.empty(n_steps)
    states = np.empty(n_steps, dtype=np.int32)
    cdef float64_t[::1] out = log_predictive
    cdef int32_t[::1] states_view = states
    cdef int32_t start
    cdef vector[int32_t] path
    if n_steps == 0:
        return log_predictive, states
    cdef CppParticleFilter *particles = _build(
        n_particles, resampling, alpha, gamma, columns, seating, &n_states)
    try:
        start = <int32_t> integer_of(restaurant, "restaurant", 0, n_states)
        with nogil:
            particles.run(&view[0, 0], n_steps, first.data(), start, &out[0], stream.bits)
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
        One or more.
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
    cdef int64_t n = integer_of(n_steps, "n_steps", 1, MOST_CUSTOMERS)
    cdef int32_t c, n_states
    if len(n_known) != len(columns) or not columns:
        raise ValueError(f"n_known has {len(n_known)} entries for {len(columns)} columns")
    for c in range(<int32_t> len(columns)):
        integer_of(n_known[c], f"n_known[{c}]", 1, columns[c][0])
    codes = np.empty((n_steps, len(columns)), dtype=np.int32)
    states = np.empty(n_steps, dtype=np.int32)
    cdef int32_t[:, ::1] codes_view = codes
    cdef int32_t[::1] states_view = states
    cdef const int32_t[::1] known = np.asarray(n_known, dtype=np.int32)
    cdef CppParticleFilter *particles = _build(
        1, "systematic", alpha, gamma, columns, seating, &n_states)
    try:
        with nogil:
            particles.simulate(n, &known[0], &states_view[0], &codes_view[0, 0],
                               stream.bits)
    finally:
        del particles
    return codes, states
