"""Two levels of a tree and its root."""

from libc.stdint cimport uint32_t
from libcpp.vector cimport vector

from skihmm.core._random cimport bitgen_t
from skihmm.core._record cimport SeatingRecord, record_to_arrays
from skihmm.core._types cimport float64_t, int32_t


cdef extern from "_tree.hpp" namespace "skihmm" nogil:
    cdef cppclass Root "skihmm::InfiniteRoot":
        void set_gamma(float64_t gamma)

    cdef cppclass Level "skihmm::Tree<skihmm::InfiniteRoot>::Level":
        void set_alpha(float64_t alpha)
        float64_t prob(int32_t row, int32_t dish)
        void fill_probs(int32_t row, float64_t *out)
        float64_t add(int32_t row, int32_t dish, bitgen_t *g) except +
        float64_t remove(int32_t row, int32_t dish, bitgen_t *g) except +
        SeatingRecord record() except +

    cdef cppclass ContextShape:
        int32_t n_before
        vector[vector[int32_t]] parents

    cdef cppclass Tree "skihmm::Tree<skihmm::InfiniteRoot>":
        Tree(Root *root, ContextShape shape, bint by_prefix) except +
        Level &level(int32_t d)
        void resize(int32_t n_labels, int32_t n_dishes) except +
        void clear()
        void commit() except +
        void rollback() except +
        float64_t log_joint()
        const char *check() except +


cdef struct Script:
    const float64_t *next
    const float64_t *end


cdef float64_t _next_double(void *state) noexcept nogil:
    cdef Script *script = <Script *> state
    cdef float64_t u = script.next[0] if script.next < script.end else 0.0
    script.next += 1
    return u


cdef uint32_t _next_uint32(void *state) noexcept nogil:
    return <uint32_t> (_next_double(state) * 4294967296.0)


cdef class NestedProbe:
    """Child restaurants, each with its parent, under an infinite root.

    Every parent has as many children, whose numbers follow each other; some may be left out.

    Random numbers are a list of uniforms for every call, all of which it has to use.
    """

    cdef Root root
    cdef Tree *tree
    cdef Level *seating

    def __init__(self, parents, int32_t n_dishes, float64_t alpha, float64_t parent_alpha,
                 float64_t gamma):
        cdef ContextShape shape
        cdef vector[int32_t] contexts = [0] * parents.count(0)
        shape.parents.push_back(contexts)
        self.tree = new Tree(&self.root, shape, False)
        self.tree.resize(max(parents) + 1, n_dishes)
        self.root.set_gamma(gamma)
        self.tree.level(1).set_alpha(parent_alpha)
        self.seating = &self.tree.level(2)
        self.seating.set_alpha(alpha)

    def __dealloc__(self):
        del self.tree

    def change(self, int32_t row, int32_t dish, bint adds, uniforms):
        """Add or remove a customer; returns the predictive probability."""
        cdef vector[float64_t] numbers = uniforms
        cdef Script script
        cdef bitgen_t bits
        cdef float64_t p
        script.next = numbers.data()
        script.end = script.next + numbers.size()
        bits.state = &script
        bits.next_double = _next_double
        bits.next_uint32 = _next_uint32
        if adds:
            p = self.seating.add(row, dish, &bits)
        else:
            p = self.seating.remove(row, dish, &bits)
        assert script.next == script.end, "another number of random numbers"
        return p

    def probs(self, int32_t row, int32_t n_dishes):
        """Predictive probabilities, one by one and all at once."""
        cdef vector[float64_t] out
        out.resize(n_dishes)
        self.seating.fill_probs(row, out.data())
        return [self.seating.prob(row, k) for k in range(n_dishes)], out

    def commit(self):
        self.tree.commit()

    def rollback(self):
        self.tree.rollback()

    def clear(self):
        self.tree.clear()

    def records(self):
        """Of both levels: cells and sorted table sizes."""
        return (record_to_arrays(self.seating.record()),
                record_to_arrays(self.tree.level(1).record()))

    def log_joint(self):
        return self.tree.log_joint()

    def check(self):
        cdef const char *wrong = self.tree.check()
        return None if wrong is NULL else wrong.decode()
