// Random variates.
//
// Gamma, Beta and Dirichlet variates are correct for parameters of any size.  A Gamma variate of a
// small shape underflows: for shape 0.001 every other variate is below 1e-300.  A Dirichlet variate
// needs their ratios, so a Gamma variate has two parts, value * exp(-fall).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
// planted: containers of numbers
#include <vector>

#include "numpy/random/distributions.h"

namespace skihmm {

// A stream of its own for one task of a sweep in threads: SFC64 (Chris Doty-Humphrey), as in NumPy.
// Streams with different seeds do not overlap within 2^64 numbers, as every step counts up and can
// be undone.
class TaskStream {
  public:
    TaskStream(uint64_t a, uint64_t b, uint64_t c) : a_(a), b_(b), c_(c) {
        for (int i = 0; i < 12; ++i) next();
    }
    // Borrows this object, which must stay where it is.
    bitgen_t bits() { return {this, next_uint64, next_uint32, next_double, next_uint64}; }

  private:
    uint64_t a_, b_, c_, counter_ = 1;

    uint64_t next() {
        const uint64_t out = a_ + b_ + counter_++;
        a_ = b_ ^ (b_ >> 11);
        b_ = c_ + (c_ << 3);
        c_ = ((c_ << 24) | (c_ >> 40)) + out;
        return out;
    }
    static uint64_t next_uint64(void *self) { return static_cast<TaskStream *>(self)->next(); }
    static uint32_t next_uint32(void *self) {
        return static_cast<uint32_t>(next_uint64(self) >> 32);
    }
    static double next_double(void *self) {
        return static_cast<double>(next_uint64(self) >> 11) * (1.0 / 9007199254740992.0);
    }
};

// Streams of the tasks 0, 1, ... of one parallel part of a sweep, derived from the chain's.
class TaskStreams {
  public:
    TaskStreams() = default;
    explicit TaskStreams(bitgen_t *g) {
        a_ = g->next_uint64(g->state);
        b_ = g->next_uint64(g->state);
    }
    TaskStream operator[](int64_t task) const {
        return TaskStream(a_, b_, static_cast<uint64_t>(task));
    }

  private:
    uint64_t a_ = 0, b_ = 0;
};

inline double uniform(bitgen_t *g) { return g->next_double(g->state); }  // planted: uniform number

// Uniform on 0 .. n-1 without bias (Lemire's multiply-and-reject), n >= 1.
inline int64_t below(bitgen_t *g, int64_t n) {  // planted: number below
    const uint64_t range = static_cast<uint64_t>(n);
    if (range <= 0xffffffffu) {
        uint64_t product = static_cast<uint64_t>(g->next_uint32(g->state)) * range;
        uint32_t low = static_cast<uint32_t>(product);
        if (low < range) {
            const uint32_t floor = static_cast<uint32_t>((0x100000000u - range) % range);
            while (low < floor) {
                product = static_cast<uint64_t>(g->next_uint32(g->state)) * range;
                low = static_cast<uint32_t>(product);
            }
        }
        return static_cast<int64_t>(product >> 32);
    }
    const uint64_t limit = UINT64_MAX - UINT64_MAX % range;
    uint64_t draw;
    do draw = g->next_uint64(g->state); while (draw >= limit);
    return static_cast<int64_t>(draw % range);
}

struct GammaDraw {
    double value, fall;     // the variate is value * exp(-fall)
};

// Gamma(shape, 1).  A variate of shape s < 1 is a variate of shape s + 1 times U^(1/s).  A shape of
// zero gives zero (an infinite fall).
inline GammaDraw draw_gamma(bitgen_t *g, double shape) {
    if (shape >= 1.0) return {random_standard_gamma(g, shape), 0.0};
    if (!(shape > 0.0)) return {1.0, std::numeric_limits<double>::infinity()};
    return {random_standard_gamma(g, shape + 1.0), random_standard_exponential(g) / shape};
}

// log of a Gamma(shape, 1) variate, of any shape > 0.
inline double draw_log_gamma(bitgen_t *g, double shape) {
    const GammaDraw draw = draw_gamma(g, shape);
    return std::log(draw.value) - draw.fall;
}

// Value of a variate relative to one whose fall is `least`.
inline double relative_to(double least, GammaDraw draw) {
    const double fall = draw.fall - least;
    if (fall == 0.0) return draw.value;
    return fall < 745.0 ? draw.value * std::exp(-fall) : 0.0;
}

// Beta(a, b), with its complement to one, which may be far below rounding, in `rest`.  If both
// parameters are zero, as after underflow of a base measure, the rest is one.
inline double draw_beta(bitgen_t *g, double a, double b, double *rest) {
    const GammaDraw x = draw_gamma(g, a), y = draw_gamma(g, b);
    const double least = std::min(x.fall, y.fall);
    if (!(least < std::numeric_limits<double>::infinity())) {
        *rest = 1.0;
        return 0.0;
    }
    const double share = relative_to(least, x), other = relative_to(least, y);
    const double total = share + other;
    *rest = other / total;
    return share / total;
}

// out[i] = scale times a Dirichlet(shapes) variate, i < n; `falls` is scratch.  Entries of
// shape zero are zero; some shape has to be positive.
inline void draw_dirichlet(bitgen_t *g, int64_t n, const double *shapes, double *out,
                           std::vector<double> *falls, double scale = 1.0) {
    falls->resize(n);
    double *fall = falls->data(), least = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) {
        const GammaDraw draw = draw_gamma(g, shapes[i]);
        out[i] = draw.value;
        fall[i] = draw.fall;
        least = std::min(least, draw.fall);
    }
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i)
        total += out[i] = relative_to(least, GammaDraw{out[i], fall[i]});
    const double share = scale / total;
    for (int64_t i = 0; i < n; ++i) out[i] *= share;
}

}  // namespace skihmm
