"""Compile Cython modules once per test session, for all of its processes."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

import skihmm

PACKAGE = Path(skihmm.__file__).parent
INCLUDE = [Path(folder) for folder in skihmm.get_include()]
# Of NumPy's C libraries; the folder beside its headers has another name since NumPy 2.
LIBRARIES = (Path(np.get_include()).parent / "lib",
             Path(np.random.__file__).parent / "lib")  # fmt: skip

# The folder of the session, which conftest.py makes and removes.
FOLDER = "SKIHMM_TESTS_BUILD"

# As meson.build has them, but for the optimisation: compiling would take twice as long.
DIRECTIVES = ("boundscheck=False", "initializedcheck=False", "wraparound=False",
              "cdivision=True", "freethreading_compatible=True")  # fmt: skip
CYTHON = ("-3", "--cplus", "--shared=skihmm._cyutility")
FLAGS = ("-std=c++17", "-Og", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-w",
         "-pthread", "-DNDEBUG", "-DNPY_NO_DEPRECATED_API=NPY_1_22_API_VERSION",
         "-DNPY_TARGET_VERSION=NPY_1_25_API_VERSION")  # fmt: skip

Edit = tuple[str, str, str]


class Verbatim(NamedTuple):
    """An edit that `switched` makes as it is; in it `PLANTED` says if its error is on."""

    file: str
    text: str
    replacement: str


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


def once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that the first process of the session to ask for it has filled."""
    folder = Path(os.environ[FOLDER], name)
    lock, unfinished = folder.with_suffix(".lock"), folder.with_suffix(".unfinished")
    while not folder.exists():
        try:
            lock.touch(exist_ok=False)
        except FileExistsError:
            time.sleep(0.1)
            continue
        try:
            if not folder.exists():
                unfinished.mkdir()
                make(unfinished)
                unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
            lock.unlink()
    return folder


def run(*command: object, **options: object) -> None:
    """Run a command whose output is of interest only if it fails."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr


def module(source: Path, name: str, edits: tuple[Edit, ...] = ()) -> ModuleType:
    """Compile and import a ``.pyx`` file, after edits in copies of it and of headers."""
    require_compiler()
    edited: dict[str, str] = {}
    for file, text, replacement in edits:
        before = edited.get(file) or _path(file, source).read_text(encoding="utf-8")
        assert before.count(text) == 1, (
            f"{before.count(text)} times in {file}, expected once:\n{text}"
        )
        edited[file] = before.replace(text, replacement)
    key = hashlib.sha256(repr((name, sorted(edited.items()))).encode()).hexdigest()[:16]
    folder = once(key, lambda folder: _compile(source, name, edited, folder))
    (library,) = folder.glob("*.so")
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def switched(source: Path, errors: Mapping[str, Sequence[Edit]]) -> tuple[Edit, ...]:
    """Put errors behind a switch, so that one library has all of them.

    The number of an error is its place, from one on.  An edit of whole statements becomes
    an ``if`` statement, one of an expression a conditional expression.

    Returns
    -------
    tuple of edits of whole files
    """
    texts: dict[str, str] = {}
    for number, edits in enumerate(errors.values(), 1):
        on = f"(skihmm_planted == {number})"
        for edit in edits:
            file, text, replacement = edit
            before = texts.get(file) or SWITCH + _path(file, source).read_text("utf-8")
            assert before.count(text) == 1, (
                f"{before.count(text)} times in {file} with the errors before, expected "
                f"once:\n{text}"
            )
            if isinstance(edit, Verbatim):
                after = replacement.replace("PLANTED", on)
            elif text.rstrip().endswith((";", "}")):
                after = f"if {on} {{\n{replacement}\n}} else {{\n{text}\n}}\n"
            else:
                after = f"({on} ? ({replacement}) : ({text}))"
            texts[file] = before.replace(text, after)
    return tuple((f, _path(f, source).read_text("utf-8"), t) for f, t in texts.items())


def switch(module: ModuleType, number: int) -> None:
    """Turn on the error with this number, and no other one of the library."""
    library = ctypes.CDLL(module.__file__)
    ctypes.c_int.in_dll(library, "skihmm_planted").value = number


def _path(file: str, source: Path) -> Path:
    """A file by its name: the module's own source or a header of the package."""
    (path,) = {p for p in [source, *_headers()] if p.name == file}
    return path


def _headers() -> list[Path]:
    return [path for folder in INCLUDE for path in folder.glob("*.hpp")]


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")


def _compile(source: Path, name: str, edited: dict[str, str], folder: Path) -> None:
    if source.name in edited:
        copy = folder / source.name
        copy.write_text(edited[source.name], encoding="utf-8")
        code = _translate(copy, name, folder)
    else:
        # One translation for all that differ in headers only.
        code = once(name, lambda folder: _translate(source, name, folder)) / "code.cpp"
    include = INCLUDE
    if set(edited) - {source.name}:
        # In one folder, as a header finds others beside itself first.
        include = [folder]
        for header in _headers():
            text = edited.get(header.name) or header.read_text(encoding="utf-8")
            (folder / header.name).write_text(text, encoding="utf-8")
    link = shlex.split(sysconfig.get_config_var("LDSHARED"))[1:]
    run(
        *(*_compiler(), *FLAGS, *shlex.split(os.environ.get("CXXFLAGS", ""))),
        *(f"-I{path}" for path in [*include, np.get_include()]),
        f"-I{sysconfig.get_path('include')}",
        *(code, *link, *(f"-L{path}" for path in LIBRARIES)),
        *("-lnpyrandom", "-lnpymath", "-lm"),
        *("-o", folder / f"{name.rpartition('.')[2]}.so"),
    )


def _translate(source: Path, name: str, folder: Path) -> Path:
    from Cython.Compiler.Main import main

    directives = [part for directive in DIRECTIVES for part in ("-X", directive)]
    # An edited copy has its .pxd file still in the package.
    options = [*CYTHON, *directives, "-I", PACKAGE.parent, "--module-name", name]
    command = ["cython", *options, source, "-o", folder / "code.cpp"]
    # In this process: to import Cython takes longer than to translate a module.
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(sys, "argv", [*map(str, command)])
        main(command_line=1)
    return folder / "code.cpp"
