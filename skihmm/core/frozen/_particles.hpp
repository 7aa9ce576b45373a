// Particle filter over seatings (arXiv 1106.0474, Sections 3.3 and 5): sequential sampling
// of states with the seating updated along the way, for initial paths and for adaptive
// held-out prediction.
//
// Particles with the same history share the weights of its next step too, which are most of the
// work.  Every particle draws its next state and tables for itself; particles with equal draws
// continue to share, and for every other outcome the history is copied.  So the results are bit for
// bit the results without sharing, except for weights of rows, which particles with equal draws
// share: that changes the variance of estimates, not their expectation.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "_particle_counts.hpp"
#include "_particle_history.hpp"

namespace skihmm {

class ParticleFilter {
  public:
    // Particles that start from some counts.
    ParticleFilter(int32_t n_particles, ParticleCounts &&counts)
        : n_particles_(n_particles), counts_(std::move(counts)) {}

    // `run` and `simulate` return a tenth of a second after this, with the first step that is
    // left, so that a caller can look whether the user has pressed Ctrl-C.
    void start_slice() { slice_ = Slice(); }
    // From this step on one particle, drawn by weight, goes on alone.
    void set_filtered(int64_t n_steps) { n_filtered_ = n_steps; }
    // Begin with the root's counts, whatever was run before: one history for all particles.  The
    // first step is drawn after `restaurant`, unless a sequence begins there.
    void begin(int32_t restaurant) {
        histories_.unfold_all([&](const Generation &part) { counts_.fold(part, -1); });
        const size_t n = n_particles_;
        History &start = histories_.begin(n);
        start = counts_.root();
        counts_.enter(&start, restaurant);
        next_.resize(n);
        weights_.assign(n, 1.0 / n_particles_);
        history_of_.assign(n, 0);
    }

    // Filter rows of `codes` (-1: missing) and of `values` (NaN: missing), the columns of symbols
    // and of families, from step t on.  A step with first[t] starts from the start restaurant.
    // Unless null, log_predictive[t] = log of sum_p W_p l_p, the predictive probability of row t
    // before it is used.  Without `finish` the last row is only predicted, not seated, and there is
    // no path to draw.
    int64_t run(const int32_t *codes, const double *values, int64_t t, int64_t n_steps,
                const uint8_t *first, bool finish, double *log_predictive, bitgen_t *g) {
        const std::vector<int32_t> &live = histories_.live();
        for (; t < n_steps && goes_on(); ++t) {
            if (t == n_filtered_) keep_one(g);
            const int32_t *row = codes + t * counts_.n_columns();
            const double *y = counts_.complete(values + t * counts_.n_values());
            if (first[t])
                for (int32_t h : live) counts_.enter(&histories_[h], 0);
            begin_step(t, row);
            double largest = -std::numeric_limits<double>::infinity();
            // Two loops: look-ups are scattered, and the searches of several histories overlap.
            for (int32_t h : live) counts_.look_up(histories_[h], row, &next_[h]);
            for (int32_t h : live) counts_.weigh(histories_[h], row, y, &next_[h]);
            // Particles whose weight has underflowed have no part in it.
            for (int32_t p = 0; p < n_particles_; ++p)
                if (weights_[p] > 0.0)
                    largest = std::max(largest, next_[history_of_[p]].log_factor);
            for (int32_t h : live)
                if (next_[h].log_factor != largest)
                    next_[h].likelihood *=
                        std::exp(std::min(next_[h].log_factor - largest, 0.0));
            double total = 0.0, squares = 0.0;
            for (int32_t p = 0; p < n_particles_; ++p)
                total += weights_[p] *= next_[history_of_[p]].likelihood;
            // False for NaN too.
            if (!(total > 0.0 && std::isfinite(total) && std::isfinite(largest)))
                throw std::invalid_argument(
                    "step " + std::to_string(t) + " is impossible by the seating, or its "
                    "concentrations or counts are out of all proportion");
            if (log_predictive) log_predictive[t] = std::log(total) + largest;
            if (!finish && t == n_steps - 1) return n_steps;
            for (int32_t p = 0; p < n_particles_; ++p) {
                weights_[p] /= total;
                squares += weights_[p] * weights_[p];
            }
            if (squares * n_particles_ > 2.0) {
                resample(g);
                histories_.rotate([&](const Generation &part) { counts_.fold(part, 1); });
            }
            branch(row, y, g);
        }
        return t;
    }
    // The path of one particle drawn by weight, in time order.
    std::vector<int32_t> draw_path(bitgen_t *g) {
        return histories_.path(history_of_[draw_particle(g)]);
    }

    // Draw new states and observations from the predictive distribution, from step t on; of
    // column c only the first n_known[c] symbols.
    int64_t simulate(int64_t t, int64_t n_steps, const int32_t *n_known, int32_t *states_out,
                     int32_t *codes_out, double *values_out, bitgen_t *g) {
        const std::vector<int32_t> missing(counts_.n_columns(), -1);
        NextWeights &next = next_[0];
        History &p = histories_[0];
        opens_.resize(counts_.n_opens());
        for (; t < n_steps && goes_on(); ++t) {
            begin_step(t, missing.data());
            counts_.look_up(p, missing.data(), &next);
            counts_.weigh(p, missing.data(), counts_.complete(nullptr), &next);
            const int32_t k = next.choose(g);
            opens_[0] = counts_.draw_entrance(p, next, k, g);
            int32_t *row = codes_out + t * counts_.n_columns();
            double *y = values_out + t * counts_.n_values();
            counts_.emit(p, k, t, n_known, &next, row, y, g);
            counts_.begin_symbols(row);
            counts_.look_up(p, row, &next);
            counts_.draw_tables(p, next, k, row, opens_.data() + 1, g);
            counts_.seat(p, k, opens_.data(), row, counts_.complete(y), g);
            states_out[t] = k;
        }
        return t;
    }

  private:
    // The time after which to return.  To read a clock takes a fifth of a small step, so it
    // is read after some 4,096 histories and states.
    struct Slice {
        using Clock = std::chrono::steady_clock;
        Clock::time_point end = Clock::now() + std::chrono::milliseconds(100);
        int64_t work = 0;
    };
    bool goes_on() {
        const std::vector<int32_t> &live = histories_.live();
        slice_.work += static_cast<int64_t>(live.size()) * (histories_[live[0]].n_states + 1);
        if (slice_.work < 4096) return true;
        slice_.work = 0;
        return Slice::Clock::now() < slice_.end;
    }
    void begin_step(int64_t t, const int32_t *row) {
        int32_t n_states = 0;
        for (int32_t h : histories_.live()) n_states = std::max(n_states, histories_[h].n_states);
        counts_.begin_step(t, row, n_states);
    }
    int32_t draw_particle(bitgen_t *g) const {
        double u = uniform(g);
        int32_t p = 0;
        while (p < n_particles_ - 1 && (u -= weights_[p]) >= 0.0) ++p;
        return p;
    }
    void keep_one(bitgen_t *g) {
        history_of_.assign(1, history_of_[draw_particle(g)]);
        n_particles_ = 1;
        weights_.assign(1, 1.0);
        histories_.keep(history_of_);
    }
    // Systematic: particle p goes on in as many copies as there are points in its share.
    void resample(bitgen_t *g) {
        std::vector<int32_t> offspring(n_particles_, 0);
        const double u = uniform(g);
        double cumulative = weights_[0];
        int32_t p = 0;
        for (int32_t i = 0; i < n_particles_; ++i) {
            const double point = (i + u) / n_particles_;
            while (point >= cumulative && p < n_particles_ - 1) cumulative += weights_[++p];
            ++offspring[p];
        }
        int32_t hole = 0;
        for (p = 0; p < n_particles_; ++p) {
            for (; offspring[p] > 1; --offspring[p]) {
                while (offspring[hole] > 0) ++hole;
                history_of_[hole] = history_of_[p];
                offspring[hole] = 1;
            }
        }
        std::fill(weights_.begin(), weights_.end(), 1.0 / n_particles_);
        histories_.keep(history_of_);
    }
    // Every particle draws its next state and the opened tables, and goes on in a history with the
    // particles that shared its history and drew the same.
    void branch(const int32_t *row, const double *y, bitgen_t *g) {
        const size_t n_opens = counts_.n_opens();
        opens_.resize(n_particles_ * n_opens);
        chosen_.resize(n_particles_);
        lead_.resize(n_particles_);
        next_lead_.resize(n_particles_);
        size_t n_heads = 16;
        while (n_heads < static_cast<size_t>(n_particles_)) n_heads *= 2;
        lead_heads_.assign(n_heads, -1);
        n_children_.assign(next_.size(), 0);
        for (int32_t p = 0; p < n_particles_; ++p) {
            const int32_t h = history_of_[p];
            const int32_t k = next_[h].choose(g);
            uint8_t *opens = &opens_[p * n_opens];
            opens[0] = counts_.draw_entrance(histories_[h], next_[h], k, g);
            counts_.draw_tables(histories_[h], next_[h], k, row, opens + 1, g);
            // The first particle that drew this from this history.
            int32_t &head = lead_heads_[(h * 0x9E3779B1u + k * 0x85EBCA6Bu) >> 7
                                        & (n_heads - 1)];
            int32_t lead = head;
            while (lead >= 0
                   && (history_of_[lead] != h || chosen_[lead] != k
                       || std::memcmp(&opens_[lead * n_opens], opens, n_opens) != 0))
                lead = next_lead_[lead];
            chosen_[p] = k;
            lead_[p] = lead >= 0 ? lead : p;
            if (lead >= 0) continue;
            next_lead_[p] = head;
            head = p;
            ++n_children_[h];
        }
        for (int32_t p = 0; p < n_particles_; ++p) {
            int32_t &h = history_of_[p];
            if (lead_[p] != p) {
                h = history_of_[lead_[p]];
                continue;
            }
            // The last child takes over the history itself.
            if (--n_children_[h] > 0) h = histories_.copy(h);
            counts_.seat(histories_[h], chosen_[p], &opens_[p * n_opens], row, y, g);
        }
    }

    int32_t n_particles_;
    int64_t n_filtered_ = -1;
    Slice slice_;
    ParticleCounts counts_;
    Histories histories_;
    std::vector<NextWeights> next_;                  // by history
    std::vector<int32_t> n_children_;
    std::vector<int32_t> history_of_;                // by particle, as the vectors below
    std::vector<double> weights_;
    std::vector<int32_t> chosen_, lead_, next_lead_, lead_heads_;
    std::vector<uint8_t> opens_;
};

}  // namespace skihmm
