// Records of seatings, and checks of their arrays.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "_archive.hpp"

namespace skihmm {

// A packed copy of a seating: cells by (row, dish), each cell's table sizes in decreasing
// order.  Between sweeps a chain *is* this record plus its concentrations and its random
// stream, so a resumed chain is bit-identical.
struct SeatingRecord {
    std::vector<int32_t> rows, dishes, n_customers, n_tables, sizes;

    // Over so many rows and dishes, as in check_record.
    void visit(const Archive &archive, int32_t n_rows, int32_t n_dishes, bool seats);
};

// Counts are 32-bit integers: a record may hold this many customers, and as many again may be
// added (by a particle filter); the sum fits too.
static constexpr int64_t kMostCustomers = (int64_t{1} << 30) - 1;

inline std::string name_cell(const SeatingRecord &record, size_t i) {
    return "cell " + std::to_string(i) + " (row " + std::to_string(record.rows[i])
           + ", dish " + std::to_string(record.dishes[i]) + ") ";
}

// No pair (row, dish) occurs twice.  Most records are sorted.
inline void check_distinct(const SeatingRecord &record, const std::string &what) {
    const size_t n = record.rows.size();
    const auto pair = [&](size_t i) {
        return std::make_pair(record.rows[i], record.dishes[i]);
    };
    bool is_sorted = true;
    for (size_t i = 1; i < n; ++i) is_sorted &= pair(i - 1) < pair(i);
    if (is_sorted) return;
    std::vector<std::pair<int32_t, int32_t>> pairs;
    pairs.reserve(n);
    for (size_t i = 0; i < n; ++i) pairs.push_back(pair(i));
    std::sort(pairs.begin(), pairs.end());
    const auto twice = std::adjacent_find(pairs.begin(), pairs.end());
    if (twice != pairs.end())
        refuse(what, "two cells have row " + std::to_string(twice->first) + " and dish "
                     + std::to_string(twice->second) + "; expected one");
}

// A seating over rows 0 .. n_rows - 1 and dishes 0 .. n_dishes - 1; `seats`: customers sit at
// tables, otherwise they are only counted.
inline void check_record(const SeatingRecord &record, int32_t n_rows, int32_t n_dishes,
                         bool seats, const std::string &what) {
    const size_t n = record.rows.size();
    if (record.dishes.size() != n || record.n_customers.size() != n
        || record.n_tables.size() != n)
        refuse(what, "rows, dishes, n_customers and n_tables have "
                     + std::to_string(n) + ", " + std::to_string(record.dishes.size()) + ", "
                     + std::to_string(record.n_customers.size()) + " and "
                     + std::to_string(record.n_tables.size())
                     + " entries; expected as many of each, one per cell");
    int64_t customers = 0, tables = 0;
    for (size_t i = 0; i < n; ++i) {
        if (record.rows[i] < 0 || record.rows[i] >= n_rows)
            refuse(what, name_cell(record, i) + "is outside of the "
                         + std::to_string(n_rows) + " rows");
        if (record.dishes[i] < 0 || record.dishes[i] >= n_dishes)
            refuse(what, name_cell(record, i) + "is outside of the "
                         + std::to_string(n_dishes) + " dishes");
        if (record.n_customers[i] < 1)
            refuse(what, name_cell(record, i) + "has "
                         + std::to_string(record.n_customers[i])
                         + " customers; expected 1 or more");
        const int32_t least = seats ? 1 : 0, most = seats ? record.n_customers[i] : 0;
        if (record.n_tables[i] < least || record.n_tables[i] > most)
            refuse(what, name_cell(record, i) + "has " + std::to_string(record.n_tables[i])
                         + " tables; expected "
                         + (seats ? "1 to " + std::to_string(most)
                                        + ", the number of its customers"
                                  : std::string("none")));
        customers += record.n_customers[i];
        tables += record.n_tables[i];
    }
    if (customers > kMostCustomers)
        refuse(what, "it has " + std::to_string(customers) + " customers; expected at most "
                     + std::to_string(kMostCustomers));
    if (tables != static_cast<int64_t>(record.sizes.size()))
        refuse(what, "the cells have " + std::to_string(tables) + " tables, but sizes has "
                     + std::to_string(record.sizes.size()) + " entries");
    size_t at = 0;
    for (size_t i = 0; seats && i < n; ++i) {
        int64_t sum = 0;
        for (const size_t end = at + record.n_tables[i]; at < end; ++at) {
            if (record.sizes[at] < 1)
                refuse(what, name_cell(record, i) + "has a table of "
                             + std::to_string(record.sizes[at])
                             + " customers; expected 1 or more");
            sum += record.sizes[at];
        }
        if (sum != record.n_customers[i])
            refuse(what, name_cell(record, i) + "has "
                         + std::to_string(record.n_customers[i])
                         + " customers, but its tables have " + std::to_string(sum));
    }
    check_distinct(record, what);
}

inline void SeatingRecord::visit(const Archive &archive, int32_t n_rows, int32_t n_dishes,
                                 bool seats) {
    archive["rows"].array(&rows);
    archive["dishes"].array(&dishes);
    archive["n_customers"].array(&n_customers);
    archive["n_tables"].array(&n_tables);
    archive["sizes"].array(&sizes);
    if (archive.reads()) check_record(*this, n_rows, n_dishes, seats, archive.what());
}

// A record with other numbers of rows and, unless they keep theirs, of dishes, sorted by
// (row, dish).
inline SeatingRecord relabelled(const SeatingRecord &record,
                                const std::vector<int32_t> &row_labels,
                                const std::vector<int32_t> *dish_labels = nullptr) {
    struct Place {
        int32_t row, dish;
        size_t i, size;         // cell, and its first table size
    };
    std::vector<Place> places;
    for (size_t i = 0, size = 0; i < record.rows.size(); size += record.n_tables[i++])
        places.push_back({row_labels[record.rows[i]],
                          dish_labels ? (*dish_labels)[record.dishes[i]] : record.dishes[i],
                          i, size});
    std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) {
        return std::tie(a.row, a.dish) < std::tie(b.row, b.dish);
    });
    SeatingRecord out;
    for (const Place &place : places) {
        const auto sizes = record.sizes.begin() + place.size;
        out.rows.push_back(place.row);
        out.dishes.push_back(place.dish);
        out.n_customers.push_back(record.n_customers[place.i]);
        out.n_tables.push_back(record.n_tables[place.i]);
        out.sizes.insert(out.sizes.end(), sizes, sizes + record.n_tables[place.i]);
    }
    return out;
}

// The indices 0 .. n - 1 by row: row j has begin[j] .. begin[j + 1] - 1.
template <class Row>
std::vector<size_t> sort_by_row(Row row_of, size_t n, int32_t n_rows,
                                std::vector<size_t> *order) {
    std::vector<size_t> begin(static_cast<size_t>(n_rows) + 1, 0);
    for (size_t i = 0; i < n; ++i) ++begin[static_cast<size_t>(row_of(i)) + 1];
    for (size_t j = 1; j < begin.size(); ++j) begin[j] += begin[j - 1];
    std::vector<size_t> next(begin);
    order->resize(n);
    for (size_t i = 0; i < n; ++i) (*order)[next[row_of(i)]++] = i;
    return begin;
}

// The customers belong to the data: customer i, 0 <= i < n, to (row_of[i], dish_of[i * stride]); a
// dish of -1 is no customer.  Requires a record that passed check_record, and rows and dishes
// within the same limits.
inline void check_customers(const SeatingRecord &record, const int32_t *row_of,
                            const int32_t *dish_of, int64_t stride, int64_t n,
                            int32_t n_rows, const std::string &what) {
    std::vector<size_t> steps, cells;
    const std::vector<size_t> step_at = sort_by_row(
        [row_of](size_t i) { return row_of[i]; }, static_cast<size_t>(n), n_rows, &steps);
    const std::vector<size_t> cell_at = sort_by_row(
        [&record](size_t i) { return record.rows[i]; }, record.rows.size(), n_rows, &cells);
    int32_t n_dishes = 0;
    for (const int32_t k : record.dishes) n_dishes = std::max(n_dishes, k + 1);
    for (int64_t i = 0; i < n; ++i) n_dishes = std::max(n_dishes, dish_of[i * stride] + 1);
    std::vector<int32_t> counts(n_dishes, 0);
    for (int32_t j = 0; j < n_rows; ++j) {
        for (size_t at = step_at[j]; at < step_at[j + 1]; ++at) {
            const int32_t k = dish_of[static_cast<int64_t>(steps[at]) * stride];
            if (k >= 0) ++counts[k];
        }
        for (size_t at = cell_at[j]; at < cell_at[j + 1]; ++at) {
            const size_t i = cells[at];
            int32_t &count = counts[record.dishes[i]];
            if (count != record.n_customers[i])
                refuse(what, name_cell(record, i) + "has "
                             + std::to_string(record.n_customers[i])
                             + " customers, but by the states and the data it has "
                             + std::to_string(count));
            count = 0;
        }
        for (size_t at = step_at[j]; at < step_at[j + 1]; ++at) {
            const int32_t k = dish_of[static_cast<int64_t>(steps[at]) * stride];
            if (k >= 0 && counts[k])
                refuse(what, "no cell has row " + std::to_string(j) + " and dish "
                             + std::to_string(k) + ", where by the states and the data "
                             + std::to_string(counts[k]) + " customers are");
        }
    }
}

}  // namespace skihmm
