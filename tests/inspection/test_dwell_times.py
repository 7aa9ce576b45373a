"""DwellTimeDisplay: segments, censored ones, laws, pictures."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from pictures import assert_same_picture, canvas

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.inspection import DwellTimeDisplay
from skihmm.inspection._dwell_times import Segments, segments_of, shares_by_duration

LENGTHS = [200, 150, 250]


@pytest.fixture(scope="module")
def model():
    X, _ = make_automaton_sequence(600, dwell=[6, 25], random_state=0)
    hmm = HCRPHMM(transitions="sticky", n_burnin=50, n_draws=6, n_chains=2, random_state=0)
    return hmm.fit(X, lengths=LENGTHS), X


def listed(path, lengths=LENGTHS):
    """(state, duration, whether it is cut) of segments, sequence by sequence."""
    found = []
    for part in np.split(path, np.cumsum(lengths)[:-1]):
        runs = [(k, len(list(steps))) for k, steps in itertools.groupby(part.tolist())]
        found += [(k, n, i == len(runs) - 1) for i, (k, n) in enumerate(runs)]
    return found


def as_segments(found):
    states, durations, is_cut = map(np.array, zip(*found, strict=True))
    return Segments(states, durations, is_cut)


def test_segments():
    path = np.array([4, 4, 4, 1, 1, 4, 4, 2])
    found = segments_of(path, np.array([0, 2, 6]))
    assert list(zip(*(part.tolist() for part in found), strict=True)) == [
        (4, 2, True),
        (4, 1, False),
        (1, 2, False),
        (4, 1, True),
        (4, 1, False),
        (2, 1, True),
    ]


def test_shares_of_a_few_segments():
    cut = Segments(np.zeros(5), np.array([2, 3, 3, 4, 2]), np.arange(5) >= 3)
    grid = np.arange(1, 7)
    # Segments known to last for more than 1, 2, 3 steps: 5, 4 (one ends), 3 (two end).
    np.testing.assert_allclose(shares_by_duration(cut, grid), [1, 1, 3 / 4, 1 / 4, np.nan, np.nan])
    whole = Segments(cut.states, cut.durations, np.zeros(5, dtype=bool))
    np.testing.assert_allclose(shares_by_duration(whole, grid), [1, 1, 3 / 5, 1 / 5, 0, 0])


def test_cut_segments_leave_no_bias():
    """Geometric dwell times in sequences that are hardly longer."""
    rng, p, length = np.random.default_rng(0), 1 / 12, 30
    ends = rng.random((3000, length)) < p
    path = np.cumsum(np.c_[np.zeros((3000, 1), dtype=int), ends[:, :-1]], axis=1)
    starts = np.arange(0, path.size, length)
    segments = segments_of(path.ravel(), starts)
    grid = np.arange(1, 20)
    expected = (1 - p) ** (grid - 1)
    error = 5 / math.sqrt(len(segments.states))
    found = shares_by_duration(segments, grid)
    np.testing.assert_allclose(found, expected, atol=error)
    as_whole = segments._replace(is_cut=np.zeros_like(segments.is_cut))
    assert abs(shares_by_duration(as_whole, grid) - expected).max() > 2 * error


def test_states_of_an_estimator(model):
    hmm, X = model
    display = DwellTimeDisplay.from_estimator(hmm, X, lengths=LENGTHS)
    found = listed(hmm.predict(X, lengths=LENGTHS))
    counts = np.bincount([k for k, _, _ in found], minlength=hmm.n_states_)
    assert len(display.states) == min(9, np.count_nonzero(counts))
    assert counts[display.states].min() >= np.sort(counts)[::-1][:9].min()
    grid = display.durations
    assert grid[0] == 1
    assert grid[-1] == max(n for k, n, _ in found if k in display.states) + 1
    for i, k in enumerate(display.states):
        own = [segment for segment in found if segment[0] == k]
        assert display.n_segments[i] == len(own)
        assert display.n_cut[i] == sum(is_cut for _, _, is_cut in own)
        np.testing.assert_array_equal(
            display.observed[i], shares_by_duration(as_segments(own), grid)
        )
        stay = hmm.transmat_[k, k]
        np.testing.assert_allclose(display.law[i], stay ** (grid - 1), rtol=1e-9)
    np.testing.assert_array_equal(display.expected, hmm.dwell_times_[display.states])
    title = display.axes_[0].get_title()
    assert title.startswith(f"state 0: {counts[0]} segments, {display.n_cut[0]} cut,")
    chosen = DwellTimeDisplay.from_estimator(hmm, X, states=[1], lengths=LENGTHS)
    (ax,) = chosen.axes_
    assert "state 1" in ax.get_title()
    np.testing.assert_array_equal(chosen.law[:, :5], display.law[[1], :5])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), chosen.law[0])
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), chosen.observed[0])


def test_states_together(model):
    hmm, X = model
    display = DwellTimeDisplay.from_estimator(hmm, X, lengths=LENGTHS, pooled=True)
    found = as_segments(listed(hmm.predict(X, lengths=LENGTHS)))
    stays = np.diag(hmm.transmat_)[found.states]
    grid = display.durations
    law = (stays[:, None] ** (grid - 1)).mean(axis=0)
    np.testing.assert_allclose(display.law, [law], rtol=1e-9)
    np.testing.assert_array_equal(display.observed, [shares_by_duration(found, grid)])
    np.testing.assert_allclose(display.expected, np.mean(1 / (1 - stays)), rtol=1e-9)
    assert display.axes_[0].get_title().startswith(f"all states: {len(stays)} segments, 3")
    # The band of independent segments, at a duration where it is easy.
    band = display.axes_[0].collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == 1.0


def test_all_draws(model):
    hmm, _ = model
    # Short pieces, so that the longest segments are cut.
    pieces = [8] * 75
    display = DwellTimeDisplay.from_draws(hmm.draws_, lengths=pieces, max_draws=5)
    found = [as_segments(listed(draw.states, lengths=pieces)) for draw in hmm.draws_.thinned(5)]
    grid = display.durations
    shares = np.array([shares_by_duration(one, grid) for one in found])
    assert np.isnan(shares).any()
    known = ~np.isnan(shares).all(axis=0)
    np.testing.assert_allclose(display.observed[0, known], np.nanmean(shares[:, known], axis=0))
    assert np.isnan(display.observed[0, ~known]).all()
    assert display.n_segments == pytest.approx(np.mean([len(one[0]) for one in found]))
    assert display.n_cut == 75
    assert display.states is None
    # All draws of the plain model too.
    plain = HCRPHMM(n_burnin=5, n_draws=3, random_state=0).fit([[0], [1]] * 30)
    display = DwellTimeDisplay.from_draws(plain.draws_)
    law = []
    for draw in plain.draws_.thinned():
        again = DwellTimeDisplay.from_draws(type(plain.draws_)([[draw]]))
        law.append(again.law[0, :2])
    np.testing.assert_allclose(display.law[0, :2], np.mean(law, axis=0))


def test_wrong_arguments(model, without_states):
    hmm, X = model
    with pytest.raises(ValueError, match=r"states holds 77, of which .* no segment"):
        DwellTimeDisplay.from_estimator(hmm, X, states=[0, 77])
    with pytest.raises(ValueError, match=r"level=1.5; expected a number between 0"):
        DwellTimeDisplay.from_estimator(hmm, X, level=1.5)
    with pytest.raises(ValueError, match="method='best'"):
        DwellTimeDisplay.from_estimator(hmm, X, method="best")
    with pytest.raises(TypeError, match="expected `draws_` of a fitted"):
        DwellTimeDisplay.from_draws(hmm)
    with pytest.raises(ValueError, match="have no paths: fit with store_states=True"):
        DwellTimeDisplay.from_draws(without_states.draws_)
    one = HCRPHMM("stepwise", "gaussian", n_burnin=0, n_draws=1, init="single")
    one.fit(np.random.default_rng(0).standard_normal((60, 1)))
    with pytest.raises(ValueError, match="no segment to show"):
        DwellTimeDisplay.from_estimator(one, [[1e6]] * 3)


def test_pictures(tmp_path):
    durations = np.unique(np.geomspace(1, 60, 40).round()).astype(int)
    stays = np.array([[0.9], [0.96]])
    observed = np.where(durations < 8, 1, 0.93 ** (durations - 8))
    display = DwellTimeDisplay(
        durations,
        np.array([observed, np.where(durations < 30, 0.97**durations, np.nan)]),
        stays ** (durations - 1),
        n_segments=[25, 8],
        n_cut=[1, 0],
        expected=[10.0, 25.0],
        states=[0, 3],
    )
    with canvas(500, 250) as figure:
        display.plot(figure.subplots())
        assert_same_picture(figure, "dwell_times", tmp_path)
