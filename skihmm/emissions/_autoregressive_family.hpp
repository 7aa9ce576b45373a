// Vector autoregression with intercept as a conjugate family.
//
// Columns are standardised.  With x = (earlier rows, latest first; 1) of q entries:
// Sigma ~ InvWishart(Psi, dof), A | Sigma ~ MatrixNormal(M, Sigma, Lambda^-1), Lambda diagonal,
// y ~ N(A x, Sigma).  Let S be the sum of z z^T over all z = (x, y) of a state, and of the prior
//
//     S_0 = [Lambda, Lambda M^T; M Lambda, Psi + M Lambda M^T].
//
// Of the Cholesky factor [F, 0; B, R] of S, F F^T is the precision of the columns of A, B F^-1
// their posterior mean and R R^T the posterior scale of Sigma: one rank-one update of one factor
// adds a row, and with w = (F^-1 x, R^-1 (y - B F^-1 x)), the solution of a triangular system,
// the predictive distribution of y is
//
//     norm - d/2 log(1 + |w_x|^2) - power log(1 + |w_y|^2 / (1 + |w_x|^2)).
#pragma once
#include "_conjugate_families.hpp"

namespace skihmm {

// A removal that leaves less than this share of a determinant asks for a recount, so that few
// digits are lost even in ten thousand removals.
constexpr double kLeastLeft = 1e-3;

// out[k] += the predictive density above, of z standardised, L column by column.
SKIHMM_CLONES static void fill_regression(int32_t n, int64_t stride, int32_t q, int32_t d,
                                          const double *z, const double *triangle,
                                          const double *power, const double *norm,
                                          double *rest, double *out) {
    for (int32_t from = 0; from < n; from += kLanes) {
        double leverage[kLanes], total[kLanes];
        for (int32_t l = 0; l < kLanes; ++l) leverage[l] = 1.0, total[l] = 0.0;
        for (int32_t i = 0; i < q + d; ++i)
            for (int32_t l = 0; l < kLanes; ++l) rest[i * kLanes + l] = z[i];
        const double *entry = triangle + from;
        for (int32_t j = 0; j < q + d; ++j) {
            double w[kLanes], *sum = j < q ? leverage : total;
            for (int32_t l = 0; l < kLanes; ++l) {
                w[l] = rest[j * kLanes + l] / entry[l];
                sum[l] += w[l] * w[l];
            }
            entry += stride;
            for (int32_t i = j + 1; i < q + d; ++i, entry += stride)
                for (int32_t l = 0; l < kLanes; ++l) rest[i * kLanes + l] -= entry[l] * w[l];
        }
        for (int32_t l = 0; l < kLanes; ++l) {
            const int32_t k = from + l;
            out[k] += norm[k] - 0.5 * d * log_of(leverage[l])
                      - power[k] * log1p_of(total[l] / leverage[l]);
        }
    }
}
// out[k] += norm[k] - |P_k z|^2 / 2 for row i of P of width q + i + 1.
SKIHMM_CLONES static void fill_residuals(int32_t n, int64_t stride, int32_t q, int32_t d,
                                         const double *z, const double *rows,
                                         const double *norm, double *out) {
    for (int32_t from = 0; from < n; from += kLanes) {
        double total[kLanes], sum[kLanes];
        for (int32_t l = 0; l < kLanes; ++l) total[l] = 0.0;
        const double *entry = rows + from;
        for (int32_t i = 0; i < d; ++i) {
            for (int32_t l = 0; l < kLanes; ++l) sum[l] = 0.0;
            for (int32_t j = 0; j <= q + i; ++j, entry += stride)
                for (int32_t l = 0; l < kLanes; ++l) sum[l] += entry[l] * z[j];
            for (int32_t l = 0; l < kLanes; ++l) total[l] += sum[l] * sum[l];
        }
        for (int32_t l = 0; l < kLanes; ++l)
            out[from + l] += norm[from + l] - 0.5 * total[l];
    }
}

// A row without all inputs or values is missing as a whole.
//
// Hyperparameters: M row by row, the precision of every lag and that of the intercept, and the
// factor s of Psi = s * scale.  Drawn ones have the priors M_ij ~ N(1 on the diagonal of the
// first lag, else 0; variance 1), precisions ~ Gamma(1, 1/10), s ~ Gamma(1/2, 1/2).
class AutoregressiveFamily final : public Family {
  public:
    // centre, deviation: of the columns; triangle: the Cholesky factor of the scale, row by row.
    AutoregressiveFamily(int32_t d, int32_t order, const double *centre,
                         const double *deviation, const double *mean, const double *strength,
                         double dof, const double *triangle, bool draws_mean,
                         bool draws_strength, bool draws_scale, int64_t n_steps)
        : order_(order), q_(d * order + 1), centre_(centre, centre + d),
          deviation_(deviation, deviation + d), mean_(mean, mean + d * q_),
          strength_(strength, strength + order + 1), dof_(dof), draws_mean_(draws_mean),
          draws_strength_(draws_strength), draws_scale_(draws_scale),
          unit_(triangle, triangle + d * (d + 1) / 2), z_(q_ + d),
          rest_(static_cast<size_t>(q_ + d) * kLanes) {
        n_columns = d;
        n_inputs = d * order;
        size_ = (q_ + d) * (q_ + d + 1) / 2;
        width = 1 + size_ + 4;
        parameter_width = d * q_ + d * (d + 1) / 2 + 1;
        n_hyperparameters = d * q_ + order + 2;
        draws_hyperparameters = draws_mean || draws_strength || draws_scale;
        n_expected = d * q_ + d * d;
        // (dof_n + 1) / 2 and (dof_n + 1 - d) / 2 are d / 2 apart.
        ratio_.configure((dof + 1.0 - d) / 2.0, 0.5, d / 2.0, n_steps);
        for (const double value : deviation_) log_unit_ += std::log(value);
        prior_.resize(size_);
        factor_.resize(size_);
        set_prior();
    }
    void next_inputs(const double *row, double *inputs) const override {
        if (row) std::copy_n(row, n_inputs, inputs);
        else std::fill_n(inputs, n_inputs, NAN);
    }
    void reset(double *s, int64_t stride) const override {
        s[0] = 0.0;
        for (int32_t i = 0; i < size_; ++i) s[(1 + i) * stride] = prior_[i];
        double *last = s + (1 + size_) * stride;
        last[2 * stride] = last[3 * stride] = 0.0;
        update(s, stride);
    }
    bool is_missing(const double *y) const override {
        for (int32_t i = 0; i < row_width(); ++i)
            if (std::isnan(y[i])) return true;
        return false;
    }
    double log_predictive(const double *s, int64_t stride, const double *y) const override {
        if (is_missing(y)) return 0.0;
        standardise(y);
        double leverage = 1.0, total = 0.0;
        const double *entry = s + stride;
        for (int32_t j = 0; j < q_ + n_columns; ++j) {
            const double w = z_[j] / *entry;
            (j < q_ ? leverage : total) += w * w;
            entry += stride;
            for (int32_t i = j + 1; i < q_ + n_columns; ++i, entry += stride)
                z_[i] -= *entry * w;
        }
        return entry[stride] - 0.5 * n_columns * log_of(leverage)
               - *entry * log1p_of(total / leverage);
    }
    void add(double *s, int64_t stride, const double *y) const override {
        const int64_t first = 0;
        if (!is_missing(y)) add_rows(s, stride, y, &first, 1);
    }
    void add_rows(double *s, int64_t stride, const double *values, const int64_t *steps,
                  int64_t n) const override {
        read(s, stride);
        double *growth = s + (1 + size_ + 2) * stride;
        for (int64_t r = 0; r < n; ++r) {
            standardise(values + steps[r] * row_width());
            double *entry = factor_.data();
            growth[0] += rotate(&entry, 0, q_);
            growth[stride] += rotate(&entry, q_, q_ + n_columns);
        }
        s[0] += static_cast<double>(n);
        write(s, stride);
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        if (is_missing(y)) return true;
        if (s[0] == 1.0) {
            reset(s, stride);
            return true;
        }
        read(s, stride);
        standardise(y);
        double *entry = factor_.data(), *growth = s + (1 + size_ + 2) * stride;
        const double loss = rotate_back(&entry, 0, q_);
        const double more = rotate_back(&entry, q_, q_ + n_columns);
        // False for NaN too.
        if (!(std::min(loss, more) > kLeastLeft - 1.0)) return false;
        growth[0] += std::log1p(loss);
        growth[stride] += std::log1p(more);
        s[0] -= 1.0;
        write(s, stride);
        return true;
    }
    double log_marginal(const double *s, int64_t stride) const override {
        const double n = s[0], *growth = s + (1 + size_ + 2) * stride;
        if (n == 0.0) return 0.0;
        double lp = -n * (0.5 * n_columns * kLogPi + log_unit_)
                    - 0.5 * n_columns * growth[0] - 0.5 * dof_ * growth[stride]
                    - 0.5 * n * (log_det_ + growth[stride]);
        for (int32_t i = 0; i < n_columns; ++i) lp += log_rising(0.5 * (dof_ - i), 0.5 * n);
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        if (is_missing(y)) return;
        standardise(y);
        const double *last = table + (1 + size_) * stride;
        fill_regression(n, stride, q_, n_columns, z_.data(), table + stride, last,
                        last + stride, rest_.data(), out);
    }
    bool is_sound(const double *s, int64_t stride) const override {
        for (int32_t i = 0; i < width; ++i)
            if (!std::isfinite(s[i * stride])) return false;
        const double *last = s + (1 + size_) * stride;
        double growth[2] = {0.0, 0.0};
        for (int32_t j = 0, at = 0; j < q_ + n_columns; at += q_ + n_columns - j++) {
            const double diagonal = s[(1 + at) * stride];
            if (!(diagonal > 0.0)) return false;
            growth[j >= q_] += 2.0 * (std::log(diagonal) - std::log(prior_[at]));
        }
        return s[0] >= 0.0 && last[0] > 0.0
               && std::fabs(growth[0] - last[2 * stride]) < 1e-6
               && std::fabs(growth[1] - last[3 * stride]) < 1e-6;
    }
    void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
              bitgen_t *g) const override {
        // Sigma^-1 = W^T W with W = C R^-1 lower triangular, C^T C ~ Wishart(I, dof_n): by
        // Bartlett, rows counted from below, C has independent entries.  Then A is
        // (B + W^-1 E) F^-1, E standard normal, and the rows of parameters are those of
        // (-W A, W).
        const int32_t d = n_columns;
        const double dof = dof_ + s[0];
        double log_whitening = 0.0;
        std::vector<double> w(d), a(q_);
        read(s, stride);
        for (int32_t i = 0; i < d; ++i) {
            for (int32_t j = 0; j < i; ++j) w[j] = random_standard_normal(g);
            const double log_square =
                std::log(2.0) + draw_log_gamma(g, 0.5 * (dof - d + 1.0 + i));
            w[i] = std::exp(0.5 * log_square);
            log_whitening += 0.5 * log_square - std::log(factor_[at(q_ + i, q_ + i)]);
            solve_row(q_, q_ + i + 1, w.data());
            for (int32_t j = 0; j < q_; ++j) {
                a[j] = random_standard_normal(g);
                for (int32_t l = 0; l <= i; ++l) a[j] += w[l] * factor_[at(q_ + l, j)];
            }
            solve_row(0, q_, a.data());
            for (int32_t j = 0; j < q_; ++j, p += p_stride) *p = -a[j];
            for (int32_t j = 0; j <= i; ++j, p += p_stride) *p = w[j];
        }
        *p = log_whitening - 0.5 * d * kLog2Pi - log_unit_;
    }
    double log_density(const double *p, int64_t stride, const double *y) const override {
        if (is_missing(y)) return 0.0;
        standardise(y);
        double total = 0.0;
        for (int32_t i = 0; i < n_columns; ++i) {
            double sum = 0.0;
            for (int32_t j = 0; j <= q_ + i; ++j, p += stride) sum += *p * z_[j];
            total += sum * sum;
        }
        return *p - 0.5 * total;
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        if (is_missing(y)) return;
        standardise(y);
        fill_residuals(n, stride, q_, n_columns, z_.data(), table,
                       table + (parameter_width - 1) * stride, out);
    }
    void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const override {
        standardise(y, true);
        for (int32_t i = 0; i < n_columns; ++i) {
            double value = random_standard_normal(g);
            for (int32_t j = 0; j < q_ + i; ++j, p += stride) value -= *p * z_[j];
            z_[q_ + i] = value / *p;
            p += stride;
            y[i] = centre_[i] + deviation_[i] * z_[q_ + i];
        }
    }
    void mean(const double *s, int64_t stride, double *y) const override {
        standardise(y, true);
        std::fill(z_.begin() + q_, z_.end(), 0.0);
        const double *entry = s + stride;
        for (int32_t j = 0; j < q_; ++j) {
            const double w = z_[j] / *entry;
            entry += stride;
            for (int32_t i = j + 1; i < q_ + n_columns; ++i, entry += stride)
                z_[i] -= *entry * w;
        }
        for (int32_t i = 0; i < n_columns; ++i)
            y[i] = centre_[i] - deviation_[i] * z_[q_ + i];
    }
    // Mean of A, row by row, and covariance, of standardised columns.
    void expect(const double *s, int64_t stride, double *out) const override {
        const int32_t d = n_columns;
        const double rest = dof_ + s[0] - d - 1.0;
        read(s, stride);
        for (int32_t i = 0; i < d; ++i, out += q_) {
            for (int32_t j = 0; j < q_; ++j) out[j] = factor_[at(q_ + i, j)];
            solve_row(0, q_, out);
        }
        for (int32_t i = 0; i < d; ++i)
            for (int32_t j = 0; j <= i; ++j) {
                double value = 0.0;
                for (int32_t l = q_; l <= q_ + j; ++l)
                    value += factor_[at(q_ + i, l)] * factor_[at(q_ + j, l)];
                out[i * d + j] = out[j * d + i] = rest > 0.0 ? value / rest : INFINITY;
            }
    }

    void read_hyperparameters(double *out) const override {
        out = std::copy(mean_.begin(), mean_.end(), out);
        out = std::copy(strength_.begin(), strength_.end(), out);
        *out = scale_;
    }
    bool set_hyperparameters(const double *in) override {
        const double *strength = in + mean_.size();
        if (!all_finite(in, mean_.size()) || !all_positive(strength, strength_.size() + 1))
            return false;
        std::copy_n(in, mean_.size(), mean_.begin());
        std::copy_n(strength, strength_.size(), strength_.begin());
        scale_ = strength[strength_.size()];
        set_prior();
        return true;
    }
    // Gibbs sampling augmented by the states' A and Sigma, which are discarded afterwards.
    void draw_hyperparameters(const double *table, int64_t stride, const int32_t *states,
                              int32_t n, bitgen_t *g) override {
        const int32_t d = n_columns;
        std::vector<double> parameters(static_cast<size_t>(n) * parameter_width);
        // The sum Q of all Sigma^-1 = W^T W; for column j the sum of Sigma^-1 a_j.
        std::vector<double> Q(d * d, 0.0), weighted(static_cast<size_t>(d) * q_, 0.0);
        for (int32_t k = 0; k < n; ++k) {
            double *p = &parameters[static_cast<size_t>(k) * parameter_width];
            draw(table + states[k], stride, p, 1, g);
            for (int32_t r = 0; r < d; ++r, p += q_ + r) {
                const double *w = p + q_;
                for (int32_t i = 0; i <= r; ++i) {
                    for (int32_t j = 0; j <= r; ++j) Q[i * d + j] += w[i] * w[j];
                    for (int32_t j = 0; j < q_; ++j) weighted[j * d + i] -= w[i] * p[j];
                }
            }
        }
        if (draws_scale_) {
            // The trace of U^T Q U, U U^T the scale.
            double trace = 0.0;
            for (int32_t c = 0; c < d; ++c)
                for (int32_t i = c; i < d; ++i)
                    for (int32_t j = c; j < d; ++j)
                        trace += unit_[i * (i + 1) / 2 + c] * Q[i * d + j]
                                 * unit_[j * (j + 1) / 2 + c];
            scale_ = draw_bounded_gamma(g, scale_, kHyperShape + 0.5 * n * dof_ * d,
                                        kHyperRate + 0.5 * trace, kLeastScale, kMostHyper);
        }
        if (draws_strength_) {
            std::vector<double> squares(order_ + 1, 0.0);
            for (int32_t k = 0; k < n; ++k) {
                const double *p = &parameters[static_cast<size_t>(k) * parameter_width];
                for (int32_t r = 0; r < d; ++r, p += q_ + r)
                    for (int32_t j = 0; j < q_; ++j) {
                        double value = p[j];
                        for (int32_t i = 0; i <= r; ++i) value += p[q_ + i] * mean_[i * q_ + j];
                        squares[j / d] += value * value;
                    }
            }
            for (int32_t i = 0; i <= order_; ++i) {
                const int32_t n_entries = n * d * (i < order_ ? d : 1);
                strength_[i] =
                    draw_bounded_gamma(g, strength_[i], 1.0 + 0.5 * n_entries,
                                       0.1 + 0.5 * squares[i], kLeastHyper, kMostHyper);
            }
        }
        if (draws_mean_) {
            // Column j is N(P^-1 (l weighted_j + its prior mean), P^-1), P = I + l Q.
            std::vector<double> P(d * d), m(d);
            for (int32_t j = 0; j < q_; ++j) {
                const double l = strength_[j / d];
                for (int32_t i = 0; i < d; ++i) {
                    m[i] = l * weighted[j * d + i] + (i == j && order_ > 0 ? 1.0 : 0.0);
                    for (int32_t c = 0; c <= i; ++c) {
                        double value = l * Q[i * d + c] + (i == c ? 1.0 : 0.0);
                        for (int32_t r = 0; r < c; ++r) value -= P[i * d + r] * P[c * d + r];
                        P[i * d + c] = i == c ? std::sqrt(value) : value / P[c * d + c];
                        if (c < i) m[i] -= P[i * d + c] * m[c];
                    }
                    m[i] /= P[i * d + i];
                }
                for (int32_t i = 0; i < d; ++i) m[i] += random_standard_normal(g);
                for (int32_t i = d - 1; i >= 0; --i) {
                    for (int32_t r = i + 1; r < d; ++r) m[i] -= P[r * d + i] * m[r];
                    m[i] /= P[i * d + i];
                    mean_[i * q_ + j] = m[i];
                }
            }
        }
        set_prior();
    }

  private:
    // Statistics: the number of rows; the factor, column by column; power and norm of the
    // predictive distribution; and the logs of the factors of det(F F^T) and of det(R R^T) due
    // to the observations, which a strong prior would absorb in the diagonal.
    int32_t at(int32_t i, int32_t j) const { return j * (q_ + n_columns) - j * (j + 1) / 2 + i; }

    // Set z_ to a row, standardised; without missing inputs: those are set to the mean.
    void standardise(const double *y, bool fills = false) const {
        const int32_t d = n_columns;
        for (int32_t j = 0; j < n_inputs; ++j) {
            const double value = y[d + j];
            z_[j] = fills && std::isnan(value) ? 0.0 : (value - centre_[j % d]) / deviation_[j % d];
        }
        z_[q_ - 1] = 1.0;
        for (int32_t i = 0; i < d; ++i) z_[q_ + i] = (y[i] - centre_[i]) / deviation_[i];
    }
    void set_prior() {
        const int32_t d = n_columns;
        log_det_ = d * std::log(scale_);
        for (int32_t j = 0; j < q_; ++j) {
            const double root = std::sqrt(strength_[j / d]);
            for (int32_t i = j; i < q_; ++i) prior_[at(i, j)] = i == j ? root : 0.0;
            for (int32_t i = 0; i < d; ++i) prior_[at(q_ + i, j)] = root * mean_[i * q_ + j];
        }
        for (int32_t i = 0; i < d; ++i) {
            for (int32_t j = 0; j <= i; ++j)
                prior_[at(q_ + i, q_ + j)] = std::sqrt(scale_) * unit_[i * (i + 1) / 2 + j];
            log_det_ += 2.0 * std::log(unit_[i * (i + 1) / 2 + i]);
        }
    }
    void read(const double *s, int64_t stride) const {
        for (int32_t i = 0; i < size_; ++i) factor_[i] = s[(1 + i) * stride];
    }
    void write(double *s, int64_t stride) const {
        for (int32_t i = 0; i < size_; ++i) s[(1 + i) * stride] = factor_[i];
        update(s, stride);
    }
    void update(double *s, int64_t stride) const {
        double *last = s + (1 + size_) * stride;
        last[0] = 0.5 * (dof_ + s[0] + 1.0);
        last[stride] = ratio_(s[0]) - 0.5 * n_columns * kLogPi - log_unit_
                       - 0.5 * (log_det_ + last[3 * stride]);
    }
    // Columns `from` to `to` of a rank-one update of the factor by z_; return the growth of the
    // log determinant.
    double rotate(double **entry, int32_t from, int32_t to) const {
        double more = 0.0, growth = 0.0;    // more: the product of all 1 + t^2, less 1
        for (int32_t j = from; j < to; ++j) {
            const double t = z_[j] / **entry;
            // A t beyond 1e150 would overflow.
            const double c = std::fabs(t) < 1e150 ? std::sqrt(1.0 + t * t) : std::fabs(t);
            if (std::fabs(t) < 1.0) more += t * t * (1.0 + more);
            else growth += 2.0 * std::log(c);
            rotate_column(entry, j, c, t, t);
        }
        return growth + std::log1p(more);
    }
    // The same for its reversal; return the product of all 1 - t^2, less 1.
    double rotate_back(double **entry, int32_t from, int32_t to) const {
        double less = 0.0;
        for (int32_t j = from; j < to; ++j) {
            const double t = z_[j] / **entry;
            less -= t * t * (1.0 + less);
            rotate_column(entry, j, std::sqrt((1.0 - t) * (1.0 + t)), -t, t);
        }
        return less;
    }
    void rotate_column(double **entry, int32_t j, double c, double t, double back) const {
        const double inverse = 1.0 / c;
        *(*entry)++ *= c;
        double *L = *entry - j - 1, *z = z_.data();
        for (int32_t i = j + 1; i < q_ + n_columns; ++i) {
            L[i] = (L[i] + t * z[i]) * inverse;
            z[i] = c * z[i] - back * L[i];
        }
        *entry += q_ + n_columns - j - 1;
    }
    // Replace the row x by x T^-1, T the block of the factor from `from` to `to`.
    void solve_row(int32_t from, int32_t to, double *x) const {
        for (int32_t j = to - 1; j >= from; --j) {
            for (int32_t l = j + 1; l < to; ++l) x[j - from] -= x[l - from] * factor_[at(l, j)];
            x[j - from] /= factor_[at(j, j)];
        }
    }

    int32_t order_, q_, size_ = 0;
    std::vector<double> centre_, deviation_, mean_, strength_;
    double dof_, scale_ = 1.0, log_unit_ = 0.0, log_det_ = 0.0;
    bool draws_mean_, draws_strength_, draws_scale_;
    std::vector<double> unit_, prior_;      // Cholesky factors: of the scale, of S_0
    RisingTable ratio_;
    mutable std::vector<double> z_, rest_, factor_;     // scratch; a family belongs to one thread
};

}  // namespace skihmm
