"""The restricted collapsed draw (Makino et al. 2011, arXiv 1106.0474)."""

# -- hooks: the virtual functions as functions of plain pointers.  An error is -1 with
# Python's exception set; the template turns it into a C++ exception, and Cython lets the
# Python one through.

cdef int _grow(void *state, intp_t n_free) except -1 nogil:
    return (<ChainState> state).reserve(n_free)


cdef int _add(void *emission, intp_t t, int32_t k, bitgen_t *g,
              Product *r) except -1 nogil:
    return (<EmissionStats> emission).add_value(t, k, g, r)


cdef int _remove(void *emission, intp_t t, int32_t k, bitgen_t *g,
                 Product *r) except -1 nogil:
    return (<EmissionStats> emission).remove_value(t, k, g, r)


cdef int _commit(void *emission) except -1 nogil:
    return (<EmissionStats> emission).commit()


cdef int _rollback(void *emission) except -1 nogil:
    return (<EmissionStats> emission).rollback()


cdef int _fill_probs(void *emission, intp_t t, float64_t *out) except -1 nogil:
    # The common factor cancels: weights of one step are compared with each other only.
    (<EmissionStats> emission).fill_probs(t, out)
    return 0


cdef int _fill_column(void *emission, intp_t t, SymbolColumn *out) noexcept nogil:
    return (<EmissionStats> emission).fill_column(t, out)


cdef const int32_t *_totals(void *emission, float64_t *offset) noexcept nogil:
    return (<EmissionStats> emission).totals(offset)


cdef int _is_moderate(void *emission, float64_t least, float64_t most) noexcept nogil:
    return (<EmissionStats> emission).is_moderate(least, most)


cdef int _fill_pair(void *emission, intp_t t, const int32_t *k,
                    float64_t *out) except -1 nogil:
    return (<EmissionStats> emission).fill_pair(t, k, out)


cdef int _attach(void *proposal, void *state) except -1 nogil:
    return (<BlockProposal> proposal).attach(<ChainState> state)


cdef int _prepare(void *proposal, void *state, intp_t start,
                  intp_t stop) except -1 nogil:
    return (<BlockProposal> proposal).prepare(<ChainState> state, start, stop)


cdef int _score(void *proposal, void *state, intp_t start, intp_t stop,
                Product *q) except -1 nogil:
    return (<BlockProposal> proposal).score(<ChainState> state, start, stop, q)


cdef int _propose(void *proposal, void *state, intp_t start, intp_t stop,
                  int32_t *path_out, Product *q) except -1 nogil:
    return (<BlockProposal> proposal).propose(
        <ChainState> state, start, stop, path_out, q)


cdef int _settle(void *proposal, void *state, intp_t start, intp_t stop,
                 int accepted) except -1 nogil:
    return (<BlockProposal> proposal).settle(<ChainState> state, start, stop, accepted)


cdef Chain chain_of(ChainState state) noexcept nogil:
    cdef Chain chain
    chain.n_steps = state.n_steps
    chain.states = state.states.data()
    chain.first = state.first.data()
    chain.last = state.last.data()
    chain.hints = state.hints.data()
    chain.transitions = &state.transitions.seating
    chain.bits = state.stream.bits
    chain.occupancy = &state.occupancy
    chain.free_slots = &state.free_slots
    chain.free_place = &state.free_place
    chain.touched = &state.touched
    chain.n_slots = &state.n_slots
    chain.owner = <void *> state
    chain.grow = _grow
    return chain


cdef HookedEmission emission_of(EmissionStats emission) noexcept nogil:
    cdef HookedEmission hooked
    hooked.self = <void *> emission
    hooked.add_hook = _add
    hooked.remove_hook = _remove
    hooked.commit_hook = _commit
    hooked.rollback_hook = _rollback
    hooked.probs_hook = _fill_probs
    hooked.column_hook = _fill_column
    hooked.totals_hook = _totals
    hooked.moderate_hook = _is_moderate
    hooked.pair_hook = _fill_pair
    hooked.columns = emission.has_columns
    return hooked


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

    cdef int settle(self, ChainState state, intp_t start, intp_t stop,
                    bint accepted) except -1 nogil:
        return 0

    cdef int64_t run(self, ChainState state, const intp_t *starts, const intp_t *stops,
                     int64_t n, int32_t *path) except -1 nogil:
        cdef Chain chain = chain_of(state)
        cdef HookedEmission emission = emission_of(state.emission)
        cdef HookedProposal hooked
        hooked.self = <void *> self
        hooked.state = <void *> state
        hooked.attach_hook = _attach
        hooked.prepare_hook = _prepare
        hooked.score_hook = _score
        hooked.propose_hook = _propose
        hooked.settle_hook = _settle
        return rcd_run(chain, emission, hooked, starts, stops, n, path)


cdef class RCDMove:
    """One Metropolis-Hastings move on the labels of a block of steps."""

    cdef int open(self, ChainState s, intp_t start, intp_t stop) except -1 nogil:
        cdef Chain chain = chain_of(s)
        chain.reserve(stop - start + 1)
        self.move.open(chain, emission_of(s.emission), start, stop)
        self.move.touch(chain, chain.states + start)
        return 0

    cdef int seat(self, ChainState s, const int32_t *path) except -1 nogil:
        cdef Chain chain = chain_of(s)
        self.move.seat(chain, emission_of(s.emission), path)
        self.move.touch(chain, path)
        return 0

    cdef bint decide(self, ChainState s, const int32_t *path, const Product *q_old,
                     const Product *q_new) except -1 nogil:
        cdef Chain chain = chain_of(s)
        # Whatever the decision, caches that were refreshed at s_0 are stale again.
        self.move.touch(chain, chain.states + self.move.start)
        return self.move.decide(chain, emission_of(s.emission), path, q_old[0], q_new[0])


cdef class RCDKernel:
    """Sweeps of RCD moves over blocks of consecutive steps in random order.

    Parameters
    ----------
    proposal : BlockProposal
    block_size : int, default=1
        Steps per block.  Per sequence the first block's length is uniform on
        ``1 .. block_size`` and the others have ``block_size`` steps (the last one what is
        left): the boundaries never depend on the labels.

    Raises
    ------
    ValueError
        If `block_size` is not positive, or larger than one for a proposal of single
        steps.
    """

    def __init__(self, BlockProposal proposal, intp_t block_size=1):
        if block_size < 1:
            raise ValueError(f"block_size={block_size}; expected an integer >= 1.")
        if block_size > 1 and proposal.is_single_step:
            raise ValueError(
                f"block_size={block_size} with {type(proposal).__name__}; expected 1, as "
                "this proposal changes one step at a time. Leave block_size out, or use a "
                "proposal for blocks.")
        self.proposal = proposal
        self.block_size = block_size

    cdef int cut_blocks(self, ChainState state) except -1 nogil:
        cut_blocks(chain_of(state), self.block_size, &self.starts, &self.stops)
        self.path.resize(self.block_size)
        return 0

    cdef int run_blocks(self, ChainState state, intp_t begin, intp_t end) except -1 nogil:
        state.n_proposed += end - begin
        state.n_accepted += self.proposal.run(
            state, self.starts.data() + begin, self.stops.data() + begin, end - begin,
            self.path.data())
        return 0

    cdef int run(self, ChainState state) except -1 nogil:
        self.cut_blocks(state)
        return self.run_blocks(state, 0, <intp_t> self.starts.size())

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
