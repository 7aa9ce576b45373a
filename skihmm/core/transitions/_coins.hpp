// Coins of states: whether a step stays in its state, before anything is drawn in a restaurant.
//
// State k stays with a probability of its own, which is integrated out (_stay_prior.hpp), given q_k
// stays and l_k leaves so far.  A leave is a draw in the restaurant of k, which may be k again.
// With contexts the draws of a state are in several restaurants, but it has one coin, and draws are
// counted here too.
//
// A switch penalty of lambda nats multiplies the target of a chain by exp(-lambda) for every draw
// after a state, and so the probability to leave it, wherever it is weighed.  Stays and first steps
// of sequences have no penalty.  The probabilities of the next step then sum to less than one,
// which kernels have to allow for.  The penalty is a potential of the path in a fit: draws, and all
// code that reads them, are without it.
//
// With inputs the probability to stay is a logistic regression on numbers of the step
// (_input_coins.hpp).
//
// A step from k to k may be a stay or a draw, by a flag of every step.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "_coins_record.hpp"
#include "_containers.hpp"
#include "_input_coins.hpp"
#include "_slots.hpp"
#include "_stay_prior.hpp"

namespace skihmm {

class Coins {
  public:
    StayPrior prior;                        // none: there are no coins, or they have inputs
    bool has_inputs = false;

    // Set inputs, as many by step, in the place of the prior, whose mean their prior has.
    void set_inputs(int32_t n_inputs) {
        inputs.set_inputs(n_inputs, prior.log_odds());
        prior = StayPrior();
        has_inputs = true;
    }

    void set_penalty(double nats) {
        penalty_ = nats;
        escape_ = std::exp(-nats);
        price_ = std::exp(nats);
    }
    // exp(-lambda) and its inverse, 1 without a penalty.
    double escape() const { return escape_; }
    double price() const { return price_; }

    SKIHMM_INLINE bool exist() const { return prior.exists() || has_inputs; }
    // The odds of a stay after so many draws.
    double odds(int32_t k, int32_t draws) const {
        double stay, leave;
        prior.weigh(stays_[k], draws, &stay, &leave);
        return stay / leave;
    }
    // A draw of the probability to stay or to leave, after so many draws, without inputs.
    double draw(int32_t k, int32_t draws, bool of_stay, bitgen_t *g) const {
        return prior.draw(stays_[k], draws, of_stay, g);
    }
    // Factors of a stay and a leave, which enter step t after state k: their probabilities,
    // unless there are inputs.
    SKIHMM_INLINE void look(int64_t t, int32_t k, int32_t draws, double *stay,
                            double *leave) const {
        if (SKIHMM_UNLIKELY(has_inputs)) return inputs.look(t, k, stay, leave);
        look_at_counts(k, draws, 0, stay, leave);
    }
    // Stay and leave probabilities of step t + 1, when step t has been entered so after k too.
    void look_after(int64_t t, int32_t k, bool stayed, int32_t draws, double *stay,
                    double *leave) const {
        if (has_inputs) return inputs.look_after(t, k, stayed, stay, leave);
        look_at_counts(k, draws + !stayed, stayed, stay, leave);
    }
    // Stay and leave probabilities after `more` additional stays, without inputs.
    SKIHMM_INLINE void look_at_counts(int32_t k, int32_t leaves, int32_t more, double *stay,
                                      double *leave) const {
        double q, l;
        prior.weigh(stays_[k] + more, leaves, &q, &l);
        // (One division: two take a tenth of an exact step.)
        const double by = 1.0 / (q + l);
        *stay = q * by;
        *leave = l * by;
    }
    bool stayed(int64_t t) const { return flags_[t]; }
    const std::vector<int32_t> &stays() const { return stays_; }
    const std::vector<int32_t> &draws() const { return draws_; }
    const std::vector<uint8_t> &flags() const { return flags_; }
    // Another number after every change.
    int64_t version() const { return version_; }
    void touch() { ++version_; }

    void set_steps(int64_t n_steps) {
        flags_.assign(n_steps, 0);
        if (has_inputs) inputs.set_steps(n_steps);
    }
    void resize(int32_t n_slots) {
        touch();
        stays_.resize(n_slots, 0);
        draws_.resize(n_slots, 0);
        if (has_inputs) inputs.resize(n_slots);
    }
    void clear() {
        touch();
        for (auto *counts : {&stays_, &draws_}) std::fill(counts->begin(), counts->end(), 0);
        std::fill(flags_.begin(), flags_.end(), 0);
        changes_.clear();
        if (has_inputs) inputs.clear();
    }
    void write_prior(CoinsRecord *record) const {
        record->prior = prior;
        if (has_inputs) record->input_prior = inputs.prior();
    }
    // Slot k is the state labels[k], or -1; kStart has the last label.  Draws, if they are
    // counted here, are in the record too.
    CoinsRecord record(const std::vector<int32_t> &labels, bool has_draws) const {
        CoinsRecord out;
        if (!exist()) return out;
        write_prior(&out);
        const int32_t n_states = labels[kStart];
        const auto by_label = [&](const std::vector<int32_t> &counts, int32_t n) {
            std::vector<int32_t> counts_of(n);
            for (size_t k = kStart; k < counts.size(); ++k)
                if (labels[k] >= 0 && labels[k] < n) counts_of[labels[k]] = counts[k];
            return counts_of;
        };
        out.stays = by_label(stays_, n_states);
        if (has_draws) out.draws = by_label(draws_, n_states + 1);
        out.stayed = flags_;
        if (has_inputs) {
            std::vector<int32_t> slots(n_states, kFirst);
            for (size_t k = kFirst; k < labels.size(); ++k)
                if (labels[k] >= 0) slots[labels[k]] = static_cast<int32_t>(k);
            out.numbers = inputs.numbers(slots);
            std::vector<double> leaves;
            out.log_ways = inputs.integrate_steps(&leaves);
            for (const int32_t k : slots) out.leaves.push_back(leaves[k]);
            out.weights = inputs.weights();
        }
        return out;
    }
    // Hyperparameters of a record, of any recipe; before there are slots.
    void load_prior(const CoinsRecord &record) {
        prior.set_hyperparameters(record.prior);
        if (!record.has_inputs()) return;
        if (!has_inputs) set_inputs(record.n_inputs());
        inputs.set_prior(record.input_prior.data());
    }
    // By state, draws with the start's last, and by step (empty for a posterior draw): state k has
    // the slot kFirst + k.
    void load(const CoinsRecord &record) {
        clear();
        std::copy(record.stays.begin(), record.stays.end(), stays_.begin() + kFirst);
        if (!record.draws.empty()) {
            std::copy(record.draws.begin(), record.draws.end() - 1, draws_.begin() + kFirst);
            draws_[kStart] = record.draws.back();
        }
        if (!record.stayed.empty()) flags_ = record.stayed;
        if (has_inputs) inputs.load(record.numbers, record.weights, record.log_ways);
    }
    // Whether a record is that of the same recipe.
    bool is_like(const CoinsRecord &record) const {
        return record.prior.is_like(prior) && record.n_inputs() == inputs.n_inputs();
    }
    // With inputs: every step counts for the coin of the label before it, which is before(t).
    template <class Before> void recount(Before before) {
        inputs.recount([&](int64_t t) {
            const int32_t j = before(t);
            return std::make_pair(j == kStart ? -1 : j, flags_[t] != 0);
        });
    }
    // ---- moves

    // Step t is entered from k by a stay, or no longer.
    void toggle(int64_t t, int32_t k) {
        flip(t, k);
        changes_.push({Change::kFlag, k, static_cast<int32_t>(t)});
        if (has_inputs) book(t, k, true, flags_[t] ? 1 : -1);
    }
    // One draw after k for step t more (+1) or less (-1).
    void count_draw(int64_t t, int32_t k, int32_t by) {
        touch();
        if (has_inputs && k != kStart) book(t, k, false, by);
        draws_[k] += by;
        changes_.push({Change::kDraws, k, by});
    }
    void commit() {
        changes_.clear();
        if (has_inputs) inputs.commit();
    }
    void rollback() {
        touch();
        if (has_inputs) inputs.rollback();
        for (size_t i = changes_.size(); i-- > 0;) {
            const Change &change = changes_[i];
            if (change.what == Change::kFlag) flip(change.last, change.k);
            else draws_[change.k] -= change.last;
        }
        changes_.clear();
    }

    // ---- all stays and leaves, given the number of draws by slot

    // The stays and leaves of every state, for StayPrior.
    auto visitor(const std::vector<int32_t> &draws) const {
        return [&](const auto &visit) {
            for (size_t k = kFirst; k < stays_.size(); ++k)
                visit(stays_[k], static_cast<double>(draws[k]));
        };
    }
    double log_joint(const std::vector<int32_t> &draws) const {
        double lp = has_inputs ? inputs.log_joint() : prior.log_evidence(visitor(draws));
        if (penalty_ > 0.0)
            lp -= penalty_ * std::accumulate(draws.begin() + kFirst, draws.end(), 0.0);
        return lp;
    }
    void draw_hyperparameters(const std::vector<int32_t> &draws, bitgen_t *g) {
        if (has_inputs) inputs.draw(g);
        else prior.draw_hyperparameters(visitor(draws), g);
    }

  private:
    struct Change {
        enum What : int32_t { kFlag, kDraws } what;
        int32_t k;
        int32_t last;                       // the step, or by how much
    };
    void book(int64_t t, int32_t k, bool stayed, int32_t by) {
        if (by > 0) inputs.add(t, k, stayed);
        else inputs.remove(t, k, stayed);
    }
    void flip(int64_t t, int32_t k) {
        touch();
        flags_[t] ^= 1;
        stays_[k] += flags_[t] ? 1 : -1;
    }

    double penalty_ = 0.0, escape_ = 1.0, price_ = 1.0;
    std::vector<int32_t> stays_;            // q_k by slot
    std::vector<int32_t> draws_;            // with contexts only
    std::vector<uint8_t> flags_;            // of stays, by step
    int64_t version_ = 1;
    Stack<Change> changes_;                 // of this move

  public:
    InputCoins inputs;                      // the last, as it is large
};

}  // namespace skihmm
