"""Split-merge trials against exact answers."""

from __future__ import annotations

import copy
from collections import Counter

import native
import numpy as np
import pytest
from reference.enumeration import DirichletEmission, GaussianEmission, HCRPEmission
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from small_models import COLUMNS, DENSITIES, MIXED, NUMBERS, Model, chain_of, random_chain
from small_models import MODELS as SYMBOLS

from skihmm import HCRPHMM
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.core._sweep_info import SweepInfo
from skihmm.datasets import make_repeating_sequence
from skihmm.emissions import NormalInverseGamma, ProductEmission
from skihmm.samplers import BlockedGibbs, StepwiseGibbs
from skihmm.samplers._kernels import InterleavedKernel, RunSplitMergeKernel, StepwiseProposal
from skihmm.testing._probes import EmissionProbe
from skihmm.transitions import HCRPTransitions

MODELS = SYMBOLS | COLUMNS | DENSITIES


def stepwise():
    return RCDKernel(StepwiseProposal())


# -- one trial ------------------------------------------------------------------------


def middle_sized(seed, bits=None, n_columns=1, n=120):
    return random_chain(
        seed,
        lambda rng: rng.zipf(1.7, size=n) % 12,
        HCRPEmission(5, 3.0, 2.0),
        n,
        n_columns,
        bits,
        starts=(0, 50, 51, 90),
        alpha=3.0,
        gamma=4.0,
    )


def assert_equal_records(first, second):
    assert first.keys() == second.keys()
    for key, value in first.items():
        if isinstance(value, dict):
            assert_equal_records(value, second[key])
        elif key == "columns":
            for one, other in zip(value, second[key], strict=True):
                assert_equal_records(one, other)
        else:
            # Thousands of records: NumPy's assertion takes ten times as long.
            assert np.array_equal(value, second[key]), key


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("whole_runs", [False, True])
def test_trials_change_what_they_say_and_nothing_else(n_columns, whole_runs):
    """Rejected: every table as before.  Accepted: one state split, or two merged."""
    kernel = RunSplitMergeKernel(None, 1) if whole_runs else InterleavedKernel(None, 1)
    outcomes = Counter()
    for seed in range(3):
        state = middle_sized(seed, n_columns=n_columns)
        for _ in range(700):
            before, labels = (
                copy.deepcopy(state.to_arrays()),
                native.moves.peek(state)["slots"].copy(),
            )
            lp = state.log_joint()
            info = kernel.sweep(state)
            ((n, n_accepted),) = info.trials.values()
            assert n == 1
            assert state.check() is None
            after = native.moves.peek(state)["slots"].copy()
            if not n_accepted:
                outcomes["rejected"] += 1
                np.testing.assert_array_equal(labels, after)
                assert_equal_records(before, state.to_arrays())
                assert state.log_joint() == lp
                continue
            was, now = set(labels.tolist()), set(after.tolist())
            moved = labels != after
            assert moved.any()
            assert len(set(labels[moved])) == len(set(after[moved])) == 1
            if len(now) > len(was):
                outcomes["split"] += 1
                assert now > was
                assert set(after[moved]) == now - was
            else:
                outcomes["merge"] += 1
                assert now < was
                assert set(labels[moved]) == was - now
    assert min(outcomes.values()) >= 5, outcomes
    assert outcomes["rejected"] > 1000


def test_trials_too_large_for_a_journal():
    """They leave the same tables behind, or the seating that they drew."""
    n, kernel, n_accepted = 100_000, InterleavedKernel(None, 1), 0
    state = middle_sized(0, n=n)
    state.start_from(np.random.default_rng(0).integers(3, size=n).astype(np.int32))
    for _ in range(8):
        before, lp = copy.deepcopy(state.to_arrays()), state.log_joint()
        accepted = bool(kernel.sweep(state).trials["split_merge"][1])
        assert state.check() is None
        assert (abs(state.log_joint() - lp) < 1e-6) == (not accepted)
        if not accepted:
            assert_equal_records(before, state.to_arrays())
        n_accepted += accepted
    assert 0 < n_accepted < 8


def test_large_trials_do_not_depend_on_earlier_ones():
    """A chain goes on as before from its record, whatever room its journal has had."""
    n, kernel = 60_000, InterleavedKernel(stepwise(), 2)
    state, resumed = (middle_sized(0, n=n) for _ in range(2))
    state.start_from(np.random.default_rng(0).integers(2, size=n).astype(np.int32))
    for _ in range(2):
        kernel.sweep(state)
        arrays, resumed.stream.state = state.canonicalise(), state.stream.state
        resumed.from_arrays(arrays)
        for chain in (state, resumed):
            kernel.sweep(chain)
        assert_equal_records(state.to_arrays(), resumed.to_arrays())


def test_trials_and_local_moves_keep_every_count():
    """Lists of steps, caches and slots stay right while the number of states changes."""
    for seed, lookup_slots in ((0, 1024), (1, 0)):
        state = middle_sized(seed)
        local = RCDKernel(StepwiseProposal(lookup_slots))
        kernel = RunSplitMergeKernel(InterleavedKernel(local, 7.5), 3.5)
        for sweep in range(150):
            if sweep % 20 == 0:
                state.canonicalise()
            kernel.sweep(state)
            assert state.check() is None


def test_a_kernel_may_change_its_chain():
    kernel = InterleavedKernel(None, 20)
    for seed, n in ((0, 120), (1, 95), (2, 300)):
        state = middle_sized(seed, n=n)
        kernel.sweep(state)
        assert state.check() is None


def test_trials_alone_pile_nothing_up():
    """What local moves would have to look at again, they find when they begin."""
    state, kernel, n_accepted = middle_sized(0), InterleavedKernel(None, 100), 0
    for _ in range(50):
        n_accepted += kernel.sweep(state).trials["split_merge"][1]
    assert n_accepted > 20
    assert native.moves.peek(state)["n_touched"] == 0


@pytest.mark.parametrize("concentration", [1e-3, 1e3])
@pytest.mark.parametrize("labels", ["single", "different"])
def test_extreme_concentrations(concentration, labels):
    """No factor underflows or becomes NaN, however long the fragments are."""
    rng = np.random.default_rng(0)
    n = 3000
    for emission in (
        HCRPEmission(7, concentration, concentration),
        DirichletEmission(7, concentration),
    ):
        state = chain_of(
            rng.integers(7, size=(n, 1)), emission, (0, 100), concentration, concentration, 2
        )
        state.start_from(np.zeros(n, int) if labels == "single" else np.arange(n))
        InterleavedKernel(None, 30).sweep(state)
        RunSplitMergeKernel(InterleavedKernel(stepwise(), 30), 10).sweep(state)
        assert state.check() is None
        assert np.isfinite(state.log_joint())


def test_one_step_has_no_pair():
    state = Model((1,), HCRPEmission(3)).state(0)
    assert InterleavedKernel(None, 4).sweep(state) == SweepInfo()
    assert InterleavedKernel(stepwise(), 2).sweep(state).n_proposed == 1
    info = RunSplitMergeKernel(stepwise(), 20).sweep(state)
    assert (info.n_proposed, info.trials) == (1, {"run_split_merge": (20, 0)})


def test_trials_of_every_kind_are_added_and_stored(tmp_path):
    one = SweepInfo(3, 2, {"split_merge": (4, 1)}, 0.5)
    total = one.plus(SweepInfo(1, 1, {"split_merge": (2, 2), "windows": (5, 0)}, 0.25))
    assert total == (4, 3, {"split_merge": (6, 3), "windows": (5, 0)}, 0.75)
    assert one == (3, 2, {"split_merge": (4, 1)}, 0.5)
    sampler = StepwiseGibbs(split_merge_rate=0.7, run_split_merge_rate=1)
    infos = []
    for file, lengths in ((None, [6]), (tmp_path, [2, 6])):
        for n_draws in lengths:
            hmm = HCRPHMM(sampler=sampler, n_burnin=3, n_draws=n_draws, thin=3, checkpoint=file)
            hmm.set_params(random_state=0).fit([[0], [1], [1]] * 20)
        infos.append([hmm.draws_[0, d].info[:3] for d in range(6)])
    assert infos[0] == infos[1]
    assert infos[0][0][2].keys() == {"split_merge", "run_split_merge"}


def values_in_two_groups(seed, bits, n=400):
    """Labels have nothing to do with the groups: some merges are better than others."""
    rng = np.random.default_rng(seed)
    y = 0.01 * rng.standard_normal(n) + 0.02 * rng.integers(2, size=n)
    y[rng.random(n) < 0.1] = np.nan
    model = Model(tuple(y), GaussianEmission(0.0, 0.1, 2.0, 2e-4), (0, 150), 3.0, 2.0)
    return model.state(RandomStream(bits), rng.permutation(np.arange(n) % 4))


CHAINS = {"symbols": middle_sized, "densities": values_in_two_groups}


# -- the probability of a run ------------------------------------------------------------


WITHOUT_TABLES = {
    name: model for name, model in (MODELS | NUMBERS | MIXED).items() if "HCRP" not in repr(model)
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", WITHOUT_TABLES)
def test_prefixes_are_those_of_seated_observations(name, backwards):
    """Emissions without tables have probabilities that depend on nothing random."""
    model = WITHOUT_TABLES[name]
    n = len(model.y)
    state = model.state(0, np.arange(n) // 2)
    probe = EmissionProbe(state.emission, state.stream)
    slots = native.moves.peek(state)["slots"]
    for start in range(n):
        for t in reversed(range(start, n)):
            probe.remove(t, slots[t])
        for k in set(slots):
            prefixes = native.moves.log_prefixes(state.emission, start, n, k, backwards)
            steps = range(n - 1, start - 1, -1) if backwards else range(start, n)
            added = np.cumsum([probe.add(t, k) for t in steps])
            for t in reversed(steps):
                probe.remove(t, k)
            np.testing.assert_allclose(prefixes, added, rtol=1e-9, atol=1e-9)
        probe.rollback()


# -- schedule -------------------------------------------------------------------------


@pytest.mark.parametrize("whole_runs", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0, 2.5, 40.0])
def test_rate_is_met(rate, whole_runs):
    state, n_sweeps = middle_sized(0), 400
    kernel = (
        RunSplitMergeKernel(stepwise(), rate) if whole_runs else InterleavedKernel(stepwise(), rate)
    )
    counts = []
    for _ in range(n_sweeps):
        info = kernel.sweep(state)
        assert info.n_accepted <= info.n_proposed == state.n_steps
        name = "run_split_merge" if whole_runs else "split_merge"
        assert info.trials.keys() <= {name}
        n, n_accepted = info.trials.get(name, (0, 0))
        assert n_accepted <= n
        counts.append(n)
    assert set(counts) <= {int(np.floor(rate)), int(np.ceil(rate))}
    fraction = rate - np.floor(rate)
    error = np.sqrt(fraction * (1 - fraction) / n_sweeps)
    assert abs(np.mean(counts) - rate) <= 4 * error


def test_rate_zero_is_the_local_kernel():
    state = middle_sized(0)
    assert isinstance(StepwiseGibbs().make_kernel(state), RCDKernel)
    assert isinstance(StepwiseGibbs(split_merge_rate=0.5).make_kernel(state), InterleavedKernel)
    both = StepwiseGibbs(split_merge_rate=1, run_split_merge_rate=2).make_kernel(state)
    assert isinstance(both, RunSplitMergeKernel)
    assert isinstance(both.local, InterleavedKernel)


# -- the estimator --------------------------------------------------------------------

RATES = ("split_merge_acceptance_rate", "run_split_merge_acceptance_rate")


@pytest.fixture(scope="module", name="X")
def repeating_sequence():
    return make_repeating_sequence(120)[0]


def fitted(X, rate, **options):
    options = {"n_burnin": 20, "n_draws": 6, "random_state": 0} | options
    sampler = StepwiseGibbs(split_merge_rate=rate, run_split_merge_rate=rate)
    return HCRPHMM(sampler, **options).fit(X)


def test_rates_are_reported_apart(X):
    draws, without = fitted(X, 2, n_chains=2).draws_, fitted(X, 0).draws_
    assert np.all(draws.acceptance_rate > 0.5)
    for name in RATES:
        rates = getattr(draws, name)
        assert rates.shape == draws.shape
        assert np.all((rates >= 0) & (rates <= 1))
        np.testing.assert_array_equal(draws.to_dict()["sample_stats"][name], rates)
        assert np.all(np.isnan(getattr(without, name)))
    assert np.any(draws.split_merge_acceptance_rate != draws.run_split_merge_acceptance_rate)


class Lasting(NormalInverseGamma):
    """Stands for emissions whose states last."""

    has_lasting_states = True


def test_auto_makes_trials_of_whole_runs_if_states_last(X):
    symbols = StepwiseGibbs(split_merge_rate=1, block_share=0.25)
    numbers = BlockedGibbs(10, split_merge_rate=1, run_split_merge_rate=2, drawn_share="auto")
    lasting = BlockedGibbs(8, run_split_merge_rate=4)
    staying = BlockedGibbs(10, run_split_merge_rate=4)
    for emission, sampler in (
        ("hcrp", symbols),
        (ProductEmission([("a", "hcrp", [0])]), symbols),
        (NormalInverseGamma(), numbers),
        (ProductEmission([("a", NormalInverseGamma(), [0])]), numbers),
        (Lasting(), lasting),
        (ProductEmission([("a", Lasting(), [0])]), lasting),
    ):
        hmm = HCRPHMM("auto", emission, n_burnin=1, n_draws=1, random_state=0).fit(X)
        assert str(hmm.sampler_) == str(sampler)
    options = {"n_burnin": 1, "n_draws": 1, "random_state": 0}
    given = np.c_[X, np.arange(len(X)) % 2]
    for emission, dwell, sampler in (
        (NormalInverseGamma(), {}, numbers),
        (Lasting(), {}, lasting),
        (NormalInverseGamma(), {"expected_dwell": 5}, staying),
        (Lasting(), {"expected_dwell": 5}, lasting),
    ):
        transitions = HCRPTransitions(context_features=[-1], **dwell)
        hmm = HCRPHMM("auto", emission, transitions, **options).fit(given)
        assert str(hmm.sampler_) == str(sampler)
    stepwise = HCRPHMM("stepwise", Lasting(), **options)
    assert str(stepwise.fit(X).sampler_) == "StepwiseGibbs()"


def test_states_that_overlap_are_divided():
    """Without restricted scans many draws have one state."""
    sampler = BlockedGibbs(10, run_split_merge_rate=6)
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(400, 6))
        X[:, 0] += 3 * (np.arange(400) // 8 % 2)
        hmm = HCRPHMM(
            sampler,
            emission="gaussian",
            init="single",
            n_burnin=60,
            n_draws=10,
            thin=1,
            random_state=seed,
        )
        assert hmm.fit(X).draws_.n_states.min() >= 2


def test_warm_start_continues_the_stream(X):
    once = fitted(X, 1.5, n_draws=12)
    twice = fitted(X, 1.5, warm_start=True).fit(X)
    np.testing.assert_array_equal(once.draws_.lp, twice.draws_.lp)
    for name in RATES:
        np.testing.assert_array_equal(getattr(once.draws_, name), getattr(twice.draws_, name))


def test_grid_search_over_the_rates(X):
    grid = {"sampler__split_merge_rate": [0, 2], "sampler__run_split_merge_rate": [0, 2]}
    hmm = HCRPHMM("stepwise", n_burnin=5, n_draws=2, n_particles=5, random_state=0)
    search = GridSearchCV(hmm, grid, cv=TimeSeriesSplit(2)).fit(X)
    assert search.best_params_.keys() == grid.keys()
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    sampler = StepwiseGibbs("exact", 2, 1.5)
    assert clone(sampler).get_params() == {
        "proposal": "exact",
        "split_merge_rate": 2,
        "run_split_merge_rate": 1.5,
        "block_share": 0,
    }
