"""The state of a chain: labels, packing, records, growth."""

from __future__ import annotations

import copy
import pickle

import native
import numpy as np
import pytest
from reference.enumeration import DirichletEmission, HCRPEmission
from small_models import counts_of, make_stats

from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers._kernels import BlockedProposal, StepwiseProposal

EMISSIONS = {
    "hcrp": HCRPEmission(5, 2.0, 1.5),
    "dirichlet": DirichletEmission(5, 0.4),
}
KERNELS = {
    "dense": lambda: RCDKernel(StepwiseProposal()),
    "sparse": lambda: RCDKernel(StepwiseProposal(0)),
    "blocks": lambda: RCDKernel(BlockedProposal(), 4),
}


def make_state(
    emission="hcrp", n=60, n_columns=1, starts=(0, 20, 21), seed=0, alpha=3.0, gamma=4.0
):
    rng = np.random.default_rng(seed)
    codes = rng.integers(5, size=(n, n_columns))
    codes[rng.random(codes.shape) < 0.15] = -1
    return ChainState(
        np.array([*starts]),
        Franchise(alpha, gamma),
        make_stats(codes, EMISSIONS[emission]),
        RandomStream(seed),
    ), codes


def slots(state):
    """The slot of every step."""
    return native.moves.peek(state)["slots"]


def n_slots(state):
    """Slots that there is storage for."""
    return len(native.moves.peek(state)["tables"])


def flat(arrays, prefix=""):
    """Leaves of nested dictionaries and lists."""
    if isinstance(arrays, dict):
        arrays = arrays.items()
    elif isinstance(arrays, list):
        arrays = enumerate(arrays)
    else:
        return {prefix: arrays}
    out = {}
    for key, value in arrays:
        out |= flat(value, f"{prefix}/{key}")
    return out


def assert_same(first, second):
    first, second = flat(first), flat(second)
    assert first.keys() == second.keys()
    for key in first:
        np.testing.assert_array_equal(first[key], second[key], err_msg=key)


# -- starting -------------------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("emission", EMISSIONS)
def test_start_from_counts_draws_and_symbols(emission, n_columns):
    rng = np.random.default_rng(1)
    for n_labels in (1, 4, 60):
        state, codes = make_state(emission, n_columns=n_columns)
        labels = np.unique(rng.integers(n_labels, size=60), return_inverse=True)[1]
        state.start_from(labels)
        assert state.check() is None
        assert state.n_states == labels.max() + 1
        np.testing.assert_array_equal(state.packed_labels, labels)
        counts = counts_of(state.to_arrays())
        expected: dict = {}
        for t, k in enumerate(labels.tolist()):
            j = "*" if t in (0, 20, 21) else int(labels[t - 1])
            expected[j, k] = expected.get((j, k), 0) + 1
        assert counts.n == expected
        for c in range(n_columns):
            pairs = [(k, w) for k, w in zip(labels, codes[:, c], strict=True) if w >= 0]
            assert counts.c[c] == {pair: pairs.count(pair) for pair in pairs}


def test_slots_are_the_labels_of_moves():
    state, _ = make_state(next(iter(EMISSIONS)))
    state.start_from(np.arange(60) % 7)
    next(iter(KERNELS.values()))().sweep(state)
    slots = state.slots
    assert slots.min() >= 2
    for t in range(state.n_steps):
        with state.move(t, t + 1) as move:
            assert move.old[0] == slots[t]
    ranks = np.unique(slots, return_inverse=True)[1]
    np.testing.assert_array_equal(state.packed_labels, ranks)


@pytest.mark.parametrize("emission", EMISSIONS)
def test_start_from_again_replaces_everything(emission):
    state, _ = make_state(emission)
    state.start_from(np.arange(60) % 7)
    state.start_from(np.arange(60) % 3)
    assert state.check() is None


# -- packing --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_canonicalise_keeps_everything(emission, kernel):
    state, _ = make_state(emission)
    state.start_from(np.arange(60) % 13)
    sweeps = KERNELS[kernel]()
    for _ in range(30):
        sweeps.sweep(state)
        assert state.check() is None
        labels, log_joint = state.packed_labels, state.log_joint()
        before = state.to_arrays()
        packed = state.canonicalise()
        assert state.check() is None
        assert state.log_joint() == pytest.approx(log_joint, rel=1e-12)
        np.testing.assert_array_equal(state.packed_labels, labels)
        assert_same(packed, before)
        assert_same(state.to_arrays(), before)
        # Packed: slots 2, 3, ... without gaps.
        assert set(slots(state)) == set(range(2, 2 + state.n_states))
        assert before["n_states"] == state.n_states
        np.testing.assert_array_equal(before["states"], labels)


def test_arrays_have_the_start_restaurant_last():
    state, _ = make_state()
    state.start_from(np.arange(60) % 3)
    transitions = state.to_arrays()["transitions"]
    rows = transitions["rows"]
    assert (np.diff(rows) >= 0).all()
    assert transitions["n_customers"][rows == 3].sum() == 3
    pairs = list(zip(rows, transitions["dishes"], strict=True))
    assert pairs == sorted(pairs)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("emission", EMISSIONS)
def test_a_resumed_chain_continues_bit_for_bit(emission, n_columns, kernel):
    state, codes = make_state(emission, n_columns=n_columns)
    state.start_from(np.arange(60) % 9)
    for _ in range(10):
        KERNELS[kernel]().sweep(state)
    saved = copy.deepcopy(state.canonicalise())
    saved = pickle.loads(pickle.dumps((saved, state.stream.state)))
    twin = ChainState(
        np.array([0, 20, 21]),
        Franchise(1.0, 1.0),
        make_stats(codes, EMISSIONS[emission]),
        RandomStream(99),
    )
    twin.from_arrays(saved[0])
    twin.stream.state = saved[1]
    assert twin.check() is None
    assert_same(twin.to_arrays(), state.to_arrays())
    assert twin.log_joint() == state.log_joint()
    first, second = KERNELS[kernel](), KERNELS[kernel]()
    for _ in range(25):
        assert first.sweep(state) == second.sweep(twin)
        np.testing.assert_array_equal(slots(state), slots(twin))
    assert_same(twin.to_arrays(), state.to_arrays())
    assert twin.stream.state == state.stream.state


# -- growth ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_slots_grow_from_one_state_to_many(emission, kernel):
    """Drawn from the start restaurant, nearly every step gets a new state."""
    state, _ = make_state(emission, n=150, starts=range(150), alpha=1e3, gamma=1e4)
    state.start_from(np.zeros(150, int))
    few = n_slots(state)
    sweeps = KERNELS[kernel]()
    for _ in range(6):
        sweeps.sweep(state)
        assert state.check() is None
    assert state.n_states > 60
    assert n_slots(state) > few + 60
    # And back: packing gives the room up again.
    state.canonicalise()
    assert n_slots(state) < 2 + 1.1 * state.n_states + 10
    assert state.check() is None


def test_states_that_nobody_carries_are_reused():
    state, _ = make_state(n=80, starts=(0,), alpha=1.0, gamma=2.0)
    state.start_from(np.arange(80) % 20)
    kernel = KERNELS["dense"]()
    for _ in range(3000):
        kernel.sweep(state)
    assert state.check() is None
    # Thousands of states were born; the room is that of those alive at a time.
    assert n_slots(state) < 100
    assert state.n_bytes() < 300_000


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_very_short_data(kernel, n):
    state, _ = make_state(n=n, starts=tuple(range(n)))
    state.start_from(np.zeros(n, int))
    for _ in range(200):
        KERNELS[kernel]().sweep(state)
        assert state.check() is None
    assert 1 <= state.n_states <= n


def test_all_observations_missing():
    state = ChainState(
        np.array([0, 10]),
        Franchise(2.0, 2.0),
        make_stats(np.full((30, 1), -1), EMISSIONS["hcrp"]),
        RandomStream(1),
    )
    state.start_from(np.zeros(30, int))
    for kernel in KERNELS.values():
        for _ in range(50):
            kernel().sweep(state)
        assert state.check() is None
        state.canonicalise()
    assert state.to_arrays()["emission"]["columns"][0]["rows"].size == 0


# -- the self-check notices -----------------------------------------------------------


def test_check_notices_labels_that_do_not_fit():
    state, _ = make_state()
    state.start_from(np.arange(60) % 5)
    labels = slots(state)
    native.moves.set_slot(state, 30, labels[31])
    assert state.check() == "occupancy differs from a recount of the labels"
    native.moves.set_slot(state, 31, labels[30])
    assert state.check().startswith("transitions: ")
    native.moves.set_slot(state, 30, labels[30])
    native.moves.set_slot(state, 31, labels[31])
    assert state.check() is None


def test_check_notices_symbols_that_do_not_fit():
    # The statistics look at this very array.
    codes = np.arange(60, dtype=np.int32).reshape(60, 1) % 3
    state = ChainState(
        np.array([0]), Franchise(), make_stats(codes, EMISSIONS["hcrp"]), RandomStream(0)
    )
    state.start_from(np.arange(60) % 5)
    assert state.check() is None
    codes[7] = 4
    assert state.check().startswith("emission")
