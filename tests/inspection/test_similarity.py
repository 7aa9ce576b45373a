"""PosteriorSimilarityDisplay: matrices, orders, pictures."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from pictures import assert_same_picture, canvas

from skihmm.inspection import PosteriorSimilarityDisplay
from skihmm.posterior import coassignment, match_states, point_estimate


def test_values(ragged_model):
    display = PosteriorSimilarityDisplay.from_estimator(ragged_model, order="time")
    draws = ragged_model.draws_
    expected = coassignment(draws)
    np.testing.assert_array_equal(display.similarity, expected)
    np.testing.assert_array_equal(display.im_.get_array(), expected)
    np.testing.assert_array_equal(display.steps, np.arange(60))
    # As `predict` names them.
    np.testing.assert_array_equal(
        display.states, match_states(ragged_model.labels_, point_estimate(draws))
    )
    display = PosteriorSimilarityDisplay.from_draws(draws)
    np.testing.assert_array_equal(display.states, point_estimate(draws))
    assert display.im_.get_clim() == (0, 1)
    assert display.colorbar_.ax.get_ylabel() == "probability of the same state"


def test_order():
    paths = np.array([[2, 0, 1, 0, 1, 0], [0, 1, 1, 1, 2, 1]])
    display = PosteriorSimilarityDisplay.from_draws(paths)
    labels = point_estimate(paths)
    ordered = labels[display.order_]
    # States in blocks, the largest first; inside, in the order of time.
    assert list(ordered) == sorted(labels)
    counts = np.bincount(labels)
    assert (np.diff(counts) <= 0).all()
    for k in range(len(counts)):
        assert (np.diff(display.order_[ordered == k]) > 0).all()
    matrix = coassignment(paths)
    np.testing.assert_array_equal(
        display.im_.get_array(), matrix[np.ix_(display.order_, display.order_)]
    )
    # A line at each border, in both directions.
    assert len(display.ax_.lines) == 2 * (len(counts) - 1)


def test_chosen_steps(fitted):
    steps = [5, -1, 7]
    display = PosteriorSimilarityDisplay.from_draws(
        fitted.draws_, steps=steps, order="time"
    )
    np.testing.assert_array_equal(display.steps, [5, 59, 7])
    np.testing.assert_array_equal(display.similarity, coassignment(fitted.draws_, steps))
    display.figure_.canvas.draw()
    texts = [t.get_text() for t in display.ax_.get_xticklabels()]
    assert [text for text in texts if text] == ["5", "59", "7"]


def test_states_are_named_like_a_reference():
    path = np.array([0, 0, 0, 1, 1, 2, 2, 3])
    reference = np.array([4, 4, 4, 7, 7, 2, 2, 9])
    paths = np.tile(path, (3, 1))
    display = PosteriorSimilarityDisplay.from_draws(paths, reference=reference)
    np.testing.assert_array_equal(display.states, reference)
    display.figure_.canvas.draw()
    texts = [t.get_text() for t in display.ax_.get_xticklabels() if t.get_text()]
    # The largest first, then in the order of the numbers.
    assert texts == ["4", "2", "7", "9"]
    # The numbers of states of other steps are not given away.
    display = PosteriorSimilarityDisplay.from_draws(
        paths, steps=[0, 1, 3], reference=[4, 4, 4, 4, 7, 2, 2, 9]
    )
    np.testing.assert_array_equal(display.states, [4, 4, 10])


# The last eight of 30 states have a single step.
SIZES = [*range(23, 1, -1), *[1] * 8]


def shown_labels(display):
    """Names and boxes of the labels that are written, of both axes."""
    # (The layout settles when it is made for the second time.)
    display.figure_.canvas.draw()
    display.figure_.canvas.draw()
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        low, high = sorted(axis.get_view_interval())
        labels = [
            label
            for place, label in zip(
                axis.get_majorticklocs(), axis.get_ticklabels(), strict=True
            )
            if label.get_text() and low <= place <= high
        ]
        yield (
            [label.get_text() for label in labels],
            [label.get_window_extent() for label in labels],
        )


def assert_apart(boxes):
    # No two of them, with two pixels in between.
    for one, other in itertools.combinations(boxes, 2):
        assert not one.padded(1).overlaps(other.padded(1))


@pytest.mark.parametrize(
    ("size", "least"), [(None, 14), ((3, 2.6), 8), ((1.5, 1.3), 2), ((12, 11), 20)]
)
def test_labels_of_small_states_do_not_overlap(size, least):
    path = np.repeat(np.arange(30), SIZES)
    display = PosteriorSimilarityDisplay.from_draws(path[None])
    if size is not None:
        # Figures may get another size when all is drawn.
        display.figure_.set_size_inches(*size)
    middles = np.cumsum(SIZES) - np.array(SIZES) / 2 - 0.5
    for texts, boxes in shown_labels(display):
        assert_apart(boxes)
        assert least <= len(texts) < 30
        # The largest state has its own.
        assert texts[0] == "0"
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        np.testing.assert_array_equal(axis.get_majorticklocs(), middles)
        # Each at its tick.
        for k, label in enumerate(axis.get_ticklabels()):
            assert label.get_text() in ("", str(k))


def test_all_labels_that_have_room_are_written():
    path = np.repeat(np.arange(5), [60, 50, 50, 40, 1])
    display = PosteriorSimilarityDisplay.from_draws(path[None])
    for texts, boxes in shown_labels(display):
        assert texts == ["0", "1", "2", "3", "4"]
        assert_apart(boxes)
    path = np.repeat(np.arange(5), [60, 50, 50, 1, 1])
    display = PosteriorSimilarityDisplay.from_draws(path[None])
    for texts, _ in shown_labels(display):
        assert texts == ["0", "1", "2", "3"]
    # In a part of the picture there is more room.
    display.ax_.set(xlim=(149.5, 161.5), ylim=(161.5, 149.5))
    for texts, boxes in shown_labels(display):
        assert texts == ["3", "4"]
        assert_apart(boxes)
    # What is just outside of it takes no room.
    display.ax_.set(xlim=(160.5, 361.5), ylim=(361.5, 160.5))
    for texts, _ in shown_labels(display):
        assert texts == ["4"]


def test_labels_with_other_fonts(pyplot):
    path = np.repeat(np.arange(95, 125), SIZES)
    display = PosteriorSimilarityDisplay.from_draws(path[None], reference=path)
    numbers = [len(texts) for texts, _ in shown_labels(display)]
    display.ax_.tick_params(labelsize=14, labelfontfamily="serif")
    for n, (texts, boxes) in zip(numbers, shown_labels(display), strict=True):
        assert_apart(boxes)
        assert 5 < len(texts) < n


def test_labels_in_files_and_copies(tmp_path, pyplot):
    path = np.repeat(np.arange(30), SIZES)
    display = PosteriorSimilarityDisplay.from_draws(path[None])
    written = [texts for texts, _ in shown_labels(display)]
    display.figure_.savefig(tmp_path / "picture.svg")
    copy = pickle.loads(pickle.dumps(display))
    assert [texts for texts, _ in shown_labels(copy)] == written


def test_long_data():
    paths = np.tile(np.arange(1200) // 400, (3, 1))
    display = PosteriorSimilarityDisplay.from_draws(paths)
    assert display.similarity.shape == (500, 500)
    assert display.steps[0] == 0
    assert display.steps[-1] == 1199
    assert set(np.diff(display.steps)) == {2, 3}
    assert len(np.unique(display.states)) == 3


def test_axes_are_kept(fitted, pyplot):
    figure, ax = pyplot.subplots()
    display = PosteriorSimilarityDisplay.from_estimator(fitted, ax=ax, colorbar=False)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.colorbar_ is None
    assert display.plot(order="time") is display
    assert display.ax_ is not ax


def test_errors(fitted, without_states):
    with pytest.raises(ValueError, match="Fit with store_states=True"):
        PosteriorSimilarityDisplay.from_estimator(without_states)
    with pytest.raises(ValueError, match="order='size'; expected one of 'estimate'"):
        PosteriorSimilarityDisplay.from_estimator(fitted, order="size")
    message = "reference has 59 steps, but the draws have 60; expected a path of the same"
    with pytest.raises(ValueError, match=message):
        PosteriorSimilarityDisplay.from_draws(
            fitted.draws_, steps=[0, 1], reference=fitted.labels_[1:]
        )
    with pytest.raises(ValueError, match="steps has values from 0 to 60"):
        PosteriorSimilarityDisplay.from_draws(fitted.draws_, steps=[0, 60])
    with pytest.raises(ValueError, match="expected a list of indices of steps"):
        PosteriorSimilarityDisplay.from_draws(fitted.draws_, steps=[0.5])
    display = PosteriorSimilarityDisplay(np.eye(3), steps=np.arange(3))
    with pytest.raises(ValueError, match="this display has no states"):
        display.plot()


def gallery(n_states, n_samples=200):
    rng = np.random.default_rng(0)
    path = rng.integers(n_states, size=n_samples)
    draws = np.tile(path, (20, 1))
    wrong = rng.random(draws.shape) < 0.15 * (path % 3 == 0)
    draws[wrong] = (draws[wrong] + 1) % n_states
    return draws


@pytest.mark.parametrize(
    ("name", "n", "order"),
    [
        ("similarity_5", 5, "estimate"),
        ("similarity_30", 30, "estimate"),
        ("similarity_time", 5, "time"),
    ],
)
def test_pictures(name, n, order, tmp_path):
    n_samples = 60 if order == "time" else 200
    with canvas(400, 300) as figure:
        ax = figure.subplots()
        PosteriorSimilarityDisplay.from_draws(gallery(n, n_samples), order=order, ax=ax)
        assert_same_picture(figure, name, tmp_path)
