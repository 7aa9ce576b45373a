"""Where sequences begin, and what the index of a data frame says about it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from data.test_garbage import METHODS
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skihmm import HCRPHMM
from skihmm._data import validation as _validation
from skihmm._data.row_index import describe_steps, forecast_times, row_index, row_times
from skihmm._data.sequences import sequence_starts
from skihmm._draws import occupancy_order
from skihmm._fitting.starts import packed
from skihmm.emissions import HCRPCategorical
from skihmm.metrics import ParticleFilterScorer

pd = pytest.importorskip("pandas")

ENTRIES = {
    "integers": [[7, 0], [3, 1], [3, 0], [9, 1], [7, 1], [5, 0], [3, 2]],
    "missing": [[7, 0], [np.nan, 1], [3, np.nan], [9, 1], [np.nan, 1], [5, 0], [3, 2]],
    "strings": [["c", "x"], [None, "x"], ["a", "y"], ["c", "x"], ["b", None], *2 * [["a"] * 2]],
}
SHORT = {"n_burnin": 1, "n_draws": 1, "thin": 1, "n_particles": 2, "random_state": 0}


def frame(sequence, index=None):
    return pd.DataFrame({"symbol": sequence[:, 0]}, index=index)


def text_of(index, **given):
    """Warning of an index, without pandas' types in the way."""
    return describe_steps(np.asarray(index), sequence_starts(len(index), **given))


def seconds(values):
    return np.datetime64("2026-03-01", "ns") + (np.asarray(values) * 1e9).astype("m8[ns]")


RNG = np.random.default_rng(0)
REGULAR = 600.0 * np.arange(600)
LATE = np.arange(600) >= 450
HOLE = REGULAR + np.where(np.arange(600) >= 300, 43200, 0)
KINDS = pytest.mark.parametrize("kind", [seconds, np.asarray, np.rint], ids=["t", "float", "int"])


def of_kind(kind, values):
    return np.rint(values).astype(np.int64) if kind is np.rint else kind(values)


@KINDS
@pytest.mark.parametrize(
    "values",
    [
        HOLE,
        HOLE + np.where(LATE, 180, 0),
        HOLE - np.where(LATE, 180, 0),
        HOLE + RNG.uniform(-120, 120, 600),
        # Nights repeat, but the other holes are of all lengths.
        REGULAR + np.cumsum(np.isin(np.arange(600), [90, 300]) * 43200)
        + np.cumsum(np.where(np.isin(np.arange(600), [80, 200, 400]), 97.0 * np.arange(600), 0)),
    ],
)  # fmt: skip
def test_holes_are_named_whatever_the_other_steps(kind, values):
    index = of_kind(kind, values)
    row = int(np.argmax(np.diff(values) > 4000))
    text = text_of(index)
    assert f"(row {row}) to " in text
    assert f"(row {row + 1})" in text
    assert "a longer step than elsewhere" in text
    assert ("X.asfreq(...)" if kind is seconds else "X.reindex(...)") in text
    assert "KFold" not in text  # steps of one would be row numbers
    assert "pass groups" in text
    assert text_of(index[row - 9 : row + 1]) is None
    lengths = [row + 1, len(index) - row - 1]
    assert "pass groups" not in (text_of(index, lengths=lengths) or "")


@KINDS
@pytest.mark.parametrize(
    "values",
    [
        REGULAR,
        REGULAR + RNG.uniform(-120, 120, 600),
        np.cumsum(RNG.exponential(600, 600).round() + 1),
        REGULAR + 43200 * (np.arange(600) // 60),  # nights
        REGULAR + 43200 * (np.arange(600) // 60) + 86400 * (np.arange(600) // 300),
        86400.0 * (np.arange(600) + 2 * (np.arange(600) // 5)),  # business days
        86400.0 * np.delete(np.arange(400), RNG.choice(400, 8, replace=False)),
    ],
)
def test_jitter_and_what_repeats_are_no_holes(kind, values):
    assert text_of(of_kind(kind, values)) is None


@KINDS
def test_many_holes_are_counted(kind):
    for lengths in np.full(600, 43200), 7200 + RNG.exponential(40000, 600):  # also if they repeat
        values = REGULAR + np.cumsum(np.where(np.arange(600) % 8 == 7, lengths, 0))
        text, row = text_of(of_kind(kind, values)), int(np.diff(values).argmax())
        assert "has 75 steps of more than 5 times the usual one, the largest from" in text
        assert f"(row {row}) to" in text
        assert "X." not in text  # no advice


@KINDS
def test_rows_that_are_lost_at_random(kind):
    values = REGULAR[RNG.random(600) > 0.15]
    values[len(values) // 2 :] += 43200
    text = text_of(of_kind(kind, values))
    share = 100 * np.mean(np.diff(values)[np.diff(values) < 6000] > 700)
    assert text.startswith(f"{share:.0f} % of the steps")
    assert f"(row {len(values) // 2 - 1}) to" in text  # the largest
    assert ("X.asfreq(...)" if kind is seconds else "X.reindex(...)") in text


@KINDS
@pytest.mark.parametrize(
    ("rows", "pair", "more"),
    [
        ([*range(40), 39, *range(40, 90)], (39, 40), 0),
        (np.repeat(np.arange(30), 2), (0, 1), 29),
        ([*range(30), *range(30)], (0, 30), 29),
        ([*range(30), 100, *range(130, 90, -1)], (30, 61), 0),  # whatever the order
    ],
)
def test_values_that_occur_twice_are_named(kind, rows, pair, more):
    index = of_kind(kind, 60.0 * np.asarray(rows))
    text = text_of(index)
    assert f" twice, in rows {pair[0]} and {pair[1]}" in text
    assert ("more places" in text) == (more > 0)
    assert f"at {more} more" in text or not more
    assert ("zone" in text) == (kind is seconds)
    assert "X.index.duplicated()" in text


@pytest.mark.parametrize(
    ("labels", "rows", "more"),
    [
        ([5, 6, 7, 1, 2, 3], (2, 3), 0),  # frames put together
        ([3, 2, 1, 9, 8], (2, 3), 0),
        ([40, 3, 4], (0, 1), 0),
        ([9, 8, 10], (0, 1), 0),
        ([4, 0, 3, 1, 2], (0, 1), 1),  # shuffled
        ([-(2**62), 0, 2**62, 5], (2, 3), 0),
    ],
)
def test_disorder_is_noticed(labels, rows, more):
    text = text_of(labels)
    first, second = (f"{labels[row]} (row {row})" for row in rows)
    assert f"out of order from {first} to {second}" in text
    assert (f"at {more} more places" in text) == (more > 0)
    for remedy in ("pass groups", "X.sort_index()", "reset_index("):
        assert remedy in text
    assert "KFold" not in text


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        ([0], {}),
        ([7, 3], {}),  # two rows have only one step
        ([3, 4, 5, 6], {}),
        ([10, 7, 4, 1], {}),
        ([2, 2, 2], {}),
        ([2, 2, 2, 7, 7, 7], {"lengths": [3, 3]}),  # subjects
        ([0, 1, 2, 17, 18, 19], {"lengths": [3, 3]}),
        ([0, 1, 2, 0, 1, 2], {"groups": list("aaabbb")}),
        # A step from row to row for each sequence, which may differ.
        ([0, 1, 2, 0, 10, 20, 5, 9], {"groups": [1, 1, 1, 2, 2, 2, 3, 3]}),
        ([4, 9, 1], {"lengths": [1, 1, 1]}),
    ],
)
def test_no_warning_without_a_gap(labels, given):
    assert text_of(labels, **given) is None


def test_positions_are_no_row_numbers():
    """Cross-validation leaves holes in row numbers, and in no positions on a genome."""
    rows = np.r_[:100, 150:300]
    assert "KFold" in text_of(rows)
    assert "TimeSeriesSplit" in text_of(np.flatnonzero(RNG.random(400) > 0.25))
    for positions in 1000 * rows, np.cumsum(RNG.integers(1, 2000, 250)) + 4_000_000 * (rows > 99):
        text = text_of(positions)
        assert "a longer step" in text
        assert "KFold" not in text


def test_declared_sequences_can_have_gaps_inside():
    index = np.r_[9, 0, 4:30, 45:60]
    text = text_of(index, lengths=[2, 41])
    assert "from 29 (row 27) to 45 (row 28), a longer" in text
    assert "reset_index(" in text
    assert "pass groups" not in text  # they were passed


def test_series_in_an_index_of_two_levels(sequence):
    days = pd.date_range("2026-01-01", periods=30)
    index = pd.MultiIndex.from_product([["a", "b"], days])
    X, ids = frame(sequence, index), index.get_level_values(0)
    hmm = HCRPHMM(**SHORT)
    match = r"several series\? groups=X\.index\.get_level_values\(0\)"
    with pytest.warns(UserWarning, match=match) as caught:
        hmm.fit(X)
    assert len(caught) == 1
    hmm.fit(X, groups=ids).predict(X.loc[["a"]])  # of one series
    with pytest.warns(UserWarning, match=match):
        hmm.predict(X)
    with pytest.warns(UserWarning, match=r"get_level_values\(1\)"):
        hmm.fit(X.swaplevel())
    with pytest.raises(ValueError, match=r"join the two: df\.mouse \+ '/' \+ df\.session"):
        hmm.fit(X, groups=[1, 2, 1] * 20)


def test_which_indices_are_looked_at(sequence):
    index = np.arange(60)
    for kind in ("int64", "int16", "uint8", "Int64", "float64", "Float32"):
        labels = row_index(frame(sequence, pd.Index(index[::-1], dtype=kind)))
        np.testing.assert_array_equal(labels, index[::-1])
        assert labels.dtype == (np.float64 if "loat" in kind else np.int64)
    np.testing.assert_array_equal(row_index(frame(sequence)), index)
    gap = pd.Index([1, 2, None], dtype="Int64")
    days = pd.date_range("2020-01-01", periods=60)
    for dates in (days, days.tz_localize("UTC"), days.to_period("D")):
        np.testing.assert_array_equal(row_index(frame(sequence, dates)), days)
    for other in (
        pd.Index([str(i) for i in index]),
        pd.Index(index % 2 == 0),
        pd.MultiIndex.from_arrays([index, index]),
        pd.timedelta_range("0s", periods=60),
    ):
        assert row_index(frame(sequence, other)) is None
    assert row_index(pd.DataFrame({"symbol": [1, 2, 3]}, index=gap)) is None
    for other in (sequence, sequence.tolist(), [[1]], "text", None):
        assert row_index(other) is None


@pytest.mark.parametrize(
    "kind",
    ["timestamp[ns][pyarrow]", "timestamp[us, tz=Europe/Berlin][pyarrow]", "date32[pyarrow]"],
)
def test_times_of_arrow(sequence, kind):
    pytest.importorskip("pyarrow")
    days = pd.date_range("2020-01-01", periods=60, tz="Europe/Berlin" if "tz" in kind else None)
    arrow = pd.array(days.date if "date32" in kind else days, dtype=kind)
    X, plain = frame(sequence, pd.Index(arrow)), frame(sequence, days)
    for read in (row_index, row_times, lambda X: forecast_times(X, 50, 3)):
        np.testing.assert_array_equal(read(X), read(plain))


def test_forecasts_after_the_last_time_have_none(sequence):
    last = pd.Timestamp.max - pd.to_timedelta(np.arange(60)[::-1], unit="s")
    assert forecast_times(frame(sequence, last), 50, 3) is None


@pytest.fixture(scope="module")
def model(sequence):
    return HCRPHMM(**SHORT).fit(frame(sequence))


@pytest.mark.parametrize("method", [*METHODS, "fit", "scorer"])
def test_every_method_warns(model, sequence, method):
    glued = frame(sequence).iloc[[*range(20), *range(40, 60)]]
    if method == "fit":
        call = HCRPHMM(**SHORT).fit
    elif method == "scorer":

        def call(X, groups=None):
            return ParticleFilterScorer(n_particles=2)(model, X, groups=groups)

    else:
        call = getattr(model, method)
    with pytest.warns(UserWarning, match=r"from 19 \(row 19\) to 40 \(row 20\)") as caught:
        call(glued)
    assert len(caught) == 1
    # Each of the remedies, and the numbers alone, are taken without a word.
    for X, given in (
        (glued, {"groups": np.repeat([1, 2], 20)}),
        (glued.reset_index(drop=True), {}),
        (glued.set_index(pd.date_range("2020-01-01", periods=40)), {}),
        (frame(sequence).iloc[30:], {}),
        (frame(sequence).iloc[::2], {}),
    ):
        call(X, **given)


def test_numbers_without_an_index_say_nothing(sequence):
    HCRPHMM(**SHORT).fit(sequence[[*range(20), *range(40, 60)]])


def test_the_warning_comes_from_where_fit_was_called(sequence):
    with pytest.warns(UserWarning, match="a longer step") as caught:
        HCRPHMM(**SHORT).fit(frame(sequence).iloc[[*range(20), *range(40, 60)]])
    assert caught[0].filename == __file__


# -- cross-validation -----------------------------------------------------------------


def count_warnings(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return sum("consecutive time steps" in str(w.message) for w in caught)


def cross_validate(X, cv, **given):
    def run():
        cross_val_score(HCRPHMM(**SHORT), X, cv=cv, error_score="raise", **given)

    return count_warnings(run)


def test_k_fold_of_one_sequence_warns(sequence):
    X = frame(sequence)
    # The first and the last training set are in one piece, the two others are glued.
    assert cross_validate(X, KFold(4)) == 2
    # Shuffled: all training sets.  Test sets are at irregular distances, as positions are.
    assert cross_validate(X, KFold(4, shuffle=True, random_state=0)) == 4
    assert cross_validate(X, TimeSeriesSplit(4)) == 0
    # Arrays have no index: there is nothing to notice.
    assert cross_validate(sequence, KFold(4)) == 0


def test_sequences_that_are_not_declared_warn(sequence):
    X, groups = frame(sequence), np.repeat(np.arange(6), 10)
    # Without metadata routing the ids reach the splitter only.  (Which sequences are
    # neighbours depends on the folds.)
    assert cross_validate(X, GroupKFold(3), groups=groups) > 0
    with sklearn.config_context(enable_metadata_routing=True):
        assert cross_validate(X, GroupKFold(3), params={"groups": groups}) == 0
        # scikit-learn hands none to predict, where a test set is two sequences.
        every_sixth = np.concatenate([np.arange(i, 60, 6) for i in range(6)])
        X = X.iloc[every_sixth]
        found = count_warnings(
            lambda: cross_val_predict(
                HCRPHMM(**SHORT), X, cv=GroupKFold(3), params={"groups": groups}
            )
        )
        assert found == 3


def test_the_index_goes_through_pipelines_that_keep_it(sequence):
    glued = frame(sequence).iloc[[*range(20), *range(40, 60)]]
    plain = make_pipeline(OrdinalEncoder(), HCRPHMM(**SHORT))
    kept = make_pipeline(OrdinalEncoder().set_output(transform="pandas"), HCRPHMM(**SHORT))
    assert count_warnings(lambda: plain.fit(glued)) == 0
    assert count_warnings(lambda: kept.fit(glued)) == 1


def test_lengths_in_the_place_of_y_are_noticed(sequence):
    # As hmmlearn takes them.
    hmm = HCRPHMM(n_burnin=1, n_draws=1, n_particles=2, random_state=0)
    message = "y has 2 entries, but X has 60 rows"
    for call in (hmm.fit, hmm.partial_fit, hmm.fit(sequence).score, hmm.perplexity):
        with pytest.raises(ValueError, match=message):
            call(sequence, [40, 20])
    with pytest.raises(ValueError, match=message):
        hmm.fit(frame(sequence), [40, 20])
    hmm.fit(sequence, np.zeros(60)).score(sequence, np.zeros(60))


@pytest.mark.parametrize("kind", ENTRIES)
def test_long_data_are_encoded_in_chunks(kind, monkeypatch):
    dtype = object if kind == "strings" else None
    X, unknown = np.array(ENTRIES[kind], dtype=dtype), np.array([["d", "x"]], dtype=object)
    if kind != "strings":
        unknown = np.array([[8.0, 1.0]])
    whole = HCRPCategorical().fit(X)
    monkeypatch.setattr(_validation, "CHUNK_ROWS", 2)
    parts = HCRPCategorical().fit(X)
    for found, expected in zip(parts.categories_, whole.categories_, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    codes = parts.encode_values(X)
    # Decoding is by hand, without chunks.
    for c, values in enumerate(whole.categories_):
        for code, entry in zip(codes[:, c], X[:, c], strict=True):
            missing = entry is None or entry != entry
            assert code == -1 if missing else values[code] == entry
    refusing = HCRPCategorical(handle_unknown="error").fit(X)
    with pytest.raises(ValueError, match=r"holds the symbol (8|'d')"):
        refusing.encode_values(np.concatenate([X, unknown.astype(X.dtype)]))


def test_labels_are_numbered_in_chunks(monkeypatch):
    labels = np.random.default_rng(0).choice([0, 4, 5, 900], size=50)
    monkeypatch.setattr(_validation, "CHUNK_ROWS", 7)
    numbers = packed(labels)
    np.testing.assert_array_equal(numbers, np.unique(labels, return_inverse=True)[1])
    assert numbers.dtype == np.int32
    order = occupancy_order(numbers, 4)
    sizes, first = np.bincount(numbers), [list(numbers).index(k) for k in range(4)]
    assert list(order) == sorted(range(4), key=lambda k: (-sizes[k], first[k]))


@pytest.mark.parametrize("emission", ["hcrp", "poisson", "gaussian"])
def test_columns_like_identifiers_are_named(emission):
    X = np.random.default_rng(0).integers(4, size=(60, 2))
    hmm = HCRPHMM(emission=emission, n_burnin=1, n_draws=1, random_state=0).fit(X)
    for times in np.arange(60), 1_700_000_000 + 3 * np.arange(60), np.arange(60) % 30:
        X[:, 1] = times
        with pytest.warns(UserWarning, match="Column 1 of X has integers that increase"):
            hmm.fit(X, lengths=[30, 30])


def test_sequences_of_one_row_and_ids_among_the_observations_are_named():
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(60, 2)), np.repeat(np.arange(4), 15)
    hmm = HCRPHMM(emission="gaussian", n_burnin=1, n_draws=1, random_state=0)
    with pytest.warns(UserWarning, match="X has 60 sequences in 60 rows, so that hardly"):
        hmm.fit(X, groups=np.arange(60))
    X[:, 1] = ids
    with pytest.warns(UserWarning, match="Column 1 of X has one value in every sequence"):
        hmm.fit(X, groups=ids)
    symbols = np.c_[rng.integers(3, size=60).astype(str), ids.astype(str)].astype(object)
    with pytest.warns(UserWarning, match="Column 1 of X has one value in every sequence"):
        HCRPHMM(n_burnin=1, n_draws=1, random_state=0).fit(symbols, groups=ids)
    X[:, 1] = rng.normal(size=60)
    hmm.fit(X)
    for rows, given in (1, {"lengths": [1]}), (3, {"groups": [0, 1, 2]}):
        with pytest.warns(UserWarning, match=r"(?s)hardly any row .* OnlineFilter takes"):
            hmm.partial_fit(X[:rows], **given)
    X[:, 1] = ids
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X[20, 1] = 7
        hmm.fit(X, groups=ids)
        hmm.fit(X[:, :1], groups=np.repeat(np.arange(30), 2))
        hmm.fit(X[:15, :1], groups=np.arange(15))
        hmm.partial_fit(X[:2, :1], lengths=[2])
        # The row goes on with a sequence.
        hmm.partial_fit(X[:1, :1], groups=[14])
