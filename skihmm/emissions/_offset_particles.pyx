"""Particles that follow rows of subjects whose offsets are unknown."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libcpp cimport bool as cbool
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._franchise cimport Franchise, Transitions
from skihmm.core._random cimport RandomStream
from skihmm.core._types cimport float64_t, int32_t, int64_t
from skihmm.emissions._conjugate_stats cimport ConjugateStats, ConjugateTable


cdef extern from "_offset_particles.hpp" namespace "skihmm" nogil:
    cdef cppclass OffsetParticles:
        OffsetParticles(const Transitions &transitions, int64_t n_cells,
                        const vector[ConjugateTable *] &tables, vector[Emission *] others,
                        int32_t n_particles, bitgen_t *g) except +
        int32_t n_offsets()
        void begin()
        float64_t follow(int64_t t, cbool is_first, bitgen_t *g) except +
        void take_offset(float64_t *out, bitgen_t *g)


cdef int _add_parts(stats, vector[ConjugateTable *] *tables, vector[Emission *] *others) except -1:
    cdef ConjugateTable *table = NULL
    if isinstance(stats, ConjugateStats):
        table = (<ConjugateStats> stats).table
    if table is not NULL and table.data().subjects() is not NULL:
        tables.push_back(table)
        return 0
    if not hasattr(stats, "parts"):
        others.push_back((<EmissionStats> stats).shared.get())
        return 0
    for part in stats.parts:
        _add_parts(part, tables, others)
    return 0


def follow_new_subjects(model, starts, subjects, *, n_particles, RandomStream stream):
    """Follow the rows of new subjects, their offsets integrated out.

    Every particle has the states of a path, and the mean and covariance of the offset given
    them.  Scales are one.

    Parameters
    ----------
    model : FrozenModel
        That of a draw, over rows of new subjects.
    starts : ndarray of shape (n_sequences,)
        First row of every sequence.
    subjects : ndarray of shape (n_rows,), int
        Those of the rows, one after the other.
    n_particles : int
    stream : RandomStream

    Returns
    -------
    log_predictive : ndarray of shape (n_rows,)
        Log of the predictive probability of each row given the earlier rows of its subject and one
        draw of the parameters of the states, nats.  The product over a subject is an unbiased
        estimate.
    offsets : ndarray of shape (n_subjects, n_columns)
        For every subject the mean given one path of all its rows, of the columns of all parts of
        the emission that have subjects.
    """
    cdef vector[ConjugateTable *] tables
    cdef vector[Emission *] others
    cdef Franchise transitions = model.transitions
    cdef OffsetParticles *particles
    cdef int64_t t, n_rows = len(subjects), at = -1
    cdef float64_t[:, ::1] out
    cdef cbool is_new
    _add_parts(model.emission, &tables, &others)
    particles = new OffsetParticles(
        transitions.native[0], 0, tables, others, n_particles, stream.bits)
    try:
        ends = np.flatnonzero(np.diff(subjects, append=-1))
        offsets = np.empty((len(ends), particles.n_offsets()))
        out = offsets
        log_predictive = np.empty(n_rows)
        is_first = np.zeros(n_rows, dtype=bool)
        is_first[starts] = True
        for t in range(n_rows):
            is_new = t == 0 or subjects[t] != subjects[t - 1]
            if is_new:
                particles.begin()
            log_predictive[t] = particles.follow(t, is_first[t], stream.bits)
            if t == ends[at + 1]:
                at += 1
                particles.take_offset(&out[at, 0], stream.bits)
            if t % 256 == 0:
                PyErr_CheckSignals()
    finally:
        del particles
    return log_predictive, offsets
