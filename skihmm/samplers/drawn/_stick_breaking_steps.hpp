// The step-wise sampler with explicit parameters during a sweep.
//
// _sticks.hpp has the cycle; this is its middle.  A sweep draws, besides beta,
// the transition rows of the occupied states and of the start restaurant,
//     pi_j | x, beta ~ Dir(alpha beta_k + n_jk, alpha beta_u),
// with pi_ju the probability of all new states, and the emission's parameters phi.  When a
// state is born, pi_ju breaks like beta_u: a proportion Beta(alpha beta_new, alpha beta_u) of it
// goes to the new state.
//
// With i = x[t-1], o = x[t+1]: q(k) = pi_ik pi_ko p(y[t] | phi_k), and for a
// new state, whose row and phi are integrated out, pi_iu beta_o p(y[t]).  A newborn state's
// parameters are drawn *given* its transitions from i and to o and its observation y[t];
// otherwise the sampler is biased.  When a state has lost its last step its entries are added to
// the rests, and its row and phi are discarded.
//
// Without a block size all steps are visited so, in random order.  With a block size few steps are
// held (cut_pieces), and threads draw the pieces between held steps side by side:
//
//   1. First the pieces 0, 2, 4, .., then the odd pieces.  Let S be the states of all steps but the
//      free ones of these pieces.  Every free step in a state of S is drawn from q restricted to
//      S; the other free steps stay.
//   2. The held steps are visited one after the other as above, with births and deaths.
//
// Both leave p(x, beta, pi, phi | y) invariant.  The visited steps and their order do not depend on
// the labels.  S is a function of labels that stay, so a draw within S does not change whether x[t]
// is in S: given this, all other labels and the parameters, x[t] is drawn from its conditional
// distribution.  Every state of S has a step that stays, and states outside S lose no steps, so no
// state dies and the parameters keep their states throughout.  (With S the occupied states a step
// could leave its state empty, and not return to it.)  The pieces of one half do not touch, and S
// is common to them, so draws in different pieces are independent: threads draw what a serial loop
// would.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_pieces.hpp"
#include "_rcd.hpp"
#include "_restricted_steps.hpp"
#include "_sticks.hpp"
#include "_weights.hpp"
#include "_workers.hpp"

namespace skihmm {

class StickBreakingSteps final : public Kernel {
  public:
    // A block size of zero: no pieces.
    StickBreakingSteps(int64_t block_size, int32_t n_workers)
        : block_size_(block_size), workers_(n_workers) {}

    // One sweep over all steps.
    SweepCounts sweep(Chain &chain) override {
        EmissionParameters &emission = *chain.emission->parameters();
        used_.assign(1, kStart);
        for (int32_t k = kFirst; k < chain.n_slots; ++k)
            if (chain.occupancy[k] > 0) used_.push_back(k);
        draw_parameters(chain);
        draw_emission(chain, emission, used_, workers_);
        into_.resize(n_slots_);
        for (auto &column : into_) column.clear();
        for (size_t i = 1; i < used_.size(); ++i) fill_column(used_[i]);
        weights_.resize(n_slots_);
        ones_.assign(padded_, 1.0);
        if (block_size_ > 0) {
            cut_pieces(chain, block_size_, &pieces_);
            draw_pieces(chain, emission);
            order_.clear();
            for (const Piece &piece : pieces_)
                if (piece.held < piece.stop)
                    order_.push_back(static_cast<int32_t>(piece.held));
        } else {
            cut_blocks(chain, 1, &order_);
        }
        for (const int32_t t : order_) {
            if (chain.reserve(1)) grow(chain);
            step(chain, emission, t);  // planted: held step
        }
        emission.reseat(chain.states.data(), workers_, chain.bits);
        sticks_.reseat(chain, count_transitions(chain, chain.states, workers_));
        return {chain.n_steps, chain.n_steps};
    }

    size_t n_bytes() const override {
        size_t bytes = sticks_.n_bytes() + restricted_.n_bytes()
                       + (pi_.capacity() + into_.capacity()) * sizeof(pi_[0])
                       + (shapes_.capacity() + falls_.capacity() + ones_.capacity()
                          + weights_.q.capacity()) * sizeof(double)
                       + (order_.capacity() + used_.capacity()) * sizeof(int32_t)
                       + pieces_.capacity() * sizeof(Piece);
        for (const auto *rows : {&pi_, &into_})
            for (const auto &row : *rows) bytes += row.capacity() * sizeof(double);
        return bytes;
    }

  private:
    using Transitions = HCRPTransitions;

    // For every thread its free steps of either half, by slot.
    struct Free {
        std::vector<int32_t> steps[2];
    };

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
        if (block_size_ == 0) {
            for (const int32_t j : used_)
                draw_observed_row(chain, j, chain.bits, &shapes_, &falls_);
            return;
        }
        const TaskStreams rows(chain.bits);
        workers_.run(used_.size(), [&](int64_t i, int32_t) {
            TaskStream stream = rows[i];  // planted: streams of rows
            bitgen_t bits = stream.bits();
            std::vector<double> shapes, falls;
            draw_observed_row(chain, used_[i], &bits, &shapes, &falls);
        });
    }
    // Row j given the transitions out of it, as they were at the start of the sweep.  The
    // vectors are scratch.
    void draw_observed_row(const Chain &chain, int32_t j, bitgen_t *g,
                           std::vector<double> *shapes, std::vector<double> *falls) {
        const Transitions &s = *chain.transitions;
        sticks_.fill_shapes(s, shapes);
        const Line &line = s.row(j);
        // planted: counts of a row
        for (int32_t at = 0; at < line.size; ++at)
            (*shapes)[line.ids[at]] += line.counts[at];
        draw_row(j, g, *shapes, falls);
    }
    void draw_row(int32_t j, bitgen_t *g, const std::vector<double> &shapes,
                  std::vector<double> *falls) {
        pi_[j].assign(padded_, 0.0);
        draw_dirichlet(g, n_slots_, shapes.data(), pi_[j].data(), falls);
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
        for (size_t i = 1; i < used_.size(); ++i) into_[k][used_[i]] = pi_[used_[i]][k];
    }

    // ---- pieces

    void draw_pieces(Chain &chain, const EmissionParameters &emission) {
        free_.resize(workers_.size());
        for (Free &free : free_)
            for (auto &steps : free.steps) steps.assign(n_slots_, 0);
        workers_.run(pieces_.size(), [&](int64_t i, int32_t worker) {
            std::vector<int32_t> &steps = free_[worker].steps[i % 2];
            for (int64_t t = pieces_[i].start; t < pieces_[i].held; ++t)
                ++steps[chain.states[t]];
        });
        for (const int64_t half : {0, 1}) draw_half(chain, emission, half);
    }
    // Draw every second piece from the first or second piece on.
    void draw_half(Chain &chain, const EmissionParameters &emission, int64_t half) {
        std::vector<int32_t> staying = chain.occupancy;
        for (const Free &free : free_)
            for (int32_t k = 0; k < n_slots_; ++k) staying[k] -= free.steps[half][k];
        const TaskStreams streams(chain.bits);
        // planted: states of pieces
        restricted_.restrict_to(staying, pi_, used_, workers_.size());
        (emission.is_concurrent() ? workers_ : Workers(1))
            .run((static_cast<int64_t>(pieces_.size()) + 1 - half) / 2,
                 [&](int64_t i, int32_t worker) {
                     TaskStream stream = streams[i];  // planted: streams of pieces
                     bitgen_t bits = stream.bits();
                     restricted_.draw(chain, emission, pieces_[2 * i + half], into_, worker,
                                      &bits);
                 });
        restricted_.add_gained(&chain.occupancy);  // planted: gained steps
    }

    // ---- single steps

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
            // All other states are impossible.
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
        for (int32_t j = kStart; j < n_slots_; ++j) {  // planted: rows of a burial
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
        sticks_.break_off(chain, k);  // planted: stick of a birth
        into_[k].assign(padded_, 0.0);
        const double of_k = alpha * sticks_.beta[k], of_rest = alpha * sticks_.beta[kNew];
        for (int32_t j = kStart; j < n_slots_; ++j) {
            if (pi_[j].empty()) continue;
            double *row = pi_[j].data(), rest;
            // planted: row of a birth
            row[k] = row[kNew] * draw_beta(chain.bits, of_k + (j == i ? 1.0 : 0.0),
                                           of_rest, &rest);
            row[kNew] *= rest;  // planted: rest of a birth
            into_[k][j] = row[k];
        }
        sticks_.fill_shapes(*chain.transitions, &shapes_);
        if (o >= 0) shapes_[o] += 1.0;  // planted: successor of a birth
        draw_row(k, chain.bits, shapes_, &falls_);
        for (int32_t l = kFirst; l < n_slots_; ++l)
            if (!into_[l].empty()) into_[l][k] = pi_[k][l];
        into_[k][kNew] = sticks_.beta[k];
        emission.draw_newborn(k, t, chain.bits);
    }

    const int64_t block_size_;
    const Workers workers_;
    Sticks sticks_;
    RestrictedSteps restricted_;
    TransitionRows pi_;                     // by row, then by slot; pi_ju in slot NEW
    int32_t n_slots_ = 0, padded_ = 0;
    std::vector<double> shapes_, falls_;
    std::vector<int32_t> used_;             // the start, and the states before the sweep
    TransitionRows into_;                   // into_[k][j] = pi_jk; beta_k in slot NEW
    WideVector<double> ones_;
    Weights weights_;
    std::vector<int32_t> order_;
    std::vector<Piece> pieces_;
    std::vector<Free> free_;                // by thread
};

}  // namespace skihmm
