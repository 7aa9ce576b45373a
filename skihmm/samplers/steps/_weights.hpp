// Weights of all states, for samplers with a pass over all states: sums over 16 lanes, and a draw
// from them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "_containers.hpp"
#include "_platform.hpp"

namespace skihmm {

enum { kWeightLanes = 16 };

// q[k] = (row[k] + mass[k]) (column[k] + b) w[k] for k < n, a multiple of 16, and
// q[skip] = 0; lanes[l] = q[l] + q[l + 16] + ...
template <class Count>
SKIHMM_INLINE void counted_weights(int32_t n, int32_t skip, const Count *row,
                                   const Count *column, const double *mass, const double *w,
                                   double b, double *__restrict q, double *lanes) {
    double total[kWeightLanes] = {};
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t k = at; k < at + kWeightLanes; ++k)
            q[k] = (row[k] + mass[k]) * (column[k] + b) * w[k];
        if (skip / kWeightLanes == at / kWeightLanes) q[skip] = 0.0;
        for (int32_t l = 0; l < kWeightLanes; ++l) total[l] += q[at + l];
    }
    std::copy_n(total, kWeightLanes, lanes);
}
SKIHMM_CLONES static void dense_weights(int32_t n, int32_t skip, const uint16_t *row,
                                        const uint16_t *column, const double *mass,
                                        const double *w, double b, double *__restrict q,
                                        double *lanes) {
    counted_weights(n, skip, row, column, mass, w, b, q, lanes);
}
// q[k] = row[k] column[k] probs[k], and so on.
SKIHMM_CLONES static void product_weights(int32_t n, int32_t skip, const double *row,
                                          const double *column, const double *probs,
                                          double *__restrict q, double *lanes) {
    double total[kWeightLanes] = {};
    for (int32_t at = 0; at < n; at += kWeightLanes) {
        for (int32_t k = at; k < at + kWeightLanes; ++k) q[k] = row[k] * column[k] * probs[k];
        if (skip / kWeightLanes == at / kWeightLanes) q[skip] = 0.0;
        for (int32_t l = 0; l < kWeightLanes; ++l) total[l] += q[at + l];
    }
    std::copy_n(total, kWeightLanes, lanes);
}

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
    // The state at u, 0 <= u < total(), or -1 if all weights are zero.  If u is beyond the end by
    // rounding, the last possible state.
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
