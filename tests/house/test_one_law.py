"""The predictive probability is written in one file: all others take it from there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import skihmm

PACKAGE = Path(skihmm.__file__).parent
LAW = "core/restaurants/_law.hpp"
# Loops over arrays that the law has prepared, with intrinsics; families have other laws.
EXEMPT = ("_blocked_vector.hpp", "_weights.hpp", "_normal_law.hpp")

OPERAND = r"[\w.\[\]>()-]*?"
CONCENTRATION = r"(?:alpha|gamma|offset|concentration)_?\b(?!\()"
PARTS = {
    "n + alpha": rf"\+\s*{OPERAND}\b{CONCENTRATION}|\b{CONCENTRATION}\s*\+(?!\+)",
    "scale * mass": (
        rf"scale\w*(?:\(\))?\s*\*\s*{OPERAND}mass|mass\w*(?:[\[(]\w+[\])])?\s*\*\s*\w*scale"
    ),
    "n + scale * mass": r"\bcounts?\w*(?:\[[^]]*\])?\)?\s*\+\s*\w*(?:smooth|new_table)\b",
}


def code(path: Path) -> str:
    """The file without comments and strings, in lines as they were."""
    marker = "//" if path.suffix == ".hpp" else "#"
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'"""(?:.|\n)*?"""', lambda found: "\n" * found[0].count("\n"), text)
    return re.sub(rf'{marker}.*|"[^"\n]*"', "", text)


def occurrences(text: str) -> list[tuple[str, int]]:
    return [
        (name, text.count("\n", 0, found.start()) + 1)
        for name, pattern in PARTS.items()
        for found in re.finditer(pattern, text)
    ]


def test_law_is_in_one_file():
    """No other native file adds a concentration to a count or weighs a new table."""
    suffixes = (".hpp", ".pyx", ".pxd")
    files = [path for path in PACKAGE.rglob("*") if path.suffix in suffixes]
    assert len(files) > 50
    spelled_out = {
        path.relative_to(PACKAGE).as_posix(): places
        for path in files
        if path.name not in EXEMPT and (places := occurrences(code(path)))
    }
    assert set(spelled_out) == {LAW}, spelled_out


@pytest.mark.parametrize(
    "line",
    [
        "(n + scale_ * mass(k)) / (row_customers[j] + alpha)",
        "1.0 / (view.n_i + s.alpha)",
        "w_[k] = 1.0 / (alpha_ + n)",
        "alpha / (s.n_tables + s.gamma)",
        "d / (totals_[k] + offset_)",
        "s.scale() * s.mass(symbol)",
        "(line.counts[i] + smooth) / smooth",
        "return (n + scale * mass) * c;",
    ],
)
def test_what_would_be_found(line):
    """The ways in which the law was written before it had a file."""
    assert occurrences(line)
