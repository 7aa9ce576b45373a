"""Errors planted in the native code, and the checks that must notice them.

Every error is an edit of the package's own source, compiled apart from it.  `CAUGHT` is
the table of errors and of the checks that catch them.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass

import native
import numpy as np
import pytest
from core.test_concentration import LEVEL, fixed_pvalues, whole_pvalues
from samplers.test_split_merge import CHAINS, assert_equal_records
from samplers.test_split_merge import MODELS as SPLIT_MERGE_MODELS
from small_models import MODELS, assert_caught, assert_exact

from skihmm.core._rcd import RCDKernel
from skihmm.core._state import ChainState
from skihmm.samplers import BaseSampler
from skihmm.samplers._split_merge_kernel import InterleavedKernel, SplitMergeKernel
from skihmm.samplers._stepwise_kernel import StepwiseProposal
from skihmm.testing import _small_models, check_proposal, check_sampler
from skihmm.testing._prior_draws import invariance_pvalue
from skihmm.testing._probes import record_cells

pytestmark = pytest.mark.statistical

# -- the errors -----------------------------------------------------------------------

DECIDE = ("_rcd.hpp", "const bool accepted = this->is_accepted(chain, q_old, q_new);")
SEATED = "labels_.seat(label, before)"

# Of Metropolis-Hastings moves, whatever proposes.
MOVE = {
    "accept always": [(*DECIDE, "const bool accepted = true;")],
    "seat anew on rejection": [
        (
            "_rcd.hpp",
            "            this->restore(chain, emission);\n            return false;\n",
            """            const int32_t j = chain.previous(start), o = chain.successor(stop - 1);
            this->remove_block(chain, emission, start, stop, j, path, o);
            this->add_block(chain, emission, start, stop, j, &chain.states[start], o);
            this->keep(chain, emission);
            return false;
""",
        )
    ],
    "the printed ratio": [
        (
            "_rcd.hpp",
            "Sides sides{r_old.value * q_new.value, r_new.value * q_old.value};",
            "Sides sides{q_new.value, r_new.value * r_old.value * q_old.value};",
        )
    ],
    "transitions at s_0": [
        (
            "_rcd.hpp",
            "            emission.remove(t, k, chain.bits, &r_old);\n"
            "            remove_draw(chain, t > start ? labels[t - 1 - start] : j, k, t);\n"
            "        }\n",
            """            emission.remove(t, k, chain.bits, &r_old);
            Product factor = r_old;
            remove_draw(chain, t > start ? labels[t - 1 - start] : j, k, t);
            r_old = factor;
        }
        multiply_at_once(chain, start, stop, j, labels, follower, &r_old);
""",
        ),
        (
            "_rcd.hpp",
            "        if (SKIHMM_LIKELY(follower >= 0))\n"
            "            remove_draw(chain, labels[stop - 1 - start], follower, stop);\n",
            """        if (follower >= 0) {
            Product factor = r_old;
            remove_draw(chain, labels[stop - 1 - start], follower, stop);
            r_old = factor;
        }
""",
        ),
        (
            "_rcd.hpp",
            "        for (int64_t t = start; t < stop; ++t) {\n"
            "            const int32_t k = labels[t - start];\n"
            "            add_draw(chain, j, k, t);\n"
            "            emission.add(t, k, chain.bits, &r_new);\n",
            """        multiply_at_once(chain, start, stop, j, labels, follower, &r_new);
        for (int64_t t = start; t < stop; ++t) {
            const int32_t k = labels[t - start];
            Product factor = r_new;
            add_draw(chain, j, k, t);
            r_new = factor;
            emission.add(t, k, chain.bits, &r_new);
""",
        ),
        (
            "_rcd.hpp",
            "        if (SKIHMM_LIKELY(follower >= 0)) add_draw(chain, j, follower, stop);\n",
            """        if (follower >= 0) {
            Product factor = r_new;
            add_draw(chain, j, follower, stop);
            r_new = factor;
        }
""",
        ),
        (
            "_rcd.hpp",
            "  private:\n    struct Sides {\n",
            """  private:
    static void multiply_at_once(const Chain &chain, int64_t start, int64_t stop, int32_t j,
                                 const int32_t *labels, int32_t follower, Product *r) {
        for (int64_t t = start; t < stop; ++t) {
            r->multiply(chain.transitions->prob(j, labels[t - start]));
            j = labels[t - start];
        }
        if (follower >= 0) r->multiply(chain.transitions->prob(j, follower));
    }
    struct Sides {
""",
        ),
    ],
}
STEP = {
    # The printed formula has the tables of the dish only.
    "the printed denominator": [
        (
            "_rcd.hpp",
            "        r_old.multiply(\n"
            "            chain.transitions->remove_draw(t, j, k, chain.bits, &chain.hints[t]));\n"
            "    }\n",
            """        chain.transitions->remove_draw(t, j, k, chain.bits, &chain.hints[t]);
        r_old.multiply(printed(*chain.transitions, j, k));
    }
    static double printed(const HCRPTransitions &s, int32_t j, int32_t k) {
        const double m = s.base.dish_tables[k];
        return (s.count(j, k) + s.alpha * s.mass(k) / (m + s.base.gamma)) / s.total(j);
    }
""",
        ),
        (
            "_rcd.hpp",
            "r_new.multiply(chain.transitions->add_draw(t, j, k, chain.bits, &chain.hints[t]));",
            "r_new.multiply(printed(*chain.transitions, j, k));\n"
            "        chain.transitions->add_draw(t, j, k, chain.bits, &chain.hints[t]);",
        ),
    ],
    "no unserved successor": [
        (
            "_stepwise.hpp",
            "            mass_f_[o_] = static_cast<float>(mass_o_);\n        stepwise_weights",
            "            mass_f_[o_] = is_ghost ? 0.0f : static_cast<float>(mass_o_);\n"
            "        stepwise_weights",
        ),
        ("_stepwise.hpp", "fill_vector(s);", "fill_vector(s, view.is_ghost());"),
        (
            "_stepwise.hpp",
            "fill_vector(Transitions &s) {",
            "fill_vector(Transitions &s, bool is_ghost) {",
        ),
    ],
    "exact: own row": [
        ("_stepwise.hpp", "is_exact_ && i_ == x_ ? s.total(x_, 1) : view", "view")
    ],
}
BLOCK = {
    "labels not counted": [
        ("_blocked.hpp", f"q->multiply({SEATED})", SEATED),
        (
            "_blocked.hpp",
            "q->multiply(labels_.seat(path[l], before))",
            "labels_.seat(path[l], before)",
        ),
    ],
    "labels without the successor's": [
        ("_blocked.hpp", "if (ghost >= 0) seat(ghost, -1);", "")
    ],
    "labels drawn otherwise": [
        (
            "_blocked.hpp",
            "uniform(g) * total_weight(n_, concentration_)",
            "uniform(g) * n_",
        )
    ],
    "old path counted twice": [
        (
            "_blocked.hpp",
            "q->multiply(path_factor(l, step.bar, k, steps_[l + 1].n) / step.total);",
            "q->multiply(2.0 * path_factor(l, step.bar, k, steps_[l + 1].n) / step.total);",
        )
    ],
    "messages not counted": [
        (
            "_blocked.hpp",
            "return k < 0 ? f : f * link(n, mass_[k], c_[j]);",
            "return k < 0 ? f : link(n, mass_[k], c_[j]);",
        )
    ],
}
SPLIT_MERGE = {
    "no reverse": [
        ("_split_merge.hpp", "        if (!is_split_) score(chain, emission, f);\n", "")
    ],
    "no value": [
        (
            "_split_merge.hpp",
            "emission.remove(t2_, k, chain.bits, &ratio_.r_old);",
            "Product ignored;\n        emission.remove(t2_, k, chain.bits, &ignored);",
        ),
        (
            "_split_merge.hpp",
            "emission.add(t2_, k, chain.bits, &ratio_.r_new);",
            "Product ignored;\n        emission.add(t2_, k, chain.bits, &ignored);",
        ),
    ],
    "score too early": [
        (
            "_split_merge.hpp",
            "        remove(chain, emission, f);\n"
            "        if (!is_split_) score(chain, emission, f);\n",
            "        if (!is_split_) score(chain, emission, f);\n"
            "        remove(chain, emission, f);\n",
        )
    ],
    "seat anew on rejection": [
        (
            "_split_merge.hpp",
            "        else ratio_.restore(chain, emission);\n",
            """        else {
            for (size_t i = fragments_.size(); i-- > 0;) {
                const Fragment &f = fragments_[i];
                if (is_split_ || i < n_seated_)
                    ratio_.remove_block(chain, emission, f.start, f.stop,
                                        new_before(chain, f.start), path_of(f),
                                        new_after(chain, f.stop - 1));
                else
                    for (int64_t t = f.stop - 1; t >= f.start; --t)
                        emission.remove(t, a_, chain.bits, &ratio_.r_old);
            }
            take_second(chain, emission, new_);
            seat_second(chain, emission, old_);
            for (const Fragment &f : fragments_)
                ratio_.add_block(chain, emission, f.start, f.stop, chain.previous(f.start),
                                 &chain.states[f.start], chain.successor(f.stop - 1));
            ratio_.keep(chain, emission);
        }
""",
        )
    ],
    "t2 as it was": [
        (
            "_split_merge.hpp",
            "            filter(chain, emission, f, j, o);\n",
            "            filter(chain, emission, f, chain.previous(f.start), o);\n",
        )
    ],
    # Merges end with observations still to come, whose densities may exceed one.
    "the printed stop": [
        (
            "_split_merge.hpp",
            "        for (const Fragment &f : fragments_) seat_values(chain, emission, f);\n",
            "",
        ),
        (
            "_split_merge.hpp",
            "            seat_draws(chain, fragments_[n_seated_]);\n",
            "            seat_values(chain, emission, fragments_[n_seated_]);\n"
            "            seat_draws(chain, fragments_[n_seated_]);\n",
        ),
    ],
}
RUNS = "_run_split_merge.hpp"
RUN_SPLIT_MERGE = {
    "no number of states": [
        (RUNS, "        q.multiply(1.0 / (states_.size() - 1));\n", ""),
        (RUNS, "q.multiply(weight / states_.size());", "q.multiply(weight);"),
    ],
    "no partner": [
        (
            RUNS,
            "q.multiply(weight / states_.size());",
            "q.multiply(1.0 / states_.size());",
        )
    ],
    "one order of the pair": [
        (
            RUNS,
            "\n                              + partner_weight(chain, two_[1], two_[0]);",
            ";",
        ),
        (
            RUNS,
            "q_merge(weight + partner_weight(chain, b, a));",
            "q_merge(partner_weight(chain, two_[0], two_[1]));",
        ),
    ],
    "partner without its steps": [
        (
            RUNS,
            "        const Product forward = q_merge(weight + partner_weight(chain, b, a));\n",
            "",
        ),
        (
            RUNS,
            "        std::fill(path_.begin(), path_.end(), two_[0]);\n",
            "        const Product forward = q_merge(\n"
            "            partner_weight(chain, a, b) + partner_weight(chain, b, a));\n"
            "        std::fill(path_.begin(), path_.end(), two_[0]);\n",
        ),
    ],
    "no allocation": [(RUNS, "        q.multiply_log(log_allocation);\n", "")],
    "no reverse": [
        (
            RUNS,
            "            look(chain, i);\n"
            "            q += allocation_.score(chain, path_of(runs_[i]));\n        }\n"
            "        std::fill",
            "        }\n        std::fill",
        )
    ],
    "whole runs only": [
        (RUNS, "        if (u < kFilter) {", "        if (false) {"),
        (RUNS, "} else if (u < kFilter + kChange) {", "} else if (false) {"),
    ],
    "not the mixture": [
        (
            RUNS,
            "return add_in_logs(q, std::log(1.0 - kFilter - kChange) + whole_[first]);",
            "return whole_[first];",
        ),
        (
            RUNS,
            "return add_in_logs(q, std::log(kChange) + changes_[2 * (at - 1) + first]);",
            "return changes_[2 * (at - 1) + first];",
        ),
    ],
    "the first label is free": [(RUNS, "two_, i == 0);", "two_, false);")],
    "score too early": [
        (
            RUNS,
            "            take(chain, runs_[i]);\n            look(chain, i);\n"
            "            q += allocation_.score(chain, path_of(runs_[i]));\n        }\n"
            "        std::fill",
            "            look(chain, i);\n"
            "            q += allocation_.score(chain, path_of(runs_[i]));\n"
            "            take(chain, runs_[i]);\n        }\n        std::fill",
        )
    ],
}
DIRECT = {
    "own transition not counted": [
        (
            "_direct_assignment.hpp",
            "if (k == at.i && k == at.o) out += 1.0;",
            "if (k == at.i) size -= 1.0;",
        ),
        (
            "_direct_assignment.hpp",
            "if (SKIHMM_LIKELY(at.i != at.o && at.i != at.x && at.o != at.x)) return;",
            "",
        ),
    ],
    "one of two equal transitions": [
        (
            "_direct_assignment.hpp",
            "const bool is_loop = at.i == at.x && at.o == at.x;",
            "const bool is_loop = false;",
        )
    ],
}
STICKS = {
    "blind births": [
        ("_stick_breaking.hpp", "of_k + (j == i ? 1.0 : 0.0)", "of_k"),
        ("_stick_breaking.hpp", "        if (o >= 0) shapes_[o] += 1.0;\n", ""),
    ],
    "burials without the start": [
        (
            "_stick_breaking.hpp",
            "        into_[x].clear();\n        for (int32_t j = kStart;",
            "        into_[x].clear();\n        for (int32_t j = kFirst;",
        )
    ],
    "births take nothing": [
        (
            "_stick_breaking.hpp",
            "        sticks_.break_off(chain, k);\n        into_[k]",
            """        const double before = sticks_.beta[kNew];
        sticks_.break_off(chain, k);
        sticks_.beta[kNew] = before;
        into_[k]""",
        ),
        (
            "_stick_breaking.hpp",
            "            row[kNew] *= rest;\n            into_",
            "            into_",
        ),
    ],
    "no start": [
        (
            "_stick_breaking.hpp",
            "        draw_observed_row(chain, kStart);\n",
            "        fill_shapes(*chain.transitions);\n        draw_row(chain, kStart);\n",
        )
    ],
    "no sticks broken": [
        ("_stick_breaking.hpp", "while (rest >= low) {", "while (false) {")
    ],
}
CONCENTRATION = {
    "alpha without the start": [
        (
            "_concentration.hpp",
            "for (const int32_t n : s.row_customers) count_restaurant(s.alpha, n, g);",
            "for (size_t j = 0; j < s.row_customers.size(); ++j)\n"
            "            if (j != 1) count_restaurant(s.alpha, s.row_customers[j], g);",
        )
    ],
}
CATEGORICAL = {
    "gamma from symbols, not tables": [
        (
            "_concentration.hpp",
            "shape_ += table == 0 || opens_table(table, a, uniform(g));",
            "shape_ += table == 0;",
        ),
    ],
}
MODULES = {
    "samplers._stepwise_kernel": MOVE | STEP,
    "samplers._blocked_kernel": MOVE | BLOCK,
    "samplers._split_merge_kernel": SPLIT_MERGE,
    "samplers._run_split_merge_kernel": RUN_SPLIT_MERGE,
    "samplers._direct_assignment_kernel": DIRECT,
    "samplers._stick_breaking_kernel": STICKS,
    "native.moves": CONCENTRATION,
    "emissions._categorical_stats": CATEGORICAL,
}


# Kernels for any emission serve all of them; those for symbols would take a third of the
# time of compiling.  Only step-wise ones have formulas of their own for symbols.
ONE_KIND = (
    "_emission.hpp",
    "    if (SeatingEmission *symbols = emission.symbols()) return make(*symbols);\n",
    "",
)


def edited(module, error):
    """Compile a module with an error."""
    edits = [*map(tuple, MODULES[module][error])]
    if module.endswith("_kernel") and module != STEPWISE_MODULE:
        edits.append(ONE_KIND)
    return native.planted(module, *edits)


# -- what they are planted in ---------------------------------------------------------

STEPWISE_MODULE = "samplers._stepwise_kernel"
KERNELS = {
    "stepwise": (STEPWISE_MODULE, lambda m: RCDKernel(m.StepwiseProposal())),
    "sparse": (STEPWISE_MODULE, lambda m: RCDKernel(m.StepwiseProposal(0))),
    "exact": (STEPWISE_MODULE, lambda m: RCDKernel(m.StepwiseProposal(exact=True))),
    "blocked": ("samplers._blocked_kernel", lambda m: RCDKernel(m.BlockedProposal(), 6)),
    "beam": ("samplers._blocked_kernel", lambda m: RCDKernel(m.BeamProposal(), 3)),
    "split-merge": ("samplers._split_merge_kernel", lambda m: m.SplitMergeKernel(5)),
    "interleaved": (
        "samplers._split_merge_kernel",
        lambda m: m.InterleavedKernel(RCDKernel(StepwiseProposal()), 2.0),
    ),
    "runs": (
        "samplers._run_split_merge_kernel",
        lambda m: m.RunSplitMergeKernel(None, 5),
    ),
    "direct assignment": (
        "samplers._direct_assignment_kernel",
        lambda m: m.DirectAssignmentKernel(),
    ),
    "sticks": ("samplers._stick_breaking_kernel", lambda m: m.StickBreakingKernel()),
    "sticks beam": (
        "samplers._stick_breaking_kernel",
        lambda m: m.StickBreakingKernel(beam=True),
    ),
}


def maker(kernel, error):
    """Compile an error and return a function that builds a kernel with it."""
    module, make = KERNELS[kernel]
    compiled = edited(module, error)
    return lambda state: make(compiled)


# -- what notices them ----------------------------------------------------------------


@dataclass
class Enumeration:
    """The posterior of a small model; `tables`: of the numbers of tables too."""

    model: str
    n_sweeps: int = 2000
    tables: bool = False

    def __call__(self, make_kernel):
        model = (SPLIT_MERGE_MODELS | MODELS)[self.model]
        found = assert_caught(model, make_kernel, n_sweeps=self.n_sweeps)
        assert not self.tables or found.joint.pvalue <= 0.002


@dataclass
class Sampler:
    """``check_sampler``."""

    def __call__(self, make_kernel):
        class Edited(BaseSampler):
            def make_kernel(self, state):
                return make_kernel(state)

        with pytest.raises(AssertionError, match="the posterior is not invariant"):
            check_sampler(Edited())


@dataclass
class PriorDraws:
    """Chains that begin at draws of the prior."""

    def __call__(self, make_kernel):
        assert invariance_pvalue(make_kernel, 250, 3) < 1e-3


CAUGHT = {
    ("stepwise", "accept always"): [
        *map(Enumeration, ("two sequences", "configuration I", "missing")),
        Sampler(),
    ],
    ("sparse", "accept always"): [Enumeration("configuration I")],
    ("stepwise", "transitions at s_0"): [
        *map(Enumeration, ("two sequences", "configuration I", "missing")),
        Sampler(),
    ],
    ("sparse", "transitions at s_0"): [Enumeration("configuration I")],
    ("stepwise", "the printed ratio"): [Enumeration("configuration I"), Sampler()],
    ("sparse", "the printed ratio"): [Enumeration("configuration I")],
    # The partitions look right, with a total variation of 0.008; the tables do not.
    ("stepwise", "seat anew on rejection"): [
        Enumeration("missing at the end", 25_000, tables=True)
    ],
    ("stepwise", "the printed denominator"): [
        *map(Enumeration, ("two sequences", "configuration I", "missing")),
        Sampler(),
        PriorDraws(),
    ],
    ("stepwise", "no unserved successor"): [
        *map(Enumeration, ("two sequences", "configuration I", "missing")),
        Sampler(),
    ],
    ("exact", "exact: own row"): [Enumeration("self-transitions"), Sampler()],
    ("blocked", "accept always"): [Enumeration("configuration I")],
    ("blocked", "transitions at s_0"): [Enumeration("configuration I"), Sampler()],
    ("blocked", "the printed ratio"): [Enumeration("configuration I")],
    ("blocked", "seat anew on rejection"): [
        Enumeration("configuration I", 6000, tables=True),
        Sampler(),
    ],
    ("blocked", "labels not counted"): [
        Enumeration(name, 4000)
        for name in ("two sequences", "configuration I", "missing")
    ],
    ("blocked", "labels without the successor's"): [
        Enumeration(name, 4000)
        for name in ("two sequences", "configuration I", "missing")
    ],
    ("beam", "accept always"): [Enumeration("configuration I")],
    ("beam", "labels not counted"): [Enumeration("two sequences")],
    ("beam", "labels without the successor's"): [Enumeration("two sequences")],
    ("beam", "messages not counted"): [Enumeration("two sequences"), Sampler()],
    ("split-merge", "no reverse"): [Enumeration("two sequences"), PriorDraws()],
    ("split-merge", "no value"): [Enumeration("one sequence")],
    ("split-merge", "score too early"): [Enumeration("configuration I")],
    ("split-merge", "seat anew on rejection"): [Enumeration("self-transitions", 4000)],
    ("split-merge", "the printed stop"): [Enumeration("densities")],
    ("split-merge", "t2 as it was"): [Enumeration("small concentrations")],
    ("interleaved", "no reverse"): [Sampler()],
    ("interleaved", "no value"): [Sampler()],
    ("runs", "no number of states"): [Enumeration("two sequences"), Sampler()],
    ("runs", "no partner"): [Enumeration("two sequences")],
    ("runs", "one order of the pair"): [Enumeration("two sequences")],
    ("runs", "partner without its steps"): [Enumeration("seven steps", 4000)],
    ("runs", "no allocation"): [Enumeration("two sequences"), PriorDraws()],
    ("runs", "no reverse"): [Enumeration("two sequences"), PriorDraws()],
    ("runs", "whole runs only"): [Enumeration("configuration I")],
    ("runs", "not the mixture"): [Enumeration("configuration I")],
    ("runs", "the first label is free"): [Enumeration("configuration I")],
    ("runs", "score too early"): [Enumeration("configuration I")],
    ("direct assignment", "own transition not counted"): [
        *map(Enumeration, ("self-transitions", "one sequence")),
        Sampler(),
    ],
    ("direct assignment", "one of two equal transitions"): [
        Enumeration("self-transitions")
    ],
    ("sticks", "burials without the start"): [Enumeration("two sequences")],
    ("sticks", "blind births"): [
        *map(Enumeration, ("two sequences", "one sequence")),
        Sampler(),
    ],
    ("sticks", "births take nothing"): [*map(Enumeration, ("two sequences", "missing"))],
    ("sticks", "no start"): [*map(Enumeration, ("two sequences", "missing")), Sampler()],
    ("sticks beam", "no start"): [*map(Enumeration, ("two sequences", "missing"))],
    ("sticks beam", "no sticks broken"): [Enumeration("two sequences")],
}


@pytest.mark.parametrize(
    ("kernel", "error", "check"),
    [
        # Of several enumerations one is enough for the default run.
        pytest.param(*key, check, marks=[pytest.mark.slow] * (i > 0 and is_enumeration))
        for key, checks in CAUGHT.items()
        for i, check in enumerate(checks)
        for is_enumeration in [isinstance(check, Enumeration)]
    ],
    ids=str,
)
def test_errors_of_kernels_are_caught(kernel, error, check):
    check(maker(kernel, error))


PROPORTION = "paths are not proposed in proportion to their probabilities"
FUNCTION = "q has to be one function of the path"
INVARIANCE = "the posterior is not invariant under moves with this proposal"


@pytest.mark.parametrize(
    ("proposal", "error", "block_size", "message"),
    [
        ("BlockedProposal", "labels drawn otherwise", 2, PROPORTION),
        ("BlockedProposal", "labels without the successor's", 1, PROPORTION),
        ("BlockedProposal", "old path counted twice", 2, FUNCTION),
        ("BeamProposal", "old path counted twice", 2, FUNCTION),
        ("BlockedProposal", "labels not counted", 2, PROPORTION),
        ("BeamProposal", "labels not counted", 2, INVARIANCE),
        ("BeamProposal", "messages not counted", 2, INVARIANCE),
    ],
)
def test_errors_of_proposals_are_caught(proposal, error, block_size, message):
    module = edited("samplers._blocked_kernel", error)
    with pytest.raises(AssertionError, match=message):
        check_proposal(getattr(module, proposal), block_size=block_size)


def without_start(state):
    """Update, and then alpha twice more in the wrong way."""
    state.draw_hyperparameters()
    wrong = edited("native.moves", "alpha without the start")
    for _ in range(2):
        wrong.draw_hyperparameters(state)


@pytest.mark.parametrize(
    ("pvalues", "update", "case", "caught"),
    [
        (fixed_pvalues, without_start, "many sequences", "alpha"),
        (whole_pvalues, without_start, "HCRP, missing", "alpha"),
        (fixed_pvalues, ChainState.draw_hyperparameters, "one sequence", "gamma_e"),
        (whole_pvalues, ChainState.draw_hyperparameters, "HCRP, one symbol", "gamma_e"),
    ],
)
def test_errors_of_concentrations_are_caught(monkeypatch, pvalues, update, case, caught):
    if caught == "gamma_e":
        wrong = edited("emissions._categorical_stats", "gamma from symbols, not tables")
        monkeypatch.setattr(_small_models, "CategoricalStats", wrong.CategoricalStats)
    found = pvalues(case, update, n_draws=800 if pvalues is fixed_pvalues else 2000)
    assert found[caught] <= LEVEL, found


# -- edits that are no errors ---------------------------------------------------------

OFTEN_REJECTED = [(*DECIDE, DECIDE[1].replace(";", " && uniform(chain.bits) < 0.5;"))]


@pytest.mark.parametrize("name", ["configuration I", "self-transitions"])
@pytest.mark.parametrize("kernel", ["stepwise", "sparse", "blocked"])
def test_more_rejections_are_no_error(kernel, name):
    """They undo many moves that would have been kept."""
    module, make = KERNELS[kernel]
    edited = native.planted(module, *OFTEN_REJECTED)
    assert_exact(MODELS[name], lambda state: make(edited), n_sweeps=4000)


def test_without_an_edit_the_package_is_compiled():
    module = native.planted("samplers._split_merge_kernel")
    for name in ("two sequences", "two columns", "densities"):
        chains = [
            record_cells(kernel, SPLIT_MERGE_MODELS[name].state(5), 300)
            for kernel in (SplitMergeKernel(3), module.SplitMergeKernel(3))
        ]
        np.testing.assert_array_equal(chains[0][0], chains[1][0])
        assert chains[0][1:] == chains[1][1:]


# Instead of the number of trials: the steps whose transitions merges have put back.
COUNT_STEPS = (
    "_split_merge.hpp",
    "        ++*n;\n        *n_accepted += run(chain, emission);\n",
    """        *n_accepted += run(chain, emission);
        if (is_split_) return;
        for (size_t i = 0; i < n_seated_; ++i) *n += fragments_[i].stop - fragments_[i].start;
""",
)
NO_STOP = ("_split_merge.hpp", "            if (!is_accepted()) return false;\n", "")


def trial(kernel, state, before, position):
    """One trial from a record and a place in the stream."""
    state.from_arrays(before)
    state.stream.state = position
    return kernel.sweep(state)


@pytest.mark.parametrize("chain", CHAINS)
def test_the_early_stop_of_merges_changes_no_result_and_saves_work(chain):
    """Trial by trial, from the same chain with the same random numbers."""
    hurried, patient = (
        native.planted(
            "samplers._split_merge_kernel", COUNT_STEPS, *edits
        ).SplitMergeKernel()
        for edits in ([], [NO_STOP])
    )
    outcomes, n_steps = Counter(), []
    for seed in range(3):
        state = CHAINS[chain](seed, np.random.Philox(seed))
        InterleavedKernel(RCDKernel(StepwiseProposal()), 1).sweep(state)
        for _ in range(400):
            before = copy.deepcopy(state.canonicalise())
            position = state.stream.state
            first = trial(hurried, state, before, position)
            after = copy.deepcopy(state.to_arrays())
            second = trial(patient, state, before, position)
            assert first.n_accepted == second.n_accepted
            assert state.check() is None
            assert_equal_records(after, state.to_arrays())
            outcomes[first.n_accepted, after["n_states"] < before["n_states"]] += 1
            n_steps.append((first.n_proposed, second.n_proposed))
    assert outcomes[1, True] >= 5, outcomes
    first, second = np.array(n_steps).T
    assert (first <= second).all()
    # Most rejected merges end early, those of densities long before their last step.
    n_rejected = (second > 0).sum() - outcomes[1, True]
    assert (first < second).sum() > 0.5 * n_rejected
    assert first.sum() < (0.85 if chain == "densities" else 0.97) * second.sum()
