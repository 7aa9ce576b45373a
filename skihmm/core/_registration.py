"""Registration of subjects: offsets and scales of their rows, before any chain.

Value c of a row of subject u is ``b[u, c] + s[u, c] * x``, where x is of a small hidden Markov
model with diagonal Gaussians that all subjects share.  EM alone leaves subjects a state away from
where they belong, with labels to suit.  So from time to time every subject moves to where its
rows, with labels summed out, are most probable.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from types import SimpleNamespace

import numpy as np

from skihmm._typing import Flags, Floats, Integers
from skihmm.core._random import RandomStream
from skihmm.core._registration_passes import LANES, MOST_STATES, check_starts, run_passes

# Rows of a subject, and subjects, that the search uses, and rows that k-means uses.
MOST_ROWS, MOST_SUBJECTS, MOST_CLUSTERED = 300, 40, 2000
# Iterations of EM, those that shifts follow, and the first with scales, counted from 0: of new
# states, and of those that are left when a state is taken out.  With scales from the fourth
# iteration on 3 of 46 searches in three columns missed a state.
NEW, PRUNED = (40, (5, 12, 20, 28), 22), (14, (0, 3, 7), 0)
# Other subjects move so many times, with so many iterations after each.  (One move leaves some
# subjects a state away that are found here.)
MOVES, ITERATIONS = 4, 3
# Two numbers of states in a row that are so many nats below the best so far end the search.  (One
# is often a local maximum: in one set of data with scales 2 of 3 searches ended too early.)
FAR_BELOW = 50.0
# Times the usual variance that a subject has whose unit is another.
OTHER_UNIT = 100.0
# Variance of a column, in variances within subjects, above which its levels hide the states.
HIDES_STATES = 10.0
# Units beyond which a level is only moved back: sums of squares would lose the digits of states.
FAR_LEVEL = 100.0


def _side_by_side(values):
    # (n_subjects, ...) to (n_groups, ..., LANES), and zeros for missing subjects.
    filled = np.zeros(((len(values) + LANES - 1) // LANES, LANES, *values.shape[1:]))
    filled.reshape(-1, *values.shape[1:])[: len(values)] = values
    return np.ascontiguousarray(np.moveaxis(filled, 1, -1))


class _Registration:
    """Subjects in a shared HMM: of each its rows, and whether they follow the row before.

    NaN is missing.
    """

    def __init__(self, pieces, links, scale, is_stopped=None):
        self.n_rows, self.scale = np.array([len(piece) for piece in pieces]), scale
        self.is_stopped = is_stopped
        shape = len(pieces), self.n_rows.max()
        values = np.full((*shape, pieces[0].shape[1]), np.nan)
        follows = np.zeros(shape)
        for u in range(len(pieces)):
            values[u, : self.n_rows[u]], follows[u, : self.n_rows[u]] = pieces[u], links[u]
        is_there = ~np.isnan(values)
        self.counts = is_there.sum(axis=1)
        self.lanes = [
            _side_by_side(part) for part in (np.where(is_there, values, 0.0), is_there, follows)
        ]
        self.n_steps = np.maximum.reduceat(self.n_rows, np.arange(0, shape[0], LANES))

    def expect(self, fit, offsets, with_sums=False):
        # Log likelihoods of subjects; counts and sums by subject and state, transitions.
        inverse = np.sqrt(0.5 / fit.variances)
        scales = _side_by_side(inverse / fit.scales[:, None])
        centres = _side_by_side(inverse * ((offsets / fit.scales)[:, None] + fit.means))
        heights = -0.5 * np.log(2.0 * np.pi * fit.variances)
        results = run_passes(
            self.lanes, self.n_steps, scales, centres, heights, fit.transitions, with_sums
        )
        results = [
            np.moveaxis(part, -1, 1).reshape(-1, *part.shape[1:-1])[: len(self.n_rows)]
            for part in results
        ]
        return results if with_sums else results[0]

    def update(self, fit, hold, with_scales):
        # One iteration of EM; with `hold` subjects move, and the HMM stays as it is.
        if self.is_stopped is not None and self.is_stopped():
            raise KeyboardInterrupt
        _, n, sums, squares, pairs = self.expect(fit, fit.offsets, True)
        n_k = n.sum(axis=0)
        for _ in range(3):
            s = fit.scales[:, None]
            if not hold:
                rest = (sums - n * fit.offsets[:, None]) / s
                fit.means = rest.sum(axis=0) / (n_k + 1e-6)
            weights = 1.0 / (fit.variances * s * s)
            fit.precisions = (n * weights).sum(axis=1) + 1.0 / fit.offset_variances
            fit.offsets = ((sums - n * s * fit.means) * weights).sum(axis=1) / fit.precisions
            if not hold:
                _centre(fit)
        b = fit.offsets[:, None]
        squares = squares - b * (2.0 * sums - n * b)
        sums = sums - n * b
        if not hold:
            rest = squares / s**2 - fit.means * (2.0 * sums / s - n * fit.means)
            fit.variances = (rest.sum(axis=0) + 0.04) / (n_k + 2.0)
            pairs = pairs.sum(axis=0) + 0.5 + 2.0 * np.eye(len(n_k))
            fit.transitions = pairs / pairs.sum(axis=1, keepdims=True)
        if with_scales:
            # The mode given labels; the prior weighs as so many rows at one.
            prior = 1.0 / fit.scale_variances
            n_u = n.sum(axis=1) + prior
            a = (squares / fit.variances).sum(axis=1) + prior
            h = (sums * fit.means / fit.variances).sum(axis=1)
            fit.scales = (np.sqrt(h * h + 4.0 * n_u * a) - h) / (2.0 * n_u)
            if not hold:
                middle = _geometric_mean(fit.scales)
                fit.scales = fit.scales / middle
                fit.means, fit.variances = fit.means * middle, fit.variances * middle**2
                squares = np.log(fit.scales) ** 2
                fit.scale_variances = (squares.sum(axis=0) + 0.02) / (len(squares) + 1)
        if not hold:
            squares = fit.offsets**2
            fit.offset_variances = (squares.sum(axis=0) + 1e-3) / (len(squares) + 1)

    def shift(self, fit, hold=False):
        # Every subject moves by the difference of two states, or stays, whichever is best.
        moves = (fit.means[:, None] - fit.means)[~np.eye(len(fit.means), dtype=bool)]
        moves = np.append(np.zeros((1, moves.shape[1])), moves, axis=0)
        places = fit.offsets + fit.scales * moves[:, None]
        values = [
            self.expect(fit, b) - (b**2 / (2.0 * fit.offset_variances)).sum(axis=1) for b in places
        ]
        fit.offsets = places[np.argmax(values, axis=0), np.arange(len(fit.offsets))]
        if not hold:
            _centre(fit)

    def run(self, fit, n_iterations, shifts, first_scales):
        # A new fit, after EM, and its objective: log likelihood with labels summed out and
        # offsets and scales integrated about their modes, less the penalty of BIC.
        fit = copy(fit)
        for i in range(n_iterations):
            self.update(fit, False, self.scale and i >= first_scales)
            if i in shifts and len(fit.means) > 1:
                self.shift(fit)
        n_states, n_columns = fit.means.shape
        fit.objective = (
            self.expect(fit, fit.offsets).sum()
            - 0.5
            * (
                fit.offsets**2 / fit.offset_variances
                + np.log(fit.offset_variances * fit.precisions)
            ).sum()
            - 0.5 * n_states * (2 * n_columns + n_states - 1) * np.log(self.n_rows.sum())
        )
        if self.scale:
            logs, n = np.log(fit.scales), self.counts
            fit.objective -= (
                n * logs
                + 0.5 * logs**2 / fit.scale_variances
                + 0.5 * np.log(2.0 * n * fit.scale_variances + (n == 0))
            ).sum()
        return fit


def _geometric_mean(values):
    return np.exp(np.log(values).mean(axis=0))


def _sums(is_in, x):
    # Without BLAS, which rounds differently on every processor.
    return np.einsum("tk,tc->kc", is_in, x)


def _centre(fit):
    # Offsets sum to zero; densities of rows stay, because the means move too.
    move = fit.offsets.sum(axis=0) / fit.scales.sum(axis=0)
    fit.offsets = fit.offsets - fit.scales * move
    fit.means = fit.means + move


def new_states(
    n_states: int,
    rows: Floats,
    who: Integers,
    offsets: Floats,
    scales: Floats,
    generator: np.random.Generator,
) -> SimpleNamespace:
    # States by k-means++ of some rows without these offsets and scales.
    chosen = generator.permutation(len(rows))[:MOST_CLUSTERED]
    x = np.nan_to_num((rows[chosen] - offsets[who[chosen]]) / scales[who[chosen]])

    def squares(means):
        return ((x[:, None] - means) ** 2).sum(axis=2)

    means = x[:1]
    for _ in range(n_states - 1):
        weights = squares(means).min(axis=1).cumsum()
        place = np.searchsorted(weights, generator.random() * weights.max(), side="right")
        means = np.append(means, x[[min(place, len(x) - 1)]], axis=0)
    for _ in range(10):
        is_in = squares(means).argmin(axis=1)[:, None] == np.arange(n_states)
        counts = is_in.sum(axis=0)[:, None]
        means = np.where(counts, _sums(is_in, x) / np.maximum(counts, 1), means)
    variances = _sums(is_in, x**2) / np.maximum(counts, 1) - means**2
    transitions = np.full((n_states, n_states), 0.1 / max(n_states - 1, 1))
    np.fill_diagonal(transitions, 0.9 if n_states > 1 else 1.0)
    return SimpleNamespace(
        means=means,
        variances=np.where(counts, np.maximum(variances, 0.0) + 0.05, 1.0),
        transitions=transitions,
        offsets=offsets,
        scales=scales,
        offset_variances=(offsets**2).mean(axis=0) + 0.3,
        scale_variances=np.full(x.shape[1], 0.09),
    )


def _without(fit, state):
    fit, others = copy(fit), np.arange(len(fit.means)) != state
    fit.means, fit.variances = fit.means[others], fit.variances[others]
    transitions = fit.transitions[np.ix_(others, others)]
    fit.transitions = transitions / transitions.sum(axis=1, keepdims=True)
    return fit


def search_states(
    new_fit: Callable[[int, SimpleNamespace], SimpleNamespace],
    fit_without: Callable[[SimpleNamespace, int], SimpleNamespace],
    most_states: int,
) -> SimpleNamespace:
    """Best fit of a shared HMM, whose states come one by one, and then leave.

    ``new_fit(n_states, best)`` has so many states and may begin with the best fit of fewer,
    ``fit_without(fit, state)`` goes on without a state.
    """
    best, n_states, n_worse = SimpleNamespace(objective=-np.inf), 0, 0
    while n_states < most_states and n_worse < 2:
        n_states += 1
        new = new_fit(n_states, best)
        n_worse = n_worse + 1 if new.objective < best.objective - FAR_BELOW else 0
        best = max(best, new, key=lambda fit: fit.objective)
    full = None
    while full is not best and len(best.transitions) > 1:
        full = best
        fits = [fit_without(full, k) for k in range(len(full.transitions))]
        best = max(full, *fits, key=lambda fit: fit.objective)
    return best


def rows_of_subjects(
    values: Floats, starts: Integers, subjects: Integers, most_rows: int
) -> list[tuple[int, Floats, Flags]]:
    # For every subject with a value its code, rows with one, at most most_rows, from its longest
    # sequences, and whether each follows the one before.  Subjects with most rows come first,
    # then those with lower first rows: codes make no difference.
    is_seen = np.asarray(~np.isnan(values).all(axis=1))
    lengths = np.add.reduceat(is_seen, starts, dtype=np.int64)
    stops = np.append(starts[1:], len(values))
    who = subjects[starts]
    n_rows = np.bincount(who, lengths)
    taken: dict[int, list[Integers]] = {u: [] for u in np.flatnonzero(n_rows).tolist()}
    left = dict.fromkeys(taken, most_rows)
    order = np.lexsort((-lengths, who))
    for i in order[lengths[order] > 0].tolist():
        u = who[i].item()
        if left[u] > 0:
            rows = starts[i] + np.flatnonzero(is_seen[starts[i] : stops[i]])[: left[u]]
            left[u] -= len(rows)
            taken[u].append(rows)
    found = [
        (
            u,
            values[np.concatenate(pieces)],
            np.concatenate([np.arange(len(rows)) > 0 for rows in pieces]),
        )
        for u, pieces in taken.items()
    ]
    return sorted(found, key=lambda one: (-n_rows[one[0]], np.nan_to_num(one[1][0]).tolist()))


def _levels(pieces):
    # Numbers of values by subject and column, means, and mean squared deviations; a column that
    # a subject lacks has the mean level, and none.
    counts = np.array([(~np.isnan(piece)).sum(axis=0) for piece in pieces])
    means = np.array([np.nansum(piece, axis=0) for piece in pieces]) / np.maximum(counts, 1)
    usual = means.sum(axis=0) / np.maximum((counts > 0).sum(axis=0), 1)
    means = np.where(counts > 0, means, usual)
    squares = [
        np.nansum((piece - mean) ** 2, axis=0) for piece, mean in zip(pieces, means, strict=True)
    ]
    return counts, means, np.array(squares) / np.maximum(counts, 1)


def _units(pieces, squares):
    # Standard deviations of the columns, from their mean squared deviations.  If levels hide the
    # states, as a far subject does, it is within subjects, without subjects in another unit.
    counts, _, within = _levels(pieces)
    squares = squares.copy()
    for c, (n, variances) in enumerate(zip(counts.T, within.T, strict=True)):
        if (variances > 0.0).any():
            largest = OTHER_UNIT * np.median(variances[variances > 0.0])
            weights = n * (variances <= largest)
            usual = (weights * variances).sum() / weights.sum()
            squares[c] = usual if squares[c] > HIDES_STATES * usual else squares[c]
    squares[squares == 0.0] = 1.0
    return np.sqrt(squares)


def _beyond(pieces, most):
    # By how much the medians of subjects are more than `most` from the median of all.
    medians = np.full((len(pieces), len(most)), np.nan)
    for u in range(len(pieces)):
        for c in np.flatnonzero(~np.isnan(pieces[u]).all(axis=0)).tolist():
            medians[u, c] = np.nanmedian(pieces[u][:, c])
    centred = medians - np.nanmedian(medians, axis=0)
    return np.nan_to_num(centred - np.clip(centred, -most, most))


def register_subjects(
    values: Floats,
    starts: Integers | list[int],
    subjects: Integers,
    stream: RandomStream,
    *,
    scale: bool = False,
    is_stopped: Callable[[], bool] | None = None,
) -> tuple[Floats, Floats, int]:
    """Find offsets, and scales, of subjects that share the states of a hidden Markov model.

    Small HMMs with independent Gaussian columns are fitted to some rows of all subjects by EM.
    Between iterations subjects move by differences of states.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns), float64
        NaN is missing.
    starts : ndarray of int
        First rows of sequences.
    subjects : ndarray of shape (n_rows,), int
        Code of the subject of every row, from 0 on; one for all rows of a sequence.
    stream : RandomStream
        For initial clusters.
    scale : bool, default=False
        Find scales too.
    is_stopped : callable, optional
        Without arguments; KeyboardInterrupt is raised once it returns True.

    Returns
    -------
    offsets : ndarray of shape (n_subjects, n_columns)
        In units of the columns; they sum to zero over subjects.  Zero for subjects without
        values.
    scales : ndarray of shape (n_subjects, n_columns)
        Positive factors, with geometric mean one over subjects.  One for subjects without
        values.
    n_states : int
        Number of states of the best HMM.
    """
    check_starts(starts, len(values))
    offsets = np.zeros((int(np.max(subjects)) + 1, values.shape[1]))
    scales = np.ones_like(offsets)
    found = rows_of_subjects(values, np.asarray(starts), subjects, MOST_ROWS)
    if len(found) < 2:
        return offsets, scales, 1
    codes = np.array([u for u, _, _ in found])
    pieces, links = [rows for _, rows, _ in found], [follows for _, _, follows in found]
    _, _, (squares,) = _levels([np.concatenate(pieces)])
    units = _units(pieces, squares)
    far = _beyond(pieces, FAR_LEVEL * units)
    rows = np.concatenate([piece - move for piece, move in zip(pieces, far, strict=True)])
    _, (centre,), _ = _levels([rows])
    rows = (rows - centre) / units
    lengths = np.array([len(piece) for piece in pieces])
    pieces = np.split(rows, lengths.cumsum()[:-1])
    counts, means, spreads = _levels(pieces)
    spreads = np.sqrt(spreads)
    # Columns that are constant within subjects say nothing of states.
    levels = units * means + far
    offsets[codes] = levels - levels.mean(axis=0)
    used = np.flatnonzero(spreads.max(axis=0) > 1e-9)
    if not used.size:
        return offsets, scales, 1
    pieces, rows, means = [piece[:, used] for piece in pieces], rows[:, used], means[:, used]
    medians = np.array(
        [
            np.nanmedian(np.append(piece, [np.where(n > 0, np.nan, mean)], axis=0), axis=0)
            for piece, n, mean in zip(
                pieces[:MOST_SUBJECTS],
                counts[:MOST_SUBJECTS, used],
                means[:MOST_SUBJECTS],
                strict=True,
            )
        ]
    )
    # As if there were one more row, one unit off: no spread is zero.
    n = counts[:, used]
    spreads = np.sqrt((n * spreads[:, used] ** 2 + 1.0) / (n + 1.0))
    if not scale:
        spreads = np.ones_like(means)

    n = min(len(codes), MOST_SUBJECTS)
    who = np.repeat(np.arange(n), lengths[:n])
    registration = _Registration(pieces[:n], links[:n], scale, is_stopped)
    b, s = means[:n], spreads[:n] / _geometric_mean(spreads[:n])
    tries = [
        (b - b.mean(axis=0), s),
        (medians - medians.mean(axis=0), s),
        (np.zeros_like(b), np.ones_like(s)),
    ]

    def new_fit(n_states: int, _: SimpleNamespace) -> SimpleNamespace:
        fits = [
            registration.run(
                new_states(n_states, rows[: len(who)], who, b, s, stream.generator), *NEW
            )
            for b, s in tries[: None if n_states > 1 else 1]
        ]
        return max(fits, key=lambda fit: fit.objective)

    def fit_without(fit: SimpleNamespace, state: int) -> SimpleNamespace:
        return registration.run(_without(fit, state), *PRUNED)

    best = search_states(new_fit, fit_without, MOST_STATES)
    # Other subjects begin with the level and the spread of these.
    level = ((means[:n] - best.offsets) / best.scales).mean(axis=0)
    spread = _geometric_mean(spreads[:n] / best.scales)
    parts = [(best.offsets, best.scales)]
    for first in range(n, len(codes), MOST_SUBJECTS):
        others = slice(first, first + MOST_SUBJECTS)
        registration = _Registration(pieces[others], links[others], scale, is_stopped)
        fit = copy(best)
        fit.scales = spreads[others] / spread
        fit.offsets = means[others] - fit.scales * level
        for _ in range(MOVES):
            registration.shift(fit, True)
            for _ in range(ITERATIONS):
                registration.update(fit, True, scale)
        parts.append((fit.offsets, fit.scales))
    b, s = (np.concatenate(part) for part in zip(*parts, strict=True))
    s /= _geometric_mean(s)
    # A scale is about zero, not about the mean of the rows.
    b = b * units[used] + (1.0 - s) * centre[used] + far[:, used]
    offsets[codes[:, None], used] = b - s * (b.sum(axis=0) / s.sum(axis=0))
    scales[codes[:, None], used] = s
    return offsets, scales, len(best.means)
