"""Gaussian emissions with nothing set: hyperparameters, starts, columns far from zero."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from fitting.test_reproducibility import assert_goes_on
from reference.conjugate import DiagonalGaussian, FullGaussian
from sklearn.metrics import adjusted_rand_score, homogeneity_score
from threadpoolctl import threadpool_info

from skihmm import HCRPHMM
from skihmm._data.sequences import Sequences
from skihmm._fitting import fit as _fit
from skihmm._fitting import starts as _starts
from skihmm._fitting.chain import ModelSettings, begin_chain
from skihmm._using.decoding import frozen_model
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import (
    AutoregressiveNormal,
    BetaBernoulli,
    BetaNegativeBinomial,
    DirichletCategorical,
    GammaGamma,
    GammaPoisson,
    HCRPCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
    VonMises,
)
from skihmm.metrics import frozen_log_likelihood
from skihmm.samplers import StepwiseGibbs
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 20, "n_draws": 5, "random_state": 0}


def two_states(seed=0, n=120, n_columns=2, distance=6.0):
    rng = np.random.default_rng(seed)
    states = np.repeat(np.arange(n // 15) % 2, 15)
    return distance * states[:, None] + rng.normal(size=(len(states), n_columns)), states


# -- the number of states -------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [5, 8, 12])
def test_white_noise_is_one_state(n_columns, global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(200, n_columns))
    hmm = HCRPHMM(emission="gaussian", random_state=global_random_seed).fit(X)
    assert np.median(hmm.draws_.n_states) <= 4
    assert np.bincount(hmm.labels_).max() >= 150


def test_white_noise_in_twenty_columns(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(200, 20))
    with pytest.warns(UserWarning, match="200 rows of 20 columns: .* below some 15 rows"):
        hmm = HCRPHMM(emission="gaussian", n_burnin=200, n_draws=20, random_state=0).fit(X)
    assert hmm.n_states_ <= 2


def test_states_in_ten_columns(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    states = np.repeat(rng.integers(3, size=60), 10)
    X = 1.2 * states[:, None] + rng.normal(size=(600, 10))
    hmm = HCRPHMM(
        emission="gaussian", n_burnin=200, n_draws=40, random_state=global_random_seed
    ).fit(X)
    assert adjusted_rand_score(states, hmm.labels_) > 0.9
    assert hmm.n_states_ <= 5


def test_scale_is_learned():
    """The same states in any unit, and narrow ones beside their distance."""
    X, states = two_states(distance=50.0)
    for unit in (1e-6, 1.0, 1e6):
        for emission in ("gaussian", "diagonal_gaussian"):
            hmm = HCRPHMM(emission=emission, n_burnin=100, n_draws=20, random_state=0)
            hmm.fit(X * unit)
            assert adjusted_rand_score(states, hmm.labels_) == 1.0
            variances = hmm.emission_.covariances_
            if variances.ndim == 3:
                variances = variances.diagonal(axis1=1, axis2=2)
            assert (abs(np.log(variances / unit**2)) < 1).all()


def test_words_under_dirichlet_distributions():
    """A pseudo-count of one for each of many symbols makes all states alike."""
    rng = np.random.default_rng(0)
    states = np.arange(4000) % 20
    X = (30 * states + rng.integers(30, size=4000))[:, None]
    settings = {"n_burnin": 60, "n_draws": 5, "random_state": 0}
    drawn = HCRPHMM(emission="dirichlet", **settings).fit(X[:3000])
    fixed = HCRPHMM(emission=DirichletCategorical(1.0), **settings).fit(X[:3000])
    assert adjusted_rand_score(states[:3000], drawn.labels_) > 0.7
    scores = [frozen_log_likelihood(hmm, X[3000:]) for hmm in (drawn, fixed)]
    assert scores[0] > scores[1] + 1


# -- hyperparameters of draws ---------------------------------------------------------


CASES = {
    "gaussian": (NormalInverseWishart, {"mean": (2,), "strength": (), "scale": (2,)}),
    "diagonal": (NormalInverseGamma, {"mean": (2,), "strength": (2,), "scale": (2,)}),
    "autoregressive": (AutoregressiveNormal, {"mean": (2, 7), "strength": (4,), "scale": ()}),
    "poisson": (GammaPoisson, {"shape": (2,), "rate": (2,)}),
    "negative binomial": (BetaNegativeBinomial, {"shape": (2,), "rate": (2,), "dispersion": (2,)}),
    "gamma": (GammaGamma, {"shape": (2,), "scale": (2,), "dispersion": (2,)}),
    "von mises": (VonMises, {"dispersion": (2,)}),
    "bernoulli": (BetaBernoulli, {"a": (2,), "b": (2,)}),
    "dirichlet": (DirichletCategorical, {"concentration": ()}),
}
FIXED = {
    "gaussian": {"mean": 0.5, "strength": 0.3, "scale": "0.2*var"},
    "diagonal": {"mean": [0.5, 1.0], "strength": 0.3, "scale": [1.0, 2.0]},
    "autoregressive": {"mean": 0.5, "strength": [1.0, 2.0, 0.5, 0.3], "scale": 2.0},
    "poisson": {"shape": 1.5, "rate": [0.5, 1.0]},
    "negative binomial": {"shape": 1.5, "rate": [0.5, 1.0], "dispersion": 0.3},
    "gamma": {"shape": 1.5, "scale": [0.5, 1.0], "dispersion": 0.3},
    "von mises": {"dispersion": [0.3, 2.0]},
    "bernoulli": {"a": 0.5, "b": 2.0},
    "dirichlet": {"concentration": 0.7},
}


def data_of(kind):
    X, _ = two_states()
    if kind in ("gaussian", "diagonal", "autoregressive"):
        return X
    if kind in ("gamma", "von mises"):
        return 0.01 + abs(np.sin(X) * (2.0 if kind == "gamma" else 6.0))
    return (X > 3).astype(int) if kind == "bernoulli" else abs(np.rint(X)).astype(int)


@pytest.mark.parametrize("kind", CASES)
def test_draws_have_what_is_not_fixed(kind):
    make, shapes = CASES[kind]
    X = data_of(kind)
    for name in shapes:
        others = {k: v for k, v in FIXED[kind].items() if k != name}
        hmm = HCRPHMM("auto", make(**others), "hcrp", n_chains=2, **SHORT).fit(X)
        found = hmm.draws_.hyperparameters
        assert set(found) == {"alpha", "gamma", f"emission_{name}"}
        drawn = found[f"emission_{name}"]
        assert drawn.shape == (2, 5, *shapes[name])
        assert len(np.unique(drawn.reshape(10, -1)[:, 0])) == 10
        assert f"emission_{name}" in hmm.draws_.to_dict()["posterior"]
    hmm = HCRPHMM("auto", make(**FIXED[kind]), "hcrp", **SHORT).fit(X)
    assert set(hmm.draws_.hyperparameters) == {"alpha", "gamma"}


@pytest.mark.parametrize("kind", CASES)
def test_resumed_chains_go_on_bit_for_bit(kind, tmp_path):
    X = data_of(kind)
    make = partial(HCRPHMM, emission=CASES[kind][0](), n_chains=2, **SHORT)
    assert_goes_on(make, lambda hmm: hmm.fit(X), tmp_path / "run", 4, 8)


@pytest.mark.parametrize("kind", ["gaussian", "diagonal"])
def test_scores_use_the_hyperparameters_of_each_draw(kind):
    """The mixture over states of the predictive densities of one new row, from SciPy."""
    X, _ = two_states()
    hmm = HCRPHMM(emission=CASES[kind][0](), **SHORT).fit(X)
    row = np.array([1.0, 2.0])
    each = []
    for d in range(5):
        draw = hmm.draws_[0, d]
        given = {k: v[0, d] for k, v in hmm.draws_.hyperparameters.items()}
        mean, strength, scale = (
            given[f"emission_{name}"] for name in ("mean", "strength", "scale")
        )

        def density(seen, mean=mean, strength=strength, scale=scale):
            if kind == "gaussian":
                matrix = tuple(map(tuple, np.diag(scale)))
                emission = FullGaussian(tuple(mean), strength, 4.0, matrix)
                return emission.log_predictive(seen, row)
            return sum(
                DiagonalGaussian((mean[c],), strength[c], 1.5, (scale[c],)).log_predictive(
                    seen[:, [c]], row[[c]]
                )
                for c in range(2)
            )

        densities = [density(X[draw.states == k]) for k in range(draw.n_states)]
        densities.append(density(X[:0]))
        first = Sequences(np.zeros((1, 2)), np.zeros(1, dtype=np.intp))
        start = frozen_model(draw, first, hmm.emission_).transition_matrix()[0]
        each.append(np.log(start @ np.exp(densities)))
    expected = np.logaddexp.reduce(each) - np.log(5)
    assert hmm.score_samples([row])[0] == pytest.approx(expected, rel=1e-9)


def test_relative_scale():
    X, _ = two_states()
    variances = X.var(axis=0)
    diagonal = NormalInverseGamma(scale=" 0.25 * var").fit(X)
    np.testing.assert_allclose(diagonal.scale_, 0.25 * variances)
    full = NormalInverseWishart(scale="1e-1*var").fit(X)
    np.testing.assert_allclose(full.scale_, np.diag(0.1 * variances))
    for wrong in ("var", "0.1", "-1*var", "0*var", "inf*var", "a*var", ""):
        for make in (NormalInverseGamma, NormalInverseWishart):
            with pytest.raises(ValueError, match=r'scale=.* such as "0.1\*var"'):
                make(scale=wrong).fit(X)


def test_equal_values_do_not_draw_the_scale_to_zero():
    """Rounded data: a long stretch of one number, as of a sensor that is off."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.full(200, 3.0), rng.normal(size=100)])[:, None]
    for kind in (NormalInverseWishart, NormalInverseGamma):
        emission = kind(resolution=None)
        hmm = HCRPHMM(emission=emission, n_burnin=200, n_draws=20, random_state=0).fit(X)
        scale = hmm.draws_.hyperparameters["emission_scale"]
        assert (scale >= 0.5e-8 * X.var()).all()
        assert np.isfinite(hmm.draws_.lp).all()
        assert len(np.unique(hmm.labels_[:200])) == 1


# -- parameters of states -------------------------------------------------------------


def test_parameters_of_the_selected_draw():
    X, states = two_states()
    for kind in ("gaussian", "diagonal"):
        hmm = HCRPHMM(emission=CASES[kind][0](), n_burnin=100, n_draws=20, random_state=0)
        emission = hmm.fit(X).emission_
        assert hmm.n_states_ == 2
        inside = [X[hmm.labels_ == k] for k in range(2)]
        np.testing.assert_allclose(emission.means_, [x.mean(0) for x in inside], atol=0.1)
        want = [np.cov(x.T) for x in inside]
        if kind == "diagonal":
            want = [np.diag(c) for c in want]
        assert emission.covariances_.shape == np.shape(want)
        np.testing.assert_allclose(emission.covariances_, want, atol=0.4)
    rates = HCRPHMM(emission="poisson", **SHORT).fit(data_of("poisson")).emission_.rates_
    assert rates.shape[1] == 2
    probs = HCRPHMM(emission="bernoulli", **SHORT).fit(data_of("bernoulli"))
    assert ((probs.emission_.probabilities_ > 0) & (probs.emission_.probabilities_ < 1)).all()
    mixed = ProductEmission([("a", "gaussian", [0]), ("b", "hcrp", [1])])
    hmm = HCRPHMM(emission=mixed, **SHORT).fit(np.column_stack([X[:, 0], states]))
    assert hmm.emission_.emissions_[0][1].means_.shape == (hmm.n_states_, 1)


# -- starts ---------------------------------------------------------------------------


@pytest.fixture
def full_effort(monkeypatch):
    """Let the start of a fit without a burn-in be that of a fit with defaults."""
    monkeypatch.setattr(_fit, "effort_of", lambda n_burnin: 1.0)


@pytest.mark.parametrize(
    ("emission", "init"),
    [
        ("poisson", "particle_filter"),
        ("bernoulli", "particle_filter"),
        ("hcrp", "particle_filter"),
        ("dirichlet", "particle_filter"),
        (ProductEmission([("a", "hcrp", [0]), ("b", "poisson", [1])]), "particle_filter"),
    ],
)
def test_auto_chooses_by_the_emission(emission, init):
    X = data_of("bernoulli")
    auto = HCRPHMM(emission=emission, **SHORT).fit(X)
    named = HCRPHMM(emission=emission, init=init, **SHORT).fit(X)
    np.testing.assert_array_equal(auto.draws_.lp, named.draws_.lp)


@pytest.mark.parametrize("size", [600, 200])
@pytest.mark.parametrize(
    ("emission", "n_columns"),
    [
        ("gaussian", 1),
        ("diagonal_gaussian", 5),
        (ProductEmission([("a", "gaussian", [0]), ("b", "hcrp", [1])]), 2),
        (AutoregressiveNormal(1), 1),
    ],
)
@pytest.mark.usefixtures("full_effort")
def test_auto_takes_the_best_of_several_starts(emission, n_columns, size, monkeypatch):
    """On all steps, or on a part of them that stands for the others."""
    monkeypatch.setattr(_starts, "N_PIECES", 4)
    monkeypatch.setattr(_starts, "PIECE", size // 4)
    monkeypatch.setattr(_starts, "CHUNK", 150)
    X, states = two_states(n=600)
    X = np.repeat(6.0 * states[:, None], n_columns, axis=1)
    X += np.random.default_rng(1).normal(size=X.shape)
    if isinstance(emission, ProductEmission):
        X[:, 1] = states
    settings = {**SHORT, "n_burnin": 0, "n_draws": 1, "thin": 1, "emission": emission}
    groups = np.repeat([0, 1, 2], [70, 500, 30])
    hmm = HCRPHMM(**settings).fit(X, groups=groups)
    if size < 600 or not isinstance(emission, AutoregressiveNormal):
        assert adjusted_rand_score(states, hmm.labels_) > 0.9
    again = HCRPHMM(n_chains=2, n_jobs=2, **settings).fit(X, groups=groups)
    np.testing.assert_array_equal(hmm.draws_.lp[0], again.draws_.lp[0])


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("symbols_are_states", [True, False])
@pytest.mark.usefixtures("full_effort")
def test_long_symbols_start_from_a_filter_or_from_their_symbols(
    symbols_are_states, n_columns, monkeypatch
):
    """Twelve states with a symbol each, and two states with six symbols each."""
    monkeypatch.setattr(_starts, "N_PIECES", 4)
    monkeypatch.setattr(_starts, "PIECE", 100)
    monkeypatch.setattr(_starts, "CHUNK", 700)
    rng = np.random.default_rng(0)
    if symbols_are_states:
        states = X = np.cumsum(rng.choice(3, size=2000, p=[0.1, 0.8, 0.1])) % 12
    else:
        states = np.repeat(rng.integers(2, size=100), 20)
        X = 6 * states + rng.integers(6, size=2000)
    X = np.stack([X, states % 2], axis=1)[:, :n_columns]
    emission = "hcrp"
    if n_columns == 2:
        emission = ProductEmission([("a", "hcrp", [0]), ("b", "dirichlet", [1])])
    settings = {**SHORT, "n_burnin": 0, "n_draws": 1, "thin": 1, "emission": emission}
    groups = np.repeat([0, 1, 2], [70, 1900, 30])
    hmm = HCRPHMM(**settings).fit(X, groups=groups)
    # The one sweep after the start leaves some rows in small states of their own.
    after = HCRPHMM(**{**settings, "n_burnin": 5}).fit(X, groups=groups)
    assert adjusted_rand_score(states, after.labels_) > 0.9
    if symbols_are_states:  # The filter alone finds the two states, but not the twelve.
        named = HCRPHMM(init="particle_filter", **settings).fit(X, groups=groups)
        assert hmm.draws_.summed_lp() > named.draws_.summed_lp()


@pytest.mark.usefixtures("full_effort")
def test_symbols_start_from_their_pairs():
    """The states of an automaton in which a symbol belongs to several."""
    X, states = make_automaton_sequence(2500, random_state=0)
    settings = {**SHORT, "n_burnin": 0, "n_draws": 1, "thin": 1, "random_state": 0}
    hmm = HCRPHMM(**settings).fit(X)
    named = HCRPHMM(init="particle_filter", **settings).fit(X)
    assert adjusted_rand_score(states, hmm.labels_) > 0.9
    assert adjusted_rand_score(states, named.labels_) < 0.8


def test_rare_pairs_have_the_state_of_their_symbol():
    labels = np.array(8 * [0, 1] + 3 * [2] + [0])
    expected = [2, 0, *7 * [1, 0], 3, 3, 3, 2]
    starts = np.array([0, 19])
    np.testing.assert_array_equal(_starts.frequent_pairs(labels, starts), expected)


def test_rare_and_missing_symbols_share_a_state():
    symbols = np.repeat([3, 1, 7, 8, -1], [6, 9, 5, 1, 20])[:, None]
    expected = np.repeat([2, 1, 0], [6, 9, 26])
    np.testing.assert_array_equal(_starts.frequent_symbols(symbols), expected)


def test_starts_can_be_stopped():
    X, _ = two_states()
    emission = NormalInverseGamma().fit(X)
    sequences = Sequences(emission.encode_values(X), np.zeros(1, dtype=np.intp))
    settings = ModelSettings(StepwiseGibbs(), emission, HCRPTransitions(), "auto", 10)
    with pytest.raises(KeyboardInterrupt):
        begin_chain(sequences, settings, np.random.SeedSequence(0), is_stopped=lambda: True)


def test_kmeans():
    X, states = two_states(n=1200)
    X[5, 0] = np.nan
    settings = {**SHORT, "n_burnin": 0, "n_draws": 1, "thin": 1}
    hmm = HCRPHMM(emission="diagonal_gaussian", init="kmeans", **settings).fit(X)
    again = HCRPHMM(emission="diagonal_gaussian", init="kmeans", **settings).fit(X)
    np.testing.assert_array_equal(hmm.labels_, again.labels_)
    # Labels of twenty clusters say almost all about the two states.
    assert hmm.n_states_ > 5
    for k in range(hmm.n_states_):
        share = states[hmm.labels_ == k].mean()
        assert share < 0.2 or share > 0.8
    recipe = NormalInverseWishart(resolution=None)
    constant = HCRPHMM(emission=recipe, init="kmeans", **SHORT).fit(np.ones((30, 2)))
    assert constant.n_states_ >= 1
    mixed = ProductEmission([("a", HCRPCategorical(), [0]), ("b", "gaussian", [1])])
    symbols = np.column_stack([states, X[:, 1]])
    HCRPHMM(emission=mixed, init="kmeans", **SHORT).fit(symbols)
    with pytest.raises(ValueError, match='init="kmeans" needs columns of numbers'):
        HCRPHMM(init="kmeans", **SHORT).fit(states[:, None])


# -- columns far from zero ------------------------------------------------------------


@pytest.mark.parametrize("emission", ["gaussian", "diagonal_gaussian"])
def test_columns_far_from_zero(emission, tmp_path):
    """Unix seconds that differ by milliseconds: offset 1e12 standard deviations."""
    rng = np.random.default_rng(0)
    seconds = rng.normal(size=(90, 1)) * 1e-3 + np.repeat([0.0, 0.02, 0.0], 30)[:, None]
    X = np.column_stack([1.7e9 + seconds, 1e3 * seconds + rng.normal(size=(90, 1))])
    settings = {**SHORT, "emission": emission, "n_burnin": 100, "warm_start": True}
    settings |= {"init": "single", "random_state": 1}
    hmm = HCRPHMM(**settings).fit(X)
    # (Columns of one state are correlated, so diagonal covariances may divide it.)
    assert homogeneity_score(seconds[:, 0] > 0.01, hmm.labels_) > 0.9
    hmm.fit(X)
    assert hmm.draws_.shape == (1, 10)
    hmm.partial_fit(X[:30])
    path = tmp_path / "run.npz"
    HCRPHMM(**{**settings, "warm_start": False}, checkpoint=path).fit(X)
    HCRPHMM(**{**settings, "n_draws": 8, "warm_start": False}, checkpoint=path).fit(X)
    means = hmm.emission_.means_[:, [0]] - 1.7e9
    assert (abs(means - [0.0, 0.02]).min(axis=1) < 5e-3).all()
    assert abs(hmm.sample(20)[0][:, 0] - 1.7e9).max() < 0.1
    following = hmm.predict_next(X, n_steps=3)
    assert abs(following.mean()[:, 0] - 1.7e9).max() < 0.1
    hidden = X.copy()
    hidden[10] = np.nan
    assert abs(hmm.impute(hidden)[10, 0] - 1.7e9) < 0.1
    # (In other units, without the offset, the same densities but for the unit.)
    other = HCRPHMM(**{**settings, "warm_start": False}).fit((X - [1.7e9, 0]) * [1e3, 1])
    fresh = HCRPHMM(**{**settings, "warm_start": False}).fit(X)
    low = other.score((X - [1.7e9, 0]) * [1e3, 1]) + np.log(1e3)
    assert fresh.score(X) == pytest.approx(low, abs=0.3)


@pytest.mark.parametrize("far", [0.0, 2.0**30])
def test_a_warm_start_has_the_emission_of_all_rows(far):
    """Rows of another spread give other hyperpriors."""
    rng = np.random.default_rng(0)
    near, wide = far + rng.normal(size=(60, 2)), far + 10 * rng.normal(size=(60, 2))
    settings = {**SHORT, "emission": "diagonal_gaussian", "warm_start": True}
    hmm = HCRPHMM(**settings).fit(near).partial_fit(wide)
    before = hmm.emission_
    both = np.concatenate([near, wide])
    hmm.fit(both)
    assert hmm.draws_.shape == (1, 10)
    np.testing.assert_array_equal(hmm.emission_.offset_, before.offset_)
    for old, new in zip(before._units, hmm.emission_._units, strict=True):
        np.testing.assert_array_equal(old, new)


def test_shifted_data_are_other_data(tmp_path):
    rng = np.random.default_rng(0)
    # (Numbers that shift without rounding.)
    X = 2.0**30 + np.rint(1024 * rng.normal(size=(64, 1))) / 1024
    emission = NormalInverseGamma(mean=2.0**30)
    hmm = HCRPHMM(emission=emission, warm_start=True, **SHORT).fit(X)
    with pytest.raises(ValueError, match=r"X .* is not that of the earlier"):
        hmm.fit(X + 2.0**20)
    saved = HCRPHMM(emission=emission, checkpoint=tmp_path / "a.npz", **SHORT).fit(X)
    with pytest.raises(ValueError, match="it differs in X"):
        saved.fit(X + 2.0**20)


@pytest.mark.filterwarnings("ignore:X has 40 rows of 8 columns")
def test_added_rows_do_not_start_in_states_of_their_own(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    first, added = rng.normal(size=(40, 8)), rng.normal(size=(200, 8))
    settings = {**SHORT, "emission": "gaussian", "init": "single", "n_burnin": 1}
    hmm = HCRPHMM(**settings).fit(first)
    n_before = hmm.draws_.n_states.max()
    hmm.partial_fit(added)
    assert hmm.draws_.n_states.max() <= n_before + 30


def test_clusters_of_threads(global_random_seed):
    """Chains that run as threads get the same clusters, and leave all thread pools."""
    X, _ = two_states(global_random_seed, n=600)
    limits = [pool["num_threads"] for pool in threadpool_info()]
    one = HCRPHMM(emission="gaussian", n_chains=4, **SHORT).fit(X)
    four = HCRPHMM(emission="gaussian", n_chains=4, n_jobs=4, **SHORT).fit(X)
    np.testing.assert_array_equal(one.draws_.lp, four.draws_.lp)
    assert [pool["num_threads"] for pool in threadpool_info()] == limits


def test_ordinary_columns_are_not_shifted():
    X, _ = two_states()
    emission = NormalInverseWishart().fit(X)
    np.testing.assert_array_equal(emission.offset_, [0.0, 0.0])
    np.testing.assert_array_equal(emission.encode_values(X), X)
