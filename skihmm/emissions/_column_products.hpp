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

// As Emission::fill_logs.  multiply(start, stop, out) sets out[k] to the product over the
// columns start .. stop - 1; `scratch` is that.
template <class Multiply>
void fill_column_logs(size_t n_columns, int32_t n_slots, std::vector<double> *scratch,
                      double *out, Multiply multiply) {
    if (n_columns <= kColumnGroup) {
        multiply(0, n_columns, out);
        take_logs(n_slots, 0.0, out);
        return;
    }
    scratch->resize(n_slots);
    const double *product = scratch->data();
    std::fill_n(out, n_slots, 0.0);
    for (size_t c = 0; c < n_columns; c += kColumnGroup) {
        multiply(c, std::min(c + kColumnGroup, n_columns), scratch->data());
        for (int32_t k = 0; k < n_slots; ++k) out[k] += std::log(product[k]);
    }
}

// As Emission::fill_probs; `out` holds the logs on the way.
template <class Multiply>
double fill_column_product(size_t n_columns, int32_t n_slots, std::vector<double> *scratch,
                           double *out, Multiply multiply) {
    if (n_columns <= kColumnGroup) {
        multiply(0, n_columns, out);
        return 0.0;
    }
    fill_column_logs(n_columns, n_slots, scratch, out, multiply);
    return fill_floored(n_slots, out, out);
}

// As Emission::fill_log_pair, of the products p[0] and p[1].
inline void fill_column_log_pair(const Product *p, double *out) {
    for (int i = 0; i < 2; ++i) out[i] = p[i].log();
}

// As Emission::fill_pair.
inline void fill_column_pair(const Product *p, double *out) {
    for (int i = 0; i < 2; ++i) out[i] = p[i].value;
    if (p[0].log_scale == 0.0 && p[1].log_scale == 0.0) return;
    // Many columns: relative to the larger of the two.
    double logs[2];
    fill_column_log_pair(p, logs);
    fill_floored_pair(logs, out);
}

}  // namespace skihmm
