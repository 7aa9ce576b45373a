"""Subjects of regressions: offsets of log rates or log odds, common to all states."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from skihmm._records import EmissionRecord, FixedNumbers
from skihmm._typing import Array, Cdf, Floats, Integers, Labels
from skihmm.core._emission import EmissionStats
from skihmm.core._log_subjects import rivals_of_subjects
from skihmm.core._random import RandomStream
from skihmm.emissions._base import BaseEmission
from skihmm.emissions._conjugate_stats import open_effects
from skihmm.emissions._family_emission import FamilyEmission
from skihmm.emissions._inputs import WithInputs
from skihmm.emissions._subject_effects import SubjectEffects
from skihmm.emissions._subject_levels import first_names
from skihmm.emissions._subjects import WithSubjects

# Nats by which an offset should be better than another one.
_LEAST_LEAD = 3.0


class WithLogSubjects(WithSubjects, WithInputs):
    """Base class of regressions whose linear predictors may have offsets of subjects.

    Families get the offsets as shifts: given inputs after all others, one of every column.
    """

    are_logs = True
    coefficients_: Floats
    intercepts_: Floats
    # Sizes of counts, by column, that go with the states; 0 of others.
    _sizes: Floats
    # What registrations observe, without and with a further given column.
    _observed: ClassVar[tuple[str, str]]
    _extra_feature: int | str | None
    _n_shifts = 0

    @property
    def n_given(self) -> int:
        return super().n_given + self._n_shifts

    def _fixed(self) -> FixedNumbers:
        return {**super()._fixed(), "n_shifts": self._n_shifts}

    def _with_shifts(self) -> WithLogSubjects:
        """The same emission of rows with shifts in place of the subject."""
        plain = copy(self)
        plain.subject_feature = None
        plain._n_shifts = self._n_values
        return plain

    def _describe_far(self, values: Floats, codes: Labels) -> list[str]:
        return []

    @property
    def _column_variances(self) -> Floats:
        # In the units of the coefficients.
        return np.asarray(1.0 / self._units[1])

    def make_stats(self, codes: Array) -> EmissionStats:
        if not self.has_subjects:
            return super().make_stats(codes)
        plain = self._with_shifts()
        effects = SubjectEffects(
            codes[:, -1],
            len(self.subjects_),
            self._column_variances,
            regression=self._observed[self._extra_feature is not None],
        )
        shifts = np.zeros((len(codes), plain._n_shifts))
        return open_effects(plain.make_stats(np.hstack([codes[:, :-1], shifts])), effects)

    def with_states(
        self, record: EmissionRecord, n_states: int, stream: RandomStream | None = None
    ) -> BaseEmission:
        described = super().with_states(record, n_states, stream)
        if isinstance(described, WithLogSubjects) and self.has_subjects:
            sizes = 1 / self._split(record["hyperparameters"]).get("dispersion", np.inf)
            described._sizes = np.broadcast_to(sizes, self._n_values)
        return described

    def _doubts(self, labels: Labels, codes: Array, starts: Integers) -> list[str]:
        coefficients, intercepts = self.coefficients_, self.intercepts_
        intercepts = intercepts + (coefficients * self.input_means_[: self._n_regressors]).sum(-1)
        slopes = coefficients * self.input_scales_[: self._n_regressors]
        fit = SimpleNamespace(
            coefficients=np.moveaxis(np.dstack([slopes, intercepts]), 0, 1),
            offsets=self.subject_offsets_,
            variances=self.offset_deviation_**2,
            r=np.array(self._sizes),
        )
        n = self._n_values
        nats = rivals_of_subjects(
            codes[:, :n],
            codes[:, n:-1],
            starts,
            codes[:, -1].astype(np.int32),
            labels,
            fit,
            kind=self._observed[self._extra_feature is not None],
        )
        doubtful = [repr(self.subjects_[u]) for u in np.flatnonzero(nats < _LEAST_LEAD)]
        if not doubtful:
            return []
        return [
            f"The rows of {first_names(doubtful)} "
            f"(subject_feature={self.subject_feature!r}) are about as probable with another "
            "offset, a state away. If you know states of these subjects, label some of their "
            "rows (states=); inputs whose coefficients differ by state may tell too."
        ]

    def _as_emitted(self, codes: Array, record: EmissionRecord) -> tuple[FamilyEmission, Array]:
        offsets = self.subject_numbers(record).of_rows(codes[:, -1])[0]
        return self._with_shifts(), np.hstack([codes[:, :-1], offsets])

    def _numbers_of_rows(self, codes: Array, record: EmissionRecord) -> tuple[Floats, Floats]:
        # Values are what states emit.
        zeros = np.zeros((len(codes), self._n_values))
        return zeros, zeros + 1

    def predictive_cdf(
        self, stats: EmissionStats, slots: Labels, inputs: Array, is_conditional: bool = False
    ) -> Cdf:
        if not self.has_subjects:
            return super().predictive_cdf(stats, slots, inputs, is_conditional)
        plain, rows = self._as_emitted(inputs, {"subjects": stats.of_draws})
        return plain.predictive_cdf(stats, slots, rows, is_conditional)
