"""Effects of subjects on the rows of statistics, by the numbers of the subjects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skihmm._typing import Array, Floats, Integers, Labels
from skihmm.core._emission import EmissionStats
from skihmm.core._log_subjects import register_log_subjects
from skihmm.core._random import RandomStream
from skihmm.core._registration import register_subjects
from skihmm.emissions._subject_numbers import SubjectNumbers


@dataclass
class SubjectEffects:
    """Values of rows are offsets of their subjects plus scales times what states emit.

    Attributes
    ----------
    codes : ndarray of shape (n_steps,), int32
        The subject of every row; the mean subject below zero, and where a record has no numbers
        of it.
    n_subjects : int
        Subjects of the fit; further ones of a record are new.
    variances : ndarray of shape (n_offsets,)
        Typical variances of offsets.
    has_scales : bool
        Without them scales are one.
    path : ndarray of shape (n_steps,) or None
        Most probable states of the registration, by which a chain may begin.
    """

    are_logs: ClassVar[bool] = False
    codes: Array
    n_subjects: int
    variances: Floats
    has_scales: bool = False
    path: Labels | None = None

    def __post_init__(self) -> None:
        self.codes = np.asarray(self.codes).astype(np.int32)
        self.variances = np.ascontiguousarray(self.variances, dtype=np.float64)

    def at_start(self) -> SubjectNumbers:
        """Numbers before others are set: offsets of zero, and scales of one."""
        zeros = np.zeros((self.n_subjects, len(self.variances)))
        return SubjectNumbers.at_start(
            zeros, zeros + 1 if self.has_scales else None, self.variances
        )

    def numbers(self, record: Floats) -> SubjectNumbers:
        """Take apart the numbers of a record."""
        return SubjectNumbers.of_record(record, len(self.variances), has_scales=self.has_scales)

    def without(self, values: Floats, record: Floats) -> Floats:
        """Values that the states emit."""
        return self.numbers(record).shifted(values, self.codes, 0)

    def register(self, stats: EmissionStats, starts: Integers, stream: RandomStream) -> None:
        """Set the numbers of statistics to the results of a registration."""
        offsets, scales, _ = register_subjects(
            np.ascontiguousarray(stats.data[:, : stats.n_columns]),
            starts,
            self.codes,
            stream,
            scale=self.has_scales,
            is_stopped=stats.is_stopped,
        )
        stats.of_draws = SubjectNumbers.at_start(
            offsets, scales if self.has_scales else None, self.variances
        ).to_record()


@dataclass
class LogSubjectEffects(SubjectEffects):
    """Linear predictors of rows have offsets of their subjects, the last inputs of a row.

    Attributes
    ----------
    kind : {"counts", "exposed counts", "decisions", "trials"}
        What is observed, for the registration.
    """

    are_logs: ClassVar[bool] = True
    kind: str = "counts"

    def at_start(self) -> SubjectNumbers:
        zeros = np.zeros((self.n_subjects, len(self.variances)))
        return SubjectNumbers(np.stack([self.variances, self.variances]), zeros)

    def register(self, stats: EmissionStats, starts: Integers, stream: RandomStream) -> None:
        n = stats.n_columns
        offsets, self.path = register_log_subjects(
            stats.data[:, :n],
            stats.data[:, n : stats.data.shape[1] - len(self.variances)],
            starts,
            self.codes,
            stream,
            kind=self.kind,
            is_stopped=stats.is_stopped,
        )
        if len(offsets) > 1:
            numbers = SubjectNumbers.of_logs_at_start(offsets, self.variances)
            stats.of_draws = numbers.to_record()


def registered_paths(stats: EmissionStats) -> tuple[Labels, ...]:
    """Paths that registrations of subjects have found, by which a chain may begin."""
    effects = [part.effects for part in stats.leaves if part.effects is not None]
    return tuple(each.path for each in effects if each.path is not None)
