// Gaussian with full covariance as a conjugate family.
//
// Formulas: K. P. Murphy, "Conjugate Bayesian analysis of the Gaussian distribution", 2007; A. Gelman
// et al., "Bayesian Data Analysis", 3rd edition, 2013, chapter 3.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_matrix_family.hpp"
#include "_product.hpp"

namespace skihmm {

// out[k] += norm[k] - power[k] log(1 + factor[k] |L_k^-1 (y - mean_k)|^2), L L^T = U D U^T with U of
// unit diagonal, row by row, 1 / D in the place of the diagonal.
SKIHMM_CLONES static void fill_multivariate(int32_t n, int64_t stride, int32_t d,
                                            const double *y, const double *mean,
                                            const double *triangle, const double *power,
                                            const double *factor, const double *norm,
                                            Numbers<kLanes> *z, double *out) {
    for (int32_t from = 0; from < n; from += kLanes) {
        auto total = Numbers<kLanes>::of(0.0);
        const double *entry = triangle + from;
        for (int32_t i = 0; i < d; ++i, entry += stride) {
            auto value = Numbers<kLanes>::of(y[i]);
            value.subtract(mean + i * stride + from);
            for (int32_t j = 0; j < i; ++j, entry += stride) value.subtract(entry, z[j]);
            total.add_square(entry, value);
            z[i] = value;
        }
        const double *totals = total.data();
        for (int32_t l = 0; l < kLanes; ++l) {
            const int32_t k = from + l;
            out[k] += norm[k] - power[k] * log1p_of(factor[k] * totals[l]);
        }
    }
}
// out[k] += norm[k] - |W_k (y - mean_k)|^2 / 2, W lower triangular, row by row.
SKIHMM_CLONES static void fill_whitened(int32_t n, int64_t stride, int32_t d, const double *y,
                                        const double *mean, const double *triangle,
                                        const double *norm, Numbers<kLanes> *z, double *out) {
    for (int32_t from = 0; from < n; from += kLanes) {
        auto total = Numbers<kLanes>::of(0.0);
        const double *entry = triangle + from;
        for (int32_t i = 0; i < d; ++i) {
            z[i] = Numbers<kLanes>::of(y[i]);
            z[i].subtract(mean + i * stride + from);
            auto sum = Numbers<kLanes>::of(0.0);
            for (int32_t j = 0; j <= i; ++j, entry += stride) sum.add(entry, z[j]);
            total.add_square(1.0, sum);
        }
        const double *totals = total.data();
        for (int32_t l = 0; l < kLanes; ++l)
            out[from + l] += norm[from + l] - 0.5 * totals[l];
    }
}

// Sigma ~ InvWishart(Psi, dof), mu | Sigma ~ N(mean, Sigma / strength).
//
// The posterior scale is U D U^T, U with unit diagonal; U and 1 / D are stored, so that an
// evaluation divides by nothing.  With z = y - mean, v = U^-1 z and factor = strength / (strength +
// 1), the sum S + factor z z^T that adds y has, with t_0 = 1 / factor and t_i+1 = t_i + v_i^2 /
// D_i, the factors
//
//     D_i t_i+1 / t_i,   U_ri + v_i / (D_i t_i+1) (z_r - sum_l<=i U_rl v_l)
//
// (Gill, Golub, Murray and Saunders 1974, method C1); -factor removes it.  The determinant changes
// by 1 + factor |v|^2_D, which is also y's term of the predictive density: one pass gives both.
class NormalInverseWishartFamily final : public MatrixFamily {
  public:
    // Hyperparameters: mean, strength, and the lower triangle of Psi, row by row.  Units: as in
    // NormalInverseGammaFamily.
    explicit NormalInverseWishartFamily(const FamilySetting &setting)
        : MatrixFamily(setting), size_(n_columns * (n_columns + 1) / 2) {
        const int32_t d = n_columns;
        const double *hyper = setting.hyperparameters, *units = setting.units;
        mean_.assign(hyper, hyper + d);
        strength_ = hyper[d];
        triangle_.assign(hyper + d + 1, hyper + d + 1 + size_);
        variance_.assign(units + 2 * d, units + 3 * d);
        scratch_.resize(d);
        lanes_.resize(d);
        gap_order = 0;
        width = 1 + d + size_ + 4;
        n_hyperparameters = d + 1 + size_;
        factorise(d, triangle_.data());
        prior_.resize(size_);
        set_prior();
    }
    void reset(double *s, int64_t stride) const override {
        s[0] = 0.0;
        for (int32_t i = 0; i < n_columns; ++i) s[(1 + i) * stride] = mean_[i];
        double *U = s + (1 + n_columns) * stride;
        for (int32_t i = 0; i < size_; ++i) U[i * stride] = prior_[i];
        U[(size_ + 3) * stride] = 0.0;
        update(s, stride);
    }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        if (is_missing(y)) return is_unseen(y) ? 0.0 : log_of_part(s, stride, y);
        const double *entry = s + (1 + n_columns) * stride, *last = entry + size_ * stride;
        double q = 0.0;
        for (int32_t i = 0; i < n_columns; ++i, entry += stride) {
            double value = y[i] - s[(1 + i) * stride];
            for (int32_t j = 0; j < i; ++j, entry += stride) value -= *entry * scratch_[j];
            scratch_[i] = value;
            q += value * (value * *entry);
        }
        return last[2 * stride] - last[0] * log1p_of(q * last[stride]);
    }
    void complete(const double *s, double *y, bitgen_t *g) const override {
        const double squares = squares_of_part(s, 1, y, true);
        const double *last = s + 1 + n_columns + size_;
        part_.draw(last[0], 1.0 / last[1], squares, g,
                   [&](int32_t i, double residual) { y[i] = s[1 + i] + residual; });
    }
    double log_marginal(const double *s, int64_t stride) const override {
        const double n = s[0];
        if (n == 0.0) return 0.0;
        const double growth = s[(1 + n_columns + size_ + 3) * stride];
        double lp = -0.5 * n * n_columns * kLogPi
                    - 0.5 * n_columns * std::log1p(n / strength_)
                    - 0.5 * dof_ * growth - 0.5 * n * (log_det_ + growth);
        for (int32_t i = 0; i < n_columns; ++i) lp += log_rising(0.5 * (dof_ - i), 0.5 * n);
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        if (is_missing(y)) {
            for (int32_t k = 0; k < n && !is_unseen(y); ++k)
                out[k] += log_of_part(table + k, stride, y);
            return;
        }
        const double *triangle = table + (1 + n_columns) * stride;
        const double *last = triangle + size_ * stride;
        fill_multivariate(n, stride, n_columns, y, table + stride, triangle, last,
                          last + stride, last + 2 * stride, lanes_.data(), out);
    }
    bool is_sound(const double *s, int64_t stride) const override {
        for (int32_t i = 0; i < width; ++i)
            if (!std::isfinite(s[i * stride])) return false;
        const double *U = s + (1 + n_columns) * stride, *last = U + size_ * stride;
        for (int32_t j = 0; j < n_columns; ++j)
            if (!(U[at(j, j) * stride] > 0.0)) return false;
        return s[0] >= 0.0 && last[0] > 0.0 && last[stride] > 0.0
               && std::fabs(log_det(U, stride) - log_det_ - last[3 * stride]) < 1e-6;
    }
    void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
              bitgen_t *g) const override {
        // Sigma^-1 = W^T W with W = C D^-1/2 U^-1 lower triangular, C^T C ~ Wishart(I, dof_n): by
        // Bartlett, rows counted from below, C has independent entries.
        const int32_t d = n_columns;
        const double *U = s + (1 + d) * stride;
        double *W = p + d * p_stride;
        const double dof = dof_ + s[0];
        double log_whitening = 0.0;
        std::vector<double> row(d);
        for (int32_t i = 0; i < d; ++i) {
            for (int32_t j = 0; j < i; ++j)
                row[j] = random_standard_normal(g) * std::sqrt(U[at(j, j) * stride]);
            const double log_square =
                std::log(2.0) + draw_log_gamma(g, 0.5 * (dof - d + 1.0 + i));
            const double log_root = 0.5 * (log_square + std::log(U[at(i, i) * stride]));
            row[i] = std::exp(log_root);
            log_whitening += log_root;
            // Row i of C D^-1/2 U^-1, from its end.
            for (int32_t j = i; j >= 0; --j) {
                double value = row[j];
                for (int32_t l = j + 1; l <= i; ++l)
                    value -= W[at(i, l) * p_stride] * U[at(l, j) * stride];
                W[at(i, j) * p_stride] = value;
            }
        }
        p[(d + size_) * p_stride] = log_whitening - 0.5 * d * kLog2Pi;
        for (int32_t i = 0; i < d; ++i) row[i] = random_standard_normal(g);
        solve(W, p_stride, row.data());
        const double root = std::sqrt(strength_ + s[0]);
        for (int32_t i = 0; i < d; ++i)
            p[i * p_stride] = s[(1 + i) * stride] + row[i] / root;
    }
    double log_density(const double *p, int64_t stride, const double *y) const override {
        if (is_missing(y)) return 0.0;
        const double *W = p + n_columns * stride;
        double q = 0.0;
        for (int32_t i = 0; i < n_columns; ++i) {
            double value = 0.0;
            for (int32_t j = 0; j <= i; ++j, W += stride)
                value += *W * (y[j] - p[j * stride]);
            q += value * value;
        }
        return *W - 0.5 * q;
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        if (is_missing(y)) return;
        static thread_local std::vector<Numbers<kLanes>> lanes;
        lanes.resize(n_columns);
        const double *triangle = table + n_columns * stride;
        fill_whitened(n, stride, n_columns, y, table, triangle, triangle + size_ * stride,
                      lanes.data(), out);
    }
    // Sixteen states side by side take as long as three one by one.
    void fill_log_densities(const double *table, int64_t stride, const int32_t *states,
                            int32_t n, const double *y, double *out) const override {
        if (kLanes * n < 3 * stride)
            return LinearFamily::fill_log_densities(table, stride, states, n, y, out);
        static thread_local std::vector<double> logs;
        logs.assign(stride, 0.0);
        fill_densities(table, stride, static_cast<int32_t>(stride), y, logs.data());
        for (int32_t i = 0; i < n; ++i) out[i] = logs[states[i]];
    }
    void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const override {
        for (int32_t i = 0; i < n_columns; ++i) y[i] = random_standard_normal(g);
        solve(p + n_columns * stride, stride, y);
        for (int32_t i = 0; i < n_columns; ++i) y[i] += p[i * stride];
    }
    void fill_coefficients(const double *p, double *out) const override {
        const double *W = p + n_columns;
        std::fill_n(out, n_columns * (1 + n_columns), 0.0);
        for (int32_t i = 0; i < n_columns; ++i, out += 1 + n_columns)
            for (int32_t j = 0; j <= i; ++j, ++W) {
                out[1 + j] = *W;
                out[0] -= *W * p[j];
            }
    }
    void mean(const double *s, int64_t stride, double *out) const override {
        for (int32_t i = 0; i < n_columns; ++i) out[i] = s[(1 + i) * stride];
    }
    // Mean and covariance.
    void expect(const double *s, int64_t stride, double *out) const override {
        mean(s, stride, out);
        const int32_t d = n_columns;
        const double *U = s + (1 + d) * stride;
        const double rest = dof_ + s[0] - d - 1.0;
        const auto entry = [&](int32_t i, int32_t l) {
            return i == l ? 1.0 : U[at(i, l) * stride];
        };
        for (int32_t i = 0; i < d; ++i)
            for (int32_t j = 0; j <= i; ++j) {
                double value = 0.0;
                for (int32_t l = 0; l <= j; ++l)
                    value += entry(i, l) * entry(j, l) / U[at(l, l) * stride];
                value = rest > 0.0 ? value / rest : INFINITY;
                out[d + i * d + j] = out[d + j * d + i] = value;
            }
    }
    // The prior mean, the strength and the Cholesky factor of Psi, row by row.
    void read_hyperparameters(double *out) const override {
        out = std::copy(mean_.begin(), mean_.end(), out);
        *out++ = strength_;
        std::copy(triangle_.begin(), triangle_.end(), out);
    }
    bool set_hyperparameters(const double *in) override {
        const double *strength = in + n_columns, *triangle = strength + 1;
        if (!all_finite(in, n_hyperparameters) || !all_positive(strength, 1)) return false;
        for (int32_t i = 0; i < n_columns; ++i)
            if (!(triangle[at(i, i)] > 0.0)) return false;
        std::copy_n(in, n_columns, mean_.begin());
        strength_ = *strength;
        std::copy_n(triangle, size_, triangle_.begin());
        set_prior();
        return true;
    }

  private:
    // Count, mean, U and 1 / D of the posterior; then the predictive distribution:
    // norm - power log(1 + factor |L^-1 (y - mean)|^2), L L^T = U D U^T, as power, factor, norm.
    // Last the log of the factor of det(D) due to the observations, which a large dof and scale
    // would absorb in D.
    static int32_t at(int32_t i, int32_t j) { return i * (i + 1) / 2 + j; }

    // |L^-1 (y - mean)|^2 of the observed part of y, L L^T the block of U D U^T.
    double squares_of_part(const double *s, int64_t stride, const double *y, bool all) const {
        const double *U = s + (1 + n_columns) * stride;
        part_.sort(n_columns, y);
        part_.factorise([&](int32_t i, int32_t l) { return U[at(i, l) * stride]; },
                        [&](int32_t l) { return U[at(l, l) * stride]; }, all);
        return part_.squares([&](int32_t i) { return y[i] - s[(1 + i) * stride]; });
    }
    double log_of_part(const double *s, int64_t stride, const double *y) const {
        const double squares = squares_of_part(s, stride, y, false);
        const double *last = s + (1 + n_columns + size_) * stride;
        const double power = last[0], factor = last[stride];
        return part_.norm(power) + 0.5 * part_.n() * std::log(factor)
               - part_.power(power) * log1p_of(factor * squares);
    }
    double log_det(const double *U, int64_t stride) const {
        double sum = 0.0;
        for (int32_t j = 0; j < n_columns; ++j) sum -= std::log(U[at(j, j) * stride]);
        return sum;
    }
    // Sums of Sigma^-1 = W^T W and of Sigma^-1 (mu - centre).
    void sum_states(States *states) const override {
        std::vector<double> &precision = states->precision, &weighted = states->weighted;
        precision.resize(size_);
        weighted.resize(n_columns);
        for (int32_t k = 0; k < states->n; ++k) {
            const double *p = (*states)[k], *W = p + n_columns;
            for (int32_t r = 0; r < n_columns; ++r) {
                double product = 0.0;
                for (int32_t i = 0; i <= r; ++i) product += W[at(r, i)] * (p[i] - centre_[i]);
                for (int32_t i = 0; i <= r; ++i) {
                    weighted[i] += W[at(r, i)] * product;
                    for (int32_t j = 0; j <= i; ++j)
                        precision[at(i, j)] += W[at(r, i)] * W[at(r, j)];
                }
            }
        }
    }
    void draw_scale(const States &states, bitgen_t *g) override {
        for (int32_t i = 0; i < n_columns; ++i) {
            const double variance = variance_[i];
            double *root = &triangle_[at(i, i)];
            *root = std::sqrt(draw_bounded_gamma(
                g, *root * *root, kHyperShape + 0.5 * states.n * dof_,
                kHyperRate / variance + 0.5 * states.precision[at(i, i)],
                kLeastScale * variance, kMostHyper * variance));
        }
    }
    void draw_strengths(const States &states, bitgen_t *g) override {
        const int32_t d = n_columns;
        double squares = 0.0;
        for (int32_t k = 0; k < states.n; ++k) {
            const double *p = states[k], *W = p + d;
            for (int32_t r = 0; r < d; ++r) {
                double value = 0.0;
                for (int32_t i = 0; i <= r; ++i) value += W[at(r, i)] * (p[i] - mean_[i]);
                squares += value * value;
            }
        }
        // In many columns a strength of some d makes states that differ in nothing but their
        // rows cheap, and the chain goes there: white noise, 200 rows of 20 columns, had 66
        // to 79 states with the rate 1/2.
        const double rate = d > 2 ? d : kHyperRate;
        strength_ = draw_bounded_gamma(g, strength_, kHyperShape + 0.5 * states.n * d,
                                       rate + 0.5 * squares, kLeastHyper, kMostHyper);
    }
    // N(centre + P^-1 strength weighted, P^-1), P = V^-1 + strength precision = L L^T.
    void draw_mean(States *states, bitgen_t *g) override {
        const int32_t d = n_columns;
        std::vector<double> &precision = states->precision, &weighted = states->weighted;
        for (int32_t i = 0; i < d; ++i) {
            for (int32_t j = 0; j <= i; ++j) precision[at(i, j)] *= strength_;
            precision[at(i, i)] += 1.0 / variance_[i];
            weighted[i] *= strength_;
        }
        if (!factorise(d, precision.data())) factorise_by_rows(states);
        solve(precision.data(), 1, weighted.data());
        for (int32_t i = 0; i < d; ++i) weighted[i] += random_standard_normal(g);
        for (int32_t i = d - 1; i >= 0; --i) {
            for (int32_t j = i + 1; j < d; ++j) weighted[i] -= precision[at(j, i)] * weighted[j];
            weighted[i] /= precision[at(i, i)];
            mean_[i] = centre_[i] + weighted[i];
        }
    }
    // L by rotations, which lose fewer digits.
    void factorise_by_rows(States *states) const {
        const int32_t d = n_columns;
        std::vector<double> R(static_cast<size_t>(d) * d, 0.0), row(d);
        for (int32_t i = 0; i < d; ++i) R[i * d + i] = 1.0 / std::sqrt(variance_[i]);
        for (int32_t k = 0; k < states->n; ++k)
            for (int32_t r = 0; r < d; ++r) {
                const double *W = (*states)[k] + d;
                for (int32_t i = 0; i < d; ++i)
                    row[i] = i <= r ? std::sqrt(strength_) * W[at(r, i)] : 0.0;
                add_to_root(d, row.data(), R.data());
            }
        for (int32_t i = 0; i < d; ++i)
            for (int32_t j = 0; j <= i; ++j) states->precision[at(i, j)] = R[j * d + i];
    }
    // From the Cholesky factor of Psi.
    void set_prior() override {
        for (int32_t i = 0; i < n_columns; ++i)
            for (int32_t j = 0; j <= i; ++j) {
                const double root = triangle_[at(j, j)];
                prior_[at(i, j)] = i == j ? 1.0 / (root * root) : triangle_[at(i, j)] / root;
            }
        log_det_ = log_det(prior_.data(), 1);
        const int32_t side = side_of_sums(n_columns + 1);
        prior_sums_[0] = strength_;
        for (int32_t i = 0; i < n_columns; ++i) {
            double *row = &prior_sums_[(1 + i) * side];
            row[0] = strength_ * (mean_[i] - centre_[i]);
            for (int32_t j = 0; j <= i; ++j) {
                row[1 + j] = row[0] * (mean_[j] - centre_[j]);
                for (int32_t l = 0; l <= j; ++l)
                    row[1 + j] += triangle_[at(i, l)] * triangle_[at(j, l)];
            }
        }
    }
    void centre(const double *y, double *z) const override {
        z[0] = 1.0;
        for (int32_t i = 0; i < n_columns; ++i) z[1 + i] = y[i] - centre_[i];
    }
    // The factors are the mean, less the centre, and U and D.
    void take_factors(double *s, int64_t stride, const double *A,
                      const double *inverse) const override {
        const int32_t d = n_columns, side = side_of_sums(d + 1);
        double *U = s + (1 + d) * stride;
        Product growth;
        for (int32_t j = 0; j < d; ++j) {
            s[(1 + j) * stride] = centre_[j] + A[1 + j] * inverse[0];
            growth.multiply(prior_[at(j, j)] / inverse[1 + j]);
            U[at(j, j) * stride] = inverse[1 + j];
            for (int32_t i = j + 1; i < d; ++i)
                U[at(i, j) * stride] = A[(1 + j) * side + 1 + i] * inverse[1 + j];
        }
        U[(size_ + 3) * stride] = growth.log();
        update(s, stride);
    }
    bool remove_row(double *s, int64_t stride, const double *y, double *lp) const override {
        s[0] -= 1.0;
        const double strength = strength_ + s[0];
        for (int32_t i = 0; i < n_columns; ++i) {
            double *m = s + (1 + i) * stride;
            *m -= (y[i] - *m) / strength;
            scratch_[i] = y[i] - *m;
        }
        double growth = 0.0;
        if (!turn(s, stride, -(strength + 1.0) / strength, scratch_.data(), &growth)) return false;
        const double *last = s + (1 + n_columns + size_) * stride;
        *lp = last[2 * stride] + last[0] * growth;
        return true;
    }
    double add_row(double *s, int64_t stride, const double *y, double *z) const override {
        const double *last = s + (1 + n_columns + size_) * stride;
        const double strength = strength_ + s[0], factor = last[stride];
        const double power = last[0], norm = last[2 * stride];
        for (int32_t i = 0; i < n_columns; ++i) {
            double *m = s + (1 + i) * stride;
            z[i] = y[i] - *m;
            *m += z[i] / (strength + 1.0);
        }
        s[0] += 1.0;
        double growth = 0.0;
        turn(s, stride, 1.0 / factor, z, &growth);
        return norm - power * growth;
    }
    // The factors of S + z z^T / t, and all numbers derived from them and the number of rows;
    // `growth` is the log of the factor of the determinant.  False if too many digits are lost.
    bool turn(double *s, int64_t stride, double t, double *z, double *growth) const {
        const double first = t;
        double *U = s + (1 + n_columns) * stride, total = 0.0;
        for (int32_t j = 0; j < n_columns; ++j) {
            double *diagonal = U + at(j, j) * stride;
            const double v = z[j], part = v * *diagonal, before = t;
            total += v * part;
            t = first + total;
            if (!(t / first >= kLeastShare)) return false;
            const double share = part / t;
            *diagonal *= before / t;
            for (int32_t i = j + 1; i < n_columns; ++i) {
                double *entry = U + at(i, j) * stride;
                z[i] -= *entry * v;
                *entry += share * z[i];
            }
        }
        *growth = std::log1p(total / first);
        U[(size_ + 3) * stride] += *growth;
        update(s, stride);
        return true;
    }
    // Replace x by T^-1 x.
    void solve(const double *T, int64_t stride, double *x) const {
        for (int32_t i = 0; i < n_columns; ++i) {
            for (int32_t j = 0; j < i; ++j) x[i] -= T[at(i, j) * stride] * x[j];
            x[i] /= T[at(i, i) * stride];
        }
    }
    void update(double *s, int64_t stride) const {
        double *L = s + (1 + n_columns) * stride, *last = L + size_ * stride;
        const double n = s[0], strength = strength_ + n;
        last[0] = 0.5 * (dof_ + n + 1.0);
        last[stride] = strength / (strength + 1.0);
        last[2 * stride] = ratio_(n)
                           - 0.5 * n_columns * (kLogPi - std::log(last[stride]))
                           - 0.5 * (log_det_ + last[3 * stride]);
    }

    std::vector<double> mean_, triangle_;   // the Cholesky factor of Psi
    double strength_;
    const int32_t size_;
    std::vector<double> variance_;          // of the columns of the data
    mutable std::vector<Numbers<kLanes>> lanes_;
};

}  // namespace skihmm
