"""Point estimate of the partition by greedy descent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skihmm._data.validation import check_choice, check_flag, check_integer
from skihmm._draws import PosteriorDraws
from skihmm._typing import Array, Floats, Labels
from skihmm._using.partitions import (
    LOSSES,
    Loss,
    Partitions,
    by_occupancy,
    draw_weights,
    state_paths,
)

SEARCHES = ("auto", "greedy", "draws")

# With more items than this, search="auto" chooses among the draws only.
MAX_ITEMS = 2000
# Draws of longer data are compared at so many evenly spaced steps.  At all of 1e6 steps
# it takes 40 s and 2.6 GB for 100 draws.
MOST_COMPARED = 50_000
# A descent has converged long before.
_MAX_SWEEPS = 50
# Rounding errors of the objective.
_TOLERANCE = 1e-9


class Descent:
    """Greedy descent of the expected loss over partitions of the items.

    Up to constants the objective is ``F(c) - 2 mean F(c, draw)``, with F as in
    :class:`Loss`; an item's contribution depends on the counts of its cells only.
    `labels` has the state of every item, -1 while it is in none.
    """

    def __init__(self, partitions: Partitions, loss: Loss) -> None:
        self._f = loss.f
        self._weights = partitions.weights
        self._sizes = partitions.sizes.astype(np.intp)
        n_columns = partitions.labels.max(axis=1).astype(np.intp) + 1
        offsets = np.cumsum(n_columns) - n_columns
        # The cells of an item, a cell per draw, in the row of a state.
        self._cells = np.ascontiguousarray((partitions.labels + offsets[:, None]).T)
        self._cell_weights = np.repeat(self._weights, n_columns)
        self.start(np.full(len(self._sizes), -1, dtype=np.int32))

    def start(self, labels: Labels) -> None:
        """Start from a partition, which may leave items out."""
        self.labels = labels.copy()
        self._pack()

    def _pack(self) -> None:
        """Renumber the states without gaps, with one empty row for a new state."""
        placed = self.labels >= 0
        used, packed = np.unique(self.labels[placed], return_inverse=True)
        self.labels[placed] = packed
        self._tables = np.zeros((len(used) + 1, len(self._cell_weights)), dtype=np.intp)
        for i in np.flatnonzero(placed):
            self._tables[self.labels[i], self._cells[i]] += self._sizes[i]
        self._occupancy = np.bincount(
            packed, weights=self._sizes[placed], minlength=len(used) + 1
        ).astype(np.intp)

    def _objective(self) -> float:
        joint = self._f[self._tables] @ self._cell_weights
        return float(self._f[self._occupancy].sum() - 2 * joint.sum())

    def _costs(self, i: int) -> Floats:
        """Contribution of item i, now in no state, to the objective in each state."""
        size, counts = self._sizes[i], self._tables[:, self._cells[i]]
        joint = (self._f[counts + size] - self._f[counts]) @ self._weights
        margin = self._f[self._occupancy + size] - self._f[self._occupancy]
        return margin - 2 * joint

    def _put(self, i: int, state: int, sign: int = 1) -> None:
        self._tables[state, self._cells[i]] += sign * self._sizes[i]
        self._occupancy[state] += sign * self._sizes[i]
        self.labels[i] = state if sign > 0 else -1
        if self._occupancy.all():
            self._tables = np.vstack([self._tables, np.zeros_like(self._tables[:1])])
            self._occupancy = np.append(self._occupancy, 0)

    def allocate(self, items: Array) -> None:
        """Assign items without a state to their best states, one by one."""
        for i in items:
            self._put(i, int(self._costs(i).argmin()))

    def _sweep(self, order: Array) -> bool:
        """Move single items; return whether any has moved."""
        has_moved = False
        for i in order:
            state = int(self.labels[i])
            self._put(i, state, -1)
            costs = self._costs(i)
            best = int(costs.argmin())
            if costs[best] < costs[state] - _TOLERANCE:
                has_moved, state = True, best
            self._put(i, state)
        self._pack()
        return has_moved

    def _merge(self) -> bool:
        """Make the best merge of two states; return whether there was one."""
        n_states = len(self._occupancy) - 1
        joint = self._f[self._tables] @ self._cell_weights
        margin = self._f[self._occupancy]
        best, pair = -_TOLERANCE, None
        for k in range(n_states - 1):
            others = slice(k + 1, n_states)
            merged = self._f[self._tables[k] + self._tables[others]] @ self._cell_weights
            costs = self._f[self._occupancy[k] + self._occupancy[others]]
            costs = costs - margin[k] - margin[others]
            costs -= 2 * (merged - joint[k] - joint[others])
            if costs.min() < best:
                best, pair = costs.min(), (k, k + 1 + int(costs.argmin()))
        if pair is None:
            return False
        self.labels[self.labels == pair[1]] = pair[0]
        self._pack()
        return True

    def _dissolve(self, rng: np.random.Generator) -> bool:
        """Dissolve states and reassign their items; return whether a partition was better."""
        for state in range(len(self._occupancy) - 1):
            before, objective = self.labels.copy(), self._objective()
            items = rng.permutation(np.flatnonzero(before == state))
            for i in items:
                self._put(i, state, -1)
            self.allocate(items)
            if self._objective() < objective - _TOLERANCE:
                self._pack()
                return True
            self.start(before)
        return False

    def run(self, rng: np.random.Generator) -> None:
        """Descend until no move improves the objective, in a random order of items."""
        for _ in range(_MAX_SWEEPS):
            order = rng.permutation(len(self.labels))
            if not (self._sweep(order) or self._merge() or self._dissolve(rng)):
                break


def point_estimate(
    draws: PosteriorDraws | ArrayLike,
    loss: str = "vi",
    *,
    weights: ArrayLike | None = None,
    search: str = "auto",
    n_starts: int = 8,
    return_loss: bool = False,
) -> Any:
    """Partition of the steps with the smallest posterior expected loss.

    First every draw is compared with all other draws.  Then, unless the data are long, a
    greedy descent starts from the best draw and from partitions built up step by step in
    random orders.  The descent moves single steps, merges states, and dissolves a state and
    reassigns the steps (like SALSO), until no move improves the loss.  Steps that no draw
    separates are moved together, without loss.  All expectations are exact averages over
    the draws, by contingency tables.

    Parameters
    ----------
    draws : PosteriorDraws or array-like of shape (n_draws, n_samples)
        State paths.
    loss : {"vi", "binder"}, default="vi"
        Variation of information in nats, or Binder loss: the proportion of pairs of steps
        together in one partition and apart in another (1 minus the Rand index).
    weights : array-like of shape (n_draws,), optional
        Weights of the draws.  By default the weights of the chains
        (``draws_.chain_weights``), and equal weights for an array.
    search : {"auto", "greedy", "draws"}, default="auto"
        "draws": the best draw, without descent.  "auto": "draws" for more than 2,000 sets
        of steps that no draw separates, otherwise "greedy".  "draws" takes a time of the
        order of ``n_draws ** 2 * n_samples``: about a second for 100 draws of 30,000 steps.
        Except for "greedy", losses on longer data than 50,000 steps use 50,000 evenly
        spaced steps.
    n_starts : int, default=8
        Number of partitions that are built up, beside the descent from the best draw.
    return_loss : bool, default=False
        Whether to return the expected loss.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
        States numbered by decreasing occupancy.
    loss : float
        Posterior expected loss of `labels`; only with ``return_loss=True``.

    See Also
    --------
    coassignment : Probabilities that two steps share a state.
    align : Paths of all draws with matched labels.

    Notes
    -----
    The result depends neither on the labels of the states nor on the order of the draws,
    and the random orders have a fixed seed.  With ``search="greedy"`` the result need not
    be a draw, and a global minimum is not guaranteed.

    References
    ----------
    S. Wade and Z. Ghahramani, "Bayesian Cluster Analysis: Point Estimation and Credible
    Balls", Bayesian Analysis 13(2), 2018.

    D. B. Dahl, D. J. Johnson and P. Mueller, "Search Algorithms and Loss Functions for
    Bayesian Clustering", Journal of Computational and Graphical Statistics 31(4), 2022.

    D. A. Binder, "Bayesian Cluster Analysis", Biometrika 65(1), 1978.

    Examples
    --------
    >>> from skihmm.posterior import point_estimate
    >>> draws = [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 2], [0, 0, 1, 1, 1, 1]]
    >>> labels, loss = point_estimate(draws, loss="binder", return_loss=True)
    >>> labels
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> round(loss, 3)
    0.156
    """
    loss = check_choice("loss", loss, LOSSES)
    search = check_choice("search", search, SEARCHES)
    n_starts = check_integer("n_starts", n_starts, 0)
    return_loss = check_flag("return_loss", return_loss)
    paths = state_paths(draws)
    weights = draw_weights(draws) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (len(paths),) or not (
        np.isfinite(weights).all() and (weights >= 0).all() and weights.any()
    ):
        raise ValueError(
            f"weights has the shape {weights.shape}; expected a non-negative number for "
            f"each of the {len(paths)} draws, not all of them zero."
        )
    # Draws without weight would make items smaller.
    paths, weights = paths[weights > 0], weights[weights > 0]
    if search != "greedy" and paths.shape[1] > MOST_COMPARED:
        partitions = Partitions(state_paths(paths, MOST_COMPARED), weights)
        losses = Loss(loss, partitions.n_samples).of_draws(partitions)
        path = paths[np.flatnonzero(partitions.which == losses.argmin())[0]]
        states = by_occupancy(path)
        return (states, float(losses.min())) if return_loss else states
    partitions = Partitions(paths, weights)
    measure = Loss(loss, partitions.n_samples)
    losses = measure.of_draws(partitions)
    best = int(losses.argmin())
    labels, smallest = partitions.labels[best], float(losses[best])
    n_items = len(partitions.sizes)
    if search == "greedy" or (search == "auto" and n_items <= MAX_ITEMS):
        rng = np.random.default_rng(0)
        descent = Descent(partitions, measure)
        for number in range(n_starts + 1):
            descent.start(labels if number == 0 else np.full(n_items, -1, np.int32))
            if number > 0:
                descent.allocate(rng.permutation(n_items))
            descent.run(rng)
            found = measure.expected(descent.labels, partitions)
            if found < smallest - 1e-12:
                labels, smallest = descent.labels.copy(), found
    states = by_occupancy(labels[partitions.item])
    return (states, smallest) if return_loss else states


def best_draw(draws: PosteriorDraws, loss: str) -> tuple[int, int]:
    """Find the chain and draw with the smallest posterior expected loss.

    Among equal losses it is the draw of the highest log joint probability, summed over seatings.
    """
    keeps = draws.weights() > 0
    paths = state_paths(draws, MOST_COMPARED)[keeps]
    partitions = Partitions(paths, draws.weights()[keeps])
    losses = Loss(loss, partitions.n_samples).of_draws(partitions)
    # Equal losses differ by rounding, and two draws always have equal losses.
    is_best = (losses <= losses.min() + 1e-12)[partitions.which]
    every = [(c, d) for c, n in enumerate(draws.n_draws) for d in range(n)]
    index = [every[i] for i in np.flatnonzero(keeps)]
    lp = draws.summed_lp()
    return max(
        (pair for pair, best in zip(index, is_best, strict=True) if best),
        key=lambda pair: lp[pair],
    )
