"""Statistics of several emissions at once, and of known states."""

import numpy as np

from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission
from skihmm.core._record cimport entry_of


cdef class ProductStats(EmissionStats):
    """Several emissions, independent given the state.

    Parameters
    ----------
    parts : sequence of EmissionStats
        Statistics over the same steps.
    known_states : ndarray of shape (n_steps,), int32, optional
        The label 0, 1, ... of every step whose state is known, otherwise -1.  Steps of
        one label share a state, steps of different labels do not.
    """

    def __init__(self, parts, known_states=None):
        cdef EmissionStats part
        cdef vector[shared_ptr[Emission]] children
        self.parts = tuple(parts)
        for part in self.parts:
            children.push_back(part.shared)
        self.native = new ProductEmission(children)
        self.shared.reset(<Emission *> self.native)
        if known_states is not None:
            self.labels = np.ascontiguousarray(known_states, dtype=np.int32)
            self.native.known.configure(&self.labels[0], self.n_steps)

    def _parts_of(self, arrays):
        parts = entry_of(arrays, "parts", "emission")
        if not isinstance(parts, (list, tuple)) or len(parts) != len(self.parts):
            raise ValueError(
                f"emission: parts is {parts!r:.100}; expected a list of {len(self.parts)} "
                "records")
        return parts

    def take_hyperparameters(self, arrays):
        for part, record in zip(self.parts, arrays["parts"], strict=True):
            part.take_hyperparameters(record)

    def columns(self, arrays=None):
        records = [None] * len(self.parts) if arrays is None else self._parts_of(arrays)
        return [column for part, record in zip(self.parts, records, strict=True)
                for column in part.columns(record)]

    def records(self, arrays):
        out = []
        for part, record in zip(self.parts, self._parts_of(arrays), strict=True):
            found = part.records(record)
            if not isinstance(found, (list, tuple)) or len(found) != len(part.columns()):
                raise ValueError(
                    f"emission: columns is {found!r:.100}; expected a list of "
                    f"{len(part.columns())} dicts, one per column")
            out += found
        return out

    def to_arrays(self, labels):
        return {"parts": [part.to_arrays(labels) for part in self.parts]}

    def check_arrays(self, arrays, labels):
        cdef const int32_t[::1] states = np.ascontiguousarray(labels, dtype=np.int32)
        for part, record in zip(self.parts, self._parts_of(arrays), strict=True):
            part.check_arrays(record, labels)
        if self.native.known.is_active() and not self.native.known.is_kept_by(&states[0]):
            raise ValueError("emission: the states are not the known ones")

    def load(self, arrays, n_states):
        # Known states are counted by settle.
        for part, record in zip(self.parts, self._parts_of(arrays), strict=True):
            part.load(record, n_states)

    def predictives(self, slots):
        return [column for part in self.parts for column in part.predictives(slots)]

    def draw_values(self, slots, n_known, stream):
        out, known = [], list(n_known)
        no_slots = np.empty(0, dtype=np.int32)
        for part in self.parts:
            n_columns = len(part.predictives(no_slots))
            out += part.draw_values(slots, known[:n_columns], stream)
            del known[:n_columns]
        return out

    def check(self, slots):
        cdef const int32_t[::1] states = np.ascontiguousarray(slots, dtype=np.int32)
        cdef KnownStates recount
        for i, part in enumerate(self.parts):
            problem = part.check(slots)
            if problem is not None:
                return f"part {i}: {problem}"
        if not self.native.known.is_active():
            return None
        if not self.native.known.is_kept_by(&states[0]):
            return "the states are not the known ones"
        recount.configure(&self.labels[0], self.n_steps)
        recount.resize(self.native.n_slots)
        recount.settle(&states[0])
        return None if self.native.known.equals(recount) else (
            "the known states differ from a recount of the labels")
