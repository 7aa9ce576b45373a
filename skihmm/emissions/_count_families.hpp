// Families of independent counts and binary columns: Poisson and Bernoulli.
//
// Formulas: A. Gelman et al., "Bayesian Data Analysis", 3rd edition, 2013, chapter 2.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_family.hpp"
#include "_family_parts.hpp"
#include "_hyperparameters.hpp"
#include "_random.hpp"

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
// As fill_few for y > 16.
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

// rate ~ Gamma(shape, rate), per column.  Hyperparameters: the shapes and the rates of all
// columns; drawn ones have the prior Gamma(1/2, 1/2), the rate in units of 1 / (mean of the
// column).
class GammaPoissonFamily final : public Family {
  public:
    GammaPoissonFamily(int32_t d, const double *shape, const double *rate,
                       const double *means, bool draws_shape, bool draws_rate)
        : shape_(shape, shape + d), rate_(rate, rate + d), means_(means, means + d),
          draws_shape_(draws_shape), draws_rate_(draws_rate) {
        n_columns = d;
        is_concurrent = true;
        width = kWidth * d;
        parameter_width = 2 * d;
        n_hyperparameters = 2 * d;
        draws_hyperparameters = draws_shape || draws_rate;
        n_expected = d;
    }
    void reset(double *s, int64_t stride) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            s[kN * stride] = s[kSum * stride] = 0.0;
            update(s, stride, c);
        }
    }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride)
            if (!std::isnan(y[c]))
                lp += log_rising(s[kShape * stride], y[c]) - std::lgamma(y[c] + 1.0)
                      + s[kStop * stride] + y[c] * s[kMore * stride];
        return lp;
    }
    void add(double *s, int64_t stride, const double *y) const override {
        move(s, stride, y, 1.0);
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        // Whole numbers: nothing is ever lost.
        move(s, stride, y, -1.0);
        return true;
    }
    double log_constant(const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c)
            if (!std::isnan(y[c])) lp -= std::lgamma(y[c] + 1.0);
        return lp;
    }
    double log_marginal(const double *s, int64_t stride) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            lp += log_marginal(s[kN * stride], s[kSum * stride], shape_[c], rate_[c]);
        }
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, table += kWidth * stride) {
            if (std::isnan(y[c])) continue;
            const double *a = table + kShape * stride, *stop = table + kStop * stride,
                         *more = table + kMore * stride;
            if (y[c] <= 16.0) fill_few(n, static_cast<int32_t>(y[c]), a, stop, more, out);
            else fill_many(n, y[c], a, stop, more, out);
            const double factorial = std::lgamma(y[c] + 1.0);
            for (int32_t k = 0; k < n; ++k) out[k] -= factorial;
        }
    }
    bool is_sound(const double *s, int64_t stride) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            for (int32_t i = 0; i < kWidth; ++i)
                if (!std::isfinite(s[i * stride])) return false;
            if (!(s[kN * stride] >= 0.0 && s[kSum * stride] >= 0.0 && s[kShape * stride] > 0.0))
                return false;
        }
        return true;
    }
    void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
              bitgen_t *g) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride, p += 2 * p_stride) {
            p[0] = draw_log_gamma(g, s[kShape * stride]) - std::log(rate_[c] + s[kN * stride]);
            p[p_stride] = std::exp(p[0]);
        }
    }
    double log_density(const double *p, int64_t stride, const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, p += 2 * stride)
            if (!std::isnan(y[c])) lp += y[c] * p[0] - p[stride] - std::lgamma(y[c] + 1.0);
        return lp;
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, table += 2 * stride)
            if (!std::isnan(y[c]))
                fill_poisson(n, y[c], std::lgamma(y[c] + 1.0), table, table + stride, out);
    }
    void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const override {
        for (int32_t c = 0; c < n_columns; ++c, p += 2 * stride)
            y[c] = static_cast<double>(random_poisson(g, std::min(p[stride], kLargestRate)));
    }
    void mean(const double *s, int64_t stride, double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride)
            out[c] = std::min(s[kShape * stride] / (rate_[c] + s[kN * stride]), kLargestRate);
    }
    void expect(const double *s, int64_t stride, double *out) const override {
        mean(s, stride, out);
    }
    void read_hyperparameters(double *out) const override {
        out = std::copy(shape_.begin(), shape_.end(), out);
        std::copy(rate_.begin(), rate_.end(), out);
    }
    bool set_hyperparameters(const double *in) override {
        if (!all_positive(in, n_hyperparameters)) return false;
        std::copy_n(in, n_columns, shape_.begin());
        std::copy_n(in + n_columns, n_columns, rate_.begin());
        return true;
    }
    void draw_hyperparameters(const double *table, int64_t stride, const int64_t *places,
                              int32_t n, bitgen_t *g) override {
        for (int32_t c = 0; c < n_columns; ++c, table += kWidth * stride)
            draw_pair(g, &shape_[c], &rate_[c], draws_shape_, draws_rate_, 1.0, 1.0 / means_[c],
                      [&](double a, double b) {
                          double lp = 0.0;
                          for (int32_t k = 0; k < n; ++k)
                              lp += log_marginal(table[kN * stride + places[k]],
                                                 table[kSum * stride + places[k]], a, b);
                          return lp;
                      });
    }
    bool refresh(double *s, int64_t stride) const override {
        for (int32_t c = 0; c < n_columns; ++c) update(s + c * kWidth * stride, stride, c);
        return true;
    }

  private:
    static double log_marginal(double n, double sum, double shape, double rate) {
        return log_rising(shape, sum) - shape * std::log1p(n / rate) - sum * std::log(rate + n);
    }
    enum { kN, kSum, kShape, kStop, kMore, kWidth };
    // Counts have to fit into 64 bits.
    static constexpr double kLargestRate = 9e18;

    void move(double *s, int64_t stride, const double *y, double sign) const {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            if (std::isnan(y[c])) continue;
            s[kN * stride] += sign;
            s[kSum * stride] += sign * y[c];
            update(s, stride, c);
        }
    }
    void update(double *s, int64_t stride, int32_t c) const {
        const double rate = rate_[c] + s[kN * stride];
        s[kShape * stride] = shape_[c] + s[kSum * stride];
        s[kStop * stride] = -s[kShape * stride] * std::log1p(1.0 / rate);
        s[kMore * stride] = -std::log1p(rate);
    }

    std::vector<double> shape_, rate_, means_;
    bool draws_shape_, draws_rate_;
};

// ---- binary columns ------------------------------------------------------------------------

// out[k] += value[k]
SKIHMM_CLONES static void fill_sum(int32_t n, const double *value, double *out) {
    for (int32_t k = 0; k < n; ++k) out[k] += value[k];
}

// P(1) ~ Beta(a, b), per column.  Hyperparameters: a and b of all columns; drawn ones have the
// prior Gamma(1/2, 1/2).
class BetaBernoulliFamily final : public Family {
  public:
    BetaBernoulliFamily(int32_t d, const double *a, const double *b, bool draws_a,
                        bool draws_b)
        : a_(a, a + d), b_(b, b + d), draws_a_(draws_a), draws_b_(draws_b) {
        n_columns = d;
        is_concurrent = true;
        width = kWidth * d;
        parameter_width = 2 * d;
        n_hyperparameters = 2 * d;
        draws_hyperparameters = draws_a || draws_b;
        n_expected = d;
    }
    void reset(double *s, int64_t stride) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            s[kN * stride] = s[kOnes * stride] = 0.0;
            update(s, stride, c);
        }
    }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride)
            if (!std::isnan(y[c])) lp += s[(y[c] > 0.5 ? kLogOne : kLogZero) * stride];
        return lp;
    }
    void add(double *s, int64_t stride, const double *y) const override {
        move(s, stride, y, 1.0);
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        move(s, stride, y, -1.0);
        return true;
    }
    double log_marginal(const double *s, int64_t stride) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            lp += log_marginal(s[kN * stride], s[kOnes * stride], a_[c], b_[c]);
        }
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, table += kWidth * stride)
            if (!std::isnan(y[c]))
                fill_sum(n, table + (y[c] > 0.5 ? kLogOne : kLogZero) * stride, out);
    }
    bool is_sound(const double *s, int64_t stride) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            for (int32_t i = 0; i < kWidth; ++i)
                if (!std::isfinite(s[i * stride])) return false;
            if (!(s[kOnes * stride] >= 0.0 && s[kN * stride] >= s[kOnes * stride])) return false;
        }
        return true;
    }
    void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
              bitgen_t *g) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride, p += 2 * p_stride) {
            const double ones = s[kOnes * stride], n = s[kN * stride];
            const double x = draw_log_gamma(g, a_[c] + ones),
                         y = draw_log_gamma(g, b_[c] + (n - ones));
            // log of x / (x + y) and of y / (x + y), from logs
            p[0] = -std::log1p(std::exp(y - x));
            p[p_stride] = -std::log1p(std::exp(x - y));
            if (y - x > 700.0) p[0] = x - y;
            if (x - y > 700.0) p[p_stride] = y - x;
        }
    }
    double log_density(const double *p, int64_t stride, const double *y) const override {
        double lp = 0.0;
        for (int32_t c = 0; c < n_columns; ++c, p += 2 * stride)
            if (!std::isnan(y[c])) lp += p[(y[c] > 0.5 ? 0 : 1) * stride];
        return lp;
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, table += 2 * stride)
            if (!std::isnan(y[c])) fill_sum(n, table + (y[c] > 0.5 ? 0 : 1) * stride, out);
    }
    void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const override {
        for (int32_t c = 0; c < n_columns; ++c, p += 2 * stride)
            y[c] = random_standard_uniform(g) < std::exp(p[0]) ? 1.0 : 0.0;
    }
    void mean(const double *s, int64_t stride, double *out) const override {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride)
            out[c] = std::exp(s[kLogOne * stride]);
    }
    void expect(const double *s, int64_t stride, double *out) const override {
        mean(s, stride, out);
    }
    void read_hyperparameters(double *out) const override {
        out = std::copy(a_.begin(), a_.end(), out);
        std::copy(b_.begin(), b_.end(), out);
    }
    bool set_hyperparameters(const double *in) override {
        if (!all_positive(in, n_hyperparameters)) return false;
        std::copy_n(in, n_columns, a_.begin());
        std::copy_n(in + n_columns, n_columns, b_.begin());
        return true;
    }
    void draw_hyperparameters(const double *table, int64_t stride, const int64_t *places,
                              int32_t n, bitgen_t *g) override {
        for (int32_t c = 0; c < n_columns; ++c, table += kWidth * stride)
            draw_pair(g, &a_[c], &b_[c], draws_a_, draws_b_, 1.0, 1.0, [&](double a, double b) {
                double lp = 0.0;
                for (int32_t k = 0; k < n; ++k)
                    lp += log_marginal(table[kN * stride + places[k]],
                                       table[kOnes * stride + places[k]], a, b);
                return lp;
            });
    }
    bool refresh(double *s, int64_t stride) const override {
        for (int32_t c = 0; c < n_columns; ++c) update(s + c * kWidth * stride, stride, c);
        return true;
    }

  private:
    static double log_marginal(double n, double ones, double a, double b) {
        return log_rising(a, ones) + log_rising(b, n - ones) - log_rising(a + b, n);
    }
    enum { kN, kOnes, kLogOne, kLogZero, kWidth };

    void move(double *s, int64_t stride, const double *y, double sign) const {
        for (int32_t c = 0; c < n_columns; ++c, s += kWidth * stride) {
            if (std::isnan(y[c])) continue;
            s[kN * stride] += sign;
            s[kOnes * stride] += y[c] > 0.5 ? sign : 0.0;
            update(s, stride, c);
        }
    }
    void update(double *s, int64_t stride, int32_t c) const {
        const double n = s[kN * stride], ones = s[kOnes * stride];
        s[kLogOne * stride] = std::log((a_[c] + ones) / (a_[c] + b_[c] + n));
        s[kLogZero * stride] = std::log((b_[c] + (n - ones)) / (a_[c] + b_[c] + n));
    }

    std::vector<double> a_, b_;
    bool draws_a_, draws_b_;
};

}  // namespace skihmm
