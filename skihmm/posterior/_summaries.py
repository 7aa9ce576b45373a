"""Co-assignment of steps, number of states, occupancies and dwell times."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.validation import check_probability, draw_entropy
from skihmm._draws import PosteriorDraws, narrow
from skihmm._typing import Array, Floats, RandomState
from skihmm._using.dwell_times import DwellLaw
from skihmm._using.matching import match_states
from skihmm._using.partitions import Partitions, check_path, draw_weights, state_paths

# Largest default matrix of coassignment, in steps: 200 MB.
MAX_STEPS = 5000

# Entries of the matrix that are counted together, so that they stay in the cache.
_BLOCK = 2**17


def coassignment(draws: PosteriorDraws | ArrayLike, steps: ArrayLike | None = None) -> Floats:
    """Posterior probability that two steps share a state, for pairs of steps.

    Parameters
    ----------
    draws : PosteriorDraws or array-like of shape (n_draws, n_samples)
        State paths.  Every chain has the weight of ``draws_.chain_weights``.
    steps : array-like of int, optional
        Indices of the steps, at most 5,000.  By default all steps.

    Returns
    -------
    similarity : ndarray of shape (n_steps, n_steps)
        Weighted proportions of the draws: a symmetric matrix with a diagonal of 1.

    See Also
    --------
    point_estimate : Partition from the probabilities of all pairs.

    Examples
    --------
    >>> from skihmm.posterior import coassignment
    >>> coassignment([[0, 0, 1], [1, 0, 0], [0, 0, 0], [2, 2, 1]])
    array([[1.  , 0.75, 0.25],
           [0.75, 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    weights = draw_weights(draws)
    paths, weights = state_paths(draws)[weights > 0], weights[weights > 0]
    n_samples = paths.shape[1]
    if steps is None:
        if n_samples > MAX_STEPS:
            raise ValueError(
                f"The matrix of all {n_samples} steps would take "
                f"{8 * n_samples**2 / 1e9:.1f} GB. Choose some with `steps`, such as "
                f"steps=np.linspace(0, {n_samples - 1}, 1000).astype(int)."
            )
    else:
        steps = np.asarray(steps)
        if steps.ndim != 1 or steps.dtype.kind not in "iu" or not len(steps):
            raise ValueError(
                f"steps has shape {steps.shape} and type {steps.dtype}; expected a list "
                "of indices of steps."
            )
        if steps.min() < -n_samples or steps.max() >= n_samples:
            raise ValueError(
                f"steps has values from {steps.min()} to {steps.max()}; expected indices "
                f"of {n_samples} steps."
            )
        paths = paths[:, steps]
    partitions = Partitions(paths, weights)
    labels = narrow(partitions.labels)  # small integers compare faster
    n_items = labels.shape[1]
    counts = np.bincount(partitions.which, weights)
    result = np.empty((n_items, n_items))
    height = max(1, _BLOCK // n_items)
    for start in range(0, n_items, height):
        rows, columns = slice(start, start + height), slice(start, None)
        together = np.zeros(result[rows, columns].shape)
        for path, count in zip(labels, counts, strict=True):
            equal = path[rows, None] == path[None, columns]
            together += equal if count == 1 else equal * count
        result[rows, columns] = together / weights.sum()
        result[columns, rows] = result[rows, columns].T
    return result[np.ix_(partitions.item, partitions.item)]


def n_states_distribution(draws: PosteriorDraws | ArrayLike) -> tuple[Array, Floats]:
    """Posterior distribution of the number of states.

    Parameters
    ----------
    draws : PosteriorDraws or array-like of shape (n_draws, n_samples)
        PosteriorDraws need no paths here.

    Returns
    -------
    values : ndarray of shape (n_values,), int
        Numbers of states, in increasing order.
    probabilities : ndarray of shape (n_values,)
        Weights of the draws, with the sum 1.

    See Also
    --------
    occupancy_bands : Sizes of the states.
    skihmm.HCRPHMM.find_regimes : Join states that are pieces of one regime.

    Examples
    --------
    >>> from skihmm.posterior import n_states_distribution
    >>> values, probabilities = n_states_distribution([[0, 0, 1], [2, 1, 0], [1, 1, 0]])
    >>> values, probabilities.round(2)
    (array([2, 3]), array([0.67, 0.33]))
    """
    if isinstance(draws, PosteriorDraws):
        n_states = np.concatenate([draws.n_states[c, :n] for c, n in enumerate(draws.n_draws)])
    else:
        n_states = np.array([len(np.unique(path)) for path in state_paths(draws)])
    weights = draw_weights(draws)
    n_states, weights = n_states[weights > 0], weights[weights > 0]
    values, which = np.unique(n_states, return_inverse=True)
    return values, np.bincount(which, weights) / weights.sum()


def occupancy_bands(
    draws: PosteriorDraws | ArrayLike, probability: float = 0.9
) -> tuple[Array, Array, Array]:
    """Credible bands of the occupancies of the largest state, the second largest, ...

    States are sorted by size in every draw, so entry k is the k-th largest occupancy, not
    the occupancy of a particular state.

    Parameters
    ----------
    draws : PosteriorDraws or array-like of shape (n_draws, n_samples)
        State paths.
    probability : float, default=0.9
        Least posterior probability of each band separately.  Each tail has at most half of
        the rest.

    Returns
    -------
    lower, median, upper : ndarray of shape (max_n_states,), int
        Numbers of steps.  States that a draw lacks have 0 steps.

    See Also
    --------
    n_states_distribution : Distribution of the number of states.
    dwell_time_bands : Bands of dwell times.

    Examples
    --------
    >>> from skihmm.posterior import occupancy_bands
    >>> lower, median, upper = occupancy_bands([[0, 0, 1, 1], [0, 1, 1, 1], [2, 2, 0, 1]])
    >>> lower, median, upper
    (array([2, 1, 0]), array([2, 1, 0]), array([3, 2, 1]))
    """
    levels = _levels(probability)
    weights = draw_weights(draws)
    sizes = [
        np.sort(np.unique(path, return_counts=True)[1])[::-1]
        for path in state_paths(draws)[weights > 0]
    ]
    occupancies = np.zeros((len(sizes), max(map(len, sizes))), dtype=np.intp)
    for row, size in zip(occupancies, sizes, strict=True):
        row[: len(size)] = size
    return quantiles(occupancies, weights[weights > 0], levels)


def _levels(probability: float) -> tuple[float, float, float]:
    """Levels of the quantiles of a band."""
    probability = check_probability("probability", probability)
    tail = (1 - probability) / 2
    return tail, 0.5, 1 - tail


def quantiles(
    values: Array, weights: Floats, levels: tuple[float, float, float]
) -> tuple[Array, Array, Array]:
    """Quantiles over the draws: observed values, such that at most a tail is beyond each.

    `values` has a row for every draw; NaN is left out, and columns of NaN give NaN.
    """
    order = np.argsort(values, axis=0, kind="stable")  # NaN last
    values = np.take_along_axis(values, order, axis=0)
    masses = np.where(np.isnan(values), 0.0, weights[order]).cumsum(axis=0)
    lower, median, upper = (
        values[(masses < level * masses[-1]).sum(axis=0), np.arange(values.shape[1])]
        for level in levels
    )
    return lower, median, upper


def dwell_time_bands(
    draws: PosteriorDraws,
    reference: ArrayLike,
    probability: float = 0.9,
    *,
    random_state: RandomState = None,
) -> tuple[Floats, Floats, Floats]:
    """Credible bands of the expected dwell time of every state of a path.

    The states of every draw are matched to the states of the path by :func:`match_states`.
    Given a draw, transition probabilities still have a distribution.  A sample from the
    distribution adds this uncertainty to the bands.

    Parameters
    ----------
    draws : PosteriorDraws
        Draws with paths.  If transitions depend on contexts, the bands belong to steps
        without a context.
    reference : array-like of shape (n_samples,)
        Path with the states of the bands, for example ``labels_`` of the fitted model.
    probability : float, default=0.9
        Posterior probability of each band separately.
    random_state : int, RandomState instance or None, default=None
        Seed of the probabilities.

    Returns
    -------
    lower, median, upper : ndarray of shape (n_states,)
        Steps, like ``dwell_times_``.  Draws without a matched state are left out.  NaN for
        a state without a match in any draw.

    See Also
    --------
    skihmm.inspection.DwellTimeDisplay : Draw dwell times.
    occupancy_bands : Bands of the sizes of states.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> from skihmm.posterior import dwell_time_bands
    >>> X = np.repeat([[0.0], [9.0]] * 10, 20, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> hmm = HCRPHMM("blocked", "gaussian", n_burnin=50, random_state=0).fit(X)
    >>> hmm.dwell_times_.round()
    array([20., 22.])
    >>> lower, median, upper = dwell_time_bands(hmm.draws_, hmm.labels_, random_state=0)
    >>> bool((lower < 20).all() and (upper > 20).all())
    True
    """
    levels = _levels(probability)
    if not isinstance(draws, PosteriorDraws):
        raise TypeError(
            f"draws is of type {type(draws).__name__}; expected PosteriorDraws, the "
            "`draws_` of a fitted model."
        )
    paths = state_paths(draws)[draws.weights() > 0]
    used, weights = draws.weighted(with_states=True)
    reference = check_path("reference", reference, paths.shape[1])
    generator = np.random.default_rng(draw_entropy(random_state))
    dwell_times = np.full((len(paths), reference.max() + 1), np.nan)
    for row, path, draw in zip(dwell_times, paths, used, strict=True):
        label = match_states(reference, path)[np.unique(path, return_index=True)[1]]
        is_matched = label < len(row)
        row[label[is_matched]] = DwellLaw.drawn(draw, generator).mean[is_matched]
    return quantiles(dwell_times, weights, levels)
