// The weights of one step in the plain law, for symbols, by the non-zeros of rows and columns.
//
// The weight of label k is (_stepwise.hpp)
//
//     q(k) = (n_ik + c m_k) (n_ko + b) (e_ky + d) w_k,  w_k = 1/((n_k + alpha)(e_k + alpha_e)).
//
// The product is expanded,
//     sum_k q(k) = sum_k e_ky w_k (n_ik + c m_k)(n_ko + b)               over the symbol
//                  + d (sum_k n_ik w_k (n_ko + b)                        over the row
//                       + c (sum_k n_ko m_k w_k + b sum_k m_k w_k)),
// and the last two sums, flow[o] and total, are updated with the few labels that change.  The
// rest is a loop over the non-zeros of a row and of a symbol.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_emission.hpp"
#include "_transitions.hpp"
#include "_vector.hpp"

namespace skihmm {

class SparseStep {
  protected:
    using Transitions = HCRPTransitions;

    // A label's weight, the part of it that opens no table (exact only), and a number
    // uniform on [0, weight).
    struct Choice {
        double q, stays, u;  // planted: numbers of a choice
    };

    explicit SparseStep(bool is_exact) : is_exact_(is_exact) {}

    // Between moves.
    void fill_caches(const Transitions &s) {
        const size_t n = n_slots_;
        w_.resize(n);
        mass_.resize(n);
        v_.resize(n);
        // NaN: not computed yet.
        flow_.assign(n, std::numeric_limits<double>::quiet_NaN());
        for (int32_t k = 0; k < n_slots_; ++k) {
            mass_[k] = s.counted_mass(k);
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
    // The id of the term that contains u; the last possible id if rounding leaves u >= 0.
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

    template <class Count>
    // planted: sparse weights
    SKIHMM_INLINE void fill_sparse(const Transitions &s, const Count *row_counts,
                                   const Count *column_counts) {
        double *w = w_.data(), *mass = mass_.data();
        // x is apart: weight zero until end_step.
        saved_w_ = w[x_];
        w[x_] = 0.0;
        double shift_o = 0.0, shift_i = 0.0;
        double out_of_o = 0.0;                  // customers of (o, o)
        double opened_b = b_;
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
        row_sum_ = sum_row(s.row(i_), column_counts);
        symbol_sum_ = sum_symbol(row_counts, column_counts, opened_b);
        fill_cached_sums(s, out_of_o);
        if (!is_exact_)
            column_sum_ += column_counts[o_] * shift_o + column_counts[i_] * shift_i;
        smooth_sum_ += shift_o + shift_i;
        rest_ = symbol_sum_ + d_ * (row_sum_ + c_ * (column_sum_ + opened_b * smooth_sum_));
        if (!(rest_ > 0.0)) rest_ = 0.0;
        weigh_first(opened_b);
    }
    template <class Count>
    SKIHMM_INLINE double sum_row(const Line &row, const Count *column_counts) const {
        const double *w = w_.data();
        const Pair bb = Pair::of(b_);
        Pair part[2] = {Pair::of(0.0), Pair::of(0.0)};
        for (int32_t at = 0; at < row.size; at += 4) {
            for (int32_t l = 0; l < 2; ++l) {
                const int32_t *n = row.counts + at + 2 * l;
                const int32_t k = row.ids[at + 2 * l], j = row.ids[at + 2 * l + 1];
                part[l] = part[l] + Pair::next(n) * Pair::at(w, k, j)
                                    * dish_weight(Pair::at(column_counts, k, j), bb);
            }
        }
        return part[0].sum() + part[1].sum();
    }
    // Over the symbol's states.
    template <class Count>
    SKIHMM_INLINE double sum_symbol(const Count *row_counts, const Count *column_counts,
                                    double opened_b) const {
        const double *w = w_.data(), *mass = mass_.data();
        const Pair bb = Pair::of(b_), cc = Pair::of(c_), opened = Pair::of(opened_b);
        const int32_t *ids = view_->ids, *counts = view_->counts;
        const int32_t size = view_->size;
        Pair part[2] = {Pair::of(0.0), Pair::of(0.0)};
        for (int32_t at = 0; at < size; at += 4) {
            for (int32_t l = 0; l < 2; ++l) {
                const int32_t k = ids[at + 2 * l], j = ids[at + 2 * l + 1];
                const Pair out = Pair::at(column_counts, k, j);
                part[l] = part[l] + Pair::next(counts + at + 2 * l) * Pair::at(w, k, j)
                                    * (Pair::at(row_counts, k, j) * dish_weight(out, bb)
                                       + cc * Pair::at(mass, k, j) * dish_weight(out, opened));
            }
        }
        return part[0].sum() + part[1].sum();
    }
    // The two cached sums without x and the label apart, at s_0 but for the change of masses.
    SKIHMM_INLINE void fill_cached_sums(const Transitions &s, double out_of_o) {
        const bool is_loop = i_ == x_ && o_ == x_;
        double gone = (n_out_ + 1 + is_loop) * v_[x_];
        if (o_ == x_ && !is_loop) gone += v_[i_];
        if (apart_ >= 0) gone += out_of_o * v_[apart_];
        column_sum_ = flow_[o_] - gone;
        if (SKIHMM_UNLIKELY(!(column_sum_ > kCancelled * gone))) walk_column(s, gone);
        gone = v_[x_] + (first_ == kNew ? v_[kNew] : 0.0);
        if (apart_ >= 0) gone += v_[apart_];
        smooth_sum_ = total_ - gone;
        if (SKIHMM_UNLIKELY(!(smooth_sum_ > kCancelled * gone))) walk_all();
    }
    SKIHMM_INLINE void weigh_first(double opened_b) {
        if (SKIHMM_UNLIKELY(first_ != x_)) {
            first_q_ = c_ * mass_[kNew] * opened_b * d_ * w_[kNew];
        } else if (is_exact_) {
            const double out = n_out_ + (i_ == x_ && o_ == x_);
            const double by_symbol = dish_weight<double>(e_in_, d_) / by_x_;
            first_stays_ = n_in_ * dish_weight(out, b_) * by_symbol;
            first_q_ = first_stays_
                       + c_ * mass_x_ * dish_weight(out, o_ == x_ ? opened_b_o_ : opened_b)
                             * by_symbol;
        } else {
            first_q_ = dish_weight<double>(n_in_, c_, mass_x_) * dish_weight<double>(n_out_, b_)
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
    // flow[o] between moves, without x and the label apart, from the column at s_0.
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
        // The smooth part: eight at a time until the label is near.
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
        const double mass = s.counted_mass(k);
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
    SKIHMM_NOINLINE void refresh_moved(const Transitions &s, int32_t k) {
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

    const bool is_exact_;
    int32_t n_slots_ = 0;
    const int32_t *totals_ = nullptr;     // observations of the states
    double offset_ = 1.0;
    // this step
    int64_t t_ = 0;
    int32_t i_ = 0, o_ = 0, x_ = 0, first_ = 0, n_in_ = 0, n_out_ = 0, e_in_ = 0;
    int32_t shown_in_ = 0, shown_out_ = 0;
    double c_ = 0.0, b_ = 1.0, d_ = 1.0, mass_x_ = 0.0, mass_o_ = 0.0;
    double by_i_ = 1.0, by_x_ = 1.0;      // denominators of w for i and x at s_0
    double first_q_ = 0.0, rest_ = 0.0;   // weight of `first_`, total of all other labels
    // exact only
    int32_t apart_ = -1;                  // o, if the other weights exclude it
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

  private:
    // A cached sum that falls by more than this factor has lost too many digits and is recomputed.
    static constexpr double kCancelled = 1e-3;
};

}  // namespace skihmm
