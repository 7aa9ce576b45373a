"""All displays with long names, many states, dates and a dark background: text has room."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import skihmm.inspection._regressions
from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal, NormalInverseGamma, ProductEmission
from skihmm.inspection import (
    DwellTimeDisplay,
    EmissionDisplay,
    ForecastDisplay,
    RegimeTreeDisplay,
    RegressionDisplay,
    ResidualDisplay,
    StateSequenceDisplay,
    SubjectDisplay,
    TraceDisplay,
    TransitionMatrixDisplay,
)
from skihmm.inspection._display import Display
from skihmm.transitions import HCRPTransitions

pd = pytest.importorskip("pandas")
SHORT = {"n_burnin": 2, "n_draws": 2, "thin": 1, "random_state": 0}
N_STATES, N_ROWS = 15, 600
# In points: texts that are nearer seem to touch.
GAP = 1.0


def long_names(n):
    """Names of 60 letters: sentences, and one word."""
    words = "temperature of the cooling water behind pump {:02d} on left (°C)"
    names = [words.format(i) for i in range(n)]
    names[1::3] = [name.replace(" ", "_") for name in names[1::3]]
    names[2::3] = ["MW" * 25 + f"{i:07d} kW" for i in range(n)[2::3]]
    assert {len(name) for name in names} == {60}
    return names


NAMED = dict(enumerate(long_names(N_STATES)))


def paths():
    """Stays of two to 40 rows in all states."""
    rng = np.random.default_rng(0)
    return np.repeat(rng.permutation(np.arange(60) % N_STATES), rng.permutation(60) // 6 * 2 + 1)


def frame(n_columns):
    path = paths()[:N_ROWS]
    rng = np.random.default_rng(1)
    index = pd.date_range("2023-01-20", periods=len(path), freq="D")
    data = 10.0 * path[:, None] + rng.normal(size=(len(path), n_columns))
    return pd.DataFrame(data, index=index, columns=long_names(n_columns)), path


@pytest.fixture(scope="module")
def numbers():
    """Fits of one column and of twelve columns of numbers."""
    found = {}
    for n_columns in (1, 12):
        X, path = frame(n_columns)
        hmm = HCRPHMM(emission="diagonal_gaussian", transitions="sticky", **SHORT)
        found[n_columns] = hmm.fit(X, states=path), X
        assert hmm.n_states_ == N_STATES
    return found


@pytest.fixture(scope="module")
def regressions():
    """Fits of a column with one input, and with eleven inputs, which staying has, too."""
    found = {}
    for n_inputs in (1, 11):
        X, path = frame(n_inputs + 1)
        inputs = list(range(1, n_inputs + 1))
        X.iloc[:, 1:] = np.random.default_rng(2).normal(20, 5, size=(len(X), n_inputs))
        hmm = HCRPHMM(
            emission=AutoregressiveNormal(order=0, input_features=inputs),
            transitions=HCRPTransitions(expected_dwell=10, input_features=inputs),
            **SHORT,
        )
        found[n_inputs] = hmm.fit(X, states=path), X
        assert hmm.n_states_ == N_STATES
    return found


@pytest.fixture(scope="module")
def symbols():
    """Fits of one column, and of twelve columns, of symbols with 60 letters."""
    found = {}
    for n_columns in (1, 12):
        X, path = frame(n_columns)
        words = np.array(long_names(N_STATES), dtype=object)
        for c in range(n_columns):
            X[X.columns[c]] = words[path]
        parts = [(f"part_of_the_data_{c:02d}", "hcrp", [c]) for c in range(n_columns)]
        hmm = HCRPHMM(emission=ProductEmission(parts), **SHORT)
        found[n_columns] = hmm.fit(X, states=path), X
        assert hmm.n_states_ == N_STATES
    return found


@pytest.fixture(scope="module")
def subjects():
    """Twelve subjects with long names."""
    X, path = frame(1)
    X["who"] = np.array(long_names(12), dtype=object)[np.arange(len(X)) * 12 // len(X)]
    emission = NormalInverseGamma(subject_feature="who")
    return HCRPHMM(emission=emission, **SHORT).fit(X, groups=X["who"], states=path)


CALLS = {
    "states": ("numbers", lambda fit, X: StateSequenceDisplay.from_estimator(fit, X)),
    "states of draws": ("numbers", lambda fit, X: StateSequenceDisplay.from_draws(fit.draws_, X)),
    "states of symbols": ("symbols", lambda fit, X: StateSequenceDisplay.from_estimator(fit, X)),
    "densities": ("numbers", lambda fit, _: EmissionDisplay.from_estimator(fit)),
    "intervals": ("numbers", lambda fit, _: EmissionDisplay.from_estimator(fit, kind="interval")),
    "inputs": ("regressions", lambda fit, _: EmissionDisplay.from_estimator(fit)),
    "matrices": ("symbols", lambda fit, _: EmissionDisplay.from_estimator(fit, kind="matrix")),
    "top": ("symbols", lambda fit, _: EmissionDisplay.from_estimator(fit, kind="top", n_top=4)),
    "heat map": ("numbers", lambda fit, _: TransitionMatrixDisplay.from_estimator(fit)),
    "heat map with intervals": (
        "numbers",
        lambda fit, _: TransitionMatrixDisplay.from_estimator(fit, probability=0.9),
    ),
    "graph": ("numbers", lambda fit, _: TransitionMatrixDisplay.from_estimator(fit, kind="graph")),
    "trace": ("numbers", lambda fit, _: TraceDisplay.from_estimator(fit)),
    "trace of parts": ("symbols", lambda fit, _: TraceDisplay.from_estimator(fit)),
    "coefficients": ("regressions", lambda fit, _: RegressionDisplay.from_estimator(fit)),
    "curve": ("regressions", lambda fit, _: RegressionDisplay.from_estimator(fit, feature=0)),
    "staying": (
        "regressions",
        lambda fit, _: RegressionDisplay.from_estimator(fit, output="staying"),
    ),
    "forecast": ("numbers", lambda fit, X: ForecastDisplay.from_estimator(fit, X)),
    "dwell times": ("numbers", lambda fit, X: DwellTimeDisplay.from_estimator(fit, X)),
    "dwell times of draws": ("numbers", lambda fit, _: DwellTimeDisplay.from_draws(fit.draws_)),
    "residuals": ("numbers", lambda fit, X: ResidualDisplay.from_estimator(fit, X, column=0)),
    "regimes": ("numbers", lambda fit, _: RegimeTreeDisplay.from_estimator(fit)),
    "named states": (
        "numbers",
        lambda fit, X: StateSequenceDisplay.from_estimator(fit, X, names=NAMED),
    ),
    "named densities": ("numbers", lambda fit, _: EmissionDisplay.from_estimator(fit, names=NAMED)),
    "named heat map": (
        "numbers",
        lambda fit, _: TransitionMatrixDisplay.from_estimator(fit, names=NAMED),
    ),
    "named graph": (
        "numbers",
        lambda fit, _: TransitionMatrixDisplay.from_estimator(fit, kind="graph", names=NAMED),
    ),
}
# Displays whose panels, or labels, differ with twelve columns.
WITH_MANY = ("states", "states of symbols", "densities", "top", "trace of parts", "coefficients",
             "forecast")  # fmt: skip
CASES = [(name, n) for name in CALLS for n in ("few", "many") if n == "few" or name in WITH_MANY]


def drawn_texts(figure):
    """Texts that are drawn, with their corners in points."""
    from matplotlib.text import Text
    from matplotlib.transforms import Affine2D

    found = []
    draw = Text.draw

    def note(self, renderer):
        if self.get_visible() and self.get_text().strip():
            found.append(self)
        draw(self, renderer)

    Text.draw = note
    try:
        figure.draw_without_rendering()
    finally:
        Text.draw = draw
    scale = 72 / figure.dpi
    boxes = []
    for text in found:
        angle, mode = text.get_rotation(), text.get_rotation_mode()
        if angle % 90 and mode == "anchor":
            # The box of an oblique text, not the box around it.
            text.set_rotation(0)
            box = text.get_window_extent()
            place = text.get_transform().transform(text.get_position())
            corners = Affine2D().rotate_deg_around(*place, angle).transform(box.corners())
            text.set_rotation(angle)
        else:
            corners = text.get_window_extent().corners()
        boxes.append(corners[[0, 1, 3, 2]] * scale)
    return [text.get_text() for text in found], boxes


def distance(one, other):
    """Distance of two rectangles along the sides of both; negative where they meet."""
    gaps = []
    for box in (one, other):
        for a, b in itertools.pairwise(box[:3]):
            side = (b - a) / np.hypot(*(b - a))
            p, q = one @ side, other @ side
            gaps.append(max(p.min() - q.max(), q.min() - p.max()))
    return max(gaps)


def check(figure):
    """No text leaves the figure or meets another text."""
    texts, boxes = drawn_texts(figure)
    width, height = figure.get_size_inches() * 72
    assert len(texts) > 3
    problems = []
    for text, box in zip(texts, boxes, strict=True):
        low, high = box.min(axis=0), box.max(axis=0)
        if (low < -0.5).any() or high[0] > width + 0.5 or high[1] > height + 0.5:
            problems.append(f"{text!r} leaves the figure: {low.round()} to {high.round()}")
    ends = np.array([(box.min(axis=0), box.max(axis=0)) for box in boxes])
    low, high = ends[:, 0] - GAP, ends[:, 1]
    near = np.triu(((low[:, None] < high) & (low < high[:, None])).all(axis=2), 1)
    for i, j in np.argwhere(near):
        if distance(boxes[i], boxes[j]) < GAP:
            problems.append(f"{texts[i]!r} meets {texts[j]!r}")
    assert not problems, "\n".join(problems[:20])


def luminance(colour):
    rgb = np.array(colour[:3])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def faint(figure):
    """Lines and arrows that a black background hides."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba_array
    from matplotlib.patches import FancyArrowPatch

    lines = [line for ax in figure.axes for line in ax.lines]
    found = [(line, line.get_color()) for line in lines]
    edges = [
        each
        for ax in figure.axes
        for each in (*ax.collections, *ax.patches)
        if isinstance(each, LineCollection | FancyArrowPatch)
    ]
    found += [(each, each.get_edgecolor()) for each in edges]
    return [
        each
        for each, colours in found
        if any(20 * luminance(colour) + 1 < 1.5 for colour in to_rgba_array(colours))
    ]


@pytest.fixture(autouse=True)
def dark(pyplot, monkeypatch):
    # Few samples of parameters take little time.
    monkeypatch.setattr(skihmm.inspection._regressions, "_N_SAMPLES", 20)
    with pyplot.style.context(["dark_background", {"figure.dpi": 72}]):
        yield


@pytest.mark.parametrize(("name", "which"), CASES, ids=[" ".join(case) for case in CASES])
def test_text_has_room(name, which, request):
    kind, call = CALLS[name]
    fits = request.getfixturevalue(kind)
    display = call(*fits[min(fits) if which == "few" else max(fits)])
    check(display.figure_)
    if kind != "symbols" and not name.endswith(("densities", "inputs")):
        # Cells have light colours, and the outlines of ridges that of the background.
        assert not faint(display.figure_)


def test_subjects_have_room(subjects):
    figure = SubjectDisplay.from_estimator(subjects).figure_
    check(figure)
    assert not faint(figure)


def test_all_displays_are_drawn():
    text = inspect.getsource(inspect.getmodule(check))
    assert all(f"{each.__name__}.from_" in text for each in Display.__subclasses__())
