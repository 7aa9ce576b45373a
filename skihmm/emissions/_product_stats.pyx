"""Statistics of several emissions at once, and of known states."""

import numpy as np

from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, ParticleCounts
from skihmm.core._record cimport entry_of


cdef class ProductStats(EmissionStats):
    """Several emissions, independent given the state.

    Parameters
    ----------
    parts : sequence of EmissionStats
        Statistics over the same steps.
    """

    def __init__(self, parts):
        cdef EmissionStats part
        cdef vector[shared_ptr[Emission]] children
        self.parts = tuple(parts)
        for part in self.parts:
            children.push_back(part.shared)
        self.shared.reset(<Emission *> new ProductEmission(children))

    @property
    def n_inputs(self):
        return sum(part.n_inputs for part in self.parts)

    def _parts_of(self, arrays):
        parts = entry_of(arrays, "parts", "emission")
        if not isinstance(parts, (list, tuple)) or len(parts) != len(self.parts):
            raise ValueError(
                f"emission: parts is {parts!r:.100}; expected a list of {len(self.parts)} "
                "records")
        return parts

    def watch(self, is_stopped):
        for part in self.parts:
            part.watch(is_stopped)

    def open_gaps(self, starts, every=False):
        steps, columns, first = [], [], 0
        for part in self.parts:
            places = part.open_gaps(starts, every)
            steps.append(places[0])
            columns.append(places[1] + first)
            first += sum(n for _, n, _ in part.rows())
        return np.concatenate(steps), np.concatenate(columns)

    def first_filled(self, starts):
        return np.concatenate([part.first_filled(starts) for part in self.parts])

    def open_hidden(self, starts, stream=None):
        for part in self.parts:
            part.open_hidden(starts, stream)

    def hidden(self):
        found = {}
        for part in self.parts:
            for name, numbers in part.hidden().items():
                found.setdefault(name, []).append(numbers)
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def set_hidden(self, hidden):
        rest = dict(hidden)
        for part in self.parts:
            numbers_of_part = {}
            for name, numbers in part.hidden().items():
                if name in rest:
                    numbers_of_part[name], rest[name] = np.split(rest[name], [len(numbers)])
            part.set_hidden(numbers_of_part)

    def draw_hidden(self, slots, stream, is_chain=False):
        means = [part.draw_hidden(slots, stream, is_chain) for part in self.parts]
        drawn = [part for part in means if part is not None]
        return np.concatenate(drawn) if drawn else None

    def filled(self):
        return np.concatenate([part.filled() for part in self.parts])

    def take_hyperparameters(self, arrays):
        for part, record in zip(self.parts, arrays["parts"], strict=True):
            part.take_hyperparameters(record)

    cdef int add_to(self, ParticleCounts *counts, int32_t n_states) except -1:
        cdef EmissionStats part
        for part in self.parts:
            part.add_to(counts, n_states)
        return 0

    def rows(self):
        return [each for part in self.parts for each in part.rows()]

    def to_arrays(self, labels):
        return {"parts": [part.to_arrays(labels) for part in self.parts]}

    def check_arrays(self, arrays, labels):
        for part, record in zip(self.parts, self._parts_of(arrays), strict=True):
            part.check_arrays(record, labels)

    def load(self, arrays, n_states):
        for part, record in zip(self.parts, self._parts_of(arrays), strict=True):
            part.load(record, n_states)

    def _inputs_of_parts(self, inputs):
        if inputs is None:
            return [None] * len(self.parts)
        stops = np.cumsum([part.n_inputs for part in self.parts])
        return np.split(inputs, stops[:-1], axis=-1)

    def predictives(self, slots, inputs=None):
        return [column
                for part, given in zip(self.parts, self._inputs_of_parts(inputs), strict=True)
                for column in part.predictives(slots, given)]

    def draw_values(self, slots, n_known, stream, inputs=None):
        out, known = [], list(n_known)
        no_slots = np.empty(0, dtype=np.int32)
        for part, given in zip(self.parts, self._inputs_of_parts(inputs), strict=True):
            n_columns = len(part.predictives(no_slots))
            out += part.draw_values(slots, known[:n_columns], stream, given)
            del known[:n_columns]
        return out

    def check(self, slots):
        for i, part in enumerate(self.parts):
            problem = part.check(slots)
            if problem is not None:
                return f"part {i}: {problem}"
        return None


cdef class KnownStatesStats(EmissionStats):
    """Known states of some steps, a part of a product beside the emission of the data.

    Parameters
    ----------
    labels : ndarray of shape (n_steps,), int32
        The label 0, 1, ... of every step whose state is known, otherwise -1.  Steps of
        one label share a state, steps of different labels do not.
    is_closed : bool, default=False
        Whether every state has a label.
    """

    def __init__(self, labels, cbool is_closed=False):
        self.labels = np.ascontiguousarray(labels, dtype=np.int32)
        self.is_closed = is_closed
        self.native = new KnownStates(&self.labels[0], self.labels.shape[0], is_closed)
        self.shared.reset(<Emission *> self.native)

    # Labels are of the data: counts are remade by recount, and no column is emitted.

    def to_arrays(self, labels):
        return {}

    def check_arrays(self, arrays, labels):
        cdef const int32_t[::1] states = np.ascontiguousarray(labels, dtype=np.int32)
        if not self.native.is_kept_by(&states[0]):
            raise ValueError("emission: the states are not the known ones")

    def load(self, arrays, n_states):
        pass

    cdef int add_to(self, ParticleCounts *counts, int32_t n_states) except -1:
        return 0

    def rows(self):
        return []

    def predictives(self, slots, inputs=None):
        return []

    def draw_values(self, slots, n_known, stream, inputs=None):
        return []

    def check(self, slots):
        cdef const int32_t[::1] states = np.ascontiguousarray(slots, dtype=np.int32)
        cdef KnownStatesStats recount = KnownStatesStats(self.labels, self.is_closed)
        if not self.native.is_kept_by(&states[0]):
            return "the states are not the known ones"
        recount.native.resize(self.native.n_slots)
        recount.native.recount(&states[0])
        return None if self.native.equals(recount.native[0]) else (
            "the known states differ from a recount of the labels")
