// The step-wise slice proposal of _slice.hpp for trees of restaurants (see _contexts.hpp).
//
// With i = x[t-1], o = x[t+1] and the slices u and v, uniform below pi[i,x] and pi[x,o],
//
//     pi[i,k] = sum_d w_d n_d(i, k) + base_k,    pi[k,o] = sum_d v_d(k) n_d(k, o) + R_k base_o,
//
// with the depths of the restaurants of labels, the first of which has all labels that those below
// it have.  So mostly one list has every candidate: that of i's first restaurant, if u excludes
// base_k for all k, or that of the labels whose first restaurant has o, if v excludes base_o, as
// R_k <= 1.  Else a vectorised pass, in floats with a margin, goes over all labels.  base_k is
// g mass_k, and w_1 n_1(k) besides if all labels share the restaurant of depth 1.
// What is known of i, x and o is that of lifted customers, or of the seating if they have been
// taken out; other labels are as they are between moves.
//
// If there are dense counts (_context_rough.hpp), a vectorised pass in floats, with a margin,
// finds the few labels after i of a lifted step that may pass u.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "_blocked_vector.hpp"
#include "_context_rough.hpp"
#include "_contexts.hpp"
#include "_fresh_labels.hpp"
#include "_rcd.hpp"

namespace skihmm {

// The lesser of (row[k] + w above[k] + g mass[k]) by_u and (column[k] + base rest[k]) by_v.
SKIHMM_CLONES static void rough_passing(int32_t n, const double *row, double w,
                                        const double *above, double g, const double *mass,
                                        double by_u, const double *column, double base,
                                        const double *rest, double by_v, float *out) {
    for (int32_t k = 0; k < n; ++k) {
        const double in = (row[k] + w * above[k] + g * mass[k]) * by_u,
                     next = (column[k] + base * rest[k]) * by_v;
        out[k] = static_cast<float>(in < next ? in : next);
    }
}

// kInTree: as of StepwiseIn.
template <class Chain, class Emission, bool kInTree>
class ContextSliceIn {
  public:
    using Transitions = typename Chain::Transitions;
    static constexpr bool kReadsTouched = false, kReadsView = true, kMayBeExact = false;

    // Start of a sweep, or more slots than before; only between moves.
    void attach(Chain &chain, Emission &emission) {
        tree_ = &chain.transitions->contexts();
        tree_->refresh();
        n_slots_ = chain.n_slots;
        depth_ = tree_->shape.depth();
        own_ = tree_->first_own();
        dense_.clear();
        if (kInTree && n_slots_ <= kMostDense && DenseCounts::suit(*tree_, n_slots_))
            dense_.attach(*tree_, n_slots_);
        if constexpr (Emission::kIsSeating) totals_ = emission.totals(&offset_);
        row_.assign(tree_->padded(), 0.0);
        column_.assign(tree_->padded(), 0.0);
        rest_of_.assign(tree_->padded(), 1.0);
        probs_.assign(n_slots_, 1.0);
        w_.assign(depth_ + 1, 0.0);
        for (std::vector<int32_t> *v : {&at_prefixes_, &prefixes_, &counts_})
            v->assign(depth_ + 1, 0);
        const double *masses = tree_->masses();
        largest_ = *std::max_element(masses, masses + n_slots_);
        mass_f_.assign(masses, masses + tree_->padded());
        p_f_.assign(tree_->padded(), 0.0f);
        ones_f_.assign(tree_->padded(), 1.0f);
        chosen_.resize(tree_->padded() + kLanes);
        most_.assign(own_ > 1 ? tree_->shape.stride(1) : 0, 0);
        shared_.assign(most_.size() * tree_->padded(), 0.0);
        for (size_t v = 0; v < most_.size(); ++v)
            ContextTree::for_line(tree_->row_line(1, v), [&](int32_t k, int32_t n) {
                most_[v] = std::max(most_[v], n);
                shared_by(v)[k] = n;
            });
        e_.assign(Emission::kIsSeating ? n_slots_ : 0, 0);
    }
    void prefetch(const Chain &chain, int64_t start, int64_t) const {
        const ContextPlace at = tree_->place(start);
        if (dense_.exist() && at.depth == 2) return dense_.prefetch(at, chain.previous(start));
        int32_t prefix = at.prefix;
        for (int32_t d = at.depth; d > 0; --d) {
            const Line &line =
                tree_->row_line(d, tree_->shape.row(d, chain.previous(start), prefix));
            SKIHMM_PREFETCH(line.ids);
            SKIHMM_PREFETCH(line.counts);
            if (d > 1) prefix = tree_->shape.prefix_above(d, prefix);
        }
    }
    void prepare(Chain &chain, Emission &emission, const Move<Chain, Emission> &move) {
        tree_->refresh();
        step_ = kInTree && move.is_lifted() ? &move.view : nullptr;
        const StepView &view = move.view;
        t_ = move.start;
        i_ = view.i;
        x_ = view.x;
        o_ = view.o;
        m_o_ = view.m_o;
        bar_ = view.m_x > 0 ? x_ : kNew;
        at_ = tree_->place(t_);
        tree_->fill_prefixes(at_, at_prefixes_.data());
        if (o_ >= 0) {
            next_ = tree_->place(t_ + 1);
            tree_->fill_prefixes(next_, prefixes_.data());
        }
        look_at_top();
        old_p_ = step_ ? step_->p_in : tree_->prob(at_, i_, x_);
        u_ = std::max(kTiny, uniform(chain.bits) * old_p_);
        if (o_ >= 0) {
            // A ghost x = o still has customers, but the column is that of a new label.
            const double p = bar_ == kNew ? base_
                             : step_ ? step_->p_out : tree_->prob(next_, x_, o_);
            v_ = std::max(kTiny, uniform(chain.bits) * p);
            old_p_ *= p;
        }
        symbol_ = -1;
        if constexpr (Emission::kIsSeating) {
            symbol_ = move.symbol.exists ? emission.codes[t_] : -1;
            smooth_ = move.symbol.column.smooth;
            column_of_symbol_ = &move.symbol.column;
        } else {
            emission.fill_probs(t_, probs_.data());
        }
        old_weight_ = weight_of(emission, bar_, move.symbol);
        collect(emission);
    }
    void score(Chain &chain, int64_t, int64_t, Product *q) {
        q->multiply(old_p_ * old_weight_);
        if (bar_ == kNew) q->multiply(seat(chain, x_));
    }
    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        double u = uniform(chain.bits) * (old_weight_ + rest_);
        Candidate chosen{bar_, old_p_, old_weight_};
        if (SKIHMM_UNLIKELY(u >= old_weight_)) {
            u -= old_weight_;
            for (const Candidate &candidate : candidates_) {
                chosen = candidate;
                if ((u -= candidate.weight) < 0.0) break;
            }
        }
        q->multiply(chosen.p * chosen.weight);
        int32_t k = chosen.k;
        if (k == kNew) {
            labels_.open(*chain.transitions, ghost());
            k = labels_.draw(chain.bits, -1);
            if (k < 0) k = chain.free_slot(0);
            q->multiply(labels_.seat(k, -1));
        }
        *path = k;
    }
    void settle(Chain &chain, Emission &, int64_t, int64_t, bool) {
        const std::vector<int32_t> &tables = tree_->root().dish_tables;
        for (const int32_t k : {x_, o_, chain.states[t_]})
            if (k >= 0) largest_ = std::max<double>(largest_, tables[k]);
        if (SKIHMM_LIKELY(step_ && chain.states[t_] == x_ && !step_->path_in.is_changed
                          && !step_->path_out.is_changed))
            return;
        if (dense_.exist()) recount(chain.states[t_]);
        if (SKIHMM_LIKELY(own_ == 1)) return;
        for (const int32_t k : {x_, chain.states[t_]}) count_shared(at_prefixes_[1], k);
        if (o_ >= 0) count_shared(prefixes_[1], o_);
    }

  private:
    using Step = typename Transitions::Step;
    // A column other than the old one that passes both slices.
    struct Candidate {
        int32_t k;
        double p;           // pi[i,k] pi[k,o]
        double weight;      // F_k(y)
    };

    SKIHMM_NOINLINE void recount(int32_t label) {
        for (const int32_t k : {x_, o_, label})
            if (k >= 0) mass_f_[k] = static_cast<float>(tree_->masses()[k]);
        for (const int32_t k : {x_, label}) {
            dense_.update(at_, i_, k, -1);
            if (o_ >= 0) dense_.update(next_, k, o_, -1);
            if (label == x_) break;
        }
    }
    // Of a restaurant that all labels share: the customers of all dishes, as doubles.
    double *shared_by(int32_t v) {
        return &shared_[v * static_cast<size_t>(tree_->padded())];
    }
    void count_shared(int32_t v, int32_t k) {
        const int32_t n = tree_->count(1, v, k);
        most_[v] = std::max(most_[v], n);
        shared_by(v)[k] = n;
    }
    int32_t ghost() const { return o_ >= 0 && m_o_ == 0 ? o_ : -1; }
    double seat(Chain &chain, int32_t label) {
        labels_.open(*chain.transitions, ghost());
        return labels_.seat(label, -1);
    }
    double weight_of(Emission &emission, int32_t k, const SymbolView &symbol) const {
        if constexpr (Emission::kIsSeating) {
            if (SKIHMM_UNLIKELY(symbol_ < 0)) return 1.0;
            if (k == x_) return dish_weight<double>(symbol.e_in, smooth_)
                                / total_weight(symbol.e_x, offset_);
            const int32_t n = k == kNew ? 0 : has_counts_ ? e_[k]
                                            : emission.seating->count(k, symbol_);
            return dish_weight<double>(n, smooth_) / total_weight(totals_[k], offset_);
        }
        // An old label of weight 0, from underflow, would never be left.
        return std::max(probs_[k], kLeast);
    }
    // What leads from i to the top, and from there to o.
    void look_at_top() {
        double share = 1.0;
        for (int32_t d = at_.depth; d >= 1; --d) {
            w_[d] = share * (step_      ? step_->path_in.levels[d].inverse
                             : d < own_ ? 1.0 / tree_->total(d, at_prefixes_[d])
                                        : tree_->inverse(d, at_prefixes_[d])[i_]);
            share = w_[d] * tree_->alpha(d);
        }
        const InfiniteRoot &root = tree_->root();
        const double n_top = step_ ? step_->n_top : total_weight(root.n_tables, root.gamma);
        g_ = share / n_top;
        base_ = o_ < 0 ? 1.0 : root.mass_of(m_o_) / n_top;
        if (SKIHMM_LIKELY(own_ == 1)) return;
        if (step_) base_ = step_->path_out.levels[1].p;
        else if (o_ >= 0) base_ = tree_->base_of(next_.depth, prefixes_.data(), o_);
    }
    // Of a label other than x: it has no tables at s_0 if it is a ghost.
    double mass_of(int32_t k) const { return k == o_ ? m_o_ : tree_->masses()[k]; }
    // pi[k,o]
    double follow(int32_t k) {
        if (SKIHMM_UNLIKELY(o_ < 0)) return 1.0;
        if (SKIHMM_UNLIKELY(step_ && k == i_)) return follow_own();
        double rest = base_;
        for (int32_t d = own_; d <= next_.depth; ++d)
            rest *= tree_->alpha(d) * tree_->inverse(d, prefixes_[d])[k];
        return (is_dense_ ? column_part(k) : column_[k]) + rest;
    }
    // The sparse part of pi[k,o] from dense counts.
    double column_part(int32_t k) const {
        double sum = 0.0;
        for (int32_t d = own_; d <= next_.depth; ++d)
            if (const int32_t n = count_before(d, k)) sum += sparse(d, k, n);
        return sum;
    }
    int32_t count_before(int32_t d, int32_t k) const {
        return dense_.column(d, prefixes_[d], o_)[k];
    }
    // Its part by n customers of depth d.
    SKIHMM_INLINE double sparse(int32_t d, int32_t k, int32_t n) const {
        double v = tree_->inverse(d, prefixes_[d])[k] * n;
        for (int32_t e = d + 1; e <= next_.depth; ++e)
            v *= tree_->alpha(e) * tree_->inverse(e, prefixes_[e])[k];
        return v;
    }
    // The part of pi[i,k] by the restaurant that all labels share, where the row is without it.
    double shared_part(int32_t k) {
        return w_[1] * without_lifted(k, static_cast<int32_t>(shared_by(at_prefixes_[1])[k]));
    }
    // Of n customers of dish k there between moves.
    int32_t without_lifted(int32_t k, int32_t n) const {
        if (SKIHMM_LIKELY(k != o_)) return n;
        if (!step_) return tree_->count(1, at_prefixes_[1], k);
        return step_->is_joined ? step_->path_out.levels[1].customer.n : n;
    }
    // That of i, of which the restaurants that the draw before shares are smaller while it is
    // lifted.
    double follow_own() {
        int32_t none = -1;
        if (!is_dense_) tree_->fill_counts(next_, i_, o_, &none, counts_.data());
        else for (int32_t d = own_; d <= next_.depth; ++d) counts_[d] = count_before(d, i_);
        double p = base_;
        for (int32_t d = own_; d <= next_.depth; ++d) {
            const bool is_shared = d <= at_.depth && at_prefixes_[d] == prefixes_[d];
            p = dish_weight<double>(counts_[d], tree_->alpha(d) * p)
                * (is_shared ? step_->path_in.levels[d].inverse
                             : tree_->inverse(d, prefixes_[d])[i_]);
        }
        return p;
    }

    SKIHMM_NOINLINE void collect(Emission &emission) {
        candidates_.clear();
        rest_ = 0.0;
        lacks_shared_ = false;
        is_dense_ = step_ && dense_.exist() && at_.depth == 2 && next_.depth == 2;
        if (SKIHMM_LIKELY(is_dense_ && select())) return consider_chosen(emission);
        is_dense_ = false;
        double *row = row_.data();
        for (int32_t d = at_.depth; d >= own_; --d) add_row(d);
        const bool has_row = own_ <= at_.depth, has_column = o_ >= 0 && own_ <= next_.depth;
        if (has_column) fill_column();
        double smooth = g_ * largest_;
        lacks_shared_ = own_ > 1;
        if (lacks_shared_) smooth += w_[1] * most_[at_prefixes_[1]];
        if (SKIHMM_LIKELY(!(smooth >= u_) && has_row)) {
            const Line &line = row_line(own_);
            for (int32_t at = 0; at < line.size; ++at)
                if (row[line.ids[at]] + smooth >= u_) consider(emission, line.ids[at]);
        } else if (has_column && !(base_ >= v_)) {
            const Line &line = column_line(own_);
            for (int32_t at = 0; at < line.size; ++at) {
                const int32_t k = line.ids[at];
                if (row[k] + smooth >= u_) consider(emission, k);
            }
        } else {
            look_at_all(emission);
        }
        if (has_row) row_line(own_).unscatter(row);
        if (has_column) column_line(own_).unscatter(column_.data());
    }
    // Labels that may pass u, unless they are many.
    SKIHMM_INLINE bool select() {
        const int32_t padded = tree_->padded();
        rough_row(padded, dense_.row(2, at_.prefix, i_), row_above(), mass_f_.data(),
                  static_cast<float>(w_[2]), static_cast<float>(w_[1]), static_cast<float>(g_),
                  p_f_.data());
        n_chosen_ = blocked_passes.select(padded, static_cast<float>(kMargin * u_), p_f_.data(),
                                          ones_f_.data(), chosen_.data());
        return n_chosen_ <= kFew + n_slots_ / 8;
    }
    void consider_chosen(Emission &emission) {
        const uint16_t *row = dense_.row(2, at_.prefix, i_), *above = row_above();
        const bool may_open = base_ >= v_;      // R_k <= 1
        for (int32_t at = 0; at < n_chosen_; ++at) {
            const int32_t k = chosen_[at];
            if (!may_open && count_before(own_, k) == 0) continue;
            row_[k] = w_[2] * row[k] + w_[1] * without_lifted(k, above[k]);
            consider(emission, k);
            row_[k] = 0.0;
        }
    }
    const uint16_t *row_above() const { return dense_.row(1, at_prefixes_[1], i_); }
    void add_row(int32_t d) {
        double *row = row_.data();
        const double w = w_[d];
        row_line(d).for_fours([&](int32_t, int32_t k, int32_t n) { row[k] += w * n; });
    }
    // Sparse parts of pi[k,o].
    void fill_column() {
        double *column = column_.data();
        for (int32_t d = own_; d <= next_.depth; ++d) {
            column_line(d).for_fours([&](int32_t, int32_t k, int32_t n) {
                column[k] += sparse(d, k, n);
            });
        }
    }
    SKIHMM_NOINLINE void look_at_all(Emission &emission) {
        if (o_ < 0) {
            for (int32_t k = 0; k < n_slots_; ++k) consider(emission, k);
            return;
        }
        if constexpr (Emission::kIsSeating) {
            has_counts_ = symbol_ >= 0;
            if (has_counts_) scatter_symbol(1);
        }
        tree_->fill_rest(next_, rest_of_.data());
        select_all();
        for (int32_t at = 0; at < n_chosen_; ++at)
            if (chosen_[at] != i_ && chosen_[at] != o_) consider(emission, chosen_[at]);
        consider(emission, i_);
        if (i_ != o_) consider(emission, o_);
        if (has_counts_) scatter_symbol(0);
        has_counts_ = false;
    }
    // Labels that may pass u and v.
    void select_all() {
        const double *masses = tree_->masses();
        const double *above = lacks_shared_ ? shared_by(at_prefixes_[1]) : masses;
        rough_passing(tree_->padded(), row_.data(), lacks_shared_ ? w_[1] : 0.0, above, g_,
                      masses, 1.0 / u_, column_.data(), base_, rest_of_.data(), 1.0 / v_,
                      p_f_.data());
        n_chosen_ = blocked_passes.select(tree_->padded(), static_cast<float>(kMargin),
                                          p_f_.data(), ones_f_.data(), chosen_.data());
    }
    // The symbol's counts into e_, or zeros.
    void scatter_symbol(int32_t factor) {
        for (int32_t at = 0; at < column_of_symbol_->size; ++at)
            e_[column_of_symbol_->ids[at]] = factor * column_of_symbol_->counts[at];
    }
    const Line &row_line(int32_t d) const {
        return tree_->row_line(d, tree_->shape.row(d, i_, at_prefixes_[d]));
    }
    const Line &column_line(int32_t d) const {
        return tree_->column_line(d, o_, prefixes_[d]);
    }
    SKIHMM_INLINE void consider(Emission &emission, int32_t k) {
        const double mass = mass_of(k);
        double p = row_[k] + g_ * mass;
        if (k == x_ || k == bar_ || !(mass > 0.0) || (!(p >= u_) && !lacks_shared_)) return;
        const double next = follow(k);
        if (o_ >= 0 && !(next >= v_)) return;
        if (lacks_shared_ && !((p += shared_part(k)) >= u_)) return;
        const double weight = weight_of(emission, k, {});
        candidates_.push_back({k, p * next, weight});
        rest_ += weight;
    }

    static constexpr double kTiny = std::numeric_limits<double>::min();
    static constexpr double kLeast = 1e-200;    // weight of a label, over the largest
    // Of the pass in floats, beyond its rounding errors.
    static constexpr double kMargin = 1.0 - 1e-5;
    static constexpr int32_t kFew = 16, kLanes = 16, kMostDense = 192;

    const ContextTree *tree_ = nullptr;
    int32_t n_slots_ = 0, depth_ = 0;
    int32_t own_ = 1;                       // first depth of restaurants of labels
    const int32_t *totals_ = nullptr;
    double offset_ = 1.0;
    double largest_ = 0.0;                  // at least every mass
    std::vector<int32_t> most_;             // the same of the customers of a dish, by restaurant
                                            // that all labels share
    bool lacks_shared_ = false;             // of the row of this step
    WideVector<double> shared_;             // by such a restaurant, by label
    std::vector<int32_t> e_;                // the symbol's counts, if they have been written
    bool has_counts_ = false;
    const SymbolColumn *column_of_symbol_ = nullptr;
    DenseCounts dense_;                     // those between moves, and what goes with them
    WideVector<float> mass_f_, p_f_, ones_f_;
    std::vector<int32_t> chosen_;
    int32_t n_chosen_ = 0;
    bool is_dense_ = false;                 // of this step
    std::vector<double> row_, column_;      // zero outside of a step
    std::vector<double> rest_of_;           // R_k
    std::vector<double> probs_;             // F_k(y[t]) of emissions that give whole rows
    // this step
    const Step *step_ = nullptr;            // of lifted customers, or none
    ContextPlace at_, next_;
    std::vector<int32_t> at_prefixes_, prefixes_, counts_;      // by depth
    std::vector<double> w_;
    int64_t t_ = 0;
    int32_t i_ = 0, o_ = 0, x_ = 0, bar_ = 0, symbol_ = -1, m_o_ = 0;
    double g_ = 0.0, base_ = 1.0, smooth_ = 1.0;
    double u_ = 0.0, v_ = 0.0;              // the slices
    double old_p_ = 0.0, old_weight_ = 0.0, rest_ = 0.0;
    std::vector<Candidate> candidates_;
    FreshLabels labels_;
};

template <class Chain, class Emission>
using ContextSlice = ContextSliceIn<Chain, Emission, Emission::kIsSeating>;
template <class Chain>
constexpr bool kLiftsInTree<ContextSliceIn<Chain, SeatingEmission, true>> = true;

}  // namespace skihmm
