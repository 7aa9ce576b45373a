// The inverse factors of an autoregression (_autoregressive_family.hpp): products with rows, and
// their update by a row.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "_family.hpp"
#include "_linear_algebra.hpp"
#include "_math.hpp"
#include "_platform.hpp"

namespace skihmm {

// G is stored in panels of four rows, each column by column up to the last diagonal entry, and with
// zeros above the diagonal; 1 / D, power and norm follow.
constexpr int32_t kPanel = 4;
inline int32_t in_panels(int32_t n) { return (n + kPanel - 1) / kPanel * kPanel; }
// Where panel p begins, and where the last of n rows ends.
inline int32_t panel_start(int32_t p) { return kPanel * kPanel * (p * (p + 1) / 2); }
inline int32_t panels_end(int32_t n) { return panel_start(in_panels(n) / kPanel); }

typedef double ShortVector SKIHMM_VECTOR(4);
constexpr int32_t kInShortVector = sizeof(ShortVector) / sizeof(double);

// w = G z of one row; z and w have the rows of whole panels.
SKIHMM_INLINE void multiply(int32_t size, const double *G, const double *z, double *w) {
    for (int32_t i = 0; i < size; i += kPanel) {
        ShortVector sum[kPanel / kInShortVector] = {};
        const int32_t n = i + kPanel;
        for (int32_t j = 0; j < n; ++j, G += kPanel)
            for (int32_t l = 0; l < kPanel / kInShortVector; ++l)
                sum[l] += reinterpret_cast<const ShortVector *>(G)[l] * z[j];
        std::copy_n(sum, kPanel / kInShortVector, reinterpret_cast<ShortVector *>(w + i));
    }
}
// 1 + |w_x|^2 and |w_y|^2.
SKIHMM_INLINE void find_leverage(int32_t q, int32_t size, const double *G, const double *z, double *w,
                        double *leverage, double *total) {
    const double *inverse = G + panels_end(size);
    multiply(size, G, z, w);
    *leverage = 1.0;
    *total = 0.0;
    for (int32_t i = 0; i < q; ++i) *leverage += w[i] * w[i] * inverse[i];
    for (int32_t i = q; i < size; ++i) *total += w[i] * w[i] * inverse[i];
}
// Add the log of the predictive density above under n states; z is the standardised row, and zeros.
// States without rows, which are free slots and the new state, are evaluated once.  Up to sixteen
// states' logarithms are taken together, which takes half the time.
SKIHMM_CLONES static void fill_regression(int32_t n, int64_t stride, int32_t q, int32_t d,
                                          const double *z, const double *table, double *w,
                                          double *out) {
    const int32_t size = q + d;
    double empty_leverage = NAN, empty_total = NAN;
    double leverage[kLanes], total[kLanes], power[kLanes], norm[kLanes], lp[kLanes];
    for (int32_t from = 0; from < n; from += kLanes) {
        const int32_t n_lanes = std::min(kLanes, n - from);
        for (int32_t l = 0; l < n_lanes; ++l) {
            const double *G = table + (from + l) * stride + 1, *inverse = G + panels_end(size);
            power[l] = inverse[size];
            norm[l] = inverse[size + 1];
            const bool is_empty = G[-1] == 0.0;
            if (is_empty && !std::isnan(empty_total)) {
                leverage[l] = empty_leverage;
                total[l] = empty_total;
                continue;
            }
            find_leverage(q, size, G, z, w, &leverage[l], &total[l]);
            if (!is_empty) continue;
            empty_leverage = leverage[l];
            empty_total = total[l];
        }
        for (int32_t l = 0; l < n_lanes; ++l)
            lp[l] = norm[l] - 0.5 * d * log_of(leverage[l])
                    - power[l] * log1p_of(total[l] / leverage[l]);
        for (int32_t l = 0; l < n_lanes; ++l) out[from + l] += lp[l];
    }
}
// Add the squares of R entries of w = G z, from the first rows of a panel with n columns, to a sum.
template <int R, class Rows>
SKIHMM_INLINE void add_squares(int32_t n, const double *G, const double *inverse,
                               const Rows *z, Rows *sum) {
    Rows w[R];
    for (Rows &row : w) row = Rows::of(0.0);
    for (int32_t j = 0; j < n; ++j)
        for (int32_t r = 0; r < R; ++r) w[r].add(G[j * kPanel + r], z[j]);
    for (int32_t r = 0; r < R; ++r) sum->add_square(inverse[r], w[r]);
}
// The squares of entries `from` to `to`, which are in one panel.
template <class Rows>
SKIHMM_INLINE void add_squares(int32_t from, int32_t to, const double *G, const double *inverse,
                               const Rows *z, Rows *sum) {
    G += panel_start(from / kPanel) + from % kPanel;
    inverse += from;
    switch (to - from) {
        case 4: return add_squares<4>(to, G, inverse, z, sum);
        case 3: return add_squares<3>(to, G, inverse, z, sum);
        case 2: return add_squares<2>(to, G, inverse, z, sum);
        case 1: return add_squares<1>(to, G, inverse, z, sum);
    }
}
// fill_regression for N rows at once; z[j] has number j of each: out[k * N + r] = log p.  The same
// operations in the same order, so the same results.
template <int N>
SKIHMM_INLINE void fill_rows_of(int32_t n, int64_t stride, int32_t q, int32_t d,
                                const Numbers<N> *z, const double *table, double *out) {
    using Rows = Numbers<N>;
    const int32_t size = q + d;
    const double *empty = nullptr;
    for (int32_t k = 0; k < n; ++k, out += N) {
        const double *G = table + k * stride + 1, *inverse = G + panels_end(size);
        if (G[-1] == 0.0) {
            if (empty) {
                std::copy_n(empty, N, out);
                continue;
            }
            empty = out;
        }
        Rows leverage = Rows::of(1.0), total = Rows::of(0.0);
        int32_t i = 0;
        for (; i + kPanel <= q; i += kPanel) add_squares(i, i + kPanel, G, inverse, z, &leverage);
        add_squares(i, q, G, inverse, z, &leverage);
        add_squares(q, std::min(size, i + kPanel), G, inverse, z, &total);
        for (i += kPanel; i < size; i += kPanel)
            add_squares(i, std::min(size, i + kPanel), G, inverse, z, &total);
        const double *leverages = leverage.data(), *totals = total.data();
        const double norm = inverse[size + 1], power = inverse[size];
        for (int32_t r = 0; r < N; ++r)
            out[r] = norm - 0.5 * d * log_of(leverages[r])
                     - power * log1p_of(totals[r] / leverages[r]);
    }
}
// Blocks are mostly shorter than kRows, and half as many rows take half the time.
constexpr int32_t kRows = LinearFamily::kRows, kFewRows = kRows / 2;
SKIHMM_CLONES static void fill_regressions(int32_t n, int64_t stride, int32_t q, int32_t d,
                                           const Numbers<kRows> *z, const double *table,
                                           double *out) {
    fill_rows_of(n, stride, q, d, z, table, out);
}
SKIHMM_CLONES static void fill_few_regressions(int32_t n, int64_t stride, int32_t q, int32_t d,
                                               const Numbers<kFewRows> *z, const double *table,
                                               double *out) {
    fill_rows_of(n, stride, q, d, z, table, out);
}
// The rows of a panel of n columns, less share times the sum of part times the rows before.
SKIHMM_INLINE void update_panel(int32_t n, const double *part, const double *share, double *G,
                                double *sum) {
    for (int32_t j = 0; j < n; ++j) {
        double before = sum[j];
        for (int32_t r = 0; r < kPanel; ++r) {
            const double entry = G[j * kPanel + r];
            G[j * kPanel + r] = entry - share[r] * before;
            before += part[r] * entry;
        }
        sum[j] = before;
    }
}
// Growth of the log determinants of D_x and D_y.
struct Growth {
    double inputs, values;
};
// The factors of S + sign z z^T; scratch has room for four times the rows and four more.  False,
// with the factors unchanged, if less than kLeastLeft of a determinant would be left.
SKIHMM_CLONES static bool update_factors(int32_t q, int32_t d, double sign, const double *z,
                                         double *G, double *scratch, Growth *growth) {
    const int32_t size = q + d, height = in_panels(size);
    double *inverse = G + panels_end(size);
    double *w = scratch, *part = w + height, *sum = part + height, *share = sum + height;
    multiply(size, G, z, w);
    for (int32_t i = 0; i < height; ++i) part[i] = i < size ? w[i] * inverse[i] : 0.0;
    double leverage = 0.0, total = 0.0;
    for (int32_t i = 0; i < q; ++i) {
        share[i] = sign + leverage;
        leverage += w[i] * part[i];
    }
    const double inputs = sign + leverage;
    for (int32_t i = q; i < size; ++i) {
        share[i] = inputs + total;
        total += w[i] * part[i];
    }
    for (int32_t i = size; i < height + kPanel; ++i) share[i] = inputs + total;
    *growth = {NAN, NAN};
    // False for NaN too.
    if (!(inputs / sign > kLeastLeft && share[size] / inputs > kLeastLeft)) return false;
    *growth = {std::log1p(sign * leverage), std::log1p(total / inputs)};
    for (int32_t i = 0; i < size; ++i) inverse[i] *= share[i] / share[i + 1];
    for (int32_t i = 0; i < height; ++i) {
        share[i] = w[i] / share[i];
        sum[i] = 0.0;
    }
    for (int32_t i = 0; i < height; G += (i += kPanel) * kPanel)
        update_panel(i + kPanel, part + i, share + i, G, sum);
    return true;
}
// |P z|^2 for row i of P of width q + i + 1; *P is at its end then.
SKIHMM_INLINE double squared_residuals(int32_t q, int32_t d, const double *z, const double **P) {
    double total = 0.0;
    for (int32_t i = 0; i < d; *P += q + ++i) {
        double sum = 0.0;
        for (int32_t j = 0; j <= q + i; ++j) sum += (*P)[j] * z[j];
        total += sum * sum;
    }
    return total;
}
// out[k] += norm - |P_k z|^2 / 2; norm follows P.
SKIHMM_CLONES static void fill_residuals(int32_t n, int64_t stride, int32_t q, int32_t d,
                                         const double *z, const double *table, double *out) {
    for (int32_t k = 0; k < n; ++k, table += stride) {
        const double *norm = table, total = squared_residuals(q, d, z, &norm);
        out[k] += *norm - 0.5 * total;
    }
}

}  // namespace skihmm
