"""The documentation: code that runs, links that lead somewhere, all public names."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import platform
import re
import sys
from pathlib import Path

import pytest
from recipes import PACKAGES
from sklearn import config_context

import skihmm
from skihmm import HCRPHMM
from skihmm._hcrp_hmm import SHORT_NAMES
from skihmm._recipe import Recipe

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("recipes/*.md"), *DOCS.glob("measured/*.md")])

# Pages that are programs from top to bottom.  (Others have no code, need a cluster, or
# take half a minute, as do the checks of extending.md, which are in tests/extension too.)
PROGRAMS = [
    "../README.md",
    "choose.md",
    "convergence.md",
    "data.md",
    "emissions.md",
    "fit.md",
    "from_r.md",
    "get_started.md",
    "growing.md",
    "index.md",
    "inputs.md",
    "inspection.md",
    "long_runs.md",
    "model_selection.md",
    "phases.md",
    "posterior.md",
    *(f"recipes/{page.name}" for page in PAGES if page.parent.name == "recipes"),
    "regimes.md",
    "subjects.md",
]
# Pages about the data frame of a recipe: its first block comes before their code.
RECIPES = {"../README.md": "recipes/sensors.md", "index.md": "recipes/sensors.md"}
# What a page may show without its being tested here: tests/posterior/test_arviz.py and
# tests/fitting/test_clusters.py do.
ELSEWHERE = ("import arviz", "from distributed")


def public_names():
    for info in pkgutil.iter_modules(skihmm.__path__, "skihmm."):
        if not info.name.rsplit(".", 1)[1].startswith("_"):
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", []):
                yield info.name, name


def test_the_api_pages_list_every_public_name_once():
    text = "".join(page.read_text() for page in DOCS.glob("api*.md"))
    listed = []
    for part in text.split(".. currentmodule:: ")[1:]:
        module, rest = part.split("\n", 1)
        block = rest.split("```")[0]
        listed += [(module, name) for name in re.findall(r"^   (\w+)$", block, re.M)]
    compiled = {"skihmm.core"}  # its native interface is described in native.md
    expected = {pair for pair in public_names() if pair[0] not in compiled}
    expected |= {("skihmm", name) for name in skihmm.__all__ if name[0] != "_"}
    assert len(listed) == len({*listed})
    assert {*listed} ^ expected == set(), "in the package or in docs/api*.md only"


# The page that lists the short names and classes of each part of a model.
LISTS = {
    "sampler": "samplers.md",
    "emission": "emissions.md",
    "transitions": "model.md",
}


@pytest.mark.parametrize("part", SHORT_NAMES)
def test_tables_list_every_recipe(part):
    """Short names with what they stand for, and classes without a short name."""
    public = vars(PACKAGES[part])
    text = (DOCS / LISTS[part]).read_text()
    (table,) = re.findall(r"^\| short name \| class .*\n.*\n((?:\|.*\n)+)", text, re.M)
    rows = re.findall(r'^\| (?:`"(\w+)"`)? ?\| `(\w+)(\(.*?\))` ', table, re.M)
    assert len(rows) == table.count("\n")
    listed = {name: eval(f"{kind}{given}", {**public}) for name, kind, given in rows if name}
    assert {name: str(recipe) for name, recipe in listed.items()} == {
        name: str(make()) for name, make in SHORT_NAMES[part].items()
    }
    concrete = [
        name
        for name in PACKAGES[part].__all__
        if issubclass(public[name], Recipe) and not inspect.isabstract(public[name])
    ]
    assert {kind for _, kind, _ in rows} == set(concrete)


def test_the_api_page_says_what_short_names_stand_for():
    row = r"^\| `\"(\w+)\"` \| \{class\}`((\w+)\(.*\)) <skihmm\.(\w+)\.(\w+)>` \|$"
    text = (DOCS / "api.md").read_text()
    for part, names in SHORT_NAMES.items():
        (table,) = re.findall(rf"^\| `{part}=` \| .*\n.*\n((?:\|.*\n)+)", text, re.M)
        rows = re.findall(row, table, re.M)
        assert len(rows) == table.count("\n")
        for _, _, kind, package, target in rows:
            assert (package, target) == (PACKAGES[part].__name__.partition(".")[2], kind)
        listed = {name: str(eval(made, {**vars(PACKAGES[part])})) for name, made, *_ in rows}
        assert listed == {name: str(make()) for name, make in names.items()}


def test_files_of_a_release_have_the_version():
    version = skihmm.__version__.partition(".dev")[0]
    changes = (DOCS.parent / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\S+) \(.+\)$", changes, re.M)[1] == version
    recipe = (DOCS.parent / "conda" / "recipe.yaml").read_text()
    assert re.search(r'^  version: "(.+)"$', recipe, re.M)[1] == version


def test_prose_lists_every_short_name():
    docstring, readme = inspect.cleandoc(HCRPHMM.__doc__), README.read_text()
    choices = (DOCS / "choose.md").read_text()
    for part, names in SHORT_NAMES.items():
        (text,) = re.findall(rf"^{part} : (.*(?:\n +.*)+)", docstring, re.M)
        assert set(re.findall(r'"(\w+)"', text)) == set(names)
        assert [name for name in names if f'"{name}"' not in readme] == []
        if part != "sampler":
            assert [name for name in names if f'"{name}"' not in choices] == []


def anchors(page):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target) or "auto_examples/" in target:
            continue
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        assert found.exists(), f"{page.name} links to {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{page.name} links to {target}"


def test_links_of_the_readme_lead_somewhere_from_an_index_too():
    """They are absolute, and what they name in the repository is here."""
    text = re.sub(r"```.*?```", "", README.read_text(), flags=re.S)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    named = dict(re.findall(r"^\[(.+)\]: (\S+)$", text, re.M))
    assert set(re.findall(r"(?<!!)\[([^\[\]]+)\](?![(:])", text)) == set(named)
    for target in [*targets, *named.values()]:
        found = re.fullmatch(
            r"https://(?:raw\.githubusercontent\.com/skihmm/skihmm/main|"
            r"github\.com/skihmm/skihmm/blob/main)/([^#]+)(?:#(.+))?",
            target,
        )
        if found is None:
            assert re.match("https://", target), target
            continue
        path = README.parent / found[1]
        assert path.exists(), f"README.md links to {target}"
        if found[2]:
            assert found[2] in anchors(path), f"README.md links to {target}"


ROOT = DOCS.parent
PROGRAMS_BESIDE = sorted([*ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/**/*.py")])
# Programs that go through a chain sweep by sweep, for which there is no public name.  This
# set may only shrink.
SWEEP_BY_SWEEP = {
    "benchmarks/calibration.py",
    "benchmarks/common.py",
    "benchmarks/scaling.py",
    "benchmarks/sequences.py",
    "benchmarks/sweeps.py",
    "examples/reproduce_alice.py",
    "examples/reproduction.py",
}


def private_imports(text):
    """Modules and names of the package that a program imports, and that are private."""
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "asname")]
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        for name in names:
            if re.match(r"skihmm\b.*\._(?!_)", name):
                yield name


def test_programs_import_public_names():
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in PROGRAMS_BESIDE
        if (names := [*private_imports(path.read_text(encoding="utf-8"))])
    }
    assert found.keys() == SWEEP_BY_SWEEP, found


def test_private_imports_are_found():
    text = (
        "import skihmm, os._x\nfrom skihmm import HCRPHMM, __version__\nimport skihmm._a.b as c\n"
    )
    text += "def f():\n    from skihmm.core import _b\n    from skihmm._d import e\n"
    found = ["skihmm._a.b", "skihmm.core._b", "skihmm._d.e"]
    assert [*private_imports(text)] == found


def test_every_benchmark_is_named_on_a_page():
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    programs = {path.name for path in ROOT.glob("benchmarks/*.py")} - {"common.py"}
    assert [name for name in sorted(programs) if f"benchmarks/{name}" not in pages] == []


# What is another in every run: CPU seconds, and the last column of a table (per second).
SECONDS = re.compile(r"\S+(?= CPU seconds)|(?<=\d) {2,}\S+$", re.M)
# Elsewhere the C library's exp and log may round otherwise, and draws then differ.
HAS_SAME_DRAWS = sys.platform == "linux" and platform.machine() == "x86_64"


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_of_pages_runs(name, tmp_path, monkeypatch, capsys):
    text = (DOCS / name).read_text()
    data = ""
    if name in RECIPES:
        recipe = (DOCS / RECIPES[name]).read_text()
        data = re.search(r"```python\n(.*?)```", recipe, re.S)[1]
    for module in ("pandas", "skops"):
        if f"import {module}" in data + text:
            pytest.importorskip(module)
    if "skihmm.inspection" in text:
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    parts = re.findall(r"```python\n(.*?)```(?:\n\nprints\n\n```text\n(.*?)```)?", text, re.S)
    assert parts
    page = {"__name__": "page"}
    exec(data, page)
    with config_context():
        for code, printed in parts:
            if any(name in code for name in ELSEWHERE):
                continue
            capsys.readouterr()
            exec(compile(code, name, "exec"), page)
            if printed and HAS_SAME_DRAWS:
                shown = capsys.readouterr().out
                assert SECONDS.sub("", shown) == SECONDS.sub("", printed)
    if "skihmm.inspection" in text:
        importlib.import_module("matplotlib.pyplot").close("all")
