"""What is compared with full enumeration: one table of kernels, models and sweeps.

Moves of blocks and of single steps and split-merge trials are proved to rounding, by
their transition matrices, in samplers/test_split_merge_matrices.py; a run or two of each
show here that a sweep is made of those moves.  Trials are proved only of Dirichlet
symbols and, whole runs, of numbers; they run on more models, as do the baselines and
other samplers, which have no such matrix.
"""

from __future__ import annotations

import inspect
import re
from itertools import product

import pytest
from core import test_concentration
from emissions.test_regression_recipes import CASES as RECIPES
from emissions.test_regressions import MODELS as REGRESSIONS
from emissions.test_student_noise import MODELS as STUDENT
from extension.random_scan import RandomScanGibbs, SequentialBlocks
from native import build
from recipes import INSTANCES
from reference import conjugate, context_emissions, hyperparameters
from reference.enumeration import DirichletEmission, HCRPEmission
from reference.product import Product
from samplers import test_contexts, test_input_coins
from samplers import test_dwell_times as test_stays
from small_models import (
    COLUMNS,
    DENSITIES,
    KNOWN,
    MIXED,
    MODELS,
    NUMBERS,
    SAMPLED,
    SAMPLERS,
    WAITING,
    WithDraws,
    assert_exact,
    assert_keeps_prior_draws,
    compare,
)
from testing.test_check_emission import EMISSIONS
from transitions import test_dwell_times

from skihmm.core._rcd import RCDKernel
from skihmm.emissions import _conjugate_stats
from skihmm.emissions._names import EMISSIONS as SHORT_NAMES
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)
from skihmm.samplers._kernels import (
    BeamProposal,
    BlockedProposal,
    InterleavedKernel,
    RunSplitMergeKernel,
    StepwiseProposal,
)
from skihmm.transitions import HCRPTransitions

pytestmark = pytest.mark.statistical

PYTHON = {"waiting times": WAITING}
CONTEXTS = context_emissions.MODELS
ALL_MODELS = MODELS | COLUMNS | DENSITIES | NUMBERS | MIXED | KNOWN | SAMPLED | PYTHON | CONTEXTS

# With dense counts to look up single pairs, and without.
LIMITS = {
    "step-wise": (),
    "step-wise, no lookup": (0,),
    "exact": (1024, True),
    "exact, no lookup": (0, True),
}
HYPERPARAMETERS = [f"{name}, hyperparameters" for name in SAMPLERS]


KERNELS = {name: recipe.make_kernel for name, recipe in SAMPLERS.items()}
KERNELS |= {
    name: lambda state, limits=limits: RCDKernel(StepwiseProposal(*limits))
    for name, limits in LIMITS.items()
}
KERNELS |= {
    f"{name}, hyperparameters": lambda state, recipe=recipe: WithDraws(recipe.make_kernel(state))
    for name, recipe in SAMPLERS.items()
}
KERNELS |= {
    "blocks": lambda state: RCDKernel(BlockedProposal(), 3),
    "beams": lambda state: RCDKernel(BeamProposal(), 3),
    "slices": lambda state: RCDKernel(BeamProposal(cut=0.0), 1),
    "split-merge": lambda state: InterleavedKernel(None, 5),
    "interleaved": lambda state: InterleavedKernel(RCDKernel(StepwiseProposal()), 2.5),
    "runs": lambda state: RunSplitMergeKernel(None, 5),
    "stepwise, trials": StepwiseGibbs(split_merge_rate=1.5).make_kernel,
    "stepwise, some blocks": StepwiseGibbs(split_merge_rate=0.5, block_share=0.4).make_kernel,
    "slice, runs": StepwiseSlice(run_split_merge_rate=1.5).make_kernel,
    "blocked, runs": BlockedGibbs(2, run_split_merge_rate=1.5).make_kernel,
    "blocked, drawn": BlockedGibbs(2, 1, drawn_share=0.5).make_kernel,
    "beam, both trials": BlockedBeam(3, 1, run_split_merge_rate=1.5).make_kernel,
    "stick-breaking pieces": StickBreakingGibbs(2).make_kernel,
    "stick-breaking pieces of one step": StickBreakingGibbs(1).make_kernel,
    "stick-breaking pieces, trials": StickBreakingGibbs(3, 1.5).make_kernel,
    "stick-breaking blocks": StickBreakingBeam(2).make_kernel,
    "stick-breaking single steps": StickBreakingBeam(1).make_kernel,
    "stick-breaking blocks in threads": StickBreakingBeam(1, n_jobs=2).make_kernel,
    "stick-breaking blocks, trials": StickBreakingBeam(2, 1.5).make_kernel,
    "random scan": lambda state: RandomScanGibbs(),
    "blocks in Python": lambda state: SequentialBlocks(),
}
BASELINES = ("direct assignment", "stick-breaking", "stick-breaking beam")

# Kernels, models, sweeps of each of twenty chains.
TABLE = [
    (LIMITS, ("two sequences",), 4000),
    (("exact",), ("two columns",), 4000),
    (("blocks", "beams"), ("two sequences", "two columns"), 2000),
    (("slices",), ("two sequences", "two Dirichlet columns", "self-transitions"), 2000),
    (
        ("split-merge",),
        (
            "two sequences",
            "missing",
            "configuration I",
            "two sequences of one step",
            "two columns",
            "densities",
            "densities, often stopped",
        ),
        2000,
    ),
    # Here the labels beside a fragment decide most about it.
    (("split-merge",), ("small concentrations", "self-transitions"), 4000),
    (
        ("runs",),
        (
            "two sequences",
            "configuration I",
            "sequences of one step",
            "two columns",
            "densities",
            "densities, often stopped",
            "autoregressive",
            "regression",
            "known, mixed data",
        ),
        2000,
    ),
    (("runs",), ("small concentrations", "self-transitions", "seven steps"), 4000),
    (("runs",), PYTHON, 30),
    (("interleaved",), ("two sequences", "densities"), 2000),
    (("stepwise, some blocks",), ("two sequences",), 2000),
    (
        ("stepwise, trials", "slice, runs", "blocked, runs", "beam, both trials"),
        ("configuration I",),
        2000,
    ),
    (BASELINES, ("two sequences", "self-transitions", "two columns"), 2000),
    (
        ("stick-breaking blocks",),
        ("two sequences", "self-transitions", "full", "known, mixed data"),
        2000,
    ),
    (("stick-breaking single steps",), ("two columns",), 2000),
    (
        ("stick-breaking pieces",),
        ("two sequences", "self-transitions", "full", "known, mixed data"),
        2000,
    ),
    (("stick-breaking pieces of one step",), ("two columns",), 2000),
    (("stick-breaking pieces, trials",), ("configuration I",), 2000),
    (("stick-breaking blocks, trials",), ("configuration I",), 2000),
    (("blocked, drawn",), ("two sequences", "configuration I", "full", "autoregressive"), 2000),
    (("stick-breaking blocks in threads",), ("seven steps",), 100),
    (SAMPLERS, ("symbols and numbers",), 2000),
    (
        ("stepwise",),
        (
            "diagonal",
            "full",
            "autoregressive",
            "regression",
            "autoregressive with an input",
            "counts",
            "binary",
            "two kinds of symbols",
            "full and counts",
            "overdispersed",
            "positive",
            "angles",
            *KNOWN,
        ),
        2000,
    ),
    # Its parameters are drawn.
    (
        ("stick-breaking",),
        (
            *("diagonal", "full", "autoregressive", "regression"),
            *("overdispersed", "positive", "angles"),
        ),
        2000,
    ),
    (("blocked sm", "stick-breaking"), ("known, mixed data",), 2000),
    (
        ("slice, runs", "beam, both trials", "stick-breaking pieces", *SAMPLERS),
        ("closed, two states", "closed, each alone"),
        2000,
    ),
    (("stepwise, hyperparameters",), SAMPLED, 2000),
    (("blocked sm, hyperparameters",), ("sampled full",), 2000),
    (("stick-breaking, hyperparameters",), ("sampled autoregressive", "sampled symbols"), 2000),
    (("stepwise", "stick-breaking"), PYTHON, 50),
    (("stepwise", "blocked sm"), ("contexts of symbols",), 2000),
    (("rcd", "slice, runs"), ("contexts of symbols, missing",), 2000),
    (("beam", "stepwise"), ("two contexts of symbols",), 2000),
    (("blocked sm",), ("contexts of two columns",), 2000),
    (("random scan",), ("missing", "densities"), 1000),
    (("blocks in Python",), ("two sequences",), 1000),
]


def cases_of(table):
    """``{(kernel, model): n_sweeps}``."""
    return {
        (kernel, model): n_sweeps
        for kernels, models, n_sweeps in table
        for kernel, model in product(kernels, models)
    }


CASES = cases_of(TABLE)
# These propose what the posterior often refuses.
REJECT = ("split-merge", "blocks", "beams", "blocks in Python")


@pytest.mark.parametrize(("kernel", "model"), CASES)
def test_enumeration(kernel, model):
    # The default run makes a quarter, as nearly all errors of test_planted.py need; those
    # of functions in Python are few already.
    n_sweeps = CASES[kernel, model] // (4 if CASES[kernel, model] >= 1000 else 1)
    found = assert_exact(ALL_MODELS[model], KERNELS[kernel], n_sweeps=n_sweeps)
    if kernel in REJECT:
        assert 0.02 < found.acceptance < 0.98


# (Threads have the draws of one, and starting them takes most of their time.)
@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "model"), [case for case in CASES if "threads" not in case[0]])
def test_enumeration_with_many_sweeps(kernel, model):
    # At least so many, also with functions in Python, or the last check is of luck.
    n_sweeps = max(25 * CASES[kernel, model], 8000)
    found = assert_exact(ALL_MODELS[model], KERNELS[kernel], n_sweeps=n_sweeps, seed=1)
    assert found.partitions.tv < 0.02


def test_every_kernel_and_model_is_in_the_table():
    kernels, models = zip(*CASES, strict=True)
    rest = set(HYPERPARAMETERS)  # of a few samplers
    assert set(kernels) | rest == set(KERNELS)
    # Models of planted errors, proposals and single cases.
    others = {"one step", "two steps", "nothing observed", "one sequence"}
    others |= {"missing at the end", "large concentrations"}
    others |= {"densities, rarely rejected"}
    assert set(models) | others == set(ALL_MODELS)


def law_of(emission):
    """The family of a recipe; of one without families the recipe."""
    return getattr(emission, "_family", type(emission).__name__)


def test_every_recipe_is_in_the_lists(monkeypatch):
    """And every family: `check_emission` is called, and labels are enumerated."""
    samplers = {type(sampler) for sampler in INSTANCES["sampler"]}
    assert samplers - {type(sampler) for sampler in SAMPLERS.values()} == set()
    (header,) = (path for path in build._headers() if path.stem == "_conjugate_families")
    laws = {*re.findall(r'name == "(\w+)"', header.read_text("utf-8"))}
    laws |= {law_of(emission) for emission in INSTANCES["emission"]}
    laws |= {law_of(make()) for make in SHORT_NAMES.values()}
    checked = [*EMISSIONS.values(), *RECIPES.values()]
    assert laws - {law_of(emission) for emission, _ in checked} == set()

    names = {HCRPEmission: "HCRPCategorical", DirichletEmission: "DirichletCategorical",
             Product: "ProductEmission"}  # fmt: skip
    seen, make = set(), _conjugate_stats.conjugate_stats

    def recorded(family, *args, **fixed):
        seen.add(family)
        return make(family, *args, **fixed)

    for module in (conjugate, hyperparameters, _conjugate_stats):
        monkeypatch.setattr(module, "conjugate_stats", recorded)
    for model in (*ALL_MODELS.values(), *STUDENT.values(), *REGRESSIONS.values()):
        model.stats()
        seen.add(names.get(type(model.emission)))
    assert laws - seen == set()


# Of an option of transitions, the models whose value of it is not the default; a test instead if
# the option makes hyperparameters sampled.
OPTIONS = {
    "alpha": lambda m: m.alpha != 1,
    "gamma": lambda m: m.gamma != 1,
    "concentration_prior": test_concentration.test_updates_match_integration,
    "expected_dwell": test_dwell_times.test_stay_prior_against_integration,
    "stay_prior": lambda m: hasattr(m, "kappa") and not hasattr(m, "inputs"),
    "switch_penalty": lambda m: getattr(m, "penalty", 0) > 0,
    "context_features": lambda m: hasattr(m, "columns"),
    "context_order": lambda m: getattr(m, "order", "state") == "context",
    "context_alpha": lambda m: any(alpha != 1 for alpha in getattr(m, "context_alpha", ())),
    "input_features": lambda m: hasattr(m, "inputs"),
}


def test_every_option_of_transitions_has_a_model():
    """A further option, as another prior of staying, needs its enumeration."""
    assert set(OPTIONS) == {*inspect.signature(HCRPTransitions).parameters}
    assert {name for params in HCRPTransitions.test_params for name in params} <= set(OPTIONS)
    models = [
        model
        for some in (
            test_stays.MODELS,
            test_contexts.CHAINS,
            test_contexts.COINS,
            test_input_coins.MODELS,
        )
        for model in some.values()
    ]
    without = {
        name
        for name, has in OPTIONS.items()
        if not has.__name__.startswith("test_") and not any(map(has, models))
    }
    assert not without


def test_rejections_are_frequent_enough_to_be_tested():
    rates = [
        compare(MODELS[name], KERNELS["step-wise"], n_sweeps=200, n_chains=8).acceptance
        for name in MODELS
    ]
    assert sum(0.7 < rate < 0.98 for rate in rates) >= 8
    assert min(rates) < 0.8


# -- invariance of longer chains ------------------------------------------------------

PRIOR_DRAWS = {name: (KERNELS[name], {}) for name in (*LIMITS, *BASELINES)}
PRIOR_DRAWS |= {
    "stick-breaking blocks": (StickBreakingBeam(7).make_kernel, {}),
    "stick-breaking pieces": (StickBreakingGibbs(7).make_kernel, {}),
    "slices": (KERNELS["slices"], {}),
    "blocks": (lambda state: RCDKernel(BlockedProposal(), 8), {}),
    "beams": (lambda state: RCDKernel(BeamProposal(), 8), {}),
    "whole blocks": (lambda state: RCDKernel(BlockedProposal(), 50), {}),
    "whole beams": (lambda state: RCDKernel(BeamProposal(), 50), {}),
    "split-merge": (lambda state: InterleavedKernel(None, 30), {"n_sweeps": 5}),
    "interleaved": (KERNELS["interleaved"], {"n_sweeps": 5}),
    "runs": (lambda state: RunSplitMergeKernel(None, 30), {"n_sweeps": 5}),
}


# One variant of a kernel is enough for the default run, and symbols of a Dirichlet
# emission, which have no tables, are nothing new for most kernels.
VARIANTS = ("step-wise", "step-wise, no lookup", "exact, no lookup", "blocks", "whole beams")


@pytest.mark.parametrize(
    ("kernel", "hierarchical"),
    [
        pytest.param(kernel, hierarchical, marks=[pytest.mark.slow] * is_slow)
        for kernel in PRIOR_DRAWS
        for hierarchical in (True, False)
        for is_slow in [kernel in VARIANTS or not (hierarchical or kernel in ("exact", "runs"))]
    ],
)
def test_prior_draws_stay_prior_draws(kernel, hierarchical):
    """Concentrations included, at 50 steps, where nothing can be enumerated."""
    make_kernel, options = PRIOR_DRAWS[kernel]
    assert_keeps_prior_draws(make_kernel, hierarchical=hierarchical, **options)
