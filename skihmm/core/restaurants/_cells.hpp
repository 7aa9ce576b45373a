// Pairs (restaurant, dish) that have customers, and the lists in which they stand.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "_containers.hpp"

namespace skihmm {

struct Cell {
    int32_t row = -1;        // -1: the record is free
    int32_t dish = -1;
    int32_t n_customers = 0;
    int32_t n_tables = 0;
    int32_t pool = -1;       // where the table sizes are when n_tables >= 2, else -1
    int32_t in_row = 0;      // position in the list of the row
    int32_t in_dish = 0;     // position in the list of the dish
    int16_t pending = 0;     // 1 while queued for erasure at the end of the move
    int16_t order = 0;       // there is room for 2^order table sizes
};

// A cell exists while n_jk > 0 (or, inside a move, while the journal may still need it).  Every
// cell stands in two lists, its row's and its dish's, which hold (index, count) pairs contiguously:
// the proposals read only those lists.  At Alice's K of about 350 a row has 22 entries and a column
// 50; the whole franchise is a few hundred kilobytes and stays in the second-level cache.
template <bool kIsRoot>
class Cells {
  public:
    std::vector<Line> rows;                 // rows[j]: (dish, n_jk)
    std::vector<Line> columns;              // columns[k]: (row, n_jk); see set_groups
    std::vector<int32_t> row_customers;     // n_j

    int32_t count(int32_t row, int32_t dish) const {
        const int32_t c = index_.find(row, dish);
        return c < 0 ? 0 : cells_[c].n_customers;
    }
    // count for a pair whose cell `hint` may remember.
    int32_t count(int32_t row, int32_t dish, int32_t hint) const {
        return is_cell(hint, row, dish) ? cells_[hint].n_customers : count(row, dish);
    }
    int32_t table_count(int32_t row, int32_t dish) const {
        const int32_t c = index_.find(row, dish);
        return c < 0 ? 0 : cells_[c].n_tables;
    }
    size_t n_cells() const { return cells_.size(); }
    // Prefetch the memory that add and remove will need for the pair that `hint` remembers; before
    // prefetch_lists, which needs the prefetched cell.
    void prefetch_cell(int32_t hint) const {
        if (static_cast<size_t>(hint) >= cells_.size()) return;
        SKIHMM_PREFETCH(&cells_[hint]);
        if constexpr (!kIsRoot) SKIHMM_PREFETCH(&links_[hint]);
    }

  protected:
    // Where the cell's column is, and its parent's cell as a hint.
    struct Link {
        int32_t column = 0;
        mutable int32_t above = -1;
    };

    // Only in a level of a tree: columns[k n_groups + g] has (j, n_jk) of the rows
    // j n_groups + g, the restaurants of one group.
    void set_groups(int32_t n_groups) { n_groups_ = n_groups; }
    int32_t n_dishes() const { return static_cast<int32_t>(columns.size() / n_groups_); }
    // Storage grows only between moves, so pointers into a line live through a proposal.
    void resize_lists(int32_t n_rows, int32_t n_dishes) {
        rows.resize(n_rows);
        row_customers.resize(n_rows, 0);
        columns.resize(static_cast<size_t>(n_dishes) * n_groups_);
    }
    void clear_cells() {
        for (Line &line : rows) line.clear();
        for (Line &line : columns) line.clear();
        std::fill(row_customers.begin(), row_customers.end(), 0);
        cells_.clear();
        links_.clear();
        free_cells_.clear();
        index_.clear();
        pending_.clear();
    }
    size_t n_live() const { return cells_.size() - free_cells_.size(); }

    bool is_cell(int32_t c, int32_t row, int32_t dish) const {
        return static_cast<size_t>(c) < cells_.size() && cells_[c].row == row
               && cells_[c].dish == dish;
    }
    int32_t find(int32_t row, int32_t dish, int32_t *hint) const {
        if (!is_cell(*hint, row, dish)) *hint = index_.find(row, dish);
        return *hint;
    }
    SKIHMM_NOINLINE int32_t find_to_remove(int32_t row, int32_t dish) const {
        const int32_t c = index_.find(row, dish);
        if (c < 0) throw std::logic_error("no such customer to remove");
        return c;
    }
    SKIHMM_NOINLINE int32_t obtain(int32_t row, int32_t dish) {
        int32_t c = index_.find(row, dish);
        if (c >= 0) return c;
        if (free_cells_.empty()) {
            c = static_cast<int32_t>(cells_.size());
            cells_.emplace_back();
        } else {
            c = free_cells_.back();
            free_cells_.pop_back();
        }
        Cell &cell = cells_[c];
        cell = Cell{};
        cell.row = row;
        cell.dish = dish;
        cell.in_row = rows[row].append(dish, c);
        if constexpr (kIsRoot) {
            cell.in_dish = columns[dish].append(row, c);
        } else {
            links_.resize(cells_.size());
            links_[c] = Link{dish * n_groups_ + row % n_groups_, -1};
            cell.in_dish = columns[links_[c].column].append(row / n_groups_, c);
        }
        index_.insert(row, dish, c);
        return c;
    }
    SKIHMM_INLINE size_t column_of(const Cell &cell) const {
        if constexpr (kIsRoot) return cell.dish;
        else return links_[&cell - cells_.data()].column;
    }
    void change_customers(Cell &cell, int32_t by) {
        cell.n_customers += by;
        row_customers[cell.row] += by;
        rows[cell.row].counts[cell.in_row] = cell.n_customers;
        columns[column_of(cell)].counts[cell.in_dish] = cell.n_customers;
    }
    // A cell that became empty keeps its record until the move ends: most moves put the
    // same customer back, and handles in the journal stay valid.
    void queue(int32_t c) {
        if (cells_[c].pending) return;
        cells_[c].pending = 1;
        pending_.push(c);
    }
    void sweep_pending() {
        for (size_t i = 0; i < pending_.size(); ++i) {
            const int32_t c = pending_[i];
            cells_[c].pending = 0;
            if (cells_[c].n_customers == 0) erase(c);
        }
        pending_.clear();
    }
    size_t n_bytes_of_cells() const {
        size_t bytes = index_.n_bytes() + cells_.capacity() * sizeof(Cell)
                       + links_.capacity() * sizeof(Link)
                       + row_customers.capacity() * sizeof(int32_t);
        for (const std::vector<Line> *lines : {&rows, &columns}) {
            bytes += lines->capacity() * sizeof(Line);
            for (const Line &line : *lines) bytes += 3 * sizeof(int32_t) * line.capacity;
        }
        return bytes;
    }
    // Check every list and index against the cells; returns the fault, or nullptr.
    const char *check_cells() const {
        std::vector<int64_t> by_row(rows.size(), 0);
        int64_t n_alive = 0;
        for (size_t c = 0; c < cells_.size(); ++c) {
            const Cell &cell = cells_[c];
            if (cell.row < 0) continue;
            ++n_alive;
            by_row[cell.row] += cell.n_customers;
            if (cell.n_customers <= 0) return "a cell without customers was left behind";
            if (index_.find(cell.row, cell.dish) != static_cast<int32_t>(c))
                return "the index does not find a cell";
            if (!has_at(rows[cell.row], cell.in_row, cell.dish, c))
                return "a row's list disagrees with its cell";
            if (!has_at(columns[column_of(cell)], cell.in_dish, cell.row / n_groups_, c))
                return "a dish's list disagrees with its cell";
        }
        int64_t in_rows = 0, in_columns = 0;
        for (const Line &line : rows) in_rows += line.size;
        for (const Line &line : columns) in_columns += line.size;
        if (in_rows != n_alive || in_columns != n_alive) return "lists hold dead cells";
        for (size_t j = 0; j < rows.size(); ++j)
            if (by_row[j] != row_customers[j]) return "row_customers is wrong";
        return pending_.empty() ? nullptr : "a move was left open";
    }

    std::vector<Cell> cells_;
    std::vector<Link> links_;               // by cell, of a level of a tree

  private:
    bool has_at(const Line &line, int32_t at, int32_t id, size_t c) const {
        return at < line.size && line.ids[at] == id && line.counts[at] == cells_[c].n_customers
               && line.cells[at] == static_cast<int32_t>(c);
    }
    void erase(int32_t c) {
        Cell &cell = cells_[c];
        unlist(rows[cell.row], cell.in_row, true);
        unlist(columns[column_of(cell)], cell.in_dish, false);
        index_.erase(cell.row, cell.dish);
        cell.row = -1;
        free_cells_.push_back(c);
    }
    void unlist(Line &line, int32_t at, bool by_row) {
        const int32_t last = line.size - 1;
        if (at != last) {
            line.ids[at] = line.ids[last];
            line.counts[at] = line.counts[last];
            line.cells[at] = line.cells[last];
            Cell &moved = cells_[line.cells[at]];
            (by_row ? moved.in_row : moved.in_dish) = at;
        }
        line.drop_last();
    }

    std::vector<int32_t> free_cells_;
    CellIndex index_;
    Stack<int32_t> pending_;
    int32_t n_groups_ = 1;
};

}  // namespace skihmm
