"""Axes, colours and labels of all displays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skihmm._data.row_index import time_texts
from skihmm._data.validation import as_array, check_integer
from skihmm._draws import PosteriorDraws
from skihmm._hcrp_hmm import HCRPHMM
from skihmm._texts import printable, state_names
from skihmm._typing import Array, Floats, NamedValues
from skihmm._using.fitted import FittedModel
from skihmm.inspection._room import (
    DIGIT_WIDTH,
    fitted_text,
    shortened,
    size_in_points,
    text_width,
)
from skihmm.posterior import Regimes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.typing import ColorType


# The first seven are from Okabe and Ito; further colours are darker and lighter variants, each the
# furthest from all colours before it as seen with normal vision, with deuteranopia and with
# protanopia (the least distance in CIELAB).
_COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442",
    "#4B2100", "#1A3646", "#F4D48C", "#F4D7BF", "#B3DDF5", "#005F45", "#8A3D00",
    "#004A74", "#E28E4C", "#8F5575", "#003728", "#F4EB71", "#E0AFCA", "#EEBF99",
    "#E8A673", "#EEBC4C", "#4095C5", "#40B696", "#6A2F00", "#89CBF0", "#387597",
    "#808080", "#F8E2B2", "#003959", "#F1CA73",
)  # fmt: skip
# Lines on white: without the pale ones.
_LINE_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4B2100", "#808080"
)  # fmt: skip
LINE_STYLES = ("-", "--", ":", "-.")

# Colours of a smaller luminance are dark.
_DARK = 0.07

# The new state has no colour.
_NEW_COLOUR = "#D9D9D9"
_NEW_LABEL = "new"

# Longer texts of users beside a picture, and longer names of states, are cut.
_LONGEST_TEXT, _LONGEST_NAME = 24, 16
# Names of an x-axis that do not fit side by side are oblique, and at most so long in points;
# many names are steeper.
_OBLIQUE, _ANGLES = 130.0, (25.0, 40.0)

# Leading digits of the distances of ticks.
ROUND = (1, 2, 2.5, 5, 10)

# Perceptually uniform, and the same with colour blindness.
SEQUENTIAL = "cividis"


def import_pyplot(caller: str) -> ModuleType:
    """Import ``matplotlib.pyplot``, or raise an error that explains its installation."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} requires matplotlib. You can install it with `pip install matplotlib`."
        ) from error
    return plt


def ink(level: float = 0.0) -> tuple[float, float, float]:
    """Colour of lines and text (0), of the background (1), or between, by matplotlib's style."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    text, face = (np.array(to_rgb(rcParams[name])) for name in ("text.color", "axes.facecolor"))
    red, green, blue = ((1 - level) * text + level * face).tolist()
    return red, green, blue


# Keywords for matplotlib's plot.
Look: TypeAlias = Mapping[str, Any]

# Columns of X: one or several, by place or name.
Columns: TypeAlias = str | int | Sequence[str | int]


def check_fitted_hmm(hmm: object) -> HCRPHMM:
    """Check that an object is a fitted HCRPHMM."""
    if not isinstance(hmm, HCRPHMM):
        remedy = " Pass its last step." if hasattr(hmm, "named_steps") else ""
        raise TypeError(f"hmm is a {type(hmm).__name__}; expected a fitted HCRPHMM.{remedy}")
    check_is_fitted(hmm)
    return hmm


def check_fitted_chain(hmm: object) -> HCRPHMM | Regimes:
    """Check that an object is a fitted HCRPHMM, or regimes of it."""
    return hmm if isinstance(hmm, Regimes) else check_fitted_hmm(hmm)


def check_draws(draws: object) -> None:
    """Check that an object is the posterior draws of a fit."""
    if not isinstance(draws, PosteriorDraws):
        raise TypeError(
            f"draws is a {type(draws).__name__}; expected `draws_` of a fitted HCRPHMM."
        )


def column_names(fitted: FittedModel) -> list[str]:
    """Names of the columns of X; "column 0", ... if the data of the fit had none."""
    columns = fitted.columns
    return columns.texts or [f"column {c}" for c in range(columns.number)]


def as_text(text: str, longest: int = _LONGEST_TEXT) -> str:
    """A user's text as matplotlib writes it: in one line, without formulas, not too long."""
    return shortened(printable(text), longest).replace("$", r"\$")


def set_label(axis: XAxis | YAxis, text: str, n_lines: int = 2) -> None:
    """Label an axis with a text that is wrapped to its length; the layout has to be known."""
    width, height = size_in_points(axis.axes)
    room = width if axis.axis_name == "x" else height
    size = axis.label.get_fontproperties().get_size_in_points()
    axis.set_label_text(fitted_text(text, room, size, n_lines))


def places_of_columns(
    columns: Columns | None, names: Sequence[str], argument: str = "columns"
) -> list[int]:
    """Indices of columns that are given by index or name.

    None selects all of them. `argument` is the parameter's name, for errors.
    """
    if columns is None:
        return list(range(len(names)))
    every = [columns] if isinstance(columns, str | int | np.integer) else columns
    places = []
    for column in every:
        place: object = list(names).index(str(column)) if column in names else column
        if isinstance(place, str):
            raise ValueError(
                f"{argument} holds {column!r}; expected places, or names from "
                f"{', '.join(map(repr, names))}."
            )
        place = check_integer(argument, place, 0)
        if place >= len(names):
            raise ValueError(
                f"{argument} holds {place}, but there are {len(names)} columns, counted from 0."
            )
        places.append(place)
    return places


def state_colour(k: int, new: int | None = None) -> str:
    """Colour of a state; from the 33rd on they repeat.  `new` is the label of the new state.

    On a dark background dark colours are lighter, so that lines are seen.
    """
    colour = _NEW_COLOUR if k == new else _COLOURS[k % len(_COLOURS)]
    if _luminance(colour) > _DARK or _luminance(ink(1)) > _DARK:
        return colour
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (0.7 * np.array(to_rgb(colour)) + 0.3 * np.array(ink())).tolist()
    return str(to_hex((red, green, blue)))


def _luminance(colour: ColorType | Array) -> float:
    """Relative luminance, as in the contrast of WCAG."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(cast("ColorType", colour)))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def state_labels(
    names: Mapping[int, str] | None, n_states: int, *, is_all: bool = True
) -> list[str]:
    """Names of all states for matplotlib, their numbers or a user's, and of the new state.

    Without `is_all` there may be further states, which are not shown but may have names.
    """
    if not is_all and isinstance(names, Mapping):
        n_states = max([n_states, *(k + 1 for k in names if isinstance(k, int | np.integer))])
    return [*(as_text(one, _LONGEST_NAME) for one in state_names(names, n_states)), _NEW_LABEL]


def occupancies(hmm: HCRPHMM | Regimes) -> Floats:
    """Proportion of the training steps in each state of the selected draw."""
    counts = np.bincount(hmm.labels_, minlength=len(hmm.transmat_) - 1)
    return np.asarray(counts / len(hmm.labels_))


def line_look(i: int) -> NamedValues:
    """Colour and style of the i-th line of a plot, distinct for 32 of them."""
    n = len(_LINE_COLOURS)
    return {
        "color": _LINE_COLOURS[i % n],
        "linestyle": LINE_STYLES[i // n % len(LINE_STYLES)],
    }


def ink_on(colour: ColorType | Array) -> str:
    """Choose black or white for text on a colour, by the larger contrast."""
    # Both have the same contrast by WCAG where (L + 0.05)^2 = 0.05 * 1.05.
    return "white" if _luminance(colour) < 0.179 else "black"


def lay_out(ax: Axes) -> None:
    """Run the layout, which gives axes the size to fit text into."""
    # A subfigure has no layout; its figure has.
    ax.figure.canvas.figure.draw_without_rendering()


def write_times(axes: Array, times: NDArray[np.datetime64], first: int) -> None:
    """Label x-axes with times of steps from position `first` on, as many as have room.

    Times that do not increase, as of several sequences, have no round dates: ticks are at round
    steps.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    from skihmm.inspection._dates import set_dates

    if np.asarray(times).dtype.kind != "M":
        raise TypeError(
            f"times has the dtype {np.asarray(times).dtype}; expected datetime64, of seconds: "
            'pandas.to_datetime(times, unit="s").to_numpy().'
        )
    if set_dates([one.xaxis for one in axes], times, first):
        return
    texts, ax = time_texts(times), axes[-1]
    size = ax.xaxis.get_major_ticks(1)[0].label1.get_fontsize()
    needed = size * (DIGIT_WIDTH * len(texts[0]) + 1)
    n_ticks = int(np.clip(size_in_points(ax)[0] / needed, 1, 9))

    def text_of(step: float, _: int | None = None) -> str:
        i = round(step) - first
        return texts[i] if 0 <= i < len(texts) else ""

    for one in axes:
        one.xaxis.set_major_locator(MaxNLocator(n_ticks, integer=True))
        one.xaxis.set_major_formatter(FuncFormatter(text_of))


def legend_place(ax: Axes, *, vertical: str = "upper") -> NamedValues:
    """Keywords of a legend to the right of axes, if a layout makes room for it there.

    `vertical` is the end of the axes that the legend begins at: "upper" or "lower". Without a
    layout the legend is inside, where it hides least.
    """
    if ax.figure.canvas.figure.get_layout_engine() is None:
        return {"loc": "best", "fontsize": "small"}
    return {
        "loc": f"{vertical} left",
        "bbox_to_anchor": (1.01, float(vertical == "upper")),
        "borderaxespad": 0.0,
        "frameon": False,
        "fontsize": "small",
    }


def check_states(states: ArrayLike, n_states: int) -> NDArray[np.intp]:
    """Check a list of states to show."""
    given = as_array("states", states)
    is_list = given.ndim == 1 and given.dtype.kind in "iu" and len(given) > 0
    if not (is_list and given.min() >= 0 and given.max() < n_states):
        raise ValueError(f"states={states!r}; expected a list of states, from 0 to {n_states - 1}.")
    return given.astype(np.intp)


def set_state_ticks(axis: XAxis | YAxis, labels: Sequence[str]) -> None:
    """Set ticks 0, 1, ... with labels, as many of them as have room.

    Names under an x-axis that do not fit side by side are vertical.
    """
    size, is_x = 8.0, axis.axis_name == "x"
    width, height = size_in_points(axis.axes)
    low, high = axis.get_view_interval()
    room = (width if is_x else height) / abs(high - low)
    needed = 1.15 * size
    if is_x:
        needed = max((text_width(label, size) for label in labels), default=0.0) + 0.5 * size
        if needed > room and max(map(len, labels)) > 3:
            axis.set_tick_params(rotation=90)
            needed = 1.15 * size
    step = max(1, int(np.ceil(needed / room)))
    places = range(0, len(labels), step)
    axis.set_ticks(places, [labels[i] for i in places], fontsize=size)


def set_name_ticks(ax: Axes, names: Sequence[str]) -> None:
    """Set ticks 0, 1, ... of an x-axis with names, oblique if they would overlap."""
    size = ax.xaxis.get_major_ticks(1)[0].label1.get_fontproperties().get_size_in_points()
    low, high = ax.get_xlim()
    distance = size_in_points(ax)[0] / (high - low)
    room = distance - size
    is_oblique = any(text_width(printable(one), size) > room for one in names) and len(names) > 1
    # One name alone has several lines.
    n_lines, room = (1, _OBLIQUE) if is_oblique else (2, room)
    ax.set_xticks(np.arange(len(names)), [fitted_text(one, room, size, n_lines) for one in names])
    if is_oblique:
        is_steep = bool(distance * np.sin(np.deg2rad(_ANGLES[0])) < 1.5 * size)
        ax.tick_params("x", rotation=_ANGLES[is_steep])
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def set_log_scale(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic with plain numbers at 1, 2, 5, 10, ... or at 1, 10, ...

    It has to be called after plotting, because the choice depends on the range.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    scale("log")
    axis.axes.autoscale_view()
    low, high = axis.get_view_interval()
    # Numbers on a horizontal axis need more room than on a vertical one.
    is_short = high / low < (20 if axis.axis_name == "x" else 300)
    subs = (1.0, 2.0, 5.0) if is_short else (1.0,)
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high) + 1)
    numbers = np.outer(powers, subs)
    # Without two such numbers LogLocator sets ticks that touch in low panels.
    has_two = ((low <= numbers) & (numbers <= high)).sum() > 1
    axis.set_major_locator(
        LogLocator(subs=subs, numticks=7) if has_two else MaxNLocator(4, steps=ROUND)
    )
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
