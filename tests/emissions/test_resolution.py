"""Rounded, constant, determined and wrong values: what a fit does to its copy."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm._data.scales import constant_columns
from skihmm._data.wrong_values import wrong_values
from skihmm.emissions import (
    AutoregressiveNormal,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.emissions._column_noise import ColumnNoise
from skihmm.emissions._resolution import (
    dead_stretches,
    determined_columns,
    grid_step,
    level_gap,
)


def _levels(n_rows, n_columns=2, seed=0):
    """Three states, six standard deviations apart, for twenty rows at a time."""
    rng = np.random.default_rng(seed)
    states = np.arange(n_rows) // 20 % 3
    levels = 6.0 * np.array([[0, 0, 0], [1, -1, 1], [-1, 2, 2]])[:, :n_columns]
    return levels[states] + rng.normal(size=(n_rows, n_columns)), states


def _fit(X, emission, **params):
    defaults = {"n_burnin": 60, "n_draws": 20, "thin": 2, "random_state": 0}
    return HCRPHMM(emission=emission, **{**defaults, **params}).fit(X)


# ---- what is found


@pytest.mark.parametrize("step", [1.0, 0.1, 1 / 3, 250.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_grid_is_found(step, dtype):
    values = step * np.rint(np.random.default_rng(0).normal(300, 8, size=400))
    column = values.astype(dtype).astype(float)
    column[7] = np.nan
    assert grid_step(column) == pytest.approx(step, rel=1e-3)
    standardised = (column - np.nanmean(column)) / 7.3
    assert grid_step(standardised) == pytest.approx(step / 7.3, rel=1e-3)


@pytest.mark.parametrize("offset", [0, 9e5, 1.1e6, 1e9, 1e12])
def test_grid_is_found_at_any_distance_from_zero(offset):
    X, _ = _levels(600, 1)
    assert grid_step(np.rint(X[:, 0]) + offset, 2.0**-52) == 1
    assert _fit(np.rint(X) + offset, "gaussian").n_states_ == 3


def test_rounding_of_single_precision_is_no_grid_unless_it_is_coarse():
    rng = np.random.default_rng(0)
    for offset, step in [(0, 0), (1e3, 0), (1e6, 0), (1e7, 1), (1e9, 64)]:
        X, states = _levels(600, 1)
        X = (offset + max(1.0, step) * X).astype(np.float32)
        assert len(np.unique(X)) < len(X) or offset < 1e6
        hmm = _fit(X, "diagonal_gaussian")
        assert hmm.emission_.resolution_ == [step]
        assert adjusted_rand_score(states, hmm.labels_) > 0.97
    # Many numbers, of which some are equal by chance.
    single = rng.normal(size=100_000).astype(np.float32).astype(float)
    assert len(np.unique(single)) < len(single)
    assert grid_step(single) == grid_step(single, 2.0**-23) == 0


def _path(n_rows, n_states, dwell, seed=0):
    """Path of states that last for `dwell` rows on average."""
    rng = np.random.default_rng(seed)
    moves = np.where(rng.random(n_rows) < 1 / dwell, rng.integers(1, n_states, n_rows), 0)
    return np.cumsum(moves) % n_states


@pytest.mark.parametrize("starts", [[0], [0, 7, 300]])
def test_few_lasting_values_are_levels(starts):
    starts = np.array(starts)
    for dwell in 3, 40:
        path = _path(600, 3, dwell)
        for levels in ([0.0, 1.0, 7.0], [0.0, 61.3, 94.7]):
            column = np.array(levels)[path]
            assert level_gap(column, starts) == np.diff(levels).min()
            column[::9] = np.nan
            assert level_gap(column, starts) == np.diff(levels).min()
    # Single rows between lasting ones are noise, and values have to be kept within sequences.
    column[5::60] = 61.3
    assert level_gap(np.where(np.arange(600) % 60 == 5, 9.0, column), starts) == 0
    assert level_gap(np.repeat([0.0, 1.0], 300), np.arange(600)) == 0
    assert level_gap(np.repeat([0.0, 1.0], [9, 9]), np.array([0])) == 0  # few rows
    assert level_gap(_path(900, 13, 30) + 0.0, np.array([0])) == 0  # many values


@pytest.mark.parametrize("kind", ["rounded", "coin", "ratings", "off", "rare", "constant"])
def test_other_columns_have_no_levels(kind):
    rng, path = np.random.default_rng(0), _path(600, 3, 40)
    noise = rng.normal(size=600)
    column = {
        "rounded": np.rint(6 * path + 0.25 * noise),
        "coin": rng.integers(2, size=600) + 0.0,
        "ratings": np.clip(np.rint(2 + path + noise), 1, 5),
        "off": np.where(path > 0, np.rint(7 + noise), 0),
        "rare": np.where(rng.random(600) < 0.02, 1.0, path % 2 * 5.0),
        "constant": np.full(600, 4.0),
    }[kind]
    assert level_gap(column, np.array([0])) == 0


@pytest.mark.parametrize(
    "column",
    [
        np.random.default_rng(0).normal(size=300),
        np.repeat(np.random.default_rng(0).normal(size=50), 6),  # filled forward
        np.maximum(np.random.default_rng(0).normal(size=300), 0),  # clipped
        np.arange(300.0),  # every value once
        np.full(300, 4.0),
        np.full(300, np.nan),
    ],
)
def test_other_columns_are_on_no_grid(column):
    assert grid_step(column) == 0


def test_constant_and_determined_columns():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X = np.column_stack([X, np.full(100, 0.1), X @ [1, 2] + 3, X[:, 0] + X[:, 1] ** 2])
    np.testing.assert_array_equal(constant_columns(X), [0, 0, 1, 0, 0])
    np.testing.assert_array_equal(determined_columns(X), [0, 0, 0, 1, 0])


def test_wrong_values_are_few_or_codes():
    X = np.random.default_rng(0).normal(size=(241, 1))
    assert not wrong_values(X, True).any()
    X[100] = 1e5
    assert np.flatnonzero(wrong_values(X, False)).tolist() == [100]
    X[::10] = -999
    assert np.flatnonzero(wrong_values(np.delete(X, 100, 0), False)).size == 24
    # So is another number far beyond, beside a few wrong values, but zero.
    for code, lost in (1e6, 25), (-32768.0, 25), (1e30, 25), (32767.0, 25):
        Y = np.random.default_rng(0).normal(size=(241, 1))
        Y[::10], Y[101] = code, 1e5
        assert np.flatnonzero(wrong_values(Y, False)).size == lost + 1
    Y[::10] = 300.0  # a state without noise
    assert np.flatnonzero(wrong_values(Y, False)).size == 0
    assert not wrong_values(np.where(Y == 300, 0.0, Y + 1e6), False).any()
    # Two codes in one column.
    for codes in (1e8, -1e8), (65535.0, 1e8), (-999.0, -9999.0):
        Z = np.random.default_rng(0).normal(size=(241, 1))
        Z[::10], Z[5::10] = codes
        assert np.flatnonzero(wrong_values(Z, False)).tolist() == list(range(0, 241, 5))
    # A far state is none.
    X[::10] = np.random.default_rng(1).normal(300, size=(25, 1))
    assert not wrong_values(np.delete(X, 100, 0), False).any()
    # Only the differences of a walk show that a value is wrong.
    walk = np.cumsum(np.random.default_rng(0).normal(size=(400, 1)), axis=0)
    walk[200] += 200
    assert np.flatnonzero(wrong_values(walk, True)).tolist() == [200]
    assert not wrong_values(walk, False).any()


def significant(values, n_digits):
    unit = 10 ** (np.floor(np.log10(values)) - n_digits + 1)
    return np.round(values / unit) * unit


@pytest.mark.parametrize("n", [1000, 20000])
def test_true_values_that_are_far_are_no_codes(n):
    rng = np.random.default_rng(n)
    is_rare = rng.random(n) < 0.05
    gifts = rng.choice(
        [1e3, 2e3, 5e3, 1e4, 5e4, 1e5, 1e6], n, p=[0.3, 0.2, 0.2, 0.15, 0.08, 0.05, 0.02]
    )
    heavy = 10 * (1 + rng.pareto(0.7, n))
    for values in (
        # Money in round sums, prices, bursts of counts.
        significant(20 * np.exp(2.5 * rng.normal(size=n)), 1),
        np.where(is_rare, gifts, 20 + 8 * rng.normal(size=n)),
        np.where(is_rare, rng.choice([999, 1999, 2499, 2999], n), 5 + rng.normal(size=n)),
        np.where(is_rare, rng.poisson(2000, n), rng.poisson(3, n)),
        # Far states in rounded numbers, totals in every month, tails, clipped tails.
        np.where(is_rare, np.rint(2000 + 3 * rng.normal(size=n)), rng.normal(size=n)),
        np.where(np.arange(n) % 30, 100 + rng.normal(size=n), np.rint(rng.normal(3000, 5, n))),
        significant(heavy, 2),
        np.minimum(heavy, np.quantile(heavy, 0.98)),
    ):
        assert (
            np.mean(
                np.abs(values - np.median(values))
                > 75 * np.median(np.abs(values - np.median(values)))
            )
            > 0.01
        )
        assert not wrong_values(np.asarray(values, float)[:, None], False).any()


def test_stretches_of_one_value():
    values = np.random.default_rng(0).normal(size=600)
    values[100:120] = values[300:400] = 0.3
    assert dead_stretches(values) == []  # the value recurs
    values[100:120] = 0.4
    values[310:315] = np.nan
    values[500:519] = 0.5
    assert dead_stretches(values) == [(100, 120), (300, 400)]


@pytest.mark.parametrize("kind", ["off", "clipped", "logs", "steps", "holds", "rates"])
def test_other_repeated_values_are_of_no_dead_channel(kind):
    rng = np.random.default_rng(0)
    noise, counts, row = rng.normal(size=3000), rng.poisson(0.05, 3000), np.arange(3000)
    steps = noise[np.cumsum(rng.random(3000) < 1 / 30)]
    column = {
        "off": np.where(row // 100 % 3, noise, 0),
        "clipped": np.maximum(noise + row // 50 % 3 - 2, 0),
        "logs": np.log1p(counts),
        "steps": steps,
        "holds": np.where(row % 100 < 30, np.repeat(noise[::100], 100), noise),
        "rates": counts / rng.integers(50, 99, 3000),
    }[kind]
    runs = np.diff(np.flatnonzero(np.diff(column)))
    assert runs.max() >= 20
    assert dead_stretches(column) == []


# ---- noise


@pytest.mark.parametrize("emission", ["gaussian", "diagonal_gaussian", "autoregressive"])
def test_dead_channel_has_the_noise_of_its_column(emission):
    X = _levels(900)[0]
    X[300:400, 1] = X[300, 1]
    with pytest.warns(UserWarning, match="dead channel: 1 in rows 300 to 399"):
        hmm = _fit(X, emission, n_burnin=10)
    codes = hmm._fitted.sequences.codes[:, :2] + hmm.emission_.offset_
    noise = codes - X
    assert np.flatnonzero(noise.any(axis=1)).tolist() == list(range(300, 400))
    assert not noise[:, 0].any()
    assert noise[:, 1].std() * 3 == pytest.approx(X[:, 1].std(), rel=0.2)
    # The rows of partial_fit follow, and have no such noise.
    more = np.vstack([X, X[:300]])
    hmm.partial_fit(X[:300])
    noise = hmm._fitted.sequences.codes[:, :2] + hmm.emission_.offset_ - more
    assert np.flatnonzero(noise.any(axis=1)).tolist() == list(range(300, 400))
    hmm.set_params(warm_start=True).fit(more)
    assert hmm.draws_.n_draws.tolist() == [40]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recipe = type(hmm.emission_)(resolution=None)
        assert _fit(X, recipe, n_burnin=5).emission_.dither(900, 0, [0]) is None


def test_noise_is_a_function_of_seed_and_row():
    noise = ColumnNoise(np.zeros(3), np.array([0.5, 0.0, 0.0]), np.array([0.0, 2.0, 0.0]))
    whole = noise.of_rows(20_000, 0, [1, 2])
    np.testing.assert_array_equal(whole[500:], noise.of_rows(19_500, 500, [1, 2]))
    assert np.abs(whole[:, 0]).max() <= 0.25
    assert whole[:, 0].std() == pytest.approx(0.5 / np.sqrt(12), rel=0.02)
    assert whole[:, 1].std() == pytest.approx(2.0, rel=0.02)
    assert not whole[:, 2].any()
    assert (whole[:, 0] != noise.of_rows(20_000, 0, [1, 3])[:, 0]).all()
    assert ColumnNoise.none(3).of_rows(5, 0, [1]) is None


def test_columns_of_product_have_noise_of_their_own():
    X = np.rint(_levels(200, 2)[0])
    product = ProductEmission(
        [("a", "gaussian", [1]), ("w", "hcrp", [2]), ("b", "diagonal_gaussian", [0])]
    )
    X = np.column_stack([X, X[:, 0] > 0]).astype(int)
    hmm = _fit(X, product)
    codes = hmm._fitted.sequences.codes
    noise = codes[:, [2, 0]] - X[:, :2]
    assert (noise != 0).all()
    np.testing.assert_allclose(noise.std(axis=0), 0.4, rtol=0.2)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.25
    assert hmm.emission_.named_emissions_.a.resolution_.tolist() == [1.0]
    assert hmm.emission_.named_emissions_.w.categories_[0].dtype.kind == "i"


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("emission", ["gaussian", "diagonal_gaussian"])
def test_rounding_adds_no_states(n_columns, emission):
    X, states = _levels(600, n_columns)
    X = np.rint(2 * X) / 2
    before = X.copy()
    # Some chains have more states, without rounding too.
    hmm = _fit(X, emission, random_state=3)
    np.testing.assert_array_equal(X, before)
    assert adjusted_rand_score(states, hmm.labels_) > 0.97
    assert hmm.n_states_ == 3
    np.testing.assert_allclose(hmm.emission_.resolution_, 0.5)
    assert "Data:" in str(hmm.diagnose())
    assert "rounded columns (0 0.5" in str(hmm.diagnose())


@pytest.mark.parametrize("transitions", ["hcrp", "sticky"])
@pytest.mark.parametrize("levels", [[1.0, 5.0], [0.0, 61.3, 94.7]])
def test_exact_levels_are_states(transitions, levels):
    path = _path(600, len(levels), 40)
    X = np.array(levels)[path][:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hmm = _fit(X, "gaussian", transitions=transitions)
    assert hmm.n_states_ == len(levels)
    np.testing.assert_array_equal(hmm.predict(X), hmm.labels_)
    assert adjusted_rand_score(path, hmm.labels_) == 1
    assert not hmm.emission_.resolution_.any()
    diagnosis = hmm.diagnose()
    assert not diagnosis.warnings
    assert not diagnosis.misfits
    deviation = 0.1 * np.diff(levels).min()
    assert f"few lasting values (standard deviations: 0 {deviation:.4g})" in str(diagnosis)
    # Rows of partial_fit have the same noise.
    hmm.partial_fit(X)
    noise = hmm._fitted.sequences.codes + hmm.emission_.offset_ - np.vstack([X, X])
    for part in np.split(noise, 2):
        assert part.std() == pytest.approx(deviation, rel=0.1)


def test_a_given_resolution_is_of_no_levels():
    X = 5.0 * _path(600, 2, 40)[:, None]
    for emission, order in (NormalInverseWishart, None), (AutoregressiveNormal, 1):
        hmm = _fit(X, emission(resolution=5.0), n_burnin=0, n_draws=1)
        assert hmm.emission_.resolution_ == [5.0]
        noise = "Normal noise of 0.4 steps" if order is None else "Uniform noise of one step"
        assert f"{noise} was added" in str(hmm.diagnose())


def test_exact_values_without_noise_are_no_misfit():
    path = _path(600, 3, 40)
    X = np.array([0.0, 50.0, 100.0])[path][:, None]
    hmm = _fit(X, NormalInverseWishart(resolution=None), transitions="sticky")
    np.testing.assert_array_equal(hmm._fitted.sequences.codes + hmm.emission_.offset_, X)
    assert adjusted_rand_score(path, hmm.labels_) == 1
    assert hmm.diagnose().misfits == []


def test_without_a_grid_nothing_changes():
    X, _ = _levels(120)
    for recipe in NormalInverseGamma, NormalInverseWishart, AutoregressiveNormal:
        found, left = (_fit(X, recipe(resolution=r)) for r in ("auto", None))
        np.testing.assert_array_equal(found.draws_.lp, left.draws_.lp)
        assert not found.emission_.resolution_.any()
        assert "Data:" not in str(found.diagnose())


@pytest.mark.parametrize("order", [None, 0, 1])
def test_given_resolution(order):
    X, _ = _levels(600)
    recipe = NormalInverseGamma if order is None else partial(AutoregressiveNormal, order)
    hmm = _fit(X, recipe(resolution=[0.2, 0]), n_burnin=0, n_draws=1)
    noise = hmm._fitted.sequences.codes[:, :2] - X
    # Noise that later rows look back to is uniform.
    assert noise[:, 0].std() == pytest.approx(0.2 / np.sqrt(12) if order else 0.08, rel=0.1)
    assert (np.abs(noise[:, 0]).max() <= 0.1) == bool(order)
    assert not noise[:, 1].any()
    assert _fit(np.rint(X), NormalInverseGamma(resolution=None)).emission_.dither(5, 0, [0]) is None


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        ("fine", TypeError, 'expected "auto"'),
        (-1.0, ValueError, "number >= 0"),
        (np.nan, ValueError, "finite numbers"),
        ([1, 2, 3], ValueError, "2 columns"),
    ],
)
def test_bad_resolution(value, error, match):
    with pytest.raises(error, match=match):
        _fit(_levels(40)[0], NormalInverseWishart(resolution=value))


# ---- the same values in every continuation


@pytest.mark.parametrize("emission", ["diagonal_gaussian", "autoregressive"])
def test_warm_start_and_partial_fit_keep_the_noise(emission):
    X = np.rint(_levels(160)[0])
    groups = np.repeat([0, 1], [100, 60])
    whole = HCRPHMM(emission=emission, n_burnin=10, n_draws=6, thin=1, random_state=3).fit(
        X, groups=groups
    )
    half = HCRPHMM(emission=emission, n_burnin=10, n_draws=2, thin=1, random_state=3)
    half.fit(X, groups=groups).set_params(warm_start=True, n_draws=4)
    half.fit(X, groups=groups)
    np.testing.assert_array_equal(whole.draws_.states, half.draws_.states)

    parts = HCRPHMM(emission=emission, n_burnin=4, n_draws=2, random_state=3)
    parts.fit(X[:100], groups=groups[:100]).partial_fit(X[100:], groups=groups[100:])
    np.testing.assert_allclose(parts._fitted.sequences.codes, whole._fitted.sequences.codes)
    n = len(parts.draws_.lp[0])
    parts.set_params(warm_start=True).fit(X, groups=groups)
    assert len(parts.draws_.lp[0]) > n
    # Other data begin afresh.
    again = parts.fit(X[:80]).draws_.lp
    np.testing.assert_array_equal(again, parts.set_params(warm_start=False).fit(X[:80]).draws_.lp)


@pytest.mark.parametrize("seed", [None, 4])
def test_checkpoint_keeps_the_noise(tmp_path, seed):
    X = np.rint(_levels(100)[0])
    params = {"n_burnin": 5, "thin": 1, "random_state": seed}
    hmm = _fit(X, "gaussian", n_draws=2, checkpoint=tmp_path / "c.npz", **params)
    more = _fit(X, "gaussian", n_draws=4, checkpoint=tmp_path / "c.npz", **params)
    np.testing.assert_array_equal(more.draws_.lp[:, :2], hmm.draws_.lp)


# ---- columns that say nothing, and values that are wrong


def _walk(n_rows=900, seed=0):
    rng = np.random.default_rng(seed)
    states = np.arange(n_rows) // 100 % 3
    turn = np.array([[0.9, 0.4], [-0.4, 0.9]])
    A = np.array([turn, turn.T, -0.8 * np.eye(2)])
    X = np.zeros((n_rows, 2))
    for t in range(1, n_rows):
        X[t] = A[states[t]] @ X[t - 1] + rng.normal(size=2)
    return X, states


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (lambda X: 1 - X.sum(axis=1), "Column 2 of X is determined"),
        (lambda X: np.full(len(X), 7.0), "Column 2 of X has always the same value"),
    ],
)
def test_degenerate_columns(column, words):
    X, states = _walk()
    with pytest.warns(UserWarning, match=words):
        hmm = _fit(np.column_stack([X, column(X)]), "autoregressive", n_burnin=200, n_draws=20)
    assert adjusted_rand_score(states, hmm.labels_) > 0.9
    assert words.split(" of X")[0] in str(hmm.diagnose())


def test_warns_of_names_in_products_too():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(_levels(100)[0], columns=["a", "b"]).assign(c=1.0)
    product = ProductEmission([("x", "gaussian", ["a"]), ("y", "gaussian", ["c", "b"])])
    with pytest.warns(UserWarning, match="Column 'c' of X has always"):
        _fit(X, product)


def test_one_wrong_value():
    X, states = _walk()
    clean = _fit(X, "autoregressive", n_burnin=200)
    X[450, 1] = 1e5
    with pytest.warns(UserWarning, match=r"X\[450, 1\] = 100000"):
        hmm = _fit(X, "autoregressive", n_burnin=200)
    np.testing.assert_allclose(hmm.emission_.scale_, clean.emission_.scale_, rtol=0.2)
    score = adjusted_rand_score(states, hmm.labels_)
    assert score > adjusted_rand_score(states, clean.labels_) - 0.05


def test_warns_of_repeated_rows():
    X = np.repeat(_levels(60)[0], 2, axis=0)
    with pytest.warns(UserWarning, match="a fifth of the rows"):
        _fit(X, "diagonal_gaussian")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _fit(np.rint(X), "diagonal_gaussian")
        _fit(X, NormalInverseGamma(resolution=None))
