"""Models of a few steps, for comparisons of compiled chains with exact enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from extension.exponential import Exponential
from reference.conjugate import (
    Angles,
    Autoregression,
    Bernoulli,
    DiagonalGaussian,
    FullGaussian,
    Gamma,
    NegativeBinomial,
    Poisson,
    Waiting,
)
from reference.enumeration import (
    START,
    DirichletEmission,
    GaussianEmission,
    HCRPEmission,
    SeatingCounts,
    canonical,
)
from reference.hyperparameters import (
    SampledAngles,
    SampledAutoregression,
    SampledBernoulli,
    SampledDiagonalGaussian,
    SampledDirichlet,
    SampledFullGaussian,
    SampledGamma,
    SampledNegativeBinomial,
    SampledPoisson,
)
from reference.product import Product
from reference.seating import NaiveHMM, table_key
from reference.statistics import cdf_frequencies, total_variation_test, unbiased_mean_test

from skihmm.core._franchise import Franchise
from skihmm.core._particle_filter import filter_particles
from skihmm.core._random import RandomStream
from skihmm.core._state import ChainState
from skihmm.samplers import (
    BlockedBeam,
    BlockedGibbs,
    DirectAssignmentGibbs,
    StepwiseGibbs,
    StepwiseSlice,
    StickBreakingBeam,
    StickBreakingGibbs,
)
from skihmm.testing._prior_draws import keeps_prior_draws, packed, packed_counts
from skihmm.testing._probes import EmissionProbe
from skihmm.testing._small_models import SUSPECT, Comparison, Model, compare, is_exact, make_stats


def unpacked(arrays: dict) -> dict:
    """Inverse of `packed`; without tables the counts."""
    pairs = zip(arrays["rows"].tolist(), arrays["dishes"].tolist(), strict=True)
    if arrays["n_tables"].sum() == 0:
        return dict(zip(pairs, arrays["n_customers"].tolist(), strict=True))
    sizes, ends = arrays["sizes"].tolist(), np.cumsum(arrays["n_tables"]).tolist()
    starts = [0, *ends[:-1]]
    return {pair: sizes[start:end] for pair, start, end in zip(pairs, starts, ends, strict=True)}


def arrays_of(naive: NaiveHMM) -> dict:
    """``ChainState.to_arrays`` of a naive model whose labels are 0 .. K - 1."""
    n_states = max(naive.x) + 1
    assert set(naive.x) == set(range(n_states))
    transitions = packed(naive.transitions.tables, lambda j: n_states if j == START else j)
    transitions["alpha"] = naive.transitions.alpha
    transitions["gamma"] = naive.transitions.gamma
    columns = naive.emissions.columns
    if naive.has_symbol_tables:
        emission = {"alpha": columns[0].alpha, "gamma": columns[0].gamma}
        emission["columns"] = [packed(column.tables) for column in columns]
    else:
        emission = {"alpha": columns[0].spec.concentration, "gamma": 1.0}
        emission["columns"] = [packed_counts(column.counts) for column in columns]
    return {
        "n_states": n_states,
        "states": np.array(naive.x, dtype=np.int32),
        "transitions": transitions,
        "emission": emission,
    }


def key_of(arrays: dict, hierarchical: bool) -> tuple:
    """``NaiveHMM.key`` of ``ChainState.to_arrays``."""
    labels = canonical(arrays["states"].tolist())
    names = dict(zip(arrays["states"].tolist(), labels, strict=True))
    names[arrays["n_states"]] = -1
    columns, name = arrays["emission"]["columns"] if hierarchical else [], names.__getitem__
    return (
        labels,
        table_key(unpacked(arrays["transitions"]), name, name),
        *(table_key(unpacked(column), name) for column in columns),
    )


def counts_of(arrays: dict) -> SeatingCounts:
    """The counts of ``ChainState.to_arrays`` in the form of the reference."""

    def pairs(record, key, rename):
        cells = zip(*(record[name].tolist() for name in ("rows", "dishes", key)), strict=True)
        return {(rename(j), k): n for j, k, n in cells if n}

    def row(j):
        return START if j == arrays["n_states"] else j

    columns = arrays["emission"]["columns"]
    return SeatingCounts(
        pairs(arrays["transitions"], "n_customers", row),
        pairs(arrays["transitions"], "n_tables", row),
        [pairs(column, "n_customers", int) for column in columns],
        [pairs(column, "n_tables", int) for column in columns],
    )


SAMPLERS = {
    "stepwise": StepwiseGibbs(),
    "rcd": StepwiseGibbs("rcd", split_merge_rate=1),
    "slice": StepwiseSlice(split_merge_rate=0.5),
    "blocked": BlockedGibbs(3),
    "blocked sm": BlockedGibbs(2, split_merge_rate=2),
    "beam": BlockedBeam(3, split_merge_rate=1),
    "direct assignment": DirectAssignmentGibbs(),
    "stick-breaking": StickBreakingGibbs(),
    "stick-breaking beam": StickBreakingBeam(),
}


# The step-wise sampler rejects 3 to 30 % of its moves; ghosts and fresh states are
# frequent in some and self-transitions in others.
MODELS = {
    "one sequence": Model((0, 1, 0, 1, 1, 0), HCRPEmission(3, 1.0, 1.0)),
    "two sequences": Model((0, 1, 0, 2, 1, 0), HCRPEmission(4, 4.0, 3.0), (0, 3), 5.0, 3.0),
    "missing": Model((0, None, 0, 2, 1, 0), DirichletEmission(3, 0.5), (0, 3), 2.0, 3.0),
    "missing at the end": Model((None, 1, 0, 2, None), HCRPEmission(3, 0.7, 2.0), (0, 3), 1.0, 2.0),
    "nothing observed": Model((None,) * 5, DirichletEmission(3), (0, 3), 3.0, 1.0),
    "small concentrations": Model((0, 1, 0, 2, None, 0), DirichletEmission(3, 0.5), (0,), 0.3, 0.3),
    "large concentrations": Model((0, 1, 0, 1, 2, 0), HCRPEmission(3, 2.0, 2.0), (0,), 20.0, 20.0),
    "configuration I": Model((0,) * 6, HCRPEmission(20, 12.0, 6.0), (0,), 5.0, 3.0),
    "self-transitions": Model((0, 0, 0, 1, 1), HCRPEmission(2, 0.3, 1.0), (0,), 0.2, 0.5),
    "seven steps": Model((0, 1, 1, None, 0, 1, 0), DirichletEmission(2, 0.3), (0, 4), 1.5, 0.7),
    "sequences of one step": Model((0, 1, 1, 0), HCRPEmission(2, 0.5, 1.0), (0, 1, 2), 1.0, 1.0),
    "one step": Model((1,), HCRPEmission(3)),
    "two steps": Model((1, 0), HCRPEmission(3), (0,), 2.0, 1.0),
    "two sequences of one step": Model((1, 1), DirichletEmission(3, 0.2), (0, 1), 2.0, 1.0),
}
COLUMNS = {
    "two columns": Model(
        ((0, 1), (1, None), (0, 1), (1, 0), (None, None)), HCRPEmission(2), (0,), 2.0, 3.0
    ),
    "two Dirichlet columns": Model(
        ((0, 1), (1, None), (0, 1), (1, 0), (0, 0)), DirichletEmission(2, 0.7), (0, 2), 1.0, 1.0
    ),
}  # fmt: skip
# Densities far above one.
DENSITIES = {
    "densities": Model(
        (0.0, 0.01, 0.02, None, 0.03, 0.01), GaussianEmission(0.0, 1.0, 3.0, 1e-3), (0, 3), 5.0, 3.0
    ),
    "densities, rarely rejected": Model(
        (0.0, 0.01, 0.02, 0.015), GaussianEmission(0.01, 1.0, 2.0, 3e-4), (0, 2), 1.0, 2.0
    ),
    "densities, often stopped": Model(
        (0.0, 0.001, 0.002, 0.05, 0.003, 0.051),
        GaussianEmission(0.0, 0.1, 1.0, 1e-5),
        (0,), 5.0, 3.0,
    ),
}  # fmt: skip
# Small enough to enumerate, with values that make states come and go.
NUMBERS = {
    "diagonal": Model(
        ((0.1, 1.0), (2.0, None), (0.3, -1.0), (2.2, 0.4), (None, None)),
        DiagonalGaussian((1.0, 0.0), 0.3, 1.2, (0.5, 0.8)),
        (0, 3), 2.0, 1.0,
    ),
    "full": Model(
        ((0.1, 1.0), (2.0, -1.0), (0.3, None), (0.2, 0.8), (1.9, -0.7)),
        FullGaussian((1.0, 0.0), 0.4, 3.5, ((1.0, -0.3), (-0.3, 0.6))),
        (0,), 1.0, 2.0,
    ),
    # Values and two earlier rows.
    "autoregressive": Model(
        (
            (0.1, None, None),
            (1.0, 0.1, None),
            (2.0, 1.0, 0.1),
            (-1.5, 2.0, 1.0),
            (1.7, -1.5, 2.0),
            (-1.2, 1.7, -1.5),
        ),
        Autoregression(2, (0.1,), (2.0,), ((0.8, -0.1, 0.3),), (0.7, 2.0, 0.5), 2.5, ((0.2,),)),
        (0,), 1.0, 2.0,
    ),
    # A value and two inputs that are given.
    "regression": Model(
        (
            (0.9, 1.0, 0.3),
            (-1.1, -1.2, 0.0),
            (1.3, -1.5, -0.2),
            (None, 0.7, 1.0),
            (-0.8, 1.1, 0.5),
            (0.2, 0.4, None),
        ),
        Autoregression(
            0,
            (0.1,),
            (1.5,),
            ((0.4, -0.1, 0.3),),
            (0.7, 2.0, 0.5),
            2.5,
            ((0.2,),),
            given=2,
        ),
        (0, 4), 1.0, 2.0,
    ),
    # Two values, the earlier row, and an input.
    "autoregressive with an input": Model(
        (
            (0.1, -1.0, 1.0, 0.5, 1.2),
            (2.0, 0.5, 0.1, -1.0, -0.9),
            (0.3, 1.1, 2.0, 0.5, 0.8),
            (-0.2, 1.8, 0.3, 1.1, None),
            (1.9, 0.7, -0.2, 1.8, -1.4),
        ),
        Autoregression(
            1,
            (0.1, 0.2),
            (2.0, 1.0),
            ((0.8, -0.1, 0.5, 0.3), (0.1, 0.6, -0.4, 0.0)),
            (0.7, 2.0, 0.5),
            3.5,
            ((0.4, 0.1), (0.1, 0.3)),
            given=1,
        ),
    ),
    "counts": Model(
        ((1, 20), (4, None), (0, 25), (5, 3), (2, 2)),
        Poisson((1.0, 2.0), (0.5, 0.1)),
        (0, 2), 1.0, 1.0,
    ),
    "binary": Model(
        ((1, 1, 0), (0, 0, None), (1, 1, 1), (0, 0, 1), (1, 0, 0)),
        Bernoulli(0.4, 0.7),
        (0,), 2.0, 0.8,
    ),
    "overdispersed": Model(
        ((1, 20), (4, None), (0, 25), (5, 3), (2, 2)),
        NegativeBinomial((1.0, 2.0), (0.5, 0.1), (0.8, 0.3)),
        (0, 2), 1.0, 1.0,
    ),
    "positive": Model(
        ((0.1, 1.0), (2.0, None), (0.3, 9.0), (2.2, 0.4), (None, None)),
        Gamma((2.0, 1.5), (1.0, 2.0), (0.5, 0.3)),
        (0, 3), 2.0, 1.0,
    ),
    "angles": Model(
        ((0.1, 1.0), (3.0, None), (0.3, -1.0), (-3.1, 0.4), (-2.9, -1.1)),
        Angles((0.4, 0.8)),
        (0,), 1.0, 1.5,
    ),
}  # fmt: skip
GAUSSIAN = DiagonalGaussian((1.0,), 0.3, 1.2, (0.5,))
PARTS = (HCRPEmission(3, 1.0, 2.0), GAUSSIAN, Poisson((1.0,), (0.5,)))
MIXED = {
    "symbols and numbers": Model(
        ((0, 0.1, 1), (1, 2.0, None), (None, 0.3, 0), (1, None, 5), (None, None, None)),
        Product(PARTS, (1, 1, 1)),
        (0, 3), 2.0, 1.0,
    ),
    "two kinds of symbols": Model(
        ((0, 0, 1), (1, 1, None), (0, 1, 1), (1, 0, 0), (0, 0, 1)),
        Product((HCRPEmission(2, 0.5, 1.0), DirichletEmission(2, 0.7)), (1, 2)),
        (0,), 1.0, 2.0,
    ),
    "full and counts": Model(
        ((0.1, 1.0, 1), (2.0, -1.0, 6), (0.3, None, 1), (0.2, 0.8, 0)),
        Product(
            (
                FullGaussian((1.0, 0.0), 0.4, 3.5, ((1.0, -0.3), (-0.3, 0.6))),
                Poisson((1.0,), (0.3,)),
            ),
            (2, 1),
        ),
        (0,), 3.0, 1.0,
    ),
}  # fmt: skip
# Which steps are together is known of some: next to one another, at the ends of
# sequences, one step alone.
KNOWN = {
    "known, two states": Model(
        ((0,), (1,), (0,), (1,), (1,), (0,)),
        Product((HCRPEmission(2, 0.5, 1.0),), (1,), (0, -1, -1, 1, 0, -1)),
        (0, 3), 1.0, 2.0,
    ),
    "known, neighbours": Model(
        ((0.1,), (0.2,), (2.0,), (2.2,), (0.3,)),
        Product((GAUSSIAN,), (1,), (-1, 0, 0, -1, -1)),
        (0,), 2.0, 1.0,
    ),
    "known, each alone": Model(
        ((0,), (0,), (0,), (1,), (0,)),
        Product((DirichletEmission(2, 0.5),), (1,), (0, 1, -1, 2, -1)),
        (0,), 0.7, 3.0,
    ),
    "known, mixed data": Model(
        ((0, 0.1, 1), (1, 2.0, None), (None, 0.3, 0), (1, None, 5), (None, None, None)),
        Product(PARTS, (1, 1, 1), (-1, 0, -1, 1, 0)),
        (0, 3), 2.0, 1.0,
    ),
    "closed, two states": Model(
        ((0,), (1,), (0,), (1,), (1,), (0,)),
        Product((HCRPEmission(2, 0.5, 1.0),), (1,), (-1, -1, 0, 1, -1, -1), True),
        (0, 3), 1.0, 2.0,
    ),
    "closed, each alone": Model(
        ((0.1,), (1.2,), (2.0,), (2.2,), (0.3,)),
        Product((GAUSSIAN,), (1,), (0, -1, 2, -1, 1), True),
        (0,), 2.0, 1.0,
    ),
}  # fmt: skip
# Hyperparameters of the emission are drawn.
SAMPLED = {
    "sampled diagonal": Model(
        (0.3, 2.5, 0.1, None, 2.9), SampledDiagonalGaussian(), (0, 3), 2.0, 1.0
    ),
    "sampled full": Model(
        ((0.1, -1.0), (2.0, 0.5), (0.3, None), (0.2, -0.8), (1.9, 0.7)), SampledFullGaussian(2**15)
    ),
    # Values, and the earlier row.
    "sampled autoregressive": Model(
        ((0.3, -0.5), (1.2, 0.3), (None, 1.2), (2.0, 1.5), (0.4, 2.0)),
        SampledAutoregression(),
        (0, 3), 1.0, 2.0,
    ),
    "sampled regressions": Model(
        (
            (0.1, -1.0, 1.0, 0.5),
            (2.0, 0.5, 0.1, -1.0),
            (0.3, None, 2.0, 0.5),
            (-0.2, 1.8, 2.0, -0.4),
            (1.9, 0.7, -0.2, 1.8),
        ),
        SampledAutoregression(columns=2, draws_mean=False),
    ),
    "sampled levels": Model(
        ((0.1, -1.0), (2.0, 0.5), (0.3, None), (0.2, -0.8), (1.9, 0.7)),
        SampledAutoregression(columns=2, order=0),
    ),
    "sampled regression": Model(
        ((0.9, 1.0, 0.3), (-1.1, -1.2, 0.0), (1.3, -1.5, -0.2), (None, 0.7, 1.0), (-0.8, 1.1, 0.5)),
        SampledAutoregression(order=0, given=2),
        (0, 3),
    ),
    "sampled counts": Model((1, 9, 0, 2, 8), SampledPoisson(), (0, 2), 1.0, 2.0),
    "sampled overdispersed": Model((1, 9, 0, 2, 14), SampledNegativeBinomial(), (0, 2)),
    "sampled positive": Model((0.4, 3.0, 0.2, None, 3.6), SampledGamma(), (0, 3)),
    "sampled angles": Model((0.4, 3.0, 0.2, -3.0, 2.6), SampledAngles()),
    "sampled binary": Model((1, 0, 1, 1, 0), SampledBernoulli(), (0,), 2.0, 1.0),
    "sampled symbols": Model((1, 0, 1, 3, 1), SampledDirichlet(), (0,), 2.0, 1.0),
}  # fmt: skip
WAITING = Model(
    ((0.1, 1.0), (2.0, 0.3), (0.2, None), (0.3, 1.5), (5.0, 0.1)),
    Waiting(1.5, 0.7, Exponential),
    (0, 3), 1.0, 2.0,
)  # fmt: skip


class WithDraws:
    """A sampler's sweep, and then a draw of hyperparameters, or of missing entries."""

    def __init__(self, kernel, draw=ChainState.draw_hidden):
        self.kernel, self.draw = kernel, draw

    def sweep(self, state):
        counts = self.kernel.sweep(state)
        self.draw(state)
        return counts


# For emissions whose weights are drawn between sweeps.
WITH_DRAWS = {
    "steps": StepwiseGibbs(),
    "blocks": BlockedGibbs(3),
    "runs": BlockedGibbs(2, run_split_merge_rate=1),
    "sticks": StickBreakingGibbs(),
    "stick beam": StickBreakingBeam(),
    "beam": BlockedBeam(3, split_merge_rate=0.5),
}


def with_draws(name):
    """Kernels of one of these samplers."""
    return lambda state: WithDraws(WITH_DRAWS[name].make_kernel(state))


def chain_means(model, value_of, n_chains=12, n_sweeps=1200):
    """Means of a function of the state over independent chains, ``(n_chains, ...)``."""
    found = []
    for child in np.random.SeedSequence(0).spawn(n_chains):
        state, seen = model.state(child), []
        kernel = with_draws("blocks")(state)
        for _ in range(n_sweeps):
            kernel.sweep(state)
            seen.append(value_of(state))
        found.append(np.mean(seen[100:], axis=0))
    return np.array(found)


def assert_follow(laws, start, n_draws, n_burnin=100):
    """Numbers that twenty chains draw follow their laws; ten times as many decide, if in doubt.

    ``start(seed)`` makes a chain and returns what draws its next numbers, one per law.
    """
    for seed, n in enumerate((n_draws, 10 * n_draws)):
        chains = []
        for child in np.random.SeedSequence(seed).spawn(20):
            draw = start(child)
            chains.append([draw() for _ in range(n_burnin + n)][n_burnin:])
        pvalues = [
            total_variation_test(*cdf_frequencies(draws, law.cdf)).pvalue
            for draws, law in zip(np.moveaxis(chains, 2, 0), laws, strict=True)
        ]
        if min(pvalues) > SUSPECT:
            return
    pytest.fail(str(pvalues))


def evidence(model, n_particles, n_runs=3000):
    """Test that the mean of a filter's estimates is p(y)."""
    stats, stream = model.emission.stats(model.y), RandomStream(n_particles)
    starts = np.array(model.starts)
    law = Franchise(model.alpha, model.gamma)
    settings = {"n_particles": n_particles, "transitions": law}
    estimates = [
        filter_particles(stats, starts, stream, **settings)[0].sum() for _ in range(n_runs)
    ]
    relative = np.exp(np.array(estimates) - model.posterior.log_evidence)
    return unbiased_mean_test(relative, 1.0)


def chain_of(codes, emission, starts=(0,), alpha=1.0, gamma=1.0, bits=0):
    """A compiled chain without labels; -1 is a missing symbol."""
    return ChainState(
        np.array(starts), Franchise(alpha, gamma), make_stats(codes, emission), RandomStream(bits)
    )


def random_chain(seed, draw_labels, emission, n, n_columns=1, bits=None, **options):
    """A chain of random symbols, some missing; the options are those of `chain_of`."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(emission.n_symbols, size=(n, n_columns))
    codes[rng.random(codes.shape) < 0.1] = -1
    state = chain_of(codes, emission, bits=seed if bits is None else bits, **options)
    state.start_from(np.unique(draw_labels(rng), return_inverse=True)[1])
    return state


def crossed(models, samplers):
    """All pairs; slow but for one sampler of every model (or the other way, if fewer)."""
    n = min(len(models), len(samplers))
    return [
        pytest.param(name, sampler, marks=[pytest.mark.slow] * ((i - j) % n > 0))
        for i, name in enumerate(models)
        for j, sampler in enumerate(samplers)
    ]


def assert_keeps_prior_draws(make_kernel, *, n_draws=250, **options):
    """Chains from draws of the prior, concentrations included, keep its law."""
    passes, pvalues = keeps_prior_draws(make_kernel, n_draws=n_draws, seed=1, doubt=1e-2, **options)
    assert passes, pvalues


def assert_exact(model: Model, make_kernel, *, n_sweeps=6000, seed=0) -> Comparison:
    """Compare with enumeration; a doubtful result is repeated with more sweeps.

    So a correct sampler fails about once in 10^5 seeds.
    """
    passes, found = is_exact(
        model,
        make_kernel,
        n_sweeps=n_sweeps,
        seed=seed,
        n_burnin=min(500, n_sweeps // 4),
    )
    assert passes, found
    return found[-1]


def assert_caught(make_kernel, *models, n_sweeps=2000, by=Comparison._fields[:3]):
    """With one of the models the same statistics notice that the kernel is wrong.

    A quarter of the sweeps is enough for most errors.
    """
    n_burnin, found = min(500, n_sweeps // 8), []
    for n, model in itertools.product((n_sweeps // 4, n_sweeps), models):
        try:
            found.append(compare(model, make_kernel, n_sweeps=n, n_burnin=n_burnin))
        except AssertionError as error:
            if "which is impossible" not in str(error):
                raise
            return
        if min(getattr(found[-1], name).pvalue for name in by) <= SUSPECT:
            return
    pytest.fail(str(found))


def assert_check_notices(kernel, state, n_sweeps=500):
    """The check of the chain notices in some sweep that the kernel's counts are wrong."""
    problems = []
    try:
        while not any(problems) and len(problems) < n_sweeps:
            kernel.sweep(state)
            problems.append(state.check())
    except RuntimeError as error:  # a customer to remove is missing
        problems.append(str(error))
    assert any(problems)


def hyperparameters_of(state):
    """Hyperparameters of the conjugate family of a chain."""
    return state.emission.to_arrays(np.array([-1, 0], dtype=np.int32))["hyperparameters"]


def log_row(state, t):
    """log p(y[t] | k) of every slot k."""
    return EmissionProbe(state.emission, state.stream).log_row(t)


def log_pair(state, t, first, second):
    """log p(y[t] | first) - log p(y[t] | second)."""
    return EmissionProbe(state.emission, state.stream).log_pair(t, first, second)


def move_value(state, t, source, target, keep=True):
    """y[t] leaves a slot and joins another one; logs of the two predictive probabilities.

    Without `keep` all of it is undone.
    """
    probe = EmissionProbe(state.emission, state.stream)
    found = probe.remove(t, source), probe.add(t, target)
    if keep:
        probe.commit()
    else:
        probe.rollback()
    return found
