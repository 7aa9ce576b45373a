// Laws of counts and binary columns: Poisson and Bernoulli.
//
// Formulas: A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, chapter 2.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "_independent_columns.hpp"

namespace skihmm {

// ---- counts ------------------------------------------------------------------------------

// out[k] += log Gamma(a_k + y)/Gamma(a_k) + stop[k] + y more[k] for y <= 16
SKIHMM_CLONES static void fill_few(int32_t n, int32_t y, const double *a, const double *stop,
                                   const double *more, double *out) {
    for (int32_t from = 0; from < n; from += kLanes) {
        double product[kLanes], inverse[kLanes], log_power[kLanes];
        for (int32_t l = 0; l < kLanes; ++l) {
            product[l] = 1.0;
            split_large(a[from + l], &inverse[l], &log_power[l]);
        }
        for (int32_t i = 0; i < y; ++i)
            for (int32_t l = 0; l < kLanes; ++l) product[l] *= (a[from + l] + i) * inverse[l];
        for (int32_t l = 0; l < kLanes; ++l) {
            const int32_t k = from + l;
            out[k] += log_of(std::max(product[l], 1e-307)) + stop[k]
                      + y * (more[k] + log_power[l]);
        }
    }
}
// fill_few for y > 16.
SKIHMM_CLONES static void fill_many(int32_t n, double y, const double *a, const double *stop,
                                    const double *more, double *out) {
    for (int32_t k = 0; k < n; ++k)
        out[k] += log_rising_of_many(a[k], y) + stop[k] + y * more[k];
}
// out[k] += y log_rate[k] - rate[k] - rest
SKIHMM_CLONES static void fill_poisson(int32_t n, double y, double rest,
                                       const double *log_rate, const double *rate,
                                       double *out) {
    for (int32_t k = 0; k < n; ++k) out[k] += y * log_rate[k] - rate[k] - rest;
}

// y ~ Poisson(rate), rate ~ Gamma(shape, rate).
class PoissonLaw : public ColumnLaw {
  public:
    using ColumnLaw::ColumnLaw;
    enum { kShape, kRate, kHyperparameters };
    enum { kN, kSum, kAfter, kStop, kMore, kWidth };
    static constexpr bool kFillsDensities = true;
    double hyper[kHyperparameters];

    bool add(Column s, double y, double sign) const {
        s[kN] += sign;
        s[kSum] += sign * y;
        return true;    // Whole numbers: nothing is ever lost.
    }
    void update(Column s) const {
        const double rate = hyper[kRate] + s[kN];
        s[kAfter] = hyper[kShape] + s[kSum];
        s[kStop] = -s[kAfter] * std::log1p(1.0 / rate);
        s[kMore] = -std::log1p(rate);
    }
    bool is_sound(ConstColumn s) const { return s[kSum] >= 0.0 && s[kAfter] > 0.0; }
    double log_constant(double y) const { return -std::lgamma(y + 1.0); }
    double log_predictive(ConstColumn s, double y) const {
        return log_rising(s[kAfter], y) - std::lgamma(y + 1.0) + s[kStop] + y * s[kMore];
    }
    void fill(const double *s, int64_t stride, int32_t n, double y, double *out) const {
        const double *a = s + kAfter * stride, *stop = s + kStop * stride,
                     *more = s + kMore * stride;
        if (y <= 16.0) fill_few(n, static_cast<int32_t>(y), a, stop, more, out);
        else fill_many(n, y, a, stop, more, out);
        const double factorial = std::lgamma(y + 1.0);
        for (int32_t k = 0; k < n; ++k) out[k] -= factorial;
    }
    static double log_marginal(ConstColumn s, const double *h) {
        return log_rising(h[kShape], s[kSum]) - h[kShape] * std::log1p(s[kN] / h[kRate])
               - s[kSum] * std::log(h[kRate] + s[kN]);
    }
    // The logarithm of the rate, and the rate.
    void draw(ConstColumn s, Column p, bitgen_t *g) const {
        p[0] = draw_log_gamma(g, s[kAfter]) - std::log(hyper[kRate] + s[kN]);
        p[1] = std::exp(p[0]);
    }
    double log_density(ConstColumn p, double y) const {
        return y * p[0] - p[1] - std::lgamma(y + 1.0);
    }
    void fill_densities(const double *p, int64_t stride, int32_t n, double y,
                        double *out) const {
        fill_poisson(n, y, std::lgamma(y + 1.0), p, p + stride, out);
    }
    double emit(ConstColumn p, bitgen_t *g) const {
        return static_cast<double>(random_poisson(g, std::min(p[1], kLargestRate)));
    }
    double mean(ConstColumn s) const {
        return std::min(s[kAfter] / (hyper[kRate] + s[kN]), kLargestRate);
    }

  private:
    // Counts have to fit into 64 bits.
    static constexpr double kLargestRate = 9e18;
};

// ---- binary columns ------------------------------------------------------------------------

// out[k] += value[k]
SKIHMM_CLONES static void fill_sum(int32_t n, const double *value, double *out) {
    for (int32_t k = 0; k < n; ++k) out[k] += value[k];
}

// P(y = 1) ~ Beta(a, b).
class BernoulliLaw : public ColumnLaw {
  public:
    using ColumnLaw::ColumnLaw;
    enum { kA, kB, kHyperparameters };
    enum { kN, kOnes, kLogOne, kLogZero, kWidth };
    static constexpr bool kFillsDensities = true;
    double hyper[kHyperparameters];

    bool add(Column s, double y, double sign) const {
        s[kN] += sign;
        s[kOnes] += y > 0.5 ? sign : 0.0;
        return true;
    }
    void update(Column s) const {
        const double a = hyper[kA], b = hyper[kB], n = s[kN], ones = s[kOnes];
        s[kLogOne] = std::log((a + ones) / (a + b + n));
        s[kLogZero] = std::log((b + (n - ones)) / (a + b + n));
    }
    bool is_sound(ConstColumn s) const { return s[kOnes] >= 0.0 && s[kN] >= s[kOnes]; }
    double log_predictive(ConstColumn s, double y) const {
        return s[y > 0.5 ? kLogOne : kLogZero];
    }
    void fill(const double *s, int64_t stride, int32_t n, double y, double *out) const {
        fill_sum(n, s + (y > 0.5 ? kLogOne : kLogZero) * stride, out);
    }
    static double log_marginal(ConstColumn s, const double *h) {
        return log_rising(h[kA], s[kOnes]) + log_rising(h[kB], s[kN] - s[kOnes])
               - log_rising(h[kA] + h[kB], s[kN]);
    }
    // Logarithms of P(1) and P(0).
    void draw(ConstColumn s, Column p, bitgen_t *g) const {
        const double x = draw_log_gamma(g, hyper[kA] + s[kOnes]),
                     y = draw_log_gamma(g, hyper[kB] + (s[kN] - s[kOnes]));
        // log of x / (x + y) and of y / (x + y), from logs
        p[0] = -std::log1p(std::exp(y - x));
        p[1] = -std::log1p(std::exp(x - y));
        if (y - x > 700.0) p[0] = x - y;
        if (x - y > 700.0) p[1] = y - x;
    }
    double log_density(ConstColumn p, double y) const { return p[y > 0.5 ? 0 : 1]; }
    void fill_densities(const double *p, int64_t stride, int32_t n, double y,
                        double *out) const {
        fill_sum(n, p + (y > 0.5 ? 0 : 1) * stride, out);
    }
    double emit(ConstColumn p, bitgen_t *g) const {
        return random_standard_uniform(g) < std::exp(p[0]) ? 1.0 : 0.0;
    }
    double mean(ConstColumn s) const { return std::exp(s[kLogOne]); }
};

}  // namespace skihmm
