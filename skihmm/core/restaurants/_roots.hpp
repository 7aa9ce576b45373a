// Bases without restaurants of their own: how many tables serve each dish, and the mass that this
// gives it (_law.hpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "_law.hpp"
#include "_math.hpp"

namespace skihmm {

struct Root {
    static constexpr bool kIsRoot = true;
    static constexpr bool has_tables() { return true; }

    double gamma = 1.0;
    std::vector<int32_t> dish_tables;       // m_.k
    int64_t n_tables = 0;                   // m_..

    void set_gamma(double value) { gamma = value; }
    // The scale if there were `change` tables more.
    double scale(double alpha, int32_t change = 0) const {
        return table_scale(alpha, n_tables + change, gamma);
    }
    void change(int32_t dish, int32_t by) {
        dish_tables[dish] += by;
        n_tables += by;
    }
    void clear() {
        std::fill(dish_tables.begin(), dish_tables.end(), 0);
        n_tables = 0;
    }
};

// Infinitely many dishes.  Each dish without tables has the mass of a new dish.
struct InfiniteRoot : Root {
    double mass_of(int32_t n) const { return n ? n : gamma; }
    void add_log_joint(double *lp) const {
        *lp -= log_rising(gamma, n_tables);
        const double log_gamma = std::log(gamma);
        for (int32_t m : dish_tables) if (m) *lp += log_gamma + std::lgamma(m);
    }
};

// V dishes, equally probable; the restaurant of the root is integrated out.  If it is fixed they
// have the probability 1/V whatever happens: customers are counted, not seated.
struct SymbolBase : Root {
    bool is_fixed = false;
    int32_t n_symbols = 1;                  // V
    double symbol_mass = 1.0;               // gamma / V

    bool has_tables() const { return !is_fixed; }
    void set_symbols(int32_t n) {
        n_symbols = n;
        symbol_mass = gamma / n;
    }
    void set_gamma(double value) {
        gamma = value;
        symbol_mass = gamma / n_symbols;
    }
    double scale(double alpha, int32_t change = 0) const {
        return is_fixed ? alpha / n_symbols : Root::scale(alpha, change);
    }
    double mass_of(int32_t n) const { return is_fixed ? 1.0 : n + symbol_mass; }
    void add_log_joint(double *lp) const {
        if (is_fixed) return;
        *lp -= log_rising(gamma, n_tables);
        for (int32_t m : dish_tables) if (m) *lp += log_rising(symbol_mass, m);
    }
};

}  // namespace skihmm
