// Auxiliary-variable updates of concentrations (Teh et al. 2006; Escobar and West 1995),
// prior Gamma(shape, rate).
//
// Given restaurants of sizes n_1 .. n_J that share a concentration c and hold M tables in
// all: w_j ~ Beta(c + 1, n_j), s_j ~ Bernoulli(n_j / (n_j + c)), and then
// c ~ Gamma(shape + M - sum s_j, rate - sum log w_j).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "_law.hpp"
#include "_random.hpp"
#include "_record.hpp"

namespace skihmm {

class ConcentrationDraw {
  public:
    ConcentrationDraw(double shape, double rate) : shape_(shape), rate_(rate) {}
    void add_tables(double n) { shape_ += n; }
    // A restaurant of n customers with the concentration c.
    void add_restaurant(double c, double n, bitgen_t *g) {
        const double w = random_beta(g, c + 1.0, n);
        rate_ -= std::log(w > 1e-300 ? w : 1e-300);
        if (uniform(g) * total_weight(n, c) < n) shape_ -= 1.0;
    }
    // Kept in the range that records may have.  Below it a draw of Gamma with a tiny shape is
    // numerically zero, and alpha/(n + alpha) has to stay finite; beyond it one comes only
    // from a prior that is hardly proper.  With the default prior the probability of either
    // is below 1e-49.
    double draw(bitgen_t *g) const {
        const double c = random_standard_gamma(g, shape_) / rate_;
        return std::min(std::max(c, kLeastConcentration), kMostConcentration);
    }

  private:
    double shape_, rate_;
};

// `alpha`, shared by the rows of n seatings: the start restaurant counts too.
template <class Seating>
double draw_alpha(const Seating *seatings, size_t n, double shape, double rate, bitgen_t *g) {
    ConcentrationDraw alpha(shape, rate);
    for (const Seating *s = seatings; s < seatings + n; ++s) {
        alpha.add_tables(s->base.n_tables);
        for (const int32_t &size : s->row_customers)
            if (size > 0) alpha.add_restaurant(seatings->alpha, size, g);
    }
    return alpha.draw(g);
}
// `gamma` of a franchise with infinitely many dishes.
template <class Seating>
double draw_gamma_infinite(const Seating &s, double shape, double rate, bitgen_t *g) {
    ConcentrationDraw gamma(shape, rate);
    for (const int32_t m : s.base.dish_tables) gamma.add_tables(m > 0);
    if (s.base.n_tables > 0) gamma.add_restaurant(s.base.gamma, s.base.n_tables, g);
    return gamma.draw(g);
}
// `gamma` shared by n franchises over V symbols with the collapsed uniform root.
//
// The root's own tables are drawn first: of e_w tables of symbol w,
// sum_i Bernoulli(a / (a + i)) with a = gamma/V open one at the root.  (Their number is not
// the number of distinct symbols.)
template <class Seating>
double draw_gamma_uniform(const Seating *seatings, size_t n, double shape, double rate,
                          bitgen_t *g) {
    ConcentrationDraw gamma(shape, rate);
    for (const Seating *s = seatings; s < seatings + n; ++s) {
        const double a = s->base.symbol_mass;
        for (const int32_t n_tables : s->base.dish_tables)
            for (int32_t table = 0; table < n_tables; ++table)
                gamma.add_tables(table == 0 || opens_table(table, a, uniform(g)));
        if (s->base.n_tables > 0) gamma.add_restaurant(seatings->base.gamma, s->base.n_tables, g);
    }
    return gamma.draw(g);
}

}  // namespace skihmm
