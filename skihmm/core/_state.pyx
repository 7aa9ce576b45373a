"""State of one chain: labels, seating, emission statistics, random stream."""

import numpy as np

from skihmm.core._franchise cimport FIRST, START, Line
from skihmm.core._record cimport (
    MOST_CUSTOMERS,
    SeatingRecord,
    check_customers,
    entry_of,
    integer_of,
    integers_of,
    record_to_arrays,
    starts_of,
    states_of,
    transitions_from_arrays,
)

# What ChainState.move makes; skihmm.core._rcd, which stands above this module, says it.
move_type = None


cdef class ChainState:
    """One chain's labels, seating and statistics.

    Labels are stable slots while a sweep runs (see ``_franchise.pxd``).
    :meth:`canonicalise` packs them; the chain is then fully described by
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

    def __init__(self, starts, Franchise transitions, EmissionStats emission,
                 RandomStream stream):
        cdef int32_t t
        cdef vector[int32_t] begins
        self.n_steps = emission.n_steps
        integer_of(self.n_steps, "the number of steps", 1, MOST_CUSTOMERS)
        starts_of(starts, self.n_steps, True, &begins)
        self.transitions = transitions
        self.emission = emission
        self.stream = stream
        self.states.assign(self.n_steps, FIRST)
        self.hints.assign(self.n_steps, -1)
        self.first.assign(self.n_steps, 0)
        self.last.assign(self.n_steps, 0)
        for t in begins:
            self.first[t] = 1
            if t > 0:
                self.last[t - 1] = 1
        self.last[self.n_steps - 1] = 1
        self.n_slots = 0
        self._set_slots(FIRST + 1)

    cdef int _set_slots(self, int32_t n_slots) except -1 nogil:
        self.n_slots = n_slots
        self.transitions.seating.resize(n_slots, n_slots)
        self.emission.resize(n_slots)
        self.occupancy.resize(n_slots, 0)
        self._rebuild_free()
        return 0

    cdef int _rebuild_free(self) except -1 nogil:
        # Low slots are handed out first.
        cdef int32_t k
        self.free_slots.clear()
        self.free_place.assign(self.n_slots, -1)
        for k in range(self.n_slots - 1, FIRST - 1, -1):
            if self.occupancy[k] == 0:
                self.free_place[k] = <int32_t> self.free_slots.size()
                self.free_slots.push_back(k)
        return 0

    cdef int reserve(self, intp_t n_free) except -1 nogil:
        # Called before a move: afterwards n_free slots are free and nothing reallocates
        # until the move ends.
        cdef intp_t missing = n_free - <intp_t> self.free_slots.size()
        if missing > 0:
            self._set_slots(<int32_t> (self.n_slots + missing + self.n_slots // 4 + 4))
        return 0

    cdef int require_settled(self) except -1:
        if self.is_moving:
            raise RuntimeError(
                "A move is open on this chain: its customers are not seated. Leave the "
                "block of `with state.move(...)` first.")
        return 0

    # -- Python side, once per sweep or less often

    def move(self, start, stop):
        """Prepare a Metropolis-Hastings move on the labels of a block of steps.

        For sweeps that are written in Python; see :class:`skihmm.core._rcd.BlockMove`,
        whose methods do what has to be done in a ``with`` block::

            with state.move(t, t + 1) as move:
                move.remove()
                log_w = move.log_weights(t)
                k = state.stream.categorical(log_w)
                move.add([k])
                move.accept(log_w[move.old[0]] - log_w[k])

        Parameters
        ----------
        start, stop : int
            The block: steps `start` to ``stop - 1``, all of one sequence.  Choose them
            without a look at the labels.

        Returns
        -------
        move : BlockMove

        Raises
        ------
        ValueError
            If the block is empty, leaves the data or goes from one sequence into another.
        """
        return move_type(self, start, stop)

    def start_from(self, labels):
        """Take the labels of every step and seat all customers in the order of time.

        Parameters
        ----------
        labels : ndarray of shape (n_steps,)
            Any labels ``0 .. n - 1``, every one of them used.
        """
        self.require_settled()
        cdef vector[int32_t] path
        cdef intp_t t
        cdef int32_t n_states = 0
        cdef Product r
        integers_of(np.asarray(labels), "labels", &path)
        if <intp_t> path.size() != self.n_steps:
            raise ValueError(f"{path.size()} labels for {self.n_steps} steps")
        for t in range(self.n_steps):
            if not 0 <= path[t] < self.n_steps:
                raise ValueError(
                    f"labels[{t}] is {path[t]}; expected 0 to {self.n_steps - 1}")
            n_states = max(n_states, path[t] + 1)
        # The emission has no hook to forget everything: its old values leave one by one.
        with nogil:
            for t in range(self.n_steps):
                if self.occupancy[self.states[t]] > 0:
                    self.emission.remove_value(t, self.states[t], self.stream.bits, &r)
            self.emission.commit()
        self.transitions.seating.clear()
        self.occupancy.assign(self.occupancy.size(), 0)
        self._set_slots(max(self.n_slots, FIRST + n_states))
        with nogil:
            for t in range(self.n_steps):
                self.states[t] = FIRST + path[t]
                self.occupancy[FIRST + path[t]] += 1
                self.transitions.seating.add(
                    self.previous(t), self.states[t], self.stream.bits)
                self.emission.add_value(t, self.states[t], self.stream.bits, &r)
            self.transitions.seating.commit()
            self.emission.commit()
            self._rebuild_free()

    def to_arrays(self):
        """The chain as plain arrays: a dictionary with packed labels 0 .. n_states - 1.

        States keep the order of their slots.  In the transitions' arrays row
        ``n_states`` is the start restaurant.
        """
        cdef int32_t k, n_states = 0
        cdef intp_t t, i
        cdef vector[int32_t] label
        label.assign(self.n_slots, -1)
        for k in range(FIRST, self.n_slots):
            if self.occupancy[k] > 0:
                label[k] = n_states
                n_states += 1
        label[START] = n_states
        states = np.empty(self.n_steps, dtype=np.int32)
        cdef int32_t[::1] view = states
        for t in range(self.n_steps):
            view[t] = label[self.states[t]]
        cdef SeatingRecord record = self.transitions.seating.record()
        # START is slot 1 and n_states the last packed row: put its cells at the end, so
        # that the record is sorted by packed row whatever the slots were.
        cdef SeatingRecord packed
        cdef intp_t size_at, start_cells = 0, start_sizes = 0
        for i in range(<intp_t> record.rows.size()):
            if record.rows[i] == START:
                start_cells += 1
                start_sizes += record.n_tables[i]
        packed.sizes.assign(record.sizes.begin() + start_sizes, record.sizes.end())
        packed.sizes.insert(packed.sizes.end(), record.sizes.begin(),
                            record.sizes.begin() + start_sizes)
        for i in range(start_cells, <intp_t> record.rows.size() + start_cells):
            size_at = i if i < <intp_t> record.rows.size() else (
                i - <intp_t> record.rows.size())
            packed.rows.push_back(label[record.rows[size_at]])
            packed.dishes.push_back(label[record.dishes[size_at]])
            packed.n_customers.push_back(record.n_customers[size_at])
            packed.n_tables.push_back(record.n_tables[size_at])
        transitions = record_to_arrays(packed)
        transitions["alpha"] = self.transitions.seating.alpha
        transitions["gamma"] = self.transitions.seating.gamma
        labels = np.empty(self.n_slots, dtype=np.int32)
        for k in range(self.n_slots):
            labels[k] = label[k]
        return {
            "n_states": n_states,
            "states": states,
            "transitions": transitions,
            "emission": self.emission.to_arrays(labels),
        }

    def canonicalise(self):
        """Pack labels and bring every list into the order of the record.

        What a chain does next is a function of :meth:`to_arrays` and its stream only if
        this has just been called.

        Returns
        -------
        arrays : dict
            :meth:`to_arrays` of the packed chain.
        """
        self.require_settled()
        arrays = self.to_arrays()
        self._take(arrays)
        return arrays

    def from_arrays(self, arrays):
        """Become the chain that :meth:`to_arrays` described.

        Parameters
        ----------
        arrays : dict
            Arrays of integers may be of any width.

        Raises
        ------
        ValueError
            If the arrays are not a seating of these data; the chain stays as it was.
        """
        self.require_settled()
        cdef SeatingRecord record
        cdef float64_t alpha, gamma
        cdef vector[int32_t] path, rows
        cdef int32_t n_states = transitions_from_arrays(arrays, &record, &alpha, &gamma)
        cdef intp_t t
        states_of(entry_of(arrays, "states", "the record"), n_states, self.n_steps, &path)
        rows.resize(self.n_steps)
        for t in range(self.n_steps):
            rows[t] = n_states if self.first[t] else path[t - 1]
        check_customers(record, rows.data(), path.data(), 1, self.n_steps, n_states + 1,
                        b"transitions")
        labels = np.empty(self.n_steps, dtype=np.int32)
        cdef int32_t[::1] view = labels
        for t in range(self.n_steps):
            view[t] = path[t]
        self.emission.check_arrays(entry_of(arrays, "emission", "the record"), labels)
        self._take(arrays)

    cdef int _take(self, arrays) except -1:
        # Arrays of this very chain, or ones that fit it as well.
        cdef SeatingRecord record
        cdef float64_t alpha, gamma
        cdef vector[int32_t] path
        cdef intp_t t, i
        cdef int32_t n_states = transitions_from_arrays(arrays, &record, &alpha, &gamma)
        states_of(arrays["states"], n_states, self.n_steps, &path)
        for i in range(<intp_t> record.rows.size()):
            record.rows[i] = (
                START if record.rows[i] == n_states else FIRST + record.rows[i])
            record.dishes[i] += FIRST
        self.occupancy.clear()
        self.transitions.seating.clear()
        # A few spare slots, a function of the record only, so that resumed chains grow
        # at the same moments.
        self._set_slots(FIRST + n_states + 8 + n_states // 16)
        self.transitions.seating.set_concentrations(alpha, gamma)
        self.transitions.seating.load(record)
        self.emission.load(
            arrays["emission"], np.arange(FIRST, FIRST + n_states, dtype=np.int32))
        for t in range(self.n_steps):
            self.states[t] = FIRST + path[t]
            self.occupancy[FIRST + path[t]] += 1
        self.emission.settle(self.states.data())
        self._rebuild_free()
        self.touched.clear()
        return 0

    def log_joint(self):
        """log p(states, seating, y | concentrations), nats."""
        return self.transitions.seating.log_joint() + self.emission.log_joint()

    def n_bytes(self):
        """Bytes that the chain's state holds."""
        return (self.transitions.seating.n_bytes() + self.emission.n_bytes()
                + 10 * self.n_steps + 16 * self.n_slots)

    def check(self):
        """Compare every count, list and cache with a recount from the labels.

        Returns
        -------
        problem : str or None
        """
        cdef const char *wrong = self.transitions.seating.check()
        cdef intp_t t, i
        cdef Line *line
        if wrong is not NULL:
            return "transitions: " + wrong.decode()
        cdef object pair
        counts = {}
        occupancy = np.zeros(self.n_slots, dtype=np.int64)
        for t in range(self.n_steps):
            pair = (int(self.previous(t)), int(self.states[t]))
            counts[pair] = counts.get(pair, 0) + 1
            occupancy[self.states[t]] += 1
        seated = {}
        for t in range(self.n_slots):
            line = &self.transitions.seating.rows[t]
            for i in range(line.size):
                pair = (t, int(line.ids[i]))
                seated[pair] = line.counts[i]
        if seated != counts:
            return "transitions: counts differ from a recount of the labels"
        if list(occupancy) != list(self.occupancy):
            return "occupancy differs from a recount of the labels"
        free = set(self.free_slots)
        if free != {k for k in range(FIRST, self.n_slots) if occupancy[k] == 0}:
            return "the free slots are wrong"
        for i in range(<intp_t> self.free_slots.size()):
            if self.free_place[self.free_slots[i]] != i:
                return "the places of the free slots are wrong"
        problem = self.emission.check(np.asarray(self.states))
        return None if problem is None else "emission: " + problem

    @property
    def labels(self):
        """Packed label of every step, shape (n_steps,)."""
        return np.unique(np.asarray(self.states), return_inverse=True)[1].astype(np.int32)

    @property
    def n_states(self):
        """Number of states that some step carries."""
        return int(np.count_nonzero(np.asarray(self.occupancy)))
