"""Synthetic data against closed forms that share no code with the generators."""

import itertools
from collections import Counter
from math import exp, log, log2

import numpy as np
import pytest
from reference.enumeration import (
    DirichletEmission,
    HCRPEmission,
    log_likelihood,
    log_prior,
    log_prior_by_tables,
    set_partitions,
)
from reference.statistics import frequencies_pvalue
from scipy.stats import nbinom

from skihmm.datasets import make_automaton_sequence, make_hcrp_hmm, make_repeating_sequence

# Level of each statistical test.  Seeds are fixed, so this bounds the chance that a
# correct change of the random stream makes one of them fail.
_LEVEL = 1e-4


def _check_frequencies(counts, probs):
    assert frequencies_pvalue(counts, probs) > _LEVEL, (counts, probs)


# --------------------------------------------------------------------------------------
# Sequence 1


def test_repeating_sequence_is_the_cycle():
    X, states = make_repeating_sequence(20)
    assert "".join("ABCDE"[code] for code in X[:, 0]) == "ABCDBCDEABCDBCDEABCD"
    assert states.tolist() == [*range(8), *range(8), *range(4)]
    assert X.shape == (20, 1)
    assert X.dtype == states.dtype == np.int64


def test_repeating_sequence_default_length():
    X, states = make_repeating_sequence()
    assert X.shape == (500, 1)
    assert states.shape == (500,)


@pytest.mark.parametrize("start", range(8))
def test_repeating_sequence_start_shifts_the_phase(start):
    X, states = make_repeating_sequence(30)
    X_later, states_later = make_repeating_sequence(30 - start, start=start)
    np.testing.assert_array_equal(X_later, X[start:])
    np.testing.assert_array_equal(states_later, states[start:])


def test_repeating_sequence_does_not_hand_out_its_constants():
    X, _ = make_repeating_sequence(8)
    X[:] = -1
    assert make_repeating_sequence(8)[0].min() == 0


# --------------------------------------------------------------------------------------
# Sequence 2


def _automaton(n_samples, seed=0):
    return make_automaton_sequence(n_samples, random_state=seed, return_model=True)


def test_automaton_model_is_as_documented():
    X, states, model = _automaton(1)
    assert X.shape == (1, 1)
    assert states.shape == (1,)
    np.testing.assert_allclose(model.startprob, np.full(15, 1 / 15))
    for matrix in (model.transmat, model.emissionprob):
        assert matrix.shape == (15, 15)
        assert matrix.min() >= 0
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    # Every state has one strong transition, to the next state of the cycle.
    strong = model.transmat[np.arange(15), (np.arange(15) + 1) % 15]
    assert Counter(strong.round(12).tolist()) == {1.0: 7, 0.84: 4, 0.8: 4}
    for j in np.flatnonzero(strong < 1):
        weak = np.delete(model.transmat[j], (j + 1) % 15)
        np.testing.assert_allclose(weak[weak > 0], (1 - strong[j]) / 2)
        assert (weak > 0).sum() == 2


def test_automaton_states_share_groups_of_three_letters():
    _, _, model = _automaton(1)
    letters = [tuple(np.flatnonzero(row)) for row in model.emissionprob]
    np.testing.assert_allclose(model.emissionprob[model.emissionprob > 0], 1 / 3)
    assert Counter(letters) == {(3 * g, 3 * g + 1, 3 * g + 2): 3 for g in range(5)}
    along_the_cycle = "".join("ABCDE"[group[0] // 3] for group in letters)
    assert along_the_cycle == "ABCDEABCEDABEDC"


def test_automaton_is_stationary_and_irreducible():
    _, _, model = _automaton(1)
    np.testing.assert_allclose(model.startprob @ model.transmat, model.startprob)
    reachable = np.linalg.matrix_power(np.eye(15) + model.transmat, 14)
    assert reachable.min() > 0
    assert log2(15) == pytest.approx(3.907, abs=5e-4)


def test_automaton_frequencies_match_the_model():
    X, states, model = _automaton(60_000)
    n_pairs = Counter(zip(states[:-1].tolist(), states[1:].tolist(), strict=True))
    n_emitted = Counter(zip(states.tolist(), X[:, 0].tolist(), strict=True))
    for j in range(15):
        row = {(j, k): p for k, p in enumerate(model.transmat[j]) if p > 0}
        counts = Counter({pair: n for pair, n in n_pairs.items() if pair[0] == j})
        assert set(counts) == set(row)
        if len(row) > 1:
            _check_frequencies(counts, row)
        row = {(j, v): p for v, p in enumerate(model.emissionprob[j]) if p > 0}
        counts = Counter({pair: n for pair, n in n_emitted.items() if pair[0] == j})
        _check_frequencies(counts, row)


def test_automaton_first_state_is_drawn_from_startprob():
    n_draws = 1500
    firsts = Counter(
        int(make_automaton_sequence(1, random_state=seed)[1][0]) for seed in range(n_draws)
    )
    _check_frequencies(firsts, dict.fromkeys(range(15), 1 / 15))


def test_automaton_perplexities_are_as_documented():
    X, _, model = _automaton(40_000)
    symbols = X[:, 0]
    predicted, log_prob = model.startprob, 0.0
    for symbol in symbols:
        joint = predicted * model.emissionprob[:, symbol]
        log_prob += log(joint.sum())
        predicted = joint / joint.sum() @ model.transmat
    # The standard error is 0.012 here.
    assert exp(-log_prob / symbols.size) == pytest.approx(4.05, abs=0.06)

    pairs = (
        model.emissionprob.T @ (model.transmat / 15) @ model.emissionprob
    )  # joint distribution of two neighbouring letters
    bigram = pairs / pairs.sum(axis=1, keepdims=True)
    positive = pairs > 0
    entropy = -(pairs[positive] * np.log(bigram[positive])).sum()
    assert exp(entropy) == pytest.approx(6.93, abs=0.005)


def test_automaton_dwell_times_follow_their_law():
    means, r = [4.0, 9.0, 6.5], 3
    states = make_automaton_sequence(30_000, dwell=means, min_dwell=r, random_state=0)[1]
    borders = np.flatnonzero(np.diff(states)) + 1
    lengths = np.diff(np.r_[0, borders])  # but for the last
    runs = states[np.r_[0, borders[:-1]]]
    for i, mean in enumerate(means):
        counts = Counter(lengths[runs % 3 == i].tolist())
        probs = {n: nbinom.pmf(n - r, r, r / mean) for n in range(r, 300)}
        _check_frequencies(counts, probs)


def test_automaton_changes_state_as_without_dwell_times():
    plain = make_automaton_sequence(600, random_state=2)[1]
    same = make_automaton_sequence(600, dwell=1, random_state=2)
    np.testing.assert_array_equal(same[1], plain)
    for dwell, shortest in ((7, 7), (10.5, 3)):
        X, states = make_automaton_sequence(600, dwell=dwell, min_dwell=shortest, random_state=2)
        borders = np.flatnonzero(np.diff(states)) + 1
        np.testing.assert_array_equal(states[np.r_[0, borders]], plain[: len(borders) + 1])
        assert np.diff(borders).min() == shortest
        # Letters are those of the states, and change inside of a run.
        groups = np.array(["ABCDE".index(c) for c in "ABCDEABCEDABEDC"])
        np.testing.assert_array_equal(X[:, 0] // 3, groups[states])
        assert len(set(X[: borders[0], 0])) > 1
    assert np.diff(borders).mean() == pytest.approx(10.5, rel=0.3)


def test_automaton_is_reproducible():
    X, states = make_automaton_sequence(random_state=3)
    assert X.shape == (2500, 1)
    assert X.dtype == states.dtype == np.int64
    X_same, states_same, _ = _automaton(2500, seed=3)
    np.testing.assert_array_equal(X_same, X)
    np.testing.assert_array_equal(states_same, states)
    X_other, _ = make_automaton_sequence(random_state=4)
    assert (X_other != X).any()
    generator = np.random.RandomState(3)
    first, _ = make_automaton_sequence(random_state=generator)
    second, _ = make_automaton_sequence(random_state=generator)
    np.testing.assert_array_equal(first, X)
    assert (second != X).any()


def test_automaton_model_is_a_fresh_copy():
    _, _, model = _automaton(1)
    model.transmat[:] = 0
    assert _automaton(1)[2].transmat.sum() == pytest.approx(15)


# --------------------------------------------------------------------------------------
# Draws from the prior: closed forms


def law_of(path, *law):
    """``{number of tables: joint probability with the path}``."""
    return {m: exp(log_p) for m, log_p in log_prior_by_tables(path, *law).items()}


def check_law(probs, cell, n_draws, n_samples, seed, **given):
    """Compare frequencies of cells of a draw with their probabilities."""
    rng, counts = np.random.RandomState(seed), Counter()
    for _ in range(n_draws):
        drawn = make_hcrp_hmm(n_samples, random_state=rng, return_seating=True, **given)
        counts[cell(*drawn)] += 1
    _check_frequencies(counts, probs)


def path_and_tables(X, states, seating):
    return tuple(states.tolist()), sum(map(len, seating.transitions.values()))


@pytest.mark.parametrize(("alpha", "gamma"), [(1.0, 1.0), (0.3, 4.0), (6.0, 0.7)])
@pytest.mark.parametrize(("n_sequences", "starts"), [(1, (0,)), (2, (0, 2))])
def test_hcrp_paths_and_tables_follow_the_prior(alpha, gamma, n_sequences, starts):
    probs = {
        (path, m): prob
        for path in set_partitions(4)
        for m, prob in law_of(path, starts, alpha, gamma).items()
    }
    given = {"alpha": alpha, "gamma": gamma, "n_symbols": 1, "n_sequences": n_sequences}
    check_law(probs, path_and_tables, 4000, 4, 0, **given)


@pytest.mark.parametrize("emission", ["hcrp", "dirichlet"])
def test_hcrp_symbols_follow_the_prior_given_the_path(emission):
    spec = HCRPEmission(2, 2.5, 0.6)
    if emission == "dirichlet":
        spec = DirichletEmission(2, 2.5)
    probs = {
        (path, symbols): exp(log_prior(path, (0,), 0.4, 1.5) + log_likelihood(path, symbols, spec))
        for path in set_partitions(4)
        for symbols in itertools.product(range(2), repeat=4)
    }

    def cell(X, states, seating):
        return tuple(states.tolist()), tuple(X[:, 0].tolist())

    given = {"emission": emission, "emission_alpha": 2.5, "emission_gamma": 0.6}
    check_law(probs, cell, 8000, 4, 2, alpha=0.4, gamma=1.5, n_symbols=2, **given)


@pytest.mark.parametrize(("alpha", "gamma"), [(2.5, 0.6), (0.7, 5.0)])
def test_hcrp_emission_tables_follow_the_prior(alpha, gamma):
    path, spec = (0,) * 4, HCRPEmission(3, alpha, gamma)
    probs = {
        (symbols, e): exp(log_p)
        for symbols in itertools.product(range(3), repeat=4)
        for e, log_p in spec.log_likelihood_by_tables(path, symbols).items()
    }

    def cell(X, states, seating):
        assert tuple(states.tolist()) == path
        return tuple(X[:, 0].tolist()), sum(map(len, seating.emissions.values()))

    given = {"emission_alpha": alpha, "emission_gamma": gamma}
    check_law(probs, cell, 4000, 4, 4, gamma=1e-9, n_symbols=3, **given)


@pytest.mark.parametrize(("mean", "r", "n_samples"), [(2.5, 1, 4), (3.2, 2, 6)])
def test_hcrp_runs_follow_the_prior(mean, r, n_samples):
    """Jointly with the number of tables, whose customers are runs."""
    probs = Counter()
    for ends in itertools.product([0, 1], repeat=n_samples - 1):
        borders = [t + 1 for t, end in enumerate(ends) if end]
        lengths = np.diff([0, *borders, n_samples])
        length_prob = nbinom.sf(lengths[-1] - r - 1, r, r / mean)  # cut
        length_prob *= nbinom.pmf(lengths[:-1] - r, r, r / mean).prod()
        if length_prob == 0:
            continue
        for labels in set_partitions(len(lengths)):
            for m, prob in law_of(labels, (0,), 0.7, 1.4).items():
                path = tuple(np.repeat(labels, lengths).tolist())
                probs[path, m] += length_prob * prob
    given = {"alpha": 0.7, "gamma": 1.4, "n_symbols": 1, "dwell": mean, "min_dwell": r}
    check_law(probs, path_and_tables, 4000, n_samples, 3, **given)


# --------------------------------------------------------------------------------------
# Draws from the prior: one result


@pytest.mark.parametrize("emission", ["hcrp", "dirichlet"])
@pytest.mark.parametrize("n_sequences", [1, 7])
def test_hcrp_seating_agrees_with_the_sequence(emission, n_sequences):
    X, states, seating = make_hcrp_hmm(
        300,
        alpha=3.0,
        gamma=4.0,
        emission=emission,
        n_sequences=n_sequences,
        random_state=5,
        return_seating=True,
    )
    groups = seating.groups
    previous = np.where(np.r_[True, groups[1:] != groups[:-1]], -1, np.roll(states, 1))
    transitions = Counter(zip(previous.tolist(), states.tolist(), strict=True))
    assert {k: sum(sizes) for k, sizes in seating.transitions.items()} == transitions
    tables = list(seating.transitions.values())
    if emission == "hcrp":
        emitted = Counter(zip(states.tolist(), X[:, 0].tolist(), strict=True))
        assert {k: sum(sizes) for k, sizes in seating.emissions.items()} == emitted
        tables += seating.emissions.values()
    else:
        assert "emissions" not in seating
    assert min(min(sizes) for sizes in tables) >= 1
    # Some dish has several tables somewhere, else the seating was not tested.
    assert max(len(sizes) for sizes in tables) > 1


def test_hcrp_states_are_numbered_by_appearance():
    _, states = make_hcrp_hmm(200, alpha=5.0, gamma=5.0, random_state=0)
    n_states = states.max() + 1
    assert n_states > 5
    first = [int(np.argmax(states == k)) for k in range(n_states)]
    assert first == sorted(first)
    assert set(states.tolist()) == set(range(n_states))


@pytest.mark.parametrize(
    ("n_samples", "n_sequences", "lengths"),
    [(10, 1, [10]), (10, 3, [4, 3, 3]), (4, 4, [1, 1, 1, 1])],
)
def test_hcrp_groups_split_evenly(n_samples, n_sequences, lengths):
    X, states, seating = make_hcrp_hmm(
        n_samples, n_sequences=n_sequences, random_state=0, return_seating=True
    )
    assert np.bincount(seating.groups).tolist() == lengths
    assert (np.diff(seating.groups) >= 0).all()
    assert X.shape == (n_samples, 1)
    assert states.shape == seating.groups.shape == (n_samples,)
    assert X.dtype == states.dtype == seating.groups.dtype == np.int64
    starts = [sizes for (j, _), sizes in seating.transitions.items() if j == -1]
    assert sum(sum(sizes) for sizes in starts) == n_sequences


def test_hcrp_runs_begin_with_every_sequence():
    _, states, seating = make_hcrp_hmm(
        90, gamma=4, dwell=4, min_dwell=4, n_sequences=9, random_state=0,
        return_seating=True,
    )  # fmt: skip
    runs = states.reshape(9, 10)[:, ::4]
    np.testing.assert_array_equal(np.repeat(runs, [4, 4, 2], axis=1).ravel(), states)
    transitions = Counter((-1, int(k)) for k in runs[:, 0])
    transitions += Counter(zip(runs[:, :-1].flat, runs[:, 1:].flat, strict=True))
    assert {k: sum(sizes) for k, sizes in seating.transitions.items()} == transitions
    assert len(transitions) > 5


def test_hcrp_is_reproducible():
    X, states = make_hcrp_hmm(100, random_state=7)
    X_same, states_same, _ = make_hcrp_hmm(100, random_state=7, return_seating=True)
    np.testing.assert_array_equal(X_same, X)
    np.testing.assert_array_equal(states_same, states)
    assert (make_hcrp_hmm(100, random_state=8)[0] != X).any()


@pytest.mark.parametrize("emission", ["hcrp", "dirichlet"])
def test_hcrp_survives_extreme_concentrations(emission):
    for alpha, gamma in itertools.product([1e-300, 1e300], repeat=2):
        X, states = make_hcrp_hmm(
            50,
            alpha=alpha,
            gamma=gamma,
            emission=emission,
            emission_alpha=alpha,
            emission_gamma=gamma,
            random_state=0,
        )
        assert X.min() >= 0
        assert X.max() < 10
        if gamma < 1:
            assert states.max() == 0
        elif alpha > 1:
            assert states.max() == 49


# --------------------------------------------------------------------------------------
# Errors


@pytest.mark.parametrize("make", [make_repeating_sequence, make_automaton_sequence, make_hcrp_hmm])
def test_n_samples_is_checked(make):
    for value in (0, -3):
        with pytest.raises(ValueError, match=f"n_samples={value}; expected an integer"):
            make(value)
    for value in (2.0, "3", None, True):
        with pytest.raises(TypeError, match=r"n_samples=.*expected an integer >= 1"):
            make(value)
    assert make(np.int32(3))[0].shape == (3, 1)


@pytest.mark.parametrize(("start", "expected"), [(-1, ">= 0"), (8, "from 0 to 7")])
def test_repeating_sequence_checks_start(start, expected):
    with pytest.raises(ValueError, match=f"start={start}; .* {expected}"):
        make_repeating_sequence(5, start=start)


@pytest.mark.parametrize("make", [make_automaton_sequence, make_hcrp_hmm])
def test_dwell_times_are_checked(make):
    with pytest.raises(ValueError, match="min_dwell=3, but dwell=None"):
        make(5, min_dwell=3)
    with pytest.raises(ValueError, match="min_dwell=0; expected an integer >= 1"):
        make(5, dwell=3, min_dwell=0)
    for value in (0.5, 2.9, [4, 2], np.nan, np.inf):
        with pytest.raises(ValueError, match=r"dwell=.*from min_dwell=3 to 1e\+09"):
            make(5, dwell=value, min_dwell=3)
    for value in ("long", True, [], [[3.0]]):
        with pytest.raises(TypeError, match=r"dwell=.*expected a number of steps, a list"):
            make(5, dwell=value)
    make(5, dwell=1e9, min_dwell=2)


@pytest.mark.parametrize(
    ("error", "message", "wrong"),
    [
        (ValueError, "alpha=0; expected a finite number > 0", {"alpha": 0}),
        (ValueError, "gamma=inf; expected a finite number > 0", {"gamma": np.inf}),
        (ValueError, "emission_alpha=-1.0; expected a finite", {"emission_alpha": -1.0}),
        (TypeError, "emission_gamma='1' is not a number", {"emission_gamma": "1"}),
        (ValueError, "emission='gaussian'; expected one of", {"emission": "gaussian"}),
        (ValueError, "n_symbols=0; expected an integer >= 1", {"n_symbols": 0}),
        (ValueError, r"n_sequences=6; .* from 1 to 5", {"n_sequences": 6}),
        (TypeError, r"n_sequences=1\.5 is not an integer", {"n_sequences": 1.5}),
    ],
)
def test_hcrp_checks_parameters(error, message, wrong):
    with pytest.raises(error, match=message):
        make_hcrp_hmm(5, **wrong)
