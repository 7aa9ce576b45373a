"""Pictures without a screen, and figures that do not pile up."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def pyplot(monkeypatch):
    """Pyplot with a backend that needs no display; figures are closed afterwards."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg", force=True)
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="session")
def ragged_model(sequence):
    """A model whose second chain was stopped after its third draw of six."""
    from skihmm import HCRPHMM

    return HCRPHMM(
        n_burnin=10,
        n_draws=6,
        thin=2,
        n_chains=2,
        n_particles=10,
        random_state=0,
        callback=lambda report: report.chain == 1 and report.n_draws == 3,
    ).fit(sequence)


@pytest.fixture(scope="session")
def without_states(sequence):
    """A model without the paths of its draws."""
    from skihmm import HCRPHMM

    return HCRPHMM(n_burnin=5, n_draws=3, thin=1, store_states=False, random_state=0).fit(sequence)
