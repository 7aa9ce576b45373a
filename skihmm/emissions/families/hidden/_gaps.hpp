// Missing entries of rows that are linear Gaussian given their states, and given `order` earlier
// rows: drawn jointly from their conditional distribution given all other entries.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_hidden.hpp"
#include "_random.hpp"

namespace skihmm {

// The gaps ascend by step and column; a row holds `order` earlier rows, the latest first.  The
// precision matrix of the entries is banded: entries further apart than `order` rows are
// independent given the entries between.  So all gaps are one system, in time linear in their
// number.
class Fillings final : public Hidden {
  public:
    // `units` are the means and deviations, by column, of entries of rows without likelihood.
    Fillings(const Rows &rows, int32_t order, const std::vector<Gap> &gaps,
             const double *const *units)
        : rows_(rows), order_(order), gaps_(gaps), units_(units) {
        for (const Gap &gap : gaps_) *entry(gap) = 0.0;
        spread();
    }
    const char *name() const override { return "filled"; }
    int64_t size() const override { return static_cast<int64_t>(gaps_.size()); }
    void read(double *out) const override {
        for (const Gap &gap : gaps_) *out++ = *entry(gap);
    }
    void write(const double *in) override {
        for (const Gap &gap : gaps_) *entry(gap) = *in++;
        spread();
    }
    int64_t n_means() const override { return size(); }
    const std::vector<Gap> &gaps() const { return gaps_; }
    void draw(const Coefficients &coefficients, bitgen_t *g, double *means) override {
        draw_entries(coefficients, g, means);
        spread();
    }

  private:
    double *entry(const Gap &gap) const {
        return rows_.values + gap.t * rows_.width + gap.column;
    }
    // Copy the fillings into the rows that look back at them.
    void spread() {
        for (const Gap &gap : gaps_)
            for (int32_t lag = 1; lag <= order_ && gap.t + lag < gap.end; ++lag)
                entry(gap)[lag * (rows_.width + rows_.n_columns)] = *entry(gap);
    }
    void draw_entries(const Coefficients &coefficients, bitgen_t *g, double *means);

    Rows rows_;
    int32_t order_;
    std::vector<Gap> gaps_;
    const double *const *units_;
};

inline void Fillings::draw_entries(const Coefficients &coefficients, bitgen_t *g,
                                   double *means) {
    const std::vector<Gap> &gaps = gaps_;
    const int32_t order = order_, d = rows_.n_columns, n_entries = rows_.n_entries;
    const int64_t n = static_cast<int64_t>(gaps.size());
    int64_t band = 1;
    for (int64_t u = 0, first = 0; u < n; ++u) {
        while (gaps[first].t < gaps[u].t - order) ++first;
        band = std::max(band, u - first + 1);
    }
    // Entry (u, v) of the lower triangle is at u * band + u - v.
    std::vector<double> L(n * band, 0.0), x(n, 0.0), noise(n), slopes(band);
    int64_t first = 0, next = 0, row = 0;
    for (int64_t u = 0; u < n; ++u)
        for (row = std::max(row, gaps[u].t); row < std::min(gaps[u].end, gaps[u].t + order + 1);
             ++row) {
            while (gaps[first].t < row - order || gaps[first].end <= row) ++first;
            for (next = std::max(next, first); next < n && gaps[next].t <= row;) ++next;
            const double *c = coefficients(row), *y = rows_.values + row * rows_.width;
            for (int64_t a = next; !c && a-- > first && gaps[a].t == row;) {
                const int32_t i = gaps[a].column;
                const double precision = 1.0 / (units_[1][i] * units_[1][i]);
                L[a * band] += precision;
                x[a] += precision * (units_[0][i] - y[i]);
            }
            if (!c) continue;
            for (int32_t i = 0; i < d; ++i, c += n_entries + 1) {
                // With the current fillings, so that x is the difference from them.
                double residual = c[0];
                for (int64_t j = 0; j < n_entries; ++j) residual += c[1 + j] * y[j];
                for (int64_t a = first; a < next; ++a) {
                    const double slope = c[1 + (row - gaps[a].t) * d + gaps[a].column];
                    slopes[a - first] = slope;
                    x[a] -= slope * residual;
                    for (int64_t b = first; b <= a; ++b)
                        L[a * band + a - b] += slope * slopes[b - first];
                }
            }
        }
    for (int64_t a = 0; a < n; ++a) {
        const int64_t from = std::max<int64_t>(0, a - band + 1);
        for (int64_t b = from; b <= a; ++b) {
            double value = L[a * band + a - b];
            for (int64_t l = std::max(from, b - band + 1); l < b; ++l)
                value -= L[a * band + a - l] * L[b * band + b - l];
            // (Rounding may leave nothing of a nearly undetermined pivot.)
            L[a * band + a - b] = a == b ? std::sqrt(std::max(value, 1e-14 * L[a * band]))
                                         : value / L[b * band];
        }
        for (int64_t b = from; b < a; ++b) x[a] -= L[a * band + a - b] * x[b];
        x[a] /= L[a * band];
    }
    for (double &e : noise) e = random_standard_normal(g);
    for (int64_t a = n - 1; a >= 0; --a) {
        for (int64_t b = a + 1; b < std::min(n, a + band); ++b) {
            x[a] -= L[b * band + b - a] * x[b];
            noise[a] -= L[b * band + b - a] * noise[b];
        }
        x[a] /= L[a * band];
        noise[a] /= L[a * band];
    }
    for (int64_t a = 0; a < n; ++a) {
        double *y = entry(gaps[a]);
        means[a] = *y + x[a];
        *y = means[a] + noise[a];
    }
}

}  // namespace skihmm
