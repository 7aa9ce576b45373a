"""Models that grow: rows that go on with sequences, and numbers of states that stay."""

from __future__ import annotations

import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from reference.enumeration import DirichletEmission, Posterior, canonical

from skihmm import HCRPHMM, OnlineFilter
from skihmm._data.growing import Rows
from skihmm._using.decoding import frozen_model
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    DirichletCategorical,
    HCRPCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 5, "n_draws": 3, "thin": 2, "random_state": 0}
RNG = np.random.default_rng(74)
# Sequences 0, 1 and 2 begin in the first call; 2 and 0 go on in the second one, and 3 begins.
LENGTHS = [40, 25, 30, 20]
WHO = np.repeat(np.arange(4), LENGTHS)
FIRST = np.concatenate(
    [np.arange(n) < cut for n, cut in zip(LENGTHS, [20, 25, 15, 0], strict=True)]
)
STATES = np.repeat(RNG.integers(3, size=23), 5)
NUMBERS = 3.0 * STATES + RNG.normal(size=115)
WALKS = np.cumsum(0.3 * (STATES - 1) + 0.3 * RNG.normal(size=115))
BITS, INPUTS = RNG.integers(2, size=115), RNG.normal(size=115)


def _with_gaps(values, share=0.1):
    return np.where(RNG.random(len(values)) < share, np.nan, values)


# Data, and a recipe.
KINDS = {
    "gaussian": (_with_gaps(NUMBERS)[:, None], {"emission": "gaussian"}),
    "lags": (WALKS[:, None], {"emission": AutoregressiveNormal(order=2)}),
    "lags over gaps": (_with_gaps(WALKS)[:, None], {"emission": AutoregressiveNormal(order=2)}),
    "counts": (np.rint(np.abs(NUMBERS))[:, None], {"emission": "negative_binomial"}),
    "symbols": (STATES[:, None], {}),
    "rounded": (np.rint(NUMBERS)[:, None], {"emission": "gaussian"}),
    "product": (
        np.column_stack([NUMBERS, STATES]),
        {"emission": ProductEmission([("a", "gaussian", [0]), ("b", "hcrp", [1])])},
    ),
    "contexts": (
        np.column_stack([NUMBERS, _with_gaps(BITS)]),
        {"emission": "gaussian", "transitions": HCRPTransitions(context_features=[1])},
    ),
    "contexts above": (
        np.column_stack([NUMBERS, _with_gaps(BITS), BITS[::-1]]),
        {
            "emission": "gaussian",
            "transitions": HCRPTransitions(
                context_features=[1, 2], context_order="context", expected_dwell=5
            ),
        },
    ),
    "contexts of symbols": (
        np.column_stack([STATES, BITS]),
        {"emission": HCRPCategorical(context_features=[1])},
    ),
    "inputs": (
        np.column_stack([WALKS, INPUTS]),
        {"emission": AutoregressiveNormal(order=1, input_features=[1])},
    ),
    "logistic": (np.column_stack([BITS, INPUTS]), {"emission": BernoulliRegression([1])}),
    "inputs of staying": (
        np.column_stack([NUMBERS, INPUTS]),
        {
            "emission": "gaussian",
            "transitions": HCRPTransitions(input_features=[1], expected_dwell=5),
        },
    ),
    "subjects": (
        np.column_stack([NUMBERS + WHO, WHO]),
        {"emission": NormalInverseGamma(subject_feature=1)},
    ),
    "sticky": (NUMBERS[:, None], {"emission": "gaussian", "transitions": "sticky"}),
    "persistent": (NUMBERS[:, None], {"emission": "gaussian", "transitions": "persistent"}),
    "known states": (NUMBERS[:, None], {"emission": "gaussian"}),
}
KNOWN = np.where(RNG.random(115) < 0.3, STATES + 4, -1)
ORDER = np.array([2, 0, 3])


def second_call(values):
    """Rows of the second call: sequence 2, then 0, then 3."""
    return np.concatenate([values[~FIRST & (u == WHO)] for u in ORDER])


@pytest.fixture(autouse=True)
def _no_notes():
    """Small data are warned of, which is not what is tested here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?!The index)")
        yield


def fit_of(kind, rows=slice(None), **params):
    X, recipe = KINDS[kind]
    states = {"states": KNOWN[rows]} if kind == "known states" else {}
    return HCRPHMM(**{**SHORT, **recipe, **params}).fit(X[rows], groups=WHO[rows], **states)


def add_to(hmm, kind):
    states = {"states": second_call(KNOWN)} if kind == "known states" else {}
    return hmm.partial_fit(second_call(KINDS[kind][0]), groups=second_call(WHO), **states)


def assert_same_data(one, other):
    np.testing.assert_array_equal(one.starts, other.starts)
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.known_labels, other.known_labels)
    assert (one.known_states is None) == (other.known_states is None)
    if one.known_states is not None:
        np.testing.assert_array_equal(one.known_states, other.known_states)
    assert (one.contexts is None) == (other.contexts is None)
    if one.contexts is not None:
        np.testing.assert_array_equal(one.contexts.depths, other.contexts.depths)
        np.testing.assert_array_equal(one.contexts.prefixes, other.contexts.prefixes)
        if one.contexts.inputs is not None:
            np.testing.assert_array_equal(one.contexts.inputs, other.contexts.inputs)
    assert one.fingerprint == other.fingerprint


# ---- data


@pytest.mark.parametrize("kind", KINDS)
def test_data_are_those_of_one_fit(kind):
    """To the bit, with rows in the middle; also the priors."""
    whole = fit_of(kind)
    grown = add_to(fit_of(kind, FIRST, n_chains=2), kind)
    assert_same_data(grown._fitted.sequences, whole._fitted.sequences)
    for one, other in zip(grown.emission_.parts, whole.emission_.parts, strict=True):
        for name in ("offset_", "resolution_", "_units", "categories_", "input_means_"):
            if hasattr(one.emission, name):
                np.testing.assert_equal(getattr(one.emission, name), getattr(other.emission, name))
    assert grown.draws_.states.shape == (2, 3, 115)
    assert np.isfinite(grown.score(KINDS[kind][0], groups=WHO))
    if kind == "known states":
        known = KNOWN >= 0
        labels = grown.known_states_[grown.labels_[known]]
        np.testing.assert_array_equal(labels, KNOWN[known])


@pytest.mark.parametrize("kind", ["lags over gaps", "contexts above", "rounded", "known states"])
def test_a_warm_start_goes_on_with_the_grown_data(kind):
    grown = add_to(fit_of(kind, FIRST), kind)
    states = {"states": KNOWN} if kind == "known states" else {}
    grown.set_params(warm_start=True).fit(KINDS[kind][0], groups=WHO, **states)
    assert grown.draws_.n_draws.tolist() == [6]


def test_rows_without_groups_go_on():
    X = KINDS["lags"][0]
    hmm = HCRPHMM(emission=AutoregressiveNormal(order=2), **SHORT).fit(X[:50])
    hmm.partial_fit(X[50:51]).partial_fit(X[51:])
    whole = HCRPHMM(emission=AutoregressiveNormal(order=2), **SHORT).fit(X)
    assert_same_data(hmm._fitted.sequences, whole._fitted.sequences)
    # As a filter of its rows would.
    live = OnlineFilter(hmm, group=-1).update(X[:5]).probs
    ahead = hmm.predict_proba(np.vstack([X, X[:5]]), method="filter")[-5:]
    np.testing.assert_allclose(live, ahead, atol=1e-9)


def test_lengths_are_new_sequences():
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(NUMBERS[:40, None], lengths=[20, 20])
    hmm.partial_fit(NUMBERS[40:, None], lengths=[40, 35])
    assert hmm._fitted.sequences.starts.tolist() == [0, 20, 40, 80]
    hmm.partial_fit(NUMBERS[:5, None], groups=["a"] * 5).partial_fit(
        NUMBERS[5:9, None], groups=["a"] * 4
    )
    assert hmm._fitted.sequences.starts.tolist() == [0, 20, 40, 80, 115]


def test_ids_of_one_sequence_go_beside_those_of_groups():
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(NUMBERS[:40, None])
    hmm.partial_fit(NUMBERS[40:60, None], groups=np.ones(20))
    assert hmm._fitted.sequences.starts.tolist() == [0, 40]
    # 1 and 1.0 are one id.
    hmm.partial_fit(NUMBERS[60:70, None], groups=np.ones(10, dtype=int))
    assert hmm._fitted.sequences.starts.tolist() == [0, 40]
    with pytest.raises(ValueError, match="neither groups nor lengths"):
        hmm.partial_fit(NUMBERS[60:, None])


def test_known_states_of_rows_are_merged():
    def rows(x, ids, states):
        labels = None if states is None else np.array(states)
        starts = np.flatnonzero(np.diff(ids, prepend=-1))
        return Rows.of_call(None, np.array(x)[:, None], starts, np.array(ids), None, labels)

    one, two = rows([0, 1, 2], [3, 3, 5], [5, -1, 9]), rows([3, 4, 5], [5, 3, 8], [-1, 7, -1])
    grown = one.grown(two)
    assert grown.rows.X[:, 0].tolist() == [0, 1, 4, 2, 3, 5]
    assert grown.rows.starts.tolist() == [0, 3, 5]
    assert grown.rows.ids == (3, 5, 8)
    assert grown.rows.states.tolist() == [5, -1, 7, 9, -1, -1]
    assert grown.are_added.tolist() == [False, False, True, False, True, True]
    assert grown.go_on.tolist() == [True, True, False]
    plain = rows([0], [1], None)
    assert plain.grown(rows([1], [1], None)).rows.states is None
    assert plain.grown(rows([1], [2], [4])).rows.states.tolist() == [-1, 4]


def test_rows_are_copied():
    X = NUMBERS[:60, None].copy()
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(X)
    codes = hmm.set_params(n_draws=1)._fitted.sequences.codes.copy()
    X[:] = 0.0
    hmm.partial_fit(NUMBERS[60:, None])
    whole = HCRPHMM(emission="gaussian", **SHORT).fit(NUMBERS[:, None])
    assert_same_data(hmm._fitted.sequences, whole._fitted.sequences)
    assert len(codes) == 60


@pytest.mark.statistical
def test_the_posterior_is_that_of_the_merged_sequences():
    """Against enumeration, a sequence in three pieces, and rows in the middle."""
    emission = DirichletCategorical(0.5, categories=[[0, 1]], handle_unknown="missing")
    transitions = HCRPTransitions(alpha=2.0, concentration_prior=None)

    def distance(hmm, y, starts):
        exact = Posterior(y, DirichletEmission(2, 0.5), starts, 2.0, 1.0).probabilities
        found = Counter(canonical(path) for path in hmm.draws_.states[0].tolist())
        return 0.5 * sum(abs(found[x] / 10_000 - p) for x, p in exact.items())

    def make():
        return HCRPHMM(emission=emission, transitions=transitions, n_burnin=20, n_draws=10, thin=2)

    hmm = make().set_params(random_state=0)
    hmm.partial_fit([[0], [1], [0]]).partial_fit([[1], [1]])
    hmm.set_params(n_draws=10_000).partial_fit([[0]])
    y = (0, 1, 0, 1, 1, 0)
    # 10,000 independent draws over 203 partitions have 0.035 on average.
    assert distance(hmm, y, (0,)) < 0.07
    assert distance(hmm, y, (0, 3, 5)) > 0.2
    hmm = make().set_params(random_state=0)
    hmm.partial_fit([[0], [1], [1]], groups=[7, 7, 9])
    hmm.set_params(n_draws=10_000).partial_fit([[0], [0], [1]], groups=[9, 7, 8])
    assert distance(hmm, (0, 1, 0, 1, 0, 1), (0, 3, 5)) < 0.07
    assert distance(hmm, (0, 1, 1, 0, 0, 1), (0, 2, 3, 4, 5)) > 0.2


# ---- numbers

PERMUTED = {kind: KINDS[kind] for kind in KINDS if kind != "lags over gaps"}


@pytest.mark.parametrize("kind", PERMUTED)
def test_all_that_has_numbers_moves(kind):
    X = KINDS[kind][0]
    hmm = fit_of(kind, n_burnin=30, n_chains=2)
    n, n_known = hmm.n_states_, len(hmm.known_states_)
    order = np.concatenate([np.arange(n_known), n_known + RNG.permutation(n - n_known)[::-1]])
    number, places = np.argsort(order), np.append(order, n)
    other = pickle.loads(pickle.dumps(hmm)).renumber(number)
    assert other is other.renumber(by=np.arange(n))
    assert other.n_states_ == n
    np.testing.assert_array_equal(other.labels_, number[hmm.labels_])
    np.testing.assert_array_equal(other.draws_[other._fitted.best].states, other.labels_)
    np.testing.assert_array_equal(
        other.predict(X, groups=WHO), np.append(number, n)[hmm.predict(X, groups=WHO)]
    )
    np.testing.assert_array_equal(other.startprob_, hmm.startprob_[places])
    np.testing.assert_array_equal(other.transmat_, hmm.transmat_[np.ix_(places, places)])
    np.testing.assert_allclose(other.dwell_times_, hmm.dwell_times_[order], rtol=1e-12)
    again = frozen_model(other._fitted.selected, other._fitted.sequences, other.emission_)
    np.testing.assert_allclose(again.transition_matrix()[1], other.transmat_, rtol=1e-12)
    for part, moved in zip(hmm.emission_.parts, other.emission_.parts, strict=True):
        for name in part.emission.state_parameters:
            values = getattr(part.emission, name)
            np.testing.assert_array_equal(getattr(moved.emission, name), values[order])
    for method in ("smooth", "filter"):
        np.testing.assert_allclose(
            other.predict_proba(X, method=method, groups=WHO),
            hmm.predict_proba(X, method=method, groups=WHO)[:, places],
            atol=1e-12,
        )
    np.testing.assert_allclose(
        other.predict_proba(X, draws="all", groups=WHO),
        hmm.predict_proba(X, draws="all", groups=WHO)[:, places],
        atol=1e-9,
    )
    np.testing.assert_allclose(
        other.score_samples(X, groups=WHO), hmm.score_samples(X, groups=WHO), atol=0.02
    )
    assert other.draws_.log_rank == hmm.draws_.log_rank or kind == "known states"
    np.testing.assert_array_equal(other.segments().state, number[hmm.segments().state])
    share, moved = (each.summary().to_frame()["share"].to_numpy() for each in (hmm, other))
    np.testing.assert_array_equal(moved[:n], share[:n][order])
    live, there = OnlineFilter(hmm, group=0), OnlineFilter(other, group=0)
    if kind != "subjects":
        np.testing.assert_allclose(
            there.update(X[:9]).probs, live.update(X[:9]).probs[:, places], atol=1e-12
        )
    # And back.
    np.testing.assert_array_equal(other.renumber(like=hmm.labels_).labels_, hmm.labels_)
    np.testing.assert_array_equal(other.transmat_, hmm.transmat_)
    other.renumber(by=number)
    np.testing.assert_array_equal(other.renumber("size").labels_, hmm.labels_)
    for part in ("transitions", "emission"):
        np.testing.assert_equal(
            getattr(other._fitted.selected, part), getattr(hmm._fitted.selected, part)
        )


@pytest.fixture
def model():
    return fit_of("gaussian", n_burnin=50)


def test_found_regimes_are_dropped(model):
    before = model.find_regimes()
    labels = model.regimes_
    model.renumber(by=-np.arange(model.n_states_))
    assert not model._regimes.are_known
    np.testing.assert_array_equal(model.regimes_, labels)
    assert model.find_regimes() is not before


def test_numbers_of_regimes(model):
    X = KINDS["gaussian"][0]
    regimes = model.find_regimes(model.n_states_)
    n = regimes.n_regimes_
    number = np.roll(np.arange(n), 1)
    order, places = np.argsort(number), np.append(np.argsort(number), n)
    other = regimes.renumber(by=number)
    assert regimes is model.find_regimes(n)
    np.testing.assert_array_equal(other.labels_, number[regimes.labels_])
    np.testing.assert_array_equal(other.state_regimes_, number[regimes.state_regimes_])
    np.testing.assert_array_equal(other.transmat_, regimes.transmat_[np.ix_(places, places)])
    np.testing.assert_array_equal(other.startprob_, regimes.startprob_[places])
    np.testing.assert_array_equal(other.dwell_times_, regimes.dwell_times_[order])
    np.testing.assert_array_equal(
        other.predict_proba(X, groups=WHO), regimes.predict_proba(X, groups=WHO)[:, places]
    )
    np.testing.assert_array_equal(
        other.predict(X, groups=WHO), number[regimes.predict(X, groups=WHO)]
    )
    assert other.score(X, groups=WHO) == regimes.score(X, groups=WHO)
    np.testing.assert_array_equal(other.upper(1).labels_, 0)
    np.testing.assert_array_equal(other.renumber(like=regimes.labels_).labels_, regimes.labels_)
    np.testing.assert_array_equal(other.renumber("size").labels_, regimes.labels_)
    with pytest.raises(ValueError, match=rf"expected {n} numbers, one for every regime"):
        regimes.renumber(by=[1.0])


def test_partial_fit_keeps_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat([[9.0], [0.0], [9.0], [0.0], [30.0]], 40, axis=0))
    hmm = HCRPHMM(emission="gaussian", **{**SHORT, "n_burnin": 50}).fit(X[:120])
    hmm.renumber(by=hmm.emission_.means_[:, 0])
    assert hmm.labels_[[0, 40]].tolist() == [1, 0]
    hmm.partial_fit(X[120:160])
    assert hmm.labels_[[0, 40, 80, 120]].tolist() == [1, 0, 1, 0]
    # A new state has the next free number, of however many steps.
    hmm.partial_fit(X[160:])
    assert hmm.labels_[[0, 40, 80, 120, 160]].tolist() == [1, 0, 1, 0, 2]
    hmm.partial_fit(np.repeat(X[160:], 5, axis=0) + rng.normal(size=(200, 1)))
    assert hmm.labels_[[0, 40, 160]].tolist() == [1, 0, 2]
    # Callbacks of a fit, and pickles, have these numbers, too.
    loaded = pickle.loads(pickle.dumps(hmm)).set_params(warm_start=True)
    loaded.fit(np.vstack([X, hmm._fit_state.rows.X[200:]]))
    assert loaded.labels_[[0, 40, 160]].tolist() == [1, 0, 2]
    loaded.renumber("size").fit(hmm._fit_state.rows.X)
    assert (np.diff(np.bincount(loaded.labels_)) <= 0).all()


def test_numbers_have_no_holes():
    hmm = fit_of("gaussian", n_burnin=50)
    n = hmm.n_states_
    hmm.renumber(like=hmm.labels_ + 7)
    assert set(hmm.labels_) == set(range(n))
    like = np.full(30, -1)
    like[:20] = hmm.labels_[:20]
    np.testing.assert_array_equal(hmm.renumber(like=like).labels_[:20], like[:20])


def test_a_warm_start_is_one_longer_fit():
    longer = fit_of("gaussian", n_draws=6, n_chains=2)
    pieces = fit_of("gaussian", n_chains=2).set_params(warm_start=True)
    pieces.fit(KINDS["gaussian"][0], groups=WHO)
    np.testing.assert_array_equal(pieces.draws_.states, longer.draws_.states)
    np.testing.assert_array_equal(pieces.labels_, longer.labels_)
    np.testing.assert_array_equal(pieces.transmat_, longer.transmat_)
    # With other numbers it has the same draws.
    other = fit_of("gaussian", n_chains=2).set_params(warm_start=True)
    other.renumber(by=-np.arange(other.n_states_))
    before = other.labels_
    other.fit(KINDS["gaussian"][0], groups=WHO)
    np.testing.assert_array_equal(other.draws_.lp, longer.draws_.lp)
    np.testing.assert_array_equal(other.labels_, longer.renumber(like=before).labels_)


def test_pickles_grow_alike(model):
    loaded = pickle.loads(pickle.dumps(model))
    for each in (model, loaded):
        add_to(each.renumber(by=-np.arange(each.n_states_)), "gaussian")
    np.testing.assert_array_equal(model.draws_.lp, loaded.draws_.lp)
    np.testing.assert_array_equal(model.labels_, loaded.labels_)


def test_without_paths():
    hmm = add_to(fit_of("gaussian", FIRST, store_states=False), "gaussian")
    assert hmm.labels_.shape == (115,)
    labels = hmm.labels_
    hmm.renumber(by=-np.arange(hmm.n_states_))
    np.testing.assert_array_equal(hmm.labels_, hmm.n_states_ - 1 - labels)


def test_a_checkpoint_is_resumed_with_numbers_by_size(tmp_path):
    path = tmp_path / "run.npz"
    hmm = fit_of("gaussian", checkpoint=path)
    labels = hmm.labels_
    hmm.renumber(by=-np.arange(hmm.n_states_))
    hmm.fit(KINDS["gaussian"][0], groups=WHO)
    np.testing.assert_array_equal(hmm.labels_, labels)


# ---- errors and warnings


def test_what_renumber_refuses(model):
    n, before = model.n_states_, model._fitted
    for arguments, message in (
        ({}, "by=None and like=None; expected one of them"),
        ({"by": "size", "like": model.labels_}, "expected one of them"),
        ({"by": "mean"}, "by='mean'"),
        ({"by": np.zeros(n + 1)}, f"expected {n} numbers, one for every state"),
        ({"by": [np.nan] * n}, "none of them missing"),
        ({"by": ["a"] * n}, f"expected {n} numbers"),
        ({"like": np.zeros(116, dtype=int)}, r"shape \(116,\).* 115 training steps"),
        ({"like": np.zeros(20)}, "type float64; expected integers"),
    ):
        with pytest.raises(ValueError, match=message):
            model.renumber(**arguments)
    assert model._fitted is before
    with pytest.raises(ValueError, match="not fitted"):
        HCRPHMM().renumber("size")


def test_known_states_stay_first():
    hmm = fit_of("known states")
    hmm.renumber(by=-np.arange(hmm.n_states_))
    known = KNOWN >= 0
    np.testing.assert_array_equal(hmm.known_states_[hmm.labels_[known]], KNOWN[known])


def test_what_cannot_be_continued(model):
    before, X = model._fitted, NUMBERS[:4, None]
    with pytest.raises(ValueError, match=r"\(4\) the rows of X continue\. Pass groups=.*lengths="):
        model.partial_fit(X)
    with pytest.raises(TypeError, match="'a'; ids of earlier calls are numbers, such as 0"):
        model.partial_fit(X, groups=["a"] * 4)
    with pytest.raises(ValueError, match="the id 1 appears again at row 2"):
        model.partial_fit(X, groups=[1, 2, 1, 1])
    named = HCRPHMM(emission="gaussian", **SHORT).fit(NUMBERS[:, None], groups=WHO.astype(str))
    with pytest.raises(TypeError, match="has the id 1; ids of earlier calls are strings"):
        named.partial_fit(X, groups=[1] * 4)
    # Errors name rows of this call.
    symbols = HCRPHMM(emission=HCRPCategorical(handle_unknown="error"), **SHORT)
    symbols.fit(STATES[:, None])
    with pytest.raises(ValueError, match="9"):
        symbols.partial_fit([[0], [9]])
    assert model._fitted is before


def days(begin, stop, start="2020-01-01"):
    index = pd.date_range(start, periods=115)[begin:stop]
    return pd.DataFrame({"y": NUMBERS[begin:stop]}, index)


def test_the_index_at_a_join():
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(days(0, 60))
    hmm.partial_fit(days(60, 61)).partial_fit(days(61, 80))
    with pytest.warns(UserWarning, match=r"end at 2020-03-20, and X goes on at 2020-03-11 \(row 0"):
        pickle.loads(pickle.dumps(hmm)).partial_fit(days(70, 80))
    with pytest.warns(UserWarning, match="end at 2020-03-20, and X goes on at 2020-04-01"):
        pickle.loads(pickle.dumps(hmm)).partial_fit(days(91, 95))
    # Rows whose index says nothing, and new sequences.
    hmm.partial_fit(days(60, 70).reset_index(drop=True)).partial_fit(days(0, 20))
    hmm.partial_fit(days(0, 20), lengths=[20])


def test_the_index_at_joins_of_several_sequences():
    frame, groups = pd.concat([days(0, 40), days(0, 30)]), np.repeat([0, 1], [40, 30])
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(frame, groups=groups)
    more = pd.concat([days(30, 40), days(40, 50)])
    hmm.partial_fit(more, groups=np.repeat([1, 0], 10))
    with pytest.warns(UserWarning, match=r"row 10\), but the model"):
        hmm.partial_fit(pd.concat([days(50, 60), days(20, 30)]), groups=np.repeat([0, 1], 10))


def test_numbers_in_the_index_at_a_join():
    frame = pd.DataFrame({"y": NUMBERS})
    hmm = HCRPHMM(emission="gaussian", **SHORT).fit(frame[:60])
    hmm.partial_fit(frame[60:80])
    with pytest.warns(UserWarning, match=r"end at 79, and X goes on at 100"):
        hmm.partial_fit(frame[100:])
    # Nights of other days were seen once, and a subject's number is no time.
    hours = pd.DatetimeIndex(np.repeat(pd.date_range("2020-01-01", periods=23), 5))
    hours += pd.to_timedelta(np.tile(np.arange(5), 23), unit="h")
    frame = pd.DataFrame({"y": NUMBERS}, hours)
    with pytest.warns(UserWarning, match="9 steps of more than 5 times the usual one"):
        hmm = HCRPHMM(emission="gaussian", **SHORT).fit(frame[:50])
    hmm.partial_fit(frame[50:55]).partial_fit(frame[55:56])
    subjects = pd.DataFrame({"y": NUMBERS}, np.full(115, 7))
    HCRPHMM(emission="gaussian", **SHORT).fit(subjects[:60]).partial_fit(subjects[60:])


def test_warnings_of_inputs_at_a_join():
    """The first row of a sequence does not stay, so it needs no input; the first row of X may."""
    X = KINDS["inputs of staying"][0].copy()
    recipe = KINDS["inputs of staying"][1]
    hmm = HCRPHMM(**SHORT, **recipe).fit(X[:60])
    X[60, 1] = np.nan
    with pytest.warns(UserWarning, match="1 of"):
        hmm.partial_fit(X[60:])


def test_added_sequences_of_other_columns_are_refused():
    hmm = HCRPHMM(emission=NormalInverseWishart(), **SHORT).fit(np.column_stack([NUMBERS, WALKS]))
    with pytest.raises(ValueError, match="1 features"):
        hmm.partial_fit(NUMBERS[:5, None])
