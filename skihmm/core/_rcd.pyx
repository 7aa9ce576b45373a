"""The restricted collapsed draw (Makino et al. 2011, arXiv 1106.0474)."""

import numpy as np

from libc.math cimport INFINITY, log

from skihmm.core._franchise cimport FIRST

from skihmm.core import _state
from skihmm.core._sweep_info import SweepInfo

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

    cdef int undo(self, ChainState s) except -1 nogil:
        cdef Chain chain = chain_of(s)
        self.move.touch(chain, chain.states + self.move.start)
        self.move.restore(chain, emission_of(s.emission))
        return 0


cdef enum Stage:
    MADE, ENTERED, REMOVED, ADDED, OVER


_STAGES = ("not entered by `with`", "entered", "after remove()", "after add()", "over")


cdef class BlockMove:
    """A Metropolis-Hastings move on a block of steps, step by step from Python.

    Made by :meth:`ChainState.move` and used in a ``with`` block: :meth:`remove` takes the
    block's draws and observations out, :meth:`add` seats other labels, :meth:`accept`
    decides.  The ratio of the restricted collapsed draw is taken care of; the caller only
    says how probable the two paths were as proposals.  If the block is left without a
    decision, by an exception for example, everything is put back as it was, table by
    table.

    Labels are numbers that stay with their states while a sweep runs.  What is proposed
    may depend on everything that is seen between `remove` and `add`, which are the labels
    of other steps, the observations and the seating without the block, but not on the
    block's old labels, unless the probability of the way back takes care of that.

    Parameters
    ----------
    state : ChainState
    start, stop : int
        The block, half open.
    """

    cdef ChainState state
    cdef readonly intp_t start, stop
    cdef Stage stage
    cdef RCDMove move
    cdef vector[int32_t] path
    cdef vector[float64_t] probs
    cdef vector[char] is_candidate

    def __init__(self, ChainState state, start, stop):
        cdef intp_t t, first = start, end = stop
        if not 0 <= first < end <= state.n_steps:
            raise ValueError(
                f"a move on steps {first} to {end} (excluded) of {state.n_steps}; expected "
                f"0 <= start < stop <= {state.n_steps}.")
        for t in range(first + 1, end):
            if state.first[t]:
                raise ValueError(
                    f"a move on steps {first} to {end} (excluded), but a sequence begins "
                    f"at step {t}; expected steps of one sequence.")
        self.state = state
        self.start = first
        self.stop = end
        self.move = RCDMove()

    cdef int require(self, Stage stage, what) except -1:
        if self.stage != stage:
            raise RuntimeError(
                f"{what} of a move that is {_STAGES[<int> self.stage]}; expected one that "
                f"is {_STAGES[<int> stage]}. The order is `with state.move(...)`, remove, "
                "add, accept, each of them once.")
        return 0

    def __enter__(self):
        self.require(MADE, "the start")
        self.state.require_settled()
        self.state.is_moving = True
        self.stage = ENTERED
        return self

    def __exit__(self, *error):
        try:
            if self.stage in (REMOVED, ADDED):
                self.move.undo(self.state)
        finally:
            self.close()

    cdef void close(self) noexcept:
        # (After its end another move may be open.)
        if self.stage != OVER:
            self.stage = OVER
            self.state.is_moving = False

    @property
    def old(self):
        """Labels that the steps of the block had, shape (stop - start,)."""
        self.require_open()
        out = np.empty(self.stop - self.start, dtype=np.int32)
        cdef int32_t[::1] view = out
        cdef intp_t i
        for i in range(self.stop - self.start):
            view[i] = self.state.states[self.start + i]
        return out

    cdef int require_open(self) except -1:
        if self.stage not in (ENTERED, REMOVED, ADDED):
            raise RuntimeError(
                f"old of a move that is {_STAGES[<int> self.stage]}; expected one that is "
                "open: inside of `with state.move(...)`, before accept().")
        return 0

    def remove(self):
        """Take the draws and the observations of the block out.

        Raises
        ------
        RuntimeError
            If it is not the first thing that is done.
        """
        self.require(ENTERED, "remove()")
        # What moves before this one have touched is nobody's business any more.
        self.state.touched.clear()
        self.stage = REMOVED
        self.move.open(self.state, self.start, self.stop)

    def log_weights(self, t, path=()):
        """How well every label fits step t of the block, others than the block's fixed.

        Of label k it is ``log p(k | label of t - 1) + log p(y[t] | k)``, and of the last
        step of the block ``+ log p(label of t + 1 | k)``, all at the seating without the
        block: the paper's step-wise proposal (arXiv 1106.0474, Section 4) if the block is
        one step.  As all factors are taken at one seating it is not the conditional law
        itself, so a proposal that is drawn from it has to go through :meth:`accept`.

        Parameters
        ----------
        t : int
            A step of the block.
        path : array-like of int, shape (t - start,), default=()
            Labels of the block's steps before t: a proposal so far, or the old ones.

        Returns
        -------
        log_w : ndarray of shape (n_labels,)
            Labels are places in it; -inf for what is no candidate.  Candidates are the
            states that are used without the block, the label of the step after the block
            even if nothing else uses it, labels that only `path` uses, and one state
            that nobody uses.  (That one has the old label of the step if the removal has
            left it to nobody, so the old label is always a candidate.)

        Raises
        ------
        ValueError
            If the block has no step t, or `path` are not labels for the steps before it.
        RuntimeError
            Unless called between `remove` and `add`.
        """
        cdef ChainState s = self.state
        cdef Seating *seating = &s.transitions.seating
        cdef intp_t step = t, i
        cdef int32_t k, previous, follower = -1, fresh
        cdef float64_t log_scale
        self.require(REMOVED, "log_weights()")
        if not self.start <= step < self.stop:
            raise ValueError(
                f"log_weights of step {step}; expected a step of the block, {self.start} "
                f"to {self.stop - 1}.")
        self.take_path(path, step - self.start)
        previous = s.previous(step) if step == self.start else self.path.back()
        self.is_candidate.assign(s.n_slots, False)
        for k in range(FIRST, s.n_slots):
            self.is_candidate[k] = seating.dish_tables[k] > 0
        for i in range(<intp_t> self.path.size()):
            self.is_candidate[self.path[i]] = True
        if not s.last[self.stop - 1]:
            # Its only draw may have been the one that was removed with the block, but its
            # own restaurant and observations are there.
            self.is_candidate[s.states[self.stop]] = True
            if step == self.stop - 1:
                follower = s.states[self.stop]
        fresh = s.states[step]
        i = 0
        while self.is_candidate[fresh]:
            fresh = s.free_slot(i)
            i += 1
        self.is_candidate[fresh] = True

        self.probs.resize(s.n_slots)
        log_scale = s.emission.fill_probs(step, self.probs.data())
        out = np.full(s.n_slots, -np.inf)
        cdef float64_t[::1] view = out
        for k in range(FIRST, s.n_slots):
            if self.is_candidate[k]:
                view[k] = (log(seating.prob(previous, k)) + log(self.probs[k])
                           + log_scale)
                if follower >= 0:
                    view[k] += log(seating.prob(k, follower))
        return out

    cdef int take_path(self, labels, intp_t n) except -1:
        cdef intp_t i
        given = np.asarray(labels)
        if given.shape != (n,) or (n and given.dtype.kind not in "iu"):
            raise ValueError(
                f"path has the shape {given.shape} and the type {given.dtype}; expected "
                f"{n} integers, one label for every step.")
        for i in range(n):
            if not FIRST <= given[i] < self.state.n_slots:
                raise ValueError(
                    f"path[{i}] is {given[i]}; expected a label, {FIRST} to "
                    f"{self.state.n_slots - 1}.")
        self.path.resize(n)
        for i in range(n):
            self.path[i] = given[i]
        return 0

    def add(self, path):
        """Seat the block's observations and draws again, with labels that are proposed.

        Parameters
        ----------
        path : array-like of int, shape (stop - start,)
            Labels as :meth:`log_weights` has them.

        Raises
        ------
        ValueError
            If `path` are not labels for the steps of the block.
        RuntimeError
            If it does not follow `remove`.
        """
        self.require(REMOVED, "add()")
        self.take_path(path, self.stop - self.start)
        self.stage = ADDED
        self.move.seat(self.state, self.path.data())

    def accept(self, log_q_ratio):
        """Keep the new labels, or return to the old ones, by the Metropolis-Hastings ratio.

        Parameters
        ----------
        log_q_ratio : float
            Logarithm of the probability of proposing the old path over that of proposing
            the new one, both by the same proposal at the seating without the block.

        Returns
        -------
        accepted : bool

        Raises
        ------
        ValueError
            If `log_q_ratio` is NaN or +inf: what has been proposed had some probability.
        RuntimeError
            If it does not follow `add`.
        """
        cdef Product q_old, q_new
        cdef float64_t log_ratio = log_q_ratio
        self.require(ADDED, "accept()")
        if not log_ratio < INFINITY:
            raise ValueError(
                f"log_q_ratio={log_q_ratio}; expected a number below infinity, log q(old "
                "path) - log q(new path). A path that has been proposed has q > 0.")
        q_old.multiply_log(log_ratio)
        accepted = bool(self.move.decide(self.state, self.path.data(), &q_old, &q_new))
        self.close()
        return accepted


_state.move_type = BlockMove


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
        info : SweepInfo
        """
        state.require_settled()
        state.n_proposed = 0
        state.n_accepted = 0
        with nogil:
            self.run(state)
        return SweepInfo(state.n_proposed, state.n_accepted)
