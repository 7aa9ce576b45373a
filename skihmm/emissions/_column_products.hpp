// Products over many columns of symbols, whose range exceeds that of a double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "_emission.hpp"

namespace skihmm {

// Columns whose probabilities are multiplied before a logarithm is taken: sixteen factors
// of 1e-18 are still far from underflow.
constexpr size_t kColumnGroup = 16;

// As Emission::fill_probs.  multiply(start, stop, out) sets out[k] to the product over the
// columns start .. stop - 1; `logs` is scratch.
template <class Multiply>
double fill_column_product(size_t n_columns, int32_t n_slots, std::vector<double> *logs,
                           double *out, Multiply multiply) {
    if (n_columns <= kColumnGroup) {
        multiply(0, n_columns, out);
        return 0.0;
    }
    logs->assign(n_slots, 0.0);
    double *sums = logs->data();
    for (size_t c = 0; c < n_columns; c += kColumnGroup) {
        multiply(c, std::min(c + kColumnGroup, n_columns), out);
        for (int32_t k = 0; k < n_slots; ++k) sums[k] += std::log(out[k]);
    }
    const double largest = *std::max_element(logs->begin(), logs->end());
    for (int32_t k = 0; k < n_slots; ++k)
        out[k] = std::exp(std::max(sums[k] - largest, kLeastLog));
    return largest;
}

// As Emission::fill_pair, of the products p[0] and p[1].
inline void fill_column_pair(const Product *p, double *out) {
    for (int i = 0; i < 2; ++i) out[i] = p[i].value;
    if (p[0].log_scale == 0.0 && p[1].log_scale == 0.0) return;
    // Many columns: relative to the larger of the two.
    const double larger = std::max(p[0].log(), p[1].log());
    for (int i = 0; i < 2; ++i) out[i] = std::exp(std::max(p[i].log() - larger, kLeastLog));
}

}  // namespace skihmm
