"""Particles that follow rows of subjects whose offsets are unknown."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._franchise cimport Franchise, Transitions
from skihmm.core._random cimport RandomStream
from skihmm.core._types cimport float64_t, int32_t, int64_t, uint8_t


cdef extern from "_offset_particles.hpp" namespace "skihmm" nogil:
    struct FollowedRows:
        int64_t n
        const int64_t *subjects
        const uint8_t *is_first
        float64_t *log_predictive
        float64_t *offsets
        float64_t *ahead
        float64_t *shares

    cdef cppclass OffsetParticles:
        OffsetParticles(const Transitions &transitions, Emission &emission,
                        int32_t n_particles, bitgen_t *g) except +
        int32_t n_offsets()
        int32_t n_states()
        int64_t follow(int64_t t, const FollowedRows &rows, bitgen_t *g) except +


cdef inline float64_t *begin_of(float64_t[:, ::1] values) noexcept:
    return &values[0, 0]


def follow_new_subjects(
    model: FrozenModel, starts: Integers, subjects: Integers,
    *, n_particles: int, RandomStream stream, cbool with_ahead=False
) -> tuple[Floats, Floats, Floats | None, Floats | None]:
    """Follow the rows of new subjects, their offsets integrated out.

    Every particle has the states of a path, and the mean and precision of the offset given
    them.  Scales are one.

    Parameters
    ----------
    model : FrozenModel
        Model of a draw, over rows of new subjects.
    starts : ndarray of shape (n_sequences,)
        First row of every sequence.
    subjects : ndarray of shape (n_rows,), int
        Subjects of the rows, one after the other.
    n_particles : int
    stream : RandomStream
    with_ahead : bool, default=False
        Whether to find the last two arrays.

    Returns
    -------
    log_predictive : ndarray of shape (n_rows,)
        Log of the predictive probability of each row given the earlier rows of its subject and one
        draw of the parameters of the states, nats.  The product over a subject is an unbiased
        estimate.
    offsets : ndarray of shape (n_subjects, n_columns)
        For every subject the mean given one path of all its rows, of the columns of all parts of
        the emission that have subjects.
    ahead : ndarray of shape (n_rows, n_states + 1) or None
        Probabilities of the states, and of a new one, of each row given the earlier rows of its
        subject.
    shares : ndarray of shape (n_rows, n_columns) or None
        Cumulative probabilities of the values given these, 0 of missing ones.
    """
    cdef EmissionStats emission = model.emission
    cdef Franchise transitions = model.transitions
    cdef unique_ptr[OffsetParticles] particles
    cdef FollowedRows rows
    cdef int64_t t = 0, n_subjects
    cdef int32_t n = n_particles
    with nogil:
        particles.reset(new OffsetParticles(
            transitions.native[0], emission.shared.get()[0], n, stream.bits))
    rows.n = len(subjects)
    cdef const int64_t[::1] subject = np.ascontiguousarray(subjects, dtype=np.int64)
    cdef uint8_t[::1] is_first = np.zeros(rows.n, dtype=np.uint8)
    np.asarray(is_first)[starts] = 1
    n_subjects = 1 + np.count_nonzero(np.diff(subjects))
    log_predictive = np.empty((rows.n, 1))
    offsets = np.empty((n_subjects, particles.get().n_offsets()))
    ahead = shares = None
    rows.subjects = &subject[0]
    rows.is_first = &is_first[0]
    rows.log_predictive = begin_of(log_predictive)
    rows.offsets = begin_of(offsets)
    rows.ahead = rows.shares = NULL
    if with_ahead:
        ahead = np.empty((rows.n, particles.get().n_states() + 1))
        shares = np.empty((rows.n, particles.get().n_offsets()))
        rows.ahead = begin_of(ahead)
        rows.shares = begin_of(shares)
    while t < rows.n:
        with nogil:
            t = particles.get().follow(t, rows, stream.bits)
        PyErr_CheckSignals()
    return log_predictive[:, 0], offsets, ahead, shares
