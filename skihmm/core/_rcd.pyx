# cython: c_string_type=str, c_string_encoding=ascii
"""The restricted collapsed draw (Makino et al. 2011, arXiv 1106.0474)."""

from cython.operator cimport dereference as deref
from libc.math cimport INFINITY, log
from libcpp.vector cimport vector

import numpy as np

from skihmm.core._franchise cimport Transitions
from skihmm.core._slots cimport FIRST
from skihmm.core._types cimport float64_t

from skihmm.core import _state
from skihmm.core._sweep_info import SweepInfo


cdef class BlockProposal:
    """Base class of proposals: a recipe of a C++ ``Proposal`` (``_rcd.hpp``)."""

    cdef Proposal *build(self, Chain &chain) except NULL:
        raise NotImplementedError(f"{type(self).__name__} lacks build")


cdef enum Stage:
    MADE, ENTERED, REMOVED, ADDED, OVER


_STAGES = ("not entered by `with`", "entered", "after remove()", "after add()", "over")


cdef class BlockMove:
    """A Metropolis-Hastings move on a block of steps, step by step from Python.

    Made by :meth:`ChainState.move` and used in a ``with`` block: :meth:`remove` removes
    the block's draws and observations, :meth:`add` seats the proposed labels,
    :meth:`accept` decides.  The move computes the ratio of the restricted collapsed draw;
    the caller passes only the proposal probabilities of the two paths.  If the block ends
    without a decision, for example by an exception, the old seating is restored table by
    table.

    Labels of states do not change during a sweep.  A proposal may depend on the labels of
    other steps, the observations and the seating between `remove` and `add`, but not on
    the block's old labels, unless the probability of the reverse proposal accounts for it.

    Parameters
    ----------
    state : ChainState
    start, stop : int
        The block, half open.
    """

    cdef ChainState state
    cdef readonly intp_t start, stop
    cdef Stage stage
    cdef Move move
    cdef vector[int32_t] path
    cdef vector[float64_t] probs
    cdef vector[char] is_candidate

    def __init__(self, ChainState state, start: int, stop: int):
        cdef intp_t t, first = start, end = stop
        cdef Chain *chain = state.chain.get()
        if not 0 <= first < end <= chain.n_steps:
            raise ValueError(
                f"a move on steps {first} to {end} (excluded) of {state.n_steps}; expected "
                f"0 <= start < stop <= {state.n_steps}.")
        for t in range(first + 1, end):
            if chain.first[t]:
                raise ValueError(
                    f"a move on steps {first} to {end} (excluded), but a sequence begins "
                    f"at step {t}; expected steps of one sequence.")
        self.state = state
        self.start = first
        self.stop = end

    cdef int require(self, Stage stage, what) except -1:
        if self.stage != stage:
            raise RuntimeError(
                f"{what} of a move that is {_STAGES[<int> self.stage]}; expected one that "
                f"is {_STAGES[<int> stage]}. The order is `with state.move(...)`, remove, "
                "add, accept, each of them once.")
        return 0

    def __enter__(self) -> BlockMove:
        self.require(MADE, "the start")
        self.state.require_no_move()
        self.state.is_moving = True
        self.stage = ENTERED
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if self.stage in (REMOVED, ADDED):
                self.move.restore(deref(self.state.chain), deref(self.state.emission.shared))
        finally:
            self.close()

    cdef void close(self) noexcept:
        # After its end another move may be open.
        if self.stage != OVER:
            self.stage = OVER
            self.state.is_moving = False

    @property
    def old(self) -> Labels:
        """Old labels of the steps of the block, shape (stop - start,)."""
        self.require_open()
        cdef Chain *chain = self.state.chain.get()
        return np.array([chain.states[t] for t in range(self.start, self.stop)],
                        dtype=np.int32)

    cdef int require_open(self) except -1:
        if self.stage not in (ENTERED, REMOVED, ADDED):
            raise RuntimeError(
                f"old of a move that is {_STAGES[<int> self.stage]}; expected one that is "
                "open: inside of `with state.move(...)`, before accept().")
        return 0

    def remove(self) -> None:
        """Remove the draws and the observations of the block.

        Raises
        ------
        RuntimeError
            If it is not the first call.
        """
        self.require(ENTERED, "remove()")
        self.stage = REMOVED
        self.state.chain.get().reserve(self.stop - self.start + 1)
        self.move.open(deref(self.state.chain), deref(self.state.emission.shared),
                       self.start, self.stop)

    def log_weights(self, t: int, path: ArrayLike = ()) -> Floats:
        """Log weights of all labels for step t of the block, given the other steps.

        Label k has ``log p(k | label of t - 1) + log p(y[t] | k)``, and for the
        last step of the block ``+ log p(label of t + 1 | k)``, all at the seating without
        the block: the paper's step-wise proposal (arXiv 1106.0474, Section 4) for a block
        of one step.  As all factors are at one seating, this is not the exact conditional
        distribution, and a proposal from it needs :meth:`accept`.

        Parameters
        ----------
        t : int
            A step of the block.
        path : array-like of int, shape (t - start,), default=()
            Labels of the block's steps before t: of the proposal so far, or the old ones.

        Returns
        -------
        log_w : ndarray of shape (n_labels,)
            Indexed by label; -inf for labels that are no candidates.  Candidates are the
            occupied states without the block, the label of the step after the block even
            if it is not occupied, labels that occur only in `path`, and a new state.  The
            new state has the old label of the step if the removal has emptied it, so the
            old label is always a candidate.

        Raises
        ------
        ValueError
            If the block has no step t, or `path` are not labels for the steps before it.
        RuntimeError
            Unless called between `remove` and `add`.
        """
        cdef Chain *s = self.state.chain.get()
        cdef Transitions *transitions = self.state.transitions.native
        cdef intp_t step = t, i
        cdef int32_t j, k, follower = -1, fresh
        cdef float64_t log_scale
        self.require(REMOVED, "log_weights()")
        if not self.start <= step < self.stop:
            raise ValueError(
                f"log_weights of step {step}; expected a step of the block, {self.start} "
                f"to {self.stop - 1}.")
        self.take_path(path, step - self.start)
        j = s.previous(step) if step == self.start else self.path.back()
        self.is_candidate.assign(s.n_slots, False)
        for k in range(FIRST, s.n_slots):
            self.is_candidate[k] = transitions.dish_tables[k] > 0
        for i in range(<intp_t> self.path.size()):
            self.is_candidate[self.path[i]] = True
        if not s.is_last(self.stop - 1):
            # Its only draw may be in the removed block, but its own restaurant and
            # observations are not.
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
        log_scale = s.emission.get().fill_probs(step, self.probs.data())
        out = np.full(s.n_slots, -np.inf)
        cdef float64_t[::1] view = out
        for k in range(FIRST, s.n_slots):
            if self.is_candidate[k]:
                view[k] = (log(transitions.prob(step, j, k)) + log(self.probs[k])
                           + log_scale)
                if follower >= 0:
                    view[k] += log(transitions.prob(self.stop, k, follower))
        return out

    cdef int take_path(self, labels, intp_t n) except -1:
        cdef intp_t i
        given = np.asarray(labels)
        if given.shape != (n,) or (n and given.dtype.kind not in "iu"):
            raise ValueError(
                f"path has the shape {given.shape} and the type {given.dtype}; expected "
                f"{n} integers, one label for every step.")
        for i in range(n):
            if not FIRST <= given[i] < self.state.chain.get().n_slots:
                raise ValueError(
                    f"path[{i}] is {given[i]}; expected a label, {FIRST} to "
                    f"{self.state.chain.get().n_slots - 1}.")
        self.path.resize(n)
        for i in range(n):
            self.path[i] = given[i]
        return 0

    def add(self, path: ArrayLike) -> None:
        """Seat the block's observations and draws with the proposed labels.

        Parameters
        ----------
        path : array-like of int, shape (stop - start,)
            Labels as in :meth:`log_weights`.

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
        self.move.seat(deref(self.state.chain), deref(self.state.emission.shared),
                       self.path.data())

    def accept(self, log_q_ratio: float) -> bool:
        """Accept the new labels, or restore the old ones, by the Metropolis-Hastings ratio.

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
            If `log_q_ratio` is NaN or +inf, since a proposed path has positive probability.
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
        accepted = bool(self.move.decide(
            deref(self.state.chain), deref(self.state.emission.shared), self.path.data(),
            q_old, q_new))
        self.close()
        return accepted


_state.move_type = BlockMove


cdef class CompiledKernel:
    """Base class of kernels in C++: a recipe of a ``Kernel`` (``_rcd.hpp``)."""

    cdef Kernel *build(self, Chain &chain) except NULL:
        raise NotImplementedError(f"{type(self).__name__} lacks build")

    def sweep(self, ChainState state) -> SweepInfo:
        """Make one sweep, during which the GIL is released.

        Returns
        -------
        info : SweepInfo
        """
        cdef SweepCounts counts
        state.require_no_move()
        if self.emission.get() != state.emission.shared.get():
            self.kernel.reset(self.build(deref(state.chain)))
            self.emission = state.emission.shared
        with nogil:
            counts = self.kernel.get().sweep(deref(state.chain))
        return SweepInfo(counts.n_proposed, counts.n_accepted, counts.trials)

    def n_bytes(self) -> int:
        """Size of the kernel's own large arrays in bytes."""
        return self.kernel.get().n_bytes() if self.kernel else 0


cdef class RCDKernel(CompiledKernel):
    """Sweeps of RCD moves over blocks of consecutive steps in random order.

    Parameters
    ----------
    proposal : BlockProposal
    block_size : int, default=1
        Steps per block.  Per sequence the first block's length is uniform on
        ``1 .. block_size`` and the others have ``block_size`` steps (the last one the
        rest): the boundaries never depend on the labels.

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

    cdef Kernel *build(self, Chain &chain) except NULL:
        return new BlockKernel(self.proposal.build(chain), self.block_size)
