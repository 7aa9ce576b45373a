// Passes of messages that are logarithms (_messages.hpp), of states with several stages.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_math.hpp"
#include "_platform.hpp"
#include "_random.hpp"
#include "_slots.hpp"
#include "_transitions.hpp"

namespace skihmm {

// Log 0, which is finite so that differences are.
constexpr double kLogZero = -1e300;

static inline double log_or_zero(double x) { return x > 0.0 ? std::log(x) : kLogZero; }
static SKIHMM_INLINE double exp_or_zero(double x) {
    return x > -700.0 ? exp_of(std::max(x, -700.0)) : 0.0;
}
// out[i] = exp(x[i] - shift); x may be out.
SKIHMM_CLONES static void exp_all(int32_t n, double shift, const double *x, double *out) {
    for (int32_t i = 0; i < n; ++i) out[i] = exp_or_zero(x[i] - shift);
}
SKIHMM_CLONES static double largest_of(int32_t n, const double *x) {
    double lanes[8], largest = kLogZero;
    std::fill_n(lanes, 8, kLogZero);
    int32_t i = 0;
    for (; i + 7 < n; i += 8)
        for (int32_t l = 0; l < 8; ++l) lanes[l] = std::max(lanes[l], x[i + l]);
    for (; i < n; ++i) lanes[0] = std::max(lanes[0], x[i]);
    for (const double lane : lanes) largest = std::max(largest, lane);
    return largest;
}
SKIHMM_CLONES static void subtract_all(int32_t n, double shift, double *x) {
    for (int32_t i = 0; i < n; ++i) x[i] = std::max(x[i] - shift, kLogZero);
}
// out[i] = log(exp(x[i] + a[i]) + exp(y[i] + b[i]))
SKIHMM_CLONES static void add_logs(int32_t n, const double *__restrict x,
                                   const double *__restrict a, const double *__restrict y,
                                   const double *__restrict b, double *__restrict out) {
    for (int32_t i = 0; i < n; ++i) {
        const double first = x[i] + a[i], second = y[i] + b[i];
        const double larger = std::max(first, second), smaller = std::min(first, second);
        out[i] = larger + log1p_of(exp_of(std::max(smaller - larger, -700.0)));
    }
}

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

// A stage sums a stay and an advance.
// Only draws have more parts, summed relative to the largest part: every label can follow every
// other label by a draw, so that an underflown part is negligible.
class LogTransitions {
  public:
    explicit LogTransitions(const HCRPTransitions &transitions)
        : transitions_(transitions), n_(transitions.n_slots()), n_columns_(transitions.n_columns()),
          last_(n_columns_ - n_) {
        if (last_ == 0) return;
        zeros_.assign(n_, 0.0);
        weights_.resize(n_);
        drawn_.resize(n_);
        argmax_.resize(n_);
        stays_.assign(n_columns_, 0.0);
        leaves_.assign(n_columns_, 0.0);
    }
    void push(int64_t t, const double *f, double *out) {
        if (is_start(f)) return start(t, out);
        read_coins(t);
        const double largest = weigh(f + last_, leaves_.data() + last_);
        transitions_.push_draws(t, weights_.data(), drawn_.data(), 0.0, n_);
        take_logs(largest);
        add_logs(n_, f, stays_.data(), drawn_.data(), zeros_.data(), out);
        add_logs(last_, f + n_, stays_.data() + n_, f, leaves_.data(), out + n_);
    }
    void pull(int64_t t, const double *g, double *out) {
        read_coins(t);
        const double largest = weigh(g, zeros_.data());
        transitions_.pull_draws(t, weights_.data(), drawn_.data());
        take_logs(largest);
        add_logs(last_, g, stays_.data(), g + n_, leaves_.data(), out);
        add_logs(n_, g + last_, stays_.data(), drawn_.data(), leaves_.data(), out + last_);
    }
    template <class Label>
    void push_max(int64_t t, const double *f, double *out, Label *argmax_out) {
        if (is_start(f)) {
            std::fill_n(argmax_out, n_columns_, static_cast<Label>(kStart));
            return start(t, out);
        }
        read_coins(t);
        const double largest = weigh(f + last_, leaves_.data() + last_);
        transitions_.push_max_of_draws(t, weights_.data(), drawn_.data(), argmax_.data());
        take_logs(largest);
        for (int32_t c = 0; c < n_columns_; ++c) {
            const double stayed = f[c] + stays_[c];
            const double entered = c < n_ ? drawn_[c] : f[c - n_] + leaves_[c - n_];
            const int32_t from = c < n_ ? last_ + argmax_[c] : c - n_;
            out[c] = std::max(stayed, entered);
            argmax_out[c] = static_cast<Label>(entered > stayed ? from : c);
        }
    }

    // Draw the column of step t after column c.
    int32_t draw_next(int64_t t, int32_t c, bitgen_t *g) {
        if (uniform(g) < transitions_.stay(t, c % n_)) return c;
        if (c < last_) return c + n_;
        transitions_.fill_draws(t, c % n_, drawn_.data());
        return draw_weighted(drawn_, sum_of(drawn_), g);
    }

  private:
    // Read the coins of the columns before step t, the same for all steps unless there are inputs.
    void read_coins(int64_t t) {
        if (!transitions_.has_inputs()) t = 0;
        if (t == read_) return;
        read_ = t;
        for (int32_t k = 0; k < n_; ++k) {
            if (k == kStart) continue;
            double stay, leave;
            transitions_.look(t, k, &stay, &leave);
            // An advance has no penalty.
            for (int32_t c = k; c < n_columns_; c += n_) {
                stays_[c] = log_or_zero(stay);
                leaves_[c] = log_or_zero(c < last_ ? leave : leave * transitions_.escape_of(k));
            }
        }
    }
    // A sequence begins, or else no message is there.
    static bool is_start(const double *f) { return f[kStart] == 0.0; }
    void start(int64_t t, double *out) {
        transitions_.fill_draws(t, kStart, drawn_.data());
        take_logs(0.0);
        std::fill_n(out, n_columns_, kLogZero);
        std::copy_n(drawn_.data(), n_, out);
    }
    // weights_ = exp(x + a) over the largest weight; returns its logarithm.
    double weigh(const double *x, const double *a) {
        double largest = kLogZero;
        for (int32_t k = 0; k < n_; ++k)
            if (k != kStart) largest = std::max(largest, weights_[k] = x[k] + a[k]);
        exp_all(n_, largest, weights_.data(), weights_.data());
        weights_[kStart] = 0.0;
        return largest;
    }
    void take_logs(double largest) {
        for (double &x : drawn_) x = largest + log_or_zero(x);
    }

    const HCRPTransitions &transitions_;
    const int32_t n_, n_columns_, last_;        // slots, columns, first column of the last stage
    int64_t read_ = -2;
    std::vector<double> stays_, leaves_;        // by column before, of the step that has been read
    std::vector<double> zeros_, weights_, drawn_;   // by slot
    std::vector<int32_t> argmax_;
};

}  // namespace skihmm
