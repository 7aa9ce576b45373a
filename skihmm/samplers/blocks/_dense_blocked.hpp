// Blocked Gibbs proposal (arXiv 1106.0474, Section 5) for states with several stages (_coins.hpp),
// which are proposed together.
//
// As _blocked.hpp, but in double precision and without a part of rank one: whole passes over
// columns, states with their stages, come from the law: `push` the message of step t - 1 through
// the transitions into step t, and `list_before` the probabilities of one column at t after every
// column before.  Here too labels with less than `cut` times the mean of a message may enter the
// next message by their total only.
//
// All labels that no table serves have the column of a new state, except the block's successor,
// whose coin is its own.
//
// The labels in the column of a new state come from one more Chinese restaurant process, Q*, and so
// do all steps of a run: after a stay or an advance a step has the label of the step before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "_column_passes.hpp"
#include "_fresh_labels.hpp"
#include "_rcd.hpp"

namespace skihmm {

class DenseBlocked {
  public:
    using Transitions = HCRPTransitions;
    static constexpr bool kReadsTouched = false, kReadsView = false, kMayBeExact = false;

    explicit DenseBlocked(double cut) : cut_(cut) {}

    void attach(Chain &chain, Emission &) {
        passes_ = std::make_unique<ColumnPasses>(*chain.transitions);
    }
    void prefetch(Chain &, int64_t, int64_t) const {}

    void prepare(Chain &chain, Emission &emission, const Move<Emission> &move) {
        const Transitions &s = *chain.transitions;
        start_ = move.start;
        length_ = move.stop - start_;
        n_slots_ = chain.n_slots;
        n_ = s.n_columns();
        const int32_t o = chain.successor(move.stop - 1);
        apart_ = o >= 0 && !s.is_served(o) ? o : -1;
        old_.resize(length_ + 1);
        for (int64_t l = 0; l < length_; ++l)
            old_[l] = s.column_at(start_ + l, bar_of(s, chain.states[start_ + l]));
        old_[length_] = o < 0 ? -1 : s.column_at(move.stop, bar_of(s, o));
        // By column, as the number of slots depends on the labels of the whole chain.  Beyond
        // width_ no slot has a column.
        int32_t n_live = 1;
        width_ = std::max(kFirst, apart_ + 1);
        for (int32_t k = kFirst; k < n_slots_; ++k) {
            if (!s.is_served(k)) continue;
            ++n_live;
            width_ = std::max(width_, k + 1);
        }
        width_ = s.reach(width_);
        before_.resize(length_);
        messages_.resize(static_cast<size_t>(length_) * n_);
        probs_.resize(n_slots_);
        sums_.resize(n_slots_);
        emission.look_ahead(start_, move.stop);
        for (int64_t l = 0; l < length_; ++l) {
            if (l > 0)
                passes_->push(start_ + l, message(l - 1), message(l), cut_ / n_live, apart_,
                              width_);
            else passes_->push_one(start_, s.column_at(start_ - 1, chain.previous(start_)),
                                   message(0), apart_);
            emission.fill_probs(start_ + l, probs_.data());
            weigh(message(l));
            list_before(l, old_[l + 1], &before_[l]);
        }
    }
    void score(Chain &chain, int64_t, int64_t, Product *q) {
        for (int64_t l = 0; l < length_; ++l) q->multiply(before_[l].share(old_[l]));
        name(chain, old_, &chain.states[start_], false, q);
    }
    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        new_ = old_;
        for (int64_t l = length_ - 1; l >= 0; --l) {
            const Before *before = &before_[l];
            if (new_[l + 1] != old_[l + 1]) {
                list_before(l, new_[l + 1], &scratch_);
                before = &scratch_;
            }
            if (!(before->total > 0.0)) {
                // No path has a positive probability in floating-point numbers: reject.
                std::copy_n(&chain.states[start_], length_, path);
                q->multiply_log(std::numeric_limits<double>::infinity());
                return;
            }
            new_[l] = before->draw(chain.bits);
            q->multiply(before->share(new_[l]));
        }
        name(chain, new_, path, true, q);
        for (int64_t l = 0; l < length_; ++l)
            chain.transitions->set_column(start_ + l, new_[l]);
    }
    void end_move(Chain &, Emission &, int64_t, int64_t, bool) const {}

  private:
    // The weights of the columns of a step, given the next column; a column may have several.
    struct Before {
        std::vector<int32_t> columns;
        std::vector<double> weights;
        int32_t size = 0;               // of these
        double total = 0.0;

        double share(int32_t column) const {
            double sum = 0.0;
            for (int32_t i = 0; i < size; ++i)
                if (columns[i] == column) sum += weights[i];
            return total > 0.0 ? sum / total : 0.0;
        }
        // If the point is beyond the end by rounding, the last possible index.
        int32_t draw(bitgen_t *g) const {
            double u = uniform(g) * total;
            int32_t i = 0;
            while (i < size - 1 && !((u -= weights[i]) < 0.0)) ++i;
            while (i > 0 && !(weights[i] > 0.0)) --i;
            return columns[i];
        }
    };

    int32_t bar_of(const Transitions &s, int32_t k) const {
        return s.is_served(k) || k == apart_ ? k : kNew;
    }
    double *message(int64_t l) { return &messages_[static_cast<size_t>(l) * n_]; }
    // Multiply by the observation; if all products underflow, propose without it.  Possible columns
    // keep a weight: a later stage is entered from its own state alone, so that an underflowed
    // product would stay 0, and the old path with it.  Rows have the same least weight in the
    // other kernels: frozen states are too sure of data that they would adapt to, and with 1e-200
    // data of two columns had left a wrong run in none of 300 sweeps.
    void weigh(double *f) {
        double *probs = probs_.data(), *sums = sums_.data();
        std::copy_n(f, width_, sums);
        for (int32_t c = n_slots_; c < n_; c += n_slots_)
            for (int32_t k = 0; k < width_; ++k) sums[k] += f[c + k];
        double total = 0.0;
        for (int32_t k = 0; k < width_; ++k) total += sums[k] * probs[k];
        if (SKIHMM_UNLIKELY(!(total > 0.0))) {
            std::fill_n(probs, width_, 1.0);
            for (int32_t k = 0; k < width_; ++k) total += sums[k];
        }
        const double share = 1.0 / total;
        for (int32_t k = 0; k < width_; ++k) probs[k] *= share;
        for (int32_t c = 0; c < n_; c += n_slots_)
            for (int32_t k = 0; k < width_; ++k)
                f[c + k] = f[c + k] > 0.0 ? std::max(f[c + k] * probs[k], kLeast) : 0.0;
    }
    // For column c after step l of the block; -1: nothing follows.
    void list_before(int64_t l, int32_t c, Before *out) {
        const size_t n = std::max(n_, passes_->n_parts());
        if (out->columns.size() < n) {
            out->columns.resize(n);
            out->weights.resize(n);
        }
        int32_t *columns = out->columns.data();
        double *weights = out->weights.data();
        if (c >= 0) {
            out->size = passes_->list_before(start_ + l + 1, c, columns, weights, width_);
        } else {
            out->size = 0;
            for (int32_t first = 0; first < n_; first += n_slots_)
                for (int32_t k = 0; k < width_; ++k) columns[out->size++] = first + k;
            std::fill_n(weights, out->size, 1.0);
        }
        const double *f = message(l);
        double part[4] = {0.0, 0.0, 0.0, 0.0};
        for (int32_t i = 0; i < out->size; ++i) {
            weights[i] *= f[columns[i]];
            part[i % 4] += weights[i];
        }
        out->total = (part[0] + part[1]) + (part[2] + part[3]);
    }
    // Labels of the columns of new states, drawn or as in `path`, which gets the labels of all
    // steps.
    void name(Chain &chain, const std::vector<int32_t> &columns, int32_t *path, bool is_drawn,
              Product *q) {
        labels_.open(*chain.transitions, -1);
        size_t n_fresh = 0;
        int32_t before = -1;            // the column of a step before in a new state, or -1
        for (int64_t l = 0; l < length_; ++l) {
            const int32_t c = columns[l];
            int32_t label = c % n_slots_;
            const bool is_new = label == kNew;
            if (is_new && before >= 0 && (c > kNew || before == kNew)) {
                label = path[l - 1];
            } else if (is_new) {
                if (!is_drawn) label = path[l];
                else if ((label = labels_.draw(chain.bits, -1)) < 0)
                    label = chain.free_slot(n_fresh++);
                q->multiply(labels_.seat(label, -1));
            }
            before = is_new ? c : -1;
            if (is_drawn) path[l] = label;
        }
    }

    static constexpr double kLeast = 1e-20;     // beside a sum of 1

    const double cut_;
    std::unique_ptr<ColumnPasses> passes_;
    int32_t n_slots_ = 0, n_ = 0;       // of slots, of columns
    int32_t width_ = 0;                 // of slots that may have a column
    int32_t apart_ = -1;                // the successor if no table serves it
    int64_t start_ = 0, length_ = 0;
    std::vector<int32_t> old_, new_;    // columns of a path, and of what follows it
    std::vector<double> messages_;      // by step of the block, and column
    std::vector<double> probs_, sums_;  // of one step, by slot
    std::vector<Before> before_;        // by step, given the old path
    Before scratch_;
    FreshLabels labels_;
};

}  // namespace skihmm
