"""TraceDisplay: values, axes, burn-in, pictures."""

from __future__ import annotations

import numpy as np
import pytest
from pictures import assert_same_picture, canvas
from sklearn.base import clone

from skihmm.inspection import TraceDisplay


def drawn(ax, c):
    """x and y of the c-th line of a panel that has data."""
    return ax.lines[c].get_xdata(), ax.lines[c].get_ydata()


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
    # The shade of the burn-in.
    for ax in display.axes_:
        assert len(ax.patches) == 1
        assert ax.patches[0].get_extents().transformed(
            ax.transData.inverted()
        ).intervalx == pytest.approx([0, 10])


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


def test_emission_without_concentrations(sequence):
    from skihmm import HCRPHMM

    hmm = HCRPHMM(emission="dirichlet", n_burnin=2, n_draws=2, random_state=0)
    display = TraceDisplay.from_estimator(hmm.fit(sequence))
    assert len(display.axes_) == 3
    assert set(display.values) == {"lp", "n_states", "alpha", "gamma"}


def test_seconds_and_draws(fitted):
    display = TraceDisplay.from_draws(fitted.draws_, x="seconds")
    seconds = np.cumsum(fitted.draws_.seconds, axis=1)
    np.testing.assert_array_equal(drawn(display.axes_[0], 1)[0], seconds[1])
    assert display.axes_[-1].get_xlabel() == "CPU seconds after the burn-in"
    # How long the burn-in took is not known, so there is no shade.
    assert not display.axes_[0].patches
    display.plot(x="draw")
    np.testing.assert_array_equal(drawn(display.axes_[0], 0)[0], np.arange(4))


def test_the_burn_in_is_not_invented(fitted, sequence):
    # Draws do not know it, and parameters may have been changed since the fit.
    assert TraceDisplay.from_draws(fitted.draws_).n_burnin is None
    model = clone(fitted).set_params(n_chains=1, warm_start=True).fit(sequence)
    assert TraceDisplay.from_estimator(model).n_burnin == 10
    model.set_params(n_burnin=3)
    display = TraceDisplay.from_estimator(model)
    assert display.n_burnin is None
    assert not display.axes_[0].patches
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


def test_a_single_draw_is_visible(sequence):
    from skihmm import HCRPHMM

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
    return TraceDisplay(values, sweeps=sweeps, n_burnin=50)


@pytest.mark.parametrize(("name", "n_chains"), [("trace", 3), ("trace_chains", 12)])
def test_pictures(name, n_chains, tmp_path):
    with canvas(400, 400) as figure:
        traces(n_chains, 60).plot(figure.subplots())
        assert_same_picture(figure, name, tmp_path)
