// Slices for transitions that depend on contexts: the beam of _blocked.hpp, and with blocks of one
// step the step-wise slice proposal.
//
// Each transition of the path gets a slice, uniform below its probability pi on the old path, and
// messages and backward draws have indicators 1[pi >= u] in the place of pi.  All is in double.
// The same numbers, summed in the same order, decide in both directions: by depth the weighted
// counts, and then the weight of the base.  Few labels pass, so messages are exact: a row is
// walked along its customers, of which the restaurants of the first depth have all labels, and
// over all labels only if the base alone may pass.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "_blocked.hpp"
#include "_context_step_slice.hpp"
#include "_contexts.hpp"
#include "_fresh_labels.hpp"
#include "_rcd.hpp"
#include "_slice.hpp"

namespace skihmm {

template <class Chain>
class ContextSlices final : public Proposal<Chain> {
  public:
    using Transitions = typename Chain::Transitions;

    void prepare(Chain &chain, Emission &emission, int64_t start, int64_t stop) override {
        tree_ = &chain.transitions->contexts();
        tree_->refresh();
        n_ = chain.n_slots;
        start_ = start;
        length_ = stop - start;
        const int32_t o = chain.successor(stop - 1);
        ghost_ = o >= 0 && tree_->root().dish_tables[o] == 0 ? o : -1;
        n_depths_ = tree_->shape.depth() + 1;
        const size_t n_steps = static_cast<size_t>(length_) + 1;
        steps_.resize(n_steps);
        prefixes_.resize(n_steps * n_depths_);
        for (std::vector<double> *all : {&messages_, &bases_, &rests_}) all->resize(n_steps * n_);
        for (std::vector<double> *one : {&sparse_, &probs_}) one->assign(n_, 0.0);
        int32_t j = chain.previous(start);
        for (int64_t l = 0; l <= length_; ++l) {
            Step &step = steps_[l];
            step.bar = l < length_ ? bar_of(chain.states[start + l]) : o < 0 ? -1 : bar_of(o);
            if (step.bar < 0) break;
            step.at = tree_->place(start + l);
            tree_->fill_prefixes(step.at, prefixes(l));
            tree_->fill_base(step.at, base(l));
            tree_->fill_rest(step.at, rest(l));
            step.largest = *std::max_element(base(l), base(l) + n_);
            step.pi = prob(l, j, step.bar);
            step.slice = std::max(kTiny, uniform(chain.bits) * step.pi);
            j = step.bar;
        }
        first_ = chain.previous(start);
        emission.look_ahead(start, stop);
        filter(emission);
    }
    void score(Chain &chain, int64_t, int64_t, Product *q) override {
        labels_.open(*chain.transitions, ghost_);
        q->multiply(steps_[0].pi);
        for (int64_t l = 0; l < length_; ++l) {
            const Step &next = steps_[l + 1];
            q->multiply(message(l)[steps_[l].bar] / total(l, next.bar));
            if (next.bar >= 0) q->multiply(next.pi);
            if (steps_[l].bar == kNew) q->multiply(labels_.seat(chain.states[start_ + l], -1));
        }
    }
    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) override {
        int32_t next = steps_[length_].bar;
        for (int64_t l = length_ - 1; l >= 0; --l) {
            const double sum = total(l, next);
            const double *f = passing_.data();
            double u = uniform(chain.bits) * sum;
            int32_t j = kNew;
            for (int32_t k = 0; k < n_; ++k) {
                if (!(f[k] > 0.0)) continue;
                j = k;
                if ((u -= f[k]) < 0.0) break;
            }
            q->multiply(f[j] / sum);
            if (next >= 0) q->multiply(prob(l + 1, j, next));
            path[l] = next = j;
        }
        q->multiply(prob(0, first_, next));
        labels_.open(*chain.transitions, ghost_);
        for (int64_t l = 0, n_fresh = 0; l < length_; ++l) {
            if (path[l] != kNew) continue;
            path[l] = labels_.draw(chain.bits, -1);
            if (path[l] < 0) path[l] = chain.free_slot(n_fresh++);
            q->multiply(labels_.seat(path[l], -1));
        }
    }

  private:
    // One step of the block; one more stands for the successor.
    struct Step {
        ContextPlace at;
        int32_t bar = -1;       // of the old label; -1: there is no successor
        double pi = 0.0;        // of the old transition into it
        double slice = 0.0;
        double largest = 0.0;   // of the base
    };

    // All labels that no table serves have the column of a new state.
    int32_t bar_of(int32_t k) const { return tree_->root().dish_tables[k] > 0 ? k : kNew; }
    int32_t *prefixes(int64_t l) { return &prefixes_[static_cast<size_t>(l) * n_depths_]; }
    double *message(int64_t l) { return &messages_[static_cast<size_t>(l) * n_]; }
    // By label, of the transitions into step l: the law of the base, and its weight.
    double *base(int64_t l) { return &bases_[static_cast<size_t>(l) * n_]; }
    double *rest(int64_t l) { return &rests_[static_cast<size_t>(l) * n_]; }
    // The weight of the customers of depth d.
    double weight(int64_t l, int32_t d, int32_t j) {
        double c = tree_->inverse(d, prefixes(l)[d])[j];
        for (int32_t e = d + 1; e <= steps_[l].at.depth; ++e)
            c *= tree_->alpha(e) * tree_->inverse(e, prefixes(l)[e])[j];
        return c;
    }
    double link(int64_t l, int32_t j, int32_t k, double sparse) {
        return sparse + rest(l)[j] * base(l)[k];
    }
    double prob(int64_t l, int32_t j, int32_t k) {
        double sparse = 0.0;
        for (int32_t d = tree_->first_own(); k != kNew && d <= steps_[l].at.depth; ++d) {
            const int32_t n = tree_->count(d, tree_->shape.row(d, j, prefixes(l)[d]), k);
            if (n) sparse += weight(l, d, j) * n;
        }
        return link(l, j, k, sparse);
    }

    void filter(Emission &emission) {
        for (int64_t l = 0; l < length_; ++l) {
            double *f = message(l);
            std::fill_n(f, n_, 0.0);
            if (l == 0) {
                spread(0, first_, 1.0, f);
            } else {
                const double *before = message(l - 1);
                for (int32_t j = 0; j < n_; ++j)
                    if (before[j] > 0.0) spread(l, j, before[j], f);
            }
            emission.fill_probs(start_ + l, probs_.data());
            double sum = 0.0;
            for (int32_t k = 0; k < n_; ++k) sum += f[k] * probs_[k];
            // If all products underflow, propose without the observation.
            const bool is_seen = sum > 0.0;
            if (!is_seen) for (int32_t k = 0; k < n_; ++k) sum += f[k];
            // What is possible keeps a weight: it may be entered from one label alone, so that
            // a product that has underflowed would stay 0, and the old path with it.
            for (int32_t k = 0; k < n_; ++k) {
                if (!(f[k] > 0.0)) continue;
                f[k] = std::max(f[k] * ((is_seen ? probs_[k] : 1.0) / sum), kLeast);
            }
        }
    }
    // out[k] += f for all k with pi[j,k] >= the slice of step l.
    void spread(int64_t l, int32_t j, double f, double *out) {
        const int32_t own = tree_->first_own(), depth = steps_[l].at.depth;
        const double u = steps_[l].slice, r = rest(l)[j], *b = base(l);
        double *sparse = sparse_.data();
        for (int32_t d = own; d <= depth; ++d) {
            const double w = weight(l, d, j);
            tree_->for_line(row(l, d, j), [&](int32_t k, int32_t n) { sparse[k] += w * n; });
        }
        if (r * steps_[l].largest >= u) {
            for (int32_t k = 0; k < n_; ++k)
                if (sparse[k] + r * b[k] >= u) out[k] += f;
        } else if (own <= depth) {
            tree_->for_line(row(l, own, j), [&](int32_t k, int32_t) {
                if (sparse[k] + r * b[k] >= u) out[k] += f;
            });
        }
        if (own <= depth) row(l, own, j).unscatter(sparse);
    }
    const Line &row(int64_t l, int32_t d, int32_t j) {
        return tree_->row_line(d, tree_->shape.row(d, j, prefixes(l)[d]));
    }
    // passing_[j] = f_l(j) 1[pi[j,k] >= slice], and its sum.
    double total(int64_t l, int32_t k) {
        const double *f = message(l);
        passing_.assign(f, f + n_);
        double sum = 0.0;
        if (k < 0) {
            for (int32_t j = 0; j < n_; ++j) sum += f[j];
            return sum;
        }
        const int32_t own = tree_->first_own(), depth = steps_[l + 1].at.depth;
        const double u = steps_[l + 1].slice, *r = rest(l + 1), b = base(l + 1)[k];
        double *sparse = sparse_.data();
        for (int32_t d = own; d <= depth; ++d)
            tree_->for_line(tree_->column_line(d, k, prefixes(l + 1)[d]),
                            [&](int32_t j, int32_t n) { sparse[j] += weight(l + 1, d, j) * n; });
        for (int32_t j = 0; j < n_; ++j) {
            if (!(sparse[j] + r[j] * b >= u)) passing_[j] = 0.0;
            sum += passing_[j];
        }
        if (own <= depth) tree_->column_line(own, k, prefixes(l + 1)[own]).unscatter(sparse);
        return sum;
    }

    // Keeps a slice above the pi of slots without a state, which is zero.
    static constexpr double kTiny = std::numeric_limits<double>::min();
    static constexpr double kLeast = 1e-20;     // of a message, the sum of which is 1

    const ContextTree *tree_ = nullptr;
    int32_t n_ = 0, n_depths_ = 0, first_ = 0, ghost_ = -1;
    int64_t start_ = 0, length_ = 0;
    std::vector<Step> steps_;
    std::vector<int32_t> prefixes_;                     // by step, then by depth
    std::vector<double> messages_, bases_, rests_;      // by step, then by slot
    std::vector<double> sparse_;                        // zero between passes
    std::vector<double> passing_, probs_;
    FreshLabels labels_;
};

// The kernels that suit the law of a chain.
template <class Chain> Proposal<Chain> *make_context_slices(const Chain &chain) {
    if (!chain.transitions->depends_on_contexts())
        throw std::invalid_argument("slices of transitions with contexts and probabilities to "
                                    "stay; expected one of them only. Use BlockedGibbs.");
    return new ContextSlices<Chain>();
}
template <class Chain>
Proposal<Chain> *make_beam(Chain &chain, double cut) {
    if (chain.transitions->has_contexts()) return make_context_slices(chain);
    return make_proposal<BlockedSlices>(chain, cut);
}
template <class Chain>
Proposal<Chain> *make_slice(Chain &chain, int32_t lookup_slots) {
    if (chain.transitions->lifts_in_tree()) return make_proposal<ContextSlice>(chain);
    if (chain.transitions->has_contexts()) return make_context_slices(chain);
    return make_proposal<Slice>(chain, lookup_slots);
}

}  // namespace skihmm
