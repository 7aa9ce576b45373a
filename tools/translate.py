#!/usr/bin/env python3
"""Translate Cython modules to C++ in one process: Cython takes as long to start as for a module.

    tools/translate.py DEPFILE SOURCE.pyx ... TARGET.cpp ... -- OPTIONS

A target whose source, declarations and options are as they were is not translated again.  A target
that comes out as it was keeps its time, so that nothing is compiled for it.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

from Cython import __version__
from Cython.Compiler.Main import main

ROOT = Path(__file__).resolve().parent.parent


def translate(source: Path, target: Path, shared: object, options: list[str]) -> None:
    """Write the target of a source, if it changes; `shared` is what all targets depend on."""
    parts = __version__, options, shared, source.read_bytes()
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    kept = target.with_suffix(".key")
    if target.exists() and kept.exists() and kept.read_text(encoding="utf-8") == key:
        return
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        new = Path(folder, target.name)
        sys.argv = ["cython", *options, os.path.relpath(source), "-o", str(new)]
        main(command_line=1)
        if not target.exists() or target.read_bytes() != new.read_bytes():
            new.replace(target)
    kept.write_text(key, encoding="utf-8")


if __name__ == "__main__":
    end = sys.argv.index("--")
    options, n = sys.argv[end + 1 :], (end - 2) // 2
    first = sys.argv[2 + n]
    depfile, *paths = [Path(path).resolve() for path in sys.argv[1:end]]
    os.chdir(ROOT)  # Comments of the targets have the sources' paths.
    declarations = sorted((ROOT / "skihmm").rglob("*.pxd"))
    shared = [path.read_bytes() for path in (Path(__file__).resolve(), *declarations)]
    for source, target in zip(paths[:n], paths[n:], strict=True):
        translate(source, target, shared, options)
    read = [str(path).replace(" ", "\\ ") for path in (*paths[:n], *declarations)]
    depfile.write_text(f"{first}: {' '.join(read)}\n", encoding="utf-8")
