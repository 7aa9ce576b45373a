"""Statistics of regressions whose linear predictors have offsets of subjects."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport integers_of
from skihmm.core._types cimport float64_t, int32_t, int64_t
from skihmm.emissions._conjugate_stats cimport ConjugateStats

from skihmm.core._log_subjects import register_log_subjects
from skihmm.emissions._subject_numbers import SubjectNumbers


cdef class LogSubjectStats(ConjugateStats):
    """Statistics of rows whose last inputs are offsets of their subjects.

    Attributes
    ----------
    path : ndarray of shape (n_steps,) or None
        Most probable states of the registration, by which a chain may begin.
    n_shifts : int
        Number of offsets of a subject.
    """

    cdef readonly object path
    cdef readonly int32_t n_shifts
    cdef object kind

    def open_log_subjects(self, codes, int32_t n_subjects, variances, kind):
        """Add offsets of subjects to the linear predictors of rows; zeros before others are set.

        Parameters
        ----------
        codes : ndarray of shape (n_steps,)
            The subject of every row; the mean subject below zero, and where a record has
            no numbers of it.
        n_subjects : int
            Subjects of the fit; further ones of a record are new.
        variances : ndarray of shape (n_shifts,)
            Typical variances of offsets.
        kind : {"counts", "trials", "choices"}
            What is observed, for the registration.
        """
        cdef vector[int32_t] subjects
        cdef const float64_t[::1] typical = np.ascontiguousarray(variances, dtype=np.float64)
        self.subjects = np.asarray(codes).astype(np.int32)
        self.kind, self.n_shifts = kind, typical.shape[0]
        integers_of(self.subjects, "subjects", &subjects)
        self.table.data().open_subject_logs(self.n_shifts, subjects, n_subjects, &typical[0])
        zeros = np.zeros((n_subjects, self.n_shifts))
        self.table.set_of_draws(SubjectNumbers(np.stack([typical, typical]), zeros).to_record())

    cdef object subject_numbers(self):
        cdef float64_t[::1] view
        numbers = np.empty(self.table.data().subjects().size())
        view = numbers
        self.table.data().subjects().read(&view[0])
        return SubjectNumbers.of_record(numbers, self.n_shifts, has_scales=False)

    def place_subjects(self, numbers):
        """Set the offsets of rows, and nothing that depends on them.

        Parameters
        ----------
        numbers : ndarray
            As in a record.
        """
        self.table.set_of_draws(numbers)

    def open_hidden(self, starts, RandomStream stream=None):
        if stream is not None:
            numbers = self.subject_numbers()
            n, values = self.table.family().n_columns, np.asarray(self.values)
            offsets, self.path = register_log_subjects(
                values[:, :n], values[:, n:values.shape[1] - self.n_shifts], starts, self.subjects,
                stream, kind=self.kind, is_stopped=self.is_stopped)
            if len(offsets) > 1:
                self.table.set_of_draws(SubjectNumbers.of_logs_at_start(
                    offsets, numbers.variances[1]).to_record())
        ConjugateStats.open_hidden(self, starts)

    cdef object rows_with(self, int64_t n, inputs):
        cdef int32_t d = self.table.family().n_columns, width = self.table.family().data_width()
        rows = np.full((n, self.table.family().row_width()), np.nan)
        subjects = np.full(n, -1)
        if inputs is not None:
            inputs = np.broadcast_to(inputs, (n, width - d - self.n_shifts + 1))
            rows[:, d:width - self.n_shifts], subjects = inputs[:, :-1], inputs[:, -1]
        rows[:, width - self.n_shifts:width] = self.subject_numbers().of_rows(subjects)[0]
        return rows, subjects

    cdef object values_of(self, rows, subjects):
        return list(np.ascontiguousarray(rows[:, :self.table.family().n_columns].T))
