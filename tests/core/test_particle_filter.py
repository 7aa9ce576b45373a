"""The particle filter: unbiased evidence, exact first step, folded generations."""

from __future__ import annotations

import copy
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from extension.exponential import Exponential
from reference.conjugate import DiagonalGaussian, FullGaussian, as_matrix
from reference.enumeration import (
    START,
    DirichletEmission,
    HCRPEmission,
    canonical,
    evidence_continued,
    predictive_next,
)
from reference.seating import NaiveHMM, all_outcomes, all_seatings, random_choices
from reference.statistics import frequencies_pvalue, unbiased_mean_test
from small_models import Model, arrays_of, counts_of

from skihmm.core._franchise import Franchise
from skihmm.core._particle_filter import filter_particles, simulate
from skihmm.core._random import RandomStream
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.emissions._product_stats import product_stats
from skihmm.testing._small_models import make_stats
from skihmm.transitions import HCRPTransitions

LEVEL = 1e-3


def stats_of(emission, codes, y=()):
    if hasattr(emission, "stats"):
        return emission.stats(y)
    codes = np.asarray(codes, dtype=np.int32)
    return make_stats(codes, emission)


def run(model, stream, n_particles, **options):
    is_categorical = not hasattr(model.emission, "stats")
    codes = model.codes if is_categorical else as_matrix(model.y)
    return filter_particles(
        stats_of(model.emission, codes, model.y),
        np.array(model.starts, dtype=int),
        stream,
        n_particles=n_particles,
        transitions=Franchise(model.alpha, model.gamma),
        **options,
    )


MODELS = {
    "one sequence": Model((0, 1, 0, 1, 1), HCRPEmission(3, 1.0, 1.0), (0,), 1.0, 2.0),
    "two sequences": Model((0, 1, 0, 2, 1), HCRPEmission(4, 4.0, 3.0), (0, 2), 5.0, 3.0),
    "missing": Model((0, None, 0, 2, 0), DirichletEmission(3, 0.5), (0, 3), 2.0, 3.0),
    "small": Model((0, 1, 0, 0, 1), DirichletEmission(2, 0.1), (0,), 0.2, 0.3),
    "columns": Model(((0, 1), (1, None), (0, 1), (None, None)), HCRPEmission(2), (0,), 2.0, 3.0),
    "Dirichlet columns": Model(
        ((0, 1), (1, None), (0, 1), (1, 1)), DirichletEmission(2, 0.3), (0, 3), 0.5, 1.0
    ),
    "tables": Model((0, 0, 0, 0, 1, 0), HCRPEmission(3, 2.0, 0.5), (0,), 1.5, 0.4),
    "Gaussian": Model(
        ((0.2, 1.0), (2.0, None), (0.1, 1.2), (1.9, -1.0), (None, None)),
        DiagonalGaussian((0.5, 0.0), 0.3, 1.5, (0.4, 0.6)),
        (0, 3),
        1.0,
        1.5,
    ),
    "full Gaussian": Model(
        ((0.2, 1.0), (2.0, 0.5), (None, None), (0.1, 1.2)),
        FullGaussian((0.5, 0.0), 0.3, 3.5, ((0.4, 0.1), (0.1, 0.6))),
        (0, 2),
        0.6,
        2.0,
    ),
}


# -- unbiased -------------------------------------------------------------------------


def evidence_pvalue(model, n_particles, n_runs, seed, **options):
    stream = RandomStream(seed)
    estimates = [
        math.exp(run(model, stream, n_particles, **options)[0].sum()) for _ in range(n_runs)
    ]
    exact = math.exp(model.posterior.log_evidence)
    return unbiased_mean_test(estimates, exact).pvalue


@pytest.mark.statistical
@pytest.mark.parametrize("n_particles", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_evidence_is_unbiased(name, n_particles):
    pvalue = evidence_pvalue(MODELS[name], n_particles, 4000, 0)
    if pvalue <= LEVEL:
        pvalue = evidence_pvalue(MODELS[name], n_particles, 20_000, 1)
    assert pvalue > LEVEL


@pytest.mark.statistical
def test_evidence_is_unbiased_if_one_particle_goes_on_alone():
    for name in ("two sequences", "missing"):
        assert evidence_pvalue(MODELS[name], 4, 6000, 2, n_filtered=2) > LEVEL


def test_all_particles_go_on_until_then():
    model = MODELS["two sequences"]
    together, path = run(model, RandomStream(4), 8)
    for n in range(1, len(model.y) + 1):
        alone, alone_path = run(model, RandomStream(4), 8, n_filtered=n)
        np.testing.assert_array_equal(alone[:n], together[:n])
    np.testing.assert_array_equal(alone_path, path)


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_paths_are_drawn_from_the_posterior(name):
    """The estimate of the evidence, if the path is x, is unbiased for p(x, y)."""
    model, stream = MODELS[name], RandomStream(3)
    estimates: dict = {}
    n_runs = 8000
    for i in range(n_runs):
        log_predictive, path = run(model, stream, 4)
        # New states are numbered as they appear.
        x = tuple(path.tolist())
        assert canonical(x) == x
        estimates.setdefault(x, np.zeros(n_runs))[i] = math.exp(log_predictive.sum())
    exact = model.posterior.probabilities
    assert estimates.keys() <= exact.keys()
    evidence = math.exp(model.posterior.log_evidence)
    pvalues = [
        unbiased_mean_test(values, exact[x] * evidence).pvalue
        for x, values in estimates.items()
        if np.count_nonzero(values) > 100
    ]
    assert len(pvalues) >= 5
    assert min(pvalues) > LEVEL / len(pvalues)


# -- continued from a seating ---------------------------------------------------------


TRAINING = {
    "HCRP": ((0, 1, 1, 0, 2, 0, 1), HCRPEmission(3, 1.2, 2.0), (0, 4)),
    "Dirichlet": ((0, 1, None, 0, 2, 0, 1), DirichletEmission(3, 0.4), (0,)),
    "columns": (((0, 1), (1, None), (0, 1), (1, 0), (2, 2)), HCRPEmission(3, 1.0, 1.0), (0, 3)),
}
TEST = {
    "HCRP": (1, 0, 2),
    "Dirichlet": (1, None, 0),
    "columns": ((1, 0), (None, 2)),
}
ALPHA, GAMMA = 1.6, 1.2


@cache
def trained(name):
    y, emission, starts = TRAINING[name]
    choose = random_choices(np.random.default_rng(5))
    labels = [0, 1, 1, 2, 0, 0, 1][: len(y)]
    return NaiveHMM(y, emission, starts, ALPHA, GAMMA, labels=labels, choose=choose)


@pytest.mark.statistical
@pytest.mark.parametrize("restaurant", [0, 1, 3])
@pytest.mark.parametrize("name", TRAINING)
def test_evidence_after_a_seating_is_unbiased(name, restaurant):
    naive = trained(name)
    arrays, emission = arrays_of(naive), TRAINING[name][1]
    start = START if restaurant == 0 else restaurant - 1
    exact = evidence_continued(counts_of(arrays), TEST[name], emission, ALPHA, GAMMA, start)
    model = Model(TEST[name], emission, (0,) if restaurant == 0 else (), ALPHA, GAMMA)
    before = copy.deepcopy(arrays)
    for n_particles in (1, 5):
        stream = RandomStream(restaurant)
        results = [
            run(model, stream, n_particles, seating=arrays, restaurant=restaurant)
            for _ in range(4000)
        ]
        estimates = [math.exp(log_predictive.sum()) for log_predictive, _ in results]
        assert unbiased_mean_test(estimates, math.exp(exact)).pvalue > LEVEL
        # The first step is not random at all.
        first = evidence_continued(counts_of(arrays), TEST[name][:1], emission, ALPHA, GAMMA, start)
        for log_predictive, path in results[:50]:
            assert log_predictive[0] == pytest.approx(first, rel=1e-12)
            assert path.max() <= 3 + len(path)
    np.testing.assert_equal(arrays, before)


@pytest.mark.parametrize("continues", [True, False])
@pytest.mark.parametrize("emission", [HCRPEmission(3, 0.8, 1.5), DirichletEmission(3)])
def test_first_step_averaged_over_all_seatings_is_the_predictive(emission, continues):
    """Exactly: no sampling is involved."""
    y = (0, 1, 0, 0)
    seatings = all_seatings(y, emission, (0,), 1.3, 0.9)
    exact = predictive_next(y, emission, (0,), 1.3, 0.9, continue_sequence=continues)
    stream = RandomStream(0)
    for w in range(3):
        model = Model((w,), emission, () if continues else (0,), 1.3, 0.9)
        total = 0.0
        for naive, probability in seatings.values():
            log_predictive, _ = run(
                model,
                stream,
                1,
                seating=arrays_of(naive),
                restaurant=1 + naive.x[-1] if continues else 0,
            )
            total += probability * math.exp(log_predictive[0])
        assert total == pytest.approx(exact[w], rel=1e-10)


# -- long sequences -------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_one_particle_predicts_from_the_counts_of_its_path(alpha):
    """With extreme alpha tables follow from counts: 1 per pair, or 1 per draw."""
    rng = np.random.default_rng(6)
    y = tuple(rng.integers(3, size=400).tolist())
    model = Model(y, DirichletEmission(3, 0.2), (0, 150), alpha, 2.0)
    log_predictive, path = run(model, RandomStream(6), 1)
    n, c = Counter(), Counter()
    for t, k in enumerate(path.tolist()):
        j = START if t in (0, 150) else int(path[t - 1])
        m = Counter()
        for (_, dish), draws in n.items():
            m[dish] += 1 if alpha < 1 else draws
        room = sum(draws for (row, _), draws in n.items() if row == j) + alpha
        total = 0.0
        for dish in [*m, None]:
            base = (m[dish] if dish is not None else 2.0) / (m.total() + 2.0)
            seen = sum(c[dish, w] for w in range(3))
            total += (n[j, dish] + alpha * base) / room * (c[dish, y[t]] + 0.2) / (seen + 0.6)
        assert math.exp(log_predictive[t]) == pytest.approx(total, rel=1e-5)
        n[j, k] += 1
        c[k, y[t]] += 1


# A loop of states: hub -> one of three hidden branches -> its revealing state -> gate
# -> left or right -> hub.  Column 0 names all states but the branches, where it is
# missing; column 1 is noise whose counts, like those of left and right, must be
# remembered.
HUB, BRANCH, REVEAL, GATE, LEFT, RIGHT = 0, (1, 2, 3), (4, 5, 6), 7, 8, 9
N_STATES = 10


def loop_seating(hierarchical):
    """Every arrow of the loop drawn once (each from another table), each state seen."""
    arrows = [(HUB, k) for k in BRANCH] + list(zip(BRANCH, REVEAL, strict=True))
    arrows += [(k, GATE) for k in REVEAL]
    arrows += [(GATE, LEFT), (GATE, RIGHT), (LEFT, HUB), (RIGHT, HUB), (N_STATES, HUB)]

    def record(pairs, tables):
        pairs = sorted(pairs)
        ones = np.ones(len(pairs), dtype=np.int32)
        return {
            "rows": np.array([j for j, _ in pairs], dtype=np.int32),
            "dishes": np.array([k for _, k in pairs], dtype=np.int32),
            "n_customers": ones,
            "n_tables": ones * tables,
            "sizes": ones[: len(pairs) * tables],
        }

    names = record([(k, k) for k in range(N_STATES)], 0)
    noise = record([(HUB, 0), (GATE, 1)], int(hierarchical))
    return {
        "n_states": N_STATES,
        "states": np.zeros(1, np.int32),
        "transitions": record(arrows, 1) | {"alpha": 1e-9, "gamma": 1.0},
        "emission": {
            "parts": [
                {"columns": [names], "alpha": 1e-15, "gamma": 1.0},
                {"columns": [noise], "alpha": 1e12 if hierarchical else 0.5, "gamma": 3.0},
            ]
        },
    }


@pytest.mark.parametrize("hierarchical", [True, False])
def test_folded_generations_remember_everything(hierarchical):
    """Particles part at every branch and agree again after it.

    Two thirds die each time, so generations are folded again and again; yet every
    particle that lives has the same past, and the predictive probabilities follow from
    its counts.  (With extreme concentrations tables follow from counts.)
    """
    rng, n_loops, n_particles = np.random.default_rng(7), 300, 40
    true, codes = [], []
    for _ in range(n_loops):
        i, side = rng.integers(3), (LEFT, RIGHT)[int(rng.random() < 0.7)]
        for k in (HUB, BRANCH[i], REVEAL[i], GATE, side):
            true.append(k)
            name = -1 if k in BRANCH else k
            noise = int(rng.integers(4)) if k in (HUB, GATE, LEFT) else -1
            codes.append((name, noise))
    noise_alpha = 1e12 if hierarchical else 0.5
    log_predictive, path = filter_particles(
        product_stats(
            [
                categorical_stats(np.array(codes)[:, :1], [N_STATES], 1e-15, 1.0, False),
                categorical_stats(np.array(codes)[:, 1:], [4], noise_alpha, 3.0, hierarchical),
            ]
        ),
        [0],
        RandomStream(8),
        n_particles=n_particles,
        seating=loop_seating(hierarchical),
    )
    np.testing.assert_array_equal(path, true)
    arrows = loop_seating(hierarchical)["transitions"]
    n = Counter(zip(arrows["rows"].tolist(), arrows["dishes"].tolist(), strict=True))
    c: Counter = Counter([(HUB, 0), (GATE, 1)])
    checked = 0
    for t, (k, (_, w)) in enumerate(zip(true, codes, strict=True)):
        j = N_STATES if t == 0 else true[t - 1]
        p = n[j, k] / sum(v for (row, _), v in n.items() if row == j)
        if w >= 0:
            seen = sum(c[k, v] for v in range(4))
            if hierarchical:
                # No two observations share a table.
                same = sum(count for (_, v), count in c.items() if v == w)
                p *= (same + 3.0 / 4) / (c.total() + 3.0)
            else:
                p *= (c[k, w] + 0.5) / (seen + 2.0)
        if k in BRANCH:
            p = 1.0  # nothing observed
        if k not in REVEAL:
            assert log_predictive[t] == pytest.approx(math.log(p), abs=1e-6)
            checked += 1
        n[j, k] += 1
        if w >= 0:
            c[k, w] += 1
    assert checked == 4 * n_loops
    # The branches were guessed by a third of the particles each.
    guesses = np.exp(log_predictive[2::5])
    assert abs(guesses.mean() - 1 / 3) < 0.05
    assert guesses.std() > 0.03


@pytest.mark.parametrize("emission", [HCRPEmission(3, 2.0, 2.0), DirichletEmission(3)])
def test_predictive_probabilities_sum_to_one(emission):
    """Over all symbols of a step, after the same past: equal streams make equal pasts.

    Particles differ in their labels here, and a generation that is folded too early would
    leave some with counts and totals that do not belong together.
    """
    rng = np.random.default_rng(12)
    y = np.where(rng.random(500) < 0.8, np.arange(500) // 3 % 3, rng.integers(3, size=500))
    for t in range(9, 500, 10):
        total = 0.0
        for w in range(3):
            model = Model((*y[:t].tolist(), w), emission, (0,), 2.0, 2.0)
            log_predictive, _ = run(model, RandomStream(13), 5)
            total += math.exp(log_predictive[t])
        assert total == pytest.approx(1, rel=1e-9)


# -- shared histories, independent sequences ------------------------------------------


def independent(codes, starts, stream, **options):
    """Test sequences after the training data "HCRP", each from that seating."""
    naive = trained("HCRP")
    return filter_particles(
        stats_of(TRAINING["HCRP"][1], codes),
        starts,
        stream,
        n_particles=options.pop("n_particles", 5),
        seating=arrays_of(naive),
        independent=True,
        **options,
    )[0]


def test_independent_sequences_learn_nothing_from_one_another():
    """Each is filtered as if it were alone, whatever was folded for those before."""
    rng = np.random.default_rng(14)
    lengths = [700, 1, 40, 1, 300, 1, 2]
    codes = np.concatenate([rng.integers(3, size=(n, 1)) for n in lengths])
    ends = np.cumsum(lengths)
    for restaurant in (0, 2):
        # A restaurant given: the first sequence continues the training data.
        starts = ends[:-1] if restaurant else np.append(0, ends[:-1])
        together = independent(codes, starts, RandomStream(1), restaurant=restaurant)
        stream = RandomStream(1)
        for i, part in enumerate(np.split(codes, ends[:-1])):
            where = restaurant if i == 0 else 0
            alone = independent(part, [] if where else [0], stream, restaurant=where)
            np.testing.assert_array_equal(together[ends[i] - lengths[i] : ends[i]], alone)


@pytest.mark.statistical
def test_evidence_of_independent_sequences_is_unbiased():
    """The product over sequences too, since their randomness is independent."""
    sequences, emission = [(1, 0, 2), (0, 1), (1, 1, 1)], TRAINING["HCRP"][1]
    counts = counts_of(arrays_of(trained("HCRP")))
    exact = math.exp(sum(evidence_continued(counts, y, emission, ALPHA, GAMMA) for y in sequences))
    codes, stream = np.concatenate(sequences)[:, None], RandomStream(15)
    for n_particles in (1, 3, 20):
        estimates = [
            math.exp(independent(codes, [0, 3, 5], stream, n_particles=n_particles).sum())
            for _ in range(4000)
        ]
        assert unbiased_mean_test(estimates, exact).pvalue > LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("name", TRAINING)
def test_many_particles_agree_with_the_exact_evidence(name):
    """Particles that share a history draw their tables for themselves.

    Were tables drawn once for all that go to the same state, estimates would be unbiased
    still, but no number of particles would bring them together.
    """
    arrays, emission = arrays_of(trained(name)), TRAINING[name][1]
    model = Model(TEST[name] * 2, emission, (0,), ALPHA, GAMMA)
    exact = evidence_continued(counts_of(arrays), TEST[name] * 2, emission, ALPHA, GAMMA)
    found = [run(model, RandomStream(seed), 20_000, seating=arrays)[0].sum() for seed in range(5)]
    np.testing.assert_allclose(found, exact, rtol=0, atol=0.01)


class Counting(Exponential):
    """Counts how often a row of states is evaluated."""

    n_calls = 0

    def log_predictive(self, stats, y):
        type(self).n_calls += 1
        return super().log_predictive(stats, y)


@pytest.mark.parametrize("length", [1, 2, 30])
def test_particles_with_the_same_history_are_evaluated_once(length):
    emission = Counting(rate=1.0)
    y = np.random.default_rng(16).exponential(size=(60, 1))
    emission.fit(y)
    # A small gamma: nearly all particles stay in one state, and a small alpha leaves no
    # choice whether a table is opened.
    Counting.n_calls = 0
    log_predictive, path = filter_particles(
        emission.make_stats(y),
        np.arange(0, 60, length),
        RandomStream(0),
        n_particles=50,
        transitions=Franchise(1e-9, 1e-9),
        independent=True,
    )
    assert path is None
    assert np.isfinite(log_predictive).all()
    assert Counting.n_calls == 60


# -- simulation -----------------------------------------------------------------------


def simulations(name, n_steps, n_known, n_runs, seed):
    """Codes and states that are drawn after a seating, many times."""
    arrays, stream = arrays_of(trained(name)), RandomStream(seed)
    stats = stats_of(TRAINING[name][1], np.zeros((n_steps, len(n_known))))
    return [simulate(stats, n_known, stream, arrays) for _ in range(n_runs)]


@pytest.mark.statistical
@pytest.mark.parametrize("name", TRAINING)
def test_simulated_symbols_have_their_exact_law(name):
    naive, emission = trained(name), TRAINING[name][1]
    n_columns = len(naive.emissions.columns)
    n_steps = 2 if n_columns == 1 else 1
    law = {}
    for code in np.ndindex(*[3] * (n_steps * n_columns)):
        y = np.reshape(code, (n_steps, n_columns)).tolist()
        law[code] = math.exp(evidence_continued(naive.counts(), y, emission, ALPHA, GAMMA))
    drawn = simulations(name, n_steps, [3] * n_columns, 8000, 10)
    found = Counter(tuple(codes.ravel().tolist()) for codes, _ in drawn)
    assert frequencies_pvalue(found, law, least=0) > LEVEL


@pytest.mark.statistical
def test_simulated_states_have_their_exact_law():
    """States 3, 4, ... are new ones, each from another empty restaurant."""

    def walk(choose):
        seated = trained("HCRP").transitions.copy()
        path, j, fresh = [], START, 3
        for _ in range(3):
            labels = [*seated.represented(), fresh]
            k = labels[choose([seated.get_prob(j, label) for label in labels])]
            seated.add_customer(j, k, choose)
            fresh += k == fresh
            path.append(k)
            j = k
        return tuple(path)

    law: Counter = Counter()
    for p, path in all_outcomes(walk):
        law[path] += p
    drawn = simulations("HCRP", 3, [3], 10_000, 11)
    found = Counter(tuple(states.tolist()) for _, states in drawn)
    assert frequencies_pvalue(found, law) > LEVEL


def test_simulation_keeps_to_the_known_symbols():
    """A cell for unknown symbols is never drawn, the others in proportion."""
    naive, law = trained("HCRP"), {}
    for k in range(4):
        probs = [naive.emissions.get_prob(k, (w,)) for w in range(2)]
        for w in range(2):
            law[k, w] = naive.transitions.get_prob(START, k) * probs[w] / sum(probs)
    drawn = simulations("HCRP", 1, [2], 8000, 12)
    found = Counter((int(states[0]), int(codes[0, 0])) for codes, states in drawn)
    assert frequencies_pvalue(found, law, least=0) > LEVEL


# -- arguments ------------------------------------------------------------------------


def test_no_steps():
    model = Model((0,), HCRPEmission(3))
    log_predictive, path = filter_particles(
        stats_of(model.emission, np.empty((0, 1))),
        [],
        RandomStream(0),
        n_particles=3,
    )
    assert log_predictive.shape == path.shape == (0,)


def test_a_tree_needs_contexts():
    given = np.array([[0], [1], [0]], dtype=object)
    prior = HCRPTransitions(context_features=[1]).with_given(given)
    tree = prior.make_seating(prior.step_contexts(given))
    with pytest.raises(ValueError, match="contexts is None"):
        filter_particles(
            categorical_stats(np.zeros((3, 1), int), [2], 1.0),
            [0],
            RandomStream(0),
            n_particles=2,
            transitions=tree,
        )


@pytest.mark.parametrize("name", MODELS)
def test_equal_streams_give_equal_results(name):
    first = run(MODELS[name], RandomStream(4), 20)
    second = run(MODELS[name], RandomStream(4), 20)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
