// Posterior draws of hyperparameters: slice sampling, and their common prior.
#pragma once
#include <algorithm>
#include <cmath>

#include "_random.hpp"

namespace skihmm {

// A positive hyperparameter that is not fixed is Gamma(1/2, rate 1/2) in units of a typical
// value of the data: mean 1, a heavy tail above, and mass near zero.
constexpr double kHyperShape = 0.5, kHyperRate = 0.5;

// The prior is truncated beyond these multiples of the typical value.  Scales of Gaussians have
// a higher lower limit, or states of equal values, as in rounded data, would draw them to zero.
constexpr double kLeastHyper = 1e-50, kMostHyper = 1e50, kLeastScale = 1e-8;

// log of the prior's density at exp(log_x), as a density of log x.
inline double log_hyperprior(double log_x) {
    return kHyperShape * log_x - kHyperRate * std::exp(log_x);
}

// One update of a variable with an unnormalised log density, between `low` and `high`: slice
// sampling with stepping out and shrinkage (R. M. Neal, "Slice sampling", Annals of Statistics
// 31, 2003, figures 3 and 5), steps of width 1.  The interval may be truncated at the bounds,
// outside of which the density is zero.
template <class LogDensity>
double draw_by_slice(bitgen_t *g, double x, double low, double high,
                     const LogDensity &log_density) {
    const double level = log_density(x) - random_standard_exponential(g);
    double left = x - random_standard_uniform(g), right = left + 1.0;
    while (left > low && log_density(left) > level) left -= 1.0;
    while (right < high && log_density(right) > level) right += 1.0;
    left = std::max(left, low);
    right = std::min(right, high);
    for (;;) {
        const double proposal = left + (right - left) * random_standard_uniform(g);
        if (log_density(proposal) >= level) return proposal;
        // Rounding may leave nothing but the point itself; false for NaN too.
        if (!(left < proposal && proposal < right)) return x;
        (proposal < x ? left : right) = proposal;
    }
}

// One update of x ~ Gamma(shape, rate), shape >= 1/2, between `low` and `high`: a draw, or, if
// it is out of bounds, which is rare, slice sampling.
inline double draw_bounded_gamma(bitgen_t *g, double x, double shape, double rate, double low,
                                 double high) {
    const double drawn = random_standard_gamma(g, shape) / rate;
    if (drawn >= low && drawn <= high) return drawn;
    return std::exp(draw_by_slice(g, std::log(x), std::log(low), std::log(high), [&](double u) {
        return shape * u - rate * std::exp(u);
    }));
}

// One update of a positive hyperparameter with a log likelihood; `unit` is its typical value.
template <class LogLikelihood>
void draw_positive(bitgen_t *g, double *a, double unit, const LogLikelihood &log_likelihood) {
    const double reach = std::log(kMostHyper);
    *a = unit * std::exp(draw_by_slice(
        g, std::log(*a / unit), -reach, reach, [&](double log_a) {
            return log_hyperprior(log_a) + log_likelihood(unit * std::exp(log_a));
        }));
}

// One update of two hyperparameters, either of which may be fixed: if both are free, of their
// scale at a fixed ratio, and of their ratio at a fixed product.
template <class LogLikelihood>
void draw_pair(bitgen_t *g, double *a, double *b, bool a_is_free, bool b_is_free,
               double unit_a, double unit_b, const LogLikelihood &log_likelihood) {
    if (a_is_free && b_is_free) {
        const double reach = std::log(kMostHyper);
        for (const double sign : {1.0, -1.0}) {
            const double log_a = std::log(*a / unit_a), log_b = std::log(*b / unit_b);
            const double low = std::max(-reach - log_a, -reach - sign * log_b);
            const double high = std::min(reach - log_a, reach - sign * log_b);
            const double u = draw_by_slice(g, 0.0, low, high, [&](double v) {
                return log_hyperprior(log_a + v) + log_hyperprior(log_b + sign * v)
                       + log_likelihood(*a * std::exp(v), *b * std::exp(sign * v));
            });
            *a *= std::exp(u);
            *b *= std::exp(sign * u);
        }
    } else if (a_is_free) {
        draw_positive(g, a, unit_a, [&](double x) { return log_likelihood(x, *b); });
    } else if (b_is_free) {
        draw_positive(g, b, unit_b, [&](double x) { return log_likelihood(*a, x); });
    }
}

}  // namespace skihmm
