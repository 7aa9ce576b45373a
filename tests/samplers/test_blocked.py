"""The blocked samplers against exact answers."""

from __future__ import annotations

import native
import numpy as np
import pytest
from reference.enumeration import DirichletEmission, HCRPEmission
from sklearn.base import clone
from small_models import Model, chain_of

from skihmm import HCRPHMM
from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.datasets import make_repeating_sequence
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseSlice
from skihmm.samplers._kernels import BeamProposal, BlockedProposal, StepwiseProposal
from skihmm.testing._probes import ProposalProbe

PROPOSALS = {
    "blocked": BlockedProposal,
    "beam": BeamProposal,
    "blocked, exact messages": lambda: BlockedProposal(cut=0.0),
    "beam, exact messages": lambda: BeamProposal(cut=0.0),
    "blocked, crude messages": lambda: BlockedProposal(cut=2.0),
    "beam, crude messages": lambda: BeamProposal(cut=2.0),
}


@pytest.mark.parametrize("n", [16, 32, 48, 336, 1008])
def test_vector_versions_give_the_same_bits(n):
    """Else a seed would mean another chain on another machine."""
    rng = np.random.default_rng(n)
    doubles, floats = rng.random((3, n)), rng.random((3, n)).astype(np.float32)
    expected = native.parts.run_passes(0, doubles, floats)
    assert 0 < len(expected["select"]) < n
    assert not expected["emit"][:n].any()
    for level in (1, 2):
        found = native.parts.run_passes(level, doubles, floats)
        if found is not None:
            for name, value in expected.items():
                np.testing.assert_array_equal(found[name], value, err_msg=name)


# -- borders --------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("proposal", PROPOSALS)
def test_extreme_concentrations(proposal, concentration):
    rng = np.random.default_rng(0)
    rows = rng.integers(-1, 4, size=(120, 1))
    for c in (1e-3, 1e3):
        state = chain_of(rows, HCRPEmission(4, c, concentration), (0, 1, 60), concentration, c, 3)
        state.start_from(np.arange(120) % 3)
        for block_size in (1, 7, 120):
            kernel = RCDKernel(PROPOSALS[proposal](), block_size)
            for _ in range(5):
                assert kernel.sweep(state)[0] > 0
                assert np.isfinite(state.log_joint())
        assert state.check() is None


@pytest.mark.parametrize("concentration", [1e-25, 1e-12, 1e12, 1e25])
@pytest.mark.parametrize("proposal", ["blocked", "beam"])
def test_concentrations_near_the_range_of_floats(proposal, concentration):
    """Messages are in single precision; they must not freeze the chain."""
    rows = np.tile([0, 1, 2, 3, 1, 2, 3, 4], 25)[:, None]
    state = chain_of(rows, HCRPEmission(5, concentration, 1.0), (0,), concentration, 1.0, 3)
    state.start_from(rows[:, 0])
    kernel = RCDKernel(PROPOSALS[proposal](), 8)
    rates = [kernel.sweep(state).acceptance_rate for _ in range(20)]
    assert np.mean(rates) > 0.5
    assert state.check() is None


@pytest.mark.parametrize("gamma", [0.3, 1.0])
@pytest.mark.parametrize("proposal", ["blocked", "beam"])
def test_one_block_for_everything(proposal, gamma):
    """At s_0 no customers remain: the new state is the only one."""
    state = Model((None,), DirichletEmission(2), gamma=gamma).state(0)
    kernel = RCDKernel(PROPOSALS[proposal](), 50)
    for _ in range(20):
        assert kernel.sweep(state)[:2] == (1, 1)
    assert state.check() is None


def test_no_old_path_has_probability_zero():
    """A stretch in the wrong state, whose share of the messages rounds to nothing."""
    y = np.repeat([0, 1] * 3, 20)
    labels = y.copy()
    labels[42:54] = 1
    state = chain_of(y[:, None], DirichletEmission(2, 1e-3), (0,), 0.05, 1.0, 0)
    state.start_from(labels)
    for proposal in ("blocked", "beam"):
        probe = ProposalProbe(state, 40, 56)
        for seed in range(50):
            log_q_old, _, log_q_new, _ = probe.ask(PROPOSALS[proposal](), 0, seed, seed, 10)
            assert np.all(np.isfinite(log_q_old))
            assert not np.any(np.isnan(log_q_new))


def test_single_steps_are_no_blocks():
    with pytest.raises(ValueError, match="block_size=3 with StepwiseProposal; expected 1, as"):
        RCDKernel(StepwiseProposal(), 3)
    assert RCDKernel(StepwiseProposal(), 1).block_size == 1
    with pytest.raises(ValueError, match=r"block_size=0; expected an integer >= 1\."):
        RCDKernel(BlockedProposal(), 0)


# -- recipes --------------------------------------------------------------------------

RECIPES = {
    "slice": StepwiseSlice(),
    "blocked": BlockedGibbs(block_size=5),
    "beam": BlockedBeam(block_size=5),
}


@pytest.mark.parametrize("name", RECIPES)
def test_estimator(name):
    X, _ = make_repeating_sequence(100)
    settings = {"n_burnin": 20, "n_draws": 5, "random_state": 0}
    hmm = HCRPHMM(sampler=clone(RECIPES[name]), **settings).fit(X)
    again = HCRPHMM(sampler=RECIPES[name], n_jobs=2, **settings).fit(X)
    np.testing.assert_array_equal(hmm.labels_, again.labels_)
    by_name = HCRPHMM(sampler=name, **settings)
    if name != "slice":
        by_name.set_params(sampler__block_size=5)
    np.testing.assert_array_equal(hmm.labels_, by_name.fit(X).labels_)


@pytest.mark.parametrize("recipe", [BlockedGibbs, BlockedBeam])
def test_blocks_longer_than_the_data(recipe):
    hmm = HCRPHMM(sampler=recipe(block_size=10**9), n_burnin=3, n_draws=2)
    assert hmm.set_params(random_state=0).fit([[0], [1], [0]]).n_states_ >= 1


@pytest.mark.parametrize("cut", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("n_states", [2, 6])
def test_spare_slots_do_not_change_the_proposal(n_states, cut):
    # What a path's probability depends on besides the seating without the block would
    # depend on the labels of the whole chain, and the way back would have another one.
    y = np.tile(np.array([0, 1, 0, 1, 1, 0, 0, 1, 1, 0], dtype=np.int32), 4)[:, None]
    labels = np.random.default_rng(0).integers(0, n_states, 40)
    labels[:n_states] = np.arange(n_states)
    found = []
    for n_states_before in (3, 40):
        state = ChainState(
            np.array([0]),
            # No second table anywhere: one seating for the labels.
            Franchise(1e-6, 1.0, (50.0, 50.0)),
            categorical_stats(y, [2], 0.3, 1.0, False),
            RandomStream(1),
        )
        state.start_from(np.arange(40) % n_states_before)
        state.start_from(labels)
        # Now both concentrations go to about one, the same for both chains.
        state.stream.state = RandomStream(7).state
        state.draw_hidden()
        probe = ProposalProbe(state, 13, 17)
        old, paths, new, _ = probe.ask(BlockedProposal(cut=cut), 0, 1, 2, 2000)
        ratios = new - old
        found.append(dict(zip(map(tuple, paths.tolist()), ratios, strict=True)))
    shared = found[0].keys() & found[1].keys()
    assert len(shared) > 10
    for path in shared:
        np.testing.assert_allclose(found[0][path], found[1][path], rtol=1e-12)
