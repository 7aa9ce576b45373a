"""A law of transitions that the package does not have, under its kernels: a coin."""

import numpy as np

from libcpp.memory cimport shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from cython.operator cimport dereference as deref

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._random cimport RandomStream, bitgen_t
from skihmm.core._rcd cimport SweepCounts
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef extern from *:
    """
    #include <string>
    #include <vector>

    #include "_blocked.hpp"
    #include "_split_merge.hpp"
    #include "_stepwise.hpp"

    namespace skihmm {
    // A step stays in its state k with probability W_k ~ Beta(kappa, omega), or else its label is
    // a draw from restaurant k, which may be k again; W_k is integrated out.  Restaurants hold
    // the draws only.  With q_k stays
    //
    //     p(k | j) = stay_j [j = k] + (1 - stay_j) (n_jk + a_k) / (n_j + alpha),
    //     stay_j = (q_j + kappa) / (q_j + kappa + n_j + omega).
    class CoinTransitions : public FranchiseTransitions<CoinTransitions> {
        using Draws = FranchiseTransitions<CoinTransitions>;

      public:
        static constexpr bool kHasSelfWeight = true, kLifts = false;
        using Draws::add_draw;
        double kappa = 1.0, omega = 1.0;

        double total(int32_t j, int32_t change = 0) const {
            return Draws::total(j, change) / (1.0 - stay(j, 0, change));
        }
        double self_weight(int32_t k) const { return stay(k, 0, 0) * total(k); }

        void resize(int32_t n_rows, int32_t n_dishes) {
            Draws::resize(n_rows, n_dishes);
            stays_.resize(n_rows, 0);
        }
        void clear() {
            Draws::clear();
            std::fill(stays_.begin(), stays_.end(), 0);
        }
        double add(int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
            const double p = prob(j, k);
            if (j == k && uniform(g) * p < stay(k, 0, 0)) change_stays(k, 1);
            else Draws::add(j, k, g, hint);
            return p;
        }
        double add(int32_t j, int32_t k, bitgen_t *g) {
            int32_t hint = -1;
            return add(j, k, g, &hint);
        }
        double remove(int32_t j, int32_t k, bitgen_t *g, int32_t *hint) {
            const bool stayed = j == k
                                && uniform(g) * (stays_[k] + count(k, k)) < stays_[k];
            if (stayed) change_stays(k, -1);
            else Draws::remove(j, k, g, hint);
            return prob(j, k);
        }
        void add_draw(int64_t, int32_t j, int32_t k, bool opens, int32_t o, bitgen_t *g,
                      int32_t *hint) {
            if (j == k && !opens) {
                const double stayed = stay_part(k, o, new_table_of(o)),
                             drawn = draw_part(k, o, count(k, k), new_table_of(o));
                if (uniform(g) * (stayed + drawn) < stayed) return change_stays(k, 1);
            }
            Draws::add(j, k, opens, g, hint);
        }
        void fill_step(const StepView &view, bool after, double *weights, double *stays,
                       double *in, double *out) const {
            Draws::fill_step(view, after, weights, stays, in, out);
            const int32_t i = view.i, o = view.o;
            if (!after || i == kStart) return;
            // A stay, a draw that joins a table and one that opens one leave the coin and the
            // restaurant of i as they are for each other.
            const double a = new_table_of(o);
            const double opened = o < 0 ? 0.0 : successor_table(view, o == i);
            stays[i] = total(i) * (stay_part(i, o, a) + draw_part(i, o, count(i, i), a));
            weights[i] = stays[i] + total(i) * draw_part(i, o, new_table(i), opened);
        }
        void commit() {
            Draws::commit();
            changes_.clear();
        }
        // The same labels may be other counts: a stay in the place of a draw.
        void commit_same() { commit(); }
        void rollback() {
            Draws::rollback();
            for (size_t i = 0; i < changes_.size(); ++i) {
                const int32_t change = changes_[i];
                stays_[change > 0 ? change : -change] -= change > 0 ? 1 : -1;
            }
            changes_.clear();
        }

      private:
        // With some stays and draws more.
        double stay(int32_t k, int32_t stays, int32_t draws) const {
            if (k == kStart) return 0.0;
            const double q = stays_[k] + stays + kappa;
            return q / (q + row_customers[k] + draws + omega);
        }
        double new_table_of(int32_t o) const { return o < 0 ? 0.0 : new_table(o); }
        // p(i -> i by a stay, o | i), and by a draw with weight n; a: new table of o then.
        double stay_part(int32_t i, int32_t o, double a) const {
            return stay(i, 0, 0) * next(i, o, 1, 0, a);
        }
        double draw_part(int32_t i, int32_t o, double n, double a) const {
            return (1.0 - stay(i, 0, 0)) * n / Draws::total(i) * next(i, o, 0, 1, a);
        }
        double next(int32_t i, int32_t o, int32_t stays, int32_t draws, double a) const {
            if (o < 0) return 1.0;
            const double w = stay(i, stays, draws), n = count(i, o) + (i == o ? draws : 0);
            return (i == o ? w : 0.0) + (1.0 - w) * (n + a) / Draws::total(i, draws);
        }
        void change_stays(int32_t k, int32_t by) {
            stays_[k] += by;
            changes_.push(by * k);
        }

        std::vector<int32_t> stays_;            // q_k
        Stack<int32_t> changes_;                // of this move: k, or -k for one less
    };

    using CoinChain = ChainState<CoinTransitions>;

    static Kernel<CoinChain> *make_coin_kernel(CoinChain &chain, const std::string &kind,
                                               intptr_t block_size, double rate) {
        auto *local = new BlockKernel<CoinChain>(
            kind == "blocked" ? make_proposal<BlockedMessages>(chain, 0.5)
            : kind == "beam" ? make_proposal<BlockedSlices>(chain, 0.3)
                             : make_proposal<Stepwise>(chain, kind == "exact", 128, 1024),
            block_size);
        if (rate == 0.0) return local;
        return make_kernel<InterleavedSweeps>(chain, local, rate);
    }
    }  // namespace skihmm
    """
    cdef cppclass CoinTransitions "skihmm::CoinTransitions":
        float64_t kappa, omega
        int64_t n_tables "base.n_tables"
        void set_concentrations(float64_t alpha, float64_t gamma)
        void resize(int32_t n_rows, int32_t n_dishes) except +
        float64_t prob(int32_t j, int32_t k)
        void fill_row(int32_t j, float64_t *out)
        void push(const float64_t *weights, float64_t *out)
        void pull(const float64_t *values, float64_t *out)
        void push_max(const float64_t *weights, float64_t *out, int32_t *argmax_out)
        const char *check() except +

    cdef cppclass Coins "skihmm::CoinChain":
        int64_t n_steps
        int32_t n_slots
        vector[int32_t] states
        Coins(const vector[int32_t] &starts, shared_ptr[CoinTransitions] transitions,
              shared_ptr[Emission] emission, bitgen_t *bits) except +
        void start_from(const vector[int32_t] &labels) except +

    cdef cppclass CoinKernel "skihmm::Kernel<skihmm::CoinChain>":
        SweepCounts sweep(Coins &chain) except +

    CoinKernel *make_coin_kernel "skihmm::make_coin_kernel" (
        Coins &chain, const string &kind, intp_t block_size, float64_t rate) except +


cdef class CoinChain:
    """A chain with a coin in front of every state's restaurant, and a kernel for it.

    Parameters
    ----------
    stats : EmissionStats
    starts : sequence of int
    parameters : tuple of float
        alpha, gamma, kappa and omega.
    stream : RandomStream
    kind : {"stepwise", "exact", "blocked", "beam"}
    block_size : int
    rate : float
        Split-merge trials per sweep.
    """

    cdef shared_ptr[CoinTransitions] transitions
    cdef unique_ptr[Coins] chain
    cdef unique_ptr[CoinKernel] kernel
    cdef EmissionStats stats
    cdef RandomStream stream

    def __init__(self, EmissionStats stats, starts, parameters, RandomStream stream, kind,
                 intp_t block_size=1, float64_t rate=0.0):
        alpha, gamma, kappa, omega = parameters
        self.stats = stats
        self.stream = stream
        self.transitions.reset(new CoinTransitions())
        self.transitions.get().set_concentrations(alpha, gamma)
        self.transitions.get().kappa = kappa
        self.transitions.get().omega = omega
        self.chain.reset(new Coins(starts, self.transitions, stats.shared, stream.bits))
        self.chain.get().start_from([0] * stats.shared.get().n_steps)
        self.kernel.reset(make_coin_kernel(deref(self.chain), kind.encode(), block_size, rate))

    @property
    def n_slots(self):
        return self.chain.get().n_slots

    def sweep(self, intp_t n):
        """Sweep n times; labels and number of tables after each, and the acceptance rate."""
        cdef intp_t i, t
        cdef int64_t n_proposed = 0, n_accepted = 0
        cdef SweepCounts counts
        out = np.empty((n, self.chain.get().n_steps + 1), dtype=np.int64)
        cdef int64_t[:, ::1] view = out
        for i in range(n):
            counts = self.kernel.get().sweep(deref(self.chain))
            n_proposed += counts.n_proposed
            n_accepted += counts.n_accepted
            for t in range(self.chain.get().n_steps):
                view[i, t] = self.chain.get().states[t]
            view[i, t + 1] = self.transitions.get().n_tables
        assert self.transitions.get().check() is NULL
        return out, <float64_t> n_accepted / n_proposed

    def passes(self, const float64_t[::1] weights, const float64_t[::1] values):
        """p(k | j) one by one; rows, pushed, pulled, best and argmax, as ``moves.steps``."""
        cdef CoinTransitions *s = self.transitions.get()
        cdef int32_t j, k, n = self.chain.get().n_slots
        cdef float64_t[:, ::1] rows = np.empty((n, n))
        cdef float64_t[:, ::1] out = np.empty((3, n))
        cdef int32_t[::1] argmax = np.empty(n, dtype=np.int32)
        for j in range(n):
            s.fill_row(j, &rows[j, 0])
        s.push(&weights[0], &out[0, 0])
        s.pull(&values[0], &out[1, 0])
        s.push_max(&weights[0], &out[2, 0], &argmax[0])
        probs = np.array([[s.prob(j, k) for k in range(n)] for j in range(n)])
        return probs, np.asarray(rows), *np.asarray(out), np.asarray(argmax)
