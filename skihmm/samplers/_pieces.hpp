// Pieces of the data that are drawn side by side given explicit parameters: by threads, or in
// other processes, which have the observations of some of the steps.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_python_error.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// A part of the data that a task draws: steps [start, held) are free, those of [held, stop),
// none or one, are held.
struct Piece {
    int64_t start, held, stop;
};

// Pieces of which every (block_size + 1)-th step is held, from a first one that is uniform on
// 0 .. block_size and so does not depend on the labels.
template <class Chain>
void cut_pieces(const Chain &chain, int64_t block_size, std::vector<Piece> *pieces) {
    const int64_t n = chain.n_steps;
    pieces->clear();
    for (int64_t start = 0, held = below(chain.bits, block_size + 1); start < n;) {
        held = std::min(held, n);
        const int64_t stop = std::min(held + 1, n);
        pieces->push_back({start, held, stop});
        start = stop;
        held = stop + block_size;
    }
}

// All that another process needs to draw pieces, beside the statistics of the emission, from
// which it draws the same parameters.
struct PieceDraw {
    std::vector<int32_t> states;            // the start, and the slots with parameters
    std::vector<double> pi;                 // transitions among them, row by row
    std::vector<Piece> pieces;
    TaskStreams parameters, cuts, streams;
    double low = 0.0;                       // of the beam
    std::vector<int32_t> staying;           // of single steps: by slot
};

// Draws pieces in other processes: path[t] is the label of every step before and after it.
// -1 if an exception is set in Python.
struct PieceCalls {
    void *self = nullptr;
    int (*draw)(void *self, const PieceDraw *draw, int32_t n_slots, int32_t *path) = nullptr;

    explicit operator bool() const { return draw != nullptr; }
    void operator()(const PieceDraw &what, int32_t n_slots, int32_t *path) const {
        if (draw(self, &what, n_slots, path) < 0) throw PythonError();
    }
};

// Consecutive steps of a chain, in another process.
struct ShardSteps {
    std::vector<uint8_t> first;     // whether a step, or the one after them, begins a sequence
    std::vector<int32_t> states;
    int32_t before = kStart;        // label of the step before them

    int32_t previous(int64_t t) const {
        if (first[t]) return kStart;
        return t > 0 ? states[t - 1] : before;
    }
    int32_t successor(int64_t t) const { return first[t + 1] ? -1 : states[t + 1]; }
};

}  // namespace skihmm
