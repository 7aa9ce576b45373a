// The most probable path of which every stay lasts for a least number of steps.  (The first and
// the last stay of a sequence may be shorter: recordings cut them.)
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "_emission.hpp"
#include "_slots.hpp"

namespace skihmm {

// With log probabilities of paths up to step t, best[t, k] of those whose last stay, in k, is long
// enough to be left:
//     entered[t, k] = max_j best[t - 1, j] + log p_t(k | j) + log p(y[t] | k)
//     best[t, k] = max(best[t - 1, k] + kept[t, k], entered[t - r + 1, k] + kept of later steps),
//     kept[t, k] = log p_t(k | k) + log p(y[t] | k)
// (j may be k, as a path that goes on in k is among those of the first term).  A step costs a
// pass over the states, whatever r.  Sums of r - 1 steps are a suffix of one block of so many
// steps and a prefix of the next: nothing is subtracted, so that one impossible step does not
// take the digits of other steps.
template <class Label, class Transitions> class LastingPath {
  public:
    LastingPath(Transitions *transitions, Emission *emission, int64_t least)
        : transitions_(*transitions), emission_(*emission), n_(transitions->n_slots),
          least_(least), block_(least - 1), weights_(transitions->width, 0.0),
          reached_(transitions->width, 0.0), row_(n_ + 16), stays_(n_), best_(n_), prefix_(n_) {}
    // Steps from `first` to before `end`, after the slot or the weights of slots `before`: writes
    // slots to path[first ... end - 1], returns the log probability.
    double find(int64_t first, int64_t end, const std::vector<double> &before, int32_t *path) {
        const int64_t n_steps = end - first, n_kept = std::min(block_, n_steps);
        came_from_.resize(static_cast<size_t>(n_steps) * n_);
        is_entry_.assign(static_cast<size_t>(n_steps) * n_, false);
        entered_.resize(static_cast<size_t>(n_kept + 1) * n_);
        kept_.resize(static_cast<size_t>(n_kept) * n_);
        suffixes_.resize(kept_.size());
        std::copy(before.begin(), before.end(), weights_.begin());
        double scale = 0.0;
        for (int64_t i = 0; i < n_steps; ++i) {
            if (i) scale = weigh_best();
            transitions_.push_max(first + i, weights_.data(), reached_.data(), from(i));
            emission_.fill_logs(first + i, row_.data());
            fill_stays(first + i);
            advance(i, scale);
        }
        return trace(n_steps, path + first);
    }

  private:
    static constexpr double kNever = -std::numeric_limits<double>::infinity();

    Label *from(int64_t i) { return &came_from_[static_cast<size_t>(i) * n_]; }
    double *entered(int64_t i) { return &entered_[static_cast<size_t>(i % least_) * n_]; }
    double *kept(int64_t i) { return &kept_[static_cast<size_t>(i % block_) * n_]; }
    double *suffix(int64_t i) { return &suffixes_[static_cast<size_t>(i % block_) * n_]; }
    // weights_ = exp(best_ - the largest), which is returned.
    double weigh_best() {
        const double largest = *std::max_element(best_.begin(), best_.end());
        for (int32_t k = 0; k < n_; ++k) weights_[k] = std::exp(best_[k] - largest);
        return largest;
    }
    void fill_stays(int64_t t) {
        if (has_stays_ && !transitions_.varies_by_step()) return;
        for (int32_t k = 0; k < n_; ++k)
            stays_[k] = k == kStart ? kNever : std::log(transitions_.prob(t, k, k));
        has_stays_ = true;
    }
    void advance(int64_t i, double scale) {
        const bool begins_block = i % block_ == 0, ends_block = i % block_ == block_ - 1;
        const int64_t entry = i - block_;
        double *now = entered(i), *keep = kept(i);
        // The steps of the entry's window that are in the block before.
        const double *earlier = entry > 0 && !ends_block ? suffix(i + 1) : nullptr;
        const double *then = entry > 0 ? entered(entry) : nullptr;
        for (int32_t k = 0; k < n_; ++k) {
            const double seen = std::max(row_[k], -1e300);
            now[k] = k == kStart ? kNever : std::log(reached_[k]) + scale + seen;
            keep[k] = stays_[k] + seen;
            prefix_[k] = begins_block ? keep[k] : prefix_[k] + keep[k];
            best_[k] = i ? best_[k] + keep[k] : now[k];
            if (!then) continue;
            const double arrived = then[k] + prefix_[k] + (earlier ? earlier[k] : 0.0);
            if (!(arrived > best_[k])) continue;
            best_[k] = arrived;
            is_entry_[static_cast<size_t>(i) * n_ + k] = true;
        }
        if (ends_block) end_block();
    }
    // The suffix sums of the block's steps.
    void end_block() {
        suffixes_.swap(kept_);
        for (int64_t i = block_ - 1; i-- > 0;)
            for (int32_t k = 0; k < n_; ++k) suffix(i)[k] += suffix(i + 1)[k];
    }
    // The best end: a stay that is long enough, or one that began at most r - 2 steps ago.
    double trace(int64_t n_steps, int32_t *path) {
        int64_t begin = n_steps;    // of the last stay, where it is short
        int32_t last = static_cast<int32_t>(
            std::max_element(best_.begin(), best_.end()) - best_.begin());
        double largest = best_[last];
        std::vector<double> later(n_, 0.0);     // sums of the steps after the stay's first step
        for (int64_t i = n_steps - 1; i >= std::max<int64_t>(1, n_steps - block_); --i) {
            for (int32_t k = 0; k < n_; ++k) {
                const double log_prob = entered(i)[k] + later[k];
                if (!(log_prob > largest)) continue;
                largest = log_prob;
                begin = i;
                last = k;
            }
            add_kept(i, n_steps, &later);
        }
        for (int64_t i = n_steps; i > 0;) {
            const int64_t stop = i;
            const bool is_entry = begin < n_steps
                || is_entry_[static_cast<size_t>(i - 1) * n_ + last];
            i = begin < n_steps ? begin : is_entry ? i - least_ : i - 1;
            begin = n_steps;
            std::fill(path + i, path + stop, last);
            if (is_entry) last = from(i)[last];
        }
        return largest;
    }
    // *later += kept of step i, of a sequence's last steps.
    void add_kept(int64_t i, int64_t n_steps, std::vector<double> *later) {
        const int64_t open = n_steps / block_ * block_;     // first step of the unfinished block
        if (i >= open) {
            for (int32_t k = 0; k < n_; ++k) (*later)[k] += kept(i)[k];
            return;
        }
        const bool is_open = n_steps > open;
        for (int32_t k = 0; k < n_; ++k)
            (*later)[k] = suffix(i)[k] + (is_open ? prefix_[k] : 0.0);
    }

    Transitions &transitions_;
    Emission &emission_;
    const int32_t n_;
    const int64_t least_, block_;
    bool has_stays_ = false;
    std::vector<double> weights_, reached_, row_, stays_, best_, prefix_;
    std::vector<double> entered_;               // of the last r steps
    std::vector<double> kept_, suffixes_;       // of the block's steps, of the block before
    std::vector<Label> came_from_;              // by step and slot
    std::vector<bool> is_entry_;
};

}  // namespace skihmm
