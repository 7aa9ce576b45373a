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
    // One system L x = b of all entries: entry (u, v) of the lower triangle is L[u * band + u - v].
    struct System {
        int64_t n, band;
        std::vector<double> L, x, slopes;      // slopes: scratch
        double &at(int64_t u, int64_t v) { return L[u * band + u - v]; }
    };
    void draw_entries(const Coefficients &coefficients, bitgen_t *g, double *means);
    int64_t find_band() const;
    void add_row(int64_t row, int64_t first, int64_t next, const double *c, System *system) const;
    void add_free_row(int64_t row, int64_t first, int64_t next, System *system) const;
    static void factorise(System *system);

    Rows rows_;
    int32_t order_;
    std::vector<Gap> gaps_;
    const double *const *units_;
};

inline void Fillings::draw_entries(const Coefficients &coefficients, bitgen_t *g,
                                   double *means) {
    const int64_t n = size(), band = find_band();
    System system{n, band, std::vector<double>(n * band, 0.0), std::vector<double>(n, 0.0),
                  std::vector<double>(band)};
    int64_t first = 0, next = 0, row = 0;
    for (const Gap &gap : gaps_)
        for (row = std::max(row, gap.t); row < std::min(gap.end, gap.t + order_ + 1); ++row) {
            while (gaps_[first].t < row - order_ || gaps_[first].end <= row) ++first;
            for (next = std::max(next, first); next < n && gaps_[next].t <= row;) ++next;
            if (const double *c = coefficients(row)) add_row(row, first, next, c, &system);
            else add_free_row(row, first, next, &system);
        }
    factorise(&system);
    std::vector<double> &x = system.x, noise(n);
    for (double &e : noise) e = random_standard_normal(g);
    for (int64_t a = n - 1; a >= 0; --a) {
        for (int64_t b = a + 1; b < std::min(n, a + band); ++b) {
            x[a] -= system.at(b, a) * x[b];
            noise[a] -= system.at(b, a) * noise[b];
        }
        x[a] /= system.at(a, a);
        noise[a] /= system.at(a, a);
    }
    for (int64_t a = 0; a < n; ++a) {
        double *y = entry(gaps_[a]);
        means[a] = *y + x[a];
        *y = means[a] + noise[a];
    }
}
inline int64_t Fillings::find_band() const {
    int64_t band = 1;
    for (int64_t u = 0, first = 0; u < size(); ++u) {
        while (gaps_[first].t < gaps_[u].t - order_) ++first;
        band = std::max(band, u - first + 1);
    }
    return band;
}
// What the white noise of a row, with coefficients c, says of the gaps `first` to `next` in it.
inline void Fillings::add_row(int64_t row, int64_t first, int64_t next, const double *c,
                              System *system) const {
    const int32_t d = rows_.n_columns, n_entries = rows_.n_entries;
    const double *y = rows_.values + row * rows_.width;
    for (int32_t i = 0; i < d; ++i, c += n_entries + 1) {
        // With the current fillings, so that x is the difference from them.
        double residual = c[0];
        for (int64_t j = 0; j < n_entries; ++j) residual += c[1 + j] * y[j];
        for (int64_t a = first; a < next; ++a) {
            const double slope = c[1 + (row - gaps_[a].t) * d + gaps_[a].column];
            system->slopes[a - first] = slope;
            system->x[a] -= slope * residual;
            for (int64_t b = first; b <= a; ++b)
                system->at(a, b) += slope * system->slopes[b - first];
        }
    }
}
// Without likelihood its own entries have their means and deviations.
inline void Fillings::add_free_row(int64_t row, int64_t first, int64_t next,
                                   System *system) const {
    for (int64_t a = next; a-- > first && gaps_[a].t == row;) {
        const int32_t i = gaps_[a].column;
        const double precision = 1.0 / (units_[1][i] * units_[1][i]);
        system->at(a, a) += precision;
        system->x[a] += precision * (units_[0][i] - *entry(gaps_[a]));
    }
}
// The Cholesky factor in place, and x divided by it.
inline void Fillings::factorise(System *system) {
    System &s = *system;
    for (int64_t a = 0; a < s.n; ++a) {
        const int64_t from = std::max<int64_t>(0, a - s.band + 1);
        for (int64_t b = from; b <= a; ++b) {
            double value = s.at(a, b);
            for (int64_t l = std::max(from, b - s.band + 1); l < b; ++l)
                value -= s.at(a, l) * s.at(b, l);
            // (Rounding may leave nothing of a nearly undetermined pivot.)
            s.at(a, b) = a == b ? std::sqrt(std::max(value, 1e-14 * s.at(a, a)))
                                : value / s.at(b, b);
        }
        for (int64_t b = from; b < a; ++b) s.x[a] -= s.at(a, b) * s.x[b];
        s.x[a] /= s.at(a, a);
    }
}

}  // namespace skihmm
