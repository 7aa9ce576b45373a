"""Records come from files: what is no seating of the data is refused, whatever it is."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from recipes import INSTANCES
from reference.enumeration import DirichletEmission, HCRPEmission
from small_models import make_stats

from skihmm import HCRPHMM
from skihmm.core._franchise import Franchise
from skihmm.core._messages import FrozenModel
from skihmm.core._particle_filter import filter_particles, simulate
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import DirichletCategorical, HCRPCategorical
from skihmm.emissions._categorical_stats import categorical_stats
from skihmm.metrics import ParticleFilterScorer
from skihmm.samplers import StepwiseGibbs

N_STEPS, N_SYMBOLS, STARTS = 40, 5, (0, 15, 16)


class Case:
    """Data, and a record of a chain on them."""

    def __init__(self, emission, n_columns=1, starts=STARTS, missing=0.2, dense=3):
        rng = np.random.default_rng(n_columns)
        self.codes = rng.integers(N_SYMBOLS, size=(N_STEPS, n_columns))
        self.codes[rng.random(self.codes.shape) < missing] = -1
        self.emission, self.starts = emission, np.array(starts)
        state = self.state()
        # Few states have many tables in a cell, many have few.
        labels = rng.integers(dense, size=N_STEPS)
        state.start_from(np.unique(labels, return_inverse=True)[1])
        kernel = StepwiseGibbs(split_merge_rate=2).make_kernel(state)
        for _ in range(3):
            kernel.sweep(state)
        assert state.check() is None
        self.arrays = state.canonicalise()

    def state(self):
        return ChainState(
            self.starts, Franchise(3.0, 2.0), make_stats(self.codes, self.emission), RandomStream(0)
        )


CASES = {
    "hcrp": lambda: Case(HCRPEmission(N_SYMBOLS, 4.0, 3.0)),
    "hcrp, two columns": lambda: Case(HCRPEmission(N_SYMBOLS, 0.5, 0.7), 2, (0,)),
    "hcrp, one state": lambda: Case(HCRPEmission(N_SYMBOLS, 9.0, 9.0), dense=1),
    "dirichlet": lambda: Case(DirichletEmission(N_SYMBOLS, 0.5), dense=6),
    "dirichlet, two columns": lambda: Case(DirichletEmission(N_SYMBOLS, 1.5), 2),
    "nothing observed": lambda: Case(HCRPEmission(N_SYMBOLS, 1.0, 1.0), missing=1.1),
}


# -- mutations ------------------------------------------------------------------------


def leaves(value, path=()):
    """Places in nested dicts and lists; those of containers too."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))


def at(value, path):
    for key in path:
        value = value[key]
    return value


HUGE = (-1, 255, 2**16, 2**30, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, -(2**63))
ANYTHING = (
    *HUGE,
    *(0, 1, 2, 2**64, 10**400, True, None, "text", b"bytes", [], [1], {}, {"rows": 1}),
    # (No 1e3: a beam breaks thousands of sticks, for seconds, at such a gamma.)
    *(0.0, 1.0, -1.0, 1e-300, 1e-49, 1e-3, 30.0, 1e49, 1e300, 1j),
    *(float("nan"), float("inf"), -float("inf")),
    *(np.float32(2.0), np.int8(3), np.array(2.0), np.array(3), np.zeros(0)),
    *(np.array([None]), np.array(["a"]), np.arange(3), np.arange(3).reshape(1, 3)),
)
DTYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">i4", ">u2", "?", "f4", "f8")
OTHER_DTYPES = ("c16", "O", "U9", "S9", "M8[s]", "V4", [("a", "i4")])


def mutated_array(values, rng):
    """An array with one thing changed."""
    values, n = values.copy(), len(values)
    kinds = ["dtype", "other", "longer", "shape", "shape", "anything"]
    kinds += ["flip", "huge", "swap", "shorter", "twice", "reverse", "roll"] * 2 * (n > 0)
    kind = kinds[rng.integers(len(kinds))]
    i, j = rng.integers(max(n, 1), size=2)
    if kind == "dtype":
        return values.astype(DTYPES[rng.integers(len(DTYPES))])
    if kind == "other":
        dtype = np.dtype(OTHER_DTYPES[rng.integers(len(OTHER_DTYPES))])
        return values.astype(dtype) if dtype.kind in "cOUS" else np.zeros(n, dtype)
    if kind == "longer":
        return np.append(values, values[i : i + 1] if n and rng.random() < 0.5 else 1)
    if kind == "shape":
        shapes = (values[:, None], values[None], np.zeros((0, 3), int), values[:0])
        return shapes[rng.integers(len(shapes))]
    if kind == "anything":
        return ANYTHING[rng.integers(len(ANYTHING))]
    if kind == "flip":
        # (Draws are kept in unsigned bytes where they fit.)
        values = values.astype(np.int64)
        values[i] += (-1, 1)[rng.integers(2)]
    elif kind == "huge":
        # As the array stands, wrapped, or in an array that can hold it.
        huge = HUGE[rng.integers(len(HUGE))]
        values = values.astype(np.int64)
        values[i] = huge + (values[i] if rng.random() < 0.5 and abs(huge) < 2**62 else 0)
        if rng.random() < 0.3:
            values = values.astype(np.uint64)
    elif kind == "swap":
        values[[i, j]] = values[[j, i]]
    elif kind == "shorter":
        values = np.delete(values, i)
    elif kind == "twice":
        values[i] = values[j]
    elif kind == "reverse":
        values = values[::-1]
    else:
        values = np.roll(values, 1)
    return values


def mutated(arrays, rng, places):
    """A deep copy with one thing changed, and what it was."""
    arrays = copy.deepcopy(arrays)
    path = places[rng.integers(len(places))]
    parent = at(arrays, path[:-1])
    old = parent[path[-1]]
    if rng.random() < 0.1 and not isinstance(parent, list):
        del parent[path[-1]]
        return arrays, (path, "removed")
    if isinstance(old, np.ndarray):
        new = mutated_array(old, rng)
    elif isinstance(old, list) and rng.random() < 0.7:
        new = (old[:-1], [*old, old[0]], tuple(old), old[::-1])[rng.integers(4)]
    elif isinstance(old, int) and rng.random() < 0.3:
        new = old + (-1, 1)[rng.integers(2)]
    else:
        new = ANYTHING[rng.integers(len(ANYTHING))]
    parent[path[-1]] = new
    return arrays, (path, new)


def flat(value, path=()):
    if isinstance(value, dict):
        return {k: v for key in value for k, v in flat(value[key], (*path, key)).items()}
    if isinstance(value, list | tuple):
        pairs = enumerate(value)
        return {k: v for i, x in pairs for k, v in flat(x, (*path, i)).items()}
    return {path: value.tolist() if isinstance(value, np.ndarray) else value}


def refusal(function, *arguments):
    """What a function returns, and the message of its ValueError if it raises one."""
    try:
        return function(*arguments), None
    except ValueError as error:
        return None, str(error)


def sweep_all(state, what):
    """Some sweeps of every sampler; concentrations out of proportion are an error."""
    for sampler in INSTANCES["sampler"]:
        kernel = sampler.make_kernel(state)
        for _ in range(2):
            message = refusal(kernel.sweep, state)[1]
            assert message is None or "sticks" in message, (what, sampler)
            assert state.check() is None, (what, sampler)
        state.canonicalise()
        assert state.check() is None, (what, sampler)


# -- chains ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_a_mutated_record_is_refused_or_is_a_chain(name, global_random_seed):
    case = CASES[name]()
    places = list(leaves(case.arrays))
    rng = np.random.default_rng(global_random_seed)
    state = case.state()
    state.from_arrays(case.arrays)
    before = flat(state.to_arrays())
    n_refused = n_taken = 0
    for _ in range(200):
        arrays, what = mutated(case.arrays, rng, places)
        message = refusal(state.from_arrays, arrays)[1]
        if message is not None:
            assert message, what
            # Nothing has changed.
            assert flat(state.to_arrays()) == before, what
            n_refused += 1
            continue
        assert state.check() is None, what
        sweep_all(state, what)
        n_taken += 1
        state.from_arrays(case.arrays)
        assert flat(state.to_arrays()) == before
    assert n_refused > 75
    assert n_taken > 2
    assert state.check() is None


@pytest.mark.parametrize("name", CASES)
def test_integers_of_any_width_are_taken(name):
    case = CASES[name]()
    state = case.state()
    state.from_arrays(case.arrays)
    before = flat(state.to_arrays())

    def stored(value, dtype):
        if isinstance(value, dict):
            return {key: stored(inner, dtype) for key, inner in value.items()}
        if isinstance(value, list):
            return [stored(inner, dtype) for inner in value]
        return value.astype(dtype) if isinstance(value, np.ndarray) else value

    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">i4", ">u2"):
        other = case.state()
        other.from_arrays(stored(case.arrays, dtype))
        assert flat(other.to_arrays()) == before
        assert other.check() is None


def test_cells_in_another_order_are_the_same_seating():
    case = CASES["dirichlet"]()
    arrays = copy.deepcopy(case.arrays)
    column = arrays["emission"]["columns"][0]
    order = np.random.default_rng(0).permutation(len(column["rows"]))
    for key in ("rows", "dishes", "n_customers", "n_tables"):
        column[key] = column[key][order]
    state = case.state()
    state.from_arrays(arrays)
    assert state.check() is None
    assert flat(state.to_arrays()) == flat(case.arrays)


def change(path, new):
    """A function that sets, or computes, one entry of a record."""

    def apply(arrays):
        parent = at(arrays, path[:-1])
        old = parent[path[-1]]
        parent[path[-1]] = new(old.copy()) if callable(new) else new

    return apply


def set_to(i, value):
    def apply(values):
        values = values.astype(np.int64)
        values[i] = value
        return values

    return apply


TRANSITIONS, COLUMN = ("transitions",), ("emission", "columns", 0)
WRONG = {
    "no states": (("n_states",), 0, "n_states is 0; expected 1 to"),
    "n_states is no integer": (("n_states",), 3.0, "n_states is 3.0; expected an integer"),
    "too many states": (("n_states",), 1000, "cells are too few for 1000 states"),
    "a negative label": (("states",), set_to(4, -1), "states: an entry is -1; expected 0 to"),
    "a missing label": (
        ("states",),
        lambda v: v[1:],
        r"states is .* shape \(39,\); expected .* integers: 40",
    ),
    "an unused state": (("states",), np.zeros_like, "states holds 1 different ones;"),
    "other labels": (("states",), lambda v: v[::-1], "by the states and the data it has"),
    "labels that would wrap": (
        ("states",),
        lambda v: v.astype(np.int64) + 2**32,
        "states holds 4294967296, which no 32-bit integer is",
    ),
    "fractions": (
        (*TRANSITIONS, "rows"),
        lambda v: v + 0.5,
        "transitions: rows is an array of type float64 .*; expected a one-dim",
    ),
    "a row outside": (
        (*TRANSITIONS, "rows"),
        set_to(-1, 10**6),
        r"transitions: cell \d+ \(row 1000000, dish \d+\) is outside of the \d+ rows",
    ),
    "a dish outside": (
        (*COLUMN, "dishes"),
        set_to(0, N_SYMBOLS),
        r"emission, column 0: cell 0 \(row 0, dish 5\) is outside of the 5 dishes",
    ),
    "a cell twice": (
        (*COLUMN, "dishes"),
        lambda v: set_to(1, v[0])(v),
        "emission, column 0: two cells have row 0 and dish 0; expected one",
    ),
    "no customer in a cell": (
        (*COLUMN, "n_customers"),
        set_to(2, 0),
        "has 0 customers; expected 1 or more",
    ),
    "more tables than customers": (
        (*COLUMN, "n_tables"),
        set_to(0, 99),
        "has 99 tables; expected 1 to",
    ),
    "no tables": ((*COLUMN, "n_tables"), np.zeros_like, "has 0 tables; expected 1 to"),
    "too few sizes": ((*COLUMN, "sizes"), lambda v: v[1:], r"tables, but sizes has \d+ e"),
    "an empty table": ((*COLUMN, "sizes"), set_to(0, 0), "has a table of 0 customers"),
    "sizes that do not add up": (
        (*COLUMN, "sizes"),
        set_to(0, 2**31 - 1),
        r"has \d+ customers, but its tables have 2147483\d+",
    ),
    "too few entries": (
        (*COLUMN, "n_tables"),
        lambda v: v[1:],
        "rows, dishes, n_customers and n_tables have",
    ),
    "NaN": ((*TRANSITIONS, "alpha"), float("nan"), "transitions: alpha is nan; expected"),
    "a negative concentration": (
        ("emission", "gamma"),
        -1.0,
        "emission: gamma is -1.0; expected a concentration from 1e-50 to 1e",
    ),
    "a concentration as text": (
        (*TRANSITIONS, "gamma"),
        "1",
        "transitions: gamma is of type str; expected a number",
    ),
    "no dict": (TRANSITIONS, None, "transitions is of type NoneType; expected a dict"),
    "columns missing": (
        ("emission", "columns"),
        [],
        "emission: columns is a list of 0; expected a list of 1 records",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_message_says_what_is_wrong(name):
    path, new, message = WRONG[name]
    case = CASES["hcrp"]()
    arrays = copy.deepcopy(case.arrays)
    change(path, new)(arrays)
    with pytest.raises(ValueError, match=message):
        case.state().from_arrays(arrays)


def consistent(n_customers, sizes):
    """A record of one state and one cell of each kind that agrees with itself."""
    cell = {
        "rows": np.array([0]),
        "dishes": np.array([0]),
        "n_customers": np.array([n_customers]),
        "n_tables": np.array([len(sizes)]),
        "sizes": np.array(sizes),
    }
    start = {**cell, "rows": np.array([1])}
    both = {key: np.concatenate([cell[key], start[key]]) for key in cell}
    return {
        "n_states": 1,
        "transitions": both | {"alpha": 1.0, "gamma": 1.0},
        "emission": {"columns": [cell], "alpha": 1.0, "gamma": 1.0},
    }


def test_counts_that_could_overflow_are_refused():
    stats = make_stats(np.zeros((1, 1), int), HCRPEmission(1))
    large = consistent(2**30 - 1, [2**30 - 1])
    with pytest.raises(ValueError, match="2147483646 customers; expected at most 10737"):
        FrozenModel(large, stats, [0])
    # Two cells of half as many are just too many.
    half = consistent(2**29, [2**29])
    with pytest.raises(ValueError, match="1073741824 customers; expected at most 10737"):
        FrozenModel(half, stats, [0])
    half = consistent(2**29 - 1, [2**29 - 1])
    assert np.isfinite(FrozenModel(half, stats, [0]).filter()[0]).all()


def test_transitions_that_no_path_has_made_are_refused():
    stats = make_stats(np.zeros((1, 1), int), HCRPEmission(1))

    def draw(change):
        arrays = consistent(5, [5])
        transitions = arrays["transitions"]
        change(transitions)
        return FrozenModel(arrays, stats, [0])

    def no_start(transitions):
        for key in ("rows", "dishes", "n_customers", "n_tables", "sizes"):
            transitions[key] = transitions[key][:1]

    with pytest.raises(ValueError, match="no sequence begins"):
        draw(no_start)
    arrays = consistent(5, [5])
    arrays["n_states"] = 2
    with pytest.raises(ValueError, match="state 1 is never entered"):
        FrozenModel(arrays, stats, [0])
    # State 0 is left three times (row 0) and entered once; row 2 is the start.
    arrays["transitions"] |= {
        "rows": np.array([0, 2]),
        "dishes": np.array([1, 0]),
        "n_customers": np.array([3, 1]),
        "n_tables": np.array([1, 1]),
        "sizes": np.array([3, 1]),
    }
    with pytest.raises(ValueError, match="state 0 is left 3 times, but entered only 1"):
        FrozenModel(arrays, stats, [0])


# -- draws ----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["hcrp", "dirichlet"])
def hmm(request):
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(60, 2)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    emission = HCRPCategorical() if request.param == "hcrp" else DirichletCategorical(0.5)
    model = HCRPHMM(
        emission=emission,
        n_burnin=20,
        n_draws=2,
        thin=5,
        n_particles=5,
        random_state=0,
    )
    return model.fit(X, lengths=[25, 35]), X


def test_a_mutated_draw_is_refused_or_predicts(hmm, global_random_seed):
    fitted, X = hmm
    rng = np.random.default_rng(global_random_seed)
    frozen = ParticleFilterScorer(adaptive=False, start="continue")
    adaptive = ParticleFilterScorer(n_particles=4, start="continue", max_draws=1)
    asked = {
        "predict": lambda model: model.predict(X),
        "predict_proba": lambda model: model.predict_proba(X),
        "decode": lambda model: model.decode(X)[0],
        "score": lambda model: model.score(X[:20]),
        "sample": lambda model: model.sample(10, random_state=0)[0],
        "frozen": lambda model: frozen(model, X[:20]),
        "adaptive": lambda model: adaptive(model, X[:20]),
    }
    n_refused, n_answers = 0, 0
    for _ in range(80):
        model = copy.deepcopy(fitted)
        # Every use of draws looks at the last one, or at the best one.
        for draw in model._fit_state.chains[0].draws:
            content = vars(draw)
            compiled = {key: content[key] for key in ("transitions", "emission")}
            places = [path for path in leaves(compiled) if len(path) > 1]
            new, what = mutated(compiled, rng, places)
            content |= new
            if rng.random() < 0.1:
                content["n_states"] += int(rng.integers(-3, 3))
            if rng.random() < 0.1:
                content["last_state"] = int(rng.choice([-(2**31), -1, 7, 2**31 - 1]))
            if rng.random() < 0.1:
                alpha = rng.choice([0.0, -1.0, np.nan, np.inf, 1e300, 1e40])
                content["transitions"]["alpha"] = alpha
        for name, ask in asked.items():
            answer, message = refusal(ask, model)
            if message is not None:
                assert message, (name, what)
                n_refused += 1
            else:
                assert np.isfinite(answer).all(), (name, what)
                n_answers += 1
    assert n_refused > 100
    assert n_answers > 25


# -- the other arguments of the compiled core ------------------------------------------


def run_filter(case, starts=(0,), **changes):
    options = {"n_particles": 3, "seating": case.arrays, **changes}
    stats = make_stats(case.codes, case.emission)
    return filter_particles(stats, starts, RandomStream(0), **options)


def test_a_particle_filter_refuses_what_it_cannot_index():
    case = Case(HCRPEmission(N_SYMBOLS, 2.0, 2.0))
    assert np.isfinite(run_filter(case)[0]).all()
    n_states = case.arrays["n_states"]
    run_filter(case, starts=[], restaurant=n_states)
    for message, changes in {
        rf"restaurant is {n_states + 1}; expected 0 to {n_states}": {"restaurant": n_states + 1},
        "restaurant is -1": {"restaurant": -1},
        "a sequence starts at step 40 of 40": {"starts": [0, 40]},
        "a sequence starts at step -1 of 40": {"starts": [-1]},
        "n_particles is 0": {"n_particles": 0},
    }.items():
        with pytest.raises(ValueError, match=message):
            run_filter(case, **changes)


def test_a_simulation_refuses_what_it_cannot_index():
    case = Case(HCRPEmission(N_SYMBOLS, 2.0, 2.0))

    def run(n_steps=4, n_known=(N_SYMBOLS,)):
        stats = make_stats(np.zeros((n_steps, 1)), case.emission)
        return simulate(stats, n_known, RandomStream(0), case.arrays)

    assert run()[0].shape == (4, 1)
    for message, changes in {
        r"n_known\[0\] is 6; expected 1 to 5": {"n_known": [N_SYMBOLS + 1]},
        r"n_known\[0\] is 0": {"n_known": [0]},
        "n_known has 2 entries for 1 columns": {"n_known": [1, 1]},
        "n_steps is 0": {"n_steps": 0},
    }.items():
        with pytest.raises(ValueError, match=message):
            run(**changes)


def test_a_frozen_model_refuses_what_it_cannot_index():
    case = Case(HCRPEmission(N_SYMBOLS, 2.0, 2.0))

    def run(starts=(0,), restaurant=None):
        stats = make_stats(case.codes, case.emission)
        return FrozenModel(case.arrays, stats, starts, restaurant)

    n_states = case.arrays["n_states"]
    run([], n_states - 1).viterbi()
    for message, arguments in {
        f"restaurant is {n_states}; expected 0 to": ([], n_states),
        "restaurant is -1": ([], -1),
        "a sequence starts at step 40 of 40": ([40],),
        "a sequence that starts at step 3 follows one that starts at step 3": ([3, 3],),
    }.items():
        with pytest.raises(ValueError, match=message):
            run(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0], [3]], [3]), r"codes\[1, 0\] is 3; expected -1 to 2"),
        (([[0], [-2]], [3]), r"codes\[1, 0\] is -2; expected -1 to 2"),
        (([[0, 0]], [3]), "codes has 2 columns, but n_symbols says 1"),
        (([0, 0], [3]), "an array of type int64 and shape"),
        (([[0.0]], [3]), "an array of type float64 and shape"),
        (([[0]], [0]), r"n_symbols\[0\] is 0; expected 1 to"),
        (([[0]], [3], 0.0), "alpha is 0.0; expected a concentration"),
        (([[0]], [3], 1.0, 1e51), r"gamma is 1e\+51; expected a concentration"),
    ],
)
def test_statistics_refuse_codes_that_are_none(arguments, message):
    codes, n_symbols, *others = arguments
    with pytest.raises(ValueError, match=message):
        categorical_stats(np.array(codes), n_symbols, *(others or [1.0]))


@pytest.mark.parametrize(
    ("n_known", "message"),
    [
        ([], "n_known has 0 entries for 1 columns"),
        ([0], f"n_known: 0 symbols of column 0; expected 1 to {N_SYMBOLS}"),
        ([9], f"n_known: 9 symbols of column 0; expected 1 to {N_SYMBOLS}"),
    ],
)
def test_draws_refuse_numbers_of_symbols_that_are_none(n_known, message):
    stats = CASES["hcrp"]().state().emission
    with pytest.raises(ValueError, match=message):
        stats.draw_values(np.zeros(4, dtype=np.int32), n_known, RandomStream(0))


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([1], "no sequence starts at step 0"),
        ([], "no sequence starts at step 0"),
        ([0, 5, 5], "a sequence that starts at step 5 follows one that starts at step 5"),
        ([0, 10], "a sequence starts at step 10 of 10"),
        ([0, 1.5], "starts is an array of type float64"),
    ],
)
def test_a_chain_refuses_sequences_that_are_none(starts, message):
    stats = make_stats(np.zeros((10, 1), int), HCRPEmission(2))
    with pytest.raises(ValueError, match=message):
        ChainState(np.array(starts), Franchise(), stats, RandomStream(0))


def test_a_chain_refuses_labels_that_are_none():
    case = CASES["hcrp"]()
    state = case.state()
    for labels in (np.full(N_STEPS, -1), np.full(N_STEPS, N_STEPS), np.zeros(3, int)):
        with pytest.raises(ValueError, match="labels"):
            state.start_from(labels)
    with pytest.raises(ValueError, match="number of steps is 0"):
        ChainState(
            np.array([0]),
            Franchise(),
            make_stats(np.zeros((0, 1), int), HCRPEmission(2)),
            RandomStream(0),
        )


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e51, 1e-51, "1", None, 2j])
def test_concentrations_out_of_range_are_refused(value):
    for arguments in ((value, 1.0), (1.0, value)):
        with pytest.raises(ValueError, match=r"(alpha|gamma) is .*; expected a "):
            Franchise(*arguments)
    Franchise(np.float32(1.0), 10**40)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"stays": {"expected_stay": 1.0}},
            "expected a number of steps above 1",
        ),
        ({"stays": {"stay_prior": (0.0, 1.0)}}, "an entry is 0.000000; expected a conc"),
        ({"inputs": np.zeros((3, 1))}, "inputs with stays=None; expected an expected_stay"),
        ({"stays": {"stay_prior": (2.0, 1.0)}, "inputs": np.zeros((3, 1))}, "an expected_stay"),
    ],
)
def test_a_law_of_staying_out_of_range_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Franchise(**options)


def test_streams_refuse_states_that_are_none():
    stream = RandomStream(3)
    good = copy.deepcopy(stream.state)
    wrong = [{}, None, 3, good | {"bit_generator": "MT19937"}, good | {"state": {}}]
    wrong += [good | {"has_uint32": "x"}, good | {"uinteger": 2**40}]
    wrong += [good | {"more": 1}]
    wrong += [
        good | {"state": good["state"] | {key: value}}
        for key, value in itertools.product(("state", "inc"), (-1, 2**128, None, 1.5, "1"))
    ]
    # Such streams repeat themselves at once.
    wrong += [good | {"state": {"state": 0, "inc": 0}}]
    for state in wrong:
        with pytest.raises(ValueError, match="is no state of PCG64"):
            stream.state = state
        assert stream.state == good
    stream.state = {**good, "state": {k: int(v) for k, v in good["state"].items()}}
