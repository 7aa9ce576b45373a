// The step-wise slice proposal: the beam of _blocked.hpp for blocks of one step.
//
// With i = x[t-1], o = x[t+1] and the slices u and v, uniform below pi[i,x] and pi[x,o], a
// label is drawn among the columns k with pi[i,k] >= u and pi[k,o] >= v, in proportion to
// F_k(y).  Few pass: mostly u excludes all states without transitions from i, or v all without
// transitions to o, and one list, of the row or of the column, has every candidate.  Where
// neither does, one vectorised pass sums all that pass, and they are listed only if the drawn
// label is not the old one.
//
// The lists are filtered without branches, by bounds that need no correction for the
// neighbouring steps; the few that remain are checked exactly.  On the words of Alice, 340
// states, 7 of a row's 20 entries pass u and 2 of them v: sequential tests with unpredictable
// branches took half of a step.
//
// s_0 is read from Move::view and from counts that the removal does not touch, as by the
// step-wise Gibbs proposal, so that a move that changes nothing writes nothing.  Only i, x
// and o differ from what is cached by slot, which shows the seating between moves.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "_blocked.hpp"
#include "_rcd.hpp"

namespace skihmm {

template <class Emission>
class Slice {
  public:
    using Transitions = HCRPTransitions;
    static constexpr bool kReadsTouched = false, kReadsView = true,
                          kMayBeExact = false;
    // Dense counts to look up single pairs in up to this many slots.
    explicit Slice(int32_t lookup_slots) : lookup_slots_(lookup_slots) {}

    // Start of a sweep, or more slots than before; only between moves.
    void attach(Chain &chain, Emission &emission) {
        Transitions &s = *chain.transitions;
        n_slots_ = chain.n_slots;
        s.set_dense_limit(lookup_slots_);
        totals_ = nullptr;
        if constexpr (Emission::kIsSeating) totals_ = emission.totals(&offset_);
        stride_ = (n_slots_ + 7) / 8 * 8;
        mass_.assign(stride_, 0.0);
        c_.assign(stride_, 0.0);
        d_.assign(stride_, 1.0);
        row_.assign(stride_, 0);
        column_.assign(stride_, 0);
        probs_.assign(stride_, 1.0);
        found_.resize(stride_ + 1);
        for (int32_t k = 0; k < n_slots_; ++k) refresh(s, k);
        mass_[kNew] = largest_ = s.mass(kNew);
        for (double mass : mass_) largest_ = std::max(largest_, mass);
    }
    void prefetch(Chain &chain, int64_t start, int64_t) const {
        const Line &row = chain.transitions->row(chain.previous(start));
        SKIHMM_PREFETCH(row.ids);
        SKIHMM_PREFETCH(row.counts);
        const int32_t o = chain.successor(start);
        if (o < 0 || !chain.transitions->has_dense()) return;
        const uint16_t *column = chain.transitions->dense_column(o);
        for (int32_t k = 0; k < n_slots_; k += 32) SKIHMM_PREFETCH(column + k);
    }
    void prepare(Chain &chain, Emission &emission, const Move<Emission> &move) {
        const Transitions &s = *chain.transitions;
        const StepView &view = move.view;
        const SymbolView &symbol = move.symbol;
        t_ = move.start;
        i_ = view.i;
        o_ = view.o;
        x_ = view.x;
        scale_ = view.scale;
        mass_x_ = view.m_x;
        c_i_ = 1.0 / view.total_i;
        is_ghost_ = view.is_ghost();
        mass_o_ = view.mass_o;
        bar_ = view.m_x > 0 ? x_ : kNew;
        double c_x = c_[kNew];
        old_p_ = link(view.n_in, mass_x_, c_i_);
        if (bar_ == kNew) old_p_ = link(0, mass_[kNew], c_i_);
        u_ = std::max(kTiny, uniform(chain.bits) * old_p_);
        v_ = 0.0;
        if (o_ >= 0) {
            double n_out = 0.0;
            if (bar_ != kNew) {
                c_x = 1.0 / view.total_x;
                n_out = view.n_out;
            }
            const double p = link(n_out, mass_o_, c_x);
            v_ = std::max(kTiny, uniform(chain.bits) * p);
            old_p_ *= p;
        }
        symbol_ = -1;
        if constexpr (Emission::kIsSeating) {
            symbol_ = emission.codes[t_];
            if (SKIHMM_LIKELY(symbol_ >= 0)) symbols_ = symbol.column;
        } else {
            emission.fill_probs(t_, probs_.data());
            if (is_ghost_) emission.allow_table(o_, probs_.data());
        }
        old_weight_ = symbol_ < 0 ? probs_[bar_]
                      : bar_ == kNew ? symbols_.smooth * d_[kNew]
                                     : dish_weight<double>(symbol.e_in, symbols_.smooth)
                                           / total_weight(symbol.e_x, offset_);
        const double c = c_[i_];
        c_[i_] = c_i_;
        collect(s, emission);
        c_[i_] = c;
    }

    void score(Chain &chain, int64_t, int64_t, Product *q) {
        q->multiply(old_p_ * old_weight_);
        if (bar_ == kNew) q->multiply(seat(chain, x_));
    }
    void propose(Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        double u = uniform(chain.bits) * (old_weight_ + rest_);
        int32_t k = bar_;
        double p = old_p_, weight = old_weight_;
        if (SKIHMM_UNLIKELY(u >= old_weight_)) {
            Candidate chosen{k, p, weight};
            if (is_wide_) choose_any(*chain.transitions, u - old_weight_, &chosen);
            else choose(u - old_weight_, &chosen);
            k = chosen.k;
            p = chosen.p;
            weight = chosen.weight;
        }
        q->multiply(p * weight);
        if (k == kNew) {
            labels_.open(*chain.transitions, is_ghost_ ? o_ : -1);
            k = labels_.draw(chain.bits, -1);
            if (k < 0) k = chain.free_slot(0);
            q->multiply(labels_.seat(k, -1));
        }
        *path = k;
    }

    // End of the move: bring the caches up to date with what it changed.
    void settle(Chain &chain, Emission &, int64_t, int64_t, bool) {
        const Transitions &s = *chain.transitions;
        const int32_t k = chain.states[t_];
        if (SKIHMM_LIKELY(k == x_)) {
            refresh_mass(s, x_);
        } else {
            refresh(s, x_);
            refresh(s, k);
        }
        if (o_ >= 0) refresh_mass(s, o_);
    }

  private:
    // A column other than the old one that passes both slices.
    struct Candidate {
        int32_t k;
        double p;           // pi[i,k] pi[k,o]
        double weight;      // F_k(y)
    };

    void refresh_mass(const Transitions &s, int32_t k) {
        if (k == kNew) return;
        mass_[k] = s.own_mass(k);
        largest_ = std::max(largest_, mass_[k]);
    }
    void refresh(const Transitions &s, int32_t k) {
        refresh_mass(s, k);
        c_[k] = 1.0 / s.total(k);
        if constexpr (Emission::kIsSeating) {
            if (k != kStart) d_[k] = 1.0 / total_weight(totals_[k], offset_);
        }
    }
    double link(double n, double mass, double c) const {
        return dish_weight(n, scale_, mass) * c;
    }
    double seat(Chain &chain, int32_t label) {
        labels_.open(*chain.transitions, is_ghost_ ? o_ : -1);
        return labels_.seat(label, -1);
    }
    // ---- candidates of a list

    SKIHMM_NOINLINE void collect(const Transitions &s, Emission &emission) {
        candidates_.clear();
        rest_ = 0.0;
        const Line &row = s.row(i_), &column = s.column(o_ < 0 ? kNew : o_);
        // They are those of the last commit, which are current for pairs without x.
        const bool has_dense = i_ != x_ && o_ != x_ && o_ >= 0 && s.has_dense();
        is_wide_ = false;
        if (SKIHMM_LIKELY(!(link(0.0, largest_, c_i_) >= u_))) {
            if (SKIHMM_LIKELY(has_dense)) {
                filter_row(row, emission, s.dense_column(o_));
            } else {
                column.scatter(column_.data());
                filter_row(row, emission, column_.data());
                column.unscatter(column_.data());
            }
        } else if (o_ >= 0 && !(link(0.0, mass_o_, c_[kNew]) >= v_)) {
            if (has_dense) {
                filter_column(column, emission, s.dense_row(i_));
            } else {
                row.scatter(row_.data());
                filter_column(column, emission, row_.data());
                row.unscatter(row_.data());
            }
        } else {
            is_wide_ = true;
            Wide wide(this, row, column);
            rest_ = sum_wide();
        }
    }
    // u excludes all k without transitions from i; n_out: customers of (k, o) by k.
    template <class Count>
    void filter_row(const Line &row, Emission &emission, const Count *n_out) {
        // The least count that passes u, at best.
        int32_t least = static_cast<int32_t>(u_ / c_i_ - scale_ * largest_);
        while (!(link(least, largest_, c_i_) >= u_)) ++least;
        int32_t n = 0, *found = found_.data();
        const double smooth = new_table_weight(scale_, mass_o_), v = v_, *c = c_.data();
        for (int32_t at = 0; at < row.size; ++at) {
            const int32_t k = row.ids[at];
            found[n] = at;
            n += (row.counts[at] >= least) & (dish_weight<double>(n_out[k], smooth) * c[k] >= v);
        }
        for (int32_t f = 0; f < n; ++f) {
            const int32_t at = found[f], k = row.ids[at];
            consider(emission, k, row.counts[at], n_out[k]);
        }
    }
    // v excludes all k without transitions to o; n_in: customers of (i, k) by k.
    template <class Count>
    void filter_column(const Line &column, Emission &emission, const Count *n_in) {
        int32_t n = 0, *found = found_.data();
        const double smooth = new_table_weight(scale_, mass_o_);
        for (int32_t at = 0; at < column.size; ++at) {
            const int32_t k = column.ids[at];
            found[n] = at;
            // mass_ is at least what it is at s_0.
            n += (link(n_in[k], mass_[k], c_i_) >= u_)
                 & (dish_weight<double>(column.counts[at], smooth) * c_[k] >= v_);
        }
        for (int32_t f = 0; f < n; ++f) {
            const int32_t at = found[f], k = column.ids[at];
            consider(emission, k, n_in[k], column.counts[at]);
        }
    }
    SKIHMM_INLINE void consider(Emission &emission, int32_t k, double n_in,
                                double n_out) {
        if (k == x_) return;                // the old column, or none
        const double mass = k == o_ && is_ghost_ ? 0.0 : k == o_ ? mass_o_ : mass_[k];
        double p = link(n_in, mass, c_i_);
        if (!(p >= u_) || !(mass > 0.0)) return;
        if (SKIHMM_LIKELY(o_ >= 0)) {
            const double next = link(n_out, mass_o_, c_[k]);
            if (!(next >= v_)) return;
            p *= next;
        }
        double weight = probs_[k];
        if constexpr (Emission::kIsSeating) {
            if (SKIHMM_LIKELY(symbol_ >= 0))
                weight = dish_weight<double>(emission.seating->count(k, symbol_),
                                             symbols_.smooth) * d_[k];
        }
        candidates_.push_back({k, p, weight});
        rest_ += weight;
    }
    void choose(double u, Candidate *out) const {
        for (const Candidate &candidate : candidates_) {
            *out = candidate;
            if ((u -= candidate.weight) < 0.0) break;
        }
    }

    // ---- neither list holds all candidates

    // During its lifetime the arrays by slot are those of s_0, with zero weight at x and at
    // the old column, and row_ and column_ have the counts.
    class Wide {
      public:
        Wide(Slice *self, const Line &row, const Line &column)
            : self_(self), row_(row), column_(column), x_(self->mass_[self->x_]),
              bar_(self->mass_[self->bar_]), o_(self->o_ < 0 ? 0.0 : self->mass_[self->o_]) {
            row.scatter(self->row_.data());
            if (self->o_ >= 0) column.scatter(self->column_.data());
            if (self->o_ >= 0) self->mass_[self->o_] = self->is_ghost_ ? 0.0 : self->mass_o_;
            self->mass_[self->x_] = self->mass_[self->bar_] = 0.0;
            self->row_[self->x_] = 0;
        }
        Wide(const Wide &) = delete;
        Wide &operator=(const Wide &) = delete;
        ~Wide() {
            if (self_->o_ >= 0) self_->mass_[self_->o_] = o_;
            self_->mass_[self_->bar_] = bar_;
            self_->mass_[self_->x_] = x_;
            if (self_->o_ >= 0) column_.unscatter(self_->column_.data());
            row_.unscatter(self_->row_.data());
        }

      private:
        Slice *self_;
        const Line &row_, &column_;
        const double x_, bar_, o_;
    };
    bool passes(int32_t k) const {
        return (link(row_[k], mass_[k], c_i_) >= u_)
               & (link(column_[k], mass_o_, c_[k]) >= v_);
    }
    // Over `width` slots from `from` on: the sum of d_k, or of F_k(y) without a symbol.
    double sum_slots(int32_t from, int32_t width) const {
        const double *w = symbol_ >= 0 ? d_.data() : probs_.data();
        return blocked_passes.sum_both(width, scale_, &row_[from], &mass_[from], c_i_, u_,
                                       &column_[from], new_table_weight(scale_, mass_o_),
                                       &c_[from], v_, w + from);
    }
    double sum_wide() const {
        const double sum = sum_slots(0, stride_);
        if (symbol_ < 0) return sum;
        double extra = 0.0;
        for (int32_t at = 0; at < symbols_.size; ++at) {
            const int32_t k = symbols_.ids[at];
            extra += passes(k) ? symbols_.counts[at] * d_[k] : 0.0;
        }
        return symbols_.smooth * sum + extra;
    }
    SKIHMM_NOINLINE void choose_any(const Transitions &s, double u, Candidate *out) {
        const double c = c_[i_];
        c_[i_] = c_i_;
        find_any(s, u, out);
        c_[i_] = c;
    }
    void find_any(const Transitions &s, double u, Candidate *out) {
        const bool has_symbol = symbol_ >= 0;
        Wide wide(this, s.row(i_), s.column(o_ < 0 ? kNew : o_));
        int32_t chosen = -1;
        if (has_symbol) {
            for (int32_t at = 0; at < symbols_.size && u >= 0.0; ++at) {
                const int32_t k = symbols_.ids[at];
                if (!passes(k)) continue;
                chosen = k;
                u -= symbols_.counts[at] * d_[k];
            }
        }
        if (u >= 0.0) {
            // First among groups of slots, then in one of them.
            const double factor = has_symbol ? symbols_.smooth : 1.0;
            int32_t group = 0;
            for (int32_t from = 0; from < stride_; from += kGroup) {
                const double part = factor * sum_slots(from, std::min(kGroup, stride_ - from));
                if (!(part > 0.0)) continue;
                group = from;
                if (u < part) break;
                u -= part;
            }
            const int32_t stop = std::min(group + kGroup, n_slots_);
            for (int32_t k = group; k < stop && u >= 0.0; ++k) {
                if (!passes(k)) continue;
                chosen = k;
                u -= has_symbol ? symbols_.smooth * d_[k] : probs_[k];
            }
        }
        if (chosen < 0) return;
        out->k = chosen;
        out->p = link(row_[chosen], mass_[chosen], c_i_);
        if (o_ >= 0) out->p *= link(column_[chosen], mass_o_, c_[chosen]);
        out->weight = probs_[chosen];
        if (!has_symbol) return;
        int32_t n = 0;
        for (int32_t at = 0; at < symbols_.size; ++at)
            if (symbols_.ids[at] == chosen) n = symbols_.counts[at];
        out->weight = dish_weight<double>(n, symbols_.smooth) * d_[chosen];
    }

    static constexpr int32_t kGroup = 64;
    static constexpr double kTiny = std::numeric_limits<double>::min();

    const int32_t lookup_slots_;
    int32_t n_slots_ = 0, stride_ = 0;
    const int32_t *totals_ = nullptr;
    double offset_ = 1.0;
    // by slot, between moves
    WideVector<double> mass_, c_, d_;
    double largest_ = 0.0;                  // at least every mass
    WideVector<int32_t> row_, column_;      // zero outside of a step
    std::vector<int32_t> found_;            // places in a list
    WideVector<double> probs_;              // F_k(y[t]) of emissions that give whole rows
    // this step
    int64_t t_ = 0;
    int32_t i_ = 0, o_ = 0, x_ = 0, bar_ = 0, symbol_ = -1;
    bool is_ghost_ = false;
    bool is_wide_ = false;                  // candidates_ are not listed, only summed
    SymbolColumn symbols_;                  // of y[t]
    double scale_ = 0.0, mass_x_ = 0.0, mass_o_ = 0.0, c_i_ = 0.0;
    double u_ = 0.0, v_ = 0.0;              // the slices
    double old_p_ = 0.0, old_weight_ = 0.0, rest_ = 0.0;
    std::vector<Candidate> candidates_;
    FreshLabels labels_;
};

}  // namespace skihmm
