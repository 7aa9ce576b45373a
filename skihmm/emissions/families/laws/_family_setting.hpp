// What conjugate families are built from: settings, vectors of states, tables, checks of priors.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_cholesky.hpp"
#include "_family.hpp"
#include "_math.hpp"
#include "_platform.hpp"

namespace skihmm {

// States per vector: arrays over states are padded to a multiple.
constexpr int32_t kLanes = 16;

// What a family is built from.
struct FamilySetting {
    int32_t n_columns, n_inputs;
    int32_t n_given;                // inputs that are given, the last ones
    const double *hyperparameters;  // of the prior at the start of a chain, one after the other
    const double *units;            // typical values, by which hyperparameters have their priors
    const int32_t *is_drawn;        // which hyperparameters chains draw from their posterior
    const double *values;           // all rows
    int64_t n_steps;
    // What is never drawn: the shape or the degrees of freedom of the prior, the period of angles.
    double shape, dof, period;
    int32_t n_options, has_exposure;    // of choices; of counts
    int32_t n_shifts = 0;               // last inputs that are added to linear predictors
};

// log Gamma(a + n step + rise) - log Gamma(a + n step) for n = 0, 1, ..., by table.
class RisingTable {
  public:
    void configure(double a, double step, double rise, int64_t n) {
        a_ = a;
        step_ = step;
        rise_ = rise;
        values_.resize(n + 1);
        for (int64_t i = 0; i <= n; ++i) values_[i] = log_rising(a + i * step, rise);
    }
    double operator()(double n) const {
        const size_t i = static_cast<size_t>(n);
        return i < values_.size() ? values_[i] : log_rising(a_ + n * step_, rise_);
    }

  private:
    double a_ = 1.0, step_ = 0.0, rise_ = 0.0;
    std::vector<double> values_;
};

// Range of positive parameters of a prior.
inline bool all_positive(const double *x, size_t n) {
    return std::all_of(x, x + n, [](double v) { return v > 0.0 && std::isfinite(v); });
}
inline bool all_finite(const double *x, size_t n) {
    return std::all_of(x, x + n, [](double v) { return std::isfinite(v); });
}

// log Gamma(a + y) - log Gamma(a) for y > 16, by Stirling's formula.
static SKIHMM_INLINE double log_rising_of_many(double a, double y) {
    // Gamma(a) = Gamma(a + 8) / (a (a + 1) ... (a + 7))
    const double b = a + y, high = a + 8.0;
    double inverse, log_power, product = 1.0;
    split_large(a, &inverse, &log_power);
    for (int32_t i = 0; i < 8; ++i) product *= (a + i) * inverse;
    return log_of(std::max(product, 1e-307)) + 8.0 * log_power + (y - 8.0) * log_of(b)
           + (high - 0.5) * log1p_of((y - 8.0) / high) - (y - 8.0)
           + (stirling_rest(b) - stirling_rest(high));
}

}  // namespace skihmm
