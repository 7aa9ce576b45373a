"""Room for text in axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Mean width of a digit, in units of the font size.
DIGIT_WIDTH = 0.6


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of axes in points, the unit of font sizes."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return box.width / dpi * 72, box.height / dpi * 72
