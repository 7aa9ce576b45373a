"""Labels of unevenly spaced ticks.

This module imports matplotlib; displays import it when they plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Formatter
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axis import XAxis, YAxis


class SparseFormatter(Formatter):
    """Formatter of ticks that leaves out labels that would overlap others.

    A label is left out if it is too close to the previous one that is written.  This is
    computed whenever the axis is drawn, for every layout, size of the figure and part of
    the axis.  The scale has to be linear.

    Parameters
    ----------
    places : array-like of shape (n_labels,)
        Positions of the ticks, increasing.
    labels : sequence of str
        Label of each tick.
    """

    def __init__(self, places: ArrayLike, labels: Sequence[str]) -> None:
        self._labels = dict(zip(np.asarray(places).tolist(), labels, strict=True))

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label at a position, "" if it has none."""
        return self._labels.get(float(x), "")

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of ticks, "" where there is no room for one."""
        axis = cast("XAxis | YAxis", self.axis)
        low, high = np.sort(axis.get_view_interval())
        is_x = axis.axis_name == "x"
        font = axis.get_major_ticks(1)[0].label1.get_fontproperties()
        # All lengths are in points.
        box = axis.axes.bbox
        length = (box.width if is_x else box.height) / axis.axes.figure.dpi * 72
        gap = (0.5 if is_x else 0.35) * font.get_size_in_points()
        shown = []
        end = -np.inf
        for value in values:
            label = self(value)
            if label and low <= value <= high:
                # Digits have nearly the same width, and lines the height of "lp".
                text = "0" * len(label) if is_x else "lp"
                size = text_to_path.get_text_width_height_descent(text, font, False)
                half = size[0 if is_x else 1] / 2
                middle = (value - low) / (high - low) * length
                if middle - half < end + gap:
                    label = ""
                else:
                    end = middle + half
            shown.append(label)
        return shown
