// The changes of a seating by a move, for its undo.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "_containers.hpp"
#include "_record.hpp"

namespace skihmm {

// The customers that have come and gone since the last commit or rollback, in their order; or,
// where a large move has more of them than the seating has parts, a copy of the seating.
class Journal {
  public:
    enum class Kind : uint32_t { kAdd, kOpen, kRemove, kClose };
    struct Entry {
        int32_t cell, table;
        Kind kind;
    };

    SKIHMM_INLINE void note(int32_t cell, int32_t table, Kind kind) {
        if (SKIHMM_UNLIKELY(cell >= kLong || table >= kMostTables)) {
            words_.push(cell);
            words_.push(table);
            cell = kLong;
            table = 0;
        }
        words_.push(static_cast<uint32_t>(cell) | static_cast<uint32_t>(table) << 20
                    | static_cast<uint32_t>(kind) << 30);
    }
    template <class Visit> SKIHMM_INLINE void for_newest_first(Visit visit) const {
        for (size_t i = words_.size(); i > 0;) visit(entry_before(&i));
    }
    // Whether a copy of a seating with so many cells and tables is much smaller than n entries.
    static bool prefers_copy(size_t n, size_t n_parts) {
        return n > Stack<uint32_t>::kMostKept && n / 8 > n_parts;
    }
    void keep_copy(SeatingRecord copy) {
        copy_ = std::make_unique<SeatingRecord>(std::move(copy));
        words_.set_bounded(true);
    }
    void reserve(size_t n) { words_.reserve(n); }
    // Whether entries are missing, and a rollback has to load the copy.
    bool has_forgotten() const { return words_.has_forgotten(); }
    SeatingRecord take_copy() { return std::move(*copy_); }
    bool empty() const { return words_.empty(); }
    void clear() {
        words_.clear();
        if (SKIHMM_LIKELY(!copy_)) return;
        copy_.reset();
        words_.set_bounded(false);
    }
    size_t n_bytes() const { return words_.n_bytes(); }

  private:
    // The entry that ends before word i; i becomes its first word.
    Entry entry_before(size_t *i) const {
        const uint32_t word = words_[--*i];
        Entry entry{static_cast<int32_t>(word & kLong),
                    static_cast<int32_t>(word >> 20 & (kMostTables - 1)),
                    static_cast<Kind>(word >> 30)};
        if (SKIHMM_UNLIKELY(entry.cell == kLong)) {
            entry.table = static_cast<int32_t>(words_[--*i]);
            entry.cell = static_cast<int32_t>(words_[--*i]);
        }
        return entry;
    }

    // An entry is one word, as large moves have many: 20 bits of the cell, 10 of the table, 2 of
    // the kind.  Where these do not suffice, the two words before hold cell and table.
    static constexpr int32_t kLong = (1 << 20) - 1, kMostTables = 1 << 10;

    Stack<uint32_t> words_;
    std::unique_ptr<SeatingRecord> copy_;
};

}  // namespace skihmm
