"""Imports and cimports point down: every module uses only what stands below it."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from itertools import permutations
from pathlib import Path

import pytest

import skihmm

RECIPES = ("samplers", "emissions", "transitions")
# From the bottom to the top; a module may use its layer and those below.
LAYERS = [
    ["_version", "_typing", "_texts", "_records", "_data", "_fitting", "_using"],
    [f"_data.{name}" for name in ("validation", "scales", "wrong_values", "filled", "other_names")],
    [*(f"_data.{name}" for name in ("contexts", "frames", "given", "roles", "row_index"))],
    ["_pickles", "_recipe"],
    ["core._types", "core._random", "core._sweep_info", "core._family", "core._record"],
    ["core._product", "core._slots"],
    ["core._franchise", "core._emission"],
    ["core._state", "core._messages", "core._regime_passes"],
    ["core._rcd", "core._particle_filter", "core.*_passes", "core._registration"],
    ["core._log_subjects"],
    ["core"],  # lists the names of the native interface
    ["emissions._gaps", "emissions._subject_numbers"],
    ["emissions.*_stats", "samplers._kernels"],
    [f"{package}{modules}" for package in RECIPES for modules in ("", ".*")],
    ["_data.growing", "_data.reading", "_data.sequences"],
    ["_draws", "_using.log_joint"],
    ["_using.*"],
    ["_fitting.starts", "_fitting.burnin", "_fitting.progress"],
    ["_fitting.chain", "_fitting.checkpoint", "_fitting.onward"],
    ["_fitting.callbacks", "_fitting.chain_file", "_fitting.run"],
    ["metrics", "metrics.*", "posterior", "posterior.*"],
    ["_fitting.fit"],
    ["_hcrp_hmm"],
    ["windows"],
    ["inspection", "inspection.*", "testing", "testing.*", "contrib", "contrib.*"],
    [""],  # the package itself lists the public names
]
SUFFIXES = (".py", ".pyx", ".pxd")
_NATIVE_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]+)", re.MULTILINE
)
_NATIVE_IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([\w., \t]+)", re.MULTILINE)
_INCLUDE = re.compile(
    r"""^[ \t]*(?:\#[ \t]*include|cdef[ \t]+extern[ \t]+from)[ \t]+"(_[^"]+)\"""",
    re.MULTILINE,
)


def _matches(module: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(module, pattern) for pattern in patterns)


def layer_of(module: str) -> int | None:
    """Number of a module's layer, or None if it has none."""
    for number, patterns in enumerate(LAYERS):
        if _matches(module, patterns):
            return number
    return None


def module_name(root: Path, path: Path) -> str:
    """Dotted name below the package; "" is the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _absolute(name: str, package: list[str]) -> str:
    """An import such as "..core" as an absolute one."""
    level = len(name) - len(name.lstrip("."))
    if level == 0:
        return name
    base = package[: len(package) - (level - 1)]
    return ".".join([*base, *filter(None, [name[level:]])])


def _names(listed: str) -> list[str]:
    without_comments = re.sub(r"#[^\n]*", "", listed.strip("() \t\n"))
    return [part.split()[0] for part in without_comments.split(",") if part.strip()]


def _imported(path: Path, package: list[str]) -> list[tuple[str, list[str]]]:
    """(module, names taken from it) of every import of a file."""
    text = path.read_text(encoding="utf-8")
    found: list[tuple[str, list[str]]] = []
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found += [(alias.name, []) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                name = "." * node.level + (node.module or "")
                names = [alias.name for alias in node.names]
                found.append((_absolute(name, package), names))
    else:
        for name, names in _NATIVE_FROM.findall(text):
            found.append((_absolute(name, package), _names(names)))
        for names in _NATIVE_IMPORT.findall(text):
            found += [(name, []) for name in _names(names)]
    return found


def edges(root: Path) -> set[tuple[str, str]]:
    """Pairs (user, used) of modules of the package at `root`."""
    files = [path for path in sorted(root.rglob("*")) if path.suffix in SUFFIXES]
    modules = {module_name(root, path) for path in files}
    result = set()
    for path in files:
        package = [root.name, *path.relative_to(root).parts[:-1]]
        for target, names in _imported(path, package):
            first, *rest = target.split(".")
            if first != root.name:
                continue
            base = ".".join(rest)
            # `from package import x`: x may be a module or a name of the package.
            inside = {".".join(filter(None, [base, name])) for name in names}
            used = inside & modules
            if not names or inside - used:
                used = used | {base}
            result |= {(module_name(root, path), module) for module in used}
    return {(user, used) for user, used in result if user != used}


def _of(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def problem(user: str, used: str) -> str | None:
    """What is wrong with a module using another, if anything is."""
    if _of(user, "datasets"):
        is_allowed = _of(used, "datasets") or used in ("_data", "_data.validation")
        return None if is_allowed else "datasets use checks of parameters only"
    above = layer_of(user)
    if above is None:
        return "it has no layer: add it to LAYERS"
    if _of(used, "datasets"):
        # Data are for users, examples and the top layer, not for the machinery.
        at_top = layer_of("inspection")
        return None if at_top is not None and above >= at_top else "points to data"
    below = layer_of(used)
    if below is None:
        return "what it uses has no layer: add it to LAYERS"
    if below > above:
        return "points up"
    for one, other in permutations(RECIPES, 2):
        if _of(user, one) and _of(used, other):
            return f"{one} and {other} do not know one another"
    return None


def _above(root: Path, path: Path) -> list[str]:
    """Folders of headers that a file may include; headers only the first of them."""
    package, folder = path.relative_to(root).parts[0], path.parent.relative_to(root).as_posix()
    folders = [f for f in skihmm._HEADERS if f.split("/")[0] in ("core", package)]
    if path.suffix == ".hpp" and folder in folders:
        return folders[: folders.index(folder) + 1]
    return folders


def wrong_edges(root: Path) -> list[str]:
    """A line for every edge that is not allowed, headers and orphans included."""
    lines = [
        f"{user or root.name} -> {used or root.name}: {why}"
        for user, used in sorted(edges(root))
        if (why := problem(user, used))
    ]
    for path in sorted(root.rglob("*")):
        if path.suffix in SUFFIXES:
            module = module_name(root, path)
            if layer_of(module) is None and not _of(module, "datasets"):
                lines.append(f"{module}: it has no layer: add it to LAYERS")
        if path.suffix in (".hpp", ".pyx", ".pxd"):
            lines += [
                f"{path.relative_to(root).as_posix()} -> {header}: headers come from the "
                "same package or from core, and from folders above"
                for header in _INCLUDE.findall(path.read_text(encoding="utf-8"))
                if not any((root / f / header).is_file() for f in _above(root, path))
            ]
    return lines


ROOT = Path(skihmm.__file__).parent


def test_package_points_down():
    assert wrong_edges(ROOT) == []


def private_imports(root: Path) -> list[str]:
    """Names with an underscore that a module takes from another of the package."""
    paths = sorted(root.rglob("*.py"))
    modules = {f"{root.name}.{module_name(root, path)}" for path in paths}
    return [
        f"{module_name(root, path)} takes {name} from {target}"
        for path in paths
        for target, names in _imported(path, [root.name, *path.parent.relative_to(root).parts])
        for name in names
        if target.split(".")[0] == root.name and re.match("_[^_]", name)
        if f"{target}.{name}" not in modules
    ]


def test_modules_take_public_names_only(tmp_path):
    assert private_imports(ROOT) == []
    _plant(tmp_path, {"_a.py": "_b = 1\n", "_b.py": f"from {tmp_path.name}._a import _b"})
    assert private_imports(tmp_path) == [f"_b takes _b from {tmp_path.name}._a"]


def test_no_module_is_there_for_our_tests_only():
    names = {path.name for path in ROOT.rglob("*")}
    assert "_hcrp_hmm.py" in names
    assert not [name for name in names if re.match("_(testing|faulty)", name)]


def test_edges_are_seen():
    # An empty set would pass the test above.
    found = edges(ROOT)
    for edge in [
        ("", "_hcrp_hmm"),
        ("_fitting.fit", "_fitting.chain"),
        ("_fitting.chain", "core._state"),
        ("core._state", "core._random"),  # in the .pxd
        ("core._state", "core._record"),  # in the .pyx
        ("core._particle_filter", "core._franchise"),  # several lines
        ("samplers._stepwise", "samplers._kernels"),
    ]:
        assert edge in found, edge


def _plant(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


GOOD_TREE = {
    "__init__.py": "from skihmm._hcrp_hmm import HCRPHMM\n",
    "_version.py": "",
    "_hcrp_hmm.py": "import numpy\nfrom skihmm import _version\nimport skihmm._fitting.chain\n",
    "_fitting/__init__.py": "",
    "_fitting/chain.py": "from skihmm.core._state import ChainState\n",
    "core/__init__.py": "",
    "core/_types.pxd": "",
    "core/_restaurants.hpp": "#include <vector>\n",
    "core/restaurants/_tree.hpp": '#include "_restaurants.hpp"\n',
    "core/transitions/_coins.hpp": '#include "_tree.hpp"\n',
    "core/_state.pyx": 'from skihmm.core._types cimport (\n    int32_t,  # "labels"\n)\n',
    "core/_state.pxd": 'cdef extern from "_restaurants.hpp" nogil:\n    pass\n',
    "testing/_probes.pyx": "cimport skihmm.core._state\n",
    "samplers/__init__.py": "",
    "samplers/_x_kernel.pyx": "from skihmm.core._state cimport ChainState\n",
    "samplers/_x_weights.hpp": '#include "_restaurants.hpp"\n',
    "emissions/__init__.py": "",
    "emissions/_x_stats.pyx": "from skihmm.core cimport _state\n",
    "testing/_laws.py": "from skihmm.testing._probes import peek\n",
    "datasets/__init__.py": "from skihmm.datasets._data import data\n",
    "datasets/_data.py": "import os\n",
}


def test_a_good_tree_passes(tmp_path):
    root = tmp_path / "skihmm"
    _plant(root, GOOD_TREE)
    assert wrong_edges(root) == []
    assert ("emissions._x_stats", "core._state") in edges(root)
    assert ("_hcrp_hmm", "_version") in edges(root)


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        (
            "_fitting/chain.py",
            "from skihmm._hcrp_hmm import HCRPHMM",
            "_fitting.chain -> _hcrp_hmm: poi",
        ),
        ("_fitting/chain.py", "from .. import _hcrp_hmm", "_fitting.chain -> _hcrp_hmm: points up"),
        ("_fitting/chain.py", "import skihmm", "_fitting.chain -> skihmm: points up"),
        (
            "_fitting/chain.py",
            "def f():\n    from skihmm.metrics import x\n",
            "_fitting.chain -> metrics: ",
        ),
        (
            "core/_types.pxd",
            "from skihmm.core._state cimport (\n    ChainState,\n)",
            "core._types -> core._state: points up",
        ),
        (
            "core/_types.pxd",
            "from ._state cimport ChainState",
            "core._types -> core._state: points up",
        ),
        (
            "core/_types.pxd",
            "cimport skihmm.core._state as s",
            "core._types -> core._state: points up",
        ),
        (
            "core/_state.pyx",
            "from skihmm.core cimport ChainState",
            "core._state -> core: points up",
        ),
        (
            "core/_state.pyx",
            "import numpy as np, skihmm._fitting.chain",
            "core._state -> _fitting.chain: points up",
        ),
        (
            "samplers/_x_kernel.pyx",
            "from skihmm.emissions._x_stats cimport Stats",
            "samplers._x_kernel -> emissions._x_stats: samplers and emissions",
        ),
        (
            "emissions/_x.py",
            "from skihmm.samplers import BaseSampler",
            "emissions._x -> samplers: emissions and samplers",
        ),
        (
            "samplers/_x.py",
            "from skihmm.testing._probes import peek",
            "samplers._x -> testing._probes: points up",
        ),
        (
            "samplers/_x.py",
            "from skihmm.testing._laws import law",
            "samplers._x -> testing._laws: points up",
        ),
        (
            "datasets/_data.py",
            "from skihmm._version import __version__",
            "datasets._data -> _version: datasets use",
        ),
        (
            "_fitting/chain.py",
            "from skihmm.datasets import data",
            "_fitting.chain -> datasets: points",
        ),
        ("_new.py", "", "_new: it has no layer"),
        (
            "core/_restaurants.hpp",
            '#include "_x_weights.hpp"',
            "core/_restaurants.hpp -> _x_weights.hpp: headers",
        ),
        (
            "core/restaurants/_tree.hpp",
            '#include "_coins.hpp"',
            "core/restaurants/_tree.hpp -> _coins.hpp: headers",
        ),
        (
            "emissions/_x_stats.pyx",
            'cdef extern from "_x_weights.hpp" nogil:\n    pass',
            "emissions/_x_stats.pyx -> _x_weights.hpp: headers",
        ),
    ],
)
def test_a_planted_edge_is_noticed(tmp_path, file, text, line):
    root = tmp_path / "skihmm"
    _plant(root, {**GOOD_TREE, "metrics/__init__.py": ""})
    assert wrong_edges(root) == []
    _plant(root, {file: text + "\n"})
    found = wrong_edges(root)
    assert len(found) == 1, found
    assert found[0].startswith(line)
