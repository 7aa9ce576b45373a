"""RegimeTreeDisplay, and the displays of states that take regimes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skihmm import HCRPHMM
from skihmm.inspection import (
    DwellTimeDisplay,
    RegimeTreeDisplay,
    StateSequenceDisplay,
    TransitionMatrixDisplay,
)
from skihmm.inspection._regimes import leaf_order
from skihmm.inspection._style import ink, state_colour

# Merges of five states to three, two and one.
TREE = np.array([[1, 3], [0, 4], [6, 2], [7, 5]])
REGIMES = np.array([0, 1, 2, 1, 0])
EVIDENCES = np.array([-130.0, -112.0, -100.0, np.nan, -115.0])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 6.0, 0.0, 6.0], 100) + rng.gamma(1, size=400)
    return pd.DataFrame({"level": X})


@pytest.fixture(scope="module")
def noisy(data):
    return HCRPHMM(emission="gaussian", n_burnin=100, n_draws=10, random_state=0).fit(data)


def lines_of(ax):
    return [(line.get_xydata().tolist(), line.get_color()) for line in ax.lines]


def test_merges_and_prices():
    display = RegimeTreeDisplay(TREE, REGIMES, EVIDENCES).plot()
    merges, prices = display.axes_
    place = np.argsort(display.order_)
    blue, orange, green = map(state_colour, range(3))
    drawn = lines_of(merges)
    # States 1 and 3 are one set of four, inside of a regime, and go on to two sets.
    assert ([[5.0, place[1]], [4.0, place[1]]], orange) in drawn
    assert ([[4.0, place[1]], [4.0, place[3]]], orange) in drawn
    assert ([[5.0, place[2]], [2.0, place[2]]], green) in drawn
    middle = (place[0] + place[4]) / 2
    assert ([[3.0, middle], [2.0, middle]], blue) in drawn
    assert ([[2.0, middle], [2.0, place[2]]], ink(0.45)) in drawn
    # The cut is between three sets and two.
    assert merges.lines[-1].get_xdata() == [2.5, 2.5]
    np.testing.assert_array_equal(prices.lines[0].get_xdata(), [1, 2, 3, 5])
    np.testing.assert_array_equal(prices.lines[0].get_ydata(), [30, 12, 0, 15])
    assert prices.get_xlim() == (5.5, 0.5)


def test_leaves_of_a_node_are_neighbours():
    order = leaf_order(TREE, 5)
    assert sorted(order) == list(range(5))
    assert abs(np.diff(np.argsort(order)[[1, 3]])) == 1
    assert set(order[:3]) in ({0, 4, 2}, {1, 3, 0})
    # Of known states there is no whole.
    assert sorted(leaf_order(TREE[:2], 5)) == list(range(5))
    RegimeTreeDisplay(TREE[:2], REGIMES, EVIDENCES).plot()
    RegimeTreeDisplay(TREE[:0], np.zeros(1, dtype=int), np.array([-3.0])).plot()


def test_trees_of_estimators_and_regimes(noisy):
    regimes = noisy.find_regimes()
    display = RegimeTreeDisplay.from_estimator(noisy)
    np.testing.assert_array_equal(display.tree, regimes.tree_)
    np.testing.assert_array_equal(display.regimes, regimes.state_regimes_)
    np.testing.assert_array_equal(display.evidences, regimes.evidences_)
    one = RegimeTreeDisplay.from_estimator(noisy.find_regimes(1))
    assert one.regimes.max() == 0
    upper = noisy.find_regimes(noisy.n_states_).upper(2)
    above = RegimeTreeDisplay.from_estimator(upper)
    assert len(above.regimes) == noisy.n_states_
    assert above.regimes.max() == 1


def test_displays_of_states_take_regimes(noisy, data):
    regimes = noisy.find_regimes()
    assert regimes.n_regimes_ == 2 < noisy.n_states_
    matrix = TransitionMatrixDisplay.from_estimator(regimes, new_state=True)
    np.testing.assert_array_equal(matrix.transmat, regimes.transmat_)
    np.testing.assert_allclose(matrix.occupancy, np.bincount(regimes.labels_) / 400)
    for parameters in ({"context": 1}, {"probability": 0.9}):
        with pytest.raises(ValueError, match="which regimes do not have"):
            TransitionMatrixDisplay.from_estimator(regimes, **parameters)
    dwell = DwellTimeDisplay.from_estimator(regimes, data)
    assert dwell.states == [0, 1]
    np.testing.assert_allclose(dwell.expected, regimes.dwell_times_)
    stay = regimes.transmat_[0, 0]
    np.testing.assert_allclose(dwell.law[0], stay ** (dwell.durations - 1.0))
    states = StateSequenceDisplay.from_estimator(regimes, data)
    np.testing.assert_array_equal(states.states, regimes.predict(data))
    assert states.n_states == 2
    assert states.column_names == ["level"]
    assert states.probability.min() > 0.3
