"""Statistics of several emissions at once, and of known states."""

import numpy as np

from libc.math cimport INFINITY, exp
from numpy.random cimport bitgen_t

from skihmm.core._franchise cimport NEW, Product
from skihmm.core._record cimport entry_of


# As for the emissions themselves: relative to the most probable state no state gets less.
cdef float64_t LEAST_LOG = -460.0


cdef class ProductStats(EmissionStats):
    """Several emissions, independent given the state.

    Parameters
    ----------
    parts : sequence of EmissionStats
        Over the same steps.
    known_states : ndarray of shape (n_steps,), int32, optional
        The label 0, 1, ... of every step whose state is known, otherwise -1.  Steps of
        one label are in one state, steps of two labels in two.
    """

    def __init__(self, parts, known_states=None):
        cdef EmissionStats part
        self.parts = tuple(parts)
        self.draws_parameters = True
        for part in self.parts:
            self.children.push_back(<PyObject *> part)
            self.draws_parameters = self.draws_parameters and part.draws_parameters
        self.n_steps = (<EmissionStats> self.parts[0]).n_steps
        if known_states is not None:
            self.labels = np.ascontiguousarray(known_states, dtype=np.int32)
            self.known.configure(&self.labels[0], self.n_steps)

    cdef int add_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).add_value(t, k, g, r)
        if self.known.is_active():
            r.multiply_log(self.known.log_prob(t, k))
            self.known.add(t, k)
        return 0

    cdef int remove_value(self, intp_t t, int32_t k, bitgen_t *g, Product *r) except -1 nogil:
        cdef size_t i
        if self.known.is_active():
            self.known.remove(t, k)
            r.multiply_log(self.known.log_prob(t, k))
        for i in range(self.children.size(), 0, -1):
            (<EmissionStats> self.children[i - 1]).remove_value(t, k, g, r)
        return 0

    cdef float64_t fill_probs(self, intp_t t, float64_t *out) except? -1 nogil:
        cdef int32_t k
        cdef float64_t largest = -INFINITY, scale = 0.0
        cdef PyObject *child
        self.logs.assign(self.n_slots, 0.0)
        for child in self.children:
            scale += (<EmissionStats> child).fill_probs(t, out)
            add_logs(self.n_slots, out, self.logs.data())
        if not self.known.is_free(t):
            for k in range(self.n_slots):
                self.logs[k] += self.known.log_prob(t, k)
        for k in range(self.n_slots):
            largest = max(largest, self.logs[k])
        if largest == -INFINITY:
            # Inside a move that will be rejected: any proposal will do.
            self.logs.assign(self.n_slots, 0.0)
            largest = 0.0
        fill_exp(self.n_slots, self.logs.data(), largest, LEAST_LOG, out)
        return scale + largest

    cdef int fill_pair(self, intp_t t, const int32_t *states,
                       float64_t *out) except -1 nogil:
        cdef int32_t i
        cdef float64_t pair[2]
        cdef float64_t logs[2]
        cdef float64_t largest
        cdef PyObject *child
        logs[0] = logs[1] = 0.0
        for child in self.children:
            (<EmissionStats> child).fill_pair(t, states, pair)
            add_logs(2, pair, logs)
        for i in range(2):
            logs[i] += self.known.log_prob(t, states[i])
        largest = max(logs[0], logs[1])
        for i in range(2):
            # (Both impossible: the move will be rejected.)
            out[i] = 1.0 if largest == -INFINITY else exp(max(logs[i] - largest, LEAST_LOG))
        return 0

    cdef int resize(self, int32_t n_slots) except -1 nogil:
        cdef PyObject *child
        self.n_slots = n_slots
        for child in self.children:
            (<EmissionStats> child).resize(n_slots)
        self.known.resize(n_slots)
        return 0

    cdef int commit(self) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).commit()
        self.known.commit()
        return 0

    cdef int rollback(self) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).rollback()
        self.known.rollback()
        return 0

    cdef float64_t log_joint(self) except? -1 nogil:
        cdef float64_t lp = 0.0
        cdef PyObject *child
        for child in self.children:
            lp += (<EmissionStats> child).log_joint()
        return lp

    cdef int draw_hyperparameters(self, bitgen_t *g) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).draw_hyperparameters(g)
        return 0

    cdef int settle(self, const int32_t *states) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).settle(states)
        if self.known.is_active():
            self.known.settle(states)
        return 0

    cdef size_t n_bytes(self) noexcept nogil:
        cdef size_t total = self.known.n_bytes() + 8 * (
            self.row.capacity() + self.logs.capacity())
        cdef PyObject *child
        for child in self.children:
            total += (<EmissionStats> child).n_bytes()
        return total

    # -- parameters

    cdef int draw_parameters(self, const int32_t *occupancy, bint lazy,
                             bitgen_t *g) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).draw_parameters(occupancy, lazy, g)
        self.known.draw()
        return 0

    cdef const float64_t *likelihoods(self, intp_t t,
                                      const int32_t *occupancy) except NULL nogil:
        cdef int32_t k, slot
        cdef float64_t largest
        cdef const float64_t *row
        cdef PyObject *child
        # Room for whole vectors of sixteen.
        self.row.assign(self.n_slots + 16, 0.0)
        self.logs.assign(self.n_slots, 0.0)
        for child in self.children:
            row = (<EmissionStats> child).likelihoods(t, occupancy)
            for k in range(self.n_slots):
                # (What free slots hold is anything; impossible is possible here.)
                self.row[k] = row[k] if k == NEW or occupancy[k] > 0 else 1.0
                self.row[k] = max(self.row[k], 1e-300)
            add_logs(self.n_slots, self.row.data(), self.logs.data())
        if not self.known.is_free(t):
            slot = self.known.slot_of(t)
            for k in range(self.n_slots):
                if k != slot and not (k == NEW and self.known.may_be_fresh(t, occupancy)):
                    self.logs[k] = -INFINITY
        largest = self.logs[NEW]
        for k in range(self.n_slots):
            if occupancy[k] > 0:
                largest = max(largest, self.logs[k])
            elif k != NEW:
                self.logs[k] = -INFINITY
        for k in range(self.n_slots):
            self.row[k] = 0.0
            if self.logs[k] > -INFINITY:
                self.row[k] = exp(max(self.logs[k] - largest, LEAST_LOG))
        return self.row.data()

    cdef float64_t log_likelihood(self, intp_t t, int32_t k, bitgen_t *g) except? -1 nogil:
        cdef float64_t lp = 0.0
        cdef PyObject *child
        for child in self.children:
            lp += (<EmissionStats> child).log_likelihood(t, k, g)
        if not self.known.is_free(t) and k != self.known.slot_of(t):
            return -INFINITY
        return lp

    cdef int draw_newborn(self, int32_t k, intp_t t, bitgen_t *g) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).draw_newborn(k, t, g)
        self.known.draw_newborn(k, t)
        return 0

    cdef int reseat(self, const int32_t *states, bitgen_t *g) except -1 nogil:
        cdef PyObject *child
        for child in self.children:
            (<EmissionStats> child).reseat(states, g)
        if self.known.is_active():
            self.known.settle(states)
        return 0

    # -- Python side

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
        if self.known.is_active() and not self.known.is_kept_by(&states[0]):
            raise ValueError("emission: the states are not the known ones")

    def load(self, arrays, slots):
        # (Known states are counted by settle.)
        for part, record in zip(self.parts, self._parts_of(arrays), strict=True):
            part.load(record, slots)

    def predictives(self, slots):
        return [column for part in self.parts for column in part.predictives(slots)]

    def draw_values(self, slots, n_known, stream):
        out, known = [], list(n_known)
        nobody = np.empty(0, dtype=np.int32)
        for part in self.parts:
            n_columns = len(part.predictives(nobody))
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
        if not self.known.is_active():
            return None
        if not self.known.is_kept_by(&states[0]):
            return "the states are not the known ones"
        recount.configure(&self.labels[0], self.n_steps)
        recount.resize(self.n_slots)
        recount.settle(&states[0])
        return None if self.known.equals(recount) else (
            "the known states differ from a recount of the labels")
