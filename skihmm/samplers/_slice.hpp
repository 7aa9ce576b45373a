// The step-wise slice proposal: the beam of _blocked.hpp for blocks of one step.
//
// With i = x[t-1], o = x[t+1] and the slices u and v, uniform below pi[i,x] and pi[x,o], a
// label is drawn among the columns k with pi[i,k] >= u and pi[k,o] >= v, in proportion to
// F_k(y).  Few pass: mostly u excludes all that i never went to, or v all that never went
// to o, and one list, of the row or of the column, holds every candidate.
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
    static constexpr bool kReadsTouched = false, kReadsView = true,
                          kMayBeExact = false;
    static constexpr int32_t kNew = 0, kStart = 1;

    // Dense counts to look up single pairs in up to this many slots.
    void set_limit(int32_t lookup_slots) { lookup_slots_ = lookup_slots; }

    // Start of a sweep, or more slots than before; only between moves.
    void attach(const Chain &chain, const Emission &emission) {
        Seating &s = *chain.transitions;
        n_slots_ = *chain.n_slots;
        s.set_dense_limit(lookup_slots_);
        totals_ = nullptr;
        if constexpr (Emission::kIsSeating) totals_ = emission.totals(&offset_);
        mass_.assign(n_slots_, 0.0);
        c_.assign(n_slots_, 0.0);
        d_.assign(n_slots_, 1.0);
        row_.assign(n_slots_, 0);
        column_.assign(n_slots_, 0);
        probs_.assign(n_slots_, 1.0);
        for (int32_t k = 0; k < n_slots_; ++k) refresh(s, k);
        mass_[kNew] = largest_ = s.gamma;
        for (double mass : mass_) largest_ = std::max(largest_, mass);
    }
    void prefetch(const Chain &chain, int64_t start, int64_t) const {
        const Line &row = chain.transitions->rows[chain.previous(start)];
        SKIHMM_PREFETCH(row.ids);
        SKIHMM_PREFETCH(row.counts);
    }
    void prepare(const Chain &chain, const Emission &emission, const Move<Emission> &move) {
        const Seating &s = *chain.transitions;
        const StepView &view = move.view;
        t_ = move.start;
        i_ = view.i;
        o_ = view.o;
        x_ = view.x;
        scale_ = view.scale;
        mass_x_ = view.m_x;
        c_i_ = 1.0 / (view.n_i + s.alpha);
        is_ghost_ = o_ >= 0 && view.m_o == 0;
        mass_o_ = is_ghost_ ? s.gamma : view.m_o;
        bar_ = view.m_x > 0 ? x_ : kNew;
        double c_x = c_[kNew];
        old_p_ = link(view.n_in, mass_x_, c_i_);
        if (bar_ == kNew) old_p_ = link(0, s.gamma, c_i_);
        u_ = std::max(kTiny, uniform(chain.bits) * old_p_);
        v_ = 0.0;
        if (o_ >= 0) {
            double n_out = 0.0;
            if (bar_ != kNew) {
                c_x = 1.0 / (view.n_x + s.alpha);
                n_out = view.n_out;
            }
            const double p = link(n_out, mass_o_, c_x);
            v_ = std::max(kTiny, uniform(chain.bits) * p);
            old_p_ *= p;
        }
        symbol_ = -1;
        if constexpr (Emission::kIsSeating) {
            symbol_ = emission.codes[t_];
            smooth_ = view.column.smooth;
        } else {
            emission.fill_probs(t_, probs_.data());
        }
        old_weight_ = symbol_ < 0 ? probs_[bar_]
                      : bar_ == kNew ? smooth_ * d_[kNew]
                                     : (view.e_in + smooth_) / (view.e_x + offset_);
        // They show what was last committed: right for pairs without x.
        next_ = o_ >= 0 && i_ != x_ && o_ != x_ && s.has_dense() ? s.dense_column(o_)
                                                                 : nullptr;
        collect(s, emission);
    }
    void prepare(const Chain &chain, const Emission &emission, int64_t start,
                 int64_t stop) {
        opened_.start = start;
        opened_.stop = stop;
        opened_.look(chain, emission);
        prepare(chain, emission, opened_);
    }

    void score(const Chain &chain, int64_t, int64_t, Product *q) {
        q->multiply(old_p_ * old_weight_);
        if (bar_ == kNew) q->multiply(seat(chain, x_));
    }
    void propose(const Chain &chain, int64_t, int64_t, int32_t *path, Product *q) {
        double u = uniform(chain.bits) * (old_weight_ + rest_);
        int32_t k = bar_;
        double p = old_p_, weight = old_weight_;
        if (SKIHMM_UNLIKELY(u >= old_weight_)) {
            u -= old_weight_;
            for (const Candidate &candidate : candidates_) {
                k = candidate.k;
                p = candidate.p;
                weight = candidate.weight;
                if ((u -= weight) < 0.0) break;
            }
        }
        q->multiply(p * weight);
        if (k == kNew) {
            labels_.open(chain.transitions->gamma, is_ghost_ ? o_ : -1);
            k = labels_.draw(chain.bits);
            if (k < 0) k = chain.free_slot(0);
            q->multiply(labels_.seat(k));
        }
        *path = k;
    }

    // End of the move: bring the caches up to date with what it changed.
    void settle(const Chain &chain, const Emission &, int64_t, int64_t, bool) {
        const Seating &s = *chain.transitions;
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

    void refresh_mass(const Seating &s, int32_t k) {
        if (k == kNew) return;
        mass_[k] = s.dish_tables[k];
        largest_ = std::max(largest_, mass_[k]);
    }
    void refresh(const Seating &s, int32_t k) {
        refresh_mass(s, k);
        c_[k] = 1.0 / (s.row_customers[k] + s.alpha);
        if constexpr (Emission::kIsSeating) {
            if (k != kStart) d_[k] = 1.0 / (totals_[k] + offset_);
        }
    }
    double link(double n, double mass, double c) const { return (n + scale_ * mass) * c; }
    double mass_at(int32_t k) const {
        // x is the old column, or none.
        return k == x_ ? 0.0 : k == o_ ? (is_ghost_ ? 0.0 : mass_o_) : mass_[k];
    }
    double seat(const Chain &chain, int32_t label) {
        labels_.open(chain.transitions->gamma, is_ghost_ ? o_ : -1);
        return labels_.seat(label);
    }
    // n customers of (i, k); those of (k, o) are looked up unless they are given.
    SKIHMM_INLINE void consider(const Seating &s, const Emission &emission, int32_t k,
                                double n, int32_t n_out) {
        const double mass = mass_at(k), p = link(n, mass, c_i_);
        if (SKIHMM_LIKELY(!(p >= u_)) || k == bar_ || !(mass > 0.0)) return;
        accept(s, emission, k, p, n_out);
    }
    SKIHMM_NOINLINE void accept(const Seating &s, const Emission &emission, int32_t k,
                                double p, int32_t n_out) {
        if (o_ >= 0) {
            if (n_out < 0) {
                n_out = k == kNew || is_ghost_ ? 0
                        : SKIHMM_LIKELY(next_ != nullptr) ? next_[k] : s.count(k, o_);
            }
            const double next = link(n_out, mass_o_, k == i_ ? c_i_ : c_[k]);
            if (!(next >= v_)) return;
            p *= next;
        }
        double weight = probs_[k];
        if constexpr (Emission::kIsSeating) {
            if (symbol_ >= 0) {
                const int32_t n = k == kNew ? 0 : emission.seating->count(k, symbol_);
                weight = (n + smooth_) * d_[k];
            }
        }
        candidates_.push_back({k, p, weight});
        rest_ += weight;
    }
    SKIHMM_NOINLINE void collect(const Seating &s, const Emission &emission) {
        candidates_.clear();
        rest_ = 0.0;
        const Line &row = s.rows[i_];
        if (SKIHMM_LIKELY(!(link(0.0, largest_, c_i_) >= u_))) {
            for (int32_t at = 0; at < row.size; ++at)
                consider(s, emission, row.ids[at], row.counts[at], -1);
            return;
        }
        if (o_ < 0) {
            for (int32_t at = 0; at < row.size; ++at) row_[row.ids[at]] = row.counts[at];
            for (int32_t k = 0; k < n_slots_; ++k) consider(s, emission, k, row_[k], 0);
            for (int32_t at = 0; at < row.size; ++at) row_[row.ids[at]] = 0;
            return;
        }
        // Of a ghost's column nothing is left, as of that of the unused state.
        const Line &column = s.columns[is_ghost_ ? kNew : o_];
        for (int32_t at = 0; at < row.size; ++at) row_[row.ids[at]] = row.counts[at];
        if (!(link(0.0, mass_o_, c_[kNew]) >= v_)) {
            for (int32_t at = 0; at < column.size; ++at) {
                const int32_t k = column.ids[at];
                if (k != kStart) consider(s, emission, k, row_[k], column.counts[at]);
            }
        } else {
            for (int32_t at = 0; at < column.size; ++at)
                column_[column.ids[at]] = column.counts[at];
            for (int32_t k = 0; k < n_slots_; ++k)
                if (k != kStart) consider(s, emission, k, row_[k], column_[k]);
            for (int32_t at = 0; at < column.size; ++at) column_[column.ids[at]] = 0;
        }
        for (int32_t at = 0; at < row.size; ++at) row_[row.ids[at]] = 0;
    }

    static constexpr double kTiny = std::numeric_limits<double>::min();

    int32_t n_slots_ = 0, lookup_slots_ = 0;
    const int32_t *totals_ = nullptr;
    double offset_ = 1.0;
    // by slot, between moves
    std::vector<double> mass_, c_, d_;
    double largest_ = 0.0;                  // at least every mass
    std::vector<int32_t> row_, column_;     // zero between steps
    std::vector<double> probs_;             // F_k(y[t]) of emissions that give whole rows
    // this step
    int64_t t_ = 0;
    int32_t i_ = 0, o_ = 0, x_ = 0, bar_ = 0, symbol_ = -1;
    bool is_ghost_ = false;
    const uint16_t *next_ = nullptr;        // dense counts of (k, o), or null
    double scale_ = 0.0, mass_x_ = 0.0, mass_o_ = 0.0, c_i_ = 0.0, smooth_ = 1.0;
    double u_ = 0.0, v_ = 0.0;              // the slices
    double old_p_ = 0.0, old_weight_ = 0.0, rest_ = 0.0;
    std::vector<Candidate> candidates_;
    FreshLabels labels_;
    Move<Emission> opened_;                 // stands in for a move opened elsewhere
};

}  // namespace skihmm
