"""Models whose states each have a probability to stay."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from fitting.test_reproducibility import assert_goes_on
from reference.coins import CoinModel, walk
from reference.enumeration import DirichletEmission, log_likelihood
from scipy.special import betaln, gammaln
from scipy.stats import kstest
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM
from skihmm._draws import PosteriorDraws
from skihmm._using.dwell_times import DwellLaw
from skihmm.core._franchise import Franchise
from skihmm.core._particle_filter import filter_particles
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import NormalInverseGamma
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.inspection import TraceDisplay
from skihmm.metrics import ParticleFilterScorer
from skihmm.posterior import dwell_time_bands
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 10, "n_draws": 4, "random_state": 0}
RECIPES = {
    "sampled": HCRPTransitions(expected_dwell=8),
    "fixed": HCRPTransitions(stay_prior=(3, 0.5)),
    "persistent": HCRPTransitions(expected_dwell=8, switch_penalty=3.0),
}
MODEL = CoinModel((0, 0, 1, 1, 1), DirichletEmission(2, 0.5), (0, 3), 0.8, 1.1, 3.0, 0.7)
MODELS = [MODEL, replace(MODEL, kappa=0.7, omega=2.0)]


def runs(n_runs=12, length=15, seed=0):
    """Rows of three states that last, and the states."""
    rng = np.random.default_rng(seed)
    steps = 1 + rng.integers(2, size=n_runs)
    states = np.repeat(np.cumsum(steps) % 3, length)
    return 4.0 * states[:, None] + rng.standard_normal((len(states), 1)), states


def assert_equal_fits(a, b):
    np.testing.assert_array_equal(a.draws_.states, b.draws_.states)
    np.testing.assert_array_equal(a.draws_.lp, b.draws_.lp)
    np.testing.assert_array_equal(a.dwell_times_, b.dwell_times_)
    for name, values in a.draws_.hyperparameters.items():
        np.testing.assert_array_equal(values, b.draws_.hyperparameters[name])


# -- parameters -----------------------------------------------------------------------


def test_which_hyperparameters_change():
    X, _ = runs(6)
    draws = {
        name: HCRPHMM(transitions=recipe, emission="gaussian", **SHORT).fit(X).draws_
        for name, recipe in RECIPES.items()
    }
    assert np.ptp(draws["sampled"].stay_prior, axis=1).min() > 0
    assert (draws["fixed"].stay_prior == (3, 0.5)).all()
    plain = HCRPHMM(emission="gaussian", **SHORT).fit(X).draws_
    assert plain.stay_prior is None
    assert "stays" not in plain[0, 0].transitions


# -- hyperparameters ------------------------------------------------------------------

SIZES = (40, 3, 25, 3, 12, 30, 2)


def fixed_chain(franchise):
    """A chain whose path and seating stay as they are."""
    states = np.repeat([0, 1, 0, 2, 1, 2, 0], SIZES)
    stats = NormalInverseGamma(0.0, 1.0, 1.0, 1.0).fit(np.zeros((len(states), 1)))
    state = ChainState(
        np.array([0, 50]), franchise, stats.make_stats(np.zeros((len(states), 1))), RandomStream(0)
    )
    state.start_from(states)
    return state


def stays_and_leaves(state):
    record = state.to_arrays()["transitions"]
    leaves = np.bincount(record["rows"], record["n_customers"], state.n_states + 1)
    return record["stays"], leaves


def test_log_joint_has_the_coins():
    """Against the same chain with other parameters: only the coins' factor changes."""
    chains = [
        fixed_chain(Franchise(0.7, 1.2, None, {"stay_prior": prior})) for prior in ((3, 2), (9, 1))
    ]
    chains[1].from_arrays(
        chains[0].to_arrays()
        | {
            "transitions": chains[0].to_arrays()["transitions"]
            | {"stay_prior": np.array([9.0, 1.0])}
        }
    )
    q, leaves = stays_and_leaves(chains[0])
    expected = [
        np.sum(betaln(kappa + q, omega + leaves[:-1]) - betaln(kappa, omega))
        for kappa, omega in ((3, 2), (9, 1))
    ]
    logs = [state.log_joint() for state in chains]
    assert logs[1] - logs[0] == pytest.approx(expected[1] - expected[0], rel=1e-12)


@pytest.mark.parametrize("penalty", [0.0, 1.3])
@pytest.mark.parametrize("model", MODELS)
def test_log_joint_against_closed_form(model, penalty):
    """Seatings of one path and one number of stays differ by their tables only."""
    model = replace(model, penalty=penalty)
    state = model.state(0)
    kernel = BlockedGibbs(5).make_kernel(state)
    for _ in range(30):
        kernel.sweep(state)
        arrays = state.to_arrays()
        record = arrays["transitions"]
        counts = np.zeros((arrays["n_states"] + 1, arrays["n_states"]))
        counts[record["rows"], record["dishes"]] = record["n_customers"]
        tables = np.bincount(record["dishes"], record["n_tables"])
        expected = log_likelihood(arrays["states"].tolist(), model.y, model.emission)
        expected += gammaln(record["sizes"]).sum() + gammaln(tables).sum()
        expected += tables.sum() * math.log(model.alpha)
        expected += len(tables) * math.log(model.gamma)
        for size in counts.sum(axis=1):
            expected += gammaln(model.alpha) - gammaln(model.alpha + size)
        expected += gammaln(model.gamma) - gammaln(model.gamma + tables.sum())
        q, leaves = stays_and_leaves(state)
        expected += np.sum(betaln(model.kappa + q, model.omega + leaves[:-1]))
        expected -= len(q) * betaln(model.kappa, model.omega)
        # Draws after a state, not sequences' starts.
        expected -= penalty * counts[:-1].sum()
        assert state.log_joint() == pytest.approx(expected, rel=1e-11)


@pytest.mark.statistical
def test_stay_prior_against_integration():
    state = fixed_chain(Franchise(0.7, 1.2, None, {"expected_stay": 12.0}))
    q, leaves = stays_and_leaves(state)
    theta = np.linspace(np.log(11) - 6, np.log(11) + 6, 401)
    log_omega = np.linspace(-7, 5, 401)
    omega = np.exp(log_omega)[:, None]
    kappa = omega * np.exp(theta)
    log_p = 2 * np.log(omega) - omega / 2 - (theta - np.log(11)) ** 2 / 2
    for stays, left in zip(q, leaves[:-1], strict=True):
        log_p = log_p + betaln(kappa + stays, omega + left) - betaln(kappa, omega)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    draws = []
    for i in range(12_000):
        state.draw_hidden()
        if i % 6 == 0:
            draws.append(state.transitions.hyperparameters["stay_prior"])
    draws = np.array(draws)
    found = np.log(draws[:, 0] / draws[:, 1]), np.log(draws[:, 1])
    for values, grid, law in (
        (found[0], theta, p.sum(axis=0)),
        (found[1], log_omega, p.sum(axis=1)),
    ):
        ends = np.cumsum(law) - law / 2
        pvalue = kstest(values, lambda x, g=grid, e=ends: np.interp(x, g, e)).pvalue
        assert pvalue > 0.002, (np.mean(values), np.sum(law * grid))


# -- particle filter and predictions --------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_particle_filter_is_unbiased(model):
    coin = model.kappa, model.omega
    stays = {"stay_prior": coin}
    evidence = sum(
        p * math.exp(log_likelihood(x, model.y, model.emission))
        for (x, _, _), p in walk(5, model.starts, 0.8, 1.1, *coin).items()
    )
    estimates = []
    for seed in range(3000):
        log_predictive, path = filter_particles(
            categorical_stats(model.codes, [2], 0.5, 1.0, False),
            np.array(model.starts),
            RandomStream(seed),
            n_particles=5,
            transitions=Franchise(0.8, 1.1, None, stays),
        )
        estimates.append(math.exp(log_predictive.sum()))
        assert len(path) == 5
    error = np.std(estimates) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - evidence) < 3.5 * error
    assert error < 0.02 * evidence


@pytest.mark.parametrize("name", RECIPES)
def test_one_step_ahead_all_scores_agree(name):
    """From one draw the first predictive probability is the same in every way."""
    X, _ = runs(6)
    hmm = HCRPHMM(transitions=RECIPES[name], emission="gaussian", **SHORT).fit(X)
    scores = [
        ParticleFilterScorer(adaptive=adaptive, start="continue")(hmm, X[:1])
        for adaptive in (True, False)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)
    predicted = hmm.predict_next(X, n_steps=1).log_prob(X[:1])
    assert np.ravel(predicted)[0] == pytest.approx(hmm.predict_next(X).log_prob(X[:1])[0])


@pytest.mark.parametrize("name", RECIPES)
def test_everything_after_a_fit(name):
    X, _ = runs(6)
    hmm = HCRPHMM(transitions=RECIPES[name], emission="gaussian", n_chains=2, **SHORT)
    hmm.fit(X)
    assert np.isfinite(hmm.score(X))
    assert hmm.predict(X).shape == (len(X),)
    np.testing.assert_allclose(hmm.predict_proba(X).sum(axis=1), 1)
    rows, states = hmm.sample(200, random_state=1)
    assert rows.shape == (200, 1)
    assert (np.diff(states) == 0).mean() > 0.5
    np.testing.assert_allclose(hmm.transmat_.sum(axis=1), 1)
    shown = {
        "sampled": ["expected_dwell", "omega"],
        "fixed": [],
        "persistent": ["expected_dwell", "omega"],
    }
    kappa, omega = np.moveaxis(hmm.draws_.stay_prior, 2, 0)
    quantities = {"expected_dwell": 1 + kappa / omega, "omega": omega}
    table = hmm.diagnose().table
    assert "stay_prior" not in table
    assert [q for q in quantities if q in table] == shown[name]
    for q in shown[name]:
        assert table[q]["mean"] == pytest.approx(quantities[q].mean())
    display = TraceDisplay.from_estimator(hmm, quantities="expected_dwell")
    line = display.axes_[0].lines[1]
    np.testing.assert_allclose(line.get_ydata(), quantities["expected_dwell"][1])
    assert hmm.draws_.to_dict()["posterior"]["stay_prior"].shape == (2, 4, 2)
    assert hmm.impute(np.where(np.arange(len(X)) % 9, X[:, 0], np.nan)[:, None]).all()


def test_a_first_chain_that_was_interrupted_before_its_first_draw():
    hmm = HCRPHMM(transitions=RECIPES["sampled"], **SHORT).fit([[0], [1]] * 10)
    some = [hmm.draws_[0, d] for d in range(hmm.draws_.n_draws[0])]
    found = PosteriorDraws([[], some]).positive_hyperparameters()["expected_dwell"]
    expected = hmm.draws_.positive_hyperparameters()["expected_dwell"]
    np.testing.assert_array_equal(found[1], expected[0])
    assert np.isnan(found[0]).all()


# -- dwell times ----------------------------------------------------------------------


@pytest.mark.parametrize("transitions", ["hcrp", *RECIPES.values()], ids=str)
def test_dwell_times(transitions):
    X, _ = runs(6)
    hmm = HCRPHMM(transitions=transitions, emission="gaussian", **SHORT).fit(X)
    expected = 1 / (1 - np.diag(hmm.transmat_)[:-1])
    np.testing.assert_allclose(hmm.dwell_times_, expected, rtol=1e-9)
    law = DwellLaw.of_draw(hmm._fitted.selected)
    if transitions == "hcrp":
        assert (law.leave == 1).all()
        return
    # Parts of the probability to stay: the coin, and a draw of the same state.
    record, kappa_omega = hmm._fitted.selected.transitions, hmm.draws_.stay_prior[hmm._fitted.best]
    leaves = np.bincount(record["rows"], record["n_customers"])[: hmm.n_states_]
    stays = record["stays"]
    np.testing.assert_allclose(
        law.leave, (kappa_omega[1] + leaves) / (kappa_omega.sum() + stays + leaves)
    )


def _repeats(record, n_states):
    """P(k again) and P(k again twice) of the restaurant of every state k, by the urn."""
    alpha, gamma = record["alpha"], record["gamma"]
    m = np.bincount(record["dishes"], record["n_tables"])
    rows, dishes, n = record["rows"], record["dishes"], record["n_customers"]
    own = np.bincount(dishes[rows == dishes], n[rows == dishes], n_states)
    every = np.bincount(rows, n, n_states)[:n_states]
    if record.get("contexts", {"n_before": 0})["n_before"]:
        alpha, own, every = 1e9, 0 * own, 0 * every  # The overall distribution's.
    old, new = own / (every + alpha), alpha / (every + alpha) * m / (m.sum() + gamma)
    after, share = every + 1 + alpha, alpha / (every + 1 + alpha)
    twice = old * ((own + 1) / after + share * m / (m.sum() + gamma))
    twice += new * ((own + 1) / after + share * (m + 1) / (m.sum() + 1 + gamma))
    return old + new, twice


@pytest.mark.parametrize("order", [None, "state", "context"])
@pytest.mark.parametrize("name", ["sampled", None])
def test_drawn_laws_of_dwell_times(name, order):
    X, _ = runs(20, 5, seed=2)
    options = {**RECIPES[name].get_params()} if name else {}
    if order:
        X = np.column_stack([X, np.arange(len(X)) % 2])
        options.update(context_features=[1], context_order=order)
    hmm = HCRPHMM(emission="gaussian", transitions=HCRPTransitions(**options), **SHORT)
    draw = hmm.fit(X)._fitted.selected
    rng, mean = np.random.default_rng(0), DwellLaw.of_draw(draw)
    laws = [DwellLaw.drawn(draw, rng) for _ in range(1500)]
    leave, change = (np.array([getattr(law, a) for law in laws]) for a in ("leave", "change"))
    once, twice = _repeats(draw.transitions, draw.n_states)
    for drawn, expected in (
        (leave, mean.leave),
        (change, mean.change),
        (1 - change, once),
        ((1 - change) ** 2, twice),
    ):
        error = drawn.std(axis=0) / math.sqrt(len(laws))
        assert (abs(drawn.mean(axis=0) - expected) <= 5 * error + 1e-6).all()
    assert (name is None) == (leave == 1).all()


def test_bands_of_dwell_times():
    """With all states known and a fixed prior, dwell times have a Beta law each."""
    X, states = runs(40, 10)
    hmm = HCRPHMM("stepwise", "gaussian", "sticky", n_burnin=9, thin=1, random_state=0)
    draws = hmm.fit(X, states=states).draws_
    lower, median, upper = dwell_time_bands(draws, states, 0.9, random_state=1)
    np.testing.assert_allclose(median, hmm.dwell_times_, rtol=0.15)
    # About as wide as for so many leaves.
    n_leaves = np.bincount(states[:-1][np.diff(states) != 0])
    width = np.log(upper / lower)
    np.testing.assert_allclose(width, 2 * 1.645 / np.sqrt(n_leaves), rtol=0.4)
    other = np.where(states == 2, 4, states)
    for band in dwell_time_bands(draws, other, 0.9, random_state=1):
        assert np.isnan(band[[2, 3]]).all()
        assert np.isfinite(band[[0, 1, 4]]).all()
    one = HCRPHMM(n_burnin=5, n_draws=3, random_state=0).fit([[0]] * 9)
    assert (dwell_time_bands(one.draws_, one.labels_)[2] > 5).all()
    for bad, message in ((states[:-1], "399 steps"), (-states, "non-negative")):
        with pytest.raises(ValueError, match=message):
            dwell_time_bands(draws, bad)
    with pytest.raises(ValueError, match="probability=1"):
        dwell_time_bands(draws, states, 1)
    with pytest.raises(TypeError, match="of type HCRPHMM; expected PosteriorDraws"):
        dwell_time_bands(hmm, states)


def test_law_of_dwell_times():
    """Sums of a geometric number of geometric runs."""
    law = DwellLaw(np.array([0.3, 0.08]), np.array([0.7, 0.45]))
    lengths = np.array([1, 2, 3, 4, 5, 8, 20, 21, 60])
    rng = np.random.default_rng(0)
    n = 40_000
    for k, found in enumerate(law.survival(lengths)):
        n_runs = rng.geometric(law.change[k], size=n)
        stays = n_runs + rng.negative_binomial(n_runs, law.leave[k])
        expected = (stays[:, None] >= lengths).mean(axis=0)
        np.testing.assert_allclose(found, expected, atol=4 / math.sqrt(4 * n))
        assert found[0] == 1
        every = law.survival(np.arange(1, 5000))[k]
        assert every.sum() == pytest.approx(law.mean[k], rel=1e-9)


# -- continuation ---------------------------------------------------------------------


@pytest.mark.parametrize("sampler", [StepwiseGibbs(), BlockedGibbs(5), BlockedBeam(4)])
@pytest.mark.parametrize("name", RECIPES)
def test_chains_continue_bit_for_bit(name, sampler, tmp_path):
    X, _ = runs(6)
    make = partial(HCRPHMM, sampler, "gaussian", RECIPES[name])
    settings = {"n_burnin": 11, "random_state": 3, "thin": 2}
    file = tmp_path / "chain.npz"
    assert_goes_on(partial(make, **settings), lambda hmm: hmm.fit(X), file, 3, 8)
    states = np.full(len(X), -1)
    states[3:9], states[40:44] = 0, 1
    known = make(**SHORT).fit(X, states=states)
    assert len(set(known.labels_[3:9])) == len(set(known.labels_[40:44])) == 1


@pytest.mark.parametrize("name", RECIPES)
def test_partial_fit(name):
    X, _ = runs(8)
    for emission in ("gaussian", "hcrp"):
        data = X if emission == "gaussian" else np.clip(np.round(X), 0, None)
        hmm = HCRPHMM(transitions=RECIPES[name], emission=emission, **SHORT)
        hmm.partial_fit(data[:60]).partial_fit(data[60:])
        assert hmm.draws_.states.shape[2] == len(data)
        np.testing.assert_allclose(
            hmm.dwell_times_, 1 / (1 - np.diag(hmm.transmat_)[:-1]), rtol=1e-9
        )
        if name == "sampled":
            assert np.ptp(hmm.draws_.stay_prior) > 0


def test_records_of_another_model_are_refused():
    sticky, plain = MODEL.state(0), CoinModel(MODEL.y, MODEL.emission, MODEL.starts).state(0)
    arrays = sticky.to_arrays()
    plain_state = ChainState(np.array(MODEL.starts), Franchise(), MODEL.stats(), RandomStream(0))
    with pytest.raises(ValueError, match="another recipe"):
        plain_state.from_arrays(arrays)
    for change, message in (
        ({"stayed": 1 - arrays["stayed"]}, "no stay|stays"),
        ({"stayed": arrays["stayed"][1:]}, "flags of stays"),
        ({"stayed": 2 * arrays["stayed"] + 2}, "stayed: an entry"),
        ({"transitions": arrays["transitions"] | {"stays": np.array([9])}}, "stays"),
        ({"transitions": arrays["transitions"] | {"stay_prior": np.ones(3)}}, "shape 2"),
    ):
        with pytest.raises(ValueError, match=message):
            plain.from_arrays(arrays | change)
    plain.from_arrays(arrays)
    assert plain.check() is None
    assert plain.transitions.hyperparameters["stay_prior"].tolist() == [3.0, 0.7]


# -- what it is for -------------------------------------------------------------------


def test_fewer_segments_than_the_plain_model():
    X, states = runs(20, 20, seed=1)
    X[:, 0] += np.random.default_rng(1).standard_normal(len(X))
    n_segments = {}
    for name in ("hcrp", "sticky"):
        hmm = HCRPHMM(emission="gaussian", transitions=name, **SHORT)
        hmm.set_params(n_burnin=150, n_draws=50, init="kmeans")
        draws = hmm.fit(X).draws_
        n_segments[name] = np.mean(np.count_nonzero(np.diff(draws.states), axis=2)) + 1
    truth = np.count_nonzero(np.diff(states)) + 1
    assert n_segments["sticky"] < 1.5 * truth < n_segments["hcrp"]


def test_a_penalty_alone_has_the_dwell_time_of_sticky():
    X, _ = runs(6)
    fits = [
        HCRPHMM(transitions=recipe, emission="gaussian", **SHORT).fit(X)
        for recipe in (
            HCRPTransitions(switch_penalty=4.0),
            "persistent",
            HCRPTransitions(switch_penalty=0.0, expected_dwell=10),
            "sticky",
        )
    ]
    assert_equal_fits(*fits[:2])
    assert_equal_fits(*fits[2:])
    # Draws of the density with the penalty have another log joint probability.
    assert not np.array_equal(fits[0].draws_.lp, fits[2].draws_.lp)


def test_auto_is_persistent_where_states_last():
    X, _ = runs(6)
    auto = HCRPHMM(emission="autoregressive", **SHORT).fit(X)
    assert auto.transitions_.get_params() == {
        **HCRPTransitions().get_params(),
        "expected_dwell": 10,
        "switch_penalty": 4.0,
    }
    assert HCRPHMM(emission="gaussian", **SHORT).fit(X).transitions_.switch_penalty == 0
    # Parameters of "auto" are those of its choice for the emission, in one call too.
    model = HCRPHMM().set_params(transitions__gamma=2.0, emission="autoregressive")
    assert (model.transitions.switch_penalty, model.transitions.gamma) == (4.0, 2.0)
    assert HCRPHMM().set_params(transitions__gamma=2.0).transitions.switch_penalty == 0
    with pytest.raises(TypeError, match='or transitions="hcrp"'):
        HCRPHMM("direct_assignment", "autoregressive", **SHORT).fit(X)


@pytest.mark.parametrize("sampler", ["auto", "stepwise", "blocked"])
def test_a_penalty_keeps_states_of_another_shape_from_alternating(sampler):
    """Two regimes of 40 steps, noise of t with four degrees of freedom."""
    rng = np.random.default_rng(0)
    states = np.repeat(np.arange(40) % 2, 40)
    X = 4.0 * states[:, None] + rng.standard_t(4, (len(states), 1))
    hmm = HCRPHMM(sampler, "gaussian", "persistent", n_burnin=200, n_draws=20)
    # (A chain may end with a state of one tail: of nine seeds of three samplers the index
    # is .74 to .89 in five, .92 to .98 in the others.)
    hmm.set_params(random_state=5).fit(X)
    assert np.mean(hmm.draws_.n_states) < 3.5
    n_segments = 1 + np.count_nonzero(np.diff(hmm.labels_))
    assert abs(n_segments - 40) <= 4
    assert adjusted_rand_score(states, hmm.labels_) > 0.9
    # The model after the fit has no penalty: its dwell times are those of the segments.
    share = np.bincount(hmm.labels_, minlength=hmm.n_states_) / len(states)
    assert 20 < share @ hmm.dwell_times_ < 80


def test_summed_lp_counts_the_stays():
    hmm = HCRPHMM(transitions=RECIPES["fixed"], **SHORT).fit([[0]] * 6)
    for d in range(4):
        draw = hmm.draws_[0, d]
        if draw.n_states > 1:
            continue
        record = draw.transitions
        n_draws = record["n_customers"][record["rows"] == 0].sum()
        tables = record["sizes"]
        assert record["stays"].sum() + n_draws == 5
        assert draw.summed_lp >= draw.lp + math.log(math.comb(5, int(n_draws))) - 1e-9
        assert tables.sum() == n_draws + 1
