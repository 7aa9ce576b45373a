// What a record of transitions contains, and its checks; _franchise.pyx converts it to arrays.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "_context_shape.hpp"

namespace skihmm {

// Transitions of the states 0 .. n_states - 1; row n_states is the start restaurant.
struct TransitionsRecord {
    int32_t n_states = 0;
    std::vector<double> hyperparameters;
    // Depth 1, 2, ... of the tree of contexts, or the one level that there is without them.
    ContextShape contexts;
    std::vector<SeatingRecord> levels;
    // What coins have by state, and by step or nothing, as in draws.  Flags of stays are those of one
    // stage.
    int32_t n_stages = 1;
    std::vector<int32_t> stays, advances;
    std::vector<uint8_t> stayed, stages;
    // With contexts the draws by state, and of the start.
    std::vector<int32_t> draws;
    // With inputs what coins keep by state, the mean probability to leave it, over its steps, which
    // is not read, and by step the weights, or nothing; and log of the probability of the ways in
    // which all steps are entered.
    int32_t n_inputs = 0;
    double log_ways = 0.0;
    std::vector<double> coins, leaves, weights;

    // Refuse counts that are not those of some path over all the states.  The seatings have
    // passed check_record.
    void check() const {
        const SeatingRecord &first = levels[0];
        if (static_cast<size_t>(n_states) > first.rows.size())
            refuse(kWhat, std::to_string(first.rows.size()) + " cells are too few for "
                          + std::to_string(n_states) + " states");
        std::vector<int64_t> entered(n_states, 0);
        for (size_t i = 0; i < first.rows.size(); ++i)
            entered[first.dishes[i]] += first.n_customers[i];
        for (int32_t k = 0; k < n_states; ++k)
            if (entered[k] == 0)
                refuse(kWhat, "state " + std::to_string(k) + " is never entered; expected "
                              "every state to be used");
        if (contexts.exists()) return contexts.check_tables(levels, kWhat);
        std::vector<int64_t> left(static_cast<size_t>(n_states) + 1, 0);
        for (size_t i = 0; i < first.rows.size(); ++i) left[first.rows[i]] += first.n_customers[i];
        for (int32_t k = 0; k < n_states; ++k)
            if (left[k] > entered[k])
                refuse(kWhat, "state " + std::to_string(k) + " is left "
                              + std::to_string(left[k]) + " times, but entered only "
                              + std::to_string(entered[k]) + " times");
        if (left[n_states] == 0) refuse(kWhat, "no sequence begins");
    }
    // Refuse the record of another path: labels[t] follows rows[t] at a place, by a stay, an
    // advance or a draw.
    void check_path(const std::vector<ContextPlace> &places, const std::vector<int32_t> &rows,
                    const std::vector<int32_t> &labels) const {
        const std::vector<int32_t> drawn = check_coins(rows, labels);
        contexts.check_customers_of(levels, places, rows.data(), drawn.data(), 1,
                                    static_cast<int64_t>(labels.size()), n_states + 1, kWhat);
    }

  private:
    static constexpr const char *kWhat = "transitions";

    // Returns the labels with -1 for those that do not follow by a draw.
    std::vector<int32_t> check_coins(const std::vector<int32_t> &rows,
                                     const std::vector<int32_t> &labels) const {
        std::vector<int32_t> drawn = labels, stay(stays.size(), 0), advance(stay);
        std::vector<int32_t> draw(draws.size(), 0);
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
                if (begins || !repeats || (stage != before && stage != before + 1))
                    refuse(kWhat, "step " + std::to_string(t) + " cannot be in stage "
                                  + std::to_string(stage));
                ++(stage == before ? stay : advance)[labels[t]];
            }
            drawn[t] = -1;
        }
        if (stay != stays || (is_staged && advance != advances))
            refuse(kWhat, "the numbers of stays are not those of the steps");
        for (size_t t = 0; t < drawn.size() && !draws.empty(); ++t) draw[rows[t]] += drawn[t] >= 0;
        if (draw != draws) refuse(kWhat, "the numbers of draws are not those of the steps");
        return drawn;
    }
};

}  // namespace skihmm
