"""Coins of states that depend on inputs: numbers, chains and records.

One-move transition matrices at given weights are in test_split_merge_matrices.py.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from errors import INPUT_COINS, SHARES, STEPWISE, edited
from reference.enumeration import DirichletEmission, GaussianEmission
from reference.input_coins import InputCoinContextModel, InputCoinModel, rows_of
from scipy.special import expit, logsumexp
from small_models import WithDraws, assert_caught, assert_exact

from skihmm import HCRPHMM
from skihmm._using.decoding import rank
from skihmm.core._franchise import stays_of
from skihmm.core._rcd import RCDKernel
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs
from skihmm.samplers._kernels import InterleavedKernel
from skihmm.transitions import HCRPTransitions

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
WEIGHTS = (0.2, 0.05, 0.4, 0.1, 0.25)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), [*itertools.product(MODELS, SAMPLERS)])
def test_chains_have_the_exact_posterior(name, sampler):
    """Labels and numbers of stays, with everything else drawn between sweeps."""
    kernel = SAMPLERS[sampler]
    found = assert_exact(MODELS[name], lambda state: WithDraws(kernel(state)), n_sweeps=2000)
    # A proposal without the coin would be exact, but poor.
    assert found.acceptance >= ACCEPTANCE.get(sampler, 0.0)


# PG(1, 0) between sweeps; no redraw at all; a prior of scales that is drawn without the
# coefficients.
@pytest.mark.statistical
@pytest.mark.parametrize("error", INPUT_COINS)
def test_planted_errors_of_draws_are_caught(error):
    draw = edited("native.concentrations", error).draw_hyperparameters
    kernel = SAMPLERS["exact"]
    assert_caught(lambda state: WithDraws(kernel(state), draw), MODELS["strong"], n_sweeps=8000)


def log_quadrature(rows, stays, mean, variance):
    """Log of the integral of the prior times the probabilities of steps, on a grid."""
    axes = [m + np.sqrt(v) * np.linspace(-7, 7, 81) for m, v in zip(mean, variance, strict=True)]
    b = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(mean))
    log_p = -0.5 * ((b - mean) ** 2 / variance).sum(axis=1)
    log_prior = logsumexp(log_p)
    log_p -= np.logaddexp(0.0, np.where(stays, -1.0, 1.0) * (b @ rows.T)).sum(axis=1)
    return logsumexp(log_p) - log_prior


def log_shares(arrays, model):
    """Log probability of the stays among the self-transitions, given the labels."""
    labels, stayed = arrays["states"], arrays["stayed"]
    stays, repeats = stays_of(arrays, rows_of(model)[:, :-1])
    lp = 0.0
    for t in set(range(1, model.n_steps)) - {*model.starts}:
        if labels[t] == labels[t - 1]:
            stay = stays[t, labels[t]]
            left = (1 - stay) * repeats[labels[t]] * np.exp(-model.penalty)
            lp += np.log((stay if stayed[t] else left) / (stay + left))
    return lp


@pytest.mark.parametrize("name", ["strong", "two sequences", "penalised"])
def test_the_joint_probability_is_that_of_the_integrals(name):
    """Whatever the weights are; Laplace's method is not exact."""
    model = replace(MODELS[name], scales=(1.4,) * len(MODELS[name].inputs[0]))
    found, expected = [], []
    models = [
        replace(model, weights=WEIGHTS[: model.n_steps]),
        replace(model, weights=WEIGHTS[-model.n_steps :], mean=-1.0, precision=0.2),
    ]
    later = np.array([t for t in range(model.n_steps) if t not in model.starts])
    state = model.state(0)
    kernel = SAMPLERS["exact"](state)
    for _ in range(20):
        kernel.sweep(state)
        arrays = state.to_arrays()
        labels, stayed = arrays["states"], arrays["stayed"].astype(bool)
        for other in models:
            state.from_arrays(other.at_weights(arrays))
            found.append(state.log_joint())
            mean = np.append(np.zeros(len(model.scales)), other.mean)
            lp = -log_shares(state.to_arrays(), other)
            for k in {*labels[later - 1]}:
                own = later[labels[later - 1] == k]
                lp += log_quadrature(rows_of(other)[own], stayed[own], mean, other.variance)
            expected.append(lp)
        state.from_arrays(arrays)
    # The rest is the same for both.
    np.testing.assert_allclose(np.diff(found)[::2], np.diff(expected)[::2], atol=0.2)


@pytest.mark.parametrize("error", [None, *SHARES])
def test_the_penalty_is_a_part_of_the_share_of_stays(error):
    """Against the chain without a penalty, which has the same counts and weights."""
    log_joint = edited("native.concentrations", error).log_joint
    model = MODELS["penalised"]
    free = replace(model, penalty=0.0)
    state, other = model.state(0), free.state(0)
    kernel, found, expected = SAMPLERS["exact"](state), [], []
    for _ in range(20):
        kernel.sweep(state)
        arrays = state.to_arrays()
        other.from_arrays(arrays)
        found.append(log_joint(state) - log_joint(other))
        draws = arrays["transitions"]["rows"] < arrays["n_states"]
        n_draws = arrays["transitions"]["n_customers"][draws].sum()
        shares = log_shares(arrays, model) - log_shares(arrays, free)
        expected.append(-model.penalty * n_draws - shares)
        if error is None:
            assert log_joint(state) - log_joint(other) == pytest.approx(
                state.log_joint() - other.log_joint(), rel=1e-12
            )
    assert np.ptp(expected) > 0.5
    difference = np.abs(np.subtract(found, expected)).max()
    assert difference < 1e-9 if error is None else difference > 0.05


def test_the_rank_hardly_depends_on_weights_and_stays():
    """With weights its standard deviation was 40 nats."""
    rng = np.random.default_rng(0)
    inputs, states = rng.standard_normal(1000), np.zeros(1000, dtype=int)
    for t in range(1, 1000):
        stays = rng.random() < expit(2.5 + 4 * inputs[t] * (1 - 2 * states[t - 1]))
        states[t] = states[t - 1] if stays else 1 - states[t - 1]
    X = np.column_stack([5.0 * states + rng.standard_normal(1000), inputs])
    hmm = HCRPHMM(
        emission="gaussian", transitions=HCRPTransitions(input_features=[1]),
        new_states=False, n_burnin=50, n_draws=30, random_state=0,
    ).fit(X, states=states)  # fmt: skip
    data = hmm._fitted.sequences
    found = [rank(hmm.draws_[0, d], data, hmm.emission_, hmm.transitions_) for d in range(30)]
    assert np.std(found) < 6
    # Some log 1,000 / 2 for every parameter.
    assert 10 < 1000 * hmm.score(X) - np.mean(found) < 60


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
        ("stay_scale", np.array([1.0, 0.0, 1.0]), "stay_scale: .* expected a positive number"),
        ("stay_scale", np.ones(2), "coins is"),
        ("coins", np.ones((2, 2)), "coins is"),
        ("log_ways", np.nan, "log_ways is nan; expected a finite number up to 0"),
        ("stay_weights", np.zeros(200), "stay_weights: .* expected a positive number"),
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
