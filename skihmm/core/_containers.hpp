// Containers of the hot loops: aligned vectors, stacks, sparse lists, a hash index.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "_platform.hpp"

namespace skihmm {

// ---- vectors for wide loads ----------------------------------------------------------------

// Allocator aligned to cache lines: a 64-byte load across two lines costs twice.
template <class T>
struct LineAllocator {
    using value_type = T;
    LineAllocator() = default;
    template <class U> LineAllocator(const LineAllocator<U> &) {}
    T *allocate(size_t n) {
        return static_cast<T *>(::operator new(n * sizeof(T), std::align_val_t(64)));
    }
    void deallocate(T *p, size_t) { ::operator delete(p, std::align_val_t(64)); }
    template <class U> bool operator==(const LineAllocator<U> &) const { return true; }
    template <class U> bool operator!=(const LineAllocator<U> &) const { return false; }
};
template <class T> using WideVector = std::vector<T, LineAllocator<T>>;

// A stack whose push is a store and a compare.  std::vector's push is not inlined: 30 instructions
// for each of the dozen pushes of a step.  Growing touches no unused memory, and memory for one
// large move is given back.
template <class T>
class Stack {
    static_assert(std::is_trivially_copyable<T>::value, "moved by realloc");

  public:
    Stack() = default;
    Stack(Stack &&other) noexcept { swap(other); }
    Stack &operator=(Stack &&other) noexcept { swap(other); return *this; }
    ~Stack() { std::free(items_); }
    void push(T value) {
        if (SKIHMM_UNLIKELY(size_ == capacity_)) make_room();
        items_[size_++] = value;
    }
    // Room for n items, if so many may come: doubling would copy, and leave holes.
    void reserve(size_t n) {
        if (n > capacity_) resize(n);
    }
    T operator[](size_t i) const { return items_[i]; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    void clear() {
        if (SKIHMM_UNLIKELY(size_ > kMostKept)) resize(kMostKept);
        size_ = 0;
    }
    // Until the end of a large move: do not grow beyond kMostKept, begin again instead.  Room is
    // exactly that much, whatever earlier moves have needed: chains go on in another way after
    // a stack that has begun again, and have to do so after a resumption too.
    void set_bounded(bool is_bounded) {
        if (is_bounded && capacity_ != kMostKept) resize(kMostKept);
        is_bounded_ = is_bounded;
        has_forgotten_ = false;
    }
    bool has_forgotten() const { return has_forgotten_; }
    size_t n_bytes() const { return capacity_ * sizeof(T); }

    static constexpr size_t kMostKept = size_t{1} << 16;

  private:
    SKIHMM_NOINLINE void make_room() {
        if (!is_bounded_) return resize(2 * capacity_ + 64);
        size_ = 0;
        has_forgotten_ = true;
    }
    SKIHMM_NOINLINE void resize(size_t capacity) {
        void *items = std::realloc(items_, capacity * sizeof(T));
        if (!items) throw std::bad_alloc();
        items_ = static_cast<T *>(items);
        capacity_ = capacity;
    }
    void swap(Stack &other) {
        std::swap(items_, other.items_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    T *items_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
    bool is_bounded_ = false, has_forgotten_ = false;
};

// ---- lists of (index, count) ------------------------------------------------------------

// The cells of one row (index = dish) or of one dish (index = row): parallel arrays in one
// allocation.  Cells are in the order of insertion; erasing moves the last cell into the hole.  Ids
// and counts are padded with zeros to a multiple of four, so that loops can take four at a time
// without a second loop for the rest, whose exit is unpredictable (5 %).
struct Line {
    int32_t *ids = nullptr;
    int32_t *counts = nullptr;
    int32_t *cells = nullptr;
    int32_t size = 0;
    int32_t capacity = 0;

    Line() = default;
    Line(const Line &) = delete;
    Line &operator=(const Line &) = delete;
    Line(Line &&other) noexcept { swap(other); }
    Line &operator=(Line &&other) noexcept { swap(other); return *this; }
    ~Line() { delete[] ids; }

    void swap(Line &other) noexcept {
        std::swap(ids, other.ids);
        std::swap(counts, other.counts);
        std::swap(cells, other.cells);
        std::swap(size, other.size);
        std::swap(capacity, other.capacity);
    }
    // visit(lane, id, count) of all entries, four at a time, and of the zeros behind the last one,
    // which do not change sums: lines are short, and their lengths are unpredictable.
    template <class Visit> SKIHMM_INLINE void for_fours(Visit visit) const {
        for (int32_t at = 0; at < size; at += 4)
            for (int32_t l = 0; l < 4; ++l) visit(l, ids[at + l], counts[at + l]);
    }
    // out[id] = count of every entry, and zero again.
    template <class T> void scatter(T *out) const {
        for (int32_t at = 0; at < size; ++at) out[ids[at]] = counts[at];
    }
    template <class T> void unscatter(T *out) const {
        for (int32_t at = 0; at < size; ++at) out[ids[at]] = 0;
    }
    int32_t append(int32_t id, int32_t cell) {
        if (size == capacity) grow();
        ids[size] = id;
        counts[size] = 0;
        cells[size] = cell;
        return size++;
    }
    void drop_last() {
        --size;
        ids[size] = 0;
        counts[size] = 0;
    }
    void clear() {
        std::fill_n(ids, size, 0);
        std::fill_n(counts, size, 0);
        size = 0;
    }

  private:
    void grow() {
        const int32_t wider = capacity ? 2 * capacity : 4;
        int32_t *block = new int32_t[3 * static_cast<size_t>(wider)]();
        if (size) {
            std::memcpy(block, ids, sizeof(int32_t) * size);
            std::memcpy(block + wider, counts, sizeof(int32_t) * size);
            std::memcpy(block + 2 * static_cast<size_t>(wider), cells, sizeof(int32_t) * size);
        }
        delete[] ids;
        ids = block;
        counts = block + wider;
        cells = block + 2 * static_cast<size_t>(wider);
        capacity = wider;
    }
};

// Blocks of 2^order integers in one array, for the table sizes: one indirection less than with
// a vector per cell.
class Arena {
  public:
    int32_t *at(int32_t block) { return &items_[block]; }
    const int32_t *at(int32_t block) const { return &items_[block]; }
    int32_t take(int order) {
        std::vector<int32_t> &free = free_[order];
        if (!free.empty()) {
            const int32_t block = free.back();
            free.pop_back();
            return block;
        }
        const size_t block = items_.size();
        if (block + (size_t{1} << order) > INT32_MAX) throw std::bad_alloc();
        items_.resize(block + (size_t{1} << order));
        return static_cast<int32_t>(block);
    }
    void give_back(int32_t block, int order) { free_[order].push_back(block); }
    void clear() {
        items_.clear();
        for (auto &free : free_) free.clear();
    }
    size_t n_bytes() const {
        size_t n = items_.capacity();
        for (const auto &free : free_) n += free.capacity();
        return n * sizeof(int32_t);
    }

  private:
    std::vector<int32_t> items_;
    std::vector<int32_t> free_[31];
};

// Open addressing from (row, dish) to the index of a cell.  Linear probing, at most half full,
// deletion by shifting back, so that no tombstones accumulate over 10^9 moves.
class CellIndex {
  public:
    CellIndex() { resize(16); }
    void clear() { std::fill(slots_.begin(), slots_.end(), Slot{kEmpty, 0}); used_ = 0; }
    int32_t find(int32_t row, int32_t dish) const {
        const uint64_t key = make_key(row, dish);
        for (size_t i = hash(key);; i = (i + 1) & mask_) {
            if (slots_[i].key == key) return slots_[i].cell;
            if (slots_[i].key == kEmpty) return -1;
        }
    }
    void insert(int32_t row, int32_t dish, int32_t cell) {
        if (2 * (used_ + 1) > mask_ + 1) resize(2 * (mask_ + 1));
        place(make_key(row, dish), cell);
        ++used_;
    }
    void erase(int32_t row, int32_t dish) {
        const uint64_t key = make_key(row, dish);
        size_t hole = hash(key);
        while (slots_[hole].key != key) hole = (hole + 1) & mask_;
        for (size_t i = (hole + 1) & mask_; slots_[i].key != kEmpty; i = (i + 1) & mask_) {
            const size_t home = hash(slots_[i].key);
            // Move the entry back only if its home does not lie cyclically in (hole, i].
            if (((i - home) & mask_) >= ((i - hole) & mask_)) {
                slots_[hole] = slots_[i];
                hole = i;
            }
        }
        slots_[hole].key = kEmpty;
        --used_;
    }
    size_t n_bytes() const { return slots_.capacity() * sizeof(Slot); }

  private:
    struct Slot { uint64_t key; int32_t cell; };
    static constexpr uint64_t kEmpty = ~uint64_t{0};
    static uint64_t make_key(int32_t row, int32_t dish) {
        return static_cast<uint64_t>(static_cast<uint32_t>(row)) << 32
               | static_cast<uint32_t>(dish);
    }
    size_t hash(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }
    void place(uint64_t key, int32_t cell) {
        size_t i = hash(key);
        while (slots_[i].key != kEmpty) i = (i + 1) & mask_;
        slots_[i] = Slot{key, cell};
    }
    void resize(size_t size) {
        std::vector<Slot> old(size, Slot{kEmpty, 0});
        old.swap(slots_);
        mask_ = size - 1;
        shift_ = 64;
        while (size >>= 1) --shift_;
        for (const Slot &slot : old)
            if (slot.key != kEmpty) place(slot.key, slot.cell);
    }
    std::vector<Slot> slots_;
    size_t mask_ = 0, used_ = 0;
    int shift_ = 64;
};

}  // namespace skihmm
