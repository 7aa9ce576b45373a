// Coins of particles (core/transitions/_coins.hpp): how a history's next step is entered, by the
// counts of the history.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "_transitions.hpp"

namespace skihmm {

// Of one history.
struct HistoryCoins {
    int32_t stage = 0;                     // draws are made in the last stage
    std::vector<int32_t> stays, advances, draws;    // of a state, if there are coins
    std::vector<double> numbers;           // of all states, if coins have inputs
};

class ParticleCoins {
  public:
    explicit ParticleCoins(const Coins &coins)
        : exist_(coins.exist()), inputs_(coins.inputs), prior_(coins.prior),
          last_(coins.n_stages - 1) {
        if (inputs_.exist()) fresh_ = inputs_.numbers({kNew});
    }
    bool exist() const { return exist_; }
    // The counts of a draw; states have all the slots from kFirst on, `draws` are by slot.
    HistoryCoins root(const Coins &coins, const std::vector<int32_t> &draws) const {
        HistoryCoins p;
        if (!exist_) return p;
        const int32_t n_slots = std::max(kFirst, static_cast<int32_t>(draws.size()));
        const auto of_states = [&](const std::vector<int32_t> &counts) {
            return std::vector<int32_t>(counts.begin() + kFirst, counts.begin() + n_slots);
        };
        p.stays = of_states(coins.stays());
        p.advances = of_states(coins.advances());
        p.draws = of_states(draws);
        std::vector<int32_t> slots;
        for (int32_t k = kFirst; k < n_slots; ++k) slots.push_back(k);
        if (inputs_.exist()) p.numbers = inputs_.numbers(slots);
        return p;
    }
    // The next step follows a state in a stage, or begins a sequence.
    void enter(HistoryCoins *p, bool begins, int32_t stage) const {
        if (stage < 0 || stage > last_)
            refuse("stage", std::to_string(stage) + "; expected 0 to " + std::to_string(last_));
        p->stage = begins ? last_ : stage;
    }
    // Whether the next state may be drawn.
    bool may_draw(const HistoryCoins &p) const { return p.stage == last_; }
    // The probability that step t is drawn after state j; *stay gets the probability of a stay.
    double leave(int64_t t, const HistoryCoins &p, int32_t j, double *stay) const {
        if (inputs_.exist()) {
            double leave;
            inputs_.look(t, &p.numbers[j * fresh_.size()], stay, &leave);
            return may_draw(p) ? leave : 0.0;
        }
        double stays, leaves;
        prior_.weigh(p.stays[j], p.draws[j] + p.advances[j], &stays, &leaves);
        *stay = stays / (stays + leaves);
        return may_draw(p) ? leaves / (stays + leaves) : 0.0;
    }

    // ---- step t, after state j

    void add_way(int64_t t, HistoryCoins *p, int32_t j, bool stays, bitgen_t *g) const {
        if (inputs_.exist()) inputs_.add_drawn(t, stays, &p->numbers[j * fresh_.size()], g);
    }
    void stay(HistoryCoins *p, int32_t j) const { ++p->stays[j]; }
    void advance(HistoryCoins *p, int32_t j) const {
        ++p->advances[j];
        ++p->stage;
    }
    // j: -1 at the start of a sequence.
    void draw(HistoryCoins *p, int32_t j) const {
        p->stage = 0;
        if (exist_ && j >= 0) ++p->draws[j];
    }
    void add_state(HistoryCoins *p) const {
        if (exist_)
            for (auto *counts : {&p->stays, &p->advances, &p->draws}) counts->push_back(0);
        p->numbers.insert(p->numbers.end(), fresh_.begin(), fresh_.end());
    }

  private:
    bool exist_;
    InputCoins inputs_;
    StayPrior prior_;                      // of coins without inputs
    int32_t last_;                         // stage
    std::vector<double> fresh_;            // of a new state, if coins have inputs
};

}  // namespace skihmm
