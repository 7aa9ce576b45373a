// Loops for the widest vectors of the machine.
//
// With GCC or Clang on x86-64 every kernel has three versions: a plain loop, AVX2 and AVX-512; the
// best for the machine is chosen when the library is loaded.  Elsewhere there is only the plain
// loop.  All give the same bits: sums run over 16 lanes in one fixed order, without contraction to
// fused multiply-add.  Intrinsics, because GCC 12 compiles the plain loop, and its own vector
// types, to shuffles: the conversions from 16-bit counts cost three times as much.
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

}  // namespace skihmm
