"""TransitionMatrixDisplay: matrices, orders, arrows, pictures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pictures import assert_same_picture, canvas

from skihmm import HCRPHMM
from skihmm.inspection import TransitionMatrixDisplay
from skihmm.inspection._transitions import block_order, cycle_order
from skihmm.transitions import HCRPTransitions


def random_matrix(rng, n, concentration=0.3):
    return rng.dirichlet(np.full(n, concentration), size=n)


def arrows(display):
    from matplotlib.patches import FancyArrowPatch

    return [one for one in display.ax_.patches if isinstance(one, FancyArrowPatch)]


def circles(display):
    from matplotlib.patches import Circle

    return [one for one in display.ax_.patches if isinstance(one, Circle)]


def test_values(fitted):
    display = TransitionMatrixDisplay.from_estimator(fitted)
    n = fitted.n_states_
    np.testing.assert_array_equal(display.transmat, fitted.transmat_)
    np.testing.assert_allclose(display.occupancy * 60, np.bincount(fitted.labels_))
    np.testing.assert_array_equal(display.order_, np.arange(n))
    np.testing.assert_array_equal(display.im_.get_array(), fitted.transmat_[:n, :n])
    display.plot(new_state=True)
    np.testing.assert_array_equal(display.im_.get_array(), fitted.transmat_)
    assert display.im_.get_clim() == (0, 1)
    assert display.ax_.get_yticklabels()[-1].get_text() in ("new", str(n - 1))


def test_a_model_without_paths(without_states):
    display = TransitionMatrixDisplay.from_estimator(without_states)
    assert display.occupancy.sum() == pytest.approx(1)


def test_known_states_are_ordered_by_occupancy(sequence):
    known = np.full(len(sequence), -1)
    known[4] = 0
    hmm = HCRPHMM(n_burnin=5, n_draws=2, random_state=0).fit(sequence, states=known)
    display = TransitionMatrixDisplay.from_estimator(hmm)
    assert (np.diff(display.occupancy[display.order_]) <= 0).all()


def test_axes_are_kept(fitted, pyplot):
    figure, ax = pyplot.subplots()
    display = TransitionMatrixDisplay.from_estimator(fitted, ax=ax, colorbar=False)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.colorbar_ is None
    assert len(figure.axes) == 1
    assert display.plot(kind="graph") is display
    assert display.ax_ is not ax
    assert display.im_ is display.colorbar_ is None
    assert display.plot().colorbar_.ax.get_ylabel() == "transition probability"
    figure = pyplot.figure()
    part = figure.subfigures(1, 2)[0]
    assert display.plot(part.subplots(), kind="graph").figure_ is part


def test_numbers_in_cells():
    matrix = np.array([[0.25, 0.75, 0.0], [0.001, 0.999, 0.0], [0.5, 0.5, 0.0]])
    display = TransitionMatrixDisplay(matrix, occupancy=np.array([0.6, 0.4])).plot()
    texts = {one.get_position(): one.get_text() for one in display.ax_.texts}
    assert texts == {(0, 0): "0.25", (1, 0): "0.75", (1, 1): "1.00"}


def test_orders(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    n = 12
    hidden = rng.permutation(n)
    # A circle in another order.
    matrix = np.full((n, n), 0.1 / n)
    matrix[hidden, np.roll(hidden, -1)] += 0.9
    first = int(hidden[0])
    np.testing.assert_array_equal(cycle_order(matrix, first), hidden)
    # Three blocks, mixed up.
    block = hidden % 3
    matrix = np.where(block[:, None] == block, rng.uniform(0.2, 0.25, (n, n)), 0.01)
    order = block_order(matrix)
    assert sorted(order) == list(range(n))
    assert len(list(itertools.groupby(block[order]))) == 3


@pytest.mark.parametrize("n", [1, 2, 30])
def test_orders_are_permutations(n, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    matrix = random_matrix(rng, n + 1)
    occupancy = rng.dirichlet(np.ones(n))
    display = TransitionMatrixDisplay(matrix, occupancy=occupancy)
    for order, kind in itertools.product(("occupancy", "cycle", "block"), ("heatmap",)):
        display.plot(kind=kind, order=order)
        assert sorted(display.order_) == list(range(n))
        shown = matrix[np.ix_(display.order_, display.order_)]
        np.testing.assert_array_equal(display.im_.get_array(), shown)
    assert display.plot(order="cycle").order_[0] == occupancy.argmax()
    given = rng.permutation(n)
    np.testing.assert_array_equal(display.plot(order=given).order_, given)


def test_some_states(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    matrix, occupancy = random_matrix(rng, 31), rng.dirichlet(np.ones(30))
    display = TransitionMatrixDisplay(matrix, occupancy=occupancy)
    chosen = [21, 3, 8, 17]
    by_occupancy = sorted(chosen, key=lambda k: -occupancy[k])
    display.plot(states=chosen)
    np.testing.assert_array_equal(display.order_, by_occupancy)
    np.testing.assert_array_equal(
        display.im_.get_array(), matrix[np.ix_(by_occupancy, by_occupancy)]
    )
    for order in ("cycle", "block"):
        assert sorted(display.plot(states=chosen, order=order).order_) == sorted(chosen)
    np.testing.assert_array_equal(display.plot(states=chosen, order=chosen).order_, chosen)
    # The new state is the last state of the model.
    display.plot(states=chosen, new_state=True)
    with_new = [*by_occupancy, 30]
    np.testing.assert_array_equal(display.im_.get_array(), matrix[np.ix_(with_new, with_new)])
    display.plot(kind="graph", states=chosen, new_state=True)
    names = [one.get_text() for one in display.ax_.texts]
    assert names == [*map(str, by_occupancy), "new"]
    with pytest.raises(ValueError, match=r"or the states \[3, 8\], each once"):
        display.plot(states=[8, 3], order=[0, 1])
    with pytest.raises(ValueError, match="expected a list of states, from 0 to 29"):
        display.plot(states=[30])


def test_graph():
    matrix = np.array(
        [
            [0.0, 0.9, 0.06, 0.04],
            [0.5, 0.5, 0.0, 0.0],
            [0.03, 0.03, 0.94, 0.0],
            [0.25, 0.25, 0.25, 0.25],
        ]
    )
    display = TransitionMatrixDisplay(matrix, occupancy=np.array([0.64, 0.32, 0.04]))
    display.plot(kind="graph", threshold=0.05)
    # Weak ones first, so that strong ones are on top; wide ones are probable.  Loops have the
    # probability to stay, other arrows that of the next state if the state is left.
    widths = [one.get_linewidth() for one in arrows(display)]
    probs = np.array([0.06, 0.5, 0.5, 0.5, 0.9, 0.94, 1.0])
    np.testing.assert_allclose(widths, 0.8 + 1.8 * probs)
    # All are seen: on white they have a contrast of 3 to 1 (WCAG) or more.
    for arrow in arrows(display):
        *rgb, alpha = arrow.get_edgecolor()
        blended = 1 - alpha * (1 - np.array(rgb))
        linear = ((blended + 0.055) / 1.055) ** 2.4
        assert 1.05 / (linear @ (0.2126, 0.7152, 0.0722) + 0.05) > 3
    area = np.array([one.get_radius() for one in circles(display)]) ** 2
    # In proportion to the occupancy, unless that is too small to be seen.
    assert area[1] / area[0] == pytest.approx(0.5)
    assert area[2] / area[0] == pytest.approx(0.55**2)
    assert [one.get_text() for one in display.ax_.texts] == ["0", "1", "2"]
    display.plot(kind="graph", threshold=0.6)
    assert len(arrows(display)) == 3
    display.plot(kind="graph", threshold=0.05, new_state=True)
    assert len(arrows(display)) == 7 + 4
    assert display.ax_.texts[-1].get_text() == "new"


def test_states_that_last_have_arrows_to_the_next_states_of_the_summary():
    path = np.repeat([0, 1, 2] * 4, 25)
    X = 20.0 * path[:, None] + np.random.default_rng(0).normal(size=(300, 1))
    hmm = HCRPHMM(emission="gaussian", transitions="sticky", n_burnin=3, n_draws=2, random_state=0)
    hmm.fit(X, states=path)
    display = TransitionMatrixDisplay.from_estimator(hmm, kind="graph", threshold=0.5)
    widths = [(arrow.get_linewidth() - 0.8) / 1.8 for arrow in arrows(display)]
    assert len(widths) == 6  # three loops, and a circle
    summary = hmm.summary()
    assert summary.next_states[:, 0].tolist() == [1, 2, 0]
    expected = [*summary.next_probabilities[:, 0], *np.diag(hmm.transmat_)[:3]]
    np.testing.assert_allclose(sorted(widths), sorted(expected))


def test_ends_of_intervals_have_as_many_digits_as_tell_them_apart():
    matrix = np.array([[0.985, 0.0121, 0.0029], [0.0, 0.999996, 4e-6], [0.5, 0.5, 0.0]])
    intervals = np.array(
        [[[0.97, 0.0114, 0.001], [0.0, 0.999995, 0.0]], [[0.99, 0.0133, 0.002], [0.0, 0.999997, 0]]]
    )
    display = TransitionMatrixDisplay(
        matrix, occupancy=np.array([0.6, 0.4]), intervals=intervals
    ).plot()
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["0.98\n0.97-0.99", "0.012\n0.011-0.013", "1.00"]


def test_intervals_of_many_states_are_drawn_or_a_warning_says_that_they_are_not(pyplot):
    n = 15
    matrix = np.full((n + 1, n + 1), 1 / (n + 1))
    intervals = np.array([matrix[:-1] - 0.05, matrix[:-1] + 0.05])
    display = TransitionMatrixDisplay(matrix, occupancy=np.full(n, 1 / n), intervals=intervals)
    assert len(display.plot().ax_.texts) == n * n
    _, ax = pyplot.subplots(figsize=(4, 3))
    with pytest.warns(UserWarning, match="Intervals of 15 states have no room in this figure"):
        display.plot(ax)
    assert not ax.texts
    hmm = HCRPHMM(n_burnin=5, n_draws=2, random_state=0).fit([[0], [1], [2]] * 20)
    with pytest.warns(UserWarning, match=r"probability=0.9 changes nothing in kind='graph'"):
        TransitionMatrixDisplay.from_estimator(hmm, probability=0.9, kind="graph")


@pytest.mark.parametrize("n", [1, 2, 12, 13, 30])
def test_names_in_graphs_do_not_overlap(n, pyplot):
    matrix = np.full((n + 1, n + 1), 1 / (n + 1))
    display = TransitionMatrixDisplay(matrix, occupancy=np.full(n, 1 / n))
    figure, ax = pyplot.subplots(figsize=(4, 3), layout="constrained")
    display.plot(ax, kind="graph", new_state=True)
    boxes = [one.get_window_extent() for one in ax.texts]
    assert len(boxes) == n + 1
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    frame = figure.bbox
    assert all(frame.contains(*corner) for box in boxes for corner in box.corners())


def test_errors(fitted):
    display = TransitionMatrixDisplay(np.full((4, 4), 0.25), occupancy=np.full(3, 1 / 3))
    for order in ([0, 1], [0, 1, 1], [0.0, 1.0, 2.0], [1, 2, 3]):
        with pytest.raises(ValueError, match=r"expected one of .* or the states 0 to 2"):
            display.plot(order=order)
    with pytest.raises(ValueError, match="order='size'; expected one of 'occupancy'"):
        display.plot(order="size")
    with pytest.raises(ValueError, match="kind='plot'; expected one of 'heatmap'"):
        TransitionMatrixDisplay.from_estimator(fitted, kind="plot")
    with pytest.raises(ValueError, match="threshold=0; expected a finite number > 0"):
        display.plot(kind="graph", threshold=0)
    with pytest.raises(TypeError, match="new_state=1; expected True or False"):
        display.plot(new_state=1)
    with pytest.raises(ValueError, match="ax holds 2 entries; expected one Axes"):
        display.plot([1, 2])


def nearly_cyclic(n):
    """A circle with short cuts, its states mixed up."""
    rng = np.random.default_rng(0)
    hidden = rng.permutation(n)
    matrix = 0.25 * random_matrix(rng, n + 1, 0.1)
    matrix[hidden, np.roll(hidden, -1)] += 0.75
    matrix[n] = 1 / (n + 1)
    occupancy = np.sort(rng.dirichlet(np.full(n, 2.0)))[::-1]
    return TransitionMatrixDisplay(matrix, occupancy=occupancy)


@pytest.mark.parametrize(
    ("name", "n", "options"),
    [
        ("transitions_5", 5, {"new_state": True}),
        ("transitions_30", 30, {"order": "cycle"}),
        ("transitions_graph_5", 5, {"kind": "graph", "new_state": True}),
        ("transitions_graph_30", 30, {"kind": "graph", "order": "cycle"}),
        ("transitions_blocks", 30, {"order": "block", "new_state": True}),
    ],
)
def test_pictures(name, n, options, tmp_path):
    with canvas(400, 300 if n < 30 else 400) as figure:
        nearly_cyclic(n).plot(figure.subplots(), **options)
        assert_same_picture(figure, name, tmp_path)


def test_intervals_of_probabilities():
    hmm = HCRPHMM(n_burnin=20, n_draws=5, random_state=0).fit([[0], [1], [2]] * 20)
    display = TransitionMatrixDisplay.from_estimator(hmm, probability=0.9)
    low, high = display.intervals
    assert low.shape == (hmm.n_states_, hmm.n_states_ + 1)
    assert ((low <= high) & (high <= 1)).all()
    state, following = np.unravel_index(hmm.transmat_[:-1].argmax(), low.shape)
    # Two digits are the same at both ends.
    ends = f"{low[state, following]:.3f}-{high[state, following]:.3f}"
    assert ends == "0.999-1.000"
    assert any(ends in text.get_text() for text in display.ax_.texts)
    hmm = HCRPHMM(transitions=HCRPTransitions(context_features=[1]), n_burnin=2, n_draws=2)
    with pytest.raises(ValueError, match="no intervals where"):
        TransitionMatrixDisplay.from_estimator(hmm.fit([[0, 0], [1, 1]] * 9), probability=0.9)


def test_a_graph_has_no_arrows_from_a_state_that_is_never_left():
    """The next states of the end of a path are the prior."""
    X = np.repeat([[0.0], [9.0], [20.0]], 30, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)
    hmm = HCRPHMM(emission="gaussian", n_burnin=50, n_draws=5, random_state=0).fit(X)
    assert hmm.n_states_ == 3
    display = TransitionMatrixDisplay.from_estimator(hmm, kind="graph", threshold=0.01)
    last = hmm.labels_[-1]
    assert display.are_left.tolist() == [k != last for k in range(3)]
    arrows = len(display.ax_.patches)
    display.are_left = None
    display.plot(kind="graph", threshold=0.01)
    assert len(display.ax_.patches) > arrows
