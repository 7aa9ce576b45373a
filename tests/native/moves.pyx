"""Moves of a chain, compared with their definitions; proposals and emissions for tests."""

import numpy as np

from cython.operator cimport dereference as deref
from libc.math cimport log
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._family cimport Family  # no-cython-lint
from skihmm.core._franchise cimport (
    Franchise,
    Transitions,
    TransitionsRecord,
    transitions_from_arrays,
)
from skihmm.core._product cimport Product
from skihmm.core._random cimport RandomStream, below, bitgen_t, uniform
from skihmm.core._rcd cimport BlockProposal, Move, Proposal
from skihmm.core._record cimport Archive, Record
from skihmm.core._slots cimport NEW
from skihmm.core._state cimport Chain, ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t, uint8_t


cdef extern from "_column_passes.hpp" namespace "skihmm" nogil:
    cdef cppclass ColumnPasses:
        ColumnPasses(const Transitions &s) except +
        void push(int64_t t, const float64_t *weights, float64_t *out) except +
        void pull(int64_t t, const float64_t *values, float64_t *out) except +
        void push_max(int64_t t, const float64_t *weights, float64_t *out,
                      int32_t *argmax_out) except +


cdef extern from "_normal_law.hpp" namespace "skihmm" nogil:
    struct FamilySetting:
        int32_t n_columns, n_inputs
        const float64_t *hyperparameters
        const float64_t *units
        const int32_t *is_drawn
        const float64_t *values
        int64_t n_steps
        float64_t shape

    cdef cppclass NormalInverseGammaFamily(Family):
        NormalInverseGammaFamily(const FamilySetting &setting) except +


cdef extern from *:
    """
    #include <vector>

    #include "_conjugate_table.hpp"

    namespace skihmm {
    // Rows that are not computed again when statistics change, and nothing else.
    class FaultyRows final : public FamilyPart {
      public:
        std::vector<std::vector<double>> rows;      // announced ones
        std::vector<double> scales;
        explicit FaultyRows(ConjugateTable *table) : FamilyPart(table->family), table_(table) {}
        void look_ahead(int64_t start, int64_t stop) override {
            rows.clear();
            for (int64_t t = start; t < stop; ++t) {
                rows.emplace_back(table_->n_slots);
                scales.resize(t + 1);
                scales[t] = table_->fill_probs(t, rows.back().data());
            }
        }
        void only_evaluate() override {}
        bool fill_pairs(int64_t, int64_t, const int32_t *, double *) override { return false; }
        bool fill_whole(int64_t, int64_t, const int32_t *, double *) override { return false; }
        bool allows_scans() const override { return false; }
        void remove_block(int64_t, int64_t, const int32_t *, Product *) override {}
        double remove_steps(const int32_t *) override { return 0.0; }
        double add_steps(const int32_t *, const int64_t *, size_t, const int32_t *) override {
            return 0.0;
        }
        double log_joint_without_weights() const override { return 0.0; }
        void watch(int (*)(void *), void *) override {}
        size_t n_hidden() const override { return 0; }
        const Hidden *hidden(size_t) const override { return nullptr; }
        void set_hidden(size_t, const double *) override {}
        const Hidden *of_draws() const override { return nullptr; }
        void set_of_draws(const std::vector<double> &) override {}
        void fill_entries(const std::vector<Gap> &) override {}
        void open_weights() override {}
        bool draws_hidden(bool) const override { return false; }
        std::vector<double> draw_hidden(const int32_t *, bitgen_t *, bool) override { return {}; }
        void restore(std::vector<double> *) const override {}

      private:
        ConjugateTable *table_;
    };
    // The functions of a conjugate table with a planted error; see FaultyStats.
    class FaultyEmission final : public Emission {
      public:
        ConjugateTable table;
        FaultyEmission(Family *family, const double *values, int64_t n, std::string bug)
            : table(family, values, n), ahead_(&table), values_(values), bug_(bug) {
            n_steps = n;
            if (bug == "ahead") family_part = &ahead_;
        }
        void add(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
            note(t, k, 1, r);
            table.add(t, k, g, r);
        }
        void remove(int64_t t, int32_t k, bitgen_t *g, Product *r) override {
            Product ignored;
            note(t, k, -1, r);
            if (bug_ == "removal") {
                std::vector<double> row(n_slots);
                r->multiply_log(table.fill_probs(t, row.data()));
                r->multiply(row[k]);
                r = &ignored;
            }
            table.remove(t, k, g, r);
        }
        double fill_probs(int64_t t, double *out) override {
            if (t < static_cast<int64_t>(ahead_.rows.size())) {
                std::copy(ahead_.rows[t].begin(), ahead_.rows[t].end(), out);
                return ahead_.scales[t];
            }
            const double log_scale = table.fill_probs(t, out);
            if (bug_ == "fresh" && !std::isnan(values_[t])) out[kNew] *= 0.7;
            return log_scale;
        }
        void fill_pair(int64_t t, const int32_t *states, double *out) override {
            table.fill_pair(t, states, out);
            if (bug_ == "pair") std::swap(out[0], out[1]);
        }
        void fill_logs(int64_t t, double *out) override {
            table.fill_logs(t, out);
            if (bug_ == "logs" && !std::isnan(values_[t])) out[kNew] -= 0.1;
        }
        void fill_log_pair(int64_t t, const int32_t *states, double *out) override {
            table.fill_log_pair(t, states, out);
            if (bug_ == "log pair") std::swap(out[0], out[1]);
        }
        void fill_prefixes(int64_t start, int64_t stop, int32_t k, bool backwards,
                           double *out) override {
            table.fill_prefixes(start, stop, k, backwards, out);
        }
        void commit() override {
            journal_.clear();
            table.commit();
        }
        void rollback() override {
            Product ignored;
            if (bug_ != "forget" && bug_ != "inverse") table.rollback();
            table.commit();
            for (size_t i = bug_ == "inverse" ? journal_.size() : 0; i-- > 0;) {
                const Change &change = journal_[i];
                if (change.sign > 0) table.remove(change.t, change.k, nullptr, &ignored);
                else table.add(change.t, change.k, nullptr, &ignored);
            }
            commit();
        }
        void resize(int32_t n) override {
            n_slots = n;
            table.resize(n);
        }
        double log_joint() const override { return table.log_joint(); }
        void draw_hyperparameters(bitgen_t *g) override { table.draw_hyperparameters(g); }
        void recount(const int32_t *states) override { table.recount(states); }
        size_t n_bytes() const override { return table.n_bytes(); }
        void write(const Archive &archive, const std::vector<int32_t> &labels) override {
            table.write(archive, labels);
        }
        void check_record(const Archive &archive, const std::vector<int32_t> &labels) override {
            table.check_record(archive, labels);
        }
        void load(const Archive &archive, int32_t n_states) override {
            if (bug_ == "garbage") table.clear();
            table.load(archive, n_states);
        }
        std::string check(const std::vector<int32_t> &slots) override {
            return table.check(slots);
        }
        void add_to(ParticleCounts *counts, int32_t n_states) const override {
            table.add_to(counts, n_states);
        }
        std::vector<PredictedColumn> columns() const override { return table.columns(); }
        void fill_predictives(const int32_t *slots, int64_t n, const double *inputs,
                              double *out) override {
            table.fill_predictives(slots, n, inputs, out);
        }
        void draw_values(const int32_t *slots, int64_t n, const double *inputs,
                         const int32_t *n_known, double *out, bitgen_t *g) override {
            table.draw_values(slots, n, inputs, n_known, out, g);
        }
        EmissionParameters *parameters() override { return table.parameters(); }

      private:
        struct Change {
            int64_t t;
            int32_t k, sign;
        };
        void note(int64_t t, int32_t k, int32_t sign, Product *r) {
            journal_.push_back({t, k, sign});
            if (bug_ == "missing" && std::isnan(values_[t])) r->multiply(0.5);
        }
        FaultyRows ahead_;
        const double *values_;
        const std::string bug_;
        std::vector<Change> journal_;
    };
    }  // namespace skihmm

    // With the sizes of arrays, so that other arrays are other numbers.
    inline void append_integers(const skihmm::Record &record, std::vector<int32_t> *out) {
        out->push_back(static_cast<int32_t>(record.integers.size()));
        out->insert(out->end(), record.integers.begin(), record.integers.end());
        out->insert(out->end(), record.bytes.begin(), record.bytes.end());
        for (const skihmm::Record &item : record.items) append_integers(item, out);
    }
    """
    void append_integers(const Record &record, vector[int32_t] *out)

    cdef cppclass FaultyEmission "skihmm::FaultyEmission"(Emission):
        FaultyEmission(Family *family, const float64_t *values, int64_t n,
                       string bug) except +


def peek(ChainState state):
    """Return what a chain does not show by itself.

    Returns
    -------
    dict
        By step "slots", "before" and "after" (-1 at the end of a sequence); by slot
        "tables", and "probs", the transition probabilities between all slots; "n_touched",
        the number of slots noted for caches, and "has_dense".
    """
    cdef Transitions *s = state.transitions.native
    cdef Chain *chain = state.chain.get()
    cdef int32_t j, k
    return {
        "slots": np.asarray(chain.states),
        "before": [chain.previous(t) for t in range(chain.n_steps)],
        "after": [chain.successor(t) for t in range(chain.n_steps)],
        "tables": np.asarray(s.dish_tables),
        "probs": np.array([[s.prob(j, k) for k in range(chain.n_slots)]
                           for j in range(chain.n_slots)]),
        "n_touched": chain.touched.size(),
        "has_dense": bool(s.has_dense()),
    }


cdef class Start:
    """A record from which a chain starts again and again; it is checked and read once.

    Parameters
    ----------
    state : ChainState
    arrays : dict
        A result of its ``to_arrays()``.
    """

    cdef ChainState state
    cdef TransitionsRecord record
    cdef const uint8_t[::1] labels
    cdef object emission

    def __init__(self, ChainState state, arrays):
        state.from_arrays(arrays)
        transitions_from_arrays(arrays, &self.record)
        self.state, self.emission = state, arrays["emission"]
        self.labels = np.asarray(arrays["states"], dtype=np.uint8)

    def load(self):
        """Load the chain, as ``from_arrays`` does."""
        cdef Chain *chain = self.state.chain.get()
        chain.load(self.record, &self.labels[0])
        self.state.emission.load(self.emission, self.record.n_states)
        chain.emission.get().recount(chain.states.data())


def integers_of(ChainState state):
    """All integers of ``to_arrays()`` as bytes, which is faster."""
    cdef Chain *chain = state.chain.get()
    cdef vector[int32_t] label = chain.record_labels()
    cdef TransitionsRecord record = state.transitions.native.record(label)
    cdef Archive archive, emission
    cdef vector[int32_t] out
    cdef int32_t k
    record.visit(archive)
    chain.emission.get().write(emission, label)
    for k in chain.states:
        out.push_back(label[k])
    append_integers(archive.record(), &out)
    append_integers(emission.record(), &out)
    return (<const char *> out.data())[:out.size() * sizeof(int32_t)]


def remove_block(EmissionStats stats, intp_t start, const int32_t[::1] slots):
    """Remove consecutive steps from their slots; return the log of the product."""
    cdef Product r
    stats.shared.get().remove_block(start, start + slots.shape[0], &slots[0], &r)
    return r.log()


def log_prefixes(EmissionStats stats, intp_t start, intp_t stop, int32_t k, bint backwards):
    """log p(first observations of steps [start, stop) | observations of state k)."""
    out = np.empty(stop - start)
    cdef float64_t[::1] view = out
    stats.shared.get().fill_prefixes(start, stop, k, backwards, &view[0])
    return out


def set_slot(ChainState state, intp_t t, int32_t k):
    """Give a step another label, and change nothing else."""
    state.chain.get().states[t] = k


def passes_at(Franchise transitions, intp_t t, const float64_t[::1] weights,
              const float64_t[::1] values):
    """All passes over the transitions into step t, with its context.

    Without contexts t is -1, and pairs are left out.

    Returns
    -------
    rows, probs : ndarray of shape (n_slots, n_slots)
        p(k | j) by rows and pairs.
    pushed, pulled, best : ndarray of shape (n_slots,)
        ``sum_j weights[j] p(k | j)``, ``sum_k p(k | j) values[k]`` and
        ``max_j weights[j] p(k | j)``.
    argmax : ndarray of shape (n_slots,)
        The j that reaches the maximum.
    """
    cdef int32_t j, k, n = transitions.native.n_slots()
    cdef float64_t[:, ::1] rows = np.empty((n, n))
    cdef float64_t[:, ::1] out = np.empty((3, n))
    cdef int32_t[::1] argmax = np.empty(n, dtype=np.int32)
    for j in range(n):
        transitions.native.fill_row(t, j, &rows[j, 0])
    cdef ColumnPasses *passes = new ColumnPasses(transitions.native[0])
    passes.push(t, &weights[0], &out[0, 0])
    passes.pull(t, &values[0], &out[1, 0])
    passes.push_max(t, &weights[0], &out[2, 0], &argmax[0])
    del passes
    probs = np.array([[transitions.native.prob(t, j, k) for k in range(n)]
                      for j in range(n if t >= 0 else 0)])
    return (np.asarray(rows), probs, *np.asarray(out), np.asarray(argmax))


cdef double _constant(void *state) noexcept nogil:
    return (<double *> state)[0]


cdef float64_t joint_prob(Transitions *s, int32_t i, int32_t k, int32_t o,
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
                  bint exact=False, bint sliced=False):
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
    sliced : bool, default=False
        Labels are drawn given slices, or from Q*, where a successor without tables is
        as good as new.  Only `error` has a meaning, and it leaves such steps out.

    Returns
    -------
    error : float
        Largest difference between the logarithms of q(new) / q(old) and of the ratio of
        the products of predictive probabilities.
    ranks : ndarray of shape (n_steps,)
        Distribution function of the definition at the proposed label, with a uniform
        random part of the label's probability: independent uniforms.
    n_ghosts, n_accepted : int
    n_wrong : int
        Labels on the wrong side of the edge.
    """
    cdef Move move
    cdef Chain *chain = state.chain.get()
    cdef Emission *emission = chain.emission.get()
    cdef unique_ptr[Proposal] native
    cdef bitgen_t constant
    cdef double u, p_old
    cdef intp_t n_wrong = 0
    cdef int side
    cdef Transitions *transitions = state.transitions.native
    cdef bitgen_t *bits = chain.bits
    cdef vector[intp_t] order
    cdef vector[float64_t] weights
    cdef intp_t b, at, t, n_ghosts = 0, n_accepted = 0
    cdef int32_t k, i, o, old, new, ghost, path
    cdef float64_t total, below_new, difference, error = 0.0
    cdef Product q_old, q_new
    cdef bint accepted
    ranks = np.empty(state.n_steps)
    cdef float64_t[::1] view = ranks
    for t in range(chain.n_steps):
        order.push_back(t)
    chain.touched.clear()
    native.reset(proposal.build(deref(chain)))
    native.get().attach(deref(chain), deref(emission))
    for b in range(chain.n_steps):
        at = b + below(bits, chain.n_steps - b)
        t = order[at]
        order[at] = order[b]
        if chain.reserve(2):
            native.get().attach(deref(chain), deref(emission))
        q_old.reset()
        q_new.reset()
        move.open(deref(chain), deref(emission), t, t + 1)
        move.touch(deref(chain), &chain.states[t])
        i = chain.previous(t)
        o = chain.successor(t)
        ghost = o if o >= 0 and transitions.dish_tables[o] == 0 else -1
        n_ghosts += ghost >= 0
        # Slot NEW stands for every new state.
        weights.assign(chain.n_slots, 0.0)
        emission.fill_probs(t, weights.data())
        total = 0.0
        for k in range(chain.n_slots):
            if k == NEW or k == ghost or transitions.dish_tables[k] > 0:
                weights[k] *= joint_prob(transitions, i, k, o, exact)
                total += weights[k]
            else:
                weights[k] = 0.0
        old = chain.states[t]
        if weights[old] == 0.0:
            old = NEW
        native.get().prepare(deref(chain), deref(emission), t, t + 1)
        chain.touched.clear()
        move.touch(deref(chain), &chain.states[t])
        native.get().score(deref(chain), t, t + 1, &q_old)
        side = 0
        p_old = weights[old] / total
        if edge > 0.0 and 0.01 < p_old < 0.99:
            side = 1 if below(bits, 2) else -1
            u = p_old * (1.0 + side * edge)
            constant = bits[0]
            constant.state = &u
            constant.next_double = _constant
            chain.bits = &constant
        native.get().propose(deref(chain), t, t + 1, &path, &q_new)
        chain.bits = bits
        new = path if weights[path] > 0.0 else NEW
        n_wrong += side != 0 and (new == old) != (side < 0)
        if new == NEW and path != chain.free_slot(0):
            raise AssertionError("a label that is neither a candidate nor free")
        if not (sliced and ghost >= 0):
            difference = abs(q_new.log() - q_old.log() - log(weights[new] / weights[old]))
            # Written so that a NaN counts as an error.
            if not difference <= error:
                error = difference
        below_new = 0.0
        for k in range(new):
            below_new += weights[k]
        view[b] = (below_new + uniform(bits) * weights[new]) / total
        move.seat(deref(chain), deref(emission), &path)
        move.touch(deref(chain), &path)
        accepted = move.decide(deref(chain), deref(emission), &path, q_old, q_new)
        native.get().end_move(deref(chain), deref(emission), t, t + 1, accepted)
        n_accepted += accepted
    return error, ranks, n_ghosts, n_accepted, n_wrong


cdef class FaultyStats(EmissionStats):
    """One normal column whose hooks have a planted error.

    Parameters
    ----------
    values : ndarray of shape (n_steps, 1)
    bug : str, optional
        "fresh": rows are wrong for a state that nothing uses.
        "pair": pairs are the wrong way round.
        "logs": the row of logs is wrong for a state that nothing uses.
        "log pair": pairs of logs are the wrong way round.
        "missing": a missing value has probability one half.
        "removal": a removal's probability is that before it.
        "forget": a rollback restores nothing.
        "inverse": a rollback restores sums up to rounding only, as subtraction would.
        "garbage": records are checked when the statistics are cleared already.
        "values": drawn values are too near to their mean.
        "mean": predictives are twice the means.
    """

    cdef str bug

    def __init__(self, values, bug=None):
        cdef float64_t[3] prior = [0.0, 0.5, 1.5], units = [0.0, 1.0, 1.0]
        cdef int32_t[3] drawn = [0, 0, 0]
        cdef const float64_t[:, ::1] rows = np.ascontiguousarray(values)
        cdef const float64_t *begin = NULL
        cdef FamilySetting setting
        self.bug, self.data = bug or "", np.asarray(rows)
        if rows.shape[0]:
            begin = &rows[0, 0]
        setting = FamilySetting(
            1, 0, &prior[0], &units[0], &drawn[0], begin, rows.shape[0], 3.0)
        self.shared.reset(<Emission *> new FaultyEmission(
            new NormalInverseGammaFamily(setting), begin, rows.shape[0], self.bug.encode()))

    def check_arrays(self, arrays, labels):
        if self.bug != "garbage":
            EmissionStats.check_arrays(self, arrays, labels)

    def predictives(self, slots, inputs=None):
        means = EmissionStats.predictives(self, slots, inputs)
        return [2.0 * column for column in means] if self.bug == "mean" else means

    def draw_values(self, slots, n_known, RandomStream stream, inputs=None):
        values = EmissionStats.draw_values(self, slots, n_known, stream, inputs)
        if self.bug == "values":
            values[0] -= 0.3 * (values[0] - EmissionStats.predictives(self, slots, inputs)[0])
        return values


cdef class SharedStats(EmissionStats):
    """Other statistics of the same emission, for classes in Python."""

    def __init__(self, EmissionStats other):
        self.shared, self.data = other.shared, other.data
