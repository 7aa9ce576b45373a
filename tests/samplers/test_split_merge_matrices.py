"""Exact transition matrices of split-merge trials, blocks with stages, and single steps.

The compiled moves themselves are enumerated: a uniform number is an interval, which
every comparison with a threshold divides, so that a move is a sequence of picks with
known probabilities, and `all_outcomes` repeats it with all of them.
"""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import replace
from functools import cache

import errors
import native
import numpy as np
import pytest
from reference import conjugate
from reference.coins import ADVANCE, DRAW, STAY, CoinModel, log_coins, ways_to_enter
from reference.contexts import CoinContextModel, ContextModel
from reference.enumeration import (
    START,
    DirichletEmission,
    HCRPEmission,
    canonical,
    log_likelihood,
    set_partitions,
)
from reference.kernel import irreversibility, stationarity_errors
from reference.product import Product
from reference.seating import NaiveFranchise, all_outcomes, all_seatings
from small_models import NUMBERS, Model, arrays_of, key_of, packed

from skihmm.core._rcd import RCDKernel

EXACT, CAUGHT = 1e-12, 1e-6

MODELS = {
    "one sequence": Model((0, 1, 1, 0), DirichletEmission(2, 0.7), (0,), 2.0, 3.0),
    "two sequences": Model((0, 1, 0, 0), DirichletEmission(2, 0.5), (0, 2), 4.0, 1.0),
    "missing": Model((0, None, 1, 0), DirichletEmission(2, 0.5), (0,), 5.0, 0.5),
    "coins": CoinModel((0, 1, 1, 0), DirichletEmission(2, 0.7), (0,), 2.0, 3.0, 3.0, 0.7),
    "coins, two sequences": CoinModel(
        (0, None, 1, 1), DirichletEmission(2, 0.5), (0, 2), 0.8, 1.5, 0.4, 2.0
    ),
}
# Observations leave and come by their marginals.  (Beside known states, here none, trials
# never scan, which would have a million outcomes.)
OF_NUMBERS = {
    name: replace(
        model, y=model.y[:4], starts=(0, 2),
        emission=Product((model.emission,), (len(model.y[0]),), (-1,) * 4),
    )
    for name, model in NUMBERS.items()
}  # fmt: skip
# Symbols have tables, too.
HCRP = {
    "HCRP": Model((0, 0, 1, 0), HCRPEmission(2, 1.5, 1.0), (0,), 3.0, 1.5),
    "HCRP, two sequences": Model(
        (0, None, 0, 0), HCRPEmission(2, 3.0, 2.0), (0, 3), 4.0, 1.5
    ),
}
# Runs of two steps, or fewer at the ends of sequences.
STAGED = {
    "stages": CoinModel(
        (0, 0, 1, 1), DirichletEmission(2, 0.5), (0,), 0.8, 1.7, 0.7, 2.0, 2
    ),
    "stages, two sequences": CoinModel(
        (0, None, 1, 1), DirichletEmission(2, 0.5), (0, 2), 2.0, 1.5, 0.5, 1.5, 2
    ),
    "stages, cut": CoinModel(
        (0, 1, 1), DirichletEmission(2, 0.5), (0,), 1.5, 2.0, 0.6, 2.0, 3, True
    ),
}
# Transitions depend on contexts, of which some are missing; three steps, where the moves
# of blocks are many.
CONTEXTS = {
    "contexts": ContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.7), (0,), 2.0, 3.0,
        columns=((0,), (1,), (0,), (0,)), context_alpha=(1.5,),
    ),
    "contexts first": ContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.5), (0, 2), 1.5, 2.0,
        columns=((0,), (1,), (-1,), (0,)), order="context", context_alpha=(2.0,),
    ),
    "contexts, coins": CoinContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.7), (0,), 2.0, 3.0,
        columns=((0,), (1,), (1,), (0,)), context_alpha=(1.5,), kappa=3.0, omega=0.7,
    ),
    "contexts first, coins": CoinContextModel(
        (0, None, 1, 1), DirichletEmission(2, 0.5), (0, 2), 0.8, 1.5,
        columns=((0,), (0,), (-1,), (1,)), order="context", context_alpha=(2.0,),
        kappa=0.4, omega=2.0,
    ),
}  # fmt: skip
BLOCKED_CONTEXTS = {
    "contexts, stages": CoinContextModel(
        (0, 0, 1, 1), DirichletEmission(2, 0.5), (0,), 0.8, 1.7,
        columns=((0,), (1,), (-1,), (0,)), context_alpha=(2.0,),
        kappa=0.7, omega=2.0, n_stages=2,
    ),
    "contexts first, stages": CoinContextModel(
        (0, 1, 1), DirichletEmission(2, 0.5), (0,), 2.0, 1.5,
        columns=((0,), (1,), (0,)), order="context", context_alpha=(2.0,),
        kappa=0.5, omega=1.5, n_stages=2, starts_inside=True,
    ),
    "contexts, coins, three steps": CoinContextModel(
        (0, 1, 1), DirichletEmission(2, 0.5), (0,), 1.5, 1.5,
        columns=((0,), (1,), (0,)), context_alpha=(1.5,), kappa=1.5, omega=0.7,
    ),
    "contexts first, coins, two steps": CoinContextModel(
        (0, 1), DirichletEmission(2, 0.5), (0,), 1.5, 1.0,
        columns=((0,), (0,)), order="context", context_alpha=(2.0,),
        kappa=0.6, omega=1.0,
    ),
}  # fmt: skip
LONGER_BLOCKED_CONTEXTS = {
    "contexts first, coins, three steps": CoinContextModel(
        (0, 1, None), DirichletEmission(2, 0.5), (0,), 1.5, 1.0,
        columns=((0,), (0,), (0,)), order="context", context_alpha=(2.0,),
        kappa=0.6, omega=1.0,
    ),
}  # fmt: skip
# For single steps: three and four levels, in two sequences; a middle one has neighbours.
STEPS_IN_CONTEXTS = {
    "three levels": ContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.7), (0, 3), 1.5, 2.0,
        columns=((0,), (-1,), (0,), (0,)), context_alpha=(2.0,),
    ),
    "three levels, context first": ContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.5), (0,), 1.5, 2.0,
        columns=((0,), (0,), (0,), (1,)), order="context", context_alpha=(2.0,),
    ),
    "four levels": ContextModel(
        (0, 1, 0, 1), DirichletEmission(2, 0.5), (0, 3), 2.0, 1.5,
        columns=((0, 0), (0, 1), (0, 0), (0, -1)), context_alpha=(2.0, 1.5),
    ),
    "four levels, context first": ContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.7), (0, 3), 1.5, 1.0,
        columns=((0, 0), (0, 1), (0, -1), (-1, 0)), order="context",
        context_alpha=(2.0, 0.7),
    ),
}  # fmt: skip
LONGER_STEPS_IN_CONTEXTS = {
    "three levels, five steps": ContextModel(
        (0, 1, 1, 0, 1), DirichletEmission(2, 0.7), (0,), 1.5, 2.0,
        columns=((0,), (0,), (-1,), (0,), (1,)), context_alpha=(2.0,),
    ),
    "three levels, context first, five steps": ContextModel(
        (0, 1, 1, 0, 1), DirichletEmission(2, 0.5), (0,), 1.5, 2.0,
        columns=((0,),) * 5, order="context", context_alpha=(2.0,),
    ),
    "three levels, four and one": ContextModel(
        (0, 1, 1, 0, 1), DirichletEmission(2, 0.7), (0, 4), 1.5, 2.0,
        columns=((0,), (0,), (0,), (0,), (0,)), context_alpha=(2.0,),
    ),
    "four levels, five steps": ContextModel(
        (0, 1, 0, 1, 0), DirichletEmission(2, 0.5), (0,), 2.0, 1.5,
        columns=((0, 0), (0, 0), (0, 1), (0, 0), (1, -1)), context_alpha=(2.0, 1.5),
    ),
    "four levels, context first, five steps": ContextModel(
        (0, 1, 1, 0, 0), DirichletEmission(2, 0.7), (0, 3), 1.5, 1.0,
        columns=((0, 0), (0, 0), (0, 1), (-1, 0), (0, -1)), order="context",
        context_alpha=(2.0, 0.7),
    ),
}  # fmt: skip
LONGER_STAGED = {
    "stages, six steps": CoinModel(
        (0, 0, 1, 1, 0, 0), DirichletEmission(2, 0.5), (0,), 0.8, 1.7, 0.7, 2.0, 2
    ),
    "three stages": CoinModel(
        (0, 0, 0, 1, 1, 1), DirichletEmission(2, 0.3), (0,), 1.5, 2.0, 0.3, 2.5, 3
    ),
    "stages, three and three": CoinModel(
        (0, 0, 1, None, 1, 1), DirichletEmission(2, 0.5), (0, 3), 2.0, 2.0, 0.5, 1.5, 2
    ),
}
LONGER = {
    "five steps": Model((0, 1, 1, 0, 1), DirichletEmission(2, 0.7), (0,), 5.0, 2.0),
    "three and two": Model(
        (0, 1, None, 0, 1), DirichletEmission(2, 0.5), (0, 3), 3.0, 1.0
    ),
    "coins, five steps": CoinModel(
        (0, 0, 1, 1, 0), DirichletEmission(2, 0.5), (0,), 1.5, 1.0, 5.0, 1.5
    ),
}

ALL_MODELS = (
    MODELS | OF_NUMBERS | HCRP | STAGED | CONTEXTS | BLOCKED_CONTEXTS
    | LONGER_BLOCKED_CONTEXTS | STEPS_IN_CONTEXTS | LONGER_STEPS_IN_CONTEXTS
    | LONGER_STAGED | LONGER
)  # fmt: skip
# Changes of state have a penalty.
ALL_MODELS |= {
    f"{name}, penalty": replace(model, penalty=1.3)
    for name, model in ALL_MODELS.items()
    if hasattr(model, "kappa")
}

PICKS = """
extern "C" {
__attribute__((visibility("default"))) int (*pick)(double) = nullptr;
__attribute__((visibility("default"))) int n_lost = 0;
__attribute__((visibility("default"))) int bug = 0;
__attribute__((visibility("default"))) int only = -1;   // step of a sweep, -1: all
}
struct Range { double low = 0.0, high = 1.0; };
// slope * U + shift, where the uniform number U is known to be in a range.
struct Pick {
    double slope = 1.0, shift = 0.0;
    std::shared_ptr<Range> known = std::make_shared<Range>();
    template <class T> bool operator<(T x) const {
        const double at = (x - shift) / slope;
        if (!(at > known->low + 1e-14)) return false;
        if (at >= known->high - 1e-14) return true;
        const bool below = pick((at - known->low) / (known->high - known->low));
        (below ? known->high : known->low) = at;
        return below;
    }
    template <class T> bool operator>=(T x) const { return !(*this < x); }
    Pick operator*(double x) const { return {slope * x, shift * x, known}; }
    Pick operator/(double x) const { return {slope / x, shift / x, known}; }
    Pick operator-(double x) const { return {slope, shift - x, known}; }
    Pick &operator-=(double x) { shift -= x; return *this; }
    explicit operator int64_t() const {
        int64_t i = 0;
        while (*this >= i + 1) ++i;
        return i;
    }
    operator double() const { ++n_lost; return 0.5; }   // of code that no trial has
};
inline bool operator>=(double x, const Pick &u) { return u < x; }
inline Pick uniform(bitgen_t *) { return Pick(); }
inline int64_t below(bitgen_t *, int64_t n) { return int64_t(Pick() * double(n)); }
inline int64_t drawn_below(bitgen_t *g, int64_t n) {"""
BLOCKS = "_dense_blocked.hpp"
EDITS = [
    ("containers of numbers", "#include <memory>\nPLACE"),
    ("uniform number", ""),
    ("number below", PICKS),
    ("number of a table", "const Pick u = uniform(g) * weight;"),
    # A customer who comes back to the same label is given 21 random bits.
    (
        "table by random bits",
        """{
            const Pick p = uniform(g) * dish_weight<double>(lifted.n, fresh);
            if (p >= lifted.n) return kNewTable;
            if (lifted.n_tables == 1) return 0;
            const int32_t *sizes = sizes_.of(cells_[lifted.cell]);
            int32_t at = 0;
            int64_t end = sizes[0] - (lifted.table == 0);
            for (; p >= end; end += sizes[at] - (at == lifted.table)) ++at;
            return at;
        }""",
    ),
    (
        "decision by a drawn number",
        "bool is_accepted(const Pick &u, const Product &q_old,\n"
        "                 const Product &q_new) const {",
    ),
    ("number of a trial", "Pick threshold_;"),
    ("number of a trial of runs", "Pick threshold_;"),
    ("number of an index", "Pick u = uniform(g);"),
    (
        "number of an allocation",
        "const Pick u = n_labels_ > 1 ? uniform(chain.bits) : Pick{0.0, 1.0};",
    ),
    ("number of a label", "Pick u = uniform(g) * total_weight(n_, concentration_);"),
    (BLOCKS, "double u = uniform(g) * total;", "Pick u = uniform(g) * total;"),
    ("number of a path", "const Pick u = uniform(chain.bits) * sum;"),
    (
        "draw of a label before",
        "int32_t draw(int64_t l, int32_t k, Pick u, int32_t skip, double *n) {",
    ),
    *errors.ANY_EMISSION["kernels for any emission only"],
    ("slice of a step", "Pick slice;"),
    ("slice of a transition", "step.slice = uniform(chain.bits) * most;"),
    (
        "labels that pass",
        "for (int32_t k = 0; k < n_slots_; ++k)\n"
        "    g[k] += sparse[k] + r * base[k] >= u ? f_f : 0.0f;",
    ),
    (
        "blocks of a sweep",
        "PLACE\n        if (only >= 0 && blocks.start(b) != only) continue;",
    ),
    # Errors to plant, chosen later: one compilation for all.
    (
        "draws after states",
        "const std::vector<int32_t> &draws() const {\n"
        "    return tree_ && bug != 2 ? coins_.draws() : row_customers;\n}",
    ),
    (
        "probability with a stay",
        "return (j == k && !are_staged() ? stay(k) : 0.0) + leave(bug == 3 ? k : j) * p;",
    ),
    (
        "probability in a tree",
        "const double p = tree_->prob(tree_->place(t - (bug == 4)), j, k);",
    ),
    (
        "share of stays",
        "if (j == k && uniform(g) * p < stay(k)) {\n"
        "if (bug == 5) coins_.count(Coins::Kind::kDraw, k, 1);\n"
        "coins_.toggle(t, k);\n}",
    ),
    (
        BLOCKS,
        "q->multiply(labels_.seat(label, -1));",
        "if (bug != 1) q->multiply(labels_.seat(label, -1));",
    ),
    ("states to merge", "q.multiply(weight / (bug == 1 ? 2.0 : states_.size()));"),
    (
        "rejected trial",
        """{
            PLACE
            if (bug == 1) {
                const int64_t t = chain.n_steps - 1;
                const int32_t j = chain.previous(t), k = chain.states[t];
                ratio_.remove_block(chain, emission, t, t + 1, j, &k, -1);
                ratio_.add_block(chain, emission, t, t + 1, j, &k, -1);
                ratio_.keep(chain, emission);
            }
        }""",
    ),
]
# Single steps have the kernel for symbols.
STEP_EDITS = [
    edit
    for edit in EDITS
    if edit not in errors.ANY_EMISSION["kernels for any emission only"]
] + [
    ("kernels for any emission", 'throw std::logic_error("no symbols");'),
    ("number of a restaurant", "Pick u = uniform(g) * sum;"),
    ("number of a weight", "int32_t at(Pick u) const {"),
    ("numbers of a choice", "double q, stays;\nPick u;"),
    ("number of a step", "Pick u = uniform(chain.bits) * (first_q_ + apart_q_ + rest_);"),
    (
        "search of a label",
        "int32_t search(int32_t size, Id id, Term term, Pick u) const {",
    ),
    (
        "draw by counts",
        "int32_t draw_sparse(const Transitions &s, const Count *row_counts,\n"
        "                    const Count *column_counts, Pick u) const {",
    ),
    ("draw in contexts", "int32_t draw_contexts(Pick u) const {"),
    ("draw of all labels", "int32_t draw_all(Pick u) const {"),
    (
        "draw of another label",
        "int32_t draw_other(const Transitions &s, Pick u) const {",
    ),
]
KERNELS = {
    "exact": (errors.STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(exact=True))),
    "exact, no lookup": (
        errors.STEPWISE,
        lambda m: RCDKernel(m.StepwiseProposal(0, exact=True)),
    ),
    "rcd": (errors.STEPWISE, lambda m: RCDKernel(m.StepwiseProposal())),
    "rcd, no lookup": (errors.STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(0))),
    "slice": (errors.BLOCKED, lambda m: RCDKernel(m.BeamProposal(0.0))),
    "beam": (errors.BLOCKED, lambda m: RCDKernel(m.BeamProposal())),
    "beams": (errors.BLOCKED, lambda m: RCDKernel(m.BeamProposal(0.0), 2)),
    "steps": (errors.SPLIT_MERGE, lambda m: m.InterleavedKernel(None, 1)),
    "runs": (errors.RUN_SPLIT_MERGE, lambda m: m.RunSplitMergeKernel(None, 1)),
    "blocks": (errors.BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 4)),
}
# Modules with errors that have names.
PLANTED = {
    errors.STEPWISE: errors.STEPS_IN_CONTEXTS | errors.PENALTY_OF_STEPS,
    errors.BLOCKED: errors.SLICES_IN_CONTEXTS
    | errors.BLOCKS_IN_CONTEXTS
    | errors.PENALTY_OF_BLOCKS,
}
EDITS_OF = {errors.STEPWISE: STEP_EDITS, errors.BLOCKED: EDITS}

# What takes the time of "steps" is to compile.
TRIALS = ["runs", pytest.param("steps", marks=pytest.mark.slow)]
OF_TRIALS = [
    *STAGED, *CONTEXTS, "contexts, stages", "contexts first, stages",
    "coins, two sequences, penalty", "stages, two sequences, penalty",
    "contexts, coins, penalty", "contexts first, coins, penalty",
]  # fmt: skip
OF_BLOCKS = [*STAGED, *BLOCKED_CONTEXTS]
# Kernels, models, seeds of blocks, least probability to leave some state, slow or not.
# (Two runs side by side, as most are with stages, are split by the filter only.)
SWEEPS = [
    (("runs",), [*MODELS, *OF_NUMBERS], (0,), 0.1, False),
    (("runs",), OF_TRIALS, (0,), 0.02, False),
    (("steps",), MODELS, (0,), 0.1, True),
    (("steps",), OF_TRIALS, (0,), 0.02, True),
    (("steps", "runs"), LONGER, (0,), 0.1, True),
    (("steps", "runs"), LONGER_STAGED, (0,), 0.02, True),
    (("blocks",), OF_BLOCKS, (0, 1), 0.02, False),
    (("blocks",), OF_BLOCKS, (2, 3), 0.02, True),
    (("blocks",), LONGER_BLOCKED_CONTEXTS, range(4), 0.02, True),
    (
        ("blocks",),
        ["stages, two sequences, penalty", "stages, cut, penalty",
         "contexts, coins, three steps, penalty",
         "contexts first, coins, two steps, penalty"],
        (0,), 0.02, False,
    ),
    # (With a penalty all else is in the matrix, too.  Three steps take eight seconds.)
    (("beams",), ["contexts first, coins, two steps, penalty"], (0,), 0.02, False),
    (
        ("beams",),
        ["contexts, coins, three steps, penalty", "contexts, coins, three steps"],
        (0,), 0.02, True,
    ),
]  # fmt: skip
# Moves of every step: kernels, models, slow or not.
STEPS = [
    (("exact", "rcd", "slice"), STEPS_IN_CONTEXTS, False),
    # Five steps have several tables of one transition, between other labels.
    (
        ("exact", "exact, no lookup", "rcd", "rcd, no lookup"),
        ["one sequence", "two sequences", "missing", *HCRP, "five steps"],
        False,
    ),
    (("exact",), ["coins, penalty", "contexts, coins, penalty"], False),
    (("exact", "rcd"), ["coins, two sequences, penalty"], False),
    (("rcd",), ["contexts first, coins, penalty"], False),
    # One kernel, with exact messages and others.
    (
        ("slice",),
        ["contexts first, coins, penalty", "contexts, coins, three steps, penalty"],
        False,
    ),
    (
        ("slice",),
        ["contexts first, coins", "contexts, coins", "contexts, coins, penalty"],
        True,
    ),
    (("beam",), ["contexts, coins", "contexts first, coins"], True),
    (("exact", "rcd"), LONGER_STEPS_IN_CONTEXTS, True),
    # Slices of the second of these have two million outcomes.
    (
        ("slice",),
        ["three levels, five steps", "four levels, context first, five steps"],
        True,
    ),
]


def cases(table):
    return [
        pytest.param(*case, *others, marks=[pytest.mark.slow] * is_slow)
        for *lists, is_slow in table
        for n in [sum(not isinstance(x, float) for x in lists)]
        for others in [lists[n:]]
        for case in itertools.product(*lists[:n])
    ]


def key_of_all(model, arrays):
    """The labels, tables of all depths, and stays or stages."""
    steps = (*arrays.get("stayed", ()), *arrays.get("stages", ()))
    if not isinstance(model, ContextModel):
        return (*key_of(arrays, isinstance(model.emission, HCRPEmission)), *steps)
    labels = canonical(arrays["states"].tolist())
    names = {None: -2, START: -1} | dict(
        zip(arrays["states"].tolist(), labels, strict=True)
    )
    tables = (
        (names.get(v[0], -3), v[1], names.get(k, -3), *sorted(sizes))
        for (v, k), sizes in model.tables_of(arrays).items()
    )
    return (labels, tuple(sorted(tables)), *steps)


@cache
def all_states(model):
    """``{key: (arrays, log joint probability)}`` of all labels, stays and tables."""
    if isinstance(model.emission, HCRPEmission):
        law = model.y, model.emission, model.starts, model.alpha, model.gamma
        seatings = all_seatings(*law).items()
        return {key: (arrays_of(hmm), np.log(p)) for key, (hmm, p) in seatings}
    states, starts = {}, set(model.starts)
    has_coins, is_tree = hasattr(model, "kappa"), isinstance(model, ContextModel)
    options = (model.n_stages, model.starts_inside) if has_coins else ()
    for labels in set_partitions(model.n_steps):
        before = [START if t in starts else labels[t - 1] for t in range(len(labels))]
        arrays = model.state(0, labels).to_arrays()
        assert arrays["states"].tolist() == list(labels)
        n_states = arrays["n_states"]
        log_y = log_likelihood(labels, model.y, model.emission)
        for kinds, stages in ways_to_enter(labels, starts, *options):
            if not has_coins and STAY in kinds:
                continue
            drawn = [t for t, kind in enumerate(kinds) if kind == DRAW]

            def seat(choose, labels=labels, before=before, drawn=drawn):
                franchise = NaiveFranchise(model.alpha, model.gamma)
                if is_tree:
                    franchise = model.tree()
                for t in drawn:
                    row = model.row_of(t, before[t]) if is_tree else before[t]
                    franchise.add_customer(row, labels[t], choose)
                return franchise

            log_stays, steps, extra = 0.0, {}, {}
            if has_coins:
                log_stays = log_coins(labels, starts, kinds, model)
                extra["stays"] = np.bincount(labels, np.equal(kinds, STAY), n_states)
                steps["stayed"] = np.equal(kinds, STAY).astype(np.uint8)
            if has_coins and is_tree:
                rows = [n_states if before[t] == START else before[t] for t in drawn]
                extra["draws"] = np.bincount(rows, minlength=n_states + 1)
            if has_coins and model.n_stages > 1:
                extra["advances"] = np.bincount(
                    labels, np.equal(kinds, ADVANCE), n_states
                )
                steps = {"stages": np.array(stages, dtype=np.uint8)}
            extra = {name: counts.astype(np.int32) for name, counts in extra.items()}
            for _, franchise in all_outcomes(seat):
                if is_tree:
                    slots = {k: k for k in labels}
                    seated = model.record_of(franchise, slots, n_states)
                else:
                    seated = packed(
                        franchise.tables, lambda j, n=n_states: n if j == START else j
                    )
                record = {
                    **arrays,
                    **steps,
                    "transitions": arrays["transitions"] | seated | extra,
                }
                log_p = franchise.log_joint() + franchise.log_n_identities()
                states[key_of_all(model, record)] = record, log_y + log_stays + log_p
    return states


def enumerated(trials, model, bug=0, seed=0, only=-1, error=None):
    """Transition matrix of one trial, and the posterior.

    A sweep over blocks cuts them by the chain's stream, the same way for one seed;
    with `only` the moves of all steps but this one are left out.  The last state stands
    for all that are impossible.
    """
    name, make_kernel = KERNELS[trials]
    if name in PLANTED:
        module = native.switched(name, PLANTED[name], error, EDITS_OF[name])
    else:
        module = native.planted(name, *EDITS)
    library, kernel = ctypes.CDLL(module.__file__), make_kernel(module)
    state, states = model.state(seed), all_states(model)
    stream = state.stream.state
    number = {key: i for i, key in enumerate(states)}
    matrix = np.zeros((len(number) + 1, len(number) + 1))
    matrix[-1, -1] = 1.0
    ctypes.c_int.in_dll(library, "bug").value = bug
    ctypes.c_int.in_dll(library, "only").value = only
    pick = ctypes.c_void_p.in_dll(library, "pick")

    def trial(choose, arrays):
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double)(
            lambda p: choose([1.0 - p, p])
        )
        pick.value = ctypes.cast(callback, ctypes.c_void_p).value
        state.from_arrays(arrays)
        state.stream.state = stream
        kernel.sweep(state)
        return number.get(key_of_all(model, state.to_arrays()), -1)

    for i, (arrays, _) in enumerate(states.values()):
        for p, j in all_outcomes(lambda choose, arrays=arrays: trial(choose, arrays)):
            matrix[i, j] += p
    assert ctypes.c_int.in_dll(library, "n_lost").value == 0
    logs = np.array([*(log_p for _, log_p in states.values()), -np.inf])
    target = np.exp(logs - logs.max())
    return matrix, target / target.sum()


@pytest.mark.parametrize(("trials", "name", "seed", "least"), cases(SWEEPS))
def test_sweeps_keep_the_posterior(trials, name, seed, least):
    matrix, target = enumerated(trials, ALL_MODELS[name], seed=seed)
    assert max(stationarity_errors(matrix, target)) < EXACT
    # A sweep is a sequence of blocks.
    if trials not in ("blocks", "beams"):
        assert irreversibility(matrix, target) < EXACT
    # Nothing of the above is empty: the matrix moves.
    assert np.min(np.diag(matrix)) < 1 - least


@pytest.mark.parametrize(("trials", "name"), cases(STEPS))
def test_steps_are_balanced(trials, name):
    model = ALL_MODELS[name]
    for t in range(model.n_steps):
        matrix, target = enumerated(trials, model, only=t)
        assert max(stationarity_errors(matrix, target)) < EXACT
        assert irreversibility(matrix, target) < EXACT
        assert np.min(np.diag(matrix)) < 0.5


def assert_error_is_caught(trials, model, bug=0, **options):
    matrix, target = enumerated(trials, model, bug, **options)
    rows, change = stationarity_errors(matrix, target)
    assert rows < EXACT
    assert change > CAUGHT


@pytest.mark.parametrize("trials", [*TRIALS, "blocks"])
def test_planted_errors_are_caught(trials):
    """Last step seated anew; ratio without the number of states, or the new labels."""
    model = STAGED["stages"] if trials == "blocks" else MODELS["one sequence"]
    assert_error_is_caught(trials, model, 1)


@pytest.mark.parametrize("error", errors.MARGINALS)
def test_planted_errors_of_marginals_are_caught(monkeypatch, error):
    library = errors.edited(errors.CONJUGATE, error)
    monkeypatch.setattr(conjugate, "conjugate_stats", library.conjugate_stats)
    assert_error_is_caught("runs", OF_NUMBERS["diagonal"])


@pytest.mark.parametrize("error", errors.BLOCKS_IN_CONTEXTS)
def test_planted_errors_of_blocks_in_contexts_are_caught(error):
    model = BLOCKED_CONTEXTS["contexts, coins, three steps"]
    trials, step = ("slice", 0) if error.startswith("slices") else ("blocks", -1)
    assert_error_is_caught(trials, model, only=step, error=error)


@pytest.mark.parametrize(
    ("error", "trials", "name", "step"),
    [
        ("no penalty of the follower", "exact", "coins", 1),
        ("no penalty of the follower in a tree", "exact", "contexts, coins", 1),
        ("penalty of stays", "exact", "coins", 1),
        ("penalty of advances", "blocks", "stages, two sequences", -1),
    ],
)
def test_planted_errors_of_the_penalty_are_caught(error, trials, name, step):
    model = ALL_MODELS[f"{name}, penalty"]
    assert_error_is_caught(trials, model, only=step, error=error)


# Tables counted for the coin, the coin of the next state, the context of the step before,
# a draw counted for a stay.
@pytest.mark.parametrize("bug", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "name",
    ["contexts, coins", pytest.param("contexts first, coins", marks=pytest.mark.slow)],
)
def test_planted_errors_of_coins_with_contexts_are_caught(name, bug):
    assert_error_is_caught("runs", CONTEXTS[name], bug)


# Where single steps show an error.
CAUGHT_AT = {
    "a new state without its table at the top": [
        ("three levels", 1), ("three levels, context first", 1),
    ],
    "upper restaurants of i as they were": [
        ("four levels", 1), ("four levels, context first", 1),
    ],
    "shared restaurants as they were": [("four levels, context first", 1)],
    "shared counts as they were": [("three levels, context first", 1)],
    "tables opened whatever follows": [
        ("three levels, five steps", 1), ("four levels, context first", 1),
    ],
    "threshold of the leaf alone": [
        ("four levels", 1), ("four levels", 1, "beam"),
    ],
    "threshold without the leaf": [
        ("four levels, context first", 2), ("four levels, context first", 2, "beam"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("error", CAUGHT_AT)
def test_planted_errors_of_steps_in_contexts_are_caught(error):
    trials = "exact" if error in errors.STEPS_IN_CONTEXTS else "slice"
    for name, t, *other in CAUGHT_AT[error]:
        assert_error_is_caught(*other or [trials], ALL_MODELS[name], only=t, error=error)
