// Passes over states.
//
// Restaurants make the passes over draws.  In front, coins stay or leave for a draw.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_transition_law.hpp"

namespace skihmm {

class ColumnPasses {
  public:
    // `transitions` must outlive this.
    explicit ColumnPasses(const TransitionLaw &transitions)
        : s_(transitions), coins_(s_.coins()) {}

    // out[k] = sum_j weights[j] p(k | j).
    void push(int64_t t, const double *weights, double *out) {
        if (!coins_.exist()) return s_.push_draws(t, weights, out);
        weigh_draws(t, weights);
        s_.push_draws(t, scratch_.data(), out);
        const int32_t n = s_.n_slots();
        for (int32_t k = 0; k < n; ++k) out[k] += weights[k] * stays_[k];
    }
    // out[j] = sum_k p(k | j) values[k].
    void pull(int64_t t, const double *values, double *out) {
        if (!coins_.exist()) return s_.pull_draws(t, values, out);
        const int32_t n = s_.n_slots();
        read_coins(t);
        scratch_.resize(n);
        s_.pull_draws(t, values, scratch_.data());
        for (int32_t k = 0; k < n; ++k)
            out[k] = stays_[k] * values[k] + leaves_[k] * scratch_[k];
        out[kStart] = scratch_[kStart];
    }
    // out[k] = max_j weights[j] p(k | j), and the j that reaches it.
    void push_max(int64_t t, const double *weights, double *out, int32_t *argmax_out) {
        if (!coins_.exist()) return s_.push_max_of_draws(t, weights, out, argmax_out);
        const int32_t n = s_.n_slots();
        weigh_draws(t, weights);
        s_.push_max_of_draws(t, scratch_.data(), out, argmax_out);
        for (int32_t k = 0; k < n; ++k) {
            if (k == kStart) continue;
            // (A draw of k after k leads there too.)
            const double kept = weights[k] * s_.prob(t, k, k);
            if (!(kept > out[k])) continue;
            out[k] = kept;
            argmax_out[k] = k;
        }
    }

  private:
    // Fill scratch_ with the weights of draws, by slot.
    void weigh_draws(int64_t t, const double *weights) {
        const int32_t n = s_.n_slots();
        read_coins(t);
        scratch_.resize(n);
        for (int32_t k = 0; k < n; ++k) scratch_[k] = weights[k] * leaves_[k];
        scratch_[kStart] = weights[kStart];
    }
    // Probabilities of coins, by slot, if they have changed: to stay and to leave for a draw.
    void read_coins(int64_t t) {
        const int32_t n = s_.n_slots();
        if (!s_.has_inputs()) t = 0;
        if (coins_.version() == version_ && t == read_ && static_cast<int32_t>(stays_.size()) == n)
            return;
        version_ = coins_.version();
        read_ = t;
        stays_.resize(n);
        leaves_.resize(n);
        s_.fill_coins(t, n, stays_.data(), leaves_.data());
    }

    const TransitionLaw &s_;
    const Coins &coins_;
    int64_t version_ = 0, read_ = 0;
    std::vector<double> scratch_, stays_, leaves_;      // the last two of read_coins
};

}  // namespace skihmm
