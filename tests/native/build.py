"""Compile Cython modules once, for all processes of a session and for later sessions."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import skihmm

PACKAGE = Path(skihmm.__file__).parent
INCLUDE = [Path(folder) for folder in skihmm.get_include()]
# Folders of NumPy's C libraries; that beside its headers has another name since NumPy 2.
LIBRARIES = (Path(np.get_include()).parent / "lib",
             Path(np.random.__file__).parent / "lib")  # fmt: skip

# Folders that conftest.py makes: the session's, which it removes, and that of compiled
# modules, which later sessions find again.
FOLDER, COMPILED = "SKIHMM_TESTS_BUILD", "SKIHMM_TESTS_COMPILED"

# As meson.build has them, but for the optimisation: compiling would take twice as long.
DIRECTIVES = ("annotation_typing=False", "boundscheck=False", "initializedcheck=False",
              "wraparound=False", "cdivision=True", "freethreading_compatible=True")  # fmt: skip
CYTHON = ("-3", "--cplus", "--shared=skihmm._cyutility")
FLAGS = ("-std=c++17", "-Og", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-w",
         "-pthread", "-DNDEBUG", "-DNPY_NO_DEPRECATED_API=NPY_1_22_API_VERSION",
         "-DNPY_TARGET_VERSION=NPY_1_25_API_VERSION")  # fmt: skip

# (anchor, replacement of its place, in which PLACE stands for what was there), or with a
# text that occurs once: (file, text, replacement).
Edit = tuple[str, str] | tuple[str, str, str]


class Verbatim(tuple[str, ...]):
    """An edit that `switched` makes as it is; in it `PLANTED` says if its error is on."""

    def __new__(cls, *edit: str) -> Verbatim:
        return super().__new__(cls, edit)


# One variable per library, which is compiled from one source.
SWITCH = """#ifndef SKIHMM_PLANTED
#define SKIHMM_PLANTED
extern "C" { __attribute__((visibility("default"))) int skihmm_planted = 0; }
#endif
"""


def require_compiler(*others: str) -> None:
    """Skip the test that asks without Cython, a C++ compiler or Python's headers."""
    pytest.importorskip("Cython", reason="native test code needs Cython")
    if not any(map(shutil.which, [_compiler()[0], *others])):
        pytest.skip("native test code needs a C++ compiler")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        pytest.skip("native test code needs Python's headers")


def once(name: str, make: Callable[[Path], None], place: str = COMPILED) -> Path:
    """Return a folder that the first process to ask for it has filled.

    Locks are in the session's folder: one that a killed session has left is never met.
    """
    folder = Path(os.environ[place], name)
    lock = Path(os.environ[FOLDER], f"{name}.lock")
    while not folder.exists():
        try:
            lock.touch(exist_ok=False)
        except FileExistsError:
            time.sleep(0.1)
            continue
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
        try:
            if not folder.exists():
                make(unfinished)
                # Another session may have been faster.
                with contextlib.suppress(OSError):
                    unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            lock.unlink()
    os.utime(folder)
    return folder


def run(*command: object, **options: object) -> None:
    """Run a command whose output is of interest only if it fails."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr


def module(source: Path, name: str, edits: tuple[Edit, ...] = ()) -> ModuleType:
    """Compile and import a ``.pyx`` file, or a part of it, after edits in copies of the sources.

    A name that ends with a colon and a header is that of a part; see `_part`.
    """
    require_compiler()
    name, _, header = name.partition(":")
    edited = {source.name: _part(source.read_text(encoding="utf-8"), header)} if header else {}
    for edit in edits:
        file, before, start, stop = _find(edit, source, edited)
        after = edit[-1].replace("PLACE", before[start:stop])
        edited[file] = before[:start] + after + before[stop:]
    text = edited.get(source.name) or source.read_text(encoding="utf-8")
    folder = once(
        key(name, text, sorted(edited.items())),
        lambda folder: _compile(source, name, edited, folder),
    )
    (library,) = folder.glob("*.so")
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _part(text: str, header: str) -> str:
    """The imports of a module, its declarations of a header, and the classes that follow."""
    imports, *parts = re.split(r"\n\n\n(?=cdef extern from )", text)
    (part,) = [part for part in parts if part.startswith(f'cdef extern from "{header}"')]
    return f"{imports}\n\n\n{part}\n"


def key(*parts: object) -> str:
    """A name for what is compiled from these parts, by all that it depends on."""
    return hashlib.sha256(repr((parts, _surroundings())).encode()).hexdigest()[:16]


@cache
def _surroundings() -> tuple[object, ...]:
    """Headers, declarations, tools, and their flags."""
    files = sorted({*_headers(), *PACKAGE.rglob("*.pxd")})
    compiler = subprocess.run([*_compiler(), "--version"], capture_output=True, check=False)
    texts = [path.read_text(encoding="utf-8") for path in files]
    tools = (sys.version, version("cython"), np.__version__, compiler.stdout)
    return *texts, *tools, *_flags(), *CYTHON, *DIRECTIVES


def switched(source: Path, errors: Mapping[str, Sequence[Edit]]) -> tuple[Edit, ...]:
    """Put errors behind a switch, so that one library has all of them.

    The number of an error is its place, from one on.  Conditions and initial values
    become conditional expressions, other statements ``if`` statements.

    Returns
    -------
    tuple of edits of whole files
    """
    texts: dict[str, str] = {}
    anchored: dict[str, list[tuple[str, Edit]]] = {}
    for number, edits in enumerate(errors.values(), 1):
        on = f"(skihmm_planted == {number})"
        for edit in edits:
            if len(edit) == 2:
                anchored.setdefault(edit[0], []).append((on, edit))
                continue
            file, before, start, stop = _find(edit, source, texts)
            text, replacement = edit[1:]
            if isinstance(edit, Verbatim):
                after = replacement.replace("PLANTED", on)
            elif text.rstrip().endswith((";", "}")):
                after = f"if {on} {{\n{replacement}\n}} else {{\n{text}\n}}\n"
            else:
                after = f"({on} ? ({replacement}) : ({text}))"
            texts[file] = before[:start] + after + before[stop:]
    for edits in anchored.values():
        file, before, start, stop = _find(edits[0][1], source, texts)
        after = before[start:stop]
        for on, edit in edits:
            if isinstance(edit, Verbatim):
                after = edit[1].replace("PLACE", after).replace("PLANTED", on)
            else:
                other = edit[1].replace("PLACE", before[start:stop])
                after = _either(on, other, after)
        texts[file] = before[:start] + after + before[stop:]
    return tuple((f, _path(f, source).read_text("utf-8"), SWITCH + t) for f, t in texts.items())


def _find(edit: Edit, source: Path, texts: dict[str, str]) -> tuple[str, str, int, int]:
    """The file of an edit, its text so far, and where the edited part starts and stops.

    An anchor is a comment, ``// planted: name``, at the end of a line or in one above it.
    Its place is the statement that begins there, without ``else`` or ``case`` before it,
    up to a line that ends with ``;``, ``{`` or ``}``.
    """
    if len(edit) == 3:
        file, text, _ = edit
        before = texts.get(file) or _path(file, source).read_text(encoding="utf-8")
        n, start = before.count(text), before.find(text)
        assert n == 1, f"{n} times in {file}, expected once:\n{text}"
        return file, before, start, start + len(text)
    comment = f"// planted: {edit[0]}\n"
    found = {path.name: path.read_text(encoding="utf-8") for path in _headers()} | texts
    found = {name: text for name, text in found.items() if comment in text}
    n = sum(text.count(comment) for text in found.values())
    assert n == 1, f"{n} times in the headers, expected once:\n{comment}"
    ((file, before),) = found.items()
    # The comment goes, so that a second edit of the place fails.
    start = before.rfind("\n", 0, before.index(comment)) + 1
    line, _, rest = before[start:].partition(comment)
    before = before[:start] + (line.rstrip() + "\n" if line.strip() else "") + rest
    place = re.compile(
        r"\s*(?:\}? ?else (?!\{)|case [\w:]+: )?(.*?[;{}])[ ]*(?://[^\n]*)?\n", re.DOTALL
    ).match(before, start)
    assert place is not None, f"no statement at '// planted: {edit[0]}'"
    return file, before, *place.span(1)


def _either(on: str, text: str, other: str) -> str:
    """Code that is one text if `on`, the other if not."""
    for opening in ("if (", "while ("):
        if text.startswith(opening) and other.startswith(opening):
            stop, stop_other = _closing(text), _closing(other)
            if text[stop:] == other[stop_other:]:
                start = len(opening)
                choice = f"{on} ? ({text[start:stop]}) : ({other[start:stop_other]})"
                return f"{opening}{choice}{text[stop:]}"
    declared = re.compile(r"((?:const )?\w[\w:<>]* \w+) = (.*);", re.DOTALL)
    first, second = declared.fullmatch(text), declared.fullmatch(other)
    if first and second and first[1] == second[1]:
        return f"{first[1]} = {on} ? ({first[2]}) : ({second[2]});"
    assert other.endswith((";", "}")), f"this can not be switched:\n{other}"
    return f"if {on} {{\n{text}\n}} else {{\n{other}\n}}"


def _closing(text: str) -> int:
    """Where the first bracket of a text is closed."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == ")" and not depth:
            return i
    raise ValueError(text)


def switch(module: ModuleType, number: int) -> None:
    """Turn on the error with this number, and no other one of the library."""
    library = ctypes.CDLL(module.__file__)
    ctypes.c_int.in_dll(library, "skihmm_planted").value = number


def _path(file: str, source: Path) -> Path:
    """A file by its name: the module's source or a header of the package."""
    (path,) = {p for p in [source, *_headers()] if p.name == file}
    return path


def _headers() -> list[Path]:
    return [path for folder in INCLUDE for path in folder.glob("*.hpp")]


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")


def _flags() -> list[str]:
    return [*FLAGS, *shlex.split(os.environ.get("CXXFLAGS", ""))]


def _compile(source: Path, name: str, edited: dict[str, str], folder: Path) -> None:
    with tempfile.TemporaryDirectory() as copies:
        # One translation for all that differ in headers only.
        text = edited.get(source.name, "")
        translated = once(
            f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}",
            lambda at: _translate(source, name, at, text),
            FOLDER,
        )
        code = translated / "code.cpp"
        include = INCLUDE
        if set(edited) - {source.name}:
            # In one folder, as a header finds others beside itself first.
            include = [Path(copies)]
            for header in _headers():
                text = edited.get(header.name) or header.read_text(encoding="utf-8")
                Path(copies, header.name).write_text(text, encoding="utf-8")
        link = shlex.split(sysconfig.get_config_var("LDSHARED"))[1:]
        run(
            *(*_compiler(), *_flags()),
            *(f"-I{path}" for path in [*include, np.get_include()]),
            f"-I{sysconfig.get_path('include')}",
            *(code, *link, *(f"-L{path}" for path in LIBRARIES)),
            *("-lnpyrandom", "-lnpymath", "-lm"),
            *("-o", folder / f"{name.rpartition('.')[2]}.so"),
        )


def _translate(source: Path, name: str, folder: Path, text: str) -> None:
    """Translate a file, or a text in its place."""
    from Cython.Compiler.Main import main

    if text:
        source = folder / source.name
        source.write_text(text, encoding="utf-8")

    directives = [part for directive in DIRECTIVES for part in ("-X", directive)]
    # An edited copy has its .pxd file still in the package.
    options = [*CYTHON, *directives, "-I", PACKAGE.parent, "--module-name", name]
    command = ["cython", *options, source, "-o", folder / "code.cpp"]
    # In this process: to import Cython takes longer than to translate a module.
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(sys, "argv", [*map(str, command)])
        main(command_line=1)
