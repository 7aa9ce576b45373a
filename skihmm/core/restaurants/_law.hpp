// The predictive probability of a restaurant, written here and nowhere else.
//
// n_jk of the n_j customers in restaurant j are at tables of dish k.  The next has dish k
// with probability
//
//     p(k | j) = (n_jk + a_k) / (n_j + alpha),     a_k = alpha * (base probability of k):
//
// at one of those tables with weight n_jk, at a new table with weight a_k.  Under a root with m_k
// of m tables a_k = scale * mass(k), with scale = alpha/(m + gamma) for all dishes and a mass that
// is m_k plus the root's own weight of k.
//
// Kernels expand this product of sparse counts and a smooth part; they take the parts from
// here: the total n_j + alpha, the scale, the masses.
#pragma once
#include <cstdint>

#include "_platform.hpp"

namespace skihmm {

// n_j + alpha: the sum of all dishes' weights in a restaurant.
SKIHMM_INLINE double total_weight(double n_customers, double alpha) {
    return n_customers + alpha;
}
// alpha/(m + gamma): a new table's weight per unit of mass.
SKIHMM_INLINE double table_scale(double alpha, int64_t n_tables, double gamma) {
    return alpha / (n_tables + gamma);
}
// The weight of a new table of a dish; and the same at once, rounded once less.
SKIHMM_INLINE double new_table_weight(double scale, double mass) { return scale * mass; }
SKIHMM_INLINE double new_table_weight(double alpha, double mass, int64_t n_tables,
                                      double gamma) {
    return alpha * mass / (n_tables + gamma);
}
// table_scale if one more table were open.
SKIHMM_INLINE double table_scale_after(double alpha, double scale) {
    return alpha * scale / (scale + alpha);
}
// Weight of a dish: of its n customers, and of a new table.
template <class Real> SKIHMM_INLINE Real dish_weight(Real n, Real new_table) {
    return n + new_table;
}
template <class Real> SKIHMM_INLINE Real dish_weight(Real n, Real scale, Real mass) {
    return n + scale * mass;
}
// Whether a customer joining n > 0 customers of a dish opens a table; u is uniform on [0, 1).
SKIHMM_INLINE bool opens_table(double n, double new_table, double u) {
    return u * dish_weight(n, new_table) < new_table;
}

}  // namespace skihmm
