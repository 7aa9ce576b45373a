// The base distribution beta of samplers that draw it: start and end of their sweeps.
//
// Between sweeps these samplers have the state of all samplers, the labels x and the seating s.  A
// sweep is a Gibbs cycle with auxiliary variables, which are discarded at its end:
//
//   1. beta | x, s.  Given the table counts m_k, beta = (beta_k of the occupied states, beta_u
//      for all others) is Dirichlet(m_1, ..., m_K, gamma).  Further variables of a sampler (rows
//      pi, emission parameters phi) are drawn from their distribution given x and beta.
//   2. Moves of x, with births and deaths of entries of beta, that leave p(x, beta, .. | y)
//      invariant.  They do not depend on s, which is discarded.
//   3. s | x, beta.  Given beta restaurants are independent, and within one the customers of
//      each dish too: customers of (j, k) are seated one by one, at a table with weight its
//      customers or at a new one with weight alpha beta_k.  That is the distribution of the
//      table sizes, and so Antoniak's of their number.  pi is integrated out.
//
// Step 3 followed by the next sweep's step 1 is the update of Teh et al. (2006), which needs table
// counts only.  As (x, s) is a draw of the collapsed posterior, the common target of all samplers,
// concentrations are updated, and draws are scored and stored, as usual.
//
// beta_u breaks when a state is born: beta_new = v beta_u, v ~ Beta(1, gamma).  When a state
// dies its entry is added to beta_u.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_pair_counts.hpp"
#include "_random.hpp"
#include "_rcd.hpp"

namespace skihmm {

class Sticks {
  public:
    // By slot: beta_k, 0 for the start restaurant and for free slots, beta_u in slot NEW.
    std::vector<double> beta;

    void draw(const Chain &chain) {
        const auto &s = *chain.transitions;
        const int32_t n = chain.n_slots;
        shapes_.resize(n);
        for (int32_t k = 0; k < n; ++k) shapes_[k] = s.counted_mass(k);
        beta.resize(n);
        draw_dirichlet(chain.bits, n, shapes_.data(), beta.data(), &falls_);
    }
    void resize(int32_t n_slots) { beta.resize(n_slots, 0.0); }
    double break_off(const Chain &chain) {
        double rest;
        const double stick =
            beta[kNew] * draw_beta(chain.bits, 1.0, chain.transitions->base.gamma, &rest);
        beta[kNew] *= rest;
        return stick;
    }
    void break_off(const Chain &chain, int32_t k) {
        const double stick = break_off(chain);
        beta[k] = stick;
    }
    void give_back(int32_t k) {
        beta[kNew] += beta[k];
        beta[k] = 0.0;
    }
    // The shapes of a row without transitions: alpha beta_k.
    template <class Transitions>
    void fill_shapes(const Transitions &s, std::vector<double> *shapes) const {
        shapes->resize(beta.size());
        for (size_t k = 0; k < beta.size(); ++k) (*shapes)[k] = s.alpha * beta[k];
    }
    // The seating of all transitions, which have been counted, given x and beta.
    void reseat(const Chain &chain, const PairCounts &counts) {
        fill_shapes(*chain.transitions, &shapes_);
        chain.transitions->reseat(counts, shapes_.data(), chain.bits);
    }

    size_t n_bytes() const {
        return (beta.capacity() + shapes_.capacity() + falls_.capacity()) * sizeof(double);
    }

  private:
    std::vector<double> shapes_, falls_;
};

// Draw the emission's parameters for the listed states, the start first.
inline void draw_emission(const Chain &chain, EmissionParameters &emission,
                   const std::vector<int32_t> &states, const Workers &workers) {
    TaskStream stream = TaskStreams(chain.bits)[0];
    bitgen_t bits = stream.bits();
    emission.draw_parameters(std::vector<int32_t>(states.begin() + 1, states.end()), workers,
                             &bits);
}

// The transitions of the labels `path`.
inline PairCounts count_transitions(const Chain &chain, const std::vector<int32_t> &path,
                             const Workers &workers) {
    return count_pairs(workers, chain.n_steps, chain.n_slots, chain.n_slots,
                       [&](int64_t t, int32_t *row, int32_t *dish) {
                           *row = chain.first[t] ? kStart : path[t - 1];
                           *dish = path[t];
                           return true;
                       });
}

}  // namespace skihmm
