"""Subjects that were not in the fit: evidence, offsets, predictions, samples."""

from __future__ import annotations

import signal
import threading
from functools import partial

import numpy as np
import pytest
from errors import CONJUGATE, OFFSET_PARTICLES, assert_noticed
from fitting.test_reproducibility import assert_goes_on
from scipy.special import logsumexp
from scipy.stats import kstest, norm
from scipy.stats import t as t_law
from sklearn.metrics import adjusted_rand_score

from skihmm import HCRPHMM, OnlineFilter
from skihmm._data.sequences import Sequences
from skihmm._using import new_subjects as _new_subjects
from skihmm._using.decoding import frozen_model
from skihmm._using.new_subjects import NewSubjects
from skihmm.core._random import RandomStream
from skihmm.emissions import (
    AutoregressiveNormal,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.emissions._subjects import without_subjects
from skihmm.metrics import ParticleFilterScorer
from skihmm.transitions import HCRPTransitions


def simulate(n_subjects, n_rows, n_columns=1, *, seed=0, rho=0.0, scale=0.0, dof=None):
    """Rows of three states with offsets of subjects, names of these, groups, states."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal if dof is None else partial(rng.standard_t, dof)
    # All differences differ: others would leave offsets of few states uncertain.
    levels = np.array([[0.0, 0.0], [3.0, 4.0], [7.5, 1.0]])[:, :n_columns]
    offsets = rng.normal(0, 2, (n_subjects, n_columns))
    scales = np.exp(rng.normal(0, scale, (n_subjects, n_columns)))
    X, states = np.empty((n_subjects, n_rows, n_columns)), []
    for u in range(n_subjects):
        before, z = np.zeros(n_columns), rng.integers(3)
        for t in range(n_rows):
            z = rng.integers(3) if rng.random() < 0.1 else z
            before = rho * before + (1 - rho) * levels[z] + 0.6 * noise(n_columns)
            X[u, t] = offsets[u] + scales[u] * before
            states.append(z)
    groups = np.repeat(np.arange(n_subjects), n_rows)
    names = np.array([f"p{u}" for u in groups], dtype=object)
    table = np.column_stack([X.reshape(-1, n_columns).astype(object), names])
    return table, groups, np.array(states)


def fit(emission, n_subjects=5, n_rows=100, n_columns=1, random_state=0, **options):
    X, groups, _ = simulate(n_subjects, n_rows, n_columns, **options)
    hmm = HCRPHMM(emission=emission, transitions="persistent", n_burnin=60, n_draws=4)
    return hmm.set_params(random_state=random_state).fit(X, groups=groups)


def recipe(kind, n_columns=1):
    if kind == "autoregressive":
        return AutoregressiveNormal(1, subject_feature=n_columns)
    if kind == "student":
        return AutoregressiveNormal(1, noise="student", subject_feature=n_columns)
    return NormalInverseGamma(subject_feature=n_columns)


# ---- evidence


def log_densities(hmm, draw, codes, grid, stream):
    """log p(row | state, offset), shape (n_rows, n_offsets, n_states + 1)."""
    emission = hmm.emission_
    drawn = emission.with_states(draw.emission, draw.n_states, stream)
    shifted = np.repeat(codes[:, None, :-1], len(grid), axis=1) - grid[:, None]
    y = shifted[..., :1] + emission.offset_
    deviation = np.sqrt(drawn.covariances_.reshape(draw.n_states))
    if hasattr(drawn, "means_"):
        means, dof = drawn.means_[:, 0], np.inf
    else:
        lag = shifted[..., 1:2] + emission.offset_
        means = drawn.intercepts_[:, 0] + lag * drawn.coefficients_[:, 0, 0]
        dof = emission.hyperparameters(draw.emission).get("noise_dof", np.inf)
    logs = t_law.logpdf(y, dof, means, deviation)
    # Rows of the plain emission in a new state.
    rows = np.insert(shifted, shifted.shape[-1], -1, axis=-1).reshape(-1, codes.shape[1])
    plain, rows = without_subjects(emission, rows, draw.emission)
    starts = np.arange(len(rows))
    model = frozen_model(draw, Sequences(rows, starts), plain)
    one = np.zeros((len(rows), draw.n_states + 1))
    one[:, -1] = 1.0
    new = model.log_mixtures(one).reshape(*y.shape)
    return np.nan_to_num(np.concatenate([logs, new], axis=2))


def evidence(hmm, draw, codes, stream):
    """log p(rows) by quadrature over the offset, and its mean given the rows."""
    variance = draw.emission["subjects"][0] * (1 + 1 / len(hmm.emission_.subjects_))
    grid = np.linspace(-6, 6, 301 if len(codes) < 10 else 1801) * np.sqrt(variance)
    logs = log_densities(hmm, draw, codes, grid, stream)
    first = Sequences(codes[:1], np.zeros(1, dtype=np.intp))
    start, transitions = frozen_model(draw, first, hmm.emission_).transition_matrix()
    message, total = start, norm.logpdf(grid, 0, np.sqrt(variance))
    for t, row in enumerate(logs):
        joint = (message if t == 0 else message @ transitions) * np.exp(row)
        message = joint / joint.sum(axis=1, keepdims=True)
        total = total + np.log(joint.sum(axis=1))
    lp = logsumexp(total)
    return lp + np.log(grid[1] - grid[0]), np.exp(total - lp) @ grid


def assert_unbiased(kind, n_rows, n, n_particles=100, far=0.0, dof=None, random_state=0):
    """Estimates of the evidence, of which a row may be far from all states."""
    rho = 0.0 if kind == "gaussian" else 0.6
    hmm = fit(recipe(kind), rho=rho, dof=dof, random_state=random_state)
    draw = hmm.draws_[0, -1]
    X, groups, _ = simulate(2, n_rows, seed=1, rho=rho)
    X[3, 0] = np.nan
    X[1 - n_rows, 0] += far
    sequences = hmm._fitted.encode(X[groups == 1], lengths=[n_rows])
    sequences.codes[:, -1] = -1
    new = NewSubjects.find(sequences, hmm.emission_)
    ratios = np.empty(n)
    for i in range(n):
        one, other = (RandomStream(np.random.SeedSequence(i)) for _ in range(2))
        found = new.follow(draw.arrays, hmm.emission_, n_particles, one)[0].sum()
        log_p, _ = evidence(hmm, draw, new.sequences.codes, other)
        ratios[i] = np.exp(found - log_p)
    assert abs(ratios.mean() - 1) < 3 * ratios.std() / np.sqrt(n)
    assert ratios.std() < 1


# Heavy tails and a row that a new state explains, before the offset is known.
FAR = ("student", 3, 60, 100, 20.0, 1.5)
EVIDENCES = [
    ("gaussian", 5, 60),
    ("gaussian", 300, 20),
    ("autoregressive", 5, 60),
    ("autoregressive", 300, 20, 1000, 0.0, None, 2),
    ("student", 5, 60, 400),
    FAR,
]


@pytest.mark.statistical
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.slow] * (c[2:4] == (20, 1000))) for c in EVIDENCES],
    ids=lambda case: f"{case[0]} {case[1]}" + " far" * (case is FAR),
)
def test_estimates_of_the_evidence_are_unbiased(case):
    assert_unbiased(*case)


def test_new_subjects_without_rows_have_their_prior():
    hmm = fit(recipe("gaussian"), n_subjects=3)
    X = np.full((4000, 2), None)
    X[:, 0] = np.nan
    sequences = hmm._fitted.encode(X, groups=np.arange(len(X)))
    new, draw = NewSubjects.find(sequences, hmm.emission_), hmm.draws_[0, -1]
    stream = RandomStream(np.random.SeedSequence(0))
    record = new.added_to(draw.arrays, hmm.emission_, 2, stream)
    offsets = record["subjects"][2 + 3 :]
    variance = draw.emission["subjects"][0] * (1 + 1 / 3)
    assert abs(offsets.var() / variance - 1) < 4 * np.sqrt(2 / 4000)
    assert offsets_of(draw).tolist() == record["subjects"][2 : 2 + 3].tolist()


BETWEEN = (0.0, 1.0)


def assert_means_of_offsets(n=1000):
    """Two rows between states: the second one is less probable after one path."""
    hmm = fit(recipe("gaussian"))
    draw, levels = hmm.draws_[0, -1], np.sort(hmm.emission_.means_[:, 0])
    X = np.full((2 * n, 2), None)
    X[:, 0] = np.tile(levels[:2].mean() + np.array(BETWEEN), n)
    sequences = hmm._fitted.encode(X, groups=np.arange(2 * n) // 2)
    new = NewSubjects.find(sequences, hmm.emission_)
    one, other = (RandomStream(np.random.SeedSequence(0)) for _ in range(2))
    found = new.follow(draw.arrays, hmm.emission_, 40, one)[1]
    _, mean = evidence(hmm, draw, new.sequences.codes[:2], other)
    assert abs(found.mean() - mean) < 4 * found.std() / np.sqrt(n)


@pytest.mark.statistical
def test_offsets_are_those_of_particles_by_weight():
    assert_means_of_offsets()


# ---- much work


class StoppedError(Exception):
    """What the handler of a signal raises."""


def much_work(n_rows):
    """A call that follows few rows by very many particles, each with its own weights."""
    hmm = fit(recipe("student"))
    X, _, _ = simulate(1, n_rows)
    X[:, 1] = None
    new = NewSubjects.find(hmm._fitted.encode(X), hmm.emission_)
    arrays, stream = hmm.draws_[0, -1].arrays, RandomStream(np.random.SeedSequence(0))
    return partial(new.follow, arrays, hmm.emission_, 20_000, stream)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="POSIX has such timers")
def test_signals_are_looked_at_by_work_not_by_rows():
    def stop(*_):
        raise StoppedError

    follow = much_work(200)
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(StoppedError):
            follow()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_beside_particles():
    follow, done, ticks = much_work(10), threading.Event(), []

    def tick():
        while not done.wait(0.001):
            ticks.append(None)

    other = threading.Thread(target=tick)
    other.start()
    try:
        n_before = len(ticks)
        follow()
        assert len(ticks) > n_before + 1
    finally:
        done.set()
        other.join()


# ---- planted errors

CAUGHT = {
    "precision as before, by column": (assert_unbiased, "gaussian", 5, 20),
    "precision as before": (assert_unbiased, "student", 5, 60, 400, 0.0, 3.0),
    "lags as they are": (assert_unbiased, "autoregressive", 5, 20),
    "variance of a subject of the fit": (assert_unbiased, "gaussian", 5, 20),
    "offset of any particle": (assert_means_of_offsets,),
    "a new state without its weight": (assert_unbiased, *FAR),
}


@pytest.mark.statistical
@pytest.mark.parametrize("error", CAUGHT)
def test_planted_errors_are_noticed(monkeypatch, error):
    places = [(_new_subjects, "follow_new_subjects")]
    assert_noticed(monkeypatch, CONJUGATE, error, places, *CAUGHT[error])


def test_every_planted_error_has_a_check():
    assert CAUGHT.keys() == OFFSET_PARTICLES.keys()


# ---- predictions


@pytest.mark.parametrize(
    ("emission", "scale", "seed"),
    [
        (NormalInverseWishart(subject_feature=2), 0.0, 0),
        (NormalInverseGamma(subject_feature=2, subject_scale=True), 0.15, 3),
    ],
)
def test_labels_of_new_subjects_are_as_good(emission, scale, seed):
    X, groups, states = simulate(20, 200, 2, scale=scale, seed=seed)
    is_old = groups < 10
    hmm = HCRPHMM(emission=emission, transitions="persistent", n_burnin=60, n_draws=4)
    hmm.set_params(random_state=0).fit(X[is_old], groups=groups[is_old])
    known, new = (
        adjusted_rand_score(states[rows], hmm.predict(X[rows], groups=groups[rows]))
        for rows in (is_old, ~is_old)
    )
    assert known > 0.9
    assert new > known - 0.03
    probs = hmm.predict_proba(X[~is_old], groups=groups[~is_old], draws="all")
    assert adjusted_rand_score(states[~is_old], probs.argmax(axis=1)) > known - 0.03
    # Missing entries are filled with the offset of their subject.
    lost = X.copy()
    lost[::5, 0] = np.nan
    errors = []
    for rows in (is_old, ~is_old):
        filled = hmm.impute(lost[rows], groups=groups[rows])[:, 0].astype(float)
        errors.append(np.abs(filled - X[rows, 0].astype(float)).mean())
    assert errors[1] < 1.2 * errors[0]
    residuals = hmm.residuals(X[~is_old], groups=groups[~is_old], max_draws=2)
    assert 0.9 < residuals.std() < 1.1


def mixed(table, states):
    """Two columns with offsets, and one of symbols."""
    symbols = np.where(np.random.default_rng(0).random(len(table)) < 0.6, states, 0)
    return np.column_stack([table[:, :2], symbols, table[:, 2]])


MIXED = ProductEmission(
    [("numbers", NormalInverseWishart(subject_feature=3), [0, 1]), ("symbol", "dirichlet", [2])]
)


@pytest.mark.parametrize(
    ("emission", "rho"),
    [
        (NormalInverseGamma(subject_feature=2), 0.0),
        (NormalInverseWishart(subject_feature=2), 0.0),
        (AutoregressiveNormal(1, subject_feature=2), 0.5),
        (AutoregressiveNormal(0, noise="student", subject_feature=2), 0.0),
        (MIXED, 0.0),
    ],
)
def test_residuals_of_new_subjects_are_normal_from_the_first_row_on(emission, rho):
    """Whether a subject has one row or five: the offset is not drawn given the row."""
    X, groups, states = simulate(12, 60, 2, rho=rho)
    X = mixed(X, states) if emission is MIXED else X
    hmm = HCRPHMM(emission=emission, transitions="persistent", n_burnin=40, n_draws=1)
    hmm.set_params(random_state=0).fit(X, groups=groups)
    n = 150
    rows = np.vstack([hmm.sample(5, seed)[0] for seed in range(n)])
    rows[:, -1] = np.repeat([f"new {u}" for u in range(n)], 5)
    residuals = hmm.residuals(rows, groups=np.repeat(np.arange(n), 5))
    by_row = residuals.reshape(n, 5, -1)
    # (An autoregression says nothing of the first row, and learns nothing from it.)
    is_unknown = np.isnan(by_row)
    assert is_unknown[:, 0].all() if rho else not is_unknown.any()
    known = by_row[:, 1:] if rho else by_row
    later = known[:, 1:].reshape(-1, known.shape[2])
    for part in known[:, 0], later:
        assert min(kstest(column, "norm").pvalue for column in part.T) > 1e-3
    assert (abs(known.std(axis=0) - 1) < 4 / np.sqrt(2 * n)).all()
    lagged = (by_row[:, 1:-1] * by_row[:, 2:]).mean(axis=(0, 1)) * np.sqrt(3 * n)
    assert (abs(lagged) < 4).all()
    alone = hmm.residuals(rows[::5], groups=np.arange(n))
    if rho:
        assert np.isnan(alone).all()
    else:
        assert (abs(alone.std(axis=0) - 1) < 4 / np.sqrt(2 * n)).all()


def test_names_make_subjects():
    hmm = fit(recipe("gaussian"))
    X, groups, _ = simulate(7, 40)
    X, groups = X[groups >= 4], groups[groups >= 4]
    # p4 was in the fit; p5 and p6 were not.
    alone = hmm.score_samples(X[groups == 4])
    log_probs = hmm.score_samples(X, groups=groups)
    np.testing.assert_allclose(log_probs[groups == 4], alone)
    path = hmm.predict(X[groups == 4])
    np.testing.assert_array_equal(hmm.predict(X, groups=groups)[groups == 4], path)
    np.testing.assert_array_equal(hmm.predict(X, groups=groups), hmm.predict(X, groups=groups))
    # Without a name every sequence is a subject of its own, as with two names.
    unnamed = X.copy()
    unnamed[groups > 4, 1] = None
    np.testing.assert_array_equal(hmm.score_samples(unnamed, groups=groups), log_probs)
    # With one name the second sequence begins with what the first one says.
    same = X.copy()
    same[groups == 6] = X[groups == 5]
    both = hmm.score_samples(same, groups=groups)
    assert both[groups == 6][:5].sum() > both[groups == 5][:5].sum() + 1
    with pytest.raises(ValueError, match="one per sequence"):
        hmm.predict(X)


def test_adaptive_scores_are_of_known_subjects():
    emission = NormalInverseGamma(subject_feature=1, subject_scale=True)
    hmm = fit(emission, scale=0.3)
    X, groups, _ = simulate(5, 100, scale=0.3)
    scorer = ParticleFilterScorer(adaptive=True, n_particles=50)
    frozen = hmm.score(X, groups=groups)
    assert abs(scorer(hmm, X, groups=groups) - frozen) < 0.03
    X[groups == 2, 1] = "somebody"
    with pytest.raises(ValueError, match="adaptive=False"):
        scorer(hmm, X, groups=groups)


@pytest.mark.parametrize("kind", ["gaussian", "autoregressive"])
def test_coming_steps_have_the_subject_of_the_last_row(kind):
    hmm = fit(recipe(kind), n_rows=200)
    X, groups, _ = simulate(5, 200)
    for u in range(5):
        rows = X[groups == u].copy()
        known = hmm.predict_next(rows, 10).mean()
        # A new subject, with the same rows two units higher.
        rows[:, 0] += 2.0
        rows[:, 1] = "somebody"
        new = hmm.predict_next(rows, 10).mean()
        assert np.abs(new - known - 2.0).max() < 0.5
    # Samples of two subjects differ by their offsets.
    offsets = hmm.draws_[hmm._fitted.best].emission["subjects"][2:]
    one, two = (hmm.sample(50, 0, subject=f"p{u}")[0][:, 0] for u in range(2))
    np.testing.assert_allclose((two - one).astype(float), offsets[1] - offsets[0])
    X, _ = hmm.sample(5, 1)
    assert X.shape == (5, 2)
    assert X[0, 1] is None
    with pytest.raises(ValueError, match="subjects of the fit"):
        hmm.sample(5, subject="somebody")


def test_new_subjects_have_the_inputs_of_their_rows():
    """Rows of a known subject before them make no difference."""
    rng = np.random.default_rng(0)
    X, groups, _ = simulate(5, 80, seed=3)
    X = np.column_stack([X, rng.normal(size=len(X))])
    transitions = HCRPTransitions(input_features=[2])
    hmm = HCRPHMM(emission=NormalInverseGamma(subject_feature=1), transitions=transitions)
    hmm.set_params(n_burnin=20, n_draws=2, random_state=0)
    hmm.fit(X[:320], groups=groups[:320])
    rows = slice(240, 400)
    scores = hmm.score_samples(X[rows], groups=groups[rows])
    np.testing.assert_allclose(scores[80:], hmm.score_samples(X[320:]), rtol=1e-9)


def test_live_rows_are_of_known_subjects():
    hmm = fit(recipe("autoregressive"))
    X, groups, _ = simulate(6, 30, seed=3)
    live = OnlineFilter(hmm)
    rows = X[groups == 2]
    found = np.vstack([live.update(row[None]).probs for row in rows])
    np.testing.assert_allclose(found, hmm.predict_proba(rows, method="filter"), atol=1e-9)
    with pytest.raises(ValueError, match="not in the fit"):
        live.update(X[groups == 5][:1])


def test_products_have_new_subjects():
    X, groups, states = simulate(9, 100, 2)
    symbol = np.where(np.random.default_rng(0).random(len(X)) < 0.8, states, 0)
    X = np.column_stack([X[:, :2], symbol, X[:, 2]])
    emission = ProductEmission(
        [
            ("one", NormalInverseGamma(subject_feature=3), [0]),
            ("symbol", "dirichlet", [2]),
            ("two", AutoregressiveNormal(1, subject_feature=3), [1]),
        ]
    )
    hmm = HCRPHMM(emission=emission, transitions="persistent", n_burnin=60, n_draws=4)
    is_old = groups < 6
    hmm.set_params(random_state=0).fit(X[is_old], groups=groups[is_old])
    rows, of_new = X[~is_old], groups[~is_old]
    assert adjusted_rand_score(states[~is_old], hmm.predict(rows, groups=of_new)) > 0.9
    known, new = hmm.score(X[is_old], groups=groups[is_old]), hmm.score(rows, groups=of_new)
    assert abs(new - known) < 0.3
    assert hmm.sample(3, 0, subject="p1")[0].shape == (3, 4)


def test_partial_rows_tell_offsets():
    # Every row lacks a column, so that no registration finds them.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), 60)
    truth = np.array([[4.0, -3.0], [-4.0, 1.0], [2.0, 3.0], [-2.0, -1.0]])
    X = truth[groups] + rng.normal(0, 0.5, (240, 2))
    X[np.arange(240), np.arange(240) % 2] = np.nan
    table = np.column_stack([X.astype(object), groups])
    hmm = HCRPHMM(emission=NormalInverseGamma(subject_feature=2), n_burnin=100, n_draws=4)
    states = np.zeros(len(table), dtype=int)
    hmm.set_params(random_state=0).fit(table, groups=groups, states=states)
    np.testing.assert_allclose(hmm.emission_.subject_offsets_, truth, atol=0.5)
    # Those of a new subject likewise.
    new = table[groups == 0].copy()
    new[:, 2], new[:, :2] = 9, new[:, :2] + 1.0
    mean = hmm.predict_next(new).mean() - hmm.predict_next(table[groups == 0]).mean()
    np.testing.assert_allclose(mean, 1.0, atol=0.5)


# ---- further fits


def offsets_of(draw):
    return draw.emission["subjects"][2:]


def test_partial_fits_add_subjects():
    X, groups, states = simulate(8, 100, seed=2)
    hmm = HCRPHMM(emission=recipe("gaussian"), transitions="persistent", n_burnin=60)
    hmm.set_params(n_draws=4, random_state=0)
    hmm.fit(X[groups < 5], groups=groups[groups < 5])
    added = groups >= 4  # one that is known, three new ones
    hmm.set_params(n_burnin=20).partial_fit(X[added], groups=groups[added])
    assert hmm.emission_.subjects_ == tuple(f"p{u}" for u in range(8))
    every = np.concatenate([states[groups < 5], states[added]])
    assert adjusted_rand_score(every, hmm.labels_) > 0.9
    for d in range(4):
        offsets = offsets_of(hmm.draws_[0, d])
        assert len(offsets) == 8
        assert abs(offsets.sum()) < 1e-9


def test_further_fits_continue_subjects(tmp_path):
    X, groups, _ = simulate(5, 60)
    make = partial(HCRPHMM, emission=recipe("gaussian"), n_burnin=20, random_state=0)
    file = tmp_path / "chain.npz"
    assert_goes_on(make, lambda hmm: hmm.fit(X, groups=groups), file, 4, 8)
