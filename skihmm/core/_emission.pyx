"""Sufficient statistics of the emissions, for Python."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from skihmm.core._family cimport Family
from skihmm.core._random cimport RandomStream
from skihmm.core._record cimport Archive, archive_of, from_record, integers_of, numbers_of
from skihmm.core._slots cimport FIRST
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t


cdef int _stop(void *is_stopped) except -1 with gil:
    # In the main thread the call runs the handlers of signals.
    if (<object> is_stopped)():
        raise KeyboardInterrupt
    return 0


cdef const float64_t[:, ::1] _rows(inputs, n_rows, n_inputs):
    # Inputs of every row; a row more, so that there is an address.
    rows = np.empty((n_rows + 1, max(n_inputs, 1)))
    rows[:n_rows, :n_inputs] = inputs
    return rows


cdef EmissionStats stats_of(Emission *emission, object data):
    cdef EmissionStats stats = EmissionStats()
    stats.shared.reset(emission)
    stats.data = data
    return stats


cdef class EmissionStats:
    """Sufficient statistics of the emissions of all states, for one chain.

    Functions of the modules ``emissions/*_stats.pyx`` build them.

    Attributes
    ----------
    parts : tuple of EmissionStats
        Statistics of the parts of a product, which has no data of its own; otherwise empty.
    data : ndarray of shape (n_steps, n_columns) or (n_steps, n_columns + n_inputs)
        Codes of symbols (int32), or numbers with their inputs.
    places : (ndarray, ndarray) or None
        Steps and columns of missing entries that are filled.
    is_stopped : callable or None
        See :meth:`watch`.
    effects : object or None
        What the numbers of draws do to rows.
    """

    def __cinit__(self):
        self.parts = ()

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return self.shared.get().n_steps

    @property
    def n_inputs(self) -> int:
        """Number of inputs of a step."""
        return self.shared.get().n_inputs()

    @property
    def n_columns(self) -> int:
        """Number of columns of values, of a part."""
        return self.shared.get().columns().size()

    @property
    def gap_order(self) -> int:
        """Number of earlier rows in a row of a part that fills missing entries; otherwise -1."""
        cdef FamilyPart *part = self.shared.get().family_part
        if part is NULL or part.family.linear is NULL:
            return -1
        return part.family.linear.gap_order

    @property
    def draws_parameters(self) -> bool:
        """Whether samplers can draw the states' parameters for a sweep."""
        return self.shared.get().parameters() is not NULL

    @property
    def leaves(self) -> list[EmissionStats]:
        """Statistics of all parts, also of products in products."""
        return [leaf for part in self.parts for leaf in part.leaves] if self.parts else [self]

    # ---- records

    def check_arrays(self, arrays: EmissionRecord, labels: Integers) -> None:
        """Refuse a record that does not belong to these data, without any change.

        Parameters
        ----------
        arrays : object
            A result of :meth:`to_arrays`, or any other content of a file.
        labels : ndarray of shape (n_steps,), int32
            State of every step: 0, 1, ..., each of them occupied.

        Raises
        ------
        ValueError
            If `arrays` are not the statistics of the observations in these states.
        """
        cdef vector[int32_t] states
        integers_of(labels, "labels", &states)
        self.shared.get().check_record(archive_of(arrays, "emission"), states)

    def load(self, arrays: EmissionRecord, n_states: int) -> None:
        """Load the statistics of a record, with state k in slot ``FIRST + k``.

        The data of a posterior draw are unknown, so all checks that need only `arrays`
        are made here too: unchecked entries must not be used as indices.

        Raises
        ------
        ValueError
            If `arrays` are no statistics over `n_states` states.
        """
        self.shared.get().load(archive_of(arrays, "emission"), n_states)

    def take_hyperparameters(self, arrays: EmissionRecord) -> None:
        """Load the hyperparameters of a record, and the numbers of draws.

        Parameters
        ----------
        arrays : dict
            Result of :meth:`to_arrays`.
        """
        self.shared.get().load_shared(archive_of(arrays, "emission"))

    def to_arrays(self, labels: Integers) -> EmissionRecord:
        """Packed copy of the statistics, slot k as state ``labels[k]``."""
        cdef Archive archive
        cdef vector[int32_t] states
        integers_of(labels, "labels", &states)
        self.shared.get().write(archive, states)
        return from_record(archive.record())

    def check(self, slots: Integers) -> str | None:
        """Compare the statistics with a recount; returns a message or None.

        Parameters
        ----------
        slots : ndarray of shape (n_steps,)
            The slot of every step.
        """
        cdef vector[int32_t] states
        integers_of(slots, "slots", &states)
        return self.shared.get().check(states).decode() or None

    # ---- data

    def reread(self) -> bool:
        """Re-read observations that the caller has changed in place.

        Returns
        -------
        is_done : bool
            False if copies depend on the observations.
        """
        return self.shared.get().reread()

    def watch(self, is_stopped: Callable[[], bool]) -> None:
        """Set a callback that long computations poll; True stops them.

        Parameters
        ----------
        is_stopped : callable
            If it returns True, the computation ends with KeyboardInterrupt.
        """
        cdef EmissionStats leaf
        for leaf in self.leaves:
            leaf.is_stopped = is_stopped
            if leaf.shared.get().family_part is not NULL:
                leaf.shared.get().family_part.watch(_stop, <void *> is_stopped)

    def rows(self) -> list[tuple[Array, int, list[int]]]:
        """Rows of every part, for particle filters.

        Returns
        -------
        rows : list of (ndarray, int, list of int)
            Codes of symbols (int32) or numbers, with their inputs; how many of the columns
            are observed; and for each of these that holds symbols their number.
        """
        cdef EmissionStats leaf
        cdef vector[PredictedColumn] columns
        cdef PredictedColumn column
        out = []
        for leaf in self.leaves:
            columns = leaf.shared.get().columns()
            sizes = [column.n_symbols for column in columns if column.n_symbols > 0]
            if columns.size():
                out.append((leaf.data, columns.size(), sizes))
        return out

    def fill_inputs(self, float64_t[:, ::1] rows, const int64_t[::1] previous) -> None:
        """Set the inputs of rows of a family that follow others.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_columns + n_inputs)
            Changed in place.
        previous : ndarray of int64, shape (n_filled,)
            For the last `n_filled` rows, one after the other, the index of the row that
            each follows; -1 at the beginning of a sequence.
        """
        cdef const Family *family = self.shared.get().family_part.family
        cdef intp_t i, first = rows.shape[0] - previous.shape[0]
        for i in range(previous.shape[0]):
            family.next_inputs(
                &rows[previous[i], 0] if previous[i] >= 0 else NULL,
                &rows[first + i, 0] + family.n_columns)

    # ---- numbers that are drawn beside the labels

    def fill(self, steps: Integers, columns: Integers, ends: Integers) -> None:
        """Fill missing entries of a part, with zeros before others are set.

        Parameters
        ----------
        steps, columns : ndarray of shape (n_filled,)
        ends : ndarray of shape (n_filled,)
            The step after the last one of the sequence of each.
        """
        cdef vector[Gap] gaps
        cdef Gap gap
        for gap.t, gap.column, gap.end in zip(steps, columns, ends, strict=True):
            gaps.push_back(gap)
        self.shared.get().family_part.fill_entries(gaps)
        self.places = steps, columns

    def open_weights(self) -> None:
        """Set weights of the rows of a part that are possible.

        Until then weights are unknown, and predictive probabilities are integrals over weights.
        """
        if self.shared.get().family_part is not NULL:
            self.shared.get().family_part.open_weights()

    @property
    def of_draws(self) -> Floats:
        """Numbers of a part that records of draws have with the hyperparameters."""
        return numbers_of(self.shared.get().family_part.of_draws().numbers())

    @of_draws.setter
    def of_draws(self, numbers: Floats) -> None:
        self.shared.get().family_part.set_of_draws(numbers)

    def hidden(self) -> dict[str, Floats]:
        """Return the numbers that are drawn besides the labels, without the numbers of draws.

        Returns
        -------
        hidden : dict of str to ndarray
            `filled`, the values of missing entries, shape (n_filled,); `weights` of
            rows, shape (n_steps * n_weights,).  Without entries of size zero.
        """
        cdef EmissionStats leaf
        cdef FamilyPart *part
        cdef size_t i
        found = {}
        for leaf in self.leaves:
            part = leaf.shared.get().family_part
            for i in range(0 if part is NULL else part.n_hidden()):
                if part.hidden(i).size() > 0 and not part.hidden(i).is_of_draws():
                    found.setdefault(part.hidden(i).name().decode(), []).append(
                        numbers_of(part.hidden(i).numbers()))
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def set_hidden(self, hidden: Mapping[str, Floats]) -> None:
        """Set some of these numbers; statistics do not follow before they are loaded.

        Parameters
        ----------
        hidden : dict of str to ndarray
        """
        cdef EmissionStats leaf
        cdef FamilyPart *part
        cdef const float64_t[::1] view
        cdef size_t i
        rest = dict(hidden)
        for leaf in self.leaves:
            part = leaf.shared.get().family_part
            for i in range(0 if part is NULL else part.n_hidden()):
                name = part.hidden(i).name().decode()
                if len(rest.get(name, ())):
                    own, rest[name] = np.split(rest[name], [part.hidden(i).size()])
                    view = np.ascontiguousarray(own, dtype=np.float64)
                    part.set_hidden(i, &view[0])

    def draw_hidden(self, slots: Integers, RandomStream stream,
                    cbool is_chain=False) -> Floats | None:
        """Draw those that the hyperparameters do not bring, given the slots of all steps.

        Parameters of the states are drawn from their posterior for it, and discarded.
        The statistics do not follow before they are settled.

        Parameters
        ----------
        slots : ndarray of shape (n_steps,), int32
        stream : RandomStream
        is_chain : bool, default=False
            Whether the numbers of draws are drawn too; with more subjects than in the fit,
            offsets of the further subjects.

        Returns
        -------
        means : ndarray of shape (n_filled,) or None
            Conditional means of missing entries, in units of the data; None if nothing is
            drawn.
        """
        cdef EmissionStats leaf
        cdef FamilyPart *part
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        means = []
        for leaf in self.leaves:
            part = leaf.shared.get().family_part
            if part is not NULL and part.draws_hidden(is_chain):
                means.append(numbers_of(part.draw_hidden(&slot[0], stream.bits, is_chain)))
        return np.concatenate(means) if means else None

    def filled(self) -> Floats:
        """Return the values that fill missing entries, in units of the data."""
        cdef EmissionStats leaf
        cdef vector[float64_t] values
        found = [np.empty(0)]
        for leaf in self.leaves:
            if leaf.places is not None:
                values = leaf.hidden()["filled"]
                leaf.shared.get().family_part.restore(&values)
                found.append(numbers_of(values))
        return np.concatenate(found)

    # ---- predictions

    def _parts_with(self, inputs):
        # All parts, with their own of these inputs.
        stop, found = 0, []
        for leaf in self.leaves:
            start, stop = stop, stop + leaf.n_inputs
            found.append((leaf, None if inputs is None else np.asarray(inputs)[..., start:stop]))
        return found

    def predictives(self, slots: Integers, inputs: Floats | None = None) -> list[Floats]:
        """Posterior predictive distributions of states.

        Parameters
        ----------
        slots : ndarray of shape (n_states,), int32
            NEW stands for a new state.
        inputs : ndarray of shape (n_inputs,) or (n_states, n_inputs), optional
            What precedes the observation or is given, if the emission has inputs; by
            default the inputs of the first step of a sequence.

        Returns
        -------
        predictives : list
            One entry for every column of the data: the probabilities of its symbols, shape
            (n_states, n_symbols), or the means of its numbers, shape (n_states,), of angles
            the means of exp(i angle).
        """
        cdef EmissionStats leaf
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        out = []
        for leaf, own in self._parts_with(inputs):
            out += leaf.predictives_of_part(slot, own)
        return out

    cdef list predictives_of_part(self, const int32_t[::1] slot, object inputs):
        cdef vector[PredictedColumn] columns = self.shared.get().columns()
        cdef PredictedColumn column
        cdef intp_t n = slot.shape[0], at = 0
        cdef const float64_t[:, ::1] given
        cdef const float64_t *begin = NULL
        numbers = np.empty(sum([n * column.n_numbers() for column in columns]))
        cdef float64_t[::1] view = numbers
        if inputs is not None:
            given = _rows(inputs, n, self.n_inputs)
            begin = &given[0, 0]
        if numbers.size:
            self.shared.get().fill_predictives(&slot[0], n, begin, &view[0])
        out = []
        for column in columns:
            own = numbers[at:at + n * column.n_numbers()]
            at += n * column.n_numbers()
            out.append(own.view(np.complex128) if column.is_angle
                       else own.reshape(n, column.n_symbols) if column.n_symbols else own)
        return out

    def draw_values(self, slots: Integers, n_known: list[int], RandomStream stream,
                    inputs: Floats | None = None) -> list[Array]:
        """Draw one observation for every slot listed, each from the predictive distribution.

        Parameters
        ----------
        slots : ndarray of shape (n_draws,), int32
            As for :meth:`predictives`; a slot may occur many times.
        n_known : list of int
            Number of symbols (the first ones) that may be drawn, for every column of the
            data; 0 for a column of numbers.
        stream : RandomStream
        inputs : ndarray of shape (n_draws, n_inputs), optional
            One row for every draw, as for :meth:`predictives`.

        Returns
        -------
        values : list of ndarray of shape (n_draws,)
            One entry for every column of the data: codes or numbers.
        """
        cdef EmissionStats leaf
        cdef const int32_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int32)
        out, known = [], list(n_known)
        n_columns = sum([leaf.n_columns for leaf in self.leaves])
        if len(known) != n_columns:
            raise ValueError(f"n_known has {len(known)} entries for {n_columns} columns")
        for leaf, own in self._parts_with(inputs):
            out += leaf.values_of_part(slot, known[:leaf.n_columns], stream, own)
            del known[:leaf.n_columns]
        return out

    cdef list values_of_part(self, const int32_t[::1] slot, list n_known, RandomStream stream,
                             object inputs):
        cdef intp_t n = slot.shape[0]
        cdef vector[int32_t] known = n_known
        cdef const float64_t[:, ::1] given
        cdef const float64_t *begin = NULL
        values = np.empty((known.size(), n))
        cdef float64_t[:, ::1] view = values
        if inputs is not None:
            given = _rows(inputs, n, self.n_inputs)
            begin = &given[0, 0]
        if values.size:
            self.shared.get().draw_values(
                &slot[0], n, begin, known.data(), &view[0, 0], stream.bits)
        return list(values.astype(self.data.dtype, copy=False)) if len(values) else []

    # ---- states of a family

    def parameters(self, arrays: EmissionRecord, n_states: int, RandomStream stream=None) -> Floats:
        """Parameters of the states of a record, which is loaded, of a family.

        Parameters
        ----------
        arrays : dict
            Result of :meth:`to_arrays`.
        n_states : int
        stream : RandomStream, optional
            Draw them from their posterior.

        Returns
        -------
        parameters : ndarray of shape (n_states, n_expected) or (n_states, parameter_width)
            Posterior means, or drawn ones, in the layouts of the family.
        """
        cdef int32_t k
        cdef const Family *family = self.shared.get().family_part.family
        self.shared.get().resize(FIRST + n_states)
        self.load(arrays, n_states)
        cdef const float64_t[:, ::1] numbers = np.ascontiguousarray(arrays["numbers"])
        out = np.empty((
            n_states, family.learnt.n_expected if stream is None else family.parameter_width))
        cdef float64_t[:, ::1] view = out
        for k in range(n_states):
            if stream is None:
                family.learnt.expect(&numbers[k, 0], 1, &view[k, 0])
            else:
                family.draw(&numbers[k, 0], 1, &view[k, 0], 1, stream.bits)
        return out
