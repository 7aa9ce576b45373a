"""The restricted collapsed draw (Makino et al. 2011, arXiv 1106.0474)."""

from libc.math cimport exp

from skihmm.core._franchise cimport Seating
from skihmm.core._random cimport below, bitgen_t, uniform


cdef class BlockProposal:
    """Base class of proposals; see ``_rcd.pxd`` for the contract of every hook."""

    cdef int attach(self, ChainState state) except -1 nogil:
        return 0

    cdef int prepare(self, ChainState state, intp_t start, intp_t stop) except -1 nogil:
        return 0

    cdef int score(self, ChainState state, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks score")

    cdef int propose(self, ChainState state, intp_t start, intp_t stop,
                     int32_t *path_out, Product *q) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} lacks propose")


cdef class RCDMove:
    """One Metropolis-Hastings move on the labels of a block of steps."""

    cdef int open(self, ChainState s, intp_t start, intp_t stop) except -1 nogil:
        # s_L -> s_0: the draws leave in the reverse of the order in which they came.
        cdef bitgen_t *bits = s.stream.bits
        cdef Seating *seating = &s.transitions.seating
        cdef intp_t t
        cdef int32_t k, follower
        cdef int64_t n_tables
        self.start = start
        self.stop = stop
        self.r_old.reset()
        s.reserve(stop - start + 1)
        follower = s.successor(stop - 1)
        if follower >= 0:
            n_tables = seating.n_tables
            self.r_old.multiply(seating.remove(
                s.states[stop - 1], follower, bits, &s.hints[stop]))
            if seating.n_tables != n_tables:
                s.touched.push(follower)
        for t in range(stop - 1, start - 1, -1):
            k = s.states[t]
            s.emission.remove_value(t, k, bits, &self.r_old)
            self.r_old.multiply(seating.remove(s.previous(t), k, bits, &s.hints[t]))
            s.touched.push(k)
        s.touched.push(s.previous(start))
        return 0

    cdef int seat(self, ChainState s, const int32_t *path) except -1 nogil:
        # s_0 -> s*_L.  Every factor is taken just before its own customer sits down, at
        # the seating with all earlier ones: not at s_0.
        cdef bitgen_t *bits = s.stream.bits
        cdef Seating *seating = &s.transitions.seating
        cdef intp_t t
        cdef int32_t k, j = s.previous(self.start), follower
        cdef int64_t n_tables
        self.r_new.reset()
        s.touched.push(j)
        for t in range(self.start, self.stop):
            k = path[t - self.start]
            self.r_new.multiply(seating.add(j, k, bits, &s.hints[t]))
            s.emission.add_value(t, k, bits, &self.r_new)
            s.touched.push(k)
            j = k
        follower = s.successor(self.stop - 1)
        if follower >= 0:
            n_tables = seating.n_tables
            self.r_new.multiply(seating.add(j, follower, bits, &s.hints[self.stop]))
            if seating.n_tables != n_tables:
                s.touched.push(follower)
        return 0

    cdef bint is_accepted(self, ChainState s, const Product *q_old,
                          const Product *q_new) noexcept nogil:
        # R >= 1 needs no random number; a NaN (which no correct kernel makes) rejects.
        cdef float64_t scale, new, old
        new = self.r_new.value * q_old.value
        old = self.r_old.value * q_new.value
        scale = (self.r_new.log_scale + q_old.log_scale
                 - self.r_old.log_scale - q_new.log_scale)
        if scale != 0.0:
            if scale > 600.0:
                scale = 600.0
            new *= exp(scale)
        if new >= old:
            return True
        return uniform(s.stream.bits) * old < new

    cdef int keep(self, ChainState s, const int32_t *path) except -1 nogil:
        cdef intp_t t
        cdef bint same = True
        for t in range(self.start, self.stop):
            if s.states[t] != path[t - self.start]:
                same = False
                break
        if same:
            s.transitions.seating.commit_same()
            s.emission.commit()
            return 0
        s.transitions.seating.commit()
        s.emission.commit()
        for t in range(self.start, self.stop):
            s.assign(t, path[t - self.start])
        return 0

    cdef int restore(self, ChainState s) except -1 nogil:
        # The old seating comes back table by table.  Adding the old customers again would
        # draw their tables anew, from the wrong law.
        cdef intp_t t
        cdef int32_t follower = s.successor(self.stop - 1)
        s.transitions.seating.rollback()
        s.emission.rollback()
        for t in range(self.start, self.stop):
            s.touched.push(s.states[t])
        if follower >= 0:
            s.touched.push(follower)
        return 0

    cdef bint decide(self, ChainState s, const int32_t *path, const Product *q_old,
                     const Product *q_new) except -1 nogil:
        cdef bint accepted = self.is_accepted(s, q_old, q_new)
        if accepted:
            self.keep(s, path)
        else:
            self.restore(s)
        return accepted


cdef enum:
    # How many blocks ahead memory is asked for.  The order of a sweep is random, so the
    # caches guess nothing; at K = 350 on the words of Alice this was worth X.
    FAR = 4
    NEAR = 2


cdef void prefetch(ChainState s, intp_t start, intp_t stop, bint far) noexcept nogil:
    # Only hints for the memory system: labels may change before the block's turn.
    cdef Seating *seating = &s.transitions.seating
    cdef intp_t t
    if far:
        for t in range(start, stop):
            seating.prefetch_cell(s.hints[t])
            s.emission.prefetch(t, True)
        if not s.last[stop - 1]:
            seating.prefetch_cell(s.hints[stop])
        return
    for t in range(start, stop):
        seating.prefetch_lists(s.hints[t])
        s.emission.prefetch(t, False)
    if not s.last[stop - 1]:
        seating.prefetch_lists(s.hints[stop])
        seating.prefetch_dense(s.previous(start), s.successor(stop - 1))


cdef class RCDKernel:
    """Sweeps of RCD moves over blocks of consecutive steps in random order.

    Parameters
    ----------
    proposal : BlockProposal
    block_size : int, default=1
        Steps per block.  Per sequence the first block's length is uniform on
        ``1 .. block_size`` and the others have ``block_size`` steps (the last one what is
        left): the boundaries never depend on the labels.
    """

    def __init__(self, BlockProposal proposal, intp_t block_size=1):
        self.proposal = proposal
        self.block_size = block_size
        self.move = RCDMove()

    cdef int cut_blocks(self, ChainState state) except -1 nogil:
        cdef bitgen_t *bits = state.stream.bits
        cdef intp_t t = 0, i, j, length, n
        cdef intp_t *starts
        cdef intp_t *stops
        self.starts.clear()
        self.stops.clear()
        while t < state.n_steps:
            if self.block_size > 1 and state.first[t]:
                length = 1 + below(bits, self.block_size)
            else:
                length = self.block_size
            self.starts.push_back(t)
            while length > 1 and not state.last[t]:
                t += 1
                length -= 1
            t += 1
            self.stops.push_back(t)
        n = <intp_t> self.starts.size()
        starts = self.starts.data()
        stops = self.stops.data()
        for i in range(n - 1, 0, -1):
            j = below(bits, i + 1)
            starts[i], starts[j] = starts[j], starts[i]
            stops[i], stops[j] = stops[j], stops[i]
        return 0

    cdef int run(self, ChainState state) except -1 nogil:
        cdef intp_t b, n, start, stop
        cdef Product q_old, q_new
        self.cut_blocks(state)
        self.path.resize(self.block_size)
        self.proposal.attach(state)
        state.touched.clear()
        n = <intp_t> self.starts.size()
        for b in range(n):
            if b + FAR < n:
                prefetch(state, self.starts[b + FAR], self.stops[b + FAR], True)
            if b + NEAR < n:
                prefetch(state, self.starts[b + NEAR], self.stops[b + NEAR], False)
            start = self.starts[b]
            stop = self.stops[b]
            q_old.reset()
            q_new.reset()
            self.move.open(state, start, stop)
            self.proposal.prepare(state, start, stop)
            state.touched.clear()
            self.proposal.score(state, start, stop, &q_old)
            self.proposal.propose(state, start, stop, self.path.data(), &q_new)
            self.move.seat(state, self.path.data())
            state.n_accepted += self.move.decide(
                state, self.path.data(), &q_old, &q_new)
        state.n_proposed += n
        return 0

    def sweep(self, ChainState state):
        """One sweep over all blocks; the GIL is released for the whole of it.

        Returns
        -------
        n_proposed, n_accepted : int
        """
        state.n_proposed = 0
        state.n_accepted = 0
        with nogil:
            self.run(state)
        return state.n_proposed, state.n_accepted
