// The contents of a record of transitions, and its checks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "_context_shape.hpp"
#include "_stay_prior.hpp"

namespace skihmm {

// A stage is stored in a byte.
static constexpr int32_t kMostStages = 255;

// The hyperparameters of transitions, in the order of HCRPTransitions::hyperparameters, by name.
// Coins with inputs add mean and precision of intercepts, and by input the standard deviation of
// coefficients, whose common factor is kept too; other coins have a prior of staying in their place.
// With contexts, the columns' concentrations come last.
inline void visit_hyperparameters(const Archive &archive, std::vector<double> *values,
                                  StayPrior *stay_prior, int32_t n_contexts, bool has_inputs) {
    size_t at = 0;
    const auto visit = [&](const char *name, const Range &range) {
        if (archive.reads()) values->push_back(0.0);
        archive[name].scalar(&(*values)[at++], range);
    };
    const auto visit_all = [&](const char *name, int64_t n, const Range &range) {
        std::vector<double> part;
        if (!archive.reads()) part.assign(values->begin() + at, values->begin() + at + n);
        archive[name].array(&part, {n}, &range);
        if (archive.reads()) values->insert(values->end(), part.begin(), part.end());
        at += part.size();
    };
    visit("alpha", kConcentration);
    visit("gamma", kConcentration);
    if (has_inputs) {
        visit("stay_mean", kFinite);
        visit("stay_precision", kConcentration);
        visit("stay_shrinkage", kConcentration);
        visit_all("stay_scale", archive.reads() ? -1 : values->size() - n_contexts - at, kPositive);
    } else if (stay_prior->is_in(archive)) {
        stay_prior->visit(archive);
    }
    if (n_contexts > 0) visit_all("context_alpha", n_contexts, kConcentration);
}

// Transitions of the states 0 .. n_states - 1; row n_states is the start restaurant.
struct TransitionsRecord {
    int32_t n_states = 0;
    std::vector<double> hyperparameters;
    StayPrior stay_prior;
    // Depths 1, 2, ... of the tree of contexts, or the one level without contexts.
    ContextShape contexts;
    std::vector<SeatingRecord> levels;
    // Coins by state, and by step, or empty in posterior draws.  Flags of stays are for one stage.
    int32_t n_stages = 1;
    std::vector<int32_t> stays, advances;
    std::vector<uint8_t> stayed, stages;
    // With contexts the draws by state, and of the start.
    std::vector<int32_t> draws;
    // With inputs: by state the coins' numbers and the mean probability to leave over its steps
    // (not read), by step the weights or nothing; and log of the probability of the ways in which
    // all steps are entered.
    int32_t n_inputs = 0;
    double log_ways = 0.0;
    std::vector<double> coins, leaves, weights;

    // In the record of a chain or of a draw.
    void visit(const Archive &chain) {
        chain["n_states"].scalar(&n_states, {1, kMostCustomers});
        const Archive archive = chain[kWhat];
        if (archive.has("contexts", contexts.exists()))
            contexts.visit(archive["contexts"].named("contexts"));
        const bool has_inputs = archive.has("stay_scale", n_inputs > 0);
        visit_hyperparameters(archive, &hyperparameters, &stay_prior, contexts.n_columns(),
                              has_inputs);
        if (has_inputs) visit_inputs(chain, archive);
        if (has_inputs || stay_prior.exists()) visit_coins(chain, archive);
        std::vector<Archive> archives{archive};
        if (contexts.exists())
            for (const Archive &each : archive["levels"].list(contexts.n_columns()))
                archives.push_back(each);
        levels.resize(archives.size());
        for (int32_t d = 1; d <= contexts.depth(); ++d)
            contexts.visit_level(archives[d - 1].named(contexts.name(kWhat, d)), d, n_states + 1,
                                 n_states, true, &levels[d - 1]);
        if (chain.reads()) check();
    }

    // Refuse counts that no path over all the states has.  The seatings have passed check_record.
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

    static constexpr Range kCounts{0, kMostCustomers};

    void visit_coins(const Archive &chain, const Archive &archive) {
        archive["stays"].array(&stays, {n_states}, &kCounts);
        if (contexts.exists()) archive["draws"].array(&draws, {n_states + 1}, &kCounts);
        if (archive.has("n_stages", n_stages > 1)) {
            archive["n_stages"].scalar(&n_stages, {2, kMostStages});
            archive["advances"].array(&advances, {n_states}, &kCounts);
        }
        const Range flags{0, 1}, before{0, n_stages - 1.0};
        if (chain.has("stayed", !stayed.empty())) chain["stayed"].array(&stayed, {-1}, &flags);
        if (chain.has("stages", !stages.empty())) chain["stages"].array(&stages, {-1}, &before);
    }
    void visit_inputs(const Archive &chain, const Archive &archive) {
        if (chain.reads())
            n_inputs = static_cast<int32_t>(hyperparameters.size()) - 5 - contexts.n_columns();
        if (n_inputs < 1) refuse(kWhat, "stay_scale is empty; expected a number for every input");
        const int64_t width = n_inputs + 1;
        archive["coins"].array(&coins, {n_states, width + width * (width + 1) / 2}, &kFinite);
        if (!archive.reads()) archive["leaves"].array(&leaves);
        archive["log_ways"].scalar(&log_ways, kLogProbability);
        if (chain.has("stay_weights", !weights.empty()))
            chain["stay_weights"].array(&weights, {-1}, &kPositive);
    }

    // Returns the labels with -1 for steps that do not follow by a draw.
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
