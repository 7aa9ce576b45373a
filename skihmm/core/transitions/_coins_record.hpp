// The contents of a record of coins, and its checks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "_record.hpp"
#include "_stay_prior.hpp"

namespace skihmm {

// By state, and by step, or empty in posterior draws.
struct CoinsRecord {
    // Hyperparameters: a prior, or, with inputs, mean and precision of intercepts, the common
    // factor of the coefficients' standard deviations, and by input the standard deviation.
    StayPrior prior;
    std::vector<double> input_prior;
    std::vector<int32_t> stays;
    std::vector<uint8_t> stayed;            // flags
    // With contexts the draws by state, and of the start.
    std::vector<int32_t> draws;
    // With inputs: by state the coins' numbers and the mean probability to leave over its steps
    // (not read), by step the weights or nothing; and log of the probability of the ways in which
    // all steps are entered.
    double log_ways = 0.0;
    std::vector<double> numbers, leaves, weights;

    bool exist() const { return prior.exists() || has_inputs(); }
    bool has_inputs() const { return !input_prior.empty(); }
    int32_t n_inputs() const {
        return has_inputs() ? static_cast<int32_t>(input_prior.size()) - kFixed : 0;
    }
    void visit_prior(const Archive &archive) {
        if (!archive.has(kScale, has_inputs())) {
            if (prior.is_in(archive)) prior.visit(archive);
            return;
        }
        if (archive.reads()) input_prior.assign(kFixed, 0.0);
        archive["stay_mean"].scalar(&input_prior[0], kFinite);
        archive["stay_precision"].scalar(&input_prior[1], kConcentration);
        archive["stay_shrinkage"].scalar(&input_prior[2], kConcentration);
        std::vector<double> scales(input_prior.begin() + kFixed, input_prior.end());
        archive[kScale].array(&scales, {-1}, &kPositive);
        if (!archive.reads()) return;
        if (scales.empty()) refuse(kWhat, "stay_scale is empty; expected a number for every input");
        input_prior.insert(input_prior.end(), scales.begin(), scales.end());
    }
    // In the record of a chain or of a draw, and in its transitions; after visit_prior.
    void visit(const Archive &chain, const Archive &archive, int32_t n_states, bool has_draws) {
        if (has_inputs()) visit_inputs(chain, archive, n_states);
        if (!exist()) return;
        archive["stays"].array(&stays, {n_states}, &kCounts);
        if (has_draws) archive["draws"].array(&draws, {n_states + 1}, &kCounts);
        const Range flags{0, 1};
        if (chain.has("stayed", !stayed.empty())) chain["stayed"].array(&stayed, {-1}, &flags);
    }
    // Refuse the record of another path: labels[t] follows rows[t], by a stay or a draw; row
    // n_states is the start.  Returns the labels, -1 for steps that no draw enters.
    std::vector<int32_t> check_path(const std::vector<int32_t> &rows,
                                    const std::vector<int32_t> &labels, int32_t n_states) const {
        std::vector<int32_t> drawn = labels, stay(stays.size(), 0), draw(draws.size(), 0);
        const size_t n = stays.empty() ? 0 : labels.size();
        if (stayed.size() != n)
            refuse(kWhat, std::to_string(stayed.size()) + " flags of stays for "
                          + std::to_string(labels.size()) + " steps");
        for (size_t t = 0; t < n; ++t) {
            if (!stayed[t]) continue;
            if (rows[t] != labels[t])
                refuse(kWhat, "step " + std::to_string(t) + " is no stay");
            ++stay[labels[t]];
            drawn[t] = -1;
        }
        if (stay != stays) refuse(kWhat, "the numbers of stays are not those of the steps");
        for (size_t t = 0; t < drawn.size() && !draws.empty(); ++t) draw[rows[t]] += drawn[t] >= 0;
        if (draw != draws) refuse(kWhat, "the numbers of draws are not those of the steps");
        return drawn;
    }

  private:
    static constexpr const char *kWhat = "transitions", *kScale = "stay_scale";
    static constexpr Range kCounts{0, kMostCustomers};
    static constexpr int32_t kFixed = 3;    // numbers of the prior beside the scales

    void visit_inputs(const Archive &chain, const Archive &archive, int32_t n_states) {
        const int64_t width = n_inputs() + 1;
        archive["coins"].array(&numbers, {n_states, width + width * (width + 1) / 2}, &kFinite);
        if (!archive.reads()) archive["leaves"].array(&leaves);
        archive["log_ways"].scalar(&log_ways, kLogProbability);
        if (chain.has("stay_weights", !weights.empty()))
            chain["stay_weights"].array(&weights, {-1}, &kPositive);
    }
};

}  // namespace skihmm
