"""Registration of subjects in regressions: offsets of log rates or log odds, before any chain.

The linear predictor of a row of subject u in state k is ``x @ coefficients[k] + given + b[u]``, in
a small hidden Markov model that all subjects share.  As in _registration.py EM finds the best fit
near its start, and between iterations every subject moves by the difference of two states, if its
rows, with labels summed out, are more probable there.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from types import SimpleNamespace

import numpy as np
from scipy.special import gammaln

from skihmm._typing import Floats, Integers, Labels
from skihmm.core._log_subject_passes import BLOCK, MOST_STATES, RegressedPasses
from skihmm.core._random import RandomStream
from skihmm.core._registration import (
    ITERATIONS,
    MOST_SUBJECTS,
    MOVES,
    new_states,
    rows_of_subjects,
    search_states,
)
from skihmm.core._registration_passes import check_starts

# Rows of a subject that the search uses: decisions say less than counts.
MOST_COUNTS, MOST_DECISIONS = 300, 600
# Iterations of EM and those that moves follow: of new states, of those that are left when a state
# is taken out, and of N_SHORT short runs from random coefficients.  (Decisions that begin with
# fewer runs, or counts without moves, end with a state too many in one of six sets of data.)
NEW, PRUNED = (40, (5, 12, 20, 28)), (14, (0, 3, 7))
SHORT, N_SHORT, N_LONG = (12, (4, 8)), 6, 2
# Prior precision of coefficients, for inputs of variance one: of counts, of decisions.
OF_COUNTS, OF_DECISIONS = 0.1, 0.25
# Moves of subjects by all of their rows, if some were not used.  (100 subjects of 5,000 counts: by
# 300 rows of each some were a state away, root mean square error .24.)
MOVES_OF_ALL = 2
# Longest step of a coefficient, and of an offset, and of the logarithm of a dispersion.
LONGEST, LONGEST_DISPERSION = 1.5, 0.5
# The first iteration with new dispersions, counted from 0.
FIRST_DISPERSION = 2
# A place of a subject that is so many nats worse before updates is no rival afterwards.
NEAR_RIVAL = 30.0
# Updates of a place, and so many standard deviations given the labels from the best one it has to
# be then.  (After three updates, and at one deviation, it was often on its way there.)
SETTLING, FAR_RIVAL = 12, 3.0
# A change of the log density by less than this ends EM until the next move.
STALLED = 0.05
# Squared offsets of all subjects together that there are beside those that are found.
LEAST_SQUARES = 0.01


class _RegressedSubjects(RegressedPasses):
    """Subjects in a shared HMM of regressions: of each its rows, and whether they follow others.

    Rows are values, of which NaN is missing, inputs, and the logarithm of the exposure of counts
    or the number of trials, if there is one.
    """

    def __init__(self, pieces, links, n_columns, kind, is_stopped=None):
        self.is_counts = kind in ("counts", "exposed counts")
        self.prior, self.is_stopped = OF_COUNTS if self.is_counts else OF_DECISIONS, is_stopped
        lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        blocks = -(-lengths // BLOCK) * BLOCK
        self.first = first = np.append(0, blocks.cumsum())
        self.n_rows = int(lengths.sum())
        # Where rows are among those of all blocks.
        self.rows = np.concatenate(
            [
                begin + np.arange(n)
                for begin, n in zip(first[:-1].tolist(), lengths.tolist(), strict=True)
            ]
        )
        follows = np.concatenate(links).astype(bool)
        follows[lengths.cumsum()[:-1]] = False
        follows[0] = False
        begins = np.flatnonzero(~follows)
        ends = np.append(begins[1:], self.n_rows)
        begins, ends = self.rows[begins], self.rows[ends - 1] + 1
        owners = np.searchsorted(first, begins, side="right") - 1

        every = np.concatenate(pieces)
        values, inputs = every[:, :n_columns], every[:, n_columns:]
        has_given = kind in ("exposed counts", "trials")
        lacks = np.isnan(inputs).any(axis=1)[:, None]
        is_there = ~(np.isnan(values) | lacks)
        inputs = np.where(lacks, 0.0, inputs)
        given = inputs[:, -1:] if has_given else np.zeros((self.n_rows, 1))
        inputs = inputs[:, : inputs.shape[1] - has_given]
        y = np.where(is_there, values, 0.0)
        base = y if self.is_counts else is_there * (given if has_given else 1.0)
        offsets = np.where(is_there, given, 0.0) if self.is_counts else np.zeros_like(y)
        ones = np.ones((self.n_rows, 1))
        of_rows = [
            self._side_by_side(part)
            for part in (y, base, is_there, offsets, np.hstack([inputs, ones]))
        ]
        self.y, _, self.seen, self.given, self.x = of_rows
        self.set_rows(n_columns, *of_rows, first, begins, ends, owners)
        self.constants = [
            np.unique(y[is_there[:, c], c], return_counts=True) for c in range(n_columns)
        ]

    def _side_by_side(self, values):
        # (n_rows, n) to (n, number of rows of all blocks).
        out = np.zeros((values.shape[1], int(self.first[-1])))
        out[:, self.rows] = values.T
        return out

    def _log_r(self, r):
        return np.log(r) if self.is_counts else np.zeros_like(r)

    def expect(self, fit, offsets, with_sums=False):
        """Log likelihoods of subjects; smoothed probabilities and numbers of transitions."""
        return self.run_passes(fit, offsets, self._log_r(fit.r), with_sums)

    def _move_states(self, fit, c, smoothed):
        # A Newton step of the coefficients of column c.
        n_states, q = fit.coefficients.shape[1:]
        slopes, products = np.empty((n_states, q)), np.empty((n_states, q * (q + 1) // 2))
        self.sums_by_state(fit, self._log_r(fit.r), c, smoothed, slopes, products)
        curvatures = np.empty((n_states, q, q))
        i, j = np.tril_indices(q)
        curvatures[:, i, j] = curvatures[:, j, i] = products
        curvatures += self.prior * np.eye(q)
        slopes -= self.prior * (fit.coefficients[c] - fit.centres[c])
        steps = np.stack([_solved(H, G) for H, G in zip(curvatures, slopes, strict=True)])
        fit.coefficients[c] += np.clip(steps, -LONGEST, LONGEST)

    def _move_subjects(self, fit, c, smoothed):
        # The same of the offsets.
        first, second = self.sums_by_subject(fit, self._log_r(fit.r), c, smoothed)
        fit.precisions[:, c] = second + 1.0 / fit.variances[c]
        steps = first - fit.offsets[:, c] / fit.variances[c]
        fit.offsets[:, c] += np.clip(steps / fit.precisions[:, c], -LONGEST, LONGEST)

    def _log_likelihood(self, fit, c, smoothed, log_r):
        # Of column c, with this size, and the prior of the dispersion.
        fit = copy(fit)
        fit.r = fit.r.copy()
        fit.r[c] = r = np.exp(log_r)
        found = self.sum_of_likelihoods(fit, self._log_r(fit.r), c, smoothed)
        return found + self.log_constant(c, r) - 0.5 / r - 0.5 * log_r

    def log_constant(self, c, r):
        """What densities of counts have beside those of `expect`, but for factorials."""
        values, counts = self.constants[c]
        return counts @ (gammaln(values + r) - gammaln(r)) if self.is_counts else 0.0

    def _move_dispersion(self, fit, c, smoothed):
        # To the vertex of a parabola through three points.
        log_r, width = np.log(fit.r[c]), 0.5 * LONGEST_DISPERSION
        low, middle, high = (
            self._log_likelihood(fit, c, smoothed, log_r + move) for move in (-width, 0.0, width)
        )
        curve = low - 2.0 * middle + high
        step = 0.5 * width * (low - high) / curve if curve < 0 else np.inf * (high - low)
        step = np.clip(np.nan_to_num(step), -LONGEST_DISPERSION, LONGEST_DISPERSION)
        fit.r[c] = np.exp(np.clip(log_r + step, np.log(0.05), np.log(fit.most_r[c])))

    def update(self, fit, hold, iteration=0):
        """One iteration of EM; with `hold` subjects move, and the HMM stays as it is.

        It returns the log density before, up to a constant.
        """
        if self.is_stopped is not None and self.is_stopped():
            raise KeyboardInterrupt
        found, smoothed, pairs = self.expect(fit, fit.offsets, True)
        level = (
            found.sum()
            + sum(self.log_constant(c, r) for c, r in enumerate(fit.r))
            - 0.5 * (fit.offsets**2 / fit.variances + np.log(fit.variances)).sum()
        )
        for c in range(self.n_columns):
            for _ in range(2):
                if not hold:
                    self._move_states(fit, c, smoothed)
                self._move_subjects(fit, c, smoothed)
                if not hold:
                    _centre(fit)
            if self.is_counts and iteration >= FIRST_DISPERSION and not hold:
                self._move_dispersion(fit, c, smoothed)
        if not hold:
            pairs = pairs + 0.5 + 2.0 * np.eye(len(pairs))
            fit.transitions = pairs / pairs.sum(axis=1, keepdims=True)
            squares = (fit.offsets**2).sum(axis=0) + LEAST_SQUARES
            fit.variances = squares / (len(fit.offsets) + 1)
        return level

    def values_of_moves(self, fit):
        """Log densities of subjects at offsets that are moved, and these offsets."""
        intercepts = fit.coefficients[:, :, -1].T
        others = ~np.eye(len(intercepts), dtype=bool)
        moves = (intercepts[:, None] - intercepts)[others]
        moves = np.append(np.zeros((1, moves.shape[1])), moves, axis=0)
        places = fit.offsets + moves[:, None]
        values = [self.expect(fit, b) - (b**2 / (2.0 * fit.variances)).sum(axis=1) for b in places]
        return np.array(values), places

    def rivals(self, fit):
        """By how many nats the best place of every subject is better than the second one.

        Places are offsets that are moved by the difference of two states, after some updates;
        neighbours are one place.
        """
        fit = _copied(fit)
        values, places = self.values_of_moves(fit)
        tops = [values[0]]
        for move in range(1, len(values)):
            tops.append(np.full(len(tops[0]), -np.inf))
            if (values[move] < values[0] - NEAR_RIVAL).all():
                continue
            other = _copied(fit)
            other.offsets = places[move].copy()
            for _ in range(SETTLING):
                self.update(other, True)
            away = np.abs(other.offsets - fit.offsets) * np.sqrt(other.precisions)
            found = self.expect(other, other.offsets)
            found -= (other.offsets**2 / (2.0 * other.variances)).sum(axis=1)
            tops[move] = np.where((away > FAR_RIVAL).any(axis=1), found, -np.inf)
        return tops[0] - np.max([np.full(len(tops[0]), -np.inf), *tops[1:]], axis=0)

    def shift(self, fit, hold=False):
        """Every subject moves by the difference of two states, or stays, whichever is best."""
        values, places = self.values_of_moves(fit)
        fit.offsets = places[np.argmax(values, axis=0), np.arange(len(fit.offsets))]
        if not hold:
            _centre(fit)

    def run(self, fit, n_iterations, shifts):
        """Run EM from a fit; the new one has an objective.

        That is the log likelihood with labels summed out and offsets integrated about their
        modes, less the penalty of BIC.  Iterations that would change little are left out, up to
        the next one that a move follows.
        """
        fit, i, before = _copied(fit), 0, -np.inf
        while i < n_iterations:
            level = self.update(fit, False, i)
            is_stalled = i > FIRST_DISPERSION and abs(level - before) < STALLED
            before = level
            if i in shifts and len(fit.transitions) > 1:
                self.shift(fit)
                before = -np.inf
            i += 1
            if is_stalled and i not in shifts:
                i = min([n for n in shifts if n > i], default=n_iterations)
        n_columns, n_states, q = fit.coefficients.shape
        fit.objective = (
            self.expect(fit, fit.offsets).sum()
            + sum(self.log_constant(c, r) for c, r in enumerate(fit.r))
            - 0.5 * (fit.offsets**2 / fit.variances + np.log(fit.variances * fit.precisions)).sum()
            - 0.5 * n_states * (q * n_columns + n_states - 1) * np.log(self.n_rows)
        )
        return fit


def _solved(matrix, right):
    # Without LAPACK, which rounds differently on every processor.
    A, x = matrix.copy(), right.copy()
    n = len(x)
    for i in range(n):
        factors = A[i + 1 :, i] / A[i, i]
        A[i + 1 :] -= factors[:, None] * A[i]
        x[i + 1 :] -= factors * x[i]
    for i in reversed(range(n)):
        x[i] = (x[i] - (A[i, i + 1 :] * x[i + 1 :]).sum()) / A[i, i]
    return x


def _centre(fit):
    # Offsets sum to zero; linear predictors stay, because the intercepts move too.
    move = fit.offsets.mean(axis=0)
    fit.offsets -= move
    fit.coefficients[:, :, -1] += move[:, None]


def _copied(fit):
    return SimpleNamespace(**{name: np.array(value) for name, value in vars(fit).items()})


def _without(fit, state):
    others = np.arange(len(fit.transitions)) != state
    transitions = fit.transitions[np.ix_(others, others)]
    fit = copy(fit)
    fit.coefficients = np.ascontiguousarray(fit.coefficients[:, others])
    fit.transitions = transitions / transitions.sum(axis=1, keepdims=True)
    return fit


class _Starts:
    """First fits of K states, and the best ones of these after EM."""

    def __init__(self, subjects, generator):
        self.subjects, self.generator = subjects, generator
        n, d = len(subjects.first) - 1, subjects.n_columns
        q = subjects.x.shape[0]
        self.centres, self.most_r = np.zeros((d, q)), np.ones(d)
        self.none, self.r = np.zeros((n, d)), np.zeros(d)
        self.one = None

    def fit_of(self, coefficients, offsets, extra):
        n_states = coefficients.shape[1]
        transitions = np.full((n_states, n_states), 0.1 / max(n_states - 1, 1))
        np.fill_diagonal(transitions, 0.9 if n_states > 1 else 1.0)
        return SimpleNamespace(
            coefficients=np.ascontiguousarray(coefficients),
            offsets=offsets,
            r=self.r,
            most_r=self.most_r,
            centres=self.centres,
            transitions=transitions,
            precisions=np.ones_like(offsets),
            objective=0.0,
            variances=(offsets**2).mean(axis=0) + extra,
        )


class _CountStarts(_Starts):
    """From clusters of logarithms, less first offsets of the subjects."""

    def __init__(self, subjects, generator):
        super().__init__(subjects, generator)
        rows, first = subjects.rows, subjects.first
        y, seen, given = (part[:, rows].T for part in (subjects.y, subjects.seen, subjects.given))
        self.who = np.searchsorted(first, rows, side="right") - 1
        n = len(first) - 1

        def sums(values):
            return np.stack([np.bincount(self.who, part, n) for part in values.T], axis=1)

        counts = np.maximum(sums(seen), 1.0)
        exposures = np.maximum(sums(seen * np.exp(given)), 1e-300)
        means = np.log((sums(y) + 0.5) / (exposures * (1.0 + 0.5 / counts)))
        self.logs = np.where(seen > 0, np.log(y + 0.5) - given, np.nan)
        medians = means.copy()
        for u in range(n):
            for c in np.flatnonzero(sums(seen)[u] > 0).tolist():
                medians[u, c] = np.nanmedian(self.logs[self.who == u, c])
        self.tries = [part - part.mean(axis=0) for part in (means, medians, 0.0 * means)]
        self.centres[:, -1] = means.mean(axis=0)
        # A missing value is where clusters are not told apart.
        self.logs = np.where(np.isnan(self.logs), means[self.who], self.logs)
        mean = y.sum(axis=0) / np.maximum(seen.sum(axis=0), 1.0)
        self.most_r, self.r = np.maximum(100.0 * mean, 100.0), np.full(len(mean), 10.0)

    def best_of(self, n_states, best):
        fits = []
        for b in self.tries[: None if n_states > 1 else 1]:
            means = new_states(
                n_states, self.logs, self.who, b, np.ones_like(b), self.generator
            ).means
            coefficients = np.zeros((len(self.r), n_states, self.subjects.x.shape[0]))
            coefficients[:, :, -1] = means.T
            fits.append(self.subjects.run(self.fit_of(coefficients, b, 0.1), *NEW))
        return max(fits, key=lambda fit: fit.objective)


class _DecisionStarts(_Starts):
    """From coefficients about those of one state, or from a state in two."""

    def best_of(self, n_states, best):
        d, q, normal = self.subjects.n_columns, self.subjects.x.shape[0], self.generator.normal
        if n_states == 1:
            start = self.fit_of(np.zeros((d, 1, q)), self.none, 1.0)
            self.one = self.subjects.run(start, *NEW)
            return self.one
        short = []
        for i in range(N_SHORT):
            if i % 3 == 2 and len(best.transitions) == n_states - 1:
                k = int(self.generator.integers(n_states - 1))
                coefficients = np.append(best.coefficients, best.coefficients[:, [k]], axis=1)
                coefficients += normal(0.0, 0.3, coefficients.shape)
                coefficients[:, [k, -1]] += normal(0.0, 0.7, (d, 2, q))
                offsets = best.offsets
            else:
                coefficients = self.one.coefficients + normal(0.0, 1.0, (d, n_states, q))
                offsets = self.none if i % 3 else self.one.offsets
            short.append(self.subjects.run(self.fit_of(coefficients, offsets, 0.3), *SHORT))
        short.sort(key=lambda fit: -fit.objective)
        fits = [self.subjects.run(fit, *NEW) for fit in short[:N_LONG]]
        return max(fits, key=lambda fit: fit.objective)


def _of_all_rows(every, starts, who, offsets, best, kind, n_columns, is_stopped, moves):
    # The most probable state of every row; offsets move by all rows.
    stops = np.append(starts[1:], len(every))
    order = np.argsort(who[starts], kind="stable")
    rows = np.concatenate([np.arange(starts[i], stops[i]) for i in order.tolist()])
    links = np.ones(len(every), dtype=bool)
    links[starts] = False
    counts = np.bincount(who[starts], stops - starts, len(offsets)).astype(np.int64)
    used = np.flatnonzero(counts)
    ends = counts[used].cumsum()[:-1]
    subjects = _RegressedSubjects(
        np.split(every[rows], ends), np.split(links[rows], ends), n_columns, kind, is_stopped
    )
    fit = copy(best)
    fit.offsets = offsets[used]
    fit.precisions = np.ones_like(fit.offsets)
    for _ in range(moves):
        subjects.shift(fit, True)
        for _ in range(ITERATIONS):
            subjects.update(fit, True)
    offsets[used] = fit.offsets
    smoothed = subjects.expect(best, fit.offsets, True)[1]
    path = np.empty(len(every), dtype=np.int32)
    path[rows] = smoothed[:, subjects.rows].argmax(axis=0)
    return path


def rivals_of_subjects(
    values: Floats,
    inputs: Floats,
    starts: Integers | list[int],
    subjects: Integers,
    path: Labels,
    fit: SimpleNamespace,
    *,
    kind: str,
) -> Floats:
    """By how many nats the offset of every subject is better than another one, a state away.

    Parameters
    ----------
    values, inputs, starts, subjects, kind : object
        See :func:`register_log_subjects`.
    path : ndarray of shape (n_rows,), int
        States of rows.
    fit : SimpleNamespace
        Of the states ``coefficients`` of shape (n_columns, n_states, n_inputs + 1), of the subjects
        ``offsets``, and by column ``variances`` of these and sizes ``r``.

    Returns
    -------
    nats : ndarray of shape (n_subjects,)
        Of the most frequent states; infinite of subjects without values, beyond the first ones, or
        without another offset.
    """
    starts, subjects, n_columns = np.asarray(starts), np.asarray(subjects), values.shape[1]
    states = np.argsort(-np.bincount(path, minlength=fit.coefficients.shape[1]), kind="stable")
    states = np.sort(states[:MOST_STATES])
    nats, fit = np.full(len(fit.offsets), np.inf), copy(fit)
    codes, pieces, links = _rows_of_log_subjects(values, inputs, starts, subjects, kind)
    if len(states) < 2 or not codes:
        return nats
    place = np.searchsorted(states, path)
    is_kept = np.isin(path, states)
    follows = np.ones(len(path), dtype=bool)
    follows[starts] = False
    pairs = np.flatnonzero(follows & is_kept & np.append(False, is_kept[:-1]))
    counts = 0.5 + 2.0 * np.eye(len(states))
    np.add.at(counts, (place[pairs - 1], place[pairs]), 1.0)
    codes = np.array(codes[:MOST_SUBJECTS])
    fit.transitions = counts / counts.sum(axis=1, keepdims=True)
    fit.coefficients = np.ascontiguousarray(fit.coefficients[:, states])
    fit.offsets = np.ascontiguousarray(fit.offsets[codes])
    fit.precisions = np.ones_like(fit.offsets)
    some = _RegressedSubjects(pieces[: len(codes)], links[: len(codes)], n_columns, kind)
    nats[codes] = some.rivals(fit)
    return nats


def _rows_of_log_subjects(values, inputs, starts, subjects, kind):
    # Codes of subjects, some rows of each, and whether these follow others; NaN is missing.
    n_columns, is_counts = values.shape[1], kind in ("counts", "exposed counts")
    lacks = np.isnan(inputs).any(axis=1)[:, None]
    every = np.hstack([np.where(lacks, np.nan, values), inputs])
    # Rows without a value say nothing; others have missing entries as these numbers for a while.
    is_seen = ~np.isnan(every[:, :n_columns]).all(axis=1)
    seen = np.where(is_seen[:, None], np.where(np.isnan(every), 1e300, every), np.nan)
    found = rows_of_subjects(seen, starts, subjects, MOST_COUNTS if is_counts else MOST_DECISIONS)
    codes, pieces, links = zip(*found, strict=True) if found else ((), (), ())
    return codes, [np.where(piece == 1e300, np.nan, piece) for piece in pieces], links


def register_log_subjects(
    values: Floats,
    inputs: Floats,
    starts: Integers | list[int],
    subjects: Integers,
    stream: RandomStream,
    *,
    kind: str,
    is_stopped: Callable[[], bool] | None = None,
) -> tuple[Floats, Labels | None]:
    """Find offsets of subjects that share the states of a hidden Markov model of regressions.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns), float64
        NaN is missing.
    inputs : ndarray of shape (n_rows, n_inputs), float64
        Standardised, without the intercept; with the logarithm of the exposure or the number of
        trials as the last one of these kinds.
    starts : ndarray of int
        First rows of sequences.
    subjects : ndarray of shape (n_rows,), int
        Code of the subject of every row, from 0 on; one for all rows of a sequence.
    stream : RandomStream
        For initial states.
    kind : {"counts", "exposed counts", "decisions", "trials"}
        Counts are negative binomial, with one dispersion of a column.
    is_stopped : callable, optional
        Without arguments; KeyboardInterrupt is raised once it returns True.

    Returns
    -------
    offsets : ndarray of shape (n_subjects, n_columns)
        They sum to zero over subjects.  Zero for subjects without values.
    path : ndarray of shape (n_rows,), int32, or None
        Most probable states of rows; None for one subject.
    """
    check_starts(starts, len(values))
    starts, subjects = np.asarray(starts), np.asarray(subjects)
    n_columns, is_counts = values.shape[1], kind in ("counts", "exposed counts")
    offsets = np.zeros((int(np.max(subjects)) + 1, n_columns))
    codes, pieces, links = _rows_of_log_subjects(values, inputs, starts, subjects, kind)
    if len(codes) < 2:
        return offsets, None
    n = MOST_SUBJECTS
    some = _RegressedSubjects(pieces[:n], links[:n], n_columns, kind, is_stopped)
    make = _CountStarts if is_counts else _DecisionStarts
    begin = make(some, stream.generator)

    def fit_without(fit: SimpleNamespace, state: int) -> SimpleNamespace:
        return some.run(_without(fit, state), *PRUNED)

    best = search_states(begin.best_of, fit_without, MOST_STATES)
    parts = [best.offsets]
    for first in range(n, len(codes), n):
        others = slice(first, first + n)
        some = _RegressedSubjects(pieces[others], links[others], n_columns, kind, is_stopped)
        fit = _copied(best)
        fit.offsets = np.zeros((len(pieces[others]), n_columns))
        fit.precisions = np.ones_like(fit.offsets)
        for _ in range(MOVES):
            some.shift(fit, True)
            for _ in range(ITERATIONS):
                some.update(fit, True)
        parts.append(fit.offsets)
    codes = np.array(codes)
    offsets[codes] = np.concatenate(parts)
    # Other rows of a subject may be of states that these have not shown.
    n_used = sum(len(piece) for piece in pieces)
    moves = MOVES_OF_ALL if n_used < (~np.isnan(values).all(axis=1)).sum() else 0
    path = _of_all_rows(
        np.hstack([values, inputs]),
        starts,
        subjects,
        offsets,
        best,
        kind,
        n_columns,
        is_stopped,
        moves,
    )
    offsets[codes] -= offsets[codes].mean(axis=0)
    return offsets, path
