"""The documentation: code that runs, links that lead somewhere, all public names."""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from pathlib import Path

import pytest

import skihmm

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))

# Pages that are programs from top to bottom; others show fragments.
PROGRAMS = ["emissions.md", "get_started.md"]


def public_names():
    for info in pkgutil.iter_modules(skihmm.__path__, "skihmm."):
        if not info.name.rsplit(".", 1)[1].startswith("_"):
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", []):
                yield info.name, name


def test_the_api_page_lists_every_public_name():
    text = (DOCS / "api.md").read_text()
    listed = set()
    for part in text.split(".. currentmodule:: ")[1:]:
        module, rest = part.split("\n", 1)
        block = rest.split("```")[0]
        listed |= {(module, name) for name in re.findall(r"^   (\w+)$", block, re.M)}
    compiled = {"skihmm.core"}  # its native interface is described in native.md
    expected = {pair for pair in public_names() if pair[0] not in compiled}
    expected |= {("skihmm", name) for name in skihmm.__all__ if name[0] != "_"}
    assert listed == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target) or target.startswith("auto_examples/"):
            continue
        name, _, anchor = target.partition("#")
        found = DOCS / name if name else page
        assert found.exists(), f"{page.name} links to {target}"
        if anchor and found.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", found.read_text(), re.M)
            slugs = {
                re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")
                for line in headings
            }
            assert anchor in slugs, f"{page.name} links to {target}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_of_pages_runs(name, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    if name == "get_started.md":
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.S)
    assert blocks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile("\n".join(blocks), name, "exec"), {"__name__": "page"})
