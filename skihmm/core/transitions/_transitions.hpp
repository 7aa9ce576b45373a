// Transitions of a chain: their law (_transition_law.hpp), with the posterior draw of its
// hyperparameters, and records.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "_concentration.hpp"
#include "_transition_law.hpp"
#include "_transitions_record.hpp"

namespace skihmm {

class HCRPTransitions : public TransitionLaw {
  public:
    // ---- hyperparameters

    // In the order of visit_hyperparameters: the concentration of the restaurants of states comes
    // first, the concentrations of the columns of contexts come last.
    std::vector<double> hyperparameters() const {
        std::vector<double> values{alpha_of(shape().state_depth()), base.gamma};
        for (int32_t d = 1; d <= shape().depth(); ++d)
            if (d != shape().state_depth()) values.push_back(alpha_of(d));
        return values;
    }
    void set_hyperparameters(const std::vector<double> &values) {
        size_t at = 2;
        base.set_gamma(values[1]);
        for (int32_t d = 1; d <= shape().depth(); ++d)
            set_alpha_of(d, d == shape().state_depth() ? values[0] : values[at++]);
    }
    // These, and the hyperparameters of coins.
    void write_hyperparameters(const Archive &archive) const {
        std::vector<double> values = hyperparameters();
        CoinsRecord coins;
        coins_.write_prior(&coins);
        visit_hyperparameters(archive, &values, &coins, shape().n_columns());
    }
    // Gamma(shape, rate) is the prior of all concentrations; without this call they are fixed.
    void set_prior(double shape, double rate) {
        prior_shape_ = shape;
        prior_rate_ = rate;
    }
    void draw_hyperparameters(bitgen_t *g) {
        if (prior_shape_ > 0.0) draw_all_concentrations(g);
        coins_.draw_hyperparameters(draws(), g);
        coins_.touch();
    }
    double log_joint(const std::vector<int32_t> &labels, const std::vector<uint8_t> &first) const {
        const double lp = tree_ ? tree_->log_joint() : Restaurants::log_joint();
        if (!coins_.exist()) return lp;
        return lp + coins_.log_joint(draws()) - log_share_of_stays(labels, first);
    }

    // With inputs: log of the probability of the stays among the self-transitions, given labels.
    // The joint probability divided by it is the sum over all stays; without inputs it is a number
    // of ways (log_stays).  With contexts the posterior draw's stays remain.
    double log_share_of_stays(const std::vector<int32_t> &labels,
                              const std::vector<uint8_t> &first) const {
        double lp = 0.0, stayed, left;
        if (!has_inputs() || has_given_stays()) return lp;
        for (size_t t = 1; t < labels.size(); ++t) {
            const int32_t k = labels[t];
            if (first[t] || labels[t - 1] != k) continue;
            coins_.inputs.integrate(t, k, &stayed, &left);
            left *= coins_.escape() * Restaurants::prob(k, k);  // planted: share of given stays
            lp += std::log(std::max((coins_.stayed(t) ? stayed : left) / (stayed + left), 1e-300));
        }
        return lp;
    }

    // ---- records and size

    // Slot k is the state labels[k], or -1; kStart has the last label.
    TransitionsRecord record(const std::vector<int32_t> &labels) const {
        TransitionsRecord out;
        out.n_states = labels[kStart];
        out.hyperparameters = hyperparameters();
        out.contexts = shape();
        for (int32_t d = 1; d <= shape().depth(); ++d)
            out.levels.push_back(shape().with_labels(
                of_level(d, [](const auto &s) { return s.record(); }), d, labels, &labels));
        out.coins = coins_.record(labels, has_contexts());
        return out;
    }
    // Replace everything by a record that has been checked: state k has the slot kFirst + k.
    void load(const TransitionsRecord &record, int32_t n_slots) {
        ContextShape::Levels levels = record.levels;
        shape().to_slots(&levels, record.n_states);
        for (SeatingRecord &level : levels)
            for (int32_t &dish : level.dishes) dish += kFirst;
        set_hyperparameters(record.hyperparameters);
        coins_.load_prior(record.coins);
        note_kind();
        if (tree_) {
            // The plain restaurants stay empty and lend their root to the tree.
            Restaurants::resize(n_slots, n_slots);
            tree_->load(levels, n_slots);
        } else {
            Restaurants::load(levels[0], n_slots, n_slots);
        }
        coins_.resize(n_slots);
        coins_.load(record.coins);
    }
    // With inputs: every step counts for the coin of the label before it, which is before(t).
    template <class Before> void recount_coins(Before before) {
        if (has_inputs()) coins_.recount(before);
    }
    void draw_prior_weights(bitgen_t *g) {
        if (has_inputs()) coins_.inputs.draw_prior_weights(g);
    }
    // Refuse the checked record of another recipe, or of another path, whose step t with label
    // labels[t] follows the label before[t].
    void check_path(const TransitionsRecord &record, const std::vector<int32_t> &before,
                    const std::vector<int32_t> &labels) const {
        if (record.hyperparameters.size() != hyperparameters().size()
            || !coins_.is_like(record.coins))
            refuse("transitions", "the record is that of another recipe");
        if (!(shape() == record.contexts))
            refuse("transitions", "the contexts are those of other data");
        if (record.coins.weights.size() != coins_.inputs.weights().size())
            refuse("transitions", std::to_string(record.coins.weights.size())
                                  + " weights of stays for "
                                  + std::to_string(coins_.inputs.weights().size()) + " steps");
        record.check_path(tree_ ? tree_->places() : std::vector<ContextPlace>(), before, labels);
    }
    void set_steps(int64_t n_steps) {
        coins_.set_steps(coins_.exist() ? n_steps : 0);
        if (has_inputs() && coins_.inputs.n_steps() != n_steps)
            refuse("transitions", std::to_string(coins_.inputs.n_steps()) + " rows of inputs for "
                                  + std::to_string(n_steps) + " steps");
        if (tree_ && static_cast<int64_t>(tree_->places().size()) != n_steps)
            refuse("transitions", std::to_string(tree_->places().size()) + " contexts for "
                                  + std::to_string(n_steps) + " steps");
    }
    void resize(int32_t n_slots) {
        Restaurants::resize(n_slots, n_slots);
        if (tree_) tree_->resize(n_slots, n_slots);
        coins_.resize(n_slots);
    }
    void clear() {
        Restaurants::clear();
        if (tree_) tree_->clear();
        coins_.clear();
    }
    size_t n_bytes() const {
        return (tree_ ? tree_->n_bytes() : Restaurants::n_bytes()) + coins_.flags().size()
               + coins_.inputs.n_bytes();
    }
    const char *check() const {
        if (has_inputs() && !coins_.inputs.is_recounted())
            return "what coins keep differs from a recount";
        return tree_ ? tree_->check() : Restaurants::check();
    }

  private:
    double alpha_of(int32_t d) const { return tree_ ? tree_->alpha(d) : alpha; }
    void set_alpha_of(int32_t d, double value) {
        if (tree_) tree_->set_alpha(d, value);
        else set_alpha(value);
    }
    void draw_all_concentrations(bitgen_t *g) {
        for (int32_t d = 1; d <= shape().depth(); ++d) {
            ConcentrationPosterior posterior(prior_shape_, prior_rate_);
            of_level(d, [&](const auto &s) { posterior.count_rows(s, g); });
            set_alpha_of(d, posterior.draw(g));
        }
        ConcentrationPosterior top(prior_shape_, prior_rate_);
        top.count_root(base, g);
        set_concentrations(alpha, top.draw(g));
    }

    double prior_shape_ = 0.0, prior_rate_ = 0.0;   // of concentrations; none if 0
};

}  // namespace skihmm
