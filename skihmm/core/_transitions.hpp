// Transitions as kernels see them: the law of the label after restaurant j, taken apart.
//
//     p(k | j) = (n_jk + [j = k] s_k) c_j + smooth_j mass(k),
//     c_j = 1/total(j),   smooth_j = scale() c_j
//
// Sparse whole-number counts, listed by restaurant (row) and by label (column), with one scale
// c_j for a restaurant; self_weight s_k, which a law may add to self-transitions; and a part of
// rank one.  In products of such probabilities kernels expand this sum, and so a step costs the
// non-zeros and not all pairs of labels.  Labels are slots (_slots.hpp).
//
// A law is a class derived from FranchiseTransitions.  The plain one, HCRPTransitions, adds
// nothing; another one hides what differs: flags, total and self_weight, the changes (add, remove
// or, where they depend on the step, add_draw and remove_draw; commit, commit_same, rollback,
// resize, clear), fill_step and the records.  Restaurants hold the draws that are made in them,
// so that a coin in front of them leaves Seating as it is.
//
// The class owns its hyperparameters, with their posterior draw, and its record: what a record
// contains is written here and in _franchise.pyx, which converts it to arrays.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "_concentration.hpp"
#include "_product.hpp"
#include "_record.hpp"
#include "_seating.hpp"
#include "_slots.hpp"

namespace skihmm {

// s_0 for the two transitions of one removed step.
struct StepView {
    int32_t i = 0, x = 0, o = 0;        // labels of t-1 (kStart: none), t, t+1 (-1: none)
    int32_t n_in = 0, n_out = 0;        // customers of (i, x) and (x, o)
    int32_t m_x = 0, m_o = 0;           // tables of the dishes x and o
    double total_i = 1.0, total_x = 1.0;
    double mass_o = 0.0, scale = 0.0;   // that of o is 0 if there is none
    // Whether the successor has lost its last table: then it is a new state with a name.
    bool is_ghost() const { return o >= 0 && m_o == 0; }
};

// What laws over two levels of restaurants have in common; `Law` is the derived class.
template <class Law>
class FranchiseTransitions : public Seating<InfiniteRoot> {
    using Customers = Seating<InfiniteRoot>;
    static constexpr const char *kWhat = "transitions";

  public:
    // Whether self_weight is ever positive, and whether customers can be lifted (see below).
    static constexpr bool kHasSelfWeight = false, kLifts = true;

    // Transitions of the states 0 .. n_states - 1; row n_states is the start restaurant.
    struct Record {
        int32_t n_states = 0;
        std::vector<double> hyperparameters;
        SeatingRecord seating;

        // Refuse counts that are not those of some path over all the states.  The seating has
        // passed check_record.
        void check() const {
            if (static_cast<size_t>(n_states) > seating.rows.size())
                refuse(kWhat, std::to_string(seating.rows.size()) + " cells are too few for "
                              + std::to_string(n_states) + " states");
            std::vector<int64_t> entered(n_states, 0);
            std::vector<int64_t> left(static_cast<size_t>(n_states) + 1, 0);
            for (size_t i = 0; i < seating.rows.size(); ++i) {
                left[seating.rows[i]] += seating.n_customers[i];
                entered[seating.dishes[i]] += seating.n_customers[i];
            }
            for (int32_t k = 0; k < n_states; ++k) {
                if (entered[k] == 0)
                    refuse(kWhat, "state " + std::to_string(k) + " is never entered; expected "
                                  "every state to be used");
                if (left[k] > entered[k])
                    refuse(kWhat, "state " + std::to_string(k) + " is left "
                                  + std::to_string(left[k]) + " times, but entered only "
                                  + std::to_string(entered[k]) + " times");
            }
            if (left[n_states] == 0) refuse(kWhat, "no sequence begins");
        }
        // Refuse the record of another path: labels[t] is drawn in restaurant rows[t].
        void check_path(const std::vector<int32_t> &rows,
                        const std::vector<int32_t> &labels) const {
            check_customers(seating, rows.data(), labels.data(), 1,
                            static_cast<int64_t>(labels.size()), n_states + 1, kWhat);
        }
    };

    // ---- hyperparameters

    // In the order of their names in _franchise.pyx.
    std::vector<double> hyperparameters() const { return {alpha, base.gamma}; }
    void set_hyperparameters(const std::vector<double> &values) {
        set_concentrations(values[0], values[1]);
    }
    // Gamma(shape, rate) is the prior of each; without this call they are fixed.
    void set_prior(double shape, double rate) {
        prior_shape_ = shape;
        prior_rate_ = rate;
    }
    void draw_hyperparameters(bitgen_t *g) {
        if (prior_shape_ > 0.0) draw_concentrations(this, 1, prior_shape_, prior_rate_, g);
    }

    // ---- records

    // Slot k is the state labels[k], or -1; the last label is that of kStart.
    Record record(const std::vector<int32_t> &labels) const {
        return {labels[kStart], law().hyperparameters(),
                relabelled(Customers::record(), labels, &labels)};
    }
    // Replace everything by a record that has been checked: state k has the slot kFirst + k.
    void load(const Record &record, int32_t n_slots) {
        SeatingRecord seating = record.seating;
        for (int32_t &row : seating.rows)
            row = row == record.n_states ? kStart : kFirst + row;
        for (int32_t &dish : seating.dishes) dish += kFirst;
        law().set_hyperparameters(record.hyperparameters);
        Customers::load(seating, n_slots, n_slots);
    }

    // ---- probabilities

    // The restaurant in which step t is drawn after label j, by slots or by the labels of a
    // record.
    int32_t restaurant(int32_t j, int64_t) const { return j; }
    int32_t n_slots() const { return static_cast<int32_t>(columns.size()); }
    int32_t tables_of(int32_t k) const { return base.dish_tables[k]; }
    // Whether some table serves the label.  All others have the law of kNew.
    bool is_served(int32_t k) const { return tables_of(k) > 0; }
    // The mass of a label that the smooth part of a sum over labels has to count: in it kNew
    // stands for all labels that no table serves.
    double own_mass(int32_t k) const {
        return k == kNew ? base.gamma : static_cast<double>(tables_of(k));
    }
    const Line &row(int32_t j) const { return rows[j]; }
    const Line &column(int32_t k) const { return columns[k]; }
    // The weight of k -> k besides the customers'; 0 of kStart.
    static constexpr double self_weight(int32_t) { return 0.0; }
    // The sum of a restaurant's sparse part, and that of the smooth one, times total(j).
    double sparse_weight(int32_t j) const {
        return with_self(row_customers[j], j, j);
    }
    double smooth_weight() const { return alpha; }
    // The sparse part of p(k | j), times total(j); `hint` as for count.
    double pair_weight(int32_t j, int32_t k, int32_t hint = -1) const {
        return with_self(count(j, k, hint), j, k);
    }
    double prob(int32_t j, int32_t k) const {
        return dish_weight(pair_weight(j, k), new_table(k)) / law().total(j);
    }
    // The share of the self-transition in p(kNew | kNew).
    double self_share() const {
        if constexpr (!Law::kHasSelfWeight) return 0.0;
        const double self = law().self_weight(kNew);
        return self / dish_weight(self, new_table(kNew));
    }
    // Whether all weights lie strictly between the two, so that products of a few of them fit in
    // a float.
    bool is_moderate(double least, double most) const {
        return least < alpha && alpha < most && least < mass(kNew) && mass(kNew) < most;
    }

    // ---- the draw of k after label j, made for step t (see Seating)

    SKIHMM_INLINE double add_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                  int32_t *hint) {
        return law().add(law().restaurant(j, t), k, g, hint);
    }
    // The same where it has been drawn already, together with k and given that the next draw is
    // o (-1: there is none), whether it opens a table.
    SKIHMM_INLINE void add_draw(int64_t t, int32_t j, int32_t k, bool opens, int32_t, bitgen_t *g,
                                int32_t *hint) {
        add(law().restaurant(j, t), k, opens, g, hint);
    }
    SKIHMM_INLINE double remove_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                     int32_t *hint) {
        return law().remove(law().restaurant(j, t), k, g, hint);
    }

    // ---- one removed step

    // The two customers of a step, i -> x and x -> o, and where they go if they are lifted.
    struct Step : StepView {
        Lifted in, out;
        int32_t table_in = 0, table_out = 0;
    };

    // Complete a view that has the labels, when the customers have been removed.
    void look(int32_t hint_in, int32_t hint_out, StepView *view) const {
        const bool has_next = view->o >= 0;
        view->n_in = count(view->i, view->x, hint_in);
        view->n_out = has_next ? count(view->x, view->o, hint_out) : 0;
        view->m_x = tables_of(view->x);
        view->m_o = has_next ? tables_of(view->o) : 0;
        view->total_i = law().total(view->i);
        view->total_x = law().total(view->x);
        view->mass_o = has_next ? mass(view->o) : 0.0;
        view->scale = scale();
    }
    // The same without writing, for i != x != o: x -> o, which came last, is lifted first.
    SKIHMM_INLINE void lift_out(bitgen_t *g, int32_t *hint, Step *step) const {
        lift(step->x, step->o, g, hint, &step->out);
    }
    SKIHMM_INLINE void lift_in(bitgen_t *g, int32_t *hint, Step *step) const {
        static_assert(!Law::kHasSelfWeight, "the totals below have none");
        const Lifted &in = step->in, &out = step->out;
        lift(step->i, step->x, g, hint, &step->in);
        step->n_in = in.n;
        step->n_out = out.n;
        step->m_x = tables_of(step->x) - in.closes;
        step->m_o = tables_of(step->o) - out.closes;
        step->total_i = total(step->i, -1);
        step->total_x = total(step->x, -1);
        step->mass_o = base.mass_of(step->m_o);
        step->scale = scale_after(-in.closes - out.closes);
    }
    // The lifted customers choose tables for the same labels again: i -> x, for whom it is
    // returned whether he opens one ...
    SKIHMM_INLINE bool choose_in(uint32_t bits, bitgen_t *g, Step *step) const {
        const double fresh = new_table_weight(step->scale, base.mass_of(step->m_x));
        step->table_in = choose_table(step->in, fresh, bits, g);
        return step->table_in == kNewTable;
    }
    // ... or for whom that has been drawn already ...
    SKIHMM_INLINE void choose_in(bool opens, uint32_t bits, bitgen_t *g, Step *step) const {
        step->table_in = opens ? kNewTable : choose_table(step->in, 0.0, bits, g);
    }
    // ... and then x -> o.  The factor of i -> x is the same in r_old and r_new: both are taken
    // at s_0.  Of that of x -> o only the new table's weight can differ, if i -> x has closed a
    // table or opened one.  What is equal is left out.
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
        Customers::put_back(step.in, step.table_in);
        Customers::put_back(step.out, step.table_out);
    }

    // The weight of a new table of the successor if the transition into the step opens a table,
    // of the successor's label or of another one.
    double successor_table(const StepView &view, bool is_its_own) const {
        const double opened = table_scale_after(alpha, view.scale);
        return opened * (is_its_own ? view.m_o + 1 : view.mass_o);
    }
    // weights[k] = p(k | i) p(o | k), times total(i), of every label when the customers have been
    // removed; of a ghost too, 0 of all others for which kNew stands.  `after`: o is drawn after
    // the customer of k has come, and stays[k] is the part in which that one opens no table.
    // `in` and `out` are zero, before and afterwards.  O(K).
    void fill_step(const StepView &view, bool after, double *weights, double *stays, double *in,
                   double *out) const {
        const int32_t i = view.i, o = view.o, n = n_slots();
        const double c = view.scale;
        for (int32_t k = 0; k < n; ++k) weights[k] = c * own_mass(k);
        weights[kStart] = 0.0;
        if (view.is_ghost()) weights[o] = c * mass(kNew);
        row(i).scatter(in);
        in[i] = with_self(in[i], i, i);
        if (o >= 0) {
            const double b = new_table_weight(c, view.mass_o);
            column(o).scatter(out);
            out[o] = with_self(out[o], o, o);
            if (after) out[i] += i == o;
            const double others = successor_table(view, false), own = successor_table(view, true);
            for (int32_t k = 0; k < n; ++k) {
                const double opened_b = !after ? b : k == o ? own : others;
                const double size = law().total(k) + (after && k == i);
                stays[k] = in[k] * dish_weight(out[k], b) / size;
                weights[k] = stays[k] + weights[k] * dish_weight(out[k], opened_b) / size;
            }
            column(o).unscatter(out);
            out[i] = out[o] = 0.0;
        } else {
            for (int32_t k = 0; k < n; ++k) weights[k] += stays[k] = in[k];
        }
        row(i).unscatter(in);
        in[i] = 0.0;
    }

    // ---- whole rows

    // out[k] = p(k | j), 0 of labels for which kNew stands.  O(K + row).
    void fill_row(int32_t j, double *out) const {
        const double c = 1.0 / law().total(j), smooth = scale() * c;
        for (int32_t k = 0; k < n_slots(); ++k) out[k] = smooth * own_mass(k);
        const Line &row = law().row(j);
        for (int32_t i = 0; i < row.size; ++i) out[row.ids[i]] += c * row.counts[i];
        if constexpr (Law::kHasSelfWeight) out[j] += c * law().self_weight(j);
    }
    // out[k] = sum_j weights[j] p(k | j): a forward step, O(non-zeros + K).
    void push(const double *weights, double *out) const {
        std::fill_n(out, n_slots(), 0.0);
        double smooth = 0.0;
        for (int32_t j = 0; j < n_slots(); ++j) {
            if (weights[j] == 0.0) continue;
            const double share = weights[j] / law().total(j);
            smooth += share;
            const Line &row = law().row(j);
            for (int32_t i = 0; i < row.size; ++i) out[row.ids[i]] += share * row.counts[i];
            if constexpr (Law::kHasSelfWeight) out[j] += share * law().self_weight(j);
        }
        smooth *= scale();
        for (int32_t k = 0; k < n_slots(); ++k) out[k] += smooth * own_mass(k);
    }
    // out[j] = sum_k p(k | j) values[k]: a backward step, O(non-zeros + K).
    void pull(const double *values, double *out) const {
        double smooth = own_mass(kNew) * values[kNew];
        for (int32_t k = kStart; k < n_slots(); ++k) smooth += own_mass(k) * values[k];
        smooth *= scale();
        for (int32_t j = 0; j < n_slots(); ++j) {
            double sum = smooth;
            const Line &row = law().row(j);
            for (int32_t i = 0; i < row.size; ++i)
                sum += row.counts[i] * values[row.ids[i]];
            if constexpr (Law::kHasSelfWeight) sum += law().self_weight(j) * values[j];
            out[j] = sum / law().total(j);
        }
    }
    // out[k] = max_j weights[j] p(k | j), and the j that reaches it: a Viterbi step.
    void push_max(const double *weights, double *out, int32_t *argmax_out) const {
        // The smooth part is largest for one j whatever k is; a j with n_jk > 0 beats its
        // own smooth part, so the maximum is over that one j and the column's entries.
        int32_t best = kNew;
        double largest = -1.0;
        for (int32_t j = 0; j < n_slots(); ++j) {
            const double share = weights[j] / law().total(j);
            if (share > largest) {
                largest = share;
                best = j;
            }
        }
        const double smooth = largest * scale();
        for (int32_t k = 0; k < n_slots(); ++k) {
            out[k] = smooth * own_mass(k);
            argmax_out[k] = best;
        }
        for (int32_t j = 0; j < n_slots(); ++j) {
            if (weights[j] == 0.0) continue;
            const double share = weights[j] / law().total(j);
            const Line &row = law().row(j);
            for (int32_t i = 0; i < row.size; ++i) {
                const int32_t k = row.ids[i];
                const double value = share * dish_weight(static_cast<double>(row.counts[i]),
                                                         new_table(k));
                if (!(value > out[k])) continue;
                out[k] = value;
                argmax_out[k] = j;
            }
            if constexpr (Law::kHasSelfWeight) {
                const double value = weights[j] * prob(j, j);
                if (!(law().self_weight(j) > 0.0 && value > out[j])) continue;
                out[j] = value;
                argmax_out[j] = j;
            }
        }
    }

  private:
    const Law &law() const { return static_cast<const Law &>(*this); }
    Law &law() { return static_cast<Law &>(*this); }
    double with_self(double weight, int32_t j, int32_t k) const {
        if constexpr (Law::kHasSelfWeight) weight += j == k ? law().self_weight(k) : 0.0;
        return weight;
    }

    double prior_shape_ = 0.0, prior_rate_ = 0.0;
};

// The transitions of the HDP-HMM.
class HCRPTransitions : public FranchiseTransitions<HCRPTransitions> {};

}  // namespace skihmm
