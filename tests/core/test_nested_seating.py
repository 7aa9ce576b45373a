"""A third level: a seating as the base of another, against enumeration."""

from __future__ import annotations

import math
from functools import partial

import native
import pytest

PARENTS = [0, 0, 1]
ALPHA, PARENT_ALPHA, GAMMA = 1.3, 0.6, 0.9
N_DISHES = 5


class Level:
    """One level from the definition: the sizes of all tables of (row, dish), in order."""

    def __init__(self, alpha, base, parents):
        self.alpha, self.base, self.parents = alpha, base, parents
        self.tables: dict[tuple[int, int], list[int]] = {}

    def copy(self):
        other = Level(self.alpha, self.base, self.parents)
        other.tables = {pair: list(sizes) for pair, sizes in self.tables.items()}
        return other

    def count(self, row, dish):
        return sum(self.tables.get((row, dish), []))

    def prob(self, row, dish):
        n = sum(sum(sizes) for (j, _), sizes in self.tables.items() if j == row)
        new_table = self.alpha * self.base.prob(self.parents[row], dish)
        return (self.count(row, dish) + new_table) / (n + self.alpha)

    def ways_to_add(self, row, dish):
        """Yield probability, random numbers and outcome of each way to seat one."""
        n, sizes = self.count(row, dish), self.tables.get((row, dish), [])
        new_table = self.alpha * self.base.prob(self.parents[row], dish)
        total = n + new_table
        for table, size in enumerate(sizes):
            after = self.copy()
            after.tables[row, dish][table] += 1
            # The middle of the interval.
            u = (sum(sizes[:table]) + size / 2) / total
            yield size / total, [u], after
        numbers = [(n + new_table / 2) / total] if n else []
        for p, more, base in self.base.ways_to_add(self.parents[row], dish):
            after = self.copy()
            after.base = base
            after.tables.setdefault((row, dish), []).append(1)
            yield p * (new_table / total if n else 1.0), numbers + more, after

    def ways_to_remove(self, row, dish):
        n, sizes = self.count(row, dish), self.tables[row, dish]
        for table, size in enumerate(sizes):
            after = self.copy()
            left = after.tables[row, dish]
            left[table] -= 1
            numbers = [(sum(sizes[:table]) + size / 2) / n] if len(sizes) > 1 else []
            if left[table]:
                yield size / n, numbers, after
                continue
            # The last table takes its place.
            left[table] = left[-1]
            left.pop()
            for p, more, base in self.base.ways_to_remove(self.parents[row], dish):
                after = after.copy()
                after.base = base
                yield p * size / n, numbers + more, after

    def record(self):
        return [
            [j, k, sum(sizes), len(sizes), *sorted(sizes, reverse=True)]
            for (j, k), sizes in sorted(self.tables.items())
            if sizes
        ]


class Root:
    def __init__(self, gamma):
        self.gamma, self.tables = gamma, [0] * N_DISHES

    def prob(self, _, dish):
        return (self.tables[dish] or self.gamma) / (sum(self.tables) + self.gamma)

    def changed(self, dish, by):
        after = Root(self.gamma)
        after.tables = list(self.tables)
        after.tables[dish] += by
        return [(1.0, [], after)]

    def ways_to_add(self, _, dish):
        return self.changed(dish, 1)

    def ways_to_remove(self, _, dish):
        return self.changed(dish, -1)


def record_of(arrays):
    sizes = iter(arrays["sizes"])
    names = ("rows", "dishes", "n_customers", "n_tables")
    cells = zip(*(arrays[name] for name in names), strict=True)
    return [[*cell, *(next(sizes) for _ in range(cell[3]))] for cell in cells]


def make_probe():
    return native.nested.NestedProbe(PARENTS, N_DISHES, ALPHA, PARENT_ALPHA, GAMMA)


def empty():
    return Level(ALPHA, Level(PARENT_ALPHA, Root(GAMMA), [0, 0]), PARENTS)


def agree(probe, model):
    own, above = (record_of(arrays) for arrays in probe.records())
    assert own == model.record()
    assert above == model.base.record()
    for row in range(len(PARENTS)):
        expected = [model.prob(row, k) for k in range(N_DISHES)]
        # One by one, and at once.
        for found in probe.probs(row, N_DISHES):
            assert all(map(partial(math.isclose, rel_tol=1e-14), found, expected))


def contents(probe, row):
    """What a rollback must bring back."""
    records = [
        {name: values.tolist() for name, values in arrays.items()}
        for arrays in probe.records()
    ]
    return records, probe.log_joint(), probe.probs(row, N_DISHES)


def seatings(rows):
    """Every seating of customers of these restaurants, dishes numbered as they appear.

    Returns the dishes, the random numbers of every customer, log p(dishes, seating) and
    the outcome of each.
    """
    paths = [([], [], 0.0, empty())]
    for row in rows:
        longer = []
        for dishes, numbers, lp, model in paths:
            for dish in range(max(dishes, default=-1) + 2):
                p = model.prob(row, dish)
                for choice, own, after in model.ways_to_add(row, dish):
                    longer.append(
                        (
                            [*dishes, dish],
                            [*numbers, own],
                            lp + math.log(p) + math.log(choice),
                            after,
                        )
                    )
        paths = longer
    return paths


def replay(probe, rows, dishes, numbers):
    probe.clear()
    for row, dish, own in zip(rows, dishes, numbers, strict=True):
        before = probe.probs(row, N_DISHES)[0][dish]
        assert probe.change(row, dish, True, own) == before
    probe.commit()


ROWS = [0, 2, 0, 1, 0]


def test_add_and_joint():
    """Each choice has its weight, on every level, and the joint law is their product."""
    probe, total = make_probe(), 0.0
    paths = seatings(ROWS)
    for dishes, numbers, lp, model in paths:
        replay(probe, ROWS, dishes, numbers)
        agree(probe, model)
        assert probe.check() is None
        assert probe.log_joint() == pytest.approx(lp, abs=1e-13)
        total += math.exp(lp)
    assert len(paths) > 100
    assert total == pytest.approx(1.0, abs=1e-12)


def test_add_thresholds():
    """A uniform just beside a threshold falls on its own side of it."""
    probe = make_probe()
    for dishes, numbers, _, model in seatings(ROWS):
        n = model.count(0, dishes[0])
        open_from = n / (n + ALPHA * model.base.prob(0, dishes[0]))
        for u, opens in ((open_from * (1 - 1e-12), 0), (open_from * (1 + 1e-12), 1)):
            replay(probe, ROWS, dishes, numbers)
            # The parent's restaurant serves the dish: it needs a number too.
            probe.change(0, dishes[0], True, [u, 0.0][: 1 + opens])
            tables = sum(cell[3] for cell in record_of(probe.records()[0]))
            assert tables == opens + sum(map(len, model.tables.values()))
            probe.commit()


def test_remove_and_rollback():
    """Customers leave by table size on every level; undone, both are as they were."""
    probe, n_closed = make_probe(), 0
    for dishes, numbers, _, model in seatings(ROWS):
        for i, (row, dish) in enumerate(zip(ROWS, dishes, strict=True)):
            total = 0.0
            for p, own, after in model.ways_to_remove(row, dish):
                replay(probe, ROWS, dishes, numbers)
                before = contents(probe, row)
                returned = probe.change(row, dish, False, own)
                assert returned == pytest.approx(after.prob(row, dish), rel=1e-14)
                agree(probe, after)
                n_closed += after.base.tables != model.base.tables
                # Another customer comes and opens what it can, before all is undone.
                *_, (_, more, other) = after.ways_to_add(ROWS[i - 1], dish)
                probe.change(ROWS[i - 1], dish, True, more)
                agree(probe, other)
                probe.rollback()
                assert contents(probe, row) == before
                assert probe.check() is None
                total += p
            assert total == pytest.approx(1.0, abs=1e-12)
    assert n_closed > 100
