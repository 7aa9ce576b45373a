"""Examples that need data, on data of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *options, folder, cwd):
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *options],
        cwd=cwd,
        # Neither the text of the user nor an earlier download.
        env={
            **os.environ,
            "SKIHMM_DATA": str(folder),
            "SCIKIT_LEARN_DATA": str(folder),
            "PYTHONWARNINGS": "error",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def book(tmp_path):
    """A folder with a short book of five chapters."""
    sentence = "The cat sat on the mat. A dog saw the cat!\n"
    chapters = [
        f"CHAPTER {number}\n\n{sentence * (60 + i)}\n"
        for i, number in enumerate(["I", "II", "III", "IV", "V"])
    ]
    (tmp_path / "alice.txt").write_text("\n".join(chapters), encoding="utf-8")
    return tmp_path


def test_digits(tmp_path):
    done = run("digits.py", "--steps=1000", "--sweeps=50", folder=tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    _, ordered, shuffled, clusters = (line.split() for line in done.stdout.splitlines())
    # (Three columns of numbers: states, adjusted Rand index, seconds.)
    scores = [float(row[-2]) for row in (ordered, shuffled, clusters)]
    assert scores[0] > scores[1]
    assert scores[0] > scores[2] > 0.5


def test_motion_capture(tmp_path):
    """On two rotations, clockwise and the other way round."""
    rng = np.random.default_rng(0)
    actions = np.repeat(np.arange(8) % 2, 30)
    X = np.zeros((240, 12))
    X[0, :2] = 1.0
    for t in range(1, 240):
        turn = 0.5 * (-1) ** actions[t]
        matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        X[t, :2] = matrix @ X[t - 1, :2]
        X[t] += 0.05 * rng.normal(size=12)
    (tmp_path / "mocap6").mkdir()
    np.savez(
        tmp_path / "mocap6" / "mocap6.npz", X=X, labels=actions, ends=np.array([120, 240])
    )
    done = run(
        "motion_capture.py", "--order=1", "--sweeps=20", folder=tmp_path, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    values = dict(
        line.split(": ") for line in done.stdout.splitlines() if line.count(": ") == 1
    )
    assert values["actions"] == "2 in 8 segments"
    assert float(values["steps in a state's main action"]) > 0.9


@pytest.mark.parametrize(
    "split", ["chapters", pytest.param("end", marks=pytest.mark.slow)]
)
def test_choose_sampler(book, tmp_path, split):
    done = run(
        "choose_sampler.py",
        f"--split={split}",
        *("--chapters=4", "--folds=2", "--burnin=1", "--draws=2"),
        folder=book,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    # Eleven words and two ends of sentence; a heading is three symbols.
    assert lines[0] == f"{13 * (60 + 61 + 62 + 63) + 12} words in 4 chapters"
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == 9
    scores = [float(row.split("|")[2].split("±")[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert "| 0.000 ± 0.000 |" in rows[0]
    assert max(scores) < 0
    assert lines[-1].endswith("CPU seconds in all")


def test_choose_sampler_without_the_text(tmp_path):
    done = run("choose_sampler.py", folder=tmp_path, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "alice.txt" in done.stderr
    assert "Set SKIHMM_DATA to a folder" in done.stderr


def test_every_panel_of_the_forecast_is_drawn_on():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    plt.switch_backend("Agg")
    source = (EXAMPLES / "gallery" / "plot_forecast.py").read_text(encoding="utf-8")
    names = {}
    panels = []
    # sphinx-gallery takes the figures of a block of code, and closes them, before the
    # next block runs.
    for block in source.split("\n# %%\n"):
        exec(compile(block, "plot_forecast.py", "exec"), names)
        for number in plt.get_fignums():
            panels += [ax.has_data() for ax in plt.figure(number).axes]
        plt.close("all")
    assert panels == [True, True]
