// Blocks in a tree of restaurants: the law of transitions for _blocked.hpp, as in
// _blocked_views.hpp, and the choice of the kernel that suits a law.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_blocked.hpp"
#include "_blocked_views.hpp"
#include "_transitions.hpp"
#include "_vector.hpp"

namespace skihmm {

// g[k] += f where sparse[k] + r base[k] >= u.
SKIHMM_CLONES static void add_passing(int32_t n, const double *sparse, double r,
                                      const double *base, double u, float f, float *g) {
    for (int32_t k = 0; k < n; ++k) g[k] += sparse[k] + r * base[k] >= u ? f : 0.0f;
}

// With slices p(k | j) is the sum of the counts' parts, from the leaf on, then R_j base(k), then
// the stay.  A row of the first depth has all labels of the rows below, so only its labels are
// tried, unless the base alone may pass; labels that pass only with a stay are tried apart.
template <bool kSliced>
class TreeView {
  public:
    explicit TreeView(const LabelMasses &masses) : masses_(masses) {}

    void attach(const HCRPTransitions &s, int32_t n_slots, int32_t stride) {
        s_ = &s;
        tree_ = &s.contexts();
        tree_->refresh();
        has_coins_ = s.coins().exist();
        n_slots_ = n_slots;
        stride_ = stride;
        n_depths_ = tree_->shape.depth() + 1;
        first_ = tree_->state_depth();
        ones_.assign(stride, 1.0f);
        coins_.attach(s, n_slots, stride);
        sparse_.assign(kSliced ? stride : 0, 0.0);
        counts_.resize(n_depths_);
        inverses_.assign(n_depths_, nullptr);
        alphas_.assign(n_depths_, 0.0);
        for (int32_t d = 1; d < n_depths_; ++d) alphas_[d] = tree_->alpha(d);
    }
    void refresh(int32_t k) {
        if (SKIHMM_UNLIKELY(has_coins_)) coins_.refresh(k);
    }
    void open(int64_t start, int64_t length) {
        tree_->refresh();
        start_ = start;
        last_ = length;
        steps_.resize(std::max<size_t>(steps_.size(), length + 1));
        prefixes_.resize(std::max<size_t>(prefixes_.size(), (length + 1) * n_depths_));
        const size_t room = static_cast<size_t>(length) * stride_;
        if (!kSliced) sizes_.resize(std::max(sizes_.size(), room));
        if (tree_->shape.n_before > 0) bases_.resize(kSliced ? room + stride_ : stride_);
    }
    // The old label of step l, -1 if there is none, is k.
    void open_step(int64_t l, int32_t k) {
        Step &step = steps_[l];
        step.at = tree_->place(start_ + l);
        step.is_end = k < 0;
        if (step.is_end) step.at.depth = 0;
        else if (SKIHMM_UNLIKELY(has_coins_)) coins_.open_step(start_ + l, l);
        tree_->fill_prefixes(step.at, prefixes(l));
        if (kSliced) find_base(l, k);
    }
    static constexpr double scale() { return 1.0; }
    static constexpr double smooth_weight() { return 1.0; }

    // ---- messages

    static constexpr double log2_unit() { return 0.0; }
    static constexpr double factor(int32_t) { return 1.0; }
    const float *weigh(int64_t l, const float *w, float *row) {
        if (kSliced) return w;
        const Step &next = steps_[l + 1];
        const int32_t *prefix = prefixes(l + 1);
        float *size = stored_sizes(l);
        const float *size_above = ones_.data();
        for (int32_t d = first_; d <= next.at.depth; ++d) {
            const float a = static_cast<float>(alphas_[d]);
            scale_row(stride_, a, w, tree_->inverse_f(d, prefix[d]), row);
            scale_row(stride_, 1.0f / a, size_above, tree_->sizes(d, prefix[d]), size);
            w = row;
            size_above = size;
        }
        if (SKIHMM_UNLIKELY(has_coins_ && !next.is_end)) {
            scale_row(stride_, 1.0f, w, coins_.leaves(l + 1), row);
            scale_row(stride_, 1.0f, size_above, coins_.by_leaves(l + 1), size);
            return row;
        }
        if (size_above != size) std::copy_n(size_above, stride_, size);
        return w;
    }
    const float *sizes(int64_t l) const {
        return kSliced ? ones_.data() : &sizes_[static_cast<size_t>(l) * stride_];
    }
    void drop_sizes(int64_t l) {
        if (!kSliced) std::fill_n(stored_sizes(l), stride_, 1.0f);
    }
    // The base of all labels at step l, over a factor that `smooth` takes.
    const float *base(int64_t l, double *smooth) {
        if (tree_->shape.n_before == 0 || steps_[l].at.depth == 0 || *smooth == 0.0) {
            *smooth /= total_weight(tree_->root().n_tables, tree_->root().gamma);
            return masses_.floats.data();
        }
        const double *base = kSliced ? steps_[l].base : bases_.data();
        if (!kSliced) tree_->fill_base(steps_[l].at, bases_.data());
        base_f_.resize(stride_);
        for (int32_t k = 0; k < n_slots_; ++k) base_f_[k] = static_cast<float>(base[k]);
        if (masses_.apart >= 0) base_f_[masses_.apart] = base_f_[kNew];
        return base_f_.data();
    }
    double rest(int64_t l, int32_t j) const { return 1.0 / by_rest(l, j); }
    SKIHMM_INLINE void spread(int64_t l, int32_t j, double h, float *g) {
        for (int32_t d = first_; d <= steps_[l].at.depth; ++d) {
            const float share = static_cast<float>(h * by_depth(l, d, j));
            row_line(l, d, j).for_fours([&](int32_t, int32_t k, int32_t n) {
                g[k] += share * static_cast<float>(n);
            });
        }
        if (SKIHMM_UNLIKELY(has_coins_)) g[j] += static_cast<float>(h * stay(l, j));
    }
    SKIHMM_INLINE void take(int64_t l, int32_t j, double h, double *taken) const {
        *taken += h * sizes(l - 1)[j] - h;
    }
    double base_of(int64_t l, int32_t k) const {
        return tree_->base_of(steps_[l].at.depth, prefixes(l), k);
    }
    bool has_stays() const { return has_coins_; }
    double stay(int64_t l, int32_t k) const { return by_rest(l, k) * coins_.stays(l)[k]; }
    double counts(int64_t l, int32_t j, int32_t k, int32_t *hint) {
        const ContextPlace at = steps_[l].at;
        // With slices a stay comes last, in `link`.
        // planted: stay of a pair
        double sum = !kSliced && has_coins_ && j == k ? stay(l, k) : 0.0;
        if (j == kNew || k == kNew || at.depth < first_) return sum;
        tree_->fill_counts(at, j, k, hint, counts_.data());
        if constexpr (kSliced) {
            find_sizes(l);
            for (int32_t d = at.depth; d >= first_; --d) sum += share_of(d, j) * counts_[d];
        } else {
            for (int32_t d = first_; d <= at.depth; ++d)
                if (counts_[d]) sum += by_depth(l, d, j) * counts_[d];
        }
        return sum;
    }
    double sum_column(int64_t l, int32_t k, const float *f) {
        double sum = 0.0;
        visit_column(l, k, [&](int32_t j, double n) {
            sum += f[j] * n;
            return false;
        });
        return sum;
    }
    template <class Visit> SKIHMM_INLINE bool visit_column(int64_t l, int32_t k, Visit visit) {
        const int32_t *prefix = prefixes(l);
        for (int32_t d = first_; d <= steps_[l].at.depth; ++d) {
            const Line &line = column_line(l, d, k);
            double a = 1.0;
            for (int32_t e = first_; e <= d; ++e) a /= alphas_[e];
            for (int32_t at = 0; at < line.size; ++at) {
                const int32_t j = line.ids[at];
                double v = a;
                for (int32_t e = first_; e < d; ++e) v *= tree_->sizes(e, prefix[e])[j];
                if (visit(j, v * line.counts[at])) return true;
            }
        }
        return false;
    }

    // ---- slices

    double link(int64_t l, int32_t j, int32_t k, double n) {
        find_sizes(l);
        const double drawn = n + rest_of(j) * steps_[l].base[k];
        // planted: stay of a slice
        return SKIHMM_UNLIKELY(has_coins_ && j == k) ? drawn + coins_.stays(l)[k] : drawn;
    }
    template <class Real>
    void spread_slice(int64_t l, int32_t j, double f, const Real &u, float *g) {
        find_sizes(l);
        const double r = rest_of(j), *base = steps_[l].base;
        const float f_f = static_cast<float>(f);
        const bool is_wide = r * steps_[l].largest >= u;
        const int32_t last = first_ + !is_wide;
        double *sparse = sparse_.data();
        for (int32_t d = depth_; d >= last; --d) {
            const double w = share_of(d, j);
            row_line(l, d, j).for_fours(
                [&](int32_t, int32_t k, int32_t n) { sparse[k] += w * n; });
        }
        if (is_wide) {
            add_passing(n_slots_, sparse, r, base, u, f_f, g);  // planted: labels that pass
        } else if (first_ <= depth_) {
            const double w = share_of(first_, j);
            const float if_passes[2] = {0.0f, f_f};
            row_line(l, first_, j).for_fours([&](int32_t, int32_t k, int32_t n) {
                g[k] += if_passes[sparse[k] + w * n + r * base[k] >= u];
            });
        }
        if (last <= depth_) row_line(l, last, j).unscatter(sparse);
        if (passes_by_stay(l, j, u)) g[j] += f_f;
    }
    void finish_slice(float *) const {}
    template <class Real>
    double sum_passing(int64_t l, int32_t k, const Real &u, const float *f) {
        double sums[4] = {};
        for_passing(l, k, u, [&](int32_t lane, int32_t j, bool passes) {
            sums[lane] += f[j] * static_cast<double>(passes);
        });
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    template <class Real, class Visit>
    void visit_passing(int64_t l, int32_t k, const Real &u, const float *f, Visit visit) {
        bool is_done = false;
        for_passing(l, k, u, [&](int32_t, int32_t j, bool passes) {
            if (passes && f[j] > 0.0f && !is_done) is_done = visit(j);
        });
    }

  private:
    // The transition into a step of the block; a further Step stands for the successor.
    struct Step {
        ContextPlace at;
        bool is_end = false;
        // With slices: the base of all labels, which counts with a factor, and at least its
        // largest value.
        const double *base = nullptr;
        double by = 1.0, largest = 0.0;
    };

    int32_t *prefixes(int64_t l) { return &prefixes_[static_cast<size_t>(l) * n_depths_]; }
    const int32_t *prefixes(int64_t l) const {
        return &prefixes_[static_cast<size_t>(l) * n_depths_];
    }
    float *stored_sizes(int64_t l) { return &sizes_[static_cast<size_t>(l) * stride_]; }
    const Line &row_line(int64_t l, int32_t d, int32_t j) const {
        return tree_->row_line(d, tree_->shape.row(d, j, prefixes(l)[d]));
    }
    const Line &column_line(int64_t l, int32_t d, int32_t k) const {
        return tree_->column_line(d, k, prefixes(l)[d]);
    }
    // v_d(j) of the transition into step l, and 1/R_j.
    double by_depth(int64_t l, int32_t d, int32_t j) const {
        double v = 1.0 / alphas_[d];
        for (int32_t e = first_; e < d; ++e) v *= tree_->sizes(e, prefixes(l)[e])[j] / alphas_[e];
        return v;
    }
    double by_rest(int64_t l, int32_t j) const {
        double by = coins_.by_leaves(l)[j];
        for (int32_t e = first_; e <= steps_[l].at.depth; ++e)
            by *= tree_->sizes(e, prefixes(l)[e])[j] / alphas_[e];
        return by;
    }
    // Where all labels share restaurants below the top, write out their base.  For the successor
    // only the entry of its label k is read.
    void find_base(int64_t l, int32_t k) {
        Step &step = steps_[l];
        if (tree_->shape.n_before == 0 || step.at.depth == 0) {
            step.base = masses_.all.data();
            step.by = 1.0 / total_weight(tree_->root().n_tables, tree_->root().gamma);
            step.largest = masses_.largest;
            return;
        }
        double *base = &bases_[static_cast<size_t>(l) * stride_];
        step.base = base;
        step.by = 1.0;
        if (l == last_) {
            base[k] = step.largest = base_of(l, k);
            return;
        }
        tree_->fill_base(step.at, base);
        if (masses_.apart >= 0) base[masses_.apart] = base[kNew];
        step.largest = *std::max_element(base, base + n_slots_);
    }
    // Before the next three of the same step.
    void find_sizes(int64_t l) {
        depth_ = steps_[l].at.depth;
        by_ = steps_[l].by;
        leaves_ = coins_.leaves(l);
        for (int32_t d = first_; d <= depth_; ++d)
            inverses_[d] = tree_->inverse(d, prefixes(l)[d]);
    }
    // R_j v_d(j), R_j times the factor of the base, and the probability to draw after j.
    SKIHMM_INLINE double share_of(int32_t d, int32_t j) const {
        double share = leave_of(j);
        for (int32_t e = depth_; e > d; --e) share = share * inverses_[e][j] * alphas_[e];
        return share * inverses_[d][j];
    }
    double rest_of(int32_t j) const {
        return first_ > depth_ ? leave_of(j) * by_ : share_of(first_, j) * alphas_[first_] * by_;
    }
    double leave_of(int32_t j) const { return SKIHMM_UNLIKELY(has_coins_) ? leaves_[j] : 1.0; }
    // Whether k -> k passes the slice of step l, whose sizes have been found, by a stay: the
    // loops over draws leave it out.
    template <class Real> bool passes_by_stay(int64_t l, int32_t k, const Real &u) {
        if (SKIHMM_LIKELY(!has_coins_)) return false;
        const double stayed = coins_.stays(l)[k];
        // Mostly clear without a look at the counts.
        const double most = (1.0 + kRounding) * leaves_[k];
        if (!(stayed + most >= u)) return false;
        if (stayed >= u && !(most >= u)) return true;
        int32_t none = -1;
        const double drawn = counts(l, k, k, &none) + rest_of(k) * steps_[l].base[k];
        return drawn + stayed >= u && !(drawn >= u);
    }
    // visit(lane, j, whether p(k | j) passes the slice of step l) for all labels j that may.  The
    // lanes are four; in between is kNew, and does not pass.
    template <class Real, class Visit>
    SKIHMM_INLINE void for_passing(int64_t l, int32_t k, const Real &u, Visit visit) {
        find_sizes(l);
        const double base = steps_[l].base[k];
        // R_j is at most 1, but for its rounding errors.
        const bool is_wide = by_ * base >= u * (1.0 - kRounding);
        const int32_t last = first_ + !is_wide;
        double *sparse = sparse_.data();
        for (int32_t d = depth_; d >= last; --d)
            column_line(l, d, k).for_fours(
                [&](int32_t, int32_t j, int32_t n) { sparse[j] += share_of(d, j) * n; });
        if (is_wide) {
            for (int32_t j = 0; j < n_slots_; ++j)
                visit(j % 4, j, sparse[j] + rest_of(j) * base >= u);
        } else if (first_ <= depth_) {
            column_line(l, first_, k).for_fours([&](int32_t lane, int32_t j, int32_t n) {
                const double w = share_of(first_, j);
                visit(lane, j, sparse[j] + w * n + w * alphas_[first_] * by_ * base >= u);
            });
        }
        // Where a restaurant has customers its parent has some too.
        if (last <= depth_) column_line(l, last, k).unscatter(sparse);
        if (passes_by_stay(l, k, u)) visit(0, k, true);  // planted: slice passed by a stay
    }

    static constexpr double kRounding = 1e-10;

    const LabelMasses &masses_;
    const HCRPTransitions *s_ = nullptr;
    const ContextTree *tree_ = nullptr;
    bool has_coins_ = false;
    int32_t n_slots_ = 0, stride_ = 0, n_depths_ = 0, first_ = 1;
    std::vector<double> alphas_;                    // by depth
    WideVector<float> ones_;
    StepCoins coins_;
    const float *leaves_ = nullptr;                 // of one step
    int64_t start_ = 0, last_ = 0;                  // of this block
    std::vector<Step> steps_;
    std::vector<int32_t> prefixes_;                 // by step, then by depth
    WideVector<float> sizes_;                       // 1/R, by step, then by slot
    WideVector<float> base_f_;
    WideVector<double> bases_;                      // of shared restaurants, by step with slices
    std::vector<int32_t> counts_;                   // scratch, by depth
    WideVector<double> sparse_;                     // by label, zero between steps
    std::vector<const double *> inverses_;          // of one step
    int32_t depth_ = 0;
    double by_ = 1.0;
};

template <class Emission>
using TreeMessages = Blocked<Emission, TreeView, false>;
template <class Emission>
using TreeSlices = Blocked<Emission, TreeView, true>;

// The kernels that suit the law of a chain.
inline Proposal *make_blocked(Chain &chain, double cut) {
    if (chain.transitions->has_contexts()) return make_proposal<TreeMessages>(chain, cut);
    return make_proposal<BlockedMessages>(chain, cut);
}
inline Proposal *make_beam(Chain &chain, double cut) {
    if (chain.transitions->has_contexts()) return make_proposal<TreeSlices>(chain, cut);
    return make_proposal<BlockedSlices>(chain, cut);
}

}  // namespace skihmm
