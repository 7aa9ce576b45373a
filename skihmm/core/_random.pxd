from numpy.random cimport bitgen_t

from skihmm.core._types cimport float64_t, int64_t


cdef extern from "_random.hpp" namespace "skihmm" nogil:
    # Uniform on [0, 1); uniform on 0 .. n-1 (n >= 1).
    float64_t uniform(bitgen_t *g)
    int64_t below(bitgen_t *g, int64_t n)


cdef class RandomStream:
    # The only source of randomness of a chain.  Compiled code draws through `bits`; Python
    # code through `generator`; both advance the same state.  A stream belongs to one
    # thread at a time, so the lock of the bit generator is not taken.
    cdef bitgen_t *bits                 # borrowed from bit_generator
    cdef readonly object bit_generator  # type: np.random.BitGenerator; keeps `bits` alive
    cdef readonly object generator      # type: np.random.Generator; on the same stream


cdef class BorrowedBits:
    # A bit generator for NumPy's Generator, for code with only the bitgen_t of a stream: set
    # `target` before every use.
    cdef bitgen_t *target
    cdef bitgen_t borrowed
    cdef readonly object capsule
    cdef readonly object lock
