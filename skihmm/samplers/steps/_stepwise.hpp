// The step-wise Gibbs proposal (arXiv 1106.0474, Section 4) for the template of _rcd.hpp.
//
// With i = x[t-1], o = x[t+1] and y = y[t], everything at s_0, the weight of label k is
//
//     q(k) = (n_ik + c m_k) (n_ko + b) (e_ky + d) w_k,  w_k = 1/((n_k + alpha)(e_k + alpha_e))
//
// with c = alpha/(m + gamma), b = c m_o, d = the emission's smooth part; a new state is the slot
// NEW with m = gamma.  If o lost its last table (its only draw was the one just removed) it is a
// candidate too, with the mass gamma of an unserved dish: otherwise the sampler is biased.  The
// paper always adds that mass to o's weight; adding it only when o is unserved is exact as well.
//
// The step's old label x is tried first (at stationarity nine of ten proposals repeat it); besides
// its weight only the total of the other labels is computed.  Caches by slot hold the seating
// *between* moves, and x is outside of every sum, so that a move without a change writes nothing
// and there is no cancellation.
//
// Sparse, in double: the product is expanded (_sparse_step.hpp).
// In a tree, in double: all K weights in one vectorised pass (_tree_step.hpp).
// All, in double: all K weights, for steps without successor or observation, for emissions that
// only give whole rows and for laws that add to self-transitions.
//
// The exact variant (not in the paper) draws the label together with an indicator that its
// transition opens a table, with the successor's probability *after* that draw.  With
// c' = alpha/(m+1+gamma)
//
//     q(k, no table) = n_ik (n_ko + b) (e_ky + d) w_k
//     q(k, a table) = c m_k (n_ko + b') (e_ky + d) w_k,     b' = c' m_o,
//
// but k = o that opens a table has one table more, b' = c' (m_o + 1), and k = i one customer more
// in its row (and in n_ko, if o is the same label).  This is the conditional distribution, without
// rejections.  So o is outside of the sums, like x, and i's w is the w between moves.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_rcd.hpp"
#include "_sparse_step.hpp"
#include "_tree_step.hpp"

namespace skihmm {

template <class Emission>
class Stepwise : TreeStep {
  public:
    static constexpr bool kReadsTouched = false, kReadsView = true, kMayBeExact = true;

    // Dense counts to look up single pairs in up to `lookup_slots`.
    Stepwise(bool is_exact, int32_t lookup_slots)
        : TreeStep(is_exact), lookup_slots_(lookup_slots) {}
    bool is_exact() const { return is_exact_; }

    // Start of a sweep, or more slots than before; only between moves.
    void attach(Chain &chain, Emission &emission) {
        n_slots_ = chain.n_slots;
        padded_ = (n_slots_ + kLanes - 1) / kLanes * kLanes;
        kind_ = kAll;
        totals_ = nullptr;
        offset_ = 1.0;
        const size_t n = n_slots_;
        probs_.assign(padded_, 1.0);
        row_.assign(n, 0.0);
        column_.assign(n, 0.0);
        weights_.assign(n, 0.0);
        stays_.assign(n, 0.0);
        mode_ = attach_tree(*chain.transitions) ? kTree : kAll;
        if constexpr (Emission::kIsSeating) attach_columns(*chain.transitions, emission);
    }

    void prefetch(Chain &chain, int64_t start, int64_t stop) const {
        if (mode_ != kSparse || chain.is_last(stop - 1)) return;
        const Transitions &s = *chain.transitions;
        const Line &row = s.row(chain.previous(start));
        SKIHMM_PREFETCH(row.ids);
        SKIHMM_PREFETCH(row.ids + 16);
        SKIHMM_PREFETCH(row.counts);
        SKIHMM_PREFETCH(row.counts + 16);
    }
    SKIHMM_INLINE void prepare(Chain &chain, Emission &emission,
                               const Move<Emission> &move) {
        Transitions &s = *chain.transitions;
        const StepView &view = move.view;
        const SymbolView &symbol = move.symbol;
        t_ = move.start;
        i_ = view.i;
        o_ = view.o;
        x_ = view.x;
        c_ = view.scale;
        // A label that lost its last table is a new state, except the ghost o, which still has
        // customers.
        mass_x_ = view.m_x;
        if (view.is_ghost() && o_ == x_) mass_x_ = s.mass(kNew);
        first_ = mass_x_ > 0.0 ? x_ : kNew;
        apart_ = is_exact_ && o_ != x_ ? o_ : -1;
        apart_q_ = apart_stays_ = first_stays_ = 0.0;
        view_ = &symbol.column;
        if (SKIHMM_UNLIKELY(mode_ >= kAll || o_ < 0 || !symbol.exists)) {
            if (mode_ == kTree && o_ >= 0) open_tree(s, emission, view, symbol, chain.hints[t_]);
            else fill_all(s, emission, view, symbol.exists);
            return;
        }
        kind_ = mode_;
        if (is_exact_) {
            opened_b_ = s.successor_table(view, false);
            opened_b_o_ = s.successor_table(view, true);
        }
        mass_o_ = view.mass_o;
        b_ = new_table_weight(c_, mass_o_);
        d_ = view_->smooth;
        n_in_ = view.n_in;
        n_out_ = view.n_out;
        e_in_ = symbol.e_in;
        by_i_ = view.total_i * total_weight(totals_[i_], offset_);
        by_x_ = is_exact_ && i_ == x_ ? s.total(x_, 1) : view.total_x;  // planted: own row
        by_x_ *= total_weight(symbol.e_x, offset_);
        shows_ = has_lookup_ && SKIHMM_UNLIKELY(i_ == x_ || o_ == x_);
        if (shows_) {
            // Else only pairs of x differ from the dense counts, and x is apart.
            shown_in_ = s.dense.show(i_, x_, n_in_);
            shown_out_ = s.dense.show(x_, o_, n_out_);
        }
        // planted: sparse weights by dense counts
        if (has_lookup_) fill_sparse(s, s.dense.row(i_), s.dense.column(o_));
        else {
            s.row(i_).scatter(row_.data());
            s.column(o_).scatter(column_.data());
            fill_sparse(s, row_.data(), column_.data());  // planted: sparse weights by lists
        }
    }

    void score(Chain &, int64_t, int64_t, Product *q) const { q->multiply(first_q_); }

    // The exact distribution of the label alone is a proposal like any other.
    SKIHMM_INLINE void propose(Chain &chain, int64_t, int64_t, int32_t *path,
                               Product *q) {
        q->multiply(choose(chain, path).q);
    }
    // Exact only: the label, and whether its transition opens a table.
    SKIHMM_INLINE void draw(Chain &chain, int32_t *path, bool *opens) {
        const Choice choice = choose(chain, path);
        *opens = choice.u >= choice.stays;
    }

    // End of the move: bring the caches up to date with its changes.
    SKIHMM_INLINE void end_move(Chain &chain, Emission &emission, int64_t,
                              int64_t, bool) {
        const Transitions &s = *chain.transitions;
        const int32_t k = chain.states[t_];
        if (SKIHMM_UNLIKELY(mode_ == kTree)) {
            if constexpr (Emission::kIsSeating) refresh_inverses(k);
            return;
        }
        if (SKIHMM_UNLIKELY(k != x_ && has_lookup_ && !s.dense.are_complete())) {
            attach(chain, emission);    // a count has outgrown 16 bits
            return;
        }
        if (mode_ == kSparse) {
            if (SKIHMM_UNLIKELY(k != x_)) {
                refresh_moved(s, k);
                return;
            }
            absorb_mass(s, x_);
            if (o_ >= 0) absorb_mass(s, o_);
        }
    }

  private:
    enum Kind { kSparse, kAll, kTree };
    static constexpr int32_t kLanes = 16;

    void attach_columns(Transitions &s, Emission &emission) {
        const size_t n = n_slots_;
        totals_ = emission.totals(&offset_);
        fill_inverses(padded_);
        if (!s.is_plain()) return;          // passes in parts need the plain law
        s.set_dense_limit(lookup_slots_);
        has_lookup_ = s.dense.are_complete();
        mode_ = kSparse;
        fill_caches(s);
    }
    double weight_of(const Transitions &s, int32_t k) const {
        if (kind_ == kAll) return weights_[k];
        if (kind_ == kTree) return weight_in_tree(k);
        const double row = has_lookup_ ? s.dense.row(i_)[k] : row_[k];
        const double column = has_lookup_ ? s.dense.column(o_)[k] : column_[k];
        return dish_weight(row, c_, mass_[k]) * dish_weight(column, b_)
               * dish_weight<double>(symbol_count(k), d_) * w_[k];
    }
    // The two parts of the weight of a label in the sums (exact only).
    SKIHMM_NOINLINE Choice split(const Transitions &s, int32_t k, bitgen_t *g) {
        if (kind_ == kTree) return split_in_tree(s, k, g);
        Choice choice{weights_[k], stays_[k], 0.0};
        if (kind_ == kSparse && k != first_) {
            const double row = has_lookup_ ? s.dense.row(i_)[k] : row_[k];
            const double column = has_lookup_ ? s.dense.column(o_)[k] : column_[k];
            const double by_symbol = dish_weight<double>(symbol_count(k), d_) * w_[k];
            choice.stays = row * dish_weight(column, b_) * by_symbol;
            choice.q = choice.stays + c_ * mass_[k] * dish_weight(column, opened_b_) * by_symbol;
        } else if (kind_ == kSparse) {
            choice.stays = first_stays_;
            choice.q = first_q_;
        }
        choice.u = uniform(g) * choice.q;
        return choice;
    }
    SKIHMM_INLINE Choice choose(Chain &chain, int32_t *path) {
        const Transitions &s = *chain.transitions;
        // planted: number of a step
        double u = uniform(chain.bits) * (first_q_ + apart_q_ + rest_);
        int32_t k = first_;
        Choice choice{first_q_, first_stays_, u};
        if (SKIHMM_UNLIKELY(u >= first_q_)) {
            u -= first_q_;
            if (u < apart_q_) {
                k = apart_;
                choice = {apart_q_, apart_stays_, u};
            } else {
                k = draw_other(s, u - apart_q_);
                if (is_exact_) choice = split(s, k, chain.bits);
                else choice.q = weight_of(s, k);
            }
        }
        *path = k == kNew ? chain.free_slot(0) : k;
        end_step(*chain.transitions);
        return choice;
    }
    int32_t draw_other(const Transitions &s, double u) const {  // planted: draw of another label
        switch (kind_) {
            case kTree: return draw_in_tree(u);
            case kSparse:
                return has_lookup_ ? draw_sparse(s, s.dense.row(i_), s.dense.column(o_), u)
                                   : draw_sparse(s, row_.data(), column_.data(), u);
            default: return draw_all(u);
        }
    }
    void end_step(Transitions &s) {
        if (SKIHMM_UNLIKELY(kind_ >= kAll)) {
            if (kind_ == kTree) close_tree();
            return;
        }
        if (shows_) {
            s.dense.show(x_, o_, shown_out_);
            s.dense.show(i_, x_, shown_in_);
        }
        if (is_exact_) {
            if (apart_ >= 0) w_[apart_] = saved_w_o_;
        } else {
            w_[i_] = saved_w_i_;
        }
        w_[x_] = saved_w_;
        if (!has_lookup_) {
            s.row(i_).unscatter(row_.data());
            s.column(o_).unscatter(column_.data());
        }
    }

    SKIHMM_NOINLINE void open_tree(const Transitions &s, Emission &emission, const StepView &view,
                                   const SymbolView &symbol, int32_t hint) {
        kind_ = kTree;
        shows_ = false;
        apart_ = -1;
        const double *h = probs_.data();
        if constexpr (Emission::kIsSeating) h = inverses(symbol);
        else emission.fill_probs(t_, probs_.data());
        fill_tree(s, h, view, symbol, hint);
    }

    // ---- all

    SKIHMM_NOINLINE void fill_all(const Transitions &s, Emission &emission,
                                  const StepView &view, bool has_symbol) {
        kind_ = kAll;
        shows_ = false;
        apart_ = -1;
        const double d = view_->smooth;
        double *weights = weights_.data(), *stays = stays_.data();
        if (is_tree()) {
            fill_all_in_tree(s, view, weights, stays);
            if (s.coins().exist()) add_coins(s);
        } else {
            s.fill_step(t_, view, is_exact_, weights, stays, row_.data(), column_.data());
            if (SKIHMM_UNLIKELY(s.has_inputs())) {
                const double by = 1.0 / s.total(i_);
                for (int32_t k = 0; k < n_slots_; ++k) {
                    weights[k] *= by;
                    stays[k] *= by;
                }
                add_coins(s);
            }
        }
        if constexpr (!Emission::kIsSeating) emission.fill_probs(t_, probs_.data());
        if (has_symbol) {
            for (int32_t k = 0; k < n_slots_; ++k)
                probs_[k] = d / total_weight(totals_[k], offset_);
            for (int32_t at = 0; at < view_->size; ++at)
                probs_[view_->ids[at]] *= dish_weight<double>(view_->counts[at], d) / d;
        }
        if (has_symbol || !Emission::kIsSeating) {
            for (int32_t k = 0; k < n_slots_; ++k) {
                weights[k] *= probs_[k];
                stays[k] *= probs_[k];
            }
        }
        first_stays_ = stays[first_];
        first_q_ = weights[first_];
        double part[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
        for (int32_t k = 0; k < n_slots_; ++k)
            part[k % 8] += k == first_ ? 0.0 : weights[k];
        rest_ = ((part[0] + part[1]) + (part[2] + part[3]))
                + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    void add_coins(const Transitions &s) {
        for (auto *row : {&coin_stays_, &leaves_}) row->resize(n_slots_);
        if (o_ >= 0)
            s.fill_coins(t_ + 1, n_slots_, coin_stays_.data(), leaves_.data());
        s.add_coins(t_, i_, o_, is_exact_, leaves_.data(), weights_.data(), stays_.data());
    }
    SKIHMM_NOINLINE int32_t draw_all(double u) const {  // planted: draw of all labels
        return search(n_slots_, [&](int32_t k) { return k; },
                      [&](int32_t k) { return k == first_ ? 0.0 : weights_[k]; }, u);
    }

    const int32_t lookup_slots_;
    Kind mode_ = kAll, kind_ = kAll;      // of the sweep, of this step
    bool has_lookup_ = false, shows_ = false;
    int32_t padded_ = 0;
    // all
    std::vector<double> weights_, stays_, probs_;
    std::vector<double> coin_stays_, leaves_;    // of coins of the step after it
};

inline Proposal *make_stepwise(Chain &chain, bool is_exact, int32_t lookup_slots) {
    return make_proposal<Stepwise>(chain, is_exact, lookup_slots);
}

}  // namespace skihmm
