// The law of staying: the prior of the states' probabilities to stay, and all that follows from it
// and from counts of stays and leaves.
//
// State k stays with probability W_k ~ Beta(kappa, omega), which is integrated out.  After q stays
// and l leaves the next step after k is a stay with probability
//
//     (kappa + q) / (kappa + omega + q + l).
//
// Another prior is written here; its options come from the recipe of transitions
// (skihmm/transitions/_hcrp.py), names of its hyperparameters are in skihmm/_records.py.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_archive.hpp"
#include "_hyperparameters.hpp"
#include "_math.hpp"
#include "_random.hpp"

namespace skihmm {

class StayPrior {
  public:
    double kappa = 0.0, omega = 1.0;        // kappa = 0: there is no prior

    StayPrior() = default;
    // Options of a recipe: the pair stay_prior, fixed, or expected_stay, the steps for which a
    // state is expected to last.
    explicit StayPrior(const Archive &options) {
        if (is_in(options)) {
            visit(options);
            return;
        }
        double steps = 0.0;
        options["expected_stay"].scalar(&steps, kSteps);
        // omega ~ Gamma(2, 1/2) and theta = log(kappa / omega) ~ N(log(steps - 1), 1), independent.
        // The odds of staying, not its probability, have a prior in their natural scale: a Beta
        // prior of the probability would hardly bound long dwell times.
        theta_ = std::log(steps - 1.0);
        omega = kShape / kRate;
        kappa = omega * std::exp(theta_);
        is_sampled_ = true;
    }
    SKIHMM_INLINE bool exists() const { return kappa > 0.0; }
    // Prior mean of log(kappa / omega), the log odds of staying of a typical state; of
    // expected_stay only.
    double log_odds() const { return theta_; }

    // Weights of a stay and a leave after q stays and l leaves, in proportion to their
    // probabilities.
    SKIHMM_INLINE void weigh(int32_t q, int32_t l, double *stay, double *leave) const {
        *stay = q + kappa;
        *leave = l + omega;
    }
    // A draw of the probability to stay or, which may be tiny, to leave, given q stays and l leaves.
    double draw(int32_t q, int32_t l, bool of_stay, bitgen_t *g) const {
        double stay, leave;
        weigh(q, l, &stay, &leave);
        return of_stay ? random_beta(g, stay, leave) : random_beta(g, leave, stay);
    }

    // ---- all states; for_states(f) calls f(q, l) for every state

    template <class Visit> double log_evidence(const Visit &for_states) const {
        double lp = 0.0;
        for_states([&](int32_t q, double l) {
            lp += log_rising(kappa, q) + log_rising(omega, l) - log_rising(kappa + omega, q + l);
        });
        return lp;
    }
    template <class Visit> void draw_hyperparameters(const Visit &for_states, bitgen_t *g) {
        if (!is_sampled_) return;
        double theta = std::log(kappa / omega), log_omega = std::log(omega);
        const auto log_density = [&](double theta, double log_omega) {
            StayPrior other;
            other.omega = std::exp(log_omega);
            other.kappa = other.omega * std::exp(theta);
            return kShape * log_omega - kRate * other.omega
                   - (theta - theta_) * (theta - theta_) / 2 + other.log_evidence(for_states);
        };
        theta = draw_by_slice(g, theta, theta_ - kReach, theta_ + kReach,
                              [&](double x) { return log_density(x, log_omega); });
        log_omega = draw_by_slice(g, log_omega, -kReach, kReach,
                                  [&](double x) { return log_density(theta, x); });
        omega = std::exp(log_omega);
        kappa = std::exp(theta + log_omega);
    }

    // ---- records

    // Whether hyperparameters in a record, or in an object that is written, have this prior.
    bool is_in(const Archive &archive) const { return archive.has(kName, exists()); }
    void visit(const Archive &archive) {
        std::vector<double> both{kappa, omega};
        archive[kName].array(&both, {2}, &kConcentration);
        kappa = both[0];
        omega = both[1];
    }
    // Whether both have the same hyperparameters, of any values.
    bool is_like(const StayPrior &other) const { return exists() == other.exists(); }
    void set_hyperparameters(const StayPrior &other) {
        kappa = other.kappa;
        omega = other.omega;
    }

  private:
    static constexpr const char *kName = "stay_prior";
    static constexpr double kShape = 2.0, kRate = 0.5;      // of omega
    static constexpr double kReach = 40.0;
    static constexpr Range kSteps{1.0 + std::numeric_limits<double>::epsilon(), kLargest,
                                  "a number of steps above 1"};

    double theta_ = 0.0;
    bool is_sampled_ = false;
};

}  // namespace skihmm
