"""Exact transition matrices of split-merge trials, blocks, and single steps.

The compiled moves themselves are enumerated: a uniform number is an interval, which
every comparison with a threshold divides, so that a move is a sequence of picks with
known probabilities, and is repeated with all of them, as `all_outcomes` does.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from dataclasses import replace
from functools import cache, partial

import errors
import native
import numpy as np
import pytest
from native.build import Verbatim
from reference import conjugate
from reference.coins import DRAW, STAY, CoinModel, ways_to_enter
from reference.contexts import CoinContextModel, ContextModel
from reference.enumeration import (
    START,
    DirichletEmission,
    HCRPEmission,
    canonical,
    log_likelihood,
    set_partitions,
)
from reference.input_coins import InputCoinContextModel, InputCoinModel
from reference.kernel import irreversibility, stationarity_errors
from reference.product import Product
from reference.seating import NaiveFranchise, NaiveHMM, all_outcomes
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
SHORT = {
    "two columns": Model(
        ((0, 1), (1, None), (0, 1), (1, 0)), DirichletEmission(2, 0.7), (0,), 1.0, 2.0
    ),
    "HCRP, three steps": Model((0, 0, 1), HCRPEmission(2, 1.5, 1.0), (0,), 3.0, 1.5),
}
# Symbols have tables, too.
HCRP = {
    "HCRP": Model((0, 0, 1, 0), HCRPEmission(2, 1.5, 1.0), (0,), 3.0, 1.5),
    "HCRP, two sequences": Model((0, None, 0, 0), HCRPEmission(2, 3.0, 2.0), (0, 3), 4.0, 1.5),
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
# Coins depend on inputs, of which some are missing, at given weights of the steps.
INPUTS = {
    "inputs": InputCoinModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.7), (0,), 2.0, 3.0,
        inputs=((0.0,), (1.2,), (-1.5,), (0.8,)), weights=(0.2, 0.05, 0.4, 0.1),
    ),
    "inputs, two sequences": InputCoinModel(
        (0, None, 1, 1), DirichletEmission(2, 0.5), (0, 2), 0.8, 1.5,
        inputs=((0.3, 1.0), (2.0, -1.0), (np.nan, 0.5), (-0.8, np.nan)),
        weights=(0.2, 0.5, 0.03, 0.6), scales=(1.4, 2.0), precision=0.2, mean=-1.0,
    ),
    "known states, inputs": InputCoinModel(
        ((0,), (1,), (1,), (0,)),
        Product((DirichletEmission(2, 0.7),), (1,), (0, -1, -1, 0)), (0,), 2.0, 3.0,
        inputs=((0.0,), (1.2,), (-1.5,), (0.8,)), weights=(0.2, 0.05, 0.4, 0.1),
    ),
    "contexts, inputs": InputCoinContextModel(
        (0, 1, 1, 0), DirichletEmission(2, 0.7), (0,), 2.0, 3.0,
        columns=((0,), (1,), (1,), (0,)), context_alpha=(1.5,),
        inputs=((0.0,), (1.2,), (-1.5,), (0.8,)), weights=(0.2, 0.05, 0.4, 0.1),
    ),
    "contexts first, inputs": InputCoinContextModel(
        (0, None, 1), DirichletEmission(2, 0.5), (0,), 0.8, 1.5,
        columns=((0,), (-1,), (0,)), order="context", context_alpha=(2.0,),
        inputs=((0.0,), (1.2,), (-1.5,)), weights=(0.2, 0.05, 0.4),
    ),
}  # fmt: skip
LONGER = {
    "five steps": Model((0, 1, 1, 0, 1), DirichletEmission(2, 0.7), (0,), 5.0, 2.0),
    "three and two": Model((0, 1, None, 0, 1), DirichletEmission(2, 0.5), (0, 3), 3.0, 1.0),
    "coins, five steps": CoinModel(
        (0, 0, 1, 1, 0), DirichletEmission(2, 0.5), (0,), 1.5, 1.0, 5.0, 1.5
    ),
}

ALL_MODELS = (
    MODELS | OF_NUMBERS | HCRP | CONTEXTS | BLOCKED_CONTEXTS | LONGER_BLOCKED_CONTEXTS
    | STEPS_IN_CONTEXTS | LONGER_STEPS_IN_CONTEXTS | LONGER | SHORT | INPUTS
)  # fmt: skip
# Changes of state have a penalty.
ALL_MODELS |= {
    f"{name}, penalty": replace(model, penalty=1.3)
    for name, model in ALL_MODELS.items()
    if hasattr(model, "kappa")
}

PICKS = """
extern "C" {
// Probability of the picks of a move.
__attribute__((visibility("default"))) double picked = 1.0;
__attribute__((visibility("default"))) int n_lost = 0;
__attribute__((visibility("default"))) int bug = 0;
// The one block of a sweep; -1: all of them.
__attribute__((visibility("default"))) int first = -1;
__attribute__((visibility("default"))) int end = -1;
// Change the last pick that has another outcome, drop those after it; false: none has.
__attribute__((visibility("default"))) bool next();
}
// Which of the picks are below, and those that are made so far.
std::vector<bool> picks;
size_t n_picked = 0;
bool pick(double p) {
    if (!(p > 0.0 && p < 1.0)) return p > 0.0;
    if (n_picked == picks.size()) picks.push_back(false);
    const bool below = picks[n_picked++];
    picked *= below ? p : 1.0 - p;
    return below;
}
bool next() {
    n_picked = 0;
    picked = 1.0;
    while (!picks.empty() && picks.back()) picks.pop_back();
    if (picks.empty()) return false;
    return picks.back() = true;
}
struct Span { double low = 0.0, high = 1.0; };
// slope * U + shift, where the uniform number U is known to be in a range.
struct Pick {
    double slope = 1.0, shift = 0.0;
    std::shared_ptr<Span> known = std::make_shared<Span>();
    template <class T> bool operator<(T x) const {
        const double at = (x - shift) / slope;
        if (!(at > known->low + 1e-14)) return false;
        if (at >= known->high - 1e-14) return true;
        const bool below = pick((at - known->low) / (known->high - known->low));
        (below ? known->high : known->low) = at;
        return below;
    }
    template <class T> bool operator<=(T x) const { return *this < x; }
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
ANY_EMISSION = [Verbatim("kernels for symbols", "")]
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
        "const Pick u = length() > 1 ? uniform(chain.bits) : Pick{0.0, 1.0};",
    ),
    ("number of a label", "Pick u = uniform(g) * total_weight(n_, concentration_);"),
    ("number of a path", "const Pick u = uniform(chain.bits) * sum;"),
    (
        "draw of a label before",
        "int32_t draw(int64_t l, int32_t k, Pick u, int32_t skip, double *n) {",
    ),
    *ANY_EMISSION,
    ("slice of a step", "Pick slice;"),
    ("slice of a transition", "step.slice = uniform(chain.bits) * most;"),
    (
        "labels that pass",
        "for (int32_t k = 0; k < n_slots_; ++k)\n"
        "    g[k] += sparse[k] + r * base[k] >= u ? f_f : 0.0f;",
    ),
    ("blocks of a sweep", "PLACE\n        if (first >= 0 && b > 0) break;"),
    (
        "_rcd.hpp",
        "const int64_t start = blocks.start(b), stop = blocks.stop(b);",
        "const int64_t start = first < 0 ? blocks.start(b) : first,"
        " stop = first < 0 ? blocks.stop(b) : end;",
    ),
    # Errors to plant, chosen later: one compilation for all.
    (
        "draws after states",
        "const std::vector<int32_t> &draws() const {\n"
        "    return tree_ && bug != 2 ? coins_.draws() : row_customers;\n}",
    ),
    (
        "probability with a stay",
        "return (j == k ? stayed : 0.0) + leave(t, bug == 3 ? k : j) * p;",
    ),
    ("probability in a tree", "const double p = tree_->prob(tree_->place(t - (bug == 4)), j, k);"),
    (
        "share of stays",
        "if (j == k && uniform(g) * p < stay(t, k)) {\n"
        "if (bug == 5) coins_.count_draw(t, k, 1);\n"
        "coins_.toggle(t, k);\n}",
    ),
    (
        "factors of a coin",
        "PLACE\n"
        "if (bug == 6) {\n"
        "    const double total = *stay + *leave;\n"
        "    *stay /= total;\n    *leave /= total;\n}",
    ),
    ("bound of a coin", "const double root = (bug == 7 ? 2.0 : 0.5) * std::sqrt(g);"),
    ("row of a follower", "mu += bug == 8 ? 0.0 : along * by;"),
    (
        "inputs of a step",
        "const double *row =\n    &rows_[is_there ? (t - (bug == 9 && t > 0)) * n_inputs_ : 0];",
    ),
    ("rollback of coins", "if (bug != 10) PLACE"),
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
STEP_EDITS = [edit for edit in EDITS if edit not in ANY_EMISSION] + [
    ("number of a restaurant", "Pick u = uniform(g) * sum;"),
    ("number of a weight", "int32_t at(Pick u) const {"),
    ("numbers of a choice", "double q, stays;\nPick u;"),
    ("number of a step", "Pick u = uniform(chain.bits) * (first_q_ + apart_q_ + rest_);"),
    ("search of a label", "int32_t search(int32_t size, Id id, Term term, Pick u) const {"),
    (
        "draw by counts",
        "int32_t draw_sparse(const Transitions &s, const Count *row_counts,\n"
        "                    const Count *column_counts, Pick u) const {",
    ),
    ("draw in contexts", "int32_t draw_in_tree(Pick u) const {"),
    ("draw of all labels", "int32_t draw_all(Pick u) const {"),
    ("draw of another label", "int32_t draw_other(const Transitions &s, Pick u) const {"),
]
# Blocks are of symbols and of any emission.  Slices are numbers without contexts, too;
# what approximate messages add for rows that are cut depends on them, here it does not.
VIEWS = "_blocked_views.hpp"
SLICES = [
    "int32_t j, double f, double u, float *g",
    "const double from = u / (scale_ * c);",
    "double sum_passing(int64_t l, int32_t k, double u, const float *f)",
    "void visit_passing(int64_t l, int32_t k, double u,",
    "bool is_listed(double smooth, double u) const",
    "double c, double mass, double u) const {",
]
BLOCK_EDITS = [edit for edit in EDITS if edit not in ANY_EMISSION] + [
    *((VIEWS, text, re.sub("double (u|from)", r"Pick \1", text)) for text in SLICES),
    (
        VIEWS,
        "static_cast<int32_t>(std::ceil(from));",
        "static_cast<int32_t>(static_cast<int64_t>(from) + 1);",
    ),
    (
        VIEWS,
        "add_where(stride_, scale_, mass, c, u, if_passes[1], g);",
        "for (int32_t k = 0; k < n_slots_; ++k)\n"
        "    g[k] += if_passes[link(0.0, mass[k], c) >= u];",
    ),
    (
        VIEWS,
        "const Pair b = Pair::of(smooth), least = Pair::of(u);",
        "double listed = 0.0;\n"
        "for (int32_t at = 0; at < column.size; ++at) {\n"
        "    const int32_t j = column.ids[at];\n"
        "    if ((column.counts[at] + smooth) * c[j] >= u) listed += f[j];\n}\n"
        "return listed;\n"
        "const Pair b = Pair::of(smooth), least = b;",
    ),
    (
        VIEWS,
        "double sum = blocked_passes.sum_where(stride_, smooth, c, u, f);",
        "double sum = 0.0;\n"
        "for (int32_t j = 0; j < n_slots_; ++j)\n"
        "    if (smooth * c[j] >= u) sum += f[j];",
    ),
    ("_blocked.hpp", "/ (view_.smooth_weight() * u);", "/ view_.smooth_weight();"),
]
KERNELS = {
    "exact": (errors.STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(exact=True))),
    "exact, no lookup": (errors.STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(0, exact=True))),
    "rcd": (errors.STEPWISE, lambda m: RCDKernel(m.StepwiseProposal())),
    "rcd, no lookup": (errors.STEPWISE, lambda m: RCDKernel(m.StepwiseProposal(0))),
    "steps": (errors.SPLIT_MERGE, lambda m: m.InterleavedKernel(None, 1)),
    "runs": (errors.RUN_SPLIT_MERGE, lambda m: m.RunSplitMergeKernel(None, 1)),
    "blocks": (errors.BLOCKED, lambda m: RCDKernel(m.BlockedProposal(), 5)),
    "blocks, exact": (errors.BLOCKED, lambda m: RCDKernel(m.BlockedProposal(0.0), 5)),
    "blocks, crude": (errors.BLOCKED, lambda m: RCDKernel(m.BlockedProposal(3.0), 5)),
    # Of one step: slices.
    "beam": (errors.BLOCKED, lambda m: RCDKernel(m.BeamProposal(), 5)),
    "beam, exact": (errors.BLOCKED, lambda m: RCDKernel(m.BeamProposal(0.0), 5)),
    "beam, crude": (errors.BLOCKED, lambda m: RCDKernel(m.BeamProposal(3.0), 5)),
}
# Modules with errors that have names; but for one that is where numbers are drawn.
PLANTED = {
    errors.STEPWISE: errors.MOVE
    | errors.STEP
    | errors.STEPS_IN_CONTEXTS
    | errors.STAYS_OF_STEPS
    | errors.PENALTY_OF_STEPS
    | errors.OFTEN_REJECTED,
    errors.BLOCKED: errors.MOVE
    | errors.BLOCK
    | errors.SLICES_IN_CONTEXTS
    | errors.BLOCKS_IN_CONTEXTS
    | errors.OFTEN_REJECTED,
}
del PLANTED[errors.BLOCKED]["labels drawn otherwise"]
EDITS_OF = {errors.STEPWISE: STEP_EDITS, errors.BLOCKED: BLOCK_EDITS}

# What takes the time of "steps" is to compile.
TRIALS = ["runs", pytest.param("steps", marks=pytest.mark.slow)]
# A penalty of zero is one of its values.
WITH_COINS = ["contexts, coins", "contexts first, coins"]
OF_TRIALS = [
    "contexts", "contexts first", "coins, two sequences, penalty",
    *(f"{name}, penalty" for name in WITH_COINS),
    *INPUTS, "inputs, two sequences, penalty",
]  # fmt: skip
# Kernels, models, least probability to leave some state, slow or not.
SWEEPS = [
    (("runs",), [*MODELS, *OF_NUMBERS], 0.1, False),
    (("runs",), OF_TRIALS, 0.02, False),
    (("steps",), MODELS, 0.1, True),
    (("steps",), OF_TRIALS, 0.02, True),
    (("steps", "runs"), WITH_COINS, 0.02, True),
    (("steps", "runs"), LONGER, 0.1, True),
]
PLAIN = ["one sequence", "two sequences", "missing", *SHORT, "diagonal"]
THREE, TWO = "contexts, coins, three steps", "contexts first, coins, two steps"
COINS_IN_CONTEXTS = [f"{THREE}, penalty", f"{TWO}, penalty"]
FOUR_LEVELS = ["four levels", "four levels, context first"]
MORE = ["missing", "HCRP, three steps"]
NO_LOOKUP = ("exact, no lookup", "rcd, no lookup")
# Moves of all blocks: kernels, models, steps of the longest block, slow or not.
MOVES = [
    (("exact", "rcd"), STEPS_IN_CONTEXTS, (1,), False),
    # Five steps have several tables of one transition, between other labels.
    (("exact", "rcd"), [*PLAIN, *HCRP, "five steps"], (1,), False),
    (NO_LOOKUP, ["two sequences", "two columns", "five steps"], (1,), False),
    (NO_LOOKUP, ["one sequence", *MORE, "diagonal", *HCRP], (1,), True),
    (("exact",), ["coins, penalty", "contexts, coins, penalty"], (1,), False),
    (("exact", "rcd"), ["coins, two sequences, penalty"], (1,), False),
    (("rcd",), ["contexts first, coins, penalty"], (1,), False),
    (
        ("exact", "rcd"),
        [
            "inputs", "inputs, two sequences, penalty", "contexts first, inputs",
            "contexts, inputs, penalty", "known states, inputs",
        ],
        (1,), False,
    ),
    (
        ("blocks",),
        [
            "inputs", "inputs, two sequences, penalty", "contexts first, inputs",
            "known states, inputs",
        ],
        (2,), False,
    ),
    (("blocks, crude",), ["contexts first, inputs"], (2,), False),
    (
        ("blocks, crude",),
        ["inputs", "inputs, two sequences, penalty", "known states, inputs"],
        (2,), True,
    ),
    (("beam",), ["inputs", "contexts first, inputs"], (1,), False),
    (("beam", "beam, exact"), ["inputs", "inputs, two sequences", "contexts, inputs"], (1,), True),
    (("exact", "rcd"), LONGER_STEPS_IN_CONTEXTS, (1,), True),
    (("blocks",), PLAIN, (4,), False),
    (("blocks, crude",), ["one sequence", "two columns", "diagonal"], (4,), False),
    (("blocks, crude",), ["two sequences", *MORE], (4,), True),
    (("beam",), ["one sequence", "two sequences", "diagonal"], (2,), False),
    (("blocks, exact", "beam", "beam, exact", "beam, crude"), PLAIN, (4,), True),
    (("blocks", "blocks, crude"), HCRP, (4,), True),
    (("blocks",), COINS_IN_CONTEXTS, (2,), False),
    (("blocks",), FOUR_LEVELS, (2,), False),
    (("beam",), ["four levels"], (1,), False),
    (("beam",), ["four levels, context first"], (1,), True),
    (("beam",), ["coins, two sequences", *COINS_IN_CONTEXTS], (1,), False),
    (("blocks",), ["coins, two sequences"], (2,), False),
    (("blocks",), [*STEPS_IN_CONTEXTS, THREE, TWO], (4,), True),
    (("blocks, crude",), [*STEPS_IN_CONTEXTS, *COINS_IN_CONTEXTS], (4,), True),
    (("beam", "beam, exact"), STEPS_IN_CONTEXTS, (2,), True),
    (("blocks", "blocks, crude"), ["five steps", "three and two"], (5,), True),
    (("beam",), ["three and two"], (5,), True),
    (("blocks",), ["coins, penalty", *LONGER_BLOCKED_CONTEXTS], (4,), True),
    (
        ("beam",),
        ["contexts, coins", "contexts first, coins", "contexts, coins, penalty"],
        (1,), True,
    ),
    (("beam, exact",), [*COINS_IN_CONTEXTS, THREE, TWO], (2,), True),
    # Slices of the second of these have two million outcomes.
    (
        ("beam, exact",),
        ["three levels, five steps", "four levels, context first, five steps"],
        (1,), True,
    ),
]  # fmt: skip


def cases(table):
    return [
        pytest.param(*case, *others, marks=[pytest.mark.slow] * is_slow)
        for *lists, is_slow in table
        for n in [sum(not isinstance(x, float) for x in lists)]
        for others in [lists[n:]]
        for case in itertools.product(*lists[:n])
    ]


def key_of_all(model, arrays):
    """The labels, tables of all depths, and stays."""
    steps = arrays.get("stayed", ())
    if not isinstance(model, ContextModel):
        return (*key_of(arrays, isinstance(model.emission, HCRPEmission)), *steps)
    labels = canonical(arrays["states"].tolist())
    names = {None: -2, START: -1} | dict(zip(arrays["states"].tolist(), labels, strict=True))
    tables = (
        (names.get(v[0], -3), v[1], names.get(k, -3), *sorted(sizes))
        for (v, k), sizes in model.tables_of(arrays).items()
    )
    return (labels, tuple(sorted(tables)), *steps)


@cache
def all_states(model, span):
    """``{key: (arrays, log joint probability)}`` of all labels, stays and tables.

    Labels are numbered by appearance outside of the span, then in it: sums of messages
    run over labels in single precision, and before and after a move of these steps they
    have the same order.
    """
    states, starts = {}, set(model.starts)
    has_coins, is_tree = hasattr(model, "kappa"), isinstance(model, ContextModel)
    inside = range(*span)
    order = [t for t in range(model.n_steps) if t not in inside] + [*inside]
    for names in set_partitions(model.n_steps):
        labels = [names[order.index(t)] for t in range(model.n_steps)]
        if isinstance(model.emission, HCRPEmission):
            law = model.y, model.emission, model.starts, model.alpha, model.gamma
            seat = partial(NaiveHMM, *law, labels=labels)
            for _, hmm in all_outcomes(lambda choose, seat=seat: seat(choose=choose)):
                record = arrays_of(hmm)
                parts = [hmm.transitions, *hmm.emissions.columns]
                log_p = sum(part.log_joint() + part.log_n_identities() for part in parts)
                states[key_of_all(model, record)] = record, log_p
            continue
        before = [START if t in starts else labels[t - 1] for t in range(len(labels))]
        arrays = model.state(0, labels).to_arrays()
        if hasattr(model, "inputs"):
            arrays = model.at_weights(arrays)
        assert arrays["states"].tolist() == list(labels)
        n_states = arrays["n_states"]
        log_y = log_likelihood(canonical(labels), model.y, model.emission)
        if log_y == -np.inf:
            continue  # not as known
        for kinds in ways_to_enter(labels, starts):
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
                log_stays = model.log_coins(labels, kinds)
                extra["stays"] = np.bincount(labels, np.equal(kinds, STAY), n_states)
                steps["stayed"] = np.equal(kinds, STAY).astype(np.uint8)
            if has_coins and is_tree:
                rows = [n_states if before[t] == START else before[t] for t in drawn]
                extra["draws"] = np.bincount(rows, minlength=n_states + 1)
            extra = {name: counts.astype(np.int32) for name, counts in extra.items()}
            for _, franchise in all_outcomes(seat):
                if is_tree:
                    slots = {k: k for k in labels}
                    seated = model.record_of(franchise, slots, n_states)
                else:
                    seated = packed(franchise.tables, lambda j, n=n_states: n if j == START else j)
                record = {**arrays, **steps, "transitions": arrays["transitions"] | seated | extra}
                log_p = franchise.log_joint() + franchise.log_n_identities()
                states[key_of_all(model, record)] = record, log_y + log_stays + log_p
    return states


def enumerated(trials, model, bug=0, span=(-1, -1), error=None):
    """Transition matrix of one trial, or of the move of one block, and the posterior.

    The last state stands for all that are impossible.
    """
    name, make_kernel = KERNELS[trials]
    if name in PLANTED:
        module = native.switched(name, PLANTED[name], error, EDITS_OF[name])
    else:
        module = native.planted(name, *EDITS)
    library, kernel = ctypes.CDLL(module.__file__), make_kernel(module)
    state, states = model.state(0), all_states(model, span)
    number, numbers = {key: i for i, key in enumerate(states)}, {}
    matrix = np.zeros((len(number) + 1, len(number) + 1))
    matrix[-1, -1] = 1.0
    ctypes.c_int.in_dll(library, "bug").value = bug
    for place, t in zip(("first", "end"), span, strict=True):
        ctypes.c_int.in_dll(library, place).value = t
    picked, library.next.restype = ctypes.c_double.in_dll(library, "picked"), ctypes.c_bool
    for i, (arrays, _) in enumerate(states.values()):
        start, has_next = native.moves.Start(state, arrays), True
        while has_next:
            start.load()
            kernel.sweep(state)
            record = native.moves.integers_of(state)
            if record not in numbers:
                numbers[record] = number.get(key_of_all(model, state.to_arrays()), -1)
            matrix[i, numbers[record]] += picked.value
            has_next = library.next()
    assert ctypes.c_int.in_dll(library, "n_lost").value == 0
    logs = np.array([*(log_p for _, log_p in states.values()), -np.inf])
    target = np.exp(logs - logs.max())
    return matrix, target / target.sum()


@pytest.mark.parametrize(("trials", "name", "least"), cases(SWEEPS))
def test_trials_are_balanced(trials, name, least):
    assert probability_to_leave(trials, ALL_MODELS[name]) > least


@pytest.mark.parametrize(("trials", "name", "longest"), cases(MOVES))
def test_moves_are_balanced(trials, name, longest):
    model = ALL_MODELS[name]
    found = [
        probability_to_leave(trials, model, span=(start, stop))
        for start, stop in itertools.combinations(range(model.n_steps + 1), 2)
        if stop - start <= longest and not {*range(start + 1, stop)} & {*model.starts}
    ]
    assert min(found) > 0.5


def probability_to_leave(trials, model, **options):
    """Check a matrix; that it moves, and what is checked is not empty, is the result."""
    matrix, target = enumerated(trials, model, **options)
    assert max(stationarity_errors(matrix, target)) < EXACT
    assert irreversibility(matrix, target) < EXACT
    return 1.0 - np.min(np.diag(matrix))


@pytest.mark.parametrize("trials", ["rcd", "blocks", "beam"])
@pytest.mark.parametrize("name", ["one sequence", "missing"])
def test_more_rejections_are_no_error(trials, name):
    """They undo many moves that would have been kept."""
    (error,) = errors.OFTEN_REJECTED
    options = {"span": (1, 2), "error": error}
    assert 0.2 < probability_to_leave(trials, ALL_MODELS[name], **options) < 0.5


def assert_error_is_caught(trials, model, bug=0, **options):
    matrix, target = enumerated(trials, model, bug, **options)
    rows, change = stationarity_errors(matrix, target)
    assert rows < EXACT
    assert change > CAUGHT


@pytest.mark.parametrize("trials", TRIALS)
def test_planted_errors_are_caught(trials):
    """Last step seated anew; ratio without the number of states."""
    assert_error_is_caught(trials, MODELS["one sequence"], 1)


@pytest.mark.parametrize("error", errors.MARGINALS)
def test_planted_errors_of_marginals_are_caught(monkeypatch, error):
    library = errors.edited(errors.CONJUGATE, error)
    monkeypatch.setattr(conjugate, "conjugate_stats", library.conjugate_stats)
    assert_error_is_caught("runs", OF_NUMBERS["diagonal"])


# Tables counted for the coin, the coin of the next state, the context of the step before,
# a draw counted for a stay.
@pytest.mark.parametrize("bug", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "name", [THREE, *(pytest.param(name, marks=pytest.mark.slow) for name in WITH_COINS)]
)
def test_planted_errors_of_coins_with_contexts_are_caught(name, bug):
    assert_error_is_caught("runs", ALL_MODELS[name], bug)


# Factors that sum to one, factors without their bound (by which merges stop early), a
# follower as before, the inputs of the step before.
@pytest.mark.parametrize(
    ("bug", "trials", "name", "span"),
    [
        (6, "rcd", "inputs", (1, 2)),
        (6, "exact", "contexts, inputs", (1, 2)),
        (6, "blocks", "inputs", (1, 3)),
        (6, "runs", "inputs", (-1, -1)),
        pytest.param(7, "steps", "inputs", (-1, -1), marks=pytest.mark.slow),
        (8, "exact", "inputs", (1, 2)),
        (8, "exact", "contexts, inputs", (1, 2)),
        (9, "blocks", "inputs", (1, 3)),
    ],
)
def test_planted_errors_of_inputs_are_caught(bug, trials, name, span):
    assert_error_is_caught(trials, INPUTS[name], bug, span=span)


# Where an error shows: kernel, model, block.
CAUGHT_AT = {
    errors.STEPWISE: {
        "accept always": [("rcd", "one sequence", (1, 2))],
        "seat anew on rejection": [("rcd", "missing", (1, 2))],
        "the printed ratio": [("rcd", "one sequence", (1, 2))],
        "transitions at s_0": [("rcd", "one sequence", (1, 2))],
        "the printed denominator": [("rcd", "one sequence", (1, 2))],
        "no unserved successor": [
            ("rcd", "one sequence", (1, 2)), ("rcd, no lookup", "one sequence", (1, 2)),
        ],
        "exact: own row": [("exact", "one sequence", (1, 2))],
        "a new state without its table at the top": [
            ("exact", "three levels", (1, 2)), ("exact", "three levels, context first", (1, 2))
        ],
        "upper restaurants of i as they were": [
            ("exact", "four levels", (1, 2)), ("exact", "four levels, context first", (1, 2))
        ],
        "shared restaurants as they were": [("exact", "four levels, context first", (1, 2))],
        "shared counts as they were": [("exact", "three levels, context first", (1, 2))],
        "tables opened whatever follows": [
            ("exact", "three levels, five steps", (1, 2)),
            ("exact", "four levels, context first", (1, 2)),
        ],
        "the middle forgotten": [("exact", "four levels", (1, 2))],
        "no ghost candidate": [("exact", "three levels", (1, 2))],
        "the context of the step before": [("exact", "four levels", (1, 2))],
        "stays whatever follows": [("exact", "contexts, coins", (2, 3))],
        "two cases instead of three": [("exact", "coins", (1, 2))],
        "conditional without the coin": [("exact", "coins", (1, 2))],
        "tables opened by the prior alone": [("exact", "three levels, five steps", (1, 2))],
        "no penalty of the follower": [("exact", "coins, penalty", (1, 2))],
        "no penalty of the follower in a tree": [("exact", "contexts, coins, penalty", (1, 2))],
        "penalty of stays": [("exact", "coins, penalty", (1, 2))],
    },
    errors.BLOCKED: {
        "accept always": [("blocks", "one sequence", (1, 3)), ("beam", "one sequence", (1, 2))],
        "seat anew on rejection": [("blocks", "missing", (1, 2)), ("beam", "missing", (1, 2))],
        "the printed ratio": [("blocks", "one sequence", (1, 3))],
        "transitions at s_0": [
            ("blocks", "one sequence", (1, 3)), ("beam", "one sequence", (1, 2)),
        ],
        "ratio without proposals": [
            ("blocks", "one sequence", (1, 2)), ("beam", "one sequence", (1, 2)),
        ],
        "cut by the old path": [("blocks", "five steps", (0, 2))],
        "labels not counted": [
            ("blocks", "one sequence", (0, 3)), ("beam", "one sequence", (0, 3)),
        ],
        "labels without the successor's": [
            ("blocks", "one sequence", (0, 3)), ("beam", "one sequence", (0, 3)),
        ],
        "old path counted twice": [
            ("blocks", "one sequence", (1, 2)), ("beam", "one sequence", (1, 2)),
        ],
        "messages not counted": [("beam", "one sequence", (1, 3))],
        "threshold of the leaf alone": [
            ("beam, exact", "four levels", (1, 2)), ("beam", "four levels", (1, 2)),
        ],
        "threshold without the leaf": [
            ("beam, exact", "four levels, context first", (2, 3)),
            ("beam", "four levels, context first", (2, 3)),
        ],
        "pi not counted": [("beam", "three levels", (1, 3))],
        "a stay that does not count": [("blocks", THREE, (0, 2))],
        "a stay of a new state that is not drawn": [("blocks", THREE, (0, 2))],
        "a successor without its own coin": [("blocks", THREE, (0, 2))],
        "slices: a stay that passes none": [("beam, exact", THREE, (0, 1))],
        "slices: a stay that does not count": [("beam, exact", THREE, (0, 1))],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("module", "error"),
    [
        (module, error)
        for module, named in PLANTED.items()
        for error in named
        if error not in errors.OFTEN_REJECTED
    ],
)
def test_planted_errors_of_moves_are_caught(module, error):
    for trials, name, span in CAUGHT_AT[module][error]:
        assert KERNELS[trials][0] == module
        assert_error_is_caught(trials, ALL_MODELS[name], span=span, error=error)
