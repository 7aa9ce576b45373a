"""Statistics of several emissions at once, and of known states."""

import numpy as np

from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector

from skihmm.core._emission cimport Emission, EmissionStats
from skihmm.core._types cimport int32_t, int64_t


cdef extern from "_known_states.hpp" namespace "skihmm" nogil:
    cdef cppclass KnownStates(Emission):
        KnownStates(const int32_t *labels, int64_t n_steps, cbool is_closed) except +

cdef extern from "_product_emission.hpp" namespace "skihmm" nogil:
    cdef cppclass ProductEmission(Emission):
        ProductEmission(vector[shared_ptr[Emission]] parts) except +


cdef class ProductStats(EmissionStats):
    """Several emissions, independent given the state.

    Parameters
    ----------
    parts : sequence of EmissionStats
        Statistics over the same steps.
    """

    cdef readonly tuple parts               # of EmissionStats

    def __init__(self, parts):
        cdef EmissionStats part
        cdef vector[shared_ptr[Emission]] children
        self.parts = tuple(parts)
        for part in self.parts:
            children.push_back(part.shared)
        self.shared.reset(<Emission *> new ProductEmission(children))

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

    def rows(self):
        return [each for part in self.parts for each in part.rows()]

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

    cdef const int32_t[::1] labels

    def __init__(self, labels, cbool is_closed=False):
        self.labels = np.ascontiguousarray(labels, dtype=np.int32)
        self.shared.reset(<Emission *> new KnownStates(
            &self.labels[0], self.labels.shape[0], is_closed))
