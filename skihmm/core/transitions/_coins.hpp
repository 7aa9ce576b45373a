// Coins of states: whether a step stays in its state, before anything is drawn in a restaurant.
//
// A state has r stages in a row, r = 1 unless there is a shortest dwell.  State k stays in its
// stage with a probability of its own, which is integrated out (_stay_prior.hpp), given q_k stays
// and l_k leaves so far.  A leave leads to the next stage of k (an advance), and from the last stage
// to a draw in the restaurant of k, which may be k again, and to the first stage of the drawn state.
// So the dwell time is negative binomial, r steps or more, and l_k counts the draws (the customers
// of restaurant k) and the advances.  With contexts the draws of a state are in several restaurants,
// but it has one coin, and draws are counted here too.
//
// A switch penalty of lambda nats multiplies the target of a chain by exp(-lambda) for every draw
// after a state, and so the probability to leave it for a draw, wherever it is weighed.  Stays,
// advances and first steps of sequences have no penalty.  The probabilities of the next step then
// sum to less than one, which kernels have to allow for.  The penalty is a potential of the path in
// a fit: draws, and all code that reads them, are without it.
//
// With inputs the probability to stay is a logistic regression on numbers of the step
// (_input_coins.hpp).
//
// With several stages, labels and stages determine stays, advances and draws.  With one stage a
// step from k to k may be a stay or a draw, by a flag of every step.
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
    enum class Kind { kStay, kAdvance, kDraw };

    StayPrior prior;                        // none: there are no coins, or they have inputs
    bool has_inputs = false;
    int32_t n_stages = 1;

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
    bool are_staged() const { return n_stages > 1; }
    // The odds of a stay after so many draws, if there is one stage.
    double odds(int32_t k, int32_t draws) const {
        double stay, leave;
        prior.weigh(stays_[k], draws, &stay, &leave);
        return stay / leave;
    }
    // A draw of the probability to stay or to leave, after so many draws, without inputs.
    double draw(int32_t k, int32_t draws, bool of_stay, bitgen_t *g) const {
        return prior.draw(stays_[k], advances_[k] + draws, of_stay, g);
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
        prior.weigh(stays_[k] + more, advances_[k] + leaves, &q, &l);
        // (One division: two take a tenth of an exact step.)
        const double by = 1.0 / (q + l);
        *stay = q * by;
        *leave = l * by;
    }
    bool stayed(int64_t t) const { return flags_[t]; }
    int32_t stage(int64_t t) const { return stages_[t]; }
    const std::vector<int32_t> &stays() const { return stays_; }
    const std::vector<int32_t> &advances() const { return advances_; }
    const std::vector<int32_t> &draws() const { return draws_; }
    const std::vector<uint8_t> &flags() const { return flags_; }
    const std::vector<uint8_t> &stages() const { return stages_; }
    // With several stages: whether a run may begin at step t, which begins no sequence, and how
    // label k is entered there after j.
    bool begins_run(int64_t t) const { return stages_[t] == 0 && stages_[t - 1] > 0; }
    Kind kind(int64_t t, int32_t j, int32_t k) const {
        if (j != k || j == kStart || begins_run(t)) return Kind::kDraw;
        return stages_[t] == stages_[t - 1] ? Kind::kStay : Kind::kAdvance;
    }

    // Another number after every change.
    int64_t version() const { return version_; }
    void touch() { ++version_; }

    void set_steps(int64_t n_steps) {
        flags_.assign(are_staged() ? 0 : n_steps, 0);
        stages_.assign(are_staged() ? n_steps : 0, 0);
        if (has_inputs) inputs.set_steps(n_steps);
    }
    void resize(int32_t n_slots) {
        touch();
        stays_.resize(n_slots, 0);
        advances_.resize(n_slots, 0);
        draws_.resize(n_slots, 0);
        if (has_inputs) inputs.resize(n_slots);
    }
    void clear() {
        touch();
        for (auto *counts : {&stays_, &advances_, &draws_})
            std::fill(counts->begin(), counts->end(), 0);
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
        if (!are_staged()) return out;
        out.n_stages = n_stages;
        out.stages = stages_;
        out.advances = by_label(advances_, n_states);
        return out;
    }
    // Hyperparameters of a record, of any recipe; before there are slots.
    void load_prior(const CoinsRecord &record) {
        n_stages = record.n_stages;
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
        std::copy(record.advances.begin(), record.advances.end(), advances_.begin() + kFirst);
        if (!record.draws.empty()) {
            std::copy(record.draws.begin(), record.draws.end() - 1, draws_.begin() + kFirst);
            draws_[kStart] = record.draws.back();
        }
        if (!record.stayed.empty()) flags_ = record.stayed;
        if (!record.stages.empty()) stages_ = record.stages;
        if (has_inputs) inputs.load(record.numbers, record.weights, record.log_ways);
    }
    // Whether a record is that of the same recipe.
    bool is_like(const CoinsRecord &record) const {
        return record.prior.is_like(prior) && record.n_inputs() == inputs.n_inputs()
               && record.n_stages == n_stages;
    }
    // With inputs: every step counts for the coin of the label before it, which is before(t).
    template <class Before> void recount(Before before, const std::vector<int32_t> &labels) {
        inputs.recount([&](int64_t t) {
            const int32_t j = before(t);
            const bool stays = are_staged() ? j != kStart && kind(t, j, labels[t]) == Kind::kStay
                                            : flags_[t] != 0;
            return std::make_pair(j == kStart ? -1 : j, stays);
        });
    }
    // Stages of steps with these labels: all stages of a run are equally long.
    void spread_stages(const int32_t *labels, const std::vector<uint8_t> &first) {
        const int64_t n = static_cast<int64_t>(stages_.size());
        for (int64_t start = 0, stop; start < n; start = stop) {
            for (stop = start + 1; stop < n && !first[stop] && labels[stop] == labels[start];)
                ++stop;
            const int64_t longest = std::max<int64_t>(stop - start, n_stages);
            // A sequence may end within a run.
            for (int64_t t = start; t < stop; ++t)
                stages_[t] = static_cast<uint8_t>((t - start) * n_stages / longest);
        }
    }

    // ---- moves

    // Step t is entered from k by a stay, or no longer.
    void toggle(int64_t t, int32_t k) {
        flip(t, k);
        changes_.push({Change::kFlag, k, static_cast<int32_t>(t)});
        if (has_inputs) book(t, k, true, flags_[t] ? 1 : -1);
    }
    // One transition of k into step t more (+1) or less (-1).
    void count(Kind kind, int64_t t, int32_t k, int32_t by) {
        touch();
        if (has_inputs && k != kStart) book(t, k, kind == Kind::kStay, by);
        counts_of(kind)[k] += by;
        changes_.push({kind == Kind::kStay      ? Change::kStays
                       : kind == Kind::kAdvance ? Change::kAdvances
                                                : Change::kDraws,
                       k, by});
    }
    void set_stage(int64_t t, int32_t stage) {
        changes_.push({Change::kStage, stages_[t], static_cast<int32_t>(t)});
        stages_[t] = static_cast<uint8_t>(stage);
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
            switch (change.what) {
                case Change::kFlag: flip(change.last, change.k); break;
                // planted: rollback of counted stays
                case Change::kStays: stays_[change.k] -= change.last; break;
                // planted: rollback of advances
                case Change::kAdvances: advances_[change.k] -= change.last; break;
                case Change::kDraws: draws_[change.k] -= change.last; break;
                // planted: rollback of stages
                case Change::kStage: stages_[change.last] = static_cast<uint8_t>(change.k);
            }
        }
        changes_.clear();
    }

    // ---- all stays and leaves, given the number of draws by slot

    // The stays and leaves of every state, for StayPrior.
    auto visitor(const std::vector<int32_t> &draws) const {
        return [&](const auto &visit) {
            for (size_t k = kFirst; k < stays_.size(); ++k)
                visit(stays_[k], static_cast<double>(advances_[k]) + draws[k]);
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
        enum What : int32_t { kFlag, kStays, kAdvances, kDraws, kStage } what;
        int32_t k;                          // of a stage: its label before
        int32_t last;                       // the step, or by how much
    };
    void book(int64_t t, int32_t k, bool stayed, int32_t by) {
        if (by > 0) inputs.add(t, k, stayed);
        else inputs.remove(t, k, stayed);
    }
    std::vector<int32_t> &counts_of(Kind kind) {
        return kind == Kind::kStay ? stays_ : kind == Kind::kAdvance ? advances_ : draws_;
    }
    void flip(int64_t t, int32_t k) {
        touch();
        flags_[t] ^= 1;
        stays_[k] += flags_[t] ? 1 : -1;
    }

    double penalty_ = 0.0, escape_ = 1.0, price_ = 1.0;
    std::vector<int32_t> stays_;            // q_k by slot
    std::vector<int32_t> advances_;
    std::vector<int32_t> draws_;            // with contexts only
    std::vector<uint8_t> flags_, stages_;   // by step; of stays if there is one stage
    int64_t version_ = 1;
    Stack<Change> changes_;                 // of this move

  public:
    InputCoins inputs;                      // the last, as it is large
};

}  // namespace skihmm
