"""Random stream shared by compiled code and NumPy's Generator."""

from threading import Lock

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.math cimport INFINITY, exp
from libc.stdint cimport uint32_t, uint64_t

import numpy as np

from skihmm.core._types cimport intp_t


cdef class RandomStream:
    """A random stream on one of NumPy's bit generators.

    Parameters
    ----------
    seed : numpy.random.SeedSequence, int or numpy.random.BitGenerator
        Bit generator of the stream, or the seed of a new ``PCG64``.
    """

    def __init__(self, seed: (int | Sequence[int] | np.random.SeedSequence
                              | np.random.BitGenerator | None)):
        if not isinstance(seed, np.random.BitGenerator):
            seed = np.random.PCG64(seed)
        self.bit_generator = seed
        self.generator = np.random.Generator(seed)
        self.bits = <bitgen_t *> PyCapsule_GetPointer(seed.capsule, "BitGenerator")

    def categorical(self, log_weights: ArrayLike) -> int:
        """Draw an index with probability proportional to weights, given as logarithms.

        Parameters
        ----------
        log_weights : array-like of shape (n,)
            Up to a common constant.  Entries of -inf are never drawn.

        Returns
        -------
        place : int
            Index from 0 to n - 1.

        Raises
        ------
        ValueError
            If some entry is NaN or +inf, or all of them are -inf.
        """
        cdef const float64_t[::1] logs = np.ascontiguousarray(log_weights, dtype=np.float64)
        cdef intp_t i, last = -1
        cdef float64_t largest = -INFINITY, total = 0.0, u
        for i in range(logs.shape[0]):
            if not logs[i] < INFINITY:
                raise ValueError(
                    f"log_weights[{i}] is {logs[i]}; expected numbers below infinity "
                    "(-inf for a weight of zero).")
            largest = max(largest, logs[i])
        if largest == -INFINITY:
            raise ValueError(
                f"{logs.shape[0]} log_weights, none of them above -inf; expected at least "
                "one positive weight.")
        for i in range(logs.shape[0]):
            total += exp(logs[i] - largest)
        u = uniform(self.bits) * total
        for i in range(logs.shape[0]):
            if logs[i] > -INFINITY:
                # By rounding u may be beyond the last positive weight.
                last = i
                u -= exp(logs[i] - largest)
                if u < 0.0:
                    break
        return last

    @property
    def state(self) -> Mapping[str, object]:
        """State of the bit generator as NumPy's plain dictionary."""
        return self.bit_generator.state

    @state.setter
    def state(self, value: Mapping[str, object]) -> None:
        # It may be from a file.  With an even increment, which no seed gives, the stream may
        # repeat one number for ever, and rejection samplers would never end.
        before = self.bit_generator.state
        try:
            # Older NumPy wraps values out of range, with a warning.
            for number in value["state"].values():
                if isinstance(number, int) and not 0 <= number < 2**128:
                    raise ValueError("some number is out of range")
            self.bit_generator.state = value
            if isinstance(self.bit_generator, np.random.PCG64):
                if self.bit_generator.state != value:
                    raise ValueError("some number is none of its kind")
                if value["state"]["inc"] % 2 == 0:
                    raise ValueError("the increment is even")
        except (AttributeError, TypeError, ValueError, KeyError, IndexError,
                OverflowError) as error:
            self.bit_generator.state = before
            raise ValueError(
                f"{value!r:.200} is no state of {type(self.bit_generator).__name__}: "
                f"{error!r}") from error


cdef uint64_t _borrowed_uint64(void *bits) noexcept nogil:
    cdef bitgen_t *target = (<BorrowedBits> bits).target
    return target.next_uint64(target.state)


cdef uint32_t _borrowed_uint32(void *bits) noexcept nogil:
    cdef bitgen_t *target = (<BorrowedBits> bits).target
    return target.next_uint32(target.state)


cdef double _borrowed_double(void *bits) noexcept nogil:
    cdef bitgen_t *target = (<BorrowedBits> bits).target
    return target.next_double(target.state)


cdef uint64_t _borrowed_raw(void *bits) noexcept nogil:
    cdef bitgen_t *target = (<BorrowedBits> bits).target
    return target.next_raw(target.state)


cdef class BorrowedBits:
    """Bit generator that forwards to the target stream."""

    def __cinit__(self):
        # Generator copies the struct, so that it cannot belong to one stream.
        self.borrowed.state = <void *> self
        self.borrowed.next_uint64 = _borrowed_uint64
        self.borrowed.next_uint32 = _borrowed_uint32
        self.borrowed.next_double = _borrowed_double
        self.borrowed.next_raw = _borrowed_raw
        self.capsule = PyCapsule_New(<void *> &self.borrowed, "BitGenerator", NULL)
        self.lock = Lock()
