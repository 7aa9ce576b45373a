"""Moves of a chain, compared with their definitions; proposals and emissions for tests."""

import numpy as np

from libc.math cimport isnan, log
from libcpp.vector cimport vector

from skihmm.core._emission cimport SeatingEmission, SymbolColumn
from skihmm.core._family cimport Family  # no-cython-lint
from skihmm.core._franchise cimport NEW, Franchise, Product, Seating
from skihmm.core._random cimport RandomStream, below, bitgen_t, uniform
from skihmm.core._rcd cimport BlockProposal, Chain, RCDMove, chain_of
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t
from skihmm.emissions._conjugate_stats cimport ConjugateStats


cdef extern from "_rcd.hpp" namespace "skihmm" nogil:
    cdef struct StepView:
        int32_t i, x, o, n_in, n_out, n_i, n_x, m_x, m_o
        float64_t scale
        bint has_symbol
        SymbolColumn column
        int32_t e_in, e_x

    cdef cppclass Move[Emission]:
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


cdef extern from "_conjugate_families.hpp" namespace "skihmm" nogil:
    cdef cppclass GaussianHyperprior:
        GaussianHyperprior(int32_t, const float64_t *, const float64_t *, bint, bint,
                           bint) except +

    cdef cppclass NormalInverseGammaFamily(Family):
        NormalInverseGammaFamily(int32_t, const float64_t *, const float64_t *, float64_t,
                                 const float64_t *, GaussianHyperprior, int64_t) except +


cdef extern from *:
    """
    #include "_blocked.hpp"
    #include "_slice.hpp"
    #include "_stepwise.hpp"

    namespace skihmm {
    // What sweeps run inlined for one franchise of symbols, through virtual functions.
    struct Inlined {
        virtual ~Inlined() = default;
        virtual void attach(const Chain &chain, const SeatingEmission &emission) = 0;
        virtual void prepare(const Chain &chain, const SeatingEmission &emission,
                             int64_t start, int64_t stop) = 0;
        virtual void score(const Chain &chain, int64_t start, int64_t stop, Product *q) = 0;
        virtual void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                             Product *q) = 0;
    };
    template <class Proposal>
    struct InlinedAs final : Inlined {
        Proposal proposal;
        void attach(const Chain &chain, const SeatingEmission &emission) override {
            proposal.attach(chain, emission);
        }
        void prepare(const Chain &chain, const SeatingEmission &emission, int64_t start,
                     int64_t stop) override {
            proposal.prepare(chain, emission, start, stop);
        }
        void score(const Chain &chain, int64_t start, int64_t stop, Product *q) override {
            proposal.score(chain, start, stop, q);
        }
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) override {
            proposal.propose(chain, start, stop, path, q);
        }
    };
    inline Inlined *make_stepwise(int32_t vector_slots, int32_t lookup_slots) {
        auto *out = new InlinedAs<Stepwise<SeatingEmission>>;
        out->proposal.set_limits(vector_slots, lookup_slots);
        return out;
    }
    inline Inlined *make_blocked(double cut) {
        auto *out = new InlinedAs<BlockedMessages<SeatingEmission>>;
        out->proposal.set_cut(cut);
        return out;
    }
    inline Inlined *make_beam(double cut) {
        auto *out = new InlinedAs<BlockedSlices<SeatingEmission>>;
        out->proposal.set_cut(cut);
        return out;
    }
    inline Inlined *make_slice(int32_t lookup_slots) {
        auto *out = new InlinedAs<Slice<SeatingEmission>>;
        out->proposal.set_limit(lookup_slots);
        return out;
    }
    }  // namespace skihmm
    """
    cdef cppclass Inlined "skihmm::Inlined":
        void attach(const Chain &chain, const SeatingEmission &emission) except + nogil
        void prepare(const Chain &chain, const SeatingEmission &emission, int64_t start,
                     int64_t stop) except + nogil
        void score(const Chain &chain, int64_t start, int64_t stop,
                   Product *q) except + nogil
        void propose(const Chain &chain, int64_t start, int64_t stop, int32_t *path,
                     Product *q) except + nogil

    Inlined *make_stepwise "skihmm::make_stepwise"(int32_t, int32_t) except +
    Inlined *make_blocked "skihmm::make_blocked"(float64_t cut) except +
    Inlined *make_beam "skihmm::make_beam"(float64_t cut) except +
    Inlined *make_slice "skihmm::make_slice"(int32_t lookup_slots) except +


def peek(ChainState state):
    """Return what a chain does not show by itself.

    Returns
    -------
    dict
        By step "slots", "before" and "after" (-1 at the end of a sequence); by slot
        "tables", and "probs", the transition probabilities between all slots; "n_touched",
        the number of slots noted for caches, and "has_dense".
    """
    cdef Seating *s = &state.transitions.seating
    cdef int32_t j, k
    return {
        "slots": np.asarray(state.states),
        "before": [state.previous(t) for t in range(state.n_steps)],
        "after": [state.successor(t) for t in range(state.n_steps)],
        "tables": np.asarray(s.dish_tables),
        "probs": np.array([[s.prob(j, k) for k in range(state.n_slots)]
                           for j in range(state.n_slots)]),
        "n_touched": state.touched.size(),
        "has_dense": bool(s.has_dense()),
    }


def set_slot(ChainState state, intp_t t, int32_t k):
    """Give a step another label, and change nothing else."""
    state.states[t] = k


def emission_column(ChainState state, intp_t t):
    """p(y[t] | k) of every slot k through the sparse view; None if y[t] is missing."""
    cdef SymbolColumn column
    cdef float64_t offset = 0.0
    cdef const int32_t *totals
    cdef int32_t k
    if not state.emission.fill_column(t, &column):
        return None
    totals = state.emission.totals(&offset)
    out = np.array([column.smooth / (totals[k] + offset) for k in range(state.n_slots)])
    for k in range(column.size):
        out[column.ids[k]] += column.counts[k] / (totals[column.ids[k]] + offset)
    return out


def steps(Franchise transitions, const float64_t[::1] weights,
          const float64_t[::1] values):
    """All passes over the transitions.

    Returns
    -------
    rows : ndarray of shape (n_slots, n_slots)
        p(k | j).
    pushed, pulled, best : ndarray of shape (n_slots,)
        ``sum_j weights[j] p(k | j)``, ``sum_k p(k | j) values[k]`` and
        ``max_j weights[j] p(k | j)``.
    argmax : ndarray of shape (n_slots,)
        The j that reaches the maximum.
    """
    cdef int32_t j, n = <int32_t> transitions.seating.dish_tables.size()
    assert weights.shape[0] == values.shape[0] == n
    cdef float64_t[:, ::1] rows = np.empty((n, n))
    cdef float64_t[:, ::1] out = np.empty((3, n))
    cdef int32_t[::1] argmax = np.empty(n, dtype=np.int32)
    for j in range(n):
        transitions.seating.fill_row(j, &rows[j, 0])
    transitions.seating.push(&weights[0], &out[0, 0])
    transitions.seating.pull(&values[0], &out[1, 0])
    transitions.seating.push_max(&weights[0], &out[2, 0], &argmax[0])
    return np.asarray(rows), *np.asarray(out), np.asarray(argmax)


cdef tuple _numbers(const StepView *view):
    cdef float64_t smooth = view.column.smooth if view.has_symbol else -1.0
    return (view.i, view.x, view.o, view.n_in, view.n_out, view.n_i, view.n_x, view.m_x,
            view.m_o, view.scale, view.e_in, view.e_x, smooth)


def open_step(ChainState state, intp_t t, seed):
    """Open and undo a move of one step: its ``StepView``, and the chain at s_0."""
    cdef Move[SeatingEmission] move
    cdef SeatingEmission emission
    cdef Chain chain = chain_of(state)
    cdef RandomStream stream = RandomStream(seed)
    state.emission.as_seating(&emission)
    chain.bits = stream.bits
    move.open(chain, emission, t, t + 1)
    move.look(chain, emission)
    arrays = state.to_arrays()
    view = _numbers(&move.view)
    move.restore(chain, emission)
    return view, arrays


def lift_step(ChainState state, intp_t t, seed):
    """Lift a step as sweeps do, put it back to its own label and accept.

    Returns
    -------
    view : tuple or None
        ``StepView``; None, and nothing done, for a step that must be opened.
    log_ratio : float
        log(r_new / r_old).
    """
    cdef Move[SeatingEmission] move
    cdef SeatingEmission emission
    cdef Product large, one
    cdef int32_t label = state.states[t]
    cdef Chain chain = chain_of(state)
    cdef RandomStream stream = RandomStream(seed)
    state.emission.as_seating(&emission)
    chain.bits = stream.bits
    if not move.lift(chain, emission, t):
        return None, 0.0
    view = _numbers(&move.view)
    move.seat(chain, emission, &label)
    log_ratio = move.r_new.log() - move.r_old.log()
    large.multiply(1e100)
    move.decide(chain, emission, &label, large, one)
    return view, log_ratio


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

    cdef Inlined *inlined
    cdef SeatingEmission emission
    cdef readonly str kind

    def __cinit__(self, kind, float64_t cut=0.2, int32_t dense_slots=128,
                  int32_t lookup_slots=1024):
        self.kind = kind
        self.is_single_step = kind in ("stepwise", "slice")
        if kind == "stepwise":
            self.inlined = make_stepwise(dense_slots, lookup_slots)
        elif kind == "blocked":
            self.inlined = make_blocked(cut)
        elif kind == "beam":
            self.inlined = make_beam(cut)
        else:
            self.inlined = make_slice(lookup_slots)

    def __dealloc__(self):
        del self.inlined

    cdef int attach(self, ChainState state) except -1 nogil:
        if not state.emission.as_seating(&self.emission):
            with gil:
                raise ValueError("the emission is not one franchise of symbols")
        self.inlined.attach(chain_of(state), self.emission)
        return 0

    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil:
        self.inlined.prepare(chain_of(state), self.emission, start, stop)
        return 0

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        self.inlined.score(chain_of(state), start, stop, q)
        return 0

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        self.inlined.propose(chain_of(state), start, stop, path_out, q)
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
    """

    cdef bint uses_observations
    cdef float64_t concentration
    cdef vector[float64_t] row, emitted
    cdef vector[int32_t] labels, customers      # tables of Q*
    cdef float64_t n_customers

    def __init__(self, bint uses_observations=True, float64_t concentration=1.0):
        self.uses_observations = uses_observations
        self.concentration = concentration

    cdef int open_labels(self, ChainState s, intp_t stop) except -1 nogil:
        cdef int32_t o = s.successor(stop - 1)
        self.labels.clear()
        self.customers.clear()
        self.n_customers = 0.0
        if o >= 0 and s.transitions.seating.dish_tables[o] == 0:
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
        return p

    cdef float64_t fill(self, ChainState s, intp_t t, int32_t j) except? -1.0 nogil:
        # Weights of step t after xbar = j; returns their sum.
        cdef int32_t k
        cdef float64_t total = 0.0
        self.row.resize(s.n_slots)
        self.emitted.resize(s.n_slots)
        s.transitions.seating.fill_row(j, self.row.data())
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


cdef class FaultyStats(ConjugateStats):
    """One normal column whose hooks have a planted error.

    Parameters
    ----------
    values : ndarray of shape (n_steps, 1)
    bug : str, optional
        "fresh": rows are wrong for a state that nothing uses.
        "pair": pairs are the wrong way round.
        "missing": a missing value has probability one half.
        "removal": a removal's probability is that before it.
        "forget": a rollback restores nothing.
        "inverse": a rollback restores sums up to rounding only, as subtraction would.
        "garbage": records are not checked.
        "values": drawn values are too near to their mean.
        "mean": predictives are twice the means.
    """

    cdef str bug
    cdef vector[int32_t] journal        # step, slot and +1 or -1, one after the other

    def __init__(self, values, bug=None):
        cdef float64_t mean = 0.0, strength = 0.5, scale = 1.5, variance = 1.0
        ConjugateStats.__init__(self, values)
        self.bug = bug or ""
        self.set_family(new NormalInverseGammaFamily(
            1, &mean, &strength, 3.0, &scale,
            GaussianHyperprior(1, &mean, &variance, False, False, False), self.n_steps))

    cdef int note(self, intp_t t, int32_t k, int32_t sign) except -1:
        for value in (<int32_t> t, k, sign):
            self.journal.push_back(value)
        return 0

    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        with gil:
            if self.bug == "missing" and isnan(self.values[t, 0]):
                r.multiply(0.5)
            self.note(t, k, 1)
        return ConjugateStats.add_value(self, t, k, g, r)

    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g,
                          Product *r) except -1 nogil:
        cdef Product ignored
        cdef vector[float64_t] row
        with gil:
            self.note(t, k, -1)
            if self.bug == "missing" and isnan(self.values[t, 0]):
                r.multiply(0.5)
            if self.bug != "removal":
                return ConjugateStats.remove_value(self, t, k, g, r)
            row.resize(self.n_slots)
            r.multiply_log(ConjugateStats.fill_probs(self, t, row.data()))
            r.multiply(row[k])
            return ConjugateStats.remove_value(self, t, k, g, &ignored)

    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil:
        cdef float64_t log_scale = ConjugateStats.fill_probs(self, t, out)
        with gil:
            if self.bug == "fresh" and not isnan(self.values[t, 0]):
                out[NEW] *= 0.7
        return log_scale

    cdef int fill_pair(self, intp_t t, const int32_t *states,
                       float64_t *out) except -1 nogil:
        ConjugateStats.fill_pair(self, t, states, out)
        with gil:
            if self.bug == "pair":
                out[0], out[1] = out[1], out[0]
        return 0

    cdef int commit(self) except -1 nogil:
        self.journal.clear()
        return ConjugateStats.commit(self)

    cdef int rollback(self) except -1 nogil:
        cdef Product ignored
        cdef vector[int32_t] journal = self.journal
        self.journal.clear()
        with gil:
            if self.bug not in ("forget", "inverse"):
                return ConjugateStats.rollback(self)
            ConjugateStats.commit(self)
            while self.bug == "inverse" and journal.size():
                t, k, sign = journal[journal.size() - 3], journal[journal.size() - 2], (
                    journal.back())
                journal.resize(journal.size() - 3)
                if sign > 0:
                    ConjugateStats.remove_value(self, t, k, NULL, &ignored)
                else:
                    ConjugateStats.add_value(self, t, k, NULL, &ignored)
            return ConjugateStats.commit(self)

    def check_arrays(self, arrays, labels):
        if self.bug != "garbage":
            ConjugateStats.check_arrays(self, arrays, labels)

    def predictives(self, slots):
        means = ConjugateStats.predictives(self, slots)
        return [2.0 * column for column in means] if self.bug == "mean" else means

    def draw_values(self, slots, n_known, RandomStream stream):
        values = ConjugateStats.draw_values(self, slots, n_known, stream)
        if self.bug == "values":
            values[0] -= 0.3 * (values[0] - ConjugateStats.predictives(self, slots)[0])
        return values
