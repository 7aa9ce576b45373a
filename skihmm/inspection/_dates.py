"""Axes of steps with ticks at dates, by ``matplotlib.dates``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num, num2date
from matplotlib.ticker import Formatter, Locator
from numpy.typing import NDArray

from skihmm._data.row_index import time_texts
from skihmm._typing import Array, Flags, Floats
from skihmm.inspection._room import DIGIT_WIDTH, size_in_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axis import Axis, XAxis

# Characters of a tick, with the gap to the next tick.
_TICK_WIDTH = 7
_MOST_TICKS = 10
# Quarters between two ticks.
_INTERVALS = (1, 2, *(4 * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)))


class Calendar(ABC):
    """Times as increasing numbers, and the numbers among them that get ticks."""

    values: Floats
    # What all ticks have in common, written once beside the axis.
    common = ""

    @abstractmethod
    def ticks(self, low: float, high: float, n_ticks: int) -> Floats:
        """Choose at most about `n_ticks` round numbers of an interval."""

    def begin_months(self, values: Floats) -> Flags:
        """Which of the numbers name a month, so that their ticks stay."""
        return np.zeros(len(values), dtype=bool)

    @abstractmethod
    def texts(self, values: Floats) -> list[str]:
        """Text of every tick."""


class Days(Calendar):
    """Times as matplotlib's days."""

    def __init__(self, times: NDArray[np.datetime64]) -> None:
        self.values = np.asarray(date2num(times), dtype=float)
        self._formatter = ConciseDateFormatter(AutoDateLocator())

    def ticks(self, low: float, high: float, n_ticks: int) -> Floats:
        locator = AutoDateLocator(minticks=min(3, n_ticks), maxticks=n_ticks)
        found = locator.tick_values(num2date(low), num2date(high))
        return np.asarray(found, dtype=float)

    def texts(self, values: Floats) -> list[str]:
        found = self._formatter.format_ticks(list(values))
        self.common = self._formatter.get_offset()
        # What is common names the last month; days of another month begin with its name.
        first = num2date(values[0]) if found else None
        if first and found[0] == f"{first:%d}" and f"{first:%b}" not in self.common:
            found[0] = f"{first:%b-%d}"
        return found

    def begin_months(self, values: Floats) -> Flags:
        return np.array([num2date(value).day == 1 for value in values], dtype=bool)


class Quarters(Calendar):
    """Times as numbers of quarters."""

    def __init__(self, times: NDArray[np.datetime64]) -> None:
        self.values = (times.astype("M8[M]").astype(int) // 3).astype(float)

    def ticks(self, low: float, high: float, n_ticks: int) -> Floats:
        fitting = [n for n in _INTERVALS if (high - low) / n <= n_ticks]
        interval = fitting[0] if fitting else _INTERVALS[-1]
        return np.arange(np.ceil(low / interval), high // interval + 1) * interval

    def texts(self, values: Floats) -> list[str]:
        years, quarters = np.divmod(np.asarray(values, dtype=int), 4)
        if not quarters.any():
            return [str(1970 + year) for year in years]
        return [f"{1970 + year}Q{q + 1}" for year, q in zip(years, quarters, strict=True)]


def are_quarters(times: NDArray[np.datetime64]) -> bool:
    """Whether times are the first, or the last, days of quarters, and not of years alone."""
    days, months = times.astype("M8[D]"), times.astype("M8[M]")
    begins = (days == months).all()
    if not (begins or (days + 1 == months + 1).all()):
        return False
    steps = np.diff(months.astype(int))
    return bool((steps % 3 == 0).all() and (steps % 12 != 0).any())


def calendar_of(times: NDArray[np.datetime64]) -> Calendar | None:
    """Calendar of times; None if there are fewer than two, or they do not increase."""
    if len(times) < 2 or np.isnat(times).any() or (np.diff(times) <= np.timedelta64(0)).any():
        return None
    return Quarters(times) if are_quarters(times) else Days(times)


class StepDates(Locator):
    """Ticks at dates, between two steps if no step has the date.

    `first` is the position of the first time on the axis.
    """

    axis: Axis

    def __init__(self, calendar: Calendar, first: int) -> None:
        self.calendar, self.first = calendar, first
        # Of the last ticks.
        self.places: Array = np.empty(0)
        self.values: Floats = np.empty(0)

    def __call__(self) -> Sequence[float]:
        low, high = self.axis.get_view_interval()
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        times = self.calendar.values
        ends = np.clip(np.rint([vmin, vmax]) - self.first, 0, len(times) - 1)
        first, last = ends.astype(int)
        n_ticks = max(2, min(self._room(), _MOST_TICKS))
        found = self.calendar.ticks(times[first], times[last], n_ticks)
        found = found[(found >= times[first]) & (found <= times[last])]
        places = np.interp(found, times, np.arange(len(times)))
        # Where rows are missing, dates would run into one another.
        least = (last - first) / (1.5 * n_ticks)
        kept: list[int] = []
        begins = self.calendar.begin_months(found)
        for i, place in enumerate(places):
            if kept and begins[i] and place - places[kept[-1]] <= least and not begins[kept[-1]]:
                kept.pop()
            if not kept or place - places[kept[-1]] > least:
                kept.append(i)
        self.places, self.values = places[kept] + self.first, found[kept]
        return list(self.places)

    def _room(self) -> int:
        """How many ticks have room."""
        label = self.axis.get_major_ticks(1)[0].label1
        size = label.get_fontproperties().get_size_in_points()
        return int(size_in_points(self.axis.axes)[0] / (DIGIT_WIDTH * size * _TICK_WIDTH))


class StepDateFormatter(Formatter):
    """Short texts of ticks at dates, and whole texts of all other steps."""

    def __init__(self, dates: StepDates, times: NDArray[np.datetime64]) -> None:
        self._dates, self._texts = dates, time_texts(times)

    def __call__(self, x: float, pos: int | None = None) -> str:
        i = round(x) - self._dates.first
        return self._texts[i] if 0 <= i < len(self._texts) else ""

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        dates = self._dates
        if not np.array_equal(values, dates.places):
            return [self(value) for value in values]
        return dates.calendar.texts(dates.values)

    def get_offset(self) -> str:
        return self._dates.calendar.common


def set_dates(axes: Sequence[XAxis], times: NDArray[np.datetime64], first: int) -> bool:
    """Put dates on axes of steps from position `first` on, and return whether times increase."""
    calendar = calendar_of(times)
    if calendar is None:
        return False
    for axis in axes:
        dates = StepDates(calendar, first)
        axis.set_major_locator(dates)
        axis.set_major_formatter(StepDateFormatter(dates, times))
    return True
