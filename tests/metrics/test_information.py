"""Mutual information of state sequences against its definition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from skihmm.metrics import mutual_information


def by_definition(one, two):
    """Nats, from joint frequencies."""
    n = len(one)
    joint = Counter(zip(one, two, strict=True))
    first, second = Counter(one), Counter(two)
    return sum(c / n * np.log(c * n / (first[a] * second[b])) for (a, b), c in joint.items())


@pytest.fixture(scope="module")
def states(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    one = rng.integers(5, size=200)
    return one, (one + (rng.random(200) < 0.3) * rng.integers(4, size=200)) % 7


def test_definition(states):
    nats = by_definition(*[s.tolist() for s in states])
    assert nats > 0.1
    assert mutual_information(*states, base=None) == pytest.approx(nats, rel=1e-12)
    assert mutual_information(*states) == pytest.approx(nats / np.log(2), rel=1e-12)
    assert mutual_information(*states, base=10) == pytest.approx(nats / np.log(10), rel=1e-12)


def test_result_is_a_float(states):
    for base in (2, None):
        assert type(mutual_information(*states, base=base)) is float


@pytest.mark.parametrize("n", [2, 4, 8])
def test_a_sequence_tells_all_of_itself(n):
    states = np.tile(np.arange(n), 10)
    assert mutual_information(states, states) == pytest.approx(np.log2(n), rel=1e-12)
    assert mutual_information(states, states, base=None) == pytest.approx(np.log(n))


def test_numbering_does_not_matter(states, global_random_seed):
    one, two = states
    rng = np.random.default_rng(global_random_seed)
    expected = mutual_information(one, two)
    assert mutual_information(two, one) == pytest.approx(expected, rel=1e-12)
    for _ in range(5):
        renamed = rng.permutation(100)[two]
        assert mutual_information(one, renamed) == pytest.approx(expected, rel=1e-12)
    names = np.array(list("abcdefg"))[two]
    assert mutual_information(one, names) == pytest.approx(expected, rel=1e-12)
    order = rng.permutation(len(one))
    assert mutual_information(one[order], two[order]) == pytest.approx(expected, rel=1e-12)
    assert mutual_information(one.tolist(), two.tolist()) == expected


def test_independent_sequences_share_nothing():
    one, two = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    information = mutual_information(one, two)
    assert 0 <= information < 1e-12
    assert mutual_information(np.zeros(9, dtype=int), np.arange(9)) == 0


def test_splitting_a_state_loses_nothing():
    one = np.tile([0, 1], 20)
    split = one + 2 * np.repeat([0, 1], 20)
    assert mutual_information(one, split) == pytest.approx(1, rel=1e-12)
    merged = np.zeros(40, dtype=int)
    assert mutual_information(one, merged) == 0


@pytest.mark.parametrize(
    ("base", "error", "message"),
    [
        (1, ValueError, "base=1; expected a number > 0 other than 1"),
        (0, ValueError, "base=0"),
        (-2, ValueError, "base=-2"),
        (np.inf, ValueError, "base=inf"),
        ("e", TypeError, "base='e'"),
        (True, TypeError, "base=True"),
    ],
)
def test_bad_base(states, base, error, message):
    with pytest.raises(error, match=message):
        mutual_information(*states, base=base)


@pytest.mark.parametrize(
    ("one", "two"), [([0, 1], [0, 1, 2]), ([[0, 1], [1, 0]], [0, 1]), ([0, 1], [[0, 1]])]
)
def test_bad_sequences(one, two):
    with pytest.raises(ValueError, match=r".+"):
        mutual_information(one, two)
