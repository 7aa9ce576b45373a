"""Subjects of emissions: levels, and scales, of their own, common to all states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from skihmm._data.contexts import Categories, encode_contexts, find_categories
from skihmm._data.roles import Role
from skihmm._data.validation import check_flag, is_missing
from skihmm._records import EmissionRecord
from skihmm._typing import Array, Cdf, Flags, Floats, Integers, Labels, MatrixLike
from skihmm.core._emission import EmissionStats
from skihmm.core._random import RandomStream
from skihmm.emissions._base import BaseEmission, Part
from skihmm.emissions._columns import (
    as_floats,
    column_labels,
)
from skihmm.emissions._conjugate_stats import open_effects
from skihmm.emissions._family_emission import FamilyEmission
from skihmm.emissions._parts import joined, split, with_records
from skihmm.emissions._subject_effects import SubjectEffects
from skihmm.emissions._subject_levels import describe_far, first_names, levelled, subject_medians
from skihmm.emissions._subject_numbers import SubjectNumbers

# Variances of offsets are those of sequences, not of subjects, where these are so short.
_FEW_ROWS = 20
# Log odds against another state with another offset, below which it may be that one, and
# share of the rows of such states.
_LEAST_ODDS, _LEAST_SHARE = 3.0, 0.02


def _by_part(emission: BaseEmission) -> list[tuple[Part, WithSubjects | None]]:
    """All parts, and the emissions of those whose rows belong to subjects."""

    def own(found: BaseEmission) -> WithSubjects | None:
        return found if isinstance(found, WithSubjects) and found.has_subjects else None

    return [(part, own(part.emission)) for part in emission.parts]


def parts_with_subjects(emission: BaseEmission) -> list[WithSubjects]:
    """Parts whose rows belong to subjects."""
    return [own for _, own in _by_part(emission) if own]


def has_subjects(emission: BaseEmission) -> bool:
    """Whether rows belong to subjects, with numbers that all states share."""
    return bool(parts_with_subjects(emission))


def _rows_by_part(
    emission: BaseEmission, codes: Array
) -> list[tuple[Part, WithSubjects | None, Array]]:
    """All parts as of :func:`_by_part`, with their columns of encoded data."""
    pairs = zip(_by_part(emission), split(emission, codes), strict=True)
    return [(part, own, rows) for (part, own), (_, rows) in pairs]


def doubtful_subjects(
    emission: BaseEmission, labels: Labels, codes: Array, starts: Integers
) -> list[str]:
    """Warnings of subjects whose rows are about as probable with another offset."""
    if not has_subjects(emission):
        return []
    found = _rows_by_part(emission, codes)
    texts = [own._doubts(labels, rows, starts) for _, own, rows in found if own]
    return [text for of_part in texts for text in of_part]


class Subject(Role):
    """One column of ids, of which none is missing in a fit.

    The ids are learnt, by first appearance.
    """

    kind = "subject"

    @property
    def _name(self) -> str:
        return f"{self.parameter}={self.labels[0]!r}"

    def learn(self, columns: Array, learnt: Categories | None) -> tuple[Categories, list[str]]:
        lost = is_missing(columns[:, 0])
        if lost.any():
            raise ValueError(
                f"The subject of row {int(lost.argmax())} of X is missing ({self._name}); "
                "expected one in every row. Give rows of an unknown subject a name of its own."
            )
        return find_categories(columns, learnt, [self._name]), []

    def encode(self, columns: Array, learnt: Categories) -> Labels:
        return encode_contexts(columns, learnt, self._name)


class WithSubjects(FamilyEmission):
    """Base class of emissions of rows that may belong to subjects.

    The code of the subject is the last given input of a row.  The family does not have
    it: statistics take the numbers of the subjects off its rows.
    """

    subject_feature: str | int | None
    subject_scale = False
    # Whether offsets are on the scale of logarithms.
    are_logs = False
    # Earlier rows in a row.
    order = 0
    means_: Floats
    covariances_: Floats
    _n_rows_of_subjects: Integers | None = None
    subject_offsets_: Floats
    subject_scales_: Floats
    offset_deviation_: Floats
    _offset_units: Floats
    _far_subjects: list[str]

    @property
    def has_subjects(self) -> bool:
        """Whether rows belong to subjects."""
        return self.subject_feature is not None

    def roles(self) -> list[Role]:
        feature = self.subject_feature
        if feature is None:
            return super().roles()
        if isinstance(feature, bool) or not isinstance(feature, str | int | np.integer):
            raise TypeError(
                f"subject_feature={feature!r}; expected the name or the index of one column of X."
            )
        return [*super().roles(), Subject("subject_feature", [feature])]

    @property
    def subjects_(self) -> tuple[object, ...]:
        """Subjects of the fit in the order of their first rows."""
        if not self.has_subjects or "subject_feature" not in self._learnt:
            raise AttributeError("There are no subjects, or the emission is not fitted yet.")
        return tuple(self._learnt["subject_feature"][0])

    @property
    def _fitted_subjects(self) -> Labels | None:
        """Codes of the rows that are being fitted."""
        if self._given is None or not self.has_subjects:
            return None
        return self._given[:, -1].astype(np.int32)

    def fit_sequences(
        self, X: MatrixLike, starts: Integers, entropy: Sequence[int] | None = None
    ) -> BaseEmission:
        if check_flag("subject_scale", self.subject_scale) and not self.has_subjects:
            raise ValueError(
                "subject_scale=True, but there are no subjects; name their column in "
                "subject_feature."
            )
        codes = self._fitted_subjects
        if codes is not None:
            is_other = np.diff(codes, prepend=codes[0]) != 0
            is_other[starts] = False
            if is_other.any():
                row = int(is_other.argmax())
                raise ValueError(
                    f"Rows {row - 1} and {row} of X are in one sequence, but belong to "
                    f"two subjects, {self.subjects_[codes[row - 1]]!r} and "
                    f"{self.subjects_[codes[row]]!r}. Pass groups=, one value per row, "
                    "which divides X into sequences; the column of subjects will do."
                )
        super().fit_sequences(X, starts, entropy)
        self._given = None
        if codes is not None:
            self._n_rows_of_subjects = np.bincount(codes, minlength=len(self.subjects_))
            self._far_subjects = self._describe_far(as_floats(X, self), codes)
        return self

    def _describe_far(self, values: Floats, codes: Labels) -> list[str]:
        """Warnings of subjects that are far from the others."""
        return describe_far(
            values,
            codes,
            subject_medians(values, codes, len(self.subjects_)),
            self.subjects_,
            column_labels(self, values.shape[1]),
            f"subject_feature={self.subject_feature!r}",
        )

    def _levelled(self, X: Floats) -> Floats:
        codes = self._fitted_subjects
        if codes is None or len(self.subjects_) < 2:
            return X
        return levelled(X, codes, subject_medians(X, codes, len(self.subjects_)))

    def data_warnings(self, with_notes: bool = False) -> list[str]:
        return [*super().data_warnings(with_notes), *self._subject_warnings()]

    def _subject_warnings(self) -> list[str]:
        n_rows = self._n_rows_of_subjects
        if not self.has_subjects or n_rows is None:
            return []
        if len(n_rows) == 1:
            return [
                f"X has one subject, {self.subjects_[0]!r}, whose level the states have: "
                "leave out subject_feature."
            ]
        if np.median(n_rows) < _FEW_ROWS:
            return [
                *self._far_subjects,
                f"Half of the {len(n_rows)} subjects have fewer than {_FEW_ROWS} rows, "
                "which hardly tell their level from those of their states. Is "
                f"subject_feature={self.subject_feature!r} the column of subjects, or of "
                "sequences?",
            ]
        return self._far_subjects

    def _without_subjects(self) -> FamilyEmission:
        """The same emission of rows without the subject."""
        plain = copy(self)
        plain.subject_feature = None
        return plain

    def subject_numbers(self, record: EmissionRecord) -> SubjectNumbers:
        """Offsets, scales and variances of the subjects in a record.

        Parameters
        ----------
        record : dict
            The emission of a posterior draw.

        Returns
        -------
        numbers : SubjectNumbers
        """
        return SubjectNumbers.of_record(
            record["subjects"], self._n_values, has_scales=self.subject_scale
        )

    def _doubts(self, labels: Labels, codes: Array, starts: Integers) -> list[str]:
        """Warnings of subjects in one state that might as well be in another one.

        The offset may make up for the difference of two states; then only its prior, the
        number of rows and the states' covariances tell one from the other.

        Parameters
        ----------
        labels : ndarray of shape (n_samples,)
        codes : ndarray of shape (n_samples, n_features + n_inputs)
        starts : ndarray of int
            First rows of sequences.
        """
        if "means_" not in self._of_states:
            return []
        subjects = codes[:, -1].astype(int)
        counts = np.zeros((len(self.subjects_), len(self.means_)))
        np.add.at(counts, (subjects, labels), 1)
        largest = counts.argmax(axis=1)
        others = counts.sum(axis=0) > _LEAST_SHARE * len(labels)
        covariances = self.covariances_
        if covariances.ndim == 2:
            covariances = covariances[:, :, None] * np.eye(covariances.shape[1])
        log_sizes = np.linalg.slogdet(covariances)[1]
        doubtful = []
        for u in np.flatnonzero(counts.max(axis=1) == counts.sum(axis=1)):
            k, b = largest[u], self.subject_offsets_[u]
            moved = b + self.means_[k] - self.means_
            prior = ((moved**2 - b**2) / self.offset_deviation_**2).sum(axis=1)
            ratios = np.linalg.solve(covariances, covariances[k][None])
            spread = np.trace(ratios, axis1=1, axis2=2) - len(b) + log_sizes - log_sizes[k]
            odds = 0.5 * (prior + counts[u].sum() * spread)
            if (odds[others & (np.arange(len(odds)) != k)] < _LEAST_ODDS).any():
                doubtful.append(repr(self.subjects_[u]))
        if not doubtful:
            return []
        return [
            f"All rows of {first_names(doubtful)} "
            f"(subject_feature={self.subject_feature!r}) are in one state, and their "
            "level may as well be that of another one with another offset. If you "
            "know their states, label some of these rows (states=); another column "
            "may tell too."
        ]

    def make_stats(self, codes: Array) -> EmissionStats:
        if not self.has_subjects:
            return super().make_stats(codes)
        effects = SubjectEffects(
            codes[:, -1], len(self.subjects_), self._column_variances, self.subject_scale
        )
        return open_effects(self._without_subjects().make_stats(codes[:, :-1]), effects)

    @property
    def _column_variances(self) -> Floats:
        """Variances of the columns in the fit, by which offsets have their prior."""
        return self._offset_units

    def is_missing(self, codes: Array) -> Flags:
        if not self.has_subjects:
            return super().is_missing(codes)
        return self._without_subjects().is_missing(codes[:, :-1])

    def is_unused(self, codes: Array) -> Flags:
        if not self.has_subjects:
            return super().is_unused(codes)
        return self._without_subjects().is_unused(codes[:, :-1])

    def _as_emitted(self, codes: Array, record: EmissionRecord) -> tuple[FamilyEmission, Array]:
        """The same emission of rows without subjects, and its data: what states emit."""
        rows = self.subject_numbers(record).shifted(codes[:, :-1], codes[:, -1], self.order)
        return self._without_subjects(), rows

    def _numbers_of_rows(self, codes: Array, record: EmissionRecord) -> tuple[Floats, Floats]:
        """Offsets and scales by which values differ from what states emit."""
        return self.subject_numbers(record).of_rows(codes[:, -1])

    def predictive_cdf(
        self, stats: EmissionStats, slots: Labels, inputs: Array, is_conditional: bool = False
    ) -> Cdf:
        if not self.has_subjects:
            return super().predictive_cdf(stats, slots, inputs, is_conditional)
        # A function of rows of the mean subject, as one of rows of subjects.
        numbers = self.subject_numbers({"subjects": stats.of_draws})
        n = self._n_values
        rows = np.hstack([np.zeros((len(inputs), n)), inputs[:, :-1]])
        rows = numbers.shifted(rows, inputs[:, -1], self.order)
        offsets, scales = numbers.of_rows(inputs[:, -1])
        plain = self._without_subjects()
        cdf = plain.predictive_cdf(stats, slots, rows[:, n:], is_conditional)
        return lambda values: cdf((values - offsets) / scales)

    def with_states(
        self, record: EmissionRecord, n_states: int, stream: RandomStream | None = None
    ) -> BaseEmission:
        described = super().with_states(record, n_states, stream)
        if not isinstance(described, WithSubjects) or not self.has_subjects:
            return described
        return described._with_means([record], np.ones(1))

    def _with_means(self, records: Sequence[EmissionRecord], weights: Floats) -> WithSubjects:
        """Copy with means of the numbers over draws."""
        described = copy(self)
        numbers = [self.subject_numbers(record) for record in records]

        def mean(values: list[Floats]) -> Floats:
            return np.asarray(np.average(values, axis=0, weights=weights))

        described.subject_offsets_ = mean([each.offsets for each in numbers])
        described.offset_deviation_ = mean([np.sqrt(n.variances[0]) for n in numbers])
        if self.subject_scale:
            described.subject_scales_ = mean([each.scales for each in numbers])
        return described


# ---- emissions, products or not: their parts with subjects


def without_subjects(
    emission: BaseEmission, codes: Array, record: EmissionRecord
) -> tuple[BaseEmission, Array]:
    """The same emission of rows without subjects, and its data: what states emit."""
    if not has_subjects(emission):
        return emission, codes
    found = [
        own._as_emitted(rows, part.record(record)) if own else (part.emission, rows)
        for part, own, rows in _rows_by_part(emission, codes)
    ]
    return emission.with_parts(iter([plain for plain, _ in found])), joined(found)


def numbers_of_subjects(
    emission: BaseEmission, codes: Array, record: EmissionRecord
) -> tuple[Floats, Floats]:
    """Offsets and scales of rows, (n_samples, n_features): 0 and 1 without subjects."""
    offsets = np.zeros((len(codes), codes.shape[1] - emission.n_inputs))
    scales = offsets + 1
    if has_subjects(emission):
        columns = emission.columns(offsets.shape[1]).part
        for i, (part, own, rows) in enumerate(_rows_by_part(emission, codes)):
            if own:
                numbers = own._numbers_of_rows(rows, part.record(record))
                offsets[:, columns == i], scales[:, columns == i] = numbers
    return offsets, scales


def map_subjects(
    emission: BaseEmission,
    record: EmissionRecord,
    change: Callable[[SubjectNumbers], SubjectNumbers],
) -> EmissionRecord:
    """Record with changed numbers of the subjects of every part."""

    def changed(part: Part, own: WithSubjects | None) -> EmissionRecord:
        of_part = part.record(record)
        if own is None:
            return of_part
        return {**of_part, "subjects": change(own.subject_numbers(of_part)).to_record()}

    return with_records(record, starmap(changed, _by_part(emission)))


def log_prior_of_subjects(emission: BaseEmission, record: EmissionRecord) -> float:
    """Log density of the numbers of subjects, up to a constant; 0 without subjects."""
    parts = [(part.record(record), own) for part, own in _by_part(emission)]
    return sum(own.subject_numbers(of_part).log_prior() for of_part, own in parts if own)


def with_mean_subjects(
    emission: BaseEmission, records: Sequence[EmissionRecord], weights: Floats
) -> BaseEmission:
    """Copy with means of the numbers of its subjects over draws."""
    return emission.with_parts(
        own._with_means([part.record(record) for record in records], weights)
        if own
        else part.emission
        for part, own in _by_part(emission)
    )


def subject_columns(emission: BaseEmission, width: int) -> NDArray[np.intp]:
    """Indices of the columns of encoded data that hold subjects, last of their parts."""
    n_inputs = [part.emission.n_inputs for part, _ in _by_part(emission)]
    stops = width - emission.n_inputs + np.cumsum(n_inputs)
    return stops[[own is not None for _, own in _by_part(emission)]] - 1


def subjects_by_column(
    emission: BaseEmission, n_columns: int
) -> list[tuple[WithSubjects, NDArray[np.intp]]]:
    """Parts whose rows belong to subjects, and their columns in X without given columns."""
    columns = emission.columns(n_columns)
    return [
        (own, columns.order[columns.part == i])
        for i, (_, own) in enumerate(_by_part(emission))
        if own
    ]


def offset_columns(emission: BaseEmission, n_columns: int) -> Flags:
    """Mask of the encoded columns of values that offsets of subjects shift."""
    are_shifted = np.array([own is not None for _, own in _by_part(emission)])
    return are_shifted[emission.columns(n_columns).part]


def has_log_subjects(emission: BaseEmission) -> bool:
    """Whether the offsets of subjects are on the scale of logarithms; of all or of none."""
    are_logs = {part.are_logs for part in parts_with_subjects(emission)}
    if len(are_logs) == 2:
        raise ValueError(
            "X has subjects that were not in the fit, and parts of the emission have offsets "
            "of values and of logarithms (counts, decisions); expected one of both for new "
            "subjects. Pass rows of subjects of the fit, or fit two models."
        )
    return are_logs == {True}


def names_of_subjects(emission: BaseEmission, codes: Array) -> str:
    """Names of the subjects of a row, as texts show them, by their codes."""
    names: list[str] = []
    for part, code in zip(parts_with_subjects(emission), codes.astype(int), strict=True):
        is_known = 0 <= code < len(part.subjects_)
        names.append(repr(part.subjects_[code]) if is_known else "not in the fit")
    return ", ".join(dict.fromkeys(names))


def n_subjects(emission: BaseEmission) -> NDArray[np.intp]:
    """Number of subjects of the fit, for every part that has subjects."""
    parts = parts_with_subjects(emission)
    return np.array([len(part.subjects_) for part in parts], dtype=np.intp)
