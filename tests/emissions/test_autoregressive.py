"""Autoregressive emissions: units, borders of sequences, forecasts, recovery."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace as Namespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._fitting import starts as _starts
from skihmm._using.decoding import frozen_model
from skihmm.core._random import RandomStream
from skihmm.emissions import AutoregressiveNormal, NormalInverseWishart, ProductEmission
from skihmm.emissions._encoding import encode
from skihmm.samplers import StepwiseGibbs
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 30, "n_draws": 5, "random_state": 0}
GROUPS = np.repeat([0, 1, 2], [90, 2, 68])
STARTS = np.array([0, 90, 92])
FIXED = {"mean": 0.8, "strength": [2.0, 0.5, 1.0], "dof": 6.0, "scale": 1.5}


def switching(n=160, n_columns=2, order=1, n_states=2, seed=0, run=20):
    """Rows of stable autoregressions that take turns, states, and coefficients."""
    rng = np.random.default_rng(seed)
    A = []
    while len(A) < n_states:
        blocks = rng.normal(size=(n_columns, n_columns * order)) / np.sqrt(n_columns)
        companion = np.eye(n_columns * order, k=-n_columns)
        companion[:n_columns] = blocks
        blocks *= 0.9 / np.abs(np.linalg.eigvals(companion)).max()
        companion[:n_columns] = blocks
        if np.abs(np.linalg.eigvals(companion)).max() < 0.97:
            A.append(blocks)
    levels = 2.0 * rng.normal(size=(n_states, n_columns))
    states = np.arange(n) // run % n_states
    X = np.zeros((n + order, n_columns))
    for t in range(order, n + order):
        earlier = X[t - order : t][::-1].ravel()
        k = states[t - order]
        X[t] = levels[k] + A[k] @ earlier + 0.3 * rng.normal(size=n_columns)
    return X[order:], states, np.array(A)


# Equal up to rounding, chains of single steps have the same states; in blocks they part.
SINGLE = {"sampler": StepwiseGibbs(split_merge_rate=2), "init": "kmeans"}


def fit(emission, X, **options):
    settings = {"transitions": "hcrp"} | SHORT | options
    return HCRPHMM(emission=emission, **settings).fit(X, groups=GROUPS)


# -- the model ------------------------------------------------------------------------


def test_order_zero_is_the_gaussian():
    X, _, _ = switching()
    X[5] = np.nan
    scale = [[0.5, 0.2], [0.2, 0.7]]
    mean = np.array([0.3, -0.2])
    gaussian = NormalInverseWishart(mean, 0.4, 5.0, scale)
    regression = AutoregressiveNormal(0, mean[:, None], 0.4, 5.0, scale)
    one, other = (fit(e, X, **SINGLE) for e in (gaussian, regression))
    assert one.n_states_ > 1
    assert_array_equal(one.draws_.states, other.draws_.states)
    assert_allclose(one.draws_.lp, other.draws_.lp, rtol=1e-10)
    assert_allclose(one.emission_.means_, other.emission_.intercepts_, rtol=1e-8)
    assert_allclose(one.emission_.covariances_, other.emission_.covariances_)
    assert_allclose(one.score(X[:20]), other.score(X[:20]), rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"mean": 0.5, "strength": 2.0, "scale": 1.0}])
def test_units_do_not_matter(options):
    X, _, _ = switching()
    unit, shift = np.array([2.0**-30, 2.0**40]), np.array([0.0, 2.0**36])
    one, other = (
        fit(AutoregressiveNormal(2, **options), rows, **SINGLE) for rows in (X, X * unit + shift)
    )
    assert_array_equal(one.draws_.states, other.draws_.states)
    n = np.count_nonzero(~one.emission_.is_missing(encode(one.emission_, X, STARTS)))
    assert_allclose(one.draws_.lp - n * np.log(unit).sum(), other.draws_.lp, rtol=1e-8)
    a, b = one.emission_, other.emission_
    assert_allclose(a.coefficients_ * unit[:, None] / np.tile(unit, 2), b.coefficients_, rtol=1e-5)
    assert_allclose(a.spectral_radii_, b.spectral_radii_, rtol=1e-6)
    assert_allclose(a.covariances_ * np.outer(unit, unit), b.covariances_, rtol=1e-5)
    forecasts = [
        hmm.predict_next(rows).mean() for hmm, rows in ((one, X), (other, X * unit + shift))
    ]
    assert_allclose(forecasts[0] * unit + shift, forecasts[1], rtol=1e-6)


def test_means_may_be_in_units_of_the_data():
    X, _, _ = switching()
    X = X * [10.0, 0.1] + [100.0, -3.0]
    number = fit(AutoregressiveNormal(2, **FIXED), X)
    mean = number.emission_.mean_
    assert_allclose(mean[:, :2], 0.8 * np.eye(2), atol=1e-12)
    assert_allclose(mean[:, 2:4], 0.0, atol=1e-12)
    # Rows at the means of the columns are followed by these.
    assert_allclose(mean[:, 4], 0.2 * X.mean(axis=0))
    matrix = fit(AutoregressiveNormal(2, **FIXED | {"mean": mean}), X)
    assert_array_equal(number.draws_.states, matrix.draws_.states)
    scale = fit(AutoregressiveNormal(2, **FIXED | {"scale": number.emission_.scale_}), X)
    assert_array_equal(number.draws_.states, scale.draws_.states)


def test_borders_and_gaps():
    X, _, _ = switching()
    X[40] = np.nan
    X[60, 1] = np.nan
    hmm = fit(AutoregressiveNormal(2, **FIXED), X)
    rows = encode(hmm.emission_, X, STARTS)
    missing = hmm.emission_.is_missing(rows)
    # (Row 60 has a value.)
    expected = [0, 1, 40, 41, 42, 61, 62, 90, 91, 92, 93]
    unused = np.flatnonzero(hmm.emission_.is_unused(rows))
    assert_array_equal(unused, np.sort([*expected, 60]))
    assert_array_equal(np.flatnonzero(missing), expected)
    assert_array_equal(rows[5], np.concatenate([X[5], X[4], X[3]]))
    # The likelihood is conditional on the first rows of every sequence.
    assert_array_equal(hmm.score_samples(X[90:92]), 0.0)
    scores = hmm.score_samples(X, groups=GROUPS)
    assert_array_equal(np.flatnonzero(scores == 0.0), expected)


def test_the_residual_scale_ignores_jumps_between_sequences():
    X, _, _ = switching(run=1000)
    far = X + 1000.0 * GROUPS[:, None]
    emission = AutoregressiveNormal(1)
    assert emission.fit(far).scale_[0, 0] > 50 * fit(emission, far).emission_.scale_[0, 0]
    product = ProductEmission([("all", AutoregressiveNormal(1), slice(None))])
    product.fit_sequences(far, STARTS)
    assert_array_equal(product.emissions_[0][1].scale_, emission.fit_sequences(far, STARTS).scale_)


def test_chains_do_not_depend_on_the_kernels_of_blas(tmp_path):
    code = """
import numpy as np
from skihmm import HCRPHMM
from skihmm.emissions import AutoregressiveNormal
X = np.random.default_rng(0).normal(size=(60, 20)).cumsum(axis=0)
hmm = HCRPHMM(emission=AutoregressiveNormal(1), n_burnin=0, n_draws=2, random_state=0)
lp = hmm.fit(X).draws_.lp.tolist()
"""
    here: dict = {}
    exec(code, here)
    # For an old processor, without fused multiply-add, OpenBLAS rounds differently.
    elsewhere = subprocess.run(
        [sys.executable, "-c", code + "print(lp)"],
        cwd=tmp_path,
        env={**os.environ, "OPENBLAS_CORETYPE": "Nehalem"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert elsewhere.stdout.strip() == str(here["lp"])


# -- posterior ------------------------------------------------------------------------


@pytest.mark.parametrize(("n_columns", "order"), [(2, 1), (3, 2)])
def test_recovery(n_columns, order, global_random_seed):
    X, states, A = switching(1500, n_columns, order, 4, global_random_seed, run=50)
    emission = AutoregressiveNormal(order)
    settings = SHORT | {"n_burnin": 150, "init": "single"}
    hmm = HCRPHMM(emission=emission, **settings).fit(X)
    assert adjusted_rand_score(states, hmm.labels_) > 0.9
    for k in np.flatnonzero(np.bincount(hmm.labels_) > 150):
        true = np.bincount(states[hmm.labels_ == k]).argmax()
        assert np.abs(hmm.emission_.coefficients_[k] - A[true]).max() < 0.2
        assert_allclose(hmm.emission_.covariances_[k], 0.09 * np.eye(n_columns), atol=0.03)
        assert hmm.emission_.spectral_radii_[k] < 1.0


def test_one_regression_is_one_state():
    X, _, _ = switching(400, 3, 2, 1)
    hmm = HCRPHMM(emission="autoregressive", init="single", **SHORT).fit(X)
    assert np.bincount(hmm.labels_).max() > 380


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("sampler", ["auto", "stick_breaking_beam"])
def test_equal_columns(order, sampler):
    """Their covariances are singular but for the prior, and its factor goes to zero."""
    x = np.random.default_rng(0).normal(size=(160, 1))
    X = np.hstack([x, 2.0 * x, -x])
    emission = AutoregressiveNormal(order, resolution=None)
    hmm = fit(emission, X, sampler=sampler, n_burnin=60)
    for values in hmm.draws_.hyperparameters.values():
        assert np.isfinite(values).all()
    assert hmm.draws_.hyperparameters["emission_scale"].min() < 1e-6
    mean = hmm.predict_next(X).mean()[0]
    assert_allclose(mean, mean[0] * np.array([1.0, 2.0, -1.0]), atol=1e-6)


def test_known_states_and_mixed_data():
    X, states, _ = switching()
    words = np.where(states, "a", "b").astype(object)
    data = np.column_stack([words, X])
    known = np.where(np.arange(len(X)) % 30 == 3, states, -1)
    parts = [("word", "hcrp", [0]), ("x", AutoregressiveNormal(1), [1, 2])]
    hmm = HCRPHMM(emission=ProductEmission(parts), **SHORT)
    hmm.fit(data, groups=GROUPS, states=known)
    assert len(np.unique(hmm.labels_[known == 1])) == 1
    assert adjusted_rand_score(states, hmm.labels_) > 0.8
    assert set(hmm.draws_.hyperparameters) >= {"emission_x__mean", "emission_x__scale"}
    assert hmm.emission_.emissions_[1][1].coefficients_.shape[1:] == (2, 2)
    assert hmm.sample(5)[0].shape == (5, 3)
    assert np.isfinite(hmm.score(data, groups=GROUPS))


# -- prediction -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, _, _ = switching()
    return fit(AutoregressiveNormal(2), X * [1.0, 5.0] + [3.0, 0.0]), X * [1, 5] + [3, 0]


def test_forecasts_walk_from_the_last_rows(fitted):
    hmm, X = fitted
    emission = hmm.emission_
    earlier = np.concatenate([X[-1], X[-2]])
    sequences = Sequences(encode(emission, X, STARTS), STARTS)
    expected = []
    for draw in hmm.draws_.thinned():
        probs = frozen_model(draw, sequences, emission).forecast(1)[0]
        states = emission.with_states(draw.emission, draw.n_states)
        prior = emission.hyperparameters(draw.emission)["mean"]
        means = [
            *(states.coefficients_ @ earlier + states.intercepts_),
            prior[:, :4] @ earlier + prior[:, 4],
        ]
        expected.append(probs @ means)
    following = hmm.predict_next(X, 3, groups=GROUPS)
    means = following.mean()
    assert_allclose(means[0], np.mean(expected, axis=0), rtol=1e-9)
    paths = following.sample(2000, random_state=1)
    error = paths.std(axis=0) / np.sqrt(2000)
    assert (np.abs(means - paths.mean(axis=0)) < 5 * np.sqrt(3) * error).all()
    with pytest.raises(ValueError, match="looks back"):
        following.log_prob(X[:3])
    one = hmm.predict_next(X, groups=GROUPS).log_prob(X[-1:] + 0.1)
    longer = np.vstack([X, X[-1:] + 0.1])
    longer = Sequences(encode(emission, longer, STARTS), STARTS)
    gain = [frozen_model(draw, longer, emission).filter()[0][-1] for draw in hmm.draws_.thinned()]
    assert_allclose(one, np.logaddexp.reduce(gain) - np.log(len(gain)), rtol=1e-9)


@pytest.mark.parametrize("given", [None, "contexts", "inputs"])
def test_forecasts_go_through_a_gap(given):
    """What is missing at the end is drawn as if it were predicted too."""
    X = np.column_stack([switching()[0], np.arange(160) % 2])[:, : 3 if given else 2]
    if given == "inputs":
        X[:, :2] += 2.0 * X[:, [2]]
    options = {"expected_dwell": 6, "context_features": [2]} if given == "contexts" else {}
    hmm = fit(
        AutoregressiveNormal(2, input_features=[2] if given == "inputs" else None),
        X,
        transitions=HCRPTransitions(**options),
        n_draws=2,
    )
    gap = X.copy()
    gap[-3:, :2] = np.nan
    coming = {given: [0, 1]} if given else {}
    following = hmm.predict_next(gap, 2, groups=GROUPS, **coming)
    coming = {given: [*X[-3:, 2], 0, 1]} if given else {}
    longer = hmm.predict_next(X[:-3], 5, groups=GROUPS[:-3], **coming)
    samples = [following.sample(4000, random_state=0), longer.sample(4000, random_state=1)[:, 3:]]
    means, widths = (np.array([f(x, axis=0) for x in samples]) for f in (np.mean, np.std))
    assert (abs(means[0] - means[1]) < 5 * widths[0] / np.sqrt(2000)).all()
    assert_allclose(widths[0], widths[1], rtol=0.1)
    assert (abs(following.mean() - means[1]) < 5 * widths[0] / np.sqrt(800)).all()


def test_means_in_a_gap_are_those_of_samples():
    """States last, so where a gap begins matters up to its end."""
    X = np.zeros((300, 1))
    rng = np.random.default_rng(0)
    for t in range(1, 300):
        a, level = ((0.95, 8.0), (-0.9, -3.0))[t // 15 % 2]
        X[t] = a * X[t - 1] + level + 0.5 * rng.normal()
    hmm = HCRPHMM(emission=AutoregressiveNormal(1), **SHORT | {"n_draws": 1}).fit(X)
    before, n = X[:150], 6
    gap = np.vstack([before, np.full((n, 1), np.nan)])
    samples = hmm.predict_next(before, n).sample(4000, random_state=0)
    errors = samples.std(axis=0) / np.sqrt(800)
    assert (abs(hmm.impute(gap)[-n:] - samples.mean(axis=0)) < 5 * errors).all()


def test_simulation_and_imputation_walk_in_time(fitted):
    hmm, X = fitted
    again, states = hmm.sample(300, random_state=2)
    assert len(states) == 300
    assert np.isfinite(again).all()
    # Neighbours are more alike than rows in another order.
    steps = np.abs(np.diff(again, axis=0)).mean(axis=0)
    shuffled = np.random.default_rng(0).permutation(again)
    assert (steps < np.abs(np.diff(shuffled, axis=0)).mean(axis=0)).all()
    gaps = X.copy()
    gaps[[0, 30, 31, 32, 92]] = np.nan
    gaps[70, 1] = np.nan
    filled = hmm.impute(gaps, groups=GROUPS)
    is_gap = np.isnan(gaps)
    assert_array_equal(filled[~is_gap], gaps[~is_gap])
    assert np.isfinite(filled).all()
    spread = X.std(axis=0)
    assert (np.abs(filled - X)[30] < spread).all()


# -- parameters -----------------------------------------------------------------------


def test_draws_in_units_of_the_data(fitted):
    hmm, X = fitted
    drawn = hmm.draws_.hyperparameters
    assert drawn["emission_mean"].shape == (1, 5, 2, 5)
    assert drawn["emission_strength"].shape == (1, 5, 3)
    assert drawn["emission_scale"].shape == (1, 5)
    assert len(np.unique(drawn["emission_scale"])) == 5
    hmm = fit(AutoregressiveNormal(2, **FIXED), X)
    assert set(hmm.draws_.hyperparameters) == {"alpha", "gamma"}


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"order": -1}, ValueError, "order"),
        ({"order": 1.5}, TypeError, "order"),
        ({"mean": np.zeros((2, 2))}, ValueError, r"mean has the shape \(2, 2\).*\(2, 7\)"),
        ({"mean": "a"}, TypeError, "mean='a'"),
        ({"mean": 1e300}, ValueError, r"mean=1e\+300; expected numbers up to"),
        ({"strength": 0.0}, ValueError, "strength"),
        ({"strength": [1.0, 1.0]}, ValueError, "shape \\(2,\\); .* 4 numbers: one per earlier"),
        ({"dof": 0.5}, ValueError, "dof"),
        ({"dof": 3.0}, ValueError, "dof=3.0; .* more than n_features"),
        ({"scale": -1.0}, ValueError, "scale"),
        ({"scale": np.eye(3)}, ValueError, "scale"),
        ({"scale": [[1.0, 2.0], [2.0, 1.0]]}, ValueError, "positive definite"),
        ({"scale": "0.1*var"}, TypeError, "scale"),
    ],
)
def test_wrong_parameters(params, error, message):
    X, _, _ = switching(30)
    with pytest.raises(error, match=message):
        AutoregressiveNormal(**params).fit(X)


# -- starts ---------------------------------------------------------------------------


def test_a_start_finds_states_shorter_than_its_blocks():
    """A random walk: from 40 blocks the index stays at .1 to .4."""
    rng = np.random.default_rng(1)
    states = np.cumsum(rng.random(1500) < 1 / 20) % 4
    drift = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])[states]
    X = np.cumsum(0.3 * drift + 0.1 * rng.normal(size=(1500, 2)), axis=0)
    options = {"n_burnin": 0, "n_draws": 1, "thin": 1}
    start, blocks = (
        HCRPHMM(emission="autoregressive", init=init, random_state=0, **options).fit(X)
        for init in ("auto", "blocks")
    )
    assert adjusted_rand_score(states, start.labels_) > 0.9
    assert adjusted_rand_score(states, blocks.labels_) < 0.5


def tries_of(ranks, monkeypatch, emission=None, transitions=None, X=None):
    """Starts that are tried, and the number of the try that goes on as the chain."""
    X = switching(n=400)[0] if X is None else X
    left = iter(ranks)
    monkeypatch.setattr(_starts, "rank", lambda *_: next(left))
    tried = []

    def run_try(pieces, settings, *_):
        tried.append(settings.init)
        return Namespace(), {"number": len(tried) - 1}

    given = None
    emission = AutoregressiveNormal() if emission is None else emission
    if emission.input_features:
        X, given = X[:, :1], X[:, 1:]
    emission = emission.with_given(given) if given is not None else emission
    emission = emission.fit(X)
    codes = encode(emission, X, np.array([0]), None, given)
    settings = _starts.ModelSettings(
        StepwiseGibbs(), emission, transitions or HCRPTransitions(), "auto", 10
    )
    data = _starts.StartData(
        Sequences(codes, np.array([0])),
        settings,
        emission.make_stats(codes),
        RandomStream(np.random.SeedSequence(0)),
        None,
    )
    start = _starts.find_start(data, run_try)
    return tried, start["number"]


@pytest.mark.parametrize(
    ("filtered", "clustered", "taken"),
    [
        (0.9, -1.0, "blocks"),  # The filter is ahead, but not far enough.
        (1.1, -1.0, "particle_filter"),
        (0.9, 0.1, "innovations"),  # Clusters need no lead, also if the filter is before them.
        (1.1, 0.1, "particle_filter"),
        (1.1, 1.2, "innovations"),
        (-1.0, 0.0, "blocks"),
    ],
)
def test_the_filter_has_to_be_far_ahead_of_blocks(filtered, clustered, taken, monkeypatch):
    far = switching(n=400)[0].size * _starts.FILTER_AHEAD
    ranks = [-50.0, far * filtered - 50.0, far * clustered - 50.0]
    tried, number = tries_of(ranks, monkeypatch)
    assert tried == ["blocks", "particle_filter", "innovations"]
    assert tried[number] == taken


def test_clusters_of_values_are_tried_under_a_penalty(monkeypatch):
    penalty = HCRPTransitions(expected_dwell=10, switch_penalty=4.0)
    tried, number = tries_of([0.0, 0.0, 1.0, 2.0], monkeypatch, transitions=penalty)
    assert tried == ["blocks", "particle_filter", "innovations", "kmeans"]
    assert number == 3


def test_innovations_are_what_a_common_autoregression_leaves():
    sign = np.repeat(np.tile([1.0, -1.0], 20), 30)
    noise = np.random.default_rng(0).normal(size=(1200, 2))
    X = np.cumsum(sign[:, None] * [1.0, -0.5] + 0.3 * noise, axis=0)
    X[10, 1] = np.nan
    found = _starts.innovations(X, np.array([0, 40]))
    # Means of five leave little of the noise; changes of the drift are blurred.
    labels = (found[:, 0] > 0).astype(int)
    assert adjusted_rand_score(sign, labels) > 0.8
    assert np.corrcoef(found[:, 0], sign)[0, 1] > 0.9
    # Nothing is left where no complete row is before.
    alone = _starts.innovations(X[:3], np.array([0, 1, 2]))
    np.testing.assert_array_equal(alone, np.zeros((3, 2)))
    np.testing.assert_array_equal(_starts.innovations(X[:1], np.array([0])), np.zeros((1, 2)))


def test_regressions_try_a_filter_on_all_steps(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 2))
    emission = AutoregressiveNormal(order=0, input_features=[1])
    tried, taken = tries_of([0.0, -1.0, 0.1], monkeypatch, emission, X=X)
    assert tried == ["blocks", "single", "particle_filter"]
    assert taken == 2


def test_regressions_on_inputs_have_defaults_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    short = {"n_burnin": 1, "n_draws": 1}
    for emission, expected in (
        (AutoregressiveNormal(order=0, input_features=[1]), (True, 0.0, 10)),
        (AutoregressiveNormal(order=1, input_features=[1]), (False, 4.0, 10)),
        # Only the noise differs from "gaussian".
        (AutoregressiveNormal(order=0), (False, 0.0, None)),
        ("student", (True, 0.0, None)),
        (AutoregressiveNormal(0, input_features=[1], noise="normal"), (False, 0.0, 10)),
    ):
        hmm = fit(emission, X, transitions="auto", **short)
        prior = hmm.transitions_
        found = "emission_noise_dof" in hmm.draws_.hyperparameters
        assert (found, prior.switch_penalty, prior.expected_dwell) == expected
