"""Nested dicts of arrays and numbers in one file: written atomically, read safely.

The file is NumPy's ``.npz``, a zip archive of plain arrays whose parts have checksums.
One of them is text, the nesting with all numbers and names.  Nothing is pickled, so
nothing in a file can be executed.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "skihmm"
VERSION = 1
_TREE = "tree"
_ARRAY = "__array__"


def _flatten(value: Any, arrays: dict[str, Any]) -> Any:
    """What JSON can hold; arrays go to `arrays` and leave their name."""
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


def _restore(value: Any, arrays: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {key: _restore(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore(item, arrays) for item in value]
    return value


def save(path: str | os.PathLike[str], kind: str, content: dict[str, Any]) -> None:
    """Write `content` so that `path` always holds a complete file, the old or the new.

    Parameters
    ----------
    path : path-like
        Its folder must exist; one process at a time may write there.
    kind : str
        What the file is; `load` asks for the same.
    content : dict
        Dicts with string keys, lists, arrays, numbers, strings, booleans and None, nested
        at will.  Lists and tuples come back as lists.
    """
    path = Path(path)
    arrays: dict[str, Any] = {}
    tree = _flatten(content, arrays)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "content": tree}
    arrays[_TREE] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    # In the same folder, so that the last step is a rename, which cannot be seen half
    # done.  What a killed process left under this name is overwritten.
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with open(unfinished, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path-like
    kind : str

    Returns
    -------
    content : dict

    Raises
    ------
    FileNotFoundError
    ValueError
        If the file is torn, or not of this format, version or kind.
    """
    path = Path(path)
    try:
        # (np.load would leave a file open that turns out to be no archive.)
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, Mapping) or _TREE not in archive:
                raise ValueError("it has no table of contents")
            head = json.loads(archive[_TREE].tobytes().decode())
            if not isinstance(head, dict) or head.get("format") != FORMAT:
                raise ValueError("it was not written by skihmm")
            if head.get("version") != VERSION:
                raise ValueError(
                    f"it has version {head.get('version')!r} of the format; this version "
                    f"of skihmm reads {VERSION}"
                )
            if head.get("kind") != kind:
                raise ValueError(f"it holds {head.get('kind')!r}, not {kind!r}")
            content = _restore(head.get("content"), archive)
    except FileNotFoundError:
        raise
    except (
        ValueError,
        KeyError,
        EOFError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise ValueError(
            f"{path} cannot be read: {error}.  Delete or move it to start afresh."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} cannot be read: it holds no dict.")
    return content
