// The blocked Gibbs and beam proposals of _blocked.hpp for transitions that depend on contexts.
//
// In a tree of restaurants (_contexts.hpp) the law of a step is sparse plus rank one too,
//
//     pi[j,k] = sum_d w_d(j) n_d(j, k) + R_j base(k),
//
// where R_j is the product of a_e/N_e over the restaurants of j, of size N_e = n_e + a_e.  A
// message is stored as f_j R_j: then what it sends through the counts of depth d,
//
//     f_j w_d(j) = (f_j R_j) v_d(j),   v_d(j) = prod_{e<d} N_e(j) / prod_{e<=d} a_e,
//
// needs no more than v_d, one number for the first depth.  The base does not depend on j.
//
// With coins of one stage (_coins.hpp) all of this has the factor leave_j, which R_j takes, and
// there is one more part, stay_j [j = k].  Then the successor has a column of its own if no table
// serves it, because its coin is its own, and new states may stay.
//
// With slices messages are stored as they are, and pi is the sum of the counts' parts, from the
// leaf on, and then R_j base(k): the same numbers, summed in the same order, decide everywhere.
// A row of the first depth has all labels that those below it have, so only these are looked at,
// unless the base alone may pass.  A stay adds to that last, and what passes only with it is looked
// at apart.
//
// Everything else is as there: messages are floats, rows of labels that hold little enter the
// next one by their total, and the probability of a path is computed from them in double.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_blocked_vector.hpp"
#include "_contexts.hpp"
#include "_fresh_labels.hpp"
#include "_rcd.hpp"

namespace skihmm {

// out[k] = by[k] a c[k], and so on; by and out may be the same.
SKIHMM_CLONES static void scale_row(int32_t n, float a, const float *by, const float *c,
                                    float *out) {
    for (int32_t k = 0; k < n; ++k) out[k] = by[k] * (a * c[k]);
}
SKIHMM_CLONES static void scale_row_twice(int32_t n, float a, const float *by, const float *c,
                                          const float *d, float *out) {
    for (int32_t k = 0; k < n; ++k) out[k] = by[k] * (a * c[k] * d[k]);
}
// g[k] += share f[k] size[k] stay[k].
SKIHMM_CLONES static void add_stays(int32_t n, float share, const float *f, const float *size,
                                    const float *stay, float *g) {
    for (int32_t k = 0; k < n; ++k) g[k] += share * f[k] * size[k] * stay[k];
}

// g[k] += f where sparse[k] + r base[k] >= u.
SKIHMM_CLONES static void add_passing(int32_t n, const double *sparse, double r,
                                      const double *base, double u, float f, float *g) {
    for (int32_t k = 0; k < n; ++k) g[k] += sparse[k] + r * base[k] >= u ? f : 0.0f;
}

template <class Chain, class Emission, bool kSliced>
class ContextBlocked {
  public:
    using Transitions = typename Chain::Transitions;
    static constexpr bool kReadsTouched = true, kReadsView = false, kMayBeExact = false;

    explicit ContextBlocked(double cut) : cut_(cut) {}

    void attach(Chain &chain, Emission &emission) {
        law_ = chain.transitions.get();
        tree_ = &law_->contexts();
        tree_->refresh();
        has_coins_ = law_->coins().exist();
        has_many_cells_ = tree_->n_cells() > kCachedTreeCells;
        n_slots_ = chain.n_slots;
        stride_ = tree_->padded();
        n_depths_ = tree_->shape.depth() + 1;
        first_ = tree_->first_own();
        if constexpr (Emission::kIsSeating) totals_ = emission.totals(&offset_);
        else probs_.resize(n_slots_);
        mass_f_.assign(stride_, 0.0f);
        w_.assign(stride_, 0.0f);
        g_.assign(stride_, 0.0f);
        row_.assign(stride_, 0.0f);
        ones_.assign(stride_, 1.0f);
        stays_.assign(stride_, 0.0f);
        leaves_.assign(stride_, 1.0f);
        by_leaves_.assign(stride_, 1.0f);
        base_.assign(stride_, 0.0);
        kept_.resize(stride_ + kLanes);
        counts_.resize(n_depths_);
        sparse_.assign(kSliced ? stride_ : 0, 0.0);
        alphas_.assign(n_depths_, 0.0);
        for (int32_t d = 1; d < n_depths_; ++d) alphas_[d] = tree_->alpha(d);
        inverses_.assign(n_depths_, nullptr);
        const double *masses = tree_->masses();
        largest_ = *std::max_element(masses, masses + n_slots_);
        // A power of two that keeps w among the floats.
        unit_ = std::ldexp(1.0, 60 + static_cast<int>(std::lround(std::log2(offset_))));
        mass_f_[kNew] = static_cast<float>(tree_->root().gamma);
        n_live_ = 1;
        for (int32_t k = 0; k < n_slots_; ++k) refresh(k);
    }
    void prefetch(Chain &, int64_t, int64_t) const {}

    void prepare(Chain &chain, Emission &emission, const Move<Chain, Emission> &move) {
        for (size_t i = 0; i < chain.touched.size(); ++i) refresh(chain.touched[i]);
        tree_->refresh();
        start_ = move.start;
        length_ = move.stop - move.start;
        i_ = chain.previous(start_);
        const int32_t o = chain.successor(move.stop - 1);
        ghost_ = o >= 0 && !is_served(o) ? o : -1;
        apart_ = has_coins_ ? ghost_ : -1;
        if (apart_ >= 0) set_mass(apart_, tree_->root().gamma);
        if (static_cast<int64_t>(steps_.size()) < length_ + 1) steps_.resize(length_ + 1);
        prefixes_.resize(static_cast<size_t>(length_ + 1) * n_depths_);
        const size_t room = static_cast<size_t>(length_) * stride_;
        if (messages_.size() < room) {
            messages_.resize(room);
            if (!kSliced) sizes_.resize(room);
        }
        if (kSliced && (has_coins_ || tree_->shape.n_before > 0)) bases_.resize(room + stride_);
        int32_t j = i_;
        for (int64_t l = 0; l <= length_; ++l) {
            Step &step = steps_[l];
            step.at = tree_->place(start_ + l);
            tree_->fill_prefixes(step.at, prefixes(l));
            step.bar = l < length_ ? bar_of(chain.states[start_ + l]) : o < 0 ? -1 : bar_of(o);
            step.sparse = 0.0;
            if constexpr (kSliced) look_at_base(l);
            if (step.bar >= 0) step.sparse = sparse_of(l, j, step.bar, &chain.hints[start_ + l]);
            if (kSliced && step.bar >= 0) {
                step.pi = link(l, j, step.bar, step.sparse);
                step.slice = std::max(kTiny, uniform(chain.bits) * step.pi);
            }
            if (has_many_cells_) prefetch_column(l, true);
            j = step.bar;
        }
        emission.look_ahead(start_, move.stop);
        filter(emission);
    }

    void score(Chain &chain, int64_t, int64_t, Product *q) {
        open_labels();
        for (int64_t l = 0; l < length_; ++l) {
            Step &step = steps_[l];
            const Step &next = steps_[l + 1];
            step.total = total(l, next.bar);
            step.weight = weight(l, step.bar, next.bar, next.sparse);
            q->multiply(step.weight / step.total);
            if (kSliced && next.bar >= 0) q->multiply(next.pi);
            if (step.bar != kNew) continue;
            const bool may_repeat = l > 0 && steps_[l - 1].bar == kNew;
            set_self_share(l);
            q->multiply(labels_.seat(chain.states[start_ + l],
                                     may_repeat ? chain.states[start_ + l - 1] : -1));
        }
        if (kSliced) q->multiply(steps_[0].pi);
    }
    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        int32_t k = steps_[length_].bar;
        bool is_fresh = false;
        for (int64_t l = length_ - 1; l >= 0; --l) {
            const Step &step = steps_[l];
            int32_t j = step.bar;
            double w = step.weight, sum = step.total;
            if (SKIHMM_LIKELY(k == steps_[l + 1].bar)) {
                // Most labels do not change, so the old one is tried first.
                const double u = uniform(chain.bits) * sum;
                if (SKIHMM_UNLIKELY(u >= w)) j = draw(l, k, u - w, step.bar, &w);
            } else {
                sum = total(l, k);
                if (kSliced && SKIHMM_UNLIKELY(!(sum > 0.0))) {
                    // A beam of approximate messages may end without a path, which is rejected.
                    std::copy_n(&chain.states[start_], length_, path);
                    q->multiply_log(std::numeric_limits<double>::infinity());
                    return;
                }
                j = draw(l, k, uniform(chain.bits) * sum, -1, &w);
            }
            q->multiply(w / sum);
            if (kSliced && k >= 0) q->multiply(prob(l + 1, j, k));
            is_fresh |= j == kNew;
            path[l] = k = j;
        }
        if (kSliced) q->multiply(prob(0, i_, k));
        if (!is_fresh) return;
        open_labels();
        size_t n_fresh = 0;
        int32_t before = -1;            // the label of a step before in a new state
        for (int64_t l = 0; l < length_; ++l) {
            const bool is_new = path[l] == kNew;
            if (is_new) {
                set_self_share(l);
                path[l] = labels_.draw(chain.bits, before);
                if (path[l] < 0) path[l] = chain.free_slot(n_fresh++);
                q->multiply(labels_.seat(path[l], before));
            }
            before = is_new ? path[l] : -1;
        }
    }
    void settle(Chain &, Emission &, int64_t, int64_t, bool) const {}

  private:
    // One step of the block; one more stands for the successor.
    struct Step {
        ContextPlace at;
        int32_t bar = 0;        // column of the old label; -1: there is no successor
        double sparse = 0.0;    // sum_d v_d n_d of the old transition into it, or of w_d n_d
        // With slices: pi of that transition and its slice; the base of all labels, which counts
        // with a factor, and at least its largest value.
        double pi = 0.0;
        double slice = 0.0;
        const double *base = nullptr;
        double by = 1.0, largest = 0.0;
        double total = 0.0, weight = 0.0;       // at the old path
        double sum = 0.0;       // sum of the message as it is stored
        double sum_f = 0.0;     // sum of f
    };

    bool is_served(int32_t k) const { return tree_->root().dish_tables[k] > 0; }
    int32_t bar_of(int32_t k) const { return is_served(k) || k == apart_ ? k : kNew; }
    void open_labels() { labels_.open(*law_, apart_ >= 0 ? -1 : ghost_); }
    void set_self_share(int64_t l) {
        if (has_coins_) labels_.set_self_share(law_->self_share_at(start_ + l));
    }
    int32_t *prefixes(int64_t l) { return &prefixes_[static_cast<size_t>(l) * n_depths_]; }
    float *message(int64_t l) { return &messages_[static_cast<size_t>(l) * stride_]; }
    // f over what is stored: of message l, 1/R for the step after it, or 1.
    float *sizes(int64_t l) {
        return kSliced ? ones_.data() : &sizes_[static_cast<size_t>(l) * stride_];
    }

    void refresh(int32_t k) {
        if (k != kNew) {
            set_mass(k, tree_->root().dish_tables[k]);
            if (kSliced) largest_ = std::max<double>(largest_, mass_f_[k]);
        }
        if (SKIHMM_UNLIKELY(has_coins_)) {
            stays_[k] = static_cast<float>(law_->stay(k));
            leaves_[k] = static_cast<float>(law_->leave(k));
            by_leaves_[k] = 1.0f / leaves_[k];
        }
        if constexpr (Emission::kIsSeating) {
            if (k != kStart)
                w_[k] = static_cast<float>(unit_ / total_weight(totals_[k], offset_));
        } else {
            w_[k] = 1.0f;
        }
    }
    void set_mass(int32_t k, double value) {
        const float mass = static_cast<float>(value);
        n_live_ += (mass > 0.0f) - (mass_f_[k] > 0.0f);
        mass_f_[k] = mass;
    }
    // Of the transitions into step l, with slices.
    void look_at_base(int64_t l) {
        Step &step = steps_[l];
        const bool is_shared = tree_->shape.n_before > 0 && step.at.depth > 0;
        step.base = tree_->masses();
        step.by = 1.0;
        step.largest = largest_;
        if (!is_shared) step.by /= total_weight(tree_->root().n_tables, tree_->root().gamma);
        if (!is_shared && apart_ < 0) return;
        double *base = &bases_[static_cast<size_t>(l) * stride_];
        if (is_shared && l == length_) {
            // Only that of the successor is read.
            if (step.bar >= 0) base[step.bar] = base_of(l, step.bar);
            step.base = base;
            return;
        }
        if (is_shared) tree_->fill_base(step.at, base);
        else std::copy_n(step.base, n_slots_, base);
        if (apart_ >= 0) base[apart_] = base[kNew];
        step.base = base;
        if (is_shared) step.largest = *std::max_element(base, base + n_slots_);
    }
    // Before the next three of the same step.
    void look_at_sizes(int64_t l) {
        depth_ = steps_[l].at.depth;
        by_ = steps_[l].by;
        for (int32_t d = first_; d <= depth_; ++d)
            inverses_[d] = tree_->inverse(d, prefixes(l)[d]);
    }
    // w_d(j)
    SKIHMM_INLINE double share_of(int32_t d, int32_t j) const {
        double share = leave_of(j);
        for (int32_t e = depth_; e > d; --e) share = share * inverses_[e][j] * alphas_[e];
        return share * inverses_[d][j];
    }
    // R_j, times the factor of the base.
    double rest_of(int32_t j) const {
        return first_ > depth_ ? leave_of(j) * by_ : share_of(first_, j) * alphas_[first_] * by_;
    }
    double leave_of(int32_t j) const { return SKIHMM_UNLIKELY(has_coins_) ? leaves_[j] : 1.0; }
    double link(int64_t l, int32_t j, int32_t k, double sparse) {
        look_at_sizes(l);
        const double drawn = sparse + rest_of(j) * steps_[l].base[k];
        return SKIHMM_UNLIKELY(has_coins_ && j == k) ? drawn + stays_[k] : drawn;
    }
    // Whether k -> k passes the slice of step l, whose sizes have been looked at, by a stay: the
    // loops over draws leave it out.
    bool passes_by_stay(int64_t l, int32_t k) {
        if (SKIHMM_LIKELY(!has_coins_)) return false;
        const auto &u = steps_[l].slice;
        const double stayed = stays_[k];
        // Mostly clear without a look at the counts.
        const double most = (1.0 + kRounding) * leaves_[k];
        if (!(stayed + most >= u)) return false;
        if (stayed >= u && !(most >= u)) return true;
        int32_t none = -1;
        const double drawn = sparse_of(l, k, k, &none) + rest_of(k) * steps_[l].base[k];
        return drawn + stayed >= u && !(drawn >= u);
    }
    // pi[j,k]
    double prob(int64_t l, int32_t j, int32_t k) {
        int32_t none = -1;
        const bool is_old = k == steps_[l].bar && j == (l ? steps_[l - 1].bar : i_);
        return is_old ? steps_[l].pi : link(l, j, k, sparse_of(l, j, k, &none));
    }
    // v_d(j) at step l.
    double by_depth(int64_t l, int32_t d, int32_t j) {
        double v = 1.0 / tree_->alpha(d);
        for (int32_t e = first_; e < d; ++e)
            v *= tree_->sizes(e, prefixes(l)[e])[j] / tree_->alpha(e);
        return v;
    }
    double sparse_of(int64_t l, int32_t j, int32_t k, int32_t *hint) {
        const ContextPlace at = steps_[l].at;
        if (j == kNew || k == kNew || at.depth < first_) return 0.0;
        tree_->fill_counts(at, j, k, hint, counts_.data());
        double sum = 0.0;
        if constexpr (kSliced) {
            look_at_sizes(l);
            for (int32_t d = at.depth; d >= first_; --d) sum += share_of(d, j) * counts_[d];
        } else {
            for (int32_t d = first_; d <= at.depth; ++d)
                if (counts_[d]) sum += by_depth(l, d, j) * counts_[d];
        }
        return sum;
    }
    // The base of a label at step l.
    double base_of(int64_t l, int32_t k) {
        return tree_->base_of(steps_[l].at.depth, prefixes(l), k);
    }

    // ---- forward

    void filter(Emission &emission) {
        for (int64_t l = 0; l < length_; ++l) {
            if (has_many_cells_) prefetch_column(l + 1, false);
            double smooth;
            if (l) {
                const Step &last = steps_[l - 1];
                const double cut = cut_ * std::min(1.0, kFew / n_live_);
                const double least = cut / n_live_ * last.sum_f;
                n_kept_ = blocked_passes.select(stride_, static_cast<float>(least),
                                                message(l - 1), sizes(l - 1), kept_.data());
                smooth = kSliced ? spread_slices(l) : spread_rows(l);
            } else if (kSliced) {
                look_at_sizes(0);
                spread_slice(0, i_, 1.0f);
                smooth = 0.0;
            } else {
                smooth = leaves_[i_];
                g_[i_] += stays_[i_];
                for (int32_t d = first_; d <= steps_[0].at.depth; ++d)
                    smooth *= tree_->alpha(d) * tree_->inverse(d, prefixes(0)[d])[i_];
                spread(0, i_, smooth);
            }
            emit(emission, l, smooth);
        }
    }
    const Line &row_line(int64_t l, int32_t d, int32_t j) {
        return tree_->row_line(d, tree_->shape.row(d, j, prefixes(l)[d]));
    }
    const Line &column_line(int64_t l, int32_t d, int32_t k) {
        return tree_->column_line(d, k, prefixes(l)[d]);
    }
    // Ask for the leaves of labels that come next.
    SKIHMM_INLINE void prefetch_rows(int64_t l, int32_t at) {
        const int32_t d = steps_[l].at.depth;
        if (d < first_) return;
        if (at + 6 < n_kept_) SKIHMM_PREFETCH(&row_line(l, d, kept_[at + 6]));
        if (at + 3 < n_kept_) prefetch_line(row_line(l, d, kept_[at + 3]));
    }
    // The same of the column of the old label at step l; first of what has its place and size.
    SKIHMM_INLINE void prefetch_column(int64_t l, bool is_first) {
        const int32_t d = steps_[l].at.depth, k = steps_[l].bar;
        if (d < first_ || k < 0) return;
        const Line &line = column_line(l, d, k);
        if (is_first) SKIHMM_PREFETCH(&line);
        else prefetch_line(line);
    }
    static void prefetch_line(const Line &line) {
        SKIHMM_PREFETCH(line.ids);
        SKIHMM_PREFETCH(line.counts);
    }
    // What step l gets of the labels that are kept; returns what is to be added per unit of base.
    SKIHMM_INLINE double spread_rows(int64_t l) {
        const Step &last = steps_[l - 1];
        const float *before = message(l - 1), *size = sizes(l - 1);
        const double share = 1.0 / last.sum_f;
        double taken = 0.0;
        for (int32_t at = 0; at < n_kept_; ++at) {
            const int32_t j = kept_[at];
            if (has_many_cells_) prefetch_rows(l, at);
            const double f = before[j];
            taken += f * size[j] - f;
            spread(l, j, f * share);
        }
        if (has_coins_)
            add_stays(stride_, static_cast<float>(share), before, size, stays_.data(),
                      g_.data());
        // Of labels that are not kept only the total is spread.
        return std::max(last.sum, last.sum_f - taken) * share;
    }
    // The same with slices; see _blocked.hpp for the share of the others.
    double spread_slices(int64_t l) {
        const float *before = message(l - 1);
        const double share = 1.0 / steps_[l - 1].sum_f;
        double kept = 0.0;
        look_at_sizes(l);
        for (int32_t at = 0; at < n_kept_; ++at) {
            const double f = before[kept_[at]] * share;
            if (has_many_cells_) prefetch_rows(l, at);
            kept += f;
            spread_slice(l, kept_[at], static_cast<float>(f));
        }
        if (!(cut_ > 0.0)) return 0.0;
        return 0.03 * std::max(kLeastRest, 1.0 - kept) / steps_[l].slice;
    }
    // g_k += f 1[pi[j,k] >= u].
    void spread_slice(int64_t l, int32_t j, float f) {
        const int32_t own = first_;
        const auto &u = steps_[l].slice;
        const double r = rest_of(j), *base = steps_[l].base;
        const bool is_wide = r * steps_[l].largest >= u;
        const int32_t last = own + !is_wide;
        float *g = g_.data();
        double *sparse = sparse_.data();
        for (int32_t d = depth_; d >= last; --d) {
            const double w = share_of(d, j);
            row_line(l, d, j).for_fours(
                [&](int32_t, int32_t k, int32_t n) { sparse[k] += w * n; });
        }
        if (is_wide) {
            add_passing(n_slots_, sparse, r, base, u, f, g);
        } else if (own <= depth_) {
            const double w = share_of(own, j);
            const float if_passes[2] = {0.0f, f};
            row_line(l, own, j).for_fours([&](int32_t, int32_t k, int32_t n) {
                g[k] += if_passes[sparse[k] + w * n + r * base[k] >= u];
            });
        }
        if (last <= depth_) row_line(l, last, j).unscatter(sparse);
        if (passes_by_stay(l, j)) g[j] += f;
    }
    // g_k += f_j R_j sum_d v_d(j) n_d(j, k).
    SKIHMM_INLINE void spread(int64_t l, int32_t j, double f) {
        float *g = g_.data();
        for (int32_t d = first_; d <= steps_[l].at.depth; ++d) {
            const float share = static_cast<float>(f * by_depth(l, d, j));
            row_line(l, d, j).for_fours(
                [&](int32_t, int32_t k, int32_t n) { g[k] += share * static_cast<float>(n); });
        }
    }
    // The message f_k = (g_k + smooth base_k) F_k(y[t]), stored as f_k R_k; clears g.
    void emit(Emission &emission, int64_t l, double smooth) {
        float *out = message(l), *size = sizes(l);
        Step &step = steps_[l];
        const float *w = w_.data();
        SymbolColumn column;
        bool has_column = false;
        if constexpr (Emission::kIsSeating) {
            has_column = emission.column(start_ + l, &column);
            if (!has_column) w = ones_.data();
        } else {
            fill_row(emission, start_ + l);
            w = row_.data();
        }
        if constexpr (!kSliced) {
            set_sizes(l, w, size);
            w = row_.data();
        }
        const float *base = mass_f_.data();
        const InfiniteRoot &root = tree_->root();
        if (tree_->shape.n_before == 0 || step.at.depth == 0 || smooth == 0.0)
            smooth /= total_weight(root.n_tables, root.gamma);
        else base = shared_base(l);
        double sums[2];
        blocked_passes.emit(stride_, static_cast<float>(smooth), base, w, size, g_.data(), out,
                            sums);
        if (SKIHMM_UNLIKELY(!is_usable(sums[1]))) begin_anew(size, out, sums);
        step.sum = sums[0];
        step.sum_f = sums[1];
        if (!has_column) return;
        // Contribution of the symbol's counts, over the smooth part as the common factor.
        const double by_smooth = 1.0 / column.smooth;
        for (int32_t at = 0; at < column.size; ++at) {
            const int32_t k = column.ids[at];
            const double before = out[k];
            out[k] = static_cast<float>(before + before * (column.counts[at] * by_smooth));
            const double more = out[k] - before;
            step.sum += more;
            step.sum_f += more * size[k];
        }
    }
    // row_ = w R of the step after l, and 1/R.
    void set_sizes(int64_t l, const float *w, float *size) {
        const int32_t depth = steps_[l + 1].bar < 0 ? 0 : steps_[l + 1].at.depth;
        const int32_t *prefix = prefixes(l + 1);
        float *row = row_.data();
        if (depth < first_) {
            std::copy_n(w, stride_, row);
            std::copy_n(ones_.data(), stride_, size);
        } else if (depth == first_) {
            const float a = static_cast<float>(tree_->alpha(first_)), by = 1.0f / a;
            scale_row(stride_, a, w, tree_->inverse_f(first_, prefix[first_]), row);
            scale_row(stride_, by, ones_.data(), tree_->sizes(first_, prefix[first_]), size);
        } else {
            const int32_t e = first_ + 1;
            const float a = static_cast<float>(tree_->alpha(first_) * tree_->alpha(e)),
                        by = 1.0f / a;
            scale_row_twice(stride_, a, w, tree_->inverse_f(first_, prefix[first_]),
                            tree_->inverse_f(e, prefix[e]), row);
            scale_row_twice(stride_, by, ones_.data(), tree_->sizes(first_, prefix[first_]),
                            tree_->sizes(e, prefix[e]), size);
        }
        for (int32_t e = first_ + 2; e <= depth; ++e) {
            const float a = static_cast<float>(tree_->alpha(e)), by = 1.0f / a;
            scale_row(stride_, a, row, tree_->inverse_f(e, prefix[e]), row);
            scale_row(stride_, by, size, tree_->sizes(e, prefix[e]), size);
        }
        if (!has_coins_ || steps_[l + 1].bar < 0) return;
        scale_row(stride_, 1.0f, row, leaves_.data(), row);
        scale_row(stride_, 1.0f, size, by_leaves_.data(), size);
    }
    // That of all labels, which restaurants above the labels share.
    const float *shared_base(int64_t l) {
        const double *base = kSliced ? steps_[l].base : base_.data();
        if (!kSliced) tree_->fill_base(steps_[l].at, base_.data());
        base_f_.assign(stride_, 0.0f);
        for (int32_t k = 0; k < n_slots_; ++k) base_f_[k] = static_cast<float>(base[k]);
        if (apart_ >= 0) base_f_[apart_] = base_f_[kNew];
        return base_f_.data();
    }
    static bool is_usable(double sum) {
        return sum > 0.0 && sum < std::numeric_limits<float>::max();
    }
    // The message has underflowed, or is too large for floats.
    SKIHMM_NOINLINE void begin_anew(float *size, float *out, double *sums) {
        std::fill(g_.begin(), g_.end(), 0.0f);
        sums[0] = sums[1] = 0.0;
        for (int32_t k = 0; k < stride_; ++k) {
            out[k] = mass_f_[k] > 0.0f ? 1.0f / size[k] : 0.0f;
            sums[0] += out[k];
            sums[1] += static_cast<double>(out[k]) * size[k];
        }
        if (is_usable(sums[1])) return;
        sums[0] = sums[1] = 0.0;
        for (int32_t k = 0; k < stride_; ++k) {
            size[k] = 1.0f;
            out[k] = mass_f_[k] > 0.0f ? 1.0f : 0.0f;
            sums[0] += out[k];
        }
        sums[1] = sums[0];
    }
    // Emissions that give whole rows, over their largest entry: floats have little room.
    void fill_row(Emission &emission, int64_t t) {
        emission.fill_probs(t, probs_.data());
        double most = std::numeric_limits<double>::min();
        for (int32_t k = 0; k < n_slots_; ++k)
            if (mass_f_[k] > 0.0f) most = std::max(most, probs_[k]);
        for (int32_t k = 0; k < n_slots_; ++k)
            row_[k] = static_cast<float>(std::min(std::max(probs_[k] / most, 1e-20), 1.0));
    }

    // ---- backward

    // The part of j in the total of step l before k, whose sparse part is known.
    double weight(int64_t l, int32_t j, int32_t k, double sparse) {
        const double f = message(l)[j];
        if (k < 0) return f * sizes(l)[j];
        if (kSliced) return link(l + 1, j, k, sparse) >= steps_[l + 1].slice ? f : 0.0;
        return f * (sparse + base_of(l + 1, k)) + (j == k ? stay_weight(l, k) : 0.0);
    }
    // The part of it by a stay of k, 0 without coins.
    double stay_weight(int64_t l, int32_t k) {
        return has_coins_ ? static_cast<double>(message(l)[k]) * sizes(l)[k] * stays_[k] : 0.0;
    }
    // Sum over all labels j before k.
    double total(int64_t l, int32_t k) {
        const float *f = message(l);
        if (k < 0) {
            double sum = 0.0;
            for (int32_t j = 0; j < n_slots_; ++j) sum += weight(l, j, k, 0.0);
            return sum;
        }
        if constexpr (kSliced) {
            double sums[4] = {};
            for_passing(l + 1, k, [&](int32_t lane, int32_t j, bool passes) {
                sums[lane] += f[j] * static_cast<double>(passes);
            });
            return (sums[0] + sums[1]) + (sums[2] + sums[3]);
        }
        double sum = stay_weight(l, k);
        for (int32_t d = first_; d <= steps_[l + 1].at.depth; ++d)
            for_column(l, d, k, [&](int32_t j, double v, int32_t n) {
                sum += f[j] * v * n;
                return false;
            });
        return sum + base_of(l + 1, k) * steps_[l].sum;
    }
    // visit(lane, j, whether pi[j,k] passes the slice of step l) for all labels j that may.  The
    // lanes are four; in between is kNew, and does not pass.
    template <class Visit> SKIHMM_INLINE void for_passing(int64_t l, int32_t k, Visit visit) {
        look_at_sizes(l);
        const int32_t own = first_;
        const auto &u = steps_[l].slice;
        const double base = steps_[l].base[k];
        // R_j is at most 1, but for its rounding errors.
        const bool is_wide = by_ * base >= u * (1.0 - kRounding);
        const int32_t last = own + !is_wide;
        double *sparse = sparse_.data();
        for (int32_t d = depth_; d >= last; --d)
            column_line(l, d, k).for_fours(
                [&](int32_t, int32_t j, int32_t n) { sparse[j] += share_of(d, j) * n; });
        if (is_wide) {
            for (int32_t j = 0; j < n_slots_; ++j)
                visit(j % 4, j, sparse[j] + rest_of(j) * base >= u);
        } else if (own <= depth_) {
            column_line(l, own, k).for_fours([&](int32_t lane, int32_t j, int32_t n) {
                const double w = share_of(own, j);
                visit(lane, j, sparse[j] + w * n + w * alphas_[own] * by_ * base >= u);
            });
        }
        // Where a restaurant has customers its parent has some too.
        if (last <= depth_) column_line(l, last, k).unscatter(sparse);
        if (passes_by_stay(l, k)) visit(0, k, true);
    }
    // visit(j, v_d(j), n) for the column of k at the step after l, until it says to stop.
    template <class Visit> bool for_column(int64_t l, int32_t d, int32_t k, Visit visit) {
        const int32_t *prefix = prefixes(l + 1);
        const Line &line = column_line(l + 1, d, k);
        double a = 1.0;
        for (int32_t e = first_; e <= d; ++e) a /= tree_->alpha(e);
        if (d == first_) {
            for (int32_t at = 0; at < line.size; ++at)
                if (visit(line.ids[at], a, line.counts[at])) return true;
        } else {
            const float *size = tree_->sizes(first_, prefix[first_]);
            for (int32_t at = 0; at < line.size; ++at) {
                const int32_t j = line.ids[at];
                double v = a * size[j];
                for (int32_t e = first_ + 1; e < d; ++e) v *= tree_->sizes(e, prefix[e])[j];
                if (visit(j, v, line.counts[at])) return true;
            }
        }
        return false;
    }
    // A label other than `skip` before k: the one in whose part of the total u lies, and its
    // weight.
    SKIHMM_NOINLINE int32_t draw(int64_t l, int32_t k, double u, int32_t skip, double *w) {
        const float *f = message(l);
        int32_t chosen = skip;
        auto take = [&](int32_t j, double value) {
            if (j == skip || !(value > 0.0)) return false;
            chosen = j;
            return (u -= value) < 0.0;
        };
        bool is_found = false;
        if constexpr (kSliced) {
            if (k >= 0) {
                for_passing(l + 1, k, [&](int32_t, int32_t j, bool passes) {
                    if (passes && !is_found) is_found = take(j, f[j]);
                });
                if (chosen != skip) *w = f[chosen];
                return chosen;
            }
        }
        if (k >= 0) {
            is_found = take(k, stay_weight(l, k));
            for (int32_t d = first_; d <= steps_[l + 1].at.depth && !is_found; ++d)
                is_found = for_column(l, d, k, [&](int32_t j, double v, int32_t n) {
                    return take(j, f[j] * v * n);
                });
        }
        const double base = k < 0 ? 0.0 : base_of(l + 1, k);
        for (int32_t j = 0; j < n_slots_ && !is_found; ++j)
            is_found = take(j, k < 0 ? weight(l, j, k, 0.0) : f[j] * base);
        if (chosen == skip) return chosen;
        int32_t none = -1;
        *w = weight(l, chosen, k, k < 0 ? 0.0 : sparse_of(l + 1, chosen, k, &none));
        return chosen;
    }

    static constexpr int32_t kLanes = 16;
    static constexpr double kFew = 400.0, kRounding = 1e-10;
    // Keeps a slice above the pi of slots without a state, which is zero.
    static constexpr double kTiny = std::numeric_limits<double>::min();
    // The least share of a message that is spread over all states.
    static constexpr double kLeastRest = 1e-12;

    const double cut_;
    const Transitions *law_ = nullptr;
    const ContextTree *tree_ = nullptr;
    bool has_coins_ = false;
    bool has_many_cells_ = false;   // which are not in the caches
    double unit_ = 1.0;             // power of two in w_
    int32_t n_live_ = 1;            // represented labels and `new` at s_0
    int32_t n_slots_ = 0, stride_ = 0, n_depths_ = 0, first_ = 1;
    const int32_t *totals_ = nullptr;
    double offset_ = 1.0;
    WideVector<float> mass_f_;      // own_mass
    WideVector<float> w_;           // 1/(e_k + alpha_e)
    WideVector<float> stays_, leaves_, by_leaves_;  // of coins; the last is one over the second
    WideVector<float> g_;           // zero between steps
    WideVector<float> row_, ones_, base_f_;
    std::vector<double> base_, probs_;
    std::vector<int32_t> kept_, counts_;
    // With slices: at least every mass; by label, zero between steps; and of one step, by depth.
    double largest_ = 0.0;
    WideVector<double> sparse_;
    std::vector<double> alphas_;
    std::vector<const double *> inverses_;
    int32_t depth_ = 0;
    double by_ = 1.0;
    int32_t n_kept_ = 0;
    // this block
    int64_t start_ = 0, length_ = 0;
    int32_t i_ = 0, ghost_ = -1;
    int32_t apart_ = -1;            // the ghost if it has a column of its own
    std::vector<Step> steps_;
    std::vector<int32_t> prefixes_;             // by step, then by depth
    WideVector<float> messages_, sizes_;        // by step of the block, then by slot
    WideVector<double> bases_;                  // the same, and of the successor
    FreshLabels labels_;
};

template <class Chain, class Emission>
using ContextMessages = ContextBlocked<Chain, Emission, false>;
template <class Chain, class Emission>
using ContextSlices = ContextBlocked<Chain, Emission, true>;

}  // namespace skihmm
