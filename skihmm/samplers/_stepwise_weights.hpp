// The arithmetic of the step-wise proposal: weights of all labels for one step, dense or
// sparse (see _stepwise_kernel.pyx for the formula).
//
// Dense: the K weights of a step are one vectorised pass in float over contiguous 16-bit
// counts.  The proposal then is the law with exactly these rounded weights: they are summed
// and drawn from in double, and the Metropolis-Hastings ratio reads the same array.
// Sparse: double precision, a walk over the non-zeros of one row, one column and one symbol
// on top of a sum over the states that is kept up to date.
// Full: double precision, all K weights, for emissions that only give whole rows.
#pragma once
#include <cstdint>
#include <vector>

#include "_seating.hpp"
#include "_vector.hpp"

namespace skihmm {

// One symbol's column as EmissionStats.fill_column gives it.
struct SymbolView {
    const int32_t *ids = nullptr;
    const int32_t *counts = nullptr;
    int32_t size = 0;
    double smooth = 1.0;
};

enum class StepwiseMode : int { kDense, kSparse, kFull };

class StepwiseWeights {
  public:
    static constexpr int32_t kNew = 0, kStart = 1;

    // Start of a sweep, or more slots than before.  `totals` and `offset` are the
    // emission's (EmissionStats.totals), null in mode kFull.
    void attach(const Seating &s, const int32_t *totals, double offset,
                StepwiseMode mode) {
        const size_t n = s.dish_tables.size();
        n_slots_ = static_cast<int32_t>(n);
        mode_ = mode;
        padded_ = (n_slots_ + kLanes - 1) / kLanes * kLanes;
        if (mode == StepwiseMode::kDense) {
            mass_f_.assign(padded_, 0.0f);
            q_.assign(padded_, 0.0f);
            weights_f_.assign(padded_, 0.0f);
            edge_weights_.assign(padded_, 0.0f);
        } else {
            mass_.assign(n, 0.0);
            row_.assign(n, 0.0);
            column_.assign(n, 0.0);
            symbol_.assign(n, 0.0);
            cumulative_.assign(mode == StepwiseMode::kFull ? n : 0, 0.0);
            for (int f = 0; f < 4; ++f) {
                weights_[f].assign(n, 0.0);
                sums_[f] = 0.0;
            }
        }
        for (int32_t k = 0; k < n_slots_; ++k) refresh(s, totals, offset, k, -1);
    }
    int32_t n_slots() const { return n_slots_; }

    // Bring slot k up to date.  `ghost` is the label that has no table but is a candidate.
    void refresh(const Seating &s, const int32_t *totals, double offset, int32_t k,
                 int32_t ghost) {
        if (k == kStart) return;
        const double mass = (k == kNew || k == ghost) ? s.gamma : s.dish_tables[k];
        if (mode_ == StepwiseMode::kDense) {
            mass_f_[k] = static_cast<float>(mass);
            weights_f_[k] = static_cast<float>(
                kUnit / ((s.row_customers[k] + s.alpha) * (totals[k] + offset)));
        } else {
            const double by_successor = 1.0 / (s.row_customers[k] + s.alpha);
            const double by_symbol = totals ? 1.0 / (totals[k] + offset) : 1.0;
            const double old_mass = mass_[k];
            mass_[k] = mass;
            reweigh(0, k, old_mass, 1.0);
            reweigh(kHasSuccessor, k, old_mass, by_successor);
            reweigh(kHasSymbol, k, old_mass, by_symbol);
            reweigh(3, k, old_mass, by_successor * by_symbol);
        }
    }

    // The weights of all labels between predecessor i and successor o (-1: none); `view`
    // null: the observation is missing.  `removed` is the label that the step had, n_in and
    // n_out its counts now of (i, removed) and (removed, o).
    void fill(const Seating &s, const int32_t *totals, double offset, int32_t i, int32_t o,
              int32_t removed, int32_t n_in, int32_t n_out, const SymbolView *view) {
        set_context(s, o);
        flags_ |= view ? kHasSymbol : 0;
        view_ = view ? *view : SymbolView();
        d_ = view_.smooth;
        if (mode_ == StepwiseMode::kDense)
            fill_dense(s, totals, offset, i, o, removed, n_in, n_out);
        else
            fill_sparse(s, i, o);
    }
    // The same for an emission without a sparse view: probs[k] = p(y | k) up to a factor.
    void fill_row(const Seating &s, int32_t i, int32_t o, const double *probs) {
        set_context(s, o);
        view_ = SymbolView();
        probs_ = probs;
        for_each(s.rows[i], [&](int32_t k, int32_t n) { row_[k] = n; });
        if (o >= 0) for_each(s.columns[o], [&](int32_t k, int32_t n) { column_[k] = n; });
        double total = 0.0;
        for (int32_t k = 0; k < n_slots_; ++k) cumulative_[k] = total += weight(k);
    }

    double weight(int32_t k) const {
        if (mode_ == StepwiseMode::kDense)
            return q_[k] + static_cast<double>(symbol_part_of(k));
        return (row_[k] + c_ * mass_[k]) * (column_[k] + b_) * weights_[flags_][k]
               * (mode_ == StepwiseMode::kFull ? probs_[k] : symbol_[k] + d_);
    }

    // A label with probability proportional to its weight; ends the step.  `old` is tried
    // first: most steps keep their label, and then nothing has to be searched.
    int32_t draw(const Seating &s, int32_t i, int32_t o, int32_t old, bitgen_t *g,
                 double *weight_out) {
        const int32_t k = mode_ == StepwiseMode::kDense    ? draw_dense(old, g)
                          : mode_ == StepwiseMode::kSparse ? draw_sparse(s, i, o, old, g)
                                                           : draw_full(g);
        *weight_out = weight(k);
        if (mode_ == StepwiseMode::kDense) return k;
        for (int32_t at = 0; at < view_.size; ++at) symbol_[view_.ids[at]] = 0.0;
        for_each(s.rows[i], [&](int32_t id, int32_t) { row_[id] = 0.0; });
        if (o >= 0) for_each(s.columns[o], [&](int32_t id, int32_t) { column_[id] = 0.0; });
        return k;
    }

  private:
    // Which denominators a step has: 1/(n_k + alpha) if there is a successor, 1/(e_k +
    // alpha_e) if there is an observation.
    enum { kHasSuccessor = 1, kHasSymbol = 2 };
    static constexpr int32_t kLanes = 16;
    // Float weights are held a power of two higher: with concentrations in the range that
    // the kernel allows for `dense`, no product then leaves float's normal range.
    static constexpr double kUnit = 1048576.0;  // 2^20

    template <class Visit>
    static void for_each(const Line &line, Visit visit) {
        for (int32_t at = 0; at < line.size; ++at) visit(line.ids[at], line.counts[at]);
    }
    void set_context(const Seating &s, int32_t o) {
        flags_ = 0;
        c_ = s.scale();
        b_ = 1.0;
        if (o >= 0) {
            flags_ = kHasSuccessor;
            b_ = c_ * s.mass(o);
        }
    }
    void reweigh(int f, int32_t k, double old_mass, double weight) {
        double *w = weights_[f].data();
        const double gone = old_mass * w[k];
        w[k] = weight;
        sums_[f] += mass_[k] * weight - gone;
        if (sums_[f] < 1e-3 * gone) {
            // Most of the sum has just left it (tiny concentrations): too few digits of
            // the rest survive the subtraction.
            sums_[f] = 0.0;
            for (int32_t at = 0; at < n_slots_; ++at) sums_[f] += mass_[at] * w[at];
        }
    }

    void fill_dense(const Seating &s, const int32_t *totals, double offset, int32_t i,
                    int32_t o, int32_t removed, int32_t n_in, int32_t n_out) {
        // First without the symbol's counts: q_[k] = (n_ik + c m_k) (n_ko + b) w_k.
        const float *w = weights_f_.data();
        if (flags_ != (kHasSuccessor | kHasSymbol)) w = edge_weights(s, totals, offset);
        stepwise_weights(padded_, s.dense_row(i), o >= 0 ? s.dense_column(o) : nullptr,
                         mass_f_.data(), w, static_cast<float>(c_),
                         static_cast<float>(b_), q_.data(), lanes_);
        // The dense counts still show the removed customers.
        const float b = static_cast<float>(b_), c = static_cast<float>(c_);
        auto recount = [&](int32_t k, int32_t row, int32_t column) {
            if (k == kStart) return;
            const float q = (static_cast<float>(row) + c * mass_f_[k])
                            * (static_cast<float>(column) + b) * w[k];
            lanes_[k % kLanes] += static_cast<double>(q) - q_[k];
            q_[k] = q;
        };
        recount(removed, n_in, n_out);
        if (o >= 0 && i == removed && o != removed) recount(o, n_out, s.count(o, o));
        if (o >= 0 && o == removed && i != removed) recount(i, s.count(i, i), n_in);
        // Then what the symbol's counts add: q(k) = q_[k] (1 + e_ky / d).
        by_d_ = static_cast<float>(1.0 / d_);
        double extra = 0.0;
        for (int32_t at = 0; at < view_.size; ++at)
            extra += symbol_part(at);
        symbol_extra_ = extra;
    }
    float symbol_part(int32_t at) const {
        return q_[view_.ids[at]] * (static_cast<float>(view_.counts[at]) * by_d_);
    }
    float symbol_part_of(int32_t k) const {
        for (int32_t at = 0; at < view_.size; ++at)
            if (view_.ids[at] == k) return symbol_part(at);
        return 0.0f;
    }
    // The weights of a step without successor or without observation.
    const float *edge_weights(const Seating &s, const int32_t *totals, double offset) {
        for (int32_t k = 0; k < n_slots_; ++k) {
            double weight = kUnit;
            if (flags_ & kHasSuccessor) weight /= s.row_customers[k] + s.alpha;
            if (flags_ & kHasSymbol) weight /= totals[k] + offset;
            edge_weights_[k] = static_cast<float>(weight);
        }
        return edge_weights_.data();
    }
    int32_t draw_dense(int32_t old, bitgen_t *g) const {
        // lanes_[l] is the total of q_[l], q_[l + 16], q_[l + 32], ...
        double groups[4];
        for (int32_t a = 0; a < 4; ++a)
            groups[a] = (lanes_[4 * a] + lanes_[4 * a + 1])
                        + (lanes_[4 * a + 2] + lanes_[4 * a + 3]);
        double u = uniform(g) * (((groups[0] + groups[1]) + (groups[2] + groups[3]))
                                 + symbol_extra_);
        const double old_part = symbol_part_of(old);
        if (u < q_[old] + old_part) return old;
        u -= q_[old] + old_part;
        // The symbol's states, then groups of four lanes, lanes, members of one lane;
        // `old` counts as zero everywhere.
        if (u < symbol_extra_ - old_part) {
            return search(view_.ids, view_.size, [&](int32_t at) {
                return view_.ids[at] == old ? 0.0f : symbol_part(at); }, u, old);
        }
        u -= symbol_extra_ - old_part;
        const int32_t old_lane = old % kLanes;
        groups[old_lane / 4] -= q_[old];
        int32_t group = 0;
        while (group < 3 && u >= groups[group]) u -= groups[group++];
        int32_t lane = 4 * group;
        for (; lane < 4 * group + 3; ++lane) {
            const double total = lanes_[lane] - (lane == old_lane ? q_[old] : 0.0f);
            if (u < total) break;
            u -= total;
        }
        int32_t chosen = old;
        for (int32_t k = lane; k < padded_; k += kLanes) {
            if (k != old && q_[k] > 0.0f) {
                chosen = k;  // rounding may leave u >= 0 at the end: the last possible one
                if ((u -= q_[k]) < 0.0) break;
            }
        }
        return chosen;
    }

    int32_t draw_full(bitgen_t *g) const {
        const double u = uniform(g) * cumulative_[n_slots_ - 1];
        return static_cast<int32_t>(
            std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u)
            - cumulative_.begin());
    }

    void fill_sparse(const Seating &s, int32_t i, int32_t o) {
        // Every term of the product expanded once:
        // total = symbols + d (row + c (column + b sum)).
        const double *w = weights_[flags_].data(), *mass = mass_.data();
        double *row = row_.data(), *column = column_.data();
        column_sum_ = row_sum_ = symbol_sum_ = 0.0;
        if (o >= 0) for_each(s.columns[o], [&](int32_t k, int32_t n) {
            column[k] = n;
            column_sum_ += n * (mass[k] * w[k]);
        });
        for_each(s.rows[i], [&](int32_t k, int32_t n) {
            row[k] = n;
            row_sum_ += n * w[k] * (column[k] + b_);
        });
        for (int32_t at = 0; at < view_.size; ++at) {
            const int32_t k = view_.ids[at];
            symbol_[k] = view_.counts[at];
            symbol_sum_ += view_.counts[at] * w[k] * (row[k] + c_ * mass[k])
                           * (column[k] + b_);
        }
    }
    int32_t draw_sparse(const Seating &s, int32_t i, int32_t o, int32_t old,
                        bitgen_t *g) const {
        const double *w = weights_[flags_].data();
        const double total = symbol_sum_
            + d_ * (row_sum_ + c_ * (column_sum_ + b_ * sums_[flags_]));
        double u = uniform(g) * total;
        const double old_weight = weight(old);
        if (u < old_weight) return old;
        u -= old_weight;
        // The four buckets without what `old` has in them.
        auto symbol_term = [&](int32_t k) {
            return k == old ? 0.0
                : symbol_[k] * w[k] * (row_[k] + c_ * mass_[k]) * (column_[k] + b_);
        };
        auto row_term = [&](int32_t k) {
            return k == old ? 0.0 : row_[k] * w[k] * (column_[k] + b_);
        };
        auto column_term = [&](int32_t k) {
            return k == old ? 0.0 : column_[k] * (mass_[k] * w[k]);
        };
        double bucket = symbol_sum_ - symbol_[old] * w[old]
            * (row_[old] + c_ * mass_[old]) * (column_[old] + b_);
        const int32_t *ids = view_.ids;
        auto at_symbol = [&](int32_t at) { return symbol_term(ids[at]); };
        if (u < bucket) return search(ids, view_.size, at_symbol, u, old);
        u = (u - bucket) / d_;
        bucket = row_sum_ - row_[old] * w[old] * (column_[old] + b_);
        const Line &row = s.rows[i];
        auto at_row = [&](int32_t at) { return row_term(row.ids[at]); };
        if (u < bucket) return search(row.ids, row.size, at_row, u, old);
        u = (u - bucket) / c_;
        bucket = column_sum_ - column_[old] * (mass_[old] * w[old]);
        if (u < bucket) {
            const Line &column = s.columns[o];
            auto at_column = [&](int32_t at) { return column_term(column.ids[at]); };
            return search(column.ids, column.size, at_column, u, old);
        }
        // The smooth part, proportional to mass times weight.  A fresh uniform and a fresh
        // total: what is left of u has lost its digits.
        double rest = 0.0;
        for (int32_t k = 0; k < n_slots_; ++k) rest += k == old ? 0.0 : mass_[k] * w[k];
        rest *= uniform(g);
        int32_t chosen = old;
        for (int32_t k = 0; k < n_slots_; ++k) {
            const double term = k == old ? 0.0 : mass_[k] * w[k];
            if (term > 0.0) {
                chosen = k;
                if ((rest -= term) < 0.0) break;
            }
        }
        return chosen;
    }
    // The id whose term contains u; the last possible one if rounding leaves u >= 0.
    template <class Term>
    static int32_t search(const int32_t *ids, int32_t size, Term term, double u,
                          int32_t otherwise) {
        int32_t chosen = otherwise;
        for (int32_t at = 0; at < size; ++at) {
            const double value = term(at);
            if (value > 0.0) {
                chosen = ids[at];
                if ((u -= value) < 0.0) break;
            }
        }
        return chosen;
    }

    StepwiseMode mode_ = StepwiseMode::kSparse;
    int32_t n_slots_ = 0, padded_ = 0, flags_ = 0;
    double c_ = 0.0, b_ = 1.0, d_ = 1.0;
    SymbolView view_;
    // dense
    WideVector<float> mass_f_, weights_f_, edge_weights_, q_;
    float by_d_ = 1.0f;
    double symbol_extra_ = 0.0;  // what the listed states' symbol counts add to the total
    double lanes_[kLanes];
    // sparse and full; row_, column_ and symbol_ are zero between steps
    std::vector<double> mass_, weights_[4], row_, column_, symbol_, cumulative_;
    const double *probs_ = nullptr;
    double sums_[4] = {0.0, 0.0, 0.0, 0.0};         // sum_k mass[k] weights[f][k]
    double column_sum_ = 0.0, row_sum_ = 0.0, symbol_sum_ = 0.0;
};

}  // namespace skihmm
