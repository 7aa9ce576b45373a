"""Moves from Python: what they undo, what they refuse, what they say of a step."""

from __future__ import annotations

import gc
import itertools
from dataclasses import dataclass

import native
import numpy as np
import pytest
from core.test_state import assert_same, make_state, slots
from extension.exponential import Exponential
from reference.conjugate import (
    Angles,
    Bernoulli,
    DiagonalGaussian,
    FullGaussian,
    Gamma,
    NegativeBinomial,
    Poisson,
)
from reference.enumeration import DirichletEmission, GaussianEmission, HCRPEmission
from reference.product import Product
from small_models import SAMPLERS, Model, log_row

from skihmm.core._rcd import RCDKernel
from skihmm.samplers._kernels import InterleavedKernel, StepwiseProposal


def crowded_state(seed=0, **options):
    """Five states, so that labels vanish and ghosts appear."""
    state, _ = make_state(n=40, starts=(0, 15, 16), seed=seed, **options)
    labels = np.random.default_rng(seed).integers(5, size=40)
    labels[[3, 20]] = [5, 6]  # alone in their states
    state.start_from(labels)
    return state


def gaussian_state():
    y = np.random.default_rng(0).normal(size=12)
    y[4] = np.nan
    model = Model(tuple(y), GaussianEmission(0.0, 0.5, 2.0, 0.1), (0, 5), 2.0, 2.0)
    return model.state(0, [0, 1, 2, 0, 1, 1, 0, 2, 2, 3, 0, 1])


class HalfwayError(Exception):
    pass


def leave_after(state, start, stop, n_done):
    """A move that ends by an exception after so many of its parts."""

    def fail():
        with state.move(start, stop) as move:
            if n_done > 0:
                move.remove()
            if n_done > 1:
                log_w = move.log_weights(start)
            if n_done > 2:
                move.add([int(np.flatnonzero(np.isfinite(log_w))[-1])] * (stop - start))
            raise HalfwayError

    with pytest.raises(HalfwayError):
        fail()


BLOCKS = [(0, 1), (3, 4), (14, 15), (15, 16), (20, 21), (39, 40), (2, 6), (16, 40)]


@pytest.mark.parametrize("n_done", range(4))
@pytest.mark.parametrize("make", [crowded_state, lambda: crowded_state(n_columns=2)])
def test_rollback(make, n_done):
    """Bit for bit, and what follows is what would have followed without the move."""
    state, twin = make(), make()
    before = state.to_arrays()
    kernel = SAMPLERS["beam"].make_kernel(state)
    for start, stop in BLOCKS:
        stream = state.stream.state
        leave_after(state, start, stop, n_done)
        state.stream.state = stream
        assert_same(state.to_arrays(), before)
        assert state.check() is None
    for _ in range(3):
        kernel.sweep(state)
        SAMPLERS["beam"].make_kernel(twin).sweep(twin)
        assert_same(state.to_arrays(), twin.to_arrays())


def test_rollback_of_densities():
    state = gaussian_state()
    before = state.to_arrays()
    for t, n_done in itertools.product(range(12), range(4)):
        leave_after(state, t, t + 1, n_done)
        assert_same(state.to_arrays(), before)


def test_leaving_without_a_decision():
    state = crowded_state()
    before = state.to_arrays()
    for t in range(40):
        with state.move(t, t + 1) as move:
            move.remove()
            move.add(move.old)
        assert_same(state.to_arrays(), before)


def test_rejection():
    state = crowded_state()
    before = state.to_arrays()
    for t in range(40):
        with state.move(t, t + 1) as move:
            move.remove()
            move.add([state.stream.categorical(move.log_weights(t))])
            assert move.accept(-np.inf) is False
        assert_same(state.to_arrays(), before)
        assert state.check() is None


def symbols(rng, n):
    return [None if rng.random() < 0.1 else int(rng.integers(3)) for _ in range(n)]


def reals(rng, n, far=1e9):
    """Numbers with an outlier at step 7."""
    y = rng.normal(size=n)
    y[7] = far
    y[rng.integers(8, n, size=3)] = np.nan
    return y.tolist()


def counts(rng, n):
    y = rng.poisson(3, size=n).astype(float)
    y[7] = 1e9
    return y.tolist()


@dataclass(frozen=True)
class Waiting:
    """An emission in Python."""

    def stats(self, y):
        X = np.array(y, dtype=float)[:, None]
        return Exponential().fit(X).make_stats(X)


def positives(rng, n):
    return np.abs(reals(rng, n)).tolist()


DIAGONAL = DiagonalGaussian((0.0,), 0.3, 1.2, (0.5,))
DIRICHLET = DirichletEmission(3, 0.5)
EVERY_EMISSION = {
    "HCRP": (HCRPEmission(3, 1.0, 2.0), symbols),
    "Dirichlet": (DIRICHLET, symbols),
    "diagonal": (DIAGONAL, reals),
    "full": (
        FullGaussian((0.0, 0.0), 0.4, 3.5, ((1.0, -0.3), (-0.3, 0.6))),
        # (Beside a far outlier in two columns their covariance is lost to rounding.)
        lambda rng, n: zip(reals(rng, n, 3e4), reals(rng, n, 3e4), strict=True),
    ),
    "Poisson": (Poisson((1.0,), (0.5,)), counts),
    "negative binomial": (NegativeBinomial((1.0,), (0.5,), (0.3,)), counts),
    "gamma": (Gamma((2.0,), (0.5,), (0.3,)), positives),
    "angles": (Angles((0.5,)), lambda rng, n: rng.uniform(-6, 6, size=n).tolist()),
    "Bernoulli": (Bernoulli(0.4, 0.7), lambda rng, n: rng.integers(2, size=n).tolist()),
    "product": (
        Product((DIRICHLET, DIAGONAL, Poisson((1.0,), (0.5,))), (1, 1, 1)),
        lambda rng, n: zip(symbols(rng, n), reals(rng, n), counts(rng, n), strict=True),
    ),
    "known states": (
        Product((DIAGONAL,), (1,), (0,) + 29 * (-1,)),
        lambda rng, n: zip(reals(rng, n), strict=True),
    ),
    "Python": (Waiting(), positives),
}


@pytest.mark.parametrize("name", EVERY_EMISSION)
def test_rejected_moves_leave_nothing_behind(name, global_random_seed):
    """After rejections an outlier leaves, and its state is recounted from its steps."""
    emission, make = EVERY_EMISSION[name]
    rng = np.random.default_rng(global_random_seed)
    model = Model(tuple(make(rng, 30)), emission, (0, 12), 2.0, 2.0)
    state = model.state(1, np.arange(30) % 3)
    outlier = 7

    def move(t, log_ratio):
        old = slots(state)[t]
        with state.move(t, t + 1) as step:
            step.remove()
            log_w = step.log_weights(t)
            others = np.isfinite(log_w) & (np.arange(len(log_w)) != old)
            step.add([int(rng.choice(np.flatnonzero(others)))])
            return step.accept(log_ratio)

    for _ in range(10):
        for t in rng.permutation(np.arange(1, 30)):
            before = state.to_arrays()
            assert move(t, -np.inf) is False
            assert_same(state.to_arrays(), before)
            assert state.check() is None
        assert move(outlier, 1e10) is True
        assert state.check() is None


def test_acceptance():
    state = crowded_state()
    for t in range(40):
        with state.move(t, t + 1) as move:
            move.remove()
            log_w = move.log_weights(t)
            k = int(np.argmin(np.where(np.isfinite(log_w), log_w, np.inf)))
            move.add([k])
            assert move.accept(1e6) is True
        assert slots(state)[t] == k
        assert state.check() is None


def test_a_long_sweep_keeps_nothing():
    """Lists that compiled proposals look at do not grow behind their back."""
    state = crowded_state()
    for t in range(40):
        with state.move(t, t + 1) as move:
            move.remove()
            move.add(move.old)
            move.accept(0.0)
    assert native.moves.peek(state)["n_touched"] < 20


# -- weights ----------------------------------------------------------------------------


def tables_of(state):
    """Tables of every slot as a dish."""
    return native.moves.peek(state)["tables"]


def definition(state, t, old, found):
    """log p(k | i) p(y | k) p(o | k) of an open move of one step, label by label."""
    inside = native.moves.peek(state)
    i, o, tables = inside["before"][t], inside["after"][t], inside["tables"]
    want = np.full(len(tables), -np.inf)
    candidates = {k for k in range(2, len(tables)) if tables[k] > 0} | {o} - {-1}
    fresh = {old} - candidates
    if not fresh:
        unused = set(range(2, len(tables))) - candidates - set(inside["slots"].tolist())
        fresh = {k for k in unused if np.isfinite(found[k])}  # whichever it is
        assert len(fresh) == 1
    probs = inside["probs"]
    for k in candidates | fresh:
        out = probs[k, o] if o >= 0 else 1.0
        want[k] = np.log(probs[i, k] * out) + log_row(state, t)[k]
    return want, o >= 0 and tables[o] == 0


@pytest.mark.parametrize(
    "make", [crowded_state, lambda: crowded_state(n_columns=2), gaussian_state]
)
def test_weights_against_the_definition(make):
    state, n_ghosts, n_fresh = make(), 0, 0
    for t in [*range(state.n_steps)] * 2:
        with state.move(t, t + 1) as move:
            move.remove()
            found, old = move.log_weights(t), int(move.old[0])
            want, is_ghost = definition(state, t, old, found)
            np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)
            assert np.isfinite(found[old])
            n_ghosts += is_ghost
            n_fresh += tables_of(state)[old] == 0
            k = state.stream.categorical(found)
            move.add([k])
            move.accept(found[old] - found[k])
    assert n_ghosts
    assert n_fresh


def test_weights_sum_to_one():
    """Without an observation and a next step they are probabilities of labels."""
    model = Model((None,) * 9, DirichletEmission(3), (0, 4, 5), 2.0, 1.5)
    state = model.state(0, [0, 1, 0, 2, 3, 1, 1, 2, 4])
    for t in (3, 4, 8):
        with state.move(t, t + 1) as move:
            move.remove()
            assert np.logaddexp.reduce(move.log_weights(t)) == pytest.approx(0, abs=1e-12)


def test_labels_of_a_path_are_candidates():
    state = crowded_state()
    with state.move(2, 5) as move:  # the state of step 3 vanishes
        move.remove()
        old = move.old
        assert tables_of(state)[old[1]] == 0
        without = move.log_weights(4, [old[0], old[2]])
        assert without[old[1]] == -np.inf
        # Once the label is in use, its weight is that of any other new state.
        log_w = move.log_weights(4, [old[0], old[1]])
        fresh = [k for k in np.flatnonzero(np.isfinite(log_w)) if tables_of(state)[k] == 0]
        assert old[1] in fresh
        assert len(fresh) == 2
        log_w = move.log_weights(4, old[:2] * 0 + max(fresh))
        assert np.isfinite(log_w[max(fresh)])


# -- misuse -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stop", "error", "message"),
    [
        (0, 0, ValueError, r"steps 0 to 0 \(excluded\) of 40; expected 0 <= start < stop"),
        (-1, 1, ValueError, "expected 0 <= start < stop <= 40"),
        (39, 41, ValueError, "expected 0 <= start < stop <= 40"),
        (10, 17, ValueError, "a sequence begins at step 15; expected steps of one"),
        (0.5, 2, TypeError, "float"),
        ("a", 2, TypeError, "str"),
        (0, 2**70, OverflowError, "large"),
    ],
)
def test_no_block(start, stop, error, message):
    with pytest.raises(error, match=message):
        crowded_state().move(start, stop)


def calls(move):
    return {
        "remove": move.remove,
        "log_weights": lambda: move.log_weights(3),
        "add": lambda: move.add([2]),
        "accept": lambda: move.accept(0.0),
        "old": lambda: move.old,
    }


@pytest.mark.parametrize(
    ("done", "refused"),
    [
        ("", ["log_weights", "add", "accept"]),
        ("r", ["remove", "accept"]),
        ("ra", ["remove", "log_weights", "add"]),
        ("rac", ["remove", "log_weights", "add", "accept", "old"]),
    ],
)
def test_the_wrong_order(done, refused):
    state = crowded_state()
    move = state.move(3, 4)
    for call in calls(move).values():
        with pytest.raises(RuntimeError, match="not entered by `with`"):
            call()
    with move:
        for part in done:
            {"r": move.remove, "a": lambda: move.add([2]), "c": lambda: move.accept(0)}[part]()
        for name in refused:
            with pytest.raises(RuntimeError, match=rf"{name}.* of a move that is "):
                calls(move)[name]()
    for call in calls(move).values():
        with pytest.raises(RuntimeError, match="a move that is over"):
            call()
    with pytest.raises(RuntimeError, match="a move that is over"):
        move.__enter__()
    assert state.check() is None


@pytest.mark.parametrize(
    "path", [[0], [1], [-1], [10**6], [2**40], [2.0], [2, 3], [], 2, [[2]], ["a"], [None], [True]]
)
def test_no_path(path):
    state = crowded_state()
    before = state.to_arrays()
    with state.move(3, 4) as move:
        move.remove()
        with pytest.raises(ValueError, match="path"):
            move.add(path)
    with state.move(3, 5) as move:
        move.remove()
        with pytest.raises(ValueError, match="path"):
            move.log_weights(4, path)
    assert_same(state.to_arrays(), before)


@pytest.mark.parametrize("t", [2, 4, -1, 2**40])
def test_no_step(t):
    state = crowded_state()
    with state.move(3, 4) as move:
        move.remove()
        with pytest.raises(ValueError, match="expected a step of the block, 3 to 3"):
            move.log_weights(t)


@pytest.mark.parametrize("ratio", [np.nan, np.inf])
def test_no_ratio(ratio):
    state = crowded_state()
    before = state.to_arrays()
    with state.move(3, 4) as move:
        move.remove()
        move.add([2])
        with pytest.raises(ValueError, match="expected a number below infinity"):
            move.accept(ratio)
    assert_same(state.to_arrays(), before)


def test_nothing_else_while_a_move_is_open():
    state = crowded_state()
    record = state.to_arrays()
    others = [
        lambda: state.start_from(np.zeros(40, int)),
        state.canonicalise,
        lambda: state.from_arrays(record),
        state.move(7, 8).__enter__,
        *(
            lambda kernel=kernel: kernel.sweep(state)
            for kernel in [
                RCDKernel(StepwiseProposal()),
                InterleavedKernel(None, 1),
                *(sampler.make_kernel(state) for sampler in SAMPLERS.values()),
            ]
        ),
    ]
    with state.move(3, 4) as move:
        move.remove()
        for other in others:
            with pytest.raises(RuntimeError, match="A move is open on this chain"):
                other()
    assert_same(state.to_arrays(), record)
    with state.move(3, 4) as move:
        move.remove()
        move.add(move.old)
        move.accept(0.0)
        with state.move(5, 6) as inner:
            inner.remove()
        for other in others[4:]:
            other()
    assert state.check() is None


def test_a_move_that_nobody_ends():
    """The move of a generator that is thrown away, say."""
    state = crowded_state()
    record = state.to_arrays()

    def half():
        with state.move(3, 4) as move:
            move.remove()
            yield

    generator = half()
    next(generator)
    del generator
    gc.collect()
    assert_same(state.to_arrays(), record)
    state.move(3, 4)  # made, but never entered
    state.canonicalise()
