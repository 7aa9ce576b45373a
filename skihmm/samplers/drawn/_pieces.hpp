// Pieces of the data that threads draw side by side given explicit parameters.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_random.hpp"

namespace skihmm {

// A part of the data that a thread draws: steps [start, held) are free; the steps [held, stop), at
// most one, are held.
struct Piece {
    int64_t start, held, stop;
};

// Pieces with every (block_size + 1)-th step held, from a first held step that is uniform on
// 0 .. block_size and so does not depend on the labels.
inline void cut_pieces(const Chain &chain, int64_t block_size, std::vector<Piece> *pieces) {
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

}  // namespace skihmm
