"""The seating: exact undo, the laws of adding and removing, records, dense copies."""

from __future__ import annotations

import math

import native
import numpy as np
import pytest
from reference.seating import NaiveFranchise, random_choices
from small_models import packed, unpacked

from skihmm.core._random import RandomStream

KINDS = ("infinite", "uniform", "fixed")
OF_SYMBOLS = (
    "_restaurants.hpp",
    "#pragma once",
    "#pragma once\n#define PROBED SymbolBase",
)


def make_probe(kind, *args):
    """A probe of the seating of transitions, of HCRP or of Dirichlet emissions."""
    module = native.planted("native.parts", *[OF_SYMBOLS] * (kind != "infinite"))
    return module.RestaurantsProbe(*args, is_fixed=kind == "fixed")


def random_probe(kind, stream, rng, n_rows=4, n_dishes=5, n=60, dense_limit=0):
    probe = make_probe(kind, n_rows, n_dishes, *rng.uniform(0.2, 4, size=2), dense_limit)
    for _ in range(n):
        probe.add(int(rng.integers(n_rows)), int(rng.integers(n_dishes)), stream)
    probe.commit()
    return probe


def records_equal(first, second):
    return first.keys() == second.keys() and all(
        np.array_equal(first[key], second[key]) for key in first
    )


# -- undo -----------------------------------------------------------------------------


# Rows, dishes, alpha, gamma, operations per move, customers: few customers make cells
# come and go, many make tables; a large alpha makes many tables.
SHAPES = [
    (1, 1, 0.7, 1.3, 4, 12),
    (2, 2, 3.0, 0.5, 6, 8),
    (3, 4, 1.0, 1.0, 5, 40),
    (4, 3, 30.0, 2.0, 9, 60),
    (6, 6, 0.3, 5.0, 12, 25),
    (2, 9, 5.0, 5.0, 3, 90),
    (9, 2, 1.5, 0.8, 20, 200),
    (17, 17, 8.0, 8.0, 8, 60),
]


@pytest.mark.parametrize("dense_limit", [0, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_churn(kind, dense_limit):
    """After each of many random moves everything is as a copy or a recount says.

    A quarter of a million moves over all cases, half of them undone.
    """
    for case, (n_rows, n_dishes, *concentrations, operations, customers) in enumerate(SHAPES):
        stream = RandomStream(case)
        probe = make_probe(kind, n_rows, n_dishes, *concentrations, dense_limit)
        n_moves = 2000 if n_rows * n_dishes > 60 else 6000
        report = probe.churn(n_moves, stream, 0.5, operations, customers, 512)
        assert report["problems"] == []
        assert probe.check() is None
        assert report["rollbacks"] == pytest.approx(n_moves / 2, rel=0.1)
        assert probe.has_dense() == (dense_limit > 0)
        if kind != "fixed" and n_rows * n_dishes < 60:
            # Otherwise the case would not try what it is for.
            assert report["many_tables"] > n_moves / 6


@pytest.mark.slow
@pytest.mark.parametrize("rollback_rate", [0.1, 0.9])
@pytest.mark.parametrize("kind", KINDS)
def test_churn_for_long(kind, rollback_rate):
    rng = np.random.default_rng(1)
    for case in range(40):
        shape = rng.integers(1, 12, size=2)
        probe = make_probe(kind, *shape, *rng.exponential(5, size=2), 64 * (case % 2))
        report = probe.churn(
            100_000,
            RandomStream(100 + case),
            rollback_rate,
            int(rng.integers(1, 40)),
            int(rng.integers(1, 300)),
            97,
        )
        assert report["problems"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_rollback_brings_back_every_table(kind):
    rng, stream = np.random.default_rng(2), RandomStream(2)
    for _ in range(50):
        probe = random_probe(kind, stream, rng, dense_limit=16)
        before, log_joint = probe.record(), probe.log_joint()
        pairs = [
            (int(j), int(k))
            for j, k, n in zip(before["rows"], before["dishes"], before["n_customers"], strict=True)
            for _ in range(n)
        ]
        rng.shuffle(pairs)
        # Everything out, some new customers in.
        for j, k in pairs:
            probe.remove(j, k, stream)
        assert probe.n_tables == 0
        assert sum(probe.row_customers) == 0
        for _ in range(10):
            probe.add(int(rng.integers(4)), int(rng.integers(5)), stream)
        probe.rollback()
        assert probe.check() is None
        assert records_equal(probe.record(), before)
        assert probe.log_joint() == pytest.approx(log_joint, rel=1e-14)


@pytest.mark.parametrize("kind", ["infinite", "uniform"])
def test_rollback_of_more_tables_than_a_word_can_number(kind):
    stream, probe = RandomStream(3), make_probe(kind, 2, 2, 1e4, 1.0, 0)
    probe.add_many(1, 0, stream, 4000)
    probe.commit()
    before = probe.record()
    assert before["n_tables"][0] > 2000
    probe.remove_many(1, 0, stream, 1000)
    probe.add_many(1, 0, stream, 500)
    probe.add_many(0, 1, stream, 10)
    probe.remove_many(1, 0, stream, 1500)
    probe.rollback()
    assert probe.check() is None
    assert records_equal(probe.record(), before)


def test_an_open_move_is_reported():
    stream, probe = RandomStream(0), make_probe("infinite", 3, 3, 1.0, 1.0)
    probe.add(0, 1, stream)
    assert probe.check() == "a move was left open"
    probe.commit()
    assert probe.check() is None


def test_removing_a_missing_customer_raises():
    stream, probe = RandomStream(0), make_probe("infinite", 3, 3, 1.0, 1.0)
    with pytest.raises(RuntimeError, match="no such customer"):
        probe.remove(1, 2, stream)


# -- hints ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_hints_are_only_hints(kind):
    """Stale, foreign and absurd hints give what no hint gives, draw for draw."""
    rng = np.random.default_rng(3)
    plain_stream, hinted_stream = RandomStream(3), RandomStream(3)
    plain = make_probe(kind, 4, 4, 2.0, 1.0)
    hinted = make_probe(kind, 4, 4, 2.0, 1.0)
    known: dict = {}
    for _ in range(3000):
        j, k = (int(i) for i in rng.integers(4, size=2))
        hint = [known.get((j, k), -1), int(rng.integers(-5, 40)), 2**31 - 1][rng.integers(3)]
        if plain.count(j, k) > 0 and rng.random() < 0.5:
            expected, _ = plain.remove(j, k, plain_stream)
            found, known[j, k] = hinted.remove(j, k, hinted_stream, hint)
        else:
            expected, _ = plain.add(j, k, plain_stream)
            found, known[j, k] = hinted.add(j, k, hinted_stream, hint)
        assert found == expected
        assert hinted.count(j, k, hint) == hinted.count(j, k) == plain.count(j, k)
        hinted.prefetch(hint)
        if rng.random() < 0.3:
            end = ("commit", "rollback")[rng.integers(2)]
            getattr(plain, end)()
            getattr(hinted, end)()
    assert records_equal(plain.record(), hinted.record())


def test_hint_of_an_erased_cell_is_not_believed():
    stream, probe = RandomStream(4), make_probe("infinite", 3, 3, 1.0, 1.0)
    _, hint = probe.add(0, 0, stream)
    probe.commit()
    probe.remove(0, 0, stream, hint)
    probe.commit()
    assert probe.count(0, 0, hint) == 0
    _, reused = probe.add(1, 2, stream, hint)
    assert probe.count(0, 0, reused) == 0
    assert probe.count(1, 2, hint) == 1


# -- laws -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_probabilities_is_the_single_ones(kind):
    rng, stream = np.random.default_rng(7), RandomStream(7)
    for _ in range(20):
        probe = random_probe(kind, stream, rng, n=int(rng.integers(40)))
        for j in range(4):
            single = [probe.prob(j, k) for k in range(5)]
            np.testing.assert_array_equal(probe.probs(j), single)


@pytest.mark.parametrize("kind", ["infinite", "uniform"])
def test_log_joint_against_the_naive_franchise(kind):
    rng = np.random.default_rng(10)
    choose, stream = random_choices(rng), RandomStream(10)
    for _ in range(30):
        alpha, gamma = rng.uniform(0.1, 6, size=2)
        naive = NaiveFranchise(alpha, gamma, 4 if kind == "uniform" else None)
        probe = make_probe(kind, 3, 4, alpha, gamma)
        pairs = [(int(j), int(k)) for j, k in rng.integers(3, size=(50, 2))]
        for pair in pairs:
            naive.add_customer(*pair, choose)
        probe.load(packed(naive.tables))
        assert probe.check() is None
        assert probe.log_joint() == pytest.approx(naive.log_joint(), rel=1e-12)
        for j in range(3):
            for k in range(4):
                assert probe.prob(j, k) == pytest.approx(naive.get_prob(j, k), rel=1e-13)
        # And the other way round after customers have come and gone.
        for j, k in pairs[:25]:
            probe.remove(j, k, stream)
            probe.add(k, j, stream)
        probe.commit()
        record = probe.record()
        naive.tables = {}
        at = 0
        for j, k, m in zip(record["rows"], record["dishes"], record["n_tables"], strict=True):
            naive.tables[j, k] = record["sizes"][at : at + m].tolist()
            at += m
        assert probe.log_joint() == pytest.approx(naive.log_joint(), rel=1e-12)


def test_log_joint_of_a_fixed_base_is_dirichlet_multinomial():
    rng, stream = np.random.default_rng(11), RandomStream(11)
    probe = random_probe("fixed", stream, rng, n_rows=3, n_dishes=4)
    a = 2.0 / 4
    probe.set_concentrations(2.0, 1.0)
    expected = 0.0
    for row in probe.counts():
        expected += math.lgamma(2.0) - math.lgamma(2.0 + row.sum())
        expected += sum(math.lgamma(a + n) - math.lgamma(a) for n in row)
    assert probe.log_joint() == pytest.approx(expected, rel=1e-12)
    assert probe.n_tables == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [9_999.0, 10_000.0, 1e8, 1e12, 1e50])
def test_log_joint_at_large_concentrations(kind, value):
    """Sums of logarithms say what the difference of two lgamma has no digits left for."""

    def log_rising(a, n):
        return math.fsum(math.log(a + i) for i in range(n))

    probe = random_probe(kind, RandomStream(13), np.random.default_rng(13))
    probe.set_concentrations(value, value)
    counts = probe.counts()
    mass = value / counts.shape[1]
    expected = -sum(log_rising(value, int(row.sum())) for row in counts)
    if kind == "fixed":
        expected += sum(log_rising(mass, int(n)) for n in counts.ravel())
    else:
        record = probe.record()
        dishes = np.bincount(record["dishes"], record["n_tables"]).astype(int).tolist()
        expected += sum(math.log(value) + math.lgamma(n) for n in record["sizes"])
        expected -= log_rising(value, sum(dishes))
        if kind == "infinite":
            expected += sum(math.log(value) + math.lgamma(m) for m in dishes if m)
        else:
            expected += sum(log_rising(mass, m) for m in dishes)
    assert probe.log_joint() == pytest.approx(expected, rel=1e-9, abs=1e-8)


# -- records --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_records_round_trip(kind):
    rng, stream = np.random.default_rng(13), RandomStream(13)
    probe = random_probe(kind, stream, rng, dense_limit=16)
    record = probe.record()
    other = make_probe(kind, 4, 5, 1.0, 1.0, 16)
    other.add(0, 0, stream)  # a load replaces everything, an open move too
    other.load(record)
    assert other.check() is None
    assert records_equal(other.record(), record)
    if kind != "fixed":
        assert all(n == sorted(n, reverse=True) for n in unpacked(record).values())
    for key in ("row_customers", "dish_tables", "n_tables"):
        assert getattr(other, key) == getattr(probe, key)
    np.testing.assert_array_equal(other.dense()[0], probe.dense()[0])
    # From the same record both continue with the same draws.
    probe.load(record)
    probe.set_concentrations(1.0, 1.0)
    first, second = RandomStream(14), RandomStream(14)
    assert probe.churn(500, first)["problems"] == []
    assert other.churn(500, second)["problems"] == []
    assert records_equal(other.record(), probe.record())
    assert first.state == second.state


@pytest.mark.parametrize("size", [(4, 5), (9, 5), (7, 40), (60, 60)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_load_into_another_size_is_a_resize_and_a_load(kind, size):
    rng, stream = np.random.default_rng(13), RandomStream(13)
    record = random_probe(kind, stream, rng, dense_limit=16).record()
    n_dishes = size[1] if kind == "infinite" else 5
    probes = []
    for at_once in (True, False):
        # What is there lies partly outside of the new size.
        probe = random_probe(kind, RandomStream(1), rng, 30, 5, 400, 50)
        if at_once:
            probe.load(record, size[0], n_dishes)
        else:
            probe.clear()
            probe.resize(size[0], n_dishes)
            probe.load(record)
        assert probe.check() is None
        assert records_equal(probe.record(), record)
        assert probe.has_dense() == (max(size[0], n_dishes) <= 50)
        if probe.has_dense():
            np.testing.assert_array_equal(probe.dense()[0], probe.counts())
            np.testing.assert_array_equal(probe.dense()[1], probe.counts())
        probes.append((probe, RandomStream(2)))
    for probe, own_stream in probes:
        probe.set_concentrations(1.0, 1.0)
        assert probe.churn(500, own_stream)["problems"] == []
    assert records_equal(probes[0][0].record(), probes[1][0].record())
    assert probes[0][1].state == probes[1][1].state


@pytest.mark.parametrize("dense_limit", [0, 32])
def test_growing_keeps_the_customers(dense_limit):
    rng, stream = np.random.default_rng(16), RandomStream(16)
    probe = random_probe("infinite", stream, rng, dense_limit=dense_limit)
    record = probe.record()
    for n in (6, 20, 32, 33, 100):
        probe.resize(n, n)
        assert probe.check() is None
        assert records_equal(probe.record(), record)
        assert probe.has_dense() == (n <= dense_limit)
        if n <= dense_limit:
            np.testing.assert_array_equal(probe.dense()[0], probe.counts())
            np.testing.assert_array_equal(probe.dense()[1], probe.counts())
    assert probe.churn(2000, stream, 0.5, 10, 100)["problems"] == []


# -- dense copies ---------------------------------------------------------------------


def test_dense_counts_show_the_committed_seating():
    stream, probe = RandomStream(17), make_probe("infinite", 3, 3, 1.0, 1.0, 8)
    probe.add(0, 1, stream)
    assert probe.dense()[0].sum() == 0
    probe.commit()
    assert probe.dense()[0][0, 1] == probe.dense()[1][0, 1] == 1
    probe.remove(0, 1, stream)
    assert probe.dense()[0][0, 1] == 1
    probe.commit()
    assert probe.dense()[0].sum() == 0


@pytest.mark.parametrize("kind", ["infinite", "fixed"])
def test_counts_beyond_sixteen_bits_switch_dense_off(kind):
    stream, probe = RandomStream(18), make_probe(kind, 2, 2, 1.0, 1.0, 8)
    probe.add(1, 0, stream)
    probe.add_many(0, 1, stream, 65_534)
    probe.commit()
    assert probe.has_dense()
    assert probe.dense()[0][0, 1] == 65_534
    for more, dense in ((1, False), (7, False), (-7, False), (-1, True)):
        if more > 0:
            probe.add_many(0, 1, stream, more)
        else:
            probe.remove_many(0, 1, stream, -more)
        probe.commit()
        assert probe.check() is None
        assert probe.has_dense() is dense
    # A rolled back excursion leaves no trace; a load and a new limit count anew.
    probe.add_many(0, 1, stream, 10)
    probe.rollback()
    assert probe.has_dense()
    probe.add_many(0, 1, stream, 10)
    probe.commit()
    record = probe.record()
    probe.load(record)
    assert not probe.has_dense()
    assert probe.count(0, 1) == 65_544
    probe.set_dense_limit(0)
    probe.set_dense_limit(8)
    assert not probe.has_dense()
    probe.clear()
    assert probe.has_dense()
    assert probe.check() is None


def test_memory_is_accounted_for_and_does_not_leak():
    rng, stream = np.random.default_rng(19), RandomStream(19)
    sizes = []
    for limit in (0, 64):
        probe = random_probe("infinite", stream, rng, 20, 20, 400, limit)
        sizes.append(probe.n_bytes())
        assert 400 * 8 < sizes[-1] < 200_000
        probe.churn(20_000, stream, 0.5, 10, 400)
        settled = probe.n_bytes()
        probe.churn(20_000, stream, 0.5, 10, 400)
        assert probe.n_bytes() <= 1.3 * settled
    assert sizes[1] - sizes[0] > 2 * 2 * 20 * 20
