"""Particle filter on a seating: initial paths and adaptive held-out prediction."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libcpp cimport bool as cbool
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport EmissionStats
from skihmm.core._family cimport Family
from skihmm.core._franchise cimport (
    FIRST,
    ContextPlace,
    ContextShape,
    Franchise,
    Transitions,
    frozen_transitions,
    levels_from_arrays,
    places_of,
    set_input_rows,
    shape_of,
)
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport (
    MOST_CUSTOMERS,
    SeatingRecord,
    concentration_of,
    entry_of,
    integer_of,
    record_from_arrays,
    starts_of,
)
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t

from skihmm._contexts import ContextColumns
from skihmm.core._franchise import MOST_STAGES


cdef extern from "_particle_counts.hpp" namespace "skihmm" nogil:
    cdef cppclass ParticleCounts:
        ParticleCounts(const Transitions &transitions, const ContextShape &shape,
                       vector[ContextPlace] places) except +
        void add_column(int32_t n_symbols, cbool hierarchical, const ContextShape &shape,
                        vector[ContextPlace] places, vector[float64_t] alphas,
                        float64_t gamma) except +
        void add_cell(int32_t c, int32_t depth, int32_t state, int32_t prefix,
                      int32_t symbol, int32_t n_customers, int32_t n_tables) except +
        void add_family(const Family *family, const float64_t *numbers) except +


cdef extern from "_particles.hpp" namespace "skihmm" nogil:
    ParticleCounts move "std::move"(ParticleCounts &) noexcept

    cdef cppclass CppParticleFilter "skihmm::ParticleFilter":
        CppParticleFilter(int32_t n_particles, ParticleCounts counts) except +
        void set_filtered(int64_t)
        void start_slice()
        void begin(int32_t restaurant, int32_t stage) except +
        int64_t run(const int32_t *codes, const float64_t *values, int64_t t,
                    int64_t n_steps, const uint8_t *first, cbool finish,
                    float64_t *log_predictive, bitgen_t *g) except +
        vector[int32_t] draw_path(bitgen_t *g) except +
        int64_t simulate(int64_t t, int64_t n_steps, const int32_t *n_known,
                         int32_t *states_out, int32_t *codes_out, float64_t *values_out,
                         bitgen_t *g) except +


cdef CppParticleFilter *_build(n_particles, Franchise transitions, columns, given, seating,
                               contexts, int32_t *n_states_out) except NULL:
    # `given`: of every entry of `columns` the given inputs of the steps, if it has them.
    # The caller deletes.
    cdef int32_t n_states = 0
    cdef ContextShape shape
    cdef vector[ContextPlace] places
    if seating is not None:
        transitions = frozen_transitions(seating)
        n_states = transitions.native.n_slots() - FIRST
    elif transitions is None:
        transitions = Franchise()
    if contexts is None and transitions.has_contexts:
        raise ValueError(
            "the transitions depend on contexts, but contexts is None; expected those of "
            "the steps")
    n_states_out[0] = n_states
    n_particles = integer_of(n_particles, "n_particles", 1, 2**31 - 1)
    if transitions.has_inputs and contexts is not None:
        set_input_rows(transitions.native, contexts.inputs)
    if transitions.has_contexts:
        shape_of(contexts.n_before, contexts.parents, &shape)
        places_of(contexts.depths, contexts.prefixes, shape, &places)
    cdef ParticleCounts *counts = new ParticleCounts(transitions.native[0], shape, places)
    try:
        for c, (column, inputs) in enumerate(zip(columns, given, strict=True)):
            if not isinstance(column, EmissionStats):
                _add_symbols(counts, column, inputs, c)
        if seating is None:
            for column in columns:
                if isinstance(column, EmissionStats):
                    counts.add_family((<EmissionStats> column).shared.get().family(), NULL)
        else:
            _seat(counts, columns, seating, n_states)
        return new CppParticleFilter(n_particles, move(counts[0]))
    finally:
        del counts


cdef int _add_symbols(ParticleCounts *counts, column, contexts, c) except -1:
    cdef ContextShape shape
    cdef vector[ContextPlace] places
    cdef vector[float64_t] alphas
    if isinstance(column, ContextColumns):
        steps = column.steps(np.asarray(contexts, dtype=np.int32))
        shape_of(0, steps.parents, &shape)
        places_of(steps.depths, steps.prefixes, shape, &places)
        symbols, hierarchical, gamma = column.n_symbols, True, column.gamma
        all_alphas = column.alphas
    else:
        n_symbols, hierarchical, alpha, gamma = column
        symbols, all_alphas = [n_symbols], [alpha]
    for alpha in all_alphas:
        alphas.push_back(concentration_of(alpha, f"alpha of column {c}"))
    for n_symbols in symbols:
        counts.add_column(
            integer_of(n_symbols, f"the number of symbols of column {c}", 1, 2**31 - 2),
            hierarchical, shape, places, alphas,
            concentration_of(gamma, f"gamma of column {c}"))
    return 0


cdef int _seat(ParticleCounts *counts, columns, seating, int32_t n_states) except -1:
    cdef ContextShape shape
    cdef vector[SeatingRecord] records
    cdef const float64_t[:, ::1] numbers
    cdef EmissionStats stats
    cdef int32_t n_symbol_columns = 0, d, n
    cdef size_t i
    emission = entry_of(seating, "emission", "the record")
    seated = entry_of(emission, "columns", "emission")
    if not isinstance(seated, (list, tuple)) or len(seated) != len(columns):
        raise ValueError(
            f"emission: columns is {seated!r:.100}; expected a list of {len(columns)} "
            "dicts, one per column")
    for c, column in enumerate(columns):
        if isinstance(column, EmissionStats):
            stats = <EmissionStats> column
            numbers = stats.numbers_of(seated[c], n_states)
            counts.add_family(stats.shared.get().family(), &numbers[0, 0])
            continue
        is_tree = isinstance(column, ContextColumns)
        if is_tree:
            shape_of(0, column.tree.parents, &shape)
        for at, n_symbols in enumerate(column.n_symbols if is_tree else column[:1]):
            records.clear()
            if is_tree:
                levels_from_arrays(seated[c][at], f"emission, column {at}", shape, n_states,
                                   n_symbols, &records)
            else:
                records.resize(1)
                record_from_arrays(seated[c], f"emission, column {c}", n_states, n_symbols,
                                   column[1], &records[0])
            for d in range(1, <int32_t> records.size() + 1):
                # Restaurants of one state in the tree of the record.
                n = <int32_t> shape.n_rows(d, 1) if is_tree else 1
                for i in range(records[d - 1].rows.size()):
                    counts.add_cell(
                        n_symbol_columns, d, records[d - 1].rows[i] // n,
                        records[d - 1].rows[i] % n, records[d - 1].dishes[i],
                        records[d - 1].n_customers[i], records[d - 1].n_tables[i])
            n_symbol_columns += 1
    return 0


cdef tuple _split(columns):
    # Codes, and rows of families, where each column of the data belongs: inputs come last.
    # And of every entry the places of the inputs that are given, if it has them.
    cdef const Family *family
    cdef int32_t n_values = 0, n_inputs = 0
    codes, values, inputs, given = [], [], [], []
    for column in columns:
        if isinstance(column, ContextColumns):
            codes.extend(range(n_values, n_values + len(column.n_symbols)))
            given.append(range(n_inputs, n_inputs + column.n_contexts))
            n_values += len(column.n_symbols)
            n_inputs += column.n_contexts
            continue
        if isinstance(column, EmissionStats):
            family = (<EmissionStats> column).shared.get().family()
            values.append(range(n_values, n_values + family.n_columns))
            inputs.append(range(n_inputs, n_inputs + family.n_inputs))
            n_values += family.n_columns
            n_inputs += family.n_inputs
            given.append(range(n_inputs - family.n_given, n_inputs))
        else:
            given.append(range(0))
            codes.append(n_values)
            n_values += 1
    return (codes,
            [at for numbers, after in zip(values, inputs, strict=True)
             for at in [*numbers, *(n_values + i for i in after)]],
            [[n_values + i for i in places] for places in given], n_values + n_inputs)


cdef list _n_symbols(columns):
    # One for every column of codes.
    out = []
    for column in columns:
        if isinstance(column, ContextColumns):
            out += column.n_symbols
        elif not isinstance(column, EmissionStats):
            out.append(column[0])
    return out


cdef list _of_codes(n_known, columns):
    # Those of columns of codes; families draw their symbols themselves.
    out, known = [], list(n_known)
    for column in columns:
        n = len(column.n_symbols) if isinstance(column, ContextColumns) else 1
        if isinstance(column, EmissionStats):
            known = known[(<EmissionStats> column).n_symbol_columns():]
            continue
        out += known[:n]
        known = known[n:]
    return out + known


cdef int _check_codes(codes, n_symbols) except -1:
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.dtype.kind not in "iu" or (
            codes.shape[1] != len(n_symbols)):
        raise ValueError(
            f"codes is an array of type {codes.dtype} and shape {codes.shape}; expected "
            f"integers in {len(n_symbols)} columns, one or more")
    for c in range(len(n_symbols) if len(codes) else 0):
        integer_of(codes[:, c].min(), f"the least code of column {c}", -1, 2**31 - 2)
        integer_of(codes[:, c].max(), f"the largest code of column {c}", -1,
                   n_symbols[c] - 1)
    return 0


def filter_particles(codes, starts, columns, RandomStream stream, *, n_particles,
                     transitions=None, seating=None, restaurant=0, stage=0,
                     is_stopped=None, independent=False, contexts=None, n_filtered=None,
                     path_only=False):
    """Run a particle filter along sequences of observations.

    Every particle seats its own transitions and observations.  ``seating`` is not
    changed.  Weights are updated by the predictive probability of each step, particles are
    resampled (systematically) when the effective number of particles falls below half of them.

    Parameters
    ----------
    codes : ndarray of shape (n_steps, n_columns)
        Integers: symbols; -1 is missing and has likelihood one.  With columns of a
        conjugate family floats: values, of which NaN is missing, and codes, then the
        inputs of all families.  Contexts of symbols are such inputs too, codes of which
        -1 is missing.
    starts : ndarray of shape (n_sequences,)
        Steps whose predecessor is the start restaurant.
    columns : list of (n_symbols, hierarchical, alpha, gamma), EmissionStats, ContextColumns
        Emission of every column; statistics of a conjugate family represent all columns
        of the family, and ContextColumns all columns that depend on the same contexts.
    stream : RandomStream
    n_particles : int
    transitions : Franchise, optional
        Empty transitions to start from, those of ``Franchise()`` by default; `seating` has
        its own.
    seating : dict, optional
        ``ChainState.to_arrays()`` of the state to start from, its emission as a dict whose
        ``"columns"`` are the records of `columns`; empty by default.
    restaurant : int, default=0
        Restaurant of step 0 unless it is in `starts`: 0 is the start restaurant, 1 + k
        that of state k of `seating`.
    stage : int, default=0
        Stage of that state before step 0.
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
        States of one particle drawn by weight; labels continue those of `seating`.

    Raises
    ------
    ValueError
        If `seating` is not that of a draw with such columns, or the data are impossible
        under it.
    """
    data = np.asarray(codes)
    symbol_places, value_places, given_places, width = _split(columns)
    has_given = any(given_places)
    if not columns or data.ndim != 2 or (
            (value_places or has_given) and data.shape[1] != width):
        raise ValueError(
            f"codes has the shape {data.shape}; expected {width} columns, one or more")
    codes = data
    if value_places:
        codes = data[:, symbol_places].astype(np.int64)
    elif has_given:
        codes = data[:, symbol_places]
    _check_codes(codes, _n_symbols(columns))
    given = [data[:, places] for places in given_places]
    cdef const int32_t[:, ::1] view = np.ascontiguousarray(codes, dtype=np.int32)
    cdef const float64_t[:, ::1] values = np.ascontiguousarray(
        data[:, value_places], dtype=np.float64)
    cdef intp_t n_steps = data.shape[0], i
    cdef int64_t n_done = 0
    cdef size_t n_ended = 0
    cdef const int32_t *view_begin = NULL
    cdef const float64_t *values_begin = NULL
    cdef int32_t t, n_states
    cdef vector[int32_t] begins
    integer_of(n_steps, "the number of steps", 0, MOST_CUSTOMERS)
    starts_of(starts, n_steps, False, &begins)
    cdef vector[uint8_t] first
    first.assign(n_steps, 0)
    for t in begins:
        first[t] = 1
    log_predictive = None if path_only else np.empty(n_steps)
    states = np.empty(n_steps, dtype=np.int32)
    cdef float64_t[::1] out
    cdef float64_t *log_begin = NULL
    cdef int32_t[::1] states_view = states
    cdef int32_t start, before = <int32_t> integer_of(stage, "stage", 0, MOST_STAGES - 1)
    cdef cbool finish = not independent
    cdef vector[int32_t] path
    cdef vector[int64_t] ends
    if n_steps == 0:
        return log_predictive, None if independent else states
    if log_predictive is not None:
        out = log_predictive
        log_begin = &out[0]
    if independent:
        ends.assign(begins.begin() + (first[0] != 0), begins.end())
    ends.push_back(n_steps)
    cdef CppParticleFilter *particles = _build(
        n_particles, transitions, columns, given, seating, contexts, &n_states)
    try:
        start = <int32_t> integer_of(restaurant, "restaurant", 0, n_states)
        if symbol_places:
            view_begin = &view[0, 0]
        if value_places:
            values_begin = &values[0, 0]
        particles.begin(start, before)
        if n_filtered is not None:
            particles.set_filtered(n_filtered)
        while n_ended < ends.size():
            with nogil:
                particles.start_slice()
                while n_ended < ends.size():
                    n_done = particles.run(
                        view_begin, values_begin, n_done, ends[n_ended], first.data(),
                        finish, log_begin, stream.bits)
                    if n_done < ends[n_ended]:
                        break
                    n_ended += 1
                    if n_ended < ends.size():
                        particles.begin(start, before)
            PyErr_CheckSignals()
            if is_stopped is not None and is_stopped():
                raise KeyboardInterrupt
        if finish:
            path = particles.draw_path(stream.bits)
    finally:
        del particles
    if independent:
        return log_predictive, None
    for i in range(n_steps):
        states_view[i] = path[i]
    return log_predictive, states


def simulate(n_steps, columns, n_known, RandomStream stream, seating, contexts=None,
             given=None):
    """Draw a new sequence from the predictive distribution of a seating.

    Parameters
    ----------
    n_steps : int
        One or more.
    columns : list
        The emission of every column, as for :func:`filter_particles`.
    n_known : list of int
        Number of symbols (the first ones) that may be drawn, for every column of symbols.
    stream : RandomStream
    seating : dict
        As for :func:`filter_particles`; not changed.
    contexts : object, optional
        As for :func:`filter_particles`.
    given : ndarray of shape (n_steps, n_given), optional
        Contexts on which columns of symbols depend, and given inputs of families, in the
        order of `columns`; by default all are missing.

    Returns
    -------
    codes : ndarray of shape (n_steps, n_columns), int32 or float64
        Floats, and the inputs too, if any column is of a conjugate family.
    states : ndarray of shape (n_steps,), int32
        Labels from ``seating["n_states"]`` on are new states.
    """
    cdef int64_t n = integer_of(n_steps, "n_steps", 1, MOST_CUSTOMERS), n_done = 0
    cdef int32_t c, n_states
    symbol_places, value_places, given_places, width = _split(columns)
    n_symbols = _n_symbols(columns)
    n_known = _of_codes(n_known, columns)
    if len(n_known) != len(n_symbols) or not columns:
        raise ValueError(f"n_known has {len(n_known)} entries for {len(n_symbols)} columns")
    for c in range(<int32_t> len(n_symbols)):
        integer_of(n_known[c], f"n_known[{c}]", 1, n_symbols[c])
    all_given = np.full((n, sum(map(len, given_places))), np.nan)
    stops = np.cumsum([len(places) for places in given_places])
    by_column = np.split(all_given, stops[:-1], axis=1)
    for inputs, column in zip(by_column, columns, strict=True):
        if isinstance(column, ContextColumns):
            inputs[:] = -1
    if given is not None:
        all_given[:] = given
    # One column at least, so that there is an address.
    codes = np.empty((n_steps, max(len(n_symbols), 1)), dtype=np.int32)
    values = np.empty((n_steps, max(len(value_places), 1)))
    for places, inputs in zip(given_places, by_column, strict=True):
        if set(places) <= set(value_places):
            values[:, [value_places.index(at) for at in places]] = inputs
    states = np.empty(n_steps, dtype=np.int32)
    cdef int32_t[:, ::1] codes_view = codes
    cdef float64_t[:, ::1] values_view = values
    cdef int32_t[::1] states_view = states
    cdef const int32_t[::1] known = np.asarray([*n_known, 0], dtype=np.int32)
    cdef CppParticleFilter *particles = _build(
        1, None, columns, by_column, seating, contexts, &n_states)
    try:
        particles.begin(0, 0)
        while n_done < n:
            with nogil:
                particles.start_slice()
                n_done = particles.simulate(n_done, n, &known[0], &states_view[0],
                                            &codes_view[0, 0], &values_view[0, 0],
                                            stream.bits)
            PyErr_CheckSignals()
    finally:
        del particles
    if not value_places:
        return codes, states
    data = np.empty((n_steps, width))
    data[:, [at for places in given_places for at in places]] = all_given
    data[:, value_places] = values
    if n_symbols:
        data[:, symbol_places] = codes
    return data, states
