// Belief of an unknown offset b given rows: the Gaussian N(m, P^-1), P a precision.  A row of white
// noise e - G b with weight w adds w G' G to P; nothing is subtracted, so that no digits are lost,
// and a singular matrix of coefficients, as for a random walk, is no special case.
//
// With r = e - G m and s = (P + w G' G)^-1 w G' r, the step of the mean, the density of r relative
// to normal noise of length zero is
//
//     |P|^1/2 |P + w G' G|^-1/2 exp(-1/2 (w |r - G s|^2 + s' P s)).
//
// Where number i of the noise depends on offset i alone, matrices are their diagonals.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "_math.hpp"
#include "_platform.hpp"

namespace skihmm {

// A pivot below this share of its diagonal is rounding.
constexpr double kLeastPivot = 1e-15;

// Eight sums side by side, because a single sum would wait for its last term.
static SKIHMM_INLINE double inner_product_of(int32_t n, const double *a, const double *b) {
    double lanes[8] = {}, total = 0.0;
    int32_t i = 0;
    for (; i + 7 < n; i += 8)
        for (int32_t l = 0; l < 8; ++l) lanes[l] += a[i + l] * b[i + l];
    if (i > 0)
        for (const double lane : lanes) total += lane;
    for (; i < n; ++i) total += a[i] * b[i];
    return total;
}
// out = G' G of d x d numbers.
SKIHMM_CLONES static void fill_squares(int32_t d, const double *G, double *out) {
    std::fill_n(out, d * d, 0.0);
    for (int32_t i = 0; i < d; ++i, G += d)
        for (int32_t a = 0; a < d; ++a) {
            if (G[a] == 0.0) continue;
            for (int32_t b = 0; b < d; ++b) out[a * d + b] += G[a] * G[b];
        }
}

// Condition an offset on the noise of a row; returns the log density, or minus infinity, with m and
// P half changed, if it is below `least`.
SKIHMM_CLONES static double absorb_by_column(int32_t d, const double *noise, const double *g,
                                             double w, double least, double *m, double *P) {
    constexpr int32_t kColumns = 16;    // between looks at `least`
    double lp = 0.0;
    for (int32_t from = 0; from < d; from += kColumns) {
        LogProduct growth;
        double squares = 0.0;
        for (int32_t i = from; i < std::min(d, from + kColumns); ++i) {
            const double added = w * g[i] * g[i], after = P[i] + added;
            const double r = noise[i] - g[i] * m[i];
            squares += w * r * r * (P[i] / after);
            growth.multiply(added / P[i]);
            m[i] += w * g[i] * r / after;
            P[i] = after;  // planted: precision of offsets by column
        }
        lp -= 0.5 * (squares + growth.log());
        if (lp < least) return -INFINITY;
    }
    return lp;
}
// absorb for matrices, row by row, `square` being G' G; *log_det is log |P|.  Scratch: d (d + 2).
SKIHMM_CLONES static double absorb_jointly(int32_t d, const double *noise, const double *G,
                                           const double *square, double w, double *m, double *P,
                                           double *log_det, double *scratch) {
    double *A = scratch, *r = A + d * d, *s = r + d, log_after = 0.0, squares = 0.0;
    std::fill_n(s, d, 0.0);
    for (int32_t i = 0; i < d; ++i) {
        r[i] = noise[i] - inner_product_of(d, G + i * d, m);
        for (int32_t a = 0; a < d; ++a) s[a] += w * r[i] * G[i * d + a];
    }
    for (int32_t x = 0; x < d * d; ++x) A[x] = P[x] + w * square[x];
    for (int32_t j = 0; j < d; ++j) {
        double *row = A + j * d;
        row[j] = std::max(row[j], kLeastPivot * (P[j * d + j] + w * square[j * d + j]));
        log_after += std::log(row[j]);
        for (int32_t i = j + 1; i < d; ++i) {
            const double factor = row[i] / row[j];
            if (factor == 0.0) continue;
            for (int32_t c = i; c < d; ++c) A[i * d + c] -= factor * row[c];
            s[i] -= factor * s[j];
        }
    }
    for (int32_t j = d; j-- > 0;)
        s[j] = (s[j] - inner_product_of(d - j - 1, A + j * d + j + 1, s + j + 1)) / A[j * d + j];
    for (int32_t i = 0; i < d; ++i) {
        r[i] -= inner_product_of(d, G + i * d, s);
        squares += w * r[i] * r[i] + s[i] * inner_product_of(d, P + i * d, s);
    }
    for (int32_t i = 0; i < d; ++i) m[i] += s[i];
    const double lp = 0.5 * (*log_det - log_after - squares);
    *log_det = log_after;
    for (int32_t x = 0; x < d * d; ++x)
        P[x] += w * square[x];  // planted: precision of offsets
    return lp;
}

}  // namespace skihmm
