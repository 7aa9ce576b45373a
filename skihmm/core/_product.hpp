// Products of many probabilities.
#pragma once
#include <cmath>

#include "_platform.hpp"

namespace skihmm {

// A product of positive factors without underflow and without a logarithm per factor: it is
// `value * exp(log_scale)`, and log_scale stays 0 for the few factors of a step-wise move.
// Densities enter through multiply_log.
struct Product {
    double value = 1.0;
    double log_scale = 0.0;

    void reset() { value = 1.0; log_scale = 0.0; }
    void multiply(double factor) {
        const double product = value * factor;
        if (SKIHMM_UNLIKELY(product < 1e-60 || product > 1e60)) rescale(factor);
        else value = product;
    }
    void multiply_log(double log_factor) { log_scale += log_factor; }
    void multiply(const Product &other) {
        multiply(other.value);
        multiply_log(other.log_scale);
    }
    double log() const { return log_scale + std::log(value); }

  private:
    SKIHMM_NOINLINE void rescale(double factor) {
        // -inf for an impossible factor
        log_scale += std::log(value) + std::log(factor);
        value = 1.0;
    }
};

}  // namespace skihmm
