"""Trees of the sets of states that are tried as regimes, by greedy merges.

A tree is an array of shape (n_merges, 2), as ``children_`` of scikit-learn's
agglomerative clustering: nodes below n_leaves are leaves, node n_leaves + i is the result
of merge i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from skihmm._typing import Floats, Integers
from skihmm.posterior._regime_chain import Counts, log_dirichlet

# Up to so many sets all gains are computed after every merge, and all levels are tried.
MOST_EXACT = 60
# Gains of more sets are updated, until the number of sets has fallen by this factor.
STEP = 0.8


def cut(tree: Integers, n_leaves: int, n_merges: int) -> NDArray[np.intp]:
    """Sets of the leaves after the first merges of a tree."""
    first = np.arange(n_leaves + n_merges)  # leaf of every node
    at = np.arange(n_leaves)
    for i, (one, other) in enumerate(tree[:n_merges]):
        first[n_leaves + i] = min(first[one], first[other])
        at[at == max(first[one], first[other])] = first[n_leaves + i]
    return np.unique(at, return_inverse=True)[1]


class _MoveGains:
    """Gains in the evidence of transition counts, if two sets become one.

    `outer` has the contributions of cells outside of the pair, above the diagonal.
    """

    def __init__(self, moves: Floats, n_cells_less: int) -> None:
        self.moves = moves.copy()
        # Cells of a row after a merge: sets less this number.
        self._less = n_cells_less
        self._renew()

    def _renew(self) -> None:
        n = self._n_last = len(self.moves)
        self.pseudo_count = 1.0 / max(n - self._less, 1)
        self.cells = self.log_weights(self.moves)
        self.outer = np.zeros((n, n))
        for i in range(n - 1):
            others = np.arange(i + 1, n)
            self.outer[i, others] = self._outer_of(i, others)

    def log_weights(self, counts: Floats) -> Floats:
        """Log weight of a cell under its Dirichlet prior, without factors that a row shares."""
        a = self.pseudo_count
        return np.asarray(gammaln(counts + a) - gammaln(a))

    def _outer_of(self, i: int, others: Integers) -> Floats:
        gains = np.zeros(len(others))
        for m, c in ((self.moves, self.cells), (self.moves.T, self.cells.T)):
            # Cells that are empty in one of the two add nothing.
            seen = np.flatnonzero(m[i])
            x = self.log_weights(m[i, seen] + m[np.ix_(others, seen)])
            x -= c[i, seen] + c[np.ix_(others, seen)]
            x[(seen == i) | (seen == others[:, None])] = 0.0
            gains += x.sum(axis=1)
        return gains

    def _of_column(self, counts: Floats) -> Floats:
        one = self.log_weights(counts)
        pairs = self.log_weights(counts[:, None] + counts)
        return pairs - one[:, None] - one

    def merge(self, i: int, j: int) -> None:
        """Make one of sets i < j, at place i."""
        moves, n = self.moves, len(self.moves)
        is_updated = n - 1 > max(MOST_EXACT, STEP * self._n_last)
        if is_updated:
            for m in (moves, moves.T):
                self.outer += self._of_column(m[:, i] + m[:, j])
                self.outer -= self._of_column(m[:, i]) + self._of_column(m[:, j])
        moves[i] += moves[j]
        moves[:, i] += moves[:, j]
        self.moves = np.delete(np.delete(moves, j, axis=0), j, axis=1)
        if not is_updated:
            return self._renew()
        self.cells = self.log_weights(self.moves)
        self.outer = np.delete(np.delete(self.outer, j, axis=0), j, axis=1)
        others = np.delete(np.arange(n - 1), i)
        above = np.minimum(i, others), np.maximum(i, others)
        self.outer[above] = self._outer_of(i, others)


def _whole_gains(found: _MoveGains) -> Floats:
    """Gains of all pairs in the evidence of rows with a cell for every set."""
    moves, cells = found.moves, found.cells
    own, rows = moves.diagonal(), moves.sum(axis=1)
    inside = found.log_weights(own[:, None] + own + moves + moves.T)
    inside -= cells.diagonal()[:, None] + cells.diagonal() + cells + cells.T
    # The pseudo-counts of a row add up to one.
    norms = gammaln(1.0 + rows)
    norms = norms[:, None] + norms - gammaln(1.0 + rows[:, None] + rows)
    return np.asarray(found.outer + inside + norms)


def _share_gains(steps: Floats, groups: Integers) -> Floats:
    """Gains of all pairs in the evidence of the shares of states in their sets."""
    sizes, totals = np.bincount(groups), np.bincount(groups, steps)

    def weights(size: int) -> Floats:
        shares = gammaln(steps + 1 / size) - gammaln(1 / size)
        return np.asarray(np.bincount(groups, shares), dtype=np.float64)

    by_size = {int(size): weights(size) for size in np.unique(sizes)}
    own = np.array([by_size[size][r] for r, size in enumerate(sizes.tolist())])
    own -= gammaln(1.0 + totals)
    sums, gains = sizes[:, None] + sizes, np.empty((len(sizes), len(sizes)))
    for size in np.unique(sums):
        both = weights(size)
        is_so = sums == size
        gains[is_so] = (both[:, None] + both)[is_so]
    return gains - gammaln(1.0 + totals[:, None] + totals) - own[:, None] - own


def merge_tree(counts: Counts, n_known: int = 0) -> NDArray[np.intp]:
    """Merge pairs of sets by the evidence of expected counts, one by one.

    The first `n_known` states are not merged with one another.
    """
    n = len(counts.moves)
    gains, groups = _MoveGains(counts.moves, 1), np.arange(n)
    nodes, is_known, tree = np.arange(n), np.arange(n) < n_known, []
    while len(nodes) > max(n_known, 1):
        total = _whole_gains(gains) + _share_gains(counts.steps, groups)
        total[np.tril_indices(len(nodes))] = -np.inf
        total[np.ix_(is_known, is_known)] = -np.inf
        i, j = divmod(int(total.argmax()), len(nodes))
        tree.append((nodes[i], nodes[j]))
        nodes[i] = n + len(tree) - 1
        is_known[i] |= is_known[j]
        nodes, is_known = np.delete(nodes, j), np.delete(is_known, j)
        groups = np.where(groups == j, i, groups - (groups > j))
        gains.merge(i, j)
    return np.array(tree, dtype=np.intp).reshape(-1, 2)


# ---- the second level: sets that are left seldom


def _nested_own(counts: Counts, members: Integers) -> Floats:
    """Log evidence of sets of one size: staying and leaving, entries, moves inside.

    `members` has shape (n_sets, size).
    """
    moves, a = counts.moves, 1.0 / members.shape[1]
    inside = moves[members[:, :, None], members[:, None, :]]
    stays, rows = inside.sum(axis=(1, 2)), moves.sum(axis=1)[members].sum(axis=1)
    entries = (counts.first + moves.sum(axis=0))[members] - inside.sum(axis=1)
    value = log_dirichlet(np.column_stack([stays, rows - stays]), 0.5)
    return np.asarray(value + log_dirichlet(inside, a).sum(axis=1) + log_dirichlet(entries, a))


def _destinations(out: Floats) -> float:
    """Log evidence of where sets lead that are left; `out` has no stays."""
    n = len(out)
    if n < 3:
        return 0.0
    others = out[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    return float(log_dirichlet(others, 1.0 / (n - 1)).sum())


def _destination_gains(out: Floats) -> Floats:
    """Log evidence of every pair that becomes one set, up to a common constant."""
    n = len(out)
    if n < 4:
        return np.zeros((n, n))
    found, rows = _MoveGains(out, 2), out.sum(axis=1)
    norms = gammaln(1.0 + rows)
    both = rows[:, None] + rows - out - out.T
    lost = found.cells + found.cells.T
    return found.outer - lost - gammaln(1.0 + both) + norms[:, None] + norms


def nested_tree(counts: Counts) -> tuple[NDArray[np.intp], Floats]:
    """Sets inside of which the chain goes on as it was, and which it leaves seldom.

    Leaving a set forgets the state in it, and so does entering.  Returns the tree, and
    the log evidence of the counts with 1, 2, ... sets.
    """
    n = len(counts.moves)
    members, nodes = [np.array([k]) for k in range(n)], np.arange(n)
    tree: list[tuple[int, int]] = []
    scores: list[float] = []
    own, joined = _nested_own(counts, np.arange(n)[:, None]), np.full((n, n), -np.inf)
    above = np.triu_indices(n, 1)
    joined[above] = _nested_own(counts, np.column_stack(above))
    while True:
        groups = np.empty(n, dtype=np.intp)
        for r, k in enumerate(members):
            groups[k] = r
        out = counts.lumped(groups).moves
        np.fill_diagonal(out, 0.0)
        scores.append(float(own.sum()) + _destinations(out))
        if len(nodes) == 1:
            return np.array(tree, dtype=np.intp).reshape(-1, 2), np.array(scores[::-1])
        total = joined + _destination_gains(out) - own[:, None] - own
        i, j = divmod(int(total.argmax()), len(nodes))
        tree.append((nodes[i], nodes[j]))
        nodes[i], own[i] = n + len(tree) - 1, joined[i, j]
        members[i] = np.append(members[i], members.pop(j))
        nodes, own = np.delete(nodes, j), np.delete(own, j)
        joined = np.delete(np.delete(joined, j, axis=0), j, axis=1)
        sizes = np.array([len(each) for each in members])
        for size in np.unique(np.delete(sizes, i)):
            others = np.flatnonzero((sizes == size) & (np.arange(len(nodes)) != i))
            sets = np.array([np.append(members[i], members[other]) for other in others])
            joined[np.minimum(i, others), np.maximum(i, others)] = _nested_own(counts, sets)
