"""Native parts without a chain: random numbers, one seating, passes over slots."""

import numpy as np

from libc.stdint cimport uint16_t, uint32_t
from libcpp.vector cimport vector

from skihmm.core._franchise cimport InfiniteRoot, Restaurants  # no-cython-lint
from skihmm.core._product cimport Product
from skihmm.core._random cimport RandomStream, below, bitgen_t, uniform
from skihmm.core._record cimport Archive, SeatingRecord, archive_of, from_record
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


# The base of the seating that is probed; the tests compile this module for others too.
cdef extern from *:
    """
    #include <type_traits>
    #include "_restaurants.hpp"

    #ifndef PROBED
    #define PROBED InfiniteRoot
    #endif
    using Probed = skihmm::Restaurants<skihmm::PROBED>;

    template <class Root>
    void set_symbols(skihmm::Restaurants<Root> &s, int32_t n, bool is_fixed) {
        if constexpr (!std::is_same_v<Root, skihmm::InfiniteRoot>) {
            s.base.is_fixed = is_fixed;
            s.set_symbols(n);
        }
    }
    """
    cdef cppclass Lifted "Probed::Lifted":
        int32_t n
        bint closes

    # With what the public declaration leaves out: dense copies of the counts, and customers
    # who leave and come back without anything being written in between.
    cdef cppclass Probed(Restaurants[InfiniteRoot]):
        const uint16_t *dense_row "dense.row"(int32_t row)
        const uint16_t *dense_column "dense.column"(int32_t dish)
        void lift(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint,
                  Lifted *out) except +
        int32_t choose_table(const Lifted &lifted, float64_t fresh, uint32_t bits,
                             bitgen_t *g)
        void put_back(const Lifted &lifted, int32_t table)
        float64_t new_table_after(int32_t dish, int32_t change)

    void set_symbols(Probed &s, int32_t n, bint is_fixed)


cdef extern from "_random.hpp" namespace "skihmm" nogil:
    float64_t c_draw_beta "skihmm::draw_beta"(bitgen_t *g, float64_t a, float64_t b,
                                              float64_t *rest)
    void c_draw_dirichlet "skihmm::draw_dirichlet"(
        bitgen_t *g, int64_t n, const float64_t *shapes, float64_t *out,
        vector[float64_t] *falls) except +


cdef extern from "_blocked_vector.hpp" namespace "skihmm" nogil:
    cdef cppclass BlockedPasses:
        void (*emit)(int32_t n, float smooth, const float *mass, const float *w,
                     const float *size, float *g, float *out, float64_t *sums)
        int32_t (*select)(int32_t n, float least, const float *f, const float *size,
                          int32_t *chosen)
        float64_t (*sum_where)(int32_t n, float64_t smooth, const float64_t *c,
                               float64_t u, const float *f)
    bint find_blocked_passes(int level, BlockedPasses *out)


def draw_below(RandomStream stream, int64_t n, intp_t size):
    """Draw `size` integers uniform on ``0 .. n - 1``."""
    out = np.empty(size, dtype=np.int64)
    cdef int64_t[::1] view = out
    cdef intp_t i
    for i in range(size):
        view[i] = below(stream.bits, n)
    return out


def draw_uniform(RandomStream stream, intp_t size):
    """Draw `size` numbers uniform on [0, 1)."""
    out = np.empty(size)
    cdef float64_t[::1] view = out
    cdef intp_t i
    for i in range(size):
        view[i] = uniform(stream.bits)
    return out


def draw_beta(RandomStream stream, float64_t a, float64_t b, intp_t size):
    """Variates of Beta(a, b) beside what they lack to one, shape (size, 2)."""
    out = np.empty((size, 2))
    cdef float64_t[:, ::1] view = out
    cdef intp_t i
    for i in range(size):
        view[i, 0] = c_draw_beta(stream.bits, a, b, &view[i, 1])
    return out


def draw_dirichlet(RandomStream stream, shapes, intp_t size):
    """Variates of Dirichlet(shapes), one per row."""
    cdef const float64_t[::1] given = np.asarray(shapes, dtype=float)
    cdef vector[float64_t] falls
    out = np.empty((size, given.shape[0]))
    cdef float64_t[:, ::1] view = out
    cdef intp_t i
    for i in range(size):
        c_draw_dirichlet(stream.bits, given.shape[0], &given[0], &view[i, 0], &falls)
    return out


def log_product(factors, log_factors=()):
    """Logarithm of a ``Product`` of factors, some of them given by their logarithms."""
    cdef Product r
    cdef float64_t factor
    for factor in factors:
        r.multiply(factor)
    for factor in log_factors:
        r.multiply_log(factor)
    return r.log()


cdef class RestaurantsProbe:
    """One ``Restaurants`` with all its operations.

    Parameters
    ----------
    n_rows, n_dishes : int
        Under a uniform root or a fixed base the number of dishes is that of symbols.
    alpha, gamma : float
    dense_limit : int, default=0
        Keep dense copies of the counts up to this number of rows and dishes.
    is_fixed : bool, default=False
        The base is fixed; of symbols only.
    """

    cdef Probed seating
    cdef readonly int32_t n_rows, n_dishes

    def __init__(self, int32_t n_rows, int32_t n_dishes, float64_t alpha, float64_t gamma,
                 int32_t dense_limit=0, bint is_fixed=False):
        self.n_rows = n_rows
        self.n_dishes = n_dishes
        set_symbols(self.seating, n_dishes, is_fixed)
        self.seating.set_concentrations(alpha, gamma)
        self.seating.resize(n_rows, n_dishes)
        self.seating.set_dense_limit(dense_limit)

    def set_concentrations(self, float64_t alpha, float64_t gamma):
        self.seating.set_concentrations(alpha, gamma)

    def resize(self, int32_t n_rows, int32_t n_dishes):
        self.n_rows = n_rows
        self.n_dishes = n_dishes
        self.seating.resize(n_rows, n_dishes)

    def set_dense_limit(self, int32_t limit):
        self.seating.set_dense_limit(limit)

    def add(self, int32_t row, int32_t dish, RandomStream stream, int32_t hint=-1):
        """Seat a customer; returns the predictive probability and the new hint."""
        cdef float64_t p = self.seating.add(row, dish, stream.bits, &hint)
        return p, hint

    def remove(self, int32_t row, int32_t dish, RandomStream stream, int32_t hint=-1):
        """Take away a customer; returns the predictive probability and the new hint."""
        cdef float64_t p = self.seating.remove(row, dish, stream.bits, &hint)
        return p, hint

    def add_many(self, int32_t row, int32_t dish, RandomStream stream, intp_t times):
        cdef intp_t _
        for _ in range(times):
            self.seating.add(row, dish, stream.bits)

    def remove_many(self, int32_t row, int32_t dish, RandomStream stream, intp_t times):
        cdef intp_t _
        for _ in range(times):
            self.seating.remove(row, dish, stream.bits)

    cdef int _relocate(self, int32_t row, int32_t dish, bitgen_t *g,
                       int32_t *hint) except -1:
        cdef Lifted lifted
        self.seating.lift(row, dish, g, hint, &lifted)
        self.seating.put_back(lifted, self.seating.choose_table(
            lifted, self.seating.new_table_after(dish, -<int32_t> lifted.closes),
            <uint32_t> below(g, 1 << 21), g))
        return 0

    def commit(self):
        self.seating.commit()

    def rollback(self):
        self.seating.rollback()

    def clear(self):
        self.seating.clear()

    def prob(self, int32_t row, int32_t dish):
        return self.seating.prob(row, dish)

    def probs(self, int32_t row):
        """p(dish | row) of all dishes at once."""
        out = np.empty(self.seating.dish_tables.size())
        cdef float64_t[::1] view = out
        self.seating.fill_probs(row, &view[0])
        return out

    def count(self, int32_t row, int32_t dish, int32_t hint=-1):
        """n_jk, with the help of a hint."""
        return self.seating.count(row, dish, hint)

    def prefetch(self, int32_t hint):
        """All the calls that only touch memory."""
        self.seating.prefetch_cell(hint)
        self.seating.prefetch_lists(hint)

    def record(self):
        cdef Archive archive
        cdef SeatingRecord seating = self.seating.record()
        seating.visit(archive, self.n_rows, self.n_dishes, True)
        return from_record(archive.record())

    def load(self, arrays, n_rows=None, n_dishes=None):
        """Replace everything by a record, for other numbers of rows and dishes if given."""
        cdef SeatingRecord record
        cdef bint resized = n_rows is not None
        if resized:
            self.n_rows, self.n_dishes = n_rows, n_dishes
        record.visit(archive_of(arrays, "the record"), self.n_rows, self.n_dishes,
                     self.seating.base.has_tables())
        if resized:
            self.seating.load(record, self.n_rows, self.n_dishes)
        else:
            self.seating.load(record)

    def log_joint(self):
        return self.seating.log_joint()

    def check(self):
        cdef const char *wrong = self.seating.check()
        return None if wrong is NULL else wrong.decode()

    def n_bytes(self):
        return self.seating.n_bytes()

    def has_dense(self):
        return bool(self.seating.has_dense())

    def dense(self):
        """The dense counts by row and by column, or None."""
        if not self.seating.has_dense():
            return None
        cdef Probed *view = &self.seating
        by_row = np.empty((self.n_rows, self.n_dishes), dtype=np.uint16)
        by_column = np.empty_like(by_row)
        cdef uint16_t[:, ::1] a = by_row, b = by_column
        cdef int32_t j, k
        for j in range(self.n_rows):
            for k in range(self.n_dishes):
                a[j, k] = view.dense_row(j)[k]
                b[j, k] = view.dense_column(k)[j]
        return by_row, by_column

    @property
    def n_tables(self):
        return self.seating.n_tables

    @property
    def row_customers(self):
        return list(self.seating.row_customers)

    @property
    def dish_tables(self):
        return list(self.seating.dish_tables)

    def counts(self):
        """n_jk of all pairs, shape (n_rows, n_dishes)."""
        out = np.empty((self.n_rows, self.n_dishes), dtype=np.int64)
        cdef int64_t[:, ::1] view = out
        cdef int32_t j, k
        for j in range(self.n_rows):
            for k in range(self.n_dishes):
                view[j, k] = self.seating.count(j, k)
        return out

    cdef int _copy_dense(self, vector[uint16_t] *out) except -1:
        # Empty without dense counts, which the comparison then also checks.
        cdef Probed *view = &self.seating
        cdef int32_t j, k
        out.clear()
        if not self.seating.has_dense():
            return 0
        for j in range(self.n_rows):
            for k in range(self.n_dishes):
                out.push_back(view.dense_row(j)[k])
                out.push_back(view.dense_column(k)[j])
        return 0

    def churn(self, intp_t n_moves, RandomStream stream, float64_t rollback_rate=0.5,
              intp_t max_operations=6, intp_t max_customers=60, intp_t check_every=64):
        """Random moves, each followed by a comparison with what must be.

        Before every other move a customer leaves and returns, without a journal.  A move
        is up to `max_operations` additions and removals, then a rollback with
        probability `rollback_rate` or a commit.  After a rollback everything equals, bit
        for bit, a copy from the start of the move; after a commit the counts equal those
        of a plain matrix, and the dense counts too.  Hints are right, stale or nonsense.

        Returns
        -------
        dict
            "moves", "rollbacks", "customers", "tables" (sums over moves), "many_tables"
            (moves that saw a cell with two tables or more) and the list "problems".
        """
        cdef bitgen_t *g = stream.bits
        cdef Probed *s = &self.seating
        cdef SeatingRecord before, after
        cdef vector[int32_t] row_customers, dish_tables, counts, old_counts, hints
        cdef vector[int32_t] new_rows, new_dishes
        cdef vector[uint16_t] dense, dense_after
        cdef int64_t n_tables, n_rollbacks = 0, n_many = 0, sum_customers = 0, sum_tables = 0
        cdef intp_t move, _, n_steps, n_customers = 0, n_cells, at, old_customers
        cdef int32_t row, dish, hint
        cdef float64_t scale, p, expected
        cdef const char *wrong
        problems = []
        n_cells = self.n_rows * self.n_dishes
        counts.resize(n_cells)
        hints.assign(n_cells, -1)
        for at in range(n_cells):
            counts[at] = s.count(<int32_t> (at // self.n_dishes),
                                 <int32_t> (at % self.n_dishes))
            n_customers += counts[at]
        for move in range(n_moves):
            at = below(g, 2 * n_cells)
            if at < n_cells and counts[at] > 0:
                self._relocate(<int32_t> (at // self.n_dishes),
                               <int32_t> (at % self.n_dishes), g, &hints[at])
            before = s.record()
            row_customers = s.row_customers
            dish_tables = s.dish_tables
            n_tables = s.n_tables
            scale = s.scale()
            self._copy_dense(&dense)
            old_counts = counts
            old_customers = n_customers
            n_steps = 1 + below(g, max_operations)
            for _ in range(n_steps):
                at = below(g, n_cells)
                row = <int32_t> (at // self.n_dishes)
                dish = <int32_t> (at % self.n_dishes)
                # A third of the hints are those of other cells or out of range.
                hint = hints[at]
                if below(g, 3) == 0:
                    hint = <int32_t> (below(g, 2 * n_cells + 4) - 2)
                if counts[at] > 0 and (below(g, 2) == 0 or n_customers >= max_customers):
                    p = s.remove(row, dish, g, &hint)
                    counts[at] -= 1
                    n_customers -= 1
                    expected = s.prob(row, dish)
                elif n_customers < max_customers:
                    expected = s.prob(row, dish)
                    p = s.add(row, dish, g, &hint)
                    counts[at] += 1
                    n_customers += 1
                else:
                    continue
                hints[at] = hint
                if p != expected:
                    problems.append(f"move {move}: returned {p!r}, not {expected!r}")
                if s.count(row, dish, hint) != counts[at]:
                    problems.append(f"move {move}: count of ({row}, {dish}) is wrong")
            if uniform(g) < rollback_rate:
                n_rollbacks += 1
                s.rollback()
                counts = old_counts
                n_customers = old_customers
                after = s.record()
                if not (before.rows == after.rows and before.dishes == after.dishes
                        and before.n_customers == after.n_customers
                        and before.n_tables == after.n_tables
                        and before.sizes == after.sizes):
                    problems.append(f"move {move}: rollback left other tables")
                new_rows, new_dishes = s.row_customers, s.dish_tables
                if not (row_customers == new_rows and dish_tables == new_dishes
                        and n_tables == s.n_tables):
                    problems.append(f"move {move}: rollback left other sums")
                if scale != s.scale():
                    problems.append(f"move {move}: rollback left another scale")
                self._copy_dense(&dense_after)
                if dense != dense_after:
                    problems.append(f"move {move}: rollback left other dense counts")
            else:
                if counts == old_counts and below(g, 2) == 0:
                    s.commit_same()
                else:
                    s.commit()
                self._copy_dense(&dense_after)
                for at in range(n_cells):
                    if (s.count(<int32_t> (at // self.n_dishes),
                                <int32_t> (at % self.n_dishes)) != counts[at]):
                        problems.append(f"move {move}: a count is wrong after commit")
                        break
                    if dense_after.size() and (dense_after[2 * at] != counts[at]
                                               or dense_after[2 * at + 1] != counts[at]):
                        problems.append(f"move {move}: a dense count is wrong")
                        break
            for at in range(<intp_t> before.n_tables.size()):
                if before.n_tables[at] > 1:
                    n_many += 1
                    break
            sum_customers += n_customers
            sum_tables += s.n_tables
            if move % check_every == 0:
                wrong = s.check()
                if wrong is not NULL:
                    problems.append(f"move {move}: " + wrong.decode())
            if len(problems) > 10:
                break
        return {"moves": n_moves, "rollbacks": n_rollbacks, "customers": sum_customers,
                "tables": sum_tables, "many_tables": n_many, "problems": problems}


def run_passes(int level, float64_t[:, ::1] doubles, float[:, ::1] floats):
    """All passes over slots in the version for plain (0), AVX2 (1) or AVX-512 (2).

    Parameters
    ----------
    doubles, floats : arrays of shape (3, n)
        n a multiple of 16.

    Returns
    -------
    results : dict or None
        None if this machine has no such version.
    """
    cdef BlockedPasses passes
    if not find_blocked_passes(level, &passes):
        return None
    cdef int32_t n = <int32_t> doubles.shape[1], n_chosen
    cdef float64_t[::1] sums = np.zeros(2)
    cdef int32_t[::1] chosen = np.zeros(n + 16, dtype=np.int32)
    cdef float[::1] g = np.array(floats[0])
    cdef float[::1] out = np.zeros(n, dtype=np.float32)
    cdef float64_t where
    passes.emit(n, 0.3, &floats[1, 0], &floats[2, 0], &floats[1, 0], &g[0], &out[0],
                &sums[0])
    n_chosen = passes.select(n, 0.2, &floats[1, 0], &floats[2, 0], &chosen[0])
    where = passes.sum_where(n, 0.7, &doubles[0, 0], 0.3, &floats[1, 0])
    return {
        "emit": np.concatenate([g, out, sums]),
        "select": np.array(chosen[:n_chosen]),
        "sum_where": where,
    }
