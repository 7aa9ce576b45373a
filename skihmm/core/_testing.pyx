"""Views of compiled hooks, and samplers with planted errors, for tests only.

Nothing in the package imports this module.  It has three parts: probes, through which
Python sees what is otherwise native; twins, written once more from the definitions and
without caches; and faults, correct code with one mistake built in, which the tests must
notice.
"""

import numpy as np

from libc.math cimport NAN, exp, isnan, lgamma, log, log1p, pi, sqrt
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libcpp.vector cimport vector
from numpy.random.c_distributions cimport random_standard_gamma, random_standard_normal

from skihmm.core._emission cimport EmissionStats, SeatingEmission, SymbolColumn
from skihmm.core._franchise cimport (
    FIRST,
    NEW,
    START,
    Base,
    Franchise,
    Product,
    Seating,
)
from skihmm.core._random cimport RandomStream, below, bitgen_t, uniform
from skihmm.core._rcd cimport (
    BlockProposal,
    Chain,
    HookedEmission,
    RCDKernel,
    RCDMove,
    chain_of,
    emission_of,
)
from skihmm.core._record cimport SeatingRecord, record_from_arrays, record_to_arrays
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t
from skihmm.emissions._categorical_stats cimport CategoricalStats


cdef extern from "_seating.hpp" namespace "skihmm" nogil:
    # What the public declaration leaves out: dense copies of the counts, and customers who
    # leave and come back without anything being written in between.
    cdef cppclass Lifted "skihmm::Seating::Lifted":
        int32_t n
        bint closes

    cdef cppclass FullSeating "skihmm::Seating":
        const uint16_t *dense_row(int32_t row)
        const uint16_t *dense_column(int32_t dish)
        void lift(int32_t row, int32_t dish, bitgen_t *g, int32_t *hint,
                  Lifted *out) except +
        int32_t choose_table(const Lifted &lifted, float64_t fresh, uint32_t bits,
                             bitgen_t *g)
        void put_back(const Lifted &lifted, int32_t table)
        float64_t scale_after(int32_t change)
        float64_t mass_of(int32_t n)


cdef extern from "_random.hpp" namespace "skihmm" nogil:
    float64_t c_draw_beta "skihmm::draw_beta"(bitgen_t *g, float64_t a, float64_t b,
                                              float64_t *rest)
    void c_draw_dirichlet "skihmm::draw_dirichlet"(
        bitgen_t *g, int64_t n, const float64_t *shapes, float64_t *out,
        vector[float64_t] *falls) except +


cdef extern from "_rcd.hpp" namespace "skihmm" nogil:
    cdef cppclass LabelView "skihmm::Chain":
        void assign(int64_t t, int32_t k) except +

    cdef struct StepView:
        int32_t i, x, o, n_in, n_out, n_i, n_x, m_x, m_o
        float64_t scale
        bint has_symbol
        SymbolColumn column
        int32_t e_in, e_x

    cdef cppclass LiftingMove "skihmm::Move"[Emission]:
        StepView view
        Product r_old, r_new
        void open(const Chain &chain, const Emission &emission, int64_t start,
                  int64_t stop) except +
        void look(const Chain &chain, const Emission &emission)
        bint lift(const Chain &chain, const Emission &emission, int64_t t) except +
        void seat(const Chain &chain, const Emission &emission,
                  const int32_t *path) except +
        bint decide(const Chain &chain, const Emission &emission, const int32_t *path,
                    const Product &q_old, const Product &q_new) except +
        void restore(const Chain &chain, const Emission &emission) except +


cdef extern from "_blocked.hpp" namespace "skihmm" nogil:
    cdef cppclass BlockedMessages[Emission]:
        void set_cut(float64_t cut)
        void attach(const Chain &chain, const Emission &emission) except +
        void prepare(const Chain &chain, const Emission &emission, int64_t start,
                     int64_t stop) except +
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q) except +
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +

    cdef cppclass BlockedSlices[Emission](BlockedMessages[Emission]):
        pass


cdef extern from "_slice.hpp" namespace "skihmm" nogil:
    cdef cppclass Slice[Emission]:
        void set_limit(int32_t lookup_slots)
        void attach(const Chain &chain, const Emission &emission) except +
        void prepare(const Chain &chain, const Emission &emission, int64_t start,
                     int64_t stop) except +
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q) except +
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +


cdef extern from "_stepwise.hpp" namespace "skihmm" nogil:
    cdef cppclass Stepwise[Emission]:
        void set_limits(int32_t vector_slots, int32_t lookup_slots)
        void set_exact(bint is_exact)
        void attach(const Chain &chain, const Emission &emission) except +
        void prepare(const Chain &chain, const Emission &emission, int64_t start,
                     int64_t stop) except +
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q)
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except +
        void settle(const Chain &chain, const Emission &emission, int64_t start,
                    int64_t stop, bint accepted)


# ---- probes: random numbers and products ---------------------------------------------------


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


# ---- probes: one seating -------------------------------------------------------------------


cdef class SeatingProbe:
    """One ``Seating`` with all its operations.

    Parameters
    ----------
    kind : {"infinite", "uniform", "fixed"}
        The base: of the transitions, of HCRP emissions, of Dirichlet emissions.
    n_rows, n_dishes : int
        For "uniform" and "fixed" the number of dishes is the number of symbols.
    alpha, gamma : float
    dense_limit : int, default=0
        Keep dense copies of the counts up to this number of rows and dishes.
    """

    cdef Seating seating
    cdef readonly int32_t n_rows, n_dishes

    def __init__(self, kind, int32_t n_rows, int32_t n_dishes, float64_t alpha,
                 float64_t gamma, int32_t dense_limit=0):
        kinds = ("infinite", "uniform", "fixed")
        cdef int base = kinds.index(kind)
        self.n_rows = n_rows
        self.n_dishes = n_dishes
        self.seating.configure(<Base> base, 0 if base == 0 else n_dishes)
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
        cdef FullSeating *s = <FullSeating *> &self.seating
        cdef Lifted lifted
        cdef float64_t fresh
        s.lift(row, dish, g, hint, &lifted)
        fresh = s.scale_after(-lifted.closes) * s.mass_of(
            self.seating.dish_tables[dish] - lifted.closes)
        s.put_back(lifted, s.choose_table(
            lifted, fresh, <uint32_t> below(g, 1 << 21), g))
        return 0

    def relocate(self, int32_t row, int32_t dish, RandomStream stream, int32_t hint=-1):
        """A customer leaves his table and sits down again at the same dish, for good."""
        self._relocate(row, dish, stream.bits, &hint)

    def commit(self):
        self.seating.commit()

    def commit_same(self):
        self.seating.commit_same()

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

    def table_count(self, int32_t row, int32_t dish):
        return self.seating.table_count(row, dish)

    def mass(self, int32_t dish):
        return self.seating.mass(dish)

    def prefetch(self, int32_t hint):
        """All the calls that only touch memory."""
        self.seating.prefetch_cell(hint)
        self.seating.prefetch_lists(hint)

    def record(self):
        return record_to_arrays(self.seating.record())

    def load(self, arrays, n_rows=None, n_dishes=None):
        """Replace everything by a record, for other numbers of rows and dishes if given."""
        cdef SeatingRecord record
        cdef bint resized = n_rows is not None
        if resized:
            self.n_rows, self.n_dishes = n_rows, n_dishes
        record_from_arrays(arrays, "the record", self.n_rows, self.n_dishes,
                           self.seating.base != Base.kFixed, &record)
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
        cdef FullSeating *view = <FullSeating *> &self.seating
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
    def scale(self):
        return self.seating.scale()

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
        cdef FullSeating *view = <FullSeating *> &self.seating
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
        cdef Seating *s = &self.seating
        cdef SeatingRecord before, after
        cdef vector[int32_t] row_customers, dish_tables, counts, old_counts, hints
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
                # A third of the hints is somebody else's or out of range.
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
                if not (row_customers == s.row_customers
                        and dish_tables == s.dish_tables and n_tables == s.n_tables):
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


# ---- probes: transitions, emissions, proposals ---------------------------------------------


def fill_row(Franchise transitions, int32_t j):
    """p(k | j) of every slot k."""
    out = np.empty(transitions.seating.dish_tables.size())
    cdef float64_t[::1] view = out
    transitions.fill_row(j, &view[0])
    return out


def _by_slot(Franchise transitions, values):
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != (transitions.seating.dish_tables.size(),):
        raise ValueError("expected one number per slot")
    return values


def push(Franchise transitions, weights):
    """``sum_j weights[j] p(k | j)``."""
    cdef const float64_t[::1] given = _by_slot(transitions, weights)
    out = np.empty(given.shape[0])
    cdef float64_t[::1] view = out
    transitions.push(&given[0], &view[0])
    return out


def pull(Franchise transitions, values):
    """``sum_k p(k | j) values[k]``."""
    cdef const float64_t[::1] given = _by_slot(transitions, values)
    out = np.empty(given.shape[0])
    cdef float64_t[::1] view = out
    transitions.pull(&given[0], &view[0])
    return out


def push_max(Franchise transitions, weights):
    """``max_j weights[j] p(k | j)`` and the j that reaches it."""
    cdef const float64_t[::1] given = _by_slot(transitions, weights)
    out = np.empty(given.shape[0])
    argmax = np.empty(given.shape[0], dtype=np.int32)
    cdef float64_t[::1] view = out
    cdef int32_t[::1] argmax_view = argmax
    transitions.push_max(&given[0], &view[0], &argmax_view[0])
    return out, argmax


def transition_prob(ChainState state, int32_t j, int32_t k):
    """p(k | j) of slots at the present seating."""
    return state.transitions.seating.prob(j, k)


def dish_tables(ChainState state):
    """m_.k of every slot."""
    return np.asarray(state.transitions.seating.dish_tables)


def slots(ChainState state):
    """The slot of every step."""
    return np.asarray(state.states)


def set_slot(ChainState state, intp_t t, int32_t k):
    """Give a step another label and tell nobody."""
    state.states[t] = k


def n_slots(ChainState state):
    """Slots that there is storage for."""
    return state.n_slots


def n_touched(ChainState state):
    """Length of the list of slots whose statistics have changed."""
    return state.touched.size()


def has_dense(ChainState state):
    """Whether the transitions' dense counts are there and complete."""
    return bool(state.transitions.seating.has_dense())


def neighbours(ChainState state, intp_t start, intp_t stop):
    """Slots before and after a block; -1 after the end of a sequence."""
    return state.previous(start), state.successor(stop - 1)


def emission_row(ChainState state, intp_t t):
    """p(y[t] | k) of every slot k."""
    out = np.empty(state.n_slots)
    cdef float64_t[::1] view = out
    cdef float64_t log_scale = state.emission.fill_probs(t, &view[0])
    return out * np.exp(log_scale)


def emission_pair(ChainState state, intp_t t, states):
    """The same of two slots, up to a common factor."""
    cdef const int32_t[::1] view = np.asarray(states, dtype=np.int32)
    cdef float64_t[2] out
    state.emission.fill_pair(t, &view[0], out)
    return np.array([out[0], out[1]])


def move_value(ChainState state, intp_t t, int32_t source, int32_t target, bint keep=True):
    """y[t] leaves a slot and joins another one; logs of the two predictive probabilities.

    Without `keep` all of it is undone.
    """
    cdef Product left, joined
    state.emission.remove_value(t, source, state.stream.bits, &left)
    state.emission.add_value(t, target, state.stream.bits, &joined)
    if keep:
        state.emission.commit()
    else:
        state.emission.rollback()
    return left.log(), joined.log()


def emission_column(ChainState state, intp_t t):
    """The same through the sparse view; None if y[t] is missing."""
    cdef SymbolColumn column
    cdef float64_t offset = 0.0
    cdef const int32_t *totals
    cdef int32_t k
    if not state.emission.fill_column(t, &column):
        return None
    totals = state.emission.totals(&offset)
    out = np.empty(state.n_slots)
    for k in range(state.n_slots):
        out[k] = column.smooth / (totals[k] + offset)
    for k in range(column.size):
        out[column.ids[k]] += column.counts[k] / (totals[column.ids[k]] + offset)
    return out


cdef class EmissionProbe:
    """Statistics of an emission without a chain, hook by hook.

    Parameters
    ----------
    stats : EmissionStats
    stream : RandomStream
    n_slots : int, optional
        Make room for so many; without it the statistics stay as they are.
    """

    cdef EmissionStats stats
    cdef RandomStream stream

    def __init__(self, EmissionStats stats, RandomStream stream, n_slots=None):
        self.stats = stats
        self.stream = stream
        if n_slots is not None:
            stats.resize(n_slots)

    def add(self, intp_t t, int32_t k):
        """y[t] joins a slot; log of its predictive probability before."""
        cdef Product r
        self.stats.add_value(t, k, self.stream.bits, &r)
        return r.log()

    def remove(self, intp_t t, int32_t k):
        """y[t] leaves a slot; log of its predictive probability afterwards."""
        cdef Product r
        self.stats.remove_value(t, k, self.stream.bits, &r)
        return r.log()

    def commit(self):
        self.stats.commit()

    def rollback(self):
        self.stats.rollback()

    def log_joint(self):
        return self.stats.log_joint()

    def log_row(self, intp_t t):
        """log p(y[t] | k) of every slot."""
        out = np.empty(self.stats.n_slots)
        cdef float64_t[::1] view = out
        cdef float64_t log_scale = self.stats.fill_probs(t, &view[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(out) + log_scale

    def log_pair(self, intp_t t, int32_t first, int32_t second):
        """log p(y[t] | first) - log p(y[t] | second)."""
        cdef int32_t[2] places = [first, second]
        cdef float64_t[2] out
        self.stats.fill_pair(t, places, out)
        return log(out[0]) - log(out[1])

    def draw_log_likelihoods(self, occupancy, steps, slots, intp_t n):
        """log p(y[t] | k) given parameters, for n draws of all of them.

        Returns
        -------
        log_p : ndarray of shape (n, len(steps))
            Of every step under the slot in the same place.
        """
        cdef const int32_t[::1] used = np.ascontiguousarray(occupancy, dtype=np.int32)
        cdef const intp_t[::1] t = np.ascontiguousarray(steps, dtype=np.intp)
        cdef const int32_t[::1] k = np.ascontiguousarray(slots, dtype=np.int32)
        out = np.empty((n, t.shape[0]))
        cdef float64_t[:, ::1] view = out
        cdef intp_t i, j
        for i in range(n):
            self.stats.draw_parameters(&used[0], True, self.stream.bits)
            for j in range(t.shape[0]):
                view[i, j] = self.stats.log_likelihood(t[j], k[j], self.stream.bits)
        return out


cdef class ProposalProbe:
    """A proposal at one s_0, without the acceptance.

    Only for proposals that remember nothing from one move to the next: they are asked
    again and again at the same s_0.

    Parameters
    ----------
    state : ChainState
    proposal : BlockProposal
    """

    cdef ChainState state
    cdef BlockProposal proposal
    cdef RCDMove move
    cdef intp_t start, stop

    def __init__(self, ChainState state, BlockProposal proposal):
        self.state = state
        self.proposal = proposal
        self.move = RCDMove()

    def open(self, intp_t start, intp_t stop):
        """Take a block out, so that the state is at s_0."""
        self.start = start
        self.stop = stop
        self.state.reserve(stop - start + 1)
        self.proposal.attach(self.state)
        self.move.open(self.state, start, stop)

    def draw(self, intp_t n):
        """Score the old path and propose, `n` times.

        Returns
        -------
        log_q_old : ndarray of shape (n,)
        paths : ndarray of shape (n, stop - start)
        log_q_new : ndarray of shape (n,)
        """
        cdef intp_t i
        cdef Product q_old, q_new
        log_q_old, log_q_new = np.empty(n), np.empty(n)
        paths = np.empty((n, self.stop - self.start), dtype=np.int32)
        cdef float64_t[::1] old = log_q_old, new = log_q_new
        cdef int32_t[:, ::1] view = paths
        for i in range(n):
            q_old.reset()
            q_new.reset()
            self.proposal.prepare(self.state, self.start, self.stop)
            self.proposal.score(self.state, self.start, self.stop, &q_old)
            self.proposal.propose(
                self.state, self.start, self.stop, &view[i, 0], &q_new)
            old[i] = q_old.log()
            new[i] = q_new.log()
        return log_q_old, paths, log_q_new

    def close(self):
        """Put the old path back, table by table."""
        cdef Product never, one
        cdef vector[int32_t] path
        never.multiply(0.0)
        path.resize(self.stop - self.start)
        self.move.decide(self.state, path.data(), &never, &one)
        self.state.touched.clear()


cdef struct Script:
    uint64_t state              # of splitmix64
    const float64_t *uniforms   # these come first
    intp_t n_uniforms
    intp_t n_used


cdef uint64_t _script_uint64(void *script) noexcept nogil:
    cdef uint64_t z
    (<Script *> script).state += <uint64_t> 0x9E3779B97F4A7C15u
    z = (<Script *> script).state
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9u
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EBu
    return z ^ (z >> 31)


cdef uint32_t _script_uint32(void *script) noexcept nogil:
    return <uint32_t> (_script_uint64(script) >> 32)


cdef double _script_double(void *script) noexcept nogil:
    cdef Script *s = <Script *> script
    s.n_used += 1
    if s.n_used <= s.n_uniforms:
        return s.uniforms[s.n_used - 1]
    return (_script_uint64(script) >> 11) * (1.0 / 9007199254740992.0)


cdef class ReplayProbe:
    """A proposal at an s_0 that can be reached again, with chosen random numbers.

    Which tables the customers of a block leave follows from a seed, so that a proposal
    which keeps caches from one move to the next can be asked twice at the same s_0: every
    question is a move of its own that is undone.

    Parameters
    ----------
    state : ChainState
    """

    cdef ChainState state
    cdef RCDMove move
    cdef bitgen_t bits
    cdef bitgen_t *own
    cdef Script script

    def __init__(self, ChainState state):
        self.state = state
        self.move = RCDMove()
        self.own = state.stream.bits
        self.bits.state = &self.script
        self.bits.next_uint64 = _script_uint64
        self.bits.next_uint32 = _script_uint32
        self.bits.next_double = _script_double
        self.bits.next_raw = _script_uint64

    cdef int _open(self, intp_t start, intp_t stop, uint64_t seed) except -1:
        self.script.state = seed
        self.script.uniforms = NULL
        self.script.n_uniforms = 0
        self.state.stream.bits = &self.bits
        self.move.open(self.state, start, stop)
        return 0

    cdef int _close(self, intp_t start, intp_t stop) except -1:
        cdef Product never, one
        cdef vector[int32_t] path
        never.multiply(0.0)
        path.resize(stop - start)
        self.move.decide(self.state, path.data(), &never, &one)
        self.state.touched.clear()
        self.state.stream.bits = self.own
        return 0

    def seating(self, intp_t start, intp_t stop, uint64_t seed):
        """``ChainState.to_arrays`` at the s_0 of a seed."""
        self.state.reserve(stop - start + 1)
        self._open(start, stop, seed)
        arrays = self.state.to_arrays()
        self._close(start, stop)
        return arrays

    def ask(self, BlockProposal proposal, intp_t start, intp_t stop, uint64_t seed,
            uniforms=(), uint64_t salt=0):
        """Score the old path and propose a new one.

        Parameters
        ----------
        uniforms : sequence of float
            The first uniform numbers that the proposal sees; `salt` makes the others.

        Returns
        -------
        log_q_old : float
        path : ndarray of shape (stop - start,)
            Packed labels; those from the number of states on are fresh.
        log_q_new : float
        """
        cdef Product q_old, q_new
        cdef const float64_t[::1] given = np.array([*uniforms, 0.0])
        cdef int32_t[::1] view
        path = np.empty(stop - start, dtype=np.int32)
        view = path
        self.state.reserve(stop - start + 1)
        self.state.touched.clear()
        proposal.attach(self.state)
        self._open(start, stop, seed)
        self.script.state = seed + salt
        self.script.uniforms = &given[0]
        self.script.n_uniforms = given.shape[0] - 1
        self.script.n_used = 0
        proposal.prepare(self.state, start, stop)
        proposal.score(self.state, start, stop, &q_old)
        proposal.propose(self.state, start, stop, &view[0], &q_new)
        self._close(start, stop)
        return q_old.log(), path - FIRST, q_new.log()

    def ask_many(self, BlockProposal proposal, intp_t start, intp_t stop, uint64_t seed,
                 uint64_t prepare_seed, uint64_t propose_seed, intp_t n, old=None):
        """Whole moves at one s_0 whose proposals differ by `propose` only.

        Every one is undone, and the proposal told that it was rejected.

        Parameters
        ----------
        prepare_seed, propose_seed : int
            Of the random numbers that `prepare` and `score` see, always the same ones, and
            of those that `propose` sees.
        n : int
        old : sequence of int, optional
            Slots to take for the old path: at s_0 nothing else depends on them.

        Returns
        -------
        log_q_old : ndarray of shape (n,)
        paths : ndarray of shape (n, stop - start)
            Slots.
        log_q_new : ndarray of shape (n,)
        n_tables : ndarray of shape (n_slots,)
            Tables of every slot as a dish, at s_0.
        is_random : bool
            Whether `prepare` or `score` took random numbers.
        """
        cdef Product q_old, q_new
        cdef intp_t i, j, length = stop - start
        cdef vector[int32_t] own
        log_q_old, log_q_new = np.empty(n), np.empty(n)
        paths = np.empty((n, length), dtype=np.int32)
        cdef float64_t[::1] old_view = log_q_old, new_view = log_q_new
        cdef int32_t[:, ::1] path_view = paths
        cdef bint is_random = False
        n_tables = None
        self.state.reserve(length + 1)
        for j in range(length):
            own.push_back(self.state.states[start + j])
        for i in range(n):
            q_old.reset()
            q_new.reset()
            self.state.touched.clear()
            proposal.attach(self.state)
            self._open(start, stop, seed)
            try:
                if n_tables is None:
                    n_tables = np.array(self.state.transitions.seating.dish_tables)
                for j in range(length):
                    self.state.states[start + j] = own[j] if old is None else old[j]
                self.script.state = prepare_seed
                proposal.prepare(self.state, start, stop)
                proposal.score(self.state, start, stop, &q_old)
                is_random |= self.script.state != prepare_seed
                self.script.state = propose_seed + <uint64_t> i * 0xD1B54A32D192ED03u
                proposal.propose(self.state, start, stop, &path_view[i, 0], &q_new)
            finally:
                for j in range(length):
                    self.state.states[start + j] = own[j]
                self._close(start, stop)
            proposal.settle(self.state, start, stop, False)
            old_view[i] = q_old.log()
            new_view[i] = q_new.log()
        return log_q_old, paths, log_q_new, n_tables, bool(is_random)

    def views(self, intp_t t, uint64_t seed):
        """What a step-wise proposal is told of s_0: after a removal, and without one.

        Returns
        -------
        opened, lifted : tuple
            The numbers of a ``StepView``; `lifted` is None for a step that must be
            opened.
        """
        cdef LiftingMove[SeatingEmission] move
        cdef SeatingEmission emission
        cdef Chain chain
        if not self.state.emission.as_seating(&emission):
            raise ValueError("the emission is not one franchise of symbols")
        self.script.uniforms = NULL
        self.script.n_uniforms = 0
        self.state.stream.bits = &self.bits
        chain = chain_of(self.state)
        self.script.state = seed
        move.open(chain, emission, t, t + 1)
        move.look(chain, emission)
        opened = _numbers(&move.view)
        move.restore(chain, emission)
        self.script.state = seed
        lifted = _numbers(&move.view) if move.lift(chain, emission, t) else None
        self.state.stream.bits = self.own
        return opened, lifted

    def lifted(self, intp_t t, uint64_t seed):
        """A move of one step that is lifted, back to its own label, and accepted.

        Returns
        -------
        log_ratio : float or None
            log(r_new / r_old); None, and nothing done, for a step that must be opened.
        """
        cdef LiftingMove[SeatingEmission] move
        cdef SeatingEmission emission
        cdef Chain chain
        cdef Product large, one
        cdef int32_t label = self.state.states[t]
        if not self.state.emission.as_seating(&emission):
            raise ValueError("the emission is not one franchise of symbols")
        large.multiply(1e100)
        self.script.uniforms = NULL
        self.script.n_uniforms = 0
        self.script.state = seed
        self.state.stream.bits = &self.bits
        chain = chain_of(self.state)
        log_ratio = None
        if move.lift(chain, emission, t):
            move.seat(chain, emission, &label)
            log_ratio = move.r_new.log() - move.r_old.log()
            move.decide(chain, emission, &label, large, one)
        self.state.stream.bits = self.own
        return log_ratio


cdef tuple _numbers(const StepView *view):
    cdef float64_t smooth = view.column.smooth if view.has_symbol else -1.0
    return (view.i, view.x, view.o, view.n_in, view.n_out, view.n_i, view.n_x, view.m_x,
            view.m_o, view.scale, view.e_in, view.e_x, smooth)


cdef double _constant(void *state) noexcept nogil:
    return (<double *> state)[0]


cdef float64_t joint_prob(Seating *s, int32_t i, int32_t k, int32_t o,
                          bint exact) noexcept:
    """p(k | i) p(o | k), both at s_0 or, if exact, each when its turn comes (o may be -1)."""
    cdef float64_t n, fresh, size, mass, out
    cdef bint own = i == k
    if o < 0:
        return s.prob(i, k)
    if not exact:
        return s.prob(i, k) * s.prob(k, o)
    n = s.count(i, k)
    fresh = s.scale() * s.mass(k)
    out = s.count(k, o) + (own and k == o)
    size = s.row_customers[k] + own + s.alpha
    mass = s.dish_tables[o] + 1 if k == o else s.mass(o)
    return (n * (out + s.scale() * s.mass(o))
            + fresh * (out + s.alpha * mass / (s.n_tables + 1 + s.gamma))
            ) / size / (s.row_customers[i] + s.alpha)


def checked_sweep(ChainState state, BlockProposal proposal, float64_t edge=0.0,
                  bint exact=False):
    """Sweep, step by step, and compare every proposal with the definition at its s_0.

    Parameters
    ----------
    state : ChainState
    proposal : BlockProposal
        It tries the old label first, as the step-wise proposal does.
    edge : float, default=0
        If positive, the uniform that the proposal draws is not random but lies this far,
        relative to itself, below or above the probability of the old label: the label
        must stay, or must not.  A wrong sum over the other labels shows at once.  (The
        sweep then does not leave the posterior invariant.)
    exact : bool, default=False
        The definition is the conditional law itself, not the product at s_0.

    Returns
    -------
    error : float
        Largest difference between the logarithms of q(new) / q(old) and of the ratio of
        the products of predictive probabilities.
    ranks : ndarray of shape (n_steps,)
        Distribution function of the definition at the proposed label, with a uniform
        random part of the label's own probability: independent uniforms.
    n_ghosts, n_accepted : int
    n_wrong : int
        Labels on the wrong side of the edge.
    """
    cdef RCDMove move = RCDMove()
    cdef bitgen_t constant
    cdef double u, p_old
    cdef intp_t n_wrong = 0
    cdef int side
    cdef Seating *seating = &state.transitions.seating
    cdef bitgen_t *bits = state.stream.bits
    cdef vector[intp_t] order
    cdef vector[float64_t] weights
    cdef intp_t b, at, t, n_ghosts = 0, n_accepted = 0
    cdef int32_t k, i, o, old, new, ghost, path
    cdef float64_t total, below_new, difference, error = 0.0
    cdef Product q_old, q_new
    cdef bint accepted
    ranks = np.empty(state.n_steps)
    cdef float64_t[::1] view = ranks
    for t in range(state.n_steps):
        order.push_back(t)
    state.touched.clear()
    proposal.attach(state)
    for b in range(state.n_steps):
        at = b + below(bits, state.n_steps - b)
        t = order[at]
        order[at] = order[b]
        if state.free_slots.size() < 2:
            state.reserve(2)
            proposal.attach(state)
        q_old.reset()
        q_new.reset()
        move.open(state, t, t + 1)
        i = state.previous(t)
        o = state.successor(t)
        ghost = o if o >= 0 and seating.dish_tables[o] == 0 else -1
        n_ghosts += ghost >= 0
        # Slot NEW stands for every label that nobody uses.
        weights.assign(state.n_slots, 0.0)
        state.emission.fill_probs(t, weights.data())
        total = 0.0
        for k in range(state.n_slots):
            if k == NEW or k == ghost or seating.dish_tables[k] > 0:
                weights[k] *= joint_prob(seating, i, k, o, exact)
                total += weights[k]
            else:
                weights[k] = 0.0
        old = state.states[t]
        if weights[old] == 0.0:
            old = NEW
        proposal.prepare(state, t, t + 1)
        state.touched.clear()
        proposal.score(state, t, t + 1, &q_old)
        side = 0
        p_old = weights[old] / total
        if edge > 0.0 and 0.01 < p_old < 0.99:
            side = 1 if below(bits, 2) else -1
            u = p_old * (1.0 + side * edge)
            constant = bits[0]
            constant.state = &u
            constant.next_double = _constant
            state.stream.bits = &constant
        proposal.propose(state, t, t + 1, &path, &q_new)
        state.stream.bits = bits
        new = path if weights[path] > 0.0 else NEW
        n_wrong += side != 0 and (new == old) != (side < 0)
        if new == NEW and path != state.free_slot(0):
            raise AssertionError("a label that is neither a candidate nor free")
        difference = abs(q_new.log() - q_old.log() - log(weights[new] / weights[old]))
        # Written so that a NaN counts as an error.
        if not difference <= error:
            error = difference
        below_new = 0.0
        for k in range(new):
            below_new += weights[k]
        view[b] = (below_new + uniform(bits) * weights[new]) / total
        move.seat(state, &path)
        accepted = move.decide(state, &path, &q_old, &q_new)
        proposal.settle(state, t, t + 1, accepted)
        n_accepted += accepted
    return error, ranks, n_ghosts, n_accepted, n_wrong


def single_move(ChainState state, BlockProposal proposal, intp_t start, intp_t stop):
    """One move on a block, as a sweep makes it; returns whether it was accepted."""
    cdef vector[int32_t] path
    path.resize(stop - start)
    return bool(proposal.run(state, &start, &stop, 1, path.data()))


# ---- recording small models ----------------------------------------------------------------


cdef int64_t _cell(ChainState state, vector[int32_t] *name) noexcept:
    # Labels by first appearance, three bits each, then m and e, six bits each.
    cdef int64_t code = 0
    cdef intp_t t, c
    cdef int32_t n_names = 0, k
    name.assign(state.n_slots, -1)
    for t in range(state.n_steps):
        k = state.states[t]
        if name[0][k] < 0:
            name[0][k] = n_names
            n_names += 1
        code = 8 * code + name[0][k]
    code = 64 * code + state.transitions.seating.n_tables
    cdef int64_t e = 0
    cdef CategoricalStats emission
    if isinstance(state.emission, CategoricalStats):
        emission = <CategoricalStats> state.emission
        for c in range(emission.n_columns):
            e += emission.seatings[c].n_tables
    return 64 * code + e


def cell_of(ChainState state):
    """``(labels, m, e)`` as one number; for at most 8 steps.

    Labels are numbered by first appearance and have three bits each, the first step the
    highest; m and e, the tables of the transitions and emissions, have six bits each.
    """
    cdef vector[int32_t] name
    return _cell(state, &name)


def record_cells(kernel, ChainState state, intp_t n_sweeps, intp_t canonicalise_every=0):
    """Sweep and note the cell (see :func:`cell_of`) after every sweep.

    Returns
    -------
    cells : ndarray of shape (n_sweeps,), int64
    n_proposed, n_accepted : int
    """
    out = np.empty(n_sweeps, dtype=np.int64)
    cdef int64_t[::1] view = out
    cdef intp_t i
    cdef int64_t proposed, accepted, n_proposed = 0, n_accepted = 0
    cdef vector[int32_t] name
    sweep = kernel.sweep
    for i in range(n_sweeps):
        if canonicalise_every and i % canonicalise_every == 0:
            state.canonicalise()
        proposed, accepted = sweep(state)[:2]
        n_proposed += proposed
        n_accepted += accepted
        view[i] = _cell(state, &name)
    return out, n_proposed, n_accepted


def repeat_move(ChainState state, arrays, BlockProposal proposal, intp_t start,
                intp_t stop, intp_t n):
    """The cells after one move on a block, `n` times from the same ``to_arrays``."""
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] view = out
    cdef vector[int32_t] name, path
    cdef intp_t i
    path.resize(stop - start)
    for i in range(n):
        state.from_arrays(arrays)
        proposal.run(state, &start, &stop, 1, path.data())
        view[i] = _cell(state, &name)
    return out


def planted_error(kind, intp_t n):
    """Break a rule, so that a build with checks shows that it has them.

    Elsewhere the answer is any number.  Called by tools/check_native.sh only.

    Parameters
    ----------
    kind : {"memoryview", "vector", "heap", "overflow", "conversion"}
        Read behind the end of a memoryview, of a vector or of plain memory, leave the
        range of a 32-bit integer, or convert NaN to an integer.
    n : int
        Size; positive.
    """
    cdef float64_t[::1] view = np.zeros(n)
    cdef vector[float64_t] values
    cdef int32_t largest = 2147483647
    values.resize(n)
    # Capacity beyond the size, which only annotated or checked vectors tell from it.
    values.reserve(2 * n)
    if kind == "memoryview":
        return view[n]
    if kind == "vector":
        return values[n]
    if kind == "heap":
        return (&view[0])[n]
    if kind == "overflow":
        return largest + <int32_t> n
    if kind == "conversion":
        return <int32_t> (n * NAN)
    raise ValueError(f"kind={kind!r}")


# ---- an emission of densities ---------------------------------------------------------------


cdef struct Moments:
    int32_t slot
    intp_t n
    float64_t sum, squares      # of y and of y^2


cdef struct Posterior:
    float64_t kappa, shape, mean, scale


cdef class NormalStats(EmissionStats):
    """One real value per step, normal given the state: densities, which may exceed one.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
        NaN is missing.
    mean, kappa, shape, scale : float
        Prior of every state: the variance is inverse gamma (shape, scale), the mean given
        the variance normal around `mean` with that variance over `kappa`.
    """

    cdef const float64_t[::1] values
    cdef float64_t mean, kappa, shape, scale
    cdef vector[Moments] moments        # by slot
    cdef vector[Moments] journal        # as they were before each change of this move

    def __init__(self, values, float64_t mean, float64_t kappa, float64_t shape,
                 float64_t scale):
        self.values = np.ascontiguousarray(values, dtype=np.float64)
        self.n_steps = self.values.shape[0]
        self.mean = mean
        self.kappa = kappa
        self.shape = shape
        self.scale = scale

    cdef Posterior posterior(self, int32_t k) noexcept nogil:
        cdef Moments *m = &self.moments[k]
        cdef Posterior p
        p.kappa = self.kappa + m.n
        p.shape = self.shape + 0.5 * m.n
        p.mean = (self.kappa * self.mean + m.sum) / p.kappa
        p.scale = self.scale + 0.5 * (
            m.squares + self.kappa * self.mean * self.mean - p.kappa * p.mean * p.mean)
        return p

    def predictives(self, slots):
        return [np.array([self.posterior(k).mean for k in slots])]

    def draw_values(self, slots, n_known, RandomStream stream):
        values = np.empty(len(slots))
        cdef Posterior p
        for i, k in enumerate(slots):
            p = self.posterior(k)
            values[i] = p.mean + sqrt(p.scale * (p.kappa + 1.0) / (p.kappa * p.shape)) * (
                stream.generator.standard_t(2.0 * p.shape))
        return [values]

    cdef float64_t log_density(self, intp_t t, int32_t k) noexcept nogil:
        cdef Posterior p = self.posterior(k)
        cdef float64_t width = 2.0 * p.scale * (p.kappa + 1.0) / p.kappa
        cdef float64_t off = self.values[t] - p.mean
        return (lgamma(p.shape + 0.5) - lgamma(p.shape) - 0.5 * log(pi * width)
                - (p.shape + 0.5) * log1p(off * off / width))

    cdef int change(self, intp_t t, int32_t k, int sign) except -1 nogil:
        cdef Moments *m = &self.moments[k]
        self.journal.push_back(m[0])
        m.n += sign
        m.sum += sign * self.values[t]
        m.squares += sign * self.values[t] * self.values[t]
        if m.n == 0:
            m.sum = m.squares = 0.0
        return 0

    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        if not isnan(self.values[t]):
            r.multiply_log(self.log_density(t, k))
            self.change(t, k, 1)
        return 0

    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g,
                          Product *r) except -1 nogil:
        if not isnan(self.values[t]):
            self.change(t, k, -1)
            r.multiply_log(self.log_density(t, k))
        return 0

    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil:
        cdef int32_t k
        cdef float64_t largest = 0.0
        for k in range(self.n_slots):
            out[k] = 0.0 if isnan(self.values[t]) else self.log_density(t, k)
            largest = out[k] if k == 0 else max(largest, out[k])
        for k in range(self.n_slots):
            out[k] = max(exp(out[k] - largest), 1e-300)
        return largest

    cdef int resize(self, int32_t n_slots) except -1 nogil:
        cdef int32_t k
        self.n_slots = n_slots
        self.moments.resize(n_slots)
        for k in range(n_slots):
            self.moments[k].slot = k
        return 0

    cdef int commit(self) except -1 nogil:
        self.journal.clear()
        return 0

    cdef int rollback(self) except -1 nogil:
        while self.journal.size():
            self.moments[self.journal.back().slot] = self.journal.back()
            self.journal.pop_back()
        return 0

    cdef float64_t log_joint(self) except? -1 nogil:
        cdef int32_t k
        cdef float64_t total = 0.0
        cdef Posterior p
        for k in range(self.n_slots):
            p = self.posterior(k)
            total += (lgamma(p.shape) - lgamma(self.shape) + self.shape * log(self.scale)
                      - p.shape * log(p.scale) + 0.5 * log(self.kappa / p.kappa)
                      - 0.5 * self.moments[k].n * log(2.0 * pi))
        return total

    def check_arrays(self, arrays, labels):
        try:
            moments = np.array(arrays["moments"], dtype=float)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise ValueError("emission: there are no moments") from error
        values = np.asarray(self.values)
        seen = ~np.isnan(values)
        ours = [np.bincount(labels[seen], values[seen]**i, max(labels) + 1)
                for i in range(3)]
        if np.shape(moments) != np.shape(ours) or not np.allclose(moments, ours):
            raise ValueError("emission: moments are not those of the values")

    def load(self, arrays, slots):
        cdef int32_t k
        if np.shape(arrays["moments"]) != (3, len(slots)):
            raise ValueError("emission: moments has the wrong shape")
        self.moments.assign(self.n_slots, Moments(0, 0, 0.0, 0.0))
        self.resize(self.n_slots)
        for k, n, total, squares in zip(slots, *arrays["moments"]):
            self.moments[k] = Moments(k, int(n), total, squares)

    def to_arrays(self, labels):
        cdef int32_t k
        moments = np.zeros((3, labels[START]))      # its label is the number of states
        for k in range(self.n_slots):
            if self.moments[k].n:
                moments[:, labels[k]] = (
                    self.moments[k].n, self.moments[k].sum, self.moments[k].squares)
        return {"moments": moments}

    def check(self, slots):
        cdef int32_t k
        values = np.asarray(self.values)
        for k in range(self.n_slots):
            mine = values[(np.asarray(slots) == k) & ~np.isnan(values)]
            if self.moments[k].n != len(mine):
                return "a state has the wrong number of values"
            if not np.allclose([self.moments[k].sum, self.moments[k].squares],
                               [np.sum(mine), np.sum(mine**2)], atol=1e-9):
                return "a state has wrong sums"
        return None


_EMISSION_BUGS = (
    None,
    "strength",
    "fresh",
    "pair",
    "missing",
    "log_joint",
    "forget",
    "inverse",
    "drift",
    "garbage",
    "removal",
    "parameters",
    "normaliser",
    "values",
    "mean",
)


cdef class FaultyNormalStats(NormalStats):
    """``NormalStats`` with parameters that can be drawn, and a planted error.

    Parameters
    ----------
    values, mean, kappa, shape, scale
        As for ``NormalStats``.
    bug : str, optional
        "strength": the predictive counts every observation nine tenths in the mean's
        strength.
        "fresh": rows are wrong for a state that nobody uses.
        "pair": pairs are the wrong way round.
        "missing": a missing value has probability one half.
        "log_joint": the determinant of the scale is left out.
        "forget": a rollback restores nothing.
        "inverse": a rollback restores sums up to rounding only, as subtraction would.
        "drift": every change loses a little.
        "garbage": records are not checked.
        "removal": a removal's probability is that before it.
        "parameters": means are drawn with too small a variance.
        "normaliser": in states with observations all densities are three quarters, and the
        log joint agrees.
        "values": drawn values are too near to their mean.
        "mean": predictives are the sums of states, not their means.
    """

    cdef int bug
    cdef vector[float64_t] means, precisions

    def __init__(self, values, mean=0.0, kappa=0.5, shape=3.0, scale=1.5, bug=None):
        NormalStats.__init__(self, values, mean, kappa, shape, scale)
        self.bug = _EMISSION_BUGS.index(bug)
        self.draws_parameters = bug == "parameters"

    cdef float64_t log_density(self, intp_t t, int32_t k) noexcept nogil:
        cdef float64_t kappa = self.kappa, result
        if self.bug == 1:
            self.kappa -= 0.1 * self.moments[k].n
        result = NormalStats.log_density(self, t, k)
        self.kappa = kappa
        if self.bug == 12 and self.moments[k].n > 0:
            result += log(0.75)
        return result

    def predictives(self, slots):
        if self.bug != 14:
            return NormalStats.predictives(self, slots)
        return [np.array([self.moments[k].sum for k in slots])]

    def draw_values(self, slots, n_known, RandomStream stream):
        values = NormalStats.draw_values(self, slots, n_known, stream)[0]
        if self.bug == 13:
            values -= 0.3 * (values - NormalStats.predictives(self, slots)[0])
        return [values]

    cdef int change(self, intp_t t, int32_t k, int sign) except -1 nogil:
        NormalStats.change(self, t, k, sign)
        if self.bug == 8:
            self.moments[k].squares *= 1.0 - 1e-8
        return 0

    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        if self.bug == 4 and isnan(self.values[t]):
            r.multiply(0.5)
        return NormalStats.add_value(self, t, k, g, r)

    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g,
                          Product *r) except -1 nogil:
        cdef Product ignored
        if self.bug == 4 and isnan(self.values[t]):
            r.multiply(0.5)
        if self.bug == 10 and not isnan(self.values[t]):
            r.multiply_log(self.log_density(t, k))
            return NormalStats.remove_value(self, t, k, g, &ignored)
        return NormalStats.remove_value(self, t, k, g, r)

    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil:
        cdef float64_t log_scale = NormalStats.fill_probs(self, t, out)
        if self.bug == 2 and not isnan(self.values[t]):
            out[NEW] *= 0.7
        return log_scale

    cdef int fill_pair(self, intp_t t, const int32_t *states,
                       float64_t *out) except -1 nogil:
        NormalStats.fill_pair(self, t, states, out)
        if self.bug == 3:
            out[0], out[1] = out[1], out[0]
        return 0

    cdef float64_t log_joint(self) except? -1 nogil:
        cdef float64_t total = NormalStats.log_joint(self)
        cdef int32_t k
        if self.bug == 5:
            for k in range(self.n_slots):
                total -= 0.5 * log(self.kappa / (self.kappa + self.moments[k].n))
        if self.bug == 12:
            for k in range(self.n_slots):
                total += log(0.75) * max(self.moments[k].n - 1, 0)
        return total

    cdef int rollback(self) except -1 nogil:
        cdef Moments before
        cdef Moments *m
        if self.bug == 6:
            self.journal.clear()
        while self.bug == 7 and self.journal.size():
            before = self.journal.back()
            m = &self.moments[before.slot]
            m.n = before.n
            m.sum = before.sum * (1.0 + 4.5e-16)
            m.squares = before.squares
            self.journal.pop_back()
        return NormalStats.rollback(self)

    def check_arrays(self, arrays, labels):
        if self.bug != 9:
            NormalStats.check_arrays(self, arrays, labels)

    cdef int draw_parameters(self, const int32_t *occupancy, bint lazy,
                             bitgen_t *g) except -1 nogil:
        cdef int32_t k
        cdef Posterior p
        self.means.resize(self.n_slots)
        self.precisions.resize(self.n_slots)
        for k in range(self.n_slots):
            p = self.posterior(k)
            self.precisions[k] = random_standard_gamma(g, p.shape) / p.scale
            self.means[k] = p.mean + random_standard_normal(g) / sqrt(
                8.0 * p.kappa * self.precisions[k])
        return 0

    cdef float64_t log_likelihood(self, intp_t t, int32_t k,
                                  bitgen_t *g) except? -1 nogil:
        cdef float64_t off
        if isnan(self.values[t]):
            return 0.0
        off = self.values[t] - self.means[k]
        return 0.5 * (log(self.precisions[k] / (2.0 * pi))
                      - self.precisions[k] * off * off)


# ---- twins and faults ----------------------------------------------------------------------


cdef enum Bug:
    NONE
    RESEAT
    BASE_DENOMINATOR
    BASE_DENOMINATOR_PROPOSAL
    NO_GHOST
    ACCEPT_ALWAYS
    FIRST_SEATING
    PRINTED_RATIO
    NO_Q_STAR
    NO_GHOST_CUSTOMER


_BUGS = {
    None: NONE,
    "reseat": RESEAT,
    "base_denominator": BASE_DENOMINATOR,
    "base_denominator_proposal": BASE_DENOMINATOR_PROPOSAL,
    "no_ghost": NO_GHOST,
    "accept_always": ACCEPT_ALWAYS,
    "first_seating": FIRST_SEATING,
    "printed_ratio": PRINTED_RATIO,
    "no_q_star": NO_Q_STAR,
    "no_ghost_customer": NO_GHOST_CUSTOMER,
}


cdef class NaiveStepwise:
    """Step-wise sampler written from its definition: every factor computed when needed.

    Parameters
    ----------
    bug : str, optional
        "reseat": on rejection the old customers are seated anew instead of restored.
        "base_denominator": m_k + gamma for m + gamma in every predictive probability.
        "base_denominator_proposal": the same in the proposal alone, which is exact.
        "no_ghost": a successor without a table is not a candidate.
        "accept_always": the proposal is taken for the full conditional.
        "first_seating": all factors of the ratio at the seating without the step.
    reject_rate : float, default=0
        Probability of a rejection whatever the ratio: exact, and shows what rejections
        do.
    """

    cdef Bug bug
    cdef float64_t reject_rate
    cdef vector[intp_t] order
    cdef vector[float64_t] weights, emitted

    def __init__(self, bug=None, float64_t reject_rate=0.0):
        self.bug = _BUGS[bug]
        self.reject_rate = reject_rate

    cdef float64_t prob(self, ChainState s, int32_t j, int32_t k, bint proposes) noexcept:
        cdef Seating *seating = &s.transitions.seating
        cdef float64_t base
        cdef int32_t m = seating.dish_tables[k]
        if self.bug == BASE_DENOMINATOR or (
                self.bug == BASE_DENOMINATOR_PROPOSAL and proposes):
            base = (m if m > 0 else seating.gamma) / (m + seating.gamma)
            return ((seating.count(j, k) + seating.alpha * base)
                    / (seating.row_customers[j] + seating.alpha))
        return seating.prob(j, k)

    cdef float64_t weight(self, ChainState s, int32_t i, int32_t k, int32_t o) noexcept:
        cdef float64_t q = self.prob(s, i, k, True) * self.emitted[k]
        if o >= 0:
            q *= self.prob(s, k, o, True)
        return q

    cdef bint step(self, ChainState s, intp_t t) except -1:
        cdef Seating *seating = &s.transitions.seating
        cdef bitgen_t *bits = s.stream.bits
        cdef int32_t i = s.previous(t), o = s.successor(t), old = s.states[t]
        cdef int32_t k, new, ghost, fresh
        cdef float64_t total = 0.0, u, q_old, q_new, ratio
        cdef Product r_old, r_new
        cdef Chain chain
        cdef bint accepted
        s.reserve(2)
        if o >= 0:
            seating.remove(old, o, bits)
            r_old.multiply(self.prob(s, old, o, False))
        s.emission.remove_value(t, old, bits, &r_old)
        seating.remove(i, old, bits)
        r_old.multiply(self.prob(s, i, old, False))

        self.emitted.resize(s.n_slots)
        s.emission.fill_probs(t, self.emitted.data())
        fresh = s.free_slot(0)
        ghost = o if o >= 0 and seating.dish_tables[o] == 0 else -1
        self.weights.assign(s.n_slots, 0.0)
        for k in range(FIRST, s.n_slots):
            if (seating.dish_tables[k] > 0 or k == fresh
                    or (k == ghost and self.bug != NO_GHOST)):
                self.weights[k] = self.weight(s, i, k, o)
                total += self.weights[k]
        u = uniform(bits) * total
        new = fresh
        for k in range(FIRST, s.n_slots):
            if self.weights[k] > 0.0:
                new = k
                u -= self.weights[k]
                if u < 0.0:
                    break
        q_new = self.weights[new]
        # An old label that vanished has empty rows, like the fresh one.
        q_old = self.weight(s, i, old, o)

        r_new.multiply(self.prob(s, i, new, False))
        seating.add(i, new, bits)
        s.emission.add_value(t, new, bits, &r_new)
        if o >= 0:
            r_new.multiply(self.prob(s, new, o, False))
            seating.add(new, o, bits)

        ratio = r_new.log() - r_old.log() + log(q_old) - log(q_new)
        accepted = (self.bug == ACCEPT_ALWAYS or self.bug == FIRST_SEATING
                    or log(1.0 - uniform(bits)) < ratio)
        if accepted and self.reject_rate > 0.0:
            accepted = uniform(bits) >= self.reject_rate
        if accepted:
            seating.commit()
            s.emission.commit()
            chain = chain_of(s)
            (<LabelView *> &chain).assign(t, new)
            return True
        if self.bug == RESEAT:
            if o >= 0:
                seating.remove(new, o, bits)
            s.emission.remove_value(t, new, bits, &r_new)
            seating.remove(i, new, bits)
            seating.add(i, old, bits)
            s.emission.add_value(t, old, bits, &r_new)
            if o >= 0:
                seating.add(old, o, bits)
            seating.commit()
            s.emission.commit()
        else:
            seating.rollback()
            s.emission.rollback()
        return False

    def sweep(self, ChainState state):
        """Move every step once, in random order; returns (n_proposed, n_accepted)."""
        cdef intp_t t, at, n_accepted = 0
        self.order.resize(state.n_steps)
        for t in range(state.n_steps):
            self.order[t] = t
        for t in range(state.n_steps - 1, 0, -1):
            at = below(state.stream.bits, t + 1)
            self.order[t], self.order[at] = self.order[at], self.order[t]
        for t in range(state.n_steps):
            n_accepted += self.step(state, self.order[t])
        return state.n_steps, n_accepted


cdef class SteppedStepwise(BlockProposal):
    """The step-wise proposal as hooks only: nothing is inlined, and each can be watched.

    Parameters
    ----------
    dense_slots, lookup_slots, exact : int, int, bool
        As for ``StepwiseProposal``.  Driven by hooks the exact law is a proposal like any
        other, with a ratio.
    """

    cdef Stepwise[HookedEmission] stepwise
    # Outlives the hooks: the proposal keeps pointers to the column that it hands out.
    cdef HookedEmission emission

    cdef readonly bint exact

    def __init__(self, int32_t dense_slots=128, int32_t lookup_slots=1024,
                 bint exact=False):
        self.exact = exact
        self.is_single_step = True
        self.stepwise.set_limits(dense_slots, lookup_slots)
        self.stepwise.set_exact(exact)

    cdef int attach(self, ChainState state) except -1 nogil:
        self.emission = emission_of(state.emission)
        self.stepwise.attach(chain_of(state), self.emission)
        return 0

    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil:
        self.stepwise.prepare(chain_of(state), self.emission, start, stop)
        return 0

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        self.stepwise.score(chain_of(state), start, stop, q)
        return 0

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        self.stepwise.propose(chain_of(state), start, stop, path_out, q)
        return 0

    cdef int settle(self, ChainState state, intp_t start, intp_t stop,
                    bint accepted) except -1 nogil:
        self.stepwise.settle(chain_of(state), self.emission, start, stop, accepted)
        return 0


cdef class InlinedProposal(BlockProposal):
    """The instantiation for one franchise of symbols, which sweeps run, as hooks.

    Parameters
    ----------
    kind : {"stepwise", "blocked", "beam", "slice"}
    cut : float, default=0.2
        Of "blocked" and "beam".
    dense_slots, lookup_slots : int
        Of "stepwise" and, the latter, "slice".
    """

    cdef Stepwise[SeatingEmission] stepwise
    cdef BlockedMessages[SeatingEmission] blocked
    cdef BlockedSlices[SeatingEmission] beam
    cdef Slice[SeatingEmission] slice
    cdef SeatingEmission emission
    cdef readonly str kind
    cdef int number

    def __init__(self, kind, float64_t cut=0.2, int32_t dense_slots=128,
                 int32_t lookup_slots=1024):
        self.kind = kind
        self.number = ("stepwise", "blocked", "beam", "slice").index(kind)
        self.is_single_step = kind in ("stepwise", "slice")
        self.stepwise.set_limits(dense_slots, lookup_slots)
        self.blocked.set_cut(cut)
        self.beam.set_cut(cut)
        self.slice.set_limit(lookup_slots)

    cdef int attach(self, ChainState state) except -1 nogil:
        cdef Chain chain = chain_of(state)
        if not state.emission.as_seating(&self.emission):
            with gil:
                raise ValueError("the emission is not one franchise of symbols")
        if self.number == 0:
            self.stepwise.attach(chain, self.emission)
        elif self.number == 1:
            self.blocked.attach(chain, self.emission)
        elif self.number == 2:
            self.beam.attach(chain, self.emission)
        else:
            self.slice.attach(chain, self.emission)
        return 0

    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil:
        cdef Chain chain = chain_of(state)
        if self.number == 0:
            self.stepwise.prepare(chain, self.emission, start, stop)
        elif self.number == 1:
            self.blocked.prepare(chain, self.emission, start, stop)
        elif self.number == 2:
            self.beam.prepare(chain, self.emission, start, stop)
        else:
            self.slice.prepare(chain, self.emission, start, stop)
        return 0

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        cdef Chain chain = chain_of(state)
        if self.number == 0:
            self.stepwise.score(chain, start, stop, q)
        elif self.number == 1:
            self.blocked.score(chain, start, stop, q)
        elif self.number == 2:
            self.beam.score(chain, start, stop, q)
        else:
            self.slice.score(chain, start, stop, q)
        return 0

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        cdef Chain chain = chain_of(state)
        if self.number == 0:
            self.stepwise.propose(chain, start, stop, path_out, q)
        elif self.number == 1:
            self.blocked.propose(chain, start, stop, path_out, q)
        elif self.number == 2:
            self.beam.propose(chain, start, stop, path_out, q)
        else:
            self.slice.propose(chain, start, stop, path_out, q)
        return 0


cdef class PriorProposal(BlockProposal):
    """Proposes the labels of a block one after the other, at the frozen seating s_0.

    Step by step a represented state or "new" is drawn with its predictive probability
    times, if asked for, that of the observation.  What follows the block is ignored, so
    the acceptance has work to do.  Every "new" then gets a label from a Chinese
    restaurant process Q* over labels; if the successor of the block lost its last table,
    Q* starts with one customer at its label.

    Parameters
    ----------
    uses_observations : bool, default=True
    concentration : float, default=1
        Of Q*.  Any positive number is exact.
    bug : {"no_q_star", "no_ghost_customer"}, optional
        Leave Q* out of the probability of the proposal, or start it empty.
    """

    cdef bint uses_observations
    cdef float64_t concentration
    cdef Bug bug
    cdef vector[float64_t] row, emitted
    cdef vector[int32_t] labels, customers      # tables of Q*
    cdef float64_t n_customers

    def __init__(self, bint uses_observations=True, float64_t concentration=1.0, bug=None):
        self.uses_observations = uses_observations
        self.concentration = concentration
        self.bug = _BUGS[bug]

    cdef int open_labels(self, ChainState s, intp_t stop) except -1 nogil:
        cdef int32_t o = s.successor(stop - 1)
        self.labels.clear()
        self.customers.clear()
        self.n_customers = 0.0
        if (o >= 0 and s.transitions.seating.dish_tables[o] == 0
                and self.bug != NO_GHOST_CUSTOMER):
            self.labels.push_back(o)
            self.customers.push_back(1)
            self.n_customers = 1.0
        return 0

    cdef float64_t seat_label(self, int32_t label) except? -1.0 nogil:
        # Adds one customer of Q*; returns its probability.
        cdef size_t i
        cdef float64_t total = self.n_customers + self.concentration, p
        self.n_customers += 1.0
        for i in range(self.labels.size()):
            if self.labels[i] == label:
                p = self.customers[i] / total
                self.customers[i] += 1
                break
        else:
            p = self.concentration / total
            self.labels.push_back(label)
            self.customers.push_back(1)
        return 1.0 if self.bug == NO_Q_STAR else p

    cdef float64_t fill(self, ChainState s, intp_t t, int32_t j) except? -1.0 nogil:
        # Weights of step t after xbar = j; returns their sum.
        cdef int32_t k
        cdef float64_t total = 0.0
        self.row.resize(s.n_slots)
        self.emitted.resize(s.n_slots)
        s.transitions.fill_row(j, self.row.data())
        if self.uses_observations:
            s.emission.fill_probs(t, self.emitted.data())
        for k in range(s.n_slots):
            if self.uses_observations:
                self.row[k] *= self.emitted[k]
            total += self.row[k]
        return total

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        cdef intp_t t
        cdef int32_t j = state.previous(start), k, bar
        cdef float64_t total
        self.open_labels(state, stop)
        for t in range(start, stop):
            k = state.states[t]
            bar = k if state.transitions.seating.dish_tables[k] > 0 else NEW
            total = self.fill(state, t, j)
            q.multiply(self.row[bar] / total)
            if bar == NEW:
                q.multiply(self.seat_label(k))
            j = bar
        return 0

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        cdef intp_t t, n_fresh = 0
        cdef size_t i
        cdef int32_t j = state.previous(start), k, bar, label
        cdef float64_t u, total
        cdef bitgen_t *bits = state.stream.bits
        self.open_labels(state, stop)
        for t in range(start, stop):
            total = self.fill(state, t, j)
            u = uniform(bits) * total
            bar = NEW
            for k in range(state.n_slots):
                if self.row[k] > 0.0:
                    bar = k
                    u -= self.row[k]
                    if u < 0.0:
                        break
            q.multiply(self.row[bar] / total)
            label = bar
            if bar == NEW:
                u = uniform(bits) * (self.n_customers + self.concentration)
                for i in range(self.labels.size()):
                    u -= self.customers[i]
                    if u < 0.0:
                        label = self.labels[i]
                        break
                else:
                    label = state.free_slot(n_fresh)
                    n_fresh += 1
                q.multiply(self.seat_label(label))
            path_out[t - start] = label
            j = bar
        return 0


cdef class FaultyMove(RCDMove):
    """A move with forced rejections or a planted error; see :class:`FaultyKernel`."""

    cdef Bug bug
    cdef float64_t reject_rate
    cdef intp_t start, stop
    cdef vector[float64_t] emitted
    cdef vector[int32_t] seated

    def __init__(self, bug=None, float64_t reject_rate=0.0):
        self.bug = _BUGS[bug]
        self.reject_rate = reject_rate

    cdef Product frozen(self, ChainState s, const int32_t *path) except *:
        # All factors of a path at the present seating.
        cdef Product r
        cdef intp_t t
        cdef int32_t j = s.previous(self.start), k, o = s.successor(self.stop - 1)
        self.emitted.resize(s.n_slots)
        for t in range(self.start, self.stop):
            k = path[t - self.start]
            s.emission.fill_probs(t, self.emitted.data())
            r.multiply(s.transitions.seating.prob(j, k))
            r.multiply(self.emitted[k])
            j = k
        if o >= 0:
            r.multiply(s.transitions.seating.prob(j, o))
        return r

    cdef int open(self, ChainState s, intp_t start, intp_t stop) except -1 nogil:
        self.start = start
        self.stop = stop
        RCDMove.open(self, s, start, stop)
        if self.bug == FIRST_SEATING:
            with gil:
                self.move.r_old = self.frozen(s, s.states.data() + start)
        return 0

    cdef int seat(self, ChainState s, const int32_t *path) except -1 nogil:
        cdef Product r
        self.seated.assign(path, path + (self.stop - self.start))
        if self.bug == FIRST_SEATING:
            with gil:
                r = self.frozen(s, path)
        RCDMove.seat(self, s, path)
        if self.bug == FIRST_SEATING:
            self.move.r_new = r
        return 0

    cdef bint decide(self, ChainState s, const int32_t *path, const Product *q_old,
                     const Product *q_new) except -1 nogil:
        cdef Product never, one
        cdef float64_t log_ratio
        cdef bint accepted
        if self.reject_rate == 0.0 and self.bug in (NONE, FIRST_SEATING):
            return RCDMove.decide(self, s, path, q_old, q_new)
        log_ratio = (self.move.r_new.log() - self.move.r_old.log()
                     + q_old.log() - q_new.log())
        if self.bug == PRINTED_RATIO:
            log_ratio += 2.0 * self.move.r_old.log()
        accepted = (self.bug == ACCEPT_ALWAYS
                    or log(1.0 - uniform(s.stream.bits)) < log_ratio)
        if self.reject_rate > 0.0 and uniform(s.stream.bits) < self.reject_rate:
            accepted = False
        # A factor of zero on one side settles what the move itself decides.
        never.multiply(0.0)
        if accepted:
            return RCDMove.decide(self, s, path, &one, &never)
        if self.bug != RESEAT:
            return RCDMove.decide(self, s, path, &never, &one)
        self.reseat(s)
        return False

    cdef int reseat(self, ChainState s) except -1 nogil:
        cdef intp_t t
        cdef int32_t j, o = s.successor(self.stop - 1)
        cdef bitgen_t *bits = s.stream.bits
        cdef Seating *seating = &s.transitions.seating
        cdef Product ignored
        if o >= 0:
            seating.remove(self.seated[self.stop - 1 - self.start], o, bits)
        for t in range(self.stop - 1, self.start - 1, -1):
            j = (s.previous(t) if t == self.start
                 else self.seated[t - 1 - self.start])
            s.emission.remove_value(t, self.seated[t - self.start], bits, &ignored)
            seating.remove(j, self.seated[t - self.start], bits)
        for t in range(self.start, self.stop):
            seating.add(s.previous(t), s.states[t], bits)
            s.emission.add_value(t, s.states[t], bits, &ignored)
        if o >= 0:
            seating.add(s.states[self.stop - 1], o, bits)
        seating.commit()
        s.emission.commit()
        return 0


cdef class FaultyKernel(RCDKernel):
    """``RCDKernel`` that drives the hooks itself, with planted errors if asked for.

    Parameters
    ----------
    proposal : BlockProposal
    block_size : int, default=1
    bug : str, optional
        "reseat": on rejection the old customers are seated anew instead of restored.
        "first_seating": all factors of the ratio at s_0.
        "accept_always": the proposal is taken for exact.
        "printed_ratio": r_old * r_new, as printed, for r_new / r_old.
    reject_rate : float, default=0
        Probability of a rejection whatever the ratio: exact, and shows what rejections
        do.
    """

    cdef FaultyMove move

    def __init__(self, BlockProposal proposal, intp_t block_size=1, bug=None,
                 float64_t reject_rate=0.0):
        RCDKernel.__init__(self, proposal, block_size)
        self.move = FaultyMove(bug, reject_rate)

    cdef int run(self, ChainState state) except -1 nogil:
        cdef size_t b
        cdef intp_t start, stop
        cdef Product q_old, q_new
        cdef bint accepted
        self.cut_blocks(state)
        self.path.resize(self.block_size)
        state.touched.clear()
        self.proposal.attach(state)
        for b in range(self.starts.size()):
            start = self.starts[b]
            stop = self.stops[b]
            if <intp_t> state.free_slots.size() < stop - start + 1:
                state.reserve(stop - start + 1)
                self.proposal.attach(state)
            q_old.reset()
            q_new.reset()
            self.move.open(state, start, stop)
            self.proposal.prepare(state, start, stop)
            state.touched.clear()
            self.proposal.score(state, start, stop, &q_old)
            self.proposal.propose(state, start, stop, self.path.data(), &q_new)
            self.move.seat(state, self.path.data())
            accepted = self.move.decide(state, self.path.data(), &q_old, &q_new)
            self.proposal.settle(state, start, stop, accepted)
            state.n_accepted += accepted
        state.n_proposed += <intp_t> self.starts.size()
        return 0


def resample_alpha_without_start(Franchise transitions, RandomStream stream, prior):
    """The update of alpha with the start restaurant left out: wrong."""
    cdef Seating *s = &transitions.seating
    cdef float64_t shape = prior[0] + s.n_tables, rate = prior[1], alpha = s.alpha
    cdef size_t j
    for j in range(s.row_customers.size()):
        if j == START or s.row_customers[j] == 0:
            continue
        rate -= log(stream.generator.beta(alpha + 1.0, s.row_customers[j]))
        shape -= uniform(stream.bits) * (s.row_customers[j] + alpha) < s.row_customers[j]
    s.set_concentrations(stream.generator.gamma(shape) / rate, s.gamma)


def resample_gamma_distinct_symbols(CategoricalStats emission, RandomStream stream, prior):
    """The update of an emission's gamma with symbols for root tables: wrong."""
    cdef Seating *s = &emission.seatings[0]
    cdef float64_t shape = prior[0], rate = prior[1], gamma = s.gamma
    cdef size_t w
    for w in range(s.dish_tables.size()):
        shape += s.dish_tables[w] > 0
    if s.n_tables > 0:
        rate -= log(stream.generator.beta(gamma + 1.0, s.n_tables))
        shape -= uniform(stream.bits) * (s.n_tables + gamma) < s.n_tables
    s.set_concentrations(s.alpha, stream.generator.gamma(shape) / rate)
