// Direct assignment (Teh, Jordan, Beal and Blei 2006) for hidden Markov models.
//
// Given beta (see _sticks.hpp) the rows of transitions are integrated out, and only counts
// of transitions are kept, no tables.  With i = x[t-1], o = x[t+1] and y = y[t], and the
// step's two transitions and its observation taken out, the full conditional is
//
//     q(k) = (n_ik + alpha beta_k) (n_ko + alpha beta_o + 1[i=k=o]) / (n_k + alpha + 1[i=k])
//            * F_k(y),
//
// with slot NEW for a new state: n = 0 and beta_u.  The indicators are the transition i -> k
// itself, which precedes the draw of k -> o.  This is the conditional distribution, without
// rejections.  Emissions stay seated.
//
// Counts are written only if x[t] changes.  The weight of the old label is computed separately.
// Among further labels the removal of the two transitions changes only the weight of o if i is the
// old label, and the weight of i if o is.
#pragma once
#include <cstdint>
#include <vector>

#include "_rcd.hpp"
#include "_sticks.hpp"
#include "_weights.hpp"

namespace skihmm {

template <class Emission>
class DirectAssignment final : public Kernel {
  public:
    explicit DirectAssignment(Emission &emission) : emission_(emission) {
        counts_.base.is_fixed = true;
    }

    // One sweep over all steps in random order.
    SweepCounts sweep(Chain &chain) override {
        sticks_.draw(chain);
        count(chain);
        attach(chain, emission_);
        cut_blocks(chain, 1, &order_);
        for (const int32_t t : order_) {
            if (chain.reserve(1)) {
                counts_.resize(chain.n_slots, chain.n_slots);
                attach(chain, emission_);
            }
            step(chain, emission_, t);
        }
        sticks_.reseat(chain, count_transitions(chain, chain.states, Workers(1)));
        return {chain.n_steps, chain.n_steps};
    }

    size_t n_bytes() const override {
        return sticks_.n_bytes() + counts_.n_bytes()
               + (weights_.q.capacity() + mass_.capacity() + w_.capacity()
                  + row_.capacity() + column_.capacity() + probs_.capacity()
                  + listed_.capacity()) * sizeof(double)
               + order_.capacity() * sizeof(int32_t);
    }

  private:
    // Up to this many slots dense 16-bit counts are kept.
    static constexpr int32_t kDenseSlots = 1024;

    void count(Chain &chain) {
        const auto &s = *chain.transitions;
        const int32_t n = chain.n_slots;
        SeatingRecord record;
        for (int32_t j = 0; j < n; ++j) {
            const Line &row = s.row(j);
            for (int32_t at = 0; at < row.size; ++at) {
                record.rows.push_back(j);
                record.dishes.push_back(row.ids[at]);
                record.n_customers.push_back(row.counts[at]);
                record.n_tables.push_back(0);
            }
        }
        counts_.set_dense_limit(kDenseSlots);
        counts_.load(record, n, n);
    }
    // Caches by slot.
    void attach(Chain &chain, Emission &emission) {
        n_slots_ = chain.n_slots;
        alpha_ = chain.transitions->alpha;
        counts_.set_alpha(alpha_);
        sticks_.resize(n_slots_);
        weights_.resize(n_slots_);
        const int32_t n = weights_.n;
        mass_.assign(n, 0.0);
        w_.assign(n, 0.0);
        row_.assign(n, 0.0);
        column_.assign(n, 0.0);
        probs_.assign(n, 1.0);
        totals_ = nullptr;
        offset_ = 1.0;
        if constexpr (Emission::kIsSeating) totals_ = emission.totals(&offset_);
        for (int32_t k = 0; k < n_slots_; ++k) {
            mass_[k] = alpha_ * sticks_.beta[k];
            refresh(k);
        }
    }
    void refresh(int32_t k) {
        const double observed = totals_ ? total_weight(totals_[k], offset_) : 1.0;
        w_[k] = k == kStart ? 0.0 : 1.0 / (counts_.total(k) * observed);
    }

    // The step's neighbours and counts, without the step.
    struct Place {
        int64_t t;
        int32_t i, x, o;        // labels of t-1 (START), t and t+1 (-1: none)
        int32_t n_in, n_out;    // transitions (i, x) and (x, o)
        double b;               // alpha beta_o
        bool dies;              // no other step has label x
    };

    void step(Chain &chain, Emission &emission, int64_t t) {
        Place at;
        at.t = t;
        at.i = chain.previous(t);
        at.x = chain.states[t];
        at.o = chain.successor(t);
        const bool is_loop = at.i == at.x && at.o == at.x;  // planted: two equal transitions
        at.n_in = counts_.count(at.i, at.x, chain.hints[t]) - 1 - is_loop;
        at.n_out = at.o < 0 ? 0
            : is_loop ? at.n_in : counts_.count(at.x, at.o, chain.hints[t + 1]) - 1;
        at.b = at.o < 0 ? 1.0 : mass_[at.o];
        at.dies = chain.occupancy[at.x] == 1;
        if (at.dies) {
            sticks_.give_back(at.x);
            mass_[kNew] = alpha_ * sticks_.beta[kNew];
            mass_[at.x] = 0.0;
        }
        if constexpr (Emission::kIsSeating) {
            if (SKIHMM_LIKELY(at.o >= 0 && emission.codes[t] >= 0)) {
                step_seated(chain, emission, at);
                return;
            }
        }
        step_any(chain, emission, at);
    }

    // ---- one symbol and a successor: the common case

    void step_seated(Chain &chain, Emission &emission, const Place &at) {
        SymbolRestaurants &e = *emission.seating;
        bitgen_t *g = chain.bits;
        const int32_t symbol = emission.codes[at.t];
        int32_t *hint = emission.hints + at.t;
        SymbolRestaurants::Lifted value;
        e.lift(at.x, symbol, g, hint, &value);
        const double d = e.new_table_after(symbol, -value.closes);
        // Without the observation the old label's row is smaller by one customer.
        const double old = at.dies ? 0.0
            : transitions_of(at, at.x, at.n_in, at.n_out)
                  * dish_weight<double>(value.n, d) / total_weight(totals_[at.x] - 1, offset_);
        fill(at);
        const Line &column = e.columns[symbol];
        double listed = 0.0;
        const double by_d = 1.0 / d;
        for (int32_t l = 0; l < column.size; ++l) {
            // The old label's weight is zero here.
            const int32_t k = column.ids[l];
            const double extra = weights_.q[k] * (column.counts[l] * by_d);
            listed_.push_back(extra);
            listed += extra;
        }
        const double smooth = weights_.total();
        // The weights in the sums lack the factor d.
        double u = uniform(g) * (old + d * (listed + smooth));
        int32_t k = at.x;
        if (u >= old) {
            u = (u - old) / d;
            if (u < listed) {
                k = -1;
                for (int32_t l = 0; l < column.size; ++l) {
                    if (!(listed_[l] > 0.0)) continue;
                    k = column.ids[l];
                    if (u < listed_[l]) break;
                    u -= listed_[l];
                }
            } else {
                k = weights_.at(u - listed);
            }
            if (k < 0) k = at.dies ? kNew : at.x;
        }
        listed_.clear();
        const int32_t label = take_slot(chain, at, k);
        if (SKIHMM_LIKELY(label == at.x)) {
            const uint32_t bits = g->next_uint32(g->state) >> (32 - SymbolRestaurants::kChoiceBits);
            e.put_back(value, e.choose_table(value, d, bits, g));
        } else {
            e.take_away(value, g);
            e.add(label, symbol, g, hint);
            e.commit();
            move(chain, at, label);
        }
    }

    // ---- anything else

    void step_any(Chain &chain, Emission &emission, const Place &at) {
        Product ignored;
        emission.remove(at.t, at.x, chain.bits, &ignored);
        double *probs = probs_.data(), *q = weights_.q.data();
        fill_probs(emission, at.t, probs);
        scatter(at);
        for (int32_t k = 0; k < n_slots_; ++k) {
            double weight = dish_weight(row_[k], mass_[k]);
            if (at.o >= 0)
                weight *= dish_weight(column_[k], at.b) / counts_.total(k);
            q[k] = weight * probs[k];
        }
        correct(at, [&](int32_t k, double weight) { q[k] = weight * probs[k]; });
        q[at.x] = at.dies ? 0.0 : transitions_of(at, at.x, at.n_in, at.n_out) * probs[at.x];
        unscatter(at);
        weights_.sum_up();
        int32_t k = weights_.at(uniform(chain.bits) * weights_.total());
        if (k < 0) k = at.dies ? kNew : at.x;
        const int32_t label = take_slot(chain, at, k);
        emission.add(at.t, label, chain.bits, &ignored);
        emission.commit();
        if (label != at.x) move(chain, at, label);
    }
    // Probability of y[t] under every state, up to a factor.
    void fill_probs(Emission &emission, int64_t t, double *probs) {
        if constexpr (Emission::kIsSeating) {
            SymbolColumn column;
            if (!emission.column(t, &column)) {
                std::fill_n(probs, n_slots_, 1.0);
                return;
            }
            for (int32_t k = 0; k < n_slots_; ++k)
                probs[k] = column.smooth / total_weight(totals_[k], offset_);
            for (int32_t l = 0; l < column.size; ++l) {
                const int32_t k = column.ids[l];
                if (column.counts[l])
                    probs[k] = dish_weight<double>(column.counts[l], column.smooth)
                               / total_weight(totals_[k], offset_);
            }
        } else {
            emission.fill_probs(t, probs);
        }
    }

    // ---- the factors of the transitions

    // Both transitions of label k with n_ik and n_ko (without the step).
    double transitions_of(const Place &at, int32_t k, double n_in, double n_out) const {
        const double into = dish_weight(n_in, mass_[k]);
        if (at.o < 0) return into;
        double size = counts_.total(k), out = dish_weight(n_out, at.b);
        // Row x has lost both transitions of the step, row i the transition into it; the transition
        // into k is in its row before the next transition is drawn.
        if (k == at.x) size -= 1.0;
        if (k == at.i && k == at.o) out += 1.0;  // planted: own transition
        return into * out / size;
    }
    // The labels, other than x, whose factors differ from the current counts' factors.
    template <class Set>
    SKIHMM_INLINE void correct(const Place &at, Set set) const {
        // planted: labels without a correction
        if (SKIHMM_LIKELY(at.i != at.o && at.i != at.x && at.o != at.x)) return;
        correct_these(at, set);
    }
    template <class Set>
    SKIHMM_NOINLINE void correct_these(const Place &at, Set set) const {
        for (const int32_t k : {at.i, at.o}) {
            if (k < 0 || k == kStart || k == at.x) continue;
            int32_t n_in = counts_.count(at.i, k);
            int32_t n_out = at.o < 0 ? 0 : counts_.count(k, at.o);
            if (at.i == at.x && k == at.o) --n_in;      // it is (x, o)
            if (at.o == at.x && k == at.i) --n_out;     // it is (i, x)
            set(k, transitions_of(at, k, n_in, n_out));
        }
    }
    void scatter(const Place &at) {
        const Line &row = counts_.rows[at.i];
        for (int32_t l = 0; l < row.size; ++l) row_[row.ids[l]] = row.counts[l];
        if (at.o < 0) return;
        const Line &column = counts_.columns[at.o];
        for (int32_t l = 0; l < column.size; ++l) column_[column.ids[l]] = column.counts[l];
    }
    void unscatter(const Place &at) {
        const Line &row = counts_.rows[at.i];
        for (int32_t l = 0; l < row.size; ++l) row_[row.ids[l]] = 0.0;
        if (at.o < 0) return;
        const Line &column = counts_.columns[at.o];
        for (int32_t l = 0; l < column.size; ++l) column_[column.ids[l]] = 0.0;
    }
    // All weights except x's, without the symbol's part.
    void fill(const Place &at) {
        if (SKIHMM_LIKELY(counts_.dense.are_complete())) {
            dense_weights(weights_.n, at.x, counts_.dense.row(at.i),
                          counts_.dense.column(at.o), mass_.data(), w_.data(), at.b,
                          weights_.q.data(), weights_.lanes);
        } else {
            scatter(at);
            counted_weights(weights_.n, at.x, row_.data(), column_.data(), mass_.data(),
                            w_.data(), at.b, weights_.q.data(), weights_.lanes);
            unscatter(at);
        }
        correct(at, [&](int32_t k, double weight) {
            weights_.change(k, weight / total_weight(totals_[k], offset_));
        });
    }

    // ---- the end of a step

    // The slot of the drawn label: births get a slot and break a stick.  A label that died and is
    // born again keeps its slot.
    int32_t take_slot(Chain &chain, const Place &at, int32_t k) {
        if (SKIHMM_LIKELY(k != kNew)) return k;
        k = at.dies ? at.x : chain.free_slot(0);
        sticks_.break_off(chain, k);
        mass_[kNew] = alpha_ * sticks_.beta[kNew];
        mass_[k] = alpha_ * sticks_.beta[k];
        return k;
    }
    // x[t] = k, another label than before.
    void move(Chain &chain, const Place &at, int32_t k) {
        bitgen_t *g = chain.bits;
        counts_.remove(at.i, at.x, g, &chain.hints[at.t]);
        counts_.add(at.i, k, g, &chain.hints[at.t]);
        if (at.o >= 0) {
            counts_.remove(at.x, at.o, g, &chain.hints[at.t + 1]);
            counts_.add(k, at.o, g, &chain.hints[at.t + 1]);
        }
        counts_.commit();
        chain.assign(at.t, k);
        refresh(at.x);
        refresh(k);
    }

    Kept<Emission> emission_;
    Sticks sticks_;
    SymbolRestaurants counts_;              // n_jk
    Weights weights_;
    WideVector<double> mass_, w_;           // alpha beta_k; 1/((n_k+alpha)(e_k+alpha_e))
    std::vector<double> row_, column_;      // zero between steps
    std::vector<double> probs_, listed_;
    const int32_t *totals_ = nullptr;       // observations by state, with columns
    double offset_ = 1.0, alpha_ = 1.0;
    int32_t n_slots_ = 0;
    std::vector<int32_t> order_;
};

}  // namespace skihmm
