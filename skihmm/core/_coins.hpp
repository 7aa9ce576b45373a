// Coins of states: whether a step stays in its state, before anything is drawn in a restaurant.
//
// State k stays with probability W_k ~ Beta(kappa, omega), which is integrated out.  After q_k
// stays and l_k leaves the next step after k is a stay with probability
//
//     stay_k = (kappa + q_k) / (kappa + omega + q_k + l_k).
//
// A leave is a draw in the restaurant of k, which may be k again, so l_k is the number of
// customers there.  A flag of every step says whether it was entered by a stay.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_containers.hpp"
#include "_hyperparameters.hpp"
#include "_math.hpp"
#include "_random.hpp"

namespace skihmm {

class Coins {
  public:
    double kappa = 0.0, omega = 1.0;        // kappa = 0: there are no coins

    // omega ~ Gamma(2, 1/2) and theta = log(kappa / omega) ~ N(log(dwell - 1), 1), independent.
    // The odds of staying, not its probability, have a prior in their natural scale: a Beta
    // prior of the probability would hardly bound long dwell times.
    void set_dwell(double dwell) {
        theta_ = std::log(dwell - 1.0);
        omega = kShape / kRate;
        kappa = omega * std::exp(theta_);
        is_sampled_ = true;
    }

    SKIHMM_INLINE bool exist() const { return kappa > 0.0; }
    // The odds of a stay after l leaves; with some stays more.
    double odds(int32_t k, int32_t l, int32_t more = 0) const {
        return (stays_[k] + more + kappa) / (l + omega);
    }
    double stay(int32_t k, int32_t l, int32_t more = 0) const {
        const double q = stays_[k] + more + kappa;
        return q / (q + l + omega);
    }
    bool stayed(int64_t t) const { return flags_[t]; }
    const std::vector<int32_t> &stays() const { return stays_; }
    const std::vector<uint8_t> &flags() const { return flags_; }

    void set_steps(int64_t n_steps) { flags_.assign(n_steps, 0); }
    void resize(int32_t n_slots) { stays_.resize(n_slots, 0); }
    void clear() {
        std::fill(stays_.begin(), stays_.end(), 0);
        std::fill(flags_.begin(), flags_.end(), 0);
        changes_.clear();
    }
    void load(const std::vector<int32_t> &stays, const std::vector<uint8_t> &flags) {
        clear();
        std::copy(stays.begin(), stays.end(), stays_.begin() + kFirst);
        if (!flags.empty()) flags_ = flags;
    }

    // ---- moves: step t is entered from k by a stay, or no longer

    void toggle(int64_t t, int32_t k) {
        flip(t, k);
        changes_.push({static_cast<int32_t>(t), k});
    }
    void commit() { changes_.clear(); }
    void rollback() {
        for (size_t i = changes_.size(); i-- > 0;) flip(changes_[i].t, changes_[i].k);
        changes_.clear();
    }

    // ---- all stays and leaves, given the number of leaves by slot

    double log_joint(const std::vector<int32_t> &leaves) const {
        return log_joint(leaves, kappa, omega);
    }
    double log_joint(const std::vector<int32_t> &leaves, double kappa, double omega) const {
        double lp = 0.0;
        for (size_t k = kFirst; k < stays_.size(); ++k)
            lp += log_rising(kappa, stays_[k]) + log_rising(omega, leaves[k])
                  - log_rising(kappa + omega, static_cast<double>(stays_[k]) + leaves[k]);
        return lp;
    }
    void draw_hyperparameters(const std::vector<int32_t> &leaves, bitgen_t *g) {
        if (!is_sampled_) return;
        double theta = std::log(kappa / omega), log_omega = std::log(omega);
        const auto log_density = [&](double theta, double log_omega) {
            const double omega = std::exp(log_omega);
            return kShape * log_omega - kRate * omega - (theta - theta_) * (theta - theta_) / 2
                   + log_joint(leaves, omega * std::exp(theta), omega);
        };
        theta = draw_by_slice(g, theta, theta_ - kReach, theta_ + kReach,
                              [&](double x) { return log_density(x, log_omega); });
        log_omega = draw_by_slice(g, log_omega, -kReach, kReach,
                                  [&](double x) { return log_density(theta, x); });
        omega = std::exp(log_omega);
        kappa = std::exp(theta + log_omega);
    }

  private:
    struct Change { int32_t t, k; };
    static constexpr double kShape = 2.0, kRate = 0.5;      // of omega
    static constexpr double kReach = 40.0;

    void flip(int64_t t, int32_t k) {
        flags_[t] ^= 1;
        stays_[k] += flags_[t] ? 1 : -1;
    }

    double theta_ = 0.0;                    // prior mean of log(kappa / omega)
    bool is_sampled_ = false;
    std::vector<int32_t> stays_;            // q_k by slot
    std::vector<uint8_t> flags_;            // by step
    Stack<Change> changes_;                 // of this move
};

}  // namespace skihmm
