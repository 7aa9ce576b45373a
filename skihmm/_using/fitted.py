"""A fitted model: what a fit leaves to all that uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skihmm._data.given import GivenColumns
from skihmm._data.reading import Columns
from skihmm._data.sequences import Sequences
from skihmm._data.validation import check_choice
from skihmm._draws import Draw, PosteriorDraws
from skihmm._pickles import with_version, without_version
from skihmm._typing import Array, Flags, Floats, Labels, MatrixLike, RandomState, VectorLike
from skihmm._using.decoding import frozen_model
from skihmm._using.dwell_times import DwellLaw
from skihmm._using.given_steps import StepEncoder
from skihmm._using.matching import NO_PATHS, places_of_states
from skihmm._using.new_subjects import with_new_subjects
from skihmm.core._messages import FrozenModel
from skihmm.emissions import BaseEmission
from skihmm.emissions._encoding import encode, missing_ends
from skihmm.emissions._given import n_given, typical_given
from skihmm.emissions._subjects import has_subjects, with_mean_subjects
from skihmm.samplers import BaseSampler
from skihmm.transitions import BaseTransitions


@dataclass(frozen=True)
class Schedule:
    """How the draws of a fit were made, for the diagnosis and its advice.

    Attributes
    ----------
    sampler : BaseSampler
    n_burnin : ndarray of shape (n_chains,), int
        Sweeps discarded.
    thin : int
    init : str or array-like
    point_estimate : str
    seconds : float
        CPU seconds of all chains, with their starts and burn-in.
    """

    sampler: BaseSampler
    n_burnin: NDArray[np.int_]
    thin: int
    init: str | ArrayLike
    point_estimate: str
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """A fitted model, which never changes: the next fit makes another one.

    It has no parameters of calls, such as `random_state`, `n_jobs` and the output of
    ``set_output``, which stay with the estimator and can be changed after the fit.

    Attributes
    ----------
    draws : PosteriorDraws
    best : (int, int)
        Chain and draw of the selected draw.
    ranks : ndarray of shape (n_chains, n_draws), or None
        Ranks of the draws; None where chains are not compared by them.
    labels : ndarray of shape (n_samples,), int32
        Path of the selected draw, which has none with ``store_states=False``.
    startprob, transmat : ndarray
        Of the selected draw, with a new state.
    emission : BaseEmission
        With the states' parameters in the selected draw.
    transitions : BaseTransitions
    sequences : Sequences
        All data of the fit, encoded.
    given : GivenColumns
        Columns of X that are given, not modelled.
    columns : Columns
        Columns of X.
    entropy : list of int
        Entropy of the random streams of scores.
    schedule : Schedule
    """

    draws: PosteriorDraws
    best: tuple[int, int]
    ranks: Floats | None
    labels: Labels
    startprob: Floats
    transmat: Floats
    emission: BaseEmission
    transitions: BaseTransitions
    sequences: Sequences
    given: GivenColumns
    columns: Columns
    entropy: list[int]
    schedule: Schedule

    def __getstate__(self) -> dict[str, object]:
        """State of a pickle, also of what holds a fitted model, with its version."""
        return with_version(self.__dict__)

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore from a pickle; refuse another layout, warn if another version made it."""
        self.__dict__.update(without_version(state, "fitted model"))

    # ---- the selected draw

    @property
    def selected(self) -> Draw:
        """The selected draw."""
        return self.draws[self.best]

    @property
    def n_states(self) -> int:
        """Number of states of the selected draw."""
        return len(self.transmat) - 1

    @property
    def dwell_law(self) -> DwellLaw:
        """Law of the dwell times of the selected draw."""
        return DwellLaw.of_draw(self.selected)

    # ---- data

    @property
    def observed(self) -> NDArray[np.intp]:
        """Indices of the columns of X that are modelled, not given."""
        return self.encoder.observed

    @property
    def observed_labels(self) -> Array:
        """Names of these columns, or x0, x1, ..."""
        return np.array(self.columns.labels, dtype=object)[self.observed]

    @property
    def encoder(self) -> StepEncoder:
        """Encoder of further rows, which has no data of the fit."""
        contexts = self.sequences.contexts
        tree = None if contexts is None else contexts.tree
        return StepEncoder(self.given, self.transitions, self.emission, tree, self.columns)

    def encode(
        self,
        X: MatrixLike,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
        *,
        continued: bool = False,
    ) -> Sequences:
        """Read and encode rows; if `continued` the first sequence follows the data of the fit."""
        rows, starts = self.columns.read_sequences(X, groups, lengths)
        before = self.sequences.codes[-1:] if continued else None
        return self.encoder.rows(rows, starts, before)

    def missing_ends(self, sequences: Sequences) -> Flags:
        """Mask of the steps at the ends of sequences that belong to no segment."""
        return missing_ends(self.emission, sequences.codes, sequences.starts)

    def missing_row(self, context: object = None) -> Array:
        """One encoded row without observations, in a context of the emission, by default none."""
        given = self.given
        places = given.emission_contexts
        values = context if isinstance(context, tuple) else (context,)
        if context is None:
            values = ()
        if len(values) > len(places):
            raise ValueError(
                f"context={context!r} has {len(values)} values; the emission depends on "
                f"{len(places)} columns of contexts (context_features)."
            )
        columns = np.full((1, len(given)), None, dtype=object)
        # Inputs are at their means.
        columns[0, given.of_emission] = typical_given(self.emission)
        columns[0, places[: len(values)]] = values
        row = np.full((1, len(self.observed)), np.nan)
        return encode(self.emission, row, np.array([0]), given=given.emission(columns))

    def without_context(self) -> Array | None:
        """Inputs of an emission with given columns, where contexts are missing."""
        if not n_given(self.emission):
            return None
        inputs: Array = self.missing_row()[0, len(self.observed) :]
        return inputs

    # ---- models of encoded rows

    def with_subjects(
        self, draws: Sequence[Draw], sequences: Sequences
    ) -> tuple[Sequence[Draw], Sequences]:
        """Draws with the numbers of subjects that were not in the fit, too."""
        if not has_subjects(self.emission):
            return draws, sequences
        return with_new_subjects(draws, sequences, self.emission, self.entropy)

    def model(self, sequences: Sequences) -> FrozenModel:
        """Model of the selected draw over encoded rows."""
        (draw,), sequences = self.with_subjects([self.selected], sequences)
        return frozen_model(draw, sequences, self.emission)

    def model_without_data(self, draw: Draw | None = None) -> FrozenModel:
        """Model of a draw over one row of the fit, for quantities that do not depend on data."""
        first = Sequences(self.sequences.codes[:1], self.sequences.starts[:1])
        return frozen_model(self.selected if draw is None else draw, first, self.emission)

    def matched_draws(self, max_draws: int | None = None) -> Iterator[tuple[Draw, float, Labels]]:
        """Draws, their weights, and of their states and a new one the columns."""
        if not self.draws.has_states:
            raise ValueError(NO_PATHS)
        draws, weights = self.draws.weighted(max_draws, with_states=True)
        for draw, weight in zip(draws, weights / weights.sum(), strict=True):
            assert draw.states is not None
            yield draw, weight, places_of_states(self.labels, draw.states)

    def state_probs(
        self,
        sequences: Sequences,
        method: str,
        *,
        of_all_draws: bool = False,
        max_draws: int | None = None,
    ) -> Floats:
        """Probabilities of the states and a new one at every step."""
        check_choice("method", method, ("smooth", "filter"))
        if not of_all_draws:
            return _probs_of(self.model(sequences), method)
        mean = np.zeros((sequences.n_steps, self.n_states + 1))
        chosen, weights, places = zip(*self.matched_draws(max_draws), strict=True)
        draws, sequences = self.with_subjects(chosen, sequences)
        for draw, weight, place in zip(draws, weights, places, strict=True):
            probs = _probs_of(frozen_model(draw, sequences, self.emission), method)
            np.add.at(mean.T, place, weight * probs.T)
        return mean


def described_emission(
    emission: BaseEmission, draws: PosteriorDraws, selected: Draw
) -> BaseEmission:
    """Emission with the states' parameters in a draw, and subjects by all draws."""
    described = emission.with_states(selected.emission, selected.n_states)
    if has_subjects(emission):
        weighted, weights = draws.weighted()
        described = with_mean_subjects(described, [d.emission for d in weighted], weights)
    return described


def _probs_of(model: FrozenModel, method: str) -> Floats:
    if method == "smooth":
        return model.smooth()
    probs = model.filter(with_probs=True)[1]
    assert probs is not None
    return probs


class FittedEstimator(Protocol):
    """What functions that take a fitted HCRPHMM ask of it."""

    random_state: RandomState
    n_jobs: int | None
    _fitted: FittedModel


def fitted_of(hmm: FittedEstimator) -> FittedModel:
    """Fitted model of an estimator; the only place that asks for it."""
    if not hasattr(hmm, "find_regimes"):
        raise TypeError(f"hmm is {hmm!r:.200}; expected a fitted HCRPHMM.")
    check_is_fitted(hmm)
    return hmm._fitted
