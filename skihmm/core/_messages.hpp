// Message passing under a frozen seating: passes over the columns of the transitions, states with
// their stages (_transitions.hpp), along all steps.
//
// Transitions are sparse plus rank one, so a step costs the non-zeros plus K; of few states with
// many non-zeros the whole matrix is faster, as its loops are vectorised.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "_emission.hpp"
#include "_platform.hpp"
#include "_random.hpp"
#include "_slots.hpp"
#include "_transitions.hpp"

namespace skihmm {

// out[k] = sum_j w[j] rows[j n + k] for j, k < n, a multiple of four.
SKIHMM_CLONES static void weighted_rows(int32_t n, const double *__restrict w,
                                        const double *__restrict rows,
                                        double *__restrict out) {
    for (int32_t k = 0; k < n; ++k) out[k] = 0.0;
    for (int32_t j = 0; j < n; j += 4) {
        const double a = w[j], b = w[j + 1], c = w[j + 2], d = w[j + 3];
        const double *row_a = rows + static_cast<int64_t>(j) * n, *row_b = row_a + n,
                     *row_c = row_b + n, *row_d = row_c + n;
        for (int32_t k = 0; k < n; ++k)
            out[k] += (a * row_a[k] + b * row_b[k]) + (c * row_c[k] + d * row_d[k]);
    }
}
// out[k] = max_j w[j] rows[j n + k], and the first j that reaches it.
SKIHMM_CLONES static void largest_of_rows(int32_t n, const double *__restrict w,
                                          const double *__restrict rows,
                                          double *__restrict out,
                                          int64_t *__restrict argmax_out) {
    for (int32_t k = 0; k < n; ++k) out[k] = -1.0;
    for (int32_t j = 0; j < n; j += 4) {
        const double *row = rows + static_cast<int64_t>(j) * n;
        for (int32_t k = 0; k < n; ++k) {
            double largest = out[k];
            int64_t best = argmax_out[k];
            for (int32_t i = 0; i < 4; ++i) {
                const double value = w[j + i] * row[static_cast<int64_t>(i) * n + k];
                const bool is_larger = value > largest;
                largest = is_larger ? value : largest;
                best = is_larger ? j + i : best;
            }
            out[k] = largest;
            argmax_out[k] = best;
        }
    }
}
SKIHMM_CLONES static void divide_all(int32_t n, double total, double *x) {
    for (int32_t k = 0; k < n; ++k) x[k] /= total;
}

// p(column | column before), its passes as those of HCRPTransitions.  All vectors have `width`
// entries, zero beyond the columns.
class FrozenTransitions {
  public:
    const int32_t n_columns, width;

    // n_cells: non-zeros.  `transitions` must outlive this, and not change.
    FrozenTransitions(const HCRPTransitions &transitions, int64_t n_cells, int64_t n_steps)
        : n_columns(transitions.n_columns()), width((n_columns + 7) / 8 * 8),
          transitions_(transitions), argmax_(width) {
        // Matrices of the size of a cache; 10: an entry costs 0.07 ns, a non-zero 0.8.
        const int64_t n = n_columns;
        if (transitions.has_contexts() || n > kMostDense || n > n_steps
            || n * n > 10 * (n_cells + 2 * n))
            return;
        rows_.assign(static_cast<size_t>(width) * width, 0.0);
        std::vector<double> one(width, 0.0);
        for (int32_t c = 0; c < n_columns; ++c) {
            one[c] = 1.0;
            transitions.push(0, one.data(), &rows_[static_cast<size_t>(c) * width]);
            one[c] = 0.0;
        }
    }
    void push(int64_t t, const double *weights, double *out) const {
        if (rows_.empty()) transitions_.push(t, weights, out);
        else weighted_rows(width, weights, rows_.data(), out);
    }
    void pull(int64_t t, const double *values, double *out) {
        if (rows_.empty()) return transitions_.pull(t, values, out);
        if (columns_.empty()) {
            columns_.resize(rows_.size());
            for (size_t j = 0; j < static_cast<size_t>(width); ++j)
                for (size_t k = 0; k < static_cast<size_t>(width); ++k)
                    columns_[k * width + j] = rows_[j * width + k];
        }
        weighted_rows(width, values, columns_.data(), out);
    }
    // Label is any type of integer.
    template <class Label>
    void push_max(int64_t t, const double *weights, double *out, Label *argmax_out) {
        if (rows_.empty()) {
            sparse_argmax_.resize(width);
            transitions_.push_max(t, weights, out, sparse_argmax_.data());
            std::copy_n(sparse_argmax_.data(), n_columns, argmax_out);
        } else {
            largest_of_rows(width, weights, rows_.data(), out, argmax_.data());
            for (int32_t c = 0; c < n_columns; ++c)
                argmax_out[c] = static_cast<Label>(argmax_[c]);
        }
    }

  private:
    static constexpr int32_t kMostDense = 512;

    const HCRPTransitions &transitions_;
    std::vector<double> rows_, columns_;    // the matrix, and its transpose; or none
    std::vector<int64_t> argmax_;
    std::vector<int32_t> sparse_argmax_;
};

// p(y[t] | k) of every slot.  Of one column of symbols every symbol is evaluated once, as far as
// there is room.
class FrozenEmission {
  public:
    explicit FrozenEmission(Emission &emission)
        : emission_(emission), symbols_(emission.symbols()), n_slots_(emission.n_slots),
          row_(n_slots_) {
        if (symbols_) place_of_.assign(symbols_->seating->base.n_symbols + 1, -1);
    }
    // Divided by exp(*log_scale); valid until the next call.
    const double *probs(int64_t t, double *log_scale) {
        int32_t *place = symbols_ ? &place_of_[symbols_->codes[t] + 1] : nullptr;
        if (place && *place >= 0) {
            *log_scale = log_scales_[*place];
            return &table_[static_cast<size_t>(*place) * n_slots_];
        }
        *log_scale = emission_.fill_probs(t, row_.data());
        if (place && table_.size() + n_slots_ <= kMostEntries) {
            *place = static_cast<int32_t>(log_scales_.size());
            table_.insert(table_.end(), row_.begin(), row_.end());
            log_scales_.push_back(*log_scale);
        }
        return row_.data();
    }

  private:
    static constexpr size_t kMostEntries = size_t{1} << 22;

    Emission &emission_;
    const SeatingEmission *symbols_;
    const size_t n_slots_;
    std::vector<double> row_, table_, log_scales_;
    std::vector<int32_t> place_of_;     // by symbol, a missing one first: row of the table, or -1
};

// All passes.  Records of messages are packed: per stage the states and, last, a new one.
class FrozenMessages {
  public:
    const int64_t n_steps;
    const int32_t n_states, n_stages;

    // first: whether step t begins a sequence; before: column before step 0.
    FrozenMessages(const HCRPTransitions &transitions, Emission &emission, int64_t n_cells,
                   std::vector<uint8_t> first, int32_t before)
        : n_steps(emission.n_steps), n_states(transitions.n_slots() - kFirst),
          n_stages(transitions.n_columns() / transitions.n_slots()),
          n_slots_(transitions.n_slots()), transitions_(transitions, n_cells, n_steps),
          emission_(emission), first_(std::move(first)), before_(before),
          f_(transitions_.width, 0.0), g_(transitions_.width, 0.0) {
        for (int32_t stage = 0; stage < n_stages; ++stage) {
            for (int32_t k = kFirst; k < n_slots_; ++k)
                columns_.push_back(stage * n_slots_ + k);
            columns_.push_back(stage * n_slots_ + kNew);
        }
    }
    int32_t n_packed() const { return n_stages * (n_states + 1); }

    // log_predictive[t] = log p(y[t] | y[:t]); probs, unless null: p(state at t | y[:t + 1]).
    void filter(double *log_predictive, double *probs) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t) {
            log_predictive[t] = advance(t);
            if (probs) pack_states(probs + t * (n_states + 1));
        }
    }
    // out: packed p(state and stage at t | y[:t + 1]).
    void filter_columns(double *out) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t, out += n_packed()) {
            advance(t);
            for (int32_t i = 0; i < n_packed(); ++i) out[i] = f_[columns_[i]];
        }
    }
    // probs: p(state at step n_steps + t | y).
    void forecast(int64_t n_ahead, double *probs) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t) advance(t);
        for (int64_t t = 0; t < n_ahead; ++t) {
            transitions_.push(n_steps + t, f_.data(), g_.data());
            f_.swap(g_);
            pack_states(probs + t * (n_states + 1));
        }
    }
    // filtered: of filter_columns, overwritten; probs: p(state at t | y), may be `filtered` if
    // there is one stage.
    void smooth(double *filtered, double *probs) {
        const int32_t n = n_packed(), m = n_states + 1;
        for (int64_t t = n_steps; t-- > 0;) {
            retreat(t);
            double *message = filtered + t * n, *out = probs + t * m, total = 0.0;
            for (int32_t i = 0; i < n; ++i) message[i] *= g_[columns_[i]];
            for (int32_t k = 0; k < m; ++k) {
                out[k] = message[k];
                for (int32_t i = k + m; i < n; i += m) out[k] += message[i];
                total += out[k];
            }
            check_total(t, total);
            divide_all(m, total, out);
        }
    }
    // Draw a path given all observations; filtered: of filter_columns.
    void sample_path(const double *filtered, bitgen_t *g, int32_t *path) {
        const int32_t n = n_packed();
        int32_t chosen = 0;
        std::vector<double> weights(n);
        for (int64_t t = n_steps; t-- > 0;) {
            if (is_end(t)) {
                g_.assign(g_.size(), 1.0);
            } else {
                // g = p(state and stage at t + 1 | those at t), by the latter
                f_.assign(f_.size(), 0.0);
                f_[chosen] = 1.0;
                transitions_.pull(t + 1, f_.data(), g_.data());
            }
            double total = 0.0;
            for (int32_t i = 0; i < n; ++i) {
                weights[i] = filtered[t * n + i] * g_[columns_[i]];
                total += weights[i];
            }
            check_total(t, total);
            double u = uniform(g) * total;
            for (int32_t i = 0; i < n; ++i) {
                if (!(weights[i] > 0.0)) continue;
                // (The last possible one if rounding leaves something of u.)
                chosen = columns_[i];
                path[t] = i % (n_states + 1);
                u -= weights[i];
                if (u < 0.0) break;
            }
        }
    }
    // The most probable path; returns log p(path, y).
    double viterbi(int32_t *path) {
        // The smallest type in which a column fits: there is one per column and step.
        if (transitions_.n_columns <= 1 << 8) return viterbi_by<uint8_t>(path);
        if (transitions_.n_columns <= 1 << 16) return viterbi_by<uint16_t>(path);
        return viterbi_by<int32_t>(path);
    }
    // out[t] = log sum_k probs[t, k] p(y[t] | k).
    void log_mixtures(const double *probs, double *out) {
        for (int64_t t = 0; t < n_steps; ++t, probs += n_states + 1) {
            double log_scale;
            const double *values = emission_.probs(t, &log_scale);
            double total = probs[n_states] * values[kNew];
            for (int32_t k = 0; k < n_states; ++k) total += probs[k] * values[kFirst + k];
            check_total(t, total);
            out[t] = std::log(total) + log_scale;
        }
    }

  private:
    static void check_total(int64_t t, double total) {
        // (False for NaN too.)
        if (SKIHMM_LIKELY(0.0 < total && total < INFINITY)) return;
        std::ostringstream message;
        message << "Step " << t << " has the probability " << total
                << " under this draw: its concentrations or counts are out of all proportion.";
        throw std::invalid_argument(message.str());
    }
    bool is_end(int64_t t) const { return t == n_steps - 1 || first_[t + 1]; }
    void start_at(int32_t column) {
        f_.assign(f_.size(), 0.0);
        f_[column] = 1.0;
    }
    void begin() { start_at(before_); }
    // x *= p(y[t] | column) / exp(*log_scale); returns the sum.
    double multiply(int64_t t, double *x, double *log_scale) {
        const double *probs = emission_.probs(t, log_scale);
        double sums[4] = {};
        for (int32_t stage = 0; stage < n_stages; ++stage, x += n_slots_) {
            int32_t k = 0;
            for (; k + 3 < n_slots_; k += 4)
                for (int32_t i = 0; i < 4; ++i) sums[i] += x[k + i] *= probs[k + i];
            for (; k < n_slots_; ++k) sums[0] += x[k] *= probs[k];
        }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    // f = p(column at t - 1 | y[:t]) becomes p(column at t | y[:t + 1]); returns
    // log p(y[t] | y[:t]).
    double advance(int64_t t) {
        if (first_[t]) start_at(kStart);
        transitions_.push(t, f_.data(), g_.data());
        f_.swap(g_);
        double log_scale;
        const double total = multiply(t, f_.data(), &log_scale);
        check_total(t, total);
        divide_all(transitions_.width, total, f_.data());
        return std::log(total) + log_scale;
    }
    // g = p(y[t + 2 ...] | column at t + 1) becomes p(y[t + 1 ...] | column at t), both up to a
    // factor; one after the last step of a sequence.
    void retreat(int64_t t) {
        if (is_end(t)) {
            g_.assign(g_.size(), 1.0);
            return;
        }
        double log_scale;
        g_[kStart] = 0.0;
        const double total = multiply(t + 1, g_.data(), &log_scale);
        check_total(t + 1, total);
        divide_all(transitions_.width, total, g_.data());
        transitions_.pull(t + 1, g_.data(), f_.data());
        f_.swap(g_);
    }
    void pack_states(double *out) const {
        for (int32_t i = 0; i <= n_states; ++i) out[i] = f_[columns_[i]];
        for (int32_t i = n_states + 1; i < n_packed(); ++i)
            out[i % (n_states + 1)] += f_[columns_[i]];
    }
    int32_t best_column() const {
        int32_t best = kNew;
        for (int32_t c = 0; c < transitions_.n_columns; ++c)
            if (f_[c] > f_[best]) best = c;
        return best;
    }
    template <class Label> double viterbi_by(int32_t *path) {
        const int32_t n = transitions_.n_columns;
        std::vector<Label> before(static_cast<size_t>(n_steps) * n);
        double log_prob = 0.0;
        begin();
        for (int64_t t = 0; t < n_steps; ++t) {
            Label *argmax = &before[t * n];
            // The best end of the sequence before; its score is in log_prob.
            const int32_t end = first_[t] ? best_column() : -1;
            if (end >= 0) start_at(kStart);
            transitions_.push_max(t, f_.data(), g_.data(), argmax);
            if (end >= 0) std::fill_n(argmax, n, static_cast<Label>(end));
            f_.swap(g_);
            double log_scale;
            multiply(t, f_.data(), &log_scale);
            const double largest = *std::max_element(f_.begin(), f_.begin() + n);
            check_total(t, largest);
            divide_all(n, largest, f_.data());
            log_prob += std::log(largest) + log_scale;
        }
        int32_t best = best_column();
        for (int64_t t = n_steps; t-- > 0;) {
            const int32_t k = best % n_slots_;
            path[t] = k == kNew ? n_states : k - kFirst;
            best = before[t * n + best];
        }
        return log_prob;
    }

    const int32_t n_slots_;
    FrozenTransitions transitions_;
    FrozenEmission emission_;
    const std::vector<uint8_t> first_;
    const int32_t before_;
    std::vector<int32_t> columns_;      // of every place in a packed message
    std::vector<double> f_, g_;         // messages
};

}  // namespace skihmm
