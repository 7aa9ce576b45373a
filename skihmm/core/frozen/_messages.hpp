// Message passing under a frozen seating: passes over the columns of the transitions, states with
// their stages (_column_passes.hpp), along all steps.
//
// Transitions are sparse plus rank one, so a step costs the non-zeros plus K; with few states and
// many non-zeros the whole matrix is faster, as its loops are vectorised.
//
// Messages of states with one stage are probabilities: every state is entered from every other
// state, which keeps messages within the range of a double.  A later stage is entered from its own
// state alone.  Its message is a product of as many ratios of observations' probabilities as the
// state has to last, without bounds, and may decide later on.  So messages are logarithms then.
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
#include "_log_transitions.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// p(column | column before), with the passes of ColumnPasses.  All vectors have `width` entries,
// zero beyond the columns.
class FrozenTransitions {
  public:
    const int32_t n_columns, width;

    // n_cells: non-zeros.  `transitions` must outlive this, and not change.
    FrozenTransitions(const HCRPTransitions &transitions, int64_t n_cells, int64_t n_steps)
        : n_columns(transitions.n_columns()), width((n_columns + 7) / 8 * 8),
          transitions_(transitions), passes_(transitions), argmax_(width) {
        // Matrices of the size of a cache; 10: an entry costs 0.07 ns, a non-zero 0.8.
        const int64_t n = n_columns;
        if (transitions.varies_by_step() || transitions.has_runs() || n > kMostDense
            || n > n_steps || n * n > 10 * (n_cells + 2 * n))
            return;
        rows_.assign(static_cast<size_t>(width) * width, 0.0);
        std::vector<double> one(width, 0.0);
        for (int32_t c = 0; c < n_columns; ++c) {
            one[c] = 1.0;
            passes_.push(0, one.data(), &rows_[static_cast<size_t>(c) * width]);
            one[c] = 0.0;
        }
    }
    double prob(int64_t t, int32_t j, int32_t k) const { return transitions_.prob(t, j, k); }
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
    ColumnPasses passes_;
    std::vector<double> rows_, columns_;    // the matrix, and its transpose; or none
    std::vector<int64_t> argmax_;
    std::vector<int32_t> sparse_argmax_;
};

// p(y[t] | k) of every slot, or the logarithms, which have no bounds.  For one column of symbols,
// probabilities are tabulated by symbol, as far as there is room.
class FrozenEmission {
  public:
    FrozenEmission(Emission &emission, bool in_logs)
        : emission_(emission), symbols_(emission.symbols()), n_slots_(emission.n_slots),
          in_logs_(in_logs), row_(n_slots_) {
        if (symbols_) place_of_.assign(symbols_->seating->base.n_symbols + 1, -1);
    }
    Emission &of() { return emission_; }
    // Divided by exp(*log_scale), or, if they are logarithms, with a scale of zero; valid until
    // the next call.
    const double *row(int64_t t, double *log_scale) {
        int32_t *place = symbols_ ? &place_of_[symbols_->codes[t] + 1] : nullptr;
        if (place && *place >= 0) {
            *log_scale = log_scales_[*place];
            return &table_[static_cast<size_t>(*place) * n_slots_];
        }
        *log_scale = fill(t);
        if (place && table_.size() + n_slots_ <= kMostEntries) {
            *place = static_cast<int32_t>(log_scales_.size());
            table_.insert(table_.end(), row_.begin(), row_.end());
            log_scales_.push_back(*log_scale);
        }
        return row_.data();
    }

  private:
    double fill(int64_t t) {
        if (!in_logs_) return emission_.fill_probs(t, row_.data());
        emission_.fill_logs(t, row_.data());
        for (double &log_p : row_) log_p = std::max(log_p, kLogZero);
        return 0.0;
    }

    static constexpr size_t kMostEntries = size_t{1} << 22;

    Emission &emission_;
    const SeatingEmission *symbols_;
    const size_t n_slots_;
    const bool in_logs_;
    std::vector<double> row_, table_, log_scales_;
    std::vector<int32_t> place_of_;     // by symbol, a missing one first: row of the table, or -1
};

// All passes.  Records of messages are packed: per stage the states and, last, a new state.
class FrozenMessages {
  public:
    const int64_t n_steps;
    const int32_t n_states;
    const bool in_logs;                 // messages are logarithms

    // first: whether step t begins a sequence; before: column before step 0.
    FrozenMessages(const HCRPTransitions &transitions, Emission &emission, int64_t n_cells,
                   std::vector<uint8_t> first, int32_t before)
        : n_steps(emission.n_steps), n_states(transitions.n_slots() - kFirst),
          in_logs(transitions.n_columns() > transitions.n_slots()),
          n_slots_(transitions.n_slots()),
          transitions_(transitions, n_cells, n_steps), log_transitions_(transitions),
          emission_(emission, in_logs), first_(std::move(first)), before_(before),
          f_(transitions_.width, 0.0), g_(transitions_.width, 0.0) {
        for (int32_t c = 0; c < n_columns(); c += n_slots_) {
            for (int32_t k = kFirst; k < n_slots_; ++k) columns_.push_back(c + k);
            columns_.push_back(c + kNew);
        }
    }
    int32_t n_packed() const { return static_cast<int32_t>(columns_.size()); }
    int32_t n_columns() const { return transitions_.n_columns; }
    // The message of `filter` on the column of the last step.  A filter of the same draw over the
    // following steps begins with it, or, if it is NULL, with the column before step 0.
    void take_message(double *out) const { std::copy_n(f_.begin(), n_columns(), out); }
    void set_message(const double *message) {
        message_.assign(message, message ? message + n_columns() : message);
    }

    // log_predictive[t] = log p(y[t] | y[:t]); probs and ahead, unless null:
    // p(state at t | y[:t + 1]) and p(state at t | y[:t]).
    void filter(double *log_predictive, double *probs, double *ahead) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t) {
            enter(t);
            if (ahead) {
                if (in_logs) normalise();
                pack_states(ahead + t * (n_states + 1));
            }
            log_predictive[t] = observe(t);
            if (in_logs) log_predictive[t] += normalise();
            if (probs) pack_states(probs + t * (n_states + 1));
        }
    }
    // out: packed p(state and stage at t | y[:t + 1]), or its logarithm up to a constant.
    void filter_columns(double *out) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t, out += n_packed()) {
            advance(t);
            for (int32_t i = 0; i < n_packed(); ++i) out[i] = f_[columns_[i]];
        }
    }
    // probs: p(state at step n_steps + t | y).  If there are several stages, log_probs: their
    // logarithms, which have no bounds; log_columns: packed logarithms of states and stages at step
    // n_steps.
    void forecast(int64_t n_ahead, double *probs, double *log_probs, double *log_columns) {
        begin();
        for (int64_t t = 0; t < n_steps; ++t) advance(t);
        for (int64_t t = 0; t < n_ahead; ++t) {
            push(n_steps + t);
            if (in_logs) normalise();
            pack_states(probs + t * (n_states + 1));
            if (!in_logs) continue;
            pack_logs(log_probs + t * (n_states + 1));
            for (int32_t i = 0; t == 0 && i < n_packed(); ++i) log_columns[i] = f_[columns_[i]];
        }
    }
    // Draw paths of states with several stages, paths[i * n_ahead + t], given the logarithms of
    // `forecast` for their first steps; step t is entered as step t of the data.
    void draw_future(const double *log_columns, int64_t n_paths, int64_t n_ahead, bitgen_t *g,
                     int32_t *paths) {
        std::vector<double> weights(n_packed());
        exp_all(n_packed(), largest_of(n_packed(), log_columns), log_columns, weights.data());
        const double total = sum_of(weights);
        for (int64_t i = 0; i < n_paths; ++i)
            for (int64_t t = 0, c = 0; t < n_ahead; ++t) {
                if (t == 0) c = columns_[draw_weighted(weights, total, g)];
                else c = log_transitions_.draw_next(t, static_cast<int32_t>(c), g);
                paths[i * n_ahead + t] = label_of(static_cast<int32_t>(c));
            }
    }
    // filtered: of filter_columns, overwritten; probs: p(state at t | y), may be `filtered` if
    // there is one stage.
    void smooth(double *filtered, double *probs) {
        const int32_t n = n_packed(), m = n_states + 1;
        for (int64_t t = n_steps; t-- > 0;) {
            retreat(t);
            double *message = filtered + t * n, *out = probs + t * m, total = 0.0;
            combine(t, message, message);
            for (int32_t k = 0; k < m; ++k) {
                out[k] = message[k];
                for (int32_t i = k + m; i < n; i += m) out[k] += message[i];
                total += out[k];
            }
            check_total(t, total);
            divide_all(m, total, out);
        }
    }
    // Draw states[i * n_paths + path] of the i-th listed step given all observations.  Steps are
    // listed in runs, from bounds[2 * r] to before bounds[2 * r + 1], which ascend; paths through
    // different runs are independent.  filtered: of filter_columns.
    void sample_runs(const double *filtered, const int64_t *bounds, int64_t n_runs,
                     int64_t n_paths, bitgen_t *g, int32_t *states) {
        const int32_t n = n_packed();
        std::vector<double> after(g_.size());
        // Weights of the paths that are in a column at t + 1, if made[column] is t.
        std::vector<std::vector<double>> weights(n_columns());
        std::vector<int64_t> made(n_columns(), -1);
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
                            // g = p(state and stage at t + 1 | at t), by state and stage at t
                            start_at(next);
                            pull(t + 1, f_.data(), g_.data());
                        } else if (t < last) {
                            fill_with_ones(&g_);
                        }
                        combine(t, filtered + t * n, own.data());
                        check_total(t, sum_of(own));
                        made[next] = t;
                    }
                    const int32_t i = draw_weighted(own, sum_of(own), g);
                    chosen[path] = columns_[i];
                    states[path] = i % (n_states + 1);
                }
            }
        }
    }
    // The most probable path; returns log p(path, y).
    double viterbi(int32_t *path) {
        // The smallest type in which a column fits: every column and step has an entry.
        if (transitions_.n_columns <= 1 << 8) return viterbi_by<uint8_t>(path);
        if (transitions_.n_columns <= 1 << 16) return viterbi_by<uint16_t>(path);
        return viterbi_by<int32_t>(path);
    }
    // log p(path, y) of labels of states; with several stages, or with stays and contexts, of
    // labels, stages and stays of the path whose transitions are counted.
    double log_joint(const int32_t *path) {
        const bool is_counted = transitions_.has_given_stays();
        double log_prob = is_counted ? transitions_.log_prob_of_counts() : 0.0;
        for (int64_t t = 0; t < n_steps; ++t) {
            const int32_t j = first_[t] ? kStart : t ? kFirst + path[t - 1] : before_;
            const int32_t k = kFirst + path[t];
            double log_scale;
            const double seen = emission_.row(t, &log_scale)[k];
            const double p = is_counted ? 1.0 : transitions_.prob(t, j, k);
            log_prob += in_logs ? seen : std::log(p * seen) + log_scale;
        }
        return log_prob;
    }
    // out[t, k] = log p(y[t] | k), packed; as they are, however small.
    void emission_terms(double *out) {
        FrozenEmission logs(emission_.of(), true);
        for (int64_t t = 0; t < n_steps; ++t) {
            double log_scale;
            const double *row = logs.row(t, &log_scale);
            out = std::copy_n(row + kFirst, n_states, out);
            *out++ = row[kNew];
        }
    }
    // out[t] = log sum_k probs[t, k] p(y[t] | k); if there are several stages, `probs` are
    // logarithms.
    void log_mixtures(const double *probs, double *out) {
        for (int64_t t = 0; t < n_steps; ++t, probs += n_states + 1) {
            double log_scale, total;
            const double *values = emission_.row(t, &log_scale);
            if (in_logs) {
                total = add_up(probs, values, &log_scale);
            } else {
                total = probs[n_states] * values[kNew];
                for (int32_t k = 0; k < n_states; ++k) total += probs[k] * values[kFirst + k];
            }
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
    int32_t label_of(int32_t column) const {
        const int32_t k = column % n_slots_;
        return k == kNew ? n_states : k - kFirst;
    }
    void fill_with_ones(std::vector<double> *x) const {
        x->assign(x->size(), in_logs ? 0.0 : 1.0);
    }
    void start_at(int32_t column) {
        f_.assign(f_.size(), in_logs ? kLogZero : 0.0);
        f_[column] = in_logs ? 0.0 : 1.0;
    }
    void begin() {
        start_at(before_);
        std::copy(message_.begin(), message_.end(), f_.begin());
    }
    // x *= p(y[t] | column) / exp(*log_scale); returns the sum.
    double multiply(int64_t t, double *x, double *log_scale) {
        const double *probs = emission_.row(t, log_scale);
        double sums[4] = {};
        for (int32_t c = 0; c < n_columns(); c += n_slots_, x += n_slots_) {
            int32_t k = 0;
            for (; k + 3 < n_slots_; k += 4)
                for (int32_t i = 0; i < 4; ++i) sums[i] += x[k + i] *= probs[k + i];
            for (; k < n_slots_; ++k) sums[0] += x[k] *= probs[k];
        }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    // add_probs in logarithms, over the largest product; returns that product's logarithm.
    double add_logs_of_probs(int64_t t, double *x) {
        double log_scale;
        const double *logs = emission_.row(t, &log_scale);
        for (int32_t c = 0; c < n_columns(); c += n_slots_)
            for (int32_t k = 0; k < n_slots_; ++k) x[c + k] += logs[k];
        const double largest = largest_of(n_columns(), x);
        check_total(t, largest > kLogZero / 2 ? 1.0 : 0.0);
        subtract_all(n_columns(), largest, x);
        return largest;
    }
    // The sum of all exp(log_probs[k] + logs[k]) over the largest term, whose logarithm is
    // *log_scale.
    double add_up(const double *log_probs, const double *logs, double *log_scale) {
        terms_.resize(n_states + 1);
        for (int32_t k = 0; k < n_states; ++k) terms_[k] = log_probs[k] + logs[kFirst + k];
        terms_[n_states] = log_probs[n_states] + logs[kNew];
        *log_scale = largest_of(n_states + 1, terms_.data());
        double total = 0.0;
        if (*log_scale > kLogZero / 2)
            for (const double x : terms_) total += exp_or_zero(x - *log_scale);
        return total;
    }
    // If f are logarithms: divide by the sum and return its logarithm; g = exp(f).
    double normalise() {
        const double largest = largest_of(n_columns(), f_.data());
        exp_all(n_columns(), largest, f_.data(), g_.data());
        double sums[4] = {};
        int32_t c = 0;
        for (; c + 3 < n_columns(); c += 4)
            for (int32_t i = 0; i < 4; ++i) sums[i] += g_[c + i];
        for (; c < n_columns(); ++c) sums[0] += g_[c];
        const double total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        divide_all(n_columns(), total, g_.data());
        subtract_all(n_columns(), largest + std::log(total), f_.data());
        return largest + std::log(total);
    }
    // out = message of the steps up to t times g, the message of later steps, packed, up to a
    // factor.
    void combine(int64_t t, const double *message, double *out) {
        const int32_t n = n_packed();
        if (!in_logs) {
            for (int32_t i = 0; i < n; ++i) out[i] = message[i] * g_[columns_[i]];
            return;
        }
        for (int32_t i = 0; i < n; ++i) out[i] = message[i] + g_[columns_[i]];
        const double largest = largest_of(n, out);
        check_total(t, largest > kLogZero / 2 ? 1.0 : 0.0);
        exp_all(n, largest, out, out);
    }
    void push(int64_t t) {
        if (in_logs) log_transitions_.push(t, f_.data(), g_.data());
        else transitions_.push(t, f_.data(), g_.data());
        f_.swap(g_);
    }
    void pull(int64_t t, const double *values, double *out) {
        if (in_logs) log_transitions_.pull(t, values, out);
        else transitions_.pull(t, values, out);
    }
    // f = p(column at t - 1 | y[:t]) becomes p(column at t | y[:t + 1]); returns
    // log p(y[t] | y[:t]).  If f are logarithms, f and the returned value are correct up to a
    // constant, which `normalise` returns.
    double advance(int64_t t) {
        enter(t);
        return observe(t);
    }
    void enter(int64_t t) {
        if (first_[t]) start_at(kStart);
        push(t);
    }
    double observe(int64_t t) {
        if (in_logs) return add_logs_of_probs(t, f_.data());
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
        if (in_logs) {
            add_logs_of_probs(t + 1, g_.data());
        } else {
            double log_scale;
            g_[kStart] = 0.0;
            const double total = multiply(t + 1, g_.data(), &log_scale);
            check_total(t + 1, total);
            divide_all(transitions_.width, total, g_.data());
        }
        pull(t + 1, g_.data(), f_.data());
        f_.swap(g_);
    }
    void pack_states(double *out) const {
        const std::vector<double> &probs = in_logs ? g_ : f_;
        const int32_t n = n_states + 1;
        for (int32_t k = 0; k < n; ++k) out[k] = probs[columns_[k]];
        for (int32_t i = n; i < n_packed(); i += n)
            for (int32_t k = 0; k < n; ++k) out[k] += probs[columns_[i + k]];
    }
    // The logarithms of pack_states' output.
    void pack_logs(double *out) const {
        const int32_t n = n_states + 1;
        for (int32_t k = 0; k < n; ++k) {
            double largest = kLogZero, total = 0.0;
            for (int32_t i = k; i < n_packed(); i += n)
                largest = std::max(largest, f_[columns_[i]]);
            for (int32_t i = k; i < n_packed(); i += n)
                total += exp_or_zero(f_[columns_[i]] - largest);
            out[k] = largest + std::log(total);
        }
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
            if (in_logs) log_transitions_.push_max(t, f_.data(), g_.data(), argmax);
            else transitions_.push_max(t, f_.data(), g_.data(), argmax);
            if (end >= 0) std::fill_n(argmax, n, static_cast<Label>(end));
            f_.swap(g_);
            if (in_logs) {
                log_prob += add_logs_of_probs(t, f_.data());
                continue;
            }
            double log_scale;
            multiply(t, f_.data(), &log_scale);
            const double largest = *std::max_element(f_.begin(), f_.begin() + n);
            check_total(t, largest);
            divide_all(n, largest, f_.data());
            log_prob += std::log(largest) + log_scale;
        }
        int32_t best = best_column();
        for (int64_t t = n_steps; t-- > 0;) {
            path[t] = label_of(best);
            best = before[t * n + best];
        }
        return log_prob;
    }

    const int32_t n_slots_;
    FrozenTransitions transitions_;
    LogTransitions log_transitions_;
    FrozenEmission emission_;
    const std::vector<uint8_t> first_;
    const int32_t before_;
    std::vector<double> message_;       // of the step before step 0, or empty
    std::vector<int32_t> columns_;      // of every place in a packed message
    std::vector<double> f_, g_;         // messages
    std::vector<double> terms_;         // of one step, by state
};

}  // namespace skihmm
