"""TraceDisplay: values, axes, burn-in, pictures."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from pictures import assert_same_picture, canvas
from sklearn.base import clone

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import DirichletCategorical, ProductEmission
from skihmm.inspection import TraceDisplay
from skihmm.posterior._estimate import best_draw


def marked(ax):
    """Points of a panel that are marked as those of the selected draw."""
    (marks,) = (one for one in ax.lines if one.get_marker() == "o" and len(one.get_xdata()))
    assert marks.get_linestyle() == "None"
    return list(zip(marks.get_xdata(), marks.get_ydata(), strict=True))


def legend_of(display):
    """Title and entries of the legend of the first panel."""
    legend = display.axes_[0].get_legend()
    return legend.get_title().get_text(), [one.get_text() for one in legend.get_texts()]


def drawn(ax, c):
    """x and y of the c-th line of a panel that has data."""
    return ax.lines[c].get_xdata(), ax.lines[c].get_ydata()


def test_few_states_have_an_axis_of_whole_numbers():
    for values in ([4, 4, 4], [4, 5, 4]):
        display = TraceDisplay({"n_states": [values]}).plot(x="draw")
        (ax,) = display.axes_
        display.figure_.canvas.draw()
        low, high = ax.get_ylim()
        assert high - low >= 2
        shown = [place for place in ax.get_yticks() if low <= place <= high]
        assert len(shown) > 1
        assert all(place % 1 == 0 for place in (*shown, *ax.get_xticks()))


def test_values(fitted):
    display = TraceDisplay.from_estimator(fitted)
    draws = fitted.draws_
    assert list(display.values) == [
        "lp", "n_states", "alpha", "gamma", "emission_alpha", "emission_gamma"
    ]  # fmt: skip
    for name, values in display.values.items():
        np.testing.assert_array_equal(values, getattr(draws, name))
    assert display.n_burnin == 10
    np.testing.assert_array_equal(display.sweeps, draws.sweep)
    np.testing.assert_allclose(display.seconds[:, 2], draws.seconds[:, :3].sum(axis=1))
    lp, n_states, transition, emission = display.axes_
    for c in range(2):
        x, y = drawn(lp, c)
        np.testing.assert_array_equal(x, [12, 14, 16, 18])
        np.testing.assert_array_equal(y, draws.lp[c])
        np.testing.assert_array_equal(drawn(n_states, c)[1], draws.n_states[c])
        np.testing.assert_array_equal(drawn(transition, c)[1], draws.alpha[c])
        np.testing.assert_array_equal(drawn(transition, 2 + c)[1], draws.gamma[c])
        np.testing.assert_array_equal(drawn(emission, 2 + c)[1], draws.emission_gamma[c])
    # There are no draws of the burn-in: it gets no room.
    for ax in display.axes_:
        assert ax.get_xlim()[0] == 10
    assert display.axes_[-1].get_xlabel() == "sweep (the first 10: burn-in)"


def test_the_selected_draw_is_marked(fitted, sequence, pyplot):
    draws, best = fitted.draws_, fitted._fitted.best
    display = TraceDisplay.from_estimator(fitted)
    assert display.selected == best
    places = {"sweep": draws.sweep, "draw": np.tile(np.arange(4), (2, 1))}
    places["seconds"] = np.cumsum(draws.seconds, axis=1)
    for x, place in places.items():
        lp, n_states, transition, emission = display.plot(x=x).axes_
        here = place[best]
        assert marked(lp) == [(here, draws.lp[best])]
        assert marked(n_states) == [(here, draws.n_states[best])]
        assert marked(transition) == [
            (here, draws.alpha[best]), (here, draws.gamma[best])
        ]  # fmt: skip
        assert marked(emission) == [
            (here, draws.emission_alpha[best]), (here, draws.emission_gamma[best])
        ]  # fmt: skip
    entries = ["0", "1", f"selected draw\n(chain {best[0]})"]
    assert legend_of(display) == ("chain", entries)
    # In low panels too the mark is inside as a whole, though the draw is the highest one,
    # and so is the legend.
    figure, ax = pyplot.subplots()
    display = TraceDisplay.from_estimator(fitted, ax=ax)
    figure.canvas.draw()
    for ax in display.axes_:
        for point in ax.transData.transform(marked(ax)):
            for side in (-1, 1):
                # (6.5 points, and half the width of the line.)
                assert ax.bbox.contains(*(point + side * 3.9 * figure.dpi / 72))
    assert legend_of(display)[1][-1] == f"selected draw (chain {best[0]})"
    box = display.axes_[0].get_legend().get_window_extent()
    assert display.axes_[0].bbox.contains(*box.min)
    assert display.axes_[0].bbox.contains(*box.max)


def test_draws_alone_are_not_marked(fitted):
    display = TraceDisplay.from_draws(fitted.draws_)
    assert display.selected is None
    assert legend_of(display) == ("chain", ["0", "1"])
    assert not any(one.get_marker() == "o" for ax in display.axes_ for one in ax.lines)
    display.selected = (0, 3)
    assert marked(display.plot().axes_[0]) == [(18, fitted.draws_.lp[0, 3])]


def test_a_mark_without_a_legend_of_chains():
    one = TraceDisplay({"lp": np.arange(3.0)[None]}, selected=(0, 1)).plot(x="draw")
    assert legend_of(one) == ("", ["selected draw"])
    many = TraceDisplay({"lp": np.arange(60.0).reshape(20, 3)}, selected=(12, 1))
    assert legend_of(many.plot(x="draw")) == ("", ["selected draw\n(chain 12)"])
    assert marked(many.axes_[0]) == [(1, 37)]


@pytest.mark.parametrize("point_estimate", ["map", "vi", "binder"])
def test_the_mark_is_at_the_draw_of_the_labels(point_estimate, tmp_path):
    # Data that say little about some steps, so that no two draws are alike.
    X = make_automaton_sequence(150, random_state=0)[0]
    params = {"n_burnin": 20, "thin": 2, "n_chains": 2, "n_particles": 10}
    model = HCRPHMM(n_draws=12, point_estimate=point_estimate, random_state=0, **params)

    def check(model, n_draws):
        display = TraceDisplay.from_estimator(model)
        draws = model.draws_
        assert list(draws.n_draws) == [n_draws, n_draws]
        is_it = (draws.states == model.labels_).all(axis=-1)
        assert np.argwhere(is_it).tolist() == [list(display.selected)]
        assert display.selected == model._fitted.best
        if point_estimate != "map":
            assert display.selected == best_draw(draws, point_estimate)
        (point,) = marked(display.axes_[1])
        assert point == (draws.sweep[display.selected], model.n_states_)
        return display.selected

    whole = check(model.fit(X), 12)
    assert check(pickle.loads(pickle.dumps(model)), 12) == whole
    # As the same draws are made in pieces.
    for continued in ({"warm_start": True}, {"checkpoint": tmp_path / "run"}):
        pieces = clone(model).set_params(n_draws=5, **continued)
        check(pieces.fit(X), 5)
        n_draws = 7 if "warm_start" in continued else 12
        assert check(pieces.set_params(n_draws=n_draws).fit(X), 12) == whole
    check(model.partial_fit(X[:20]), 12)


def test_axes_are_kept_and_made(fitted, pyplot):
    figure, ax = pyplot.subplots()
    display = TraceDisplay.from_estimator(fitted, ax=ax)
    assert display.figure_ is figure
    assert len(display.axes_) == 4
    assert not ax.axison
    assert display.plot(quantities="lp") is display
    assert len(display.axes_) == 1
    assert display.figure_ is not figure
    figure, axes = pyplot.subplots(1, 2)
    assert display.plot(axes, quantities=["lp", "concentrations"]).figure_ is figure
    assert list(display.axes_) == list(axes)
    one = pyplot.figure().add_axes([0, 0, 1, 1])
    assert display.plot(one, quantities=["n_states"]).axes_[0] is one


def test_hyperparameters_of_the_emission(sequence):
    fixed = HCRPHMM(emission=DirichletCategorical(1.0), n_burnin=2, n_draws=2, random_state=0)
    display = TraceDisplay.from_estimator(fixed.fit(sequence))
    assert len(display.axes_) == 3
    assert set(display.values) == {"lp", "n_states", "alpha", "gamma"}
    hmm = HCRPHMM(emission="diagonal_gaussian", n_burnin=2, n_draws=2, random_state=0)
    X = np.column_stack([sequence, np.cumsum(sequence)]).astype(float)
    display = TraceDisplay.from_estimator(hmm.fit(X))
    ax = display.axes_[3]
    assert ax.get_ylabel() == "emission\nhyperparameters"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["strength", "scale"]
    scale = hmm.draws_.hyperparameters["emission_scale"]
    means = np.exp(np.log(scale).mean(axis=2))
    np.testing.assert_allclose(display.values["emission_scale"], means)


def test_the_legend_of_concentrations_in_the_first_panel(fitted):
    from matplotlib.legend import Legend

    display = TraceDisplay.from_estimator(fitted, quantities=["concentrations", "lp"])
    assert legend_of(display)[1][-1].startswith("selected draw")
    legends = [
        [text.get_text() for text in one.get_texts()]
        for one in display.axes_[0].get_children()
        if isinstance(one, Legend)
    ]
    assert [r"$\alpha$", r"$\gamma$"] in legends


def test_seconds_and_draws(fitted):
    display = TraceDisplay.from_draws(fitted.draws_, x="seconds")
    seconds = np.cumsum(fitted.draws_.seconds, axis=1)
    np.testing.assert_array_equal(drawn(display.axes_[0], 1)[0], seconds[1])
    assert display.axes_[-1].get_xlabel() == "CPU seconds after the burn-in"
    display.plot(x="draw")
    np.testing.assert_array_equal(drawn(display.axes_[0], 0)[0], np.arange(4))


def test_the_burn_in_is_that_of_the_fit(fitted, sequence):
    # Draws do not have it, and parameters may have been changed since the fit.
    assert TraceDisplay.from_draws(fitted.draws_).n_burnin is None
    model = clone(fitted).set_params(n_chains=1, warm_start=True).fit(sequence)
    assert TraceDisplay.from_estimator(model).n_burnin == 10
    model.set_params(n_burnin=3)
    display = TraceDisplay.from_estimator(model)
    assert display.n_burnin == 10
    assert display.axes_[-1].get_xlabel() == "sweep (the first 10: burn-in)"
    # Sweeps are those of the draws, whatever the parameters say now.
    model.set_params(n_burnin=10, thin=5).fit(sequence)
    x = drawn(TraceDisplay.from_estimator(model).axes_[0], 0)[0]
    np.testing.assert_array_equal(x, [12, 14, 16, 18, 23, 28, 33, 38])


def test_chains_of_unequal_length(ragged_model):
    assert list(ragged_model.draws_.n_draws) == [6, 3]
    display = TraceDisplay.from_estimator(ragged_model)
    for values in (*display.values.values(), display.sweeps, display.seconds):
        np.testing.assert_array_equal(np.isnan(values).sum(axis=1), [0, 3])
    np.testing.assert_array_equal(
        drawn(display.axes_[1], 1)[1][:3], ragged_model.draws_.n_states[1, :3]
    )
    display.selected = (1, 3)
    with pytest.raises(ValueError, match=r"selected=\(1, 3\).*that have 6, 3 draws"):
        display.plot()


def test_a_single_draw_is_visible(sequence):
    hmm = HCRPHMM(n_burnin=0, n_draws=1, random_state=0).fit(sequence)
    assert TraceDisplay.from_estimator(hmm).axes_[0].lines[0].get_marker() == "."


def test_line_kw(fitted):
    display = TraceDisplay.from_estimator(fitted, line_kw={"linewidth": 3.5})
    assert display.axes_[0].lines[0].get_linewidth() == 3.5


def test_many_chains_have_no_legend(pyplot):
    values = {"lp": np.arange(60.0).reshape(20, 3)}
    display = TraceDisplay(values).plot(x="draw")
    assert display.axes_[0].get_legend() is None
    looks = {(one.get_color(), one.get_linestyle()) for one in display.axes_[0].lines}
    assert len(looks) == 20


def test_errors(fitted, pyplot):
    display = TraceDisplay({"lp": np.zeros((1, 3))})
    with pytest.raises(ValueError, match="does not know the sweeps of the draws"):
        display.plot()
    with pytest.raises(ValueError, match="x='time'; expected one of 'sweep'"):
        display.plot(x="time")
    with pytest.raises(ValueError, match="quantities='n_states'; expected one of 'lp'"):
        display.plot(x="draw", quantities=["n_states"])
    for selected in ((0, 3), (1, 0), (0, -1), (0, 1.0), (0,), 0):
        display.selected = selected
        with pytest.raises(ValueError, match=r"expected \(chain, draw\), counted from 0"):
            display.plot(x="draw")
    display.selected = None
    with pytest.raises(ValueError, match="ax holds 3 entries; expected one Axes"):
        display.plot(pyplot.subplots(1, 3)[1], x="draw")
    with pytest.raises(ValueError, match="has 4 panels, and ax is not part of a grid"):
        TraceDisplay.from_estimator(fitted, ax=pyplot.figure().add_axes([0, 0, 1, 1]))
    with pytest.raises(TypeError, match="draws is a HCRPHMM; expected `draws_`"):
        TraceDisplay.from_draws(fitted)


def traces(n_chains, n_draws):
    rng = np.random.default_rng(0)
    level = rng.normal(size=(n_chains, n_draws)).cumsum(axis=1)
    values = {
        "lp": -1000 + 10 * level,
        "n_states": np.rint(10 + level / 2),
        "alpha": np.exp(level / 8),
        "gamma": 5 * np.exp(-level / 9),
    }
    sweeps = np.broadcast_to(50 + 2 * np.arange(1, n_draws + 1), level.shape)
    selected = (n_chains - 2, 2 * n_draws // 3)
    return TraceDisplay(values, sweeps=sweeps, n_burnin=50, selected=selected)


@pytest.mark.parametrize(("name", "n_chains"), [("trace", 3), ("trace_chains", 12)])
def test_pictures(name, n_chains, tmp_path):
    with canvas(400, 400) as figure:
        traces(n_chains, 60).plot(figure.subplots())
        assert_same_picture(figure, name, tmp_path)


def test_concentrations_of_mixed_data():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(40, 2))
    parts = [("words", "hcrp", [0]), ("tags", "hcrp", [1])]
    params = {"n_burnin": 5, "n_draws": 4, "n_chains": 2, "random_state": 0}
    hmm = HCRPHMM(emission=ProductEmission(parts), **params).fit(X)
    display = TraceDisplay.from_estimator(hmm)
    panel = display.axes_[3]
    labels = [text.get_text() for text in panel.get_legend().get_texts()]
    greek = (r"$\alpha$", r"$\gamma$")
    assert labels == [f"{part} {letter}" for part in ("words", "tags") for letter in greek]
    lines = {}
    for line in panel.lines:
        values = line.get_ydata()
        if len(values) == 4 and line.get_linestyle() != "None":
            lines.setdefault(line.get_linestyle(), []).append(values)
    expected = [v for k, v in hmm.draws_.hyperparameters.items() if "__" in k]
    assert len(lines) == 4
    for found, chains in zip(lines.values(), expected, strict=True):
        np.testing.assert_array_equal(found, chains)
