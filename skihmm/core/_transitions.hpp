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
// A law is a class derived from FranchiseTransitions, which hides what differs: flags, total and
// self_weight, the changes (add_draw, remove_draw, commit, commit_same, rollback, resize, clear),
// fill_step and the records.  The one that there is, HCRPTransitions, may have coins (_coins.hpp)
// in front of its restaurants.  These hold the draws that are made in them, so that coins leave
// Seating as it is.
//
// The class owns its hyperparameters, with their posterior draw, and its record: what a record
// contains is written here and in _franchise.pyx, which converts it to arrays.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "_coins.hpp"
#include "_concentration.hpp"
#include "_contexts.hpp"
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
    static constexpr bool has_self_weight() { return false; }
    static constexpr bool lifts() { return true; }

    // Transitions of the states 0 .. n_states - 1; row n_states is the start restaurant.
    struct Record {
        int32_t n_states = 0;
        std::vector<double> hyperparameters;
        SeatingRecord seating;
        // Of coins: by state, and by step or nothing, as in draws.  Flags of stays are those of
        // one stage.
        int32_t n_stages = 1;
        bool starts_inside = false;
        std::vector<int32_t> stays, advances;
        std::vector<uint8_t> stayed, stages;
        // With contexts `seating` is depth 1 of a tree, and these are depth 2, 3, ...; of coins
        // then the draws by state, and of the start.
        ContextShape contexts;
        std::vector<SeatingRecord> levels;
        std::vector<int32_t> draws;

        // Refuse counts that are not those of some path over all the states.  The seating has
        // passed check_record.
        void check() const {
            if (contexts.exists()) return check_tree();
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
        // The same of a tree.
        void check_tree() const {
            std::vector<bool> entered(n_states, false);
            for (const int32_t k : seating.dishes) entered[k] = true;
            for (int32_t k = 0; k < n_states; ++k)
                if (!entered[k])
                    refuse(kWhat, "state " + std::to_string(k) + " is never entered; expected "
                                  "every state to be used");
            for (int32_t d = 1; d < contexts.depth(); ++d) {
                const SeatingRecord &parents = d == 1 ? seating : levels[d - 2];
                const SeatingRecord &own = levels[d - 1];
                std::map<std::pair<int32_t, int32_t>, int64_t> customers;
                for (size_t i = 0; i < parents.rows.size(); ++i)
                    customers[{parents.rows[i], parents.dishes[i]}] = parents.n_customers[i];
                for (size_t i = 0; i < own.rows.size(); ++i)
                    if ((customers[{contexts.row_above(d + 1, own.rows[i]), own.dishes[i]}]
                         -= own.n_tables[i]) < 0)
                        refuse(kWhat, name_cell(own, i) + "of depth " + std::to_string(d + 1)
                                      + " has more tables than its parent has customers");
            }
        }
        // Refuse the coins of another path: labels[t] follows rows[t], by a stay, an advance or a
        // draw.  Returns the labels with -1 for those that do not by a draw.
        std::vector<int32_t> check_coins(const std::vector<int32_t> &rows,
                                         const std::vector<int32_t> &labels) const {
            std::vector<int32_t> drawn = labels, stay(stays.size(), 0), advance(stay);
            const bool is_staged = n_stages > 1;
            const size_t n = stays.empty() ? 0 : labels.size();
            const std::vector<uint8_t> &steps = is_staged ? stages : stayed;
            if (steps.size() != n || (is_staged ? stayed : stages).size() > 0)
                refuse(kWhat, std::to_string(steps.size())
                              + (is_staged ? " stages" : " flags of stays") + " for "
                              + std::to_string(labels.size()) + " steps");
            for (size_t t = 0; t < n; ++t) {
                const bool repeats = rows[t] == labels[t];
                if (!is_staged) {
                    if (!steps[t]) continue;
                    if (steps[t] != 1 || !repeats)
                        refuse(kWhat, "step " + std::to_string(t) + " is no stay");
                    ++stay[labels[t]];
                } else {
                    const int32_t stage = steps[t], before = t ? steps[t - 1] : 0;
                    const bool begins = rows[t] == n_states;
                    if (stage == 0 && (begins || before == n_stages - 1)) continue;
                    if (begins ? !starts_inside || stage >= n_stages
                               : !repeats || (stage != before && stage != before + 1))
                        refuse(kWhat, "step " + std::to_string(t) + " cannot be in stage "
                                      + std::to_string(stage));
                    if (begins) continue;
                    ++(stage == before ? stay : advance)[labels[t]];
                }
                drawn[t] = -1;
            }
            if (stay != stays || (is_staged && advance != advances))
                refuse(kWhat, "the numbers of stays are not those of the steps");
            return drawn;
        }
        void check_path(const std::vector<int32_t> &rows,
                        const std::vector<int32_t> &labels) const {
            check_customers(seating, rows.data(), check_coins(rows, labels).data(), 1,
                            static_cast<int64_t>(labels.size()), n_states + 1, kWhat);
        }
    };

    // ---- hyperparameters

    // As many numbers as their names in _franchise.pyx stand for, in that order.
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
                relabelled(Customers::record(), labels, &labels), 1, false, {}, {}, {},
                {}, {}, {}, {}};
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
    // What the weights after j lack to total(j), where its probabilities sum to less than one.
    static constexpr double lost_weight(int32_t) { return 0.0; }
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
        const double self = law().self_weight(kNew);
        return self / dish_weight(self, new_table(kNew));
    }
    // ---- the draw of k after label j, made for step t (see Seating)

    SKIHMM_INLINE double add_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                  int32_t *hint) {
        return add(law().restaurant(j, t), k, g, hint);
    }
    // The same where it has been drawn already, together with k and given that the next draw is
    // o (-1: there is none), whether it opens a table.
    SKIHMM_INLINE void add_draw(int64_t t, int32_t j, int32_t k, bool opens, int32_t, bitgen_t *g,
                                int32_t *hint) {
        add(law().restaurant(j, t), k, opens, g, hint);
    }
    SKIHMM_INLINE double remove_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                     int32_t *hint) {
        return remove(law().restaurant(j, t), k, g, hint);
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
        if (view.is_ghost()) weights[o] = c * mass(kNew);  // planted: successor without a table
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
        if (law().has_self_weight()) out[j] += c * law().self_weight(j);
    }
    // out[k] = sum_j weights[j] p(k | j): a forward step, O(non-zeros + K).
    // Of the first `n` labels, beyond which there is none, or of all.
    void push(const double *weights, double *out) const { push(weights, out, n_slots()); }
    void push(const double *weights, double *out, int32_t n) const {
        std::fill_n(out, n, 0.0);
        double smooth = 0.0;
        for (int32_t j = 0; j < n; ++j) {
            if (weights[j] == 0.0) continue;
            const double share = weights[j] / law().total(j);
            smooth += share;
            const Line &row = law().row(j);
            for (int32_t i = 0; i < row.size; ++i) out[row.ids[i]] += share * row.counts[i];
            if (law().has_self_weight()) out[j] += share * law().self_weight(j);
        }
        smooth *= scale();
        for (int32_t k = 0; k < n; ++k) out[k] += smooth * own_mass(k);
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
            if (law().has_self_weight()) sum += law().self_weight(j) * values[j];
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
            if (law().has_self_weight()) {
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
        if (SKIHMM_UNLIKELY(law().has_self_weight()))
            weight += j == k ? law().self_weight(k) : 0.0;
        return weight;
    }

  protected:
    double prior_shape_ = 0.0, prior_rate_ = 0.0;
};

// The transitions of the HDP-HMM, and with coins those of the sticky HDP-HMM: with n_j draws in
// restaurant j
//
//     p(k | j) = stay_j [j = k] + (1 - stay_j) (n_jk + a_k) / (n_j + alpha).
//
// With contexts the inherited seating is the first level of a tree (_contexts.hpp), and the law
// depends on the step.  Then it is not taken apart by rows, columns, pairs and totals: the
// functions with a step as their first parameter are all that there is.  A state has one coin in
// front of its restaurants of all contexts.
//
// The coins may be tied: omega = alpha.  Whether there are coins is asked at run time, outside of
// the loops over counts, because the kernels would have to be compiled twice otherwise.
//
// If coins have several stages, p(k | j) is the probability of a draw of k in the last stage of j,
// and the view of sparse counts is that of the draws alone; the passes over columns, states with
// their stages, add the coins.  How a step is entered follows from its stage and that of the step
// before it, so that add_draw and remove_draw count what stages and labels say.  The steps between
// two draws, a run, change their label together in kernels that leave stages as they are.
class HCRPTransitions : public FranchiseTransitions<HCRPTransitions> {
    using Draws = FranchiseTransitions<HCRPTransitions>;

  public:
    // ---- coins and their hyperparameters

    const Coins &coins() const { return coins_; }
    void set_stay_prior(double kappa, double omega) {
        coins_.kappa = kappa;
        coins_.omega = omega;
        note_kind();
    }
    void set_tied_stay_prior(double kappa) {
        set_stay_prior(kappa, hyperparameters()[0]);
        is_tied_ = true;
    }
    void set_dwell(double dwell) {
        coins_.set_dwell(dwell);
        note_kind();
    }
    // Nats per draw after a state, if there are coins (see _coins.hpp).
    void set_switch_penalty(double nats) { coins_.set_penalty(nats); }
    // Before the functions above.
    void set_stages(int32_t n_stages, bool starts_inside) {
        coins_.n_stages = n_stages;
        coins_.starts_inside = starts_inside;
        note_kind();
    }
    bool has_stages_of(const Record &record) const {
        return record.n_stages == coins_.n_stages
               && record.starts_inside == coins_.starts_inside;
    }
    bool are_staged() const { return coins_.are_staged(); }
    // Whether step t, which begins no sequence, may have another label than the step before it
    // while stages are kept.
    bool begins_run(int64_t t) const { return !are_staged() || coins_.begins_run(t); }
    void set_stage(int64_t t, int32_t stage) { coins_.set_stage(t, stage); }
    void spread_stages(const int32_t *labels, const std::vector<uint8_t> &first) {
        if (are_staged()) coins_.spread_stages(labels, first);
    }
    // `alpha` is that of the restaurants of states, and the concentrations of contexts, which
    // come last, are those of the columns.
    std::vector<double> hyperparameters() const {
        std::vector<double> values = Draws::hyperparameters();
        if (coins_.exist()) values.insert(values.end(), {coins_.kappa, coins_.omega});
        if (!tree_) return values;
        const int32_t own = tree_->shape.n_before + 1;
        values[0] = tree_->alpha(own);
        for (int32_t d = 1; d <= tree_->shape.depth(); ++d)
            if (d != own) values.push_back(tree_->alpha(d));
        return values;
    }
    void set_hyperparameters(const std::vector<double> &values) {
        const size_t n_contexts = tree_ ? tree_->shape.n_columns() : 0;
        Draws::set_hyperparameters(values);
        if (values.size() > 2 + n_contexts) set_stay_prior(values[2], values[3]);
        else coins_.kappa = 0.0;
        note_kind();
        if (!tree_) return;
        const int32_t own = tree_->shape.n_before + 1;
        size_t at = values.size() - n_contexts;
        for (int32_t d = 1; d <= tree_->shape.depth(); ++d)
            tree_->set_alpha(d, d == own ? values[0] : values[at++]);
    }
    void draw_hyperparameters(bitgen_t *g) {
        if (prior_shape_ > 0.0) draw_all_concentrations(g);
        coins_.draw_hyperparameters(draws(), g);
        coins_.touch();
    }
    double log_joint() const {
        const double lp = tree_ ? tree_->log_joint() : Draws::log_joint();
        return coins_.exist() ? lp + coins_.log_joint(draws()) : lp;
    }

    // ---- contexts; set before steps and labels

    bool has_contexts() const { return tree_ != nullptr; }
    // Whether they are all that a step depends on.
    bool depends_on_contexts() const { return tree_ && !coins_.exist(); }
    const ContextTree &contexts() const { return *tree_; }
    void set_contexts(const ContextShape &shape) {
        tree_ = std::make_unique<ContextTree>(this, shape);
        note_kind();
    }
    // Tables of all depths but the first.
    int64_t count_deep_tables() const { return tree_ ? tree_->count_deep_tables() : 0; }
    void set_places(std::vector<ContextPlace> places) { tree_->set_places(std::move(places)); }

    // ---- records and size

    Record record(const std::vector<int32_t> &labels) const {
        Record out = tree_ ? record_tree(labels) : Draws::record(labels);
        if (!coins_.exist()) return out;
        const auto by_label = [&](const std::vector<int32_t> &counts, int32_t n) {
            std::vector<int32_t> own(n);
            for (size_t k = kStart; k < counts.size(); ++k)
                if (labels[k] >= 0 && labels[k] < n) own[labels[k]] = counts[k];
            return own;
        };
        out.stays = by_label(coins_.stays(), out.n_states);
        if (tree_) out.draws = by_label(coins_.draws(), out.n_states + 1);
        out.stayed = coins_.flags();
        if (!are_staged()) return out;
        out.n_stages = coins_.n_stages;
        out.starts_inside = coins_.starts_inside;
        out.stages = coins_.stages();
        out.advances = by_label(coins_.advances(), out.n_states);
        return out;
    }
    void load(const Record &record, int32_t n_slots) {
        set_stages(record.n_stages, record.starts_inside);
        if (tree_) load_tree(record, n_slots);
        else Draws::load(record, n_slots);
        coins_.resize(n_slots);
        coins_.load(record.stays, record.advances, record.draws, record.stayed, record.stages);
    }
    // Refuse the checked record of another path, whose step t with label labels[t] follows the
    // label before[t].
    void check_path(const Record &record, const std::vector<int32_t> &before,
                    const std::vector<int32_t> &labels) const {
        const bool is_same = tree_ ? tree_->shape == record.contexts : !record.contexts.exists();
        if (!is_same) refuse("transitions", "the contexts are those of other data");
        if (!tree_) return record.check_path(before, labels);
        const std::vector<int32_t> drawn = record.check_coins(before, labels);
        std::vector<int32_t> draws(record.draws.size(), 0);
        for (size_t t = 0; t < drawn.size() && !draws.empty(); ++t)
            draws[before[t]] += drawn[t] >= 0;
        if (draws != record.draws)
            refuse("transitions", "the numbers of draws are not those of the steps");
        for (int32_t d = 1; d <= tree_->shape.depth(); ++d)
            tree_->check_customers_of(
                d, d == 1 ? record.seating : record.levels[d - 2],
                d < tree_->shape.depth() ? &record.levels[d - 1] : nullptr, before, drawn,
                record.n_states, "transitions, depth " + std::to_string(d));
    }
    void set_steps(int64_t n_steps) {
        coins_.set_steps(coins_.exist() ? n_steps : 0);
        if (tree_ && static_cast<int64_t>(tree_->n_places()) != n_steps)
            refuse("transitions", std::to_string(tree_->n_places()) + " contexts for "
                                  + std::to_string(n_steps) + " steps");
    }
    void resize(int32_t n_rows, int32_t n_dishes) {
        if (tree_) {
            Draws::resize(static_cast<int32_t>(tree_->shape.n_rows(1, n_rows)), n_dishes);
            tree_->resize(n_rows);
        } else {
            Draws::resize(n_rows, n_dishes);
        }
        coins_.resize(n_rows);
    }
    void clear() {
        if (tree_) tree_->clear();
        else Draws::clear();
        coins_.clear();
    }
    size_t n_bytes() const {
        return (tree_ ? tree_->n_bytes() : Draws::n_bytes()) + coins_.flags().size()
               + coins_.stages().size();
    }
    const char *check() const { return tree_ ? tree_->check() : Draws::check(); }

    // ---- probabilities

    SKIHMM_INLINE bool has_self_weight() const { return has_self_weight_; }
    SKIHMM_INLINE bool lifts() const { return is_plain(); }
    // Whether kernels may take a law apart, by rows, columns, pairs and totals.
    SKIHMM_INLINE bool is_plain() const { return is_plain_; }
    SKIHMM_INLINE double total(int32_t j, int32_t change = 0) const {
        const double all = Draws::total(j, change);
        // planted: denominator with a stay
        return SKIHMM_LIKELY(!has_self_weight()) ? all : all * weight_of_row(j, change);
    }
    double self_weight(int32_t k) const {
        return SKIHMM_LIKELY(!has_self_weight()) || k == kStart
            ? 0.0 : Draws::total(k) * coins_.odds(k, row_customers[k]) * coins_.price();
    }
    double lost_weight(int32_t j) const {
        return j == kStart ? 0.0 : Draws::total(j) * (coins_.price() - 1.0);
    }
    double prob(int32_t j, int32_t k) const {
        const double p = Draws::prob(j, k);
        return SKIHMM_LIKELY(!are_staged()) ? p : leave(j) * p;
    }
    // The probability that the next step stays in the stage of k, and that it leaves it for a
    // draw, with the penalty of that; 0 and 1 of kStart.
    double stay(int32_t k) const {
        return k == kStart ? 0.0 : coins_.stay(k, draws()[k]);  // planted: stay probability
    }
    double leave(int32_t j) const {
        return j == kStart ? 1.0 : coins_.leave(j, draws()[j]) * coins_.escape();
    }
    // By slot: the number of draws after a state, if there are coins.
    // planted: draws after states
    const std::vector<int32_t> &draws() const { return tree_ ? coins_.draws() : row_customers; }

    // ---- changes

    SKIHMM_INLINE double add_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                  int32_t *hint) {
        if (SKIHMM_LIKELY(is_plain())) return Draws::add_draw(t, j, k, g, hint);
        if (!coins_.exist()) return add_customer(t, j, k, g, hint);
        if (are_staged()) return add_staged(t, j, k, g, hint);
        const double p = prob(t, j, k);
        if (j == k && uniform(g) * p < stay(k)) coins_.toggle(t, k);  // planted: share of stays
        else add_customer(t, j, k, g, hint);
        return p;
    }
    SKIHMM_INLINE void add_draw(int64_t t, int32_t j, int32_t k, bool opens, int32_t o,
                                bitgen_t *g, int32_t *hint) {
        if (SKIHMM_UNLIKELY(has_contexts())) {
            const ContextPlace at = tree_->place(t), next = tree_->place(t + 1);
            double repeats = 0.0;
            if (coins_.exist()) {
                if (j == k && !opens) {
                    const double stayed = stay_part(t, k, o),
                                 // planted: stay or draw
                                 drawn = draw_part(j, k, o, tree_->join_prob(at, j, k),
                                                   tree_->joining_part(at, next, j, k, o));
                    if (uniform(g) * (stayed + drawn) < stayed) return coins_.toggle(t, k);
                }
                repeats = repeat_prob(j, k, o);
                coins_.count(Coins::Kind::kDraw, j, 1);
            }
            const int32_t n = tree_->draw_opened(at, next, j, k, o, opens, g, repeats);
            return tree_->add_at(at, j, k, n, g, hint);
        }
        if (SKIHMM_UNLIKELY(coins_.exist() && j == k && !opens)) {
            const double a = new_table_of(o), stayed = stay_part(k, o, a),
                         drawn = draw_part(k, o, count(k, k), a);
            if (uniform(g) * (stayed + drawn) < stayed) return coins_.toggle(t, k);
        }
        Draws::add_draw(t, j, k, opens, o, g, hint);
    }
    SKIHMM_INLINE double remove_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                     int32_t *hint) {
        if (SKIHMM_LIKELY(is_plain())) return Draws::remove_draw(t, j, k, g, hint);
        if (!coins_.exist()) return remove_customer(t, j, k, g, hint);
        if (are_staged()) return remove_staged(t, j, k, g, hint);
        if (coins_.stayed(t)) coins_.toggle(t, k);
        else remove_customer(t, j, k, g, hint);
        return prob(t, j, k);
    }
    size_t n_cells() const { return tree_ ? tree_->n_cells() : Draws::n_cells(); }
    void prefetch_cell(int32_t hint) const {
        if (SKIHMM_LIKELY(!tree_)) Draws::prefetch_cell(hint);
        else tree_->prefetch_cell(hint);
    }
    void prefetch_lists(int32_t hint) const {
        if (SKIHMM_LIKELY(!tree_)) Draws::prefetch_lists(hint);
        else tree_->prefetch_lists(hint);
    }
    SKIHMM_INLINE void commit() {
        if (SKIHMM_LIKELY(is_plain_)) return Draws::commit();
        if (tree_) tree_->commit();
        else Draws::commit();
        coins_.commit();
    }
    // The same labels may be other counts: a stay in the place of a draw.
    SKIHMM_INLINE void commit_same() {
        if (SKIHMM_UNLIKELY(!is_plain())) commit();  // planted: commit of the same
        else Draws::commit_same();
    }
    void rollback() {
        if (tree_) tree_->rollback();
        else Draws::rollback();
        coins_.rollback();  // planted: rollback of stays
    }

    // ---- probabilities of the labels of step t, with its context

    void look(int32_t hint_in, int32_t hint_out, StepView *view) const {
        if (SKIHMM_LIKELY(!has_contexts())) return Draws::look(hint_in, hint_out, view);
        view->m_x = tables_of(view->x);
        view->m_o = view->o >= 0 ? tables_of(view->o) : 0;
    }
    double prob(int64_t t, int32_t j, int32_t k) const {
        if (!tree_) return prob(j, k);
        const double p = tree_->prob(tree_->place(t), j, k);  // planted: probability in a tree
        if (!coins_.exist()) return p;
        // planted: probability with a stay
        return (j == k && !are_staged() ? stay(k) : 0.0) + leave(j) * p;
    }
    // The sum of the weights of which prob is one: in units of customers.
    double total_at(int64_t t, int32_t j) const {
        if (!tree_) return total(j);
        const double size = tree_->total(tree_->place(t), j);
        return has_coins_of_steps() ? size / leave(j) : size;
    }
    // The probability that a new state stays, given that it is the next one too.
    double self_share_at(int64_t t) const {
        return has_coins_of_steps() ? stay(kNew) / prob(t, kNew, kNew) : 0.0;
    }
    // After a draw of k after i, the weight of a stay in that of o, over the sum of those of a
    // stay and of a draw.
    double repeat_prob(int32_t i, int32_t k, int32_t o) const {
        if (!has_coins_of_steps() || k != o) return 0.0;
        const double w = coins_.stay(k, draws()[k] + (k == i));
        return w / (w + (1.0 - w) * coins_.escape());
    }

    // A self-transition has three cases: a stay, a draw that joins a table and one that opens one.
    // They leave the coin and the restaurant of i as they are for each other.
    void fill_step(int64_t t, const StepView &view, bool after, double *weights, double *stays,
                   double *in, double *out) const {
        const int32_t i = view.i, o = view.o;
        if (tree_) {
            // planted: weights in a tree
            tree_->fill_step(tree_->place(t), tree_->place(t + 1), i, o, view.is_ghost(), after,
                             weights, stays);
            if (coins_.exist()) add_coins(t, i, o, after, weights, stays);
            return;
        }
        Draws::fill_step(view, after, weights, stays, in, out);
        if (!coins_.exist() || !after || i == kStart) return;  // planted: stays of a step
        const double a = new_table_of(o), opened = o < 0 ? 0.0 : successor_table(view, o == i);
        stays[i] = total(i) * (stay_part(i, o, a) + draw_part(i, o, count(i, i), a));
        weights[i] = stays[i] + total(i) * draw_part(i, o, new_table(i), opened);
    }

    // The probability that step t within a run is entered as it is if the run is in state k, after
    // some stays and advances more.
    double inner_prob(int64_t t, int32_t k, int32_t stays = 0, int32_t advances = 0) const {
        const double p = coins_.stay(k, draws()[k] + advances, stays);
        return is_stay(t) ? p : 1.0 - p;
    }
    bool is_stay(int64_t t) const { return coins_.stage(t) == coins_.stage(t - 1); }

    // ---- passes over states and stages: slot k in stage s is column s n_slots() + k, and kStart
    // and kNew are in the first stage, or wherever new states can be

    int32_t n_columns() const { return coins_.n_stages * n_slots(); }
    // The column of label k at step t.
    int32_t column_at(int64_t t, int32_t k) const {
        return are_staged() && k != kStart ? coins_.stage(t) * n_slots() + k : k;
    }
    // A row is that of a state alone, in the long run: its stages last equally long.
    void fill_row(int64_t t, int32_t j, double *out) const {
        fill_draws(t, j, out);
        if (!adds_coins() || j == kStart) return;
        const double left = leave(j) / coins_.n_stages;
        for (int32_t k = 0; k < n_slots(); ++k) out[k] *= left;
        out[j] += 1.0 - left;
    }
    // The same passes of a draw alone, by slots.
    void fill_draws(int64_t t, int32_t j, double *out) const {
        if (tree_) tree_->fill_row(tree_->place(t), j, out);
        else Draws::fill_row(j, out);
    }
    void push_draws(int64_t t, const double *weights, double *out, double least,
                    int32_t width) const {
        if (tree_) tree_->push(tree_->place(t), weights, out, least);
        else Draws::push(weights, out, width);
    }
    void pull_draws(int64_t t, const double *values, double *out) const {
        if (tree_) tree_->pull(tree_->place(t), values, out);
        else Draws::pull(values, out);
    }
    void push_max_of_draws(int64_t t, const double *weights, double *out,
                           int32_t *argmax_out) const {
        if (tree_) tree_->push_max(tree_->place(t), weights, out, argmax_out);
        else Draws::push_max(weights, out, argmax_out);
    }
    // out[c] = sum_j weights[j] p(c | j).  With contexts labels with up to the share `least` of
    // all that is drawn enter by their total only; weights sum to one.  `ghost` is a label without
    // tables that is apart from kNew, or -1.
    void push(int64_t t, const double *weights, double *out, double least = 0.0,
              int32_t ghost = -1, int32_t width = -1) const {
        const int32_t n = n_slots();
        if (width < 0) width = n;
        if (!adds_coins()) return push_draws(t, weights, out, least, width);
        weigh_draws(weights, width);
        if (coins_.starts_inside) scratch_[kStart] = 0.0;
        double all = 0.0;
        for (int32_t k = 0; k < width; ++k) all += scratch_[k];
        push_draws(t, scratch_.data(), out, least * all, width);
        if (ghost >= 0) out[ghost] = out[kNew];
        const double *stays = stays_.data();
        for (int32_t k = 0; k < width; ++k) out[k] += weights[k] * stays[k];
        for (int32_t c = n; c < n_columns(); c += n) {
            for (int32_t k = 0; k < width; ++k)
                out[c + k] = weights[c + k] * stays[k] + weights[c + k - n] * (1.0 - stays[k]);
            out[c + kStart] = 0.0;
        }
        // planted: stages of the start
        if (!coins_.starts_inside || weights[kStart] == 0.0) return;
        fill_draws(t, kStart, scratch_.data());
        if (ghost >= 0) scratch_[ghost] = scratch_[kNew];
        for (int32_t c = 0; c < n_columns(); ++c)
            out[c] += weights[kStart] / coins_.n_stages * scratch_[c % n];
    }
    // The same of one column with weight one.
    void push_one(int64_t t, int32_t column, double *out, int32_t ghost) const {
        if (!adds_coins()) return fill_draws(t, column, out);
        one_.assign(n_columns(), 0.0);
        one_[column] = 1.0;
        push(t, one_.data(), out, 0.0, ghost);
    }
    // out[j] = sum_c p(c | j) values[c].
    void pull(int64_t t, const double *values, double *out) const {
        if (!adds_coins()) return pull_draws(t, values, out);
        const int32_t n = n_slots(), last = n_columns() - n;
        const double escape = coins_.escape();
        read_coins();
        scratch_.resize(n);
        pull_draws(t, values, scratch_.data());
        for (int32_t k = 0; k < n; ++k) {
            const double stayed = stays_[k], left = 1.0 - stayed;
            for (int32_t c = k; c <= last + k; c += n)
                out[c] = stayed * values[c]
                         + left * (c < last ? values[c + n] : escape * scratch_[k]);
        }
        out[kStart] = scratch_[kStart];
        if (!coins_.starts_inside) return;
        fill_draws(t, kStart, scratch_.data());
        double sum = 0.0;
        for (int32_t c = 0; c < n_columns(); ++c) sum += scratch_[c % n] * values[c];
        out[kStart] = sum / coins_.n_stages;
    }
    // out[c] = max_j weights[j] p(c | j), and the j that reaches it.
    void push_max(int64_t t, const double *weights, double *out, int32_t *argmax_out) const {
        if (!adds_coins()) return push_max_of_draws(t, weights, out, argmax_out);
        const int32_t n = n_slots(), last = n_columns() - n;
        weigh_draws(weights, n_slots());
        push_max_of_draws(t, scratch_.data(), out, argmax_out);
        const double inside = coins_.starts_inside ? 1.0 / coins_.n_stages : 1.0;
        for (int32_t k = 0; k < n; ++k) {
            const bool starts = argmax_out[k] == kStart;
            if (starts) out[k] *= inside;
            else argmax_out[k] += last;
            const double entered = starts && coins_.starts_inside ? out[k] : 0.0;
            for (int32_t c = n + k; c < n_columns(); c += n) {
                out[c] = entered;
                argmax_out[c] = kStart;
            }
            if (k == kStart) continue;
            const double stayed = stay(k), left = 1.0 - stayed;
            for (int32_t c = k; c < n_columns(); c += n) {
                // (With one stage a draw of k after k leads there too.)
                take_larger(weights[c] * (are_staged() ? stayed : prob(t, k, k)), c, &out[c],
                            &argmax_out[c]);
                if (c > k)
                    take_larger(weights[c - n] * left, c - n, &out[c], &argmax_out[c]);
            }
        }
    }
    // Columns before and the parts of p(c | column), of which one may have several; returns how
    // many parts there are, which has room for n_parts() of them.  Some table serves the label of
    // c, or it is kNew or the ghost of `push`.
    int32_t n_parts() const { return 1 + 2 * n_slots(); }
    int32_t list_before(int64_t t, int32_t c, int32_t *columns, double *probs,
                        int32_t width = -1) const {
        const int32_t n = n_slots(), k = c % n, last = n_columns() - n;
        // A tree writes all labels, which weigh nothing beyond the width.
        if (width < 0 || tree_) width = n;
        int32_t size = 0;
        if (adds_coins()) {
            read_coins();
            columns[0] = c;
            probs[0] = stays_[k];
            size = 1;
            if (c >= n) {
                columns[1] = c - n;
                probs[1] = leaves_[k] * coins_.price();     // an advance
                return 2;
            }
        }
        if (!tree_) {
            const Line &column = this->column(k);
            for (int32_t at = 0; at < column.size; ++at) {
                const int32_t j = column.ids[at];
                if (j == kStart) continue;
                columns[size] = last + j;
                probs[size++] = exits_[j] * column.counts[at];
            }
        }
        for (int32_t j = 0; j < width; ++j) columns[size + j] = last + j;
        probs += size;
        if (tree_) {
            tree_->fill_column(tree_->place(t), is_served(k) ? k : kNew, probs);
            if (adds_coins()) for (int32_t j = 0; j < n; ++j) probs[j] *= leaves_[j];
        } else {
            const double a = new_table(k);
            for (int32_t j = 0; j < width; ++j) probs[j] = exits_[j] * a;
            probs[kStart] = 0.0;
        }
        return size + width;
    }

  private:
    // p of the successor and of its restaurants after i -> x, which may have opened a table at the
    // top and come to the restaurant that both share.
    void note_kind() {
        is_plain_ = !coins_.exist() && !tree_;
        has_self_weight_ = has_coins_of_steps() && !tree_;
        coins_.touch();
    }
    bool has_coins_of_steps() const { return coins_.exist() && !are_staged(); }
    // Whether the passes over the draws are without the coins.
    bool adds_coins() const { return coins_.exist() && !has_self_weight_; }
    static void take_larger(double value, int32_t column, double *most, int32_t *argmax) {
        if (!(value > *most)) return;
        *most = value;
        *argmax = column;
    }
    // What stages and labels say of the step from j to k.
    SKIHMM_NOINLINE double add_staged(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                      int32_t *hint) {
        const Coins::Kind kind = coins_.kind(t, j, k);
        if (kind == Coins::Kind::kDraw) {
            const double left = leave(j);
            return left * add_customer(t, j, k, g, hint);  // planted: draw after a stage
        }
        const double p = inner_prob(kind, k);  // planted: stage of a step
        coins_.count(kind, k, 1);
        return p;
    }
    SKIHMM_NOINLINE double remove_staged(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                         int32_t *hint) {
        const Coins::Kind kind = coins_.kind(t, j, k);
        if (kind == Coins::Kind::kDraw) {
            const double p = remove_customer(t, j, k, g, hint);
            return leave(j) * p;
        }
        coins_.count(kind, k, -1);
        return inner_prob(kind, j);
    }
    // A draw by a customer, counted for the coin if that has no other way to know.
    double add_customer(int64_t t, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        coins_.touch();
        if (!tree_) return Draws::add_draw(t, j, k, g, hint);
        if (coins_.exist()) coins_.count(Coins::Kind::kDraw, j, 1);
        return tree_->add(tree_->place(t), j, k, g, hint);
    }
    double remove_customer(int64_t t, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        coins_.touch();
        if (!tree_) return Draws::remove_draw(t, j, k, g, hint);
        if (coins_.exist()) coins_.count(Coins::Kind::kDraw, j, -1);
        return tree_->remove(tree_->place(t), j, k, g, hint);
    }
    // Of a stay of k or of an advance.
    double inner_prob(Coins::Kind kind, int32_t k) const {
        return kind == Coins::Kind::kStay ? coins_.stay(k, draws()[k])
                                          : coins_.leave(k, draws()[k]);
    }
    // The weight of a row over that of its draws, if there are coins of steps.
    SKIHMM_NOINLINE double weight_of_row(int32_t j, int32_t change) const {
        if (j == kStart) return 1.0;
        return (1.0 + coins_.odds(j, row_customers[j] + change)) * coins_.price();
    }
    double new_table_of(int32_t o) const { return o < 0 ? 0.0 : new_table(o); }
    // p(i -> i by a stay, o | i), and by a draw with weight n; a: new table of o then.
    double stay_part(int32_t i, int32_t o, double a) const {
        return stay(i) * next(i, o, 1, 0, a);  // planted: two stays
    }
    double draw_part(int32_t i, int32_t o, double n, double a) const {
        return (1.0 - stay(i)) * coins_.escape() * n / Draws::total(i) * next(i, o, 0, 1, a);
    }
    double next(int32_t i, int32_t o, int32_t stays, int32_t draws, double a) const {
        if (o < 0) return 1.0;
        const double w = coins_.stay(i, row_customers[i] + draws, stays),
                     n = count(i, o) + (i == o ? draws : 0);
        // planted: follower of a step
        return (i == o ? w : 0.0)
               + (1.0 - w) * coins_.escape() * dish_weight(n, a) / Draws::total(i, draws);
    }
    // The same of step t in the tree, with coins of one stage: a stay of i, and a draw of k after
    // i that has probability p, and with o after it and_o in the tree.
    double stay_part(int64_t t, int32_t i, int32_t o) const {
        if (o < 0) return stay(i);
        const double w = coins_.stay(i, draws()[i], 1);
        const double p = tree_->prob(tree_->place(t + 1), i, o);
        return stay(i) * ((i == o ? w : 0.0) + (1.0 - w) * coins_.escape() * p);
    }
    double draw_part(int32_t i, int32_t k, int32_t o, double p, double and_o) const {
        if (o < 0) return leave(i) * p;
        const double w = coins_.stay(k, draws()[k] + (k == i));
        // planted: follower in a tree
        return leave(i) * ((k == o ? w * p : 0.0) + (1.0 - w) * coins_.escape() * and_o);
    }
    // Of the weights of step t in the tree; see fill_step.
    void add_coins(int64_t t, int32_t i, int32_t o, bool after, double *weights,
                   double *stays) const {
        const ContextPlace at = tree_->place(t);
        for (int32_t k = 0; k < n_slots(); ++k) {
            if (k == i || k == o || k == kStart) continue;
            weights[k] = draw_part(i, k, o, weights[k], weights[k]);
            stays[k] = draw_part(i, k, o, stays[k], stays[k]);
        }
        for (const int32_t k : {i, o}) {
            if (k >= kFirst && !after) {
                weights[k] = prob(t, i, k) * (o < 0 ? 1.0 : prob(t + 1, k, o));
            } else if (k >= kFirst) {
                const double stayed = k == i ? stay_part(t, i, o) : 0.0;
                weights[k] = stayed + draw_part(i, k, o, tree_->prob(at, i, k), weights[k]);
                stays[k] = stayed + draw_part(i, k, o, tree_->join_prob(at, i, k), stays[k]);
            }
            if (i == o) break;
        }
    }
    // omega and the concentration of the states' restaurants, which are one number, given their
    // customers and tables and the coins, by slice sampling.
    double draw_tied(const std::vector<int32_t> &customers, int64_t n_tables, bitgen_t *g) {
        const double reach = std::log(kMostConcentration);
        coins_.omega = std::exp(draw_by_slice(
            g, std::log(coins_.omega), -reach, reach, [&](double log_alpha) {
                const double a = std::exp(log_alpha);
                double lp = (prior_shape_ + n_tables) * log_alpha - prior_rate_ * a;
                for (const int32_t n : customers) lp -= log_rising(a, n);
                return lp + coins_.log_joint(draws(), coins_.kappa, a);
            }));
        return coins_.omega;
    }
    void draw_all_concentrations(bitgen_t *g) {
        if (!tree_ && !is_tied_) return Draws::draw_hyperparameters(g);
        double lower = alpha;
        if (tree_) {
            const int32_t own = tree_->shape.n_before + 1, tied = is_tied_ ? own : 0;
            if (is_tied_)
                tree_->set_alpha(own, draw_tied(tree_->customers(own), tree_->count_tables(own),
                                                g));
            tree_->draw_concentrations(prior_shape_, prior_rate_, tied, g);
            lower = alpha;
        } else {
            lower = draw_tied(row_customers, base.n_tables, g);
        }
        ConcentrationPosterior top(prior_shape_, prior_rate_);
        top.count_root(base, g);
        set_concentrations(lower, top.draw(g));
    }

    // ---- contexts

    Record record_tree(const std::vector<int32_t> &labels) const {
        Record out;
        out.n_states = labels[kStart];
        out.hyperparameters = hyperparameters();
        out.contexts = tree_->shape;
        out.seating = tree_->record(1, labels);
        for (int32_t d = 2; d <= tree_->shape.depth(); ++d)
            out.levels.push_back(tree_->record(d, labels));
        return out;
    }
    void load_tree(const Record &record, int32_t n_slots) {
        set_hyperparameters(record.hyperparameters);
        tree_->load(1, record.seating, record.n_states, n_slots);
        tree_->resize(n_slots);
        for (int32_t d = 2; d <= tree_->shape.depth(); ++d)
            tree_->load(d, record.levels[d - 2], record.n_states, n_slots);
    }
    // scratch_: of the weights of columns those of a draw, by slot.
    void weigh_draws(const double *weights, int32_t width) const {
        const int32_t n = n_slots(), last = n_columns() - n;
        read_coins();
        scratch_.resize(n, 0.0);
        for (int32_t k = 0; k < width; ++k) scratch_[k] = weights[last + k] * leaves_[k];
        scratch_[kStart] = weights[kStart];
    }
    // Probabilities of coins, by slot, if they have changed: to stay, to leave, and the latter
    // over the total of the draws.
    void read_coins() const {
        const size_t n = n_slots();
        if (!coins_.take_changed() && stays_.size() == n) return;
        stays_.resize(n);
        leaves_.resize(n);
        exits_.resize(n);
        for (size_t k = 0; k < n; ++k) {
            stays_[k] = stay(static_cast<int32_t>(k));
            leaves_[k] = leave(static_cast<int32_t>(k));
            if (!tree_) exits_[k] = leaves_[k] / Draws::total(static_cast<int32_t>(k));
        }
    }

    bool is_plain_ = true;          // neither coins nor contexts
    bool has_self_weight_ = false;  // coins of one stage
    bool is_tied_ = false;
    Coins coins_;
    std::unique_ptr<ContextTree> tree_;
    mutable std::vector<double> scratch_, one_;
    mutable std::vector<double> stays_, leaves_, exits_;    // of read_coins
};

}  // namespace skihmm
