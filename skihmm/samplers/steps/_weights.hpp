// Weights of all states, for samplers with a pass over all states: sums over 16 lanes, in
// versions for the widest vectors of the machine (see _vector.hpp), and a draw from them.
#pragma once
#include <cstdint>
#include <vector>

#include "_seating.hpp"
#include "_vector.hpp"

namespace skihmm {

enum { kWeightLanes = 16 };

// q[k] = (row[k] + mass[k]) (column[k] + b) w[k] for k < n, a multiple of 16, and
// q[skip] = 0; lanes[l] = q[l] + q[l + 16] + ...
template <class Count>
SKIHMM_INLINE void counted_weights_plain(int32_t n, int32_t skip, const Count *row,
                                         const Count *column, const double *mass,
                                         const double *w, double b, double *q,
                                         double *lanes) {
    for (int32_t l = 0; l < kWeightLanes; ++l) lanes[l] = 0.0;
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t l = 0; l < kWeightLanes; ++l) {
            const int32_t k = at + l;
            q[k] = (row[k] + mass[k]) * (column[k] + b) * (k == skip ? 0.0 : w[k]);
            lanes[l] += q[k];
        }
    }
}

// q[k] = row[k] column[k] probs[k], and so on.
SKIHMM_INLINE void product_weights_plain(int32_t n, int32_t skip, const double *row,
                                         const double *column, const double *probs,
                                         double *q, double *lanes) {
    for (int32_t l = 0; l < kWeightLanes; ++l) lanes[l] = 0.0;
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t l = 0; l < kWeightLanes; ++l) {
            const int32_t k = at + l;
            q[k] = row[k] * column[k] * (k == skip ? 0.0 : probs[k]);
            lanes[l] += q[k];
        }
    }
}

using CountedWeightsKernel = void (*)(int32_t n, int32_t skip, const uint16_t *row,
                                      const uint16_t *column, const double *mass,
                                      const double *w, double b, double *q,
                                      double *lanes);
using ProductWeightsKernel = void (*)(int32_t n, int32_t skip, const double *row,
                                      const double *column, const double *probs, double *q,
                                      double *lanes);

static void counted_weights_base(int32_t n, int32_t skip, const uint16_t *row,
                                 const uint16_t *column, const double *mass,
                                 const double *w, double b, double *q, double *lanes) {
    counted_weights_plain(n, skip, row, column, mass, w, b, q, lanes);
}
static void product_weights_base(int32_t n, int32_t skip, const double *row,
                                 const double *column, const double *probs, double *q,
                                 double *lanes) {
    product_weights_plain(n, skip, row, column, probs, q, lanes);
}

#ifdef SKIHMM_DISPATCH
SKIHMM_AVX2 static inline __m256d counts_4(const uint16_t *n) {
    return _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i *>(n))));
}
SKIHMM_AVX2 static void counted_weights_avx2(int32_t n, int32_t skip, const uint16_t *row,
                                             const uint16_t *column, const double *mass,
                                             const double *w, double b, double *q,
                                             double *lanes) {
    const __m256d bb = _mm256_set1_pd(b);
    __m256d total[4];
    for (int32_t part = 0; part < 4; ++part) total[part] = _mm256_setzero_pd();
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t part = 0; part < 4; ++part) {
            const int32_t k = at + 4 * part;
            __m256d value = _mm256_mul_pd(
                _mm256_mul_pd(_mm256_add_pd(counts_4(row + k), _mm256_loadu_pd(mass + k)),
                              _mm256_add_pd(counts_4(column + k), bb)),
                _mm256_loadu_pd(w + k));
            if (SKIHMM_UNLIKELY(skip >> 2 == k >> 2)) {
                double four[4];
                _mm256_storeu_pd(four, value);
                four[skip & 3] = 0.0;
                value = _mm256_loadu_pd(four);
            }
            _mm256_storeu_pd(q + k, value);
            total[part] = _mm256_add_pd(total[part], value);
        }
    }
    for (int32_t part = 0; part < 4; ++part) _mm256_storeu_pd(lanes + 4 * part, total[part]);
}
SKIHMM_AVX2 static void product_weights_avx2(int32_t n, int32_t skip, const double *row,
                                             const double *column, const double *probs,
                                             double *q, double *lanes) {
    __m256d total[4];
    for (int32_t part = 0; part < 4; ++part) total[part] = _mm256_setzero_pd();
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t part = 0; part < 4; ++part) {
            const int32_t k = at + 4 * part;
            __m256d value = _mm256_mul_pd(
                _mm256_mul_pd(_mm256_loadu_pd(row + k), _mm256_loadu_pd(column + k)),
                _mm256_loadu_pd(probs + k));
            if (SKIHMM_UNLIKELY(skip >> 2 == k >> 2)) {
                double four[4];
                _mm256_storeu_pd(four, value);
                four[skip & 3] = 0.0;
                value = _mm256_loadu_pd(four);
            }
            _mm256_storeu_pd(q + k, value);
            total[part] = _mm256_add_pd(total[part], value);
        }
    }
    for (int32_t part = 0; part < 4; ++part) _mm256_storeu_pd(lanes + 4 * part, total[part]);
}

SKIHMM_AVX512 static inline __m512d counts_8_wide(const uint16_t *n) {
    return _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i *>(n))));
}
SKIHMM_AVX512 static inline __mmask8 all_but(int32_t skip, int32_t k) {
    const uint32_t place = static_cast<uint32_t>(skip - k);
    return static_cast<__mmask8>(place < 8 ? ~(1u << place) : 0xffu);
}
SKIHMM_AVX512 static void counted_weights_avx512(int32_t n, int32_t skip,
                                                 const uint16_t *row,
                                                 const uint16_t *column,
                                                 const double *mass, const double *w,
                                                 double b, double *q, double *lanes) {
    const __m512d bb = _mm512_set1_pd(b);
    __m512d total[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t part = 0; part < 2; ++part) {
            const int32_t k = at + 8 * part;
            const __m512d value = _mm512_mul_pd(
                _mm512_mul_pd(
                    _mm512_add_pd(counts_8_wide(row + k), _mm512_loadu_pd(mass + k)),
                    _mm512_add_pd(counts_8_wide(column + k), bb)),
                _mm512_maskz_loadu_pd(all_but(skip, k), w + k));
            _mm512_storeu_pd(q + k, value);
            total[part] = _mm512_add_pd(total[part], value);
        }
    }
    _mm512_storeu_pd(lanes, total[0]);
    _mm512_storeu_pd(lanes + 8, total[1]);
}
SKIHMM_AVX512 static void product_weights_avx512(int32_t n, int32_t skip,
                                                 const double *row, const double *column,
                                                 const double *probs, double *q,
                                                 double *lanes) {
    __m512d total[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t part = 0; part < 2; ++part) {
            const int32_t k = at + 8 * part;
            const __m512d value = _mm512_mul_pd(
                _mm512_mul_pd(_mm512_loadu_pd(row + k), _mm512_loadu_pd(column + k)),
                _mm512_maskz_loadu_pd(all_but(skip, k), probs + k));
            _mm512_storeu_pd(q + k, value);
            total[part] = _mm512_add_pd(total[part], value);
        }
    }
    _mm512_storeu_pd(lanes, total[0]);
    _mm512_storeu_pd(lanes + 8, total[1]);
}
#endif

static const CountedWeightsKernel counted_weights = SKIHMM_CHOOSE(counted_weights);
static const ProductWeightsKernel product_weights = SKIHMM_CHOOSE(product_weights);

// The weights of one step and their sums by lane.
struct Weights {
    WideVector<double> q;
    double lanes[kWeightLanes];
    int32_t n = 0;                      // a multiple of 16

    void resize(int32_t n_slots) {
        n = (n_slots + kWeightLanes - 1) / kWeightLanes * kWeightLanes;
        q.assign(n, 0.0);
    }
    void change(int32_t k, double weight) {
        // The lane is summed anew, because a difference might be only rounding error.
        const int32_t lane = k % kWeightLanes;
        q[k] = weight;
        double sum = 0.0;
        for (int32_t at = lane; at < n; at += kWeightLanes) sum += q[at];
        lanes[lane] = sum;
    }
    void sum_up() {
        for (double &lane : lanes) lane = 0.0;
        for (int32_t at = 0; at < n; at += kWeightLanes)
            for (int32_t l = 0; l < kWeightLanes; ++l) lanes[l] += q[at + l];
    }
    double total() const {
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
        for (int32_t l = 0; l < kWeightLanes; ++l) sum[l % 4] += lanes[l];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    // The state at u, 0 <= u < total(), or -1 if all weights are zero.  If u is beyond the end
    // by rounding, the last possible one.
    int32_t at(double u) const {  // planted: number of a weight
        int32_t lane = 0, found = -1;
        for (int32_t l = 0; l < kWeightLanes; ++l) {
            if (!(lanes[l] > 0.0)) continue;
            lane = l;
            if (u < lanes[l]) break;
            u -= lanes[l];
        }
        for (int32_t k = lane; k < n; k += kWeightLanes) {
            if (!(q[k] > 0.0)) continue;
            found = k;
            if (u < q[k]) break;
            u -= q[k];
        }
        return found;
    }
};

}  // namespace skihmm
