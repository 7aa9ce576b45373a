"""What the tests compile against the installed package, when it is asked for.

``native.parts`` and ``moves`` are the modules of this folder;
:func:`native.planted` gives a compiled module of the package with an error planted in it.
Tests that ask for any of it skip without a C++ compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from native import build

MODULES = ("parts", "moves")


def __getattr__(name: str) -> ModuleType:
    if name not in MODULES:
        raise AttributeError(name)
    return _module(name)


@cache
def _module(name: str, edits: tuple[build.Edit, ...] = ()) -> ModuleType:
    return build.module(_source(f"native.{name}"), f"native.{name}", edits)


@cache
def planted(name: str, *edits: build.Edit) -> ModuleType:
    """Compile a module of the package, or of this folder, from edited sources.

    The edits are made in copies: the package stays as it is, and the module imports it.

    Parameters
    ----------
    name : str
        As "samplers._kernels" or, of this folder, "native.parts".  A part of a module compiles
        faster: "samplers._kernels:_stepwise.hpp", its declarations of a header and the classes
        that follow.
    edits : (anchor, replacement) or (file, text, replacement)
        The anchor is a comment in a header, ``// planted: anchor``, and the replacement
        that of its statement.  A text must occur once in the file.
    """
    if name.startswith("native."):
        return _module(name.removeprefix("native."), edits)
    return build.module(_source(name), f"skihmm.{name}", edits)


def switched(
    name: str,
    errors: Mapping[str, Sequence[build.Edit]],
    error: str | None,
    others: Sequence[build.Edit] = (),
) -> ModuleType:
    """Compile a module with all errors of a table, and turn on one of them, or none.

    It stays on until the next call for this module.  The other edits are made afterwards.
    """
    table = tuple((key, tuple(edits)) for key, edits in errors.items())
    module = _switched(name, table, tuple(others))
    build.switch(module, 1 + [*errors].index(error) if error else 0)
    return module


@cache
def _switched(name: str, errors: tuple, others: tuple) -> ModuleType:
    return planted(name, *build.switched(_source(name), dict(errors)), *others)


def _source(name: str) -> Path:
    name = name.partition(":")[0]
    folder, _, file = name.rpartition(".")
    if folder == "native":
        return Path(__file__).parent / f"{file}.pyx"
    return build.PACKAGE.joinpath(*name.split(".")).with_suffix(".pyx")
