// Conjugate families: a likelihood with its prior, the parameters integrated out, as a few
// numbers per state.
//
// The numbers of state k stand at s[i * stride], i < width: side by side for all states in a
// chain, whose hot loop evaluates one observation under every state, and one after the other
// in a particle.  They hold the sufficient statistics and whatever of the predictive
// distribution does not depend on the next observation.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numpy/random/bitgen.h>
#include <vector>

// One version per kind of vector unit, chosen when the library is loaded; all of them give
// the same bits, since nothing is contracted and nothing is summed across lanes.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define SKIHMM_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define SKIHMM_CLONES
#endif
#if defined(__GNUC__) || defined(__clang__)
#define SKIHMM_INLINE inline __attribute__((always_inline))
#else
#define SKIHMM_INLINE inline
#endif

namespace skihmm {

// ---- functions without branches, so that loops over states become vectors

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), x positive and normal.
static SKIHMM_INLINE void split(double x, double *m, double *e) {
    uint64_t bits;
    std::memcpy(&bits, &x, 8);
    bits += 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu;
    // (2^52 + n as a double has n in its low bits: a conversion that every machine has.)
    const uint64_t e_bits = (bits >> 52) | 0x4330000000000000u;
    std::memcpy(e, &e_bits, 8);
    *e -= 4503599627370496.0 + 1023.0;
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

// log(1 + x) for x >= 0, within 3 ulp; from 1e300 on that of 1e300.
static SKIHMM_INLINE double log1p_of(double x) {
    double m, e;
    split(1.0 + std::min(x, 1e300), &m, &e);
    // Of a small x the sum 1 + x has lost digits: x itself is the fraction then, e is zero.
    return log_of_parts(x < 0.4 ? x : m - 1.0, e);
}

// A power of two near a, but one for a < 2^41, as its inverse and its natural logarithm:
// products of some factors (a + i) / power do not overflow.
static SKIHMM_INLINE void split_large(double a, double *inverse, double *log_power) {
    const double large = std::max(a * 0x1p-40, 1.0);
    uint64_t bits;
    std::memcpy(&bits, &large, 8);
    bits >>= 52;
    const uint64_t inverse_bits = (2046u - bits) << 52, e_bits = bits | 0x4330000000000000u;
    std::memcpy(inverse, &inverse_bits, 8);
    double e;
    std::memcpy(&e, &e_bits, 8);
    *log_power = (e - (4503599627370496.0 + 1023.0)) * 6.93147180559945309417e-01;
}

// Exponential of a number between -700 and 700; within 2 ulp.
static SKIHMM_INLINE double exp_of(double x) {
    // Adding 1.5 * 2^52 rounds to a whole number, which is then in the low bits.
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

// What Stirling's formula leaves: log Gamma(x) - ((x - 1/2) log x - x + log(2 pi)/2), x >= 8.
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

// ---- families

class Family {
  public:
    virtual ~Family() = default;

    int32_t n_columns = 0;          // numbers per observation; NaN is missing
    int32_t width = 0;              // numbers per state
    int32_t parameter_width = 0;    // numbers of a state's drawn parameters

    // A state that nothing was observed in.
    virtual void reset(double *s, int64_t stride) const = 0;
    // Nothing of y is observed.
    virtual bool is_missing(const double *y) const = 0;
    // log p(y | s): predictive density or probability; 0 if y is missing.
    virtual double log_predictive(const double *s, int64_t stride,
                                  const double *y) const = 0;
    // y joins.
    virtual void add(double *s, int64_t stride, const double *y) const = 0;
    // All of `values`, rows steps[0], steps[1], ..., join a state that nothing was observed in;
    // none of them is missing.
    virtual void add_rows(double *s, int64_t stride, const double *values,
                          const int64_t *steps, int64_t n) const {
        for (int64_t i = 0; i < n; ++i) add(s, stride, values + steps[i] * n_columns);
    }
    // y leaves.  False if rounding errors have become too large for the numbers to be used:
    // then they have to be worked out again from the observations that stay.
    virtual bool remove(double *s, int64_t stride, const double *y) const = 0;
    // log p(all that was added).
    virtual double log_marginal(const double *s, int64_t stride) const = 0;
    // out[k] += log p(y | state k) for k < n, the numbers of state k at table[i * stride + k].
    virtual void fill(const double *table, int64_t stride, int32_t n, const double *y,
                      double *out) const = 0;
    // out[k] += log p(y | state k) for k <= n, the numbers of state k < n one state after the
    // other, those of state n at `last`.
    virtual void fill_rows(const double *rows, int32_t n, const double *last,
                           const double *y, double *out) const {
        for (int32_t k = 0; k <= n; ++k)
            out[k] += log_predictive(k < n ? rows + static_cast<int64_t>(k) * width : last,
                                     1, y);
    }
    // The part of log p(y | s) that does not depend on s, left out by log_marginal.
    virtual double log_constant(const double *) const { return 0.0; }
    // Numbers of a state that can be what a sequence of additions gave, as far as it matters
    // for what may be computed with them.
    virtual bool is_sound(const double *s, int64_t stride) const = 0;

    // The same given parameters p, drawn from their posterior given s.
    virtual void draw(const double *s, int64_t stride, double *p, int64_t p_stride,
                      bitgen_t *g) const = 0;
    virtual double log_density(const double *p, int64_t stride, const double *y) const = 0;
    virtual void fill_densities(const double *table, int64_t stride, int32_t n,
                                const double *y, double *out) const = 0;
    // An observation given parameters.
    virtual void emit(const double *p, int64_t stride, double *y, bitgen_t *g) const = 0;

    // ---- hyperparameters: the prior that all states share

    int32_t n_hyperparameters = 0;
    bool draws_hyperparameters = false;     // some of them have no fixed value
    virtual void read_hyperparameters(double *) const {}
    // False, and nothing changes, if no prior has them.
    virtual bool set_hyperparameters(const double *) { return true; }
    // Draw those without a fixed value from their posterior given the statistics of n states,
    // at table[i * stride + states[k]].
    virtual void draw_hyperparameters(const double *, int64_t, const int32_t *, int32_t,
                                      bitgen_t *) {}
    // Adapt a state's numbers to changed hyperparameters; false if they have to be worked out
    // from the observations.
    virtual bool refresh(double *, int64_t) const { return false; }

    // Posterior means of a state's parameters, as users want to see them: n_expected numbers.
    int32_t n_expected = 0;
    virtual void expect(const double *, int64_t, double *) const {}

    // Mean of the predictive distribution, of every column; its centre where Student's t has
    // too few degrees of freedom for a mean.
    virtual void mean(const double *s, int64_t stride, double *out) const = 0;
    // An observation from the predictive distribution; `parameters` is scratch.
    void draw_predictive(const double *s, int64_t stride, std::vector<double> *parameters,
                         double *y, bitgen_t *g) const {
        parameters->resize(parameter_width);
        draw(s, stride, parameters->data(), 1, g);
        emit(parameters->data(), 1, y, g);
    }
};

}  // namespace skihmm
