"""Offsets and scales of subjects, and their hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skihmm._typing import Floats, Integers


@dataclass(frozen=True)
class SubjectNumbers:
    """Offsets of subjects and, perhaps, scales.

    A row of a subject is its offset, plus its scale times what the state emits.

    Attributes
    ----------
    variances : ndarray of shape (2, n_columns)
        That of the offsets of every column, and its scale.
    offsets : ndarray of shape (n_subjects, n_columns)
    log_variances : ndarray of shape (2, n_columns) or None
        Those of the logarithms of the scales; None without scales.
    log_scales : ndarray of shape (n_subjects, n_columns) or None
    """

    variances: Floats
    offsets: Floats
    log_variances: Floats | None = None
    log_scales: Floats | None = None

    @classmethod
    def at_start(cls, offsets: Floats, scales: Floats | None, typical: Floats) -> SubjectNumbers:
        """Numbers of a chain's start, with variances that suit them.

        `typical` are the variances of the columns.
        """
        n = len(offsets) + 1
        around = (offsets**2).sum(axis=0)
        variances = np.stack([(around + 1e-3 * typical) / n, typical])
        if scales is None:
            return cls(variances, offsets)
        logs = np.log(scales)
        spread = ((logs**2).sum(axis=0) + 0.02) / n
        # (The scale of a variance is drawn from this before it is used.)
        return cls(variances, offsets, np.stack([spread, spread]), logs)

    @classmethod
    def of_logs_at_start(cls, offsets: Floats, typical: Floats) -> SubjectNumbers:
        """The same of offsets of log rates or log odds, of which a registration tells less."""
        variance = ((offsets**2).sum(axis=0) + 0.01) / (len(offsets) + 1)
        return cls(np.stack([variance, typical]), offsets)

    @classmethod
    def of_record(cls, numbers: Floats, n_columns: int, *, has_scales: bool) -> SubjectNumbers:
        """Take apart the array of :meth:`to_record`."""
        n_kinds = 1 + has_scales
        common, rest = np.split(numbers, [2 * n_columns * n_kinds])
        pairs = common.reshape(n_kinds, 2, n_columns)
        each = rest.reshape(n_kinds, -1, n_columns)
        if not has_scales:
            return cls(pairs[0], each[0])
        return cls(pairs[0], each[0], pairs[1], each[1])

    def to_record(self) -> Floats:
        """Join all numbers, in the order of the compiled statistics."""
        parts = [self.variances, self.offsets]
        if self.log_variances is not None and self.log_scales is not None:
            parts[1:1] = [self.log_variances]
            parts.append(self.log_scales)
        return np.concatenate([part.ravel() for part in parts])

    @property
    def scales(self) -> Floats:
        """Scales of the subjects, shape (n_subjects, n_columns)."""
        logs = self.log_scales
        return np.ones_like(self.offsets) if logs is None else np.exp(logs)

    def of_rows(self, subjects: Integers | Floats) -> tuple[Floats, Floats]:
        """Offsets and scales of rows, by their subjects.

        Unknown subjects, below zero or from their number on, are the mean subject.
        """
        n = len(self.offsets)
        codes = np.asarray(subjects).astype(np.intp)
        codes[(codes < 0) | (codes >= n)] = n
        mean = np.zeros((1, self.offsets.shape[1]))
        offsets = np.vstack([self.offsets, mean])
        scales = np.vstack([self.scales, mean + 1])
        return offsets[codes], scales[codes]

    def shifted(self, rows: Floats, subjects: Integers | Floats, order: int) -> Floats:
        """What states emit: rows less the offsets of their subjects, over their scales.

        The same for the `order` earlier rows that follow the values in a row.
        """
        offsets, scales = self.of_rows(subjects)
        rows = rows.copy()
        n = offsets.shape[1]
        for begin in range(0, min(n * (1 + order), rows.shape[1]), n):
            rows[:, begin : begin + n] -= offsets
            rows[:, begin : begin + n] /= scales
        return rows

    def log_prior(self) -> float:
        """Log density of offsets and scales given their variances, up to a constant."""
        pairs = [(self.offsets, self.variances[0])]
        if self.log_scales is not None and self.log_variances is not None:
            pairs.append((self.log_scales, self.log_variances[0]))
        lp = 0.0
        for values, variances in pairs:
            lp -= 0.5 * float((values**2 / variances).sum())
            lp -= 0.5 * (len(values) - 1) * float(np.log(variances).sum())
        return lp

    def with_subjects(self, offsets: Floats, scales: Floats | None) -> SubjectNumbers:
        """Append subjects."""
        logs = None
        if self.log_scales is not None and scales is not None:
            logs = np.vstack([self.log_scales, np.log(scales)])
        return SubjectNumbers(
            self.variances, np.vstack([self.offsets, offsets]), self.log_variances, logs
        )

    def with_drawn(self, generator: np.random.Generator) -> SubjectNumbers:
        """Append a subject by the distribution of subjects that were not in the fit.

        It has the deviations from the mean of those that were, which is uncertain.
        """
        share = 1 + 1 / len(self.offsets)
        shape = (1, self.offsets.shape[1])
        offsets = generator.normal(size=shape) * np.sqrt(share * self.variances[0])
        if self.log_variances is None:
            return self.with_subjects(offsets, None)
        logs = generator.normal(size=shape) * np.sqrt(share * self.log_variances[0])
        return self.with_subjects(offsets, np.exp(logs))
