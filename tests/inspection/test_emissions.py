"""EmissionDisplay: predictives of every emission, columns of mixed data, pictures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pictures import assert_same_picture, canvas
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.utils import Bunch

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._using.decoding import frozen_model
from skihmm.emissions import (
    BetaBernoulli,
    DirichletCategorical,
    GammaGamma,
    GammaPoisson,
    NormalInverseGamma,
    ProductEmission,
    VonMises,
)
from skihmm.inspection import EmissionDisplay, ForecastDisplay

SHORT = {"n_burnin": 30, "n_draws": 4, "thin": 1, "n_particles": 20, "random_state": 0}


def states_of(rng, n=120, n_states=3):
    return np.repeat(rng.integers(n_states, size=n // 10), 10)


def mixed_data(rng):
    import pandas as pd

    s = states_of(rng)
    return pd.DataFrame(
        {
            "word": np.array(["red", "green", "blue"])[s],
            "height": rng.normal(4.0 * s),
            "flag": (rng.random(len(s)) < 0.1 + 0.4 * s).astype(float),
            "count": rng.poisson(1 + 9 * s),
        }
    )


@pytest.fixture(scope="module")
def mixed(global_random_seed):
    pytest.importorskip("pandas")
    X = mixed_data(np.random.default_rng(global_random_seed))
    # Groups in another order than the columns of X.
    emission = ProductEmission(
        [
            ("counts", "poisson", ["count"]),
            ("words", "hcrp", ["word"]),
            ("flags", BetaBernoulli(1.0, 1.0), ["flag"]),
            ("heights", NormalInverseGamma(), ["height"]),
        ]
    )
    return HCRPHMM(emission=emission, **SHORT).fit(X), X


def test_columns_are_in_the_order_of_the_data(mixed):
    hmm, X = mixed
    display = EmissionDisplay.from_estimator(hmm)
    assert [(c.name, c.kind) for c in display.columns] == [
        ("word", "symbols"), ("height", "real"), ("flag", "binary"), ("count", "counts")
    ]  # fmt: skip
    word, height, flag, count = display.columns
    assert word.symbols == ["blue", "green", "red", "(unseen)"]
    for k in range(hmm.n_states_):
        members = X[hmm.labels_ == k]
        assert word.symbols[word.probabilities[k].argmax()] == members["word"].mode()[0]
        ones, n = members["flag"].sum(), len(members)
        assert flag.mean[k] == pytest.approx((ones + 1) / (n + 2))
    np.testing.assert_allclose(word.probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(flag.lower, flag.mean)
    for column in (height, count):
        assert (column.lower < column.mean).all()
        assert (column.mean < column.upper).all()
    for ax, name in zip(display.axes_, X.columns, strict=True):
        assert name in ax.get_xlabel()


def test_predictives_of_counts(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.poisson(1 + 9 * states_of(rng))[:, None]
    hmm = HCRPHMM(emission=GammaPoisson(2.0, 0.5), **SHORT).fit(X)
    column = EmissionDisplay.from_estimator(hmm).columns[0]
    members = [X[hmm.labels_ == k] for k in range(hmm.n_states_)] + [X[:0]]
    assert len(column.density) == len(members)
    for k, own in enumerate(members):
        shape, rate = 2.0 + own.sum(), 0.5 + len(own)
        law = stats.nbinom(shape, rate / (rate + 1))
        np.testing.assert_allclose(column.density[k], law.pmf(column.points[k]))
        assert column.density[k].sum() > 0.99
        assert column.mean[k] == pytest.approx(shape / rate)
        # Quantiles of 4,000 draws.
        assert law.cdf(column.lower[k]) > 0.03
        assert law.cdf(column.lower[k] - 1) < 0.07
        assert law.cdf(column.upper[k]) > 0.93
        assert law.cdf(column.upper[k] - 1) < 0.97


def test_predictives_of_real_numbers(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(4.0 * states_of(rng))[:, None]
    emission = NormalInverseGamma(mean=1.0, strength=0.5, shape=3.0, scale=2.0)
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X)
    column = EmissionDisplay.from_estimator(hmm, probability=0.5).columns[0]
    members = [X[hmm.labels_ == k] for k in range(hmm.n_states_)] + [X[:0]]
    for k, own in enumerate(members):
        n = len(own)
        mean = own.mean() if n else 0.0
        strength, shape = 0.5 + n, 3.0 + n / 2
        centre = (0.5 * 1.0 + n * mean) / strength
        scale = 2.0 + ((own - mean) ** 2).sum() / 2
        scale += 0.5 * n * (mean - 1.0) ** 2 / (2 * strength)
        width = np.sqrt(scale * (strength + 1) / (shape * strength))
        law = stats.t(2 * shape, centre, width)
        np.testing.assert_allclose(column.density[k], law.pdf(column.points[k]))
        assert trapezoid(column.density[k], column.points[k]) > 0.99
        assert column.mean[k] == pytest.approx(centre)
        assert law.cdf(column.lower[k]) == pytest.approx(0.25, abs=0.04)
        assert law.cdf(column.upper[k]) == pytest.approx(0.75, abs=0.04)


def test_predictives_of_positive_numbers(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = (1 + 9 * states_of(rng)[:, None]) * rng.exponential(size=(120, 1))
    hmm = HCRPHMM(
        emission=GammaGamma(shape=2.0, scale=3.0, dispersion=1.0),
        **SHORT,
    ).fit(X)
    column = EmissionDisplay.from_estimator(hmm).columns[0]
    for k in range(hmm.n_states_ + 1):
        own = X[hmm.labels_ == k]
        law = stats.lomax(2.0 + len(own), scale=3.0 + own.sum())
        # Densities of exponential distributions do not vanish at zero.
        assert (column.points[k] > 0).all()
        np.testing.assert_allclose(column.density[k], law.pdf(column.points[k]))


def test_angles_at_the_border():
    X = np.random.default_rng(0).vonmises(np.pi, 8.0, size=(100, 1))
    emission = VonMises(dispersion=1 / 8)
    hmm = HCRPHMM(emission=emission, **SHORT | {"init": "single"}).fit(X)
    column = EmissionDisplay.from_estimator(hmm).columns[0]
    assert abs(column.mean[0]) == pytest.approx(np.pi, abs=0.2)
    # Quantiles of an angle's distance from its mean.
    wide = stats.vonmises(8.0).ppf(0.95)
    assert column.mean[0] - column.lower[0] == pytest.approx(wide, rel=0.1)
    assert column.upper[0] - column.mean[0] == pytest.approx(wide, rel=0.1)
    assert trapezoid(column.density[0], column.points[0]) > 0.99
    assert np.ptp(column.points[0]) < 3.0
    display = ForecastDisplay.from_estimator(hmm, X, 2)
    half = np.diff(display.bands[1], axis=0) / 2
    np.testing.assert_allclose(half, wide, rtol=0.1)


def test_densities_are_those_of_the_emission(mixed):
    # Bayes' rule the other way round: mixtures of one state, at the same points.
    hmm, _ = mixed
    column = EmissionDisplay.from_estimator(hmm).columns[1]
    n_states = hmm.n_states_ + 1
    for k in range(n_states):
        points = column.points[k]
        X = np.full((len(points), 4), np.nan, dtype=object)
        X[:, 1] = points
        codes = hmm.emission_.encode_values(X)
        model = frozen_model(
            hmm.draws_[hmm._fitted.best], Sequences(codes, np.zeros(1, np.intp)), hmm.emission_
        )
        probs = np.tile(np.eye(n_states)[k], (len(points), 1))
        found = np.exp(model.log_mixtures(probs))
        np.testing.assert_allclose(column.density[k], found, rtol=1e-9)


def test_far_states_have_densities(global_random_seed):
    # At the points of one state the probability of the other one is zero in floats.
    rng = np.random.default_rng(global_random_seed)
    rates = np.repeat([2.0, 1e6, 2.0, 1e6], 30)
    X = rng.poisson(rates)[:, None]
    hmm = HCRPHMM(emission="poisson", **SHORT).fit(X)
    column = EmissionDisplay.from_estimator(hmm).columns[0]
    for points, density in zip(column.points, column.density, strict=True):
        assert np.isfinite(density).all()
        assert density.max() > 0
        assert len(points) == len(density) <= 200


@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian"])
def test_gaussians(name, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(4.0 * states_of(rng)[:, None], size=(120, 2))
    hmm = HCRPHMM(emission=name, **SHORT).fit(X)
    display = EmissionDisplay.from_estimator(hmm)
    for c, (column, ax) in enumerate(zip(display.columns, display.axes_, strict=True)):
        assert "interval" not in ax.get_xlabel()
        # Of a full covariance, marginal ones.
        for points, density in zip(column.points, column.density, strict=True):
            assert trapezoid(density, points) == pytest.approx(1.0, abs=0.02)
        for k in range(hmm.n_states_):
            own = X[hmm.labels_ == k, c]
            if len(own) < 10:
                continue
            assert abs(column.mean[k] - own.mean()) < 0.2
            inside = (own > column.lower[k]) & (own < column.upper[k])
            assert inside.mean() > 0.6


def test_autoregressions_have_no_density(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(60, 2))
    display = EmissionDisplay.from_estimator(HCRPHMM(emission="autoregressive", **SHORT).fit(X))
    assert [column.density for column in display.columns] == [None, None]
    assert all("interval" in ax.get_xlabel() for ax in display.axes_)
    with pytest.raises(ValueError, match="it can be shown as 'interval'"):
        display.plot(kind="density")


def test_other_emissions(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    s = states_of(rng)
    emission = DirichletCategorical(1.0, handle_unknown="error", categories=[[0, 1, 2, 7]])
    hmm = HCRPHMM(emission=emission, **SHORT).fit(s[:, None])
    (column,) = EmissionDisplay.from_estimator(hmm).columns
    assert column.symbols == ["0", "1", "2", "7"]
    n_0 = (hmm.labels_ == 0).sum()
    assert column.probabilities[0, 3] == pytest.approx(1 / (n_0 + 4))
    hmm = HCRPHMM(emission=BetaBernoulli(binarize=1.5), **SHORT).fit(1.0 * s[:, None])
    (column,) = EmissionDisplay.from_estimator(hmm).columns
    assert column.kind == "binary"
    # A constant column.
    emission = NormalInverseGamma(resolution=None)
    hmm = HCRPHMM(emission=emission, **SHORT).fit(np.full((20, 1), 3.0))
    (column,) = EmissionDisplay.from_estimator(hmm).columns
    assert np.isfinite(column.density[0]).all()
    # A column of symbols of which none was ever observed, beside numbers.
    emission = ProductEmission([("a", "hcrp", [0]), ("b", "poisson", [1])])
    X = np.column_stack([np.full(120, np.nan), s])
    with pytest.warns(UserWarning, match="All entries of column 0 of X are missing"):
        hmm = HCRPHMM(emission=emission, **SHORT).fit(X)
    assert EmissionDisplay.from_estimator(hmm).columns[0].symbols == ["(unseen)"]


def test_columns_far_from_zero(global_random_seed):
    """Means, intervals and points are those of the data, not of what is kept of them."""
    rng = np.random.default_rng(global_random_seed)
    s = states_of(rng)
    X = np.column_stack(
        [s, 1e9 + 1e-3 * rng.normal(10.0 * s), rng.normal(5.0 * s), -3e8 + rng.normal(s)]
    )
    emission = ProductEmission(
        [("symbol", "hcrp", [0]), ("numbers", "diagonal_gaussian", [3, 1, 2])]
    )
    hmm = HCRPHMM(emission=emission, **SHORT).fit(X)
    columns = EmissionDisplay.from_estimator(hmm).columns
    assert [column.kind for column in columns] == ["symbols", "real", "real", "real"]
    for c, column in enumerate(columns[1:], start=1):
        low, high = X[:, c].min(), X[:, c].max()
        margin = 2 * (high - low)
        for k in range(hmm.n_states_):
            own = X[hmm.labels_ == k, c]
            assert abs(column.mean[k] - own.mean()) < high - low
            assert low - margin < column.lower[k] < column.upper[k] < high + margin
            assert low - 10 * margin < column.points[k].mean() < high + 10 * margin


def test_choices_of_columns_and_states(mixed, pyplot):
    hmm, _ = mixed
    figure, ax = pyplot.subplots()
    display = EmissionDisplay.from_estimator(hmm, columns="height", ax=ax)
    assert display.axes_[0] is ax
    assert display.figure_ is figure
    assert ax.get_xlabel() == "height"
    assert display.plot(columns=[3, "word"]) is display
    assert [one.get_xlabel() for one in display.axes_] == ["count", "word"]
    display.plot(columns=0, states=[1], new_state=True)
    np.testing.assert_array_equal(
        display.axes_[0].images[0].get_array(), display.columns[0].probabilities[[1, hmm.n_states_]]
    )
    labels = [label.get_text() for label in display.axes_[0].get_yticklabels()]
    assert labels == ["1", "new"]


def test_top_symbols():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(40, 0.2), size=4)
    symbols = [f"w{i}" for i in range(40)]
    column = Bunch(name="word", kind="symbols", symbols=symbols, probabilities=probabilities)
    display = EmissionDisplay([column], probability=0.9).plot(n_top=5)
    (ax,) = display.axes_
    texts = [one.get_text() for one in ax.texts]
    expected = [
        symbols[i] for row in probabilities[:3] for i in np.argsort(-row, kind="stable")[:5]
    ]
    assert texts == expected
    np.testing.assert_allclose(ax.images[0].get_array(), np.sort(probabilities[:3])[:, ::-1][:, :5])
    # None of all symbols that are improbable: below 1 %, or below the mean of many symbols.
    for row, n in ((np.r_[0.97, 0.02, 0.005, 0.005], 2), (np.full(200, 0.004), 1)):
        row[-1] = 1 - row[:-1].sum()
        names = [f"s{i}" for i in range(len(row))]
        rare = Bunch(name="x", kind="symbols", symbols=names, probabilities=np.array([row, row]))
        (ax,) = EmissionDisplay([rare], probability=0.9).plot(kind="top").axes_
        assert len(ax.texts) == n
        assert ax.images[0].get_array().shape == (1, n)
    flat = np.full((2, 200), 1 / 200)
    many = Bunch(name="x", kind="symbols", symbols=[*"a" * 200], probabilities=flat)
    (ax,) = EmissionDisplay([many], probability=0.9).plot(kind="top", n_top=3).axes_
    assert len(ax.texts) == 3
    # A state has at least one symbol, also where another state has more.
    few = Bunch(name="x", kind="symbols", symbols=["a", "b"], probabilities=np.eye(2))
    (ax,) = EmissionDisplay([few], probability=0.9).plot(kind="top", n_top=9).axes_
    assert [one.get_text() for one in ax.texts] == ["a"]
    table = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.3, 0.3, 0.4]])
    some = Bunch(name="x", kind="symbols", symbols=["a", "b", "c"], probabilities=table)
    (ax,) = EmissionDisplay([some], probability=0.9).plot(kind="top").axes_
    assert [one.get_text() for one in ax.texts] == ["a", "b", "c"]
    assert ax.images[0].get_array().mask[1, 1]


def test_long_symbols_and_formulas_do_not_overlap(pyplot):
    symbols = ["$x^2$ is a formula", "an extraordinarily long word", *"abcdefghijklmnop"]
    probabilities = np.full((31, len(symbols)), 1 / len(symbols))
    column = Bunch(name="word", kind="symbols", symbols=symbols, probabilities=probabilities)
    figure, ax = pyplot.subplots(figsize=(6, 5), layout="constrained")
    EmissionDisplay([column], probability=0.9).plot(ax)
    figure.canvas.draw()
    assert ax.texts[0].get_text() == r"\$x^2\$ …rmula"
    boxes = np.array([one.get_window_extent() for one in ax.texts], dtype=object)
    assert len(boxes) == 30 * 8
    grid = boxes.reshape(30, 8, 2, 2).astype(float)
    # Text ends before that in the next cell begins, and before the next row.
    assert (grid[:, :-1, 1, 0] < grid[:, 1:, 0, 0]).all()
    assert (grid[1:, :, 1, 1] < grid[:-1, :, 0, 1] + 0.5).all()


def test_errors(mixed, fitted):
    hmm, _ = mixed
    display = EmissionDisplay.from_estimator(hmm)
    for columns, message in (
        ("size", "columns holds 'size'; expected places, or names from 'word', 'height'"),
        ([4], "columns holds 4, but there are 4 columns"),
        ([], "columns is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            display.plot(columns=columns)
    with pytest.raises(ValueError, match="cannot show 'word'; it can be shown as 'matri"):
        display.plot(kind="density")
    for states in ([], [99], [-1], [0.5], [[0]]):
        with pytest.raises(ValueError, match="expected a list of states, from 0 to"):
            display.plot(states=states)
    with pytest.raises(ValueError, match="probability=1; expected a number between"):
        EmissionDisplay.from_estimator(fitted, probability=1)
    with pytest.raises(ValueError, match="n_top=0; expected an integer >= 1"):
        display.plot(n_top=0)
    with pytest.raises(ValueError, match="kind='pie'; expected one of 'auto'"):
        display.plot(kind="pie")


def gallery(n):
    """Columns of every kind, of n states and a new one."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0, 60, size=n + 1)
    points = [c + np.linspace(-8, 8, 200) for c in centres]
    real = Bunch(
        name="height",
        kind="real",
        mean=centres,
        lower=centres - 4,
        upper=centres + 4,
        points=points,
        density=[stats.norm(c, 2.5).pdf(p) for c, p in zip(centres, points, strict=True)],
    )
    counts = Bunch(
        name="count",
        kind="counts",
        mean=centres,
        lower=stats.poisson(centres).ppf(0.05),
        upper=stats.poisson(centres).ppf(0.95),
        points=[np.arange(np.rint(c) + 25) for c in centres],
        density=[stats.poisson(c).pmf(np.arange(np.rint(c) + 25)) for c in centres],
    )
    binary = Bunch(name="flag", kind="binary", mean=centres / 60)
    words = Bunch(
        name="word",
        kind="symbols",
        symbols=["".join(word) for word in itertools.product("aeiou", "krst", "en")],
        probabilities=rng.dirichlet(np.full(40, 0.1), size=n + 1),
    )
    letters = Bunch(
        name="letter",
        kind="symbols",
        symbols=list("abcdefgh"),
        probabilities=rng.dirichlet(np.full(8, 0.3), size=n + 1),
    )
    return EmissionDisplay([real, counts, binary, words, letters], probability=0.9)


@pytest.mark.parametrize(
    ("name", "n", "options"),
    [
        ("emissions_density", 4, {"columns": [0, 1], "new_state": True}),
        ("emissions_density_30", 30, {"columns": 0}),
        ("emissions_interval_30", 30, {"columns": "count", "kind": "interval"}),
        ("emissions_binary", 8, {"columns": 2}),
        ("emissions_words", 8, {"columns": 3, "n_top": 6}),
        ("emissions_words_30", 30, {"columns": 3, "n_top": 6}),
        ("emissions_letters", 4, {"columns": 4, "new_state": True}),
    ],
)
def test_pictures(name, n, options, tmp_path):
    with canvas(400, 300 if n < 30 else 400) as figure:
        gallery(n).plot(figure.subplots(), **options)
        assert_same_picture(figure, name, tmp_path)
