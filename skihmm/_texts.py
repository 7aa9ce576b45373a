"""Texts of users, such as names of columns, in printed text and in HTML."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral


def printable(text: str) -> str:
    """Text in which control characters are written as by `repr`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def percent(share: float) -> str:
    """Share of one, such as "97 %"."""
    return f"{100 * share:.0f} %"


def wrapped(text: str, width: int) -> str:
    """Text in lines of a width; a number stays beside its "%"."""
    joined = text.replace(" %", "\u00a0%")
    return textwrap.fill(joined, width, subsequent_indent="  ").replace("\u00a0%", " %")


def keyword_text(params: Mapping[str, object], between: str = ", ") -> str:
    """Parameters as the code of a call, strings in double quotes: ``emission="student"``."""
    return between.join(
        f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"
        for name, value in params.items()
    )


def unique_texts(texts: Iterable[str]) -> list[str]:
    """Texts, of which repeated ones get a number: "a", "a (2)"."""
    taken: dict[str, None] = {}
    for text in texts:
        one, i = text, 1
        while one in taken:
            i += 1
            one = f"{text} ({i})"
        taken[one] = None
    return list(taken)


def state_names(names: object, n_states: int) -> list[str]:
    """Name of every state of a table or picture: its number, or a user's name for it.

    Parameters
    ----------
    names : mapping or None
        ``{2: "REM"}``: names of states by number; states without one keep their numbers.
    n_states : int
        Number of states.

    Returns
    -------
    names : list of str

    Raises
    ------
    TypeError
        If `names` is no mapping.
    ValueError
        If it names no state of the fit, or if two states have one name.
    """
    result = [str(state) for state in range(n_states)]
    if names is None:
        return result
    if not isinstance(names, Mapping):
        raise TypeError(
            f"names={names!r} is no mapping; expected names of states by number, such as "
            '{2: "REM"}.'
        )
    for state, name in names.items():
        if not isinstance(state, Integral) or not 0 <= int(state) < n_states:
            raise ValueError(
                f"names has the key {state!r}, which is no state; expected numbers from 0 to "
                f"{n_states - 1}, such as {{{n_states - 1}: {str(name)!r}}}."
            )
        result[int(state)] = printable(str(name))
    twice = next((name for name in result if result.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"names gives {twice!r} to two states; expected names that differ, also from the "
            "numbers of states without a name. find_regimes() makes one state of several."
        )
    return result


def html_table(rows: Sequence[Sequence[str]], *, has_row_names: bool = False) -> str:
    """Table of cells, which are escaped; the first row, and perhaps column, are headers."""
    body = ""
    for i, row in enumerate(rows):
        tags = ["th" if i == 0 or (has_row_names and j == 0) else "td" for j in range(len(row))]
        cells = zip(tags, map(html.escape, row), strict=True)
        body += f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for tag, cell in cells)}</tr>"
    # Tables that follow each other do not touch.
    return f'<div style="margin-bottom: 1em"><table>{body}</table></div>'
