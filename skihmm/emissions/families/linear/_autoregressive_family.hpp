// Vector autoregression with intercept as a conjugate family.
//
// Columns are standardised.  With x = (earlier rows, latest first; given inputs; 1) of q entries:
// Sigma ~ InvWishart(Psi, dof), A | Sigma ~ MatrixNormal(M, Sigma, Lambda^-1), Lambda diagonal,
// y ~ N(A x, Sigma).  Let S be the sum of z z^T over all z = (x, y) of a state, and of the prior
//
//     S_0 = [Lambda, Lambda M^T; M Lambda, Psi + M Lambda M^T].
//
// Of S = L D L^T with L = [F, 0; B, R] of unit diagonal and D diagonal, F D_x F^T is the precision
// of the columns of A, B F^-1 their posterior mean and R D_y R^T the posterior scale of Sigma.
// What is kept is the inverse G = L^-1 = [F^-1, 0; -R^-1 B F^-1, R^-1] and 1 / D, because every row
// is evaluated under every state: that is then a product of matrices, w = G z, without a system to
// solve.  With |w_x|^2 = w_x^T D_x^-1 w_x, |w_y|^2 likewise, the predictive distribution of y is
//
//     norm - d/2 log(1 + |w_x|^2) - power log(1 + |w_y|^2 / (1 + |w_x|^2)).
//
// S + c z z^T, c = 1 or -1, has with t_0 = c, t_i+1 = t_i + w_i^2 / D_i the factors
//
//     D_i t_i+1 / t_i,   G_i - w_i / t_i sum_l<i w_l / D_l G_l   (row i)
//
// (Gill, Golub, Murray and Saunders 1974, method C1, of which the inverse was taken here: the
// products of 1 + x telescope), so an added row costs as much as two evaluations.  Many rows are
// added to sums of z z^T first, which are factorised once.
//
// With Student's t noise (_student_noise.hpp) a row of weight w is one of normal noise, of
// sqrt(w) z; the factor w^(d/2) of its density and the density of w are the same for all states,
// and left out.
#pragma once
#include "_family.hpp"
#include "_hyperparameters.hpp"
#include "_inverse_factors.hpp"
#include "_matrix_family.hpp"
#include "_product.hpp"
#include "_random.hpp"
#include "_student_noise.hpp"

namespace skihmm {

// Larger standardised values are clipped.
constexpr double kMostDeviations = 1e60;

// Hyperparameters: M row by row, the precision of every lag, that of the given inputs and that of
// the intercept, and the factor s of Psi = s * scale.  If precisions are fixed, every given input
// has its own.  Drawn ones have the priors M_ij ~ N(1 on the diagonal of the first lag, else 0;
// variance 1), precisions ~ Gamma(1, 1/10), s ~ Gamma(1/2, 1/2).  Given inputs come standardised.
// Student's t noise has its degrees of freedom besides, which are always drawn.
class AutoregressiveFamily final : public MatrixFamily, public WeightedFamily {
  public:
    // Hyperparameters: mean, strengths, and the lower triangle of the scale, row by row; of
    // Student's t noise the degrees of freedom.  Units: centres and deviations of the columns.
    AutoregressiveFamily(const FamilySetting &setting, bool is_student)
        : MatrixFamily(setting), noise_(n_columns, 1.0),
          order_((n_inputs - n_given) / n_columns),
          q_(n_inputs + 1), size_(q_ + n_columns), side_(side_of_sums(size_)),
          z_(in_panels(size_)) {
        const int32_t d = n_columns;
        const double *hyper = setting.hyperparameters, *units = setting.units;
        mean_.assign(hyper, hyper + d * q_);
        hyper += d * q_;
        for (int32_t j = 0; j < d * order_; ++j) group_.push_back(j / d);
        for (int32_t j = 0; j < n_given; ++j)
            group_.push_back(setting.is_drawn[1] ? order_ : order_ + j);
        group_.push_back(group_.empty() ? 0 : group_.back() + 1);
        const int32_t n_groups = group_.back() + 1;
        strength_.assign(hyper, hyper + n_groups);
        hyper += n_groups;
        unit_.assign(hyper, hyper + d * (d + 1) / 2);
        if (is_student) {
            n_weights = 1;
            weighted = this;
            draws_hyperparameters = true;
            noise_.set_dof(hyper[d * (d + 1) / 2]);
        }
        deviation_.assign(units + d, units + 2 * d);
        scratch_.resize(5 * z_.size() + kPanel);
        gap_order = order_;
        gap_units[0] = centre_.data();
        gap_units[1] = deviation_.data();
        is_wide = true;
        // Without scans 24,482 instead of 24,331 as the log joint of motion capture (mean of three).
        has_lasting_states = true;
        inverse_at_ = 1 + panels_end(size_);
        growth_at_ = inverse_at_ + size_ + 2;
        width = growth_at_ + 2;
        n_hyperparameters = d * q_ + n_groups + 1 + n_weights;
        for (const double value : deviation_) log_unit_ += std::log(value);
        prior_.resize(inverse_at_ - 1 + size_);
        factorise(d, unit_.data());
        set_prior();
    }
    void next_inputs(const double *row, double *inputs) const override {
        // Those that are given are not of the row before.
        const int32_t n_lagged = n_columns * order_;
        if (row) std::copy_n(row, n_lagged, inputs);
        else std::fill_n(inputs, n_lagged, NAN);
    }
    void reset(double *s, int64_t) const override {
        s[0] = 0.0;
        std::copy(prior_.begin(), prior_.end(), s + 1);
        s[growth_at_] = s[growth_at_ + 1] = 0.0;
        update(s);
    }
    void complete(const double *s, double *y, bitgen_t *g) const override {
        const double power = s[growth_at_ - 2];
        double leverage, squares = squares_of_part(s, y, &leverage, true);
        if (is_new(y)) {
            const double w = noise_of(part_.n()).draw_weight(leverage, squares, part_.power(power), g);
            y[data_width()] = w;
            leverage = 1.0 + w * (leverage - 1.0);
            squares = squares_of_part(s, y, &leverage, true);
        }
        const double root = n_weights > 0 ? std::sqrt(y[data_width()]) : 1.0;
        // The predicted values, for the missing entries.
        part_.draw(power, leverage, squares, g, [&](int32_t i, double residual) {
            y[i] = centre_[i] + deviation_[i] * (residual - residuals_[i]) / root;
        });
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
        if (is_missing(y)) {
            for (int32_t k = 0; k < n && !is_unseen(y); ++k)
                out[k] += log_of_part(table + k * stride, y);
            return;
        }
        standardise(y);
        if (!is_new(y))
            return fill_regression(n, stride, q_, n_columns, z_.data(), table, scratch_.data(), out);
        double empty = NAN;
        for (int32_t k = 0; k < n; ++k, table += stride) {
            double lp = empty;
            if (table[0] > 0.0 || std::isnan(empty)) {
                const double *power = table + growth_at_ - 2;
                double leverage, total;
                find_leverage(table, &leverage, &total);
                // planted: weight of a new row with tails
                lp = power[1] + noise_.log_integral(leverage, total, power[0]);
                if (table[0] == 0.0) empty = lp;
            }
            out[k] += lp;
        }
    }
    void fill_together(const double *table, int64_t stride, int32_t n, const double *y,
                       int32_t n_rows, double *out, int64_t out_stride) const override {
        for (int32_t r = 0; r < n_rows; ++r)
            if (is_new(y + r * row_width()))
                return LinearFamily::fill_together(table, stride, n, y, n_rows, out, out_stride);
        if (n_rows <= kFewRows)
            fill_together(fill_few_regressions, &few_rows_, table, stride, n, y, n_rows, out,
                          out_stride);
        else
            fill_together(fill_regressions, &rows_, table, stride, n, y, n_rows, out, out_stride);
    }
    bool is_sound(const double *s, int64_t) const override {
        double growth[2] = {0.0, 0.0};
        if (!all_finite(s, width)) return false;
        for (int32_t j = 0; j < size_; ++j) {
            const double inverse = s[inverse_at_ + j];
            if (!(inverse > 0.0)) return false;
            growth[j >= q_] += std::log(prior_[inverse_at_ - 1 + j] / inverse);
        }
        return s[0] >= 0.0 && s[growth_at_ - 2] > 0.0
               && std::fabs(growth[0] - s[growth_at_]) < 1e-6
               && std::fabs(growth[1] - s[growth_at_ + 1]) < 1e-6;
    }
    // Sigma^-1 = W^T W with W = C D_y^-1/2 R^-1 lower triangular, C^T C ~ Wishart(I, dof_n): by
    // Bartlett, rows counted from below, C has independent entries.  Then A is
    // (B + W^-1 E D_x^-1/2) F^-1, E standard normal.  Parameters are the rows of P = (-W A, W), so
    // that P z is white noise: P = (-E D_x^-1/2, C D_y^-1/2) G.
    void draw(const double *s, int64_t, double *p, int64_t, bitgen_t *g) const override {
        const int32_t d = n_columns;
        const double *G = s + 1, *inverse = s + inverse_at_;
        std::vector<double> x(size_);
        double log_whitening = 0.0;
        for (int32_t i = 0; i < d; ++i, p += q_ + i) {
            double *w = &x[q_];
            for (int32_t j = 0; j < i; ++j)
                w[j] = random_standard_normal(g) * std::sqrt(inverse[q_ + j]);
            const double log_square =
                std::log(2.0) + draw_log_gamma(g, 0.5 * (dof_ + s[0] - d + 1.0 + i));
            const double log_root = 0.5 * (log_square + std::log(inverse[q_ + i]));
            w[i] = std::exp(log_root);
            log_whitening += log_root;
            for (int32_t j = 0; j < q_; ++j)
                x[j] = random_standard_normal(g) * std::sqrt(inverse[j]);
            std::fill_n(p, q_ + i + 1, 0.0);
            for (int32_t l = 0; l <= q_ + i; ++l)
                for (int32_t j = 0; j <= l; ++j) p[j] += x[l] * G[at(l, j)];
        }
        *p = log_whitening - 0.5 * d * kLog2Pi - log_unit_;
    }
    void fill_log_densities(const double *table, int64_t stride, const int32_t *states,
                            int32_t n, const double *y, double *out) const override {
        std::fill_n(out, n, 0.0);
        if (is_missing(y)) return;
        static thread_local std::vector<double> z;
        z.resize(z_.size());
        standardise(y, z.data());
        for (int32_t i = 0; i < n; ++i)
            fill_residuals(1, stride, q_, n_columns, z.data(), table + states[i] * stride,
                           out + i);
    }
    void fill_densities(const double *table, int64_t stride, int32_t n, const double *y,
                        double *out) const override {
        if (is_missing(y)) return;
        standardise(y);
        fill_residuals(n, stride, q_, n_columns, z_.data(), table, out);
    }
    void emit(const double *p, int64_t, double *y, bitgen_t *g) const override {
        standardise(y, true);
        const double root = n_weights > 0 ? std::sqrt(noise_.draw_free(g)) : 1.0;
        for (int32_t i = 0; i < n_columns; ++i, p += q_ + i) {
            double value = random_standard_normal(g) / root;
            for (int32_t j = 0; j < q_ + i; ++j) value -= p[j] * z_[j];
            z_[q_ + i] = value / p[q_ + i];
            y[i] = centre_[i] + deviation_[i] * z_[q_ + i];
        }
    }
    void fill_coefficients(const double *p, double *out) const override {
        const int32_t d = n_columns, width = data_width();
        std::fill_n(out, d * (1 + width), 0.0);
        for (int32_t i = 0; i < d; ++i, p += q_ + i, out += 1 + width) {
            out[0] = p[q_ - 1];
            for (int32_t j = 0; j < width; ++j) {
                const int32_t at = j < d ? q_ + j : j - d;
                if (at > q_ + i) continue;
                out[1 + j] = p[at];
                if (j >= d * (order_ + 1)) continue;
                out[1 + j] /= deviation_[j % d];
                out[0] -= out[1 + j] * centre_[j % d];
            }
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
    // Mean of A, row by row, and covariance R D_y R^T / rest, of standardised columns.  By rows,
    // R^-1 A = -(the block of G that is -R^-1 A), and R^-1 R = I.
    void expect(const double *s, int64_t, double *out) const override {
        const int32_t d = n_columns;
        const double *G = s + 1, *inverse = s + inverse_at_, rest = dof_ + s[0] - d - 1.0;
        std::vector<double> R(static_cast<size_t>(d) * d, 0.0);
        for (int32_t i = 0; i < d; ++i) {
            double *row = out + i * q_;
            for (int32_t j = 0; j < q_; ++j) row[j] = -G[at(q_ + i, j)];
            R[i * d + i] = 1.0;
            for (int32_t l = 0; l < i; ++l) {
                const double x = G[at(q_ + i, q_ + l)];
                for (int32_t j = 0; j < q_; ++j) row[j] -= x * out[l * q_ + j];
                for (int32_t j = 0; j <= l; ++j) R[i * d + j] -= x * R[l * d + j];
            }
        }
        out += d * q_;
        for (int32_t i = 0; i < d; ++i)
            for (int32_t j = 0; j <= i; ++j) {
                double value = 0.0;
                for (int32_t l = 0; l <= j; ++l)
                    value += R[i * d + l] * R[j * d + l] / inverse[q_ + l];
                out[i * d + j] = out[j * d + i] = rest > 0.0 ? value / rest : INFINITY;
            }
    }

    void read_hyperparameters(double *out) const override {
        out = std::copy(mean_.begin(), mean_.end(), out);
        out = std::copy(strength_.begin(), strength_.end(), out);
        *out++ = scale_;
        if (n_weights > 0) *out = noise_.dof();
    }
    bool set_hyperparameters(const double *in) override {
        const double *strength = in + mean_.size();
        if (!all_finite(in, mean_.size()) || !all_positive(strength, strength_.size() + 1)
            || (n_weights > 0 && !noise_.is_possible(strength[strength_.size() + 1])))
            return false;
        std::copy_n(in, mean_.size(), mean_.begin());
        std::copy_n(strength, strength_.size(), strength_.begin());
        scale_ = strength[strength_.size()];
        if (n_weights > 0) noise_.set_dof(strength[strength_.size() + 1]);
        set_prior();
        return true;
    }

    // ---- weights of rows

    void open_weights(double *y) const override { y[data_width()] = 1.0; }
    double draw_weight(double squares, int32_t n, bitgen_t *g) const override {
        return noise_of(n).draw(squares, g);
    }
    double draw_free_weight(bitgen_t *g) const override {
        return noise_.draw_free(g);
    }
    double log_noise(double squares, int32_t n) const override {
        return noise_of(n).log_density(squares);
    }
    void draw_weights(const double *s, double *y, bitgen_t *g) const override {
        double leverage, total;
        standardise(y);
        find_leverage(s, &leverage, &total);
        // planted: weight of a particle with tails
        y[data_width()] = noise_.draw_weight(leverage, total, s[growth_at_ - 2], g);
    }
    // The degrees of freedom do not depend on the weights, whose distribution depends on them.
    void draw_given(const double *parameters, int32_t n, const int32_t *states, double *values,
                    int64_t n_steps, Shifts *, bitgen_t *g) override {
        draw_prior(parameters, n, g);
        std::vector<double> q;
        q.reserve(n_steps);
        for (int64_t t = 0; t < n_steps; ++t)
            if (states[t] >= 0)
                q.push_back(squares(parameters + states[t] * static_cast<int64_t>(parameter_width),
                                    values + t * row_width()));
        noise_.draw_dof(q, g);
        const double *squares = q.data();
        for (int64_t t = 0; t < n_steps; ++t)
            if (states[t] >= 0) values[t * row_width() + data_width()] = noise_.draw(*squares++, g);
    }
    // For any A and Sigma, here their means, p(rows) is p(rows | A, Sigma) times their prior over
    // their posterior density, which is that given the weights.
    double log_unweighted(const double *s, const double *values, const int64_t *steps,
                          int64_t n) const override {
        std::vector<double> p(parameter_width);
        double *entry = p.data();
        for (int32_t i = 0; i < n_columns; ++i) {
            const double root = std::sqrt((dof_ + s[0]) * s[inverse_at_ + q_ + i]);
            for (int32_t j = 0; j <= q_ + i; ++j) *entry++ = root * s[1 + at(q_ + i, j)];
        }
        double lp = log_marginal(s, 1);
        for (int64_t l = 0; l < n; ++l) {
            const double *y = values + steps[l] * row_width();
            const double q = squares(p.data(), y);
            lp += noise_.log_density(q) + 0.5 * y[data_width()] * q;
        }
        return lp;
    }

  private:
    // R^T R is the sum of all Sigma^-1 = W^T W; for column j the sum of Sigma^-1 a_j.
    void sum_states(States *states) const override {
        const int32_t d = n_columns;
        std::vector<double> row(d);
        states->precision.resize(d * d);
        states->weighted.resize(static_cast<size_t>(d) * q_);
        for (int32_t k = 0; k < states->n; ++k) {
            const double *p = (*states)[k];
            for (int32_t r = 0; r < d; ++r, p += q_ + r) {
                const double *w = p + q_;
                for (int32_t i = 0; i <= r; ++i)
                    for (int32_t j = 0; j < q_; ++j) states->weighted[i * q_ + j] -= w[i] * p[j];
                std::fill(std::copy_n(w, r + 1, row.begin()), row.end(), 0.0);
                add_to_root(d, row.data(), states->precision.data());
            }
        }
    }
    // By the squares of R U, U U^T the scale.
    void draw_scale(const States &states, bitgen_t *g) override {
        const int32_t d = n_columns;
        double squares = 0.0;
        for (int32_t i = 0; i < d; ++i)
            for (int32_t c = 0; c < d; ++c) {
                double value = 0.0;
                for (int32_t j = std::max(i, c); j < d; ++j)
                    value += states.precision[i * d + j] * unit_[j * (j + 1) / 2 + c];
                squares += value * value;
            }
        scale_ = draw_bounded_gamma(g, scale_, kHyperShape + 0.5 * states.n * dof_ * d,
                                    kHyperRate + 0.5 * squares, kLeastScale, kMostHyper);
    }
    void draw_strengths(const States &states, bitgen_t *g) override {
        const int32_t d = n_columns;
        std::vector<double> squares(strength_.size(), 0.0), row(q_);
        for (int32_t k = 0; k < states.n; ++k) {
            const double *p = states[k];
            for (int32_t r = 0; r < d; ++r, p += q_ + r) {
                std::copy_n(p, q_, row.begin());
                for (int32_t i = 0; i <= r; ++i)
                    for (int32_t j = 0; j < q_; ++j) row[j] += p[q_ + i] * mean_[i * q_ + j];
                for (int32_t j = 0; j < q_; ++j) squares[group_[j]] += row[j] * row[j];
            }
        }
        for (int32_t i = 0; i <= group_.back(); ++i) {
            const auto n_of_group = std::count(group_.begin(), group_.end(), i);
            const int32_t n_entries = states.n * d * static_cast<int32_t>(n_of_group);
            strength_[i] = draw_bounded_gamma(g, strength_[i], 1.0 + 0.5 * n_entries,
                                              0.1 + 0.5 * squares[i], kLeastHyper, kMostHyper);
        }
    }
    // Column j is N(P^-1 (l weighted_j + its prior mean), P^-1), P = I + l R^T R = T^T T.
    void draw_mean(States *states, bitgen_t *g) override {
        const int32_t d = n_columns;
        std::vector<double> T(d * d), m(d), row(d);
        for (int32_t first = 0, end = 0; first < q_; first = end) {
            while (end < q_ && group_[end] == group_[first]) ++end;
            const double l = strength_[group_[first]];
            for (int32_t i = 0; i < d * d; ++i) T[i] = std::sqrt(l) * states->precision[i];
            for (int32_t i = 0; i < d; ++i) {
                std::fill(row.begin(), row.end(), 0.0);
                row[i] = 1.0;
                add_to_root(d, row.data(), T.data());
            }
            for (int32_t j = first; j < end; ++j) {
                for (int32_t i = 0; i < d; ++i) {
                    m[i] = l * states->weighted[i * q_ + j] + (i == j && order_ > 0 ? 1.0 : 0.0);
                    for (int32_t c = 0; c < i; ++c) m[i] -= T[c * d + i] * m[c];
                    m[i] /= T[i * d + i];
                }
                for (int32_t i = 0; i < d; ++i) m[i] += random_standard_normal(g);
                for (int32_t i = d - 1; i >= 0; --i) {
                    for (int32_t r = i + 1; r < d; ++r) m[i] -= T[i * d + r] * m[r];
                    m[i] /= T[i * d + i];
                    mean_[i * q_ + j] = m[i];
                }
            }
        }
    }
    // Statistics: the number of rows; G and 1 / D; power and norm of the predictive distribution;
    // and the logs of the factors of det(D_x) and of det(D_y) due to the observations, which a
    // strong prior would absorb.
    static int32_t at(int32_t i, int32_t j) {
        return panel_start(i / kPanel) + j * kPanel + i % kPanel;
    }

    template <int N, class Fill>
    void fill_together(Fill fill, std::vector<Numbers<N>> *rows, const double *table,
                       int64_t stride, int32_t n, const double *y, int32_t n_rows, double *out,
                       int64_t out_stride) const {
        rows->assign(size_, Numbers<N>::of(0.0));
        rows_out_.resize(static_cast<size_t>(n) * N);
        double totals[N];
        for (int32_t r = 0; r < n_rows; ++r) {
            standardise(y + r * row_width());
            totals[r] = 0.0;
            for (int32_t j = 0; j < size_; ++j) {
                (*rows)[j].data()[r] = z_[j];
                totals[r] += z_[j];
            }
        }
        fill(n, stride, q_, n_columns, rows->data(), table, rows_out_.data());
        for (int32_t r = 0; r < n_rows; ++r) {
            double *logs = out + r * out_stride;
            // A missing or partial row is evaluated again.
            if (std::isnan(totals[r]))
                AutoregressiveFamily::fill(table, stride, n, y + r * row_width(), logs);
            else
                for (int32_t k = 0; k < n; ++k) logs[k] += rows_out_[k * N + r];
        }
    }

    // Of what is observed of a row, L L^T the block of R D_y R^T: |L^-1 (y - A x)|^2 and leverage.
    // `residuals_` are those of all columns, missing values being zero.
    double squares_of_part(const double *s, const double *y, double *leverage, bool all) const {
        const int32_t d = n_columns;
        const double *G = s + 1, *inverse = s + inverse_at_ + q_;
        double total, *w = scratch_.data();
        part_.sort(d, y);
        standardise(y);
        for (int32_t i = 0; i < d; ++i)
            if (std::isnan(y[i])) z_[q_ + i] = 0.0;
        find_leverage(s, leverage, &total);
        // By R^-1 R = I, R below the diagonal; y - A x = R w_y.
        R_.assign(static_cast<size_t>(d) * d, 0.0);
        residuals_.assign(d, 0.0);
        for (int32_t i = 0; i < d; ++i) {
            R_[i * d + i] = 1.0;
            for (int32_t l = 0; l < i; ++l) {
                const double x = G[at(q_ + i, q_ + l)];
                for (int32_t j = 0; j <= l; ++j) R_[i * d + j] -= x * R_[l * d + j];
            }
            for (int32_t l = 0; l <= i; ++l) residuals_[i] += R_[i * d + l] * w[q_ + l];
        }
        part_.factorise([&](int32_t i, int32_t l) { return R_[i * d + l]; },
                        [&](int32_t l) { return inverse[l]; }, all);
        return part_.squares([&](int32_t i) { return residuals_[i]; });
    }
    double log_of_part(const double *s, const double *y) const {
        double leverage, squares = squares_of_part(s, y, &leverage, false), log_unit = 0.0;
        const double power = part_.power(s[growth_at_ - 2]);
        for (const int32_t i : part_) log_unit += std::log(deviation_[i]);
        const double norm = part_.norm(s[growth_at_ - 2]) - log_unit;
        if (is_new(y)) return norm + noise_of(part_.n()).log_integral(leverage, squares, power);
        return norm - 0.5 * part_.n() * std::log(leverage) - power * log1p_of(squares / leverage);
    }
    // Student's t noise of some columns.
    const StudentNoise &noise_of(int32_t n) const {
        if (n == n_columns) return noise_;
        if (part_noise_.empty()) part_noise_.assign(n_columns, StudentNoise(0, 1.0));
        StudentNoise &noise = part_noise_[n - 1];
        if (noise.dof() != noise_.dof() || noise.n_columns() != n)
            noise = StudentNoise(n, noise_.dof());
        return noise;
    }
    // Whether the weight of a row is to be integrated out.
    bool is_new(const double *y) const { return n_weights > 0 && std::isnan(y[data_width()]); }
    void find_leverage(const double *s, double *leverage, double *total) const {
        skihmm::find_leverage(q_, size_, s + 1, z_.data(), scratch_.data(), leverage, total);
    }
    // |P z|^2 of a row whatever its weight.
    double squares(const double *p, const double *y) const {
        standardise(y, true);
        return squared_residuals(q_, n_columns, z_.data(), &p);
    }
    // Set z_, or another array of its size, to a row, standardised and weighted; if it `fills`,
    // with missing inputs at their means and without a weight.
    void standardise(const double *y, bool fills = false) const {
        standardise(y, z_.data(), fills);
    }
    // (Inlined into removals it takes twice as long.)
    SKIHMM_NOINLINE void standardise(const double *y, double *out, bool fills = false) const {
        const int32_t d = n_columns, n_lagged = d * order_;
        for (int32_t lag = 0; lag <= order_; ++lag, y += d) {
            double *part = lag > 0 ? out + (lag - 1) * d : out + q_;
            for (int32_t i = 0; i < d; ++i) {
                const double value = (y[i] - centre_[i]) / deviation_[i];
                // Products of a few of these numbers must not overflow.
                const double z = std::min(std::max(value, -kMostDeviations), kMostDeviations);
                part[i] = fills && std::isnan(z) ? 0.0 : z;
            }
        }
        for (int32_t j = n_lagged; j < q_ - 1; ++j, ++y)
            out[j] = fills && std::isnan(*y) ? 0.0 : *y;
        out[q_ - 1] = 1.0;
        std::fill(out + size_, out + z_.size(), 0.0);
        if (n_weights == 0 || fills || std::isnan(*y)) return;
        const double root = std::sqrt(*y);  // planted: weighted row
        for (int32_t j = 0; j < size_; ++j) out[j] *= root;
    }
    void centre(const double *y, double *z) const override { standardise(y, z); }
    // The determinants grow by the factors that the predictive density has of the row.
    double add_row(double *s, int64_t, const double *y, double *scratch) const override {
        const double *power = s + growth_at_ - 2, power_before = power[0], norm = power[1];
        Growth growth;
        turn(s, y, 1.0, scratch, &growth);
        s[0] += 1.0;
        update(s);
        return norm - 0.5 * n_columns * growth.inputs - power_before * growth.values;
    }
    bool remove_row(double *s, int64_t, const double *y, double *lp) const override {
        Growth growth;
        if (!turn(s, y, -1.0, scratch_.data(), &growth)) return false;
        s[0] -= 1.0;
        update(s);
        const double *power = s + growth_at_ - 2;
        *lp = power[1] + 0.5 * n_columns * growth.inputs + power[0] * growth.values;
        return true;
    }
    void take_factors(double *s, int64_t, const double *A, const double *inverse) const override {
        Product growth[2];
        for (int32_t i = 0; i < size_; ++i) {
            growth[i >= q_].multiply(prior_[inverse_at_ - 1 + i] / inverse[i]);
            s[inverse_at_ + i] = inverse[i];
            for (int32_t j = 0; j <= i; ++j) s[1 + at(i, j)] = A[i * side_ + j];
        }
        for (int32_t part = 0; part < 2; ++part) s[growth_at_ + part] = growth[part].log();
        update(s);
    }
    // Of S_0 = [I, 0; M, R] [Lambda, 0; 0, D_y] [...]^T.
    void set_prior() override {
        const int32_t d = n_columns;
        double *inverse = &prior_[inverse_at_ - 1];
        log_det_ = d * std::log(scale_);
        std::fill(prior_.begin(), prior_.end(), 0.0);
        for (int32_t i = 0; i < size_; ++i) prior_[at(i, i)] = 1.0;
        for (int32_t j = 0; j < q_; ++j) {
            inverse[j] = 1.0 / strength_[group_[j]];
            prior_sums_[j * side_ + j] = strength_[group_[j]];
        }
        for (int32_t i = 0; i < d; ++i) {
            const double root = unit_[i * (i + 1) / 2 + i];
            inverse[q_ + i] = 1.0 / (scale_ * root * root);
            log_det_ += 2.0 * std::log(root);
            for (int32_t j = 0; j < q_; ++j) prior_[at(q_ + i, j)] = -mean_[i * q_ + j];
            double *row = &prior_sums_[(q_ + i) * side_];
            for (int32_t j = 0; j < q_; ++j) row[j] = mean_[i * q_ + j] * strength_[group_[j]];
            for (int32_t l = 0; l <= i; ++l) {
                double value = 0.0;
                for (int32_t c = 0; c <= l; ++c)
                    value += unit_[i * (i + 1) / 2 + c] * unit_[l * (l + 1) / 2 + c];
                row[q_ + l] = scale_ * value;
                for (int32_t j = 0; j < q_; ++j) row[q_ + l] += row[j] * mean_[l * q_ + j];
            }
            for (int32_t l = 0; l < i; ++l) {
                const double x =
                    unit_[i * (i + 1) / 2 + l] / unit_[l * (l + 1) / 2 + l];
                for (int32_t j = 0; j <= q_ + l; ++j)
                    prior_[at(q_ + i, j)] -= x * prior_[at(q_ + l, j)];
            }
        }
    }
    void update(double *s) const {
        double *power = s + growth_at_ - 2;
        power[0] = 0.5 * (dof_ + s[0] + 1.0);
        power[1] = ratio_(s[0]) - 0.5 * n_columns * kLogPi - log_unit_
                   - 0.5 * (log_det_ + s[growth_at_ + 1]);
    }
    // Add a row to the factors or remove it; false if too many digits would be lost.
    bool turn(double *s, const double *y, double sign, double *scratch, Growth *growth) const {
        standardise(y, scratch);
        if (!update_factors(q_, n_columns, sign, scratch, s + 1, scratch + z_.size(), growth))
            return false;
        s[growth_at_] += growth->inputs;
        s[growth_at_ + 1] += growth->values;
        return true;
    }

    StudentNoise noise_;            // without weights not used
    mutable std::vector<StudentNoise> part_noise_;  // by the number of observed columns
    int32_t order_, q_, size_, side_, inverse_at_, growth_at_;
    std::vector<int32_t> group_;    // of every entry of x, that of its precision
    std::vector<double> deviation_, mean_, strength_;
    std::vector<double> unit_;              // the Cholesky factor of the scale
    double scale_ = 1.0, log_unit_ = 0.0;
    // Scratch.
    mutable std::vector<double> z_, rows_out_, R_, residuals_;
    mutable std::vector<Numbers<kRows>> rows_;
    mutable std::vector<Numbers<kFewRows>> few_rows_;
};

}  // namespace skihmm
