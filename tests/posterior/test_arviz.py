"""draws_.to_arviz with the ArviZ that is installed, and without one."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

from skihmm import HCRPHMM
from skihmm._draws import PosteriorDraws
from skihmm.metrics import effective_sample_size, rhat

SCALARS = ("alpha", "gamma", "emission_alpha", "emission_gamma", "n_states")


@pytest.fixture(scope="module", params=["arviz", "arviz_base"])
def arviz(request):
    """ArviZ before and after 1.0, which is made of parts that can be had alone."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # (It announces its own changes.)
        module = pytest.importorskip(request.param)
        if request.param == "arviz_base":
            patch.setitem(sys.modules, "arviz", None)
        yield module


@pytest.fixture(scope="module")
def draws():
    """Three chains that hardly have anything to find."""
    X = np.random.default_rng(0).integers(3, size=(40, 1))
    return HCRPHMM(n_burnin=50, n_draws=60, n_chains=3, random_state=0).fit(X).draws_


def test_arrays_and_dimensions(arviz, draws):
    data = draws.to_arviz()
    for name in SCALARS:
        values = data.posterior[name]
        assert values.dims == ("chain", "draw")
        np.testing.assert_array_equal(values.values, getattr(draws, name))
    assert set(data.posterior.data_vars) == set(SCALARS)
    for name in ("lp", "acceptance_rate", "seconds", "n_tables"):
        values = data.sample_stats[name]
        assert values.dims == ("chain", "draw")
        np.testing.assert_array_equal(values.values, getattr(draws, name))
    assert data.posterior.chain.values.tolist() == [0, 1, 2]
    assert data.attrs["inference_library"] == "skihmm"
    assert "states" in draws.to_dict()["posterior"]


def test_paths(arviz, draws):
    states = draws.to_arviz(with_states=True).posterior["states"]
    assert states.dims == ("chain", "draw", "step")
    np.testing.assert_array_equal(states.values, draws.states)
    assert states.step.values.tolist() == list(range(40))


def test_chains_of_different_lengths(arviz, draws):
    first, second, third = draws._chains
    ragged = PosteriorDraws([first[:5], [], second, third[:8]])
    data = ragged.to_arviz(with_states=True)
    assert data.posterior.chain.values.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(data.posterior["states"].values, draws.states[:, :5], strict=True)
    np.testing.assert_array_equal(data.sample_stats["lp"].values, draws.lp[:, :5])


def test_summary_agrees(arviz, draws):
    summary = getattr(arviz, "summary", None)
    if summary is None:
        summary = pytest.importorskip("arviz_stats").summary
    # (From 1.0 on the upper one of its two tails is a setting.)
    is_old = arviz.__name__ == "arviz" and arviz.__version__ < "1"
    settings = {} if is_old else {"stats.ci_prob": 0.95}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with arviz.rc_context(settings):
            found = summary(draws.to_arviz(), round_to="none")
    assert list(found.index) == list(SCALARS)
    for name in SCALARS:
        values = getattr(draws, name)
        row = found.loc[name]
        assert float(row["mean"]) == pytest.approx(values.mean())
        assert float(row["r_hat"]) == pytest.approx(rhat(values), rel=1e-9)
        assert float(row["ess_bulk"]) == pytest.approx(effective_sample_size(values), rel=1e-9)
        assert float(row["ess_tail"]) == pytest.approx(
            effective_sample_size(values, "tail"), rel=1e-9
        )


def test_without_arviz(draws, monkeypatch):
    for name in ("arviz", "arviz_base"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install arviz"):
        draws.to_arviz()


def test_draws_without_paths(arviz, sequence):
    model = HCRPHMM(n_burnin=2, n_draws=3, store_states=False, random_state=0)
    draws = model.fit(sequence).draws_
    assert "states" not in draws.to_arviz().posterior
    with pytest.raises(ValueError, match=r"no state paths.*store_states=True"):
        draws.to_arviz(with_states=True)
    with pytest.raises(TypeError, match="with_states=1; expected True or False"):
        draws.to_arviz(with_states=1)
