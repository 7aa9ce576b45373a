// Rough sums over the labels of one step with contexts, from dense counts in floats.
//
// At stationarity more than nine of ten draws repeat the old label, and to know that only a
// bound is needed of what all others add up to: a pass over all labels without branches, two
// levels of restaurants at a time, in a third of the time of exact sums over lists.  The draw is
// the one that exact sums give: where the bounds leave it open, these are computed.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_contexts.hpp"
#include "_vector.hpp"
#include "_weights.hpp"

namespace skihmm {

// Counts of the restaurants in trees of two levels, by row and, of those of every label, by column,
// as they are between moves.
class DenseCounts {
  public:
    // Whether they are there and complete.
    bool exist() const { return stride_ > 0; }
    void clear() { stride_ = 0; }
    // Whether so many slots are worth it, more are slow, as they outgrow the caches; and whether
    // weights are within the range of floats.
    static bool suit(const ContextTree &tree, int32_t n_slots) {
        if (tree.shape.depth() != 2 || !is_moderate(tree.root().gamma)) return false;
        for (int32_t d : {1, 2}) if (!is_moderate(tree.alpha(d))) return false;
        return static_cast<int64_t>(tree.shape.stride(2) + 1) * n_slots * n_slots <= kMostPairs;
    }
    void attach(const ContextTree &tree, int32_t n_slots) {
        tree_ = &tree;
        n_slots_ = n_slots;
        stride_ = tree.padded();
        zeros_.assign(stride_, 0);
        for (int32_t d : {1, 2}) {
            const size_t n = static_cast<size_t>(tree.shape.n_rows(d, n_slots)) * stride_;
            rows_[d - 1].assign(n, 0);
            columns_[d - 1].assign(tree.shape.has_state(d) ? n : 0, 0);
        }
        tree.visit_cells([&](int32_t d, int32_t j, int32_t prefix, int32_t k, int32_t n_k) {
            set(d, prefix, j, k, n_k);
        });
    }
    // Of label j, and of the labels before k; of these none where restaurants are no label's.
    const uint16_t *row(int32_t d, int32_t prefix, int32_t j) const {
        return &rows_[d - 1][place(d, prefix, j)];
    }
    const uint16_t *column(int32_t d, int32_t prefix, int32_t k) const {
        return tree_->shape.has_state(d) ? &columns_[d - 1][place(d, prefix, k)] : zeros_.data();
    }
    // The pair of j and k has other counts in the restaurants of a place than before the move.
    void update(ContextPlace at, int32_t j, int32_t k, int32_t hint) {
        int32_t counts[3], prefix = at.prefix;
        tree_->fill_counts(at, j, k, &hint, counts);
        for (int32_t d = at.depth; d >= 1 && exist(); --d) {
            set(d, prefix, j, k, counts[d]);
            if (d > 1) prefix = tree_->shape.prefix_above(d, prefix);
        }
    }

    void prefetch(ContextPlace at, int32_t j) const {
        const uint16_t *counts = row(2, at.prefix, j);
        for (int32_t k = 0; k < stride_; k += 32) SKIHMM_PREFETCH(counts + k);
    }

  private:
    static constexpr int64_t kMostPairs = 1 << 20;
    static bool is_moderate(double a) { return 1e-2 < a && a < 1e6; }

    size_t place(int32_t d, int32_t prefix, int32_t k) const {
        const size_t row = tree_->shape.has_state(d)
            ? static_cast<size_t>(prefix) * n_slots_ + k : prefix;
        return row * stride_;
    }
    void set(int32_t d, int32_t prefix, int32_t j, int32_t k, int32_t n) {
        if (n > UINT16_MAX) return clear();
        rows_[d - 1][place(d, prefix, j) + k] = static_cast<uint16_t>(n);
        if (tree_->shape.has_state(d))
            columns_[d - 1][place(d, prefix, k) + j] = static_cast<uint16_t>(n);
    }

    const ContextTree *tree_ = nullptr;
    int32_t n_slots_ = 0, stride_ = 0;
    WideVector<uint16_t> rows_[2], columns_[2];     // by depth, prefix, label and label
    WideVector<uint16_t> zeros_;
};

// q[k] = w n_k + w_above n'_k + g mass_k, with the counts n and n' of two rows, for all k < n.
SKIHMM_CLONES static void rough_row(int32_t n, const uint16_t *row, const uint16_t *row_above,
                                    const float *mass, float w, float w_above, float g,
                                    float *q) {
    for (int32_t k = 0; k < n; ++k) q[k] = w * row[k] + w_above * row_above[k] + g * mass[k];
}

// Notation of _context_sparse.hpp:  with P_k = h_k c_k, R_k = a d_k P_k and O_k = P_k m_k + R_k n_k
//
//     q[k] = w n_k (O_k + ab R_k) + w_above n'_k (O_k + ab_above R_k)
//            + g mass_k (O_k + ab_opened R_k),
//
// with the counts n and n' of two rows, and 0 for the three that are skipped; returns their sum.
// n is a multiple of 16.
struct RoughStep {
    int32_t n;
    int32_t skipped[3];
    const uint16_t *row, *row_above, *column, *column_above;
    const float *h, *c, *d, *mass;
    float w, w_above, a, ab, ab_above, ab_opened, g;
};
using RoughWeightsKernel = float (*)(const RoughStep &in, float *q);

static float rough_weights_base(const RoughStep &in, float *q) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int32_t k = 0; k < in.n; ++k) {
        const float p = in.h[k] * in.c[k], r = p * (in.a * in.d[k]);
        const float out = p * in.column[k] + r * in.column_above[k];
        q[k] = in.w * in.row[k] * (out + in.ab * r)
               + in.w_above * in.row_above[k] * (out + in.ab_above * r)
               + in.g * in.mass[k] * (out + in.ab_opened * r);
    }
    for (const int32_t k : in.skipped) q[k] = 0.0f;
    for (int32_t k = 0; k < in.n; ++k) sum[k % 4] += q[k];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

#ifdef SKIHMM_DISPATCH
SKIHMM_AVX2 static inline float sum_lanes(__m256 lanes) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
SKIHMM_AVX2 static float rough_weights_avx2(const RoughStep &in, float *q) {
    const __m256 w = _mm256_set1_ps(in.w), w_above = _mm256_set1_ps(in.w_above),
                 a = _mm256_set1_ps(in.a), ab = _mm256_set1_ps(in.ab),
                 ab_above = _mm256_set1_ps(in.ab_above),
                 ab_opened = _mm256_set1_ps(in.ab_opened), g = _mm256_set1_ps(in.g);
    const __m256i x = _mm256_set1_epi32(in.skipped[0]), i = _mm256_set1_epi32(in.skipped[1]),
                  o = _mm256_set1_epi32(in.skipped[2]), eight = _mm256_set1_epi32(8);
    __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256 total[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int32_t at = 0; at < in.n; at += 16) {
        for (int32_t half = 0; half < 2; ++half) {
            const int32_t k = at + 8 * half;
            const __m256 p = _mm256_mul_ps(_mm256_loadu_ps(in.h + k), _mm256_loadu_ps(in.c + k));
            const __m256 r = _mm256_mul_ps(p, _mm256_mul_ps(a, _mm256_loadu_ps(in.d + k)));
            const __m256 out = _mm256_add_ps(_mm256_mul_ps(p, counts_8(in.column + k)),
                                             _mm256_mul_ps(r, counts_8(in.column_above + k)));
            const __m256 joins = _mm256_add_ps(
                _mm256_mul_ps(_mm256_mul_ps(w, counts_8(in.row + k)),
                              _mm256_add_ps(out, _mm256_mul_ps(ab, r))),
                _mm256_mul_ps(_mm256_mul_ps(w_above, counts_8(in.row_above + k)),
                              _mm256_add_ps(out, _mm256_mul_ps(ab_above, r))));
            const __m256 opens = _mm256_mul_ps(
                _mm256_mul_ps(g, _mm256_loadu_ps(in.mass + k)),
                _mm256_add_ps(out, _mm256_mul_ps(ab_opened, r)));
            const __m256 skipped = _mm256_castsi256_ps(_mm256_or_si256(
                _mm256_cmpeq_epi32(place, x),
                _mm256_or_si256(_mm256_cmpeq_epi32(place, i), _mm256_cmpeq_epi32(place, o))));
            const __m256 value = _mm256_andnot_ps(skipped, _mm256_add_ps(joins, opens));
            place = _mm256_add_epi32(place, eight);
            _mm256_storeu_ps(q + k, value);
            total[half] = _mm256_add_ps(total[half], value);
        }
    }
    return sum_lanes(_mm256_add_ps(total[0], total[1]));
}

SKIHMM_AVX512 static float rough_weights_avx512(const RoughStep &in, float *q) {
    const __m512 w = _mm512_set1_ps(in.w), w_above = _mm512_set1_ps(in.w_above),
                 a = _mm512_set1_ps(in.a), ab = _mm512_set1_ps(in.ab),
                 ab_above = _mm512_set1_ps(in.ab_above),
                 ab_opened = _mm512_set1_ps(in.ab_opened), g = _mm512_set1_ps(in.g);
    const __m512i x = _mm512_set1_epi32(in.skipped[0]), i = _mm512_set1_epi32(in.skipped[1]),
                  o = _mm512_set1_epi32(in.skipped[2]), sixteen = _mm512_set1_epi32(16);
    __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512 total = _mm512_setzero_ps();
    for (int32_t k = 0; k < in.n; k += 16) {
        __mmask16 kept = _mm512_cmpneq_epi32_mask(place, x);
        kept = _mm512_mask_cmpneq_epi32_mask(kept, place, i);
        kept = _mm512_mask_cmpneq_epi32_mask(kept, place, o);
        place = _mm512_add_epi32(place, sixteen);
        const __m512 p = _mm512_maskz_mul_ps(kept, _mm512_loadu_ps(in.h + k),
                                             _mm512_loadu_ps(in.c + k));
        const __m512 r = _mm512_mul_ps(p, _mm512_mul_ps(a, _mm512_loadu_ps(in.d + k)));
        const __m512 out = _mm512_fmadd_ps(p, counts_16(in.column + k),
                                           _mm512_mul_ps(r, counts_16(in.column_above + k)));
        const __m512 opens = _mm512_mul_ps(_mm512_mul_ps(g, _mm512_loadu_ps(in.mass + k)),
                                           _mm512_fmadd_ps(ab_opened, r, out));
        const __m512 value = _mm512_fmadd_ps(
            _mm512_mul_ps(w, counts_16(in.row + k)), _mm512_fmadd_ps(ab, r, out),
            _mm512_fmadd_ps(_mm512_mul_ps(w_above, counts_16(in.row_above + k)),
                            _mm512_fmadd_ps(ab_above, r, out), opens));
        _mm512_storeu_ps(q + k, value);
        total = _mm512_add_ps(total, value);
    }
    return sum_lanes(_mm256_add_ps(_mm512_castps512_ps256(total),
                                   _mm512_maskz_extractf32x8_ps(255, total, 1)));
}
#endif

// Unlike other passes they differ in their last bits, which decide on nothing.
static const RoughWeightsKernel rough_weights = SKIHMM_CHOOSE(rough_weights);

}  // namespace skihmm
