// Evidence of logistic regressions, without weights.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_cholesky.hpp"
#include "_polya_gamma.hpp"

namespace skihmm {

// log of the integral over beta ~ N(mean, 1/precision), of q coefficients, of the likelihoods of
// some rows, by Laplace's method.  rows(visit) calls visit(kappa, b, shift, log_factor, x) for each:
// with psi = shift + beta^T x the log likelihood is log_factor + kappa psi - b log(2 cosh(psi/2)).
// The search for the mode starts at `mode`, the mean given the weights of the rows, with one
// expectation of the weights, which always leads towards the mode, and goes on by Newton's method.
template <class Rows>
double log_logistic_evidence(int32_t q, const double *mean, const double *precision,
                             std::vector<double> mode, Rows rows) {
    // Usual and most steps to a mode, and where it is reached.
    constexpr int32_t kToMode = 5, kMostToMode = 100;
    constexpr double kNearMode = 1e-2, kAtMode = 1e-9;
    std::vector<double> products(q * (q + 1) / 2), factor, right(q), before;
    double lp = 0.0, moved = 0.0;  // Squared, in standard deviations.
    for (int32_t pass = 0;; ++pass) {
        const bool is_last = pass >= kMostToMode || (pass >= kToMode && moved < kNearMode)
                             || (pass > 1 && moved < kAtMode);
        // Whole steps of Newton's method lead away from modes that are far.
        const bool is_safe = pass == 0 || (pass > kToMode && moved > 1.0);
        std::fill(products.begin(), products.end(), 0.0);
        std::fill(right.begin(), right.end(), 0.0);
        rows([&](double kappa, double b, double shift, double log_factor, const double *x) {
            double along = 0.0;
            for (int32_t a = 0; a < q; ++a) along += x[a] * mode[a];
            const double psi = along + shift, t = std::tanh(0.5 * psi);
            const double weight =
                is_safe ? polya_gamma_mean(b, psi) : 0.25 * b * (1.0 - t * t);
            // The score of the row, and its value at beta = 0.
            const double slope = kappa - 0.5 * b * t + weight * along;
            for (int32_t a = 0, at = 0; a < q; ++a) {
                for (int32_t c = 0; c <= a; ++c) products[at++] += weight * x[a] * x[c];
                right[a] += slope * x[a];
            }
            if (is_last) lp += log_factor + kappa * psi - b * log_cosh(psi);
        });
        factor = products;
        for (int32_t a = 0; a < q; ++a) factor[a * (a + 3) / 2] += precision[a];
        factorise(q, factor.data());
        if (is_last) break;
        before = mode;
        for (int32_t a = 0; a < q; ++a) mode[a] = right[a] + precision[a] * mean[a];
        solve_lower(q, factor.data(), mode.data());
        solve_upper(q, factor.data(), mode.data());
        moved = 0.0;
        for (int32_t a = 0, at = 0; a < q; ++a) {
            const double d = mode[a] - before[a];
            moved += precision[a] * d * d;
            for (int32_t c = 0; c <= a; ++c)
                moved += (a == c ? 1.0 : 2.0) * products[at++] * d * (mode[c] - before[c]);
        }
    }
    for (int32_t a = 0; a < q; ++a) {
        const double v = precision[a], d = mode[a] - mean[a];
        lp += 0.5 * (std::log(v) - v * d * d) - std::log(factor[a * (a + 3) / 2]);
    }
    return lp;
}

}  // namespace skihmm
