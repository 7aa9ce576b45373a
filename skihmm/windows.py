"""Shapes and periods: states of windows of numbers, on rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skihmm._data.frames import library_of
from skihmm._data.other_names import explain_attribute
from skihmm._data.reading import Columns
from skihmm._data.sequences import starts_of_rows
from skihmm._data.validation import (
    check_choice,
    check_flag,
    check_ignored,
    check_integer,
    check_positive,
    warn_caller,
)
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._typing import (
    Array,
    Flags,
    Floats,
    Integers,
    Labels,
    MatrixLike,
    RandomState,
    VectorLike,
)
from skihmm.emissions import NormalInverseGamma
from skihmm.emissions._columns import as_floats, name_columns
from skihmm.metrics._autocorrelation import autocovariances
from skihmm.posterior._segments import segment_table

__all__ = ["WindowedHMM"]

# Places of the weights 2 of the kernels of MiniRocket; the other six weights are -1.
_TAPS = 9
_KERNELS = np.array(list(combinations(range(_TAPS), 3)))
_N_DILATIONS, _GOLDEN, _ROWS_OF_BIASES = 4, (5**0.5 - 1) / 2, 2000
# A period occurs so many times at least, which are windows enough for states, and its peak of the
# autocorrelation is so high above the least value before it.
_OCCURRENCES, _LONGEST_PERIOD, _LEAST_RISE = 20, 2000, 0.05
_LEAST_PERIOD, _LEAST_LENGTH, _LEAST_ROWS = 8, 16, 160
# Components that are kept, and those of distances.
_MOST_COMPONENTS, _OF_DISTANCES = 30, 15
# Runs of so few windows, in groups of so many, straddle a change; mixtures may have as many.
_STRADDLING, _MOST_STRADDLING, _MOST_AWAY = 2, 4, 0.6
# Blocks of a held-out distance, ridge of its covariance, least height of a tree, share of the
# height, and least distance, below which states join, and windows from which they do.
_N_BLOCKS, _RIDGE, _LEAST_HEIGHT, _SHARE, _LEAST_DISTANCE, _MANY = 5, 0.1, 2.8, 0.3, 1.0, 40
# Warnings of a fit about its rows, which are windows here: windows of a signal without noise are
# equal, and a change is far from all others.
_OF_ROWS = ("More than a fifth of the rows", r"\d+ rows? of X, at the b", "X has values more than")


class _Rows(NamedTuple):
    """Rows of sequences: whether each kernel exceeds its bias.

    Attributes
    ----------
    above : ndarray of shape (n_features, n_samples), bool
        False where the kernel meets a missing value.
    is_known : ndarray of shape (n_groups, n_samples), bool, or None
        Rows where kernels of one dilation and column meet no missing value.
    group : ndarray of shape (n_features,), int
        Group of each feature.
    """

    above: Flags
    is_known: Flags | None
    group: Integers


class _Windows(NamedTuple):
    """First and last rows (behind the end) of windows, and the first window of every sequence."""

    begins: Integers
    stops: Integers
    starts: Integers

    @classmethod
    def of_sequences(cls, starts: Integers, n_rows: int, length: int, step: int) -> _Windows:
        begins = [
            np.arange(a, max(b - length, a) + 1, step)
            for a, b in zip(starts, [*starts[1:], n_rows], strict=True)
        ]
        sizes = [len(each) for each in begins]
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        ends = np.repeat([*starts[1:], n_rows], sizes)
        all_begins = np.concatenate(begins)
        return cls(all_begins, np.minimum(all_begins + length, ends), first)

    @property
    def centres(self) -> Integers:
        return (self.begins + self.stops) // 2

    @property
    def sequence(self) -> Integers:
        """Number of the sequence of every window."""
        return np.searchsorted(self.starts, np.arange(len(self.begins)), side="right") - 1

    def spans(self, starts: Integers, n_rows: int) -> Iterator[tuple[int, int, int, int]]:
        """First and last windows, and rows, of every sequence, with these first rows."""
        stops = [*self.starts[1:], len(self.begins)]
        return zip(self.starts, stops, starts, [*starts[1:], n_rows], strict=True)

    def changes(self, labels: Integers) -> Integers:
        """Windows whose label differs from that of the window before, in one sequence."""
        is_change = np.diff(labels, prepend=labels[:1]) != 0
        is_change[self.starts] = False
        return np.flatnonzero(is_change)


def _find_period(x: Floats, starts: Integers) -> int | None:
    """Lag of the highest peak of the autocorrelation of columns and sequences."""
    most = max(_LEAST_PERIOD, min(len(x) // _OCCURRENCES, _LONGEST_PERIOD))
    total = np.zeros(most + 2)
    for part in np.split(np.nan_to_num(x), starts[1:]):
        products = len(part) * autocovariances(part.T).sum(axis=0)[: most + 2]
        total[: len(products)] += products
    if not total[0] > 0:
        return None
    rho = total / total[0]
    lags = np.arange(3, most)
    is_peak = (rho[lags] > rho[lags - 1]) & (rho[lags] >= rho[lags + 1])
    is_peak &= np.minimum.accumulate(rho)[lags - 1] < rho[lags] - _LEAST_RISE
    peaks = lags[is_peak]
    return int(peaks[rho[peaks].argmax()]) if len(peaks) else None


def _are_mixtures(labels: Integers, borders: Integers, points: Floats) -> Flags:
    """Mask of short runs that are mixtures of the runs before and after them.

    Features are shares of rows, so that a window over a change is a mixture of two states.  True
    ones were .3 to .5 of the distance of both states away from the line between them; a third state
    as far from both as they are from each other is .87 away.
    """
    sizes = np.diff(borders)
    means = np.add.reduceat(points, borders[:-1]) / sizes[:, None]
    found = np.zeros(len(sizes), dtype=bool)
    for i in range(1, len(sizes) - 1):
        if sizes[i] > _MOST_STRADDLING or labels[borders[i - 1]] == labels[borders[i + 1]]:
            continue
        line, offset = means[i + 1] - means[i - 1], means[i] - means[i - 1]
        square = max(float(line @ line), 1e-12)
        place = float(offset @ line) / square
        away = np.linalg.norm(offset - place * line) / np.sqrt(square)
        found[i] = 0 < place < 1 and away < _MOST_AWAY
    return found


def _split_straddlers(labels: Integers, points: Floats) -> Integers:
    """Give windows that straddle a change to the long runs on both sides, half and half."""
    borders = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
    is_long = np.diff(borders) > _STRADDLING
    is_long &= ~_are_mixtures(labels, borders, points)
    found = labels.copy()
    if not is_long.any():
        return found
    i = 0
    while i < len(is_long):
        j = i
        while j < len(is_long) and not is_long[j]:
            j += 1
        begin, stop = borders[i], borders[j]
        if 0 < stop - begin <= _MOST_STRADDLING:
            middle = begin if i == 0 else stop if j == len(is_long) else (begin + stop) // 2
            found[begin:middle] = labels[begin - 1]
            found[middle:stop] = labels[min(stop, len(labels) - 1)]
        i = j + 1
    return found


def _direction(a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Linear discriminant of two sets, the middle of their means, and the difference."""
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    rest = np.concatenate([a - mean_a, b - mean_b])
    covariance = rest.T @ rest / max(1, len(rest) - 2)
    ridge = _RIDGE * np.concatenate([a, b]).var(axis=0).mean() + 1e-12
    covariance += ridge * np.eye(a.shape[1])
    difference = mean_b - mean_a
    return np.linalg.solve(covariance, difference), (mean_a + mean_b) / 2, difference


class _Labelled:
    """Windows of the fit with labels, whose states are compared."""

    def __init__(self, points: Floats, windows: _Windows, labels: Integers) -> None:
        self._points, self._windows, self.labels = points, windows, labels

    def members(self, labels: Integers, label: int) -> Integers:
        """Windows of a state away from changes, or all if they are few."""
        is_inside = np.ones(len(labels), dtype=bool)
        changes = self._windows.changes(labels)
        is_inside[changes] = is_inside[changes - 1] = False
        inside = np.flatnonzero((labels == label) & is_inside)
        return inside if len(inside) >= 3 else np.flatnonzero(labels == label)

    def direction(self, a: int, b: int) -> tuple[Floats, Floats] | None:
        """Linear discriminant of two states, and the middle; None without both."""
        rows = [self.members(self.labels, label) for label in (a, b)]
        if not all(map(len, rows)):
            return None
        return _direction(*(self._points[own] for own in rows))[:2]

    def distance(self, first: tuple[int, ...], second: tuple[int, ...]) -> float:
        """Difference of held-out scores of two sets of states, in their deviations."""
        labels = np.where(np.isin(self.labels, first), 0, -1)
        labels[np.isin(self.labels, second)] = 1
        own = [self.members(labels, side) for side in (0, 1)]
        if min(map(len, own)) < 2:
            return np.inf
        points = self._points[:, :_OF_DISTANCES]
        blocks = [np.arange(len(rows)) * min(_N_BLOCKS, len(rows)) // len(rows) for rows in own]
        scores = [np.zeros(len(rows)) for rows in own]
        for block in range(max(each.max() for each in blocks) + 1):
            held = [each == block for each in blocks]
            out = np.concatenate([rows[is_out] for rows, is_out in zip(own, held, strict=True)])
            near = np.concatenate([out - 1, out, out + 1])
            known = [rows[~np.isin(rows, near)] for rows in own]
            known = [
                rest if len(rest) else rows[~is_out]
                for rest, rows, is_out in zip(known, own, held, strict=True)
            ]
            weights, middle, difference = _direction(points[known[0]], points[known[1]])
            weights = weights / (np.sqrt(weights @ difference) + 1e-12)
            for side in (0, 1):
                scores[side][held[side]] = (points[own[side][held[side]]] - middle) @ weights
        n = sum(map(len, scores))
        spread = np.sqrt(sum(each.var() * len(each) for each in scores) / max(1, n - 2))
        return float((scores[1].mean() - scores[0].mean()) / (spread + 1e-12))

    def tree(self) -> list[tuple[float, list[tuple[int, ...]]]]:
        """Heights at which the nearest sets of states join, and the sets before each."""
        sets: list[tuple[int, ...]] = [(int(label),) for label in np.unique(self.labels)]
        known: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        steps: list[tuple[float, list[tuple[int, ...]]]] = []
        while len(sets) > 1:
            for pair in combinations(sets, 2):
                if pair not in known:
                    known[pair] = self.distance(*pair)
            nearest = min(combinations(sets, 2), key=lambda pair: known[pair])
            steps.append((known[nearest], list(sets)))
            joined = tuple(sorted(nearest[0] + nearest[1]))
            sets = [joined if one == nearest[0] else one for one in sets if one != nearest[1]]
        return [*steps, (np.inf, sets)]


def _joined_sets(
    tree: list[tuple[float, list[tuple[int, ...]]]], n_windows: int, n_states: int | None
) -> list[tuple[int, ...]]:
    """Sets of states that are one state."""
    if n_states is not None:
        return next(sets for _, sets in tree if len(sets) <= n_states)
    heights = [height for height, _ in tree[:-1]]
    if not heights:
        return tree[-1][1]
    # A state of one window has no distance.
    top = max([height for height in heights if np.isfinite(height)], default=np.inf)
    if top < _LEAST_HEIGHT:
        return tree[-1][1]
    if n_windows < _MANY or top == np.inf:
        return tree[0][1]
    least = max(_LEAST_DISTANCE, _SHARE * top)
    return next(sets for height, sets in tree if height >= least)


class WindowedHMM(BaseEstimator):
    """Hidden Markov model of shapes: states of windows, on rows (experimental).

    In heart beats, gaits and cycles of machines, the shape over a period makes the state,
    and single rows have no information.  The kernels of MiniRocket describe windows of two
    periods, and an :class:`~skihmm.HCRPHMM` finds the states of windows and infers the
    number of states.  Similar states are joined, and borders between segments are moved to
    single rows.

    Columns are numbers, measured at equal intervals.  The label of a row depends on the
    rows around the row.

    Parameters
    ----------
    estimator : HCRPHMM, default=None
        Model of the windows.  Each fit clones the model.  None:
        ``HCRPHMM(emission="student", transitions="persistent")``.
    period : int or "auto", default="auto"
        Rows of a period.  "auto": by the autocorrelation, if the period occurs 20 times or
        more.
    n_periods : float, default=2.0
        Length of a window in periods.
    n_components : int, default=5
        Number of principal components of a window in the model.
    max_windows : int or None, default=100
        Approximate largest number of windows.  Windows of long data are longer, not more.
    n_states : int or None, default=None
        Number of states after joins.  By default the distances decide.
    borders : bool, default=True
        Whether borders are moved to single rows.  Otherwise borders lie between centres of
        windows.
    random_state : int, RandomState instance or None, default=None
        Seed of the model of the windows.  By default the `random_state` of the estimator.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        States of the rows of the fit, numbered by first row.
    n_states_ : int
    period_ : int or None
        Rows of the period.  None without a period: the data then determine the length of
        windows.
    length_, step_ : int
        Rows of a window, and between the first rows of two.
    window_starts_ : ndarray of shape (n_windows,), int
    window_labels_ : ndarray of shape (n_windows,), int32
        States of `estimator_`.
    state_map_ : ndarray of shape (n_window_states + 1,), int
        State of every state of `estimator_`; the last one is the new state.
    join_heights_ : ndarray of shape (n_joins,)
        Distances at the joins of states, from the most similar states on, in standard
        deviations.  A distance of 2 to 3 is weak evidence of two states.
    estimator_ : HCRPHMM
        Fitted model of the windows.
    components_ : ndarray of shape (n_kept, n_kernels)
        Principal components of the windows.  `estimator_` uses the first components.
    mean_, scale_ : ndarray of shape (n_features,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if all names are strings.

    See Also
    --------
    skihmm.HCRPHMM : States of rows.

    Notes
    -----
    Fewer than 20 periods show no states.  A swinging amplitude makes further states, and
    shapes with a difference below the noise are one state.

    References
    ----------
    Dempster, Schmidt and Webb, "MiniRocket: A Very Fast (Almost) Deterministic Transform for Time
    Series Classification", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skihmm.windows import WindowedHMM
    >>> phase = np.arange(4000) / 40
    >>> X = np.where(phase // 25 % 2, np.sin(2 * np.pi * phase), 2 * (phase % 1) - 1)
    >>> X = X[:, None] + 0.2 * np.random.default_rng(0).normal(size=(4000, 1))
    >>> hmm = WindowedHMM(random_state=0).fit(X)
    >>> hmm.period_, hmm.n_states_
    (40, 2)
    >>> bool((abs(hmm.segments().start - [0, 1000, 2000, 3000]) < 40).all())
    True
    """

    def __init__(
        self,
        estimator: HCRPHMM | None = None,
        *,
        period: int | str = "auto",
        n_periods: float = 2.0,
        n_components: int = 5,
        max_windows: int | None = 100,
        n_states: int | None = None,
        borders: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.period = period
        self.n_periods = n_periods
        self.n_components = n_components
        self.max_windows = max_windows
        self.n_states = n_states
        self.borders = borders
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Tags: missing values are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # ---- fitting

    def fit(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> WindowedHMM:
        """Find states of windows and of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, one row per time step.  NaN is missing.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Sequence id of every row.  Windows lie in one sequence.
        lengths : array-like of shape (n_sequences,), optional
            Rows per sequence, instead of `groups`.

        Returns
        -------
        self : WindowedHMM

        Raises
        ------
        ValueError, TypeError
            If data or parameters have wrong types or values, if a column or all windows are
            missing, or if the fit has fewer states than `n_states`.

        Warns
        -----
        UserWarning
            If rows or periods are too few for states of windows.
        """
        check_ignored(y, X)
        fitted = clone(self)
        fitted._fit(X, groups, lengths)
        # An error leaves an earlier fit as it was.
        self.__dict__.update({k: v for k, v in vars(fitted).items() if k not in self.get_params()})
        if not hasattr(fitted, "feature_names_in_"):
            self.__dict__.pop("feature_names_in_", None)
        return self

    def _fit(self, X: MatrixLike, groups: VectorLike | None, lengths: VectorLike | None) -> None:
        n_components = check_integer("n_components", self.n_components, 1)
        check_flag("borders", self.borders)
        if self.n_states is not None:
            check_integer("n_states", self.n_states, 1)
        rows = self._read(X, reset=True)
        starts = starts_of_rows(X, len(rows), groups, lengths)
        is_empty = np.isnan(rows).all(axis=0)
        if is_empty.any():
            c = int(is_empty.argmax())
            label = getattr(self, "feature_names_in_", range(rows.shape[1]))[c]
            raise ValueError(
                f"Column {label!r} of X has no observed value; expected numbers. Leave it out."
            )
        self.mean_, spread = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        rows = (rows - self.mean_) / self.scale_
        self._set_lengths(rows, starts)
        seen = self._indicators(rows, starts, is_fit=True)
        windows = _Windows.of_sequences(starts, len(rows), self.length_, self.step_)
        shares, is_seen = _shares(seen, windows)
        if not is_seen.any():
            raise ValueError(
                f"All windows of {self.length_} rows have too many missing values: every missing "
                f"value hides {_TAPS} rows or more from a kernel. Fill in short gaps first."
            )
        are_known = np.isfinite(shares[is_seen])
        sums = np.where(are_known, shares[is_seen], 0.0).sum(axis=0)
        self._centre = sums / np.maximum(are_known.sum(axis=0), 1)
        centred = np.where(are_known, shares[is_seen] - self._centre, 0.0)
        _, sizes, components = np.linalg.svd(centred, full_matrices=False)
        n_kept = min(_MOST_COMPONENTS, max(1, int((sizes > 1e-6 * sizes[0]).sum())))
        self.components_ = components[:n_kept]
        self._n_observed = min(n_components, n_kept)
        points = self._points(shares)
        self._unit = float(points[is_seen, 0].std()) or 1.0
        if self.estimator is None:
            self.estimator_ = HCRPHMM(emission="student", transitions="persistent")
        else:
            self.estimator_ = clone(self.estimator)
        if self.random_state is not None:
            self.estimator_.set_params(random_state=self.random_state)
        observed = self._observed(points, is_seen)
        with warnings.catch_warnings():
            for text in _OF_ROWS:
                warnings.filterwarnings("ignore", text, UserWarning)
            self.estimator_.fit(observed, groups=windows.sequence)
        self.window_starts_, self.window_labels_ = windows.begins, self.estimator_.labels_
        labels = self._join(points, windows)
        self.labels_ = self._path(seen, windows, labels, starts)
        self._of_fit = windows, starts, self._window_probs(observed, windows), library_of(X)

    if not TYPE_CHECKING:  # where it would be the type of every attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Say that attributes of a fit need it."""
            explain_attribute(self, name, "_of_fit" in self.__dict__)

    def _read(self, X: MatrixLike, reset: bool = False) -> Floats:
        owner = type(self).__name__
        if reset:
            columns, rows = Columns.of_fit(owner, X)
            self.n_features_in_ = columns.number
            if columns.names is not None:
                self.feature_names_in_ = columns.names
        else:
            names = getattr(self, "feature_names_in_", None)
            texts = None if names is None else list(names)
            columns = Columns(owner, self.n_features_in_, names, texts, None, [])
            rows = columns.read(X)
        numbers = NormalInverseGamma()
        name_columns(numbers, columns.texts)
        return as_floats(rows, numbers)

    def _set_lengths(self, rows: Floats, starts: Integers) -> None:
        """Set the period, the lengths of windows and the dilations of kernels."""
        n = len(rows)
        n_periods = check_positive("n_periods", self.n_periods)
        if isinstance(self.period, str):
            check_choice("period", self.period, ("auto",))
            self.period_ = _find_period(rows, starts)
        else:
            self.period_ = check_integer("period", self.period, 2)
        if n < _LEAST_ROWS:
            warn_caller(
                f"X has {n} rows; states of windows need {_LEAST_ROWS} or more, with "
                f"{_OCCURRENCES} periods."
            )
        elif self.period_ is not None and n < _OCCURRENCES * self.period_:
            warn_caller(
                f"X holds {n // self.period_} periods of {self.period_} rows; states of windows "
                f"need {_OCCURRENCES} or more. Windows are shorter therefore."
            )
        period = self.period_ or max(_OCCURRENCES, n // 200)
        self._n_smoothed = max(_LEAST_PERIOD, min(period, n // _OCCURRENCES))
        wanted = int(max(_LEAST_LENGTH, n_periods * self._n_smoothed))
        length, step = wanted, wanted // 2
        if self.max_windows is not None:
            most = check_integer("max_windows", self.max_windows, 1)
            if n > most * step:
                step = -(-n // most)
                length = 2 * step
        longest = int(np.diff([*starts, n]).max())
        self.length_ = max(1, min(length, n // 8, longest))
        self.step_ = max(1, min(step, n // 16))
        # Longer windows have the kernels of one or two periods.
        reach = max(1, (min(wanted, n // 8) - 1) // (_TAPS - 1))
        self._dilations = np.unique(np.round(np.geomspace(1, reach, _N_DILATIONS)).astype(int))

    def _indicators(self, rows: Floats, starts: Integers, is_fit: bool = False) -> _Rows:
        """Whether kernels exceed their biases, which a fit sets to quantiles."""
        n, n_columns = rows.shape
        n_features = len(_KERNELS) * len(self._dilations)
        if is_fit:
            self._biases = np.zeros(n_features, dtype=np.float32)
        is_missing = np.isnan(rows)
        x = np.where(is_missing, 0.0, rows).astype(np.float32)
        each = np.searchsorted(starts, np.arange(n), side="right")
        first, last = starts[each - 1], np.append(starts[1:], n)[each - 1] - 1
        above = np.empty((n_features, n), dtype=bool)
        group = np.empty(n_features, dtype=np.intp)
        is_known = None
        if is_missing.any():
            is_known = np.empty((len(self._dilations) * n_columns, n), dtype=bool)
        offsets = np.arange(_TAPS) - _TAPS // 2
        for i, dilation in enumerate(self._dilations.tolist()):
            # Values at the ends of a sequence go on.
            taps = np.clip(np.arange(n) + dilation * offsets[:, None], first, last)
            for c in range(n_columns):
                values, g = x[taps, c], i * n_columns + c
                total, own = values.sum(axis=0), None
                if is_known is not None:
                    own = is_known[g] = ~is_missing[taps, c].any(axis=0)
                # Kernels take turns with the columns.
                for k in range((c - dilation) % n_columns, len(_KERNELS), n_columns):
                    f = i * len(_KERNELS) + k
                    y = 3 * values[_KERNELS[k]].sum(axis=0) - total
                    group[f] = g
                    if is_fit:
                        self._biases[f] = _bias(y if own is None else y[own], f)
                    np.greater(y, self._biases[f], out=above[f])
                    if own is not None:
                        above[f] &= own
        return _Rows(above, is_known, group)

    def _points(self, shares: Floats) -> Floats:
        """Components of windows; by least squares where kernels are unknown."""
        centred, components = shares - self._centre, self.components_.T
        are_known = np.isfinite(centred)
        points = np.where(are_known, centred, 0.0) @ components
        for i in np.flatnonzero(~are_known.all(axis=1)):
            own = are_known[i]
            points[i] = np.linalg.lstsq(components[own], centred[i, own], rcond=None)[0]
        return points

    def _observed(self, points: Floats, is_seen: Flags) -> Floats:
        """What the model sees of the components of windows; NaN of missing ones."""
        # Components have the unit of the first one, so that small ones stay small.
        observed = points[:, : self._n_observed] / self._unit
        return np.where(is_seen[:, None], observed, np.nan)

    def _join(self, points: Floats, windows: _Windows) -> Labels:
        """Labels of windows, in which similar states are joined."""
        found = self.window_labels_
        labels = _without_straddlers(found, points, windows)
        self._compared = _Labelled(points, windows, labels)
        tree = self._compared.tree()
        n_found = len(tree[0][1])
        if self.n_states is not None and self.n_states > n_found:
            raise ValueError(
                f"n_states={self.n_states}, but windows have {n_found} state"
                f"{'s' * (n_found > 1)}; expected no more. Shorter windows (n_periods=, "
                "max_windows=) or more components (n_components=) may show more states."
            )
        self.join_heights_ = np.array([height for height, _ in tree[:-1]])
        sets = _joined_sets(tree, len(labels), self.n_states)
        sets = sorted(sets, key=lambda own: int(np.isin(labels, own).argmax()))
        self.n_states_ = len(sets)
        number = {state: i for i, own in enumerate(sets) for state in own}
        joined = np.array([number[label] for label in labels.tolist()], dtype=np.int32)
        self._compared.labels = joined
        # A state of straddlers alone goes where most of its windows went.
        self.state_map_ = np.array(
            [
                number.get(state, int(np.bincount(joined[found == state]).argmax()))
                for state in range(self.estimator_.n_states_)
            ]
            + [self.n_states_],
            dtype=np.int32,
        )
        return joined

    # ---- rows

    def _path(self, seen: _Rows, windows: _Windows, labels: Labels, starts: Integers) -> Labels:
        """States of rows from states of windows."""
        n = seen.above.shape[1]
        path = np.empty(n, dtype=np.int32)
        changes = windows.changes(labels)
        centres, reach = windows.centres, self.length_
        for i, j, a, b in windows.spans(starts, n):
            own = changes[(changes > i) & (changes < j)]
            runs = np.array([i, *own, j])
            borders = [a]
            for left, c, right in zip(runs[:-2], own, runs[2:], strict=True):
                guess = int(centres[c - 1] + centres[c]) // 2
                # No farther than the middle of both runs.
                low = (centres[left] + guess) // 2 if left > i else a + reach // 4
                high = (centres[right - 1] + guess) // 2 if right < j else b - reach // 4
                low, high = max(int(low), guess - reach), min(int(high), guess + reach)
                row = self._border(seen, labels[c - 1], labels[c], low, high)
                borders.append(max(guess if row is None else row, borders[-1]))
            path[a:b] = np.repeat(labels[runs[:-1]], np.diff([*borders, b]))
        return path

    def _border(self, seen: _Rows, a: int, b: int, low: int, high: int) -> int | None:
        """Row between two rows where state `b` begins; None if nothing tells."""
        found = self._compared.direction(a, b) if self.borders else None
        if found is None or high - low < 3:
            return None
        weights, middle = found
        by_kernel = self.components_.T @ weights
        n, k = seen.above.shape[1], self._n_smoothed
        rows = np.arange(low, high)
        begins = np.clip(rows - k // 2, 0, n)
        stops = np.clip(rows - k // 2 + k, 0, n)
        near = slice(begins[0], stops[-1])
        scores = by_kernel.astype(np.float32) @ seen.above[:, near]
        if seen.is_known is not None:
            # A kernel that meets a missing value has its mean.
            means = np.bincount(seen.group, by_kernel * self._centre, len(seen.is_known))
            scores = scores + means @ ~seen.is_known[:, near]
        scores = scores - (by_kernel @ self._centre + middle @ weights)
        sums = np.concatenate([[0.0], np.cumsum(scores, dtype=float)])
        means = (sums[stops - near.start] - sums[begins - near.start]) / np.maximum(
            stops - begins, 1
        )
        return low + int(np.concatenate([[0.0], np.cumsum(means)]).argmin())

    def _window_probs(self, observed: Floats, windows: _Windows) -> Floats:
        """Probabilities of the joined states of windows."""
        found = np.asarray(self.estimator_.predict_proba(observed, groups=windows.sequence))
        probs = np.zeros((len(found), self.n_states_ + 1))
        for state, place in enumerate(self.state_map_.tolist()):
            probs[:, place] += found[:, state]
        return probs

    def _row_probs(self, probs: Floats, windows: _Windows, starts: Integers, n: int) -> Floats:
        """Probabilities of the states of rows, interpolated between centres of windows."""
        rows, found = np.arange(n), np.empty((n, probs.shape[1]))
        for i, j, a, b in windows.spans(starts, n):
            for k, column in enumerate(probs[i:j].T):
                found[a:b, k] = np.interp(rows[a:b], windows.centres[i:j], column)
        return found

    # ---- use

    def _encode(
        self, X: MatrixLike, groups: VectorLike | None, lengths: VectorLike | None
    ) -> tuple[_Rows, _Windows, NDArray[np.intp], Floats, Flags]:
        """New rows: kernels, windows, first rows of sequences, components, windows with rows."""
        check_is_fitted(self)
        rows = (self._read(X) - self.mean_) / self.scale_
        starts = starts_of_rows(X, len(rows), groups, lengths)
        seen = self._indicators(rows, starts)
        windows = _Windows.of_sequences(starts, len(rows), self.length_, self.step_)
        shares, is_seen = _shares(seen, windows)
        return seen, windows, starts, self._points(shares), is_seen

    def predict(
        self,
        X: MatrixLike,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Labels:
        """States of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        states : ndarray of shape (n_samples,), int32
            ``n_states_`` is the new state.
        """
        return self._decoded(*self._encode(X, groups, lengths))

    def _decoded(
        self, seen: _Rows, windows: _Windows, starts: Integers, points: Floats, is_seen: Flags
    ) -> Labels:
        """States of encoded rows."""
        observed = self._observed(points, is_seen)
        found = self.estimator_.predict(observed, groups=windows.sequence)
        labels = self.state_map_[_without_straddlers(found, points, windows)]
        return self._path(seen, windows, labels, starts)

    def predict_proba(
        self,
        X: MatrixLike,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Floats:
        """Probabilities of the states of rows.

        Probabilities of windows are interpolated between the centres of windows, so the
        probabilities of a row also depend on the next ``length_ // 2`` rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        probs : ndarray of shape (n_samples, n_states + 1)
            The last state is new.
        """
        seen, windows, starts, points, is_seen = self._encode(X, groups, lengths)
        probs = self._window_probs(self._observed(points, is_seen), windows)
        return self._row_probs(probs, windows, starts, seen.above.shape[1])

    def fit_predict(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Labels:
        """Fit, and return ``labels_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        states : ndarray of shape (n_samples,), int32
        """
        return self.fit(X, y, groups=groups, lengths=lengths).labels_

    def score(
        self,
        X: MatrixLike,
        y: None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> float:
        """Score of the components of windows by the model of the windows.

        Compare scores of models of the same windows only, because other parameters of this
        class make other windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        groups, lengths : array-like, optional
            See :meth:`fit`.

        Returns
        -------
        score : float
            Nats per window (see :meth:`skihmm.HCRPHMM.score`).
        """
        check_ignored(y, X)
        _, windows, _, points, is_seen = self._encode(X, groups, lengths)
        return self.estimator_.score(self._observed(points, is_seen), groups=windows.sequence)

    def segments(
        self,
        X: MatrixLike | None = None,
        *,
        groups: VectorLike | None = None,
        lengths: VectorLike | None = None,
    ) -> Any:
        """Segments of rows: one row for every stay in a state.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            By default the rows of the fit.
        groups, lengths : array-like, optional
            Sequences of X (see :meth:`fit`).

        Returns
        -------
        segments : numpy.recarray or data frame
            ``sequence``, ``start``, ``stop``, ``n_steps``, ``state`` and ``probability``
            (see :meth:`skihmm.HCRPHMM.segments`).  A data frame if X is a data frame.
        """
        if X is None:
            check_is_fitted(self)
            if groups is not None or lengths is not None:
                raise ValueError(
                    "groups or lengths were given without X: the rows of the fit have those of "
                    "the fit. Leave them out, or pass X too."
                )
            windows, starts, of_windows, library = self._of_fit
            path = self.labels_
        else:
            seen, windows, starts, points, is_seen = self._encode(X, groups, lengths)
            path = self._decoded(seen, windows, starts, points, is_seen)
            of_windows = self._window_probs(self._observed(points, is_seen), windows)
            library = library_of(X)
        probs = self._row_probs(of_windows, windows, starts, len(path))
        own = probs[np.arange(len(path)), path]
        return segment_table(path, own, starts, groups=groups, X=X, library=library)


def _bias(values: Floats, f: int) -> float:
    """Quantile of the output of a kernel, another one for every kernel."""
    if not len(values):
        return 0.0
    some = values[:: max(1, len(values) // _ROWS_OF_BIASES)]
    return float(np.quantile(some, 0.1 + 0.8 * ((f + 1) * _GOLDEN % 1)))


def _shares(seen: _Rows, windows: _Windows) -> tuple[Floats, Flags]:
    """Shares of the rows of windows above biases, and windows of which half is known.

    A share of less than half of the rows is NaN.
    """

    def counts(rows: Flags) -> Floats:
        sums = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        return (sums[windows.stops] - sums[windows.begins]).astype(float)

    lengths = (windows.stops - windows.begins).astype(float)
    n_above = np.array([counts(rows) for rows in seen.above])
    if seen.is_known is None:
        return (n_above / lengths).T, np.ones(len(lengths), dtype=bool)
    n_known = np.array([counts(rows) for rows in seen.is_known])[seen.group]
    are_known = n_known >= np.maximum(lengths / 2, 1)
    shares = np.where(are_known, n_above / np.maximum(n_known, 1), np.nan)
    return shares.T, are_known.mean(axis=0) >= 0.5


def _without_straddlers(labels: Array, points: Floats, windows: _Windows) -> Array:
    """Labels of windows without states that are changes, sequence by sequence."""
    parts = (np.split(np.asarray(each), windows.starts[1:]) for each in (labels, points))
    return np.concatenate([_split_straddlers(*part) for part in zip(*parts, strict=True)])
