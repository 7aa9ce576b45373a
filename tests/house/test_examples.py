"""Examples that need data, on small data made here."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from house.test_docs import HAS_SAME_DRAWS

EXAMPLES = Path(__file__).parents[2] / "examples"
# A comment before a paragraph whose numbers the example prints.
QUOTED = re.compile(r"^# \.\. quoted\n#\n((?:# .+\n)+)", re.M)
QUOTING = {
    path: paragraphs
    for path in sorted(EXAMPLES.glob("gallery/*/plot_*.py"))
    if (paragraphs := QUOTED.findall(path.read_text(encoding="utf-8")))
}

# More than ten CPU seconds.
SLOW = {"plot_dishonest_casino"}


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run an example as a program, in a folder with its data; return what it prints."""

    def run(name, *options):
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name), *options])
        runpy.run_path(sys.argv[0], run_name="__main__")
        out, err = capsys.readouterr()
        assert err == ""
        return out

    monkeypatch.chdir(tmp_path)
    # Neither the text of the user nor an earlier download.
    monkeypatch.setenv("SKIHMM_DATA", str(tmp_path))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    return run


@pytest.fixture
def book(tmp_path):
    """A short book of five chapters, in the folder of the data."""
    sentence = "The cat sat on the mat. A dog saw the cat!\n"
    chapters = [
        f"CHAPTER {number}\n\n{sentence * (60 + i)}\n"
        for i, number in enumerate(["I", "II", "III", "IV", "V"])
    ]
    (tmp_path / "alice.txt").write_text("\n".join(chapters), encoding="utf-8")


def test_quickstart_finds_the_true_number_of_states(run):
    assert "states found: 15 (true: 15)\n" in run("quickstart.py")


@pytest.mark.skipif(not HAS_SAME_DRAWS, reason="draws differ in their last bits")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path.stem in SLOW), id=path.stem)
        for path in QUOTING
    ],
)
def test_prose_of_the_gallery_quotes_what_is_printed(run, path, monkeypatch):
    pytest.importorskip("pandas")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    if "statsmodels" in path.read_text(encoding="utf-8"):
        pytest.importorskip("statsmodels")
    monkeypatch.setenv("MPLBACKEND", "agg")
    number = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
    printed = set(number.findall(run(path)))
    pyplot.close("all")
    quoted = [n for text in QUOTING[path] for n in number.findall(text)]
    assert quoted
    assert [n for n in quoted if n not in printed] == []


def test_digits(run):
    lines = run("digits.py", "--steps=1000", "--sweeps=50").splitlines()
    _, ordered, shuffled, clusters = map(str.split, lines)
    # (Three columns of numbers: states, adjusted Rand index, seconds.)
    scores = [float(row[-2]) for row in (ordered, shuffled, clusters)]
    assert scores[0] > scores[1]
    assert scores[0] > scores[2] > 0.5


def test_motion_capture(run, tmp_path):
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
    np.savez(tmp_path / "mocap6" / "mocap6.npz", X=X, labels=actions, ends=np.array([120, 240]))
    lines = run("motion_capture.py", "--order=1", "--sweeps=20").splitlines()
    values = dict(line.split(": ") for line in lines if line.count(": ") == 1)
    assert values["actions"] == "2 in 8 segments"
    assert float(values["steps in a state's main action"]) > 0.9


@pytest.mark.parametrize("split", ["chapters", pytest.param("end", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("book")
def test_choose_sampler(run, split):
    lines = run(
        "choose_sampler.py",
        f"--split={split}",
        *("--chapters=4", "--folds=2", "--burnin=1", "--draws=2"),
    ).splitlines()
    # Eleven words and two ends of sentence; a heading is three symbols.
    assert lines[0] == f"{13 * (60 + 61 + 62 + 63) + 12} words in 4 chapters"
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) == 9
    scores = [float(row.split("|")[2].split("±")[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert "| 0.000 ± 0.000 |" in rows[0]
    assert max(scores) < 0
    assert lines[-1].endswith("CPU seconds in all")


def test_choose_sampler_without_the_text(run):
    with pytest.raises(SystemExit, match=r"Set SKIHMM_DATA to a folder with alice\.txt"):
        run("choose_sampler.py")


GALLERY = sorted(EXAMPLES.glob("gallery/*/plot_*.py"))


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_figures_of_the_gallery_are_drawn_in_one_block(path):
    """The gallery takes the figures of a block, and closes them, before the next block."""
    for block in path.read_text(encoding="utf-8").split("\n# %%\n")[1:]:
        names = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Name)]
        made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        used = {node.id for node in names} & {"ax", "axes", "fig", "figure", "display"}
        assert used <= made, f"{used - made} of an earlier block"


def test_every_panel_of_the_forecast_is_drawn_on():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    plt.switch_backend("Agg")
    source = (EXAMPLES / "gallery" / "after" / "plot_forecast.py").read_text(encoding="utf-8")
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
