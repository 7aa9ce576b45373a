"""Statistics of categorical emissions: HCRP and Dirichlet."""

import numpy as np

from libc.math cimport exp, log
from numpy.random cimport bitgen_t

from skihmm.core._concentration cimport ConcentrationPosterior
from skihmm.core._emission cimport SeatingEmission, SymbolColumn
from skihmm.core._franchise cimport Line, Product, SymbolSeating, dish_weight
from skihmm.core._random cimport RandomStream, uniform
from skihmm.core._record cimport (
    SeatingRecord,
    check_customers,
    concentration_of,
    entry_of,
    integer_of,
    record_from_arrays,
    record_to_arrays,
)


cdef extern from "_dirichlet_counts.hpp" namespace "skihmm" nogil:
    cdef cppclass DirichletCounts:
        void add_cell(int32_t count) except +
        void add_state(int32_t n_symbols, int32_t count) except +
        float64_t draw_pseudo_count(float64_t pseudo_count, bitgen_t *g)


cdef enum:
    # Columns whose probabilities are multiplied before a logarithm is taken: sixteen
    # factors of 1e-18 are still far from underflow.
    GROUP = 16

# Relative to the most probable state no state gets less than exp of this: a label that is
# possible has to keep a positive weight, or a chain in it could not leave.
cdef float64_t LEAST_LOG = -460.0


cdef class CategoricalStats(EmissionStats):
    """Symbol counts of every state, one independent franchise per column.

    Parameters
    ----------
    codes : ndarray of shape (n_steps, n_columns), int32
        Symbols ``0 .. V_c - 1`` of every column; -1 is missing.
    n_symbols : sequence of int
        V_c of every column.
    alpha, gamma : float
        Concentrations of the hierarchical process, shared by all columns, from 1e-50 to
        1e50.  With ``hierarchical=False``, `alpha` is the pseudo-count of every symbol.
    hierarchical : bool
        HCRP over a shared, learned distribution of symbols (arXiv 1106.0474), or
        independent symmetric Dirichlet distributions.
    concentration_prior : (float, float) or None
        Shape and rate of the Gamma prior on both concentrations of the hierarchical process;
        None keeps them.
    draws_pseudo_count : bool
        With ``hierarchical=False``: draw the pseudo-count from its posterior, prior
        Gamma(1/2, 1/2).
    """

    def __init__(self, codes, n_symbols, alpha, gamma=1.0, hierarchical=True,
                 concentration_prior=None, draws_pseudo_count=False):
        cdef intp_t c
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.dtype.kind not in "iu":
            raise ValueError(
                f"codes is an array of type {codes.dtype} and shape {codes.shape}; expected "
                "integers, one row per step and one column per symbol")
        if codes.shape[1] != len(n_symbols):
            raise ValueError(
                f"codes has {codes.shape[1]} columns, but n_symbols says {len(n_symbols)}")
        for c, n in enumerate(n_symbols):
            integer_of(n, f"n_symbols[{c}]", 1, 2**31 - 1)
            if len(codes) and not -1 <= codes[:, c].min() <= codes[:, c].max() < n:
                raise ValueError(
                    f"column {c} of codes goes from {codes[:, c].min()} to "
                    f"{codes[:, c].max()}; expected -1 to {n - 1}")
        self.codes = np.ascontiguousarray(codes, dtype=np.int32)
        self.n_steps = self.codes.shape[0]
        self.n_columns = self.codes.shape[1]
        self.has_columns = self.n_columns == 1
        self.draws_parameters = True
        self.hierarchical = hierarchical
        self.draws_pseudo_count = draws_pseudo_count
        self.concentration_prior = concentration_prior
        if concentration_prior is None:
            self.prior_rate = 0.0
        else:
            self.prior_shape, self.prior_rate = concentration_prior
        self.seatings.resize(self.n_columns)
        self.hints.assign(self.n_steps * self.n_columns, -1)
        for c in range(self.n_columns):
            self.seatings[c].is_fixed = not hierarchical
            self.seatings[c].set_symbols(n_symbols[c])
        self._set_concentrations(
            concentration_of(alpha, "alpha"), concentration_of(gamma, "gamma"))

    def _set_concentrations(self, float64_t alpha, float64_t gamma):
        cdef intp_t c
        self.pseudo_count = alpha
        for c in range(self.n_columns):
            if self.hierarchical:
                self.seatings[c].set_concentrations(alpha, gamma)
            else:
                # A Dirichlet with pseudo-count a is a restaurant of concentration V a
                # whose base stays uniform.
                self.seatings[c].set_concentrations(
                    alpha * self.seatings[c].n_symbols, 1.0)

    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        cdef intp_t c
        cdef int32_t symbol
        for c in range(self.n_columns):
            symbol = self.codes[t, c]
            if symbol >= 0:
                r.multiply(self.seatings[c].add(
                    k, symbol, g, &self.hints[t * self.n_columns + c]))
        return 0

    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        cdef intp_t c
        cdef int32_t symbol
        for c in range(self.n_columns - 1, -1, -1):
            symbol = self.codes[t, c]
            if symbol >= 0:
                r.multiply(self.seatings[c].remove(
                    k, symbol, g, &self.hints[t * self.n_columns + c]))
        return 0

    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil:
        cdef intp_t c = 0, stop
        cdef int32_t k
        cdef float64_t largest
        if self.n_columns <= GROUP:
            self.multiply_columns(t, 0, self.n_columns, out)
            return 0.0
        # The product of many columns leaves the range of a double: logs, group by group.
        self.logs.assign(self.n_slots, 0.0)
        while c < self.n_columns:
            stop = c + GROUP if c + GROUP < self.n_columns else self.n_columns
            self.multiply_columns(t, c, stop, out)
            for k in range(self.n_slots):
                self.logs[k] += log(out[k])
            c = stop
        largest = self.logs[0]
        for k in range(self.n_slots):
            largest = max(largest, self.logs[k])
        for k in range(self.n_slots):
            out[k] = exp(max(self.logs[k] - largest, LEAST_LOG))
        return largest

    cdef void multiply_columns(self, intp_t t, intp_t start, intp_t stop,
                               float64_t *out) noexcept nogil:
        # out[k] = product over columns start .. stop - 1 of p(y[t, c] | k).
        cdef intp_t c, i
        cdef int32_t k, symbol
        cdef SymbolSeating *s
        cdef Line *line
        cdef float64_t smooth
        for k in range(self.n_slots):
            out[k] = 1.0
        for c in range(start, stop):
            symbol = self.codes[t, c]
            if symbol < 0:
                continue
            s = &self.seatings[c]
            # The listed states get the ratio (count + smooth)/smooth on top of what all
            # states have.
            smooth = s.new_table(symbol)
            line = &s.columns[symbol]
            for k in range(self.n_slots):
                out[k] *= smooth / s.total(k)
            for i in range(line.size):
                out[line.ids[i]] *= dish_weight(line.counts[i], smooth) / smooth

    cdef int fill_pair(self, intp_t t, const int32_t *states,
                       float64_t *out) except -1 nogil:
        cdef intp_t c, i
        cdef int32_t symbol
        cdef float64_t larger
        cdef Product p[2]
        for i in range(2):
            p[i].reset()
            for c in range(self.n_columns):
                symbol = self.codes[t, c]
                if symbol >= 0:
                    p[i].multiply(self.seatings[c].prob(states[i], symbol))
            out[i] = p[i].value
        if p[0].log_scale != 0.0 or p[1].log_scale != 0.0:
            # Many columns: relative to the larger of the two.
            larger = max(p[0].log(), p[1].log())
            for i in range(2):
                out[i] = exp(max(p[i].log() - larger, LEAST_LOG))
        return 0

    cdef bint fill_column(self, intp_t t, SymbolColumn *out) noexcept nogil:
        cdef int32_t symbol = self.codes[t, 0]
        cdef Line *line
        if symbol < 0:
            return False
        line = &self.seatings[0].columns[symbol]
        out.ids = line.ids
        out.counts = line.counts
        out.size = line.size
        out.smooth = self.seatings[0].new_table(symbol)
        return True

    cdef const int32_t *totals(self, float64_t *offset_out) noexcept nogil:
        offset_out[0] = self.seatings[0].alpha
        return self.seatings[0].row_customers.data()

    cdef bint is_moderate(self, float64_t least, float64_t most) noexcept nogil:
        cdef SymbolSeating *s = &self.seatings[0]
        return (least < s.alpha < most and least < s.gamma < most
                and least < s.alpha / s.n_symbols * 1e5)

    cdef bint as_seating(self, SeatingEmission *out) noexcept nogil:
        if self.n_columns != 1 or self.n_steps == 0:
            return False
        out.seating = &self.seatings[0]
        out.codes = &self.codes[0, 0]
        out.hints = self.hints.data()
        return True

    cdef int resize(self, int32_t n_slots) except -1 nogil:
        cdef intp_t c
        self.n_slots = n_slots
        for c in range(self.n_columns):
            self.seatings[c].resize(n_slots, self.seatings[c].n_symbols)
        if self.has_parameters:
            for c in range(self.n_columns):
                self.parameters[c].resize(n_slots)
        return 0

    cdef int commit(self) except -1 nogil:
        cdef intp_t c
        for c in range(self.n_columns):
            self.seatings[c].commit()
        return 0

    cdef int rollback(self) except -1 nogil:
        cdef intp_t c
        for c in range(self.n_columns):
            self.seatings[c].rollback()
        return 0

    cdef float64_t log_joint(self) except? -1 nogil:
        cdef intp_t c
        cdef float64_t lp = 0.0
        for c in range(self.n_columns):
            lp += self.seatings[c].log_joint()
        return lp

    cdef int draw_hyperparameters(self, bitgen_t *g) except -1 nogil:
        if self.draws_pseudo_count:
            return self._draw_pseudo_count(g)
        if not self.hierarchical or self.prior_rate == 0.0:
            return 0
        cdef intp_t c
        cdef float64_t alpha, gamma
        cdef ConcentrationPosterior lower, top
        lower.set_prior(self.prior_shape, self.prior_rate)
        top.set_prior(self.prior_shape, self.prior_rate)
        for c in range(self.n_columns):
            lower.count_rows(self.seatings[c], g)
        alpha = lower.draw(g)
        for c in range(self.n_columns):
            top.count_root(self.seatings[c].base, g)
        gamma = top.draw(g)
        for c in range(self.n_columns):
            self.seatings[c].set_concentrations(alpha, gamma)
        return 0

    cdef int _draw_pseudo_count(self, bitgen_t *g) except -1 nogil:
        cdef intp_t c, i
        cdef int32_t k
        cdef Line *row
        cdef SymbolSeating *s
        cdef DirichletCounts counts
        for c in range(self.n_columns):
            s = &self.seatings[c]
            for k in range(self.n_slots):
                row = &s.rows[k]
                for i in range(row.size):
                    counts.add_cell(row.counts[i])
                counts.add_state(s.n_symbols, s.row_customers[k])
        self.pseudo_count = counts.draw_pseudo_count(self.pseudo_count, g)
        for c in range(self.n_columns):
            s = &self.seatings[c]
            s.set_concentrations(self.pseudo_count * s.n_symbols, 1.0)
        return 0

    cdef size_t n_bytes(self) noexcept nogil:
        cdef intp_t c
        cdef size_t total = 8 * self.n_steps * self.n_columns
        for c in range(self.n_columns):
            total += self.seatings[c].n_bytes()
        # Samplers that draw parameters leave their tables behind for the next sweep.
        for c in range(<intp_t> self.parameters.size()):
            total += self.parameters[c].n_bytes()
        return total + 8 * (self.logs.capacity() + self.row.capacity())

    # -- parameters

    cdef int draw_parameters(self, const int32_t *occupancy, bint lazy,
                             bitgen_t *g) except -1 nogil:
        cdef intp_t c
        self.parameters.resize(self.n_columns)
        for c in range(self.n_columns):
            self.parameters[c].draw(self.seatings[c], occupancy, self.n_slots, lazy, g)
        self.has_parameters = True
        return 0

    cdef const float64_t *likelihoods(self, intp_t t,
                                      const int32_t *occupancy) except NULL nogil:
        cdef intp_t c, n_factors = 0
        cdef int32_t k, symbol
        cdef const float64_t *probs
        cdef float64_t largest
        if self.n_columns == 1 and self.codes[t, 0] >= 0:
            return self.parameters[0].probs(self.codes[t, 0])
        # Room for whole vectors of sixteen.
        self.row.assign(self.n_slots + 16, 1.0)
        if self.n_columns > GROUP:
            self.logs.assign(self.n_slots, 0.0)
        for c in range(self.n_columns):
            symbol = self.codes[t, c]
            if symbol < 0:
                continue
            probs = self.parameters[c].probs(symbol)
            for k in range(self.n_slots):
                self.row[k] *= probs[k]
            n_factors += 1
            if self.n_columns > GROUP and n_factors % GROUP == 0:
                for k in range(self.n_slots):
                    self.logs[k] += log(self.row[k])
                    self.row[k] = 1.0
        if self.n_columns <= GROUP:
            return self.row.data()
        # As in fill_probs; what free slots hold must not count.
        self.logs[0] += log(self.row[0])
        largest = self.logs[0]
        for k in range(1, self.n_slots):
            self.logs[k] += log(self.row[k])
            if occupancy[k] > 0:
                largest = max(largest, self.logs[k])
        for k in range(self.n_slots):
            self.row[k] = 0.0
            if k == 0 or occupancy[k] > 0:
                self.row[k] = exp(max(self.logs[k] - largest, LEAST_LOG))
        return self.row.data()

    cdef float64_t log_likelihood(self, intp_t t, int32_t k, bitgen_t *g) except? -1 nogil:
        cdef intp_t c
        cdef Product p
        for c in range(self.n_columns):
            if self.codes[t, c] >= 0:
                p.multiply(self.parameters[c].prob(k, self.codes[t, c], g))
        return p.log()

    cdef int draw_newborn(self, int32_t k, intp_t t, bitgen_t *g) except -1 nogil:
        cdef intp_t c
        for c in range(self.n_columns):
            self.parameters[c].draw_newborn(k, self.codes[t, c], g)
        return 0

    cdef int reseat(self, const int32_t *states, bitgen_t *g) except -1 nogil:
        cdef intp_t c
        for c in range(self.n_columns):
            self.seatings[c].reseat(states, &self.codes[0, c], self.n_columns,
                                    self.n_steps, self.parameters[c].base(), g)
        self.has_parameters = False
        return 0

    # -- Python side

    def take_hyperparameters(self, arrays):
        self._set_concentrations(arrays["alpha"], arrays["gamma"])

    def columns(self, arrays=None):
        """Symbols and concentrations of every column, for particle filters.

        Parameters
        ----------
        arrays : dict, optional
            What :meth:`to_arrays` of other statistics has returned: take the
            concentrations from there.

        Returns
        -------
        columns : list of (n_symbols, hierarchical, alpha, gamma)

        Raises
        ------
        ValueError
            If `arrays` has no such concentrations.
        """
        cdef intp_t c
        out = []
        for c in range(self.n_columns):
            alpha, gamma = self.seatings[c].alpha, self.seatings[c].gamma
            if not self.hierarchical:
                alpha = self.pseudo_count
            if arrays is not None:
                alpha = concentration_of(
                    entry_of(arrays, "alpha", "emission"), "emission: alpha")
                gamma = concentration_of(
                    entry_of(arrays, "gamma", "emission"), "emission: gamma")
            out.append((self.seatings[c].n_symbols, self.hierarchical, alpha, gamma))
        return out

    def to_arrays(self, labels):
        cdef intp_t c, i
        cdef const int32_t[::1] label = np.ascontiguousarray(labels, dtype=np.int32)
        cdef SeatingRecord record
        columns = []
        for c in range(self.n_columns):
            record = self.seatings[c].record()
            for i in range(<intp_t> record.rows.size()):
                record.rows[i] = label[record.rows[i]]
            columns.append(record_to_arrays(record))
        alpha = self.seatings[0].alpha if self.hierarchical else self.pseudo_count
        return {"columns": columns, "alpha": alpha, "gamma": self.seatings[0].gamma}

    cdef int _records(self, arrays, int32_t n_states, vector[SeatingRecord] *out,
                      float64_t *alpha_out, float64_t *gamma_out) except -1:
        cdef intp_t c
        columns = entry_of(arrays, "columns", "emission")
        if not isinstance(columns, (list, tuple)) or len(columns) != self.n_columns:
            raise ValueError(
                f"emission: columns is {columns!r:.100}; expected a list of "
                f"{self.n_columns} dicts, one per column")
        alpha_out[0] = concentration_of(
            entry_of(arrays, "alpha", "emission"), "emission: alpha")
        gamma_out[0] = concentration_of(
            entry_of(arrays, "gamma", "emission"), "emission: gamma")
        out.resize(self.n_columns)
        for c in range(self.n_columns):
            record_from_arrays(columns[c], f"emission, column {c}", n_states,
                               self.seatings[c].n_symbols, self.hierarchical, &out[0][c])
        return 0

    def records(self, arrays):
        return entry_of(arrays, "columns", "emission")

    def check_arrays(self, arrays, labels):
        cdef intp_t c
        cdef const int32_t[::1] label = np.ascontiguousarray(labels, dtype=np.int32)
        cdef int32_t n_states = int(np.max(labels)) + 1
        cdef vector[SeatingRecord] records
        cdef float64_t alpha, gamma
        self._records(arrays, n_states, &records, &alpha, &gamma)
        for c in range(self.n_columns):
            check_customers(records[c], &label[0], &self.codes[0, c], self.n_columns,
                            self.n_steps, n_states, f"emission, column {c}".encode())

    def load(self, arrays, slots):
        cdef intp_t c, i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef vector[SeatingRecord] records
        cdef float64_t alpha, gamma
        self._records(arrays, <int32_t> slot.shape[0], &records, &alpha, &gamma)
        self._set_concentrations(alpha, gamma)
        for c in range(self.n_columns):
            for i in range(<intp_t> records[c].rows.size()):
                records[c].rows[i] = slot[records[c].rows[i]]
            self.seatings[c].load(records[c])

    def predictives(self, slots):
        cdef intp_t c, i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef float64_t[:, ::1] view
        out = []
        for c in range(self.n_columns):
            probs = np.empty((slot.shape[0], self.seatings[c].n_symbols))
            view = probs
            for i in range(slot.shape[0]):
                self.seatings[c].fill_probs(slot[i], &view[i, 0])
            out.append(probs)
        return out

    def draw_values(self, slots, n_known, RandomStream stream):
        cdef intp_t i
        cdef int32_t low, high, middle
        cdef float64_t u
        cdef const float64_t[:, ::1] view
        cdef int32_t[::1] code
        distinct, inverse = np.unique(slots, return_inverse=True)
        cdef const intp_t[::1] row = np.ascontiguousarray(inverse, dtype=np.intp)
        out = []
        for probs, known in zip(self.predictives(distinct), n_known, strict=True):
            view = np.ascontiguousarray(np.cumsum(probs[:, :known], axis=1))
            codes = np.empty(len(slots), dtype=np.int32)
            code = codes
            for i in range(row.shape[0]):
                # The first symbol whose cumulative probability exceeds u.
                low, high = 0, <int32_t> view.shape[1] - 1
                u = uniform(stream.bits) * view[row[i], high]
                while low < high:
                    middle = (low + high) // 2
                    if view[row[i], middle] > u:
                        high = middle
                    else:
                        low = middle + 1
                code[i] = low
            out.append(codes)
        return out

    def check(self, slots):
        cdef intp_t c, t, i
        cdef const char *wrong
        cdef Line *line
        cdef object pair
        for c in range(self.n_columns):
            wrong = self.seatings[c].check()
            if wrong is not NULL:
                return f"column {c}: " + wrong.decode()
            counts = {}
            for t in range(self.n_steps):
                if self.codes[t, c] >= 0:
                    pair = (int(slots[t]), int(self.codes[t, c]))
                    counts[pair] = counts.get(pair, 0) + 1
            seated = {}
            for t in range(self.n_slots):
                line = &self.seatings[c].rows[t]
                for i in range(line.size):
                    pair = (t, int(line.ids[i]))
                    seated[pair] = line.counts[i]
            if seated != counts:
                return f"column {c}: counts differ from a recount of the labels"
        return None
