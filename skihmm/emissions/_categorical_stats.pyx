"""Statistics of categorical emissions: HCRP and Dirichlet."""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission
from skihmm.core._franchise cimport FIRST, Line
from skihmm.core._random cimport RandomStream, uniform
from skihmm.core._record cimport (
    SeatingRecord,
    check_customers,
    concentration_of,
    entry_of,
    integer_of,
    integers_of,
    record_from_arrays,
    record_to_arrays,
    relabelled,
)


cdef object codes_of(codes, n_symbols, vector[int32_t] *sizes):
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.dtype.kind not in "iu":
        raise ValueError(
            f"codes is an array of type {codes.dtype} and shape {codes.shape}; expected "
            "integers, one row per step and one column per symbol")
    if codes.shape[1] != len(n_symbols):
        raise ValueError(
            f"codes has {codes.shape[1]} columns, but n_symbols says {len(n_symbols)}")
    for c, n in enumerate(n_symbols):
        sizes.push_back(<int32_t> integer_of(n, f"n_symbols[{c}]", 1, 2**31 - 1))
        if len(codes) and not -1 <= codes[:, c].min() <= codes[:, c].max() < n:
            raise ValueError(
                f"column {c} of codes goes from {codes[:, c].min()} to "
                f"{codes[:, c].max()}; expected -1 to {n - 1}")
    return np.ascontiguousarray(codes, dtype=np.int32)


cdef object draw_symbols(probs, rows, n_known, RandomStream stream):
    cdef const float64_t[:, ::1] view = np.ascontiguousarray(
        np.cumsum(probs[:, :n_known], axis=1))
    cdef const intp_t[::1] row = np.ascontiguousarray(rows, dtype=np.intp)
    cdef intp_t i
    cdef int32_t low, high, middle
    cdef float64_t u
    codes = np.empty(len(rows), dtype=np.int32)
    cdef int32_t[::1] code = codes
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
    return codes


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
        cdef vector[int32_t] sizes
        self.codes = codes_of(codes, n_symbols, &sizes)
        self.n_columns = self.codes.shape[1]
        self.concentration_prior = concentration_prior
        cdef float64_t shape = 0.0, rate = 0.0
        if concentration_prior is not None:
            shape, rate = concentration_prior
        self.native = new CategoricalEmission(
            &self.codes[0, 0] if self.codes.size else NULL, self.codes.shape[0], sizes,
            hierarchical, shape, rate, draws_pseudo_count)
        self.shared.reset(<Emission *> self.native)
        self.native.set_concentrations(
            concentration_of(alpha, "alpha"), concentration_of(gamma, "gamma"))

    def reread(self):
        return True

    def take_hyperparameters(self, arrays):
        self.native.set_concentrations(arrays["alpha"], arrays["gamma"])

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
        alpha, gamma = self.native.alpha, self.native.gamma
        if arrays is not None:
            alpha = concentration_of(entry_of(arrays, "alpha", "emission"), "emission: alpha")
            gamma = concentration_of(entry_of(arrays, "gamma", "emission"), "emission: gamma")
        return [(self.native.seatings[c].n_symbols, self.native.is_hierarchical, alpha, gamma)
                for c in range(self.n_columns)]

    def to_arrays(self, labels):
        cdef intp_t c
        cdef vector[int32_t] label
        integers_of(labels, "labels", &label)
        columns = [record_to_arrays(relabelled(self.native.seatings[c].record(), label))
                   for c in range(self.n_columns)]
        return {"columns": columns, "alpha": self.native.alpha, "gamma": self.native.gamma}

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
                               self.native.seatings[c].n_symbols,
                               self.native.is_hierarchical, &out[0][c])
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
                            self.codes.shape[0], n_states, f"emission, column {c}".encode())

    def load(self, arrays, int32_t n_states):
        cdef intp_t c, i
        cdef vector[SeatingRecord] records
        cdef float64_t alpha, gamma
        self._records(arrays, n_states, &records, &alpha, &gamma)
        self.native.set_concentrations(alpha, gamma)
        for c in range(self.n_columns):
            for i in range(<intp_t> records[c].rows.size()):
                records[c].rows[i] += FIRST
            self.native.seatings[c].load(records[c])

    def predictives(self, slots, inputs=None):
        cdef intp_t c, i
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        cdef float64_t[:, ::1] view
        out = []
        for c in range(self.n_columns):
            probs = np.empty((slot.shape[0], self.native.seatings[c].n_symbols))
            view = probs
            for i in range(slot.shape[0]):
                self.native.seatings[c].fill_probs(slot[i], &view[i, 0])
            out.append(probs)
        return out

    def draw_values(self, slots, n_known, RandomStream stream, inputs=None):
        distinct, rows = np.unique(slots, return_inverse=True)
        return [draw_symbols(probs, rows, known, stream)
                for probs, known in zip(self.predictives(distinct), n_known, strict=True)]

    def check(self, slots):
        cdef intp_t c, t, i
        cdef const char *wrong
        cdef Line *line
        cdef object pair
        for c in range(self.n_columns):
            wrong = self.native.seatings[c].check()
            if wrong is not NULL:
                return f"column {c}: " + wrong.decode()
            counts = {}
            for t in range(self.codes.shape[0]):
                if self.codes[t, c] >= 0:
                    pair = (int(slots[t]), int(self.codes[t, c]))
                    counts[pair] = counts.get(pair, 0) + 1
            seated = {}
            for t in range(self.native.n_slots):
                line = &self.native.seatings[c].rows[t]
                for i in range(line.size):
                    pair = (t, int(line.ids[i]))
                    seated[pair] = line.counts[i]
            if seated != counts:
                return f"column {c}: counts differ from a recount of the labels"
        return None
