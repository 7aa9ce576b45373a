"""Stubs of compiled modules say what is in the modules."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "stubs.py"
_spec = importlib.util.spec_from_file_location("stubs", TOOL)
stubs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stubs)


def own(names: dict[str, object], module: str) -> dict[str, object]:
    """Public classes and functions that a module defines, and the methods of its classes."""
    found = {}
    for name, value in names.items():
        if name[0] != "_" and getattr(value, "__module__", "") == module:
            found[name] = value
            if inspect.isclass(value):
                annotated = inspect.get_annotations(value)
                for member, method in {**annotated, **vars(value)}.items():
                    if member[0] != "_":
                        found[f"{name}.{member}"] = method
    return found


def parameters(function: object) -> list[tuple[object, ...]]:
    """Names, kinds and default values."""
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind, one.default) for one in found]


@pytest.mark.parametrize("source", sorted(stubs.PACKAGE.rglob("*.pyx")), ids=lambda path: path.stem)
def test_stubs_have_all_public_names(source):
    path = source.relative_to(stubs.PACKAGE.parent).with_suffix("")
    module = importlib.import_module(".".join(path.parts))
    text = stubs.stub(source)
    constants = re.findall(r"^([A-Z_]+): ", text, re.MULTILINE)
    assert {*constants} <= vars(module).keys()
    # Values of constants, which are defaults, come from the module.
    names = dict(vars(module))
    # Without this module's future import: annotations are evaluated.
    exec(compile(text, str(source), "exec", dont_inherit=True), names)
    written = {name: value for name, value in names.items() if value is not vars(module).get(name)}
    compiled, written = own(vars(module), module.__name__), own(written, module.__name__)
    assert written.keys() == compiled.keys()
    for name, value in written.items():
        if inspect.isfunction(value):
            assert parameters(value) == parameters(compiled[name]), name
            # (Evaluates them from Python 3.14 on.)
            inspect.get_annotations(value)


CLASS = '''"""A module."""

MOST = 3  # type: int
INSIDE = 4

cdef class A(B):
    """A class."""

    cdef public float64_t x, y
    cdef readonly object z          # type: str; a comment
    cdef int32_t hidden

    def __init__(self, const int64_t[::1] a, RandomStream stream=None):
        self.x = 0

    cdef int native(self, int a) except -1:
        return a

    def _private(self, a):
        def inner(b):
            return b

    @property
    def n(self) -> int:  # always zero
        """A property."""
        return 0

    def f(self, intp_t t: SupportsIndex, *, bint is_last=False,
          path: ArrayLike = ()) -> Floats:
        return None
'''

STUB = """\
MOST: int
class A(B):
    x: float
    y: float
    @property
    def z(self) -> str: ...
    def __init__(self, a: Integers, stream: RandomStream | None = None) -> None: ...
    @property
    def n(self) -> int: ...
    def f(self, t: SupportsIndex, *, is_last: bool=False, path: ArrayLike = ()) -> Floats: ...

"""


def test_types_come_from_annotations_comments_and_c_types(tmp_path):
    source = tmp_path / "_a.pyx"
    source.write_text(CLASS)
    assert stubs.declarations(source) == STUB


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("f(a, int32_t b) -> int", r"f\(\) lacks annotations of a$"),
        ("f(int32_t b)", r"f\(\) lacks annotations of its result"),
        ("f(A a not None) -> int", r"invalid syntax: def f\(A a None: not\) -> int"),
    ],
)
def test_signatures_without_a_stub_are_errors(signature, message, tmp_path):
    source = tmp_path / "_a.pyx"
    source.write_text(f"def {signature}:\n    return 0\n")
    with pytest.raises(ValueError, match=message):
        stubs.declarations(source)


@pytest.mark.parametrize(
    "source", sorted((stubs.PACKAGE / "samplers").glob("*.pyx")), ids=lambda path: path.stem
)
def test_annotations_of_samplers_name_classes(source):
    """They are types of what is compiled."""
    signatures = re.findall(r"def \w+\(([^)]*)\)", source.read_text(encoding="utf-8"))
    builtin = r": (bool|bytes|dict|float|int|list|set|str|tuple)\b"
    assert [text for text in signatures if re.search(builtin, text)] == []
