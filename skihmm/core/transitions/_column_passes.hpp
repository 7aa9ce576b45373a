// Passes over states and their stages: slot k in stage s is column s n_slots() + k, and kStart and
// kNew are in the first stage.
//
// Restaurants make the passes over draws.  In front, coins stay in a stage or leave it for the next
// stage or, from the last stage, for a draw.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_transition_law.hpp"

namespace skihmm {

class ColumnPasses {
  public:
    // `transitions` must outlive this.
    explicit ColumnPasses(const TransitionLaw &transitions)
        : s_(transitions), coins_(s_.coins()) {}

    // out[c] = sum_j weights[j] p(c | j).  With contexts, labels with up to the share `least` of
    // all draws enter by their total only; weights sum to one.  `ghost` is a label without tables
    // that is apart from kNew, or -1.
    void push(int64_t t, const double *weights, double *out, double least = 0.0,
              int32_t ghost = -1, int32_t width = -1) {
        const int32_t n = s_.n_slots();
        if (width < 0) width = n;
        if (!coins_.exist()) return s_.push_draws(t, weights, out, least, width);
        weigh_draws(t, weights, width);
        double all = 0.0;
        for (int32_t k = 0; k < width; ++k) all += scratch_[k];
        s_.push_draws(t, scratch_.data(), out, least * all, width);
        if (ghost >= 0) out[ghost] = out[kNew];
        const double *stays = stays_.data();
        for (int32_t k = 0; k < width; ++k) out[k] += weights[k] * stays[k];
        for (int32_t c = n; c < s_.n_columns(); c += n) {
            for (int32_t k = 0; k < width; ++k)
                out[c + k] = weights[c + k] * stays[k] + weights[c + k - n] * advances_[k];
            out[c + kStart] = 0.0;
        }
    }
    // push for one column with weight one.
    void push_one(int64_t t, int32_t column, double *out, int32_t ghost) {
        one_.assign(s_.n_columns(), 0.0);
        one_[column] = 1.0;
        push(t, one_.data(), out, 0.0, ghost);
    }
    // out[j] = sum_c p(c | j) values[c].
    void pull(int64_t t, const double *values, double *out) {
        if (!coins_.exist()) return s_.pull_draws(t, values, out);
        const int32_t n = s_.n_slots(), last = s_.n_columns() - n;
        read_coins(t);
        scratch_.resize(n);
        s_.pull_draws(t, values, scratch_.data());
        for (int32_t k = 0; k < n; ++k) {
            for (int32_t c = k; c <= last + k; c += n)
                out[c] = stays_[k] * values[c]
                         + (c < last ? advances_[k] * values[c + n] : leaves_[k] * scratch_[k]);
        }
        out[kStart] = scratch_[kStart];
    }
    // out[c] = max_j weights[j] p(c | j), and the j that reaches it.
    void push_max(int64_t t, const double *weights, double *out, int32_t *argmax_out) {
        if (!coins_.exist()) return s_.push_max_of_draws(t, weights, out, argmax_out);
        const int32_t n = s_.n_slots(), n_columns = s_.n_columns(), last = n_columns - n;
        weigh_draws(t, weights, n);
        s_.push_max_of_draws(t, scratch_.data(), out, argmax_out);
        for (int32_t k = 0; k < n; ++k) {
            if (argmax_out[k] != kStart) argmax_out[k] += last;
            for (int32_t c = n + k; c < n_columns; c += n) {
                out[c] = 0.0;
                argmax_out[c] = kStart;
            }
            if (k == kStart) continue;
            for (int32_t c = k; c < n_columns; c += n) {
                // (With one stage a draw of k after k leads there too.)
                take_larger(weights[c] * (s_.has_runs() ? stays_[k] : s_.prob(t, k, k)), c,
                            &out[c], &argmax_out[c]);
                if (c > k)
                    take_larger(weights[c - n] * advances_[k], c - n, &out[c], &argmax_out[c]);
            }
        }
    }
    // Columns before and the parts of p(c | column); a column may have several parts.  Returns the
    // number of parts; there is room for n_parts().  Some table serves the label of c, or it is
    // kNew or the ghost of `push`.
    int32_t n_parts() const { return 1 + 2 * s_.n_slots(); }
    int32_t list_before(int64_t t, int32_t c, int32_t *columns, double *probs,
                        int32_t width = -1) {
        const int32_t n = s_.n_slots(), k = c % n, last = s_.n_columns() - n;
        int32_t size = 0;
        read_coins(t);
        if (coins_.exist()) {
            columns[0] = c;
            probs[0] = stays_[k];
            size = 1;
            if (c >= n) {
                columns[1] = c - n;
                probs[1] = advances_[k];
                return 2;
            }
        }
        const int32_t n_draws =
            s_.list_draws(t, k, leaves_.data(), exits_.data(), s_.reach(width < 0 ? n : width),
                          columns + size, probs + size);
        for (int32_t at = size; at < size + n_draws; ++at) columns[at] += last;
        return size + n_draws;
    }

  private:
    static void take_larger(double value, int32_t column, double *most, int32_t *argmax) {
        if (!(value > *most)) return;
        *most = value;
        *argmax = column;
    }
    // Fill scratch_ with the weights of draws, by slot.
    void weigh_draws(int64_t t, const double *weights, int32_t width) {
        const int32_t n = s_.n_slots(), last = s_.n_columns() - n;
        read_coins(t);
        scratch_.resize(n, 0.0);
        for (int32_t k = 0; k < width; ++k) scratch_[k] = weights[last + k] * leaves_[k];
        scratch_[kStart] = weights[kStart];
    }
    // Probabilities of coins, by slot, if they have changed: to stay, to leave for the next stage
    // or for a draw, and the latter as `list_draws` needs it.
    void read_coins(int64_t t) {
        const int32_t n = s_.n_slots();
        if (!s_.has_inputs()) t = 0;
        // (Without coins changes are not counted.)
        if (coins_.exist() && coins_.version() == version_ && t == read_
            && static_cast<int32_t>(stays_.size()) == n)
            return;
        version_ = coins_.version();
        read_ = t;
        stays_.resize(n);
        advances_.resize(n);
        leaves_.assign(n, 1.0);
        exits_.resize(n);
        if (coins_.exist()) s_.fill_coins(t, n, stays_.data(), advances_.data(), leaves_.data());
        s_.fill_exits(leaves_.data(), exits_.data());
    }

    const TransitionLaw &s_;
    const Coins &coins_;
    int64_t version_ = 0, read_ = 0;
    std::vector<double> scratch_, one_;
    std::vector<double> stays_, advances_, leaves_, exits_;     // of read_coins
};

}  // namespace skihmm
