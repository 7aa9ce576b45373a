"""The price of a capability: how many files name it, how many classes need its hooks.

Numbers here only fall.  A number that is larger than today's fails too: lower it.
"""

from __future__ import annotations

import inspect
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

import skihmm
from skihmm.emissions import BaseEmission, ProductEmission
from skihmm.samplers import BaseSampler

ROOT = Path(skihmm.__file__).parent
SUFFIXES = (".py", ".pyx", ".pxd", ".hpp")
COMMENTS = re.compile(r'"""[\s\S]*?"""|#.*')
COMMENTS_IN_CPP = re.compile(r"//.*")

# Names of a capability, its own files, and the number of other files with the names.
PRICES = {
    "contexts": (
        r"(?<!callback)(?<!callback_)(?<!sub)context(?!lib|manager)",
        # Only contexts make trees of restaurants.
        ["*context*", "core/restaurants/_tree.hpp", "samplers/*/_tree_*.hpp"],
        54,
    ),
    "gaps of series": (
        r"(fill|is|linear|open|warn_of|with)_gap|gap_(at|order|units)|\b_gaps\b",
        ["*gaps*"],
        16,
    ),
    "inputs of staying": (
        r"input_?coin|stay_(coef|inter|mean|precision|scale|shrink)|coins(_|\(\))?\.inputs",
        ["*input_coins*", "_using/stays.py"],
        12,
    ),
    "known states": (r"known_?states", ["*known_states*"], 8),
    "penalty of changes": (r"penalty", ["core/transitions/_coins.hpp"], 11),
    "prior of staying": (
        r"stay_?prior",
        ["*stay_prior*"],
        11,
    ),
    "Student's t noise": (r"student", ["*student*"], 7),
    "subjects": (r"subject", ["*subject*", "*_offset_*"], 29),
}

# Header and number of virtual functions, with the destructor, of native interfaces.
VIRTUAL = {
    "Emission": ("core/chain/_emission.hpp", 30),
    "FamilyPart": ("core/chain/_family_part.hpp", 21),
    "Family": ("core/chain/_family.hpp", 22),
    "LearntFamily": ("core/chain/_family.hpp", 5),
    "LinearFamily": ("core/chain/_family.hpp", 7),
    "WeightedFamily": ("core/chain/_weighted_family.hpp", 9),
}
# Public names of BaseEmission, without those of recipes.
MOST_NAMES = 24
# Hooks with fewer than two implementers; ProductEmission, which forwards, is not counted.
# This set may only shrink.
FEW = {"is_categorical"}
# What makes a product, and no hook of other emissions.
OF_PRODUCTS = {"parts", "with_parts"}


def without_comments(text: str, suffix: str) -> str:
    """Code without comments and docstrings."""
    return (COMMENTS_IN_CPP if suffix == ".hpp" else COMMENTS).sub("", text)


@cache
def texts() -> dict[str, str]:
    """Code of the package by file, without comments and docstrings."""
    return {
        path.relative_to(ROOT).as_posix(): without_comments(
            path.read_text(encoding="utf-8"), path.suffix
        )
        for path in sorted(ROOT.rglob("*"))
        if path.suffix in SUFFIXES
    }


def files_with(names: str, own: list[str], texts: dict[str, str]) -> list[str]:
    """Files of code that name a capability, other than its own files."""
    return [
        file
        for file, text in texts.items()
        if re.search(names, text, re.IGNORECASE)
        and not any(fnmatchcase(file, pattern) for pattern in own)
    ]


@pytest.mark.parametrize("capability", PRICES)
def test_capabilities_stay_in_their_files(capability):
    names, own, ceiling = PRICES[capability]
    found = files_with(names, own, texts())
    assert len(found) == ceiling, (
        f"{len(found)} files name {capability}, the ceiling is {ceiling}: keep the names "
        f"in {own}, or lower the ceiling. {found}"
    )


def test_names_are_found_in_code_only():
    code = {
        "_a.py": "has_subjects = True",
        "_b.hpp": "struct Subjects;",
        "core/_subjects.hpp": "struct Subjects;",
        "_c.py": without_comments('"""Subjects."""\nx = 1  # subject\n', ".py"),
        "_d.hpp": without_comments("int32_t n;  // subjects", ".hpp"),
        "_e.py": "x = contextlib",
    }
    assert files_with("subject", ["*subject*"], code) == ["_a.py", "_b.hpp"]
    assert files_with(PRICES["contexts"][0], [], code) == []
    for names, own, _ in PRICES.values():
        assert any(fnmatchcase(file, own[0]) for file in texts()), own
        assert files_with(names, [], texts()), names


def virtual_functions(cls: str, code: str) -> int:
    """Number of virtual functions of a class in a header without comments."""
    body = re.search(rf"^class {cls}\b[^;]*?{{\n([\s\S]*?)^}};", code, re.MULTILINE)
    return len(re.findall(r"\bvirtual\b", body[1])) if body else 0


@pytest.mark.parametrize("cls", VIRTUAL)
def test_native_interfaces_stay_narrow(cls):
    header, ceiling = VIRTUAL[cls]
    found = virtual_functions(cls, texts()[header])
    assert found == ceiling, (
        f"{cls} has {found} virtual functions, the ceiling is {ceiling}: give what few classes do "
        "an interface of its own, or lower the ceiling"
    )


def test_virtual_functions_are_those_of_one_class():
    code = without_comments(
        "class Later;\n"
        "class A {\n    virtual ~A();\n};\n"
        "class B final : public A {\n"
        "    // A virtual function.\n"
        "    virtual void f() {\n    }\n    virtual void g() = 0;\n"
        "};\n",
        ".hpp",
    )
    assert [virtual_functions(cls, code) for cls in ("A", "B", "C")] == [1, 2, 0]


def subclasses(cls: type) -> set[type]:
    """All classes of the package below a class, and the mixins that they derive from."""
    found = set()
    for below in cls.__subclasses__():
        found |= {*below.__mro__} | subclasses(below)
    return {one for one in found if one.__module__.startswith("skihmm.")}


source_of = cache(inspect.getsource)


def implementers(name: str) -> set[type]:
    """Classes that define a public name of BaseEmission, or set it in their instances."""
    is_set = re.compile(rf"self\.{name}(: [^=\n]*)? = ")
    return {
        cls
        for cls in subclasses(BaseEmission) - {*BaseEmission.__mro__}
        if name in vars(cls) or is_set.search(source_of(cls))
    }


def test_hooks_of_emissions_have_two_implementers():
    names = [name for name in vars(BaseEmission) if not name.startswith("_")]
    assert len(names) == MOST_NAMES, "BaseEmission has more names; or lower MOST_NAMES"
    found = {name: implementers(name) for name in names}
    # Methods that no class replaces are no hooks.
    few = {
        name for name, classes in found.items() if classes and len(classes - {ProductEmission}) < 2
    }
    assert few - OF_PRODUCTS == FEW, (
        "A hook needs two implementers: do without it, or take a hook that has two out "
        f"of FEW. {[(name, found[name]) for name in few ^ FEW]}"
    )
    assert all(found[name] == {ProductEmission} for name in OF_PRODUCTS)


@pytest.mark.parametrize(
    ("base", "title"),
    [(BaseEmission, "All names of an emission"), (BaseSampler, "All names of a sampler")],
)
def test_the_documentation_lists_all_names(base, title):
    page = Path(__file__).parents[2] / "docs" / "extending.md"
    table = page.read_text(encoding="utf-8").split(f"## {title}")[1]
    rows = [line.split("|")[1] for line in table.split("## ")[0].splitlines() if "| `" in line]
    names = [re.findall(r"\w+", row) for row in rows]
    assert {*names[0]} == base.__abstractmethods__
    listed = sorted(name for row in names for name in row)
    assert listed == sorted(name for name in vars(base) if name[0] != "_")
