"""Parameters of the states of single draws."""

from __future__ import annotations

import math
from importlib import import_module
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils import Bunch

from skihmm._data.validation import (
    check_choice,
    check_integer,
    check_probability,
    draw_entropy,
    warn_caller,
)
from skihmm._draws import Draw
from skihmm._records import STAY_MEAN, STAY_PRECISION, hyperparameters_of
from skihmm._typing import Floats, Integers, MatrixLike, RandomState
from skihmm._using.dwell_times import DwellLaw
from skihmm._using.fitted import FittedEstimator, FittedModel, fitted_of
from skihmm._using.matching import NO_PATHS, places_of_states
from skihmm._using.partitions import repeated_draws
from skihmm._using.separation import note_of_separation
from skihmm._using.stays import (
    coefficients_of,
    has_inputs,
    in_user_units,
    stays_and_repeats,
)
from skihmm.core._franchise import draw_stays
from skihmm.core._random import RandomStream
from skihmm.transitions import BaseTransitions


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
            "Transition probabilities that depend on contexts are not drawn; expected "
            'method="mean".'
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
    transitions: BaseTransitions, coefficients: tuple[Floats, Floats] | None
) -> dict[str, Floats]:
    if coefficients is None:
        return {}
    slopes, intercepts = in_user_units(transitions, *coefficients)
    return {"stay_coefficients_": slopes, "stay_intercepts_": intercepts}


def draw_parameters(
    hmm: FittedEstimator,
    draw: tuple[int, int] | None = None,
    *,
    method: str = "mean",
    random_state: RandomState = None,
) -> Bunch:
    """Transition and emission probabilities of one posterior draw, as arrays.

    The samplers integrate out the parameters, so a draw determines a distribution of
    parameters given states and seating.  By default the function returns the means of this
    distribution.  An average of means over all draws is the posterior mean, but the spread
    of means leaves out the spread within a draw.  ``method="sample"`` has the spread within
    a draw too.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted.
    draw : tuple of two int, optional
        Chain and draw.  By default the selected draw, with ``startprob_`` and ``transmat_``
        of the estimator.
    method : {"mean", "sample"}, default="mean"
        "sample": parameters are drawn given states and seating.  ``emissionprob_`` are
        means in any case.
    random_state : int, RandomState instance or None, default=None
        Seed of "sample".  By default the `random_state` of the estimator.

    Returns
    -------
    parameters : sklearn.utils.Bunch
        ``startprob_`` of shape (n_states + 1,) and ``transmat_`` of shape (n_states + 1,
        n_states + 1), with the new state at the end, without a context.  ``emissionprob_``:
        for every column of symbols, in the order of X, an array of shape (n_states + 1,
        n_symbols) without a context.  Symbols have the order of ``emission_.categories_``,
        with unknown symbols at the end unless `handle_unknown` excludes unknown symbols.
        ``emission_``: for numbers, the emission with the parameters of the states in the
        draw, for example ``means_``.  ``states``: the path of the draw, or None.  If
        staying depends on inputs, ``transmat_`` belongs to a step with the mean inputs, and
        the bunch has ``stay_coefficients_`` and ``stay_intercepts_`` too.

    See Also
    --------
    parameter_intervals : Means and intervals over all draws.

    Notes
    -----
    Draws have different numbers of states, and labels of draws are not comparable.
    Therefore average quantities without labels, for example the parameters of the state of
    a step: ``p.emission_.means_[p.states]``.

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
    fitted, stream = fitted_of(hmm), None
    if check_choice("method", method, ("mean", "sample")) == "sample":
        entropy = draw_entropy(hmm.random_state if random_state is None else random_state)
        stream = RandomStream(np.random.SeedSequence(entropy))
    record = fitted.selected if draw is None else fitted.draws[draw]
    model = fitted.model_without_data(record)
    startprob, transmat = model.transition_matrix()
    coefficients = _stay_coefficients(record, stream)
    if stream is not None:
        startprob, transmat, _ = _drawn_transitions(record, stream, coefficients)
    predictives = model.predictives(fitted.without_context())
    order = fitted.emission.columns(len(fitted.observed)).order
    by_column = [np.asarray(predictives[i]) for i in np.argsort(order)]
    # Means of numbers have one dimension.
    tables = [probs for probs in by_column if probs.ndim == 2]
    return Bunch(
        **_by_stay_name(fitted.transitions, coefficients),
        startprob_=startprob,
        transmat_=transmat,
        emissionprob_=tables,
        emission_=fitted.emission.with_states(record.emission, record.n_states, stream),
        states=record.states,
    )


def _path_of(draw: Draw) -> Integers:
    assert draw.states is not None
    return draw.states


def sampled_parameters(
    fitted: FittedModel,
    n_samples: int,
    random_state: RandomState,
    inputs: Floats | None = None,
    with_dwell_times: bool = False,
) -> dict[str, Floats]:
    """Parameters from their posterior, by name: samples, states of the selected draw, ...

    All draws have samples, by their weights; their states are matched to the states of the selected
    draw, NaN without a match.  With standardised inputs of staying there are its probabilities too.
    """
    stream = RandomStream(np.random.SeedSequence(draw_entropy(random_state)))
    n = fitted.n_states
    found: dict[str, Floats] = {}
    if not fitted.draws.has_states:
        raise ValueError(NO_PATHS)
    draws, weights = fitted.draws.weighted(with_states=True)
    which = repeated_draws(weights, n_samples).tolist()
    places = {d: places_of_states(fitted.labels, _path_of(draws[d])) for d in {*which}}
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
        emission = fitted.emission.with_states(draw.emission, draw.n_states, stream)
        named = {name: each.values for name, each in emission.state_parameters.items()}
        named |= _by_stay_name(fitted.transitions, coefficients)
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


def mean_and_ends(samples: Floats, level: float = 0.95) -> Floats:
    """Means and ends of intervals of samples, in the first axis."""
    ends = np.nanquantile(samples, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return np.stack([np.nanmean(samples, axis=0), *ends])


def parameter_arrays(
    hmm: FittedEstimator,
    probability: float,
    n_samples: int = 1000,
    random_state: RandomState = None,
    inputs: MatrixLike | None = None,
) -> dict[str, Floats]:
    """Means and ends of intervals, by parameter; see :func:`parameter_intervals`."""
    fitted = fitted_of(hmm)
    level = check_probability("probability", probability)
    n_samples = check_integer("n_samples", n_samples, 2)
    intervals = {}
    rows = None if inputs is None else fitted.encoder.inputs_of_staying(inputs)
    seed = hmm.random_state if random_state is None else random_state
    samples_of = sampled_parameters(fitted, n_samples, seed, rows)
    for name, samples in samples_of.items():
        if not samples.size:
            continue  # coefficients of no inputs
        intervals[name] = mean_and_ends(samples, level)
    return intervals


def parameter_intervals(
    hmm: FittedEstimator,
    probability: float = 0.95,
    *,
    n_samples: int = 1000,
    random_state: RandomState = None,
    inputs: MatrixLike | None = None,
) -> Any:
    """Posterior means and intervals of the parameters of the states.

    Parameters are drawn under all draws. :func:`match_states` matches the states of every
    draw to the states of the selected draw.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted, with stored paths.
    probability : float, default=0.95
        Probability of the intervals.  Both tails are equal.
    n_samples : int, default=1000
        Number of values of every parameter.
    random_state : int, RandomState instance or None, default=None
        By default the `random_state` of the estimator.
    inputs : array-like of shape (n_rows, n_inputs), optional
        Inputs of staying (see :meth:`skihmm.HCRPHMM.stay_probabilities`).

    Returns
    -------
    intervals : pandas.DataFrame or dict
        With pandas a row for every number, with ``parameter``, ``state``, ``name``, such as
        ``"y by u"`` or ``"to state 2"``, ``mean``, ``lower`` and ``upper``, and ``place`` in
        the array of the state (a tuple); without pandas by parameter an array of shape (3,
        n_states, ...).  Parameters are ``transmat_`` and
        ``stayprob_``, the probability to be in the same state in the next step (without
        contexts only), and the parameters of an emission of numbers: ``means_``,
        ``covariances_``, ``coefficients_`` and ``intercepts_``.  If staying depends on
        inputs, ``stay_coefficients_`` and ``stay_intercepts_`` are parameters too, and
        ``transmat_`` and ``stayprob_`` belong to a step with the mean inputs.  With
        `inputs` the table has ``stay_probabilities``, with the row as the place.

    See Also
    --------
    skihmm.HCRPHMM.summary : Print means and intervals as a table.
    draw_parameters : Parameters of one draw.
    skihmm.inspection.EmissionDisplay : Draw the emissions of the states.

    Notes
    -----
    If data do not bound a coefficient of staying, the interval is the interval of the
    prior, and a warning names the coefficient.  Intervals of a state are meaningful if all
    draws have the state, so look at ``n_states_distribution`` first.  Angles are as in
    ``directions_``, without regard to the turn.

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
    fitted = fitted_of(hmm)
    if note := note_of_separation(fitted):
        warn_caller(note)
    try:
        pandas = import_module("pandas")
    except ImportError:
        return found
    rows = []
    for parameter, values in found.items():
        names = _names_of_places(fitted, parameter, values.shape[2:])
        rows += [
            (parameter, place[0], names[place[1:]], *values[:, *place], place[1:])
            for place in np.ndindex(values.shape[1:])
        ]
    columns = ["parameter", "state", "name", "mean", "lower", "upper", "place"]
    return pandas.DataFrame(rows, columns=columns)


def _names_of_places(
    fitted: FittedModel, parameter: str, shape: tuple[int, ...]
) -> dict[tuple[int, ...], str]:
    """Name of every number of a state's parameter: of columns, inputs, next states or rows."""
    if parameter == "transmat_":
        texts = [*(f"to state {k}" for k in range(shape[0] - 1)), "to a new state"]
        return {(k,): text for k, text in enumerate(texts)}
    if parameter == "stay_probabilities":
        return {(row,): f"row {row}" for row in range(shape[0])}
    if parameter == "stay_coefficients_":
        inputs = fitted.given.stay_columns.tolist()
        return {(i,): f"by {fitted.columns.labels[c]}" for i, c in enumerate(inputs)}
    columns = fitted.emission.columns(len(fitted.observed))
    labels = fitted.observed_labels[columns.order]
    names = {place: ", ".join(map(str, place)) for place in np.ndindex(shape)}
    for i, part in enumerate(fitted.emission.parts):
        attribute = parameter.removeprefix(part.prefix)
        known = part.emission.state_parameters.get(attribute)
        if known is None or part.prefix + attribute != parameter:
            continue
        own = list(map(str, labels[columns.part == i]))
        for place in names:
            if attribute == "coefficients_" and len(place) == 2:  # of lags; inputs follow
                lag, source = divmod(place[1], len(own))
                names[place] = f"{own[place[0] % len(own)]} by {own[source]} lag {lag + 1}"
            elif shape == (len(own),) * len(shape):
                names[place] = ", ".join(dict.fromkeys(own[c] for c in place))
        numbers = [n for n in known.numbers if isinstance(n.select, itemgetter)]
        places, order = list(names), np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
        for number in numbers:
            of = "" if number.column is None else f"{own[number.column]} "
            names[places[int(number.select(order))]] = of + number.word
    return names
