"""What all displays share: colours, errors, the comparison of pictures itself."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from pictures import BASELINE, canvas, differences, hide_text, is_same, pixels, read
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import skihmm.inspection
from skihmm import HCRPHMM
from skihmm.inspection import _style
from skihmm.inspection._display import Display

DISPLAYS = Display.__subclasses__()
PAGE = Path(__file__).parents[2] / "docs" / "inspection.md"

# Linear RGB as seen without the cones for medium and for long waves.
# (G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, 2009.)
VISIONS = {
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}


def as_lab(colour, vision):
    """A colour in CIELAB, where distances are as seen."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(VISIONS[vision]) @ linear, 0, 1)
    xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    ) @ linear / [0.95047, 1, 1.08883]  # fmt: skip
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(("n", "least"), [(8, 17.0), (16, 14.0), (30, 9.0)])
def test_colours_are_distinct(vision, n, least):
    colours = [*map(_style.state_colour, range(n)), "#FFFFFF"]
    points = np.array([as_lab(colour, vision) for colour in colours])
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    np.fill_diagonal(distances, np.inf)
    # (A difference of 2.3 is just noticed side by side.)
    assert distances.min() > least


def test_colours_repeat_after_the_last():
    colours = [_style.state_colour(k) for k in range(64)]
    assert len(set(colours)) == 32
    assert colours[:32] == colours[32:]


@pytest.mark.parametrize(
    ("colour", "ink"), [("#000000", "white"), ("#F0E442", "black"), ((1, 1, 1), "black")]
)
def test_ink(colour, ink):
    assert _style.ink_on(colour) == ink


def test_ink_has_the_colours_of_the_style(pyplot):
    with pyplot.style.context("default"):
        assert (_style.ink(), _style.ink(1)) == ((0, 0, 0), (1, 1, 1))
        assert _style.ink(0.3) == pytest.approx((0.3, 0.3, 0.3))
    with pyplot.style.context("dark_background"):
        assert (_style.ink(), _style.ink(1)) == ((1, 1, 1), (0, 0, 0))
    # Greys of displays are inks, which dark styles turn.
    for path in Path(skihmm.inspection.__file__).parent.glob("*.py"):
        greys = re.findall(r"color\w*\"?[=:] ?\"(?:black|0?\.\d+)\"", path.read_text())
        # The marker of selected draws is white with a black edge on any background.
        assert greys == (['color": "black"'] if path.name == "_trace.py" else []), path.name


@pytest.mark.parametrize("n", [1, 5, 31, 200])
@pytest.mark.parametrize("which", ["xaxis", "yaxis"])
def test_tick_labels_do_not_overlap(n, which, pyplot):
    figure, ax = pyplot.subplots(figsize=(4, 3))
    ax.set(xlim=(-0.5, n - 0.5), ylim=(-0.5, n - 0.5))
    axis = getattr(ax, which)
    _style.set_state_ticks(axis, [str(k) for k in range(n)])
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
    assert len(boxes) >= min(n, 8)
    one, other = boxes[:-1], boxes[1:]
    assert not any(a.overlaps(b) for a, b in zip(one, other, strict=True))


def test_all_displays_are_public_and_on_the_page():
    for info in pkgutil.iter_modules(skihmm.inspection.__path__):
        importlib.import_module(f"skihmm.inspection.{info.name}")
    names = {display.__name__ for display in Display.__subclasses__()}
    public = {*skihmm.inspection.__all__}
    assert public == names, f"__all__ of skihmm/inspection/__init__.py: {public ^ names}"
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    rows = {*re.findall(r"^\| \[`(\w+)`\]\(#", sections[0], re.M)}
    assert rows == names, f"rows of the first table of docs/inspection.md: {rows ^ names}"
    for name in names:
        own = [part for part in sections if f"import {name}\n" in part]
        where = f'docs/inspection.md, sections with "import {name}"'
        assert len(own) == 1, f"{where}: {len(own)}; expected one"
        has_picture = re.search(r"^!\[.+\]\(figures/.+\.png\)$", own[0], re.M)
        assert has_picture, f"{where}: no picture; docs/figures/inspection.py draws them"


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_options_are_those_of_plot(display):
    """The same names and defaults in `plot` and in the class methods that call it."""
    options = dict(inspect.signature(display.plot).parameters)
    del options["self"]
    for name in (name for name in vars(display) if name.startswith("from_")):
        found = inspect.signature(getattr(display, name)).parameters
        same = [o for o in options if o in found and found[o].default == options[o].default]
        assert same == [*options], f"{display.__name__}.{name}"


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_estimators_are_checked(display):
    def make(hmm):
        needs_data = "X" in inspect.signature(display.from_estimator).parameters
        return display.from_estimator(hmm, *([[[0]]] if needs_data else []))

    with pytest.raises(TypeError, match=r"is a int; expected a fitted HCRPHMM"):
        make(3)
    with pytest.raises(TypeError, match=r"a Pipeline; .* Pass its last step"):
        make(make_pipeline(HCRPHMM()))
    with pytest.raises(NotFittedError):
        make(HCRPHMM())


@pytest.mark.parametrize("which", ["xaxis", "yaxis"])
@pytest.mark.parametrize(("high", "least"), [(5.0, 3), (40.0, 2), (1e5, 4)])
def test_logarithmic_axes_have_plain_numbers(which, high, least, pyplot):
    figure, ax = pyplot.subplots(figsize=(4, 3))
    ax.plot([1.0, high], [1.0, high])
    axis = getattr(ax, which)
    _style.set_log_scale(axis)
    figure.canvas.draw()
    low, top = axis.get_view_interval()
    labels = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    shown = [label for place, label in labels if low <= place <= top]
    assert len(shown) >= least
    assert all(float(label.get_text()) > 0 for label in shown)
    boxes = [label.get_window_extent() for label in shown]
    assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


# -- the comparison of pictures -------------------------------------------------------


def test_baselines_differ_from_one_another():
    pictures = [read(path) for path in sorted(BASELINE.glob("*.png"))]
    assert pictures
    for i, one in enumerate(pictures):
        assert is_same(one, one)
        assert not any(is_same(one, other) for other in pictures[:i])


def test_small_changes_are_noticed():
    def picture(lines, colour="C0"):
        with canvas() as figure:
            ax = figure.subplots()
            for slope in lines:
                ax.plot([0, 1], [0, slope], linewidth=1, color=colour)
            hide_text(figure)
            return pixels(figure)

    whole = picture([1, 2, 3])
    assert differences(whole, picture([1, 2, 3])) == (0, 0)
    assert not is_same(whole, picture([1, 2.3, 3]))
    assert not is_same(whole, picture([1, 3]))
    assert not is_same(whole, picture([1, 2, 3], "C1"))
    # What is half a pixel elsewhere is the same.
    moved = (whole + np.roll(whole, 1, axis=1)) / 2
    assert is_same(whole, moved)


def test_text_makes_no_difference():
    def picture(text):
        with canvas() as figure:
            ax = figure.subplots()
            ax.plot([0, 1], label=text)
            ax.set(xlabel=text, title=text, xticks=[0, 1], xticklabels=[text, text])
            ax.text(0.5, 0.5, text)
            ax.legend()
            figure.legend()
            before = pixels(figure)
            hide_text(figure)
            return before, pixels(figure)

    (one, without), (other, nor) = picture("A"), picture("Wg")
    assert not is_same(one, other)
    assert differences(without, nor) == (0, 0)
