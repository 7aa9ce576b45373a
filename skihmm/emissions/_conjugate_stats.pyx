"""Statistics of conjugate families."""

import numpy as np
from scipy.special import i0e, i1e

from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission
from skihmm.core._family cimport Family
from skihmm.core._franchise cimport FIRST
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport integers_of
from skihmm.core._registration import register_subjects
from skihmm.emissions._gaps import filled_places, first_fillings
from skihmm.emissions._subject_numbers import SubjectNumbers


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


cdef const float64_t[::1] _joined(arrays):
    return np.concatenate([np.ravel(values) for values in arrays]).astype(np.float64)


cdef int _stop(void *is_stopped) except -1 with gil:
    # In the main thread the call runs the handlers of signals.
    if (<object> is_stopped)():
        raise KeyboardInterrupt
    return 0


cdef class ConjugateStats(EmissionStats):
    """Sufficient statistics of every state for a conjugate family.

    Build it with :func:`conjugate_stats`.

    Parameters
    ----------
    values : ndarray of shape (n_steps, n_columns + n_inputs), float64
        Observations, of which NaN is missing, and their inputs.
    """

    def __init__(self, values):
        self.values = np.ascontiguousarray(values, dtype=np.float64)

    cdef ConjugateStats set_family(self, Family *family):
        cdef const float64_t *values = NULL
        if self.values.shape[0] > 0:
            values = &self.values[0, 0]
        self.table = new ConjugateTable(family, values, self.values.shape[0])
        self.shared.reset(<Emission *> self.table)
        return self

    def watch(self, is_stopped):
        self.is_stopped = is_stopped
        self.table.watch(_stop, <void *> is_stopped)

    def open_gaps(self, starts, every=False):
        cdef vector[Gap] gaps
        cdef Gap gap
        cdef int32_t order = self.table.family().gap_order, d = self.table.family().n_columns
        if order < 0:
            return super().open_gaps(starts)
        given = np.asarray(self.values)
        steps, columns = places = filled_places(given[:, :d], starts, order, every)
        if len(steps):
            ends = np.append(starts[1:], len(given))
            ends = ends[np.searchsorted(ends, steps, side="right")]
            for gap.t, gap.column, gap.end in zip(steps, columns, ends, strict=True):
                gaps.push_back(gap)
            self.table.data().open_gaps(gaps)
            self.places = places
        return places

    def first_filled(self, starts):
        if self.places is None:
            return super().first_filled(starts)
        values = np.asarray(self.values)[:, :self.table.family().n_columns]
        numbers = self.subject_numbers()
        if numbers is not None:
            values = numbers.shifted(values, self.subjects, 0)
        return first_fillings(
            values, starts, self.table.family().gap_order, *self.places, self.is_stopped)

    def open_hidden(self, starts, RandomStream stream=None):
        numbers = self.subject_numbers()
        if numbers is not None and stream is not None:
            values = np.asarray(self.values)[:, :self.table.family().n_columns]
            offsets, scales, _ = register_subjects(
                np.ascontiguousarray(values), starts, self.subjects, stream, scale=self.has_scales,
                is_stopped=self.is_stopped)
            self.table.set_of_draws(SubjectNumbers.at_start(
                offsets, scales if self.has_scales else None, numbers.variances[1]).to_record())
        super().open_hidden(starts)
        self.table.data().open_weights()

    def open_subjects(self, codes, int32_t n_subjects, variances, cbool has_scales):
        """Take offsets, and perhaps scales, of subjects off the rows.

        They are zero, and one, before others are set.

        Parameters
        ----------
        codes : ndarray of shape (n_steps,)
            The subject of every row; the mean subject below zero, and where a record has
            no numbers of it.
        n_subjects : int
            Subjects of the fit; further ones of a record are new.
        variances : ndarray of shape (n_columns,)
            Typical variances of offsets.
        has_scales : bool
        """
        cdef vector[int32_t] subjects
        cdef const float64_t[::1] typical = np.ascontiguousarray(variances, dtype=np.float64)
        self.subjects = np.asarray(codes).astype(np.int32)
        integers_of(self.subjects, "subjects", &subjects)
        self.table.data().open_subjects(subjects, n_subjects, &typical[0], has_scales)
        self.has_scales = has_scales
        zeros = np.zeros((n_subjects, typical.shape[0]))
        self.table.set_of_draws(SubjectNumbers.at_start(
            zeros, zeros + 1 if has_scales else None, np.asarray(typical)).to_record())

    cdef object subject_numbers(self):
        # Those of the chain or of the record that was loaded; None without subjects.
        cdef float64_t[::1] view
        if self.table.data().subjects() is NULL:
            return None
        numbers = np.empty(self.table.data().subjects().size())
        view = numbers
        self.table.data().subjects().read(&view[0])
        return SubjectNumbers.of_record(
            numbers, self.table.family().n_columns, has_scales=self.has_scales)

    def hidden(self):
        cdef size_t i
        cdef const Hidden *part
        cdef float64_t[::1] view
        found = {}
        for i in range(self.table.data().n_hidden()):
            part = self.table.data().hidden(i)
            if part.size() > 0 and not part.is_of_draws():
                numbers = np.empty(part.size())
                view = numbers
                part.read(&view[0])
                found[part.name().decode()] = numbers
        return found

    def set_hidden(self, hidden):
        cdef size_t i
        cdef const float64_t[::1] view
        for i in range(self.table.data().n_hidden()):
            name = self.table.data().hidden(i).name().decode()
            if len(hidden.get(name, ())):
                view = np.ascontiguousarray(hidden[name], dtype=np.float64)
                self.table.set_hidden(i, &view[0])

    def draw_hidden(self, slots, RandomStream stream, cbool is_chain=False):
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef cbool draws_subjects = is_chain and self.table.data().subjects() is not NULL and (
            self.table.data().subjects().is_drawn_alone())
        cdef int64_t n = self.table.data().n_means()
        if n == 0 and not draws_subjects:
            return None
        cdef float64_t[::1] means = np.empty(n + 1)
        self.table.draw_hidden(&slot[0], stream.bits, &means[0], is_chain)
        return self.filled_values(np.asarray(means)[:n])

    cdef object filled_values(self, filled):
        # What fills missing entries, in the units of the data.
        if not len(filled) or self.table.data().subjects() is NULL:
            return filled
        numbers = self.subject_numbers()
        steps, columns = self.places
        offsets, scales = numbers.of_rows(self.subjects[steps])
        row = np.arange(len(steps))
        return offsets[row, columns] + scales[row, columns] * filled

    def filled(self):
        return self.filled_values(self.hidden().get("filled", np.empty(0)))

    def rows(self):
        sizes = [self.n_options] if self.n_options else []
        return [(np.asarray(self.values), self.table.family().n_columns, sizes)]

    def hyperparameters(self):
        """Hyperparameters of the common prior of all states, as an array of the family.

        Returns
        -------
        hyperparameters : ndarray of float64
        """
        cdef float64_t[::1] view
        numbers = np.empty(self.table.family().n_hyperparameters)
        if len(numbers):
            view = numbers
            self.table.read_hyperparameters(&view[0])
        return numbers

    def parameters(self, arrays, n_states, RandomStream stream=None):
        """Parameters of the states of a record, which is loaded.

        Parameters
        ----------
        arrays : dict
            Result of :meth:`to_arrays`.
        n_states : int
        stream : RandomStream, optional
            Draw them from their posterior.

        Returns
        -------
        parameters : ndarray of shape (n_states, n_expected) or (n_states, parameter_width)
            Posterior means, or drawn ones, in the layouts of the family.
        """
        cdef int32_t k
        cdef vector[float64_t] numbers
        cdef const Family *family = self.table.family()
        out = np.empty((n_states, family.n_expected if stream is None else family.parameter_width))
        cdef float64_t[:, ::1] view = out
        self.shared.get().resize(FIRST + n_states)
        self.load(arrays, n_states)
        numbers.resize(family.width)
        for k in range(n_states):
            self.table.read(FIRST + k, numbers.data())
            if stream is None:
                family.expect(numbers.data(), 1, &view[k, 0])
            else:
                family.draw(numbers.data(), 1, &view[k, 0], 1, stream.bits)
        return out

    def fill_inputs(self, float64_t[:, ::1] rows, const int64_t[::1] previous):
        """Set the inputs of rows that follow others.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_columns + n_inputs)
            Changed in place.
        previous : ndarray of int64, shape (n_filled,)
            For the last `n_filled` rows, one after the other, the index of the row that
            each follows; -1 at the beginning of a sequence.
        """
        cdef const Family *family = self.table.family()
        cdef intp_t i, first = rows.shape[0] - previous.shape[0]
        for i in range(previous.shape[0]):
            family.next_inputs(
                &rows[previous[i], 0] if previous[i] >= 0 else NULL,
                &rows[first + i, 0] + family.n_columns)

    cdef object rows_with(self, int64_t n, inputs):
        # Rows of what states emit, and their subjects.
        cdef int32_t d = self.table.family().n_columns, width = self.table.family().data_width()
        rows = np.full((n, self.table.family().row_width()), np.nan)
        subjects = np.full(n, -1)
        if inputs is None:
            self.fill_inputs(rows, subjects)
        elif self.table.data().subjects() is NULL:
            rows[:, d:width] = inputs
        else:
            inputs = np.broadcast_to(inputs, (n, width - d + 1))
            rows[:, d:width], subjects = inputs[:, :-1], inputs[:, -1]
            rows[:, :width] = self.subject_numbers().shifted(
                rows[:, :width], subjects, max(0, self.table.family().gap_order))
        return rows, subjects

    cdef object values_of(self, rows, subjects):
        # Columns of the data by what states emit.
        values = rows[:, :self.table.family().n_columns]
        numbers = self.subject_numbers()
        if numbers is not None:
            offsets, scales = numbers.of_rows(subjects)
            values = offsets + scales * values
        return list(np.ascontiguousarray(values.T))

    def predictives(self, slots, inputs=None):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        if self.is_circular:
            return self.directions(slot)
        if self.n_options:
            return [self.shares(slot, inputs)]
        rows, subjects = self.rows_with(slot.shape[0], inputs)
        cdef float64_t[:, ::1] view = rows
        for i in range(slot.shape[0]):
            self.table.mean(slot[i], &view[i, 0])
        return self.values_of(rows, subjects)

    cdef object directions(self, const int32_t[::1] slot):
        # Of angles, which have no means, the means of exp(i angle): complex, as mixtures of
        # angles are means of these numbers.
        cdef intp_t i
        numbers = np.empty((slot.shape[0], self.table.family().width))
        cdef float64_t[:, ::1] view = numbers
        for i in range(slot.shape[0]):
            self.table.read(slot[i], &view[i, 0])
        # Number, sums of cosines and sines, and norm of every column.
        _, x, y, _ = numbers.reshape(len(numbers), self.table.family().n_columns, 4).T
        kappa = 1 / self.hyperparameters()[:, None]
        # The direction of an angle around its mean, and that of the mean in its posterior.
        length = np.ones_like(x)
        for concentration in (kappa, kappa * np.hypot(x, y)):
            length = length * i1e(concentration) / i0e(concentration)
        return list(length * np.exp(1j * np.arctan2(y, x)))

    cdef object shares(self, const int32_t[::1] slot, inputs):
        # The probabilities of choices.  Missing inputs are at their means.
        cdef intp_t i
        cdef int32_t y
        cdef vector[float64_t] state
        cdef float64_t[:, ::1] rows = self.rows_with(
            slot.shape[0], None if inputs is None else np.nan_to_num(inputs))[0]
        logs = np.empty((slot.shape[0], self.n_options))
        cdef float64_t[:, ::1] out = logs
        state.resize(self.table.family().width)
        for i in range(slot.shape[0]):
            self.table.read(slot[i], state.data())
            for y in range(self.n_options):
                rows[i, 0] = y
                out[i, y] = self.table.family().log_predictive(state.data(), 1, &rows[i, 0])
        return np.exp(logs)

    def draw_values(self, slots, n_known, RandomStream stream, inputs=None):
        cdef intp_t i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        rows, subjects = self.rows_with(slot.shape[0], inputs)
        cdef float64_t[:, ::1] view = rows
        for i in range(slot.shape[0]):
            self.table.draw_predictive(slot[i], &view[i, 0], stream.bits)
        return self.values_of(rows, subjects)


def conjugate_stats(str name, values, hyperparameters, units, is_drawn,
                    int32_t n_inputs=0, int32_t n_given=0, *, float64_t shape=1.0,
                    float64_t dof=1.0, float64_t period=1.0, int32_t n_options=0,
                    int32_t has_exposure=0, int32_t n_shifts=0, type stats_type=None):
    """Build empty statistics of a conjugate family.

    Parameters
    ----------
    name : str
        That of the family, as in _conjugate_families.hpp.
    values : ndarray of shape (n_steps, n_columns + n_inputs)
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
    stats_type : type, optional
        Class of the statistics; by default that of the family.

    Returns
    -------
    stats : ConjugateStats
    """
    cdef ConjugateStats stats = (stats_type or ConjugateStats)(values)
    stats.is_circular = name == "von_mises"
    stats.n_options = n_options
    cdef const float64_t[::1] prior = _joined(hyperparameters), typical = _joined(units)
    cdef const int32_t[::1] drawn = np.array(is_drawn, dtype=np.int32)
    cdef int64_t n_steps = stats.values.shape[0]
    cdef const float64_t *observed = &stats.values[0, 0] if n_steps else NULL
    cdef FamilySetting setting = FamilySetting(
        <int32_t> stats.values.shape[1] - n_inputs, n_inputs, n_given, &prior[0], &typical[0],
        &drawn[0], observed, n_steps, shape, dof, period, n_options, has_exposure,
        n_shifts)
    return stats.set_family(make_family(name.encode(), setting))
