// The histories of particles: drawn states, opened tables, and counts of who joined.
//
// A particle is the index of a history, which particles with equal draws share.  The common part of
// all histories is stored once, in the lines of ParticleCounts; a history has the rest in two
// generations: `old`, shared by all descendants of the history that wrote it and constant, and
// `fresh`, which no other history has.  When all histories share one `old` generation (their lines
// of descent meet after a few hundred steps), it is folded into the common part and the fresh
// generations become the old ones.  So memory and copying do not grow with the length of the
// sequence.  Before another run the folded generations are removed again, so that the cost of a new
// sequence does not depend on earlier sequences.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "_containers.hpp"
#include "_law.hpp"
#include "_particle_coins.hpp"
#include "_particle_lines.hpp"

namespace skihmm {

struct Generation {
    JoinedCounts transitions;              // dishes
    std::vector<JoinedCounts> columns;     // states, and kTables
    std::vector<int32_t> labels;           // states of its steps
};

// Arrays over the states go on to the end of a block, a new state at the first of the places that
// are left.
constexpr int32_t kBlock = 32;
inline int32_t padded(int32_t n_states) { return (n_states / kBlock + 1) * kBlock; }

// Only counts are stored, not table sizes: the probability that a customer opens a table depends
// on n_jk and m_.k only.
struct History {
    struct Symbols {
        std::vector<int32_t> totals;       // customers of every state's restaurant
        WideVector<double> inverse;        // 1/(total + concentration), padded
        int64_t n_tables = 0;
        void observe(int32_t k, int32_t n, double alpha) {
            totals[k] += n;
            inverse[k] = 1.0 / total_weight(totals[k], alpha);
        }
    };

    int32_t n_states = 0;
    int32_t restaurant = 0;                // 0: the start, 1 + k: state k
    int64_t n_tables = 0;                  // m_..
    WideVector<int32_t> dish_tables;       // m_.k, padded
    HistoryCoins coins;
    std::vector<Symbols> columns;
    std::vector<std::vector<double>> numbers;       // by family: of all states
    std::shared_ptr<const Generation> old;
    Generation fresh;
};

// Places of histories: a place with particles is live, all other places are free.
class Histories {
  public:
    // Make places for n histories; the first is live and returned.
    History &begin(size_t n) {
        places_.resize(n);
        is_kept_.assign(n, 0);
        free_.resize(n - 1);
        for (size_t i = 0; i + 1 < n; ++i) free_[i] = static_cast<int32_t>(n - 1 - i);
        live_.assign(1, 0);
        return places_[0];
    }
    History &operator[](int32_t h) { return places_[h]; }
    const std::vector<int32_t> &live() const { return live_; }
    // Only listed histories stay live.
    void keep(const std::vector<int32_t> &kept) {
        for (int32_t h : kept) is_kept_[h] = 1;
        size_t n = 0;
        for (int32_t h : live_) {
            if (is_kept_[h]) live_[n++] = h;
            else free_.push_back(h);
            is_kept_[h] = 0;
        }
        live_.resize(n);
    }
    int32_t copy(int32_t h) {
        const int32_t child = free_.back();
        free_.pop_back();
        live_.push_back(child);
        places_[child] = places_[h];
        return child;
    }
    // fold(generation) once all histories share it.
    template <class Fold> void rotate(Fold fold) {
        if (places_[live_[0]].fresh.labels.size() < 32) return;
        const std::shared_ptr<const Generation> shared = places_[live_[0]].old;
        for (int32_t h : live_)
            if (places_[h].old != shared) return;
        if (shared) {
            fold(*shared);
            folded_.push_back(shared);
        }
        for (int32_t h : live_) {
            History &p = places_[h];
            p.old = std::make_shared<const Generation>(std::move(p.fresh));
            p.fresh = Generation();
        }
    }
    // unfold(generation) for all folded generations, the last one first.
    template <class Unfold> void unfold_all(Unfold unfold) {
        for (; !folded_.empty(); folded_.pop_back()) unfold(*folded_.back());
    }
    // The states of a history in time order.
    std::vector<int32_t> path(int32_t h) const {
        std::vector<int32_t> path;
        const auto add = [&](const Generation &part) {
            path.insert(path.end(), part.labels.begin(), part.labels.end());
        };
        for (const auto &generation : folded_) add(*generation);
        if (places_[h].old) add(*places_[h].old);
        add(places_[h].fresh);
        return path;
    }

  private:
    std::vector<History> places_;
    std::vector<int32_t> live_, free_;
    std::vector<uint8_t> is_kept_;                            // zeros between calls
    std::vector<std::shared_ptr<const Generation>> folded_;   // in time order
};

}  // namespace skihmm
