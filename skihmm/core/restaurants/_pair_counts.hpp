// Counts of pairs (row, dish) over all steps, by the threads of a sweep.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "_workers.hpp"

namespace skihmm {

// Pairs that occur, by row and then by dish.
struct PairCounts {
    std::vector<int32_t> rows, dishes, counts;

    void append(int32_t row, int32_t dish, int32_t n) {
        rows.push_back(row);
        dishes.push_back(dish);
        counts.push_back(n);
    }
};

// Count the pairs of steps t < n that pair(t, &row, &dish) finds; where it returns false there
// is none.  Rows are below n_rows, dishes below n_dishes.
template <class Pair>
PairCounts count_pairs(const Workers &workers, int64_t n, int64_t n_rows, int64_t n_dishes,
                       Pair pair) {
    PairCounts out;
    // One table for every thread, unless tables were larger than the data; then row by row.
    if (n_rows * n_dishes <= 2 * n + (int64_t{1} << 16)) {
        std::vector<std::vector<int32_t>> tables(workers.size());
        run_ranges(workers, n, [&](int64_t start, int64_t stop, int32_t worker) {
            std::vector<int32_t> &table = tables[worker];
            if (table.empty()) table.assign(n_rows * n_dishes, 0);
            int32_t row, dish;
            for (int64_t t = start; t < stop; ++t)
                if (pair(t, &row, &dish)) ++table[row * n_dishes + dish];
        });
        for (int64_t at = 0; at < n_rows * n_dishes; ++at) {
            int32_t count = 0;
            for (const std::vector<int32_t> &table : tables)
                if (!table.empty()) count += table[at];
            if (count > 0)
                out.append(static_cast<int32_t>(at / n_dishes),
                           static_cast<int32_t>(at % n_dishes), count);
        }
        return out;
    }
    std::vector<int64_t> ends(n_rows + 1, 0);
    int32_t row, dish;
    for (int64_t t = 0; t < n; ++t)
        if (pair(t, &row, &dish)) ++ends[row + 1];
    for (int64_t j = 0; j < n_rows; ++j) ends[j + 1] += ends[j];
    std::vector<int64_t> next(ends.begin(), ends.end() - 1);
    std::vector<int32_t> dishes(ends[n_rows]);
    for (int64_t t = 0; t < n; ++t)
        if (pair(t, &row, &dish)) dishes[next[row]++] = dish;
    std::vector<int32_t> counts(n_dishes, 0), found;
    for (int64_t j = 0; j < n_rows; ++j) {
        found.clear();
        for (int64_t at = ends[j]; at < ends[j + 1]; ++at)
            if (counts[dishes[at]]++ == 0) found.push_back(dishes[at]);
        std::sort(found.begin(), found.end());
        for (const int32_t k : found) {
            out.append(static_cast<int32_t>(j), k, counts[k]);
            counts[k] = 0;
        }
    }
    return out;
}

}  // namespace skihmm
