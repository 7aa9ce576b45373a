"""Visits of states: whether states differ, and come back at any time and in any sequence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from skihmm._typing import Array, Flags, Floats, Integers
from skihmm.posterior._segments import borders_of

# States with a smaller share of the steps are not large.
LARGE_STATE = 0.01
# Visits whose distances are compared, deals of their states, and fewest visits that tell anything.
# (600 of 1,500 change kappa by less than .01.)
_MOST_VISITS, _N_DEALS, _LEAST_VISITS = 600, 99, 8
# A state of few parts of the rows is in so large a share of them.
_FEW_PARTS = 0.4
# Ordinates of a periodogram near another one, the first that is sought, and the fewest rows.
_N_NEAR, _FIRST_ORDINATE, _LEAST_ROWS = 20, 5, 200
# Lags from which repeats are sought, and how often they occur at least; their share beyond chance,
# and how far it rises from the least before; rows that are looked at, least share of known pairs.
_LEAST_LAG, _N_REPEATS, _LEAST_REPEAT, _LEAST_RISE = 11, 20, 0.2, 0.3
_MOST_ROWS, _LEAST_KNOWN = 20_000, 0.05
# Mean length of visits from which their variance is compared with that of a chain.
_LEAST_DWELL = 3.0
# Divergences below which two states overlap, and below which they are near, nats a row.
OVERLAP, _NEAR = 1.0, 2.0
# Small states, and mean lengths of visits of states that never last.
_SMALL_STATE, _LONE_DWELL = 0.05, 1.5


def large_states(path: Integers) -> Integers:
    """States with a hundredth of the steps or more."""
    return np.flatnonzero(np.bincount(path) >= LARGE_STATE * len(path))


def sequence_of_rows(starts: Integers, n_rows: int) -> Integers:
    """Number of the sequence of every row."""
    return np.searchsorted(starts, np.arange(n_rows), side="right") - 1


class Visits(NamedTuple):
    """First rows, numbers of rows and states of the visits of a path."""

    first: Integers
    lengths: Integers
    states: Integers

    @classmethod
    def of_path(cls, path: Integers, starts: Integers) -> Visits:
        borders = borders_of(path, starts)
        return cls(borders[:-1], np.diff(borders), path[borders[:-1]])


class Recurrence(NamedTuple):
    """How much nearer visits of one state lie than any visits.

    Attributes
    ----------
    kappa : float
        1 - (mean distance of two visits of a state) / (of any two visits), states weighted by
        their steps.
    z : float
        Its standard deviations beyond deals of the states to the visits.
    n_large, n_few : int
        Large states, and those among them in at most .4 of the parts of the rows.
    """

    kappa: float = 0.0
    z: float = 0.0
    n_large: int = 0
    n_few: int = 0


def recurrence(path: Integers, starts: Integers, groups: Integers | None = None) -> Recurrence:
    """Recurrence of large states in groups of rows, or, without groups, in time.

    The distance of two visits is whether they lie in two groups, or the rows between them.  In
    right chains neighbours in time are visits of other states, so that kappa is negative there.
    """
    parts: Integers = np.arange(len(path)) * 10 // len(path)
    if groups is not None and groups.max() >= 3:
        parts = groups
    large = large_states(path)
    table: Flags = np.zeros((int(parts.max()) + 1, int(path.max()) + 1), dtype=np.bool_)
    table[parts, path] = True
    n_few = int((table[:, large].mean(axis=0) <= _FEW_PARTS).sum())
    first, lengths, states = Visits.of_path(path, starts)
    kept = np.flatnonzero(np.isin(states, large))
    if len(kept) < _LEAST_VISITS:
        return Recurrence()
    if len(kept) > _MOST_VISITS:
        kept = kept[np.linspace(0, len(kept) - 1, _MOST_VISITS).astype(int)]
    first, lengths, states = first[kept], lengths[kept], states[kept]
    at = (first + lengths / 2)[:, None] if groups is None else groups[first][:, None]
    distances = np.abs(at - at.T) if groups is None else (at != at.T).astype(np.float64)
    weights = np.bincount(states, lengths)
    n_pairs = np.bincount(states) * (np.bincount(states) - 1)
    is_known = n_pairs > 0
    base = distances.sum() / (len(kept) * (len(kept) - 1))
    if base == 0 or not is_known.any():
        return Recurrence()
    weights, n_pairs = weights[is_known], n_pairs[is_known]

    def mean_distance(states: Integers) -> float:
        members = np.eye(len(is_known))[states][:, is_known]
        sums = (members * (distances @ members)).sum(axis=0)
        return float(weights @ (sums / n_pairs) / weights.sum())

    rng = np.random.default_rng(0)
    deals = np.array([mean_distance(rng.permutation(states)) for _ in range(_N_DEALS)])
    own = mean_distance(states)
    z = (deals.mean() - own) / max(deals.std(), 1e-12)
    return Recurrence(1 - own / base, float(z), len(large), n_few)


def alternation(path: Integers) -> float:
    """Share of the rows whose state is that of two rows before, but not of one row before."""
    return float(((path[2:] == path[:-2]) & (path[2:] != path[1:-1])).mean())


def spread_of_dwell(path: Integers, starts: Integers) -> tuple[float, int]:
    """Variance of complete visits over that of a chain's, and the number of these visits."""
    first, lengths, states = Visits.of_path(path, starts)
    ends = np.append(starts[1:], len(path))
    is_complete = ~np.isin(first, starts) & ~np.isin(first + lengths, ends)
    total, n = 0.0, 0
    for state in np.unique(states):
        own = lengths[is_complete & (states == state)]
        if len(own) >= _LEAST_VISITS and own.mean() > _LEAST_DWELL:
            total += len(own) * own.var(ddof=1) / (own.mean() * (own.mean() - 1))
            n += len(own)
    return (total / n if n else np.nan), n


def strongest_period(values: Floats, starts: Integers) -> tuple[float, float]:
    """Largest ordinate of a periodogram over the mean of those near it, and its period.

    Of the longest sequence; 0 of short ones.
    """
    values = _longest(values, starts)
    is_known = np.isfinite(values)
    if len(values) < _LEAST_ROWS or is_known.sum() < _LEAST_ROWS or np.ptp(values[is_known]) == 0:
        return 0.0, 0.0
    power = np.abs(np.fft.rfft(np.where(is_known, values - values[is_known].mean(), 0.0))) ** 2
    power[0], last = 0.0, len(power) - 1
    sums = np.cumsum(np.append(0.0, power))
    best = 0.0, 0.0
    for k in np.argsort(-power[_FIRST_ORDINATE:last])[:8] + _FIRST_ORDINATE:
        a, e = max(1, k - _N_NEAR), min(last, k + _N_NEAR + 1)
        near = (sums[e] - sums[a] - power[k - 1 : k + 2].sum()) / max(e - a - 3, 1)
        if near > 0:
            best = max(best, (float(power[k] / near), len(values) / float(k)))
    return best


def _longest(values: Array, starts: Integers) -> Array:
    """Rows of the longest sequence."""
    stops = np.append(starts[1:], len(values))
    i = int((stops - starts).argmax())
    return values[starts[i] : stops[i]]


def _smallest_peak(r: Floats) -> tuple[int, float]:
    """Smallest lag of nearly the highest peak that rises from a low, and its height; or (0, 0).

    Rows that repeat after a few rows, such as rows of sources in turn, have no shape.
    """
    lags = np.arange(2, len(r) - 1)
    lowest = np.minimum.accumulate(r)[lags - 1]
    is_peak = (r[lags] > r[lags - 1]) & (r[lags] >= r[lags + 1])
    is_clear = is_peak & (r[lags] >= _LEAST_REPEAT) & (r[lags] - lowest >= _LEAST_RISE)
    if not is_clear.any():
        return 0, 0.0
    first = int(lags[is_peak & (r[lags] >= 0.9 * r[lags[is_clear]].max())][0])
    # Noise makes peaks beside the peak.
    lag = first + int(r[first : first + first // 10 + 1].argmax())
    return (lag, float(r[lag])) if lag >= _LEAST_LAG else (0, 0.0)


def repeat_of_path(path: Integers, starts: Integers) -> tuple[int, float]:
    """Lag at which states repeat, and the share of repeats beyond chance, 1 of all rows.

    Of the longest sequence; (0, 0) if they do not.
    """
    path = _longest(path, starts)[:_MOST_ROWS]
    shares = np.bincount(path) / max(len(path), 1)
    chance = float(shares @ shares)
    if len(path) < _LEAST_ROWS or chance == 1:
        return 0, 0.0
    is_state = (path[:, None] == np.flatnonzero(shares)).astype(np.float32)
    return _smallest_peak((_products(is_state) - chance) / (1 - chance))


def repeat_of_values(values: Floats, starts: Integers) -> tuple[int, float]:
    """Lag at which values repeat, and their autocorrelation; (0, 0) if they do not."""
    values = _longest(values, starts)[:_MOST_ROWS]
    is_known = np.isfinite(values)
    if is_known.sum() < _LEAST_ROWS or np.ptp(values[is_known]) == 0:
        return 0, 0.0
    centred = np.where(is_known, values - values[is_known].mean(), 0.0)
    products, known = (_products(rows[:, None]) for rows in (centred, is_known.astype(float)))
    covariances = products / np.maximum(known, _LEAST_KNOWN)
    return _smallest_peak(covariances / covariances[0])


def _products(values: Floats) -> Floats:
    """Mean products of rows with rows so many before, summed over columns."""
    n = len(values)
    power = (np.abs(np.fft.rfft(values, 2 * n, axis=0)) ** 2).sum(axis=1)
    n_lags = n // _N_REPEATS
    return np.fft.irfft(power)[:n_lags] / np.arange(n, n - n_lags, -1)


def lone_rows(path: Integers, starts: Integers) -> tuple[Integers, int, float]:
    """Rows and number of small states that never last, and the share that go back at once."""
    states = Visits.of_path(path, starts).states
    sizes, n_visits = np.bincount(path), np.bincount(states)
    is_lone = (sizes > 0) & (sizes <= _SMALL_STATE * len(path))
    is_lone &= sizes < _LONE_DWELL * n_visits
    inner = np.flatnonzero(is_lone[states[1:-1]]) + 1
    back = float((states[inner - 1] == states[inner + 1]).mean()) if len(inner) else 0.0
    return np.flatnonzero(is_lone[path]), int(is_lone.sum()), back


class Overlap(NamedTuple):
    """How well values tell large states of two regimes apart.

    Attributes
    ----------
    nearest : ndarray of shape (n_large,)
        Divergence of every large state from the nearest one, nats a row, infinite without one.
    pair : (int, int)
        The nearest two states.
    error : float
        Standard error of their divergence.
    n_chained : int
        States in chains of states that are near one after the other, and whose ends are not.
        Copies of a state, which are all near, are no chain: a right fit may have a state twice.
    """

    nearest: Floats
    pair: tuple[int, int] = (0, 0)
    error: float = 0.0
    n_chained: int = 0


def overlap(terms: Floats, path: Integers, regimes: Integers) -> Overlap:
    """Overlap of the states of a path, from log densities of all rows in all states.

    The symmetric Kullback-Leibler divergence.  Pieces of something that moves touch each other,
    real states do not: of 250 right fits five had a pair below one nat, each with spurious states.
    """
    sizes = np.bincount(path, minlength=terms.shape[1])
    large = np.flatnonzero(sizes >= max(LARGE_STATE * len(path), 10))
    if len(large) < 2:
        return Overlap(np.full(len(large), np.inf))
    terms = np.maximum(terms[:, large], -1e6)
    means = np.array([terms[path == state].mean(axis=0) for state in large])
    divergences = means.diagonal()[:, None] - means + means.diagonal() - means.T
    regime = np.array([np.bincount(regimes[path == state]).argmax() for state in large])
    divergences[regime[:, None] == regime] = np.inf
    i, j = np.unravel_index(int(divergences.argmin()), divergences.shape)
    one, other = terms[path == large[i]], terms[path == large[j]]
    gains = one[:, i] - one[:, j], other[:, j] - other[:, i]
    error = float(np.sqrt(sum(gain.var() / len(gain) for gain in gains)))
    pair = int(large[i]), int(large[j])
    return Overlap(divergences.min(axis=1), pair, error, _chained(divergences < _NEAR))


def _chained(is_edge: Flags) -> int:
    """Nodes in components of a graph that are no cliques."""
    _, component = connected_components(is_edge, directed=False)
    sizes, edges = np.bincount(component), np.bincount(component, is_edge.sum(axis=1))
    return int(sizes[edges < sizes * (sizes - 1)].sum())
