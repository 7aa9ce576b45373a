"""The log joint probability, summed over seatings, and the draw that it selects."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from reference.enumeration import HCRPEmission, log_prior, stirling, tables_given_customers
from scipy.special import logsumexp
from sklearn.utils._testing import ignore_warnings

from skihmm import HCRPHMM
from skihmm._draws import PosteriorDraws
from skihmm._using.decoding import frozen_model, rank
from skihmm._using.log_joint import log_cycles, log_franchises, log_seatings, log_table_counts
from skihmm.core._franchise import Franchise
from skihmm.core._messages import FrozenModel
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import HCRPCategorical
from skihmm.samplers import StepwiseGibbs
from skihmm.samplers._names import SAMPLERS
from skihmm.transitions import HCRPTransitions


def make_model(**params):
    short = {"n_burnin": 20, "n_draws": 20, "thin": 1, "n_chains": 2, "n_particles": 10}
    short["sampler"] = StepwiseGibbs(split_merge_rate=2)
    return HCRPHMM(**{**short, "random_state": 2, **params})


@pytest.fixture(scope="module")
def noise():
    """Data that say little, so that draws differ in their seatings most of all."""
    return np.random.default_rng(0).integers(4, size=(60, 1))


# -- numbers of seatings --------------------------------------------------------------


def test_numbers_of_seatings():
    pairs = [(n, m) for n in range(1, 9) for m in range(1, n + 1)] * 2
    found = log_cycles(*np.array(pairs).T)
    np.testing.assert_allclose(found, [np.log(stirling(n, m)) for n, m in pairs])


def test_numbers_of_seatings_of_many():
    """On both sides of the table's end, against exact integers."""
    row = [1]
    for n in range(400):
        row = [n * a + b for a, b in zip([*row, 0], [0, *row], strict=True)]
        if n + 1 in (255, 256, 257, 400):
            m = np.arange(1, n + 2)
            np.testing.assert_allclose(
                log_cycles(np.full(n + 1, n + 1), m),
                [math.log(value) for value in row[1:]],
                rtol=1e-12,
                atol=1e-10,
            )


def test_numbers_of_seatings_of_very_many():
    n = np.full(3, 10**6)
    # By their definition as sums of products of reciprocals.
    harmonic = [(1 / np.arange(1, 10.0**6) ** power).sum() for power in (1, 2)]
    expected = math.lgamma(10**6) + np.log([1, harmonic[0], (harmonic[0] ** 2 - harmonic[1]) / 2])
    np.testing.assert_allclose(log_cycles(n, np.array([1, 2, 3])), expected, rtol=1e-14)
    # (Pairs are the edges between customers who share a table.)
    np.testing.assert_allclose(
        log_cycles(np.full(2, 10**4), np.array([10**4, 10**4 - 1])),
        [0, math.log(math.comb(10**4, 2))],
        atol=1e-6,
    )


# -- numbers of tables ----------------------------------------------------------------

# Cells (dish, number of customers) of restaurants; the order of restaurants does not matter.
FRANCHISES = {
    "transitions": ([(0, 5), (1, 3), (0, 2), (1, 6), (2, 4)], None),
    "symbols, not all of them seen": ([(0, 5), (1, 3), (0, 2), (1, 6)], 4),
    "single customers": ([(0, 1), (1, 1), (0, 2)], 3),
    "one cell": ([(0, 9)], None),
    "one symbol": ([(0, 5)], 1),
}


@pytest.mark.parametrize("name", FRANCHISES)
@pytest.mark.parametrize(
    ("alpha", "gamma", "error"),
    [(1.3, 0.8, 0.1), (0.2, 5.0, 0.1), (20.0, 0.1, 0.1), (1e50, 1e-50, 1e-6), (1e-50, 1e50, 1e-6)],
)
def test_probability_of_table_counts(name, alpha, gamma, error):
    cells, n_dishes = FRANCHISES[name]
    dishes, n = np.array(cells).T
    expected = tables_given_customers(dishes, n.tolist(), alpha, gamma, n_dishes)
    choices = list(expected)
    for m in (choices[0], choices[len(choices) // 2], choices[-1]):
        record = {"dishes": dishes, "n_customers": n, "n_tables": np.array(m)}
        found = log_table_counts(record, alpha, gamma, n_dishes)
        assert found == pytest.approx(expected[m], abs=error)


def test_table_counts_of_a_path_do_not_count(global_random_seed):
    """A path with other seatings has one probability, that of enumeration."""
    X = np.array([0, 1, 1, 2, 0, 0, 1, 2, 2, 1, 0, 1])[:, None]
    path = [0, 0, 1, 1, 0, 2, 0, 0, 1, 1, 1, 0]
    emission = HCRPCategorical(0.7, 1.5, concentration_prior=None, categories=[[0, 1, 2, 3]])
    transitions = HCRPTransitions(alpha=2.0, gamma=0.6, concentration_prior=None)
    hmm = make_model(emission=emission, transitions=transitions, n_draws=1, n_chains=1).fit(X)
    data = hmm._fitted.sequences
    stats = hmm.emission_.make_stats(data.codes)
    stream = RandomStream(np.random.SeedSequence(global_random_seed))
    state = ChainState(data.starts, hmm.transitions_.make_seating(), stats, stream)
    # A symbol that is none of the four is possible, too.
    emitted = HCRPEmission(5, alpha=0.7, gamma=1.5).log_likelihood_by_tables(path, X[:, 0].tolist())
    expected = log_prior(path, alpha=2.0, gamma=0.6) + logsumexp([*emitted.values()])
    seen = set()
    for _ in range(5):
        state.start_from(np.array(path))
        record = state.to_arrays()
        columns = record["emission"]["columns"]
        lp = state.log_joint() + log_seatings([record["transitions"], *columns])
        lp -= log_franchises(record["transitions"], record["emission"], [[5]])
        assert lp == pytest.approx(expected, abs=0.1)
        seen.add(tuple(record["transitions"]["n_tables"]) + tuple(columns[0]["n_tables"]))
    assert len(seen) > 1


def test_who_shares_a_table_does_not_count(global_random_seed):
    X = np.random.default_rng(global_random_seed).integers(3, size=(40, 1))
    sampler = StepwiseGibbs(split_merge_rate=2)
    hmm = HCRPHMM(sampler, n_burnin=20, n_draws=4, random_state=global_random_seed).fit(X)
    draw = hmm.draws_[0, -1]
    state = ChainState(
        np.zeros(1, int),
        Franchise(draw.alpha, draw.gamma),
        hmm.emission_.make_stats(hmm.emission_.encode_values(X)),
        RandomStream(0),
    )
    # Seated anew again and again: as many tables by chance, other companies.
    by_tables = {}
    for _ in range(300):
        state.start_from(draw.states)
        arrays = state.to_arrays()
        records = [arrays["transitions"], *arrays["emission"]["columns"]]
        tables = tuple(np.concatenate([r["n_tables"] for r in records]).tolist())
        lp = state.log_joint()
        by_tables.setdefault(tables, []).append((lp + log_seatings(records), lp))
    largest = max(by_tables.values(), key=lambda pairs: np.ptp([lp for _, lp in pairs]))
    values, lps = np.array(largest).T
    assert np.ptp(lps) > 0.1
    np.testing.assert_allclose(values, values[0])


def test_small_integers_are_enough(noise):
    """Draws are kept in bytes: to the last bit the same."""
    draws = make_model().fit(noise).draws_
    found = draws.summed_lp()
    assert (found >= draws.lp).all()
    for c, d in np.ndindex(found.shape):
        assert draws[c, d].summed_lp == found[c, d]


# -- the rank: with labels summed out ------------------------------------------------


@pytest.mark.parametrize(
    "transitions",
    ["hcrp", "sticky", HCRPTransitions(context_features=[1])],
    ids=["plain", "stays", "contexts"],
)
def test_joint_of_a_path_and_data(transitions):
    """Against products of transition and predictive probabilities, two sequences."""
    rng = np.random.default_rng(1)
    X = np.c_[rng.integers(3, size=40), rng.integers(2, size=40)]
    if isinstance(transitions, str):
        X = X[:, :1]
    lengths = [25, 15]
    hmm = make_model(transitions=transitions).fit(X, lengths=lengths)
    data, (c, d) = hmm._fitted.sequences, hmm._fitted.best
    draw = hmm.draws_[c, d]
    model = frozen_model(draw, data, hmm.emission_)
    expected = 0.0
    for t, k in enumerate(draw.states):
        start, rows = model.transition_matrix(t)
        row = start if t in data.starts else rows[draw.states[t - 1]]
        one = np.zeros((40, hmm.n_states_ + 1))
        one[:, k] = 1.0
        expected += math.log(row[k]) + model.log_mixtures(one)[t]
    assert model.log_joint(draw.states) == pytest.approx(expected, rel=1e-12)


def test_rank_is_that_of_the_only_path():
    """One state has one path: nothing is left to sum but new states."""
    hmm = make_model(emission="gaussian", init="single", n_burnin=0, n_draws=40)
    X = np.random.default_rng(0).standard_normal((200, 1))
    draws, n_found = hmm.fit(X).draws_, 0
    for c, d in np.argwhere(draws.n_states == 1):
        found = rank(draws[c, d], hmm._fitted.sequences, hmm.emission_, hmm.transitions_)
        assert draws[c, d].summed_lp < found < draws[c, d].summed_lp + 5
        n_found += 1
    assert n_found > 10


def letters(n_steps):
    """Two states that last, of overlapping letters, and their path."""
    rng = np.random.default_rng(1)
    states = np.cumsum(rng.random(n_steps) < 0.1) % 2
    probs = np.array([[0.35, 0.15, 0.15, 0.35], [0.15, 0.35, 0.35, 0.15]])
    below = rng.random(n_steps)[:, None] > probs.cumsum(axis=1)[states]
    return below.sum(axis=1)[:, None], states


def test_rank_prefers_two_states_that_overlap():
    """The joint probability of a path prefers one state by hundreds of nats."""
    X, states = letters(5000)
    joint, ranks = [], []
    for init, n_states in ((states, 2), ("single", 1)):
        hmm = HCRPHMM(transitions="sticky", init=init, n_burnin=20, random_state=0)
        draws = hmm.set_params(n_draws=40, thin=1).fit(X).draws_
        chosen = np.flatnonzero(draws.n_states[0] == n_states)
        assert len(chosen) >= 3
        model = hmm._fitted.sequences, hmm.emission_, hmm.transitions_
        found = [rank(draws[0, d], *model) for d in chosen]
        joint.append(draws.summed_lp()[0, chosen].mean())
        ranks.append(np.mean(found))
    assert joint[0] < joint[1] - 500
    assert ranks[0] > ranks[1] + 8


def test_chains_have_ranks():
    """From this start one state has the highest joint probability of a path."""
    X, _ = letters(5000)
    settings = {"n_burnin": 50, "n_draws": 20, "thin": 1, "random_state": 0}
    hmm = HCRPHMM(transitions="sticky", n_chains=2, **settings).fit(X)
    assert (hmm.draws_.n_states > 1).all()
    ranks = hmm._fitted.ranks
    assert ranks.shape == (2, 10)
    assert (ranks > hmm.draws_.summed_lp()[:, :10] + 300).all()
    # It is compared between chains only.
    assert hmm.set_params(n_chains=1, n_burnin=1).fit(X[:200])._fitted.ranks is None


# -- the draw that it selects ---------------------------------------------------------


def test_map_is_not_of_one_seating(noise):
    model = make_model(point_estimate="map").fit(noise)
    draws, data = model.draws_, model._fitted.sequences
    found = draws.summed_lp()
    assert draws.argmax() == np.unravel_index(found.argmax(), found.shape)
    ranks = [
        [rank(draws[c, d], data, model.emission_, model.transitions_) for d in range(20)]
        for c in range(2)
    ]
    best = np.unravel_index(np.argmax(ranks), found.shape)
    assert model._fitted.best == best
    np.testing.assert_array_equal(model.labels_, draws.states[best])
    # One seating says that noise has six states.
    of_one = np.unravel_index(draws.lp.argmax(), draws.shape)
    assert draws.n_states[of_one] == 6
    assert model.n_states_ == 1


def test_chains_of_different_lengths():
    draws = make_model().fit([[0], [1], [1]] * 10).draws_
    ragged = PosteriorDraws([draws._chains[0][:3], [], draws._chains[1][:5]])
    found = ragged.summed_lp()
    np.testing.assert_array_equal(np.isnan(found), np.arange(5) >= np.array([3, 0, 5])[:, None])
    assert found[ragged.argmax()] == np.nanmax(found)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_vi_without_paths_has_the_most_probable_path(sampler, noise):
    """Whatever the sampler: all of them leave a seating."""
    draws = make_model(sampler=sampler).fit(noise).draws_
    lean = make_model(sampler=sampler, store_states=False).fit(noise)
    assert lean.point_estimate == "vi"
    assert lean.draws_.states is None
    assert not lean.draws_.has_states
    assert lean._fitted.best == draws.argmax()
    np.testing.assert_array_equal(lean.labels_, draws.states[lean._fitted.best])
    copy = pickle.loads(pickle.dumps(lean))
    np.testing.assert_array_equal(copy.predict(noise), lean.predict(noise))


@ignore_warnings(category=UserWarning)
def test_best_path_is_the_same_in_pieces(noise, tmp_path):
    """Without paths the best one is all that there is, over resumes and jobs."""
    lean = {"store_states": False}
    whole = make_model(**lean).fit(noise)
    make_model(**lean, n_draws=7, checkpoint=tmp_path / "run").fit(noise)
    resumed = make_model(**lean, checkpoint=tmp_path / "run").fit(noise)
    warm = make_model(**lean, n_draws=10, warm_start=True).fit(noise).fit(noise)
    stopped = make_model(
        **lean, checkpoint=tmp_path / "other", callback=lambda report: report.n_draws == 8
    ).fit(noise)
    stopped.set_params(callback=None).fit(noise)
    for model in (resumed, warm, stopped, make_model(**lean, n_jobs=2).fit(noise)):
        assert model._fitted.best == whole._fitted.best
        np.testing.assert_array_equal(model.labels_, whole.labels_)
        for one, other in zip(model._fit_state.chains, whole._fit_state.chains, strict=True):
            assert one.best_lp == other.best_lp
            np.testing.assert_array_equal(one.best_states, other.best_states)
    best = whole._fit_state.chains[whole._fitted.best[0]].best_lp
    assert best == np.nanmax(whole.draws_.summed_lp())


def test_some_draws_without_paths(noise):
    """A warm start that keeps paths from now on."""
    model = make_model(store_states=False, n_draws=10, warm_start=True).fit(noise)
    model.set_params(store_states=True).fit(noise)
    draws = make_model().fit(noise).draws_
    assert model._fitted.best == draws.argmax()
    np.testing.assert_array_equal(model.labels_, draws.states[model._fitted.best])


# -- rank with a penalty ---------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0.0, 1.3])
def test_terms_of_the_rank(penalty):
    """Both terms against products over labels, the penalty for draws."""
    rng = np.random.default_rng(2)
    X = (4.0 * np.repeat([0, 1, 0, 2, 1], 8) + rng.normal(size=40))[:, None]
    prior = HCRPTransitions(stay_prior=(6.0, 1.5))
    hmm = make_model(sampler="auto", emission="gaussian", transitions=prior).fit(X)
    data = hmm._fitted.sequences
    draw = next(
        draw
        for draw in hmm.draws_.thinned()
        # Without a draw of the same state again, which could be anywhere in a run.
        if not (draw.transitions["rows"] == draw.transitions["dishes"]).any()
    )
    n, record = draw.n_states, draw.transitions
    left = np.bincount(record["rows"], record["n_customers"], n + 1)[:n]
    kappa, omega = record["stay_prior"]
    stay = (kappa + record["stays"]) / (kappa + omega + record["stays"] + left)
    stay = np.append(stay, kappa / (kappa + omega))
    plain = frozen_model(draw, data, hmm.emission_)
    start, rows = plain.transition_matrix()
    # A new state after k, and k again, which nothing was drawn for.
    drawn = rows.copy()
    drawn[np.diag_indices(n + 1)] -= stay
    drawn *= np.exp(-penalty)
    matrix = drawn + np.diag(stay)
    model = FrozenModel(
        draw.arrays, hmm.emission_.make_stats(data.codes), data.starts, switch_penalty=penalty
    )
    one = np.eye(n + 1)
    logs = np.array([plain.log_mixtures(np.tile(row, (40, 1))) for row in one]).T
    message, total = start, 0.0
    for t in range(40):
        if t:
            message = message @ matrix
        message = message * np.exp(logs[t])
        total += np.log(message.sum())
        message /= message.sum()
    assert model.filter()[0].sum() == pytest.approx(total, abs=1e-9)
    path = draw.states
    changes = path[1:] != path[:-1]
    expected = np.log(start[path[0]]) + logs[np.arange(40), path].sum()
    expected += np.log(drawn[path[:-1], path[1:]][changes]).sum()
    expected += (record["stays"] * np.log(stay[:n])).sum()
    # A draw of the same state is summed over.
    expected += np.log1p(drawn.diagonal() / stay)[path[:-1][~changes]].sum()
    assert model.log_joint(path) == pytest.approx(expected, abs=1e-9)
