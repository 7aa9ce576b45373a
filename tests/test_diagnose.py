"""diagnose: what is noticed, what is not, and whether the advice helps."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from scipy import signal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils._testing import ignore_warnings

from skihmm import HCRPHMM
from skihmm._draws import Draw, PosteriorDraws
from skihmm.datasets import make_automaton_sequence, make_repeating_sequence
from skihmm.emissions import NormalInverseWishart
from skihmm.metrics import Diagnosis, effective_sample_size, rhat
from skihmm.metrics._diagnosis import Setting, _rounded_up
from skihmm.posterior._partitions import Loss
from skihmm.samplers import BaseSampler, BlockedGibbs, StepwiseGibbs, SweepInfo
from skihmm.samplers._names import SAMPLERS
from skihmm.transitions import HCRPTransitions

KEYS = ["mean", "rhat", "ess_bulk", "ess_tail", "ess_per_second"]
TRANSITIONS = ["alpha", "gamma"]
EMISSIONS = ["emission_alpha", "emission_gamma"]
ALWAYS = ["lp", "n_states", "occupancy_entropy"]


@pytest.fixture
def rng(global_random_seed):
    return np.random.default_rng(global_random_seed)


@pytest.fixture(scope="module")
def easy():
    """Thirty steps that say little: the posterior is wide and soon seen."""
    return np.random.default_rng(1).integers(3, size=(30, 1))


# -- draws made by hand ---------------------------------------------------------------


def made_draws(lp, paths=None, acceptance=1.0, concentrations=None, n_stages=1):
    """Draws with these numbers; `paths` are few states per step, (chain, draw, step)."""
    chains = []
    n_proposed = 0 if np.isnan(acceptance) else 10**6
    n_accepted = round(n_proposed * acceptance) if n_proposed else 0
    info = SweepInfo(n_proposed, n_accepted, seconds=0.01)
    for c, row in enumerate(lp):
        chain = []
        for d, value in enumerate(row):
            path = np.zeros(40, int) if paths is None else np.asarray(paths[c][d])
            states, counts = np.unique(path, return_counts=True)
            seating = {
                "rows": np.zeros_like(states),
                "dishes": states.astype(np.int32),
                "n_customers": counts,
                "n_tables": np.ones_like(states),
                "sizes": counts,
            }
            alpha = 1.0 if concentrations is None else concentrations[c][d]
            draw = Draw(
                n_states=len(states),
                lp=value,
                states=path.astype(np.int32),
                last_state=int(path[-1]),
                transitions={
                    **seating,
                    "alpha": alpha,
                    "gamma": 1.0,
                    "n_stages": n_stages,
                },
                emission={},
                sweep=d + 1,
                info=info,
            )
            chain.append(draw)
        chains.append(chain)
    return PosteriorDraws(chains)


def judged(draws, sampler=None, **setting):
    default = {"n_burnin": 100, "thin": 2, "n_samples": 40, "shares_start": False}
    return Diagnosis(
        draws,
        (0, 0),
        Setting(sampler or StepwiseGibbs(split_merge_rate=2), **{**default, **setting}),
    )


def autoregressions(rng, rho, shape):
    noise = rng.normal(size=(shape[0], shape[1] + 500))
    return signal.lfilter([1.0], [1.0, -rho], noise)[:, 500:]


@pytest.mark.parametrize("shape", [(1, 250), (4, 100), (4, 1000)])
def test_noise_is_no_trouble(shape, rng):
    found = judged(made_draws(rng.normal(size=shape)))
    assert found.warnings == found.advice == []
    assert found.suggested_params == {}
    assert str(found).startswith("No sign of trouble: R-hat at most 1.0")


@pytest.mark.statistical
def test_false_alarms_of_chains_with_memory():
    """Series that are long enough."""
    alarms = 0
    for seed in range(20):
        values = autoregressions(np.random.default_rng(seed), 0.6, (4, 200))
        alarms += bool(judged(made_draws(values)).warnings)
    assert alarms <= 1


def noisy_paths(rng, base, n_draws):
    """A path of two states in which a tenth of the steps is random in every draw."""
    paths = np.tile(base, (n_draws, 1))
    wrong = rng.random(paths.shape) < 0.1
    paths[wrong] = rng.integers(2, size=wrong.sum())
    return paths


@pytest.mark.parametrize("odd", [0, 3])
def test_partitions_that_only_the_distance_tells_apart(odd, rng):
    """Log joint and occupancies are those of the other chains."""
    halves, stripes = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    paths = [noisy_paths(rng, stripes if c == odd else halves, 100) for c in range(4)]
    lp = rng.normal(size=(4, 100))
    found = judged(made_draws(lp, paths))
    assert [name for name, row in found.table.items() if row["rhat"] > 1.05] == [
        "distance"
    ]
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("Chains disagree about distance to the selected")
    assert found.warnings[0].endswith("selected draw in the mean.")
    assert "They are in different partitions of the steps, 0." in found.warnings[0]
    assert found.suggested_params == {
        "sampler__split_merge_rate": 13,
        "n_burnin": 600,
    }
    # All chains in the same one.
    paths = [noisy_paths(rng, halves, 100) for _ in range(4)]
    assert judged(made_draws(lp, paths)).warnings == []


def test_chains_that_do_not_move():
    """Every chain in another partition, without any noise."""
    bases = [np.repeat([0, 1], 20), np.tile([0, 1], 20)]
    paths = [np.tile(base, (50, 1)) for base in bases]
    found = judged(made_draws([[-3.0] * 50] * 2, paths))
    assert "distance to the selected draw (R-hat inf)" in found.warnings[0]
    assert np.isnan(found.table["lp"]["rhat"])


def test_a_chain_in_a_worse_mode(rng):
    lp = rng.normal(size=(4, 100))
    lp[2] -= 30
    found = judged(made_draws(lp), sampler=StepwiseGibbs())
    assert re.match(
        r"Starts disagree: the log joint probability of chain 2 stays (29|30)\.\d nats "
        r"below that of chain [013], the best one\.",
        found.warnings[0],
    )
    # (Said once.)
    assert "below" not in found.warnings[1]
    assert found.advice[0].startswith("More chains (n_chains) and fits with another init")
    assert found.suggested_params == {"n_burnin": 600, "sampler__split_merge_rate": 2}


def test_one_chain_better_than_the_many(rng):
    """R-hat alone sees little of one chain in a hundred."""
    lp = rng.normal(size=(100, 40))
    lp[7] += 30
    found = judged(made_draws(lp))
    assert found.table["lp"]["rhat"] < 1.05
    assert re.match(
        r"Starts disagree: the log joint probability of chains 0, 1, .* and 99 stays "
        r"(28|29)\.\d to 3\d\.\d nats below that of chain 7, the best one\.",
        found.warnings[0],
    )
    assert str(found).startswith("Do not trust these draws yet.")
    # Levels that differ by less than draws do are no modes.
    lp[7] -= 29
    assert judged(made_draws(lp)).warnings == []


def path_with(n_large, n_single, n_steps):
    """States of one step, and equal ones of all the others."""
    rest = np.arange(n_steps - n_single) % n_large
    return np.concatenate([rest, n_large + np.arange(n_single)])


@pytest.mark.parametrize(
    ("n_large", "n_single", "n_steps", "noticed"),
    [
        (5, 20, 40, True),
        (5, 5, 40, True),
        (6, 5, 40, False),
        # Outliers.
        (2, 4, 40, False),
        (2, 6, 400, False),
        (2, 20, 400, True),
    ],
)
def test_single_steps(n_large, n_single, n_steps, noticed, rng):
    path = path_with(n_large, n_single, n_steps)
    for shape in ((4, 100), (1, 3)):
        draws = made_draws(rng.normal(size=shape), np.tile(path, (*shape, 1)))
        found = judged(draws, n_samples=n_steps)
        texts = [text for text in found.warnings if "single steps" in text]
        if noticed:
            (text,) = texts
            n_states = n_large + n_single
            assert f"steps: {n_single} of {n_states} in the mean." in text
            assert str(found).startswith("Do not trust these draws yet.")
            assert 'init="single"' in found.advice[-1]
            assert "kmeans" in found.advice[-1]
            found = judged(draws, n_samples=n_steps, has_numbers=False)
            assert 'init="single"' in found.advice[-1]
            assert "kmeans" not in str(found)
        else:
            assert texts == []


class NoParameters(BaseSampler):
    """A sampler of another package."""

    def make_kernel(self, state):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("sampler", "advised"),
    [
        (StepwiseGibbs(), {"sampler__split_merge_rate": 2}),
        (BlockedGibbs(split_merge_rate=1.5), {"sampler__split_merge_rate": 2}),
        (StepwiseGibbs(split_merge_rate=2), {"sampler__split_merge_rate": 13}),
        (StepwiseGibbs(split_merge_rate=13), {}),
        (NoParameters(), {"sampler": "auto"}),
    ],
)
def test_another_sampler_is_advised(sampler, advised, rng):
    lp = rng.normal([[0], [9]], size=(2, 100))
    found = judged(made_draws(lp), sampler=sampler)
    assert found.suggested_params == {**advised, "n_burnin": 600}
    for name, value in advised.items():
        shown = f'"{value}"' if isinstance(value, str) else value
        assert any(text.startswith(f"{name}={shown}") for text in found.advice)


@pytest.mark.parametrize("n_chains", [1, 4])
@pytest.mark.parametrize(("sign", "word"), [(1, "rising"), (-1, "falling")])
def test_chains_on_their_way(n_chains, sign, word, rng):
    slope = sign * np.linspace(0, 8, 120)
    found = judged(made_draws(slope + rng.normal(size=(n_chains, 120))))
    who = "chain 0" if n_chains == 1 else "chains 0, 1, 2 and 3"
    assert found.warnings == [
        f"The log joint probability of {who} is still {word}: the burn-in was too short."
    ]
    # 100 + 2 * 120 sweeps, twice.
    assert found.suggested_params == {"n_burnin": 680}
    assert found.advice == ["n_burnin=680 (now 100): twice all sweeps so far."]


def test_one_chain_of_four_on_its_way(rng):
    lp = rng.normal(size=(4, 120))
    lp[1] += np.linspace(-6, 0, 120)
    assert judged(made_draws(lp)).warnings[0] == (
        "The log joint probability of chain 1 is still rising: the burn-in was too short."
    )


def test_slight_trends_of_all_chains_add_up(rng):
    lp = rng.normal(size=(8, 100)) + np.linspace(0, 1.7, 100)
    found = judged(made_draws(lp))
    assert "still rising" in found.warnings[0]


@pytest.mark.parametrize(
    ("rho", "shape", "advised"),
    [
        # Few draws that are nearly independent: more of them.
        (0.0, (1, 60), ["n_draws"]),
        # Many that resemble one another: further apart.
        (0.95, (4, 500), ["thin"]),
        # Both.
        (0.9, (2, 150), ["n_draws", "thin"]),
    ],
)
def test_slow_chains(rho, shape, advised, rng):
    values = autoregressions(rng, rho, shape)
    found = judged(made_draws(values), sampler=StepwiseGibbs(split_merge_rate=13))
    worth = effective_sample_size(values)
    assert len(found.warnings) == 1
    assert f"{values.size} draws are worth only {worth:.0f} indep" in found.warnings[0]
    params = found.suggested_params
    assert sorted(params) == advised
    # As many more sweeps as the effective sample size is short of the aim.
    sweeps = params.get("thin", 2) * params.get("n_draws", shape[1])
    factor = sweeps / (2 * shape[1]) / (400 / worth)
    assert 0.99 < factor < 1.5


def test_very_slow_chains_get_another_sampler_first(rng):
    draws = made_draws(autoregressions(rng, 0.99, (4, 1500)))
    assert judged(draws).suggested_params == {"sampler__split_merge_rate": 13}
    with_most = judged(draws, sampler=StepwiseGibbs(split_merge_rate=13))
    assert with_most.suggested_params["thin"] > 16


def test_long_runs_are_advised_in_plain_figures(rng):
    few = made_draws(np.cumsum(rng.normal(size=(1, 100)), axis=1))
    with_most = judged(few, sampler=StepwiseGibbs(split_merge_rate=13))
    assert re.search(r": \d{3,} times the sweeps", " ".join(with_most.advice))


def test_trials_are_not_advised_for_a_slow_concentration(rng):
    alpha = np.exp(autoregressions(rng, 0.99, (4, 1500)) / 9)
    draws = made_draws(rng.normal(size=alpha.shape), concentrations=alpha)
    assert list(judged(draws).suggested_params) == ["thin"]


def test_advice_on_size_is_met(rng):
    """The advised run of the same process has the size aimed at."""
    values = autoregressions(rng, 0.95, (4, 500))
    sampler = StepwiseGibbs(split_merge_rate=13)
    params = judged(made_draws(values), sampler).suggested_params
    step = params["thin"] // 2
    longer = autoregressions(rng, 0.95, (4, 500 * step))[:, ::step]
    found = judged(made_draws(longer), thin=params["thin"])
    assert found.warnings == []
    assert 200 < found.table["lp"]["ess_bulk"] < 800


@pytest.mark.parametrize("n_draws", [1, 2, 3, 5, 19])
def test_few_draws(n_draws, rng):
    found = judged(made_draws(rng.normal(size=(4, n_draws))))
    assert len(found.warnings) == 1
    if n_draws == 1:
        assert found.warnings[0].startswith("There is one draw per chain")
    else:
        assert f"only {n_draws} draws per chain" in found.warnings[0]
    assert found.suggested_params == {"n_draws": 100}
    assert np.isnan(found.table["lp"]["rhat"]) == (n_draws < 4)
    assert "draws each" in str(found) or n_draws == 1


def test_chains_of_different_lengths(rng):
    rows = [rng.normal(size=n) for n in (200, 3, 150, 0)]
    found = judged(made_draws(rows))
    assert found.chains == [0, 2]
    assert found.n_draws == 150
    assert "Left out, because of few draws: chains 1 and 3." in found.notes
    assert found.table["lp"]["rhat"] == rhat([rows[0][:150], rows[2]])
    assert found.warnings == []
    # Chains keep their numbers.
    rows[2] = rows[2] - 20
    assert "of chain 2 stays" in judged(made_draws(rows)).warnings[0]


def test_numbers_that_are_not_finite(rng):
    lp = rng.normal(size=(2, 50))
    lp[1, 3] = -np.inf
    found = judged(made_draws(lp, concentrations=rng.normal(size=(2, 50))))
    assert all(np.isnan(value) for value in found.table["lp"].values())
    assert found.table["alpha"]["ess_bulk"] > 0
    str(found)


@pytest.mark.parametrize("rate", [0.0, 0.19, 0.21, np.nan])
@pytest.mark.parametrize(
    ("sampler", "advised"),
    [
        (BlockedGibbs(block_size=20), {"sampler__block_size": 5}),
        (BlockedGibbs(block_size=1000), {"sampler__block_size": 10}),
        (BlockedGibbs(block_size=2), {"sampler__block_size": 1}),
        (BlockedGibbs(block_size=1), {"sampler": "auto"}),
        (BlockedGibbs(), {"sampler__block_size": 2}),
        (StepwiseGibbs("rcd"), {"sampler__proposal": "exact"}),
        (NoParameters(), {"sampler": "auto"}),
    ],
)
def test_low_acceptance(rate, sampler, advised, rng):
    draws = made_draws(rng.normal(size=(4, 100)), acceptance=rate)
    found = judged(draws, sampler=sampler)
    np.testing.assert_equal(found.acceptance_rate, rate)
    if rate < 0.2:
        assert found.warnings == [
            f"Only {100 * rate:.1f} % of the proposals were accepted."
        ]
        assert found.suggested_params == advised
    else:
        assert found.warnings == []


@pytest.mark.parametrize(
    ("size", "n_stages", "shorter"),
    [(None, 3, 4), (None, 5, 6), (40, 5, 10), (6, 5, None)],
)
def test_blocks_that_are_advised_are_longer_than_the_shortest_dwell(
    size, n_stages, shorter, rng
):
    lp = rng.normal(size=(4, 100))
    draws = made_draws(lp, acceptance=0.1, n_stages=n_stages)
    found = judged(draws, sampler=BlockedGibbs(block_size=size))
    assert len(found.warnings) == 1
    assert found.suggested_params.get("sampler__block_size") == shorter
    model = HCRPHMM(BlockedGibbs(), transitions=HCRPTransitions(min_dwell=n_stages))
    model.set_params(**found.suggested_params, n_burnin=0, n_draws=1)
    model.fit([[0], [1]] * 20)


def test_moderate_acceptance_counts_if_there_is_other_trouble(rng):
    for rate, counts in ((0.49, True), (0.51, False)):
        draws = made_draws(autoregressions(rng, 0.98, (4, 100)), acceptance=rate)
        found = judged(draws, sampler=BlockedGibbs(block_size=20))
        text = f"Only {100 * rate:.1f} % of the proposals were accepted."
        assert (text in found.warnings) == counts
        assert (found.suggested_params.get("sampler__block_size") == 5) == counts


def test_advice_for_another_sampler_replaces_that_for_this_one(rng):
    draws = made_draws(rng.normal([[0], [9]], size=(2, 100)), acceptance=0.1)
    found = judged(draws, sampler=BlockedGibbs(block_size=1))
    assert found.suggested_params == {"n_burnin": 600, "sampler": "auto"}


def test_notes(rng):
    lp = rng.normal(size=(1, 100))
    assert "n_chains=4" in judged(made_draws(lp)).notes[0]
    two = made_draws(rng.normal(size=(2, 100)))
    assert judged(two).notes == []
    assert "All chains began at the same" in judged(two, shares_start=True).notes[0]
    equal = judged(made_draws(np.zeros((2, 100))))
    assert "All draws are equal." in equal.notes
    assert equal.warnings == []
    assert str(equal).startswith("No sign of trouble.")


def test_numbers_are_rounded_up():
    for value, expected in ((1, 1), (9.5, 10), (100, 100), (101, 110), (1234, 1300)):
        assert _rounded_up(value) == expected
    assert _rounded_up(0.3 * 1000) == 300


def test_distance_of_two_paths(rng):
    for name in ("vi", "binder"):
        one, other = rng.integers(5, size=(2, 30)).astype(np.int32)
        loss = Loss(name, 30)
        together = [path[:, None] == path[None] for path in (one, other)]
        if name == "binder":
            expected = (together[0] != together[1]).sum() / (30 * 29)
        else:
            # Every step has the shares of both states, over what they have in common.
            sizes = [np.log(pairs.sum(axis=1)) for pairs in together]
            joint = np.log((together[0] & together[1]).sum(axis=1))
            expected = np.mean(sizes[0] + sizes[1] - 2 * joint)
        assert loss.distance(one, other) == pytest.approx(expected)
        assert loss.distance(one, one) == 0
        assert loss.distance(one, rng.permutation(5).astype(np.int32)[one]) < 1e-12


# -- fits -----------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_good_runs_raise_no_alarm(easy, seed):
    model = HCRPHMM(n_chains=4, n_draws=200, thin=20, random_state=seed)
    found = model.fit(easy).diagnose(verbose=False)
    assert found.warnings == []
    assert found.notes == []


def test_table(easy):
    model = HCRPHMM(n_chains=2, n_burnin=50, n_draws=40, random_state=0).fit(easy)
    draws = model.draws_
    found = model.diagnose(verbose=False)
    assert list(found.table) == [
        "lp", "n_states", *TRANSITIONS, *EMISSIONS, "occupancy_entropy", "distance",
    ]  # fmt: skip
    paths = draws.states
    entropies = np.empty((2, 40))
    for index in np.ndindex(2, 40):
        shares = np.bincount(paths[index]) / 30
        shares = shares[shares > 0]
        entropies[index] = -(shares * np.log(shares)).sum()
    series = {name: getattr(draws, name) for name in list(found.table)[1:6]}
    series["lp"] = draws.summed_lp()
    seconds = draws.seconds.sum()
    for name, values in (*series.items(), ("occupancy_entropy", entropies)):
        row = found.table[name]
        assert list(row) == KEYS
        assert row["mean"] == pytest.approx(values.mean())
        assert row["rhat"] == pytest.approx(rhat(values), abs=1e-3)
        assert row["ess_bulk"] == pytest.approx(effective_sample_size(values), rel=0.05)
        assert row["ess_per_second"] == pytest.approx(row["ess_bulk"] / seconds)
    assert found.seconds == pytest.approx(seconds)
    assert found.table["distance"]["mean"] > 0
    text = str(found)
    heads, *rows = text.split("\n\n")[1].splitlines()
    assert [row.split()[0] for row in rows] == list(found.table)
    assert all(heads.split() == list(row) for row in found.table.values())
    assert f"{found.table['lp']['rhat']:.2f}" in text
    assert max(map(len, text.splitlines()[:-1])) <= 90


def test_verdict_is_printed(fitted, capsys):
    found = fitted.diagnose(verbose=True)
    assert capsys.readouterr().out == f"{found}\n"
    print(fitted.diagnose())
    assert capsys.readouterr().out == f"{found}\n"
    # What notebooks show.
    assert repr(pickle.loads(pickle.dumps(found))) == str(found)
    with pytest.raises(TypeError, match="verbose=1; expected True or False"):
        fitted.diagnose(verbose=1)
    with pytest.raises(NotFittedError):
        HCRPHMM().diagnose()


def test_stuck_chains_are_noticed_and_the_advice_helps():
    """One state per letter is a local optimum that single steps hardly ever leave."""
    X, _ = make_repeating_sequence(100)
    model = HCRPHMM("stepwise", n_chains=4, n_draws=50, random_state=3).fit(X)
    found = model.diagnose(verbose=False)
    assert found.warnings[0].startswith("Starts disagree: ")
    assert found.warnings[1].startswith("Chains disagree about ")
    assert found.table["distance"]["rhat"] > 1.5
    assert found.suggested_params["sampler__split_merge_rate"] == 2
    assert np.ptp(np.median(model.draws_.n_states, axis=1)) > 0
    lp = model.draws_.lp.mean()
    for _ in range(5):
        if not found.warnings:
            break
        model.set_params(**found.suggested_params).fit(X)
        found = model.diagnose(verbose=False)
    assert found.warnings == []
    assert (np.median(model.draws_.n_states, axis=1) == 8).all()
    assert model.draws_.lp.mean() > lp + 10


def test_climbing_chains_are_noticed_and_the_advice_helps():
    X, _ = make_automaton_sequence(1500, random_state=0)
    model = HCRPHMM(
        "stepwise", init="random", n_burnin=1, n_draws=40, thin=1, n_chains=2,
        random_state=0,
    ).fit(X)  # fmt: skip
    found = model.diagnose(verbose=False)
    assert "still rising: the burn-in was too short" in found.warnings[0]
    before = model.draws_.lp.mean()
    assert found.suggested_params["n_burnin"] == 82
    model.set_params(**found.suggested_params).fit(X)
    assert model.draws_.lp.mean() > before + 50


def test_low_acceptance_is_noticed_and_the_advice_helps():
    X = np.random.default_rng(0).integers(4, size=(200, 1))
    model = HCRPHMM(
        BlockedGibbs(block_size=200), n_burnin=50, n_draws=40, random_state=0
    ).fit(X)
    found = model.diagnose(verbose=False)
    rate = found.acceptance_rate
    assert rate < 0.5
    assert f"Only {100 * rate:.1f} % of the proposals" in " ".join(found.warnings)
    assert found.suggested_params["sampler__block_size"] == 50
    model.set_params(sampler__block_size=50).fit(X)
    assert model.diagnose(verbose=False).acceptance_rate > rate + 0.1


def test_without_paths(easy):
    params = {"n_chains": 2, "n_burnin": 50, "n_draws": 40, "random_state": 0}
    lean = HCRPHMM(store_states=False, **params).fit(easy)
    found = lean.diagnose(verbose=False)
    assert "distance" not in found.table
    assert any("Set store_states=True" in note for note in found.notes)
    # What does not need them is the same.
    whole = HCRPHMM(**params).fit(easy).diagnose(verbose=False)
    for name, row in found.table.items():
        for key in KEYS[:4]:
            assert row[key] == whole.table[name][key]
    # Some draws have them.
    lean.set_params(warm_start=True, store_states=True).fit(easy)
    found = lean.diagnose(verbose=False)
    assert found.n_draws == 80
    assert "distance" not in found.table


@ignore_warnings(category=UserWarning)
def test_fits_that_were_stopped(sequence):
    params = {"n_burnin": 5, "n_draws": 40, "thin": 1, "n_chains": 3, "random_state": 0}

    def ended_at(sweep):
        return lambda report: report.chain == 1 and report.sweep == sweep

    for sweep, chains in ((3, [0, 2]), (40, [0, 1, 2])):
        model = HCRPHMM(callback=ended_at(sweep), **params).fit(sequence)
        found = model.diagnose(verbose=False)
        assert found.chains == chains
        assert found.n_draws == model.draws_.n_draws[chains].min()
    # No chain has a draw.
    model = HCRPHMM(callback=bool, **params).fit(sequence)
    found = model.diagnose(verbose=False)
    assert found.n_draws == 1
    assert found.warnings[0].startswith("There is one draw per chain")


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler(sampler, easy):
    model = HCRPHMM(sampler, n_burnin=5, n_draws=25, n_chains=2, random_state=0)
    found = model.fit(easy).diagnose(verbose=False)
    assert all(row["mean"] == row["mean"] for row in found.table.values())
    assert found.n_draws == 25
    str(found)


FIXED = HCRPTransitions(concentration_prior=None)


@pytest.mark.parametrize(
    ("X", "params"),
    [
        (np.array([[3]]), {}),
        (np.array([[3]]), {"transitions": FIXED}),
        (np.full((12, 1), np.nan), {}),
        (np.random.default_rng(0).normal(size=(20, 2)), {"emission": "gaussian"}),
        (np.random.default_rng(0).poisson(3, size=(20, 1)), {"emission": "poisson"}),
        (np.zeros((5, 1), int), {"init": "single", "emission": "dirichlet"}),
        (
            np.zeros((5, 1), int),
            {"init": [0, 1, 2, 3, 4], "transitions": HCRPTransitions(1e-3)},
        ),
        (
            np.arange(6).reshape(6, 1),
            {"transitions": clone(FIXED).set_params(gamma=100.0)},
        ),
        (np.zeros((3, 1), int), {"n_burnin": 0, "n_draws": 1, "thin": 1}),
    ],
)
@pytest.mark.filterwarnings("ignore:All entries of X are missing")
def test_nothing_raises(X, params):
    for n_chains in (1, 2):
        settings = {"n_burnin": 2, "n_draws": 25, "thin": 1, "random_state": 0}
        model = HCRPHMM(n_chains=n_chains, **{**settings, **params}).fit(X)
        found = model.diagnose(verbose=False)
        assert set(ALWAYS) <= set(found.table)
        assert ("alpha" in found.table) == (
            model.transitions_.concentration_prior is not None
        )
        assert str(found)
        shares = isinstance(params.get("init"), list) or params.get("init") == "single"
        assert (n_chains > 1 and shares) == any(
            note.startswith("All chains began") for note in found.notes
        )


def test_known_states_and_more_data(easy):
    states = np.where(np.arange(30) < 6, easy[:, 0], -1)
    model = HCRPHMM(n_burnin=2, n_draws=25, random_state=0).fit(easy, states=states)
    assert model.diagnose(verbose=False).n_draws == 25
    model.partial_fit(easy[:10])
    found = model.diagnose(verbose=False)
    assert "distance" in found.table


@pytest.mark.statistical
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_seats_do_not_make_easy_data_look_hard(global_random_seed, seed):
    states = np.repeat([0, 1, 2] * 4, 30)
    rng = np.random.default_rng(global_random_seed)
    X = np.array([[0, 0], [6, 6], [-6, 6]])[states] + rng.normal(size=(360, 2))
    hmm = HCRPHMM(emission="gaussian", n_chains=4, random_state=seed).fit(X)
    row = hmm.diagnose(verbose=False).table["lp"]
    assert row["rhat"] < 1.15
    assert row["ess_bulk"] > effective_sample_size(hmm.draws_.lp)


# -- data that were cut into single steps ---------------------------------------------


@pytest.fixture(scope="module")
def noise_fits():
    """White noise in many columns, from two starts, under a prior that fits badly."""
    X = np.random.default_rng(0).normal(size=(300, 8))
    prior = NormalInverseWishart(mean=0.0, strength=0.1, dof=10, scale=0.1 * np.eye(8))
    params = {"n_burnin": 20, "n_draws": 30, "thin": 1, "n_chains": 2, "random_state": 0}
    return {
        init: HCRPHMM(emission=prior, init=init, **params).fit(X)
        for init in ("particle_filter", "single")
    }


def test_over_segmentation_is_noticed(noise_fits):
    model = noise_fits["particle_filter"]
    assert model.n_states_ > 100
    found = model.diagnose(verbose=False)
    assert any(text.startswith("Most states are single") for text in found.warnings)
    # These chains agree.
    assert not any("disagree" in text for text in found.warnings)
    assert noise_fits["single"].n_states_ == 1
    found = noise_fits["single"].diagnose(verbose=False)
    assert not any("single steps" in text for text in found.warnings)


def test_starts_that_disagree(noise_fits):
    chains = [chain for fit in noise_fits.values() for chain in fit.draws_._chains]
    found = judged(PosteriorDraws(chains), n_samples=300)
    (gaps,) = re.findall(
        r"^Starts disagree: the log joint probability of chains 0 and 1 stays ([\d.]+) "
        r"to ([\d.]+) nats below that of chain [23], the best one",
        found.warnings[0],
    )
    assert 200 < float(gaps[0]) < float(gaps[1]) < 400
    assert any("another init" in text for text in found.advice)
    assert "n_burnin" in found.suggested_params
