// Counts of all pairs (restaurant, dish) for vectorised passes.
//
// Counts show the last committed seating, not the seating inside a move: most moves end where they
// began and then write nothing there, and a vector load right behind a 16-bit store to the same
// place would wait for it (a fifth of a step).
#pragma once
#include <algorithm>
#include <cstdint>

#include "_containers.hpp"

namespace skihmm {

// Two matrices of 16-bit counts, by row and by column, which are each other's transpose.
class DenseCounts {
  public:
    // Whether there are any; and whether none of them is 65,535 or more.
    bool exist() const { return stride_ > 0; }
    bool are_complete() const { return stride_ > 0 && n_wide_ == 0; }
    const uint16_t *row(int32_t row) const { return &rows_[static_cast<size_t>(row) * stride_]; }
    const uint16_t *column(int32_t dish) const {
        return &columns_[static_cast<size_t>(dish) * stride_];
    }
    // Show n customers of (row, dish) for the time inside a move; returns the count shown before.
    // Only while are_complete().
    int32_t show(int32_t row, int32_t dish, int32_t n) {
        uint16_t &shown = rows_[static_cast<size_t>(row) * stride_ + dish];
        const int32_t before = shown;
        shown = static_cast<uint16_t>(n);
        columns_[static_cast<size_t>(dish) * stride_ + row] = shown;
        return before;
    }
    void set(size_t row, size_t dish, int32_t n_customers) {
        const uint16_t n = static_cast<uint16_t>(std::min(n_customers, kWidest));
        uint16_t &shown = rows_[row * stride_ + dish];
        if (shown == n) return;
        n_wide_ += (n == kWidest) - (shown == kWidest);
        shown = n;
        columns_[dish * stride_ + row] = n;
    }
    // Zeros for n rows and dishes; none if these are more than the limit.
    void resize(size_t n, int32_t limit) {
        n_wide_ = 0;
        stride_ = 0;
        if (n == 0 || n > static_cast<size_t>(limit)) {
            rows_ = WideVector<uint16_t>();
            columns_ = WideVector<uint16_t>();
            return;
        }
        // Whole vectors of 32, and no power of two between rows (cache sets).
        stride_ = (n + 31) / 32 * 32;
        if (stride_ % 256 == 0) stride_ += 32;
        rows_.assign(n * stride_, 0);
        columns_.assign(n * stride_, 0);
    }
    bool shows(int32_t row, int32_t dish, int32_t n) const {
        return n >= kWidest || (this->row(row)[dish] == n && column(dish)[row] == n);
    }
    int64_t count_positive() const {
        return std::count_if(rows_.begin(), rows_.end(), [](uint16_t n) { return n > 0; });
    }
    size_t n_bytes() const { return 2 * (rows_.capacity() + columns_.capacity()); }

  private:
    static constexpr int32_t kWidest = 65535;

    size_t stride_ = 0;         // 0: there are none
    int64_t n_wide_ = 0;        // pairs with 65,535 customers or more
    WideVector<uint16_t> rows_, columns_;
};

}  // namespace skihmm
