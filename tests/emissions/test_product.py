"""Mixed data and known states: exactness in every sampler, columns, parameters."""

from __future__ import annotations

import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fitting.test_reproducibility import assert_goes_on
from reference.product import Product
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from small_models import (
    GAUSSIAN,
    KNOWN,
    PARTS,
    SAMPLERS,
    Model,
    assert_caught,
    log_pair,
    log_row,
    move_value,
)

from skihmm import HCRPHMM
from skihmm.core._random import RandomStream
from skihmm.emissions import (
    AutoregressiveNormal,
    BetaBernoulli,
    DirichletCategorical,
    GammaPoisson,
    HCRPCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.emissions._encoding import encode
from skihmm.samplers import DirectAssignmentGibbs, StepwiseGibbs, StickBreakingGibbs
from skihmm.testing._probes import EmissionProbe


def believing(model, known):
    """The model with the exact answers for other known states."""
    emission = model.emission
    every, right = (
        Model(
            model.y,
            Product(emission.parts, emission.widths, states),
            model.starts,
            model.alpha,
            model.gamma,
        ).posterior
        for states in (None, known)
    )
    wrong = Model(model.y, emission, model.starts, model.alpha, model.gamma)
    wrong.__dict__["posterior"] = SimpleNamespace(
        joint={cell: right.joint.get(cell, 0.0) for cell in every.joint},
        probabilities={cell: right.probabilities.get(cell, 0.0) for cell in every.probabilities},
    )
    return wrong


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", ["stepwise", "blocked", "stick-breaking"])
@pytest.mark.parametrize("known", [None, (0, -1, -1, 1, -1, -1), (0, -1, 0, 1, 0, -1)])
def test_other_known_states_are_noticed(sampler, known):
    wrong = believing(KNOWN["known, two states"], known)
    assert_caught(SAMPLERS[sampler].make_kernel, wrong)


# -- statistics -----------------------------------------------------------------------


def random_product(rng, n, known=None):
    """n observations of three parts, some entries missing."""
    y = [
        (
            None if rng.random() < 0.1 else int(rng.integers(3)),
            None if rng.random() < 0.1 else float(rng.normal()),
            int(rng.poisson(3)),
        )
        for _ in range(n)
    ]
    return Model(tuple(y), Product(PARTS, (1, 1, 1), known))


FIRST = 2
"""The first slot of a state."""


def test_rows_are_products(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    model = random_product(rng, 40)
    labels = np.unique(rng.integers(5, size=40), return_inverse=True)[1]
    states = [model.state(0, labels)]
    for part, rows in zip(PARTS, model.emission.split(model.y), strict=True):
        states.append(Model(rows, part).state(0, labels))
    for t in range(40):
        rows = [log_row(s, t)[: FIRST + 5] for s in states]
        expected = sum(rows[1:])
        np.testing.assert_allclose(
            rows[0] - rows[0].max(), expected - expected.max(), rtol=1e-12, atol=1e-12
        )
        pairs = [log_pair(s, t, FIRST, FIRST + 3) for s in states]
        assert pairs[0] == pytest.approx(sum(pairs[1:]), abs=1e-12)


def test_log_joint_is_a_sum(global_random_seed):
    # (Without tables of emissions the transitions are seated by the same numbers.)
    rng = np.random.default_rng(global_random_seed)
    y = [(float(rng.normal()), int(rng.poisson(3))) for _ in range(30)]
    labels = np.arange(30) % 4
    nothing, *parts, whole = (
        Model(rows, emission).state(0, labels).log_joint()
        for rows, emission in (
            (((None,),) * 30, GAUSSIAN),
            (tuple((a,) for a, _ in y), GAUSSIAN),
            (tuple((b,) for _, b in y), PARTS[2]),
            (tuple(y), Product(PARTS[1:], (1, 1), tuple(np.where(labels, -1, 0)))),
        )
    )
    assert whole - nothing == pytest.approx(sum(parts) - 2 * nothing, rel=1e-12)


@pytest.mark.parametrize("known", [False, True])
def test_rollback_restores_every_bit(known, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    labels = np.arange(30) % 3
    given = tuple(np.where(rng.random(30) < 0.4, labels, -1)) if known else None
    state = random_product(rng, 30, given).state(1, labels)
    before = pickle.dumps(state.to_arrays()["emission"])
    for t in range(30):
        k = FIRST + (labels[t] + 1) % 3
        _, joined = move_value(state, t, FIRST + labels[t], k, keep=False)
        assert (joined == -np.inf) == (known and given[t] >= 0)
        assert pickle.dumps(state.to_arrays()["emission"]) == before
        assert state.check() is None


def test_records_that_contradict_known_states_are_refused(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    outcomes = set()
    for _ in range(50):
        known = rng.integers(3, size=5)
        known = np.unique(known, return_inverse=True)[1]
        known[rng.random(5) < 0.5] = -1
        labels = np.unique(rng.integers(3, size=5), return_inverse=True)[1]
        model = Model(((None,),) * 5, Product((GAUSSIAN,), (1,), tuple(known)))
        free = Model(model.y, Product((GAUSSIAN,), (1,)))
        state, arrays = model.state(0), free.state(0, labels).to_arrays()
        arrays["emission"]["parts"].append({})
        if model.emission.log_likelihood_by_tables(tuple(labels), model.y):
            state.from_arrays(arrays)
            assert state.check() is None
            outcomes.add("kept")
        else:
            with pytest.raises(ValueError, match="not the known ones"):
                state.from_arrays(arrays)
            outcomes.add("refused")
    assert outcomes == {"kept", "refused"}


# -- parts by which a state is all but impossible -------------------------------------

APART = np.repeat(np.arange(6) % 2, 50)
"""Two states in turn."""


def apart(rng, n_columns):
    """Numbers by which the two states differ in every column."""
    return 10.0 * APART[:, None] + 0.01 * rng.normal(size=(300, n_columns))


def of_numbers():
    return NormalInverseGamma(mean=5.0, strength=1.0, shape=1.5, scale=1.0)


def probe_without(t, emission, X):
    """The two states without step t."""
    stats = emission.fit(X).make_stats(encode(emission, X, np.array([0])))
    probe = EmissionProbe(stats, RandomStream(0), FIRST + 2)
    for other in np.delete(np.arange(len(X)), t):
        probe.add(other, FIRST + int(APART[other]))
    probe.commit()
    return probe


@pytest.mark.parametrize("kind", ["numbers", "symbols"])
def test_logs_of_parts_are_added_as_they_are(kind):
    # By 35 columns the step is not in the second state, by 32 others not in the first,
    # each by more than 500 nats; by the last 200 it is in no new one.
    rng = np.random.default_rng(0)
    X = np.hstack([4.5 + apart(rng, 67) / 10.0, 0.01 * rng.normal(size=(300, 200))])
    X[120, 35:67] = 10.0 - X[120, 35:67]
    if kind == "symbols":
        X[:, :67] = X[:, :67] > 5.0
    make = of_numbers if kind == "numbers" else lambda: DirichletCategorical(1e-6)
    rest = ("rest", of_numbers(), slice(67, 267))
    one = [("both", make(), slice(67)), rest]
    two = [("a", make(), slice(35)), ("b", make(), slice(35, 67)), rest]
    probe, other = (probe_without(120, ProductEmission(e), X) for e in (one, two))
    expected = probe.log_pair(120, FIRST, FIRST + 1)
    assert 20.0 < expected < 400.0
    assert other.log_pair(120, FIRST, FIRST + 1) == pytest.approx(expected, rel=1e-9)
    row = probe.log_row(120)
    assert row[FIRST] - row[FIRST + 1] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(other.log_row(120), row, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.* in states that no label has")
@pytest.mark.parametrize(
    "sampler", [StepwiseGibbs("exact"), DirectAssignmentGibbs(), StickBreakingGibbs()]
)
@pytest.mark.parametrize("kind", ["whole", "parts", "known"])
def test_a_step_of_its_own_kind_keeps_its_state(sampler, kind):
    # It is like the first state by half of the columns and like the second by the others;
    # or like the second, which by its label it is not.
    X = apart(np.random.default_rng(0), 120)
    labels, known = APART.copy(), None
    labels[120] = 2
    if kind == "known":
        known = np.full(300, -1)
        known[60], known[175] = 0, 1
        labels[120], labels[175] = APART[120], 2
    else:
        X[120, :60] = 10.0 - X[120, :60]
    emission = of_numbers()
    if kind == "parts":
        emission = ProductEmission(
            [("a", of_numbers(), slice(60)), ("b", of_numbers(), slice(60, 120))]
        )
    hmm = HCRPHMM(sampler, emission, init=labels, n_burnin=0, n_draws=1, random_state=0)
    hmm.fit(X, states=known)
    assert adjusted_rand_score(labels, hmm.labels_) == 1.0


# -- columns and parameters -----------------------------------------------------------

SHORT = {"n_burnin": 20, "n_draws": 5, "thin": 1, "n_particles": 20, "random_state": 0}


def make_frame(rng, n=200):
    """Four columns of three states; strings, numbers, counts and zeros and ones."""
    states = np.repeat(rng.integers(3, size=n // 20), 20)
    frame = pd.DataFrame(
        {
            "word": np.array(["a", "b", "c"])[(states + (rng.random(n) < 0.2)) % 3],
            "height": rng.normal(4.0 * states),
            "count": rng.poisson(1 + 9 * (states == 1)),
            "flag": (rng.random(n) < 0.1 + 0.8 * (states == 2)).astype(int),
        }
    )
    return frame, states


@pytest.fixture
def frame(global_random_seed):
    return make_frame(np.random.default_rng(global_random_seed))


def make_emission():
    return ProductEmission(
        [
            ("flags", BetaBernoulli(), ["flag"]),
            ("words", HCRPCategorical(), "word"),
            ("numbers", NormalInverseGamma(), ["height"]),
            ("counts", "poisson", ["count"]),
        ]
    )


def test_columns_by_name_place_slice_and_mask(frame):
    X, states = frame
    by_name = HCRPHMM(emission=make_emission(), **SHORT).fit(X)
    assert adjusted_rand_score(states, by_name.labels_) > 0.8
    places = ProductEmission(
        [
            ("flags", "bernoulli", -1),
            ("words", "hcrp", [True, False, False, False]),
            ("numbers", "diagonal_gaussian", slice(1, 2)),
            ("counts", GammaPoisson(), np.array([2])),
        ]
    )
    by_place = HCRPHMM(emission=places, **SHORT).fit(X.to_numpy(dtype=object))
    np.testing.assert_array_equal(by_place.labels_, by_name.labels_)
    np.testing.assert_array_equal(by_place.draws_.lp, by_name.draws_.lp)


def test_one_part_is_that_emission(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(80, 2))
    for part in (NormalInverseWishart(), NormalInverseGamma()):
        whole = HCRPHMM(emission=part, **SHORT).fit(X)
        alone = HCRPHMM(emission=ProductEmission([("all", part, [0, 1])]), **SHORT).fit(X)
        # (The last bits of rows differ: logarithms are taken once more.)
        np.testing.assert_allclose(alone.draws_.lp, whole.draws_.lp, rtol=1e-9)
        np.testing.assert_allclose(alone.score_samples(X), whole.score_samples(X))
        np.testing.assert_allclose(alone.predict_proba(X), whole.predict_proba(X))


def test_hyperparameters_of_parts(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = pd.DataFrame(rng.choice(["a", "b"], size=(60, 3)), columns=["u", "v", "w"])
    emission = ProductEmission(
        [
            ("first", "hcrp", ["u"]),
            ("plain", DirichletCategorical(1.0), ["v"]),
            ("inner", ProductEmission([("last", HCRPCategorical(7.0), [0])]), ["w"]),
        ]
    )
    settings = {**SHORT, "n_chains": 2, "random_state": global_random_seed}
    hmm = HCRPHMM(emission=emission, **settings).fit(X)
    draws = hmm.draws_
    parts = ["first__alpha", "first__gamma", "inner__last__alpha", "inner__last__gamma"]
    names = ["alpha", "gamma", *(f"emission_{part}" for part in parts)]
    assert list(draws.hyperparameters) == names
    for c, d in np.ndindex(*draws.shape):
        first, _, inner = draws[c, d].emission["parts"]
        for part, record in (("first", first), ("inner__last", inner["parts"][0])):
            for name in ("alpha", "gamma"):
                value = draws.hyperparameters[f"emission_{part}__{name}"][c, d]
                assert value == record[name]
    assert not hasattr(draws, "emission_alpha")
    assert set(names) < draws.to_dict()["posterior"].keys()
    diagnosis = hmm.diagnose()
    assert set(names) < diagnosis.table.keys()
    assert "emission_inner__last__gamma" in diagnosis._repr_html_()


def test_missing_entries_and_whole_steps(frame):
    X, states = frame
    X = X.astype(object)
    rng = np.random.default_rng(0)
    X = X.mask(rng.random(X.shape) < 0.2, None)
    X.iloc[50:60] = None
    hmm = HCRPHMM(emission=make_emission(), **SHORT).fit(X)
    assert adjusted_rand_score(states, hmm.labels_) > 0.6
    scores = hmm.score_samples(X)
    np.testing.assert_array_equal(scores[50:60], 0.0)
    is_missing = X.isna().all(axis=1).to_numpy()
    assert hmm.score(X) == pytest.approx(scores[~is_missing].mean())
    np.testing.assert_allclose(hmm.predict_proba(X).sum(axis=1), 1.0)


def test_sample_has_the_columns_of_the_data(frame):
    X, _ = frame
    hmm = HCRPHMM(emission=make_emission(), **SHORT).fit(X)
    new, _ = hmm.sample(300, random_state=1)
    assert list(new) == list(X)
    new, _ = hmm.set_output(transform="default").sample(300, random_state=1)
    assert new.shape == (300, 4)
    assert set(new[:, 0]) <= {"a", "b", "c"}
    assert all(isinstance(value, float) for value in new[:, 1])
    assert all(isinstance(value, int) for value in new[:, 2])
    assert set(new[:, 3]) <= {0, 1}
    numbers = ProductEmission([("a", "poisson", [1]), ("b", "bernoulli", [0])])
    data = X[["flag", "count"]].to_numpy()
    whole, _ = HCRPHMM(emission=numbers, **SHORT).fit(data).sample(5)
    assert whole.dtype == np.int64


def test_parameters_of_parts(frame):
    X, _ = frame
    hmm = HCRPHMM(emission=make_emission(), **SHORT)
    assert hmm.get_params()["emission__numbers__strength"] is None
    hmm.set_params(emission__numbers__strength=0.5, emission__counts__shape=2.0)
    assert hmm.emission.get_params()["counts"].shape == 2.0
    hmm.set_params(emission__words="dirichlet")
    hmm.set_params(emission__words__concentration=0.3)
    assert hmm.emission.get_params()["words__concentration"] == 0.3
    copy = clone(hmm)
    assert repr(copy) == repr(hmm)
    assert copy.emission.emissions[0][1] is not hmm.emission.emissions[0][1]
    search = GridSearchCV(
        hmm, {"emission__numbers__strength": [0.1, 1.0]}, cv=TimeSeriesSplit(2)
    ).fit(X)
    assert set(search.best_params_) == {"emission__numbers__strength"}
    fitted = search.best_estimator_
    assert pickle.loads(pickle.dumps(fitted)).score(X) == fitted.score(X)
    parts = fitted.emission_.named_emissions_
    assert list(parts) == [name for name, _, _ in fitted.emission.emissions]
    assert parts.numbers.strength == search.best_params_["emission__numbers__strength"]
    assert len(parts.numbers.means_) == fitted.n_states_
    with pytest.raises(AttributeError, match="emissions_"):
        _ = make_emission().named_emissions_


def test_resumed_chains_go_on_bit_for_bit(frame, tmp_path):
    X, _ = frame
    states = np.full(len(X), -1)
    states[:3], states[100:104] = 0, 1
    make, path = partial(HCRPHMM, emission=make_emission(), **SHORT), tmp_path / "run.npz"
    assert_goes_on(make, lambda hmm: hmm.fit(X, states=states), path, 2, 5)
    with pytest.raises(ValueError, match="another run"):
        make(checkpoint=path).fit(X)


@pytest.mark.parametrize(
    ("emissions", "error", "message"),
    [
        ([], ValueError, "one or more"),
        (None, ValueError, "expected a list of"),
        ("hcrp", ValueError, "expected a list of"),
        ([("a", "hcrp")], ValueError, "expected a list of"),
        ([(1, "hcrp", [0, 1])], ValueError, "holds the name 1"),
        ([("a__b", "hcrp", [0, 1])], ValueError, "__"),
        ([("a", "hcrp", 0), ("a", "hcrp", 1)], ValueError, "not unique"),
        ([("a", "normal", [0, 1])], ValueError, "the emission of 'a'='normal'"),
        ([("a", HCRPCategorical, [0, 1])], ValueError, "not the class"),
        ([("a", "hcrp", [0])], ValueError, r"Columns \[1\] of X have no emission"),
        ([("a", "hcrp", [0, 1]), ("b", "hcrp", 1)], ValueError, "in two groups"),
        ([("a", "hcrp", [0, 0, 1])], ValueError, "twice in group"),
        ([("a", "hcrp", [0, 2])], ValueError, "no column 2; it has 2 columns"),
        ([("a", "hcrp", [0, -3])], ValueError, "no column -3; it has 2 columns"),
        ([("a", "hcrp", "b")], ValueError, "columns of X have none"),
        ([("a", "hcrp", [True])], ValueError, "a mask of 1 entries"),
        ([("a", "hcrp", [])], ValueError, "gets no column"),
        ([("a", "hcrp", [False, False])], ValueError, "gets no column"),
        ([("a", "hcrp", None)], TypeError, "names or indices"),
        ([("a", "hcrp", [0.0, 1.0])], TypeError, "names or indices"),
        ([("a", "hcrp", [0, True])], TypeError, "names or indices"),
    ],
)
def test_what_is_no_product(emissions, error, message):
    X = np.zeros((10, 2), dtype=int)
    with pytest.raises(error, match=message):
        HCRPHMM(emission=ProductEmission(emissions), **SHORT).fit(X)


def test_unknown_names_of_columns(frame):
    emission = ProductEmission([("a", "hcrp", ["word", "size"])])
    with pytest.raises(ValueError, match="X has no column 'size'; its columns are"):
        HCRPHMM(emission=emission, **SHORT).fit(frame[0])
    # Without an estimator around it.
    assert make_emission().fit(frame[0]).encode_values(frame[0]).shape == (200, 4)


def test_errors_name_what_a_part_wants(frame):
    X = frame[0].assign(count=-1)
    with pytest.raises(ValueError, match="Negative values in data"):
        HCRPHMM(emission=make_emission(), **SHORT).fit(X)


# -- prediction and imputation --------------------------------------------------------


def test_columns_of_predictions_are_those_of_the_data(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = np.repeat(rng.integers(3, size=20), 5)[:, None] * [4.0, -9.0, 1.0]
    X += rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.2] = np.nan
    turned = [2, 0, 1]
    plain = HCRPHMM(emission=NormalInverseGamma(), **SHORT).fit(X[:, turned])
    product = ProductEmission([("all", NormalInverseGamma(), turned)])
    hmm = HCRPHMM(emission=product, **SHORT).fit(X)
    np.testing.assert_allclose(hmm.draws_.lp, plain.draws_.lp)
    mean, expected = (
        model.predict_next(data, 3).mean() for model, data in ((hmm, X), (plain, X[:, turned]))
    )
    np.testing.assert_allclose(mean[:, turned], expected)
    for method in ("expectation", "sample"):
        np.testing.assert_allclose(
            hmm.impute(X, method=method)[:, turned], plain.impute(X[:, turned], method=method)
        )


def test_predictions_of_mixed_data(frame):
    X, _ = frame
    hmm = HCRPHMM(emission=make_emission(), **SHORT).fit(X)
    following = hmm.predict_next(X, n_steps=2)
    probs = following.proba(0)
    assert probs.shape == (2, 4)  # a, b, c and an unknown word
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    for column in (1, 2, 3):
        with pytest.raises(ValueError, match=f"Column {column} holds numbers"):
            following.proba(column)
    mean = following.mean()
    assert np.isnan(mean[:, 0]).all()
    assert (mean[:, 2] > 0).all()
    assert ((mean[:, 3] > 0) & (mean[:, 3] < 1)).all()
    futures = following.sample(400, random_state=0)
    shares = [(futures[:, 1, 0] == word).mean() for word in "abc"]
    np.testing.assert_allclose(shares, probs[1, :3] / probs[1, :3].sum(), atol=0.1)
    for c in (1, 2, 3):
        values = futures[:, 0, c].astype(float)
        assert abs(values.mean() - mean[0, c]) < 5 * values.std() / 20 + 1e-12
    # Words alone: what is missing has probability one.
    words = pd.DataFrame({name: [None] * 2 for name in X.columns}).assign(word=["a", "b"])
    np.testing.assert_allclose(following.log_prob(words), np.log([probs[0, 0], probs[1, 1]]))


@pytest.mark.parametrize("method", ["expectation", "sample"])
def test_imputation_of_mixed_data(method, frame):
    X, _ = frame
    rng = np.random.default_rng(1)
    holes = X.astype(object).mask(rng.random(X.shape) < 0.2, None)
    hmm = HCRPHMM(emission=make_emission(), **{**SHORT, "n_burnin": 100}).fit(holes)
    filled = hmm.impute(holes, method=method).to_numpy()
    is_missing = holes.isna().to_numpy()
    np.testing.assert_array_equal(filled[~is_missing], holes.to_numpy()[~is_missing])
    assert set(filled[:, 0]) <= {"a", "b", "c"}
    assert all(value == int(value) >= 0 for value in filled[:, 2])
    assert set(filled[:, 3]) <= {0, 1}
    # Better than words at random, and than the mean height.
    right = filled[:, 0] == X["word"]
    assert right[is_missing[:, 0]].mean() > 0.5
    error = (filled[:, 1].astype(float) - X["height"])[is_missing[:, 1]]
    assert np.sqrt((error**2).mean()) < 0.8 * X["height"].std()


def test_slices_of_names():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 4)), columns=list("abcd"))
    for first, rest in [(slice("a", "b"), slice("c", None)), (slice("b"), slice(2, 4))]:
        parts = [("x", "gaussian", first), ("y", "gaussian", rest)]
        fitted = ProductEmission(parts).fit(X).emissions_
        assert [places.tolist() for *_, places in fitted] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="X has no column 'e'; its columns are"):
        ProductEmission([("x", "gaussian", slice("a", "e"))]).fit(X)


def test_products_in_products_are_products_of_all_parts(rng):
    level = 4.0 * (np.arange(160) // 20 % 2)
    who = np.repeat(np.arange(4), 40)
    X = np.column_stack(
        [
            level + who + rng.normal(size=160),
            rng.poisson(2 + level),
            rng.random(160) < level / 8,
            who,
        ]
    )
    parts = [
        ("level", NormalInverseGamma(subject_feature=3), [0]),
        ("count", GammaPoisson(), [1]),
    ]
    flat = ProductEmission([*parts, ("symbol", HCRPCategorical(), [2])])
    inner = ProductEmission([("symbol", HCRPCategorical(), [1]), ("level", parts[0][1], [0])])
    nested = ProductEmission([("count", GammaPoisson(), [1]), ("of", inner, [0, 2])])
    fits = [
        HCRPHMM(emission=emission, n_burnin=30, n_draws=20, random_state=0).fit(X, groups=who)
        for emission in (flat, nested)
    ]
    one, other = fits
    assert one.n_states_ == other.n_states_ == 2
    assert adjusted_rand_score(one.labels_, other.labels_) == 1.0
    assert sorted(other.emission_.state_parameters) == [
        "count__rates_", "of__level__covariances_", "of__level__means_",
    ]  # fmt: skip
    assert {name.replace("of__", "") for name in other.draws_.hyperparameters} == {
        *one.draws_.hyperparameters
    }
    scores = [hmm.score_samples(X, groups=who) for hmm in fits]
    np.testing.assert_allclose(scores[0].mean(), scores[1].mean(), atol=0.05)
    assert other.residuals(X, groups=who).shape == (160, 3)
    codes = other.emission_.encode_values(X[:, :3])
    np.testing.assert_array_equal(codes, X[:, [1, 2, 0]])
    np.testing.assert_array_equal(other.emission_.decode(codes), X[:, :3])
    assert str(one.summary()).count("level") == str(other.summary()).count("level")


def test_columns_are_asked_for_the_values_without_their_inputs(monkeypatch):
    asked, columns = set(), ProductEmission.columns

    def recorded(self, n_columns):
        asked.add(n_columns)
        return columns(self, n_columns)

    monkeypatch.setattr(ProductEmission, "columns", recorded)
    X = np.random.default_rng(0).normal(size=(30, 3))
    emission = ProductEmission([("x", AutoregressiveNormal(2), [0, 1]), ("y", "gaussian", [2])])
    hmm = HCRPHMM(emission=emission, n_burnin=2, n_draws=2, random_state=0).fit(X)
    assert np.isfinite(hmm.score(X))
    assert hmm.sample(5)[0].shape == (5, 3)
    assert asked == {3}
