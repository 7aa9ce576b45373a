// Vector autoregression with intercept as a conjugate family.
//
// Columns are standardised.  With x = (earlier rows, latest first; 1) of q entries:
// Sigma ~ InvWishart(Psi, dof), A | Sigma ~ MatrixNormal(M, Sigma, Lambda^-1), Lambda diagonal,
// y ~ N(A x, Sigma).  Let S be the sum of z z^T over all z = (x, y) of a state, and of the prior
//
//     S_0 = [Lambda, Lambda M^T; M Lambda, Psi + M Lambda M^T].
//
// Of S = L D L^T with L = [F, 0; B, R] of unit diagonal and D diagonal, F D_x F^T is the precision
// of the columns of A, B F^-1 their posterior mean and R D_y R^T the posterior scale of Sigma: one
// rank-one update adds a row.  With w = L^-1 z, the solution of a triangular system,
// |w_x|^2 = w_x^T D_x^-1 w_x and |w_y|^2 likewise, the predictive distribution of y is
//
//     norm - d/2 log(1 + |w_x|^2) - power log(1 + |w_y|^2 / (1 + |w_x|^2)).
//
// (With roots of D in L, as in a Cholesky factor, each column of an update would wait for two
// divisions and a root, and each of a system for a division.)
#pragma once
#include "_conjugate_families.hpp"

namespace skihmm {

// A removal that leaves less than this share of a determinant asks for a recount, so that few
// digits are lost even in ten thousand removals.
constexpr double kLeastLeft = 1e-3;

// Larger standardised values are clipped.
constexpr double kMostDeviations = 1e60;

// States evaluated together.
constexpr int32_t kTogether = 4;

// L is stored column by column, each from the vector with its diagonal entry on, and with zeros in
// whole vectors; in place of the ones of its diagonal stands D.  So operations on the vectors of a
// row z find in one piece what that of the column before has stored.  Behind the factor of a state
// follow power and norm.
constexpr int32_t kVector = 8;
inline int32_t in_vectors(int32_t n) { return (n + kVector - 1) / kVector * kVector; }

// Add the log of the predictive density above under C states, together because the columns of
// one state depend on one another; z is the standardised row, and zeros.
template <int C>
SKIHMM_INLINE void add_predictives(int64_t stride, int32_t q, int32_t d, const double *z,
                                   const double *table, double *rest, double *out) {
    const int32_t size = q + d, width = in_vectors(size);
    const double *entry[C];
    double w[C], leverage[C], total[C];
    for (int32_t c = 0; c < C; ++c) {
        entry[c] = table + c * stride + 1;
        leverage[c] = 1.0;
        total[c] = 0.0;
        std::copy_n(z, width, rest + c * width);
    }
    for (int32_t j = 0; j < size; ++j) {
        const int32_t first = j / kVector * kVector;
        for (int32_t c = 0; c < C; ++c) {
            w[c] = rest[c * width + j];
            (j < q ? leverage : total)[c] += w[c] * w[c] * (1.0 / entry[c][j - first]);
        }
        for (int32_t c = 0; c < C; ++c) {
            double *value = rest + c * width;
            for (int32_t i = first; i < width; i += kVector, entry[c] += kVector)
                for (int32_t l = 0; l < kVector; ++l) value[i + l] -= entry[c][l] * w[c];
        }
    }
    for (int32_t c = 0; c < C; ++c)
        out[c] += entry[c][1] - 0.5 * d * log_of(leverage[c])
                  - entry[c][0] * log1p_of(total[c] / leverage[c]);
}
SKIHMM_CLONES static void fill_regression(int32_t n, int64_t stride, int32_t q, int32_t d,
                                          const double *z, const double *table, double *rest,
                                          double *out) {
    int32_t k = 0;
    for (; k + kTogether <= n; k += kTogether)
        add_predictives<kTogether>(stride, q, d, z, table + k * stride, rest, out + k);
    for (; k < n; ++k) add_predictives<1>(stride, q, d, z, table + k * stride, rest, out + k);
}
#if defined(__GNUC__) || defined(__clang__)
typedef double Lanes __attribute__((vector_size(4 * sizeof(double)), aligned(8), may_alias));
#else
typedef double Lanes;
#endif
// A number of each of kRows rows.
constexpr int32_t kRows = Family::kRows;
struct Rows {
    static constexpr int32_t kParts = kRows * sizeof(double) / sizeof(Lanes);
    Lanes parts[kParts];

    SKIHMM_INLINE static Rows of(double x) {
        Rows all;
        for (Lanes &part : all.parts) part = Lanes{} + x;
        return all;
    }
    SKIHMM_INLINE void subtract(double x, const Rows &y) {
        for (int32_t i = 0; i < kParts; ++i) parts[i] -= x * y.parts[i];
    }
    SKIHMM_INLINE void add_square(double x, const Rows &y) {
        for (int32_t i = 0; i < kParts; ++i) parts[i] += y.parts[i] * y.parts[i] * x;
    }
    SKIHMM_INLINE void store(double *out) const {
        std::copy_n(parts, kParts, reinterpret_cast<Lanes *>(out));
    }
};
// As fill_regression for kRows rows at once, of which z[j][r] is number j of row r:
// out[k * kRows + r] = log p.  The same operations in the same order, so the same results.
SKIHMM_CLONES static void fill_regressions(int32_t n, int64_t stride, int32_t q, int32_t d,
                                           const double *z, const double *table,
                                           double *scratch, double *out) {
    // Columns that are subtracted together; they begin in the same vector.
    constexpr int32_t kColumns = 4;
    const int32_t size = q + d, width = in_vectors(size);
    Rows *rest = reinterpret_cast<Rows *>(scratch);
    Rows w[kColumns];
    double leverages[kRows], totals[kRows];
    for (Rows &column : w) column = Rows::of(0.0);
    for (int32_t k = 0; k < n; ++k, out += kRows) {
        const double *entry = table + k * stride + 1;
        Rows squares = Rows::of(1.0), leverage = squares;
        std::copy_n(z, size * kRows, scratch);
        for (int32_t from = 0; from < size; from += kColumns) {
            const int32_t first = from / kVector * kVector, length = width - first;
            const int32_t to = std::min(from + kColumns, size);
            // Entry (i, from + c) is columns[i + c * length].
            const double *columns = entry - first;
            for (int32_t c = 0; c < to - from; ++c) {
                if (from + c == q) {
                    leverage = squares;
                    squares = Rows::of(0.0);
                }
                w[c] = rest[from + c];
                for (int32_t b = 0; b < c; ++b)
                    w[c].subtract(columns[from + c + b * length], w[b]);
                squares.add_square(1.0 / columns[from + c + c * length], w[c]);
            }
            // There are more rows only if there are all of these columns.
            for (int32_t i = to; i < size; ++i) {
                Rows value = rest[i];
                for (int32_t c = 0; c < kColumns; ++c)
                    value.subtract(columns[i + c * length], w[c]);
                rest[i] = value;
            }
            entry += (to - from) * length;
        }
        leverage.store(leverages);
        squares.store(totals);
        for (int32_t r = 0; r < kRows; ++r)
            out[r] = entry[1] - 0.5 * d * log_of(leverages[r])
                     - entry[0] * log1p_of(totals[r] / leverages[r]);
    }
}
// Columns `from` to `to` of the factors of S + weight z z^T, of `size` rows; `column` is the first
// of them, and z and the weight become those for the rows that follow (Gill, Golub, Murray and
// Saunders 1974, method C1).  Returns the growth of their log determinant; NaN if the result is
// not positive definite.
SKIHMM_CLONES static double update_factor(double *column, double *z, int32_t from, int32_t to,
                                          int32_t size, double *weight) {
    double more = 0.0, growth = 0.0;    // more: the product of all 1 + x, less 1
    double share = *weight;
    for (int32_t j = from; j < to; ++j) {
        const int32_t first = j / kVector * kVector;
        const double p = z[j], before = column[j - first], added = share * (p * p);
        const double after = before + added, x = added / before;
        if (!(after > 0.0)) return NAN;
        if (x < 1.0) more += x * (1.0 + more);
        else growth += std::log(after / before);
        const double turn = share * p / after;
        share *= before / after;
        double *diagonal = column + (j - first);
        for (int32_t i = first; i < in_vectors(size); i += kVector, column += kVector)
            for (int32_t l = 0; l < kVector; ++l) {
                z[i + l] = i + l > j ? z[i + l] - p * column[l] : 0.0;
                column[l] += turn * z[i + l];
            }
        *diagonal = after;
    }
    *weight = share;
    return growth + std::log1p(more);
}
// out[k] += norm - |P_k z|^2 / 2 for row i of P of width q + i + 1; norm follows P.
SKIHMM_CLONES static void fill_residuals(int32_t n, int64_t stride, int32_t q, int32_t d,
                                         const double *z, const double *table, double *out) {
    for (int32_t k = 0; k < n; ++k, table += stride) {
        const double *entry = table;
        double total = 0.0;
        for (int32_t i = 0; i < d; entry += q + ++i) {
            double sum = 0.0;
            for (int32_t j = 0; j <= q + i; ++j) sum += entry[j] * z[j];
            total += sum * sum;
        }
        out[k] += *entry - 0.5 * total;
    }
}

// A row without all inputs or values is missing as a whole.
//
// Hyperparameters: M row by row, the precision of every lag and that of the intercept, and the
// factor s of Psi = s * scale.  Drawn ones have the priors M_ij ~ N(1 on the diagonal of the
// first lag, else 0; variance 1), precisions ~ Gamma(1, 1/10), s ~ Gamma(1/2, 1/2).
class AutoregressiveFamily final : public Family {
  public:
    // centre, deviation: of the columns; scale: its lower triangle, row by row.
    AutoregressiveFamily(int32_t d, int32_t order, const double *centre,
                         const double *deviation, const double *mean, const double *strength,
                         double dof, const double *scale, bool draws_mean,
                         bool draws_strength, bool draws_scale, int64_t n_steps)
        : order_(order), q_(d * order + 1), size_(q_ + d), centre_(centre, centre + d),
          deviation_(deviation, deviation + d), mean_(mean, mean + d * q_),
          strength_(strength, strength + order + 1), dof_(dof), draws_mean_(draws_mean),
          draws_strength_(draws_strength), draws_scale_(draws_scale),
          unit_(scale, scale + d * (d + 1) / 2), z_(in_vectors(size_)),
          rest_(z_.size() * kTogether) {
        n_columns = d;
        is_concurrent = true;
        n_inputs = d * order;
        is_wide = true;
        columns_.push_back(0);
        for (int32_t j = 0; j < size_; ++j)
            columns_.push_back(columns_.back() + in_vectors(size_) - j / kVector * kVector);
        growth_at_ = 1 + columns_.back() + 2;
        width = growth_at_ + 2;
        parameter_width = d * q_ + d * (d + 1) / 2 + 1;
        n_hyperparameters = d * q_ + order + 2;
        draws_hyperparameters = draws_mean || draws_strength || draws_scale;
        n_expected = d * q_ + d * d;
        // (dof_n + 1) / 2 and (dof_n + 1 - d) / 2 are d / 2 apart.
        ratio_.configure((dof + 1.0 - d) / 2.0, 0.5, d / 2.0, n_steps);
        for (const double value : deviation_) log_unit_ += std::log(value);
        prior_.resize(columns_.back());
        factorise(d, unit_.data());
        set_prior();
    }
    void next_inputs(const double *row, double *inputs) const override {
        if (row) std::copy_n(row, n_inputs, inputs);
        else std::fill_n(inputs, n_inputs, NAN);
    }
    void reset(double *s, int64_t) const override {
        s[0] = 0.0;
        std::copy(prior_.begin(), prior_.end(), s + 1);
        s[growth_at_] = s[growth_at_ + 1] = 0.0;
        update(s);
    }
    bool is_missing(const double *y) const override {
        for (int32_t i = 0; i < row_width(); ++i)
            if (std::isnan(y[i])) return true;
        return false;
    }
    double log_predictive(const double *s, int64_t, const double *y) const override {
        double lp = 0.0;
        fill(s, width, 1, y, &lp);
        return lp;
    }
    void add(double *s, int64_t stride, const double *y) const override {
        if (!is_missing(y)) add_predicted(s, stride, y);
    }
    // The determinants grow by the factors that the predictive density has of the row.
    double add_predicted(double *s, int64_t, const double *y) const override {
        const double *power = s + growth_at_ - 2, power_before = power[0], norm = power[1];
        Growth growth;
        turn(s, y, 1.0, z_.data(), &growth);
        s[0] += 1.0;
        update(s);
        return norm - 0.5 * n_columns * growth.inputs - power_before * growth.values;
    }
    void add_rows(double *s, int64_t, const double *values, const int64_t *steps,
                  int64_t n) const override {
        std::vector<double> z(z_.size());
        Growth growth;
        for (int64_t r = 0; r < n; ++r)
            turn(s, values + steps[r] * row_width(), 1.0, z.data(), &growth);
        s[0] += static_cast<double>(n);
        update(s);
    }
    bool remove(double *s, int64_t stride, const double *y) const override {
        double lp;
        return is_missing(y) || remove_predicted(s, stride, y, &lp);
    }
    bool remove_predicted(double *s, int64_t stride, const double *y,
                          double *lp) const override {
        if (s[0] == 1.0) {
            reset(s, stride);
            *lp = log_predictive(s, stride, y);
            return true;
        }
        Growth growth;
        if (!turn(s, y, -1.0, z_.data(), &growth)) return false;
        s[0] -= 1.0;
        update(s);
        const double *power = s + growth_at_ - 2;
        *lp = power[1] + 0.5 * n_columns * growth.inputs + power[0] * growth.values;
        return true;
    }
    double log_marginal(const double *s, int64_t) const override {
        const double n = s[0], *growth = s + growth_at_;
        if (n == 0.0) return 0.0;
        double lp = -n * (0.5 * n_columns * kLogPi + log_unit_) - 0.5 * n_columns * growth[0]
                    - 0.5 * dof_ * growth[1] - 0.5 * n * (log_det_ + growth[1]);
        for (int32_t i = 0; i < n_columns; ++i) lp += log_rising(0.5 * (dof_ - i), 0.5 * n);
        return lp;
    }
    void fill(const double *table, int64_t stride, int32_t n, const double *y,
              double *out) const override {
        if (is_missing(y)) return;
        standardise(y);
        fill_regression(n, stride, q_, n_columns, z_.data(), table, rest_.data(), out);
    }
    void fill_together(const double *table, int64_t stride, int32_t n, const double *y,
                       int32_t n_rows, double *out, int64_t out_stride) const override {
        rows_.assign(static_cast<size_t>(size_) * kRows, 0.0);
        rows_out_.resize(static_cast<size_t>(n) * kRows);
        rows_rest_.resize(rows_.size());
        for (int32_t r = 0; r < n_rows; ++r) {
            if (is_missing(y + r * row_width())) continue;
            standardise(y + r * row_width());
            for (int32_t j = 0; j < size_; ++j) rows_[j * kRows + r] = z_[j];
        }
        fill_regressions(n, stride, q_, n_columns, rows_.data(), table, rows_rest_.data(),
                         rows_out_.data());
        for (int32_t r = 0; r < n_rows; ++r)
            if (!is_missing(y + r * row_width()))
                for (int32_t k = 0; k < n; ++k)
                    out[r * out_stride + k] += rows_out_[k * kRows + r];
    }
    void fill_rows(const double *rows, int32_t n, const double *last, const double *y,
                   double *out) const override {
        fill(rows, width, n, y, out);
        fill(last, width, 1, y, out + n);
    }
    bool is_sound(const double *s, int64_t) const override {
        double growth[2] = {0.0, 0.0};
        if (!all_finite(s, width)) return false;
        for (int32_t j = 0; j < size_; ++j) {
            if (!(s[1 + at(j, j)] > 0.0)) return false;
            growth[j >= q_] += std::log(s[1 + at(j, j)] / prior_[at(j, j)]);
        }
        return s[0] >= 0.0 && s[growth_at_ - 2] > 0.0
               && std::fabs(growth[0] - s[growth_at_]) < 1e-6
               && std::fabs(growth[1] - s[growth_at_ + 1]) < 1e-6;
    }
    // Sigma^-1 = W^T W with W = C D_y^-1/2 R^-1 lower triangular, C^T C ~ Wishart(I, dof_n): by
    // Bartlett, rows counted from below, C has independent entries.  Then A is
    // (B + W^-1 E D_x^-1/2) F^-1, E standard normal.  Parameters are the rows of P = (-W A, W), so
    // that P z is white noise.
    void draw(const double *s, int64_t, double *p, int64_t, bitgen_t *g) const override {
        const int32_t d = n_columns;
        const double *L = s + 1;
        double log_whitening = 0.0;
        for (int32_t i = 0; i < d; ++i, p += q_ + i) {
            double *w = p + q_;
            for (int32_t j = 0; j < i; ++j)
                w[j] = random_standard_normal(g) / std::sqrt(L[at(q_ + j, q_ + j)]);
            const double log_square =
                std::log(2.0) + draw_log_gamma(g, 0.5 * (dof_ + s[0] - d + 1.0 + i));
            const double log_root = 0.5 * (log_square - std::log(L[at(q_ + i, q_ + i)]));
            w[i] = std::exp(log_root);
            log_whitening += log_root;
            solve_row(L, q_, q_ + i + 1, w);
            for (int32_t j = 0; j < q_; ++j) {
                p[j] = random_standard_normal(g) / std::sqrt(L[at(j, j)]);
                for (int32_t l = 0; l <= i; ++l) p[j] -= w[l] * L[at(q_ + l, j)];
            }
            solve_row(L, 0, q_, p);
        }
        *p = log_whitening - 0.5 * d * kLog2Pi - log_unit_;
    }
    double log_density(const double *p, int64_t, const double *y) const override {
        if (is_missing(y)) return 0.0;
        static thread_local std::vector<double> z;
        z.resize(z_.size());
        standardise(y, z.data());
        double lp = 0.0;
        fill_residuals(1, parameter_width, q_, n_columns, z.data(), p, &lp);
        return lp;
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        if (is_missing(y)) return;
        standardise(y);
        fill_residuals(n, stride, q_, n_columns, z_.data(), table, out);
    }
    void emit(const double *p, int64_t, double *y, bitgen_t *g) const override {
        standardise(y, true);
        for (int32_t i = 0; i < n_columns; ++i, p += q_ + i) {
            double value = random_standard_normal(g);
            for (int32_t j = 0; j < q_ + i; ++j) value -= p[j] * z_[j];
            z_[q_ + i] = value / p[q_ + i];
            y[i] = centre_[i] + deviation_[i] * z_[q_ + i];
        }
    }
    void mean(const double *s, int64_t, double *y) const override {
        std::vector<double> expected(n_expected);
        expect(s, 1, expected.data());
        standardise(y, true);
        for (int32_t i = 0; i < n_columns; ++i) {
            double value = 0.0;
            for (int32_t j = 0; j < q_; ++j) value += expected[i * q_ + j] * z_[j];
            y[i] = centre_[i] + deviation_[i] * value;
        }
    }
    // Mean of A, row by row, and covariance, of standardised columns.
    void expect(const double *s, int64_t, double *out) const override {
        const int32_t d = n_columns;
        const double *L = s + 1, rest = dof_ + s[0] - d - 1.0;
        for (int32_t i = 0; i < d; ++i, out += q_) {
            for (int32_t j = 0; j < q_; ++j) out[j] = L[at(q_ + i, j)];
            solve_row(L, 0, q_, out);
        }
        for (int32_t i = 0; i < d; ++i)
            for (int32_t j = 0; j <= i; ++j) {
                double value = 0.0;
                for (int32_t l = 0; l <= j; ++l)
                    value += L[at(q_ + l, q_ + l)] * (l < i ? L[at(q_ + i, q_ + l)] : 1.0)
                             * (l < j ? L[at(q_ + j, q_ + l)] : 1.0);
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
    void draw_hyperparameters(const double *table, int64_t, const int64_t *places, int32_t n,
                              bitgen_t *g) override {
        const int32_t d = n_columns;
        std::vector<double> parameters(static_cast<size_t>(n) * parameter_width);
        // The sum Q of all Sigma^-1 = W^T W; for column j the sum of Sigma^-1 a_j.
        std::vector<double> Q(d * d, 0.0), weighted(static_cast<size_t>(d) * q_, 0.0);
        for (int32_t k = 0; k < n; ++k) {
            double *p = &parameters[static_cast<size_t>(k) * parameter_width];
            draw(table + places[k], 1, p, 1, g);
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
    // Statistics: the number of rows; L and D; power and norm of the predictive distribution; and
    // the logs of the factors of det(D_x) and of det(D_y) due to the observations, which a strong
    // prior would absorb.
    int32_t at(int32_t i, int32_t j) const { return columns_[j] + i - j / kVector * kVector; }

    // Set z_, or another array of its size, to a row, standardised; if it `fills`, with missing
    // inputs at the mean.
    void standardise(const double *y, bool fills = false) const {
        standardise(y, z_.data(), fills);
    }
    void standardise(const double *y, double *out, bool fills = false) const {
        const int32_t d = n_columns;
        for (int32_t i = 0; i < row_width(); ++i) {
            const double value = (y[i] - centre_[i % d]) / deviation_[i % d];
            // Products of a few of these numbers must not overflow.
            const double z = std::min(std::max(value, -kMostDeviations), kMostDeviations);
            out[i < d ? q_ + i : i - d] = fills && std::isnan(z) ? 0.0 : z;
        }
        out[q_ - 1] = 1.0;
        std::fill(out + size_, out + z_.size(), 0.0);
    }
    void set_prior() {
        const int32_t d = n_columns;
        log_det_ = d * std::log(scale_);
        for (int32_t j = 0; j < q_; ++j) {
            for (int32_t i = j; i < q_; ++i) prior_[at(i, j)] = i == j ? strength_[j / d] : 0.0;
            for (int32_t i = 0; i < d; ++i) prior_[at(q_ + i, j)] = mean_[i * q_ + j];
        }
        for (int32_t j = 0; j < d; ++j) {
            const double root = unit_[j * (j + 1) / 2 + j];
            prior_[at(q_ + j, q_ + j)] = scale_ * root * root;
            for (int32_t i = j + 1; i < d; ++i)
                prior_[at(q_ + i, q_ + j)] = unit_[i * (i + 1) / 2 + j] / root;
            log_det_ += 2.0 * std::log(root);
        }
    }
    void update(double *s) const {
        double *power = s + growth_at_ - 2;
        power[0] = 0.5 * (dof_ + s[0] + 1.0);
        power[1] = ratio_(s[0]) - 0.5 * n_columns * kLogPi - log_unit_
                   - 0.5 * (log_det_ + s[growth_at_ + 1]);
    }
    // Of the log determinants of D_x and D_y.
    struct Growth {
        double inputs, values;
    };
    // Add a row to the factor or remove it; false if too many digits would be lost.
    bool turn(double *s, const double *y, double sign, double *z, Growth *growth) const {
        standardise(y, z);
        growth->inputs = update_factor(s + 1, z, 0, q_, size_, &sign);
        growth->values = update_factor(s + 1 + columns_[q_], z, q_, size_, size_, &sign);
        s[growth_at_] += growth->inputs;
        s[growth_at_ + 1] += growth->values;
        // False for NaN too.
        return growth->inputs > std::log(kLeastLeft) && growth->values > std::log(kLeastLeft);
    }
    // Replace the row x by x T^-1, T the block of L from `from` to `to`.
    void solve_row(const double *L, int32_t from, int32_t to, double *x) const {
        for (int32_t j = to - 1; j >= from; --j)
            for (int32_t l = j + 1; l < to; ++l) x[j - from] -= x[l - from] * L[at(l, j)];
    }

    int32_t order_, q_, size_, growth_at_;
    std::vector<int32_t> columns_;          // where the columns of a factor begin
    std::vector<double> centre_, deviation_, mean_, strength_;
    double dof_, scale_ = 1.0, log_unit_ = 0.0, log_det_ = 0.0;
    bool draws_mean_, draws_strength_, draws_scale_;
    std::vector<double> unit_, prior_;      // the Cholesky factor of the scale; L and D of S_0
    RisingTable ratio_;
    // Scratch; a family belongs to one thread.
    mutable std::vector<double> z_, rest_, rows_, rows_rest_, rows_out_;
};

}  // namespace skihmm
