"""Access of the checks to compiled hooks."""

import numpy as np

from cython.operator cimport dereference as deref
from libc.math cimport log
from libc.stdint cimport uint32_t, uint64_t
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from skihmm.core._emission cimport (
    Emission,
    EmissionParameters,
    EmissionStats,
    Workers,
)
from skihmm.core._product cimport Product
from skihmm.core._random cimport RandomStream, bitgen_t
from skihmm.core._rcd cimport BlockProposal, Move, Proposal
from skihmm.core._state cimport Chain, ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef class EmissionProbe:
    """Statistics of an emission, hook by hook.

    Parameters
    ----------
    stats : EmissionStats
    stream : RandomStream
    n_slots : int, optional
        Make room for so many; without it the statistics stay as they are.
    """

    cdef EmissionStats stats
    cdef RandomStream stream

    def __init__(self, EmissionStats stats, RandomStream stream, n_slots: int | None = None):
        self.stats = stats
        self.stream = stream
        if n_slots is not None:
            stats.shared.get().resize(n_slots)

    def add(self, intp_t t, int32_t k) -> float:
        """Add y[t] to a slot; return the log of its predictive probability before."""
        cdef Product r
        self.stats.shared.get().add(t, k, self.stream.bits, &r)
        return r.log()

    def remove(self, intp_t t, int32_t k) -> float:
        """Remove y[t] from a slot; return the log of its predictive probability after."""
        cdef Product r
        self.stats.shared.get().remove(t, k, self.stream.bits, &r)
        return r.log()

    def commit(self) -> None:
        """Keep the changes since the last commit or rollback."""
        self.stats.shared.get().commit()

    def rollback(self) -> None:
        """Undo the changes since the last commit or rollback."""
        self.stats.shared.get().rollback()

    def log_joint(self) -> float:
        """log p(y, seating | states)."""
        return self.stats.shared.get().log_joint()

    def log_row(self, intp_t t: SupportsIndex) -> Floats:
        """log p(y[t] | k) of every slot."""
        out = np.empty(self.stats.shared.get().n_slots)
        cdef float64_t[::1] view = out
        cdef float64_t log_scale = self.stats.shared.get().fill_probs(t, &view[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(out) + log_scale

    def logs(self, intp_t t: SupportsIndex) -> Floats:
        """log p(y[t] | k) of every slot, without a least value."""
        out = np.empty(self.stats.shared.get().n_slots)
        cdef float64_t[::1] view = out
        self.stats.shared.get().fill_logs(t, &view[0])
        return out

    def look_ahead(self, intp_t start, intp_t stop) -> None:
        """Announce that rows of the steps [start, stop) will be asked for."""
        self.stats.shared.get().look_ahead(start, stop)

    def log_pair(self, intp_t t, int32_t first, int32_t second) -> float:
        """log p(y[t] | first) - log p(y[t] | second)."""
        cdef int32_t[2] places = [first, second]
        cdef float64_t[2] out
        self.stats.shared.get().fill_pair(t, places, out)
        return log(out[0]) - log(out[1])

    def logs_of_pair(self, intp_t t, int32_t first, int32_t second) -> float:
        """Difference of log probabilities of the two, without a least value."""
        cdef int32_t[2] places = [first, second]
        cdef float64_t[2] out
        self.stats.shared.get().fill_log_pair(t, places, out)
        return out[0] - out[1]

    def draw_log_likelihoods(self, steps: ArrayLike, slots: ArrayLike, intp_t n) -> Floats:
        """log p(y[t] | k) given parameters, for n draws of those of all slots.

        Returns
        -------
        log_p : ndarray of shape (n, len(steps))
            For every step under the slot with the same index.
        """
        cdef const intp_t[::1] t = np.ascontiguousarray(steps, dtype=np.intp)
        cdef const int32_t[::1] k = np.ascontiguousarray(slots, dtype=np.int32)
        out = np.empty((n, t.shape[0]))
        cdef float64_t[:, ::1] view = out
        cdef intp_t i, j
        cdef EmissionParameters *parameters = self.stats.shared.get().parameters()
        cdef vector[int32_t] drawn = np.unique(k)
        for i in range(n):
            parameters.draw_parameters(drawn, Workers(1), self.stream.bits)
            for j in range(t.shape[0]):
                parameters.fill_log_likelihoods(t[j], &k[j], 1, &view[i, j])
        return out


# The generator splitmix64: a seed is its whole state.
cdef uint64_t _next_uint64(void *state) noexcept nogil:
    cdef uint64_t z
    (<uint64_t *> state)[0] += <uint64_t> 0x9E3779B97F4A7C15u
    z = (<uint64_t *> state)[0]
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9u
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EBu
    return z ^ (z >> 31)


cdef uint32_t _next_uint32(void *state) noexcept nogil:
    return <uint32_t> (_next_uint64(state) >> 32)


cdef double _next_double(void *state) noexcept nogil:
    return (_next_uint64(state) >> 11) * (1.0 / 9007199254740992.0)


cdef class ProposalProbe:
    """A proposal at a reproducible seating s_0, with chosen random numbers.

    A seed determines the tables that the customers of a block leave, so that a proposal
    with caches can be evaluated twice at the same s_0: every evaluation is a separate move
    that is undone.

    Parameters
    ----------
    state : ChainState
    start, stop : int
        The block.

    Attributes
    ----------
    path : tuple of int
        Slots of the block's steps.
    after : int
        Slot of the step after the block; -1 if a sequence ends with it.
    """

    cdef ChainState state
    cdef intp_t start, stop
    cdef Move move
    cdef bitgen_t bits
    cdef bitgen_t *own
    cdef uint64_t seed

    def __init__(self, ChainState state, intp_t start, intp_t stop):
        self.state = state
        self.start = start
        self.stop = stop
        self.own = state.stream.bits
        self.bits.state = &self.seed
        self.bits.next_uint64 = _next_uint64
        self.bits.next_uint32 = _next_uint32
        self.bits.next_double = _next_double
        self.bits.next_raw = _next_uint64

    cdef int _open(self, uint64_t seed) except -1:
        self.seed = seed
        self.state.chain.get().bits = &self.bits
        self.move.open(deref(self.state.chain), deref(self.state.emission.shared),
                       self.start, self.stop)
        self.move.touch(deref(self.state.chain),
                        &self.state.chain.get().states[self.start])
        return 0

    cdef int _close(self) except -1:
        self.move.restore(deref(self.state.chain), deref(self.state.emission.shared))
        self.state.chain.get().bits = self.own
        return 0

    @property
    def path(self) -> tuple[int, ...]:
        cdef intp_t t
        return tuple([self.state.chain.get().states[t]
                      for t in range(self.start, self.stop)])

    @property
    def after(self) -> int:
        return self.state.chain.get().successor(self.stop - 1)

    def arrays(self, uint64_t seed) -> tuple[dict[str, Any], Labels]:
        """``ChainState.to_arrays`` at the s_0 of a seed, and the tables of every slot."""
        self.state.chain.get().reserve(self.stop - self.start + 1)
        self._open(seed)
        arrays = self.state.to_arrays()
        n_tables = np.array(self.state.transitions.native.dish_tables)
        self._close()
        return arrays, n_tables

    def ask(self, BlockProposal proposal, uint64_t seed, uint64_t prepare_seed,
            uint64_t propose_seed, intp_t n=1,
            old: Sequence[int] | None = None) -> tuple[Floats, Labels, Floats, bool]:
        """Make moves at one s_0 that differ by their ``propose`` only, and reject them.

        Parameters
        ----------
        seed : int
            Seed of s_0.
        prepare_seed, propose_seed : int
            Seed of the random numbers of `prepare` and `score`, the same ones in every
            move, and of those of `propose`.
        n : int, default=1
            Number of moves.
        old : sequence of int, optional
            Slots of the old path; s_0 does not depend on them.

        Returns
        -------
        log_q_old : ndarray of shape (n,)
        paths : ndarray of shape (n, stop - start)
            Slots.
        log_q_new : ndarray of shape (n,)
        is_random : bool
            Whether `prepare` or `score` used random numbers.
        """
        cdef Product q_old, q_new
        cdef intp_t i, j, length = self.stop - self.start
        cdef vector[int32_t] path
        log_q_old, log_q_new = np.empty(n), np.empty(n)
        paths = np.empty((n, length), dtype=np.int32)
        cdef float64_t[::1] old_view = log_q_old, new_view = log_q_new
        cdef int32_t[:, ::1] path_view = paths
        cdef bint is_random = False
        cdef Chain *chain = self.state.chain.get()
        cdef Emission *emission = self.state.emission.shared.get()
        cdef unique_ptr[Proposal] native
        native.reset(proposal.build(deref(chain)))
        chain.reserve(length + 1)
        path.assign(chain.states.begin() + self.start, chain.states.begin() + self.stop)
        for i in range(n):
            q_old.reset()
            q_new.reset()
            chain.touched.clear()
            native.get().attach(deref(chain), deref(emission))
            self._open(seed)
            try:
                for j in range(length):
                    chain.states[self.start + j] = path[j] if old is None else old[j]
                self.seed = prepare_seed
                native.get().prepare(deref(chain), deref(emission), self.start, self.stop)
                native.get().score(deref(chain), self.start, self.stop, &q_old)
                is_random |= self.seed != prepare_seed
                self.seed = propose_seed + <uint64_t> i * 0xD1B54A32D192ED03u
                native.get().propose(deref(chain), self.start, self.stop,
                                     &path_view[i, 0], &q_new)
            finally:
                for j in range(length):
                    chain.states[self.start + j] = path[j]
                self._close()
            native.get().end_move(deref(chain), deref(emission), self.start, self.stop, False)
            old_view[i] = q_old.log()
            new_view[i] = q_new.log()
        return log_q_old, paths, log_q_new, bool(is_random)


cdef int64_t _cell(ChainState state, vector[int32_t] *name):
    # Labels by first appearance, three bits each, the first step the highest; then m and e,
    # the tables of the transitions and emissions, six bits each.  Every step that is entered
    # by a stay adds 8 to m, and so does every table of depth 2 and more in a tree of restaurants;
    # 6 to e does every such table of symbols.
    cdef int64_t code = 0, e = 0, extra = state.transitions.native.count_deep_tables()
    cdef intp_t t
    cdef int32_t n_names = 0, k
    cdef Chain *chain = state.chain.get()
    name.assign(chain.n_slots, -1)
    for t in range(<intp_t> chain.n_steps):
        k = chain.states[t]
        if name[0][k] < 0:
            name[0][k] = n_names
            n_names += 1
        code = 8 * code + name[0][k]
    for k in range(chain.n_slots):
        extra += state.transitions.native.coins().stays()[k]
    code = 64 * code + 8 * extra + state.transitions.native.n_tables
    cdef list counts = state.emission.shared.get().table_counts()
    if counts:
        e = (counts[0] + 6 * sum(counts[1:])) % 64
    return 64 * code + e


def record_cells(kernel: object, ChainState state, intp_t n_sweeps,
                 intp_t canonicalise_every=0) -> tuple[Integers, int, int]:
    """Sweep a chain of at most 8 steps and record its cell after every sweep.

    Returns
    -------
    cells : ndarray of shape (n_sweeps,), int64
        Labels and numbers of tables in one integer; see ``Model.cell``.
    n_proposed, n_accepted : int
        Numbers of local moves and split-merge trials together.
    """
    out = np.empty(n_sweeps, dtype=np.int64)
    cdef int64_t[::1] view = out
    cdef intp_t i
    cdef int64_t n_proposed = 0, n_accepted = 0
    cdef vector[int32_t] name
    sweep = kernel.sweep
    for i in range(n_sweeps):
        if canonicalise_every and i % canonicalise_every == 0:
            state.canonicalise()
        info = sweep(state)
        trials = info[2].values() if len(info) > 2 else ()
        for tried, accepted in (info[:2], *trials):
            n_proposed += tried
            n_accepted += accepted
        view[i] = _cell(state, &name)
    return out, n_proposed, n_accepted
