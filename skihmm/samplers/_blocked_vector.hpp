// The passes of _blocked.hpp over all slots, as plain loops and for AVX2; chosen as in
// _vector.hpp.  Arrays have a multiple of eight entries, and sums run over eight lanes in
// one order, so that both give the same bits.
#pragma once
#include <cstdint>

#include "_vector.hpp"

namespace skihmm {

struct BlockedPasses {
    // out[k] = (g[k] + smooth mass[k]) w[k], g[k] = 0; sums: of out[k], of out[k] size[k].
    void (*emit)(int32_t n, double smooth, const double *mass, const double *w,
                 const double *size, double *g, double *out, double *sums);
    // The k with f[k] size[k] > least; returns their number.
    int32_t (*select)(int32_t n, double least, const double *f, const double *size,
                      int32_t *chosen);
    // g[k] += f where (0 + scale mass[k]) c >= u.
    void (*add_where)(int32_t n, double scale, const double *mass, double c, double u,
                      double f, double *g);
    // Sum of f[j] where (0 + scale mass) c[j] >= u.
    double (*sum_where)(int32_t n, double smooth, const double *c, double u,
                        const double *f);
    // Sum of w[k] where (row[k] + scale mass[k]) c_i >= u and (column[k] + smooth) c[k] >= v.
    double (*sum_both)(int32_t n, double scale, const int32_t *row, const double *mass,
                       double c_i, double u, const int32_t *column, double smooth,
                       const double *c, double v, const double *w);
};

static inline double add_lanes(const double *lane) {
    return ((lane[0] + lane[1]) + (lane[2] + lane[3]))
           + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static void emit_plain(int32_t n, double smooth, const double *mass, const double *w,
                       const double *size, double *g, double *out, double *sums) {
    double sum[8] = {}, sum_f[8] = {};
    for (int32_t k = 0; k < n; ++k) {
        const double value = (g[k] + smooth * mass[k]) * w[k];
        g[k] = 0.0;
        out[k] = value;
        sum[k % 8] += value;
        sum_f[k % 8] += value * size[k];
    }
    sums[0] = add_lanes(sum);
    sums[1] = add_lanes(sum_f);
}
static int32_t select_plain(int32_t n, double least, const double *f, const double *size,
                            int32_t *chosen) {
    int32_t found = 0;
    for (int32_t k = 0; k < n; ++k) {
        chosen[found] = k;
        found += f[k] * size[k] > least;
    }
    return found;
}
static void add_where_plain(int32_t n, double scale, const double *mass, double c, double u,
                            double f, double *g) {
    for (int32_t k = 0; k < n; ++k) g[k] += scale * mass[k] * c >= u ? f : 0.0;
}
static double sum_where_plain(int32_t n, double smooth, const double *c, double u,
                              const double *f) {
    double sum[8] = {};
    for (int32_t j = 0; j < n; ++j) sum[j % 8] += smooth * c[j] >= u ? f[j] : 0.0;
    return add_lanes(sum);
}
static double sum_both_plain(int32_t n, double scale, const int32_t *row, const double *mass,
                             double c_i, double u, const int32_t *column, double smooth,
                             const double *c, double v, const double *w) {
    double sum[8] = {};
    for (int32_t k = 0; k < n; ++k) {
        const bool passes = ((row[k] + scale * mass[k]) * c_i >= u)
                            & ((column[k] + smooth) * c[k] >= v);
        sum[k % 8] += passes ? w[k] : 0.0;
    }
    return add_lanes(sum);
}

#ifdef SKIHMM_DISPATCH
SKIHMM_AVX2 static inline double add_lanes_avx2(__m256d low, __m256d high) {
    double lane[8];
    _mm256_storeu_pd(lane, low);
    _mm256_storeu_pd(lane + 4, high);
    return add_lanes(lane);
}
SKIHMM_AVX2 static void emit_avx2(int32_t n, double smooth, const double *mass,
                                  const double *w, const double *size, double *g,
                                  double *out, double *sums) {
    const __m256d s = _mm256_set1_pd(smooth), zero = _mm256_setzero_pd();
    __m256d sum[2] = {zero, zero}, sum_f[2] = {zero, zero};
    for (int32_t at = 0; at < n; at += 8) {
        for (int32_t half = 0; half < 2; ++half) {
            const int32_t k = at + 4 * half;
            const __m256d value = _mm256_mul_pd(
                _mm256_add_pd(_mm256_loadu_pd(g + k),
                              _mm256_mul_pd(s, _mm256_loadu_pd(mass + k))),
                _mm256_loadu_pd(w + k));
            _mm256_storeu_pd(g + k, zero);
            _mm256_storeu_pd(out + k, value);
            sum[half] = _mm256_add_pd(sum[half], value);
            sum_f[half] = _mm256_add_pd(
                sum_f[half], _mm256_mul_pd(value, _mm256_loadu_pd(size + k)));
        }
    }
    sums[0] = add_lanes_avx2(sum[0], sum[1]);
    sums[1] = add_lanes_avx2(sum_f[0], sum_f[1]);
}
SKIHMM_AVX2 static int32_t select_avx2(int32_t n, double least, const double *f,
                                       const double *size, int32_t *chosen) {
    const __m256d bound = _mm256_set1_pd(least);
    int32_t found = 0;
    for (int32_t k = 0; k < n; k += 8) {
        const __m256d low = _mm256_mul_pd(_mm256_loadu_pd(f + k), _mm256_loadu_pd(size + k));
        const __m256d high = _mm256_mul_pd(_mm256_loadu_pd(f + k + 4),
                                           _mm256_loadu_pd(size + k + 4));
        int mask = _mm256_movemask_pd(_mm256_cmp_pd(low, bound, _CMP_GT_OQ))
                   | _mm256_movemask_pd(_mm256_cmp_pd(high, bound, _CMP_GT_OQ)) << 4;
        for (; mask; mask &= mask - 1) chosen[found++] = k + __builtin_ctz(mask);
    }
    return found;
}
SKIHMM_AVX2 static void add_where_avx2(int32_t n, double scale, const double *mass, double c,
                                       double u, double f, double *g) {
    const __m256d ss = _mm256_set1_pd(scale), cc = _mm256_set1_pd(c), uu = _mm256_set1_pd(u),
                  ff = _mm256_set1_pd(f);
    for (int32_t k = 0; k < n; k += 4) {
        const __m256d p = _mm256_mul_pd(_mm256_mul_pd(ss, _mm256_loadu_pd(mass + k)), cc);
        const __m256d more = _mm256_and_pd(_mm256_cmp_pd(p, uu, _CMP_GE_OQ), ff);
        _mm256_storeu_pd(g + k, _mm256_add_pd(_mm256_loadu_pd(g + k), more));
    }
}
SKIHMM_AVX2 static double sum_where_avx2(int32_t n, double smooth, const double *c, double u,
                                         const double *f) {
    const __m256d ss = _mm256_set1_pd(smooth), uu = _mm256_set1_pd(u);
    __m256d sum[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    for (int32_t at = 0; at < n; at += 8) {
        for (int32_t half = 0; half < 2; ++half) {
            const int32_t j = at + 4 * half;
            const __m256d p = _mm256_mul_pd(ss, _mm256_loadu_pd(c + j));
            sum[half] = _mm256_add_pd(sum[half],
                                      _mm256_and_pd(_mm256_cmp_pd(p, uu, _CMP_GE_OQ),
                                                    _mm256_loadu_pd(f + j)));
        }
    }
    return add_lanes_avx2(sum[0], sum[1]);
}
SKIHMM_AVX2 static inline __m256d counts_4(const int32_t *n) {
    return _mm256_cvtepi32_pd(_mm_loadu_si128(reinterpret_cast<const __m128i *>(n)));
}
SKIHMM_AVX2 static double sum_both_avx2(int32_t n, double scale, const int32_t *row,
                                        const double *mass, double c_i, double u,
                                        const int32_t *column, double smooth,
                                        const double *c, double v, const double *w) {
    const __m256d ss = _mm256_set1_pd(scale), cc = _mm256_set1_pd(c_i),
                  uu = _mm256_set1_pd(u), bb = _mm256_set1_pd(smooth),
                  vv = _mm256_set1_pd(v);
    __m256d sum[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    for (int32_t at = 0; at < n; at += 8) {
        for (int32_t half = 0; half < 2; ++half) {
            const int32_t k = at + 4 * half;
            const __m256d in = _mm256_mul_pd(
                _mm256_add_pd(counts_4(row + k),
                              _mm256_mul_pd(ss, _mm256_loadu_pd(mass + k))), cc);
            const __m256d out = _mm256_mul_pd(_mm256_add_pd(counts_4(column + k), bb),
                                              _mm256_loadu_pd(c + k));
            const __m256d passes = _mm256_and_pd(_mm256_cmp_pd(in, uu, _CMP_GE_OQ),
                                                 _mm256_cmp_pd(out, vv, _CMP_GE_OQ));
            sum[half] = _mm256_add_pd(sum[half],
                                      _mm256_and_pd(passes, _mm256_loadu_pd(w + k)));
        }
    }
    return add_lanes_avx2(sum[0], sum[1]);
}
#endif

static BlockedPasses choose_blocked_passes() {
#ifdef SKIHMM_DISPATCH
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        return {emit_avx2, select_avx2, add_where_avx2, sum_where_avx2, sum_both_avx2};
#endif
    return {emit_plain, select_plain, add_where_plain, sum_where_plain, sum_both_plain};
}
static const BlockedPasses blocked_passes = choose_blocked_passes();

}  // namespace skihmm
