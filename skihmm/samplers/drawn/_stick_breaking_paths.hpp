// The beam with explicit parameters (Van Gael, Saatci, Teh and Ghahramani 2008), drawn in pieces
// by threads side by side.
//
// _sticks.hpp has the cycle; this is its middle.  The state space is finite and fixed before any
// path is drawn:
//
//   1. beta, the rows pi_j of the occupied states and of the start: given x and the seating.
//   2. A slice for every transition of x: u_t uniform on (0, pi(x[t-1], x[t])]; u = min u_t.
//   3. Sticks are broken until the rest pi_ju of every row is below u: of the rows of step 1 and
//      of the rows of new states that such a row enters with probability >= u, whose own rows
//      are drawn from their prior.  No other new state can be entered by any transition that
//      passes a slice, as a transition from a row j to a state that is not broken, or to one of
//      which row j has not drawn its part, has at most the probability pi_ju < u <= u_t.
//   4. phi of all these states, for new states from the prior.
//   5. x, piece by piece, by forward filtering and backward sampling over the transitions that
//      pass their slices.  A piece is a whole sequence; or every (block_size + 1)-th step is
//      held, from a first one that is uniform on 0 .. block_size and so does not depend on x,
//      and pieces lie between two held steps.
//   6. Counts, the seatings and the emission's statistics.
//
// Steps 2 to 5 leave p(x, u, beta, pi, phi | y) invariant.  2 draws u from its conditional
// distribution.  In 3 and 4, given x, u and the rests, the parts of the rests and the parameters
// of states without steps still have their prior distribution, because neither x nor u depends on
// them; where breaking stops is decided by parts that are drawn already and by u.  In 5, with
// u, pi and phi fixed, the conditional distribution of x is proportional to
//     prod_t 1[pi(x[t-1], x[t]) >= u_t] p(y[t] | phi of x[t]),
// where pi_jk has dropped out against the density 1 / pi_jk of u_t.  Every factor joins steps t - 1
// and t only.  So given the held steps the pieces are independent: each has the factors into its
// steps, including the factor from the held step before it, and the factor into the held step after
// it, with the slice of *that* transition.  All slices belong to the path before the sweep: no
// piece changes a factor of another piece, so no slice has to be drawn again.
//
// Pieces, and the streams of random numbers that belong to each piece, row and group of states,
// do not depend on the number of threads, and so neither do the draws.
#pragma once
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "_pair_counts.hpp"
#include "_pieces.hpp"
#include "_rcd.hpp"
#include "_sliced_paths.hpp"
#include "_sticks.hpp"
#include "_workers.hpp"

namespace skihmm {

// A sweep that needs more ends with an error, or it would go on for hours and take all memory.  A
// sweep needs about (1 + gamma) log(1 / least slice) sticks: their limit is reached near
// gamma = 2,000, the limit of parts earlier if alpha is large; every reached row breaks each stick
// anew, at eight bytes, or 24 if its part passes a slice.
static constexpr size_t kMostSticks = size_t{1} << 15, kMostParts = size_t{1} << 26;
// Labels and seating are still as before the sweep.
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

class StickBreakingPaths final : public Kernel {
  public:
    // A block size of zero: whole sequences.
    StickBreakingPaths(int64_t block_size, int32_t n_workers)
        : block_size_(block_size), workers_(n_workers) {}

    // One sweep over all steps; few steps are held.
    SweepCounts sweep(Chain &chain) override {
        EmissionParameters &emission = *chain.emission->parameters();
        begin(chain);
        cut(chain);
        break_rows(chain);
        draw_emission(chain, emission, states_, workers_);
        draw_pieces(chain, emission);
        end(chain, emission);
        return {chain.n_steps, chain.n_steps};
    }

    size_t n_bytes() const override {
        size_t bytes = sticks_.n_bytes() + paths_.n_bytes() + rows_.capacity() * sizeof(Row)
                       + (rests_.capacity() + sticks_of_new_.capacity() + least_.capacity())
                             * sizeof(double)
                       + (states_.capacity() + slot_of_.capacity() + stick_of_.capacity()
                          + pool_.capacity() + path_.capacity()) * sizeof(int32_t)
                       + pieces_.capacity() * sizeof(Piece);
        for (const Row &row : rows_)
            bytes += (row.known.capacity() + row.parts.capacity()) * sizeof(double);
        return bytes;
    }

  private:
    using Transitions = HCRPTransitions;

    struct Row {
        bool is_drawn = false;
        std::vector<double> known;      // by slot, of the states of step 1
        std::vector<double> parts;      // of the sticks 0, 1, ... so far
        size_t n_entered = 0;           // parts that break_rows has looked at
        double rest = 0.0;
        TaskStream stream{0, 0, 0};
    };

    // ---- step 1

    // A row given its transitions, none of them for new states.
    void draw_row(const Chain &chain, int32_t j) {
        const Transitions &s = *chain.transitions;
        std::vector<double> shapes, falls;
        sticks_.fill_shapes(s, &shapes);
        shapes[kNew] = s.alpha * first_rest_;  // planted: rest of a row
        const Line &line = s.row(j);
        // planted: counts of the beam
        for (int32_t at = 0; at < line.size; ++at) shapes[line.ids[at]] += line.counts[at];
        Row &row = rows_[j];
        row.stream = row_streams_[j];  // planted: streams of rows of the beam
        bitgen_t bits = row.stream.bits();
        row.known.resize(n_known_);
        draw_dirichlet(&bits, n_known_, shapes.data(), row.known.data(), &falls);
        row.rest = row.known[kNew];
        row.known[kNew] = 0.0;
        row.is_drawn = true;
    }
    void begin(Chain &chain) {
        sticks_.draw(chain);
        first_rest_ = sticks_.beta[kNew];
        n_known_ = chain.n_slots;
        sticks_of_new_.clear();
        rests_.clear();
        slot_of_.clear();
        stick_of_.assign(n_known_, -1);
        pool_.assign(chain.free_slots.rbegin(), chain.free_slots.rend());
        n_new_ = 0;
        states_.assign(1, kStart);
        for (int32_t k = kFirst; k < n_known_; ++k)
            if (chain.occupancy[k] > 0) states_.push_back(k);
        set_rows(n_known_);
        row_streams_ = TaskStreams(chain.bits);
        workers_.run(states_.size(), [&](int64_t i, int32_t) { draw_row(chain, states_[i]); });
        set_pieces(chain);
    }
    void set_rows(int32_t n) {
        if (rows_.size() < static_cast<size_t>(n)) rows_.resize(n);
        for (Row &row : rows_) {
            row.is_drawn = false;
            row.parts.clear();
            row.n_entered = 0;
        }
    }

    // ---- pieces

    void set_pieces(Chain &chain) {
        if (block_size_ > 0) {
            cut_pieces(chain, block_size_, &pieces_);
        } else if (pieces_.empty()) {
            for (int64_t start = 0, stop; start < chain.n_steps; start = stop) {
                for (stop = start + 1; !chain.first[stop];) ++stop;
                pieces_.push_back({start, stop, stop});
            }
        }
    }

    // ---- step 2

    void cut(Chain &chain) {
        paths_.set_steps(chain.n_steps);
        least_.resize(pieces_.size());
        const TaskStreams cuts(chain.bits);
        workers_.run(pieces_.size(), [&](int64_t piece, int32_t) {
            TaskStream stream = cuts[piece];
            bitgen_t bits = stream.bits();
            least_[piece] = paths_.cut(
                chain, pieces_[piece],
                [&](int32_t j, int32_t k) { return rows_[j].known[k]; }, &bits);
        });
        // A slice of zero, after underflow of a probability, must not give an endless loop.
        // planted: lowest slice
        low_ = std::max(*std::min_element(least_.begin(), least_.end()), 1e-300);
    }

    // ---- step 3

    void break_rows(Chain &chain) {
        std::vector<int32_t> pending = states_, next;
        size_t n_parts = 0;
        while (!pending.empty()) {  // planted: sticks to break
            workers_.run(pending.size(),
                         [&](int64_t i, int32_t) { break_row(chain, pending[i]); });
            next.clear();
            for (const int32_t j : pending) {
                n_parts += rows_[j].parts.size() - rows_[j].n_entered;
                if (rows_[j].rest >= low_) next.push_back(j);
            }
            const bool breaks = !next.empty();
            const size_t n_states = states_.size();
            for (const int32_t j : pending) enter(chain, j);
            if (n_parts > kMostParts || states_.size() * states_.size() > kMostParts)
                refuse_to_break(*chain.transitions);
            next.insert(next.end(), states_.begin() + n_states, states_.end());
            for (size_t n = breaks ? std::max<size_t>(16, rests_.size() / 4) : 0; n > 0; --n) {
                if (rests_.size() == kMostSticks) refuse_to_break(*chain.transitions);
                sticks_of_new_.push_back(sticks_.break_off(chain));
                rests_.push_back(sticks_.beta[kNew]);
                slot_of_.push_back(-1);
            }
            pending.swap(next);
        }
    }
    // Break the row as far as there are sticks.
    void break_row(const Chain &chain, int32_t j) {
        Row &row = rows_[j];
        if (!row.is_drawn) draw_row(chain, j);
        const double alpha = chain.transitions->alpha;
        bitgen_t bits = row.stream.bits();
        while (row.rest >= low_ && row.parts.size() < rests_.size()) {
            const size_t b = row.parts.size();
            const double stick = alpha * sticks_of_new_[b], rest = alpha * rests_[b];
            double share = 1.0, others = 0.0;
            if (stick > 0.0 || rest > 0.0) share = draw_beta(&bits, stick, rest, &others);
            row.parts.push_back(row.rest * share);
            row.rest *= others;
        }
    }
    // Give slots to the new states that row j enters.
    void enter(Chain &chain, int32_t j) {
        for (; rows_[j].n_entered < rows_[j].parts.size(); ++rows_[j].n_entered) {
            const size_t b = rows_[j].n_entered;
            if (!(rows_[j].parts[b] >= low_) || slot_of_[b] >= 0) continue;
            if (n_new_ == pool_.size()) {
                // Growing adds free slots, which no state has.
                const int32_t before = chain.n_slots;
                chain.reserve(static_cast<int64_t>(chain.free_slots.size()) + 1);
                stick_of_.resize(chain.n_slots, -1);
                rows_.resize(std::max<size_t>(rows_.size(), chain.n_slots));
                for (int32_t k = before; k < chain.n_slots; ++k) pool_.push_back(k);
            }
            const int32_t k = pool_[n_new_++];
            slot_of_[b] = k;
            stick_of_[k] = static_cast<int32_t>(b);
            states_.push_back(k);
        }
    }
    double transition(int32_t j, int32_t k) const {
        const Row &row = rows_[j];
        const int32_t b = stick_of_[k];
        if (b < 0) return row.known[k];
        return static_cast<size_t>(b) < row.parts.size() ? row.parts[b] : 0.0;
    }
    // ---- step 5

    void draw_pieces(Chain &chain, const EmissionParameters &emission) {
        path_.resize(chain.n_steps);
        const auto probability = [&](int32_t j, int32_t k) { return transition(j, k); };
        const TaskStreams streams(chain.bits);
        paths_.set_transitions(states_, chain.n_slots, low_, workers_, probability);
        (emission.is_concurrent() ? workers_ : Workers(1))
            .run(pieces_.size(), [&](int64_t piece, int32_t worker) {
                TaskStream stream = streams[piece];  // planted: streams of pieces of the beam
                bitgen_t bits = stream.bits();
                paths_.draw(chain, emission, pieces_[piece], worker, path_.data(), &bits);
            });
    }

    // ---- step 6

    void end(Chain &chain, EmissionParameters &emission) {
        const PairCounts counts = count_transitions(chain, path_, workers_);
        const int32_t n_slots = chain.n_slots;
        std::vector<int32_t> occupancy(n_slots, 0);
        for (size_t i = 0; i < counts.dishes.size(); ++i)
            occupancy[counts.dishes[i]] += counts.counts[i];
        chain.replace_path(&path_, occupancy);
        emission.reseat(chain.states.data(), workers_, chain.bits);
        sticks_.resize(n_slots);
        for (size_t b = 0; b < slot_of_.size(); ++b)
            if (slot_of_[b] >= 0) sticks_.beta[slot_of_[b]] = sticks_of_new_[b];
        sticks_.reseat(chain, counts);
    }

    const int64_t block_size_;
    const Workers workers_;
    Sticks sticks_;
    SlicedPaths paths_;
    double first_rest_ = 0.0;               // beta_u before any stick is broken
    int32_t n_known_ = 0;                   // slots at the start of the sweep
    std::vector<double> sticks_of_new_, rests_;     // beta of new states; beta_u after each
    std::vector<int32_t> slot_of_;          // by stick, -1: no row enters it
    std::vector<int32_t> stick_of_;         // by slot, or -1
    std::vector<int32_t> pool_;             // free slots
    size_t n_new_ = 0;                      // of these in use
    std::vector<int32_t> states_;           // the start, occupied states, new states
    std::vector<Row> rows_;                 // by slot
    TaskStreams row_streams_;
    std::vector<Piece> pieces_;
    std::vector<double> least_;             // slices, by piece
    double low_ = 0.0;                      // u
    std::vector<int32_t> path_;
};

}  // namespace skihmm
