// One step at a time, from its predecessor and its observation.
#pragma once
#include <vector>

#include "_rcd.hpp"

// What follows the step is left to the acceptance.
class ForwardProposal final : public skihmm::Proposal {
  public:
    void prepare(skihmm::Chain &chain, skihmm::Emission &emission, int64_t start,
                 int64_t) override {
        const auto &transitions = *chain.transitions;
        const int32_t o = chain.successor(start);
        weights_.resize(chain.n_slots);
        emission.fill_probs(start, weights_.data());
        total_ = 0.0;
        for (int32_t k = 0; k < chain.n_slots; ++k) {
            // The successor's label may have lost its last table: it is as new as a new one,
            // and a candidate of its own.
            const bool is_candidate = k == skihmm::kNew || k == o
                                      || transitions.is_served(k);
            weights_[k] *= is_candidate ? transitions.prob(chain.previous(start), k) : 0.0;
            total_ += weights_[k];
        }
    }
    void score(skihmm::Chain &chain, int64_t start, int64_t, skihmm::Product *q) override {
        // A label without a table is what a new one would be.
        const double weight = weights_[chain.states[start]];
        q->multiply(weight > 0.0 ? weight : weights_[skihmm::kNew]);
    }
    void propose(skihmm::Chain &chain, int64_t, int64_t, int32_t *path,
                 skihmm::Product *q) override {
        int32_t chosen = skihmm::kNew;
        double u = skihmm::uniform(chain.bits) * total_;
        for (int32_t k = 0; k < chain.n_slots && u >= 0.0; ++k) {
            if (!(weights_[k] > 0.0)) continue;
            // Rounding may leave something of u: then it is the last possible one.
            chosen = k;
            u -= weights_[k];
        }
        q->multiply(weights_[chosen]);
        *path = chosen == skihmm::kNew ? chain.free_slot(0) : chosen;
    }

  private:
    std::vector<double> weights_;
    double total_ = 0.0;
};
