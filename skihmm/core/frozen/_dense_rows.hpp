// Products of vectors with dense matrices, of the size of a cache: loops that are vectorised.
#pragma once
#include <cstdint>

#include "_platform.hpp"

namespace skihmm {

// out[k] = sum_j w[j] rows[j n + k] for j, k < n, a multiple of four.
SKIHMM_CLONES static void weighted_rows(int32_t n, const double *__restrict w,
                                        const double *__restrict rows,
                                        double *__restrict out) {
    for (int32_t k = 0; k < n; ++k) out[k] = 0.0;
    for (int32_t j = 0; j < n; j += 4) {
        const double a = w[j], b = w[j + 1], c = w[j + 2], d = w[j + 3];
        const double *row_a = rows + static_cast<int64_t>(j) * n, *row_b = row_a + n,
                     *row_c = row_b + n, *row_d = row_c + n;
        for (int32_t k = 0; k < n; ++k)
            out[k] += (a * row_a[k] + b * row_b[k]) + (c * row_c[k] + d * row_d[k]);
    }
}
// out[k] = max_j w[j] rows[j n + k], and the first j that reaches it.
SKIHMM_CLONES static void largest_of_rows(int32_t n, const double *__restrict w,
                                          const double *__restrict rows,
                                          double *__restrict out,
                                          int64_t *__restrict argmax_out) {
    for (int32_t k = 0; k < n; ++k) out[k] = -1.0;
    for (int32_t j = 0; j < n; j += 4) {
        const double *row = rows + static_cast<int64_t>(j) * n;
        for (int32_t k = 0; k < n; ++k) {
            double largest = out[k];
            int64_t best = argmax_out[k];
            for (int32_t i = 0; i < 4; ++i) {
                const double value = w[j + i] * row[static_cast<int64_t>(i) * n + k];
                const bool is_larger = value > largest;
                largest = is_larger ? value : largest;
                best = is_larger ? j + i : best;
            }
            out[k] = largest;
            argmax_out[k] = best;
        }
    }
}
SKIHMM_CLONES static void divide_all(int32_t n, double total, double *x) {
    for (int32_t k = 0; k < n; ++k) x[k] /= total;
}
// out[j n + k] += sum_i a[i n + j] b[i n + k] for i < m, j, k < n; m is a multiple of four.
SKIHMM_CLONES static void add_products(int32_t m, int32_t n, const double *__restrict a,
                                       const double *__restrict b, double *__restrict out) {
    for (int32_t j = 0; j < n; ++j, out += n)
        for (int32_t i = 0; i < m; i += 4) {
            const double *rows = b + static_cast<int64_t>(i) * n;
            const double *w = a + static_cast<int64_t>(i) * n + j;
            const double w0 = w[0], w1 = w[n], w2 = w[2 * n], w3 = w[3 * n];
            for (int32_t k = 0; k < n; ++k)
                out[k] += (w0 * rows[k] + w1 * rows[n + k])
                          + (w2 * rows[2 * n + k] + w3 * rows[3 * n + k]);
        }
}

}  // namespace skihmm
