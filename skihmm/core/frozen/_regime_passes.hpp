// Passes of an HMM of regimes, with mixtures of the emissions of the states of a draw:
//
//     p(y[t] | r) = sum over the states k of r of weights[k] p(y[t] | k)
//
// The next state depends on the regime alone, so states need no messages of their own.
// Likelihoods may have any factor that is common to the states of a step; none may be zero.
// Every step may have its own probabilities to stay in the regime before it (inputs of staying);
// steps that leave are then divided among the other regimes as transmat divides them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "_dense_rows.hpp"
#include "_platform.hpp"

namespace skihmm {

class RegimePasses {
  public:
    const int64_t n_steps;
    const int32_t n_states, n_regimes;

    // likelihoods[t, k] and stays[t, r] must outlive this; groups: regime of every state; first:
    // whether step t begins a sequence, as step 0 does; stays: null if transmat has them.
    RegimePasses(int64_t n_steps, int32_t n_states, int32_t n_regimes, const double *likelihoods,
                 const int32_t *groups, const double *weights, const uint8_t *first,
                 const double *startprob, const double *transmat, const double *stays)
        : n_steps(n_steps), n_states(n_states), n_regimes(n_regimes),
          width_((n_regimes + 7) / 8 * 8), likelihoods_(likelihoods), stays_(stays),
          first_(first), groups_(groups, groups + n_states), weights_(weights, weights + n_states),
          start_(width_, 0.0), rows_(static_cast<size_t>(width_) * width_, 0.0),
          mixture_(width_, 0.0), f_(width_, 0.0), g_(width_, 0.0), leaving_(width_, 0.0) {
        std::copy_n(startprob, n_regimes, start_.begin());
        for (int32_t j = 0; j < n_regimes; ++j)
            std::copy_n(transmat + static_cast<int64_t>(j) * n_regimes, n_regimes,
                        &rows_[static_cast<size_t>(j) * width_]);
        for (size_t j = 0; stays && j < static_cast<size_t>(n_regimes); ++j) {
            double *row = &rows_[j * width_];
            const double leave = 1.0 - row[j];
            row[j] = 0.0;
            if (leave > 0.0) divide_all(width_, leave, row);
        }
    }
    // log_predictive[t] = log p(y[t] | y[:t]); probs[t, r] = p(r at t | y[:t + 1]).
    void filter(double *log_predictive, double *probs) {
        for (int64_t t = 0; t < n_steps; ++t, probs += n_regimes) {
            if (first_[t]) g_ = start_;
            else {
                weighted_rows(width_, leaving(t), rows_.data(), g_.data());
                for (int32_t r = 0; stays_ && r < n_regimes; ++r) g_[r] += f_[r] * stay(t, r);
            }
            f_.swap(g_);
            const double total = multiply(t);
            divide_all(width_, total, f_.data());
            log_predictive[t] = std::log(total);
            std::copy_n(f_.begin(), n_regimes, probs);
        }
    }
    // probs: of filter, become p(r at t | y).  Adds up, over all steps, moves[q, r] =
    // p(q at t - 1, r at t | y), within sequences, and steps[k] = p(k at t | y).  With stays,
    // kept[t, r] = p(r at t - 1 and t | y), zero in first steps.
    void smooth(double *probs, double *moves, double *steps, double *kept) {
        std::vector<double> columns(rows_.size()), sums(rows_.size(), 0.0);
        for (size_t j = 0; j < static_cast<size_t>(width_); ++j)
            for (size_t k = 0; k < static_cast<size_t>(width_); ++k)
                columns[k * width_ + j] = rows_[j * width_ + k];
        std::vector<double> before(static_cast<size_t>(kBlock) * width_, 0.0), after = before;
        std::vector<double> ahead(width_, 0.0);     // p(y[t + 1 ...] | r at t + 1)
        int32_t n_held = 0;
        if (stays_) std::fill_n(kept, n_steps * n_regimes, 0.0);
        probs += n_steps * n_regimes;
        for (int64_t t = n_steps; t-- > 0;) {
            probs -= n_regimes;
            if (t == n_steps - 1 || first_[t + 1]) {
                std::fill_n(g_.begin(), n_regimes, 1.0);
            } else {
                weighted_rows(width_, ahead.data(), columns.data(), g_.data());
                for (int32_t r = 0; stays_ && r < n_regimes; ++r)
                    g_[r] = (1.0 - stay(t + 1, r)) * g_[r] + stay(t + 1, r) * ahead[r];
                double total = 0.0;
                for (int32_t r = 0; r < n_regimes; ++r) total += probs[r] * g_[r];
                check_total(t, total);
                divide_all(width_, total, g_.data());
                divide_all(width_, total, ahead.data());
                double *held = &before[static_cast<size_t>(n_held) * width_];
                std::copy_n(probs, n_regimes, held);
                for (int32_t r = 0; stays_ && r < n_regimes; ++r) {
                    kept[(t + 1) * n_regimes + r] = probs[r] * stay(t + 1, r) * ahead[r];
                    held[r] *= 1.0 - stay(t + 1, r);
                }
                std::copy_n(ahead.begin(), width_, &after[static_cast<size_t>(n_held) * width_]);
                if (++n_held == kBlock) {
                    add_products(kBlock, width_, before.data(), after.data(), sums.data());
                    n_held = 0;
                }
            }
            mix(t);
            for (int32_t r = 0; r < n_regimes; ++r) {
                ahead[r] = mixture_[r] * g_[r];
                probs[r] *= g_[r];
                // Its states share the regime's probability in proportion to their likelihoods.
                g_[r] = mixture_[r] > 0.0 ? probs[r] / mixture_[r] : 0.0;
            }
            const double *seen = likelihoods_ + t * n_states;
            for (int32_t k = 0; k < n_states; ++k)
                steps[k] += g_[groups_[k]] * weights_[k] * seen[k];
        }
        std::fill(before.begin() + static_cast<int64_t>(n_held) * width_, before.end(), 0.0);
        add_products(kBlock, width_, before.data(), after.data(), sums.data());
        for (int32_t j = 0; j < n_regimes; ++j)
            for (int32_t k = 0; k < n_regimes; ++k)
                moves[static_cast<int64_t>(j) * n_regimes + k]
                    = sums[static_cast<size_t>(j) * width_ + k]
                      * rows_[static_cast<size_t>(j) * width_ + k];
        for (int64_t t = 0; stays_ && t < n_steps; ++t)
            for (int64_t r = 0; r < n_regimes; ++r)
                moves[r * (n_regimes + 1)] += kept[t * n_regimes + r];
    }
    // The most probable path; of equal paths the path with the first regimes.
    void viterbi(int32_t *path) {
        std::vector<int32_t> before(static_cast<size_t>(n_steps) * n_regimes);
        std::vector<int64_t> argmax(width_);
        for (int64_t t = 0; t < n_steps; ++t) {
            int32_t *from = &before[static_cast<size_t>(t) * n_regimes];
            if (first_[t]) {
                // After the best end of the sequence before.
                std::fill_n(from, n_regimes, best());
                g_ = start_;
            } else {
                largest_of_rows(width_, leaving(t), rows_.data(), g_.data(), argmax.data());
                for (int32_t r = 0; r < n_regimes; ++r) from[r] = static_cast<int32_t>(argmax[r]);
                for (int32_t r = 0; stays_ && r < n_regimes; ++r) {
                    const double p = f_[r] * stay(t, r);
                    if (p < g_[r] || (p == g_[r] && from[r] < r)) continue;
                    g_[r] = p;
                    from[r] = r;
                }
            }
            f_.swap(g_);
            multiply(t);
            divide_all(width_, f_[best()], f_.data());
        }
        int32_t r = best();
        for (int64_t t = n_steps; t-- > 0;) {
            path[t] = r;
            r = before[static_cast<size_t>(t) * n_regimes + r];
        }
    }

  private:
    // Probability that step t stays in regime r, if it is there at t - 1.
    double stay(int64_t t, int32_t r) const { return stays_[t * n_regimes + r]; }
    // f, with stays the part of it that leaves at step t.
    const double *leaving(int64_t t) {
        if (!stays_) return f_.data();
        for (int32_t r = 0; r < n_regimes; ++r) leaving_[r] = f_[r] * (1.0 - stay(t, r));
        return leaving_.data();
    }
    static constexpr int32_t kBlock = 32;   // steps, whose moves are added up together

    static void check_total(int64_t t, double total) {
        // (False for NaN too.)
        if (SKIHMM_LIKELY(0.0 < total && total < INFINITY)) return;
        std::ostringstream message;
        message << "Step " << t << " has the probability " << total
                << " under the regimes of this draw: its counts are out of all proportion.";
        throw std::invalid_argument(message.str());
    }
    void mix(int64_t t) {
        const double *seen = likelihoods_ + t * n_states;
        std::fill(mixture_.begin(), mixture_.end(), 0.0);
        for (int32_t k = 0; k < n_states; ++k) mixture_[groups_[k]] += weights_[k] * seen[k];
    }
    // f *= p(y[t] | r); returns the sum.
    double multiply(int64_t t) {
        mix(t);
        double total = 0.0;
        for (int32_t r = 0; r < n_regimes; ++r) total += f_[r] *= mixture_[r];
        check_total(t, total);
        return total;
    }
    int32_t best() const {
        return static_cast<int32_t>(
            std::max_element(f_.begin(), f_.begin() + n_regimes) - f_.begin());
    }

    const int32_t width_;
    const double *likelihoods_, *stays_;
    const uint8_t *first_;
    const std::vector<int32_t> groups_;
    const std::vector<double> weights_;
    std::vector<double> start_, rows_;          // of zeros beyond the regimes, as all below
    std::vector<double> mixture_, f_, g_, leaving_;
};

}  // namespace skihmm
