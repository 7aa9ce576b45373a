"""Effects of subjects on the rows of statistics, by the numbers of the subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skihmm._typing import Array, Floats, Integers, Labels
from skihmm.core._emission import EmissionStats
from skihmm.core._log_subjects import register_log_subjects
from skihmm.core._random import RandomStream
from skihmm.core._registration import register_subjects
from skihmm.emissions._subject_numbers import SubjectNumbers


@dataclass
class SubjectEffects:
    """Numbers of subjects, and what they do to rows.

    Values are the offset of their subject plus its scale times what the state emits.  Of a
    regression, linear predictors have the offsets, which are the last inputs of its rows.

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
    regression : {"counts", "exposed counts", "decisions", "trials"} or None
        What a regression observes; None: offsets of values.
    path : ndarray of shape (n_steps,) or None
        Most probable states of the registration, by which a chain may begin.
    """

    codes: Array
    n_subjects: int
    variances: Floats
    has_scales: bool = False
    regression: str | None = None
    path: Labels | None = None

    def __post_init__(self) -> None:
        self.codes = np.asarray(self.codes).astype(np.int32)
        self.variances = np.ascontiguousarray(self.variances, dtype=np.float64)

    def at_start(self) -> SubjectNumbers:
        """Numbers before others are set: offsets of zero, and scales of one."""
        zeros = np.zeros((self.n_subjects, len(self.variances)))
        if self.regression is not None:
            return SubjectNumbers(np.stack([self.variances, self.variances]), zeros)
        scales = zeros + 1 if self.has_scales else None
        return SubjectNumbers.at_start(zeros, scales, self.variances)

    def numbers(self, record: Floats) -> SubjectNumbers:
        """Take apart the numbers of a record."""
        return SubjectNumbers.of_record(record, len(self.variances), has_scales=self.has_scales)

    def without(self, values: Floats, record: Floats) -> Floats:
        """Values that the states emit."""
        return self.numbers(record).shifted(values, self.codes, 0)

    def register(self, stats: EmissionStats, starts: Integers, stream: RandomStream) -> None:
        """Set the numbers of statistics to the results of a registration."""
        values, inputs = np.split(stats.data, [stats.n_columns], axis=1)
        rest = starts, self.codes, stream
        if self.regression is None:
            offsets, scales, _ = register_subjects(
                np.ascontiguousarray(values),
                *rest,
                scale=self.has_scales,
                is_stopped=stats.is_stopped,
            )
            numbers = SubjectNumbers.at_start(
                offsets, scales if self.has_scales else None, self.variances
            )
        else:
            inputs = inputs[:, : inputs.shape[1] - len(self.variances)]
            offsets, self.path = register_log_subjects(
                values, inputs, *rest, kind=self.regression, is_stopped=stats.is_stopped
            )
            numbers = SubjectNumbers.of_logs_at_start(offsets, self.variances)
        if self.regression is None or len(offsets) > 1:
            stats.of_draws = numbers.to_record()


def registered_paths(stats: EmissionStats) -> tuple[Labels, ...]:
    """Paths that registrations of subjects have found, by which a chain may begin."""
    effects = [part.effects for part in stats.leaves if part.effects is not None]
    return tuple(each.path for each in effects if each.path is not None)
