"""The estimator: results fit together, and bad input is refused with a reason."""

from __future__ import annotations

import datetime
import pickle
import re
from functools import partial

import numpy as np
import pytest
from reference.enumeration import START, DirichletEmission, HCRPEmission, frozen_hmm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skihmm import HCRPHMM
from skihmm._draws import PosteriorDraws
from skihmm._fitting import fit as _fit
from skihmm._using.decoding import rank
from skihmm.emissions import BaseEmission, DirichletCategorical, HCRPCategorical
from skihmm.posterior._estimate import best_draw
from skihmm.samplers import StepwiseGibbs
from skihmm.transitions import HCRPTransitions

LETTERS = np.array(list("abcdefgh"))


# Its fit takes milliseconds.
make_model = partial(HCRPHMM, n_burnin=4, n_draws=3, thin=1, n_particles=10, random_state=0)


def oracle_emission(model, draw):
    """The emission as the reference takes it, for one column."""
    n_symbols = model.emission_.n_symbols_[0]
    if isinstance(model.emission_, DirichletCategorical):
        return DirichletEmission(n_symbols, draw.emission["alpha"])
    return HCRPEmission(n_symbols, draw.emission["alpha"], draw.emission["gamma"])


def check_results(model, X):
    """All results are finite, in range and consistent with one another."""
    n, K = len(X), model.n_states_
    assert model.labels_.shape == (n,)
    assert np.isfinite(model.draws_.lp).all()
    assert np.isfinite(model.startprob_).all()
    np.testing.assert_allclose(model.startprob_.sum(), 1, rtol=1e-12)
    assert np.isfinite(model.transmat_).all()
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1, rtol=1e-12)
    log_prob, path = model.decode(X)
    assert np.isfinite(log_prob)
    assert path.min() >= 0
    assert path.max() <= K
    proba = model.predict_proba(X)
    assert proba.shape == (n, K + 1)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    score = model.score(X)
    assert np.isfinite(score)
    assert score <= 0
    with np.errstate(over="ignore"):
        assert model.perplexity(X) == np.exp(-score)


# -- results --------------------------------------------------------------------------


def test_fitted_attributes(fitted, sequence):
    K = fitted.n_states_
    assert isinstance(K, int)
    assert fitted.labels_.dtype == np.int32
    assert fitted.startprob_.shape == (K + 1,)
    assert fitted.transmat_.shape == (K + 1, K + 1)
    assert (fitted.transmat_ > 0).all()
    assert fitted.n_features_in_ == 1
    assert isinstance(fitted.sampler_, StepwiseGibbs)
    assert isinstance(fitted.emission_, HCRPCategorical)
    check_results(fitted, sequence)


def test_selected_draw(fitted):
    draws = fitted.draws_
    assert draws.shape == (2, 4)
    best = best_draw(draws, "vi")
    np.testing.assert_array_equal(fitted.labels_, draws.states[best])
    assert fitted.n_states_ == draws.n_states[best]


def test_labels_are_canonical(fitted):
    for states in fitted.draws_.states.reshape(-1, len(fitted.labels_)):
        values, first, counts = np.unique(states, return_index=True, return_counts=True)
        np.testing.assert_array_equal(values, np.arange(len(values)))
        # By decreasing occupancy; ties in the order of appearance.
        assert sorted(zip(-counts, first, strict=True)) == [*zip(-counts, first, strict=True)]


def test_draws(fitted, sequence):
    draws = fitted.draws_
    for name in (
        "lp",
        "alpha",
        "gamma",
        "emission_alpha",
        "emission_gamma",
        "acceptance_rate",
        "seconds",
    ):
        values = getattr(draws, name)
        assert values.shape == (2, 4)
        assert values.dtype == np.float64
        assert np.isfinite(values).all()
    assert ((draws.acceptance_rate > 0) & (draws.acceptance_rate <= 1)).all()
    assert (draws.seconds >= 0).all()
    for name in ("n_states", "n_tables"):
        assert getattr(draws, name).dtype.kind == "i"
    np.testing.assert_array_equal(draws.sweep, [[12, 14, 16, 18]] * 2)
    assert draws.states.shape == (2, 4, len(sequence))
    assert draws.states.dtype == np.int32
    draw = draws[1, 2]
    assert draw.lp == draws.lp[1, 2]
    assert draw.n_states == draws.n_states[1, 2] == len(np.unique(draw.states))
    assert draw.last_state == draw.states[-1]
    assert draw.transitions["n_tables"].sum() == draws.n_tables[1, 2]
    assert draws[-1, -1].lp == draws.lp[-1, -1]
    with pytest.raises(TypeError, match="two integers"):
        draws[0]
    with pytest.raises(IndexError):
        draws[0, 4]


def test_draws_hold_the_counts_of_their_labels(fitted, sequence, seating_counts):
    draw = fitted.draws_[0, 3]
    counts = seating_counts(draw)
    states, symbols = draw.states.tolist(), sequence[:, 0].tolist()
    previous = [START, *states[:-1]]
    for pairs, found in (
        (zip(previous, states, strict=True), counts.n),
        (zip(states, symbols, strict=True), counts.c[0]),
    ):
        expected = {}
        for pair in pairs:
            expected[pair] = expected.get(pair, 0) + 1
        assert found == expected
    assert all(1 <= counts.m[pair] <= n for pair, n in counts.n.items())
    sizes, ends = draw.transitions["sizes"], np.cumsum(draw.transitions["n_tables"])
    per_cell = np.split(sizes, ends[:-1])
    np.testing.assert_array_equal(
        [cell.sum() for cell in per_cell], draw.transitions["n_customers"]
    )


def test_draws_to_dict(fitted):
    groups = fitted.draws_.to_dict()
    assert set(groups) == {"posterior", "sample_stats"}
    assert set(groups["posterior"]) == {
        "alpha",
        "gamma",
        "emission_alpha",
        "emission_gamma",
        "n_states",
        "states",
    }
    for arrays in groups.values():
        for values in arrays.values():
            assert values.shape[:2] == (2, 4)


def test_thinned_draws(fitted):
    every = fitted.draws_.thinned()
    assert [draw.lp for draw in every] == fitted.draws_.lp.ravel().tolist()
    some = fitted.draws_.thinned(3)
    assert len({draw.lp for draw in some}) == 3
    assert some[-1].lp == every[-1].lp
    assert len(fitted.draws_.thinned(99)) == 8
    chains = [[fitted.draws_[c, d] for d in range(4)] for c in range(2)]
    without, weights = PosteriorDraws(chains).weighted(3)
    assert [draw.lp for draw in without] == [draw.lp for draw in some]
    assert all(draw.states is None for draw in without)
    np.testing.assert_array_equal(weights, 1)
    # Without a chain of hardly any weight.
    draws = PosteriorDraws(chains, log_weights=np.array([-9.0, 0.0]))
    assert [draw.lp for draw in draws.weighted()[0]] == draws.lp[1].tolist()
    np.testing.assert_allclose(draws.chain_weights, [np.exp(-9) / (1 + np.exp(-9)), 1], rtol=1e-3)
    np.testing.assert_array_equal(draws.weights(), [0] * 4 + [1] * 4)


@pytest.mark.parametrize("emission", ["hcrp", "dirichlet"])
def test_decode_is_the_joint_of_path_and_data(
    emission, sequence, seating_counts, global_random_seed
):
    model = make_model(emission=emission, random_state=global_random_seed)
    groups = np.repeat([0, 1], [35, 25])
    model.fit(sequence, groups=groups)
    draw = model.draws_[best_draw(model.draws_, "vi")]
    oracle = oracle_emission(model, draw)
    initial, transitions, symbols = frozen_hmm(seating_counts(draw), oracle, draw.alpha, draw.gamma)
    np.testing.assert_allclose(model.startprob_, initial, rtol=1e-12)
    np.testing.assert_allclose(model.transmat_, transitions, rtol=1e-12)

    log_prob, path = model.decode(sequence, groups=groups)
    assert isinstance(log_prob, float)
    assert path.dtype == np.int32
    expected = 0.0
    for t, k in enumerate(path):
        first = t == 0 or groups[t] != groups[t - 1]
        expected += np.log(model.startprob_[k] if first else model.transmat_[path[t - 1], k])
        expected += np.log(symbols[0, k, sequence[t, 0]])
    assert log_prob == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(model.predict(sequence, groups=groups), path)

    # Any other path is at most as probable; the training labels are one of them.
    total = np.log(model.startprob_[model.labels_[[0, 35]]]).sum()
    inner = [t for t in range(1, 60) if t != 35]
    for t in inner:
        total += np.log(model.transmat_[model.labels_[t - 1], model.labels_[t]])
    total += np.log(symbols[0, model.labels_, sequence[:, 0]]).sum()
    assert total <= log_prob + 1e-9


def test_a_repetition_is_predicted_better_than_noise(fitted, sequence, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    noise = rng.permutation(sequence)
    assert fitted.score(sequence) > fitted.score(noise)
    uniform = -np.log(6)
    assert fitted.score(sequence) > uniform


def test_fit_predict(sequence):
    model = make_model()
    states = model.fit_predict(sequence)
    assert states.dtype == np.int32
    np.testing.assert_array_equal(states, model.predict(sequence))
    groups = np.repeat([0, 1], 30)
    states = model.fit_predict(sequence, groups=groups)
    np.testing.assert_array_equal(states, model.predict(sequence, groups=groups))
    known = np.full(60, -1)
    known[:5] = 7
    with pytest.warns(UserWarning, match="in states that no label has"):
        model.fit_predict(sequence, states=known)
    assert len(set(model.labels_[:5])) == 1


@pytest.mark.parametrize("emission", ["hcrp", "dirichlet"])
def test_sample(sequence, emission):
    X = np.column_stack([sequence + 3, LETTERS[sequence]]).astype(object)
    X[:, 0] = sequence[:, 0] + 3
    model = make_model(emission=emission).fit(X)
    new, states = model.sample(200, random_state=1)
    assert new.shape == (200, 2)
    assert states.shape == (200,)
    assert states.dtype == np.int32
    assert set(new[:, 0]) <= {3, 4, 5, 6, 7}
    assert set(new[:, 1]) <= set("abcde")
    assert states.min() >= 0
    again = model.sample(200, random_state=1)
    np.testing.assert_array_equal(again[0], new)
    np.testing.assert_array_equal(again[1], states)
    assert not np.array_equal(model.sample(200, random_state=2)[0], new)
    # None is the seed of the estimator, and sampling does not change the model.
    np.testing.assert_array_equal(model.sample(50)[0], model.sample(50)[0])
    assert model.sample()[0].shape == (1, 2)
    assert np.isfinite(model.score(new))
    with pytest.raises(ValueError, match="n_samples=0"):
        model.sample(0)


# -- several sequences ----------------------------------------------------------------


def test_groups_and_lengths_say_the_same(sequence):
    groups = np.repeat([3, 1, 2], [20, 1, 39])
    one = make_model().fit(sequence, groups=groups)
    two = make_model().fit(sequence, lengths=[20, 1, 39])
    three = make_model().fit(sequence, groups=np.array(["c", "a", "b"])[groups - 1])
    alone = make_model().fit(sequence)
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)
    np.testing.assert_array_equal(one.draws_.lp, three.draws_.lp)
    assert not np.array_equal(one.draws_.lp, alone.draws_.lp)
    for method in ("predict", "predict_proba", "score_samples", "score", "perplexity"):
        by_groups = getattr(one, method)(sequence, groups=groups)
        by_lengths = getattr(one, method)(sequence, lengths=[20, 1, 39])
        np.testing.assert_array_equal(by_groups, by_lengths)
    assert one.decode(sequence, groups=groups)[0] == (one.decode(sequence, lengths=[20, 1, 39])[0])
    # The three first steps come from the start restaurant.
    transitions = one.draws_[0, 0].transitions
    starts = transitions["rows"] == one.draws_[0, 0].n_states
    assert transitions["n_customers"][starts].sum() == 3


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"groups": [0] * 60, "lengths": [60]}, ValueError, "Both groups and lengths"),
        ({"groups": [0] * 59}, ValueError, "groups has 59 entries, but X has 60"),
        ({"groups": [0] * 20 + [1] * 20 + [0] * 20}, ValueError, "id 0 appears again at"),
        ({"groups": ["a"] * 59 + [None]}, ValueError, "id of row 59 is missing"),
        ({"groups": [np.nan] * 60}, ValueError, "id of row 0 is missing"),
        ({"groups": np.zeros((60, 2))}, ValueError, "1d array"),
        ({"groups": "a" * 60}, TypeError, "of type str; expected an array"),
        ({"groups": [[1]] * 59 + [[1, 2]]}, ValueError, "groups is ragged"),
        ({"groups": [{}] * 60}, TypeError, "id of row 0 is {}; expected"),
        ({"groups": ["a"] * 59 + [np.nan]}, ValueError, "id of row 59 is missing"),
        ({"groups": np.ma.array([0] * 60, mask=[0] * 59 + [1])}, ValueError, "row 59 is m"),
        ({"groups": np.array(["NaT"] * 60, "M8[D]")}, ValueError, "row 0 is missing"),
        ({"lengths": [30, 29]}, ValueError, "lengths sum to 59, but X has 60.*groups"),
        ({"lengths": [60, 0]}, ValueError, "lengths holds 0"),
        ({"lengths": [61, -1]}, ValueError, "lengths holds -1"),
        ({"lengths": [30.0, 30.0]}, ValueError, "array of integers"),
        ({"lengths": []}, ValueError, "array of integers"),
        ({"lengths": 60}, ValueError, "lengths=60; expected a one-dimensional array"),
        ({"lengths": [[30], [20, 10]]}, ValueError, "lengths is ragged"),
        ({"lengths": np.ma.array([30, 30], mask=[0, 1])}, ValueError, "of integers"),
        # In 64 bits they sum to 60.
        ({"lengths": [2**63 - 1, 2**63 - 1, 62]}, ValueError, "lengths sum to 1844674407"),
        ({"lengths": np.array([2**63, 2**63, 60], "u8")}, ValueError, "lengths sum to 18"),
    ],
)
def test_wrong_groups_and_lengths(fitted, sequence, given, error, message):
    message = re.compile(message, re.DOTALL)
    with pytest.raises(error, match=message):
        make_model().fit(sequence, **given)
    for method in ("predict", "predict_proba", "decode", "score", "score_samples"):
        with pytest.raises(error, match=message):
            getattr(fitted, method)(sequence, **given)


def test_lengths_of_any_type(sequence):
    pd = pytest.importorskip("pandas")
    expected = make_model().fit(sequence, lengths=[20, 40]).draws_.lp
    for dtype in ("uint8", "int64", "Int64"):
        lengths = pd.Series([20, 40], dtype=dtype)
        found = make_model().fit(sequence, lengths=lengths).draws_.lp
        np.testing.assert_array_equal(found, expected)


# -- bad data -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.empty((0, 1)), ValueError, "0 sample"),
        (np.empty((4, 0)), ValueError, "0 feature"),
        ([1, 2, 3], ValueError, r"one dimension, with 3 entries; .* Reshape your data"),
        (np.zeros((2, 2, 2)), ValueError, "pass groups"),
        ([[0.0], [np.inf]], ValueError, "infinity"),
        (np.array([["a", 1], ["b", np.inf]], dtype=object), ValueError, "infinity"),
        ([[3], [-1]], ValueError, r"Negative values in data: X\[1, 0\] = -1"),
        (np.array([["a", 1], ["b", -2]], dtype=object), ValueError, "Negative values"),
        ([[0, 0.0], [0, 0.5]], ValueError, r"X\[1, 1\] = 0.5 is not an integer"),
        (np.array([["a", 0.5]], dtype=object), ValueError, "not an integer"),
        ([[0.0], [2.0**60]], ValueError, "above 2"),
        (np.array([[1], [{"a": 1}]], dtype=object), TypeError, "argument must be"),
        (np.array([["a"], [1]], dtype=object), TypeError, "strings and numbers"),
        (np.array([[b"a"]], dtype=object), TypeError, "bytes"),
        ([[1j]], ValueError, "Complex"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), TypeError, "datetime64"),
        (
            np.ma.array(np.array([["2020"], ["2021"]], "M8[D]"), mask=[[0], [1]]),
            TypeError,
            "datetime64",
        ),
        (np.ma.array([[1j], [1]], mask=[[0], [1]]), ValueError, "Complex"),
        ([[1], [2, 3]], ValueError, r"different lengths.*sequences\)\[:, None\], groups"),
        ([np.eye(2), np.eye(2)], ValueError, r"np.concatenate\(sequences\), groups"),
        ([["a"], [1]], TypeError, "strings and numbers"),
        ([["a"], [b"a"]], TypeError, "got bytes b'a'"),
        (np.array([[2**63]], dtype="u8"), ValueError, r"expected symbols below 2\*\*63"),
        (np.array([[10**400]], dtype=object), ValueError, r"below 2\*\*63"),
        *(
            (np.array([[1], [value]], dtype=object), TypeError, "a string or a number, got")
            for value in (
                datetime.date(2020, 1, 1),
                np.datetime64("2020"),
                np.timedelta64(3, "D"),
                1j,
                frozenset(),
                bytearray(b"a"),
                object(),
            )
        ),
    ],
)
def test_bad_data(X, error, message):
    with pytest.raises(error, match=message):
        make_model().fit(X)


def test_lists_keep_what_their_entries_are():
    # numpy would make strings of all of them, of NaN, too.
    for empty in (np.nan, None):
        model = make_model().fit([["a", 1], [empty, 2], ["b", empty]])
        assert model.emission_.categories_[0].tolist() == ["a", "b"]
        assert model.emission_.categories_[1].tolist() == [1, 2]
        assert model.emission_.encode_values([["b", empty]]).tolist() == [[1, -1]]
    ids = np.repeat(np.array([1, "1", 2], dtype=object), 2)
    one = make_model().fit([["a"]] * 6, groups=ids.tolist())
    two = make_model().fit([["a"]] * 6, lengths=[2, 2, 2])
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy before 2.0")
def test_strings_of_any_length(sequence):
    dtype = np.dtypes.StringDType(na_object=None)
    X = LETTERS[sequence].astype(object)
    X[3] = None
    one, two = make_model().fit(X), make_model().fit(X.astype(dtype))
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)
    np.testing.assert_array_equal(one.predict(X), two.predict(X.astype(dtype)))


def test_data_frames_of_no_symbols():
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2020-01-01", periods=4)
    for other in (np.arange(4), list("abcd")):
        for column in (dates, dates.tz_localize("UTC")):
            with pytest.raises(TypeError, match="a string or a number, got Timestamp"):
                make_model().fit(pd.DataFrame({"a": other, "b": column}))
    with pytest.raises(ValueError, match=r"0 (sample|feature)"):
        make_model().fit(pd.DataFrame())


def test_not_fitted(sequence):
    for method in ("predict", "score", "decode", "predict_proba", "score_samples"):
        with pytest.raises(NotFittedError):
            getattr(make_model(), method)(sequence)
    by_hand = make_model()
    by_hand.transmat_ = np.eye(2)
    with pytest.raises(NotFittedError):
        by_hand.sample()


def test_large_integers_stay_apart():
    X = 2**60 + np.arange(6).reshape(-1, 1) % 3
    model = make_model().fit(X)
    np.testing.assert_array_equal(model.emission_.categories_[0], 2**60 + np.arange(3))
    assert set(model.sample(20)[0][:, 0]) <= set(X[:, 0])
    # Floats are compared as the integers that they are.
    floats = np.array([[np.nan], [7.0]])
    np.testing.assert_array_equal(model.emission_.encode_values(floats), [[-1], [3]])
    emission = make_model().fit(2**53 + X % 3).emission_
    codes = emission.encode_values([[2.0**53], [np.nan]])
    np.testing.assert_array_equal(codes, [[0], [-1]])


@pytest.mark.parametrize("emission", [HCRPCategorical, DirichletCategorical])
@pytest.mark.parametrize("kind", ["number", "string"])
def test_unknown_symbols(sequence, emission, kind):
    X = sequence if kind == "number" else LETTERS[sequence]
    new = np.array([[99]]) if kind == "number" else np.array([["zz"]])
    test = np.concatenate([X[:5], new, X[:5]])

    base = make_model(emission=emission()).fit(X)
    assert base.emission_.n_symbols_ == [6]
    log_probs = base.score_samples(test)
    assert np.isfinite(log_probs).all()
    assert log_probs[5] < -1
    check_results(make_model(emission=emission()).fit(X), X)
    assert base.predict(test).shape == (11,)

    missing = make_model(emission=emission(handle_unknown="missing")).fit(X)
    assert missing.emission_.n_symbols_ == [5]
    assert missing.score_samples(test)[5] == 0
    as_object = test.astype(object)
    as_object[5] = None
    np.testing.assert_array_equal(missing.predict(test), missing.predict(as_object))

    error = make_model(emission=emission(handle_unknown="error")).fit(X)
    assert error.emission_.n_symbols_ == [5]
    np.testing.assert_array_equal(error.predict(X).shape, (60,))
    for method in ("predict", "score", "decode", "predict_proba", "score_samples"):
        with pytest.raises(ValueError, match=f"Column 0 holds the symbol {new.item()!r}"):
            getattr(error, method)(test)


def test_symbols_of_another_type(fitted, sequence):
    with pytest.raises(TypeError, match="holds strings, but its categories are numbers"):
        fitted.predict(LETTERS[sequence])
    model = make_model().fit(LETTERS[sequence])
    with pytest.raises(TypeError, match="holds numbers, but its categories are strings"):
        model.predict(sequence)


@pytest.mark.parametrize("emission", [HCRPCategorical, DirichletCategorical])
def test_given_categories(sequence, emission):
    model = make_model(emission=emission(categories=[np.arange(8)]))
    assert model.fit(sequence).emission_.n_symbols_ == [9]
    model = make_model(emission=emission(categories=[list("edcba")]))
    model.fit(LETTERS[sequence])
    codes = model.emission_.encode_values([["a"], ["e"]])
    np.testing.assert_array_equal(codes, [[4], [0]])
    assert model.emission_.decode(np.array([[4], [0]])).tolist() == [["a"], ["e"]]
    # Symbols outside the categories are unknown already in fit.
    model = make_model(emission=emission(categories=[[0, 1, 2]], handle_unknown="error"))
    with pytest.raises(ValueError, match="symbol 3"):
        model.fit(sequence)


def test_unsorted_categories_of_a_column_without_symbols():
    # (Would only be noticed when predicting.)
    with pytest.raises(ValueError, match=r"categories\[0\] is unsorted"):
        make_model(emission=HCRPCategorical(categories=[[3, 1]])).fit([[None]])


# -- bad parameters -------------------------------------------------------------------


def test_a_sampler_can_refuse_transitions(sequence):
    class OnlyFixed(StepwiseGibbs):
        def check_transitions(self, transitions):
            if transitions.concentration_prior is not None:
                raise TypeError("OnlyFixed works only with concentration_prior=None.")

    fixed = HCRPTransitions(concentration_prior=None)
    make_model(sampler=OnlyFixed(), transitions=fixed).fit(sequence)
    with pytest.raises(TypeError, match="only with concentration_prior=None"):
        make_model(sampler=OnlyFixed()).fit(sequence)


def test_y_is_ignored(sequence):
    y = np.arange(60)
    one, two = make_model().fit(sequence), make_model().fit(sequence, y)
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)
    assert one.score(sequence, y) == one.score(sequence)
    assert one.perplexity(sequence, y) == one.perplexity(sequence)
    np.testing.assert_array_equal(one.fit_predict(sequence, y), one.predict(sequence))


# -- unusual data ---------------------------------------------------------------------

EMISSIONS = ["hcrp", "dirichlet"]


@pytest.mark.parametrize("emission", EMISSIONS)
@pytest.mark.parametrize("init", ["particle_filter", "blocks", "random", "single"])
def test_one_step(emission, init):
    model = make_model(emission=emission, init=init).fit([[4]])
    assert model.n_states_ == 1
    check_results(model, [[4]])
    assert model.sample(3)[0].tolist() == [[4]] * 3


@pytest.mark.parametrize("emission", EMISSIONS)
def test_constant_sequence(emission):
    X = np.zeros((40, 1), dtype=int)
    model = make_model(emission=emission).fit(X)
    check_results(model, X)
    assert model.perplexity(X) < 1.5


@pytest.mark.parametrize("emission", EMISSIONS)
@pytest.mark.parametrize("empty", [np.nan, None])
def test_everything_missing(emission, empty):
    X = np.full((20, 1), empty, dtype=object if empty is None else float)
    model = make_model(emission=emission)
    with pytest.warns(UserWarning, match="All entries of X are missing"):
        model.fit(X)
    check_results(model, X)
    assert model.score(X) == 0
    # The only symbol of the vocabulary is "unknown".
    assert model.emission_.n_symbols_ == [1]
    assert model.score([[3]]) == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="no observed symbol"):
        model.sample()


@pytest.mark.parametrize("emission", EMISSIONS)
def test_one_of_two_columns_missing(sequence, emission):
    X = np.column_stack([np.full(60, np.nan), sequence[:, 0]])
    model, other = make_model(emission=emission), make_model(emission=emission)
    for c, (one, data) in enumerate(((model, X), (other, X[:, ::-1]))):
        with pytest.warns(UserWarning, match=f"All entries of column {c} of X"):
            one.fit(data)
    check_results(model, X)
    assert model.emission_.n_symbols_ == [1, 6]
    np.testing.assert_allclose(model.draws_.lp, other.draws_.lp, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    # A symbol in the empty column can only be the unknown one: it says nothing.
    full = X.copy()
    full[:, 0] = 5
    np.testing.assert_allclose(model.predict_proba(full), model.predict_proba(X), rtol=1e-10)


def test_many_columns(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.integers(1000, size=(20, 100))
    model = make_model(emission="dirichlet").fit(X)
    check_results(model, X)


@pytest.mark.parametrize("emission", EMISSIONS)
def test_two_columns_with_missing_entries(sequence, emission, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = np.column_stack([sequence[:, 0], sequence[:, 0] // 2]).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    model = make_model(emission=emission).fit(X)
    check_results(model, X)
    assert model.n_features_in_ == 2
    log_probs = model.score_samples(X)
    whole = np.isnan(X).all(axis=1)
    assert (log_probs[whole] == 0).all()
    assert (log_probs[~whole] < 0).all()
    assert model.score(X) == pytest.approx(log_probs[~whole].mean(), rel=1e-14)


def test_ways_to_say_missing(sequence):
    gaps = np.zeros((60, 1), dtype=bool)
    gaps[[3, 4, 59]] = True
    floats = np.where(gaps, np.nan, sequence)
    nones = np.where(gaps, None, sequence.astype(object))
    nans = np.where(gaps, np.nan, sequence.astype(object))
    masked = np.ma.masked_array(sequence, gaps)
    masked_floats = np.ma.masked_array(np.where(gaps, 7.5, sequence), gaps)
    letters = LETTERS[sequence].astype(object)
    letters_none = np.where(gaps, None, letters)
    letters_nan = np.where(gaps, np.nan, letters)
    letters_masked = np.ma.masked_array(LETTERS[sequence], gaps)
    expected = make_model().fit(floats)
    assert expected.score_samples(floats)[3] == 0
    for X in (nones, nans, masked, masked_floats, letters_none, letters_nan, letters_masked):
        model = make_model().fit(X)
        np.testing.assert_array_equal(model.draws_.lp, expected.draws_.lp)
        np.testing.assert_array_equal(model.predict(X), expected.predict(floats))
        assert model.score(X) == expected.score(floats)
    # What is under a mask is neither read nor changed.
    assert (masked_floats.data[gaps[:, 0]] == 7.5).all()


def test_strings(sequence):
    X = LETTERS[sequence]
    model, expected = make_model().fit(X), make_model().fit(sequence)
    np.testing.assert_array_equal(model.draws_.lp, expected.draws_.lp)
    np.testing.assert_array_equal(model.emission_.categories_[0], list("abcde"))
    as_object = X.astype(object)
    np.testing.assert_array_equal(model.predict(X), model.predict(as_object))
    assert set(model.sample(30)[0][:, 0]) <= set("abcde")
    np.testing.assert_array_equal(
        model.emission_.decode(model.emission_.encode_values(X)), as_object
    )


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "bool"])
def test_numbers_of_any_type(sequence, dtype):
    X = sequence % 2 if dtype == "bool" else sequence
    one, two = make_model().fit(X), make_model().fit(X.astype(dtype))
    np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)
    assert two.emission_.categories_[0].dtype == np.int64


def test_data_are_not_changed(sequence):
    X = np.array(sequence)
    X.setflags(write=False)
    model = make_model().fit(X)
    model.predict(X)
    model.score(X)
    # Neither memory order nor strides matter.
    strided = np.repeat(sequence, 2, axis=0)[::2]
    np.testing.assert_array_equal(make_model().fit(strided).draws_.lp, model.draws_.lp)


def test_data_frames(sequence):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"word": LETTERS[sequence[:, 0]], "code": sequence[:, 0]})
    plain = np.empty((60, 2), dtype=object)
    plain[:, 0], plain[:, 1] = LETTERS[sequence[:, 0]], sequence[:, 0]
    expected = make_model().fit(plain)
    assert not hasattr(expected, "feature_names_in_")
    for X in (
        frame,
        frame.astype({"word": "string", "code": "Int64"}),
        frame.astype({"word": object, "code": object}),
        frame.astype({"word": "category"}),
    ):
        model = make_model().fit(X)
        assert model.feature_names_in_.tolist() == ["word", "code"]
        np.testing.assert_array_equal(model.draws_.lp, expected.draws_.lp)
        np.testing.assert_array_equal(model.predict(X), expected.predict(plain))
        assert model.emission_.categories_[1].dtype == np.int64
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(X.rename(columns={"word": "other"}))


@pytest.mark.parametrize("dtype", ["string", "Int64", "category", object])
def test_missing_entries_of_data_frames(sequence, dtype):
    pd = pytest.importorskip("pandas")
    values = sequence[:, 0] if dtype == "Int64" else LETTERS[sequence[:, 0]]
    frame = pd.DataFrame({"symbol": pd.Series(values).astype(dtype)})
    frame.iloc[[2, 30], 0] = pd.NA if dtype in ("string", "Int64") else None
    model = make_model().fit(frame)
    floats = sequence.astype(float)
    floats[[2, 30]] = np.nan
    expected = make_model().fit(floats)
    np.testing.assert_array_equal(model.draws_.lp, expected.draws_.lp)
    assert (model.score_samples(frame)[[2, 30]] == 0).all()


@pytest.mark.parametrize("value", [1e-3, 1e3])
@pytest.mark.parametrize("resampled", [True, False])
@pytest.mark.parametrize("emission", EMISSIONS)
def test_extreme_concentrations(sequence, value, resampled, emission, global_random_seed):
    prior = (1.0, 1.0 / value) if resampled else None
    if emission == "hcrp":
        emission = HCRPCategorical(value, value, concentration_prior=prior)
    else:
        emission = DirichletCategorical(value)
    model = make_model(
        transitions=HCRPTransitions(value, value, prior),
        emission=emission,
        random_state=global_random_seed,
        n_burnin=20,
    )
    test = np.concatenate([sequence, [[99]], sequence[::-1]])
    model.fit(sequence)
    check_results(model, sequence)
    check_results(clone(model).fit(test), test)
    # Symbols and transitions that training did not have.
    assert np.isfinite(model.score_samples(test)).all()
    assert np.isfinite(model.decode(test)[0])
    np.testing.assert_allclose(model.predict_proba(test).sum(axis=1), 1, rtol=1e-10)
    if not resampled:
        assert (model.draws_.alpha == value).all()
        assert (model.draws_.gamma == value).all()


@pytest.mark.parametrize("value", [1e12, 1e50])
def test_log_joint_of_large_concentrations(sequence, value):
    # Every step opens a table with a new state, and symbols are uniform.
    model = make_model(
        transitions=HCRPTransitions(value, value, None), emission=DirichletCategorical(value)
    ).fit(sequence)
    assert (model.draws_.n_states == 60).all()
    np.testing.assert_allclose(model.draws_.lp, -60 * np.log(6), rtol=1e-9)


@pytest.mark.parametrize("value", [1e-50, 0.1, 1e50])
def test_a_dirichlet_keeps_its_concentration(value):
    # Divided again by the number of symbols it could leave what is allowed.
    for n_symbols in range(1, 12):
        X = np.arange(n_symbols).reshape(-1, 1)
        model = make_model(emission=DirichletCategorical(value), n_draws=1).fit(X)
        assert model.draws_[0, 0].emission["alpha"] == value
        assert np.isfinite(model.score(X))


def test_fixed_and_resampled_concentrations(sequence):
    fixed = make_model(
        transitions=HCRPTransitions(0.7, 1.4, concentration_prior=None),
        emission=HCRPCategorical(0.3, 2.5, concentration_prior=None),
    ).fit(sequence)
    for name, value in [
        ("alpha", 0.7),
        ("gamma", 1.4),
        ("emission_alpha", 0.3),
        ("emission_gamma", 2.5),
    ]:
        assert (getattr(fixed.draws_, name) == value).all()
        assert len(np.unique(getattr(make_model().fit(sequence).draws_, name))) == 3
    dirichlet = make_model(emission="dirichlet").fit(sequence)
    assert not hasattr(dirichlet.draws_, "emission_alpha")
    assert "emission_alpha" not in dirichlet.draws_.to_dict()["posterior"]


# -- where chains start ---------------------------------------------------------------


def test_init(sequence):
    labels = np.arange(60), [7, 3] * 30
    for init in ("particle_filter", "blocks", "random", "single", *labels):
        model = make_model(init=init, n_burnin=0).fit(sequence)
        check_results(model, sequence)


def test_init_as_array_is_where_the_chain_starts(sequence):
    # The names of the labels do not matter, the partition does.
    labels = np.arange(60) % 8
    one = make_model(init=labels, n_burnin=0, n_draws=1).fit(sequence)
    two = make_model(init=labels * 10 + 3, n_burnin=0, n_draws=1).fit(sequence)
    other = make_model(init=labels % 3, n_burnin=0, n_draws=1).fit(sequence)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.draws_.lp[0, 0] == two.draws_.lp[0, 0]
    assert one.draws_.lp[0, 0] != other.draws_.lp[0, 0]
    # One sweep from the truth stays near it, one from a single state does not reach it.
    agreement = np.mean(one.labels_ == one.labels_[np.arange(60) % 8])
    assert agreement > 0.5


# -- an earlier fit survives ----------------------------------------------------------


def _state(model):
    return {key: id(value) for key, value in vars(model).items()}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_fit_leaves_the_earlier_one(sequence, monkeypatch, n_jobs, error):
    model = make_model(n_chains=3, n_jobs=n_jobs).fit(sequence)
    expected = model.predict(sequence)
    before = _state(model)
    run_chain = _fit.run_chain

    def interrupted(task, *args):
        if task.index == 1:
            raise error("stopped")
        return run_chain(task, *args)

    monkeypatch.setattr(_fit, "run_chain", interrupted)
    with pytest.raises(error):
        model.fit(np.zeros((10, 3)))
    assert _state(model) == before
    np.testing.assert_array_equal(model.predict(sequence), expected)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_other_chains_stop_when_one_fails(sequence, monkeypatch, error):
    run_chain = _fit.run_chain
    flags = []

    def interrupted(*args):
        flags.append(args[-1].stop)
        raise error

    def with_raised_flag(*args):
        args[-1].stop = flags[0]
        return run_chain(*args)

    monkeypatch.setattr(_fit, "run_chain", interrupted)
    with pytest.raises(error):
        make_model().fit(sequence)
    assert flags[0].is_raised()
    # A chain that sees the raised flag makes no sweep.
    monkeypatch.setattr(_fit, "run_chain", with_raised_flag)
    with pytest.raises(KeyboardInterrupt):
        make_model().fit(sequence)


# -- scikit-learn's plumbing ----------------------------------------------------------


def test_parameters_of_short_names():
    model = HCRPHMM().set_params(emission__alpha=2.0)
    assert isinstance(model.emission, HCRPCategorical)
    assert model.emission.alpha == 2.0
    model = HCRPHMM().set_params(emission="dirichlet", emission__concentration=0.1)
    assert isinstance(model.emission, DirichletCategorical)
    assert model.emission.concentration == 0.1
    model.set_params(emission__concentration=0.2, transitions__alpha=3.0)
    assert model.emission.concentration == 0.2
    assert isinstance(model.transitions, HCRPTransitions)
    assert model.transitions.alpha == 3.0
    assert model.get_params()["emission__concentration"] == 0.2
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        HCRPHMM().set_params(emission__nothing=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        HCRPHMM().set_params(nothing=1)
    # A plain short name stays a short name.
    assert HCRPHMM().set_params(emission="dirichlet").emission == "dirichlet"
    model = HCRPHMM().set_params(n_draws=2)
    assert (model.emission, model.transitions) == ("hcrp", "auto")


def test_clone_and_repr(fitted):
    emission = HCRPCategorical(alpha=0.5)
    model = HCRPHMM(emission=emission, init=np.arange(5), n_chains=3)
    copy = clone(model)
    assert copy.emission is not emission
    assert copy.emission.alpha == 0.5
    assert "HCRPCategorical(alpha=0.5)" in repr(copy)
    assert repr(HCRPHMM()) == "HCRPHMM()"
    assert not hasattr(clone(fitted), "draws_")
    assert clone(fitted).get_params() == fitted.get_params()


def test_repr_of_draws(fitted, sequence):
    draws, state = fitted.draws_, fitted._fit_state
    expected = rank(fitted._fitted.selected, state.sequences, fitted.emission_, fitted.transitions_)
    low, high = draws.n_states.min(), draws.n_states.max()
    states = f"{low} to {high}" if low < high else f"{low}"
    assert repr(draws) == (
        f"<PosteriorDraws: 2 chains x 4 draws, {states} states, log rank {expected:.1f}>"
    )
    bare = make_model(store_states=False, n_chains=1, n_draws=1).fit(sequence).draws_
    n = bare.n_states[0, 0]
    assert repr(bare) == f"<PosteriorDraws: 1 chain x 1 draw, {n} states>"
    known = make_model(n_chains=1).fit(sequence, states=[0] + [-1] * (len(sequence) - 1))
    assert "rank" not in repr(known.draws_)


def test_recipes_are_cloned(sequence):
    emission, sampler = HCRPCategorical(), StepwiseGibbs()
    model = make_model(emission=emission, sampler=sampler).fit(sequence)
    assert model.emission_ is not emission
    assert model.sampler_ is not sampler
    assert not hasattr(emission, "categories_")
    assert issubclass(type(model.emission_), BaseEmission)


def test_short_names_equal_objects(sequence):
    for name, emission in (("hcrp", HCRPCategorical()), ("dirichlet", None)):
        one = make_model(emission=name).fit(sequence)
        two = make_model(emission=emission or DirichletCategorical()).fit(sequence)
        np.testing.assert_array_equal(one.draws_.lp, two.draws_.lp)


def test_store_states(sequence):
    full = make_model(n_chains=2).fit(sequence)
    lean = make_model(n_chains=2, store_states=False).fit(sequence)
    assert lean.draws_.states is None
    assert lean.draws_[0, 0].states is None
    assert "states" not in lean.draws_.to_dict()["posterior"]
    np.testing.assert_array_equal(lean.draws_.lp, full.draws_.lp)
    np.testing.assert_array_equal(lean.labels_, full.labels_)
    np.testing.assert_array_equal(lean.predict(sequence), full.predict(sequence))
    assert lean.score(sequence) == full.score(sequence)
    assert len(pickle.dumps(lean)) < len(pickle.dumps(full))


PROGRESS = re.compile(
    r"chain (\d+): +\d+ % (?:\d+ s left, )?sweep (\d+)/(\d+), \d+ states"
    r"(, log joint -?[\d.]+, acceptance [\d.]+)?"
)


def test_verbose(sequence, capsys):
    make_model(n_chains=2).fit(sequence)
    assert capsys.readouterr().out == ""
    for verbose in (1, True):
        # Less than a second of work: one line per chain at its start, and one at its end.
        make_model(n_chains=2, verbose=verbose).fit(sequence)
        lines = capsys.readouterr().out.splitlines()
        assert lines[::2] == [f"chain {chain}: searching a start" for chain in (0, 1)]
        found = [PROGRESS.fullmatch(line).groups() for line in lines[1::2]]
        assert found == [("0", "7", "7", None), ("1", "7", "7", None)]
    make_model(verbose=2, n_draws=2, thin=3).fit(sequence)
    _, *lines = capsys.readouterr().out.splitlines()
    found = [PROGRESS.fullmatch(line).groups() for line in lines]
    assert [groups[:3] for groups in found] == [("0", str(s), "10") for s in range(1, 11)]
    assert all(groups[3] for groups in found)


# -- it works -------------------------------------------------------------------------


def test_states_are_found():
    # Symbols that tell the states apart: every symbol is one state.
    X = np.tile(np.arange(4), 30).reshape(-1, 1)
    model = HCRPHMM(n_burnin=50, n_draws=10, thin=2, random_state=0).fit(X)
    assert model.n_states_ == 4
    labels_of_symbols = {(int(x), int(k)) for x, k in zip(X[:, 0], model.labels_, strict=True)}
    assert len(labels_of_symbols) == 4
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.perplexity(X) < 1.2


def test_words_of_a_book(alice):
    X = alice.words[:1500].reshape(-1, 1)
    model = make_model(n_burnin=3, n_draws=2).fit(X[:1200])
    unigram = np.unique(X[:1200], return_counts=True)[1] / 1200
    entropy = -(unigram * np.log(unigram)).sum()
    assert np.isfinite(model.score(X[1200:]))
    assert model.score(X[1200:]) > -2 * entropy


# -- ways to predict ------------------------------------------------------------------


def test_methods_of_prediction(sequence, fitted):
    groups = np.repeat([0, 1], 30)
    smooth = fitted.predict_proba(sequence, groups=groups)
    filtered = fitted.predict_proba(sequence, method="filter", groups=groups)
    for probs in (smooth, filtered):
        assert probs.shape == (60, fitted.n_states_ + 1)
        np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-12)
    # At the end of a sequence there is no future to know.
    np.testing.assert_allclose(smooth[[29, 59]], filtered[[29, 59]], rtol=1e-10)
    assert not np.allclose(smooth, filtered)
    for method, probs in (("smooth", smooth), ("filter", filtered)):
        states = fitted.predict(sequence, method=method, groups=groups)
        assert states.dtype == np.int32
        np.testing.assert_array_equal(states, probs.argmax(axis=1))
    # Filtering does not see what comes.
    part = fitted.predict_proba(sequence[:20], method="filter")
    np.testing.assert_allclose(part, filtered[:20], rtol=1e-12)
    assert not np.allclose(fitted.predict_proba(sequence[:20]), smooth[:20])
    np.testing.assert_array_equal(
        fitted.predict(sequence, method="viterbi"), fitted.predict(sequence)
    )
    # Step by step from the definition.
    for t in range(1, 5):
        ratio = filtered[t] / (filtered[t - 1] @ fitted.transmat_)
        # p(y | k) up to a factor depends on the symbol alone.
        again = [u for u in range(1, 30) if sequence[u, 0] == sequence[t, 0]]
        other = filtered[again[-1]] / (filtered[again[-1] - 1] @ fitted.transmat_)
        np.testing.assert_allclose(ratio / ratio[0], other / other[0], rtol=1e-9)


def test_unknown_method_of_prediction(sequence, fitted):
    with pytest.raises(ValueError, match="method='map'; expected one of 'viterbi'"):
        fitted.predict(sequence, method="map")
    with pytest.raises(ValueError, match="method='viterbi'; expected one of 'smooth'"):
        fitted.predict_proba(sequence, method="viterbi")


@pytest.mark.parametrize(
    ("X", "hole"), [([["a"], ["b"], [None]], None), ([[3], [7], [np.nan]], np.nan)]
)
def test_missing_symbols_stay_missing(X, hole):
    emission = HCRPCategorical().fit(X)
    codes = emission.encode_values(X)
    np.testing.assert_array_equal(emission.encode_values(emission.decode(codes)), codes)
    # The cell of unknown symbols has no symbol.
    decoded = emission.decode(np.array([[0], [2], [-1]]))[:, 0]
    assert decoded[0] == X[0][0]
    assert all(value is hole or np.isnan(value) for value in decoded[1:])
