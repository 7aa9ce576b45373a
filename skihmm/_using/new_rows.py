"""What a fitted model says about rows: forecasts, missing entries, residuals and samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from skihmm._data.given import with_columns, without_columns
from skihmm._data.sequences import Sequences
from skihmm._data.validation import check_integer, draw_entropy, is_missing
from skihmm._draws import Draw
from skihmm._typing import Array, Flags, Floats, Labels, MatrixLike, RandomState, VectorLike
from skihmm._using.decoding import frozen_model, simulate_sequence
from skihmm._using.fitted import FittedModel
from skihmm._using.imputation import fill, impute_drawn, impute_expected
from skihmm._using.matching import matched_labels
from skihmm._using.new_subjects import foresee_new_subjects, with_sampled_subject
from skihmm._using.prediction import PosteriorPredictive
from skihmm._using.residuals import normal_residuals
from skihmm.core._random import RandomStream
from skihmm.emissions._encoding import noise_of


def predict_next(
    fitted: FittedModel,
    X: MatrixLike,
    n_steps: int,
    *,
    random_state: RandomState,
    contexts: MatrixLike | None,
    inputs: MatrixLike | None,
    groups: VectorLike | None,
    lengths: VectorLike | None,
) -> PosteriorPredictive:
    """Predict the rows after X; see ``HCRPHMM.predict_next``."""
    n_steps = check_integer("n_steps", n_steps, 1)
    coming = fitted.encoder.coming(contexts, inputs, n_steps)
    chosen, weights = fitted.draws.weighted()
    draws, sequences = fitted.with_subjects(chosen, fitted.encode(X, groups, lengths))
    return PosteriorPredictive(
        draws,
        sequences,
        fitted.emission,
        n_steps,
        random_state,
        fitted.encoder.observed_names,
        coming,
        weights,
        matching=partial(matched_labels, fitted.draws, fitted.labels),
    )


def impute(
    fitted: FittedModel,
    X: MatrixLike,
    method: str,
    random_state: RandomState,
    groups: VectorLike | None,
    lengths: VectorLike | None,
) -> tuple[Array, Flags]:
    """Fill in missing entries of X; return their mask, too; see ``HCRPHMM.impute``."""
    rows, starts = fitted.columns.read_sequences(X, groups, lengths)
    sequences = fitted.encoder.rows(rows, starts)
    columns = fitted.given.columns
    observed = without_columns(rows, columns)
    missing = np.array([is_missing(column) for column in observed.T]).T
    filled = observed.copy()
    if missing.any():
        chosen, weights = fitted.draws.weighted()
        draws, sequences = fitted.with_subjects(chosen, sequences)
        fill_codes = impute_expected if method == "expectation" else impute_drawn
        seed = np.random.SeedSequence(draw_entropy(random_state))
        codes = fill_codes(draws, sequences, fitted.emission, seed, weights)
        filled = fill(observed, missing, fitted.emission.decode(codes))
    # Contexts and inputs are not imputed.
    filled = with_columns(filled, columns, rows[:, columns])
    absent = np.zeros((len(rows), len(columns)), dtype=bool)
    return filled, with_columns(missing, columns, absent).astype(bool)


def residuals(
    fitted: FittedModel,
    draws: Sequence[Draw],
    weights: Floats,
    X: MatrixLike,
    entropy: Sequence[int],
    groups: VectorLike | None,
    lengths: VectorLike | None,
) -> Floats:
    """Residuals of X under weighted draws, in the order of its columns."""
    rows, starts = fitted.columns.read_sequences(X, groups, lengths)
    emission = fitted.emission
    # The noise of the fit, for rows after those of the fit.
    shape = len(rows), len(fitted.observed)
    noise = noise_of(emission, shape, len(fitted.labels), entropy)
    sequences = fitted.encoder.rows(rows, starts, noise=noise)
    foreseen = foresee_new_subjects(draws, weights, sequences, emission, entropy)
    stream = RandomStream(np.random.SeedSequence(entropy))
    found = normal_residuals(draws, weights, sequences, emission, stream, foreseen=foreseen)
    in_order = np.empty_like(found)
    in_order[:, emission.columns(found.shape[1]).order] = found
    return in_order


def sample(
    fitted: FittedModel,
    n_samples: int,
    entropy: Sequence[int],
    contexts: MatrixLike | None,
    inputs: MatrixLike | None,
    subject: object,
) -> tuple[Array, Labels]:
    """Draw a new sequence; see ``HCRPHMM.sample``."""
    coming = fitted.encoder.coming(contexts, inputs, n_samples, subject)
    seed = np.random.SeedSequence(entropy)
    emission = fitted.emission
    draw, coming = with_sampled_subject(fitted.selected, coming, emission, subject, seed)
    n_observed = len(fitted.observed)
    X, states = simulate_sequence(draw, n_samples, n_observed, emission, seed, coming)
    return with_columns(X, fitted.given.columns, coming.columns), states


def context_transmat(fitted: FittedModel, context: object) -> Floats:
    """Transition probabilities of a context; see ``HCRPHMM.context_transmat``."""
    n_columns = fitted.given.n_transitions
    values = context if isinstance(context, tuple) else (context,)
    if not 0 < len(values) <= n_columns:
        raise ValueError(
            f"context={context!r} has {len(values)} values; the transitions depend "
            f"on {n_columns} columns of contexts (context_features)."
        )
    sequences, contexts = fitted.sequences, fitted.encoder.in_context(values)
    first = Sequences(sequences.codes[:1], sequences.starts[:1], contexts=contexts)
    model = frozen_model(fitted.selected, first, fitted.emission)
    return model.transition_matrix(0)[1]
