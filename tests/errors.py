"""Errors planted in the native code: edits of the package's own source, by module.

All errors of a module are compiled together, each behind a switch (`native.switched`): an
edit of whole statements becomes an ``if`` statement, one of an expression a conditional
expression; in other edits `PLANTED` says whether the error is on.
"""

from __future__ import annotations

import native
from native.build import Verbatim

STEPWISE = "samplers._stepwise_kernel"
BLOCKED = "samplers._blocked_kernel"
SPLIT_MERGE = "samplers._split_merge_kernel"
RUN_SPLIT_MERGE = "samplers._run_split_merge_kernel"
DIRECT = "samplers._direct_assignment_kernel"
STICKS = "samplers._stick_breaking_kernel"
MIXED = "samplers._mixed_kernel"

# Of Metropolis-Hastings moves, whatever proposes.
DECIDE = ("_rcd.hpp", "this->is_accepted(chain, q_old, q_new)")
MOVE = {
    "accept always": [(*DECIDE, "true")],
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
        ("_rcd.hpp", "r_old.value * q_new.value", "q_new.value"),
        (
            "_rcd.hpp",
            "r_new.value * q_old.value",
            "r_new.value * r_old.value * q_old.value",
        ),
    ],
    "transitions at s_0": [
        Verbatim(
            "_rcd.hpp",
            """            remove_draw(chain, t > start ? labels[t - 1 - start] : j, k, t);
        }
""",
            """            const Product factor = r_old;
            remove_draw(chain, t > start ? labels[t - 1 - start] : j, k, t);
            if (PLANTED) r_old = factor;
        }
        if (PLANTED) multiply_at_once(chain, start, stop, j, labels, follower, &r_old);
""",
        ),
        (
            "_rcd.hpp",
            "if (SKIHMM_LIKELY(follower >= 0))\n"
            "            remove_draw(chain, labels[stop - 1 - start], follower, stop);\n",
            """if (follower >= 0) {
            Product factor = r_old;
            remove_draw(chain, labels[stop - 1 - start], follower, stop);
            r_old = factor;
        }
""",
        ),
        Verbatim(
            "_rcd.hpp",
            "        for (int64_t t = start; t < stop; ++t) {\n"
            "            const int32_t k = labels[t - start];\n"
            "            add_draw(chain, j, k, t);\n",
            """        if (PLANTED) multiply_at_once(chain, start, stop, j, labels, follower, &r_new);
        for (int64_t t = start; t < stop; ++t) {
            const int32_t k = labels[t - start];
            const Product factor = r_new;
            add_draw(chain, j, k, t);
            if (PLANTED) r_new = factor;
""",
        ),
        (
            "_rcd.hpp",
            "if (SKIHMM_LIKELY(follower >= 0)) add_draw(chain, j, follower, stop);\n",
            """if (follower >= 0) {
            Product factor = r_new;
            add_draw(chain, j, follower, stop);
            r_new = factor;
        }
""",
        ),
        Verbatim(
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
# No error: many moves that would have been kept are undone.
OFTEN_REJECTED = {
    "rejected more often": [(*DECIDE, f"{DECIDE[1]} && uniform(chain.bits) < 0.5")]
}
STEP = {
    # The printed formula has the tables of the dish only.
    "the printed denominator": [
        Verbatim(
            "_rcd.hpp",
            "    // The draw of k after label j, made for step t.\n",
            """    static double printed(const HCRPTransitions &s, int32_t j, int32_t k) {
        const double m = s.base.dish_tables[k];
        return (s.count(j, k) + s.alpha * s.mass(k) / (m + s.base.gamma)) / s.total(j);
    }
""",
        ),
        (
            "_rcd.hpp",
            "        r_old.multiply(\n"
            "            chain.transitions->remove_draw(t, j, k, chain.bits, &chain.hints[t]));\n",
            "chain.transitions->remove_draw(t, j, k, chain.bits, &chain.hints[t]);\n"
            "r_old.multiply(printed(*chain.transitions, j, k));\n",
        ),
        (
            "_rcd.hpp",
            "r_new.multiply(chain.transitions->add_draw(t, j, k, chain.bits, &chain.hints[t]));",
            "r_new.multiply(printed(*chain.transitions, j, k));\n"
            "chain.transitions->add_draw(t, j, k, chain.bits, &chain.hints[t]);",
        ),
    ],
    "no unserved successor": [
        Verbatim(
            "_stepwise.hpp",
            "            if (mass_o_ != mass[o_] && o_ != x_) {\n"
            "                shift_o = (mass_o_ - mass[o_]) * w[o_];\n"
            "                mass[o_] = mass_o_;",
            "            const double own = PLANTED && is_ghost ? 0.0 : mass_o_;\n"
            "            if (own != mass[o_] && o_ != x_) {\n"
            "                shift_o = (own - mass[o_]) * w[o_];\n"
            "                mass[o_] = own;",
        ),
        Verbatim(
            "_stepwise.hpp",
            "fill_sparse(s, s.dense_row(i_), s.dense_column(o_));",
            "fill_sparse(s, s.dense_row(i_), s.dense_column(o_), view.is_ghost());",
        ),
        Verbatim(
            "_stepwise.hpp",
            "fill_sparse(s, row_.data(), column_.data());",
            "fill_sparse(s, row_.data(), column_.data(), view.is_ghost());",
        ),
        Verbatim(
            "_stepwise.hpp",
            "const Count *column_counts) {\n        double *w = w_.data(), *mass",
            "const Count *column_counts, bool is_ghost) {\n"
            "        double *w = w_.data(), *mass",
        ),
    ],
    "exact: own row": [
        (
            "_stepwise.hpp",
            "is_exact_ && i_ == x_ ? s.total(x_, 1) : view.total_x",
            "view.total_x",
        )
    ],
}
BLOCK = {
    "labels not counted": [
        (
            "_blocked.hpp",
            "q->multiply(labels_.seat(label, before));",
            "labels_.seat(label, before);",
        ),
        (
            "_blocked.hpp",
            "q->multiply(labels_.seat(path[l], before));",
            "labels_.seat(path[l], before);",
        ),
    ],
    "labels without the successor's": [
        ("_fresh_labels.hpp", "if (ghost >= 0) seat(ghost, -1);", "")
    ],
    "labels drawn otherwise": [
        (
            "_fresh_labels.hpp",
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
SPLITS = {
    "no reverse": [
        ("_split_merge.hpp", "if (!is_split_) score(chain, emission, f);", "")
    ],
    "no value": [
        (
            "_split_merge.hpp",
            "emission.remove(t, k, chain.bits, &ratio_.r_old);",
            "Product ignored;\nemission.remove(t, k, chain.bits, &ignored);",
        ),
        (
            "_split_merge.hpp",
            "emission.add(t, k, chain.bits, &ratio_.r_new);",
            "Product ignored;\nemission.add(t, k, chain.bits, &ignored);",
        ),
    ],
    "score too early": [
        ("_split_merge.hpp", "if (!is_split_) score(chain, emission, f);", ""),
        (
            "_split_merge.hpp",
            "remove(chain, emission, f);\n",
            "if (!is_split_) score(chain, emission, f);\nremove(chain, emission, f);\n",
        ),
    ],
    "seat anew on rejection": [
        (
            "_split_merge.hpp",
            "ratio_.restore(chain, emission);",
            """
            size_t n = moves_.size();
            for (size_t i = fragments_.size(); i-- > 0;) {
                const Fragment f = fragment(chain, i);
                path_.assign(f.stop - f.start, a_);
                for (size_t l = path_.size(); is_split_ && l-- > 0;)
                    if (moves_[--n]) path_[l] = c_;
                if (is_split_ || i < n_seated_)
                    ratio_.remove_block(chain, emission, f.start, f.stop,
                                        new_before(chain, f.start), path_.data(),
                                        new_after(chain, f.stop - 1));
                else
                    for (int64_t t = f.stop - 1; t >= f.start; --t)
                        emission.remove(t, a_, chain.bits, &ratio_.r_old);
            }
            take_second(chain, emission, new_);
            seat_second(chain, emission, old_);
            for (size_t i = 0; i < fragments_.size(); ++i) {
                const Fragment f = fragment(chain, i);
                ratio_.add_block(chain, emission, f.start, f.stop, chain.previous(f.start),
                                 &chain.states[f.start], chain.successor(f.stop - 1));
            }
            ratio_.keep(chain, emission);
""",
        )
    ],
    "t2 as it was": [
        (
            "_split_merge.hpp",
            "filter(chain, emission, f, j, o);",
            "filter(chain, emission, f, chain.previous(f.start), o);",
        )
    ],
    # Merges end with observations still to come, whose densities may exceed one.
    "the printed stop": [
        (
            "_split_merge.hpp",
            "            seat_values(chain, emission, fragment(chain, i));",
            ";",
        ),
        (
            "_split_merge.hpp",
            "seat_draws(chain, fragment(chain, n_seated_));",
            "seat_values(chain, emission, fragment(chain, n_seated_));\n"
            "seat_draws(chain, fragment(chain, n_seated_));",
        ),
    ],
}
# No errors.  Instead of the number of trials: the steps whose transitions merges have put
# back.
COUNT_STEPS = (
    "_split_merge.hpp",
    "        ++n;\n        n_accepted += run(chain, emission);\n",
    """n_accepted += run(chain, emission);
if (is_split_) return;
for (size_t i = 0; i < n_seated_; ++i) {
    const Fragment f = fragment(chain, i);
    n += f.stop - f.start;
}
""",
)
STEPS_COUNTED = {
    "steps counted": [COUNT_STEPS],
    "steps counted, no stop": [
        COUNT_STEPS,
        ("_split_merge.hpp", "if (!is_accepted()) return false;", ""),
    ],
}
RUNS, SCANS = "_run_split_merge.hpp", "_scanned_allocation.hpp"
ALL_SCAN = (RUNS, "uniform(chain.bits) < kScanned", "true")
RUN_SPLITS = {
    "no number of states": [
        (RUNS, "q.multiply(1.0 / (states_.size() - 1));", ""),
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
        (RUNS, "partner_weight(chain, two_[1], two_[0])", "0.0"),
        (
            RUNS,
            "weight + partner_weight(chain, b, a)",
            "partner_weight(chain, two_[0], two_[1])",
        ),
    ],
    "partner without its steps": [
        Verbatim(RUNS, "const Product forward = q_merge(", "Product forward = q_merge("),
        Verbatim(
            RUNS,
            "        std::fill(path_.begin(), path_.end(), two_[0]);\n",
            "        if (PLANTED)\n"
            "            forward = q_merge(partner_weight(chain, a, b)\n"
            "                              + partner_weight(chain, b, a));\n"
            "        std::fill(path_.begin(), path_.end(), two_[0]);\n",
        ),
    ],
    "no allocation": [(RUNS, "q.multiply_log(log_allocation);", "")],
    "no reverse": [
        (
            RUNS,
            "            take(chain, runs_[i]);\n"
            "            if (scans) continue;\n"
            "            look(chain, i);\n"
            "            q += allocation_.score(chain, path_of(runs_[i]));\n",
            "take(chain, runs_[i]);\n",
        )
    ],
    "score too early": [
        (
            RUNS,
            "            take(chain, runs_[i]);\n"
            "            if (scans) continue;\n"
            "            look(chain, i);\n"
            "            q += allocation_.score(chain, path_of(runs_[i]));\n",
            "if (!scans) look(chain, i);\n"
            "if (!scans) q += allocation_.score(chain, path_of(runs_[i]));\n"
            "take(chain, runs_[i]);\n",
        )
    ],
    "whole runs only": [
        (RUNS, "(u < kFilter)", "(false)"),
        (RUNS, "u < kFilter + kChange", "false"),
    ],
    "not the mixture": [
        (
            RUNS,
            "return add_in_logs(q, std::log(1.0 - kFilter - change) + whole_[first]);",
            "return whole_[first];",
        ),
        (
            RUNS,
            "return add_in_logs(q, std::log(kChange) + changes_[2 * (at - 1) + first]);",
            "return changes_[2 * (at - 1) + first];",
        ),
    ],
    "the first label is free": [(RUNS, "i == 0", "false")],
    # These are no errors.
    "scans": [ALL_SCAN],
    "scans of short blocks": [
        ALL_SCAN,
        (SCANS, "blocks_.back().size < kLongest", "blocks_.back().size < 2"),
    ],
    "scans: no allocation": [ALL_SCAN, (SCANS, "return q.log();", "return 0.0;")],
    "scans: the first one counts": [
        ALL_SCAN,
        (SCANS, "scan == kScans - 1", "scan == 0"),
    ],
    "scans: from the old labels": [ALL_SCAN, (SCANS, "draws || !is_last", "draws")],
    "scans: the first label is free": [
        ALL_SCAN,
        (SCANS, "block.at == blocks_[0].at", "false"),
    ],
}
DIRECT_ASSIGNMENT = {
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
        ("_direct_assignment.hpp", "at.i == at.x && at.o == at.x", "false")
    ],
}
STICK_BREAKING = {
    "blind births": [
        ("_stick_breaking_steps.hpp", "of_k + (j == i ? 1.0 : 0.0)", "of_k"),
        ("_stick_breaking_steps.hpp", "if (o >= 0) shapes_[o] += 1.0;", ""),
    ],
    "burials without the start": [
        Verbatim(
            "_stick_breaking_steps.hpp",
            "        into_[x].clear();\n        for (int32_t j = kStart;",
            "        into_[x].clear();\n        for (int32_t j = PLANTED ? kFirst : kStart;",
        )
    ],
    "births take nothing": [
        Verbatim(
            "_stick_breaking_steps.hpp",
            "        sticks_.break_off(chain, k);\n        into_[k]",
            """        const double before = sticks_.beta[kNew];
        sticks_.break_off(chain, k);
        if (PLANTED) sticks_.beta[kNew] = before;
        into_[k]""",
        ),
        ("_stick_breaking_steps.hpp", "row[kNew] *= rest;", ""),
    ],
    "no start": [
        (
            "_stick_breaking_steps.hpp",
            "            (*shapes)[line.ids[at]] += line.counts[at];",
            "            if (j != kStart) (*shapes)[line.ids[at]] += line.counts[at];",
        )
    ],
    "pieces: into all states": [
        (
            "_stick_breaking_steps.hpp",
            "restricted_.restrict_to(staying, pi_, used_, workers_.size());",
            "restricted_.restrict_to(chain.occupancy, pi_, used_, workers_.size());",
        ),
        # With this error or the next one states die here; the chain has to go on.
        Verbatim(
            "_stick_breaking_steps.hpp",
            "add_gained(&chain.occupancy);\n    }\n",
            """add_gained(&chain.occupancy);
        for (int32_t k = kFirst; k < n_slots_; ++k) {
            if (chain.occupancy[k] > 0 || pi_[k].empty()) continue;
            bury(chain, k);
            std::vector<int32_t> path = chain.states;
            chain.replace_path(&path, std::vector<int32_t>(chain.occupancy));
        }
    }
""",
        ),
    ],
    "pieces: from all states": [
        ("_restricted_steps.hpp", "if (staying_[x] == 0) continue;", "")
    ],
    "pieces: held steps chosen by their states": [
        (
            "_stick_breaking_steps.hpp",
            "step(chain, emission, t);",
            "if (chain.occupancy[chain.states[t]] > 1) step(chain, emission, t);",
        )
    ],
    "pieces: free ends": [
        Verbatim(
            "_restricted_steps.hpp",
            "*row = within_[i].data(),\n                         *out = o >= 0 ?",
            "*row = within_[i].data(),\n"
            "*out = o >= 0 && !(PLANTED && t + 1 == piece.held) ?",
        )
    ],
    "pieces: one stream for all": [
        ("_stick_breaking_steps.hpp", "streams[i]", "streams[0]")
    ],
    "pieces: one stream for all rows": [
        ("_stick_breaking_steps.hpp", "rows[i]", "rows[0]")
    ],
    "no sticks broken": [("_stick_breaking_paths.hpp", "(!pending.empty())", "(false)")],
    "beam: no start": [
        (
            "_stick_breaking_paths.hpp",
            "shapes[line.ids[at]] += line.counts[at];",
            "if (j != kStart) shapes[line.ids[at]] += line.counts[at];",
        )
    ],
    "beam: free ends": [("_sliced_paths.hpp", "chain.successor(stop - 1)", "-1")],
    "beam: old slices of held steps": [
        (
            "_sliced_paths.hpp",
            "t < piece.stop",
            "t < piece.held",
        )
    ],
    "beam: rests above slices": [
        (
            "_stick_breaking_paths.hpp",
            "*std::min_element(least_.begin(), least_.end())",
            "*std::max_element(least_.begin(), least_.end())",
        )
    ],
    "beam: one stream for all": [
        ("_stick_breaking_paths.hpp", "streams[piece]", "streams[0]")
    ],
    "beam: one stream for all rows": [
        ("_stick_breaking_paths.hpp", "row_streams_[j]", "row_streams_[0]")
    ],
    "beam: new rows miss broken sticks": [
        (
            "_stick_breaking_paths.hpp",
            "shapes[kNew] = s.alpha * first_rest_;",
            "shapes[kNew] = s.alpha * sticks_.beta[kNew];",
        )
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

# Of states with a probability of their own to stay.
ODDS = ("_transitions.hpp", "all * weight_of_row(j, change)")
SHARE = ("_transitions.hpp", "uniform(g) * p < stay(k)")
STEPWISE_COINS = {
    "stays are the draws that join a table": [(*SHARE, "count(k, k) > 0")],
    "stays are drawn by the prior coin": [
        (*SHARE, "uniform(g) * (coins_.kappa + coins_.omega) < coins_.kappa")
    ],
    "two cases instead of three": [
        (
            "_transitions.hpp",
            "return stay(i) * next(i, o, 1, 0, a);",
            "return stay(i) * next(i, o, 0, 1, a);",
        )
    ],
    "conditional without the coin": [
        (
            "_transitions.hpp",
            "if (!coins_.exist() || !after || i == kStart) return;",
            "return;",
        )
    ],
    "no ghost candidate": [
        ("_transitions.hpp", "if (view.is_ghost()) weights[o] = c * mass(kNew);", "")
    ],
}
BLOCKED_COINS = {
    "no coin in the denominator": [(*ODDS, "all")],
    "labels without the repeated ones": [
        ("_fresh_labels.hpp", "(before >= 0 && self_share_ > 0.0)", "(false)")
    ],
    "labels of a process that is not counted": [
        ("_blocked.hpp", "q->multiply(labels_.seat(path[l], before));", "")
    ],
    "neither column nor label of the ghost": [
        (
            "_blocked.hpp",
            "apart_ = s.has_self_weight() ? ghost_ : -1;",
            "apart_ = ghost_ = -1;",
        )
    ],
    "proposals without the coin": [
        Verbatim(
            "_blocked.hpp",
            "if (SKIHMM_UNLIKELY(s.has_self_weight())) {\n                g[j] += h_f *",
            "if (!PLANTED && s.has_self_weight()) {\n                g[j] += h_f *",
        )
    ],
    # Flags and counts of stays are not restored.
    "no rollback of stays": [("_transitions.hpp", "coins_.rollback();", "")],
    # A stay in the place of a draw, or the other way, is a change.
    "no commit of stays": [
        (
            "_transitions.hpp",
            "if (SKIHMM_UNLIKELY(!is_plain())) commit();\n        else Draws::commit_same();",
            "Draws::commit_same();",
        )
    ],
}
SPLIT_COINS = {
    "a table at (j, j) if there is none": [(*SHARE, "tables_of(k) > 0 && " + SHARE[1])]
}

# Of states with several stages.
COIN_OF_STEP = ("_transitions.hpp", "inner_prob(kind, k)")
# Of the penalty of changes of state.
PENALTY_OF_STEPS = {
    "no penalty of the follower": [
        (
            "_transitions.hpp",
            "(1.0 - w) * coins_.escape() * dish_weight(n, a) / Draws::total(i, draws)",
            "(1.0 - w) * dish_weight(n, a) / Draws::total(i, draws)",
        )
    ],
    "no penalty of the follower in a tree": [
        (
            "_transitions.hpp",
            "(k == o ? w * p : 0.0) + (1.0 - w) * coins_.escape() * and_o",
            "(k == o ? w * p : 0.0) + (1.0 - w) * and_o",
        )
    ],
    "penalty of stays": [
        (
            "_transitions.hpp",
            "k == kStart ? 0.0 : coins_.stay(k, draws()[k])",
            "k == kStart ? 0.0 : coins_.escape() * coins_.stay(k, draws()[k])",
        )
    ],
}
PENALTY_OF_BLOCKS = {
    "penalty of advances": [
        (
            *COIN_OF_STEP,
            "inner_prob(kind, j) * (kind == Coins::Kind::kStay ? 1.0 : coins_.escape())",
        )
    ],
}
DENSE = "_dense_blocked.hpp"
STAGES = {
    "stays and advances without the coin": [(*COIN_OF_STEP, "1.0")],
    "the prior coin": [
        (
            *COIN_OF_STEP,
            "(kind == Coins::Kind::kStay ? coins_.kappa : coins_.omega) "
            "/ (coins_.kappa + coins_.omega)",
        )
    ],
    "draws without the coin": [
        (
            "_transitions.hpp",
            "left * add_customer(t, j, k, g, hint)",
            "add_customer(t, j, k, g, hint)",
        )
    ],
    "any stage at the start": [
        (
            "_transitions.hpp",
            "!coins_.starts_inside || weights[kStart] == 0.0",
            "weights[kStart] == 0.0",
        )
    ],
    "labels of runs that are not counted": [
        (DENSE, "q->multiply(labels_.seat(label, -1));", "")
    ],
    "every step of a new run is named": [
        (
            DENSE,
            "label = path[l - 1];",
            "label = path[l - 1];\nq->multiply(labels_.seat(label, -1));",
        )
    ],
    "no rollback of stays in stages": [
        ("_coins.hpp", "stays_[change.k] -= change.last;", "")
    ],
    "no rollback of advances": [
        ("_coins.hpp", "advances_[change.k] -= change.last;", "")
    ],
    "no rollback of stages": [
        ("_coins.hpp", "stages_[change.last] = static_cast<uint8_t>(change.k);", "")
    ],
}
SPLIT_STAGES = {
    "the second run's coins left out": [
        (
            "_split_merge.hpp",
            "if (t > start) ratio_.add_draw(chain, k, k, t);",
            "if (t > start) chain.transitions->add_draw(t, k, k, chain.bits, "
            "&chain.hints[t]);",
        )
    ],
}
RUN_SPLIT_STAGES = {
    "allocation of runs left out": [
        (
            "_run_split_merge.hpp",
            "if (!has_changes) return q;",
            "if (!has_changes) return 0.0;",
        )
    ],
}

# Of single steps whose transitions depend on contexts.
STEPS_IN_CONTEXTS = {
    "a new state without its table at the top": [
        Verbatim(
            "_context_step.hpp",
            "const double last = bases_[at_.depth];",
            "const double last = bases_[PLANTED ? 0 : at_.depth];",
        ),
    ],
    "upper restaurants of i as they were": [
        (
            "_contexts.hpp",
            "d >= lowest && d <= depth && v == rows[d]",
            "d == depth && v == rows[d]",
        ),
    ],
    "shared restaurants as they were": [
        (
            "_contexts.hpp",
            "after && d >= depth - h && d <= depth && rows[d] == v",
            "0",
        )
    ],
    "shared counts as they were": [("_contexts.hpp", "count(1, prefix, draw.k)", "0")],
    "tables opened whatever follows": [
        (
            "_contexts.hpp",
            "for (int32_t h = 1; h <= at.depth; ++h) sum += parts_[h];",
            "set_parts(at, next, i, k, -1, stay);\n"
            "for (int32_t h = 1; h <= at.depth; ++h) sum += parts_[h];",
        ),
    ],
}
SLICES_IN_CONTEXTS = {
    "threshold of the leaf alone": [
        Verbatim(
            "_context_blocked.hpp",
            "uniform(chain.bits) * step.pi);",
            "uniform(chain.bits)\n"
            "    * (PLANTED ? tree_->join_prob(step.at, j, chain.states[start_ + l]) : step.pi));",
        ),
    ],
    "threshold without the leaf": [
        Verbatim(
            "_context_blocked.hpp",
            "uniform(chain.bits)\n",
            "uniform(chain.bits) * (PLANTED ? 1.0 - tree_->join_prob(step.at, j,\n"
            "    chain.states[start_ + l]) / step.pi : 1.0)\n",
        ),
    ],
}

# Of blocks whose transitions depend on contexts, with coins.
BLOCKS_IN_CONTEXTS = {
    "a stay that does not count": [
        ("_context_blocked.hpp", "(j == k ? stay_weight(l, k) : 0.0)", "0.0")
    ],
    "a stay of a new state that is not drawn": [
        (
            "_context_blocked.hpp",
            "path[l] = labels_.draw(chain.bits, before);",
            "path[l] = labels_.draw(chain.bits, -1);",
        )
    ],
    "a successor without its own coin": [
        ("_context_blocked.hpp", "is_served(k) || k == apart_", "is_served(k)")
    ],
    "slices: a stay that passes none": [
        ("_context_blocked.hpp", "if (passes_by_stay(l, k)) visit(0, k, true);", "")
    ],
    "slices: a stay that does not count": [
        ("_context_blocked.hpp", "has_coins_ && j == k", "false")
    ],
}

# Of every tree of restaurants; for kernels and statistics that are compiled apart.
TOP = (
    "_contexts.hpp",
    "    void set(Deep *deep) { deep_ = deep; }\n",
    "    void set(Deep *deep) { deep_ = deep; }\n"
    "    double top(int32_t k) const {\n"
    "        return first_->mass(k) / (first_->base.n_tables + first_->base.gamma);\n"
    "    }\n",
)
TREE = {
    "a new table from the top": [
        TOP,
        (
            "_seating.hpp",
            "            const double u = uniform(g) * weight;\n",
            "            double fresh = 0.0;\n"
            "            if constexpr (Base::kIsRoot) fresh = weight - n;\n"
            "            else fresh = alpha * base.top(dish);\n"
            "            const double u = uniform(g) * (n + fresh);\n",
        ),
    ],
    "the middle skipped": [
        TOP,
        (
            "_seating.hpp",
            "else return alpha * base.prob(parents_[row], dish);",
            "else return alpha * base.top(dish);",
        ),
        (
            "_seating.hpp",
            "else return alpha * base.prob(parents_[cell.row], cell.dish, "
            "&links_[c].above);",
            "else return alpha * base.top(cell.dish);",
        ),
    ],
}

# No error.  Kernels for any emission serve all of them; those for symbols take a third of
# the time of compiling.  Only step-wise ones have formulas of their own for symbols.
ANY_EMISSION = {
    "kernels for any emission only": [
        Verbatim(
            "_emission.hpp",
            "    if (SeatingEmission *symbols = emission.symbols()) return make(*symbols);\n",
            "",
        )
    ]
}

MIXTURE = {
    "sweeps chosen by the labels": [
        (
            "_mixed_sweeps.hpp",
            "uniform(chain.bits) < share_",
            "chain.states[0] == chain.states[1]",
        )
    ],
}

MODULES = {
    STEPWISE: MOVE | STEP | STEPWISE_COINS | OFTEN_REJECTED,
    BLOCKED: ANY_EMISSION | MOVE | BLOCK | BLOCKED_COINS | STAGES | OFTEN_REJECTED,
    SPLIT_MERGE: ANY_EMISSION | SPLITS | SPLIT_COINS | SPLIT_STAGES | STEPS_COUNTED,
    RUN_SPLIT_MERGE: RUN_SPLITS | RUN_SPLIT_STAGES,
    DIRECT: ANY_EMISSION | DIRECT_ASSIGNMENT,
    STICKS: ANY_EMISSION | STICK_BREAKING,
    MIXED: MIXTURE,
    "native.concentrations": CONCENTRATION,
    "emissions._categorical_stats": CATEGORICAL,
}


def edited(module, error):
    """Compile a module with its errors, and turn on one of them (None: none)."""
    return native.switched(module, MODULES[module], error)


def maker(kernel, error):
    """Compile an error and return a function that builds a kernel with it.

    A kernel is the name of its module and a function that builds it from the module.
    """
    module, make = kernel
    compiled = edited(module, error)
    return lambda state: make(compiled)
