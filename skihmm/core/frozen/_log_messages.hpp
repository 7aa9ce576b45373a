// Vectors of logarithms of probabilities, and draws by weights.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_math.hpp"
#include "_platform.hpp"
#include "_random.hpp"

namespace skihmm {

// Log 0, which is finite so that differences are.
constexpr double kLogZero = -1e300;

static inline double log_or_zero(double x) { return x > 0.0 ? std::log(x) : kLogZero; }
static SKIHMM_INLINE double exp_or_zero(double x) {
    return x > -700.0 ? exp_of(std::max(x, -700.0)) : 0.0;
}
// out[i] = exp(x[i] - shift); x may be out.
SKIHMM_CLONES static void exp_all(int32_t n, double shift, const double *x, double *out) {
    for (int32_t i = 0; i < n; ++i) out[i] = exp_or_zero(x[i] - shift);
}
SKIHMM_CLONES static double largest_of(int32_t n, const double *x) {
    double lanes[8], largest = kLogZero;
    std::fill_n(lanes, 8, kLogZero);
    int32_t i = 0;
    for (; i + 7 < n; i += 8)
        for (int32_t l = 0; l < 8; ++l) lanes[l] = std::max(lanes[l], x[i + l]);
    for (; i < n; ++i) lanes[0] = std::max(lanes[0], x[i]);
    for (const double lane : lanes) largest = std::max(largest, lane);
    return largest;
}
SKIHMM_CLONES static void subtract_all(int32_t n, double shift, double *x) {
    for (int32_t i = 0; i < n; ++i) x[i] = std::max(x[i] - shift, kLogZero);
}
// out[i] = log(exp(x[i] + a[i]) + exp(y[i] + b[i]))
SKIHMM_CLONES static void add_logs(int32_t n, const double *__restrict x,
                                   const double *__restrict a, const double *__restrict y,
                                   const double *__restrict b, double *__restrict out) {
    for (int32_t i = 0; i < n; ++i) {
        const double first = x[i] + a[i], second = y[i] + b[i];
        const double larger = std::max(first, second), smaller = std::min(first, second);
        out[i] = larger + log1p_of(exp_of(std::max(smaller - larger, -700.0)));
    }
}

static inline double sum_of(const std::vector<double> &weights) {
    double total = 0.0;
    for (const double weight : weights) total += weight;
    return total;
}
// An index, by weights with a positive sum.
static inline int32_t draw_weighted(const std::vector<double> &weights, double total,
                                    bitgen_t *g) {
    double u = uniform(g) * total;
    int32_t chosen = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
        if (!(weights[i] > 0.0)) continue;
        // (The last possible index if rounding leaves a rest of u.)
        chosen = static_cast<int32_t>(i);
        u -= weights[i];
        if (u < 0.0) break;
    }
    return chosen;
}

}  // namespace skihmm
