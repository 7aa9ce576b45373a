// The Gaussian law of a column, and the family of independent Gaussian columns.
//
// Formulas: K. P. Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007; A. Gelman
// et al., "Bayesian Data Analysis", 3rd edition, 2013, chapter 3.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "_independent_columns.hpp"

namespace skihmm {

// Densities with means and variances integrated out:
// out[k] += norm[k] - power[k] log(1 + (y - location[k])^2 inverse[k])
SKIHMM_CLONES static void fill_integrated(int32_t n, double y, const double *location,
                                          const double *power, const double *inverse,
                                          const double *norm, double *out) {
    for (int32_t k = 0; k < n; ++k) {
        const double d = y - location[k];
        out[k] += norm[k] - power[k] * log1p_of(d * d * inverse[k]);
    }
}
// Statistics of a column: count, mean and sum of squared deviations; then the predictive
// distribution: norm - power log(1 + (y - location)^2 inverse).
struct NormalColumn {
    enum { kN, kMean, kSquares, kLocation, kPower, kInverse, kNorm, kWidth };
    // Beyond, a product of all columns' 1 + x has lost digits that the power multiplies.
    static constexpr double kMostPower = 1048576.0;     // 2^20
};
// fill_integrated for all observed columns of y, whose powers are the same unless the state has
// rows with missing entries: then one logarithm serves for all columns.  Sixteen states at a time.
SKIHMM_CLONES static void fill_integrated_columns(int32_t n, int64_t stride, int32_t d,
                                                  const double *y, const double *table,
                                                  double *out) {
    using Column = NormalColumn;
    for (int32_t from = 0; from < n; from += kLanes) {
        double m[kLanes], e[kLanes] = {}, norm[kLanes] = {}, first[kLanes], other[kLanes] = {};
        std::fill_n(m, kLanes, 1.0);
        bool is_first = true;
        const double *s = table + from;
        for (int32_t c = 0; c < d; ++c, s += Column::kWidth * stride) {
            if (std::isnan(y[c])) continue;
            const double *location = s + Column::kLocation * stride,
                         *power = s + Column::kPower * stride,
                         *inverse = s + Column::kInverse * stride,
                         *norms = s + Column::kNorm * stride;
            if (is_first) std::copy_n(power, kLanes, first);
            is_first = false;
            for (int32_t l = 0; l < kLanes; ++l) {
                const double off = y[c] - location[l];
                LogProduct::multiply(off * off * inverse[l], &m[l], &e[l]);
                norm[l] += norms[l];
                other[l] = std::max(other[l], std::fabs(power[l] - first[l]));
            }
        }
        if (is_first) return;
        if (*std::max_element(other, other + kLanes) == 0.0
            && *std::max_element(first, first + kLanes) <= Column::kMostPower) {
            for (int32_t l = 0; l < kLanes; ++l)
                out[from + l] += norm[l] - first[l] * log_of_parts(m[l] - 1.0, e[l]);
            continue;
        }
        s = table + from;
        for (int32_t c = 0; c < d; ++c, s += Column::kWidth * stride)
            if (!std::isnan(y[c]))
                fill_integrated(kLanes, y[c], s + Column::kLocation * stride,
                                s + Column::kPower * stride, s + Column::kInverse * stride,
                                s + Column::kNorm * stride, out + from);
    }
}
// out[k] += norm[k] - (y - location[k])^2 inverse[k]
SKIHMM_CLONES static void fill_normal(int32_t n, double y, const double *location,
                                      const double *inverse, const double *norm,
                                      double *out) {
    for (int32_t k = 0; k < n; ++k) {
        const double d = y - location[k];
        out[k] += norm[k] - d * d * inverse[k];
    }
}

// y ~ N(mu, sigma^2), sigma^2 ~ InvGamma(shape, scale), mu | sigma^2 ~ N(mean, sigma^2 / strength).
class NormalLaw : public ColumnLaw, public NormalColumn {
  public:
    enum { kPriorMean, kStrength, kScale, kHyperparameters };
    static constexpr int32_t kParameters = 3, kExpected = 2, kSigned = 1;
    static constexpr bool kFillsDensities = true;
    const double shape;
    double hyper[kHyperparameters];

    explicit NormalLaw(const FamilySetting &setting)
        : ColumnLaw(setting), shape(setting.shape) {
        auto table = std::make_shared<RisingTable>();
        table->configure(shape, 0.5, 0.5, setting.n_steps);
        ratio_ = table;
    }
    bool add(Column s, double y, double sign) const {
        const double n = s[kN] + sign, mean = s[kMean];
        if (sign > 0.0) {
            s[kN] = n;
            s[kMean] += (y - mean) / n;
            s[kSquares] += (y - mean) * (y - s[kMean]);
            return true;
        }
        const double before = posterior_scale(s);
        s[kN] = n;
        s[kMean] = mean - (y - mean) / n;
        s[kSquares] -= (y - mean) * (y - s[kMean]);
        // The sum of squares of a single value is exactly zero.
        if (n == 1.0 || s[kSquares] < 0.0) s[kSquares] = 0.0;
        return posterior_scale(s) >= kLeastShare * before;
    }
    // Remove n values, every width-th number at y, NaN if missing.  Given the rest their density is
    // exp(lp) over the root of `strengths` and the power, shape + kN / 2, of `growth`: strengths
    // and growth are multiplied, and lp is added to.  False if digits are lost.
    bool remove(Column s, const double *y, int64_t width, int64_t n, LogProduct *growth,
                LogProduct *strengths, double *lp) const {
        const double all = s[kN], mean = s[kMean], before = posterior_scale(s);
        double m = 0.0, sum = 0.0, squares = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            const double d = y[i * width] - mean;
            if (std::isnan(d)) continue;
            m += 1.0;
            sum += d;
            squares += d * d;
        }
        const double rest = s[kN] = all - m;
        s[kMean] = rest == 0.0 ? 0.0 : mean - sum / rest;
        s[kSquares] -= squares + sum * sum / rest;
        if (rest <= 1.0 || s[kSquares] < 0.0) s[kSquares] = 0.0;
        const double after = posterior_scale(s);
        update(s);
        growth->multiply((before - after) / after);
        strengths->multiply(m / (hyper[kStrength] + rest));
        for (double i = rest; i < all; i += 1.0) *lp += (*ratio_)(i);
        *lp -= 0.5 * m * (kLog2Pi + std::log(after));
        return after >= kLeastShare * before;
    }
    // Set the predictive distribution from count, mean and squares.
    void update(Column s) const {
        const double n = s[kN], strength = hyper[kStrength] + n, mean = hyper[kPriorMean];
        const double spread = 2.0 * posterior_scale(s) * (strength + 1.0) / strength;
        s[kLocation] = n == 0.0 ? mean : mean + n * (s[kMean] - mean) / strength;
        s[kPower] = shape + 0.5 * n + 0.5;
        s[kInverse] = 1.0 / spread;
        s[kNorm] = (*ratio_)(n) - 0.5 * (kLogPi + std::log(spread));
    }
    bool is_sound(ConstColumn s) const {
        return s[kSquares] >= 0.0 && s[kInverse] > 0.0 && s[kPower] > 0.0;
    }
    double log_predictive(ConstColumn s, double y) const {
        const double d = y - s[kLocation];
        return s[kNorm] - s[kPower] * log1p_of(d * d * s[kInverse]);
    }
    void fill(const double *s, int64_t stride, int32_t n, double y, double *out) const {
        fill_integrated(n, y, s + kLocation * stride, s + kPower * stride, s + kInverse * stride,
                        s + kNorm * stride, out);
    }
    double log_marginal(ConstColumn s, const double *h) const {
        const double n = s[kN], prior = h[kScale];
        if (n == 0.0) return 0.0;
        const double more = added_scale(s, h), scale = prior + more;
        // log1p: beside a large shape and scale the observations add little.
        const double growth = more < prior ? std::log1p(more / prior)
                                           : std::log(scale) - std::log(prior);
        return log_rising(shape, n / 2.0) - n / 2.0 * kLog2Pi
               - 0.5 * std::log1p(n / h[kStrength]) - shape * growth - n / 2.0 * std::log(scale);
    }
    // Mean, 1 / (2 variance) and the norm of the density.
    void draw(ConstColumn s, Column p, bitgen_t *g) const {
        const double n = s[kN];
        const double log_variance = std::log(posterior_scale(s))
                                    - draw_log_gamma(g, shape + n / 2.0);
        const double deviation = std::exp(0.5 * log_variance);
        p[0] = s[kLocation]
               + deviation / std::sqrt(hyper[kStrength] + n) * random_standard_normal(g);
        p[1] = 0.5 * std::exp(-log_variance);
        p[2] = -0.5 * (kLog2Pi + log_variance);
    }
    double log_density(ConstColumn p, double y) const {
        const double d = y - p[0];
        return p[2] - d * d * p[1];
    }
    void fill_densities(const double *p, int64_t stride, int32_t n, double y,
                        double *out) const {
        fill_normal(n, y, p, p + stride, p + 2 * stride, out);
    }
    double emit(ConstColumn p, bitgen_t *g) const {
        return p[0] + random_standard_normal(g) / std::sqrt(2.0 * p[1]);
    }
    double mean(ConstColumn s) const { return s[kLocation]; }
    double variance(ConstColumn s) const {
        const double rest = shape + 0.5 * s[kN] - 1.0;
        return rest > 0.0 ? posterior_scale(s) / rest : INFINITY;
    }

  private:
    // Contribution of the observations to the scale.
    static double added_scale(ConstColumn s, const double *h) {
        const double n = s[kN], off = s[kMean] - h[kPriorMean];
        if (n == 0.0) return 0.0;
        return 0.5 * s[kSquares] + 0.5 * h[kStrength] * n * off * off / (h[kStrength] + n);
    }
    double posterior_scale(ConstColumn s) const { return hyper[kScale] + added_scale(s, hyper); }

    std::shared_ptr<const RisingTable> ratio_;      // of all columns
};

class NormalInverseGammaFamily final : public IndependentColumns<NormalLaw, LinearFamily> {
  public:
    explicit NormalInverseGammaFamily(const FamilySetting &setting) : IndependentColumns(setting) {
        is_by_column = true;
    }
    void fill_coefficients(const double *p, double *out) const override {
        std::fill_n(out, n_columns * (1 + n_columns), 0.0);
        for (int32_t c = 0; c < n_columns; ++c, p += 3, out += 1 + n_columns) {
            out[1 + c] = std::sqrt(2.0 * p[1]);
            out[0] = -out[1 + c] * p[0];
        }
    }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        // One logarithm for columns of the same power.
        using Law = NormalLaw;
        double lp = 0.0, power = 0.0;
        LogProduct product;
        for (int32_t c = 0; c < n_columns; ++c, s += Law::kWidth * stride) {
            if (std::isnan(y[c])) continue;
            const double d = y[c] - s[Law::kLocation * stride];
            const double x = d * d * s[Law::kInverse * stride], power_here = s[Law::kPower * stride];
            lp += s[Law::kNorm * stride];
            if (power_here > Law::kMostPower) {
                lp -= power_here * log1p_of(x);
                continue;
            }
            if (power_here != power) {
                lp -= power * product.log();
                power = power_here;
                product = {};
            }
            product.multiply(x);
        }
        return lp - power * product.log();
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        if (n_columns > 1) fill_integrated_columns(n, stride, n_columns, y, table, out);
        else IndependentColumns::fill(table, stride, n, y, out);
    }
    // One logarithm as in log_predictive; not if missing entries have made powers differ.
    bool remove_together(double *s, int64_t stride, const double *y, int64_t n,
                         double *lp) const override {
        using Law = NormalLaw;
        rest_.resize(width);
        for (int32_t i = 0; i < width; ++i) rest_[i] = s[i * stride];
        LogProduct growth, strengths;
        const double power = rest_[Law::kPower];
        for (int32_t c = 0; c < n_columns; ++c) {
            const Column column{&rest_[c * Law::kWidth], 1};
            if (column[Law::kPower] != power || power > Law::kMostPower
                || !laws_[c].remove(column, y + c, n_columns, n, &growth, &strengths, lp))
                return false;
        }
        for (int32_t i = 0; i < width; ++i) s[i * stride] = rest_[i];
        *lp -= (power - 0.5) * growth.log() + 0.5 * strengths.log();
        return true;
    }
    // Gibbs sampling augmented by the states' means and variances, which are discarded
    // afterwards.
    void draw_hyperparameters(const double *table, int64_t stride, const int64_t *places,
                              int32_t n, bitgen_t *g) override {
        std::vector<double> parameters(static_cast<size_t>(n) * parameter_width);
        for (int32_t k = 0; k < n; ++k)
            draw(table + places[k], stride, &parameters[k], n, g);
        const double *p = parameters.data();    // of column c: mean, 1/(2 variance)
        for (int32_t c = 0; c < n_columns; ++c, p += 3 * n) {
            const double *location = p, *half_precision = p + n;
            const double centre = units_[c], variance = units_[2 * n_columns + c];
            double &mean = laws_[c].hyper[NormalLaw::kPriorMean];
            double &strength = laws_[c].hyper[NormalLaw::kStrength];
            double &scale = laws_[c].hyper[NormalLaw::kScale];
            double precision = 0.0, weighted = 0.0;
            for (int32_t k = 0; k < n; ++k) {
                precision += 2.0 * half_precision[k];
                weighted += 2.0 * half_precision[k] * (location[k] - centre);
            }
            if (is_drawn_[NormalLaw::kScale])
                scale = draw_bounded_gamma(g, scale, kHyperShape + n * laws_[c].shape,
                                           2.0 * kHyperRate / variance + precision,
                                           0.5 * kLeastScale * variance, kMostHyper * variance);
            if (is_drawn_[NormalLaw::kStrength]) {
                double squares = 0.0;
                for (int32_t k = 0; k < n; ++k) {
                    const double off = location[k] - mean;
                    squares += 2.0 * half_precision[k] * off * off;
                }
                strength = draw_bounded_gamma(g, strength, kHyperShape + 0.5 * n,
                                              kHyperRate + 0.5 * squares, kLeastHyper, kMostHyper);
            }
            if (is_drawn_[NormalLaw::kPriorMean]) {
                const double total = 1.0 / variance + strength * precision;
                mean = centre + strength * weighted / total
                       + random_standard_normal(g) / std::sqrt(total);
            }
        }
    }

  private:
    mutable std::vector<double> rest_;      // scratch
};

}  // namespace skihmm
