// Single steps drawn among the states of a set S, piece by piece, given the transition
// probabilities and the emission's parameters: _stick_breaking_steps.hpp has the proof.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_emission.hpp"
#include "_pieces.hpp"
#include "_random.hpp"
#include "_slots.hpp"
#include "_vector.hpp"
#include "_weights.hpp"

namespace skihmm {

// Rows by slot, whole vectors of sixteen; empty for slots without a state.
using TransitionRows = std::vector<WideVector<double>>;

class RestrictedSteps {
  public:
    // Before the pieces of a half: staying[k] > 0 for the states of S; pi of the listed states.
    void restrict_to(const std::vector<int32_t> &staying, const TransitionRows &pi,
                     const std::vector<int32_t> &states, int32_t n_workers) {
        const int32_t n_slots = static_cast<int32_t>(staying.size());
        const size_t padded = pi[kStart].size();
        staying_ = staying;
        inside_.clear();
        for (int32_t k = kFirst; k < n_slots; ++k)
            if (staying[k] > 0) inside_.push_back(k);
        // Rows in which all other states have probability zero.
        within_.resize(n_slots);
        for (const int32_t j : states) {
            within_[j].assign(padded, 0.0);
            for (const int32_t k : inside_) within_[j][k] = pi[j][k];
        }
        ones_.assign(padded, 1.0);
        scratch_.resize(n_workers);
        for (Scratch &scratch : scratch_) {
            scratch.weights.resize(n_slots);
            scratch.probs.assign(padded, 0.0);
            scratch.logs.assign(padded, 0.0);
            scratch.gained.assign(n_slots, 0);
        }
    }
    // Draw the free steps of a piece, by thread `worker`; into[k] is the column of pi of state k.
    void draw(Chain &chain, const EmissionParameters &emission, const Piece &piece,
              const TransitionRows &into, int32_t worker, bitgen_t *g) {
        Scratch *scratch = &scratch_[worker];
        if (emission.is_table()) draw_piece<true>(chain, emission, piece, into, scratch, g);
        else draw_piece<false>(chain, emission, piece, into, scratch, g);
    }
    // Add the steps that states have gained in the pieces drawn since.
    void add_gained(std::vector<int32_t> *occupancy) const {
        for (const Scratch &scratch : scratch_)
            for (size_t k = 0; k < scratch.gained.size(); ++k)
                (*occupancy)[k] += scratch.gained[k];
    }

    size_t n_bytes() const {
        size_t bytes = within_.capacity() * sizeof(within_[0])
                       + ones_.capacity() * sizeof(double)
                       + (staying_.capacity() + inside_.capacity()) * sizeof(int32_t);
        for (const auto &row : within_) bytes += row.capacity() * sizeof(double);
        for (const Scratch &scratch : scratch_)
            bytes += (scratch.weights.q.capacity() + scratch.probs.capacity()
                      + scratch.logs.capacity()) * sizeof(double)
                     + (scratch.order.capacity() + scratch.gained.capacity())
                           * sizeof(int32_t);
        return bytes;
    }

  private:
    // Scratch of one thread.
    struct Scratch {
        Weights weights;
        WideVector<double> probs;       // by slot
        std::vector<double> logs;
        std::vector<int32_t> order;     // of the steps of a piece
        std::vector<int32_t> gained;    // steps, by slot
    };

    template <bool kIsTable>
    void draw_piece(Chain &chain, const EmissionParameters &emission, const Piece &piece,
                    const TransitionRows &into, Scratch *scratch, bitgen_t *g) const {
        Scratch &s = *scratch;
        s.order.resize(piece.held - piece.start);
        for (size_t i = 0; i < s.order.size(); ++i) {
            const int64_t other = below(g, static_cast<int64_t>(i) + 1);
            s.order[i] = s.order[other];
            s.order[other] = static_cast<int32_t>(i);
        }
        for (const int32_t at : s.order) {
            const int64_t t = piece.start + at;
            const int32_t i = chain.previous(t), x = chain.states[t], o = chain.successor(t);
            if (staying_[x] == 0) continue;  // planted: states that may empty
            // planted: ends of pieces
            const double *row = within_[i].data(),
                         *out = o >= 0 ? into[o].data() : ones_.data(),
                         *probs = kIsTable ? emission.table_row(t) : fill_probs(emission, t, &s);
            if (kIsTable && !probs) probs = ones_.data();
            product_weights(s.weights.n, x, row, out, probs, s.weights.q.data(),
                            s.weights.lanes);
            const double old = row[x] * out[x] * probs[x],
                         u = uniform(g) * (old + s.weights.total());
            if (u < old) continue;
            const int32_t k = s.weights.at(u - old);
            if (k < 0) continue;
            --s.gained[x];
            ++s.gained[k];
            chain.states[t] = k;
        }
    }
    // p(y[t] | k) of the states of S, up to a factor; entries of other states are finite.
    const double *fill_probs(const EmissionParameters &emission, int64_t t, Scratch *s) const {
        const int32_t n = static_cast<int32_t>(inside_.size());
        // The place of the weights, which are computed from the returned values.
        double *logs = s->logs.data(), *probs = s->weights.q.data();
        emission.fill_log_likelihoods(t, inside_.data(), n, logs);
        // Whole vectors of eight.
        fill_exp((n + 7) / 8 * 8, logs, *std::max_element(logs, logs + n), kLeastLog, probs);
        for (int32_t i = 0; i < n; ++i)
            s->probs[inside_[i]] = logs[i] > -INFINITY ? probs[i] : 0.0;
        return s->probs.data();
    }

    TransitionRows within_;                 // pi of the states of S, zero elsewhere
    std::vector<int32_t> staying_, inside_; // as given; S
    WideVector<double> ones_;
    std::vector<Scratch> scratch_;          // by thread
};

}  // namespace skihmm
