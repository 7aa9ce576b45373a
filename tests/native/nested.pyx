"""A seating whose base is another seating: three levels with the root."""

from libc.stdint cimport uint32_t
from libcpp.vector cimport vector

from skihmm.core._franchise cimport InfiniteRoot, SeatingOn
from skihmm.core._random cimport bitgen_t
from skihmm.core._record cimport SeatingRecord, record_to_arrays
from skihmm.core._types cimport float64_t, int32_t

ctypedef SeatingOn[InfiniteRoot] Parent


cdef extern from "_seating.hpp" namespace "skihmm" nogil:
    cdef cppclass Child "skihmm::Seating<skihmm::Seating<skihmm::InfiniteRoot>>":
        Parent base
        void set_parents(vector[int32_t] parents)
        void set_alpha(float64_t alpha)
        void resize(int32_t n_rows, int32_t n_dishes) except +
        void clear()
        float64_t prob(int32_t row, int32_t dish)
        void fill_probs(int32_t row, float64_t *out)
        float64_t add(int32_t row, int32_t dish, bitgen_t *g) except +
        float64_t remove(int32_t row, int32_t dish, bitgen_t *g) except +
        void commit() except +
        void rollback() except +
        SeatingRecord record() except +
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

    Random numbers are a list of uniforms for every call, all of which it has to use.
    """

    cdef Child seating

    def __init__(self, parents, int32_t n_dishes, float64_t alpha, float64_t parent_alpha,
                 float64_t gamma):
        self.seating.set_parents(parents)
        self.seating.set_alpha(alpha)
        self.seating.resize(len(parents), n_dishes)
        self.seating.base.set_concentrations(parent_alpha, gamma)
        self.seating.base.resize(max(parents) + 1, n_dishes)

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
        self.seating.commit()

    def rollback(self):
        self.seating.rollback()

    def clear(self):
        self.seating.clear()

    def records(self):
        """Of both levels: cells and sorted table sizes."""
        return (record_to_arrays(self.seating.record()),
                record_to_arrays(self.seating.base.record()))

    def log_joint(self):
        return self.seating.log_joint()

    def check(self):
        cdef const char *wrong = self.seating.check()
        return None if wrong is NULL else wrong.decode()
