"""Two-level Chinese restaurant seating: the transitions' prior."""

from skihmm.core._record cimport concentration_of, record_to_arrays


cdef class Franchise:
    """Seating of the transitions over slots (see ``_franchise.pxd``).

    Parameters
    ----------
    alpha, gamma : float
        Lower and top concentration, from 1e-50 to 1e50.
    """

    def __init__(self, alpha=1.0, gamma=1.0):
        self.seating = new Seating()
        self.shared.reset(self.seating)
        self.seating.configure(Base.kInfinite, 0)
        self.seating.set_concentrations(
            concentration_of(alpha, "alpha"), concentration_of(gamma, "gamma"))

    @property
    def alpha(self):
        """Lower concentration."""
        return self.seating.alpha

    @property
    def gamma(self):
        """Top concentration."""
        return self.seating.gamma

    cdef void fill_row(self, int32_t j, float64_t *out) noexcept nogil:
        cdef Seating *s = self.seating
        cdef int32_t k, n = <int32_t> s.dish_tables.size()
        cdef float64_t inverse = 1.0 / (s.row_customers[j] + s.alpha)
        cdef float64_t smooth = s.scale() * inverse
        cdef Line *line = &s.rows[j]
        for k in range(n):
            out[k] = smooth * s.dish_tables[k]
        out[NEW] = smooth * s.gamma
        for k in range(line.size):
            out[line.ids[k]] += inverse * line.counts[k]

    cdef void push(self, const float64_t *weights, float64_t *out) noexcept nogil:
        # p(k | j) = c_j n_jk + (alpha beta_k) c_j is sparse plus rank one.
        cdef Seating *s = self.seating
        cdef int32_t j, k, n = <int32_t> s.dish_tables.size()
        cdef float64_t share, total = 0.0
        cdef Line *line
        for k in range(n):
            out[k] = 0.0
        for j in range(n):
            if weights[j] == 0.0:
                continue
            share = weights[j] / (s.row_customers[j] + s.alpha)
            total += share
            line = &s.rows[j]
            for k in range(line.size):
                out[line.ids[k]] += share * line.counts[k]
        total *= s.scale()
        for k in range(n):
            out[k] += total * s.dish_tables[k]
        out[NEW] += total * s.gamma

    cdef void pull(self, const float64_t *values, float64_t *out) noexcept nogil:
        cdef Seating *s = self.seating
        cdef int32_t j, k, n = <int32_t> s.dish_tables.size()
        cdef float64_t smooth = s.gamma * values[NEW], total
        cdef Line *line
        for k in range(n):
            smooth += s.dish_tables[k] * values[k]
        smooth *= s.scale()
        for j in range(n):
            total = smooth
            line = &s.rows[j]
            for k in range(line.size):
                total += line.counts[k] * values[line.ids[k]]
            out[j] = total / (s.row_customers[j] + s.alpha)

    cdef void push_max(self, const float64_t *weights, float64_t *out,
                       int32_t *argmax_out) noexcept nogil:
        # The smooth part is largest for one j whatever k is; a j with n_jk > 0 beats its
        # own smooth part, so the maximum is over that one j and the column's entries.
        cdef Seating *s = self.seating
        cdef int32_t i, j, k, best = NEW, n = <int32_t> s.dish_tables.size()
        cdef float64_t share, largest = -1.0, value, scale = s.scale()
        cdef Line *line
        for j in range(n):
            share = weights[j] / (s.row_customers[j] + s.alpha)
            if share > largest:
                largest = share
                best = j
        for k in range(n):
            out[k] = largest * scale * s.dish_tables[k]
            argmax_out[k] = best
        out[NEW] = largest * scale * s.gamma
        for j in range(n):
            if weights[j] == 0.0:
                continue
            share = weights[j] / (s.row_customers[j] + s.alpha)
            line = &s.rows[j]
            for i in range(line.size):
                k = line.ids[i]
                value = share * (line.counts[i] + scale * s.mass(k))
                if value > out[k]:
                    out[k] = value
                    argmax_out[k] = j

    cpdef dict to_arrays(self):
        """Packed copy of the seating (see ``SeatingRecord``) and its concentrations."""
        arrays = record_to_arrays(self.seating.record())
        arrays["alpha"] = self.seating.alpha
        arrays["gamma"] = self.seating.gamma
        return arrays
