// The passes of _blocked.hpp over all slots, as plain loops, for AVX2 and for AVX-512; chosen as
// in _vector.hpp.  Arrays have a multiple of 16 entries (of eight, where all are doubles), and
// sums run over as many lanes in one order, so that all give the same bits.
#pragma once
#include <cstdint>

#include "_platform.hpp"
#include "_vector.hpp"

namespace skihmm {

struct BlockedPasses {
    // out[k] = (g[k] + smooth mass[k]) w[k], g[k] = 0; sums: of out[k], in double, and of
    // out[k] size[k], in float.
    void (*emit)(int32_t n, float smooth, const float *mass, const float *w,
                 const float *size, float *g, float *out, double *sums);
    // The k with f[k] size[k] > least; returns their number.  May write 16 more.
    int32_t (*select)(int32_t n, float least, const float *f, const float *size,
                      int32_t *chosen);
    // Sum of f[j] where (0 + smooth) c[j] >= u.
    double (*sum_where)(int32_t n, double smooth, const double *c, double u,
                        const float *f);
};

// x[i] and x[j] as doubles.
#ifdef __SSE2__
static inline Pair pair_at(const float *x, int32_t i, int32_t j) {
    return {_mm_cvtps_pd(_mm_unpacklo_ps(_mm_load_ss(x + i), _mm_load_ss(x + j)))};
}
#else
static inline Pair pair_at(const float *x, int32_t i, int32_t j) { return Pair::at(x, i, j); }
#endif

template <class Real> static inline Real add_lanes(const Real *lane) {
    return ((lane[0] + lane[1]) + (lane[2] + lane[3]))
           + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

// Fold sixteen lanes by halves, as in _vector.hpp: fastest with vectors.
template <class Real> static inline Real fold_lanes(Real *lane) {
    for (int32_t half = 8; half > 0; half /= 2)
        for (int32_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
}

static void emit_plain(int32_t n, float smooth, const float *mass, const float *w,
                       const float *size, float *g, float *out, double *sums) {
    double sum[16] = {};
    float sum_f[16] = {};
    for (int32_t k = 0; k < n; ++k) {
        const float value = (g[k] + smooth * mass[k]) * w[k];
        g[k] = 0.0f;
        out[k] = value;
        sum[k % 16] += value;
        sum_f[k % 16] += value * size[k];
    }
    sums[0] = fold_lanes(sum);
    sums[1] = fold_lanes(sum_f);
}
static int32_t select_plain(int32_t n, float least, const float *f, const float *size,
                            int32_t *chosen) {
    int32_t found = 0;
    for (int32_t k = 0; k < n; ++k) {
        chosen[found] = k;
        found += f[k] * size[k] > least;
    }
    return found;
}
// g[k] += f where (0 + scale mass[k]) c >= u: the one pass that compilers vectorise as well.
SKIHMM_CLONES static void add_where(int32_t n, double scale, const double *__restrict mass, double c,
                                    double u, float f, float *__restrict g) {
    for (int32_t k = 0; k < n; ++k) g[k] += scale * mass[k] * c >= u ? f : 0.0f;
}
static double sum_where_plain(int32_t n, double smooth, const double *c, double u,
                              const float *f) {
    double sum[8] = {};
    for (int32_t j = 0; j < n; ++j) sum[j % 8] += smooth * c[j] >= u ? f[j] : 0.0;
    return add_lanes(sum);
}

#ifdef SKIHMM_DISPATCH
SKIHMM_AVX2 static inline double add_lanes_avx2(__m256d low, __m256d high) {
    double lane[8];
    _mm256_storeu_pd(lane, low);
    _mm256_storeu_pd(lane + 4, high);
    return add_lanes(lane);
}
SKIHMM_AVX2 static inline __m256d lower_doubles(__m256 x) {
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
SKIHMM_AVX2 static inline __m256d upper_doubles(__m256 x) {
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
SKIHMM_AVX2 static inline double fold_4(__m256d x) {
    const __m128d y = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(y, _mm_unpackhi_pd(y, y)));
}
SKIHMM_AVX2 static inline float fold_8(__m256 x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}
SKIHMM_AVX2 static void emit_avx2(int32_t n, float smooth, const float *mass,
                                  const float *w, const float *size, float *g, float *out,
                                  double *sums) {
    const __m256 s = _mm256_set1_ps(smooth), zero = _mm256_setzero_ps();
    __m256d sum[4];
    for (int32_t part = 0; part < 4; ++part) sum[part] = _mm256_setzero_pd();
    __m256 sum_f[2] = {zero, zero};
    for (int32_t at = 0; at < n; at += 16) {
        for (int32_t half = 0; half < 2; ++half) {
            const int32_t k = at + 8 * half, low = 2 * half, high = low + 1;
            const __m256 value = _mm256_mul_ps(
                _mm256_add_ps(_mm256_loadu_ps(g + k),
                              _mm256_mul_ps(s, _mm256_loadu_ps(mass + k))),
                _mm256_loadu_ps(w + k));
            const __m256 f = _mm256_mul_ps(value, _mm256_loadu_ps(size + k));
            _mm256_storeu_ps(g + k, zero);
            _mm256_storeu_ps(out + k, value);
            sum[low] = _mm256_add_pd(sum[low], lower_doubles(value));
            sum[high] = _mm256_add_pd(sum[high], upper_doubles(value));
            sum_f[half] = _mm256_add_ps(sum_f[half], f);
        }
    }
    sums[0] = fold_4(_mm256_add_pd(_mm256_add_pd(sum[0], sum[2]),
                                   _mm256_add_pd(sum[1], sum[3])));
    sums[1] = fold_8(_mm256_add_ps(sum_f[0], sum_f[1]));
}
SKIHMM_AVX2 static int32_t select_avx2(int32_t n, float least, const float *f,
                                       const float *size, int32_t *chosen) {
    const __m256 bound = _mm256_set1_ps(least);
    int32_t found = 0;
    for (int32_t k = 0; k < n; k += 8) {
        const __m256 value = _mm256_mul_ps(_mm256_loadu_ps(f + k), _mm256_loadu_ps(size + k));
        int mask = _mm256_movemask_ps(_mm256_cmp_ps(value, bound, _CMP_GT_OQ));
        for (; mask; mask &= mask - 1) chosen[found++] = k + __builtin_ctz(mask);
    }
    return found;
}
SKIHMM_AVX2 static double sum_where_avx2(int32_t n, double smooth, const double *c, double u,
                                         const float *f) {
    const __m256d ss = _mm256_set1_pd(smooth), uu = _mm256_set1_pd(u);
    __m256d sum[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    for (int32_t at = 0; at < n; at += 8) {
        for (int32_t half = 0; half < 2; ++half) {
            const int32_t j = at + 4 * half;
            const __m256d p = _mm256_mul_pd(ss, _mm256_loadu_pd(c + j));
            sum[half] = _mm256_add_pd(sum[half],
                                      _mm256_and_pd(_mm256_cmp_pd(p, uu, _CMP_GE_OQ),
                                                    _mm256_cvtps_pd(_mm_loadu_ps(f + j))));
        }
    }
    return add_lanes_avx2(sum[0], sum[1]);
}

SKIHMM_AVX512 static void emit_avx512(int32_t n, float smooth, const float *mass,
                                      const float *w, const float *size, float *g,
                                      float *out, double *sums) {
    const __m512 s = _mm512_set1_ps(smooth), zero = _mm512_setzero_ps();
    __m512d low = _mm512_setzero_pd(), high = low;
    __m512 sum_f = zero;
    for (int32_t k = 0; k < n; k += 16) {
        const __m512 value = _mm512_mul_ps(
            _mm512_add_ps(_mm512_loadu_ps(g + k),
                          _mm512_mul_ps(s, _mm512_loadu_ps(mass + k))),
            _mm512_loadu_ps(w + k));
        const __m512 f = _mm512_mul_ps(value, _mm512_loadu_ps(size + k));
        _mm512_storeu_ps(g + k, zero);
        _mm512_storeu_ps(out + k, value);
        low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(value)));
        high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(value, 1)));
        sum_f = _mm512_add_ps(sum_f, f);
    }
    const __m512d sum = _mm512_add_pd(low, high);
    sums[0] = fold_4(_mm256_add_pd(_mm512_castpd512_pd256(sum),
                                   _mm512_extractf64x4_pd(sum, 1)));
    sums[1] = fold_8(_mm256_add_ps(_mm512_castps512_ps256(sum_f),
                                   _mm512_extractf32x8_ps(sum_f, 1)));
}
SKIHMM_AVX512 static int32_t select_avx512(int32_t n, float least, const float *f,
                                           const float *size, int32_t *chosen) {
    const __m512 bound = _mm512_set1_ps(least);
    const __m512i sixteen = _mm512_set1_epi32(16);
    __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int32_t found = 0;
    for (int32_t k = 0; k < n; k += 16) {
        const __m512 value = _mm512_mul_ps(_mm512_loadu_ps(f + k), _mm512_loadu_ps(size + k));
        const __mmask16 mask = _mm512_cmp_ps_mask(value, bound, _CMP_GT_OQ);
        // A compressing store to memory is slow on some machines.
        _mm512_storeu_si512(chosen + found, _mm512_maskz_compress_epi32(mask, place));
        found += __builtin_popcount(mask);
        place = _mm512_add_epi32(place, sixteen);
    }
    return found;
}
#endif

// Set the versions of a vector_level; false if this machine does not have it.
static bool find_blocked_passes(int level, BlockedPasses *out) {
    if (level > vector_level()) return false;
    if (level == 0) *out = {emit_plain, select_plain, sum_where_plain};
#ifdef SKIHMM_DISPATCH
    if (level == 1) *out = {emit_avx2, select_avx2, sum_where_avx2};
    // sum_where is bound by its loads.
    if (level == 2) *out = {emit_avx512, select_avx512, sum_where_avx2};
#endif
    return true;
}
static BlockedPasses choose_blocked_passes() {
    BlockedPasses out;
    find_blocked_passes(vector_level(), &out);
    return out;
}
static const BlockedPasses blocked_passes = choose_blocked_passes();

}  // namespace skihmm
