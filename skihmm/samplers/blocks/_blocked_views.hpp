// The law of transitions for _blocked.hpp: of plain restaurants here, in a tree of restaurants in
// _tree_blocks.hpp.
//
//     p(k | j) = R_j (counts_jk + [j = k] stay_k + base_k),
//     counts_jk = sum over depths d of v_d(j) n_d(j, k),
//
// of the transition into each step of a block, at s_0: sparse counts and a base that all labels j
// share.  Without contexts there is one depth with v = 1, and R_j = c_j = 1/total(j) is the same at
// every step, unless coins have inputs: then R_j = leave_j c_j.  In a tree of restaurants
// (_contexts.hpp), of sizes N_e = n_e + a_e and concentrations a_e,
//
//     R_j = leave_j prod_e a_e/N_e(j),   v_d(j) = prod_{e<d} N_e(j) / prod_{e<=d} a_e,
//
// over the depths that depend on j, and the base is the law of the restaurants above these.
//
// Messages are stored as f_j R_j of the transition that follows, so that they need no R.  With
// slices they are f_j, and p(k | j) is a sum in one fixed order (link), which every comparison with
// a slice repeats to the bit.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_blocked_vector.hpp"
#include "_transitions.hpp"
#include "_vector.hpp"

namespace skihmm {

// By slot, at s_0: the tables of a label; of NEW, which stands for all labels that no table serves,
// gamma; and of a label that is apart from it, the same.
struct LabelMasses {
    WideVector<double> all;
    WideVector<float> floats;
    double largest = 0.0;           // at least every mass
    // Represented states and NEW.  Not the number of slots: that depends on the labels of the
    // whole chain, and the path back would be proposed with another cut.
    int32_t n_live = 0;
    int32_t apart = -1;             // the successor if it has a column of its own

    void clear(int32_t n) {
        all.assign(n, 0.0);
        floats.assign(n, 0.0f);
        largest = 0.0;
        n_live = 0;
    }
    void set(int32_t k, double mass) {
        n_live += (mass > 0.0) - (all[k] > 0.0);
        largest = std::max(largest, mass);
        all[k] = mass;
        floats[k] = static_cast<float>(mass);
    }
};

// out[k] = by[k] a c[k]; by and out may be the same.
SKIHMM_CLONES static void scale_row(int32_t n, float a, const float *by, const float *c,
                                    float *out) {
    for (int32_t k = 0; k < n; ++k) out[k] = by[k] * (a * c[k]);
}

// Coins of the steps of a block, by slot, at s_0: one row for all steps, or, with inputs, a row for
// each step.
class StepCoins {
  public:
    void attach(const HCRPTransitions &s, int32_t n_slots, int32_t stride) {
        s_ = &s;
        n_slots_ = n_slots;
        stride_ = stride;
        by_step_ = s.has_inputs() ? stride : 0;
        stays_.assign(stride, 0.0f);
        leaves_.assign(stride, 1.0f);
        by_leaves_.assign(stride, 1.0f);
        for (auto *row : {&own_stays_, &own_leaves_}) row->assign(n_slots, 0.0);
    }
    // Without inputs.
    void refresh(int32_t k) {
        if (by_step_ != 0) return;
        double stay, leave;
        s_->look(0, k, &stay, &leave);
        set(k, stay, leave * s_->escape_of(k));
    }
    // With inputs: step l of the block is step t.
    void open_step(int64_t t, int64_t l) {
        if (by_step_ == 0) return;
        const size_t from = static_cast<size_t>(l) * stride_;
        for (auto *rows : {&stays_, &leaves_, &by_leaves_})
            if (rows->size() < from + stride_) rows->resize(from + stride_, 1.0f);
        s_->fill_coins(t, n_slots_, own_stays_.data(), own_leaves_.data());
        narrow(n_slots_, own_stays_.data(), own_leaves_.data(), &stays_[from], &leaves_[from],
               &by_leaves_[from]);
    }
    const float *stays(int64_t l) const { return &stays_[l * by_step_]; }
    const float *leaves(int64_t l) const { return &leaves_[l * by_step_]; }
    const float *by_leaves(int64_t l) const { return &by_leaves_[l * by_step_]; }

  private:
    // Keeps quotients by a leave in the range of floats.
    static constexpr double kLeast = 1e-12;

    SKIHMM_CLONES static void narrow(int32_t n, const double *stays, const double *leaves,
                                     float *__restrict out, float *__restrict leaves_out,
                                     float *__restrict by_leaves) {
        for (int32_t k = 0; k < n; ++k) {
            out[k] = static_cast<float>(stays[k]);
            leaves_out[k] = static_cast<float>(leaves[k] > kLeast ? leaves[k] : kLeast);
            by_leaves[k] = 1.0f / leaves_out[k];
        }
    }
    void set(size_t at, double stay, double leave) {
        stays_[at] = static_cast<float>(stay);
        leaves_[at] = static_cast<float>(leave);
        by_leaves_[at] = 1.0f / leaves_[at];
    }

    const HCRPTransitions *s_ = nullptr;
    int32_t n_slots_ = 0, stride_ = 0;
    int64_t by_step_ = 0;
    WideVector<float> stays_, leaves_, by_leaves_;      // the last is 1/leave
    std::vector<double> own_stays_, own_leaves_;     // of one step
};

template <bool kSliced>
class TableView {
  public:
    explicit TableView(const LabelMasses &masses) : masses_(masses) {}

    void attach(const HCRPTransitions &s, int32_t n_slots, int32_t stride) {
        s_ = &s;
        n_slots_ = n_slots;
        stride_ = stride;
        c_.assign(stride, 0.0);
        size_.assign(stride, 1.0f);
        has_inputs_ = s.has_inputs();
        if (has_inputs_) coins_.attach(s, n_slots, stride);
        found_.resize(kSliced ? stride + kLanes : 0);
    }
    void refresh(int32_t k) {
        const double size = s_->total(k);
        c_[k] = 1.0 / size;
        if (!kSliced) size_[k] = static_cast<float>(size);
    }
    void open(int64_t start, int64_t length) {
        scale_ = s_->scale();
        if (SKIHMM_LIKELY(!has_inputs_)) return;
        start_ = start;
        const size_t room = static_cast<size_t>(length + 1) * stride_;
        if (kSliced) shares_.resize(std::max(shares_.size(), room));
        else sizes_.resize(std::max(sizes_.size(), room));
        ends_.assign(length + 1, 0);
    }
    // The old label of step l, -1 if there is none, is k.
    void open_step(int64_t l, int32_t k) {
        if (SKIHMM_LIKELY(!has_inputs_)) return;
        ends_[l] = k < 0;
        if (ends_[l]) return;
        coins_.open_step(start_ + l, l);
        if (!kSliced) return;
        double *c = &shares_[static_cast<size_t>(l) * stride_];
        for (int32_t j = 0; j < stride_; ++j) c[j] = c_[j] * coins_.leaves(l)[j];
    }
    // The base is `scale` times a mass, and scale times smooth_weight if all masses are added up.
    double scale() const { return scale_; }
    double smooth_weight() const { return s_->smooth_weight(); }

    // ---- messages

    // Logarithm of the unit that keeps stored messages in the range of floats.
    double log2_unit() const { return std::log2(s_->smooth_weight()) / 2; }
    // R, as far as it is the same at all steps.
    double factor(int32_t k) const { return kSliced ? 1.0 : c_[k]; }
    // w R of the step after message l (`row` may hold it), and 1/R.
    const float *weigh(int64_t l, const float *w, float *row) {
        if (SKIHMM_LIKELY(!has_inputs_ || kSliced)) return w;
        float *sizes = &sizes_[static_cast<size_t>(l) * stride_];
        if (ends_[l + 1]) {
            std::copy_n(size_.data(), stride_, sizes);
            return w;
        }
        scale_row(stride_, 1.0f, w, coins_.leaves(l + 1), row);
        scale_row(stride_, 1.0f, size_.data(), coins_.by_leaves(l + 1), sizes);
        return row;
    }
    const float *sizes(int64_t l) const {
        return SKIHMM_LIKELY(!has_inputs_ || kSliced) ? size_.data()
                                                      : &sizes_[static_cast<size_t>(l) * stride_];
    }
    void drop_sizes(int64_t) const {}
    const float *base(int64_t, double *) const { return masses_.floats.data(); }
    double rest(int64_t l, int32_t j) const {
        return SKIHMM_LIKELY(!has_inputs_) ? c_[j] : c_[j] * coins_.leaves(l)[j];
    }
    // g_k += h (counts_jk + stay); `take` adds the share of the message for this and the loss.
    SKIHMM_INLINE void spread(int64_t l, int32_t j, double h, float *g) const {
        const float h_f = static_cast<float>(h);
        s_->row(j).for_fours([&](int32_t, int32_t k, int32_t n) {
            g[k] += h_f * static_cast<float>(n);
        });
        if (SKIHMM_UNLIKELY(s_->has_self_weight()))
            g[j] += h_f * static_cast<float>(s_->self_weight(j));  // planted: stay in a message
        else if (SKIHMM_UNLIKELY(has_inputs_))
            g[j] += static_cast<float>(h * stay(l, j));
    }
    SKIHMM_INLINE void take(int64_t l, int32_t j, double h, double *taken) const {
        if (SKIHMM_UNLIKELY(has_inputs_)) {
            *taken += h * (sizes(l - 1)[j] - s_->smooth_weight());
            return;
        }
        *taken += h * s_->sparse_weight(j);
        if (SKIHMM_UNLIKELY(s_->has_self_weight())) *taken += h * s_->lost_weight(j);
    }
    double base_of(int64_t, int32_t k) const {
        return new_table_weight(scale_, masses_.all[k]);
    }
    bool has_stays() const { return s_->has_self_weight() || has_inputs_; }
    SKIHMM_INLINE double stay(int64_t l, int32_t k) const {
        if (SKIHMM_LIKELY(!has_inputs_)) return s_->self_weight(k);
        return s_->total(k) * coins_.stays(l)[k] * coins_.by_leaves(l)[k];
    }
    // counts_jk, with the stay.
    double counts(int64_t l, int32_t j, int32_t k, const int32_t *hint) const {
        if (j == kNew || k == kNew) return j == k ? stay(l, kNew) : 0.0;
        const double n = s_->pair_weight(j, k, *hint);
        return SKIHMM_UNLIKELY(has_inputs_ && j == k) ? n + stay(l, k) : n;
    }
    // sum_j f_j counts_jk without stays, and visit(j, counts_jk) until it returns to stop.
    double sum_column(int64_t, int32_t k, const float *f) const {
        const Line &column = s_->column(k);
        Pair sum = Pair::of(0.0);
        for (int32_t at = 0; at < column.size; at += 2)
            sum = sum + pair_at(f, column.ids[at], column.ids[at + 1])
                        * Pair::next(column.counts + at);
        return sum.sum();
    }
    template <class Visit> bool visit_column(int64_t, int32_t k, Visit visit) const {
        const Line &column = s_->column(k);
        for (int32_t at = 0; at < column.size; ++at)
            if (visit(column.ids[at], column.counts[at])) return true;
        return false;
    }

    // ---- slices

    double link(int64_t l, int32_t j, int32_t k, double n) const {
        return link(n, masses_.all[k], shares(l)[j]);
    }
    // g_k += f 1[p(k | j) >= u].
    //
    // If u is so small that p(k | j) passes without customers, it passes for all m_k from some
    // number on: f is added there to bins_, whose sums up to m_k go to k.  (Into the first step
    // leads one row, for which one pass is faster.)
    SKIHMM_INLINE void spread_slice(int64_t l, int32_t j, double f, double u, float *g) {
        const double *mass = masses_.all.data(), c = shares(l)[j];
        const int32_t apart = masses_.apart;
        const float if_passes[2] = {0.0f, static_cast<float>(f)};
        if (has_stays()) g[j] += if_passes[passes_as_self(l, j, c, mass[j], u)];
        if (!(link(0.0, masses_.largest, c) >= u)) {
            s_->row(j).for_fours([&](int32_t, int32_t k, int32_t n) {
                g[k] += if_passes[link(n, mass[k], c) >= u];
            });
            return;
        }
        const double from = u / (scale_ * c);
        if (l > 0 && from <= kBins - 1) {
            const int32_t bin = static_cast<int32_t>(std::ceil(from));
            if (bin <= masses_.largest) {
                first_bin_ = std::min(first_bin_, bin);
                last_bin_ = std::max(last_bin_, bin);
                bins_[bin] += if_passes[1];
            }
            g[kNew] += if_passes[link(0.0, mass[kNew], c) >= u];
            if (apart >= 0) g[apart] += if_passes[link(0.0, mass[apart], c) >= u];
        } else {
            add_where(stride_, scale_, mass, c, u, if_passes[1], g);
        }
        s_->row(j).for_fours([&](int32_t, int32_t k, int32_t n) {
            g[k] += if_passes[(link(n, mass[k], c) >= u) & !(link(0.0, mass[k], c) >= u)];
        });
    }
    // After all labels of a step.
    void finish_slice(float *g) {
        if (first_bin_ == kBins) return;
        float sum = 0.0f;
        for (int32_t m = first_bin_; m <= last_bin_; ++m) bins_[m] = sum += bins_[m];
        // size_ is one everywhere.  NEW and the label apart already have their shares.
        const int32_t n = blocked_passes.select(stride_, first_bin_ - 0.5f, masses_.floats.data(),
                                                size_.data(), found_.data());
        for (int32_t at = 0; at < n; ++at) {
            const int32_t k = found_[at];
            if (k == kNew || k == masses_.apart) continue;
            g[k] += bins_[std::min(s_->tables_of(k), last_bin_)];
        }
        std::fill(bins_ + first_bin_, bins_ + last_bin_ + 1, 0.0f);
        first_bin_ = kBins;
        last_bin_ = 0;
    }
    // sum_j f_j 1[p(k | j) >= u], and visit(j) for passing j with f_j > 0, until it returns to
    // stop.
    double sum_passing(int64_t l, int32_t k, double u, const float *f) const {
        const Line &column = s_->column(k);
        const double mass = masses_.all[k], smooth = new_table_weight(scale_, mass);
        const double *c = shares(l);
        if (is_listed(smooth, u)) {
            const Pair b = Pair::of(smooth), least = Pair::of(u);
            Pair sums[2] = {Pair::of(0.0), Pair::of(0.0)};
            for (int32_t at = 0; at < column.size; at += 4)
                for (int32_t half = 0; half < 2; ++half) {
                    const int32_t *ids = column.ids + at + 2 * half;
                    const Pair n = Pair::next(column.counts + at + 2 * half),
                               p = (n + b) * Pair::at(c, ids[0], ids[1]);
                    sums[half] =
                        sums[half] + pair_at(f, ids[0], ids[1]).where_at_least(p, least);
                }
            return sums[0].sum() + sums[1].sum();
        }
        double sum = blocked_passes.sum_where(stride_, smooth, c, u, f);
        if (passes_as_self(l, k, c[k], mass, u)) sum += f[k];
        for (int32_t at = 0; at < column.size; ++at) {
            const int32_t j = column.ids[at];
            sum += f[j] * static_cast<double>((link(column.counts[at], mass, c[j]) >= u)
                                              & !(link(0.0, mass, c[j]) >= u));
        }
        return sum;
    }
    template <class Visit>
    void visit_passing(int64_t l, int32_t k, double u, const float *f, Visit visit) const {
        const Line &column = s_->column(k);
        const double mass = masses_.all[k], *c = shares(l);
        for (int32_t at = 0; at < column.size; ++at) {
            const int32_t j = column.ids[at];
            if (f[j] > 0.0f && !(link(0.0, mass, c[j]) >= u)
                && link(column.counts[at], mass, c[j]) >= u && visit(j))
                return;
        }
        if (is_listed(new_table_weight(scale_, mass), u)) return;
        if (passes_as_self(l, k, c[k], mass, u) && visit(k)) return;
        for (int32_t j = 0; j < n_slots_; ++j)
            if (f[j] > 0.0f && link(0.0, mass, c[j]) >= u && visit(j)) return;
    }

  private:
    double link(double n, double mass, double c) const {
        return dish_weight(n, scale_, mass) * c;
    }
    // Whether only labels with transitions to k pass, whose new tables have this weight: without a
    // weight of self-transitions no c exceeds a new state's.
    bool is_listed(double smooth, double u) const {
        return !has_stays() && !(smooth * c_[kNew] >= u);
    }
    // Whether k -> k passes the slice u by its self_weight only, in the loops over customers and
    // over the smooth part not.
    bool passes_as_self(int64_t l, int32_t k, double c, double mass, double u) const {
        if (!has_stays()) return false;
        const int32_t none = -1;
        return link(counts(l, k, k, &none), mass, c) >= u
               && !(link(s_->count(k, k), mass, c) >= u);
    }

    // R of the transition into step l.
    const double *shares(int64_t l) const {
        return SKIHMM_LIKELY(!has_inputs_) ? c_.data()
                                           : &shares_[static_cast<size_t>(l) * stride_];
    }

    static constexpr int32_t kLanes = 16, kBins = 1024;

    const LabelMasses &masses_;
    const HCRPTransitions *s_ = nullptr;
    int32_t n_slots_ = 0, stride_ = 0;
    double scale_ = 0.0;
    WideVector<double> c_;          // 1/(n_k + alpha)
    WideVector<float> size_;        // the inverse; with slices 1
    // With inputs, by step of the block, and then by slot: 1/R of the step after it, or with
    // slices R; and whether it stands for no successor.
    bool has_inputs_ = false;
    int64_t start_ = 0;
    StepCoins coins_;
    WideVector<float> sizes_;
    WideVector<double> shares_;
    std::vector<uint8_t> ends_;
    std::vector<int32_t> found_;
    int32_t first_bin_ = kBins, last_bin_ = 0;      // of those that are not zero
    float bins_[kBins] = {};        // zero between steps
};

}  // namespace skihmm
