"""diagnose: the verdict, its reasons, what is no reason, and whether the advice helps."""

from __future__ import annotations

import html
import pickle
import re
from itertools import permutations

import numpy as np
import pytest
from scipy import signal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils._testing import ignore_warnings

from skihmm import HCRPHMM
from skihmm._draws import Draw, PosteriorDraws
from skihmm._using.partitions import Loss
from skihmm.datasets import make_automaton_sequence, make_repeating_sequence
from skihmm.emissions import AutoregressiveNormal, NormalInverseWishart
from skihmm.metrics import Diagnosis, Finding, _clusters, effective_sample_size, rhat
from skihmm.metrics._diagnosis import Setting, _rounded_up
from skihmm.metrics._finding import Misfits
from skihmm.metrics._labels import agreement
from skihmm.samplers import BaseSampler, BlockedGibbs, StepwiseGibbs, SweepInfo
from skihmm.samplers._names import SAMPLERS
from skihmm.transitions import HCRPTransitions

KEYS = ["mean", "rhat", "ess_bulk", "ess_tail", "ess_per_second"]
TRANSITIONS = ["alpha", "gamma"]
EMISSIONS = ["emission_alpha", "emission_gamma"]
ALWAYS = ["lp", "n_states", "occupancy_entropy"]


@pytest.fixture(scope="module")
def easy():
    """Thirty steps that say little: the posterior is wide and soon seen."""
    return np.random.default_rng(1).integers(3, size=(30, 1))


# -- draws made by hand ---------------------------------------------------------------


def made_draws(lp, paths=None, acceptance=1.0, concentrations=None, log_weights=None):
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
            path = np.searchsorted(states, path)
            states = np.arange(len(states))
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
                transitions={**seating, "alpha": alpha, "gamma": 1.0},
                emission={},
                sweep=d + 1,
                info=info,
            )
            chain.append(draw)
        chains.append(chain)
    return PosteriorDraws(chains, log_weights=log_weights)


WRONG = Misfits([Finding("time", 0.1, "It is wrong", "take another")])


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


def noisy_paths(rng, base, n_draws, noise=0.02):
    """A path of two states, of which some steps are random in every draw."""
    paths = np.tile(base, (n_draws, 1))
    wrong = rng.random(paths.shape) < noise
    paths[wrong] = rng.integers(2, size=wrong.sum())
    return paths


HALVES, STRIPES = np.repeat([0, 1], 20), np.tile([0, 1], 20)


def firm_draws(rng, shape, **parameters):
    paths = [noisy_paths(rng, HALVES, shape[1]) for _ in range(shape[0])]
    return made_draws(rng.normal(size=shape), paths, **parameters)


@pytest.mark.parametrize("shape", [(1, 250), (4, 100), (4, 1000)])
def test_noise_is_no_trouble(shape, rng):
    found = judged(firm_draws(rng, shape), scores=rng.normal(size=(shape[0], 8)) / 10)
    assert found.warnings == []
    assert found.suggested_params == {}
    assert found.command == ""
    assert found.firm >= 0.9
    assert found.verdict == (
        f"Labels are reliable{' within this chain' * (shape[0] == 1)}: on {100 * found.firm:.0f} % "
        "of the steps, at least nine of ten posterior draws give the same state."
    )
    lines = str(found).splitlines()
    assert " ".join(line.strip() for line in lines[:2]) == found.verdict
    assert lines[2] == "Number of states: 2 (100 %)."
    assert re.match(r"Score of these data: good to 0\.\d+ nats per step\.", lines[3])


@pytest.mark.parametrize("kind", ["trend", "modes", "slow"])
def test_the_joint_probability_alone_is_no_alarm(kind, rng):
    """It rises, and differs by chain, where labels are right."""
    lp = {
        "trend": np.linspace(0, 50, 120) + rng.normal(size=(4, 120)),
        "modes": rng.normal(size=(4, 120)) - 30 * np.arange(4)[:, None],
        "slow": autoregressions(rng, 0.99, (4, 120)),
    }[kind]
    paths = [noisy_paths(rng, HALVES, 120) for _ in range(4)]
    found = judged(made_draws(lp, paths))
    assert found.table["lp"]["rhat"] > 1.05
    assert found.warnings == found.notes == []


@pytest.mark.parametrize(
    ("n_random", "word", "share"),
    [
        (0, "reliable", 1.0),
        (4, "reliable", 0.9),
        (20, "uncertain in part", 0.5),
        (30, "uncertain", 0.25),
    ],
)
def test_how_firm_labels_are(n_random, word, share, rng):
    """Steps with a third state at random, with labels switched in every draw."""
    paths = np.tile(HALVES, (2, 100, 1))
    places = rng.permutation(40)[:n_random]
    paths[:, :, places] = rng.integers(2, size=(2, 100, n_random))
    for path in paths.reshape(-1, 40):
        path[:] = rng.permutation(2)[path]
    found = judged(made_draws(rng.normal(size=(2, 100)), paths))
    assert found.firm == pytest.approx(share)
    assert found.verdict.startswith(f"Labels are {word}: on ")
    assert ('predict_proba(X, draws="all")' in str(found)) == (word != "reliable")
    misfit = judged(firm_draws(rng, (1, 30)), misfits=WRONG)
    assert misfit.verdict.startswith("Labels agree within this chain (on ")
    assert misfit.verdict.endswith("give the same state), but the model does not fit the data.")
    assert "How the model is wrong:\n* It is wrong. Take another.\n" in str(misfit)


def test_paths_agree_after_their_states_are_matched(rng):
    for _ in range(20):
        one, other = rng.integers(4, size=(2, 30))
        shares = [(one == np.array(order)[other]).sum() for order in permutations(range(4))]
        assert agreement(one, other).sum() == max(shares)


def test_draws_have_the_weights_of_their_chains(rng):
    paths = [np.tile(HALVES, (50, 1)), np.tile(STRIPES, (50, 1))]
    lp = rng.normal(size=(2, 50))
    assert judged(made_draws(lp, paths)).firm == 0.5
    light = made_draws(lp, paths, log_weights=[0.0, -20.0])
    assert judged(light).firm == 1


# -- chains that move, or end elsewhere


def moving_paths(rng, n_draws):
    """From stripes to halves, in the second third of the draws."""
    paths = noisy_paths(rng, HALVES, n_draws)
    paths[: n_draws // 2] = noisy_paths(rng, STRIPES, n_draws // 2)
    return paths


@pytest.mark.parametrize("rise", [None, 10.0, 0.0, -10.0])
def test_labels_that_still_move(rise, rng):
    """They are on their way if the likelihood rises, otherwise on an excursion."""
    paths = [moving_paths(rng, 120), noisy_paths(rng, HALVES, 120)]
    scores = None if rise is None else np.linspace(0, [rise, 0], 8).T
    found = judged(made_draws(rng.normal(size=(2, 120)), paths), scores=scores)
    text = " ".join(found.warnings)
    assert ("Labels of chain 0 are still moving" in text) == (rise in (None, 10.0))
    assert "chain 1 are" not in text
    if rise == 10.0:
        assert re.search(r"differ on [345]\d % more of the steps", text)
        assert str(found).startswith("Do not use these labels yet.\n* Labels of chain 0")
        # 100 + 2 * 120 sweeps, twice.
        assert found.suggested_params["n_burnin"] == 680


@pytest.mark.parametrize("odd", [0, 3])
def test_a_chain_that_ended_in_other_labels(odd, rng):
    """Log joint and occupancies are those of the other chains."""
    paths = [noisy_paths(rng, STRIPES if c == odd else HALVES, 100) for c in range(4)]
    lp = rng.normal(size=(4, 100))
    found = judged(made_draws(lp, paths))
    others = f"Chain {odd}" if odd else "Chains 1, 2 and 3"
    (text,) = found.warnings
    assert re.match(rf"{others} ended in other labels than chain 0, on [345]\d % of", text)
    they, share = ("it has", 25) if odd else ("they have", 75)
    assert f"the steps; {they} {share} % of the weight. Chains get stuck" in text
    assert found.suggested_params == {"sampler__split_merge_rate": 13, "n_burnin": 600}
    assert re.search(
        r"\nWhat to do: hmm\.set_params\(sampler__split_merge_rate=13, n_burnin=600\)"
        r"\.fit\(X\)  # some [\d.]+ CPU seconds\n",
        str(found),
    )
    # All chains in the same partition.
    paths = [noisy_paths(rng, HALVES, 100) for _ in range(4)]
    assert judged(made_draws(lp, paths)).warnings == []


def test_a_chain_in_a_worse_mode(rng):
    paths = [noisy_paths(rng, STRIPES if c == 2 else HALVES, 100) for c in range(4)]
    lp = rng.normal(size=(4, 100))
    lp[2] -= 30
    draws = made_draws(lp, paths, log_weights=[0, 0, -30, 0])
    found = judged(draws, sampler=StepwiseGibbs())
    assert re.search(
        r"the steps, with log joint probability (29|30|31)\.\d nats below the best "
        r"chain's; it has no weight\. Chains get stuck here; all of them may be\.",
        found.warnings[0],
    )
    assert found.suggested_params == {"sampler__split_merge_rate": 2, "n_burnin": 600}
    (note,) = found.notes
    assert note.startswith("Chain 2 has no weight in estimates, scores and predictions")
    # By ranks, where draws have them.
    ranks = np.zeros((4, 10))
    found = Diagnosis(draws, (0, 0), Setting(StepwiseGibbs(), 100, 2, 40, False), ranks)
    assert "below" not in found.warnings[0]
    ranks[2] -= 9
    found = Diagnosis(draws, (0, 0), Setting(StepwiseGibbs(), 100, 2, 40, False), ranks)
    assert "rank 9.0 nats below the best chain's" in found.warnings[0]


def test_chains_that_do_not_move():
    """Every chain in another partition, without any noise."""
    paths = [np.tile(base, (50, 1)) for base in (HALVES, STRIPES)]
    found = judged(made_draws([[-3.0] * 50] * 2, paths))
    assert found.warnings[0].startswith("Chain 1 ended in other labels than chain 0, on 50 %")
    assert np.isnan(found.table["lp"]["rhat"])


@pytest.mark.parametrize(("share", "is_alarm"), [(0.9, True), (0.5, False)])
def test_chains_that_are_sure_of_different_numbers(share, is_alarm, rng):
    """Of states with a hundredth of the steps or more, not of smaller ones."""
    base = np.repeat([0, 1], 150)
    three = base.copy()
    three[:15] = 2
    paths = np.tile(base, (2, 100, 1))
    paths[1, : round(100 * share)] = three
    found = judged(made_draws(rng.normal(size=(2, 100)), paths), n_samples=300)
    is_found = any("sure of different numbers of states" in t for t in found.warnings)
    assert is_found == is_alarm
    if is_alarm:
        assert "or more: 2 and 3. Chains get stuck" in found.warnings[0]
        assert ". Chains differ: 2 and 3." in " ".join(str(found).split())
    paths[paths == 2] = 0
    paths[1, : round(100 * share), :2] = 2
    found = judged(made_draws(rng.normal(size=(2, 100)), paths), n_samples=300)
    assert found.warnings == []
    assert "; with 1 % of the steps or more: 2 (100 %)." in " ".join(str(found).split())


# -- scores and clusters


def test_the_error_of_the_score(rng):
    draws = firm_draws(rng, (2, 100))
    scores = np.repeat(rng.normal(size=(2, 4)), 2, axis=1)
    scores -= scores.mean(axis=1, keepdims=True)
    found = judged(draws, scores=scores)
    expected = scores[:, ::2].std(ddof=1) / np.sqrt(8) / 40
    assert found.score_error == pytest.approx(expected)
    assert found.warnings == []
    found = judged(draws, scores=30 * scores)
    (text,) = found.warnings
    assert text.startswith("The score has not settled: its Monte Carlo error is 0.")
    assert found.suggested_params == {"n_burnin": 600}
    # .01 nats per step of longer data.
    assert judged(draws, scores=30 * scores, n_samples=4000).warnings == []


def test_a_chain_with_a_lower_score(rng):
    draws = firm_draws(rng, (3, 100), log_weights=[0, -50, 0])
    scores = rng.normal(size=(3, 8)) / 10
    scores[1] -= 50
    found = judged(draws, scores=scores)
    (text,) = found.warnings
    text_of = r"Chain 1 scored up to 1.[23] nats per step below the best one\."
    assert re.match(text_of, text)
    assert found.score_error < 0.01


def test_clusters_that_are_better(rng):
    draws, clusters = firm_draws(rng, (1, 100)), np.repeat([0, 1, 2, 3], 10)
    found = judged(draws, clusters=(123.4, clusters), misfits=WRONG)
    assert found.warnings[0].startswith(
        "4 clusters of k-means explain the data better than any of these draws, by 123 "
    )
    assert found.suggested_params == {"init": clusters.tolist()}
    assert "hmm.set_params(**hmm.diagnose().suggested_params).fit(X)" in found.command
    # Residuals of a bad start are no news.
    assert "It is wrong" not in str(found)
    found = judged(draws, clusters=(9.0, clusters * 0))
    assert found.warnings[0].startswith("One state explains the data better")
    assert found.suggested_params == {"init": "single"}
    found = judged(draws, clusters=(9.0, clusters), looks_back=True)
    assert "Levels, rather than motion" in found.warnings[0]
    assert found.suggested_params == {"emission": "gaussian", "transitions": "persistent"}


# -- notes


def test_slow_numbers_of_states_are_rough(rng):
    """The number of states, whose probabilities are printed, and not the concentrations."""
    alpha = np.exp(autoregressions(rng, 0.99, (4, 500)) / 9)
    paths = np.array([noisy_paths(rng, HALVES, 500) for _ in range(4)])
    slow = made_draws(rng.normal(size=alpha.shape), paths, concentrations=alpha)
    assert judged(slow).table["alpha"]["ess_bulk"] < 100
    assert judged(slow).notes == []
    assert "rough" not in str(judged(slow))
    # A third state comes and goes.
    paths[..., 0] = np.where(autoregressions(rng, 0.98, (4, 500)) > 0, 2, paths[..., 0])
    draws = made_draws(rng.normal(size=alpha.shape), paths)
    found = judged(draws)
    assert found.warnings == found.notes == []
    worth = found.table["n_states"]["ess_bulk"]
    assert worth < 100
    text = " ".join(str(found).split())
    assert re.search(rf"Number of states \(rough: {worth:.0f} independent draws\): 2 \(", text)
    # Not beside what matters more.
    assert "rough" not in str(judged(draws, misfits=WRONG))


def test_price_of_more_chains_and_a_longer_burnin(rng):
    """Starts are paid for every chain, and by the root of the burn-in."""
    draws = firm_draws(rng, (1, 100))
    swept = 0.01 / 2 * (100 + 2 * 100)
    found = judged(draws, seconds=swept + 10)
    shown = re.search(r"some ([\d.]+) CPU seconds", found._price({"n_chains": 4}))[1]
    assert float(shown) == pytest.approx(4 * (swept + 10), rel=0.1)
    shown = re.search(r"some ([\d.]+) CPU seconds", found._price({"n_burnin": 400}))[1]
    assert float(shown) == pytest.approx(swept + 0.01 / 2 * 300 + 2 * 10, rel=0.1)
    assert f"{swept + 10:.3g} CPU seconds; R-hat" in str(found)


def test_notes(rng):
    assert "n_chains=4, some " in judged(firm_draws(rng, (1, 100))).notes[0]
    two = firm_draws(rng, (2, 100))
    assert judged(two).notes == []
    (note,) = judged(two, shares_start=True).notes
    assert note.startswith("All chains began at the same")
    assert 'hmm.set_params(init="random", n_burnin=600).fit(X), some ' in note
    equal = judged(made_draws(np.zeros((2, 100))))
    assert "All draws are equal." in equal.notes
    assert equal.warnings == []


def test_the_arguments_of_the_command(rng):
    found = judged(firm_draws(rng, (2, 5)), fit_arguments="X, groups=groups")
    assert "hmm.set_params(n_draws=200).fit(X, groups=groups)  # some 5 " in str(found)


def test_the_command_has_the_arguments_of_the_fit(easy):
    """Without them a copied call would fit one sequence, of unknown states."""
    model = HCRPHMM(n_burnin=2, n_draws=3, random_state=0)
    assert ".fit(X)  # some" in model.fit(easy).diagnose().command
    states = np.where(easy[:, 0] == 0, 0, -1)
    model.fit(easy, lengths=[10, 20], states=states)
    assert ".fit(X, groups=groups, states=states)  #" in model.diagnose().command


@pytest.mark.parametrize(
    ("estimate", "n_selected", "advice"),
    [
        ("vi", 1, ': point_estimate="binder" is finer.'),
        ("binder", 1, "."),
        ("binder", 3, ': point_estimate="vi" is coarser.'),
        ("vi", 3, "."),
        ("vi", 2, None),
    ],
)
def test_an_estimate_that_is_coarse_or_fine(estimate, n_selected, advice, rng):
    paths = np.tile(HALVES, (2, 40, 1))
    paths[0, 0] = np.arange(40) % n_selected
    found = judged(made_draws(rng.normal(size=(2, 40)), paths), point_estimate=estimate)
    notes = [note for note in found.notes if note.startswith("The selected draw has ")]
    assert len(notes) == (advice is not None)
    if advice:
        word = "fewer" if n_selected == 1 else "more"
        of = f"{word} large states ({n_selected}) than nine of ten draws"
        text = f"{of} (2.0 on average)"
        assert notes[0].endswith(text + advice)


# -- what else is an alarm


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
            assert found.verdict == "Do not use these labels yet."
            assert found.suggested_params["init"] == "single"
            assert "kmeans" in text
            found = judged(draws, n_samples=n_steps, has_numbers=False)
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
    paths = [noisy_paths(rng, base, 100) for base in (HALVES, STRIPES)]
    found = judged(made_draws(rng.normal(size=(2, 100)), paths), sampler=sampler)
    assert found.suggested_params == {**advised, "n_burnin": 600}
    for name, value in advised.items():
        shown = f'"{value}"' if isinstance(value, str) else value
        assert f"{name}={shown}, n_burnin=600" in found.command


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
    paths = [noisy_paths(rng, HALVES, len(row)) for row in rows]
    found = judged(made_draws(rows, paths))
    assert found.chains == [0, 2]
    assert found.n_draws == 150
    assert "Left out, because of few draws: chains 1 and 3." in found.notes
    assert found.table["lp"]["rhat"] == rhat([rows[0][:150], rows[2]])
    assert found.warnings == []
    # Chains keep their numbers.
    paths[2] = noisy_paths(rng, STRIPES, 150)
    found = judged(made_draws(rows, paths))
    assert found.warnings[0].startswith("Chain 2 ended in other labels than chain 0")


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
    draws = firm_draws(rng, (4, 100), acceptance=rate)
    found = judged(draws, sampler=sampler)
    np.testing.assert_equal(found.acceptance_rate, rate)
    if rate < 0.2:
        assert found.warnings == [f"Only {100 * rate:.1f} % of the proposals were accepted."]
        assert found.suggested_params == advised
    else:
        assert found.warnings == []


def test_advice_for_another_sampler_replaces_that_for_this_one(rng):
    paths = [noisy_paths(rng, base, 100) for base in (HALVES, STRIPES)]
    draws = made_draws(rng.normal(size=(2, 100)), paths, acceptance=0.1)
    found = judged(draws, sampler=BlockedGibbs(block_size=1))
    assert found.suggested_params == {"n_burnin": 600, "sampler": "auto"}


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


def test_verdict_is_printed(fitted, capsys):
    found = fitted.diagnose(verbose=True)
    assert capsys.readouterr().out == f"{found}\n"
    print(fitted.diagnose())
    assert capsys.readouterr().out == f"{found}\n"
    assert repr(pickle.loads(pickle.dumps(found))) == str(found)
    with pytest.raises(TypeError, match="verbose=1; expected True or False"):
        fitted.diagnose(verbose=1)
    with pytest.raises(NotFittedError):
        HCRPHMM().diagnose()


def test_what_notebooks_show(rng):
    """The whole text, escaped, and the table below it."""
    paths = [noisy_paths(rng, base, 100) for base in (HALVES, STRIPES)]
    found = judged(made_draws(rng.normal(size=(2, 100)), paths), data_notes=["a < b"])
    shown = found._repr_html_()
    table = shown[shown.index("<table>") :]
    assert all(f"<th>{name}</th>" in table for name in [*found.table, *KEYS])
    text = html.unescape(re.sub(r"<[^>]+>", " ", shown[: shown.index("<table>")]))
    printed = re.sub(r"^\* ", "", str(found), flags=re.M)
    assert text.split() == printed.split()
    assert "a &lt; b" in shown


def test_stuck_chains_are_noticed_and_the_advice_helps():
    """One state per letter is a local optimum that single steps hardly ever leave."""
    X, _ = make_repeating_sequence(100)
    model = HCRPHMM("stepwise", n_chains=4, n_draws=50, random_state=3).fit(X)
    found = model.diagnose(verbose=False)
    assert " ended in other labels than chain " in found.warnings[0]
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
    assert "The score has not settled" in " ".join(found.warnings)
    before = model.draws_.lp.mean()
    assert found.suggested_params["n_burnin"] == 82
    model.set_params(**found.suggested_params).fit(X)
    assert model.draws_.lp.mean() > before + 50


def test_low_acceptance_is_noticed_and_the_advice_helps():
    X = np.random.default_rng(0).integers(10, size=(400, 1))
    model = HCRPHMM(BlockedGibbs(block_size=400), n_burnin=50, n_draws=40, random_state=0).fit(X)
    found = model.diagnose(verbose=False)
    rate = found.acceptance_rate
    assert rate < 0.2
    assert f"Only {100 * rate:.1f} % of the proposals" in " ".join(found.warnings)
    assert found.suggested_params["sampler__block_size"] == 100
    model.set_params(sampler__block_size=100).fit(X)
    assert model.diagnose(verbose=False).acceptance_rate > rate + 0.1


def bad_start(n_steps, **parameters):
    """Four clusters in pieces of thirty steps, of eight states."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.integers(1, 4, n_steps) * (rng.random(n_steps) < 0.05)) % 4
    X = np.c_[6 * (z % 2), 6 * (z // 2)] + rng.normal(size=(n_steps, 2))
    hmm = HCRPHMM("stepwise", "gaussian", n_burnin=10, n_draws=25, n_chains=2)
    return hmm.set_params(random_state=0, **parameters), X, z


@pytest.mark.parametrize("n_steps", [1200, 4000])
def test_bad_starts_are_noticed_and_the_advice_helps(n_steps):
    """Longer data than pieces are compared on these first."""
    init = (np.arange(n_steps) // 30 % 8).tolist()
    hmm, X, z = bad_start(n_steps, init=init)
    found = hmm.fit(X).diagnose()
    assert any("4 clusters of k-means explain" in text for text in found.warnings)
    hmm.set_params(**found.suggested_params).fit(X)
    assert adjusted_rand_score(z, hmm.labels_) > 0.99
    assert hmm.diagnose().warnings == []


def test_clusters_are_not_compared_where_they_are_no_states(monkeypatch):
    """Not of symbols, inputs, contexts, known states, or few rows."""
    hmm, X, z = bad_start(300, n_burnin=2, n_draws=3, n_chains=1)
    paths = []
    monkeypatch.setattr(_clusters, "_cluster_paths", lambda _: paths)
    monkeypatch.setattr(_clusters._Comparison, "better_on_pieces", lambda *_: [z])
    monkeypatch.setattr(_clusters._Comparison, "of_path", lambda *_: np.inf)
    assert _clusters.better_clusters(hmm.fit(X)._fitted) is not None
    assert _clusters.better_clusters(hmm.fit(X, states=np.where(z, -1, 0))._fitted) is None
    assert _clusters.better_clusters(hmm.fit(X[:90])._fitted) is None
    lean = clone(hmm).set_params(store_states=False)
    assert _clusters.better_clusters(lean.fit(X)._fitted) is None
    hmm.set_params(emission="hcrp")
    assert _clusters.better_clusters(hmm.fit(z[:, None])._fitted) is None
    hmm.set_params(emission=AutoregressiveNormal(0, input_features=[1]))
    assert _clusters.better_clusters(hmm.fit(X)._fitted) is None


def test_without_paths(easy):
    params = {"n_chains": 2, "n_burnin": 50, "n_draws": 40, "random_state": 0}
    lean = HCRPHMM(store_states=False, **params).fit(easy)
    found = lean.diagnose(verbose=False)
    assert "distance" not in found.table
    assert np.isnan(found.firm)
    assert found.verdict == "Labels of draws were not compared."
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
        (np.full((120, 1), np.nan), {}),
        (np.random.default_rng(0).normal(size=(20, 2)), {"emission": "gaussian"}),
        (np.random.default_rng(0).poisson(3, size=(20, 1)), {"emission": "poisson"}),
        (np.zeros((5, 1), int), {"init": "single", "emission": "dirichlet"}),
        (np.zeros((5, 1), int), {"init": [0, 1, 2, 3, 4], "transitions": HCRPTransitions(1e-3)}),
        (np.arange(6).reshape(6, 1), {"transitions": clone(FIXED).set_params(gamma=100.0)}),
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
        assert ("alpha" in found.table) == (model.transitions_.concentration_prior is not None)
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
    assert any("One state explains" in text for text in found.warnings)
    assert noise_fits["single"].n_states_ == 1
    found = noise_fits["single"].diagnose(verbose=False)
    assert not any("single steps" in text for text in found.warnings)
