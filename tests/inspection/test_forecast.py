"""ForecastDisplay: bands and medians against the predictive distribution."""

from __future__ import annotations

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal, NormalInverseGamma, ProductEmission
from skihmm.inspection import ForecastDisplay

SHORT = {"n_burnin": 30, "n_draws": 5, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 3.0], [5.0, -3.0]] * 3, 20, axis=0) + rng.normal(size=(120, 2))
    X[110, 1] = np.nan
    return HCRPHMM(emission="diagonal_gaussian", **SHORT).fit(X), X


def test_values(model):
    hmm, X = model
    display = ForecastDisplay.from_estimator(hmm, X, 8, n_past=30, lengths=[100, 20])
    following = hmm.predict_next(X, 8, lengths=[100, 20])
    np.testing.assert_allclose(display.median, following.quantile(0.5))
    low, high = following.interval(0.9)
    np.testing.assert_allclose(display.bands[1], [low, high])
    # Only the last sequence goes on.
    np.testing.assert_array_equal(display.past, X[100:])
    assert display.names == ["column 0", "column 1"]
    assert len(display.axes_) == 2
    band = display.axes_[1].collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(low[:, 1].min())
    assert band.max() == pytest.approx(high[:, 1].max())
    dots = display.axes_[1].lines[1]
    assert dots.get_xdata()[-1] == 0
    assert np.isnan(dots.get_ydata()[10])


def test_the_past_is_where_an_autoregression_goes_on():
    """A damped oscillation: the forecast of one step is the regression's."""
    rng = np.random.default_rng(0)
    X = np.zeros((150, 1))
    for t in range(2, 150):
        X[t] = 1.6 * X[t - 1] - 0.9 * X[t - 2] + 0.1 * rng.normal()
    hmm = HCRPHMM(emission=AutoregressiveNormal(2), **SHORT).fit(X)
    display = ForecastDisplay.from_estimator(hmm, X, 10, levels=[0.68])
    expected = 1.6 * X[-1, 0] - 0.9 * X[-2, 0]
    assert display.median[0, 0] == pytest.approx(expected, abs=0.05)
    spread = np.diff(display.bands[0, :, :, 0], axis=0)[0] / 2
    assert spread[0] == pytest.approx(0.1, rel=0.3)
    assert spread[5] > 1.5 * spread[0]


def test_wrong_values_hardly_move_the_forecast():
    X = np.repeat([[0.0], [5.0]] * 3, 50, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)
    X[[30, 90]] = 1e5
    with pytest.warns(UserWarning, match="robust standard deviations"):
        hmm = HCRPHMM(emission="gaussian", n_burnin=50, random_state=0).fit(X)
    display = ForecastDisplay.from_estimator(hmm, X, 3)
    assert abs(display.median - 5).max() < 2
    assert abs(display.bands[0] - 5).max() < 6
    assert hmm.predict_next(X, 3).mean().max() > 50


def test_columns_of_symbols_are_left_out():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(3, size=60), rng.normal(size=60)])
    emission = ProductEmission([("a", "hcrp", [0]), ("b", NormalInverseGamma(), [1])])
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X)
    assert ForecastDisplay.from_estimator(hmm, X, 3).names == ["column 1"]
    with pytest.raises(ValueError, match="Column 'column 0' holds symbols"):
        ForecastDisplay.from_estimator(hmm, X, 3, columns=0)
    symbols = HCRPHMM(**SHORT).fit(X[:, :1].astype(int))
    with pytest.raises(ValueError, match="All columns hold symbols"):
        ForecastDisplay.from_estimator(symbols, X[:, :1].astype(int), 3)


@pytest.mark.parametrize("n_numbers", [1, 2])
def test_the_past_of_data_with_strings(n_numbers):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(60, n_numbers))
    X = np.column_stack([rng.choice(["a", "b"], size=60), numbers]).astype(object)
    X[:, 1:] = numbers
    X[55, 1] = None
    emission = ProductEmission([("a", "hcrp", [0]), ("b", NormalInverseGamma(), slice(1, None))])
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X)
    past = ForecastDisplay.from_estimator(hmm, X, 3, n_past=n_numbers + 6).past
    numbers[55, 0] = np.nan
    np.testing.assert_array_equal(past, numbers[-n_numbers - 6 :])


def test_bands_have_different_shades_and_a_legend_outside(model, pyplot):
    hmm, X = model
    display = ForecastDisplay.from_estimator(hmm, X, 8, levels=(0.5, 0.9))
    ax = display.axes_[0]
    wide, narrow = ax.collections
    assert wide.get_label() == "90 %"
    assert narrow.get_label() == "50 %"
    assert wide.get_alpha() < narrow.get_alpha()
    display.figure_.canvas.draw()
    box = ax.get_legend().get_window_extent()
    assert box.x0 > ax.bbox.x1
    assert box.x1 <= display.figure_.bbox.x1
    # Axes of a figure without a layout have no room beside them.
    figure, axes = pyplot.subplots(2)
    display.plot(axes)
    figure.canvas.draw()
    assert axes[0].bbox.x1 > axes[0].get_legend().get_window_extent().x1


@pytest.mark.parametrize(("freq", "zone"), [("MS", None), ("W-MON", "Europe/Berlin")])
def test_dates_go_on_after_the_end(model, freq, zone):
    pd = pytest.importorskip("pandas")
    hmm, X = model
    index = pd.date_range("2001-01-01", periods=128, freq=freq, tz=zone)
    expected = index[90:].tz_localize(None).to_numpy()
    for times in (
        index[:120],
        pd.DatetimeIndex(list(index[:120])),  # without its frequency
        index[:120].tz_localize(None).to_period("M" if freq == "MS" else "W-SUN"),
    ):
        frame = pd.DataFrame(X, index=times)
        display = ForecastDisplay.from_estimator(hmm, frame, 8, n_past=30)
        np.testing.assert_array_equal(display.times, expected)
        assert display.axes_[-1].get_xlabel() == "time"
        # Position 0 is the last observation.
        text = display.axes_[-1].xaxis.get_major_formatter()(0)
        assert text == str(expected[29])[: 7 if freq == "MS" else 10]


def test_dates_without_a_frequency(model):
    pd = pytest.importorskip("pandas")
    hmm, X = model
    days = pd.date_range("2001-01-01", periods=121)
    display = ForecastDisplay.from_estimator(
        hmm, pd.DataFrame(X, index=days.delete(60)), 2, n_past=1
    )
    expected = pd.date_range(days[-1], periods=3)
    np.testing.assert_array_equal(display.times, expected)
    # One row has none.
    frame = pd.DataFrame(X, index=pd.DatetimeIndex(list(days[1:])))
    display = ForecastDisplay.from_estimator(hmm, frame, 2, lengths=[119, 1])
    assert display.times is None
    assert display.axes_[-1].get_xlabel() == "steps from the end"


def test_wrong_arguments(model):
    hmm, X = model
    with pytest.raises(ValueError, match=r"levels=1\.5; expected a number between"):
        ForecastDisplay.from_estimator(hmm, X, 3, levels=(0.5, 1.5))
    with pytest.raises(ValueError, match="columns holds 'a'"):
        ForecastDisplay.from_estimator(hmm, X, 3, columns=["a"])
    with pytest.raises(TypeError, match="expected a fitted HCRPHMM"):
        ForecastDisplay.from_estimator(X, X)
