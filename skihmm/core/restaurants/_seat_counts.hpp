// Seatings of counted customers by their law.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "_law.hpp"
#include "_pair_counts.hpp"
#include "_random.hpp"
#include "_record.hpp"

namespace skihmm {

// Appends the table sizes of n customers; returns their number.  table_of is scratch.
inline int32_t seat_cell(int32_t n, double fresh, std::vector<int32_t> *sizes,
                         std::vector<int32_t> *table_of, bitgen_t *g) {
    const size_t first = sizes->size();
    int32_t n_tables = 1;
    sizes->push_back(1);
    table_of->assign(1, 0);
    for (int32_t i = 1; i < n; ++i) {
        const double u = uniform(g) * dish_weight<double>(i, fresh);
        int32_t table = n_tables;
        if (u < i) {
            // He joins the table of customer u, which is stored in table_of.
            table = (*table_of)[static_cast<int32_t>(u)];
            ++(*sizes)[first + table];
        } else {
            sizes->push_back(1);
            ++n_tables;
        }
        table_of->push_back(table);
    }
    return n_tables;
}
// A table by seat_large_cell costs as much as this many customers by seat_cell.
static constexpr double kCostOfTable = 30.0;
inline int32_t seat_large_cell(int32_t n, double fresh, std::vector<int32_t> *sizes,
                               bitgen_t *g) {
    int32_t n_tables = 0;
    while (n > 0) {
        double leave;
        draw_beta(g, 1.0, fresh, &leave);
        binomial_t scratch{};
        const int32_t rest =
            static_cast<int32_t>(random_binomial(g, leave, n - 1, &scratch));
        sizes->push_back(n - rest);
        n = rest;
        ++n_tables;
    }
    return n_tables;
}

// Given the base measure: in a restaurant every customer of a dish joins each earlier customer's
// table with weight one or opens a table with weight fresh[dish] = alpha * base(dish).  A large
// cell is seated table by table, so that its cost does not grow with the data: the table of its
// first customer has 1 + Binomial(n - 1, v) of the n customers, v ~ Beta(1, fresh), and the rest
// are seated likewise.
inline SeatingRecord seat_counts(const PairCounts &counts, const double *fresh, bool has_tables,
                                 bitgen_t *g) {
    SeatingRecord record;
    std::vector<int32_t> tables;
    record.rows = counts.rows;
    record.dishes = counts.dishes;
    record.n_customers = counts.counts;
    record.n_tables.assign(counts.rows.size(), 0);
    for (size_t i = 0; has_tables && i < counts.rows.size(); ++i) {
        const int32_t n = counts.counts[i];
        const double a = fresh[counts.dishes[i]];
        const bool is_large = n > kCostOfTable * (1.0 + a * std::log1p(n / a));
        record.n_tables[i] = is_large ? seat_large_cell(n, a, &record.sizes, g)
                                      : seat_cell(n, a, &record.sizes, &tables, g);
    }
    return record;
}

}  // namespace skihmm
