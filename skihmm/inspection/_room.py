"""Room for text in axes: widths, lines, and texts that are cut in their middle."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING

from skihmm._texts import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Mean width of a digit, in units of the font size.
DIGIT_WIDTH = 0.6
# Longer texts are cut before their room is measured.
_LONGEST = 200
# Hinting makes letters a little wider than they are by their outlines.
_HINTING = 1.04


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of axes in points, the unit of font sizes."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return box.width / dpi * 72, box.height / dpi * 72


class _Letters(dict[str, float]):
    """Widths of letters in units of the font size."""

    def __missing__(self, letter: str) -> float:
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import text_to_path

        font = FontProperties(size=1.0)
        found = text_to_path.get_text_width_height_descent(letter, font, ismath=False)
        self[letter] = _HINTING * float(found[0])
        return self[letter]


@lru_cache
def _letters(_: tuple[str, ...]) -> _Letters:
    """Widths of letters of a family of fonts."""
    return _Letters()


def text_width(text: str, size: float) -> float:
    """Width of a line of text in points."""
    from matplotlib import rcParams

    letters = _letters((*rcParams["font.family"], *rcParams["font.sans-serif"]))
    return size * sum([letters[letter] for letter in text])


def shortened(text: str, longest: int) -> str:
    """Cut a text in its middle, since names differ and have units at their ends."""
    if len(text) <= longest:
        return text
    head = longest // 2
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def _lines(text: str, room: float, size: float) -> list[str]:
    """Break a text into lines, at spaces and after signs if a line has one."""
    lines, line = [], ""
    for piece in re.findall(r"[^\s_/,;-]*[\s_/,;-]*", text):
        if line and text_width((line + piece).rstrip(), size) > room:
            lines.append(line.rstrip())
            line = ""
        if text_width(piece, size) <= room:
            line += piece
            continue
        for letter in piece:
            if line and text_width((line + letter).rstrip(), size) > room:
                lines.append(line)
                line = ""
            line += letter
    return [*lines, line.rstrip()]


def fitted_text(text: str, room: float, size: float, n_lines: int = 1) -> str:
    """A user's text for matplotlib in at most so many lines of a width in points.

    A longer text has "…" in its middle. `size` is that of the font.
    """
    text = printable(text)
    longest = min(len(text), _LONGEST)

    def fits(n_cut: int) -> bool:
        return len(_lines(shortened(text, longest - n_cut), room, size)) <= n_lines

    n_cut = bisect_left(range(max(longest - 1, 0)), True, key=fits)
    lines = _lines(shortened(text, longest - n_cut), room, size)
    return "\n".join(lines).replace("$", r"\$")
