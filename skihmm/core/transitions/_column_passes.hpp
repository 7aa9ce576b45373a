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

    // out[c] = sum_j weights[j] p(c | j).  With contexts, labels with up to the share `least` of
    // all draws enter by their total only; weights sum to one.
    void push(int64_t t, const double *weights, double *out, double least = 0.0,
              int32_t width = -1) {
        const int32_t n = s_.n_slots();
        if (width < 0) width = n;
        if (!coins_.exist()) return s_.push_draws(t, weights, out, least, width);
        weigh_draws(t, weights, width);
        double all = 0.0;
        for (int32_t k = 0; k < width; ++k) all += scratch_[k];
        s_.push_draws(t, scratch_.data(), out, least * all, width);
        const double *stays = stays_.data();
        for (int32_t k = 0; k < width; ++k) out[k] += weights[k] * stays[k];
    }
    // out[j] = sum_c p(c | j) values[c].
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
    // out[c] = max_j weights[j] p(c | j), and the j that reaches it.
    void push_max(int64_t t, const double *weights, double *out, int32_t *argmax_out) {
        if (!coins_.exist()) return s_.push_max_of_draws(t, weights, out, argmax_out);
        const int32_t n = s_.n_slots();
        weigh_draws(t, weights, n);
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
    void weigh_draws(int64_t t, const double *weights, int32_t width) {
        read_coins(t);
        scratch_.resize(s_.n_slots(), 0.0);
        for (int32_t k = 0; k < width; ++k) scratch_[k] = weights[k] * leaves_[k];
        scratch_[kStart] = weights[kStart];
    }
    // Probabilities of coins, by slot, if they have changed: to stay and to leave for a draw.
    void read_coins(int64_t t) {
        const int32_t n = s_.n_slots();
        if (!s_.has_inputs()) t = 0;
        // (Without coins changes are not counted.)
        if (coins_.exist() && coins_.version() == version_ && t == read_
            && static_cast<int32_t>(stays_.size()) == n)
            return;
        version_ = coins_.version();
        read_ = t;
        stays_.resize(n);
        leaves_.assign(n, 1.0);
        if (coins_.exist()) s_.fill_coins(t, n, stays_.data(), leaves_.data());
    }

    const TransitionLaw &s_;
    const Coins &coins_;
    int64_t version_ = 0, read_ = 0;
    std::vector<double> scratch_;
    std::vector<double> stays_, leaves_;        // of read_coins
};

}  // namespace skihmm
