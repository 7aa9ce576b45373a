"""Statistics of conjugate families, and particles that follow rows of subjects in them.

One module, as the compiler takes most of its time for what they share: the tables of all families.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector
from numpy.random cimport bitgen_t

from skihmm.core._emission cimport Emission, EmissionStats, stats_of
from skihmm.core._family cimport Family
from skihmm.core._franchise cimport Franchise, Transitions
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport integers_of
from skihmm.core._types cimport float64_t, int32_t, int64_t, uint8_t


cdef extern from "_data_rows.hpp" namespace "skihmm" nogil:
    cdef cppclass DataRows:
        void open_subjects(const vector[int32_t] &codes, int32_t n_fitted,
                           const float64_t *variances, cbool has_scales) except +
        void open_subject_logs(int32_t n_offsets, const vector[int32_t] &codes, int32_t n_fitted,
                               const float64_t *variances) except +

cdef extern from "_conjugate_table.hpp" namespace "skihmm" nogil:
    cdef cppclass ConjugateTable(Emission):
        ConjugateTable(Family *family, const float64_t *rows, int64_t n_steps) except +
        DataRows &data()

cdef extern from "_conjugate_families.hpp" namespace "skihmm" nogil:
    struct FamilySetting:
        int32_t n_columns, n_inputs, n_given
        const float64_t *hyperparameters
        const float64_t *units
        const int32_t *is_drawn
        const float64_t *values
        int64_t n_steps
        float64_t shape, dof, period
        int32_t n_options, has_exposure, n_shifts

    Family *make_family(const string &name, const FamilySetting &setting) except +


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


cdef const float64_t[::1] _joined(arrays):
    return np.concatenate([np.ravel(values) for values in arrays]).astype(np.float64)


cdef const float64_t *_begin_of(const float64_t[:, ::1] rows) noexcept:
    return &rows[0, 0] if rows.shape[0] > 0 else NULL


cdef EmissionStats family_stats(Family *family, object rows):
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    return stats_of(<Emission *> new ConjugateTable(family, _begin_of(rows), len(rows)), rows)


def conjugate_stats(str name, rows: Floats, hyperparameters: Sequence[ArrayLike],
                    units: Sequence[ArrayLike] | Floats, is_drawn: Sequence[bool],
                    int32_t n_inputs=0, int32_t n_given=0, *, float64_t shape=1.0,
                    float64_t dof=1.0, float64_t period=1.0, int32_t n_options=0,
                    int32_t has_exposure=0, int32_t n_shifts=0) -> EmissionStats:
    """Build empty statistics of a conjugate family.

    Parameters
    ----------
    name : str
        That of the family, as in _conjugate_families.hpp.
    rows : ndarray of shape (n_steps, n_columns + n_inputs)
    hyperparameters : sequence of array-like
        Those of the prior at the start of a chain, in the order of the recipe: one number per
        column, of matrices the lower triangle.
    units : sequence of array-like
        Typical values, by which hyperparameters have their priors: of Gaussian columns
        the means, one and the variances, of autoregressions the means and standard
        deviations by which columns are standardised, otherwise one per hyperparameter.
    is_drawn : sequence of bool
        Which hyperparameters chains draw from their posterior.
    n_inputs : int
    n_given : int
        Number of the inputs that are given, the last ones.
    shape, dof, period : float
        Shape or degrees of freedom of the prior, and period of angles, which are never
        drawn.
    n_options : int
        Number of choices.
    has_exposure : bool
        Whether the last input of counts, but for shifts, is the logarithm of their exposure.
    n_shifts : int
        Number of the last inputs that are added to linear predictors.

    Returns
    -------
    stats : EmissionStats
    """
    cdef const float64_t[::1] prior = _joined(hyperparameters), typical = _joined(units)
    cdef const int32_t[::1] drawn = np.array(is_drawn, dtype=np.int32)
    # (Families may keep the address.)
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    cdef const float64_t[:, ::1] values = rows
    cdef FamilySetting setting = FamilySetting(
        <int32_t> values.shape[1] - n_inputs, n_inputs, n_given, &prior[0], &typical[0],
        &drawn[0], _begin_of(values), values.shape[0], shape, dof, period, n_options, has_exposure,
        n_shifts)
    return family_stats(make_family(name.encode(), setting), rows)


def open_effects(EmissionStats stats, effects: SubjectEffects) -> EmissionStats:
    """Let the rows of a family have the effects of subjects; returns `stats`.

    Parameters
    ----------
    stats : EmissionStats
    effects : SubjectEffects

    Returns
    -------
    stats : EmissionStats
    """
    cdef DataRows *rows = &(<ConjugateTable *> stats.shared.get()).data()
    cdef vector[int32_t] codes
    cdef const float64_t[::1] typical = effects.variances
    integers_of(effects.codes, "subjects", &codes)
    if effects.regression is not None:
        rows.open_subject_logs(typical.shape[0], codes, effects.n_subjects, &typical[0])
    else:
        rows.open_subjects(codes, effects.n_subjects, &typical[0], effects.has_scales)
    stats.effects = effects
    stats.of_draws = effects.at_start().to_record()
    return stats


cdef float64_t *_out_of(float64_t[:, ::1] values) noexcept:
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
    rows.log_predictive = _out_of(log_predictive)
    rows.offsets = _out_of(offsets)
    rows.ahead = rows.shares = NULL
    if with_ahead:
        ahead = np.empty((rows.n, particles.get().n_states() + 1))
        shares = np.empty((rows.n, particles.get().n_offsets()))
        rows.ahead = _out_of(ahead)
        rows.shares = _out_of(shares)
    while t < rows.n:
        with nogil:
            t = particles.get().follow(t, rows, stream.bits)
        PyErr_CheckSignals()
    return log_predictive[:, 0], offsets, ahead, shares
