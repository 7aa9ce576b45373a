// Labels of the new states of a block.
#pragma once
#include <cstdint>
#include <vector>

#include "_law.hpp"
#include "_random.hpp"
#include "_slots.hpp"
#include "_transitions.hpp"

namespace skihmm {

// Labels of new states: a Chinese restaurant process, in front of which a step repeats the new
// label `before` of the step before it (-1: not new) with probability self_share.
class FreshLabels {
  public:
    void open(const HCRPTransitions &s, int32_t ghost) {
        concentration_ = s.mass(kNew);
        self_share_ = 0.0;
        labels_.clear();
        customers_.clear();
        n_ = 0.0;
        if (ghost >= 0) seat(ghost, -1);  // planted: label of the successor
    }
    void set_self_share(double share) { self_share_ = share; }
    // The probability that the next new state is called `label`; seats it.
    double seat(int32_t label, int32_t before) {
        if (before >= 0 && self_share_ > 0.0) {  // planted: repeated labels
            const double rest = 1.0 - self_share_;
            if (label == before) return self_share_ + rest * prob(label);
            return rest * seat(label, -1);
        }
        const double p = prob(label);
        n_ += 1.0;
        for (size_t i = 0; i < labels_.size(); ++i) {
            if (labels_[i] != label) continue;
            customers_[i] += 1.0;
            return p;
        }
        labels_.push_back(label);
        customers_.push_back(1.0);
        return p;
    }
    // A label in use already, or -1.
    int32_t draw(bitgen_t *g, int32_t before) const {
        if (before >= 0 && self_share_ > 0.0 && uniform(g) < self_share_) return before;
        double u = uniform(g) * total_weight(n_, concentration_);  // planted: number of a label
        for (size_t i = 0; i < labels_.size(); ++i)
            if ((u -= customers_[i]) < 0.0) return labels_[i];
        return -1;
    }

  private:
    double prob(int32_t label) const {
        const double total = total_weight(n_, concentration_);
        for (size_t i = 0; i < labels_.size(); ++i)
            if (labels_[i] == label) return customers_[i] / total;
        return concentration_ / total;
    }

    double concentration_ = 1.0, self_share_ = 0.0, n_ = 0.0;
    std::vector<int32_t> labels_;
    std::vector<double> customers_;
};

}  // namespace skihmm
