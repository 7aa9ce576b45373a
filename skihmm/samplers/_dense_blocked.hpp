// Blocked Gibbs proposal (arXiv 1106.0474, Section 5) for laws that depend on the step.
//
// As _blocked.hpp, but in double precision and without a part of rank one: it asks the law for
// whole passes, `push` the message of step t - 1 through the transitions into step t, and
// `fill_column` the probabilities of one label at t after every label before.  Here too labels
// with less than `cut` times the mean of a message enter the next one by their total only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_blocked.hpp"
#include "_context_blocked.hpp"
#include "_rcd.hpp"

namespace skihmm {

template <class Chain>
class DenseBlocked final : public Proposal<Chain> {
  public:
    using Transitions = typename Chain::Transitions;

    explicit DenseBlocked(double cut) : cut_(cut) {}

    void prepare(Chain &chain, Emission &emission, int64_t start, int64_t stop) override {
        const Transitions &s = *chain.transitions;
        n_ = chain.n_slots;
        start_ = start;
        length_ = stop - start;
        const int32_t o = chain.successor(stop - 1);
        ghost_ = o >= 0 && !s.is_served(o) ? o : -1;
        messages_.resize(static_cast<size_t>(length_) * n_);
        columns_.resize(static_cast<size_t>(length_) * n_);
        weights_.resize(n_);
        probs_.resize(n_);
        old_.assign(1, o < 0 ? -1 : bar_of(s, o));
        for (int64_t t = stop - 1; t >= start; --t) old_.push_back(bar_of(s, chain.states[t]));
        std::reverse(old_.begin(), old_.end());
        // Not of slots, the number of which depends on the labels of the whole chain.
        int32_t n_live = 1;
        for (int32_t k = kFirst; k < n_; ++k) n_live += s.is_served(k);
        for (int64_t l = 0; l < length_; ++l) {
            double *f = message(l);
            if (l == 0) s.fill_row(start, chain.previous(start), f);
            else s.push(start + l, message(l - 1), f, cut_ / n_live);
            emission.fill_probs(start + l, probs_.data());
            double total = 0.0;
            for (int32_t k = 0; k < n_; ++k) total += f[k] * probs_[k];
            // If all products underflow, propose without the observation.
            const bool is_seen = total > 0.0;
            if (!is_seen) for (int32_t k = 0; k < n_; ++k) total += f[k];
            for (int32_t k = 0; k < n_; ++k) f[k] *= (is_seen ? probs_[k] : 1.0) / total;
            fill_column(s, l, old_[l + 1], column(l));
        }
    }
    void score(Chain &chain, int64_t, int64_t, Product *q) override {
        labels_.open(*chain.transitions, ghost_);
        for (int64_t l = 0; l < length_; ++l) {
            q->multiply(weight(l, old_[l], column(l)) / total(l, column(l)));
            if (old_[l] == kNew) q->multiply(labels_.seat(chain.states[start_ + l], -1));
        }
    }
    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) override {
        const Transitions &s = *chain.transitions;
        int32_t next = old_[length_];
        for (int64_t l = length_ - 1; l >= 0; --l) {
            const double *own = column(l);
            if (next != old_[l + 1]) {
                fill_column(s, l, next, weights_.data());
                own = weights_.data();
            }
            const double sum = total(l, own);
            double u = uniform(chain.bits) * sum;
            for (int32_t k = 0; k < n_; ++k) {
                const double w = weight(l, k, own);
                if (!(w > 0.0)) continue;
                next = k;
                if ((u -= w) < 0.0) break;
            }
            q->multiply(weight(l, next, own) / sum);
            path[l] = next;
        }
        labels_.open(s, ghost_);
        for (int64_t l = 0, n_fresh = 0; l < length_; ++l) {
            if (path[l] != kNew) continue;
            path[l] = labels_.draw(chain.bits, -1);
            if (path[l] < 0) path[l] = chain.free_slot(n_fresh++);
            q->multiply(labels_.seat(path[l], -1));
        }
    }

  private:
    // All labels that no table serves have the column of a new state.
    static int32_t bar_of(const Transitions &s, int32_t k) { return s.is_served(k) ? k : kNew; }
    double *message(int64_t l) { return &messages_[static_cast<size_t>(l) * n_]; }
    double *column(int64_t l) { return &columns_[static_cast<size_t>(l) * n_]; }
    // Probabilities of the bar k after step l of the block; -1: nothing follows.
    void fill_column(const Transitions &s, int64_t l, int32_t k, double *out) const {
        if (k < 0) std::fill_n(out, n_, 1.0);
        else s.fill_column(start_ + l + 1, k, out);
    }
    double weight(int64_t l, int32_t k, const double *own) { return message(l)[k] * own[k]; }
    double total(int64_t l, const double *own) {
        double sum = 0.0;
        for (int32_t k = 0; k < n_; ++k) sum += weight(l, k, own);
        return sum;
    }

    const double cut_;
    int32_t n_ = 0, ghost_ = -1;
    int64_t start_ = 0, length_ = 0;
    std::vector<int32_t> old_;          // bars of the old path, and of what follows it
    std::vector<double> messages_;      // by step of the block, and slot
    std::vector<double> columns_;       // of the old path
    std::vector<double> weights_, probs_;
    FreshLabels labels_;
};

// The kernel that suits the law of a chain.
template <class Chain>
Proposal<Chain> *make_blocked(Chain &chain, double cut) {
    if (chain.transitions->depends_on_contexts())
        return make_proposal<ContextBlocked>(chain, cut);
    if (chain.transitions->has_contexts()) return new DenseBlocked<Chain>(cut);
    return make_proposal<BlockedMessages>(chain, cut);
}

}  // namespace skihmm
