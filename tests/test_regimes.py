"""Regimes: their evidence, the tree of merges, and what is found in data."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from skihmm import HCRPHMM
from skihmm.core._regime_passes import RegimePasses
from skihmm.posterior import _regime_chain, _regime_tree
from skihmm.posterior._regime_chain import Counts, Likelihoods, RegimeChain
from skihmm.posterior._regime_tree import cut, merge_tree, nested_tree

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
    counts = (
        np.zeros(chain.n_regimes),
        np.zeros((chain.n_regimes,) * 2),
        np.zeros(n_states),
    )
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
    for one, other in zip(
        (counts.first, counts.moves, counts.steps), all_counts, strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-13)
    assert tuple(chain.passes(seen).viterbi().tolist()) == best
    if chain.n_regimes > 1:
        assert abs(log_p - by_all_paths(chain, seen, starts=STARTS[:1])[0]) > 1e-3


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
                tables = (
                    alpha * base * (digamma(prior + moves) - digamma(prior)).sum(axis=0)
                )
                value += log_dm(tables, np.full(n, 0.5)) - tables @ np.log(base)
            rows.append(value)
    log_s += max(rows)
    log_seen = (moves * np.log(chain.transmat)).sum() + first @ np.log(chain.startprob)
    return log_p + log_s - log_seen - steps @ np.log(chain.weights)


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_evidence_is_that_of_its_definition(groups):
    rng = np.random.default_rng(1)
    counts, seen = counts_of(rng, 3), seen_of(rng, 7, 3)
    chain = RegimeChain(np.array(groups), counts)
    chain.fit(seen)
    expected = exact_evidence(RegimeChain(np.array(groups), counts), seen)
    assert chain.evidence == pytest.approx(expected, abs=1e-10)


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
    moves, steps = whole.smooth(probs)
    Z = np.eye(3)[groups]
    lumped = chain.passes(seen)
    found, of_regimes = lumped.filter()
    np.testing.assert_allclose(found, log_predictive, atol=1e-12)
    moves_found, steps_found = lumped.smooth(of_regimes)
    np.testing.assert_allclose(of_regimes, probs @ Z, atol=1e-12)
    np.testing.assert_allclose(moves_found, Z.T @ moves @ Z, atol=1e-10)
    np.testing.assert_allclose(steps_found, steps, atol=1e-10)
    assert moves.sum() == pytest.approx(500 - 4)


def test_arguments_of_passes():
    rng = np.random.default_rng(0)
    seen = seen_of(rng, 7, 3)
    sizes = [np.ones(3), np.ones(2) / 2, np.ones((2, 2)) / 2]
    with pytest.raises(
        ValueError, match="groups holds 0 to 2; expected regimes from 0 to 1"
    ):
        RegimePasses(seen.values, seen.first, np.array([0, 1, 2]), *sizes)
    with pytest.raises(ValueError, match="a sequence that begins at step 0"):
        RegimePasses(seen.values, seen.first[::-1].copy(), np.array([0, 1, 1]), *sizes)
    passes = RegimePasses(seen.values, seen.first, np.array([0, 1, 1]), *sizes)
    with pytest.raises(ValueError, match=r"shape \(7, 3\); expected \(7, 2\)"):
        passes.smooth(seen.values)
    broken = RegimePasses(
        np.full((7, 3), np.nan), seen.first, np.array([0, 1, 1]), *sizes
    )
    with pytest.raises(ValueError, match="Step 0 has the probability nan"):
        broken.filter()


def test_emission_terms_are_those_of_the_forward_pass():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [4.0], [0.0], [9.0]], 20, axis=0) + rng.normal(size=(80, 1))
    X[7] = np.nan
    hmm = HCRPHMM(emission="gaussian", n_burnin=20, n_draws=2, random_state=0).fit(X)
    model = hmm._model(X, None, [50, 30])
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
    transmat = np.kron(np.eye(2), inner * 0.98) + np.kron(
        1 - np.eye(2), np.full((3, 3), 0.02 / 3)
    )
    path = path_of(rng, transmat, 4000)
    tree, scores = nested_tree(Counts.of_path(path, np.zeros(1, dtype=int), 6))
    np.testing.assert_array_equal(cut(tree, 6, 4), [0, 0, 0, 1, 1, 1])
    assert len(scores) == 6
    assert scores[1] > max(scores[0], scores[5])
