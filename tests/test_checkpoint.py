"""Files of nested arrays: what goes in comes out, what is broken is refused."""

from __future__ import annotations

import math
import pickle
import zipfile

import numpy as np
import pytest

from skihmm._checkpoint import load, save

CONTENT = {
    "arrays": {"a": np.arange(5, dtype=np.int32), "b": [np.zeros((2, 0)), np.eye(2)]},
    "big": 2**127 + 1,
    "numbers": [1, -2.5, math.inf, 1e-300, 0.1 + 0.2, True, None, "text"],
    "scalar": np.float64(0.3),
    "bytes": np.array([b"x", b"yz"]),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.npz"
    save(path, "test", CONTENT)
    return path


def test_round_trip(path):
    found = load(path, "test")
    assert found.keys() == CONTENT.keys()
    np.testing.assert_array_equal(found["arrays"]["a"], CONTENT["arrays"]["a"])
    assert found["arrays"]["a"].dtype == np.int32
    assert found["arrays"]["b"][0].shape == (2, 0)
    assert found["big"] == 2**127 + 1
    assert found["numbers"] == CONTENT["numbers"]
    assert found["scalar"] == 0.3
    assert found["bytes"].tolist() == [b"x", b"yz"]
    assert [entry.name for entry in path.parent.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("value", [object(), np.array([None]), {1, 2}, {1: 2}])
def test_what_cannot_be_saved_leaves_the_old_file(path, value):
    before = path.read_bytes()
    with pytest.raises(TypeError, match="cannot be saved"):
        save(path, "test", {"x": value})
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    before = path.read_bytes()
    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        save(path, "test", CONTENT)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 1


def read_or_none(path):
    """What a file holds, or None if it is refused in the right way."""
    try:
        return load(path, "test")
    except ValueError as error:
        if "cannot be read" not in str(error):
            raise
        return None


def test_every_torn_or_altered_file_is_refused(path, tmp_path):
    whole = path.read_bytes()
    broken = tmp_path / "broken.npz"
    for length in range(0, len(whole), 41):
        broken.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="cannot be read"):
            load(broken, "test")
    # A flipped bit is noticed, or sits where it means nothing (a date, say).
    for at in range(0, len(whole), 17):
        altered = bytearray(whole)
        altered[at] ^= 0x10
        broken.write_bytes(altered)
        content = read_or_none(broken)
        if content is not None:
            np.testing.assert_array_equal(content["arrays"]["b"][1], np.eye(2))


def test_foreign_files_are_refused(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.npz", "test")
    with pytest.raises(ValueError, match="it holds 'test', not 'other'"):
        load(path, "other")
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, x=np.arange(3))
    with pytest.raises(ValueError, match="no table of contents"):
        load(foreign, "test")
    np.savez(foreign, tree=np.frombuffer(b'{"format": "other"}', dtype=np.uint8))
    with pytest.raises(ValueError, match="not written by skihmm"):
        load(foreign, "test")
    np.savez(
        foreign,
        tree=np.frombuffer(b'{"format": "skihmm", "version": 99}', dtype=np.uint8),
    )
    with pytest.raises(ValueError, match="version 99"):
        load(foreign, "test")


class _Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a file was executed",))


def test_nothing_is_executed(tmp_path, path):
    bomb = tmp_path / "bomb.npz"
    bomb.write_bytes(pickle.dumps(_Bomb()))
    with pytest.raises(ValueError, match="cannot be read"):
        load(bomb, "test")
    np.savez(bomb, tree=np.array([_Bomb()], dtype=object))
    with pytest.raises(ValueError, match="cannot be read"):
        load(bomb, "test")
    # The right table of contents, and an array that is a pickle.
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(bomb, "w") as out:
        for name in whole.namelist():
            if name != "array0.npy":
                out.writestr(name, whole.read(name))
        array = tmp_path / "array.npy"
        np.save(array, np.array([_Bomb()], dtype=object))
        out.writestr("array0.npy", array.read_bytes())
    with pytest.raises(ValueError, match="cannot be read"):
        load(bomb, "test")
