"""Posterior predictive distribution of future observations."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.sequences import Sequences
from skihmm._data.validation import (
    as_matrix,
    check_column_names,
    check_finite,
    check_integer,
    draw_entropy,
    unify_frame,
    unmask,
)
from skihmm._draws import Draw
from skihmm._texts import html_table, percent
from skihmm._typing import Array, Cdf, Floats, Labels, MatrixLike, RandomState
from skihmm._using.decoding import (
    around,
    choose,
    frozen_model,
    inputs_after,
    mean_values,
    symbol_limits,
    walk_ahead,
)
from skihmm._using.given_steps import GivenSteps
from skihmm._using.imputation import N_WALKS, choose_draws
from skihmm._using.time_to import WithEntryTimes
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions import BaseEmission
from skihmm.emissions._columns import symbol_names
from skihmm.emissions._encoding import with_inputs
from skihmm.emissions._given import encode_given, n_given
from skihmm.emissions._parts import (
    looks_back,
    missing_values,
)

# Steps of a table, and of forecasts that have a table.
_MOST_STEPS, _MOST_WITH_TABLE = 12, 100


class PosteriorPredictive(WithEntryTimes):
    """Distribution of the observations that follow a sequence, given all of it.

    :meth:`skihmm.HCRPHMM.predict_next` returns one.  It is the mixture of all posterior
    draws by their weights.  A draw, with a fixed seating, is a mixture over its states
    and the new state.

    Parameters
    ----------
    draws : sequence of Draw
    sequences : Sequences
        Encoded observations, which the predicted steps follow.
    emission : BaseEmission
        Fitted.
    n_steps : int
        Steps to predict.
    random_state : int, RandomState instance or None, default=None
        Default of :meth:`sample`.
    feature_names : array-like of shape (n_features,), optional
        Names of the columns of the data.
    coming : GivenSteps, optional
        Given columns of the predicted steps.  By default none are known.
    weights : ndarray of shape (n_draws,), optional
        Weights of the draws, positive and of any sum.  By default equal.
    messages : sequence of ndarray, optional
        For every draw the summary of the rows that the first sequence continues.
    matching : callable, optional
        Matches states for :meth:`time_to`: from labels of the training steps, or None for
        the labels of the selected draw, to the label of every state of every draw, and of
        a new state.

    Attributes
    ----------
    n_steps : int
        Number of predicted steps.
    n_features : int
        Number of columns of the data.
    n_draws : int
        Number of posterior draws.

    See Also
    --------
    skihmm.HCRPHMM.predict_next : Make the forecast of a sequence.
    TimeTo : Number of steps until a state is entered.
    skihmm.inspection.ForecastDisplay : Draw a forecast.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM
    >>> X = np.tile([[2], [5], [7]], (40, 1))
    >>> hmm = HCRPHMM(n_burnin=100, n_draws=20, random_state=0).fit(X)
    >>> following = hmm.predict_next(X, n_steps=4)
    >>> following
    <PosteriorPredictive: 4 steps, 20 draws>
    >>> hmm.emission_.categories_[0][following.proba()[:, :-1].argmax(axis=1)]
    array([2, 5, 7, 2])
    >>> following.sample(5, random_state=0).shape
    (5, 4, 1)
    """

    def __init__(
        self,
        draws: Sequence[Draw],
        sequences: Sequences,
        emission: BaseEmission,
        n_steps: int,
        random_state: RandomState = None,
        feature_names: Sequence[str] | Array | None = None,
        coming: GivenSteps | None = None,
        weights: Floats | None = None,
        messages: Sequence[Floats | None] | None = None,
        matching: Callable[[Labels | None], list[Labels]] | None = None,
    ) -> None:
        self.n_steps = check_integer("n_steps", n_steps, 1)
        self.n_features = sequences.codes.shape[1] - emission.n_inputs
        self.n_draws = len(draws)
        self._draws = draws
        self._messages = [None] * self.n_draws if messages is None else messages
        self._matching = matching
        if weights is None:
            weights = np.ones(self.n_draws)
        if np.shape(weights) != (self.n_draws,) or not np.all(np.greater(weights, 0)):
            raise ValueError(f"weights={weights!r:.200}; expected {self.n_draws} numbers > 0.")
        # Exactly one if all are equal.
        self._weights = np.asarray(weights / np.max(weights))
        self._emission = emission
        self._random_state = random_state
        self._names = [] if feature_names is None else list(feature_names)
        # Index of every encoded column in the data.
        self._order = emission.columns(self.n_features).order
        # Models without data, for the predictive distributions of their states.
        self._nothing = Sequences(sequences.codes[:0], sequences.starts[:0])
        if coming is None:
            nothing = np.full((self.n_steps, n_given(emission)), None, dtype=object)
            coming = GivenSteps(nothing, None, encode_given(emission, nothing))
        begins = sequences.n_steps == 0
        self._given = coming.of_emission
        self._last = self._without_values(None)[:1] if begins else sequences.codes[-1:]
        coming = coming.after(emission, self._last)
        contexts, self._given = coming.contexts, coming.of_emission
        self._gap = self._gap_at_end(sequences)
        if sequences.contexts is not None and contexts is not None:
            self._nothing = replace(self._nothing, contexts=contexts)
            sequences = replace(sequences, contexts=sequences.contexts.joined(contexts))
        self._sequences = sequences if len(self._gap) else self._nothing
        self._state_probs = [
            self._first_probs(draw)
            if begins
            else frozen_model(draw, sequences, emission, message=message).forecast(self.n_steps)
            for draw, message in zip(draws, self._messages, strict=True)
        ]

    def __repr__(self) -> str:
        return f"<PosteriorPredictive: {self.n_steps} steps, {self.n_draws} draws>"

    def _repr_html_(self) -> str:
        """Table of the first steps: medians with intervals of 90 %, probabilities of symbols.

        Quantiles take .01 s a step, so long forecasts have no table.
        """
        n = self.n_features
        if self.n_steps > _MOST_WITH_TABLE:
            return f"<p>{html.escape(repr(self)[1:-1])}: mean(), quantile(0.5), interval(0.9)</p>"
        columns = self._emission.columns(n)
        names = self._names or [f"x{c}" for c in range(n)]
        cells: dict[int, list[str]] = {}
        if not columns.are_symbols.all():
            low, middle, high = self.quantile([0.05, 0.5, 0.95])
        for place, c in enumerate(self._order.tolist()):
            if columns.are_symbols[place]:
                cells[c] = self._likely_symbols(c, place)
            else:
                ends = zip(middle[:, c], low[:, c], high[:, c], strict=True)
                cells[c] = [f"{m:.3g} [{a:.3g}, {b:.3g}]" for m, a, b in ends]
        shown = min(self.n_steps, _MOST_STEPS)
        head = ["step", *(names[c] for c in range(n))]
        rows = [[str(i + 1), *(cells[c][i] for c in range(n))] for i in range(shown)]
        more = f"<p>and {self.n_steps - shown} more steps</p>" if shown < self.n_steps else ""
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{html_table([head, *rows])}{more}"

    def _likely_symbols(self, column: int, place: int) -> list[str]:
        """The two most probable symbols of a column at every step."""
        probs = self.proba(column)
        columns = self._emission.columns(self.n_features)
        part = self._emission.parts[columns.part[place]].emission
        names = symbol_names(part, int(columns.numbers[place]), probs.shape[1])
        order = np.argsort(-probs, axis=1, kind="stable")[:, :2]
        return [
            ", ".join(f"{names[s]} ({percent(row[s])})" for s in best)
            for row, best in zip(probs, order, strict=True)
        ]

    def _first_probs(self, draw: Draw) -> Floats:
        """State probabilities of the first steps of a sequence."""
        start = np.zeros(1, dtype=np.intp)
        steps = replace(self._nothing, codes=self._without_values(self._last), starts=start)
        probs = frozen_model(draw, steps, self._emission).filter(with_probs=True)[1]
        assert probs is not None
        return probs

    def _without_values(self, before: Array | None) -> Array:
        """Encoded rows of the steps, after an encoded row, without an observation."""
        nothing = np.full((self.n_steps, self.n_features), None, dtype=object)
        values, begin = self._emission.encode_values(nothing), np.zeros(1, dtype=np.intp)
        return with_inputs(self._emission, values, begin, before, self._given)

    def _models(self, sequences: Sequences) -> Iterator[tuple[FrozenModel, Floats]]:
        for draw, probs in zip(self._draws, self._state_probs, strict=True):
            yield frozen_model(draw, sequences, self._emission), probs

    def _gap_at_end(self, sequences: Sequences) -> Array:
        """Last rows on which the next inputs depend, if values of them are missing.

        These are the rows after the last complete row of the last sequence, with that row.
        """
        rows = sequences.codes[sequences.starts[-1] :]
        if not looks_back(self._emission):
            return rows[:0]
        if not np.isnan(inputs_after(self._emission, self._last, self._given[:1])).any():
            return rows[:0]
        is_complete = ~np.isnan(rows).any(axis=1)
        rows = rows[int(np.flatnonzero(is_complete).max(initial=0)) :]
        return rows if np.isnan(rows[:, : self.n_features]).any() else rows[:0]

    def _draw_with_gap(self, d: int, n_paths: int, stream: RandomStream) -> Labels:
        """Draw the states in the gap and of all predicted steps: a path per column."""
        start, contexts = self._sequences.starts[-1], self._sequences.contexts
        if contexts is not None:
            contexts = contexts.part(slice(start, None))
        codes = np.vstack([self._sequences.codes[start:], self._without_values(self._last)])
        sequences = Sequences(codes, np.zeros(1, dtype=np.intp), contexts=contexts)
        message = self._messages[d] if len(self._sequences.starts) == 1 else None
        model = frozen_model(self._draws[d], sequences, self._emission, message=message)
        steps = np.arange(len(codes) - self.n_steps - len(self._gap), len(codes))
        return model.sample_runs(steps, n_paths, stream)

    def _first_inputs(self, i: int) -> Floats | None:
        """Inputs of the first step, with the given columns of step i."""
        if not self._emission.n_inputs:
            return None
        inputs = inputs_after(self._emission, self._last, self._given[i : i + 1])[0]
        # After a gap columns that look back are forecast by samples: any numbers will do.
        return np.nan_to_num(inputs) if len(self._gap) else inputs

    def _mixtures(self, model: FrozenModel, probs: Floats) -> Iterator[Floats]:
        """The predictives of every encoded column, averaged over each step's states.

        Inputs that look back are the inputs of the first step.
        """
        if not n_given(self._emission):
            for emitted in model.predictives(self._first_inputs(0)):
                yield probs @ emitted
            return
        steps, of_context = [], {}
        for i, context in enumerate(map(tuple, self._given.tolist())):
            if context not in of_context:
                of_context[context] = model.predictives(self._first_inputs(i))
            steps.append([probs[i] @ emitted for emitted in of_context[context]])
        for column in zip(*steps, strict=True):
            yield np.asarray(column)

    def _place(self, column: int | str) -> int:
        """Index of the encoded column of a column of the data."""
        if isinstance(column, str):
            if column not in self._names:
                raise ValueError(
                    f"column={column!r}, but the columns of the data have "
                    + (f"the names {self._names}." if self._names else "no names.")
                )
            number = self._names.index(column)
        else:
            number = check_integer("column", column, 0)
        if number >= self.n_features:
            raise ValueError(
                f"column={column}, but the data have {self.n_features} columns, counted from 0."
            )
        return int(np.flatnonzero(self._order == number)[0])

    def proba(self, column: int | str = 0) -> Floats:
        """Probabilities of the symbols of one column.

        Parameters
        ----------
        column : int or str, default=0
            Index of a column of the data, or its name if the model was fitted to a frame.

        Returns
        -------
        probs : ndarray of shape (n_steps, n_symbols)
            Rows sum to one, in the order of the column's categories
            (``emission_.categories_[column]``, for mixed data the categories of its
            part).  If the emission has a cell for unknown symbols
            (``handle_unknown="base"``), it is the last one.

        Raises
        ------
        ValueError
            If the column does not exist, or holds numbers.
        """
        place = self._place(column)
        each = []
        for model, probs in self._models(self._nothing):
            mixture = list(self._mixtures(model, probs))[place]
            if mixture.ndim == 1:
                raise ValueError(
                    f"Column {column!r} holds numbers, which have no list of "
                    "probabilities. Use mean, log_prob or sample."
                )
            each.append(mixture)
        return np.asarray(np.average(each, axis=0, weights=self._weights))

    def mean(self) -> Floats:
        """Means of the columns of numbers.

        Returns
        -------
        means : ndarray of shape (n_steps, n_features)
            Means of the predictive distribution: the centre of a Student's t without a
            mean, and the mean direction of angles.  NaN in columns of symbols.  For
            emissions that look back, means are averages of 1000 samples from the second
            step on, and after rows with missing entries.

        Raises
        ------
        ValueError
            If all columns hold symbols.
        """
        periods = self._emission.columns(self.n_features).periods
        dtype = complex if np.isfinite(periods).any() else float
        total = np.zeros((self.n_steps, self.n_features), dtype=dtype)
        models = zip(self._models(self._nothing), self._weights, strict=True)
        for (model, probs), weight in models:
            columns = list(self._mixtures(model, probs))
            if all(mixture.ndim == 2 for mixture in columns):
                raise ValueError("All columns hold symbols, which have no mean. Use proba.")
            for c, mixture in zip(self._order, columns, strict=True):
                total[:, c] += weight * mixture if mixture.ndim == 1 else np.nan
        total /= self._weights.sum()
        means = total.real
        for c, period in zip(self._order, periods, strict=True):
            means[:, c] = mean_values(total[:, c], period).real
        first = 0 if len(self._gap) else 1
        if looks_back(self._emission) and self.n_steps > first:
            drawn = self._sample_codes(N_WALKS, self._random_state).mean(axis=0)
            walks = self._emission.columns(self.n_features).looks_back
            means[first:, self._order[walks]] = drawn[first:, walks]
        means[:, self._order] += self._emission.columns(self.n_features).offsets
        return means

    def log_prob(self, X_next: MatrixLike) -> Floats:
        """Log predictive probability of each future step.

        Parameters
        ----------
        X_next : array-like of shape (n_steps, n_features)
            Observations of the future steps, of a frame by their names.  Missing ones
            have probability one.

        Returns
        -------
        log_probs : ndarray of shape (n_steps,)
            Nats, densities for numbers.  0 where the whole row is missing.  Each value is
            conditional on the given sequence alone.  The sum is therefore not the joint
            log probability (:meth:`skihmm.HCRPHMM.score_samples` has the terms of the
            joint).
        """
        values = self._encoded(X_next)
        if looks_back(self._emission) and self.n_steps > 1:
            raise ValueError(
                f"{self._emission!r} looks back, so that later steps have no log "
                "probability conditional on the given sequence only. Use "
                "predict_next(X, n_steps=1), sample, or score_samples."
            )
        starts = np.zeros(1, dtype=np.intp)
        codes = with_inputs(self._emission, values, starts, self._last, self._given)
        sequences = Sequences(codes, starts)
        each = [model.log_mixtures(probs) for model, probs in self._models(sequences)]
        with np.errstate(under="ignore"):  # draws far less probable than the best
            logs = np.asarray(each) + np.log(self._weights)[:, None]
            log_probs = np.logaddexp.reduce(logs, axis=0) - np.log(self._weights.sum())
        return np.where(self._emission.is_missing(codes), 0.0, log_probs)

    def _encoded(self, X_next: MatrixLike) -> Array:
        """Encoded observations of the future steps."""
        check_column_names("X_next", X_next, self._names)
        X_next = as_matrix(unify_frame(unmask(X_next)))
        if X_next.shape != (self.n_steps, self.n_features):
            raise ValueError(
                f"X_next has the shape {X_next.shape}; expected a row for each of the "
                f"{self.n_steps} predicted steps and {self.n_features} columns."
            )
        return self._emission.encode_values(X_next)

    def _columns(self) -> tuple[Cdf, Floats, Floats]:
        """Cumulative distribution function of encoded columns, samples, and centres.

        Its values have the shape (..., n_steps, n_features).  Angles of values and samples are
        within half a period of the centres.
        """
        emission, n = self._emission, self.n_features
        inputs = np.empty((self.n_steps, 0))
        if emission.n_inputs:
            inputs = np.array([self._first_inputs(i) for i in range(self.n_steps)])
        parts = []
        weights = self._weights / self._weights.sum()
        for (model, probs), weight in zip(self._models(self._nothing), weights, strict=True):
            cdf = emission.predictive_cdf(model.emission, model._slots(), inputs)
            parts.append((weight * probs, cdf))

        def mixture(values: Floats) -> Floats:
            each = [np.einsum("tk,...tkc->...tc", p, cdf(values)) for p, cdf in parts]
            return np.sum(each, axis=0)

        drawn = self._sample_codes(N_WALKS, self._random_state).astype(np.float64)
        centres, periods = np.zeros((self.n_steps, n)), emission.columns(n).periods
        is_angle = np.isfinite(periods)
        if is_angle.any():
            centres[:, is_angle] = self.mean()[:, self._order[is_angle]]
        for c in np.flatnonzero(is_angle):
            drawn[:, :, c] = around(drawn[:, :, c], centres[:, c], periods[c])
        before = mixture(np.where(is_angle, centres - 0.5 * periods, 0.0))
        is_drawn = np.isnan(before)
        is_drawn[0 if len(self._gap) else 1 :] |= emission.columns(n).looks_back
        before[:, ~is_angle] = 0.0

        def cdf_or_shares(values: Floats) -> Floats:
            if not is_drawn.any():
                return mixture(values) - before
            shares = np.mean(drawn <= values[..., None, :, :], axis=-3)
            return np.where(is_drawn, shares, mixture(values) - before)

        return cdf_or_shares, drawn, centres

    def cdf(self, X_next: MatrixLike) -> Floats:
        """Cumulative probabilities of the columns of each future step.

        Parameters
        ----------
        X_next : array-like of shape (n_steps, n_features)
            Observations of the future steps, of a frame by their names.

        Returns
        -------
        probs : ndarray of shape (n_steps, n_features)
            Probabilities of at most these values, conditional on the given sequence
            alone.  Symbols are in the order of their categories, angles count from the
            opposite of the mean direction.  NaN where missing.  Where :meth:`mean`
            averages samples, and for emissions of numbers without ``predictive_cdf``, the
            probabilities are shares of 1000 samples.
        """
        values = self._encoded(X_next)
        is_missing = missing_values(values, symbol_limits(self._emission, self.n_features))
        cdf, _, centres = self._columns()
        values = np.where(is_missing, centres, values)
        for c, period in enumerate(self._emission.columns(self.n_features).periods):
            values[:, c] = around(values[:, c], centres[:, c], period)
        probs = np.empty(values.shape)
        probs[:, self._order] = np.where(is_missing, np.nan, cdf(values))
        return probs

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of the columns at each future step.

        Parameters
        ----------
        q : float or array-like of float
            Probabilities between 0 and 1.

        Returns
        -------
        X : ndarray of shape (..., n_steps, n_features)
            The least values with a :meth:`cdf` of `q` or more, after the axes of `q`, in
            the types of :meth:`sample`.  Quantiles of symbols are categories, useful if
            the order of the categories has a meaning (NaN or None: no category).  Angles
            are within half a period of the mean direction.  Medians, ``q=0.5``, unlike
            means hardly depend on a few wrong values.
        """
        levels = np.asarray(q, dtype=np.float64)
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q={q!r}; expected probabilities between 0 and 1.")
        goal = np.minimum(levels, 1 - 1e-12).reshape(-1, 1, 1)
        cdf, drawn, _ = self._columns()
        # Numbers of 2**53 or more are whole in every column, and cut below.
        is_whole = self._emission.columns(self.n_features).are_discrete
        is_whole = is_whole & (drawn == np.floor(drawn)).all(axis=0)
        low, high = (
            np.quantile(drawn, ends.ravel(), axis=0, method="inverted_cdf")
            for ends in (0.5 * levels, 0.5 + 0.5 * levels)
        )
        width = np.where(low < high, high - low, 1.0)
        for _ in range(60):
            is_low, is_high = cdf(low) < goal, cdf(high) >= goal
            if (is_low & is_high).all():
                break
            low, high, width = low - width * ~is_low, high + width * ~is_high, 2 * width
        # Bisection, of whole numbers until they are found.
        for _ in range(36):
            if (high - low <= is_whole).all():
                break
            middle = 0.5 * (low + high)
            middle = np.where(is_whole, np.floor(middle), middle)
            is_off = cdf(middle) < goal
            low, high = np.where(is_off, middle, low), np.where(is_off, high, middle)
        high = np.where(is_whole, np.minimum(high, 9e18), high)  # of 64 bits
        codes = high.reshape(-1, self.n_features).astype(self._nothing.codes.dtype)
        return self._emission.decode(codes).reshape(levels.shape + drawn.shape[1:])

    def interval(self, level: float) -> tuple[Array, Array]:
        """Central intervals of the columns at each future step.

        Parameters
        ----------
        level : float
            Their probability, between 0 and 1.

        Returns
        -------
        lower, upper : ndarray of shape (n_steps, n_features)
            Quantiles of ``(1 - level) / 2`` and ``(1 + level) / 2``.
        """
        if not 0 < check_finite("level", level) < 1:
            raise ValueError(
                f"level={level!r}; expected a probability between 0 and 1, such as 0.9."
            )
        lower, upper = self.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level])
        return lower, upper

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Array:
        """Draw samples of all future steps jointly.

        Each sample uses one posterior draw, chosen at random.  States follow the
        transition probabilities from the end of the sequence, and every state emits from
        its posterior predictive distribution.  If an emission looks back on missing
        entries, each sample has other values for them.

        Parameters
        ----------
        n_samples : int, default=1
            Number of independent samples.
        random_state : int, RandomState instance or None, default=None
            None uses the estimator's `random_state`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_steps, n_features)
            Symbols are from the emission's categories.
        """
        n_samples = check_integer("n_samples", n_samples, 1)
        codes = self._sample_codes(n_samples, random_state)
        X = self._emission.decode(codes.reshape(-1, self.n_features))
        return X.reshape(codes.shape)

    def _transmats(self, model: FrozenModel) -> Sequence[Floats]:
        """Transition probabilities into every step; of a model without data."""
        if self._nothing.contexts is None:
            return [model.transition_matrix()[1]] * self.n_steps
        return [model.transition_matrix(i)[1] for i in range(self.n_steps)]

    def _draw_states(
        self, model: FrozenModel, d: int, n_paths: int, stream: RandomStream
    ) -> Labels:
        """Draw the states in the gap and of all predicted steps: a path per column."""
        if len(self._gap):
            return self._draw_with_gap(d, n_paths, stream)
        u = stream.generator.random((self.n_steps, n_paths))
        states = np.empty(u.shape, dtype=np.int32)
        states[0] = choose(np.tile(self._state_probs[d][0], (n_paths, 1)), u[0])
        transmats = self._transmats(model)
        for i in range(1, self.n_steps):
            states[i] = choose(transmats[i][states[i - 1]], u[i])
        return states

    def _sample_codes(self, n_samples: int, random_state: RandomState) -> Array:
        entropy = draw_entropy(self._random_state if random_state is None else random_state)
        stream = RandomStream(np.random.SeedSequence(entropy))
        limits, n = symbol_limits(self._emission, self.n_features), self.n_features
        chosen = choose_draws(self._weights, stream, n_samples)
        codes = np.empty((n_samples, self.n_steps, n), self._nothing.codes.dtype)
        walks = looks_back(self._emission)
        if walks:
            ahead = np.vstack([self._gap, self._without_values(self._last)])
            missing = np.isnan(ahead[:, :n])
            missing[len(self._gap) :] = True
        for d in np.unique(chosen):
            members = np.flatnonzero(chosen == d)
            model = frozen_model(self._draws[d], self._nothing, self._emission)
            states = self._draw_states(model, d, len(members), stream)
            if walks:
                rows = None if len(self._gap) else np.repeat(self._last, len(members), axis=0)
                walk = walk_ahead(
                    model, self._emission, ahead, missing, states, rows, limits, stream
                )
                for i, (now, _) in enumerate(walk, -len(self._gap)):
                    if i >= 0:
                        codes[members, i] = now[:, :n]
                continue
            # All steps at once.
            inputs: Array | None = None
            if n_given(self._emission):
                inputs = np.repeat(self._given, len(members), axis=0)
            for c, values in enumerate(model.draw_values(states.ravel(), limits, stream, inputs)):
                codes[members, :, c] = values.reshape(states.shape).T
        return codes
