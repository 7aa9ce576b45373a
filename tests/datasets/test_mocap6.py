"""Motion capture: two file formats, wrong files, and the real data where they are."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

from skihmm.datasets import _mocap6, fetch_mocap6


def _file(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


X = np.arange(60.0).reshape(5, 12)
OURS = _file(X=X, labels=np.array([3, 3, 1, 1, 7]), ends=np.array([2, 5]))
REMOTE = _file(X=X, TrueZ=np.array([3.0, 3, 1, 1, 7]), doc_range=np.array([0, 2, 5]))


def _folder_with(tmp_path, raw):
    (tmp_path / "mocap6").mkdir()
    (tmp_path / "mocap6" / "mocap6.npz").write_bytes(raw)
    return tmp_path


@pytest.mark.parametrize("raw", [OURS, REMOTE])
def test_both_formats(tmp_path, raw):
    mocap6 = fetch_mocap6(_folder_with(tmp_path, raw))
    np.testing.assert_array_equal(mocap6.data, X)
    assert mocap6.target.tolist() == [1, 1, 0, 0, 2]
    assert mocap6.groups.tolist() == [0, 0, 1, 1, 1]
    assert len(mocap6.feature_names) == 12
    assert "Carnegie Mellon" in mocap6.DESCR
    data, target = fetch_mocap6(tmp_path, return_X_y=True)
    np.testing.assert_array_equal(data, mocap6.data)
    np.testing.assert_array_equal(target, mocap6.target)


WRONG = {
    "no archive": b"<html>",
    "other names": _file(Y=X),
    "other columns": _file(X=X[:, :5], labels=np.zeros(5), ends=np.array([5])),
    "other ends": _file(X=X, labels=np.zeros(5), ends=np.array([2, 4])),
    "pickles": _file(X=X, labels=np.array([None] * 5), ends=np.array([5])),
}


@pytest.mark.parametrize("raw", WRONG.values(), ids=WRONG)
def test_wrong_files(tmp_path, raw):
    with pytest.raises(ValueError, match=r"mocap6.npz is what is not the data set \("):
        fetch_mocap6(_folder_with(tmp_path, raw))


def test_download_is_cached(tmp_path, monkeypatch):
    requested = []
    monkeypatch.delenv("SKIHMM_DATA", raising=False)

    def urlopen(request, timeout):
        requested.append(request.full_url)
        return io.BytesIO(REMOTE)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    for _ in range(2):
        np.testing.assert_array_equal(fetch_mocap6(tmp_path / "home").data, X)
    assert requested == [_mocap6._URL]
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO(b"<html>"))
    with pytest.raises(OSError, match=r"answered with what is not the data set .* kept"):
        fetch_mocap6(tmp_path / "other")


_REAL_FOLDER = os.environ.get("SKIHMM_DATA")


@pytest.mark.skipif(
    not _REAL_FOLDER or not Path(_REAL_FOLDER, "mocap6", "mocap6.npz").is_file(),
    reason="SKIHMM_DATA names no folder with mocap6/mocap6.npz",
)
def test_the_real_data():
    mocap6 = fetch_mocap6(download_if_missing=False)
    assert mocap6.data.shape == (2058, 12)
    assert np.unique(mocap6.target).tolist() == list(range(12))
    assert np.bincount(mocap6.groups).min() > 200
    is_new = np.diff(mocap6.target) != 0
    is_new |= np.diff(mocap6.groups) != 0
    assert 1 + is_new.sum() in (37, 38)
