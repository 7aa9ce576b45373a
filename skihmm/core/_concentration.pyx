"""Concentration updates of a franchise.

Given restaurants of sizes n_1 .. n_J that share a concentration c and hold M tables in
all: w_j ~ Beta(c + 1, n_j), s_j ~ Bernoulli(n_j / (n_j + c)), and then
c ~ Gamma(shape + M - sum s_j, rate - sum log w_j).
"""

from libc.math cimport log
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_beta, random_standard_gamma

from skihmm.core._emission cimport EmissionStats
from skihmm.core._franchise cimport Franchise
from skihmm.core._random cimport RandomStream, uniform
from skihmm.core._record cimport LEAST_CONCENTRATION, MOST_CONCENTRATION
from skihmm.core._types cimport float64_t, int64_t

# Draws are kept in the range that records may have.  Below it a draw of Gamma with a tiny
# shape is numerically zero, and alpha/(n + alpha) has to stay finite; beyond it one comes
# only from a prior that is hardly proper.  With the default prior the probability of either
# is below 1e-49.

cdef void _count_restaurant(float64_t c, float64_t n, float64_t *shape, float64_t *rate,
                            bitgen_t *g) noexcept nogil:
    cdef float64_t w = random_beta(g, c + 1.0, n)
    rate[0] -= log(w if w > 1e-300 else 1e-300)
    if uniform(g) * (n + c) < n:
        shape[0] -= 1.0


cdef float64_t _draw(float64_t shape, float64_t rate, bitgen_t *g) noexcept nogil:
    cdef float64_t c = random_standard_gamma(g, shape) / rate
    return min(max(c, LEAST_CONCENTRATION), MOST_CONCENTRATION)


cdef float64_t resample_shared(const vector[const Seating *] &seatings, float64_t shape,
                               float64_t rate, bitgen_t *g) noexcept nogil:
    # Every row counts, the start restaurant of the transitions too.
    cdef size_t i, j
    cdef const Seating *s
    cdef float64_t alpha = seatings[0].alpha
    for i in range(seatings.size()):
        s = seatings[i]
        shape += s.n_tables
        for j in range(s.row_customers.size()):
            if s.row_customers[j] > 0:
                _count_restaurant(alpha, s.row_customers[j], &shape, &rate, g)
    return _draw(shape, rate, g)


cdef float64_t resample_gamma_infinite(const Seating *seating, float64_t shape,
                                       float64_t rate, bitgen_t *g) noexcept nogil:
    cdef size_t k
    for k in range(seating.dish_tables.size()):
        if seating.dish_tables[k] > 0:
            shape += 1.0
    if seating.n_tables > 0:
        _count_restaurant(seating.gamma, seating.n_tables, &shape, &rate, g)
    return _draw(shape, rate, g)


cdef float64_t resample_gamma_uniform(const vector[const Seating *] &seatings,
                                      float64_t shape, float64_t rate,
                                      bitgen_t *g) noexcept nogil:
    # The collapsed root's own tables are drawn first: of e_w tables of symbol w,
    # sum_i Bernoulli(a / (a + i)) with a = gamma/V open one at the root.  (Their number is
    # not the number of distinct symbols.)
    cdef size_t i, w
    cdef int64_t table
    cdef float64_t a, gamma = seatings[0].gamma
    cdef const Seating *s
    for i in range(seatings.size()):
        s = seatings[i]
        a = gamma / s.n_symbols
        for w in range(s.dish_tables.size()):
            for table in range(s.dish_tables[w]):
                if table == 0 or uniform(g) * (a + table) < a:
                    shape += 1.0
        if s.n_tables > 0:
            _count_restaurant(gamma, s.n_tables, &shape, &rate, g)
    return _draw(shape, rate, g)


def resample_concentrations(Franchise transitions, EmissionStats emission,
                            RandomStream stream, prior):
    """Draw the hyperparameters of transitions and emission given labels and seating.

    Parameters
    ----------
    transitions : Franchise
    emission : EmissionStats
    stream : RandomStream
    prior : (float, float) or None
        Shape and rate of the Gamma prior on alpha and on gamma; None keeps both.  The
        emission knows its own prior.
    """
    with nogil:
        emission.draw_hyperparameters(stream.bits)
    if prior is None:
        return
    cdef float64_t shape = prior[0], rate = prior[1], alpha, gamma
    cdef vector[const Seating *] seatings
    cdef Seating *seating = &transitions.seating
    seatings.push_back(seating)
    alpha = resample_shared(seatings, shape, rate, stream.bits)
    gamma = resample_gamma_infinite(seating, shape, rate, stream.bits)
    transitions.seating.set_concentrations(alpha, gamma)
