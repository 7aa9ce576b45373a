"""Nested dicts of arrays and numbers in one file: written atomically, read safely.

The file is NumPy's ``.npz``, a zip archive of plain arrays whose parts have checksums.
One part is text, the nesting with all numbers and names.  Nothing is pickled, so
nothing in a file can be executed.
"""

from __future__ import annotations

import glob
import io
import json
import math
import os
import stat
import time
import uuid
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np

from skihmm._typing import Array, NamedValues

FORMAT = "skihmm"
VERSION = 1
_TREE = "tree"
_ARRAY = "__array__"

# Seconds without growth after which an unfinished file belongs to a killed process.
_ABANDONED = 600


def _flatten(value: object, arrays: dict[str, Array]) -> object:
    """Convert to JSON's types; arrays are moved to `arrays` and replaced by names."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        if not all(isinstance(key, str) and key != _ARRAY for key in value):
            raise TypeError(f"a dict with the keys {list(value)} cannot be saved")
        return {key: _flatten(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_flatten(item, arrays) for item in value]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"an array of dtype {value.dtype} cannot be saved")
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a value of type {type(value).__name__} cannot be saved")


def _restore(value: object, arrays: dict[str, Array]) -> object:
    """Restore the nesting with its arrays, which are removed from `arrays`."""
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            if value[_ARRAY] not in arrays:
                raise ValueError(f"{value[_ARRAY]!r} is missing, or is there twice")
            return arrays.pop(value[_ARRAY])
        return {key: _restore(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore(item, arrays) for item in value]
    return value


def _unfinished(path: Path) -> Path:
    """Make a new name in the same folder, so that renaming is atomic."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.unfinished")


def prepare(path: str | os.PathLike[str]) -> None:
    """Remove files of killed processes beside `path`, and check that it is writable."""
    path = Path(path)
    for name in path.parent.glob(f".{glob.escape(path.name)}.*.unfinished"):
        with suppress(OSError):
            if time.time() - name.stat().st_mtime > _ABANDONED:
                name.unlink()
    trial = _unfinished(path)
    trial.touch(exist_ok=False)
    trial.unlink()


def save(path: str | os.PathLike[str], kind: str, content: Mapping[str, object]) -> None:
    """Write `content` atomically: `path` always holds a complete file.

    Its folder must exist, and a symbolic link would be replaced, not its target.
    `content` is nested dicts with string keys, lists, arrays, numbers, strings, booleans
    and None.  Tuples are loaded as lists, dataclasses as dicts.
    """
    path = Path(path)
    arrays: NamedValues = {}
    tree = _flatten(content, arrays)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "content": tree}
    arrays[_TREE] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    unfinished = _unfinished(path)
    try:
        # Mode "x" neither opens a file that exists nor follows a link.
        with open(unfinished, "xb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def _read_array(data: bytes) -> Array:
    """Read the array of a member, checking its size against its header."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array has another version of NumPy's format")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    n_items, n_bytes = math.prod(shape), len(data) - stream.tell()
    if dtype.hasobject or min(shape, default=0) < 0 or dtype.itemsize == 0:
        raise ValueError(f"an array has the dtype {dtype} and the shape {shape}")
    if n_items * dtype.itemsize != n_bytes:
        raise ValueError(f"an array of dtype {dtype} and shape {shape} has {n_bytes} bytes")
    flat = np.frombuffer(data, dtype, n_items, stream.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C").copy(order="K")


def _read_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of a file, without allocating more memory than its bytes."""
    # Checked before the file is opened, because opening a pipe blocks.
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        # The end record, without a comment, is the last of the file.
        file.seek(-22, os.SEEK_END)
        if file.read(4) != b"PK\5\6":
            raise ValueError("something follows its end")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                raise ValueError(f"its part {member.filename!r} is packed or encrypted")
        if sum(member.file_size for member in members) > status.st_size:
            raise ValueError("its parts are larger than the file")
        return {
            member.filename.removesuffix(".npy"): _read_array(archive.read(member))
            for member in members
        }


def load(path: str | os.PathLike[str], kind: str) -> NamedValues:
    """Read a file of `save`.

    A torn file, or a file of another format, version or kind, raises ValueError.
    """
    path = Path(path)
    try:
        arrays = _read_arrays(path)
        if _TREE not in arrays:
            raise ValueError("it has no table of contents")
        head = json.loads(arrays.pop(_TREE).tobytes().decode())
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise ValueError("it was not written by skihmm")
        if head.get("version") != VERSION:
            raise ValueError(
                f"it has version {head.get('version')!r} of the format; this version "
                f"of skihmm reads {VERSION}"
            )
        if head.get("kind") != kind:
            raise ValueError(f"it holds {head.get('kind')!r}, not {kind!r}")
        content = _restore(head.get("content"), arrays)
        if not isinstance(content, dict):
            raise ValueError("it holds no dict")
    except FileNotFoundError:
        raise
    # zipfile, zlib, json and NumPy raise a dozen kinds of errors for corrupt files.
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read: {error}.  Delete or move it to start afresh."
        ) from error
    return content
