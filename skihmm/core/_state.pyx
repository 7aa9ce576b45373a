"""State of one chain: labels, seating, emission statistics, random stream."""

from libc.stdint cimport uint16_t

import numpy as np

from skihmm.core._franchise cimport (
    TransitionsRecord,
    transitions_from_arrays,
    transitions_to_arrays,
)
from skihmm.core._record cimport (
    FINITE,
    MOST_CUSTOMERS,
    archive_of,
    array_of,
    entry_of,
    int32_of,
    integer_of,
    integers_of,
    starts_of,
    states_of,
)
from skihmm.core._slots cimport FIRST, START

# Class of the moves of ChainState.move, set by skihmm.core._rcd, which is above this module.
move_type = None


ctypedef fused label_t:
    uint8_t
    uint16_t
    int32_t


cdef object _labels_of(const vector[int32_t] &states, const int32_t[::1] labels,
                       label_t[::1] out):
    # labels[states] without the index array of NumPy.
    cdef intp_t t
    for t in range(<intp_t> states.size()):
        out[t] = <label_t> labels[states[t]]
    return np.asarray(out)


cdef object _narrow_labels_of(const vector[int32_t] &states, const int32_t[::1] labels,
                              int32_t n_states):
    # A copy of long data in four bytes would be the largest array of all.
    n = states.size()
    if n_states <= 2**8:
        return _labels_of[uint8_t](states, labels, np.empty(n, dtype=np.uint8))
    if n_states <= 2**16:
        return _labels_of[uint16_t](states, labels, np.empty(n, dtype=np.uint16))
    return _labels_of[int32_t](states, labels, np.empty(n, dtype=np.int32))


cdef int _load(Chain *chain, const TransitionsRecord &record,
               const label_t[::1] labels) except -1:
    chain.load(record, &labels[0])
    return 0


cdef class ChainState:
    """One chain's labels, seating and statistics.

    Labels are slots, which stay the same while a sweep runs: :attr:`slots`, and the slots of
    :meth:`move`.  :attr:`packed_labels` numbers the states 0, 1, ... in the order of their
    slots, as records do.  :meth:`canonicalise` packs slots; the chain is then fully described by
    :meth:`to_arrays`, its random stream's state and nothing else, so that a chain resumed
    from those continues bit for bit.

    Parameters
    ----------
    starts : ndarray of shape (n_sequences,)
        First step of every sequence, increasing, ``starts[0] == 0``.
    transitions : Franchise
    emission : EmissionStats
    stream : RandomStream
    """

    def __init__(self, starts: Integers, Franchise transitions, EmissionStats emission,
                 RandomStream stream):
        cdef vector[int32_t] begins
        integer_of(emission.n_steps, "the number of steps", 1, MOST_CUSTOMERS)
        starts_of(starts, emission.n_steps, True, &begins)
        self.transitions = transitions
        self.emission = emission
        self.stream = stream
        self.chain.reset(new Chain(begins, transitions.shared, emission.shared, stream.bits))

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return self.chain.get().n_steps

    cdef int require_no_move(self) except -1:
        if self.is_moving:
            raise RuntimeError(
                "A move is open on this chain: its customers are not seated. Leave the "
                "block of `with state.move(...)` first.")
        return 0

    # -- Python side, once per sweep or less often

    def move(self, start: int, stop: int) -> BlockMove:
        """Prepare a Metropolis-Hastings move on the labels of a block of steps.

        For sweeps in Python; see :class:`skihmm.core._rcd.BlockMove`, whose methods are
        called in a ``with`` block::

            with state.move(t, t + 1) as move:
                move.remove()
                log_w = move.log_weights(t)
                k = state.stream.categorical(log_w)
                move.add([k])
                move.accept(log_w[move.old[0]] - log_w[k])

        Parameters
        ----------
        start, stop : int
            The block: steps `start` to ``stop - 1``, all of one sequence.  Their choice
            must not depend on the labels.

        Returns
        -------
        move : BlockMove

        Raises
        ------
        ValueError
            If the block is empty, not within the data or not within one sequence.
        """
        return move_type(self, start, stop)

    def start_from(self, labels: Integers) -> None:
        """Set the labels of all steps and seat all customers in the order of time.

        Parameters
        ----------
        labels : ndarray of shape (n_steps,)
            Any labels ``0 .. n - 1``, each of them used.
        """
        self.require_no_move()
        cdef const int32_t[::1] path = int32_of(np.asarray(labels), "labels")
        cdef intp_t t, n_steps = self.n_steps
        if path.shape[0] != n_steps:
            raise ValueError(f"{path.shape[0]} labels for {n_steps} steps")
        for t in range(n_steps):
            if not 0 <= path[t] < n_steps:
                raise ValueError(
                    f"labels[{t}] is {path[t]}; expected 0 to {n_steps - 1}")
        with nogil:
            self.chain.get().start_from(&path[0])

    def draw_hidden(self) -> None:
        """Draw all but the labels given labels and seating, with the stream of the chain.

        Drawn are the hyperparameters of emission and transitions, the weights of rows, and the
        values of missing entries.
        """
        cdef Chain *chain = self.chain.get()
        with nogil:
            chain.draw_hyperparameters()
        if self.emission.draw_hidden(array_of(chain.states), self.stream, True) is not None:
            self.emission.shared.get().recount(chain.states.data())

    def to_arrays(self, order: Integers | None = None) -> StateRecord:
        """Return the chain as plain arrays, with packed labels 0 .. n_states - 1.

        In the transitions' arrays row ``n_states`` is the start restaurant.

        Parameters
        ----------
        order : ndarray of shape (n_states,), optional
            The states, as numbered by :attr:`packed_labels`, in the order of the record; by default
            in that order.

        Returns
        -------
        arrays : dict
        """
        cdef Chain *chain = self.chain.get()
        cdef vector[int32_t] label = chain.record_labels()
        labels = array_of(label)
        if order is not None:
            occupied = labels >= 0
            labels[occupied] = np.argsort([*order, len(order)])[labels[occupied]]
            integers_of(labels, "labels", &label)
        cdef TransitionsRecord record = self.transitions.native.record(label)
        return {
            **self.emission.hidden(),
            **transitions_to_arrays(record),
            "states": _narrow_labels_of(chain.states, labels, label[START]),
            "emission": self.emission.to_arrays(labels),
        }

    def canonicalise(self) -> StateRecord:
        """Pack labels and sort every list into the order of the record.

        Directly after this call the further chain is a function of :meth:`to_arrays` and
        its stream.

        Returns
        -------
        arrays : dict
            :meth:`to_arrays` of the packed chain.
        """
        self.require_no_move()
        arrays = self.to_arrays()
        self._take(arrays)
        return arrays

    def from_arrays(self, arrays: StateRecord) -> None:
        """Load the chain from arrays of :meth:`to_arrays`.

        Parameters
        ----------
        arrays : dict
            Arrays of integers may be of any width.

        Raises
        ------
        ValueError
            If the arrays are not a seating of these data; the chain is not changed.
        """
        self.require_no_move()
        cdef TransitionsRecord record
        cdef vector[int32_t] path
        cdef vector[float64_t] numbers
        self._read(arrays, &record, &path)
        self.chain.get().check_path(record, path)
        before = self.emission.hidden()
        hidden = {name: entry_of(arrays, name, "the record") for name in before}
        for name, values in hidden.items():
            archive_of(values, name).array(&numbers, [len(before[name])], &FINITE)
        try:
            self.emission.set_hidden(hidden)
            self.emission.check_arrays(entry_of(arrays, "emission", "the record"),
                                       np.asarray(<int32_t[:self.n_steps]> path.data()))
        except BaseException:
            self.emission.set_hidden(before)
            raise
        self._take(arrays)

    cdef int _read(self, arrays, TransitionsRecord *record, vector[int32_t] *path) except -1:
        transitions_from_arrays(arrays, record)
        states_of(entry_of(arrays, "states", "the record"), record.n_states, self.n_steps,
                  path)
        return 0

    cdef int _take(self, arrays) except -1:
        # Arrays of this chain, or checked arrays of another chain on the same data.
        cdef TransitionsRecord record
        states = np.ascontiguousarray(arrays["states"])
        transitions_from_arrays(arrays, &record)
        if states.dtype == np.uint8:
            _load[uint8_t](self.chain.get(), record, states)
        elif states.dtype == np.uint16:
            _load[uint16_t](self.chain.get(), record, states)
        else:
            _load[int32_t](self.chain.get(), record, states.astype(np.int32, copy=False))
        self.emission.load(arrays["emission"], record.n_states)
        self.emission.shared.get().recount(self.chain.get().states.data())
        return 0

    def log_joint(self) -> float:
        """log p(states, seating, y | concentrations), nats; approximate if there are weights."""
        return self.chain.get().log_joint()

    def n_bytes(self) -> int:
        """Size of the chain's state in bytes."""
        return self.chain.get().n_bytes()

    def check(self) -> str | None:
        """Compare every count, list and cache with a recount from the labels.

        Returns
        -------
        problem : str or None
        """
        cdef Chain *chain = self.chain.get()
        cdef const char *wrong = self.transitions.native.check()
        cdef intp_t i
        cdef TransitionsRecord record
        cdef vector[int32_t] path
        if wrong is not NULL:
            return "transitions: " + wrong.decode()
        occupancy = np.bincount(array_of(chain.states), minlength=chain.n_slots)
        if list(occupancy) != list(chain.occupancy):
            return "occupancy differs from a recount of the labels"
        free = set(chain.free_slots)
        if free != {k for k in range(FIRST, chain.n_slots) if occupancy[k] == 0}:
            return "the free slots are wrong"
        for i in range(<intp_t> chain.free_slots.size()):
            if chain.free_place[chain.free_slots[i]] != i:
                return "the places of the free slots are wrong"
        try:
            self._read(self.to_arrays(), &record, &path)
            chain.check_path(record, path)
        except ValueError as error:
            return str(error)
        problem = self.emission.check(array_of(chain.states))
        return None if problem is None else "emission: " + problem

    @property
    def slots(self) -> Labels:
        """Label of every step as moves have it, shape (n_steps,), int32; a copy."""
        return array_of(self.chain.get().states)

    @property
    def packed_labels(self) -> Integers:
        """Label 0 .. n_states - 1 of every step, as uint8 or uint16 if these suffice."""
        cdef Chain *chain = self.chain.get()
        cdef vector[int32_t] label = chain.record_labels()
        return _narrow_labels_of(chain.states, array_of(label), label[START])

    @property
    def n_states(self) -> int:
        """Number of occupied states."""
        return int(np.count_nonzero(array_of(self.chain.get().occupancy)))
