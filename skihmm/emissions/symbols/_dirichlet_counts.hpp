// The pseudo-count of symmetric Dirichlet distributions, drawn from its posterior.
#pragma once
#include <cstdint>
#include <vector>

#include "_family.hpp"
#include "_hyperparameters.hpp"

namespace skihmm {

// Counts of the symbols of all states.  Most cells of a text have one of a few small counts,
// which are stored as a histogram.
class DirichletCounts {
  public:
    // Add the count of one symbol of one state.
    void add_cell(int32_t count) {
        if (static_cast<size_t>(count) >= n_cells_.size()) n_cells_.resize(count + 1);
        ++n_cells_[count];
    }
    // Add the total count of one state.
    void add_state(int32_t n_symbols, int32_t count) {
        if (count > 0) states_.push_back({n_symbols, count});
    }
    // One update given the counts, the distributions integrated out: prior Gamma(1/2, 1/2).
    double draw_pseudo_count(double pseudo_count, bitgen_t *g) const {
        draw_positive(g, &pseudo_count, 1.0, [&](double a) {
            double lp = 0.0;
            for (size_t count = 1; count < n_cells_.size(); ++count)
                if (n_cells_[count] > 0) lp += n_cells_[count] * log_rising(a, count);
            for (const State &state : states_)
                lp -= log_rising(state.n_symbols * a, state.count);
            return lp;
        });
        return pseudo_count;
    }

  private:
    struct State { int32_t n_symbols, count; };

    std::vector<int64_t> n_cells_;
    std::vector<State> states_;
};

}  // namespace skihmm
