"""Texts of users, such as names of columns, in printed text and in HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def printable(text: str) -> str:
    """Text in which control characters are written as by `repr`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


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


def html_table(rows: Sequence[Sequence[str]], *, has_row_names: bool = False) -> str:
    """Table of cells, which are escaped; the first row, and perhaps column, are headers."""
    body = ""
    for i, row in enumerate(rows):
        tags = ["th" if i == 0 or (has_row_names and j == 0) else "td" for j in range(len(row))]
        cells = zip(tags, map(html.escape, row), strict=True)
        body += f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for tag, cell in cells)}</tr>"
    return f"<table>{body}</table>"
