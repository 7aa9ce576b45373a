"""Blocked proposals once more from their definitions, with planted errors; for tests only.

Nothing in the package imports this module.  All K + 1 columns, dense loops, no caches; the
probability of a path is the product of all transitions, emissions and names along it.
"""

import numpy as np

from libcpp.vector cimport vector

from skihmm.core._franchise cimport NEW, Product
from skihmm.core._random cimport uniform
from skihmm.core._rcd cimport BlockProposal, RCDKernel
from skihmm.core._state cimport ChainState
from skihmm.core._types cimport float64_t, int32_t, int64_t, intp_t
from skihmm.emissions._categorical_stats cimport CategoricalStats


cdef extern from "_blocked_vector.hpp" namespace "skihmm" nogil:
    cdef cppclass BlockedPasses:
        void (*emit)(int32_t n, float smooth, const float *mass, const float *w,
                     const float *size, float *g, float *out, float64_t *sums)
        int32_t (*select)(int32_t n, float least, const float *f, const float *size,
                          int32_t *chosen)
        void (*add_where)(int32_t n, float64_t scale, const float64_t *mass, float64_t c,
                          float64_t u, float f, float *g)
        float64_t (*sum_where)(int32_t n, float64_t smooth, const float64_t *c,
                               float64_t u, const float *f)
        float64_t (*sum_both)(int32_t n, float64_t scale, const int32_t *row,
                              const float64_t *mass, float64_t c_i, float64_t u,
                              const int32_t *column, float64_t smooth,
                              const float64_t *c, float64_t v, const float64_t *w)
    bint find_blocked_passes(int level, BlockedPasses *out)


BUGS = (
    None,
    "no_label_factor",      # names are drawn from Q*, but not counted
    "no_ghost",             # Q* begins empty also if the successor is served nowhere
    "accept_always",        # the ratio is taken for one
    "no_message",           # backward draws of the beam without the forward message
)


cdef class NaiveBlocked(BlockProposal):
    """Forward filtering and backward sampling at s_0, by the definitions.

    Parameters
    ----------
    sliced : bool
        The beam.
    bug : str, optional
        One of ``BUGS``.
    """

    cdef bint sliced
    cdef int bug
    cdef vector[int32_t] bars, labels, customers
    cdef vector[float64_t] slices, messages, probs, weights
    cdef int32_t ghost, after, n_slots

    def __init__(self, bint sliced=False, bug=None):
        self.sliced = sliced
        self.bug = BUGS.index(bug)

    cdef int32_t bar(self, ChainState s, int32_t k) noexcept nogil:
        return k if s.transitions.seating.dish_tables[k] > 0 else NEW

    cdef bint is_column(self, ChainState s, int32_t k) noexcept nogil:
        return k == NEW or s.transitions.seating.dish_tables[k] > 0

    cdef float64_t pi(self, ChainState s, intp_t at, int32_t j, int32_t k) noexcept nogil:
        # What the filter uses for the transition number at of the block.
        cdef float64_t p = s.transitions.seating.prob(j, k)
        if self.sliced:
            return 1.0 if p >= self.slices[at] else 0.0
        return p

    cdef float64_t name(self, int32_t label) noexcept nogil:
        cdef size_t i
        cdef float64_t total = 1.7
        for i in range(self.labels.size()):
            total += self.customers[i]
        for i in range(self.labels.size()):
            if self.labels[i] == label:
                self.customers[i] += 1
                return (self.customers[i] - 1) / total
        self.labels.push_back(label)
        self.customers.push_back(1)
        return 1.7 / total

    cdef int open_names(self) except -1 nogil:
        self.labels.clear()
        self.customers.clear()
        if self.ghost >= 0 and self.bug != 2:
            self.name(self.ghost)
        return 0

    cdef int prepare(self, ChainState s, intp_t start, intp_t stop) except -1 nogil:
        cdef intp_t at, length = stop - start
        cdef int32_t j, k, i = s.previous(start), o = s.successor(stop - 1)
        cdef float64_t total, value
        self.n_slots = s.n_slots
        self.ghost = o if o >= 0 and s.transitions.seating.dish_tables[o] == 0 else -1
        self.after = self.bar(s, o) if o >= 0 else -1
        self.bars.clear()
        self.slices.clear()
        j = i
        for at in range(length + (o >= 0)):
            k = self.bar(s, s.states[start + at]) if at < length else self.after
            self.slices.push_back(
                uniform(s.stream.bits) * s.transitions.seating.prob(j, k))
            self.bars.push_back(k)
            j = k
        self.messages.assign(length * s.n_slots, 0.0)
        self.probs.assign(length * s.n_slots, 0.0)
        for at in range(length):
            s.emission.fill_probs(start + at, &self.probs[at * s.n_slots])
            total = 0.0
            for k in range(s.n_slots):
                if not self.is_column(s, k):
                    continue
                value = 0.0
                if at == 0:
                    value = self.pi(s, 0, i, k)
                else:
                    for j in range(s.n_slots):
                        if self.is_column(s, j):
                            value += (self.messages[(at - 1) * s.n_slots + j]
                                      * self.pi(s, at, j, k))
                self.messages[at * s.n_slots + k] = value * self.probs[at * s.n_slots + k]
                total += self.messages[at * s.n_slots + k]
            for k in range(s.n_slots):
                self.messages[at * s.n_slots + k] /= total
        return 0

    cdef int multiply(self, ChainState s, intp_t start, intp_t length, const int32_t *path,
                      Product *q) except -1 nogil:
        cdef intp_t at
        cdef float64_t p
        cdef int32_t j = s.previous(start), k
        self.open_names()
        for at in range(length):
            k = self.bar(s, path[at])
            q.multiply(s.transitions.seating.prob(j, k))
            q.multiply(self.probs[at * self.n_slots + k])
            if k == NEW:
                p = self.name(path[at])
                if self.bug != 1:
                    q.multiply(p)
            j = k
        if self.after >= 0:
            q.multiply(s.transitions.seating.prob(j, self.after))
        return 0

    cdef int score(self, ChainState s, intp_t start, intp_t stop,
                   Product *q) except -1 nogil:
        self.multiply(s, start, stop - start, s.states.data() + start, q)
        if self.bug == 3:
            q.multiply_log(1e6)
        return 0

    cdef int propose(self, ChainState s, intp_t start, intp_t stop, int32_t *path,
                     Product *q) except -1 nogil:
        cdef intp_t at, length = stop - start, n_fresh = 0
        cdef size_t i
        cdef int32_t j, k = self.after
        cdef float64_t u, total, f
        self.weights.resize(self.n_slots)
        for at in range(length - 1, -1, -1):
            total = 0.0
            for j in range(self.n_slots):
                f = self.messages[at * self.n_slots + j]
                if self.bug == 4 and f > 0.0:
                    f = 1.0
                self.weights[j] = f if k < 0 or f == 0.0 else f * self.pi(s, at + 1, j, k)
                total += self.weights[j]
            u = uniform(s.stream.bits) * total
            path[at] = -1
            for j in range(self.n_slots):
                if self.weights[j] > 0.0:
                    path[at] = j
                    u -= self.weights[j]
                    if u < 0.0:
                        break
            k = path[at]
        self.open_names()
        for at in range(length):
            if path[at] != NEW:
                continue
            u = 1.7
            for i in range(self.labels.size()):
                u += self.customers[i]
            u *= uniform(s.stream.bits)
            for i in range(self.labels.size()):
                u -= self.customers[i]
                if u < 0.0:
                    path[at] = self.labels[i]
                    break
            else:
                path[at] = s.free_slot(n_fresh)
                n_fresh += 1
            self.name(path[at])
        self.multiply(s, start, length, path, q)
        return 0


def record_labels(RCDKernel kernel, ChainState state, intp_t n_sweeps):
    """The chain after every sweep, as numbers.

    Returns
    -------
    out : ndarray of shape (n_sweeps, n_steps + 2)
        Labels by first appearance, tables of the transitions, tables of the emissions.
    accepted : float
        Share of accepted moves.
    """
    cdef CategoricalStats emission = state.emission
    cdef intp_t i, t, c
    cdef int32_t n
    cdef vector[int32_t] names
    out = np.empty((n_sweeps, state.n_steps + 2), dtype=np.int32)
    cdef int32_t[:, ::1] view = out
    cdef int64_t n_proposed = 0, n_accepted = 0
    for i in range(n_sweeps):
        state.n_proposed = 0
        state.n_accepted = 0
        with nogil:
            kernel.run(state)
            names.assign(state.n_slots, -1)
            n = 0
            for t in range(state.n_steps):
                if names[state.states[t]] < 0:
                    names[state.states[t]] = n
                    n += 1
                view[i, t] = names[state.states[t]]
            view[i, state.n_steps] = <int32_t> state.transitions.seating.n_tables
            view[i, state.n_steps + 1] = 0
            for c in range(emission.n_columns):
                view[i, state.n_steps + 1] += <int32_t> emission.seatings[c].n_tables
        n_proposed += state.n_proposed
        n_accepted += state.n_accepted
    return out, <float64_t> n_accepted / n_proposed


def run_passes(int level, int32_t[:, ::1] counts, float64_t[:, ::1] doubles,
               float[:, ::1] floats):
    """All passes over slots in the version for plain (0), AVX2 (1) or AVX-512 (2).

    Parameters
    ----------
    counts : array of shape (2, n)
    doubles, floats : arrays of shape (3, n)
        n a multiple of 16.

    Returns
    -------
    results : dict or None
        None if this machine has no such version.
    """
    cdef BlockedPasses passes
    if not find_blocked_passes(level, &passes):
        return None
    cdef int32_t n = <int32_t> counts.shape[1], n_chosen
    cdef float64_t[::1] sums = np.zeros(2)
    cdef int32_t[::1] chosen = np.zeros(n + 16, dtype=np.int32)
    cdef float[::1] g = np.array(floats[0]), more = np.array(floats[0])
    cdef float[::1] out = np.zeros(n, dtype=np.float32)
    cdef float64_t where, both
    passes.emit(n, 0.3, &floats[1, 0], &floats[2, 0], &floats[1, 0], &g[0], &out[0],
                &sums[0])
    n_chosen = passes.select(n, 0.2, &floats[1, 0], &floats[2, 0], &chosen[0])
    passes.add_where(n, 0.7, &doubles[0, 0], 0.9, 0.3, 0.1, &more[0])
    where = passes.sum_where(n, 0.7, &doubles[0, 0], 0.3, &floats[1, 0])
    both = passes.sum_both(n, 0.7, &counts[0, 0], &doubles[0, 0], 0.2, 0.5, &counts[1, 0],
                           0.4, &doubles[1, 0], 0.6, &doubles[2, 0])
    return {
        "emit": np.concatenate([g, out, sums]),
        "select": np.array(chosen[:n_chosen]),
        "add_where": np.array(more),
        "sum_where": where,
        "sum_both": both,
    }
