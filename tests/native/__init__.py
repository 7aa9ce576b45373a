"""What the tests compile against the installed package, when it is asked for.

``native.seating``, ``nested``, ``moves`` and ``coin`` are the modules of this folder;
:func:`native.planted` gives a compiled module of the package with an error planted in it.
Tests that ask for any of it skip without a C++ compiler.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

from native import build

MODULES = ("seating", "nested", "moves", "coin")


def __getattr__(name: str) -> ModuleType:
    if name not in MODULES:
        raise AttributeError(name)
    return _module(name)


@cache
def _module(name: str, edits: tuple[build.Edit, ...] = ()) -> ModuleType:
    return build.module(Path(__file__).parent / f"{name}.pyx", f"native.{name}", edits)


@cache
def planted(name: str, *edits: build.Edit) -> ModuleType:
    """Compile a module of the package, or of this folder, from edited sources.

    The edits are made in copies: the package stays as it is, and the module imports it.

    Parameters
    ----------
    name : str
        As "samplers._split_merge_kernel" or, of this folder, "native.seating".
    edits : (file, text, replacement)
        The text must occur once in the file, a header or the module's own ``.pyx``.
    """
    if name.startswith("native."):
        return _module(name.removeprefix("native."), edits)
    path = build.PACKAGE.joinpath(*name.split(".")).with_suffix(".pyx")
    return build.module(path, f"skihmm.{name}", edits)
