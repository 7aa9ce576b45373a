"""ResidualDisplay: bands, lags inside of sequences, and boxes of states."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skihmm import HCRPHMM
from skihmm.inspection import ResidualDisplay

RNG = np.random.default_rng(0)


def test_the_bands_have_their_probability():
    values = RNG.normal(size=50)
    values[7] = np.nan
    display = ResidualDisplay.from_residuals(values, name="x")
    quantiles, autocorrelations = display.axes_
    points = quantiles.lines[-1].get_xydata()
    np.testing.assert_array_equal(points[:, 1], np.sort(values)[:49])
    assert quantiles.get_title(loc="left") == "x"
    band = quantiles.collections[0].get_paths()[0]
    inner = points[1:-1, 0]  # the ends of the path are its corners
    drawn = np.sort(RNG.normal(size=(1000, 49)))[:, 1:-1]
    samples = np.stack([np.tile(inner, (1000, 1)), drawn], axis=-1)
    share = band.contains_points(samples.reshape(-1, 2)).reshape(drawn.shape).mean(axis=0)
    np.testing.assert_allclose(share, 0.95, atol=0.04)
    patch = autocorrelations.patches[0]
    limit = patch.get_path().transformed(patch.get_patch_transform()).get_extents().ymax
    assert limit == pytest.approx(1.96 / 7, abs=1e-3)


def test_lags_do_not_reach_into_another_sequence():
    values = np.tile([1.0, -1.0, -1.0, 1.0], 50)
    whole = ResidualDisplay.from_residuals(values).autocorrelations_
    np.testing.assert_allclose(whole[[0, 1, 3]], [0, -1, 1], atol=0.01)
    parts = ResidualDisplay.from_residuals(values, lengths=[4] * 50).autocorrelations_
    np.testing.assert_allclose(parts[:3], [-1 / 3, -1, 1])
    assert np.isnan(parts[3:]).all()


def test_boxes_are_those_of_states():
    states = RNG.integers(3, size=300)
    display = ResidualDisplay.from_residuals(states + RNG.normal(size=300), states=states)
    medians = [line.get_ydata()[0] for line in display.axes_[2].lines[4::6]]
    np.testing.assert_allclose(medians[:3], [0, 1, 2], atol=0.5)


def test_of_an_estimator():
    frame = pd.DataFrame({"a": RNG.normal(size=200), "b": RNG.normal(size=200)})
    hmm = HCRPHMM(emission="gaussian", n_burnin=20, n_draws=3, random_state=0).fit(frame)
    display = ResidualDisplay.from_estimator(hmm, frame, column="b", join_states=False)
    np.testing.assert_array_equal(display.residuals, hmm.residuals(frame)[:, 1])
    np.testing.assert_array_equal(display.states, hmm.predict(frame))
    assert display.name == "b"
    assert ResidualDisplay.from_estimator(hmm, frame).name == "a"
    with pytest.raises(ValueError, match="numbers of one column"):
        ResidualDisplay.from_residuals(hmm.residuals(frame))
