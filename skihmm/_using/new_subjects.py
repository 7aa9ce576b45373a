"""Subjects that were not in the fit: their offsets, by a draw and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skihmm._data.sequences import Sequences
from skihmm._draws import Draw
from skihmm._records import EmissionRecord, ModelRecord
from skihmm._typing import Array, Floats, Integers
from skihmm._using.decoding import model_over
from skihmm._using.given_steps import GivenSteps
from skihmm._using.new_log_subjects import follow_new_log_subjects
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._conjugate_stats import follow_new_subjects
from skihmm.emissions._given import given_kinds
from skihmm.emissions._subject_numbers import SubjectNumbers
from skihmm.emissions._subjects import (
    has_log_subjects,
    has_subjects,
    map_subjects,
    n_subjects,
    offset_columns,
    subject_columns,
)

# Rounds of labels and numbers in turn, after particles.
N_ROUNDS = 5
# Particles of all draws together, and bounds of those of each.  In scores of symbols, on
# six fits of an automaton, 40 for each of 50 draws are .001 to .002 nats lower than 100
# for each of 200, 20 are .003 to .008 lower; the former take a sixth of the time of a
# fit.
N_PARTICLES, LEAST_PARTICLES, _MOST_PARTICLES = 2000, 40, 100
# Draws of the parameters of the states over which cumulative probabilities are averaged.
_LEAST_PARAMETERS = 20


@dataclass(frozen=True)
class NewSubjects:
    """Rows of subjects that were not in the fit.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_features + n_inputs)
        All rows, with codes of these subjects that follow those of the fit.
    rows : ndarray of int
        Indices of the rows of new subjects, one subject after the other.
    subjects : ndarray of int
        Their codes.
    sequences : Sequences
        These rows.
    """

    codes: Array
    rows: NDArray[np.intp]
    subjects: Integers
    sequences: Sequences

    @classmethod
    def find(cls, sequences: Sequences, emission: BaseEmission) -> NewSubjects | None:
        """Find them; None if there are none.

        A name is one subject, in all sequences; without a name every sequence is another
        subject.
        """
        columns = subject_columns(emission, sequences.codes.shape[1])
        subjects = sequences.codes[:, columns].astype(np.intp)
        is_new = ((subjects < 0) | (subjects >= n_subjects(emission))).any(axis=1)
        is_start = np.zeros(sequences.n_steps, dtype=bool)
        is_start[sequences.starts] = True
        number = np.cumsum(is_start) - 1
        if (subjects != subjects[sequences.starts[number]]).any():
            raise ValueError(
                "X has a sequence of several subjects; expected one per sequence. Pass "
                "groups=, one value per row: the column of subjects will do."
            )
        if not is_new.any():
            return None
        if (subjects != subjects[:, :1]).any():
            raise ValueError(
                "X has subjects that were not in the fit, and parts of the emission have "
                "different ones; expected subjects of the fit, or one subject_feature "
                "for all parts."
            )
        named = np.where(subjects[:, 0] < 0, subjects.max() + 1 + number, subjects[:, 0])
        _, place = np.unique(named[is_new], return_inverse=True)
        order = np.argsort(place, kind="stable")
        rows = np.flatnonzero(is_new)[order]
        found = n_subjects(emission).max() + place
        codes = sequences.codes.copy()
        codes[np.ix_(is_new, columns)] = found[:, None]
        alone = replace(sequences, codes=codes).part(rows, np.flatnonzero(is_start[rows]))
        return cls(codes, rows, found[order], alone)

    def _model(self, arrays: ModelRecord, emission: BaseEmission) -> FrozenModel:
        """HMM of a draw over their rows."""
        return model_over(arrays, self.sequences, emission)

    def follow(
        self,
        arrays: ModelRecord,
        emission: BaseEmission,
        n_particles: int,
        stream: RandomStream,
    ) -> tuple[Floats, Floats]:
        """Log predictive probabilities of the rows, offsets integrated out; offsets."""
        if has_log_subjects(emission):
            return follow_new_log_subjects(self._model(arrays, emission), self.subjects, stream)
        return follow_new_subjects(
            self._model(arrays, emission),
            self.sequences.starts,
            self.subjects,
            n_particles=n_particles,
            stream=stream,
        )[:2]

    def foresee(
        self,
        arrays: ModelRecord,
        emission: BaseEmission,
        n_particles: int,
        stream: RandomStream,
    ) -> tuple[Floats, Floats]:
        """What is expected of the rows given those before them, offsets integrated out.

        Returns
        -------
        probs : ndarray of shape (n_rows, n_states + 1)
            Probabilities of states, and of a new one.
        shares : ndarray of shape (n_rows, n_offsets)
            Cumulative probabilities of the values of the columns with offsets.
        """
        if has_log_subjects(emission):
            raise ValueError(
                "X has subjects that were not in the fit, and of counts and decisions there are "
                "residuals of subjects of the fit only. Pass rows of these, or add the subjects "
                "by partial_fit."
            )
        *_, probs, shares = follow_new_subjects(
            self._model(arrays, emission),
            self.sequences.starts,
            self.subjects,
            n_particles=n_particles,
            stream=stream,
            with_ahead=True,
        )
        assert probs is not None
        assert shares is not None
        return probs, shares

    def added_to(
        self,
        arrays: ModelRecord,
        emission: BaseEmission,
        n_particles: int,
        stream: RandomStream,
    ) -> EmissionRecord:
        """Record of the emission with numbers of theirs too, a draw given their rows.

        Particles find the offset, because labels would confirm one that is a state off;
        then labels, and offsets and scales, are drawn in turn.
        """
        _, rest = self.follow(arrays, emission, n_particles, stream)

        def add(numbers: SubjectNumbers) -> SubjectNumbers:
            nonlocal rest
            own, rest = np.split(rest, [numbers.offsets.shape[1]], axis=1)
            return numbers.with_subjects(own, np.ones_like(own))

        record = map_subjects(emission, arrays["emission"], add)
        model = self._model({**arrays, "emission": record}, emission)
        for _ in range(N_ROUNDS):
            model.draw_hidden(model.sample_path(stream), stream, True)
        n = arrays["n_states"]
        # Slots: a new state, the start, states.
        labels = np.array([-1, n, *range(n)], dtype=np.int32)
        return model.emission.to_arrays(labels)


def n_particles_of(n_draws: int) -> int:
    """Number of particles of every draw."""
    return max(LEAST_PARTICLES, N_PARTICLES // n_draws)


@dataclass(frozen=True)
class Foreseen:
    """What is expected of rows of new subjects given those before them.

    Offsets are integrated out: a draw of an offset would be given the row, too.

    Attributes
    ----------
    rows : ndarray of int
        Indices of these rows.
    columns : ndarray of int
        Those of the encoded columns that offsets shift.
    probs : list of ndarray of shape (n_rows, n_states + 1)
        By draw, probabilities of states, and of a new one.
    shares : ndarray of shape (n_rows, n_columns)
        Cumulative probabilities of the values, averaged over draws.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    probs: list[Floats]
    shares: Floats


def foresee_new_subjects(
    draws: Sequence[Draw],
    weights: Floats,
    sequences: Sequences,
    emission: BaseEmission,
    entropy: Sequence[int],
) -> Foreseen | None:
    """What draws, with weights, say of rows of new subjects; None without such rows."""
    new = NewSubjects.find(sequences, emission) if has_subjects(emission) else None
    if new is None:
        return None
    n_particles = min(n_particles_of(len(draws)), _MOST_PARTICLES)
    n_rounds = -(-_LEAST_PARAMETERS // len(draws))
    probs, shares = [], []
    for draw, seed in zip(
        draws, np.random.SeedSequence(list(entropy)).spawn(len(draws)), strict=True
    ):
        found = [
            new.foresee(draw.arrays, emission, n_particles, RandomStream(child))
            for child in seed.spawn(n_rounds)
        ]
        probs.append(np.mean([each for each, _ in found], axis=0))
        shares.append(np.mean([each for _, each in found], axis=0))
    n_columns = sequences.codes.shape[1] - emission.n_inputs
    columns = np.flatnonzero(offset_columns(emission, n_columns))
    mean = np.average(shares, axis=0, weights=weights)
    return Foreseen(new.rows, columns, probs, np.asarray(mean))


def with_new_subjects(
    draws: Sequence[Draw],
    sequences: Sequences,
    emission: BaseEmission,
    entropy: Sequence[int],
) -> tuple[Sequence[Draw], Sequences]:
    """Draws that have numbers of all subjects of encoded data, and these data.

    Where the data have no subject that was not in the fit, they are those given.
    """
    new = NewSubjects.find(sequences, emission)
    if new is None:
        return draws, sequences
    n_particles = min(n_particles_of(len(draws)), _MOST_PARTICLES)
    seeds = np.random.SeedSequence(list(entropy)).spawn(len(draws))
    extended = [
        replace(
            draw,
            emission=new.added_to(draw.arrays, emission, n_particles, RandomStream(seed)),
        )
        for draw, seed in zip(draws, seeds, strict=True)
    ]
    return extended, replace(sequences, codes=new.codes)


def with_sampled_subject(
    draw: Draw,
    steps: GivenSteps,
    emission: BaseEmission,
    subject: object,
    seed: np.random.SeedSequence,
) -> tuple[Draw, GivenSteps]:
    """A draw, and given columns, of a subject of the fit or of a new one.

    It raises ValueError if `subject` is a name that was not in the fit.
    """
    is_subject, n = given_kinds(emission) == "subject", n_subjects(emission)
    codes = steps.of_emission[:, is_subject]
    is_new = (codes < 0) | (codes >= n)
    if subject is not None and not is_subject.any():
        raise ValueError(
            f"subject={subject!r}, but the emission has no subjects (subject_feature)."
        )
    if subject is not None and is_new.any():
        raise ValueError(
            f"subject={subject!r}; expected one of the subjects of the fit "
            "(emission_.subjects_), or None for a new one."
        )
    if not is_new.any():
        return draw, steps
    generator = np.random.default_rng(seed.spawn(1)[0])
    record = map_subjects(emission, draw.emission, lambda numbers: numbers.with_drawn(generator))
    given = steps.of_emission.copy()
    given[:, is_subject] = np.where(is_new, n, codes)
    return replace(draw, emission=record), replace(steps, of_emission=given)
