// The law of the label after restaurant j, as kernels see it.
//
// Restaurants are plain (_plain_restaurants.hpp) or, with contexts, a tree (_contexts.hpp), and
// have one root.  In front of them there may be a coin for every state (_coins.hpp): with n_j
// draws in restaurant j
//
//     p(k | j) = stay_j [j = k] + leave_j (n_jk + a_k) / (n_j + alpha),  leave_j = 1 - stay_j.
//
// With contexts the law depends on the step.  A state has one coin in front of its restaurants of
// all contexts.  If coins have inputs (_input_coins.hpp) the law depends on the step too, and stay_j
// and leave_j are factors whose sum is at most one.
//
// Without contexts and inputs kernels may take the law apart:
//
//     p(k | j) = (n_jk + [j = k] s_k) c_j + smooth_j mass(k),
//     c_j = 1/total(j),   smooth_j = scale() c_j,
//
// with a self_weight s_k.  Otherwise kernels use only the functions whose first parameter is a
// step.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "_coins.hpp"
#include "_contexts.hpp"
#include "_plain_restaurants.hpp"

namespace skihmm {

class TransitionLaw : public PlainRestaurants {
  public:
    // ---- contexts; set before steps and labels

    bool has_contexts() const { return tree_ != nullptr; }
    // Whether the law depends on the step.
    bool varies_by_step() const { return has_contexts() || has_inputs(); }
    const ContextTree &contexts() const { return *tree_; }
    const ContextShape &shape() const { return tree_ ? tree_->shape : no_contexts_; }
    void set_contexts(const ContextShape &shape) {
        tree_ = std::make_unique<ContextTree>(&base, shape);
        note_kind();
    }
    void set_places(std::vector<ContextPlace> places) { tree_->set_places(std::move(places)); }
    // Result of `use` on the restaurants of depth d.
    template <class Use> auto of_level(int32_t d, Use use) const {
        return tree_ ? use(tree_->level(d)) : use(static_cast<const Restaurants &>(*this));
    }
    // Tables of all depths but the first.
    int64_t count_deep_tables() const { return tree_ ? tree_->count_deep_tables() : 0; }

    // ---- coins

    const Coins &coins() const { return coins_; }
    // Whether coins have inputs; inputs of all steps come afterwards.
    bool has_inputs() const { return coins_.has_inputs; }
    void set_inputs(int32_t n_inputs) {
        coins_.set_inputs(n_inputs);
        note_kind();
    }
    void set_input_rows(std::vector<double> rows) { coins_.inputs.set_rows(std::move(rows)); }
    // By the options of the prior of staying.
    void set_stays(const Archive &options) {
        coins_.prior = StayPrior(options);
        note_kind();
    }
    // Nats per draw after a state, if there are coins (see _coins.hpp).
    void set_switch_penalty(double nats) { coins_.set_penalty(nats); }
    // ---- the law by parts, for kernels without contexts

    // Whether self_weight is ever positive (with inputs these are the weights of draws alone), and
    // whether the restaurants are all that there is.
    SKIHMM_INLINE bool has_self_weight() const { return has_self_weight_; }
    SKIHMM_INLINE bool is_plain() const { return is_plain_; }
    SKIHMM_INLINE double total(int32_t j, int32_t change = 0) const {
        const double all = Restaurants::total(j, change);
        return SKIHMM_LIKELY(!has_self_weight()) ? all : all * weight_of_row(j, change);
    }
    // The weight of k -> k besides the customers'; 0 of kStart.
    double self_weight(int32_t k) const {
        return SKIHMM_LIKELY(!has_self_weight()) || k == kStart
            ? 0.0 : Restaurants::total(k) * coins_.odds(k, row_customers[k]) * coins_.price();
    }
    // total(j) minus the weights after j, where its probabilities sum to less than one.
    double lost_weight(int32_t j) const {
        return j == kStart ? 0.0 : Restaurants::total(j) * (coins_.price() - 1.0);
    }
    // The sums of a restaurant's sparse and smooth parts, times total(j).
    double sparse_weight(int32_t j) const { return with_self(row_customers[j], j, j); }
    double smooth_weight() const { return alpha; }
    // The sparse part of p(k | j), times total(j); `hint` as for count.
    double pair_weight(int32_t j, int32_t k, int32_t hint = -1) const {
        return with_self(count(j, k, hint), j, k);
    }
    // The weight of a new table of the successor if the transition into the step opens a table,
    // of the successor's label or of another label.
    double successor_table(const StepView &view, bool is_repeated) const {
        const double opened = table_scale_after(alpha, view.scale);
        return opened * (is_repeated ? view.m_o + 1 : view.mass_o);
    }

    // ---- probabilities of the labels of step t, with its context

    // The probabilities (factors, with inputs) that step t stays in k, and that it leaves it; 0 and
    // 1 for kStart.  They are without the penalty.
    SKIHMM_INLINE void look(int64_t t, int32_t k, double *stay, double *leave) const {
        *stay = 0.0;
        *leave = 1.0;
        // planted: stay probability
        if (k != kStart) coins_.look(t, k, draws()[k], stay, leave);
    }
    double escape_of(int32_t j) const { return j == kStart ? 1.0 : coins_.escape(); }
    // By slot.
    void fill_coins(int64_t t, int32_t n, double *__restrict stays,
                    double *__restrict leaves) const {
        if (has_inputs()) coins_.inputs.fill(t, n, stays, leaves);
        else for (int32_t k = 0; k < n; ++k) look(t, k, &stays[k], &leaves[k]);
        stays[kStart] = 0.0;
        const double escape = coins_.escape();
        for (int32_t k = 0; k < n; ++k) leaves[k] *= escape;
        leaves[kStart] = 1.0;
    }
    double stay(int64_t t, int32_t k) const {
        double stay, leave;
        look(t, k, &stay, &leave);
        return stay;
    }
    double leave(int64_t t, int32_t j) const {
        double stay, leave;
        look(t, j, &stay, &leave);
        return leave * escape_of(j);
    }
    // A draw of a probability of `look`, which has its mean, without inputs.
    double draw_coin(int32_t k, bool of_stay, bitgen_t *g) const {
        return coins_.draw(k, draws()[k], of_stay, g);
    }
    // By slot: the number of draws after a state, if there are coins.
    // planted: draws after states
    const std::vector<int32_t> &draws() const { return tree_ ? coins_.draws() : row_customers; }
    double prob(int64_t t, int32_t j, int32_t k) const {
        if (SKIHMM_LIKELY(is_plain())) return Restaurants::prob(j, k);
        const double p = draw_prob(t, j, k);
        if (!coins_.exist()) return p;
        double stayed, left;
        look(t, j, &stayed, &left);
        // planted: probability with a stay
        return (j == k ? stayed : 0.0) + left * escape_of(j) * p;
    }
    // The probability for a step without a context.
    double prob(int32_t j, int32_t k) const { return prob(-1, j, k); }
    // log of the probability of all that is counted, a path of labels with their stays, by the
    // probabilities that the counts, of a draw, give.
    double log_prob_of_counts() const {
        const std::vector<int32_t> &n_draws = draws();
        double lp = tree_ ? tree_->log_prob_of_draws() : log_prob_of_draws();
        if (has_inputs()) lp += coins_.inputs.log_ways();
        for (int32_t k = kFirst; k < n_slots(); ++k) {
            lp += n_draws[k] * std::log(coins_.escape());
            if (has_inputs()) continue;
            double stayed, left;
            look(-1, k, &stayed, &left);
            lp += coins_.stays()[k] * std::log(stayed) + n_draws[k] * std::log(left);
        }
        return lp;
    }
    // Whether a path is counted with its stays, and not summed over them: with contexts
    // the posterior draw's stays remain.
    bool has_given_stays() const { return coins_.exist() && tree_; }
    // The sum of the weights of prob, in units of customers: how little a further row counts.  With
    // inputs, as if there were many customers.
    double total_at(int64_t t, int32_t j) const {
        if (has_inputs()) return kMany;
        if (!tree_) return total(j);
        const double size = tree_->total(tree_->place(t), j);
        return coins_.exist() ? size / leave(t, j) : size;
    }
    // The probability that a new state stays, given that it is the next state too.
    double self_share_at(int64_t t) const {
        return coins_.exist() ? stay(t, kNew) / prob(t, kNew, kNew) : 0.0;
    }
    // Probability that each of the steps t, t + by, ... keeps state k, given that the earlier ones
    // did.
    void fill_along(int64_t t, int64_t by, int32_t k, std::vector<double> *probs) const {
        std::vector<double> leaves(probs->size());
        coins_.inputs.fill_along(t, by, k, probs->data(), &leaves);
        for (size_t i = 0; i < leaves.size(); ++i, t += by)
            (*probs)[i] += leaves[i] * coins_.escape() * draw_prob(t, k, k);
    }
    // After a draw of k after i, made for step t: the weight of a stay in the successor's entry,
    // over the weights of a stay and of a draw.
    double repeat_prob(int64_t t, int32_t i, int32_t k, int32_t o) const {
        if (!coins_.exist() || k != o) return 0.0;
        double stayed, left;
        look_after(t, i, k, false, &stayed, &left);
        return stayed / (stayed + left * coins_.escape());
    }

    // ---- changes: the draw of k after label j, made for step t (see Restaurants)

    SKIHMM_INLINE double add_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                  int32_t *hint) {
        if (SKIHMM_LIKELY(is_plain())) return add(j, k, g, hint);
        if (!coins_.exist()) return add_customer(t, j, k, g, hint);
        const double p = prob(t, j, k);
        if (j == k && uniform(g) * p < stay(t, k)) coins_.toggle(t, k);  // planted: share of stays
        else add_customer(t, j, k, g, hint);
        return p;
    }
    // add_draw where it has been drawn already, together with k and given that the next draw is o
    // (-1: none), whether the draw opens a table.
    SKIHMM_INLINE void add_draw(int64_t t, int32_t j, int32_t k, bool opens, int32_t o,
                                bitgen_t *g, int32_t *hint) {
        if (SKIHMM_LIKELY(is_plain())) return add(j, k, opens, g, hint);
        if (j == k && !opens && coins_.exist()) {
            const double stayed = stay_part(t, k, o), drawn = joining_part(t, k, o);
            if (uniform(g) * (stayed + drawn) < stayed) return coins_.toggle(t, k);
        }
        const double repeats = tree_ ? repeat_prob(t, j, k, o) : 0.0;
        count_draw(t, j, 1);
        if (!tree_) return add(j, k, opens, g, hint);
        const ContextPlace at = tree_->place(t);
        const int32_t n = tree_->draw_opened(at, tree_->place(t + 1), j, k, o, opens, g, repeats);
        tree_->add_at(at, j, k, n, g, hint);
    }
    SKIHMM_INLINE double remove_draw(int64_t t, int32_t j, int32_t k, bitgen_t *g,
                                     int32_t *hint) {
        if (SKIHMM_LIKELY(is_plain())) return remove(j, k, g, hint);
        if (!coins_.exist()) return remove_customer(t, j, k, g, hint);
        if (coins_.stayed(t)) coins_.toggle(t, k);
        else remove_customer(t, j, k, g, hint);
        return prob(t, j, k);
    }
    size_t n_cells() const { return tree_ ? tree_->n_cells() : Restaurants::n_cells(); }
    void prefetch_cell(int32_t hint) const {
        if (SKIHMM_LIKELY(!tree_)) Restaurants::prefetch_cell(hint);
        else tree_->prefetch_cell(hint);
    }
    void prefetch_lists(int32_t hint) const {
        if (SKIHMM_LIKELY(!tree_)) Restaurants::prefetch_lists(hint);
        else tree_->prefetch_lists(hint);
    }
    SKIHMM_INLINE void commit() {
        if (SKIHMM_LIKELY(is_plain_)) return Restaurants::commit();
        if (tree_) tree_->commit();
        else Restaurants::commit();
        coins_.commit();
    }
    // Equal labels may have other counts: a stay in the place of a draw.
    SKIHMM_INLINE void commit_same() {
        if (SKIHMM_UNLIKELY(!is_plain())) commit();  // planted: commit of the same
        else Restaurants::commit_same();
    }
    void rollback() {
        if (tree_) tree_->rollback();
        else Restaurants::rollback();
        coins_.rollback();  // planted: rollback of stays
    }

    // ---- one removed step

    // Complete a view that has the labels, when the customers have been removed.
    void fill_view(int32_t hint_in, int32_t hint_out, StepView *view) const {
        const bool has_next = view->o >= 0;
        view->m_x = tables_of(view->x);
        view->m_o = has_next ? tables_of(view->o) : 0;
        if (SKIHMM_UNLIKELY(has_contexts())) return;
        view->n_in = count(view->i, view->x, hint_in);
        view->n_out = has_next ? count(view->x, view->o, hint_out) : 0;
        view->total_i = total(view->i);
        view->total_x = total(view->x);
        view->mass_o = has_next ? mass(view->o) : 0.0;
        view->scale = scale();
    }
    // Without contexts: weights[k] = p(k | i) p(o | k), times total(i), of every label when the
    // customers have been removed; of a ghost too, 0 of other labels that kNew stands for. `after`:
    // o is drawn after the customer of k has come; stays[k] is the part in which this customer
    // opens no table.  `in` and `out` are zero, before and afterwards.  O(K).
    //
    // A self-transition has three cases: a stay, a draw that joins a table and a draw that opens a
    // table.  Each leaves the coin and the restaurant of i in another state.
    void fill_step(int64_t t, const StepView &view, bool after, double *weights, double *stays,
                   double *in, double *out) const {
        const int32_t i = view.i, o = view.o, n = n_slots();
        const double c = view.scale;
        for (int32_t k = 0; k < n; ++k) weights[k] = c * counted_mass(k);
        weights[kStart] = 0.0;
        if (view.is_ghost()) weights[o] = c * mass(kNew);  // planted: successor without a table
        row(i).scatter(in);
        in[i] = with_self(in[i], i, i);
        if (o >= 0) {
            const double b = new_table_weight(c, view.mass_o);
            column(o).scatter(out);
            out[o] = with_self(out[o], o, o);
            if (after) out[i] += i == o;
            const double others = successor_table(view, false),
                         repeated = successor_table(view, true);
            for (int32_t k = 0; k < n; ++k) {
                const double opened_b = !after ? b : k == o ? repeated : others;
                const double size = total(k) + (after && k == i);
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
        if (!has_self_weight() || !after || i == kStart) return;  // planted: stays of a step
        const double opened = o < 0 ? 0.0 : successor_table(view, o == i);
        stays[i] = total(i) * (stay_part(t, i, o) + joining_part(t, i, o));
        weights[i] = stays[i] + total(i) * plain_part(t, i, o, new_table(i), opened);
    }
    // fill_step in a tree or with inputs, if there are coins, from weights of the draws alone, not
    // scaled.  `leaves`: fill_coins of step t + 1, if there is a successor.
    void add_coins(int64_t t, int32_t i, int32_t o, bool after, const double *leaves,
                   double *weights, double *stays) const {
        if (!coins_.exist()) return;
        const double left = leave(t, i);
        for (int32_t k = 0; k < n_slots(); ++k) {
            if (k == i || k == o || k == kStart) continue;
            const double by = o < 0 ? left : left * leaves[k];
            weights[k] *= by;
            stays[k] *= by;
        }
        for (const int32_t k : {i, o}) {
            if (k >= kFirst && !after) {
                weights[k] = prob(t, i, k) * (o < 0 ? 1.0 : prob(t + 1, k, o));
            } else if (k >= kFirst) {
                const double stayed = k == i ? stay_part(t, i, o) : 0.0;
                weights[k] = stayed + draw_part(t, i, k, o, draw_prob(t, i, k), weights[k]);
                stays[k] = stayed + draw_part(t, i, k, o, join_prob(t, i, k), stays[k]);
            }
            if (i == o) break;
        }
    }

    // ---- passes of a draw alone, by slots, and rows of states in the long run

    void fill_draws(int64_t t, int32_t j, double *out) const {
        if (tree_) tree_->fill_row(tree_->place(t), j, out);
        else PlainRestaurants::fill_row(j, out);
    }
    void push_draws(int64_t t, const double *weights, double *out) const {
        if (tree_) tree_->push(tree_->place(t), weights, out);
        else push(weights, out);
    }
    void pull_draws(int64_t t, const double *values, double *out) const {
        if (tree_) tree_->pull(tree_->place(t), values, out);
        else pull(values, out);
    }
    void push_max_of_draws(int64_t t, const double *weights, double *out,
                           int32_t *argmax_out) const {
        if (tree_) tree_->push_max(tree_->place(t), weights, out, argmax_out);
        else push_max(weights, out, argmax_out);
    }
    // (With a penalty, a row sums to less than one.)
    void fill_row(int64_t t, int32_t j, double *out) const {
        fill_draws(t, j, out);
        if (!coins_.exist() || j == kStart) return;
        const double left = leave(t, j);
        for (int32_t k = 0; k < n_slots(); ++k) out[k] *= left;
        out[j] += stay(t, j);
    }

  protected:
    void note_kind() {
        is_plain_ = !coins_.exist() && !tree_;
        has_self_weight_ = coins_.exist() && !tree_ && !has_inputs();
        coins_.touch();
    }

    bool is_plain_ = true;          // neither coins nor contexts
    bool has_self_weight_ = false;
    std::unique_ptr<ContextTree> tree_;
    Coins coins_;

  private:
    static inline const ContextShape no_contexts_;

    // ---- changes

    // A draw by a customer; counted for the coin if the coin does not see customers.
    double add_customer(int64_t t, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        coins_.touch();
        count_draw(t, j, 1);
        if (!tree_) return add(j, k, g, hint);
        return tree_->add(tree_->place(t), j, k, g, hint);
    }
    double remove_customer(int64_t t, int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
        coins_.touch();
        count_draw(t, j, -1);
        if (!tree_) return remove(j, k, g, hint);
        return tree_->remove(tree_->place(t), j, k, g, hint);
    }
    void count_draw(int64_t t, int32_t j, int32_t by) {
        if (tree_ ? coins_.exist() : has_inputs()) coins_.count_draw(t, j, by);
    }

    // ---- all steps

    double log_prob_of_draws() const {
        double lp = 0.0;
        for (int32_t j = kStart; j < n_slots(); ++j)
            for (int32_t at = 0; at < row(j).size; ++at)
                lp += row(j).counts[at] * std::log(Restaurants::prob(j, row(j).ids[at]));
        return lp;
    }

    // ---- one step

    double with_self(double weight, int32_t j, int32_t k) const {
        if (SKIHMM_UNLIKELY(has_self_weight())) weight += j == k ? self_weight(k) : 0.0;
        return weight;
    }
    // The weight of a row over the weight of its draws, if there are coins of steps.
    SKIHMM_NOINLINE double weight_of_row(int32_t j, int32_t change) const {
        if (j == kStart) return 1.0;
        return (1.0 + coins_.odds(j, row_customers[j] + change)) * coins_.price();
    }
    // The coin of step t + 1, which comes after k, when step t has been entered after i too.
    void look_after(int64_t t, int32_t i, int32_t k, bool stayed, double *stay,
                    double *leave) const {
        if (k == i) coins_.look_after(t, k, stayed, draws()[k], stay, leave);
        else look(t + 1, k, stay, leave);
    }
    // Without the coin.
    double draw_prob(int64_t t, int32_t j, int32_t k) const {
        if (!tree_) return Restaurants::prob(j, k);
        const double p = tree_->prob(tree_->place(t), j, k);  // planted: probability in a tree
        return p;
    }
    // Probability of a draw j -> k that joins an existing table, without the coin.
    double join_prob(int64_t t, int32_t j, int32_t k) const {
        if (!tree_) return count(j, k) / Restaurants::total(j);
        return tree_->join_prob(tree_->place(t), j, k);
    }
    // p(i -> i by a stay, o | i) of step t.
    double stay_part(int64_t t, int32_t i, int32_t o) const {
        if (o < 0) return stay(t, i);
        double again, left;
        look_after(t, i, i, true, &again, &left);
        const double drawn = draw_prob(t + 1, i, o);
        // planted: follower of a step
        const double p = (i == o ? again : 0.0) + left * coins_.escape() * drawn;
        return stay(t, i) * p;  // planted: two stays
    }
    // p(i -> k by a draw, o | i).  In the restaurants alone k has probability p, and k with o after
    // it and_o.
    double draw_part(int64_t t, int32_t i, int32_t k, int32_t o, double p, double and_o) const {
        if (o < 0) return leave(t, i) * p;
        double again, left;
        look_after(t, i, k, false, &again, &left);
        // planted: follower in a tree
        return leave(t, i) * ((k == o ? again * p : 0.0) + left * coins_.escape() * and_o);
    }
    // p(i -> i by a draw that joins an existing table, o | i).
    double joining_part(int64_t t, int32_t i, int32_t o) const {
        if (!tree_) return plain_part(t, i, o, count(i, i), o < 0 ? 0.0 : new_table(o));
        const ContextPlace at = tree_->place(t), next = tree_->place(t + 1);
        // planted: stay or draw
        return draw_part(t, i, i, o, tree_->join_prob(at, i, i),
                         tree_->joining_part(at, next, i, i, o));
    }
    // p(i -> i by a draw of weight n, o | i) without contexts; `a`: new table of o afterwards.
    double plain_part(int64_t t, int32_t i, int32_t o, double n, double a) const {
        const double p = n / Restaurants::total(i);
        if (o < 0) return draw_part(t, i, i, o, p, p);
        return draw_part(t, i, i, o, p, p * dish_weight(count(i, o) + (i == o ? 1.0 : 0.0), a)
                                            / Restaurants::total(i, 1));
    }

    static constexpr double kMany = 1e300;
};

}  // namespace skihmm
