"""The most probable path without short stays, against all paths."""

from __future__ import annotations

import numpy as np
import pytest
from reference.lasting_paths import N_STEPS, all_paths, check_paths

from skihmm import HCRPHMM
from skihmm._using.fitted import fitted_of
from skihmm.core._messages import FrozenModel
from skihmm.transitions import HCRPTransitions


def log_probs_of(paths, model, starts):
    """Log probability of every path and the data, by the model's own matrices of every step."""
    terms = model.emission_terms()
    logs = terms[np.arange(N_STEPS), paths].sum(axis=1)
    for t in range(N_STEPS):
        startprob, transmat = model.transition_matrix(t)
        if t in starts:
            logs += np.log(startprob)[paths[:, t]]
        else:
            logs += np.log(transmat)[paths[:, t - 1], paths[:, t]]
    return logs


def make_levels(n, rng):
    states = np.cumsum(rng.random(n) < 0.15) % 2
    return states, (3.0 * states + rng.normal(size=n))[:, None]


KINDS = {
    "sticky": ("sticky", 0),
    "persistent": ("persistent", 0),
    "inputs of staying": (HCRPTransitions(expected_dwell=10, input_features=[1]), 1),
    "contexts": (HCRPTransitions(expected_dwell=10, context_features=[1]), 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_paths_of_fits_against_all_paths(kind):
    transitions, n_given = KINDS[kind]
    rng = np.random.default_rng(0)
    states, X = make_levels(200, rng)
    given = rng.integers(2, size=(208, n_given)).astype(float)
    hmm = HCRPHMM(
        emission="gaussian", transitions=transitions, n_burnin=20, n_draws=2, random_state=0
    )
    known = np.where(rng.random(200) < 0.2, states, -1)
    hmm.fit(np.hstack([X, given[:200]]), states=known)
    assert hmm.n_states_ <= 4
    n_others = 0
    for lengths in ([N_STEPS], [6, 2], [N_STEPS], [2, 6]):
        new = rng.choice([-1.0, 1.5, 4.0], size=(N_STEPS, 1)) + rng.normal(size=(N_STEPS, 1))
        new[4] = np.nan
        X_new = np.hstack([new, given[200:]])
        starts = np.cumsum([0, *lengths[:-1]])
        fitted = fitted_of(hmm)
        model = fitted.model(fitted.encode(X_new, lengths=lengths))
        paths = all_paths(model.n_states + 1)
        logs = log_probs_of(paths, model, starts)
        n_others += check_paths(model, paths, logs, starts)
        expected = model.viterbi(3)
        log_prob, path = hmm.decode(X_new, lengths=lengths, min_dwell=3)
        assert log_prob == expected[0]
        np.testing.assert_array_equal(path, expected[1])
        predicted = hmm.predict(X_new, lengths=lengths, min_dwell=3)
        np.testing.assert_array_equal(predicted, expected[1])
        segments = hmm.segments(X_new, lengths=lengths, min_dwell=3)
        np.testing.assert_array_equal(np.repeat(segments.state, segments.n_steps), expected[1])
    assert n_others > 0


@pytest.fixture(scope="module")
def fitted():
    X = make_levels(400, np.random.default_rng(3))[1]
    hmm = HCRPHMM(emission="gaussian", transitions="sticky", n_burnin=40, n_draws=5, random_state=0)
    return hmm.fit(X), X


def test_segments_of_the_training_steps_are_read_without_short_stays(fitted):
    hmm, X = fitted
    segments = hmm.segments(min_dwell=12)
    np.testing.assert_array_equal(segments.n_steps, hmm.segments(X, min_dwell=12).n_steps)
    assert segments.n_steps[1:-1].min() >= 12
    assert hmm.segments().n_steps[1:-1].min() < 12
    changes = np.diff(hmm.predict(X, min_dwell=1000)) != 0
    assert changes.sum() <= 1  # between two stays that are cut


def test_impossible_rows_do_not_take_the_digits_of_others(fitted):
    hmm, X = fitted
    rows = X[:60].copy()
    expected = hmm.predict(rows, min_dwell=6)
    rows[0] = 1e90
    np.testing.assert_array_equal(hmm.predict(rows, min_dwell=6)[6:], expected[6:])


def test_paths_of_long_data_are_those_of_a_slow_recursion(fitted):
    hmm = fitted[0]
    model = fitted_of(hmm).model(fitted_of(hmm).sequences)
    assert isinstance(model, FrozenModel)
    startprob, transmat = model.transition_matrix()
    logs, moves = model.emission_terms(), np.log(transmat)
    for least in (2, 5, 11, 12, 400, 401):
        # best[t][k, a]: age a of the stay, counted to `least`; the first stay has it at once.
        best = np.full((len(startprob), least), -np.inf)
        best[:, -1] = np.log(startprob) + logs[0]
        for row in logs[1:]:
            old, enter = best, best[:, -1][:, None] + moves
            np.fill_diagonal(enter, -np.inf)
            stay = np.diag(moves) + row
            best = np.full_like(old, -np.inf)
            best[:, 1:] = old[:, :-1] + stay[:, None]
            best[:, -1] = np.maximum(best[:, -1], old[:, -1] + stay)
            best[:, 0] = enter.max(axis=0) + row
        assert model.viterbi(least)[0] == pytest.approx(best.max(), rel=1e-12)


def test_what_short_stays_are_not_read_from(fitted):
    hmm, X = fitted
    for call in (hmm.predict, hmm.decode, hmm.segments):
        with pytest.raises(ValueError, match="min_dwell=0; expected an integer >= 1"):
            call(X, min_dwell=0)
        with pytest.raises(TypeError, match=r"min_dwell=2\.5 is not an integer"):
            call(X, min_dwell=2.5)
    with pytest.raises(ValueError, match=r'min_dwell=3 with method="smooth".*viterbi'):
        hmm.predict(X, method="smooth", min_dwell=3)
    with pytest.raises(ValueError, match="min_dwell=3 with states"):
        hmm.segments(X, states=hmm.labels_, min_dwell=3)
