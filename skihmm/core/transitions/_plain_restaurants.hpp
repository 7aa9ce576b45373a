// Restaurants of labels without contexts, one for every label and one for the start.
//
//     p(k | j) = (n_jk + scale() mass(k)) / total(j):
//
// sparse whole-number counts, listed by restaurant (row) and by label (column), and a part of rank
// one.  Kernels expand this sum in products of such probabilities; a step then costs the non-zeros
// and not all pairs of labels.  Labels are slots (_slots.hpp).
#pragma once
#include <algorithm>
#include <cstdint>

#include "_product.hpp"
#include "_restaurants.hpp"
#include "_slots.hpp"

namespace skihmm {

// s_0 for the two transitions of one removed step.
struct StepView {
    int32_t i = 0, x = 0, o = 0;        // labels of t-1 (kStart: none), t, t+1 (-1: none)
    int32_t n_in = 0, n_out = 0;        // customers of (i, x) and (x, o)
    int32_t m_x = 0, m_o = 0;           // tables of the dishes x and o
    double total_i = 1.0, total_x = 1.0;
    double mass_o = 0.0, scale = 0.0;   // mass_o is 0 without o
    // Whether the successor has lost its last table: then it is a new state with a name.
    bool is_ghost() const { return o >= 0 && m_o == 0; }
};

class PlainRestaurants : public Restaurants<InfiniteRoot> {
  public:
    int32_t n_slots() const { return static_cast<int32_t>(columns.size()); }
    int32_t tables_of(int32_t k) const { return base.dish_tables[k]; }
    // Whether some table serves the label.  Unserved labels have the law of kNew.
    bool is_served(int32_t k) const { return tables_of(k) > 0; }
    // The mass of a label that the smooth part of a sum over labels has to count: in it kNew
    // stands for all labels that no table serves.
    double counted_mass(int32_t k) const {
        return k == kNew ? base.gamma : static_cast<double>(tables_of(k));
    }
    const Line &row(int32_t j) const { return rows[j]; }
    const Line &column(int32_t k) const { return columns[k]; }

    // ---- one removed step without writing, for i != x != o: x -> o, which came last, is lifted
    // first

    // The two customers of a step, i -> x and x -> o, and where they go if they are lifted.
    struct Step : StepView {
        Lifted in, out;
        int32_t table_in = 0, table_out = 0;
    };

    SKIHMM_INLINE void lift_out(bitgen_t *g, int32_t *hint, Step *step) const {
        lift(step->x, step->o, g, hint, &step->out);
    }
    SKIHMM_INLINE void lift_in(bitgen_t *g, int32_t *hint, Step *step) const {
        const Lifted &in = step->in, &out = step->out;
        lift(step->i, step->x, g, hint, &step->in);
        step->n_in = in.n;
        step->n_out = out.n;
        step->m_x = tables_of(step->x) - in.closes;
        step->m_o = tables_of(step->o) - out.closes;
        step->total_i = Restaurants::total(step->i, -1);
        step->total_x = Restaurants::total(step->x, -1);
        step->mass_o = base.mass_of(step->m_o);
        step->scale = scale_after(-in.closes - out.closes);
    }
    // The lifted customers choose tables for the same labels again: i -> x; returns whether this
    // customer opens a table ...
    SKIHMM_INLINE bool choose_in(uint32_t bits, bitgen_t *g, Step *step) const {
        const double fresh = new_table_weight(step->scale, base.mass_of(step->m_x));
        step->table_in = choose_table(step->in, fresh, bits, g);
        return step->table_in == kNewTable;
    }
    // ... or for whom that has been drawn already ...
    SKIHMM_INLINE void choose_in(bool opens, uint32_t bits, bitgen_t *g, Step *step) const {
        step->table_in = opens ? kNewTable : choose_table(step->in, 0.0, bits, g);
    }
    // ... and then x -> o.  The factor of i -> x is the same in r_old and r_new: both are taken at
    // s_0.  The factor of x -> o can differ only in the new table's weight, if i -> x has closed or
    // opened a table.  Equal parts are left out.
    SKIHMM_INLINE void choose_out(bool opens, uint32_t bits, bitgen_t *g, Step *step,
                                  Product *r_old, Product *r_new) const {
        const Lifted &in = step->in, &out = step->out;
        const double fresh = new_table_weight(scale_after(opens - in.closes - out.closes),
                                              step->mass_o);
        step->table_out = choose_table(out, fresh, bits, g);
        if (SKIHMM_LIKELY(opens == in.closes)) return;
        r_old->multiply(dish_weight<double>(out.n, scale_after(-out.closes), step->mass_o));
        r_new->multiply(dish_weight<double>(out.n, fresh));
    }
    SKIHMM_INLINE void put_back(const Step &step) {
        Restaurants::put_back(step.in, step.table_in);
        Restaurants::put_back(step.out, step.table_out);
    }

    // ---- passes over all labels

    // out[k] = p(k | j), 0 of labels for which kNew stands.  O(K + row).
    void fill_row(int32_t j, double *out) const {
        const double c = 1.0 / Restaurants::total(j), smooth = scale() * c;
        for (int32_t k = 0; k < n_slots(); ++k) out[k] = smooth * counted_mass(k);
        const Line &row = rows[j];
        for (int32_t i = 0; i < row.size; ++i) out[row.ids[i]] += c * row.counts[i];
    }
    // out[k] = sum_j weights[j] p(k | j): a forward step, O(non-zeros + K).
    void push(const double *weights, double *out) const {
        const int32_t n = n_slots();
        std::fill_n(out, n, 0.0);
        double smooth = 0.0;
        for (int32_t j = 0; j < n; ++j) {
            if (weights[j] == 0.0) continue;
            const double share = weights[j] / Restaurants::total(j);
            smooth += share;
            const Line &row = rows[j];
            for (int32_t i = 0; i < row.size; ++i) out[row.ids[i]] += share * row.counts[i];
        }
        smooth *= scale();
        for (int32_t k = 0; k < n; ++k) out[k] += smooth * counted_mass(k);
    }
    // out[j] = sum_k p(k | j) values[k]: a backward step, O(non-zeros + K).
    void pull(const double *values, double *out) const {
        double smooth = counted_mass(kNew) * values[kNew];
        for (int32_t k = kStart; k < n_slots(); ++k) smooth += counted_mass(k) * values[k];
        smooth *= scale();
        for (int32_t j = 0; j < n_slots(); ++j) {
            double sum = smooth;
            const Line &row = rows[j];
            for (int32_t i = 0; i < row.size; ++i)
                sum += row.counts[i] * values[row.ids[i]];
            out[j] = sum / Restaurants::total(j);
        }
    }
    // out[k] = max_j weights[j] p(k | j), and the j that reaches it: a Viterbi step.
    void push_max(const double *weights, double *out, int32_t *argmax_out) const {
        // The smooth part is largest for one j whatever k is; a j with n_jk > 0 beats its own
        // smooth part, so the maximum is over that one j and the column's entries.
        int32_t best = kNew;
        double largest = -1.0;
        for (int32_t j = 0; j < n_slots(); ++j) {
            const double share = weights[j] / Restaurants::total(j);
            if (share > largest) {
                largest = share;
                best = j;
            }
        }
        const double smooth = largest * scale();
        for (int32_t k = 0; k < n_slots(); ++k) {
            out[k] = smooth * counted_mass(k);
            argmax_out[k] = best;
        }
        for (int32_t j = 0; j < n_slots(); ++j) {
            if (weights[j] == 0.0) continue;
            const double share = weights[j] / Restaurants::total(j);
            const Line &row = rows[j];
            for (int32_t i = 0; i < row.size; ++i) {
                const int32_t k = row.ids[i];
                const double value = share * dish_weight(static_cast<double>(row.counts[i]),
                                                         new_table(k));
                if (!(value > out[k])) continue;
                out[k] = value;
                argmax_out[k] = j;
            }
        }
    }
};

}  // namespace skihmm
