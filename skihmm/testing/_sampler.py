"""Check of samplers against enumerated posteriors and prior draws."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import clone

from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.emissions import DirichletCategorical, HCRPCategorical, NormalInverseGamma
from skihmm.samplers import BaseSampler, SweepInfo
from skihmm.testing._enumeration import DirichletEmission, GaussianEmission, HCRPEmission
from skihmm.testing._prior_draws import PriorDraw, keeps_prior_draws
from skihmm.testing._recipe import check_recipe
from skihmm.testing._small_models import Model, is_exact

# Recipes of the emissions of the models.
RECIPES = {
    HCRPEmission: HCRPCategorical(),
    DirichletEmission: DirichletCategorical(),
    GaussianEmission: NormalInverseGamma(),
}

# P-value of a doubtful result.  With the limit of the second run, and the number of
# models and of prior draws, the false alarm rate is (9 + 2) * 0.03 * 0.002 = 7e-4.
DOUBT = 0.03

# In these models a step-wise sampler rejects 5 to 30 % of its moves; in some of them
# states are born and die often, in others hardly.
MODELS = {
    "one sequence": Model((0, 1, 0, 1, 1), HCRPEmission(3, 1.0, 1.0)),
    "two sequences, large concentrations": Model(
        (0, 1, 0, 2, 0), HCRPEmission(4, 4.0, 3.0), (0, 3), 9.0, 7.0
    ),
    "small concentrations, a missing step": Model(
        (0, 1, None, 0, 0), DirichletEmission(3, 0.5), (0,), 0.3, 0.3
    ),
    "self-transitions": Model((0, 0, 0, 1, 1), HCRPEmission(2, 0.3, 1.0), (0,), 0.2, 0.5),
    "sequences that begin and end unobserved": Model(
        (None, 1, 0, 2, None), DirichletEmission(3, 0.7), (0, 3), 1.0, 2.0
    ),
    "equal symbols": Model((0,) * 5, HCRPEmission(20, 12.0, 6.0), (0,), 5.0, 3.0),
    "densities above one": Model(
        (0.1, 0.11, 0.4, None, 0.105),
        GaussianEmission(0.2, 0.5, 1.5, 0.002),
        (0, 3),
        2.0,
        2.0,
    ),
    "sequences of one step": Model((1, 1), DirichletEmission(3, 0.2), (0, 1), 2.0, 1.0),
    "one step": Model((1,), HCRPEmission(3)),
}


def check_sampler(sampler: BaseSampler, *, random_state: int = 0, n_sweeps: int = 2000) -> None:
    """Check that a sampler samples the posterior, on models that can be enumerated.

    The models have one to five steps in one or two sequences, symbols or numbers, with
    missing entries and fixed concentrations.  All partitions of the steps into states
    have exact probabilities, alone and with the numbers of tables.  The check compares
    the probabilities with frequencies of 20 independent chains of `n_sweeps` sweeps each,
    by the total variation distance.  Differences between chains give the error.  A
    doubtful result is repeated with four times as many sweeps and another seed.  The
    check fails if the second result is doubtful too.  A correct sampler fails for fewer
    than one in 1000 values of `random_state`.

    Chains of 50 steps are compared with prior draws.  Concentrations, paths, tables and
    symbols are drawn from the prior.  After 15 sweeps, with concentrations resampled in
    between, the joint distribution must be unchanged.  The comparison is with further
    prior draws, 250 each.

    Models whose emission the sampler refuses (`BaseSampler.check_emission`) are left out.

    The sampler has to be a recipe for clones, prints and searches.  The kernel has to
    take all random numbers from the chain's stream, to keep no state between sweeps
    outside of the chain's record, to leave the concentrations unchanged, to count
    proposals, and to keep all counts of the chain consistent.  A sampler whose sweep runs
    Python code for every step has to declare ``releases_gil = False``.

    Parameters
    ----------
    sampler : BaseSampler
        Sampler, best with parameters for which some moves of five steps are rejected.
    random_state : int, default=0
        Seed.
    n_sweeps : int, default=2000
        Sweeps of every chain.  With 2000, errors of 0.04 in total variation are detected.
        The necessary number grows with the inverse square of the error.  The number of
        prior draws is an eighth of it.

    Raises
    ------
    AssertionError
        If a property is violated; the message names it.

    See Also
    --------
    check_proposal : More precise check of the proposals of a compiled sampler.

    Examples
    --------
    >>> from skihmm.samplers import StepwiseGibbs
    >>> from skihmm.testing import check_sampler
    >>> check_sampler(StepwiseGibbs("rcd"), n_sweeps=200)
    """
    assert isinstance(sampler, BaseSampler), f"{sampler!r} is no skihmm.samplers.BaseSampler"
    check_recipe(sampler)
    sampler.check_parameters()
    before = repr(sampler)
    n_models = 0
    for name, model in MODELS.items():
        where = f"{sampler!r}, model {name!r}"
        try:
            sampler.check_emission(RECIPES[type(model.emission)], model.stats())
        except TypeError:
            continue
        _check_kernel(sampler, model, random_state, where)
        if sampler.releases_gil and not n_models:
            _check_gil(sampler, model, where)
        n_models += 1
        passes, found = is_exact(
            model,
            lambda state: clone(sampler).make_kernel(state),
            n_sweeps=n_sweeps,
            seed=random_state,
            n_burnin=max(100, n_sweeps // 4),
            doubt=DOUBT,
        )
        assert passes, (
            f"{where}: the posterior is not invariant. In total variation the chains "
            f"differ from it by {found[-1].partitions.tv:.3g} over partitions (by chance "
            f"{found[-1].partitions.expected_tv:.3g}), and by {found[-1].joint.tv:.3g} "
            f"over partitions with numbers of tables (by chance "
            f"{found[-1].joint.expected_tv:.3g}); p = {found[-1].pvalue:.2g}, and "
            f"{found[0].pvalue:.2g} before"
        )
    assert n_models, f"{sampler!r} works with none of {[*RECIPES.values()]}"
    _check_prior_draws(sampler, random_state, n_sweeps)
    assert repr(sampler) == before, f"{before} has become {sampler!r} by sampling"


def _check_kernel(sampler: BaseSampler, model: Model, seed: int, where: str) -> None:
    """Check the properties of single sweeps."""
    labels = np.arange(model.n_steps) % 2
    state, twin = (model.state([seed, 1], labels) for _ in range(2))
    kernel = clone(sampler).make_kernel(state)
    for _ in range(20):
        info = SweepInfo(*kernel.sweep(state))
        assert 0 <= info.n_accepted <= info.n_proposed, (
            f"{where}: sweep returns {info.n_proposed} proposals made, {info.n_accepted} accepted"
        )
        problem = state.check()
        assert problem is None, f"{where}: a sweep leaves wrong counts: {problem}"
    drawn = state.transitions.hyperparameters
    assert drawn == twin.transitions.hyperparameters, (
        f"{where}: sweeps have changed the concentrations to {drawn}; the chain resamples them"
    )
    other = clone(sampler).make_kernel(twin)
    for _ in range(20):
        other.sweep(twin)
    assert _same(state, twin), (
        f"{where}: two chains with one seed differ; all random numbers have to come from "
        "state.stream"
    )
    record = state.canonicalise()
    resumed = model.state(RandomStream(0), labels)
    resumed.from_arrays(record)
    resumed.stream.state = state.stream.state
    fresh = clone(sampler).make_kernel(resumed)
    for _ in range(10):
        kernel.sweep(state)
        fresh.sweep(resumed)
        assert _same(state, resumed), (
            f"{where}: a chain that goes on from a record differs from the one that made "
            "it; a kernel may not remember anything from one sweep to the next"
        )


def _lines_of_sweep(sampler: BaseSampler, model: Model) -> int:
    """Number of lines of Python that a sweep runs."""
    state = model.state(0, np.zeros(model.n_steps, int))
    kernel = clone(sampler).make_kernel(state)
    n_lines = 0

    def count(_frame: FrameType, event: str, _value: object) -> Callable[..., Any]:
        nonlocal n_lines
        n_lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        kernel.sweep(state)
    finally:
        sys.settrace(before)
    return n_lines


def _check_gil(sampler: BaseSampler, model: Model, where: str) -> None:
    """Check that the work for a step is not in Python, which holds the GIL."""
    longer = replace(model, y=model.y * 20)
    n_steps = longer.n_steps - model.n_steps
    n_lines = _lines_of_sweep(sampler, longer) - _lines_of_sweep(sampler, model)
    assert n_lines < n_steps, (
        f"{where}: a sweep over {n_steps} steps more runs {n_lines} lines of Python more, and "
        "Python holds the GIL; expected releases_gil = False, by which chains run as processes"
    )


def _check_prior_draws(sampler: BaseSampler, seed: int, n_sweeps: int) -> None:
    """Compare longer chains, with concentrations, with prior draws."""
    for emission in (HCRPEmission, DirichletEmission):
        hierarchical = emission is HCRPEmission
        draw = PriorDraw(np.random.default_rng(seed), hierarchical=hierarchical)
        try:
            sampler.check_emission(RECIPES[emission], draw.state(0).emission)
        except TypeError:
            continue
        passes, pvalues = keeps_prior_draws(
            lambda state: clone(sampler).make_kernel(state),
            n_draws=max(50, n_sweeps // 8),
            seed=seed,
            doubt=DOUBT,
            hierarchical=hierarchical,
        )
        assert passes, (
            f"{sampler!r}: sweeps of chains of 50 steps that begin at draws of the prior "
            f"change their law; emission {RECIPES[emission]!r}, "
            f"p = {pvalues[-1]:.2g}, and {pvalues[0]:.2g} before"
        )


def _same(one: ChainState, other: ChainState) -> bool:
    # Any other difference shows in the labels or the state of the stream eventually.
    return one.stream.state == other.stream.state and bool(
        (one.packed_labels == other.packed_labels).all()
    )
