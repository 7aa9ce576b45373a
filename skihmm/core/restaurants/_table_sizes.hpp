// Sizes of the tables of cells.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "_cells.hpp"
#include "_containers.hpp"

namespace skihmm {

// Sizes of tables by cell.  Cells with two tables or more store sizes in a block of 2^order numbers
// at `pool`; a single table has all customers of its cell.  n_tables changes only here.
class TableSizes {
  public:
    // Table sizes of a cell with two tables or more.
    const int32_t *of(const Cell &cell) const { return pool_.at(cell.pool); }
    // Where the customer number u (0 .. n-1, tables in order) of such a cell sits.
    int32_t table_at(const Cell &cell, int64_t u) const {
        const int32_t *sizes = of(cell);
        int32_t table = 0;
        while ((u -= sizes[table]) >= 0) ++table;
        return table;
    }
    // So many customers more at a table that stays.
    void change(const Cell &cell, int32_t table, int32_t by) {
        if (cell.n_tables > 1) pool_.at(cell.pool)[table] += by;
    }
    // Open a table of one customer; n_customers is still the count before.
    SKIHMM_INLINE void open(Cell &cell) {
        if (cell.n_tables == 0) cell.n_tables = 1;
        else append(cell);
    }
    // Remove an empty table, whose number the last table takes; n_customers is the count
    // afterwards.
    void close(Cell &cell, int32_t table) {
        --cell.n_tables;
        if (cell.n_tables == 0) return;
        int32_t *sizes = pool_.at(cell.pool);
        sizes[table] = sizes[cell.n_tables];
        if (cell.n_tables == 1) {
            pool_.give_back(cell.pool, cell.order);
            cell.pool = -1;
        }
    }
    // The inverse of close: a table of one customer with this number; n_customers is still the
    // count without that customer.
    void reopen(Cell &cell, int32_t table) {
        open(cell);
        if (cell.n_tables == 1) return;
        int32_t *sizes = pool_.at(cell.pool);
        std::swap(sizes[table], sizes[cell.n_tables - 1]);
    }
    // The cell must be without tables.
    void load(Cell &cell, int32_t n_tables, const int32_t *sizes) {
        cell.n_tables = n_tables;
        if (n_tables < 2) return;
        while ((1 << cell.order) < n_tables) ++cell.order;
        cell.pool = pool_.take(cell.order);
        std::copy_n(sizes, n_tables, pool_.at(cell.pool));
    }
    // Append the table sizes of a cell in decreasing order.
    void record(const Cell &cell, std::vector<int32_t> *out) const {
        if (cell.n_tables == 1) out->push_back(cell.n_customers);
        if (cell.n_tables < 2) return;
        out->insert(out->end(), of(cell), of(cell) + cell.n_tables);
        std::sort(out->end() - cell.n_tables, out->end(), std::greater<int32_t>());
    }
    // lp += log of the product of (size - 1)!.
    void add_log_orders(const Cell &cell, double *lp) const {
        if (cell.n_tables == 1) *lp += std::lgamma(cell.n_customers);
        for (int32_t table = 0; cell.n_tables > 1 && table < cell.n_tables; ++table)
            *lp += std::lgamma(of(cell)[table]);
    }
    const char *check(const Cell &cell) const {
        if (cell.n_tables < 1) return "a cell with customers but no table";
        if ((cell.n_tables > 1) != (cell.pool >= 0)) return "table sizes misplaced";
        if (cell.pool < 0) return nullptr;
        if (cell.n_tables > 1 << cell.order) return "more tables than room";
        int64_t sum = 0;
        for (int32_t table = 0; table < cell.n_tables; ++table) {
            if (of(cell)[table] < 1) return "an empty table";
            sum += of(cell)[table];
        }
        return sum == cell.n_customers ? nullptr : "table sizes do not add up";
    }
    void prefetch(const Cell &cell) const {
        if (cell.pool >= 0) SKIHMM_PREFETCH(of(cell));
    }
    void clear() { pool_.clear(); }
    size_t n_bytes() const { return pool_.n_bytes(); }

  private:
    SKIHMM_NOINLINE void append(Cell &cell) {
        if (cell.n_tables == 1) {
            cell.order = 1;
            cell.pool = pool_.take(1);
            pool_.at(cell.pool)[0] = cell.n_customers;
        } else if (cell.n_tables == 1 << cell.order) {
            const int32_t wider = pool_.take(cell.order + 1);
            std::copy_n(pool_.at(cell.pool), cell.n_tables, pool_.at(wider));
            pool_.give_back(cell.pool, cell.order);
            cell.pool = wider;
            ++cell.order;
        }
        pool_.at(cell.pool)[cell.n_tables] = 1;
        ++cell.n_tables;
    }

    Arena pool_;
};

}  // namespace skihmm
