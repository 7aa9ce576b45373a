// The step-wise sampler with explicit parameters during a sweep.
//
// See _sticks.hpp for the cycle of which this is the middle.  A sweep draws, besides beta,
// the transition rows of the occupied states and of the start restaurant,
//     pi_j | x, beta ~ Dir(alpha beta_k + n_jk, alpha beta_u),
// with pi_ju the probability of all new states, and the emission's parameters phi.  When a
// state is born, pi_ju breaks like beta_u: a proportion Beta(alpha beta_new, alpha beta_u) of it
// is that of the new state.
//
// With i = x[t-1], o = x[t+1]: q(k) = pi_ik pi_ko p(y[t] | phi_k), and for a
// new state, whose row and phi are integrated out, pi_iu beta_o p(y[t]).  A newborn state's
// parameters are drawn *given* its transitions from i and to o and its observation y[t];
// otherwise the sampler is biased.  When a state has lost its last step its entries are added to
// the rests, and its row and phi are discarded.
#pragma once
#include <cstdint>
#include <vector>

#include "_rcd.hpp"
#include "_sticks.hpp"
#include "_weights.hpp"

namespace skihmm {

template <class Chain>
class StickBreakingSteps final : public Kernel<Chain> {
  public:
    // One sweep over all steps in random order.
    SweepCounts sweep(Chain &chain) override {
        EmissionParameters &emission = *chain.emission->parameters();
        used_.clear();
        for (int32_t k = kFirst; k < chain.n_slots; ++k)
            if (chain.occupancy[k] > 0) used_.push_back(k);
        draw_parameters(chain);
        emission.draw_parameters(used_, Workers(1), chain.bits);
        into_.resize(n_slots_);
        for (auto &column : into_) column.clear();
        for (const int32_t k : used_) fill_column(k);
        weights_.resize(n_slots_);
        ones_.assign(padded_, 1.0);
        cut_blocks(chain, 1, &order_);
        for (const int32_t t : order_) {
            if (chain.reserve(1)) grow(chain);
            step(chain, emission, t);
        }
        emission.reseat(chain.states.data(), Workers(1), chain.bits);
        sticks_.reseat(chain, count_transitions(chain, chain.states, Workers(1)));
        return {chain.n_steps, chain.n_steps};
    }

    size_t n_bytes() const override {
        size_t bytes = sticks_.n_bytes() + (pi_.capacity() + into_.capacity()) * sizeof(pi_[0])
                       + (shapes_.capacity() + falls_.capacity() + ones_.capacity()
                          + weights_.q.capacity()) * sizeof(double)
                       + (order_.capacity() + used_.capacity()) * sizeof(int32_t);
        for (const auto &row : pi_) bytes += row.capacity() * sizeof(double);
        for (const auto &column : into_) bytes += column.capacity() * sizeof(double);
        return bytes;
    }

  private:
    using Transitions = typename Chain::Transitions;

    // Room for all slots, new entries zero; whole vectors of sixteen.
    void resize(Chain &chain) {
        n_slots_ = chain.n_slots;
        padded_ = (n_slots_ + kWeightLanes - 1) / kWeightLanes * kWeightLanes;
        sticks_.resize(n_slots_);
        pi_.resize(n_slots_);
        for (auto &row : pi_)
            if (!row.empty()) row.resize(padded_, 0.0);
    }
    void draw_parameters(Chain &chain) {
        sticks_.draw(chain);
        resize(chain);
        for (auto &row : pi_) row.clear();
        draw_observed_row(chain, kStart);
        for (const int32_t j : used_) draw_observed_row(chain, j);
    }
    // Row j given the transitions out of it, as they were at the start of the sweep.
    void draw_observed_row(Chain &chain, int32_t j) {
        const Transitions &s = *chain.transitions;
        sticks_.fill_shapes(s, &shapes_);
        const Line &line = s.row(j);
        for (int32_t at = 0; at < line.size; ++at)
            shapes_[line.ids[at]] += line.counts[at];
        draw_row(chain, j);
    }
    void draw_row(Chain &chain, int32_t j) {
        pi_[j].assign(padded_, 0.0);
        draw_dirichlet(chain.bits, n_slots_, shapes_.data(), pi_[j].data(), &falls_);
    }
    void grow(Chain &chain) {
        resize(chain);
        into_.resize(n_slots_);
        for (auto &column : into_)
            if (!column.empty()) column.resize(padded_, 0.0);
        weights_.resize(n_slots_);
        ones_.assign(padded_, 1.0);
    }
    void fill_column(int32_t k) {
        into_[k].assign(padded_, 0.0);
        into_[k][kNew] = sticks_.beta[k];
        for (const int32_t j : used_) into_[k][j] = pi_[j][k];
    }

    void step(Chain &chain, EmissionParameters &emission, int64_t t) {
        const int32_t i = chain.previous(t), x = chain.states[t], o = chain.successor(t);
        const bool dies = chain.occupancy[x] == 1;
        const double *row = pi_[i].data(), *out = o >= 0 ? into_[o].data() : ones_.data(),
                     *probs = emission.likelihoods(t, chain.occupancy.data());
        product_weights(weights_.n, x, row, out, probs, weights_.q.data(), weights_.lanes);
        double old = row[x] * out[x] * probs[x];
        if (SKIHMM_UNLIKELY(dies)) {
            old = 0.0;
            weights_.change(kNew, (row[kNew] + row[x]) * out[kNew] * probs[kNew]);
        }
        const double u = uniform(chain.bits) * (old + weights_.total());
        if (SKIHMM_LIKELY(u < old)) return;
        int32_t k = weights_.at(u - old);
        if (SKIHMM_UNLIKELY(k < 0)) {
            // All others are impossible.
            if (!dies) return;
            k = kNew;
        }
        if (dies) bury(chain, x);
        if (k == kNew) {
            k = dies ? x : chain.free_slot(0);
            give_birth(chain, emission, k, i, o, t);
        }
        chain.assign(t, k);
    }
    // Death of state x, which had one step.
    void bury(Chain &chain, int32_t x) {
        sticks_.give_back(x);
        pi_[x].clear();
        into_[x].clear();
        for (int32_t j = kStart; j < n_slots_; ++j) {
            if (pi_[j].empty()) continue;
            double *row = pi_[j].data();
            row[kNew] += row[x];
            row[x] = 0.0;
        }
    }
    // Birth of state k at step t, entered from i and left for o.
    void give_birth(Chain &chain, EmissionParameters &emission, int32_t k,
                    int32_t i, int32_t o, int64_t t) {
        const double alpha = chain.transitions->alpha;
        sticks_.break_off(chain, k);
        into_[k].assign(padded_, 0.0);
        const double of_k = alpha * sticks_.beta[k], of_rest = alpha * sticks_.beta[kNew];
        for (int32_t j = kStart; j < n_slots_; ++j) {
            if (pi_[j].empty()) continue;
            double *row = pi_[j].data(), rest;
            row[k] = row[kNew] * draw_beta(chain.bits, of_k + (j == i ? 1.0 : 0.0),
                                           of_rest, &rest);
            row[kNew] *= rest;
            into_[k][j] = row[k];
        }
        sticks_.fill_shapes(*chain.transitions, &shapes_);
        if (o >= 0) shapes_[o] += 1.0;
        draw_row(chain, k);
        for (int32_t l = kFirst; l < n_slots_; ++l)
            if (!into_[l].empty()) into_[l][k] = pi_[k][l];
        into_[k][kNew] = sticks_.beta[k];
        emission.draw_newborn(k, t, chain.bits);
    }

    Sticks sticks_;
    std::vector<WideVector<double>> pi_;    // by row, then by slot; pi_ju in slot NEW
    int32_t n_slots_ = 0, padded_ = 0;
    std::vector<double> shapes_, falls_;
    std::vector<int32_t> used_;             // slots of states, at the start of the sweep
    std::vector<WideVector<double>> into_;  // into_[k][j] = pi_jk; beta_k in slot NEW
    WideVector<double> ones_;
    Weights weights_;
    std::vector<int32_t> order_;
};

}  // namespace skihmm
