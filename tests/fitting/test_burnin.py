"""When a burn-in of no fixed length ends, and what such fits keep."""

from __future__ import annotations

import numpy as np
import pytest
from fitting.test_checkpointed_fits import EndsAt, quiet
from fitting.test_reproducibility import assert_same

from skihmm import HCRPHMM
from skihmm._fitting import burnin as _burnin
from skihmm._fitting import run as _run
from skihmm._fitting.burnin import end_of_burnin, has_settled, least_burnin, usual_thin
from skihmm._fitting.checkpoint import load, save

ROWS = 200


@pytest.fixture
def short_checks(monkeypatch):
    """First checks after 24 sweeps, and burn-ins of 60 at most, on a few hundred rows."""
    monkeypatch.setattr(_burnin, "CHEAP", 24 * ROWS)
    monkeypatch.setattr(_burnin, "LEAST", 24)
    for module in (_burnin, _run):
        monkeypatch.setattr(module, "MOST", 60)


@pytest.fixture
def rows():
    noise = np.random.default_rng(0).normal(size=(ROWS, 1))
    return 3 * np.repeat(np.arange(10) % 2, 20)[:, None] + noise


def make_model(path=None, **params):
    short = {"n_draws": 4, "thin": 3, "random_state": 0, "checkpoint": path}
    short |= {"checkpoint_interval": 0, "init": "single"}
    return HCRPHMM(emission="gaussian", **{**short, **params})


def levels(n, slope=0.0, states=3.0):
    """Levels with noise of deviation one, and a trend of the log joint probability."""
    lp = np.random.default_rng(0).normal(size=n) + slope * np.arange(n)
    return np.stack([lp, np.full(n, states)], axis=1)


def test_short_data_have_the_whole_burn_in():
    for n_steps in (1, 100, 10_000):
        assert least_burnin(n_steps) == 500
        assert usual_thin(n_steps) == 5
        # Whatever the levels.
        assert not has_settled(levels(124), n_steps)
        assert has_settled(levels(125), n_steps)


def test_long_data_are_checked_early():
    assert [least_burnin(n) for n in (20_000, 10**5, 10**6)] == [248, 48, 48]
    assert [usual_thin(n) for n in (20_000, 50_000, 10**6)] == [2, 1, 1]


def test_a_burn_in_ends_when_levels_rest():
    n_steps = 10**5
    assert end_of_burnin(levels(125), n_steps) == 48
    # A trend of one standard deviation between two levels.
    assert end_of_burnin(1e3 * levels(125, slope=1.0), n_steps) == 500
    # Between checks, after 48, 72, 108 and 160 sweeps, no burn-in ends.
    at_rest = np.vstack([1e3 * levels(13, slope=20.0), 1e3 * levels(112) + 240e3])
    assert end_of_burnin(at_rest, n_steps) in (72, 108, 160)
    changing = levels(125)
    changing[:, 1] = np.arange(125) // 2
    assert end_of_burnin(changing, n_steps) == 500


def test_defaults_of_short_data(rows):
    default = HCRPHMM(emission="gaussian", random_state=0).fit(rows)
    explicit = HCRPHMM(emission="gaussian", n_burnin=500, thin=5, random_state=0)
    assert_same(default, explicit.fit(rows))
    assert default.n_burnin_.tolist() == [500]
    assert default.thin_ == 5


def test_chains_end_their_burn_in_when_they_have_settled(rows, short_checks):
    model = make_model(n_chains=4).fit(rows)
    ends = model.n_burnin_
    assert set(ends.tolist()) <= {24, 36, 52, 60}
    assert len(set(ends.tolist())) > 1
    np.testing.assert_array_equal(model.draws_.sweep[:, 0], ends + 3)
    np.testing.assert_array_equal(model.draws_.sweep[:, -1], ends + 12)
    # The draws are those of a fixed burn-in of this length.
    fixed = make_model(n_burnin=int(ends[0])).fit(rows)
    np.testing.assert_array_equal(fixed.draws_.lp[0], model.draws_.lp[0])


@pytest.mark.parametrize("sweep", [5, 15, 24, 27, 31, 40])
def test_a_stopped_fit_goes_on(rows, short_checks, tmp_path, sweep):
    whole = make_model(n_chains=2).fit(rows)
    for kind in ("checkpoint", "warm_start"):
        path = tmp_path / "chains" if kind == "checkpoint" else None
        model = make_model(path, n_chains=2, callback=EndsAt(sweep))
        with quiet():
            model.fit(rows)
        model.set_params(callback=None, warm_start=path is None)
        if path is None:
            # Chain 1 has its draws, chain 0 those up to the callback.
            n_draws = model.draws_.n_draws
            model.set_params(n_draws=1).fit(rows)
            assert model.n_burnin_.tolist() == whole.n_burnin_.tolist()
            n = min(n_draws[0] + 1, 4) if whole.n_burnin_[0] + 3 <= sweep else 1
            got, expected = model.draws_.lp[0, :n], whole.draws_.lp[0, :n]
            np.testing.assert_array_equal(got, expected)
        else:
            assert_same(model.fit(rows), whole)


def test_sweeps_before_a_stop(rows, short_checks):
    model = make_model(callback=EndsAt(7))
    with quiet():
        model.fit(rows)
    assert model.n_burnin_.tolist() == [7]


def test_jobs_and_further_data(rows, short_checks):
    whole = make_model(n_chains=3).fit(rows)
    assert_same(make_model(n_chains=3, n_jobs=2).fit(rows), whole)
    both = make_model(n_chains=3).fit(rows).partial_fit(rows[:50])
    assert (both.n_burnin_ < 60).any()
    assert both.labels_.shape == (250,)


def test_progress_has_the_sweeps_of_the_burn_in(rows, short_checks):
    totals = []
    make_model(callback=lambda report: totals.append(report.n_sweeps)).fit(rows)
    assert totals[0] == 60 + 12
    assert totals[-1] == len(totals) < 72


def test_an_altered_end_is_refused(rows, short_checks, tmp_path):
    path = tmp_path / "run.npz"
    make_model(path, n_draws=2).fit(rows)
    content = load(path, "chain")
    history = content["history"]
    end = history["n_burnin"]
    shorter = {"n_burnin": end - 4, "last": history["last"] - 4}
    for change in (
        shorter,
        {"n_burnin": end + 4},
        {"levels": history["levels"][:, :1]},
        {"levels": history["levels"].astype(int)},
        {"levels": None},
    ):
        save(path, "chain", {**content, "history": {**history, **change}})
        with pytest.raises(ValueError, match="does not hold a chain on this data"):
            make_model(path).fit(rows)
