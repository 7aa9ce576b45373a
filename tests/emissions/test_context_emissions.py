"""Symbols that depend on contexts: oracle, statistics, concentrations, planted errors."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import errors
import native
import numpy as np
import pytest
from reference.context_emissions import (
    MODELS,
    ContextEmission,
    concentration_laws,
    evidence_continued,
    naive_of,
    restaurant_of,
)
from reference.enumeration import (
    START,
    GammaPrior,
    HCRPEmission,
    as_rows,
    concentration_posterior,
    log_likelihood,
    root_concentration_posterior,
    set_partitions,
)
from reference.seating import NaiveHMM, all_outcomes
from small_models import Model, assert_caught, assert_follow, log_pair, log_row

from skihmm._draws import narrow
from skihmm._records import map_integers
from skihmm.core._franchise import Franchise
from skihmm.core._particle_filter import filter_particles, simulate
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import HCRPCategorical
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.samplers import StepwiseGibbs
from skihmm.testing import check_emission

ONE_COLUMN = [name for name in MODELS if "two columns" not in name]


# -- the oracle -----------------------------------------------------------------------


def seatings(emission, x, y):
    """All seatings of symbols given the states, ``[(probability, tree)]``."""

    def seat(choose):
        tree, p = emission.tree(), 1.0
        for k, w, contexts in zip(x, y, emission.columns, strict=True):
            if w is not None:
                v = restaurant_of(contexts, k)
                p *= tree.get_prob(v, w)
                tree.add_customer(v, w, choose)
        return p, tree

    return [(q * p, tree) for q, (p, tree) in all_outcomes(seat)]


def law_of(ways):
    """``{e: p(y, e)}``."""
    law: dict = defaultdict(float)
    for p, tree in ways:
        law[tree.n_tables + 6 * tree.n_deep_tables] += p
    return law


@pytest.mark.parametrize("name", ONE_COLUMN)
def test_walk_over_seatings_against_closed_forms(name):
    """Sizes of tables, and Stirling sums with the tables of every depth."""
    m = MODELS[name]
    for x in set_partitions(m.n_steps):
        ways, by_seating = seatings(m.emission, x, m.y), defaultdict(float)
        trees = {}
        for p, tree in ways:
            tree.check()
            key = tuple(sorted((v, w, *sorted(s)) for (v, w), s in tree.tables.items()))
            by_seating[key] += p
            trees[key] = tree
        exact = m.emission.log_likelihood_by_tables(x, m.y)
        law = {e: math.exp(p) for e, p in exact.items()}
        assert law_of(ways) == pytest.approx(law, rel=1e-12)
        for key, tree in trees.items():
            log_p = tree.log_joint() + tree.log_n_identities()
            assert by_seating[key] == pytest.approx(math.exp(log_p), rel=1e-12)


def test_without_contexts_it_is_the_plain_emission():
    """And a missing context is one that occurs once."""
    y = (0, 1, 0, 0)
    plain = HCRPEmission(2, 0.8, 1.5)
    missing = ContextEmission(2, (0.8, 9.0), 1.5, ((-1,),) * 4)
    some, once = (
        ContextEmission(2, (0.8, 9.0), 1.5, ((0,), (u,), (0,), (v,))) for u, v in ((-1, -1), (1, 2))
    )
    for x in set_partitions(4):
        exact = log_likelihood(x, y, plain)
        assert log_likelihood(x, y, missing) == pytest.approx(exact, rel=1e-12)
        exact = log_likelihood(x, y, once)
        assert log_likelihood(x, y, some) == pytest.approx(exact, rel=1e-12)


# -- the statistics -------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_compiled_statistics_against_the_naive_tree(name):
    m = MODELS[name]
    rows = as_rows(m.y)
    for seed in range(3):
        state = m.state(seed)
        kernel = StepwiseGibbs().make_kernel(state)
        for _ in range(5):
            kernel.sweep(state)
        state.canonicalise()
        assert state.check() is None
        record = state.to_arrays()["emission"]
        trees = [naive_of(m.emission, record, c) for c in range(len(rows[0]))]
        transitions = Model((None,) * m.n_steps, HCRPEmission(2), m.starts, m.alpha, m.gamma).state(
            0
        )
        arrays = state.to_arrays()
        arrays["emission"] = transitions.to_arrays()["emission"]
        transitions.from_arrays(arrays)
        own = state.log_joint() - transitions.log_joint()
        assert own == pytest.approx(sum(t.log_joint() for t in trees), rel=1e-12)
        for t, contexts in enumerate(m.emission.columns):
            expected = np.zeros(3 + state.n_states)
            for slot in range(len(expected)):
                v = restaurant_of(contexts, slot - 2 if slot > 1 else "new")
                expected[slot] = sum(
                    math.log(tree.get_prob(v, w))
                    for tree, w in zip(trees, rows[t], strict=True)
                    if w is not None
                )
            found = log_row(state, t)[: len(expected)]
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
            pair = log_pair(state, t, 2, len(expected) - 1)
            assert pair == pytest.approx(expected[2] - expected[-1], abs=1e-12)
        for k in range(state.n_states):
            for contexts in {*m.emission.columns, (5,) * len(m.emission.columns[0])}:
                probs = state.emission.predictives(
                    np.array([2 + k], dtype=np.int32), np.array(contexts)
                )
                seen = [u if u < 5 else -1 for u in contexts]
                v = restaurant_of(seen, k)
                for tree, column in zip(trees, probs, strict=True):
                    naive = [tree.get_prob(v, w) for w in range(m.emission.n_symbols)]
                    np.testing.assert_allclose(column[0], naive, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_contexts", [1, 2])
def test_the_emission_keeps_the_laws_of_emissions(n_contexts):
    rng, rows = np.random.default_rng(0), np.arange(40)
    X = rng.integers(4, size=(40, n_contexts)).astype(float)
    X[3] = np.nan
    contexts = np.stack([rows % 3, rows % 5 % 2], axis=1).astype(float)
    contexts[::4, 1] = np.nan
    emission = HCRPCategorical(
        context_features=[0, 1][:n_contexts], context_alpha=0.8, concentration_prior=None
    )
    check_emission(emission, np.hstack([contexts[:, :n_contexts], X]))


# -- concentrations -------------------------------------------------------------------

PRIOR = GammaPrior(1.5, 1.0)


def concentrations_of(state):
    """Of the top and of depth 1, 2, ..., after a draw."""
    state.draw_hidden()
    now = state.to_arrays()["emission"]
    return [now["gamma"], now["alpha"], *now["context_alpha"]]


@pytest.mark.statistical
def test_concentrations_at_a_fixed_seating():
    """Every depth has the sizes and the tables of all its restaurants."""
    rng = np.random.default_rng(5)
    columns = [(int(u), int(v)) for u, v in rng.integers([3, 2], size=(40, 2))]
    columns[7], columns[9] = (-1, 0), (1, -1)
    emission = ContextEmission(4, (1.0, 1.0, 1.0), 1.0, tuple(columns))
    m = Model(tuple(rng.integers(4, size=40).tolist()), emission)
    labels = np.unique(rng.integers(4, size=40), return_inverse=True)[1]

    def chain(seed):
        stats = emission.stats(m.y, (PRIOR.shape, PRIOR.rate))
        state = ChainState(np.array([0]), Franchise(), stats, RandomStream(1))
        state.start_from(labels)
        state.stream.state = RandomStream(seed).state
        return state

    state = chain(0)
    tree = naive_of(emission, state.to_arrays()["emission"])
    laws = [root_concentration_posterior(tree.top.values(), 4, PRIOR)]
    for depth in (1, 2, 3):
        sizes, n_tables = defaultdict(int), 0
        for (v, _), tables in tree.tables.items():
            if len(v[1]) == depth - 1:
                sizes[v] += sum(tables)
                n_tables += len(tables)
        laws.append(concentration_posterior(sizes.values(), n_tables, PRIOR))

    assert_follow(laws, lambda seed: partial(concentrations_of, chain(seed)), 800, n_burnin=50)


@pytest.mark.statistical
def test_concentrations_of_whole_chains():
    m = MODELS["contexts of symbols, missing"]

    def start(seed):
        stats = m.emission.stats(m.y, (PRIOR.shape, PRIOR.rate))
        state = ChainState(
            np.array(m.starts), Franchise(m.alpha, m.gamma), stats, RandomStream(seed)
        )
        state.start_from(np.zeros(m.n_steps, dtype=int))
        kernel = StepwiseGibbs().make_kernel(state)

        def draw():
            kernel.sweep(state)
            return concentrations_of(state)

        return draw

    assert_follow(concentration_laws(m, PRIOR), start, 1500)


def test_trees_of_records():
    """Arrays of any width are read, and garbage is refused."""
    codes, contexts = [[0]] * 5, [[0, 0], [-1, 1], [1, 0], [0, 1], [2, -1]]

    def stats(n):
        return categorical_stats(
            np.array(codes[:n], dtype=np.int32).reshape(-1, 1),
            [2],
            1.0,
            contexts=np.array(contexts[:n], dtype=np.int32).reshape(-1, 2),
            context_alpha=(1.0, 2.0),
        )

    no_labels = np.array([-1, 0], dtype=np.int32)
    record = map_integers(stats(5).to_arrays(no_labels), narrow)
    parents, values = record["contexts"]["parents"], record["contexts"]["values"]
    assert parents[1].dtype == np.uint8
    assert [*zip(parents[1].tolist(), values[1].tolist(), strict=True)] == [(0, 0), (1, 0), (0, 1)]
    other = stats(0)
    other.load(record, 0)
    assert str(other.to_arrays(no_labels)["contexts"]) == str(
        stats(5).to_arrays(no_labels)["contexts"]
    )
    for wrong in (
        None,
        {"parents": parents},
        {"parents": parents, "values": values[:1]},
        {"parents": [parents[0], parents[1] + 3], "values": values},
        {"parents": parents, "values": [values[0], values[1][:2]]},
        {"parents": parents, "values": [values[0], values[1].astype(int) - 1]},
        {"parents": [parents[0], 0 * parents[1]], "values": [values[0], 0 * values[1]]},
        {"parents": parents, "values": [values[0].astype(float), values[1]]},
    ):
        with pytest.raises(ValueError, match="contexts"):
            stats(5).load({**record, "contexts": wrong}, 0)


# -- particle filters -----------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("seated", [False, True])
def test_particle_filters_are_unbiased(seated):
    """The first step is exact, and the product of all unbiased, in new contexts too."""
    m = MODELS["contexts of symbols, missing"]
    state = m.state(3)
    kernel = StepwiseGibbs().make_kernel(state)
    for _ in range(5):
        kernel.sweep(state)
    state.canonicalise()
    arrays = state.to_arrays()
    hmm = NaiveHMM(m.y, HCRPEmission(3), m.starts, m.alpha, m.gamma, labels=(), choose=None)
    tree = m.emission.tree()
    if seated:
        tree = naive_of(m.emission, arrays["emission"])
        seat_transitions(hmm.transitions, arrays)
    y, contexts = (0, 1, 0), ((7,), (0,), (7,))
    exact = [evidence_continued(hmm, tree, y[:n], contexts) for n in (1, 3)]
    stats = replace(m.emission, columns=contexts).stats(y)
    found = []
    for seed in range(400):
        log_predictive, _ = filter_particles(
            stats,
            [0],
            RandomStream(seed),
            n_particles=5,
            transitions=Franchise(m.alpha, m.gamma),
            seating=arrays if seated else None,
        )
        found.append(np.exp(log_predictive.cumsum()[[0, 2]]))
    found = np.array(found)
    np.testing.assert_allclose(found[:, 0], exact[0], rtol=1e-12)
    error = found[:, 1].std() / np.sqrt(len(found))
    assert abs(found[:, 1].mean() - exact[1]) < 4 * error
    assert error < 0.02 * exact[1]


def seat_transitions(transitions, arrays):
    record, n_states = arrays["transitions"], arrays["n_states"]
    sizes = iter(record["sizes"].tolist())
    for j, k, m in zip(
        *(record[key].tolist() for key in ("rows", "dishes", "n_tables")), strict=True
    ):
        row = START if j == n_states else j
        transitions.tables[row, k] = [next(sizes) for _ in range(m)]
        transitions.row_total[row] += sum(transitions.tables[row, k])
        transitions.dish_tables[k] += m
        transitions.n_tables += m


@pytest.mark.statistical
def test_simulated_symbols_have_their_law():
    """Jointly, in contexts that are known and in a new one."""
    emission = MODELS["contexts of symbols"].emission
    stats = emission.stats((0, 1, 0, 1, 1))
    state = ChainState(np.array([0]), Franchise(), stats, RandomStream(0))
    state.start_from(np.zeros(5, dtype=int))
    arrays = state.to_arrays()
    drawn_stats = replace(emission, columns=((0,), (1,), (4,))).stats((0, 0, 0))
    n = 2000
    stream = RandomStream(2)
    drawn = np.array([simulate(drawn_stats, [2], stream, arrays)[0][:, 0] for _ in range(n)])
    tree = naive_of(emission, arrays["emission"])
    transitions = NaiveHMM(((0,),), HCRPEmission(2), labels=(), choose=None).transitions
    seat_transitions(transitions, arrays)
    model = SimpleNamespace(transitions=transitions)
    for path in itertools.product((0, 1), repeat=3):
        p = evidence_continued(model, tree, path, ((0,), (1,), (4,)))
        share = (drawn == path).all(axis=1).mean()
        assert abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / n)


# -- planted errors in native code ----------------------------------------------------

NATIVE = errors.TREE | {
    "the context of the step before": [
        (
            "places of symbols",
            "PLACE\n"
            "if (places_.size() > 1)\n"
            "    std::rotate(places_.begin(), places_.end() - 1, places_.end());",
        )
    ],
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("error", NATIVE)
def test_planted_errors_of_native_code_are_caught(error):
    edited = native.planted("emissions._categorical_stats", *NATIVE[error])
    models = [MODELS[name] for name in ("contexts of symbols", "contexts of symbols, missing")]
    wrong = [
        replace(m, emission=replace(m.emission, make_stats=edited.categorical_stats))
        for m in models
    ]
    assert_caught(StepwiseGibbs().make_kernel, *wrong, n_sweeps=10_000)
