// Laws of columns whose states have a mean each and share a dispersion: negative binomial, gamma,
// von Mises.
//
// Given the dispersion of its column the mean of a state has a conjugate prior and is integrated
// out.  The dispersion is a hyperparameter, drawn by slice sampling of the collapsed likelihood,
// with the prior Gamma(1/2, 1/2) in units of the data.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "_independent_columns.hpp"

namespace skihmm {


// log I0(x), the modified Bessel function of the first kind of order zero, x >= 0: the power
// series for small x, beyond it a polynomial, interpolated to 5e-15, of sqrt(x) exp(-x) I0(x).
constexpr double kSmallBessel = 8.0;
constexpr double kBesselTerms[] = {
    2.9161272227371995e-10,  2.4680814117585356e-10, -1.616985843467869e-09,
    -1.728949428070337e-09,  3.807683338221211e-09,  5.963814050789409e-09,
    -3.446943035094974e-09,  -1.2495743667865387e-08, -7.418849254224227e-09,
    7.223123526201611e-09,   2.1687170422075342e-08, 3.9398510746255664e-08,
    8.870662782101135e-08,   2.973510794783345e-07,  1.483848303223941e-06,
    1.1143034278141736e-05,  0.0001362160743873636,  0.0033605519836598726,
    0.40217650944500805};
// N numbers at once: out[l] += log I0(x[l]) of large x.
template <int N> SKIHMM_INLINE void add_large_bessel(const double *x, double *out) {
    double t[N], sum[N] = {};
    for (int l = 0; l < N; ++l) t[l] = 16.0 / x[l] - 1.0;
    for (const double term : kBesselTerms)
        for (int l = 0; l < N; ++l) sum[l] = sum[l] * t[l] + term;
    for (int l = 0; l < N; ++l) out[l] += x[l] + 0.5 * log_of(sum[l] * sum[l] / x[l]);
}
inline double log_bessel(double x) {
    double sum = 0.0;
    if (x >= kSmallBessel) {
        add_large_bessel<1>(&x, &sum);
        return sum;
    }
    const double q = 0.25 * x * x;
    sum = 1.0;
    for (int k = 24; k > 0; --k) sum = 1.0 + sum * (q * (1.0 / (k * k)));
    return log_of(sum);
}

// I1(x) / I0(x), by a continued fraction; of large x to the power 4 of 1 / x.
inline double bessel_ratio(double x) {
    if (x > 1e3) return 1.0 - (0.5 + (0.125 + (0.125 + 25.0 / 128.0 / x) / x) / x) / x;
    double ratio = 0.0;
    for (int k = 60 + static_cast<int>(2.0 * x); k > 0; --k) ratio = x / (2.0 * k + x * ratio);
    return ratio;
}

// ---- predictives of n states, added to out: as log_predictive of the laws below.

// Counts y <= 16, by the product of all (after + i) / (total + i), i < y.
SKIHMM_CLONES static void fill_ratios(int32_t n, int32_t y, const double *after,
                                      const double *total, const double *norm, double common,
                                      double *out) {
    for (int32_t from = 0; from < n; from += kLanes) {
        double ratio[kLanes];
        std::fill_n(ratio, kLanes, 1.0);
        for (int32_t i = 0; i < y; ++i)
            for (int32_t l = 0; l < kLanes; ++l)
                ratio[l] *= (after[from + l] + i) / (total[from + l] + i);
        for (int32_t l = 0; l < kLanes; ++l)
            out[from + l] += common + norm[from + l] + log_of(ratio[l]);
    }
}
// fill_rising for y > 16.
SKIHMM_CLONES static void fill_rising(int32_t n, double y, const double *after,
                                      const double *total, const double *norm, double common,
                                      double *out) {
    for (int32_t k = 0; k < n; ++k)
        out[k] += common + norm[k]
                  + (log_rising_of_many(after[k], y) - log_rising_of_many(total[k], y));
}
SKIHMM_CLONES static void fill_beta_prime(int32_t n, double y, const double *rate,
                                          const double *power, const double *norm,
                                          double common, double *out) {
    for (int32_t k = 0; k < n; ++k)
        out[k] += common + norm[k] - power[k] * log1p_of(y / rate[k]);
}
SKIHMM_CLONES static void fill_large_bessel(int32_t n, const double *x, const double *norm,
                                            double common, double *out) {
    for (int32_t from = 0; from < n; from += kLanes) {
        double large[kLanes];
        for (int32_t l = 0; l < kLanes; ++l) {
            large[l] = std::max(x[from + l], kSmallBessel);
            out[from + l] += common + norm[from + l];
        }
        add_large_bessel<kLanes>(large, out + from);
    }
}

// ---- laws of one column --------------------------------------------------------------------

// y ~ NegativeBinomial(mean mu, variance mu + dispersion mu^2).  With r = 1/dispersion and the
// probability q = r/(r + mu) the prior is q ~ Beta(rate r, shape): for small dispersions y is
// Poisson with the rate mu ~ Gamma(shape, rate).
class NegativeBinomialLaw : public ColumnLaw {
  public:
    using ColumnLaw::ColumnLaw;
    enum { kShape, kRate, kDispersion, kHyperparameters };
    enum { kN, kSum, kRest, kAfter, kTotal, kNorm, kWidth };
    // The statistic kRest depends on the dispersion.
    static constexpr bool kAdapts = false;
    double hyper[kHyperparameters];

    void observe(const double *values, int64_t stride, int64_t n) {
        values_ = values;
        stride_ = stride;
        n_ = n;
    }
    void prepare() {
        r_ = 1.0 / hyper[kDispersion];
        for (int32_t y = 0; y < kTable; ++y) rising_[y] = log_rising(r_, y);
    }
    bool add(Column s, double y, double sign) const {
        s[kN] += sign;
        s[kSum] += sign * y;
        s[kRest] += sign * rest(y);
        return true;    // Counts are whole numbers.
    }
    void update(Column s) const {
        const double a = r_ * (hyper[kRate] + s[kN]);
        s[kAfter] = hyper[kShape] + s[kSum];
        s[kTotal] = a + s[kAfter] + r_;
        // The form with the smaller terms; both are equal.
        s[kNorm] = r_ < s[kAfter]
                       ? log_rising(a, r_) - log_rising(a + s[kAfter], r_)
                       : log_rising(a, s[kAfter]) - log_rising(a + r_, s[kAfter]);
    }
    bool is_sound(ConstColumn s) const { return s[kSum] >= 0.0 && s[kAfter] > 0.0; }
    double log_constant(double y) const { return -std::lgamma(y + 1.0); }
    // The part of log p(y) that all states share; `y` prepared for the functions below.
    double common(double y) const { return rest(y) - std::lgamma(y + 1.0); }
    double log_predictive(ConstColumn s, double y) const {
        const double after = s[kAfter], total = s[kTotal];
        if (y > 16.0 || total > 1e15)
            return s[kNorm] + log_rising(after, y) - log_rising(total, y);
        double ratio = 1.0;
        for (int32_t i = 0; i < y; ++i) ratio *= (after + i) / (total + i);
        return s[kNorm] + std::log(ratio);
    }
    void fill(const double *s, int64_t stride, int32_t n, double y, double *out) const {
        const double *after = s + kAfter * stride, *total = s + kTotal * stride,
                     *norm = s + kNorm * stride;
        if (*std::max_element(total, total + n) > 1e15) {
            for (int32_t k = 0; k < n; ++k)
                out[k] += common(y) + log_predictive({s + k, stride}, y);
        } else if (y > 16.0) {
            fill_rising(n, y, after, total, norm, common(y), out);
        } else {
            fill_ratios(n, static_cast<int32_t>(y), after, total, norm, common(y), out);
        }
    }
    static double log_marginal(ConstColumn s, const double *h) {
        const double r = 1.0 / h[kDispersion], a = r * h[kRate], b = h[kShape];
        const double n = r * s[kN];
        return log_rising(b, s[kSum]) - log_rising(a + b + n, s[kSum]) + log_rising(a, b)
               - log_rising(a + n, b);
    }
    double log_rest(ConstColumn s) const { return s[kRest]; }
    double log_likelihood(const double *h) {
        count();
        double lp = 0.0;
        for (const auto &pair : observed_)
            lp += pair.second * log_rising(1.0 / h[kDispersion], pair.first);
        return lp;
    }
    // Logarithms of q and 1 - q.
    void draw(ConstColumn s, Column p, bitgen_t *g) const {
        const double a = draw_log_gamma(g, r_ * (hyper[kRate] + s[kN]));
        const double b = draw_log_gamma(g, s[kAfter]);
        const double larger = std::max(a, b);
        const double total = larger + std::log1p(std::exp(std::min(a, b) - larger));
        p[0] = a - total;
        p[1] = b - total;
    }
    double log_density(ConstColumn p, double y) const {
        return r_ * p[0] + (y > 0.0 ? y * p[1] : 0.0);
    }
    double emit(ConstColumn p, bitgen_t *g) const {
        const double log_mean = draw_log_gamma(g, r_) + p[1] - p[0];
        return static_cast<double>(
            random_poisson(g, log_mean < kLargestLog ? std::exp(log_mean) : kLargestMean));
    }
    double mean(ConstColumn s) const {
        const double a = r_ * (hyper[kRate] + s[kN]);
        // Without an expectation the quotient of the expectations of 1 - q and q.
        return std::min(r_ * s[kAfter] / (a > 1.0 ? a - 1.0 : a), kLargestMean);
    }

  private:
    static constexpr int32_t kTable = 256;
    // Counts have to fit into 64 bits.
    static constexpr double kLargestMean = 9e18, kLargestLog = 43.6;

    // Values of the column with their frequencies; only chains that draw hyperparameters need
    // them.
    void count() {
        if (!observed_.empty()) return;
        std::map<double, double> counts;
        for (int64_t t = 0; t < n_; ++t)
            if (!std::isnan(values_[t * stride_])) ++counts[values_[t * stride_]];
        observed_.assign(counts.begin(), counts.end());
    }
    double rest(double y) const {
        return y < kTable ? rising_[static_cast<int32_t>(y)] : log_rising(r_, y);
    }
    double r_ = 1.0;
    double rising_[kTable];
    const double *values_ = nullptr;    // of all steps, stride_ apart
    int64_t stride_ = 0, n_ = 0;
    std::vector<std::pair<double, double>> observed_;
};

// y ~ Gamma(shape c, rate c/mu) with c = 1/dispersion: variance dispersion mu^2.  The prior is
// 1/mu ~ Gamma(shape, scale).
class GammaLaw : public ColumnLaw {
  public:
    using ColumnLaw::ColumnLaw;
    enum { kShape, kScale, kDispersion, kHyperparameters };
    enum { kN, kSum, kLogs, kPower, kRate, kNorm, kWidth };
    // Terms of the size of 1/dispersion nearly cancel: for less, few digits are left.
    static constexpr double kLeastDispersion = 1e-10;
    double hyper[kHyperparameters];

    void prepare() {
        c_ = 1.0 / hyper[kDispersion];
        log_gamma_ = std::lgamma(c_);
    }
    bool add(Column s, double y, double sign) const {
        const double before = s[kSum];
        s[kN] += sign;
        s[kSum] += sign * y;
        s[kLogs] += sign * std::log(y);
        return s[kSum] >= kLeastShare * before;
    }
    double cancelled(ConstColumn) const { return c_; }
    void update(Column s) const {
        const double a = hyper[kShape] + c_ * s[kN];
        s[kPower] = a + c_;
        s[kRate] = hyper[kScale] * hyper[kDispersion] + s[kSum];
        s[kNorm] = log_rising(a, c_) - c_ * std::log(s[kRate]);
    }
    bool is_sound(ConstColumn s) const { return s[kSum] >= 0.0 && s[kRate] > 0.0; }
    double common(double y) const { return (c_ - 1.0) * std::log(y) - log_gamma_; }
    double log_predictive(ConstColumn s, double y) const {
        return s[kNorm] - s[kPower] * log1p_of(y / s[kRate]);
    }
    void fill(const double *s, int64_t stride, int32_t n, double y, double *out) const {
        fill_beta_prime(n, y, s + kRate * stride, s + kPower * stride, s + kNorm * stride,
                        common(y), out);
    }
    static double log_marginal(ConstColumn s, const double *h) {
        const double c = 1.0 / h[kDispersion], rate = h[kScale] * h[kDispersion];
        return log_rising(h[kShape], c * s[kN]) - h[kShape] * std::log1p(s[kSum] / rate)
               - s[kN] * (c * std::log(rate + s[kSum]) + std::lgamma(c))
               + (c - 1.0) * s[kLogs];
    }
    // The rate c/mu and its logarithm.
    void draw(ConstColumn s, Column p, bitgen_t *g) const {
        p[0] = draw_log_gamma(g, hyper[kShape] + c_ * s[kN]) - std::log(s[kRate]);
        p[1] = std::exp(p[0]);
    }
    double log_density(ConstColumn p, double y) const {
        return c_ * p[0] - p[1] * y;
    }
    double emit(ConstColumn p, bitgen_t *g) const {
        return std::exp(std::min(std::max(draw_log_gamma(g, c_) - p[0], -700.0), 700.0));
    }
    double mean(ConstColumn s) const {
        const double a = hyper[kShape] + c_ * s[kN];
        // Without an expectation the inverse of the expected rate.
        return c_ * s[kRate] / (a > 1.0 ? a - 1.0 : a);
    }

  private:
    double c_ = 1.0, log_gamma_ = 0.0;
};

// 2 pi y/period ~ VonMises(mu, 1/dispersion), mu uniform on the circle.
class VonMisesLaw : public ColumnLaw {
  public:
    enum { kDispersion, kHyperparameters };
    enum { kN, kCos, kSin, kNorm, kWidth };
    static constexpr bool kIsCircular = true;
    double hyper[kHyperparameters];

    explicit VonMisesLaw(const FamilySetting &setting)
        : ColumnLaw(setting), period_(setting.period), frequency_(2.0 * kPi / period_) {}
    void prepare() {
        kappa_ = 1.0 / hyper[kDispersion];
        log_norm_ = std::log(period_) + log_bessel(kappa_);
    }
    bool add(Column s, double y, double sign) const {
        s[kN] += sign;
        s[kCos] += sign * std::cos(frequency_ * y);
        s[kSin] += sign * std::sin(frequency_ * y);
        return true;
    }
    double cancelled(ConstColumn s) const { return kappa_ * s[kN]; }
    void update(Column s) const { s[kNorm] = -log_bessel(kappa_ * length(s[kCos], s[kSin])); }
    bool is_sound(ConstColumn s) const {
        return length(s[kCos], s[kSin]) <= s[kN] * (1.0 + 1e-6) + 1e-6;
    }
    double common(double) const { return -log_norm_; }
    double log_predictive(ConstColumn s, double y) const {
        const double c = s[kCos] + std::cos(frequency_ * y);
        const double d = s[kSin] + std::sin(frequency_ * y);
        return s[kNorm] + log_bessel(kappa_ * length(c, d));
    }
    void fill(const double *s, int64_t stride, int32_t n, double y, double *out) const {
        lengths_.resize(stride, kSmallBessel);
        const double c = std::cos(frequency_ * y), d = std::sin(frequency_ * y);
        // (No compiler makes vectors of roots that may set errno.)
        for (int32_t k = 0; k < n; ++k)
            lengths_[k] = kappa_ * length(s[kCos * stride + k] + c, s[kSin * stride + k] + d);
        fill_large_bessel(n, lengths_.data(), s + kNorm * stride, common(y), out);
        // Free slots have the same length.
        double last = -1.0, rest = 0.0;
        for (int32_t k = 0; k < n; ++k) {
            if (lengths_[k] >= kSmallBessel) continue;
            if (lengths_[k] != last) {
                last = lengths_[k];
                rest = log_bessel(last) - log_small_;
            }
            out[k] += rest;
        }
    }
    static double log_marginal(ConstColumn s, const double *h) {
        const double kappa = 1.0 / h[kDispersion];
        return log_bessel(kappa * length(s[kCos], s[kSin])) - s[kN] * log_bessel(kappa);
    }
    double log_rest(ConstColumn s) const { return -s[kN] * std::log(period_); }
    // The mean direction times kappa, as a vector.
    void draw(ConstColumn s, Column p, bitgen_t *g) const {
        const double mu = random_vonmises(g, direction(s), kappa_ * length(s[kCos], s[kSin]));
        p[0] = kappa_ * std::cos(mu);
        p[1] = kappa_ * std::sin(mu);
    }
    double log_density(ConstColumn p, double y) const {
        return p[0] * std::cos(frequency_ * y) + p[1] * std::sin(frequency_ * y);
    }
    double emit(ConstColumn p, bitgen_t *g) const {
        return random_vonmises(g, std::atan2(p[1], p[0]), kappa_) / frequency_;
    }
    double mean(ConstColumn s) const { return direction(s) / frequency_; }
    // Of an angle about its mean, and of the mean in its posterior.
    void fill_vector(ConstColumn s, double *out) const {
        const double size =
            bessel_ratio(kappa_) * bessel_ratio(kappa_ * length(s[kCos], s[kSin]));
        out[0] = size * std::cos(direction(s));
        out[1] = size * std::sin(direction(s));
    }

  private:
    static double direction(ConstColumn s) {
        return s[kN] > 0.0 ? std::atan2(s[kSin], s[kCos]) : 0.0;
    }
    static double length(double c, double s) { return std::sqrt(c * c + s * s); }

    double kappa_ = 1.0, log_norm_ = 0.0, period_, frequency_;
    double log_small_ = log_bessel(kSmallBessel);
    mutable std::vector<double> lengths_;       // scratch
};

}  // namespace skihmm
