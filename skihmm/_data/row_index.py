"""Times and numbers in the index of a data frame, and what their steps tell of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skihmm._data.validation import shown, warn_caller
from skihmm._typing import Array, Flags, Floats

# Steps of an index are holes beyond so many median steps, and so many interquartile ranges above
# one; in more than this share of the steps holes are how the data were recorded.
_HOLE, _HOLE_SPREADS, _MANY_HOLES = 5.0, 20.0, 0.1
# Fewest holes that can repeat, and the relative distance of equal lengths.
_FEWEST_USUAL, _ALIKE = 4, 0.1
# Distance from a multiple of the median step, and share of larger multiples where rows are lost.
_NEAR_MULTIPLE, _MANY_LOST = 0.1, 0.05


def _time_index(X: object) -> Any:
    """Index of a data frame, if it has times, with their zone and frequency; otherwise None."""
    index: Any = getattr(X, "index", None)
    # A period is represented by its start.
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    if getattr(getattr(index, "dtype", None), "kind", None) != "M":
        return None
    # An index of Arrow's times is no DatetimeIndex.
    return index if hasattr(index, "tz") else import_module("pandas").DatetimeIndex(index)


def row_times(X: object, *, local: bool = True) -> NDArray[np.datetime64] | None:
    """Times of the rows of a data frame; None if its index has none.

    Without `local`, times in a zone are in UTC, where no hour is repeated.
    """
    index = _time_index(X)
    if index is None:
        return None
    if index.tz is not None:
        index = index.tz_localize(None) if local else index.tz_convert(None)
    return np.asarray(index.to_numpy())


def forecast_times(X: object, first: int, n_steps: int) -> NDArray[np.datetime64] | None:
    """Times of the rows from `first` on, and of the steps after the last one.

    Times go on at the frequency of the index, without a frequency by the median time between rows.
    None if the index has no times, or they do not increase, or end before the steps do.
    """
    index = _time_index(X)
    if index is None:
        return None
    index = index[first:]
    pandas = import_module("pandas")
    freq = index.freq or pandas.DatetimeIndex(index, freq="infer").freq
    if freq is None and len(index) > 1:
        freq = index.to_series().diff().median()
    if not (freq and index.is_monotonic_increasing):
        return None
    try:
        coming = pandas.date_range(index[-1], periods=n_steps + 1, freq=freq)
    except (ValueError, OverflowError):  # OutOfBoundsDatetime is a ValueError
        return None
    return row_times(SimpleNamespace(index=index.append(coming[1:])))


def row_index(X: object) -> Array | None:
    """Times, or numbers, in the index of a data frame; None if it has neither."""
    if not (hasattr(X, "iloc") and hasattr(X, "index") and hasattr(X.index, "dtype")):
        return None
    times = row_times(X, local=False)
    if times is not None:
        return times
    # pandas' own numbers can be missing.
    if X.index.dtype.kind not in "iuf" or X.index.isna().any():
        return None
    kind = np.float64 if X.index.dtype.kind == "f" else np.int64
    return np.asarray(X.index.to_numpy().astype(kind))


def time_texts(times: NDArray[np.datetime64], coarsest: str = "Y") -> list[str]:
    """Format times in the coarsest unit of which all times are multiples."""
    units = ("Y", "M", "D", "m", "s", "ms", "us", "ns")
    for unit in units[units.index(coarsest) :]:
        rounded = times.astype(f"M8[{unit}]")
        if ((rounded == times) | np.isnat(times)).all():
            break
    return [text.replace("T", " ") for text in np.datetime_as_string(rounded)]


def warn_of_index(X: object, starts: NDArray[np.intp], are_named: bool) -> None:
    """Warn of an index that contradicts the sequences, which the user named or not."""
    level = None if are_named else _series_level(getattr(X, "index", None))
    if level is not None:
        warn_caller(
            f"The index of X has two levels, and values of level {level} repeat: several series? "
            f"groups=X.index.get_level_values({level}), where the rows of every series follow one "
            "another. Without groups the model takes all rows for consecutive time steps."
        )
    index = row_index(X)
    text = None if index is None else describe_steps(index, starts)
    if text:
        warn_caller(text)


def _series_level(index: Any) -> int | None:
    """Level of an index of two levels that has ids of several series; None without it."""
    if getattr(index, "nlevels", 1) != 2:
        return None
    level = int(index.levels[0].dtype.kind == "M")
    ids = index.get_level_values(level)
    return level if ids.has_duplicates and ids.nunique() > 1 else None


def describe_steps(index: Array, starts: NDArray[np.intp]) -> str | None:
    """Warning of an index that repeats, is out of order, or has holes; None if it does not.

    Steps between rows are counted in median steps of their sequence.  Numbers may decrease.
    Slicing keeps the index of a data frame, so that holes reveal training sets of KFold.
    """
    which = np.repeat(np.arange(len(starts)), np.diff([*starts, len(index)]))
    rows = np.flatnonzero(which[1:] == which[:-1]) + 1
    steps = (index[rows] - index[rows - 1]).astype(float)
    # Nanoseconds overflow after 292 years.
    steps = np.copysign(steps, np.where(index[rows] < index[rows - 1], -1.0, 1.0))
    # The index of a sequence with one value is a subject or a day.
    moves = np.bincount(which[rows], steps != 0, len(starts)) > 0
    rows, steps = rows[moves[which[rows]]], steps[moves[which[rows]]]
    if not len(steps) or not np.isfinite(steps).all():
        return None
    # Most indices are regular, and long ones too.
    changes = (steps[1:] != steps[:-1]) & (which[rows[1:]] == which[rows[:-1]])
    if not changes.any() and (steps > 0).all():
        return None
    of, n_steps = np.unique(which[rows], return_inverse=True, return_counts=True)[1:]
    are_times = index.dtype.kind == "M"
    if not are_times:
        steps = np.where((2 * np.bincount(of, steps < 0) > n_steps)[of], -steps, steps)
    taken = "but the model takes rows for consecutive time steps"
    groups = "pass groups, one sequence id per row" if len(starts) == 1 else ""
    follow = "If the rows do follow one another, say so by X.reset_index(drop=True)."
    if (steps <= 0).any():
        repeats = _repeats(index, np.where(moves[which], which, -1))
        if len(repeats):
            first, second = repeats[0]
            series = f" If there are several series, put the rows of each together, and {groups}."
            return (
                f"The index of X has {_texts(index[[first]])[0]} twice, in rows {first} and "
                f"{second}{_more(len(repeats))}, {taken}. Leave out rows that were loaded twice: "
                f"X[~X.index.duplicated()].{' Give local times their zone.' * are_times}"
                f"{series if groups else ''}"
            )
        several = f" If several sequences follow one another, {groups}." if groups else ""
        return (
            f"The index of X is out of order {_between(index, rows[steps < 0])}, {taken}. Sort "
            f"them: X.sort_index().{several} {follow}"
        )
    middle = np.cumsum(n_steps) - n_steps + np.stack([n_steps - 1, n_steps]) // 2
    ratios = steps / steps[np.lexsort((steps, of))][middle].mean(axis=0)[of]
    largest = _between(index, rows[[ratios.argmax()]])
    limit = max(_HOLE, 1 + _HOLE_SPREADS * np.subtract(*np.percentile(ratios, [75, 25])))
    is_hole = ratios > limit
    if is_hole.mean() > _MANY_HOLES:
        return (
            f"The index of X has {is_hole.sum()} steps of more than {limit:.0f} times the usual "
            f"one, the largest {largest}, {taken}."
        )
    fill = f"X.{'asfreq' if are_times else 'reindex'}(...)"
    folds = ""
    if index.dtype.kind == "i" and np.median(steps) == 1:
        folds = (
            " If this is cross-validation, KFold does it: use TimeSeriesSplit for one sequence, "
            "GroupKFold and groups for several, which reach fit and score only after "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
    multiples = np.maximum(np.rint(ratios), 1)
    is_multiple = np.abs(ratios - multiples) < _NEAR_MULTIPLE
    is_lost = is_multiple & (multiples > 1) & ~is_hole
    share = is_lost.mean()
    if share > _MANY_LOST and is_multiple.mean() > 0.5 and _are_at_random(is_lost):
        return (
            f"{100 * share:.0f} % of the steps in the index of X are two or more usual steps "
            f"long, the largest {largest}, as where rows are lost, {taken}: {fill} inserts the "
            f"lost rows, as missing.{folds}"
        )
    if is_hole.any() and not _are_usual(ratios[is_hole]):
        return (
            f"The index of X goes {_between(index, rows[is_hole])}, a longer step than elsewhere, "
            f"{taken}. Fill the hole with missing rows, as by {fill}"
            f"{', or ' * bool(groups)}{groups}. {follow}{folds}"
        )
    return None


@dataclass(frozen=True)
class IndexEnd:
    """First and last index value of the rows of a sequence, and the largest step between rows.

    `is_default` if the frame has the index of a new frame, which says nothing of earlier rows.
    """

    first: Any
    last: Any
    step: float
    is_default: bool

    @property
    def goes_up(self) -> bool:
        """Whether values do not decrease, as numbers may."""
        return bool(self.last >= self.first)

    def step_from(self, before: IndexEnd) -> float:
        """Step from the last row of earlier rows; NaN if values cannot be compared."""
        kinds = {"M" if end.first.dtype.kind == "M" else "n" for end in (self, before)}
        if self.is_default or len(kinds) > 1 or not (self.goes_up and before.goes_up):
            return np.nan
        # One value in all rows is a subject or a day.
        if before.first == self.last:
            return np.nan
        return float(_lengths(np.array([self.first - before.last]))[0])

    def after(self, before: IndexEnd | None) -> IndexEnd | None:
        """End of the sequence that these rows continue."""
        if self.is_default or before is None:
            return None if self.is_default else self
        steps = [self.step, before.step, self.step_from(before)]
        return replace(self, first=before.first, step=float(np.nanmax(steps)))


def _lengths(steps: Array) -> Floats:
    """Lengths of steps; of steps of time, whose units differ between calls, in seconds."""
    return steps / np.timedelta64(1, "s") if steps.dtype.kind == "m" else steps.astype(float)


def index_ends(X: object, starts: NDArray[np.intp]) -> tuple[IndexEnd | None, ...]:
    """What the index says of every sequence; None without times or numbers in the index."""
    index = row_index(X)
    if index is None:
        return (None,) * len(starts)
    is_default = index.dtype.kind == "i" and bool((index == np.arange(len(index))).all())
    found = []
    for start, stop in zip(starts, [*starts[1:], len(index)], strict=True):
        values = index[start:stop]
        largest = float(np.nanmax(_lengths(np.diff(values)), initial=0.0))
        found.append(IndexEnd(values[0], values[-1], largest, is_default))
    return tuple(found)


def warn_of_joins(
    before: Sequence[IndexEnd | None], after: Sequence[IndexEnd | None], starts: NDArray[np.intp]
) -> None:
    """Warn of sequences that do not go on where they ended, in a call with these starts."""
    found = []
    for one, other, row in zip(before, after, starts.tolist(), strict=True):
        step = np.nan if one is None or other is None else other.step_from(one)
        usual = 0.0 if one is None or other is None else max(one.step, other.step)
        if one and other and (step <= 0 or (usual and step > _HOLE * usual)):
            found.append((one.last, other.first, row))
    if found:
        last, first, row = found[0]
        texts = _texts(np.array([last])) + _texts(np.array([first]))
        warn_caller(
            f"The index of X does not follow the earlier rows: they end at {texts[0]}, and X goes "
            f"on at {texts[1]} (row {row}){_more(len(found))}, but the model takes rows for "
            "consecutive time steps. Leave out rows that were added before, fill a hole with "
            "missing rows, or begin a new sequence by another id in groups. If the rows do follow "
            "one another, say so by X.reset_index(drop=True)."
        )


def _texts(values: Array) -> list[str]:
    """Format values of an index."""
    if values.dtype.kind == "M":
        return time_texts(values, "D")
    return [shown(value) for value in values.tolist()]


def _more(n_places: int) -> str:
    return f" (and at {n_places - 1} more places)" if n_places > 1 else ""


def _between(index: Array, rows: NDArray[np.intp]) -> str:
    """Where the first of the steps into rows is."""
    row = int(rows[0])
    before, after = _texts(index[row - 1 : row + 1])
    return f"from {before} (row {row - 1}) to {after} (row {row}){_more(len(rows))}"


def _repeats(index: Array, sequence: NDArray[np.intp]) -> NDArray[np.intp]:
    """Pairs of rows with the same value in one sequence, by the second row."""
    order = np.lexsort((index, sequence))
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    first, second = pairs.T
    same = (index[first] == index[second]) & (sequence[first] == sequence[second])
    pairs = pairs[same & (sequence[first] >= 0)]
    return np.asarray(pairs[pairs[:, 1].argsort()])


def _are_usual(lengths: Floats) -> bool:
    """Whether holes repeat: half of them have one or two lengths, as nights and weekends."""
    left, n_usual = np.sort(lengths), 0
    if len(left) < _FEWEST_USUAL:
        return False
    for _ in range(2):
        first = np.searchsorted(left, left * (1 - _ALIKE))
        last = np.searchsorted(left, left * (1 + _ALIKE), side="right")
        n_alike, best = last - first, (last - first).argmax()
        # A length that occurs once does not repeat.
        n_usual += n_alike[best] if n_alike[best] > 1 else 0
        left = np.delete(left, slice(first[best], last[best]))
        if not len(left):
            break
    return bool(2 * n_usual >= len(lengths))


def _are_at_random(mask: Flags) -> bool:
    """Whether places are irregular, as weekends are not."""
    places = np.flatnonzero(mask)
    if len(places) < _FEWEST_USUAL:
        return bool(mask.mean() <= _MANY_HOLES)
    runs = np.diff(places)
    return bool(runs.std() > 0.5 * runs.mean())
