"""Transitions that depend on contexts: oracle, law, kernels and chains."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import errors
import native
import numpy as np
import pytest
from extension.random_scan import SequentialBlocks
from reference.coins import DRAW, STAY, ways_to_enter
from reference.contexts import (
    CoinContextModel,
    ContextModel,
    closed_form,
    concentration_laws,
    evidence_continued,
    leaf_of,
)
from reference.enumeration import (
    START,
    DirichletEmission,
    GammaPrior,
    HCRPEmission,
    concentration_posterior,
    log_likelihood,
    log_prior_by_tables,
    set_partitions,
)
from reference.seating import NaiveHMM, all_outcomes, random_choices
from small_models import (
    assert_caught,
    assert_check_notices,
    assert_exact,
    assert_follow,
    crossed,
    make_stats,
)

from skihmm import HCRPHMM
from skihmm._data.contexts import StepContexts
from skihmm._using.log_joint import log_seatings
from skihmm.core._particle_filter import filter_particles
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.emissions import NormalInverseGamma
from skihmm.samplers import BlockedBeam, BlockedGibbs, StepwiseGibbs, StepwiseSlice
from skihmm.samplers._kernels import InterleavedKernel
from skihmm.transitions import HCRPTransitions


def model(columns, order="state", starts=(0,), alpha=1.5, gamma=1.0, context_alpha=None):
    y = (0, 1, 1, 0, 1)[: len(columns)]
    n_columns = len(columns[0])
    if context_alpha is None:
        context_alpha = (2.0, 0.7)[:n_columns]
    return ContextModel(
        y,
        DirichletEmission(2, 0.7),
        starts,
        alpha,
        gamma,
        columns=columns,
        order=order,
        context_alpha=context_alpha,
    )


ONE = ((0,), (1,), (0,), (0,))
TWO = ((0, 0), (1, 1), (0, 0), (0, 1))
MISSING = ((0, 1), (-1, 0), (0, -1), (0, 1))
MODELS = {
    "three levels": model(ONE),
    "three levels, two sequences": model(ONE, starts=(0, 2), alpha=3.0, gamma=2.0),
    "context first": model(ONE, "context"),
    "four levels": model(TWO),
    "four levels, context first": model(TWO, "context", alpha=2.0, gamma=3.0),
    "missing": model(MISSING),
    "missing, context first": model(MISSING, "context", gamma=2.0),
    "constant": model(((0,),) * 4, gamma=2.0),
}
# With coins in front of the restaurants.
COINS = {
    "coins": CoinContextModel(
        (0, 1, 0, 1, 1), HCRPEmission(2, 0.5, 1.0), (0,), 2.0, 1.5,
        columns=((0,), (1,), (1,), (1,), (0,)), context_alpha=(1.5,),
        kappa=2.0, omega=0.8,
    ),
    "coins, context first": CoinContextModel(
        (0, None, 1, 0, 0), DirichletEmission(3, 0.7), (0, 3), 1.0, 2.0,
        columns=((0,), (1,), (0,), (-1,), (0,)), order="context", context_alpha=(3.0,),
        kappa=0.5, omega=1.5,
    ),
    "coins, missing": CoinContextModel(
        (0, 0, 1, 1), DirichletEmission(2, 0.4), (0,), 0.8, 2.0,
        columns=((0, 0), (-1, 0), (0, 1), (0, 1)), context_alpha=(0.5, 2.0),
        kappa=1.0, omega=2.0,
    ),
}  # fmt: skip


# -- the oracle -----------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_walk_over_seatings_against_closed_forms(name):
    """Sizes of tables, and Stirling sums with the customers of every depth."""
    m = MODELS[name]
    law: dict = defaultdict(float)
    scale = math.exp(m.posterior.log_evidence)
    for hmm, probability in m.seatings.values():
        hmm.transitions.check()
        log_p = log_likelihood(hmm.x, hmm.y, m.emission)
        log_p += hmm.transitions.log_joint() + hmm.transitions.log_n_identities()
        assert math.exp(log_p) == pytest.approx(probability * scale, rel=1e-12)
        deep = hmm.transitions.n_deep_tables
        law[hmm.labels, hmm.transitions.n_tables + 8 * deep, 0] += probability
    assert law == pytest.approx(m.posterior.joint, rel=1e-12)


def test_two_levels_are_the_plain_model():
    """Contexts that are all missing."""
    columns = ((-1, -1),) * 4
    for x in set_partitions(4):
        plain = {(m, 0): math.exp(p) for m, p in log_prior_by_tables(x, (0, 2), 1.5, 0.8).items()}
        law = closed_form(x, (0, 2), columns, 0, (1.5, 9.0, 9.0), 0.8)
        assert law == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("order", ["state", "context"])
def test_missing_is_a_context_used_once(order):
    missing = model(((0,), (-1,), (0,), (-1,)), order)
    once = model(((0,), (1,), (0,), (2,)), order)
    exact = once.posterior.probabilities
    assert missing.posterior.probabilities == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("name", ["three levels", "four levels, context first"])
def test_sum_over_seatings_with_the_same_tables(name):
    m = MODELS[name]
    state, naive = random_state(m, 2)

    def tables(hmm):
        names = {START: -1} | {k: i for i, k in enumerate(dict.fromkeys(hmm.x))}
        return hmm.labels, {
            (names.get(v[0]), v[1], names[k]): (sum(sizes), len(sizes))
            for (v, k), sizes in hmm.transitions.tables.items()
        }

    same = [p for hmm, p in m.seatings.values() if tables(hmm) == tables(naive)]
    record = state.to_arrays()["transitions"]
    found = state.log_joint() + log_seatings([record, *record["levels"]])
    assert found == pytest.approx(math.log(sum(same)) + m.posterior.log_evidence)


# -- the law --------------------------------------------------------------------------


def random_state(m, seed, n_sweeps=5):
    """A compiled chain, and the naive one with its seating."""
    state = m.state(seed)
    kernel = StepwiseGibbs().make_kernel(state)
    for _ in range(n_sweeps):
        kernel.sweep(state)
    state.canonicalise()
    return state, naive_of(m, state.to_arrays())


def naive_of(m, arrays) -> NaiveHMM:
    naive = m.naive(arrays["states"].tolist(), random_choices(np.random.default_rng(0)))
    naive.transitions = m.tree()
    naive.transitions.tables = m.tables_of(arrays)
    for (v, k), sizes in naive.transitions.tables.items():
        if naive.transitions.parent(v) is None:
            naive.transitions.top[k] += len(sizes)
    return naive


def dense_law(m, arrays, draws):
    """p(label | label before), given the draws: of a new label, the start and all states."""
    if not hasattr(m, "kappa"):
        return draws
    record = arrays["transitions"]
    stays = m.kappa + np.r_[0, 0, record["stays"]]
    stay = stays / (stays + m.omega + np.r_[0, 0, record["draws"][:-1]])
    stay[1] = 0.0
    return np.diag(stay) + (1 - stay)[:, None] * draws


@pytest.mark.parametrize("name", MODELS | COINS)
def test_compiled_law_against_the_naive_one(name):
    m, rng = (MODELS | COINS)[name], np.random.default_rng(0)
    for seed in range(4):
        state, naive = random_state(m, seed)
        arrays = state.to_arrays()
        assert state.check() is None
        lp = naive.transitions.log_joint()
        if hasattr(m, "kappa"):
            kinds = np.where(arrays["stayed"], STAY, DRAW)
            lp += m.log_coins(state.packed_labels.tolist(), kinds.tolist())
        emitted = m.emission.log_likelihood_by_tables(tuple(state.packed_labels.tolist()), m.y)
        if not isinstance(m.emission, HCRPEmission):
            assert state.log_joint() == pytest.approx(lp + sum(emitted.values()), rel=1e-12)
        labels = ["new", START, *range(state.n_states)]
        n, n_slots = len(labels), 2 + state.n_states + 8 + state.n_states // 16
        for t, starts in itertools.product(range(m.n_steps), (False, True)):
            draws = np.array(
                [[0.0 if k == START else prob(naive, t, j, k) for k in labels] for j in labels]
            )
            dense, is_start = dense_law(m, arrays, draws), np.arange(n) == 1
            weights, values = np.zeros((2, n_slots))
            # A new sequence begins, or a state goes on.
            weights[:n] = rng.random(n) * (is_start if starts else ~is_start)
            values[:n] = rng.random(n) * ~is_start
            rows, probs, pushed, pulled, best, argmax = native.moves.passes_at(
                state.transitions, t, weights, values
            )
            others = ~is_start
            np.testing.assert_allclose(rows[:n, :n][:, others], dense[:, others], rtol=1e-12)
            np.testing.assert_allclose(probs[:n, :n][:, others], dense[:, others], rtol=1e-12)
            products = weights[:n, None] * dense
            np.testing.assert_allclose(pushed[:n], products.sum(axis=0), rtol=1e-12)
            np.testing.assert_allclose(pulled[:n], dense @ values[:n], rtol=1e-12)
            largest = products.max(axis=0)[others]
            np.testing.assert_allclose(best[:n][others], largest, rtol=1e-12)
            found = products[argmax[:n], range(n)][others]
            np.testing.assert_allclose(found, largest, rtol=1e-12)


def prob(naive, t, j, k):
    return naive.transitions.get_prob(naive.row_of(t, j), k)


# -- kernels --------------------------------------------------------------------------


def test_slices_leave_a_run_that_the_data_exclude():
    """By so much that the products of its observations' weights underflow."""
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 30)
    X = 8.0 * states[:, None] + rng.standard_normal((120, 20))
    wrong = states.copy()
    wrong[10:14] = 1
    hmm = HCRPHMM(
        emission=NormalInverseGamma(mean=0.0, strength=0.01, shape=1.5, scale=1.0),
        transitions=HCRPTransitions(context_features=[20]),
        sampler=BlockedBeam(8),
        init=wrong,
        n_burnin=0,
        n_draws=10,
        random_state=0,
    )
    (path,) = hmm.fit(np.column_stack([X, np.arange(120) % 2])).draws_.states[:, -1]
    assert (path[:30] != path[40]).all()


# -- chains ---------------------------------------------------------------------------

CHAINS = {
    "three levels": ContextModel(
        (0, 1, 0, 1, 1), HCRPEmission(2, 0.5, 1.0), (0,), 2.0, 1.5,
        columns=((0,), (1,), (0,), (1,), (0,)), context_alpha=(1.5,),
    ),
    "context first": ContextModel(
        (0, 1, 1, 0, None), DirichletEmission(3, 0.7), (0,), 1.0, 2.0,
        columns=((0,), (0,), (0,), (1,), (-1,)), order="context", context_alpha=(3.0,),
    ),
    "missing": ContextModel(
        (0, 0, 1, 1, 0), DirichletEmission(2, 0.4), (0,), 0.8, 2.0,
        columns=((0,), (-1,), (0,), (1,), (-1,)), context_alpha=(0.5,),
    ),
}  # fmt: skip
SAMPLERS = {
    "exact": StepwiseGibbs().make_kernel,
    "step-wise": StepwiseGibbs("rcd").make_kernel,
    "slice": StepwiseSlice().make_kernel,
    "blocks": BlockedGibbs(3).make_kernel,
    "beam": BlockedBeam(3).make_kernel,
    "split-merge": lambda state: InterleavedKernel(None, 5),
    "blocks and split-merge": BlockedGibbs(2, split_merge_rate=2).make_kernel,
}
RUNS = {
    "exact and runs": StepwiseGibbs(run_split_merge_rate=1).make_kernel,
    "blocks and runs": BlockedGibbs(3, run_split_merge_rate=1).make_kernel,
}
# Least acceptance by model; see test_dwell_times.py.
ACCEPTANCE = {
    "step-wise": (0.97, 0.96, 0.94),
    "blocks": (0.80, 0.90, 0.77),
}


@pytest.mark.parametrize("name", COINS)
def test_walk_over_seatings_with_coins(name):
    m = COINS[name]
    assert sum(m.posterior.joint.values()) == pytest.approx(1, rel=1e-12)
    law: dict = defaultdict(float)
    for x in set_partitions(m.n_steps):
        for kinds in ways_to_enter(x, m.starts):

            def seat(choose, x=x, kinds=kinds):
                tree, p = m.tree(), 1.0
                for t, kind in enumerate(kinds):
                    if kind == DRAW:
                        row = m.row_of(t, START if t in m.starts else x[t - 1])
                        p *= tree.get_prob(row, x[t])
                        tree.add_customer(row, x[t], choose)
                return tree, p

            coins = math.exp(m.log_coins(x, kinds))
            for q, (tree, p) in all_outcomes(seat):
                extra = 8 * (tree.n_deep_tables + kinds.count(STAY))
                law[x, tree.n_tables + extra] += p * q * coins
    emitted = {x: m.emission.log_likelihood_by_tables(x, m.y) for x in set_partitions(m.n_steps)}
    law = {
        (*cell, e): p * math.exp(log_q - m.posterior.log_evidence)
        for cell, p in law.items()
        for e, log_q in emitted[cell[0]].items()
    }
    assert m.posterior.joint == pytest.approx(law, rel=1e-11)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "sampler"),
    [*crossed(COINS, [*SAMPLERS, *RUNS]), *crossed(CHAINS, RUNS)],
)
def test_coins_and_runs_have_the_exact_posterior(name, sampler):
    found = assert_exact((CHAINS | COINS)[name], (SAMPLERS | RUNS)[sampler], n_sweeps=600)
    if sampler in ACCEPTANCE and name not in CHAINS:
        assert found.acceptance >= ACCEPTANCE[sampler][[*COINS].index(name)]


@pytest.mark.statistical
def test_moves_of_python_samplers():
    assert_exact(CHAINS["missing"], lambda state: SequentialBlocks(), n_sweeps=500)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "sampler"), crossed(CHAINS, SAMPLERS))
def test_chains_have_the_exact_posterior(name, sampler):
    """With the tables of all depths: partitions hardly show some errors."""
    assert_exact(CHAINS[name], SAMPLERS[sampler], n_sweeps=500)


# -- concentrations -------------------------------------------------------------------

PRIOR = GammaPrior(1.5, 1.0)


def depths_of(hyperparameters, n_before):
    """Concentrations of the top and of depth 1, 2, ..."""
    context_alpha = hyperparameters["context_alpha"].tolist()
    context_alpha.insert(n_before, hyperparameters["alpha"])
    return [hyperparameters["gamma"], *context_alpha]


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["four levels", "missing, context first"])
def test_concentrations_at_a_fixed_seating(name):
    """Every depth has the sizes and the tables of all its restaurants."""
    m = MODELS[name]
    arrays = random_state(m, 3)[0].to_arrays()
    tree = naive_of(m, arrays).transitions
    laws = [concentration_posterior([tree.n_tables], len(tree.represented()), PRIOR)]
    for depth in range(1, len(m.alphas) + 1):
        cells = {
            (v, k): sizes for (v, k), sizes in tree.tables.items() if len(tree.path(v)) == depth
        }
        rows = defaultdict(int)
        for (v, _), sizes in cells.items():
            rows[v] += sum(sizes)
        n_tables = sum(map(len, cells.values()))
        laws.append(concentration_posterior(rows.values(), n_tables, PRIOR))

    def start(seed):
        state = m.state(seed, concentration_prior=(PRIOR.shape, PRIOR.rate))
        state.from_arrays(arrays)

        def draw():
            state.draw_hidden()
            return depths_of(state.transitions.hyperparameters, m.n_before)

        return draw

    assert_follow(laws, start, 800)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["three levels", "context first"])
def test_concentrations_of_whole_chains(name):
    m = MODELS[name]

    def start(seed):
        state = m.state(seed, concentration_prior=(PRIOR.shape, PRIOR.rate))
        kernel = StepwiseGibbs().make_kernel(state)

        def draw():
            kernel.sweep(state)
            state.draw_hidden()
            return depths_of(state.transitions.hyperparameters, m.n_before)

        return draw

    assert_follow(concentration_laws(m, PRIOR), start, 2000)


# -- adaptive predictions -------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", ["three levels", "context first", "missing", "coins, missing", "coins, context first"]
)
def test_adaptive_predictions(name):
    """The first step is exact, and the product of all unbiased, in new contexts too."""
    m = (MODELS | COINS)[name]
    state, naive = random_state(m, 1)
    arrays = state.to_arrays()
    codes = np.full((3, len(m.columns[0])), 5, dtype=np.int32)
    codes[1] = -1 if m.n_before else m.columns[0]
    contexts = StepContexts(m.contexts.tree, codes).adaptive()
    rows = [tuple(row) for row in codes.tolist()]
    y = (0, 1, 0)

    def row_of(t, j):
        if m.n_before and rows[t][0] < 0:
            return None  # the top
        return leaf_of(rows, m.n_before, t, j)

    coins = None
    if name not in MODELS:
        record = arrays["transitions"]
        coins = m, record["stays"], record["draws"][:-1]
    exact = [evidence_continued(naive, y[:n], row_of, coins) for n in (1, 3)]
    new = make_stats(np.array(y)[:, None], m.emission)
    found = []
    for seed in range(400):
        log_predictive, _ = filter_particles(
            new, [0], RandomStream(seed), n_particles=5, seating=arrays, contexts=contexts
        )
        found.append(np.exp(log_predictive.cumsum()[[0, 2]]))
    found = np.array(found)
    np.testing.assert_allclose(found[:, 0], exact[0], rtol=1e-12)
    error = found[:, 1].std() / np.sqrt(len(found))
    assert abs(found[:, 1].mean() - exact[1]) < 4 * error
    assert error < 0.02 * exact[1]


# -- planted errors -------------------------------------------------------------------


# Errors of the native code, in kernels that are compiled apart from the package.
REJECTED = "beam: sizes of the rejected"
SHAKEN = {
    "an emptied table stays above": [("emptied table", ";")],
    "only the leaf is restored": [("rollback of the base", ";")],
}


def planted_kernel(error):
    if error in errors.TREE:
        edited = native.planted(errors.STEPWISE, *errors.TREE[error])
        return RCDKernel(edited.StepwiseProposal(exact=True))
    edited = native.planted(errors.BLOCKED, ("sizes after a rejection", ""))
    return RCDKernel(edited.BeamProposal(), 3)


# (Those that one move shows are in test_split_merge_matrices.py.)
@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("error", [*errors.TREE, REJECTED])
def test_planted_errors_of_native_code_are_caught(error):
    models = (CHAINS | COINS).values()
    assert_caught(lambda state: planted_kernel(error), *models, n_sweeps=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("error", SHAKEN)
def test_planted_errors_of_moves_are_found_by_the_check(error):
    edited = native.planted(errors.STEPWISE, *SHAKEN[error])
    state = CHAINS["three levels"].state(0)
    assert_check_notices(RCDKernel(edited.StepwiseProposal()), state)
