// Missing entries of rows that are linear Gaussian given their states, and given `order` earlier
// rows: drawn jointly from their conditional distribution given all other entries.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_random.hpp"

namespace skihmm {

// A missing entry that is filled; its sequence ends before step `end`.
struct Gap {
    int64_t t;
    int32_t column;
    int64_t end;
};

// Rows of `width` numbers are values, `order` earlier rows, the latest first, what is given, which
// is known, and perhaps weights; all but these are n_entries.  The gaps ascend by step and column;
// their entries hold the current fillings, which are replaced by a draw, and `means` gets the
// conditional means.  coefficients(t) are those of the white noise of row t: for each of d numbers
// an intercept, and a coefficient per entry; null for a row without likelihood, whose entries have
// means and deviations by column, `units`.
//
// The precision matrix of the entries is banded: entries further apart than `order` rows are
// independent given those between.  So all gaps are one system, in time linear in their number.
template <class Coefficients>
void draw_gaps(double *values, int64_t width, int64_t n_entries, int32_t d, int32_t order,
               const std::vector<Gap> &gaps, const Coefficients &coefficients,
               const double *const *units, bitgen_t *g, double *means) {
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
            const double *c = coefficients(row), *y = values + row * width;
            for (int64_t a = next; !c && a-- > first && gaps[a].t == row;) {
                const int32_t i = gaps[a].column;
                const double precision = 1.0 / (units[1][i] * units[1][i]);
                L[a * band] += precision;
                x[a] += precision * (units[0][i] - y[i]);
            }
            if (!c) continue;
            for (int32_t i = 0; i < d; ++i, c += n_entries + 1) {
                // Of the current fillings, so that x is the difference from them.
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
            // (Rounding may leave nothing of what is nearly undetermined.)
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
        double *y = values + gaps[a].t * width + gaps[a].column;
        means[a] = *y + x[a];
        *y = means[a] + noise[a];
    }
}

// Copy the fillings into the rows that look back at them.
inline void spread_gaps(double *values, int64_t width, int32_t d, int32_t order,
                        const std::vector<Gap> &gaps) {
    for (const Gap &gap : gaps)
        for (int32_t lag = 1; lag <= order && gap.t + lag < gap.end; ++lag)
            values[(gap.t + lag) * width + lag * d + gap.column] =
                values[gap.t * width + gap.column];
}

}  // namespace skihmm
