// Blocked Gibbs and beam proposals (arXiv 1106.0474, Section 5) for the template of
// _rcd.hpp: all labels of a block at once, by forward filtering and backward sampling.
//
// Everything is taken at s_0.  Columns are the states that some table serves, and the slot
// NEW, which stands for all other states; labels for the steps that land there are drawn
// afterwards from one more Chinese restaurant process, Q*.  If the block's successor o is
// served by no table (its only draw was the one just removed), it is such a label, and Q*
// begins with one customer at it; or, where laws add to self-transitions, it is a column of its
// own with the mass of a new state: such laws tell it from a new state by more than its
// observations.
//
// Transitions are sparse plus rank one, pi[j,k] = R_j (counts_jk + base_k), whatever the law: a
// view of it (_blocked_views.hpp) has the parts.  So are emissions, F_k(y) = d_k (e_ky + smooth).
//
// The backward draws of step l given the label k of step l+1 use a message f_l,
//     P(x_l = j | x_{l+1} = k) = f_l(j) pi[j,k] / Z_l(k),   Z_l(k) = sum_j f_l(j) pi[j,k],
// and the probability of a path is the product of these, times the factors of Q*.  With the exact
// messages f_{l+1}(k) = F_k Z_l(k) it telescopes to the product of all pi and F along the path,
// over a constant.  But it *is* the probability of the drawn path whatever the messages, so
// messages may be cheaper: the sparse rows of states that hold less than a small share of f_l
// (mostly states that never emitted y[l]) enter the next message only by their total, spread in
// proportion to the base.  That costs a little acceptance and no exactness, and saves most of the
// non-zeros of n.  For the same reason messages are in single precision: sums run over slots, in an
// order that all paths at one s_0 share, so that the path back is proposed from the very same
// numbers (Z and the probability of the path are computed from them in double).
//
// Batches of blocks that share one s_0 and one filter do not pay.  With 330 states the filter is
// 54 % of a sweep (180 ns per step), and removal with seating, which a batch has to do almost
// twice, 21 %; but the bare product of n with 16 messages, without any cut, takes 140 ns per step
// (with 770 states 300 ns; the filter takes 430 ns now).
//
// Beam: each transition of the path gets a slice u_l, uniform below its pi on the old path,
// and indicators 1[pi >= u_l] replace pi in the messages and in Z.  Given the slices the
// target gains prod 1[u_l <= pi_l] / pi_l, hence the probability of the path is multiplied
// by the un-sliced pi.  (>=, as u_l may round to pi_l; the same floating-point expression
// decides everywhere, so that the old path always survives.)
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_blocked_vector.hpp"
#include "_blocked_views.hpp"
#include "_fresh_labels.hpp"
#include "_rcd.hpp"
#include "_vector.hpp"

namespace skihmm {

template <class Emission, template <bool> class LawView, bool kSliced>
class Blocked {
  public:
    using Transitions = HCRPTransitions;
    static constexpr bool kReadsTouched = true, kReadsView = false,
                          kMayBeExact = false;
    // The rows of states with less than this multiple of the mean weight of a message are not
    // propagated; with more than kFew states it is kFew/K times that.
    explicit Blocked(double cut) : cut_(cut), view_(masses_) {}

    // Start of a sweep, or more slots than before; only between moves.
    void attach(Chain &chain, Emission &emission) {
        const Transitions &s = *chain.transitions;
        n_slots_ = chain.n_slots;
        stride_ = (n_slots_ + kLanes - 1) / kLanes * kLanes;
        totals_ = nullptr;
        if constexpr (Emission::kIsSeating) totals_ = emission.totals(&offset_);
        else probs_.assign(n_slots_, 1.0);
        masses_.clear(stride_);
        w_.assign(stride_, 0.0f);
        g_.assign(stride_, 0.0f);
        row_.assign(stride_, 0.0f);
        kept_.resize(stride_ + kLanes);
        view_.attach(s, n_slots_, stride_);
        // A power of two that keeps w, and w times the size of a row, among the floats for
        // concentrations from 1e-25 to 1e25.
        if (!kSliced)
            unit_ = std::ldexp(1.0, 60 + static_cast<int>(std::lround(
                                             std::log2(offset_) + view_.log2_unit())));
        masses_.set(kNew, s.mass(kNew));
        for (int32_t k = 0; k < n_slots_; ++k) refresh(s, k);
    }

    void prefetch(Chain &, int64_t, int64_t) const {}

    void prepare(Chain &chain, Emission &emission, const Move<Emission> &move) {
        const Transitions &s = *chain.transitions;
        for (size_t i = 0; i < chain.touched.size(); ++i) refresh(s, chain.touched[i]);
        start_ = move.start;
        length_ = move.stop - start_;
        i_ = chain.previous(start_);
        o_ = chain.successor(move.stop - 1);
        ghost_ = o_ >= 0 && !s.is_served(o_) ? o_ : -1;
        // planted: column of the successor
        masses_.apart = s.coins().exist() ? ghost_ : -1;
        // Until its slot is refreshed after this move.
        if (masses_.apart >= 0) masses_.set(masses_.apart, s.mass(kNew));
        if (static_cast<int64_t>(steps_.size()) < length_ + 1) steps_.resize(length_ + 1);
        const size_t room = static_cast<size_t>(length_) * stride_;
        if (messages_.size() < room) messages_.resize(room);
        view_.open(start_, length_);
        map_old(chain, s);
        emission.look_ahead(start_, move.stop);
        filter(emission);
    }

    // Probability of the old path.
    SKIHMM_INLINE void score(Chain &chain, int64_t, int64_t, Product *q) {
        open_labels(*chain.transitions);
        int32_t before = -1;
        for (int64_t l = 0; l < length_; ++l) {
            Step &step = steps_[l];
            const int32_t k = steps_[l + 1].bar;
            step.total = total(l, k);
            step.weight = weight(l, step.bar, k, steps_[l + 1].n);
            // planted: factor of the old path
            q->multiply(path_factor(l, step.bar, k, steps_[l + 1].n) / step.total);
            const int32_t label = step.bar == kNew ? chain.states[start_ + l] : -1;
            if (label >= 0) {
                labels_.set_self_share(chain.transitions->self_share_at(start_ + l));
                q->multiply(labels_.seat(label, before));  // planted: label of the old path
            }
            before = label;
        }
        if (kSliced) q->multiply(view_.link(0, i_, steps_[0].bar, steps_[0].n));
    }

    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        int32_t k = steps_[length_].bar;
        bool is_fresh = false;
        for (int64_t l = length_ - 1; l >= 0; --l) {
            const Step &step = steps_[l];
            int32_t j = step.bar;
            double n = steps_[l + 1].n, sum = step.total;
            if (SKIHMM_LIKELY(k == steps_[l + 1].bar)) {
                // Most labels do not change, so the old label is tried first.
                const double u = uniform(chain.bits) * sum;  // planted: number of a path
                if (SKIHMM_UNLIKELY(u >= step.weight))
                    j = draw(l, k, u - step.weight, step.bar, &n);
            } else {
                sum = total(l, k);
                if (SKIHMM_UNLIKELY(!(sum > 0.0))) {
                    // A beam of approximate messages may end without a path, which is rejected.
                    std::copy_n(&chain.states[start_], length_, path);
                    q->multiply_log(std::numeric_limits<double>::infinity());
                    return;
                }
                j = draw(l, k, uniform(chain.bits) * sum, -1, &n);
            }
            q->multiply(path_factor(l, j, k, n) / sum);  // planted: factor of a path
            is_fresh |= j == kNew;
            path[l] = k = j;
        }
        int32_t none = -1;
        if (kSliced) q->multiply(view_.link(0, i_, k, view_.counts(0, i_, k, &none)));
        if (is_fresh) name(chain, path, q);
    }

    void end_move(Chain &, Emission &, int64_t, int64_t, bool) const {}

  private:
    // One step of the block; a further Step stands for the successor.
    struct Step {
        int32_t bar = 0;        // column of the old label; -1: there is no successor
        double n = 0.0;         // counts of the old transition into it
        double slice = 0.0;     // of that transition  // planted: slice of a step
        double total = 0.0;     // Z at the old label after it
        double weight = 0.0;    // the old label's part of that
        double sum = 0.0;       // sum of the message as it is stored
        double sum_f = 0.0;     // sum of f
    };

    void refresh(const Transitions &s, int32_t k) {
        if (k != kNew) masses_.set(k, s.counted_mass(k));
        view_.refresh(k);
        double w = unit_ * view_.factor(k);
        if constexpr (Emission::kIsSeating) {
            if (k != kStart) w /= total_weight(totals_[k], offset_);
        }
        w_[k] = static_cast<float>(w);
    }
    int32_t bar_of(const Transitions &s, int32_t k) const {
        return s.is_served(k) || k == masses_.apart ? k : kNew;  // planted: column of a label
    }
    void open_labels(const Transitions &s) { labels_.open(s, masses_.apart >= 0 ? -1 : ghost_); }

    // The old path in columns, and its slices.
    void map_old(Chain &chain, const Transitions &s) {
        int32_t j = i_;
        for (int64_t l = 0; l <= length_; ++l) {
            Step &step = steps_[l];
            const int32_t label = l < length_ ? chain.states[start_ + l] : o_;
            const int32_t k = label < 0 ? -1 : bar_of(s, label);
            step.bar = k;
            step.n = 0.0;
            view_.open_step(l, k);
            if (k < 0) return;
            step.n = view_.counts(l, j, k, &chain.hints[start_ + l]);
            if constexpr (kSliced) {
                const double most = view_.link(l, j, k, step.n);  // planted: bound of a slice
                // planted: slice of a transition
                step.slice = std::max(kTiny, uniform(chain.bits) * most);
            }
            j = k;
        }
    }
    void name(Chain &chain, int32_t *path, Product *q) {
        open_labels(*chain.transitions);
        size_t n_fresh = 0;
        int32_t before = -1;            // the label of a step before in a new state
        for (int64_t l = 0; l < length_; ++l) {
            const bool is_fresh = path[l] == kNew;
            if (is_fresh) {
                labels_.set_self_share(chain.transitions->self_share_at(start_ + l));
                path[l] = labels_.draw(chain.bits, before);  // planted: label of a path
                if (path[l] < 0) path[l] = chain.free_slot(n_fresh++);
                q->multiply(labels_.seat(path[l], before));  // planted: seat of a label
            }
            before = is_fresh ? path[l] : -1;
        }
    }

    // ---- forward

    float *message(int64_t l) { return messages_.data() + static_cast<size_t>(l) * stride_; }
    const float *message(int64_t l) const {
        return messages_.data() + static_cast<size_t>(l) * stride_;
    }
    void filter(Emission &emission) {
        // The first step is reached from i alone.
        kept_[0] = i_;
        n_kept_ = 1;
        for (int64_t l = 0; l < length_; ++l) {
            const float *before = l ? message(l - 1) : nullptr;
            if (l) {
                // The more states, the more of them lie below a given multiple of the mean.
                const double n = masses_.n_live, cut = cut_ * std::min(1.0, kFew / n);
                const double least = cut / n * steps_[l - 1].sum_f;
                n_kept_ = blocked_passes.select(stride_, static_cast<float>(least), before,
                                                view_.sizes(l - 1), kept_.data());
            }
            emit(emission, l, kSliced ? spread_slices(l, before) : spread_rows(l, before));
        }
    }
    // g_k = sum over kept j of f_j R_j counts_jk; returns the addition per unit of base.
    SKIHMM_INLINE double spread_rows(int64_t l, const float *before) {
        float *g = g_.data();
        if (!before) {
            const double h = view_.rest(0, i_);
            view_.spread(0, i_, h, g);
            return view_.scale() * h;
        }
        const double share = 1.0 / steps_[l - 1].sum_f, sum = steps_[l - 1].sum * share;
        double taken = 0.0, rest = 0.0;
        for (int32_t at = 0; at < n_kept_; ++at) {
            const int32_t j = kept_[at];
            const double h = before[j] * share;
            view_.take(l, j, h, &taken);
            view_.spread(l, j, h, g);
        }
        if (cut_ > 0.0) rest = std::max(0.0, 1.0 - view_.smooth_weight() * sum - taken);
        return view_.scale() * (sum + rest / view_.smooth_weight());
    }
    // g_k = sum over kept j of f_j 1[pi[j,k] >= u]; returns the same.
    double spread_slices(int64_t l, const float *before) {
        float *g = g_.data();
        const auto &u = steps_[l].slice;
        const double share = before ? 1.0 / steps_[l - 1].sum_f : 1.0;
        double kept = 0.0;
        for (int32_t at = 0; at < n_kept_; ++at) {
            const double f = before ? before[kept_[at]] * share : 1.0;
            kept += f;
            view_.spread_slice(l, kept_[at], f, u, g);
        }
        view_.finish_slice(g);
        if (!before || !(cut_ > 0.0)) return 0.0;
        // 1[pi >= u] is at most pi/u, and mostly far less: with 0.3 for 0.03 the share of
        // rejected moves (words of Alice, 750 states) was 2.7 % instead of 1.7 %.  Never zero:
        // the old path may be part of the rest, and the proposal must give it a positive
        // probability.
        return 0.03 * std::max(kLeastRest, 1.0 - kept) * view_.scale()
               / (view_.smooth_weight() * u);
    }
    // f_k = (g_k + smooth base_k) F_k(y[t]), stored as f_k R_k without slices; clears g.
    void emit(Emission &emission, int64_t l, double smooth) {
        float *out = message(l);
        Step &step = steps_[l];
        SymbolColumn column;
        bool has_column = false;
        if constexpr (Emission::kIsSeating) has_column = emission.column(start_ + l, &column);
        if (!has_column) fill_row(emission, start_ + l);
        const float *w = view_.weigh(l, has_column ? w_.data() : row_.data(), row_.data());
        const float *base = view_.base(l, &smooth), *size = view_.sizes(l);
        double sums[2];
        blocked_passes.emit(stride_, static_cast<float>(smooth), base, w, size, g_.data(), out,
                            sums);
        if (SKIHMM_UNLIKELY(!is_usable(sums[1]))) begin_anew(l, out, sums);
        step.sum = sums[0];
        step.sum_f = sums[1];
        if (!has_column) return;
        // Contribution of the symbol's counts, over the smooth part as the common factor.
        const double by_smooth = 1.0 / column.smooth;
        double extra = 0.0, extra_f = 0.0;
        for (int32_t at = 0; at < column.size; ++at) {
            const int32_t k = column.ids[at];
            const double before = out[k];
            out[k] = static_cast<float>(before + before * (column.counts[at] * by_smooth));
            const double more = out[k] - before;
            extra += more;
            extra_f += more * size[k];
        }
        step.sum += extra;
        step.sum_f += extra_f;
    }
    static bool is_usable(double sum) {
        return sum > 0.0 && sum < std::numeric_limits<float>::max();
    }
    // The message has underflowed, or is too large for floats.
    SKIHMM_NOINLINE void begin_anew(int64_t l, float *out, double *sums) {
        std::fill(g_.begin(), g_.end(), 0.0f);
        view_.drop_sizes(l);
        const float *size = view_.sizes(l);
        blocked_passes.emit(stride_, 1.0f, masses_.floats.data(), w_.data(), size, g_.data(),
                            out, sums);
        if (is_usable(sums[1])) return;
        sums[0] = sums[1] = 0.0;
        for (int32_t k = 0; k < stride_; ++k) {
            out[k] = k < n_slots_ && masses_.all[k] > 0.0 ? 1.0f : 0.0f;
            sums[0] += out[k];
            sums[1] += static_cast<double>(out[k]) * size[k];
        }
    }
    // Emissions that give whole rows, over their largest entry: floats have little room.
    void fill_row(Emission &emission, int64_t t) {
        if constexpr (Emission::kIsSeating) {
            for (int32_t k = 0; k < n_slots_; ++k) row_[k] = static_cast<float>(view_.factor(k));
            return;
        } else {
            emission.fill_probs(t, probs_.data());
            if (ghost_ >= 0) emission.allow_table(ghost_, probs_.data());
            double most = std::numeric_limits<double>::min();
            for (int32_t k = 0; k < n_slots_; ++k)
                if (masses_.all[k] > 0.0) most = std::max(most, probs_[k]);
            for (int32_t k = 0; k < n_slots_; ++k) {
                const double p = std::min(std::max(probs_[k] / most, 1e-20), 1.0);
                row_[k] = static_cast<float>(p * view_.factor(k));
            }
        }
    }

    // ---- backward

    // f_l(j) pi[j,k], or without a successor f_l(j).
    double path_factor(int64_t l, int32_t j, int32_t k, double n) {
        const double f = message(l)[j];
        // planted: factor of a step
        if (kSliced) return k < 0 ? f : f * view_.link(l + 1, j, k, n);
        return k < 0 ? f * view_.sizes(l)[j] : f * dish_weight(n, view_.base_of(l + 1, k));
    }
    // The part of j in Z_l(k).
    double weight(int64_t l, int32_t j, int32_t k, double n) {
        if (!kSliced) return path_factor(l, j, k, n);
        const double f = message(l)[j];
        return k < 0 || view_.link(l + 1, j, k, n) >= steps_[l + 1].slice ? f : 0.0;
    }
    double total(int64_t l, int32_t k) {
        const float *f = message(l);
        if (k < 0) {
            double sum = 0.0;
            for (int32_t j = 0; j < n_slots_; ++j) sum += path_factor(l, j, -1, 0.0);
            return sum;
        }
        if constexpr (kSliced) return view_.sum_passing(l + 1, k, steps_[l + 1].slice, f);
        double sparse = view_.sum_column(l + 1, k, f);
        if (SKIHMM_UNLIKELY(view_.has_stays())) sparse += f[k] * view_.stay(l + 1, k);
        return sparse + view_.base_of(l + 1, k) * steps_[l].sum;
    }
    // A label other than `skip` before k: the one in whose part of Z_l(k) u lies.  n is set
    // to the counts of the transition.
    // planted: draw of a label before
    SKIHMM_NOINLINE int32_t draw(int64_t l, int32_t k, double u, int32_t skip, double *n) {
        const float *f = message(l);
        int32_t chosen = skip, none = -1;
        auto take = [&](int32_t j, double value) {
            if (j == skip || !(value > 0.0)) return false;
            chosen = j;
            return (u -= value) < 0.0;
        };
        if (k < 0) {
            for (int32_t j = 0; j < n_slots_; ++j)
                if (take(j, path_factor(l, j, k, 0.0))) break;
        } else if constexpr (kSliced) {
            view_.visit_passing(l + 1, k, steps_[l + 1].slice, f,
                                [&](int32_t j) { return take(j, f[j]); });
        } else if (!view_.visit_column(l + 1, k, [&](int32_t j, double n_jk) {
                       return take(j, f[j] * n_jk);
                   }) && !(view_.has_stays() && take(k, f[k] * view_.stay(l + 1, k)))) {
            const double base = view_.base_of(l + 1, k);
            for (int32_t j = 0; j < n_slots_; ++j)
                if (take(j, f[j] * base)) break;
        }
        if (chosen != skip) *n = k < 0 ? 0.0 : view_.counts(l + 1, chosen, k, &none);
        return chosen;
    }

    // Keeps a slice above the pi of slots without a state, which is zero.
    static constexpr double kTiny = std::numeric_limits<double>::min();
    static constexpr int32_t kLanes = 16;
    static constexpr double kFew = 400.0;
    // The least share of a message that is spread over all states.
    static constexpr double kLeastRest = 1e-12;

    const double cut_;
    double unit_ = 1.0;             // power of two in w_
    int32_t n_slots_ = 0, stride_ = 0;
    const int32_t *totals_ = nullptr;
    double offset_ = 1.0;
    LabelMasses masses_;
    LawView<kSliced> view_;
    // By slot, at s_0.  Messages, and numbers used in messages only, are floats: their rounding
    // changes the proposal, not its probability.
    WideVector<float> w_;           // d_k, times the constant part of R
    WideVector<float> g_;           // zero between steps
    WideVector<float> row_;         // F_k(y[t]) R, if not w_
    std::vector<double> probs_;
    std::vector<int32_t> kept_;     // states whose rows are sent on
    int32_t n_kept_ = 0;
    // this block
    int64_t start_ = 0, length_ = 0;
    int32_t i_ = 0, o_ = 0, ghost_ = -1;
    std::vector<Step> steps_;
    WideVector<float> messages_;   // by step of the block, then by slot
    FreshLabels labels_;
};

template <class Emission>
using BlockedMessages = Blocked<Emission, TableView, false>;
template <class Emission>
using BlockedSlices = Blocked<Emission, TableView, true>;

}  // namespace skihmm
