"""The same seed gives the same draws, bit for bit, however the work is done."""

from __future__ import annotations

import pickle
from dataclasses import is_dataclass
from functools import partial

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import LokyBackend, MultiprocessingBackend, ThreadingBackend
from small_models import crossed

from skihmm import HCRPHMM
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import SweepInfo

BACKENDS = {
    "threading": ThreadingBackend,
    "loky": LokyBackend,
    "multiprocessing": MultiprocessingBackend,
}


make_model = partial(
    HCRPHMM,
    n_burnin=10,
    n_draws=4,
    thin=2,
    n_chains=2,
    n_particles=10,
    random_state=3,
    transitions="hcrp",
)


def leaves(value, path=""):
    """(path, bytes or number) of everything in nested records, CPU seconds left out."""
    if is_dataclass(value):
        value = vars(value)
    elif isinstance(value, SweepInfo):
        value = value._asdict()
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "seconds":
                yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{i}]")
    elif isinstance(value, np.ndarray):
        yield path, (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, float):
        yield path, value.hex()  # NaN is equal to itself
    else:
        yield path, value


def all_draws(model, chains=slice(None)):
    return dict(leaves([chain.draws for chain in model._fit_state.chains[chains]]))


def assert_same(one, two):
    """Draws, what is derived from them and what a chain would do next are equal."""
    first, second = all_draws(one), all_draws(two)
    assert first.keys() == second.keys()
    different = [path for path in first if first[path] != second[path]]
    assert different == []
    for name in ("lp", "alpha", "gamma", "n_states", "n_tables", "acceptance_rate"):
        values = getattr(one.draws_, name)
        assert values.tobytes() == getattr(two.draws_, name).tobytes()
    if one.draws_.states is not None:
        assert one.draws_.states.tobytes() == two.draws_.states.tobytes()
    for name in ("labels_", "startprob_", "transmat_"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert one.n_states_ == two.n_states_
    records = [
        dict(leaves([chain.record for chain in model._fit_state.chains])) for model in (one, two)
    ]
    assert records[0] == records[1]


def assert_goes_on(make, fit, file, few, many):
    """Chains go on bit for bit from checkpoints, and from a pickled model.

    ``make(**params)`` makes models, ``fit(model)`` fits them.  Returns the whole run, and
    the run that went on from its checkpoint.
    """
    whole = fit(make(n_draws=many))
    fit(make(n_draws=few, checkpoint=file, n_jobs=2))
    saved = fit(make(n_draws=many, checkpoint=file, n_jobs=2))
    assert_same(saved, whole)
    warm = pickle.loads(pickle.dumps(fit(make(n_draws=few, warm_start=True, n_jobs=2))))
    assert_same(fit(warm.set_params(n_draws=many - few)), whole)
    return whole, saved


@pytest.fixture(scope="module")
def reference(sequence):
    return make_model(n_chains=3, n_jobs=1).fit(sequence)


def test_comparison_sees_a_changed_bit(sequence):
    one, two = make_model().fit(sequence), make_model().fit(sequence)
    assert_same(one, two)
    sizes = two._fit_state.chains[1].draws[2].transitions["sizes"]
    sizes[-1] ^= 1
    with pytest.raises(AssertionError, match="sizes"):
        assert_same(one, two)


def test_same_seed(sequence, reference):
    assert_same(make_model(n_chains=3).fit(sequence), reference)
    other = make_model(n_chains=3, random_state=4).fit(sequence)
    assert not np.array_equal(other.draws_.lp, reference.draws_.lp)
    # Chains are different ones.
    assert len(np.unique(reference.draws_.lp[:, 0])) == 3


def test_seed_as_random_state(sequence):
    one = make_model(random_state=np.random.RandomState(5)).fit(sequence)
    two = make_model(random_state=np.random.RandomState(5)).fit(sequence)
    assert_same(one, two)
    # None takes fresh randomness, also after a seed of the global generator.
    model = make_model(random_state=None)
    lp = model.fit(sequence).draws_.lp
    assert not np.array_equal(model.fit(sequence).draws_.lp, lp)


def test_a_second_fit_starts_afresh(sequence):
    model = make_model().fit(sequence)
    model.fit(sequence[:20])
    assert_same(model.fit(sequence), make_model().fit(sequence))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_backends(sequence, reference, backend, monkeypatch):
    used = []
    configure = BACKENDS[backend].configure

    def recording(self, *args, **kwargs):
        n_jobs = configure(self, *args, **kwargs)
        used.append(n_jobs)
        return n_jobs

    monkeypatch.setattr(BACKENDS[backend], "configure", recording)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        model = make_model(n_chains=3).fit(sequence)
        score = model.score(sequence[:20])
    assert used
    assert set(used) == {2}
    assert_same(model, reference)
    assert score == reference.score(sequence[:20])


@pytest.mark.parametrize("n_jobs", [1, 2, 5, -1])
def test_n_jobs(sequence, reference, n_jobs):
    assert_same(make_model(n_chains=3, n_jobs=n_jobs).fit(sequence), reference)


def test_two_columns_and_sequences_in_parallel(sequence, global_random_seed):
    X = np.column_stack([sequence[:, 0], sequence[:, 0] % 3]).astype(float)
    X[::7, 1] = np.nan
    groups = np.repeat([0, 1, 2], 20)
    models = [
        make_model(emission="dirichlet", n_jobs=n_jobs, random_state=global_random_seed).fit(
            X, groups=groups
        )
        for n_jobs in (1, 2)
    ]
    assert_same(*models)


def test_a_chain_does_not_depend_on_the_number_of_chains(sequence, reference):
    for n_chains in (1, 2):
        fewer = make_model(n_chains=n_chains).fit(sequence)
        assert all_draws(fewer) == all_draws(reference, slice(n_chains))
    many = make_model(n_chains=5).fit(sequence)
    assert all_draws(many, slice(3)) == all_draws(reference)


def test_fewer_draws_are_the_first_ones(sequence, reference):
    some = make_model(n_chains=3, n_draws=2).fit(sequence)
    np.testing.assert_array_equal(some.draws_.lp, reference.draws_.lp[:, :2])


# -- warm start -----------------------------------------------------------------------


@pytest.mark.parametrize("thin", [1, 3])
@pytest.mark.parametrize("n_chains", [1, 2])
@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("n_burnin", [0, 5])
def test_warm_start(sequence, thin, n_chains, pickled, n_burnin):
    params = {"thin": thin, "n_chains": n_chains, "n_burnin": n_burnin}
    once = make_model(n_draws=8, **params).fit(sequence)
    twice = make_model(n_draws=4, warm_start=True, **params).fit(sequence)
    assert twice.draws_.shape == (n_chains, 4)
    if pickled:
        twice = pickle.loads(pickle.dumps(twice))
    twice.fit(sequence)
    assert twice.draws_.shape == (n_chains, 8)
    assert_same(twice, once)
    assert twice.score(sequence) == once.score(sequence)
    np.testing.assert_array_equal(twice.predict(sequence), once.predict(sequence))


def test_warm_start_many_times_in_parallel(sequence):
    once = make_model(n_draws=12, emission="dirichlet").fit(sequence)
    model = make_model(n_draws=2, emission="dirichlet", warm_start=True)
    for i in range(6):
        model.set_params(n_jobs=1 + i % 2)
        model.fit(sequence)
    assert_same(model, once)


@pytest.mark.parametrize(
    ("emission", "sampler"),
    crossed(
        [
            *("gaussian", "diagonal_gaussian", "autoregressive", "poisson", "bernoulli"),
            *("negative_binomial", "gamma", "von_mises"),
        ],
        ["auto", "beam", "stick_breaking"],
    ),
)
def test_emissions_of_numbers(sequence, tmp_path, emission, sampler):
    """Rounding errors are part of what a chain goes on with."""
    rng = np.random.default_rng(0)
    X = {
        "gaussian": 1e3 + sequence + rng.normal(size=(60, 2)),
        "diagonal_gaussian": 1e-5 * (sequence + rng.normal(size=(60, 2))),
        "autoregressive": sequence + np.cumsum(rng.normal(size=(60, 2)), axis=0),
        "poisson": rng.poisson(10 * sequence, size=(60, 2)).astype(float),
        "negative_binomial": rng.poisson(10 * sequence, size=(60, 2)) ** 2.0,
        "gamma": 1e-5 * (1 + sequence) * rng.gamma(3.0, size=(60, 2)),
        "von_mises": rng.vonmises(sequence, 3.0, size=(60, 2)),
        "bernoulli": (sequence > rng.integers(4, size=(60, 2))).astype(float),
    }[emission]
    X[[4, 30]] = np.nan
    make = partial(make_model, emission=emission, sampler=sampler, n_burnin=20, thin=3)
    once, saved = assert_goes_on(make, lambda m: m.fit(X, lengths=[25, 35]), tmp_path, 5, 12)
    assert saved.score(X) == once.score(X)


def test_sweeps_of_draws_with_another_thin(sequence):
    model = make_model(n_burnin=10, thin=2, n_draws=3, warm_start=True).fit(sequence)
    model.set_params(n_burnin=0, thin=5, n_draws=2).fit(sequence)
    np.testing.assert_array_equal(model.draws_.sweep, [[12, 14, 16, 21, 26]] * 2)


def test_warm_start_with_states_missing_and_sequences(sequence):
    X = sequence.astype(float)
    X[5:9] = np.nan
    once = make_model(n_draws=8, store_states=False).fit(X, lengths=[20, 40])
    twice = make_model(n_draws=4, store_states=False, warm_start=True)
    twice.fit(X, lengths=[20, 40]).fit(X, groups=np.repeat([0, 1], [20, 40]))
    assert_same(twice, once)


def test_warm_start_can_change_what_is_stored(sequence):
    model = make_model(warm_start=True).fit(sequence)
    model.set_params(store_states=False, n_draws=2).fit(sequence)
    assert model.draws_.shape == (2, 6)
    assert model.draws_.states is None
    assert "states" not in model.draws_.to_dict()["posterior"]
    assert model.draws_[0, 0].states is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, model: (X[:-1], {}), "X .* is not that of the earlier fit"),
        (lambda X, model: (X[::-1], {}), "X .* is not that of the earlier fit"),
        (lambda X, model: (X, {"lengths": [30, 30]}), "division into sequences"),
        (lambda X, model: (X, model.set_params(n_chains=3) and {}), "n_chains=3"),
        (
            lambda X, model: (X, model.set_params(emission="dirichlet") and {}),
            "emission or transitions",
        ),
        (
            lambda X, model: (
                X,
                model.set_params(emission=HCRPCategorical(handle_unknown="missing")) and {},
            ),
            "emission or transitions",
        ),
        (
            lambda X, model: (X, model.set_params(transitions__alpha=2.0) and {}),
            "emission or transitions",
        ),
    ],
)
def test_warm_start_needs_the_same_data_and_model(sequence, change, message):
    model = make_model(warm_start=True).fit(sequence)
    lp, score = model.draws_.lp, model.score(sequence)
    X, given = change(sequence, model)
    with pytest.raises(ValueError, match="warm_start=True continues") as error:
        model.fit(X, **given)
    assert error.match(message)
    assert error.match("warm_start=False")
    assert model.draws_.lp is lp
    assert model.score(sequence) == score
    # The remedy works.
    model.set_params(warm_start=False).fit(X, **given)


# -- scores ---------------------------------------------------------------------------


def test_scores_are_repeatable(sequence, reference):
    log_probs = reference.score_samples(sequence)
    score = reference.score(sequence)
    for n_jobs in (1, 2, None):
        model = make_model(n_chains=3, n_jobs=n_jobs).fit(sequence)
        assert model.score_samples(sequence).tobytes() == log_probs.tobytes()
        assert model.score(sequence) == score
    # Scoring has no memory, whatever is scored in between.
    reference.score(sequence[:10])
    reference.sample(5)
    assert reference.score(sequence) == score


def test_scores_after_a_fit_without_seed_are_repeatable(sequence):
    model = make_model(random_state=None).fit(sequence)
    assert model.score(sequence) == model.score(sequence)
    scorer = ParticleFilterScorer(n_particles=10)
    assert scorer(model, sequence) == scorer(model, sequence)


def test_scorer_does_not_depend_on_n_jobs(sequence, reference):
    scores = {
        ParticleFilterScorer(n_particles=10, random_state=7, n_jobs=n_jobs)(reference, sequence)
        for n_jobs in (1, 2, None)
    }
    assert len(scores) == 1


def test_global_generator_is_not_touched(sequence):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    model = make_model().fit(sequence)
    model.score(sequence)
    model.sample(3)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
