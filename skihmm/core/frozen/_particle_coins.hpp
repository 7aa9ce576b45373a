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
    std::vector<int32_t> stays, draws;     // of a state, if there are coins
    std::vector<double> numbers;           // of all states, if coins have inputs
};

class ParticleCoins {
  public:
    explicit ParticleCoins(const Coins &coins)
        : exist_(coins.exist()), inputs_(coins.inputs), prior_(coins.prior) {
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
        p.draws = of_states(draws);
        std::vector<int32_t> slots;
        for (int32_t k = kFirst; k < n_slots; ++k) slots.push_back(k);
        if (inputs_.exist()) p.numbers = inputs_.numbers(slots);
        return p;
    }
    // The probability that step t is drawn after state j; *stay gets the probability of a stay.
    double leave(int64_t t, const HistoryCoins &p, int32_t j, double *stay) const {
        if (inputs_.exist()) {
            double leave;
            inputs_.look(t, &p.numbers[j * fresh_.size()], stay, &leave);
            return leave;
        }
        double stays, leaves;
        prior_.weigh(p.stays[j], p.draws[j], &stays, &leaves);
        *stay = stays / (stays + leaves);
        return leaves / (stays + leaves);
    }

    // ---- step t, after state j

    void add_way(int64_t t, HistoryCoins *p, int32_t j, bool stays, bitgen_t *g) const {
        if (inputs_.exist()) inputs_.add_drawn(t, stays, &p->numbers[j * fresh_.size()], g);
    }
    void stay(HistoryCoins *p, int32_t j) const { ++p->stays[j]; }
    // j: -1 at the start of a sequence.
    void draw(HistoryCoins *p, int32_t j) const {
        if (exist_ && j >= 0) ++p->draws[j];
    }
    void add_state(HistoryCoins *p) const {
        if (exist_)
            for (auto *counts : {&p->stays, &p->draws}) counts->push_back(0);
        p->numbers.insert(p->numbers.end(), fresh_.begin(), fresh_.end());
    }

  private:
    bool exist_;
    InputCoins inputs_;
    StayPrior prior_;                      // of coins without inputs
    std::vector<double> fresh_;            // of a new state, if coins have inputs
};

}  // namespace skihmm
