// Samplers with explicit parameters during a sweep: step by step, and the beam.
//
// See _sticks.hpp for the cycle of which this is the middle.  A sweep draws, besides beta,
// the transition rows of the occupied states and of the start restaurant,
//     pi_j | x, beta ~ Dir(alpha beta_k + n_jk, alpha beta_u),
// with pi_ju the probability of all new states, and the emission's parameters phi.  When a
// state is born, pi_ju breaks like beta_u: a proportion Beta(alpha beta_new, alpha beta_u) of it
// is that of the new state.
//
// Step by step.  With i = x[t-1], o = x[t+1]: q(k) = pi_ik pi_ko p(y[t] | phi_k), and for a
// new state, whose row and phi are integrated out, pi_iu beta_o p(y[t]).  A newborn state's
// parameters are drawn *given* its transitions from i and to o and its observation y[t];
// otherwise the sampler is biased.  When a state has lost its last step its entries are added to
// the rests, and its row and phi are discarded.
//
// Beam (Van Gael, Saatci, Teh and Ghahramani 2008).  Every transition of x gets a slice u_t,
// uniform below its probability; given these a sequence's path is one draw by forward
// filtering and backward sampling over the transitions that pass, of probability >= u_t.
// Sticks are broken, unconditionally, until pi_ju is below every slice that row j meets: no
// number of states is fixed in advance.  Variables are drawn only when needed: a newborn state's
// row when it is entered for the first time, and a row's part of a stick only while its own rest
// passes a slice of the row.  The others are independent of those that are drawn, so this is
// exact, and a single small slice does not break thousands of sticks in every row.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "_rcd.hpp"
#include "_sticks.hpp"
#include "_weights.hpp"

namespace skihmm {

// A sweep that needs more ends with an error, or it would go on for hours and take all
// memory.  About (1 + gamma) log(1 / least slice) sticks are needed, so their limit is
// reached near gamma = 2,000; every row that is reached breaks each of them anew, at
// eight bytes, or 24 if it passes a slice.
static constexpr size_t kMostSticks = size_t{1} << 15, kMostParts = size_t{1} << 26;
// Labels and seating are still those from before the sweep.
template <class Transitions>
[[noreturn]] SKIHMM_NOINLINE void refuse_to_break(const Transitions &s) {
    std::ostringstream message;
    message << "StickBreakingBeam needs more than " << kMostSticks << " sticks, or "
            << kMostParts << " parts of them, in one sweep: gamma = " << s.base.gamma
            << " (at alpha = " << s.alpha << ") is too large for it. Start from a "
               "smaller gamma, let it be resampled (concentration_prior), or use "
               "another sampler, such as StickBreakingGibbs.";
    throw std::invalid_argument(message.str());
}

// What the two samplers share: beta and the rows.
template <class Chain>
class StickBreaking : public Kernel<Chain> {
  public:
    size_t n_bytes() const override {
        size_t bytes = sticks_.n_bytes() + pi_.capacity() * sizeof(pi_[0])
                       + (shapes_.capacity() + falls_.capacity()) * sizeof(double);
        for (const auto &row : pi_) bytes += row.capacity() * sizeof(double);
        return bytes;
    }

  protected:
    using Transitions = typename Chain::Transitions;

    Sticks sticks_;
    std::vector<WideVector<double>> pi_;    // by row, then by slot; pi_ju in slot NEW
    int32_t n_slots_ = 0, padded_ = 0;

    bool is_used(Chain &chain, int32_t k) const { return chain.occupancy[k] > 0; }
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
        for (int32_t j = kFirst; j < n_slots_; ++j)
            if (is_used(chain, j)) draw_observed_row(chain, j);
    }
    // Row j given the transitions out of it, as they were at the start of the sweep.
    void draw_observed_row(Chain &chain, int32_t j) {
        const Transitions &s = *chain.transitions;
        fill_shapes(s);
        const Line &line = s.row(j);
        for (int32_t at = 0; at < line.size; ++at)
            shapes_[line.ids[at]] += line.counts[at];
        draw_row(chain, j);
    }
    void fill_shapes(const Transitions &s) {
        shapes_.resize(n_slots_);
        for (int32_t k = 0; k < n_slots_; ++k) shapes_[k] = s.alpha * sticks_.beta[k];
    }
    void draw_row(Chain &chain, int32_t j) {
        pi_[j].assign(padded_, 0.0);
        draw_dirichlet(chain.bits, n_slots_, shapes_.data(), pi_[j].data(), &falls_);
    }
    void reseat(Chain &chain, EmissionParameters &emission) {
        emission.reseat(chain.states.data(), chain.bits);
        sticks_.reseat(chain);
    }

    std::vector<double> shapes_, falls_;
};

template <class Chain>
class StickBreakingSteps final : public StickBreaking<Chain> {
  public:
    // One sweep over all steps in random order.
    SweepCounts sweep(Chain &chain) override {
        EmissionParameters &emission = *chain.emission->parameters();
        this->draw_parameters(chain);
        emission.draw_parameters(chain.occupancy.data(), false, chain.bits);
        into_.resize(n_slots_);
        for (auto &column : into_) column.clear();
        for (int32_t k = kFirst; k < n_slots_; ++k)
            if (this->is_used(chain, k)) fill_column(chain, k);
        weights_.resize(n_slots_);
        ones_.assign(padded_, 1.0);
        cut_blocks(chain, 1, &order_);
        for (const int32_t t : order_) {
            if (chain.reserve(1)) grow(chain);
            step(chain, emission, t);
        }
        this->reseat(chain, emission);
        return {chain.n_steps, chain.n_steps};
    }

    size_t n_bytes() const override {
        size_t bytes = StickBreaking<Chain>::n_bytes() + into_.capacity() * sizeof(into_[0])
                       + (ones_.capacity() + weights_.q.capacity()) * sizeof(double)
                       + order_.capacity() * sizeof(int32_t);
        for (const auto &column : into_) bytes += column.capacity() * sizeof(double);
        return bytes;
    }

  private:
    using StickBreaking<Chain>::sticks_;
    using StickBreaking<Chain>::pi_;
    using StickBreaking<Chain>::n_slots_;
    using StickBreaking<Chain>::padded_;
    using StickBreaking<Chain>::shapes_;

    void grow(Chain &chain) {
        this->resize(chain);
        into_.resize(n_slots_);
        for (auto &column : into_)
            if (!column.empty()) column.resize(padded_, 0.0);
        weights_.resize(n_slots_);
        ones_.assign(padded_, 1.0);
    }
    void fill_column(Chain &chain, int32_t k) {
        into_[k].assign(padded_, 0.0);
        into_[k][kNew] = sticks_.beta[k];
        for (int32_t j = kFirst; j < n_slots_; ++j)
            if (this->is_used(chain, j)) into_[k][j] = pi_[j][k];
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
        this->fill_shapes(*chain.transitions);
        if (o >= 0) shapes_[o] += 1.0;
        this->draw_row(chain, k);
        for (int32_t l = kFirst; l < n_slots_; ++l)
            if (!into_[l].empty()) into_[l][k] = pi_[k][l];
        into_[k][kNew] = sticks_.beta[k];
        emission.draw_newborn(k, t, chain.bits);
    }

    std::vector<WideVector<double>> into_;  // into_[k][j] = pi_jk; beta_k in slot NEW
    WideVector<double> ones_;
    Weights weights_;
    std::vector<int32_t> order_;
};

template <class Chain>
class StickBreakingPaths final : public StickBreaking<Chain> {
  public:
    // One sweep over all sequences.
    SweepCounts sweep(Chain &chain) override {
        EmissionParameters &emission = *chain.emission->parameters();
        this->draw_parameters(chain);
        emission.draw_parameters(chain.occupancy.data(), true, chain.bits);
        first_rest_ = sticks_.beta[kNew];
        n_known_ = n_slots_;
        lists_.resize(n_slots_);
        for (List &list : lists_) list.parts.clear();
        heads_.assign(n_slots_, Head());
        sums_.assign(n_slots_, 0.0);
        reached_.resize(n_slots_ + 1);
        stick_of_.assign(n_slots_, -1);
        born_.clear();
        rests_.clear();
        n_parts_ = 0;
        pool_.assign(chain.free_slots.rbegin(), chain.free_slots.rend());
        cut(chain);
        path_.resize(chain.n_steps);
        for (int64_t t = 0; t < chain.n_steps;) {
            int64_t stop = t + 1;
            while (!chain.is_last(stop - 1)) ++stop;
            if (!filter(chain, emission, t, stop)) {
                // Only rounding can exclude the old path, which passes all slices.
                std::copy(chain.states.begin() + t, chain.states.begin() + stop,
                          path_.begin() + t);
            } else {
                draw_path(chain, t, stop);
            }
            t = stop;
        }
        for (int64_t t = 0; t < chain.n_steps; ++t) chain.assign(t, path_[t]);
        this->reseat(chain, emission);
        return {chain.n_steps, chain.n_steps};
    }

    size_t n_bytes() const override {
        size_t bytes = StickBreaking<Chain>::n_bytes() + lists_.capacity() * sizeof(List)
                       + heads_.capacity() * sizeof(Head)
                       + (rests_.capacity() + slices_.capacity() + sums_.capacity()
                          + values_.capacity() + logs_.capacity()) * sizeof(double)
                       + (pool_.capacity() + born_.capacity() + stick_of_.capacity()
                          + reached_.capacity() + states_.capacity() + path_.capacity())
                             * sizeof(int32_t)
                       + ends_.capacity() * sizeof(size_t);
        for (const List &list : lists_)
            bytes += list.entries.capacity() * sizeof(Entry)
                     + list.parts.capacity() * sizeof(double);
        return bytes;
    }

  private:
    using Transitions = typename Chain::Transitions;
    using StickBreaking<Chain>::sticks_;
    using StickBreaking<Chain>::pi_;
    using StickBreaking<Chain>::n_slots_;
    using StickBreaking<Chain>::shapes_;
    using StickBreaking<Chain>::falls_;

    struct Entry {
        double p;
        int32_t k;
    };
    // Part of a row that is drawn: its parts of the sticks 0, 1, ... so far, and all entries of
    // at least a bound, the most probable first.  A last one, less probable than any slice, ends
    // every loop.
    struct List {
        std::vector<Entry> entries;
        std::vector<double> parts;
    };
    struct Head {
        const Entry *entries = nullptr;
        double low = std::numeric_limits<double>::infinity();   // that bound
    };
    // A list that is extended is extended by this factor further than necessary.
    static constexpr double kFurther = 0.125;

    // Slices, in (0, pi] so that the old path passes however u is rounded.
    void cut(Chain &chain) {
        slices_.resize(chain.n_steps);
        for (int64_t t = 0; t < chain.n_steps; ++t)
            slices_[t] = pi_[chain.restaurant(t)][chain.states[t]]
                         * (1.0 - uniform(chain.bits));
    }
    void break_stick(Chain &chain) {
        if (born_.size() == kMostSticks) refuse_to_break(*chain.transitions);
        if (born_.size() == pool_.size()) {
            // The slots that growing adds are free ones that no state has.
            const int32_t before = n_slots_;
            chain.reserve(static_cast<int64_t>(chain.free_slots.size()) + 1);
            n_slots_ = chain.n_slots;
            sticks_.resize(n_slots_);
            pi_.resize(n_slots_);
            lists_.resize(n_slots_);
            heads_.resize(n_slots_);
            sums_.resize(n_slots_, 0.0);
            reached_.resize(n_slots_ + 1);
            stick_of_.resize(n_slots_, -1);
            for (int32_t k = before; k < n_slots_; ++k) pool_.push_back(k);
        }
        const int32_t k = pool_[born_.size()];
        stick_of_[k] = static_cast<int32_t>(born_.size());
        sticks_.break_off(chain, k);
        born_.push_back(k);
        rests_.push_back(sticks_.beta[kNew]);
    }
    // A newborn state without transitions: a row from the prior, before any stick broke.
    void draw_prior_row(Chain &chain, int32_t j) {
        const double alpha = chain.transitions->alpha;
        shapes_.resize(n_known_);
        for (int32_t k = 0; k < n_known_; ++k)
            shapes_[k] = stick_of_[k] < 0 ? alpha * sticks_.beta[k] : 0.0;
        shapes_[kNew] = alpha * first_rest_;
        pi_[j].assign(n_known_, 0.0);
        draw_dirichlet(chain.bits, n_known_, shapes_.data(), pi_[j].data(), &falls_);
    }
    // Make row j's list complete down to u.
    SKIHMM_NOINLINE void extend(Chain &chain, int32_t j, double u) {
        const double alpha = chain.transitions->alpha;
        if (pi_[j].empty()) draw_prior_row(chain, j);
        // A slice of zero, after underflow of a probability, must not give an endless loop.
        const double low = std::max(kFurther * u, 1e-300);
        double rest = pi_[j][kNew];
        while (rest >= low) {
            const size_t next = lists_[j].parts.size();
            if (next == born_.size()) break_stick(chain);
            const double a = alpha * sticks_.beta[born_[next]], b = alpha * rests_[next];
            double share = 1.0, others = 0.0;
            if (a > 0.0 || b > 0.0) share = draw_beta(chain.bits, a, b, &others);
            if (++n_parts_ > kMostParts) refuse_to_break(*chain.transitions);
            lists_[j].parts.push_back(rest * share);
            rest *= others;
        }
        pi_[j][kNew] = rest;
        const double *row = pi_[j].data();
        const std::vector<double> &parts = lists_[j].parts;
        List &list = lists_[j];
        list.entries.clear();
        for (int32_t k = kFirst; k < n_known_; ++k)
            if (row[k] >= low) list.entries.push_back(Entry{row[k], k});
        for (size_t b = 0; b < parts.size(); ++b)
            if (parts[b] >= low) list.entries.push_back(Entry{parts[b], born_[b]});
        std::sort(list.entries.begin(), list.entries.end(),
                  [](const Entry &a, const Entry &b) { return a.p > b.p; });
        list.entries.push_back(Entry{-1.0, kNew});
        heads_[j].entries = list.entries.data();
        heads_[j].low = std::min(low, u);
    }
    static constexpr double kLeastValue = std::numeric_limits<double>::min();

    // pi_jk, or zero if it is not drawn because it is too small to pass any slice.
    double transition(int32_t j, int32_t k) const {
        const int32_t b = stick_of_[k];
        if (b < 0) return pi_[j][k];
        const std::vector<double> &parts = lists_[j].parts;
        return static_cast<size_t>(b) < parts.size() ? parts[b] : 0.0;
    }
    // Spread f over the successors of row j.  There is no branch on states that are reached for
    // the first time, because it would be unpredictable.
    SKIHMM_INLINE void spread(Chain &chain, int32_t j, double f, double u) {
        if (SKIHMM_UNLIKELY(u < heads_[j].low)) extend(chain, j, u);
        double *sums = sums_.data();
        int32_t *reached = reached_.data(), n = n_reached_;
        for (const Entry *entry = heads_[j].entries; entry->p >= u; ++entry) {
            const int32_t k = entry->k;
            const double sum = sums[k];
            reached[n] = k;
            n += !(sum > 0.0);
            sums[k] = sum + f;
        }
        n_reached_ = n;
    }
    // Forward messages of steps [start, stop), as lists of the states that are possible.
    bool filter(Chain &chain, EmissionParameters &emission, int64_t start,
                int64_t stop) {
        ends_.clear();
        size_t begin = 0, end = 0;
        for (int64_t t = start; t < stop; ++t) {
            n_reached_ = 0;
            if (t == start) {
                spread(chain, kStart, 1.0, slices_[t]);
            } else {
                for (size_t at = begin; at < end; ++at)
                    spread(chain, states_[at], values_[at], slices_[t]);
            }
            begin = end;
            if (states_.size() < begin + n_reached_) {
                states_.resize(2 * (begin + n_reached_));
                values_.resize(2 * (begin + n_reached_));
            }
            end = emission.is_table() ? multiply_column(chain, emission, t, begin)
                                   : multiply_any(chain, emission, t, begin);
            double total = 0.0;
            for (size_t at = begin; at < end; ++at) total += values_[at];
            if (!(total > 0.0)) return false;
            // Never to zero: for spread a state with sum zero has not been reached before.
            const double scale = 1.0 / total;
            for (size_t at = begin; at < end; ++at)
                values_[at] = std::max(values_[at] * scale, kLeastValue);
            ends_.push_back(end);
        }
        return true;
    }
    // Messages times the probability of y[t], from place `at` on; returns their end.
    size_t multiply_column(Chain &chain, EmissionParameters &emission, int64_t t,
                           size_t at) {
        const double *probs = emission.likelihoods(t, chain.occupancy.data());
        double *sums = sums_.data(), *values = values_.data();
        int32_t *states = states_.data();
        for (int32_t i = 0; i < n_reached_; ++i) {
            const int32_t k = reached_[i];
            double p = probs[k];
            if (SKIHMM_UNLIKELY(p < 0.0)) p = std::exp(emission.log_likelihood(t, k, chain.bits));
            states[at] = k;
            values[at] = sums[k] * p;
            at += values[at] > 0.0;
            sums[k] = 0.0;
        }
        return at;
    }
    size_t multiply_any(Chain &chain, EmissionParameters &emission, int64_t t,
                        size_t at) {
        logs_.clear();
        double largest = -std::numeric_limits<double>::infinity();
        for (int32_t i = 0; i < n_reached_; ++i) {
            logs_.push_back(emission.log_likelihood(t, reached_[i], chain.bits));
            largest = std::max(largest, logs_.back());
        }
        for (int32_t i = 0; i < n_reached_; ++i) {
            const int32_t k = reached_[i];
            const double value = sums_[k] * std::exp(logs_[i] - largest);
            sums_[k] = 0.0;
            if (!(value > 0.0)) continue;
            states_[at] = k;
            values_[at++] = value;
        }
        return at;
    }
    // Backward: a state is possible if its transition to the next one passes the slice.
    void draw_path(Chain &chain, int64_t start, int64_t stop) {
        int32_t next = -1;
        for (int64_t t = stop; t-- > start;) {
            const size_t begin = t > start ? ends_[t - start - 1] : 0,
                         end = ends_[t - start];
            double total = 0.0;
            for (size_t at = begin; at < end; ++at) {
                if (next >= 0 && !(transition(states_[at], next) >= slices_[t + 1]))
                    values_[at] = 0.0;
                total += values_[at];
            }
            double u = uniform(chain.bits) * total;
            for (size_t at = begin; at < end; ++at) {
                if (!(values_[at] > 0.0)) continue;
                next = states_[at];
                if (u < values_[at]) break;
                u -= values_[at];
            }
            path_[t] = next;
        }
    }

    int32_t n_known_ = 0;                   // slots at the start of the sweep
    double first_rest_ = 0.0;               // beta_u there
    size_t n_parts_ = 0;                    // of sticks, in all rows
    std::vector<int32_t> pool_, born_;      // free slots; those given to newborn states
    std::vector<int32_t> stick_of_;         // place in born_, or -1
    std::vector<double> rests_;             // beta_u after each of these births
    std::vector<List> lists_;               // by row
    std::vector<Head> heads_;               // by row: where the walks begin
    std::vector<double> slices_;            // by step
    std::vector<double> sums_;              // by slot, zero between steps
    std::vector<int32_t> reached_;          // by this step, the first n_reached_
    int32_t n_reached_ = 0;
    std::vector<int32_t> states_;           // messages, step after step
    std::vector<double> values_, logs_;
    std::vector<size_t> ends_;
    std::vector<int32_t> path_;
};

}  // namespace skihmm
