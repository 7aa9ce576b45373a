"""State paths as partitions of the steps, and losses between partitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from skihmm._draws import PosteriorDraws, occupancy_order, spacing
from skihmm._typing import Array, Floats, Integers, Labels

LOSSES = ("vi", "binder")

# Steps, over all draws, of contingency tables that are counted together.
_CHUNK = 2**18


def state_paths(draws: PosteriorDraws | ArrayLike, most: int | None = None) -> Array:
    """Paths of all draws, chain after chain, of shape (n_draws, n_samples).

    Longer paths are thinned to at most `most` evenly spaced steps.
    """
    if isinstance(draws, PosteriorDraws):
        if not draws.has_states:
            raise ValueError(
                "The draws have no state paths: they were made with store_states=False. "
                "Fit with store_states=True."
            )
        return draws._paths(most)
    if hasattr(draws, "draws_"):
        raise TypeError(
            f"draws is a fitted {type(draws).__name__}; expected its draws: pass draws_."
        )
    paths = np.asarray(draws)
    if paths.ndim != 2 or paths.dtype.kind not in "iu" or 0 in paths.shape:
        raise ValueError(
            f"draws has shape {paths.shape} and type {paths.dtype}; expected "
            "PosteriorDraws, or integers of shape (n_draws, n_samples), one path per row."
        )
    if paths.min() < 0:
        raise ValueError(
            "draws has negative labels, which are not states. (In `draws_.states`, -1 "
            "says that a chain has fewer draws; pass `draws_` itself.)"
        )
    return paths[:, :: spacing(paths.shape[1], most)]


def draw_weights(draws: PosteriorDraws | ArrayLike) -> Floats:
    """Weights of all draws, chain after chain; for paths alone equal weights, 1."""
    if isinstance(draws, PosteriorDraws):
        return draws.weights()
    return np.ones(np.shape(draws)[:1])


def repeated_draws(weights: Floats, n: int) -> NDArray[np.intp]:
    """Indices of n draws in increasing order, each repeated in proportion to its weight."""
    shares = np.cumsum(weights / np.sum(weights))
    return np.searchsorted(shares, (np.arange(n) + 0.5) / n)


def check_path(name: str, path: ArrayLike, n_samples: int | None = None) -> Array:
    """Check a path of non-negative integers, and their number if it is given."""
    path = np.asarray(path)
    if path.ndim != 1 or path.dtype.kind not in "iu" or not len(path) or path.min() < 0:
        raise ValueError(
            f"{name} has shape {path.shape} and type {path.dtype}; expected "
            "non-negative integers of shape (n_samples,), one state per step."
        )
    if n_samples is not None and len(path) != n_samples:
        raise ValueError(
            f"{name} has {len(path)} steps, but the draws have {n_samples}; expected a "
            "path of the same data, such as `labels_` of the fitted model."
        )
    return path


def by_first_step(path: Array) -> Labels:
    """Number states by first appearance, the canonical form of a partition."""
    _, first, labels = np.unique(path, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int32)
    number[np.argsort(first)] = np.arange(len(first))
    return number[labels]


def by_occupancy(path: Array) -> Labels:
    """Number states by decreasing occupancy, ties by first appearance."""
    states = np.unique(path, return_inverse=True)[1].ravel()
    order = occupancy_order(states, int(states.max()) + 1)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    return number[states]


def overlaps(one: Integers, other: Integers) -> Integers:
    """Numbers of steps that are in a state of one path and in a state of another path."""
    shape = int(one.max()) + 1, int(other.max()) + 1
    cells = one.astype(np.intp) * shape[1] + other
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def _distinct_rows(rows: Labels) -> tuple[Labels, Array, Array]:
    """Distinct rows in canonical order, the index of each row among them, and counts."""
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.strides[0]))).ravel()
    _, first, index, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    return rows[first], index.ravel(), counts


class Partitions:
    """Distinct partitions among the draws, over items.

    An item is a set of steps that no draw separates.  No partition that separates such
    steps has a smaller expected loss than the better one of the partitions that keep them together:
    as a function of the number of such steps in one of two states the loss is concave
    (its second derivative is ``f''(a) - 2 mean f''(a_d)`` and the same for the other
    state, with ``f`` as in :class:`Loss`, ``f''`` not increasing and ``a_d <= a``).

    The result does not depend on labels or on the order of the draws, to the last bit.

    `labels`, of shape (n_distinct, n_items), has the `weights`, which sum to one; `which` is the
    row of each draw, `sizes` the steps of every item, `item` the item of every step.
    """

    def __init__(self, paths: Array, weights: Floats | None = None) -> None:
        if weights is None:
            weights = np.ones(len(paths))
        canonical = np.stack([by_first_step(path) for path in paths])
        distinct, self.which, _ = _distinct_rows(canonical)
        self.weights = np.bincount(self.which, weights) / weights.sum()
        columns, self.item, self.sizes = _distinct_rows(np.ascontiguousarray(distinct.T))
        self.labels = np.ascontiguousarray(columns.T)
        self.n_samples = paths.shape[1]


class Loss:
    """Variation of information (nats) or Binder loss of pairs of partitions.

    Both are ``(F(a) + F(b) - 2 F(a, b)) * scale``: F sums a function of counts over the
    states of one partition, or over the cells of the contingency table of two.  The
    function is ``n log n`` for the variation of information, and ``n ** 2`` for the
    Binder loss, the proportion of pairs of steps on which the two disagree.
    """

    def __init__(self, name: str, n_samples: int) -> None:
        counts = np.arange(n_samples + 1, dtype=float)
        if name == "vi":
            self.f, self.scale = xlogy(counts, counts), 1 / n_samples
        else:
            self.f, self.scale = counts**2, 1 / max(n_samples * (n_samples - 1), 1)

    def _sums(self, many: Labels, sizes: Array) -> Floats:
        """F of several partitions."""
        # The table of the partition into one state has one row.
        return self._joint_sums(np.zeros(many.shape[1], np.int32), many, sizes)

    def _joint_sums(self, one: Integers, many: Integers, sizes: Array) -> Floats:
        """F of the contingency tables of one partition with several."""
        sums = np.empty(len(many))
        step = max(1, _CHUNK // len(one))
        for start in range(0, len(many), step):
            chunk = many[start : start + step]
            n_columns = chunk.max(axis=1).astype(np.intp) + 1
            ends = np.cumsum(n_columns)
            width = ends[-1]
            cells = chunk + (ends - n_columns)[:, None] + one.astype(np.intp) * width
            cells = cells.ravel()
            steps = np.broadcast_to(sizes, chunk.shape).ravel()
            n_cells = (int(one.max()) + 1) * int(width)
            if n_cells <= 8 * len(cells):
                counts = np.bincount(cells, weights=steps, minlength=n_cells)
                present = np.flatnonzero(counts)
                counts = counts[present]
            else:  # nearly empty tables
                present, inverse = np.unique(cells, return_inverse=True)
                counts = np.bincount(inverse.ravel(), weights=steps)
            row_of = np.repeat(np.arange(len(chunk)), n_columns)
            sums[start : start + step] = np.bincount(
                row_of[present % width],
                weights=self.f[counts.astype(np.intp)],
                minlength=len(chunk),
            )
        return sums

    def distance(self, one: Integers, other: Integers) -> float:
        """Loss of two paths, of states 0, 1, ..."""
        sizes = np.ones(len(one))
        margin = self._sums(np.stack([one, other]), sizes).sum()
        joint = self._joint_sums(one, other[None], sizes)[0]
        # Rounding may give -1e-17.
        return max(float(self.scale * (margin - 2 * joint)), 0.0)

    def of_draws(self, partitions: Partitions) -> Floats:
        """Posterior expected loss of every distinct draw."""
        labels, sizes = partitions.labels, partitions.sizes
        margin = self._sums(labels, sizes)
        losses = np.zeros((len(labels), len(labels)))
        for i in range(len(labels) - 1):
            joint = self._joint_sums(labels[i], labels[i + 1 :], sizes)
            losses[i, i + 1 :] = margin[i] + margin[i + 1 :] - 2 * joint
        return self.scale * ((losses + losses.T) @ partitions.weights)

    def expected(self, labels: Labels, partitions: Partitions) -> float:
        """Posterior expected loss of any partition of the items."""
        sizes = partitions.sizes
        margin = self._sums(labels[None], sizes)[0]
        others = self._sums(partitions.labels, sizes)
        joint = self._joint_sums(labels, partitions.labels, sizes)
        return float(self.scale * ((margin + others - 2 * joint) @ partitions.weights))
