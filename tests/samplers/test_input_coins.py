"""Coins of states that depend on inputs: numbers, chains and records.

One-move transition matrices at given weights are in test_split_merge_matrices.py.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from errors import INPUT_COINS, STEPWISE, edited
from reference.coins import DRAW, STAY
from reference.enumeration import DirichletEmission, GaussianEmission
from reference.input_coins import InputCoinContextModel, InputCoinModel
from small_models import WithDraws, assert_caught, assert_exact

from skihmm.core._rcd import RCDKernel
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs
from skihmm.samplers._split_merge_kernel import InterleavedKernel

NAN = np.nan
# Strong inputs, a missing one, two sequences, a penalty.
MODELS = {
    "strong": InputCoinModel(
        (0, 0, 1, 1, 0), DirichletEmission(2, 0.5), (0,), 1.5, 1.0,
        inputs=((0.0,), (3.0,), (-3.0,), (2.5,), (-2.0,)),
    ),
    "two sequences": InputCoinModel(
        (0.1, 0.2, 2.0, 2.2, 0.1), GaussianEmission(), (0, 3), 1.5, 1.0,
        inputs=((0.0, 1.0), (NAN, 2.0), (-1.0, 0.5), (2.5, NAN), (-2.0, 1.5)),
    ),
    "penalised": InputCoinModel(
        (0, 1, None, 1, 0), DirichletEmission(2, 0.4), (0,), 2.0, 2.0, penalty=1.3,
        inputs=((0.0,), (1.0,), (-1.0,), (2.5,), (-2.0,)),
    ),
    "contexts": InputCoinContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.5), (0,), 2.0, 1.5,
        columns=((0,), (1,), (1,), (0,)), context_alpha=(1.5,),
        inputs=((0.0,), (1.0,), (-2.0,), (2.5,)),
    ),
    "stages": InputCoinContextModel(
        (0, 0, 1, 1, 0), DirichletEmission(2, 0.5), (0,), 0.8, 1.7, n_stages=2,
        columns=((0,),) * 5, context_alpha=(1.0,),
        inputs=((0.0,), (1.0,), (-2.0,), (2.5,), (-0.5,)),
    ),
}  # fmt: skip
SAMPLERS = {
    "step-wise": StepwiseGibbs("rcd").make_kernel,
    "exact": StepwiseGibbs().make_kernel,
    "blocks": BlockedGibbs(3).make_kernel,
    "beam": BlockedBeam(3).make_kernel,
    "split-merge": lambda state: InterleavedKernel(None, 5),
    "whole runs": StepwiseGibbs(run_split_merge_rate=3).make_kernel,
}
ACCEPTANCE = {"step-wise": 0.9, "exact": 1.0, "blocks": 0.8}
UNSTAGED = [name for name in MODELS if name != "stages"]
WEIGHTS = (0.2, 0.05, 0.4, 0.1, 0.25)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "sampler"),
    [*itertools.product(UNSTAGED, SAMPLERS), ("stages", "blocks")],
)
def test_chains_have_the_exact_posterior(name, sampler):
    """Labels and numbers of stays, with everything else drawn between sweeps."""
    kernel = SAMPLERS[sampler]
    found = assert_exact(
        MODELS[name], lambda state: WithDraws(kernel(state)), n_sweeps=2000
    )
    # A proposal without the coin would be exact, but poor.
    assert found.acceptance >= ACCEPTANCE.get(sampler, 0.0)


# PG(1, 0) between sweeps; no redraw at all; a prior of scales that is drawn without the
# coefficients.
@pytest.mark.statistical
@pytest.mark.parametrize("error", INPUT_COINS)
def test_planted_errors_of_draws_are_caught(error):
    draw = edited("native.concentrations", error).draw_hyperparameters
    kernel = SAMPLERS["exact"]
    assert_caught(
        lambda state: WithDraws(kernel(state), draw), MODELS["strong"], n_sweeps=8000
    )


def labels_of(arrays):
    labels, stays = arrays["states"].tolist(), arrays["stayed"]
    return labels, tuple(STAY if stay else DRAW for stay in stays)


@pytest.mark.parametrize("name", UNSTAGED)
def test_the_joint_probability_is_that_of_the_integrals(name):
    model = replace(MODELS[name], scales=(1.4,) * len(MODELS[name].inputs[0]))
    found, expected = [], []
    models = [
        replace(model, weights=WEIGHTS[: model.n_steps]),
        replace(model, weights=WEIGHTS[-model.n_steps :], mean=-1.0, precision=0.2),
    ]
    state = model.state(0)
    kernel = SAMPLERS["exact"](state)
    for _ in range(20):
        kernel.sweep(state)
        arrays = state.to_arrays()
        for other in models:
            state.from_arrays(other.at_weights(arrays))
            found.append(state.log_joint())
            labels, kinds = labels_of(arrays)
            expected.append(other.log_coins(labels, model.starts, kinds))
        state.from_arrays(arrays)
    # The rest is the same for both.
    found, expected = np.array(found), np.array(expected)
    np.testing.assert_allclose(np.diff(found)[::2], np.diff(expected)[::2], rtol=1e-9)


def random_state(n_inputs=3, seed=0, scale=1.0, shift=0.0):
    """A longer chain with inputs, all of which one number scales and one shifts."""
    rng = np.random.default_rng(seed)
    inputs = scale * rng.standard_normal((200, n_inputs)) + shift
    y = np.repeat(rng.integers(3, size=20), 10) + 0.5 * rng.standard_normal(200)
    model = InputCoinModel(
        tuple(y.tolist()), GaussianEmission(), (0, 120), inputs=tuple(map(tuple, inputs))
    )
    return model, model.state(seed, np.arange(200) // 25)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_statistics_are_those_of_a_recount_and_chains_resume(sampler):
    model, state = random_state()
    kernel = SAMPLERS[sampler](state)
    for _ in range(10):
        kernel.sweep(state)
        assert state.check() is None
        state.draw_hidden()
        assert state.check() is None
    arrays = state.canonicalise()
    resumed = model.state(1, np.zeros(200, int))
    resumed.stream.state = state.stream.state
    resumed.from_arrays(arrays)
    other = SAMPLERS[sampler](resumed)
    for one, chain in ((kernel, state), (other, resumed)):
        one.sweep(chain)
        chain.draw_hidden()
    for name, values in state.to_arrays()["transitions"].items():
        np.testing.assert_array_equal(resumed.to_arrays()["transitions"][name], values)
    np.testing.assert_array_equal(
        state.to_arrays()["stay_weights"], resumed.to_arrays()["stay_weights"]
    )


def test_without_a_rollback_statistics_differ_from_a_recount():
    module = edited(STEPWISE, "no rollback of coins")
    state = random_state()[1]
    kernel = RCDKernel(module.StepwiseProposal())
    found = []
    for _ in range(10):
        kernel.sweep(state)
        found.append(state.check())
        state.draw_hidden()
    assert "transitions: what coins keep differs from a recount" in found


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("stay_mean", np.inf, "expected a finite number"),
        ("stay_precision", -1.0, "stay_precision"),
        ("stay_scale", np.array([1.0, 0.0, 1.0]), "expected positive numbers"),
        ("stay_scale", np.ones(2), "coins is"),
        ("coins", np.ones((2, 2)), "coins is"),
        ("stay_weights", np.zeros(200), "is not positive"),
        ("stay_weights", np.ones(199), "199 weights of stays for 200 steps"),
    ],
)
def test_wrong_records_are_refused(name, value, error):
    state = random_state()[1]
    arrays = state.to_arrays()
    if name == "stay_weights":
        arrays[name] = value
    else:
        arrays["transitions"][name] = value
    with pytest.raises(ValueError, match=error):
        state.from_arrays(arrays)
    assert state.check() is None
