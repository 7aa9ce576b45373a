// Message passing under a frozen seating, along all steps.
//
// Transitions are sparse plus rank one, so a step costs the non-zeros plus K; with few states and
// many non-zeros the whole matrix is faster, as its loops are vectorised.  Every state is entered
// from every other state, which keeps messages within the range of a double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "_column_passes.hpp"
#include "_dense_rows.hpp"
#include "_emission.hpp"
#include "_choice.hpp"
#include "_lasting_path.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// p(k | j), with the passes of ColumnPasses.  All vectors have `width` entries, zero beyond the
// slots.
class FrozenTransitions {
  public:
    const int32_t n_slots, width;

    // n_cells: non-zeros.  `transitions` must outlive this, and not change.
    FrozenTransitions(const HCRPTransitions &transitions, int64_t n_cells, int64_t n_steps)
        : n_slots(transitions.n_slots()), width((n_slots + 7) / 8 * 8),
          transitions_(transitions), passes_(transitions), argmax_(width) {
        // Matrices of the size of a cache; 10: an entry costs 0.07 ns, a non-zero 0.8.
        const int64_t n = n_slots;
        if (transitions.varies_by_step() || n > kMostDense
            || n > n_steps || n * n > 10 * (n_cells + 2 * n))
            return;
        rows_.assign(static_cast<size_t>(width) * width, 0.0);
        std::vector<double> one(width, 0.0);
        for (int32_t c = 0; c < n_slots; ++c) {
            one[c] = 1.0;
            passes_.push(0, one.data(), &rows_[static_cast<size_t>(c) * width]);
            one[c] = 0.0;
        }
    }
    double prob(int64_t t, int32_t j, int32_t k) const { return transitions_.prob(t, j, k); }
    bool varies_by_step() const { return transitions_.varies_by_step(); }
    bool has_given_stays() const { return transitions_.has_given_stays(); }
    double log_prob_of_counts() const { return transitions_.log_prob_of_counts(); }
    void push(int64_t t, const double *weights, double *out) {
        if (rows_.empty()) passes_.push(t, weights, out);
        else weighted_rows(width, weights, rows_.data(), out);
    }
    void pull(int64_t t, const double *values, double *out) {
        if (rows_.empty()) return passes_.pull(t, values, out);
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
            passes_.push_max(t, weights, out, sparse_argmax_.data());
            std::copy_n(sparse_argmax_.data(), n_slots, argmax_out);
        } else {
            largest_of_rows(width, weights, rows_.data(), out, argmax_.data());
            for (int32_t c = 0; c < n_slots; ++c)
                argmax_out[c] = static_cast<Label>(argmax_[c]);
        }
    }

  private:
    static constexpr int32_t kMostDense = 512;

    const HCRPTransitions &transitions_;
    ColumnPasses passes_;
    std::vector<double> rows_, columns_;    // the matrix, and its transpose; or none
    std::vector<int64_t> argmax_;
    std::vector<int32_t> sparse_argmax_;
};

// p(y[t] | k) of every slot.  For one column of symbols, probabilities are tabulated by symbol, as
// far as there is room.
class FrozenEmission {
  public:
    explicit FrozenEmission(Emission &emission)
        : emission_(emission), symbols_(emission.symbols()), n_slots_(emission.n_slots),
          row_(n_slots_) {
        if (symbols_) place_of_.assign(symbols_->seating->base.n_symbols + 1, -1);
    }
    Emission &of() { return emission_; }
    // Divided by exp(*log_scale); valid until the next call.
    const double *row(int64_t t, double *log_scale) {
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

// All passes.  Records of messages are packed: the states and, last, a new state.
class FrozenMessages {
  public:
    const int64_t n_steps;
    const int32_t n_states;

    // first: whether step t begins a sequence; before: slot before step 0.
    FrozenMessages(const HCRPTransitions &transitions, Emission &emission, int64_t n_cells,
                   std::vector<uint8_t> first, int32_t before)
        : n_steps(emission.n_steps), n_states(transitions.n_slots() - kFirst),
          n_slots_(transitions.n_slots()),
          transitions_(transitions, n_cells, n_steps), emission_(emission),
          first_(std::move(first)), before_(before), f_(transitions_.width, 0.0),
          g_(transitions_.width, 0.0) {}
    int32_t n_packed() const { return n_states + 1; }
    int32_t n_slots() const { return n_slots_; }
    // The message of `filter` on the slot of the last step.  A filter of the same draw over the
    // following steps begins with it, or, if it is NULL, with the slot before step 0.
    void take_message(double *out) const { std::copy_n(f_.begin(), n_slots(), out); }
    void set_message(const double *message) {
        message_.assign(message, message ? message + n_slots() : message);
    }

    // log_predictive[t] = log p(y[t] | y[:t]); probs and ahead, unless null:
    // p(state at t | y[:t + 1]) and p(state at t | y[:t]).
    void filter(double *log_predictive, double *probs, double *ahead) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t) {
            enter(t);
            if (ahead) {
                pack_states(ahead + t * (n_states + 1));
            }
            log_predictive[t] = observe(t);
            if (probs) pack_states(probs + t * (n_states + 1));
        }
    }
    // out: packed p(state at t | y[:t + 1]).
    void filter_columns(double *out) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t, out += n_packed()) {
            advance(t);
            pack_states(out);
        }
    }
    // probs: p(state at step n_steps + t | y).
    void forecast(int64_t n_ahead, double *probs) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t) advance(t);
        for (int64_t t = 0; t < n_ahead; ++t) {
            push(n_steps + t);
            pack_states(probs + t * (n_states + 1));
        }
    }
    // probs: of filter_columns, become p(state at t | y).
    void smooth(double *probs) {
        for (int64_t t = n_steps; t-- > 0;) {
            retreat(t);
            double *out = probs + t * n_packed(), total = 0.0;
            combine(out, out);
            for (int32_t k = 0; k < n_packed(); ++k) total += out[k];
            check_total(t, total);
            divide_all(n_packed(), total, out);
        }
    }
    // Draw states[i * n_paths + path] of the i-th listed step given all observations.  Steps are
    // listed in runs, from bounds[2 * r] to before bounds[2 * r + 1], which ascend; paths through
    // different runs are independent.  filtered: of filter_columns.
    void sample_runs(const double *filtered, const int64_t *bounds, int64_t n_runs,
                     int64_t n_paths, bitgen_t *g, int32_t *states) {
        const int32_t n = n_packed();
        std::vector<double> after(g_.size());
        // Weights of the paths that are in slot k at t + 1, if made[k] is t.
        std::vector<std::vector<double>> weights(n_slots_);
        std::vector<int64_t> made(n_slots_, -1);
        std::vector<int32_t> chosen(n_paths, 0);
        for (int64_t r = 0; r < n_runs; ++r)
            states += (bounds[2 * r + 1] - bounds[2 * r]) * n_paths;
        int64_t reached = n_steps;  // `after` is the message g of this step
        for (int64_t r = n_runs; r-- > 0;) {
            const int64_t last = bounds[2 * r + 1] - 1;
            int64_t t = last;
            while (t < reached && !is_end(t)) ++t;
            g_.swap(after);
            for (t = std::min(t, reached - 1); t >= last; --t) retreat(t);
            reached = last;
            after = g_;
            for (t = last; t >= bounds[2 * r]; --t) {
                const bool depends = t < last && !is_end(t);
                states -= n_paths;
                for (int64_t path = 0; path < n_paths; ++path) {
                    const int32_t next = depends ? chosen[path] : 0;
                    std::vector<double> &own = weights[next];
                    if (made[next] != t) {
                        own.resize(n);
                        if (depends) {
                            // g = p(state at t + 1 | at t), by the state at t
                            start_at(next);
                            pull(t + 1, f_.data(), g_.data());
                        } else if (t < last) {
                            fill_with_ones(&g_);
                        }
                        combine(filtered + t * n, own.data());
                        check_total(t, sum_of(own));
                        made[next] = t;
                    }
                    const int32_t i = draw_weighted(own, sum_of(own), g);
                    chosen[path] = i < n_states ? kFirst + i : kNew;
                    states[path] = i;
                }
            }
        }
    }
    // The most probable path whose stays last for `least` steps or longer, but the first and the
    // last of a sequence; returns log p(path, y).
    double viterbi(int64_t least, int32_t *path) {
        // The smallest type in which a column fits: every column and step has an entry.
        if (n_slots_ <= 1 << 8) return viterbi_by<uint8_t>(least, path);
        if (n_slots_ <= 1 << 16) return viterbi_by<uint16_t>(least, path);
        return viterbi_by<int32_t>(least, path);
    }
    // log p(path, y) of labels of states; with stays and contexts, of labels and stays of the path
    // whose transitions are counted.
    double log_joint(const int32_t *path) {
        const bool is_counted = transitions_.has_given_stays();
        double log_prob = is_counted ? transitions_.log_prob_of_counts() : 0.0;
        for (int64_t t = 0; t < n_steps; ++t) {
            const int32_t j = first_[t] ? kStart : t ? kFirst + path[t - 1] : before_;
            const int32_t k = kFirst + path[t];
            double log_scale;
            const double seen = emission_.row(t, &log_scale)[k];
            const double p = is_counted ? 1.0 : transitions_.prob(t, j, k);
            log_prob += std::log(p * seen) + log_scale;
        }
        return log_prob;
    }
    // out[t, k] = log p(y[t] | k), packed; as they are, however small.
    void emission_terms(double *out) {
        std::vector<double> row(n_slots_ + 16);
        for (int64_t t = 0; t < n_steps; ++t) {
            emission_.of().fill_logs(t, row.data());
            for (double &log_p : row) log_p = std::max(log_p, -1e300);
            out = std::copy_n(row.data() + kFirst, n_states, out);
            *out++ = row[kNew];
        }
    }
    // out[t] = log sum_k probs[t, k] p(y[t] | k).
    void log_mixtures(const double *probs, double *out) {
        for (int64_t t = 0; t < n_steps; ++t, probs += n_states + 1) {
            double log_scale;
            const double *values = emission_.row(t, &log_scale);
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
    int32_t label_of(int32_t k) const {
        return k == kNew ? n_states : k - kFirst;
    }
    static void fill_with_ones(std::vector<double> *x) { x->assign(x->size(), 1.0); }
    void start_at(int32_t k) {
        f_.assign(f_.size(), 0.0);
        f_[k] = 1.0;
    }
    void begin() {
        start_at(before_);
        std::copy(message_.begin(), message_.end(), f_.begin());
    }
    // x *= p(y[t] | column) / exp(*log_scale); returns the sum.
    double multiply(int64_t t, double *x, double *log_scale) {
        const double *probs = emission_.row(t, log_scale);
        double sums[4] = {};
        int32_t k = 0;
        for (; k + 3 < n_slots_; k += 4)
            for (int32_t i = 0; i < 4; ++i) sums[i] += x[k + i] *= probs[k + i];
        for (; k < n_slots_; ++k) sums[0] += x[k] *= probs[k];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    // out = message of the steps up to t times g, the message of later steps, packed, up to a
    // factor.
    void combine(const double *message, double *out) const {
        for (int32_t k = 0; k < n_states; ++k) out[k] = message[k] * g_[kFirst + k];
        out[n_states] = message[n_states] * g_[kNew];
    }
    void push(int64_t t) {
        transitions_.push(t, f_.data(), g_.data());
        f_.swap(g_);
    }
    void pull(int64_t t, const double *values, double *out) { transitions_.pull(t, values, out); }
    // f = p(column at t - 1 | y[:t]) becomes p(column at t | y[:t + 1]); returns
    // log p(y[t] | y[:t]).
    double advance(int64_t t) {
        enter(t);
        return observe(t);
    }
    void enter(int64_t t) {
        if (first_[t]) start_at(kStart);
        push(t);
    }
    double observe(int64_t t) {
        double log_scale;
        const double total = multiply(t, f_.data(), &log_scale);
        check_total(t, total);
        divide_all(transitions_.width, total, f_.data());
        return std::log(total) + log_scale;
    }
    // g = p(y[t + 2 ...] | column at t + 1) becomes p(y[t + 1 ...] | column at t), both up to a
    // factor; g is one after the last step of a sequence.
    void retreat(int64_t t) {
        if (is_end(t)) return fill_with_ones(&g_);
        double log_scale;
        g_[kStart] = 0.0;
        const double total = multiply(t + 1, g_.data(), &log_scale);
        check_total(t + 1, total);
        divide_all(transitions_.width, total, g_.data());
        pull(t + 1, g_.data(), f_.data());
        f_.swap(g_);
    }
    void pack_states(double *out) const {
        std::copy_n(&f_[kFirst], n_states, out);
        out[n_states] = f_[kNew];
    }
    int32_t best_slot() const {
        int32_t best = kNew;
        for (int32_t c = 0; c < n_slots_; ++c)
            if (f_[c] > f_[best]) best = c;
        return best;
    }
    template <class Label> double viterbi_by(int64_t least, int32_t *path) {
        if (least > 1) return lasting_by<Label>(least, path);
        const int32_t n = n_slots_;
        std::vector<Label> before(static_cast<size_t>(n_steps) * n);
        double log_prob = 0.0;
        begin();
        for (int64_t t = 0; t < n_steps; ++t) {
            Label *argmax = &before[t * n];
            // The best end of the sequence before; its score is in log_prob.
            const int32_t end = first_[t] ? best_slot() : -1;
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
        int32_t best = best_slot();
        for (int64_t t = n_steps; t-- > 0;) {
            path[t] = label_of(best);
            best = before[t * n + best];
        }
        return log_prob;
    }
    template <class Label> double lasting_by(int64_t least, int32_t *path) {
        LastingPath<Label, FrozenTransitions> passes(&transitions_, &emission_.of(), least);
        double log_prob = 0.0;
        begin();
        for (int64_t t = 0, end; t < n_steps; t = end) {
            for (end = t + 1; !is_end(end - 1);) ++end;
            if (first_[t]) start_at(kStart);
            log_prob += passes.find(t, end, f_, path);
        }
        for (int64_t t = 0; t < n_steps; ++t) path[t] = label_of(path[t]);
        return log_prob;
    }

    const int32_t n_slots_;
    FrozenTransitions transitions_;
    FrozenEmission emission_;
    const std::vector<uint8_t> first_;
    const int32_t before_;
    std::vector<double> message_;       // of the step before step 0, or empty
    std::vector<double> f_, g_;         // messages
};

}  // namespace skihmm
