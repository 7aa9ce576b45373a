"""Offsets of log rates and log odds before a chain: simulated subjects, EM against loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, gammaln, logsumexp
from sklearn.metrics import adjusted_rand_score

from skihmm.core._log_subjects import _RegressedSubjects, register_log_subjects
from skihmm.core._random import RandomStream

# Levels of states (by column), subjects, rows of each, deviation of offsets, dispersion, mean
# length of runs, slopes of states.
COUNTS = {
    "steps": ([[0.0], [1.2], [2.4]], 20, 100, 1.0, 0.0, 20, None),
    "columns": ([[0, 2], [1.2, 0.6], [2.2, 2.2], [0.2, 0.4]], 8, 300, 0.7, 0.0, 30, None),
    "two": ([[0.5], [2.0]], 6, 400, 0.3, 0.3, 40, None),
    "four": ([[0.0], [1.2], [2.2], [3.2]], 15, 200, 0.7, 0.0, 25, None),
    "slopes": ([[0.3], [1.8]], 12, 250, 1.0, 0.1, 30, [0.3, 0.8]),
    "no offsets": ([[0.3], [1.5]], 12, 250, 0.0, 0.0, 30, None),
}
# Coefficients and intercepts of states, subjects, rows of each, deviation, length of runs.
DECISIONS = {
    "slopes": ([[4.0], [0.4]], [0.0, 0.0], 10, 500, 1.0, 60),
    "two inputs": ([[3.5, 0.0], [0.5, 1.5]], [0.0, 0.0], 8, 500, 0.5, 50),
    "intercepts": ([[4.0], [1.0]], [0.0, -2.0], 10, 500, 1.5, 60),
    "no offsets": ([[4.0], [0.4]], [0.0, 0.0], 12, 300, 0.0, 60),
}


def path_of(rng, n, n_states, length):
    """States of one subject, who visits each of them.

    (Of equal steps the data do not tell which subject is a state away that lacks one.)
    """
    run = np.cumsum(rng.random(n) < 1 / length)
    states = rng.integers(n_states, size=run[-1] + 1 + n_states)
    states[:n_states] = rng.permutation(n_states)
    return states[run]


def simulated(kind, name, seed):
    """Values, inputs, subjects, states and offsets."""
    rng = np.random.default_rng([seed, *name.encode()])
    if kind == "counts":
        levels, n_subjects, n_rows, deviation, dispersion, length, slopes = COUNTS[name]
        levels = np.array(levels, float)
        n_states, d = levels.shape
    else:
        slopes, intercepts, n_subjects, n_rows, deviation, length = DECISIONS[name]
        slopes, n_states, d = np.array(slopes), len(slopes), 1
    b = rng.normal(size=(n_subjects, d))
    b = deviation * (b - b.mean(axis=0))
    states = np.concatenate([path_of(rng, n_rows, n_states, length) for _ in range(n_subjects)])
    who = np.repeat(np.arange(n_subjects), n_rows)
    if kind == "counts":
        x = np.zeros((len(who), 0)) if slopes is None else rng.normal(size=(len(who), 1))
        log_mean = levels[states] + b[who]
        if slopes is not None:
            log_mean += x * np.array(slopes)[states, None]
        mean = np.exp(log_mean)
        if dispersion:
            mean = mean * rng.gamma(1 / dispersion, dispersion, mean.shape)
        return rng.poisson(mean).astype(float), x, who, states, b
    x = rng.choice([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0], (len(who), slopes.shape[1]))
    eta = (x * slopes[states]).sum(axis=1) + np.array(intercepts)[states] + b[who, 0]
    y = (rng.random(len(who)) < expit(eta)).astype(float)[:, None]
    return y, x, who, states, b


def registered(kind, y, x, who, seed=0):
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    return register_log_subjects(y, x, starts, who, RandomStream(seed), kind=kind)


def rms(found, true):
    return np.sqrt(((found - true) ** 2).mean())


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COUNTS)
def test_offsets_of_counts_are_found(name, seed):
    y, x, who, states, b = simulated("counts", name, seed)
    found, path = registered("counts", y, x, who)
    assert rms(found, b) < 0.12
    assert adjusted_rand_score(states, path) > 0.8
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", DECISIONS)
def test_offsets_of_decisions_are_found(name):
    y, x, who, states, b = simulated("decisions", name, 0)
    found, path = registered("decisions", y, x, who)
    assert rms(found, b) < 0.25
    assert adjusted_rand_score(states, path) > 0.55
    # One trial of every row is a decision.
    ones = np.ones((len(x), 1))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    same, _ = register_log_subjects(
        y, np.hstack([x, ones]), starts, who, RandomStream(0), kind="trials"
    )
    np.testing.assert_array_equal(found, same)


def test_moves_are_needed(monkeypatch):
    import skihmm.core._log_subjects as module

    is_far = False
    for name in "steps", "four":
        for seed in 0, 1, 2:
            y, x, who, _, b = simulated("counts", name, seed)
            right = rms(registered("counts", y, x, who)[0], b)
            assert right < 0.12
            with monkeypatch.context() as patch:
                for part in "NEW", "PRUNED":
                    patch.setattr(module, part, (getattr(module, part)[0], ()))
                # Once is enough.
                is_far = is_far or rms(registered("counts", y, x, who)[0], b) > 0.2
    assert is_far


def test_order_exposures_and_missing_rows():
    y, x, who, _, _ = simulated("counts", "slopes", 0)
    found, path = registered("counts", y, x, who)
    # Subjects in another order.
    order = np.argsort(-who, kind="stable")
    other, same = registered("counts", y[order], x[order], who[order])
    np.testing.assert_allclose(other, found, atol=1e-9)
    assert adjusted_rand_score(same, path[order]) == 1
    # Exposures of one are none; of another unit they move all intercepts.
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    starts = np.flatnonzero(np.diff(who, prepend=-1))
    for log_exposure in 0.0, 3.0:
        inputs = np.hstack([x, np.full((len(x), 1), log_exposure)])
        moved, _ = register_log_subjects(
            y, inputs, starts, who, RandomStream(0), kind="exposed counts"
        )
        np.testing.assert_allclose(moved, found, atol=1e-6)
    # Every fifth row is missing, or its input; subject 3 has no row.
    y[::5], x[1::5] = np.nan, np.nan
    y[who == 3] = np.nan
    lost, path = register_log_subjects(y, x, starts, who, RandomStream(0), kind="counts")
    assert not lost[3].any()
    kept = np.delete(np.arange(12), 3)
    assert rms(lost[kept] - lost[kept].mean(), found[kept] - found[kept].mean()) < 0.1
    assert path.shape == (3000,)


def test_one_subject_and_many():
    y, x, who, _, _ = simulated("counts", "two", 0)
    offsets, path = registered("counts", y, x, 0 * who)
    assert not offsets.any()
    assert path is None
    # More than forty: the others move in the HMM of the forty with most rows.
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(55), 80)
    b = rng.normal(0, 0.7, 55)
    states = np.concatenate([path_of(rng, 80, 2, 20) for _ in range(55)])
    y = rng.poisson(np.exp(np.array([0.5, 2.5])[states] + b[who])).astype(float)[:, None]
    found, path = registered("counts", y, np.zeros((len(y), 0)), who)
    assert rms(found[:, 0], b - b.mean()) < 0.15
    assert adjusted_rand_score(states, path) > 0.85


def test_all_rows_tell_where_subjects_belong(monkeypatch):
    """The first rows of a subject may lack a state that later ones show."""
    rng = np.random.default_rng(3)
    who, b = np.repeat(np.arange(12), 900), rng.normal(0, 0.8, 12)
    states = np.concatenate([path_of(rng, 900, 3, 60) for _ in range(12)])
    for u in (2, 7):
        states[900 * u : 900 * u + 300] = 2
    y = rng.poisson(np.exp(np.array([0.3, 1.5, 2.7])[states] + b[who])).astype(float)[:, None]
    found, path = registered("counts", y, np.zeros((len(y), 0)), who)
    assert rms(found[:, 0], b - b.mean()) < 0.05
    assert adjusted_rand_score(states, path) > 0.9
    monkeypatch.setattr("skihmm.core._log_subjects.MOVES_OF_ALL", 0)
    found, _ = registered("counts", y, np.zeros((len(y), 0)), who)
    assert rms(found[:, 0], b - b.mean()) > 0.2


# -- one iteration against sums over all paths -----------------------------------------


@pytest.mark.parametrize("kind", ["exposed counts", "trials"])
def test_expectations_against_enumeration(kind):
    rng = np.random.default_rng(1)
    n, d, q = 5, 2, 2
    x, given = rng.normal(size=(2 * n, 1)), rng.normal(size=(2 * n, 1))
    values = rng.poisson(2.0, (2 * n, d)).astype(float)
    if kind == "trials":
        given = values.max(axis=1, keepdims=True) + rng.integers(1, 4, (2 * n, 1))
    values[1, 0] = values[3] = np.nan
    every = np.hstack([values, x, given])
    follows = np.array([False, True, True, False, True])
    subjects = _RegressedSubjects(np.split(every, 2), [follows, follows], d, kind)

    class Fit:
        coefficients = np.ascontiguousarray(rng.normal(size=(d, 2, q)))
        offsets = rng.normal(size=(2, d))
        r = np.array([1.3, 4.0]) if kind == "exposed counts" else np.zeros(2)
        transitions = np.array([[0.8, 0.2], [0.3, 0.7]])
        variances = np.array([1.0, 2.0])

    found, smoothed, pairs = subjects.expect(Fit, Fit.offsets, True)
    expected_pairs = np.zeros((2, 2))
    for u in range(2):
        rows = every[u * n : (u + 1) * n]
        logs = np.zeros((n, 2))
        for t, k, c in product(range(n), range(2), range(d)):
            y = rows[t, c]
            if np.isnan(y):
                continue
            psi = Fit.coefficients[c, k] @ [rows[t, d], 1.0] + Fit.offsets[u, c]
            if kind == "trials":
                logs[t, k] += y * psi - rows[t, -1] * np.logaddexp(0, psi)
            else:
                r = Fit.r[c]
                psi += rows[t, -1]
                logs[t, k] += y * psi - (y + r) * np.logaddexp(np.log(r), psi)
                logs[t, k] += (r + y) * np.log(r) - y * np.log(r)
        paths = np.array([*product(range(2), repeat=n)])
        log_p = logs[np.arange(n), paths].sum(axis=1)
        for t in range(n):
            step = np.log(Fit.transitions[paths[:, t - 1], paths[:, t]])
            log_p += step if follows[t] else np.log(0.5)
        assert found[u] == pytest.approx(logsumexp(log_p), abs=1e-9)
        p = np.exp(log_p - logsumexp(log_p))
        at = subjects.rows[u * n : (u + 1) * n]
        np.testing.assert_allclose(smoothed[1, at], p @ paths, atol=1e-12)
        for t in np.flatnonzero(follows):
            np.add.at(expected_pairs, (paths[:, t - 1], paths[:, t]), p)
    np.testing.assert_allclose(pairs, expected_pairs, atol=1e-12)


def test_dispersions_and_objectives_are_those_of_counts():
    """The log likelihood of one state, constants included, but for factorials."""
    rng = np.random.default_rng(2)
    y = rng.negative_binomial(2.0, 2 / (2 + 5.0), (600, 1)).astype(float)
    y[::7] = np.nan
    subjects = _RegressedSubjects(np.split(y, 2), [np.arange(300) > 0] * 2, 1, "counts")

    class Fit:
        coefficients = np.full((1, 1, 1), np.log(5.0))
        offsets, r = np.zeros((2, 1)), np.array([2.0])
        transitions = np.ones((1, 1))

    seen = y[~np.isnan(y)]
    law = gammaln(seen + 2) - gammaln(2) + 2 * np.log(2 / 7) + seen * np.log(5 / 7)
    found = subjects.expect(Fit, Fit.offsets).sum() + subjects.log_constant(0, 2.0)
    assert found == pytest.approx(law.sum(), abs=1e-8)
