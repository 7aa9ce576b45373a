"""Regimes: their evidence, the tree of merges, and what is found in data."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import digamma, expit, gammaln, logit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm._using.stays import fitted_regressions, regression_probabilities
from skihmm.core._regime_passes import RegimePasses
from skihmm.posterior import Regimes, _regime_chain, _regime_tree, _regimes
from skihmm.posterior._regime_chain import Counts, Likelihoods, RegimeChain, log_dirichlet
from skihmm.posterior._regime_tree import cut, merge_tree, nested_tree
from skihmm.posterior._regimes import FoundRegimes
from skihmm.transitions import HCRPTransitions

STARTS = np.array([0, 4])


def path_of(rng, transmat, n):
    path = np.zeros(n, dtype=int)
    for t in range(1, n):
        path[t] = rng.choice(len(transmat), p=transmat[path[t - 1]])
    return path


def staying(n_states, dwell):
    other = (1 - np.eye(n_states)) / dwell / (n_states - 1)
    return np.eye(n_states) * (1 - 1 / dwell) + other


# ---- passes and evidence, by all paths


def seen_of(rng, n_steps, n_states, starts=STARTS):
    return Likelihoods.of_terms(rng.normal(size=(n_steps, n_states)), starts)


def counts_of(rng, n):
    return Counts(rng.random(n), 5 * rng.random((n, n)), 5 * rng.random(n))


def by_all_paths(chain, seen, starts=STARTS):
    """Log likelihood, counts and best path of regimes, by the matrix over states."""
    n_steps, n_states = seen.values.shape
    groups = chain.groups
    matrix = chain.transmat[groups][:, groups] * chain.weights
    first = chain.startprob[groups] * chain.weights
    total, of_regimes = 0.0, {}
    counts = (np.zeros(chain.n_regimes), np.zeros((chain.n_regimes,) * 2), np.zeros(n_states))
    for path in product(range(n_states), repeat=n_steps):
        p = 1.0
        for t, k in enumerate(path):
            p *= first[k] if t in starts else matrix[path[t - 1], k]
            p *= seen.values[t, k]
        total += p
        regimes = tuple(groups[list(path)].tolist())
        of_regimes[regimes] = of_regimes.get(regimes, 0.0) + p
        for t, k in enumerate(path):
            counts[2][k] += p
            if t in starts:
                counts[0][groups[k]] += p
            else:
                counts[1][groups[path[t - 1]], groups[k]] += p
    log_p = np.log(total) + seen.log_factors.sum()
    best = max(of_regimes, key=of_regimes.__getitem__)
    return log_p, [x / total for x in counts], best


GROUPS = {"states": [0, 1, 2], "two": [0, 1, 0], "one": [0, 0, 0]}


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_passes_are_those_of_all_paths(groups):
    """Over two sequences: a message does not go on from one to the other."""
    rng = np.random.default_rng(0)
    chain = RegimeChain(np.array(groups), counts_of(rng, 3))
    seen = seen_of(rng, 7, 3)
    log_p, counts = chain.expected(seen)
    expected, all_counts, best = by_all_paths(chain, seen)
    assert log_p == pytest.approx(expected, abs=1e-12)
    for one, other in zip((counts.first, counts.moves, counts.steps), all_counts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    assert tuple(chain.passes(seen).viterbi().tolist()) == best
    if chain.n_regimes > 1:
        assert abs(log_p - by_all_paths(chain, seen, starts=STARTS[:1])[0]) > 1e-3


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_steps_may_have_their_own_probabilities_to_stay(groups):
    """By all paths of regimes; those that leave go where the matrix leads."""
    rng = np.random.default_rng(1)
    chain = RegimeChain(np.array(groups), counts_of(rng, 3))
    seen, n = seen_of(rng, 7, 3), chain.n_regimes
    stays = rng.random((7, n))
    stays[5] = [1.0, 0.0, 0.5][:n]
    onward = chain.transmat * (1 - np.eye(n))
    onward /= np.maximum(onward.sum(axis=1, keepdims=True), 1e-300)
    mixtures = (seen.values * chain.weights) @ np.eye(n)[groups]
    total, of_steps, kept, moves = 0.0, np.zeros((7, n)), np.zeros((7, n)), np.zeros((n, n))
    best, path_of_best = -1.0, None
    for path in product(range(n), repeat=7):
        p = 1.0
        for t, r in enumerate(path):
            if t in STARTS:
                p *= chain.startprob[r]
            else:
                q = path[t - 1]
                p *= stays[t, r] if q == r else (1 - stays[t, q]) * onward[q, r]
            p *= mixtures[t, r]
        total += p
        if p > best:
            best, path_of_best = p, path
        for t, r in enumerate(path):
            of_steps[t, r] += p
            if t not in STARTS:
                moves[path[t - 1], r] += p
                kept[t, r] += p * (path[t - 1] == r)
    passes = chain.passes(seen, stays=stays)
    log_predictive, probs = passes.filter()
    assert log_predictive.sum() == pytest.approx(np.log(total), abs=1e-12)
    found = passes.smooth(probs)
    np.testing.assert_allclose(probs, of_steps / total, atol=1e-13)
    np.testing.assert_allclose(found[0], moves / total, atol=1e-13)
    np.testing.assert_allclose(found[2], kept / total, atol=1e-13)
    assert tuple(passes.viterbi().tolist()) == path_of_best
    constant = np.tile(chain.transmat.diagonal(), (7, 1))
    plain = chain.passes(seen)
    same, of_same = chain.passes(seen, stays=constant), plain.filter()
    for one, other in zip(same.filter(), of_same, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    np.testing.assert_allclose(same.smooth(of_same[1].copy())[1], plain.smooth(of_same[1])[1])


def exact_evidence(chain, seen):
    """The evidence of `fit`, its terms written from the definitions."""
    chain._update(chain.expected(seen)[1])
    log_p, (first, moves, steps), _ = by_all_paths(chain, seen)
    n = chain.n_regimes

    def log_dm(counts, prior):
        return (
            gammaln(prior.sum())
            - gammaln(prior.sum() + counts.sum())
            + (gammaln(prior + counts) - gammaln(prior)).sum()
        )

    log_s = log_dm(first, np.full(n, 1 / n))
    for r in range(n):
        own = steps[chain.groups == r]
        log_s += log_dm(own, np.full(len(own), 0.5))
    bases = [(np.full(n, 1 / n), (0, *_regime_chain._KAPPAS), False)]
    if n > 1:
        for off, kappas in ((0, (0,)), (1, _regime_chain._KAPPAS)):
            into = moves.sum(axis=0) - off * moves.diagonal() + 0.5
            bases.append((into / into.sum(), kappas, True))
    rows = []
    for base, kappas, is_read in bases:
        for alpha, kappa in product(_regime_chain._ALPHAS, kappas):
            prior = alpha * base + kappa * np.eye(n)
            value = sum(log_dm(moves[j], prior[j]) for j in range(n))
            if is_read:
                tables = alpha * base * (digamma(prior + moves) - digamma(prior)).sum(axis=0)
                value += log_dm(tables, np.full(n, 0.5)) - tables @ np.log(base)
            rows.append(value)
    log_s += max(rows)
    log_seen = (moves * np.log(chain.transmat)).sum() + first @ np.log(chain.startprob)
    return log_p + log_s - log_seen - steps @ np.log(chain.weights)


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_evidence_is_that_of_its_definition(groups, monkeypatch):
    rng = np.random.default_rng(1)
    counts, seen = counts_of(rng, 3), seen_of(rng, 7, 3)
    chain = RegimeChain(np.array(groups), counts)
    chain.fit(seen)
    expected = exact_evidence(RegimeChain(np.array(groups), counts), seen)
    assert chain.evidence == pytest.approx(expected, abs=1e-10)
    # Without the probability of the counts it would be another one.
    monkeypatch.setattr(_regime_chain, "_log_likelihood", lambda counts, probs: 0.0)
    chain = RegimeChain(np.array(groups), counts)
    chain.fit(seen)
    assert abs(chain.evidence - expected) > 0.1


@pytest.mark.parametrize("n_states", [5, 23])
def test_lumped_passes_are_those_of_the_whole_matrix(n_states):
    """Of states, whose next one depends on the regime alone; several sequences."""
    rng = np.random.default_rng(2)
    groups = rng.permutation(np.arange(n_states) % 3)
    chain = RegimeChain(groups, counts_of(rng, n_states))
    seen = seen_of(rng, 500, n_states, np.array([0, 1, 77, 400]))
    whole = RegimePasses(
        seen.values,
        seen.first,
        np.arange(n_states),
        np.ones(n_states),
        chain.startprob[groups] * chain.weights,
        chain.transmat[groups][:, groups] * chain.weights,
    )
    log_predictive, probs = whole.filter()
    moves, steps, _ = whole.smooth(probs)
    Z = np.eye(3)[groups]
    lumped = chain.passes(seen)
    found, of_regimes = lumped.filter()
    np.testing.assert_allclose(found, log_predictive, atol=1e-12)
    moves_found, steps_found, kept = lumped.smooth(of_regimes)
    assert kept.shape == (0, 3)
    np.testing.assert_allclose(of_regimes, probs @ Z, atol=1e-12)
    np.testing.assert_allclose(moves_found, Z.T @ moves @ Z, atol=1e-10)
    np.testing.assert_allclose(steps_found, steps, atol=1e-10)
    assert moves.sum() == pytest.approx(500 - 4)


def test_arguments_of_passes():
    rng = np.random.default_rng(0)
    seen = seen_of(rng, 7, 3)
    sizes = [np.ones(3), np.ones(2) / 2, np.ones((2, 2)) / 2]
    with pytest.raises(ValueError, match="groups holds 0 to 2; expected regimes from 0 to 1"):
        RegimePasses(seen.values, seen.first, np.array([0, 1, 2]), *sizes)
    with pytest.raises(ValueError, match="a sequence that begins at step 0"):
        RegimePasses(seen.values, seen.first[::-1].copy(), np.array([0, 1, 1]), *sizes)
    passes = RegimePasses(seen.values, seen.first, np.array([0, 1, 1]), *sizes)
    with pytest.raises(ValueError, match=r"shape \(7, 3\); expected \(7, 2\)"):
        passes.smooth(seen.values)
    with pytest.raises(ValueError, match=r"stays has the shape \(7, 3\); expected \(7, 2\)"):
        RegimePasses(seen.values, seen.first, np.array([0, 1, 1]), *sizes, seen.values)
    broken = RegimePasses(np.full((7, 3), np.nan), seen.first, np.array([0, 1, 1]), *sizes)
    with pytest.raises(ValueError, match="Step 0 has the probability nan"):
        broken.filter()


def test_emission_terms_are_those_of_the_forward_pass():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [4.0], [0.0], [9.0]], 20, axis=0) + rng.normal(size=(80, 1))
    X[7] = np.nan
    hmm = HCRPHMM(emission="gaussian", n_burnin=20, n_draws=2, random_state=0).fit(X)
    model = hmm._fitted.model(hmm._fitted.encode(X, None, [50, 30]))
    log_predictive, filtered = model.filter(with_probs=True)
    ahead, terms = model.look_ahead(), model.emission_terms()
    joint = np.log(ahead) + terms
    total = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(total, log_predictive, atol=1e-12)
    expected = joint - log_predictive[:, None]
    np.testing.assert_allclose(np.log(filtered), expected, atol=1e-12)
    np.testing.assert_array_equal(terms[7], 0.0)


# ---- the tree


def test_gains_are_those_of_merged_counts(monkeypatch):
    """Computed anew or updated: the best pair by the evidence of the counts after it."""
    rng = np.random.default_rng(3)
    counts = Counts(np.ones(9), rng.gamma(0.3, 20, (9, 9)), rng.gamma(2, 20, 9))

    def value(groups, pseudo_count):
        lumped = counts.lumped(groups).moves
        rows = gammaln(lumped + pseudo_count) - gammaln(pseudo_count)
        found = rows.sum() - gammaln(1 + lumped.sum(axis=1)).sum()
        for r in range(groups.max() + 1):
            own, size = counts.steps[groups == r], (groups == r).sum()
            found += (gammaln(own + 1 / size) - gammaln(1 / size)).sum()
            found -= gammaln(1 + own.sum())
        return found

    def merged(groups, i, j):
        return np.where(groups == j, i, groups - (groups > j))

    tree = merge_tree(counts)
    for n in range(9, 1, -1):
        groups = cut(tree, 9, 9 - n)
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        best = max(pairs, key=lambda pair: value(merged(groups, *pair), 1 / (n - 1)))
        np.testing.assert_array_equal(cut(tree, 9, 10 - n), merged(groups, *best))
    monkeypatch.setattr(_regime_tree, "MOST_EXACT", 1)
    monkeypatch.setattr(_regime_tree, "STEP", 0.1)
    gains = _regime_tree._MoveGains(counts.moves, 1)
    for i, j in ((2, 5), (0, 7), (2, 3)):
        gains.merge(i, j)
        updated, n = gains.outer.copy(), len(gains.moves)
        for k in range(n - 1):
            others = np.arange(k + 1, n)
            anew = gains._outer_of(k, others)
            np.testing.assert_allclose(updated[k, others], anew, atol=1e-10)


def test_sets_that_are_left_seldom():
    rng = np.random.default_rng(4)
    inner = staying(3, 5)
    transmat = np.kron(np.eye(2), inner * 0.98) + np.kron(1 - np.eye(2), np.full((3, 3), 0.02 / 3))
    path = path_of(rng, transmat, 4000)
    tree, scores = nested_tree(Counts.of_path(path, np.zeros(1, dtype=int), 6))
    np.testing.assert_array_equal(cut(tree, 6, 4), [0, 0, 0, 1, 1, 1])
    assert len(scores) == 6
    assert scores[1] > max(scores[0], scores[5])
    # By the definition: in sets, into sets, and from set to set.
    counts, sets = Counts.of_path(path, np.zeros(1, dtype=int), 6), np.repeat([0, 1], 3)
    expected = 0.0
    for s in range(2):
        inside = counts.moves[np.ix_(sets == s, sets == s)]
        entries = counts.moves[np.ix_(sets != s, sets == s)].sum(axis=0) + counts.first[sets == s]
        left = counts.moves[np.ix_(sets == s, sets != s)].sum()
        expected += log_dirichlet(np.array([inside.sum(), left]), 0.5)
        expected += log_dirichlet(inside, 1 / 3).sum() + log_dirichlet(entries, 1 / 3)
    assert scores[1] == pytest.approx(expected)


# ---- what is found: noise of another shape

CENTRES = np.array([[-3.6, 0.0], [0.0, 3.6], [3.6, 0.0]])
SHORT = {"n_burnin": 150, "n_draws": 30, "random_state": 1}


def of_noise(draw, log_density, dwell, emission="gaussian", n_regimes=3, n=1500):
    return draw, log_density, dwell, emission, n_regimes, n


def shifted(law):
    """Rows about the centres, and their log density under every regime."""
    return (
        lambda rng, z: CENTRES[z] + law.rvs((len(z), 2), random_state=rng),
        lambda X: np.stack([law.logpdf(X - c).sum(axis=1) for c in CENTRES], axis=1),
    )


PARTS = np.array([[[-5, 0], [-1, 4]], [[5, 1], [1, -4]], [[-4, -5], [4, 5]]])
BLOB = stats.norm(scale=0.8)


def blobs(rng, z):
    return PARTS[z, rng.integers(2, size=len(z))] + BLOB.rvs((len(z), 2), random_state=rng)


def log_blobs(X):
    each = BLOB.logpdf(X[:, None, None] - PARTS).sum(axis=-1)
    return np.logaddexp.reduce(each, axis=2)


RATES = np.array([3.0, 12.0, 40.0])


def overdispersed(rng, z):
    return rng.poisson(RATES[z] * rng.gamma(3, 1 / 3, len(z)))[:, None]


def log_overdispersed(X):
    return np.stack([stats.nbinom(3, 3 / (3 + m)).logpmf(X[:, 0]) for m in RATES], axis=1)


GAMMA = shifted(stats.gamma(1, scale=1.2))
NOISE = {
    "gamma": of_noise(*GAMMA, dwell=40),
    "fast gamma": of_noise(*GAMMA, dwell=5, n=3000),
    "t": of_noise(*shifted(stats.t(3, scale=0.8)), dwell=40),
    "mixtures": of_noise(blobs, log_blobs, dwell=5),
    "counts": of_noise(overdispersed, log_overdispersed, dwell=40, emission="poisson"),
    "white": of_noise(*GAMMA, dwell=40, n_regimes=1),
}


@cache
def noise(name):
    draw, log_density, dwell, emission, n_regimes, n = NOISE[name]
    rng = np.random.default_rng(11)
    transmat = staying(3, dwell) if n_regimes > 1 else np.eye(3)
    z = path_of(rng, transmat, n)
    X = draw(rng, z)
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X)
    seen = Likelihoods.of_terms(log_density(X), np.zeros(1, dtype=int))
    truth = RegimePasses(
        seen.values, seen.first, np.arange(3), np.ones(3), np.ones(3) / 3, transmat + 1e-9
    )
    return hmm, X, z, adjusted_rand_score(z, truth.viterbi())


def score_of(name, labels):
    return adjusted_rand_score(noise(name)[2], labels)


@pytest.mark.parametrize("name", NOISE)
def test_noise_of_another_shape_is_one_regime(name):
    hmm, _, z, truth = noise(name)
    regimes = hmm.find_regimes()
    assert hmm.n_states_ > len(np.unique(z)) == regimes.n_regimes_
    assert score_of(name, regimes.labels_) > truth - 0.02
    assert score_of(name, regimes.labels_) > score_of(name, hmm.labels_)


def test_labels_that_are_mapped_are_worse():
    """States of a draw wobble where they overlap; the path of regimes does not."""
    hmm, _, _, truth = noise("fast gamma")
    regimes = hmm.find_regimes()
    mapped = score_of("fast gamma", regimes.state_regimes_[hmm.labels_])
    # By how much depends on the draw: .005 to .019 in fits with four seeds.
    assert mapped < score_of("fast gamma", regimes.labels_)
    assert mapped < truth - 0.01


def test_a_base_that_is_not_paid_for_keeps_white_noise_in_pieces(monkeypatch):
    hmm = noise("white")[0]
    evidences = _regime_chain._row_evidences
    monkeypatch.setattr(
        _regime_chain,
        "_row_evidences",
        lambda moves, base, kappas, _: evidences(moves, base, kappas, False),
    )
    assert Regimes(hmm).n_regimes_ == hmm.n_states_


def test_thin_priors_of_shares_split_regimes(monkeypatch):
    log_dirichlet, half = _regime_chain.log_dirichlet, _regime_chain.HALF

    def thin(counts, a):
        return log_dirichlet(counts, 1 / counts.shape[-1] if a == half else a)

    monkeypatch.setattr(_regime_chain, "log_dirichlet", thin)
    assert Regimes(noise("white")[0]).n_regimes_ > 1


def test_noise_with_memory_needs_a_number():
    rng = np.random.default_rng(0)
    z = path_of(rng, staying(3, 40), 1500)
    e = rng.normal(size=(1500, 2))
    for t in range(1, 1500):
        e[t] += 0.6 * e[t - 1]
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(2 * CENTRES[z] / 1.2 + e)
    assert hmm.find_regimes().n_regimes_ > 3
    told = hmm.find_regimes(3)
    assert told.n_regimes_ == 3
    assert adjusted_rand_score(z, told.labels_) > 0.95


# ---- what is not joined: states that are real


def joined_by_rows(path):
    """The rule of an earlier version: states after which the same states follow."""
    groups = np.unique(path, return_inverse=True)[1]
    while True:
        n = groups.max() + 1
        counts = np.zeros((n, n))
        np.add.at(counts, (groups[:-1], groups[1:]), 1)
        rows = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        distances = np.array([abs(rows - row).sum(axis=1) for row in rows]) / 2
        distances[np.tril_indices(n)] = np.inf
        i, j = divmod(int(distances.argmin()), n)
        if not distances[i, j] < 0.4:
            return groups
        groups = np.where(groups == j, i, groups - (groups > j))


def dirichlet(concentration, n_states):
    return lambda rng: rng.dirichlet(np.full(n_states, concentration), n_states)


REAL = {
    "dwell 1": (lambda _: staying(4, 1), 1000, 2),
    "dwell 1.5": (lambda _: staying(3, 1.5), 1000, 2),
    "short": (dirichlet(0.3, 6), 300, 5),
    "weak": (dirichlet(0.5, 4), 1000, 5),
    "counts": (dirichlet(0.3, 4), 1500, 1),
}


@cache
def real(name):
    transmat, n, n_features = REAL[name]
    rng = np.random.default_rng(11)
    z = path_of(rng, transmat(rng), n)
    if name == "counts":
        X = rng.poisson(np.array([1, 6, 18, 40])[z])[:, None]
    else:
        X = rng.normal(0, 5, (6, n_features))[z] + 0.7 * rng.normal(size=(n, n_features))
    emission = "poisson" if name == "counts" else "gaussian"
    return HCRPHMM(emission=emission, **SHORT).fit(X), z


@pytest.mark.parametrize("name", REAL)
def test_real_states_stay(name):
    hmm, z = real(name)
    regimes = hmm.find_regimes()
    assert regimes.n_regimes_ == hmm.n_states_
    found = adjusted_rand_score(z, regimes.labels_)
    assert found > adjusted_rand_score(z, hmm.labels_) - 0.01
    # Regimes are numbered by their own path, in which states of nearly equal size may
    # have the other order.
    np.testing.assert_array_equal(np.sort(regimes.state_regimes_), np.arange(hmm.n_states_))
    n_mapped = np.bincount(regimes.state_regimes_[hmm.labels_])
    assert abs(n_mapped - np.bincount(regimes.labels_)).max() < 0.05 * len(z)


def test_symbols_of_an_automaton_stay():
    from skihmm.datasets import make_automaton_sequence

    X, z = make_automaton_sequence(1500, random_state=0)
    # With seed 0 the fit has 15 states and a piece of one, which is joined to it.
    hmm = HCRPHMM(n_burnin=200, n_draws=10, random_state=2).fit(X)
    regimes = hmm.find_regimes()
    assert regimes.n_regimes_ == hmm.n_states_ == len(np.unique(z)) == 15


def test_rows_that_are_alike_were_joined():
    """The rule that was there before."""
    lost = [name for name in REAL if joined_by_rows(real(name)[1]).max() < 2]
    assert lost


BASE = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])


def weakly_dependent(seed):
    """Evidences of states that are seen, with next ones of nearly the same law."""
    rng = np.random.default_rng(seed)
    path = path_of(rng, 0.85 * BASE + 0.15 * np.eye(6), 500)
    terms = np.where(np.eye(6, dtype=bool)[path], 0.0, -12.0)
    starts = np.zeros(1, dtype=int)
    return _regimes._Search(Likelihoods.of_terms(terms, starts), path, starts, 0).evidences


def test_weakly_dependent_states_stay(monkeypatch):
    """By the prior of rows with a base and stays of its own, and by prior odds."""
    assert [_regimes.choose(weakly_dependent(seed)) for seed in range(8)] == [6] * 8

    def independent_rows(moves):
        n, none = len(moves), np.zeros(1)
        values = _regime_chain._row_evidences(moves, np.full(n, 1 / n), none, False)
        best = int(values.argmax())
        return np.full((n, n), _regime_chain._ALPHAS[best] / n), float(values.max())

    with monkeypatch.context() as patch:
        patch.setattr(_regime_chain, "row_prior", independent_rows)
        assert min(_regimes.choose(weakly_dependent(seed)) for seed in range(8)) < 6
    monkeypatch.setattr(_regimes, "_LEAST_GAIN", 0.0)
    assert min(_regimes.choose(weakly_dependent(seed)) for seed in range(8)) < 6


# ---- invariances


def searched(seen, path, starts, n_known=0):
    search = _regimes._Search(seen, path, starts, n_known)
    n = _regimes.choose(search.evidences)
    return search, search.chain(n, seen)


def permuted(seed, n_states=9, n_steps=900):
    """Steps of three regimes of three states each, in six sequences."""
    rng = np.random.default_rng(seed)
    z = path_of(rng, staying(3, 15), n_steps)
    path = 3 * z + rng.choice(3, p=[0.5, 0.3, 0.2], size=n_steps)
    terms = np.where(np.eye(9, dtype=bool)[path], 0.0, -5.0) + 0.5 * rng.normal(
        size=(n_steps, n_states)
    )
    return terms, path, np.arange(0, n_steps, 150)


def test_order_of_states_and_of_sequences_does_not_matter():
    terms, path, starts = permuted(5)
    search, chain = searched(Likelihoods.of_terms(terms.copy(), starts), path, starts)
    assert chain.n_regimes == 3
    order = np.random.default_rng(6).permutation(9)
    seen = Likelihoods.of_terms(terms[:, order].copy(), starts)
    other, of_others = searched(seen, np.argsort(order)[path], starts)
    np.testing.assert_allclose(other.evidences, search.evidences, rtol=1e-10)
    assert adjusted_rand_score(of_others.groups, chain.groups[order]) == 1
    steps = np.arange(900).reshape(6, 150)[::-1].ravel()
    seen = Likelihoods.of_terms(terms[steps], starts)
    other, of_others = searched(seen, path[steps], starts)
    np.testing.assert_allclose(other.evidences, search.evidences, rtol=1e-10)
    np.testing.assert_array_equal(of_others.groups, chain.groups)


def test_numbers_of_regimes_do_not_depend_on_those_of_states(monkeypatch):
    """Ties in occupancy are broken by time, not by the labels of states."""
    regimes = noise("gamma")[0].find_regimes()
    path = np.repeat([2, 0, 1, 0, 2], [30, 20, 50, 30, 20])
    for numbers in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        renamed = np.array(numbers)
        order = regimes._order(renamed[path], renamed)
        np.testing.assert_array_equal(order, renamed[[2, 0, 1]])

    def by_label(states, n_states):
        return np.argsort(-np.bincount(states, minlength=n_states), kind="stable")

    monkeypatch.setattr(_regimes, "occupancy_order", by_label)
    assert regimes._order(path, np.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_levels_of_many_states_are_refined_about_the_best(seed, monkeypatch):
    terms, path, starts = permuted(seed)
    seen = Likelihoods.of_terms(terms, starts)
    whole, chain = searched(seen, path, starts)
    monkeypatch.setattr(_regimes, "MOST_EXACT", 4)
    part, found = searched(seen, path, starts)
    assert np.isnan(part.evidences).any()
    is_known = np.isfinite(part.evidences)
    np.testing.assert_array_equal(part.evidences[is_known], whole.evidences[is_known])
    np.testing.assert_array_equal(found.groups, chain.groups)


def test_known_states_are_not_merged_with_one_another():
    terms, path, starts = permuted(5)
    seen = Likelihoods.of_terms(terms, starts)
    # States 0 and 1 are of one regime.
    search, chain = searched(seen, path, starts, n_known=2)
    assert search.least == 2
    assert np.isnan(search.evidences[0])
    assert chain.groups[0] != chain.groups[1]
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 6.0, 0.0, 6.0], 100) + rng.gamma(1, size=400)
    states = np.full(400, -1)
    states[[150, 160]] = 3  # the upper level
    states[[10, 20]] = 5
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(X[:, None], states=states)
    regimes = hmm.find_regimes()
    assert regimes.n_regimes_ == 2
    assert (regimes.labels_[100:200] == 0).mean() > 0.95
    with pytest.raises(ValueError, match=r"n_regimes=1; expected 2 to \d+: .*known ones"):
        hmm.find_regimes(1)


# ---- the object


def test_attributes_and_predictions():
    hmm, X, _, _ = noise("gamma")
    regimes = hmm.find_regimes()
    n = regimes.n_regimes_
    assert repr(regimes) == f"<Regimes: 3 of {hmm.n_states_} states>"
    assert regimes.transmat_.shape == (n + 1, n + 1)
    np.testing.assert_allclose(regimes.transmat_.sum(axis=1), 1)
    assert regimes.startprob_.sum() == pytest.approx(1)
    stays = regimes.transmat_.diagonal()[:n]
    np.testing.assert_allclose(regimes.dwell_times_, 1 / (1 - stays))
    np.testing.assert_allclose(np.bincount(regimes.state_regimes_, regimes.state_weights_), 1)
    assert (np.diff(np.bincount(regimes.labels_)) <= 0).all()
    assert regimes.labels_.dtype == np.int32
    assert regimes.tree_.shape == (hmm.n_states_ - 1, 2)
    assert len(regimes.evidences_) == hmm.n_states_
    np.testing.assert_array_equal(hmm.regimes_, regimes.labels_)
    assert hmm.find_regimes() is regimes is hmm.find_regimes(3)

    path = regimes.predict(X)
    assert (path == regimes.labels_).mean() > 0.99
    smooth, filtered = regimes.predict_proba(X), regimes.predict_proba(X, method="filter")
    np.testing.assert_allclose([smooth.sum(axis=1), filtered.sum(axis=1)], 1)
    np.testing.assert_allclose(smooth[-1], filtered[-1])
    np.testing.assert_array_equal(regimes.predict(X, method="smooth"), smooth.argmax(axis=1))
    far = regimes.predict([[1e3, -1e3]] * 5)
    np.testing.assert_array_equal(far, n)
    parts = [regimes.score(part) * len(part) for part in np.split(X, [700])]
    assert regimes.score(X, lengths=[700, 800]) == pytest.approx(sum(parts) / len(X))
    frame = regimes.predict_proba(pd.DataFrame(X))
    assert isinstance(frame, np.ndarray) or list(frame.columns)[-1] == "new_state"


def test_regimes_predict_better_than_mapped_states():
    """On new data: of two levels of fitted rows the chain of regimes knows more."""
    hmm, _, _, _ = noise("fast gamma")
    rng = np.random.default_rng(12)
    z = path_of(rng, staying(3, 5), 1000)
    X = GAMMA[0](rng, z)
    regimes = hmm.find_regimes()
    mapped = regimes.state_regimes_[np.minimum(hmm.predict(X), hmm.n_states_ - 1)]
    assert adjusted_rand_score(z, regimes.predict(X)) > adjusted_rand_score(z, mapped)


def test_second_level():
    rng = np.random.default_rng(4)
    inner = staying(3, 5)
    transmat = np.kron(np.eye(2), 0.98 * inner) + np.kron(1 - np.eye(2), np.ones((3, 3)) / 150)
    z = path_of(rng, transmat, 3000)
    X = rng.normal(0, 5, (6, 2))[z] + 0.7 * rng.normal(size=(3000, 2))
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(X)
    regimes = hmm.find_regimes()
    upper = regimes.upper(2)
    assert adjusted_rand_score(z // 3, upper.labels_) > 0.98
    assert upper.n_regimes_ == 2
    np.testing.assert_allclose(upper.transmat_.sum(axis=1), 1)
    np.testing.assert_allclose(np.bincount(upper.state_regimes_, upper.state_weights_), 1)
    assert (upper.predict(X) == upper.labels_).mean() > 0.99
    Z = np.eye(3)[np.append(upper._sets[:-1], 2)]
    np.testing.assert_allclose(upper.predict_proba(X), regimes.predict_proba(X) @ Z)
    assert upper.score(X) == regimes.score(X)
    assert upper.dwell_times_.mean() > 3 * regimes.dwell_times_.mean()
    assert len(upper.evidences_) == len(upper.tree_) + 1 == regimes.n_regimes_
    with pytest.raises(ValueError, match="n_regimes=9, but there are 6 regimes"):
        regimes.upper(9)


def test_new_states_and_sets_are_means_over_their_members():
    """Of states by their weights in a regime, of regimes by their expected steps."""
    hmm, X, _, _ = noise("gamma")
    regimes = hmm.find_regimes()
    member = np.eye(regimes.n_regimes_)[regimes.state_regimes_]
    to_new = (regimes.state_weights_ * hmm.transmat_[:-1, -1]) @ member
    assert (np.bincount(regimes.state_regimes_) > 1).any()
    np.testing.assert_allclose(regimes.transmat_[:-1, -1], to_new)
    # The expected steps, with the next ones of the new state, which has hardly any.
    steps = regimes.predict_proba(X)[:, :-1].sum(axis=0)
    upper = regimes.upper(2)
    sets = upper._sets[:-1]
    shares = steps / np.bincount(sets, steps)[sets]
    assert abs(shares - 1 / np.bincount(sets)[sets]).max() > 0.1
    found = np.bincount(regimes.state_regimes_, upper.state_weights_)
    np.testing.assert_allclose(found, shares, atol=0.01)
    joined = (np.eye(2)[sets] * shares[:, None]).T @ regimes.transmat_[:-1, :-1] @ np.eye(2)[sets]
    np.testing.assert_allclose(upper.transmat_[:-1, :-1], joined, atol=1e-4)


# ---- staying that depends on inputs


def test_regressions_of_expected_steps():
    """A step that stays with probability 1/4 is a quarter of one that stays."""
    rng = np.random.default_rng(0)
    x, steps = rng.normal(size=(80, 2)), rng.random((80, 2))
    kept = steps * rng.random((80, 2))
    found = fitted_regressions(x, kept, steps)
    both, y = np.tile(np.column_stack([2 * x, np.full(80, 3.0)]), (2, 1)), np.repeat([1, 0], 80)
    for r in range(2):
        weights = np.append(kept[:, r], steps[:, r] - kept[:, r])
        other = LogisticRegression(fit_intercept=False, tol=1e-8).fit(both, y, weights)
        np.testing.assert_allclose(found[r], other.coef_[0] * [2, 2, 3], atol=1e-4)
        e = found[r, 0] * x[:, 0] + found[r, 1] * x[:, 1] + found[r, 2]
        np.testing.assert_allclose(regression_probabilities(found, x)[:, r], expit(e))


def staying_by_inputs(rng, n, centre, slopes, x):
    """Regimes that stay with their own dependence on inputs."""
    z = np.zeros(n, dtype=int)
    for t in range(1, n):
        stays = rng.random() < expit(centre + slopes[z[t - 1]] * x[t])
        z[t] = z[t - 1] if stays else (z[t - 1] + rng.integers(1, len(slopes))) % len(slopes)
    return z


@cache
def with_inputs(name):
    rng = np.random.default_rng(3)
    if name == "noise":
        x = 1.4 * np.sin(np.arange(1500) / 8)
        z = staying_by_inputs(rng, 1500, 3.0, [2.0, -2.0], x)
        y = 6.0 * z + rng.gamma(1, size=1500)
    else:
        x = rng.normal(size=1500)
        z = staying_by_inputs(rng, 1500, 0.0, [3.0, -3.0, 3.0], x)
        y = 5.0 * z + rng.normal(size=1500)
    X = np.column_stack([y, 20.0 + 5.0 * x])
    transitions = HCRPTransitions(input_features=[1])
    hmm = HCRPHMM(emission="gaussian", transitions=transitions, **SHORT)
    with warnings.catch_warnings():
        # Of the coefficients of the smallest pieces.
        warnings.filterwarnings("ignore", "Data do not bound")
        return hmm.fit(X[:1000], lengths=[400, 600]), X, z


def slopes_of(regimes):
    """Of the standard input; 15 and 25 in X are one below and above the mean."""
    below, above = logit(regimes.stay_probabilities([[15.0], [25.0]]))
    return (above - below) / 2


def without_inputs(regimes):
    other = pickle.loads(pickle.dumps(regimes))
    other._regressions = None
    return other


def test_pieces_of_noise_whose_regimes_stay_by_inputs_are_joined():
    hmm, X, z = with_inputs("noise")
    regimes = hmm.find_regimes()
    assert hmm.n_states_ > 4
    assert regimes.n_regimes_ == 2
    assert adjusted_rand_score(z[:1000], regimes.labels_) > 0.97
    of_truth = np.sign(slopes_of(regimes)) * [1, -1] * (1 if regimes.labels_[0] == z[0] else -1)
    assert (of_truth == 1).all()
    assert (abs(slopes_of(regimes)) > 1).all()
    # On rows that are new.
    assert regimes.score(X[1000:]) > without_inputs(regimes).score(X[1000:]) + 0.02
    assert "pieces of 2 regimes" in hmm.diagnose().pieces
    assert hmm.summary().regimes is not None
    one = hmm.find_regimes(1)
    assert one.stay_probabilities([[20.0]])[0, 0] > 0.99
    assert np.isfinite(one.score(X[1000:]))


def test_real_states_that_an_input_tells_apart_stay():
    hmm, X, z = with_inputs("real")
    regimes = hmm.find_regimes()
    # Three, and one of few rows.
    assert regimes.n_regimes_ == hmm.n_states_ < 5
    new, constant = X[1000:], without_inputs(regimes)
    paths = (one.predict(X[:1000], lengths=[400, 600]) for one in (regimes, hmm, constant))
    by_regimes, by_states, by_constant = (adjusted_rand_score(z[:1000], one) for one in paths)
    # Nothing is joined.
    assert adjusted_rand_score(hmm.labels_, regimes.labels_) == 1
    assert by_constant < by_regimes > by_states - 0.005
    assert constant.score(new) + 0.2 < regimes.score(new) > hmm.score(new) - 0.01
    x = np.array([[15.0], [20.0], [25.0]])
    stays = regimes.stay_probabilities(x)
    by_state = hmm.stay_probabilities(x)[:, np.argsort(regimes.state_regimes_)]
    np.testing.assert_allclose(stays[:, :3], by_state[:, :3], atol=0.1)
    # Means over the regimes of a set, which a step that leaves its regime may stay in.
    pair = regimes.upper(2)
    onward = regimes.transmat_ * (1 - np.eye(regimes.n_regimes_ + 1))
    onward /= onward.sum(axis=1, keepdims=True)
    for s in range(2):
        members = np.flatnonzero(pair._sets[:-1] == s)
        again = onward[np.ix_(members, members)].sum(axis=1)
        shares = regimes._steps[members] / regimes._steps[members].sum()
        expected = (stays[:, members] + (1 - stays[:, members]) * again) @ shares
        np.testing.assert_allclose(pair.stay_probabilities(x)[:, s], expected)


def test_stay_probabilities_need_inputs():
    with pytest.raises(ValueError, match="Staying does not depend on inputs"):
        noise("counts")[0].find_regimes().stay_probabilities([[0.0]])


def test_path_has_the_penalty_of_the_transitions():
    rng = np.random.default_rng(0)
    z = path_of(rng, staying(2, 60), 800)
    X = (1.5 * z + rng.gamma(1, size=800))[:, None]
    changes = []
    for penalty in (0.0, 8.0):
        prior = HCRPTransitions(expected_dwell=10, switch_penalty=penalty)
        hmm = HCRPHMM(emission="gaussian", transitions=prior, **SHORT).fit(X)
        chain = hmm.find_regimes(2)
        hmm.transitions_.switch_penalty = 0.0
        plain = Regimes(hmm, 2)
        changes.append([np.count_nonzero(np.diff(r.labels_)) for r in (chain, plain)])
        hmm.transitions_.switch_penalty = penalty
        assert np.count_nonzero(np.diff(chain.predict(X))) <= changes[-1][1]
    assert changes[0][0] == changes[0][1]
    assert changes[1][0] < changes[1][1]


def test_kept_until_the_next_fit():
    hmm, X, _, _ = noise("counts")
    regimes = hmm.find_regimes()
    loaded = pickle.loads(pickle.dumps(hmm))
    np.testing.assert_array_equal(loaded.regimes_, regimes.labels_)
    np.testing.assert_array_equal(loaded.find_regimes().predict(X), regimes.predict(X))
    alone = pickle.loads(pickle.dumps(regimes))
    np.testing.assert_array_equal(alone.upper(2).labels_, regimes.upper(2).labels_)
    before = regimes.predict(X[:50])
    loaded.set_params(warm_start=True, n_draws=2).fit(X)
    assert not loaded._regimes.are_known
    assert loaded.find_regimes().labels_.shape == (len(X),)
    loaded.set_params(n_burnin=2).partial_fit(X[:50])
    assert not loaded._regimes.are_known
    assert loaded.find_regimes().labels_.shape == (len(X) + 50,)
    loaded.set_params(warm_start=False).fit(X[:50])
    assert loaded.regimes_.shape == (50,)
    # Regimes are of the fit that they were found for.
    np.testing.assert_array_equal(regimes.predict(X[:50]), before)


def test_draws_without_paths_have_regimes():
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 6.0, 0.0, 6.0], 100) + rng.gamma(1, size=400)
    hmm = HCRPHMM(emission="gaussian", store_states=False, **SHORT).fit(X[:, None])
    assert hmm.find_regimes().n_regimes_ == 2


def test_attribute_is_found_when_it_is_read():
    hmm, X, _, _ = noise("gamma")
    with pytest.raises(NotFittedError):
        HCRPHMM().find_regimes()
    assert not hasattr(HCRPHMM(), "regimes_")
    copied = pickle.loads(pickle.dumps(hmm))
    copied._regimes = FoundRegimes(copied._fitted)
    assert "regimes_" not in dir(copied)
    copied._repr_html_()
    assert not copied._regimes.are_known
    assert len(copied.regimes_) == len(X)
    assert "regimes_" in dir(copied)


REFUSED = {
    "contexts": ({"context_features": [1]}, r"contexts \(context_features\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_regimes_do_not_have_yet(name):
    parameters, words = REFUSED[name]
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0.0, 6.0, 0.0], 50), np.arange(150) % 2])
    X[:, 0] += rng.gamma(1, size=150)
    transitions = HCRPTransitions(**parameters)
    hmm = HCRPHMM(emission="gaussian", transitions=transitions, n_burnin=20, n_draws=3)
    hmm.set_params(random_state=0)
    hmm.fit(X)
    with pytest.raises(ValueError, match="Regimes are not found yet where .*" + words):
        hmm.find_regimes()
    assert not hasattr(hmm, "regimes_")
    with pytest.raises(AttributeError, match="find_regimes"):
        hmm.regimes_  # noqa: B018
    assert isinstance(hmm.diagnose().misfits, list)
    assert np.isfinite(hmm.residuals(X, join_states=True)).all()


def test_numbers_that_are_refused():
    hmm = noise("counts")[0]
    with pytest.raises(ValueError, match=f"n_regimes=99; expected 1 to {hmm.n_states_}"):
        hmm.find_regimes(99)
    for known in (1, 2):  # these are found already
        hmm.find_regimes(known)
    for number in (True, 1.0, 2.0, [1], np.array([1]), "2"):
        with pytest.raises(TypeError, match="not an integer"):
            hmm.find_regimes(number)
    assert hmm.find_regimes(np.int64(2)) is hmm.find_regimes(2)


def test_arrays_of_regimes_are_read_only():
    hmm = noise("counts")[0]
    for regimes in (hmm.find_regimes(), hmm.find_regimes(2), hmm.find_regimes(2).upper(1)):
        arrays = {name: value for name, value in vars(regimes).items() if name.endswith("_")}
        assert arrays.keys() > {"labels_", "transmat_", "tree_", "state_weights_"}
        for name, value in arrays.items():
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable, name
    assert hmm.labels_.flags.writeable


@pytest.mark.parametrize("seed", range(2))
def test_regimes_of_single_states_have_the_labels_of_the_states(seed):
    """States overlap, so that the most probable path is another than the draw's."""
    rng = np.random.default_rng(seed)
    X = np.repeat([0.0, 1.5, 3.0] * 8, 12)[:, None] + rng.normal(size=(288, 1))
    hmm = HCRPHMM(
        emission="gaussian", transitions="sticky", n_burnin=50, n_draws=10, random_state=seed
    ).fit(X)
    regimes = hmm.find_regimes(hmm.n_states_)
    assert hmm.n_states_ > 1
    assert (hmm.predict(X) != hmm.labels_).any()
    np.testing.assert_array_equal(regimes.labels_, hmm.labels_)
    np.testing.assert_array_equal(regimes.state_regimes_, np.arange(hmm.n_states_))
    np.testing.assert_allclose(regimes.transmat_.sum(axis=1), 1)
