"""Garbage is refused with words of ours, whatever it is given as, and changes nothing."""

from __future__ import annotations

import datetime
import inspect
import pickle
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skihmm import HCRPHMM
from skihmm.emissions import HCRPCategorical

# Words of numpy and Python about themselves, not about what was given.
INTERNAL = re.compile(
    r"NoneType|object has no attribute|broadcast|out of bounds|unhashable|subscriptable"
    r"|not iterable|iteration over|unsupported operand|truth value|ambiguous|reshape a"
    r"|float\(\)|int\(\)|must be real|not supported between|index out of|too many indices"
    r"|setting an array element|could not convert|DType|ufunc|[Bb]uffer|unpack"
    r"|positional argument|cannot convert|too large to convert|promoted|at least one a"
    r"|cast|32-bit integer|numpy\.dtypes|' object is not|\b[yx] should|len\(x"
)
N = 20
SHORT = {"n_burnin": 1, "n_draws": 1, "thin": 1, "n_particles": 2, "random_state": 0}
LETTERS = np.array(list("abc"))


@cache
def fitted(kind):
    """A model, and the data that it was fitted to, with numbers, strings or both."""
    numbers = np.arange(N).reshape(-1, 1) % 3
    strings = LETTERS[numbers].astype(object)
    X = {
        "numbers": numbers,
        "strings": strings,
        "both": np.column_stack([strings, numbers.astype(object)]),
    }[kind]
    model = HCRPHMM(**SHORT).fit(X)
    return model, X, model.predict(X)


KINDS = ("numbers", "strings", "both")


def check_refused(model, method, *args, **options):
    """An error that says something, and nothing of the model changes."""
    before = {name: id(value) for name, value in vars(model).items()}
    with warnings.catch_warnings():
        # (scikit-learn's, of a data frame that comes after an array.)
        warnings.filterwarnings("ignore", "X has feature names")
        with pytest.raises((TypeError, ValueError)) as caught:
            getattr(model, method)(*args, **options)
    message = str(caught.value)
    assert type(caught.value) in (TypeError, ValueError), repr(caught.value)
    assert message.strip()
    assert not INTERNAL.search(message), message
    assert {name: id(value) for name, value in vars(model).items()} == before


# Methods of a fitted model, on data.
METHODS = [
    name
    for name, method in inspect.getmembers(HCRPHMM, inspect.isfunction)
    if "X" in inspect.signature(method).parameters
    and not name.startswith(("_", "fit", "partial_fit"))
]

# Nothing that could be a symbol.
BAD_ENTRIES = [
    -1,
    -(2**70),
    2**63,
    2**64,
    10**400,
    -(10**400),
    0.5,
    -0.5,
    1e300,
    np.float32(0.1),
    np.inf,
    -np.inf,
    np.float16(-np.inf),
    1j,
    np.complex64(1),
    Fraction(1, 3),
    Fraction(10**400),
    Decimal("0.5"),
    Decimal("Infinity"),
    b"a",
    np.bytes_(b"a"),
    bytearray(b"ab"),
    memoryview(b"ab"),
    datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1),
    datetime.timedelta(1),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "D"),
    pd.Timestamp("2020-01-01"),
    pd.Interval(0, 1),
    pd.Period("2020-01", "M"),
    [1],
    [],
    (1, 2),
    [[1]],
    {},
    {"a": 1},
    {1},
    frozenset([1]),
    range(2),
    object(),
    len,
    int,
    ...,
    NotImplemented,
    ValueError("a"),
    HCRPHMM(),
    np.arange(2),
    np.zeros((2, 2)),
    pd.Series([1, 2]),
]


def frame_of(X):
    """A data frame; the array itself if pandas (such as 2.1) cannot hold its integers."""
    try:
        return pd.DataFrame(X)
    except OverflowError:
        return X


def with_one_entry(entry):
    """Arrays of objects, lists and data frames with one entry that is no symbol."""
    for i, background in enumerate([(1,), ("a", None), (1, "a", None)]):
        n = (N, 1, N)[i]
        X = np.empty((n, len(background)), dtype=object)
        X[:] = background
        X[n // 2, i] = entry
        yield from (X, X.tolist(), frame_of(X))


NUMBERS = [
    *((dtype, -1) for dtype in ("i1", "i2", "i4", "i8", "f2", "f4", "f8")),
    *((dtype, 0.5) for dtype in ("f2", "f4", "f8", "g")),
    *((dtype, np.inf) for dtype in ("f2", "f4", "f8", "g")),
    *((dtype, -np.inf) for dtype in ("f2", "f4", "f8", "g")),
    *(("f8", 2.0**54), ("f4", 1e30), ("u8", 2**63), ("c8", 1), ("c16", 1j)),
    *(("M8[D]", 3), ("M8[ns]", 3), ("m8[s]", 3), ("S3", b"abc"), ("V3", b"abc")),
    ([("a", "i4"), ("b", "f8")], (1, 2)),
]


def with_one_number(dtype, value):
    """Arrays, masked arrays and data frames of numbers, one of which is no symbol."""
    X = np.ones((4, 2), dtype="i1").astype(dtype)
    X[0, 1] = value
    yield X
    for masked in (False, True):
        mask = np.zeros(X.shape, dtype=bool)
        mask[1:] = masked  # not what is wrong
        yield np.ma.masked_array(X, mask)
    if X.dtype.kind not in "SVg" and X.dtype != np.longdouble:
        yield pd.DataFrame(X)


def whole_garbage():
    """Things that are no table of symbols at all."""
    dates = pd.date_range("2020-01-01", periods=4)
    codes = np.arange(4)
    return [
        *(None, 3, 1.5, True, "abc", b"abc", 1j, object(), len, int, ...),
        *({}, {"a": [1, 2]}, set(), {1, 2}, range(3), iter([1]), (i for i in [[1]])),
        *([], [[]], [[], []], [None], [1, 2], ["a"], [b"a"], [[[1]]], [{"a": 1}], ()),
        *([[1], [2, 3]], [[1, 2], [3]], [[1], 2], [["a"], ["b", "c"]], [[1, [2]]], [[{}]]),
        *([["a"], [1]], [[1], ["a"]], [["a"], [1.0]], [["a"], [b"b"]], [["a"], [{}]]),
        np.array(3),
        np.arange(3),
        np.array(["a", "b"]),
        np.zeros((2, 2, 2)),
        np.zeros((1, 1, 1, 1)),
        np.empty((0, 1)),
        np.empty((3, 0)),
        np.empty((0, 0), dtype=object),
        np.empty((0, 3), dtype="U1"),
        np.ma.masked_all((0, 2)),
        np.ma.masked,
        np.ma.masked_array([1, 2], [0, 1]),
        np.ma.masked_array([[1j], [1]], [[0], [1]]),
        np.ma.masked_array(np.array([["2020"], ["2021"]], dtype="M8[D]"), [[0], [1]]),
        np.ma.masked_array(np.zeros((3, 1), dtype=[("a", int)]), [[(0,)], [(1,)], [(0,)]]),
        datetime.date(2020, 1, 1),
        pd.Series([1, 2]),
        pd.Index([1, 2]),
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pd.DataFrame(index=range(3)),
        pd.DataFrame({"a": dates}),
        pd.DataFrame({"a": dates, "b": codes}),
        pd.DataFrame({"a": dates, "b": list("abcd")}),
        pd.DataFrame({"a": dates.tz_localize("UTC"), "b": codes}),
        pd.DataFrame({"a": dates.tz_localize("UTC")}),
        pd.DataFrame({"a": dates - dates[0], "b": codes / 1}),
        pd.DataFrame({"a": pd.period_range("2020-01-01", periods=4)}),
        pd.DataFrame({"a": pd.interval_range(0, 4)}),
        pd.DataFrame({"a": pd.Categorical(dates)}),
        pd.DataFrame({"a": pd.Categorical([0.5, 1])}),
        pd.DataFrame({"a": codes - 1.5, "b": pd.array(codes, dtype="Int64")}),
        pd.DataFrame({"a": pd.array([-1, None], dtype="Int64")}),
        pd.DataFrame({"a": [1], 2: [3]}),
        scipy.sparse.csr_array(np.eye(3)),
        scipy.sparse.coo_matrix(np.eye(3)),
        HCRPHMM(),
        HCRPHMM,
    ]


def check_refused_as_data(tables, again, once_more):
    """By `fit`, before and after another one, and by the other methods in turn."""
    fresh = HCRPHMM(**SHORT)
    for i, copies in enumerate(zip(tables, again, once_more, strict=True)):
        model, _, _ = fitted(KINDS[i % len(KINDS)])
        check_refused(model, "fit", copies[0])
        check_refused(fresh, "fit", copies[1])
        check_refused(model, METHODS[i % len(METHODS)], copies[2])
    for kind in KINDS:
        model, X, path = fitted(kind)
        np.testing.assert_array_equal(model.predict(X), path)


def test_entries():
    tables = [X for entry in BAD_ENTRIES for X in with_one_entry(entry)]
    check_refused_as_data(tables, tables, tables)


def test_numbers():
    tables = [X for number in NUMBERS for X in with_one_number(*number)]
    check_refused_as_data(tables, tables, tables)


def test_what_is_no_table():
    # Some of it cannot be used twice.
    check_refused_as_data(whole_garbage(), whole_garbage(), whole_garbage())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_data_of_another_kind(kind, method):
    model, X, _ = fitted(kind)
    types = fitted("strings" if kind == "numbers" else "numbers")[1]
    if kind == "both":
        types = X[::-1, ::-1]
    for other in (X[:, :0], np.column_stack([X, X]), types):
        check_refused(model, method, other)
    unknown = X.astype(object)
    unknown[-1, 0] = 99 if kind == "numbers" else "unknown"
    emission = HCRPCategorical(handle_unknown="error")
    strict = HCRPHMM(emission=emission, **SHORT).fit(X)
    check_refused(strict, method, unknown)


def is_small_number(value):
    """What the emissions of numbers take."""
    real = int | float | Fraction | Decimal | np.integer | np.floating
    return (
        isinstance(value, real)
        and not isinstance(value, np.timedelta64)
        and -(10**100) <= (value.item() if hasattr(value, "item") else value) <= 10**100
    )


@pytest.mark.parametrize(
    "emission", ["gaussian", "diagonal_gaussian", "autoregressive", "poisson", "bernoulli"]
)
def test_emissions_of_numbers(emission):
    tables = [[["a"], [1]], [[1], [2, 3]]]
    for row, entry in enumerate(v for v in BAD_ENTRIES if not is_small_number(v)):
        X = np.ones((4, 2), dtype=object)
        X[row % 4, 1] = entry
        tables += [X, X.tolist(), frame_of(X)]
    for dtype in ("M8[D]", "m8[s]", "S3", "V3", "c8", "c16", "i4,f8"):
        X = np.ones((4, 2), dtype="i1").astype(dtype)
        tables += [X, np.ma.masked_array(X, np.eye(4, 2))]
    model = HCRPHMM(emission=emission, **SHORT)
    for table in tables:
        check_refused(model, "fit", table)


def bad_sequences():
    """Groups and lengths that say nothing about 20 rows."""
    ids = [0] * 10 + [1] * 10
    nested, lists = np.empty(N, dtype=object), np.empty(N, dtype=object)
    tuples = np.empty(N, dtype=object)
    for i in range(N):
        nested[i], lists[i], tuples[i] = np.arange(2), [1], (1, [2])
    with_missing = [
        *([*ids[1:], missing] for missing in (None, np.nan, pd.NA, pd.NaT)),
        *([*map(str, ids[1:]), missing] for missing in (None, np.nan)),
        np.array(["2020"] * 19 + ["NaT"], dtype="M8[D]"),
        np.ma.masked_array(ids, [0] * 19 + [1]),
        np.ma.masked_array(np.array(["a"] * N), [1] + [0] * 19),
        pd.Series([*ids[1:], None], dtype="Int64"),
        pd.Categorical([*map(str, ids[1:]), None]),
    ]
    groups = [
        *(3, 1.5, True, "a", "a" * N, b"a", 1j, object(), len, ..., np.array(3)),
        *({}, {"a": ids}, set(ids), iter(ids), range(N - 1), [], (), [[]]),
        *(ids[:-1], [*ids, 1], [0, 1] * 10, list("ab") * 10, ["a", 1] * 10),
        *([ids], [ids] * N, np.zeros((N, 2)), np.zeros((1, N)), np.zeros((N, 1, 1))),
        *([1j] * N, [[1]] * 19 + [[1, 2]], [[1], 2] * 10, [{}] * N, [{1}] * N),
        *(nested, lists, tuples, np.empty(0), scipy.sparse.csr_array(np.ones((N, 1)))),
        *(pd.DataFrame({"a": ids, "b": ids}), pd.DataFrame(), HCRPHMM()),
        *with_missing,
    ]
    lengths = [
        *(N, 20.0, True, "20", b"20", 1j, object(), len, ..., np.array(N)),
        *({}, {1: 20}, {20}, iter([20]), [], (), [[]], [[20]], [[10, 10]], [[10], 10]),
        *([19], [21], [10, 11], [0, 20], [20, 0], [-1, 21], [30, -10], [-20]),
        *([20.0], [10, 10.0], [np.nan], [None], [np.inf], ["20"], [b"20"], [True] * N),
        *([10**400], [20, 10**400], [2**63, 2**63, 20], [2**63 - 1, 2**63 - 1, 22]),
        *(np.array([2**63, 2**63, 20], dtype="u8"), np.array([2**31, 20]), [1j]),
        *(np.array([236, 20], dtype="u1"), np.array([20], dtype="m8[s]"), [{}], [[], 2]),
        *(np.ma.masked_array([10, 10], [0, 1]), np.empty(0, dtype=int), np.zeros((1, 2))),
        *(pd.Series([10, None], dtype="Int64"), pd.DataFrame({"a": [20]}), pd.Series([])),
    ]
    return [
        *({"groups": value} for value in groups),
        *({"lengths": value} for value in lengths),
        {"groups": ids, "lengths": [N]},
    ]


def test_groups_and_lengths():
    # Some of it cannot be used twice.
    for i, copies in enumerate(zip(bad_sequences(), bad_sequences(), strict=True)):
        model, X, _ = fitted(KINDS[i % len(KINDS)])
        check_refused(model, "fit", X, **copies[0])
        check_refused(model, METHODS[i % len(METHODS)], X, **copies[1])
    for kind in KINDS:
        model, X, path = fitted(kind)
        np.testing.assert_array_equal(model.predict(X), path)


# No parameter takes any of these; test_parameters.py has numbers and words.
JUNK = [
    *(np.nan, 1j, "", "a", b"a", object(), ..., datetime.date(2020, 1, 1), Decimal(1)),
    *(Fraction(-1, 2), np.float32(np.nan), np.datetime64("2020"), pd.NA),
    *(np.array(1j), np.array(["a"]), np.zeros((2, 2)), np.empty(0), HCRPHMM(), range(3)),
    *(pd.Series([1, 2]), pd.Series(["a"]), -(2**70), -(10**400), [], (), {}, [None]),
    *([object()], (1j, 1j), ([], {}), [[[1]]], {"a": [1]}, {1: object()}, [HCRPHMM()]),
]
NESTED = {
    "sampler__block_size": {"sampler": "blocked"},
    "sampler__split_merge_rate": {"sampler": "blocked"},
    "transitions__alpha": {},
    "transitions__gamma": {},
    "transitions__concentration_prior": {},
    "emission__alpha": {},
    "emission__gamma": {},
    "emission__concentration_prior": {},
    "emission__handle_unknown": {},
    "emission__categories": {},
    "emission__concentration": {"emission": "dirichlet"},
}


@pytest.mark.parametrize("name", [*HCRPHMM().get_params(), *NESTED])
def test_parameters(name):
    model, X, path = fitted("numbers")
    model = pickle.loads(pickle.dumps(model)).set_params(**NESTED.get(name, {}))
    for junk in JUNK:
        # But these: every whole number is one of jobs, every string a path.
        if isinstance(junk, {"n_jobs": int, "checkpoint": str}.get(name, ())):
            continue
        model.set_params(**{name: junk})
        check_refused(model, "fit", X)
    model.set_params(n_jobs=None, n_particles=2)
    np.testing.assert_array_equal(model.predict(X), path)


@pytest.mark.parametrize("name", ["n_samples", "random_state"])
def test_samples(name):
    model, _, _ = fitted("numbers")
    for junk in JUNK:
        check_refused(model, "sample", **{"n_samples": 2, name: junk})
