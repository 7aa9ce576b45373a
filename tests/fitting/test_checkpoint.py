"""Files of nested arrays: what goes in comes out, what is broken is refused."""

from __future__ import annotations

import json
import math
import os
import pickle
import sys
import threading
import time
import zipfile

import numpy as np
import pytest

from skihmm._fitting import checkpoint as _checkpoint
from skihmm._fitting.checkpoint import load, prepare, save

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


def test_writes_at_the_same_time_leave_a_whole_file(tmp_path):
    path = tmp_path / "run.npz"
    start = threading.Barrier(4)
    errors = []

    def write(number):
        content = {"number": number, "array": np.full(10**5, number)}
        start.wait()
        try:
            for _ in range(10):
                save(path, "test", content)
                found = load(path, "test")
                assert (found["array"] == found["number"]).all()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert os.listdir(tmp_path) == ["run.npz"]


def test_a_planted_link_is_not_followed(path):
    victim = path.with_name("victim")
    victim.write_text("precious")
    (path.parent / ".run.npz.unfinished").symlink_to(victim)
    save(path, "test", CONTENT)
    assert victim.read_text() == "precious"


def test_what_killed_processes_left_is_removed(path, monkeypatch):
    def fail(source, target):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        patch.setattr(_checkpoint.Path, "unlink", lambda path: None)
        with pytest.raises(SystemExit):
            save(path, "test", CONTENT)
    (left,) = path.parent.glob(".run.npz.*")
    other = path.parent / ".other.npz.x.unfinished"
    other.touch()
    prepare(path)
    assert left.exists()  # Another process may be writing it.
    for file in (left, other):
        os.utime(file, (time.time() - 1000, time.time() - 1000))
    prepare(path)
    assert sorted(os.listdir(path.parent)) == [".other.npz.x.unfinished", "run.npz"]


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


def test_what_follows_a_file_is_refused(path):
    with open(path, "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match="something follows its end"):
        load(path, "test")


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
    np.savez(foreign, tree=np.frombuffer(b'{"format": "skihmm", "version": 99}', dtype=np.uint8))
    with pytest.raises(ValueError, match="version 99"):
        load(foreign, "test")


def repack(path, out, change=lambda name, data: data, **options):
    """Copy a file member by member."""
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(out, "w", **options) as copy:
        for name in whole.namelist():
            copy.writestr(name, change(name, whole.read(name)))


def array_of(text):
    return np.frombuffer(text.encode(), dtype=np.uint8)


def with_tree(content):
    """A file's table of contents whose content is the given text."""
    head = {"format": "skihmm", "version": 1, "kind": "test", "content": 0}
    return array_of(json.dumps(head).replace('"content": 0', f'"content": {content}'))


def test_parts_are_stored_and_no_larger_than_the_file(path, tmp_path):
    bad = tmp_path / "bad.npz"
    repack(path, bad)
    load(bad, "test")
    repack(path, bad, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"'array0\.npy' is packed or encrypted"):
        load(bad, "test")
    # The bit that says that a member is encrypted, in the directory and in the member.
    repack(path, bad)
    data = bytearray(bad.read_bytes())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + at] |= 1
    bad.write_bytes(data)
    with pytest.raises(ValueError, match=r"'array0\.npy' is packed or encrypted"):
        load(bad, "test")
    # Two entries of the directory that share their bytes.
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("a.npy", bytes(1000))
        archive.filelist.append(archive.filelist[0])
    with pytest.raises(ValueError, match="its parts are larger than the file"):
        load(bad, "test")


def test_shapes_that_are_not_those_of_the_data(path, tmp_path):
    bad = tmp_path / "bad.npz"
    for shape in ("(9999999999999,)", "(10000000,   )", "(-5,)", "(5, 1, 0)", "(4,)"):

        def change(name, data, shape=shape):
            # The length is the same, as the header says how long it is.
            old = b"(5,), }" + b" " * (len(shape) - 4)
            new = shape.encode() + b", }" + b" " * max(4 - len(shape), 0)
            return data.replace(old, new) if name == "array0.npy" else data

        repack(path, bad, change)
        with pytest.raises(ValueError, match=r"an array .*shape"):
            load(bad, "test")


def test_an_array_is_used_once(tmp_path):
    bad = tmp_path / "bad.npz"
    twice = '{"x": [{"__array__": "a"}, {"__array__": "a"}]}'
    np.savez(bad, tree=with_tree(twice), a=np.zeros(10))
    with pytest.raises(ValueError, match="'a' is missing, or is there twice"):
        load(bad, "test")


# As deep as json can read, and too deep for what follows.
DEPTH = 900 if sys.version_info < (3, 12) else 2000


@pytest.mark.parametrize(
    "content",
    [
        '{"x": ' + "[" * 10**5 + "]" * 10**5 + "}",
        '{"x": ' + "[" * DEPTH + "]" * DEPTH + "}",
        '{"x": {"__array__": []}}',
    ],
    ids=["deep", "less deep", "name"],
)
def test_bad_tables_of_contents(tmp_path, content):
    bad = tmp_path / "bad.npz"
    np.savez(bad, tree=with_tree(content))
    with pytest.raises(ValueError, match="cannot be read"):
        load(bad, "test")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    found = []

    def read():
        with pytest.raises(ValueError, match="it is not a regular file") as caught:
            load(pipe, "test")
        found.append(caught)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(5)
    assert found
    with pytest.raises(ValueError, match="it is not a regular file"):
        load(tmp_path, "test")


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
