// Polya-Gamma variables: the weights by which logistic likelihoods are conjugate to normal priors.
//
// All likelihoods here are, up to a factor that does not depend on psi,
//
//     exp(kappa psi) / (2 cosh(psi / 2))^b
//         = 2^-b int exp(kappa psi - omega psi^2 / 2) PG(omega | b, 0) d omega,
//
// and given psi the weight omega is PG(b, psi) (N. G. Polson, J. G. Scott and J. Windle, "Bayesian
// inference for logistic models using Polya-Gamma latent variables", JASA 108, 2013).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "_math.hpp"
#include "_random.hpp"

namespace skihmm {

// log(2 cosh(x / 2))
inline double log_cosh(double x) { return 0.5 * std::fabs(x) + std::log1p(std::exp(-std::fabs(x))); }

inline double normal_below(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

// PG(1, z) by L. Devroye's alternating series (Polson et al., section 4): exact.
class PolyaGammaOfOne {
  public:
    static double draw(bitgen_t *g, double z) {
        // Beyond, exp(z) leaves the range of floats and the variable hardly varies.
        const double half = 0.5 * std::min(std::fabs(z), 1e3), rate = rate_of(half);
        for (;;) {
            const double x = is_right(uniform(g), half)
                                 ? kCut + random_standard_exponential(g) / rate
                                 : draw_below_cut(g, half);
            const double u = uniform(g);
            // The second term is at most 3 exp(-4 / kCut) of the first term.
            if (u < 0.99) return 0.25 * x;
            double sum = coefficient(0, x);
            const double y = u * sum;
            for (int32_t n = 1;; ++n) {
                if (n % 2) {
                    sum -= coefficient(n, x);
                    if (!(y > sum)) return 0.25 * x;  // (Of NaN too.)
                } else {
                    sum += coefficient(n, x);
                    if (y > sum) break;
                }
            }
        }
    }

  private:
    static constexpr double kCut = 0.64;

    static double rate_of(double half) { return 0.125 * kPi * kPi + 0.5 * half * half; }
    // The share of the envelope that is above the cut.
    static double right_share(double half) {
        const double rate = rate_of(half), root = std::sqrt(1.0 / kCut);
        const double right = 0.5 * kPi / rate * std::exp(-rate * kCut);
        const double left = 2.0 * (std::exp(-half) * normal_below(root * (kCut * half - 1.0))
                                   + (half < 100.0 ? std::exp(half) * normal_below(
                                          -root * (kCut * half + 1.0)) : 0.0));
        return right / (right + left);
    }
    // Whether u is below that share, which falls with `half`: its values at both ends of a cell
    // mostly decide, in half of the time of a draw.
    static bool is_right(double u, double half) {
        constexpr int32_t kCells = 512, kPerUnit = 64;
        static const struct Shares {
            double at[kCells + 1];
            Shares() {
                for (int32_t i = 0; i <= kCells; ++i)
                    at[i] = right_share(static_cast<double>(i) / kPerUnit);
            }
        } shares;
        if (half < kCells / kPerUnit) {
            const int32_t i = static_cast<int32_t>(half * kPerUnit);
            if (u < shares.at[i + 1]) return true;
            if (u > shares.at[i]) return false;
        }
        return u < right_share(half);
    }
    static double coefficient(int32_t n, double x) {
        const double k = n + 0.5;
        if (x > kCut) return kPi * k * std::exp(-0.5 * k * k * kPi * kPi * x);
        const double root = std::sqrt(2.0 / (kPi * x));
        return root * root * root * kPi * k * std::exp(-2.0 * k * k / x);
    }
    // Inverse Gaussian of mean 1 / z and shape 1, given that it is below the cut.
    static double draw_below_cut(bitgen_t *g, double z) {
        double x;
        if (z * kCut < 1.0) {
            do {
                double a, b;
                do {
                    a = random_standard_exponential(g);
                    b = random_standard_exponential(g);
                } while (a * a > 2.0 * b / kCut);
                x = kCut / ((1.0 + kCut * a) * (1.0 + kCut * a));
            } while (uniform(g) > std::exp(-0.5 * z * z * x));
            return x;
        }
        const double mean = 1.0 / z;
        do {
            const double normal = random_standard_normal(g), y = mean * normal * normal;
            x = mean * (1.0 + 0.5 * (y - std::sqrt(y * (4.0 + y))));
            if (uniform(g) > mean / (mean + x)) x = mean * mean / x;
        } while (x > kCut);
        return x;
    }
};

inline double polya_gamma_mean(double b, double z) {
    z = std::fabs(z);
    return b * (z < 1e-2 ? 0.25 - z * z / 48.0 : 0.5 * std::tanh(0.5 * z) / z);
}
inline double polya_gamma_variance(double b, double z) {
    z = std::fabs(z);
    if (z < 0.1) return b * (1.0 / 24.0 - z * z / 120.0 + 17.0 * z * z * z * z / 13440.0);
    const double t = std::tanh(0.5 * z);
    return 0.25 * b / (z * z * z) * (2.0 * t - z * (1.0 - t * t));
}

// PG(b, z), b > 0.  For small whole numbers b exact; otherwise the first term of the infinite sum
// of Gamma(b) variables, and one variable for the rest, with its mean and variance: the third
// cumulant is off by 6e-11 of the sum's for z = 0, by 5e-7 for z = 20 and 3e-4 for z = 1000, where
// the variable hardly varies.
inline double draw_polya_gamma(bitgen_t *g, double b, double z) {
    constexpr double kMostExact = 8.0;
    if (b <= kMostExact && b == std::floor(b)) {
        double sum = 0.0;
        for (int32_t i = 0; i < static_cast<int32_t>(b); ++i) sum += PolyaGammaOfOne::draw(g, z);
        return sum;
    }
    z = std::min(std::fabs(z), 1e3);
    const int32_t n_terms = 30 + static_cast<int32_t>(0.5 * z);
    const double shift = z * z / (4.0 * kPi * kPi);
    double sum = 0.0, mean = polya_gamma_mean(b, z), variance = polya_gamma_variance(b, z);
    for (int32_t k = 0; k < n_terms; ++k) {
        const double scale = 0.5 / (kPi * kPi) / ((k + 0.5) * (k + 0.5) + shift);
        sum += scale * random_standard_gamma(g, b);
        mean -= b * scale;
        variance -= b * scale * scale;
    }
    // planted: rest of a weight
    if (mean > 0.0 && variance > 0.0)
        sum += variance / mean * random_standard_gamma(g, mean * mean / variance);
    return sum;
}

// log of the integral over psi ~ N(mean, deviation^2) of 1 / (1 + exp(-psi)), for deviations up to
// kMostBinaryDeviation, by the trapezoidal rule: to eleven digits.
constexpr double kMostBinaryDeviation = 0.85;
SKIHMM_CLONES static double log_binary_integral(double mean, double deviation) {
    constexpr int32_t kNodes = 24;
    constexpr double kStep = 0.65;
    static const struct Weights {
        double of[kNodes + 1];
        Weights() {
            for (int32_t i = 0; i <= kNodes; ++i) {
                const double x = kStep * (i - kNodes / 2);
                of[i] = kStep / std::sqrt(2.0 * kPi) * std::exp(-0.5 * x * x);
            }
        }
    } weights;
    mean = std::min(std::max(mean, -600.0), 600.0);
    double sum = 0.0, parts[kNodes + 1];
    for (int32_t i = 0; i <= kNodes; ++i)
        parts[i] = weights.of[i]
                   / (1.0 + exp_of(-mean - deviation * kStep * (i - kNodes / 2)));
    for (const double part : parts) sum += part;
    return std::log(sum);
}

// The density of psi ~ N(mean, variance) times such a likelihood, whose mode is found once.
class LogisticIntegral {
  public:
    LogisticIntegral(double kappa, double b, double mean, double variance)
        : kappa_(kappa), b_(b), mean_(mean), variance_(variance) {
        find_mode();
        top_ = log_product(mode_);
        const double t = std::tanh(0.5 * mode_);
        const double deviation = 1.0 / std::sqrt(0.25 * b * (1.0 - t * t) + 1.0 / variance);
        // By the trapezoidal rule, which for such functions converges faster than any power.  (For
        // large b they are nearly Gumbel densities: a step of one half then has an error of 1e-8,
        // this step less than 1e-9.)
        const double step = std::min(0.4, 0.5 * deviation);
        double sum = 1.0;
        for (const double sign : {1.0, -1.0}) {
            double distance = 0.0, stride = 1.0;
            for (int32_t i = 1;; ++i) {
                distance += stride * step;
                const double depth = log_product(mode_ + sign * distance) - top_;
                // (False for NaN too.)
                if (!(depth > -37.0)) break;
                // The tail of a variable that reaches so far is its prior's, and smooth.
                const bool is_far = i % kMostNodes == 0;
                sum += (is_far ? 1.5 * stride : stride) * std::exp(depth);
                if (is_far) stride *= 2.0;
            }
        }
        area_ = step * sum;
    }
    double log() const {
        return top_ + std::log(area_) - 0.5 * (kLog2Pi + std::log(variance_));
    }
    // Draw psi, by rejection for log-concave densities: with the normalised density f and its mode
    // m, f(x) <= f(m) min(1, exp(1 - |x - m| f(m))) (L. Devroye, "Non-Uniform Random Variate
    // Generation", 1986, section VII.2), so that every fourth trial is accepted.
    double draw(bitgen_t *g) const {
        for (;;) {
            double distance = uniform(g), depth = 0.0;
            if (uniform(g) < 0.5) {
                depth = -random_standard_exponential(g);
                distance = 1.0 - depth;
            }
            const double x = mode_ + (uniform(g) < 0.5 ? distance : -distance) * area_;
            if (std::log(1.0 - uniform(g)) + depth <= log_product(x) - top_) return x;
        }
    }

  private:
    static constexpr int32_t kMostNodes = 1024;

    double log_product(double x) const {
        const double d = x - mean_;
        return kappa_ * x - b_ * log_cosh(x) - 0.5 * d * d / variance_;
    }
    // Newton's method between bounds; where it oscillates, every second step is a bisection.
    void find_mode() {
        const auto slope = [&](double x) { return kappa_ - 0.5 * b_ * std::tanh(0.5 * x); };
        double low = mean_, high = mean_ + variance_ * slope(mean_);
        if (low > high) std::swap(low, high);
        mode_ = 0.5 * (low + high);
        for (int32_t i = 0; i < 200; ++i) {
            const double t = std::tanh(0.5 * mode_);
            const double down = slope(mode_) - (mode_ - mean_) / variance_;
            (down > 0.0 ? low : high) = mode_;
            double next = mode_ + down / (0.25 * b_ * (1.0 - t * t) + 1.0 / variance_);
            if (!(next > low && next < high) || (i > 8 && i % 2)) next = 0.5 * (low + high);
            const double change = std::fabs(next - mode_);
            mode_ = next;
            if (change <= 1e-9 * (1.0 + std::fabs(mode_))) return;
        }
    }

    double kappa_, b_, mean_, variance_, mode_ = 0.0, top_ = 0.0, area_ = 1.0;
};

}  // namespace skihmm
