// Choice of an index by weights.
#pragma once
#include <cstdint>
#include <vector>

#include "_random.hpp"

namespace skihmm {

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
