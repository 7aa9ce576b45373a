"""The baselines against exact answers; planted errors must be caught."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from reference.enumeration import DirichletEmission, HCRPEmission
from reference.seating import all_seatings
from reference.statistics import frequency_table, total_variation_test
from small_models import SUSPECT, Model, key_of, random_chain

from skihmm import HCRPHMM
from skihmm.core._emission import EmissionStats
from skihmm.datasets import make_repeating_sequence
from skihmm.emissions import HCRPCategorical
from skihmm.samplers import (
    BlockedBeam,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StickBreakingBeam,
    StickBreakingGibbs,
)
from skihmm.samplers._kernels import DirectAssignmentKernel, StickBreakingKernel
from skihmm.transitions import HCRPTransitions

KERNELS = {
    "direct_assignment": DirectAssignmentKernel,
    "stick_breaking": StickBreakingKernel,
    "stick_breaking_pieces": lambda: StickBreakingKernel(False, 2),
    "stick_breaking_beam": lambda: StickBreakingKernel(beam=True),
}
RECIPES = {
    "direct_assignment": DirectAssignmentGibbs,
    "stick_breaking": StickBreakingGibbs,
    "stick_breaking_beam": StickBreakingBeam,
}
STICKS = ("stick_breaking", "stick_breaking_beam")


# -- laws ----------------------------------------------------------------------------


def sizes_of(key) -> tuple:
    """Table sizes of transitions and of observations, without names."""
    return tuple(
        tuple(sorted(cell[2:] for cell in franchise if len(cell) > 2)) for franchise in key[1:]
    )


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", KERNELS)
def test_table_sizes_have_their_law(kernel):
    """Not only the numbers of tables: other samplers go on from these."""
    model = Model((0, 0, 0, 0, 0), HCRPEmission(2, 2.0, 1.0), (0,), 3.0, 0.3)
    law: Counter = Counter()
    seatings = all_seatings(model.y, model.emission, model.starts, model.alpha, model.gamma)
    for key, (_, probability) in seatings.items():
        law[sizes_of(key)] += probability
    chains = []
    for seed in range(20):
        state, sweeper, chain = model.state(seed), KERNELS[kernel](), []
        for _ in range(300):
            sweeper.sweep(state)
            chain.append(sizes_of(key_of(state.to_arrays(), True)))
        chains.append(chain[100:])
    frequencies, exact = frequency_table(chains, law)
    assert total_variation_test(frequencies, exact / exact.sum()).pvalue > SUSPECT


# -- borders --------------------------------------------------------------------------


def long_chain(emission, n_columns=1, n=150, alpha=4.0, gamma=6.0, n_labels=12, seed=0):
    """Some steps missing, three sequences, one of them of one step."""
    return random_chain(
        seed,
        lambda rng: rng.integers(n_labels, size=n),
        emission,
        n,
        n_columns,
        starts=(0, n // 2, n // 2 + 1),
        alpha=alpha,
        gamma=gamma,
    )


@pytest.mark.parametrize("alpha", [1e-3, 1e3])
@pytest.mark.parametrize("gamma", [1e-3, 1e3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_extreme_concentrations(kernel, alpha, gamma):
    sweeper = KERNELS[kernel]()
    emissions = [HCRPEmission(4, 1e-3, 1e3), HCRPEmission(4, 1e3, 1e-3), DirichletEmission(4, 1e-3)]
    # Where no two steps share a state the beam breaks thousands of sticks.
    has_many = alpha == gamma == 1e3
    if has_many and kernel == "stick_breaking_beam":
        gamma = 100.0
    n = 4 if has_many else 40
    for emission in emissions[: 1 if has_many else 3]:
        state = long_chain(emission, n=n, alpha=alpha, gamma=gamma)
        for _ in range(3):
            assert sweeper.sweep(state)[:2] == (n, n)
            assert np.isfinite(state.log_joint())
            assert state.check() is None


@pytest.mark.parametrize(
    ("alpha", "gamma"),
    [
        *((1.0, gamma) for gamma in (1e6, 1e12, 1e50)),
        (1e12, 1e50),
        # Parts of the sticks are drawn until there are too many.
        *(pytest.param(1e12, gamma, marks=pytest.mark.slow) for gamma in (1e6, 1e12)),
    ],
)
@pytest.mark.parametrize("options", [(), (6, 2)], ids=str)
def test_a_beam_that_would_break_sticks_for_ever_says_so(alpha, gamma, options):
    state = long_chain(HCRPEmission(4, 1.0, 1.0), n=30)
    arrays = state.canonicalise()
    labels = state.packed_labels
    arrays["transitions"] |= {"alpha": alpha, "gamma": gamma}
    state.from_arrays(arrays)
    before = state.log_joint()
    sweeper = StickBreakingKernel(True, *options)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"more than 32768 sticks.* gamma = 1e\+"):
            sweeper.sweep(state)
        # The chain is where it was, and others go on from there; so does this one.
        assert state.check() is None
        np.testing.assert_array_equal(state.packed_labels, labels)
        assert state.log_joint() == before
    for kernel in set(KERNELS) - {"stick_breaking_beam"}:
        KERNELS[kernel]().sweep(state)
        assert state.check() is None
    arrays["transitions"] |= {"alpha": 2.0, "gamma": 3.0}
    state.from_arrays(arrays)
    assert sweeper.sweep(state)[:2] == (30, 30)
    assert state.check() is None


def test_a_fit_that_would_break_sticks_for_ever_says_so():
    X, _ = make_repeating_sequence(60)
    transitions = HCRPTransitions(gamma=1e12, concentration_prior=None)
    hmm = HCRPHMM(sampler="stick_breaking_beam", transitions=transitions)
    with pytest.raises(ValueError, match="use another sampler, such as StickBreakingGibbs"):
        hmm.fit(X)
    # Resampled concentrations leave such values at once.
    hmm.set_params(transitions=HCRPTransitions(gamma=500.0), n_burnin=5, n_draws=2)
    assert hmm.fit(X).draws_.gamma.max() < 100


@pytest.mark.parametrize("n_columns", [1, 2, 17, 40])
@pytest.mark.parametrize("kernel", KERNELS)
def test_many_columns_and_many_states(kernel, n_columns):
    """Counts and lists stay right while states come and go and slots are added."""
    sweeper = KERNELS[kernel]()
    for emission in (HCRPEmission(5, 2.0, 3.0), DirichletEmission(5, 0.3)):
        state = long_chain(emission, n_columns, n_labels=60)
        for sweep in range(12):
            sweeper.sweep(state)
            assert state.check() is None
            assert np.isfinite(state.log_joint())
            if sweep % 4 == 0:
                state.canonicalise()
                assert state.check() is None


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_slots_than_dense_counts(kernel):
    # Beyond a thousand slots direct assignment has no dense counts.
    state = long_chain(HCRPEmission(3, 1.0, 1.0), n=1300, n_labels=10**6, alpha=2.0)
    assert state.n_states > 1100
    sweeper = KERNELS[kernel]()
    for _ in range(2):
        sweeper.sweep(state)
        assert state.check() is None


@pytest.mark.parametrize("name", RECIPES)
def test_memory_is_accounted_for(name):
    n_symbols, n_steps = 500, 400
    state = long_chain(HCRPEmission(n_symbols, 2.0, 2.0), n=n_steps, n_labels=60)
    kernel = RECIPES[name]().make_kernel(state)
    kernel_before, before = kernel.n_bytes(), state.n_bytes()
    assert kernel_before < 20_000
    kernel.sweep(state)
    n = state.n_states
    assert n > 30
    if name in STICKS:
        # A number for every state and symbol, and for every pair of states.
        assert state.n_bytes() - before > 8 * n * n_symbols
        assert kernel.n_bytes() > 8 * n * n
    else:
        assert kernel.n_bytes() > 2 * 2 * n * n + 3 * 8 * n
    # Swept again and again they hold no more.
    for _ in range(5):
        kernel.sweep(state)
        state.canonicalise()
    settled = state.n_bytes(), kernel.n_bytes()
    for _ in range(40):
        kernel.sweep(state)
        state.canonicalise()
    assert state.n_bytes() < 3 * settled[0]
    assert kernel.n_bytes() < 3 * settled[1]


# -- recipes and estimator ------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("emission", ["hcrp", "dirichlet"])
def test_estimator(name, emission):
    X, _ = make_repeating_sequence(100)
    settings = {"n_burnin": 20, "n_draws": 5, "random_state": 0, "emission": emission}
    hmm = HCRPHMM(sampler=RECIPES[name](), n_chains=2, **settings).fit(X)
    assert isinstance(hmm.sampler_, RECIPES[name])
    assert (hmm.draws_.acceptance_rate == 1).all()
    assert np.isnan(hmm.draws_.split_merge_acceptance_rate).all()
    assert np.isfinite(hmm.draws_.lp).all()
    assert hmm.predict(X).shape == (100,)
    assert np.isfinite(hmm.score(X[:20]))
    again = HCRPHMM(sampler=name, n_chains=2, n_jobs=2, **settings).fit(X)
    np.testing.assert_array_equal(hmm.draws_.states, again.draws_.states)
    np.testing.assert_array_equal(hmm.draws_.alpha, again.draws_.alpha)


@pytest.mark.parametrize("name", RECIPES)
def test_samplers_can_take_turns(name):
    """Between sweeps a chain is the same thing for all samplers."""
    state = long_chain(HCRPEmission(5, 2.0, 3.0))
    kernels = [
        recipe.make_kernel(state)
        for recipe in (RECIPES[name](), StepwiseGibbs(), BlockedBeam(block_size=4))
    ]
    for _ in range(5):
        for kernel in kernels:
            kernel.sweep(state)
            assert state.check() is None


@pytest.mark.parametrize("name", RECIPES)
def test_it_finds_the_states_of_a_simple_sequence(name):
    X, _ = make_repeating_sequence(400)
    hmm = HCRPHMM(sampler=name, n_burnin=150, n_draws=10, random_state=0).fit(X)
    assert 4 <= hmm.n_states_ <= 20
    assert hmm.perplexity(X) < 2.5


class Collapsed(HCRPCategorical):
    """An emission that only knows predictive probabilities."""

    def make_stats(self, codes):
        class Stats(EmissionStats):
            draws_parameters = False

        return Stats() if len(codes) == 0 else super().make_stats(codes)


@pytest.mark.parametrize("name", STICKS)
def test_emissions_without_parameters_are_refused(name):
    message = f"{RECIPES[name].__name__} draws the parameters.*Collapsed does not support"
    with pytest.raises(TypeError, match=message):
        HCRPHMM(sampler=name, emission=Collapsed()).fit([[0], [1], [0]])
    # The other one needs predictive probabilities only.
    HCRPHMM(sampler="direct_assignment", emission=Collapsed(), n_burnin=2, n_draws=1).fit(
        [[0], [1], [0]]
    )
