"""What notebooks show of draws, regimes, forecasts and estimators, and progress of checks."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm.emissions import GammaPoisson, ProductEmission
from skihmm.testing import check_emission

RNG = np.random.default_rng(0)
LEVELS = np.repeat([0.0, 9.0, 0.0, 9.0], 25)
X = np.column_stack([LEVELS + RNG.normal(size=100), np.where(LEVELS > 4, "<b>", "a")]).astype(
    object
)
PARTS = ProductEmission([("word", "hcrp", [1]), ("size", "gaussian", [0])])
SETTINGS = {"n_burnin": 10, "n_draws": 20, "random_state": 0}


@pytest.fixture(scope="module")
def hmm():
    return HCRPHMM(emission=PARTS, n_chains=2, **SETTINGS).fit(X)


def cells_of(shown):
    """Cells of the only table, unescaped, by rows."""
    assert shown.count("<table>") == shown.count("</table>") == 1
    rows = re.findall(r"<tr>(.*?)</tr>", shown)
    return [[html.unescape(c) for c in re.findall(r"<t[dh]>(.*?)</t[dh]>", row)] for row in rows]


def test_tables_of_draws(hmm):
    draws = hmm.draws_
    head, *rows = cells_of(draws._repr_html_())
    assert head == ["chain", "draws", "states", "log joint probability", "weight"]
    assert [row[:2] for row in rows] == [["0", "20"], ["1", "20"]]
    for c, row in enumerate(rows):
        ends = sorted({int(draws.n_states[c].min()), int(draws.n_states[c].max())})
        assert row[2] == " to ".join(map(str, ends))
        assert row[3] == f"{draws.lp[c].mean():.1f}"
        assert row[4] == f"{100 * draws.chain_weights[c]:.0f} %"


def test_tables_of_regimes(hmm):
    regimes = hmm.find_regimes()
    head, *rows = cells_of(regimes._repr_html_())
    assert head == ["regime", "share", "dwell time", "states"]
    assert len(rows) == regimes.n_regimes_
    shares = np.bincount(regimes.labels_) / 100
    assert [row[1] for row in rows] == [f"{100 * share:.0f} %" for share in shares]
    found = {int(k): r for r, row in enumerate(rows) for k in row[3].split(", ")}
    assert [found[k] for k in range(hmm.n_states_)] == regimes.state_regimes_.tolist()


@pytest.mark.parametrize(("n_steps", "n_rows"), [(1, 1), (12, 12), (15, 12)])
def test_tables_of_forecasts(hmm, n_steps, n_rows):
    following = hmm.predict_next(X, n_steps=n_steps)
    shown = following._repr_html_()
    head, *rows = cells_of(shown)
    assert head == ["step", "x0", "x1"]
    assert [row[0] for row in rows] == [str(i + 1) for i in range(n_rows)]
    low, middle, high = (float(v) for v in following.quantile([0.05, 0.5, 0.95])[:, 0, 0])
    assert rows[0][1] == f"{middle:.3g} [{low:.3g}, {high:.3g}]"
    likely = ["<b>", "a"][int(following.proba(1)[0, 1] > following.proba(1)[0, 0])]
    assert rows[0][2].startswith(f"{likely} (")
    assert ("and 3 more steps" in shown) == (n_steps == 15)


def test_estimators_name_rows_states_and_columns(hmm):
    n = hmm.n_states_
    assert f"<div>100 rows of {n} states and 2 columns</div>" in hmm._repr_html_()
    assert "features</div>" not in hmm._repr_html_()
    assert "rows of" not in HCRPHMM()._repr_html_()


def test_checks_of_emissions_show_their_progress(capsys):
    counts = np.random.default_rng(0).poisson(3, size=(40, 2)).astype(float)
    check_emission(GammaPoisson(), counts)
    lines = capsys.readouterr().out.splitlines()
    n = len(lines)
    assert all(re.match(rf"check {i}/{n}: \w", line) for i, line in enumerate(lines, 1))
    check_emission(GammaPoisson(), counts, verbose=False)
    assert capsys.readouterr().out == ""
