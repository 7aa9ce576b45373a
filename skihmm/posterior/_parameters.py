"""Parameters of the states of single draws."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skihmm._decoding import frozen_model
from skihmm._sequences import Sequences
from skihmm._typing import Array


def _without_context(hmm: BaseEstimator) -> Array | None:
    """Inputs of an emission with given columns, where contexts are missing."""
    emission, n_features = hmm.emission_, len(hmm._observed_columns)
    if not emission.n_given:
        return None
    row = np.full((1, n_features), np.nan)
    typical = np.array([emission.typical_given()], dtype=object)
    codes: Array = emission.encode(row, np.array([0]), given=typical)
    return codes[0, n_features:]


def draw_parameters(hmm: BaseEstimator, draw: tuple[int, int] | None = None) -> Bunch:
    """Transition and emission probabilities of one posterior draw, as arrays.

    They are integrated out by the samplers: what a draw determines is their distribution
    given its states and seating, and these are its means.  An average over all draws is
    the posterior mean, but the spread over draws leaves out that within a draw.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted.
    draw : tuple of two int, optional
        Chain and draw; by default the selected draw, with the estimator's ``startprob_``
        and ``transmat_``.

    Returns
    -------
    parameters : sklearn.utils.Bunch
        ``startprob_`` of shape (n_states + 1,) and ``transmat_`` of shape (n_states + 1,
        n_states + 1), with the new state at the end, without a context;
        ``emissionprob_``, for every column of symbols, in their order in X, an array of
        shape (n_states + 1, n_symbols), in the order of ``emission_.categories_`` and
        with any other symbol at the end unless `handle_unknown` excludes it, without a
        context; ``emission_``, the emission with the states' parameters in this draw, if
        they are of numbers, such as ``means_``; and ``states``, the path of the draw, or
        None.

    Notes
    -----
    Draws have different numbers of states, and their labels are not comparable.  So
    average what does not depend on labels, such as the parameters of the states of a
    step: ``p.emission_.means_[p.states]``.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.posterior import draw_parameters
    >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 20, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> draws = [draw_parameters(hmm, (0, d)) for d in range(10)]
    >>> level = np.mean([p.emission_.means_[p.states] for p in draws], axis=0)
    >>> level[[0, 79]].round().astype(int).ravel().tolist()
    [0, 9]
    """
    check_is_fitted(hmm)
    record = hmm._selected if draw is None else hmm.draws_[draw]
    sequences = hmm._fit_state.sequences
    first = Sequences(sequences.codes[:1], sequences.starts[:1])
    model = frozen_model(record, first, hmm.emission_)
    startprob, transmat = model.transition_matrix()
    predictives = model.predictives(_without_context(hmm))
    order = hmm.emission_.column_order(len(hmm._observed_columns))
    by_column = [np.asarray(predictives[i]) for i in np.argsort(order)]
    # Those of numbers have one dimension: their means.
    tables = [probs for probs in by_column if probs.ndim == 2]
    return Bunch(
        startprob_=startprob,
        transmat_=transmat,
        emissionprob_=tables,
        emission_=hmm.emission_.with_states(record.emission, record.n_states),
        states=record.states,
    )
