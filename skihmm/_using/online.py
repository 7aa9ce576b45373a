"""Live rows: a filter that goes on from row to row."""

from __future__ import annotations

import math
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import gammaincc, ndtr
from sklearn.utils import Bunch

from skihmm._data.sequences import Sequences
from skihmm._data.validation import check_choice, check_integer, check_probability, draw_entropy
from skihmm._draws import Draw
from skihmm._pickles import with_version, without_version
from skihmm._typing import Array, Flags, Floats, Labels, MatrixLike, RandomState
from skihmm._using.decoding import symbol_limits
from skihmm._using.fitted import FittedEstimator, fitted_of
from skihmm._using.new_subjects import NewSubjects
from skihmm._using.prediction import PosteriorPredictive
from skihmm._using.residuals import Ahead, KeptByDraw, cdfs_of, joint_residuals, residuals_under
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.emissions._parts import looks_back
from skihmm.emissions._subjects import has_subjects, names_of_subjects, subject_columns

# Rows of a gap that are kept because later rows depend on their values.  Later only the last row is
# kept, as if the values before it were lost.
_MOST_KEPT = 1000
# Probabilities of symbols that differ by less are equal.
_ROUNDING = 1e-9


@dataclass
class _Part:
    """A draw, and its message from the rows so far.

    `places` has the draw's weight where a state of it is a state of the result.  `message` is from
    all rows, `before` from the rows before the kept rows; `model` is over `row` alone, `leading`
    over its first columns, `leading_rows`.
    """

    draw: Draw
    weight: float
    places: Floats
    message: Floats | None = None
    before: Floats | None = None
    model: FrozenModel | None = None
    leading: FrozenModel | None = None
    row: Array = field(default_factory=lambda: np.empty((0, 0)))
    leading_rows: Array = field(default_factory=lambda: np.empty((0, 0)))


class OnlineFilter:
    """Filter that follows live rows under the frozen parameters of a fitted model.

    Every row costs the same, and changes no parameter.  Probabilities equal
    ``predict_proba(method="filter")`` on all rows.

    Parameters
    ----------
    hmm : HCRPHMM
        Fitted.  Later fits do not change the filter.
    group : int or None, default=None
        Number of the sequence of the fit before the rows, from 0, or from the end by
        negative numbers.  By default the rows begin a new sequence.
    draws : {"selected", "all"}, default="selected"
        Under the selected draw, like :meth:`HCRPHMM.predict`, or averaged over all draws,
        like :meth:`HCRPHMM.score` with fixed parameters.
    level : float, default=0.001
        Share of rows with an alarm under a right model.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers in residuals of symbols and counts.  By default the fit
        fixes the seed (see :meth:`HCRPHMM.residuals`).

    Attributes
    ----------
    n_rows : int
        Number of rows so far.

    See Also
    --------
    HCRPHMM.partial_fit : Learns from new rows.

    Notes
    -----
    A row is unusual in two ways.  By the most unusual value: numbers by the size of the
    residual, symbols by the probability (equal probabilities in random order).  And by all
    columns together.  If the state is a state of the fit, the residual of every column
    given the earlier columns (Rosenblatt 1952) is standard normal and independent of the
    earlier columns, and the sum of squares is chi-squared.  Small faults in many columns
    raise the joint surprise alone, also after a new state has taken over.  An alarm doubles
    the smaller of the two probabilities (Bonferroni), so the share of alarms is at most the
    level.

    All rows of a filter belong to one subject of the fit (``subject_feature`` of the
    emission).

    An error leaves the filter unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm import HCRPHMM, OnlineFilter
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(np.repeat([[0.0], [9.0], [0.0], [9.0]], 50, axis=0))
    >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=10, random_state=0).fit(X)
    >>> live = OnlineFilter(hmm)
    >>> live.update([[0.5]]).is_alarm, live.update([[0.1], [30.0]]).is_alarm
    (array([False]), array([False,  True]))
    >>> live
    <OnlineFilter: 3 rows, 1 draw>
    """

    def __init__(
        self,
        hmm: FittedEstimator,
        group: int | None = None,
        *,
        draws: str = "selected",
        level: float = 0.001,
        random_state: RandomState = None,
    ) -> None:
        fitted = fitted_of(hmm)
        self.level = check_probability("level", level)
        of_all = check_choice("draws", draws, ("selected", "all")) == "all"
        every = np.arange(fitted.n_states + 1, dtype=np.int32)
        chosen = fitted.matched_draws() if of_all else [(fitted.selected, 1.0, every)]
        self._parts = [
            _Part(replace(draw, states=None), weight, weight * np.eye(len(every))[place])
            for draw, weight, place in chosen
        ]
        self.n_rows = 0
        entropy = fitted.entropy if random_state is None else draw_entropy(random_state)
        seed = np.random.SeedSequence(entropy)
        # A stream for the numbers that spread discrete values, a stream for drawn values.
        self._streams = [RandomStream(each) for each in (seed, *seed.spawn(1))]
        self._weights = np.array([part.weight for part in self._parts])
        data = fitted.sequences
        self._kept = data.part(slice(0, 0))
        # It has neither the draws nor the data of the fit.
        self._encoder = fitted.encoder
        self._random_state = hmm.random_state
        emission = self._emission = fitted.emission
        self._keep_nothing()
        self._limits = symbol_limits(emission, data.codes.shape[1] - emission.n_inputs)
        self._order = emission.columns(len(self._limits)).order
        self._symbols = np.flatnonzero(self._limits).tolist()
        if group is not None:
            n_groups = len(data.starts)
            if not -n_groups <= check_integer("group", group, -n_groups) < n_groups:
                raise ValueError(
                    f"group={group!r}, but the fit has {n_groups} sequences, counted from 0."
                )
            group %= n_groups
            start, stop = np.append(data.starts, data.n_steps)[[group, group + 1]]
            self._follow(data.part(slice(start, stop)))

    def __repr__(self) -> str:
        n = len(self._parts)
        return f"<OnlineFilter: {self.n_rows} rows, {n} draw{'s' * (n > 1)}>"

    def __getstate__(self) -> dict[str, Any]:
        """State for copies and pickles, without attributes that are rebuilt."""
        parts = [replace(part, model=None, leading=None) for part in self._parts]
        state = with_version({**self.__dict__, "_parts": parts})
        state["_seeds"] = [stream.bit_generator for stream in self._streams]
        for name in ("_streams", "_cdfs", "_joint_cdfs", "_tables"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from such a state, with random numbers of its own."""
        self.__dict__.update(without_version(state, "OnlineFilter"))
        self._streams = [RandomStream(deepcopy(seed)) for seed in state["_seeds"]]
        self._keep_nothing()

    def _keep_nothing(self) -> None:
        """Begin to keep what depends on draws alone."""
        self._cdfs = cdfs_of(self._emission)
        self._joint_cdfs = cdfs_of(self._emission, is_conditional=True)
        # Probabilities of symbols.
        self._tables = KeptByDraw(
            lambda model, inputs: model.predictives(inputs if inputs.shape[1] else None)
        )

    def copy(self) -> OnlineFilter:
        """Copy the filter, to follow other rows from here.

        Returns
        -------
        copied : OnlineFilter
        """
        return copy(self)

    # ---- rows

    def _encode(self, rows: MatrixLike) -> Sequences:
        encoder, emission = self._encoder, self._emission
        # Checks of scikit-learn take as long as all the rest.
        X: Array
        if (
            type(rows) is np.ndarray
            and rows.dtype == np.float64
            and rows.shape[1:] == (encoder.columns.number,)
            and len(rows) > 0
        ):
            X = rows
        else:
            X = encoder.columns.read(rows)
        begin = np.zeros(1, dtype=np.intp)
        before = self._kept.codes[-1:] if self._kept.n_steps else None
        encoded = encoder.rows(X, begin, before)
        codes = encoded.codes
        if has_subjects(emission):
            rows = [codes] if before is None else [before, codes]
            of_rows = np.vstack(rows)[:, subject_columns(emission, codes.shape[1])]
            other = np.flatnonzero((of_rows != of_rows[0]).any(axis=1))
            if len(other):
                seen, found = (names_of_subjects(emission, of_rows[t]) for t in (0, other[0]))
                raise ValueError(
                    f"A row is of subject {found}, the rows before it are of {seen}; "
                    "expected one subject, because a filter follows one sequence. Make "
                    "an OnlineFilter for every subject."
                )
        if has_subjects(emission) and NewSubjects.find(encoded, emission) is not None:
            raise ValueError(
                "A row is of a subject that was not in the fit, whose offset is unknown. "
                "Add rows of the subject by partial_fit, and filter by that model."
            )
        return encoded

    def _first_kept(self, rows: Sequences) -> int | None:
        """First of the rows that is kept; None if those that are kept stay so.

        The last complete row is, from which columns that look back go on, and those
        after it.
        """
        if not looks_back(self._emission):
            return rows.n_steps - 1
        complete = np.flatnonzero(~np.isnan(rows.codes).any(axis=1))
        if len(complete):
            return int(complete[-1])
        if not self._kept.n_steps:
            return 0
        n_kept = self._kept.n_steps + rows.n_steps
        return None if n_kept <= _MOST_KEPT else rows.n_steps - 1

    def _follow(self, rows: Sequences) -> tuple[list[Ahead], Floats, Floats]:
        """Go on to the last row; the predictions of the rows, and the messages from them."""
        first = self._first_kept(rows)
        pieces = [rows]
        if first:
            ends = ((0, first), (first, None))
            pieces = [rows.part(slice(start, stop)) for start, stop in ends]
        ahead, messages = [], []
        probs, log_probs = np.zeros(1), np.full(1, -np.inf)
        for part in self._parts:
            after, found = [part.message], []
            for piece in pieces:
                model = self._model(part, piece)
                *arrays, message = model.follow(after[-1])
                found.append(arrays)
                after.append(message)
            logs, before, filtered = (
                map(np.concatenate, zip(*found, strict=True)) if first else found[0]
            )
            probs = probs + filtered @ part.places
            log_probs = np.logaddexp(log_probs, logs + math.log(part.weight))
            ahead.append((model, part.weight * before))
            messages.append(after)
        # Nothing has changed before this line, where errors are behind.
        for part, after in zip(self._parts, messages, strict=True):
            part.message = after[-1]
            if first is not None:
                part.before = after[-2]
        if first is None:
            self._kept = self._kept.joined(rows).part(slice(None))
        else:
            self._kept = pieces[-1]
        return ahead, probs, log_probs

    def _model(self, part: _Part, rows: Sequences) -> FrozenModel:
        """Model of a draw over rows, whatever precedes them."""
        codes, is_one = rows.codes, rows.n_steps == 1 and rows.contexts is None
        # To make a model takes longer than to follow a row by it.
        if is_one and part.model is not None:
            part.row[:] = codes
            if part.model.emission.reread():
                return part.model
        if is_one:
            codes = part.row = np.array(codes, order="C")
        model = FrozenModel(
            part.draw.arrays,
            self._emission.make_stats(codes),
            rows.starts[1:],
            contexts=rows.contexts,
        )
        if is_one:
            part.model = model
        return model

    def update(self, rows: MatrixLike) -> Bunch:
        """Follow the next rows.

        Parameters
        ----------
        rows : array-like of shape (n_rows, n_features)
            Rows with the columns of X of :meth:`HCRPHMM.predict`, contexts and inputs
            included.  Entries may be missing.

        Returns
        -------
        live : sklearn.utils.Bunch
            Arrays with an entry for every row: ``probs`` of shape (n_rows, n_states + 1):
            probabilities of the states given the rows up to the row, a new state last.
            ``log_prob``: log probability or density of the row given the earlier rows,
            nats, 0 if all residuals are NaN.  ``residuals`` of shape (n_rows, n_features):
            see :meth:`HCRPHMM.residuals`, NaN if an input or an earlier row of the
            regression is missing.  ``surprise``: minus the log of the probability of an
            equally unusual most unusual value.  Under a right model a share p of the rows
            is above ``-log(p)``.  ``joint_surprise``: minus the log of the probability that
            all columns together are equally far from all states of the fit.  Surprises are
            0 if all residuals are NaN.  ``is_alarm``: whether the larger surprise is above
            ``-log(level / 2)``, with a single column ``-log(level)``.

        Examples
        --------
        >>> import numpy as np
        >>> from skihmm import HCRPHMM, OnlineFilter
        >>> X = np.repeat([[0.0], [9.0], [0.0], [9.0]], 25, axis=0)
        >>> X += np.random.default_rng(0).normal(size=X.shape)
        >>> hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=20, random_state=0).fit(X)
        >>> live = OnlineFilter(hmm)
        >>> live.update([[0.1]]).probs.round(2)
        array([[1., 0., 0.]])
        >>> live.update([[9.2], [50.0]]).is_alarm
        array([False,  True])
        """
        encoded = self._encode(rows)
        codes, n = encoded.codes, len(self._limits)
        ahead, probs, log_probs = self._follow(encoded)
        self.n_rows += len(codes)
        uniform = self._streams[0].generator.random((len(codes), n))
        found = residuals_under(
            lambda: ahead,
            self._weights,
            codes,
            self._limits,
            self._emission,
            uniform,
            self._streams[1],
            cdfs=self._cdfs,
        )
        unusual = 2 * ndtr(-np.abs(found))
        for c in self._symbols:
            unusual[:, c] = self._rarity(ahead, codes, c, uniform[:, c])
        is_lost = np.isnan(found)
        unusual[is_lost] = 1.0
        least = unusual.min(axis=1)
        if n > 1:
            # All of them are larger with the power of this probability.
            n_seen = n - is_lost.sum(axis=1)
            each = np.log1p(-np.minimum(least, 1 - 1e-15))
            least = np.where(n_seen > 0, -np.expm1(n_seen * each), 1.0)
        surprise = -np.log(least)
        joint_surprise = self._joint_surprise(ahead, codes, uniform, surprise, is_lost)
        residuals = np.empty_like(found)
        residuals[:, self._order] = found
        log_probs[is_lost.all(axis=1)] = 0.0
        # Each is above the level half as often, if there are two.
        level = self.level / min(n, 2)
        is_alarm = np.maximum(surprise, joint_surprise) > -np.log(level)
        return Bunch(
            probs=probs,
            log_prob=log_probs,
            residuals=residuals,
            surprise=surprise,
            joint_surprise=joint_surprise,
            is_alarm=is_alarm,
        )

    def _joint_surprise(
        self, ahead: list[Ahead], codes: Array, uniform: Floats, surprise: Floats, is_lost: Flags
    ) -> Floats:
        """Minus the log probability that all columns together are as far off."""
        if len(self._limits) == 1:
            return surprise
        found = joint_residuals(
            ahead, codes, self._emission, uniform, self._log_leading, self._joint_cdfs
        )
        found[is_lost] = np.nan
        n_seen = (~np.isnan(found)).sum(axis=1)
        squares = np.nansum(found**2, axis=1)
        probs = gammaincc(np.maximum(n_seen, 1) / 2, squares / 2)  # one without a value
        return np.asarray(-np.log(np.maximum(probs, 1e-300)))

    def _log_leading(self, d: int, rows: Array) -> Floats:
        """Log probabilities of rows under the states of a draw, whatever precedes."""
        part = self._parts[d]
        if part.leading is not None and rows.shape == part.leading_rows.shape:
            part.leading_rows[:] = rows
            if part.leading.emission.reread():
                return part.leading.log_densities()
        part.leading_rows = rows
        start = np.zeros(1, dtype=np.intp)
        stats = self._emission.make_stats(rows)
        part.leading = FrozenModel(part.draw.arrays, stats, start)
        return part.leading.log_densities()

    def _rarity(self, ahead: list[Ahead], codes: Array, c: int, uniform: Floats) -> Floats:
        """Probability of a symbol at most as probable as the symbol of each row."""
        rows, mixture = np.arange(len(codes)), np.zeros((1, 1))
        inputs = codes[:, len(self._limits) :]
        for d, (model, probs) in enumerate(ahead):
            table = self._tables(d, model, inputs)[c]
            mixture = mixture + (probs[:, None] @ table)[..., 0, :]
        own = mixture[rows, np.nan_to_num(codes[:, c]).astype(np.intp)][:, None]
        is_rarer = mixture < own * (1 - _ROUNDING)
        is_equal = ~is_rarer & (mixture <= own * (1 + _ROUNDING))
        return (mixture * (is_rarer + uniform[:, None] * is_equal)).sum(axis=1)

    # ---- prediction

    def predict_next(
        self,
        n_steps: int = 1,
        *,
        contexts: MatrixLike | None = None,
        inputs: MatrixLike | None = None,
    ) -> PosteriorPredictive:
        """Predict the observations after the last row.

        Parameters
        ----------
        n_steps : int, default=1
        contexts, inputs : array-like of shape (n_steps,) or (n_steps, n_columns), \
optional
            See :meth:`HCRPHMM.predict_next`.

        Returns
        -------
        following : PosteriorPredictive
            With ``draws="all"`` the result of :meth:`HCRPHMM.predict_next` on all rows.
            Before the first row: of the first rows of a sequence.
        """
        n_steps = check_integer("n_steps", n_steps, 1)
        encoder = self._encoder
        coming = encoder.coming(contexts, inputs, n_steps)
        return PosteriorPredictive(
            [part.draw for part in self._parts],
            self._kept,
            self._emission,
            n_steps,
            self._random_state,
            encoder.observed_names,
            coming,
            self._weights,
            [part.before for part in self._parts],
            self._labels_of_draws,
        )

    def _labels_of_draws(self, labels: Labels | None) -> list[Labels]:
        """Label of every state of the draws, and of a new state."""
        if labels is not None:
            raise ValueError(
                "labels of the training steps were given, which a filter does not keep; "
                "use HCRPHMM.predict_next."
            )
        return [part.places.argmax(axis=1) for part in self._parts]
