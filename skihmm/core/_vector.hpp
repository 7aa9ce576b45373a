// Loops for the widest vectors of the machine.
//
// With GCC or Clang on x86-64 every kernel has three versions, a plain loop, one for AVX2 and
// one for AVX-512, of which the best for the machine is chosen when the library is loaded.
// Elsewhere there is only the plain loop.  All give the same bits: sums run over 16 lanes in one
// fixed order, without contraction to fused multiply-add.  Intrinsics, because GCC 12 compiles
// the plain loop, and its own vector types, to shuffles: the conversions from 16-bit counts cost
// three times as much.
#pragma once
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define SKIHMM_DISPATCH 1
#define SKIHMM_AVX2 __attribute__((target("avx2")))
#define SKIHMM_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include <immintrin.h>
#endif

namespace skihmm {

// Version for this machine: 0 plain loops, 1 AVX2, 2 AVX-512.
static inline int vector_level() {
#ifdef SKIHMM_DISPATCH
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
                       && __builtin_cpu_supports("avx512dq")
                   ? 2 : 1;
#endif
    return 0;
}

// The version of a kernel for this machine, of the three with its name.
#ifdef SKIHMM_DISPATCH
template <class Kernel> static Kernel choose_kernel(Kernel base, Kernel avx2, Kernel avx512) {
    const int level = vector_level();
    return level > 1 ? avx512 : level > 0 ? avx2 : base;
}
#define SKIHMM_CHOOSE(name) choose_kernel(name##_base, name##_avx2, name##_avx512)
#else
#define SKIHMM_CHOOSE(name) name##_base
#endif

// Two doubles, for sums over scattered entries: every x86-64 has these, and they halve the
// instructions, mainly of conversions of counts.  The other version gives the same bits.
#ifdef __SSE2__
struct Pair {
    __m128d both;
    static Pair of(double x) { return {_mm_set1_pd(x)}; }
    static Pair next(const int32_t *n) {
        return {_mm_cvtepi32_pd(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(n)))};
    }
    static Pair at(const double *x, int32_t i, int32_t j) {
        return {_mm_loadh_pd(_mm_load_sd(x + i), x + j)};
    }
    static Pair at(const uint16_t *n, int32_t i, int32_t j) {
        return {_mm_cvtepi32_pd(_mm_insert_epi16(_mm_cvtsi32_si128(n[i]), n[j], 2))};
    }
    Pair operator+(Pair other) const { return {_mm_add_pd(both, other.both)}; }
    Pair operator*(Pair other) const { return {_mm_mul_pd(both, other.both)}; }
    // These where x >= least, else zero.
    Pair where_at_least(Pair x, Pair least) const {
        return {_mm_and_pd(both, _mm_cmpge_pd(x.both, least.both))};
    }
    double sum() const {
        return _mm_cvtsd_f64(both) + _mm_cvtsd_f64(_mm_unpackhi_pd(both, both));
    }
};
#else
struct Pair {
    double first, second;
    static Pair of(double x) { return {x, x}; }
    static Pair next(const int32_t *n) {
        return {static_cast<double>(n[0]), static_cast<double>(n[1])};
    }
    template <class T> static Pair at(const T *x, int32_t i, int32_t j) {
        return {static_cast<double>(x[i]), static_cast<double>(x[j])};
    }
    Pair operator+(Pair other) const { return {first + other.first, second + other.second}; }
    Pair operator*(Pair other) const { return {first * other.first, second * other.second}; }
    Pair where_at_least(Pair x, Pair least) const {
        return {x.first >= least.first ? first : 0.0, x.second >= least.second ? second : 0.0};
    }
    double sum() const { return first + second; }
};
#endif

// w[k] *= scale * tables[k] + rows[k], and sums[i] = w[32 i] + ... + w[32 i + 31], all sums
// in the same order.  With `symbols` w[k] = (symbols[k] + all) * inverse[k] before.
using ParticleWeightsKernel = void (*)(int32_t n_blocks, double scale, const int32_t *tables,
                                       const double *rows, const double *symbols, double all,
                                       const double *inverse, double *w, double *sums);

static void particle_weights_base(int32_t n_blocks, double scale, const int32_t *tables,
                                   const double *rows, const double *symbols, double all,
                                   const double *inverse, double *w, double *sums) {
    for (int32_t block = 0; block < n_blocks; ++block) {
        double lanes[8] = {};
        for (int32_t k = 32 * block; k < 32 * block + 32; ++k) {
            if (symbols) w[k] = (symbols[k] + all) * inverse[k];
            w[k] *= scale * tables[k] + rows[k];
            lanes[k % 8] += w[k];
        }
        sums[block] = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6]))
                      + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    }
}

#ifdef SKIHMM_DISPATCH
SKIHMM_AVX2 static inline double sum_lanes(__m256d low, __m256d high) {
    const __m256d four = _mm256_add_pd(low, high);
    const __m128d two =
        _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}
SKIHMM_AVX2 static void particle_weights_avx2(int32_t n_blocks, double scale,
                                              const int32_t *tables, const double *rows,
                                              const double *symbols, double all,
                                              const double *inverse, double *w,
                                              double *sums) {
    const __m256d factor = _mm256_set1_pd(scale), smooth = _mm256_set1_pd(all);
    for (int32_t block = 0; block < n_blocks; ++block) {
        __m256d lanes[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
        for (int32_t part = 0; part < 8; ++part) {
            const int32_t k = 32 * block + 4 * part;
            const __m256d value =
                symbols ? _mm256_mul_pd(_mm256_add_pd(_mm256_loadu_pd(symbols + k), smooth),
                                        _mm256_loadu_pd(inverse + k))
                        : _mm256_loadu_pd(w + k);
            const __m256d count = _mm256_cvtepi32_pd(
                _mm_loadu_si128(reinterpret_cast<const __m128i *>(tables + k)));
            const __m256d product = _mm256_mul_pd(
                value,
                _mm256_add_pd(_mm256_mul_pd(factor, count), _mm256_loadu_pd(rows + k)));
            _mm256_storeu_pd(w + k, product);
            lanes[part % 2] = _mm256_add_pd(lanes[part % 2], product);
        }
        sums[block] = sum_lanes(lanes[0], lanes[1]);
    }
}

SKIHMM_AVX512 static void particle_weights_avx512(int32_t n_blocks, double scale,
                                                  const int32_t *tables, const double *rows,
                                                  const double *symbols, double all,
                                                  const double *inverse, double *w,
                                                  double *sums) {
    const __m512d factor = _mm512_set1_pd(scale), smooth = _mm512_set1_pd(all);
    for (int32_t block = 0; block < n_blocks; ++block) {
        __m512d lanes = _mm512_setzero_pd();
        for (int32_t k = 32 * block; k < 32 * block + 32; k += 8) {
            const __m512d value =
                symbols ? _mm512_mul_pd(_mm512_add_pd(_mm512_loadu_pd(symbols + k), smooth),
                                        _mm512_loadu_pd(inverse + k))
                        : _mm512_loadu_pd(w + k);
            const __m512d count = _mm512_cvtepi32_pd(
                _mm256_loadu_si256(reinterpret_cast<const __m256i *>(tables + k)));
            const __m512d product = _mm512_mul_pd(
                value,
                _mm512_add_pd(_mm512_mul_pd(factor, count), _mm512_loadu_pd(rows + k)));
            _mm512_storeu_pd(w + k, product);
            lanes = _mm512_add_pd(lanes, product);
        }
        sums[block] = sum_lanes(_mm512_castpd512_pd256(lanes),
                                _mm512_maskz_extractf64x4_pd(15, lanes, 1));
    }
}
#endif

static const ParticleWeightsKernel particle_weights = SKIHMM_CHOOSE(particle_weights);

}  // namespace skihmm
