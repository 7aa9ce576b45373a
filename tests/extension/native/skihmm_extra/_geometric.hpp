// Geometric counts: failures before a success whose probability has a Beta prior.
#pragma once
#include <algorithm>
#include <cmath>

#include "_family.hpp"
#include "numpy/random/distributions.h"

// A state's numbers: how many observations, and their sum.
class GeometricFamily final : public skihmm::Family {
  public:
    GeometricFamily(double a, double b) : a_(a), b_(b) {
        n_columns = 1;
        width = 2;
        parameter_width = 1;
    }
    void reset(double *s, int64_t stride) const override { s[0] = s[stride] = 0.0; }
    bool is_missing(const double *y) const override { return std::isnan(y[0]); }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        if (is_missing(y)) return 0.0;
        const double a = a_ + s[0], b = b_ + s[stride];
        return log_beta(a + 1.0, b + y[0]) - log_beta(a, b);
    }
    void add(double *s, int64_t stride, const double *y) const override {
        s[0] += 1.0;
        s[stride] += y[0];
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        s[0] -= 1.0;
        s[stride] -= y[0];
        return true;    // whole numbers: nothing is lost
    }
    double log_marginal(const double *s, int64_t stride) const override {
        return log_beta(a_ + s[0], b_ + s[stride]) - log_beta(a_, b_);
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        for (int32_t k = 0; k < n; ++k) out[k] += log_predictive(table + k, stride, y);
    }
    bool is_sound(const double *s, int64_t stride) const override {
        return s[0] >= 0.0 && s[0] == std::floor(s[0]) && s[stride] >= 0.0
               && s[stride] < 1e15 && s[0] < 1e15;
    }

    // The one parameter is the probability of a success.
    void draw(const double *s, int64_t stride, double *p, int64_t,
              bitgen_t *g) const override {
        p[0] = std::max(random_beta(g, a_ + s[0], b_ + s[stride]), 1e-15);
    }
    double log_density(const double *p, int64_t, const double *y) const override {
        return is_missing(y) ? 0.0 : std::log(p[0]) + y[0] * std::log1p(-p[0]);
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        for (int32_t k = 0; k < n; ++k) out[k] += log_density(table + k, stride, y);
    }
    void emit(const double *p, int64_t, double *y, bitgen_t *g) const override {
        // (NumPy counts the success too.)
        y[0] = static_cast<double>(random_geometric(g, p[0]) - 1);
    }
    void mean(const double *s, int64_t stride, double *out) const override {
        out[0] = (b_ + s[stride]) / std::max(a_ + s[0] - 1.0, 1e-3);
    }

  private:
    static double log_beta(double a, double b) {
        return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
    }
    double a_, b_;
};
