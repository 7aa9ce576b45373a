"""The concentration updates against exact integration."""

from __future__ import annotations

import numpy as np
import pytest
from reference.enumeration import (
    DirichletEmission,
    GammaPrior,
    HCRPEmission,
    concentration_posterior,
    posterior_over_concentrations,
    root_concentration_posterior,
)
from reference.statistics import cdf_frequencies, frequency_table, total_variation_test
from small_models import Model, counts_of, make_stats

from skihmm.core._franchise import Franchise
from skihmm.core._random import RandomStream
from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers._kernels import StepwiseProposal

LEVEL = 0.002
DRAW = ChainState.draw_hidden


NAMES = ("alpha", "gamma", "alpha_e", "gamma_e")


def concentrations(arrays):
    """As numbers, from ``to_arrays``."""
    return [arrays[part][name] for part in ("transitions", "emission") for name in NAMES[:2]]


# -- at a fixed seating ---------------------------------------------------------------


def fixed_state(case, seed, prior):
    """A chain whose seating is never changed, a function of the case alone."""
    n, n_columns, n_symbols, starts, spread = CASES[case]
    rng = np.random.default_rng(17)
    codes = rng.integers(n_symbols, size=(n, n_columns))
    codes[rng.random(codes.shape) < 0.2] = -1
    state = ChainState(
        np.array(starts),
        Franchise(2.0, 2.0, prior),
        make_stats(codes, HCRPEmission(n_symbols, 2.0, 2.0), concentration_prior=prior),
        RandomStream(1),
    )
    labels = rng.geometric(spread, size=n)
    state.start_from(np.unique(labels, return_inverse=True)[1])
    arrays = state.to_arrays()
    # Anything for a start: the seating alone decides where the chain goes.
    for part in ("transitions", "emission"):
        arrays[part] |= {"alpha": 1.0, "gamma": 1.0}
    state.from_arrays(arrays)
    state.stream.state = RandomStream(seed).state
    return state


CASES = {
    "one sequence": (40, 1, 6, (0,), 0.4),
    "many sequences": (30, 1, 3, tuple(range(0, 30, 3)), 0.5),
    "two columns": (25, 2, 4, (0, 10), 0.3),
    "every symbol seldom": (12, 1, 50, (0,), 0.5),
}


def exact_at(state, prior):
    """Laws of the four concentrations given the seating."""
    prior = GammaPrior(*prior)
    counts = counts_of(state.to_arrays())
    rows, symbol_rows = {}, {}
    for (j, _), n in counts.n.items():
        rows[j] = rows.get(j, 0) + n
    for c, column in enumerate(counts.c):
        for (k, _), n in column.items():
            symbol_rows[c, k] = symbol_rows.get((c, k), 0) + n
    m, e = sum(counts.m.values()), sum(sum(column.values()) for column in counts.e)
    laws = {
        "alpha": concentration_posterior(rows.values(), m, prior),
        "gamma": concentration_posterior([m], len(counts.states), prior),
        "alpha_e": concentration_posterior(symbol_rows.values(), e, prior),
    }
    if len(counts.e) == 1:
        tables = {}
        for (_, w), n in counts.e[0].items():
            tables[w] = tables.get(w, 0) + n
        [(_, _, (n_symbols,))] = state.emission.rows()
        laws["gamma_e"] = root_concentration_posterior(tables.values(), n_symbols, prior)
    return laws


def fixed_pvalues(case, update, prior=(1.0, 1.0), n_draws=1500, seed=0):
    """P-value per concentration of chains at a fixed seating."""
    draws = []
    for child in np.random.SeedSequence(seed).spawn(20):
        state = fixed_state(case, child, prior)
        chain = []
        for i in range(n_draws + 50):
            update(state)
            if i >= 50:
                chain.append(concentrations(state.to_arrays()))
        draws.append(chain)
    draws = np.array(draws)
    laws = exact_at(state, prior)
    return {
        name: total_variation_test(*cdf_frequencies(draws[:, :, NAMES.index(name)], law.cdf)).pvalue
        for name, law in laws.items()
    }


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("case", "prior"),
    [
        # Every case and every prior; other pairs of them are slow.
        pytest.param(case, prior, marks=[pytest.mark.slow] * (i > 0 and j != i % 3))
        for i, case in enumerate(CASES)
        for j, prior in enumerate([(1.0, 1.0), (0.3, 2.0), (5.0, 0.5)])
    ],
)
def test_updates_match_integration(case, prior):
    pvalues = fixed_pvalues(case, DRAW, prior, 1500)
    if min(pvalues.values()) <= LEVEL:
        pvalues = fixed_pvalues(case, DRAW, prior, 10_000, seed=1)
    assert min(pvalues.values()) > LEVEL, pvalues


def test_without_prior_nothing_changes():
    model = Model((0, 1, 0, 1), HCRPEmission(2, 1.5, 2.5), (0,), 0.7, 3.0)
    state = model.state(0)
    before = concentrations(state.to_arrays()), state.stream.state
    state.draw_hidden()
    assert (concentrations(state.to_arrays()), state.stream.state) == before


def test_dirichlet_emissions_have_no_concentrations():
    model = Model((0, 1, 0, 1), DirichletEmission(2, 0.3))
    state = model.state(0, concentration_prior=(1.0, 1.0))
    for _ in range(20):
        state.draw_hidden()
    arrays = state.to_arrays()
    assert arrays["emission"]["alpha"] == pytest.approx(0.3, rel=1e-15)
    assert arrays["transitions"]["alpha"] != 1.0
    assert state.check() is None


def test_tiny_shapes_stay_positive():
    model = Model((None,), HCRPEmission(2))
    state = model.state(1, concentration_prior=(1e-3, 1.0))
    for _ in range(3000):
        state.draw_hidden()
        values = concentrations(state.to_arrays())
        assert min(values) > 0
        assert np.isfinite(state.log_joint())


# -- the whole posterior --------------------------------------------------------------


PRIOR = (1.0, 1.0)
WHOLE = {
    "HCRP": Model((0, 1, 1, 0, 1), HCRPEmission(3), (0, 3)),
    "HCRP, one symbol": Model((0, 0, 0, 0), HCRPEmission(8), (0,)),
    "HCRP, missing": Model((0, None, 1, 0), HCRPEmission(2), (0, 1)),
    "Dirichlet": Model((0, 1, None, 0, 0), DirichletEmission(2, 0.5), (0, 2)),
}


def whole_pvalues(name, update, n_draws, seed=0):
    """P-values of the partition and of each concentration in the full chain."""
    model, prior = WHOLE[name], GammaPrior(*PRIOR)
    emission = model.emission
    if isinstance(emission, HCRPEmission):
        emission = HCRPEmission(emission.n_symbols, prior, prior)
    exact = posterior_over_concentrations(
        model.y, emission, model.starts, prior, prior, n_points=801
    )
    labels, draws = [], []
    for child in np.random.SeedSequence(seed).spawn(20):
        state = model.state(child, concentration_prior=PRIOR)
        kernel = RCDKernel(StepwiseProposal())
        visited, values = [], []
        for i in range(n_draws + 300):
            kernel.sweep(state)
            update(state)
            if i >= 300:
                names: dict = {}
                visited.append(
                    tuple(names.setdefault(k, len(names)) for k in state.packed_labels.tolist())
                )
                values.append(concentrations(state.to_arrays()))
        assert state.check() is None
        labels.append(visited)
        draws.append(values)
    draws = np.array(draws)
    tests = {"labels": total_variation_test(*frequency_table(labels, exact.probabilities))}
    for name, law in exact.marginals.items():
        tests[name] = total_variation_test(
            *cdf_frequencies(draws[:, :, NAMES.index(name)], law.cdf)
        )
    return {name: test.pvalue for name, test in tests.items()}


@pytest.mark.statistical
@pytest.mark.parametrize("name", WHOLE)
def test_full_chain_with_concentrations(name):
    pvalues = whole_pvalues(name, DRAW, 2500)
    if min(pvalues.values()) <= LEVEL:
        pvalues = whole_pvalues(name, DRAW, 20_000, seed=1)
    assert min(pvalues.values()) > LEVEL, pvalues


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_full_chain_with_concentrations_for_long(name):
    pvalues = whole_pvalues(name, DRAW, 50_000, seed=2)
    assert min(pvalues.values()) > LEVEL / 2, pvalues
