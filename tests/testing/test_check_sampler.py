"""check_sampler: all samplers pass, and planted errors are caught."""

from __future__ import annotations

import native
import numpy as np
import pytest
from extension.random_scan import RandomScanGibbs
from extension.seasonal import SeasonalGibbs
from small_models import SAMPLERS

from skihmm.samplers import BaseSampler, StepwiseGibbs
from skihmm.testing import check_sampler

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(
    ("sampler", "n_sweeps"),
    [
        (SAMPLERS["direct assignment"], 100),
        (RandomScanGibbs(), 100),
        (SeasonalGibbs(period=2), 40),  # in Python, and slow
    ],
)
def test_some_samplers_pass(sampler, n_sweeps, global_random_seed):
    check_sampler(sampler, random_state=global_random_seed, n_sweeps=n_sweeps)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", SAMPLERS)
def test_all_samplers_pass_for_many_seeds(name, seed):
    check_sampler(SAMPLERS[name], random_state=seed)


class Uneven(RandomScanGibbs):
    """Proposes more evenly than it says, if states are many."""

    def __init__(self, most_states=0):
        super().__init__()
        self.most_states = most_states

    def sweep(self, state):
        n_moves, n_accepted = max(1, state.n_steps // 2), 0
        for t in state.stream.generator.permutation(state.n_steps)[:n_moves]:
            with state.move(t, t + 1) as move:
                move.remove()
                log_w = move.log_weights(t)
                share = 0.5 if state.n_states > self.most_states else 1.0
                k = state.stream.categorical(share * log_w)
                move.add([k])
                n_accepted += move.accept(log_w[move.old[0]] - log_w[k])
        return n_moves, n_accepted


@pytest.mark.parametrize(
    ("most_states", "message"),
    # Beyond five states nothing can be enumerated.
    [(0, "the posterior is not invariant"), (5, "of 50 steps .* change their law")],
)
def test_wrong_proposals_are_noticed(most_states, message):
    with pytest.raises(AssertionError, match=message):
        check_sampler(Uneven(most_states), n_sweeps=100)


class Undeclared(RandomScanGibbs):
    releases_gil = True


def test_sweeps_in_python_are_declared():
    with pytest.raises(AssertionError, match=r"over 95 steps more .* releases_gil = False"):
        check_sampler(Undeclared(), n_sweeps=50)


# -- laws of recipes and sweeps -------------------------------------------------------


class Careless(StepwiseGibbs):
    """Something is wrong beside the law."""

    def __init__(self, proposal="exact", split_merge_rate=0, bug=None):
        super().__init__(proposal, split_merge_rate)
        self.bug = bug

    def make_kernel(self, state):
        return CarelessKernel(super().make_kernel(state), self.bug, self)


class CarelessKernel:
    def __init__(self, kernel, bug, recipe):
        self.kernel, self.bug, self.recipe = kernel, bug, recipe
        self.n = 0

    def sweep(self, state):
        self.n += 1
        made = self.kernel.sweep(state)
        if self.bug == "counts":
            return 3, 4
        if self.bug == "labels" and state.n_steps > 1:
            native.moves.set_slot(state, 0, 2 + (state.packed_labels[0] + 1) % 2)
        if self.bug == "own numbers":
            state.stream.generator.random(np.random.default_rng().integers(10**6))
        if self.bug == "memory" and self.n % 7 == 0:
            self.kernel.sweep(state)
        return made


class Listed(BaseSampler):
    """Changes what it is given."""

    def __init__(self, rates=(1,)):
        self.rates = list(rates)

    def make_kernel(self, state):
        return StepwiseGibbs().make_kernel(state)


class Unnamed(BaseSampler):
    def __init__(self, *rates):
        pass

    def make_kernel(self, state):
        return StepwiseGibbs().make_kernel(state)


class Picky(StepwiseGibbs):
    def check_emission(self, emission, stats):
        raise TypeError("no")


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (Careless(bug="counts"), "sweep returns 3 proposals made, 4 accepted"),
        (Careless(bug="labels"), "a sweep leaves wrong counts: "),
        (Careless(bug="own numbers"), "two chains with one seed differ"),
        (Careless(bug="memory"), "a chain that goes on from a record differs"),
        (Picky(), "works with none of"),
        ("beam", "'beam' is no skihmm.samplers.BaseSampler"),
        (StepwiseGibbs, "is no skihmm.samplers.BaseSampler"),
    ],
)
def test_careless_samplers(sampler, message):
    with pytest.raises(AssertionError, match=message):
        check_sampler(sampler, n_sweeps=50)


def test_a_careful_one_passes():
    check_sampler(Careless(), n_sweeps=100)


@pytest.mark.parametrize("sampler", [Listed(), Unnamed(1)])
def test_no_recipes(sampler):
    with pytest.raises((AssertionError, RuntimeError)):
        check_sampler(sampler, n_sweeps=50)


def test_parameters_out_of_range():
    with pytest.raises(ValueError, match="proposal"):
        check_sampler(StepwiseGibbs("no"))
