// Auxiliary-variable updates of concentrations (Teh et al. 2006; Escobar and West 1995).
//
// Given restaurants of sizes n_1 .. n_J that share a concentration c and have M tables in
// all: w_j ~ Beta(c + 1, n_j), s_j ~ Bernoulli(n_j / (n_j + c)), and then
// c ~ Gamma(shape + M - sum s_j, rate - sum log w_j).
#pragma once
#include <algorithm>
#include <cmath>

#include "_random.hpp"
#include "_record.hpp"
#include "_restaurants.hpp"

namespace skihmm {

class ConcentrationPosterior {
  public:
    ConcentrationPosterior(double shape, double rate) : shape_(shape), rate_(rate) {}
    // For alpha: all restaurants of a seating, the start's too.
    template <class Root> void count_rows(const Restaurants<Root> &s, bitgen_t *g) {
        shape_ += s.count_tables();
        // planted: customers of alpha
        for (const int32_t n : s.row_customers) count_restaurant(s.alpha, n, g);
    }
    // For gamma: the root is one restaurant, in which every dish has one table ...
    void count_root(const InfiniteRoot &root, bitgen_t *g) {
        for (const int32_t m : root.dish_tables) shape_ += m > 0;
        count_restaurant(root.gamma, root.n_tables, g);
    }
    // ... or, integrated out, a number of tables that is drawn first: of the m tables of a
    // symbol, sum_i Bernoulli(a / (a + i)) with a = gamma/V open one at the root.
    void count_root(const SymbolBase &root, bitgen_t *g) {
        const double a = root.symbol_mass;
        for (const int32_t m : root.dish_tables)
            for (int32_t table = 0; table < m; ++table)
                // planted: tables of gamma
                shape_ += table == 0 || opens_table(table, a, uniform(g));
        count_restaurant(root.gamma, root.n_tables, g);
    }
    // Draws are kept in the range that records may have.  Below it a Gamma draw with a tiny shape
    // is numerically zero, and alpha/(n + alpha) has to stay finite; above it a draw comes only
    // from a prior that is hardly proper.  With the default prior the probability of either is
    // below 1e-49.
    double draw(bitgen_t *g) const {
        return std::min(std::max(random_standard_gamma(g, shape_) / rate_,
                                 kConcentration.least), kConcentration.most);
    }

  private:
    void count_restaurant(double c, int64_t n, bitgen_t *g) {
        if (n == 0) return;
        rate_ -= std::log(std::max(random_beta(g, c + 1.0, n), 1e-300));
        if (uniform(g) * total_weight(n, c) < n) shape_ -= 1.0;
    }
    double shape_, rate_;
};

// Draw both concentrations, shared by n seatings, given these.
template <class Restaurants>
void draw_concentrations(Restaurants *seatings, size_t n, double shape, double rate,
                         bitgen_t *g) {
    ConcentrationPosterior lower(shape, rate), top(shape, rate);
    for (size_t i = 0; i < n; ++i) lower.count_rows(seatings[i], g);
    const double alpha = lower.draw(g);
    for (size_t i = 0; i < n; ++i) top.count_root(seatings[i].base, g);
    const double gamma = top.draw(g);
    for (size_t i = 0; i < n; ++i) seatings[i].set_concentrations(alpha, gamma);
}

}  // namespace skihmm
