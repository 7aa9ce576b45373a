// Paths of the beam given the transition probabilities, the emission's parameters and a slice for
// every step, piece by piece: _stick_breaking_paths.hpp has the proof.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "_emission.hpp"
#include "_pieces.hpp"
#include "_platform.hpp"
#include "_random.hpp"
#include "_slots.hpp"
#include "_workers.hpp"

namespace skihmm {

class SlicedPaths {
  public:
    // Room for the slices of n steps.
    void set_steps(int64_t n) { slices_.resize(n); }
    // Draw the slices of a piece, below the probabilities of its transitions; returns the least.
    template <class Probability>
    double cut(const Chain &chain, const Piece &piece, Probability probability, bitgen_t *g) {
        double least = 1.0;
        for (int64_t t = piece.start; t < piece.stop; ++t) {  // planted: new slices
            slices_[t] = probability(chain.previous(t), chain.states[t]) * (1.0 - uniform(g));
            least = std::min(least, slices_[t]);
        }
        return least;
    }
    // Transitions: rows of the listed states, the start first, as lists of probabilities of at
    // least `low`, which is at most the least slice; and columns side by side.
    template <class Probability>
    void set_transitions(const std::vector<int32_t> &states, int32_t n_slots, double low,
                         const Workers &workers, Probability probability) {
        n_slots_ = n_slots;
        into_.resize(static_cast<size_t>(n_slots) * n_slots);
        if (rows_.size() < static_cast<size_t>(n_slots)) rows_.resize(n_slots);
        heads_.assign(n_slots, nullptr);
        workers.run(states.size(), [&](int64_t i, int32_t) {
            const int32_t state = states[i];
            std::vector<Entry> &entries = rows_[state];
            entries.clear();
            double *column = &into_[static_cast<size_t>(state) * n_slots];
            for (const int32_t other : states) {
                const double p = probability(state, other);
                if (other != kStart && p >= low) entries.push_back(Entry{p, other});
                if (state != kStart) column[other] = probability(other, state);
            }
            std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
                return a.p > b.p || (a.p == b.p && a.k < b.k);
            });
            entries.push_back(Entry{-1.0, kNew});
            heads_[state] = entries.data();
        });
        scratch_.resize(workers.size());
        for (Scratch &scratch : scratch_) {
            scratch.sums.assign(n_slots, 0.0);
            scratch.reached.resize(n_slots + 1);
        }
    }
    // Draw a piece by thread `worker`; path[t] is the label of step t.
    void draw(const Chain &chain, const EmissionParameters &emission, const Piece &piece,
              int32_t worker, int32_t *path, bitgen_t *g) {
        Scratch *scratch = &scratch_[worker];
        if (emission.is_table()) draw_piece<true>(chain, emission, piece, scratch, path, g);
        else draw_piece<false>(chain, emission, piece, scratch, path, g);
    }

    size_t n_bytes() const {
        size_t bytes = (slices_.capacity() + into_.capacity()) * sizeof(double);
        for (const auto &row : rows_) bytes += row.capacity() * sizeof(Entry);
        for (const Scratch &scratch : scratch_)
            bytes += (scratch.sums.capacity() + scratch.values.capacity()
                      + scratch.logs.capacity()) * sizeof(double)
                     + (scratch.reached.capacity() + scratch.states.capacity())
                           * sizeof(int32_t)
                     + scratch.ends.capacity() * sizeof(size_t);
        return bytes;
    }

  private:
    struct Entry {
        double p;
        int32_t k;
    };
    // Scratch of one thread.
    struct Scratch {
        std::vector<double> sums;           // by slot, zero between steps
        std::vector<int32_t> reached;       // by this step, the first n_reached
        int32_t n_reached = 0;
        std::vector<int32_t> states;        // messages, step after step
        std::vector<double> values, logs;
        std::vector<size_t> ends;
    };
    static constexpr double kLeastValue = std::numeric_limits<double>::min();

    template <bool kIsTable>
    void draw_piece(const Chain &chain, const EmissionParameters &emission, const Piece &piece,
                    Scratch *scratch, int32_t *path, bitgen_t *g) {
        const int64_t held = piece.held;
        for (int64_t start = piece.start; start < held;) {
            int64_t stop = start + 1;
            while (stop < held && !chain.first[stop]) ++stop;
            const int32_t follower = chain.successor(stop - 1);  // planted: end of a piece
            if (!filter<kIsTable>(emission, start, stop, chain.previous(start), scratch)
                || !draw_path(start, stop, follower, scratch, path, g)) {
                // Only rounding can exclude the old path, which passes all slices.
                std::copy(chain.states.begin() + start, chain.states.begin() + stop,
                          path + start);
            }
            start = stop;
        }
        if (held < piece.stop) path[held] = chain.states[held];
    }
    // Forward messages of steps [start, stop), as lists of the states that are possible.
    template <bool kIsTable>
    bool filter(const EmissionParameters &emission, int64_t start, int64_t stop,
                int32_t before, Scratch *scratch) const {
        Scratch &s = *scratch;
        s.ends.clear();
        size_t begin = 0, end = 0;
        for (int64_t t = start; t < stop; ++t) {
            s.n_reached = 0;
            if (t == start) {
                spread(before, 1.0, slices_[t], &s);
            } else {
                for (size_t at = begin; at < end; ++at)
                    spread(s.states[at], s.values[at], slices_[t], &s);
            }
            begin = end;
            if (s.states.size() < begin + s.n_reached) {
                s.states.resize(2 * (begin + s.n_reached));
                s.values.resize(2 * (begin + s.n_reached));
            }
            end = multiply<kIsTable>(emission, t, begin, &s);
            double total = 0.0;
            for (size_t at = begin; at < end; ++at) total += s.values[at];
            if (!(total > 0.0)) return false;
            // Never to zero: for spread a state with sum zero has not been reached before.
            const double scale = 1.0 / total;
            for (size_t at = begin; at < end; ++at)
                s.values[at] = std::max(s.values[at] * scale, kLeastValue);
            s.ends.push_back(end);
        }
        return true;
    }
    // Spread f over the successors of row j.
    SKIHMM_INLINE void spread(int32_t j, double f, double u, Scratch *s) const {
        double *sums = s->sums.data();
        int32_t *reached = s->reached.data(), n = s->n_reached;
        for (const Entry *entry = heads_[j]; entry->p >= u; ++entry) {
            const int32_t k = entry->k;
            const double sum = sums[k];
            reached[n] = k;
            n += !(sum > 0.0);
            sums[k] = sum + f;
        }
        s->n_reached = n;
    }
    // Messages times the probability of y[t], from place `at` on; returns their end.
    template <bool kIsTable>
    size_t multiply(const EmissionParameters &emission, int64_t t, size_t at,
                    Scratch *scratch) const {
        Scratch &s = *scratch;
        const double *probs = kIsTable ? emission.table_row(t) : nullptr;
        double largest = 0.0;
        if (!kIsTable) {
            s.logs.resize(s.n_reached);
            emission.fill_log_likelihoods(t, s.reached.data(), s.n_reached, s.logs.data());
            largest = -std::numeric_limits<double>::infinity();
            for (int32_t i = 0; i < s.n_reached; ++i) largest = std::max(largest, s.logs[i]);
        }
        for (int32_t i = 0; i < s.n_reached; ++i) {
            const int32_t k = s.reached[i];
            double p = 1.0;
            if (!kIsTable) p = std::exp(s.logs[i] - largest);
            else if (probs) p = probs[k];
            const double value = s.sums[k] * p;
            s.sums[k] = 0.0;
            s.states[at] = k;
            s.values[at] = value;
            at += value > 0.0;
        }
        return at;
    }
    // Backward: a state is possible if its transition to the next state passes the slice.
    bool draw_path(int64_t start, int64_t stop, int32_t next, Scratch *scratch, int32_t *path,
                   bitgen_t *g) const {
        Scratch &s = *scratch;
        for (int64_t t = stop; t-- > start;) {
            const size_t begin = t > start ? s.ends[t - start - 1] : 0,
                         end = s.ends[t - start];
            double total = 0.0;
            if (next >= 0) {
                const double *column = &into_[static_cast<size_t>(next) * n_slots_];
                const double slice = slices_[t + 1];
                for (size_t at = begin; at < end; ++at) {
                    if (!(column[s.states[at]] >= slice)) s.values[at] = 0.0;
                    total += s.values[at];
                }
            } else {
                for (size_t at = begin; at < end; ++at) total += s.values[at];
            }
            if (!(total > 0.0)) return false;
            double u = uniform(g) * total;
            for (size_t at = begin; at < end; ++at) {
                if (!(s.values[at] > 0.0)) continue;
                next = s.states[at];
                if (u < s.values[at]) break;
                u -= s.values[at];
            }
            path[t] = next;
        }
        return true;
    }

    int32_t n_slots_ = 0;
    std::vector<double> slices_;            // by step
    // By slot.  All of at least `low`, the most probable first; a last entry, less probable than
    // any slice, ends every loop.
    std::vector<std::vector<Entry>> rows_;
    std::vector<const Entry *> heads_;
    std::vector<double> into_;              // into_[k * n_slots_ + j] = pi_jk
    std::vector<Scratch> scratch_;          // by thread
};

}  // namespace skihmm
