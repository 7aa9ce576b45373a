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
// The step's old label x is tried first (at stationarity nine of ten proposals repeat it);
// besides its weight only the total of the others is computed.  Caches by slot are those of the
// seating *between* moves, and x is outside of every sum, so that a move without a change writes
// nothing and there is no cancellation.
//
// Sparse, in double: the product is expanded,
//     sum_k q(k) = sum_k e_ky w_k (n_ik + c m_k)(n_ko + b)               over the symbol
//                  + d (sum_k n_ik w_k (n_ko + b)                        over the row
//                       + c (sum_k n_ko m_k w_k + b sum_k m_k w_k)),
// and the last two sums, flow[o] and total, are updated with the few labels that change.  The
// rest is a loop over the non-zeros of a row and of a symbol.
// Contexts, in double: all K weights in one vectorised pass (_context_step.hpp).
// All, in double: all K weights, for steps without successor or observation, for emissions that
// only give whole rows and for laws that add to self-transitions.
//
// The exact variant (not in the paper) draws the label together with an indicator that its
// transition opens a table, with the successor's probability *after* that.  With
// c' = alpha/(m+1+gamma)
//
//     q(k, no table) = n_ik (n_ko + b) (e_ky + d) w_k
//     q(k, a table) = c m_k (n_ko + b') (e_ky + d) w_k,     b' = c' m_o,
//
// but k = o that opens a table has one table more, b' = c' (m_o + 1), and k = i one customer
// more in its row (and in n_ko, if o is the same label).  This is the conditional distribution,
// without rejections.  So o is outside of the sums, like x, and i's w is the one between moves.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_context_step.hpp"
#include "_rcd.hpp"
#include "_vector.hpp"

namespace skihmm {

template <class Emission>
class Stepwise {
  public:
    using Transitions = HCRPTransitions;
    static constexpr bool kReadsTouched = false, kReadsView = true, kMayBeExact = true;

    // Dense counts to look up single pairs in up to `lookup_slots`.
    Stepwise(bool is_exact, int32_t lookup_slots)
        : is_exact_(is_exact), lookup_slots_(lookup_slots) {}
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
        mode_ = kAll;
        if (chain.transitions->has_contexts()) {
            if (!chain.transitions->coins().exist()) mode_ = kContexts;
            step_.attach(chain.transitions->contexts());
        }
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
            if (mode_ == kContexts && o_ >= 0)
                fill_contexts(s, emission, view, symbol, chain.hints[t_]);
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
            // Else only pairs of x differ from what the dense counts show, and x is apart.
            shown_in_ = s.show_dense(i_, x_, n_in_);
            shown_out_ = s.show_dense(x_, o_, n_out_);
        }
        // planted: sparse weights by dense counts
        if (has_lookup_) fill_sparse(s, s.dense_row(i_), s.dense_column(o_));
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

    // End of the move: bring the caches up to date with what it changed.
    SKIHMM_INLINE void settle(Chain &chain, Emission &emission, int64_t,
                              int64_t, bool) {
        const Transitions &s = *chain.transitions;
        const int32_t k = chain.states[t_];
        if (SKIHMM_UNLIKELY(mode_ == kContexts)) return settle_contexts(k);
        if (SKIHMM_UNLIKELY(k != x_ && has_lookup_ && !s.has_dense())) {
            attach(chain, emission);    // a count has outgrown 16 bits
            return;
        }
        if (mode_ == kSparse) {
            if (SKIHMM_UNLIKELY(k != x_)) {
                settle_moved(s, k);
                return;
            }
            absorb_mass(s, x_);
            if (o_ >= 0) absorb_mass(s, o_);
        }
    }

  private:
    enum Kind { kSparse, kAll, kContexts };
    // A label's weight, the part of it that opens no table (exact only), and a number
    // uniform on [0, weight).
    struct Choice {
        double q, stays, u;  // planted: numbers of a choice
    };
    static constexpr int32_t kLanes = 16;
    // A cached sum that falls by more than this factor has lost too many digits and is recomputed.
    static constexpr double kCancelled = 1e-3;

    void attach_columns(Transitions &s, Emission &emission) {
        const size_t n = n_slots_;
        totals_ = emission.totals(&offset_);
        h_.assign(padded_, 0.0);
        for (int32_t k = 0; k < n_slots_; ++k) h_[k] = 1.0 / total_weight(totals_[k], offset_);
        if (!s.is_plain()) return;          // the passes in parts are those of the plain law
        s.set_dense_limit(lookup_slots_);
        has_lookup_ = s.has_dense();
        mode_ = kSparse;
        w_.resize(n);
        mass_.resize(n);
        v_.resize(n);
        // NaN: not computed yet.
        flow_.assign(n, std::numeric_limits<double>::quiet_NaN());
        for (int32_t k = 0; k < n_slots_; ++k) {
            mass_[k] = s.own_mass(k);
            w_[k] = k == kStart ? 0.0 : weight_now(s, k);
            v_[k] = mass_[k] * w_[k];
        }
        total_ = sum_all();
    }
    double weight_now(const Transitions &s, int32_t k) const {
        return 1.0 / (s.total(k) * total_weight(totals_[k], offset_));
    }
    int32_t symbol_count(int32_t k) const {
        // Ids are distinct, so the compiler may compare many at once.
        int32_t count = 0;
        for (int32_t at = 0; at < view_->size; ++at)
            count += view_->ids[at] == k ? view_->counts[at] : 0;
        return count;
    }
    double weight_of(const Transitions &s, int32_t k) const {
        if (kind_ == kAll) return weights_[k];
        if (kind_ == kContexts) return step_.weights.q[k] * (1.0 + symbol_count(k) * by_smooth_);
        const double row = has_lookup_ ? s.dense_row(i_)[k] : row_[k];
        const double column = has_lookup_ ? s.dense_column(o_)[k] : column_[k];
        return dish_weight(row, c_, mass_[k]) * dish_weight(column, b_)
               * dish_weight<double>(symbol_count(k), d_) * w_[k];
    }
    // The two parts of the weight of a label in the sums (exact only).
    SKIHMM_NOINLINE Choice split(const Transitions &s, int32_t k, bitgen_t *g) {
        if (kind_ == kContexts) return split_contexts(s, k, g);
        Choice choice{weights_[k], stays_[k], 0.0};
        if (kind_ == kSparse && k != first_) {
            const double row = has_lookup_ ? s.dense_row(i_)[k] : row_[k];
            const double column = has_lookup_ ? s.dense_column(o_)[k] : column_[k];
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
            case kContexts: return draw_contexts(u);
            case kSparse:
                return has_lookup_ ? draw_sparse(s, s.dense_row(i_), s.dense_column(o_), u)
                                   : draw_sparse(s, row_.data(), column_.data(), u);
            default: return draw_all(u);
        }
    }
    void end_step(Transitions &s) {
        if (SKIHMM_UNLIKELY(kind_ >= kAll)) {
            if (kind_ == kContexts) step_.close();
            return;
        }
        if (shows_) {
            s.show_dense(x_, o_, shown_out_);
            s.show_dense(i_, x_, shown_in_);
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
    // The id of the term that contains u; the last possible one if rounding leaves u >= 0.
    template <class Id, class Term>
    int32_t search(int32_t size, Id id, Term term, double u) const {  // planted: search of a label
        int32_t chosen = first_;
        for (int32_t at = 0; at < size; ++at) {
            const double value = term(at);
            if (value > 0.0) {
                chosen = id(at);
                if ((u -= value) < 0.0) break;
            }
        }
        return chosen;
    }

    // ---- sparse

    template <class Count>
    // planted: sparse weights
    SKIHMM_INLINE void fill_sparse(const Transitions &s, const Count *row_counts,
                                   const Count *column_counts) {
        double *w = w_.data(), *mass = mass_.data();
        const double b = b_, c = c_;
        // x is apart: weight zero until end_step.
        saved_w_ = w[x_];
        w[x_] = 0.0;
        double shift_o = 0.0, shift_i = 0.0;
        double out_of_o = 0.0;                  // customers of (o, o)
        double opened_b = b;
        if (is_exact_) {
            opened_b = opened_b_;
            if (SKIHMM_LIKELY(apart_ >= 0)) {
                out_of_o = column_counts[o_];
                set_apart(row_counts[o_], out_of_o);
            }
        } else {
            // The removed customers may have closed a table of o, and i has one customer
            // less.
            if (mass_o_ != mass[o_] && o_ != x_) {  // planted: mass of the successor
                shift_o = (mass_o_ - mass[o_]) * w[o_];  // planted: change of the successor
                mass[o_] = mass_o_;  // planted: new mass of the successor
            }
            const double w_i = saved_w_i_ = w[i_];
            if (SKIHMM_LIKELY(w_i > 0.0)) {     // neither x nor the start restaurant
                w[i_] = 1.0 / by_i_;
                shift_i = (w[i_] - w_i) * mass[i_];
            }
        }
        const Line &row = s.row(i_);
        const Pair bb = Pair::of(b), cc = Pair::of(c), opened = Pair::of(opened_b);
        Pair part[2] = {Pair::of(0.0), Pair::of(0.0)};
        for (int32_t at = 0; at < row.size; at += 4) {
            for (int32_t l = 0; l < 2; ++l) {
                const int32_t *n = row.counts + at + 2 * l;
                const int32_t k = row.ids[at + 2 * l], j = row.ids[at + 2 * l + 1];
                part[l] = part[l] + Pair::next(n) * Pair::at(w, k, j)
                                    * dish_weight(Pair::at(column_counts, k, j), bb);
            }
        }
        row_sum_ = part[0].sum() + part[1].sum();
        // The symbol's states.
        const int32_t *ids = view_->ids, *counts = view_->counts;
        const int32_t size = view_->size;
        part[0] = part[1] = Pair::of(0.0);
        for (int32_t at = 0; at < size; at += 4) {
            for (int32_t l = 0; l < 2; ++l) {
                const int32_t k = ids[at + 2 * l], j = ids[at + 2 * l + 1];
                const Pair out = Pair::at(column_counts, k, j);
                part[l] = part[l] + Pair::next(counts + at + 2 * l) * Pair::at(w, k, j)
                                    * (Pair::at(row_counts, k, j) * dish_weight(out, bb)
                                       + cc * Pair::at(mass, k, j) * dish_weight(out, opened));
            }
        }
        symbol_sum_ = part[0].sum() + part[1].sum();
        // The two cached sums without x, and with what the removal has changed.
        const bool is_loop = i_ == x_ && o_ == x_;
        double gone = (n_out_ + 1 + is_loop) * v_[x_];
        if (o_ == x_ && !is_loop) gone += v_[i_];
        if (apart_ >= 0) gone += out_of_o * v_[apart_];
        column_sum_ = flow_[o_] - gone;
        if (SKIHMM_UNLIKELY(!(column_sum_ > kCancelled * gone))) walk_column(s, gone);
        if (!is_exact_)
            column_sum_ += column_counts[o_] * shift_o + column_counts[i_] * shift_i;
        gone = v_[x_] + (first_ == kNew ? v_[kNew] : 0.0);
        if (apart_ >= 0) gone += v_[apart_];
        smooth_sum_ = total_ - gone;
        if (SKIHMM_UNLIKELY(!(smooth_sum_ > kCancelled * gone))) walk_all();
        smooth_sum_ += shift_o + shift_i;
        rest_ = symbol_sum_ + d_ * (row_sum_ + c * (column_sum_ + opened_b * smooth_sum_));
        if (!(rest_ > 0.0)) rest_ = 0.0;
        if (SKIHMM_UNLIKELY(first_ != x_)) {
            first_q_ = c * mass[kNew] * opened_b * d_ * w[kNew];
        } else if (is_exact_) {
            const double out = n_out_ + is_loop;
            const double by_symbol = dish_weight<double>(e_in_, d_) / by_x_;
            first_stays_ = n_in_ * dish_weight(out, b) * by_symbol;
            first_q_ = first_stays_
                       + c * mass_x_ * dish_weight(out, o_ == x_ ? opened_b_o_ : opened_b)
                             * by_symbol;
        } else {
            first_q_ = dish_weight<double>(n_in_, c, mass_x_) * dish_weight<double>(n_out_, b)
                       * dish_weight<double>(e_in_, d_) * (1.0 / by_x_);
        }
    }
    // Exact only: the weight of the successor's label, which is not x.
    void set_apart(double row, double column) {
        saved_w_o_ = w_[o_];
        w_[o_] = 0.0;
        const double out = column + (i_ == o_);
        const double by_symbol = dish_weight<double>(symbol_count(o_), d_) * saved_w_o_;
        apart_stays_ = row * dish_weight(out, b_) * by_symbol;
        apart_q_ = apart_stays_ + c_ * mass_o_ * dish_weight(out, opened_b_o_) * by_symbol;
    }
    // flow[o] as it was between moves, without x and what is apart, from the column at s_0.
    SKIHMM_NOINLINE void walk_column(const Transitions &s, double gone) {
        const Line &column = s.column(o_);
        double sum = 0.0;
        for (int32_t at = 0; at < column.size; ++at)
            if (column.ids[at] != x_ && column.ids[at] != apart_)
                sum += column.counts[at] * v_[column.ids[at]];
        column_sum_ = sum;
        flow_[o_] = sum + gone;
    }
    SKIHMM_NOINLINE void walk_all() {
        total_ = sum_all();
        double sum = 0.0;
        for (int32_t k = 0; k < n_slots_; ++k)
            sum += k == x_ || k == first_ || k == apart_ ? 0.0 : v_[k];
        smooth_sum_ = sum;
    }
    double sum_all() const {
        double part[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
        for (int32_t k = 0; k < n_slots_; ++k) part[k % 8] += v_[k];
        return ((part[0] + part[1]) + (part[2] + part[3]))
               + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    template <class Count>
    // planted: draw by counts
    SKIHMM_NOINLINE int32_t draw_sparse(const Transitions &s, const Count *row_counts,
                                        const Count *column_counts, double u) const {
        const double *w = w_.data(), *mass = mass_.data();
        const double opened_b = is_exact_ ? opened_b_ : b_;
        if (u < symbol_sum_) {
            return search(view_->size, [&](int32_t at) { return view_->ids[at]; },
                          [&](int32_t at) {
                const int32_t k = view_->ids[at];
                return view_->counts[at] * w[k]
                       * (row_counts[k] * dish_weight<double>(column_counts[k], b_)
                          + c_ * mass[k] * dish_weight<double>(column_counts[k], opened_b));
            }, u);
        }
        u = (u - symbol_sum_) / d_;
        if (u < row_sum_) {
            const Line &row = s.row(i_);
            return search(row.size, [&](int32_t at) { return row.ids[at]; },
                          [&](int32_t at) {
                const int32_t k = row.ids[at];
                return row.counts[at] * w[k] * dish_weight<double>(column_counts[k], b_);
            }, u);
        }
        u = (u - row_sum_) / c_;
        if (u < column_sum_) {
            const Line &column = s.column(o_);
            return search(column.size, [&](int32_t at) { return column.ids[at]; },
                          [&](int32_t at) {
                const int32_t k = column.ids[at];
                return column.counts[at] * (mass[k] * w[k]);
            }, u);
        }
        // The smooth part: eight at a time until the one is near.
        u = (u - column_sum_) / opened_b;
        auto value = [&](int32_t k) {
            return k == first_ ? 0.0 : mass[k] * w[k];
        };
        int32_t k = 0;
        for (; k + 8 <= n_slots_; k += 8) {
            double sum = 0.0;
            for (int32_t l = k; l < k + 8; ++l) sum += value(l);
            if (u < sum) break;
            u -= sum;
        }
        const int32_t found = search(n_slots_ - k, [&](int32_t at) { return k + at; },
                                     [&](int32_t at) { return value(k + at); }, u);
        if (found != first_) return found;
        for (k = n_slots_ - 1; k > 0 && !(value(k) > 0.0); --k) {}
        return value(k) > 0.0 ? k : first_;
    }
    void absorb_mass(const Transitions &s, int32_t k) {
        const double mass = s.own_mass(k);
        mass_[k] = mass;
        const double v = mass * w_[k];
        if (v != v_[k]) spread(s, k, v);
    }
    // Set v[k] to v, and update the flows of k's successors and the total.
    SKIHMM_NOINLINE void spread(const Transitions &s, int32_t k, double v) {
        const double change = v - v_[k], limit = kCancelled * v_[k];
        const Line &row = s.row(k);
        for (int32_t at = 0; at < row.size; ++at) {
            double &flow = flow_[row.ids[at]];
            const double now = flow + row.counts[at] * change;
            flow = now < row.counts[at] * limit
                ? std::numeric_limits<double>::quiet_NaN() : now;
        }
        v_[k] = v;
        total_ += change;
        if (total_ < limit) total_ = sum_all();
    }
    void lower_flow(int32_t k, double by) {
        const double now = flow_[k] - by;
        flow_[k] = now < kCancelled * by ? std::numeric_limits<double>::quiet_NaN() : now;
    }
    SKIHMM_NOINLINE void settle_moved(const Transitions &s, int32_t k) {
        // First the counts at the old v, then v at the new counts.
        lower_flow(x_, v_[i_]);
        flow_[k] += v_[i_];
        if (o_ >= 0) {
            lower_flow(o_, v_[x_]);
            flow_[o_] += v_[k];
        }
        w_[x_] = weight_now(s, x_);
        w_[k] = weight_now(s, k);
        absorb_mass(s, x_);
        absorb_mass(s, k);
        if (o_ >= 0) absorb_mass(s, o_);
    }

    // ---- contexts

    SKIHMM_NOINLINE void fill_contexts(const Transitions &s, Emission &emission,
                                       const StepView &view, const SymbolView &symbol,
                                       int32_t hint) {
        kind_ = kContexts;
        shows_ = false;
        apart_ = -1;
        if constexpr (Emission::kIsSeating) {
            if (symbol.exists) h_[x_] = 1.0 / total_weight(symbol.e_x, offset_);
            h_now_ = symbol.exists ? h_.data() : step_.ones();
        } else {
            emission.fill_probs(t_, probs_.data());
            h_now_ = probs_.data();
        }
        const ContextTree &tree = s.contexts();
        // planted: contexts of a step
        step_.open(tree, tree.place(t_), tree.place(t_ + 1), i_, o_, is_exact_);
        step_.weigh(h_now_, view.is_ghost());
        Weights &weights = step_.weights;
        by_smooth_ = 0.0;
        extra_ = 0.0;
        double e_first = 0.0;
        first_q_ = weights.q[first_];
        weights.change(first_, 0.0);
        if (symbol.exists) {
            by_smooth_ = 1.0 / view_->smooth;
            for (int32_t at = 0; at < view_->size; ++at)
                extra_ += weights.q[view_->ids[at]] * (view_->counts[at] * by_smooth_);
            if (first_ == x_) e_first = symbol.e_in;
        }
        const double by_symbol = 1.0 + e_first * by_smooth_;
        first_q_ *= by_symbol;
        if (is_exact_)
            first_stays_ = step_.joining_part(first_, count_in(tree, first_, hint))
                           * h_now_[first_] * by_symbol;
        rest_ = weights.total() + extra_;
    }
    Choice split_contexts(const Transitions &s, int32_t k, bitgen_t *g) {
        const ContextTree &tree = s.contexts();
        const double by_symbol = 1.0 + symbol_count(k) * by_smooth_;
        Choice choice{step_.weights.q[k] * by_symbol, 0.0, 0.0};
        choice.stays = step_.joining_part(k, count_in(tree, k, -1)) * h_now_[k] * by_symbol;
        choice.u = uniform(g) * choice.q;
        return choice;
    }
    int32_t count_in(const ContextTree &tree, int32_t k, int32_t hint) const {
        return k == kNew ? 0 : tree.leaf_count(tree.place(t_), i_, k, hint);
    }
    int32_t draw_contexts(double u) const {  // planted: draw in contexts
        const Weights &weights = step_.weights;
        if (u < extra_)
            return search(view_->size, [&](int32_t at) { return view_->ids[at]; },
                          [&](int32_t at) {
                return weights.q[view_->ids[at]] * (view_->counts[at] * by_smooth_);
            }, u);
        const int32_t k = weights.at(u - extra_);
        return k < 0 ? first_ : k;
    }

    SKIHMM_NOINLINE void settle_contexts(int32_t k) {
        if constexpr (Emission::kIsSeating) {
            h_[x_] = 1.0 / total_weight(totals_[x_], offset_);
            h_[k] = 1.0 / total_weight(totals_[k], offset_);
        }
    }

    // ---- all

    SKIHMM_NOINLINE void fill_all(const Transitions &s, Emission &emission,
                                  const StepView &view, bool has_symbol) {
        kind_ = kAll;
        shows_ = false;
        apart_ = -1;
        const double d = view_->smooth;
        double *weights = weights_.data(), *stays = stays_.data();
        if (s.has_contexts()) fill_in_tree(s, view);
        else s.fill_step(t_, view, is_exact_, weights, stays, row_.data(), column_.data());
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
    // Without the observation.
    void fill_in_tree(const Transitions &s, const StepView &view) {
        const ContextTree &tree = s.contexts();
        const ContextPlace at = tree.place(t_), next = tree.place(t_ + 1);
        const double by = 1.0 / tree.total(at, i_);
        std::fill_n(stays_.data(), n_slots_, 0.0);
        if (o_ < 0) {
            tree.fill_row(at, i_, weights_.data());
            tree.visit_leaf(at, i_, [&](int32_t k, int32_t n) { stays_[k] = by * n; });
        } else {
            step_.open(tree, at, next, i_, o_, is_exact_);  // planted: weights in a tree
            step_.weigh(step_.ones(), view.is_ghost());
            std::copy_n(step_.weights.q.data(), n_slots_, weights_.data());
            tree.visit_leaf(at, i_, [&](int32_t k, int32_t n) {
                stays_[k] = step_.joining_part(k, n);
            });
            step_.close();
        }
        s.add_coins(t_, i_, o_, is_exact_, weights_.data(), stays_.data());
    }
    SKIHMM_NOINLINE int32_t draw_all(double u) const {  // planted: draw of all labels
        return search(n_slots_, [&](int32_t k) { return k; },
                      [&](int32_t k) { return k == first_ ? 0.0 : weights_[k]; }, u);
    }

    const bool is_exact_;
    const int32_t lookup_slots_;
    Kind mode_ = kAll, kind_ = kAll;      // of the sweep, of this step
    bool has_lookup_ = false, shows_ = false;
    int32_t n_slots_ = 0, padded_ = 0;
    const int32_t *totals_ = nullptr;
    double offset_ = 1.0;
    // this step
    int64_t t_ = 0;
    int32_t i_ = 0, o_ = 0, x_ = 0, first_ = 0, n_in_ = 0, n_out_ = 0, e_in_ = 0;
    int32_t shown_in_ = 0, shown_out_ = 0;
    double c_ = 0.0, b_ = 1.0, d_ = 1.0, mass_x_ = 0.0, mass_o_ = 0.0;
    double by_i_ = 1.0, by_x_ = 1.0;      // denominators of w for i and x at s_0
    double first_q_ = 0.0, rest_ = 0.0;   // weight of `first_`, total of all others
    // exact only
    int32_t apart_ = -1;                  // o, if its weight is not among the others
    double apart_q_ = 0.0, apart_stays_ = 0.0, first_stays_ = 0.0, saved_w_o_ = 0.0;
    double opened_b_ = 1.0, opened_b_o_ = 1.0;  // b' for most labels, and for o
    const SymbolColumn *view_ = nullptr;  // of y[t]; lives as long as the move
    // sparse
    std::vector<double> w_, mass_;        // w_k and m_k, of i, x and o as at s_0
    std::vector<double> v_;               // m_k w_k between moves
    std::vector<double> flow_;            // sum_k n_ko v_k between moves, or NaN: unknown
    double total_ = 0.0;                  // sum_k v_k
    double saved_w_ = 0.0, saved_w_i_ = 0.0;
    double row_sum_ = 0.0, symbol_sum_ = 0.0, column_sum_ = 0.0, smooth_sum_ = 0.0;
    std::vector<double> row_, column_;    // zero between steps
    // all
    std::vector<double> weights_, stays_, probs_;
    // contexts
    ContextStep step_;
    std::vector<double> h_;               // 1/(e_k + alpha_e), padded
    double extra_ = 0.0;                  // what the listed states' symbol counts add
    double by_smooth_ = 0.0;              // over the symbol's smooth part
    const double *h_now_ = nullptr;       // of this step
};

inline Proposal *make_stepwise(Chain &chain, bool is_exact, int32_t lookup_slots) {
    return make_proposal<Stepwise>(chain, is_exact, lookup_slots);
}

}  // namespace skihmm
