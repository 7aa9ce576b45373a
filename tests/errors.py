"""Errors planted in the native code: edits of the package's source, by module.

Comments in the source, ``// planted: name``, name the places of edits.  All errors of a
module are compiled together, each behind a switch (`native.switched`); in edits that are
`Verbatim` `PLANTED` says whether the error is on.
"""

from __future__ import annotations

import native
import pytest
from native.build import Verbatim

# Parts of a module: what it declares of one header, and the classes that follow.
STEPWISE = "samplers._kernels:_stepwise.hpp"
BLOCKED = "samplers._kernels:_tree_blocks.hpp"
SPLIT_MERGE = "samplers._kernels:_split_merge.hpp"
RUN_SPLIT_MERGE = "samplers._kernels:_run_split_merge.hpp"
DIRECT = "samplers._kernels:_direct_assignment.hpp"
STICKS = "samplers._kernels:_stick_breaking_steps.hpp"
MIXED = "samplers._kernels:_mixed_sweeps.hpp"
CONJUGATE = "emissions._conjugate_stats"

# Errors of Metropolis-Hastings moves, whatever proposes.
MOVE = {
    "accept always": [("decision on a block", "const bool accepted = true;")],
    "seat anew on rejection": [
        (
            "rejected block",
            """const int32_t j = chain.previous(start), o = chain.successor(stop - 1);
            this->remove_block(chain, emission, start, stop, j, path, o);
            this->add_block(chain, emission, start, stop, j, &chain.states[start], o);
            this->keep(chain, emission);""",
        )
    ],
    "the printed ratio": [
        Verbatim(
            "the ratio",
            """PLACE
            if (PLANTED) sides = {q_new.value, r_new.value * r_old.value * q_old.value};""",
        )
    ],
    "transitions at s_0": [
        Verbatim(
            "removed draw of a block",
            """const Product factor = r_old;
            PLACE
            if (PLANTED) r_old = factor;
            if (PLANTED && t == start)
                multiply_at_once(chain, start, stop, j, labels, follower, &r_old);""",
        ),
        (
            "removed draw of the follower",
            """const Product factor = r_old;
            PLACE
            r_old = factor;""",
        ),
        Verbatim(
            "added draw of a block",
            """if (PLANTED && t == start)
                multiply_at_once(chain, start, stop, j, labels, follower, &r_new);
            const Product factor = r_new;
            PLACE
            if (PLANTED) r_new = factor;""",
        ),
        (
            "added draw of the follower",
            """const Product factor = r_new;
            PLACE
            r_new = factor;""",
        ),
        Verbatim(
            "sides of the ratio",
            """static void multiply_at_once(const Chain &chain, int64_t start, int64_t stop,
                                 int32_t j, const int32_t *labels, int32_t follower,
                                 Product *r) {
        for (int64_t t = start; t < stop; ++t) {
            r->multiply(chain.transitions->prob(j, labels[t - start]));
            j = labels[t - start];
        }
        if (follower >= 0) r->multiply(chain.transitions->prob(j, follower));
    }
    PLACE""",
        ),
    ],
}
# No error: many moves that would have been kept are undone.
OFTEN_REJECTED = {
    "rejected more often": [
        (
            "decision on a block",
            "const bool accepted = this->is_accepted(chain, q_old, q_new)\n"
            "    && uniform(chain.bits) < 0.5;",
        )
    ]
}
STEP = {
    # The printed formula has the tables of the dish only.
    "the printed denominator": [
        Verbatim(
            "removal of a draw",
            """static double printed(const HCRPTransitions &s, int32_t j, int32_t k) {
        const double m = s.base.dish_tables[k];
        return (s.count(j, k) + s.alpha * s.mass(k) / (m + s.base.gamma)) / s.total(j);
    }
    PLACE""",
        ),
        (
            "factor of a removed draw",
            "chain.transitions->remove_draw(t, j, k, chain.bits, &chain.hints[t]);\n"
            "r_old.multiply(printed(*chain.transitions, j, k));",
        ),
        (
            "factor of an added draw",
            "r_new.multiply(printed(*chain.transitions, j, k));\n"
            "chain.transitions->add_draw(t, j, k, chain.bits, &chain.hints[t]);",
        ),
    ],
    "no unserved successor": [
        Verbatim(
            "mass of the successor",
            "const double own = PLANTED && is_ghost ? 0.0 : mass_o_;\n"
            "if (own != mass[o_] && o_ != x_) {",
        ),
        Verbatim("change of the successor", "shift_o = (own - mass[o_]) * w[o_];"),
        Verbatim("new mass of the successor", "mass[o_] = own;"),
        Verbatim(
            "sparse weights by dense counts",
            "if (has_lookup_) fill_sparse(s, s.dense.row(i_), s.dense.column(o_), "
            "view.is_ghost());",
        ),
        Verbatim(
            "sparse weights by lists",
            "fill_sparse(s, row_.data(), column_.data(), view.is_ghost());",
        ),
        Verbatim(
            "sparse weights",
            "SKIHMM_INLINE void fill_sparse(const Transitions &s, const Count *row_counts,\n"
            "    const Count *column_counts, bool is_ghost) {",
        ),
    ],
    "exact: own row": [("own row", "by_x_ = view.total_x;")],
}
BLOCK = {
    "ratio without proposals": [
        Verbatim("the ratio", "PLACE\nif (PLANTED) sides = {r_old.value, r_new.value};")
    ],
    "cut by the old path": [
        ("_blocked.hpp", "masses_.n_live", "masses_.n_live + 9 * (steps_[l].bar == kNew)")
    ],
    "labels not counted": [
        ("label of the old path", "labels_.seat(label, before);"),
        ("seat of a label", "labels_.seat(path[l], before);"),
    ],
    "labels without the successor's": [("label of the successor", "")],
    "labels drawn otherwise": [("number of a label", "double u = uniform(g) * n_;")],
    "old path counted twice": [
        (
            "factor of the old path",
            "q->multiply(2.0 * path_factor(l, step.bar, k, steps_[l + 1].n) / step.total);",
        )
    ],
    "messages not counted": [
        ("factor of a step", "if (kSliced) return k < 0 ? f : view_.link(l + 1, j, k, n);")
    ],
}
SPLITS = {
    "no reverse": [("score of a merge", "")],
    "no value": [
        ("removed observation", "Product ignored;\nemission.remove(t, k, chain.bits, &ignored);"),
        ("added observation", "Product ignored;\nemission.add(t, k, chain.bits, &ignored);"),
    ],
    "score too early": [
        ("score of a merge", ""),
        ("removed fragment", "if (!is_split_) score(chain, emission, f);\nPLACE"),
    ],
    "seat anew on rejection": [
        (
            "rejected trial",
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
        ("label before a fragment", "filter(chain, emission, f, chain.previous(f.start), o);")
    ],
    # Merges end with observations still to come, whose densities may exceed one.
    "the printed stop": [
        ("observations of a merge", ";"),
        ("draws of a merge", "seat_values(chain, emission, fragment(chain, n_seated_));\nPLACE"),
    ],
}
# No errors.  Instead of the number of trials: the steps whose transitions merges have put
# back.
COUNT_STEPS = (
    "result of a trial",
    """PLACE
--n;
if (is_split_) return;
for (size_t i = 0; i < n_seated_; ++i) {
    const Fragment f = fragment(chain, i);
    n += f.stop - f.start;
}""",
)
STEPS_COUNTED = {
    "steps counted": [COUNT_STEPS],
    "steps counted, no stop": [COUNT_STEPS, ("early stop", ";")],
}
ALL_SCAN = ("share of scans", "return ScannedAllocation::allows(chain, steps_.size());")
RUN_SPLITS = {
    "no number of states": [("state to split", ""), ("states to merge", "q.multiply(weight);")],
    "no partner": [("states to merge", "q.multiply(1.0 / states_.size());")],
    "one order of the pair": [
        ("weight of a split", "const double weight = partner_weight(chain, two_[0], two_[1]);"),
        (
            "weight of a merge",
            "const Product forward = q_merge(partner_weight(chain, two_[0], two_[1]));",
        ),
    ],
    "partner without its steps": [
        Verbatim("weight of a merge", "PLACE\nProduct without;"),
        (
            "label of a merge",
            "without = q_merge(partner_weight(chain, a, b) + partner_weight(chain, b, a));\nPLACE",
        ),
        ("decision on a merge", "return decide(chain, q_split(q), without);"),
    ],
    "no allocation": [("factor of the allocation", "")],
    "no reverse": [
        ("allocation of a merge", "continue;"),
        ("allocation of a merge by marginals", ""),
    ],
    "score too early": [
        (
            "run to merge",
            "if (!scans) read_run(chain, i);\n"
            "if (!scans && !has_marginals_) q += score(chain, i);\nPLACE",
        ),
        ("allocation of a merge", "continue;"),
    ],
    "whole runs only": [
        ("draw by the filter", "if (false) {"),
        ("draw of a change", "if (length() < 0) {"),
    ],
    "not the mixture": [
        ("share of whole runs", "return whole_[first];"),
        ("share of changes", "return changes_[2 * (at - 1) + first];"),
    ],
    "the first label is free": [
        (
            "first run",
            "allocation(i).read_run(chain, runs_[i].start, runs_[i].stop, two_, false,\n"
            "                   path_of(runs_[i]));",
        )
    ],
    # These are no errors.
    "scans": [ALL_SCAN],
    "scans of short blocks": [
        ALL_SCAN,
        (
            "longest block of a scan",
            "if (goes_on && blocks_.back().size < 2) ++blocks_.back().size;",
        ),
    ],
    "scans: no allocation": [ALL_SCAN, ("factor of scans", "return 0.0;")],
    "scans: the first one counts": [
        ALL_SCAN,
        ("scan that counts", "const bool is_last = scan == 0;"),
    ],
    "scans: from the old labels": [ALL_SCAN, ("drawn scans", "if (draws) {")],
    "scans: the first label is free": [
        ALL_SCAN,
        Verbatim("first block of a scan", "PLANTED ? false : PLACE"),
    ],
}
DIRECT_ASSIGNMENT = {
    "own transition not counted": [
        ("own transition", "if (k == at.i) size -= 1.0;"),
        ("labels without a correction", ""),
    ],
    "one of two equal transitions": [("two equal transitions", "const bool is_loop = false;")],
}
STICK_BREAKING = {
    "blind births": [
        ("row of a birth", "row[k] = row[kNew] * draw_beta(chain.bits, of_k, of_rest, &rest);"),
        ("successor of a birth", ""),
    ],
    "burials without the start": [
        Verbatim(
            "rows of a burial", "for (int32_t j = PLANTED ? kFirst : kStart; j < n_slots_; ++j) {"
        )
    ],
    "births take nothing": [
        (
            "stick of a birth",
            "const double before = sticks_.beta[kNew];\nPLACE\nsticks_.beta[kNew] = before;",
        ),
        ("rest of a birth", ""),
    ],
    "no start": [("counts of a row", "if (j != kStart) PLACE")],
    "pieces: into all states": [
        (
            "states of pieces",
            "restricted_.restrict_to(chain.occupancy, pi_, used_, workers_.size());",
        ),
        # With this error or the next one states die here; the chain has to go on.
        Verbatim(
            "gained steps",
            """PLACE
        for (int32_t k = kFirst; k < n_slots_; ++k) {
            if (chain.occupancy[k] > 0 || pi_[k].empty()) continue;
            bury(chain, k);
            used_.erase(std::remove(used_.begin(), used_.end(), k), used_.end());
            std::vector<int32_t> path = chain.states;
            chain.replace_path(&path, std::vector<int32_t>(chain.occupancy));
        }""",
        ),
    ],
    "pieces: from all states": [("states that may empty", "")],
    "pieces: held steps chosen by their states": [
        ("held step", "if (chain.occupancy[chain.states[t]] > 1) PLACE")
    ],
    "pieces: free ends": [
        Verbatim("ends of pieces", "PLACE\nif (PLANTED && t + 1 == piece.held) out = ones_.data();")
    ],
    "pieces: one stream for all": [("streams of pieces", "TaskStream stream = streams[0];")],
    "pieces: one stream for all rows": [("streams of rows", "TaskStream stream = rows[0];")],
    "no sticks broken": [("sticks to break", "while (false) {")],
    "beam: no start": [("counts of the beam", "if (j != kStart) PLACE")],
    "beam: free ends": [("end of a piece", "const int32_t follower = -1;")],
    "beam: old slices of held steps": [
        Verbatim(
            "new slices",
            "for (int64_t t = piece.start; t < (PLANTED ? piece.held : piece.stop); ++t) {",
        )
    ],
    "beam: rests above slices": [
        (
            "lowest slice",
            "low_ = std::max(*std::max_element(least_.begin(), least_.end()), 1e-300);",
        )
    ],
    "beam: one stream for all": [
        ("streams of pieces of the beam", "TaskStream stream = streams[0];")
    ],
    "beam: one stream for all rows": [
        ("streams of rows of the beam", "row.stream = row_streams_[0];")
    ],
    "beam: new rows miss broken sticks": [
        ("rest of a row", "shapes[kNew] = s.alpha * sticks_.beta[kNew];")
    ],
}
CONCENTRATION = {
    "alpha without the start": [
        (
            "customers of alpha",
            "for (size_t j = 0; j < s.row_customers.size(); ++j)\n"
            "            if (j != 1) count_restaurant(s.alpha, s.row_customers[j], g);",
        )
    ],
}
CATEGORICAL = {
    "gamma from symbols, not tables": [("tables of gamma", "shape_ += table == 0;")],
}
# Errors of the statistics of all numbers.
MARGINALS = {
    "removed marginals": [("marginal of removed rows", "return lp + 0.1;")],
}

# Errors of each state's probability to stay.
SHARE = "if (j == k && {}) coins_.toggle(t, k);"
STEPWISE_COINS = {
    "stays are the draws that join a table": [("share of stays", SHARE.format("count(k, k) > 0"))],
    "stays are drawn by the prior coin": [
        (
            "share of stays",
            SHARE.format(
                "uniform(g) * (coins_.prior.kappa + coins_.prior.omega) < coins_.prior.kappa"
            ),
        )
    ],
    "no ghost candidate": [("successor without a table", "")],
}
STAYS_OF_STEPS = {
    "two cases instead of three": [
        (
            "two stays",
            "if (o < 0) return stay(t, i);\n"
            "return stay(t, i) / leave(t, i)\n"
            "       * plain_part(t, i, o, Restaurants::total(i), new_table(o));",
        )
    ],
    "conditional without the coin": [("stays of a step", "return;")],
}
BLOCKED_COINS = {
    "no coin before a draw": [("probability with a stay", "return (j == k ? stayed : 0.0) + p;")],
    "labels without the repeated ones": [("repeated labels", "if (false) {")],
    "labels of a process that is not counted": [("seat of a label", "")],
    "neither column nor label of the ghost": [
        ("column of the successor", "masses_.apart = ghost_ = -1;")
    ],
    "proposals without the coin": [("stay in a message", "")],
    # Flags and counts of stays are not restored.
    "no rollback of stays": [("rollback of stays", "")],
    # A stay in the place of a draw, or the other way, is a change.
    "no commit of stays": [("commit of the same", "if (false) commit();")],
}
SPLIT_COINS = {
    "a table at (j, j) if there is none": [
        ("share of stays", SHARE.format("tables_of(k) > 0 && uniform(g) * p < stay(t, k)"))
    ]
}

# Errors of the penalty of changes of state.
PENALTY_OF_STEPS = {
    "no penalty of the follower": [
        ("follower of a step", "const double p = (i == o ? again : 0.0) + left * drawn;")
    ],
    "no penalty of the follower in a tree": [
        ("follower in a tree", "return leave(t, i) * ((k == o ? again * p : 0.0) + left * and_o);")
    ],
    "penalty of stays": [
        (
            "stay probability",
            "if (k != kStart) {\n"
            "    coins_.look(t, k, draws()[k], stay, leave);\n"
            "    *stay *= coins_.escape();\n}",
        )
    ],
}

# Errors of single steps whose transitions depend on contexts.
STEPS_IN_CONTEXTS = {
    "the middle forgotten": [("customer of a middle restaurant", "const int32_t came = 0;")],
    "no ghost candidate": [
        Verbatim(
            "successor without a table in a tree",
            "if (PLANTED && is_ghost) weights.change(o, 0.0);\nelse PLACE",
        )
    ],
    "the context of the step before": [
        (
            "contexts of a step",
            "step_.open(tree, tree.place(t_), tree.place(t_), i_, o_, is_exact_);",
        ),
        ("weights in a tree", "step_.open(tree, at, at, i_, o_, is_exact_);"),
    ],
    "stays whatever follows": [
        (
            "stay or draw",
            "return draw_part(t, i, i, -1, tree_->join_prob(at, i, i),\n"
            "                 tree_->joining_part(at, next, i, i, o));",
        )
    ],
    "tables opened by the prior alone": [
        ("parts of restaurants", "set_parts(at, next, i, k, -1, stay);")
    ],
    "a new state without its table at the top": [
        ("base of the leaf", "const double last = bases_[0];")
    ],
    "upper restaurants of i as they were": [
        ("customer of a middle restaurant", "const int32_t came = d == depth && v == rows[d];")
    ],
    "shared restaurants as they were": [
        ("customer of a shared restaurant", "const int32_t came = 0;")
    ],
    "shared counts as they were": [
        (
            "counts of a shared restaurant",
            "shared_[static_cast<size_t>(prefix) * padded_ + draw.k] = 0;",
        )
    ],
    "tables opened whatever follows": [
        ("sum of parts", "set_parts(at, next, i, k, -1, stay);\nPLACE")
    ],
}
LEAF = "s.contexts().join_prob(s.contexts().place(start_ + l), j, label)"
SLICES_IN_CONTEXTS = {
    "threshold of the leaf alone": [("bound of a slice", f"const double most = {LEAF};")],
    "threshold without the leaf": [
        ("bound of a slice", f"const double most = view_.link(l, j, k, step.n) - {LEAF};"),
    ],
}

# Errors of blocks whose transitions depend on contexts, with coins.
BLOCKS_IN_CONTEXTS = {
    "pi not counted": [
        (
            "factor of a path",
            "q->multiply((kSliced ? message(l)[j] : path_factor(l, j, k, n)) / sum);",
        )
    ],
    "a stay that does not count": [("stay of a pair", "double sum = 0.0;")],
    "a stay of a new state that is not drawn": [
        ("label of a path", "path[l] = labels_.draw(chain.bits, -1);")
    ],
    "a successor without its own coin": [
        ("column of a label", "return s.is_served(k) ? k : kNew;")
    ],
    "slices: a stay that passes none": [("slice passed by a stay", "")],
    "slices: a stay that does not count": [("stay of a slice", "return drawn;")],
}

# Errors of every tree of restaurants; for kernels and statistics compiled apart.
TOP = ("parent of a level", "double top(int32_t k) const { return prob_at(*root, k); }\nPLACE")
TREE = {
    "a new table from the top": [
        TOP,
        (
            "number of a table",
            "double fresh = 0.0;\n"
            "if constexpr (Base::kIsRoot) fresh = weight - n;\n"
            "else fresh = alpha * base.top(dish);\n"
            "const double u = uniform(g) * (n + fresh);",
        ),
    ],
    "the middle skipped": [
        TOP,
        ("new table of a dish", "return alpha * base.top(dish);"),
        ("new table of a cell", "return alpha * base.top(cell.dish);"),
    ],
}
# No error.  Kernels for any emission serve all of them; those for symbols take a third of
# the time of compiling.  Only step-wise ones have other formulas for symbols.
MIXTURE = {
    "sweeps chosen by the labels": [
        (
            "choice of a sweep",
            "return (chain.states[0] == chain.states[1] ? other_ : usual_)->sweep(chain);",
        )
    ],
}

# Errors of regressions with Polya-Gamma weights.
AT_ZERO = "draw_polya_gamma(g, term.b, 0.0);"
REGRESSIONS = {
    "kappa is the value": [("kappa", "term->kappa = value;")],
    "weights of a known zero": [("weight of a row", f"y[n_columns + n_inputs + i] = {AT_ZERO}")],
    "particles: weights of a known zero": [("weight of a particle", f"*omega = {AT_ZERO}")],
    "no rest of a weight": [("rest of a weight", "")],
    "dispersion given the weights": [
        Verbatim("rows of a dispersion", "PLACE\nstd::vector<double> weights;"),
        Verbatim(
            "row of a dispersion",
            "PLACE\nif (PLANTED) weights.push_back(y[n_columns + n_inputs + i]);",
        ),
        Verbatim(
            "likelihood of a dispersion",
            """if (PLANTED) {
                    for (size_t l = 0; l < counts.size(); ++l) {
                        const double psi = std::log(means[l]) + u;
                        lp += 0.5 * (counts[l] - r) * psi - 0.5 * weights[l] * psi * psi
                              - (counts[l] + r) * std::log(2.0);
                    }
                } else PLACE""",
        ),
    ],
    "scores with a weight": [
        Verbatim(
            "weight of a new row",
            """if (PLANTED && std::isnan(term.omega)) {
                term.omega = polya_gamma_mean(term.b, term.shift);
                term.kappa -= term.omega * term.shift;
            }
            PLACE""",
        )
    ],
    "kappa without the offset": [("offset in kappa", "")],
    "precision of one state": [
        (
            "draw of a precision",
            "v = draw_bounded_gamma(g, v, 1.0 + 0.5 * (to - from),\n"
            "                       0.1 / unit_[i] + 0.5 * squares, kLeastHyper, kMostHyper);",
        )
    ],
    "a power of two in additions only": [
        ("log of an added row", "s[kLog] += log_p - term.b * std::log(2.0);")
    ],
    "missing values have weights": [
        (
            "missing value",
            "if (std::isnan(value) && std::isnan(y[n_columns + n_inputs + i])) return false;",
        ),
        ("kappa", "term->kappa = std::isnan(value) ? 0.0 : value - 0.5 * term->b;"),
    ],
}

# Errors of Student's t noise.
STUDENT = {
    "a row times its weight": [("weighted row", "const double root = *y;")],
    "a new row of weight one": [
        (
            "weight of a new row with tails",
            "lp = power[1] - 0.5 * n_columns * log_of(leverage)\n"
            "     - power[0] * log1p_of(total / leverage);",
        )
    ],
    "weights of one column fewer": [
        (
            "weight given length",
            "return random_standard_gamma(g, shape_ - 0.5) / (0.5 * (dof_ + q));",
        )
    ],
    "degrees of freedom of normal noise": [
        Verbatim(
            "likelihood of the degrees of freedom",
            "if (PLANTED) return 2.0 * u - 0.1 * dof;\nPLACE",
        )
    ],
    "degrees of freedom of one row fewer": [
        ("rows of the degrees of freedom", "const double n = static_cast<double>(q.size()) - 1.0;")
    ],
    "particles: weights of the prior": [
        (
            "weight of a particle with tails",
            "y[data_width()] = noise_.draw_weight(1.0, 0.0, s[growth_at_ - 2], g);",
        )
    ],
}

# Errors of the numbers of subjects.
SUBJECTS = {
    "offsets less their mean": [
        (
            "sum of offsets",
            """double sum = 0.0;
            for (const Moments &other : sums) sum += other.linear[c];
            *offset(u, c) = sums[u].linear[c] - sum / n_subjects_;""",
        )
    ],
    "a degree of freedom too many": [
        ("degrees of freedom of subjects", "const double shape = 0.5 * (n_subjects_ + 1);")
    ],
    "offsets without a prior": [("prior of offsets", "P[at] += 1e-9;")],
    "slopes of the values alone": [
        ("slope of an offset", "if (j < d) slopes[j] += coefficients[1 + j];")
    ],
    "earlier rows of no subject": [
        ("row of a subject", "out[c] = begin == 0 ? y[c] - b[c] : y[c];")
    ],
    "a scale without its jacobian": [
        ("density of a scale", "return -0.5 * A * r * r - B[u] * r - 0.5 * l * l / H;")
    ],
    "scales without other columns": [("other column of a scale", "B[u] += 0.0;")],
    "too many values of a scale": [("values of a scale", "of.n[c] += 1.5;")],
    "scales without filled entries": [("filled entry beside a scale", "sums[u].L[a] += 0.0;")],
}

# Errors of the offsets of subjects on linear predictors.
LOG_SUBJECTS = {
    "a degree of freedom too many": SUBJECTS["a degree of freedom too many"],
    "variances of the first column": [
        ("number of a variance", "const double value = numbers[u * d];")
    ],
    "log offsets without a prior": [("prior of log offsets", "const double precision = 1e-9;")],
    "offsets without the ratio of proposals": [("ratio of an offset", "const double ratio = 0.0;")],
    "offset beside its own predictor": [("predictor of an offset", "every_.psi[at++] = row.psi;")],
}

# Errors of the particles of new subjects.
OFFSET_PARTICLES = {
    "precision as before, by column": [("precision of offsets by column", "P[i] += 0.0;")],
    "precision as before": [("precision of offsets", "P[x] += 0.0;")],
    "lags as they are": [("lags of a new subject", "if (j < d) G[j % d] += c[1 + j];")],
    "variance of a subject of the fit": [("variance of a new subject", "return numbers_[c];")],
    "offset of any particle": [
        ("particle of an offset", "const int32_t i = static_cast<int32_t>(below(g, n_));")
    ],
    "a new state without its weight": [
        ("weight of a new state", "if (family.n_weights > 0) weight_[kNew] = 1.0;")
    ],
}

# Draws of what coins with inputs have, and what these keep.
INPUT_COINS = {
    "weights at zero": [("weight of a step", "omega_[t] = PolyaGammaOfOne::draw(g, 0.0);")],
    "weights never drawn": [("weight of a step", ";")],
    "scales without coefficients": [("squares of an input", ";")],
    "intercepts of zero": [("row of an intercept", "const double value = 0.0;")],
}
# The joint probability without the stays.
SHARES = {
    "no penalty in the share of stays": [
        ("share of given stays", "left *= Restaurants::prob(k, k);")
    ]
}
KEPT_COINS = {"no rollback of coins": [("rollback of coins", ";")]}

MODULES = {
    STEPWISE: STEPWISE_COINS | KEPT_COINS,
    BLOCKED: MOVE | BLOCK | BLOCKED_COINS,
    SPLIT_MERGE: SPLITS | SPLIT_COINS | STEPS_COUNTED,
    RUN_SPLIT_MERGE: RUN_SPLITS,
    DIRECT: DIRECT_ASSIGNMENT,
    STICKS: STICK_BREAKING,
    MIXED: MIXTURE,
    "native.concentrations": CONCENTRATION | INPUT_COINS | SHARES,
    "emissions._categorical_stats": CATEGORICAL,
    CONJUGATE: MARGINALS | REGRESSIONS | STUDENT | SUBJECTS | LOG_SUBJECTS | OFFSET_PARTICLES,
}


def edited(module, error):
    """Compile a module with the errors of all its parts, and turn on one of them (None: none).

    Compiling the parts of a module one by one takes three times as long.
    """
    whole = module.partition(":")[0]
    table = {
        f"{part}, {name}": edits
        for part, errors in MODULES.items()
        if part.partition(":")[0] == whole
        for name, edits in errors.items()
    }
    return native.switched(whole, table, error and f"{module}, {error}")


def maker(kernel, error):
    """Compile an error and return a function that builds a kernel with it.

    A kernel is the name of its module and a function that builds it from the module.
    """
    module, make = kernel
    compiled = edited(module, error)
    return lambda state: make(compiled)


def assert_noticed(monkeypatch, module, error, places, check, *args):
    """Compile an error, put it in the places of the package's functions; a check fails.

    Places are pairs of a Python module and the name of a function that it has imported.
    """
    library = edited(module, error)
    for place, name in places:
        monkeypatch.setattr(place, name, getattr(library, name))
    with pytest.raises(AssertionError):
        check(*args)
