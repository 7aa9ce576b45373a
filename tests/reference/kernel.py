"""Exact transition matrices of block moves, with proposals given from outside.

A move of the restricted collapsed draw (Makino, Takei, Sato and Mochihashi 2011,
arXiv 1106.0474) takes the customers of the steps [start, stop) out, which leaves the
seating s_0; proposes labels for those steps; seats their customers; and accepts or goes
back.  Everything but the proposal is enumerated here, from the definitions and with the
naive seating: which tables the customers leave, which they choose, and the factors r.

States are all labellings with all seatings (`NaiveHMM.key`), so that a matrix whose
stationary law is the posterior proves the move, without any Monte Carlo error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from reference.enumeration import START, log_likelihood
from reference.seating import (
    Choose,
    NaiveFranchise,
    NaiveHMM,
    all_outcomes,
    row_name,
)

NEW = "new"
"""Column of all states that no table serves."""


def log_seating(model: NaiveHMM, emission) -> float:
    """Log of p(labels, multisets of table sizes, y), in closed form."""
    parts = [model.transitions]
    total = 0.0
    if isinstance(getattr(model.emissions, "columns", [None])[0], NaiveFranchise):
        parts += model.emissions.columns
    else:
        total = log_likelihood(model.x, model.y, emission)
    return total + sum(part.log_joint() + part.log_n_identities() for part in parts)


def outside_names(labels, start: int, stop: int) -> dict:
    """Labels outside of a block, numbered by first appearance."""
    names: dict = {START: -1}
    for t, label in enumerate(labels):
        if not start <= t < stop:
            names.setdefault(label, len(names) - 1)
    return names


def named_path(path, names: dict) -> tuple[int, ...]:
    """A path with the numbers of `names`, new labels by first appearance after those."""
    names = dict(names)
    return tuple(names.setdefault(label, len(names) - 1) for label in path)


def base_key(labels, start: int, stop: int, transitions: dict, columns=()) -> tuple:
    """What s_0 is, independent of the names of labels.

    Parameters
    ----------
    labels : sequence
        All steps; those of the block are ignored.
    transitions : dict
        ``{(restaurant, dish): table sizes}`` without the block.
    columns : iterable of dict
        ``{(state, symbol): table sizes}`` of emissions with tables.
    """
    names = outside_names(labels, start, stop)
    outside = tuple(
        names[label] for t, label in enumerate(labels) if not start <= t < stop
    )
    seated = tuple(
        sorted(
            (row_name(j, names), names[k], *sorted(n))
            for (j, k), n in transitions.items()
            if n
        )
    )
    symbols = tuple(
        tuple(sorted((names[k], w, *sorted(n)) for (k, w), n in column.items() if n))
        for column in columns
    )
    return outside, seated, symbols


def key_of_base(model: NaiveHMM, start: int, stop: int) -> tuple:
    """`base_key` of a model without the customers of a block."""
    columns = model.emissions.columns
    hierarchical = isinstance(columns[0], NaiveFranchise)
    return base_key(
        model.x,
        start,
        stop,
        model.transitions.tables,
        [column.tables for column in columns] if hierarchical else (),
    )


@dataclass
class Base:
    """One s_0, and all that can be seated on it."""

    model: NaiveHMM
    start: int
    stop: int
    paths: list = field(default_factory=list)
    """Canonical labels of the block (`named_path`)."""
    # One entry per path and choice of tables: the path's number, the state that results,
    # the probability of the tables, and the factors of r.
    path: np.ndarray = field(init=False)
    state: np.ndarray = field(init=False)
    probability: np.ndarray = field(init=False)
    r: dict = field(init=False)

    def labels_of(self, path) -> list:
        """The model's labels for a canonical path."""
        names = outside_names(self.model.x, self.start, self.stop)
        own = {number: label for label, number in names.items()}
        fresh = max(self.model.x) + 1
        return [own.setdefault(k, fresh + k) for k in path]

    def factors(self, path) -> tuple[list[float], list[float]]:
        """Transition and emission probabilities along a path, all at s_0, by columns.

        A state that no table serves is the column NEW, whatever its row holds.
        """
        model, franchise = self.model, self.model.transitions

        def column(label):
            return label if franchise.is_represented(label) else NEW

        j = model.predecessor(self.start)
        transitions, emissions = [], []
        for t, label in zip(
            range(self.start, self.stop), self.labels_of(path), strict=True
        ):
            k = column(label)
            transitions.append(franchise.get_prob(model.row_of(t, j), k))
            emissions.append(model.emissions.get_prob(k, model.y[t]))
            j = k
        after = model.successor(self.stop - 1)
        if after is not None:
            row = model.row_of(self.stop, j)
            transitions.append(franchise.get_prob(row, column(after)))
        return transitions, emissions

    def is_ghost(self, label) -> bool:
        """Whether a label is that of the successor, and no table serves it."""
        after = self.model.successor(self.stop - 1)
        return (
            label == after
            and after is not None
            and not self.model.transitions.is_represented(after)
        )

    def name_factor(self, path, concentration: float, *, ghost: bool = True) -> float:
        """Probability of the names of a path's unserved states.

        They come from a Chinese restaurant process that begins with a customer at the
        successor's label, if that is served nowhere (or, with ``ghost=False``, empty).
        """
        after = self.model.successor(self.stop - 1)
        customers = {after: 1} if ghost and self.is_ghost(after) else {}
        p = 1.0
        for label in self.labels_of(path):
            if self.model.transitions.is_represented(label):
                continue
            total = sum(customers.values()) + concentration
            p *= customers.get(label, concentration) / total
            customers[label] = customers.get(label, 0) + 1
        return p


class _Factors:
    """Products of predictive probabilities: correct, and with two errors."""

    def __init__(self):
        self.value = {"correct": 1.0, "printed": 1.0, "first": 1.0}

    def multiply(self, model: NaiveHMM, first: NaiveHMM, row, dish) -> None:
        franchise = model.transitions
        self.value["correct"] *= franchise.get_prob(row, dish)
        self.value["first"] *= first.transitions.get_prob(row, dish)
        franchise.printed_denominator = True
        self.value["printed"] *= franchise.get_prob(row, dish)
        franchise.printed_denominator = False

    def multiply_value(self, model: NaiveHMM, first: NaiveHMM, k, row) -> None:
        p = model.emissions.get_prob(k, row)
        self.value["correct"] *= p
        self.value["printed"] *= p
        self.value["first"] *= first.emissions.get_prob(k, row)


@dataclass(frozen=True)
class Removal:
    """One way in which a state can lose the customers of a block."""

    state: int
    base: int
    path: int
    probability: float
    r: dict


class BlockMoves:
    """The move on one block, from every state of a small model.

    Parameters
    ----------
    seatings : dict
        Result of `all_seatings`.
    emission
        The emission of the model.
    start, stop : int
        The block.
    """

    def __init__(self, seatings: dict, emission, start: int, stop: int):
        self.start, self.stop = start, stop
        self.models = [model for model, _ in seatings.values()]
        self.number = {key: i for i, key in enumerate(seatings)}
        logs = np.array([log_seating(model, emission) for model in self.models])
        weights = np.exp(logs - logs.max())
        self.target = weights / weights.sum()
        self.bases: list[Base] = []
        self.base_number: dict = {}
        found = [self._removals(model) for model in self.models]
        for base in self.bases:
            self._seat_all(base)
        self.removals = [
            Removal(i, b, self.bases[b].paths.index(path), p, r)
            for i, ways in enumerate(found)
            for b, path, p, r in ways
        ]

    def _removals(self, model: NaiveHMM) -> list:
        def remove(choose: Choose):
            copy, steps = model.copy(), []
            follower = copy.successor(self.stop - 1)
            if follower is not None:
                row = copy.row_of(self.stop, copy.x[self.stop - 1])
                copy.transitions.remove_customer(row, follower, choose)
                steps.append((copy.copy(), row, follower, None))
            for t in range(self.stop - 1, self.start - 1, -1):
                copy.emissions.remove_customer(copy.x[t], copy.y[t], choose)
                steps.append((copy.copy(), copy.x[t], None, copy.y[t]))
                row = copy.row_of(t, copy.predecessor(t))
                copy.transitions.remove_customer(row, copy.x[t], choose)
                steps.append((copy.copy(), row, copy.x[t], None))
            r = _Factors()
            for now, row, dish, value in steps:
                if value is None:
                    r.multiply(now, copy, row, dish)
                else:
                    r.multiply_value(now, copy, row, value)
            return copy, r.value

        result = []
        for probability, (copy, r) in all_outcomes(remove):
            key = key_of_base(copy, self.start, self.stop)
            if key not in self.base_number:
                self.base_number[key] = len(self.bases)
                self.bases.append(Base(copy, self.start, self.stop))
            names = outside_names(copy.x, self.start, self.stop)
            path = named_path(copy.x[self.start : self.stop], names)
            result.append((self.base_number[key], path, probability, r))
        return result

    def _seat_all(self, base: Base) -> None:
        n_outside = len(outside_names(base.model.x, self.start, self.stop)) - 1
        base.paths = list(_paths(n_outside, self.stop - self.start))
        rows = []
        for i, path in enumerate(base.paths):
            labels = base.labels_of(path)

            def add(choose: Choose, labels=labels):
                copy, r = base.model.copy(), _Factors()
                copy.x[self.start : self.stop] = labels
                for t in range(self.start, self.stop):
                    j, k = copy.row_of(t, copy.predecessor(t)), copy.x[t]
                    r.multiply(copy, base.model, j, k)
                    copy.transitions.add_customer(j, k, choose)
                    r.multiply_value(copy, base.model, k, copy.y[t])
                    copy.emissions.add_customer(k, copy.y[t], choose)
                follower = copy.successor(self.stop - 1)
                if follower is not None:
                    row = copy.row_of(self.stop, copy.x[self.stop - 1])
                    r.multiply(copy, base.model, row, follower)
                    copy.transitions.add_customer(row, follower, choose)
                return self.number[copy.key], r.value

            rows += [(i, p, *outcome) for p, outcome in all_outcomes(add)]
        base.path = np.array([row[0] for row in rows])
        base.probability = np.array([row[1] for row in rows])
        base.state = np.array([row[2] for row in rows])
        base.r = {name: np.array([row[3][name] for row in rows]) for name in rows[0][3]}

    def kernel(
        self,
        log_q,
        *,
        log_law=None,
        r: str = "correct",
        uses_q: bool = True,
        reseats: bool = False,
        accepts_always: bool = False,
    ) -> np.ndarray:
        """The transition matrix.

        Parameters
        ----------
        log_q : callable
            ``log_q(removal)`` gives what the proposal says are the log probabilities of
            all paths of that s_0, for the ratio; any constant may be left out.
        log_law : callable, optional
            The same of the probabilities with which paths really are proposed, without
            constants left out; by default `log_q`.
        r : {"correct", "printed", "first"}
            The factors: correct; with m_k + gamma; all taken at s_0.
        uses_q, reseats, accepts_always
            Planted errors: leave q out of the ratio; seat the old customers anew on
            rejection; take the proposal for exact.
        """
        matrix = np.zeros((len(self.models), len(self.models)))
        for removal in self.removals:
            base = self.bases[removal.base]
            q = log_q(removal)
            law = np.exp(q if log_law is None else log_law(removal))
            ratio = base.r[r] / removal.r[r]
            if uses_q:
                with np.errstate(over="ignore"):
                    ratio = ratio * np.exp(q[removal.path] - q[base.path])
            accept = np.minimum(1.0, ratio)
            if accepts_always:
                accept = np.ones_like(ratio)
            proposed = removal.probability * law[base.path] * base.probability
            np.add.at(matrix[removal.state], base.state, proposed * accept)
            rejected = float(np.sum(proposed * (1.0 - accept)))
            if reseats:
                same = base.path == removal.path
                np.add.at(
                    matrix[removal.state],
                    base.state[same],
                    rejected * base.probability[same],
                )
            else:
                matrix[removal.state, removal.state] += rejected
        return matrix


def _paths(n_outside: int, length: int) -> Iterator[tuple[int, ...]]:
    """All labels of a block up to the names of fresh ones."""
    if length == 0:
        yield ()
        return
    for head in _paths(n_outside, length - 1):
        for label in range(max((n_outside - 1, *head)) + 2):
            yield (*head, label)


def stationarity_errors(matrix: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Largest errors of the rows' sums and of the target's probabilities."""
    rows = float(np.max(np.abs(matrix.sum(axis=1) - 1.0)))
    return rows, float(np.max(np.abs(target @ matrix - target)))


def irreversibility(matrix: np.ndarray, target: np.ndarray) -> float:
    """Largest difference between the flows from one state to another and back."""
    flow = target[:, None] * matrix
    return float(np.max(np.abs(flow - flow.T)))


def total_of(log_weights: np.ndarray) -> float:
    """Sum of weights given by their logarithms."""
    return math.fsum(np.exp(log_weights))
