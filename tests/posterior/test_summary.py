"""Summary of a fit: numbers, tables, frames, and how much of a screen it takes."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm.datasets import make_automaton_sequence
from skihmm.emissions import (
    AutoregressiveNormal,
    BernoulliRegression,
    CategoricalRegression,
    NegativeBinomialRegression,
    NormalInverseWishart,
    ProductEmission,
)
from skihmm.posterior import dwell_time_bands, parameter_intervals
from skihmm.posterior._parameters import sampled_parameters
from skihmm.posterior._summary import Group, Parameter, Summary
from skihmm.transitions import HCRPTransitions

SHORT = {"n_burnin": 30, "n_draws": 20, "random_state": 1}
RNG = np.random.default_rng(0)
LEVELS = np.repeat([0.0, 9.0, 0.0, 9.0, 0.0], [40, 20, 40, 20, 80])
U = RNG.normal(size=200)
Y = LEVELS + RNG.normal(size=200)


def fit(X, emission="gaussian", fit_params=None, **params):
    return HCRPHMM(emission=emission, **{**SHORT, **params}).fit(X, **(fit_params or {}))


def lines_of(summary):
    """Printed lines, with one line of the verdict, which is wrapped."""
    verdict, title = re.split(r"\n(?=\d+ states? in|Title)", str(summary), maxsplit=1)
    return [" ".join(verdict.split()), *title.splitlines()]


@pytest.fixture(scope="module")
def fitted():
    return fit(np.column_stack([Y, U]))


@pytest.fixture(scope="module")
def summary(fitted):
    return fitted.summary()


def test_shares_and_segments_are_those_of_the_selected_draw(fitted, summary):
    assert summary.shares.tolist() == [0.8, 0.2]
    assert summary.n_segments.tolist() == [3, 2]
    assert summary.next_states[:, 0].tolist() == [1, 0]
    T = fitted.transmat_
    expected = [T[0, 1] / (1 - T[0, 0]), T[1, 0] / (1 - T[1, 1])]
    np.testing.assert_allclose(summary.next_probabilities[:, 0], expected)


def test_numbers_are_medians_of_the_posterior(fitted, summary):
    drawn = sampled_parameters(fitted._fitted, 4000, 0)
    found = summary.parameters["x0 mean"]
    widths = found[:, 2] - found[:, 1]
    assert (abs(found[:, 0] - np.median(drawn["means_"][..., 0], axis=0)) < widths / 5).all()
    found = summary.parameters["x1 deviation"]
    widths = found[:, 2] - found[:, 1]
    expected = np.median(np.sqrt(drawn["covariances_"][..., 1, 1]), axis=0)
    assert (abs(found[:, 0] - expected) < widths / 5).all()


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_inside_their_intervals(seed):
    """Also where the labels of draws differ, so that the selected draw's are not."""
    rng = np.random.default_rng(seed)
    states = (np.arange(300) // 15) % 3
    y = np.array([0.0, 1.0, 2.0])[states] + rng.normal(size=300)
    hmm = fit(y[:, None], "gaussian", random_state=seed, n_burnin=50, n_draws=50)
    for values in (*hmm.summary().parameters.values(), hmm.summary().dwell_times):
        known = values[~np.isnan(values).any(axis=1)]
        assert (known[:, 1] <= known[:, 0]).all()
        assert (known[:, 0] <= known[:, 2]).all()


@pytest.mark.parametrize(
    ("emission", "names"),
    [
        (NegativeBinomialRegression(exposure="e"), ["n intercept"]),
        (NegativeBinomialRegression(exposure="e", input_features=["u"]), ["n intercept", "n by u"]),
        (BernoulliRegression(n_trials="e"), ["n intercept"]),
    ],
)
def test_exposures_and_trials_have_no_coefficient(emission, names):
    data = DATA.assign(n=np.arange(200) % 3, e=np.arange(200) % 5 + 3)
    data = data[["n", "e", "u"] if len(names) > 1 else ["n", "e"]]
    summary = fit(data, emission, n_burnin=10, n_draws=5).summary()
    assert list(summary.parameters) == names
    assert all(name in str(summary) for name in names)


def test_intervals_are_those_of_the_posterior(fitted, summary):
    """Of 100 values here and of 4,000: within a fifth of their width."""
    lower, _, upper = dwell_time_bands(fitted.draws_, fitted.labels_, random_state=0)
    # Of three and two segments: the upper ends are those of long tails.
    ratios = summary.dwell_times[:, 1:].T / [lower, upper]
    assert (np.abs(np.log(ratios)) < np.log(2.5)).all()
    table = parameter_intervals(fitted, 0.9, n_samples=4000)
    for state in (0, 1):
        rows = table[(table["parameter"] == "means_") & (table["state"] == state)]
        row = rows[rows["place"] == (0,)].iloc[0]
        low, high = summary.parameters["x0 mean"][state, 1:]
        width = row["upper"] - row["lower"]
        assert abs(low - row["lower"]) < width / 5
        assert abs(high - row["upper"]) < width / 5


def test_the_first_line_is_the_verdict(fitted, summary):
    report = str(fitted.diagnose())
    assert lines_of(summary)[0] == summary.verdict
    assert report.startswith(summary.verdict.split(":")[0])


def test_the_printed_table(summary):
    lines = lines_of(summary)
    assert lines[1] == "2 states in 200 steps; [intervals] have 90 % probability."
    assert max(map(len, str(summary).splitlines())) <= 100
    header, first, _ = lines[3:6]
    assert header.split("  ")[0] == "state"
    assert re.match(r"0 +80 % +3 +[\d.]+ \[[\d.]+, [\d.]+\] +1 \(\d+ %\)", first)
    below = lines[7].split("  ")
    assert [cell.strip() for cell in below if cell.strip()] == [
        "state", "x0 mean", "x0 deviation", "x1 mean", "x1 deviation",
    ]  # fmt: skip


def test_the_same_seed_gives_the_same_summary(fitted, summary):
    assert str(fitted.summary()) == str(summary)


def test_frames_have_all_of_it(summary):
    pd = pytest.importorskip("pandas")
    frame = summary.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["state"].tolist() == [0, 1]
    assert frame["n_segments"].tolist() == [3, 2]
    np.testing.assert_array_equal(
        frame[["x0 mean", "x0 mean lower", "x0 mean upper"]], summary.parameters["x0 mean"]
    )
    assert frame["next_state"].tolist() == [1, 0]
    assert frame["second_next_state"].tolist() == [-1, -1]


def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    hmm = fit(pl.DataFrame({"y": Y}))
    assert isinstance(hmm.summary().to_frame(), pl.DataFrame)
    assert "y mean" in hmm.summary().parameters


def test_notebooks_show_tables(summary):
    text = summary._repr_html_()
    assert text.count("<table>") == text.count("</table>") == 2
    assert html.escape(summary.verdict) in text
    assert "<th>dwell time</th>" in text
    assert text.count("<tr>") == 6


def test_names_are_escaped_in_notebooks():
    pd = pytest.importorskip("pandas")
    hmm = fit(pd.DataFrame({"<b>": list("<>") * 20}), "hcrp")
    assert "<b>" not in hmm.summary()._repr_html_().replace("<p><b>", "")


def test_names_of_parts_are_escaped_in_notebooks():
    emission = ProductEmission([("<img src=x>", "gaussian", [0]), ("b", "gaussian", [1])])
    shown = fit(np.column_stack([Y, U]), emission, n_burnin=5, n_draws=5).diagnose()._repr_html_()
    assert "<img" not in shown
    assert "&lt;img src=x&gt;" in shown


OURS = ["state", "share", "segments", "dwell time", "next state", "regime"]


def test_columns_may_have_our_names():
    pd = pytest.importorskip("pandas")
    words = np.where(LEVELS > 4, "hi", "lo")
    data = pd.DataFrame(dict.fromkeys([*OURS, "n_segments"], words))
    summary = fit(data, "hcrp", n_burnin=10, n_draws=5).summary()
    frame = summary.to_frame()
    n_states = len(summary.shares)
    assert frame["state"].tolist() == list(range(n_states))
    np.testing.assert_allclose(frame["share"], summary.shares)
    np.testing.assert_allclose(frame["n_segments"], summary.n_segments)
    assert list(summary.symbols) == list(data.columns)
    assert frame.columns.is_unique
    header, first = lines_of(summary)[3:5]
    assert re.split(r"  +", header) == ["state", *OURS[1:-1]]
    assert first.split()[0] == "0"
    # Columns of X have tables of their own, with their names.
    text = str(summary)
    for name in OURS:
        assert re.search(rf"^state .*\b{name}", text, flags=re.M)
    assert text.count("(100 %)") + text.count("(99 %)") >= 2


def test_labels_that_meet_are_told_apart():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame({"x": Y, "x by u": U, "u": RNG.normal(size=200), "u by u": U[::-1]})
    emission = AutoregressiveNormal(order=0, input_features=["u", "u by u"])
    summary = fit(data, emission, n_burnin=5, n_draws=5).summary()
    # "x" by "u by u", and "x by u" by "u".
    assert {"x by u by u", "x by u by u (2)", "x by u", "x by u by u by u"} < {*summary.parameters}
    assert summary.to_frame().columns.is_unique
    data = pd.DataFrame({"x": Y, "x lag 1": np.where(LEVELS > 4, "hi", "lo")})
    emission = ProductEmission([("a", AutoregressiveNormal(), ["x"]), ("b", "hcrp", ["x lag 1"])])
    summary = fit(data, emission, n_burnin=5, n_draws=5).summary()
    assert "x lag 1" in summary.parameters
    assert list(summary.symbols) == ["x lag 1 (2)"]


def test_names_of_any_type():
    pd = pytest.importorskip("pandas")
    X = np.column_stack([Y, U])
    for names in (
        [10, 20],
        pd.date_range("2020-01-01", periods=2),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
        [2.5, ("a", 1)],
    ):
        data = pd.DataFrame(X, columns=names)
        hmm = fit(data, n_burnin=5, n_draws=5)
        texts = [str(name) for name in names]
        assert hmm.sample(3, random_state=0)[0].columns.tolist() == texts
        assert [*hmm.summary().parameters][::2] == [f"{text} mean" for text in texts]
        np.testing.assert_array_equal(hmm.predict(data), hmm.predict(X))
    unnamed = fit(pd.DataFrame(X), n_burnin=5, n_draws=5)
    assert unnamed.sample(3, random_state=0)[0].columns.tolist() == ["x0", "x1"]


def test_positions_that_are_names_of_other_columns():
    pd = pytest.importorskip("pandas")
    X = np.column_stack([Y, U, U[::-1]])

    def fit_named(names, feature):
        emission = AutoregressiveNormal(order=0, input_features=[feature])
        return fit(pd.DataFrame(X, columns=names), emission, n_burnin=5, n_draws=5)

    for names in ([2, 0, 1], ["2", "0", "1"]):
        with pytest.warns(UserWarning, match=r"2 is the position of the column '1', .* is 0\."):
            hmm = fit_named(names, 2)
        assert hmm.draws_.lp == pytest.approx(fit_named([0, 1, 2], 2).draws_.lp)
    # Without a word: no name, the same column, a name that is no position.
    fit_named([5, 6, 7], 2)
    fit_named([1, 0, 2], 2)
    fit_named(["a", "b", "2"], "2")


def test_control_characters_are_written_as_by_repr():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame({"a\nb\t\x1b[31m": np.where(LEVELS > 4, "h\ni", "lo")})
    summary = fit(data, "hcrp", n_burnin=5, n_draws=5).summary()
    text = str(summary)
    assert r"a\nb\t\x1b[31m" in text
    assert r"h\ni (" in text
    assert not re.search(r"[\x1b\t]", text)
    assert len(lines_of(summary)) == 4 + len(summary.shares)
    assert r"a\nb\t\x1b[31m" in summary._repr_html_()


def test_states_that_are_never_left():
    """The last of three levels is left by the end of the data only."""
    X = np.repeat([0.0, 9.0, 0.0, 9.0, 18.0], [20, 20, 20, 20, 60])[:, None]
    X = X + np.random.default_rng(0).normal(size=X.shape)
    hmm = fit(X, transitions="sticky")
    summary, last = hmm.summary(), hmm.labels_[-1]
    low, high = summary.dwell_times[last, 1:]
    rows = [re.split(r"  +", line) for line in lines_of(summary)[3:7]]
    texts = {row[0]: row[rows[0].index("dwell time")] for row in rows[1:]}
    assert texts.pop(str(last)) == f"> {low:.3g} (never left)"
    assert len(texts) == 2
    assert all(re.fullmatch(r"[\d.]+ \[[\d.]+, [\d.]+\]", text) for text in texts.values())
    np.testing.assert_array_equal(summary.to_frame()["dwell_time upper"][last], high)
    bare = fit(X, transitions="sticky", store_states=False).summary()
    assert str(bare).count("(never left)") == 1


def test_upper_ends_far_beyond_the_data_are_infinite():
    group = Group(
        np.array([0.5, 0.5]),
        np.array([2, 2]),
        np.array([[30.0, 20.0, 99_000.0], [30.0, 20.0, 101_000.0]]),
        np.array([[1, -1], [0, -1]]),
        np.array([[1.0, 0.0], [1.0, 0.0]]),
        np.array([True, True]),
        100,
    )
    text = str(Summary("Verdict.", "Title.", group, None, None, [], []))
    assert "30 [20, 99000]" in text
    assert "30 [20, inf]" in text


def test_draws_without_paths_have_no_intervals(fitted):
    hmm = fit(Y[:, None], store_states=False)
    summary = hmm.summary()
    assert np.isnan(summary.dwell_times[:, 1:]).all()
    assert "[" not in str(summary).partition("\n")[2]


def test_many_states_are_a_line():
    X, _ = make_automaton_sequence(1500, random_state=0)
    hmm = HCRPHMM(n_burnin=200, n_draws=20, random_state=0).fit(X)
    assert hmm.n_states_ > 12
    summary = hmm.summary()
    lines = lines_of(summary)
    others = summary.shares[12:].sum()
    n = hmm.n_states_ - 12
    assert lines[-1] == (f"and {n} state{'s' * (n > 1)} with {100 * others:.0f} % of the steps")
    assert len(lines) <= 24
    assert len(summary.to_frame()) == hmm.n_states_
    names, probs = summary.symbols["x0"]
    own = hmm.labels_ == 0
    values, counts = np.unique(X[own], return_counts=True)
    assert names[0][0] == str(values[counts.argmax()])
    assert (np.diff(probs, axis=1) <= 0).all()


def test_rest_of_the_states_and_of_the_columns():
    """Forty columns and thirty states: the largest come first, in any order of labels."""
    n, rng = 30, np.random.default_rng(1)
    shares = rng.permutation(np.arange(1, n + 1.0))
    states = Group(
        shares / shares.sum(),
        np.ones(n, dtype=int),
        np.ones((n, 3)),
        np.tile([1, 2], (n, 1)),
        np.tile([0.9, 0.001], (n, 1)),
        np.ones(n, dtype=bool),
        n,
    )
    parameters = [(f"x{c} mean", Parameter(np.ones((n, 3)))) for c in range(40)]
    summary = Summary("Verdict.", "Title.", states, None, None, parameters, [])
    lines = lines_of(summary)
    shown = [line.split()[0] for line in lines[4:16]]
    assert shown == [str(k) for k in np.argsort(-shares)[:12]]
    share = np.sort(states.shares)[:18].sum()
    assert lines[16] == f"and 18 states with {100 * share:.0f} % of the steps"
    # A table with a row for every parameter follows.
    assert lines[18].split() == ["state", *shown]
    assert [line.split()[0] for line in lines if "mean" in line] == [f"x{c}" for c in range(24)]
    assert len(lines) < 65
    assert lines[-2:] == [
        "Medians; to_frame() has the intervals.",
        "and 16 more parameters in to_frame()",
    ]
    assert max(map(len, lines)) <= 100
    # An improbable next state is not printed.
    assert lines[4].endswith("1 (90 %)")


def test_what_tells_states_apart_comes_first():
    """By the labels, of numbers of any kind and of symbols; frames keep the order of X."""
    rng = np.random.default_rng(1)
    spread = np.where(LEVELS > 4, 4.0, 1.0) * rng.normal(size=200)
    words = np.where(rng.random(200) < 0.1, "a", np.where(LEVELS > 4, "b", "c"))
    data = DATA.assign(spread=spread, words=words)[["u", "spread", "words", "y"]]
    parts = [("x", "diagonal_gaussian", ["u", "spread", "y"]), ("w", "hcrp", ["words"])]
    summary = fit(data, ProductEmission(parts), n_burnin=10, n_draws=5).summary()
    shown = [line.split("  ")[0] for line in lines_of(summary)[7:]]
    assert shown == [
        *("state", "y mean", "y deviation", "words"),
        *("spread mean", "spread deviation", "u mean", "u deviation"),
    ]
    assert next(iter(summary._parameters)) == "u mean"
    assert summary.to_frame().columns[-1].startswith("y deviation")


def test_many_columns_have_rows():
    """With intervals as far as the width goes; otherwise medians."""
    rng = np.random.default_rng(0)
    X = np.column_stack([Y, rng.normal(size=(200, 5))])
    summary = fit(X, "diagonal_gaussian", n_burnin=5, n_draws=5).summary()
    lines = lines_of(summary)
    assert lines[7].split() == ["state", "0", "1"]
    assert re.match(r"x0 mean +-?[\d.]+ \[.*\] +[\d.]+ \[.*\]$", lines[8])
    assert len(lines) == 8 + 12
    assert summary._repr_html_().count("<tr>") == 3 + 13


def test_states_have_names_of_a_call(fitted, summary):
    named = fitted.summary(names={1: "REM"})
    rows = [line.split() for line in lines_of(named)[4:6]]
    assert [rows[0][0], rows[1][0]] == ["0", "REM"]
    assert "REM (" in str(named)
    assert named.names == ["0", "REM"]
    assert named.to_frame()["name"].tolist() == ["0", "REM"]
    assert str(fitted.summary()) == str(summary)
    assert "name" not in summary.to_frame()
    with pytest.raises(ValueError, match="names has the key 7"):
        fitted.summary(names={7: "REM"})


def test_correlations_have_a_line():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200)
    X = np.column_stack([LEVELS + noise, np.where(LEVELS > 4, -1, 1) * noise])
    X[:, 1] += 0.3 * rng.normal(size=200)
    hmm = fit(X, n_burnin=10, n_draws=10)
    line = hmm.summary().correlations
    pattern = r"Correlations within states: x0 and x1 ([+-]0\.9\d) \(state (\d)\), x0 and x1 .*"
    rho, state = re.fullmatch(pattern, line).groups()
    expected = np.corrcoef(X[hmm.labels_ == int(state)].T)[0, 1]
    assert float(rho) == pytest.approx(expected, abs=0.05)
    assert line in lines_of(hmm.summary())
    assert line in hmm.summary()._repr_html_()
    assert fit(X, "diagonal_gaussian", n_burnin=5, n_draws=5).summary().correlations == ""


def test_inputs_of_staying_are_shown_first():
    data = DATA[["y", "u"]]
    hmm = fit(data, transitions=HCRPTransitions(input_features=["u"]), n_burnin=10, n_draws=10)
    summary = hmm.summary()
    assert next(iter(summary.parameters)) == "staying by u"
    assert re.search("(\n|  )staying by u  ", str(summary))
    drawn = sampled_parameters(hmm._fitted, 4000, 0)["stay_coefficients_"][..., 0]
    values = summary.parameters["staying by u"]
    widths = values[:, 2] - values[:, 1]
    assert (abs(values[:, 0] - np.median(drawn, axis=0)) < widths / 4).all()


def test_regimes_are_shown_if_there_are_fewer(summary):
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 6.0, 0.0, 6.0, 0.0], 200) + rng.gamma(1, size=1000)
    hmm = fit(X[:, None], n_burnin=100)
    regimes, found = hmm.find_regimes(), hmm.summary()
    assert hmm.n_states_ > regimes.n_regimes_ == 2
    assert found.regimes.shares.tolist() == [0.6, 0.4]
    assert found.regimes.n_segments.tolist() == [3, 2]
    np.testing.assert_array_equal(found.regimes.dwell_times[:, 0], regimes.dwell_times_)
    np.testing.assert_array_equal(found.to_frame()["regime"], regimes.state_regimes_)
    lines = lines_of(found)
    assert lines[3].split()[:3] == ["regime", "share", "segments"]
    own = ", ".join(map(str, np.flatnonzero(regimes.state_regimes_ == 0)))
    assert re.match(rf"0 +60 % +3 +[\d.]+ +1 \(\d+ %\) +{own}$", lines[4])
    assert "hmm.segments(states=hmm.regimes_)" in lines[6]
    assert lines[8].split()[:3] == ["state", "regime", "share"]
    assert summary.regimes is None
    assert "regime" not in str(summary).partition("\n")[2]


@pytest.mark.parametrize(
    "transitions",
    [
        HCRPTransitions(context_features=[1]),
        HCRPTransitions(input_features=[1]),
    ],
    ids=["contexts", "inputs of staying"],
)
def test_transitions_without_regimes(transitions):
    given = np.repeat([0.0, 1.0], 100)
    hmm = fit(np.column_stack([Y, given]), transitions=transitions)
    summary = hmm.summary()
    assert summary.regimes is None
    median, lower, upper = summary.dwell_times.T
    assert ((lower < median) & (median < upper)).all()


PANDAS = pytest.importorskip("pandas")
DATA = PANDAS.DataFrame({"y": Y, "u": U, "v": RNG.normal(size=200)})


@pytest.mark.parametrize(
    ("emission", "columns", "names"),
    [
        ("student", ["y"], ["y mean", "y scale"]),
        (
            AutoregressiveNormal(0, input_features=["u"]),
            ["y", "u"],
            ["y intercept", "y by u", "y scale"],
        ),
        (
            AutoregressiveNormal(1, input_features=["u"]),
            ["y", "u"],
            ["y lag 1", "y by u", "y deviation", "y intercept"],
        ),
        (AutoregressiveNormal(2), ["y"], ["y lag 1", "y deviation", "y intercept"]),
        (
            BernoulliRegression(input_features=["u", "v"]),
            ["b", "u", "v"],
            ["b intercept", "b by u", "b by v"],
        ),
        (
            CategoricalRegression(categories=["k", "l", "m"], input_features=["u"]),
            ["c", "u"],
            ["c", "c k intercept", "c l intercept", "c k by u", "c l by u"],
        ),
        ("poisson", ["n"], ["n rate"]),
        ("negative_binomial", ["n"], ["n mean"]),
        ("gamma", ["p"], ["p mean"]),
        ("von_mises", ["a"], ["a direction"]),
        ("bernoulli", ["b"], ["b probability"]),
        (
            ProductEmission([("of_y", "diagonal_gaussian", ["y"]), ("of_c", "hcrp", ["c"])]),
            ["c", "y"],
            ["c", "y mean", "y deviation"],
        ),
    ],
)
def test_parameters_by_emission(emission, columns, names):
    data = DATA.assign(
        b=(Y > U).astype(int),
        c=np.array(list("klm"))[np.arange(200) % 3],
        n=np.abs(Y).astype(int),
        p=np.abs(Y) + 0.1,
        a=np.remainder(Y, 6),
    )[columns]
    hmm = fit(data, emission, n_burnin=10, n_draws=5)
    summary = hmm.summary()
    assert list(summary._parameters) == names
    for name, values in summary.parameters.items():
        assert values.shape == (hmm.n_states_, 3), name
        assert np.isfinite(values).all()
        assert (values[:, 1] <= values[:, 0]).all()
        assert (values[:, 0] <= values[:, 2]).all()
    shown = [name for name, each in summary._parameters.items() if each.is_shown]
    assert len(shown) <= len(columns) * 3 + 1
    coefficients = getattr(hmm.emission_, "coefficients_", None)
    if coefficients is not None and f"{columns[0]} by u" in summary.parameters:
        lags = getattr(emission, "order", 0)
        # The selected draw's is one of the posterior's.
        _, low, high = summary.parameters[f"{columns[0]} by u"].T
        selected = coefficients[:, 0, lags]
        assert ((2 * low - high < selected) & (selected < 2 * high - low)).all()
    assert len(summary.to_frame()) == hmm.n_states_
    str(summary)


def test_subjects_have_a_line():
    shift = np.repeat([0.0, 2.0, -1.0, 1.0], 50)
    data = PANDAS.DataFrame({"y": Y + shift, "who": np.repeat(list("abcd"), 50)})
    hmm = fit(data, NormalInverseWishart(subject_feature="who"), {"groups": data["who"]})
    (line,) = hmm.summary().subjects
    assert re.match(r"4 subjects, offsets: y -[\d.]+ \(c\) to [\d.]+ \(b\)$", line)
    assert lines_of(hmm.summary())[-1] == line
    assert "of 4 sequences" in str(hmm.summary())


@pytest.mark.parametrize("seed", [0, 12])  # 12: drawn dwell times that overflow
def test_one_state_that_is_never_left(seed):
    X = np.random.default_rng(seed).normal(size=(40, 1))
    summary = fit(X, n_draws=30).summary()
    if len(summary.shares) == 1:
        assert summary.next_states.tolist() == [[-1, -1]]
    str(summary)


def test_nothing_follows_a_state_that_is_never_left():
    """The end of every case: its next states would be draws of the prior."""
    X = [["a"], ["b"], ["a"], ["b"], ["END"]] * 20
    groups = np.repeat(np.arange(20), 5)
    hmm = HCRPHMM(n_burnin=100, n_draws=10, random_state=0).fit(X, groups=groups)
    (row,) = [line for line in str(hmm.summary()).splitlines() if "END (100 %)" in line]
    assert re.search(r"\(never left\) +- +END", row)
