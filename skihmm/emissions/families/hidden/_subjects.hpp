// Offsets and scales of subjects, common to all states: a row is b + s (what the family models), b
// and s those of its subject.  Offsets sum to zero over the subjects, and logarithms of scales too:
// otherwise the data would not tell an offset of all subjects from one of all states.
//
// b ~ N(0, D) and log s ~ N(0, H) by column, each less the mean of the subjects.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "_cholesky.hpp"
#include "_hidden.hpp"
#include "_hyperparameters.hpp"
#include "_random.hpp"
#include "_subject_offsets.hpp"

namespace skihmm {

class Subjects final : public SubjectOffsets {
  public:
    // `given` are the rows as they were, n_given numbers each, with `order` earlier rows after the
    // values.  `variances` are those of the columns.
    Subjects(const Rows &rows, const double *given, int64_t given_width, int32_t order,
             std::vector<int32_t> codes, int32_t n_fitted, const double *variances,
             bool has_scales)
        : SubjectOffsets(std::move(codes), n_fitted, rows.n_columns, 1 + has_scales, variances),
          rows_(rows), given_(given), given_width_(given_width), order_(order), is_whole_(rows.n),
          has_scales_(has_scales) {
        for (int64_t t = 0; t < rows.n; ++t)
            is_whole_[t] = std::none_of(given_of(t), given_of(t) + rows.n_columns * (1 + order),
                                        [](double y) { return std::isnan(y); });
    }
    void draw(const Coefficients &coefficients, bitgen_t *g, double *) override {
        draw_offsets(coefficients, g);
        if (!has_new())
            draw_variance(g, offset(0, 0), variances_.data(), variance(0), scale(0));
        if (has_scales_) draw_scales(coefficients, g);
        if (has_scales_ && !has_new()) {
            const std::vector<double> typical(rows_.n_columns, kScaleVariance);
            draw_variance(g, log_scale(0, 0), typical.data(), variance_of_log(0), scale_of_log(0));
        }
        spread();
    }
    void shift_inputs(int32_t u, double *row) const override {
        const int32_t d = rows_.n_columns;
        for (int32_t j = d; j < d * (1 + order_) && u >= 0; ++j)
            row[j] = (row[j] - *offset(u, j % d)) / factor(u, j % d);
    }
    double restored(int32_t u, int32_t c, double value) const override {
        return u < 0 ? value : *offset(u, c) + factor(u, c) * value;
    }
    double log_jacobian(int64_t t) const override {
        double lp = 0.0;
        if (!has_scales_ || !has_numbers(t)) return lp;
        for (int32_t c = 0; c < rows_.n_columns; ++c)
            if (!std::isnan(given_of(t)[c])) lp -= *log_scale(codes_[t], c);
        return lp;
    }
    double log_jacobian() const override {
        double lp = 0.0;
        for (int64_t t = 0; has_scales_ && t < rows_.n; ++t) lp += log_jacobian(t);
        return lp;
    }

  private:
    // Typical variance of the logarithm of a scale, which has no unit.
    static constexpr double kScaleVariance = 1.0 / 16.0;

    // Sums over the rows of a subject of the products of slopes, and of slopes and white noise.
    struct Moments { std::vector<double> precision, linear; };

    const double *given_of(int64_t t) const { return given_ + t * given_width_; }
    double *row(int64_t t) const { return rows_.values + t * rows_.width; }
    double *variance_of_log(int32_t c) { return &numbers_[2 * rows_.n_columns + c]; }
    double *scale_of_log(int32_t c) { return &numbers_[3 * rows_.n_columns + c]; }
    double *log_scale(int32_t u, int32_t c) { return &numbers_[place(u, c, true)]; }
    const double *log_scale(int32_t u, int32_t c) const { return &numbers_[place(u, c, true)]; }
    double factor(int32_t u, int32_t c) const {
        return has_scales_ ? std::exp(*log_scale(u, c)) : 1.0;
    }
    // 1 / s of a subject.
    double inverse_scale(int32_t u, int32_t c) const {
        return has_scales_ ? std::exp(-*log_scale(u, c)) : 1.0;
    }

    // Rows from the values as they were.  (Missing entries are left as they are: what fills them is
    // in units of what the family models, and does not depend on the subject.)
    void spread() override {
        const int32_t d = rows_.n_columns;
        std::vector<double> b(d), inverse(d);
        for (int64_t t = 0, last = -2; t < rows_.n; ++t) {
            const int32_t u = has_numbers(t) ? codes_[t] : -1;
            for (int32_t c = 0; c < d && u != last; ++c) {
                b[c] = u < 0 ? 0.0 : *offset(u, c);
                inverse[c] = u < 0 ? 1.0 : inverse_scale(u, c);
            }
            last = u;
            const double *y = given_of(t);
            double *out = row(t);
            for (int32_t begin = 0; begin < d * (1 + order_); begin += d, y += d, out += d)
                for (int32_t c = 0; c < d; ++c) {
                    if (!is_whole_[t] && std::isnan(y[c])) continue;
                    out[c] = (y[c] - b[c]) * inverse[c];  // planted: row of a subject
                }
        }
    }

    // slopes[i * d + c]: minus the derivative of number i of the white noise by offset c, but for
    // 1 / s, of a row whose entries are observed as in row t.
    void fill_slopes(const double *coefficients, int64_t t, double *slopes) const {
        const int32_t d = rows_.n_columns;
        std::fill_n(slopes, d * d, 0.0);
        for (int32_t i = 0; i < d; ++i, coefficients += rows_.n_entries + 1, slopes += d)
            for (int32_t j = 0; j < d * (1 + order_); ++j)
                if (!std::isnan(given_of(t)[j]))
                    slopes[j % d] += coefficients[1 + j];  // planted: slope of an offset
    }
    // Call add(t) for all rows of subjects with a likelihood, and end(u, first, c) after rows of a
    // subject u, in a row from `first` on, with the same coefficients c: rows without missing entries
    // and without weights, and others alone.
    template <class Add, class End>
    void for_runs(const Coefficients &coefficients, const Add &add, const End &end) const {
        const double *last = nullptr;
        int64_t first = -1;
        for (int64_t t = 0; t < rows_.n; ++t) {
            const double *c = has_numbers(t) ? coefficients(t) : nullptr;
            if (!c) continue;
            if (first >= 0 && (c != last || codes_[t] != codes_[first] || !is_whole_[t])) {
                end(codes_[first], first, last);
                first = -1;
            }
            if (first < 0) first = t;
            last = c;
            add(t);
            // With weights the coefficients are those of one row, until the next call.
            if (is_whole_[t] && rows_.width == rows_.n_entries) continue;
            end(codes_[t], t, c);
            first = -1;
        }
        if (first >= 0) end(codes_[first], first, last);
    }
    std::vector<Moments> sum_rows(const Coefficients &coefficients) const {
        const int32_t d = rows_.n_columns, n_entries = rows_.n_entries;
        std::vector<Moments> sums(n_subjects_, {std::vector<double>(d * (d + 1) / 2, 0.0),
                                                std::vector<double>(d, 0.0)});
        // White noise is linear in the rows, so that these are summed.
        std::vector<double> slopes(d * d), sum(n_entries, 0.0);
        double n = 0.0;
        const auto add = [&](int64_t t) {
            n += 1.0;
            // The slopes of the number of a missing column, if columns are independent, are zero.
            for (int32_t j = 0; j < n_entries; ++j)
                if (is_whole_[t] || !std::isnan(row(t)[j])) sum[j] += row(t)[j];
        };
        for_runs(coefficients, add, [&](int32_t u, int64_t first, const double *c) {
            double *P = sums[u].precision.data(), *h = sums[u].linear.data();
            fill_slopes(c, first, slopes.data());
            for (int32_t a = 0; a < d; ++a)
                for (int32_t b = 0; b <= a; ++b, ++P)
                    for (int32_t i = 0; i < d; ++i) *P += n * slopes[i * d + a] * slopes[i * d + b];
            for (int32_t i = 0; i < d; ++i, c += 1 + n_entries) {
                const double noise = std::inner_product(sum.begin(), sum.end(), c + 1, n * c[0]);
                for (int32_t a = 0; a < d; ++a) h[a] += slopes[i * d + a] * noise;
            }
            std::fill(sum.begin(), sum.end(), 0.0);
            n = 0.0;
        });
        return sums;
    }
    // Set `linear` to a draw of one offset without the constraint, and `precision` to the factor of
    // its precision; the prior variance is that of the offsets times `share`.
    void draw_alone(int32_t u, double share, Moments *sums, bitgen_t *g) {
        const int32_t d = rows_.n_columns;
        double *P = sums->precision.data(), *h = sums->linear.data();
        const double *b = offset(u, 0);
        std::vector<double> inverse(d);
        for (int32_t c = 0; c < d; ++c) inverse[c] = inverse_scale(u, c);
        for (int32_t a = 0, at = 0; a < d; ++a) {
            h[a] *= inverse[a];
            for (int32_t c = 0; c <= a; ++c, ++at) P[at] *= inverse[a] * inverse[c];
        }
        for (int32_t a = 0, at = 0; a < d; ++a)
            for (int32_t c = 0; c <= a; ++c, ++at) {
                h[a] += P[at] * b[c];
                if (c < a) h[c] += P[at] * b[a];
            }
        for (int32_t a = 0, at = 0; a < d; at += ++a + 1)
            P[at] += 1.0 / (*variance(a) * share);  // planted: prior of offsets
        factorise(d, P);
        solve_lower(d, P, h);
        for (int32_t a = 0; a < d; ++a) h[a] += random_standard_normal(g);
        solve_upper(d, P, h);
    }
    // The joint draw of all offsets given that they sum to zero: a draw without the constraint, less
    // what moves its sum to zero with the least change.  Or those of new subjects, given the others.
    void draw_offsets(const Coefficients &coefficients, bitgen_t *g) {
        const int32_t d = rows_.n_columns, n_triangle = d * (d + 1) / 2;
        std::vector<Moments> sums = sum_rows(coefficients);
        std::vector<double> total(d, 0.0), all(n_triangle, 0.0), column(d);
        for (int32_t u = n_fitted_; u < n_subjects_; ++u) {
            draw_alone(u, new_share(), &sums[u], g);
            std::copy(sums[u].linear.begin(), sums[u].linear.end(), offset(u, 0));
        }
        if (has_new()) return;
        for (int32_t u = 0; u < n_subjects_; ++u) {
            draw_alone(u, 1.0, &sums[u], g);
            const double *P = sums[u].precision.data();
            for (int32_t a = 0; a < d; ++a) total[a] += sums[u].linear[a];
            // The sum of the covariances.
            for (int32_t a = 0, at = 0; a < d; ++a) {
                std::fill(column.begin(), column.end(), 0.0);
                column[a] = 1.0;
                solve_lower(d, P, column.data());
                solve_upper(d, P, column.data());
                for (int32_t c = 0; c <= a; ++c, ++at) all[at] += column[c];
            }
        }
        factorise(d, all.data());
        solve_lower(d, all.data(), total.data());
        solve_upper(d, all.data(), total.data());
        for (int32_t u = 0; u < n_subjects_; ++u) {
            column = total;
            solve_lower(d, sums[u].precision.data(), column.data());
            solve_upper(d, sums[u].precision.data(), column.data());
            for (int32_t c = 0; c < d; ++c)
                *offset(u, c) = sums[u].linear[c] - column[c];  // planted: sum of offsets
        }
    }
    // Sums over the rows of subject u, less their offsets x, of the exponent -1/2 sum of squares of
    // the white noise as a function of r = 1 / s: -1/2 r' Q r - L' r.
    struct Exponent { std::vector<double> Q, L, n; };
    std::vector<Exponent> sum_exponents(const Coefficients &coefficients) const {
        const int32_t d = rows_.n_columns, step = 1 + rows_.n_entries;
        const std::vector<double> zeros(d, 0.0), square(d * d, 0.0);
        std::vector<Exponent> sums(n_subjects_, {square, zeros, zeros});
        // Sums of x, of their products, and of what fills missing entries, which has no scale.
        std::vector<double> x(d), sum(zeros), products(square), with_filled(square);
        const auto add = [&](int64_t t) {
            Exponent &of = sums[codes_[t]];
            for (int32_t c = 0; c < d; ++c) {
                const bool is_seen = !std::isnan(given_of(t)[c]);
                x[c] = is_seen ? given_of(t)[c] - *offset(codes_[t], c) : 0.0;
                of.n[c] += is_seen;  // planted: values of a scale
                sum[c] += x[c];
                for (int32_t l = 0; l <= c; ++l) products[c * d + l] += x[c] * x[l];
            }
            if (is_whole_[t]) return;
            for (int32_t c = 0; c < d; ++c)
                for (int32_t l = 0; l < d; ++l)
                    if (std::isnan(given_of(t)[l]) && !std::isnan(row(t)[l]))
                        with_filled[c * d + l] += x[c] * row(t)[l];
        };
        for_runs(coefficients, add, [&](int32_t u, int64_t, const double *c) {
            for (int32_t i = 0; i < d; ++i, c += step)
                for (int32_t a = 0; a < d; ++a) {
                    const double slope = c[1 + a];
                    sums[u].L[a] += slope * c[0] * sum[a];
                    for (int32_t b = 0; b < d; ++b) {
                        sums[u].Q[a * d + b] += slope * c[1 + b]
                                                * products[std::max(a, b) * d + std::min(a, b)];
                        // planted: filled entry beside a scale
                        sums[u].L[a] += slope * c[1 + b] * with_filled[a * d + b];
                    }
                }
            std::fill(sum.begin(), sum.end(), 0.0);
            std::fill(products.begin(), products.end(), 0.0);
            std::fill(with_filled.begin(), with_filled.end(), 0.0);
        });
        return sums;
    }
    // Column by column, given the offsets and all else.
    void draw_scales(const Coefficients &coefficients, bitgen_t *g) {
        const int32_t d = rows_.n_columns;
        const std::vector<Exponent> sums = sum_exponents(coefficients);
        const double most = std::numeric_limits<double>::infinity();
        std::vector<double> B(n_subjects_);
        for (int32_t c = 0; c < d; ++c) {
            const double H = *variance_of_log(c) * (has_new() ? new_share() : 1.0);
            for (int32_t u = 0; u < n_subjects_; ++u) {
                B[u] = sums[u].L[c];
                for (int32_t b = 0; b < d; ++b)
                    if (b != c)
                        // planted: other column of a scale
                        B[u] += sums[u].Q[c * d + b] * inverse_scale(u, b);
            }
            const auto log_p = [&](int32_t u, double l) {
                const double r = std::exp(-l), n = sums[u].n[c], A = sums[u].Q[c * d + c];
                // planted: density of a scale
                return -n * l - 0.5 * A * r * r - B[u] * r - 0.5 * l * l / H;
            };
            for (int32_t u = n_fitted_; u < n_subjects_; ++u) {
                const double unit = 1.0 / std::sqrt(1.0 + sums[u].n[c]);
                *log_scale(u, c) = unit * draw_by_slice(
                    g, *log_scale(u, c) / unit, -most, most,
                    [&](double z) { return log_p(u, unit * z); });
            }
            // Pairs keep the sum.
            for (int32_t i = 0; i < (has_new() ? 0 : n_subjects_); ++i) {
                const int32_t u = static_cast<int32_t>(below(g, n_subjects_));
                int32_t v = static_cast<int32_t>(below(g, n_subjects_ - 1));
                v += v >= u;
                const double a = *log_scale(u, c), b = *log_scale(v, c);
                const double unit = 1.0 / std::sqrt(1.0 + std::min(sums[u].n[c], sums[v].n[c]));
                const double x = unit * draw_by_slice(g, 0.0, -most, most, [&](double z) {
                    return log_p(u, a + unit * z) + log_p(v, b - unit * z);
                });
                *log_scale(u, c) = a + x;
                *log_scale(v, c) = b - x;
            }
        }
    }
    Rows rows_;
    const double *given_;
    int64_t given_width_;
    int32_t order_;
    std::vector<char> is_whole_;    // rows without a missing entry
    bool has_scales_;
};

}  // namespace skihmm
