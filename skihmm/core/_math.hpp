// Elementary functions without branches, so that loops over states become vector code.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "_platform.hpp"

namespace skihmm {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLogPi = 1.1447298858494001741;
constexpr double kLog2Pi = 1.8378770664093454836;

// The exponent of a double, from the bits of its biased exponent.
static SKIHMM_INLINE double exponent_of(uint64_t biased) {
    // 2^52 + n as a double has n in its low bits: a conversion that every machine has.
    const uint64_t bits = biased | 0x4330000000000000u;
    double e;
    std::memcpy(&e, &bits, 8);
    return e - (4503599627370496.0 + 1023.0);
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), x positive and normal.
static SKIHMM_INLINE void split(double x, double *m, double *e) {
    uint64_t bits;
    std::memcpy(&bits, &x, 8);
    bits += 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu;
    *e = exponent_of(bits >> 52);
    const uint64_t m_bits = (bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu;
    std::memcpy(m, &m_bits, 8);
}

// log((1 + f) 2^e) for 1 + f in [sqrt(1/2), sqrt(2)).
static SKIHMM_INLINE double log_of_parts(double f, double e) {
    // log(1 + f) = 2 atanh(s), |s| <= 0.1716
    const double s = f / (2.0 + f), z = s * s;
    double r = 2.0 / 19.0;
    r = r * z + 2.0 / 17.0;
    r = r * z + 2.0 / 15.0;
    r = r * z + 2.0 / 13.0;
    r = r * z + 2.0 / 11.0;
    r = r * z + 2.0 / 9.0;
    r = r * z + 2.0 / 7.0;
    r = r * z + 2.0 / 5.0;
    r = r * z + 2.0 / 3.0;
    return e * 6.93147180369123816490e-01
           + (2.0 * s + (s * (r * z) + e * 1.90821492927058770002e-10));
}

// Natural logarithm of a positive, normal number; within 2 ulp.
static SKIHMM_INLINE double log_of(double x) {
    double m, e;
    split(x, &m, &e);
    return log_of_parts(m - 1.0, e);
}

// log(1 + x) for x >= 0, within 3 ulp; constant from 1e300 on.
static SKIHMM_INLINE double log1p_of(double x) {
    double m, e;
    split(1.0 + std::min(x, 1e300), &m, &e);
    // For small x the sum 1 + x loses digits: x itself is the fraction then, and e is zero.
    return log_of_parts(x < 0.4 ? x : m - 1.0, e);
}

// The logarithm of a product of factors 1 + x, x >= 0, constant from x = 1e300 on.  One logarithm
// for all factors takes a third of the time; its absolute error is a few ulp of one per factor.
struct LogProduct {
    double m = 1.0, e = 0.0;

    void multiply(double x) { multiply(x, &m, &e); }
    double log() const { return log_of_parts(m - 1.0, e); }
    // LogProduct for loops over many products, whose parts are arrays.
    static SKIHMM_INLINE void multiply(double x, double *m, double *e) {
        double more;
        split(*m * (1.0 + std::min(x, 1e300)), m, &more);
        *e += more;
    }
};

// A power of two near a, but one for a < 2^41, as its inverse and its natural logarithm:
// products of some factors (a + i) / power do not overflow.
static SKIHMM_INLINE void split_large(double a, double *inverse, double *log_power) {
    const double large = std::max(a * 0x1p-40, 1.0);
    uint64_t bits;
    std::memcpy(&bits, &large, 8);
    bits >>= 52;
    const uint64_t inverse_bits = (2046u - bits) << 52;
    std::memcpy(inverse, &inverse_bits, 8);
    *log_power = exponent_of(bits) * 6.93147180559945309417e-01;
}

// Exponential of a number between -700 and 700; within 2 ulp.
static SKIHMM_INLINE double exp_of(double x) {
    // Adding 1.5 * 2^52 rounds to an integer, which is then in the low bits.
    const double shift = 6755399441055744.0;
    const double rounded = x * 1.4426950408889634074 + shift;
    uint64_t n_bits;
    std::memcpy(&n_bits, &rounded, 8);
    const double n = rounded - shift;
    const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const uint64_t scale_bits = (n_bits + 1023u) << 52;
    double scale;
    std::memcpy(&scale, &scale_bits, 8);
    return p * scale;
}

// Remainder of Stirling's formula: log Gamma(x) - ((x - 1/2) log x - x + log(2 pi)/2), x >= 8.
static SKIHMM_INLINE double stirling_rest(double x) {
    const double u = 1.0 / x, v = u * u;
    double p = 1.0 / 156.0;
    p = p * v - 691.0 / 360360.0;
    p = p * v + 1.0 / 1188.0;
    p = p * v - 1.0 / 1680.0;
    p = p * v + 1.0 / 1260.0;
    p = p * v - 1.0 / 360.0;
    p = p * v + 1.0 / 12.0;
    return p * u;
}

// log Gamma(a + y) - log Gamma(a) for a > 0, y >= 0, without the cancellation of the two.
static inline double log_rising(double a, double y) {
    if (y == 0.0) return 0.0;
    // Gamma(a) = Gamma(a + 8) / (a (a + 1) ... (a + 7)), and likewise for a + y.
    double shift = 0.0;
    if (a < 8.0) {
        double low = 1.0, high = 1.0;
        for (int i = 0; i < 8; ++i) {
            low *= a + i;
            high *= a + y + i;
        }
        shift = std::log(low) - (y < 1e30 ? std::log(high) : 8.0 * std::log(y));
        a += 8.0;
    }
    const double b = a + y;
    return shift + y * std::log(b) + (a - 0.5) * std::log1p(y / a) - y
           + (stirling_rest(b) - stirling_rest(a));
}

// out[k] = exp(log_p[k] - largest), but never less than exp(least).
SKIHMM_CLONES static void fill_exp(int32_t n, const double *log_p, double largest,
                                   double least, double *out) {
    for (int32_t k = 0; k < n; ++k) {
        const double x = log_p[k] - largest;
        out[k] = exp_of(x > least ? x : least);
    }
}

// A possible state needs a positive weight beside any other state, or a chain in it could not
// leave: relative to the most probable state the least weight is exp of this.
constexpr double kLeastLog = -460.0;

}  // namespace skihmm
