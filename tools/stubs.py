#!/usr/bin/env python3
"""Write the stubs of compiled modules, from annotations and C types in .pyx and .pxd files.

    tools/stubs.py                     the stubs of all modules, beside their sources
    tools/stubs.py SOURCE.pyx TARGET   one stub

A stub has classes and functions without an underscore, functions with one if their result is
annotated, and constants with a comment ``# type: ...``, which a field has too if its C type says
too little.  Annotations name what HEADER imports, and every class and alias of the package.
"""

import ast
import re
import sys
from pathlib import Path
from textwrap import indent

PACKAGE = Path(__file__).resolve().parent.parent / "skihmm"
HEADER = """\
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, SupportsIndex
import numpy as np
from numpy.typing import ArrayLike
"""
TYPES = {
    **dict.fromkeys(["int32_t", "int64_t", "intp_t", "uint64_t"], "int"),
    **{"float64_t": "float", "bint": "bool", "cbool": "bool", "object": "Any"},
    **{"float64_t[]": "Floats", "int32_t[]": "Labels", "int64_t[]": "Integers"},
}
DEFINED = re.compile(r"^(?:(?:cdef )?class (\w+)|(\w+): TypeAlias)", re.MULTILINE)
CONSTANT = re.compile(r"([A-Z_]+) = .*# type: (\w+)")
CLASS = re.compile(r"(?:cdef )?(class [^\W_].*:)\n")
FIELD = re.compile(
    r"^    cdef (public|readonly) (\w+) (\w+(?:, \w+)*)(?: *# type: ([^;\n]*[^;\s]))?", re.MULTILINE
)
FUNCTION = re.compile(r"(@[\w.]+\n *)?def (\w+)\(([\s\S]*?)\)(?: -> ([^:]+))?:")
METHOD = re.compile("^    " + FUNCTION.pattern, re.MULTILINE)
C_TYPED = re.compile(r"(?:const )?\b(\w+)(\[[:1, ]+\])? (\w+)(?=[,:=]|$)(:[^,=]+)?(=None)?")


def in_python(c_typed: re.Match) -> str:
    """Write a parameter with its C type as an annotation."""
    c_type, is_array, name, annotation, is_optional = c_typed.groups()
    annotation = annotation or ": " + TYPES.get(c_type + ("[]" if is_array else ""), c_type)
    return f"{name}{annotation}{' | None = None' if is_optional else ''}"


def function(decorator: str, name: str, parameters: str, result: str) -> str:
    """Write the signature of a function."""
    if name == "__cinit__" or (name[0] == "_" and name[-1] != "_" and not result):
        return ""
    parameters = C_TYPED.sub(in_python, " ".join(parameters.split()))
    text = f"{decorator.strip()}\ndef {name}({parameters}) -> {result or 'None'}: ...\n"
    try:
        found = ast.parse(text).body[0].args
    except SyntaxError as error:
        raise ValueError(f"{error.msg}: {text.strip()}") from error
    every = [*found.args, *found.kwonlyargs, found.vararg, found.kwarg]
    lacking = [one.arg for one in every if one and one.arg != "self" and not one.annotation]
    lacking += [] if result or name == "__init__" else ["its result"]
    if lacking:
        raise ValueError(f"{name}() lacks annotations of {', '.join(lacking)}")
    return text.lstrip()


def fields(kind: str, c_type: str, names: str, given: str) -> str:
    """Write attributes, or properties where Python may not set them."""
    form = "{}: {}\n" if kind == "public" else "@property\ndef {}(self) -> {}: ...\n"
    given = given or TYPES.get(c_type, c_type)
    return "".join(form.format(name, given) for name in names.split(", "))


def declarations(source: Path) -> str:
    """Write constants, functions and classes of a module."""
    text, classes = "", {}
    for path in filter(Path.exists, (source.with_suffix(".pxd"), source)):
        code = re.sub(r'"""[\s\S]*?"""', "", path.read_text(encoding="utf-8")) + "\n"
        for block in re.split(r"(?<=\n)(?=[\w@])", code):
            if found := CLASS.match(block):
                members = [fields(*one) for one in FIELD.findall(block)]
                members += [function(*one) for one in METHOD.findall(block)]
                classes[found[1]] = classes.get(found[1], "") + "".join(members)
            elif found := FUNCTION.match(block):
                text += function(*found.groups(""))
            elif found := CONSTANT.match(block):
                text += f"{found[1]}: {found[2]}\n"
    for header, members in classes.items():
        text += f"{header}\n{indent(members or '...', '    ')}\n"
    return text


def stub(source: Path) -> str:
    """Write the stub of a module."""
    text = declarations(source)
    own, imports = re.findall(r"^class (\w+)", text, re.MULTILINE), ""
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx")]):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        names = {"".join(one) for one in DEFINED.findall(path.read_text(encoding="utf-8"))}
        names &= {*re.findall(r"\w+", text)} - {*own}
        imports += "".join(f"from {module} import {name}\n" for name in sorted(names))
    return HEADER + imports + text


if __name__ == "__main__":
    for source in [Path(sys.argv[1])] if sys.argv[1:] else PACKAGE.rglob("*.pyx"):
        target = Path(sys.argv[2]) if sys.argv[1:] else source.with_suffix(".pyi")
        try:
            target.write_text(stub(source), encoding="utf-8")
        except ValueError as error:
            sys.exit(f"{source}: {error}")
