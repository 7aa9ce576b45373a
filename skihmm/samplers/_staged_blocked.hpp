// Blocked Gibbs proposals (arXiv 1106.0474, Section 5) for states with several stages
// (_coins.hpp): the states and stages of a block together, by forward filtering and backward
// sampling at s_0.
//
// Columns are (state, stage), of the states that some table serves, of the block's successor o
// if none serves it (its own coin and observations, the mass of a new state), and of kNew, which
// stands for all others.  With c_j = 1/(n_j + alpha) and the mass a_k of a draw
//
//     f'(k, s) = F_k [ f(k, s) stay_k + f(k, s-1) leave_k ],                  s > 1,
//     f'(k, 1) = F_k [ f(k, 1) stay_k + sum_j f(j, r) leave_j c_j (n_jk + a_k) ],
//
// so a step costs the non-zeros and K r.  Before a later stage there are two columns, before a
// first one there is a column of counts and the smooth part.  The last step looks at the
// successor's state and stage.
//
// A run in kNew gets a label where it begins, from one more Chinese restaurant process, Q*: the
// steps after a stay or an advance have the label of the step before them.
//
// Messages are exact, in double precision.  So the probability of a path is the product along it
// of the probabilities of its transitions and observations, over a constant of s_0 which is left
// out.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "_fresh_labels.hpp"
#include "_rcd.hpp"

namespace skihmm {

template <class Chain, class Emission>
class StagedBlocked {
  public:
    using Transitions = typename Chain::Transitions;
    static constexpr bool kReadsTouched = false, kReadsView = false, kMayBeExact = false;

    void attach(Chain &, Emission &) {}
    void prefetch(Chain &, int64_t, int64_t) const {}

    void prepare(Chain &chain, Emission &emission, const Move<Chain, Emission> &move) {
        const Transitions &s = *chain.transitions;
        start_ = move.start;
        length_ = move.stop - start_;
        i_ = chain.previous(start_);
        o_ = chain.successor(move.stop - 1);
        n_stages_ = s.coins().n_stages;
        n_slots_ = chain.n_slots;
        list_columns(s);
        // A step before the block, of which only the label and its last stage matter, is not
        // stored.
        likelihood_.resize(static_cast<size_t>(length_) * n_slots_);
        messages_.resize(static_cast<size_t>(length_) * n_stages_ * n_slots_);
        reached_.resize(n_slots_);
        for (int64_t l = 0; l < length_; ++l) {
            double *f = message(l);
            if (l == 0) enter(s, f);
            else advance(s, message(l - 1), f);
            weigh(emission, l, f);
        }
    }

    void score(Chain &chain, int64_t, int64_t, Product *q) {
        const Transitions &s = *chain.transitions;
        path_.resize(length_);
        for (int64_t l = 0; l < length_; ++l) {
            const int32_t k = chain.states[start_ + l];
            path_[l] = {is_column(s, k) ? k : kNew, s.coins().stage(start_ + l)};
        }
        multiply_path(s, q);
        name(chain, &chain.states[start_], false, q);
    }

    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        const Transitions &s = *chain.transitions;
        path_.resize(length_);
        for (int64_t l = length_ - 1; l >= 0; --l)
            if (!draw(s, l, chain.bits)) {
                // No path has a positive probability in floating-point numbers: reject.
                std::copy_n(&chain.states[start_], length_, path);
                q->multiply_log(std::numeric_limits<double>::infinity());
                return;
            }
        multiply_path(s, q);
        name(chain, path, true, q);
        for (int64_t l = 0; l < length_; ++l)
            chain.transitions->set_stage(start_ + l, path_[l].stage);
    }

    void settle(Chain &, Emission &, int64_t, int64_t, bool) const {}

  private:
    struct Column { int32_t k, stage; };

    bool is_column(const Transitions &s, int32_t k) const { return s.is_served(k) || k == o_; }
    void list_columns(const Transitions &s) {
        columns_.assign(1, kNew);
        for (int32_t k = kFirst; k < n_slots_; ++k)
            if (is_column(s, k)) columns_.push_back(k);
        mass_.resize(n_slots_);
        c_.resize(n_slots_);
        stay_.resize(n_slots_);
        for (const int32_t k : columns_) {
            mass_[k] = s.mass(k);
            c_[k] = 1.0 / s.total(k);
            stay_[k] = s.stay(k);
        }
        c_[kStart] = 1.0 / s.total(kStart);
        stay_[kStart] = 0.0;
        scale_ = s.scale();
    }
    double *message(int64_t l) {
        return &messages_[static_cast<size_t>(l) * n_stages_ * n_slots_];
    }
    const double *message(int64_t l) const {
        return &messages_[static_cast<size_t>(l) * n_stages_ * n_slots_];
    }
    // Of message f: the weight of a draw after state j.
    double exit(const double *f, int32_t j) const {
        return f[(n_stages_ - 1) * n_slots_ + j] * (1.0 - stay_[j]) * c_[j];
    }

    // ---- probabilities of one transition

    // A draw of k after j.
    double draw_prob(const Transitions &s, int32_t j, int32_t k) const {
        const double n = j == kNew || k == kNew ? 0.0 : s.count(j, k);
        return (1.0 - stay_[j]) * c_[j] * dish_weight(n, scale_, mass_[k]);
    }
    double prob(const Transitions &s, Column from, Column to) const {
        if (to.stage == 0 && from.stage == n_stages_ - 1) return draw_prob(s, from.k, to.k);
        if (to.k != from.k) return 0.0;
        return to.stage == from.stage       ? stay_[to.k]
               : to.stage == from.stage + 1 ? 1.0 - stay_[to.k]
                                            : 0.0;
    }
    // Into the block's first step, and out of its last one.
    double prob_in(const Transitions &s, Column to) const {
        if (i_ != kStart) return prob(s, {i_, s.coins().stage(start_ - 1)}, to);
        if (s.coins().starts_inside) return draw_prob(s, kStart, to.k) / n_stages_;
        return to.stage == 0 ? draw_prob(s, kStart, to.k) : 0.0;
    }
    double prob_out(const Transitions &s, Column from) const {
        if (o_ < 0) return 1.0;
        return prob(s, from, {o_, s.coins().stage(start_ + length_)});
    }
    // q *= the weight of path_.
    void multiply_path(const Transitions &s, Product *q) const {
        for (int64_t l = 0; l < length_; ++l) {
            q->multiply(l > 0 ? prob(s, path_[l - 1], path_[l]) : prob_in(s, path_[0]));
            q->multiply(likelihood_[static_cast<size_t>(l) * n_slots_ + path_[l].k]);
        }
        q->multiply(prob_out(s, path_.back()));
    }

    // ---- forward

    void enter(const Transitions &s, double *f) const {
        for (int32_t stage = 0; stage < n_stages_; ++stage)
            for (const int32_t k : columns_) f[stage * n_slots_ + k] = prob_in(s, {k, stage});
    }
    void advance(const Transitions &s, const double *f, double *out) {
        double smooth = 0.0;
        for (const int32_t k : columns_) reached_[k] = 0.0;
        for (const int32_t j : columns_) {
            const double w = exit(f, j);
            if (w == 0.0) continue;
            smooth += w;
            const Line &row = s.row(j);
            for (int32_t at = 0; at < row.size; ++at)
                reached_[row.ids[at]] += w * row.counts[at];
        }
        smooth *= scale_;
        for (const int32_t k : columns_) {
            out[k] = f[k] * stay_[k] + reached_[k] + smooth * mass_[k];
            for (int32_t c = n_slots_ + k; c < n_stages_ * n_slots_; c += n_slots_)
                out[c] = f[c] * stay_[k] + f[c - n_slots_] * (1.0 - stay_[k]);
        }
    }
    // Multiply by the observations of step l, up to a factor.
    void weigh(Emission &emission, int64_t l, double *f) {
        double *likelihood = &likelihood_[static_cast<size_t>(l) * n_slots_];
        emission.fill_probs(start_ + l, likelihood);
        double total = 0.0, before = 0.0;
        for (int32_t c = 0; c < n_stages_ * n_slots_; c += n_slots_)
            for (const int32_t k : columns_) {
                before += f[c + k];
                total += f[c + k] * likelihood[k];
            }
        if (SKIHMM_UNLIKELY(!(total > 0.0))) {
            // What can be reached has densities that underflow: propose without them.
            std::fill_n(likelihood, n_slots_, 1.0);
            total = before;
        }
        for (int32_t c = 0; c < n_stages_ * n_slots_; c += n_slots_)
            for (const int32_t k : columns_) f[c + k] *= likelihood[k] / total;
    }

    // ---- backward

    // Draw path_[l] given the next one; false if all weights are zero.
    bool draw(const Transitions &s, int64_t l, bitgen_t *g) {
        const double *f = message(l);
        if (l == length_ - 1 && o_ < 0) {
            double total = 0.0;
            for (int32_t stage = 0; stage < n_stages_; ++stage)
                for (const int32_t k : columns_) total += f[stage * n_slots_ + k];
            double u = uniform(g) * total;
            return choose(&path_[l], [&](auto take) {
                for (int32_t stage = 0; stage < n_stages_; ++stage)
                    for (const int32_t k : columns_)
                        if (take(k, stage, f[stage * n_slots_ + k], &u)) return;
            });
        }
        const Column to = l == length_ - 1
                              ? Column{o_, s.coins().stage(start_ + length_)}
                              : path_[l + 1];
        const double stayed = f[to.stage * n_slots_ + to.k] * stay_[to.k];
        if (to.stage > 0) {
            const double left = f[(to.stage - 1) * n_slots_ + to.k] * (1.0 - stay_[to.k]);
            double u = uniform(g) * (stayed + left);
            return choose(&path_[l], [&](auto take) {
                take(to.k, to.stage, stayed, &u) || take(to.k, to.stage - 1, left, &u);
            });
        }
        const int32_t last = n_stages_ - 1;
        double sparse = 0.0, smooth = 0.0;
        const Line &column = s.column(to.k);        // empty of kNew
        for (int32_t at = 0; at < column.size; ++at)
            if (column.ids[at] != kStart) sparse += exit(f, column.ids[at]) * column.counts[at];
        for (const int32_t j : columns_) smooth += exit(f, j);
        const double a = new_table_weight(scale_, mass_[to.k]);
        double u = uniform(g) * (stayed + sparse + smooth * a);
        return choose(&path_[l], [&](auto take) {
            if (take(to.k, 0, stayed, &u)) return;
            for (int32_t at = 0; at < column.size; ++at) {
                const int32_t j = column.ids[at];
                if (j != kStart && take(j, last, exit(f, j) * column.counts[at], &u)) return;
            }
            for (const int32_t j : columns_)
                if (take(j, last, exit(f, j) * a, &u)) return;
        });
    }
    // The column in whose part u lies, or if it is beyond the end by rounding the last possible
    // one.
    template <class Visit> static bool choose(Column *out, Visit visit) {
        bool found = false;
        visit([&](int32_t k, int32_t stage, double weight, double *u) {
            if (!(weight > 0.0)) return false;
            *out = {k, stage};
            found = true;
            return (*u -= weight) < 0.0;
        });
        return found;
    }

    // Labels of the runs in kNew, drawn or as they are in `path`, which becomes that of all
    // steps.
    template <class Path>
    void name(Chain &chain, Path *path, bool is_drawn, Product *q) {
        labels_.open(*chain.transitions, -1);
        size_t n_fresh = 0;
        for (int64_t l = 0; l < length_; ++l) {
            const Column at = path_[l];
            int32_t label = at.k;
            if (at.k == kNew) {
                const bool begins = l == 0 || path_[l - 1].k != kNew
                                    || (at.stage == 0 && path_[l - 1].stage > 0);
                if (!begins) label = path[l - 1];
                else if (!is_drawn) label = path[l];
                else if ((label = labels_.draw(chain.bits, -1)) < 0)
                    label = chain.free_slot(n_fresh++);
                if (begins) q->multiply(labels_.seat(label, -1));
            }
            if (is_drawn) path[l] = label;
        }
    }

    int64_t start_ = 0, length_ = 0;
    int32_t i_ = 0, o_ = 0, n_stages_ = 1, n_slots_ = 0;
    double scale_ = 0.0;
    std::vector<int32_t> columns_;          // slots
    std::vector<double> mass_, c_, stay_;   // by slot
    std::vector<double> reached_;
    std::vector<double> likelihood_;        // by step of the block, then by slot
    std::vector<double> messages_;         // by step of the block, by stage, by slot
    std::vector<Column> path_;
    FreshLabels labels_;
};

// One for all emissions: the passes over the columns take most of the time.
template <class Chain>
Proposal<Chain> *make_staged_blocked(Chain &chain) {
    return new InlinedProposal<Chain, Emission, StagedBlocked<Chain, Emission>>(*chain.emission);
}

}  // namespace skihmm
