"""Labels of ticks that are unevenly spaced.

This module needs matplotlib when it is imported: displays import it when they draw.
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
    """Labels of given places, without those that would run into another one.

    A label is left out if it would come too close to the last one before it that is
    written.  That is found out whenever the axis is drawn, so that it is right in every
    layout, when the figure is resized, and in a part of the axis.  The scale has to be
    linear.

    Parameters
    ----------
    places : array-like of shape (n_labels,)
        Of the ticks, increasing.
    labels : sequence of str
        One for each.
    """

    def __init__(self, places: ArrayLike, labels: Sequence[str]) -> None:
        self._labels = dict(zip(np.asarray(places).tolist(), labels, strict=True))

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Label of a place, "" if it has none."""
        return self._labels.get(float(x), "")

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Labels of ticks, "" where there is no room for one."""
        axis = cast("XAxis | YAxis", self.axis)
        low, high = np.sort(axis.get_view_interval())
        is_x = axis.axis_name == "x"
        font = axis.get_major_ticks(1)[0].label1.get_fontproperties()
        # All in points.
        box = axis.axes.bbox
        length = (box.width if is_x else box.height) / axis.axes.figure.dpi * 72
        gap = (0.5 if is_x else 0.35) * font.get_size_in_points()
        shown = []
        end = -np.inf
        for value in values:
            label = self(value)
            if label and low <= value <= high:
                # (All digits have one width, or nearly; all lines the height of "lp".)
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
