// Steps of a chain in another process than its own: what threads do with pieces of them, in
// _stick_breaking_paths.hpp and _stick_breaking_steps.hpp, from the same random numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "_emission.hpp"
#include "_pieces.hpp"
#include "_restricted_steps.hpp"
#include "_sliced_paths.hpp"
#include "_workers.hpp"

namespace skihmm {

class StickBreakingShard {
  public:
    ShardSteps steps;

    // Draw pieces, which begin and end in these steps; the first one has number `first` among
    // all.  The emission has the statistics of the whole chain.
    void draw(const PieceDraw &what, int32_t n_slots, int64_t first,
              EmissionParameters &emission) {
        TaskStream stream = what.parameters[0];
        bitgen_t bits = stream.bits();
        emission.draw_parameters(
            std::vector<int32_t>(what.states.begin() + 1, what.states.end()), Workers(1), &bits);
        if (what.staying.empty()) draw_paths(what, n_slots, first, emission);
        else draw_steps(what, n_slots, first, emission);
    }

  private:
    void draw_paths(const PieceDraw &what, int32_t n_slots, int64_t first,
                    const EmissionParameters &emission) {
        std::vector<double> pi(static_cast<size_t>(n_slots) * n_slots, 0.0);
        for_pairs(what, [&](int32_t j, int32_t k, double p) {
            pi[static_cast<size_t>(j) * n_slots + k] = p;
        });
        const auto probability = [&](int32_t j, int32_t k) {
            return pi[static_cast<size_t>(j) * n_slots + k];
        };
        paths_.set_steps(static_cast<int64_t>(steps.states.size()));
        for_pieces(what, what.cuts, first, [&](const Piece &piece, bitgen_t *g) {
            paths_.cut(steps, piece, probability, g);
        });
        paths_.set_transitions(what.states, n_slots, what.low, Workers(1), probability);
        path_ = steps.states;
        for_pieces(what, what.streams, first, [&](const Piece &piece, bitgen_t *g) {
            paths_.draw(steps, emission, piece, 0, path_.data(), g);
        });
        steps.states.swap(path_);
    }
    void draw_steps(const PieceDraw &what, int32_t n_slots, int64_t first,
                    const EmissionParameters &emission) {
        const size_t padded = (n_slots + kWeightLanes - 1) / kWeightLanes * kWeightLanes;
        TransitionRows pi(n_slots), into(n_slots);
        for (const int32_t k : what.states) {
            pi[k].assign(padded, 0.0);
            into[k].assign(padded, 0.0);
        }
        for_pairs(what, [&](int32_t j, int32_t k, double p) { pi[j][k] = into[k][j] = p; });
        restricted_.restrict_to(what.staying, pi, what.states, 1);
        for_pieces(what, what.streams, first, [&](const Piece &piece, bitgen_t *g) {
            restricted_.draw(steps, emission, piece, into, 0, g);
        });
    }
    template <class Take> static void for_pairs(const PieceDraw &what, Take take) {
        size_t at = 0;
        for (const int32_t j : what.states)
            for (const int32_t k : what.states) take(j, k, what.pi[at++]);
    }
    template <class Draw>
    static void for_pieces(const PieceDraw &what, const TaskStreams &streams, int64_t first,
                           Draw draw) {
        for (size_t i = 0; i < what.pieces.size(); ++i) {
            TaskStream stream = streams[first + static_cast<int64_t>(i)];
            bitgen_t bits = stream.bits();
            draw(what.pieces[i], &bits);
        }
    }

    SlicedPaths paths_;
    RestrictedSteps restricted_;
    std::vector<int32_t> path_;
};

}  // namespace skihmm
