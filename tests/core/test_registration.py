"""Offsets and gains of subjects before a chain: known ones, and EM against loops."""

from __future__ import annotations

from copy import copy
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from skihmm.core._random import RandomStream
from skihmm.core._registration import _Registration, register_subjects

# Number of subjects, rows of each, states, columns; distance and deviation of states,
# deviation of offsets.
KINDS = {
    "no offsets": (8, 300, 3, 1, 3.0, 0.7, 0.0),
    "two states": (8, 300, 2, 1, 3.0, 0.7, 1.5),
    "large offsets": (8, 300, 2, 1, 3.0, 0.7, 6.0),
    "near states": (8, 400, 2, 1, 2.0, 0.9, 1.5),
    "three states": (10, 300, 3, 1, 3.0, 0.7, 2.0),
    "two columns": (12, 200, 3, 2, 3.0, 0.7, 2.0),
    "three columns": (10, 300, 4, 3, 2.5, 0.7, 2.0),
    "five columns": (20, 150, 5, 5, 2.0, 0.8, 2.0),
    "few subjects": (4, 800, 4, 2, 3.0, 0.7, 2.0),
    "one state": (8, 300, 1, 2, 3.0, 0.7, 2.0),
}


def simulated(kind, seed, gain=0.0):
    """Rows of shape (n_subjects, n_rows, n_columns), offsets and scales."""
    n_subjects, n_rows, n_states, n_columns, distance, deviation, spread = KINDS[kind]
    rng = np.random.default_rng([seed, *kind.encode()])
    means = distance * np.arange(n_states)[:, None]
    least = 0.0
    while n_columns > 1 and n_states > 1 and least < distance:
        means = rng.normal(0.0, distance, (n_states, n_columns))
        between = np.linalg.norm(means[:, None] - means, axis=2)
        least = between[~np.eye(n_states, dtype=bool)].min()
    shape = n_subjects, n_rows
    # Runs of 20 rows on average: every state once, and then by shares of the subject.
    run = np.cumsum(rng.random(shape) < 0.05, axis=1)
    shares = rng.dirichlet(np.ones(n_states), n_subjects)
    order = np.array([rng.choice(n_states, n_rows, p=p) for p in shares])
    order[:, :n_states] = rng.permuted([[*range(n_states)]] * n_subjects, axis=1)
    states = np.take_along_axis(order, run, axis=1)
    offsets = rng.normal(0.0, spread, (n_subjects, n_columns))
    gains = np.exp(rng.normal(0.0, gain, offsets.shape))
    means = means - means.mean(axis=0)
    x = means[states] + deviation * rng.standard_normal((*shape, n_columns))
    return offsets[:, None] + gains[:, None] * x, offsets, gains


def registered(rows, seed=0, **options):
    n_subjects, n_rows, n_columns = np.shape(rows)
    starts = np.arange(n_subjects) * n_rows
    return register_subjects(
        np.reshape(rows, (-1, n_columns)),
        starts,
        np.repeat(np.arange(n_subjects), n_rows),
        RandomStream(seed),
        **options,
    )


def rms(found, true):
    error = found - true
    return np.sqrt(((error - np.median(error, axis=0)) ** 2).mean())


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_offsets_are_found(kind, seed):
    rows, offsets, _ = simulated(kind, seed)
    found, scales, n_states = registered(rows)
    assert rms(found, offsets) < 0.15
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_array_equal(scales, 1.0)
    assert n_states == KINDS[kind][2]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_gains_are_found(seed):
    rows, offsets, gains = simulated("three columns", seed, gain=0.25)
    found, scales, n_states = registered(rows, scale=True)
    assert rms(found, offsets) < 0.15
    assert rms(np.log(scales), np.log(gains)) < 0.06
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.log(scales).sum(axis=0), 0.0, atol=1e-9)
    assert n_states == 4
    # Scales that are not there are hardly found.
    rows, offsets, _ = simulated("three columns", seed)
    found, scales, _ = registered(rows, scale=True)
    assert rms(found, offsets) < 0.15
    assert np.abs(np.log(scales)).max() < 0.15


def test_shifts_are_needed(monkeypatch):
    monkeypatch.setattr(_Registration, "shift", lambda *_: None)
    for seed in 0, 1:
        rows, offsets, _ = simulated("three states", seed)
        assert rms(registered(rows)[0], offsets) > 0.5


def test_moved_and_reordered_subjects():
    rows, _, _ = simulated("three columns", 0, gain=0.25)
    found, scales, _ = registered(rows, scale=True)
    moves = np.random.default_rng(0).normal(0.0, 0.5, found.shape)
    moved, same, _ = registered(rows + moves[:, None], scale=True)
    # The prior of offsets is about their mean, and so moves a little.
    np.testing.assert_allclose(moved, found + moves - moves.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(same, scales, rtol=0.02)
    moved, same, _ = registered(rows[::-1], scale=True)
    np.testing.assert_array_equal(moved[::-1], found)
    np.testing.assert_array_equal(same[::-1], scales)
    factors = np.array([1e6, 1.0, 1e-6])
    np.testing.assert_allclose(
        registered(rows * factors, scale=True)[0], found * factors, rtol=1e-6
    )


@pytest.mark.parametrize("n_lacking", [1, 2, 6])
def test_subjects_that_lack_a_column(n_lacking):
    rows, offsets, _ = simulated("three columns", 0)
    rows[:n_lacking, :, 1] = np.nan
    rows[7:, ::3, 2] = np.nan
    found = registered(rows)[0]
    assert rms(found[:, [0, 2]], offsets[:, [0, 2]]) < 0.3
    assert rms(found[n_lacking:, 1], offsets[n_lacking:, 1]) < 0.3


def test_missing_rows_and_long_sequences():
    rows, _, _ = simulated("three columns", 0)
    found = registered(rows)[0]
    # Every other row is missing, and 300 of a sequence are used.
    gaps = np.full((10, 800, 3), np.nan)
    gaps[:, :600:2] = rows
    gaps[:, 600:] = 99.0
    np.testing.assert_array_equal(registered(gaps)[0], found)
    # A subject without values, and one column in which all subjects are constant.
    gaps = np.append(gaps, np.tile(np.arange(10.0)[:, None, None], (800, 1)), axis=2)
    gaps[4] = np.nan
    offsets, scales, _ = registered(gaps, scale=True)
    assert not offsets[4].any()
    np.testing.assert_array_equal(scales[:, 3], 1.0)
    np.testing.assert_array_equal(scales[4], 1.0)
    kept = np.delete(np.arange(10.0), 4)
    np.testing.assert_allclose(np.delete(offsets[:, 3], 4), kept - kept.mean())


@pytest.mark.parametrize("gain", [0.0, 0.2])
def test_more_subjects_than_the_search_uses(gain):
    rows, offsets, gains = (np.tile(part.T, 5).T for part in simulated("two columns", 1, gain))
    moves = np.random.default_rng(1).normal(0.0, 2.0, (60, 2))
    found, scales, _ = registered(rows + moves[:, None], scale=gain > 0)
    assert rms(found, offsets + moves) < 0.15
    assert rms(np.log(scales), np.log(gains)) < 0.06


@pytest.mark.parametrize("n_columns", [1, 5])
def test_little_data(n_columns):
    rows = np.random.default_rng(0).normal(size=(1, 30, n_columns))
    for one in rows, rows[:, :1], np.zeros((3, 1, n_columns)), np.ones((3, 9, n_columns)):
        offsets, scales, n_states = registered(one, scale=True)
        assert not offsets.any()
        np.testing.assert_array_equal(scales, 1.0)
        assert n_states == 1
    offsets, scales, _ = registered(rows.transpose(1, 0, 2), scale=True)
    np.testing.assert_allclose(offsets, rows[0] - rows[0].mean(axis=0))
    with pytest.raises(KeyboardInterrupt):
        registered(np.tile(rows, (2, 1, 1)), is_stopped=lambda: True)


def by_paths(rows, is_linked, fit, u, offsets):
    """Log likelihood, probabilities of states and of transitions, from all paths."""
    x, deviations = (rows - offsets[u]) / fit.scales[u], np.sqrt(fit.variances)
    log_p = np.nansum(norm.logpdf(x[:, None], fit.means, deviations), axis=2)
    paths = np.array([*product(range(3), repeat=len(rows))])
    steps = fit.transitions[paths[:, :-1], paths[:, 1:]]
    log_paths = np.log(np.where(is_linked[1:], steps, 1 / 3)).sum(axis=1) - np.log(3)
    log_paths += log_p[np.arange(len(rows)), paths].sum(axis=1)
    weights = np.exp(log_paths - logsumexp(log_paths))
    is_in = (paths[:, :, None] == np.arange(3)).astype(float)
    linked = np.flatnonzero(is_linked)
    pairs = np.einsum("p,ptj,ptk->jk", weights, is_in[:, linked - 1], is_in[:, linked])
    return logsumexp(log_paths), np.einsum("p,ptk->tk", weights, is_in), pairs


@pytest.fixture(params=["offsets", "gains", "missing"])
def problem(request):
    """Rows of ten subjects, whether they follow the ones before, and a fit far off."""
    rng = np.random.default_rng(3)
    pieces = [rng.normal(size=(n, 2)) for n in [8, 8, 7, 7, 6, 6, 5, 4, 3, 1]]
    if request.param == "missing":
        pieces[4][:, 1] = pieces[0][2, 0] = pieces[1][3] = pieces[9][0, 0] = np.nan
    has_scales = request.param != "offsets"
    links = [np.arange(len(rows)) % 5 > 0 for rows in pieces]
    offsets = rng.normal(size=(10, 2))
    fit = SimpleNamespace(
        means=rng.normal(size=(3, 2)),
        variances=rng.uniform(0.3, 1.0, (3, 2)),
        transitions=rng.dirichlet(np.ones(3), size=3),
        offsets=offsets - offsets.mean(axis=0),
        scales=np.exp(rng.normal(0.0, 0.3, (10, 2)) * has_scales),
        offset_variances=np.array([0.5, 2.0]),
        scale_variances=np.array([0.1, 0.2]),
    )
    return pieces, links, fit, has_scales


def test_one_iteration_is_that_of_loops(problem):
    pieces, links, fit, scale = problem
    new = copy(fit)
    _Registration(pieces, links, scale).update(new, False, scale)
    found = [by_paths(pieces[u], links[u], fit, u, fit.offsets) for u in range(10)]
    who = np.repeat(np.arange(10), [len(rows) for rows in pieces])
    y, p = np.concatenate(pieces), np.concatenate([one[1] for one in found])
    is_there = ~np.isnan(y)
    y, counts = np.nan_to_num(y), p.T @ is_there
    b, s, mu, var = fit.offsets, fit.scales, fit.means, fit.variances

    def by_subject(values):
        return np.array([(values * is_there)[who == u].sum(axis=0) for u in range(10)])

    for _ in range(3):
        mu = p.T @ ((y - b[who]) / s[who] * is_there) / (counts + 1e-6)
        away = sum(p[:, [k]] * (y - s[who] * mu[k]) / var[k] for k in range(3))
        b = by_subject(away / s[who] ** 2) / (
            by_subject(p @ (1 / var) / s[who] ** 2) + 1 / fit.offset_variances
        )
        move = b.sum(axis=0) / s.sum(axis=0)
        b, mu = b - s * move, mu + move
    x = (y - b[who]) / s[who]
    var = np.array([p[:, k] @ ((x - mu[k]) ** 2 * is_there) + 0.04 for k in range(3)])
    var /= counts + 2
    pairs = sum(one[2] for one in found) + 0.5 + 2 * np.eye(3)
    if scale:
        q = 1 / fit.scale_variances
        r = y - b[who]
        n = by_subject(np.ones_like(y)) + q
        a = by_subject(r**2 * (p @ (1 / var))) + q
        h = by_subject(r * (p @ (mu / var)))
        roots = [np.roots(one).max() for one in np.stack([n, h, -a], 2).reshape(-1, 3)]
        s = np.reshape(roots, s.shape)
        middle = np.exp(np.log(s).mean(axis=0))
        s, mu, var = s / middle, mu * middle, var * middle**2
        q = 11 / ((np.log(s) ** 2).sum(axis=0) + 0.02)
        np.testing.assert_allclose(new.scale_variances, 1 / q)
    np.testing.assert_allclose(new.offsets, b, atol=1e-10)
    np.testing.assert_allclose(new.scales, s)
    np.testing.assert_allclose(new.means, mu)
    np.testing.assert_allclose(new.variances, var)
    np.testing.assert_allclose(new.transitions, pairs / pairs.sum(axis=1)[:, None])
    np.testing.assert_allclose(new.offset_variances, ((b**2).sum(axis=0) + 1e-3) / 11)


def test_shifts_are_the_best_of_all(problem):
    pieces, links, fit, scale = problem
    new, expected = copy(fit), fit.offsets.copy()
    _Registration(pieces, links, scale).shift(new, True)
    for u in range(10):
        best = -np.inf
        for j, k in [(0, 0), *permutations(range(3), 2)]:
            b = fit.offsets.copy()
            b[u] += fit.scales[u] * (fit.means[j] - fit.means[k])
            value = by_paths(pieces[u], links[u], fit, u, b)[0]
            value -= (b[u] ** 2 / fit.offset_variances).sum() / 2
            if value > best:
                best, expected[u] = value, b[u]
    assert (new.offsets != fit.offsets).any()
    np.testing.assert_allclose(new.offsets, expected)


@pytest.mark.parametrize("far", [200.0, 1e7])
def test_one_far_subject_moves_no_other(far):
    rows, offsets, _ = simulated("three columns", 0)
    rows[2, :, 1] += far
    offsets[2, 1] += far
    found = registered(rows)[0]
    assert rms(found, offsets) < 0.15
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-6)
