"""Parameters of the states of single draws."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from skihmm._data.sequences import Sequences
from skihmm._data.validation import (
    check_choice,
    check_integer,
    check_probability,
    draw_entropy,
    warn_caller,
)
from skihmm._draws import Draw
from skihmm._records import STAY_MEAN, STAY_PRECISION, hyperparameters_of
from skihmm._typing import Array, Floats, MatrixLike, RandomState
from skihmm._using.decoding import frozen_model
from skihmm._using.dwell_times import DwellLaw
from skihmm._using.stays import (
    coefficients_of,
    has_inputs,
    in_user_units,
    note_of_separation,
    stays_and_repeats,
)
from skihmm.core._franchise import draw_stays
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._encoding import encode
from skihmm.emissions._given import n_given, typical_given
from skihmm.emissions._parts import column_order
from skihmm.posterior._matching import NO_PATHS, places_of_states
from skihmm.posterior._partitions import repeated_draws

# Arrays of emissions of numbers.
STATE_PARAMETERS = (
    "means_",
    "covariances_",
    "coefficients_",
    "intercepts_",
    "rates_",
    "probabilities_",
    "directions_",
)


def model_without_data(hmm: BaseEstimator, draw: Draw) -> FrozenModel:
    """Model of a draw over one row of the fit, for quantities that do not depend on data."""
    sequences = hmm._fit_state.sequences
    first = Sequences(sequences.codes[:1], sequences.starts[:1])
    return frozen_model(draw, first, hmm.emission_)


def missing_row(hmm: BaseEstimator, context: object = None) -> Array:
    """One encoded row without observations, in a context of the emission, by default none."""
    given = hmm._fit_state.given
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
    columns[0, given.of_emission] = typical_given(hmm.emission_)
    columns[0, places[: len(values)]] = values
    row = np.full((1, len(hmm._observed_columns)), np.nan)
    return encode(hmm.emission_, row, np.array([0]), given=given.emission(columns))


def without_context(hmm: BaseEstimator) -> Array | None:
    """Inputs of an emission with given columns, where contexts are missing."""
    n_features = len(hmm._observed_columns)
    return missing_row(hmm)[0, n_features:] if n_given(hmm.emission_) else None


def _has_one_matrix(record: Draw) -> bool:
    return "contexts" not in record.transitions


def _drawn_transitions(
    record: Draw, stream: RandomStream, coefficients: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats, Floats]:
    """Start and transition probabilities, drawn given the seating of a draw.

    The last array has the probabilities that a state which is left is drawn again.  The
    coefficients of staying are for standardised inputs, if it depends on inputs.
    """
    table = record.transitions
    if not _has_one_matrix(record):
        raise ValueError(
            "Transition probabilities that depend on contexts "
            'are not drawn; expected method="mean".'
        )
    n, generator = record.n_states, stream.generator
    values = hyperparameters_of(table)
    # The start is the last row, without customers of a new state.
    counts = np.zeros((n + 2, n + 1))
    rows = np.where(table["rows"] == n, n + 1, table["rows"])
    np.add.at(counts, (rows, table["dishes"]), table["n_customers"])
    n_tables = np.bincount(table["dishes"], weights=table["n_tables"], minlength=n)
    base = generator.dirichlet([*n_tables, values["gamma"]])
    # Logarithms, because gamma variables of small shapes may all be zero.
    shapes = np.maximum(counts + values["alpha"] * base, 1e-200)
    logs = np.log(generator.standard_gamma(shapes + 1))
    logs += np.log1p(-generator.random(shapes.shape)) / shapes
    probs = softmax(logs, axis=1)
    startprob, transmat = probs[-1], probs[:-1]
    repeats = np.diagonal(transmat)[:n]
    if coefficients is None:
        stay = draw_stays(record.arrays, stream)
    else:
        # With the mean inputs.
        noise = generator.standard_normal() / np.sqrt(values[STAY_PRECISION])
        stay = expit(np.append(coefficients[1], values[STAY_MEAN] + noise))
    transmat = stay[:, None] * np.eye(n + 1) + (1 - stay[:, None]) * transmat
    return startprob, transmat, repeats


def _stay_coefficients(record: Draw, stream: RandomStream | None) -> tuple[Floats, Floats] | None:
    """Coefficients and intercepts of staying, drawn or means, if it depends on inputs."""
    if not has_inputs(record):
        return None
    return coefficients_of(record, None if stream is None else stream.generator)


def _by_stay_name(
    hmm: BaseEstimator, coefficients: tuple[Floats, Floats] | None
) -> dict[str, Floats]:
    if coefficients is None:
        return {}
    slopes, intercepts = in_user_units(hmm.transitions_, *coefficients)
    return {"stay_coefficients_": slopes, "stay_intercepts_": intercepts}


def draw_parameters(
    hmm: BaseEstimator,
    draw: tuple[int, int] | None = None,
    *,
    method: str = "mean",
    random_state: RandomState = None,
) -> Bunch:
    """Transition and emission probabilities of one posterior draw, as arrays.

    They are integrated out by the samplers: what a draw determines is their distribution
    given its states and seating.  By default these are its means.  An average over all
    draws is the posterior mean, but the spread over draws leaves out that within a draw,
    which ``method="sample"`` has.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted.
    draw : tuple of two int, optional
        Chain and draw; by default the selected draw, with the estimator's ``startprob_``
        and ``transmat_``.
    method : {"mean", "sample"}, default="mean"
        "sample": parameters are drawn from their distribution given states and seating.
        ``emissionprob_`` are means in any case.
    random_state : int, RandomState instance or None, default=None
        Seed of "sample"; None uses the estimator's `random_state`.

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
        None.  If staying depends on inputs, ``transmat_`` is that of a step with the mean
        ones, and there are ``stay_coefficients_`` and ``stay_intercepts_``, as attributes
        of the estimator.

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
    stream = None
    if check_choice("method", method, ("mean", "sample")) == "sample":
        entropy = draw_entropy(hmm.random_state if random_state is None else random_state)
        stream = RandomStream(np.random.SeedSequence(entropy))
    record = hmm._selected if draw is None else hmm.draws_[draw]
    model = model_without_data(hmm, record)
    startprob, transmat = model.transition_matrix()
    coefficients = _stay_coefficients(record, stream)
    if stream is not None:
        startprob, transmat, _ = _drawn_transitions(record, stream, coefficients)
    predictives = model.predictives(without_context(hmm))
    order = column_order(hmm.emission_, len(hmm._observed_columns))
    by_column = [np.asarray(predictives[i]) for i in np.argsort(order)]
    # Means of numbers have one dimension.
    tables = [probs for probs in by_column if probs.ndim == 2]
    return Bunch(
        **_by_stay_name(hmm, coefficients),
        startprob_=startprob,
        transmat_=transmat,
        emissionprob_=tables,
        emission_=hmm.emission_.with_states(record.emission, record.n_states, stream),
        states=record.states,
    )


def _by_name(emission: BaseEmission, prefix: str = "") -> Iterator[tuple[str, Floats]]:
    """Attributes of the states of an emission with drawn parameters, by name."""
    for name, part, _ in getattr(emission, "emissions_", ()):
        yield from _by_name(part, f"{prefix}{name}__")
    for name in STATE_PARAMETERS:
        if hasattr(emission, name):
            yield prefix + name, getattr(emission, name)


def sampled_parameters(
    hmm: BaseEstimator,
    n_samples: int,
    random_state: RandomState = None,
    inputs: Floats | None = None,
    with_dwell_times: bool = False,
) -> dict[str, Floats]:
    """Parameters from their posterior, by name: samples, states of the selected draw, ...

    All draws have samples, by their weights; their states are matched to the states of the selected
    draw, NaN without a match.  With standardised inputs of staying there are its probabilities too.
    """
    entropy = draw_entropy(hmm.random_state if random_state is None else random_state)
    stream = RandomStream(np.random.SeedSequence(entropy))
    n = hmm.n_states_
    found: dict[str, Floats] = {}
    if not hmm.draws_.has_states:
        raise ValueError(NO_PATHS)
    draws, weights = hmm.draws_.weighted(with_states=True)
    which = repeated_draws(weights, n_samples).tolist()
    places = {d: places_of_states(hmm.labels_, draws[d].states) for d in {*which}}
    for i, d in enumerate(which):
        draw, place = draws[d], places[d]
        known = np.flatnonzero(place < n)
        rows = place[known]
        values = {}
        coefficients = _stay_coefficients(draw, stream)
        if _has_one_matrix(draw):
            transmat = np.zeros((n, n + 1))
            _, of_states, repeats = _drawn_transitions(draw, stream, coefficients)
            np.add.at(transmat, (rows[:, None], place), of_states[known])
            values = {"transmat_": transmat[rows], "stayprob_": transmat[rows, rows]}
        emission = hmm.emission_.with_states(draw.emission, draw.n_states, stream)
        named = dict(_by_name(emission)) | _by_stay_name(hmm, coefficients)
        if coefficients is not None and inputs is not None:
            if not _has_one_matrix(draw):
                _, repeats = stays_and_repeats(draw, inputs[:0])
            stays = expit(coefficients[0] @ inputs.T + coefficients[1][:, None])
            named["stay_probabilities"] = stays + (1 - stays) * repeats[:, None]
        if with_dwell_times:
            named["dwell_times_"] = DwellLaw.drawn(draw, stream.generator).mean
        values |= {name: each[known] for name, each in named.items()}
        for name, each in values.items():
            shape = (n_samples, n, *each.shape[1:])
            found.setdefault(name, np.full(shape, np.nan))[i, rows] = each
    return found


def parameter_arrays(
    hmm: BaseEstimator,
    probability: float,
    n_samples: int = 1000,
    random_state: RandomState = None,
    inputs: MatrixLike | None = None,
) -> dict[str, Floats]:
    """Means and ends of intervals, by parameter; see :func:`parameter_intervals`."""
    check_is_fitted(hmm)
    level = check_probability("probability", probability)
    n_samples = check_integer("n_samples", n_samples, 2)
    intervals = {}
    rows = None if inputs is None else hmm._encoder.inputs_of_staying(inputs)
    samples_of = sampled_parameters(hmm, n_samples, random_state, rows)
    for name, samples in samples_of.items():
        if not samples.size:
            continue  # coefficients of no inputs
        ends = np.nanquantile(samples, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        intervals[name] = np.stack([np.nanmean(samples, axis=0), *ends])
    return intervals


def parameter_intervals(
    hmm: BaseEstimator,
    probability: float = 0.95,
    *,
    n_samples: int = 1000,
    random_state: RandomState = None,
    inputs: MatrixLike | None = None,
) -> Any:
    """Posterior means and intervals of the parameters of the states.

    Parameters are drawn under all draws, whose states are matched to those of the
    selected one by :func:`match_states`.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted, with stored paths.
    probability : float, default=0.95
        Of the intervals, between quantiles with equal probability beyond.
    n_samples : int, default=1000
        Number of values of every parameter.
    random_state : int, RandomState instance or None, default=None
        None uses the estimator's `random_state`.
    inputs : array-like of shape (n_rows, n_inputs), optional
        Of staying, as of :meth:`HCRPHMM.stay_probabilities`.

    Returns
    -------
    intervals : pandas.DataFrame or dict
        With pandas a row for every number, with ``parameter``, ``state``, ``place`` in
        the array of the state (a tuple), ``mean``, ``lower`` and ``upper``; without
        pandas by parameter an array of shape (3, n_states, ...).  Parameters are
        ``transmat_`` and ``stayprob_``, the probability to be in the same state in the
        next step (unless they depend on contexts, or states have several stages), and
        those of an emission of numbers, such as ``means_``, ``covariances_``,
        ``coefficients_`` and ``intercepts_``; if staying depends on inputs,
        ``stay_coefficients_`` and ``stay_intercepts_``, and the former ones are those of
        a step with the mean inputs.  With `inputs` there are ``stay_probabilities``, and
        their place is the row.

    Notes
    -----
    A warning names coefficients of staying that data do not bound: their intervals are
    those of the prior.  The intervals are those of a state as far as it is in all draws:
    where draws have different states, look at ``n_states_distribution`` first.  Angles
    are as in ``directions_``, without regard to the turn.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.posterior import parameter_intervals
    >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 20, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> intervals = parameter_intervals(hmm)
    >>> is_mean = intervals["parameter"] == "means_"
    >>> intervals[is_mean & (intervals["state"] == 0)]["lower"].round(1).tolist()
    [-0.2]
    """
    found = parameter_arrays(hmm, probability, n_samples, random_state, inputs)
    if note := note_of_separation(hmm):
        warn_caller(note)
    try:
        pandas = import_module("pandas")
    except ImportError:
        return found
    rows = [
        (name, place[0], place[1:], *values[:, *place])
        for name, values in found.items()
        for place in np.ndindex(values.shape[1:])
    ]
    names = ["parameter", "state", "place", "mean", "lower", "upper"]
    return pandas.DataFrame(rows, columns=names)
